// SPDX-License-Identifier: PostgreSQL

//! JSON Lines: one record, one document.
#![allow(clippy::expect_used, clippy::panic, reason = "a test may")]

mod support;

use rag_core::error::Kind;
use rag_core::provenance::ContentHash;
use rag_core::source::{Chunking, Item, Place, SourceKind, SourceOptions, SourceSpec};
use serde_json::{Value, json};
use support::{COUNTER, list, write};
use tempfile::TempDir;

fn source(content: &[u8]) -> (TempDir, SourceSpec) {
    let (dir, file) = write("c.jsonl", content);
    let spec = support::spec(SourceKind::Jsonl, &file, &json!({}));
    (dir, spec)
}

#[test]
fn records_are_found_by_key_or_line() {
    let lines = [
        "\u{FEFF}{\"_id\": \"a\", \"text\": \"one\"}\r\n",
        "\r\n",
        "{\"id\": 7, \"text\": \"two\"}\n",
        "  \n",
        "{\"text\": \"three\"}\n",
        "{\"_id\": \"a\", \"text\": \"again\"}\n",
        "{broken\n",
        "{\"_id\": \"n\"}\n",
        "{\"_id\": \"L5\", \"text\": \"a key that looks like line 5\"}\n",
        "{\"_id\": \"e\", \"title\": \"only a title\", \"text\": \"\"}",
    ];
    let content = lines.concat();
    let (_dir, spec) = source(content.as_bytes());
    let (items, failures) = list(&spec).expect("listing");
    assert_eq!(
        items.iter().map(|i| i.uri.as_str()).collect::<Vec<_>>(),
        ["c.jsonl#a", "c.jsonl#7", "c.jsonl#L5", "c.jsonl#e"]
    );
    let failed: Vec<_> = failures.iter().map(|f| (f.uri.as_str(), f.error.message.as_str())).collect();
    let expected = [
        ("c.jsonl#L6", "record on line 6 repeats the key of \"c.jsonl#a\""),
        ("c.jsonl#L7", "record is not valid JSON: \"{broken\""),
        ("c.jsonl#L8", "record has no field \"text\""),
        ("c.jsonl#L9", "record on line 9 repeats the key of \"c.jsonl#L5\""),
    ];
    assert_eq!(failed, expected);
    assert!(failures.iter().all(|f| f.error.kind == Kind::BadContent));
    let line = "{\"_id\": \"a\", \"text\": \"one\"}";
    assert_eq!(items[0].content_sha256, ContentHash::of(line));
    assert_eq!(items[0].place, Place::Record { offset: 3, length: line.len() as u64 });
    let texts: Vec<String> =
        items.iter().map(|i| rag_ingest::read(&spec, i, &COUNTER).expect("readable").text).collect();
    // A record that is nothing but a title is found by it.
    assert_eq!(texts, ["one", "two", "three", "only a title"]);
    let titled = rag_ingest::read(&spec, &items[3], &COUNTER).expect("readable");
    assert_eq!((titled.title.as_deref(), titled.chunks.len()), (Some("only a title"), 1));
}

#[test]
fn a_record_becomes_a_document() {
    let record = json!({
        "_id": "k", "title": "T", "text": "a\r\nb", "language": "en", "published_at": "2024-05-06",
        "url": "u", "metadata": {"year": 1990}
    });
    let (_dir, spec) = source(record.to_string().as_bytes());
    let item = list(&spec).expect("listing").0.remove(0);
    let document = rag_ingest::read(&spec, &item, &COUNTER).expect("readable");
    assert_eq!(document.uri, "c.jsonl#k");
    assert_eq!(document.external_id.as_deref(), Some("k"));
    assert_eq!((document.title.as_deref(), document.language.as_deref()), (Some("T"), Some("en")));
    assert_eq!(document.published_at.as_deref(), Some("2024-05-06T00:00:00Z"));
    assert_eq!(Value::Object(document.metadata), json!({"url": "u", "year": 1990}));
    assert_eq!((document.path, document.media_type.as_str()), (None, "text/plain"));
    assert_eq!(document.text, "a\nb");
    assert_eq!(document.content_sha256, item.content_sha256);
    assert_eq!(document.chunks.len(), 1);
}

