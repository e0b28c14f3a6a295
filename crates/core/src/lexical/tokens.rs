// SPDX-License-Identifier: PostgreSQL

//! From text to terms.
//!
//! Owns what a text search configuration loses: identifiers as a whole and by their parts, and text that is written without
//! spaces. Lexemes come from the configuration, through [`Lexer`], because its dictionaries live in a backend; nothing here
//! stems, and nothing here repeats a word that the configuration gives anyway. There is one [`analyse`] for chunks and for
//! queries, so what can be found is a matter of this file alone.
//!
//! ```text
//! text ── NFKC ──▶ configuration ─────────────────────────────▶ lexemes with their positions ┐
//!           └────▶ compounds (HTTPServer, rrf_k, a/b.rs, 漢字)                                ├▶ a tsvector
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
//! - PostgreSQL's parser takes `<String>` for a tag and `&config;` for an entity, which it drops, `/quay` for a path and `-12` for
//!   another number than 12. So it does not see the characters that make it think so ([`bared`]); nor does the query, so both find
//!   each other.
//! - Lexemes keep the positions that the configuration gives them, so that phrases can be asked for. Other terms stand behind
//!   the text, each at every second position as often as it occurs: the number of positions is the term frequency, and none
//!   of them is next to another word.
//! - A `tsvector` has its limits, and no text may fail because of them ([`vector`]).

mod compound;
mod vector;

use super::tsvector::Lexeme;
use crate::error::{Error, Result};
use compound::Node;
pub(super) use compound::{is_cjk, is_word};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;
use unicode_normalization::{IsNormalized, UnicodeNormalization, is_nfkc_quick};

/// The longest term that is not a lexeme, in bytes.
pub const MAX_TOKEN_BYTES: usize = 255;
/// The most words that a run of letters and digits is split into.
pub const MAX_WORDS: usize = 16;
/// Hexadecimal digits that make a hash.
pub const HASH_DIGITS: usize = 8;

/// How often title, symbol and speaker of a chunk count besides the once that they stand in its text.
///
/// Measured (`eval/results/lexical-quality.md`): three times in all is better than once for speakers, and not worse for titles
/// and symbols. BM25F with a length normalisation for each field was no better, and would need the length of each field in the
/// index; repetition is BM25F with one normalisation for all. Paths and headings, which no judged collection has, count once.
pub const EMPHASIS: u32 = 2;

/// Bytes of a text that are lexed at once: so little that no configuration makes more of it than a `tsvector` holds.
const PIECE: usize = 64 * 1024;

/// A text search configuration.
pub trait Lexer {
    /// The distinct lexemes of each text with their positions; stop words are left out. What a text gives must not depend on
    /// the texts beside it.
    fn lexemes(&self, texts: &[&str]) -> Result<Vec<Vec<Lexeme>>>;
}

/// The terms of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Analysis {
    /// Distinct terms in byte order, each with as many positions as its term frequency.
    pub terms: Vec<Lexeme>,
    /// The length of the text in lexemes: the sum of the term frequencies.
    pub dl: u32,
}

impl Analysis {
    /// Counts what a part of the text has so many times more: a title, a name. What is added stands behind the text, so that
    /// phrases stay what they are.
    #[must_use]
    pub fn emphasise(self, part: &Self, times: u32) -> Self {
        Self::of(vector::emphasised(self.terms, &part.terms, times))
    }

    fn of(terms: Vec<Lexeme>) -> Self {
        let dl = terms.iter().fold(0u32, |sum, (_, positions)| sum.saturating_add(positions.len() as u32));
        Self { terms, dl }
    }
}

/// The terms of a chunk or of a query.
pub fn analyse(text: &str, lexer: &dyn Lexer) -> Result<Analysis> {
    analyse_all(&[text], lexer)?.pop().ok_or_else(incomplete)
}

/// The terms of some texts. The configuration is asked once for all, and once for each distinct part of a compound.
pub fn analyse_all<T: AsRef<str>>(texts: &[T], lexer: &dyn Lexer) -> Result<Vec<Analysis>> {
    let texts: Vec<Cow<'_, str>> = texts.iter().map(|text| normalise(text.as_ref())).collect();
    let bare: Vec<Cow<'_, str>> = texts.iter().map(|text| bared(text)).collect();
    let mut lexed = Lexed::default();
    let read: Vec<Text<'_>> = texts.iter().zip(&bare).map(|(text, bare)| read(text, bare, &mut lexed)).collect();
    let lexemes = lexer.lexemes(&lexed.texts)?;
    if lexemes.len() != lexed.texts.len() {
        return Err(incomplete());
    }
    Ok(read.iter().map(|text| text.assemble(&lexed, &lexemes)).collect())
}

