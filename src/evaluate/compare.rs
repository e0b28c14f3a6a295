// SPDX-License-Identifier: PostgreSQL

//! Runs against each other, and legs within one.

use super::{comparable, interrupt};
use crate::spi;
use crate::store::run::{self, Kept};
use rag_core::error::unknown_key;
use rag_core::evaluation::complementarity::Complementarity;
use rag_core::evaluation::forensics::{Loss, losses};
use rag_core::evaluation::measure::names;
use rag_core::evaluation::significance::{self, Difference, Pair};
use rag_core::rank::trace::Stage;
use rag_core::{Error, Result};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// The difference of two runs in one stratum.
#[derive(Debug)]
pub struct Compared {
    /// The stratum; `None`: all questions.
    pub stratum: Option<String>,
    /// The metric, in its usual spelling.
    pub metric: String,
    /// What the values say.
    pub difference: Difference,
    /// Share of questions whose first result is another.
    pub churn: f64,
}

/// Compares two runs by metrics of their final rankings, over all questions and in each stratum.
pub fn compare(first: i64, second: i64, metrics: &[String], force: bool) -> Result<Vec<Compared>> {
    let (one, other) = (run::by_id(first)?, run::by_id(second)?);
    comparable(&one, &other, force)?;
    let changed = changed_first(first, second)?;
    let mut compared = Vec::new();
    for metric in metrics {
        let metric = known(metric)?;
        for (stratum, Paired { ids, pairs }) in paired(first, second, Stage::TopK, &metric)? {
            let Some(difference) = significance::compare(&pairs, &mut interrupt)? else { continue };
            let churn = ids.iter().filter(|id| changed.contains(id)).count() as f64 / pairs.len() as f64;
            compared.push(Compared { stratum, metric: metric.clone(), difference, churn });
        }
    }
    Ok(compared)
}

/// Questions with their values in two runs.
#[derive(Debug, Default)]
pub(super) struct Paired {
    /// Keys of the questions.
    pub ids: Vec<i64>,
    /// Their values, in the same order.
    pub pairs: Vec<Pair>,
}

/// The values of a metric of a stage that two runs have of the same questions, all of them (`None`) and by stratum.
pub(super) fn paired(first: i64, second: i64, stage: Stage, metric: &str) -> Result<BTreeMap<Option<String>, Paired>> {
    let before = run::values(first, stage, metric)?;
    let after: BTreeMap<i64, f64> =
        run::values(second, stage, metric)?.into_iter().map(|(id, valued)| (id, valued.value)).collect();
    let mut strata: BTreeMap<Option<String>, Paired> = BTreeMap::new();
    for (id, valued) in before {
        // Both runs asked the same questions, or the caller insists.
        let Some(value) = after.get(&id) else { continue };
        // No cluster of a question that stands alone may meet a cluster of that name.
        let cluster = match valued.cluster.as_str() {
            "" => format!("question {id}"),
            name => format!("cluster {name}"),
        };
        let pair = Pair { cluster, first: valued.value, second: *value };
        for stratum in std::iter::once(None).chain(valued.strata.into_iter().map(Some)) {
            let of = strata.entry(stratum).or_default();
            of.ids.push(id);
            of.pairs.push(pair.clone());
        }
    }
    Ok(strata)
}

/// The usual spelling of a metric.
fn known(metric: &str) -> Result<String> {
    let names = names(Stage::TopK);
    match names.iter().find(|name| name.eq_ignore_ascii_case(metric)) {
        Some(name) => Ok(name.clone()),
        None => Err(unknown_key("metric", metric, &names.iter().map(String::as_str).collect::<Vec<_>>())),
    }
}

/// Questions whose first result is not the same in both runs.
fn changed_first(first: i64, second: i64) -> Result<BTreeSet<i64>> {
    let sql = "SELECT a.question_id FROM rag.run_list a JOIN rag.run_list b ON b.question_id = a.question_id
                 JOIN rag.run_question r ON r.run_id = a.run_id AND r.question_id = a.question_id
                WHERE a.run_id = $1 AND b.run_id = $2 AND a.stage = 'final' AND b.stage = 'final'
                  AND CASE WHEN r.unit = 'document' THEN a.document_ids[1] IS DISTINCT FROM b.document_ids[1]
                           ELSE a.chunk_ids[1] IS DISTINCT FROM b.chunk_ids[1] END";
    Ok(spi::select(sql, &[first.into(), second.into()], |row| row.get(1))?.into_iter().collect())
}

