// SPDX-License-Identifier: PostgreSQL

//! Sources whose structure is not prose: configurations, threads, work items, transcripts, tables.
#![allow(clippy::expect_used, clippy::panic, reason = "a test may")]

mod invariants;
mod support;

use invariants::{check, counters, options};
use proptest::prelude::*;
use rag_core::document::Document;
use rag_core::error::Kind;
use rag_core::source::{Chunking, SourceKind, SourceOptions, SourceSpec};
use serde_json::{Map, Value, json};
use std::path::Path;
use support::{COUNTER, fixture, list, write};

fn spec(kind: SourceKind, path: &Path) -> SourceSpec {
    support::spec(kind, path, &json!({}))
}

/// All documents of a fixture, checked, by URI; and what failed.
fn ingest(kind: SourceKind, name: &str) -> (Vec<Document>, Vec<(String, String)>) {
    let spec = spec(kind, &fixture(name));
    let (items, mut failures) = list(&spec).expect("listing");
    let mut documents = Vec::new();
    for item in &items {
        match rag_ingest::read(&spec, item, &COUNTER) {
            Ok(document) => {
                assert_eq!(document.content_sha256, item.content_sha256);
                check(&document, &spec.options, &COUNTER, 0);
                documents.push(document);
            }
            Err(failure) => failures.push(failure),
        }
    }
    (documents, failures.into_iter().map(|f| (f.uri, f.error.message)).collect())
}

#[test]
fn a_folder_of_configurations() {
    let spec = spec(SourceKind::Config, &fixture("config"));
    let (items, failures) = list(&spec).expect("listing");
    assert!(failures.is_empty());
    let mut errors = Vec::new();
    for item in &items {
        let document = rag_ingest::read(&spec, item, &COUNTER).expect("readable");
        check(&document, &spec.options, &COUNTER, 0);
        assert_eq!(document.title.as_deref(), Some(item.uri.as_str()));
        assert!(document.chunks.iter().all(|c| c.facts.role.as_deref() == Some("configuration")));
        if document.metadata.contains_key("parse_error") {
            errors.push(item.uri.clone());
        }
    }
    assert_eq!(errors, ["broken.yaml", "proxy.conf"]);
    assert_eq!(items.len(), 10);
}

#[test]
fn threads_of_an_array() {
    let (documents, failures) = ingest(SourceKind::Forum, "forum/threads.json");
    assert_eq!(documents.iter().map(|d| d.uri.as_str()).collect::<Vec<_>>(), ["threads.json#t1", "threads.json#t2"]);
    let expected = [
        ("threads.json#R3".to_owned(), "record 3 repeats the key of \"threads.json#t1\"".to_owned()),
        ("threads.json#t3".to_owned(), "thread has no question".to_owned()),
    ];
    assert_eq!(failures, expected);
    let thread = &documents[0];
    assert_eq!(thread.path, None);
    assert_eq!(
        (thread.role.as_deref(), thread.title.as_deref()),
        (Some("evidence"), Some("Why does my index not get used?"))
    );
    let speakers: Vec<_> = thread.chunks.iter().map(|c| c.facts.speaker.as_deref().unwrap_or_default()).collect();
    assert_eq!(speakers, ["ann", "dora", "bob", "cyd", "bob"]);
    assert!(!thread.text.contains("ann") && !thread.text.contains("dora"));
    let answer = &thread.chunks[2];
    assert_eq!((&answer.metadata["votes"], &answer.metadata["accepted"]), (&json!(30), &json!(true)));
    assert!(answer.context.as_deref().is_some_and(|c| c.starts_with("I have an index")));
    assert_eq!(documents[1].text, "Is there a way to list locks?");
}

#[test]
fn exports_of_forums() {
    let (documents, failures) = ingest(SourceKind::Forum, "forum/stackexchange.json");
    assert_eq!((documents.len(), failures.len()), (1, 0));
    assert_eq!(documents[0].uri, "stackexchange.json#101");
    assert_eq!(
        documents[0].text,
        "I need `trim`.\n\n```\nselect trim(x)\n  from t;\n```\n\nNo & no.\n\nUse **btrim**."
    );
    let (documents, failures) = ingest(SourceKind::Forum, "forum/discourse.json");
    assert_eq!((documents.len(), failures.len()), (1, 0));
    assert_eq!(documents[0].text, "Say hello here.\n\nHello!\n\n- one\n- two");
}

