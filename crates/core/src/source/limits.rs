// SPDX-License-Identifier: PostgreSQL

//! How much of everything a source may take.

use super::applies::{Location, check, to_kind};
use super::kind::SourceKind;
use super::options::number;
use crate::error::{Error, Kind, Result, unknown_key};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// All limits by name.
const KNOWN: &[&str] = &[
    "max_document_bytes",
    "max_documents",
    "max_seconds",
    "max_entries",
    "max_total_bytes",
    "max_ratio",
    "max_depth",
    "max_pages",
    "max_download_bytes",
    "max_download_seconds",
];

/// Bytes of a clone beyond those that were received: the index of as many objects as it may have.
const MAX_INDEX: u64 = 512 << 20;

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
    /// Parses and checks the user's limits for a source of `kind` at `location`.
    pub fn parse(kind: SourceKind, location: Location<'_>, value: &Value) -> Result<Self> {
        let Value::Object(object) = value else {
            return Err(Error::invalid(format!("option \"limits\" must be a JSON object, not {value}")));
        };
        let mut limits = Self::default();
        for (key, value) in object {
            check("limit", key, kind, location)?;
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
                    let known: Vec<&str> = KNOWN.iter().copied().filter(|known| to_kind(known, kind)).collect();
                    return Err(unknown_key("limit", unknown, &known));
                }
            }
        }
        Ok(limits)
    }

    /// Bytes of disk that a clone may take.
    pub fn clone_bytes(&self) -> u64 {
        self.max_download_bytes.saturating_add(MAX_INDEX)
    }

    /// Fails when one clone may take more than the `disk` bytes that the operator leaves to all of them.
    pub fn within_clone_disk(&self, disk: u64) -> Result<()> {
        if self.clone_bytes() <= disk {
            return Ok(());
        }
        let (most, wanted) = (disk.saturating_sub(MAX_INDEX), self.max_download_bytes);
        let message = format!("max_download_bytes {wanted} is above the {most} that pg_rag.clone_disk_limit leaves");
        Err(Error::new(Kind::LimitExceeded, message)
            .with_detail(format!(
                "All clones together may take {} MB of disk, and each needs {} MB for its index.",
                disk >> 20,
                MAX_INDEX >> 20
            ))
            .with_hint(format!(
                "Lower it in the source's options: {{\"limits\": {{\"max_download_bytes\": {most}}}}}; or a superuser can raise the limit: ALTER SYSTEM SET pg_rag.clone_disk_limit = '{}MB'; SELECT pg_reload_conf();",
                self.clone_bytes().div_ceil(1 << 20)
            )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clone_fits_beneath_what_the_operator_leaves() {
        let limits = Limits { max_download_bytes: (1 << 30) - (512 << 20), ..Limits::default() };
        assert_eq!(limits.within_clone_disk(1 << 30), Ok(()));
        let large = Limits { max_download_bytes: 1 << 40, ..Limits::default() };
        let error = large.within_clone_disk(8 << 30).expect_err("too large");
        assert_eq!(error.kind, Kind::LimitExceeded);
        // 8192 MB without the 512 MB of an index, in bytes.
        let message = "max_download_bytes 1099511627776 is above the 8053063680 that pg_rag.clone_disk_limit leaves";
        assert_eq!(error.message, message);
        let hint = error.hint.expect("a hint");
        assert!(hint.contains("{\"max_download_bytes\": 8053063680}"), "{hint}");
        assert!(hint.contains("pg_rag.clone_disk_limit = '1049088MB'"), "{hint}");
        let lowered = Limits { max_download_bytes: 8_053_063_680, ..Limits::default() };
        assert_eq!(lowered.within_clone_disk(8 << 30), Ok(()));
        assert!(Limits { max_download_bytes: u64::MAX, ..Limits::default() }.within_clone_disk(8 << 30).is_err());
    }
}
