// SPDX-License-Identifier: PostgreSQL

//! What the corpus and its gold decide before the retriever does.
//!
//! Owns two counts of one question at one stage: how many results that are not relevant score nearly as high as the gold does,
//! and how much of the top nobody judged. Where either is large, a difference of metrics says little about retrieval: the stage
//! does not tell the gold from its neighbours, or better results are counted as wrong. The third cause, texts that repeat the
//! gold, is [`crate::near_duplicate`]'s.

use super::measure::Judged;
use super::order::{Found, Unit, ranking};
use crate::metrics::Metric;
use std::collections::BTreeMap;

/// One question at one stage.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Diagnosis {
    /// The rank of its first relevant item; none if the stage did not find any.
    pub gold_rank: Option<u32>,
    /// The best score of a relevant item, found or filled in; none if none has one.
    pub gold_score: Option<f64>,
    /// Items that are not relevant and score at least `share` of that; none without it.
    pub contenders: Option<usize>,
    /// The share of the first `k` items that has no grade.
    pub unjudged: f64,
}

/// Diagnoses a list, ties broken, and what was given a score besides.
pub fn diagnose(judged: &Judged, ranked: &[Found], filled: &[Found], k: u32, share: f64) -> Diagnosis {
    let item = |f: &Found| match judged.unit {
        Unit::Chunk => f.chunk,
        Unit::Document => f.document,
    };
    let relevant = |id: &i64| judged.grades.get(id).is_some_and(|grade| *grade >= 1);
    let mut best: BTreeMap<i64, f64> = BTreeMap::new();
    for found in ranked.iter().chain(filled) {
        best.entry(item(found)).and_modify(|score| *score = score.max(found.score)).or_insert(found.score);
    }
    let gold_score = best.iter().filter(|(id, _)| relevant(id)).map(|(_, score)| *score).reduce(f64::max);
    let contenders = gold_score.map(|gold| {
        // A share of a score below 0 would be above it.
        let bar = if gold > 0.0 { share * gold } else { gold };
        best.iter().filter(|(id, score)| !relevant(id) && **score >= bar).count()
    });
    let order = ranking(judged.unit, ranked);
    let gold_rank = (1..).zip(order.top(ranked.len())).find(|(_, id)| relevant(id)).map(|(rank, _)| rank);
    Diagnosis { gold_rank, gold_score, contenders, unjudged: Metric::Unjudged(k).of(&order, &judged.grades) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::Grades;

    fn found(list: &[(i64, f64)]) -> Vec<Found> {
        list.iter()
            .map(|(chunk, score)| Found { chunk: *chunk, document: chunk / 10, key: [0; 16], score: *score })
            .collect()
    }

    fn judged(unit: Unit, grades: &[(i64, i32)]) -> Judged {
        Judged { unit, grades: grades.iter().copied().collect::<Grades<i64>>(), gold: Vec::new() }
    }

    #[test]
    fn contenders_are_what_is_not_relevant_and_nearly_as_good() {
        let list = found(&[(11, 1.0), (21, 0.95), (31, 0.8), (41, 0.71)]);
        let said = diagnose(&judged(Unit::Chunk, &[(31, 2), (11, 0)]), &list, &[], 2, 0.9);
        assert_eq!((said.gold_rank, said.gold_score, said.contenders), (Some(3), Some(0.8), Some(2)));
        assert_eq!(said.unjudged, 0.5);
        assert_eq!(diagnose(&judged(Unit::Chunk, &[(31, 2)]), &list, &[], 2, 0.8).contenders, Some(3));
    }

    #[test]
    fn gold_that_the_other_leg_found_has_a_score_and_no_rank() {
        let said =
            diagnose(&judged(Unit::Chunk, &[(9, 1)]), &found(&[(11, 1.0)]), &found(&[(9, 0.5), (8, 0.5)]), 1, 1.0);
        assert_eq!((said.gold_rank, said.gold_score, said.contenders), (None, Some(0.5), Some(2)));
        let said = diagnose(&judged(Unit::Chunk, &[(9, 1)]), &found(&[(11, 1.0)]), &[], 1, 0.9);
        assert_eq!((said.gold_rank, said.gold_score, said.contenders), (None, None, None));
    }

    #[test]
    fn documents_count_once_and_scores_below_zero_are_compared_as_they_are() {
        let list = found(&[(11, -0.1), (12, -0.2), (21, -0.3), (31, -0.4)]);
        let said = diagnose(&judged(Unit::Document, &[(2, 1)]), &list, &[], 3, 0.9);
        assert_eq!((said.gold_rank, said.gold_score, said.contenders), (Some(2), Some(-0.3), Some(1)));
    }
}
