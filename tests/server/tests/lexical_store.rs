// SPDX-License-Identifier: PostgreSQL

//! The BM25 index where things go wrong: cancelled, damaged, loaded without triggers, prepared, dropped and made again.

use postgres::Client;
use rag_server_tests::bm25::{self, check};
use rag_server_tests::chaos::Chance;
use rag_server_tests::process::{self, wait_until};
use rag_server_tests::{Cluster, Failure, TestResult, with_cluster};
use std::time::Duration;

/// A collection `lex` of so many passages.
fn fill(client: &mut Client, count: u64) -> TestResult<i64> {
    let id = bm25::collection(client, "lex")?;
    client.batch_execute(&bm25::insert(&mut Chance::new(count), id, 0, count, &[None, Some("red")]))?;
    Ok(id)
}

fn right(client: &mut Client) -> TestResult {
    let chance = &mut Chance::new(5);
    Ok((0..10).try_for_each(|_| check(client, "lex", &bm25::query(chance), 20))?)
}

/// SQLSTATE and hint of a failure.
fn failure(result: Result<(), postgres::Error>) -> TestResult<(String, String)> {
    let error = result.err().ok_or_else(|| Failure::new("it did not fail"))?;
    let error = error.as_db_error().ok_or_else(|| Failure::new(format!("the session died: {error}")))?;
    Ok((error.code().code().to_owned(), error.hint().unwrap_or_default().to_owned()))
}

/// Scans of the index that leads to segments, by the sessions that have said so.
fn scans(client: &mut Client) -> TestResult<i64> {
    let sql = "SELECT pg_stat_force_next_flush(), (SELECT idx_scan FROM pg_stat_user_indexes WHERE indexrelname = 'lex_segment_population')";
    client.query(sql, &[])?;
    Ok(client.query_one(sql, &[])?.get(1))
}

#[test]
fn passages_loaded_without_triggers_are_found_until_they_are_indexed() -> TestResult {
    with_cluster(&[], |cluster| {
        let mut client = cluster.connect()?;
        let id = bm25::collection(&mut client, "lex")?;
        let chance = &mut Chance::new(1);
        let load = |client: &mut Client, sql: String| {
            // Rows of a dump have their entries.
            client.batch_execute(&format!(
                "ALTER TABLE rag.chunk DISABLE TRIGGER ALL, ALTER entry SET DEFAULT nextval('rag.chunk_entry_seq'); {sql};
                 ALTER TABLE rag.chunk ENABLE TRIGGER ALL, ALTER entry DROP DEFAULT"
            ))
        };
        for after in [
            bm25::insert(chance, id, 0, 1, &[None]),
            format!(
                "UPDATE rag.chunk SET dl = dl + 1 WHERE id IN (SELECT min(id) FROM rag.chunk WHERE current AND collection_id = {id})"
            ),
            format!("UPDATE rag.chunk SET dl = dl + 1 WHERE collection_id = {id}"),
            format!(
                "DELETE FROM rag.chunk WHERE id IN (SELECT min(id) FROM rag.chunk WHERE current AND collection_id = {id})"
            ),
        ] {
            load(&mut client, bm25::insert(chance, id, 0, 30, &[None, Some("red")]))?;
            right(&mut client)?;
            assert_eq!(bm25::status(&mut client, "lex", "state")?, "missing", "{after}");
            // The first that is indexed must not hide the others; nor must what merges.
            client.batch_execute(&after)?;
            right(&mut client).map_err(|e| Failure::new(format!("{after}: {e}")))?;
            assert_eq!(bm25::status(&mut client, "lex", "state")?, "missing", "{after}");
            client.batch_execute("SELECT rag.compact('lex')")?;
            right(&mut client).map_err(|e| Failure::new(format!("{after}, merged: {e}")))?;
            let repaired =
                client.query("SELECT * FROM rag.repair() WHERE object = 'lex' AND action ~ 'lexical'", &[])?;
            assert_eq!(repaired.len(), 1, "{after}");
            assert_eq!(bm25::status(&mut client, "lex", "state")?, "ready", "{after}");
            right(&mut client)?;
            // From nothing again.
            client.batch_execute(&format!(
                "DELETE FROM rag.chunk WHERE collection_id = {id}; SELECT rag.compact('lex')"
            ))?;
        }
        Ok(())
    })
}

