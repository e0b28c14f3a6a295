// SPDX-License-Identifier: PostgreSQL

//! Why a document has its BM25 score.
//!
//! Owns the parts of a score in the form in which they are shown. Their sum, in the order given, is the score to the last
//! bit, because it is the same sum as the search makes.

use crate::error::{Error, Result};
use crate::lexical::bm25;
use crate::lexical::maxscore::{Query, Weights};

/// A score, taken apart.
#[derive(Debug, Clone, PartialEq)]
pub struct Explanation {
    /// One part for each term of the query, in its order; those that the document lacks too.
    pub parts: Vec<Part>,
    /// Their contributions, summed in that order.
    pub score: f64,
    /// The document's length in lexemes.
    pub dl: u32,
    /// The population's mean length, 0 when it is empty.
    pub average_dl: f64,
    /// k1·(1 − b + b·dl/avgdl): what tf is measured against.
    pub length_norm: f64,
}

/// What one term gives.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Part {
    /// How often the document has the term.
    pub tf: u32,
    /// How many documents have it.
    pub df: u64,
    /// ln(1 + (N − df + 0.5) / (df + 0.5)).
    pub idf: f64,
    /// The term's weight in the query.
    pub weight: f64,
    /// weight · idf · tf·(k1 + 1) / (tf + `length_norm`); 0 when tf is.
    pub contribution: f64,
}

/// Explains the score of a document with these term frequencies, in the order of the query's terms.
pub fn explain(query: &Query, tfs: &[u32], dl: u32) -> Result<Explanation> {
    if tfs.len() != query.terms.len() {
        return Err(Error::internal("a document does not have the terms of the query"));
    }
    let weights = Weights::new(query)?;
    let documents = query.terms.iter().map(|t| t.df).fold(query.population.documents, u64::max);
    let parts = query.terms.iter().zip(tfs).enumerate().map(|(at, (term, tf))| Part {
        tf: *tf,
        df: term.df,
        idf: bm25::idf(documents, term.df),
        weight: term.weight,
        contribution: if *tf == 0 { 0.0 } else { weights.part(at, *tf, dl) },
    });
    let average_dl = query.population.average_dl();
    let (score, length_norm) = (weights.score(tfs, dl), bm25::length_norm(dl, average_dl));
    Ok(Explanation { parts: parts.collect(), score, dl, average_dl, length_norm })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lexical::bm25::Statistics;
    use crate::lexical::maxscore::QueryTerm;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn contributions_sum_to_the_score(
            terms in proptest::collection::vec((1..900u64, 0.01..20f64, 0..30u32), 0..20),
            dl in 0..3000u32,
            total_dl in 0..900_000u64,
        ) {
            let query = Query {
                terms: terms.iter().map(|(df, weight, _)| QueryTerm { df: *df, weight: *weight }).collect(),
                population: Statistics { documents: 1000, total_dl },
                k: 1,
                after: None,
            };
            let tfs: Vec<u32> = terms.iter().map(|t| t.2).collect();
            let explanation = explain(&query, &tfs, dl).expect("valid");
            let mut sum = 0.0;
            for (part, (df, weight, tf)) in explanation.parts.iter().zip(&terms) {
                let right = if *tf == 0 { 0.0 } else {
                    weight * bm25::idf(1000, *df) * bm25::saturation(*tf, dl, total_dl as f64 / 1000.0)
                };
                prop_assert_eq!(part.contribution.to_bits(), right.to_bits());
                sum += part.contribution;
            }
            prop_assert_eq!(explanation.score.to_bits(), sum.to_bits());
        }
    }
}
