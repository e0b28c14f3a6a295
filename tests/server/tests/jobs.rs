// SPDX-License-Identifier: PostgreSQL

//! A job worker is there as long as it has something to do, and no longer.

use rag_server_tests::process::wait_until;
use rag_server_tests::{TestResult, with_cluster};
use std::time::Duration;

#[test]
fn a_locked_job_keeps_no_worker_and_no_database_busy() -> TestResult {
    with_cluster(&[], |cluster| {
        cluster.connect()?.batch_execute("CREATE DATABASE other")?;
        let mut client = cluster.connect_to("other")?;
        client.batch_execute("CREATE EXTENSION pg_rag CASCADE")?;
        cluster.write("pages/a.md", "# Rivers\n\nA river runs to the sea.\n")?;
        let pages = cluster.files().join("pages").display().to_string();
        for name in ["held", "free"] {
            client.execute("SELECT rag.add_source($1, 'markdown', $2)", &[&name, &pages])?;
        }
        let mut holder = cluster.connect_to("other")?;
        client.batch_execute(
            "BEGIN; SELECT rag.enqueue_sync('held'); UPDATE rag.job SET run_after = now() + interval '1 second'; COMMIT",
        )?;
        holder.batch_execute("BEGIN; SELECT id FROM rag.job FOR UPDATE")?;
        client.batch_execute("SELECT rag.enqueue_sync('free')")?;
        let done = |client: &mut postgres::Client, name: &str| {
            let sql = "SELECT count(*) FROM rag.jobs WHERE source = $1 AND state = 'done'";
            client.query_one(sql, &[&name]).is_ok_and(|row| row.get::<_, i64>(0) > 0)
        };
        wait_until("the other job is done", Duration::from_secs(60), || done(&mut client, "free"))?;
        // The held job has been due for long; workers look at it now and then and end.
        let workers = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'pg_rag job worker'";
        let mut absent = 0;
        for _ in 0..40 {
            std::thread::sleep(Duration::from_millis(100));
            absent += u32::from(client.query_one(workers, &[])?.get::<_, i64>(0) == 0);
        }
        assert!(absent > 20, "there was no worker in {absent} of 40 looks");
        holder.batch_execute("COMMIT")?;
        wait_until("the held job is done", Duration::from_secs(60), || done(&mut client, "held"))?;
        drop((client, holder));
        wait_until("the database can be dropped", Duration::from_secs(20), || {
            cluster.connect().is_ok_and(|mut c| c.batch_execute("DROP DATABASE other").is_ok())
        })
    })
}

/// Whoever writes much announces at any moment, also right after a worker has looked and while it ends.
#[test]
fn a_worker_that_is_through_is_no_failure() -> TestResult {
    with_cluster(&["shared_preload_libraries = 'pg_rag'"], |cluster| {
        let mut client = cluster.connect()?;
        cluster.write("pages/a.md", "# Rivers\n\nA river runs to the sea.\n")?;
        let pages = cluster.files().join("pages").display().to_string();
        client.execute("SELECT rag.add_source('pages', 'markdown', $1)", &[&pages])?;
        let database: u32 =
            client.query_one("SELECT oid FROM pg_database WHERE datname = current_database()", &[])?.get(0);
        let folder = cluster.data().join("pgsql_tmp_pg_rag/jobs");
        let over = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| -> TestResult {
            scope.spawn(|| {
                while !over.load(std::sync::atomic::Ordering::Relaxed) {
                    let _ = std::fs::write(folder.join(database.to_string()), "0");
                    std::thread::sleep(Duration::from_millis(2));
                }
            });
            // So long that a pause which doubles with each worker would be longer than what is waited for below.
            std::thread::sleep(Duration::from_secs(24));
            let queued = client.batch_execute("SELECT rag.enqueue_sync('pages')");
            let done = wait_until("the job is done", Duration::from_secs(7), || {
                let sql = "SELECT count(*) FROM rag.jobs WHERE state = 'done'";
                client.query_one(sql, &[]).is_ok_and(|row| row.get::<_, i64>(0) > 0)
            });
            over.store(true, std::sync::atomic::Ordering::Relaxed);
            queued?;
            done
        })?;
        assert!(!cluster.log().contains("ended early"));
        Ok(())
    })
}
