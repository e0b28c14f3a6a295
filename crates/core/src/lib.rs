// SPDX-License-Identifier: PostgreSQL

//! rag_core: what pg_rag knows, without doing any of it.
//!
//! ```text
//!  source ── list ──▶ item ── parse ──▶ document ── chunk ──▶ chunk ── embed, analyse ──▶ stored
//!                                                                                          │
//!  query ──▶ dense leg ∥ bm25 leg (candidate_k each) ──▶ union ──▶ fusion ──▶ evidence ◀───┘
//! ```
//!
//! Pure logic: no I/O, clock, thread, random number without a seed, SQL text or PostgreSQL type lives here, so every
//! rule of the product can be tested in milliseconds.
//!
//! Words (the same in SQL, Rust, settings and messages): a *collection* is a set of sources that share a model and
//! indexes; a *source* is where documents come from; a *document* is one thing with a URI in it; a *chunk* is one
//! passage of a document, with its *provenance*; a *sync* is one run over a source; a *leg* is one way of finding
//! chunks (dense, bm25), which yields *candidate_k* candidates; *fusion* merges legs; *evidence* is what a search
//! returns, with a *locator* (where in the document) and a *citation* (the locator made readable). An *item* is a
//! document that a listing found but nobody has read yet.
//!
//! ```
//! use rag_core::rank::fuse::{rrf, Leg};
//! let dense = Leg::new("dense", 1.0, [7, 3]);
//! let bm25 = Leg::new("bm25", 1.0, [3]);
//! let fused = rrf(&[dense, bm25], 60);
//! assert_eq!(fused[0].id, 3); // 1/62 + 1/61 beats 1/61
//! ```
#![deny(missing_docs)]

pub mod document;
pub mod error;
pub mod evaluation;
pub mod html;
pub mod lexical;
pub mod metrics;
pub mod near_duplicate;
pub mod protocol;
pub mod provenance;
pub mod query;
pub mod rank;
pub mod source;
pub mod template;
pub mod tokens;

pub use error::{Error, Kind, Result};
