// SPDX-License-Identifier: PostgreSQL

//! Tables `rag.run`, `rag.run_question`, `rag.run_list` and `rag.run_metric`.

use crate::spi;
use crate::store::question::QuestionSet;
use pgrx::JsonB;
use rag_core::evaluation::measure::{Judged, Value as Measured};
use rag_core::evaluation::order::{Found, Unit};
use rag_core::rank::trace::Stage;
use rag_core::{Error, Kind, Result};
use serde_json::Value;
use std::collections::BTreeMap;

/// What a run is remembered by.
#[derive(Debug, Clone)]
pub struct Record {
    /// Question set.
    pub set_id: i64,
    /// Its name.
    pub name: Option<String>,
    /// Profile with its version.
    pub profile: String,
    /// All settings.
    pub settings: Value,
    /// Depth of the final ranking.
    pub top_k: i32,
    /// Answerable questions.
    pub questions: i32,
    /// The others.
    pub unanswerable: i32,
    /// Hash of the questions.
    pub questions_sha256: Vec<u8>,
    /// Hash of the gold as it was found.
    pub gold_sha256: Vec<u8>,
    /// What was searched.
    pub index_state: Value,
    /// Embedding model.
    pub model: String,
    /// Its hash.
    pub model_sha256: Option<String>,
    /// Where it ran.
    pub machine: Value,
}

/// What a run did with one question.
#[derive(Debug, Clone)]
pub struct Asked {
    /// The question.
    pub question_id: i64,
    /// Whether it had an answer.
    pub answerable: bool,
    /// Its cluster.
    pub cluster: Option<String>,
    /// Its strata.
    pub strata: Vec<String>,
    /// `chunk` or `document`.
    pub unit: &'static str,
    /// Judged items with their grades.
    pub grades: Vec<(i64, i32)>,
    /// Relevant gold with its items.
    pub gold: Vec<(i64, i64)>,
    /// Milliseconds: vector, dense leg, BM25 leg, what comes after, all.
    pub times: [f64; 5],
    /// Lists of the stages.
    pub lists: Vec<List>,
    /// What was measured; nothing of an unanswerable question.
    pub values: Vec<Measured>,
}

/// A ranked list.
#[derive(Debug, Clone)]
pub struct List {
    /// The stage.
    pub stage: Stage,
    /// How many of the entries it ranked; the others it only gave a score.
    pub found: i32,
    /// Chunk, document and score, best first.
    pub entries: Vec<(i64, i64, f64)>,
}

/// Adds a run that took so many seconds and returns its key.
pub fn insert(record: &Record, seconds: f64) -> Result<i64> {
    let sql = "INSERT INTO rag.run (set_id, name, profile, settings, top_k, questions, unanswerable, questions_sha256, gold_sha256,
                   index_state, model, model_sha256, extension_version, machine, started, finished)
               SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, e.extversion, $13,
                      pg_catalog.clock_timestamp() - pg_catalog.make_interval(secs => $14), pg_catalog.clock_timestamp()
                 FROM pg_catalog.pg_extension e WHERE e.extname = 'pg_rag' RETURNING id";
    let args = [
        record.set_id.into(),
        record.name.clone().into(),
        record.profile.as_str().into(),
        JsonB(record.settings.clone()).into(),
        record.top_k.into(),
        record.questions.into(),
        record.unanswerable.into(),
        record.questions_sha256.clone().into(),
        record.gold_sha256.clone().into(),
        JsonB(record.index_state.clone()).into(),
        record.model.as_str().into(),
        record.model_sha256.clone().into(),
        JsonB(record.machine.clone()).into(),
        seconds.into(),
    ];
    spi::write(sql, &args, |row| row.get(1))?.pop().ok_or_else(|| Error::internal("no run was inserted"))
}

