// SPDX-License-Identifier: PostgreSQL

//! Words of a query that stand for more than themselves.
//!
//! Owns which words these are, what is looked up for each, and what a term that was found counts. The looking up is
//! [`expand`]'s; whose vocabulary it is, the caller decides, and must give one that holds nothing the searcher may not see.
//!
//! **Forms.** The vocabulary of an index holds lexemes, not words: "retrieval" is in it as `retriev`. So a word is looked up
//! in several forms: as it is written, in lower case, and as what the configurations and [`tokens`] make of it.
//!
//! - *Fuzzy*: a misspelt word is stemmed first and then compared with stems, which are as near to each other as the words
//!   were, or nearer; its written form is compared too, for words that are stored as they are written. A word that no
//!   configuration makes anything of is a stop word, and stands for nothing.
//! - *Prefix*: the last word, if no white space follows it, is not ended, so it is looked up even if it is a stop word so far
//!   ("the" on the way to "theory"). Its forms are the word as written, the part behind its last separator (`sto` of
//!   `src/sto`), and the lexemes of that part. A word that has grown beyond the stem of what it will become ("retrieva")
//!   finds nothing more until it is whole; `fuzzy` bridges that.
//!
//! **Edits.** So many as the caller allows, but none in a form of less than [`ONE_EDIT`] characters, one at most in a form of
//! less than [`TWO_EDITS`], and none in a form with a digit, which is another number with an edit. The first character must
//! be the same.
//!
//! **Weights.** A word of the query counts 1, as often as the query has it. What it stands for counts [`PREFIX`], [`ONE`] or
//! [`TWO`] of that, by how it was found, the most that any way gives, however many words stand for it. A term that the query has
//! itself counts as that and nothing more. Each has its own df.
//!
//! **Bounds.** [`FORM`] for one form; for all of a query [`VISITS`] terms looked at and [`ADDED`] added. Words that met one are
//! named ([`Widened::bounded`]).

use super::expand::{self, Limits, Vocabulary};
use super::tokens::{self, Lexer, is_word};
use crate::error::Result;
use std::collections::{BTreeMap, BTreeSet};

/// What a term counts that begins with a word.
pub const PREFIX: f64 = 0.5;
/// What a term counts that is one edit away.
pub const ONE: f64 = 0.5;
/// What a term counts that is two edits away.
pub const TWO: f64 = 0.25;

/// Characters from which on a form may have one edit.
pub const ONE_EDIT: usize = 3;
/// Characters from which on a form may have two edits.
pub const TWO_EDITS: usize = 6;

/// What one form may add and look at.
pub const FORM: Limits = Limits { terms: 50, visits: 2000 };
/// Terms that are looked at for all of a query.
pub const VISITS: usize = 10_000;
/// Terms that are added to a query.
pub const ADDED: usize = 256;

/// Characters at the beginning of a word that have no edit.
const SAME: usize = 1;

/// What ends a sentence and no name.
const CLOSING: &[char] =
    &['.', ',', ';', ':', '!', '?', '…', '(', ')', '[', ']', '{', '}', '"', '\'', '”', '’', '»', '«'];

/// How words stand for others.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Reach {
    /// The last word stands for what begins with it.
    pub prefix: bool,
    /// Words stand for what is so many edits away.
    pub fuzzy: u8,
}

/// How a form is looked up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Prefix,
    Fuzzy(u8),
}

/// A form of a word.
#[derive(Debug, Clone, PartialEq)]
struct Form {
    word: String,
    text: String,
    way: Way,
    /// How often the query has the word.
    count: f64,
}

/// What is to be looked up for a query.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Lookup {
    forms: Vec<Form>,
}

/// What a query has besides its own terms.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Widened {
    /// Terms with what they count.
    pub terms: BTreeMap<String, f64>,
    /// Words for which a bound was met, in the order of the query.
    pub bounded: Vec<String>,
}

impl Lookup {
    /// What is to be looked up for a text that the configurations read.
    pub fn new(text: &str, lexers: &[&dyn Lexer], reach: Reach) -> Result<Self> {
        let text = tokens::normalise(text);
        let mut lookup = Self::default();
        if reach.fuzzy > 0 {
            lookup.add_fuzzy(&text, lexers, reach.fuzzy)?;
        }
        if reach.prefix
            && !text.ends_with(char::is_whitespace)
            && let Some(word) = text.split_whitespace().next_back().map(trim)
        {
            lookup.add_prefix(word, lexers)?;
        }
        Ok(lookup)
    }

