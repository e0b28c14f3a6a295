// SPDX-License-Identifier: PostgreSQL

//! Pages, all of each and its article.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rag_core::source::SourceKind;
use rag_fuzz::Reading;

fuzz_target!(|input: &[u8]| {
    let reading = Reading::of(input);
    reading.inline(SourceKind::Html, "a.html", input);
    reading.inline(SourceKind::Article, "a.html", input);
});
