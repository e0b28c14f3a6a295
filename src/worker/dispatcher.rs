// SPDX-License-Identifier: PostgreSQL

//! The launcher's second task: a job worker for each database that has work.
//!
//! Owns when a worker is asked for, and nothing of what it does. One that does not get on for the length of a lease gets a
//! companion. A worker that dies leaves its mark, so another follows after
//! a pause that doubles; a mark over which workers die again and again is dropped, because its database may be gone.
//! Nothing is started during recovery: a standby's jobs are its primary's. When recovery ends, or a launcher begins, all
//! databases are looked at once.

use super::{databases, jobs, marks};
use pgrx::bgworkers::{BackgroundWorkerBuilder, BackgroundWorkerStatus, BgWorkerStartTime, DynamicBackgroundWorker};
use pgrx::{IntoDatum, pg_sys};
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// Pause between two looks at workers at work, or for a free slot.
const PACE: Duration = Duration::from_secs(2);
/// Pause between two looks whether recovery has ended.
const RECOVERY_PACE: Duration = Duration::from_secs(2);
/// First pause after a worker that left its mark as it was; doubles.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
/// A worker that lived so long has done something.
const LIVED: Duration = Duration::from_secs(10);
/// Workers in a row that may leave their mark as it was.
const MAX_FAILURES: u32 = 10;

/// A database's worker.
struct Sent {
    /// None once it has ended.
    worker: Option<DynamicBackgroundWorker>,
    since: Instant,
    failures: u32,
    not_before: Instant,
}

/// Job workers of this cluster.
#[derive(Default)]
pub struct Dispatcher {
    sent: HashMap<u32, Sent>,
    looked: bool,
}

impl Dispatcher {
    /// Starts what is due. Returns when to be called again, if nobody calls before.
    pub fn run(&mut self, lease: Duration) -> Option<Duration> {
        // SAFETY: reads shared memory, which this worker is attached to.
        if unsafe { pg_sys::RecoveryInProgress() } {
            return Some(RECOVERY_PACE);
        }
        if !self.looked {
            self.looked = start(databases::FUNCTION, "pg_rag database scan", 0).is_some();
        }
        self.reap();
        let mut next = self.sent.values().any(|s| s.worker.is_some()).then_some(PACE);
        let mut sooner = |pause: Duration| next = Some(next.map_or(pause, |n: Duration| n.min(pause)));
        if !self.looked {
            sooner(PACE);
        }
        for (database, due) in marks::all() {
            let now = Instant::now();
            let sent =
                self.sent.entry(database).or_insert(Sent { worker: None, since: now, failures: 0, not_before: now });
            let pause = due.max(sent.not_before.saturating_duration_since(now));
            if sent.worker.is_some() {
                // It cannot be killed without ending all sessions, so it is left alone and another takes over its job.
                let stuck = sent.since.elapsed() > lease && marks::silence(database).is_none_or(|s| s > lease);
                if !stuck {
                    continue;
                }
                pgrx::log!(
                    "pg_rag launcher: the job worker of database {database} is silent for {lease:?}; another is started"
                );
                sent.worker = None;
            }
            if sent.failures >= MAX_FAILURES {
                pgrx::log!(
                    "pg_rag launcher: {MAX_FAILURES} job workers of database {database} ended early; its jobs wait for the next request"
                );
                let _ = marks::clear(database);
                self.sent.remove(&database);
            } else if !pause.is_zero() {
                sooner(pause);
            } else {
                marks::has_left(database);
                sent.worker = start(jobs::FUNCTION, "pg_rag job worker", database);
                sent.since = now;
                sooner(PACE);
            }
        }
        next
    }

    /// Notices workers that have ended.
    fn reap(&mut self) {
        let marked: Vec<u32> = marks::all().into_iter().filter(|(_, due)| due.is_zero()).map(|(d, _)| d).collect();
        self.sent.retain(|database, sent| {
            let ended = sent.worker.as_ref().is_some_and(|w| matches!(w.pid(), Err(BackgroundWorkerStatus::Stopped)));
            if !ended {
                return sent.worker.is_some() || sent.failures > 0 || marked.contains(database);
            }
            sent.worker = None;
            // One that is through has cleared its mark or set it to later; but whoever writes much may have set it anew.
            if marks::has_left(*database) {
                sent.failures = 0;
                sent.not_before = Instant::now() + FIRST_PAUSE;
                return marked.contains(database);
            }
            if marked.contains(database) {
                sent.failures = if sent.since.elapsed() < LIVED { sent.failures + 1 } else { 1 };
                sent.not_before = Instant::now() + FIRST_PAUSE.saturating_mul(1 << sent.failures.min(8));
                return true;
            }
            false
        });
    }
}

fn start(function: &str, name: &str, database: u32) -> Option<DynamicBackgroundWorker> {
    BackgroundWorkerBuilder::new(name)
        .set_type(name)
        .set_library("pg_rag")
        .set_function(function)
        .set_argument(pg_sys::Oid::from(database).into_datum())
        .enable_spi_access()
        .set_start_time(BgWorkerStartTime::RecoveryFinished)
        .set_restart_time(None)
        .load_dynamic()
        .ok()
}
