// SPDX-License-Identifier: PostgreSQL

//! The engine comes, goes, cannot come: what sessions are told, and what mends it.

use postgres::Client;
use rag_server_tests::process::{self, wait_until};
use rag_server_tests::{Cluster, Failure, TestResult, with_cluster};
use std::sync::Barrier;
use std::time::{Duration, Instant};

/// What the launcher logs of each attempt to start a program that is not there.
const ATTEMPT: &str = "pg_rag launcher: could not start \"/nowhere";

const SEARCH: &str = "SELECT uri, degraded FROM rag.search('planets with rings')";

/// A session on a cluster whose words are indexed and whose vectors are not needed.
fn filled(cluster: &Cluster) -> TestResult<Client> {
    let mut client = cluster.connect()?;
    client.batch_execute("SELECT * FROM rag.ingest('Saturn is a planet with wide rings.', 'saturn', 'text')")?;
    Ok(client)
}

fn found(client: &mut Client) -> TestResult<Vec<String>> {
    Ok(client.query(SEARCH, &[])?.iter().map(|row| row.get(0)).collect())
}

fn state(client: &mut Client) -> TestResult<String> {
    Ok(client.query_one("SELECT engine_state FROM rag.health()", &[])?.get(0))
}

fn set(client: &mut Client, setting: &str, value: &str) -> TestResult {
    // Two statements, because ALTER SYSTEM refuses to share a transaction.
    client.batch_execute(&format!("ALTER SYSTEM SET {setting} = '{value}'"))?;
    Ok(client.batch_execute("SELECT pg_reload_conf()")?)
}

/// SQLSTATE, message, detail and hint of what a statement fails with.
fn refused(client: &mut Client, sql: &str) -> TestResult<[String; 4]> {
    let error = client.query(sql, &[]).err().ok_or_else(|| Failure::new(format!("no error: {sql}")))?;
    let e = error.as_db_error().ok_or_else(|| Failure::new(format!("{error:?}")))?;
    let text = |t: Option<&str>| t.unwrap_or_default().to_owned();
    Ok([e.code().code().to_owned(), e.message().to_owned(), text(e.detail()), text(e.hint())])
}

/// Milliseconds of the day at which the log has a line with `what`. Each line begins with its time.
fn times(cluster: &Cluster, what: &str) -> Vec<u64> {
    let log = cluster.log();
    let time = |line: &str| -> Option<u64> {
        let clock = line.split_whitespace().nth(1)?;
        let (whole, millis) = clock.split_once('.')?;
        let parts: Vec<u64> = whole.split(':').map_while(|n| n.parse().ok()).collect();
        let [hours, minutes, seconds] = parts[..] else { return None };
        Some(((hours * 60 + minutes) * 60 + seconds) * 1000 + millis.parse::<u64>().ok()?)
    };
    log.lines().filter(|line| line.contains(what)).filter_map(time).collect()
}

fn undisturbed(cluster: &Cluster) {
    assert!(!cluster.log().contains("terminating any other active server processes"), "{}", cluster.log());
}

#[test]
fn many_first_uses_at_once_start_one_engine() -> TestResult {
    with_cluster(&[], |cluster| {
        const SESSIONS: usize = 20;
        let mut client = cluster.connect()?;
        assert_eq!(state(&mut client)?, "stopped");
        let mut sessions = (0..SESSIONS).map(|_| cluster.connect()).collect::<TestResult<Vec<_>>>()?;
        let barrier = Barrier::new(SESSIONS);
        let tokens = std::thread::scope(|scope| {
            let counting: Vec<_> = sessions
                .iter_mut()
                .map(|session| {
                    scope.spawn(|| {
                        barrier.wait();
                        session.query_one("SELECT rag.count_tokens('That is a happy person')", &[])
                    })
                })
                .collect();
            counting.into_iter().map(|c| c.join()).collect::<Vec<_>>()
        });
        for count in tokens {
            let row = count.map_err(|_| Failure::new("a session panicked"))??;
            // Five words and two special tokens.
            assert_eq!(row.get::<_, i32>(0), 7);
        }
        assert_eq!(cluster.log().matches("pg_rag_engine: ready").count(), 1, "{}", cluster.log());
        // Those that came too late end as soon as they see that the lock is taken.
        let postmaster = cluster.postmaster()?;
        wait_until("there is one launcher", Duration::from_secs(10), || {
            let family = process::descendants(postmaster);
            family.iter().filter(|p| p.title().contains("pg_rag launcher")).count() == 1
        })?;
        assert_eq!(state(&mut client)?, "running");
        Ok(())
    })
}

