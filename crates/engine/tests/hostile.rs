// SPDX-License-Identifier: PostgreSQL

//! What a hostile document costs: itself.
//!
//! Most of these tests order workers to misbehave (see `faults.rs`), which a debug build obeys, because no document is
//! known that makes the parsers of today crash, run code or write where they should not. Documents that strain a release
//! build do exist, and the last tests use them: a long text that takes longer than its `max_seconds`, a record of many
//! small arrays that takes more memory than a worker may have, and headings that repeat in so many chunks that the
//! document grows beyond what it may. With the default of 4 GB for a worker, the record must have some 48 MB.
// Clippy's leave for tests does not reach the functions that tests share.
#![allow(clippy::expect_used, clippy::panic)]

mod support;

use rag_core::Kind;
use rag_core::protocol::{Reply, Request};
use rag_core::source::{Item, SourceKind, SourceOptions, SourceSpec};
use rustix::process::Signal;
use serde_json::json;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use support::reading::{children, folder, is_ended, list, read, signal, source, status};
use support::{Engine, model};

/// What each fault is reported as: kind and part of the message; `{doing}` and `{worker}` depend on the role.
const FAULTS: &[(&str, Kind, &str)] = &[
    ("bulk", Kind::BadContent, "the answer of a worker cannot be understood"),
    ("cpu", Kind::LimitExceeded, "{doing} took longer than 3 s"),
    ("crash", Kind::Internal, "{worker} was killed while {doing}"),
    ("exec", Kind::Forbidden, "executing was denied"),
    ("flood", Kind::BadContent, "the worker that was {doing} gave another answer than was asked for"),
    ("fork", Kind::Forbidden, "forking was denied"),
    ("garbage", Kind::LimitExceeded, "{doing} gave more than "),
    ("hang", Kind::LimitExceeded, "{doing} took longer than 3 s"),
    ("liar", Kind::BadContent, "the worker that was {doing} gave another answer than was asked for"),
    ("memory", Kind::LimitExceeded, "{worker} ran out of memory while {doing}"),
    ("network", Kind::Forbidden, "connecting was denied"),
    ("panic", Kind::Internal, "panicked; the server's log has the place"),
    ("read", Kind::Forbidden, "reading was denied"),
    ("thread", Kind::Forbidden, "threading was denied"),
    ("write", Kind::Forbidden, "writing was denied"),
];

fn can_misbehave() -> bool {
    let able = model("all-MiniLM-L6-v2").is_some() && cfg!(debug_assertions);
    if !able {
        eprintln!("skipped: needs the model and a debug build");
    }
    able
}

/// Every fault, between documents that are fine, costs its document only.
fn all_faults(role: &str, worker: &str, verb: &str) {
    let names: Vec<String> = FAULTS.iter().map(|(fault, ..)| format!("fault-{fault}.md")).collect();
    let mut files: Vec<&str> = names.iter().map(String::as_str).collect();
    files.extend(["a.md", "fault.md", "z.md"]);
    let folder = folder(&files);
    let engine = Engine::start(&[("RAG_ENGINE_TEST_FAULT", role)], &["--parse-memory", "1024"]);
    let mut client = engine.client();
    let source = source(folder.path(), &json!({ "max_seconds": 3 }));
    let (items, _) = list(&mut client, &source);
    assert_eq!(items.len(), files.len());
    let good: Vec<Item> = items.iter().filter(|i| !i.uri.contains("fault-")).cloned().collect();
    assert!(read(&mut client, &source, &good).iter().all(Result::is_ok));
    let before = status(&mut client);
    let uris = items.iter().map(|i| i.uri.clone());
    let mut results: BTreeMap<String, _> = uris.zip(read(&mut client, &source, &items)).collect();
    for (fault, kind, message) in FAULTS {
        let uri = format!("fault-{fault}.md");
        let failure = results.remove(&uri).expect("a reply for each item").expect_err(&uri);
        let message = message.replace("{worker}", worker).replace("{doing}", &format!("{verb} \"{uri}\""));
        assert_eq!((&failure.uri, failure.error.kind), (&uri, *kind), "{:?}", failure.error);
        assert!(failure.error.message.contains(&message), "{message}: {:?}", failure.error);
    }
    // The others arrived, from the same engine, which holds no more than before and reads on.
    for (uri, title) in results {
        assert_eq!(title.expect("a document"), format!("About {uri}"));
    }
    let after = status(&mut client);
    assert_eq!(before.pid, after.pid);
    assert!(after.memory < before.memory + (100 << 20), "from {} to {} bytes", before.memory, after.memory);
    assert!(read(&mut client, &source, &good).iter().all(Result::is_ok));
    assert!(!std::path::Path::new("/tmp/pg_rag-fault-write").exists());
}