#[test]
fn an_entry_that_was_another_rows_misleads_nobody() -> TestResult {
    with_cluster(&[], |cluster| {
        let mut client = cluster.connect()?;
        // What is written next goes where other segments were: before what it is about.
        let other = bm25::collection(&mut client, "other")?;
        for _ in 0..15 {
            client.batch_execute(&bm25::insert(&mut Chance::new(2), other, 0, 1, &[None]))?;
        }
        let id = fill(&mut client, 40)?;
        client.batch_execute(&format!(
            "DELETE FROM rag.chunk WHERE collection_id = {other}; SELECT rag.compact('other')"
        ))?;
        client.batch_execute("VACUUM rag.lex_segment")?;
        let mut client = cluster.connect()?;
        // As somebody does who changes a copy and puts it back, and has switched off what gives it new entries.
        let columns = format!("entry, {}", bm25::COLUMNS);
        for _ in 0..3 {
            client.batch_execute(&format!(
                "CREATE TEMP TABLE copy AS SELECT {columns} FROM rag.chunk WHERE collection_id = {id} AND id % 3 = 0;
                 UPDATE copy SET tsv = 'w0:1,2,3 w9:4', dl = 4;
                 DELETE FROM rag.chunk WHERE collection_id = {id} AND id % 3 = 0;
                 ALTER TABLE rag.chunk DISABLE TRIGGER new_entry;
                 INSERT INTO rag.chunk ({columns}) SELECT {columns} FROM copy; DROP TABLE copy;
                 ALTER TABLE rag.chunk ENABLE ALWAYS TRIGGER new_entry"
            ))?;
            right(&mut client)?;
            assert_eq!(bm25::status(&mut client, "lex", "state")?, "missing");
            client.batch_execute("SELECT rag.compact('lex')")?;
            right(&mut client)?;
        }
        let sql = "SELECT (SELECT ctid FROM rag.lex_segment WHERE NOT dead AND collection_id = $1 ORDER BY id LIMIT 1)
                        > (SELECT ctid FROM rag.lex_segment WHERE NOT dead AND collection_id = $1 ORDER BY id DESC LIMIT 1)";
        assert!(client.query_one(sql, &[&id])?.get::<_, bool>(0), "the later segment lies behind the earlier one");
        let repaired = client.query("SELECT * FROM rag.repair() WHERE object = 'lex' AND action ~ 'lexical'", &[])?;
        assert_eq!(repaired.len(), 1);
        right(&mut client)?;
        let strays = client.query("SELECT * FROM rag.repair() WHERE object = 'lex' AND action ~ 'lexical'", &[])?;
        assert!(strays.is_empty());
        assert_eq!(bm25::status(&mut client, "lex", "state")?, "ready");
        Ok(())
    })
}

#[test]
fn what_is_put_back_is_indexed_again() -> TestResult {
    with_cluster(&[], |cluster| {
        let mut client = cluster.connect()?;
        let id = fill(&mut client, 40)?;
        let before = scans(&mut client)?;
        for merged in [false, true, false] {
            client.batch_execute(&format!(
                "CREATE TEMP TABLE copy AS SELECT * FROM rag.chunk WHERE collection_id = {id} AND id % 3 = 0;
                 DELETE FROM rag.chunk WHERE collection_id = {id} AND id % 3 = 0;
                 SELECT rag.compact('lex') WHERE {merged};
                 INSERT INTO rag.chunk SELECT * FROM copy; DROP TABLE copy;
                 UPDATE rag.chunk SET entry = entry + 7 WHERE collection_id = {id} AND id % 5 = 0"
            ))?;
            assert_eq!(bm25::status(&mut client, "lex", "state")?, "ready");
            right(&mut client)?;
        }
        assert!(client.query("SELECT * FROM rag.repair() WHERE action ~ 'lexical'", &[])?.is_empty());
        assert!(scans(&mut client)? > before, "the index was not used");
        Ok(())
    })
}

