// SPDX-License-Identifier: PostgreSQL

//! The commands that show one stage: what they print for each format, and how they fail.
// Clippy's leave for tests does not reach the functions that tests share.
#![allow(clippy::expect_used, clippy::panic)]

mod support;

use serde_json::Value;
use std::collections::BTreeSet;
use std::io::Read;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use support::{model, models, onnxruntime, root};

/// A fixture of each format, and the media type that it is read as.
const FORMATS: &[(&str, &str)] = &[
    ("docs/harbour.md", "text/markdown"),
    ("code/shapes.rs", "text/x-rust"),
    ("code/shapes.sql", "application/sql"),
    ("config/service.yaml", "application/yaml"),
    ("config/tool.toml", "application/toml"),
    ("config/package.json", "application/json"),
    ("config/setup.cfg", "text/plain"),
    ("pdf/book.pdf", "application/pdf"),
    ("html/ferry.html", "text/html"),
    ("docx/tides.docx", "application/vnd.openxmlformats-officedocument.wordprocessingml.document"),
    ("epub/quay.epub", "application/epub+zip"),
    ("transcript/talk.srt", "application/x-subrip"),
    ("transcript/meeting.vtt", "text/vtt"),
    ("transcript/whisper.json", "application/json"),
];

fn run(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pg_rag_engine"));
    command.args(arguments).env_clear().stdin(Stdio::null()).output().expect("runs")
}

fn fixture(name: &str) -> String {
    root().join("tests/fixtures").join(name).to_string_lossy().into_owned()
}

