// SPDX-License-Identifier: PostgreSQL

//! Exact token ids and counts of one model.
//!
//! Owns the loading of `tokenizer.json`, the cut at the window and the counting that the chunker relies on. It must not
//! know a session: a parse worker uses it alone. The file's own truncation and padding are switched off, because they
//! are leftovers of whoever saved it (the MiniLM file pads everything to 128), and special tokens are put around the
//! cut text here, so a cut text still ends in `[SEP]`.
//!
//! A tokenizer keeps about a hundred bytes for each byte of text while it works. So a text beyond [`PIECE`] is taken in
//! pieces that begin at a space between two words, where every known pre-tokenizer starts anew; only a text without
//! any such place in a whole piece is cut elsewhere, and counted a token or two too high.

use crate::words::Words;
use rag_core::tokens::TokenCounter;
use rag_core::{Error, Kind, Result};
use std::path::Path;

/// Longest text in bytes that is tokenised at once.
pub const PIECE: usize = 1 << 20;

/// The tokenizer of one model, with its window.
#[derive(Debug)]
pub struct Tokenizer {
    inner: tokenizers::Tokenizer,
    /// Counts of single words, where they add up.
    words: Option<Words>,
    max_tokens: usize,
    /// Special tokens before the text.
    prefix: Vec<u32>,
    /// Special tokens after the text.
    suffix: Vec<u32>,
    /// What fills a shorter text of a batch up; it is masked, so any valid id would do.
    pad: u32,
}

/// A text as the network sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Encoded {
    /// Ids with special tokens, at most the window.
    pub ids: Vec<u32>,
    /// Tokens before the cut, special tokens included. For a text beyond [`PIECE`] a lower bound: nobody tokenises ten
    /// megabytes to learn by how much they miss the window.
    pub tokens: u32,
    /// Whether the text was cut.
    pub truncated: bool,
}

impl Tokenizer {
    /// Loads `tokenizer.json` at `path` for a window of `max_tokens` (special tokens included).
    pub fn open(path: &Path, max_tokens: u32) -> Result<Self> {
        let bad = |e: tokenizers::Error| {
            Error::new(Kind::BadContent, format!("could not load tokenizer \"{}\": {e}", path.display()))
        };
        let bytes = std::fs::read(path).map_err(|e| Error::io(&path.to_string_lossy(), &e))?;
        let mut inner = tokenizers::Tokenizer::from_bytes(bytes).map_err(bad)?;
        let pad = inner.get_padding().map_or(0, |p| p.pad_id);
        inner.with_padding(None);
        inner.with_truncation(None).map_err(bad)?;
        let probe = inner.encode("a", true).map_err(bad)?;
        let mask = probe.get_special_tokens_mask();
        let before = mask.iter().take_while(|m| **m == 1).count();
        let after = if before == mask.len() { 0 } else { mask.iter().rev().take_while(|m| **m == 1).count() };
        let ids = probe.get_ids();
        let max_tokens = max_tokens as usize;
        if max_tokens <= before + after {
            return Err(Error::invalid(format!("a window of {max_tokens} tokens leaves no room for text")));
        }
        let (prefix, suffix) = (ids[..before].to_vec(), ids[ids.len() - after..].to_vec());
        let words = Words::of(&inner);
        Ok(Self { inner, words, max_tokens, prefix, suffix, pad })
    }

    /// The id that fills a batch up.
    pub fn pad(&self) -> u32 {
        self.pad
    }

    /// Special tokens put around each text.
    pub fn specials(&self) -> usize {
        self.prefix.len() + self.suffix.len()
    }

    /// Token ids of `text` with special tokens, cut at the window.
    pub fn encode(&self, text: &str) -> Result<Encoded> {
        let room = self.max_tokens - self.specials();
        let mut ids = self.prefix.clone();
        let mut tokens = 0;
        let mut rest = text;
        loop {
            let (piece, after) = split(rest);
            let encoding = self.inner.encode_fast(piece, false).map_err(failed)?;
            ids.extend_from_slice(encoding.get_ids());
            tokens += encoding.len();
            rest = after;
            if rest.is_empty() || tokens >= room {
                break;
            }
        }
        let truncated = tokens > room || !rest.is_empty();
        ids.truncate(self.prefix.len() + room);
        ids.extend_from_slice(&self.suffix);
        Ok(Encoded { ids, tokens: (tokens + self.specials()) as u32, truncated })
    }

