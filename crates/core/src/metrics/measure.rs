// SPDX-License-Identifier: PostgreSQL

//! The formulas.
//!
//! Each is a function of one ranking and one set of grades. Names and definitions are trec_eval's (`m_ndcg_cut.c`,
//! `m_recall.c`, `m_P.c`, `m_success.c`, `m_map.c`, `m_recip_rank.c`), except that the reciprocal rank has a cut.

use super::{Grades, Ranking};
use crate::error::{Error, Result};
use std::fmt;
use std::str::FromStr;

/// The lowest grade that counts as relevant.
const RELEVANT: i32 = 1;

/// A metric with its cut: how many of the first places it looks at.
///
/// Written and parsed as `nDCG@10`, `Recall@100`, `MRR@10`, `success@5`, `P@10`, `unjudged@10` and `MAP`, in any case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Metric {
    /// Normalised discounted cumulative gain: Σ grade / log2(rank + 1), divided by that of the ideal order of all
    /// judged ids (Järvelin and Kekäläinen, TOIS 2002, with the discount of every rank from the first).
    Ndcg(u32),
    /// Relevant ids within the cut, of all relevant ids.
    Recall(u32),
    /// 1 / rank of the first relevant id, 0 beyond the cut.
    Mrr(u32),
    /// Mean over all relevant ids of the precision at their rank, 0 for those not found.
    Map,
    /// 1 when a relevant id is within the cut, else 0.
    Success(u32),
    /// Relevant ids within the cut, of the cut: fewer results than that count as wrong ones.
    Precision(u32),
    /// Share of the results within the cut that nobody judged; how far the other metrics can be trusted.
    Unjudged(u32),
}

/// A name and the metric it makes of a cut.
type Family = (&'static str, fn(u32) -> Metric);

const FAMILIES: &[Family] = &[
    ("nDCG", Metric::Ndcg),
    ("Recall", Metric::Recall),
    ("MRR", Metric::Mrr),
    ("success", Metric::Success),
    ("P", Metric::Precision),
    ("unjudged", Metric::Unjudged),
];

impl Metric {
    /// The metric of one query.
    pub fn of<I: Ord>(&self, ranking: &Ranking<I>, grades: &Grades<I>) -> f64 {
        match *self {
            Metric::Ndcg(k) => ndcg(ranking, grades, k as usize),
            Metric::Recall(k) => ratio(hits(ranking.top(k as usize), grades), relevant(grades)),
            Metric::Mrr(k) => reciprocal_rank(ranking.top(k as usize), grades),
            Metric::Map => average_precision(ranking.ids(), grades),
            Metric::Success(k) => f64::from(u8::from(hits(ranking.top(k as usize), grades) > 0)),
            Metric::Precision(k) => ratio(hits(ranking.top(k as usize), grades), k as usize),
            Metric::Unjudged(k) => {
                let top = ranking.top(k as usize);
                ratio(top.iter().filter(|id| !grades.contains_key(*id)).count(), top.len())
            }
        }
    }

    /// Its name and cut.
    fn parts(self) -> (&'static str, Option<u32>) {
        match self {
            Metric::Ndcg(k) => ("nDCG", Some(k)),
            Metric::Recall(k) => ("Recall", Some(k)),
            Metric::Mrr(k) => ("MRR", Some(k)),
            Metric::Map => ("MAP", None),
            Metric::Success(k) => ("success", Some(k)),
            Metric::Precision(k) => ("P", Some(k)),
            Metric::Unjudged(k) => ("unjudged", Some(k)),
        }
    }
}

impl fmt::Display for Metric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.parts() {
            (name, Some(k)) => write!(f, "{name}@{k}"),
            (name, None) => f.write_str(name),
        }
    }
}

