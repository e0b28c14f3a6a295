// SPDX-License-Identifier: PostgreSQL

//! Sections and keys of INI files, and keys of Java properties.
//!
//! There is no standard and no crate that tells where things are, so this reads lines as Python's `configparser` does: a
//! line that is indented deeper than its key goes on with the value; `#` and `;` begin comments. Properties have `!`
//! comments, go on after a backslash, and belong together by the first of their dotted names. A key may stand without a
//! value as one word, as database servers have it. Anything else is no INI file.

use super::Refused;
use super::outline::{Key, Outline};
use std::ops::Range;

/// Puts the keys of a text into an outline.
pub fn scan(text: &str, properties: bool, outline: &mut Outline) -> Result<(), Refused> {
    let mut keys = Keys { outline, section: None, end: 0, value: None };
    let mut at = 0;
    // Whether the line before ends with a backslash.
    let mut goes_on = false;
    for (number, line) in text.split_inclusive('\n').enumerate() {
        let start = at;
        at += line.len();
        let body = line.trim();
        let indent = line.len() - line.trim_start().len();
        let range = start + indent..start + indent + body.len();
        let comment = body.starts_with('#') || body.starts_with(if properties { '!' } else { ';' });
        if goes_on && !body.is_empty() {
            goes_on = properties && is_open(body);
            keys.extend(range.end);
            continue;
        }
        if body.is_empty() || comment {
            continue;
        }
        if !properties && keys.value.as_ref().is_some_and(|(_, key)| indent > *key) {
            keys.extend(range.end);
            continue;
        }
        goes_on = properties && is_open(body);
        if !properties && body.starts_with('[') {
            let Some(close) = body.rfind(']').filter(|close| *close > 1) else {
                return Err(format!("a section without end on line {}", number + 1));
            };
            keys.section(range.start + 1..range.start + close, range);
            continue;
        }
        let Some(key) = key(body, properties) else {
            return Err(format!("neither a section nor a key on line {}", number + 1));
        };
        let name = range.start..range.start + key;
        if properties {
            keys.group(text, &name);
        }
        keys.key(name, range, indent);
    }
    keys.finish();
    Ok(())
}

/// Whether a line ends with a backslash that nothing escapes.
fn is_open(body: &str) -> bool {
    body.bytes().rev().take_while(|b| *b == b'\\').count() % 2 == 1
}

/// Bytes of the key that a line begins with.
fn key(body: &str, properties: bool) -> Option<usize> {
    let separators: &[char] = if properties { &['=', ':', ' ', '\t'] } else { &['=', ':'] };
    let is_word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
    match body.find(separators) {
        Some(0) => None,
        // A line of prose with a colon far behind is no key.
        Some(at) => Some(body[..at].trim_end().len()).filter(|length| *length <= 200),
        None => body.chars().all(is_word).then_some(body.len()),
    }
}

struct Keys<'o> {
    outline: &'o mut Outline,
    /// The name of the open section or group.
    section: Option<Range<usize>>,
    /// Where the last key ends.
    end: usize,
    /// Start and indentation of the open key.
    value: Option<(usize, usize)>,
}

impl Keys<'_> {
    fn extend(&mut self, end: usize) {
        self.end = end;
    }

    fn close_key(&mut self) {
        if self.value.take().is_some() {
            self.outline.close(self.end);
        }
    }

    fn finish(&mut self) {
        self.close_key();
        if self.section.take().is_some() {
            self.outline.close(self.end);
        }
    }

    fn section(&mut self, name: Range<usize>, line: Range<usize>) {
        self.finish();
        self.outline.open(Key::Name(name.clone()), line.start);
        self.section = Some(name);
        self.end = line.end;
    }

    fn key(&mut self, name: Range<usize>, line: Range<usize>, indent: usize) {
        self.close_key();
        self.outline.open(Key::Name(name), line.start);
        self.value = Some((line.start, indent));
        self.end = line.end;
    }

    /// Makes a group of neighbours whose dotted names begin alike.
    fn group(&mut self, text: &str, name: &Range<usize>) {
        let full = &text[name.clone()];
        let first = name.start..name.start + full.find('.').unwrap_or(full.len());
        if self.section.as_ref().is_some_and(|open| text[open.clone()] == text[first.clone()]) {
            return;
        }
        self.finish();
        self.outline.open(Key::Name(first.clone()), name.start);
        self.section = Some(first);
    }
}
