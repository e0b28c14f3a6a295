// SPDX-License-Identifier: PostgreSQL

//! Tables `rag.job` and `rag.job_failure`: the durable queue of background work.
//!
//! A job waits (`pending`), runs under a lease (`running`) and ends (`done`, or `dead` when it is out of attempts). An
//! attempt is counted when it begins, in a transaction of its own, so that one which kills its worker counts too; why
//! it failed is recorded in another one. At most one job of a kind waits for a source: it does whatever there is to do
//! when it starts, so a second request only hurries it.

use crate::spi::{self, Row};
use rag_core::{Error, Kind, Result};

/// How long a worker may be silent before its job is anybody's.
const LEASE: &str = "interval '5 minutes'";
/// How long done jobs are kept.
const KEPT: &str = "interval '7 days'";

/// What a job does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Work {
    /// What `CALL rag.sync` does; chunks whose text has no vector yet are left to [`Work::Embed`].
    Sync,
    /// Vectors for the chunks of a source that have none.
    Embed,
}

impl Work {
    /// Its name in the table.
    pub fn name(self) -> &'static str {
        match self {
            Work::Sync => "sync",
            Work::Embed => "embed",
        }
    }
}

/// A job in hand.
#[derive(Debug, Clone)]
pub struct Job {
    /// Key.
    pub id: i64,
    /// What it does.
    pub work: Work,
    /// Source it works on.
    pub source_id: i64,
    /// Name of that source.
    pub source: String,
    /// Role whose rights it has.
    pub requested_by: String,
    /// This attempt, from 1.
    pub attempt: i32,
}

/// Queues work on a source for the current user, or hurries what waits already. Returns the job.
pub fn enqueue(work: Work, source_id: i64) -> Result<i64> {
    let sql = "INSERT INTO rag.job AS j (kind, source_id) VALUES ($1, $2)
               ON CONFLICT (kind, source_id) WHERE state = 'pending'
               DO UPDATE SET run_after = least(j.run_after, pg_catalog.now()), requested_by = current_user
            RETURNING id";
    spi::write(sql, &[work.name().into(), source_id.into()], |row| row.get(1))?
        .pop()
        .ok_or_else(|| Error::internal("no job was written"))
}

/// Gives a dead job its attempts back, in the name of the current user; returns its kind and source.
pub fn retry(id: i64) -> Result<()> {
    let sql = "UPDATE rag.job SET state = 'pending', attempts = 0, run_after = pg_catalog.now(), finished_at = NULL,
                      requested_by = current_user
                WHERE id = $1 AND state = 'dead'
                  AND NOT EXISTS (SELECT FROM rag.job w WHERE w.state = 'pending' AND w.kind = job.kind
                                     AND w.source_id = job.source_id)
            RETURNING id";
    if !spi::write(sql, &[id.into()], |row| row.get::<i64>(1))?.is_empty() {
        return Ok(());
    }
    let sql = "SELECT state FROM rag.job WHERE id = $1";
    match spi::select_one(sql, &[id.into()], |row| row.get::<String>(1))?.as_deref() {
        None => Err(Error::new(Kind::NotFound, format!("job {id} does not exist"))
            .with_hint("SELECT * FROM rag.failed_jobs; lists the jobs that can be tried again.")),
        Some("dead") => Err(Error::new(Kind::InUse, format!("another job of the same kind as job {id} waits already"))
            .with_detail("It does what the dead one would do.")),
        Some(state) => Err(Error::new(Kind::NotReady, format!("job {id} is {state}, not dead"))
            .with_hint("SELECT * FROM rag.failed_jobs; lists the jobs that can be tried again.")),
    }
}

/// Takes back what workers of this database left running when they died, and forgets what was done long ago. Only for
/// the one worker of a database.
pub fn recover() -> Result<()> {
    // What waits beside a job that was running would do the same.
    spi::execute(
        "DELETE FROM rag.job p USING rag.job r
          WHERE p.state = 'pending' AND r.state = 'running' AND p.kind = r.kind AND p.source_id = r.source_id",
        &[],
    )?;
    let died = "The worker ended during this attempt; the server's log has the reason.";
    spi::execute(
        "INSERT INTO rag.job_failure (job_id, attempt, sqlstate, message, detail)
         SELECT id, attempts, '57P01', 'the job worker ended', $1 FROM rag.job
          WHERE state = 'running' AND attempts >= max_attempts",
        &[died.into()],
    )?;
    spi::execute(
        "UPDATE rag.job SET lease_until = NULL, worker_pid = NULL,
                state = CASE WHEN attempts >= max_attempts THEN 'dead' ELSE 'pending' END,
                finished_at = CASE WHEN attempts >= max_attempts THEN pg_catalog.clock_timestamp() END
          WHERE state = 'running'",
        &[],
    )?;
    spi::execute(
        &format!("DELETE FROM rag.job WHERE state = 'done' AND finished_at < pg_catalog.now() - {KEPT}"),
        &[],
    )?;
    Ok(())
}

