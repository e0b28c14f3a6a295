// SPDX-License-Identifier: PostgreSQL

//! Repositories at a URL: cloned by one worker, read by another, and where their folders go.
// Clippy's leave for tests does not reach the functions that tests share.
#![allow(clippy::expect_used, clippy::panic)]

#[path = "../../ingest/tests/git_server/mod.rs"]
mod git_server;
mod support;

use git_server::{Server, commit, git};
use rag_core::protocol::{Reply, Request};
use rag_core::source::{Item, Place, SourceSpec};
use rag_core::{Error, Kind};
use serde_json::json;
use std::path::Path;
use std::time::{Duration, Instant};
use support::reading::{children, is_ended, list, read, status};
use support::{Client, Engine, model};

/// A repository of one file, and its server; `None` when this machine cannot have one cloned.
fn repository(parent: &Path) -> Option<Server> {
    git(parent, &["init", "-q", "r.git"])?;
    commit(&parent.join("r.git"), "a.md", "# One\n")?;
    let engine = Engine::start(&[], &[]);
    if !status(&mut engine.client()).sandbox.contains("landlock") {
        eprintln!("skipped: the kernel has no landlock");
        return None;
    }
    Some(Server::start(parent))
}

fn commit_of(item: &Item) -> &str {
    match &item.place {
        Place::Blob { commit, .. } => commit,
        other => panic!("no file of a commit: {other:?}"),
    }
}

fn refused(client: &mut Client, source: &SourceSpec) -> Error {
    match client.ask_all(&Request::List { source: source.clone() }).pop() {
        Some(Reply::Error(error)) => error,
        other => panic!("no error: {other:?}"),
    }
}

