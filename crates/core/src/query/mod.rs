// SPDX-License-Identifier: PostgreSQL

//! What is asked: the request of a search, its filter and its settings, validated once.
//!
//! SQL arguments arrive as text, jsonb and integers; after this module they cannot hold nonsense. Nothing here knows
//! SQL: the filter is a tree of typed clauses, which the extension's retrieval code compiles to parameters.

pub mod filter;
pub mod profile;
pub mod quoted;
pub mod settings;

use crate::error::{Error, Kind, Result};
use crate::rank::fusion::Method;
use filter::Filter;
use quoted::Quoted;
use settings::{Mode, Settings};

/// A validated search.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// The query, not empty. Without setting `phrase`, quotes are punctuation of its text.
    pub query: Quoted,
    /// Rows wanted, 1 to 1000.
    pub top_k: u32,
    /// Which chunks may be returned.
    pub filter: Filter,
    /// Name of the collection.
    pub collection: String,
    /// Everything else.
    pub settings: Settings,
}

/// Longest query in bytes; the work of the BM25 leg grows with its number of words.
pub const MAX_QUERY: usize = 16 << 10;
/// Largest `top_k` and `candidate_k`.
pub const MAX_K: u32 = 10_000;

impl Request {
    /// Checks a request.
    ///
    /// An empty query is an error and not an empty result: the caller has lost its question somewhere.
    pub fn new(query: &str, top_k: i32, filter: Filter, collection: &str, settings: Settings) -> Result<Self> {
        if query.trim().is_empty() {
            return Err(Error::invalid("query is empty"));
        }
        if query.len() > MAX_QUERY {
            return Err(Error::new(Kind::LimitExceeded, format!("query of {} bytes exceeds {MAX_QUERY}", query.len()))
                .with_hint("Ask for what the text is about, or search for its parts."));
        }
        let top_k = in_range("top_k", top_k.into())?;
        // Only here, where profile, settings and arguments have come together.
        let fusion = &settings.fusion;
        let weightless = fusion.method == Method::Rrf && fusion.dense_weight + fusion.bm25_weight <= 0.0;
        if settings.mode == Mode::Hybrid && weightless {
            return Err(Error::invalid("dense_weight and bm25_weight are both 0"));
        }
        let query = match settings.phrase {
            true => quoted::read(query)?,
            false => Quoted { text: query.to_owned(), loose: query.to_owned(), phrases: Vec::new() },
        };
        Ok(Self {
            query,
            top_k,
            filter,
            collection: collection.to_owned(),
            settings: Settings { candidate_k: settings.candidate_k.max(top_k), ..settings },
        })
    }
}

/// Checks that a count is from 1 to [`MAX_K`].
pub fn in_range(name: &str, value: i64) -> Result<u32> {
    u32::try_from(value)
        .ok()
        .filter(|v| (1..=MAX_K).contains(v))
        .ok_or_else(|| Error::invalid(format!("{name} must be from 1 to {MAX_K}, not {value}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rank::fusion::Fusion;

    #[test]
    fn candidate_k_is_never_below_top_k() {
        let request = Request::new("q", 500, Filter::default(), "default", Settings::default()).expect("valid");
        assert_eq!(request.settings.candidate_k, 500);
    }

    #[test]
    fn a_hybrid_search_needs_a_leg_with_weight() {
        let new = |mode| {
            let fusion = Fusion { dense_weight: 0.0, bm25_weight: 0.0, ..Fusion::default() };
            let settings = Settings { mode, fusion, ..Settings::default() };
            Request::new("q", 1, Filter::default(), "default", settings)
        };
        assert_eq!(new(Mode::Hybrid).expect_err("weightless").message, "dense_weight and bm25_weight are both 0");
        assert!(new(Mode::Dense).is_ok());
    }

    #[test]
    fn quotes_are_syntax_only_when_asked() {
        let new = |phrase| {
            let settings = Settings { phrase, ..Settings::default() };
            Request::new("a \"b\"", 1, Filter::default(), "default", settings).expect("valid").query
        };
        assert_eq!((new(false).text.as_str(), new(false).phrases.len()), ("a \"b\"", 0));
        assert_eq!((new(true).text.as_str(), new(true).phrases), ("a  b ", vec!["b".to_owned()]));
    }

    #[test]
    fn nonsense_is_refused() {
        let new = |q: &str, k| Request::new(q, k, Filter::default(), "default", Settings::default());
        assert_eq!(new("  ", 10).expect_err("empty").message, "query is empty");
        assert_eq!(new("q", 0).expect_err("zero").message, "top_k must be from 1 to 10000, not 0");
    }
}
