// SPDX-License-Identifier: PostgreSQL

//! The fixture that trec_eval's own code judged after ties were broken by our rule; `eval/oracle/ties.py` made it.

use super::measure::{Judged, measure};
use super::order::{Found, Unit};
use crate::metrics::Grades;
use crate::rank::trace::Stage;
use serde::Deserialize;
use std::collections::BTreeMap;

#[derive(Deserialize)]
struct Case {
    question: String,
    unit: String,
    found: Vec<(i64, i64, f64)>,
    grades: BTreeMap<String, i32>,
    expected: BTreeMap<String, f64>,
    raw: f64,
}

fn cases() -> Vec<Case> {
    serde_json::from_str(include_str!("../../../../eval/oracle/ties.json")).expect("the fixture is JSON")
}

/// The values of the final ranking, by metric.
fn measured(case: &Case) -> BTreeMap<String, f64> {
    let grades: Grades<i64> = case.grades.iter().map(|(id, g)| (id.parse().expect("a number"), *g)).collect();
    let unit = if case.unit == "document" { Unit::Document } else { Unit::Chunk };
    let found = |(chunk, document, score): &(i64, i64, f64)| Found {
        chunk: *chunk,
        document: *document,
        key: i128::from(*chunk).to_be_bytes(),
        score: *score,
    };
    let mut stages = BTreeMap::from([(Stage::TopK, case.found.iter().map(found).collect())]);
    let judged = Judged { unit, grades, gold: Vec::new() };
    measure(&case.question, &judged, &mut stages).into_iter().map(|v| (v.metric, v.value)).collect()
}

#[test]
fn every_value_of_300_rankings_with_ties_is_that_of_trec_eval() {
    let cases = cases();
    assert_eq!(cases.len(), 300);
    assert!(cases.iter().any(|c| c.found.is_empty()) && cases.iter().any(|c| c.grades.values().all(|g| *g < 1)));
    let mut compared = 0;
    for case in &cases {
        let values = measured(case);
        for (metric, expected) in &case.expected {
            let value = values[metric];
            assert!((value - expected).abs() < 6e-7, "{metric} of {}: {value} is not {expected}", case.question);
            compared += 1;
        }
    }
    assert_eq!(compared, 300 * 14);
}

/// What trec_eval says when it breaks the ties itself, by the spelling of ids, is another number: the rule matters.
#[test]
fn without_the_rule_trec_eval_says_something_else() {
    let differs = |case: &&Case| (measured(case)["nDCG@10"] - case.raw).abs() > 1e-3;
    let different = cases().iter().filter(differs).count();
    assert!(different > 60, "{different} of 300");
}
