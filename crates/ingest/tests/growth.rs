// SPDX-License-Identifier: PostgreSQL

//! Time grows with the size of an input and not with its square.
//!
//! Each input is made in two sizes, of which one is four times the other, and both are read in one run: four times the
//! size may take eight times as long, where a quadratic step takes sixteen. What is compared is the processor time of this
//! thread, so that a busy machine changes nothing; what takes next to none is not worth comparing.
#![allow(clippy::expect_used, clippy::panic, reason = "a test may")]

mod invariants;

use invariants::{clock, options};
use rag_core::source::{Chunking, SourceKind, SourceOptions, SourceSpec};
use rag_core::tokens::WordCounter;
use serde_json::Map;
use std::time::Duration;

const COUNTER: WordCounter = WordCounter { window: 254 };

/// A build without optimisation gets a tenth, or it would take minutes.
const MEGABYTE: usize = if cfg!(debug_assertions) { 100_000 } else { 1_000_000 };

/// Time that says nothing: the clock ticks, memory is taken for the first time.
const SLACK: Duration = Duration::from_millis(120);

fn spent(read: &dyn Fn(&str), text: &str) -> Duration {
    let start = clock();
    read(text);
    clock().saturating_sub(start)
}

/// Reads what `make` makes of two sizes, the larger of `size` bytes.
fn grows(what: &str, size: usize, read: &dyn Fn(&str), make: &dyn Fn(usize) -> String) {
    let (small, large) = (make(size / 4), make(size));
    let quick = spent(read, &small);
    let slow = spent(read, &large);
    let begin: String = large.chars().take(60).collect();
    assert!(
        slow <= quick * 8 + SLACK,
        "{what}: {} bytes take {quick:?}, {} bytes {slow:?}: {begin:?}",
        small.len(),
        large.len()
    );
}

fn reader(kind: SourceKind, name: &'static str) -> impl Fn(&str) {
    move |text| {
        let options = SourceOptions::defaults(kind);
        let _either = rag_ingest::parse_inline(kind, &options, name, text.as_bytes(), &Map::new(), &COUNTER);
    }
}

fn repeats(what: &str, read: &dyn Fn(&str), unit: &str) {
    grows(what, MEGABYTE, read, &|size| unit.repeat(size / unit.len()));
}

#[test]
fn markdown() {
    let read = reader(SourceKind::Markdown, "a.md");
    for unit in [
        "[",
        "]",
        "[]",
        "[](",
        "![",
        "[[",
        "]]",
        "[a]: b\n",
        "[a][b] ",
        "[a]:",
        "[^a]",
        "[^a]: b\n\n",
        "*",
        "*a ",
        "**a ",
        "*a_",
        "_a*",
        "~",
        "~~a ",
        "`",
        "` a `` ",
        "`a",
        "<",
        "<a ",
        "<!--",
        "<!-- -->",
        "<?",
        "<![CDATA[",
        "<a>",
        "<a href='",
        "&",
        "&amp;",
        "&#",
        "\\",
        "|",
        "|a\n",
        "|-",
        "a|b\n-|-\n",
        "> ",
        "> a\n",
        "- ",
        "- a\n",
        "1. a\n",
        "  - a\n",
        "\t",
        "# ",
        "# a\n",
        "a\n=\n",
        "a\n-\n",
        "---\n",
        "```\n",
        "~~~\n",
        "    a\n",
        "$$",
        "$a",
        "{#a}",
        "# {",
        "http://a ",
        "www.a",
        "a@b.c ",
        ":::",
        "!",
        "![a](b",
        "[a](<b",
        "[a](b 'c",
        "[a](((",
        "*_*_",
        "**_**_",
        "<div>\n",
        "<script>\n",
        "\u{a0}",
        "é",
        "。",
        "e\u{301}",
        "\u{301}",
        "a",
        "a ",
        "a\n\n",
        "\n",
        " \n",
        "- [ ] ",
    ] {
        repeats("markdown", &read, unit);
        grows("markdown after text", MEGABYTE, &read, &|size| format!("x {}", unit.repeat(size / unit.len())));
    }
    // Opened and closed, and one after the other.
    for (open, close) in
        [("[", "]"), ("*", "*"), ("`", "`"), ("<", ">"), ("(", ")"), ("![", "](a)"), ("> ", "\n"), ("**", "**a")]
    {
        grows("markdown in pairs", MEGABYTE, &read, &|size| {
            let times = size / (open.len() + close.len());
            format!("a {}b{}", open.repeat(times), close.repeat(times))
        });
    }
    // Many lines against one long one.
    for (first, line) in
        [("[a]: /", "[a]\n"), ("# ", "# a\n"), ("|a", "|b\n"), ("---\ntitle: ", "\n---\n# b\n"), ("[^a]: ", "[^a] ")]
    {
        grows("markdown of a long line", MEGABYTE, &read, &|size| {
            format!("{first}{}\n{}", "x".repeat(size / 2), line.repeat(size / 2 / line.len()))
        });
    }
    // A table of many columns and many rows.
    grows("a wide table", MEGABYTE, &read, &|size| {
        format!("{}|\n{}|\n{}", "|a".repeat(size / 8), "|-".repeat(size / 8), "|b\n".repeat(size / 6))
    });
    grows("runs of backticks", MEGABYTE, &read, &|size| {
        (1..)
            .map(|n| format!("{} ", "`".repeat(n)))
            .scan(0, |sum, run| {
                *sum += run.len();
                (*sum < size).then_some(run)
            })
            .collect()
    });
}

