// SPDX-License-Identifier: PostgreSQL

//! What is measured of one question, at which stage.
//!
//! Owns the judged form of a question (items with grades), the list of metrics, and their names. The final ranking gets the
//! metrics that people quote; every stage before it gets its recall, because what a leg did not find no later stage can bring
//! back. Depths are those asked for and not those of the lists: a list that ends early has found nothing more.

use super::order::{Found, Unit, break_ties, ranking};
use crate::metrics::{Grades, Metric, Ranking};
use crate::rank::trace::Stage;
use std::collections::{BTreeMap, BTreeSet};

/// Metrics of the final ranking.
const FINAL: &[Metric] = &[
    Metric::Ndcg(5),
    Metric::Ndcg(10),
    Metric::Mrr(10),
    Metric::Map,
    Metric::Recall(1),
    Metric::Recall(5),
    Metric::Recall(10),
    Metric::Recall(20),
    Metric::Recall(50),
    Metric::Recall(100),
    Metric::Success(1),
    Metric::Success(5),
    Metric::Success(10),
    Metric::Precision(10),
    Metric::Unjudged(10),
];

/// Metrics of a stage before the final ranking.
const CANDIDATES: &[Metric] =
    &[Metric::Recall(5), Metric::Recall(10), Metric::Recall(20), Metric::Recall(50), Metric::Recall(100)];

/// Depths at which the share of gold that was reached is told.
const REACHED: &[usize] = &[5, 10, 20];

/// What is relevant to one question, as items of a ranking.
#[derive(Debug, Clone, PartialEq)]
pub struct Judged {
    /// What its items are.
    pub unit: Unit,
    /// Items with their grades.
    pub grades: Grades<i64>,
    /// The items of each relevant gold.
    pub gold: Vec<Vec<i64>>,
}

impl Judged {
    /// Of gold that was resolved: whether it is a whole document, its grade, its document and its passages. An item that
    /// several have gets the best of their grades.
    pub fn new(resolved: &[Resolved]) -> Self {
        let relevant = || resolved.iter().filter(|r| r.grade >= 1);
        let unit = match relevant().any(|r| r.whole) || (relevant().count() == 0 && resolved.iter().all(|r| r.whole)) {
            true => Unit::Document,
            false => Unit::Chunk,
        };
        let items = |r: &Resolved| match unit {
            Unit::Document => vec![r.document],
            Unit::Chunk => r.chunks.clone(),
        };
        let mut grades = Grades::new();
        for one in resolved {
            for item in items(one) {
                grades.entry(item).and_modify(|grade| *grade = one.grade.max(*grade)).or_insert(one.grade);
            }
        }
        Self { unit, grades, gold: relevant().map(items).collect() }
    }

    /// The share of relevant gold of which an item is among the first `k`.
    fn reached(&self, ranking: &Ranking<i64>, k: usize) -> f64 {
        let top: BTreeSet<i64> = ranking.top(k).iter().copied().collect();
        let reached = self.gold.iter().filter(|items| items.iter().any(|item| top.contains(item))).count();
        if self.gold.is_empty() { 0.0 } else { reached as f64 / self.gold.len() as f64 }
    }
}

/// One gold with the passages it was found in.
#[derive(Debug, Clone, PartialEq)]
pub struct Resolved {
    /// Whether it names the whole document.
    pub whole: bool,
    /// Its grade.
    pub grade: i32,
    /// The document.
    pub document: i64,
    /// The passages.
    pub chunks: Vec<i64>,
}

/// One number.
#[derive(Debug, Clone, PartialEq)]
pub struct Value {
    /// The stage it is of.
    pub stage: Stage,
    /// Its metric, as `nDCG@10`; `gold@k` is the share of gold that the first `k` results reach, however it was cut.
    pub metric: String,
    /// The number.
    pub value: f64,
}

