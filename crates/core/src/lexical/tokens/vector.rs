// SPDX-License-Identifier: PostgreSQL

//! A `tsvector` of all terms, within the limits of one.
//!
//! A text that is too much for a `tsvector` is indexed as far as it goes: positions saturate, and when the bytes are used up
//! the terms that stand last are left out. Only text that is not cut into chunks gets there.

use crate::lexical::tsvector::{Lexeme, MAX_BYTES, MAX_LEXEME_BYTES, MAX_POSITION, MAX_POSITIONS, size};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// How far terms that are not lexemes stand apart.
const STEP: u16 = 2;

/// Puts together the lexemes of the pieces of a text and what else it has, each so many times.
pub fn assemble(pieces: &[Vec<Lexeme>], extra: BTreeMap<Cow<'_, str>, u32>) -> Vec<Lexeme> {
    let mut terms: BTreeMap<Cow<'_, str>, Vec<u16>> = BTreeMap::new();
    let mut last = 0u16;
    for piece in pieces {
        let before = last;
        for (lexeme, positions) in piece {
            let term = terms.entry(Cow::Borrowed(lexeme)).or_default();
            for position in positions {
                let position = before.saturating_add(*position).min(MAX_POSITION);
                last = last.max(position);
                term.push(position);
            }
        }
    }
    for (term, count) in extra {
        terms.entry(term).or_default().extend(behind(last, count as usize));
    }
    let terms = terms.into_iter().filter(|(term, _)| (1..=MAX_LEXEME_BYTES).contains(&term.len()));
    limited(terms.map(|(term, positions)| (term.into_owned(), saturated(positions))).collect())
}

/// Counts the terms of a part `times` more.
pub fn emphasised(terms: Vec<Lexeme>, part: &[Lexeme], times: u32) -> Vec<Lexeme> {
    let last = terms.iter().filter_map(|(_, positions)| positions.last()).max().copied().unwrap_or(0);
    let mut terms: BTreeMap<String, Vec<u16>> = terms.into_iter().collect();
    for (term, positions) in part {
        let more = behind(last, positions.len().saturating_mul(times as usize));
        terms.entry(term.clone()).or_default().extend(more);
    }
    limited(terms.into_iter().map(|(term, positions)| (term, saturated(positions))).collect())
}

/// So many positions behind the last one. However long the text is, there is room for as many as a term may have.
fn behind(last: u16, count: usize) -> impl Iterator<Item = u16> {
    let start = last.saturating_add(STEP).min(MAX_POSITION - STEP * (MAX_POSITIONS as u16 - 1));
    (start..=MAX_POSITION).step_by(usize::from(STEP)).take(count)
}

/// Distinct positions in ascending order, the first ones.
fn saturated(mut positions: Vec<u16>) -> Vec<u16> {
    if !positions.is_sorted_by(|a, b| a < b) {
        positions.sort_unstable();
        positions.dedup();
    }
    positions.truncate(MAX_POSITIONS);
    positions
}

/// The terms that stand first, as many as there is room for.
fn limited(mut terms: Vec<Lexeme>) -> Vec<Lexeme> {
    let all: usize = terms.iter().map(|(term, positions)| size(term, positions)).sum();
    if all <= MAX_BYTES {
        return terms;
    }
    terms.sort_by_key(|(_, positions)| positions.first().copied());
    let mut room = MAX_BYTES;
    terms.retain(|(term, positions)| {
        let fits = size(term, positions) <= room;
        room = if fits { room - size(term, positions) } else { 0 };
        fits
    });
    terms.sort();
    terms
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lexeme(text: &str, positions: impl IntoIterator<Item = u16>) -> Lexeme {
        (text.to_owned(), positions.into_iter().collect())
    }

    #[test]
    fn pieces_follow_each_other_and_the_rest_stands_apart() {
        let pieces = [vec![lexeme("a", [1, 3]), lexeme("b", [2])], vec![lexeme("a", [2])]];
        let extra = BTreeMap::from([(Cow::Borrowed("a"), 1), (Cow::Borrowed("c"), 3)]);
        let expected = [lexeme("a", [1, 3, 5, 7]), lexeme("b", [2]), lexeme("c", [7, 9, 11])];
        assert_eq!(assemble(&pieces, extra), expected);
    }

    #[test]
    fn what_is_emphasised_counts_more_and_stands_behind() {
        let terms = vec![lexeme("a", [1, 3]), lexeme("b", [2])];
        let expected = [lexeme("a", [1, 3, 5, 7]), lexeme("b", [2]), lexeme("c", [5, 7])];
        assert_eq!(emphasised(terms, &[lexeme("a", [1]), lexeme("c", [2])], 2), expected);
        let full = emphasised(vec![lexeme("a", [16_383])], &[lexeme("a", 1..=200), lexeme("b", 1..=200)], 2);
        assert!(full.iter().all(|(_, p)| p.len() == 255 && p.is_sorted_by(|a, b| a < b) && p[254] == 16_383));
    }

    #[test]
    fn what_is_too_much_is_cut_at_the_end() {
        let many = |at: u16| (0..3000).map(|i| lexeme(&format!("{i:0>300}"), [at])).collect::<Vec<_>>();
        let long = [lexeme("b", 1..=255), lexeme(&"x".repeat(2047), [1]), lexeme("", [1])];
        let pieces = [
            many(1),
            many(16_000),
            long.to_vec(),
            long.to_vec(),
            (0..3000).map(|i| lexeme(&format!("z{i:0>300}"), [9])).collect(),
        ];
        let terms = assemble(&pieces, BTreeMap::from([(Cow::Borrowed("c"), 1000), (Cow::Borrowed("b"), 1000)]));
        assert!(terms.iter().map(|(t, p)| size(t, p)).sum::<usize>() <= MAX_BYTES);
        assert!(terms.iter().all(|(t, p)| !t.is_empty() && t.len() <= MAX_LEXEME_BYTES && p.len() <= MAX_POSITIONS));
        assert!(
            terms.iter().all(|(_, p)| p.is_sorted_by(|a, b| a < b) && p.iter().all(|p| (1..=MAX_POSITION).contains(p)))
        );
        assert!(terms.is_sorted());
        let of = |term: &str| terms.iter().find(|t| t.0 == term).map(|t| t.1.len());
        assert_eq!((of(&format!("{:0>300}", 7)), of("c"), of("b")), (Some(2), Some(255), Some(255)));
        assert!((1..3000).contains(&terms.iter().filter(|t| t.0.starts_with('z')).count()));
    }
}
