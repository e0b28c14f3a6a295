// SPDX-License-Identifier: PostgreSQL

//! The fixture that trec_eval's own code judged; `eval/oracle/metrics.py` made it.

use super::{Grades, Metric, Ranking, evaluate};
use serde::Deserialize;
use std::collections::BTreeMap;

type Values = BTreeMap<String, f64>;

#[derive(Deserialize)]
struct Fixture {
    qrels: BTreeMap<String, Grades<String>>,
    run: BTreeMap<String, Vec<(String, f64)>>,
    mean: Values,
    expected: BTreeMap<String, Values>,
}

#[test]
fn every_value_is_that_of_trec_eval_to_six_decimals() {
    let text = include_str!("../../../../eval/oracle/metrics.json");
    let fixture: Fixture = serde_json::from_str(text).expect("the fixture is JSON");
    let rankings: BTreeMap<String, Ranking<String>> =
        fixture.run.into_iter().map(|(query, results)| (query, Ranking::from_scores(results))).collect();
    let metrics: Vec<Metric> = fixture.mean.keys().map(|m| m.parse().expect("a known metric")).collect();
    assert!(metrics.len() > 30 && fixture.expected.len() > 20, "the fixture lost its content");
    for evaluated in evaluate(&rankings, &fixture.qrels, &metrics) {
        let name = evaluated.metric.to_string();
        assert!((evaluated.mean - fixture.mean[&name]).abs() < 6e-7, "{name}: {}", evaluated.mean);
        for (query, value) in &evaluated.per_query {
            let expected = fixture.expected[query][&name];
            assert!((value - expected).abs() < 6e-7, "{name} of {query}: {value} is not {expected}");
        }
    }
}