#[test]
fn an_engine_that_cannot_start_is_explained_tried_again_and_mended_by_a_reload() -> TestResult {
    with_cluster(&[], |cluster| {
        let mut client = filled(cluster)?;
        let engine = cluster.engine(&mut client)?;
        set(&mut client, "pg_rag.engine_path", "/nowhere/pg_rag_engine")?;
        wait_until("the engine is stopped", Duration::from_secs(20), || !engine.is_alive())?;

        // Long before the start timeout of 30 s, because the launcher knows why.
        let started = Instant::now();
        let [code, message, detail, hint] = refused(&mut client, SEARCH)?;
        assert!(started.elapsed() < Duration::from_secs(15), "it took {:?}", started.elapsed());
        assert_eq!((code.as_str(), message.as_str()), ("55000", "the engine did not start"));
        assert!(detail.contains("could not start \"/nowhere/pg_rag_engine\": No such file"), "{detail}");
        assert!(hint.contains("rag.health()"), "{hint}");
        let row = client.query_one("SELECT engine_state, engine_pid, last_error FROM rag.health()", &[])?;
        assert_eq!(row.get::<_, String>(0), "failing");
        assert_eq!(row.get::<_, Option<i32>>(1), None);
        assert!(row.get::<_, Option<String>>(2).is_some_and(|why| why.contains("/nowhere/pg_rag_engine")));

        // What needs no engine goes on, and a search goes on without the dense leg if its caller agreed.
        let lexical = client.query("SELECT uri FROM rag.search('planets', mode => 'bm25')", &[])?;
        assert_eq!(lexical.len(), 1);
        let sql = "SELECT uri, degraded FROM rag.search('planets', settings => '{\"on_degraded\": \"bm25\"}')";
        let degraded = client.query(sql, &[])?;
        assert_eq!(degraded.len(), 1);
        let why: Option<String> = degraded[0].get(1);
        assert_eq!(why.as_deref(), Some("dense leg did not run: the engine did not start"));

        // 200 ms after the first failure, and twice as long after each further one.
        wait_until("it was tried six times", Duration::from_secs(60), || times(cluster, ATTEMPT).len() >= 6)?;
        let tried = times(cluster, ATTEMPT);
        for (at, pair) in tried.windows(2).enumerate() {
            let (pause, least) = (pair[1].saturating_sub(pair[0]), 200u64 << at);
            assert!(pause >= least * 9 / 10, "{pause} ms instead of {least} ms: {tried:?}");
        }

        client.batch_execute("ALTER SYSTEM RESET pg_rag.engine_path")?;
        client.batch_execute("SELECT pg_reload_conf()")?;
        wait_until("the engine runs again", Duration::from_secs(20), || {
            state(&mut client).is_ok_and(|state| state == "running")
        })?;
        assert_eq!(found(&mut client)?, ["saturn"]);
        undisturbed(cluster);
        Ok(())
    })
}

#[test]
fn a_program_that_ends_at_once_is_no_engine() -> TestResult {
    with_cluster(&["pg_rag.engine_path = '/bin/false'"], |cluster| {
        let mut client = cluster.connect()?;
        let [code, message, detail, _] = refused(&mut client, "SELECT rag.count_tokens('word')")?;
        assert_eq!((code.as_str(), message.as_str()), ("55000", "the engine did not start"));
        assert!(detail.contains("exit status: 1"), "{detail}");
        Ok(())
    })
}