/// Adds what a run did with one question.
pub fn insert_question(run: i64, asked: &Asked) -> Result<()> {
    let (items, grades): (Vec<i64>, Vec<i32>) = asked.grades.iter().copied().unzip();
    let (gold_ids, gold_items): (Vec<i64>, Vec<i64>) = asked.gold.iter().copied().unzip();
    let last = asked.lists.iter().find(|list| list.stage == Stage::TopK);
    let [embed, dense, bm25, fusion, total] = asked.times;
    let sql = "INSERT INTO rag.run_question (run_id, question_id, unit, items, grades, gold_ids, gold_items, results, top_score,
                   embed_ms, dense_ms, bm25_ms, fusion_ms, total_ms, answerable, cluster, strata)
               VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17)";
    let args = [
        run.into(),
        asked.question_id.into(),
        asked.unit.into(),
        items.into(),
        grades.into(),
        gold_ids.into(),
        gold_items.into(),
        last.map_or(0, |list| list.entries.len() as i32).into(),
        last.and_then(|list| list.entries.first()).map(|(_, _, score)| *score).into(),
        embed.into(),
        dense.into(),
        bm25.into(),
        fusion.into(),
        total.into(),
        asked.answerable.into(),
        asked.cluster.clone().into(),
        asked.strata.clone().into(),
    ];
    spi::execute(sql, &args)?;
    for list in &asked.lists {
        let sql = "INSERT INTO rag.run_list (run_id, question_id, stage, found, chunk_ids, document_ids, scores)
                   VALUES ($1, $2, $3, $4, $5, $6, $7)";
        let args = [
            run.into(),
            asked.question_id.into(),
            list.stage.name().into(),
            list.found.into(),
            list.entries.iter().map(|e| e.0).collect::<Vec<i64>>().into(),
            list.entries.iter().map(|e| e.1).collect::<Vec<i64>>().into(),
            list.entries.iter().map(|e| e.2).collect::<Vec<f64>>().into(),
        ];
        spi::execute(sql, &args)?;
    }
    let sql = "INSERT INTO rag.run_metric (run_id, question_id, stage, metric, value)
               SELECT $1, $2, v.stage, v.metric, v.value
                 FROM ROWS FROM (pg_catalog.unnest($3), pg_catalog.unnest($4), pg_catalog.unnest($5)) AS v (stage, metric, value)";
    let args = [
        run.into(),
        asked.question_id.into(),
        asked.values.iter().map(|v| v.stage.name().to_owned()).collect::<Vec<String>>().into(),
        asked.values.iter().map(|v| v.metric.clone()).collect::<Vec<String>>().into(),
        asked.values.iter().map(|v| v.value).collect::<Vec<f64>>().into(),
    ];
    spi::execute(sql, &args).map(|_| ())
}

/// The lists and gold of the questions of a run, in the order of the set.
pub fn questions(run: i64) -> Result<Vec<Kept>> {
    let sql = "SELECT q.id, q.key, r.unit, r.items, r.grades, r.gold_ids, r.gold_items, coalesce(r.cluster, '')
                 FROM rag.run_question r JOIN rag.question q ON q.id = r.question_id
                WHERE r.run_id = $1 AND r.answerable ORDER BY q.ordinal, q.id";
    let read = |row: &spi::Row| {
        let grades = row.get::<Vec<i64>>(4)?.into_iter().zip(row.get::<Vec<i32>>(5)?).collect();
        let mut gold: Vec<(i64, Vec<i64>)> = Vec::new();
        for (id, item) in row.get::<Vec<i64>>(6)?.into_iter().zip(row.get::<Vec<i64>>(7)?) {
            match gold.last_mut() {
                Some((last, items)) if *last == id => items.push(item),
                _ => gold.push((id, vec![item])),
            }
        }
        let unit = if row.get::<String>(3)? == "document" { Unit::Document } else { Unit::Chunk };
        let (gold_ids, gold) = gold.into_iter().unzip();
        let judged = Judged { unit, grades, gold };
        let (question_id, key, cluster) = (row.get(1)?, row.get(2)?, row.get(8)?);
        let (lists, filled) = (BTreeMap::new(), BTreeMap::new());
        Ok(Kept { question_id, key, cluster, judged, gold_ids, lists, filled, prior: Vec::new() })
    };
    let mut kept = spi::select(sql, &[run.into()], read)?;
    let places: BTreeMap<i64, usize> = kept.iter().enumerate().map(|(at, k)| (k.question_id, at)).collect();
    let sql = "SELECT question_id, stage, found, chunk_ids, document_ids, scores FROM rag.run_list WHERE run_id = $1";
    spi::each(sql, &[run.into()], |row| {
        let Some(at) = places.get(&row.get(1)?) else { return Ok(()) };
        let found = row.get::<i32>(3)?.unsigned_abs() as usize;
        let ids = row.get::<Vec<i64>>(4)?.into_iter().zip(row.get::<Vec<i64>>(5)?).zip(row.get::<Vec<f64>>(6)?);
        // Ties were broken before the lists were kept, so no key is needed any more.
        let entry = |((chunk, document), score)| Found { chunk, document, key: [0; 16], score };
        let mut list: Vec<Found> = ids.map(entry).collect();
        let filled = list.split_off(found.min(list.len()));
        match Stage::parse(&row.get::<String>(2)?)? {
            Stage::Document => kept[*at].prior = list,
            stage => {
                kept[*at].lists.insert(stage, list);
                kept[*at].filled.insert(stage, filled);
            }
        }
        Ok(())
    })?;
    Ok(kept)
}