/// Waits until something holds.
fn soon(what: &str, holds: impl Fn() -> bool) {
    let started = Instant::now();
    while !holds() {
        assert!(started.elapsed() < Duration::from_secs(10), "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_clone_is_kept_for_what_is_read_of_it_and_made_again_when_it_is_gone() {
    let parent = tempfile::tempdir().expect("folder");
    let Some(server) = repository(parent.path()) else { return };
    let engine = Engine::start(&[], &[]);
    let mut client = engine.client();
    let source = server.source("open/r.git", &json!({"ref": "main"}));
    let (items, failures) = list(&mut client, &source);
    assert_eq!((items.len(), failures, engine.clones().len()), (1, Vec::new(), 1));
    let after_listing = server.downloads();
    // The one that cloned has ended, the one that read has not.
    soon("a clone worker lives on", || {
        let names = children(&engine).into_iter().map(|pid| std::fs::read_to_string(format!("/proc/{pid}/comm")));
        names.map(|name| name.unwrap_or_default().trim().to_owned()).eq(["pg_rag_acquire".to_owned()])
    });
    // It is where it was, so there is nothing to download.
    let (again, _) = list(&mut engine.client(), &source);
    assert_eq!((&again, server.downloads(), engine.clones().len()), (&items, after_listing, 1));
    let with_model = model("all-MiniLM-L6-v2").is_some();
    if with_model {
        assert_eq!(read(&mut engine.client(), &source, &items), [Ok("One".to_owned())]);
        assert_eq!((server.downloads(), engine.clones().len()), (after_listing, 1));
    }

    let moved = commit(&parent.path().join("r.git"), "a.md", "# Two\n").expect("commit");
    let (newer, _) = list(&mut client, &source);
    assert_eq!((commit_of(&newer[0]), engine.clones().len()), (moved.as_str(), 2));
    // A new engine has nothing of the old one, and gets what was listed before the branch moved.
    let before = engine.clones();
    let engine = engine.restart();
    let mut client = engine.client();
    assert_eq!((engine.clones(), before.len()), (Vec::new(), 2));
    if with_model {
        assert_eq!(read(&mut client, &source, &items), [Ok("One".to_owned())]);
        assert_eq!(read(&mut client, &source, &newer), [Ok("Two".to_owned())]);
        let mixed = [items, newer].concat();
        let model = model("all-MiniLM-L6-v2").expect("model");
        let reply = client.ask(&Request::Read { source: source.clone(), items: mixed, model });
        assert!(matches!(&reply, Reply::Error(e) if e.message == "the items are not files of one commit"), "{reply:?}");
        let closed = SourceSpec { allowed_hosts: Vec::new(), ..source };
        assert_eq!(refused(&mut client, &closed).kind, Kind::Forbidden);
    }
}

#[test]
fn a_clone_that_nobody_waits_for_is_ended_and_removed() {
    let parent = tempfile::tempdir().expect("folder");
    let Some(server) = repository(parent.path()) else { return };
    let engine = Engine::start(&[], &[]);
    let mut leaving = engine.client();
    leaving.send(&Request::List { source: server.source("silent/r.git", &json!({})) });
    soon("nothing is cloned", || engine.clones().len() == 1 && !server.asked.lock().expect("asked").is_empty());
    let workers = children(&engine);
    drop(leaving);
    soon("it goes on", || engine.clones().is_empty() && workers.iter().all(|pid| is_ended(*pid)));
    let slow = server.source("silent/r.git", &json!({"limits": {"max_download_seconds": 1}}));
    let started = Instant::now();
    assert_eq!(refused(&mut engine.client(), &slow).kind, Kind::LimitExceeded);
    assert!(started.elapsed() < Duration::from_secs(10));
    let large = server.source("endless/r.git", &json!({"limits": {"max_download_bytes": 1_000_000}}));
    let error = refused(&mut engine.client(), &large);
    assert!(error.message.ends_with("sent more than max_download_bytes 1000000"), "{error:?}");
    assert_eq!(engine.clones(), Vec::<String>::new());
}

#[test]
fn a_clone_worker_that_was_taken_over_costs_its_clone_only() {
    let parent = tempfile::tempdir().expect("folder");
    let Some(server) = repository(parent.path()).filter(|_| cfg!(debug_assertions)) else { return };
    let engine = Engine::start(&[("RAG_ENGINE_TEST_FAULT", "clone")], &["--parse-memory", "1024"]);
    let mut client = engine.client();
    let good = server.source("r.git", &json!({}));
    assert_eq!(list(&mut client, &good).0.len(), 1);
    for (fault, kind, message) in [
        ("write", Kind::Forbidden, "writing was denied"),
        ("read", Kind::Forbidden, "reading was denied"),
        ("exec", Kind::Forbidden, "executing was denied"),
        ("fork", Kind::Forbidden, "forking was denied"),
        ("thread", Kind::Forbidden, "threading was denied"),
        ("panic", Kind::Internal, "cloning panicked; the server's log has the place"),
        ("crash", Kind::Internal, "clone worker was killed while cloning"),
        ("memory", Kind::LimitExceeded, "clone worker ran out of memory while cloning"),
        ("hang", Kind::LimitExceeded, "took longer than 2 s"),
        ("flood", Kind::LimitExceeded, "gave more than 65536 bytes"),
        ("liar", Kind::BadContent, "gave another answer than was asked for"),
    ] {
        let limits = json!({"limits": {"max_download_seconds": 2}});
        let error = refused(&mut client, &server.source(&format!("fault-{fault}/r.git"), &limits));
        assert_eq!(error.kind, kind, "{fault}: {error:?}");
        assert!(error.message.contains(message), "{fault}: {error:?}");
        assert_eq!(engine.clones().len(), 1, "{fault}");
    }
    assert_eq!(list(&mut client, &good).0.len(), 1);
    assert!(!Path::new("/tmp/pg_rag-fault-write").exists());
}

#[test]
fn who_wants_the_same_at_once_gets_one_clone() {
    let parent = tempfile::tempdir().expect("folder");
    let Some(server) = repository(parent.path()) else { return };
    let engine = Engine::start(&[], &[]);
    let at_once = |path: &str| {
        let source = server.source(path, &json!({}));
        std::thread::scope(|scope| {
            let asked =
                [(); 2].map(|()| scope.spawn(|| engine.client().ask_all(&Request::List { source: source.clone() })));
            asked.map(|asked| asked.join().expect("asks"))
        })
    };
    let listed =
        |replies: &[Reply]| matches!(replies, [Reply::Items { items, .. }, Reply::Listed { .. }] if items.len() == 1);
    list(&mut engine.client(), &server.source("r.git", &json!({})));
    let (for_one, clones) = (server.packs("r.git/"), engine.clones().len());
    let replies = at_once("late-pack/r.git");
    assert!(replies.iter().all(|replies| listed(replies)), "{replies:?}");
    assert_eq!((server.packs("late-pack/"), engine.clones().len()), (for_one, clones + 1));
    // When the first one fails the second one is not held up.
    let replies = at_once("once/r.git");
    assert_eq!(replies.iter().filter(|replies| listed(replies)).count(), 1, "{replies:?}");
    assert!(replies.iter().any(|replies| matches!(replies.as_slice(), [Reply::Error(_)])), "{replies:?}");
    assert_eq!(server.packs("once/"), 1 + for_one);
}

#[test]
fn clones_of_different_branches_are_kept_beside_each_other() {
    let parent = tempfile::tempdir().expect("folder");
    let Some(server) = repository(parent.path()) else { return };
    let at = parent.path().join("r.git");
    git(&at, &["checkout", "-qb", "next"]);
    commit(&at, "b.md", "# Next\n");
    let engine = Engine::start(&[], &[]);
    let branches = ["main", "next"].map(|branch| server.source("r.git", &json!({"ref": branch})));
    let first = branches.each_ref().map(|source| list(&mut engine.client(), source).0.len());
    let downloads = server.downloads();
    let again = branches.each_ref().map(|source| list(&mut engine.client(), source).0.len());
    assert_eq!((first, again, server.downloads(), engine.clones().len()), ([1, 2], [1, 2], downloads, 2));
}

#[test]
fn all_clones_together_take_no_more_disk_than_the_operator_leaves() {
    let parent = tempfile::tempdir().expect("folder");
    let Some(server) = repository(parent.path()) else { return };
    let engine = Engine::start(&[], &["--clone-disk", "1024"]);
    let source = |path: &str, bytes: u64, seconds: u32| {
        server.source(path, &json!({"limits": {"max_download_bytes": bytes, "max_download_seconds": seconds}}))
    };
    let error = refused(&mut engine.client(), &source("r.git", 1 << 30, 5));
    assert_eq!(error.kind, Kind::LimitExceeded, "{error:?}");
    // The index of one may take half of the disk.
    let message = "max_download_bytes 1073741824 is above the 536870912 that pg_rag.clone_disk_limit leaves";
    assert_eq!((error.message.as_str(), server.asked.lock().expect("asked").len()), (message, 0));
    // Each of these may take more than half of it.
    let mut first = engine.client();
    first.send(&Request::List { source: source("silent/r.git", 100 << 20, 4) });
    soon("nothing is cloned", || engine.clones().len() == 1);
    let error = refused(&mut engine.client(), &source("r.git", 100 << 20, 1));
    assert_eq!(error.kind, Kind::NoResources, "{error:?}");
    assert_eq!(error.message, format!("there was no room for a clone of \"{}\" within 1 s", server.url("r.git")));
    assert_eq!(list(&mut engine.client(), &source("r.git", 100 << 20, 30)).0.len(), 1);
    assert!(matches!(first.receive().reply, Reply::Error(_)));
}
