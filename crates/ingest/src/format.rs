// SPDX-License-Identifier: PostgreSQL

//! Formats: what some bytes are, as far as parsing them is concerned.
//!
//! Owns which format a document of a source has. A kind of source that takes one format decides; one that holds files of
//! every sort (an archive, a repository) is decided by the name of the file and then by its content. Knows nothing of
//! how a format is parsed: [`crate::parse::parse`] does.

use crate::text;
use rag_core::source::SourceKind;
use serde_json::{Map, Value};

/// A format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Plain text.
    Text,
    /// Markdown.
    Markdown,
    /// One JSON object that is a record.
    Record,
}

/// Extensions of names, without the dot and in lower case, and what files so named are.
const EXTENSIONS: &[(&[&str], Format)] = &[
    (&["md", "markdown", "mdown", "mkd"], Format::Markdown),
    (&["txt", "text", "rst", "adoc", "org", "log"], Format::Text),
    (&["jsonl", "ndjson"], Format::Record),
];

/// Bytes of a file by which it is told whether it is text; those that git looks at, too, are about as many.
pub const HEAD: usize = 8192;

/// Bytes that are looked at; enough for one long record.
const LOOK: usize = 1 << 20;

impl Format {
    /// The format that a file's name promises.
    pub fn of_name(path: &str) -> Option<Self> {
        let name = path.rsplit('/').next().unwrap_or_default();
        let extension = name.rsplit_once('.')?.1.to_ascii_lowercase();
        EXTENSIONS.iter().find(|(names, _)| names.contains(&extension.as_str())).map(|(_, format)| *format)
    }

    /// The format of the document `path` that a source of `kind` holds; only kinds that hold files of every sort look at
    /// its name and content.
    pub fn of_item(kind: SourceKind, path: &str, content: &[u8]) -> Self {
        Self::of_kind(kind).unwrap_or_else(|| Self::of_file(path, content))
    }

    /// The one format of all documents of a kind, if it has one.
    fn of_kind(kind: SourceKind) -> Option<Self> {
        match kind {
            SourceKind::Text => Some(Format::Text),
            SourceKind::Markdown => Some(Format::Markdown),
            SourceKind::Jsonl => Some(Format::Record),
            SourceKind::Zip => None,
        }
    }

    /// The format of one file among files of every sort, each of which is one document.
    ///
    /// The name decides. A file of records is text here, since it is many documents elsewhere. A name with an extension that
    /// says nothing is text, because a comment of a script looks like a heading; only a name without one (`README`) lets
    /// the first lines decide.
    fn of_file(path: &str, content: &[u8]) -> Self {
        let name = path.rsplit('/').next().unwrap_or_default();
        match Self::of_name(path) {
            Some(Format::Record) => Format::Text,
            Some(format) => format,
            None if name.contains('.') => Format::Text,
            None if looks_like_markdown(&text::repair(&content[..content.len().min(LOOK)]).text) => Format::Markdown,
            None => Format::Text,
        }
    }

    /// Whether a folder of `kind` takes a file of this format when no glob says otherwise.
    pub fn is_of(self, kind: SourceKind) -> bool {
        Self::of_kind(kind) == Some(self)
    }
}

impl Format {
    /// Whether the beginning of a file whose name says nothing looks like text, as git sees it: UTF-16 by its mark, or
    /// anything without NUL. Other control characters, and more bytes that are not UTF-8 than any old encoding has letters
    /// beyond ASCII in a text of Western Europe, make it binary too.
    pub fn looks_like_text(head: &[u8]) -> bool {
        if matches!(head, [0xFF, 0xFE, ..] | [0xFE, 0xFF, ..]) {
            return true;
        }
        let control = |b: &u8| matches!(b, 0..=8 | 14..=26 | 28..=31 | 127);
        // A character that is cut off at the end of the head is no fault.
        let invalid: usize = head.utf8_chunks().map(|part| part.invalid().len()).sum();
        !head.iter().any(control) && (invalid <= 3 || invalid * 3 <= head.len())
    }

    /// The format of some content without a source: by what it is, then by its name, then by its looks.
    ///
    /// Content speaks first, because names lie: a first line that is a whole JSON object means records. Markdown and
    /// plain text cannot be told apart by content when both are possible, so the name decides, and only an unknown name
    /// lets the first lines decide.
    pub fn detect(path: &str, content: &[u8]) -> Self {
        let head = text::repair(&content[..content.len().min(LOOK)]).text;
        let mut lines = head.lines().filter(|line| !line.trim().is_empty());
        if lines.next().is_some_and(|line| serde_json::from_str::<Map<String, Value>>(line).is_ok()) {
            return Format::Record;
        }
        Self::of_name(path).unwrap_or(if looks_like_markdown(&head) { Format::Markdown } else { Format::Text })
    }

    /// The kind of source that such a file alone would be.
    pub fn kind(self) -> SourceKind {
        match self {
            Format::Text => SourceKind::Text,
            Format::Markdown => SourceKind::Markdown,
            Format::Record => SourceKind::Jsonl,
        }
    }
}

/// Whether an ATX heading, a labelled fence or front matter is among the first lines.
fn looks_like_markdown(head: &str) -> bool {
    head.lines().take(200).enumerate().any(|(i, line)| {
        let hashes = line.bytes().take_while(|b| *b == b'#').count();
        let heading = (1..=6).contains(&hashes) && line[hashes..].starts_with(' ');
        // A first line with one hash is as often a comment of a script as a title.
        let script = i == 0 && line.starts_with("#!");
        (heading && !script) || line.starts_with("```") || (i == 0 && line.trim_end() == "---")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn among_files_of_every_sort_the_name_decides() {
        for (name, content, format) in [
            ("d.md/a.md", "{\"text\": 1}", Format::Markdown),
            ("a.jsonl", "{\"text\": 1}", Format::Text),
            ("a.py", "# comment\n", Format::Text),
            ("a.d/README", "# title\n", Format::Markdown),
            ("LICENSE", "words", Format::Text),
        ] {
            assert_eq!(Format::of_item(SourceKind::Zip, name, content.as_bytes()), format, "{name}");
            assert_eq!(Format::of_item(SourceKind::Text, name, content.as_bytes()), Format::Text, "{name}");
        }
    }

    #[test]
    fn text_and_binary_are_told_apart() {
        for text in
            [&b""[..], b"words\r\n\tmore\x0C", b"\xFF\xFEh\0i\0", b"caf\xE9 na\xEFve", "漢字".as_bytes(), b"\x1B[1mx"]
        {
            assert!(Format::looks_like_text(text), "{text:?}");
        }
        for binary in [&b"\x89PNG\r\n\x1A\n\0"[..], b"a\0b", b"\x01\x02", b"\xE9\xE9\xE9\xE9 abcd"] {
            assert!(!Format::looks_like_text(binary), "{binary:?}");
        }
    }

    #[test]
    fn content_then_name_then_looks() {
        for (name, content, format) in [
            ("a.md", "plain", Format::Markdown),
            ("a.MD", "plain", Format::Markdown),
            ("a.txt", "# title", Format::Text),
            ("notes", "# title\n", Format::Markdown),
            ("notes", "```sh\n", Format::Markdown),
            ("notes", "plain", Format::Text),
            ("script", "#!/bin/sh\n", Format::Text),
            ("a.txt", "\n{\"text\": \"x\"}\n", Format::Record),
            ("a.jsonl", "", Format::Record),
            ("a.txt", "{not json}", Format::Text),
            ("", "", Format::Text),
        ] {
            assert_eq!(Format::detect(name, content.as_bytes()), format, "{name} {content}");
        }
    }
}
