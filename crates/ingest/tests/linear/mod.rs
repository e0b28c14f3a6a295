// SPDX-License-Identifier: PostgreSQL

//! Time grows with the size of an input and not with its square.
//!
//! Each input is made in two sizes, of which one is four times the other, and both are read in one run: four times the
//! size may take eight times as long, where a quadratic step takes sixteen. What is compared is the processor time of this
//! thread, so that a busy machine changes nothing; what takes next to none is not worth comparing.
// Each test program uses a part.
#![allow(dead_code)]

use crate::invariants::clock;
use rag_core::source::{SourceKind, SourceOptions};
use rag_core::tokens::WordCounter;
use serde_json::Map;
use std::time::Duration;

pub const COUNTER: WordCounter = WordCounter { window: 254 };

/// A build without optimisation gets a tenth, or it would take minutes.
pub const MEGABYTE: usize = if cfg!(debug_assertions) { 100_000 } else { 1_000_000 };

/// Time that says nothing: the clock ticks, memory is taken for the first time.
pub const SLACK: Duration = Duration::from_millis(120);

pub fn spent(read: &dyn Fn(&str), text: &str) -> Duration {
    let start = clock();
    read(text);
    clock().saturating_sub(start)
}

/// Reads what `make` makes of two sizes, the larger of `size` bytes.
pub fn grows(what: &str, size: usize, read: &dyn Fn(&str), make: &dyn Fn(usize) -> String) {
    let (small, large) = (make(size / 4), make(size));
    let quick = spent(read, &small);
    let slow = spent(read, &large);
    let begin: String = large.chars().take(60).collect();
    assert!(
        slow <= quick * 8 + SLACK,
        "{what}: {} bytes take {quick:?}, {} bytes {slow:?}: {begin:?}",
        small.len(),
        large.len()
    );
}

pub fn reader(kind: SourceKind, name: &'static str) -> impl Fn(&str) {
    move |text| {
        let options = SourceOptions::defaults(kind);
        let _either = rag_ingest::parse_inline(kind, &options, name, text.as_bytes(), &Map::new(), &COUNTER);
    }
}

pub fn repeats(what: &str, read: &dyn Fn(&str), unit: &str) {
    grows(what, MEGABYTE, read, &|size| unit.repeat(size / unit.len()));
}