    fn add_fuzzy(&mut self, text: &str, lexers: &[&dyn Lexer], fuzzy: u8) -> Result<()> {
        let mut words: Vec<(&str, f64)> = Vec::new();
        for word in text.split_whitespace().map(trim).filter(|word| !word.is_empty()) {
            match words.iter_mut().find(|(known, _)| *known == word) {
                Some((_, count)) => *count += 1.0,
                None => words.push((word, 1.0)),
            }
        }
        let mut forms: Vec<BTreeSet<String>> = vec![BTreeSet::new(); words.len()];
        let texts: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
        for lexer in lexers {
            for (forms, analysis) in forms.iter_mut().zip(tokens::analyse_all(&texts, *lexer)?) {
                forms.extend(analysis.terms.into_iter().map(|(term, _)| term));
            }
        }
        for ((word, count), mut forms) in words.into_iter().zip(forms) {
            if !forms.is_empty() {
                forms.insert(tokens::lower(word));
            }
            let with_edits = forms.into_iter().map(|text| (edits(&text, fuzzy), text)).filter(|(edits, _)| *edits > 0);
            self.forms.extend(with_edits.map(|(edits, text)| Form {
                word: word.to_owned(),
                text,
                way: Way::Fuzzy(edits),
                count,
            }));
        }
        Ok(())
    }

    fn add_prefix(&mut self, word: &str, lexers: &[&dyn Lexer]) -> Result<()> {
        let part = word.rsplit(|c: char| c == '_' || !is_word(c)).next().unwrap_or(word);
        let mut forms = BTreeSet::from([tokens::lower(word), tokens::lower(part)]);
        for lexer in lexers {
            forms.extend(lexer.lexemes(&[part])?.into_iter().flatten().map(|(lexeme, _)| lexeme));
        }
        forms.remove("");
        let form = |text| Form { word: word.to_owned(), text, way: Way::Prefix, count: 1.0 };
        self.forms.extend(forms.into_iter().map(form));
        Ok(())
    }

    /// Whether there is nothing to look up.
    pub fn is_empty(&self) -> bool {
        self.forms.is_empty()
    }

    /// What all terms that may be found begin with, none of it the beginning of another.
    pub fn starts(&self) -> Vec<String> {
        let start = |form: &Form| match form.way {
            Way::Prefix => form.text.clone(),
            Way::Fuzzy(_) => form.text.chars().take(SAME).collect(),
        };
        let mut starts: Vec<String> = self.forms.iter().map(start).collect();
        starts.sort();
        starts.dedup_by(|later, earlier| later.starts_with(earlier.as_str()));
        starts
    }

    /// Looks everything up. The query has the terms `own` already, and no more than `room` may be added.
    pub fn find(&self, vocabulary: &mut dyn Vocabulary, own: &dyn Fn(&str) -> bool, room: usize) -> Result<Widened> {
        let mut vocabulary = Counted { vocabulary, visits: 0 };
        let mut found: BTreeMap<String, (f64, u64, &str)> = BTreeMap::new();
        let mut bounded: BTreeSet<&str> = BTreeSet::new();
        for form in &self.forms {
            let limits = Limits { visits: FORM.visits.min(VISITS.saturating_sub(vocabulary.visits)), ..FORM };
            let expansion = match form.way {
                Way::Prefix => expand::prefix(&mut vocabulary, &form.text, limits)?,
                Way::Fuzzy(_) if form.text.len() > expand::MAX_WORD => {
                    bounded.insert(&form.word);
                    continue;
                }
                Way::Fuzzy(edits) => expand::fuzzy(&mut vocabulary, &form.text, edits, SAME, limits)?,
            };
            if !expansion.complete {
                bounded.insert(&form.word);
            }
            for term in expansion.terms.into_iter().filter(|term| !own(&term.term)) {
                let weight = form.count
                    * match (form.way, term.distance) {
                        (Way::Prefix, _) => PREFIX,
                        (Way::Fuzzy(_), 0..=1) => ONE,
                        (Way::Fuzzy(_), _) => TWO,
                    };
                let most = found.entry(term.term).or_insert((weight, term.df, &form.word));
                if weight > most.0 {
                    *most = (weight, term.df, &form.word);
                }
            }
        }
        let mut ranked: Vec<(String, (f64, u64, &str))> = found.into_iter().collect();
        // Stable, so equal ones stay in byte order.
        ranked.sort_by(|(_, a), (_, b)| b.0.total_cmp(&a.0).then(b.1.cmp(&a.1)));
        let left_out = ranked.split_off(ranked.len().min(room.min(ADDED)));
        bounded.extend(left_out.iter().map(|(_, (_, _, word))| *word));
        let mut named: Vec<String> = Vec::new();
        for form in self.forms.iter().filter(|form| bounded.remove(form.word.as_str())) {
            named.push(form.word.clone());
        }
        Ok(Widened { terms: ranked.into_iter().map(|(term, (weight, ..))| (term, weight)).collect(), bounded: named })
    }
}

