// SPDX-License-Identifier: PostgreSQL

//! All SQL functions.
//!
//! Each parses its arguments, reads the settings of the session, calls one function of a lower layer and returns rows.
//! No SQL text, no loop over chunks, no number without a name. Comments and grants are in `sql/schema/90_grants.sql`.

mod admin;
mod embed;
mod health;
mod ingest;
mod jobs;
mod search;

use rag_core::{Error, Result};

/// An argument that may not be null. Functions whose other arguments may be null are not STRICT, so PostgreSQL calls
/// them with it.
fn required<T>(name: &str, value: Option<T>) -> Result<T> {
    value.ok_or_else(|| Error::invalid(format!("{name} is null")))
}