#[test]
fn front_matter() {
    let read = reader(SourceKind::Markdown, "a.md");
    for (begin, unit, end) in [
        ("a: ", "[", ""),
        ("a: ", "{", ""),
        ("a: ", "[a, ", ""),
        ("a: ", "x ", ""),
        ("", "a: b\n", ""),
        ("a:\n", "- b\n", ""),
        ("", "? ", ""),
        ("a: ", "!a ", ""),
        ("a: ", "&a ", ""),
        ("a: '", "''", "'"),
        ("a: \"", "\\n", "\""),
        ("a: |\n", "  b\n", ""),
        ("", "#\n", ""),
        ("a: &b c\nd: [", "*b, ", "]"),
    ] {
        grows("front matter of YAML", MEGABYTE, &read, &|size| {
            format!("---\n{begin}{}{end}\n---\nx\n", unit.repeat(size / unit.len()))
        });
    }
    for (begin, unit, end) in
        [("a = ", "[", ""), ("", "a.", "a = 1"), ("a = [", "1, ", "]"), ("", "[[a]]\n", ""), ("[", "a.", "a]")]
    {
        grows("front matter of TOML", MEGABYTE, &read, &|size| {
            format!("+++\n{begin}{}{end}\n+++\nx\n", unit.repeat(size / unit.len()))
        });
    }
    grows("different keys", MEGABYTE, &read, &|size| {
        format!("---\n{}---\nx\n", (0..size / 10).map(|n| format!("k{n}: v\n")).collect::<String>())
    });
}

#[test]
fn pages() {
    for kind in [SourceKind::Html, SourceKind::Article] {
        let read = reader(kind, "a.html");
        for unit in [
            "<p>",
            "<p>a",
            "<b>",
            "<b>a",
            "<a href=b>",
            "<a href=#>",
            "<a href=#>a</a>",
            "<li>a",
            "<ul><li>",
            "<table>",
            "<tr>",
            "<td>",
            "<td>a",
            "<table><tr><td>",
            "<div>",
            "</div>",
            "<div>a",
            "<div class=a>",
            "<h1>",
            "<h1>a",
            "<pre>",
            "<code>",
            "<code>`",
            "<sup><a href=#>1",
            "<sup>",
            "<q>",
            "<svg>",
            "<math>",
            "<select>",
            "<form>",
            "<button>",
            "<p><button>",
            "<b><p>",
            "<font>",
            "<x-y>",
            "<br>",
            "<hr>",
            "<img alt=a>",
            "<title>a",
            "<script>",
            "<style>",
            "<!--",
            "<!--a-->",
            "<![CDATA[",
            "<",
            "</",
            "<a ",
            "<a b",
            "<a b=",
            "&",
            "&amp",
            "&#1",
            "\0",
            "|",
            "*",
            "`",
            "[",
            "]",
            "\\",
            "a",
            " ",
            "\n",
            "a, ",
            "<td rowspan=9>",
            "<blockquote>",
            "<dl><dt>",
            "<dd>",
            "<details>",
            "<time datetime=2024-01-01>",
            "<meta name=a content=b>",
            "<link rel=canonical href=a>",
            "<base href=a>",
            "<main>",
            "<article>",
            "<header>",
        ] {
            repeats("page", &read, unit);
        }
        let prose = "<p>Some words of a paragraph, long enough, with commas, to be taken for prose by who looks.</p>";
        grows("times beside paragraphs", MEGABYTE, &read, &|size| {
            let times = "<time>".repeat(size / 2 / 6);
            format!("<nav>{times}</nav><div>{}</div>", prose.repeat(size / 2 / prose.len()))
        });
        grows("a long class around code", MEGABYTE, &read, &|size| {
            format!("<div class='{}'>{}</div>", "a ".repeat((size / 16).min(8000)), "<pre>a</pre>".repeat(size / 12))
        });
        grows("different names", MEGABYTE, &read, &|size| (0..size / 9).map(|n| format!("<t{n}>")).collect());
        grows("different attributes", MEGABYTE, &read, &|size| {
            format!("<p {}>x", (0..size / 9).map(|n| format!("a{n}=b ")).collect::<String>())
        });
        grows("a wide table", MEGABYTE, &read, &|size| {
            format!("<table><tr>{}{}</table>", "<td>a".repeat(size / 10), "<tr><td>b".repeat(size / 18))
        });
        grows("a long title", MEGABYTE, &read, &|size| {
            format!("<title>{}</title>{}", "a ".repeat(size / 4), "<h2>b</h2>c".repeat(size / 22))
        });
    }
}

