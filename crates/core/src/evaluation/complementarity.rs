// SPDX-License-Identifier: PostgreSQL

//! What one leg finds that the other does not.
//!
//! Fusion can only help where the legs find different gold; where one leg finds all that the other does, a weight of 0 for the
//! other is as good.

use super::measure::Judged;
use super::order::{Found, ranking};
use std::collections::BTreeSet;

/// Relevant items of all questions by which leg has them within its first `k`, and how alike the lists are.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Complementarity {
    /// Questions.
    pub questions: u64,
    /// In the first list alone.
    pub only_first: u64,
    /// In the second alone.
    pub only_second: u64,
    /// In both.
    pub both: u64,
    /// In neither.
    pub neither: u64,
    /// Jaccard index of the two lists' items, summed over questions; two empty lists are alike.
    jaccard: f64,
}

impl Complementarity {
    /// Adds one question, with both lists in their order.
    pub fn add(&mut self, judged: &Judged, first: &[Found], second: &[Found], k: usize) {
        let top = |found: &[Found]| -> BTreeSet<i64> { ranking(judged.unit, found).top(k).iter().copied().collect() };
        let (first, second) = (top(first), top(second));
        for item in judged.grades.iter().filter(|(_, grade)| **grade >= 1).map(|(item, _)| item) {
            match (first.contains(item), second.contains(item)) {
                (true, true) => self.both += 1,
                (true, false) => self.only_first += 1,
                (false, true) => self.only_second += 1,
                (false, false) => self.neither += 1,
            }
        }
        let shared = first.intersection(&second).count();
        let all = first.union(&second).count();
        self.jaccard += if all == 0 { 1.0 } else { shared as f64 / all as f64 };
        self.questions += 1;
    }

    /// Mean Jaccard index of the lists.
    pub fn jaccard(&self) -> f64 {
        if self.questions == 0 { 0.0 } else { self.jaccard / self.questions as f64 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evaluation::order::Unit;
    use crate::metrics::Grades;

    #[test]
    fn each_item_is_counted_once() {
        let found = |chunk| Found { chunk, document: 0, key: [0; 16], score: 1.0 };
        let list = |ids: &[i64]| ids.iter().map(|id| found(*id)).collect::<Vec<_>>();
        let grades = Grades::from([(1, 1), (2, 2), (3, 1), (4, 1), (9, 0)]);
        let judged = Judged { unit: Unit::Chunk, grades, gold: Vec::new() };
        let mut all = Complementarity::default();
        all.add(&judged, &list(&[1, 2, 9, 4]), &list(&[2, 3, 9]), 3);
        assert_eq!((all.only_first, all.only_second, all.both, all.neither), (1, 1, 1, 1));
        assert_eq!(all.jaccard(), 2.0 / 4.0);
        all.add(&judged, &[], &[], 3);
        assert_eq!((all.neither, all.jaccard()), (5, 0.75));
    }
}
