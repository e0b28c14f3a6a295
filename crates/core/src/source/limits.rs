// SPDX-License-Identifier: PostgreSQL

//! How much of everything a source may take. A limit that does not apply to a kind is refused, because it would be
//! believed to hold.

use super::kind::SourceKind;
use super::options::number;
use crate::error::{Error, Result, unknown_key};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Limits of one parse.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Bytes of one document as acquired.
    pub max_document_bytes: u64,
    /// Documents of one source.
    pub max_documents: u64,
    /// Wall-clock seconds for one document.
    pub max_seconds: u32,
    /// Entries of one archive, those of archives inside of it included.
    pub max_entries: u64,
    /// Bytes that reading one archive once may unpack, archives inside of it included.
    pub max_total_bytes: u64,
    /// How many times larger than its packed bytes something unpacked may be, from one megabyte on.
    pub max_ratio: u64,
    /// How many archives may lie inside of one another, beneath the outermost.
    pub max_depth: u32,
    /// Pages of one document that has pages.
    pub max_pages: u64,
    /// Bytes that cloning a repository may receive.
    pub max_download_bytes: u64,
    /// Wall-clock seconds that cloning a repository may take.
    pub max_download_seconds: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_document_bytes: 64 << 20,
            max_documents: 5_000_000,
            max_seconds: 60,
            max_entries: 100_000,
            max_total_bytes: 4 << 30,
            max_ratio: 200,
            max_depth: 3,
            max_pages: 5_000,
            max_download_bytes: 1 << 30,
            // Below the time that a backend waits for an engine that says nothing.
            max_download_seconds: 240,
        }
    }
}

impl Limits {
    /// Parses and checks the user's limits for a source of `kind`.
    pub fn parse(kind: SourceKind, value: &Value) -> Result<Self> {
        const OF_ALL: &[&str] = &["max_document_bytes", "max_documents", "max_seconds"];
        const OF_ARCHIVES: &[&str] = &["max_entries", "max_total_bytes", "max_ratio", "max_depth"];
        const OF_PAGES: &[&str] = &["max_pages"];
        const OF_CLONES: &[&str] = &["max_download_bytes", "max_download_seconds"];
        let Value::Object(object) = value else {
            return Err(Error::invalid(format!("option \"limits\" must be a JSON object, not {value}")));
        };
        let archives = kind == SourceKind::Zip;
        let pages = kind == SourceKind::Pdf || kind.is_of_many_formats();
        let clones = kind == SourceKind::Git;
        let some = [(archives, OF_ARCHIVES), (pages, OF_PAGES), (clones, OF_CLONES)];
        let mut limits = Self::default();
        for (key, value) in object {
            if some.iter().any(|(apply, limits)| !apply && limits.contains(&key.as_str())) {
                return Err(Error::invalid(format!("limit \"{key}\" does not apply to kind \"{}\"", kind.name())));
            }
            match key.as_str() {
                // The protocol's frame is the hard upper bound of a document.
                "max_document_bytes" => limits.max_document_bytes = number(key, value, 1, 256 << 20)?,
                "max_documents" => limits.max_documents = number(key, value, 1, 100_000_000)?,
                "max_seconds" => limits.max_seconds = number(key, value, 1, 3600)? as u32,
                // A listing holds what it found of one archive in memory.
                "max_entries" => limits.max_entries = number(key, value, 1, 1_000_000)?,
                "max_total_bytes" => limits.max_total_bytes = number(key, value, 1, 1 << 40)?,
                "max_ratio" => limits.max_ratio = number(key, value, 1, 1_000_000)?,
                // Each is held in memory as a whole, and may be as large as a document.
                "max_depth" => limits.max_depth = number(key, value, 0, 8)? as u32,
                "max_pages" => limits.max_pages = number(key, value, 1, 100_000)?,
                "max_download_bytes" => limits.max_download_bytes = number(key, value, 1, 1 << 40)?,
                "max_download_seconds" => limits.max_download_seconds = number(key, value, 1, 86_400)? as u32,
                unknown => {
                    let mut known = OF_ALL.to_vec();
                    known.extend(some.iter().filter(|(apply, _)| *apply).flat_map(|(_, limits)| limits.iter()));
                    return Err(unknown_key("limit", unknown, &known));
                }
            }
        }
        Ok(limits)
    }
}
