// SPDX-License-Identifier: PostgreSQL

//! A page of the web: one URL, which is one document.
//!
//! Owns what of an answer makes a version: its ETag and time of change, by which the server is asked whether there is
//! anything new, and the hash of its bytes, which decides. [`guard`] says what may be reached, [`fetch`] gets it.

pub mod fetch;
pub mod guard;

use super::{Pages, Source};
use fetch::{Answer, Page, system_lookup};
use guard::Guard;
use rag_core::document::Version;
use rag_core::error::{Error, Result};
use rag_core::provenance::ContentHash;
use rag_core::source::{Content, Item, Origin, Place, SourceSpec};
use serde_json::Map;
use url::Url;

/// A page.
pub struct Web<'a> {
    spec: &'a SourceSpec,
    url: Url,
    guard: Guard,
}

impl<'a> Web<'a> {
    /// The page at the location of a source.
    pub fn new(spec: &'a SourceSpec) -> Result<Self> {
        let location = &spec.location;
        let url =
            Url::parse(location).map_err(|e| Error::invalid(format!("location \"{location}\" is no URL: {e}")))?;
        let guard = Guard::new(&spec.allowed_hosts)?;
        guard.check(&url)?;
        Ok(Self { spec, url, guard })
    }

    fn get(&self, conditional: bool) -> Result<Answer> {
        let seen = self.spec.seen.as_ref().filter(|_| conditional);
        fetch::get(&self.url, &self.guard, system_lookup, &self.spec.options.limits, seen)
    }
}

impl Source for Web<'_> {
    fn list(&self, pages: &mut Pages<'_, '_>) -> Result<()> {
        let item = |content_sha256, size| Item {
            uri: self.spec.location.clone(),
            content_sha256,
            size,
            place: Place::Url { url: self.spec.location.clone() },
        };
        let item = match (self.get(true)?, &self.spec.seen) {
            (Answer::Unchanged, Some(seen)) => item(seen.content_sha256, seen.size),
            (Answer::Unchanged, None) => return Err(Error::internal("a page that was never seen is unchanged")),
            (Answer::Page(page), _) => item(ContentHash::of(&page.bytes), page.bytes.len() as u64),
        };
        pages.push(Ok(item))
    }

    fn read(&self, item: &Item) -> Result<Content> {
        match self.get(false)? {
            Answer::Page(page) => Ok(content(page, &item.uri)),
            Answer::Unchanged => Err(Error::internal("a page is unchanged that was asked for without condition")),
        }
    }
}

fn content(page: Page, uri: &str) -> Content {
    let mut metadata = Map::new();
    if page.url.as_str() != uri {
        metadata.insert("url".to_owned(), page.url.as_str().into());
    }
    if let Some(time) = page.last_modified {
        metadata.insert("last_modified".to_owned(), time.into());
    }
    let origin = Origin {
        version: Version { etag: page.etag, ..Version::default() },
        content_type: page.content_type,
        base: Some(page.url.into()),
        metadata,
        ..Origin::default()
    };
    Content { bytes: page.bytes, origin }
}