/// What a run kept of one answerable question.
#[derive(Debug, Clone)]
pub struct Kept {
    /// Key of the question.
    pub question_id: i64,
    /// Its name in the set.
    pub key: String,
    /// Its cluster; empty when it stands alone.
    pub cluster: String,
    /// Its gold as it was found.
    pub judged: Judged,
    /// Keys of its relevant gold, in the order of `judged.gold`.
    pub gold_ids: Vec<i64>,
    /// What each stage ranked, ties broken.
    pub lists: BTreeMap<Stage, Vec<Found>>,
    /// What the other leg found, with the scores that the stage gives it.
    pub filled: BTreeMap<Stage, Vec<Found>>,
    /// Candidates in the order of the document prior, which ranks what others found; empty without it.
    pub prior: Vec<Found>,
}

/// A run as it is compared.
#[derive(Debug, Clone)]
pub struct Run {
    /// Key.
    pub id: i64,
    /// Question set.
    pub set_id: i64,
    /// Hash of the questions.
    pub questions_sha256: Vec<u8>,
    /// Hash of the gold.
    pub gold_sha256: Vec<u8>,
    /// What was searched.
    pub index_state: Value,
    /// Depth of its final ranking.
    pub top_k: i32,
}

/// The run of a key.
pub fn by_id(id: i64) -> Result<Run> {
    let sql = "SELECT id, set_id, questions_sha256, gold_sha256, index_state, top_k FROM rag.run WHERE id = $1";
    let read = |row: &spi::Row| {
        Ok(Run {
            id: row.get(1)?,
            set_id: row.get(2)?,
            questions_sha256: row.get(3)?,
            gold_sha256: row.get(4)?,
            index_state: row.get::<JsonB>(5)?.0,
            top_k: row.get(6)?,
        })
    };
    spi::select_one(sql, &[id.into()], read)?.ok_or_else(|| {
        Error::new(Kind::NotFound, format!("run {id} does not exist"))
            .with_hint("SELECT id, name FROM rag.runs; lists them.")
    })
}

/// A run of a set: the given one if it is of that set, or the newest.
pub fn of_set(set: &QuestionSet, id: Option<i64>) -> Result<i64> {
    let Some(id) = id else {
        let sql = "SELECT id FROM rag.run WHERE set_id = $1 ORDER BY id DESC LIMIT 1";
        let newest = spi::select_one(sql, &[set.id.into()], |row| row.get(1))?;
        return newest.ok_or_else(|| {
            Error::new(Kind::NotReady, format!("question set \"{}\" has no run", set.name))
                .with_hint(format!("SELECT rag.evaluate('{}');", set.name.replace('\'', "''")))
        });
    };
    match by_id(id)?.set_id == set.id {
        true => Ok(id),
        false => Err(Error::invalid(format!("run {id} is not of question set \"{}\"", set.name))),
    }
}

