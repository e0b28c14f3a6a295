// SPDX-License-Identifier: PostgreSQL

//! Eight sessions that write the same passages and eight that search, while segments are merged or are not.
//!
//! Owns the load, which the server test of the same name runs too. Its answers are compared with the formula
//! ([`crate::bm25`]) over the same snapshot, now and then while it runs and in the end, so a time is never that of a wrong
//! answer. Each load has a database of its own, where no other collection has keys that it would meet.

use super::figure::{Figure, Kind, Table, number};
use super::turns::Connect;
use super::{Bench, database};
use crate::bm25::{self, check};
use crate::chance::Chance;
use crate::db;
use crate::latency::Latency;
use postgres::Client;
use rag_core::{Error, Result};
use serde_json::Value;
use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Sessions of each kind.
const EACH: u64 = 8;
/// Passages in the beginning.
const PASSAGES: u64 = 2000;
const LABELS: [Option<&str>; 3] = [None, None, Some("red")];

/// Pause of a session between two statements, in milliseconds: the load is the same whether merging is on or off.
const PAUSE: u64 = 10;

/// What came of a load.
#[derive(Debug, Clone)]
pub struct Load {
    /// Statements that wrote.
    pub writes: u64,
    /// Times of the searches.
    pub searches: Latency,
    /// Segments, dead segments and passages of the index in the end, before anybody merges all.
    pub left: [i64; 3],
}

/// Measures it.
pub fn measure(dsn: Option<&str>, request: &Bench) -> Result<Figure> {
    let mut figure = Figure::new(
        "BM25 under writers and searchers",
        format!(
            "{EACH} sessions write (inserts, updates, labels, deletes, some rolled back; {PAUSE} ms apart) and {EACH} search (one to \
             three words, best 20; {PAUSE} ms apart) in one collection that begins with {PASSAGES} passages, for {} s; milliseconds \
             seen from clients on the same machine. One search in twenty is compared with the formula over the same snapshot, and \
             all is compared in the end. With merging on, rag.compact and rag.reindex_lexical are called every 3 s besides; with it \
             off, a transaction holds the lock of merges.",
            request.seconds
        ),
    );
    let mut table = Table::new(
        "",
        &[
            ("merging", Kind::Text),
            ("writes", Kind::Count),
            ("searches", Kind::Count),
            ("p50", Kind::Milliseconds),
            ("p95", Kind::Milliseconds),
            ("p99", Kind::Milliseconds),
            ("segments in the end", Kind::Count),
            ("dead ones", Kind::Count),
            ("passages", Kind::Count),
        ],
    );
    for merging in [false, true] {
        let length = Duration::from_secs(request.seconds);
        let Load { writes, searches, left } = database::with_own(dsn, |connect| load(connect, length, merging))?;
        let mut row = vec![(if merging { "on" } else { "off" }).into(), writes.into(), searches.count().into()];
        row.extend([50.0, 95.0, 99.0].map(|percent| number(searches.percentile(percent))));
        row.extend(left.map(Value::from));
        table.rows.push(row);
    }
    figure.tables.push(table);
    Ok(figure)
}

/// Runs the load on a server that has no collection `lex`; an error if an answer is not what the formula gives.
pub fn load(connect: Connect<'_>, length: Duration, merging: bool) -> Result<Load> {
    let failed = |e: postgres::Error| db::sql("could not prepare the load", &e);
    let mut client = connect()?;
    let id = bm25::collection(&mut client, "lex")?;
    client.batch_execute(&bm25::insert(&mut Chance::new(1), id, 0, PASSAGES, &LABELS)).map_err(failed)?;
    client.batch_execute("SELECT rag.reindex_lexical('lex')").map_err(failed)?;
    let mut holder = connect()?;
    if !merging {
        // Merges of a collection are kept apart by a lock, which lasts to the end of the transaction.
        holder.batch_execute("BEGIN; SELECT rag.compact('lex')").map_err(failed)?;
    }
    let (writes, searches) = sessions(connect, &mut client, id, length, merging)?;
    drop(holder);
    let chance = &mut Chance::new(9);
    for _ in 0..30 {
        check(&mut client, "lex", &bm25::query(chance), 5000)?;
    }
    let row = client
        .query_one(
            "SELECT segments::int8, dead_segments::int8, documents::int8 FROM rag.lexical_status
              WHERE collection = 'lex' AND unit = 'chunk'",
            &[],
        )
        .map_err(failed)?;
    client.batch_execute("SELECT rag.compact('lex')").map_err(failed)?;
    for _ in 0..10 {
        check(&mut client, "lex", &bm25::query(chance), 5000)?;
    }
    Ok(Load { writes, searches, left: [row.get(0), row.get(1), row.get(2)] })
}

