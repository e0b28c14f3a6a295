// SPDX-License-Identifier: PostgreSQL

//! From a span of a document to the passages that hold it.
//!
//! A passage is gold when it has at least half of the span, or when at least half of it lies in the span; where none does, the
//! one with the largest part is (the first of equals). So one line that happens to stand at the end of the neighbour does not
//! make the neighbour gold, and every span that touches a passage has one. Lengths are counted in what the span is given in:
//! lines, pages or characters.
//!
//! A quote is looked for in the text of the document as its passages have it, in their order, each character once however
//! passages overlap; runs of white space are one blank. It must be there exactly once: a quote that is gone is stale, and one
//! that is there twice says nothing about where. Records that were cut by somebody else have no positions; their passages are
//! looked at one by one.

use super::question::Span;

/// A passage of the document.
#[derive(Debug, Clone)]
pub struct Passage {
    /// Its id.
    pub id: i64,
    /// Its content.
    pub content: String,
    /// First character and one past the last, if known.
    pub chars: Option<(u64, u64)>,
    /// First and last line, if known.
    pub lines: Option<(u32, u32)>,
    /// First and last page, if known.
    pub pages: Option<(u32, u32)>,
}

/// Why a span is nowhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unresolved {
    /// No passage has any of it.
    Nowhere,
    /// The document has no positions of that kind.
    WithoutPositions,
    /// The quote is there more than once.
    Ambiguous,
}

impl Unresolved {
    /// What to say of it.
    pub fn message(self) -> &'static str {
        match self {
            Unresolved::Nowhere => "is not in any passage",
            Unresolved::WithoutPositions => "cannot be looked for: the document has no such positions",
            Unresolved::Ambiguous => "is there more than once",
        }
    }
}

/// Ids of the passages that hold `span`, in the order of the passages; all of them for a whole document.
pub fn resolve(span: &Span, passages: &[Passage]) -> Result<Vec<i64>, Unresolved> {
    let closed = |(a, b): (u32, u32)| (u64::from(a), u64::from(b) + 1);
    let known = |range: fn(&Passage) -> Option<(u64, u64)>| -> Vec<(i64, (u64, u64))> {
        passages.iter().filter_map(|p| range(p).map(|r| (p.id, r))).collect()
    };
    match span {
        Span::Document if passages.is_empty() => Err(Unresolved::Nowhere),
        Span::Document => Ok(passages.iter().map(|p| p.id).collect()),
        Span::Lines(a, b) => {
            holders(closed((*a, *b)), &known(|p| p.lines.map(|(a, b)| (u64::from(a), u64::from(b) + 1))))
        }
        Span::Pages(a, b) => {
            holders(closed((*a, *b)), &known(|p| p.pages.map(|(a, b)| (u64::from(a), u64::from(b) + 1))))
        }
        Span::Chars(a, b) => holders((*a, *b), &known(|p| p.chars)),
        Span::Quote(quote) => quoted(quote, passages),
    }
}

/// The passages that hold a range, by the rule of this module.
fn holders(span: (u64, u64), passages: &[(i64, (u64, u64))]) -> Result<Vec<i64>, Unresolved> {
    if passages.is_empty() {
        return Err(Unresolved::WithoutPositions);
    }
    let shared = |(from, to): (u64, u64)| to.min(span.1).saturating_sub(from.max(span.0));
    let holds = |range: (u64, u64)| {
        let shared = shared(range);
        let shorter = (span.1 - span.0).min(range.1.saturating_sub(range.0));
        shared > 0 && shared * 2 >= shorter
    };
    let held: Vec<i64> = passages.iter().filter(|(_, range)| holds(*range)).map(|(id, _)| *id).collect();
    if !held.is_empty() {
        return Ok(held);
    }
    let largest = passages.iter().map(|(id, range)| (shared(*range), *id)).rev().max_by_key(|(shared, _)| *shared);
    match largest {
        Some((shared, id)) if shared > 0 => Ok(vec![id]),
        _ => Err(Unresolved::Nowhere),
    }
}