fn incomplete() -> Error {
    Error::internal("a text search configuration did not answer for each text")
}

/// What goes through the configuration: pieces of texts, and each distinct word once.
#[derive(Default)]
struct Lexed<'a> {
    texts: Vec<&'a str>,
    words: HashMap<&'a str, usize>,
}

/// A text before it is lexed.
struct Text<'a> {
    pieces: Range<usize>,
    /// Compounds in byte order, each with how often it occurs.
    compounds: Vec<(&'a str, u32, Vec<Node<'a>>)>,
}

/// Compounds are read from the text, lexemes from its bare form.
fn read<'a>(text: &'a str, bare: &'a str, lexed: &mut Lexed<'a>) -> Text<'a> {
    let start = lexed.texts.len();
    lexed.texts.extend(pieces(bare));
    let pieces = start..lexed.texts.len();
    let mut compounds: BTreeMap<&str, u32> = BTreeMap::new();
    for compound in compound::scan(text) {
        *compounds.entry(compound).or_default() += 1;
    }
    let bared = |compound: &'a str| {
        let start = compound.as_ptr().addr() - text.as_ptr().addr();
        bare.get(start..start + compound.len()).unwrap_or(compound)
    };
    // A compound that is one word to us is one to the configuration.
    let compounds: Vec<(&str, u32, Vec<Node<'_>>)> =
        compounds.into_iter().map(|(text, count)| (text, count, compound::nodes(text))).collect();
    for (compound, _, nodes) in &compounds {
        let words = nodes.iter().filter_map(|n| if let Node::Word(word) = n { Some(*word) } else { None });
        for word in std::iter::once(*compound).chain(words).filter(|word| word.len() <= PIECE) {
            lexed.words.entry(word).or_insert_with(|| {
                lexed.texts.push(bared(word));
                lexed.texts.len() - 1
            });
        }
    }
    Text { pieces, compounds }
}

/// Cuts a text between words, or anywhere if there is nothing between them.
fn pieces(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let text = rest?;
        let end = text.floor_char_boundary(PIECE);
        if end == text.len() {
            rest = None;
            return Some(text);
        }
        let cut = text[..end].rfind(char::is_whitespace).filter(|cut| *cut > 0).unwrap_or(end);
        rest = Some(&text[cut..]);
        Some(&text[..cut])
    })
}

impl Text<'_> {
    fn assemble(&self, lexed: &Lexed<'_>, lexemes: &[Vec<Lexeme>]) -> Analysis {
        let of =
            |word: &str| lexed.words.get(word).map_or(&[][..], |place| &lexemes[*place]).iter().map(|l| l.0.as_str());
        let mut extra: BTreeMap<Cow<'_, str>, u32> = BTreeMap::new();
        for (compound, count, nodes) in &self.compounds {
            let known: BTreeSet<&str> = of(compound).collect();
            let mut new: BTreeSet<Cow<'_, str>> = BTreeSet::new();
            for node in nodes {
                match node {
                    Node::Word(word) => new.extend(of(word).map(Cow::Borrowed)),
                    Node::Verbatim(text) => {
                        new.extend(fold(text).filter(|t| t.len() <= MAX_TOKEN_BYTES).map(Cow::Owned))
                    }
                }
            }
            new.retain(|term| !known.contains(term.as_ref()));
            for term in new {
                let tf = extra.entry(term).or_default();
                *tf = tf.saturating_add(*count);
            }
        }
        Analysis::of(vector::assemble(&lexemes[self.pieces.clone()], extra))
    }
}

