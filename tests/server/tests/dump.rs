// SPDX-License-Identifier: PostgreSQL

//! A dump and what is restored of it: the same answers, rights and jobs.

use postgres::Client;
use rag_server_tests::process::wait_until;
use rag_server_tests::{Cluster, Failure, TestResult, with_cluster};
use std::process::Command;
use std::time::Duration;

/// What a search says, whatever the keys of this database are.
type Answer = Vec<(String, String, Option<f64>, Option<f64>)>;

const QUESTIONS: [&str; 3] = ["tall trees", "how do I bake bread", "planets with rings"];

fn answers(client: &mut Client) -> TestResult<Vec<Answer>> {
    let sql = "SELECT chunk_key::text, content, dense_score, bm25_score
                 FROM rag.search($1, 5, collection => $2, settings => '{\"exact\": true}') ORDER BY rank";
    let mut all = Vec::new();
    for collection in ["default", "fine"] {
        for question in QUESTIONS {
            let rows = client.query(sql, &[&question, &collection])?;
            assert!(!rows.is_empty(), "{question} found nothing in {collection}");
            all.push(rows.iter().map(|r| (r.get(0), r.get(1), r.get(2), r.get(3))).collect());
        }
    }
    Ok(all)
}

/// Two collections with two models, labels, and a job that waits.
fn fill(cluster: &Cluster, client: &mut Client) -> TestResult {
    client.batch_execute(
        "SELECT rag.create_collection('fine', 'all-MiniLM-L6-v2');
         CREATE ROLE reader; CREATE ROLE alice IN ROLE reader; CREATE ROLE bob IN ROLE reader;
         GRANT USAGE ON SCHEMA rag TO reader;
         GRANT SELECT ON ALL TABLES IN SCHEMA rag TO reader;
         GRANT EXECUTE ON FUNCTION rag.search TO reader;
         INSERT INTO rag.acl VALUES ('alice', 'secret')",
    )?;
    let texts = [
        ("oak", "An oak is a tall tree.", None),
        ("bread", "Bread is baked of flour and water.", None),
        ("saturn", "Saturn is a planet with wide rings.", None),
        ("spruce", "The tallest tree of all is a secret spruce.", Some("secret")),
    ];
    for collection in ["default", "fine"] {
        for (uri, text, label) in texts {
            client.execute(
                "SELECT * FROM rag.ingest($1::text, $2, 'text', collection => $3, acl => $4)",
                &[&text, &uri, &collection, &label],
            )?;
        }
    }
    cluster.write("pages/a.md", "# Rivers\n\nA river runs to the sea.\n")?;
    let pages = cluster.files().join("pages").display().to_string();
    client.execute("SELECT rag.add_source('pages', 'markdown', $1)", &[&pages])?;
    client.batch_execute("CALL rag.sync('pages')")?;
    client.batch_execute(
        r#"SELECT rag.create_question_set('kept');
           SELECT rag.import_questions('kept', '[{"id": "tree", "text": "tall trees", "gold": [{"uri": "oak", "quote": "tall tree"}]},
               {"id": "rings", "text": "planets with rings", "gold": [{"uri": "saturn"}]}]'::jsonb);
           SELECT rag.evaluate('kept', settings => '{"exact": true}', name => 'before')"#,
    )?;
    // It waits for a time that no test reaches, so that it is still waiting when it is dumped.
    client.batch_execute(
        "BEGIN;
         SELECT rag.enqueue_sync('pages');
         UPDATE rag.job SET run_after = now() + interval '1 day' WHERE state = 'pending';
         COMMIT",
    )?;
    Ok(())
}

fn seen_by(client: &mut Client, role: &str) -> TestResult<bool> {
    client.batch_execute(&format!("SET ROLE {role}"))?;
    let rows = client.query("SELECT uri FROM rag.search('the tallest tree', 10)", &[])?;
    client.batch_execute("RESET ROLE")?;
    Ok(rows.iter().any(|r| r.get::<_, String>(0) == "spruce"))
}

fn check(command: &mut Command) -> TestResult {
    let output = command.output()?;
    // A message without a failure would be an error that pg_restore ignored.
    match output.status.success() && output.stderr.is_empty() {
        true => Ok(()),
        false => Err(Failure::new(format!("{command:?}: {}", String::from_utf8_lossy(&output.stderr)))),
    }
}