#[test]
fn work_items() {
    let (documents, failures) = ingest(SourceKind::Issues, "issues/github.json");
    assert_eq!((documents.len(), failures.len()), (2, 0));
    let issue = &documents[0];
    assert_eq!(issue.uri, "github.json#12");
    let posts: Vec<_> = issue.chunks.iter().map(|c| c.metadata["post"].as_str().unwrap_or_default()).collect();
    assert_eq!(posts, ["description", "comment", "comment", "attachment"]);
    assert_eq!(issue.metadata["labels"], json!(["bug", "parser"]));
    assert_eq!((&issue.metadata["state"], &issue.metadata["milestone"]), (&json!("closed"), &json!("1.0")));
    assert_eq!(issue.chunks[3].heading_path, ["trace.txt"]);
    assert_eq!(documents[1].text, "Document the option");
    let (documents, _) = ingest(SourceKind::Issues, "issues/gitlab.jsonl");
    let speakers: Vec<Vec<_>> = documents
        .iter()
        .map(|d| d.chunks.iter().map(|c| c.facts.speaker.clone().unwrap_or_default()).collect())
        .collect();
    assert_eq!(speakers, [["ann", "bob"], ["bob", "ann"]]);
}

#[test]
fn transcripts_of_every_format() {
    let (documents, _) = ingest(SourceKind::Transcript, "transcript/meeting.vtt");
    let turns: Vec<_> = documents[0]
        .chunks
        .iter()
        .map(|c| (c.facts.speaker.as_deref().unwrap_or_default(), c.content.as_str(), c.time))
        .collect();
    let expected = [
        ("Ann", "Good morning. Shall we begin? There are two points today.", Some((0, 5000))),
        ("Bob Smith", "Three & a half, if I may.", Some((5250, 9000))),
        ("Ann", "Thank you. Goodbye.", Some((3_723_004, 3_725_000))),
    ];
    assert_eq!(turns, expected);
    let (documents, _) = ingest(SourceKind::Transcript, "transcript/talk.srt");
    assert_eq!(documents[0].chunks[0].time, Some((1000, 90_002_250)));
    let (documents, _) = ingest(SourceKind::Transcript, "transcript/utf16.srt");
    assert_eq!((documents[0].text.as_str(), documents[0].repaired_bytes), ("Über alles nachgedacht.", 0));
    let (documents, _) = ingest(SourceKind::Transcript, "transcript/latin1.srt");
    assert_eq!((documents[0].text.as_str(), documents[0].repaired_bytes), ("Caf\u{FFFD} au lait.", 1));
    let (documents, _) = ingest(SourceKind::Transcript, "transcript/whisper.json");
    assert_eq!(
        (documents[0].text.as_str(), documents[0].chunks[0].time),
        ("Hello there. How are you? Fine.", Some((0, 4004)))
    );
    assert_eq!(documents[0].path.as_deref(), Some("whisper.json"));
    let (documents, failures) = ingest(SourceKind::Transcript, "transcript/meetings.jsonl");
    assert!(failures.is_empty());
    assert_eq!(
        documents.iter().map(|d| d.uri.as_str()).collect::<Vec<_>>(),
        ["meetings.jsonl#m1", "meetings.jsonl#m2"]
    );
    assert_eq!(documents[0].text, "We have ten thousand.\n\nThat is little. Who decides?");
    assert_eq!((documents[0].path.clone(), documents[0].title.as_deref()), (None, Some("Budget")));
}