impl FromStr for Metric {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let unknown = || {
            Error::invalid(format!("unknown metric \"{text}\""))
                .with_hint("Known: nDCG@k, Recall@k, MRR@k, success@k, P@k, unjudged@k and MAP, with k from 1.")
        };
        if text.eq_ignore_ascii_case("MAP") {
            return Ok(Metric::Map);
        }
        let (name, cut) = text.split_once('@').ok_or_else(unknown)?;
        let (_, make) = FAMILIES.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).ok_or_else(unknown)?;
        let cut: u32 = cut.parse().map_err(|_| unknown())?;
        if cut == 0 { Err(unknown()) } else { Ok(make(cut)) }
    }
}

fn is_relevant<I: Ord>(id: &I, grades: &Grades<I>) -> bool {
    grades.get(id).is_some_and(|grade| *grade >= RELEVANT)
}

fn relevant<I>(grades: &Grades<I>) -> usize {
    grades.values().filter(|grade| **grade >= RELEVANT).count()
}

fn hits<I: Ord>(top: &[I], grades: &Grades<I>) -> usize {
    top.iter().filter(|id| is_relevant(*id, grades)).count()
}

/// A share; nothing of nothing is 0, as in trec_eval.
fn ratio(part: usize, whole: usize) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

fn ndcg<I: Ord>(ranking: &Ranking<I>, grades: &Grades<I>, k: usize) -> f64 {
    let mut ideal: Vec<i32> = grades.values().copied().collect();
    ideal.sort_unstable_by(|a, b| b.cmp(a));
    // The ideal order is cut where the metric is, not where the results end.
    let best = dcg(ideal.into_iter().take(k));
    let reached = dcg(ranking.top(k).iter().map(|id| grades.get(id).copied().unwrap_or(0)));
    if best > 0.0 { reached / best } else { 0.0 }
}

fn dcg(gains: impl Iterator<Item = i32>) -> f64 {
    let discounted = gains.enumerate().filter(|(_, gain)| *gain > 0);
    // The sum of nothing would be -0.
    discounted.fold(0.0, |sum, (at, gain)| sum + f64::from(gain) / (at as f64 + 2.0).log2())
}

fn reciprocal_rank<I: Ord>(top: &[I], grades: &Grades<I>) -> f64 {
    first(top, grades).map_or(0.0, |rank| 1.0 / rank as f64)
}

fn first<I: Ord>(top: &[I], grades: &Grades<I>) -> Option<usize> {
    top.iter().position(|id| is_relevant(id, grades)).map(|at| at + 1)
}

/// The rank of the first relevant id, from 1; `None` where the ranking has none.
pub fn first_relevant<I: Ord>(ranking: &Ranking<I>, grades: &Grades<I>) -> Option<usize> {
    first(ranking.ids(), grades)
}

/// [`Metric::Recall`] at each cut from 1 to `depth`, in one pass.
pub fn recalls<I: Ord>(ranking: &Ranking<I>, grades: &Grades<I>, depth: usize) -> Vec<f64> {
    let (ids, all) = (ranking.ids(), relevant(grades));
    let mut hits = 0;
    let mut at = |k: usize| {
        hits += usize::from(ids.get(k).is_some_and(|id| is_relevant(id, grades)));
        ratio(hits, all)
    };
    (0..depth).map(&mut at).collect()
}

