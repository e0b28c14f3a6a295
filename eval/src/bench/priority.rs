// SPDX-License-Identifier: PostgreSQL

//! What an ingestion costs those who wait for one vector.
//!
//! The promise: a query never waits for more than one bulk micro-batch, so beside an ingestion its median is at most
//! three times the median of an idle machine (both use the same cores) plus one micro-batch. All three are measured in
//! one run: the query alone, micro-batches alone, and the query while another session ingests documents without end, in
//! a transaction that is rolled back.

use super::Bench;
use super::figure::{Figure, Kind, Promise, Table, number};
use super::judged::Judged;
use super::turns::Connect;
use crate::db;
use crate::latency::Latency;
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

/// Measures it.
pub fn measure(connect: Connect<'_>, request: &Bench, judged: &Judged) -> Result<Figure> {
    let Judged { texts, model, .. } = judged;
    let mut client = connect()?;
    let failed = |e: postgres::Error| db::sql("could not embed", &e);
    // Text over the window is cut with a warning, which is not the point here.
    client.batch_execute("SET client_min_messages = error").map_err(failed)?;
    let mut batch = Latency::default();
    for at in 0..=REQUESTS {
        let started = Instant::now();
        client.execute(BULK, &[&TEXTS, model]).map_err(failed)?;
        // The first loads the session.
        if at > 0 {
            batch.push(started.elapsed() / (TEXTS / IN_A_BATCH).unsigned_abs());
        }
    }
    let idle = queries(&mut client, texts, model, request.rounds)?;
    let stop = AtomicBool::new(false);
    let (busy, chunks) = std::thread::scope(|scope| -> Result<_> {
        let load = scope.spawn(|| -> Result<i64> {
            let mut client = connect()?;
            let create = "BEGIN; SET LOCAL client_min_messages = error";
            client.batch_execute(create).map_err(failed)?;
            client.execute("SELECT rag.create_collection('bench_load', $1)", &[model]).map_err(failed)?;
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
        let busy = queries(&mut client, texts, model, request.rounds);
        stop.store(true, Ordering::Relaxed);
        let chunks =
            load.join().unwrap_or_else(|_| Err(rag_core::Error::internal("the ingesting session panicked")))?;
        Ok((busy?, chunks))
    })?;
    let mut figure = Figure::new(
        "What an ingestion costs a query",
        format!(
            "{} questions of {}, {} rounds, alone and beside a session that ingests documents without end; milliseconds seen \
             from a client on the same machine. {chunks} chunks were ingested meanwhile.",
            texts.len(),
            judged.set.name(),
            request.rounds
        ),
    );
    if let (Some(idle), Some(busy), Some(batch)) = (idle.p50(), busy.p50(), batch.p50()) {
        let promised = "the median beside an ingestion, in milliseconds, within 3 × idle + one micro-batch";
        figure.promises.push(Promise::new(promised, 3.0 * idle + batch, busy));
    }
    let mut table = Table::new("", &[("", Kind::Text), ("p50", Kind::Milliseconds), ("p95", Kind::Milliseconds)]);
    let alone = format!("one bulk micro-batch ({IN_A_BATCH} full windows), alone");
    let rows = [("rag.embed_query, idle", idle), ("rag.embed_query beside rag.ingest", busy), (&alone, batch)];
    for (name, times) in rows {
        table.rows.push(vec![name.into(), number(times.p50()), number(times.p95())]);
    }
    figure.tables.push(table);
    Ok(figure)
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
