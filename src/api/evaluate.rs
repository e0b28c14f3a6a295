// SPDX-License-Identifier: PostgreSQL

//! Evaluation: question sets in, runs, and what they say.

use super::{or_null, required};
use crate::error::{self, OrRaise};
use crate::evaluate::{self, Plan};
use crate::guc;
use crate::json::Json;
use crate::spi::guarded;
use crate::store::{collection, profile, question, run};
use pgrx::iter::TableIterator;
use pgrx::prelude::*;
use pgrx::{JsonB, default};
use rag_core::evaluation::question::{from_beir, from_json, from_trec, from_values};
use rag_core::evaluation::tune::Fold;
use rag_core::metrics::Metric;
use rag_core::query::in_range;
use rag_core::query::settings::Settings;
use rag_core::{Error, Result};
use serde_json::Value;

/// Depth of the final ranking when the caller says nothing.
const TOP_K: i32 = 100;

/// Bytes of the name of a question set.
const MAX_NAME: usize = 500;

/// Adds an empty question set.
#[pg_extern(schema = "rag", volatile, parallel_unsafe)]
fn create_question_set(
    name: Option<&str>,
    collection: default!(Option<&str>, "'default'"),
    description: default!(Option<&str>, "NULL"),
    acl: default!(Option<&str>, "NULL"),
) -> i64 {
    let create = || {
        let name = required("name", name)?;
        if name.is_empty() || name.len() > MAX_NAME || acl.is_some_and(str::is_empty) {
            return Err(Error::invalid(format!("name must have 1 to {MAX_NAME} bytes, and acl must not be empty")));
        }
        let collection = collection::by_name(collection.unwrap_or("default"))?;
        collection::share(collection.id)?;
        question::insert_set(name, collection.id, description, acl).map(|set| set.id)
    };
    guarded(create).or_raise()
}

/// Drops a question set with its questions and runs.
#[pg_extern(schema = "rag", volatile, parallel_unsafe)]
fn drop_question_set(name: Option<&str>) -> i64 {
    let drop = || Ok(question::delete_set(&question::by_name(required("name", name)?)?)? as i64);
    guarded(drop).or_raise()
}

/// Makes a question set have exactly the questions of a list of JSON objects.
#[pg_extern(schema = "rag", volatile, parallel_unsafe, name = "import_questions")]
fn import_questions_json(question_set: Option<&str>, questions: Option<Json>) -> i64 {
    let import = || {
        let set = question::by_name(required("question_set", question_set)?)?;
        let questions = match required("questions", questions)?.0 {
            Value::Array(many) => from_values(&many)?,
            one => from_values(&[one])?,
        };
        question::replace(&set, &questions)?;
        Ok(questions.len() as i64)
    };
    guarded(import).or_raise()
}

/// Makes a question set have exactly the questions of a text in one of the formats.
#[pg_extern(schema = "rag", volatile, parallel_unsafe)]
fn import_questions(
    question_set: Option<&str>,
    questions: Option<&str>,
    qrels: default!(Option<&str>, "NULL"),
    format: default!(Option<&str>, "NULL"),
) -> i64 {
    let import = || {
        let set = question::by_name(required("question_set", question_set)?)?;
        let text = required("questions", questions)?;
        let format = format.unwrap_or(if qrels.is_some() { "beir" } else { "jsonl" });
        let (questions, left_out) = match (format, qrels) {
            ("jsonl", None) => (from_json(text)?, 0),
            ("beir", Some(qrels)) => from_beir(text, qrels)?,
            ("trec", Some(qrels)) => from_trec(text, qrels)?,
            ("jsonl", Some(_)) => {
                return Err(Error::invalid("format \"jsonl\" has its gold in the questions, not in qrels"));
            }
            ("beir" | "trec", None) => return Err(Error::invalid(format!("format \"{format}\" needs qrels"))),
            (other, _) => return Err(rag_core::error::unknown_key("format", other, &["jsonl", "beir", "trec"])),
        };
        question::replace(&set, &questions)?;
        Ok((questions.len() as i64, left_out))
    };
    let (imported, left_out) = guarded(import).or_raise();
    if left_out > 0 {
        error::notice(format!("{left_out} questions were left out, because nothing is judged for them"));
    }
    imported
}

