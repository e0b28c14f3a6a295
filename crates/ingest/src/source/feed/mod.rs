// SPDX-License-Identifier: PostgreSQL

//! A feed: RSS, Atom or JSON Feed, at a URL or in a file, each of whose entries is a document.
//!
//! Owns what of a feed makes an item. The feed is read where it is acquired, because what is in it decides what there is to
//! read; what its entries say is parsed elsewhere. A post is known by its id where that is an address, else by its link and its id
//! behind it, so that no other post can take its place; its hash is
//! that of what the feed says about it, so a post is read again when its entry changed, whatever its page did. An entry
//! without content brings the page that it links to along when that may be fetched. A page that will never be had (it is gone, it is
//! too large) leaves the summary; one that cannot be had now is a failure, and the next sync asks again. A page that is refused (its
//! host is not allowed, or says no) is between these: the summary is there, and so that the next sync asks again, its bytes say
//! that it is one, and their hash is not that of the entry.
//!
//! What was read of a feed is held, and posts are taken from it as long as it is no older than the listing that named them: a
//! feed that is another at each request is not asked for once for each of its posts.
//!
//! A feed shows its newest posts. So a post that it does not list any more is kept, and a feed that did not change since it
//! was seen lists nothing at all: both are the business of whoever keeps the manifest (`rag_core::source::is_feed`).

mod check;
mod read;

use super::confine::{Location, read_at_most};
use super::file::unreadable;
use super::web::fetch::{Answer, Client, PAGE, system_lookup};
use super::web::guard::Guard;
use super::web::{form, place};
use super::{Pages, Source, within_limit};
use crate::parse::entry::{MEDIA_TYPE, WHY};
use crate::parse::html::encoding;
use rag_core::error::{Error, Kind, Result};
use rag_core::provenance::ContentHash;
use rag_core::source::{Content, Item, Origin, Place, Rendition, SourceSpec, is_url};
use read::Entry;
use serde_json::Map;
use std::cell::RefCell;
use std::collections::HashMap;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};
use url::Url;

/// What is asked for as a feed.
const FEED: &str = "application/atom+xml, application/rss+xml, application/feed+json, application/xml;q=0.9, text/xml;q=0.9, */*;q=0.5";

/// Longest ETag or time of change that is kept; each entry keeps it.
const MAX_VALIDATOR: usize = 512;

/// Longest URI of a post. A longer one could be no key in the database, and is not shown.
const MAX_URI: usize = 2000;

thread_local! {
    /// The feed that was read last. The state is this thread's, since a worker has one.
    static LAST: RefCell<Option<Held>> = const { RefCell::new(None) };
}

