// SPDX-License-Identifier: PostgreSQL

//! The outline: the sections of a document and where they begin.
//!
//! An entry names a page, and often a height that is not that of its title, so its title is looked for among the lines of
//! the page; an entry whose title is not there begins at the first line. The tree, and the tree of names that
//! destinations go through, are walked once each and no further than a bound.

use super::info;
use super::words::Line;
use hayro_syntax::object::{Array, Dict, Object, ObjectIdentifier, String as PdfString};
use hayro_syntax::xref::XRef;
use std::collections::{HashMap, HashSet};

/// Entries that are read, and nodes of the tree of names.
const MAX_ENTRIES: usize = 20_000;
const MAX_NODES: usize = 200_000;

/// Levels below each other.
const MAX_LEVEL: u8 = 6;

/// Lines that a title may have.
const TITLE_LINES: usize = 4;

/// Lines that are compared with titles: a hostile outline can name one long page again and again.
const MAX_LOOKED_AT: usize = 20_000_000;

/// Characters of a title's number (`Chapter 12`) that its line has and the entry has not, or the other way round.
const NUMBER: usize = 12;

/// An entry.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// From 1.
    pub level: u8,
    /// Title.
    pub title: String,
    /// Its page, from 0.
    pub page: usize,
}

/// Where a section begins.
#[derive(Debug, Clone, PartialEq)]
pub struct Section {
    /// Level of its heading.
    pub level: u8,
    /// Text of its heading.
    pub title: String,
    /// Page, from 0.
    pub page: usize,
    /// First line on that page.
    pub line: usize,
    /// Lines of its heading; none when the page does not have it.
    pub lines: usize,
}

/// The entries of a document's outline in order.
pub fn entries(xref: &XRef, catalog: &Dict<'_>, pages: &HashMap<ObjectIdentifier, usize>) -> Vec<Entry> {
    let names = Names::new(catalog, pages);
    let mut entries = Vec::new();
    let mut seen: HashSet<ObjectIdentifier> = HashSet::new();
    let mut open: Vec<(ObjectIdentifier, u8)> = Vec::new();
    let next = |dict: &Dict<'_>, key: &str| dict.get_ref(key).map(ObjectIdentifier::from);
    if let Some(first) = catalog.get::<Dict<'_>>("Outlines").and_then(|root| next(&root, "First")) {
        open.push((first, 1));
    }
    while let Some((id, level)) = open.pop() {
        if seen.len() >= MAX_ENTRIES || !seen.insert(id) {
            continue;
        }
        let Some(item) = xref.get::<Dict<'_>>(id) else { continue };
        open.extend(next(&item, "Next").map(|id| (id, level)));
        open.extend(next(&item, "First").map(|id| (id, level.saturating_add(1))));
        let title = item.get::<PdfString<'_>>("Title").and_then(|title| info::tidy(info::string(title.as_bytes())));
        let action = || item.get::<Dict<'_>>("A")?.get::<Object<'_>>("D");
        let page = item.get::<Object<'_>>("Dest").or_else(action).and_then(|to| names.page(&to));
        if let (Some(title), Some(page)) = (title, page) {
            entries.push(Entry { level: level.min(MAX_LEVEL), title, page });
        }
    }
    entries
}

/// Destinations.
struct Names<'d, 'p> {
    pages: &'p HashMap<ObjectIdentifier, usize>,
    old: Option<Dict<'d>>,
    named: HashMap<Vec<u8>, usize>,
}

