// SPDX-License-Identifier: PostgreSQL

//! Every judged query through `rag.search`, and what the metrics say of it.
//!
//! Owns the pooling of chunks to documents (best rank) and the timing. The time of a query is that of `rag.search`
//! alone: external ids are looked up after the last query, so that no join of ours is measured.

use crate::beir::{Qrels, Query, Set};
use crate::db;
use crate::latency::Latency;
use postgres::Client;
use rag_core::metrics::{Evaluated, Metric, Ranking, evaluate};
use rag_core::{Error, Result};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// The metrics a run reports, in this order; the first is the one that expectations are about.
pub const REPORTED: [Metric; 4] = [Metric::Ndcg(10), Metric::Recall(10), Metric::Recall(100), Metric::Mrr(10)];

/// How to search.
#[derive(Debug, Clone, clap::Args)]
pub struct Retrieval {
    /// Collection
    #[arg(long, default_value = "default")]
    pub collection: String,
    /// hybrid, dense or bm25; default: the profile's
    #[arg(long)]
    pub mode: Option<String>,
    /// Profile of named settings
    #[arg(long, default_value = "rrf")]
    pub profile: String,
    /// Settings as a JSON object, for instance {"exact": true}
    #[arg(long, default_value = "{}", value_parser = parse_json)]
    pub settings: Value,
    /// Results of each query
    #[arg(long, default_value_t = 100)]
    pub top_k: i32,
    /// Candidates of each leg; default: the profile's
    #[arg(long)]
    pub candidate_k: Option<i32>,
}

fn parse_json(text: &str) -> std::result::Result<Value, String> {
    serde_json::from_str(text).map_err(|e| format!("not JSON: {e}"))
}

/// Which judged collection.
#[derive(Debug, Clone, clap::Args)]
pub struct Judged {
    /// Folder in BEIR's layout
    pub beir_dir: PathBuf,
    /// File of the queries in it
    #[arg(long, default_value = "queries.jsonl")]
    pub queries: String,
    /// File of the judgments in it
    #[arg(long, default_value = "qrels.tsv")]
    pub qrels: String,
}

impl Judged {
    /// The judged queries and their judgments.
    pub fn read(&self) -> Result<(Vec<Query>, Qrels)> {
        let set = Set::open(&self.beir_dir)?;
        let qrels = set.qrels(&self.qrels)?;
        Ok((set.judged_queries(&self.queries, &qrels)?, qrels))
    }
}

/// One result of one query.
#[derive(Debug, Clone, PartialEq)]
pub struct Hit {
    /// The document's key in the judged collection.
    pub external_id: String,
    /// Rank of the chunk, from 1.
    pub rank: u32,
    /// Score of the chunk.
    pub score: f64,
}

/// The results of one query.
#[derive(Debug, Clone)]
pub struct Answered {
    /// The query.
    pub query: Query,
    /// Its results by rank.
    pub hits: Vec<Hit>,
    /// How long `rag.search` took, seen from the client.
    pub time: Duration,
}

/// A run and its evaluation.
#[derive(Debug, Clone)]
pub struct Report {
    /// Queries and their results, in the order of the query file.
    pub answered: Vec<Answered>,
    /// The metrics of [`REPORTED`].
    pub metrics: Vec<Evaluated<String>>,
    /// Times of the queries.
    pub latency: Latency,
}

impl Report {
    /// The mean of a reported metric.
    pub fn mean(&self, metric: Metric) -> Option<f64> {
        self.metrics.iter().find(|e| e.metric == metric).map(|e| e.mean)
    }

    /// nDCG@10, the number that expectations are about.
    pub fn ndcg10(&self) -> f64 {
        self.mean(Metric::Ndcg(10)).unwrap_or(0.0)
    }
}

/// A result before its document's external id is known.
struct Found {
    document_id: i64,
    rank: u32,
    score: f64,
}

/// Runs the judged queries and evaluates them.
pub fn run(client: &mut Client, judged: &Judged, retrieval: &Retrieval) -> Result<Report> {
    let (queries, qrels) = judged.read()?;
    let found = search_all(client, &queries, retrieval)?;
    let names = external_ids(client, &found)?;
    let mut answered = Vec::with_capacity(found.len());
    for (query, (found, time)) in queries.into_iter().zip(found) {
        let hits = found.into_iter().map(|f| hit(f, &names)).collect::<Result<_>>()?;
        answered.push(Answered { query, hits, time });
    }
    Ok(assess(answered, &qrels))
}