/// A vocabulary that counts what it was asked.
struct Counted<'v> {
    vocabulary: &'v mut dyn Vocabulary,
    visits: usize,
}

impl Vocabulary for Counted<'_> {
    fn at_or_after(&mut self, from: &[u8]) -> Result<Option<(String, u64)>> {
        self.visits += 1;
        self.vocabulary.at_or_after(from)
    }
}

/// A word without the punctuation around it.
fn trim(word: &str) -> &str {
    word.trim_start_matches(|c| !is_word(c)).trim_end_matches(CLOSING)
}

/// The edits that a form may have.
fn edits(form: &str, fuzzy: u8) -> u8 {
    let most = match form.chars().count() {
        _ if form.contains(char::is_numeric) => 0,
        0..ONE_EDIT => 0,
        ONE_EDIT..TWO_EDITS => 1,
        _ => expand::MAX_DISTANCE,
    };
    most.min(fuzzy)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lexical::tsvector::Lexeme;

    /// Words in lower case without a final "s"; "the" is a stop word.
    struct Plain;

    impl Lexer for Plain {
        fn lexemes(&self, texts: &[&str]) -> Result<Vec<Vec<Lexeme>>> {
            let words = |text: &&str| {
                let words = text.split(|c: char| !c.is_alphanumeric()).map(str::to_lowercase);
                let words = words.filter(|w| !w.is_empty() && w != "the").map(|w| w.trim_end_matches('s').to_owned());
                let mut lexemes: BTreeMap<String, Vec<u16>> = BTreeMap::new();
                words.zip(1..).for_each(|(word, at)| lexemes.entry(word).or_default().push(at));
                lexemes.into_iter().collect()
            };
            Ok(texts.iter().map(words).collect())
        }
    }

    fn widen(text: &str, prefix: bool, fuzzy: u8, vocabulary: &[(&str, u64)]) -> Vec<(String, f64)> {
        let vocabulary: Vec<(String, u64)> = vocabulary.iter().map(|(term, df)| ((*term).to_owned(), *df)).collect();
        let lookup = Lookup::new(text, &[&Plain], Reach { prefix, fuzzy }).expect("valid");
        let own: BTreeSet<String> =
            tokens::analyse(text, &Plain).expect("valid").terms.into_iter().map(|(term, _)| term).collect();
        let found = lookup.find(&mut vocabulary.as_slice(), &|term| own.contains(term), 1000).expect("valid");
        assert_eq!(found.bounded, Vec::<String>::new());
        found.terms.into_iter().collect()
    }

    fn weighted(terms: &[(&str, f64)]) -> Vec<(String, f64)> {
        terms.iter().map(|(term, weight)| ((*term).to_owned(), *weight)).collect()
    }

    #[test]
    fn the_last_word_stands_for_what_begins_with_it() {
        let words = [("index", 3), ("indice", 1), ("ship", 2), ("the", 9), ("theory", 4)];
        assert_eq!(widen("ships ind", true, 0, &words), weighted(&[("index", 0.5), ("indice", 0.5)]));
        assert_eq!(widen("ships ind ", true, 0, &words), []);
        assert_eq!(widen("ind", false, 0, &words), []);
        assert_eq!(widen("(Ind", true, 0, &words), widen("ind?", true, 0, &words));
        assert_eq!(widen("the", true, 0, &words), weighted(&[("the", 0.5), ("theory", 0.5)]));
        assert_eq!(widen("index", true, 0, &words), [], "a term of the query counts as that");
        assert_eq!(widen("...", true, 2, &words), []);
    }

    #[test]
    fn a_name_is_completed_whole_and_by_its_last_part() {
        let words = [("src", 1), ("src/store/sync.rs", 1), ("store", 7), ("stores", 7)];
        let found = widen("src/sto", true, 0, &words);
        assert_eq!(found, weighted(&[("src/store/sync.rs", 0.5), ("store", 0.5), ("stores", 0.5)]));
        assert_eq!(widen("rrf_", true, 0, &[("rrf_k", 1)]), weighted(&[("rrf_k", 0.5)]));
        assert_eq!(widen("c++", true, 0, &[("c++", 1), ("c++11", 1), ("cat", 1)]), weighted(&[("c++11", 0.5)]));
    }

    #[test]
    fn words_stand_for_what_is_near_them() {
        let words = [("fusion", 1), ("fusionner", 1), ("fusoin", 1), ("confusion", 1), ("fuzion", 1)];
        let found = widen("Fusions", false, 2, &words);
        assert_eq!(found, weighted(&[("fusoin", 0.5), ("fuzion", 0.5)]), "by its lexeme");
        assert_eq!(widen("fusoni fusoni", false, 1, &words), weighted(&[("fusoin", 1.0)]), "said twice");
        assert_eq!(widen("fuxoin", false, 2, &words), weighted(&[("fusion", 0.25), ("fusoin", 0.5), ("fuzion", 0.25)]));
        assert_eq!(widen("the", false, 2, &[("then", 1)]), [], "a stop word");
    }

    #[test]
    fn short_words_and_numbers_have_fewer_edits() {
        for (form, right) in
            [("ab", 0), ("abc", 1), ("abcde", 1), ("abcdef", 2), ("äöü", 1), ("abcde1", 0), ("検索", 0)]
        {
            assert_eq!(edits(form, 2), right, "{form}");
        }
        assert_eq!(edits("abcdef", 1), 1);
    }

    #[test]
    fn the_most_that_any_way_gives_counts() {
        let words = [("retrieval", 1), ("retrieve", 1)];
        let found = widen("retreiva", true, 2, &words);
        assert_eq!(found, weighted(&[("retrieval", 0.25), ("retrieve", 0.25)]));
        let found = widen("retrieva", true, 2, &words);
        assert_eq!(found, weighted(&[("retrieval", 0.5), ("retrieve", 0.5)]), "a prefix, and one edit");
    }

    #[test]
    fn what_is_looked_up_begins_like_this() {
        let starts =
            |text, prefix, fuzzy| Lookup::new(text, &[&Plain], Reach { prefix, fuzzy }).expect("valid").starts();
        assert_eq!(starts("alpha beta ge", true, 1), ["a", "b", "ge"]);
        assert_eq!(starts("alpha al", true, 1), ["a"]);
        assert!(Lookup::new("a ", &[&Plain], Reach { prefix: true, fuzzy: 2 }).expect("valid").is_empty());
    }

    #[test]
    fn bounds_are_met_and_told() {
        let find = |text: &str, reach, count: usize, room| {
            let words: Vec<(String, u64)> = (0..count).map(|i| (format!("word{i:04}"), i as u64)).collect();
            let lookup = Lookup::new(text, &[&Plain], reach).expect("valid");
            lookup.find(&mut words.as_slice(), &|_| false, room).expect("valid")
        };
        let prefix = Reach { prefix: true, fuzzy: 0 };
        let found = find("word", prefix, 50, 100);
        assert_eq!((found.terms.len(), found.bounded), (50, vec![]));
        let found = find("word", prefix, 51, 100);
        assert_eq!((found.terms.len(), found.bounded), (50, vec!["word".to_owned()]));
        assert!(!found.terms.contains_key("word0000"), "the most frequent stay");
        let found = find("Word", prefix, 9, 3);
        assert_eq!((found.terms.len(), found.bounded), (3, vec!["Word".to_owned()]));
        let fuzzy = Reach { prefix: false, fuzzy: 2 };
        let long = "w".repeat(65);
        let found = find(&format!("wordly {long}"), fuzzy, 2001, 9);
        assert_eq!(found.bounded, [long], "automata go past what is far");
    }
}
