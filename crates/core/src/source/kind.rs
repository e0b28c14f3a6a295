// SPDX-License-Identifier: PostgreSQL

//! The kinds of sources: what a location holds, and what of it is a document.

use crate::error::{Error, Result, unknown_key};
use serde::{Deserialize, Serialize};
use std::str::FromStr;

/// The kinds that can be ingested.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum SourceKind {
    /// Plain text: a file or a folder.
    Text,
    /// Markdown: a file or a folder.
    Markdown,
    /// Source code: a file or a folder.
    Code,
    /// Configuration (YAML, TOML, JSON, INI): a file or a folder.
    Config,
    /// PDF: a file or a folder.
    Pdf,
    /// Pages, all of each: a file or a folder.
    Html,
    /// Pages, the article of each: a file or a folder.
    Article,
    /// Word documents: a file or a folder.
    Docx,
    /// EPUB books: a file or a folder.
    Epub,
    /// The members of a ZIP, tar or gzip archive: a file, or a folder of archives.
    Zip,
    /// The files of a commit: a git repository.
    Git,
    /// Threads of a forum as JSON records: a file.
    Forum,
    /// Work items as JSON records: a file.
    Issues,
    /// Posts: a folder or a file of Markdown, or a feed.
    Blog,
    /// Transcripts of recordings (SRT, VTT, JSON): a file or a folder, or recordings as JSON records.
    Transcript,
    /// Records, one JSON object per line, in one JSON array or as rows of CSV: a file.
    Jsonl,
}

/// Kinds that have a name but no reader yet.
const PLANNED: &[&str] = &["table"];

impl SourceKind {
    /// All kinds that can be ingested.
    pub const ALL: [SourceKind; 16] = [
        SourceKind::Text,
        SourceKind::Markdown,
        SourceKind::Code,
        SourceKind::Config,
        SourceKind::Pdf,
        SourceKind::Html,
        SourceKind::Article,
        SourceKind::Docx,
        SourceKind::Epub,
        SourceKind::Zip,
        SourceKind::Git,
        SourceKind::Forum,
        SourceKind::Issues,
        SourceKind::Blog,
        SourceKind::Transcript,
        SourceKind::Jsonl,
    ];