fn quoted(quote: &str, passages: &[Passage]) -> Result<Vec<i64>, Unresolved> {
    let quote: Vec<char> = loose(quote.chars().map(|c| (c, 0))).into_iter().map(|(c, _)| c).collect();
    let placed: Option<Vec<(i64, (u64, u64))>> = passages.iter().map(|p| p.chars.map(|range| (p.id, range))).collect();
    let Some(placed) = placed else {
        let has = |p: &&Passage| !places(&quote, &loose(p.content.chars().map(|c| (c, 0)))).is_empty();
        let ids: Vec<i64> = passages.iter().filter(has).map(|p| p.id).collect();
        return match ids.len() {
            0 => Err(Unresolved::Nowhere),
            1 => Ok(ids),
            _ => Err(Unresolved::Ambiguous),
        };
    };
    let text = loose(stored_text(passages).into_iter());
    match places(&quote, &text)[..] {
        [] => Err(Unresolved::Nowhere),
        [at] => holders((text[at].1, text[at + quote.len() - 1].1 + 1), &placed),
        _ => Err(Unresolved::Ambiguous),
    }
}

/// The characters of the document that its passages have, with their positions; a gap is a blank.
fn stored_text(passages: &[Passage]) -> Vec<(char, u64)> {
    let mut ordered: Vec<(&Passage, (u64, u64))> = passages.iter().filter_map(|p| p.chars.map(|c| (p, c))).collect();
    ordered.sort_by_key(|(p, range)| (*range, p.id));
    let mut text: Vec<(char, u64)> = Vec::new();
    let mut end = 0;
    for (passage, (from, to)) in ordered {
        if from > end {
            text.push((' ', end));
        }
        let known = usize::try_from(end.saturating_sub(from)).unwrap_or(usize::MAX);
        text.extend(passage.content.chars().zip(from..to).skip(known));
        end = end.max(to);
    }
    text
}

/// With runs of white space as one blank, and none at the ends.
fn loose(text: impl Iterator<Item = (char, u64)>) -> Vec<(char, u64)> {
    let mut out: Vec<(char, u64)> = Vec::new();
    for (c, at) in text {
        match c.is_whitespace() {
            true if out.last().is_none_or(|(last, _)| *last == ' ') => {}
            true => out.push((' ', at)),
            false => out.push((c, at)),
        }
    }
    if out.last().is_some_and(|(last, _)| *last == ' ') {
        out.pop();
    }
    out
}

