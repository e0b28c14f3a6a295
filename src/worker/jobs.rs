// SPDX-License-Identifier: PostgreSQL

//! The job worker: one background worker per database that has jobs; it ends when no job is due.
//!
//! Owns the transactions of a job: the attempt begins in one, each step of the work is one, and its end or its failure
//! is one, so that a step which aborts takes nothing along but itself. What a job does is [`crate::sync::job`]'s. Steps run
//! with the rights of the role that queued the job. The worker must not wait idly: while it is connected, its database
//! cannot be dropped or used as a template.

use super::marks;
use crate::error;
use crate::guc;
use crate::spi;
use crate::store::job::{self, Job};
use crate::store::lexical::Place;
use crate::store::lexical::compaction::{self, Extent};
use crate::sync::job::{Attempt, Step};
use pgrx::pg_sys::panic::CaughtError;
use pgrx::{FromDatum, PgTryBuilder, check_for_interrupts, pg_guard, pg_sys};
use rag_core::{Error, Kind, Result};
use std::ffi::{CString, c_int};
use std::panic::AssertUnwindSafe;
use std::time::{Duration, Instant};

/// Name of the entry point.
pub const FUNCTION: &str = "pg_rag_jobs_main";

/// Longest wait for a lock in a step of a job.
const LOCK_TIMEOUT: &str = "60s";
/// Milliseconds until the next look at jobs that somebody has locked.
const LOCKED_PAUSE: u64 = 2000;
/// How long segments are merged before jobs are looked for.
const MOMENT: Duration = Duration::from_secs(1);
/// How long a job goes on before small segments are merged.
const STRETCH: Duration = Duration::from_secs(5);

unsafe extern "C-unwind" {
    // PostgreSQL's own handlers. The bindings' functions of these names are wrappers that no signal may call.
    fn die(signal: c_int);
    fn SignalHandlerForConfigReload(signal: c_int);
}

/// Entry point of the background worker.
#[pg_guard]
#[unsafe(no_mangle)]
pub extern "C-unwind" fn pg_rag_jobs_main(arg: pg_sys::Datum) {
    // SAFETY: the launcher registers this worker with the key of a database.
    let database = unsafe { pg_sys::Oid::from_datum(arg, false) }.unwrap_or(pg_sys::InvalidOid);
    handle(libc::SIGTERM, die);
    handle(libc::SIGHUP, SignalHandlerForConfigReload);
    // SAFETY: what every worker does first, in this order.
    unsafe {
        pg_sys::BackgroundWorkerUnblockSignals();
        pg_sys::BackgroundWorkerInitializeConnectionByOid(database, pg_sys::InvalidOid, 0);
    }
    let database = database.to_u32();
    match work(database).and_then(|()| file(marks::leave(database))) {
        Ok(()) => {}
        // Its mark stays, so that another worker tries again.
        Err((_, error)) => pgrx::log!("pg_rag job worker: {}", error.message),
    }
}

/// Installs a handler. The default one of a worker raises its error in the middle of whatever runs.
fn handle(signal: c_int, handler: unsafe extern "C-unwind" fn(c_int)) {
    // SAFETY: a zeroed action is a valid one, and the handler is PostgreSQL's own for this signal.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handler as usize;
        action.sa_flags = libc::SA_RESTART;
        libc::sigemptyset(&raw mut action.sa_mask);
        libc::sigaction(signal, &raw const action, std::ptr::null_mut());
    }
}

/// A value, or an error with its SQLSTATE.
type Outcome<T> = std::result::Result<T, (String, Error)>;

fn file(result: std::io::Result<()>) -> Outcome<()> {
    result.map_err(|e| error::failure(Error::io(marks::FOLDER, &e)))
}

