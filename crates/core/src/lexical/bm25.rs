// SPDX-License-Identifier: PostgreSQL

//! BM25, exact.
//!
//! Owns the formula and an exhaustive scorer over forward data. The exhaustive scorer is the leg of today and the
//! oracle of any faster one; it must stay simple enough to be checked by eye.

use crate::error::Result;
use crate::lexical::tsvector;
use std::collections::HashMap;

/// Term frequency saturation.
pub const K1: f64 = 1.2;
/// Strength of length normalisation.
pub const B: f64 = 0.75;

/// Inverse document frequency in Lucene's form, never negative: ln(1 + (N − df + 0.5) / (df + 0.5)).
///
/// Source: Robertson and Zaragoza, "The Probabilistic Relevance Framework", 2009, §3.4.3, with Lucene's 1 + inside the
/// logarithm.
pub fn idf(documents: u64, df: u64) -> f64 {
    let (n, df) = (documents as f64, df as f64);
    (1.0 + (n - df + 0.5) / (df + 0.5)).ln()
}

/// The weight of one term in one document: tf·(k1 + 1) / (tf + k1·(1 − b + b·dl/avgdl)), without idf.
pub fn saturation(tf: u32, dl: u32, average_dl: f64) -> f64 {
    saturate(tf, length_norm(dl, average_dl))
}

/// The part of the formula that depends on the document alone: k1·(1 − b + b·dl/avgdl).
pub fn length_norm(dl: u32, average_dl: f64) -> f64 {
    let length = if average_dl > 0.0 { f64::from(dl) / average_dl } else { 1.0 };
    K1 * (1.0 - B + B * length)
}

fn saturate(tf: u32, norm: f64) -> f64 {
    let tf = f64::from(tf);
    tf * (K1 + 1.0) / (tf + norm)
}

/// [`saturation`] for many documents of one population, to the same bit: the norms of usual lengths are made once.
#[derive(Debug, Clone)]
pub struct Saturation {
    average_dl: f64,
    norms: Vec<f64>,
}

impl Saturation {
    /// For a population with this mean length.
    pub fn new(average_dl: f64) -> Self {
        Self { average_dl, norms: (0..1024).map(|dl| length_norm(dl, average_dl)).collect() }
    }

    /// [`saturation`] of one posting.
    pub fn of(&self, tf: u32, dl: u32) -> f64 {
        saturate(tf, self.norm(dl))
    }

    /// [`length_norm`] of one document.
    pub fn norm(&self, dl: u32) -> f64 {
        self.norms.get(dl as usize).copied().unwrap_or_else(|| length_norm(dl, self.average_dl))
    }
}

/// One scored document.
#[derive(Debug, Clone, PartialEq)]
pub struct Scored {
    /// Its id.
    pub id: i64,
    /// Its BM25 score.
    pub score: f64,
    /// Its term frequencies, in the order of the query's terms.
    pub tfs: Vec<u32>,
    /// Its length in lexemes.
    pub dl: u32,
}

/// Statistics of the searched population.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Statistics {
    /// Number of documents, N.
    pub documents: u64,
    /// Sum of their lengths in lexemes.
    pub total_dl: u64,
}

impl Statistics {
    /// Mean length.
    pub fn average_dl(&self) -> f64 {
        if self.documents == 0 { 0.0 } else { self.total_dl as f64 / self.documents as f64 }
    }
}

/// Scores every document that has at least one term of a query.
///
/// Every matching document of the population must be added, eligible or not, because together they give df; only
/// eligible ones come back.
#[derive(Debug)]
pub struct Scorer {
    terms: HashMap<Vec<u8>, usize>,
    df: Vec<u64>,
    matches: Vec<Scored>,
}

impl Scorer {
    /// A scorer for the distinct `terms` of a query.
    pub fn new<S: AsRef<str>>(terms: &[S]) -> Self {
        let mut distinct = HashMap::new();
        for term in terms {
            let next = distinct.len();
            distinct.entry(term.as_ref().as_bytes().to_vec()).or_insert(next);
        }
        let df = vec![0; distinct.len()];
        Self { terms: distinct, df, matches: Vec::new() }
    }

    /// Adds one document: its id, length and `tsvector` in wire form.
    pub fn add(&mut self, id: i64, dl: u32, wire: &[u8], eligible: bool) -> Result<()> {
        let mut tfs = vec![0; self.df.len()];
        tsvector::for_each(wire, |lexeme, tf| {
            if let Some(at) = self.terms.get(lexeme) {
                tfs[*at] = tf;
            }
        })?;
        for (df, tf) in self.df.iter_mut().zip(&tfs) {
            *df += u64::from(*tf > 0);
        }
        if eligible && tfs.iter().any(|tf| *tf > 0) {
            self.matches.push(Scored { id, score: 0.0, tfs, dl });
        }
        Ok(())
    }

