// SPDX-License-Identifier: PostgreSQL

//! Configurations, transcripts and tables against other implementations; `eval/oracle/records.py` wrote what is right.
//!
//! `RECORDS_ORACLE` names another file of the same script, for instance over many real files.
#![allow(clippy::expect_used, clippy::panic, reason = "a test may")]

mod invariants;
mod support;

use invariants::check;
use rag_core::document::Document;
use rag_core::source::{SourceKind, SourceOptions};
use serde_json::{Map, Value, json};
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use support::COUNTER;

fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn read(kind: SourceKind, name: &str, content: &[u8], chunk_tokens: u32) -> Document {
    let options = SourceOptions { chunk_tokens, overlap: 0, ..SourceOptions::defaults(kind) };
    let document = rag_ingest::parse_inline(kind, &options, name, content, &Map::new(), &COUNTER).expect(name);
    check(&document, &options, &COUNTER, 0);
    document
}

/// Top-level keys in order, each with all text beneath it.
fn keys(document: &Document) -> Vec<(String, String)> {
    let mut found: Vec<(String, String)> = Vec::new();
    for chunk in &document.chunks {
        let Some(key) = chunk.heading_path.first() else { continue };
        match found.iter_mut().find(|(name, _)| name == key) {
            // Without what separates chunks, a text that was cut stands together again.
            Some((_, text)) => {
                let glue = if text.ends_with(char::is_alphanumeric) { "\u{0}" } else { " " };
                *text = format!("{text}{glue}{}", chunk.content);
            }
            None => found.push((key.clone(), chunk.content.clone())),
        }
    }
    found
}

fn config(name: &str, content: &[u8], entry: &Value) -> usize {
    let mut checked = 0;
    let expected = &entry["keys"];
    let paths: HashSet<Vec<&str>> = entry["paths"]
        .as_array()
        .expect("paths")
        .iter()
        .map(|path| path.as_array().expect("path").iter().filter_map(Value::as_str).collect())
        .collect();
    for chunk_tokens in [16, 200] {
        let document = read(SourceKind::Config, name, content, chunk_tokens);
        assert_eq!(document.metadata.get("parse_error"), None, "{name}");
        assert_eq!(document.role.as_deref(), Some("configuration"));
        for chunk in &document.chunks {
            // Elements have no names.
            let is_element =
                |name: &&str| name.strip_prefix('[').is_some_and(|n| n.trim_end_matches(']').parse::<u64>().is_ok());
            let path: Vec<&str> =
                chunk.heading_path.iter().map(String::as_str).filter(|name| !is_element(name)).collect();
            assert!(path.is_empty() || paths.contains(&path), "{name}: there is no key {path:?}");
            checked += 1;
        }
        let Some(expected) = expected.as_array() else { continue };
        if expected.len() > 4000 {
            continue;
        }
        let found = keys(&document);
        let mut names: Vec<String> = Vec::new();
        for pair in expected {
            let key = words(pair[0].as_str().unwrap_or_default()).chars().take(200).collect::<String>();
            if !key.is_empty() && !names.contains(&key) {
                names.push(key);
            }
        }
        assert_eq!(found.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>(), names, "{name}");
        for pair in expected {
            let key = words(pair[0].as_str().unwrap_or_default()).chars().take(200).collect::<String>();
            let Some((_, text)) = found.iter().find(|(name, _)| *name == key) else { continue };
            let text: String = text.split(|c: char| c.is_whitespace() || c == '\0').collect();
            for leaf in pair[1].as_array().into_iter().flatten().filter_map(Value::as_str) {
                let leaf: String = leaf.split_whitespace().collect();
                assert!(text.contains(&leaf), "{name}: \"{leaf}\" is not beneath {key}");
                checked += 1;
            }
        }
    }
    checked
}

