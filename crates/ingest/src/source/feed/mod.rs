// SPDX-License-Identifier: PostgreSQL

//! A feed: RSS, Atom or JSON Feed, at a URL or in a file, each of whose entries is a document.
//!
//! Owns what of a feed makes an item. The feed is read where it is acquired, because what is in it decides what there is to
//! read; what its entries say is parsed elsewhere. A post is known by its link, and by its id where it has none; its hash is
//! that of what the feed says about it, so a post is read again when its entry changed, whatever its page did. An entry
//! without content brings the page that it links to along when that may be fetched. A page that will never be had (its host
//! is not allowed, it is gone, it is too large) leaves the summary; one that cannot be had now is a failure, and the next sync
//! asks again.
//!
//! A feed shows its newest posts. So a post that it does not list any more is kept, and a feed that did not change since it
//! was seen lists nothing at all: both are the business of whoever keeps the manifest (`rag_core::source::is_feed`).

mod read;

use super::confine::{Location, read_at_most};
use super::file::unreadable;
use super::web::fetch::{Answer, Client, PAGE, system_lookup};
use super::web::guard::Guard;
use super::web::{form, place};
use super::{Pages, Source, within_limit};
use crate::parse::entry::{MEDIA_TYPE, WHY};
use rag_core::error::{Error, Kind, Result};
use rag_core::provenance::ContentHash;
use rag_core::source::{Content, Item, Origin, Place, Rendition, SourceSpec, is_url};
use read::Entry;
use serde_json::Map;
use std::cell::RefCell;
use std::path::Path;
use url::Url;

/// What is asked for as a feed.
const FEED: &str = "application/atom+xml, application/rss+xml, application/feed+json, application/xml;q=0.9, text/xml;q=0.9, */*;q=0.5";

/// Longest ETag or time of change that is kept; each entry keeps it.
const MAX_VALIDATOR: usize = 512;

/// Longest URI of a post. A longer one could be no key in the database, and is not shown.
const MAX_URI: usize = 2000;

thread_local! {
    /// The feed that was read last: its location, and its entries. A sync reads entries one by one, and each names its hash,
    /// so it does not matter how old this is. The state is this thread's, since a worker has one.
    static LAST: RefCell<Option<(String, Vec<Entry>)>> = const { RefCell::new(None) };
}

/// A feed.
pub struct Feed<'a> {
    spec: &'a SourceSpec,
    whence: Whence,
}

enum Whence {
    Web(Url, Guard),
    File(Location),
}

/// A feed as it was got.
struct Got {
    bytes: Vec<u8>,
    content_type: Option<String>,
    url: Option<Url>,
    etag: Option<String>,
    last_modified: Option<String>,
}

impl<'a> Feed<'a> {
    /// The feed at the URL that is the location of a source.
    pub fn at_url(spec: &'a SourceSpec) -> Result<Self> {
        let (url, guard) = place(spec)?;
        Ok(Self { spec, whence: Whence::Web(url, guard) })
    }

    /// The feed in a file.
    pub fn in_file(spec: &'a SourceSpec, location: Location) -> Self {
        Self { spec, whence: Whence::File(location) }
    }

    /// The feed; nothing if it is as it was seen.
    fn get(&self, client: Option<&Client<'_>>, conditional: bool) -> Result<Option<Got>> {
        let limits = &self.spec.options.limits;
        match (&self.whence, client) {
            (Whence::Web(url, _), Some(client)) => {
                let seen = self.spec.seen.as_ref().filter(|_| conditional);
                Ok(match client.get(url, FEED, seen)? {
                    Answer::Unchanged => None,
                    Answer::Page(page) => Some(Got {
                        bytes: page.bytes,
                        content_type: page.content_type,
                        url: Some(page.url),
                        etag: page.etag,
                        last_modified: page.last_modified,
                    }),
                })
            }
            (Whence::File(location), _) => {
                let name = &location.name;
                let (mut file, size) = location.file(Path::new("")).map_err(|e| unreadable(name, &e))?;
                within_limit(size, limits)?;
                let read =
                    read_at_most(&mut file, size, limits.max_document_bytes).map_err(|e| unreadable(name, &e))?;
                // It grew while it was read.
                within_limit(read.as_ref().map_or(limits.max_document_bytes.saturating_add(1), |_| 0), limits)?;
                let bytes = read.unwrap_or_default();
                Ok(Some(Got { bytes, content_type: None, url: None, etag: None, last_modified: None }))
            }
            (Whence::Web(..), None) => Err(Error::internal("a feed of the web was asked for without a client")),
        }
    }

