// SPDX-License-Identifier: PostgreSQL

//! Archives that were made to hurt: those of the shared files by the words of their manifest, and mutations of sound ones.
#![allow(clippy::expect_used, clippy::panic, reason = "a test may")]

mod invariants;
mod support;

use invariants::data;
use proptest::prelude::*;
use rag_core::source::{SourceKind, SourceSpec};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};
use support::{COUNTER, list};

fn spec(location: &Path, options: &Value) -> SourceSpec {
    support::spec(SourceKind::Zip, location, options)
}

/// What the manifest expects of an archive, in its own words, and what that means here: the documents' paths, and
/// parts of the failures' messages.
struct Expected {
    words: &'static str,
    documents: &'static [&'static str],
    failures: &'static [&'static str],
}

const GOOD: &str = "docs/good.md";

fn expectations() -> BTreeMap<&'static str, Expected> {
    let table: [(&str, Expected); 14] = [
        (
            "bad-crc.zip",
            Expected {
                words: "index ok.md; report crc.md",
                documents: &["ok.md"],
                failures: &["\"crc.md\" is damaged: its checksum"],
            },
        ),
        (
            "bomb-300mb.zip",
            Expected {
                words: "stop at the size/ratio limit; good.md may be indexed; bounded memory and time",
                documents: &[GOOD],
                failures: &["\"zeros.txt\" has 300000000 bytes, more than max_document_bytes 67108864"],
            },
        ),
        (
            "duplicate-names.zip",
            Expected {
                words: "define which wins; stay deterministic",
                documents: &["a.md", "A.md", "a.md/b.md"],
                failures: &[],
            },
        ),
        ("empty.zip", Expected { words: "0 documents, no error", documents: &[], failures: &[] }),
        (
            "encrypted.zip",
            Expected {
                words: "index plain.md, report secret.md as encrypted",
                documents: &["plain.md"],
                failures: &["\"secret.md\" is encrypted"],
            },
        ),
        (
            "mixed.zip",
            Expected {
                words: "text indexed, binaries skipped",
                documents: &[
                    GOOD,
                    "src/main.py",
                    "page.html",
                    "data.csv",
                    "latin1.txt",
                    "utf16.txt",
                    "bom.md",
                    "nul.txt",
                    "empty.md",
                    "node_modules/x/index.js",
                ],
                failures: &[],
            },
        ),
        (
            "nested-3.zip",
            Expected {
                words: "either descend within the limit or report the nested archives as skipped; never crash",
                documents: &[
                    "level2.zip!/level1.zip!/level0.zip!/docs/good.md",
                    "level2.zip!/level1.zip!/level0.zip!/src/main.py",
                    "level2.zip!/level1.zip!/note0.md",
                    "level2.zip!/note1.md",
                    "note2.md",
                ],
                failures: &[],
            },
        ),
        (
            "non-utf8-names.zip",
            Expected {
                words: "all four texts indexed under some stable name, or the bad one reported",
                documents: &["café.md", "%93%FA%96{%8C%EA.md", "日本語.md", "bad%FF%FE.md"],
                failures: &[],
            },
        ),
        (
            "prefix-junk.zip",
            Expected {
                words: "open as a zip if the tool sniffs the tail, or report",
                documents: &[GOOD],
                failures: &[],
            },
        ),
        (
            "symlink.tar.gz",
            Expected {
                words: "index good.md only",
                documents: &[GOOD],
                failures: &["\"l/evil.md\" lies beneath a link", "\"hard.md\" is a hard link"],
            },
        ),
        (
            "symlink.zip",
            Expected {
                words: "index docs/good.md; never follow a link; no content of /etc/passwd in the index",
                documents: &[GOOD],
                failures: &["\"link.md\" is a symbolic link", "\"dirlink/evil.md\" lies beneath a link"],
            },
        ),
        (
            "zipslip-absolute.zip",
            Expected {
                words: "index 1 good entry, refuse 2",
                documents: &[GOOD],
                failures: &["\"/etc/cron.d/evil\" has an absolute path", "\"/tmp/evil.md\" has an absolute path"],
            },
        ),
        (
            "zipslip.zip",
            Expected {
                words: "index 2 good entries; refuse or neutralise 2 traversal entries; write nothing outside",
                documents: &[GOOD, "src/main.py"],
                failures: &["\"../../evil.md\" leads out", "\"docs/../../evil2.md\" leads out"],
            },
        ),
        (
            "entries-70000.zip",
            Expected {
                words: "index all within limits or stop at the entry limit with a message",
                documents: &[],
                failures: &[],
            },
        ),
    ];
    table.into_iter().collect()
}

