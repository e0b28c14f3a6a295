// SPDX-License-Identifier: PostgreSQL

//! The engine's memory does not grow with the number of requests.
// Clippy's leave for tests does not reach the functions that tests share.
#![allow(clippy::expect_used, clippy::panic)]

mod support;

use rag_core::protocol::{Input, Priority, Reply, Request};
use std::time::Duration;
use support::reading::status;
use support::{Engine, model};

/// How much is done and what is asked of it. A leak of a few kilobytes a call shows in the long run only; set
/// `RAG_TEST_FULL` for it.
struct Effort {
    calls: u64,
    /// Times that memory is looked at. Where the allocator happens to put things moves single values by a twentieth.
    looks: u64,
    /// Growth over the second half of the calls that is still taken for chance, in kB.
    chance: f64,
}

fn effort() -> Effort {
    if std::env::var_os("RAG_TEST_FULL").is_some() {
        Effort { calls: 10_000, looks: 32, chance: 16_384.0 }
    } else {
        Effort { calls: 1600, looks: 16, chance: 24_576.0 }
    }
}

/// Growth over all values by the straight line that lies nearest to them (least squares).
fn growth(values: &[u64]) -> f64 {
    let n = values.len() as f64;
    let (mean_x, mean_y) = ((n - 1.0) / 2.0, values.iter().map(|y| *y as f64).sum::<f64>() / n);
    let (mut up, mut across) = (0.0, 0.0);
    for (x, y) in values.iter().enumerate() {
        let x = x as f64 - mean_x;
        up += x * (*y as f64 - mean_y);
        across += x * x;
    }
    up / across * (n - 1.0)
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
    let Effort { calls, looks, chance } = effort();
    for call in 0..calls {
        let priority = if call.is_multiple_of(2) { Priority::Interactive } else { Priority::Bulk };
        let texts = (0..1 + call % 3).map(|n| text(3 * call + n)).collect();
        let reply = client.ask(&Request::Embed { model: spec.clone(), texts, input: Input::Passage, priority });
        assert!(matches!(reply, Reply::Embeddings(_)), "{reply:?}");
        if (call + 1).is_multiple_of(calls / looks) {
            // After a second without work the lanes return what batches left behind; until then the memory depends on
            // which texts came last.
            std::thread::sleep(Duration::from_millis(1500));
            measured.push(status(&mut client).memory >> 10);
        }
    }
    let second = growth(&measured[measured.len() / 2..]);
    println!("{calls} calls, kB in equal steps: {measured:?}; growth over the second half {second:.0} kB");
    assert!(second < chance, "grew by {second:.0} kB: {measured:?}");
}

#[test]
fn growth_is_that_of_the_nearest_line() {
    assert!((growth(&[10, 20, 30, 40]) - 30.0).abs() < 1e-9);
    assert!(growth(&[7, 9, 9, 7]).abs() < 1e-9);
    assert!(growth(&[40, 30]) < 0.0);
}
