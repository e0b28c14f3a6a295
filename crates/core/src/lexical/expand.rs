// SPDX-License-Identifier: PostgreSQL

//! Terms of the vocabulary that begin like a word or are written nearly like it.
//!
//! Owns prefix and fuzzy expansion over a vocabulary in byte order, which may be a list or an index of a table. Both are
//! bounded twice, by what they return and by what they look at, and say when a bound was met. Distance is that of
//! Levenshtein with a swap of neighbours as one edit, decided by an automaton (Schulz and Mihov, "Fast string correction
//! with Levenshtein automata", 2002): where no word can follow, the vocabulary is asked for the next place where one can.

use crate::error::{Error, Result};
use levenshtein_automata::{DFA, Distance, LevenshteinAutomatonBuilder, SINK_STATE};
use std::sync::LazyLock;

/// A vocabulary in ascending byte order.
pub trait Vocabulary {
    /// The first term at or after `from`, with the number of documents that have it.
    fn at_or_after(&mut self, from: &[u8]) -> Result<Option<(String, u64)>>;
}

/// A sorted list is a vocabulary.
impl Vocabulary for &[(String, u64)] {
    fn at_or_after(&mut self, from: &[u8]) -> Result<Option<(String, u64)>> {
        Ok(self.get(self.partition_point(|(term, _)| term.as_bytes() < from)).cloned())
    }
}

/// The bounds of an expansion.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// The most terms returned.
    pub terms: usize,
    /// The most terms looked at.
    pub visits: usize,
}

/// A term that a word stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expanded {
    /// The term.
    pub term: String,
    /// Documents that have it.
    pub df: u64,
    /// Edits from the word; 0 for a prefix.
    pub distance: u8,
}

/// What a word stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expansion {
    /// Nearest first, then by df, highest first, then by the term.
    pub terms: Vec<Expanded>,
    /// False when a bound was met, so that there may be more.
    pub complete: bool,
}

/// The longest word that is expanded, in bytes; automata of longer ones would take megabytes.
pub const MAX_WORD: usize = 64;
/// The most edits.
pub const MAX_DISTANCE: u8 = 2;

static AUTOMATA: LazyLock<[LevenshteinAutomatonBuilder; 3]> =
    LazyLock::new(|| [0, 1, 2].map(|distance| LevenshteinAutomatonBuilder::new(distance, true)));

/// The terms that begin with `prefix`.
pub fn prefix(vocabulary: &mut dyn Vocabulary, prefix: &str, limits: Limits) -> Result<Expansion> {
    let mut found = Vec::new();
    let mut from = prefix.as_bytes().to_vec();
    let mut complete = true;
    while let Some((term, df)) = vocabulary.at_or_after(&from)?.filter(|(term, _)| term.starts_with(prefix)) {
        if found.len() == limits.visits {
            complete = false;
            break;
        }
        from = after(&term);
        found.push(Expanded { term, df, distance: 0 });
    }
    Ok(best(found, complete, limits))
}

/// The terms within `distance` edits of `word` that share its first `same` characters.
///
/// More than [`MAX_DISTANCE`] edits, or a word longer than [`MAX_WORD`], is an invalid argument.
pub fn fuzzy(
    vocabulary: &mut dyn Vocabulary,
    word: &str,
    distance: u8,
    same: usize,
    limits: Limits,
) -> Result<Expansion> {
    let Some(automaton) = AUTOMATA.get(usize::from(distance)) else {
        return Err(Error::invalid(format!("fuzzy distance {distance} is more than {MAX_DISTANCE}")));
    };
    if word.len() > MAX_WORD {
        return Err(Error::invalid(format!("\"{word}\" is too long for a fuzzy search, which takes {MAX_WORD} bytes")));
    }
    let start = &word[..word.char_indices().nth(same).map_or(word.len(), |(at, _)| at)];
    let automaton = automaton.build_dfa(word);
    let mut found = Vec::new();
    let mut from = start.as_bytes().to_vec();
    let mut complete = true;
    let mut visits = 0;
    while let Some((term, df)) = vocabulary.at_or_after(&from)?.filter(|(term, _)| term.starts_with(start)) {
        if visits == limits.visits {
            complete = false;
            break;
        }
        visits += 1;
        match walk(&automaton, term.as_bytes()) {
            Walked::Whole(Distance::Exact(edits)) => {
                from = after(&term);
                found.push(Expanded { term, df, distance: edits });
            }
            Walked::Whole(Distance::AtLeast(_)) => from = after(&term),
            // Nothing that begins like this is near; go on behind all of it.
            Walked::Dead(end) => match behind(&term.as_bytes()[..end]) {
                Some(next) => from = next,
                None => break,
            },
        }
    }
    Ok(best(found, complete, limits))
}

