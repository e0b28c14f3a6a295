// SPDX-License-Identifier: PostgreSQL

//! The BM25 leg, free of storage.
//!
//! Owns the scoring formula and the reading of a chunk's forward data (its `tsvector` in PostgreSQL's own wire form).
//! Lexemes exist only in a backend, where dictionaries are; here they are strings that arrive from outside.

pub mod bm25;
pub mod tsquery;
pub mod tsvector;
