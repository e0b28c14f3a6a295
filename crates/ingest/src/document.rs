// SPDX-License-Identifier: PostgreSQL

//! From bytes to a chunked document: repair, parse, say what the content says about itself, chunk.
//!
//! Owns the order of these steps and nothing of what they do. The hash is of the acquired bytes, so that a source that
//! did not change is recognised without parsing; everything else refers to the repaired text.

use crate::chunk;
use crate::parse::{Structure, markdown, metadata, plain, record};
use crate::text;
use rag_core::document::Document;
use rag_core::error::Result;
use rag_core::provenance::ContentHash;
use rag_core::source::{Chunking, SourceKind, SourceOptions};
use rag_core::tokens::TokenCounter;
use serde_json::{Map, Value};

/// A document of a text or Markdown file.
pub fn of_text(
    kind: SourceKind,
    options: &SourceOptions,
    uri: &str,
    path: Option<String>,
    bytes: &[u8],
    given: &Map<String, Value>,
    counter: &dyn TokenCounter,
) -> Result<Document> {
    let repaired = text::repair(bytes);
    let mut document = Document {
        uri: uri.to_owned(),
        path,
        text: repaired.text,
        repaired_bytes: repaired.repaired_bytes,
        content_sha256: ContentHash::of(bytes),
        ..Document::default()
    };
    let structure;
    if kind == SourceKind::Markdown {
        document.media_type = "text/markdown".to_owned();
        let (front, body) = metadata::front_matter(&document.text);
        metadata::describe(&mut document, front);
        structure = markdown::parse(&document.text, body);
        if document.title.is_none() {
            document.title = structure.title();
        }
    } else {
        document.media_type = "text/plain".to_owned();
        structure = plain_structure(options, &document.text);
    }
    metadata::describe(&mut document, given.clone());
    chunk::chunk(&mut document, &structure, options, counter);
    Ok(document)
}

/// A document of one line of a JSON Lines file.
pub fn of_record(options: &SourceOptions, uri: &str, line: &[u8], counter: &dyn TokenCounter) -> Result<Document> {
    of_inline_record(options, uri, line, &Map::new(), counter)
}

/// A document of one JSON object, with metadata that overrides it.
pub fn of_inline_record(
    options: &SourceOptions,
    uri: &str,
    bytes: &[u8],
    given: &Map<String, Value>,
    counter: &dyn TokenCounter,
) -> Result<Document> {
    let record = record::parse(bytes, &options.fields)?;
    // Strings of a record may hold CR and (as an escape) NUL although the line itself does not.
    // A record that is nothing but a title is found by it.
    let said = Some(&record.text).filter(|t| !t.trim().is_empty()).or(record.title.as_ref()).unwrap_or(&record.text);
    let body = text::repair(said.as_bytes());
    let mut document = Document {
        uri: uri.to_owned(),
        external_id: record.external_id,
        title: record.title,
        language: record.language,
        published_at: record.published_at,
        metadata: record.metadata,
        media_type: "text/plain".to_owned(),
        text: body.text,
        repaired_bytes: record.repaired_bytes + body.repaired_bytes,
        content_sha256: ContentHash::of(bytes),
        ..Document::default()
    };
    metadata::describe(&mut document, given.clone());
    let structure = plain_structure(options, &document.text);
    chunk::chunk(&mut document, &structure, options, counter);
    Ok(document)
}

/// Text without a kind of its own is read as Markdown only when its headings are asked for.
fn plain_structure(options: &SourceOptions, text: &str) -> Structure {
    match options.chunking {
        Chunking::Heading => markdown::parse(text, 0..text.len()),
        Chunking::Recursive | Chunking::None => plain::parse(text),
    }
}
