// SPDX-License-Identifier: PostgreSQL

//! An outline: where the keys of a configuration and their values are, no finer than chunks can be.
//!
//! A scanner opens an entry for each key or element and closes it where its value ends. What is small is not kept apart
//! below the top level: small neighbours become one entry without a key, and the inside of a small value is
//! forgotten. So the outline of a file of any shape is smaller than the file.

use std::ops::Range;

/// Entries nested deeper than this are not cut at their own keys; bounds every recursion over the outline.
const MAX_DEPTH: usize = 16;

/// Top-level keys that are kept apart however small; more of them are data, of which neighbours go together.
const MAX_TOP: usize = 4096;

/// Longest name in a path in characters: it is repeated in every chunk beneath it.
const MAX_NAME: usize = 200;

/// Most names in a path, for the same reason; a dotted key may be as long as the file.
const MAX_PATH: usize = 32;

/// How an entry is found from the one around it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Key {
    /// A name, where it stands, with its quotes.
    Name(Range<usize>),
    /// Names with dots between them.
    Dotted(Range<usize>),
    /// The number of an element, from 0.
    Index(usize),
}

impl Key {
    /// Appends the names to a path; a name that is empty says nothing there.
    pub fn names(&self, text: &str, path: &mut Vec<String>) {
        match self {
            Key::Name(range) => path.push(name(&text[range.clone()])),
            Key::Dotted(range) => path.extend(undotted(&text[range.clone()]).into_iter().take(MAX_PATH).map(name)),
            Key::Index(index) => path.push(format!("[{index}]")),
        }
        path.retain(|name| !name.is_empty());
        path.truncate(MAX_PATH);
    }
}

/// A name without quotes.
fn name(raw: &str) -> String {
    let raw = raw.trim();
    let decoded = match raw.as_bytes() {
        [b'"', .., b'"'] => serde_json::from_str::<String>(raw).unwrap_or_else(|_| raw[1..raw.len() - 1].to_owned()),
        [b'\'', .., b'\''] if raw.len() > 1 => raw[1..raw.len() - 1].replace("''", "'"),
        _ => raw.to_owned(),
    };
    let words = decoded.split_whitespace().collect::<Vec<_>>().join(" ");
    crate::text::without_nul(&words.chars().take(MAX_NAME).collect::<String>())
}

/// What stands between the dots outside of quotes.
fn undotted(raw: &str) -> Vec<&str> {
    let mut names = Vec::new();
    let (mut quote, mut escaped, mut from) = (None, false, 0);
    for (at, c) in raw.char_indices() {
        match (c, quote) {
            _ if escaped => escaped = false,
            ('\\', Some('"')) => escaped = true,
            ('"' | '\'', None) => quote = Some(c),
            (c, Some(open)) if c == open => quote = None,
            ('.', None) => {
                names.push(&raw[from..at]);
                from = at + 1;
            }
            _ => {}
        }
    }
    names.push(&raw[from..]);
    names
}

/// A key with its value, or several small neighbours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its key; `None` for neighbours.
    pub key: Option<Key>,
    /// From the key to the end of the value.
    pub range: Range<usize>,
    /// Entries of the value, where it is large.
    pub children: Vec<Entry>,
}

/// Collects entries.
#[derive(Debug)]
pub struct Outline {
    limit: usize,
    open: Vec<Entry>,
    /// Open entries beyond the depth.
    ignored: usize,
    entries: Vec<Entry>,
    elements: bool,
}

impl Outline {
    /// An empty outline, in which a value of at most `limit` bytes is small.
    pub fn new(limit: usize) -> Self {
        Self { limit, open: Vec::new(), ignored: 0, entries: Vec::new(), elements: false }
    }

    /// Says that the top level has elements instead of keys: those are not kept apart when small.
    pub fn of_elements(&mut self) {
        self.elements = true;
    }

    /// Begins an entry.
    pub fn open(&mut self, key: Key, start: usize) {
        if self.open.len() < MAX_DEPTH && self.ignored == 0 {
            self.open.push(Entry { key: Some(key), range: start..start, children: Vec::new() });
        } else {
            self.ignored += 1;
        }
    }

    /// Ends the entry that was opened last.
    pub fn close(&mut self, end: usize) {
        if self.ignored > 0 {
            self.ignored -= 1;
            return;
        }
        let Some(mut entry) = self.open.pop() else {
            return;
        };
        entry.range.end = end.max(entry.range.start);
        let small = entry.range.len() <= self.limit;
        if small {
            entry.children = Vec::new();
        }
        let top = self.open.is_empty();
        let apart = top && !self.elements && self.entries.len() < MAX_TOP;
        let siblings = self.open.last_mut().map_or(&mut self.entries, |parent| &mut parent.children);
        if let Some(last) = siblings.last_mut().filter(|last| !apart && small && last.children.is_empty())
            && entry.range.end.saturating_sub(last.range.start) <= self.limit
        {
            *last = Entry { key: None, range: last.range.start..entry.range.end, children: Vec::new() };
            return;
        }
        siblings.push(entry);
    }

    /// What the scanner found.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Bytes up to which a value is small.
    pub fn limit(&self) -> usize {
        self.limit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(raw: &str) -> Vec<String> {
        let mut path = Vec::new();
        Key::Dotted(0..raw.len()).names(raw, &mut path);
        path
    }

    #[test]
    fn names_lose_their_quotes() {
        assert_eq!(names("a . \"b.c\".'d\"e'"), ["a", "b.c", "d\"e"]);
        assert_eq!(names("\"\\u00e9\\\".\""), ["é\"."]);
        assert_eq!(names("\""), ["\""]);
        assert_eq!(names("'"), ["'"]);
        assert_eq!(names("\"\\x\""), ["\\x"]);
    }

    #[test]
    fn small_neighbours_go_together_below_the_top() {
        let mut outline = Outline::new(10);
        for start in [0, 100] {
            outline.open(Key::Index(start), start);
            for child in 0..10 {
                let at = start + child * 4;
                outline.open(Key::Index(child), at);
                outline.close(at + 4);
            }
            outline.close(start + 40);
        }
        let ranges: Vec<_> = outline.entries()[1].children.iter().map(|e| e.range.clone()).collect();
        assert_eq!(ranges, [100..108, 108..116, 116..124, 124..132, 132..140]);
        assert_eq!(outline.entries().len(), 2);
    }

    #[test]
    fn depth_is_bounded() {
        let mut outline = Outline::new(0);
        (0..100_000).for_each(|at| outline.open(Key::Index(0), at));
        (0..100_001).for_each(|_| outline.close(100_000));
        fn depth(entries: &[Entry]) -> usize {
            entries.iter().map(|e| 1 + depth(&e.children)).max().unwrap_or(0)
        }
        assert_eq!(depth(outline.entries()), MAX_DEPTH);
    }
}
