// SPDX-License-Identifier: PostgreSQL

//! Cutting: from blocks to pieces, each of which fits, at the best boundary there is.
//!
//! The order of boundaries: blocks, then items of a list and rows of a table, blank lines and lines of code,
//! paragraphs, sentences, lines of prose, words (Unicode), grapheme clusters, characters. Each piece is measured when
//! it is known to be short enough to be worth measuring, so the work grows with the text and not with its square.
//! Pieces tile what they were cut from.

use super::budget::{Context, Room, Sizer};
use super::{first_of_line, trim};
use crate::parse::{Block, BlockKind, Part};
use std::ops::Range;
use unicode_segmentation::UnicodeSegmentation;

/// A piece of text that fits.
#[derive(Debug, Clone, PartialEq)]
pub struct Piece {
    /// Bytes of the text.
    pub range: Range<usize>,
    /// Its tokens, white space at its ends left out.
    pub tokens: usize,
    /// Text of the container that a chunk which begins here needs, and the room beside it.
    pub context: Option<(Context, Room)>,
    /// Whether this is (part of) a heading.
    pub heading: bool,
    /// Which section it is in.
    pub section: usize,
}

/// Cuts the blocks of one section.
pub struct Cutter<'a> {
    text: &'a str,
    sizer: &'a Sizer<'a>,
    path: &'a [String],
    room: Room,
    section: usize,
    /// Tokens that stand before the next piece in the same chunk.
    lead: usize,
    context: Option<(Context, Room)>,
    heading: bool,
    pieces: Vec<Piece>,
}

impl<'a> Cutter<'a> {
    /// A cutter for text beneath `path`.
    pub fn new(text: &'a str, sizer: &'a Sizer<'a>, path: &'a [String], room: Room, section: usize) -> Self {
        Self { text, sizer, path, room, section, lead: 0, context: None, heading: false, pieces: Vec::new() }
    }

    /// Makes the next piece fit together with what stands before it, so that a heading is not left alone. A lead that
    /// takes more than half of the room is left alone.
    pub fn after(mut self, lead: usize) -> Self {
        self.lead = if lead <= self.room.tokens / 2 { lead } else { 0 };
        self
    }

    /// The pieces.
    pub fn finish(self) -> Vec<Piece> {
        self.pieces
    }

    /// Cuts a block whose region, up to the next block, is `range`.
    pub fn block(&mut self, block: &Block, range: Range<usize>) {
        if self.whole(&range) {
            return;
        }
        match block.kind {
            BlockKind::Text => self.prose(range),
            BlockKind::Heading(_) => self.heading(range),
            BlockKind::Fence => self.lines(range, true),
            BlockKind::Lines => self.lines(range, false),
            BlockKind::Code if block.children.is_empty() => self.lines(range, false),
            BlockKind::Code => self.blocks(&block.children, range, false),
            BlockKind::Table => self.table(block, range),
            BlockKind::Container => self.blocks(&block.children, range, true),
        }
    }

    /// Cuts a part: its beginning goes with the text of its containers, the rest with its own header as well.
    pub fn part(&mut self, part: &Part, range: Range<usize>) {
        match &part.context {
            Some(context) => self.within(context, |cutter| cutter.inside(part, range)),
            None => self.inside(part, range),
        }
    }

    fn inside(&mut self, part: &Part, range: Range<usize>) {
        if self.whole(&range) {
            return;
        }
        let Some(header) = &part.header else {
            return self.blocks(&part.blocks, range, part.prose);
        };
        let mut pieces = parts(self.text, &part.blocks, range).into_iter();
        if let Some((first, block)) = pieces.next() {
            self.between(first, block, part.prose);
        }
        self.within(header, |cutter| pieces.for_each(|(piece, block)| cutter.between(piece, block, part.prose)));
    }

    fn blocks(&mut self, blocks: &[Block], range: Range<usize>, prose: bool) {
        for (part, block) in parts(self.text, blocks, range) {
            self.between(part, block, prose);
        }
    }