/// Waits until the statement of a session waits for a lock.
fn waits(client: &mut Client, pid: i32) -> TestResult {
    wait_until("it waits for a lock", Duration::from_secs(30), || {
        let sql = "SELECT wait_event_type = 'Lock' FROM pg_stat_activity WHERE pid = $1";
        client.query_one(sql, &[&pid]).is_ok_and(|row| row.get::<_, Option<bool>>(0) == Some(true))
    })
}

#[test]
fn nothing_is_left_of_a_collection_that_is_dropped_while_it_is_merged() -> TestResult {
    with_cluster(&[], |cluster| {
        let mut watching = cluster.connect()?;
        for dropped_first in [false, true] {
            let (mut client, mut other) = (cluster.connect()?, cluster.connect()?);
            let id = bm25::collection(&mut client, "lex")?;
            for _ in 0..5 {
                client.batch_execute(&bm25::insert(&mut Chance::new(9), id, 0, 3, &[None]))?;
            }
            let drop = format!(
                "DELETE FROM rag.chunk WHERE collection_id = {id}; DELETE FROM rag.document WHERE source_id = {id};
                 DELETE FROM rag.source WHERE id = {id}; SELECT rag.drop_collection('lex')"
            );
            let compact = "SELECT rag.compact('lex')".to_owned();
            let (first, second) = if dropped_first { (drop, compact) } else { (compact, drop) };
            client.batch_execute(&format!("BEGIN; {first}"))?;
            let pid: i32 = other.query_one("SELECT pg_backend_pid()", &[])?.get(0);
            std::thread::scope(|scope| -> TestResult {
                let later = scope.spawn(|| other.batch_execute(&second));
                waits(&mut watching, pid)?;
                client.batch_execute("COMMIT")?;
                Ok(later.join().map_err(|_| Failure::new("the other session panicked"))??)
            })?;
            for table in ["lex_segment", "lex_shelf", "lex_page", "lex_gap"] {
                let left: i64 = client.query_one(&format!("SELECT count(*) FROM rag.{table}"), &[])?.get(0);
                assert_eq!(left, 0, "{table}, dropped first: {dropped_first}");
            }
        }
        Ok(())
    })
}

