// SPDX-License-Identifier: PostgreSQL

//! A source is read, read again, changed, emptied and interrupted.

use postgres::Client;
use postgres::error::SqlState;
use rag_server_tests::process;
use rag_server_tests::{Cluster, Failure, TestResult, standin, with_bare_cluster, with_cluster};
use serde_json::{Value, json};
use std::time::Duration;

fn add(client: &mut Client, name: &str, kind: &str, location: &str, options: &Value) -> Result<u64, postgres::Error> {
    client.execute("SELECT rag.add_source($1, $2, $3, $4)", &[&name, &kind, &location, options])
}

fn sync(client: &mut Client, name: &str) -> Result<u64, postgres::Error> {
    client.execute("CALL rag.sync($1)", &[&name])
}

/// Counts of the latest sync: new, modified, unchanged, deleted, failed.
fn counts(client: &mut Client, name: &str) -> TestResult<[i64; 5]> {
    let row = client.query_one(
        "SELECT new::int8, modified::int8, unchanged::int8, deleted::int8, failed::int8, status
           FROM rag.status WHERE source = $1",
        &[&name],
    )?;
    assert_eq!(row.get::<_, String>(5), "done");
    Ok([0, 1, 2, 3, 4].map(|at| row.get(at)))
}

/// Uris that BM25 finds for words.
fn found(client: &mut Client, words: &str) -> TestResult<Vec<String>> {
    let rows = client.query("SELECT DISTINCT uri FROM rag.search($1, mode => 'bm25') ORDER BY uri", &[&words])?;
    Ok(rows.iter().map(|row| row.get(0)).collect())
}

/// Every row that ingestion writes, with the transaction that wrote it.
fn rows(client: &mut Client) -> TestResult<Vec<String>> {
    let mut all = Vec::new();
    for (table, key) in [("document", "id"), ("chunk", "id"), ("chunk_embedding", "chunk_id")] {
        let sql = format!("SELECT '{table} ' || {key} || ' ' || xmin || ' ' || ctid FROM rag.{table} ORDER BY {key}");
        all.extend(client.query(&sql, &[])?.iter().map(|row| row.get::<_, String>(0)));
    }
    Ok(all)
}

/// A section that fills a chunk of its own.
fn section(title: &str, word: &str) -> String {
    let sentences: String = (0..20).map(|i| format!("Sentence {i} of this part is about {word} only. ")).collect();
    format!("## {title}\n\n{sentences}\n\n")
}

fn three_pages(cluster: &Cluster) -> TestResult<String> {
    cluster
        .write("pages/one.md", format!("# One\n\n{}{}", section("First", "aardvark"), section("Second", "badger")))?;
    cluster.write("pages/two.md", format!("# Two\n\n{}", section("Only", "capybara")))?;
    cluster.write("pages/deep/three.md", format!("# Three\n\n{}", section("Only", "dormouse")))?;
    Ok(cluster.files().join("pages").to_string_lossy().into_owned())
}

#[test]
fn an_unchanged_folder_writes_nothing() -> TestResult {
    with_cluster(&[], |cluster| {
        let mut client = cluster.connect()?;
        let folder = three_pages(cluster)?;
        add(&mut client, "pages", "markdown", &folder, &json!({}))?;
        sync(&mut client, "pages")?;
        assert_eq!(counts(&mut client, "pages")?, [3, 0, 0, 0, 0]);
        assert_eq!(found(&mut client, "badger")?, ["one.md"]);
        assert_eq!(found(&mut client, "dormouse")?, ["deep/three.md"]);

        let before = rows(&mut client)?;
        sync(&mut client, "pages")?;
        assert_eq!(counts(&mut client, "pages")?, [0, 0, 3, 0, 0]);
        assert_eq!(rows(&mut client)?, before);
        // A new time on the same bytes is no change either.
        three_pages(cluster)?;
        sync(&mut client, "pages")?;
        assert_eq!(rows(&mut client)?, before);
        Ok(())
    })
}

