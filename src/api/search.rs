//! Searching, and fusion on its own.

use crate::error::{self, OrRaise};
use crate::guc;
use crate::retrieve;
use crate::store::profile;
use crate::vector::Vector;
use pgrx::iter::TableIterator;
use pgrx::prelude::*;
use pgrx::{JsonB, Uuid, default};
use rag_core::query::filter::Filter;
use rag_core::query::settings::{Mode, Settings, not_yet};
use rag_core::query::{Request, in_range};
use rag_core::rank::fuse::{self, Leg};
use rag_core::{Error, Result};
use serde_json::Value;

/// Ranked, cited evidence for a query.
#[pg_extern(schema = "rag", stable, parallel_restricted)]
#[allow(clippy::too_many_arguments, clippy::type_complexity)]
fn search(
    query: Option<&str>,
    top_k: default!(i32, 10),
    filter: default!(JsonB, "'{}'"),
    collection: default!(&str, "'default'"),
    mode: default!(Option<&str>, "NULL"),
    candidate_k: default!(Option<i32>, "NULL"),
    rrf_k: default!(Option<i32>, "NULL"),
    rerank: default!(Option<&str>, "NULL"),
    profile: default!(&str, "'default'"),
    settings: default!(JsonB, "'{}'"),
    query_embedding: default!(Option<Vector>, "NULL"),
) -> TableIterator<
    'static,
    (
        name!(rank, i32),
        name!(chunk_id, i64),
        name!(chunk_key, Uuid),
        name!(score, f64),
        name!(content, String),
        name!(title, Option<String>),
        name!(uri, String),
        name!(citation, String),
        name!(locator, JsonB),
        name!(source, String),
        name!(document_id, i64),
        name!(role, Option<String>),
        name!(language, Option<String>),
        name!(path, Option<String>),
        name!(commit, Option<String>),
        name!(current, bool),
        name!(dense_rank, Option<i32>),
        name!(dense_score, Option<f64>),
        name!(bm25_rank, Option<i32>),
        name!(bm25_score, Option<f64>),
        name!(fused_score, Option<f64>),
        name!(rerank_score, Option<f64>),
        name!(metadata, JsonB),
        name!(complete, bool),
        name!(degraded, Option<String>),
    ),
> {
    let run = || {
        let query = query.ok_or_else(|| Error::invalid("query is null"))?;
        let arguments = Arguments { mode, candidate_k, rrf_k, rerank };
        let settings = settled(profile, &settings.0, &arguments)?;
        let request = Request::new(query, top_k, Filter::parse(&filter.0)?, collection, settings)?;
        retrieve::search(&request, query_embedding.map(|v| v.0), guc::waits())
    };
    let outcome = run().or_raise();
    if let Some(reason) = &outcome.degraded {
        error::warn(format!("search is degraded: {reason}"), None);
    }
    let degraded = outcome.degraded;
    TableIterator::new(outcome.evidence.into_iter().map(move |e| {
        (
            e.rank,
            e.chunk_id,
            e.chunk_key,
            e.score,
            e.content,
            e.title,
            e.uri,
            e.citation,
            JsonB(e.locator),
            e.source,
            e.document_id,
            e.role,
            e.language,
            e.path,
            e.commit,
            e.current,
            e.dense_rank,
            e.dense_score,
            e.bm25_rank,
            e.bm25_score,
            e.fused_score,
            // No reranker has a place in the pipeline yet; asking for one is an error.
            None,
            JsonB(e.metadata),
            // Filters apply inside the legs, and a leg that its index leaves short scans everything.
            true,
            degraded.clone(),
        )
    }))
}

/// Settings that have an argument of their own.
struct Arguments<'a> {
    mode: Option<&'a str>,
    candidate_k: Option<i32>,
    rrf_k: Option<i32>,
    rerank: Option<&'a str>,
}

/// Profile, then settings, then arguments.
fn settled(profile: &str, settings: &Value, arguments: &Arguments<'_>) -> Result<Settings> {
    let mut settled = Settings::default().apply(&profile::settings(profile)?)?.apply(settings)?;
    if arguments.rerank.is_some() {
        return Err(not_yet("rerank"));
    }
    if let Some(mode) = arguments.mode {
        settled.mode = Mode::parse(mode)?;
    }
    if let Some(candidate_k) = arguments.candidate_k {
        settled.candidate_k = in_range("candidate_k", candidate_k.into())?;
    }
    if let Some(rrf_k) = arguments.rrf_k {
        settled.rrf_k = in_range("rrf_k", rrf_k.into())?;
    }
    Ok(settled)
}

/// Reciprocal rank fusion of any ranked lists.
#[pg_extern(schema = "rag", immutable, parallel_safe)]
fn rrf(
    lists: JsonB,
    rrf_k: default!(i32, 60),
    weights: default!(Option<Vec<f64>>, "NULL"),
) -> TableIterator<'static, (name!(rank, i32), name!(id, String), name!(score, f64), name!(ranks, Vec<Option<i32>>))> {
    let fuse = || {
        let Value::Array(lists) = &lists.0 else {
            return Err(Error::invalid(format!("lists must be a JSON array of arrays, not {}", lists.0)));
        };
        let weights = weights.unwrap_or_else(|| vec![1.0; lists.len()]);
        if weights.len() != lists.len() {
            return Err(Error::invalid(format!("{} weights for {} lists", weights.len(), lists.len())));
        }
        if let Some(bad) = weights.iter().find(|w| !w.is_finite() || **w < 0.0) {
            return Err(Error::invalid(format!("weight {bad} is not a number from 0")));
        }
        let ids = lists.iter().map(ids).collect::<Result<Vec<_>>>()?;
        let legs: Vec<Leg<'_, String>> =
            ids.into_iter().zip(weights).map(|(ids, weight)| Leg { name: "", weight, ids }).collect();
        Ok(fuse::rrf(&legs, in_range("rrf_k", rrf_k.into())?))
    };
    let fused = fuse().or_raise();
    TableIterator::new(fused.into_iter().zip(1..).map(|(f, rank)| {
        let ranks = f.ranks.into_iter().map(|r| r.map(|r| r as i32)).collect();
        (rank, f.id, f.score, ranks)
    }))
}

/// The ids of one ranked list: strings or numbers, best first.
fn ids(list: &Value) -> Result<Vec<String>> {
    let Value::Array(members) = list else {
        return Err(Error::invalid(format!("a list must be a JSON array of ids, not {list}")));
    };
    let id = |member: &Value| match member {
        Value::String(text) => Ok(text.clone()),
        Value::Number(number) => Ok(number.to_string()),
        other => Err(Error::invalid(format!("an id must be a string or a number, not {other}"))),
    };
    members.iter().map(id).collect()
}
