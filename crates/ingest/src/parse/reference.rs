// SPDX-License-Identifier: PostgreSQL

//! Headings compared with what markdown-it-py finds in the same files.

use super::{markdown, metadata};
use crate::text::repair;
use serde_json::Value;
use std::path::Path;

/// What the reference leaves in a heading's text, since it keeps inline source.
fn plain(source: &str) -> String {
    let text = format!("# {}\n", source.replace('\n', " "));
    let structure = markdown::structure(&text, 0..text.len());
    structure.headings.first().map(|h| h.text.clone()).unwrap_or_default()
}

#[test]
fn headings_are_those_of_a_second_parser() {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/files");
    let Ok(reference) = std::fs::read_to_string(data.join("md_reference.jsonl")) else {
        eprintln!("skipped: {} is absent", data.display());
        return;
    };
    let mut differences = Vec::new();
    let mut compared = 0;
    for line in reference.lines() {
        let expected: Value = serde_json::from_str(line).expect("reference");
        let name = expected["file"].as_str().expect("file");
        let text = repair(&std::fs::read(data.join(name)).expect("readable")).text;
        let (_, body) = metadata::front_matter(&text);
        assert_eq!(body.start > 0, expected["front_matter"] == 1, "front matter of {name}");
        let structure = markdown::structure(&text, body);
        let ours: Vec<(u64, String, u64)> = structure
            .headings
            .iter()
            .map(|h| (u64::from(h.level), h.text.clone(), text[..h.start].matches('\n').count() as u64 + 1))
            .collect();
        let theirs: Vec<(u64, String, u64)> = expected["headings"]
            .as_array()
            .expect("headings")
            .iter()
            .map(|h| (h[0].as_u64().expect("level"), plain(h[1].as_str().expect("text")), h[2].as_u64().expect("line")))
            .collect();
        compared += theirs.len();
        for h in ours.iter().filter(|h| !theirs.contains(h)).chain(theirs.iter().filter(|h| !ours.contains(h))) {
            differences.push(format!("{name}: {h:?} {}", if ours.contains(h) { "ours" } else { "theirs" }));
        }
    }
    assert!(compared > 1500, "{compared} headings");
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}