    /// The name used in SQL.
    pub fn name(self) -> &'static str {
        match self {
            SourceKind::Text => "text",
            SourceKind::Markdown => "markdown",
            SourceKind::Code => "code",
            SourceKind::Config => "config",
            SourceKind::Pdf => "pdf",
            SourceKind::Html => "html",
            SourceKind::Article => "article",
            SourceKind::Docx => "docx",
            SourceKind::Epub => "epub",
            SourceKind::Zip => "zip",
            SourceKind::Git => "git",
            SourceKind::Forum => "forum",
            SourceKind::Issues => "issues",
            SourceKind::Blog => "blog",
            SourceKind::Transcript => "transcript",
            SourceKind::Jsonl => "jsonl",
        }
    }

    /// Whether a source of this kind is one file of records and never a folder.
    pub fn is_of_records(self) -> bool {
        matches!(self, SourceKind::Jsonl | SourceKind::Forum | SourceKind::Issues)
    }

    /// Whether a source of this kind holds files of every sort.
    pub fn is_of_many_formats(self) -> bool {
        matches!(self, SourceKind::Zip | SourceKind::Git)
    }

    /// Whether what is fetched from a URL is one document of this kind.
    pub fn is_of_pages(self) -> bool {
        !self.is_of_records() && !self.is_of_many_formats() && self != SourceKind::Blog
    }

    /// Whether the location of a source of this kind may be a URL: of a page, of a feed, of a repository.
    pub fn is_read_from_url(self) -> bool {
        self.is_of_pages() || matches!(self, SourceKind::Blog | SourceKind::Git)
    }

    /// The error for a URL as the location of a kind that is not read from one.
    pub fn not_from_url(self) -> Error {
        let kinds: Vec<&str> = Self::ALL.into_iter().filter(|k| k.is_read_from_url()).map(Self::name).collect();
        Error::unsupported(format!("a source of kind \"{}\" is not read from a URL", self.name()))
            .with_hint(format!("Save it on the server and give its path. Read from URLs: {}.", kinds.join(", ")))
    }

    /// Tokens repeated between chunks when the user says nothing.
    pub(super) fn usual_overlap(self) -> u32 {
        match self {
            SourceKind::Blog => 40,
            SourceKind::Transcript => 30,
            _ => 0,
        }
    }

    /// Whether its parts are prose, of which the end can be repeated in the next chunk.
    pub(super) fn has_parts_of_prose(self) -> bool {
        matches!(self, SourceKind::Forum | SourceKind::Issues | SourceKind::Transcript)
    }

    /// The kind of one document that is given inline.
    pub fn of_document(name: &str) -> Result<Self> {
        let one = |kind: &SourceKind| !kind.is_of_many_formats() && *kind != SourceKind::Jsonl;
        match name.parse() {
            Ok(kind) if one(&kind) => Ok(kind),
            Ok(kind) => Err(Error::unsupported(format!("kind \"{}\" cannot be ingested inline", kind.name()))
                .with_hint(match kind {
                    SourceKind::Jsonl => "Call rag.ingest once for each record, or add the file as a source.",
                    SourceKind::Zip => "Call rag.ingest once for each member, or add the archive as a source.",
                    _ => "Add it as a source with rag.add_source.",
                })),
            Err(_) => {
                let inline: Vec<Self> = Self::ALL.into_iter().filter(one).collect();
                Err(Self::unknown("kind", name, &inline))
            }
        }
    }

    fn unknown(what: &str, name: &str, kinds: &[Self]) -> Error {
        let known: Vec<&str> = kinds.iter().map(|k| k.name()).collect();
        if PLANNED.contains(&name) {
            return Error::unsupported(format!("{what} \"{name}\" is not supported yet"))
                .with_hint(format!("Supported: {}.", known.join(", ")));
        }
        unknown_key(what, name, &known)
    }
}

impl FromStr for SourceKind {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        let kind = Self::ALL.into_iter().find(|k| k.name() == name);
        kind.ok_or_else(|| Self::unknown("source kind", name, &Self::ALL))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Kind;

    #[test]
    fn a_planned_kind_is_unsupported_and_a_strange_one_invalid() {
        assert_eq!(SourceKind::from_str("table").map_err(|e| e.kind), Err(Kind::Unsupported));
        assert_eq!(SourceKind::from_str("markdwon").map_err(|e| e.kind), Err(Kind::InvalidArgument));
    }

    #[test]
    fn every_kind_is_known_by_its_name() {
        for kind in SourceKind::ALL {
            assert_eq!(SourceKind::from_str(kind.name()), Ok(kind));
        }
    }

    #[test]
    fn records_and_archives_are_not_read_from_urls() {
        let refused: Vec<&str> =
            SourceKind::ALL.into_iter().filter(|kind| !kind.is_read_from_url()).map(SourceKind::name).collect();
        assert_eq!(refused, ["zip", "forum", "issues", "jsonl"]);
        let error = SourceKind::Zip.not_from_url();
        assert_eq!(error.kind, Kind::Unsupported);
        assert_eq!(error.message, "a source of kind \"zip\" is not read from a URL");
        let hint = error.hint.expect("a hint");
        assert!(hint.ends_with("html, article, docx, epub, git, blog, transcript."), "{hint}");
    }

    #[test]
    fn a_document_is_of_another_kind_than_a_file_of_many() {
        assert_eq!(SourceKind::of_document("text"), Ok(SourceKind::Text));
        assert_eq!(SourceKind::of_document("pdf"), Ok(SourceKind::Pdf));
        let strange = SourceKind::of_document("qqqqqqqq").expect_err("strange");
        assert!(strange.hint.is_some_and(|hint| hint.starts_with("Known: text, markdown, code")));
        for many in ["jsonl", "zip", "git", "table"] {
            assert_eq!(SourceKind::of_document(many).map_err(|e| e.kind), Err(Kind::Unsupported), "{many}");
        }
    }
}
