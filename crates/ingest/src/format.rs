// SPDX-License-Identifier: PostgreSQL

//! Formats: what some bytes are, as far as parsing them is concerned.
//!
//! Owns which format a document of a source has. A kind of source that takes one format decides; one that holds files of
//! every sort (an archive, a repository) is decided by the name of the file and then by its content. Knows nothing of
//! how a format is parsed: [`crate::parse::parse`] does.

use crate::parse::code::Language;
use crate::parse::{entry, package};
use crate::text;
use rag_core::source::{Content, SourceKind};
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
    /// Source code.
    Code,
    /// Configuration: YAML, TOML, JSON, INI.
    Config,
    /// One JSON object that is a thread of a forum.
    Forum,
    /// One JSON object that is a work item.
    Issues,
    /// Subtitles or segments of a recording.
    Transcript,
    /// A page, all of it.
    Html,
    /// The article of a page.
    Article,
    /// A Word document.
    Docx,
    /// An EPUB book.
    Epub,
    /// PDF.
    Pdf,
    /// A post of a feed.
    Entry,
}

/// Extensions of names, without the dot and in lower case, and what files so named are.
const EXTENSIONS: &[(&[&str], Format)] = &[
    (&["md", "markdown", "mdown", "mkd"], Format::Markdown),
    (&["txt", "text", "rst", "adoc", "org", "log"], Format::Text),
    (&["jsonl", "ndjson"], Format::Record),
    (&["yaml", "yml", "toml", "json", "jsonc", "ini", "cfg", "conf", "properties"], Format::Config),
    (&["srt", "vtt"], Format::Transcript),
    (&["html", "htm", "xhtml"], Format::Html),
    (&["docx", "docm", "dotx"], Format::Docx),
    (&["epub"], Format::Epub),
    (&["pdf"], Format::Pdf),
];

/// Bytes of a file by which it is told whether it is text; those that git looks at, too, are about as many.
pub const HEAD: usize = 8192;

/// Bytes that are looked at; enough for one long record.
const LOOK: usize = 1 << 20;

impl Format {
    /// The format that a file's name promises.
    pub fn of_name(path: &str) -> Option<Self> {
        let name = path.rsplit('/').next().unwrap_or_default();
        let extension = name.rsplit_once('.').map(|(_, extension)| extension.to_ascii_lowercase());
        let known = EXTENSIONS.iter().find(|(names, _)| extension.as_deref().is_some_and(|e| names.contains(&e)));
        known.map(|(_, format)| *format).or_else(|| Language::of_name(path).map(|_| Self::Code))
    }

    /// The format of the document `path` that a source of `kind` holds; only kinds that hold files of every sort look at
    /// its name and content.
    pub fn of_item(kind: SourceKind, path: &str, content: &[u8]) -> Self {
        Self::of_kind(kind).unwrap_or_else(|| Self::of_file(path, content))
    }

    /// The format of what was acquired. A page of the web is Markdown when its server says so, and a post of a feed comes as
    /// such from where feeds are read.
    pub fn of_content(kind: SourceKind, path: &str, content: &Content) -> Self {
        let served = content.origin.content_type.as_deref().unwrap_or_default();
        let served = served.split(';').next().unwrap_or_default().trim();
        match kind {
            SourceKind::Blog if served == entry::MEDIA_TYPE => Self::Entry,
            SourceKind::Html | SourceKind::Article if served.eq_ignore_ascii_case("text/markdown") => Self::Markdown,
            _ => Self::of_item(kind, path, &content.bytes),
        }
    }

