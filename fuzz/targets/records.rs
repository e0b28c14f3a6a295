// SPDX-License-Identifier: PostgreSQL

//! Files of records, listed and read; the first byte chooses their kind and layout.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rag_core::source::SourceKind;
use rag_fuzz::{Reading, choice};

/// In the order of scripts/fuzz.sh.
const FILES: &[(SourceKind, &str)] = &[
    (SourceKind::Jsonl, "a.jsonl"),
    (SourceKind::Jsonl, "a.json"),
    (SourceKind::Jsonl, "a.csv"),
    (SourceKind::Jsonl, "a.tsv"),
    (SourceKind::Forum, "a.json"),
    (SourceKind::Issues, "a.json"),
    (SourceKind::Transcript, "a.jsonl"),
];

fuzz_target!(|input: &[u8]| {
    if let Some(((kind, name), content)) = choice(input, FILES) {
        Reading::of(input).file(kind, name, content);
    }
});
