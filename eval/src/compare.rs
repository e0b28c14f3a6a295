// SPDX-License-Identifier: PostgreSQL

//! A judged set against the reference baselines: the same retrieval by two implementations.
//!
//! Owns which settings of ours correspond to which baseline and how far apart they may be. The dense leg does exactly
//! what the baseline does (same model, exact scan, records cut at the window), so its tolerance is small. The BM25 leg
//! differs on purpose (PostgreSQL's English configuration and stop words, identifier tokens, titles that count more), so there it
//! may be better, and worse by about half a standard error of the mean.

use crate::baseline::Baselines;
use crate::import::{Import, Imported, import};
use crate::latency::shown;
use crate::output::Expectation;
use crate::run::{Judged, REPORTED, Report, Retrieval, run};
use postgres::Client;
use rag_core::Result;
use serde_json::json;
use std::fmt::Write as _;
use std::path::PathBuf;

/// One way of searching and the baseline it has to come near.
#[derive(Debug, Clone, Copy)]
pub struct Check {
    /// Mode of the search.
    pub mode: &'static str,
    /// Row of the baselines.
    pub system: &'static str,
    /// How far nDCG@10 may be from it.
    pub tolerance: f64,
    /// Whether it may be as much better as it likes.
    pub may_be_better: bool,
}

impl Check {
    /// What is expected, in words.
    fn shown(&self, value: f64) -> String {
        let Self { tolerance, .. } = self;
        if self.may_be_better { format!("at least {value} - {tolerance}") } else { format!("{value} ± {tolerance}") }
    }
}

/// The three checks.
pub const CHECKS: [Check; 3] = [
    Check { mode: "dense", system: "dense", tolerance: 0.005, may_be_better: false },
    Check { mode: "bm25", system: "bm25 stem", tolerance: 0.015, may_be_better: true },
    Check { mode: "hybrid", system: "rrf60 dense+bm25 stem", tolerance: 0.015, may_be_better: true },
];

/// What to compare.
#[derive(Debug, Clone, clap::Args)]
pub struct Compare {
    /// Folder in BEIR's layout; its name is the set's name in the baselines
    pub beir_dir: PathBuf,
    /// The page with the baselines
    #[arg(long)]
    pub baselines: PathBuf,
    /// Model that has to come near the baselines
    #[arg(long, default_value = "all-MiniLM-L6-v2")]
    pub model: String,
    /// Further models that are reported only
    #[arg(long)]
    pub also: Vec<String>,
    /// Folder for the unpacked corpus; the server must be allowed to read it (pg_rag.allowed_paths)
    #[arg(long, env = "RAG_EVAL_STAGE")]
    pub stage: PathBuf,
    /// Write the table to this Markdown page
    #[arg(long)]
    pub out: Option<PathBuf>,
}

/// One check and its outcome.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// Model.
    pub model: String,
    /// The check.
    pub check: Check,
    /// nDCG@10 of the baseline, with the tolerance.
    pub expected: Expectation,
    /// Our run.
    pub report: Report,
    /// Whether missing the expectation is a failure.
    pub required: bool,
}

impl Outcome {
    /// Whether our nDCG@10 is near enough.
    pub fn holds(&self) -> bool {
        let found = self.report.ndcg10();
        self.expected.holds(found) || (self.check.may_be_better && found > self.expected.value)
    }
}

/// Imports the set for one model into a collection of its own and runs the checks.
pub fn compare_model(
    client: &mut Client,
    request: &Compare,
    model: &str,
    required: bool,
) -> Result<(Imported, Vec<Outcome>)> {
    let baselines = Baselines::read(&request.baselines)?;
    let set = crate::beir::Set::open(&request.beir_dir)?.name();
    let collection = format!("{set}_{}", model.replace(|c: char| !c.is_ascii_alphanumeric(), "_").to_lowercase());
    let imported = import(
        client,
        &Import {
            beir_dir: request.beir_dir.clone(),
            source: collection.clone(),
            collection: collection.clone(),
            model: Some(model.to_owned()),
            chunking: "none".to_owned(),
            truncate: true,
            stage: request.stage.clone(),
        },
    )?;
    let judged = Judged {
        beir_dir: request.beir_dir.clone(),
        queries: "queries.jsonl".to_owned(),
        qrels: "qrels.tsv".to_owned(),
    };
    let mut outcomes = Vec::new();
    for check in CHECKS {
        let value = baselines.value(&set, check.system, "nDCG@10")?;
        let retrieval = Retrieval {
            collection: collection.clone(),
            mode: Some(check.mode.to_owned()),
            profile: "rrf".to_owned(),
            settings: json!({"exact": true}),
            top_k: 100,
            candidate_k: Some(100),
        };
        let report = run(client, &judged, &retrieval)?;
        let expected = Expectation { value, tolerance: check.tolerance };
        outcomes.push(Outcome { model: model.to_owned(), check, expected, report, required });
    }
    Ok((imported, outcomes))
}

