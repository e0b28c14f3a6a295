// SPDX-License-Identifier: PostgreSQL

//! What holds for every kind: content that was read is read again with the same keys, and no chunk is larger than the window.
//!
//! `crates/engine/tests/window.rs` asks the same with the tokenizer of a real model.
#![allow(clippy::expect_used, clippy::panic, reason = "a test may")]

mod invariants;
mod kinds;

use invariants::{check, counters};
use kinds::made;
use proptest::prelude::*;
use rag_core::document::Document;
use rag_core::provenance::{ContentHash, chunk_key};
use rag_core::source::{SourceKind, SourceOptions};
use rag_core::tokens::TokenCounter;
use std::collections::HashMap;

fn read(made: &kinds::Made, options: &SourceOptions, counter: &dyn TokenCounter) -> Option<Document> {
    let none = serde_json::Map::new();
    rag_ingest::parse_inline(made.kind, options, &made.name, &made.bytes, &none, counter).ok()
}

/// The keys of a document's chunks, as they are given when it is stored.
fn keys(document: &Document) -> Vec<String> {
    let mut seen: HashMap<ContentHash, u32> = HashMap::new();
    let key = |chunk: &rag_core::document::Chunk| {
        let hash = ContentHash::of(&chunk.content);
        let occurrence = seen.entry(hash).or_default();
        *occurrence += 1;
        chunk_key("source", &document.uri, &hash, *occurrence - 1).to_string()
    };
    document.chunks.iter().map(key).collect()
}

fn config() -> ProptestConfig {
    let cases = if cfg!(debug_assertions) { 150 } else { 1500 };
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn again_means_the_same_keys_and_nothing_exceeds_the_window(made in made(), tokens in 16_u32..200, window in 24_usize..300) {
        let options = SourceOptions { chunk_tokens: tokens, overlap: 0, ..SourceOptions::defaults(made.kind) };
        for counter in counters(window) {
            let Some(document) = read(&made, &options, &*counter) else { continue };
            check(&document, &options, &*counter, 0);
            let again = read(&made, &options, &*counter).expect("it was read before");
            let keys = keys(&document);
            prop_assert_eq!(&keys, &self::keys(&again));
            prop_assert_eq!(&document, &again);
            // A key stands for one chunk.
            prop_assert_eq!(keys.iter().collect::<std::collections::HashSet<_>>().len(), keys.len());
        }
    }
}

#[test]
fn every_kind_is_made_and_read() {
    let text: Vec<String> = (0..8).map(|n| format!("Paragraph {n} has a few words of its own.")).collect();
    for kind in SourceKind::ALL {
        for which in 0..14 {
            let made = kinds::make(kind, which, &text);
            let counter = &counters(254)[0];
            let document = read(&made, &SourceOptions::defaults(kind), &**counter);
            let document = document.unwrap_or_else(|| panic!("{} {which} is refused", kind.name()));
            assert!(!document.chunks.is_empty(), "{} {which} has no chunks", kind.name());
        }
    }
}