/// A feed that was read.
struct Held {
    /// Its location.
    location: String,
    /// When it was asked for, in milliseconds since 1970.
    asked: u64,
    /// Its entries by their URIs.
    entries: HashMap<String, Entry>,
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
    /// When it was asked for, in milliseconds since 1970.
    asked: u64,
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
        let asked = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis() as u64;
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
                        asked,
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
                Ok(Some(Got { bytes, content_type: None, url: None, etag: None, last_modified: None, asked }))
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
            let name = match &self.whence {
                Whence::Web(..) => &self.spec.location,
                Whence::File(location) => &location.name,
            };
            let error = Error { message: format!("\"{name}\" {}", error.message), ..error };
            // Whoever gave the address of a blog meant the feed that its page names.
            match got.url.as_ref().and_then(|url| form::feed(&got.bytes, url)) {
                Some(feed) => error.with_hint(format!("The page names a feed: \"{feed}\".")),
                None => error,
            }
        })
    }

    /// Holds what was read of the feed.
    fn hold(&self, asked: u64, entries: Vec<Entry>) {
        let entries = entries.into_iter().map(|entry| (entry.uri.clone(), entry)).collect();
        LAST.set(Some(Held { location: self.spec.location.clone(), asked, entries }));
    }

    /// The entry of an item as it was listed, or as the feed has had it since.
    fn entry(&self, item: &Item, client: Option<&Client<'_>>) -> Result<Entry> {
        let Place::Entry { listed, .. } = item.place else {
            return Err(Error::internal(format!("\"{}\" is no post of a feed", item.uri)));
        };
        // What the feed that is held says: nothing if it is of no use.
        let held = || {
            LAST.with_borrow(|last| {
                let last = last.as_ref().filter(|last| last.location == self.spec.location)?;
                let found = last.entries.get(&item.uri);
                let as_listed = found.is_some_and(|entry| ContentHash::of(&entry.bytes) == item.content_sha256);
                (as_listed || last.asked >= listed).then(|| found.cloned())
            })
        };
        let found = match held() {
            Some(found) => found,
            None => {
                let got = self.get(client, false)?;
                let got =
                    got.ok_or_else(|| Error::internal("a feed is unchanged that was asked for without condition"))?;
                let entries = self.entries(&got)?;
                let found = entries.iter().find(|entry| entry.uri == item.uri).cloned();
                self.hold(got.asked, entries);
                found
            }
        };
        found.ok_or_else(|| {
            Error::new(Kind::Io, format!("\"{}\" left the feed since it was listed", item.uri))
                .with_hint("Run the sync again.")
        })
    }

    /// The page of an entry without content, or why there is none.
    fn page(&self, entry: &Entry, client: Option<&Client<'_>>) -> Result<std::result::Result<Rendition, Without>> {
        let never = |why: &str| Ok(Err(Without { why: why.to_owned(), refused: false }));
        let Some(client) = client else { return never("a feed in a file fetches no pages") };
        let Some(link) = &entry.link else { return never("it links to no page") };
        match client.page(link, PAGE) {
            Ok(page) => Ok(Ok(Rendition { bytes: page.bytes, url: page.url.into(), content_type: page.content_type })),
            Err(error) => match error.kind {
                Kind::Forbidden => Ok(Err(Without { why: error.message, refused: true })),
                Kind::FileMissing | Kind::BadContent | Kind::LimitExceeded => never(&error.message),
                _ => Err(error),
            },
        }
    }
}

/// Why there is no page.
struct Without {
    why: String,
    /// Whether there may be one when it is asked for again.
    refused: bool,
}

impl Source for Feed<'_> {
    fn list(&self, pages: &mut Pages<'_, '_>) -> Result<()> {
        let Some(got) = self.get(self.client().as_ref(), true)? else { return Ok(()) };
        let short = |validator: &Option<String>| validator.clone().filter(|validator| validator.len() <= MAX_VALIDATOR);
        let (etag, last_modified) = (short(&got.etag), short(&got.last_modified));
        let entries = self.entries(&got)?;
        for entry in &entries {
            let place = Place::Entry {
                feed: self.spec.location.clone(),
                listed: got.asked,
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
            pages.push(listed.map_err(|error| rag_core::source::Failure { uri: entry.uri.clone(), error }))?;
        }
        self.hold(got.asked, entries);
        Ok(())
    }

    fn read(&self, item: &Item) -> Result<Content> {
        let client = self.client();
        let mut entry = self.entry(item, client.as_ref())?;
        within_limit(entry.bytes.len() as u64, &self.spec.options.limits)?;
        let mut origin = Origin { content_type: Some(MEDIA_TYPE.to_owned()), ..Origin::default() };
        if !entry.whole {
            match self.page(&entry, client.as_ref())? {
                Ok(page) => origin.rendition = Some(page),
                Err(Without { why, refused }) => {
                    if refused {
                        entry.bytes = read::noted(&entry.bytes, "refused", &why)?;
                    }
                    origin.metadata = Map::from_iter([(WHY.to_owned(), why.into())]);
                }
            }
        }
        Ok(Content { bytes: entry.bytes, origin })
    }
}

/// Whether some content is a feed, by its first element or its version.
pub fn is_feed(content: &[u8]) -> bool {
    check::is_feed(&encoding::decode(content, None).text)
}

/// Whether a location that is no URL is a file that holds a feed.
pub fn is_in_file(spec: &SourceSpec, location: &Location) -> bool {
    !is_url(&spec.location) && location.kind.is_file() && rag_core::source::is_feed(spec.kind, &spec.location)
}
