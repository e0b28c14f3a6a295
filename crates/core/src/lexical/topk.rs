// SPDX-License-Identifier: PostgreSQL

//! The k best documents seen so far.
//!
//! Owns the order of results: score, highest first; equal scores by id, lowest first. That order is total, so no order
//! of visiting can change a result.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// One result.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Hit {
    /// The key of the chunk or document.
    pub id: i64,
    /// Its BM25 score.
    pub score: f64,
}

impl Hit {
    /// Less means better: the order of results.
    pub fn rank(&self, other: &Self) -> Ordering {
        other.score.total_cmp(&self.score).then(self.id.cmp(&other.id))
    }
}

/// A hit by its rank, so that a heap has the worst on top.
#[derive(Debug, PartialEq)]
struct Ranked(Hit);

impl Eq for Ranked {}

impl Ord for Ranked {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.rank(&other.0)
    }
}

impl PartialOrd for Ranked {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Keeps the best `k`.
#[derive(Debug)]
pub struct TopK {
    k: usize,
    after: Option<Hit>,
    heap: BinaryHeap<Ranked>,
}

impl TopK {
    /// For the best `k`, or the best `k` of those that rank behind `after`.
    pub fn new(k: usize, after: Option<Hit>) -> Self {
        Self { k, after, heap: BinaryHeap::with_capacity(k.min(1024)) }
    }

    /// What a score must not be below to have a chance; negative infinity while there is room.
    pub fn threshold(&self) -> f64 {
        match self.heap.peek() {
            Some(worst) if self.heap.len() >= self.k => worst.0.score,
            _ if self.k == 0 => f64::INFINITY,
            _ => f64::NEG_INFINITY,
        }
    }

    /// Takes a hit if it is among the best.
    pub fn push(&mut self, hit: Hit) {
        if self.after.is_some_and(|a| hit.rank(&a) != Ordering::Greater) {
            return;
        }
        if self.heap.len() < self.k {
            self.heap.push(Ranked(hit));
        } else if let Some(mut worst) = self.heap.peek_mut()
            && hit.rank(&worst.0) == Ordering::Less
        {
            *worst = Ranked(hit);
        }
    }

    /// The hits, best first.
    pub fn finish(self) -> Vec<Hit> {
        self.heap.into_sorted_vec().into_iter().map(|r| r.0).collect()
    }
}