#[test]
fn a_changed_file_is_replaced_and_a_deleted_one_vanishes() -> TestResult {
    with_cluster(&[], |cluster| {
        let mut client = cluster.connect()?;
        let folder = three_pages(cluster)?;
        add(&mut client, "pages", "markdown", &folder, &json!({}))?;
        sync(&mut client, "pages")?;
        let key = |client: &mut Client, word: &str| -> TestResult<(i64, String)> {
            let sql = "SELECT id, chunk_key::text FROM rag.chunks WHERE content LIKE '%' || $1 || '%'";
            let row = client.query_one(sql, &[&word])?;
            Ok((row.get(0), row.get(1)))
        };
        let kept = key(&mut client, "Sentence 0 of this part is about aardvark")?;

        cluster.write(
            "pages/one.md",
            format!("# One\n\n{}{}", section("First", "aardvark"), section("Second", "echidna")),
        )?;
        std::fs::remove_file(cluster.files().join("pages/two.md"))?;
        sync(&mut client, "pages")?;

        assert_eq!(counts(&mut client, "pages")?, [0, 1, 1, 1, 0]);
        assert_eq!(found(&mut client, "echidna")?, ["one.md"]);
        assert_eq!(found(&mut client, "badger")?, Vec::<String>::new());
        assert_eq!(found(&mut client, "capybara")?, Vec::<String>::new());
        assert_eq!(
            key(&mut client, "Sentence 0 of this part is about aardvark")?,
            kept,
            "an untouched passage lost its identity"
        );
        let left: i64 = client
            .query_one("SELECT count(*) FROM rag.chunks WHERE uri = 'two.md' OR content LIKE '%badger%'", &[])?
            .get(0);
        assert_eq!(left, 0);
        let dense = client.query("SELECT uri FROM rag.search('capybara', mode => 'dense')", &[])?;
        assert!(dense.iter().all(|row| row.get::<_, String>(0) != "two.md"));
        Ok(())
    })
}

#[test]
fn a_location_outside_of_the_allowed_paths_is_refused() -> TestResult {
    with_cluster(&[], |cluster| {
        let mut client = cluster.connect()?;
        let folder = three_pages(cluster)?;
        add(&mut client, "pages", "markdown", &folder, &json!({}))?;
        std::os::unix::fs::symlink("/etc", cluster.files().join("link"))?;
        let link = cluster.files().join("link").to_string_lossy().into_owned();
        let dots = format!("{}/pages/../../data", cluster.files().display());
        for (at, location) in ["/etc", "/", &link, &dots].into_iter().enumerate() {
            let name = format!("outside{at}");
            // The location may be refused when the source is added or when it is read.
            let refused = match add(&mut client, &name, "text", location, &json!({"glob": "**"})) {
                Ok(_) => sync(&mut client, &name),
                Err(error) => Err(error),
            };
            let error = refused.err().ok_or_else(|| Failure::new(format!("{location} was read")))?;
            assert_eq!(error.code(), Some(&SqlState::INSUFFICIENT_PRIVILEGE), "{location}: {error:?}");
        }
        let documents: i64 = client.query_one("SELECT count(*) FROM rag.documents", &[])?.get(0);
        assert_eq!(documents, 0);
        sync(&mut client, "pages")?;
        assert_eq!(counts(&mut client, "pages")?, [3, 0, 0, 0, 0]);
        Ok(())
    })
}

#[test]
fn a_bad_file_stops_no_other_and_its_old_version_stays() -> TestResult {
    with_cluster(&[], |cluster| {
        let mut client = cluster.connect()?;
        let folder = three_pages(cluster)?;
        let limit = json!({"limits": {"max_document_bytes": 3000}});
        add(&mut client, "pages", "markdown", &folder, &limit)?;
        sync(&mut client, "pages")?;
        assert_eq!(counts(&mut client, "pages")?, [3, 0, 0, 0, 0]);

        cluster.write("pages/two.md", format!("# Two\n\n{}", section("Big", "echidna").repeat(4)))?;
        cluster.write("pages/four.md", format!("# Four\n\n{}", section("Only", "ferret")))?;
        sync(&mut client, "pages")?;

        assert_eq!(counts(&mut client, "pages")?, [1, 0, 2, 0, 1]);
        assert_eq!(found(&mut client, "ferret")?, ["four.md"]);
        assert_eq!(found(&mut client, "capybara")?, ["two.md"], "the old version was lost");
        let failed = client.query("SELECT uri, error FROM rag.sync_item WHERE state = 'failed'", &[])?;
        assert_eq!(failed.len(), 1);
        let (uri, error): (String, String) = (failed[0].get(0), failed[0].get(1));
        assert_eq!(uri, "two.md");
        assert!(error.contains("3000"), "the error does not state the limit: {error}");
        Ok(())
    })
}