#[test]
fn a_parse_worker_that_was_taken_over_costs_its_document_only() {
    if can_misbehave() {
        all_faults("parse", "parse worker", "parsing");
    }
}

#[test]
fn an_acquire_worker_that_was_taken_over_costs_its_document_only() {
    if can_misbehave() {
        all_faults("acquire", "acquire worker", "reading");
    }
}

#[test]
fn a_listing_that_says_too_much_fails_and_the_engine_holds_little() {
    if !can_misbehave() {
        return;
    }
    let engine = Engine::start(&[("RAG_ENGINE_TEST_FAULT", "acquire")], &["--parse-memory", "1024"]);
    let mut client = engine.client();
    let before = status(&mut client);
    let parent = tempfile::tempdir().expect("folder");
    for (fault, kind, message, pages) in [
        ("flood", Kind::LimitExceeded, "listing gave more documents than max_documents 5000", 5),
        ("garbage", Kind::LimitExceeded, "gave more than 33554432 bytes", 0),
        ("bulk", Kind::BadContent, "the answer of a worker cannot be understood", 0),
        ("crash", Kind::Internal, "acquire worker was killed while listing", 0),
        ("memory", Kind::LimitExceeded, "acquire worker ran out of memory while listing", 0),
        ("panic", Kind::Internal, "reading panicked", 0),
        ("liar", Kind::BadContent, "gave another answer than was asked for", 0),
    ] {
        let place = parent.path().join(format!("fault-{fault}"));
        std::fs::create_dir(&place).expect("folder");
        let source = source(&place, &json!({ "max_documents": 5000 }));
        let mut replies = client.ask_all(&Request::List { source });
        let Some(Reply::Error(error)) = replies.pop() else { panic!("{fault}: no error") };
        assert_eq!((error.kind, replies.len()), (kind, pages), "{fault}: {error:?}");
        assert!(error.message.contains(message), "{fault}: {error:?}");
    }
    let after = status(&mut client);
    assert_eq!(before.pid, after.pid);
    assert!(after.memory < before.memory + (100 << 20), "from {} to {} bytes", before.memory, after.memory);
}

#[test]
fn processor_time_ends_even_while_the_engine_is_stopped() {
    if !can_misbehave() {
        return;
    }
    let folder = folder(&["a.md", "fault-cpu.md"]);
    let engine = Engine::start(&[("RAG_ENGINE_TEST_FAULT", "parse")], &["--parse-workers", "1"]);
    let mut client = engine.client();
    let source = source(folder.path(), &json!({ "max_seconds": 3 }));
    let (items, _) = list(&mut client, &source);
    assert!(read(&mut client, &source, &items[..1]).iter().all(Result::is_ok));
    let workers = children(&engine);
    let model = model("all-MiniLM-L6-v2").expect("model");
    client.send(&Request::Read { source: source.clone(), items: items[1..].to_vec(), model });
    std::thread::sleep(Duration::from_millis(500));
    signal(engine.child.id(), Signal::STOP);
    let started = Instant::now();
    while !workers.iter().any(|pid| is_ended(*pid)) {
        assert!(started.elapsed() < Duration::from_secs(120), "nothing ended the worker");
        std::thread::sleep(Duration::from_millis(100));
    }
    signal(engine.child.id(), Signal::CONT);
    let answer = client.receive();
    let Reply::Document(Err(failure)) = answer.reply else { panic!("no failure: {answer:?}") };
    assert_eq!(failure.error.message, "parse worker used too much processor time while parsing \"fault-cpu.md\"");
    assert!(read(&mut client, &source, &items[..1]).iter().all(Result::is_ok));
}

