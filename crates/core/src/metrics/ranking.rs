// SPDX-License-Identifier: PostgreSQL

//! A ranked list without ties or repetitions.
//!
//! Owns the two ways to get one; a metric may rely on the result and never looks at a score.

use std::collections::BTreeSet;

/// Ids, the best first, each once.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ranking<I> {
    ids: Vec<I>,
}

impl<I: Ord> Ranking<I> {
    /// From results that carry their rank, in any order. Equal ranks keep the order they were given in; an id that
    /// comes again counts at its best rank.
    pub fn from_ranks(results: impl IntoIterator<Item = (u32, I)>) -> Self {
        let mut results: Vec<(u32, I)> = results.into_iter().collect();
        results.sort_by_key(|(rank, _)| *rank);
        Self::first_of_each(results.into_iter().map(|(_, id)| id))
    }

    /// From results that carry a score only: highest score first, equal scores by id, **highest id first**.
    ///
    /// That is trec_eval's rule (`form_res_rels.c`), down to comparing scores in single precision. It decides ties by
    /// the spelling of ids, so it serves comparison with other people's run files; our own results carry ranks.
    pub fn from_scores(results: impl IntoIterator<Item = (I, f64)>) -> Self {
        let mut results: Vec<(f32, I)> = results.into_iter().map(|(id, score)| (score as f32, id)).collect();
        results.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| b.1.cmp(&a.1)));
        Self::first_of_each(results.into_iter().map(|(_, id)| id))
    }

    fn first_of_each(ids: impl Iterator<Item = I>) -> Self {
        let ids: Vec<I> = ids.collect();
        let mut seen = BTreeSet::new();
        let first: Vec<bool> = ids.iter().map(|id| seen.insert(id)).collect();
        Self { ids: ids.into_iter().zip(first).filter(|(_, first)| *first).map(|(id, _)| id).collect() }
    }

    /// The ids, the best first.
    pub fn ids(&self) -> &[I] {
        &self.ids
    }

    /// The ids of the first `k` places.
    pub fn top(&self, k: usize) -> &[I] {
        &self.ids[..k.min(self.ids.len())]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn pooling_takes_the_best_rank() {
        let ranking = Ranking::from_ranks([(3, "b"), (1, "a"), (2, "b"), (4, "a"), (5, "c")]);
        assert_eq!(ranking.ids(), ["a", "b", "c"]);
    }

    #[test]
    fn equal_scores_go_by_id_downwards() {
        let ranking = Ranking::from_scores([("a", 1.0), ("c", 1.0), ("b", 2.0), ("d", 1.0 + 1e-12)]);
        assert_eq!(ranking.ids(), ["b", "d", "c", "a"]);
    }

    proptest! {
        #[test]
        fn the_order_of_scored_results_changes_nothing(
            results in proptest::collection::btree_map(0i64..40, 0u8..5, 0..30),
        ) {
            let forth = Ranking::from_scores(results.iter().map(|(id, s)| (*id, f64::from(*s))));
            let back = Ranking::from_scores(results.iter().rev().map(|(id, s)| (*id, f64::from(*s))));
            prop_assert_eq!(forth, back);
        }
    }
}
