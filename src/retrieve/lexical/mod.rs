// SPDX-License-Identifier: PostgreSQL

//! The BM25 leg: the best chunks by the terms of the query, exact.
//!
//! Owns the choice between two ways to the same result. [`indexed`] walks the segments of the index, whose counts are those
//! of the labels the caller has. [`matches`] reads the forward data of every match; it is linear in their number, and takes
//! over where the index has no answer: it was never made, or policies of the administrator's own decide what is seen, so
//! that nobody knows the counts without counting. Both rank by score, and equal scores by key. [`documents`] scores whole
//! documents, in the same two ways. Words that stand for other terms ([`rag_core::lexical::widen`]) are looked up in the
//! vocabulary that the way counts by: it has no term that the caller cannot find by itself.

mod documents;
mod indexed;
mod matches;

use super::filter::Eligible;
use crate::spi;
use crate::store::collection::Collection;
use crate::store::lexeme::Configuration;
use crate::store::lexical::Unit;
use crate::store::lexical::population::{self, Population};
use pgrx::check_for_interrupts;
use rag_core::Result;
use rag_core::lexical::bm25::Statistics;
use rag_core::lexical::expand::Vocabulary;
use rag_core::lexical::explain::{self, Explanation};
use rag_core::lexical::maxscore::{MAX_TERMS, Query, QueryTerm};
use rag_core::lexical::tokens::{self, Lexer};
use rag_core::lexical::tsvector;
use rag_core::lexical::widen::Lookup;
use rag_core::query::Request;
use std::collections::{BTreeMap, HashMap};

/// What the leg found.
#[derive(Debug, Default)]
pub struct Bm25 {
    /// The best eligible chunks with their scores, best first, no more than were asked for.
    pub found: Vec<(i64, f64)>,
    /// Words of the query that stand for more terms than were used.
    pub bounded: Vec<String>,
    /// The terms of the query.
    terms: Terms,
    /// Their counts, which every score needs.
    query: Option<Query>,
}

/// The best chunks with their scores, and the counts behind these.
type Ranked = (Vec<(i64, f64)>, Query);

/// Reads the query, and finds nothing yet. `memory` bounds what is kept of the index, in bytes.
pub fn read(collection: &Collection, request: &Request, configs: &[String], memory: usize) -> Result<Bm25> {
    read_by(collection, request, configs, memory).map(|(leg, _)| leg)
}

/// Runs the leg for the best `limit`.
pub fn search(
    collection: &Collection,
    request: &Request,
    eligible: &Eligible<'_>,
    configs: &[String],
    limit: usize,
    memory: usize,
) -> Result<Bm25> {
    let (mut leg, population) = read_by(collection, request, configs, memory)?;
    if leg.terms.names.is_empty() {
        return Ok(leg);
    }
    let (found, query) = match &population {
        Some(population) => indexed::search(population, collection, eligible, &leg.terms, limit)?,
        None => spi::by_values(|| matches::search(collection, eligible, &leg.terms, limit))?,
    };
    (leg.found, leg.query) = (found, Some(query));
    Ok(leg)
}

/// The query as terms, with the index by which they are looked up.
fn read_by(
    collection: &Collection,
    request: &Request,
    configs: &[String],
    memory: usize,
) -> Result<(Bm25, Option<Population>)> {
    let mut terms = terms(configs, &request.query.text)?;
    let lookup = lookup(configs, request)?;
    if terms.names.is_empty() && lookup.is_empty() {
        return Ok((Bm25::default(), None));
    }
    let population = indexed::population(collection, memory)?;
    let mut bounded = Vec::new();
    if !lookup.is_empty() {
        bounded = match &population {
            Some(population) => terms.widen(&lookup, &mut Interruptible(population.index.vocabulary()))?,
            None => {
                let vocabulary = spi::by_values(|| matches::vocabulary(collection, lookup.starts()))?;
                terms.widen(&lookup, &mut Interruptible(vocabulary.as_slice()))?
            }
        };
    }
    Ok((Bm25 { bounded, terms, ..Bm25::default() }, population))
}

/// What the index of a collection says to the caller's searches: it answers (`ready`), it does not until it is mended
/// (`missing`), or it never does (`unused`).
pub fn state(collection_id: i64, unit: Unit) -> Result<&'static str> {
    let Some(labels) = indexed::labels()? else { return Ok("unused") };
    let passages = population::load(collection_id, labels.clone(), 0)?.index;
    let of_unit = match unit {
        Unit::Chunk => 0,
        Unit::Document => population::load_documents(collection_id, labels, 0)?.index.strays(),
    };
    let usable = population::is_usable(collection_id, &passages, passages.strays() + of_unit)?;
    Ok(if usable { "ready" } else { "missing" })
}

