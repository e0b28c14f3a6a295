// SPDX-License-Identifier: PostgreSQL

//! The engine's memory does not grow with the number of requests.
// Clippy's leave for tests does not reach the functions that tests share.
#![allow(clippy::expect_used, clippy::panic)]

mod support;

use rag_core::protocol::{Input, Priority, Reply, Request};
use std::time::Duration;
use support::reading::status;
use support::{Engine, model};

/// A leak of a few kilobytes a call shows in the long run only; set `RAG_TEST_FULL` for it.
fn calls() -> u64 {
    if std::env::var_os("RAG_TEST_FULL").is_some() { 10_000 } else { 1500 }
}

/// Between a word and more than the window, in an order that repeats only after long.
fn text(call: u64) -> String {
    let words = call.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56;
    let words = if call.is_multiple_of(5) { words } else { words % 16 };
    format!("call {call} {}", "word ".repeat(words as usize))
}

#[test]
fn memory_stays_flat_over_many_calls() {
    let Some(spec) = model("all-MiniLM-L6-v2-int8").or_else(|| model("all-MiniLM-L6-v2")) else { return };
    let engine = Engine::start(&[], &[]);
    let mut client = engine.client();
    let mut measured = Vec::new();
    for call in 0..calls() {
        let priority = if call.is_multiple_of(2) { Priority::Interactive } else { Priority::Bulk };
        let texts = (0..1 + call % 3).map(|n| text(3 * call + n)).collect();
        let reply = client.ask(&Request::Embed { model: spec.clone(), texts, input: Input::Passage, priority });
        assert!(matches!(reply, Reply::Embeddings(_)), "{reply:?}");
        if (call + 1).is_multiple_of(calls() / 8) {
            // After a second without work the lanes return what batches left behind; until then the memory depends on
            // which texts came last.
            std::thread::sleep(Duration::from_millis(1500));
            measured.push(status(&mut client).memory >> 10);
        }
    }
    println!("kB after each eighth of {} calls: {measured:?}", calls());
    // Where the allocator happens to put things moves single values by a tenth; growth moves all of the last ones.
    let middle = measured[2..5].iter().copied().max().unwrap_or(0);
    let end = measured[5..].iter().copied().min().unwrap_or(u64::MAX);
    assert!(end < middle + (middle / 20).min(20 << 10), "from {middle} to {end} kB: {measured:?}");
}