#[test]
fn records_that_are_chunks_already_keep_their_ids() -> TestResult {
    with_cluster(&[], |cluster| {
        let mut client = cluster.connect()?;
        let records = [
            json!({"external_id": "r-1", "title": "Bread", "text": "Yeast makes the dough rise."}),
            json!({"external_id": "r-2", "title": "Tea", "text": "Pour hot water on the leaves."}),
        ];
        let lines: String = records.iter().map(|r| format!("{r}\n")).collect();
        let path = cluster.write("records.jsonl", lines)?.to_string_lossy().into_owned();
        add(&mut client, "records", "jsonl", &path, &json!({"chunking": "none"}))?;
        sync(&mut client, "records")?;
        let rows = client.query(
            "SELECT d.external_id, d.title, d.chunks, k.content FROM rag.documents d
               JOIN rag.chunks k ON k.document_id = d.id ORDER BY 1",
            &[],
        )?;
        let stored: Vec<(String, String, i64, String)> =
            rows.iter().map(|r| (r.get(0), r.get(1), r.get(2), r.get(3))).collect();
        let expected = records.iter().map(|r| {
            let text = |field: &str| r[field].as_str().unwrap_or_default().to_owned();
            (text("external_id"), text("title"), 1, text("text"))
        });
        assert_eq!(stored, expected.collect::<Vec<_>>());
        let best = client.query_one(
            "SELECT d.external_id FROM rag.search('leaves in hot water', top_k => 1) s
               JOIN rag.documents d ON d.id = s.document_id",
            &[],
        )?;
        assert_eq!(best.get::<_, String>(0), "r-2");
        Ok(())
    })
}

const MANY: usize = 300;

/// Interrupts a sync of many files after its first commit by `signal`, runs it again and checks that all is well.
fn interrupt(cluster: &Cluster, signal: &str) -> TestResult {
    for i in 0..MANY {
        cluster
            .write(&format!("many/{i:03}.md"), format!("# Page {i}\n\n{}", section("Part", &format!("topic{i}"))))?;
    }
    let mut client = cluster.connect()?;
    add(&mut client, "many", "markdown", &cluster.files().join("many").to_string_lossy(), &json!({}))?;
    let mut victim = cluster.connect()?;
    let pid: i32 = victim.query_one("SELECT pg_backend_pid()", &[])?.get(0);
    let syncing = std::thread::spawn(move || victim.execute("CALL rag.sync('many')", &[]).is_err());
    let documents = |client: &mut Client| -> TestResult<i64> {
        Ok(client.query_one("SELECT count(*) FROM rag.documents", &[])?.get(0))
    };
    let mut seen = 0;
    process::wait_until("the first batch is committed", Duration::from_secs(120), || {
        seen = documents(&mut client).unwrap_or(0);
        seen > 0 || syncing.is_finished()
    })?;
    assert!(seen > 0, "the sync failed before its first commit: {}", cluster.log());
    process::signal(pid, signal)?;
    assert!(syncing.join().unwrap_or(false), "the sync was through before it was interrupted: {seen} documents");
    if signal == "KILL" {
        // The server ends every other session before it starts anew; one opened in between would be ended too.
        process::wait_until("the other session is ended", Duration::from_secs(60), || {
            client.simple_query("SELECT 1").is_err()
        })?;
    }
    let mut client = cluster.reconnect()?;
    let kept = documents(&mut client)?;
    assert!(kept >= seen && kept < MANY as i64, "{kept} documents are left of {seen}");

    sync(&mut client, "many")?;
    let [new, _, unchanged, _, failed] = counts(&mut client, "many")?;
    assert_eq!((new + unchanged, failed), (MANY as i64, 0));
    assert_eq!(unchanged, kept, "what was committed is read again");
    let row = client.query_one(
        "SELECT count(*), count(DISTINCT uri), min(chunks) > 0 FROM rag.documents WHERE source = 'many'",
        &[],
    )?;
    assert_eq!((row.get::<_, i64>(0), row.get::<_, i64>(1), row.get::<_, bool>(2)), (MANY as i64, MANY as i64, true));
    let pending: i64 = client.query_one("SELECT pending::int8 FROM rag.status WHERE source = 'many'", &[])?.get(0);
    assert_eq!(pending, 0, "chunks without a vector");
    let first: String =
        client.query_one("SELECT uri FROM rag.search('topic299', mode => 'bm25') ORDER BY rank LIMIT 1", &[])?.get(0);
    assert_eq!(first, "299.md");
    let running: i64 = client.query_one("SELECT count(*) FROM rag.sync WHERE status = 'running'", &[])?.get(0);
    assert_eq!(running, 0, "the interrupted sync still counts as running");
    Ok(())
}