/// A text with blanks in place of what hides a word from PostgreSQL's parser: angle brackets and ampersands, a slash that does not
/// stand behind a word (that of a URL does, behind its colon), and a sign before a number; and in place of the underscores of
/// what is too long to be a term, for each of which the parser reads to the end of it. As long as the text.
fn bared(text: &str) -> Cow<'_, str> {
    let bytes = text.as_bytes();
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || !byte.is_ascii();
    let before = |at: usize| at.checked_sub(1).map_or(b' ', |before| bytes[before]);
    let hides = |at: usize| match bytes[at] {
        b'<' | b'>' | b'&' => true,
        b'/' => match before(at) {
            b':' => false,
            b'/' => at < 2 || bytes[at - 2] != b':',
            byte => !is_word(byte),
        },
        b'+' | b'-' => !is_word(before(at)) && bytes.get(at + 1).is_some_and(u8::is_ascii_digit),
        b'_' => {
            let full = |byte: &&u8| !byte.is_ascii_whitespace();
            let behind = bytes[at..].iter().take(MAX_TOKEN_BYTES).take_while(full).count();
            behind + bytes[..at].iter().rev().take(MAX_TOKEN_BYTES).take_while(full).count() > MAX_TOKEN_BYTES
        }
        _ => false,
    };
    let Some(first) = (0..bytes.len()).find(|at| hides(*at)) else { return Cow::Borrowed(text) };
    let mut bare = String::with_capacity(text.len());
    bare.push_str(&text[..first]);
    bare.extend(text[first..].char_indices().map(|(at, c)| if c.is_ascii() && hides(first + at) { ' ' } else { c }));
    Cow::Owned(bare)
}

/// The text in the form in which it is analysed: NFKC (full width, ligatures and superscripts become plain), with the hyphen
/// of a keyboard, without the characters that only say where a line may break, in which direction it runs, or how a character is drawn.
pub fn normalise(text: &str) -> Cow<'_, str> {
    let invisible = |c: char| matches!(c, '\u{ad}' | '\u{2060}' | '\u{feff}' | '\u{200c}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{fe00}'..='\u{fe0f}');
    // A word ends at a space of no width, and a hyphen is one wherever a line may break.
    let plain = |c: char| match c {
        '\u{200b}' => ' ',
        '\u{2010}' | '\u{2011}' => '-',
        c => c,
    };
    let changes = |c: char| plain(c) != c || invisible(c);
    if text.is_ascii() || (is_nfkc_quick(text.chars()) == IsNormalized::Yes && !text.contains(changes)) {
        return Cow::Borrowed(text);
    }
    // Removing a character may bring together what composes.
    Cow::Owned(text.chars().filter(|c| !invisible(*c)).map(plain).nfkc().collect())
}

/// A term as it is written, in lower case; `None` when it cannot be one.
///
/// Each letter by itself, without regard to locale or place in the word: a Turkish dotless i stays what it is, and a
/// final sigma is a sigma.
fn fold(text: &str) -> Option<String> {
    (text.len() <= MAX_TOKEN_BYTES * 2).then(|| lower(text))
}

/// Each letter in lower case, as [`fold`] writes terms.
pub(super) fn lower(text: &str) -> String {
    let lower = text.chars().flat_map(char::to_lowercase).map(|c| if c == 'ς' { 'σ' } else { c });
    lower.nfkc().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_hides_a_word_is_blank() {
        for (text, bare) in [
            ("Vec<String>", "Vec String "),
            ("</a> <b/>", "  a   b/ "),
            ("if (i <limit && j> 0)", "if (i  limit    j  0)"),
            ("&config; a&b", " config; a b"),
            ("/usr/local/bin", " usr/local/bin"),
            ("./src/x ~/y ../z a//b", ". src/x ~ y .. z a/ b"),
            ("https://example.com/a and/or", "https://example.com/a and/or"),
            ("://x", "://x"),
            ("-1234 +49 a-1 x - 1", " 1234  49 a-1 x - 1"),
            ("é/x ü<ö", "é/x ü ö"),
            (&"a_".repeat(127), &"a_".repeat(127)),
            (&"a_".repeat(128), &"a ".repeat(128)),
            (&format!("b_c {} b_c", "é_".repeat(90)), &format!("b_c {} b_c", "é ".repeat(90))),
        ] {
            assert_eq!(bared(text), bare);
        }
        assert!(matches!(bared("plain text, a/b - c."), Cow::Borrowed(_)));
    }

    #[test]
    fn what_cannot_be_seen_is_no_part_of_a_word() {
        assert_eq!(normalise("harb\u{ad}our\u{200b}fee\u{200d}s \u{202a}x\u{202c}"), "harbour fees x");
        assert_eq!(normalise("CVE\u{2011}2024\u{2010}1"), "CVE-2024-1");
    }
}
