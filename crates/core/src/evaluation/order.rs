// SPDX-License-Identifier: PostgreSQL

//! The order of what scored the same, and of passages when documents are asked for.
//!
//! Ties are many: reciprocal rank fusion gives rank 3 of one leg and rank 3 of the other the same score. A search orders
//! them by chunk id. For measuring they are ordered by the SHA-256 of the question's key and the passage's permanent key,
//! which is the same on each repeat and knows nothing of ids, ingestion or gold. (trec_eval orders by the spelling of
//! document ids, highest first, and so does not measure what anybody saw.)

use crate::metrics::Ranking;
use sha2::{Digest, Sha256};

/// One passage of a ranked list.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Found {
    /// The passage.
    pub chunk: i64,
    /// The document it is of.
    pub document: i64,
    /// Its permanent key.
    pub key: [u8; 16],
    /// Its score; higher is better.
    pub score: f64,
}

/// What is counted as one result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// A passage.
    Chunk,
    /// A document, at the place of its best passage.
    Document,
}

/// Breaks ties: highest score first, equal scores by hash.
pub fn break_ties(question: &str, found: &mut [Found]) {
    let hash = |f: &Found| -> [u8; 32] {
        Sha256::new().chain_update(question.as_bytes()).chain_update([0]).chain_update(f.key).finalize().into()
    };
    found.sort_by(|a, b| b.score.total_cmp(&a.score));
    for tied in found.chunk_by_mut(|a, b| a.score == b.score) {
        if tied.len() > 1 {
            tied.sort_by_cached_key(hash);
        }
    }
}

/// The ranking of a list whose ties are broken.
pub fn ranking(unit: Unit, found: &[Found]) -> Ranking<i64> {
    let item = |f: &Found| match unit {
        Unit::Chunk => f.chunk,
        Unit::Document => f.document,
    };
    Ranking::from_ranks((1..).zip(found.iter().map(item)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::{Grades, Metric};
    use proptest::prelude::*;

    fn key(n: u64) -> [u8; 16] {
        let mut key = [0; 16];
        key[..8].copy_from_slice(&n.to_le_bytes());
        key
    }

    fn found(chunk: i64, score: f64) -> Found {
        Found { chunk, document: chunk / 10, key: key(chunk as u64 * 7919), score }
    }

    #[test]
    fn documents_stand_where_their_best_passage_does() {
        let list = [found(11, 3.0), found(25, 2.0), found(12, 1.0), found(31, 0.5)];
        assert_eq!(ranking(Unit::Document, &list).ids(), [1, 2, 3]);
        assert_eq!(ranking(Unit::Chunk, &list).ids(), [11, 25, 12, 31]);
    }

    #[test]
    fn the_order_of_ties_depends_on_the_question() {
        let orders: std::collections::BTreeSet<Vec<i64>> = (0..20)
            .map(|q| {
                let mut list: Vec<Found> = (0..6).map(|n| found(n, 1.0)).collect();
                break_ties(&format!("q{q}"), &mut list);
                list.iter().map(|f| f.chunk).collect()
            })
            .collect();
        assert!(orders.len() > 15, "{orders:?}");
    }

    /// Gold that was ingested first wins every tie that ids break, which is the win that ids fake.
    #[test]
    fn gold_that_came_first_gains_nothing() {
        let questions = 2000;
        let (mut by_id, mut by_hash) = (0.0, 0.0);
        for question in 0..questions {
            let mut list: Vec<Found> = (1..=10).map(|n| found(n, 1.0)).collect();
            let grades = Grades::from([(1i64, 1)]);
            by_id += Metric::Mrr(10).of(&ranking(Unit::Chunk, &list), &grades);
            break_ties(&question.to_string(), &mut list);
            by_hash += Metric::Mrr(10).of(&ranking(Unit::Chunk, &list), &grades);
        }
        let questions = f64::from(questions);
        assert_eq!(by_id / questions, 1.0);
        // The mean of 1/1 … 1/10, if each place is as likely.
        let fair = (1..=10).map(|n| 1.0 / f64::from(n)).sum::<f64>() / 10.0;
        assert!((by_hash / questions - fair).abs() < 0.02, "{} is not {fair}", by_hash / questions);
    }

    proptest! {
        #[test]
        fn no_numbering_of_chunks_changes_the_order(scores in proptest::collection::vec(0u8..4, 1..30), shift in 1i64..1000) {
            let list = |id: &dyn Fn(usize) -> i64| -> Vec<u64> {
                let mut list: Vec<Found> = scores.iter().enumerate().map(|(n, score)| {
                    Found { chunk: id(n), document: 0, key: key(n as u64), score: f64::from(*score) }
                }).collect();
                list.sort_by_key(|f| f.chunk);
                break_ties("q", &mut list);
                list.iter().map(|f| u64::from_le_bytes(f.key[..8].try_into().expect("8"))).collect()
            };
            prop_assert_eq!(list(&|n| n as i64), list(&|n| (n as i64 * 37 + shift) % 1009));
        }
    }
}