/// Runs jobs until none is due.
fn work(database: u32) -> Outcome<()> {
    if !transaction(None, job::is_installed)? {
        return file(marks::clear(database));
    }
    // Beside a worker that is stuck, only what has outlived its lease may be taken.
    let alone = transaction(None, job::take_turn)?;
    transaction(None, || job::recover(alone))?;
    let mut missed = false;
    let mut failed = Vec::new();
    loop {
        check_for_interrupts!();
        reload();
        file(marks::beat(database))?;
        if let Some(job) = transaction(None, || job::claim(guc::job_lease()))? {
            missed = false;
            run(&job, database, &mut failed)?;
            continue;
        }
        // Whoever commits a job sets the mark afterwards: either the mark comes after this, or the job is seen below.
        file(marks::clear(database))?;
        if tidy(&mut failed, Extent::Step) {
            file(marks::set(database, 0))?;
            continue;
        }
        match transaction(None, job::next_due)? {
            // The mark must be there while a job runs, or nobody would come after this worker.
            Some(0) if !missed => {
                missed = true;
                file(marks::set(database, 0))?;
            }
            // Some transaction has locked what is due. Waiting for it would keep the database from being dropped.
            Some(0) => return file(marks::set(database, LOCKED_PAUSE)),
            Some(milliseconds) => return file(marks::set(database, milliseconds.unsigned_abs())),
            None => return Ok(()),
        }
    }
}

/// Merges segments of the BM25 index a step in each place that has many, for a moment at most; says whether there is more to
/// do. Where it `failed` this worker does not try again, and goes on with the others.
fn tidy(failed: &mut Vec<Place>, extent: Extent) -> bool {
    report(Some("pg_rag compaction"));
    let places = transaction(None, || compaction::places(None)).unwrap_or_else(|(_, error)| {
        pgrx::log!("pg_rag compaction: {}", error.message);
        Vec::new()
    });
    let (mut more, mut merged, started) = (false, false, Instant::now());
    for place in places {
        // Jobs have their turn, too.
        if merged && started.elapsed() > MOMENT {
            more = true;
            break;
        }
        if failed.contains(&place) {
            continue;
        }
        check_for_interrupts!();
        match transaction(None, || compaction::compact(&place, extent)) {
            Ok(compacted) => {
                merged |= compacted.merged > 0;
                more |= compacted.more;
            }
            Err((_, error)) => {
                pgrx::log!("pg_rag compaction of collection {}: {}", place.collection_id, error.message);
                failed.push(place);
            }
        }
    }
    report(None);
    more
}

/// Runs one attempt and records its end.
fn run(job: &Job, database: u32, failed: &mut Vec<Place>) -> Outcome<()> {
    let attempted = attempt(job, database, failed);
    report(None);
    match attempted {
        Ok(()) => transaction(None, || job::finish(job)),
        Err((sqlstate, error)) => {
            pgrx::log!(
                "pg_rag job {} ({} \"{}\"), attempt {}: {}",
                job.id,
                job.work.name(),
                job.source,
                job.attempt,
                error.message
            );
            transaction(None, || job::fail(job, &sqlstate, &error))
        }
    }
}

/// Whoever else writes passages meanwhile leaves small segments, so these are merged between the steps.
fn attempt(job: &Job, database: u32, failed: &mut Vec<Place>) -> Outcome<()> {
    let doing = format!("pg_rag {} \"{}\"", job.work.name(), job.source);
    report(Some(&doing));
    let mut tidied = Instant::now();
    let role = transaction(None, || role(&job.requested_by))?;
    let mut attempt = Attempt::new(job.clone());
    loop {
        check_for_interrupts!();
        reload();
        let (allowed, waits) = (guc::allowed(), guc::waits());
        let step =
            caught(|| attempt.outside(waits)).and_then(|()| transaction(Some(role), || attempt.step(allowed, waits)));
        match step {
            Ok(Step::More(progress)) => {
                let _ = marks::beat(database);
                transaction(None, || job::renew(job, progress, guc::job_lease()))?;
                if tidied.elapsed() > STRETCH {
                    tidy(failed, Extent::ShortStep);
                    report(Some(&doing));
                    tidied = Instant::now();
                }
            }
            Ok(Step::Done) => return Ok(()),
            Err(failure) => {
                // The run of a sync must not stay open; that it cannot be closed is the lesser news.
                let _ = transaction(Some(role), || attempt.abandon(&failure.1.message));
                return Err(failure);
            }
        }
    }
}

