// SPDX-License-Identifier: PostgreSQL

//! What an ingestion costs those who wait for one vector.
//!
//! The promise: a query never waits for more than one bulk micro-batch, so beside an ingestion its median is at most
//! three times the median of an idle machine (both use the same cores) plus one micro-batch. All three are measured in
//! one run: the query alone, micro-batches alone, and the query while another session ingests documents without end, in
//! a transaction that is rolled back.

use super::{Bench, Connect};
use crate::db;
use crate::latency::{Latency, shown};
use postgres::Client;
use rag_core::Result;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// Bulk requests that are timed alone.
const REQUESTS: usize = 10;
/// Texts of one of them, each longer than any window; so many are bulk work.
const TEXTS: i32 = 16;
/// Full windows of 256 tokens in one micro-batch of the engine.
const IN_A_BATCH: i32 = 2;
/// Words of one ingested document: some dozens of chunks.
const WORDS: i32 = 8000;

const QUERY: &str = "SELECT rag.embed_query($1, $2)";
const BULK: &str =
    "SELECT count(*) FROM rag.embed(ARRAY(SELECT repeat('word' || i || ' ', 400) FROM generate_series(1, $1) i), $2)";
const INGEST: &str = "SELECT chunks::int8 FROM rag.ingest(
    (SELECT string_agg('word' || i % 997 || CASE WHEN i % 12 = 0 THEN '.' ELSE '' END, ' ') FROM generate_series(1, $1) i),
    $2::text, 'text', collection => 'bench_load')";

/// The comparison as Markdown.
pub fn measure(connect: Connect<'_>, request: &Bench, texts: &[String]) -> Result<String> {
    let mut client = connect()?;
    let model = super::floor::model_of(&mut client, &request.collection)?.0;
    let failed = |e: postgres::Error| db::sql("could not embed", &e);
    // Text over the window is cut with a warning, which is not the point here.
    client.batch_execute("SET client_min_messages = error").map_err(failed)?;
    let mut batch = Latency::default();
    for at in 0..=REQUESTS {
        let started = Instant::now();
        client.execute(BULK, &[&TEXTS, &model]).map_err(failed)?;
        // The first loads the session.
        if at > 0 {
            batch.push(started.elapsed() / (TEXTS / IN_A_BATCH).unsigned_abs());
        }
    }
    let idle = queries(&mut client, texts, &model, request.rounds)?;
    let stop = AtomicBool::new(false);
    let (busy, chunks) = std::thread::scope(|scope| -> Result<_> {
        let load = scope.spawn(|| -> Result<i64> {
            let mut client = connect()?;
            let create = "BEGIN; SET LOCAL client_min_messages = error";
            client.batch_execute(create).map_err(failed)?;
            client.execute("SELECT rag.create_collection('bench_load', $1)", &[&model]).map_err(failed)?;
            let (mut document, mut chunks) = (0, 0);
            while !stop.load(Ordering::Relaxed) {
                document += 1;
                let uri = format!("load{document}");
                chunks += client.query_one(INGEST, &[&WORDS, &uri]).map_err(failed)?.get::<_, i64>(0);
            }
            client.batch_execute("ROLLBACK").map_err(failed)?;
            Ok(chunks)
        });
        std::thread::sleep(std::time::Duration::from_secs(1));
        let busy = queries(&mut client, texts, &model, request.rounds);
        stop.store(true, Ordering::Relaxed);
        let chunks =
            load.join().unwrap_or_else(|_| Err(rag_core::Error::internal("the ingesting session panicked")))?;
        Ok((busy?, chunks))
    })?;
    let (Some(idle_p50), Some(busy_p50), Some(batch_p50)) = (idle.p50(), busy.p50(), batch.p50()) else {
        return Ok("## What an ingestion costs a query\n\nNothing was measured.\n".to_owned());
    };
    let bound = 3.0 * idle_p50 + batch_p50;
    let verdict = if busy_p50 <= bound { "kept" } else { "broken" };
    Ok(format!(
        "## What an ingestion costs a query\n\n| | p50 | p95 |\n|---|---|---|\n| rag.embed_query, idle | {} | {} |\n\
         | rag.embed_query beside rag.ingest | {} | {} |\n| one bulk micro-batch ({IN_A_BATCH} full windows), alone | {} | {} |\n\n\
         Promised: at most 3 × idle + one micro-batch = {bound:.2} ms; {verdict}. {chunks} chunks were ingested meanwhile.\n",
        shown(idle.p50()),
        shown(idle.p95()),
        shown(busy.p50()),
        shown(busy.p95()),
        shown(batch.p50()),
        shown(batch.p95()),
    ))
}

fn queries(client: &mut Client, texts: &[String], model: &str, rounds: usize) -> Result<Latency> {
    let mut latency = Latency::default();
    for text in (0..rounds).flat_map(|_| texts) {
        let started = Instant::now();
        client.execute(QUERY, &[text, &model]).map_err(|e| db::sql("could not embed", &e))?;
        latency.push(started.elapsed());
    }
    Ok(latency)
}
