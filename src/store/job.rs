// SPDX-License-Identifier: PostgreSQL

//! Tables `rag.job` and `rag.job_failure`: the durable queue of background work.
//!
//! A job waits (`pending`), runs under a lease (`running`) and ends (`done`, or `dead` when it is out of attempts). An
//! attempt is counted when it begins, in a transaction of its own, so that one which kills its worker counts too; why
//! it failed is recorded in another one. A worker that is silent for longer than the lease has lost its job: the next takes
//! it, and whatever the old one still does to it fails. At most one job of a kind waits for a source: it does whatever there is to do
//! when it starts, so a second request only hurries it.

use crate::spi::{self, Row};
use rag_core::{Error, Kind, Result};
use std::time::Duration;

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

/// Takes back what workers left running: all of it when the caller is the only worker of the database (`alone`), else what
/// has outlived its lease. Forgets what was done long ago.
pub fn recover(alone: bool) -> Result<()> {
    spi::execute("DELETE FROM rag.job j WHERE NOT EXISTS (SELECT FROM rag.source s WHERE s.id = j.source_id)", &[])?;
    let lost = "state = 'running' AND ($1 OR lease_until < pg_catalog.clock_timestamp())";
    // What waits beside a job that was running would do the same.
    spi::execute(
        &format!(
            "DELETE FROM rag.job p USING (SELECT kind, source_id FROM rag.job WHERE {lost}) r
              WHERE p.state = 'pending' AND p.kind = r.kind AND p.source_id = r.source_id"
        ),
        &[alone.into()],
    )?;
    let died = "The worker ended, or was silent for longer than its lease; the server's log may have the reason.";
    spi::execute(
        &format!(
            "INSERT INTO rag.job_failure (job_id, attempt, sqlstate, message, detail)
             SELECT id, attempts, '57P01', 'the job worker was lost', $2 FROM rag.job WHERE {lost}"
        ),
        &[alone.into(), died.into()],
    )?;
    spi::execute(
        &format!(
            "UPDATE rag.job SET lease_until = NULL, worker_pid = NULL,
                    state = CASE WHEN attempts >= max_attempts THEN 'dead' ELSE 'pending' END,
                    finished_at = CASE WHEN attempts >= max_attempts THEN pg_catalog.clock_timestamp() END
              WHERE {lost}"
        ),
        &[alone.into()],
    )?;
    spi::execute(
        &format!("DELETE FROM rag.job WHERE state = 'done' AND finished_at < pg_catalog.now() - {KEPT}"),
        &[],
    )?;
    Ok(())
}

/// Begins an attempt of the job that has been due longest.
pub fn claim(lease: Duration) -> Result<Option<Job>> {
    let sql =
        "UPDATE rag.job j SET state = 'running', attempts = attempts + 1, worker_pid = pg_catalog.pg_backend_pid(),
                lease_until = pg_catalog.clock_timestamp() + pg_catalog.make_interval(secs => $1), progress = 0
           FROM rag.source s
          WHERE s.id = j.source_id
            AND j.id = (SELECT w.id FROM rag.job w
                         WHERE w.state = 'pending' AND w.run_after <= pg_catalog.clock_timestamp()
                           AND EXISTS (SELECT FROM rag.source x WHERE x.id = w.source_id)
                           AND NOT EXISTS (SELECT FROM rag.job r WHERE r.state = 'running' AND r.kind = w.kind
                                              AND r.source_id = w.source_id)
                         ORDER BY w.run_after, w.id LIMIT 1 FOR UPDATE OF w SKIP LOCKED)
      RETURNING j.id, j.kind, j.source_id, s.name, j.requested_by, j.attempts";
    Ok(spi::write(sql, &[lease.as_secs_f64().into()], read)?.pop())
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
pub fn renew(job: &Job, progress: i64, lease: Duration) -> Result<()> {
    let sql = "UPDATE rag.job SET lease_until = pg_catalog.clock_timestamp() + pg_catalog.make_interval(secs => $4),
                      progress = $2
                WHERE id = $1 AND state = 'running' AND attempts = $3";
    match spi::execute(sql, &[job.id.into(), progress.into(), job.attempt.into(), lease.as_secs_f64().into()])? {
        0 => Err(Error::new(Kind::InUse, format!("job {} was taken away", job.id))),
        _ => Ok(()),
    }
}

/// Ends a job well.
pub fn finish(job: &Job) -> Result<()> {
    let sql = "UPDATE rag.job SET state = 'done', lease_until = NULL, worker_pid = NULL,
                      finished_at = pg_catalog.clock_timestamp()
                WHERE id = $1 AND state = 'running' AND attempts = $2";
    spi::execute(sql, &[job.id.into(), job.attempt.into()]).map(|_| ())
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
                                  + least(interval '5 seconds' * pg_catalog.power(2, least(attempts, 12) - 1), interval '1 hour')
                WHERE id = $1 AND state = 'running' AND attempts = $2";
    spi::execute(sql, &[job.id.into(), job.attempt.into()]).map(|_| ())
}

/// Milliseconds until the next job is due, 0 when one is; nothing when none waits.
pub fn next_due() -> Result<Option<i64>> {
    let sql = "SELECT pg_catalog.ceil(greatest(extract(epoch FROM min(run_after) - pg_catalog.clock_timestamp()), 0)
                                      * 1000)::bigint
                 FROM rag.job j WHERE state = 'pending' AND EXISTS (SELECT FROM rag.source s WHERE s.id = j.source_id)
               HAVING pg_catalog.count(*) > 0";
    spi::select_one(sql, &[], |row| row.get(1))
}

/// Whether the extension is in this database.
pub fn is_installed() -> Result<bool> {
    let sql = "SELECT EXISTS (SELECT FROM pg_catalog.pg_extension WHERE extname = 'pg_rag')";
    Ok(spi::select_one(sql, &[], |row| row.get(1))?.unwrap_or(false))
}

/// Makes this session the one that works on jobs, if no other is.
pub fn take_turn() -> Result<bool> {
    spi::lock::try_for_session("rag.job", 0)
}
