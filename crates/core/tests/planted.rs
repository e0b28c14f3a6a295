// SPDX-License-Identifier: PostgreSQL

//! Faults that retrieval has had elsewhere, planted: a comparison of runs must see each of them, and see nothing where
//! nothing changed. Questions are invented: two legs that find the gold often, not always, and not at the same places.
#![allow(clippy::expect_used, clippy::panic)]

mod support;

use rag_core::evaluation::measure::{Judged, Resolved, measure};
use rag_core::evaluation::order::Found;
use rag_core::evaluation::significance::{Difference, Pair, compare};
use rag_core::rank::fuse::{Leg, rrf};
use rag_core::rank::trace::Stage;
use std::collections::{BTreeMap, HashMap};
use support::Random;

const QUESTIONS: usize = 150;

struct Question {
    name: String,
    dense: Vec<i64>,
    bm25: Vec<i64>,
    judged: Judged,
}

fn questions() -> Vec<Question> {
    let mut random = Random(20_261_202);
    (0..QUESTIONS)
        .map(|n| {
            let gold: Vec<i64> = (0..1 + random.below(3)).map(|g| 1000 + g as i64).collect();
            let mut leg = || {
                let mut list: Vec<i64> = (0..100).map(|_| random.below(400) as i64).collect();
                for id in &gold {
                    // Found in three of four cases, rather near the top.
                    let place = random.below(14) * random.below(14);
                    if random.below(4) > 0 {
                        list.insert((place as usize).min(list.len()), *id);
                    }
                }
                list
            };
            let (dense, bm25) = (leg(), leg());
            let resolved = |id: &i64| Resolved { whole: false, grade: 1, document: 1, chunks: vec![*id] };
            let judged = Judged::new(&gold.iter().map(resolved).collect::<Vec<_>>());
            Question { name: format!("question {n}"), dense, bm25, judged }
        })
        .collect()
}

type Ranked = Vec<(i64, f64)>;

fn fused(question: &Question) -> Ranked {
    let legs = [Leg::new("dense", 1.0, question.dense.clone()), Leg::new("bm25", 1.0, question.bm25.clone())];
    rrf(&legs, 60).into_iter().map(|f| (f.id, f.score)).collect()
}

/// nDCG@10 of each question, as a run has it.
fn values(questions: &[Question], rank: &dyn Fn(usize, &Question) -> Ranked) -> Vec<f64> {
    let value = |(n, question): (usize, &Question)| {
        let mut key = [0; 16];
        let found = rank(n, question).into_iter().map(|(chunk, score)| {
            key[..8].copy_from_slice(&chunk.to_be_bytes());
            Found { chunk, document: 1, key, score }
        });
        let mut stages = BTreeMap::from([(Stage::TopK, found.collect())]);
        let values = measure(&question.name, &question.judged, &mut stages);
        values.iter().find(|v| v.metric == "nDCG@10").expect("measured").value
    };
    questions.iter().enumerate().map(value).collect()
}

fn against(faulty: &dyn Fn(usize, &Question) -> Ranked) -> Difference {
    let questions = questions();
    let (right, wrong) = (values(&questions, &|_, q| fused(q)), values(&questions, faulty));
    let pair = |((first, second), q): ((f64, f64), &Question)| Pair { cluster: q.name.clone(), first, second };
    let pairs: Vec<Pair> = right.into_iter().zip(wrong).zip(&questions).map(pair).collect();
    compare(&pairs, &mut || Ok(())).expect("not interrupted").expect("questions")
}

fn caught(what: &str, faulty: &dyn Fn(usize, &Question) -> Ranked) {
    let told = against(faulty);
    assert!(told.difference < 0.0 && told.p_randomization < 0.01 && told.interval.1 < 0.0, "{what}: {told:?}");
    assert!(told.losses > told.wins, "{what}: {told:?}");
}

#[test]
fn a_sign_error_of_rrf_k_is_caught() {
    caught("1 / (rank - k)", &|_, question| {
        let mut scores: HashMap<i64, f64> = HashMap::new();
        for leg in [&question.dense, &question.bm25] {
            for (id, rank) in leg.iter().zip(1..) {
                *scores.entry(*id).or_default() += 1.0 / (f64::from(rank) - 60.5);
            }
        }
        let mut ranked: Ranked = scores.into_iter().collect();
        ranked.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        ranked
    });
}

#[test]
fn a_dropped_leg_is_caught() {
    caught("dense alone", &|_, question| {
        let legs = [Leg::new("dense", 1.0, question.dense.clone())];
        rrf(&legs, 60).into_iter().map(|f| (f.id, f.score)).collect()
    });
}

#[test]
fn a_rank_that_is_off_by_one_is_caught() {
    // The first of each leg is at rank 0 and passed over.
    caught("from the second on", &|_, question| {
        let rest = |leg: &[i64]| leg.iter().skip(1).copied().collect::<Vec<i64>>();
        let legs = [Leg::new("dense", 1.0, rest(&question.dense)), Leg::new("bm25", 1.0, rest(&question.bm25))];
        rrf(&legs, 60).into_iter().map(|f| (f.id, f.score)).collect()
    });
}

#[test]
fn queries_that_fail_in_silence_are_caught() {
    // One in twelve gives nothing. A mean over those that answered would not change.
    caught("no results", &|n, question| if n % 12 == 0 { Vec::new() } else { fused(question) });
}

#[test]
fn nothing_is_seen_where_nothing_changed() {
    let told = against(&|_, question| fused(question));
    assert_eq!((told.difference, told.p_randomization, told.wins, told.losses), (0.0, 1.0, 0, 0));
}
