// SPDX-License-Identifier: PostgreSQL

//! Evaluation: a question set asked, measured and remembered; runs compared.
//!
//! Thin: what gold is, how ties are broken, what is measured and what a difference means is [`rag_core::evaluation`]'s; the
//! search is [`crate::retrieve::rank`], the same that answers users. All questions of a run are asked by one snapshot. A question
//! that cannot be asked ends the run with an error that names it; there is no run with questions missing.

mod compare;
mod diagnose;
mod gold;
mod report;
mod state;
mod tune;

pub use compare::{compare, complementarity, forensics};
pub use diagnose::{diagnosis, names, near_duplicates, share, unit};
pub use report::report;
pub use tune::{shown, tune};

use crate::error;
use crate::guc::Waits;
use crate::retrieve::{self, QueryVector};
use crate::spi;
use crate::store::collection::{self, Collection};
use crate::store::question::{self, Stored};
use crate::store::run::{self, Asked, List, Record, Summary};
use pgrx::{Uuid, check_for_interrupts};
use rag_core::evaluation::measure::{Judged, Resolved, measure};
use rag_core::evaluation::order::{Found, Unit, break_ties};
use rag_core::provenance::ContentHash;
use rag_core::query::Request;
use rag_core::query::filter::Filter;
use rag_core::query::settings::{OnDegraded, Settings};
use rag_core::rank::fusion::Method;
use rag_core::rank::trace::Stage;
use rag_core::{Error, Kind, Result};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

/// How a question set is asked.
#[derive(Debug)]
pub struct Plan<'a> {
    /// Name of the set.
    pub question_set: &'a str,
    /// Name of the run.
    pub name: Option<&'a str>,
    /// Profile, for the record.
    pub profile: &'a str,
    /// Settings in force.
    pub settings: Settings,
    /// Depth of the final ranking.
    pub top_k: i32,
    /// How long the engine may take.
    pub waits: Waits,
    /// Bytes of the BM25 index that are kept.
    pub memory: usize,
}

/// Lets a long computation be cancelled.
fn interrupt() -> Result<()> {
    check_for_interrupts!();
    Ok(())
}

/// Time between two reports of progress.
const REPORT: Duration = Duration::from_secs(10);

/// Asks all questions, measures, and stores the run; returns its key. `report` is told how many of how many were asked.
pub fn run(plan: &Plan<'_>, report: impl Fn(usize, usize)) -> Result<i64> {
    let started = Instant::now();
    let set = question::by_name(plan.question_set)?;
    // An import would change what this run counts.
    question::share(&set)?;
    let collection = collection::by_id(set.collection_id)?;
    if question::tells_more(&set)? {
        error::notice(format!(
            "question set \"{}\" has no label, and documents of its collection have: the run shows whoever sees it what was found in them",
            set.name
        ));
    }
    let questions = question::of_set(&set)?;
    let found = spi::snapshot(|| gold::find(collection.id, &questions))?;
    let index_state = spi::snapshot(|| state::index(&collection))?;
    // A search that goes on without its dense leg would be measured as another.
    let settings = Settings { on_degraded: OnDegraded::Error, ..plan.settings.clone() };
    let record = Record {
        set_id: set.id,
        name: plan.name.map(str::to_owned),
        profile: plan.profile.to_owned(),
        settings: settings.to_json(),
        top_k: plan.top_k,
        questions: questions.iter().filter(|q| q.question.answerable).count() as i32,
        unanswerable: questions.iter().filter(|q| !q.question.answerable).count() as i32,
        questions_sha256: identity(&questions),
        gold_sha256: found.sha256,
        index_state,
        model: collection.model.spec.name.clone(),
        model_sha256: collection.model.spec.sha256.clone(),
        machine: state::machine()?,
    };
    let mut keys = Keys::new();
    let mut asked = Vec::new();
    let mut reported = Instant::now();
    for (at, (stored, resolved)) in questions.iter().zip(&found.of).enumerate() {
        check_for_interrupts!();
        if reported.elapsed() > REPORT {
            report(at, questions.len());
            reported = Instant::now();
        }
        let one = spi::snapshot(|| ask(&collection, plan, &settings, stored, resolved, &mut keys));
        asked.push(one.map_err(|error| named(&stored.question.key, error))?);
    }
    let id = run::insert(&record, started.elapsed().as_secs_f64())?;
    asked.iter().try_for_each(|one| spi::scratch(|| run::insert_question(id, one)))?;
    Ok(id)
}

