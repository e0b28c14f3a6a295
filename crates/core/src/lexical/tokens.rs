// SPDX-License-Identifier: PostgreSQL

//! From text to terms.
//!
//! Owns what a text search configuration loses: identifiers as a whole and by their parts, and text that is written without
//! spaces. Lexemes come from the configuration, through [`Lexer`], because its dictionaries live in a backend; nothing here
//! stems, and nothing here repeats a word that the configuration gives anyway. There is one [`analyse`] for chunks and for
//! queries, so what can be found is a matter of this file alone.
//!
//! ```text
//! text ── NFKC ──▶ configuration ─────────────────────────────▶ lexemes ┐
//!           └────▶ compounds (HTTPServer, rrf_k, a/b.rs, 漢字)          ├▶ terms with tf
//!                    each ──▶ nodes: itself, its parts, theirs ──▶ what its own lexemes lack ┘
//! ```
//!
//! - A node of letters and digits (`Retriever` in `HybridRetriever`) goes through the configuration, so that the word
//!   "retrievers" finds it. Any other (`rrf_k`, `c++`, `src/store/sync.rs`) is a term as it is written, in lower case.
//! - Han, Kana and Hangul become single characters and pairs.
//! - A term as it is written has at most [`MAX_TOKEN_BYTES`] bytes; a longer one is left out, not cut, because half a path
//!   would match other paths. Its parts stay. A run of [`HASH_DIGITS`] or more hexadecimal digits with a digit and a letter, or of
//!   more than [`MAX_WORDS`] words, has no parts.
//! - Of each compound come six levels of nodes at most, each no longer than the compound, and two grams of a character: the
//!   result is linear in the text.
//! - There are no positions: phrases are checked on the text of the candidates.

mod compound;

use crate::error::{Error, Result};
use compound::Node;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use unicode_normalization::{IsNormalized, UnicodeNormalization, is_nfkc_quick};

/// The longest term that is not a lexeme, in bytes.
pub const MAX_TOKEN_BYTES: usize = 255;
/// The most words that a run of letters and digits is split into.
pub const MAX_WORDS: usize = 16;
/// Hexadecimal digits that make a hash.
pub const HASH_DIGITS: usize = 8;

/// A text search configuration.
pub trait Lexer {
    /// For each text its distinct lexemes, each with how often it occurs; stop words are left out. What a text gives must not
    /// depend on the texts beside it.
    fn lexemes(&self, texts: &[&str]) -> Result<Vec<Vec<(String, u32)>>>;
}

/// The terms of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Analysis {
    /// Distinct terms in byte order, each with its term frequency.
    pub terms: Vec<(String, u32)>,
    /// The length of the text in lexemes: the sum of the term frequencies.
    pub dl: u32,
}

/// The terms of a chunk or of a query.
pub fn analyse(text: &str, lexer: &dyn Lexer) -> Result<Analysis> {
    let text = normalise(text);
    let mut compounds: BTreeMap<&str, u32> = BTreeMap::new();
    for compound in compound::scan(&text) {
        *compounds.entry(compound).or_default() += 1;
    }
    // A compound that is one word to us is one to the configuration.
    let nodes: Vec<(&str, u32, Vec<Node<'_>>)> =
        compounds.into_iter().map(|(text, count)| (text, count, compound::nodes(text))).collect();
    let mut texts: Vec<&str> = vec![&text];
    let mut places: HashMap<&str, usize> = HashMap::new();
    for (compound, _, nodes) in &nodes {
        let lexed = nodes.iter().filter_map(|n| if let Node::Word(word) = n { Some(*word) } else { None });
        for text in std::iter::once(*compound).chain(lexed) {
            places.entry(text).or_insert_with(|| {
                texts.push(text);
                texts.len() - 1
            });
        }
    }
    let lexemes = lexer.lexemes(&texts)?;
    if lexemes.len() != texts.len() {
        return Err(Error::internal("a text search configuration did not answer for each text"));
    }
    let mut terms: BTreeMap<Cow<'_, str>, u32> = BTreeMap::new();
    let mut add = |term, count: u32| {
        let tf = terms.entry(term).or_default();
        *tf = tf.saturating_add(count);
    };
    lexemes[0].iter().for_each(|(lexeme, count)| add(Cow::Borrowed(lexeme.as_str()), *count));
    for (compound, count, nodes) in &nodes {
        let known: BTreeSet<&str> = lexemes[places[compound]].iter().map(|(l, _)| l.as_str()).collect();
        let mut new: BTreeSet<Cow<'_, str>> = BTreeSet::new();
        for node in nodes {
            match node {
                Node::Word(word) => new.extend(lexemes[places[word]].iter().map(|(l, _)| Cow::Borrowed(l.as_str()))),
                Node::Verbatim(text) => new.extend(fold(text).filter(|t| t.len() <= MAX_TOKEN_BYTES).map(Cow::Owned)),
            }
        }
        new.retain(|term| !known.contains(term.as_ref()));
        new.into_iter().for_each(|term| add(term, *count));
    }
    let dl = terms.values().fold(0u32, |sum, tf| sum.saturating_add(*tf));
    Ok(Analysis { terms: terms.into_iter().map(|(term, tf)| (term.into_owned(), tf)).collect(), dl })
}

/// The text in the form in which it is analysed: NFKC (full width, ligatures and superscripts become plain), without the
/// characters that only say where a line may break.
pub fn normalise(text: &str) -> Cow<'_, str> {
    let invisible = |c: char| matches!(c, '\u{ad}' | '\u{2060}' | '\u{feff}');
    if text.is_ascii() || (is_nfkc_quick(text.chars()) == IsNormalized::Yes && !text.contains(invisible)) {
        return Cow::Borrowed(text);
    }
    // Removing a character may bring together what composes.
    Cow::Owned(text.chars().filter(|c| !invisible(*c)).nfkc().collect())
}

/// A term as it is written, in lower case; `None` when it cannot be one.
///
/// Each letter by itself, without regard to locale or place in the word: a Turkish dotless i stays what it is, and a
/// final sigma is a sigma.
fn fold(text: &str) -> Option<String> {
    if text.len() > MAX_TOKEN_BYTES * 2 {
        return None;
    }
    let lower = text.chars().flat_map(char::to_lowercase).map(|c| if c == 'ς' { 'σ' } else { c });
    Some(lower.nfkc().collect())
}
