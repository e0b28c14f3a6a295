// SPDX-License-Identifier: PostgreSQL

//! Fusion of the lists of a search into one.
//!
//! Owns which lists take part, and how they are made comparable: by rank ([`super::fuse::rrf`]), or by score. A search fuses by
//! it, and the tuning of a run fuses what the run kept by it, so a setting is worth in a search what tuning said.
//!
//! **Convex combination** (Bruch, Gai and Ingber, "An Analysis of Fusion Functions for Hybrid Retrieval", TOIS 42(1), 2023, §4):
//! α · cosine + (1 − α) · BM25 / max BM25. The cosine is taken as it is, because it has bounds of its own; BM25 has none above, so
//! it is divided by the best score among the candidates of this query, and its lower bound is 0. Every candidate of one leg has
//! its score by the other ([`List::filled`]), so unlike ranks nothing is unknown; only a passage whose vector is not made yet has
//! no cosine, and counts like the least similar candidate, so that it is neither drowned nor lifted by what is not known of it.

use super::fuse::{Leg, rrf};
use crate::error::{Error, Result, unknown_key};
use std::collections::{BTreeMap, BTreeSet};

/// How lists are fused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// By ranks.
    Rrf,
    /// By scores.
    Convex,
}

impl Method {
    /// Parses the name used in SQL.
    pub fn parse(name: &str) -> Result<Self> {
        match name {
            "rrf" => Ok(Method::Rrf),
            "convex" => Ok(Method::Convex),
            "auto" => Err(Error::unsupported(format!("fusion \"{name}\" is not supported yet"))),
            other => Err(unknown_key("fusion", other, &["rrf", "convex", "auto"])),
        }
    }

    /// The name used in SQL.
    pub fn name(self) -> &'static str {
        match self {
            Method::Rrf => "rrf",
            Method::Convex => "convex",
        }
    }
}

/// The settings of the fusion.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Fusion {
    /// By ranks or by scores.
    pub method: Method,
    /// The constant of reciprocal rank fusion.
    pub rrf_k: u32,
    /// Weight of the dense leg in reciprocal rank fusion.
    pub dense_weight: f64,
    /// Weight of the BM25 leg in reciprocal rank fusion.
    pub bm25_weight: f64,
    /// Share of the cosine in the convex combination, from 0 to 1.
    pub alpha: f64,
    /// Weight of the document prior, in both; 0 for none.
    pub document_weight: f64,
}

impl Default for Fusion {
    fn default() -> Self {
        Self { method: Method::Rrf, rrf_k: 60, dense_weight: 1.0, bm25_weight: 1.0, alpha: 0.7, document_weight: 0.0 }
    }
}

/// What one stage said of the candidates.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct List {
    /// Those that it ranked, best first: id, rank from 1, score. What is equally good may have one rank.
    pub ranked: Vec<(i64, u32, f64)>,
    /// Those that it did not find itself, with the scores that it gives them.
    pub filled: Vec<(i64, f64)>,
}

impl List {
    fn leg(&self, name: &'static str, weight: f64) -> Leg<'static, i64> {
        Leg { name, weight, ranked: self.ranked.iter().map(|(id, rank, _)| (*id, *rank)).collect() }
    }

    fn scores(&self) -> BTreeMap<i64, f64> {
        let ranked = self.ranked.iter().map(|(id, _, score)| (*id, *score));
        self.filled.iter().copied().chain(ranked).collect()
    }
}

/// The lists of a search; one whose stage did not run is not there.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Lists {
    /// Of the dense leg.
    pub dense: Option<List>,
    /// Of the BM25 leg.
    pub bm25: Option<List>,
    /// Of the document prior.
    pub document: Option<List>,
}

/// Candidates with their fused scores, best first; equal scores by id, lowest first.
pub fn fuse(lists: &Lists, by: &Fusion) -> Vec<(i64, f64)> {
    match by.method {
        Method::Rrf => {
            let dense = lists.dense.iter().map(|list| list.leg("dense", by.dense_weight));
            let bm25 = lists.bm25.iter().map(|list| list.leg("bm25", by.bm25_weight));
            let document = lists.document.iter().map(|list| list.leg("document", by.document_weight));
            let legs: Vec<Leg<'_, i64>> = dense.chain(bm25).chain(document).collect();
            rrf(&legs, by.rrf_k).into_iter().map(|fused| (fused.id, fused.score)).collect()
        }
        Method::Convex => convex(lists, by),
    }
}

fn convex(lists: &Lists, by: &Fusion) -> Vec<(i64, f64)> {
    // A leg that runs alone is not weakened for the absence of the other.
    let (dense_share, bm25_share) = match (&lists.dense, &lists.bm25) {
        (Some(_), Some(_)) => (by.alpha, 1.0 - by.alpha),
        _ => (1.0, 1.0),
    };
    let dense = lists.dense.as_ref().map(List::scores).unwrap_or_default();
    let bm25 = in_parts_of_best(lists.bm25.as_ref());
    let document = in_parts_of_best(lists.document.as_ref());
    let least = dense.values().copied().reduce(f64::min).unwrap_or(0.0);
    let legs = lists.dense.iter().chain(&lists.bm25);
    let candidates: BTreeSet<i64> = legs.flat_map(|list| list.ranked.iter().map(|(id, ..)| *id)).collect();
    let score = |id: &i64| {
        let of = |scores: &BTreeMap<i64, f64>| scores.get(id).copied().unwrap_or(0.0);
        let cosine = if lists.dense.is_some() { dense.get(id).copied().unwrap_or(least) } else { 0.0 };
        dense_share * cosine + bm25_share * of(&bm25) + by.document_weight * of(&document)
    };
    let mut fused: Vec<(i64, f64)> = candidates.iter().map(|id| (*id, score(id))).collect();
    fused.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    fused
}

