// SPDX-License-Identifier: PostgreSQL

//! Layout: the order in which the lines of a page are read.
//!
//! A page is cut where white space runs through it: across into strips, and strips that share a gutter are columns, which
//! are read one after the other and may have columns themselves. White space of a table runs down as well; its rows stay
//! together (see `columns`). What is turned (a note along the margin) is read after what is not.

use super::columns::{Found, Gutter, find, side};
use super::content::PageText;
use super::words::{ASCENT, DESCENT, Line, Word, direction, line, rows, words};
use std::collections::VecDeque;

/// Columns within columns.
const MAX_DEPTH: usize = 4;

/// Words of a page on which columns are looked for. A newspaper has fewer.
const MAX_WORDS: usize = 20_000;

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

/// A table among the words of a column: where it begins and ends, and its gutters.
type Table = (f32, f32, Vec<Gutter>);

/// Appends the lines of some words.
fn read(words: Vec<Word>, depth: usize, into: &mut Vec<Line>) {
    let mut strips = strips(words);
    let size = median(strips.iter().flatten().map(|word| word.size));
    let (mut plain, mut tables) = (Vec::new(), Vec::<Table>::new());
    while !strips.is_empty() {
        let found = if depth < MAX_DEPTH { find(strips.make_contiguous(), size) } else { Found::Nothing };
        let (count, gutters) = match found {
            Found::Columns(count, gutters) => (count, gutters),
            Found::Table(count, gutters) => {
                let words: Vec<Word> = strips.drain(..count).flatten().collect();
                let top = words.iter().map(|word| word.y).fold(f32::INFINITY, f32::min);
                let bottom = words.iter().map(|word| word.y).fold(f32::NEG_INFINITY, f32::max);
                tables.push((top, bottom, gutters));
                plain.extend(words);
                continue;
            }
            Found::Nothing => {
                plain.extend(strips.pop_front().into_iter().flatten());
                continue;
            }
        };
        column(std::mem::take(&mut plain), &std::mem::take(&mut tables), into);
        let mut sides: Vec<Vec<Word>> = vec![Vec::new(); gutters.len() + 1];
        for word in strips.drain(..count).flatten() {
            sides[side(&gutters, &word)].push(word);
        }
        sides.into_iter().for_each(|words| read(words, depth + 1, into));
    }
    column(plain, &tables, into);
}

/// Appends the lines of one column, in which there may be tables.
fn column(words: Vec<Word>, tables: &[Table], into: &mut Vec<Line>) {
    let number = into.last().map_or(0, |line| line.column + 1);
    let first = into.len();
    let is_row = |words: &[Word]| {
        let y = words.first().map_or(0.0, |word| word.y);
        let table = tables.iter().find(|(top, bottom, _)| *top <= y && y <= *bottom);
        table.is_some_and(|(_, _, gutters)| words.iter().any(|word| side(gutters, word) != side(gutters, &words[0])))
    };
    let lines = rows(words).into_iter().filter_map(|words| {
        let row = is_row(&words);
        line(words).map(|line| Line { column: number, row, ..line })
    });
    into.extend(lines);
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

    /// Words of six points a letter.
    fn cell(x: f32, y: f32, text: &str) -> Vec<Word> {
        let mut at = x;
        let word = |text: &str| {
            let x0 = at;
            at = x0 + 6.0 * (text.len() + 1) as f32;
            Word { x0, x1: at - 6.0, y, size: 10.0, text: text.into(), space: true }
        };
        text.split(' ').map(word).collect()
    }

    /// Lines of columns that begin at these places; a step to the next line goes before each.
    fn grid(places: &[f32], lines: &[(f32, &[&str])]) -> Vec<Word> {
        let mut y = 0.0;
        let mut words = Vec::new();
        for (step, cells) in lines {
            y += step;
            let cells = places.iter().zip(*cells).filter(|(_, cell)| !cell.is_empty());
            words.extend(cells.flat_map(|(x, text)| cell(*x, y, text)));
        }
        words
    }

    #[test]
    fn filled_cells_stay_in_their_rows() {
        let rows: &[(f32, &[&str])] = &[
            (12.0, &["Table 1: Limits at the lock"]),
            (14.0, &["Level of the sea", "Gauge at lock", "What is to be done"]),
            (12.0, &["Lowest limit", "0.40", "no deep vessel"]),
            (12.0, &["Working limit", "6.70", "no locking above"]),
            (12.0, &["Closing level", "6.55 and rising", "flood pair is shut"]),
            (12.0, &["Sandbag level", "7.10", "boards on the coping"]),
        ];
        let expected: Vec<String> = rows.iter().map(|(_, cells)| cells.join(" ")).collect();
        assert_eq!(texts(grid(&[50.0, 160.0, 270.0], rows)), expected);
    }

    #[test]
    fn rows_whose_cells_are_full_are_told_by_the_space_between_them() {
        let rows: &[(f32, &[&str])] = &[
            (12.0, &["ice is up to ten mm", "ordinary working of"]),
            (10.0, &["and no thicker here", "all gates as before"]),
            (16.0, &["ice up to twenty mm", "broken by launch on"]),
            (10.0, &["", "each of the days now"]),
            (16.0, &["thicker ice than this", "no locking whatever"]),
            (10.0, &["as far as it is known", ""]),
            (16.0, &["thickness not known", "no locking until it is"]),
        ];
        let expected: Vec<String> = rows.iter().map(|(_, cells)| cells.join(" ").trim().to_owned()).collect();
        assert_eq!(texts(grid(&[50.0, 200.0], rows)), expected);
    }

    #[test]
    fn columns_of_prose_on_common_base_lines_are_not_a_table() {
        let rows: &[(f32, &[&str])] = &[
            (12.0, &["the left column begins", "the right one begins"]),
            (12.0, &["and goes on and on to", "and goes on until this"]),
            (12.0, &["an end that is here.", "end that comes late."]),
            (18.0, &["Another paragraph has", "And more is said here"]),
            (12.0, &["begun on the left side", "of the right side, too"]),
        ];
        let expected: Vec<&str> = rows.iter().map(|row| row.1[0]).chain(rows.iter().map(|row| row.1[1])).collect();
        assert_eq!(texts(grid(&[50.0, 200.0], rows)), expected);
    }

    #[test]
    fn columns_of_an_index_are_read_one_after_the_other() {
        let rows: &[(f32, &[&str])] = &[
            (12.0, &["A", "beds, 3"]),
            (12.0, &["ale, 1", "bells, meeting of the, 7, 9"]),
            (12.0, &["anchors, lost, 4", "bins, 2"]),
            (12.0, &["axis, 12", "boats, 11"]),
            (12.0, &["bank, 1, 7", "bows, 4"]),
        ];
        let mut lines: Vec<&str> = rows.iter().map(|row| row.1[0]).collect();
        lines.extend(rows.iter().map(|row| row.1[1]));
        assert_eq!(texts(grid(&[50.0, 220.0], rows)), lines);
        // Numbers at the end of cells make no index of them if they do not go on from one column to the next.
        let mirrored: Vec<[&str; 2]> = rows.iter().map(|row| [row.1[1], row.1[0]]).collect();
        let mirrored: Vec<(f32, &[&str])> = mirrored.iter().map(|cells| (12.0, cells.as_slice())).collect();
        assert_eq!(texts(grid(&[50.0, 250.0], &mirrored))[2], "bins, 2 anchors, lost, 4");
    }
}
