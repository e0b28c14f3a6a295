// SPDX-License-Identifier: PostgreSQL

//! Settings: every knob of a search that is not an argument of its own.
//!
//! A profile is a stored object of these keys; the `settings` argument overrides it key by key, and the arguments with
//! a place in the signature (`mode`, `candidate_k`, `rrf_k`, `rerank`) override both. A key that is not known is an
//! error that names the nearest; a key that is known but has no stage behind it yet is refused as unsupported rather
//! than silently ignored.

use super::in_range;
use crate::error::{Error, Result, unknown_key};
use crate::lexical::expand::MAX_DISTANCE;
use crate::lexical::widen::Reach;
use crate::rank::fusion::{Fusion, Method};
use serde_json::{Map, Value, json};

/// Which legs run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Both, fused.
    Hybrid,
    /// The dense leg alone.
    Dense,
    /// The BM25 leg alone.
    Bm25,
}

impl Mode {
    /// Parses the name used in SQL.
    pub fn parse(name: &str) -> Result<Self> {
        match name {
            "hybrid" => Ok(Mode::Hybrid),
            "dense" => Ok(Mode::Dense),
            "bm25" => Ok(Mode::Bm25),
            other => Err(unknown_key("mode", other, &["hybrid", "dense", "bm25"])),
        }
    }

    /// The name used in SQL.
    pub fn name(self) -> &'static str {
        match self {
            Mode::Hybrid => "hybrid",
            Mode::Dense => "dense",
            Mode::Bm25 => "bm25",
        }
    }
}

/// What happens when the dense leg cannot run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnDegraded {
    /// The search fails.
    Error,
    /// The BM25 leg answers alone and every row says so.
    Bm25,
}

/// Validated settings.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// Which legs run.
    pub mode: Mode,
    /// Candidates of each leg.
    pub candidate_k: u32,
    /// How the legs are fused.
    pub fusion: Fusion,
    /// Scan all vectors instead of the HNSW index.
    pub exact: bool,
    /// What happens when the dense leg cannot run.
    pub on_degraded: OnDegraded,
    /// Which terms the words of the query stand for in the BM25 leg.
    pub reach: Reach,
    /// Whether what stands in quotes must stand in the passage as written.
    pub phrase: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            mode: Mode::Hybrid,
            candidate_k: 100,
            fusion: Fusion::default(),
            exact: false,
            on_degraded: OnDegraded::Error,
            reach: Reach::default(),
            phrase: false,
        }
    }
}

const KNOWN: &[&str] = &[
    "mode",
    "candidate_k",
    "rrf_k",
    "fusion",
    "alpha",
    "dense_weight",
    "bm25_weight",
    "document_weight",
    "exact",
    "on_degraded",
    "prefix",
    "fuzzy",
    "phrase",
];

const PLANNED: &[&str] = &[
    "fuse_by",
    "filter_stage",
    "eligibility",
    "authority_weight",
    "freshness_weight",
    "rerank",
    "rerank_k",
    "rerank_weight",
    "expand",
    "max_staleness",
];

impl Settings {
    /// Applies an object of settings on top of these.
    pub fn apply(mut self, object: &Value) -> Result<Self> {
        let object: &Map<String, Value> = match object {
            Value::Null => return Ok(self),
            Value::Object(object) => object,
            other => return Err(Error::invalid(format!("settings must be a JSON object, not {other}"))),
        };
        for (key, value) in object {
            match key.as_str() {
                "mode" => self.mode = Mode::parse(string(key, value)?)?,
                "candidate_k" => self.candidate_k = count(key, value)?,
                "rrf_k" => self.fusion.rrf_k = count(key, value)?,
                "fusion" => self.fusion.method = Method::parse(string(key, value)?)?,
                "alpha" => self.fusion.alpha = share(key, value)?,
                "dense_weight" => self.fusion.dense_weight = weight(key, value)?,
                "bm25_weight" => self.fusion.bm25_weight = weight(key, value)?,
                "document_weight" => self.fusion.document_weight = weight(key, value)?,
                "exact" => self.exact = boolean(key, value)?,
                "on_degraded" => self.on_degraded = parse_on_degraded(string(key, value)?)?,
                "prefix" => self.reach.prefix = boolean(key, value)?,
                "fuzzy" => self.reach.fuzzy = edits(key, value)?,
                "phrase" => self.phrase = boolean(key, value)?,
                planned if PLANNED.contains(&planned) => return Err(not_yet(planned)),
                unknown => {
                    let all: Vec<&str> = KNOWN.iter().chain(PLANNED).copied().collect();
                    return Err(unknown_key("setting", unknown, &all));
                }
            }
        }
        Ok(self)
    }
}

impl Settings {
    /// All of them as an object that [`Settings::apply`] reads back, for a record of what was in force.
    pub fn to_json(&self) -> Value {
        json!({
            "mode": self.mode.name(),
            "candidate_k": self.candidate_k,
            "rrf_k": self.fusion.rrf_k,
            "fusion": self.fusion.method.name(),
            "alpha": self.fusion.alpha,
            "dense_weight": self.fusion.dense_weight,
            "bm25_weight": self.fusion.bm25_weight,
            "document_weight": self.fusion.document_weight,
            "exact": self.exact,
            "on_degraded": match self.on_degraded {
                OnDegraded::Error => "error",
                OnDegraded::Bm25 => "bm25",
            },
            "prefix": self.reach.prefix,
            "fuzzy": self.reach.fuzzy,
            "phrase": self.phrase,
        })
    }
}