    /// Tokens of `text`, special tokens included, however long it is.
    pub fn count_with_specials(&self, text: &str) -> Result<usize> {
        let words = self.words.as_ref().map(|words| words.count(text, |word| self.count_pieces(word)));
        let tokens = match words.transpose()?.flatten() {
            Some(tokens) => tokens,
            None => self.count_pieces(text)?,
        };
        Ok(tokens + self.specials())
    }

    /// Tokens of `text`, special tokens left out, by the tokenizer itself.
    fn count_pieces(&self, text: &str) -> Result<usize> {
        let mut tokens = 0;
        let mut rest = text;
        while !rest.is_empty() {
            let (piece, after) = split(rest);
            tokens += self.inner.encode_fast(piece, false).map_err(failed)?.len();
            rest = after;
        }
        Ok(tokens)
    }
}

impl TokenCounter for Tokenizer {
    fn count(&self, text: &str) -> usize {
        // The trait cannot fail; a tokenizer that gives up on a text (none of the usual models does) is taken to need
        // a token for each byte, which makes the chunker cut it small.
        self.count_with_specials(text).map_or(text.len(), |n| n - self.specials())
    }

    fn offsets(&self, text: &str) -> Vec<(usize, usize)> {
        let mut out = Vec::new();
        let mut rest = text;
        while !rest.is_empty() {
            let (piece, after) = split(rest);
            let base = text.len() - rest.len();
            match self.inner.encode(piece, false) {
                Ok(encoding) => {
                    out.extend(encoding.get_offsets().iter().map(|o| whole_chars(text, base + o.0, base + o.1)))
                }
                Err(_) => out.extend(piece.char_indices().map(|(at, c)| (base + at, base + at + c.len_utf8()))),
            }
            rest = after;
        }
        out
    }

    fn window(&self) -> usize {
        self.max_tokens - self.specials()
    }
}

/// A byte-level token may end within a character; a range of text may not.
fn whole_chars(text: &str, start: usize, end: usize) -> (usize, usize) {
    let end = end.min(text.len());
    let start = start.min(end);
    (text.floor_char_boundary(start), text.ceil_char_boundary(end))
}

/// The part of `text` to tokenise next, and the rest.
fn split(text: &str) -> (&str, &str) {
    if text.len() <= PIECE {
        return (text, "");
    }
    let bytes = text.as_bytes();
    let between_words = |at: &usize| {
        bytes[*at] == b' ' && bytes[*at - 1].is_ascii_alphanumeric() && bytes[*at + 1].is_ascii_alphanumeric()
    };
    let at = (PIECE / 2..PIECE).rev().find(between_words);
    let at = at.or_else(|| (PIECE / 2..PIECE).rev().find(|at| bytes[*at].is_ascii_whitespace()));
    text.split_at(at.unwrap_or_else(|| text.floor_char_boundary(PIECE)))
}

fn failed(error: tokenizers::Error) -> Error {
    Error::new(Kind::BadContent, format!("could not tokenise a text: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_is_split_before_a_space_between_words() {
        let text = "word ".repeat(PIECE / 4);
        let (piece, rest) = split(&text);
        assert!(piece.len() <= PIECE && piece.ends_with("word") && rest.starts_with(" word"));
        let ideographs = "漢".repeat(PIECE);
        let (piece, rest) = split(&ideographs);
        assert_eq!(piece.len() + rest.len(), ideographs.len());
    }

    #[test]
    fn ranges_are_widened_to_whole_characters() {
        assert_eq!(whole_chars("aé", 2, 9), (1, 3));
        assert_eq!(whole_chars("ab", 1, 2), (1, 2));
    }
}
