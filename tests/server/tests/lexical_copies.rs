// SPDX-License-Identifier: PostgreSQL

//! The BM25 index on a standby and in what is restored from a dump.

use postgres::Client;
use rag_server_tests::bm25::{self, check};
use rag_server_tests::chaos::Chance;
use rag_server_tests::process::wait_until;
use rag_server_tests::{Cluster, Failure, Mode, TestResult, with_cluster};
use std::process::Command;
use std::time::Duration;

const LABELS: [Option<&str>; 3] = [None, None, Some("red")];

/// A collection `lex` with several segments and deleted passages.
fn fill(client: &mut Client) -> TestResult<i64> {
    let id = bm25::collection(client, "lex")?;
    let chance = &mut Chance::new(21);
    for count in [200, 1, 1, 30] {
        client.batch_execute(&bm25::insert(chance, id, 0, count, &LABELS))?;
    }
    client.batch_execute(&format!(
        "DELETE FROM rag.chunk WHERE collection_id = {id} AND id % 9 = 0;
         UPDATE rag.chunk SET acl = 'red' WHERE collection_id = {id} AND id % 9 = 1"
    ))?;
    Ok(id)
}

fn right(client: &mut Client) -> TestResult {
    let chance = &mut Chance::new(5);
    Ok((0..10).try_for_each(|_| check(client, "lex", &bm25::query(chance), 20))?)
}

/// The standby has replayed what the primary has written.
fn caught_up(primary: &mut Client, standby: &mut Client) -> TestResult {
    let at: String = primary.query_one("SELECT pg_current_wal_lsn()::text", &[])?.get(0);
    wait_until("the standby follows", Duration::from_secs(30), || {
        let sql = "SELECT pg_last_wal_replay_lsn() >= $1::text::pg_lsn";
        standby.query_one(sql, &[&at]).is_ok_and(|row| row.get(0))
    })
}

#[test]
fn a_standby_finds_the_same_whatever_is_merged_meanwhile() -> TestResult {
    let settings = [
        "wal_level = replica",
        "max_wal_senders = 4",
        "hot_standby = on",
        // Without it a long snapshot there would hold up what is replayed, as with any table.
        "hot_standby_feedback = on",
        "wal_receiver_status_interval = 1s",
        "shared_preload_libraries = 'pg_rag'",
    ];
    with_cluster(&settings, |primary| {
        let mut client = primary.connect()?;
        let id = fill(&mut client)?;
        let standby = primary.standby()?;
        let (mut there, mut held) = (standby.connect()?, standby.connect()?);
        let queries: Vec<Vec<String>> = (0..5).map(|n| bm25::query(&mut Chance::new(n))).collect();
        let chance = &mut Chance::new(33);
        // A snapshot that lives while its segments are merged away;
        held.batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ")?;
        right(&mut held)?;
        for round in 0..12 {
            client.batch_execute(&bm25::insert(chance, id, 0, 3, &LABELS))?;
            client.batch_execute(&format!("DELETE FROM rag.chunk WHERE collection_id = {id} AND id % 13 = {round}"))?;
            match round % 4 {
                1 => client.batch_execute("SELECT rag.compact('lex')")?,
                3 => client.batch_execute("SELECT rag.reindex_lexical('lex')")?,
                _ => {}
            }
            caught_up(&mut client, &mut there)?;
            for query in &queries {
                check(&mut there, "lex", query, 20)?;
                let found = bm25::search(&mut there, "lex", query, 20, "{}")?;
                assert_eq!(found, bm25::search(&mut client, "lex", query, 20, "{}")?, "{query:?}");
            }
            right(&mut held)?;
        }
        held.batch_execute("COMMIT")?;
        for writing in ["SELECT rag.compact('lex')", "SELECT rag.reindex_lexical('lex')", "SELECT * FROM rag.repair()"]
        {
            let error = there.batch_execute(writing).err();
            let code = error.as_ref().and_then(|e| e.code()).map(|c| c.code());
            assert_eq!(code, Some("25006"), "{writing}: {error:?}");
        }
        // Sessions that searched before the promotion search and write after it.
        primary.stop(Mode::Immediate)?;
        there.batch_execute("SELECT pg_promote()")?;
        right(&mut there)?;
        right(&mut held)?;
        for _ in 0..40 {
            there.batch_execute(&bm25::insert(chance, id, 0, 1, &LABELS))?;
            right(&mut held)?;
        }
        there.batch_execute("SELECT rag.compact('lex'); SELECT rag.reindex_lexical('lex')")?;
        right(&mut there)?;
        right(&mut held)
    })
}

