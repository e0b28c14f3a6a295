// SPDX-License-Identifier: PostgreSQL

//! What tests of sources share: where the fixtures are, how a source is described, listed and read.
//!
//! All fixtures lie in `tests/fixtures` of the project, so that the tests of the server read the same files. Must not judge
//! what a source holds: that is each test's own business.
#![allow(dead_code, clippy::expect_used, clippy::panic, reason = "each test binary uses a part; a test may")]

use rag_core::error::Result;
use rag_core::source::{Failure, Item, SourceKind, SourceOptions, SourceSpec};
use rag_core::tokens::WordCounter;
use serde_json::Value;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// Counts tokens without a model, in the window of one that is often used.
pub const COUNTER: WordCounter = WordCounter { window: 254 };

/// The folder of all fixtures.
pub fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures").canonicalize().expect("the folder of fixtures")
}

/// A fixture.
pub fn fixture(name: &str) -> PathBuf {
    fixtures().join(name)
}

/// A source whose options are JSON, as `rag.add_source` takes them; it may read every file.
pub fn spec(kind: SourceKind, location: &Path, options: &Value) -> SourceSpec {
    SourceSpec {
        kind,
        location: location.to_str().expect("UTF-8").to_owned(),
        options: SourceOptions::parse(kind, options).expect("options"),
        allowed_paths: vec!["/".to_owned()],
        allowed_hosts: Vec::new(),
        seen: None,
    }
}

/// Everything that a source lists: items, and what could not be listed.
pub fn list(spec: &SourceSpec) -> Result<(Vec<Item>, Vec<Failure>)> {
    let (items, failures, _) = list_and_count(spec)?;
    Ok((items, failures))
}

/// [`list`], and how many entries were looked at.
pub fn list_and_count(spec: &SourceSpec) -> Result<(Vec<Item>, Vec<Failure>, u64)> {
    let (mut items, mut failures) = (Vec::new(), Vec::new());
    let seen = rag_ingest::list(spec, &mut |more, failed| {
        let page = more.len() + failed.len();
        assert!((1..=1000).contains(&page), "a page of {page}");
        items.extend(more);
        failures.extend(failed);
        Ok(())
    })?;
    Ok((items, failures, seen))
}

/// A file in a folder of its own.
pub fn write(name: &str, content: &[u8]) -> (TempDir, PathBuf) {
    let dir = tempfile::tempdir().expect("tempdir");
    let path = dir.path().join(name);
    std::fs::write(&path, content).expect("file");
    (dir, path)
}
