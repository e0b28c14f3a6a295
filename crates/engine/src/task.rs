// SPDX-License-Identifier: PostgreSQL

//! What the engine and its workers say to each other.
//!
//! Owns the messages of one socket pair and how much each answer may weigh. They are apart from the protocol of the
//! backends, because a worker is of the same build as the engine that started it, and because a backend must not be
//! able to ask a worker for anything: only the engine does, one document at a time, or one clone of a repository. The bounds stand here since both
//! sides need them: an honest worker keeps to them and says so in words, and the engine kills one that does not.

use rag_core::document::Document;
use rag_core::protocol::MAX_FRAME;
use rag_core::source::{Content, Failure, Item, Place, SourceKind, SourceOptions, SourceSpec, Workspace};
use rag_core::{Error, Kind, Result};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Bytes that one listed item or failure may take on average: a path can have 4096, each written as `%XX` in a message
/// and in a URI.
const ITEM_BYTES: u64 = 32 << 10;

/// Items and failures that a page may have; a listing makes pages of a thousand.
const PAGE_ITEMS: u64 = 1024;

/// What an answer may weigh besides what it is about.
const ENVELOPE: u64 = 64 << 10;

/// Text and chunks that a document may become, whatever its size …
const PARSED_BASE: u64 = 16 << 20;

/// … and for each of its bytes. A chunk weighs some 400 bytes without its text, and a heading of one letter is a chunk.
const PARSED_FACTOR: u64 = 128;

/// What the engine asks of a worker.
#[derive(Debug, Serialize, Deserialize)]
pub enum Task {
    /// Of an acquire worker: what a source holds → many [`Said::Page`], then [`Said::Listed`].
    List {
        /// Source.
        source: SourceSpec,
        /// The clone of its repository, if it has to be cloned.
        workspace: Option<Workspace>,
    },
    /// Of an acquire worker: the bytes of one item → [`Said::Content`].
    Fetch {
        /// Source.
        source: SourceSpec,
        /// Item.
        item: Item,
        /// The clone of its repository, if it has to be cloned.
        workspace: Option<Workspace>,
    },
    /// Of a clone worker: the repository of a source, into the folder that the worker was started for → [`Said::Cloned`].
    Clone {
        /// Source.
        source: SourceSpec,
        /// Hash of the commit; `None` for what the source's options name.
        commit: Option<String>,
        /// Hashes of commits that are here already and need not be downloaded.
        known: Vec<String>,
    },
    /// Of a parse worker: a document of bytes → [`Said::Document`].
    Parse {
        /// Kind of the content.
        kind: SourceKind,
        /// Options.
        options: SourceOptions,
        /// Identity of the document.
        uri: String,
        /// The bytes, and where they came from.
        content: Content,
        /// Metadata given with inline content; `None` for an item of a source.
        given: Option<Map<String, Value>>,
    },
}

/// What a worker says.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub enum Said {
    /// First of all: it is confined and waits for tasks.
    Ready,
    /// Some of a listing; more follows.
    Page {
        /// Items.
        items: Vec<Item>,
        /// Items that could not be listed.
        failures: Vec<Failure>,
    },
    /// The listing is complete.
    Listed {
        /// Entries that were looked at.
        seen: u64,
    },
    /// Bytes of an item.
    Content(Box<Content>),
    /// The clone is made.
    Cloned {
        /// Hash of the commit.
        commit: String,
        /// Branch or tag by which it was found.
        reference: Option<String>,
        /// Whether it is one that was known, and nothing was downloaded.
        known: bool,
    },
    /// The document.
    Document(Box<Document>),
    /// The task failed.
    Failed(Error),
}

impl Task {
    /// What it is about, for messages: a document's URI, or a location.
    pub fn about(&self) -> &str {
        match self {
            Task::List { source, .. } | Task::Clone { source, .. } => &source.location,
            Task::Fetch { item, .. } => &item.uri,
            Task::Parse { uri, .. } => uri,
        }
    }