#[test]
fn the_text_is_cut_as_the_options_say() {
    let record = json!({"_id": "k", "text": "# A\n\nx\n\n# B\n\ny\n"}).to_string();
    let (_dir, mut spec) = source(record.as_bytes());
    let item = list(&spec).expect("listing").0.remove(0);
    let mut paths = |chunking| {
        spec.options.chunking = chunking;
        let document = rag_ingest::read(&spec, &item, &COUNTER).expect("readable");
        document.chunks.into_iter().map(|c| c.heading_path).collect::<Vec<_>>()
    };
    assert_eq!(paths(Chunking::Heading), [["A"], ["B"]]);
    assert_eq!(paths(Chunking::Recursive), [Vec::<String>::new()]);
    assert_eq!(paths(Chunking::None), [Vec::<String>::new()]);
}

#[test]
fn a_long_line_is_bounded_and_the_next_one_is_read() {
    let long = json!({"_id": "long", "text": "x".repeat(300_000)}).to_string();
    let fits = json!({"_id": "fits", "text": ""}).to_string();
    for end in ["\n", "\r\n"] {
        let (_dir, mut spec) = source(format!("{long}{end}{fits}{end}{fits} {end}").as_bytes());
        spec.options.limits.max_document_bytes = fits.len() as u64;
        let (items, failures) = list(&spec).expect("listing");
        assert_eq!(items.iter().map(|i| i.uri.as_str()).collect::<Vec<_>>(), ["c.jsonl#fits"]);
        rag_ingest::read(&spec, &items[0], &COUNTER).expect("readable");
        let failed: Vec<_> = failures.iter().map(|f| (f.uri.as_str(), f.error.kind)).collect();
        assert_eq!(failed, [("c.jsonl#L1", Kind::LimitExceeded), ("c.jsonl#L3", Kind::LimitExceeded)]);
    }
}

#[test]
fn a_record_that_moved_is_not_read() {
    let (dir, spec) = source(b"{\"_id\": 1, \"text\": \"a\"}\n");
    let item = list(&spec).expect("listing").0.remove(0);
    std::fs::write(dir.path().join("c.jsonl"), b"{\"_id\": 2, \"text\": \"b\"}\n").expect("file");
    let failure = rag_ingest::read(&spec, &item, &COUNTER).expect_err("moved");
    assert_eq!(failure.error.message, "\"c.jsonl#1\" changed since it was listed");
    let far = Item { place: Place::Record { offset: 1 << 40, length: 10 }, ..item };
    assert!(rag_ingest::read(&spec, &far, &COUNTER).is_err());
}

#[test]
fn limits_and_locations_are_checked() {
    let (dir, mut spec) = source(b"{\"text\": \"a\"}\n{\"text\": \"b\"}\n");
    spec.options.limits.max_documents = 1;
    assert_eq!(list(&spec).expect_err("too many").kind, Kind::LimitExceeded);
    spec.location = dir.path().to_str().expect("UTF-8").to_owned();
    assert_eq!(list(&spec).expect_err("folder").kind, Kind::InvalidArgument);
    let (_dir, spec) = source(b"");
    assert_eq!(list(&spec).expect("empty"), (Vec::new(), Vec::new()));
}

#[test]
fn inline_content_is_one_record_and_metadata_overrides() {
    let options = SourceOptions::defaults(SourceKind::Jsonl);
    let given = json!({"title": "given", "year": 2, "date": "2020-01-01"});
    let given = given.as_object().expect("object");
    let content = b"{\n \"text\": \"x\", \"title\": \"own\",\n \"year\": 1, \"kind\": \"k\"}\n";
    let parse =
        |content: &[u8]| rag_ingest::parse_inline(SourceKind::Jsonl, &options, "my:uri", content, given, &COUNTER);
    let document = parse(content).expect("record");
    assert_eq!((document.uri.as_str(), document.title.as_deref()), ("my:uri", Some("given")));
    assert_eq!(document.published_at.as_deref(), Some("2020-01-01T00:00:00Z"));
    assert_eq!(Value::Object(document.metadata), json!({"year": 2, "kind": "k"}));
    let failure = parse(b"{\"text\": \"a\"}\n{\"text\": \"b\"}").expect_err("two records");
    assert_eq!((failure.uri.as_str(), failure.error.kind), ("my:uri", Kind::BadContent));
}

