// SPDX-License-Identifier: PostgreSQL

//! The impact frontier: what bounds the score of postings that nobody has decoded.
//!
//! Owns the set of (tf, dl) pairs that no other posting of a block beats in both numbers. BM25 grows with tf and falls
//! with dl whatever idf and the mean length are, so the best score of the block is that of one of these pairs. A stored
//! maximum score would be shorter, but it is wrong as soon as the mean length changes, and pg_rag's N, df and mean length
//! are those of the snapshot. It must never be lower than the truth: pairs are merged upwards when there are too many.

use crate::error::Result;
use crate::lexical::bm25::Saturation;
use crate::lexical::varint::{self, Reader, corrupt};

/// The most pairs of one frontier.
pub const MAX_POINTS: usize = 6;

/// Pairs (tf, dl), both strictly ascending; never empty once read or built.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Frontier {
    len: u8,
    points: [(u32, u32); MAX_POINTS],
}

impl Frontier {
    /// The pairs, tf ascending.
    pub fn points(&self) -> &[(u32, u32)] {
        &self.points[..usize::from(self.len)]
    }

    /// The highest saturation (BM25 without idf) that a posting below this frontier can have.
    ///
    /// Not yet raised for rounding: see [`crate::lexical::maxscore`].
    pub fn bound(&self, saturation: &Saturation) -> f64 {
        self.points().iter().map(|(tf, dl)| saturation.of(*tf, *dl)).fold(0.0, f64::max)
    }

    /// Appends it: the number of pairs, then for each tf and dl as gaps to the pair before.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.push(self.len);
        let (mut last_tf, mut last_dl) = (0, 0);
        for (at, (tf, dl)) in self.points().iter().enumerate() {
            varint::write(out, u64::from(tf - last_tf - 1));
            varint::write(out, u64::from(dl - last_dl - u32::from(at > 0)));
            (last_tf, last_dl) = (*tf, *dl);
        }
    }

    /// Reads what [`Frontier::write`] wrote.
    pub fn read(reader: &mut Reader<'_>) -> Result<Self> {
        let len = reader.byte()?;
        if len == 0 || usize::from(len) > MAX_POINTS {
            return Err(corrupt("a frontier has no such number of points"));
        }
        let mut frontier = Self { len, ..Self::default() };
        let (mut last_tf, mut last_dl) = (0u32, 0u32);
        for at in 0..usize::from(len) {
            let tf = last_tf.checked_add(reader.u32()?).and_then(|tf| tf.checked_add(1));
            let dl = last_dl.checked_add(reader.u32()?).and_then(|dl| dl.checked_add(u32::from(at > 0)));
            let (Some(tf), Some(dl)) = (tf, dl) else { return Err(corrupt("a frontier is out of range")) };
            frontier.points[at] = (tf, dl);
            (last_tf, last_dl) = (tf, dl);
        }
        Ok(frontier)
    }
}

/// Collects a frontier.
#[derive(Debug, Default)]
pub struct FrontierBuilder {
    /// Pairs of which none beats another, tf ascending.
    points: Vec<(u32, u32)>,
}

impl FrontierBuilder {
    /// Takes one posting's term frequency and document length into account.
    pub fn add(&mut self, tf: u32, dl: u32) {
        if self.points.iter().any(|(t, d)| *t >= tf && *d <= dl) {
            return;
        }
        self.points.retain(|(t, d)| *t > tf || *d < dl);
        let at = self.points.partition_point(|(t, _)| *t < tf);
        self.points.insert(at, (tf, dl));
    }

    /// Takes all that is below another frontier into account.
    pub fn add_all(&mut self, other: &Frontier) {
        other.points().iter().for_each(|(tf, dl)| self.add(*tf, *dl));
    }

    /// The frontier of all that was added.
    pub fn finish(mut self) -> Frontier {
        while self.points.len() > MAX_POINTS {
            // The two that are most alike become one that beats both.
            let growth = |pair: &[(u32, u32)]| {
                f64::from(pair[1].0) / f64::from(pair[0].0)
                    * ((f64::from(pair[1].1) + 1.0) / (f64::from(pair[0].1) + 1.0))
            };
            let growths = self.points.windows(2).map(growth).enumerate();
            let Some((at, _)) = growths.min_by(|a, b| a.1.total_cmp(&b.1)) else { break };
            let (tf, _) = self.points.remove(at + 1);
            self.points[at].0 = tf;
        }
        let mut frontier = Frontier { len: self.points.len() as u8, ..Frontier::default() };
        frontier.points[..self.points.len()].copy_from_slice(&self.points);
        frontier
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lexical::bm25;
    use proptest::prelude::*;

    #[test]
    fn beaten_pairs_are_left_out() {
        let mut builder = FrontierBuilder::default();
        [(1, 10), (2, 10), (1, 5), (3, 40), (3, 41), (1, 5)].iter().for_each(|(tf, dl)| builder.add(*tf, *dl));
        assert_eq!(builder.finish().points(), [(1, 5), (2, 10), (3, 40)]);
    }

    proptest! {
        #[test]
        fn no_posting_scores_above_the_bound(
            postings in proptest::collection::vec((1..60u32, 0..900u32), 1..200),
            average in 0.5..800f64,
        ) {
            let mut builder = FrontierBuilder::default();
            postings.iter().for_each(|(tf, dl)| builder.add(*tf, *dl));
            let frontier = builder.finish();
            let bound = frontier.bound(&Saturation::new(average));
            for (tf, dl) in &postings {
                prop_assert!(bm25::saturation(*tf, *dl, average) <= bound * (1.0 + 1e-12));
            }
            let mut bytes = Vec::new();
            frontier.write(&mut bytes);
            prop_assert_eq!(Frontier::read(&mut Reader::new(&bytes)).expect("well formed"), frontier);
        }
    }
}
