// SPDX-License-Identifier: PostgreSQL

//! The engine dies, the server stops, the user gives up: nobody else notices.

use postgres::Client;
use postgres::error::SqlState;
use rag_server_tests::process::{self, Process};
use rag_server_tests::{Cluster, Mode, TestResult, with_cluster};
use std::time::{Duration, Instant};

const SEARCH: &str = "SELECT chunk_id, rank::int8 FROM rag.search('how do I make bread rise') ORDER BY rank";

/// Seconds of inference, so that something is in flight.
const SLOW: &str =
    "SELECT count(*) FROM rag.embed(ARRAY(SELECT repeat('word' || i || ' ', 200) FROM generate_series(1, 5000) i))";

fn ingest(client: &mut Client) -> TestResult {
    for (uri, text) in
        [("bread.md", "# Bread\n\nYeast makes the dough rise."), ("tea.md", "# Tea\n\nPour hot water on the leaves.")]
    {
        client.execute("SELECT * FROM rag.ingest($1::text, $2)", &[&text, &uri])?;
    }
    Ok(())
}

fn search(client: &mut Client) -> TestResult<Vec<(i64, i64)>> {
    let rows = client.query(SEARCH, &[])?;
    assert!(!rows.is_empty(), "nothing found");
    Ok(rows.iter().map(|row| (row.get(0), row.get(1))).collect())
}

fn pid(client: &mut Client) -> TestResult<i32> {
    Ok(client.query_one("SELECT pg_backend_pid()", &[])?.get(0))
}

#[test]
fn a_killed_engine_costs_nobody_a_session() -> TestResult {
    with_cluster(&[], |cluster| {
        let (mut client, mut idle) = (cluster.connect()?, cluster.connect()?);
        let (mine, its) = (pid(&mut client)?, pid(&mut idle)?);
        ingest(&mut client)?;
        let first = search(&mut client)?;
        let (engine, backends) = (cluster.engine(&mut client)?, cluster.backends(&mut client)?);

        process::signal(engine.pid, "KILL")?;
        assert_eq!(search(&mut client)?, first);

        assert_eq!(cluster.backends(&mut client)?, backends);
        assert_eq!((pid(&mut client)?, pid(&mut idle)?), (mine, its));
        assert!(!engine.is_alive());
        assert_ne!(cluster.engine(&mut client)?.pid, engine.pid);
        let restarts: i64 = client.query_one("SELECT engine_restarts::int8 FROM rag.health()", &[])?.get(0);
        assert!(restarts >= 1, "engine_restarts is {restarts}");
        assert!(!cluster.log().contains("terminating any other active server processes"), "{}", cluster.log());
        Ok(())
    })
}

#[test]
fn a_connection_that_died_while_idle_does_not_use_up_the_retry() -> TestResult {
    with_cluster(&[], |cluster| {
        let mut client = cluster.connect()?;
        ingest(&mut client)?;
        let first = search(&mut client)?;
        // This session's connection is to an engine that is gone before it is used again.
        process::signal(cluster.engine(&mut client)?.pid, "KILL")?;
        let mut other = cluster.connect()?;
        search(&mut other)?;
        let engine = cluster.engine(&mut other)?;
        let busy = std::thread::spawn(move || {
            let sql = "SELECT count(*) FROM rag.embed(ARRAY(SELECT repeat('word' || i || ' ', 200) FROM generate_series(1, 60) i))";
            (client.query(sql, &[]).map(|rows| rows[0].get::<_, i64>(0)), client)
        });
        std::thread::sleep(Duration::from_millis(400));
        process::signal(engine.pid, "KILL")?;
        let (embedded, mut client) = busy.join().map_err(|_| rag_server_tests::Failure::new("panicked"))?;
        assert_eq!(embedded?, 60);
        assert_eq!(search(&mut client)?, first);
        Ok(())
    })
}