#[test]
fn a_key_that_is_too_long_fails_and_pages_stay_small() {
    let record = |key: &str| format!("{{\"id\": \"{key}\", \"text\": \"x\"}}\n");
    let long = "k".repeat(2048);
    let (_dir, spec) = source(format!("{}{}", record(&long), record(&"k".repeat(2049))).as_bytes());
    let (items, failures) = list(&spec).expect("listing");
    assert_eq!(items.len(), 1);
    assert_eq!(failures[0].uri, "c.jsonl#L2");
    assert_eq!(failures[0].error.message, "key of 2049 bytes is longer than 2048");
    // A thousand of these would be two megabytes: a page is full by its number of items as well as by its bytes.
    let many: String = (0..4000).map(|n| record(&format!("{n}{}", &long[..2000]))).collect();
    let (_dir, spec) = source(many.as_bytes());
    let mut largest = 0;
    rag_ingest::list(&spec, &mut |items, _| {
        largest = largest.max(items.iter().map(|i| i.uri.len()).sum::<usize>());
        Ok(())
    })
    .expect("listing");
    assert!((1 << 20..5 << 20).contains(&largest), "{largest}");
}

#[test]
fn what_goes_with_every_chunk_or_into_an_index_is_bounded_however_it_came() {
    let options = SourceOptions::defaults(SourceKind::Transcript);
    let none = serde_json::Map::new();
    let parse =
        |kind, content: &str| rag_ingest::parse_inline(kind, &options, "u", content.as_bytes(), &none, &COUNTER);
    let long = "k".repeat(2049);
    let recording = format!("{{\"id\": \"{long}\", \"segments\": [{{\"text\": \"hi\"}}]}}");
    for (kind, content) in [
        (SourceKind::Transcript, recording.as_str()),
        (SourceKind::Jsonl, &format!("{{\"id\": \"{long}\", \"text\": \"x\"}}")),
        (SourceKind::Forum, &format!("{{\"id\": \"{long}\", \"question\": \"x\"}}")),
        (SourceKind::Issues, &format!("{{\"id\": \"{long}\", \"title\": \"x\"}}")),
    ] {
        let error = parse(kind, content).expect_err(kind.name()).error;
        assert_eq!(
            (error.kind, error.message.as_str()),
            (Kind::LimitExceeded, "key of 2049 bytes is longer than 2048")
        );
    }
    for (length, kept) in [(100, true), (101, false)] {
        let language = "l".repeat(length);
        for (kind, content) in [
            (SourceKind::Markdown, format!("---\nlanguage: {language}\n---\ntext\n")),
            (SourceKind::Jsonl, format!("{{\"language\": \"{language}\", \"text\": \"x\"}}")),
            (SourceKind::Transcript, format!("WEBVTT\nLanguage: {language}\n\n00:01.000 --> 00:02.000\nhi\n")),
            (SourceKind::Transcript, format!("{{\"language\": \"{language}\", \"segments\": [{{\"text\": \"hi\"}}]}}")),
        ] {
            let document = parse(kind, &content).expect("a document");
            assert_eq!(document.language.is_some(), kept, "{content}");
            assert_eq!(document.metadata.get("language").is_some(), !kept, "{content}");
        }
    }
}

#[test]
fn records_in_utf_16_are_refused_as_what_they_are() {
    for (name, kind, text) in [
        ("a.csv", SourceKind::Jsonl, "id,text\n1,a\n"),
        ("a.tsv", SourceKind::Jsonl, "id\ttext\n1\ta\n"),
        ("a.jsonl", SourceKind::Jsonl, "{\"text\": \"a\"}\n"),
        ("a.json", SourceKind::Forum, "[{\"question\": \"a\"}]"),
    ] {
        for bytes in [u16::to_le_bytes, u16::to_be_bytes] {
            let content: Vec<u8> = format!("\u{FEFF}{text}").encode_utf16().flat_map(bytes).collect();
            let (_dir, file) = write(name, &content);
            let error = list(&support::spec(kind, &file, &json!({}))).expect_err(name);
            let message = format!("records of \"{name}\" are in UTF-16, which is not supported");
            assert_eq!((error.kind, error.message), (Kind::Unsupported, message));
            assert!(error.hint.is_some_and(|hint| hint.contains("UTF-8")));
        }
    }
}
