// SPDX-License-Identifier: PostgreSQL

//! The BM25 index under random histories: two sessions write, roll back, merge and crash, and after every step each finds
//! what the formula gives over the rows it sees.
//!
//! `SOAK=20000` runs so many histories instead of a thousand (`make soak`); the number in a failure is that of the history,
//! and `SOAK_FROM=… SOAK=1` runs it alone.

use postgres::Client;
use rag_server_tests::bm25::{self, check};
use rag_server_tests::chaos::Chance;
use rag_server_tests::process::{self, wait_until};
use rag_server_tests::{Cluster, Failure, Mode, TestResult, with_cluster};
use std::time::Duration;

/// Histories of which one has a crash, and one a dump.
const CRASHES: u64 = 125;
const DUMPS: u64 = 400;

const LABELS: [Option<&str>; 4] = [None, None, Some("red"), Some("blue")];

/// One of two sessions.
struct Session {
    client: Client,
    /// What its passages have as ordinal. A session changes only its own, so that nobody waits for anybody.
    number: u64,
    /// The isolation level of the open transaction.
    open: Option<&'static str>,
    savepoints: u64,
    /// It has changed passages in the open transaction.
    wrote: bool,
    /// It holds the lock of a merge in the open transaction; of making anew, too.
    merged: bool,
    remade: bool,
}

impl Session {
    fn new(cluster: &Cluster, number: u64) -> TestResult<Self> {
        let mut client = cluster.reconnect()?;
        // Whoever waits here has found a lock that should not be.
        client.batch_execute("SET lock_timeout = '10s'")?;
        Ok(Self { client, number, open: None, savepoints: 0, wrote: false, merged: false, remade: false })
    }

    fn end(&mut self, how: &str) -> TestResult {
        self.client.batch_execute(how)?;
        (self.open, self.savepoints, self.wrote, self.merged, self.remade) = (None, 0, false, false, false);
        Ok(())
    }
}

/// Two collections that one history is about.
struct World {
    names: [String; 2],
    ids: [i64; 2],
}

/// A random change of own passages.
fn change(chance: &mut Chance, world: &World, own: u64) -> String {
    let collection = *chance.pick(&world.ids);
    let some = format!(
        "id IN (SELECT id FROM rag.chunk WHERE collection_id IN ({}, {}) AND ordinal = {own} ORDER BY id OFFSET {} LIMIT {})",
        world.ids[0],
        world.ids[1],
        chance.below(6),
        1 + chance.below(4)
    );
    match chance.below(13) {
        0..=3 => {
            let count = 1 + chance.below(4);
            bm25::insert(chance, collection, own, count, &LABELS)
        }
        4 | 5 => format!("UPDATE rag.chunk SET (tsv, dl) = ROW({}) WHERE {some}", bm25::terms(chance)),
        6 => {
            let label = chance.pick(&["NULL", "'red'", "'blue'"]);
            format!("UPDATE rag.chunk SET acl = {label} WHERE {some}")
        }
        7 => format!("UPDATE rag.chunk SET current = NOT current WHERE {some}"),
        8 => format!(
            "UPDATE rag.chunk SET collection_id = {collection}, source_id = {collection}, document_id = {collection} WHERE {some}"
        ),
        9 => match chance.below(2) {
            0 => format!("UPDATE rag.chunk SET line_start = 1 WHERE {some}"),
            _ => format!("UPDATE rag.chunk SET document_id = collection_id WHERE {some}"),
        },
        10 => format!("DELETE FROM rag.chunk WHERE {some}"),
        // An insert that becomes an update.
        11 => format!(
            "INSERT INTO rag.chunk (id, {columns}) SELECT id, {columns} FROM rag.chunk WHERE {some}
                 ON CONFLICT (id) DO UPDATE SET (tsv, dl) = ROW({})",
            bm25::terms(chance),
            columns = bm25::COLUMNS,
        ),
        // Deleted and changed by one statement, and so many small ones that somebody comes to merge.
        _ => match chance.below(2) {
            0 => format!(
                "WITH d AS (DELETE FROM rag.chunk WHERE {some})
                 UPDATE rag.chunk SET dl = dl + 1 WHERE NOT {some} AND ordinal = {own} AND collection_id = {collection}"
            ),
            _ => (0..18).map(|_| bm25::insert(chance, collection, own, 1, &LABELS)).collect::<Vec<_>>().join(";"),
        },
    }
}

