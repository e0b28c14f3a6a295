// SPDX-License-Identifier: PostgreSQL

//! What a page tells that no run has stored: computed from its lists, times and scores.

use super::{Asked, Report, Run};
use crate::evaluation::order::ranking;
use crate::metrics::{first_relevant, recalls};
use crate::rank::trace::Stage;
use std::collections::BTreeMap;

/// Depth to which recall is drawn.
pub const DEPTH: usize = 100;

/// Mean recall of a stage at each depth from 1 to [`DEPTH`], over the questions for which the stage ran; empty where it did not.
pub fn recall(run: &Run, stage: Stage) -> Vec<f64> {
    let mut sums = vec![0.0; DEPTH];
    let mut questions = 0_usize;
    for measured in run.asked.iter().filter_map(|asked| asked.measured.as_ref()) {
        let Some(list) = measured.lists.get(&stage) else { continue };
        let of = recalls(&ranking(measured.judged.unit, list), &measured.judged.grades, DEPTH);
        sums.iter_mut().zip(of).for_each(|(sum, value)| *sum += value);
        questions += 1;
    }
    match questions {
        0 => Vec::new(),
        _ => sums.into_iter().map(|sum| sum / questions as f64).collect(),
    }
}

/// The rank of the first relevant item of the final ranking.
pub fn first_gold(asked: &Asked) -> Option<usize> {
    let measured = asked.measured.as_ref()?;
    let list = measured.lists.get(&Stage::TopK)?;
    first_relevant(&ranking(measured.judged.unit, list), &measured.judged.grades)
}

/// An answerable question in both runs of a report.
#[derive(Debug)]
pub struct Pair<'a> {
    /// As the run asked it.
    pub asked: &'a Asked,
    /// Rank of the first gold in the other run, and in the run.
    pub ranks: [Option<usize>; 2],
    /// Value of the main metric in the other run, and in the run.
    pub values: [Option<f64>; 2],
}

impl Pair<'_> {
    /// By how much the run is better.
    pub fn difference(&self) -> f64 {
        let [before, after] = self.values.map(Option::unwrap_or_default);
        after - before
    }

    /// What became of the first gold.
    pub fn moved(&self) -> Move {
        match self.ranks {
            [None, None] => Move::Nowhere,
            [None, Some(_)] => Move::Gained,
            [Some(_), None] => Move::Lost,
            [Some(before), Some(after)] if after < before => Move::Better,
            [Some(before), Some(after)] if after > before => Move::Worse,
            _ => Move::Same,
        }
    }
}

/// What became of the first gold of a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Move {
    /// It was in no list and is.
    Gained,
    /// It came further up.
    Better,
    /// It stands where it was.
    Same,
    /// It went further down.
    Worse,
    /// It was in the list and is no more.
    Lost,
    /// It is in neither list.
    Nowhere,
}

impl Move {
    /// All, with what they mean.
    pub const ALL: [(Move, &str); 6] = [
        (Move::Gained, "gained: only now in the list"),
        (Move::Better, "better: further up"),
        (Move::Same, "same rank"),
        (Move::Worse, "worse: further down"),
        (Move::Lost, "lost: no more in the list"),
        (Move::Nowhere, "in neither list"),
    ];
}

/// The answerable questions that both runs asked, in the order of the set.
pub fn pairs(report: &Report) -> Vec<Pair<'_>> {
    let Some(against) = &report.against else { return Vec::new() };
    let before: BTreeMap<i64, &Asked> = against.run.asked.iter().map(|asked| (asked.id, asked)).collect();
    let mut pairs = Vec::new();
    for asked in &report.run.asked {
        let (Some(after), Some(other)) = (&asked.measured, before.get(&asked.id)) else { continue };
        let Some(measured) = &other.measured else { continue };
        pairs.push(Pair {
            asked,
            ranks: [first_gold(other), first_gold(asked)],
            values: [measured.value, after.value],
        });
    }
    pairs
}

/// The value below which a share of sorted values lies, interpolated as PostgreSQL's `percentile_cont` does.
pub fn quantile(sorted: &[f64], share: f64) -> Option<f64> {
    let at = share.clamp(0.0, 1.0) * sorted.len().checked_sub(1)? as f64;
    let (low, high) = (sorted.get(at.floor() as usize)?, sorted.get(at.ceil() as usize)?);
    Some(low + (high - low) * at.fract())
}

/// Numbers among values, smallest first.
pub fn sorted(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut sorted: Vec<f64> = values.filter(|value| value.is_finite()).collect();
    sorted.sort_by(f64::total_cmp);
    sorted
}

/// Points of a distribution: each value with the share that is not above it, at most some 200 of them.
pub fn distribution(sorted: &[f64]) -> Vec<(f64, f64)> {
    let Some(first) = sorted.first() else { return Vec::new() };
    let count = sorted.len();
    let shown = count.min(200);
    let point = |n: usize| {
        let at = n * count / shown;
        (sorted[at - 1], at as f64 / count as f64)
    };
    std::iter::once((*first, 0.0)).chain((1..=shown).map(point)).collect()
}

/// The chance that a value of `upper` is above one of `lower`, equal ones counting half (Mann and Whitney's U, by the number of pairs; the
/// area under the ROC curve). Both are sorted.
pub fn separation(upper: &[f64], lower: &[f64]) -> Option<f64> {
    if upper.is_empty() || lower.is_empty() {
        return None;
    }
    let beaten = |value: &f64| {
        let below = lower.partition_point(|other| other < value);
        let not_above = lower.partition_point(|other| other <= value);
        (below + not_above) as f64 / 2.0
    };
    Some(upper.iter().map(beaten).sum::<f64>() / (upper.len() * lower.len()) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_percentile_cont() {
        // SELECT percentile_cont(ARRAY[0, .5, .9, 1]) WITHIN GROUP (ORDER BY v) FROM (VALUES (1), (2), (4), (8)) t (v);
        let of = |share| quantile(&[1.0, 2.0, 4.0, 8.0], share).expect("values");
        assert!((of(0.9) - 6.8).abs() < 1e-12);
        assert_eq!(
            (of(0.0), of(0.5), of(1.0), quantile(&[], 0.5), quantile(&[3.0], 0.99)),
            (1.0, 3.0, 8.0, None, Some(3.0))
        );
    }

    #[test]
    fn a_distribution_ends_at_all_and_stays_small() {
        assert_eq!(distribution(&[1.0, 2.0]), [(1.0, 0.0), (1.0, 0.5), (2.0, 1.0)]);
        let many: Vec<f64> = (0..100_001).map(f64::from).collect();
        let points = distribution(&many);
        assert_eq!((points.len(), points[100], points[200]), (201, (49_999.0, 50_000.0 / 100_001.0), (100_000.0, 1.0)));
        assert!(distribution(&[]).is_empty());
    }

    #[test]
    fn separation_is_the_share_of_pairs() {
        assert_eq!(separation(&[2.0, 3.0], &[1.0, 2.0]), Some(3.5 / 4.0));
        assert_eq!((separation(&[1.0], &[1.0]), separation(&[], &[1.0])), (Some(0.5), None));
    }

    #[test]
    fn what_is_no_number_is_left_out() {
        assert_eq!(sorted([2.0, f64::NAN, f64::INFINITY, 1.0].into_iter()), [1.0, 2.0]);
    }
}