#[test]
fn workers_are_confined_and_limited() {
    if model("all-MiniLM-L6-v2").is_none() {
        return;
    }
    let folder = folder(&["a.md"]);
    let engine = Engine::start(&[], &["--parse-memory", "2048"]);
    let mut client = engine.client();
    let source = source(folder.path(), &json!({ "max_seconds": 7 }));
    let (items, _) = list(&mut client, &source);
    assert!(read(&mut client, &source, &items).iter().all(Result::is_ok));
    let level = status(&mut client).sandbox;
    let file = |pid: u32, name: &str| std::fs::read_to_string(format!("/proc/{pid}/{name}")).expect("readable");
    let mut names = Vec::new();
    for pid in children(&engine) {
        names.push(file(pid, "comm").trim().to_owned());
        let limits = file(pid, "limits");
        let limit = |name: &str| {
            let line = limits.lines().find_map(|line| line.strip_prefix(name)).expect(name);
            let mut words = line.split_whitespace().map(str::to_owned);
            (words.next().expect("soft"), words.next().expect("hard"))
        };
        let both = |n: &str| (n.to_owned(), n.to_owned());
        assert_eq!(limit("Max core file size"), both("0"));
        assert_eq!(limit("Max file size"), both("0"));
        assert_eq!(limit("Max address space"), both("2147483648"));
        // Time that it had used, the seven seconds and two more.
        let (soft, hard) = limit("Max cpu time");
        assert_eq!(hard, "86400");
        assert!((9..60).contains(&soft.parse::<u64>().expect("seconds")), "{soft}");
        let state = file(pid, "status");
        let says = |line: &str| state.lines().any(|l| l == line);
        assert_eq!(says("Seccomp:\t2"), level.contains("seccomp"), "{state}");
        assert!(says("NoNewPrivs:\t1"), "{state}");
    }
    names.sort();
    assert_eq!(names, ["pg_rag_acquire", "pg_rag_parse"]);
    match std::fs::read_to_string("/sys/kernel/security/lsm") {
        Ok(modules) => assert_eq!(modules.contains("landlock"), level.starts_with("landlock "), "{level}, {modules}"),
        Err(e) => eprintln!("not compared with what the kernel has, which cannot be read: {level}, {e}"),
    }
}

#[test]
fn an_allowed_folder_may_be_replaced_while_workers_live() {
    if model("all-MiniLM-L6-v2").is_none() {
        return;
    }
    let parent = folder(&[]);
    let place = parent.path().join("place");
    let engine = Engine::start(&[], &[]);
    let mut client = engine.client();
    let source = source(&place, &json!({}));
    for round in ["first", "second"] {
        std::fs::create_dir(&place).expect("folder");
        std::fs::write(place.join(format!("{round}.md")), format!("# {round}\n")).expect("file");
        let (items, failures) = list(&mut client, &source);
        assert_eq!((items.len(), failures), (1, Vec::new()));
        assert_eq!(read(&mut client, &source, &items), [Ok(round.to_owned())]);
        std::fs::rename(&place, parent.path().join(round)).expect("renames");
    }
}

#[test]
fn a_model_whose_tokenizer_cannot_be_loaded_fails_as_a_whole() {
    let Some(mut spec) = model("all-MiniLM-L6-v2") else { return };
    let folder = folder(&["a.md"]);
    let engine = Engine::start(&[], &[]);
    let mut client = engine.client();
    let source = source(folder.path(), &json!({}));
    let (items, _) = list(&mut client, &source);
    spec.max_tokens = 1;
    let reply = client.ask(&Request::Read { source, items, model: spec });
    assert!(
        matches!(&reply, Reply::Error(e) if e.message == "a window of 1 tokens leaves no room for text"),
        "{reply:?}"
    );
}

