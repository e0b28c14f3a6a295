// SPDX-License-Identifier: PostgreSQL

//! The catalog, one file per table (or per pair that is only written together).
//!
//! Writes and small reads over [`crate::spi`]; rows become typed values here and nowhere else. Must not read settings,
//! raise, or talk to the engine.

pub mod chunk;
pub mod collection;
pub mod document;
pub mod embedding;
pub mod job;
pub mod lexeme;
pub mod lexical;
pub mod model;
pub mod profile;
pub mod question;
pub mod run;
pub mod source;
pub mod statistics;
pub mod sync;

use rag_core::error::nearest;
use rag_core::{Error, Kind, Result};

/// The error for a `what` that does not exist, naming the nearest that does.
fn not_found(what: &str, name: &str, existing: &[String]) -> Error {
    let error = Error::new(Kind::NotFound, format!("{what} \"{name}\" does not exist"));
    match nearest(name, existing.iter().map(String::as_str)) {
        Some(near) => error.with_hint(format!("Perhaps you meant \"{near}\".")),
        None if existing.is_empty() => error,
        None => error.with_hint(format!("There are: {}.", existing.join(", "))),
    }
}

/// Names in a table, for hints.
fn names(query: &'static str) -> Result<Vec<String>> {
    crate::spi::select(query, &[], |row| row.get(1))
}
