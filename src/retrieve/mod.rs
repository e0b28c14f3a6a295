// SPDX-License-Identifier: PostgreSQL

//! From a query to evidence.
//!
//! phrases → dense leg ∥ bm25 leg → union, missing scores filled in → document prior → fusion → top_k → evidence. Every step
//! writes to the trace, and the rows that are returned are read from it, so that an explanation cannot differ from the search
//! it explains. Runs with the caller's rights: grants and policies on `rag.chunk` and `rag.document` decide what is seen.

mod dense;
mod evidence;
mod filter;
pub mod lexical;
mod phrase;

pub use evidence::Evidence;

use crate::guc::Waits;
use crate::inference::{self, Embedded};
use crate::spi;
use crate::store::collection::{self, Collection};
use crate::store::source::{self, Configs};
use dense::Dense;
use filter::Eligible;
use lexical::Bm25;
use rag_core::protocol::{Input, Priority};
use rag_core::query::Request;
use rag_core::query::settings::{Mode, OnDegraded};
use rag_core::rank::fusion::{Lists, fuse};
use rag_core::rank::trace::{Stage, Trace};
use rag_core::{Error, Kind, Result};
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::time::{Duration, Instant};

/// What a search found.
#[derive(Debug)]
pub struct Outcome {
    /// Rows, best first.
    pub evidence: Vec<Evidence>,
    /// Why a leg did not run, if one did not.
    pub degraded: Option<String>,
    /// Whether the query was cut at the window of the model.
    pub query_cut: bool,
    /// Sources whose text search configuration was dropped, with its name.
    pub without_config: Vec<(String, String)>,
    /// Words of the query that stand for more terms than were used.
    pub bounded: Vec<String>,
    /// Sources that the filter names and that are not there, as far as the caller can see.
    pub unknown_sources: Vec<String>,
}

/// Candidates in their final order, before the cut, and how they came by it.
#[derive(Debug)]
pub struct Ranked {
    /// Chunks with their scores, best first.
    pub order: Vec<(i64, f64)>,
    /// What each stage did.
    pub trace: Trace,
    /// How long each took.
    pub times: Times,
    degraded: Option<String>,
    query_cut: bool,
    without_config: Vec<(String, String)>,
    bounded: Vec<String>,
}

/// Time of the stages of one search.
#[derive(Debug, Clone, Copy, Default)]
pub struct Times {
    /// The vector of the query.
    pub embed: Duration,
    /// The dense leg, without it.
    pub dense: Duration,
    /// The BM25 leg.
    pub bm25: Duration,
    /// What comes after the legs.
    pub fusion: Duration,
    /// All of it.
    pub total: Duration,
}

/// How equal scores of a leg are ordered, where ids should not decide it: best first in, best first out.
pub type Ties<'a> = &'a mut dyn FnMut(&mut Vec<(i64, f64)>) -> Result<()>;

/// Candidates beyond the last that are looked at for its equals, when somebody else than their ids is to order them.
const EQUALS: usize = 1000;

/// Where the vector of a query comes from.
#[derive(Debug)]
pub enum QueryVector {
    /// The engine makes it.
    Engine,
    /// The caller gave it.
    Given(Vec<f32>),
    /// The engine was asked for it together with others.
    Asked(Result<Embedded>),
}

/// Runs a search.
///
/// `memory` bounds what the backend keeps of the BM25 index, in bytes.
pub fn search(request: &Request, vector: QueryVector, waits: Waits, memory: usize) -> Result<Outcome> {
    one(&collection::by_name(&request.collection)?, request, vector, waits, memory)
}

/// Queries that are embedded together.
const TOGETHER: usize = 64;

/// Most queries for which somebody is taken to wait; more than that must not hold up the queries of others.
const INTERACTIVE_QUERIES: usize = 8;

/// Runs searches of one collection, and hands each outcome to `take` before the next is run. The engine is asked for the vectors of
/// many queries at once, which takes less time than one by one.
pub fn search_many(
    requests: &[Request],
    waits: Waits,
    memory: usize,
    mut take: impl FnMut(Outcome) -> Result<()>,
) -> Result<()> {
    let Some(first) = requests.first() else { return Ok(()) };
    let collection = collection::by_name(&first.collection)?;
    let priority = if requests.len() > INTERACTIVE_QUERIES { Priority::Bulk } else { Priority::Interactive };
    for together in requests.chunks(TOGETHER) {
        let mut vectors = match first.settings.mode {
            Mode::Bm25 => Ok(Vec::new()),
            Mode::Hybrid | Mode::Dense => {
                let texts = together.iter().map(|request| request.query.text.clone()).collect();
                inference::embed(&collection.model.spec, texts, Input::Query, priority, waits)
            }
        }
        .map(Vec::into_iter);
        for request in together {
            pgrx::check_for_interrupts!();
            let vector = match &mut vectors {
                Ok(vectors) => vectors.next().map_or(QueryVector::Engine, |vector| QueryVector::Asked(Ok(vector))),
                Err(error) => QueryVector::Asked(Err(error.clone())),
            };
            take(spi::scratch(|| one(&collection, request, vector, waits, memory))?)?;
        }
    }
    Ok(())
}

