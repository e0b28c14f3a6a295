// SPDX-License-Identifier: PostgreSQL

//! Eight sessions that write the same passages and eight that search, while segments are merged.
//!
//! `RAG_LOAD_SECONDS` says for how long, and `RAG_LOAD_MERGING=off` keeps everybody from merging; eval/bench/concurrency.sh
//! runs it both ways and takes the line that begins with `load:`.

use postgres::Client;
use rag_server_tests::bm25::{self, check};
use rag_server_tests::chaos::{Chance, is_full};
use rag_server_tests::{Cluster, Failure, TestResult, with_cluster};
use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const EACH: u64 = 8;
const LABELS: [Option<&str>; 3] = [None, None, Some("red")];

/// Pause of a session between two statements, in milliseconds: the load is the same whether merging is on or off.
const PAUSE: u64 = 10;

/// Errors that are promised to whoever changes what another changes.
fn is_expected(error: &postgres::Error) -> bool {
    // Two that lock the same rows in another order wait for each other, with or without an index: none does here.
    error.code().is_some_and(|c| c.code() == "40001")
}

fn writer(client: &mut Client, id: i64, number: u64, stop: &AtomicBool) -> TestResult<u64> {
    let chance = &mut Chance::new(100 + number);
    let mut done = 0;
    while !stop.load(Ordering::Relaxed) {
        // Rows of all, locked in the order of their keys; not more than about 3,000 are kept.
        let some = format!(
            "(SELECT id FROM rag.chunk WHERE collection_id = {id} AND id % 97 = {} ORDER BY id LIMIT {} FOR UPDATE)",
            chance.below(97),
            1 + chance.below(5)
        );
        let count = 1 + chance.below(5);
        let sql = match chance.below(8) {
            0..=2 => bm25::insert(chance, id, 0, count, &LABELS),
            3 | 4 => format!("UPDATE rag.chunk SET (tsv, dl) = ROW({}) WHERE id IN {some}", bm25::terms(chance)),
            5 => format!("UPDATE rag.chunk SET acl = CASE WHEN acl IS NULL THEN 'red' END WHERE id IN {some}"),
            _ => format!("DELETE FROM rag.chunk WHERE id IN {some}"),
        };
        let rolled_back = chance.below(10) == 0;
        let result = match rolled_back {
            true => client.batch_execute(&format!("BEGIN; {sql}; ROLLBACK")),
            false => client.batch_execute(&sql),
        };
        match result {
            Ok(()) => done += 1,
            Err(error) if is_expected(&error) => client.batch_execute("ROLLBACK")?,
            Err(error) => return Err(Failure::new(format!("{sql}: {}", Failure::from(error)))),
        }
        chance.sleep(PAUSE / 2, PAUSE + PAUSE / 2);
    }
    Ok(done)
}

/// Searches, by a snapshot of its own each time, and now and then compares; returns how long each search took.
fn searcher(client: &mut Client, number: u64, stop: &AtomicBool) -> TestResult<Vec<Duration>> {
    let chance = &mut Chance::new(200 + number);
    let mut times = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        let query = bm25::query(chance);
        if chance.below(20) == 0 {
            let mut transaction =
                client.build_transaction().isolation_level(postgres::IsolationLevel::RepeatableRead).start()?;
            check(&mut transaction, "lex", &query, 20)?;
            transaction.commit()?;
        } else {
            let started = Instant::now();
            let found = bm25::search(client, "lex", &query, 20, "{}")?;
            times.push(started.elapsed());
            let distinct: HashSet<i64> = found.iter().map(|(id, _)| *id).collect();
            assert_eq!(distinct.len(), found.len(), "{query:?}: {found:?}");
        }
        chance.sleep(PAUSE / 2, PAUSE + PAUSE / 2);
    }
    Ok(times)
}

