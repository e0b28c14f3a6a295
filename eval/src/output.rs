// SPDX-License-Identifier: PostgreSQL

//! A run as text, as JSON and as a trec run file, and what was expected of it.

use crate::latency::shown;
use crate::run::{REPORTED, Report, Retrieval, pooled};
use rag_core::{Error, Result};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::str::FromStr;

/// A value with its tolerance, written `0.6478±0.005` (or `0.6478+-0.005`).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Expectation {
    /// The value.
    pub value: f64,
    /// How far from it is still as expected.
    pub tolerance: f64,
}

impl Expectation {
    /// Whether `measured` is as expected; the bound itself is.
    pub fn holds(&self, measured: f64) -> bool {
        (measured - self.value).abs() <= self.tolerance + 1e-9
    }
}

impl FromStr for Expectation {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let bad = || Error::invalid(format!("\"{text}\" is not a value with a tolerance, like 0.6478±0.005"));
        let (value, tolerance) = text.split_once('±').or_else(|| text.split_once("+-")).ok_or_else(bad)?;
        let number = |n: &str| n.trim().parse::<f64>().ok().filter(|n| n.is_finite() && *n >= 0.0).ok_or_else(bad);
        Ok(Self { value: number(value)?, tolerance: number(tolerance)? })
    }
}

/// The lines that `rag_eval run` prints.
pub fn summary(report: &Report) -> String {
    let mut out = String::new();
    for metric in REPORTED {
        let _ = writeln!(out, "{:<12}{:.4}", metric.to_string(), report.mean(metric).unwrap_or(0.0));
    }
    let _ = writeln!(out, "{:<12}{}", "queries", report.answered.len());
    let (p50, p95) = (shown(report.latency.p50()), shown(report.latency.p95()));
    let _ = writeln!(out, "{:<12}p50 {p50} ms, p95 {p95} ms", "latency");
    out
}

/// Everything about a run, query by query.
pub fn as_json(report: &Report, retrieval: &Retrieval, environment: &[(String, String)]) -> Value {
    let means: BTreeMap<String, f64> = report.metrics.iter().map(|e| (e.metric.to_string(), e.mean)).collect();
    let of = |id: &str| -> BTreeMap<String, Option<f64>> {
        report.metrics.iter().map(|e| (e.metric.to_string(), e.per_query.get(id).copied())).collect()
    };
    let queries: Vec<Value> = report
        .answered
        .iter()
        .map(|a| {
            let results: Vec<Value> = a.hits.iter().map(|h| json!([h.external_id, h.rank, h.score])).collect();
            let milliseconds = a.time.as_secs_f64() * 1000.0;
            json!({"id": a.query.id, "metrics": of(&a.query.id), "ms": milliseconds, "results": results})
        })
        .collect();
    json!({
        "retrieval": {
            "collection": retrieval.collection, "mode": retrieval.mode, "profile": retrieval.profile,
            "settings": retrieval.settings, "top_k": retrieval.top_k, "candidate_k": retrieval.candidate_k,
        },
        "environment": environment.iter().cloned().collect::<BTreeMap<_, _>>(),
        "metrics": means,
        "latency_ms": {"p50": report.latency.p50(), "p95": report.latency.p95()},
        "queries": queries,
    })
}

/// A run file for trec_eval.
///
/// trec_eval sorts by score and breaks ties by document id, so the score column counts down from the number of results
/// rather than repeating our score: that way it sees our ranks and must come to our numbers.
pub fn as_trec(report: &Report, tag: &str) -> String {
    let mut out = String::new();
    for answered in &report.answered {
        let ranking = pooled(&answered.hits);
        let count = ranking.ids().len();
        for (at, id) in ranking.ids().iter().enumerate() {
            let _ = writeln!(out, "{}\tQ0\t{id}\t{}\t{}\t{tag}", answered.query.id, at + 1, count - at);
        }
    }
    out
}

/// Writes a file.
pub fn write(path: &Path, text: &str) -> Result<()> {
    std::fs::write(path, text).map_err(|e| Error::io(&path.display().to_string(), &e))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::beir::{Qrels, Query};
    use crate::run::{Answered, Hit, assess};
    use rag_core::metrics::Grades;
    use std::time::Duration;

    fn report() -> Report {
        let hit = |id: &str, rank| Hit { external_id: id.to_owned(), rank, score: 0.5 };
        let answered = Answered {
            query: Query { id: "q".to_owned(), text: "?".to_owned() },
            hits: vec![hit("a", 1), hit("b", 2), hit("a", 3)],
            time: Duration::from_millis(2),
        };
        assess(vec![answered], &Qrels::from([("q".to_owned(), Grades::from([("b".to_owned(), 1)]))]))
    }

    #[test]
    fn an_expectation_is_parsed_and_held_to() {
        let expected: Expectation = "0.6478±0.005".parse().expect("parses");
        assert_eq!("0.6478 +- 0.005".parse::<Expectation>().ok(), Some(expected));
        assert!(expected.holds(0.6528) && expected.holds(0.6428) && !expected.holds(0.6529));
        for text in ["0.6478", "a±b", "±", "0.5±-1", "0.5±inf"] {
            assert!(text.parse::<Expectation>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_trec_run_has_our_order_even_where_scores_tie() {
        assert_eq!(as_trec(&report(), "pg_rag"), "q\tQ0\ta\t1\t2\tpg_rag\nq\tQ0\tb\t2\t1\tpg_rag\n");
    }

    #[test]
    fn the_summary_reads_well() {
        let text = summary(&report());
        assert!(text.starts_with("nDCG@10     0.6309\nRecall@10   1.0000\n"), "{text}");
        assert!(text.ends_with("queries     1\nlatency     p50 2.00 ms, p95 2.00 ms\n"), "{text}");
    }
}
