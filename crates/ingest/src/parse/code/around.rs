// SPDX-License-Identifier: PostgreSQL

//! What goes with a symbol: comments and attributes before it, its header, and what closes it.
//!
//! All of it is decided by the nodes around the symbol and the lines that they stand on. Makes no parts:
//! [`super::walk`] does.

use super::blocks::{blank_line, closes, line_start};
use super::grammar::{Grammar, is_comment};
use std::ops::Range;
use tree_sitter::Node;

/// Bytes of one header.
pub const MAX_HEADER: usize = 300;

/// Comments and attributes before a symbol.
#[derive(Clone, Copy)]
pub struct Lead {
    /// First byte.
    pub start: usize,
    /// Behind the last byte.
    pub end: usize,
    /// Whether they document.
    pub documents: bool,
    /// Whether the last of it is an attribute, which goes with what follows in any case.
    pub attribute: bool,
}

impl Lead {
    /// Whether it belongs to what begins at `start`.
    pub fn is_near(&self, text: &str, start: usize) -> bool {
        self.attribute || !blank_line(text, self.end, start)
    }
}

/// Comments and attributes before a sibling, with one more.
pub fn lead(text: &str, grammar: &Grammar, before: Option<Lead>, node: Node<'_>, attribute: bool) -> Option<Lead> {
    let (start, end) = (node.start_byte(), node.end_byte());
    let words = &text[node.byte_range()];
    // A comment of Rust that is about what it stands in.
    if grammar.attributes.contains(&"attribute_item") && (words.starts_with("//!") || words.starts_with("/*!")) {
        return None;
    }
    // The line that names the interpreter says nothing of what follows.
    let documents = !attribute && !words.starts_with("#!") && grammar.docs.iter().any(|mark| words.starts_with(mark));
    Some(match before.filter(|lead| lead.is_near(text, start)) {
        Some(lead) => Lead { end, attribute, documents: lead.documents || documents, ..lead },
        None => Lead { start, end, documents, attribute },
    })
}

/// Comments between a header and its body, which some grammars count to neither: they go with the first member.
pub fn lead_of_body(text: &str, grammar: &Grammar, node: Node<'_>, body: Node<'_>) -> Option<Lead> {
    let mut cursor = node.walk();
    let (mut found, mut row) = (None, None);
    for child in node.children(&mut cursor) {
        if child.start_byte() >= body.start_byte() {
            break;
        }
        if !is_comment(child.kind()) {
            (found, row) = (None, Some(last_row(child)));
        } else if row != Some(child.start_position().row) {
            found = lead(text, grammar, found, child, false);
        }
    }
    found
}

/// The row on which a node ends; its line feed may be part of it.
pub fn last_row(node: Node<'_>) -> usize {
    let end = node.end_position();
    if end.column == 0 { end.row.saturating_sub(1) } else { end.row }
}

/// The first lines of a symbol, up to where its body opens.
pub fn header(text: &str, grammar: &Grammar, outer: Node<'_>, inner: Node<'_>, body: Option<Node<'_>>) -> String {
    let same_row = outer.start_position().row == inner.start_position().row;
    let start = if same_row { outer.start_byte() } else { inner.start_byte() };
    let end = match body {
        Some(body) if braced(text, body.start_byte()) => body.start_byte() + 1,
        Some(body) => body.start_byte(),
        None => {
            start + text[start..inner.end_byte().max(start)].find('\n').unwrap_or(inner.end_byte().max(start) - start)
        }
    };
    let header = text.get(start..end.max(start)).unwrap_or_default();
    let header = header[..header.floor_char_boundary(MAX_HEADER)].trim();
    let mut lines: Vec<&str> = header.lines().collect();
    // Annotations, and comments before the body, say nothing of where one is.
    while lines.len() > 1 && lines[0].trim_start().starts_with(['@', '[', '#']) {
        lines.remove(0);
    }
    while lines.len() > 1 && grammar.comments.iter().any(|mark| lines[lines.len() - 1].trim_start().starts_with(mark)) {
        lines.pop();
    }
    lines.join("\n").trim().to_owned()
}

/// Whether a brace opens a body on the line of its header.
fn braced(text: &str, at: usize) -> bool {
    text[at..].starts_with('{') && line_start(text, at, 0).is_none()
}

/// How far what only closes the part before reaches: the rest of its line, and lines of closing marks.
pub fn closed(text: &str, grammar: &Grammar, range: Range<usize>) -> usize {
    let mut at = range.start;
    for (index, line) in text[range.clone()].split_inclusive('\n').enumerate() {
        let rest = line.trim_start_matches(|c: char| c.is_whitespace() || (c.is_ascii() && closes(c as u8)));
        let rest = rest.trim_end();
        let first = index == 0 && at > 0 && !text[..at].ends_with('\n');
        let comment = first && grammar.comments.iter().any(|mark| rest.starts_with(mark));
        let closer = grammar.closers.iter().any(|word| {
            rest.strip_prefix(word).is_some_and(|after| !after.starts_with(|c: char| c.is_alphanumeric() || c == '_'))
        });
        if !(rest.is_empty() || comment || closer) {
            break;
        }
        at += line.len();
    }
    let taken = text[range.start..at].trim_end();
    if taken.is_empty() { range.start } else { range.start + taken.len() }
}
