// SPDX-License-Identifier: PostgreSQL

//! Markdown by headings, and as a post by paragraphs.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rag_core::source::SourceKind;
use rag_fuzz::Reading;

fuzz_target!(|input: &[u8]| {
    let reading = Reading::of(input);
    reading.inline(SourceKind::Markdown, "a.md", input);
    reading.inline(SourceKind::Blog, "a.md", input);
});
