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
    /// PDF.
    Pdf,
}

/// Extensions of names, without the dot and in lower case, and what files so named are.
const EXTENSIONS: &[(&[&str], Format)] = &[
    (&["md", "markdown", "mdown", "mkd"], Format::Markdown),
    (&["txt", "text", "rst", "adoc", "org", "log"], Format::Text),
    (&["jsonl", "ndjson"], Format::Record),
    (&["pdf"], Format::Pdf),
];

/// Bytes that are looked at; enough for one long record.
const LOOK: usize = 1 << 20;

impl Format {
    /// The format that a file's name promises.
    pub fn of_name(path: &str) -> Option<Self> {
        let name = path.rsplit('/').next().unwrap_or_default();
        let extension = name.rsplit_once('.')?.1.to_ascii_lowercase();
        EXTENSIONS.iter().find(|(names, _)| names.contains(&extension.as_str())).map(|(_, format)| *format)
    }

    /// The format of a document that a source of `kind` holds.
    pub fn of_item(kind: SourceKind) -> Self {
        match kind {
            SourceKind::Text => Format::Text,
            SourceKind::Markdown => Format::Markdown,
            SourceKind::Jsonl => Format::Record,
            SourceKind::Pdf => Format::Pdf,
        }
    }

    /// Whether a folder of `kind` takes a file of this format when no glob says otherwise.
    pub fn is_of(self, kind: SourceKind) -> bool {
        self == Self::of_item(kind)
    }
}

impl Format {
    /// The format of some content without a source: by what it is, then by its name, then by its looks.
    ///
    /// Content speaks first, because names lie: a first line that is a whole JSON object means records. Markdown and
    /// plain text cannot be told apart by content when both are possible, so the name decides, and only an unknown name
    /// lets the first lines decide.
    pub fn detect(path: &str, content: &[u8]) -> Self {
        if content.trim_ascii_start().starts_with(b"%PDF-") {
            return Format::Pdf;
        }
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
            Format::Pdf => SourceKind::Pdf,
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
            ("a.txt", "\n%PDF-1.7", Format::Pdf),
        ] {
            assert_eq!(Format::detect(name, content.as_bytes()), format, "{name} {content}");
        }
    }
}
