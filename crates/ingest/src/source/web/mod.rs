// SPDX-License-Identifier: PostgreSQL

//! A page of the web: one URL, which is one document.
//!
//! Owns what of an answer makes a version: its ETag and time of change, by which the server is asked whether there is
//! anything new, and the hash of its bytes, which decides. [`guard`] says what may be reached, [`fetch`] gets it, [`form`]
//! knows where a site keeps its own Markdown of a page. That is got when the page is read, and not when it is listed, with
//! one request more; whatever goes wrong with it, the page itself is there.

pub mod fetch;
pub mod form;
pub mod guard;

use super::{Pages, Source};
use fetch::{Answer, Client, PAGE, Page, system_lookup};
use guard::Guard;
use rag_core::document::Version;
use rag_core::error::{Error, Result};
use rag_core::provenance::ContentHash;
use rag_core::source::{Content, Item, Origin, Place, Rendition, SourceKind, SourceSpec};
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
        let (url, guard) = place(spec)?;
        Ok(Self { spec, url, guard })
    }

    fn client(&self) -> Client<'_> {
        Client::new(&self.guard, system_lookup, &self.spec.options.limits)
    }
}

/// The URL that is the location of a source, and who guards it.
pub fn place(spec: &SourceSpec) -> Result<(Url, Guard)> {
    let location = &spec.location;
    let url = Url::parse(location).map_err(|e| Error::invalid(format!("location \"{location}\" is no URL: {e}")))?;
    let guard = Guard::new(&spec.allowed_hosts)?;
    guard.check(&url)?;
    Ok((url, guard))
}

impl Source for Web<'_> {
    fn list(&self, pages: &mut Pages<'_, '_>) -> Result<()> {
        let item = |content_sha256, size| Item {
            uri: self.spec.location.clone(),
            content_sha256,
            size,
            place: Place::Url { url: self.spec.location.clone() },
        };
        let item = match (self.client().get(&self.url, PAGE, self.spec.seen.as_ref())?, &self.spec.seen) {
            (Answer::Unchanged, Some(seen)) => item(seen.content_sha256, seen.size),
            (Answer::Unchanged, None) => return Err(Error::internal("a page that was never seen is unchanged")),
            (Answer::Page(page), _) => item(ContentHash::of(&page.bytes), page.bytes.len() as u64),
        };
        pages.push(Ok(item))
    }

    fn read(&self, item: &Item) -> Result<Content> {
        let client = self.client();
        let page = client.page(&self.url, PAGE)?;
        let wanted = matches!(self.spec.kind, SourceKind::Html | SourceKind::Article);
        let rendition = if wanted { form::of(&page, &client) } else { None };
        Ok(content(page, &item.uri, rendition))
    }
}

fn content(page: Page, uri: &str, rendition: Option<Rendition>) -> Content {
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
        rendition,
        ..Origin::default()
    };
    Content { bytes: page.bytes, origin }
}
