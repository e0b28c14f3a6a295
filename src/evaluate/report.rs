// SPDX-License-Identifier: PostgreSQL

//! What a page about runs is made of, read with the caller's rights and by one snapshot.
//!
//! Owns no number: means are those of `rag.run_summary`, differences those of [`super::compare`], and the page is
//! [`rag_core::evaluation::report`]'s.

use super::compare::paired;
use super::{changed, interrupt};
use crate::spi;
use crate::store::question;
use crate::store::run;
use pgrx::JsonB;
use rag_core::evaluation::measure::names;
use rag_core::evaluation::report::{Against, Asked, Compared, MAIN, Mean, Measured, Report, Run};
use rag_core::evaluation::significance;
use rag_core::rank::trace::Stage;
use rag_core::{Error, Result};
use std::collections::BTreeMap;

/// The page about a run, or about it and another one.
pub fn report(id: i64, against: Option<i64>) -> Result<String> {
    spi::snapshot(|| {
        let this = run::by_id(id)?;
        let question_set = question::by_id(this.set_id)?.name;
        let against = against.map(|other| compared(other, &this)).transpose()?;
        Ok(Report { question_set, run: read(id)?, against }.page())
    })
}

/// Another run, and how the first differs from it.
fn compared(other: i64, this: &run::Run) -> Result<Against> {
    let changed = changed(&run::by_id(other)?, this)?.into_iter().map(str::to_owned).collect();
    let mut differences = Vec::new();
    for stage in Stage::ALL {
        for metric in names(stage) {
            for (stratum, paired) in paired(other, this.id, stage, &metric)? {
                if stratum.is_some() && (stage, metric.as_str()) != (Stage::TopK, MAIN) {
                    continue;
                }
                let difference = significance::compare(&paired.pairs, &mut interrupt)?;
                let of = |difference| Compared { stratum, stage, metric: metric.clone(), difference };
                differences.extend(difference.map(of));
            }
        }
    }
    Ok(Against { run: read(other)?, changed, differences })
}

/// A run with all that is told of it.
fn read(id: i64) -> Result<Run> {
    let sql = "SELECT name, profile, settings, top_k, questions, unanswerable, pg_catalog.encode(questions_sha256, 'hex'),
                      pg_catalog.encode(gold_sha256, 'hex'), index_state, model, model_sha256, extension_version, machine,
                      coalesce(pg_catalog.to_char(started AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS') || ' UTC', ''),
                      extract(epoch FROM finished - started)::double precision
                 FROM rag.run WHERE id = $1";
    let count = |number: i32| number.unsigned_abs() as usize;
    let of_row = |row: &spi::Row| {
        Ok(Run {
            id,
            name: row.optional(1)?,
            profile: row.get(2)?,
            settings: row.get::<JsonB>(3)?.0,
            top_k: count(row.get(4)?),
            questions: count(row.get(5)?),
            unanswerable: count(row.get(6)?),
            questions_sha256: row.get(7)?,
            gold_sha256: row.get(8)?,
            index_state: row.get::<JsonB>(9)?.0,
            model: row.get(10)?,
            model_sha256: row.optional(11)?,
            extension_version: row.get(12)?,
            machine: row.get::<JsonB>(13)?.0,
            started: row.get(14)?,
            seconds: row.get(15)?,
            means: Vec::new(),
            asked: Vec::new(),
        })
    };
    let run = spi::select_one(sql, &[id.into()], of_row)?;
    let run = run.ok_or_else(|| Error::internal(format!("run {id} is gone")))?;
    Ok(Run { means: means(id)?, asked: asked(id)?, ..run })
}

fn means(id: i64) -> Result<Vec<Mean>> {
    let sql = "SELECT stratum, stage, metric, value, questions FROM rag.run_summary WHERE run_id = $1 ORDER BY 1 NULLS FIRST, 2, 3";
    spi::select(sql, &[id.into()], |row| {
        Ok(Mean {
            stratum: row.optional(1)?,
            stage: Stage::parse(&row.get::<String>(2)?)?,
            metric: row.get(3)?,
            value: row.get(4)?,
            questions: row.get::<i64>(5)?.unsigned_abs() as usize,
        })
    })
}

fn asked(id: i64) -> Result<Vec<Asked>> {
    let values: BTreeMap<i64, f64> =
        run::values(id, Stage::TopK, MAIN)?.into_iter().map(|(question, valued)| (question, valued.value)).collect();
    let measured = |kept: run::Kept| {
        let value = values.get(&kept.question_id).copied();
        (kept.question_id, Measured { judged: kept.judged, lists: kept.lists, value })
    };
    let mut measured: BTreeMap<i64, Measured> = run::questions(id)?.into_iter().map(measured).collect();
    let sql =
        "SELECT q.id, q.key, q.text, r.strata, r.top_score, r.embed_ms, r.dense_ms, r.bm25_ms, r.fusion_ms, r.total_ms
                 FROM rag.run_question r JOIN rag.question q ON q.id = r.question_id
                WHERE r.run_id = $1 ORDER BY q.ordinal, q.id";
    spi::select(sql, &[id.into()], |row| {
        let question = row.get(1)?;
        Ok(Asked {
            id: question,
            key: row.get(2)?,
            text: row.get(3)?,
            strata: row.get(4)?,
            measured: measured.remove(&question),
            top_score: row.optional(5)?,
            times: [row.get(6)?, row.get(7)?, row.get(8)?, row.get(9)?, row.get(10)?],
        })
    })
}
