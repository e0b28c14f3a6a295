// SPDX-License-Identifier: PostgreSQL

//! Background work: queueing it, and trying it again.

use super::required;
use crate::error::OrRaise;
use crate::spi::guarded;
use crate::store::job::{self, Work};
use crate::sync;
use pgrx::prelude::*;

/// Queues a sync of a source; a worker runs it once this is committed.
#[pg_extern(schema = "rag", volatile, parallel_unsafe)]
fn enqueue_sync(source: Option<&str>) -> i64 {
    let enqueue = || {
        let source = sync::syncable(required("source", source)?)?;
        let job = job::enqueue(Work::Sync, source.id)?;
        super::announce_at_commit();
        Ok(job)
    };
    guarded(enqueue).or_raise()
}

/// Gives a job that is out of attempts new ones.
#[pg_extern(schema = "rag", volatile, parallel_unsafe)]
fn retry(job: Option<i64>) {
    let retry = || {
        job::retry(required("job", job)?)?;
        super::announce_at_commit();
        Ok(())
    };
    guarded(retry).or_raise();
}
