// SPDX-License-Identifier: PostgreSQL

//! Retrieval metrics, equal to trec_eval's.
//!
//! Owns the formulas, the rule for ties and the mean over queries; must not know where a ranking came from or what an
//! id stands for (a chunk, a document). The values agree with trec_eval to six decimals, which a fixture made by
//! trec_eval's own code checks (`eval/oracle/metrics.py`), because a number that cannot be compared with anybody
//! else's is worth little.
//!
//! What is decided here, once:
//!
//! * **Grades.** A grade of 1 or more is relevant; 0, a negative grade and an unjudged document are not. nDCG's gain
//!   is the grade itself.
//! * **Order.** Rank order is what the caller says it is ([`Ranking::from_ranks`]); only a bare list of scores needs a
//!   rule for ties ([`Ranking::from_scores`]). An id that comes twice counts at its first place, which pools chunks to
//!   documents by their best rank.
//! * **Queries.** Exactly the judged queries count. One without results scores 0; results for a query that nobody
//!   judged are ignored.
//!
//! ```
//! use rag_core::metrics::{Grades, Metric, Ranking};
//! let grades = Grades::from([("a", 2), ("b", 1)]);
//! let ranking = Ranking::from_ranks([(1, "x"), (2, "a"), (3, "b")]);
//! assert_eq!("MRR@10".parse::<Metric>()?.of(&ranking, &grades), 0.5);
//! # Ok::<(), rag_core::Error>(())
//! ```

mod measure;
#[cfg(test)]
mod oracle;
mod ranking;

pub use measure::{Metric, first_relevant, recalls};
pub use ranking::Ranking;

use std::collections::BTreeMap;

/// The judgments of one query: how relevant each judged id is.
pub type Grades<I> = BTreeMap<I, i32>;

/// What one metric says of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Evaluated<Q> {
    /// The metric.
    pub metric: Metric,
    /// Its mean over all judged queries; 0 when there are none.
    pub mean: f64,
    /// Its value for each judged query, in the order of their keys.
    pub per_query: BTreeMap<Q, f64>,
}

/// Evaluates a run: `rankings` and `qrels` by query, one result per metric in the order given.
pub fn evaluate<Q: Ord + Clone, I: Ord>(
    rankings: &BTreeMap<Q, Ranking<I>>,
    qrels: &BTreeMap<Q, Grades<I>>,
    metrics: &[Metric],
) -> Vec<Evaluated<Q>> {
    let value = |metric: &Metric, query: &Q, grades: &Grades<I>| match rankings.get(query) {
        Some(ranking) => metric.of(ranking, grades),
        None => 0.0,
    };
    metrics
        .iter()
        .map(|metric| {
            let per_query: BTreeMap<Q, f64> =
                qrels.iter().map(|(query, grades)| (query.clone(), value(metric, query, grades))).collect();
            Evaluated { metric: *metric, mean: mean(per_query.values().copied()), per_query }
        })
        .collect()
}

fn mean(values: impl ExactSizeIterator<Item = f64>) -> f64 {
    let count = values.len();
    if count == 0 { 0.0 } else { values.sum::<f64>() / count as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_judged_queries_count_and_one_without_results_scores_zero() {
        let qrels = BTreeMap::from([("found", Grades::from([(1, 1)])), ("empty", Grades::from([(1, 1)]))]);
        let ranking = Ranking::from_ranks([(1, 1)]);
        let rankings = BTreeMap::from([("found", ranking.clone()), ("unjudged", ranking)]);
        let all = evaluate(&rankings, &qrels, &[Metric::Ndcg(10), Metric::Map]);
        assert_eq!(all[0].per_query, BTreeMap::from([("found", 1.0), ("empty", 0.0)]));
        assert_eq!((all[0].mean, all[1].mean), (0.5, 0.5));
    }

    #[test]
    fn nothing_judged_is_zero_and_not_a_division() {
        let all = evaluate::<&str, i64>(&BTreeMap::new(), &BTreeMap::new(), &[Metric::Map]);
        assert_eq!(all[0].mean, 0.0);
    }
}
