// SPDX-License-Identifier: PostgreSQL

//! Words and rows: from placed glyphs to lines of text, within what is known to be one column.
//!
//! A space is where a space was shown, or where the gap is wider than letters have between them. Glyphs come in the order
//! they were shown in, which is the order of reading within a word and no more, so rows are made by place alone.
//! Writing from right to left is stored in the order it is read in.

use super::content::{Glyph, PageText};
use unicode_normalization::UnicodeNormalization;
use unicode_segmentation::UnicodeSegmentation;

/// Gap, as a part of the size, that separates words; what other readers take.
const SPACE: f32 = 0.1;

/// How high letters reach above their base line and how deep below, as parts of the size.
pub const ASCENT: f32 = 0.7;
pub const DESCENT: f32 = 0.2;

/// Letters of one word, in a frame in which lines run to the right and `y` grows downwards.
#[derive(Debug, Clone, PartialEq)]
pub struct Word {
    /// Left end.
    pub x0: f32,
    /// Right end.
    pub x1: f32,
    /// Base line.
    pub y: f32,
    /// Size of the font.
    pub size: f32,
    /// Text.
    pub text: String,
    /// Whether a space was shown after it.
    pub space: bool,
}

/// A line of text.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Line {
    /// Left end.
    pub x0: f32,
    /// Right end.
    pub x1: f32,
    /// Base line.
    pub y: f32,
    /// Size of the font of most of it.
    pub size: f32,
    /// Text.
    pub text: String,
    /// Width of its first word: what must fit into the line above for a break to be one that was meant.
    pub first: f32,
    /// The column it is in: a number of its page, and its ends.
    pub column: usize,
    /// Left end of the column.
    pub left: f32,
    /// Right end of the column.
    pub right: f32,
    /// Whether it is a row of a table that has several cells.
    pub row: bool,
    /// Whether it runs in another direction than most of its page.
    pub turned: bool,
}

/// Words of the glyphs that run in the direction `turned` quarters to the left from the right.
pub fn words(page: &PageText, turned: u8) -> Vec<Word> {
    let mut words = Words { done: Vec::new(), open: None, back: false, last: 0.0, pieces: Vec::new() };
    for glyph in page.glyphs.iter().filter(|glyph| direction(glyph) == turned) {
        words.glyph(glyph, &page.text[glyph.text.clone()], turned);
    }
    words.close(false);
    words.done
}

/// The direction in which a glyph runs, in quarters to the left from the right.
pub fn direction(glyph: &Glyph) -> u8 {
    let (dx, dy) = (glyph.to.0 - glyph.from.0, glyph.from.1 - glyph.to.1);
    if dx.abs() >= dy.abs() {
        if dx >= 0.0 { 0 } else { 2 }
    } else if dy > 0.0 {
        1
    } else {
        3
    }
}

fn turn(point: (f32, f32), turned: u8) -> (f32, f32) {
    match turned {
        1 => (-point.1, point.0),
        2 => (-point.0, -point.1),
        3 => (point.1, -point.0),
        _ => point,
    }
}

struct Words {
    done: Vec<Word>,
    open: Option<Word>,
    /// Whether the open word was shown from right to left.
    back: bool,
    /// Where the last glyph begins.
    last: f32,
    /// Where the text of each glyph of the open word begins.
    pieces: Vec<usize>,
}

impl Words {
    fn glyph(&mut self, glyph: &Glyph, text: &str, turned: u8) {
        let (from, to) = (turn(glyph.from, turned), turn(glyph.to, turned));
        let (x0, x1) = (from.0.min(to.0), from.0.max(to.0));
        if text.trim().is_empty() {
            // A glyph whose text another one carries still fills its place.
            match &mut self.open {
                Some(word) if text.is_empty() => word.x1 = word.x1.max(x1),
                _ => self.close(!text.is_empty()),
            }
            return;
        }
        if let Some(word) = &mut self.open {
            let size = word.size.max(glyph.size);
            let level =
                (word.y - from.1).abs() < 0.2 * size && glyph.size > 0.6 * word.size && word.size > 0.6 * glyph.size;
            // Bold text is sometimes text shown twice.
            if level && (x0 - self.last).abs() < 0.08 * size && word.text.ends_with(text) && x1 > x0 {
                return;
            }
            // TeX sets an accent and then the letter below it.
            let below = (word.y - from.1).abs() < 0.5 * size && x0 < word.x1 && x1 > self.last;
            if below && let Some(accented) = accented(&word.text, text) {
                word.text.pop();
                word.text.push_str(&accented);
                word.x1 = word.x1.max(x1);
                self.last = x0;
                return;
            }
            let gap = x0 - word.x1;
            // Two scripts that run against each other are two words, whatever is between them.
            let turns =
                is_rtl(text) && word.text.chars().next_back().is_some_and(|c| c.is_alphabetic() && !from_right(c));
            if level && !self.back && !turns && (-0.4 * size..=SPACE * size).contains(&gap) {
                self.pieces.push(word.text.len());
                word.text.push_str(text);
                word.x1 = word.x1.max(x1);
                self.last = x0;
                return;
            }
            let one = word.text.graphemes(true).count() == 1;
            let gap = word.x0 - x1;
            if level && (self.back || one) && is_rtl(text) && (-0.4 * size..=SPACE * size).contains(&gap) {
                word.text.push_str(text);
                word.x0 = x0;
                self.back = true;
                self.last = x0;
                return;
            }
        }
        self.close(false);
        self.last = x0;
        self.pieces = vec![0];
        self.open = Some(Word { x0, x1, y: from.1, size: glyph.size, text: text.to_owned(), space: false });
    }