    /// For each distinct term the number of documents that have it.
    pub fn dfs(&self) -> &[u64] {
        &self.df
    }

    /// All eligible matches, best first; equal scores by id, lowest first. A term counts as often as its weight says; one
    /// without a weight counts once.
    pub fn finish(self, population: Statistics, weights: &[f64]) -> Vec<Scored> {
        // A population counted a moment before its members were read may be smaller than a df.
        let documents = population.documents.max(self.df.iter().copied().max().unwrap_or(0));
        let weights = weights.iter().copied().chain(std::iter::repeat(1.0));
        let idfs: Vec<f64> = self.df.iter().zip(weights).map(|(df, weight)| weight * idf(documents, *df)).collect();
        let average_dl = population.average_dl();
        let mut scored = self.matches;
        for document in &mut scored {
            document.score = (document.tfs.iter().zip(&idfs))
                .map(|(tf, idf)| if *tf == 0 { 0.0 } else { idf * saturation(*tf, document.dl, average_dl) })
                .sum();
        }
        scored.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.id.cmp(&b.id)));
        scored
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wire(terms: &[(&str, u16)]) -> Vec<u8> {
        let mut out = (terms.len() as u32).to_be_bytes().to_vec();
        for (term, tf) in terms {
            out.extend(term.as_bytes());
            out.push(0);
            out.extend(tf.to_be_bytes());
            (1..=*tf).for_each(|p| out.extend(p.to_be_bytes()));
        }
        out
    }

    /// The corpus and the scores of an independent implementation (bm25s 0.3, method lucene, k1 1.2, b 0.75), query
    /// "cat fish", times k1 + 1, which bm25s leaves out; see eval/oracle/bm25.py.
    #[test]
    fn scores_equal_an_independent_implementation() {
        let corpus: [&[(&str, u16)]; 4] = [
            &[("cat", 2), ("feline", 1), ("purr", 1)],
            &[("best", 1), ("dog", 1), ("friend", 1), ("human", 1), ("play", 1)],
            &[("bird", 1), ("fly", 1)],
            &[("cat", 1), ("fish", 2), ("swim", 1), ("water", 1), ("live", 1), ("purr", 1)],
        ];
        let mut scorer = Scorer::new(&["cat", "fish", "cat"]);
        let mut population = Statistics::default();
        for (id, document) in corpus.iter().enumerate() {
            let dl = document.iter().map(|(_, tf)| u32::from(*tf)).sum();
            population.documents += 1;
            population.total_dl += u64::from(dl);
            scorer.add(id as i64, dl, &wire(document), true).expect("well formed");
        }
        let found: Vec<(i64, f64)> = scorer.finish(population, &[]).into_iter().map(|s| (s.id, s.score)).collect();
        assert_eq!(found.iter().map(|f| f.0).collect::<Vec<_>>(), vec![3, 0]);
        for ((_, score), right) in found.iter().zip([EXPECTED_3, EXPECTED_0]) {
            assert!((score - right).abs() < 1e-5, "{score} is not {right}");
        }
    }

    const EXPECTED_3: f64 = 1.996538;
    const EXPECTED_0: f64 = 0.983822;

    #[test]
    fn ineligible_documents_count_for_df_only() {
        let mut scorer = Scorer::new(&["a"]);
        let w = wire(&[("a", 1)]);
        scorer.add(1, 1, &w, true).expect("well formed");
        scorer.add(2, 1, &w, false).expect("well formed");
        let found = scorer.finish(Statistics { documents: 3, total_dl: 3 }, &[]);
        assert_eq!(found.len(), 1);
        assert!((found[0].score - idf(3, 2) * 1.0).abs() < 1e-12);
    }

    #[test]
    fn a_term_counts_as_often_as_the_query_has_it() {
        let score = |weights: &[f64]| {
            let mut scorer = Scorer::new(&["a", "b"]);
            scorer.add(1, 2, &wire(&[("a", 1), ("b", 1)]), true).expect("well formed");
            scorer.finish(Statistics { documents: 3, total_dl: 6 }, weights)[0].score
        };
        assert!((score(&[2.0]) - score(&[]) * 1.5).abs() < 1e-12);
        assert!((score(&[1.0, 3.0]) - score(&[]) * 2.0).abs() < 1e-12);
    }

    #[test]
    fn ties_break_by_id() {
        let mut scorer = Scorer::new(&["a"]);
        let w = wire(&[("a", 1)]);
        for id in [5, 3, 4] {
            scorer.add(id, 1, &w, true).expect("well formed");
        }
        let ids: Vec<i64> = scorer.finish(Statistics { documents: 3, total_dl: 3 }, &[]).iter().map(|s| s.id).collect();
        assert_eq!(ids, vec![3, 4, 5]);
    }
}