/// What words of the query that stand outside of phrases stand for.
fn lookup(configs: &[String], request: &Request) -> Result<Lookup> {
    let lexers: Vec<Configuration<'_>> = configs.iter().map(|config| Configuration(config)).collect();
    let lexers: Vec<&dyn Lexer> = lexers.iter().map(|lexer| lexer as &dyn Lexer).collect();
    Lookup::new(&request.query.loose, &lexers, request.settings.reach)
}

/// A vocabulary whose reading can be cancelled.
struct Interruptible<V>(V);

impl<V: Vocabulary> Vocabulary for Interruptible<V> {
    fn at_or_after(&mut self, from: &[u8]) -> Result<Option<(String, u64)>> {
        check_for_interrupts!();
        self.0.at_or_after(from)
    }
}

impl Bm25 {
    /// The scores of whole documents, given ascending, whatever the filter says; without those that have no term of the
    /// query.
    pub fn of_documents(&self, collection: &Collection, documents: &[i64], memory: usize) -> Result<HashMap<i64, f64>> {
        if self.terms.names.is_empty() || documents.is_empty() {
            return Ok(HashMap::new());
        }
        documents::scores(collection, &self.terms, documents, memory)
    }

    /// The scores of chunks, whether the leg found them or not; 0 for one that has no term of the query.
    pub fn scores_of(&self, ids: &[i64]) -> Result<HashMap<i64, f64>> {
        let found: HashMap<i64, f64> = self.found.iter().copied().collect();
        let mut scores: HashMap<i64, f64> = ids.iter().map(|id| (*id, found.get(id).copied().unwrap_or(0.0))).collect();
        let missing: Vec<i64> = ids.iter().copied().filter(|id| !found.contains_key(id)).collect();
        scores.extend(self.explain(missing)?.into_iter().map(|(id, explanation)| (id, explanation.score)));
        Ok(scores)
    }

    /// Where the scores of chunks come from, term by term.
    fn explain(&self, ids: Vec<i64>) -> Result<Vec<(i64, Explanation)>> {
        let Some(query) = self.query.as_ref().filter(|_| !ids.is_empty()) else { return Ok(Vec::new()) };
        let places: HashMap<&[u8], usize> = self.terms.names.iter().map(String::as_bytes).zip(0..).collect();
        let sql = "SELECT c.id, c.dl, pg_catalog.tsvectorsend(c.tsv) FROM rag.chunk c WHERE c.id = ANY($1)";
        let read = |row: &spi::Row| {
            let mut tfs = vec![0; self.terms.names.len()];
            tsvector::for_each(&row.get::<Vec<u8>>(3)?, |lexeme, tf| {
                if let Some(place) = places.get(lexeme) {
                    tfs[*place] = tf;
                }
            })?;
            Ok((row.get(1)?, explain::explain(query, &tfs, row.get::<i32>(2)?.unsigned_abs())?))
        };
        spi::by_keys(|| spi::select(sql, &[ids.into()], read))
    }
}

/// The distinct terms of a query in byte order, each with what it counts: how often the query has it, or less, if a word
/// stands for it.
///
/// A word that is said twice counts twice, as in BM25 as it was first written down; on long questions that is worth more
/// than anything else here (`eval/results/lexical-quality.md`).
#[derive(Debug, Default)]
struct Terms {
    names: Vec<String>,
    weights: Vec<f64>,
}

impl Terms {
    /// The query for the best `k` of a population.
    fn query(&self, dfs: &[u64], population: Statistics, k: usize) -> Query {
        let terms = dfs.iter().zip(&self.weights).map(|(df, weight)| QueryTerm { df: *df, weight: *weight }).collect();
        Query { terms, population, k, after: None }
    }

    /// Adds what words stand for; returns the words that stand for more.
    fn widen(&mut self, lookup: &Lookup, vocabulary: &mut dyn Vocabulary) -> Result<Vec<String>> {
        let mut all: BTreeMap<String, f64> =
            std::mem::take(&mut self.names).into_iter().zip(std::mem::take(&mut self.weights)).collect();
        let room = MAX_TERMS.saturating_sub(all.len());
        let found = lookup.find(vocabulary, &|term| all.contains_key(term), room)?;
        all.extend(found.terms);
        (self.names, self.weights) = all.into_iter().unzip();
        Ok(found.bounded)
    }
}

/// The terms of the query by every text search configuration of the collection. Configurations read the same words, so their
/// counts are not added.
fn terms(configs: &[String], query: &str) -> Result<Terms> {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for config in configs {
        for (term, positions) in tokens::analyse(query, &Configuration(config))?.terms {
            let count = counts.entry(term).or_default();
            *count = positions.len().max(*count);
        }
    }
    let (names, weights) = counts.into_iter().map(|(term, count)| (term, count as f64)).unzip();
    Ok(Terms { names, weights })
}