    fn close(&mut self, space: bool) {
        let back = std::mem::take(&mut self.back);
        if let Some(mut word) = self.open.take() {
            // Glyphs that are read from the right but were shown from the left; what one of them says is in order.
            if !back && is_rtl(&word.text) {
                let ends = self.pieces.iter().skip(1).copied().chain([word.text.len()]);
                let pieces: Vec<&str> =
                    self.pieces.iter().zip(ends).filter_map(|(at, end)| word.text.get(*at..end)).collect();
                word.text = pieces.into_iter().rev().collect();
            }
            word.space = space || word.text.ends_with(char::is_whitespace);
            word.text.truncate(word.text.trim_end().len());
            self.done.push(word);
        } else if space && let Some(word) = self.done.last_mut() {
            word.space = true;
        }
    }
}

/// A letter with the accent that a word ends with.
fn accented(word: &str, text: &str) -> Option<String> {
    let mark = match word.chars().next_back()? {
        '`' => '\u{300}',
        '´' => '\u{301}',
        'ˆ' => '\u{302}',
        '˜' => '\u{303}',
        '¯' => '\u{304}',
        '˘' => '\u{306}',
        '˙' => '\u{307}',
        '¨' => '\u{308}',
        '˚' => '\u{30A}',
        '˝' => '\u{30B}',
        'ˇ' => '\u{30C}',
        '¸' => '\u{327}',
        _ => return None,
    };
    let mut letters = text.chars();
    let letter = match letters.next().filter(|c| c.is_alphabetic())? {
        'ı' => 'i',
        'ȷ' => 'j',
        letter => letter,
    };
    Some([letter, mark].into_iter().chain(letters).nfc().collect())
}

/// Whether all letters of a text are read from the right.
fn is_rtl(text: &str) -> bool {
    text.chars().any(from_right) && text.chars().all(|c| from_right(c) || !c.is_alphanumeric())
}

/// Whether a character is read from the right.
fn from_right(c: char) -> bool {
    matches!(c, '\u{590}'..='\u{8FF}' | '\u{FB1D}'..='\u{FDFF}' | '\u{FE70}'..='\u{FEFF}')
}

/// The lines of words that are one below the other.
pub fn rows(words: Vec<Word>) -> Vec<Vec<Word>> {
    let mut words = words;
    words.sort_by(|a, b| a.y.total_cmp(&b.y));
    let mut rows: Vec<(f32, f32, Vec<Word>)> = Vec::new();
    for word in words {
        let open = rows.iter_mut().rev().take(3).find(|(y, size, _)| {
            let top = (word.y - ASCENT * word.size).max(y - ASCENT * *size);
            let bottom = (word.y + DESCENT * word.size).min(y + DESCENT * *size);
            bottom - top > 0.5 * (ASCENT + DESCENT) * word.size.min(*size)
        });
        match open {
            Some((y, size, row)) => {
                if word.size > *size {
                    (*y, *size) = (word.y, word.size);
                }
                row.push(word);
            }
            None => rows.push((word.y, word.size, vec![word])),
        }
    }
    rows.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut rows: Vec<Vec<Word>> = rows.into_iter().map(|(_, _, row)| row).collect();
    rows.iter_mut().for_each(|row| row.sort_by(|a, b| a.x0.total_cmp(&b.x0)));
    rows
}