#[test]
fn a_sync_whose_backend_is_terminated_converges() -> TestResult {
    with_cluster(&[], |cluster| interrupt(cluster, "TERM"))
}

#[test]
fn a_sync_whose_backend_is_killed_converges() -> TestResult {
    // PostgreSQL restarts all sessions after a kill -9 of one; what counts is that the data is well.
    with_cluster(&[], |cluster| interrupt(cluster, "KILL"))
}

/// Rows that were read by going through a table or an index, where they are more than `most`. Each statement looks at the segments of
/// its place until it has seen enough small ones; with merging at work these are few, and the others grow by the logarithm.
fn read_again(client: &mut Client, most: i64) -> TestResult<Vec<(String, i64, i64)>> {
    client.batch_execute("SELECT pg_stat_force_next_flush()")?;
    let sql = "SELECT indexrelname::text, idx_scan, idx_tup_read FROM pg_stat_user_indexes
                WHERE schemaname = 'rag'
                  AND idx_tup_read > $1::int8 * CASE indexrelname WHEN 'lex_segment_population' THEN 4 ELSE 1 END
                UNION ALL
               SELECT relname::text, seq_scan, seq_tup_read FROM pg_stat_user_tables
                WHERE schemaname = 'rag' AND seq_tup_read > $1 ORDER BY 1";
    Ok(client.query(sql, &[&most])?.iter().map(|r| (r.get(0), r.get(1), r.get(2))).collect())
}

/// Without statistics, which a first sync does not have, a list of values looks to the planner like the whole table.
#[test]
fn a_sync_does_not_read_its_tables_again_and_again() -> TestResult {
    const RECORDS: i64 = 4000;
    with_bare_cluster(&["autovacuum = off"], |cluster| {
        let record = |n: i64| {
            format!("{{\"_id\": \"r{n}\", \"title\": \"Record {n}\", \"text\": \"Box {n} holds {} nails.\"}}\n", n * 7)
        };
        let records: String = (0..RECORDS).map(record).collect();
        let file = cluster.write("boxes.jsonl", records)?.to_string_lossy().into_owned();
        let mut client = cluster.connect()?;
        client.batch_execute("CREATE EXTENSION pg_rag CASCADE")?;
        standin::collection(cluster, &mut client)?;
        let sql = "SELECT rag.add_source($1, 'jsonl', $2, collection => 'standin')";
        client.execute(sql, &[&"boxes", &file])?;
        sync(&mut client, "boxes")?;
        assert_eq!(counts(&mut client, "boxes")?, [RECORDS, 0, 0, 0, 0]);
        assert_eq!(read_again(&mut client, RECORDS * 8)?, []);
        // Then it renews them, and what comes next is planned for what is there.
        let known =
            "SELECT count(*) FROM pg_class WHERE oid = ANY ('{rag.document,rag.chunk,rag.chunk_embedding}'::regclass[])
                      AND reltuples BETWEEN 0.9 * $1::float8 AND 1.1 * $1::float8";
        assert_eq!(client.query_one(known, &[&(RECORDS as f64)])?.get::<_, i64>(0), 3, "statistics are not there");

        // Nor for each of a few documents that change or vanish beside many others; once for each run is what a small
        // table may cost.
        client.batch_execute("ANALYZE; SELECT pg_stat_reset()")?;
        let few = cluster.write("few.jsonl", (0..10).map(record).collect::<String>())?.to_string_lossy().into_owned();
        client.execute(sql, &[&"few", &few])?;
        sync(&mut client, "few")?;
        sync(&mut client, "few")?;
        let changed: String = (0..8).map(|n| record(n).replace("nails", "screws")).collect();
        cluster.write("few.jsonl", changed)?;
        sync(&mut client, "few")?;
        assert_eq!(counts(&mut client, "few")?, [0, 8, 0, 2, 0]);
        assert_eq!(read_again(&mut client, RECORDS * 8)?, []);
        Ok(())
    })
}
