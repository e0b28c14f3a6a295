// SPDX-License-Identifier: PostgreSQL

//! Chunking by the heading tree.
//!
//! A section is a heading and what follows up to the next heading; sections are never mixed, because a citation that
//! names two of them names neither. The exception is a section that has nothing but its heading: it goes with its
//! first subsection, whose path it begins.

use super::budget::Sizer;
use super::cut::{Cutter, parts};
use super::pack::{Packed, Packer};
use crate::parse::{Block, BlockKind, Structure};
use std::ops::Range;
use std::sync::Arc;

/// A section of the document.
struct Section<'s> {
    level: u8,
    path: Arc<[String]>,
    /// Its heading.
    heading: Option<Range<usize>>,
    /// What follows it.
    body: Vec<(Range<usize>, Option<&'s Block>)>,
}

/// Chunks of a text with headings.
pub fn chunk(text: &str, structure: &Structure, sizer: &Sizer<'_>) -> Vec<Packed> {
    let sections = sections(text, structure);
    let path_of = |section: usize| sections[section].path.clone();
    let mut packer = Packer::new(text, sizer, &path_of);
    let mut first = 0;
    for (index, section) in sections.iter().enumerate() {
        let goes_with_next =
            section.body.is_empty() && sections.get(index + 1).is_some_and(|n| n.level > section.level);
        if goes_with_next {
            continue;
        }
        let room = sizer.room(&section.path);
        let mut pieces = Vec::new();
        for (number, section) in sections.iter().enumerate().take(index + 1).skip(first) {
            let lead: usize = pieces.iter().map(|p: &super::cut::Piece| p.tokens).sum();
            let mut cutter = Cutter::new(text, sizer, &section.path, room, number);
            if let Some(heading) = &section.heading {
                cutter.heading(heading.clone());
            }
            let headings = cutter.finish();
            let lead = lead + headings.iter().map(|p| p.tokens).sum::<usize>();
            pieces.extend(headings);
            let mut cutter = Cutter::new(text, sizer, &section.path, room, number).after(lead);
            for (range, block) in &section.body {
                match block {
                    Some(block) => cutter.block(block, range.clone()),
                    None => cutter.prose(range.clone()),
                }
            }
            pieces.extend(cutter.finish());
        }
        packer.run(pieces, room);
        first = index + 1;
    }
    packer.finish()
}

fn sections<'s>(text: &str, structure: &'s Structure) -> Vec<Section<'s>> {
    let mut sections = vec![Section { level: 0, path: Arc::from([]), heading: None, body: Vec::new() }];
    let mut above: Vec<(u8, String)> = Vec::new();
    for (range, block) in parts(text, &structure.blocks, structure.body.clone()) {
        if let Some(Block { kind: BlockKind::Heading(index), .. }) = block {
            let heading = &structure.headings[*index];
            while above.last().is_some_and(|(level, _)| *level >= heading.level) {
                above.pop();
            }
            above.push((heading.level, heading.text.clone()));
            // An empty heading ends a section but gives no name.
            let path = above.iter().map(|(_, t)| t.clone()).filter(|t| !t.is_empty()).collect();
            sections.push(Section { level: heading.level, path, heading: Some(range), body: Vec::new() });
        } else if let Some(section) = sections.last_mut()
            && !text[range.clone()].trim().is_empty()
        {
            section.body.push((range, block));
        }
    }
    sections
}