#[test]
fn a_restored_database_answers_as_the_original() -> TestResult {
    with_cluster(&[], |cluster| {
        let mut client = cluster.connect()?;
        fill(cluster, &mut client)?;
        let before = answers(&mut client)?;
        assert!(seen_by(&mut client, "alice")? && !seen_by(&mut client, "bob")?);
        let highest: i64 = client.query_one("SELECT max(id) FROM rag.chunk", &[])?.get(0);
        for (name, format, jobs) in [("plain", "p", None), ("custom", "c", None), ("parallel", "d", Some("2"))] {
            client.batch_execute(&format!("CREATE DATABASE {name}"))?;
            let file = cluster.socket().join(format!("dump_{name}"));
            let mut dump = cluster.program("pg_dump");
            dump.args(["-F", format, "-f"]).arg(&file);
            dump.args(jobs.iter().flat_map(|n| ["-j", n]));
            check(&mut dump)?;
            let mut restore = match format {
                "p" => {
                    let mut psql = cluster.program("psql");
                    psql.args(["-X", "-q", "-v", "ON_ERROR_STOP=1", "-o", "/dev/null", "-d", name, "-f"]);
                    psql
                }
                _ => {
                    let mut restore = cluster.program("pg_restore");
                    restore.args(["-e", "-d", name]).args(jobs.iter().flat_map(|n| ["-j", n]));
                    restore
                }
            };
            check(restore.arg(&file))?;

            let mut restored = cluster.connect_to(name)?;
            // Before anything is repaired, by comparing all vectors.
            assert_eq!(answers(&mut restored)?, before, "{name}");
            // A run that was kept, and the same again over what was restored.
            let sql = "SELECT first_mean, second_mean, first_result_churn FROM rag.compare(1, rag.evaluate('kept', settings => '{\"exact\": true}'))
                        WHERE stratum IS NULL AND metric = 'nDCG@10'";
            let row = restored.query_one(sql, &[])?;
            let mean: f64 = row.get(0);
            assert!(mean > 0.5 && row.get::<_, f64>(1) == mean && row.get::<_, f64>(2) == 0.0, "{name}: {row:?}");
            assert!(restored.query_one("SELECT repair_needed FROM rag.health()", &[])?.get::<_, bool>(0), "{name}");
            assert_eq!(restored.query("SELECT * FROM rag.repair()", &[])?.len(), 1, "one index is no member");
            assert!(!restored.query_one("SELECT repair_needed FROM rag.health()", &[])?.get::<_, bool>(0), "{name}");
            assert_eq!(answers(&mut restored)?, before, "{name}, repaired");
            assert!(seen_by(&mut restored, "alice")? && !seen_by(&mut restored, "bob")?, "{name}");
            let sql = "SELECT kind, state FROM rag.job WHERE state <> 'done'";
            let jobs: Vec<(String, String)> = restored.query(sql, &[])?.iter().map(|r| (r.get(0), r.get(1))).collect();
            assert_eq!(jobs, [("sync".to_owned(), "pending".to_owned())], "{name}");

            // The index that was made is used, where a planner has no cheaper way through four rows.
            restored.batch_execute("SET enable_seqscan = off; SET enable_sort = off")?;
            let sql = "SELECT rag.search('tall trees', 5, collection => 'fine', mode => 'dense', candidate_k => 2)";
            restored.query(sql, &[])?;
            let sql = "SELECT sum(idx_scan) > 0 FROM pg_stat_user_indexes WHERE indexrelname ~ '^chunk_embedding_hnsw_1[0-9][0-9]_'";
            wait_until("the HNSW index was scanned", Duration::from_secs(10), || {
                restored.query_one(sql, &[]).is_ok_and(|row| row.get::<_, Option<bool>>(0) == Some(true))
            })?;
            // New rows get new keys, and the job runs here.
            let sql = "SELECT document_id FROM rag.ingest('Elm, ash and lime are trees.', 'elm', 'text')";
            restored.query_one(sql, &[])?;
            let new: i64 = restored.query_one("SELECT max(id) FROM rag.chunk", &[])?.get(0);
            assert!(new > highest, "{name}: chunk {new} after {highest}");
            // It was to be dumped while it waited; rag.repair has workers look for jobs.
            restored.batch_execute("UPDATE rag.job SET run_after = now() WHERE state = 'pending'")?;
            restored.query("SELECT * FROM rag.repair()", &[])?;
            wait_until("the job is done", Duration::from_secs(60), || {
                let sql = "SELECT count(*) FROM rag.job WHERE state <> 'done'";
                restored.query_one(sql, &[]).is_ok_and(|row| row.get::<_, i64>(0) == 0)
            })?;
            drop(restored);
        }
        Ok(())
    })
}