    fn between(&mut self, range: Range<usize>, block: Option<&Block>, prose: bool) {
        match block {
            Some(block) => self.block(block, range),
            None if prose => self.prose(range),
            None => self.lines(range, false),
        }
    }

    /// Cuts a heading.
    pub fn heading(&mut self, range: Range<usize>) {
        self.heading = true;
        self.prose(range);
        self.heading = false;
    }

    /// Cuts prose at paragraphs, sentences, lines and words.
    pub fn prose(&mut self, range: Range<usize>) {
        if self.whole(&range) {
            return;
        }
        for paragraph in paragraphs(self.text, range) {
            if self.whole(&paragraph) {
                continue;
            }
            for sentence in sentences(self.text, paragraph) {
                if self.whole(&sentence) {
                    continue;
                }
                for line in line_ranges(self.text, sentence) {
                    if !self.whole(&line) {
                        self.words(line);
                    }
                }
            }
        }
    }

    fn table(&mut self, table: &Block, range: Range<usize>) {
        // Header and delimiter row, which has no block of its own; alone at the end of a chunk they would say nothing.
        let Some((_, rows)) = table.children.split_first().filter(|(_, rows)| !rows.is_empty()) else {
            return self.prose(range);
        };
        let first = line_of(self.text, &rows[0], &range);
        let header = range.start..first;
        let mut rows = parts(self.text, rows, first..range.end).into_iter().map(|(row, _)| row);
        let Some(first) = rows.next() else {
            return self.prose(range);
        };
        let text = self.text[trim(self.text, header.clone())].to_owned();
        if !self.whole(&(header.start..first.end)) {
            self.prose(header);
            self.within(&text, |cutter| cutter.prose(first));
        }
        self.within(&text, |cutter| rows.for_each(|row| cutter.prose(row)));
    }

    /// Cuts lines of code or markup, at blank lines where that suffices.
    fn lines(&mut self, range: Range<usize>, fenced: bool) {
        let mut lines = line_ranges(self.text, range);
        let mut opening = None;
        if fenced {
            let first = lines.first().map_or("", |line| self.text[line.clone()].trim());
            if first.trim_start_matches(['>', ' ', '`', '~']).chars().any(char::is_alphanumeric) {
                opening = Some(first.to_owned());
            }
            // A fence alone would be a chunk that says nothing.
            join(&mut lines, 0);
            if lines.len() > 1 && is_closing_fence(&self.text[lines[lines.len() - 1].clone()]) {
                let before_last = lines.len() - 2;
                join(&mut lines, before_last);
            }
        }
        let groups = group_by_blank_lines(self.text, lines);
        let mut groups = groups.into_iter();
        if let Some(first) = groups.next() {
            self.group(first, opening.as_deref());
        }
        match opening {
            Some(opening) => self.within(&opening, |cutter| groups.for_each(|group| cutter.group(group, None))),
            None => groups.for_each(|group| self.group(group, None)),
        }
    }

    /// Cuts lines that belong together; those after the first are within `opening`.
    fn group(&mut self, group: Vec<Range<usize>>, opening: Option<&str>) {
        let (Some(first), Some(last)) = (group.first().cloned(), group.last()) else {
            return;
        };
        if self.whole(&(first.start..last.end)) {
            return;
        }
        let line = |cutter: &mut Self, line: Range<usize>| {
            if !cutter.whole(&line) {
                cutter.words(line);
            }
        };
        line(self, first);
        let rest = group.into_iter().skip(1);
        match opening {
            Some(opening) => self.within(opening, |cutter| rest.for_each(|r| line(cutter, r))),
            None => rest.for_each(|r| line(self, r)),
        }
    }

    /// Cuts within a container whose text goes along.
    fn within(&mut self, context: &str, cut: impl FnOnce(&mut Self)) {
        let (room, context) = self.sizer.room_beside(self.path, context);
        let outer = self.context.replace((context, room));
        cut(self);
        self.context = outer;
    }

