// SPDX-License-Identifier: PostgreSQL

//! Settings of the fusion that fit a question set, and what they are worth on questions that did not choose them.
//!
//! Works on the lists that a run kept, so hundreds of settings cost no search. The estimate is cross-validated: questions are
//! dealt into folds, whole clusters at a time; for each fold the setting that is best on the others is chosen, and only its
//! values on the fold count. The mean of a setting on the questions that chose it is not told, because it flatters (Stone,
//! "Cross-validatory choice and assessment of statistical predictions", JRSS B 1974). What is recommended is the choice of all
//! questions together; its estimate is that of the folds.
//!
//! Of equal settings the first of the grid is chosen, so a grid should begin with what is in force.

use super::measure::Judged;
use super::order::{Found, break_ties, ranking};
use super::significance::{self, Difference, Pair};
use crate::error::{Error, Result};
use crate::metrics::Metric;
use crate::rank::fusion::{Fusion, Lists, fuse};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Settings that may be tried at once.
pub const MAX_GRID: usize = 10_000;

/// A question with what its run found.
#[derive(Debug, Clone)]
pub struct Candidates {
    /// Its name, which ties are broken by.
    pub question: String,
    /// Its cluster.
    pub cluster: String,
    /// Its gold.
    pub judged: Judged,
    /// Depth of the final ranking.
    pub top_k: usize,
    /// The lists of the legs and of the document prior.
    pub lists: Lists,
    /// All that is in them.
    pub found: HashMap<i64, Found>,
}

impl Candidates {
    /// The value of a metric for the list that a setting makes.
    fn value(&self, setting: &Fusion, metric: Metric) -> f64 {
        let fused = fuse(&self.lists, setting).into_iter();
        let mut list: Vec<Found> =
            fused.filter_map(|(id, score)| Some(Found { score, ..*self.found.get(&id)? })).collect();
        break_ties(&self.question, &mut list);
        list.truncate(self.top_k);
        metric.of(&ranking(self.judged.unit, &list), &self.judged.grades)
    }
}

/// What one fold chose, and what came of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Fold {
    /// Questions in it.
    pub questions: usize,
    /// What the others chose.
    pub setting: Fusion,
    /// Its mean on this fold.
    pub held_out: f64,
    /// That of the first setting of the grid.
    pub baseline: f64,
}

/// The outcome.
#[derive(Debug, Clone, PartialEq)]
pub struct Tuned {
    /// The folds.
    pub folds: Vec<Fold>,
    /// What all questions together choose.
    pub recommended: Fusion,
    /// Held-out values of all folds against those of the first setting of the grid.
    pub estimate: Difference,
}

/// Chooses among the settings of a grid by a metric, with so many folds.
pub fn tune(
    questions: &[Candidates],
    grid: &[Fusion],
    metric: Metric,
    folds: usize,
    interrupt: &mut dyn FnMut() -> Result<()>,
) -> Result<Tuned> {
    if matches!(metric, Metric::Unjudged(_)) {
        return Err(Error::invalid(format!("{metric} is no measure of quality, so nothing is chosen by it")));
    }
    let clusters: BTreeSet<&str> = questions.iter().map(|q| q.cluster.as_str()).collect();
    if grid.is_empty() || grid.len() > MAX_GRID {
        return Err(Error::invalid(format!("a grid must have 1 to {MAX_GRID} settings, not {}", grid.len())));
    }
    if folds < 2 || clusters.len() < folds {
        let message =
            format!("{folds} folds need at least as many clusters of questions, and two; there are {}", clusters.len());
        return Err(Error::invalid(message));
    }
    let mut values = Vec::with_capacity(grid.len());
    for setting in grid {
        interrupt()?;
        values.push(questions.iter().map(|q| q.value(setting, metric)).collect::<Vec<f64>>());
    }
    let dealt = deal(&clusters, folds);
    let fold_of = |q: usize| dealt[questions[q].cluster.as_str()];
    let best = |wanted: &dyn Fn(usize) -> bool| -> usize {
        let sum = |row: &Vec<f64>| row.iter().enumerate().filter(|(q, _)| wanted(*q)).map(|(_, v)| v).sum::<f64>();
        let sums: Vec<f64> = values.iter().map(sum).collect();
        // The first of equals; sums of the same values in the same order are equal to the bit.
        (0..sums.len()).rev().max_by(|a, b| sums[*a].total_cmp(&sums[*b])).unwrap_or_default()
    };
    let mut told = Vec::new();
    let mut pairs = Vec::new();
    for fold in 0..folds {
        let chosen = best(&|q| fold_of(q) != fold);
        let held: Vec<usize> = (0..questions.len()).filter(|q| fold_of(*q) == fold).collect();
        let mean = |row: &[f64]| held.iter().map(|q| row[*q]).sum::<f64>() / held.len().max(1) as f64;
        let (held_out, baseline) = (mean(&values[chosen]), mean(&values[0]));
        told.push(Fold { questions: held.len(), setting: grid[chosen], held_out, baseline });
        pairs.extend(held.iter().map(|q| Pair {
            cluster: questions[*q].cluster.clone(),
            first: values[0][*q],
            second: values[chosen][*q],
        }));
    }
    let estimate = significance::compare(&pairs, interrupt)?.ok_or_else(|| Error::invalid("there is no question"))?;
    Ok(Tuned { folds: told, recommended: grid[best(&|_| true)], estimate })
}

