// SPDX-License-Identifier: PostgreSQL

//! Chance that can be repeated, and how much of it.

pub use rag_eval::chance::Chance;

/// Whether the long tests were asked for (`make test-full`).
pub fn is_full() -> bool {
    std::env::var_os("RAG_TEST_FULL").is_some()
}
