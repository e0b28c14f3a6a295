// SPDX-License-Identifier: PostgreSQL

//! Characters and lines of byte offsets, without counting from the start each time.

use rag_core::provenance::Span;
use std::ops::Range;

/// Bytes between two remembered character counts.
const STEP: usize = 4096;

/// An index of one text.
pub struct Positions<'a> {
    text: &'a str,
    /// Offsets of line feeds.
    newlines: Vec<usize>,
    /// Characters before byte `i * STEP`, rounded down to a character.
    chars: Vec<u64>,
}

impl<'a> Positions<'a> {
    /// Indexes a text in one pass.
    pub fn new(text: &'a str) -> Self {
        let newlines = text.bytes().enumerate().filter(|(_, b)| *b == b'\n').map(|(i, _)| i).collect();
        let mut chars = vec![0];
        let (mut from, mut total) = (0, 0);
        for mark in (STEP..=text.len()).step_by(STEP) {
            let to = text.floor_char_boundary(mark);
            total += text[from..to].chars().count() as u64;
            chars.push(total);
            from = to;
        }
        Self { text, newlines, chars }
    }

    /// The span of a byte range.
    pub fn span(&self, range: Range<usize>) -> Span {
        let last = range.end.saturating_sub(1).max(range.start);
        Span {
            byte_start: range.start as u64,
            byte_end: range.end as u64,
            char_start: self.char_of(range.start),
            char_end: self.char_of(range.end),
            line_start: self.line_of(range.start),
            line_end: self.line_of(last),
        }
    }

    fn char_of(&self, byte: usize) -> u64 {
        let mark = (byte / STEP).min(self.chars.len() - 1);
        let from = self.text.floor_char_boundary(mark * STEP);
        self.chars[mark] + self.text[from..byte].chars().count() as u64
    }

    fn line_of(&self, byte: usize) -> u32 {
        u32::try_from(self.newlines.partition_point(|newline| *newline < byte) + 1).unwrap_or(u32::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_counting_from_the_start() {
        for text in ["", "a\nb\n", &"é漢\n🙂x".repeat(2000), &"x".repeat(STEP), &"é".repeat(STEP)] {
            let positions = Positions::new(text);
            let places: Vec<usize> = text.char_indices().map(|(i, _)| i).chain([text.len()]).collect();
            for at in places.into_iter().step_by(7) {
                let before = &text[..at];
                assert_eq!(positions.char_of(at), before.chars().count() as u64, "{at}");
                assert_eq!(positions.line_of(at) as usize, before.matches('\n').count() + 1, "{at}");
            }
        }
    }
}