#[test]
fn configuration() {
    let units: &[&str] = &[
        "[",
        "]",
        "{",
        "}",
        "[a]\n",
        "[[a]]\n",
        "a=1\n",
        "a: 1\n",
        "a: ",
        "- ",
        "- a\n",
        "? ",
        "a.",
        "\"",
        "'",
        "\\",
        "#",
        "#\n",
        ";\n",
        ",",
        "[1,",
        "{a: ",
        "{\"a\":",
        "/*",
        "//",
        "&a ",
        "*a ",
        "!a ",
        "!!a",
        "---\n",
        "...\n",
        "|\n",
        "|\n a\n",
        ">\n a\n",
        "a\\\n",
        "a:\n ",
        "%a\n",
        "\"\"\"",
        "'''",
        "a = [",
        "a = {",
        "a = \"\"\"\n",
        "{{",
        "{% a %}\n",
        "\t",
        " ",
        "\n",
        "a",
        "a ",
        "a\n",
        "<<: *a\n",
        "0x",
        "1e",
        "1979-05-27\n",
        "é",
        "[a.b]\nc=1\n",
        "a.b.c = 1\n",
    ];
    for name in ["a.yaml", "a.toml", "a.json", "a.ini", "a.properties", "a"] {
        let read = reader(SourceKind::Config, name);
        for unit in units {
            repeats(name, &read, unit);
        }
        // A long name above many values.
        for (name_of, value) in [("[", "k = 1\n"), ("[a", "k = 1\n"), ("a: ", "b: c\n"), ("{\"", "\", \"a\": 1")] {
            grows("a long name", MEGABYTE, &read, &|size| {
                let close = if name_of.starts_with('[') { "x]\n" } else { "x\n" };
                format!("{name_of}{}{close}{}", "a.".repeat(size / 4), value.repeat(size / 2 / value.len()))
            });
        }
        for (open, close) in [("[", "]"), ("{\"a\":", "}"), ("{a: ", "}"), ("[1, ", "]")] {
            grows("nested", MEGABYTE, &read, &|size| {
                let times = size / (open.len() + close.len());
                format!("{}1{}", open.repeat(times), close.repeat(times))
            });
        }
        grows("different keys", MEGABYTE, &read, &|size| (0..size / 12).map(|n| format!("k{n} = v\n")).collect());
        grows("steps", MEGABYTE, &read, &|size| {
            (0..)
                .map(|n| format!("{}a:\n", " ".repeat(n)))
                .scan(0, |sum, line| {
                    *sum += line.len();
                    (*sum < size).then_some(line)
                })
                .collect()
        });
    }
}

#[test]
fn transcripts() {
    let read = reader(SourceKind::Transcript, "a.srt");
    let cue = "00:00:01,000 --> 00:00:02,000\n";
    for begin in ["", "WEBVTT\n\n", "1\n00:00:01,000 --> 00:00:02,000\n", "WEBVTT\n\n00:01.000 --> 00:02.000\n"] {
        for unit in [
            "1\n",
            "a\n",
            "\n",
            "-->",
            "-->\n",
            "a-->\n",
            "1\na-->\n",
            cue,
            "<",
            "<v ",
            "<v a>",
            "<v a>b",
            "<i>",
            "</",
            "{\\",
            "{\\a}",
            "[a]:",
            ">> a: ",
            "&",
            "&amp;",
            "00:",
            "[",
            "]:",
            "NOTE\n\n",
            "00:00:01.000 --> 00:00:02.000\n<v a>b\n\n",
            "1\n00:00:01,000 --> 00:00:02,000\na\n\n",
        ] {
            grows("cues", MEGABYTE, &read, &|size| format!("{begin}{}", unit.repeat(size / unit.len())));
        }
    }
    // A long identity, which the cues without a begin after it share.
    grows("a long number", MEGABYTE, &read, &|size| {
        format!("{}\n{cue}a\n\n{}", "1".repeat(size / 2), "1\nx-->\na\n\n".repeat(size / 22))
    });
    grows("a long identity of many voices", MEGABYTE, &read, &|size| {
        format!("WEBVTT\n\n{}\n00:01.000 --> 00:02.000\n{}", "i".repeat(size / 2), "<v a>b".repeat(size / 12))
    });
    grows("a long name of many turns", MEGABYTE, &read, &|size| {
        let turns = "{\"speaker\":1,\"text\":\"a\"},{\"speaker\":2,\"text\":\"b\"},".repeat(size / 2 / 50);
        format!("{{\"speakers\":{{\"1\":\"{}\"}},\"segments\":[{turns}\"c\"]}}", "n".repeat(size / 2))
    });
    grows("a long identity of segments", MEGABYTE, &read, &|size| {
        let rest = "{\"text\":\"a\"},".repeat(size / 2 / 13);
        format!("[{{\"start\":1,\"id\":\"{}\",\"text\":\"a\"}},{rest}\"c\"]", "n".repeat(size / 2))
    });
}

