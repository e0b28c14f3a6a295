// SPDX-License-Identifier: PostgreSQL

//! Layout: the order in which the lines of a page are read.
//!
//! A page is cut where white space runs through it: across into strips, and strips that share a gutter are columns, which
//! are read one after the other and may have columns themselves. White space of a table runs down as well, but its
//! columns are not filled by text as those of prose are; its rows stay together. What is turned (a note along the
//! margin) is read after what is not.

use super::content::PageText;
use super::words::{ASCENT, DESCENT, Line, Word, direction, line, rows, words};
use std::collections::VecDeque;

/// Columns within columns.
const MAX_DEPTH: usize = 4;

/// Width of a gutter, as a part of the size of the text beside it.
const GUTTER: f32 = 0.7;

/// Width of a column of prose in sizes of its text, and how much of it its lines fill on average.
const MIN_COLUMN: f32 = 8.0;
const MIN_FILL: f32 = 0.45;

/// Lines that one of the columns has at least.
const MIN_LINES: usize = 4;

/// Gutters of a page of prose, and words of a page on which columns are looked for. A newspaper has fewer of both.
const MAX_GUTTERS: usize = 8;
const MAX_WORDS: usize = 20_000;

/// Strips among which a gutter is looked for: more than any page has, and few enough to look at each again.
const MAX_STRIPS: usize = 300;

/// The lines of a page in the order of reading.
pub fn lines(page: &PageText) -> Vec<Line> {
    let mut lines = Vec::new();
    let mut counts: [(usize, u8); 4] = [(0, 0), (0, 1), (0, 2), (0, 3)];
    for glyph in &page.glyphs {
        counts[usize::from(direction(glyph))].0 += 1;
    }
    counts.sort_by_key(|(count, turned)| (std::cmp::Reverse(*count), *turned));
    for (order, (_, turned)) in counts.into_iter().filter(|(count, _)| *count > 0).enumerate() {
        let first = lines.len();
        let words = words(page, turned);
        let depth = if words.len() > MAX_WORDS { MAX_DEPTH } else { 0 };
        read(words, depth, &mut lines);
        lines[first..].iter_mut().for_each(|line| line.turned = order > 0);
    }
    lines
}

/// Appends the lines of some words.
fn read(words: Vec<Word>, depth: usize, into: &mut Vec<Line>) {
    let mut strips = strips(words);
    let size = median(strips.iter().flatten().map(|word| word.size));
    let mut plain = Vec::new();
    while !strips.is_empty() {
        let found = if depth < MAX_DEPTH { columns(&strips, size) } else { None };
        let Some((count, gutters)) = found else {
            plain.extend(strips.pop_front().into_iter().flatten());
            continue;
        };
        column(std::mem::take(&mut plain), into);
        let mut sides: Vec<Vec<Word>> = vec![Vec::new(); gutters.len() + 1];
        for word in strips.drain(..count).flatten() {
            sides[side(&gutters, &word)].push(word);
        }
        sides.into_iter().for_each(|words| read(words, depth + 1, into));
    }
    column(plain, into);
}

/// Appends the lines of one column.
fn column(words: Vec<Word>, into: &mut Vec<Line>) {
    let number = into.last().map_or(0, |line| line.column + 1);
    let first = into.len();
    into.extend(rows(words).into_iter().filter_map(line).map(|line| Line { column: number, ..line }));
    let left = into[first..].iter().map(|line| line.x0).fold(f32::INFINITY, f32::min);
    let right = into[first..].iter().map(|line| line.x1).fold(f32::NEG_INFINITY, f32::max);
    into[first..].iter_mut().for_each(|line| (line.left, line.right) = (left, right));
}

/// Words that no white space across the page separates, from top to bottom.
fn strips(mut words: Vec<Word>) -> VecDeque<Vec<Word>> {
    let top = |word: &Word| word.y - ASCENT * word.size;
    words.sort_by(|a, b| top(a).total_cmp(&top(b)));
    let mut strips = VecDeque::<Vec<Word>>::new();
    let mut bottom = f32::NEG_INFINITY;
    for word in words {
        let ends = word.y + DESCENT * word.size;
        match strips.back_mut() {
            Some(strip) if top(&word) < bottom => strip.push(word),
            _ => strips.push_back(vec![word]),
        }
        bottom = bottom.max(ends);
    }
    strips
}