/// Scores divided by the best of them; nothing where none is above 0.
fn in_parts_of_best(list: Option<&List>) -> BTreeMap<i64, f64> {
    let scores = list.map(List::scores).unwrap_or_default();
    let best = scores.values().copied().fold(0.0, f64::max);
    match best > 0.0 {
        true => scores.into_iter().map(|(id, score)| (id, score / best)).collect(),
        false => BTreeMap::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn list(ranked: &[(i64, f64)], filled: &[(i64, f64)]) -> Option<List> {
        let ranked = ranked.iter().zip(1..).map(|((id, score), rank)| (*id, rank, *score)).collect();
        Some(List { ranked, filled: filled.to_vec() })
    }

    fn convex_by(alpha: f64, document_weight: f64) -> Fusion {
        Fusion { method: Method::Convex, alpha, document_weight, ..Fusion::default() }
    }

    fn assert_scores(fused: &[(i64, f64)], wanted: &[(i64, f64)]) {
        assert_eq!(fused.iter().map(|f| f.0).collect::<Vec<_>>(), wanted.iter().map(|w| w.0).collect::<Vec<_>>());
        for ((_, is), (id, wanted)) in fused.iter().zip(wanted) {
            assert!((is - wanted).abs() < 1e-12, "{id}: {is} is not {wanted}");
        }
    }

    #[test]
    fn names_are_read_back() {
        for method in [Method::Rrf, Method::Convex] {
            assert_eq!(Method::parse(method.name()), Ok(method));
        }
    }

    #[test]
    fn scores_are_the_formula() {
        let lists = Lists {
            dense: list(&[(1, 0.8), (2, 0.5)], &[(3, 0.4)]),
            bm25: list(&[(3, 20.0), (1, 5.0)], &[(2, 0.0)]),
            document: None,
        };
        assert_scores(
            &fuse(&lists, &convex_by(0.7, 0.0)),
            &[(1, 0.7 * 0.8 + 0.3 * 0.25), (3, 0.7 * 0.4 + 0.3), (2, 0.7 * 0.5)],
        );
        assert_scores(&fuse(&lists, &convex_by(1.0, 0.0)), &[(1, 0.8), (2, 0.5), (3, 0.4)]);
        assert_scores(&fuse(&lists, &convex_by(0.0, 0.0)), &[(3, 1.0), (1, 0.25), (2, 0.0)]);
    }

    #[test]
    fn the_document_prior_is_in_parts_of_its_best() {
        let document = Some(List { ranked: vec![(2, 1, 8.0), (3, 1, 8.0), (1, 2, 4.0)], filled: vec![] });
        let lists = Lists { dense: list(&[(1, 0.8), (2, 0.5), (3, 0.5)], &[]), bm25: None, document };
        assert_scores(&fuse(&lists, &convex_by(0.7, 0.5)), &[(1, 1.05), (2, 1.0), (3, 1.0)]);
    }

    #[test]
    fn a_passage_without_a_vector_counts_like_the_least_similar() {
        let lists =
            Lists { dense: list(&[(1, 0.8), (2, 0.3)], &[]), bm25: list(&[(9, 4.0)], &[(1, 0.0)]), document: None };
        assert_scores(&fuse(&lists, &convex_by(0.5, 0.0)), &[(9, 0.15 + 0.5), (1, 0.4), (2, 0.15)]);
        let none = Lists { dense: list(&[], &[]), bm25: list(&[(9, 4.0)], &[]), document: None };
        assert_scores(&fuse(&none, &convex_by(0.5, 0.0)), &[(9, 0.5)]);
    }

    #[test]
    fn without_a_match_of_any_word_the_cosine_decides() {
        let lists = Lists { dense: list(&[(4, 0.8), (2, 0.8)], &[]), bm25: list(&[], &[(4, 0.0)]), document: None };
        assert_scores(&fuse(&lists, &convex_by(0.5, 0.0)), &[(2, 0.4), (4, 0.4)]);
    }

    proptest! {
        /// Adding a constant factor to all BM25 scores changes nothing, and no score leaves its bounds.
        #[test]
        fn the_scale_of_bm25_does_not_matter(
            dense in proptest::collection::btree_map(0i64..40, -1.0f64..1.0, 1..20),
            bm25 in proptest::collection::btree_map(0i64..40, 0.001f64..50.0, 1..20),
            alpha in 0.0f64..=1.0,
        ) {
            let sorted = |map: &BTreeMap<i64, f64>, factor: f64| {
                let mut all: Vec<(i64, f64)> = map.iter().map(|(id, score)| (*id, score * factor)).collect();
                all.sort_by(|a, b| b.1.total_cmp(&a.1));
                list(&all, &[])
            };
            let fused = |factor| {
                let lists = Lists { dense: sorted(&dense, 1.0), bm25: sorted(&bm25, factor), document: None };
                fuse(&lists, &convex_by(alpha, 0.0))
            };
            // Powers of two are exact.
            prop_assert_eq!(fused(1.0), fused(8.0));
            for (_, score) in fused(1.0) {
                prop_assert!((-1.0..=1.0 + 1e-9).contains(&score));
            }
        }
    }
}