/// An error with the question that it is about.
fn named(question: &str, mut error: Error) -> Error {
    error.message = format!("question \"{question}\": {}", error.message);
    error
}

/// Hash of the questions as they are asked.
fn identity(questions: &[Stored]) -> Vec<u8> {
    let of = |stored: &Stored| {
        let q = &stored.question;
        json!([q.key, q.text, q.strata, q.cluster, q.answerable, q.filter]).to_string()
    };
    let all: Vec<String> = questions.iter().map(of).collect();
    ContentHash::of(all.join("\n").as_bytes()).0.to_vec()
}

/// Documents and permanent keys of chunks that were found.
type Keys = BTreeMap<i64, (i64, [u8; 16])>;

fn ask(
    collection: &Collection,
    plan: &Plan<'_>,
    settings: &Settings,
    stored: &Stored,
    resolved: &[Resolved],
    keys: &mut Keys,
) -> Result<Asked> {
    let question = &stored.question;
    let filter = Filter::parse(&question.filter)?;
    let mut request = Request::new(&question.text, plan.top_k, filter, &collection.name, settings.clone())?;
    // A search has candidates for all its rows; here the depth is that of the metrics, and the candidates are what is measured.
    request.settings.candidate_k = settings.candidate_k;
    let mut ties = |list: &mut Vec<(i64, f64)>| -> Result<()> {
        learn(keys, list.iter().map(|(id, _)| *id))?;
        let mut found: Vec<Found> = list.drain(..).map(|one| as_found(keys, one)).collect();
        break_ties(&question.key, &mut found);
        list.extend(found.iter().map(|f| (f.chunk, f.score)));
        Ok(())
    };
    let ranked = retrieve::rank(collection, &request, QueryVector::Engine, Some(&mut ties), plan.waits, plan.memory)?;
    learn(keys, ranked.trace.entries.iter().map(|e| e.chunk_id))?;
    let judged = Judged::new(resolved);
    let as_found = |one: (i64, f64)| as_found(keys, one);
    let mut lists: BTreeMap<Stage, Vec<Found>> = BTreeMap::new();
    let mut filled: BTreeMap<Stage, Vec<Found>> = BTreeMap::new();
    for stage in [Stage::Dense, Stage::Bm25, Stage::Document, Stage::Fusion] {
        let by_stage = ranked.trace.list(stage);
        if by_stage.ranked.is_empty() && by_stage.filled.is_empty() && !ran(stage, settings) {
            continue;
        }
        lists.insert(stage, by_stage.ranked.into_iter().map(|(chunk, _, score)| as_found((chunk, score))).collect());
        filled.insert(stage, by_stage.filled.into_iter().map(as_found).collect());
    }
    // It ranks documents of candidates and finds none, so there is nothing to measure; and ties within a document are no ties.
    let prior = lists.remove(&Stage::Document);
    let mut last: Vec<Found> = ranked.order.iter().copied().map(as_found).collect();
    // Before the cut, so that no id decides what is cut off.
    break_ties(&question.key, &mut last);
    last.truncate(plan.top_k.unsigned_abs() as usize);
    lists.insert(Stage::TopK, last);
    let values = match question.answerable {
        true => measure(&question.key, &judged, &mut lists),
        false => {
            lists.values_mut().for_each(|list| break_ties(&question.key, list));
            Vec::new()
        }
    };
    lists.extend(prior.map(|list| (Stage::Document, list)));
    let relevant = stored.gold_ids.iter().zip(&question.gold).filter(|(_, gold)| gold.grade >= 1).map(|(id, _)| *id);
    let times = ranked.times;
    let milliseconds =
        [times.embed, times.dense, times.bm25, times.fusion, times.total].map(|t| t.as_secs_f64() * 1000.0);
    let entries = |found: Vec<Found>| found.into_iter().map(|f| (f.chunk, f.document, f.score));
    Ok(Asked {
        question_id: stored.id,
        answerable: question.answerable,
        cluster: question.cluster.clone(),
        strata: question.strata.clone(),
        unit: match judged.unit {
            Unit::Chunk => "chunk",
            Unit::Document => "document",
        },
        gold: relevant.zip(&judged.gold).flat_map(|(id, items)| items.iter().map(move |item| (id, *item))).collect(),
        grades: judged.grades.into_iter().collect(),
        times: milliseconds,
        lists: lists
            .into_iter()
            .map(|(stage, list)| List {
                stage,
                found: list.len() as i32,
                entries: entries(list).chain(entries(filled.remove(&stage).unwrap_or_default())).collect(),
            })
            .collect(),
        values,
    })
}

