// SPDX-License-Identifier: PostgreSQL

//! The BM25 leg, free of storage.
//!
//! Owns the scoring formula, the analysis of text into terms, and the index: posting lists as bytes ([`postings`]),
//! segments made of them ([`segment`]) and the search over segments and what is not in one yet ([`maxscore`]). Reading of a
//! chunk's forward data (its `tsvector` in PostgreSQL's own wire form) stands beside them, because [`bm25::Scorer`] over it
//! is the oracle of the search. Lexemes exist only in a backend, where dictionaries are; here they are strings that arrive
//! from outside, through [`tokens::Lexer`].
//!
//! A segment never changes. Documents written since are handed to a search as they are, documents deleted since as a set,
//! and df, N and the mean length come with the query, so that they can be those of the caller's snapshot.

pub mod bm25;
pub mod expand;
pub mod explain;
pub mod maxscore;
pub mod ordinals;
pub mod postings;
pub mod segment;
pub mod tokens;
pub mod topk;
pub mod tsquery;
pub mod tsvector;
pub mod varint;