/// Asks all questions of a set and stores what came and how good it is; returns the key of the run.
#[pg_extern(schema = "rag", volatile, parallel_unsafe)]
fn evaluate(
    question_set: Option<&str>,
    profile: default!(Option<&str>, "'default'"),
    settings: default!(Option<Json>, "'{}'"),
    name: default!(Option<&str>, "NULL"),
    top_k: default!(Option<i32>, 100),
) -> i64 {
    guarded(|| evaluate::run(&plan(question_set, profile, settings, name, top_k)?.borrowed(), progress)).or_raise()
}

/// Runs with one setting at several values.
#[pg_extern(schema = "rag", volatile, parallel_unsafe)]
#[allow(clippy::too_many_arguments, clippy::type_complexity)]
fn sweep(
    question_set: Option<&str>,
    setting: Option<&str>,
    setting_values: Option<Json>,
    profile: default!(Option<&str>, "'default'"),
    settings: default!(Option<Json>, "'{}'"),
    name: default!(Option<&str>, "NULL"),
    top_k: default!(Option<i32>, 100),
) -> TableIterator<
    'static,
    (
        name!(setting_value, JsonB),
        name!(run_id, i64),
        name!(ndcg_10, Option<f64>),
        name!(recall_10, Option<f64>),
        name!(recall_100, Option<f64>),
        name!(mrr_10, Option<f64>),
        name!(p50_ms, f64),
    ),
> {
    let sweep = || {
        let plan = plan(question_set, profile, settings, name, top_k)?;
        let (key, values) = (required("setting", setting)?, required("setting_values", setting_values)?);
        evaluate::sweep(plan.borrowed(), key, &values.0, progress)
    };
    let runs = guarded(sweep).or_raise();
    TableIterator::new(runs.into_iter().map(|(value, run)| {
        let [ndcg, recall_10, recall_100, mrr] = run.means;
        (JsonB(value), run.id, ndcg, recall_10, recall_100, mrr, run.p50_ms)
    }))
}

/// Runs with parts of retrieval left out, or with the variants that are given.
#[pg_extern(schema = "rag", volatile, parallel_unsafe)]
#[allow(clippy::type_complexity)]
fn ablate(
    question_set: Option<&str>,
    variants: default!(Option<Json>, "NULL"),
    profile: default!(Option<&str>, "'default'"),
    settings: default!(Option<Json>, "'{}'"),
    top_k: default!(Option<i32>, 100),
) -> TableIterator<
    'static,
    (
        name!(variant, String),
        name!(run_id, i64),
        name!(ndcg_10, Option<f64>),
        name!(recall_10, Option<f64>),
        name!(recall_100, Option<f64>),
        name!(mrr_10, Option<f64>),
        name!(p50_ms, f64),
    ),
> {
    let ablate = || {
        let plan = plan(question_set, profile, settings, None, top_k)?;
        let variants = variants.map_or_else(|| evaluate::leave_one_out(&plan.settings), |v| v.0);
        evaluate::variants(plan.borrowed(), &variants, progress)
    };
    TableIterator::new(guarded(ablate).or_raise().into_iter().map(|(variant, run)| {
        let [ndcg, recall_10, recall_100, mrr] = run.means;
        (variant, run.id, ndcg, recall_10, recall_100, mrr, run.p50_ms)
    }))
}

fn progress(asked: usize, of: usize) {
    error::notice(format!("{asked} of {of} questions asked"));
}

/// What [`Plan`] borrows from.
struct Owned<'a> {
    question_set: &'a str,
    name: Option<&'a str>,
    profile: String,
    settings: Settings,
    top_k: i32,
}

impl Owned<'_> {
    fn borrowed(&self) -> Plan<'_> {
        Plan {
            question_set: self.question_set,
            name: self.name,
            profile: &self.profile,
            settings: self.settings.clone(),
            top_k: self.top_k,
            waits: guc::waits(),
            memory: guc::lexical_cache(),
        }
    }
}