    /// Takes the range as one piece if it fits.
    fn whole(&mut self, range: &Range<usize>) -> bool {
        let (tokens, bytes) = self.limits();
        let trimmed = trim(self.text, range.clone());
        if trimmed.len() > bytes {
            return false;
        }
        let count = self.sizer.count(&self.text[trimmed]);
        if count > tokens {
            return false;
        }
        self.push(range.clone(), count);
        true
    }

    fn limits(&self) -> (usize, usize) {
        // A chunk may begin with this piece, with its context, or hold it after others without.
        let room = self.context.as_ref().map_or(self.room, |(_, room)| *room);
        let tokens = room.tokens.min(self.room.tokens).saturating_sub(self.lead).max(1);
        (tokens, room.bytes.min(self.room.bytes))
    }

    fn push(&mut self, range: Range<usize>, tokens: usize) {
        self.lead = 0;
        let (context, heading, section) = (self.context.clone(), self.heading, self.section);
        self.pieces.push(Piece { range, tokens, context, heading, section });
    }

    /// Cuts text that has no better boundary than words.
    fn words(&mut self, range: Range<usize>) {
        let mut at = range.start;
        while at < range.end {
            let (tokens, bytes) = self.limits();
            let to = word_cut(self.text, at..range.end, tokens, bytes, self.sizer);
            let count = self.sizer.count(&self.text[trim(self.text, at..to)]);
            self.push(at..to, count);
            at = to;
        }
    }
}

/// Where to cut so that what comes before has at most `tokens` tokens and `bytes` bytes; always after `range.start`.
pub fn word_cut(text: &str, range: Range<usize>, tokens: usize, bytes: usize, sizer: &Sizer<'_>) -> usize {
    let mut look = tokens.saturating_mul(8).min(bytes).max(4);
    let mut wanted = tokens;
    loop {
        let stop = after_first(text, range.start, text.floor_char_boundary((range.start + look).min(range.end)));
        let window = &text[range.start..stop];
        let offsets = sizer.offsets(window);
        let fit = match offsets.get(wanted) {
            Some((start, _)) => *start,
            None if stop == range.end && wanted >= tokens => return stop,
            None if look < bytes && stop < range.end => {
                look = look.saturating_mul(2).min(bytes);
                continue;
            }
            None => window.len(),
        };
        let fit = window.floor_char_boundary(fit);
        let to = after_first(text, range.start, range.start + boundary(window, fit));
        if wanted <= 1 || sizer.count(text[range.start..to].trim()) <= tokens {
            return to;
        }
        // Cut pieces may have more tokens than they had together.
        wanted = wanted * 3 / 4;
    }
}

/// `at`, or the end of the first character after `start` if that is later.
fn after_first(text: &str, start: usize, at: usize) -> usize {
    at.max(start + text[start..].chars().next().map_or(0, char::len_utf8)).min(text.len())
}

/// The last good boundary of `window` in its first `fit` bytes: a word after a space in their second half, else any word,
/// else a grapheme cluster, else `fit`.
fn boundary(window: &str, fit: usize) -> usize {
    let mut word = None;
    let mut spaced = None;
    for (at, _) in window.split_word_bound_indices().take_while(|(at, _)| *at <= fit) {
        if at > 0 {
            word = Some(at);
            if window[..at].ends_with(char::is_whitespace) {
                spaced = Some(at);
            }
        }
    }
    let spaced = spaced.filter(|at| *at >= fit / 2);
    let grapheme = || window.grapheme_indices(true).map(|(at, _)| at).take_while(|at| *at <= fit).last();
    spaced.or(word).or_else(|| grapheme().filter(|at| *at > 0)).unwrap_or(fit)
}

/// The parts of a container's region: one for each child from the start of its line, and what no child holds.
pub fn parts<'b>(text: &str, children: &'b [Block], range: Range<usize>) -> Vec<(Range<usize>, Option<&'b Block>)> {
    let mut parts: Vec<(Range<usize>, Option<&Block>)> = Vec::with_capacity(children.len() + 1);
    let mut at = range.start;
    let mut held: Option<&Block> = None;
    for child in children {
        // What stands before the child on its line (a marker, indentation) belongs to it.
        let start = line_of(text, child, &(at..range.end));
        if start > at {
            let end_of_held = held.map_or(at, |b| b.range.end.clamp(at, start));
            push_part(text, &mut parts, at..end_of_held, end_of_held..start, held);
            at = start;
        }
        held = Some(child);
    }
    let end_of_held = held.map_or(at, |b| b.range.end.clamp(at, range.end));
    push_part(text, &mut parts, at..end_of_held, end_of_held..range.end, held);
    parts
}

