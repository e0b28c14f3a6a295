// SPDX-License-Identifier: PostgreSQL

//! Configuration; the first byte chooses the syntax.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rag_core::source::SourceKind;
use rag_fuzz::{Reading, choice};

/// In the order of scripts/fuzz.sh.
const NAMES: &[&str] = &["a.yaml", "a.toml", "a.json", "a.ini", "a.properties", "a"];

fuzz_target!(|input: &[u8]| {
    if let Some((name, text)) = choice(input, NAMES) {
        Reading::of(input).inline(SourceKind::Config, name, text);
    }
});