/// The role of a name.
fn role(name: &str) -> Result<pg_sys::Oid> {
    let text = CString::new(name).map_err(|_| Error::internal("the name of a role has a NUL"))?;
    // SAFETY: a look into a catalog, in a transaction.
    match unsafe { pg_sys::get_role_oid(text.as_ptr(), true) } {
        pg_sys::InvalidOid => {
            Err(Error::new(Kind::NotFound, format!("role \"{name}\" that queued the job does not exist any more"))
                .with_hint("Queue it again: SELECT rag.retry(job_id) FROM rag.failed_jobs;"))
        }
        role => Ok(role),
    }
}

/// Runs `body` in a transaction of its own, with the rights of `role` if one is given.
///
/// An error of ours or of PostgreSQL undoes it and is returned; the end of this process (a stop, a terminated backend) is
/// not an error and does not return.
fn transaction<T>(role: Option<pg_sys::Oid>, body: impl FnOnce() -> Result<T>) -> Outcome<T> {
    // SAFETY: the calls of a worker's transaction in their order; the abort resets user, snapshot and memory.
    unsafe {
        pg_sys::SetCurrentStatementStartTimestamp();
        pg_sys::StartTransactionCommand();
        pg_sys::PushActiveSnapshot(pg_sys::GetTransactionSnapshot());
        let (mut user, mut context) = (pg_sys::InvalidOid, 0);
        pg_sys::GetUserIdAndSecContext(&raw mut user, &raw mut context);
        if let Some(role) = role {
            pg_sys::SetUserIdAndSecContext(role, context | pg_sys::SECURITY_LOCAL_USERID_CHANGE as c_int);
        }
        let result: Outcome<T> = PgTryBuilder::new(AssertUnwindSafe(|| {
            // A lock that somebody holds for so long costs the attempt, not the worker.
            let patient = || spi::with_settings(&[(c"lock_timeout", LOCK_TIMEOUT)], body);
            let value = spi::guarded(patient).map_err(error::failure)?;
            pg_sys::SetUserIdAndSecContext(user, context);
            pg_sys::PopActiveSnapshot();
            // Deferred constraints are checked here, so this can fail like any statement.
            pg_sys::CommitTransactionCommand();
            Ok(value)
        }))
        .catch_others(|caught: CaughtError| Err(error::failure_of(&caught)))
        .execute();
        if result.is_err() {
            pg_sys::AbortCurrentTransaction();
        }
        pg_sys::pgstat_report_stat(true);
        result
    }
}

/// Runs `body` outside of a transaction; an error of PostgreSQL (a cancelled wait) is returned.
fn caught<T>(body: impl FnOnce() -> Result<T>) -> Outcome<T> {
    PgTryBuilder::new(AssertUnwindSafe(|| body().map_err(error::failure)))
        .catch_others(|caught: CaughtError| Err(error::failure_of(&caught)))
        .execute()
}

/// Says in pg_stat_activity what is being done.
fn report(doing: Option<&str>) {
    let text = doing.and_then(|text| CString::new(text).ok());
    let state = match text {
        Some(_) => pg_sys::BackendState::STATE_RUNNING,
        None => pg_sys::BackendState::STATE_IDLE,
    };
    // SAFETY: the text is copied.
    unsafe { pg_sys::pgstat_report_activity(state, text.as_ref().map_or(std::ptr::null(), |t| t.as_ptr())) };
}

/// Follows changes of the configuration.
fn reload() {
    // SAFETY: the flag is set by this process's own handler.
    unsafe {
        if pg_sys::ConfigReloadPending != 0 {
            pg_sys::ConfigReloadPending = 0;
            pg_sys::ProcessConfigFile(pg_sys::GucContext::PGC_SIGHUP);
        }
    }
}
