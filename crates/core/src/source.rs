// SPDX-License-Identifier: PostgreSQL

//! What a source is: its kind, and the options that steer its ingestion, validated once.
//!
//! The backend parses the user's jsonb into [`SourceOptions`] when a source is added, so that a wrong option fails at
//! `rag.add_source` and not in the middle of the night in a sync. The engine receives the same struct and may rely on
//! it. Nothing here reads a file.

mod applies;
mod host;
mod kind;
mod limits;
mod options;

pub use applies::Location;
pub use host::{allow_host, not_at_allowed_host};
pub use kind::SourceKind;
pub use limits::Limits;
pub use options::{Chunking, FieldMap, Secret, SourceOptions};

use crate::document::Version;
use crate::error::{Error, Kind, Result};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Where the text of one document is, within a source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Place {
    /// A whole file, relative to the source's location (empty: the location itself is the file).
    File {
        /// Relative path with `/` separators.
        path: String,
    },
    /// A byte range of the source's file.
    Record {
        /// First byte of the line, element or row.
        offset: u64,
        /// Bytes of it without its end.
        length: u64,
    },
    /// A file of a commit.
    Blob {
        /// Path in the repository.
        path: String,
        /// Hash of the object.
        blob: String,
        /// Hash of the commit.
        commit: String,
        /// Branch or tag by which the commit was found.
        #[serde(default)]
        reference: Option<String>,
    },
    /// A member of an archive.
    Member {
        /// Path of the archive, relative to the source's location (empty: the location itself is the archive).
        archive: String,
        /// Where it is: its place among the entries of the archive, and before that, outermost first, those of the
        /// archives inside of one another that lead to it.
        chain: Vec<u64>,
    },
    /// A page.
    Url {
        /// Where it was asked for.
        url: String,
    },
    /// A post of a feed, which is known in it by the item's URI.
    Entry {
        /// Location of the feed.
        feed: String,
        /// When the feed was asked for that the post was seen in, in milliseconds since 1970.
        listed: u64,
        /// ETag with which the feed was served when it was seen there.
        etag: Option<String>,
        /// Time of the last change with which the feed was served.
        last_modified: Option<String>,
    },
}

/// The bytes of an item, and what is known of where they came from.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Content {
    /// The bytes.
    #[serde(with = "serde_bytes")]
    pub bytes: Vec<u8>,
    /// Where they came from.
    pub origin: Origin,
}

/// Where the bytes of a document came from. It is said by who acquired them and not by who parses them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Origin {
    /// Path within the source, for files.
    pub path: Option<String>,
    /// Which version of the source they are of.
    pub version: Version,
    /// Content type, with its charset, as a server said it.
    pub content_type: Option<String>,
    /// URL against which links are resolved.
    pub base: Option<String>,
    /// What else the source says.
    pub metadata: serde_json::Map<String, Value>,
    /// Where there is more to read than the bytes, which stay what the document is known by.
    pub rendition: Option<Rendition>,
}

/// Another form of a document: the Markdown that a page has of itself, the page that a post of a feed is a summary of.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Rendition {
    /// The bytes.
    #[serde(with = "serde_bytes")]
    pub bytes: Vec<u8>,
    /// Where it was in the end.
    pub url: String,
    /// Content type as served.
    pub content_type: Option<String>,
}

/// What the catalog has of a page or a feed that was fetched before; of a feed no hash, since its posts have theirs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seen {
    /// ETag it was served with.
    pub etag: Option<String>,
    /// Time of the last change it was served with.
    pub last_modified: Option<String>,
    /// Hash of its bytes.
    pub content_sha256: crate::provenance::ContentHash,
    /// Its bytes.
    pub size: u64,
}

/// One document that a source holds, found by listing it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Item {
    /// Identity within the source.
    pub uri: String,
    /// Hash of the bytes as acquired.
    pub content_sha256: crate::provenance::ContentHash,
    /// Bytes as acquired.
    pub size: u64,
    /// Where to read it.
    pub place: Place,
}

/// A document that could not be listed, read or parsed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Failure {
    /// Identity within the source.
    pub uri: String,
    /// Why.
    pub error: Error,
}

/// A glob of the option `glob`. Without a slash it matches a file's name at any depth, with one the path from the
/// location; case does not matter.
pub fn file_glob(glob: &str) -> Result<globset::Glob> {
    let anywhere = format!("**/{glob}");
    let pattern = if glob.contains('/') { glob.trim_start_matches("./").trim_start_matches('/') } else { &anywhere };
    let built = globset::GlobBuilder::new(pattern).case_insensitive(true).literal_separator(true).build();
    built.map_err(|e| {
        Error::invalid(format!("option \"glob\" has the bad pattern \"{glob}\""))
            .with_detail(format!("It says: {}.", e.kind()))
    })
}

/// What the engine needs to know to read a source.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SourceSpec {
    /// Kind.
    pub kind: SourceKind,
    /// Absolute path of a file or folder, or a URL.
    pub location: String,
    /// Options.
    pub options: SourceOptions,
    /// Absolute roots that locations are confined to; empty: nothing may be read.
    pub allowed_paths: Vec<String>,
    /// Hosts that may be talked to; empty: none.
    pub allowed_hosts: Vec<String>,
    /// What is known of a page or feed that was fetched before.
    pub seen: Option<Seen>,
}

/// A clone of the repository of a source, and the commit of it that is meant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Workspace {
    /// Absolute path of its folder, which holds nothing else.
    pub folder: String,
    /// Hash of the commit.
    pub commit: String,
    /// Branch or tag by which the commit was found.
    pub reference: Option<String>,
}

/// Names of files that hold a feed.
const FEEDS: &[&str] = &["xml", "rss", "atom", "rdf", "json"];

/// Whether a source is a feed: it shows its newest posts only, and a list of them when it changed.
///
/// So what is missing from it has not vanished, and what it does not list again has not either.
pub fn is_feed(kind: SourceKind, location: &str) -> bool {
    let named = || location.rsplit_once('.').is_some_and(|(_, end)| FEEDS.contains(&end.to_ascii_lowercase().as_str()));
    kind == SourceKind::Blog && (is_url(location) || named())
}

/// Whether a location is a URL and not a path.
pub fn is_url(location: &str) -> bool {
    location.split_once("://").is_some_and(|(scheme, _)| {
        !scheme.is_empty() && scheme.bytes().all(|b| b.is_ascii_alphanumeric() || b"+-.".contains(&b))
    })
}

/// The error for a location outside of every allowed root.
pub fn not_allowed(location: &str) -> Error {
    Error::new(Kind::Forbidden, format!("location \"{location}\" is not beneath an allowed path")).with_hint(
        "A superuser can add its folder to the list: ALTER SYSTEM SET pg_rag.allowed_paths = '/others,/folder'; SELECT pg_reload_conf();",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_feed_is_told_from_a_folder() {
        for (location, feed) in [
            ("https://example.org/", true),
            ("/srv/feed.XML", true),
            ("/srv/blog.d/feed.json", true),
            ("/srv/posts", false),
            ("/srv/blog.xml/posts", false),
            ("/srv/post.md", false),
        ] {
            assert_eq!(is_feed(SourceKind::Blog, location), feed, "{location}");
        }
        assert!(!is_feed(SourceKind::Html, "https://example.org/feed.xml"));
    }
}