/// Begins an attempt of the job that has been due longest.
pub fn claim() -> Result<Option<Job>> {
    let sql = format!(
        "UPDATE rag.job j SET state = 'running', attempts = attempts + 1, worker_pid = pg_catalog.pg_backend_pid(),
                lease_until = pg_catalog.clock_timestamp() + {LEASE}, progress = 0
           FROM rag.source s
          WHERE s.id = j.source_id
            AND j.id = (SELECT id FROM rag.job WHERE state = 'pending' AND run_after <= pg_catalog.clock_timestamp()
                         ORDER BY run_after, id LIMIT 1 FOR UPDATE SKIP LOCKED)
      RETURNING j.id, j.kind, j.source_id, s.name, j.requested_by, j.attempts"
    );
    Ok(spi::write(&sql, &[], read)?.pop())
}

fn read(row: &Row) -> Result<Job> {
    Ok(Job {
        id: row.get(1)?,
        work: match row.get::<String>(2)?.as_str() {
            "embed" => Work::Embed,
            _ => Work::Sync,
        },
        source_id: row.get(3)?,
        source: row.get(4)?,
        requested_by: row.get(5)?,
        attempt: row.get(6)?,
    })
}

/// Renews the lease and says how far the attempt is. Fails when the job is not ours any more.
pub fn renew(job: &Job, progress: i64) -> Result<()> {
    let sql = format!(
        "UPDATE rag.job SET lease_until = pg_catalog.clock_timestamp() + {LEASE}, progress = $2
          WHERE id = $1 AND state = 'running' AND attempts = $3"
    );
    match spi::execute(&sql, &[job.id.into(), progress.into(), job.attempt.into()])? {
        0 => Err(Error::new(Kind::InUse, format!("job {} was taken away", job.id))),
        _ => Ok(()),
    }
}

/// Ends a job well.
pub fn finish(job: &Job) -> Result<()> {
    let sql = "UPDATE rag.job SET state = 'done', lease_until = NULL, worker_pid = NULL,
                      finished_at = pg_catalog.clock_timestamp() WHERE id = $1 AND state = 'running'";
    spi::execute(sql, &[job.id.into()]).map(|_| ())
}

/// Records why an attempt failed; the job waits twice as long as after the last failure, or is dead.
pub fn fail(job: &Job, sqlstate: &str, error: &Error) -> Result<()> {
    let sql = "INSERT INTO rag.job_failure (job_id, attempt, sqlstate, message, detail, hint)
               SELECT id, $2, $3, $4, $5, $6 FROM rag.job WHERE id = $1 FOR KEY SHARE";
    let args = [
        job.id.into(),
        job.attempt.into(),
        sqlstate.into(),
        error.message.as_str().into(),
        error.detail.clone().into(),
        error.hint.clone().into(),
    ];
    spi::execute(sql, &args)?;
    // A job that was queued meanwhile would do the same.
    spi::execute(
        "DELETE FROM rag.job p USING rag.job r WHERE r.id = $1 AND p.state = 'pending' AND p.kind = r.kind
            AND p.source_id = r.source_id AND p.id <> r.id",
        &[job.id.into()],
    )?;
    let sql = "UPDATE rag.job SET lease_until = NULL, worker_pid = NULL,
                      state = CASE WHEN attempts >= max_attempts THEN 'dead' ELSE 'pending' END,
                      finished_at = CASE WHEN attempts >= max_attempts THEN pg_catalog.clock_timestamp() END,
                      run_after = pg_catalog.clock_timestamp()
                                  + least(interval '5 seconds' * pg_catalog.power(2, attempts - 1), interval '1 hour')
                WHERE id = $1 AND state = 'running'";
    spi::execute(sql, &[job.id.into()]).map(|_| ())
}

/// Milliseconds until the next job is due, 0 when one is; nothing when none waits.
pub fn next_due() -> Result<Option<i64>> {
    let sql = "SELECT pg_catalog.ceil(greatest(extract(epoch FROM min(run_after) - pg_catalog.clock_timestamp()), 0)
                                      * 1000)::bigint
                 FROM rag.job WHERE state = 'pending' HAVING pg_catalog.count(*) > 0";
    spi::select_one(sql, &[], |row| row.get(1))
}

/// Whether the extension is in this database.
pub fn is_installed() -> Result<bool> {
    let sql = "SELECT EXISTS (SELECT FROM pg_catalog.pg_extension WHERE extname = 'pg_rag')";
    Ok(spi::select_one(sql, &[], |row| row.get(1))?.unwrap_or(false))
}

/// Takes a lock of the session if nobody has it.
pub fn lock(key: i64) -> Result<bool> {
    let sql = "SELECT pg_catalog.pg_try_advisory_lock($1)";
    Ok(spi::select_one(sql, &[key.into()], |row| row.get(1))?.unwrap_or(false))
}