/// The sessions at once; the number of writes and the times of the searches.
fn sessions(
    connect: Connect<'_>,
    client: &mut Client,
    id: i64,
    length: Duration,
    merging: bool,
) -> Result<(u64, Latency)> {
    let stop = &AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (mut writers, mut searchers) = (Vec::new(), Vec::new());
        let clients = (0..2 * EACH).map(|_| connect()).collect::<Result<Vec<_>>>()?;
        for (number, mut session) in (0..).zip(clients) {
            match number % 2 {
                0 => writers.push(scope.spawn(move || writer(&mut session, id, number / 2, stop))),
                _ => searchers.push(scope.spawn(move || searcher(&mut session, number / 2, stop))),
            }
        }
        let (started, mut calls, mut called) = (Instant::now(), 0, Ok(()));
        while started.elapsed() < length && called.is_ok() {
            std::thread::sleep(Duration::from_millis(100));
            // What somebody may call meanwhile.
            if merging && started.elapsed() > Duration::from_secs(3 * (calls + 1)) {
                let call = ["SELECT rag.compact('lex')", "SELECT rag.compact()", "SELECT rag.reindex_lexical()"];
                let call = call[calls as usize % call.len()];
                called = client.batch_execute(call).map_err(|e| db::sql(call, &e));
                calls += 1;
            }
            // Nobody ends by himself but by an error.
            if writers.iter().any(|w| w.is_finished()) || searchers.iter().any(|s| s.is_finished()) {
                break;
            }
        }
        stop.store(true, Ordering::Relaxed);
        let died = |_| Error::internal("a session of the load panicked");
        let (mut writes, mut times) = (0, Vec::new());
        for writer in writers {
            writes += writer.join().map_err(died)??;
        }
        for searcher in searchers {
            times.extend(searcher.join().map_err(died)??);
        }
        called.map(|()| (writes, times.into_iter().collect()))
    })
}

/// Errors that are promised to whoever changes what another changes.
fn is_expected(error: &postgres::Error) -> bool {
    // Two that lock the same rows in another order wait for each other, with or without an index: none does here.
    error.code().is_some_and(|c| c.code() == "40001")
}

fn writer(client: &mut Client, id: i64, number: u64, stop: &AtomicBool) -> Result<u64> {
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
            Err(error) if is_expected(&error) => {
                client.batch_execute("ROLLBACK").map_err(|e| db::sql("could not roll back", &e))?;
            }
            Err(error) => return Err(db::sql(&sql, &error)),
        }
        chance.sleep(PAUSE / 2, PAUSE + PAUSE / 2);
    }
    Ok(done)
}

/// Searches, by a snapshot of its own each time, and now and then compares; returns how long each search took.
fn searcher(client: &mut Client, number: u64, stop: &AtomicBool) -> Result<Vec<Duration>> {
    let failed = |e: postgres::Error| db::sql("could not keep a snapshot", &e);
    let chance = &mut Chance::new(200 + number);
    let mut times = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        let query = bm25::query(chance);
        if chance.below(20) == 0 {
            let level = postgres::IsolationLevel::RepeatableRead;
            let mut transaction = client.build_transaction().isolation_level(level).start().map_err(failed)?;
            check(&mut transaction, "lex", &query, 20)?;
            transaction.commit().map_err(failed)?;
        } else {
            let started = Instant::now();
            let found = bm25::search(client, "lex", &query, 20, "{}")?;
            times.push(started.elapsed());
            let distinct: HashSet<i64> = found.iter().map(|(id, _)| *id).collect();
            if distinct.len() < found.len() {
                return Err(Error::invalid(format!("{query:?} finds a passage twice: {found:?}")));
            }
        }
        chance.sleep(PAUSE / 2, PAUSE + PAUSE / 2);
    }
    Ok(times)
}
