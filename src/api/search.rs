// SPDX-License-Identifier: PostgreSQL

//! Searching, and fusion on its own.

use super::{or_null, required};
use crate::error::{self, OrRaise};
use crate::guc;
use crate::json::Json;
use crate::retrieve;
use crate::spi::{guarded, snapshot};
use crate::store::profile;
use crate::vector::Vector;
use pgrx::iter::TableIterator;
use pgrx::prelude::*;
use pgrx::{JsonB, Uuid, default};
use rag_core::query::filter::Filter;
use rag_core::query::settings::{Mode, Settings, not_yet};
use rag_core::query::{Request, in_range};
use rag_core::rank::fuse::{self, Leg};
use rag_core::{Error, Kind, Result};
use serde_json::Value;

/// Ranked, cited evidence for a query.
#[pg_extern(schema = "rag", stable, parallel_restricted)]
#[allow(clippy::too_many_arguments, clippy::type_complexity)]
fn search(
    query: Option<&str>,
    top_k: default!(Option<i32>, 10),
    filter: default!(Option<Json>, "'{}'"),
    collection: default!(Option<&str>, "'default'"),
    mode: default!(Option<&str>, "NULL"),
    candidate_k: default!(Option<i32>, "NULL"),
    rrf_k: default!(Option<i32>, "NULL"),
    rerank: default!(Option<&str>, "NULL"),
    profile: default!(Option<&str>, "'default'"),
    settings: default!(Option<Json>, "'{}'"),
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
        let query = required("query", query)?;
        let arguments = Arguments { mode, candidate_k, rrf_k, rerank };
        let settings = settled(profile.unwrap_or("default"), &or_null(settings), &arguments)?;
        let filter = Filter::parse(&or_null(filter))?;
        let request = Request::new(query, top_k.unwrap_or(TOP_K), filter, collection.unwrap_or("default"), settings)?;
        retrieve::search(&request, query_embedding.map(|v| v.0), guc::waits(), guc::lexical_cache())
    };
    let outcome = guarded(|| snapshot(run)).or_raise();
    if outcome.query_cut {
        error::warn("the query exceeds the window of the model and was cut for the dense leg".to_owned(), None);
    }
    if let Some(reason) = &outcome.degraded {
        error::warn(format!("search is degraded: {reason}"), None);
    }
    if let Some(source) = outcome.unknown_sources.first() {
        let others = match outcome.unknown_sources.len() - 1 {
            0 => String::new(),
            more => format!("; nor do {more} others"),
        };
        error::notice(format!("filter names source \"{source}\", which does not exist{others}"));
    }
    for (source, config) in &outcome.without_config {
        let message = format!("text search configuration \"{config}\" of source \"{source}\" does not exist any more");
        let hint = "Give the source another with rag.alter_source (option text_search_config), then sync it.";
        error::warn(message, Some(hint));
    }
    if let Some(word) = outcome.bounded.first() {
        let others = match outcome.bounded.len() - 1 {
            0 => String::new(),
            more => format!("; nor those of {more} others"),
        };
        error::notice(format!("not all terms that \"{word}\" stands for were used{others}"));
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

/// Rows when the caller says nothing.
const TOP_K: i32 = 10;

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
        settled.fusion.rrf_k = in_range("rrf_k", rrf_k.into())?;
    }
    Ok(settled)
}

/// The constant of reciprocal rank fusion when the caller says nothing.
const RRF_K: i32 = 60;

/// Ids of all lists together; fusing them is not interrupted.
const MAX_IDS: usize = 1_000_000;

/// Reciprocal rank fusion of any ranked lists.
#[pg_extern(schema = "rag", immutable, parallel_safe)]
fn rrf(
    lists: Option<Json>,
    rrf_k: default!(Option<i32>, 60),
    weights: default!(Option<Vec<Option<f64>>>, "NULL"),
) -> TableIterator<'static, (name!(rank, i32), name!(id, String), name!(score, f64), name!(ranks, Vec<Option<i32>>))> {
    let fuse = || {
        let lists = match required("lists", lists)?.0 {
            Value::Array(lists) => lists,
            other => return Err(Error::invalid(format!("lists must be a JSON array of arrays, not {other}"))),
        };
        let weights = match weights {
            Some(weights) => weights.into_iter().map(|w| required("a weight", w)).collect::<Result<Vec<f64>>>()?,
            None => vec![1.0; lists.len()],
        };
        if weights.len() != lists.len() {
            return Err(Error::invalid(format!("{} weights for {} lists", weights.len(), lists.len())));
        }
        if let Some(bad) = weights.iter().find(|w| !w.is_finite() || **w < 0.0) {
            return Err(Error::invalid(format!("weight {bad} is not a number from 0")));
        }
        let ids = lists.iter().map(ids).collect::<Result<Vec<_>>>()?;
        let all: usize = ids.iter().map(Vec::len).sum();
        if all > MAX_IDS {
            return Err(Error::new(Kind::LimitExceeded, format!("{all} ids are more than {MAX_IDS}")));
        }
        pgrx::check_for_interrupts!();
        let legs: Vec<Leg<'_, String>> =
            ids.into_iter().zip(weights).map(|(ids, weight)| Leg::new("", weight, ids)).collect();
        Ok(fuse::rrf(&legs, in_range("rrf_k", rrf_k.unwrap_or(RRF_K).into())?))
    };
    let fused = guarded(fuse).or_raise();
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
