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
//! [`pack`] what is put together, [`heading`], [`part`] and [`recursive`] in which order. Must not read bytes or know a
//! format.

mod budget;
mod cut;
mod heading;
mod pack;
mod part;
mod positions;
mod recursive;

use crate::parse::{Page, Structure, Timed};
use budget::Sizer;
use pack::Packed;
use positions::Positions;
use rag_core::document::{Chunk, Document, Facts};
use rag_core::provenance::Span;
use rag_core::source::{Chunking, SourceOptions};
use rag_core::tokens::TokenCounter;
use serde_json::{Map, Value};
use std::ops::Range;

/// Fills in the document's chunks.
pub fn chunk(document: &mut Document, structure: &Structure, options: &SourceOptions, counter: &dyn TokenCounter) {
    let sizer = Sizer::new(document, options, counter);
    let text = document.text.as_str();
    let overlap = options.overlap as usize;
    let body = structure.body.clone();
    let packed = match options.chunking {
        Chunking::Structure if !structure.parts.is_empty() => part::chunk(text, structure, &sizer, overlap),
        Chunking::Structure | Chunking::Heading => unknown(heading::chunk(text, structure, &sizer)),
        Chunking::Recursive => unknown(recursive::chunk(text, body, &sizer, overlap)),
        Chunking::None => unknown(recursive::whole(text, body, &sizer, options.truncate)),
    };
    let positions = Positions::new(text);
    let finish = |(packed, facts, metadata): part::Known| {
        let mut chunk = finish(text, packed, &positions, counter);
        chunk.pages = pages(&structure.pages, &chunk.span);
        chunk.time = time(&structure.times, &chunk.span);
        chunk.facts = facts;
        chunk.metadata.extend(metadata);
        if chunk.facts.role.is_none() {
            chunk.facts.role.clone_from(&document.role);
        }
        chunk
    };
    let chunks = packed.into_iter().map(finish).collect();
    document.chunks = chunks;
}

fn unknown(packed: Vec<Packed>) -> Vec<part::Known> {
    packed.into_iter().map(|packed| (packed, Facts::default(), Map::new())).collect()
}

/// First and last page of a span.
fn pages(pages: &[Page], span: &Span) -> Option<(u32, u32)> {
    let page_of = |byte: u64| {
        let after = pages.partition_point(|page| page.start as u64 <= byte);
        pages.get(after.saturating_sub(1)).map(|page| page.number)
    };
    page_of(span.byte_start).zip(page_of(span.byte_end.saturating_sub(1).max(span.byte_start)))
}

/// From when to when that was said which a span holds a part of.
fn time(times: &[Timed], span: &Span) -> Option<(u64, u64)> {
    let first = times.partition_point(|timed| timed.range.end as u64 <= span.byte_start);
    let said = times[first..].iter().take_while(|timed| (timed.range.start as u64) < span.byte_end);
    said.map(|timed| (timed.from, timed.to)).reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))
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
