// SPDX-License-Identifier: PostgreSQL

//! Document and Chunk: the one representation.
//!
//! Source-specific work ends when these are made; nothing after ingestion may ask what kind of source a chunk came
//! from except through its provenance. A chunk's `content` is always an exact slice of the document's stored text, so
//! that a citation can be checked byte for byte; text that belongs to a chunk but not to its span (a table's header
//! row, a method's class header) is its `context`.

use crate::provenance::{ContentHash, Span};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// One thing with an identity in its source: a file, a page, a record.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Document {
    /// Identity within the source; for a file its path relative to the location, for a record `file#external_id`.
    pub uri: String,
    /// The source's own key, if it has one.
    pub external_id: Option<String>,
    /// Title, from front matter, the first heading or the record.
    pub title: Option<String>,
    /// IANA media type.
    pub media_type: String,
    /// BCP 47 language, if known.
    pub language: Option<String>,
    /// Path within the source, for files.
    pub path: Option<String>,
    /// Content role of the whole document, if known.
    pub role: Option<String>,
    /// RFC 3339 time of publication, if the content states one.
    pub published_at: Option<String>,
    /// What else the content says about itself (front matter, unmapped record fields).
    pub metadata: Map<String, Value>,
    /// The stored text: valid UTF-8 without NUL, byte-order mark or CR. All offsets refer to it.
    pub text: String,
    /// Hash of the acquired bytes; decides whether a re-read document is unchanged.
    pub content_sha256: ContentHash,
    /// Bytes of the original that were repaired (invalid UTF-8, NUL) before hashing anything.
    pub repaired_bytes: u64,
    /// The chunks, in order of their spans.
    pub chunks: Vec<Chunk>,
}

/// One passage: the unit that is embedded, indexed, ranked and cited.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Chunk {
    /// Exactly the document's text between the span's byte offsets.
    pub content: String,
    /// Text of the container that is embedded and indexed with the content but is not part of the span.
    pub context: Option<String>,
    /// Where it is.
    pub span: Span,
    /// Headings above it, outermost first.
    pub heading_path: Vec<String>,
    /// Tokens of `content` for the collection's model, special tokens not counted.
    pub token_count: u32,
    /// Content role, if known.
    pub role: Option<String>,
    /// What else is known about this chunk.
    pub metadata: Map<String, Value>,
}

/// Version of the parsers and chunkers as a whole. Raise it with every change that alters what a document's chunks are:
/// the next sync then reads unchanged documents again.
pub const PARSER_VERSION: &str = "1";
