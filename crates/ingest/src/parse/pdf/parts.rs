// SPDX-License-Identifier: PostgreSQL

//! Parts: sections of the outline and passages with a role, as ranges of the text.
//!
//! A part has one heading path and one role, so that no chunk mixes two; its path is that of the outline even where several
//! entries begin at one place. The same headings stand among the blocks, for who chunks by headings: there an entry
//! without a heading of its own on the page takes the paragraph it begins with.

use super::flow::{Flow, Mark};
use super::outline::Section;
use crate::parse::role::NAVIGATION;
use crate::parse::{Block, BlockKind, Heading, Part, Structure};
use rag_core::document::Facts;
use std::ops::Range;

/// Longest title in a heading path, in characters: it is repeated in every chunk of its section.
const MAX_HEADING: usize = 500;

/// What is known about each line.
pub fn marks(sections: &[Section], roles: &[Vec<Option<&'static str>>]) -> Vec<Vec<Mark>> {
    let mark = |role: &Option<&'static str>| Mark { role: *role, ..Mark::default() };
    let mut marks: Vec<Vec<Mark>> = roles.iter().map(|page| page.iter().map(mark).collect()).collect();
    for (number, section) in sections.iter().enumerate() {
        let page = &mut marks[section.page];
        page.iter_mut().skip(section.line).take(section.lines).for_each(|mark| mark.heading = Some(number));
        if let Some(mark) = page.get_mut(section.line) {
            mark.begins = true;
        }
    }
    marks
}

/// Headings, blocks and parts of a text.
pub fn structure(flow: &Flow, sections: &[Section], marks: &[Vec<Mark>]) -> Structure {
    let body = 0..flow.text.len();
    let starts: Vec<usize> = sections.iter().map(|section| start(flow, section)).collect();
    let headings = sections.iter().zip(&starts).map(|(section, start)| Heading {
        level: section.level,
        text: section.title.chars().take(MAX_HEADING).collect(),
        start: *start,
        nested: false,
    });
    let headings: Vec<Heading> = headings.collect();
    let blocks = blocks(flow, sections, &starts);
    let parts = parts(flow, &headings, &blocks, marks);
    Structure { body, blocks, headings, parts, ..Structure::default() }
}

/// The first byte of a section: of its line, else of the next line there is.
fn start(flow: &Flow, section: &Section) -> usize {
    let here = flow.lines[section.page].get(section.line);
    let later = || flow.lines[section.page + 1..].iter().find_map(|lines| lines.first());
    here.or_else(later).map_or(flow.text.len(), |line| line.start)
}

/// A block for each heading; of several at one place, for the last.
fn blocks(flow: &Flow, sections: &[Section], starts: &[usize]) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    for (number, (section, start)) in sections.iter().zip(starts).enumerate() {
        let lines = &flow.lines[section.page];
        let own = section.lines.checked_sub(1).and_then(|more| lines.get(section.line + more)).map(|line| line.end);
        let next = || flow.paragraphs.get(flow.paragraphs.partition_point(|at| at <= start)).copied();
        let end = own.or_else(next).unwrap_or(flow.text.len());
        if blocks.last().is_some_and(|block| block.range.start == *start) {
            blocks.pop();
        }
        if *start < end && blocks.last().is_none_or(|block| block.range.end <= *start) {
            blocks.push(Block { kind: BlockKind::Heading(number), range: *start..end, children: Vec::new() });
        }
    }
    blocks
}

/// Parts that tile the text; none where there is neither outline nor role.
fn parts(flow: &Flow, headings: &[Heading], blocks: &[Block], marks: &[Vec<Mark>]) -> Vec<Part> {
    let roles = roles(flow, marks);
    if headings.is_empty() && roles.is_empty() {
        return Vec::new();
    }
    let mut cuts: Vec<usize> = headings.iter().map(|heading| heading.start).collect();
    cuts.extend(roles.iter().flat_map(|(range, _)| [range.start, range.end]));
    cuts.extend([0, flow.text.len()]);
    cuts.sort_unstable();
    cuts.dedup();
    let mut parts = Vec::new();
    let mut above: Vec<&Heading> = Vec::new();
    let mut next = headings.iter().peekable();
    let mut from = None;
    for range in cuts.windows(2).map(|pair| pair[0]..pair[1]) {
        while let Some(heading) = next.next_if(|heading| heading.start <= range.start) {
            while above.last().is_some_and(|last| last.level >= heading.level) {
                above.pop();
            }
            above.push(heading);
        }
        let role = roles.get(roles.partition_point(|(with, _)| with.end <= range.start));
        let role = role.filter(|(with, _)| with.start <= range.start);
        let deeper =
            next.peek().is_some_and(|n| n.start == range.end && above.last().is_some_and(|a| n.level > a.level));
        let heading = blocks.binary_search_by_key(&range.start, |block| block.range.start).map(|at| &blocks[at]);
        let is_heading = heading.is_ok_and(|b| flow.text[b.range.end.min(range.end)..range.end].trim().is_empty());
        // A heading alone goes with the section within it.
        if deeper && is_heading && role.is_none() {
            from = from.or(Some(range.start));
            continue;
        }
        parts.push(Part {
            range: from.take().unwrap_or(range.start)..range.end,
            path: above.iter().map(|heading| heading.text.clone()).collect(),
            // Contents and index are lists of lines.
            prose: role.is_none_or(|(_, role)| *role != NAVIGATION),
            facts: Facts { role: role.map(|(_, role)| (*role).to_owned()), ..Facts::default() },
            ..Part::default()
        });
    }
    parts
}

/// The passages that have a role.
fn roles(flow: &Flow, marks: &[Vec<Mark>]) -> Vec<(Range<usize>, &'static str)> {
    let mut roles: Vec<(Range<usize>, &'static str)> = Vec::new();
    let lines = flow.lines.iter().flatten().zip(marks.iter().flatten());
    let mut last = None;
    for (line, mark) in lines {
        match (mark.role, roles.last_mut()) {
            (Some(role), Some((range, open))) if last == Some(role) && *open == role => range.end = line.end,
            (Some(role), _) => roles.push((line.clone(), role)),
            (None, _) => {}
        }
        last = mark.role;
    }
    // White space after a passage is nobody's.
    for (range, _) in &mut roles {
        range.end += flow.text[range.end..].len() - flow.text[range.end..].trim_start().len();
    }
    roles
}