    /// What is being done, for messages.
    pub fn doing(&self) -> String {
        let verb = match self {
            Task::List { .. } => "listing",
            Task::Fetch { .. } => "reading",
            Task::Clone { .. } => "cloning",
            Task::Parse { .. } => "parsing",
        };
        format!("{verb} \"{}\"", self.about())
    }

    /// Whether a message is what was asked for, and about the document that was asked about.
    pub fn is_answered_by(&self, said: &Said) -> bool {
        match (self, said) {
            (Task::Fetch { .. }, Said::Content(_)) => true,
            (Task::Parse { uri, .. }, Said::Document(document)) => document.uri == *uri,
            (Task::Clone { commit: asked, known, .. }, Said::Cloned { commit, known: is_known, .. }) => {
                let is_hash = commit.len() == 40 && commit.bytes().all(|b| b.is_ascii_hexdigit());
                is_hash && asked.as_ref().is_none_or(|a| a == commit) && (!is_known || known.contains(commit))
            }
            _ => false,
        }
    }

    /// Most bytes of one frame of its answer.
    pub fn frame_limit(&self) -> u64 {
        let wanted = match self {
            Task::List { .. } => PAGE_ITEMS * ITEM_BYTES,
            Task::Clone { .. } => ENVELOPE,
            Task::Fetch { source, item, .. } => match item.place {
                Place::Record { length, .. } => length.min(source.options.limits.max_document_bytes) + ENVELOPE,
                Place::Member { .. } => item.size.min(source.options.limits.max_document_bytes) + ENVELOPE,
                Place::File { .. } | Place::Blob { .. } => {
                    source.options.limits.max_document_bytes.saturating_add(ENVELOPE)
                }
                // A page may come with another form of it, and a post with the page that it tells of.
                Place::Url { .. } | Place::Entry { .. } => {
                    source.options.limits.max_document_bytes.saturating_mul(2).saturating_add(ENVELOPE)
                }
            },
            Task::Parse { content, .. } => {
                let rendition = content.origin.rendition.as_ref().map_or(0, |rendition| rendition.bytes.len());
                PARSED_BASE + PARSED_FACTOR.saturating_mul((content.bytes.len() + rendition) as u64)
            }
        };
        wanted.min(MAX_FRAME as u64)
    }

    /// The error for a task that took longer than it may.
    pub fn too_slow(&self, seconds: u32) -> Error {
        let error = Error::new(Kind::LimitExceeded, format!("{} took longer than {seconds} s", self.doing()));
        error.with_hint(match self {
            Task::Clone { .. } => "Raise \"max_download_seconds\" in the \"limits\" of the source's options.",
            _ => "Raise \"max_seconds\" in the \"limits\" of the source's options, or leave the document out.",
        })
    }

    /// The error for an answer with a frame beyond [`Task::frame_limit`].
    pub fn too_large(&self) -> Error {
        let error = format!("{} gave more than {} bytes", self.doing(), self.frame_limit());
        Error::new(Kind::LimitExceeded, error).with_hint(match self {
            Task::List { .. } => "Leave files out with the source's \"glob\" or \"ignore\" option.",
            Task::Fetch { .. } => "Run the sync again if the file is being written; else leave it out.",
            Task::Clone { .. } => "Name another branch, tag or commit with the option \"ref\".",
            Task::Parse { .. } => {
                "Its headings or records repeat in too many chunks: raise \"chunk_tokens\", or leave the document out."
            }
        })
    }
}

/// Counts what a listing has said so far against what it may say.
#[derive(Debug)]
pub struct Tally {
    max_documents: u64,
    documents: u64,
    bytes: u64,
}

impl Tally {
    /// For a listing of this source.
    pub fn new(source: &SourceSpec) -> Self {
        Self { max_documents: source.options.limits.max_documents, documents: 0, bytes: 0 }
    }