/// Whether a stage runs with these settings; one that does not has no list, which is not the same as an empty one.
fn ran(stage: Stage, settings: &Settings) -> bool {
    use rag_core::query::settings::Mode::{Bm25, Dense, Hybrid};
    match stage {
        Stage::Dense => matches!(settings.mode, Dense | Hybrid),
        Stage::Bm25 => matches!(settings.mode, Bm25 | Hybrid),
        Stage::Document => settings.fusion.document_weight > 0.0,
        Stage::Fusion => settings.mode == Hybrid || settings.fusion.document_weight > 0.0,
        Stage::TopK => true,
    }
}

fn as_found(keys: &Keys, (chunk, score): (i64, f64)) -> Found {
    let (document, key) = keys.get(&chunk).copied().unwrap_or_default();
    Found { chunk, document, key, score }
}

/// Reads documents and keys of chunks that were not seen before.
fn learn(keys: &mut Keys, chunks: impl Iterator<Item = i64>) -> Result<()> {
    let new: BTreeSet<i64> = chunks.filter(|id| !keys.contains_key(id)).collect();
    if new.is_empty() {
        return Ok(());
    }
    let new: Vec<i64> = new.into_iter().collect();
    let sql = "SELECT id, document_id, chunk_key FROM rag.chunk WHERE id = ANY ($1)";
    let read = |row: &spi::Row| Ok((row.get(1)?, (row.get(2)?, *row.get::<Uuid>(3)?.as_bytes())));
    keys.extend(spi::by_keys(|| spi::select::<(i64, (i64, [u8; 16]))>(sql, &[new.into()], read))?);
    Ok(())
}

/// Runs with one setting at several values, in their order.
pub fn sweep(
    plan: Plan<'_>,
    key: &str,
    values: &Value,
    report: impl Fn(usize, usize),
) -> Result<Vec<(Value, Summary)>> {
    let Value::Array(values) = values else {
        return Err(Error::invalid(format!("values must be a JSON array, not {values}")));
    };
    if values.is_empty() {
        return Err(Error::invalid("there is no value to try"));
    }
    // All are checked before the first is run.
    let tried = values.iter().map(|value| plan.settings.clone().apply(&json!({ key: value })));
    let tried: Vec<Settings> = tried.collect::<Result<_>>()?;
    let base = plan.name.map_or_else(String::new, |name| format!("{name} "));
    let mut runs = Vec::new();
    for (value, settings) in values.iter().zip(tried) {
        let name = format!("{base}{key} {value}");
        let id = run(&Plan { name: Some(&name), settings, ..plan }, &report)?;
        runs.push((value.clone(), run::summary(id)?));
    }
    Ok(runs)
}

/// Runs of named variants: each an object of settings on top of the plan's.
pub fn variants(plan: Plan<'_>, variants: &Value, report: impl Fn(usize, usize)) -> Result<Vec<(String, Summary)>> {
    let Value::Object(variants) = variants else {
        return Err(Error::invalid(format!("variants must be a JSON object of settings by name, not {variants}")));
    };
    let tried = variants.iter().map(|(name, settings)| Ok((name, plan.settings.clone().apply(settings)?)));
    let tried: Vec<(&String, Settings)> = tried.collect::<Result<_>>()?;
    let mut runs: Vec<(String, Summary)> = Vec::new();
    let mut done: Vec<(Settings, Summary)> = Vec::new();
    for (name, settings) in tried {
        // A variant that changes nothing is the same run.
        let summary = match done.iter().find(|(same, _)| *same == settings) {
            Some((_, summary)) => *summary,
            None => run::summary(run(&Plan { name: Some(name), settings: settings.clone(), ..plan }, &report)?)?,
        };
        done.push((settings, summary));
        runs.push((name.clone(), summary));
    }
    Ok(runs)
}

/// One of several runs with the same settings.
#[derive(Debug)]
pub struct Repeat {
    /// Whether the HNSW index was made anew before it.
    pub reindexed: bool,
    /// What it says.
    pub summary: Summary,
    /// The share of questions with the same final list as in the first.
    pub same_lists: f64,
}