/// Every cue stands in the text, in its order, and every chunk has the times of the cues that it holds a part of.
fn transcript(name: &str, content: &[u8], expected: &Value) -> usize {
    let cues: Vec<(u64, u64, String)> = expected
        .as_array()
        .expect("cues")
        .iter()
        .map(|cue| {
            (cue[0].as_u64().expect("begin"), cue[1].as_u64().expect("end"), words(cue[2].as_str().expect("text")))
        })
        .filter(|cue| !cue.2.is_empty())
        .collect();
    for chunk_tokens in [16, 200] {
        let document = read(SourceKind::Transcript, name, content, chunk_tokens);
        let mut at = 0;
        let mut placed = Vec::new();
        for (from, to, said) in &cues {
            let start = at
                + document.text[at..].find(said.as_str()).unwrap_or_else(|| panic!("{name}: \"{said}\" is not there"));
            assert!(document.text[at..start].trim().is_empty(), "{name}: more was said before \"{said}\"");
            at = start + said.len();
            placed.push((start as u64, at as u64, *from, *to));
        }
        assert!(document.text[at..].trim().is_empty());
        for chunk in &document.chunks {
            let within = placed.iter().filter(|p| p.0 < chunk.span.byte_end && chunk.span.byte_start < p.1);
            let time = within.map(|p| (p.2, p.3)).reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)));
            assert_eq!(chunk.time, time, "{name}");
        }
    }
    cues.len()
}

/// Every row is a record with the fields that it has, or fails.
fn table(path: &Path, expected: &Value) -> usize {
    let spec = support::spec(SourceKind::Jsonl, path, &json!({}));
    let (items, failures) = support::list(&spec).expect("listing");
    let rows = expected.as_array().expect("rows");
    assert_eq!(items.len() + failures.len(), rows.len());
    let mut at = items.iter();
    for (index, row) in rows.iter().enumerate() {
        let failed = failures.iter().any(|f| f.uri.ends_with(&format!("#R{}", index + 1)));
        assert!(failed || !row.is_null(), "row {}", index + 1);
        if failed {
            continue;
        }
        let document = rag_ingest::read(&spec, at.next().expect("a record"), &COUNTER).expect("readable");
        let has = |name: &str| row[name].as_str().unwrap_or_default().replace("\r\n", "\n");
        assert_eq!(document.text, has("text"));
        assert_eq!(document.external_id.unwrap_or_default(), has("id"));
        for (name, value) in
            row.as_object().expect("row").iter().filter(|(n, _)| !["id", "title", "text"].contains(&n.as_str()))
        {
            let known = document.metadata.get(name).or(document.language.clone().map(Value::String).as_ref()).cloned();
            assert_eq!(known.as_ref(), Some(value), "{name}");
        }
    }
    rows.len()
}

#[test]
fn other_implementations_agree() {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    let given = std::env::var("RECORDS_ORACLE").ok().map(PathBuf::from);
    let oracle = given.clone().unwrap_or_else(|| root.join("eval/oracle/records.json"));
    let entries: Vec<Value> = serde_json::from_slice(&std::fs::read(&oracle).expect("oracle")).expect("JSON");
    let mut counts = std::collections::BTreeMap::<&str, (usize, usize)>::new();
    let mut different = Vec::new();
    for entry in &entries {
        let name = entry["file"].as_str().expect("file");
        let path = if Path::new(name).is_absolute() { PathBuf::from(name) } else { root.join(name) };
        let Ok(content) = std::fs::read(&path) else {
            // The list was written before the file went.
            eprintln!("skipped: {name} is absent");
            continue;
        };
        let compare = || match entry["kind"].as_str().expect("kind") {
            "config" => ("config", config(name, &content, entry)),
            "transcript" => ("transcript", transcript(name, &content, &entry["cues"])),
            "jsonl" => ("jsonl", table(&path, &entry["rows"])),
            _ => {
                // What another refuses is a document all the same.
                read(SourceKind::Config, name, &content, 200);
                ("refused", 0)
            }
        };
        // Every file is compared, so that one difference does not hide the others.
        let Ok((kind, checked)) = std::panic::catch_unwind(compare) else {
            different.push(name.to_owned());
            continue;
        };
        let count = counts.entry(kind).or_default();
        *count = (count.0 + 1, count.1 + checked);
    }
    for (kind, (files, checked)) in counts {
        eprintln!("{kind}: {files} files, {checked} values agree");
    }
    assert_eq!(different, Vec::<String>::new());
}
