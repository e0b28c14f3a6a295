// SPDX-License-Identifier: PostgreSQL

//! Keys and tables of TOML, from the events of the parser beneath the `toml` crate, which builds no values.

use super::Refused;
use super::outline::{Key, Outline};
use std::ops::Range;
use toml_parser::parser::{EventReceiver, RecursionGuard, parse_document};
use toml_parser::{ErrorSink, ParseError, Source, Span};

/// Arrays and inline tables in each other; the `toml` crate allows no more either.
const MAX_DEPTH: u32 = 80;

/// Puts the keys of a text into an outline.
pub fn scan(text: &str, outline: &mut Outline) -> Result<(), Refused> {
    let source = Source::new(text);
    let tokens = source.lex().into_vec();
    let mut error: Option<ParseError> = None;
    let mut keys = Keys { source, outline, table: false, header: None, key: None, open: Vec::new(), end: 0 };
    parse_document(&tokens, &mut RecursionGuard::new(&mut keys, MAX_DEPTH), &mut error);
    keys.finish();
    match error {
        None => Ok(()),
        Some(error) => {
            let at = error.unexpected().or(error.context()).map_or(0, |span| span.start());
            let line = text[..text.floor_char_boundary(at)].matches('\n').count() + 1;
            Err(format!("{} on line {line}", error.description()))
        }
    }
}

struct Keys<'i, 'o> {
    source: Source<'i>,
    outline: &'o mut Outline,
    /// Whether there is an open table.
    table: bool,
    /// Start of the header that is being read.
    header: Option<usize>,
    /// The key that is being read.
    key: Option<Range<usize>>,
    /// Open arrays with the number of their elements; `None` for inline tables.
    open: Vec<Option<usize>>,
    /// Where the last value or header ends.
    end: usize,
}

impl Keys<'_, '_> {
    fn finish(&mut self) {
        if std::mem::take(&mut self.table) {
            self.outline.close(self.end);
        }
    }

    fn header(&mut self, span: Span) {
        self.finish();
        self.header = Some(span.start());
        self.key = None;
    }

    fn table(&mut self, span: Span) {
        if let (Some(start), Some(key)) = (self.header.take(), self.key.take()) {
            self.outline.open(Key::Dotted(key), start);
            self.table = true;
            self.end = span.end();
        }
    }

    fn begin(&mut self, span: Span) {
        if let Some(Some(elements)) = self.open.last_mut() {
            self.outline.open(Key::Index(*elements), span.start());
            *elements += 1;
        }
    }

    fn ended(&mut self, span: Span) {
        self.end = span.end();
        self.outline.close(self.end);
    }
}

impl EventReceiver for Keys<'_, '_> {
    fn std_table_open(&mut self, span: Span, _: &mut dyn ErrorSink) {
        self.header(span);
    }

    fn std_table_close(&mut self, span: Span, _: &mut dyn ErrorSink) {
        self.table(span);
    }

    fn array_table_open(&mut self, span: Span, _: &mut dyn ErrorSink) {
        self.header(span);
    }

    fn array_table_close(&mut self, span: Span, _: &mut dyn ErrorSink) {
        self.table(span);
    }

    fn inline_table_open(&mut self, span: Span, _: &mut dyn ErrorSink) -> bool {
        self.begin(span);
        self.open.push(None);
        true
    }

    fn inline_table_close(&mut self, span: Span, _: &mut dyn ErrorSink) {
        self.open.pop();
        self.ended(span);
    }

    fn array_open(&mut self, span: Span, _: &mut dyn ErrorSink) -> bool {
        self.begin(span);
        self.open.push(Some(0));
        true
    }

    fn array_close(&mut self, span: Span, _: &mut dyn ErrorSink) {
        self.open.pop();
        self.ended(span);
    }

    fn simple_key(&mut self, span: Span, _: Option<toml_parser::decoder::Encoding>, _: &mut dyn ErrorSink) {
        match &mut self.key {
            Some(key) => key.end = span.end(),
            None => self.key = Some(span.start()..span.end()),
        }
    }

    fn key_val_sep(&mut self, span: Span, _: &mut dyn ErrorSink) {
        let key = self.key.take().unwrap_or(span.start()..span.start());
        let start = key.start;
        self.outline.open(Key::Dotted(key), start);
    }

    fn scalar(&mut self, span: Span, encoding: Option<toml_parser::decoder::Encoding>, error: &mut dyn ErrorSink) {
        self.begin(span);
        // The events do not say whether a value is one.
        let raw = self.source.get(span).map(|raw| raw.as_str()).unwrap_or_default();
        let _kind = toml_parser::Raw::new_unchecked(raw, encoding, span).decode_scalar(&mut (), error);
        self.ended(span);
    }
}