#[test]
fn a_damaged_index_is_an_error_with_a_way_out() -> TestResult {
    with_cluster(&[], |cluster| {
        let mut client = cluster.connect()?;
        // Lists that are pages of their own.
        let id = fill(&mut client, 3000)?;
        client.batch_execute("SELECT rag.reindex_lexical('lex')")?;
        let pages: i64 = client.query_one("SELECT count(*) FROM rag.lex_page", &[])?.get(0);
        assert!(pages > 10, "{pages} pages");
        let search = |client: &mut Client| {
            client.batch_execute("SELECT * FROM rag.search('w0 w1 w2 w5 w9', collection => 'lex', mode => 'bm25')")
        };
        for damage in [
            "UPDATE rag.lex_page SET payload = substr(payload, 1, 3)",
            "UPDATE rag.lex_page SET payload = ''",
            "UPDATE rag.lex_page SET payload = set_byte(payload, 0, get_byte(payload, 0) # 255)",
            "UPDATE rag.lex_page SET payload = decode(repeat('ff', length(payload)), 'hex')",
            "DELETE FROM rag.lex_page WHERE part = 1",
            "UPDATE rag.lex_shelf SET payload = substr(payload, 1, length(payload) / 2)",
            "UPDATE rag.lex_shelf SET payload = decode(repeat('ff', length(payload)), 'hex')",
            "UPDATE rag.lex_segment SET ids = decode(repeat('ff', length(ids)), 'hex')",
            "UPDATE rag.lex_segment SET ids = ''",
        ] {
            client.batch_execute(damage)?;
            let mut fresh = cluster.connect()?;
            let (code, hint) = failure(search(&mut fresh)).map_err(|e| Failure::new(format!("{damage}: {e}")))?;
            assert_eq!(code, "XX002", "{damage}");
            assert!(hint.contains("rag.reindex_lexical()"), "{damage}: {hint}");
            // Writing goes on.
            fresh.batch_execute(&bm25::insert(&mut Chance::new(2), id, 0, 2, &[None]))?;
            fresh.batch_execute("SELECT rag.reindex_lexical('lex')")?;
            right(&mut fresh)?;
            right(&mut client)?;
        }
        // What cannot be merged does not keep others from being merged.
        bm25::collection(&mut client, "other")?;
        client.batch_execute("UPDATE rag.lex_shelf SET payload = substr(payload, 1, length(payload) / 2)")?;
        client.batch_execute(&format!("DELETE FROM rag.chunk WHERE collection_id = {id} AND id % 2 = 0"))?;
        let other: i64 = client.query_one("SELECT id FROM rag.collection WHERE name = 'other'", &[])?.get(0);
        for _ in 0..40 {
            client.batch_execute(&bm25::insert(&mut Chance::new(2), other, 0, 1, &[None]))?;
        }
        wait_until("small segments are merged", Duration::from_secs(30), || {
            bm25::status(&mut client, "other", "segments").is_ok_and(|n| n.parse::<u32>().is_ok_and(|n| n < 16))
        })?;
        assert!(cluster.log().contains("pg_rag compaction"), "nobody said that a merge failed");
        Ok(())
    })
}

/// Sends a statement from another session, and what ends it a little later.
fn interrupted(cluster: &Cluster, client: &mut Client, sql: &str, wait: Duration) -> TestResult<bool> {
    let pid: i32 = client.query_one("SELECT pg_backend_pid()", &[])?.get(0);
    let mut other = cluster.connect()?;
    let canceller = std::thread::spawn(move || {
        std::thread::sleep(wait);
        other.execute("SELECT pg_cancel_backend($1)", &[&pid]).is_ok()
    });
    let result = client.batch_execute(sql);
    assert!(canceller.join().unwrap_or(false), "nobody cancelled");
    match result {
        Ok(()) => Ok(false),
        Err(error) if error.code().map(|c| c.code()) == Some("57014") => Ok(true),
        Err(error) => Err(error.into()),
    }
}

#[test]
fn what_is_cancelled_leaves_everything_usable() -> TestResult {
    with_cluster(&[], |cluster| {
        let mut client = cluster.connect()?;
        let id = fill(&mut client, 500)?;
        client.batch_execute(&format!(
            "INSERT INTO rag.chunk ({columns})
             SELECT (SELECT string_agg(format('w%s:%s v%s:%s', (g * i) % 14, i, (g * i) % 9973, i), ' ') FROM generate_series(1, 12) i)::tsvector,
                    24, gen_random_uuid(), {id}, {id}, {id}, 0, 'c', sha256('c'), 1, NULL, true FROM generate_series(1, 30000) g",
            columns = bm25::COLUMNS
        ))?;
        let rest = format!(
            "DELETE FROM rag.chunk WHERE collection_id = {id} AND id % 10 = 0;
             UPDATE rag.chunk SET dl = dl + 1 WHERE collection_id = {id} AND id % 10 = 1"
        );
        client.batch_execute(&rest)?;
        let mut cancelled = [0, 0, 0];
        for (at, sql) in
            ["SELECT rag.compact('lex')", "SELECT rag.reindex_lexical('lex')", rest.as_str()].iter().enumerate()
        {
            for milliseconds in [3, 20, 60, 120] {
                let mut session = cluster.connect()?;
                cancelled[at] +=
                    u32::from(interrupted(cluster, &mut session, sql, Duration::from_millis(milliseconds))?);
                check(&mut session, "lex", &["w1".into(), "w3".into()], 20)?;
            }
        }
        assert!(cancelled.iter().all(|n| *n > 0), "nothing was cancelled: {cancelled:?}");
        // A search without its index reads all that match, which takes its time.
        client.batch_execute(&format!("INSERT INTO rag.lex_gap VALUES ({id}); SET statement_timeout = '20ms'"))?;
        let search = "SELECT * FROM rag.search('w0 w1 w2 w3 w4', collection => 'lex', mode => 'bm25')";
        assert_eq!(failure(client.batch_execute(search))?.0, "57014");
        client.batch_execute("RESET statement_timeout; DELETE FROM rag.lex_gap")?;
        client.batch_execute("SELECT rag.compact('lex')")?;
        check(&mut client, "lex", &["w1".into(), "v17".into()], 20)?;
        assert_eq!(bm25::status(&mut client, "lex", "segments || ' ' || dead_segments")?, "2 0", "one for each label");
        Ok(())
    })
}