/// The error for a setting whose stage does not exist yet.
pub fn not_yet(key: &str) -> Error {
    Error::unsupported(format!("setting \"{key}\" is not supported yet"))
}

fn parse_on_degraded(name: &str) -> Result<OnDegraded> {
    match name {
        "error" => Ok(OnDegraded::Error),
        "bm25" => Ok(OnDegraded::Bm25),
        other => Err(unknown_key("on_degraded", other, &["error", "bm25"])),
    }
}

fn string<'a>(key: &str, value: &'a Value) -> Result<&'a str> {
    value.as_str().ok_or_else(|| Error::invalid(format!("setting \"{key}\" must be a string, not {value}")))
}

fn boolean(key: &str, value: &Value) -> Result<bool> {
    value.as_bool().ok_or_else(|| Error::invalid(format!("setting \"{key}\" must be true or false, not {value}")))
}

fn count(key: &str, value: &Value) -> Result<u32> {
    let number = value
        .as_i64()
        .ok_or_else(|| Error::invalid(format!("setting \"{key}\" must be a whole number, not {value}")))?;
    in_range(key, number)
}

fn edits(key: &str, value: &Value) -> Result<u8> {
    let edits = value.as_u64().and_then(|edits| u8::try_from(edits).ok()).filter(|edits| *edits <= MAX_DISTANCE);
    edits.ok_or_else(|| Error::invalid(format!("setting \"{key}\" must be 0, 1 or 2, not {value}")))
}

fn weight(key: &str, value: &Value) -> Result<f64> {
    value
        .as_f64()
        .filter(|w| (0.0..=1000.0).contains(w))
        .ok_or_else(|| Error::invalid(format!("setting \"{key}\" must be a number from 0 to 1000, not {value}")))
}

fn share(key: &str, value: &Value) -> Result<f64> {
    value
        .as_f64()
        .filter(|share| (0.0..=1.0).contains(share))
        .ok_or_else(|| Error::invalid(format!("setting \"{key}\" must be a number from 0 to 1, not {value}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Kind;

    #[test]
    fn later_objects_override_earlier_ones_key_by_key() {
        let s = Settings::default().apply(&json!({"rrf_k": 30, "exact": true})).expect("valid");
        let s = s.apply(&json!({"rrf_k": 10})).expect("valid");
        assert_eq!((s.fusion.rrf_k, s.exact, s.candidate_k), (10, true, 100));
    }

    #[test]
    fn a_record_of_settings_is_read_back_and_has_all_of_them() {
        let changed = json!({"mode": "bm25", "candidate_k": 7, "rrf_k": 3, "fusion": "convex", "alpha": 0.25, "dense_weight": 0.5, "bm25_weight": 2, "document_weight": 0.25,
            "exact": true, "on_degraded": "bm25", "prefix": true, "fuzzy": 1, "phrase": true});
        let settings = Settings::default().apply(&changed).expect("valid");
        assert_eq!(Settings::default().apply(&settings.to_json()), Ok(settings.clone()));
        let keys: Vec<String> = settings.to_json().as_object().expect("object").keys().cloned().collect();
        assert_eq!(keys, KNOWN);
    }

    #[test]
    fn words_stand_for_others_only_when_asked() {
        let s = Settings::default();
        assert_eq!((s.reach, s.phrase), (Reach { prefix: false, fuzzy: 0 }, false));
        let s = s.apply(&json!({"prefix": true, "fuzzy": 2, "phrase": true})).expect("valid");
        assert_eq!((s.reach, s.phrase), (Reach { prefix: true, fuzzy: 2 }, true));
    }

    #[test]
    fn unknown_keys_name_the_nearest_and_planned_ones_are_unsupported() {
        let error = Settings::default().apply(&json!({"rrfk": 30})).expect_err("unknown");
        assert_eq!(error.hint.as_deref(), Some("Perhaps you meant \"rrf_k\"."));
        for planned in PLANNED {
            let error = Settings::default().apply(&json!({ *planned: 1 })).expect_err("planned");
            assert_eq!(error.kind, Kind::Unsupported, "{planned}");
        }
    }

    #[test]
    fn values_are_checked() {
        for bad in [
            json!({"rrf_k": 0}),
            json!({"rrf_k": 1.5}),
            json!({"dense_weight": -1}),
            json!({"mode": "sparse"}),
            json!({"fusion": "sum"}),
            json!({"alpha": 1.5}),
            json!({"alpha": "0.5"}),
            json!({"exact": 1}),
            json!({"prefix": "yes"}),
            json!({"fuzzy": 3}),
            json!({"fuzzy": 0.5}),
            json!({"fuzzy": true}),
            json!({"phrase": 1}),
            json!("rrf"),
        ] {
            let error = Settings::default().apply(&bad).expect_err("bad");
            assert_eq!(error.kind, Kind::InvalidArgument, "{bad}");
        }
    }
}