/// Evaluates answered queries.
pub fn assess(answered: Vec<Answered>, qrels: &Qrels) -> Report {
    let rankings: BTreeMap<String, Ranking<String>> =
        answered.iter().map(|a| (a.query.id.clone(), pooled(&a.hits))).collect();
    let latency = answered.iter().map(|a| a.time).collect();
    Report { metrics: evaluate(&rankings, qrels, &REPORTED), answered, latency }
}

/// Chunks pooled to documents by their best rank.
pub fn pooled(hits: &[Hit]) -> Ranking<String> {
    Ranking::from_ranks(hits.iter().map(|h| (h.rank, h.external_id.clone())))
}

fn search_all(client: &mut Client, queries: &[Query], how: &Retrieval) -> Result<Vec<(Vec<Found>, Duration)>> {
    let failed = |e: postgres::Error| db::sql("could not search", &e);
    let statement = client
        .prepare(
            "SELECT document_id, rank::int8, score::float8, degraded
             FROM rag.search($1, top_k => $2, collection => $3, mode => $4, candidate_k => $5, profile => $6,
                             settings => $7)
             ORDER BY rank",
        )
        .map_err(failed)?;
    let mut all = Vec::with_capacity(queries.len());
    // The first search of a session loads libraries, perhaps a model: it is run twice and timed the second time.
    for (at, query) in queries.first().into_iter().chain(queries).enumerate() {
        let started = Instant::now();
        let rows = client
            .query(
                &statement,
                &[&query.text, &how.top_k, &how.collection, &how.mode, &how.candidate_k, &how.profile, &how.settings],
            )
            .map_err(failed)?;
        let time = started.elapsed();
        if at == 0 {
            continue;
        }
        if let Some(why) = rows.iter().find_map(|r| r.get::<_, Option<String>>(3)) {
            return Err(Error::new(
                rag_core::error::Kind::NotReady,
                format!("query \"{}\" was answered degraded ({why}); its numbers would mislead", query.id),
            ));
        }
        let found = rows.iter().map(|row| Found {
            document_id: row.get(0),
            rank: u32::try_from(row.get::<_, i64>(1)).unwrap_or(u32::MAX),
            score: row.get(2),
        });
        all.push((found.collect(), time));
    }
    Ok(all)
}

fn external_ids(
    client: &mut Client,
    found: &[(Vec<Found>, Duration)],
) -> Result<BTreeMap<i64, (Option<String>, String)>> {
    let mut ids: Vec<i64> = found.iter().flat_map(|(hits, _)| hits.iter().map(|h| h.document_id)).collect();
    ids.sort_unstable();
    ids.dedup();
    let rows = client
        .query("SELECT id, external_id, uri FROM rag.documents WHERE id = ANY($1)", &[&ids])
        .map_err(|e| db::sql("could not read the documents", &e))?;
    Ok(rows.iter().map(|row| (row.get(0), (row.get(1), row.get(2)))).collect())
}

fn hit(found: Found, names: &BTreeMap<i64, (Option<String>, String)>) -> Result<Hit> {
    match names.get(&found.document_id) {
        Some((Some(external_id), _)) => {
            Ok(Hit { external_id: external_id.clone(), rank: found.rank, score: found.score })
        }
        Some((None, uri)) => Err(Error::invalid(format!("document \"{uri}\" has no external id to be judged by"))
            .with_hint("Use a collection that holds the judged corpus and nothing else.")),
        None => Err(Error::internal(format!("document {} was found but is not in rag.documents", found.document_id))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rag_core::metrics::Grades;

    pub(crate) fn answered(id: &str, hits: &[(&str, u32)]) -> Answered {
        let hit = |(external_id, rank): &(&str, u32)| Hit {
            external_id: (*external_id).to_owned(),
            rank: *rank,
            score: 1.0 / f64::from(*rank),
        };
        Answered {
            query: Query { id: id.to_owned(), text: "?".to_owned() },
            hits: hits.iter().map(hit).collect(),
            time: Duration::from_millis(3),
        }
    }

    #[test]
    fn chunks_of_a_document_count_once_at_the_best() {
        let qrels = Qrels::from([("q".to_owned(), Grades::from([("b".to_owned(), 1)]))]);
        let report = assess(vec![answered("q", &[("a", 1), ("a", 2), ("b", 3), ("b", 4)])], &qrels);
        assert_eq!(report.mean(Metric::Mrr(10)), Some(0.5));
        assert_eq!(report.latency.p50(), Some(3.0));
    }

    #[test]
    fn a_query_without_results_scores_zero() {
        let grades = Grades::from([("b".to_owned(), 1)]);
        let qrels = Qrels::from([("q".to_owned(), grades.clone()), ("r".to_owned(), grades)]);
        let report = assess(vec![answered("q", &[("b", 1)]), answered("r", &[])], &qrels);
        assert_eq!(report.ndcg10(), 0.5);
    }
}