#[test]
fn a_folder_of_transcripts_and_an_array_of_recordings() {
    let spec = spec(SourceKind::Transcript, &fixture("transcript"));
    let (items, _) = list(&spec).expect("listing");
    let uris: Vec<_> = items.iter().map(|i| i.uri.as_str()).collect();
    assert_eq!(uris, ["latin1.srt", "meeting.vtt", "talk.srt", "utf16.srt"]);
    let recording = |id: &str| json!({"id": id, "segments": [{"start": 1, "end": 2, "text": id}]});
    let (_dir, path) = write("all.json", json!([recording("a"), recording("b")]).to_string().as_bytes());
    let spec = self::spec(SourceKind::Transcript, &path);
    let (items, _) = list(&spec).expect("listing");
    let texts: Vec<_> = items.iter().map(|i| rag_ingest::read(&spec, i, &COUNTER).expect("readable").text).collect();
    assert_eq!(texts, ["a", "b"]);
    let (_dir, path) = write("one.json", b"[{\"start\": 1, \"end\": 2, \"text\": \"x\"}]");
    let spec = self::spec(SourceKind::Transcript, &path);
    let (items, _) = list(&spec).expect("listing");
    assert_eq!(rag_ingest::read(&spec, &items[0], &COUNTER).expect("readable").text, "x");
}

#[test]
fn long_turns_are_cut_at_sentences_with_overlap() {
    let said = |n: usize| format!("This is sentence number {n} of a long speech.");
    let segments: Vec<Value> =
        (0..60).map(|n| json!({"start": n, "end": n + 1, "speaker": "A", "text": said(n)})).collect();
    let options = SourceOptions::defaults(SourceKind::Transcript);
    let bytes = json!({"segments": segments}).to_string();
    let parse = || {
        rag_ingest::parse_inline(SourceKind::Transcript, &options, "t", bytes.as_bytes(), &Map::new(), &COUNTER)
            .expect("one")
    };
    let document = parse();
    assert_eq!(document, parse());
    check(&document, &options, &COUNTER, 0);
    assert!(document.chunks.len() > 2);
    for pair in document.chunks.windows(2) {
        assert!(pair[1].span.byte_start < pair[0].span.byte_end, "overlap");
        assert!(pair[1].content.starts_with("This is") && pair[0].content.ends_with("speech."));
        assert!(pair[1].time.expect("time").0 < pair[0].time.expect("time").1);
    }
}

#[test]
fn a_blog_is_markdown_cut_blind_to_headings_with_overlap() {
    let dir = tempfile::tempdir().expect("tempdir");
    let body: String = (0..80).map(|n| format!("Paragraph {n} says something that takes a few words.\n\n")).collect();
    std::fs::write(dir.path().join("post.md"), format!("---\ntitle: P\ndate: 2024-01-02\n---\n# H\n\n{body}"))
        .expect("file");
    let spec = SourceSpec {
        location: dir.path().to_str().expect("UTF-8").to_owned(),
        ..spec(SourceKind::Blog, &dir.path().join("post.md"))
    };
    let (items, _) = list(&spec).expect("listing");
    let document = rag_ingest::read(&spec, &items[0], &COUNTER).expect("readable");
    assert_eq!(
        (document.title.as_deref(), document.published_at.as_deref()),
        (Some("P"), Some("2024-01-02T00:00:00Z"))
    );
    assert!(document.chunks.len() > 2);
    assert!(document.chunks.windows(2).all(|pair| pair[1].span.byte_start < pair[0].span.byte_end));
    check(&document, &spec.options, &COUNTER, document.chunks[0].span.byte_start as usize);
}

#[test]
fn elements_of_an_array_are_found_and_read() {
    let (documents, failures) = ingest(SourceKind::Jsonl, "csv/notes.json");
    let uris: Vec<_> = documents.iter().map(|d| (d.uri.as_str(), d.text.as_str())).collect();
    let expected =
        [("notes.json#1", "one ]} \" two"), ("notes.json#2", "with {brackets}"), ("notes.json#R3", "no key")];
    assert_eq!(uris, expected);
    let expected = [
        ("notes.json#R4".to_owned(), "record is not a JSON object: \"7\"".to_owned()),
        ("notes.json#R5".to_owned(), "record 5 repeats the key of \"notes.json#1\"".to_owned()),
    ];
    assert_eq!(failures, expected);
}