/// What the two legs of a run found at one depth.
#[derive(Debug)]
pub struct Complemented {
    /// The depth.
    pub k: i32,
    /// Counts.
    pub counts: Complementarity,
}

/// How the legs of a run complement each other.
pub fn complementarity(id: i64, depths: &[i32]) -> Result<Vec<Complemented>> {
    run::by_id(id)?;
    let questions = run::questions(id)?;
    let both = |kept: &&Kept| kept.lists.contains_key(&Stage::Dense) && kept.lists.contains_key(&Stage::Bm25);
    if !questions.iter().any(|kept| both(&kept)) {
        return Err(Error::invalid(format!("run {id} has not both legs")).with_hint("Run it with mode hybrid."));
    }
    let mut complemented = Vec::new();
    for k in depths {
        let depth = usize::try_from(*k).ok().filter(|k| *k > 0);
        let depth = depth.ok_or_else(|| Error::invalid(format!("depth must be above 0, not {k}")))?;
        let mut counts = Complementarity::default();
        for kept in questions.iter().filter(both) {
            counts.add(&kept.judged, &kept.lists[&Stage::Dense], &kept.lists[&Stage::Bm25], depth);
        }
        complemented.push(Complemented { k: *k, counts });
    }
    Ok(complemented)
}

/// One gold that a run lost.
#[derive(Debug)]
pub struct Lost {
    /// The question.
    pub question: String,
    /// The gold.
    pub gold_id: i64,
    /// What became of it.
    pub loss: Loss,
    /// What stands in its place, with what is known of it.
    pub displaced_by: Value,
}

/// What is known of a chunk: role, source, URI.
type About = BTreeMap<i64, (Option<String>, String, String)>;

/// Gold that a run has not among its first `k`; with another run, only what that one had.
pub fn forensics(id: i64, k: i32, against: Option<i64>) -> Result<Vec<Lost>> {
    let depth = usize::try_from(k).ok().filter(|k| *k > 0);
    let depth = depth.ok_or_else(|| Error::invalid(format!("k must be above 0, not {k}")))?;
    let run = run::by_id(id)?;
    // By its place among the gold of its question: an import gives all gold new keys, and the same gold is in the same order.
    let mut had: Option<BTreeSet<(i64, usize)>> = None;
    if let Some(other) = against {
        comparable(&run::by_id(other)?, &run, false)?;
        let mut all = BTreeSet::new();
        for kept in run::questions(other)? {
            let lost: BTreeSet<usize> = losses(&kept.judged, &kept.lists, depth).iter().map(|l| l.gold).collect();
            let kept_gold = (0..kept.judged.gold.len()).filter(|at| !lost.contains(at));
            all.extend(kept_gold.map(|at| (kept.question_id, at)));
        }
        had = Some(all);
    }
    let mut lost = Vec::new();
    for kept in run::questions(id)? {
        for loss in losses(&kept.judged, &kept.lists, depth) {
            let gold_id = kept.gold_ids.get(loss.gold).copied().unwrap_or_default();
            if had.as_ref().is_none_or(|had| had.contains(&(kept.question_id, loss.gold))) {
                lost.push(Lost { question: kept.key.clone(), gold_id, loss, displaced_by: Value::Null });
            }
        }
    }
    let chunks: BTreeSet<i64> = lost.iter().flat_map(|l| l.loss.displaced_by.iter().map(|d| d.chunk)).collect();
    let about = about(chunks.into_iter().collect())?;
    for one in &mut lost {
        one.displaced_by = Value::Array(one.loss.displaced_by.iter().map(|d| {
            let (role, source, uri) = about.get(&d.chunk).cloned().unwrap_or_default();
            let margin = one.loss.score.map(|score| d.score - score);
            json!({"rank": d.rank, "chunk_id": d.chunk, "role": role, "source": source, "uri": uri, "score": d.score, "margin": margin})
        }).collect());
    }
    Ok(lost)
}

fn about(chunks: Vec<i64>) -> Result<About> {
    let sql = "SELECT c.id, coalesce(c.role, d.role), s.name, d.uri FROM rag.chunk c
                 JOIN rag.document d ON d.id = c.document_id JOIN rag.source s ON s.id = d.source_id WHERE c.id = ANY ($1)";
    let read = |row: &spi::Row| Ok((row.get(1)?, (row.optional(2)?, row.get(3)?, row.get(4)?)));
    Ok(spi::by_keys(|| spi::select::<(i64, (Option<String>, String, String))>(sql, &[chunks.into()], read))?
        .into_iter()
        .collect())
}
