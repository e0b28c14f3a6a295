// SPDX-License-Identifier: PostgreSQL

//! All SQL functions.
//!
//! Each parses its arguments, reads the settings of the session, calls one function of a lower layer and returns rows.
//! No SQL text, no loop over chunks, no number without a name. Comments and grants are in `sql/schema/90_grants.sql`.

mod admin;
mod diagnose;
mod embed;
mod evaluate;
mod health;
mod ingest;
mod jobs;
mod lexical;
mod profile;
mod search;

use crate::json::Json;
use crate::worker;
use pgrx::{PgXactCallbackEvent, register_xact_callback};
use rag_core::{Error, Result};
use serde_json::Value;
use std::cell::Cell;

/// An argument that may not be null. Functions whose other arguments may be null are not STRICT, so PostgreSQL calls
/// them with it.
fn required<T>(name: &str, value: Option<T>) -> Result<T> {
    value.ok_or_else(|| Error::invalid(format!("{name} is null")))
}

/// An object that may be left out.
fn or_null(object: Option<Json>) -> Value {
    object.map_or(Value::Null, |o| o.0)
}

thread_local! {
    /// Whether this transaction announces its work already, and whether it has queued a job.
    static ANNOUNCING: Cell<bool> = const { Cell::new(false) };
    static QUEUED: Cell<bool> = const { Cell::new(false) };
}

/// Has the launcher look for jobs once the transaction has committed. One that is prepared for two-phase commit is committed
/// by somebody who knows nothing of it, so it is refused, as PostgreSQL refuses it after NOTIFY.
fn announce_at_commit() {
    QUEUED.set(true);
    announce();
}

/// Whether this transaction announces work already.
fn is_announced() -> bool {
    ANNOUNCING.get()
}

/// The same for work that can wait for the next announcement, so that any transaction may do it.
fn announce() {
    if ANNOUNCING.replace(true) {
        return;
    }
    fn end() -> bool {
        ANNOUNCING.set(false);
        QUEUED.replace(false)
    }
    register_xact_callback(PgXactCallbackEvent::Commit, || {
        end();
        worker::announce_jobs();
    });
    register_xact_callback(PgXactCallbackEvent::Abort, || {
        end();
    });
    register_xact_callback(PgXactCallbackEvent::PrePrepare, || {
        if QUEUED.get() {
            crate::error::raise(Error::unsupported("cannot prepare a transaction that has queued a job"))
        }
    });
    register_xact_callback(PgXactCallbackEvent::Prepare, || {
        end();
    });
}