fn one(
    collection: &Collection,
    request: &Request,
    vector: QueryVector,
    waits: Waits,
    memory: usize,
) -> Result<Outcome> {
    let mut ranked = rank(collection, request, vector, None, waits, memory)?;
    let top = &ranked.order[..ranked.order.len().min(request.top_k as usize)];
    ranked.trace.enter(Stage::TopK, top.iter().copied());
    let evidence = evidence::read(top, &ranked.trace)?;
    let unknown_sources = filter::unknown_sources(&request.filter)?;
    let Ranked { degraded, query_cut, without_config, bounded, .. } = ranked;
    Ok(Outcome { evidence, degraded, query_cut, without_config, bounded, unknown_sources })
}

/// Finds candidates and ranks them: all of a search but the cut at `top_k` and reading what is returned. A search and an
/// evaluation share it, so that what is measured is what is answered.
pub fn rank(
    collection: &Collection,
    request: &Request,
    vector: QueryVector,
    mut ties: Option<Ties<'_>>,
    waits: Waits,
    memory: usize,
) -> Result<Ranked> {
    let started = Instant::now();
    let mut times = Times::default();
    let settings = &request.settings;
    let mut trace = Trace::default();
    let mut degraded = None;
    let candidates = settings.candidate_k as usize;
    let has_phrases = !request.query.phrases.is_empty();
    let configs = match settings.mode {
        Mode::Dense if !has_phrases && settings.fusion.document_weight == 0.0 => Configs::default(),
        _ => source::configs(collection.id)?,
    };
    let eligible = match has_phrases {
        true => Eligible::Only(phrase::find(collection, request, &configs.usable)?),
        false => Eligible::Filter(&request.filter),
    };

    let mut dense = match settings.mode {
        Mode::Bm25 => None,
        Mode::Hybrid | Mode::Dense => {
            match spi::by_values(|| dense_leg(collection, request, &eligible, vector, waits, &mut times)) {
                Ok(dense) => Some(dense),
                Err(error) if may_degrade(request, &error) => {
                    degraded = Some(format!("dense leg did not run: {}", error.message));
                    None
                }
                Err(error) => return Err(error),
            }
        }
    };
    let before = Instant::now();
    let mut bm25 = match settings.mode {
        Mode::Dense => None,
        Mode::Hybrid | Mode::Bm25 => {
            Some(lexical::search(collection, request, &eligible, &configs.usable, candidates, memory)?)
        }
    };
    times.bm25 = before.elapsed();
    if let Some(ties) = &mut ties {
        if let Some(leg) = &mut dense {
            let mut found = std::mem::take(&mut leg.found);
            order_ties(&mut found, candidates, ties, |wanted| leg.find(collection, request, &eligible, wanted))?;
            leg.found = found;
        }
        if let Some(bm25) = &mut bm25 {
            order_ties(&mut bm25.found, candidates, ties, |wanted| {
                Ok(lexical::search(collection, request, &eligible, &configs.usable, wanted, memory)?.found)
            })?;
        }
    }

    let before = Instant::now();
    let dense_ids: Vec<i64> = dense.iter().flat_map(|d| d.found.iter().map(|(id, _)| *id)).collect();
    let bm25_ids: Vec<i64> = bm25.iter().flat_map(|b| b.found.iter().map(|(id, _)| *id)).collect();
    trace.enter(Stage::Dense, dense.iter().flat_map(|d| d.found.iter().copied()));
    trace.enter(Stage::Bm25, bm25.iter().flat_map(|b| b.found.iter().copied()));
    if let (Some(dense), Some(bm25)) = (&dense, &bm25) {
        fill_missing(collection, dense, bm25, &dense_ids, &bm25_ids, &mut trace)?;
    }

    // The query as the document prior needs it, where the BM25 leg does not run.
    let mut read = None;
    if settings.fusion.document_weight > 0.0 {
        if bm25.is_none() {
            read = Some(lexical::read(collection, request, &configs.usable, memory)?);
        }
        let words = bm25.as_ref().or(read.as_ref()).ok_or_else(|| Error::internal("the query was not read"))?;
        let candidates: BTreeSet<i64> = dense_ids.iter().chain(&bm25_ids).copied().collect();
        document_prior(collection, candidates, words, memory, &mut trace)?;
    }
    let order: Vec<(i64, f64)> = match (&dense, &bm25) {
        (Some(dense), None) if read.is_none() => dense.found.clone(),
        (None, Some(bm25)) if settings.fusion.document_weight == 0.0 => bm25.found.clone(),
        _ => {
            let lists = Lists {
                dense: dense.as_ref().map(|_| trace.list(Stage::Dense)),
                bm25: bm25.as_ref().map(|_| trace.list(Stage::Bm25)),
                document: (settings.fusion.document_weight > 0.0).then(|| trace.list(Stage::Document)),
            };
            let fused = fuse(&lists, &settings.fusion);
            trace.enter(Stage::Fusion, fused.iter().copied());
            fused
        }
    };
    times.fusion = before.elapsed();
    times.total = started.elapsed();
    let query_cut = dense.is_some_and(|d| d.query_cut);
    let bounded = bm25.or(read).map(|b| b.bounded).unwrap_or_default();
    Ok(Ranked { order, trace, times, degraded, query_cut, without_config: configs.missing, bounded })
}

