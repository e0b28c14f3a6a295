// SPDX-License-Identifier: PostgreSQL

//! How the engine and the catalog are.

use crate::engine_client;
use crate::error::OrRaise;
use crate::spi::guarded;
use crate::store::collection;
use crate::store::lexical::compaction;
use crate::sync;
use crate::worker;
use pgrx::iter::TableIterator;
use pgrx::prelude::*;
use rag_core::protocol::{Reply, Request, Supervision};
use std::time::Duration;

/// How long a busy engine may take to say how it is.
const PATIENCE: Duration = Duration::from_secs(1);

/// One row; never starts the engine.
#[pg_extern(schema = "rag", volatile, parallel_restricted)]
#[allow(clippy::type_complexity)]
fn health() -> TableIterator<
    'static,
    (
        name!(engine_state, String),
        name!(engine_pid, Option<i32>),
        name!(engine_restarts, i32),
        name!(engine_memory, Option<i64>),
        name!(engine_uptime, Option<pgrx::datum::Interval>),
        name!(launcher_pid, Option<i32>),
        name!(model, String),
        name!(models_loaded, Vec<String>),
        name!(workers, i32),
        name!(queued, i32),
        name!(repair_needed, bool),
        name!(last_error, Option<String>),
        name!(sandbox, Option<String>),
    ),
> {
    let alive = worker::launcher_is_alive();
    // The file of a launcher that was killed is still there.
    let state = worker::supervision().filter(|_| alive);
    let status = match engine_client::peek(&Request::Status, PATIENCE) {
        Some(Reply::Status(status)) => Some(status),
        _ => None,
    };
    let word = match (&state, &status) {
        (_, Some(_)) => "running",
        (None, None) if alive => "starting",
        (None, None) => "stopped",
        (Some(Supervision { engine_pid: 0, .. }), None) => "failing",
        (Some(_), None) => "busy",
    };
    let pid = |pid: u32| (pid != 0).then_some(pid as i32);
    let loaded = status.as_ref().map(|s| s.models.clone()).unwrap_or_default();
    let uptime = status.as_ref().and_then(|s| pgrx::datum::Interval::from_seconds(s.uptime_seconds as f64).into());
    TableIterator::once((
        word.to_owned(),
        state.as_ref().and_then(|s| pid(s.engine_pid)),
        state.as_ref().map_or(0, |s| s.restarts as i32),
        status.as_ref().map(|s| s.memory as i64),
        uptime,
        state.as_ref().and_then(|s| pid(s.launcher_pid)),
        guarded(|| collection::by_name("default")).or_raise().model.spec.name,
        loaded,
        status.as_ref().map_or(0, |s| s.parse_workers as i32),
        status.as_ref().map_or(0, |s| s.queued as i32),
        guarded(collection::any_without_index).or_raise(),
        state.and_then(|s| s.last_error),
        status.map(|s| s.sandbox),
    ))
}

/// Makes again what a restore or an upgrade has left out: HNSW indexes, BM25 indexes, vectors, and workers for jobs that wait.
#[pg_extern(schema = "rag", volatile, parallel_unsafe)]
fn repair() -> TableIterator<'static, (name!(object, String), name!(action, String))> {
    let repair = || {
        let mut done = collection::repair_indexes()?;
        if compaction::enable_triggers()? {
            done.push(("rag.chunk".to_owned(), "triggers of the lexical index enabled".to_owned()));
        }
        for (id, name) in compaction::faulty()? {
            compaction::reindex(id)?;
            done.push((name, "lexical index made anew".to_owned()));
        }
        done.extend(sync::enqueue_missing()?.into_iter().map(|name| (name, "embedding queued".to_owned())));
        Ok(done)
    };
    let done = guarded(repair).or_raise();
    super::announce_at_commit();
    TableIterator::new(done)
}
