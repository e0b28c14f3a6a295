// SPDX-License-Identifier: PostgreSQL

//! What the processes hold, against the limits that are configured.
//!
//! A session searches an invented corpus whose index is larger than `pg_rag.lexical_cache`: without that cache, with a quarter
//! of it and with all of it; what the cache adds to what the session holds alone is told beside the setting. The engine and its children are measured
//! after bulk work, and at their largest while a job reads a whole source again, together with the background workers.

use super::figure::{Figure, Kind, Promise, Table, number};
use super::judged::Judged;
use super::processes::{self, Memory, Role};
use super::turns::Connect;
use super::{Bench, database, lexical};
use crate::db;
use postgres::Client;
use rag_core::{Error, Result};
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Queries of a session, unless it is said.
const QUERIES: usize = 1000;
/// Pause between two looks at the processes.
const PAUSE: Duration = Duration::from_millis(20);
/// The longest wait for the job.
const PATIENCE: Duration = Duration::from_secs(600);

/// Measures it.
pub fn measure(dsn: Option<&str>, request: &Bench, judged: &Judged) -> Result<Figure> {
    let failed = |e: postgres::Error| db::sql("could not measure", &e);
    let mut client = db::connect(dsn)?;
    let (_, postmaster) = processes::of_session(&mut client)?;
    // The settings exist once the library is loaded.
    client.batch_execute("LOAD 'pg_rag'").map_err(failed)?;
    let cache = setting(&mut client, "pg_rag.lexical_cache")?;
    let limit = setting(&mut client, "pg_rag.engine_memory_limit")?;
    let chunks = request.size();
    let queries = lexical::growth::queries(chunks, request.queries.unwrap_or(QUERIES));
    // The smaller one is full after few searches.
    let caches = [(cache / 4.0).floor(), cache];
    let Sessions { bytes, new, without, with } =
        database::with_own(dsn, |own| sessions(own, chunks, &queries, caches))?;

    let mut table = Table::new(
        "",
        &[
            ("process", Kind::Text),
            ("resident", Kind::Megabytes),
            ("proportional", Kind::Megabytes),
            ("alone", Kind::Megabytes),
            ("limit", Kind::Megabytes),
        ],
    );
    table.rows.push(row("a session, new", Some(new), None));
    table.rows.push(row("after the searches, without a cache", Some(without), None));
    let mut promises = Vec::new();
    for (cache, with) in caches.into_iter().zip(with) {
        table.rows.push(row("after the searches, with `pg_rag.lexical_cache`", Some(with), Some(cache)));
        let text = format!("what a cache of {cache} MB adds to what a session holds alone, in MB");
        promises.push(Promise::new(text, cache, with.private - without.private));
    }

    // Bulk work makes the engine as large as it becomes.
    client.batch_execute("SET client_min_messages = error").map_err(failed)?;
    let bulk = "SELECT count(*) FROM rag.embed(ARRAY(SELECT repeat('word' || i || ' ', 400) FROM generate_series(1, 64) i), $1)";
    client.query_one(bulk, &[&judged.model]).map_err(failed)?;
    let resting = processes::by_role(postmaster);
    let working = while_a_job_runs(&mut client, postmaster, judged)?;
    let engine = resting.get(&Role::Engine).copied();
    let most = |role| resting.get(&role).into_iter().chain(working.get(&role)).copied().reduce(Memory::or_more);
    let limit = (limit > 0.0).then_some(limit);
    table.rows.push(row("engine, after bulk work", engine, limit));
    table.rows.push(row("children of the engine, all, at most", most(Role::EngineWorker), None));
    table.rows.push(row("launcher, at most", most(Role::Launcher), None));
    table.rows.push(row("job worker, at most", most(Role::JobWorker), None));
    let mut figure = Figure::new(
        "Memory of the processes",
        format!(
            "In units of 2²⁰ bytes, from the kernel: *resident* counts the server's shared buffers in each process that has \
             touched them, *proportional* divides what is shared, *alone* is what nobody else has. {} searches of {chunks} invented \
             chunks, whose index has {:.1} MB; the rest while a job reads {} again.",
            queries.len(),
            bytes as f64 / f64::from(1 << 20),
            judged.set.name()
        ),
    );
    figure.tables.push(table);
    figure.promises = promises;
    if let (Some(engine), Some(limit)) = (engine, limit) {
        let text = "the engine's resident memory after bulk work, in MB";
        figure.promises.push(Promise::new(text, limit, engine.resident));
    }
    Ok(figure)
}

