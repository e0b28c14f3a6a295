// SPDX-License-Identifier: PostgreSQL

//! Sources: what there is to read, and its bytes. The only part of this crate that touches a filesystem.
//!
//! A source lists items (identity, hash, size, place) and reads the bytes of one. It must not look into them further
//! than its identity needs: a folder not at all, a file of records as far as their keys, an archive as far as what it
//! holds. Every opening goes through [`confine`].

mod archive;
mod confine;
mod feed;
mod file;
mod git;
mod jsonl;
mod layout;
mod rows;
mod walk;
mod web;

pub use archive::is_archive;
use confine::Location;
pub use feed::is_feed;
pub use git::Cloned;
pub use layout::is_rows;
use rag_core::error::{Error, Kind, Result};
use rag_core::source::{Content, Failure, Item, Limits, Place, SourceKind, SourceSpec, Workspace, is_url};
use std::path::Path;

/// Items and failures of one page.
const PAGE: usize = 1000;

/// Bytes of names and messages after which a page is full, however few items it has.
const PAGE_BYTES: usize = 4 << 20;

/// Receives pages of a listing.
pub type Emit<'a> = dyn FnMut(Vec<Item>, Vec<Failure>) -> Result<()> + 'a;

/// A place that holds documents.
trait Source {
    /// Puts everything it holds into `pages`.
    fn list(&self, pages: &mut Pages<'_, '_>) -> Result<()>;

    /// The bytes of one item, no more than the limit.
    fn read(&self, item: &Item) -> Result<Content>;
}

/// Lists a source, or the clone of its repository. Returns how many entries were looked at.
pub fn list(spec: &SourceSpec, clone: Option<&Workspace>, emit: &mut Emit<'_>) -> Result<u64> {
    let limits = &spec.options.limits;
    let mut pages = Pages { emit, limits, entries: 0, documents: 0, bytes: 0, items: Vec::new(), failures: Vec::new() };
    match clone {
        Some(workspace) => git::Repository::of_clone(spec, workspace)?.list(&mut pages)?,
        None => open(spec, None)?.list(&mut pages)?,
    }
    pages.flush()?;
    Ok(pages.entries.max(pages.documents))
}

/// The bytes of one item.
pub fn read(spec: &SourceSpec, clone: Option<&Workspace>, item: &Item) -> Result<Content> {
    match clone {
        Some(workspace) => git::Repository::of_clone(spec, workspace)?.read(item),
        None => open(spec, Some(&item.place))?.read(item),
    }
}

/// Whether a source is a repository that must be cloned before it can be read.
pub fn is_remote(spec: &SourceSpec) -> bool {
    spec.kind == SourceKind::Git && is_url(&spec.location)
}

/// See [`crate::check_remote`].
pub fn check_remote(spec: &SourceSpec) -> Result<()> {
    git::check(spec).map(drop)
}

/// See [`crate::clone_remote`].
pub fn clone_remote(spec: &SourceSpec, folder: &Path, commit: Option<&str>, known: &[String]) -> Result<Cloned> {
    git::clone(spec, folder, commit, known)
}

/// Opens a source, to list it or to read what is at `place`.
fn open<'a>(spec: &'a SourceSpec, place: Option<&Place>) -> Result<Box<dyn Source + 'a>> {
    if is_url(&spec.location) {
        return match spec.kind {
            kind if !kind.is_read_from_url() => Err(kind.not_from_url()),
            SourceKind::Blog => Ok(Box::new(feed::Feed::at_url(spec)?)),
            SourceKind::Git => Err(Error::internal(format!("repository \"{}\" was not cloned", spec.location))),
            _ => Ok(Box::new(web::Web::new(spec)?)),
        };
    }
    let location = Location::open(spec)?;
    let of_records = match (spec.kind, place) {
        (SourceKind::Transcript, Some(place)) => matches!(place, Place::Record { .. }),
        (SourceKind::Transcript, None) => jsonl::holds_recordings(&location, &spec.options.limits)?,
        (kind, _) => kind.is_of_records(),
    };
    Ok(match spec.kind {
        _ if feed::is_in_file(spec, &location) => Box::new(feed::Feed::in_file(spec, location)),
        _ if of_records => Box::new(jsonl::Records::new(spec, location)?),
        SourceKind::Git => Box::new(git::Repository::new(spec, &location)?),
        SourceKind::Zip => Box::new(archive::Archives::new(spec, location)?),
        _ => Box::new(file::Files::new(spec, location)?),
    })
}

/// Fails when a document of `size` bytes is larger than the limit.
pub fn within_limit(size: u64, limits: &Limits) -> Result<()> {
    if size <= limits.max_document_bytes {
        return Ok(());
    }
    Err(Error::new(
        Kind::LimitExceeded,
        format!("document of {size} bytes is larger than max_document_bytes {}", limits.max_document_bytes),
    )
    .with_hint("Raise it in the source's options: {\"limits\": {\"max_document_bytes\": ...}}."))
}

/// Collects a listing into pages and counts documents.
struct Pages<'a, 'b> {
    emit: &'a mut Emit<'b>,
    limits: &'a Limits,
    /// Entries that were looked at, as far as the source counts them apart from its documents.
    entries: u64,
    documents: u64,
    bytes: usize,
    items: Vec<Item>,
    failures: Vec<Failure>,
}

impl Pages<'_, '_> {
    /// Counts entries that were looked at, whether they are documents or not.
    fn saw(&mut self, entries: u64) {
        self.entries += entries;
    }

    fn push(&mut self, found: std::result::Result<Item, Failure>) -> Result<()> {
        self.documents += 1;
        let max = self.limits.max_documents;
        if self.documents > max {
            return Err(Error::new(Kind::LimitExceeded, format!("source has more documents than max_documents {max}"))
                .with_hint("Raise it in the source's options: {\"limits\": {\"max_documents\": ...}}."));
        }
        match found {
            Ok(item) => {
                self.bytes += item.uri.len();
                self.items.push(item);
            }
            Err(failure) => {
                self.bytes += failure.uri.len() + failure.error.message.len();
                self.failures.push(failure);
            }
        }
        let full = self.items.len() + self.failures.len() >= PAGE || self.bytes >= PAGE_BYTES;
        if full { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<()> {
        if self.items.is_empty() && self.failures.is_empty() {
            return Ok(());
        }
        self.bytes = 0;
        (self.emit)(std::mem::take(&mut self.items), std::mem::take(&mut self.failures))
    }
}