/// What is looked at first of a run.
#[derive(Debug, Clone, Copy)]
pub struct Summary {
    /// Key.
    pub id: i64,
    /// Means over all questions: nDCG@10, Recall@10, Recall@100, MRR@10; none where no question has an answer.
    pub means: [Option<f64>; 4],
    /// Median milliseconds of a search.
    pub p50_ms: f64,
}

/// The summary of a run.
pub fn summary(id: i64) -> Result<Summary> {
    let sql = "SELECT ndcg_10, recall_10, recall_100, mrr_10, p50_ms FROM rag.runs WHERE id = $1";
    let read = |row: &spi::Row| {
        let means = [row.optional(1)?, row.optional(2)?, row.optional(3)?, row.optional(4)?];
        Ok(Summary { id, means, p50_ms: row.get(5)? })
    };
    spi::select_one(sql, &[id.into()], read)?.ok_or_else(|| Error::internal(format!("run {id} does not exist")))
}

/// The settings of a run.
pub fn settings(id: i64) -> Result<Value> {
    by_id(id)?;
    let sql = "SELECT settings FROM rag.run WHERE id = $1";
    Ok(spi::select_one(sql, &[id.into()], |row| row.get::<JsonB>(1))?.map_or(Value::Null, |settings| settings.0))
}

/// The share of questions whose final list is the same in both runs, to the bit.
pub fn same_lists(first: i64, second: i64) -> Result<f64> {
    let sql = "SELECT pg_catalog.avg(CASE WHEN a.chunk_ids = b.chunk_ids AND a.scores = b.scores THEN 1.0 ELSE 0.0 END)::double precision
                 FROM rag.run_list a JOIN rag.run_list b ON b.question_id = a.question_id AND b.stage = a.stage
                WHERE a.run_id = $1 AND b.run_id = $2 AND a.stage = 'final'";
    Ok(spi::select_one(sql, &[first.into(), second.into()], |row| row.optional(1))?.flatten().unwrap_or_default())
}

/// Deletes a run with all that it measured.
pub fn delete(id: i64) -> Result<()> {
    by_id(id)?;
    spi::execute("DELETE FROM rag.run WHERE id = $1", &[id.into()]).map(|_| ())
}

/// The values of a metric of a stage of a run, by question: its key, cluster, strata and value.
pub fn values(run: i64, stage: Stage, metric: &str) -> Result<Vec<(i64, Valued)>> {
    let sql = "SELECT m.question_id, coalesce(r.cluster, ''), r.strata, m.value
                 FROM rag.run_metric m JOIN rag.run_question r ON r.run_id = m.run_id AND r.question_id = m.question_id
                 JOIN rag.question q ON q.id = m.question_id
                WHERE m.run_id = $1 AND m.stage = $2 AND m.metric = $3 ORDER BY q.ordinal, q.id";
    let values = spi::select(sql, &[run.into(), stage.name().into(), metric.into()], |row| {
        let valued = Valued { cluster: row.get(2)?, strata: row.get(3)?, value: row.get(4)? };
        Ok((row.get(1)?, valued))
    })?;
    // A mean over those that are left would look like one over all.
    let sql = "SELECT questions FROM rag.run WHERE id = $1";
    let asked = spi::select_one(sql, &[run.into()], |row| row.get::<i32>(1))?.unwrap_or_default();
    if !values.is_empty() && values.len() != asked.unsigned_abs() as usize {
        let message = format!("run {run} has {metric} of {} of its {asked} questions", values.len());
        return Err(Error::new(Kind::NotReady, message).with_hint("Rows of it were deleted. Run it again."));
    }
    Ok(values)
}

/// The value of one question.
#[derive(Debug, Clone)]
pub struct Valued {
    /// Its cluster; empty when it stands alone.
    pub cluster: String,
    /// Its strata.
    pub strata: Vec<String>,
    /// The value.
    pub value: f64,
}
