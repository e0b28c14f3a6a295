// SPDX-License-Identifier: PostgreSQL

//! Chunking: from a structure to chunks under a token budget.
//!
//! ```text
//!  structure ── cut (pieces that fit, at the best boundary there is) ── pack (neighbours together) ──▶ spans ──▶ chunks
//! ```
//!
//! What holds for every chunker: a chunk is an exact slice of the text; spans are in order and do not overlap (but for
//! an `overlap` that was asked for); every character outside of front matter that is not white space is in a chunk; and no
//! chunk has more tokens than the budget. [`budget`] says what the budget is, [`cut`] where text may be cut,
//! [`pack`] what is put together, [`heading`] and [`recursive`] in which order. Must not read bytes or know a format.

mod budget;
mod cut;
mod heading;
mod pack;
mod positions;
mod recursive;

use crate::parse::Structure;
use budget::Sizer;
use pack::Packed;
use positions::Positions;
use rag_core::document::{Chunk, Document};
use rag_core::source::{Chunking, SourceOptions};
use rag_core::tokens::TokenCounter;
use serde_json::Value;
use std::ops::Range;

/// Fills in the document's chunks.
pub fn chunk(document: &mut Document, structure: &Structure, options: &SourceOptions, counter: &dyn TokenCounter) {
    let sizer = Sizer::new(document, options, counter);
    let text = document.text.as_str();
    let packed = match options.chunking {
        Chunking::Heading => heading::chunk(text, structure, &sizer),
        Chunking::Recursive => recursive::chunk(text, structure.body.clone(), &sizer, options.overlap as usize),
        Chunking::None => recursive::whole(text, structure.body.clone(), &sizer, options.truncate),
    };
    let positions = Positions::new(text);
    let chunks = packed.into_iter().map(|packed| finish(text, packed, &positions, counter)).collect();
    document.chunks = chunks;
}

fn finish(text: &str, packed: Packed, positions: &Positions<'_>, counter: &dyn TokenCounter) -> Chunk {
    let content = &text[packed.range.clone()];
    let mut chunk = Chunk {
        content: content.to_owned(),
        context: packed.context.as_ref().and_then(|c| c.text.as_deref()).map(str::to_owned),
        span: positions.span(packed.range),
        heading_path: packed.path.to_vec(),
        token_count: u32::try_from(packed.tokens.unwrap_or_else(|| counter.count(content))).unwrap_or(u32::MAX),
        ..Chunk::default()
    };
    if packed.context.is_some_and(|c| c.text.is_none()) {
        chunk.metadata.insert(budget::CONTEXT_CUT.to_owned(), Value::Bool(true));
    }
    if packed.prefix_cut {
        chunk.metadata.insert(rag_core::template::PREFIX_CUT.to_owned(), Value::Bool(true));
    }
    chunk
}

/// The range without white space at its ends; the indentation of a first line that is whole is kept, since it carries
/// meaning in code and lists.
fn trim(text: &str, range: Range<usize>) -> Range<usize> {
    let slice = &text[range.clone()];
    let end = range.start + slice.trim_end().len();
    let first = range.start + (slice.len() - slice.trim_start().len());
    if first >= end {
        return range.start..range.start;
    }
    first_of_line(text, first, range.start).unwrap_or(first)..end
}

/// The start of the line that holds the byte at `at`, if it is not before `floor`. Looks no further back, since a line
/// can be as long as the text.
fn first_of_line(text: &str, at: usize, floor: usize) -> Option<usize> {
    let bytes = text.as_bytes();
    match bytes[floor..at].iter().rposition(|b| *b == b'\n') {
        Some(newline) => Some(floor + newline + 1),
        None => (floor == 0 || bytes[floor - 1] == b'\n').then_some(floor),
    }
}
