// SPDX-License-Identifier: PostgreSQL

//! From bytes to a chunked document: parse, hear what else is known about it, chunk.
//!
//! Owns the order of these steps and nothing of what they do. The hash is of the acquired bytes, so that a source that
//! did not change is recognised without parsing; everything else refers to the stored text.

use crate::chunk;
use crate::format::Format;
use crate::language;
use crate::parse::{self, Parsed, metadata, role};
use rag_core::document::Document;
use rag_core::error::{Error, Kind, Result};
use rag_core::lexical::language::AUTO;
use rag_core::provenance::ContentHash;
use rag_core::source::{Origin, SourceOptions};
use rag_core::tokens::TokenCounter;
use serde_json::{Map, Value};

/// Longest key in bytes. A key is part of an index entry, which the database bounds, and of every message about its
/// record; a longer one is text in the wrong field.
const MAX_KEY: usize = 2048;

/// Longest language in bytes: each chunk has it. RFC 5646 knows of no tag that is nearly as long.
const MAX_LANGUAGE: usize = 100;

/// Whether a key can be one.
pub fn check_key(key: &str) -> Result<()> {
    if key.len() <= MAX_KEY {
        return Ok(());
    }
    let message = format!("key of {} bytes is longer than {MAX_KEY}", key.len());
    Err(Error::new(Kind::LimitExceeded, message)
        .with_hint("Name the field with the key in the source's options: {\"fields\": {\"external_id\": \"...\"}}."))
}

/// What is no language stays known under its name.
fn check_language(parsed: &mut Parsed) {
    if let Some(text) = parsed.language.take_if(|language| language.len() > MAX_LANGUAGE) {
        parsed.metadata.entry("language").or_insert_with(|| text.into());
    }
}

/// The language of the text, if the source asks for it and the document does not name one itself. Code and configuration have
/// none, whatever their comments say.
fn text_language(format: Format, options: &SourceOptions, parsed: &Parsed) -> Option<String> {
    let asked = options.text_search_config == AUTO && parsed.language.is_none();
    let is_text = !matches!(format, Format::Code | Format::Config);
    (asked && is_text).then(|| language::detect(&parsed.text)).flatten().map(str::to_owned)
}

/// The document of some bytes; `given` overrides what they say about themselves, and its origin
/// tells what else is known of it.
pub fn build(
    format: Format,
    options: &SourceOptions,
    uri: &str,
    bytes: &[u8],
    origin: &Origin,
    given: &Map<String, Value>,
    counter: &dyn TokenCounter,
) -> Result<Document> {
    let mut parsed = parse::parse(format, origin.path.as_deref().unwrap_or(uri), bytes, options, origin)?;
    metadata::describe(&mut parsed, given.clone());
    parsed.external_id.as_deref().map_or(Ok(()), check_key)?;
    check_language(&mut parsed);
    let text_language = text_language(format, options, &parsed);
    let mut document = Document {
        uri: uri.to_owned(),
        external_id: parsed.external_id,
        // It goes with every chunk.
        title: parsed.title.map(|title| metadata::short(&title)),
        media_type: parsed.media_type,
        text_language,
        language: parsed.language,
        path: origin.path.clone(),
        version: origin.version.clone(),
        role: parsed.role,
        published_at: parsed.published_at,
        metadata: parsed.metadata,
        text: parsed.text,
        content_sha256: ContentHash::of(bytes),
        repaired_bytes: parsed.repaired_bytes,
        ..Document::default()
    };
    chunk::chunk(&mut document, &parsed.structure, options, counter);
    Ok(document)
}

/// Gives a document among files of every sort the role that its path says, where its content says none.
pub fn with_role(mut document: Document, path: &str) -> Document {
    let role = role::of_text(path).filter(|_| document.role.is_none());
    if let Some(role) = role {
        document.role = Some(role.to_owned());
        for chunk in &mut document.chunks {
            chunk.facts.role.get_or_insert_with(|| role.to_owned());
        }
    }
    document
}