    fn client(&self) -> Option<Client<'_>> {
        match &self.whence {
            Whence::Web(_, guard) => Some(Client::new(guard, system_lookup, &self.spec.options.limits)),
            Whence::File(_) => None,
        }
    }

    fn entries(&self, got: &Got) -> Result<Vec<Entry>> {
        let feed = read::Feed { location: &self.spec.location, url: got.url.as_ref() };
        read::entries(&got.bytes, got.content_type.as_deref(), &feed).map_err(|error| {
            let error = Error { message: format!("\"{}\" {}", self.spec.location, error.message), ..error };
            // Whoever gave the address of a blog meant the feed that its page names.
            match got.url.as_ref().and_then(|url| form::feed(&got.bytes, url)) {
                Some(feed) => error.with_hint(format!("The page names a feed: \"{feed}\".")),
                None => error,
            }
        })
    }

    /// The entry of a URI as the feed has it, now or when it was read last with the same hash.
    fn entry(&self, item: &Item, client: Option<&Client<'_>>) -> Result<Entry> {
        let known = LAST.with_borrow(|last| {
            let (location, entries) = last.as_ref()?;
            let same = |entry: &&Entry| entry.uri == item.uri && ContentHash::of(&entry.bytes) == item.content_sha256;
            (*location == self.spec.location).then(|| entries.iter().find(same).cloned())?
        });
        if let Some(entry) = known {
            return Ok(entry);
        }
        let got = self.get(client, false)?;
        let got = got.ok_or_else(|| Error::internal("a feed is unchanged that was asked for without condition"))?;
        let entries = self.entries(&got)?;
        let found = entries.iter().find(|entry| entry.uri == item.uri).cloned();
        LAST.set(Some((self.spec.location.clone(), entries)));
        found.ok_or_else(|| {
            Error::new(Kind::Io, format!("\"{}\" left the feed since it was listed", item.uri))
                .with_hint("Run the sync again.")
        })
    }

    /// The page of an entry without content, or why there is none.
    fn page(&self, entry: &Entry, client: Option<&Client<'_>>) -> Result<std::result::Result<Rendition, String>> {
        let Some(client) = client else { return Ok(Err("a feed in a file fetches no pages".to_owned())) };
        let Some(link) = &entry.link else { return Ok(Err("it links to no page".to_owned())) };
        match client.page(link, PAGE) {
            Ok(page) => Ok(Ok(Rendition { bytes: page.bytes, url: page.url.into(), content_type: page.content_type })),
            Err(error)
                if matches!(
                    error.kind,
                    Kind::Forbidden | Kind::FileMissing | Kind::BadContent | Kind::LimitExceeded
                ) =>
            {
                Ok(Err(error.message))
            }
            Err(error) => Err(error),
        }
    }
}

impl Source for Feed<'_> {
    fn list(&self, pages: &mut Pages<'_, '_>) -> Result<()> {
        let Some(got) = self.get(self.client().as_ref(), true)? else { return Ok(()) };
        let short = |validator: &Option<String>| validator.clone().filter(|validator| validator.len() <= MAX_VALIDATOR);
        let (etag, last_modified) = (short(&got.etag), short(&got.last_modified));
        for entry in self.entries(&got)? {
            let place = Place::Entry {
                feed: self.spec.location.clone(),
                etag: etag.clone(),
                last_modified: last_modified.clone(),
            };
            let size = entry.bytes.len() as u64;
            let listed = within_limit(size, &self.spec.options.limits).map(|()| Item {
                uri: entry.uri.clone(),
                content_sha256: ContentHash::of(&entry.bytes),
                size,
                place,
            });
            pages.push(listed.map_err(|error| rag_core::source::Failure { uri: entry.uri, error }))?;
        }
        Ok(())
    }

    fn read(&self, item: &Item) -> Result<Content> {
        let client = self.client();
        let entry = self.entry(item, client.as_ref())?;
        within_limit(entry.bytes.len() as u64, &self.spec.options.limits)?;
        let mut origin = Origin { content_type: Some(MEDIA_TYPE.to_owned()), ..Origin::default() };
        if !entry.whole {
            match self.page(&entry, client.as_ref())? {
                Ok(page) => origin.rendition = Some(page),
                Err(why) => origin.metadata = Map::from_iter([(WHY.to_owned(), why.into())]),
            }
        }
        Ok(Content { bytes: entry.bytes, origin })
    }
}

/// Whether a location that is no URL is a file that holds a feed.
pub fn is_in_file(spec: &SourceSpec, location: &Location) -> bool {
    !is_url(&spec.location) && location.kind.is_file() && rag_core::source::is_feed(spec.kind, &spec.location)
}
