// SPDX-License-Identifier: PostgreSQL

//! rag_ingest: bytes in, documents and chunks out.
//!
//! ```text
//!  location ── source (the only place with a filesystem) ──▶ bytes ── text::repair ──▶ text
//!  text ── parse (blocks, headings, front matter; never chunks) ── chunk (a token budget; never bytes) ──▶ Document
//! ```
//!
//! Everything here eats hostile input: whatever the bytes, the result is a document or a [`Failure`] that names it, and
//! the time it takes grows with the size and not with its square. Must not: know a database, a model, a thread or a
//! clock. Token counts come through [`TokenCounter`].
#![deny(missing_docs)]

mod chunk;
mod document;
mod format;
mod parse;
mod source;
mod text;

use format::Format;
use rag_core::document::Document;
use rag_core::error::Result;
use rag_core::source::{Failure, Item, SourceKind, SourceOptions, SourceSpec};
use rag_core::tokens::TokenCounter;
use serde_json::{Map, Value};

/// Lists what a source holds, in a fixed order, in pages of at most 1000 items and failures.
///
/// Fails as a whole when the location is missing or not allowed, when an option cannot be used, when there are more
/// documents than the limit, or when `emit` fails; whatever concerns one document is a [`Failure`] in a page.
pub fn list(spec: &SourceSpec, emit: &mut dyn FnMut(Vec<Item>, Vec<Failure>) -> Result<()>) -> Result<()> {
    source::list(spec, emit)
}

/// The bytes of one listed item, as they are now.
///
/// A file that changed since it was listed is read as it is now, and the document carries the hash of what was read; a
/// record or a member of an archive whose bytes changed is a failure, because its place means nothing any more. Looks
/// into nothing but archives: this is what a process without parsers may do. The archive that was read last stays open,
/// so that reading its members in the order of the listing unpacks it once.
pub fn fetch(spec: &SourceSpec, item: &Item) -> Result<Vec<u8>> {
    source::read(spec, item)
}

/// Parses and chunks the bytes that [`fetch`] returned for the item `uri`. Opens nothing.
pub fn parse_listed(
    kind: SourceKind,
    options: &SourceOptions,
    uri: &str,
    content: &[u8],
    counter: &dyn TokenCounter,
) -> std::result::Result<Document, Failure> {
    // The URI of a file is its path: relative to a folder, or the name of a single file. A member's begins with the archive.
    let path = match kind {
        SourceKind::Jsonl => None,
        SourceKind::Zip => Some(uri.split_once(source::INSIDE).map_or(uri, |(_, path)| path).to_owned()),
        SourceKind::Text | SourceKind::Markdown => Some(uri.to_owned()),
    };
    let built = document::build(Format::of_item(kind, uri, content), options, uri, path, content, &Map::new(), counter);
    built.map_err(|error| Failure { uri: uri.to_owned(), error })
}

/// [`fetch`] and [`parse_listed`] in one process.
pub fn read(spec: &SourceSpec, item: &Item, counter: &dyn TokenCounter) -> std::result::Result<Document, Failure> {
    let content = fetch(spec, item).map_err(|error| Failure { uri: item.uri.clone(), error })?;
    parse_listed(spec.kind, &spec.options, &item.uri, &content, counter)
}

/// Parses and chunks content that was given instead of read.
///
/// For kind `jsonl` the content is one JSON object. `metadata` overrides what the content says, its `title`,
/// `language` and `published_at` included.
pub fn parse_inline(
    kind: SourceKind,
    options: &SourceOptions,
    uri: &str,
    content: &[u8],
    metadata: &Map<String, Value>,
    counter: &dyn TokenCounter,
) -> std::result::Result<Document, Failure> {
    let built = source::within_limit(content.len() as u64, &options.limits).and_then(|()| {
        document::build(Format::of_item(kind, uri, content), options, uri, None, content, metadata, counter)
    });
    built.map_err(|error| Failure { uri: uri.to_owned(), error })
}

/// The kind of source that some content alone would be, for a command line that was given a file and no kind.
pub fn detect_kind(path_or_uri: &str, content: &[u8]) -> SourceKind {
    match Format::of_name(path_or_uri) {
        None if source::is_archive(path_or_uri, content) => SourceKind::Zip,
        _ => Format::detect(path_or_uri, content).kind(),
    }
}
