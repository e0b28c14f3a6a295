// SPDX-License-Identifier: PostgreSQL

//! Input that was made to hurt: it ends as a document, soon, with every invariant intact.
#![allow(clippy::expect_used, clippy::panic, reason = "a test may")]

mod invariants;

use invariants::{check, counters, options, parse};
use rag_core::document::Document;
use rag_core::source::{Chunking, SourceKind};
use rag_core::tokens::WordCounter;
use std::time::{Duration, Instant};

/// A build without optimisation gets a tenth, or it would take minutes.
const MILLION: usize = if cfg!(debug_assertions) { 100_000 } else { 1_000_000 };

fn markdown(text: &str) -> Document {
    let mut document = Document::default();
    for chunking in [Chunking::Heading, Chunking::Recursive, Chunking::None] {
        let options = options(SourceKind::Markdown, chunking, 200);
        for counter in counters(254) {
            let start = Instant::now();
            let parsed = parse(SourceKind::Markdown, &options, text.as_bytes(), &*counter);
            let took = start.elapsed();
            // Generous, since builds without optimisation and busy machines run this too; a quadratic step takes hours.
            assert!(took < Duration::from_secs(60), "{took:?}");
            check(&parsed, &options, &*counter, 0);
            if chunking == Chunking::Heading {
                document = parsed;
            }
        }
    }
    document
}

#[test]
fn nothing_is_no_chunk() {
    for text in ["", " ", "\n\n\t\n", "\u{FEFF}", "\u{3000}", "\r\r\n"] {
        assert!(markdown(text).chunks.is_empty(), "{text:?}");
    }
    assert_eq!(markdown("\u{FEFF}a").text, "a");
}

#[test]
fn deep_nesting() {
    for open in ["> ", "- ", "1. ", "> - ", "* > "] {
        markdown(&format!("{}x\n", open.repeat(10_000)));
    }
    let mut steps = String::new();
    for depth in 0..400 {
        steps.push_str(&format!("{}- item {depth} with some words\n", "  ".repeat(depth)));
    }
    markdown(&steps);
}

#[test]
fn a_million_marks() {
    for mark in ["[", "*", "_", "`", "|", "<", "!", "#", "\\", "[x](", "~~", "&", "*a", "**a*", "[^a", ". ", "。", "]("]
    {
        markdown(&mark.repeat(MILLION / mark.len()));
    }
}

#[test]
fn many_lines_of_marks() {
    for line in
        ["> \n", "- \n", "[x]: y\n", "```\n", "---\n", "# \n", "|\n", "<a>\n", "\u{a0}\n", "$ x\n\n", "a\n===\n"]
    {
        markdown(&format!("x\n\n{}", line.repeat(60_000 / line.len())));
    }
}

#[test]
fn a_word_of_ten_million_letters() {
    for word in ["a", "漢", "e\u{301}", "\u{301}"] {
        let text = format!("before {} after\n", word.repeat(10 * MILLION / word.len()));
        let options = options(SourceKind::Text, Chunking::Recursive, 200);
        let counter = WordCounter { window: 254 };
        let start = Instant::now();
        let document = parse(SourceKind::Text, &options, text.as_bytes(), &counter);
        assert!(start.elapsed() < Duration::from_secs(120), "{:?}", start.elapsed());
        assert!(document.chunks.iter().all(|c| c.content.len() <= 200 * 64));
        let joined: String = document.chunks.iter().map(|c| c.content.as_str()).collect();
        assert_eq!(joined.len(), text.len() - text.matches(char::is_whitespace).count() + joined.matches(' ').count());
    }
}

#[test]
fn a_huge_table_repeats_its_header() {
    let mut text = "# T\n\n| key | value |\n|:---|---:|\n".to_owned();
    (0..20_000).for_each(|i| text.push_str(&format!("| key {i} | the value of {i} |\n")));
    let document = markdown(&text);
    let (first, rest) = document.chunks.split_first().expect("chunks");
    assert!(first.context.is_none() && first.content.starts_with("# T\n\n| key | value |\n"));
    assert!(rest.iter().all(|c| c.context.as_deref() == Some("| key | value |\n|:---|---:|")));
    assert!(rest.iter().all(|c| c.content.starts_with("| key ") && c.content.ends_with('|')));
}

#[test]
fn nul_and_lone_cr() {
    let document = markdown("# a\0b\r\rc\0\r");
    assert_eq!((document.text.as_str(), document.repaired_bytes), ("# a\u{FFFD}b\n\nc\u{FFFD}\n", 2));
    assert_eq!(document.chunks[0].heading_path, ["a\u{FFFD}b"]);
}

#[test]
fn unclosed_things() {
    let fence = markdown("a\n\n```rust\n# no heading\n\nx\n");
    assert_eq!((fence.chunks.len(), fence.title), (1, None));
    let front = markdown("---\ntitle: x\n\n# H\n");
    assert_eq!((front.title.as_deref(), front.metadata.len()), (Some("H"), 0));
    markdown("<!-- never closed\n\n# x\n");
    markdown("<script>\n\n# x\n");
}

#[test]
fn a_heading_in_a_quote_or_list_opens_no_section() {
    let document = markdown("# A\n\n> ## Q\n> q\n\n- # L\n  l\n\nend\n");
    assert_eq!(document.chunks.len(), 1);
    assert_eq!(document.chunks[0].heading_path, ["A"]);
}