    /// The one format of all documents of a kind, if it has one.
    fn of_kind(kind: SourceKind) -> Option<Self> {
        match kind {
            SourceKind::Text => Some(Format::Text),
            SourceKind::Markdown | SourceKind::Blog => Some(Format::Markdown),
            SourceKind::Jsonl => Some(Format::Record),
            SourceKind::Code => Some(Format::Code),
            SourceKind::Config => Some(Format::Config),
            SourceKind::Forum => Some(Format::Forum),
            SourceKind::Issues => Some(Format::Issues),
            SourceKind::Transcript => Some(Format::Transcript),
            SourceKind::Html => Some(Format::Html),
            SourceKind::Article => Some(Format::Article),
            SourceKind::Docx => Some(Format::Docx),
            SourceKind::Epub => Some(Format::Epub),
            SourceKind::Pdf => Some(Format::Pdf),
            SourceKind::Zip | SourceKind::Git => None,
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
        let own = Self::of_kind(kind);
        own.is_none_or(|format| format == self) || (own == Some(Self::Article) && self == Self::Html)
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
        if let Some(format) = package::format(content) {
            return format;
        }
        if content.trim_ascii_start().starts_with(b"%PDF-") {
            return Format::Pdf;
        }
        let head = text::repair(&content[..content.len().min(LOOK)]).text;
        if Self::looks_like_html(&head) {
            return Format::Html;
        }
        let mut lines = head.lines().filter(|line| !line.trim().is_empty());
        let named = Self::of_name(path).or_else(|| Language::of_shebang(&head).map(|_| Self::Code));
        if lines.next().is_some_and(|line| serde_json::from_str::<Map<String, Value>>(line).is_ok())
            // One object alone in a file with the name of a configuration is one.
            && !(named == Some(Format::Config) && lines.next().is_none())
        {
            return Format::Record;
        }
        if named.is_none() && (head.starts_with("WEBVTT\n") || head.starts_with("WEBVTT ")) {
            return Format::Transcript;
        }
        named.unwrap_or(if looks_like_markdown(&head) { Format::Markdown } else { Format::Text })
    }

    /// Whether it begins as a page does.
    pub fn looks_like_html(head: &str) -> bool {
        let start = head.trim_start();
        let begins = |with: &str| start.get(..with.len()).is_some_and(|s| s.eq_ignore_ascii_case(with));
        begins("<!doctype html")
            || begins("<html")
            || (begins("<?xml") && head.contains("http://www.w3.org/1999/xhtml"))
    }

    /// The kind of source that such a file alone would be.
    pub fn kind(self) -> SourceKind {
        match self {
            Format::Text => SourceKind::Text,
            Format::Markdown => SourceKind::Markdown,
            Format::Entry => SourceKind::Blog,
            Format::Record => SourceKind::Jsonl,
            Format::Code => SourceKind::Code,
            Format::Config => SourceKind::Config,
            Format::Forum => SourceKind::Forum,
            Format::Issues => SourceKind::Issues,
            Format::Transcript => SourceKind::Transcript,
            Format::Html => SourceKind::Html,
            Format::Article => SourceKind::Article,
            Format::Docx => SourceKind::Docx,
            Format::Epub => SourceKind::Epub,
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
    fn among_files_of_every_sort_the_name_decides() {
        for (name, content, format) in [
            ("d.md/a.md", "{\"text\": 1}", Format::Markdown),
            ("a.jsonl", "{\"text\": 1}", Format::Text),
            ("a.py", "# comment\n", Format::Code),
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
            ("script", "#!/usr/bin/awk\n", Format::Text),
            ("script", "#!/bin/sh\n", Format::Code),
            ("a.py", "# x\n", Format::Code),
            ("Rakefile", "", Format::Code),
            ("a.txt", "\n{\"text\": \"x\"}\n", Format::Record),
            ("a.jsonl", "", Format::Record),
            ("a.txt", "{not json}", Format::Text),
            ("a.htm", "plain", Format::Html),
            ("a.txt", "\n<!DOCTYPE HTML>\n", Format::Html),
            ("a.docx", "\u{1}", Format::Docx),
            ("", "", Format::Text),
            ("a.json", "{\"a\": 1}\n", Format::Config),
            ("a.json", "{\"a\": 1}\n{\"a\": 2}\n", Format::Record),
            ("a.TOML", "", Format::Config),
            ("a.srt", "1\n", Format::Transcript),
            ("talk", "WEBVTT\n\n", Format::Transcript),
            ("a.txt", "\n%PDF-1.7", Format::Pdf),
        ] {
            assert_eq!(Format::detect(name, content.as_bytes()), format, "{name} {content}");
        }
    }
}
