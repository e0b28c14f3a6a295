// SPDX-License-Identifier: PostgreSQL

//! Settings of the fusion from the lists that a run kept.

use crate::spi;
use crate::store::run;
use pgrx::{Uuid, check_for_interrupts};
use rag_core::evaluation::order::Found;
use rag_core::evaluation::tune::{self, Candidates, Setting, Tuned};
use rag_core::metrics::Metric;
use rag_core::query::settings::Settings;
use rag_core::rank::trace::Stage;
use rag_core::{Error, Result};
use serde_json::{Map, Value, json};
use std::collections::{BTreeSet, HashMap};

/// What is tried when the caller says nothing; weights are of the dense leg, that of the BM25 leg being 1, and the other way round.
const RRF_K: &[u32] = &[1, 5, 10, 20, 40, 60, 100];
const WEIGHTS: &[f64] = &[0.0, 0.25, 0.5, 0.75, 1.0];

/// Tunes over a grid: an object with a list of values for `rrf_k`, `dense_weight` and `bm25_weight`. The first setting is that of
/// the run.
pub fn tune(id: i64, grid: &Value, metric: Metric, folds: i32) -> Result<Tuned> {
    let in_force = Settings::default().apply(&run::settings(id)?)?;
    let first =
        Setting { rrf_k: in_force.rrf_k, dense_weight: in_force.dense_weight, bm25_weight: in_force.bm25_weight };
    let settings = settings_of(first, grid)?;
    let folds = usize::try_from(folds).map_err(|_| Error::invalid(format!("folds must be from 2, not {folds}")))?;
    let mut interrupt = || {
        check_for_interrupts!();
        Ok(())
    };
    tune::tune(&candidates(id)?, &settings, metric, folds, &mut interrupt)
}

/// A setting as the object that a profile or `settings` takes.
pub fn shown(setting: &Setting) -> Value {
    json!({"rrf_k": setting.rrf_k, "dense_weight": setting.dense_weight, "bm25_weight": setting.bm25_weight})
}

fn settings_of(first: Setting, grid: &Value) -> Result<Vec<Setting>> {
    let default = Map::new();
    let grid = match grid {
        Value::Null => &default,
        Value::Object(grid) => grid,
        other => return Err(Error::invalid(format!("grid must be a JSON object, not {other}"))),
    };
    // Keys and values are those of settings, and checked as these are.
    let known = ["rrf_k", "dense_weight", "bm25_weight"];
    if let Some(strange) = grid.keys().find(|key| !known.contains(&key.as_str())) {
        return Err(rag_core::error::unknown_key("setting to tune", strange, &known));
    }
    let values = |key: &str| -> Result<Option<Vec<Settings>>> {
        let Some(values) = grid.get(key) else { return Ok(None) };
        let Value::Array(values) = values else {
            return Err(Error::invalid(format!("\"{key}\" of the grid must be a list, not {values}")));
        };
        values.iter().map(|value| Settings::default().apply(&json!({ key: value }))).collect::<Result<_>>().map(Some)
    };
    let rrf_k: Vec<u32> = match values("rrf_k")? {
        Some(given) => given.iter().map(|s| s.rrf_k).collect(),
        None => RRF_K.to_vec(),
    };
    let weights: Vec<(f64, f64)> = match (values("dense_weight")?, values("bm25_weight")?) {
        (None, None) => WEIGHTS.iter().flat_map(|w| [(1.0, *w), (*w, 1.0)]).collect(),
        (dense, bm25) => {
            let dense = dense.map_or(vec![first.dense_weight], |d| d.iter().map(|s| s.dense_weight).collect());
            let bm25 = bm25.map_or(vec![first.bm25_weight], |b| b.iter().map(|s| s.bm25_weight).collect());
            dense.iter().flat_map(|d| bm25.iter().map(move |b| (*d, *b))).collect()
        }
    };
    let some = weights.into_iter().filter(|(dense, bm25)| dense + bm25 > 0.0);
    let all = some.flat_map(|(dense_weight, bm25_weight)| {
        rrf_k.iter().map(move |rrf_k| Setting { rrf_k: *rrf_k, dense_weight, bm25_weight })
    });
    let mut settings = vec![first];
    for setting in all {
        if !settings.contains(&setting) {
            settings.push(setting);
        }
        if settings.len() > tune::MAX_GRID {
            return Err(Error::invalid(format!("a grid may have {} settings", tune::MAX_GRID)));
        }
    }
    Ok(settings)
}

/// Questions with the lists of both legs and the keys of what is in them.
fn candidates(id: i64) -> Result<Vec<Candidates>> {
    let questions = run::questions(id)?;
    let legs = [Stage::Dense, Stage::Bm25];
    if questions.is_empty() || !questions.iter().all(|q| legs.iter().all(|leg| q.lists.contains_key(leg))) {
        return Err(Error::invalid(format!("run {id} has not both legs")).with_hint("Run it with mode hybrid."));
    }
    let lists = questions.iter().flat_map(|q| legs.iter().map(|leg| &q.lists[leg]));
    let chunks: BTreeSet<i64> = lists.flatten().map(|f| f.chunk).collect();
    let chunks: Vec<i64> = chunks.into_iter().collect();
    let sql = "SELECT id, chunk_key FROM rag.chunk WHERE id = ANY ($1)";
    let read = |row: &spi::Row| Ok((row.get(1)?, *row.get::<Uuid>(2)?.as_bytes()));
    let keys: HashMap<i64, [u8; 16]> =
        spi::by_keys(|| spi::select::<(i64, [u8; 16])>(sql, &[chunks.into()], read))?.into_iter().collect();
    let with_keys = |list: &[Found]| -> Vec<Found> {
        list.iter().map(|f| Found { key: keys.get(&f.chunk).copied().unwrap_or_default(), ..*f }).collect()
    };
    Ok(questions
        .into_iter()
        .map(|q| Candidates {
            dense: with_keys(&q.lists[&Stage::Dense]),
            bm25: with_keys(&q.lists[&Stage::Bm25]),
            cluster: match q.cluster.as_str() {
                "" => format!("question {}", q.key),
                name => format!("cluster {name}"),
            },
            question: q.key,
            judged: q.judged,
        })
        .collect())
}