#[test]
fn a_prepared_transaction_has_its_postings_with_it() -> TestResult {
    with_cluster(&["max_prepared_transactions = 4"], |cluster| {
        let mut client = cluster.connect()?;
        let id = fill(&mut client, 30)?;
        let chance = &mut Chance::new(8);
        for end in ["COMMIT PREPARED 'p'", "ROLLBACK PREPARED 'p'"] {
            for inside in [
                (0..20).map(|_| bm25::insert(chance, id, 0, 1, &[None])).collect::<Vec<_>>().join(";"),
                format!("DELETE FROM rag.chunk WHERE collection_id = {id} AND id % 3 = 0"),
                "SELECT rag.compact('lex')".to_owned(),
                "SELECT rag.reindex_lexical('lex')".to_owned(),
            ] {
                client.batch_execute(&format!("BEGIN; {inside}; PREPARE TRANSACTION 'p'"))?;
                right(&mut client)?;
                if chance.below(3) == 0 {
                    cluster.restart(rag_server_tests::Mode::Immediate)?;
                    client = cluster.reconnect()?;
                    right(&mut client)?;
                }
                client.batch_execute(end)?;
                right(&mut client).map_err(|e| Failure::new(format!("{inside}; {end}: {e}")))?;
            }
        }
        Ok(())
    })
}

#[test]
fn a_session_that_saw_another_index_forgets_it() -> TestResult {
    with_cluster(&[], |cluster| {
        let (mut client, mut other) = (cluster.connect()?, cluster.connect()?);
        for round in 0..3 {
            // The same keys and numbers of segments as before, and other passages.
            let id = bm25::collection(&mut client, "lex")?;
            client.batch_execute(&bm25::insert(&mut Chance::new(round + 50), id, 0, 30, &[None]))?;
            right(&mut client)?;
            right(&mut other)?;
            // Made again and rolled back: the old one is there as before.
            client.batch_execute("BEGIN; DROP EXTENSION pg_rag CASCADE; CREATE EXTENSION pg_rag")?;
            let id = bm25::collection(&mut client, "lex")?;
            client.batch_execute(&bm25::insert(&mut Chance::new(round + 90), id, 0, 20, &[None]))?;
            right(&mut client)?;
            client.batch_execute("ROLLBACK")?;
            right(&mut client)?;
            right(&mut other)?;
            client.batch_execute("DROP EXTENSION pg_rag CASCADE; CREATE EXTENSION pg_rag")?;
        }
        Ok(())
    })
}

#[test]
fn many_small_statements_are_merged_by_whoever_comes() -> TestResult {
    with_cluster(&[], |cluster| {
        let mut client = cluster.connect()?;
        let id = fill(&mut client, 3)?;
        let chance = &mut Chance::new(3);
        for _ in 0..100 {
            client.batch_execute(&bm25::insert(chance, id, 0, 1, &[None, Some("red")]))?;
        }
        wait_until("small segments are merged", Duration::from_secs(30), || {
            bm25::status(&mut client, "lex", "small_segments").is_ok_and(|n| n.parse::<u32>().is_ok_and(|n| n < 16))
        })?;
        right(&mut client)?;
        let before = scans(&mut client)?;
        right(&mut client)?;
        assert!(scans(&mut client)? > before, "the index was not used");
        Ok(())
    })
}