    /// Counts a page that took `bytes`; fails when the listing said too much. A page of nothing fails too, or a worker
    /// could go on for ever without having said anything.
    pub fn page(&mut self, documents: usize, bytes: usize) -> Result<()> {
        if documents == 0 {
            return Err(Error::internal("a listing gave an empty page"));
        }
        self.documents += documents as u64;
        self.bytes += bytes as u64;
        let max = self.max_documents;
        if self.documents > max {
            return Err(Error::new(
                Kind::LimitExceeded,
                format!("listing gave more documents than max_documents {max}"),
            )
            .with_hint("Raise it in the source's options: {\"limits\": {\"max_documents\": ...}}."));
        }
        let allowed = ITEM_BYTES * (self.documents + 1);
        if self.bytes > allowed {
            let documents = self.documents;
            let message = format!("listing gave more than {allowed} bytes for {documents} documents");
            return Err(Error::new(Kind::LimitExceeded, message)
                .with_hint("Leave files out with the source's \"glob\" or \"ignore\" option."));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(bytes: usize) -> Task {
        Task::Parse {
            kind: SourceKind::Text,
            options: SourceOptions::defaults(SourceKind::Text),
            uri: "u".into(),
            content: Content { bytes: vec![b'x'; bytes], ..Content::default() },
            given: None,
        }
    }

    #[test]
    fn a_document_s_answer_grows_with_it_up_to_a_frame() {
        assert_eq!(parse(0).frame_limit(), PARSED_BASE);
        assert_eq!(parse(1000).frame_limit(), PARSED_BASE + 128_000);
        assert_eq!(parse(8 << 20).frame_limit(), MAX_FRAME as u64);
        assert_eq!(parse(0).too_large().message, "parsing \"u\" gave more than 16777216 bytes");
    }

    #[test]
    fn only_the_document_that_was_asked_for_is_an_answer() {
        let document = |uri: &str| Said::Document(Box::new(Document { uri: uri.to_owned(), ..Document::default() }));
        assert!(parse(1).is_answered_by(&document("u")));
        assert!(!parse(1).is_answered_by(&document("v")));
        assert!(!parse(1).is_answered_by(&Said::Content(Box::default())));
    }

    #[test]
    fn a_clone_is_of_the_commit_that_was_asked_for() {
        let (one, other) = ("1".repeat(40), "2".repeat(40));
        let task = |commit: Option<&String>, known: Option<&String>| Task::Clone {
            source: SourceSpec {
                kind: SourceKind::Git,
                location: "https://example.org/r".into(),
                options: SourceOptions::defaults(SourceKind::Git),
                allowed_paths: Vec::new(),
                allowed_hosts: Vec::new(),
                seen: None,
            },
            commit: commit.cloned(),
            known: known.into_iter().cloned().collect(),
        };
        let said = |commit: &String, known| Said::Cloned { commit: commit.clone(), reference: None, known };
        assert!(task(None, None).is_answered_by(&said(&one, false)));
        assert!(task(Some(&one), None).is_answered_by(&said(&one, false)));
        assert!(task(None, Some(&one)).is_answered_by(&said(&one, true)));
        for (task, said) in [
            (task(None, None), said(&"../../etc".to_owned(), false)),
            (task(Some(&one), None), said(&other, false)),
            (task(None, None), said(&one, true)),
            (task(None, Some(&one)), said(&other, true)),
        ] {
            assert!(!task.is_answered_by(&said), "{said:?}");
        }
    }

    #[test]
    fn a_listing_is_counted() {
        let mut options = SourceOptions::defaults(SourceKind::Text);
        options.limits.max_documents = 3;
        let source = SourceSpec {
            kind: SourceKind::Text,
            location: "/l".into(),
            options,
            allowed_paths: Vec::new(),
            allowed_hosts: Vec::new(),
            seen: None,
        };
        let mut tally = Tally::new(&source);
        tally.page(3, 300).expect("as many as allowed");
        assert_eq!(tally.page(1, 1).map_err(|e| e.kind), Err(Kind::LimitExceeded));
        assert_eq!(Tally::new(&source).page(0, 1).map_err(|e| e.kind), Err(Kind::Internal));
        let heavy = Tally::new(&source).page(1, 70_000).expect_err("too heavy");
        assert_eq!(heavy.message, "listing gave more than 65536 bytes for 1 documents");
    }
}
