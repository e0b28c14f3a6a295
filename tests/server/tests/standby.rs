// SPDX-License-Identifier: PostgreSQL

//! A physical standby searches, and goes on with the jobs when it is promoted.

use postgres::Client;
use postgres::error::SqlState;
use rag_server_tests::process::wait_until;
use rag_server_tests::{Mode, TestResult, with_cluster};
use std::time::Duration;

fn search(client: &mut Client) -> TestResult<Vec<(i64, String)>> {
    let sql = "SELECT chunk_id, uri FROM rag.search('planets with rings') ORDER BY rank";
    Ok(client.query(sql, &[])?.iter().map(|r| (r.get(0), r.get(1))).collect())
}

#[test]
fn a_standby_reads_and_a_promoted_one_works_on() -> TestResult {
    let settings =
        ["wal_level = replica", "max_wal_senders = 4", "hot_standby = on", "shared_preload_libraries = 'pg_rag'"];
    with_cluster(&settings, |primary| {
        let mut client = primary.connect()?;
        for (uri, text) in [("saturn", "Saturn is a planet with wide rings."), ("bees", "Bees make honey.")] {
            client.execute("SELECT * FROM rag.ingest($1::text, $2, 'text')", &[&text, &uri])?;
        }
        primary.write("pages/a.md", "# Rivers\n\nA river runs to the sea.\n")?;
        let pages = primary.files().join("pages").display().to_string();
        client.execute("SELECT rag.add_source('pages', 'markdown', $1)", &[&pages])?;
        // It waits, so that it is still to be done when the standby takes over.
        client.batch_execute(
            "BEGIN;
             SELECT rag.enqueue_sync('pages');
             UPDATE rag.job SET run_after = now() + interval '5 seconds' WHERE state = 'pending';
             COMMIT",
        )?;
        let before = search(&mut client)?;
        let standby = primary.standby()?;
        let mut there = standby.connect()?;
        assert!(there.query_one("SELECT pg_is_in_recovery()", &[])?.get::<_, bool>(0));
        assert_eq!(search(&mut there)?, before, "on the standby");
        assert_eq!(there.query_one("SELECT count(*) FROM rag.embed(ARRAY['a', 'b'])", &[])?.get::<_, i64>(0), 2);
        let tokens: i32 = there.query_one("SELECT rag.count_tokens('three little words')", &[])?.get(0);
        assert_eq!(tokens, 5);
        let row = there.query_one("SELECT engine_state, repair_needed FROM rag.health()", &[])?;
        assert_eq!((row.get::<_, String>(0).as_str(), row.get::<_, bool>(1)), ("running", false));
        assert_eq!(there.query("SELECT * FROM rag.status", &[])?.len(), 2);
        for writing in
            ["SELECT * FROM rag.ingest('x', 'y', 'text')", "SELECT rag.enqueue_sync('pages')", "CALL rag.sync('pages')"]
        {
            let error = there.batch_execute(writing).err();
            let code = error.as_ref().and_then(|e| e.code());
            assert_eq!(code, Some(&SqlState::READ_ONLY_SQL_TRANSACTION), "{writing}: {error:?}");
        }
        // The primary is gone before the job was due; nobody calls anything on the standby after its promotion.
        primary.stop(Mode::Immediate)?;
        let engine = standby.engine(&mut there)?;
        there.batch_execute("SELECT pg_promote()")?;
        wait_until("the job is done on the promoted standby", Duration::from_secs(60), || {
            there
                .query_one("SELECT count(*) FROM rag.job WHERE state <> 'done'", &[])
                .is_ok_and(|row| row.get::<_, i64>(0) == 0)
        })?;
        assert_eq!(there.query("SELECT * FROM rag.search('a river', 1) WHERE uri = 'a.md'", &[])?.len(), 1);
        assert!(engine.is_alive(), "the promotion cost the engine");
        let after = search(&mut there)?;
        assert_eq!(after.get(..before.len()), Some(&before[..]), "after the promotion");
        Ok(())
    })
}
