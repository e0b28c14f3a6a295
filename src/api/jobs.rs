// SPDX-License-Identifier: PostgreSQL

//! Background work: queueing it, and trying it again.

use super::required;
use crate::error::OrRaise;
use crate::spi::guarded;
use crate::store::job::{self, Work};
use crate::sync;
use crate::worker;
use pgrx::prelude::*;
use pgrx::{PgXactCallbackEvent, register_xact_callback};

/// Queues a sync of a source; a worker runs it once this is committed.
#[pg_extern(schema = "rag", volatile, parallel_unsafe)]
fn enqueue_sync(source: Option<&str>) -> i64 {
    let enqueue = || {
        let source = sync::syncable(required("source", source)?)?;
        let job = job::enqueue(Work::Sync, source.id)?;
        announce_at_commit();
        Ok(job)
    };
    guarded(enqueue).or_raise()
}

/// Gives a job that is out of attempts new ones.
#[pg_extern(schema = "rag", volatile, parallel_unsafe)]
fn retry(job: Option<i64>) {
    let retry = || {
        job::retry(required("job", job)?)?;
        announce_at_commit();
        Ok(())
    };
    guarded(retry).or_raise();
}

fn announce_at_commit() {
    register_xact_callback(PgXactCallbackEvent::Commit, worker::announce_jobs);
}
