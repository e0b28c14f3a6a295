// SPDX-License-Identifier: PostgreSQL

//! Reciprocal rank fusion.
//!
//! Owns the formula and the order of ties; knows nothing of how a leg found its candidates. The result does not depend
//! on the order in which legs are given.

use std::collections::BTreeMap;

/// One ranked list.
#[derive(Debug, Clone, PartialEq)]
pub struct Leg<'a, K> {
    /// Its name, for the trace.
    pub name: &'a str,
    /// Its weight, ≥ 0.
    pub weight: f64,
    /// Ids with their ranks, which count from 1; what is equally good has one rank.
    pub ranked: Vec<(K, u32)>,
}

impl<'a, K> Leg<'a, K> {
    /// A list of ids, best first.
    pub fn new(name: &'a str, weight: f64, ids: impl IntoIterator<Item = K>) -> Self {
        Self { name, weight, ranked: ids.into_iter().zip(1..).collect() }
    }
}

/// One fused candidate.
#[derive(Debug, Clone, PartialEq)]
pub struct Fused<K> {
    /// Its id.
    pub id: K,
    /// Σ weight / (k + rank) over the legs that have it.
    pub score: f64,
    /// Its 1-based rank in each leg, in the order the legs were given.
    pub ranks: Vec<Option<u32>>,
}

/// Weighted reciprocal rank fusion: score = Σ w / (k + rank), rank from 1 (Cormack, Clarke and Büttcher, SIGIR 2009,
/// §2; weights are ours).
///
/// Sorted by score, highest first; equal scores by id, lowest first. A duplicate id in a leg counts at its first place.
/// A leg of weight 0 contributes candidates with nothing to their score, so a candidate of such legs alone is left out.
pub fn rrf<K: Ord + Clone>(legs: &[Leg<'_, K>], k: u32) -> Vec<Fused<K>> {
    let mut ranks: BTreeMap<K, Vec<Option<u32>>> = BTreeMap::new();
    for (at, leg) in legs.iter().enumerate() {
        for (id, rank) in &leg.ranked {
            let of = ranks.entry(id.clone()).or_insert_with(|| vec![None; legs.len()]);
            of[at].get_or_insert(*rank);
        }
    }
    let mut fused: Vec<Fused<K>> = ranks
        .into_iter()
        .map(|(id, ranks)| Fused { id, score: rrf_score(legs, &ranks, k), ranks })
        .filter(|f| f.score > 0.0)
        .collect();
    fused.sort_by(|a, b| b.score.total_cmp(&a.score).then_with(|| a.id.cmp(&b.id)));
    fused
}

fn rrf_score<K>(legs: &[Leg<'_, K>], ranks: &[Option<u32>], k: u32) -> f64 {
    let mut terms: Vec<f64> = legs
        .iter()
        .zip(ranks)
        .filter_map(|(leg, rank)| rank.map(|r| leg.weight / (f64::from(k) + f64::from(r))))
        .collect();
    // Floating-point addition is not associative: a fixed order of terms keeps the sum free of the order of legs.
    terms.sort_by(f64::total_cmp);
    terms.iter().sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn leg(name: &str, weight: f64, ids: Vec<i64>) -> Leg<'_, i64> {
        Leg::new(name, weight, ids)
    }

    #[test]
    fn scores_are_the_formula() {
        let fused = rrf(&[leg("a", 1.0, vec![1, 2]), leg("b", 0.5, vec![2])], 60);
        assert_eq!(fused[0].id, 2);
        assert!((fused[0].score - (1.0 / 62.0 + 0.5 / 61.0)).abs() < 1e-15);
        assert_eq!(fused[0].ranks, vec![Some(2), Some(1)]);
        assert_eq!(fused[1].ranks, vec![Some(1), None]);
    }

    #[test]
    fn equals_share_a_rank() {
        let shared = Leg { name: "b", weight: 1.0, ranked: vec![(2, 1), (3, 1), (1, 2)] };
        let fused = rrf(&[leg("a", 1.0, vec![1, 2, 3]), shared], 0);
        let scores: Vec<(i64, f64)> = fused.iter().map(|f| (f.id, f.score)).collect();
        assert_eq!(scores, vec![(1, 1.5), (2, 1.5), (3, 1.0 + 1.0 / 3.0)]);
    }

    #[test]
    fn ties_break_by_id_and_weightless_legs_add_nobody() {
        let fused = rrf(&[leg("a", 1.0, vec![9]), leg("b", 1.0, vec![4]), leg("c", 0.0, vec![5])], 60);
        assert_eq!(fused.iter().map(|f| f.id).collect::<Vec<_>>(), vec![4, 9]);
    }

    proptest! {
        #[test]
        fn the_order_of_legs_changes_nothing(
            a in proptest::collection::vec(0i64..50, 0..30),
            b in proptest::collection::vec(0i64..50, 0..30),
            c in proptest::collection::vec(0i64..50, 0..30),
            w in (0.1f64..3.0, 0.1f64..3.0, 0.1f64..3.0),
            k in 0u32..100,
        ) {
            let one = rrf(&[leg("a", w.0, a.clone()), leg("b", w.1, b.clone()), leg("c", w.2, c.clone())], k);
            let two = rrf(&[leg("c", w.2, c), leg("a", w.0, a), leg("b", w.1, b)], k);
            let bare = |f: &[Fused<i64>]| f.iter().map(|x| (x.id, x.score.to_bits())).collect::<Vec<_>>();
            prop_assert_eq!(bare(&one), bare(&two));
        }

        #[test]
        fn a_better_rank_never_lowers_the_score(ids in proptest::collection::vec(0i64..100, 2..40), k in 0u32..100) {
            let mut seen = std::collections::BTreeSet::new();
            let unique: Vec<i64> = ids.into_iter().filter(|i| seen.insert(*i)).collect();
            let fused = rrf(&[leg("a", 1.0, unique.clone())], k);
            prop_assert_eq!(fused.iter().map(|f| f.id).collect::<Vec<_>>(), unique);
        }
    }
}
