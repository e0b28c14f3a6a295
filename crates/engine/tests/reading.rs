// SPDX-License-Identifier: PostgreSQL

//! Reading sources through workers: what they return, and how workers come and go.
// Clippy's leave for tests does not reach the functions that tests share.
#![allow(clippy::expect_used, clippy::panic)]

mod support;

use rag_core::Kind;
use rag_core::protocol::{Reply, Request};
use rag_core::source::{SourceKind, SourceOptions, SourceSpec};
use rustix::process::Signal;
use serde_json::{Map, json};
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};
use support::reading::{children, folder, is_ended, list, read, signal, source, status};
use support::{Engine, model};

/// Makes parse workers misbehave over documents named `fault-…`; only a debug build obeys.
const FAULTS: &[(&str, &str)] = &[("RAG_ENGINE_TEST_FAULT", "parse")];

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
    assert!((1..=2).contains(&status(&mut client).parse_workers));
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
    // What was allowed and is not there is missing, not forbidden.
    for location in ["/nowhere", "/nowhere/at/all"] {
        let missing = SourceSpec { location: location.to_owned(), ..source.clone() };
        let replies = client.ask_all(&Request::List { source: missing });
        assert!(matches!(replies.last(), Some(Reply::Error(e)) if e.kind == Kind::FileMissing), "{replies:?}");
    }
    if let Some(model) = model("all-MiniLM-L6-v2") {
        let reply = client.ask(&Request::Read { source, items: Vec::new(), model });
        assert!(matches!(reply, Reply::Error(e) if e.kind == Kind::InvalidArgument));
    }
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
    signal(victims[0], Signal::KILL);
    assert!(read(&mut client, &source, &items[1..]).iter().all(Result::is_ok));
    // Killed while busy: one document's loss.
    let model = model("all-MiniLM-L6-v2").expect("model");
    client.send(&Request::Read { source: source.clone(), items: items.clone(), model });
    std::thread::sleep(Duration::from_millis(500));
    children(&engine).into_iter().for_each(|pid| signal(pid, Signal::KILL));
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
fn workers_inherit_nothing() {
    if model("all-MiniLM-L6-v2").is_none() {
        return;
    }
    let folder = folder(&["a.md"]);
    // The engine gets one descriptor more than it should, as it may from whoever starts it.
    let (stray, _other) = std::os::unix::net::UnixStream::pair().expect("pair");
    rustix::io::fcntl_setfd(&stray, rustix::io::FdFlags::empty()).expect("fcntl");
    let stray_in = |pid: u32| std::fs::read_link(format!("/proc/{pid}/fd/{}", stray.as_raw_fd())).ok();
    let engine = Engine::start(&[], &[]);
    assert!(stray_in(engine.child.id()).is_some_and(|to| to.to_string_lossy().starts_with("socket:")));
    let mut client = engine.client();
    list(&mut client, &source(folder.path(), &json!({})));
    let workers = children(&engine);
    assert!(!workers.is_empty());
    for worker in workers {
        let open = std::fs::read_dir(format!("/proc/{worker}/fd")).expect("descriptors");
        let mut open: Vec<u32> =
            open.filter_map(|e| e.expect("entry").file_name().to_str()?.parse().ok()).filter(|n| *n > 2).collect();
        open.sort_unstable();
        // What the worker made of its standard input and output.
        assert_eq!(open, [3, 4]);
    }
}

/// A server on this machine that answers every request with one page.
fn one_page() -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("port");
    let address = listener.local_addr().expect("address").to_string();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut request = [0; 4096];
            let _ = stream.read(&mut request);
            let body = "# Served\n\nBy this machine.\n";
            let head = format!("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {}\r\n\r\n", body.len());
            let _ = stream.write_all(format!("{head}{body}").as_bytes());
        }
    });
    address
}

#[test]
fn a_page_is_fetched_by_a_worker_that_may_read_no_file() {
    if model("all-MiniLM-L6-v2").is_none() {
        return;
    }
    let address = one_page();
    let engine = Engine::start(&[], &[]);
    let mut client = engine.client();
    let place = std::path::Path::new("/");
    let at = |host: &str, allowed: &str| SourceSpec {
        location: format!("http://{host}/page"),
        allowed_hosts: vec![allowed.to_owned()],
        ..source(place, &json!({}))
    };
    let page = at(&address, &address);
    let (items, failures) = list(&mut client, &page);
    assert_eq!((items.len(), failures.len()), (1, 0));
    assert_eq!(read(&mut client, &page, &items), [Ok("Served".to_owned())]);
    // Names are resolved in there, and what they lead to is looked at.
    let port = address.rsplit_once(':').expect("port").1;
    let named = at(&format!("localhost:{port}"), &format!("localhost:{port}"));
    let Reply::Error(error) = client.ask(&Request::List { source: named }) else { panic!("no error") };
    assert_eq!(error.kind, Kind::Forbidden);
    assert!(error.message.starts_with("\"localhost\" has the address "), "{error}");
    let Reply::Error(error) = client.ask(&Request::List { source: at(&address, "example.org") }) else {
        panic!("no error")
    };
    assert_eq!(error.message, format!("host \"127.0.0.1\" is not allowed at port {port}"));
}
