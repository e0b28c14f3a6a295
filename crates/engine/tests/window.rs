// SPDX-License-Identifier: PostgreSQL

//! No chunk of any kind is larger than the window of a real model, by that model's own tokenizer.
//!
//! Skipped, with a message, where the model is not installed.
// Clippy's leave for tests does not reach the functions that tests share.
#![allow(clippy::expect_used, clippy::panic)]

#[path = "../../ingest/tests/invariants/mod.rs"]
mod invariants;
#[path = "../../ingest/tests/kinds/mod.rs"]
mod kinds;
mod support;

use proptest::prelude::*;
use rag_core::document::Document;
use rag_core::source::{SourceKind, SourceOptions};
use rag_core::tokens::TokenCounter;
use rag_model::{Manifest, Tokenizer};
use std::sync::OnceLock;

const MODEL: &str = "all-MiniLM-L6-v2";

fn tokenizer() -> Option<&'static Tokenizer> {
    static TOKENIZER: OnceLock<Option<Tokenizer>> = OnceLock::new();
    let open = || {
        support::model(MODEL)?;
        let manifest = Manifest::read(&support::models(), MODEL, MODEL).expect("a manifest");
        Some(Tokenizer::open(&manifest.tokenizer, manifest.spec.max_tokens).expect("a tokenizer"))
    };
    TOKENIZER.get_or_init(open).as_ref()
}

fn read(made: &kinds::Made, options: &SourceOptions, tokenizer: &Tokenizer) -> Option<Document> {
    let none = serde_json::Map::new();
    rag_ingest::parse_inline(made.kind, options, &made.name, &made.bytes, &none, tokenizer).ok()
}

/// Whether everything that is embedded of a document fits, and every count is right.
fn fits(document: &Document, options: &SourceOptions, tokenizer: &Tokenizer) {
    for chunk in &document.chunks {
        // Counted word by word and tokenised as a whole: the same.
        let whole = tokenizer.encode(&chunk.content).expect("tokens").tokens as usize - tokenizer.specials();
        assert_eq!(
            (chunk.token_count as usize, tokenizer.count(&chunk.content)),
            (whole, whole),
            "{:?}",
            chunk.content
        );
        let text = invariants::embedded(document, chunk, options);
        let encoded = tokenizer.encode(&text).expect("tokens");
        assert!(!encoded.truncated, "{} tokens: {text:?}", encoded.tokens);
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: if cfg!(debug_assertions) { 60 } else { 600 }, failure_persistence: None, ..ProptestConfig::default()
    })]

    #[test]
    fn nothing_exceeds_the_window_and_again_means_the_same(made in kinds::made(), tokens in 16_u32..400) {
        if let Some(tokenizer) = tokenizer() {
            let options = SourceOptions { chunk_tokens: tokens, overlap: 0, ..SourceOptions::defaults(made.kind) };
            if let Some(document) = read(&made, &options, tokenizer) {
                fits(&document, &options, tokenizer);
                prop_assert_eq!(Some(document), read(&made, &options, tokenizer));
            }
        }
    }
}

#[test]
fn real_sources_fit_too() {
    let Some(tokenizer) = tokenizer() else { return };
    for (name, kind) in [
        ("docs/ingest.md", SourceKind::Markdown),
        ("CHANGELOG.md", SourceKind::Markdown),
        ("crates/ingest/src/chunk/cut.rs", SourceKind::Code),
        ("scripts/export_onnx.py", SourceKind::Code),
        ("sql/schema/10_tables.sql", SourceKind::Code),
        ("Cargo.toml", SourceKind::Config),
        ("tests/fixtures/html/handbook.html", SourceKind::Html),
        ("tests/fixtures/pdf/book.pdf", SourceKind::Pdf),
        ("tests/fixtures/docx/tides.docx", SourceKind::Docx),
        ("tests/fixtures/epub/quay.epub", SourceKind::Epub),
    ] {
        let bytes = std::fs::read(support::root().join(name)).expect(name);
        let made = kinds::Made { kind, name: name.to_owned(), bytes };
        let options = SourceOptions::defaults(kind);
        let document = read(&made, &options, tokenizer).expect(name);
        assert!(!document.chunks.is_empty(), "{name}");
        fits(&document, &options, tokenizer);
    }
}
