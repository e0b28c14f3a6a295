// SPDX-License-Identifier: PostgreSQL

//! Reading sources through parse workers: what they return, and what they cost when a document misbehaves.
// Clippy's leave for tests does not reach the functions that tests share.
#![allow(clippy::expect_used, clippy::panic)]

mod support;

use rag_core::Kind;
use rag_core::protocol::{Reply, Request};
use rag_core::source::{Failure, Item, SourceKind, SourceOptions, SourceSpec};
use serde_json::{Map, json};
use std::path::Path;
use std::time::{Duration, Instant};
use support::{Client, Engine, model};

/// Makes workers misbehave over documents named `fault-…`; only a debug build obeys.
const FAULTS: &[(&str, &str)] = &[("RAG_ENGINE_TEST_FAULT", "1")];

fn source(folder: &Path, limits: &serde_json::Value) -> SourceSpec {
    let options = SourceOptions::parse(SourceKind::Markdown, &json!({ "limits": limits })).expect("options");
    let location = folder.to_str().expect("UTF-8").to_owned();
    SourceSpec { kind: SourceKind::Markdown, allowed_paths: vec![location.clone()], location, options }
}

fn folder(files: &[&str]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("folder");
    for name in files {
        std::fs::write(folder.path().join(name), format!("# About {name}\n\nA paragraph.\n")).expect("file");
    }
    folder
}

fn list(client: &mut Client, source: &SourceSpec) -> (Vec<Item>, Vec<Failure>) {
    let mut all = (Vec::new(), Vec::new());
    for reply in client.ask_all(&Request::List { source: source.clone() }) {
        let Reply::Items { items, failures } = reply else { panic!("no items: {reply:?}") };
        all.0.extend(items);
        all.1.extend(failures);
    }
    all
}

/// Title or failure of each item.
fn read(client: &mut Client, source: &SourceSpec, items: &[Item]) -> Vec<Result<String, Failure>> {
    let model = model("all-MiniLM-L6-v2").expect("model");
    let request = Request::Read { source: source.clone(), items: items.to_vec(), model };
    let title = |reply| match reply {
        Reply::Document(Ok(document)) => Ok(document.title.clone().unwrap_or_default()),
        Reply::Document(Err(failure)) => Err(failure),
        other => panic!("no document: {other:?}"),
    };
    client.ask_all(&request).into_iter().map(title).collect()
}

fn parse_workers(client: &mut Client) -> u32 {
    match client.ask(&Request::Status) {
        Reply::Status(status) => status.parse_workers,
        other => panic!("no status: {other:?}"),
    }
}

/// Process ids of the parse workers of an engine.
fn children(engine: &Engine) -> Vec<u32> {
    let mut found = Vec::new();
    for task in std::fs::read_dir(format!("/proc/{}/task", engine.child.id())).expect("tasks") {
        let path = task.expect("task").path().join("children");
        let list = std::fs::read_to_string(path).unwrap_or_default();
        found.extend(list.split_whitespace().filter_map(|pid| pid.parse::<u32>().ok()));
    }
    found
}

#[test]
fn a_folder_is_listed_and_read_in_order() {
    let Some(spec) = model("all-MiniLM-L6-v2") else { return };
    let names: Vec<String> = (0..23).map(|n| format!("file-{n:02}.md")).collect();
    let folder = folder(&names.iter().map(String::as_str).collect::<Vec<_>>());
    let engine = Engine::start(&[], &[]);
    let mut client = engine.client();
    let source = source(folder.path(), &json!({}));
    let (items, failures) = list(&mut client, &source);
    assert_eq!((items.len(), failures.len()), (23, 0));
    let titles: Vec<String> = read(&mut client, &source, &items).into_iter().map(|t| t.expect("document")).collect();
    assert_eq!(titles, names.iter().map(|n| format!("About {n}")).collect::<Vec<_>>());
    assert!((1..=2).contains(&parse_workers(&mut client)));
    let inline = Request::Parse {
        kind: SourceKind::Markdown,
        options: SourceOptions::defaults(SourceKind::Markdown),
        uri: "note".into(),
        content: b"# Title\n\nText of it.".to_vec(),
        metadata: Map::new(),
        model: spec,
    };
    let Reply::Document(Ok(document)) = client.ask(&inline) else { panic!("no document") };
    assert_eq!((document.uri.as_str(), document.title.as_deref()), ("note", Some("Title")));
    assert!(!document.chunks.is_empty() && document.chunks[0].token_count > 0);
}

#[test]
fn a_location_that_is_not_allowed_fails_as_a_whole() {
    let folder = folder(&["a.md"]);
    let engine = Engine::start(&[], &[]);
    let mut client = engine.client();
    let source = SourceSpec { allowed_paths: vec!["/nowhere".into()], ..source(folder.path(), &json!({})) };
    let replies = client.ask_all(&Request::List { source: source.clone() });
    assert!(matches!(replies.last(), Some(Reply::Error(e)) if e.kind == Kind::Forbidden), "{replies:?}");
    if let Some(model) = model("all-MiniLM-L6-v2") {
        let reply = client.ask(&Request::Read { source, items: Vec::new(), model });
        assert!(matches!(reply, Reply::Error(e) if e.kind == Kind::InvalidArgument));
    }
}

