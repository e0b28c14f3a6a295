// SPDX-License-Identifier: PostgreSQL

//! Where gold was lost, and to what.
//!
//! A gold is lost when none of its items is among the first `k` of the final ranking. The stage that lost it is the one after
//! the last at which an item of it was among the first `k`; if it never was, the legs did not bring it far enough up, whatever
//! came later. What displaced it are the results in its place that are not relevant.

use super::measure::Judged;
use super::order::{Found, ranking};
use crate::rank::trace::Stage;
use std::collections::BTreeMap;

/// The legs' stages; what comes after them works on what they found.
const LEGS: &[Stage] = &[Stage::Dense, Stage::Bm25];

/// One lost gold.
#[derive(Debug, Clone, PartialEq)]
pub struct Loss {
    /// Which of the question's relevant gold, from 0.
    pub gold: usize,
    /// The stage that lost it; `None`: the legs.
    pub stage: Option<Stage>,
    /// Its best rank before that stage, from 1; `None` where it was in no list, or where the legs lost it.
    pub rank_before: Option<u32>,
    /// Its best rank after that stage; `None` where it was in no list.
    pub rank_after: Option<u32>,
    /// The score of its best passage in the final ranking, if it has one.
    pub score: Option<f64>,
    /// Results among the first `k` that are not relevant, best first.
    pub displaced_by: Vec<Displacer>,
}

/// A result in the place of lost gold.
#[derive(Debug, Clone, PartialEq)]
pub struct Displacer {
    /// Its rank, from 1, in the unit that the question is judged in.
    pub rank: u32,
    /// The passage.
    pub chunk: i64,
    /// Its score.
    pub score: f64,
}

/// What was lost of one question at depth `k`. `stages` are lists with broken ties, best first, the final one under
/// [`Stage::TopK`].
pub fn losses(judged: &Judged, stages: &BTreeMap<Stage, Vec<Found>>, k: usize) -> Vec<Loss> {
    let rankings: BTreeMap<Stage, Vec<i64>> =
        stages.iter().map(|(stage, found)| (*stage, ranking(judged.unit, found).ids().to_vec())).collect();
    // In the order of the pipeline, the legs as one.
    let mut steps: Vec<(Option<Stage>, Vec<Stage>)> = vec![(None, LEGS.to_vec())];
    steps.extend(stages.keys().filter(|s| !LEGS.contains(s) && **s != Stage::Document).map(|s| (Some(*s), vec![*s])));
    let best = |items: &[i64], lists: &[Stage]| -> Option<u32> {
        let of_list = |stage: &Stage| rankings.get(stage)?.iter().position(|id| items.contains(id));
        lists.iter().filter_map(of_list).min().map(|at| at as u32 + 1)
    };
    let mut losses = Vec::new();
    for (gold, items) in judged.gold.iter().enumerate() {
        let ranks: Vec<Option<u32>> = steps.iter().map(|(_, lists)| best(items, lists)).collect();
        let within = |rank: &Option<u32>| rank.is_some_and(|r| r as usize <= k);
        if ranks.last().is_some_and(within) {
            continue;
        }
        let lost = ranks.iter().rposition(within).map_or(0, |at| at + 1);
        let last = stages.get(&Stage::TopK).map(Vec::as_slice).unwrap_or_default();
        let item = |f: &Found| ranking(judged.unit, std::slice::from_ref(f)).ids()[0];
        losses.push(Loss {
            gold,
            stage: steps.get(lost).and_then(|(stage, _)| *stage),
            rank_before: lost.checked_sub(1).and_then(|before| ranks[before]),
            rank_after: ranks.get(lost).copied().flatten(),
            score: last.iter().find(|f| items.contains(&item(f))).map(|f| f.score),
            displaced_by: displacers(judged, last, k),
        });
    }
    losses
}

fn displacers(judged: &Judged, last: &[Found], k: usize) -> Vec<Displacer> {
    let mut seen = Vec::new();
    let mut displacers = Vec::new();
    for found in last {
        let item = ranking(judged.unit, std::slice::from_ref(found)).ids()[0];
        if seen.contains(&item) {
            continue;
        }
        seen.push(item);
        if seen.len() > k {
            break;
        }
        if judged.grades.get(&item).is_none_or(|grade| *grade < 1) {
            displacers.push(Displacer { rank: seen.len() as u32, chunk: found.chunk, score: found.score });
        }
    }
    displacers
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evaluation::order::Unit;
    use crate::metrics::Grades;

    fn list(ids: &[i64]) -> Vec<Found> {
        let found =
            |(n, id): (usize, &i64)| Found { chunk: *id, document: *id / 10, key: [0; 16], score: 10.0 - n as f64 };
        ids.iter().enumerate().map(found).collect()
    }

    fn judged(unit: Unit, items: &[i64]) -> Judged {
        let grades: Grades<i64> = items.iter().map(|i| (*i, 1)).collect();
        Judged { unit, grades, gold: items.iter().map(|i| vec![*i]).collect() }
    }

    #[test]
    fn the_stage_that_pushed_it_out_is_named() {
        let stages = BTreeMap::from([
            (Stage::Dense, list(&[11, 12, 13])),
            (Stage::Bm25, list(&[14, 15, 16, 11])),
            (Stage::Fusion, list(&[14, 15, 12, 11])),
            (Stage::TopK, list(&[14, 15, 12, 11])),
        ]);
        let losses = losses(&judged(Unit::Chunk, &[11, 12, 14, 16, 99]), &stages, 3);
        let told: Vec<_> = losses.iter().map(|l| (l.gold, l.stage, l.rank_before, l.rank_after)).collect();
        assert_eq!(
            told,
            [
                (0, Some(Stage::Fusion), Some(1), Some(4)),
                (3, Some(Stage::Fusion), Some(3), None),
                (4, None, None, None)
            ]
        );
        assert_eq!(losses[0].score, Some(7.0));
        assert_eq!(losses[0].displaced_by, [Displacer { rank: 2, chunk: 15, score: 9.0 }]);
    }

    #[test]
    fn what_was_never_up_was_lost_by_the_legs() {
        let stages = BTreeMap::from([(Stage::Bm25, list(&[1, 2, 3, 4])), (Stage::TopK, list(&[1, 2, 3, 4]))]);
        let losses = losses(&judged(Unit::Chunk, &[4]), &stages, 2);
        assert_eq!((losses[0].stage, losses[0].rank_before, losses[0].rank_after), (None, None, Some(4)));
    }

    #[test]
    fn documents_are_lost_as_documents() {
        let stages = BTreeMap::from([(Stage::Dense, list(&[21, 22, 11])), (Stage::TopK, list(&[21, 22, 23, 31, 11]))]);
        let losses = losses(&judged(Unit::Document, &[1]), &stages, 2);
        assert_eq!(
            (losses[0].stage, losses[0].rank_before, losses[0].rank_after),
            (Some(Stage::TopK), Some(2), Some(3))
        );
        let displaced: Vec<_> = losses[0].displaced_by.iter().map(|d| (d.rank, d.chunk)).collect();
        assert_eq!(displaced, [(1, 21), (2, 31)]);
    }
}
