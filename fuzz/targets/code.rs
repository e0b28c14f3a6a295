// SPDX-License-Identifier: PostgreSQL

//! Source code; the first byte chooses the language.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rag_core::source::SourceKind;
use rag_fuzz::{Reading, choice};

/// In the order of scripts/fuzz.sh.
const NAMES: &[&str] = &[
    "a.rs", "a.py", "a.ts", "a.tsx", "a.js", "a.go", "a.java", "a.c", "a.h", "a.hpp", "a.cs", "a.rb", "a.php", "a.sh",
    "a.sql",
];

fuzz_target!(|input: &[u8]| {
    if let Some((name, text)) = choice(input, NAMES) {
        Reading::of(input).inline(SourceKind::Code, name, text);
    }
});