enum Walked {
    Whole(Distance),
    /// No term that has these first bytes is near.
    Dead(usize),
}

fn walk(automaton: &DFA, term: &[u8]) -> Walked {
    let mut state = automaton.initial_state();
    for (at, byte) in term.iter().enumerate() {
        state = automaton.transition(state, *byte);
        if state == SINK_STATE {
            return Walked::Dead(at + 1);
        }
    }
    Walked::Whole(automaton.distance(state))
}

/// The first bytes behind `term` itself.
fn after(term: &str) -> Vec<u8> {
    let mut next = term.as_bytes().to_vec();
    next.push(0);
    next
}

/// The first bytes behind everything that begins with `start`; `None` when there are none.
fn behind(start: &[u8]) -> Option<Vec<u8>> {
    let end = start.iter().rposition(|b| *b < u8::MAX)?;
    let mut next = start[..=end].to_vec();
    next[end] += 1;
    Some(next)
}

fn best(mut found: Vec<Expanded>, complete: bool, limits: Limits) -> Expansion {
    let complete = complete && found.len() <= limits.terms;
    found.sort_by(|a, b| a.distance.cmp(&b.distance).then(b.df.cmp(&a.df)).then_with(|| a.term.cmp(&b.term)));
    found.truncate(limits.terms);
    Expansion { terms: found, complete }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    const WIDE: Limits = Limits { terms: 1000, visits: 10_000 };

    fn vocabulary(words: &[(&str, u64)]) -> Vec<(String, u64)> {
        let words: BTreeMap<String, u64> = words.iter().map(|(w, df)| ((*w).to_owned(), *df)).collect();
        words.into_iter().collect()
    }

    fn terms(expansion: &Expansion) -> Vec<&str> {
        expansion.terms.iter().map(|e| e.term.as_str()).collect()
    }

    #[test]
    fn the_nearest_and_then_the_most_frequent_come_first() {
        let words = vocabulary(&[("fusion", 9), ("fusoin", 1), ("fusions", 4), ("vision", 90), ("diffusion", 50)]);
        let found = fuzzy(&mut words.as_slice(), "fusion", 2, 1, WIDE).expect("valid");
        assert_eq!(terms(&found), ["fusion", "fusions", "fusoin"], "a swap is one edit");
        let found = fuzzy(&mut words.as_slice(), "fusion", 2, 0, WIDE).expect("valid");
        assert_eq!(terms(&found), ["fusion", "fusions", "fusoin", "vision"]);
        assert!(found.complete);
    }

    #[test]
    fn bounds_are_met_and_told() {
        let words = vocabulary(&[("aa", 1), ("ab", 5), ("ac", 3), ("b", 9)]);
        let all = prefix(&mut words.as_slice(), "a", WIDE).expect("valid");
        assert_eq!((terms(&all), all.complete), (vec!["ab", "ac", "aa"], true));
        for limits in [Limits { terms: 2, visits: 10 }, Limits { terms: 10, visits: 2 }] {
            let some = prefix(&mut words.as_slice(), "a", limits).expect("valid");
            assert_eq!((some.terms.len(), some.complete), (2, false));
        }
        let few = fuzzy(&mut words.as_slice(), "ax", 1, 1, Limits { terms: 9, visits: 1 }).expect("valid");
        assert_eq!((terms(&few), few.complete), (vec!["aa"], false));
    }

    #[test]
    fn what_is_out_of_range_is_an_error() {
        assert!(fuzzy(&mut [].as_slice(), "word", 3, 1, WIDE).is_err());
        assert!(fuzzy(&mut [].as_slice(), &"w".repeat(65), 1, 1, WIDE).is_err());
    }

    /// Edits with swaps of neighbours, each place edited once at most, by the textbook's table.
    fn distance(a: &str, b: &str) -> usize {
        strsim::osa_distance(a, b)
    }

    proptest! {
        #[test]
        fn all_near_words_are_found(
            words in proptest::collection::vec("[abcé]{1,6}", 0..60),
            word in "[abcé]{1,5}",
            edits in 0..=2u8,
            same in 0..3usize,
        ) {
            let words = vocabulary(&words.iter().map(|w| (w.as_str(), 1)).collect::<Vec<_>>());
            let found = fuzzy(&mut words.as_slice(), &word, edits, same, WIDE).expect("valid");
            let start: String = word.chars().take(same).collect();
            let mut right: Vec<(usize, &str)> = words.iter().map(|(w, _)| (distance(w, &word), w.as_str())).collect();
            right.retain(|(d, w)| *d <= usize::from(edits) && w.starts_with(&start));
            right.sort_unstable();
            let found: Vec<(usize, &str)> =
                found.terms.iter().map(|e| (usize::from(e.distance), e.term.as_str())).collect();
            prop_assert_eq!(found, right);
        }
    }
}