#[test]
fn rows_are_records() {
    let (documents, failures) = ingest(SourceKind::Jsonl, "csv/notes.csv");
    let uris: Vec<_> = documents.iter().map(|d| d.uri.as_str()).collect();
    assert_eq!(uris, ["notes.csv#1", "notes.csv#2", "notes.csv#3", "notes.csv#R6"]);
    assert_eq!(documents[1].text, "Two\nlines and a \"quote\"");
    assert_eq!(documents[1].title.as_deref(), Some("Se\"cond"));
    let expected = [
        ("notes.csv#R4".to_owned(), "record 4 has 3 fields, but the header has 5".to_owned()),
        ("notes.csv#R5".to_owned(), "record 5 repeats the key of \"notes.csv#1\"".to_owned()),
    ];
    assert_eq!(failures, expected);
    assert_eq!(ingest(SourceKind::Jsonl, "csv/notes-semicolon.csv").0[1].text, "three;four");
    assert_eq!(ingest(SourceKind::Jsonl, "csv/notes.tsv").0[0].text, "one \"two\"");
}

#[test]
fn fields_are_mapped_in_rows_and_a_changed_header_is_a_change() {
    let (dir, path) = write("a.csv", b"key,says\n1,x\n");
    let mut spec = spec(SourceKind::Jsonl, &path);
    let fields = json!({"fields": {"external_id": "key", "text": "says"}});
    spec.options = SourceOptions::parse(SourceKind::Jsonl, &fields).expect("options");
    let (items, _) = list(&spec).expect("listing");
    assert_eq!(rag_ingest::read(&spec, &items[0], &COUNTER).expect("readable").text, "x");
    std::fs::write(dir.path().join("a.csv"), b"key,said\n1,x\n").expect("file");
    let failure = rag_ingest::read(&spec, &items[0], &COUNTER).expect_err("changed");
    assert_eq!(failure.error.message, "\"a.csv#1\" changed since it was listed");
}

#[test]
fn a_broken_array_loses_no_more_than_it_must() {
    let fails = |content: &[u8]| {
        let (_dir, path) = write("a.json", content);
        let (items, failures) = list(&spec(SourceKind::Jsonl, &path)).expect("listing");
        (items.len(), failures.into_iter().map(|f| f.error.message).collect::<Vec<_>>())
    };
    assert_eq!(fails(b"[]"), (0, vec![]));
    assert_eq!(fails(b" [ ] \n"), (0, vec![]));
    let one = "{\"text\": \"x\"}";
    assert_eq!(
        fails(format!("[{one}, {one}").as_bytes()),
        (2, vec!["the JSON array of records has no end".to_owned()])
    );
    assert_eq!(
        fails(format!("[{one}] {one}").as_bytes()),
        (1, vec!["there is something after the JSON array of records".to_owned()])
    );
    let (items, failures) = fails(format!("[{one}, {{\"text\": \"y, {one}]").as_bytes());
    assert_eq!((items, failures.len()), (1, 2));
    let (_dir, path) = write("a.json", format!("[{{\"text\": \"{}\"}}, {one}]", "x".repeat(1_000_000)).as_bytes());
    let mut spec = spec(SourceKind::Jsonl, &path);
    spec.options.limits.max_document_bytes = 1000;
    let (items, failures) = list(&spec).expect("listing");
    assert_eq!((items.len(), failures[0].error.kind, failures[0].uri.as_str()), (1, Kind::LimitExceeded, "a.json#R1"));
    assert_eq!(rag_ingest::read(&spec, &items[0], &COUNTER).expect("readable").text, "x");
}