#[test]
fn records() {
    let long = |size: usize| "n ".repeat(size / 4);
    for kind in [SourceKind::Forum, SourceKind::Issues, SourceKind::Jsonl, SourceKind::Transcript] {
        let read = reader(kind, "a.json");
        for unit in ["[", "{", "{\"a\":", "\"", "\\", "1", "[1,", ",", " ", "{\"text\":\"a\"}\n"] {
            repeats("record", &read, unit);
        }
        grows("different fields", MEGABYTE, &read, &|size| {
            format!("{{\"text\":\"a\"{}}}", (0..size / 10).map(|n| format!(",\"k{n}\":1")).collect::<String>())
        });
        grows("a text of HTML", MEGABYTE, &read, &|size| {
            format!("{{\"title\":\"t\",\"body\":\"<p>{}\"}}", "<p>a".repeat(size / 4))
        });
    }
    let posts = |name: &str, size: usize| format!("\"{name}\":[{}\"c\"]", "\"a\",".repeat(size / 8));
    let forum = reader(SourceKind::Forum, "a.json");
    grows("a long title", MEGABYTE, &forum, &|size| {
        format!("{{\"title\":\"{}\",\"question\":\"q\",{}}}", long(size), posts("answers", size.min(300_000)))
    });
    grows("a long question", MEGABYTE, &forum, &|size| {
        format!("{{\"question\":\"{}\",{}}}", long(size), posts("answers", size.min(300_000)))
    });
    for field in ["url", "author", "id"] {
        grows(field, MEGABYTE, &forum, &|size| {
            format!(
                "{{\"question\":{{\"text\":\"{}\",\"{field}\":\"{}\"}},\"answers\":[]}}",
                "a b ".repeat(size / 8),
                "n".repeat(size / 2)
            )
        });
    }
    grows("a long number", MEGABYTE, &forum, &|size| {
        format!(
            "{{\"question\":{{\"text\":\"{}\",\"votes\":{}}},\"answers\":[]}}",
            "a b ".repeat(size / 8),
            "1".repeat(size / 2)
        )
    });
    let issues = reader(SourceKind::Issues, "a.json");
    grows("a long name of an attachment", MEGABYTE, &issues, &|size| {
        format!(
            "{{\"title\":\"t\",\"attachments\":[{{\"name\":\"{}\",\"text\":\"{}\"}}]}}",
            "n".repeat(size / 2),
            "a b ".repeat(size / 8)
        )
    });
    grows("a long title of many comments", MEGABYTE, &issues, &|size| {
        format!("{{\"title\":\"{}\",{}}}", long(size), posts("comments", size.min(300_000)))
    });
}

#[test]
fn files_of_records() {
    let dir = tempfile::tempdir().expect("a folder");
    let read = |name: &'static str| {
        let path = dir.path().join(name);
        let spec = SourceSpec {
            kind: SourceKind::Jsonl,
            location: path.to_str().expect("UTF-8").to_owned(),
            options: SourceOptions::defaults(SourceKind::Jsonl),
            allowed_paths: vec![dir.path().to_str().expect("UTF-8").to_owned()],
            allowed_hosts: Vec::new(),
            seen: None,
        };
        move |text: &str| {
            std::fs::write(&path, text).expect("a file");
            let _either = rag_ingest::list(&spec, &mut |_, _| Ok(()));
        }
    };
    for (name, units) in [
        ("a.jsonl", &["\n", "{}\n", "{\"text\":1}\n", "[", "{", "\"", " "][..]),
        ("a.json", &["[", "[1,", "[{},", "{\"items\":[", "[\"", "[\"\\\"", "[ "][..]),
        ("a.csv", &["a\n", "a,", "\"", "\"\n", "\"a\"\"", ",\n", "\n", "a\r"][..]),
        ("a.tsv", &["a\t", "\t\n", "\""][..]),
    ] {
        let read = read(name);
        for unit in units {
            grows(name, MEGABYTE / 4, &read, &|size| unit.repeat(size / unit.len()));
            grows(name, MEGABYTE / 4, &read, &|size| format!("text\n{}", unit.repeat(size / unit.len())));
        }
    }
}

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