/// A source of documents that were made to hurt, and the engine that reads them.
fn read_hostile(kind: SourceKind, file: &str, content: &str, options: &serde_json::Value) -> Vec<String> {
    let folder = tempfile::tempdir().expect("folder");
    std::fs::write(folder.path().join(file), content).expect("file");
    if kind == SourceKind::Markdown {
        std::fs::write(folder.path().join("z.md"), "# Fine\n").expect("file");
    }
    let engine = Engine::start(&[], &["--parse-memory", "768"]);
    let mut client = engine.client();
    let place = if kind == SourceKind::Jsonl { folder.path().join(file) } else { folder.path().to_owned() };
    let source = SourceSpec {
        kind,
        location: place.to_str().expect("UTF-8").to_owned(),
        options: SourceOptions::parse(kind, options).expect("options"),
        allowed_paths: vec![folder.path().to_str().expect("UTF-8").to_owned()],
        allowed_hosts: Vec::new(),
        seen: None,
    };
    let (items, failures) = list(&mut client, &source);
    assert_eq!((items.len(), failures), (2, Vec::new()));
    let results = read(&mut client, &source, &items);
    assert_eq!(status(&mut client).pid, engine.child.id());
    results.into_iter().map(|r| r.unwrap_or_else(|failure| failure.error.message)).collect()
}

#[test]
fn a_long_text_takes_no_longer_than_it_may() {
    if model("all-MiniLM-L6-v2").is_some() {
        let content = "word ".repeat(if cfg!(debug_assertions) { 1 << 20 } else { 8 << 20 });
        let results = read_hostile(SourceKind::Markdown, "a.md", &content, &json!({ "limits": { "max_seconds": 1 } }));
        assert_eq!(results, ["parsing \"a.md\" took longer than 1 s", "Fine"]);
    }
}

#[test]
fn a_record_takes_no_more_memory_than_it_may() {
    if model("all-MiniLM-L6-v2").is_some() {
        // Four bytes of text take some four hundred of memory.
        let hostile = format!("{{\"text\": \"x\", \"id\": \"h\", \"m\": [{}0]}}\n", "[0],".repeat(3 << 20));
        let content = format!("{hostile}{{\"text\": \"x\", \"id\": \"f\", \"title\": \"Fine\"}}\n");
        let results = read_hostile(SourceKind::Jsonl, "a.jsonl", &content, &json!({}));
        assert_eq!(results, ["parse worker ran out of memory while parsing \"a.jsonl#h\"", "Fine"]);
    }
}

#[test]
fn a_record_is_nested_no_deeper_than_it_may() {
    if model("all-MiniLM-L6-v2").is_some() {
        let (open, close) = ("[".repeat(1 << 20), "]".repeat(1 << 20));
        let hostile = format!("{{\"text\": \"x\", \"id\": \"h\", \"m\": {open}{close}}}\n");
        let content = format!("{hostile}{{\"text\": \"x\", \"id\": \"f\", \"title\": \"Fine\"}}\n");
        let results = read_hostile(SourceKind::Jsonl, "a.jsonl", &content, &json!({}));
        assert!(results[0].starts_with("record is not valid JSON: "), "{results:?}");
        assert_eq!(results[1], "Fine");
    }
}

#[test]
fn a_document_becomes_no_larger_than_it_may() {
    if model("all-MiniLM-L6-v2").is_some() {
        // Ten kilobytes of headings stand above each of two thousand chunks.
        let above: String = (1..=5).map(|level| format!("{} {}\n", "#".repeat(level), "🦀".repeat(500))).collect();
        let content = format!("{above}{}", "###### a\n".repeat(2200));
        // Without headings in what is embedded, nobody has to count their tokens.
        let options = json!({ "embed_template": "{content}", "limits": { "max_seconds": 600 } });
        let results = read_hostile(SourceKind::Markdown, "a.md", &content, &options);
        let limit = (16 << 20) + 128 * content.len();
        assert_eq!(results, [format!("parsing \"a.md\" gave more than {limit} bytes"), "Fine".to_owned()]);
    }
}