/// Names of formats with content that means no good, some megabytes of each in a release build.
#[test]
fn large_content_ends_well() {
    let n = if cfg!(debug_assertions) { 50_000 } else { 1_000_000 };
    let segments = |n: usize| (0..n).map(|i| format!("{{\"start\":{i},\"text\":\"a\"}}")).collect::<Vec<_>>().join(",");
    for (kind, name, content) in [
        (SourceKind::Config, "flat.json", format!("[{}0]", "0,".repeat(4 * n))),
        (SourceKind::Config, "string.json", format!("{{\"a\": \"{}\"}}", "x".repeat(8 * n))),
        (
            SourceKind::Config,
            "keys.json",
            format!("{{{}\"z\":0}}", (0..n).map(|i| format!("\"{i}\":0,")).collect::<String>()),
        ),
        (SourceKind::Config, "keys.yaml", (0..n).map(|i| format!("k{i}: v\n")).collect()),
        (SourceKind::Config, "flow.yaml", format!("a: [{}0]", "0, ".repeat(n))),
        (SourceKind::Config, "deep.yaml", (0..2000).map(|i| format!("{}k:\n", " ".repeat(i))).collect()),
        (SourceKind::Config, "comments.yaml", "# x\n".repeat(2 * n)),
        (SourceKind::Config, "tables.toml", (0..n / 2).map(|i| format!("[t{i}]\na = 1\n")).collect()),
        (SourceKind::Config, "array.toml", format!("a = [{}0]", "0,".repeat(2 * n))),
        (SourceKind::Config, "keys.ini", (0..n).map(|i| format!("k{i} = v\n")).collect()),
        (SourceKind::Config, "sections.ini", (0..n).map(|i| format!("[s{i}]\n")).collect()),
        (
            SourceKind::Transcript,
            "cues.srt",
            (0..n / 10).map(|i| format!("{i}\n00:00:00,{:03} --> 00:00:01,000\nab <i>c</i>.\n\n", i % 1000)).collect(),
        ),
        (SourceKind::Transcript, "lines.srt", format!("1\n00:00:00,000 --> 00:00:01,000\n{}", "1\n".repeat(2 * n))),
        (
            SourceKind::Transcript,
            "voices.vtt",
            format!("WEBVTT\n\n00:00.000 --> 00:01.000\n{}", "<v a>b<v c>d".repeat(n / 10)),
        ),
        (SourceKind::Transcript, "segments.json", format!("[{}]", segments(n / 10))),
        (
            SourceKind::Forum,
            "answers.json",
            format!("{{\"question\": \"q\", \"answers\": [{}\"a\"]}}", "\"a\",".repeat(49_000.min(n / 10))),
        ),
        (SourceKind::Forum, "html.json", format!("{{\"body\": \"<p>{}\"}}", "<div><li>y".repeat(n / 4))),
        (SourceKind::Issues, "quotes.json", format!("{{\"body\": \"{}\"}}", "> ".repeat(n / 4))),
    ] {
        let options = SourceOptions::defaults(kind);
        let begin = std::time::Instant::now();
        let document = parse(kind, &options, name, content.as_bytes(), &COUNTER).expect(name);
        assert!(!document.chunks.is_empty() || name == "comments.yaml", "{name}");
        eprintln!(
            "{name}: {:.1} MB in {:.2} s, {} chunks",
            content.len() as f64 / 1e6,
            begin.elapsed().as_secs_f64(),
            document.chunks.len()
        );
    }
    let posts = format!("{{\"question\": \"q\", \"answers\": [{}\"a\"]}}", "\"a\",".repeat(60_000));
    let refused = rag_ingest::parse_inline(
        SourceKind::Forum,
        &SourceOptions::defaults(SourceKind::Forum),
        "f",
        posts.as_bytes(),
        &Map::new(),
        &COUNTER,
    );
    assert_eq!(refused.expect_err("too many").error.kind, Kind::LimitExceeded);
}

fn yaml() -> impl Strategy<Value = String> {
    let key = prop_oneof!["[a-z]{1,8}", Just("\"q k\"".to_owned()), Just("'é漢'".to_owned())];
    let value = prop_oneof![
        4 => "[a-z0-9 ]{0,30}", 1 => Just("[a, {b: c}]".to_owned()), 1 => Just("|\n      text\n\n      more".to_owned()),
        1 => Just("\"é: #\" # c".to_owned()), 1 => Just("*x".to_owned()), 1 => Just("{{ x }}".to_owned()), 1 => "[a-z ]{100,400}",
    ];
    let mark = prop_oneof![6 => Just(""), 1 => Just("# note\n"), 1 => Just("\n"), 1 => Just("---\n"), 1 => Just("- ")];
    let indent = prop_oneof![3 => Just(""), 2 => Just("  "), 1 => Just("    ")];
    prop::collection::vec((mark, indent, key, value), 0..30)
        .prop_map(|lines| lines.into_iter().map(|(m, i, k, v)| format!("{m}{i}{k}: {v}\n")).collect())
}

fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "\\PC{0,40}".prop_map(Value::from)
    ];
    leaf.prop_recursive(5, 60, 8, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..8).prop_map(Value::from),
            prop::collection::vec(("\\PC{0,10}", inner), 0..8)
                .prop_map(|pairs| Value::Object(pairs.into_iter().collect())),
        ]
    })
}

fn config() -> ProptestConfig {
    let cases = if cfg!(debug_assertions) { 60 } else { 500 };
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

fn parse(
    kind: SourceKind,
    options: &SourceOptions,
    name: &str,
    bytes: &[u8],
    counter: &dyn rag_core::tokens::TokenCounter,
) -> Option<Document> {
    rag_ingest::parse_inline(kind, options, name, bytes, &Map::new(), counter).ok()
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn parts_of_any_configuration_tile_it(text in yaml(), tokens in 16_u32..120, window in 8_usize..300) {
        let options = options(SourceKind::Config, Chunking::Structure, tokens);
        for counter in counters(window) {
            for name in ["a.yaml", "a.toml", "a.ini", "a.json", "a.properties", "a"] {
                let document = parse(SourceKind::Config, &options, name, text.as_bytes(), &*counter).expect("any bytes");
                check(&document, &options, &*counter, 0);
                prop_assert_eq!(&document, &parse(SourceKind::Config, &options, name, text.as_bytes(), &*counter).expect("again"));
            }
        }
    }

    #[test]
    fn any_json_has_its_keys(value in json_value(), pretty in any::<bool>(), tokens in 16_u32..60) {
        let text = if pretty { serde_json::to_string_pretty(&value) } else { serde_json::to_string(&value) }.expect("JSON");
        let options = options(SourceKind::Config, Chunking::Structure, tokens);
        let document = parse(SourceKind::Config, &options, "a.json", text.as_bytes(), &COUNTER).expect("any bytes");
        check(&document, &options, &COUNTER, 0);
        prop_assert_eq!(document.metadata.get("parse_error"), None);
    }

    #[test]
    fn any_json_is_a_document_or_refused(value in json_value(), names in prop::collection::vec(0_usize..16, 6), tokens in 16_u32..60) {
        const NAMES: [&str; 16] = [
            "id", "title", "question", "answers", "posts", "text", "body", "author", "comments", "attachments", "labels", "segments", "start",
            "created", "fields", "accepted_answer_id",
        ];
        let mut record = Map::new();
        let values = match value { Value::Object(object) => object.into_iter().map(|(_, v)| v).collect(), other => vec![other] };
        for (name, value) in names.into_iter().zip(values.into_iter().cycle()) {
            record.insert(NAMES[name].to_owned(), value);
        }
        let bytes = Value::Object(record).to_string();
        for kind in [SourceKind::Forum, SourceKind::Issues, SourceKind::Transcript] {
            let options = options(kind, Chunking::Structure, tokens);
            let options = SourceOptions { overlap: 0, ..options };
            for counter in counters(100) {
                if let Some(document) = parse(kind, &options, "r", bytes.as_bytes(), &*counter) {
                    check(&document, &options, &*counter, 0);
                }
            }
        }
    }

    #[test]
    fn any_bytes_end_well(bytes in prop::collection::vec(any::<u8>(), 0..300), text in "[\\[\\]{}\",:#=\n a-z<>0-9.-]{0,300}") {
        for kind in SourceKind::ALL {
            let options = SourceOptions::defaults(kind);
            for content in [bytes.as_slice(), text.as_bytes()] {
                for name in ["a", "a.json", "a.toml", "a.yaml", "a.ini"] {
                    let document = parse(kind, &options, name, content, &COUNTER);
                    // Front matter is in no chunk.
                    let whole = !matches!(kind, SourceKind::Markdown | SourceKind::Blog);
                    if let Some(document) = document.filter(|_| whole) {
                        check(&document, &options, &COUNTER, 0);
                    }
                }
            }
        }
    }

    #[test]
    fn elements_are_where_they_are(values in prop::collection::vec(json_value(), 0..12), pretty in any::<bool>(), max in 1_u64..200) {
        let records: Vec<Value> = values.into_iter().map(|v| json!({"text": "x", "v": v})).collect();
        let text = if pretty { serde_json::to_string_pretty(&records) } else { serde_json::to_string(&records) }.expect("JSON");
        let (_dir, path) = write("a.json", text.as_bytes());
        let mut spec = spec(SourceKind::Jsonl, &path);
        let (items, failures) = list(&spec).expect("listing");
        prop_assert_eq!(failures.len(), 0);
        prop_assert_eq!(items.len(), records.len());
        for (item, record) in items.iter().zip(&records) {
            let bytes = rag_ingest::fetch(&spec, item).expect("bytes");
            prop_assert_eq!(&serde_json::from_slice::<Value>(&bytes.bytes).expect("JSON"), record);
        }
        spec.options.limits.max_document_bytes = max;
        let (few, failures) = list(&spec).expect("listing");
        prop_assert_eq!(few.len() + failures.len(), records.len());
        prop_assert!(few.iter().all(|item| item.size <= max));
    }

    #[test]
    fn rows_are_what_was_written(
        names in prop::collection::btree_set("[a-z]{1,5}", 1..5),
        cells in prop::collection::vec(prop::collection::vec("[a-z,;\"\r\n é#|]{0,12}", 5), 0..12),
        end in prop_oneof![Just("\n"), Just("\r\n")],
    ) {
        let quoted = |cell: &str| format!("\"{}\"", cell.replace('"', "\"\""));
        let row = |cells: &[String]| cells.iter().map(|c| quoted(c)).collect::<Vec<_>>().join(",");
        let names: Vec<String> = ["text".to_owned()].into_iter().chain(names).collect::<std::collections::BTreeSet<_>>().into_iter().collect();
        let mut text = row(&names) + end;
        cells.iter().for_each(|cells| text.push_str(&(row(&cells[..names.len()]) + end)));
        let (_dir, path) = write("a.csv", text.as_bytes());
        let spec = spec(SourceKind::Jsonl, &path);
        let (items, failures) = list(&spec).expect("listing");
        prop_assert_eq!((items.len(), failures.len()), (cells.len(), 0));
        for (item, cells) in items.iter().zip(&cells) {
            let record: Value = serde_json::from_slice(&rag_ingest::fetch(&spec, item).expect("bytes").bytes).expect("JSON");
            let expected: Map<String, Value> = names.iter().cloned().zip(cells.iter().cloned().map(Value::from)).collect();
            prop_assert_eq!(record, Value::Object(expected));
        }
    }

    #[test]
    fn turns_of_any_transcript_tile_it(cues in prop::collection::vec((-5_i64..5000, -5_i64..5000, "[A-C]?", "\\PC{0,60}"), 0..20), tokens in 16_u32..60) {
        let segments: Vec<Value> = cues.iter().map(|(from, to, who, text)| json!({"start_ms": from, "end_ms": to, "speaker": who, "text": text})).collect();
        let mut options = options(SourceKind::Transcript, Chunking::Structure, tokens);
        options.overlap = 0;
        let bytes = json!(segments).to_string();
        for counter in counters(128) {
            let document = parse(SourceKind::Transcript, &options, "t", bytes.as_bytes(), &*counter).expect("a transcript");
            check(&document, &options, &*counter, 0);
            let begins: Vec<u64> = document.chunks.iter().filter_map(|c| c.time).map(|t| t.0).collect();
            prop_assert!(begins.is_sorted());
        }
    }
}