/// A long job does not keep small segments from being merged.
#[test]
fn segments_are_merged_while_a_job_is_running() -> TestResult {
    with_cluster(&[], |cluster| {
        let mut client = cluster.connect()?;
        // Passages without vectors, for which repairing queues a job.
        let long = bm25::collection(&mut client, "long")?;
        client.batch_execute(&format!(
            "INSERT INTO rag.chunk ({columns})
             SELECT 'w0:1'::tsvector, 1, gen_random_uuid(), {long}, {long}, {long}, 0, repeat('ship ' || g || ' ', 60),
                    sha256(g::text::bytea), 120, NULL, true FROM generate_series(1, 8000) g;
             SELECT rag.repair()",
            columns = bm25::COLUMNS
        ))?;
        let job = |client: &mut Client| client.query("SELECT 1 FROM rag.jobs WHERE state = 'running'", &[]);
        wait_until("the job runs", Duration::from_secs(60), || job(&mut client).is_ok_and(|rows| !rows.is_empty()))?;
        let id = fill(&mut client, 3)?;
        for _ in 0..60 {
            client.batch_execute(&bm25::insert(&mut Chance::new(3), id, 0, 1, &[None]))?;
        }
        wait_until("small segments are merged", Duration::from_secs(60), || {
            bm25::status(&mut client, "lex", "small_segments").is_ok_and(|n| n.parse::<u32>().is_ok_and(|n| n < 16))
        })?;
        assert!(!job(&mut client)?.is_empty(), "the job is over");
        right(&mut client)
    })
}

/// What a merge reads and writes passes through the memory of the session, and does not stay in it.
#[test]
fn a_merge_of_much_keeps_little_in_memory() -> TestResult {
    with_cluster(&[], |cluster| {
        let mut client = cluster.connect()?;
        let id = bm25::collection(&mut client, "lex")?;
        // Words that few passages share, so that the lists are many and the bytes too.
        for part in 0..12 {
            client.batch_execute(&format!(
                "INSERT INTO rag.chunk ({})
                 SELECT w.tsv, 60, gen_random_uuid(), {id}, {id}, {id}, g, 'c', sha256('c'), 1, NULL, true
                   FROM generate_series({part} * 5000, {part} * 5000 + 4999) g,
                        LATERAL (SELECT string_agg('w' || (g * 7919 + k * 104729) % 400000 || ':1', ' ')::tsvector AS tsv
                                   FROM generate_series(1, 60) k) w",
                bm25::COLUMNS
            ))?;
        }
        let bytes: i64 =
            client.query_one("SELECT sum(bytes)::int8 FROM rag.lexical_status WHERE collection = 'lex'", &[])?.get(0);
        let mut merging = cluster.connect()?;
        let pid: i32 = merging.query_one("SELECT pg_backend_pid()", &[])?.get(0);
        let before = process::anonymous_memory(pid)?;
        let most = std::thread::scope(|scope| -> TestResult<u64> {
            let merge = scope.spawn(|| merging.query("SELECT rag.compact('lex')", &[]).map(|_| ()));
            let mut most = 0;
            while !merge.is_finished() {
                most = process::anonymous_memory(pid)?.max(most);
                std::thread::sleep(Duration::from_millis(5));
            }
            merge.join().map_err(|_| Failure::new("the merging session panicked"))??;
            Ok(most)
        })?;
        let (kept, bytes) = (most.saturating_sub(before), bytes.unsigned_abs());
        assert!(bytes > 24 << 20, "{bytes} bytes are too few to tell");
        assert!(kept < bytes / 2, "merging {bytes} bytes took {kept}");
        Ok(())
    })
}
