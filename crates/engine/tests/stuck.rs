// SPDX-License-Identifier: PostgreSQL

//! An engine whose inference never returns ends itself, so that another takes its place.
// Clippy's leave for tests does not reach the functions that tests share.
#![allow(clippy::expect_used, clippy::panic)]

mod support;

use rag_core::protocol::{Input, Priority, Reply, Request};
use std::os::unix::process::ExitStatusExt;
use std::time::{Duration, Instant};
use support::reading::status;
use support::{Engine, model};

#[test]
fn a_stuck_lane_leaves_the_rest_answering_and_then_ends_the_engine() {
    let Some(spec) = model("all-MiniLM-L6-v2").filter(|_| cfg!(debug_assertions)) else {
        eprintln!("skipped: needs the model and a debug build");
        return;
    };
    let embed = |priority| {
        let texts = vec!["a text".to_owned()];
        Request::Embed { model: spec.clone(), texts, input: Input::Passage, priority }
    };
    let mut engine = Engine::start(&[("RAG_ENGINE_TEST_FAULT", "inference")], &["--max-batch-seconds", "8"]);
    let mut client = engine.client();
    let mut stuck = engine.client();
    assert!(matches!(client.ask(&embed(Priority::Interactive)), Reply::Embeddings(_)));
    stuck.send(&embed(Priority::Bulk));
    let started = Instant::now();
    // The other lane works, and the engine says how it is.
    while started.elapsed() < Duration::from_secs(4) {
        let asked = Instant::now();
        assert!(matches!(client.ask(&embed(Priority::Interactive)), Reply::Embeddings(_)));
        assert_eq!(status(&mut client).pid, engine.child.id());
        assert!(asked.elapsed() < Duration::from_secs(2), "waited {:?}", asked.elapsed());
    }
    assert!(engine.child.try_wait().expect("status").is_none(), "it ended before its time");
    let ended = loop {
        if let Some(ended) = engine.child.try_wait().expect("status") {
            break ended;
        }
        assert!(started.elapsed() < Duration::from_secs(120), "nothing ended it");
        std::thread::sleep(Duration::from_millis(100));
    };
    assert_eq!(ended.signal(), Some(15));
}