fn load(cluster: &Cluster, seconds: u64, merging: bool) -> TestResult {
    let mut client = cluster.connect()?;
    let id = bm25::collection(&mut client, "lex")?;
    client.batch_execute(&bm25::insert(&mut Chance::new(1), id, 0, 2000, &LABELS))?;
    client.batch_execute("SELECT rag.reindex_lexical('lex')")?;
    let mut holder = cluster.connect()?;
    if !merging {
        // Merges of a collection are kept apart by a lock, which lasts to the end of the transaction.
        holder.batch_execute("BEGIN; SELECT rag.compact('lex')")?;
    }
    let stop = AtomicBool::new(false);
    let (writes, mut times) = std::thread::scope(|scope| -> TestResult<(u64, Vec<Duration>)> {
        let (mut writers, mut searchers) = (Vec::new(), Vec::new());
        for number in 0..EACH {
            let (mut writing, mut searching) = (cluster.connect()?, cluster.connect()?);
            let stop = &stop;
            writers.push(scope.spawn(move || writer(&mut writing, id, number, stop)));
            searchers.push(scope.spawn(move || searcher(&mut searching, number, stop)));
        }
        let (started, mut calls) = (Instant::now(), 0);
        while started.elapsed() < Duration::from_secs(seconds) {
            std::thread::sleep(Duration::from_millis(100));
            // What somebody may call meanwhile.
            if merging && started.elapsed() > Duration::from_secs(3 * (calls + 1)) {
                let call = ["SELECT rag.compact('lex')", "SELECT rag.compact()", "SELECT rag.reindex_lexical()"];
                client.batch_execute(call[calls as usize % call.len()])?;
                calls += 1;
            }
            if writers.iter().any(|w| w.is_finished()) || searchers.iter().any(|s| s.is_finished()) {
                break;
            }
        }
        stop.store(true, Ordering::Relaxed);
        let (mut writes, mut times) = (0, Vec::new());
        let died = |_| Failure::new("a session of the test panicked");
        for writer in writers {
            writes += writer.join().map_err(died)??;
        }
        for searcher in searchers {
            times.extend(searcher.join().map_err(died)??);
        }
        Ok((writes, times))
    })?;
    holder.batch_execute("ROLLBACK")?;
    let chance = &mut Chance::new(9);
    for _ in 0..30 {
        check(&mut client, "lex", &bm25::query(chance), 5000)?;
    }
    times.sort();
    let at = |share: f64| times.get((times.len() as f64 * share) as usize).map_or(0.0, |t| t.as_secs_f64() * 1000.0);
    println!(
        "load: merging {}, {seconds} s, {writes} writes, {} searches, p50 {:.2} ms, p95 {:.2} ms, p99 {:.2} ms; at the end {} segments and {} dead ones of {} passages",
        if merging { "on" } else { "off" },
        times.len(),
        at(0.5),
        at(0.95),
        at(0.99),
        bm25::status(&mut client, "lex", "segments")?,
        bm25::status(&mut client, "lex", "dead_segments")?,
        bm25::status(&mut client, "lex", "documents")?,
    );
    client.batch_execute("SELECT rag.compact('lex')")?;
    for _ in 0..10 {
        check(&mut client, "lex", &bm25::query(chance), 5000)?;
    }
    let errors: Vec<String> =
        cluster.log().lines().filter(|l| l.contains("ERROR:") || l.contains("compaction")).map(str::to_owned).collect();
    assert!(errors.is_empty(), "{errors:#?}");
    Ok(())
}

#[test]
fn writers_and_searchers_hinder_nobody_and_nothing_is_lost() -> TestResult {
    let seconds = std::env::var("RAG_LOAD_SECONDS").ok().and_then(|s| s.parse().ok());
    let seconds = seconds.unwrap_or(if is_full() { 300 } else { 12 });
    let merging = std::env::var("RAG_LOAD_MERGING").map_or(true, |m| m != "off");
    with_cluster(&["shared_preload_libraries = 'pg_rag'", "deadlock_timeout = '200ms'"], |cluster| {
        load(cluster, seconds, merging)
    })
}
