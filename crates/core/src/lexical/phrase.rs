// SPDX-License-Identifier: PostgreSQL

//! Phrases: words that must stand next to each other, as they are written.
//!
//! Owns what "as written" means. A text is a row of words; a phrase is in it when the words of the phrase stand in it in
//! their order with no word between them. Case, the forms that NFKC makes equal, and whatever stands between words (spaces,
//! line ends, punctuation, the marks of Markdown) do not matter. Nothing is stemmed and no word is a stop word.
//!
//! Checked on the text and not on the positions of a `tsvector`: those are of lexemes, so "exact words" would be found in
//! "exactly a word", and they end at [`super::tsvector::MAX_POSITION`].
//!
//! - A word is a run of letters, digits and underscores, with `+` and `#` where they follow it (`C++`, `C#`), without the
//!   underscores around it, which are more often emphasis than part of a name.
//! - Han, Kana and Hangul are words by the character, because nothing is written between their words.

use super::tokens::{self, is_cjk, is_word};

/// What stands between words; no word has it.
const BOUNDARY: char = '\u{0}';

/// The words of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Words(String);

impl Words {
    /// Reads a text.
    pub fn of(text: &str) -> Self {
        let text = tokens::lower(&tokens::normalise(text));
        let mut words = Self(String::with_capacity(text.len() + 2));
        words.0.push(BOUNDARY);
        let mut word = String::new();
        for c in text.chars() {
            if is_cjk(c) {
                words.add(&mut word);
                word.push(c);
                words.add(&mut word);
            } else if is_word(c) || (!word.is_empty() && matches!(c, '+' | '#')) {
                word.push(c);
            } else {
                words.add(&mut word);
            }
        }
        words.add(&mut word);
        words
    }

    fn add(&mut self, word: &mut String) {
        let inner = word.trim_matches('_');
        if !inner.is_empty() {
            self.0.push_str(inner);
            self.0.push(BOUNDARY);
        }
        word.clear();
    }

    /// Each of them.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.split_terminator(BOUNDARY).skip(1)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.len() == BOUNDARY.len_utf8()
    }

    /// Whether the words of a phrase stand among these. Linear in the text, whatever the phrase is.
    pub fn have(&self, phrase: &Self) -> bool {
        self.0.contains(&phrase.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn has(text: &str, phrase: &str) -> bool {
        Words::of(text).have(&Words::of(phrase))
    }

    #[test]
    fn words_stand_next_to_each_other_as_written() {
        for (text, phrase) in [
            ("The Exact\nWords.", "exact words"),
            ("**exact** words", "exact words"),
            ("_exact_ __words__", "exact words"),
            ("read-only", "read only"),
            ("ﬁle ＨＴＴＰ", "file http"),
            ("soft\u{ad}ware", "software"),
            ("it’s", "it's"),
            ("in C++ code", "C++ code"),
            ("全文検索エンジンの", "検索エンジン"),
            ("ΛΟΓΟΣ και", "λόγος και".replace('ό', "ο").as_str()),
        ] {
            assert!(has(text, phrase), "{phrase} in {text}");
        }
        for (text, phrase) in [
            ("exactly words", "exact words"),
            ("exact word", "exact words"),
            ("words exact", "exact words"),
            ("exact other words", "exact words"),
            ("in C code", "C++ code"),
            ("read_only", "read only"),
            ("検索の全文", "全文検索"),
        ] {
            assert!(!has(text, phrase), "{phrase} not in {text}");
        }
    }

    #[test]
    fn punctuation_is_no_word() {
        assert!(Words::of(" ...!? + # ").is_empty());
        assert!(Words::of("_ ___").is_empty());
        assert_eq!(Words::of("a_b, C# 検索").iter().collect::<Vec<_>>(), ["a_b", "c#", "検", "索"]);
        assert_eq!(Words::of("!").iter().count(), 0);
    }

    proptest! {
        #[test]
        fn it_is_a_run_of_equal_words(text in "[ab検 ,+]{0,20}", phrase in "[ab検 ,+]{0,4}") {
            let split = |text: &str| {
                let spaced: String = text.chars().flat_map(|c| match c {
                    '検' => vec![' ', c, ' '],
                    ',' => vec![' '],
                    c => vec![c],
                }).collect();
                // A plus that follows no word is none.
                let words = spaced.split(' ').map(|w| w.trim_start_matches('+').to_owned());
                words.map(|w| w.strip_prefix('検').map_or(w.clone(), |_| "検".to_owned())).filter(|w| !w.is_empty()).collect::<Vec<_>>()
            };
            let (all, some) = (split(&text), split(&phrase));
            let right = some.is_empty() || all.windows(some.len()).any(|w| w == some);
            prop_assert_eq!(has(&text, &phrase), right);
        }
    }
}
