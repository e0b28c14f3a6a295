// SPDX-License-Identifier: PostgreSQL

//! rag_eval: is retrieval better or worse than it was, and than it should be?
//!
//! A client of the database, not a part of it: it sees what a user sees (`rag.add_source`, `rag.sync`, `rag.search` and
//! the views) and brings judged collections in BEIR's layout and the metrics of [`rag_core::metrics`]. It must not read
//! an internal table, with two stated exceptions: [`bench`] copies stored vectors for its hand-written rival and writes
//! passages without an engine, and [`bm25`] reads passages to score them by the formula.
//!
//! It is a library as well as a program, so that the server tests assert the same numbers by the same code that
//! `make eval` prints them with.
#![deny(missing_docs)]

pub mod baseline;
pub mod beir;
pub mod bench;
pub mod bm25;
pub mod chance;
pub mod compare;
pub mod corpus;
pub mod db;
pub mod experiments;
pub mod import;
pub mod latency;
pub mod output;
pub mod run;

pub use rag_core::{Error, Result};
