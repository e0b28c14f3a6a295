// SPDX-License-Identifier: PostgreSQL

//! The search over segments returns what scoring every document returns, to the last bit.

mod support;

use proptest::prelude::*;
use rag_core::Error;
use rag_core::lexical::bm25::{Scorer, Statistics};
use rag_core::lexical::maxscore::{self, Query, QueryTerm};
use rag_core::lexical::topk::Hit;
use std::collections::BTreeSet;
use support::{Random, Shape, population};

fn shapes() -> impl Strategy<Value = Shape> {
    let sizes = prop_oneof![3 => 1..60usize, 2 => 500..5000usize];
    let dead = prop_oneof![Just(0.0), Just(0.1), Just(0.9)];
    (any::<u64>(), sizes, prop_oneof![Just(4u32), Just(300)], 1..5usize, any::<bool>(), dead, any::<bool>()).prop_map(
        |(seed, documents, vocabulary, segments, contiguous, dead, ties)| Shape {
            seed,
            documents,
            vocabulary,
            segments,
            contiguous,
            dead,
            ties,
        },
    )
}

/// Distinct terms, among them ones that nobody has; most of weight 1.
fn terms(random: &mut Random, vocabulary: u32) -> Vec<(u32, f64)> {
    let mut out: Vec<(u32, f64)> = Vec::new();
    for _ in 0..1 + random.below(6) {
        let term = random.zipf(vocabulary + 2);
        let weight = if random.chance(0.7) { 1.0 } else { 0.1 + random.unit() * 3.0 };
        if out.iter().all(|(t, _)| *t != term) {
            out.push((term, weight));
        }
    }
    out
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn the_best_are_those_of_the_oracle(shape in shapes()) {
        let population = population(shape);
        let mut random = Random(!shape.seed);
        for k in [1, 3, 10, 100, shape.documents + 5] {
            let terms = terms(&mut random, shape.vocabulary);
            let share = [1.0, 0.5, 0.01][random.below(3) as usize];
            let allow: BTreeSet<i64> =
                population.alive().iter().filter(|_| random.chance(share)).map(|d| d.id).collect();
            let allow = (share < 1.0).then_some(&allow);
            let found = population.search(&terms, &population.query(&terms, k), allow);
            let mut right = population.oracle(&terms, allow);
            right.truncate(k);
            prop_assert_eq!(found, right, "terms {:?}, k {}", terms, k);
        }
    }

    #[test]
    fn going_on_misses_and_repeats_nothing(shape in shapes()) {
        let population = population(Shape { documents: shape.documents.min(900), ..shape });
        let mut random = Random(!shape.seed);
        let terms = terms(&mut random, shape.vocabulary);
        let mut query = population.query(&terms, 1 + random.below(60) as usize);
        let mut found = Vec::new();
        loop {
            let step = population.search(&terms, &query, None);
            let Some((id, score)) = step.last().copied() else { break };
            query.after = Some(Hit { id, score: f64::from_bits(score) });
            query.k *= 2;
            found.extend(step);
        }
        prop_assert_eq!(found, population.oracle(&terms, None));
    }
}

/// The exhaustive scorer of the leg and the search agree about the same documents.
#[test]
fn the_search_agrees_with_the_scorer_over_forward_data() {
    let shape =
        Shape { seed: 7, documents: 700, vocabulary: 60, segments: 2, contiguous: false, dead: 0.0, ties: false };
    let population = population(shape);
    let terms = [(0, 1.0), (3, 1.0), (17, 1.0)];
    let mut scorer = Scorer::new(&terms.map(|(t, _)| t.to_string()));
    for document in population.alive() {
        let mut wire = (document.terms.len() as u32).to_be_bytes().to_vec();
        for (term, tf) in &document.terms {
            wire.extend(term.to_string().as_bytes());
            wire.push(0);
            wire.extend((*tf as u16).to_be_bytes());
            (0..*tf).for_each(|_| wire.extend([0, 1]));
        }
        scorer.add(document.id, document.dl, &wire, true).expect("well formed");
    }
    let query = population.query(&terms, 50);
    let right = scorer.finish(query.population, &[]).into_iter().take(50).map(|s| (s.id, s.score.to_bits()));
    assert_eq!(population.search(&terms, &query, None), right.collect::<Vec<_>>());
}

#[test]
fn what_a_query_may_not_have_is_an_error() {
    let query = |weight| Query {
        terms: vec![QueryTerm { df: 1, weight }],
        population: Statistics { documents: 1, total_dl: 1 },
        k: 1,
        after: None,
    };
    for weight in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert!(maxscore::search(&query(weight), &[], &mut || Ok(())).is_err(), "{weight}");
    }
    let many = Query { terms: vec![QueryTerm { df: 1, weight: 1.0 }; 1025], ..query(1.0) };
    assert!(maxscore::search(&many, &[], &mut || Ok(())).is_err());
}

#[test]
fn an_interrupt_ends_the_search() {
    let shape =
        Shape { seed: 3, documents: 9000, vocabulary: 4, segments: 1, contiguous: true, dead: 0.0, ties: false };
    let population = population(shape);
    let part = &population.parts[0];
    let list = &part.lists[&0];
    let segment = maxscore::Segment {
        lists: vec![Some(maxscore::List { directory: &list.directory, pages: list })],
        ids: &part.ids,
        keys: None,
        dead: None,
        allow: None,
    };
    let mut calls = 0;
    let mut stop = || {
        calls += 1;
        if calls > 2 { Err(Error::internal("stop")) } else { Ok(()) }
    };
    let error = maxscore::search(&population.query(&[(0, 1.0)], 5), &[segment], &mut stop);
    assert_eq!(error.expect_err("stopped").message, "stop");
}