fn plan<'a>(
    question_set: Option<&'a str>,
    profile: Option<&str>,
    settings: Option<Json>,
    name: Option<&'a str>,
    top_k: Option<i32>,
) -> Result<Owned<'a>> {
    let question_set = required("question_set", question_set)?;
    let profile = profile::by_name(profile.unwrap_or("default"))?;
    let settings = Settings::default().apply(&profile.settings)?.apply(&or_null(settings))?;
    let top_k = in_range("top_k", top_k.unwrap_or(TOP_K).into())?;
    Ok(Owned {
        question_set,
        name,
        profile: format!("{}@{}", profile.name, profile.version),
        settings,
        top_k: top_k as i32,
    })
}

/// Deletes a run.
#[pg_extern(schema = "rag", volatile, parallel_unsafe)]
fn drop_run(run_id: Option<i64>) {
    guarded(|| run::delete(required("run_id", run_id)?)).or_raise()
}

/// Whether a run is better than another, question by question, and whether that is more than chance.
#[pg_extern(schema = "rag", stable, parallel_unsafe)]
#[allow(clippy::type_complexity)]
fn compare(
    first: Option<i64>,
    second: Option<i64>,
    metrics: default!(Option<Vec<String>>, "ARRAY['nDCG@10', 'Recall@10', 'MRR@10']"),
    force: default!(Option<bool>, false),
) -> TableIterator<
    'static,
    (
        name!(stratum, Option<String>),
        name!(metric, String),
        name!(questions, i64),
        name!(clusters, i64),
        name!(first_mean, f64),
        name!(second_mean, f64),
        name!(difference, f64),
        name!(interval_low, f64),
        name!(interval_high, f64),
        name!(p_bootstrap, f64),
        name!(p_randomization, f64),
        name!(wins, i64),
        name!(losses, i64),
        name!(detectable_difference, f64),
        name!(first_result_churn, f64),
    ),
> {
    let compare = || {
        let (first, second) = (required("first", first)?, required("second", second)?);
        evaluate::compare(first, second, &required("metrics", metrics)?, force.unwrap_or(false))
    };
    let rows = guarded(compare).or_raise();
    TableIterator::new(rows.into_iter().map(|row| {
        let d = row.difference;
        (
            row.stratum,
            row.metric,
            d.questions as i64,
            d.clusters as i64,
            d.first,
            d.second,
            d.difference,
            d.interval.0,
            d.interval.1,
            d.p_bootstrap,
            d.p_randomization,
            d.wins as i64,
            d.losses as i64,
            d.detectable,
            row.churn,
        )
    }))
}

/// A page about a run, or about it and another one.
#[pg_extern(schema = "rag", stable, parallel_unsafe)]
fn report(run_id: Option<i64>, against: default!(Option<i64>, "NULL")) -> String {
    guarded(|| evaluate::report(required("run_id", run_id)?, against)).or_raise()
}

/// What each leg of a run finds that the other does not.
#[pg_extern(schema = "rag", stable, parallel_unsafe)]
#[allow(clippy::type_complexity)]
fn complementarity(
    run_id: Option<i64>,
    depths: default!(Option<Vec<i32>>, "ARRAY[10, 20, 50, 100]"),
) -> TableIterator<
    'static,
    (
        name!(k, i32),
        name!(questions, i64),
        name!(only_dense, i64),
        name!(only_bm25, i64),
        name!(in_both, i64),
        name!(in_neither, i64),
        name!(jaccard, f64),
    ),
> {
    let run = || evaluate::complementarity(required("run_id", run_id)?, &required("depths", depths)?);
    let rows = guarded(run).or_raise();
    TableIterator::new(rows.into_iter().map(|row| {
        let c = row.counts;
        let n = |count: u64| count as i64;
        (row.k, n(c.questions), n(c.only_first), n(c.only_second), n(c.both), n(c.neither), c.jaccard())
    }))
}