/// How many of the first strips are columns of prose, and the gutters between them.
fn columns(strips: &VecDeque<Vec<Word>>, size: f32) -> Option<(usize, Vec<(f32, f32)>)> {
    let mut free = vec![(f32::NEG_INFINITY, f32::INFINITY)];
    let mut shared = None;
    for (index, strip) in strips.iter().take(MAX_STRIPS).enumerate() {
        free = meet(&free, &gaps(strip), GUTTER * size);
        let between: Vec<(f32, f32)> =
            free.iter().filter(|(from, to)| from.is_finite() && to.is_finite()).copied().collect();
        if !between.is_empty() {
            shared = Some((index + 1, between));
        } else if shared.is_some() || index >= MIN_LINES {
            break;
        }
    }
    let (count, mut gutters) = shared?;
    gutters.sort_by(|a, b| (b.1 - b.0).total_cmp(&(a.1 - a.0)));
    gutters.truncate(MAX_GUTTERS);
    gutters.sort_by(|a, b| a.0.total_cmp(&b.0));
    let words: Vec<&Word> = strips.iter().take(count).flatten().collect();
    while !gutters.is_empty() {
        let Some(bad) = not_prose(&words, &gutters, size) else {
            return Some((count, gutters));
        };
        // The gutter beside it that is narrower is none.
        let width = |at: usize| gutters.get(at).map_or(f32::INFINITY, |(from, to)| to - from);
        let before = bad.checked_sub(1).map_or(f32::INFINITY, width);
        gutters.remove(if before <= width(bad) { bad - 1 } else { bad });
    }
    None
}

/// The first column that is not one of prose.
fn not_prose(words: &[&Word], gutters: &[(f32, f32)], size: f32) -> Option<usize> {
    let mut most = 0;
    let mut bad = None;
    for number in 0..=gutters.len() {
        let inside: Vec<&&Word> = words.iter().filter(|word| side(gutters, word) == number).collect();
        let left = inside.iter().map(|word| word.x0).fold(f32::INFINITY, f32::min);
        let right = inside.iter().map(|word| word.x1).fold(f32::NEG_INFINITY, f32::max);
        let mut lines: Vec<f32> = inside.iter().map(|word| word.y).collect();
        lines.sort_by(f32::total_cmp);
        let lines = 1 + lines.windows(2).filter(|pair| pair[1] - pair[0] > 0.5 * size).count();
        most = most.max(lines);
        let filled: f32 = inside.iter().map(|word| word.x1 - word.x0).sum();
        let width = right - left;
        if inside.is_empty() || width < MIN_COLUMN * size || filled < MIN_FILL * width * lines as f32 {
            bad = bad.or(Some(number));
        }
    }
    if most < MIN_LINES { bad.or(Some(0)) } else { bad }
}

/// The number of the column of a word.
fn side(gutters: &[(f32, f32)], word: &Word) -> usize {
    let middle = (word.x0 + word.x1) / 2.0;
    gutters.iter().take_while(|(from, _)| middle > *from).count()
}

/// The ranges that no word of a strip is in.
fn gaps(strip: &[Word]) -> Vec<(f32, f32)> {
    let mut ends: Vec<(f32, f32)> = strip.iter().map(|word| (word.x0, word.x1)).collect();
    ends.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut gaps = Vec::new();
    let mut at = f32::NEG_INFINITY;
    for (from, to) in ends {
        if from > at {
            gaps.push((at, from));
        }
        at = at.max(to);
    }
    gaps.push((at, f32::INFINITY));
    gaps
}

/// What two lists of ranges share, as far as it is wide enough.
fn meet(a: &[(f32, f32)], b: &[(f32, f32)], width: f32) -> Vec<(f32, f32)> {
    let (mut i, mut j) = (0, 0);
    let mut shared = Vec::new();
    while let (Some(x), Some(y)) = (a.get(i), b.get(j)) {
        let both = (x.0.max(y.0), x.1.min(y.1));
        if both.1 - both.0 >= width {
            shared.push(both);
        }
        if x.1 < y.1 { i += 1 } else { j += 1 }
    }
    shared
}

/// The middle value; 1 when there is none.
pub fn median(values: impl Iterator<Item = f32>) -> f32 {
    let mut values: Vec<f32> = values.collect();
    values.sort_by(f32::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(y: f32, cells: &[(f32, f32, &str)]) -> Vec<Word> {
        let word = |(x0, x1, text): &(f32, f32, &str)| Word {
            x0: *x0,
            x1: *x1,
            y,
            size: 10.0,
            text: (*text).into(),
            space: true,
        };
        cells.iter().map(word).collect()
    }

    fn texts(words: Vec<Word>) -> Vec<String> {
        let mut lines = Vec::new();
        read(words, 0, &mut lines);
        lines.into_iter().map(|line| line.text).collect()
    }

    #[test]
    fn columns_of_prose_are_read_one_after_the_other() {
        let mut words = row(10.0, &[(100.0, 500.0, "title")]);
        for line in 0..5 {
            words.extend(row(30.0 + 12.0 * line as f32, &[(50.0, 290.0, "left"), (310.0, 550.0, "right")]));
        }
        words.extend(row(100.0, &[(50.0, 550.0, "after")]));
        let expected =
            ["title", "left", "left", "left", "left", "left", "right", "right", "right", "right", "right", "after"];
        assert_eq!(texts(words), expected);
    }

    #[test]
    fn rows_of_a_table_stay_together() {
        let table =
            |line: usize| row(12.0 * line as f32, &[(50.0, 80.0, "a"), (150.0, 160.0, "1"), (250.0, 260.0, "2")]);
        assert_eq!(texts((0..5).flat_map(table).collect()), ["a 1 2"; 5]);
    }
}
