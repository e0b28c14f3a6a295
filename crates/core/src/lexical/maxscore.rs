// SPDX-License-Identifier: PostgreSQL

//! The k best documents of a query, without scoring all that match.
//!
//! Owns Block-Max MaxScore (Turtle and Flood, "Query evaluation: strategies and optimizations", 1995; Ding and Suel,
//! "Faster top-k document retrieval using block-max indexes", 2011) over several segments. It must return exactly what
//! scoring everything would: the same ids and the same scores to the last bit. It must not know where lists are kept.
//!
//! - **Windows.** A segment is walked in windows of ordinals, cut where blocks of the terms that matter end. In each, the
//!   terms are split by their bounds there: those that even together cannot reach the k-th score are *optional*, the rest
//!   *essential*. Only documents with an essential term are looked at; optional lists are asked about those that have a
//!   chance. A window that cannot reach the k-th score is passed over, with its pages unread where the directory can tell.
//! - **Why not WAND.** It keeps the cursors sorted and moves one for each document, where a window adds up blocks; Lucene
//!   left it for this in its top-level disjunctions. `examples/lexical.rs` measures what it costs here.
//! - **Order of sums.** A score is the sum of `weight · idf · saturation` in the order of the query's terms, starting from
//!   zero; terms that a document lacks add nothing. Bounds are sums in another order and of rounded values, so they are
//!   raised by [`MARGIN`] before they are compared, which is more than [`MAX_TERMS`] roundings can make up.
//! - **Going on.** When the caller cannot use some of the hits, [`Query::after`] continues behind the last of them.

mod segment;

use crate::error::{Error, Result};
use crate::lexical::bm25::{self, Saturation, Statistics};
use crate::lexical::keys::Keys;
use crate::lexical::ordinals::{Ids, OrdinalSet};
use crate::lexical::postings::{Directory, Pages};
use crate::lexical::topk::{Hit, TopK};

/// What bounds are raised by: 1 + 2⁻⁴⁰.
pub const MARGIN: f64 = 1.0 + 1.0 / (1u64 << 40) as f64;

/// The most terms of a query. Each adds a rounding of 2⁻⁵³ at most, all together less than 2⁻⁴².
pub const MAX_TERMS: usize = 1024;

/// A term of a query.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct QueryTerm {
    /// Documents of the population that have it: segments and delta, the dead not counted.
    pub df: u64,
    /// What its part of the score is multiplied with: 1 for a plain term, at least 1e-9, at most 1e9.
    pub weight: f64,
}

/// What is looked for.
#[derive(Debug, Clone)]
pub struct Query {
    /// The distinct terms; scores are summed in this order.
    pub terms: Vec<QueryTerm>,
    /// The population that idf and mean length refer to.
    pub population: Statistics,
    /// How many hits.
    pub k: usize,
    /// Only hits that rank behind this one: the last of an earlier answer.
    pub after: Option<Hit>,
}

/// The list of one term in one segment.
#[derive(Debug, Clone, Copy)]
pub struct List<'a> {
    /// Its directory.
    pub directory: &'a Directory,
    /// Its pages.
    pub pages: &'a dyn Pages,
}

/// One segment, seen through a query.
#[derive(Debug, Clone)]
pub struct Segment<'a> {
    /// For each term of the query its list, if the segment has the term.
    pub lists: Vec<Option<List<'a>>>,
    /// The ids of its documents.
    pub ids: &'a Ids,
    /// The keys by which they are hits; `None` where these are their ids.
    pub keys: Option<&'a Keys>,
    /// Documents that were deleted since.
    pub dead: Option<&'a OrdinalSet>,
    /// The only documents that may be hits; `None` for all.
    pub allow: Option<&'a OrdinalSet>,
}

/// What every score of a query needs.
#[derive(Debug)]
pub struct Weights {
    /// `weight · idf` of each term.
    terms: Vec<f64>,
    saturation: Saturation,
}

impl Weights {
    /// The factors of a query. A weight out of range, or too many terms, is an invalid argument.
    pub fn new(query: &Query) -> Result<Self> {
        if query.terms.len() > MAX_TERMS {
            return Err(Error::invalid(format!("the query has {} terms, more than {MAX_TERMS}", query.terms.len())));
        }
        if let Some(term) = query.terms.iter().find(|t| !(1e-9..=1e9).contains(&t.weight)) {
            return Err(Error::invalid(format!("a term has weight {}, not one from 1e-9 to 1e9", term.weight)));
        }
        // A population counted a moment before its members were read may be smaller than a df.
        let documents = query.terms.iter().map(|t| t.df).fold(query.population.documents, u64::max);
        let terms = query.terms.iter().map(|t| t.weight * bm25::idf(documents, t.df)).collect();
        Ok(Self { terms, saturation: Saturation::new(query.population.average_dl()) })
    }

    /// The part of the score that term number `term` gives a document.
    pub fn part(&self, term: usize, tf: u32, dl: u32) -> f64 {
        self.terms[term] * self.saturation.of(tf, dl)
    }

    /// The score of a document, from its term frequencies in the order of the terms.
    pub fn score(&self, tfs: &[u32], dl: u32) -> f64 {
        let parts = tfs.iter().enumerate().filter(|(_, tf)| **tf > 0);
        parts.fold(0.0, |sum, (term, tf)| sum + self.part(term, *tf, dl))
    }
}

/// The best hits, best first; equal scores by key, lowest first.
///
/// `interrupt` is called often enough to notice a cancelled statement in a millisecond; its error ends the search.
pub fn search(query: &Query, segments: &[Segment<'_>], interrupt: &mut dyn FnMut() -> Result<()>) -> Result<Vec<Hit>> {
    let weights = Weights::new(query)?;
    let mut top = TopK::new(query.k, query.after);
    for view in segments {
        segment::search(view, &weights, &mut top, interrupt)?;
    }
    Ok(top.finish())
}