fn row(name: &str, memory: Option<Memory>, limit: Option<f64>) -> Vec<Value> {
    let of = |part: fn(Memory) -> f64| number(memory.map(part));
    vec![name.into(), of(|m| m.resident), of(|m| m.proportional), of(|m| m.private), number(limit)]
}

/// A setting in units of 2²⁰ bytes.
fn setting(client: &mut Client, name: &str) -> Result<f64> {
    let sql = "SELECT pg_size_bytes(current_setting($1))::float8 / 1048576";
    Ok(client.query_one(sql, &[&name]).map_err(|e| db::sql(name, &e))?.get(0))
}

/// What sessions hold that search the invented corpus.
struct Sessions {
    /// Bytes of its index.
    bytes: i64,
    new: Memory,
    without: Memory,
    with: [Memory; 2],
}

fn sessions(connect: Connect<'_>, chunks: u64, queries: &[String], caches: [f64; 2]) -> Result<Sessions> {
    let mut client = connect()?;
    lexical::growth::load(&mut client, chunks, &|_| None)?;
    for sql in ["SELECT rag.reindex_lexical($1)", "SELECT rag.compact($1)"] {
        client.execute(sql, &[&lexical::NAME]).map_err(|e| db::sql(sql, &e))?;
    }
    let bytes = lexical::status(&mut client)?.bytes;
    let (new, without) = session(connect, 0.0, queries)?;
    let with = [session(connect, caches[0], queries)?.1, session(connect, caches[1], queries)?.1];
    Ok(Sessions { bytes, new, without, with })
}

/// What a new session holds before and after some searches with so much cache.
fn session(connect: Connect<'_>, cache: f64, queries: &[String]) -> Result<(Memory, Memory)> {
    let mut client = connect()?;
    let (pid, _) = processes::of_session(&mut client)?;
    let before = processes::memory(pid)?;
    let set = format!("SET pg_rag.lexical_cache = '{cache:.0}MB'");
    client.batch_execute(&format!("LOAD 'pg_rag'; {set}")).map_err(|e| db::sql(&set, &e))?;
    let search = client.prepare(lexical::SEARCH).map_err(|e| db::sql(lexical::SEARCH, &e))?;
    for query in queries {
        client.query_one(&search, &[query]).map_err(|e| db::sql(query, &e))?;
    }
    Ok((before, processes::memory(pid)?))
}

/// The most that the processes of each role held while a job read the collection's source again.
fn while_a_job_runs(client: &mut Client, postmaster: i32, judged: &Judged) -> Result<BTreeMap<Role, Memory>> {
    let failed = |e: postgres::Error| db::sql("could not run a job", &e);
    client.execute("SELECT rag.enqueue_sync($1)", &[&judged.collection]).map_err(failed)?;
    let pending = "SELECT count(*) FROM rag.jobs WHERE source = $1 AND finished_at IS NULL";
    let (mut most, started) = (BTreeMap::new(), Instant::now());
    loop {
        for (role, memory) in processes::by_role(postmaster) {
            most.entry(role).and_modify(|m: &mut Memory| *m = m.or_more(memory)).or_insert(memory);
        }
        if client.query_one(pending, &[&judged.collection]).map_err(failed)?.get::<_, i64>(0) == 0 {
            return Ok(most);
        }
        if started.elapsed() > PATIENCE {
            return Err(Error::invalid(format!("the job of \"{}\" takes too long", judged.collection)));
        }
        std::thread::sleep(PAUSE);
    }
}
