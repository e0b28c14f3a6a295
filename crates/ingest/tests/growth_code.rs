// SPDX-License-Identifier: PostgreSQL

//! The time of reading code grows with its size, whatever it is made of; see [`linear`].
#![allow(clippy::expect_used, clippy::panic, reason = "a test may")]

mod invariants;
mod linear;

use invariants::options;
use linear::{COUNTER, MEGABYTE, grows};
use rag_core::source::{Chunking, SourceKind};
use serde_json::Map;

/// What waits for something after it in one language or another: marks that open, operators without operands, words that
/// go on, what nests without brackets.
const CODE: &[&str] = &[
    "(",
    "[",
    "{",
    "<",
    ">",
    "- ",
    "-",
    "-*",
    "! ",
    "* ",
    "& ",
    "~",
    "? ",
    ": ",
    ". ",
    "= ",
    "=> ",
    "-> ",
    ":: ",
    "| ",
    "a - ",
    "a = ",
    "a ? ",
    "a => ",
    "a, ",
    "a.",
    "a: ",
    "a ",
    "a\n",
    "-\n",
    "if (a) ",
    "if a ",
    "if a:\n",
    "else ",
    "else if (a) ",
    "for (;;) ",
    "while (a) ",
    "do ",
    "case 1: ",
    "switch (a) ",
    "not ",
    "not\n",
    "lambda: ",
    "lambda a: ",
    "new ",
    "typeof ",
    "await ",
    "async ",
    "yield ",
    "return ",
    "throw ",
    "delete ",
    "sizeof ",
    "class A ",
    "class A:\n",
    "def a ",
    "fn a ",
    "fn a() ",
    "func a() ",
    "function a() ",
    "function ",
    "let ",
    "var ",
    "const ",
    "namespace a ",
    "module a ",
    "begin ",
    "end ",
    "then ",
    "try ",
    "catch (a) ",
    "a(",
    "a[",
    "a{",
    "a<",
    "(a)",
    "(a) => ",
    "<a>",
    "<a ",
    "@a ",
    "@",
    "#",
    "#if a\n",
    "\\",
    "\"",
    "'",
    "`",
    "${",
    "$(",
    "$((",
    "/*",
    "//",
    "\"\"\"",
    "r#\"",
    "<<E\n",
    "R\"(",
    "%q(",
    "=begin\n",
    "<?",
    "1 ",
    "1.",
    "a ** ",
    "a || ",
    "a && ",
    "a | ",
    "template <",
    "typename ",
    "operator ",
    "unsafe ",
    "static ",
    "public ",
    "impl A for ",
    "where ",
    "in ",
    "is ",
];

#[test]
fn code() {
    const EXTENSIONS: &[&str] = &[
        "a.rs", "a.py", "a.ts", "a.tsx", "a.js", "a.go", "a.java", "a.c", "a.h", "a.hpp", "a.cs", "a.rb", "a.php",
        "a.sh", "a.sql",
    ];
    let options = options(SourceKind::Code, Chunking::Structure, 200);
    for (language, name) in EXTENSIONS.iter().enumerate() {
        let read = |text: &str| {
            let _either =
                rag_ingest::parse_inline(SourceKind::Code, &options, name, text.as_bytes(), &Map::new(), &COUNTER);
        };
        for (index, unit) in CODE.iter().enumerate() {
            let begins = ["", "a = ", "class A { void f() { x = "];
            // A build without optimisation takes one of six pairs, in each language others.
            let (every, turn) = if cfg!(debug_assertions) { (6, index + language) } else { (1, 0) };
            for begin in begins.into_iter().enumerate().filter(|(n, _)| (turn + n) % every < 1).map(|(_, begin)| begin)
            {
                let begin = if *name == "a.php" { format!("<?php {begin}") } else { begin.to_owned() };
                grows(name, MEGABYTE / 4, &read, &|size| format!("{begin}{}", unit.repeat(size / unit.len())));
            }
        }
        grows(name, MEGABYTE, &read, &|size| format!("{}x", "create table t (a int); ".repeat(size / 24)));
    }
}
