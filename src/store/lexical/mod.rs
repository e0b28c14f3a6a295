// SPDX-License-Identifier: PostgreSQL

//! Tables `rag.lex_segment`, `rag.lex_shelf`, `rag.lex_page` and `rag.lex_gap`: the index of the BM25 leg.
//!
//! Owns where the segments of [`rag_core::lexical`] are kept and by which transaction. A statement on `rag.chunk` writes at
//! most one live segment and one dead one for each label it touches and each unit ([`changes`]), in its own transaction: what
//! is committed, rolled back, replicated or recovered with the chunk is so with its postings. Of whole documents it writes
//! pieces ([`rag_core::lexical::whole`]), so two writers of one document do not meet either. Rows are only ever added and, by compaction
//! ([`compaction`]), removed, so writers do not wait for each other nor readers for anybody. A search reads them by the
//! index ([`rows`]) and keeps what it read ([`population`]).

pub mod changes;
pub mod compaction;
pub mod population;
mod rows;
mod sink;

use rag_core::Result;
use rag_core::lexical::varint::corrupt;
pub use sink::Place;

/// What is scored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Unit {
    /// Passages.
    Chunk,
    /// Documents, each the sum of its passages.
    Document,
}

impl Unit {
    /// Its name in the table.
    pub fn name(self) -> &'static str {
        match self {
            Unit::Chunk => "chunk",
            Unit::Document => "document",
        }
    }

    /// The unit of a name.
    pub fn by_name(name: &str) -> Result<Self> {
        match name {
            "chunk" => Ok(Unit::Chunk),
            "document" => Ok(Unit::Document),
            other => Err(corrupt(&format!("a unit is called \"{other}\""))),
        }
    }
}
