// SPDX-License-Identifier: PostgreSQL

//! Counting tokens without knowing a tokenizer.
//!
//! The chunker needs the model's token counts but must not know the model crate; the engine hands it an
//! implementation of [`TokenCounter`].

/// Counts tokens of one model.
pub trait TokenCounter {
    /// Tokens of `text`, special tokens not counted.
    fn count(&self, text: &str) -> usize;

    /// Byte ranges of the tokens of `text` in order, special tokens left out. Used to cut text where no sentence or
    /// word boundary helps.
    fn offsets(&self, text: &str) -> Vec<(usize, usize)>;

    /// The model's window in tokens, special tokens not counted: what really fits.
    fn window(&self) -> usize;
}

/// A stand-in for tests and previews: one token per word and per punctuation character.
#[derive(Debug, Clone, Copy)]
pub struct WordCounter {
    /// The pretended window.
    pub window: usize,
}

impl TokenCounter for WordCounter {
    fn count(&self, text: &str) -> usize {
        self.offsets(text).len()
    }

    fn offsets(&self, text: &str) -> Vec<(usize, usize)> {
        let mut out: Vec<(usize, usize)> = Vec::new();
        let mut in_word = false;
        for (at, c) in text.char_indices() {
            let end = at + c.len_utf8();
            let word = c.is_alphanumeric() && (c as u32) < 0x2E80;
            match out.last_mut() {
                Some(last) if word && in_word => last.1 = end,
                _ if !c.is_whitespace() => out.push((at, end)),
                _ => {}
            }
            in_word = word;
        }
        out
    }

    fn window(&self) -> usize {
        self.window
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_marks_and_ideographs_count_one_each() {
        let counter = WordCounter { window: 10 };
        assert_eq!(counter.offsets("ab, c"), vec![(0, 2), (2, 3), (4, 5)]);
        assert_eq!(counter.count("漢字"), 2);
        assert_eq!(counter.count("  "), 0);
    }
}
