// SPDX-License-Identifier: PostgreSQL

//! Settings of the fusion from the lists that a run kept.

use super::interrupt;
use crate::spi;
use crate::store::run;
use pgrx::Uuid;
use rag_core::evaluation::order::Found;
use rag_core::evaluation::tune::{self, Candidates, Tuned};
use rag_core::metrics::Metric;
use rag_core::query::settings::Settings;
use rag_core::rank::fusion::{Fusion, List, Lists, Method};
use rag_core::rank::trace::Stage;
use rag_core::{Error, Kind, Result};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// What is tried when the caller says nothing. Weights are of the dense leg, that of the BM25 leg being 1, and the other way round.
const RRF_K: &[u32] = &[1, 5, 10, 20, 40, 60, 100];
const WEIGHTS: &[f64] = &[0.0, 0.25, 0.5, 0.75, 1.0];
/// Shares of the cosine in steps of 1 / 20.
const ALPHAS: u32 = 20;

/// The settings that make a grid.
const TUNED: [&str; 6] = ["fusion", "rrf_k", "alpha", "dense_weight", "bm25_weight", "document_weight"];

/// Tunes over a grid: an object with a list of values for settings of the fusion. The first setting is that of the run.
pub fn tune(id: i64, grid: &Value, metric: Metric, folds: i32) -> Result<Tuned> {
    let first = Settings::default().apply(&run::settings(id)?)?.fusion;
    let folds = usize::try_from(folds).map_err(|_| Error::invalid(format!("folds must be from 2, not {folds}")))?;
    let settings = settings_of(first, grid)?;
    tune::tune(&candidates(id, &settings)?, &settings, metric, folds, &mut interrupt)
}

/// A setting as the object that a profile or `settings` takes.
pub fn shown(setting: &Fusion) -> Value {
    let mut shown = match setting.method {
        Method::Rrf => {
            json!({"fusion": "rrf", "rrf_k": setting.rrf_k, "dense_weight": setting.dense_weight, "bm25_weight": setting.bm25_weight})
        }
        Method::Convex => json!({"fusion": "convex", "alpha": setting.alpha}),
    };
    if setting.document_weight > 0.0 {
        shown["document_weight"] = json!(setting.document_weight);
    }
    shown
}

/// Every combination of the values of a grid, without repetition; what it does not name is as in the run, and where it names no
/// setting of a method, that method is tried with values of ours.
fn settings_of(first: Fusion, grid: &Value) -> Result<Vec<Fusion>> {
    let default = Map::new();
    let grid = match grid {
        Value::Null => &default,
        Value::Object(grid) => grid,
        other => return Err(Error::invalid(format!("grid must be a JSON object, not {other}"))),
    };
    if let Some(strange) = grid.keys().find(|key| !TUNED.contains(&key.as_str())) {
        return Err(rag_core::error::unknown_key("setting to tune", strange, &TUNED));
    }
    // Keys and values are those of settings, and checked as these are.
    let values = |key: &str| -> Result<Option<Vec<Fusion>>> {
        let Some(values) = grid.get(key) else { return Ok(None) };
        let Value::Array(values) = values else {
            return Err(Error::invalid(format!("\"{key}\" of the grid must be a list, not {values}")));
        };
        let of = |value| Settings::default().apply(&json!({ key: value })).map(|settings| settings.fusion);
        values.iter().map(of).collect::<Result<_>>().map(Some)
    };
    let (rrf_k, alpha) = (values("rrf_k")?, values("alpha")?);
    let (dense, bm25) = (values("dense_weight")?, values("bm25_weight")?);
    let of_rrf = rrf_k.is_some() || dense.is_some() || bm25.is_some();
    let methods: Vec<Method> = match values("fusion")? {
        Some(given) if alpha.is_some() && given.iter().all(|fusion| fusion.method != Method::Convex) => {
            return Err(Error::invalid("alpha is of fusion \"convex\", which is not in the grid"));
        }
        Some(given) if of_rrf && given.iter().all(|fusion| fusion.method != Method::Rrf) => {
            return Err(Error::invalid("rrf_k and weights are of fusion \"rrf\", which is not in the grid"));
        }
        Some(given) => given.iter().map(|fusion| fusion.method).collect(),
        None if of_rrf && alpha.is_none() => vec![Method::Rrf],
        None if alpha.is_some() && !of_rrf => vec![Method::Convex],
        None => vec![Method::Rrf, Method::Convex],
    };
    let priors: Vec<f64> = match values("document_weight")? {
        Some(given) => given.iter().map(|fusion| fusion.document_weight).collect(),
        None => vec![first.document_weight],
    };
    let rrf_k: Vec<u32> = rrf_k.map_or(RRF_K.to_vec(), |given| given.iter().map(|fusion| fusion.rrf_k).collect());
    let alpha: Vec<f64> = match alpha {
        Some(given) => given.iter().map(|fusion| fusion.alpha).collect(),
        None => (0..=ALPHAS).map(|step| f64::from(step) / f64::from(ALPHAS)).collect(),
    };
    let weights: Vec<(f64, f64)> = match (dense, bm25) {
        (None, None) => WEIGHTS.iter().flat_map(|w| [(1.0, *w), (*w, 1.0)]).collect(),
        (dense, bm25) => {
            let dense = dense.map_or(vec![first.dense_weight], |d| d.iter().map(|f| f.dense_weight).collect());
            let bm25 = bm25.map_or(vec![first.bm25_weight], |b| b.iter().map(|f| f.bm25_weight).collect());
            dense.iter().flat_map(|d| bm25.iter().map(move |b| (*d, *b))).collect()
        }
    };
    let mut settings = vec![first];
    let mut add = |setting: Fusion| -> Result<()> {
        if !settings.contains(&setting) {
            settings.push(setting);
        }
        if settings.len() > tune::MAX_GRID {
            return Err(Error::invalid(format!("a grid may have {} settings", tune::MAX_GRID)));
        }
        Ok(())
    };
    for method in methods {
        for document_weight in &priors {
            let base = Fusion { method, document_weight: *document_weight, ..first };
            match method {
                Method::Rrf => {
                    for (dense_weight, bm25_weight) in weights.iter().filter(|(dense, bm25)| dense + bm25 > 0.0) {
                        let weighted = Fusion { dense_weight: *dense_weight, bm25_weight: *bm25_weight, ..base };
                        rrf_k.iter().try_for_each(|rrf_k| add(Fusion { rrf_k: *rrf_k, ..weighted }))?;
                    }
                }
                Method::Convex => alpha.iter().try_for_each(|alpha| add(Fusion { alpha: *alpha, ..base }))?,
            }
        }
    }
    Ok(settings)
}

