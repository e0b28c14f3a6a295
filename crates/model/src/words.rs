// SPDX-License-Identifier: PostgreSQL

//! Counting the tokens of a text word by word, so that a word that was seen before is looked up and not tokenised again.
//!
//! A chunker counts each passage several times (alone, with its neighbours, with what stands around it), and a library that makes
//! ids and offsets of everything is slow at it. The tokens of BERT's family are those of the words between white space and marks of
//! ASCII: its pre-tokenizer cuts there before it looks for anything, its normalizer changes no character for the sake of
//! another word, and a mark is one token. So counts of words add up, exactly. [`Words::of`] says whether a tokenizer
//! is of this family; every other one, and every text that holds a special token by name, is counted as a whole.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use tokenizers::models::ModelWrapper;
use tokenizers::{NormalizerWrapper, PreTokenizerWrapper, Tokenizer};

/// Words that are remembered at most: with their text some megabytes.
const MOST: usize = 1 << 16;
/// Longest word in bytes that is remembered; longer ones do not come again.
const LONGEST: usize = 48;

/// Words and how many tokens each has.
#[derive(Debug)]
pub struct Words {
    known: Mutex<HashMap<Box<str>, u32>>,
    /// Special tokens, which may have marks in their names.
    specials: Vec<String>,
}

impl Words {
    /// For a tokenizer whose counts add up; `None` for another one.
    pub fn of(tokenizer: &Tokenizer) -> Option<Self> {
        let pieces = matches!(tokenizer.get_model(), ModelWrapper::WordPiece(_));
        let cuts = matches!(tokenizer.get_pre_tokenizer(), Some(PreTokenizerWrapper::BertPreTokenizer(_)));
        let alone = matches!(tokenizer.get_normalizer(), None | Some(NormalizerWrapper::BertNormalizer(_)));
        let mut specials = Vec::new();
        for token in tokenizer.get_added_tokens_decoder().into_values() {
            // These depend on what stands beside them, or on what the normalizer makes of the text.
            if token.single_word || token.lstrip || token.rstrip || token.normalized || token.content.is_empty() {
                return None;
            }
            specials.push(token.content);
        }
        (pieces && cuts && alone).then(|| Self { known: Mutex::default(), specials })
    }

    /// Tokens of a text, or `None` if it must be counted as a whole; `count` counts a word.
    pub fn count<E>(
        &self,
        text: &str,
        count: impl Fn(&str) -> std::result::Result<usize, E>,
    ) -> std::result::Result<Option<usize>, E> {
        if self.specials.iter().any(|special| text.contains(special.as_str())) {
            return Ok(None);
        }
        let known = || self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let mut tokens = 0;
        let mut rest = text;
        while let Some(first) = rest.bytes().next() {
            // Vertical tabs and form feeds are no white space here: the normalizer takes them out, and joins what they part.
            if ends_word(first) {
                tokens += usize::from(first.is_ascii_punctuation());
                rest = &rest[1..];
                continue;
            }
            let (word, after) = rest.split_at(rest.bytes().position(ends_word).unwrap_or(rest.len()));
            rest = after;
            let seen = known().get(word).copied();
            tokens += match seen {
                Some(count) => count as usize,
                None => {
                    // Others may count meanwhile.
                    let count = count(word)?;
                    if word.len() <= LONGEST {
                        let mut known = known();
                        if known.len() >= MOST {
                            known.clear();
                        }
                        known.insert(word.into(), u32::try_from(count).unwrap_or(u32::MAX));
                    }
                    count
                }
            };
        }
        Ok(Some(tokens))
    }
}

fn ends_word(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r') || byte.is_ascii_punctuation()
}
