// SPDX-License-Identifier: PostgreSQL

//! The structure of a text: a tree of blocks with spans, and its headings. Never chunks.
//!
//! Parsers of different formats yield the same [`Structure`], so a chunker does not know what it cuts. A span is a byte
//! range of the stored text. Blocks need not cover everything: what lies between them (link definitions, markers) is
//! text without a structure of its own, and the chunker gives it a place.

pub mod code;
pub mod compose;
pub mod config;
pub mod docx;
pub mod entry;
pub mod epub;
pub mod forum;
pub mod html;
pub mod issues;
pub mod markdown;
pub mod metadata;
pub mod package;
pub mod pdf;
pub mod plain;
mod post;
pub mod record;
pub mod role;
pub mod transcript;

use crate::format::Format;
use rag_core::document::Facts;
use rag_core::error::Result;
use rag_core::source::{Origin, SourceOptions};
use serde_json::{Map, Value};
use std::ops::Range;

/// What a block is, as far as cutting it is concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlockKind {
    /// A paragraph or anything else that is prose.
    Text,
    /// A heading; the index into [`Structure::headings`].
    Heading(usize),
    /// Code between fences.
    Fence,
    /// Indented code or HTML: lines without a frame.
    Lines,
    /// A table; its children are rows, the header first.
    Table,
    /// A list, list item, quote or footnote: its children are blocks.
    Container,
    /// Code: its children are what must not be cut while it fits, and it may be cut at its lines between them.
    Code,
}

/// A block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    /// Kind.
    pub kind: BlockKind,
    /// Bytes of the text.
    pub range: Range<usize>,
    /// Blocks inside, in order.
    pub children: Vec<Block>,
}

/// A heading.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Heading {
    /// 1 to 6.
    pub level: u8,
    /// Text without markup.
    pub text: String,
    /// First byte.
    pub start: usize,
    /// Whether it stands inside a quote or list, where it opens no section of the document.
    pub nested: bool,
}

/// Blocks and headings of a text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Structure {
    /// The text to be chunked: everything but front matter.
    pub body: Range<usize>,
    /// Blocks of the body, in order.
    pub blocks: Vec<Block>,
    /// All headings, in order.
    pub headings: Vec<Heading>,
    /// Parts that are chunked each on its own, in order and apart; empty where headings and blocks say it all.
    pub parts: Vec<Part>,
    /// Where pages begin, in order.
    pub pages: Vec<Page>,
    /// When what was said, in order of the text.
    pub times: Vec<Timed>,
}

/// A part of the text that is never mixed with another in one chunk: a symbol, a turn of a speaker, a post.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Part {
    /// Bytes of the text.
    pub range: Range<usize>,
    /// Titles above it, outermost first.
    pub path: Vec<String>,
    /// Blocks of it, at which it is cut when it does not fit.
    pub blocks: Vec<Block>,
    /// Whether text between blocks is prose; else it is lines.
    pub prose: bool,
    /// Text of its containers that goes with every chunk of it: the header of the class around a method.
    pub context: Option<String>,
    /// What goes, instead, with every chunk after the first: the same and its own header.
    pub header: Option<String>,
    /// What is known about it.
    pub facts: Facts,
    /// What else is known about it; every chunk of it carries it.
    pub metadata: Map<String, Value>,
}

/// The beginning of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Page {
    /// First byte.
    pub start: usize,
    /// Its number, from 1.
    pub number: u32,
}

/// Something said at a time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Timed {
    /// Bytes of the text.
    pub range: Range<usize>,
    /// Begin in milliseconds.
    pub from: u64,
    /// End in milliseconds.
    pub to: u64,
}

/// What a parser makes of bytes: the text that is stored, its structure, and what the content says about itself.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Parsed {
    /// Valid UTF-8 without NUL, byte-order mark or CR; all ranges refer to it.
    pub text: String,
    /// Bytes of the original that were repaired.
    pub repaired_bytes: u64,
    /// Blocks, headings, parts.
    pub structure: Structure,
    /// IANA media type.
    pub media_type: String,
    /// Key of its own.
    pub external_id: Option<String>,
    /// Title.
    pub title: Option<String>,
    /// BCP 47 language.
    pub language: Option<String>,
    /// RFC 3339 time of publication.
    pub published_at: Option<String>,
    /// Content role of the whole.
    pub role: Option<String>,
    /// What else it says about itself.
    pub metadata: Map<String, Value>,
}

impl Structure {
    /// Text of the first heading of level 1 that opens a section.
    pub fn title(&self) -> Option<String> {
        let first = self.headings.iter().find(|h| h.level == 1 && !h.nested && !h.text.is_empty());
        first.map(|h| h.text.clone())
    }
}

/// Parses the bytes of one document; `path` is what its name may tell.
pub fn parse(format: Format, path: &str, bytes: &[u8], options: &SourceOptions, origin: &Origin) -> Result<Parsed> {
    let base = origin.base.as_deref().and_then(|base| url::Url::parse(base).ok());
    let content_type = origin.content_type.as_deref();
    let served = html::Served { content_type, url: base.as_ref(), rendition: origin.rendition.as_ref() };
    Ok(match format {
        Format::Text => plain::parse(&html::encoding::utf8(bytes, content_type), options),
        Format::Markdown => markdown::served(bytes, content_type)?,
        Format::Entry => entry::parse(bytes, origin)?,
        Format::Record => record::document(bytes, options)?,
        Format::Code => code::parse(path, bytes),
        Format::Config => config::parse(path, bytes, options),
        Format::Forum => forum::parse(bytes, options)?,
        Format::Issues => issues::parse(bytes, options)?,
        Format::Transcript => transcript::parse(bytes, options)?,
        Format::Html => html::page(bytes, served, html::Reading::Whole)?,
        Format::Article => html::page(bytes, served, html::Reading::Article)?,
        Format::Docx => docx::parse(bytes)?,
        Format::Epub => epub::parse(bytes)?,
        Format::Pdf => pdf::parse(bytes, options)?,
    })
}

#[cfg(test)]
mod reference;