/// Deals clusters into folds of nearly equal number, by a hash of their names.
fn deal<'c>(clusters: &BTreeSet<&'c str>, folds: usize) -> BTreeMap<&'c str, usize> {
    let mut shuffled: Vec<(&str, [u8; 32])> = clusters.iter().map(|c| (*c, Sha256::digest(c).into())).collect();
    shuffled.sort_by_key(|(_, hash)| *hash);
    shuffled.into_iter().enumerate().map(|(at, (cluster, _))| (cluster, at % folds)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evaluation::order::Unit;
    use crate::metrics::Grades;
    use crate::rank::fusion::{List, Method};
    use rand_chacha::ChaCha8Rng;
    use rand_chacha::rand_core::{RngCore, SeedableRng};

    fn setting(rrf_k: u32, dense_weight: f64, bm25_weight: f64) -> Fusion {
        Fusion { rrf_k, dense_weight, bm25_weight, ..Fusion::default() }
    }

    fn convex(alpha: f64) -> Fusion {
        Fusion { method: Method::Convex, alpha, ..Fusion::default() }
    }

    /// A list whose scores fall from 0.9.
    fn list(ids: &[i64]) -> Option<List> {
        let ranked = ids.iter().zip(1..).map(|(id, rank)| (*id, rank, 1.0 - 0.1 * f64::from(rank))).collect();
        Some(List { ranked, filled: Vec::new() })
    }

    fn question(n: usize, dense: &[i64], bm25: &[i64], gold: i64) -> Candidates {
        let judged = Judged { unit: Unit::Chunk, grades: Grades::from([(gold, 1)]), gold: vec![vec![gold]] };
        let name = format!("q{n}");
        let lists = Lists { dense: list(dense), bm25: list(bm25), document: None };
        let entry = |id: &i64| (*id, Found { chunk: *id, document: *id, key: [*id as u8; 16], score: 0.0 });
        let found = dense.iter().chain(bm25).map(entry).collect();
        Candidates { question: name.clone(), cluster: name, judged, top_k: 100, lists, found }
    }

    #[test]
    fn the_leg_that_finds_the_gold_gets_the_weight() {
        let questions: Vec<Candidates> = (0..40).map(|n| question(n, &[2, 1], &[1, 2], 1)).collect();
        let grid = [setting(60, 1.0, 1.0), setting(60, 1.0, 0.2), setting(60, 0.2, 1.0)];
        let tuned = tune(&questions, &grid, Metric::Mrr(10), 5, &mut || Ok(())).expect("tunes");
        assert_eq!(tuned.recommended, grid[2]);
        assert!(tuned.folds.iter().all(|f| f.setting == grid[2] && f.held_out == 1.0 && f.questions == 8));
        assert!(tuned.estimate.difference > 0.1 && tuned.estimate.p_randomization < 0.01, "{:?}", tuned.estimate);
    }

    #[test]
    fn shares_of_scores_are_tuned_like_weights_of_ranks() {
        let questions: Vec<Candidates> = (0..40).map(|n| question(n, &[2, 1], &[1, 2], 1)).collect();
        let grid = [setting(60, 1.0, 1.0), convex(0.9), convex(0.1)];
        let tuned = tune(&questions, &grid, Metric::Mrr(10), 5, &mut || Ok(())).expect("tunes");
        assert_eq!(tuned.recommended, grid[2]);
        assert!(tuned.folds.iter().all(|f| f.held_out == 1.0));
    }

    /// Where nothing can be learned, the choice of many settings must not look like a gain.
    #[test]
    fn noise_gains_nothing() {
        let mut random = ChaCha8Rng::seed_from_u64(3);
        let questions: Vec<Candidates> = (0..120)
            .map(|n| {
                let (dense, bm25) = if random.next_u32() & 1 == 1 { ([1, 2], [2, 1]) } else { ([2, 1], [1, 2]) };
                question(n, &dense, &bm25, if random.next_u32() & 1 == 1 { 1 } else { 2 })
            })
            .collect();
        let weights = (1..=20).map(|w| setting(60, f64::from(w) / 10.0, 1.0));
        let grid: Vec<Fusion> = std::iter::once(setting(60, 1.0, 1.0)).chain(weights).collect();
        let tuned = tune(&questions, &grid, Metric::Mrr(10), 10, &mut || Ok(())).expect("tunes");
        assert!(tuned.estimate.difference < 0.03, "{}", tuned.estimate.difference);
        assert!(tuned.estimate.p_randomization > 0.05, "{}", tuned.estimate.p_randomization);
    }

    #[test]
    fn equal_settings_leave_what_is_in_force() {
        let questions: Vec<Candidates> = (0..10).map(|n| question(n, &[1], &[1], 1)).collect();
        let grid = [setting(60, 1.0, 1.0), setting(10, 1.0, 1.0), setting(10, 0.5, 1.0)];
        let tuned = tune(&questions, &grid, Metric::Ndcg(10), 2, &mut || Ok(())).expect("tunes");
        assert_eq!((tuned.recommended, tuned.estimate.difference), (grid[0], 0.0));
    }

    #[test]
    fn a_cluster_is_never_on_both_sides() {
        let clusters: BTreeSet<&str> = ["a", "b", "c", "d", "e"].into();
        let dealt = deal(&clusters, 2);
        assert_eq!(dealt.len(), 5);
        assert!((2..=3).contains(&dealt.values().filter(|f| **f == 0).count()));
        let mut questions: Vec<Candidates> = (0..4).map(|n| question(n, &[1], &[1], 1)).collect();
        questions.iter_mut().for_each(|q| q.cluster = "one".into());
        let error =
            tune(&questions, &[setting(60, 1.0, 1.0)], Metric::Map, 2, &mut || Ok(())).expect_err("one cluster");
        assert_eq!(error.message, "2 folds need at least as many clusters of questions, and two; there are 1");
    }
}
