// SPDX-License-Identifier: PostgreSQL

//! rag_ingest: bytes in, documents and chunks out.
//!
//! ```text
//!  location ── source (the only place with files, hosts and a clock) ──▶ bytes, and where they came from
//!  bytes ── format (what they are) ── parse (text, blocks, headings, parts; never chunks)
//!        ── chunk (a token budget; never bytes) ──▶ Document
//! ```
//!
//! Everything here eats hostile input: whatever the bytes, the result is a document or a [`Failure`] that names it, and
//! the time it takes grows with the size and not with its square. Must not: know a database, a model or a
//! thread. Token counts come through [`TokenCounter`].
#![deny(missing_docs)]

mod chunk;
mod document;
mod format;
mod language;
mod parse;
mod source;
mod text;

pub use source::Cloned;

use format::Format;
use rag_core::document::Document;
use rag_core::error::{Kind, Result};
use rag_core::source::{Content, Failure, Item, Origin, SourceKind, SourceOptions, SourceSpec, Workspace};
use rag_core::tokens::TokenCounter;
use serde_json::{Map, Value};
use std::path::Path;

/// Lists what a source holds, in a fixed order, in pages of at most 1000 items and failures.
///
/// Returns how many entries were looked at, whether they are documents or not: files of the folders that were entered,
/// members of archives, records, files of a commit.
///
/// Fails as a whole when the location is missing or not allowed, when an option cannot be used, when there are more
/// documents than the limit, or when `emit` fails; whatever concerns one document is a [`Failure`] in a page.
pub fn list(spec: &SourceSpec, emit: &mut dyn FnMut(Vec<Item>, Vec<Failure>) -> Result<()>) -> Result<u64> {
    source::list(spec, None, emit)
}

/// [`list`], for the clone of a repository.
pub fn list_clone(
    spec: &SourceSpec,
    workspace: &Workspace,
    emit: &mut dyn FnMut(Vec<Item>, Vec<Failure>) -> Result<()>,
) -> Result<u64> {
    source::list(spec, Some(workspace), emit)
}

/// Whether a source is a repository that must be cloned before it can be listed.
pub fn is_remote(spec: &SourceSpec) -> bool {
    source::is_remote(spec)
}

/// Whether the repository of a source may be cloned, as far as its location says by itself.
pub fn check_remote(spec: &SourceSpec) -> Result<()> {
    source::check_remote(spec)
}

/// Clones the repository of a source into an empty folder: without a working tree, and with no more history than it takes to have
/// the commit that is wanted. Writes nothing elsewhere and runs nothing.
///
/// The commit is `commit`, or what the source's options name. Nothing is downloaded when it turns out to be one of those that are
/// `known`.
pub fn clone_remote(spec: &SourceSpec, folder: &Path, commit: Option<&str>, known: &[String]) -> Result<Cloned> {
    source::clone_remote(spec, folder, commit, known)
}

/// The bytes of one listed item, as they are now.
///
/// A file that changed since it was listed is read as it is now, and the document carries the hash of what was read; a
/// record or a member of an archive whose bytes changed is a failure, because its place means nothing any more. Looks
/// into nothing but archives: this is what a process without parsers may do. The archive that was read last stays open,
/// so that reading its members in the order of the listing unpacks it once.
pub fn fetch(spec: &SourceSpec, item: &Item) -> Result<Content> {
    source::read(spec, None, item)
}

/// [`fetch`], from the clone of a repository.
pub fn fetch_clone(spec: &SourceSpec, workspace: &Workspace, item: &Item) -> Result<Content> {
    source::read(spec, Some(workspace), item)
}

/// Parses and chunks the content that [`fetch`] returned for the item `uri`. Opens nothing.
pub fn parse_listed(
    kind: SourceKind,
    options: &SourceOptions,
    uri: &str,
    content: &Content,
    counter: &dyn TokenCounter,
) -> std::result::Result<Document, Failure> {
    let origin = &content.origin;
    let name = origin.path.as_deref().unwrap_or(uri);
    let format = Format::of_content(kind, name, content);
    let build = |format| document::build(format, options, uri, &content.bytes, origin, &origin.metadata, counter);
    let built = match build(format) {
        // Among files of every sort, markup without text is a template, which somebody may look for by what is in it.
        Err(error) if format == Format::Html && kind.is_of_many_formats() && error.kind == Kind::BadContent => {
            build(Format::Text)
        }
        built => built,
    };
    let built = built.map(|document| within(kind, document, name));
    built.map(|document| with_origin(document, origin)).map_err(|error| Failure { uri: uri.to_owned(), error })
}

/// A document with what its place among files of every sort says of it.
fn within(kind: SourceKind, document: Document, path: &str) -> Document {
    if kind.is_of_many_formats() { document::with_role(document, path) } else { document }
}

/// Says of a document where its bytes came from. Whoever parsed it does not know, and is not to be asked.
pub fn with_origin(mut document: Document, origin: &Origin) -> Document {
    document.path.clone_from(&origin.path);
    document.version.clone_from(&origin.version);
    document
}

/// [`fetch`] and [`parse_listed`] in one process.
pub fn read(spec: &SourceSpec, item: &Item, counter: &dyn TokenCounter) -> std::result::Result<Document, Failure> {
    let content = fetch(spec, item).map_err(|error| Failure { uri: item.uri.clone(), error })?;
    parse_listed(spec.kind, &spec.options, &item.uri, &content, counter)
}

/// Parses and chunks content that was given instead of read.
///
/// For a kind of records (`jsonl`, `forum`, `issues`) the content is one JSON object. `metadata` overrides what the content says, its `title`,
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
        let format = Format::of_item(kind, uri, content);
        let built = document::build(format, options, uri, content, &Origin::default(), metadata, counter)?;
        Ok(within(kind, built, uri))
    });
    built.map_err(|error| Failure { uri: uri.to_owned(), error })
}

/// The kind of source that some content alone would be, for a command line that was given a file and no kind.
pub fn detect_kind(path_or_uri: &str, content: &[u8]) -> SourceKind {
    // A name that a source of this kind would be read as a feed by, and what is in one: an Atom feed may look like a page.
    if rag_core::source::is_feed(SourceKind::Blog, path_or_uri) && source::is_feed(content) {
        return SourceKind::Blog;
    }
    if source::is_rows(path_or_uri) {
        return SourceKind::Jsonl;
    }
    match Format::detect(path_or_uri, content) {
        // Packages that are archives as well.
        format @ (Format::Docx | Format::Epub) => format.kind(),
        _ if Format::of_name(path_or_uri).is_none() && source::is_archive(path_or_uri, content) => SourceKind::Zip,
        format => format.kind(),
    }
}