/// The JSON of each line.
fn lines(output: &Output) -> Vec<Value> {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = std::str::from_utf8(&output.stdout).expect("UTF-8");
    text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

fn complaint(output: &Output) -> String {
    assert!(!output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn each_format_is_told_and_its_chunks_are_slices_of_its_text() {
    for (name, media_type) in FORMATS {
        let file = fixture(name);
        let documents = lines(&run(&["parse", "--words", &file]));
        let [document] = documents.as_slice() else { panic!("{name}: {} documents", documents.len()) };
        assert_eq!(document["media_type"], *media_type, "{name}");
        let hash = document["content_sha256"].as_str().expect("hash");
        assert!(hash.len() == 64 && hash.bytes().all(|b| b.is_ascii_hexdigit()), "{name}: {hash}");
        assert!(document.get("chunks").is_none(), "{name}");
        let text = document["text"].as_str().expect("text");
        let chunks = lines(&run(&["chunk", "--words", &file]));
        assert!(!chunks.is_empty(), "{name}");
        for chunk in &chunks {
            let at = |field: &str| usize::try_from(chunk["span"][field].as_u64().expect("offset")).expect("fits");
            assert_eq!(chunk["content"].as_str(), text.get(at("byte_start")..at("byte_end")), "{name}");
        }
    }
}

#[test]
fn the_same_file_prints_the_same_bytes() {
    for (name, _) in FORMATS {
        for command in ["parse", "chunk"] {
            let print = || run(&[command, "--words", &fixture(name)]).stdout;
            assert_eq!(print(), print(), "{command} {name}");
        }
    }
}

/// Good and bad documents of each file, as written into it.
#[test]
fn files_of_many_documents_print_a_line_for_each() {
    for (name, kind, good, bad) in [
        ("csv/notes.csv", Some("jsonl"), 4, 2),
        ("forum/threads.json", Some("forum"), 2, 2),
        ("issues/gitlab.jsonl", Some("issues"), 2, 0),
        ("transcript/meetings.jsonl", Some("transcript"), 2, 0),
        ("archive/plain.zip", Some("zip"), 8, 0),
        ("docs", Some("markdown"), 2, 0),
        // Told by their names and what is in them.
        ("csv/notes.csv", None, 4, 2),
        ("csv/notes-semicolon.csv", None, 2, 0),
        ("csv/notes.tsv", None, 2, 0),
        ("feed/tides.rss", None, 3, 0),
        ("feed/lamps.atom", None, 2, 0),
        ("feed/ropes.rdf", None, 2, 0),
        ("feed/sails.json", None, 3, 0),
    ] {
        let file = fixture(name);
        let mut arguments = vec!["parse", "--words"];
        arguments.extend(kind.iter().flat_map(|kind| ["--kind", kind]));
        arguments.push(&file);
        let output = run(&arguments);
        assert_eq!(output.status.success(), bad == 0, "{name}");
        let text = std::str::from_utf8(&output.stdout).expect("UTF-8");
        let documents = text.lines().map(|line| serde_json::from_str(line).expect("JSON"));
        let uris: BTreeSet<String> = documents.filter_map(|d: Value| Some(d["uri"].as_str()?.to_owned())).collect();
        assert_eq!((text.lines().count(), uris.len()), (good, good), "{name}: {uris:?}");
        let complaints = String::from_utf8_lossy(&output.stderr);
        let summary = format!("{bad} documents could not be read");
        assert!(bad == 0 || complaints.contains(&summary), "{name}: {complaints}");
    }
}

#[test]
fn a_configuration_is_not_taken_for_a_feed() {
    let folder = tempfile::tempdir().expect("folder");
    for (name, text, media_type) in [
        ("a.json", r#"{"version": "1.1", "title": "t", "items": []}"#, "application/json"),
        ("a.xml", "<project><item>a</item></project>", "text/plain"),
        ("a.csv.md", "# A\n", "text/markdown"),
    ] {
        let path = folder.path().join(name);
        std::fs::write(&path, text).expect("file");
        let documents = lines(&run(&["parse", "--words", &path.to_string_lossy()]));
        assert_eq!(documents.len(), 1, "{name}");
        assert_eq!(documents[0]["media_type"], media_type, "{name}");
    }
}

#[test]
fn a_failure_names_its_document_and_the_others_are_printed() {
    let folder = tempfile::tempdir().expect("folder");
    std::fs::write(folder.path().join("a.md"), "# A\n\nText.").expect("file");
    std::fs::write(folder.path().join("b.md"), "x".repeat(2000)).expect("file");
    let path = folder.path().to_string_lossy().into_owned();
    let limits = r#"{"limits": {"max_document_bytes": 1000}}"#;
    let output = run(&["parse", "--words", "--kind", "markdown", "--options", limits, &path]);
    let text = complaint(&output);
    assert!(text.contains("b.md: document of 2000 bytes is larger than max_document_bytes 1000"), "{text}");
    assert!(text.contains("1 documents could not be read"), "{text}");
    assert_eq!(output.stdout.iter().filter(|b| **b == b'\n').count(), 1);
}

#[test]
fn what_cannot_be_done_is_said() {
    let missing = fixture("docs/none.md");
    let docs = fixture("docs");
    let harbour = fixture("docs/harbour.md");
    for (arguments, expected) in [
        (vec!["parse", "--words", missing.as_str()], "none.md"),
        (vec!["parse", "--words", docs.as_str()], "is a folder: name its --kind"),
        (vec!["parse", "--words", "/dev/zero"], "\"/dev/zero\" is neither a file nor a folder"),
        (vec!["parse", "--words", "--kind", "markdwon", harbour.as_str()], "markdwon"),
        (vec!["parse", "--words", "--options", "{", harbour.as_str()], "is not JSON"),
        (vec!["parse", "--words", "--options", r#"{"chunk_token": 3}"#, harbour.as_str()], "chunk_token"),
        (vec!["chunk", "--models", "/nowhere", harbour.as_str()], "count --words"),
        (vec!["models", "--models", "/nowhere"], "/nowhere"),
    ] {
        let text = complaint(&run(&arguments));
        assert!(text.contains(expected), "{arguments:?}: {text}");
        assert!(!text.contains("panicked"), "{text}");
    }
}

#[test]
fn a_reader_that_has_seen_enough_is_no_error() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_pg_rag_engine"))
        .args(["chunk", "--words", "--kind", "code"])
        .arg(root().join("crates/ingest/src"))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("runs");
    let mut some = [0; 100];
    let mut output = child.stdout.take().expect("output");
    output.read_exact(&mut some).expect("some output");
    drop(output);
    let ended = child.wait_with_output().expect("ends");
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
}

#[test]
fn a_model_is_described_and_embeds() {
    if model("all-MiniLM-L6-v2").is_none() {
        return;
    }
    let path = |path: &Path| path.to_string_lossy().into_owned();
    let (models, runtime) = (path(&models()), path(&onnxruntime()));
    let places = ["--models", models.as_str(), "--onnxruntime", runtime.as_str()];
    let described = lines(&run(&[["models"].as_slice(), &places].concat()));
    let one = described.iter().find(|m| m["name"] == "all-MiniLM-L6-v2").expect("described");
    assert_eq!((&one["dimensions"], &one["max_tokens"]), (&384.into(), &256.into()));

    let texts = ["--model", "all-MiniLM-L6-v2", "That is a happy person", "That is a happy dog"];
    let embedded = lines(&run(&[["embed"].as_slice(), &places, &texts].concat()));
    let vector = |index: usize| -> Vec<f64> {
        embedded[index]["embedding"].as_array().expect("vector").iter().filter_map(Value::as_f64).collect()
    };
    assert_eq!(embedded.iter().map(|e| e["text"].as_str()).collect::<Vec<_>>(), [Some(texts[2]), Some(texts[3])]);
    let cosine: f64 = vector(0).iter().zip(vector(1)).map(|(a, b)| a * b).sum();
    // Of the model's reference implementation.
    assert!((cosine - 0.695).abs() < 0.002, "{cosine}");
}
