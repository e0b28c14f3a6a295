// SPDX-License-Identifier: PostgreSQL

//! The trace of a search: what each stage did to each candidate.
//!
//! A search fills it as it goes and never reads it; explanation reads it and never searches. Later stages (rerank,
//! eligibility, freshness) add entries of their own without changing earlier ones.

use super::fusion::List;
use crate::error::{Result, unknown_key};

/// A stage of retrieval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// The dense leg.
    Dense,
    /// The BM25 leg.
    Bm25,
    /// The document prior: the scores and ranks of the candidates' documents.
    Document,
    /// Fusion of the legs.
    Fusion,
    /// The final cut at `top_k`.
    TopK,
}

impl Stage {
    /// All, in the order they run.
    pub const ALL: [Stage; 5] = [Stage::Dense, Stage::Bm25, Stage::Document, Stage::Fusion, Stage::TopK];

    /// Its name in SQL.
    pub fn name(self) -> &'static str {
        match self {
            Stage::Dense => "dense",
            Stage::Bm25 => "bm25",
            Stage::Document => "document",
            Stage::Fusion => "fusion",
            Stage::TopK => "final",
        }
    }

    /// The stage of a name.
    pub fn parse(name: &str) -> Result<Self> {
        let names = Self::ALL.map(Self::name);
        Self::ALL.into_iter().find(|s| s.name() == name).ok_or_else(|| unknown_key("stage", name, &names))
    }
}

/// What one stage did to one candidate.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// The stage.
    pub stage: Stage,
    /// The candidate.
    pub chunk_id: i64,
    /// Its rank before the stage, 1-based; none where it enters.
    pub rank_before: Option<u32>,
    /// Its rank after the stage; none where it leaves.
    pub rank_after: Option<u32>,
    /// Its score by the stage.
    pub score: Option<f64>,
}

/// The trace of one search.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Trace {
    /// Entries, in the order the stages ran and by rank within a stage.
    pub entries: Vec<Entry>,
}

impl Trace {
    /// Records candidates that enter at `stage`, best first.
    pub fn enter(&mut self, stage: Stage, ranked: impl IntoIterator<Item = (i64, f64)>) {
        self.enter_ranked(stage, ranked.into_iter().zip(1..).map(|((chunk_id, score), rank)| (chunk_id, rank, score)));
    }

    /// Records candidates that enter at `stage` with ranks of their own, best first.
    pub fn enter_ranked(&mut self, stage: Stage, ranked: impl IntoIterator<Item = (i64, u32, f64)>) {
        self.entries.extend(ranked.into_iter().map(|(chunk_id, rank, score)| Entry {
            stage,
            chunk_id,
            rank_before: None,
            rank_after: Some(rank),
            score: Some(score),
        }));
    }

    /// Records the score that `stage` would give to a candidate it did not find itself.
    pub fn fill(&mut self, stage: Stage, chunk_id: i64, score: f64) {
        self.entries.push(Entry { stage, chunk_id, rank_before: None, rank_after: None, score: Some(score) });
    }

    /// What `stage` said of the candidates.
    pub fn list(&self, stage: Stage) -> List {
        let mut list = List::default();
        for entry in self.entries.iter().filter(|e| e.stage == stage) {
            let score = entry.score.unwrap_or_default();
            match entry.rank_after {
                Some(rank) => list.ranked.push((entry.chunk_id, rank, score)),
                None => list.filled.push((entry.chunk_id, score)),
            }
        }
        list
    }

    /// The rank of a candidate after `stage`.
    pub fn rank(&self, stage: Stage, chunk_id: i64) -> Option<u32> {
        self.entries.iter().find(|e| e.stage == stage && e.chunk_id == chunk_id).and_then(|e| e.rank_after)
    }

    /// The score that `stage` gave to a candidate.
    pub fn score(&self, stage: Stage, chunk_id: i64) -> Option<f64> {
        self.entries.iter().find(|e| e.stage == stage && e.chunk_id == chunk_id).and_then(|e| e.score)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_count_from_one() {
        let mut trace = Trace::default();
        trace.enter(Stage::Dense, [(7, 0.9), (3, 0.8)]);
        assert_eq!(trace.entries[1].rank_after, Some(2));
        assert_eq!(trace.score(Stage::Dense, 3), Some(0.8));
        assert_eq!(trace.score(Stage::Bm25, 3), None);
        trace.fill(Stage::Bm25, 3, 1.5);
        assert_eq!((trace.score(Stage::Bm25, 3), trace.rank(Stage::Bm25, 3)), (Some(1.5), None));
        assert_eq!(trace.list(Stage::Bm25), List { ranked: vec![], filled: vec![(3, 1.5)] });
        assert_eq!(trace.list(Stage::Dense), List { ranked: vec![(7, 1, 0.9), (3, 2, 0.8)], filled: vec![] });
    }

    #[test]
    fn stages_have_names() {
        for stage in Stage::ALL {
            assert_eq!(Stage::parse(stage.name()), Ok(stage));
        }
        assert_eq!(Stage::parse("fuson").expect_err("unknown").hint.as_deref(), Some("Perhaps you meant \"fusion\"."));
    }
}
