// SPDX-License-Identifier: PostgreSQL

//! Searching, for one query or for many, and fusion on its own.

use super::{or_null, required};
use crate::error::{self, OrRaise};
use crate::guc;
use crate::json::Json;
use crate::retrieve::{self, Evidence, Outcome, QueryVector};
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
use std::collections::BTreeSet;

/// A row of evidence, after columns of the function's own.
macro_rules! row {
    ($($own:expr,)* ; $evidence:expr, $degraded:expr) => {{
        let e: Evidence = $evidence;
        (
            $($own,)*
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
            $degraded,
        )
    }};
}

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
        let common = Common::read(top_k, filter, collection, profile, settings, &arguments)?;
        let vector = query_embedding.map_or(QueryVector::Engine, |v| QueryVector::Given(v.0));
        retrieve::search(&common.request(query)?, vector, guc::waits(), guc::lexical_cache())
    };
    let mut outcome = guarded(|| snapshot(run)).or_raise();
    let evidence = std::mem::take(&mut outcome.evidence);
    let degraded = outcome.degraded.clone();
    let mut notes = Notes::default();
    notes.take(outcome);
    notes.tell();
    TableIterator::new(evidence.into_iter().map(move |e| row!(; e, degraded.clone())))
}

/// Rows of all queries of one call; they are in memory together.
const MAX_ROWS: usize = 100_000;

/// Ranked, cited evidence for each of some queries.
#[pg_extern(schema = "rag", stable, parallel_restricted)]
#[allow(clippy::too_many_arguments, clippy::type_complexity)]
fn search_many(
    queries: Option<Vec<Option<String>>>,
    top_k: default!(Option<i32>, 10),
    filter: default!(Option<Json>, "'{}'"),
    collection: default!(Option<&str>, "'default'"),
    mode: default!(Option<&str>, "NULL"),
    candidate_k: default!(Option<i32>, "NULL"),
    rrf_k: default!(Option<i32>, "NULL"),
    rerank: default!(Option<&str>, "NULL"),
    profile: default!(Option<&str>, "'default'"),
    settings: default!(Option<Json>, "'{}'"),
) -> TableIterator<
    'static,
    (
        name!(ordinal, i32),
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
        let queries = required("queries", queries)?;
        let arguments = Arguments { mode, candidate_k, rrf_k, rerank };
        let common = Common::read(top_k, filter, collection, profile, settings, &arguments)?;
        let request = |(query, ordinal): (Option<String>, i32)| {
            let request = required("the query", query).and_then(|query| common.request(&query));
            request.map_err(|error| Error { message: format!("query {ordinal}: {}", error.message), ..error })
        };
        let requests = queries.into_iter().zip(1..).map(request).collect::<Result<Vec<_>>>()?;
        let rows: usize = requests.iter().map(|request| request.top_k as usize).sum();
        if rows > MAX_ROWS {
            let counted =
                format!("{} queries with top_k {} are more than {MAX_ROWS} rows", requests.len(), common.top_k);
            return Err(Error::new(Kind::LimitExceeded, counted).with_hint("Ask for fewer at once."));
        }
        let (mut found, mut notes) = (Vec::new(), Notes::default());
        let mut ordinal = 0;
        retrieve::search_many(&requests, guc::waits(), guc::lexical_cache(), |mut outcome| {
            ordinal += 1;
            let evidence = std::mem::take(&mut outcome.evidence);
            found.extend(evidence.into_iter().map(|e| (ordinal, e, outcome.degraded.clone())));
            notes.take(outcome);
            Ok(())
        })?;
        Ok((found, notes))
    };
    let (found, notes) = guarded(|| snapshot(run)).or_raise();
    notes.tell();
    TableIterator::new(found.into_iter().map(|(ordinal, e, degraded)| row!(ordinal,; e, degraded)))
}

/// What searches have to tell beside their rows, each thing once.
#[derive(Default)]
struct Notes {
    queries: usize,
    cut: usize,
    degraded: BTreeSet<String>,
    unknown_sources: BTreeSet<String>,
    without_config: BTreeSet<(String, String)>,
    bounded: Vec<String>,
}

impl Notes {
    fn take(&mut self, outcome: Outcome) {
        self.queries += 1;
        self.cut += usize::from(outcome.query_cut);
        self.degraded.extend(outcome.degraded);
        self.unknown_sources.extend(outcome.unknown_sources);
        self.without_config.extend(outcome.without_config);
        for word in outcome.bounded {
            if !self.bounded.contains(&word) {
                self.bounded.push(word);
            }
        }
    }

    fn tell(&self) {
        let others = |count: usize, verb: &str| match count - 1 {
            0 => String::new(),
            more => format!("; {verb} {more} others"),
        };
        let was = "exceeds the window of the model and was cut for the dense leg";
        match (self.cut, self.queries) {
            (0, _) => {}
            (1, 1) => error::warn(format!("the query {was}"), None),
            (cut, of) => error::warn(
                format!("{cut} of {of} queries exceed the window of the model and were cut for the dense leg"),
                None,
            ),
        }
        for reason in &self.degraded {
            error::warn(format!("search is degraded: {reason}"), None);
        }
        if let Some(source) = self.unknown_sources.first() {
            let others = others(self.unknown_sources.len(), "nor do");
            error::notice(format!("filter names source \"{source}\", which does not exist{others}"));
        }
        for (source, config) in &self.without_config {
            let message =
                format!("text search configuration \"{config}\" of source \"{source}\" does not exist any more");
            let hint = "Give the source another with rag.alter_source (option text_search_config), then sync it.";
            error::warn(message, Some(hint));
        }
        if let Some(word) = self.bounded.first() {
            let others = others(self.bounded.len(), "nor those of");
            error::notice(format!("not all terms that \"{word}\" stands for were used{others}"));
        }
    }
}

/// What all queries of a call have in common.
struct Common {
    top_k: i32,
    filter: Filter,
    collection: String,
    settings: Settings,
}

impl Common {
    fn read(
        top_k: Option<i32>,
        filter: Option<Json>,
        collection: Option<&str>,
        profile: Option<&str>,
        settings: Option<Json>,
        arguments: &Arguments<'_>,
    ) -> Result<Self> {
        let settings = settled(profile.unwrap_or("default"), &or_null(settings), arguments)?;
        Ok(Self {
            top_k: top_k.unwrap_or(TOP_K),
            filter: Filter::parse(&or_null(filter))?,
            collection: collection.unwrap_or("default").to_owned(),
            settings,
        })
    }

    fn request(&self, query: &str) -> Result<Request> {
        Request::new(query, self.top_k, self.filter.clone(), &self.collection, self.settings.clone())
    }
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
    let mut settled = Settings::default().apply(&profile::by_name(profile)?.settings)?.apply(settings)?;
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