#[test]
fn every_archive_of_the_manifest_is_as_it_says() {
    let Some(data) = data() else { return };
    let manifest = std::fs::read_to_string(data.join("MANIFEST.tsv")).expect("manifest");
    let table = expectations();
    let mut seen = 0;
    for line in manifest.lines() {
        let fields: Vec<&str> = line.split('\t').collect();
        let Some(name) = fields[0].strip_prefix("nasty/").filter(|n| n.ends_with(".zip") || n.ends_with(".gz")) else {
            continue;
        };
        let (_, words) = fields[5].split_once("| expected: ").expect("what a correct reader does");
        let expected = table.get(name).unwrap_or_else(|| panic!("nothing is expected of {name}: {words}"));
        assert_eq!(words, expected.words, "{name}");
        let spec = spec(&data.join("nasty").join(name), &json!({}));
        let start = Instant::now();
        let (items, failures) = list(&spec).expect(name);
        let listed = start.elapsed();
        let mut paths = Vec::new();
        let mut texts = Vec::new();
        for item in &items {
            let document = rag_ingest::read(&spec, item, &COUNTER).expect(name);
            assert!(!document.text.contains("root:"), "{name} has the content of /etc/passwd");
            paths.push(document.path.expect("a path"));
            texts.push(document.text);
        }
        eprintln!(
            "{name}: {} documents, {} failures, listed in {listed:.2?}, all in {:.2?}",
            items.len(),
            failures.len(),
            start.elapsed()
        );
        match name {
            "entries-70000.zip" => {
                assert_eq!((items.len(), failures.len()), (70_000, 0));
                assert_eq!((paths[69_999].as_str(), texts[69_999].as_str()), ("n/99/69999.txt", "note 69999\n"));
            }
            _ => {
                assert_eq!(paths, expected.documents, "{name}");
                assert_eq!(failures.len(), expected.failures.len(), "{name}: {failures:?}");
                for part in expected.failures {
                    assert!(failures.iter().any(|f| f.error.message.contains(part)), "{name}: {part} {failures:?}");
                }
            }
        }
        seen += 1;
    }
    assert_eq!(seen, table.len());
}

/// What happens to some bytes.
#[derive(Debug, Clone)]
enum Change {
    Set(usize, u8),
    Flip(usize, u8),
    Insert(usize, Vec<u8>),
    Remove(usize, usize),
    Repeat(usize, usize),
    Cut(usize),
}

fn change() -> impl Strategy<Value = Change> {
    let at = 0_usize..100_000;
    prop_oneof![
        4 => (at.clone(), prop_oneof![Just(0), Just(0xFF), any::<u8>()]).prop_map(|(at, to)| Change::Set(at, to)),
        4 => (at.clone(), 0_u8..8).prop_map(|(at, bit)| Change::Flip(at, bit)),
        1 => (at.clone(), prop::collection::vec(any::<u8>(), 1..40)).prop_map(|(at, more)| Change::Insert(at, more)),
        1 => (at.clone(), 1_usize..600).prop_map(|(at, length)| Change::Remove(at, length)),
        1 => (at.clone(), 1_usize..600).prop_map(|(at, length)| Change::Repeat(at, length)),
        1 => at.prop_map(Change::Cut),
    ]
}

fn apply(bytes: &mut Vec<u8>, change: Change) {
    let length = bytes.len().max(1);
    if bytes.is_empty() {
        return;
    }
    match change {
        Change::Set(at, to) => bytes[at % length] = to,
        Change::Flip(at, bit) => bytes[at % length] ^= 1 << bit,
        Change::Insert(at, more) => drop(bytes.splice(at % length..at % length, more)),
        Change::Remove(at, many) => drop(bytes.drain(at % length..(at % length + many).min(length))),
        Change::Repeat(at, many) => {
            let again = bytes[at % length..(at % length + many).min(length)].to_vec();
            drop(bytes.splice(at % length..at % length, again));
        }
        Change::Cut(at) => bytes.truncate(at % length),
    }
}

fn config() -> ProptestConfig {
    let cases = if cfg!(debug_assertions) { 400 } else { 20_000 };
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn a_changed_archive_ends_within_its_limits(
        which in 0_usize..12,
        // A change near an end hits what archives are found by.
        changes in prop::collection::vec((any::<bool>(), change()), 1..5),
    ) {
        const NAMES: [&str; 12] = [
            "plain.zip", "nested.zip", "zip64.zip", "names.zip", "encrypted.zip", "lies.zip", "plain.tar", "plain.tar.gz",
            "long-pax.tar.gz", "links.tar.gz", "sparse.tar", "two.md.gz",
        ];
        let fixtures = support::fixture("archive");
        let mut bytes = std::fs::read(fixtures.join(NAMES[which])).expect("fixture");
        for (at_end, change) in changes {
            if at_end {
                bytes.reverse();
            }
            apply(&mut bytes, change);
            if at_end {
                bytes.reverse();
            }
        }
        let dir = tempfile::tempdir().expect("tempdir");
        let place = dir.path().join(NAMES[which]);
        std::fs::write(&place, &bytes).expect("file");
        let limits = json!({"max_document_bytes": 2000, "max_entries": 30, "max_total_bytes": 50_000});
        let spec = spec(&place, &json!({"password": "open sesame", "limits": limits}));
        let start = Instant::now();
        if let Ok((items, failures)) = list(&spec) {
            prop_assert!(items.len() + failures.len() <= 30);
            prop_assert!(items.iter().map(|i| i.size).sum::<u64>() <= 50_000);
            for item in &items {
                prop_assert!(item.size <= 2000);
                let bytes = rag_ingest::fetch(&spec, item).expect("what was listed is read");
                prop_assert_eq!(bytes.bytes.len() as u64, item.size);
                prop_assert!(rag_ingest::read(&spec, item, &COUNTER).is_ok());
            }
        }
        prop_assert!(start.elapsed() < Duration::from_secs(20));
    }
}
