// SPDX-License-Identifier: PostgreSQL

//! Every file of `tests/fixtures` is read, or refused, as `tests/fixtures/EXPECTED.tsv` says.
//!
//! A row is a file, the kind of the source, its options, and what that comes to; the head of the table says how that was found
//! out. There is a row for each file, each kind that is read from a file, each language of code and each limit. A row that does not
//! hold fails the test.
#![allow(clippy::expect_used, clippy::panic, reason = "a test may")]

mod invariants;
mod support;

use invariants::check;
use rag_core::document::Document;
use rag_core::error::Error;
use rag_core::source::{Limits, SourceKind};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::Path;
use std::str::FromStr;
use support::{COUNTER, fixtures, list_and_count, spec};

struct Row {
    file: String,
    kind: SourceKind,
    options: String,
    outcome: String,
}

fn rows() -> Vec<Row> {
    let table = std::fs::read_to_string(fixtures().join("EXPECTED.tsv")).expect("the table");
    let lines = table.lines().filter(|line| !line.starts_with('#'));
    let row = |line: &str| {
        let fields: Vec<&str> = line.split('\t').collect();
        let [file, kind, options, outcome] = fields[..] else { panic!("not four fields: {line}") };
        let kind = SourceKind::from_str(kind).expect(line);
        Row { file: file.to_owned(), kind, options: options.to_owned(), outcome: outcome.to_owned() }
    };
    lines.skip(1).map(row).collect()
}

/// Files beneath a folder, by their paths in it.
fn files(folder: &Path, within: &str, into: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let entry = entry.expect("an entry");
        let name = format!("{within}{}", entry.file_name().to_string_lossy());
        if entry.path().is_dir() { files(&entry.path(), &format!("{name}/"), into) } else { assert!(into.insert(name)) }
    }
}

fn words(error: &Error) -> String {
    format!("{:?}: {}", error.kind, error.message)
}

/// Names with how often they are there.
fn counted<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    names.for_each(|name| *counts.entry(name).or_default() += 1);
    counts.iter().map(|(name, count)| format!("{count} {name}")).collect::<Vec<_>>().join(", ")
}

/// What a source comes to, in one line.
fn outcome(row: &Row) -> String {
    let options: Value = serde_json::from_str(&row.options).expect("options");
    let spec = spec(row.kind, &fixtures().join(&row.file), &options);
    let (items, mut failures, seen) = match list_and_count(&spec) {
        Ok(listed) => listed,
        Err(error) => return format!("refused, {}", words(&error)),
    };
    let mut documents: Vec<Document> = Vec::new();
    for item in &items {
        match rag_ingest::read(&spec, item, &COUNTER) {
            Ok(document) => {
                assert_eq!(Ok(&document), rag_ingest::read(&spec, item, &COUNTER).as_ref(), "read twice");
                // Front matter is in no chunk.
                let may_have_it = document.media_type == "text/markdown" && document.text.starts_with("---");
                let body = document.chunks.first().map_or(document.text.len(), |c| c.span.byte_start as usize);
                check(&document, &spec.options, &COUNTER, if may_have_it { body } else { 0 });
                documents.push(document);
            }
            Err(failure) => failures.push(failure),
        }
    }
    let chunks = || documents.iter().flat_map(|document| &document.chunks);
    let mut line = format!("{} of {seen}, {} chunks", documents.len(), chunks().count());
    let roles = counted(chunks().filter_map(|chunk| chunk.facts.role.as_deref()));
    let symbols = |document: &Document| {
        let facts = document.chunks.iter().map(|chunk| &chunk.facts);
        let named = facts.filter_map(|facts| Some((facts.symbol_kind.clone(), facts.symbol.clone()?)));
        named.collect::<BTreeSet<_>>().len()
    };
    let symbols = documents.iter().map(symbols).sum::<usize>();
    let of_symbols = chunks().filter(|chunk| chunk.facts.symbol.is_some()).count();
    let speakers = chunks().filter(|chunk| chunk.facts.speaker.is_some()).count();
    let pages = chunks().filter_map(|chunk| chunk.pages).map(|(_, last)| last).max();
    let languages = counted(documents.iter().filter_map(|document| document.language.as_deref()));
    for (what, said) in [("roles", roles), ("languages", languages)] {
        if !said.is_empty() {
            write!(line, "; {what}: {said}").expect("a string takes everything");
        }
    }
    if symbols > 0 {
        write!(line, "; {symbols} symbols in {of_symbols} chunks").expect("a string takes everything");
    }
    for (count, what) in [(speakers, "of speakers"), (pages.unwrap_or(0) as usize, "pages")] {
        if count > 0 {
            write!(line, "; {count} {what}").expect("a string takes everything");
        }
    }
    for failure in failures {
        write!(line, "; failed {}, {}", failure.uri, words(&failure.error)).expect("a string takes everything");
    }
    line
}

#[test]
fn every_fixture_is_what_the_table_says() {
    let rows = rows();
    let mut all = BTreeSet::new();
    files(&fixtures(), "", &mut all);
    // The scripts that made them are none.
    all.retain(|name| !name.rsplit('/').next().is_some_and(|last| last.starts_with("make")) && name != "EXPECTED.tsv");
    let told: BTreeSet<String> = rows.iter().map(|row| row.file.clone()).collect();
    assert_eq!(told, all, "each file has a row");

    let mut wrong = Vec::new();
    for row in &rows {
        let outcome = outcome(row).escape_debug().to_string().replace("\\\"", "\"").replace("\\'", "'");
        if outcome != row.outcome {
            wrong.push(format!("{} as {}: {outcome}", row.file, row.kind.name()));
        }
    }
    assert!(wrong.is_empty(), "not as expected:\n{}", wrong.join("\n"));
}

#[test]
fn every_kind_language_and_limit_has_a_row() {
    let rows = rows();
    for kind in SourceKind::ALL {
        // A repository is a folder of many files; the tests make theirs.
        assert!(kind == SourceKind::Git || rows.iter().any(|row| row.kind == kind), "{}", kind.name());
    }
    for language in [
        "rust",
        "python",
        "typescript",
        "tsx",
        "javascript",
        "go",
        "java",
        "c",
        "cpp",
        "csharp",
        "ruby",
        "php",
        "bash",
        "sql",
    ] {
        let said = format!("languages: 1 {language};");
        assert!(rows.iter().any(|row| row.outcome.contains(&said)), "{language}");
    }
    let limits = serde_json::to_value(Limits::default()).expect("limits");
    for limit in limits.as_object().expect("an object").keys() {
        // Time is the engine's to measure, and a download takes a server: their tests go beyond these.
        let hit = |row: &Row| row.outcome.contains("LimitExceeded") && row.outcome.contains(limit.as_str());
        let elsewhere = ["max_seconds", "max_download_bytes", "max_download_seconds"].contains(&limit.as_str());
        assert!(elsewhere || rows.iter().any(hit), "{limit}");
    }
}
