// SPDX-License-Identifier: PostgreSQL

//! Chunking by parts: symbols of code, turns of a conversation, sections of a configuration.
//!
//! A part is a passage of its own however short, because it is what somebody looks for by name. What lies between parts
//! becomes a part of which nothing is known, so that no character is lost.

use super::budget::{Room, Sizer};
use super::cut::Cutter;
use super::pack::{Packed, Packer};
use super::recursive;
use crate::parse::{Part, Structure};
use rag_core::document::Facts;
use serde_json::{Map, Value};
use std::ops::Range;
use std::sync::Arc;

/// A chunk to be, and what is known about it.
pub type Known = (Packed, Facts, Map<String, Value>);

/// Chunks of a text with parts, and what is known about each.
pub fn chunk(text: &str, structure: &Structure, sizer: &Sizer<'_>, overlap: usize) -> Vec<Known> {
    let mut chunks = Vec::new();
    for part in tiles(text, structure) {
        let sizer = sizer.of_part(&part.facts);
        let room = sizer.room(&part.path);
        let overlap = if part.prose { overlap.min(room.tokens.saturating_sub(1) / 2) } else { 0 };
        let tight = Room { tokens: room.tokens - overlap, ..room };
        let mut cutter = Cutter::new(text, &sizer, &part.path, tight, 0);
        cutter.part(&part, part.range.clone());
        let path: Arc<[String]> = part.path.iter().cloned().collect();
        let path_of = |_: usize| path.clone();
        let mut packer = Packer::new(text, &sizer, &path_of);
        packer.run(cutter.finish(), tight);
        let mut packed = packer.finish();
        recursive::repeat(text, &mut packed, &sizer, room, overlap);
        chunks.extend(packed.into_iter().map(|packed| (packed, part.facts.clone(), part.metadata.clone())));
    }
    chunks
}

/// The parts, and one for each gap between them that has text in it.
fn tiles(text: &str, structure: &Structure) -> Vec<Part> {
    let mut tiles = Vec::with_capacity(structure.parts.len());
    let mut at = structure.body.start;
    let gap = |range: Range<usize>| {
        let blank = text[range.clone()].trim().is_empty();
        (!blank).then(|| Part { range, ..Part::default() })
    };
    for part in &structure.parts {
        // Whatever a parser says, nothing is told twice.
        let range = part.range.start.max(at)..part.range.end.min(structure.body.end);
        if range.is_empty() {
            continue;
        }
        tiles.extend(gap(at..range.start));
        at = range.end;
        tiles.push(Part { range, ..part.clone() });
    }
    tiles.extend(gap(at..structure.body.end.max(at)));
    tiles
}
