// SPDX-License-Identifier: PostgreSQL

//! What bulk work costs those who wait for one vector.
//!
//! The promise: a query never waits for more than one bulk micro-batch, so beside a sync its median is at most three
//! times the median of an idle machine (bulk work uses the same cores) plus one micro-batch. All three are measured in
//! one run: the query alone, the micro-batch alone, and the query while another session has texts embedded without end.

use super::{Bench, Connect};
use crate::db;
use crate::latency::{Latency, shown};
use postgres::Client;
use rag_core::Result;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// Micro-batches that are timed alone.
const BATCHES: usize = 30;
/// Texts of one bulk request, each longer than any window.
const BULK_TEXTS: i32 = 64;
/// Full windows in one micro-batch of the engine.
const IN_A_BATCH: i32 = 2;

const QUERY: &str = "SELECT rag.embed_query($1, $2)";
const BULK: &str =
    "SELECT count(*) FROM rag.embed(ARRAY(SELECT repeat('word' || i || ' ', 400) FROM generate_series(1, $1) i), $2)";

/// The comparison as Markdown.
pub fn measure(connect: Connect<'_>, request: &Bench, texts: &[String]) -> Result<String> {
    let mut client = connect()?;
    let model = super::floor::model_of(&mut client, &request.collection)?.0;
    let failed = |e: postgres::Error| db::sql("could not embed", &e);
    // Text over the window is cut with a warning, which is not the point here.
    client.batch_execute("SET client_min_messages = error").map_err(failed)?;
    let mut batch = Latency::default();
    for at in 0..=BATCHES {
        let started = Instant::now();
        client.execute(BULK, &[&IN_A_BATCH, &model]).map_err(failed)?;
        // The first loads the session.
        if at > 0 {
            batch.push(started.elapsed());
        }
    }
    let idle = queries(&mut client, texts, &model, request.rounds)?;
    let stop = AtomicBool::new(false);
    let (busy, requests) = std::thread::scope(|scope| -> Result<_> {
        let bulk = scope.spawn(|| -> Result<usize> {
            let mut client = connect()?;
            client.batch_execute("SET client_min_messages = error").map_err(failed)?;
            let mut requests = 0;
            while !stop.load(Ordering::Relaxed) {
                client.execute(BULK, &[&BULK_TEXTS, &model]).map_err(failed)?;
                requests += 1;
            }
            Ok(requests)
        });
        std::thread::sleep(std::time::Duration::from_secs(1));
        let busy = queries(&mut client, texts, &model, request.rounds);
        stop.store(true, Ordering::Relaxed);
        let requests = bulk.join().unwrap_or_else(|_| Err(rag_core::Error::internal("the bulk session panicked")))?;
        Ok((busy?, requests))
    })?;
    let (Some(idle_p50), Some(busy_p50), Some(batch_p50)) = (idle.p50(), busy.p50(), batch.p50()) else {
        return Ok("## What bulk work costs a query\n\nNothing was measured.\n".to_owned());
    };
    let bound = 3.0 * idle_p50 + batch_p50;
    let verdict = if busy_p50 <= bound { "kept" } else { "broken" };
    Ok(format!(
        "## What bulk work costs a query\n\n| | p50 | p95 |\n|---|---|---|\n| rag.embed_query, idle | {} | {} |\n\
         | rag.embed_query beside bulk work | {} | {} |\n| one bulk micro-batch ({IN_A_BATCH} full windows), alone | {} | {} |\n\n\
         Promised: at most 3 × idle + one micro-batch = {bound:.2} ms; {verdict}. The bulk session made {requests} requests of \
         {BULK_TEXTS} full windows meanwhile.\n",
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
