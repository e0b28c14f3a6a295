// SPDX-License-Identifier: PostgreSQL

//! Real and nasty files: every invariant holds, and quickly.
#![allow(clippy::expect_used, clippy::panic, reason = "a test may")]

mod invariants;

use invariants::{check, counters, data, options, parse};
use rag_core::source::{Chunking, SourceKind};
use rag_core::tokens::WordCounter;
use std::path::PathBuf;
use std::time::{Duration, Instant};

fn files() -> Vec<PathBuf> {
    let Some(data) = data() else {
        return Vec::new();
    };
    let in_folder = |folder: &str| {
        let entries = std::fs::read_dir(data.join(folder)).expect("folder");
        entries.map(|e| e.expect("entry").path()).collect::<Vec<_>>()
    };
    let mut files = in_folder("md");
    files.extend(in_folder("nasty").into_iter().filter(|p| p.extension().is_some_and(|e| e == "md")));
    files.sort();
    assert!(files.len() >= 27, "{} files", files.len());
    files
}

/// Where front matter ends, found without the crate: these files have it as GitHub does.
fn body_of(text: &str) -> usize {
    let Some(rest) = text.strip_prefix("---\n") else {
        return 0;
    };
    rest.find("\n---\n").map_or(0, |at| at + 4 + "\n---\n".len())
}

#[test]
fn every_file_is_tiled() {
    for file in files() {
        let bytes = std::fs::read(&file).expect("readable");
        for chunking in [Chunking::Heading, Chunking::Recursive, Chunking::None] {
            for chunk_tokens in if cfg!(debug_assertions) { &[200][..] } else { &[16, 64, 200] } {
                let options = options(SourceKind::Markdown, chunking, *chunk_tokens);
                for counter in counters(254) {
                    let document = parse(SourceKind::Markdown, &options, &bytes, &*counter);
                    check(&document, &options, &*counter, body_of(&document.text));
                }
            }
        }
    }
}

#[test]
fn a_crlf_twin_has_the_same_chunks() {
    let Some(data) = data() else {
        return;
    };
    let counter = WordCounter { window: 254 };
    let options = options(SourceKind::Markdown, Chunking::Heading, 200);
    let read = |name: &str| {
        let bytes = std::fs::read(data.join(name)).expect("readable");
        (parse(SourceKind::Markdown, &options, &bytes, &counter), bytes)
    };
    let (twin, bytes) = read("md/pgvector__README.crlf.md");
    let (plain, _) = read("md/pgvector__README.md");
    assert!(bytes.contains(&b'\r'));
    assert_eq!(twin.chunks, plain.chunks);
    assert!(plain.chunks.len() > 90);
}

#[test]
fn the_text_after_a_huge_fence_is_found() {
    let Some(data) = data() else {
        return;
    };
    let bytes = std::fs::read(data.join("nasty/text-huge-fence.md")).expect("readable");
    let options = options(SourceKind::Markdown, Chunking::Heading, 200);
    for counter in counters(254) {
        let document = parse(SourceKind::Markdown, &options, &bytes, &*counter);
        assert!(document.chunks.last().expect("chunks").content.contains("After the fence"));
    }
}

#[test]
fn all_files_are_chunked_in_two_seconds() {
    let files: Vec<Vec<u8>> = files().iter().map(|f| std::fs::read(f).expect("readable")).collect();
    let counter = WordCounter { window: 254 };
    let options = options(SourceKind::Markdown, Chunking::Heading, 200);
    let start = Instant::now();
    let chunks: usize = files.iter().map(|f| parse(SourceKind::Markdown, &options, f, &counter).chunks.len()).sum();
    let took = start.elapsed();
    eprintln!("{} files, {chunks} chunks, {took:?}", files.len());
    // A build without optimisation is some ten times slower.
    let allowed = if cfg!(debug_assertions) { 30 } else { 2 };
    assert!(took < Duration::from_secs(allowed), "{took:?}");
}
