// SPDX-License-Identifier: PostgreSQL

//! Feeds in XML and in JSON, listed and read; the first byte chooses which of the two it is called.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rag_core::source::SourceKind;
use rag_fuzz::{Reading, choice};

/// In the order of scripts/fuzz.sh.
const NAMES: &[&str] = &["a.xml", "a.json"];

fuzz_target!(|input: &[u8]| {
    if let Some((name, content)) = choice(input, NAMES) {
        Reading::of(input).file(SourceKind::Blog, name, content);
    }
});
