// SPDX-License-Identifier: PostgreSQL

//! Many sessions, one model.

use rag_server_tests::{Failure, TestResult, process, with_cluster};
use std::fs;

const SESSIONS: usize = 50;
const MB: u64 = 1 << 20;

/// Bytes of a process's memory that no other process shares.
fn private(pid: i32) -> TestResult<u64> {
    let rollup = fs::read_to_string(format!("/proc/{pid}/smaps_rollup"))?;
    let of = |name: &str| -> u64 {
        let line = rollup.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok()).unwrap_or(0) * 1024
    };
    Ok(of("Private_Clean:") + of("Private_Dirty:"))
}

#[test]
fn fifty_sessions_share_one_model() -> TestResult {
    with_cluster(&["max_connections = 60"], |cluster| {
        let mut client = cluster.connect()?;
        for i in 0..200 {
            let text = format!("Page {i} tells of topic{} and of planets with rings.", i % 17);
            client.execute("SELECT * FROM rag.ingest($1::text, $2, 'text')", &[&text, &format!("page{i}")])?;
        }
        // Both lanes have opened their sessions before the first look.
        client.query("SELECT * FROM rag.search('planets with rings')", &[])?;
        client.query("SELECT ordinal FROM rag.embed(ARRAY(SELECT 'text ' || i FROM generate_series(1, 20) i))", &[])?;
        let engine = cluster.engine(&mut client)?;
        let before = private(engine.pid)?;
        let mut sessions = (0..SESSIONS).map(|_| cluster.connect()).collect::<TestResult<Vec<_>>>()?;
        let mut largest = 0;
        for session in &mut sessions {
            assert_eq!(session.query("SELECT * FROM rag.search('planets with rings')", &[])?.len(), 10);
            let pid: i32 = session.query_one("SELECT pg_backend_pid()", &[])?.get(0);
            largest = largest.max(private(pid)?);
        }
        let after = private(engine.pid)?;
        eprintln!(
            "{SESSIONS} sessions: at most {} kB private in a backend; engine {} kB before, {} kB after",
            largest >> 10,
            before >> 10,
            after >> 10
        );
        assert!(largest < 30 * MB, "{} kB private in a backend", largest >> 10);
        // A model for each session would be more than ten times this.
        assert!(after < before + 64 * MB, "the engine grew from {} to {} MB", before / MB, after / MB);
        let engines = cluster.processes().into_iter().filter(|p| p.name == "pg_rag_engine").count();
        assert_eq!(engines, 1);
        // No backend has the runtime or a model in it.
        for pid in process::descendants(cluster.postmaster()?).iter().map(|p| p.pid).filter(|pid| *pid != engine.pid) {
            let maps = fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
            if maps.contains("libonnxruntime") {
                return Err(Failure::new(format!("process {pid} has loaded ONNX Runtime")));
            }
        }
        Ok(())
    })
}
