// SPDX-License-Identifier: PostgreSQL

//! What every fuzz target asserts of rag_ingest: whatever the bytes, they end as a document that keeps every promise, or
//! as a failure in words.
//!
//! A target only says what its input is. All go in by the public functions of rag_ingest, and what comes out is checked by
//! the invariants of that crate's own tests. How large chunks are, and by which counter, follows from the length of the
//! input, so that a seed is a file as it is. Must not know how anything is parsed.

#[path = "../../crates/ingest/tests/invariants/mod.rs"]
mod invariants;

use rag_core::document::Document;
use rag_core::error::{Error, Kind};
use rag_core::source::{Limits, SourceKind, SourceOptions, SourceSpec};
use rag_core::tokens::{TokenCounter, WordCounter};
use serde_json::Map;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

/// Megabytes that an archive may unpack to; the inputs are small.
const MAX_TOTAL_BYTES: u64 = 16 << 20;

/// How one input is read.
pub struct Reading {
    chunk_tokens: u32,
    counter: Box<dyn TokenCounter>,
}

impl Reading {
    /// The way that the length of an input decides on.
    pub fn of(input: &[u8]) -> Self {
        let (chunk_tokens, counter): (u32, Box<dyn TokenCounter>) = match input.len() % 4 {
            0 => (200, Box::new(WordCounter { window: 254 })),
            1 => (16, Box::new(WordCounter { window: 64 })),
            2 => (40, Box::new(invariants::ByteCounter { window: 40 })),
            _ => (64, Box::new(invariants::ByteCounter { window: 254 })),
        };
        Self { chunk_tokens, counter }
    }

    fn options(&self, kind: SourceKind) -> SourceOptions {
        let limits = Limits {
            max_document_bytes: 1 << 20,
            max_total_bytes: MAX_TOTAL_BYTES,
            max_pages: 200,
            ..Limits::default()
        };
        let options = SourceOptions::defaults(kind);
        // An overlap is below half of a chunk, as options must have it.
        let overlap = options.overlap.min(self.chunk_tokens / 2 - 1);
        SourceOptions { chunk_tokens: self.chunk_tokens, overlap, limits, ..options }
    }

    /// Parses content that is given with a name.
    pub fn inline(&self, kind: SourceKind, name: &str, content: &[u8]) {
        let options = self.options(kind);
        let read = || rag_ingest::parse_inline(kind, &options, name, content, &Map::new(), &*self.counter);
        let first = read();
        match &first {
            Ok(document) => self.check(document, &options),
            Err(failure) => sound(&failure.error),
        }
        if content.len() % 16 < 4 {
            assert!(first == read(), "the same bytes give another document");
        }
    }

    /// Lists and reads a file of this content, as a source.
    pub fn file(&self, kind: SourceKind, name: &str, content: &[u8]) {
        // What was read last stays open, and is known by its name.
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let folder =
            if Path::new("/dev/shm").is_dir() { tempfile::tempdir_in("/dev/shm") } else { tempfile::tempdir() };
        let folder = folder.expect("a folder for the input");
        let location = folder.path().join(format!("{number}-{name}"));
        std::fs::write(&location, content).expect("a file for the input");
        let spec = SourceSpec {
            kind,
            location: location.to_str().expect("UTF-8").to_owned(),
            options: self.options(kind),
            allowed_paths: vec![folder.path().to_str().expect("UTF-8").to_owned()],
            allowed_hosts: Vec::new(),
            seen: None,
        };
        let (mut items, mut failures) = (Vec::new(), Vec::new());
        let listed = rag_ingest::list(&spec, &mut |i, f| {
            items.extend(i);
            failures.extend(f);
            Ok(())
        });
        failures.iter().for_each(|failure| sound(&failure.error));
        if let Err(error) = listed {
            return sound(&error);
        }
        for item in &items {
            match rag_ingest::read(&spec, item, &*self.counter) {
                Ok(document) => {
                    assert_eq!(document.content_sha256, item.content_sha256, "{}", item.uri);
                    self.check(&document, &spec.options);
                }
                Err(failure) => sound(&failure.error),
            }
        }
    }

    fn check(&self, document: &Document, options: &SourceOptions) {
        // Front matter is in no chunk, and where it ends only its parser knows.
        let front = document.text.starts_with("---");
        let first = document.chunks.first().map_or(document.text.len(), |chunk| chunk.span.byte_start as usize);
        invariants::check(document, options, &*self.counter, if front { first } else { 0 });
    }
}

/// An error is about the content and says so; anything else means that the reader is wrong. What is forbidden is a path in
/// an archive that leads out of it.
fn sound(error: &Error) {
    let about_content =
        [Kind::BadContent, Kind::LimitExceeded, Kind::Unsupported, Kind::InvalidArgument, Kind::Forbidden];
    assert!(about_content.contains(&error.kind), "{error:?}");
    assert!(!error.message.is_empty());
}

/// What the first byte of an input chooses, and the rest of it.
pub fn choice<'i, T: Copy>(input: &'i [u8], among: &[T]) -> Option<(T, &'i [u8])> {
    let (first, rest) = input.split_first()?;
    // `a` is the first, as in scripts/fuzz.sh.
    Some((among[first.wrapping_sub(b'a') as usize % among.len()], rest))
}
