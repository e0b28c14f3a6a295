//! All SQL functions.
//!
//! Each parses its arguments, reads the settings of the session, calls one function of a lower layer and returns rows.
//! No SQL text, no loop over chunks, no number without a name. Comments and grants are in `sql/schema/90_grants.sql`.

mod admin;
mod embed;
mod health;
mod ingest;
mod search;
