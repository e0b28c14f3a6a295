// SPDX-License-Identifier: PostgreSQL

//! The structure of a text: a tree of blocks with spans, and its headings. Never chunks.
//!
//! Parsers of different formats yield the same [`Structure`], so a chunker does not know what it cuts. A span is a byte
//! range of the stored text. Blocks need not cover everything: what lies between them (link definitions, markers) is
//! text without a structure of its own, and the chunker gives it a place.

pub mod markdown;
pub mod metadata;
pub mod plain;
pub mod record;

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
}

impl Structure {
    /// Text of the first heading of level 1 that opens a section.
    pub fn title(&self) -> Option<String> {
        let first = self.headings.iter().find(|h| h.level == 1 && !h.nested && !h.text.is_empty());
        first.map(|h| h.text.clone())
    }
}

#[cfg(test)]
mod reference;