/// Where `quote` begins in `text`, at most twice.
fn places(quote: &[char], text: &[(char, u64)]) -> Vec<usize> {
    if quote.is_empty() || text.len() < quote.len() {
        return Vec::new();
    }
    let begins = |at: &usize| quote.iter().zip(&text[*at..]).all(|(q, (c, _))| q == c);
    (0..=text.len() - quote.len()).filter(begins).take(2).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn passages(lines: &[(u32, u32)]) -> Vec<Passage> {
        let one = |(n, (a, b)): (usize, &(u32, u32))| Passage {
            id: n as i64 + 1,
            content: String::new(),
            chars: None,
            lines: Some((*a, *b)),
            pages: None,
        };
        lines.iter().enumerate().map(one).collect()
    }

    /// Passages of a text cut at byte offsets, each beginning `overlap` characters early.
    fn cut(text: &str, at: &[usize], overlap: usize) -> Vec<Passage> {
        let chars: Vec<char> = text.chars().collect();
        let ends = at.iter().copied().chain([chars.len()]);
        let begins = std::iter::once(0).chain(at.iter().map(|a| a.saturating_sub(overlap)));
        (1..)
            .zip(begins.zip(ends))
            .map(|(id, (from, to))| Passage {
                id,
                content: chars[from..to].iter().collect(),
                chars: Some((from as u64, to as u64)),
                lines: None,
                pages: None,
            })
            .collect()
    }

    #[test]
    fn one_line_in_the_neighbour_does_not_make_it_gold() {
        let all = passages(&[(1, 10), (11, 30), (31, 40)]);
        assert_eq!(resolve(&Span::Lines(10, 12), &all), Ok(vec![2]));
        assert_eq!(resolve(&Span::Lines(9, 12), &all), Ok(vec![1, 2]), "half in each");
        assert_eq!(resolve(&Span::Lines(1, 40), &all), Ok(vec![1, 2, 3]));
        assert_eq!(resolve(&Span::Lines(15, 15), &all), Ok(vec![2]));
        assert_eq!(resolve(&Span::Lines(41, 50), &all), Err(Unresolved::Nowhere));
        assert_eq!(resolve(&Span::Pages(1, 1), &all), Err(Unresolved::WithoutPositions));
    }

    #[test]
    fn a_span_that_nobody_has_half_of_goes_to_the_largest_part() {
        let all = passages(&[(1, 100), (101, 200), (201, 300)]);
        // 3 and 3 of 6 lines, and 31 of 62 and so on, are halves; a third each is none.
        let spread = passages(&[(1, 4), (5, 8), (9, 12)]);
        assert_eq!(resolve(&Span::Lines(4, 9), &spread), Ok(vec![2]), "the one in the middle is wholly inside");
        assert_eq!(resolve(&Span::Lines(99, 104), &all), Ok(vec![2]));
        let gaps = passages(&[(1, 10), (15, 24)]);
        assert_eq!(resolve(&Span::Lines(9, 16), &gaps), Ok(vec![1]), "the first of equals");
    }

    #[test]
    fn a_quote_is_found_across_passages_and_white_space() {
        let text = "The pump is primed\n\nby opening valve B for ten seconds. Then close it.";
        let all = cut(text, &[30, 40], 5);
        assert_eq!(resolve(&Span::Quote("primed by  opening".into()), &all), Ok(vec![1]));
        assert_eq!(resolve(&Span::Quote("Then close".into()), &all), Ok(vec![3]));
        assert_eq!(resolve(&Span::Quote("valve C".into()), &all), Err(Unresolved::Nowhere));
        assert_eq!(resolve(&Span::Quote("e".into()), &all), Err(Unresolved::Ambiguous));
        assert_eq!(resolve(&Span::Quote(text.into()), &all), Ok(vec![1, 2, 3]));
    }

    #[test]
    fn records_without_positions_are_looked_at_one_by_one() {
        let mut all = cut("one two three four", &[8], 0);
        for passage in &mut all {
            passage.chars = None;
        }
        assert_eq!(resolve(&Span::Quote("three".into()), &all), Ok(vec![2]));
        assert_eq!(resolve(&Span::Quote("two three".into()), &all), Err(Unresolved::Nowhere));
        assert_eq!(resolve(&Span::Quote("o".into()), &all), Err(Unresolved::Ambiguous));
        assert_eq!(resolve(&Span::Document, &all), Ok(vec![1, 2]));
        assert_eq!(resolve(&Span::Document, &[]), Err(Unresolved::Nowhere));
    }

    proptest! {
        /// However a text is cut: a quote of it that is there once resolves to what its characters resolve to.
        #[test]
        fn a_quote_is_its_characters(
            text in "[ab]{0,10}[a-d ]{20,60}",
            cuts in proptest::collection::btree_set(1usize..40, 0..5),
            overlap in 0usize..6,
            from in 0usize..30,
            length in 3usize..20,
        ) {
            let chars: Vec<char> = text.chars().collect();
            let cuts: Vec<usize> = cuts.into_iter().filter(|c| *c < chars.len()).collect();
            let to = (from + length).min(chars.len());
            prop_assume!(from < to && !chars[from].is_whitespace() && !chars[to - 1].is_whitespace());
            let all = cut(&text, &cuts, overlap);
            let quote: String = chars[from..to].iter().collect();
            let by_quote = resolve(&Span::Quote(quote), &all);
            if by_quote != Err(Unresolved::Ambiguous) {
                prop_assert_eq!(by_quote, resolve(&Span::Chars(from as u64, to as u64), &all));
            }
        }

        #[test]
        fn what_touches_a_passage_has_one(
            lengths in proptest::collection::vec(1u32..50, 1..20), from in 1u32..300, length in 1u32..80,
        ) {
            let mut lines = Vec::new();
            let mut next = 1;
            for length in lengths {
                lines.push((next, next + length - 1));
                next += length;
            }
            let held = resolve(&Span::Lines(from, from + length - 1), &passages(&lines));
            prop_assert_eq!(held.is_ok(), from < next);
        }
    }
}
