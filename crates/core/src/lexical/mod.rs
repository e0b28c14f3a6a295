// SPDX-License-Identifier: PostgreSQL

//! The BM25 leg, free of storage.
//!
//! Owns the scoring formula, the analysis of text into terms, and the index: posting lists as bytes ([`postings`]),
//! segments made of them ([`segment`]) and laid out in rows ([`shelf`]), the search over segments ([`maxscore`]), what
//! segments are to each other ([`index`]; for documents in pieces, [`whole`]) and when they become one ([`compaction`]).
//! Also what words of a query stand for ([`widen`], by [`expand`]), what a phrase is ([`phrase`]), and which configuration reads
//! a language ([`language`]). Reading of a chunk's forward data (its `tsvector` in PostgreSQL's own wire form) stands beside
//! them, because [`bm25::Scorer`] over it
//! is the oracle of the search. Lexemes exist only in a backend, where dictionaries are; here they are strings that arrive
//! from outside, through [`tokens::Lexer`].
//!
//! A segment never changes. What a transaction writes is a segment of its own, however small, and what it deletes is one
//! too, whose documents and counts are taken off; so df, N and the mean length are those of the caller's snapshot.

pub mod bm25;
pub mod cache;
pub mod compaction;
pub mod expand;
pub mod explain;
pub mod index;
pub mod keys;
pub mod language;
pub mod maxscore;
pub mod ordinals;
pub mod phrase;
pub mod postings;
pub mod segment;
pub mod shelf;
pub mod tokens;
pub mod topk;
pub mod tsquery;
pub mod tsvector;
pub mod varint;
pub mod whole;
pub mod widen;