/// The start of the line on which a block begins, within `range`.
fn line_of(text: &str, block: &Block, range: &Range<usize>) -> usize {
    let start = block.range.start.clamp(range.start, range.end);
    first_of_line(text, start, range.start).unwrap_or(range.start)
}

/// Adds a block and what follows it; the latter only apart when there is text in it.
fn push_part<'b>(
    text: &str,
    parts: &mut Vec<(Range<usize>, Option<&'b Block>)>,
    block: Range<usize>,
    rest: Range<usize>,
    held: Option<&'b Block>,
) {
    if held.is_some() && text[rest.clone()].trim().is_empty() {
        return parts.push((block.start..rest.end, held));
    }
    if !block.is_empty() {
        parts.push((block, held));
    }
    if !rest.is_empty() {
        parts.push((rest, None));
    }
}

/// Lines, each with its line feed.
pub fn line_ranges(text: &str, range: Range<usize>) -> Vec<Range<usize>> {
    let mut at = range.start;
    text[range]
        .split_inclusive('\n')
        .map(|line| {
            at += line.len();
            at - line.len()..at
        })
        .collect()
}

/// Joins the range at `index` with the next one.
fn join(ranges: &mut Vec<Range<usize>>, index: usize) {
    if index + 1 < ranges.len() {
        ranges[index].end = ranges[index + 1].end;
        ranges.remove(index + 1);
    }
}

fn is_closing_fence(line: &str) -> bool {
    let line = line.trim_start_matches(['>', ' ', '\t']).trim_end();
    line.len() >= 3 && (line.bytes().all(|b| b == b'`') || line.bytes().all(|b| b == b'~'))
}

/// Groups of lines; a group ends with its blank lines.
fn group_by_blank_lines(text: &str, lines: Vec<Range<usize>>) -> Vec<Vec<Range<usize>>> {
    let mut groups: Vec<Vec<Range<usize>>> = Vec::new();
    let mut after_blank = true;
    for line in lines {
        let blank = text[line.clone()].trim().is_empty();
        match groups.last_mut() {
            Some(group) if blank || !after_blank => group.push(line),
            _ => groups.push(vec![line]),
        }
        after_blank = blank;
    }
    groups
}

/// Paragraphs, each with the blank lines after it.
fn paragraphs(text: &str, range: Range<usize>) -> Vec<Range<usize>> {
    let groups = group_by_blank_lines(text, line_ranges(text, range));
    groups.iter().filter_map(|g| Some(g.first()?.start..g.last()?.end)).collect()
}

/// Sentences (UAX #29), each with the white space after it. A line feed, which the standard takes for the end of a
/// paragraph, only counts after a mark that ends a sentence: prose is often wrapped by hand.
pub fn sentences(text: &str, range: Range<usize>) -> Vec<Range<usize>> {
    let mut out: Vec<Range<usize>> = Vec::new();
    let mut open = range.start;
    for (at, part) in text[range.clone()].split_sentence_bound_indices() {
        let end = range.start + at + part.len();
        let wrapped = part.ends_with('\n') && !ends_sentence(part);
        if !wrapped || end == range.end {
            out.push(open..end);
            open = end;
        }
    }
    out
}

fn ends_sentence(part: &str) -> bool {
    let closers = ['"', '\'', '”', '’', '»', ')', ']', '*', '_', '`', '」', '』', '）'];
    let part = part.trim_end().trim_end_matches(closers);
    part.is_empty() || part.ends_with(['.', '!', '?', ':', ';', '…', '。', '！', '？', '：', '；'])
}