/// Measures one question. `stages` are the lists of the stages, best first; [`Stage::TopK`] is the final one. Their ties are
/// broken here, in place, so what is stored afterwards is what was measured.
pub fn measure(question: &str, judged: &Judged, stages: &mut BTreeMap<Stage, Vec<Found>>) -> Vec<Value> {
    let mut values = Vec::new();
    for (stage, found) in stages {
        break_ties(question, found);
        let ranking = ranking(judged.unit, found);
        let metric = |m: &Metric| Value { stage: *stage, metric: m.to_string(), value: m.of(&ranking, &judged.grades) };
        values.extend(metrics(*stage).iter().map(metric));
        let reached =
            |k: &usize| Value { stage: *stage, metric: format!("gold@{k}"), value: judged.reached(&ranking, *k) };
        values.extend(REACHED.iter().map(reached));
    }
    values
}

/// The names of the metrics that a stage gets, in their order. Those of [`Stage::TopK`] are what a comparison may ask for.
pub fn names(stage: Stage) -> Vec<String> {
    let reached = REACHED.iter().map(|k| format!("gold@{k}"));
    metrics(stage).iter().map(Metric::to_string).chain(reached).collect()
}

fn metrics(stage: Stage) -> &'static [Metric] {
    if stage == Stage::TopK { FINAL } else { CANDIDATES }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(chunk: i64, score: f64) -> Found {
        Found { chunk, document: chunk / 10, key: [chunk as u8; 16], score }
    }

    fn span(grade: i32, chunks: &[i64]) -> Resolved {
        Resolved { whole: false, grade, document: chunks[0] / 10, chunks: chunks.to_vec() }
    }

    fn value(values: &[Value], stage: Stage, metric: &str) -> f64 {
        values.iter().find(|v| v.stage == stage && v.metric == metric).map(|v| v.value).expect(metric)
    }

    #[test]
    fn passages_of_a_span_are_items_and_the_span_is_one_gold() {
        let judged = Judged::new(&[span(2, &[11, 12]), span(1, &[12, 31]), span(0, &[41])]);
        assert_eq!(judged.unit, Unit::Chunk);
        assert_eq!(judged.grades, Grades::from([(11, 2), (12, 2), (31, 1), (41, 0)]));
        let mut stages = BTreeMap::from([
            (Stage::Dense, vec![found(41, 0.9), found(31, 0.8)]),
            (Stage::TopK, vec![found(12, 3.0), found(41, 2.0)]),
        ]);
        let values = measure("q", &judged, &mut stages);
        assert_eq!(value(&values, Stage::TopK, "Recall@5"), 1.0 / 3.0);
        assert_eq!(value(&values, Stage::TopK, "gold@5"), 1.0, "one passage reaches both spans");
        assert_eq!(value(&values, Stage::TopK, "success@1"), 1.0);
        assert_eq!(value(&values, Stage::TopK, "unjudged@10"), 0.0);
        assert_eq!(value(&values, Stage::Dense, "Recall@100"), 1.0 / 3.0);
        assert_eq!(value(&values, Stage::Dense, "gold@5"), 0.5);
        assert!(!values.iter().any(|v| v.stage == Stage::Dense && v.metric == "MAP"));
    }

    #[test]
    fn whole_documents_are_pooled() {
        let whole = |document, grade| Resolved { whole: true, grade, document, chunks: vec![document * 10] };
        let judged = Judged::new(&[whole(1, 1), whole(4, 0), span(0, &[51])]);
        assert_eq!((judged.unit, judged.grades.clone()), (Unit::Document, Grades::from([(1, 1), (4, 0), (5, 0)])));
        let mut stages =
            BTreeMap::from([(Stage::TopK, vec![found(21, 4.0), found(22, 3.0), found(13, 2.0), found(14, 1.0)])]);
        let values = measure("q", &judged, &mut stages);
        assert_eq!(value(&values, Stage::TopK, "MRR@10"), 0.5, "two passages of one document are one result");
    }

    #[test]
    fn nothing_found_is_zero_everywhere() {
        let judged = Judged::new(&[span(1, &[11])]);
        let mut stages = BTreeMap::from([(Stage::TopK, Vec::new())]);
        assert!(measure("q", &judged, &mut stages).iter().all(|v| v.value == 0.0));
        assert_eq!(names(Stage::TopK).len(), FINAL.len() + REACHED.len());
    }
}