fn average_precision<I: Ord>(ids: &[I], grades: &Grades<I>) -> f64 {
    let ranks = ids.iter().enumerate().filter(|(_, id)| is_relevant(*id, grades)).map(|(at, _)| at as f64 + 1.0);
    let precisions = ranks.enumerate().map(|(found, rank)| (found as f64 + 1.0) / rank);
    match relevant(grades) {
        0 => 0.0,
        all => precisions.fold(0.0, |sum, precision| sum + precision) / all as f64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-12
    }

    #[test]
    fn ndcg_is_the_formula() {
        let grades = Grades::from([("a", 3), ("b", 2), ("c", 0)]);
        let ranking = Ranking::from_ranks([(1, "c"), (2, "b"), (3, "a")]);
        let ideal = 3.0 + 2.0 / 3f64.log2();
        assert!(close(Metric::Ndcg(3).of(&ranking, &grades), (2.0 / 3f64.log2() + 3.0 / 2.0) / ideal));
        assert!(close(Metric::Ndcg(2).of(&ranking, &grades), (2.0 / 3f64.log2()) / ideal));
    }

    #[test]
    fn the_ideal_is_cut_at_k_and_not_at_the_number_of_results() {
        let grades = Grades::from([(1, 1), (2, 1), (3, 1)]);
        let ranking = Ranking::from_ranks([(1, 1)]);
        assert!(close(Metric::Ndcg(1).of(&ranking, &grades), 1.0));
        assert!(close(Metric::Ndcg(10).of(&ranking, &grades), 1.0 / (1.0 + 1.0 / 3f64.log2() + 0.5)));
    }

    #[test]
    fn the_small_ones() {
        let grades = Grades::from([(1, 1), (2, 1), (3, 0)]);
        let ranking = Ranking::from_ranks([(1, 9), (2, 1), (3, 3), (4, 2)]);
        for (metric, value) in [
            ("Recall@2", 0.5),
            ("MRR@1", 0.0),
            ("mrr@2", 0.5),
            ("MAP", (1.0 / 2.0 + 2.0 / 4.0) / 2.0),
            ("success@1", 0.0),
            ("success@2", 1.0),
            ("P@5", 2.0 / 5.0),
            ("unjudged@4", 0.25),
        ] {
            let parsed: Metric = metric.parse().expect(metric);
            assert!(close(parsed.of(&ranking, &grades), value), "{metric}");
            assert_eq!(parsed.to_string().to_lowercase(), metric.to_lowercase());
        }
    }

    #[test]
    fn nothing_is_zero_and_not_less() {
        let grades = Grades::from([(1, 1)]);
        for ranking in [Ranking::from_ranks([]), Ranking::from_ranks([(1, 9)])] {
            for metric in FAMILIES.iter().map(|(_, make)| make(5)).chain([Metric::Map]) {
                assert!(metric.of(&ranking, &grades).is_sign_positive(), "{metric}");
            }
        }
    }

    #[test]
    fn a_strange_metric_is_an_error() {
        for text in ["nDCG", "nDCG@0", "nDCG@x", "recal@3", "MAP@3", ""] {
            let error = text.parse::<Metric>().expect_err(text);
            assert_eq!(error.message, format!("unknown metric \"{text}\""));
        }
    }

    proptest! {
        #[test]
        fn every_metric_is_from_zero_to_one_and_full_for_the_ideal(
            grades in proptest::collection::btree_map(0i64..40, 1i32..4, 1..20),
            found in proptest::collection::vec(0i64..60, 0..40),
            k in 1u32..50,
        ) {
            let ranking = Ranking::from_ranks(found.into_iter().zip(1u32..).map(|(id, rank)| (rank, id)));
            for (_, make) in FAMILIES {
                let value = make(k).of(&ranking, &grades);
                prop_assert!((0.0..=1.0 + 1e-12).contains(&value), "{} = {value}", make(k));
            }
            let recalled: Vec<f64> = (1..=50).map(|k| Metric::Recall(k).of(&ranking, &grades)).collect();
            prop_assert_eq!(recalls(&ranking, &grades, 50), recalled);
            let first = first_relevant(&ranking, &grades).map_or(0.0, |rank| 1.0 / rank as f64);
            prop_assert_eq!(first, Metric::Mrr(1000).of(&ranking, &grades));
            let mut ideal: Vec<(i64, i32)> = grades.iter().map(|(id, grade)| (*id, *grade)).collect();
            ideal.sort_by_key(|(_, grade)| -grade);
            let ideal = Ranking::from_ranks(ideal.into_iter().zip(1u32..).map(|((id, _), rank)| (rank, id)));
            prop_assert!(close(Metric::Ndcg(k).of(&ideal, &grades), 1.0));
            prop_assert!(close(Metric::Map.of(&ideal, &grades), 1.0));
        }
    }
}