#[test]
fn a_hostile_document_costs_itself_only() {
    if model("all-MiniLM-L6-v2").is_none() || cfg!(not(debug_assertions)) {
        eprintln!("skipped: needs the model and a debug build");
        return;
    }
    let files = ["a.md", "fault-crash.md", "fault-hang.md", "fault-memory.md", "fault-panic.md", "z.md"];
    let folder = folder(&files);
    let engine = Engine::start(FAULTS, &["--parse-memory", "1024"]);
    let mut client = engine.client();
    let source = source(folder.path(), &json!({ "max_seconds": 3 }));
    let (items, _) = list(&mut client, &source);
    let mut results = read(&mut client, &source, &items).into_iter();
    let mut next = || results.next().expect("one reply for each item");
    assert_eq!(next().expect("a document"), "About a.md");
    for (name, kind, message) in [
        ("fault-crash.md", Kind::Internal, "parse worker was killed while reading"),
        ("fault-hang.md", Kind::LimitExceeded, "took longer than 3 s"),
        ("fault-memory.md", Kind::LimitExceeded, "parse worker ran out of memory while reading"),
        ("fault-panic.md", Kind::Internal, "parsing panicked"),
    ] {
        let failure = next().expect_err(name);
        assert_eq!((failure.uri.as_str(), failure.error.kind), (name, kind));
        assert!(failure.error.message.contains(message), "{failure:?}");
    }
    assert_eq!(next().expect("a document"), "About z.md");
    // The engine is the same, and reads on.
    let good: Vec<Item> = items.iter().filter(|i| !i.uri.contains("fault")).cloned().collect();
    assert!(read(&mut client, &source, &good).iter().all(Result::is_ok));
}

#[test]
fn a_worker_that_is_killed_is_replaced_and_none_outlives_the_engine() {
    if model("all-MiniLM-L6-v2").is_none() || cfg!(not(debug_assertions)) {
        eprintln!("skipped: needs the model and a debug build");
        return;
    }
    let folder = folder(&["fault-hang.md", "good.md"]);
    let mut engine = Engine::start(FAULTS, &["--parse-workers", "1"]);
    let mut client = engine.client();
    let source = source(folder.path(), &json!({}));
    let (items, _) = list(&mut client, &source);
    let victims = children(&engine);
    assert_eq!(victims.len(), 1);
    // Killed while idle: nobody's loss.
    kill(victims[0]);
    assert!(read(&mut client, &source, &items[1..]).iter().all(Result::is_ok));
    // Killed while busy: one document's loss.
    let model = model("all-MiniLM-L6-v2").expect("model");
    client.send(&Request::Read { source: source.clone(), items: items.clone(), model });
    std::thread::sleep(Duration::from_millis(500));
    children(&engine).into_iter().for_each(kill);
    let (first, second) = (client.receive(), client.receive());
    assert!(matches!(first.reply, Reply::Document(Err(f)) if f.uri == "fault-hang.md"));
    assert!(matches!(second.reply, Reply::Document(Ok(_))) && second.last);
    // A peer that leaves takes its work along: the one worker is free again at once.
    let mut leaving = engine.client();
    let request = Request::Read {
        source: source.clone(),
        items: items[..1].to_vec(),
        model: support::model("all-MiniLM-L6-v2").expect("model"),
    };
    leaving.send(&request);
    std::thread::sleep(Duration::from_millis(500));
    drop(leaving);
    let started = Instant::now();
    assert!(read(&mut client, &source, &items[1..]).iter().all(Result::is_ok));
    assert!(started.elapsed() < Duration::from_secs(10), "waited {:?}", started.elapsed());
    let left = children(&engine);
    assert!(!left.is_empty());
    engine.child.kill().expect("kills");
    engine.child.wait().expect("ends");
    std::thread::sleep(Duration::from_millis(300));
    assert!(left.into_iter().all(is_ended), "a worker outlived its engine");
}

#[test]
fn workers_inherit_no_socket() {
    if model("all-MiniLM-L6-v2").is_none() {
        return;
    }
    let folder = folder(&["a.md"]);
    let engine = Engine::start(&[], &[]);
    let mut client = engine.client();
    list(&mut client, &source(folder.path(), &json!({})));
    for child in children(&engine) {
        let mut sockets: Vec<u32> = std::fs::read_dir(format!("/proc/{child}/fd"))
            .expect("descriptors")
            .map(|e| e.expect("entry").path())
            .filter(|p| std::fs::read_link(p).is_ok_and(|to| to.to_string_lossy().starts_with("socket:")))
            .filter_map(|p| p.file_name()?.to_str()?.parse().ok())
            .collect();
        sockets.sort_unstable();
        // What the worker made of its standard input and output; these and other files come from whoever runs the tests.
        sockets.retain(|n| *n > 2);
        assert_eq!(sockets, [3, 4]);
    }
}

fn kill(pid: u32) {
    let pid = rustix::process::Pid::from_raw(i32::try_from(pid).expect("pid")).expect("pid");
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).expect("kills");
}

/// Gone, or a zombie whose new parent has not looked yet.
fn is_ended(pid: u32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat")).map_or(true, |stat| stat.contains(") Z "))
}
