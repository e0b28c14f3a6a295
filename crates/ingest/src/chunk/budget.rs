// SPDX-License-Identifier: PostgreSQL

//! The budget: how many tokens and bytes a chunk may have.
//!
//! A chunk must fit the wish (`chunk_tokens`) by its content alone and the model's window together with everything the
//! embed template puts around it. Where title, heading path and context would take more than half of the window, the
//! content keeps half: first the context is left out (the chunk says so by [`CONTEXT_CUT`]), then whoever renders
//! leaves out title and heading path (the chunk says so by
//! [`rag_core::template::PREFIX_CUT`]). What is stored stays true and
//! nothing is cut in silence.

use rag_core::document::{Document, Facts};
use rag_core::source::SourceOptions;
use rag_core::template::{EmbedFields, EmbedTemplate};
use rag_core::tokens::TokenCounter;
use std::sync::Arc;

/// Key of a chunk's metadata: true when it had a context that did not fit.
pub const CONTEXT_CUT: &str = "context_cut";

/// Bytes of a chunk for each token of the budget, at most. A tokenizer may call a megabyte without a space one token; no
/// lexical index or reader would. It also bounds how much is ever counted to learn that something does not fit.
const BYTES_PER_TOKEN: usize = 64;

/// Tokens that may appear where prefix and content meet.
const SEAM: usize = 2;

/// The container's text that goes with a piece; `text` is `None` when there is one that does not fit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Context {
    /// The text.
    pub text: Option<Arc<str>>,
}

/// How much content fits, for one heading path and context.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    /// Tokens.
    pub tokens: usize,
    /// Bytes.
    pub bytes: usize,
    /// Whether it only fits when title and heading path are left out of the rendered text.
    pub prefix_cut: bool,
}

/// Measures text for one document.
#[derive(Clone)]
pub struct Sizer<'a> {
    counter: &'a dyn TokenCounter,
    template: &'a EmbedTemplate,
    chunk_tokens: usize,
    title: Option<String>,
    uri: String,
    path: Option<String>,
    facts: Facts,
}

impl<'a> Sizer<'a> {
    /// A measure for a document whose title is settled.
    pub fn new(document: &Document, options: &'a SourceOptions, counter: &'a dyn TokenCounter) -> Self {
        Self {
            counter,
            template: &options.embed_template,
            chunk_tokens: (options.chunk_tokens as usize).max(1),
            title: document.title.clone(),
            uri: document.uri.clone(),
            path: document.path.clone(),
            facts: Facts::default(),
        }
    }

    /// The same measure for a part of which this is known.
    pub fn of_part(&self, facts: &Facts) -> Self {
        Self { facts: facts.clone(), ..self.clone() }
    }

    /// Tokens of some text.
    pub fn count(&self, text: &str) -> usize {
        self.counter.count(text)
    }

    /// The tokens themselves.
    pub fn offsets(&self, text: &str) -> Vec<(usize, usize)> {
        self.counter.offsets(text)
    }

    /// The room beneath a heading path.
    pub fn room(&self, path: &[String]) -> Room {
        self.room_of(path, None, self.chunk_tokens)
    }

    /// The room of a document that is to be one chunk.
    pub fn room_of_whole(&self) -> Room {
        self.room_of(&[], None, usize::MAX)
    }

    /// The room beneath a heading path beside a context, and the context as far as it fits.
    pub fn room_beside(&self, path: &[String], context: &str) -> (Room, Context) {
        let half = self.counter.window() / 2;
        // A context as large as the window is not worth measuring together with the rest.
        let fits = context.len() <= half.saturating_mul(BYTES_PER_TOKEN)
            && self.around(path, Some(context), false).0 + SEAM <= half
            && !self.room(path).prefix_cut;
        if fits {
            let context = Context { text: Some(Arc::from(context)) };
            (self.room_of(path, context.text.as_deref(), self.chunk_tokens), context)
        } else {
            (self.room(path), Context { text: None })
        }
    }

    fn room_of(&self, path: &[String], context: Option<&str>, wish: usize) -> Room {
        let window = self.counter.window().max(2);
        let half = window / 2;
        let (mut around, mut bare) = self.around(path, context, false);
        let prefix_cut = around + if bare { 0 } else { SEAM } > half;
        if prefix_cut {
            // A template of literals alone can still be too long; then the engine reports the text as cut.
            (around, bare) = self.around(path, context, true);
        }
        let seam = if bare { 0 } else { SEAM };
        let tokens = wish.min(window - (around + seam).min(half)).max(1);
        Room { tokens, bytes: tokens.saturating_mul(BYTES_PER_TOKEN), prefix_cut }
    }

    /// Tokens of the rendered template without the content, and whether there is nothing but the content.
    fn around(&self, path: &[String], context: Option<&str>, cut: bool) -> (usize, bool) {
        let fields = EmbedFields {
            title: self.title.as_deref(),
            heading_path: path,
            context,
            // A line that holds nothing but an empty field would vanish together with its literals.
            content: "x",
            uri: &self.uri,
            path: self.path.as_deref(),
            symbol: self.facts.symbol.as_deref(),
            speaker: self.facts.speaker.as_deref(),
        };
        let fields = if cut { fields.without_prefix() } else { fields };
        let rendered = self.template.render(&fields);
        (self.counter.count(&rendered).saturating_sub(self.counter.count("x")), rendered == "x")
    }
}
