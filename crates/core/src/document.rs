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
    /// ISO 639-3 code of the language that its text was found to be in, if the source asked and the content names none.
    pub text_language: Option<String>,
    /// Path within the source, for files.
    pub path: Option<String>,
    /// Which version of its source it is of.
    pub version: Version,
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

/// Which version of a source a document was read from, as far as the source has versions.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Version {
    /// Repository it was read from.
    pub repository: Option<String>,
    /// Branch or tag it was read at.
    pub reference: Option<String>,
    /// Commit it was read at.
    pub commit: Option<String>,
    /// ETag it was served with.
    pub etag: Option<String>,
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
    /// What is known about the place that it is, besides where it stands.
    pub facts: Facts,
    /// First and last page, from 1, where the document has pages.
    pub pages: Option<(u32, u32)>,
    /// Begin and end in milliseconds, in a recording.
    pub time: Option<(u64, u64)>,
    /// Tokens of `content` for the collection's model, special tokens not counted.
    pub token_count: u32,
    /// What else is known about this chunk.
    pub metadata: Map<String, Value>,
}

/// What a parser knows about a part of a document.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Facts {
    /// Name of the symbol it is (a piece of), qualified by its containers: `Parser.parse`.
    pub symbol: Option<String>,
    /// What that is: `function`, `class`, …
    pub symbol_kind: Option<String>,
    /// Who speaks or writes.
    pub speaker: Option<String>,
    /// Content role, where it is not that of the document.
    pub role: Option<String>,
}

/// Version of the parsers and chunkers as a whole. Raise it with every change that alters what a document's chunks are:
/// the next sync then reads unchanged documents again.
pub const PARSER_VERSION: &str = "4";