/// Questions with the lists of a run, and the keys of what is in them.
fn candidates(id: i64, settings: &[Fusion]) -> Result<Vec<Candidates>> {
    let questions = run::questions(id)?;
    if questions.is_empty() {
        return Err(Error::invalid(format!("run {id} has no question with an answer")));
    }
    let legs = [Stage::Dense, Stage::Bm25];
    if !questions.iter().all(|q| legs.iter().all(|leg| q.lists.contains_key(leg))) {
        return Err(Error::invalid(format!("run {id} has not both legs")).with_hint("Run it with mode hybrid."));
    }
    let with_prior = settings.iter().any(|setting| setting.document_weight > 0.0);
    if with_prior && questions.iter().all(|q| q.prior.is_empty()) {
        return Err(Error::invalid(format!("run {id} has no document prior, so its weight cannot be tuned"))
            .with_hint("Run it with a document_weight above 0."));
    }
    let all = |q: &run::Kept| -> Vec<Found> {
        let kept = legs.iter().flat_map(|leg| [q.lists.get(leg), q.filled.get(leg)]);
        kept.flatten().flatten().copied().collect()
    };
    let chunks: BTreeSet<i64> = questions.iter().flat_map(all).map(|f| f.chunk).collect();
    let chunks: Vec<i64> = chunks.into_iter().collect();
    let sql = "SELECT id, chunk_key FROM rag.chunk WHERE id = ANY ($1)";
    let read = |row: &spi::Row| Ok((row.get(1)?, *row.get::<Uuid>(2)?.as_bytes()));
    let keys: HashMap<i64, [u8; 16]> =
        spi::by_keys(|| spi::select::<(i64, [u8; 16])>(sql, &[chunks.into()], read))?.into_iter().collect();
    if let Some(gone) = questions.iter().flat_map(all).find(|f| !keys.contains_key(&f.chunk)) {
        let message = format!(
            "passage {} of run {id} is not there any more, or not visible, so its ties cannot be broken",
            gone.chunk
        );
        return Err(Error::new(Kind::NotReady, message).with_hint("Run it again."));
    }
    let with_key = |f: Found| Found { key: keys.get(&f.chunk).copied().unwrap_or_default(), ..f };
    let top_k = run::by_id(id)?.top_k.unsigned_abs() as usize;
    Ok(questions
        .into_iter()
        .map(|q| Candidates {
            found: all(&q).into_iter().map(|f| (f.chunk, with_key(f))).collect(),
            lists: Lists {
                dense: Some(list(&q, Stage::Dense)),
                bm25: Some(list(&q, Stage::Bm25)),
                document: (!q.prior.is_empty()).then(|| List { ranked: by_document(&q.prior), filled: Vec::new() }),
            },
            cluster: match q.cluster.as_str() {
                "" => format!("question {}", q.key),
                name => format!("cluster {name}"),
            },
            question: q.key,
            judged: q.judged,
            top_k,
        })
        .collect())
}

/// The list of a stage as the search had it.
fn list(kept: &run::Kept, stage: Stage) -> List {
    let of = |lists: &BTreeMap<Stage, Vec<Found>>| lists.get(&stage).cloned().unwrap_or_default();
    List {
        ranked: of(&kept.lists).iter().zip(1..).map(|(f, rank)| (f.chunk, rank, f.score)).collect(),
        filled: of(&kept.filled).iter().map(|f| (f.chunk, f.score)).collect(),
    }
}

/// Passages by the rank of their document: one more than there are documents of a higher score.
fn by_document(prior: &[Found]) -> Vec<(i64, u32, f64)> {
    let documents: HashMap<i64, f64> = prior.iter().map(|f| (f.document, f.score)).collect();
    let higher = |score: f64| documents.values().filter(|other| **other > score).count() as u32;
    prior.iter().map(|f| (f.chunk, 1 + higher(f.score), f.score)).collect()
}