impl<'d, 'p> Names<'d, 'p> {
    fn new(catalog: &Dict<'d>, pages: &'p HashMap<ObjectIdentifier, usize>) -> Self {
        let mut names = Self { pages, old: catalog.get("Dests"), named: HashMap::new() };
        let root = catalog.get::<Dict<'_>>("Names").and_then(|names| names.get::<Dict<'_>>("Dests"));
        let mut open: Vec<Dict<'_>> = root.into_iter().collect();
        let mut seen = HashSet::new();
        let mut left = MAX_NODES;
        while let Some(node) = open.pop() {
            // The bytes of a node are where they are; a node within a node has the identity of the outer one.
            if !seen.insert(node.data().as_ptr()) || left == 0 {
                continue;
            }
            left -= 1;
            open.extend(node.get::<Array<'_>>("Kids").iter().flat_map(|kids| kids.iter::<Dict<'_>>()).take(left));
            let mut key = None;
            for item in node.get::<Array<'_>>("Names").iter().flat_map(|names| names.iter::<Object<'_>>()).take(left) {
                match (key.take(), item) {
                    (None, Object::String(name)) => key = Some(name.as_bytes().to_vec()),
                    (Some(name), to) => {
                        if let Some(page) = names.place(&to) {
                            names.named.insert(name, page);
                        }
                    }
                    _ => {}
                }
                left = left.saturating_sub(1);
            }
        }
        names
    }

    /// The page of a destination.
    fn page(&self, to: &Object<'_>) -> Option<usize> {
        let by_name = |name: &[u8]| {
            let old = || self.place(&self.old.as_ref()?.get::<Object<'_>>(name)?);
            self.named.get(name).copied().or_else(old)
        };
        match to {
            Object::String(name) => by_name(name.as_bytes()),
            Object::Name(name) => by_name(name.as_ref()),
            other => self.place(other),
        }
    }

    /// The page of a destination without a name.
    fn place(&self, to: &Object<'_>) -> Option<usize> {
        let array = match to {
            Object::Array(array) => array.clone(),
            Object::Dict(dict) => dict.get::<Array<'_>>("D")?,
            _ => return None,
        };
        let first = array.raw_iter().next()?;
        match first.as_obj_ref() {
            Some(page) => self.pages.get(&ObjectIdentifier::from(page)).copied(),
            None => array.iter::<Object<'_>>().next()?.into_i32().and_then(|page| usize::try_from(page).ok()),
        }
    }
}

/// Where the sections of an outline begin, in the order of reading.
pub fn sections(entries: Vec<Entry>, pages: &[Vec<Line>]) -> Vec<Section> {
    let plain: HashMap<usize, Vec<String>> = entries
        .iter()
        .filter_map(|entry| Some((entry.page, pages.get(entry.page)?.iter().map(|line| letters(&line.text)).collect())))
        .collect();
    let mut sections = Vec::new();
    let (mut last, mut left) = ((0, 0), MAX_LOOKED_AT);
    for entry in entries {
        let Some(lines) = pages.get(entry.page) else { continue };
        let after = if last.0 == entry.page { last.1 } else { 0 };
        left = left.saturating_sub(lines.len());
        let look = || find(&letters(&entry.title), &plain[&entry.page], lines, after);
        let found = if left > 0 { look() } else { None };
        let (line, count) = found.unwrap_or((after, 0));
        last = (entry.page, line + count);
        sections.push(Section { level: entry.level, title: entry.title, page: entry.page, line, lines: count });
    }
    sections.sort_by_key(|section| (section.page, section.line));
    sections
}

/// The lines that are a title: the largest such, from `after` on.
fn find(title: &str, plain: &[String], lines: &[Line], after: usize) -> Option<(usize, usize)> {
    let mut best: Option<(usize, usize)> = None;
    for first in after..plain.len() {
        let mut joined = String::new();
        for count in 1..=TITLE_LINES.min(plain.len() - first) {
            joined.push_str(&plain[first + count - 1]);
            if is_title(title, &joined) {
                if best.is_none_or(|(line, _)| lines[line].size * 1.05 < lines[first].size) {
                    best = Some((first, count));
                }
                break;
            }
            if joined.len() > title.len() + NUMBER {
                break;
            }
        }
    }
    best
}

/// Whether a line is a title, but for a number before one of them.
fn is_title(title: &str, line: &str) -> bool {
    let numbered = |long: &str, short: &str| {
        let before = long.strip_suffix(short).filter(|_| !short.is_empty());
        before.is_some_and(|before| {
            before.len() <= NUMBER && (before.len() <= 4 || before.contains(|c: char| c.is_numeric()))
        })
    };
    !title.is_empty() && (numbered(line, title) || numbered(title, line))
}

/// What titles are compared by.
pub fn letters(text: &str) -> String {
    text.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn titles_are_found_or_the_page_begins_the_section() {
        let line = |text: &str, size| Line { text: text.to_owned(), size, ..Line::default() };
        let pages = vec![vec![
            line("see the introduction", 10.0),
            line("Introduction", 10.0),
            line("1.1 Intro-", 14.0),
            line("duction", 14.0),
            line("text", 10.0),
            line("Chapter 2 Outlook", 14.0),
        ]];
        let entry = |title: &str, level| Entry { level, title: title.to_owned(), page: 0 };
        let found = sections(vec![entry("Introduction", 1), entry("Missing", 2), entry("Outlook", 1)], &pages);
        let places: Vec<_> = found.iter().map(|s| (s.line, s.lines)).collect();
        assert_eq!(places, [(2, 2), (4, 0), (5, 1)]);
        assert!(!is_title("introduction", "seetheintroduction"));
    }
}
