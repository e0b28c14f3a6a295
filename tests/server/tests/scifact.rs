// SPDX-License-Identifier: PostgreSQL

//! The numbers on SciFact are those of the reference implementation.
//!
//! One test, because embedding 5,183 abstracts takes minutes on two cores. The numbers come from `BASELINES.md`, the
//! code that measures them from `rag_eval`, so that this and `make eval` cannot disagree.

use rag_eval::compare::{CHECKS, Compare, compare_model, table};
use rag_server_tests::{TestResult, data, with_cluster};

#[test]
fn dense_bm25_and_hybrid_come_near_the_baselines() -> TestResult {
    let (Some(set), Some(baselines)) = (data("scifact"), data("BASELINES.md")) else { return Ok(()) };
    with_cluster(&["shared_buffers = 256MB"], |cluster| {
        let request = Compare {
            beir_dir: set,
            baselines,
            model: "all-MiniLM-L6-v2".to_owned(),
            also: Vec::new(),
            stage: cluster.files(),
            out: None,
        };
        let mut client = cluster.connect()?;
        let (imported, outcomes) = compare_model(&mut client, &request, &request.model, true)?;
        println!("{}", table(&outcomes));
        assert_eq!((imported.records, imported.failed), (5183, 0));
        assert_eq!(outcomes.len(), CHECKS.len());
        let far: Vec<&str> = outcomes.iter().filter(|o| !o.holds()).map(|o| o.check.mode).collect();
        assert!(far.is_empty(), "outside of the tolerance: {far:?}\n{}", table(&outcomes));
        // 200 queries are judged; fewer would mean that some were lost on the way.
        assert!(outcomes.iter().all(|o| o.report.answered.len() == 200));
        Ok(())
    })
}