/// One step of one session; `other` has these locks.
fn step(chance: &mut Chance, world: &World, session: &mut Session, other: (bool, bool, bool)) -> TestResult<String> {
    let (other_wrote, other_merged, other_remade) = other;
    let done = match (chance.below(12), session.open) {
        (0 | 1, None) => {
            let level = *chance.pick(&["READ COMMITTED", "READ COMMITTED", "REPEATABLE READ"]);
            session.client.batch_execute(&format!("BEGIN ISOLATION LEVEL {level}"))?;
            session.open = Some(level);
            format!("BEGIN {level}")
        }
        (0 | 1, Some(_)) => {
            let how = *chance.pick(&["COMMIT", "COMMIT", "ROLLBACK"]);
            session.end(how)?;
            how.to_owned()
        }
        (2, Some(_)) => {
            session.savepoints += 1;
            let sql = format!("SAVEPOINT s{}", session.savepoints);
            session.client.batch_execute(&sql)?;
            sql
        }
        (3, Some(_)) if session.savepoints > 0 => {
            let how = *chance.pick(&["ROLLBACK TO", "RELEASE"]);
            let sql = format!("{how} s{}", session.savepoints);
            session.client.batch_execute(&sql)?;
            session.savepoints -= u64::from(how == "RELEASE");
            sql
        }
        (4, level) if level != Some("REPEATABLE READ") && !other_merged => {
            let sql = format!("SELECT rag.compact('{}')", chance.pick(&world.names));
            session.client.batch_execute(&sql)?;
            session.merged = session.open.is_some();
            sql
        }
        (5, level) if level != Some("REPEATABLE READ") && !other_merged && !other_wrote && !other_remade => {
            let sql = format!("SELECT rag.reindex_lexical('{}')", chance.pick(&world.names));
            session.client.batch_execute(&sql)?;
            session.remade = session.open.is_some();
            session.merged |= session.remade;
            sql
        }
        _ if other_remade => "nothing".to_owned(),
        _ => {
            let sql = change(chance, world, session.number);
            session.client.batch_execute(&sql)?;
            session.wrote = session.open.is_some();
            sql
        }
    };
    Ok(done)
}

/// A random query in both collections, now and then with the rights of a role that has one label.
fn look(chance: &mut Chance, world: &World, session: &mut Session) -> TestResult {
    let restricted = chance.below(4) == 0;
    if restricted {
        let role = *chance.pick(&["red", "blue", "plain"]);
        session.client.batch_execute(&format!("SET ROLE {role}"))?;
    }
    let k = *chance.pick(&[1, 3, 10, 50]);
    let (name, query) = (chance.pick(&world.names[..]), bm25::query(chance));
    check(&mut session.client, name, &query, k)?;
    if restricted {
        session.client.batch_execute("RESET ROLE")?;
    }
    Ok(())
}

/// The server ends in the middle of things.
fn crash(chance: &mut Chance, cluster: &Cluster, sessions: &mut [Session; 2]) -> TestResult {
    if chance.below(2) == 0 {
        cluster.restart(Mode::Immediate)?;
    } else {
        let pid: i32 = sessions[0].client.query_one("SELECT pg_backend_pid()", &[])?.get(0);
        process::signal(pid, "KILL")?;
        // All others are ended with it, and the server recovers.
        wait_until("the other session ends", Duration::from_secs(30), || {
            sessions[1].client.simple_query("SELECT 1").is_err()
        })?;
    }
    *sessions = [Session::new(cluster, 0)?, Session::new(cluster, 1)?];
    Ok(())
}

/// What is committed, in another database.
fn dump(chance: &mut Chance, cluster: &Cluster, world: &World, number: u64) -> TestResult {
    let name = format!("copy{number}");
    let mut client = cluster.connect()?;
    client.batch_execute(&format!("CREATE DATABASE {name}"))?;
    let file = cluster.socket().join(&name);
    for (program, to) in [("pg_dump", "-f"), ("pg_restore", "-d")] {
        let mut command = cluster.program(program);
        match program {
            "pg_dump" => command.args(["-F", "c", to]).arg(&file),
            _ => command.args(["-e", to, &name]).arg(&file),
        };
        let output = command.output()?;
        if !output.status.success() {
            return Err(Failure::new(format!("{program}: {}", String::from_utf8_lossy(&output.stderr))));
        }
    }
    let mut copy = cluster.connect_to(&name)?;
    for collection in &world.names {
        let query = bm25::query(chance);
        check(&mut copy, collection, &query, 20)?;
        let (here, there) = (
            bm25::search(&mut client, collection, &query, 20, "{}")?,
            bm25::search(&mut copy, collection, &query, 20, "{}")?,
        );
        assert_eq!(there, here, "{query:?} in {collection} of {name}");
    }
    drop(copy);
    client.batch_execute(&format!("DROP DATABASE {name} WITH (FORCE)"))?;
    Ok(std::fs::remove_file(file)?)
}