/// The comparison as a Markdown table.
pub fn table(outcomes: &[Outcome]) -> String {
    let metrics: Vec<String> = REPORTED.iter().map(ToString::to_string).collect();
    let mut out =
        format!("| model | mode | {} | p50 ms | p95 ms | baseline nDCG@10 | difference | |\n", metrics.join(" | "));
    let _ = writeln!(out, "|---|---|{}---|---|---|---|---|", "---|".repeat(metrics.len()));
    for o in outcomes {
        let values: Vec<String> = REPORTED.iter().map(|m| format!("{:.4}", o.report.mean(*m).unwrap_or(0.0))).collect();
        let verdict = match (o.holds(), o.required) {
            (true, _) => "ok",
            (false, true) => "FAILED",
            (false, false) => "outside (reported only)",
        };
        let _ = writeln!(
            out,
            "| {} | {} | {} | {} | {} | {}: {} | {:+.4} | {verdict} |",
            o.model,
            o.check.mode,
            values.join(" | "),
            shown(o.report.latency.p50()),
            shown(o.report.latency.p95()),
            o.check.system,
            o.check.shown(o.expected.value),
            o.report.ndcg10() - o.expected.value,
        );
    }
    out
}

/// The required checks as lines of the Test Anything Protocol, for whoever counts them.
pub fn tap(set: &str, outcomes: &[Outcome]) -> String {
    let mut out = String::new();
    for (at, o) in outcomes.iter().filter(|o| o.required).enumerate() {
        let verdict = if o.holds() { "ok" } else { "not ok" };
        let (number, mode, ndcg) = (at + 1, o.check.mode, o.report.ndcg10());
        let expected = o.check.shown(o.expected.value);
        let _ = writeln!(out, "{verdict} {number} - {set} {mode}: nDCG@10 {ndcg:.4}, expected {expected}");
    }
    out
}

/// The page that `make eval` commits: what was asked, on what, and the table.
pub fn page(set: &str, command: &str, environment: &[(String, String)], syncs: &[String], table: &str) -> String {
    let facts: Vec<String> = environment.iter().map(|(k, v)| format!("{k} {v}")).collect();
    format!(
        "# {set} against the reference baselines\n\n\
         Command: `{command}`. On: {}.\n\n\
         Each record is one chunk, cut at the model's window; the dense leg scans exactly; hybrid is reciprocal rank\n\
         fusion of the two top-100 lists with k = 60. Latency is that of `rag.search` at top_k 100, seen from a client\n\
         on the same machine.\n\n{table}\n{}\n",
        facts.join(", "),
        syncs.join("\n")
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::beir::{Qrels, Query};
    use crate::run::{Answered, Hit, assess};
    use rag_core::metrics::Grades;
    use std::time::Duration;

    fn outcome(required: bool, value: f64) -> Outcome {
        let hit = Hit { external_id: "a".to_owned(), rank: 1, score: 1.0 };
        let query = Query { id: "q".to_owned(), text: "?".to_owned() };
        let qrels = Qrels::from([("q".to_owned(), Grades::from([("a".to_owned(), 1)]))]);
        let report = assess(vec![Answered { query, hits: vec![hit], time: Duration::from_millis(4) }], &qrels);
        let expected = Expectation { value, tolerance: 0.015 };
        Outcome { model: "m".to_owned(), check: CHECKS[1], expected, report, required }
    }

    #[test]
    fn the_table_says_which_number_is_off() {
        let text = table(&[outcome(true, 1.01), outcome(true, 1.5), outcome(false, 1.5)]);
        let verdicts: Vec<&str> = text.lines().skip(2).filter_map(|l| l.rsplit('|').nth(1)).map(str::trim).collect();
        assert_eq!(verdicts, ["ok", "FAILED", "outside (reported only)"]);
        let lines = tap("set", &[outcome(true, 0.5), outcome(false, 1.5), outcome(true, 1.5)]);
        assert_eq!(
            lines,
            "ok 1 - set bm25: nDCG@10 1.0000, expected at least 0.5 - 0.015\n\
             not ok 2 - set bm25: nDCG@10 1.0000, expected at least 1.5 - 0.015\n"
        );
        // The same computation may not be better either.
        let exact = Outcome { check: CHECKS[0], ..outcome(true, 0.5) };
        assert_eq!(tap("set", &[exact]), "not ok 1 - set dense: nDCG@10 1.0000, expected 0.5 ± 0.005\n");
        let bars: Vec<usize> = text.lines().map(|l| l.matches('|').count()).collect();
        assert!(bars.windows(2).all(|w| w[0] == w[1]), "a ragged table:\n{text}");
    }
}