#[test]
fn an_engine_killed_in_the_middle_of_a_request_is_an_error_or_nothing() -> TestResult {
    with_cluster(&[], |cluster| {
        let (mut client, mut busy) = (cluster.connect()?, cluster.connect()?);
        ingest(&mut client)?;
        let (engine, backends) = (cluster.engine(&mut client)?, cluster.backends(&mut client)?);
        let slow = std::thread::spawn(move || (busy.query(SLOW, &[]).map(|_| ()), busy));
        std::thread::sleep(Duration::from_millis(500));
        process::signal(engine.pid, "KILL")?;
        // The request in flight is either repeated or refused; its session lives on in both cases.
        std::thread::sleep(Duration::from_millis(500));
        search(&mut client)?;
        assert_eq!(cluster.backends(&mut client)?, backends);
        client.execute("SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE query = $1", &[&SLOW])?;
        let (_, mut busy) = slow.join().map_err(|_| rag_server_tests::Failure::new("the busy session panicked"))?;
        search(&mut busy)?;
        Ok(())
    })
}

/// Stops a server whose engine is in the middle of something; returns how long it took.
fn stop_while_busy(cluster: &Cluster, mode: Mode) -> TestResult<Duration> {
    let (mut client, mut busy) = (cluster.connect()?, cluster.connect()?);
    ingest(&mut client)?;
    search(&mut client)?;
    let postmaster = cluster.postmaster()?;
    let slow = std::thread::spawn(move || busy.query(SLOW, &[]).is_err());
    std::thread::sleep(Duration::from_millis(500));
    let family: Vec<Process> = process::descendants(postmaster);
    let engine = cluster.engine(&mut client)?;
    assert!(family.contains(&engine), "the engine is no descendant of the postmaster: {family:?}");
    let took = cluster.stop(mode)?;
    assert!(slow.join().unwrap_or(false), "the busy session was answered by a stopped server");
    // pg_ctl waits for the postmaster; what the kernel kills for us may take a moment longer.
    process::wait_until("the whole family ends", Duration::from_secs(2), || {
        family.iter().all(|p| !p.is_alive()) && cluster.processes().is_empty()
    })?;
    Ok(took)
}

#[test]
fn a_fast_stop_is_fast_and_leaves_no_orphan() -> TestResult {
    with_cluster(&[], |cluster| {
        let took = stop_while_busy(cluster, Mode::Fast)?;
        assert!(took < Duration::from_secs(5), "the stop took {took:?}");
        Ok(())
    })
}

#[test]
fn an_immediate_stop_leaves_no_orphan() -> TestResult {
    with_cluster(&[], |cluster| stop_while_busy(cluster, Mode::Immediate).map(|_| ()))
}

#[test]
fn a_killed_postmaster_leaves_no_orphan() -> TestResult {
    with_cluster(&[], |cluster| {
        let mut client = cluster.connect()?;
        ingest(&mut client)?;
        let postmaster = cluster.postmaster()?;
        let family = process::descendants(postmaster);
        assert!(family.contains(&cluster.engine(&mut client)?));
        process::signal(postmaster, "KILL")?;
        process::wait_until("the whole family ends", Duration::from_secs(5), || family.iter().all(|p| !p.is_alive()))
    })
}

#[test]
fn statement_timeout_and_cancel_are_obeyed_during_inference() -> TestResult {
    with_cluster(&[], |cluster| {
        let mut client = cluster.connect()?;
        ingest(&mut client)?;
        client.batch_execute("SET statement_timeout = '300ms'")?;
        for _ in 0..3 {
            let started = Instant::now();
            let error = client.query(SLOW, &[]).err();
            let late = started.elapsed().saturating_sub(Duration::from_millis(300));
            assert_eq!(error.as_ref().and_then(|e| e.code()), Some(&SqlState::QUERY_CANCELED), "{error:?}");
            // 100 ms are promised; on a machine with two cores and a busy engine the test itself needs time too.
            assert!(late < Duration::from_millis(400), "obeyed {late:?} too late");
        }
        client.batch_execute("RESET statement_timeout")?;
        // What was given up must not keep the engine from others.
        let started = Instant::now();
        search(&mut client)?;
        assert!(started.elapsed() < Duration::from_secs(3), "the next search waited {:?}", started.elapsed());
        Ok(())
    })
}