/// Runs the same so many times; with `reindex` the HNSW index is made anew before each but the first. What differs between
/// them is the band that a difference must exceed to mean anything.
pub fn repeats(plan: Plan<'_>, times: i32, reindex: bool, report: impl Fn(usize, usize)) -> Result<Vec<Repeat>> {
    if !(2..=100).contains(&times) {
        return Err(Error::invalid(format!("repeats must be from 2 to 100, not {times}")));
    }
    let collection = collection::by_id(question::by_name(plan.question_set)?.collection_id)?;
    let mut repeats: Vec<Repeat> = Vec::new();
    for number in 1..=times {
        let reindexed = reindex && number > 1;
        if reindexed {
            collection::reindex(&collection)?;
        }
        let base = plan.name.unwrap_or("repeat");
        let id =
            run(&Plan { name: Some(&format!("{base} {number}")), settings: plan.settings.clone(), ..plan }, &report)?;
        let first = repeats.first().map_or(id, |first| first.summary.id);
        repeats.push(Repeat { reindexed, summary: run::summary(id)?, same_lists: run::same_lists(first, id)? });
    }
    Ok(repeats)
}

/// What is left when each part of the settings in force is left out, and each leg alone; the first is all of it.
pub fn leave_one_out(settings: &Settings) -> Value {
    let mut variants = serde_json::Map::new();
    variants.insert("all".into(), json!({}));
    variants.insert("E1 dense".into(), json!({"mode": "dense", "document_weight": 0}));
    variants.insert("E2 bm25".into(), json!({"mode": "bm25", "document_weight": 0}));
    variants.insert(
        "E3 rrf".into(),
        json!({"mode": "hybrid", "fusion": "rrf", "dense_weight": 1, "bm25_weight": 1, "document_weight": 0}),
    );
    variants.insert("E3 convex".into(), json!({"mode": "hybrid", "fusion": "convex", "document_weight": 0}));
    if ran(Stage::Document, settings) {
        variants.insert("without document prior".into(), json!({"document_weight": 0}));
    }
    let by_rank = settings.fusion.method == Method::Rrf;
    let weighted = settings.fusion.dense_weight != 1.0 || settings.fusion.bm25_weight != 1.0;
    if by_rank && weighted && ran(Stage::Fusion, settings) {
        variants.insert("without weights".into(), json!({"dense_weight": 1, "bm25_weight": 1}));
    }
    Value::Object(variants)
}

/// What two runs of one question set did not see the same; an error if they are not of one.
fn changed(first: &run::Run, second: &run::Run) -> Result<Vec<&'static str>> {
    if first.set_id != second.set_id {
        let sets = (question::by_id(first.set_id)?.name, question::by_id(second.set_id)?.name);
        let message = format!("runs {} and {} are of different question sets", first.id, second.id);
        return Err(Error::invalid(message).with_detail(format!("\"{}\" and \"{}\".", sets.0, sets.1)));
    }
    let state = |run: &run::Run, key: &str| run.index_state.get(key).cloned();
    let mut differs = Vec::new();
    if first.questions_sha256 != second.questions_sha256 {
        differs.push("the questions");
    }
    if first.gold_sha256 != second.gold_sha256 {
        differs.push("the gold");
    }
    if state(first, "passages_sha256") != state(second, "passages_sha256") {
        differs.push("the passages");
    }
    if state(first, "documents_sha256") != state(second, "documents_sha256") {
        differs.push("titles or metadata of documents");
    }
    let has_hnsw = |run: &run::Run| state(run, "hnsw_file").is_some_and(|file| !file.is_null());
    if has_hnsw(first) != has_hnsw(second) {
        differs.push("whether there was an HNSW index");
    }
    if first.top_k != second.top_k {
        differs.push("top_k");
    }
    if state(first, "embedded") != state(second, "embedded") {
        differs.push("how many passages had vectors");
    }
    Ok(differs)
}

/// Fails unless two runs saw the same, or `force` is given.
fn comparable(first: &run::Run, second: &run::Run, force: bool) -> Result<()> {
    let differs = changed(first, second)?;
    if differs.is_empty() || force {
        return Ok(());
    }
    let message = format!("runs {} and {} did not see the same", first.id, second.id);
    Err(Error::new(Kind::NotReady, message)
        .with_detail(format!("Between them changed: {}.", differs.join(", ")))
        .with_hint("Run both again, or compare them all the same with force => true."))
}
