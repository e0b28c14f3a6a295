// SPDX-License-Identifier: PostgreSQL

//! Eight sessions that write the same passages and eight that search, while segments are merged.
//!
//! The load is that of `eval/bench/run.sh concurrency`, which compares with the formula; here nothing may be in the server's
//! log besides.

use rag_core::Error;
use rag_eval::bench::concurrency::load;
use rag_server_tests::chaos::is_full;
use rag_server_tests::{TestResult, with_cluster};
use std::time::Duration;

#[test]
fn writers_and_searchers_hinder_nobody_and_nothing_is_lost() -> TestResult {
    let length = Duration::from_secs(if is_full() { 300 } else { 12 });
    with_cluster(&["shared_preload_libraries = 'pg_rag'", "deadlock_timeout = '200ms'"], |cluster| {
        let done = load(&|| cluster.connect().map_err(|e| Error::internal(e.to_string())), length, true)?;
        assert!(done.writes > 0 && done.searches.count() > 0, "{done:?}");
        let errors: Vec<String> = cluster
            .log()
            .lines()
            .filter(|l| l.contains("ERROR:") || l.contains("compaction"))
            .map(str::to_owned)
            .collect();
        assert!(errors.is_empty(), "{errors:#?}");
        Ok(())
    })
}