fn run(command: &mut Command) -> TestResult {
    let output = command.output()?;
    match output.status.success() {
        true => Ok(()),
        false => Err(Failure::new(format!("{command:?}: {}", String::from_utf8_lossy(&output.stderr)))),
    }
}

/// A dump of the database in a format, with further arguments.
fn dump(cluster: &Cluster, name: &str, format: &str, more: &[&str]) -> TestResult<std::path::PathBuf> {
    let file = cluster.socket().join(name);
    run(cluster.program("pg_dump").args(["-F", format]).args(more).arg("-f").arg(&file))?;
    Ok(file)
}

fn answers(client: &mut Client) -> TestResult<Vec<Vec<(i64, f64)>>> {
    let chance = &mut Chance::new(77);
    Ok((0..10).map(|_| bm25::search(client, "lex", &bm25::query(chance), 20, "{}")).collect::<Result<_, _>>()?)
}

#[test]
fn a_restored_index_is_right_at_once_and_says_what_it_lacks() -> TestResult {
    with_cluster(&[], |cluster| {
        let mut client = cluster.connect()?;
        fill(&mut client)?;
        let before = answers(&mut client)?;
        // Name, format, arguments of pg_dump and of pg_restore, and what the index is then.
        type Case<'a> = (&'a str, &'a str, &'a [&'a str], &'a [&'a str], &'a str);
        let plain: &[&str] = &[];
        let cases: [Case<'_>; 6] = [
            ("plain", "p", plain, plain, "ready"),
            ("inserts", "p", &["--inserts"], plain, "ready"),
            ("custom", "c", plain, plain, "ready"),
            ("single", "c", plain, &["--single-transaction"], "ready"),
            ("parallel", "d", plain, &["-j", "2"], "ready"),
            // Into a database that has the extension, with all triggers off.
            ("untriggered", "c", plain, &["--data-only", "--disable-triggers"], "missing"),
        ];
        for (name, format, dumping, restoring, state) in cases {
            let file = dump(cluster, &format!("dump_{name}"), format, dumping)?;
            client.batch_execute(&format!("CREATE DATABASE {name}"))?;
            if name == "untriggered" {
                cluster.connect_to(name)?.batch_execute("CREATE EXTENSION pg_rag CASCADE")?;
            }
            match format {
                "p" => run(cluster
                    .program("psql")
                    .args(["-X", "-q", "-v", "ON_ERROR_STOP=1", "-o", "/dev/null", "-d", name, "-f"])
                    .arg(&file))?,
                _ => run(cluster.program("pg_restore").args(["-e", "-d", name]).args(restoring).arg(&file))?,
            }
            let mut restored = cluster.connect_to(name)?;
            assert_eq!(answers(&mut restored)?, before, "{name}");
            assert_eq!(bm25::status(&mut restored, "lex", "state")?, state, "{name}");
            let sql = "SELECT object FROM rag.repair() WHERE action ~ 'lexical' ORDER BY object";
            let repaired: Vec<String> = restored.query(sql, &[])?.iter().map(|row| row.get(0)).collect();
            let expected: &[&str] = if state == "missing" { &["lex", "rag.chunk"] } else { &[] };
            assert_eq!(repaired, expected, "{name}");
            let switched = "SELECT string_agg(tgname || ' ' || tgenabled::text, ', ' ORDER BY tgname) FROM pg_trigger
                             WHERE tgrelid = 'rag.chunk'::regclass AND tgname ~ 'index|entry'";
            let as_made: String = client.query_one(switched, &[])?.get(0);
            assert_eq!(restored.query_one(switched, &[])?.get::<_, String>(0), as_made, "{name}");
            assert_eq!(bm25::status(&mut restored, "lex", "state")?, "ready", "{name}");
            assert_eq!(answers(&mut restored)?, before, "{name}, repaired");
            // It goes on from there.
            let id: i64 = restored.query_one("SELECT id FROM rag.collection WHERE name = 'lex'", &[])?.get(0);
            restored.batch_execute(&bm25::insert(&mut Chance::new(2), id, 0, 5, &LABELS))?;
            restored.batch_execute(&format!("DELETE FROM rag.chunk WHERE collection_id = {id} AND id % 5 = 0"))?;
            right(&mut restored).map_err(|e| Failure::new(format!("{name}: {e}")))?;
            restored.batch_execute("SELECT rag.compact('lex')")?;
            right(&mut restored).map_err(|e| Failure::new(format!("{name}, merged: {e}")))?;
        }
        Ok(())
    })
}

/// The worker of a subscription runs no statements: it copies a table, and then writes row by row.
#[test]
fn a_subscriber_finds_what_is_replicated_to_it() -> TestResult {
    with_cluster(&["wal_level = logical"], |cluster| {
        let mut client = cluster.connect()?;
        let id = fill(&mut client)?;
        for one in [
            "CREATE PUBLICATION p FOR TABLE rag.chunk",
            "SELECT pg_create_logical_replication_slot('s', 'pgoutput')",
            "CREATE DATABASE copy",
        ] {
            client.batch_execute(one)?;
        }
        let mut there = cluster.connect_to("copy")?;
        there.batch_execute("CREATE EXTENSION pg_rag CASCADE")?;
        // Its collection has the same key, and passages of its own whose entries are those of others here.
        assert_eq!(bm25::collection(&mut there, "lex")?, id);
        let own = bm25::collection(&mut there, "own")?;
        there.batch_execute(&format!(
            "SELECT setval(pg_get_serial_sequence('rag.chunk', 'id'), 1000000);
             {}",
            bm25::insert(&mut Chance::new(4), own, 0, 50, &LABELS)
        ))?;
        there.batch_execute(&format!(
            "CREATE SUBSCRIPTION s CONNECTION 'host={} port={} user=postgres dbname=postgres' PUBLICATION p
               WITH (create_slot = false, slot_name = 's')",
            cluster.socket().display(),
            client.query_one("SHOW port", &[])?.get::<_, String>(0)
        ))?;
        let rows = "SELECT md5(string_agg(concat_ws(',', id, tsv, dl, acl, current), ';' ORDER BY id)) FROM rag.chunk WHERE collection_id = $1";
        let chance = &mut Chance::new(14);
        for round in 0..6 {
            wait_until("the subscriber follows", Duration::from_secs(60), || {
                let here: Option<Option<String>> = client.query_one(rows, &[&id]).ok().map(|row| row.get(0));
                let there: Option<Option<String>> = there.query_one(rows, &[&id]).ok().map(|row| row.get(0));
                here.is_some() && here == there
            })?;
            for collection in ["lex", "own"] {
                assert_eq!(bm25::status(&mut there, collection, "state")?, "ready", "round {round}");
                (0..10).try_for_each(|_| check(&mut there, collection, &bm25::query(chance), 20))?;
            }
            let sql = "SELECT sum(CASE WHEN dead THEN -documents ELSE documents END)::int8 FROM rag.lex_segment
                        WHERE unit = 'chunk' AND collection_id = $1";
            let indexed: i64 = there.query_one(sql, &[&id])?.get(0);
            let passages = "SELECT count(*) FROM rag.chunk WHERE current AND collection_id = $1";
            assert_eq!(indexed, there.query_one(passages, &[&id])?.get::<_, i64>(0), "round {round}");
            client.batch_execute(&match round % 3 {
                0 => bm25::insert(chance, id, 0, 30, &LABELS),
                1 => format!("DELETE FROM rag.chunk WHERE collection_id = {id} AND id % 7 = {round}"),
                _ => format!(
                    "UPDATE rag.chunk SET tsv = 'w0:1,2 w9:3', dl = 3 WHERE collection_id = {id} AND id % 6 = 0;
                     UPDATE rag.chunk SET acl = 'red' WHERE collection_id = {id} AND id % 6 = 1;
                     UPDATE rag.chunk SET line_start = 3 WHERE collection_id = {id} AND id % 6 = 2"
                ),
            })?;
        }
        assert!(there.query("SELECT * FROM rag.repair() WHERE action ~ 'lexical'", &[])?.is_empty());
        there.batch_execute(
            "ALTER SUBSCRIPTION s DISABLE; ALTER SUBSCRIPTION s SET (slot_name = NONE); DROP SUBSCRIPTION s",
        )?;
        Ok(())
    })
}
