// SPDX-License-Identifier: PostgreSQL

//! Properties of chunking over generated text.
#![allow(clippy::expect_used, clippy::panic, reason = "a test may")]

mod invariants;

use invariants::{check, counters, options, parse};
use proptest::prelude::*;
use rag_core::source::{Chunking, SourceKind};

/// Lines that mean something in Markdown, and text of many scripts.
fn markdown() -> impl Strategy<Value = String> {
    let word = prop_oneof![
        6 => "[a-zA-Z]{1,9}",
        1 => "[0-9]{1,6}",
        1 => "[漢字日本語中文]{1,12}",
        1 => "[äößéñ]{1,5}",
        1 => Just("👩‍👩‍👧‍👦".to_owned()),
        1 => Just("e\u{301}\u{302}".to_owned()),
        1 => "[.,;!?*_`~|<>\\[\\]()#=-]{1,4}",
        1 => Just("。".to_owned()),
        1 => "[a-z]{60,400}",
    ];
    let line = prop::collection::vec(word, 0..14).prop_map(|words| words.join(" "));
    let marker = prop_oneof![
        8 => Just(""), 2 => Just("# "), 2 => Just("## "), 1 => Just("### "), 1 => Just("###### "), 2 => Just("- "),
        2 => Just("  - "), 1 => Just("1. "), 1 => Just("> "), 1 => Just("> - "), 1 => Just("    "), 1 => Just("| a | b |\n|---|---|\n| "),
        1 => Just("| "), 1 => Just("```rust\n"), 1 => Just("```\n"), 1 => Just("~~~\n"), 1 => Just("---\n"), 1 => Just("===\n"),
        1 => Just("<div>\n"), 1 => Just("[^1]: "), 1 => Just("[x]: /url\n"), 1 => Just("\t"), 1 => Just("<!-- "), 1 => Just("$$"),
    ];
    let end = prop_oneof![4 => Just("\n"), 3 => Just("\n\n"), 1 => Just("\n\n\n"), 1 => Just(""), 1 => Just(" ")];
    // Front matter has its own tests; a first line of dashes would make the oracle ambiguous.
    prop::collection::vec((marker, line, end), 0..40)
        .prop_map(|parts| parts.into_iter().map(|(m, l, e)| format!("{m}{l}{e}")).collect::<String>())
        .prop_map(|text| format!("x\n\n{text}"))
}

fn chunkings() -> impl Strategy<Value = Chunking> {
    prop_oneof![3 => Just(Chunking::Heading), 2 => Just(Chunking::Recursive), 1 => Just(Chunking::None)]
}

fn config() -> ProptestConfig {
    let cases = if cfg!(debug_assertions) { 80 } else { 500 };
    // A failure prints its input, which belongs in a test of its own.
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn chunks_tile_any_text(text in markdown(), chunking in chunkings(), tokens in 16_u32..120, window in 8_usize..300) {
        let options = options(SourceKind::Markdown, chunking, tokens);
        for counter in counters(window) {
            let document = parse(SourceKind::Markdown, &options, text.as_bytes(), &*counter);
            check(&document, &options, &*counter, 0);
        }
    }

    #[test]
    fn overlap_only_repeats(text in markdown(), tokens in 16_u32..120, overlap in 1_u32..60) {
        prop_assume!(overlap * 2 < tokens);
        let mut options = options(SourceKind::Text, Chunking::Recursive, tokens);
        options.overlap = overlap;
        for counter in counters(512) {
            let document = parse(SourceKind::Text, &options, text.as_bytes(), &*counter);
            check(&document, &options, &*counter, 0);
            for pair in document.chunks.windows(2) {
                if pair[1].span.byte_start < pair[0].span.byte_end {
                    let shared = &document.text[pair[1].span.byte_start as usize..pair[0].span.byte_end as usize];
                    prop_assert!(counter.count(shared) <= overlap as usize + 1, "{shared:?}");
                }
            }
        }
    }

    #[test]
    fn line_ends_make_no_difference(text in markdown(), chunking in chunkings()) {
        let options = options(SourceKind::Markdown, chunking, 40);
        for counter in counters(256) {
            let mut lf = parse(SourceKind::Markdown, &options, text.as_bytes(), &*counter);
            for twin in [text.replace('\n', "\r\n"), text.replace('\n', "\r"), format!("\u{FEFF}{text}")] {
                let twin = parse(SourceKind::Markdown, &options, twin.as_bytes(), &*counter);
                lf.content_sha256 = twin.content_sha256;
                prop_assert_eq!(&lf, &twin);
            }
        }
    }

    #[test]
    fn any_bytes_are_a_document(bytes in prop::collection::vec(any::<u8>(), 0..2000), chunking in chunkings()) {
        for kind in [SourceKind::Markdown, SourceKind::Text] {
            let options = options(kind, chunking, 32);
            for counter in counters(64) {
                let document = parse(kind, &options, &bytes, &*counter);
                // Random bytes do not make front matter.
                check(&document, &options, &*counter, 0);
            }
        }
        rag_ingest::detect_kind("x", &bytes);
    }

    #[test]
    fn any_characters_are_a_document(text in "\\PC{0,600}", chunking in chunkings()) {
        let options = options(SourceKind::Markdown, chunking, 16);
        for counter in counters(40) {
            let document = parse(SourceKind::Markdown, &options, text.as_bytes(), &*counter);
            check(&document, &options, &*counter, 0);
        }
    }

    #[test]
    fn the_same_bytes_give_the_same_document(text in markdown()) {
        let options = options(SourceKind::Markdown, Chunking::Heading, 32);
        for counter in counters(128) {
            let once = parse(SourceKind::Markdown, &options, text.as_bytes(), &*counter);
            prop_assert_eq!(once, parse(SourceKind::Markdown, &options, text.as_bytes(), &*counter));
        }
    }
}