/// Orders equal scores of a leg by `ties`, before its cut: equals of the last that the leg has left out are looked up first.
fn order_ties(
    found: &mut Vec<(i64, f64)>,
    candidates: usize,
    ties: &mut Ties<'_>,
    find: impl FnOnce(usize) -> Result<Vec<(i64, f64)>>,
) -> Result<()> {
    if let [.., before, last] = found.as_slice()
        && found.len() == candidates
        && before.1 == last.1
    {
        let (score, known): (f64, HashSet<i64>) = (last.1, found.iter().map(|(id, _)| *id).collect());
        let wider = find(candidates + EQUALS)?.into_iter();
        found.extend(wider.filter(|(id, equal)| *equal == score && !known.contains(id)));
    }
    ties(found)?;
    found.truncate(candidates);
    Ok(())
}

/// Only a search whose other leg can answer alone, and whose caller agreed to it, goes on without the dense leg, and
/// only when the engine is the reason.
fn may_degrade(request: &Request, error: &Error) -> bool {
    request.settings.mode == Mode::Hybrid
        && request.settings.on_degraded == OnDegraded::Bm25
        && matches!(
            error.kind,
            Kind::NotReady | Kind::NoResources | Kind::Connection | Kind::FileMissing | Kind::OutOfMemory
        )
}

fn dense_leg(
    collection: &Collection,
    request: &Request,
    eligible: &Eligible<'_>,
    vector: QueryVector,
    waits: Waits,
    times: &mut Times,
) -> Result<Dense> {
    let before = Instant::now();
    let vector = match vector {
        QueryVector::Engine => inference::embed_query(&collection.model.spec, &request.query.text, waits)?,
        QueryVector::Given(vector) => (dense::checked(collection, vector)?, false),
        QueryVector::Asked(answer) => answer?,
    };
    times.embed = before.elapsed();
    let before = Instant::now();
    let found = Dense::search(collection, request, eligible, vector);
    times.dense = before.elapsed();
    found
}

/// Ranks the candidates by their documents among those of all candidates. Passages of one document have one rank, and so have
/// documents of equal scores; those of a document without any term of the query have none.
fn document_prior(
    collection: &Collection,
    candidates: BTreeSet<i64>,
    words: &Bm25,
    memory: usize,
    trace: &mut Trace,
) -> Result<()> {
    let candidates: Vec<i64> = candidates.into_iter().collect();
    let sql = "SELECT c.id, c.document_id FROM rag.chunk c WHERE c.id = ANY($1)";
    let read = || spi::select(sql, &[candidates.into()], |row| Ok((row.get(2)?, row.get(1)?)));
    let mut of_documents: BTreeMap<i64, Vec<i64>> = BTreeMap::new();
    for (document, chunk) in spi::by_keys(read)? {
        of_documents.entry(document).or_default().push(chunk);
    }
    let documents: Vec<i64> = of_documents.keys().copied().collect();
    let mut scored: Vec<(i64, f64)> = words.of_documents(collection, &documents, memory)?.into_iter().collect();
    scored.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    let mut equal = (f64::NAN, 0);
    for ((document, score), place) in scored.into_iter().zip(1..) {
        if score != equal.0 {
            equal = (score, place);
        }
        let rank = equal.1;
        let mut chunks = of_documents.remove(&document).unwrap_or_default();
        chunks.sort_unstable();
        trace.enter_ranked(Stage::Document, chunks.into_iter().map(|chunk| (chunk, rank, score)));
    }
    Ok(())
}

/// Gives every candidate of one leg its score by the other.
fn fill_missing(
    collection: &Collection,
    dense: &Dense,
    bm25: &Bm25,
    dense_ids: &[i64],
    bm25_ids: &[i64],
    trace: &mut Trace,
) -> Result<()> {
    let found: HashSet<i64> = dense_ids.iter().copied().collect();
    let without_dense: Vec<i64> = bm25_ids.iter().copied().filter(|id| !found.contains(id)).collect();
    for (id, score) in dense.scores_of(collection, without_dense)? {
        trace.fill(Stage::Dense, id, score);
    }
    let in_leg: HashSet<i64> = bm25_ids.iter().copied().collect();
    let without_bm25: Vec<i64> = dense_ids.iter().copied().filter(|id| !in_leg.contains(id)).collect();
    let scores = bm25.scores_of(&without_bm25)?;
    for id in without_bm25 {
        trace.fill(Stage::Bm25, id, scores.get(&id).copied().unwrap_or(0.0));
    }
    Ok(())
}
