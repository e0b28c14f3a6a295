// SPDX-License-Identifier: PostgreSQL

//! What a corpus decides before retrieval does.

use super::required;
use crate::error::OrRaise;
use crate::evaluate;
use crate::spi::guarded;
use crate::store::{collection, question, run};
use pgrx::default;
use pgrx::iter::TableIterator;
use pgrx::prelude::*;
use rag_core::evaluation::diagnosis::Diagnosis;
use rag_core::query::in_range;
use rag_core::rank::trace::Stage;

/// Pairs of documents, or of chunks, that say nearly the same.
#[pg_extern(schema = "rag", stable, parallel_unsafe)]
#[allow(clippy::type_complexity)]
fn near_duplicates(
    collection: default!(Option<&str>, "'default'"),
    resemblance: default!(Option<f64>, 0.8),
    unit: default!(Option<&str>, "'document'"),
) -> TableIterator<
    'static,
    (
        name!(first_id, i64),
        name!(first_name, String),
        name!(second_id, i64),
        name!(second_name, String),
        name!(resemblance, f64),
    ),
> {
    let find = || {
        let collection = collection::by_name(collection.unwrap_or("default"))?;
        let unit = evaluate::unit(unit.unwrap_or("document"))?;
        let least = evaluate::share("resemblance", required("resemblance", resemblance)?)?;
        let pairs = evaluate::near_duplicates(collection.id, unit, least)?;
        let names = evaluate::names(unit, pairs.iter().flat_map(|pair| [pair.ids.0, pair.ids.1]).collect())?;
        let name = |id: i64| names.get(&id).cloned().unwrap_or_default();
        Ok(pairs
            .into_iter()
            .map(|pair| (pair.ids.0, name(pair.ids.0), pair.ids.1, name(pair.ids.1), pair.resemblance))
            .collect::<Vec<_>>())
    };
    TableIterator::new(guarded(find).or_raise())
}

/// What the corpus and the gold of a question set decide, at each stage of a run.
#[pg_extern(schema = "rag", stable, parallel_unsafe)]
#[allow(clippy::type_complexity)]
fn diagnose(
    question_set: Option<&str>,
    run_id: default!(Option<i64>, "NULL"),
    k: default!(Option<i32>, 10),
    score_share: default!(Option<f64>, 0.9),
    resemblance: default!(Option<f64>, 0.8),
) -> TableIterator<
    'static,
    (
        name!(question, Option<String>),
        name!(stage, String),
        name!(gold_rank, Option<f64>),
        name!(gold_score, Option<f64>),
        name!(contenders, Option<f64>),
        name!(unjudged, f64),
        name!(near_duplicates, f64),
    ),
> {
    let diagnose = || {
        let set = question::by_name(required("question_set", question_set)?)?;
        let run_id = run::of_set(&set, run_id)?;
        let k = in_range("k", required("k", k)?.into())?;
        let share = evaluate::share("score_share", required("score_share", score_share)?)?;
        let least = evaluate::share("resemblance", required("resemblance", resemblance)?)?;
        evaluate::diagnosis(run_id, set.collection_id, k, least, share)
    };
    let diagnosed = guarded(diagnose).or_raise();
    let mut rows = Vec::new();
    for stage in Stage::ALL {
        let of: Vec<_> = diagnosed.iter().filter(|d| d.stage == stage).collect();
        if of.is_empty() {
            continue;
        }
        // Over the questions that have the value; all of them have the last two.
        let mean = |value: &dyn Fn(&Diagnosis) -> Option<f64>| {
            let values: Vec<f64> = of.iter().filter_map(|d| value(&d.diagnosis)).collect();
            (!values.is_empty()).then(|| values.iter().fold(0.0, |sum, v| sum + v) / values.len() as f64)
        };
        let rank = |d: &Diagnosis| d.gold_rank.map(f64::from);
        let contenders = |d: &Diagnosis| d.contenders.map(|n| n as f64);
        rows.push((
            None,
            stage.name().to_owned(),
            mean(&rank),
            mean(&|d| d.gold_score),
            mean(&contenders),
            mean(&|d| Some(d.unjudged)).unwrap_or_default(),
            of.iter().fold(0.0, |sum, d| sum + d.near_duplicates as f64) / of.len() as f64,
        ));
        rows.extend(of.into_iter().map(|d| {
            let (said, twins) = (&d.diagnosis, d.near_duplicates as f64);
            let question = Some(d.question.clone());
            (question, stage.name().to_owned(), rank(said), said.gold_score, contenders(said), said.unjudged, twins)
        }));
    }
    TableIterator::new(rows)
}