/// The text of a row.
pub fn line(mut row: Vec<Word>) -> Option<Line> {
    row.dedup_by(|b, a| a.text == b.text && (a.x0 - b.x0).abs() < 0.1 * a.size && (a.x1 - b.x1).abs() < 0.1 * a.size);
    let x0 = row.iter().map(|word| word.x0).fold(f32::INFINITY, f32::min);
    let x1 = row.iter().map(|word| word.x1).fold(f32::NEG_INFINITY, f32::max);
    let longest = row.iter().max_by(|a, b| (a.x1 - a.x0).total_cmp(&(b.x1 - b.x0)))?;
    let (y, size) = (longest.y, longest.size);
    let joints: Vec<bool> = row.windows(2).map(|pair| is_space(&pair[0], &pair[1])).collect();
    let first = joints.iter().position(|space| *space).map_or(x1, |last| row[last].x1) - x0;
    let letters = |rtl: bool| row.iter().filter(|w| is_rtl(&w.text) == rtl).map(|w| w.text.len()).sum::<usize>();
    let mut text = String::new();
    if letters(true) > 0 {
        text = both_ways(&row, letters(true) >= letters(false));
    } else {
        for (index, word) in row.iter().enumerate() {
            text.push_str(&word.text);
            if joints.get(index).is_some_and(|space| *space) {
                text.push(' ');
            }
        }
    }
    Some(Line { x0, x1, y, size, text, first, ..Line::default() })
}

fn is_space(a: &Word, b: &Word) -> bool {
    let gap = b.x0 - a.x1;
    let size = a.size.min(b.size);
    gap > SPACE * size || (a.space && gap > -0.3 * size)
}

/// The words of a row in which some are read from the right, in the order of reading.
fn both_ways(row: &[Word], all: bool) -> String {
    let mut runs: Vec<Vec<&str>> = Vec::new();
    let mut last = None;
    for word in row {
        // What is neither goes with what surrounds it.
        let rtl = if word.text.chars().any(char::is_alphanumeric) { is_rtl(&word.text) } else { last.unwrap_or(all) };
        match runs.last_mut() {
            Some(run) if last == Some(rtl) => {
                if rtl {
                    run.insert(0, &word.text);
                } else {
                    run.push(&word.text);
                }
            }
            _ => runs.push(vec![&word.text]),
        }
        last = Some(rtl);
    }
    if all {
        runs.reverse();
    }
    runs.concat().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(glyphs: &[(&str, f32, f32, f32)]) -> PageText {
        let mut page = PageText { width: 600.0, height: 800.0, ..PageText::default() };
        for (text, x, y, width) in glyphs {
            let start = page.text.len();
            page.text.push_str(text);
            let text = start..page.text.len();
            page.glyphs.push(Glyph { from: (*x, *y), to: (x + width, *y), size: 10.0, text });
        }
        page
    }

    fn text(page: &PageText) -> Vec<String> {
        rows(words(page, 0)).into_iter().filter_map(line).map(|line| line.text).collect()
    }

    #[test]
    fn gaps_and_spaces_separate_words() {
        let page = page(&[
            ("a", 0.0, 10.0, 5.0),
            ("b", 5.2, 10.0, 5.0),
            ("c", 12.0, 10.0, 5.0),
            (" ", 17.0, 10.0, 0.5),
            ("d", 17.5, 10.0, 5.0),
        ]);
        assert_eq!(text(&page), ["ab c d"]);
    }

    #[test]
    fn rows_are_made_by_place_and_a_raised_word_stays_in_its_row() {
        let page =
            page(&[("2", 0.0, 24.0, 5.0), ("x", 0.0, 10.0, 5.0), ("3", 20.0, 20.4, 5.0), ("1", 30.0, 10.0, 5.0)]);
        assert_eq!(text(&page), ["x 1", "2 3"]);
    }

    #[test]
    fn text_shown_twice_is_read_once() {
        let page = page(&[
            ("B", 0.0, 10.0, 6.0),
            ("B", 0.3, 10.0, 6.0),
            ("o", 6.0, 10.0, 5.0),
            ("o", 6.3, 10.0, 5.0),
            ("b", 11.0, 10.0, 5.0),
        ]);
        assert_eq!(text(&page), ["Bob"]);
    }

    #[test]
    fn an_accent_and_its_letter_are_one_character() {
        let word = [
            ("a", 0.0, 10.0, 5.0),
            ("¨", 5.0, 10.0, 5.0),
            ("ı", 6.1, 10.0, 2.8),
            ("v", 8.9, 10.0, 5.0),
            ("´", 14.0, 10.0, 5.0),
            ("e", 14.2, 10.0, 5.0),
        ];
        assert_eq!(text(&page(&word)), ["aïvé"]);
    }

    #[test]
    fn letters_from_the_right_are_stored_as_they_are_read() {
        // alef, bet, gimel, shown from the left and then from the right.
        let visual = page(&[("ג", 0.0, 10.0, 5.0), ("ב", 5.0, 10.0, 5.0), ("א", 10.0, 10.0, 5.0)]);
        assert_eq!(text(&visual), ["אבג"]);
        let logical = page(&[("א", 10.0, 10.0, 5.0), ("ב", 5.0, 10.0, 5.0), ("ג", 0.0, 10.0, 5.0)]);
        assert_eq!(text(&logical), ["אבג"]);
    }
}