#[test]
fn a_reload_restarts_the_engine_for_its_own_settings_only() -> TestResult {
    with_cluster(&[], |cluster| {
        let mut client = filled(cluster)?;
        let engine = cluster.engine(&mut client)?;
        set(&mut client, "work_mem", "5MB")?;
        std::thread::sleep(Duration::from_secs(2));
        assert_eq!(cluster.engine(&mut client)?, engine);
        set(&mut client, "pg_rag.engine_threads", "1")?;
        wait_until("another engine runs", Duration::from_secs(20), || {
            cluster.engine(&mut client).is_ok_and(|now| now != engine)
        })?;
        assert_eq!(found(&mut client)?, ["saturn"]);
        undisturbed(cluster);
        Ok(())
    })
}

#[test]
fn without_a_worker_slot_the_error_says_so() -> TestResult {
    // PostgreSQL's own logical replication launcher takes the only one.
    with_cluster(&["max_worker_processes = 1"], |cluster| {
        let mut client = cluster.connect()?;
        let [code, message, _, hint] = refused(&mut client, "SELECT rag.count_tokens('word')")?;
        assert_eq!(code, "53000");
        assert_eq!(message, "no background worker slot is free for the engine");
        assert!(hint.contains("max_worker_processes"), "{hint}");
        Ok(())
    })
}

#[test]
fn an_idle_engine_above_its_memory_limit_is_replaced() -> TestResult {
    with_cluster(&["pg_rag.engine_memory_limit = '1MB'"], |cluster| {
        let mut client = filled(cluster)?;
        let engine = cluster.engine(&mut client)?;
        wait_until("it ends", Duration::from_secs(60), || !engine.is_alive())?;
        assert!(cluster.log().contains("above the limit of 1 MB: ends"), "{}", cluster.log());
        assert_eq!(found(&mut client)?, ["saturn"]);
        assert_ne!(cluster.engine(&mut client)?, engine);
        undisturbed(cluster);
        Ok(())
    })
}

#[test]
fn a_launcher_that_is_asked_to_end_takes_the_engine_along_and_comes_back_on_use() -> TestResult {
    with_cluster(&[], |cluster| {
        let mut client = filled(cluster)?;
        let (engine, backends) = (cluster.engine(&mut client)?, cluster.backends(&mut client)?);
        let launcher: i32 = client.query_one("SELECT launcher_pid FROM rag.health()", &[])?.get(0);
        process::signal(launcher, "TERM")?;
        wait_until("the engine ends", Duration::from_secs(10), || !engine.is_alive())?;
        wait_until("rag.health says so", Duration::from_secs(10), || {
            state(&mut client).is_ok_and(|state| state == "stopped")
        })?;
        assert_eq!(found(&mut client)?, ["saturn"]);
        assert_ne!(cluster.engine(&mut client)?, engine);
        assert_eq!(cluster.backends(&mut client)?, backends);
        undisturbed(cluster);
        Ok(())
    })
}

#[test]
fn an_engine_that_is_silent_is_called_busy() -> TestResult {
    with_cluster(&[], |cluster| {
        let mut client = filled(cluster)?;
        let engine = cluster.engine(&mut client)?;
        process::signal(engine.pid, "STOP")?;
        wait_until("the engine is stopped", Duration::from_secs(10), || process::is_stopped(engine.pid))?;
        assert_eq!(state(&mut client)?, "busy");
        process::signal(engine.pid, "CONT")?;
        wait_until("it is running again", Duration::from_secs(10), || {
            state(&mut client).is_ok_and(|state| state == "running")
        })?;
        assert_eq!(cluster.engine(&mut client)?, engine);
        Ok(())
    })
}