/// Where gold was lost, and to what.
#[pg_extern(schema = "rag", stable, parallel_unsafe)]
#[allow(clippy::type_complexity)]
fn forensics(
    run_id: Option<i64>,
    k: default!(Option<i32>, 10),
    against: default!(Option<i64>, "NULL"),
) -> TableIterator<
    'static,
    (
        name!(question, String),
        name!(gold_id, i64),
        name!(lost_by, String),
        name!(rank_before, Option<i32>),
        name!(rank_after, Option<i32>),
        name!(score, Option<f64>),
        name!(displaced_by, JsonB),
    ),
> {
    let run = || evaluate::forensics(required("run_id", run_id)?, required("k", k)?, against);
    let rows = guarded(run).or_raise();
    TableIterator::new(rows.into_iter().map(|row| {
        let rank = |rank: Option<u32>| rank.map(|r| r as i32);
        let lost_by = row.loss.stage.map_or("legs", |stage| stage.name()).to_owned();
        let (before, after) = (rank(row.loss.rank_before), rank(row.loss.rank_after));
        (row.question, row.gold_id, lost_by, before, after, row.loss.score, JsonB(row.displaced_by))
    }))
}

/// Settings of the fusion that fit a question set, cross-validated on the lists of a run.
#[pg_extern(schema = "rag", stable, parallel_unsafe)]
#[allow(clippy::type_complexity)]
fn tune(
    run_id: Option<i64>,
    grid: default!(Option<Json>, "NULL"),
    metric: default!(Option<&str>, "'nDCG@10'"),
    folds: default!(Option<i32>, 5),
) -> TableIterator<
    'static,
    (
        name!(fold, Option<i32>),
        name!(questions, i64),
        name!(settings, JsonB),
        name!(held_out, f64),
        name!(baseline, f64),
        name!(difference, f64),
        name!(p_randomization, Option<f64>),
    ),
> {
    let tune = || {
        let metric: Metric = required("metric", metric)?.parse()?;
        evaluate::tune(required("run_id", run_id)?, &or_null(grid), metric, required("folds", folds)?)
    };
    let tuned = guarded(tune).or_raise();
    let of_fold = |(fold, f): (i32, &Fold)| {
        let settings = JsonB(evaluate::shown(&f.setting));
        (Some(fold), f.questions as i64, settings, f.held_out, f.baseline, f.held_out - f.baseline, None)
    };
    let mut rows: Vec<_> = (1..).zip(&tuned.folds).map(of_fold).collect();
    let estimate = tuned.estimate;
    rows.push((
        None,
        estimate.questions as i64,
        JsonB(evaluate::shown(&tuned.recommended)),
        estimate.second,
        estimate.first,
        estimate.difference,
        Some(estimate.p_randomization),
    ));
    TableIterator::new(rows)
}

/// How much the same run differs from itself.
#[pg_extern(schema = "rag", volatile, parallel_unsafe)]
#[allow(clippy::too_many_arguments, clippy::type_complexity)]
fn reproducibility(
    question_set: Option<&str>,
    repeats: default!(Option<i32>, 3),
    profile: default!(Option<&str>, "'default'"),
    settings: default!(Option<Json>, "'{}'"),
    reindex: default!(Option<bool>, false),
    name: default!(Option<&str>, "NULL"),
    top_k: default!(Option<i32>, 100),
) -> TableIterator<
    'static,
    (
        name!(repeat, i32),
        name!(reindexed, bool),
        name!(run_id, i64),
        name!(ndcg_10, Option<f64>),
        name!(recall_10, Option<f64>),
        name!(recall_100, Option<f64>),
        name!(mrr_10, Option<f64>),
        name!(same_lists, f64),
    ),
> {
    let repeat = || {
        let plan = plan(question_set, profile, settings, name, top_k)?;
        evaluate::repeats(plan.borrowed(), required("repeats", repeats)?, reindex.unwrap_or(false), progress)
    };
    let rows = guarded(repeat).or_raise();
    TableIterator::new((1..).zip(rows).map(|(number, row)| {
        let [ndcg, recall_10, recall_100, mrr] = row.summary.means;
        (number, row.reindexed, row.summary.id, ndcg, recall_10, recall_100, mrr, row.same_lists)
    }))
}