/// One history from nothing to nothing.
fn history(cluster: &Cluster, sessions: &mut [Session; 2], number: u64, log: &mut Vec<String>) -> TestResult {
    let chance = &mut Chance::new(number);
    let names = [format!("a{number}"), format!("b{number}")];
    let ids =
        [bm25::collection(&mut sessions[0].client, &names[0])?, bm25::collection(&mut sessions[0].client, &names[1])?];
    let world = World { names, ids };
    // A list of many passages is stored in another way than one of few.
    let many = if number % 20 == 7 { 700 } else { 6 };
    for session in sessions.iter_mut() {
        let count = 1 + chance.below(many);
        let sql = bm25::insert(chance, world.ids[0], session.number, count, &LABELS);
        session.client.batch_execute(&sql)?;
    }
    let steps = 4 + chance.below(6);
    let crash_at = (number % CRASHES == 3).then(|| chance.below(steps));
    for at in 0..steps {
        let turn = chance.below(2) as usize;
        let other = &sessions[1 - turn];
        let locks = (other.wrote, other.merged, other.remade);
        let done = step(chance, &world, &mut sessions[turn], locks)?;
        log.push(format!("{}: {done}", ["A", "B"][turn]));
        if crash_at == Some(at) {
            crash(chance, cluster, sessions)?;
            log.push("crash".to_owned());
        }
        for session in sessions.iter_mut() {
            look(chance, &world, session)?;
        }
    }
    if number % DUMPS == 5 {
        dump(chance, cluster, &world, number)?;
    }
    for session in sessions.iter_mut().filter(|s| s.open.is_some()) {
        session.end("COMMIT")?;
    }
    for session in sessions.iter_mut() {
        look(chance, &world, session)?;
    }
    sessions[0].client.batch_execute(&format!(
        "DELETE FROM rag.document WHERE source_id IN ({a}, {b}); DELETE FROM rag.source WHERE id IN ({a}, {b});
         SELECT rag.compact('{}'); SELECT rag.compact('{}'); DELETE FROM rag.collection WHERE id IN ({a}, {b})",
        world.names[0],
        world.names[1],
        a = world.ids[0],
        b = world.ids[1],
    ))?;
    Ok(())
}

#[test]
fn every_session_finds_what_the_formula_gives_over_what_it_sees() -> TestResult {
    let number = |name: &str, default| std::env::var(name).ok().and_then(|n| n.parse().ok()).unwrap_or(default);
    let (from, count): (u64, u64) = (number("SOAK_FROM", 0), number("SOAK", 1000));
    let settings = ["shared_preload_libraries = 'pg_rag'", "autovacuum_naptime = 1s"];
    with_cluster(&settings, |cluster| {
        cluster.connect()?.batch_execute(
            "CREATE ROLE red; CREATE ROLE blue; CREATE ROLE plain;
             GRANT USAGE ON SCHEMA rag TO red, blue, plain;
             GRANT SELECT ON ALL TABLES IN SCHEMA rag TO red, blue, plain;
             GRANT EXECUTE ON FUNCTION rag.search TO red, blue, plain;
             INSERT INTO rag.acl VALUES ('red', 'red'), ('blue', 'blue')",
        )?;
        let mut sessions = [Session::new(cluster, 0)?, Session::new(cluster, 1)?];
        for number in from..from + count {
            let mut log = Vec::new();
            history(cluster, &mut sessions, number, &mut log)
                .map_err(|e| Failure::new(format!("history {number}:\n{}\n{e}", log.join("\n"))))?;
        }
        let left: i64 = sessions[0].client.query_one("SELECT count(*) FROM rag.lex_segment", &[])?.get(0);
        assert_eq!(left, 0, "segments of collections that are gone");
        Ok(())
    })
}
