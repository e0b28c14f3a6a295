// SPDX-License-Identifier: PostgreSQL

//! What a collection and a run's gold decide before retrieval does: repeated texts, close contenders, unjudged results.
//!
//! Thin: what a near-duplicate is, is [`rag_core::near_duplicate`]'s; what is counted, [`rag_core::evaluation::diagnosis`]'s.

use crate::spi;
use crate::store::run;
use pgrx::check_for_interrupts;
use rag_core::error::unknown_key;
use rag_core::evaluation::diagnosis::{Diagnosis, diagnose};
use rag_core::evaluation::order::Unit;
use rag_core::near_duplicate::{self, Shingles, Signature};
use rag_core::rank::trace::Stage;
use rag_core::{Error, Kind, Result};
use std::collections::{BTreeMap, BTreeSet};

/// Signatures that are held at once, half a kibibyte each.
const MAX_TEXTS: usize = 400_000;

/// Two texts that say nearly the same; the lower id first.
#[derive(Debug, Clone, PartialEq)]
pub struct Pair {
    /// Documents, or chunks.
    pub ids: (i64, i64),
    /// How much of their shingles is common, from 0 to 1.
    pub resemblance: f64,
}

/// The unit of a name.
pub fn unit(name: &str) -> Result<Unit> {
    match name {
        "document" => Ok(Unit::Document),
        "chunk" => Ok(Unit::Chunk),
        other => Err(unknown_key("unit", other, &["document", "chunk"])),
    }
}

/// A resemblance or share as the caller gave it.
pub fn share(name: &str, value: f64) -> Result<f64> {
    match value > 0.0 && value <= 1.0 {
        true => Ok(value),
        false => Err(Error::invalid(format!("{name} must be above 0 and at most 1, not {value}"))),
    }
}

/// A statement for ids and texts of a collection's documents or chunks, and one for the text of one of them.
fn statements(unit: Unit) -> (&'static str, &'static str) {
    match unit {
        Unit::Chunk => (
            "SELECT c.id, c.content FROM rag.chunk c WHERE c.collection_id = $1 AND c.current",
            "SELECT c.content FROM rag.chunk c WHERE c.id = $1",
        ),
        Unit::Document => (
            "SELECT c.document_id, pg_catalog.string_agg(c.content, E'\\n' ORDER BY c.ordinal, c.id)
               FROM rag.chunk c WHERE c.collection_id = $1 AND c.current GROUP BY c.document_id",
            "SELECT pg_catalog.string_agg(c.content, E'\\n' ORDER BY c.ordinal, c.id)
               FROM rag.chunk c WHERE c.document_id = $1 AND c.current",
        ),
    }
}

/// Pairs of a collection's documents or chunks whose resemblance is at least so much, as the caller sees them.
pub fn near_duplicates(collection_id: i64, unit: Unit, least: f64) -> Result<Vec<Pair>> {
    let (all, one) = statements(unit);
    let mut signatures: BTreeMap<i64, Signature> = BTreeMap::new();
    spi::each(all, &[collection_id.into()], |row| {
        check_for_interrupts!();
        if let Some(signature) = Shingles::of(&row.get::<String>(2)?).signature() {
            signatures.insert(row.get(1)?, signature);
        }
        if signatures.len() > MAX_TEXTS {
            let message = format!("the collection has more than {MAX_TEXTS} texts to compare");
            let error = Error::new(Kind::LimitExceeded, message);
            return Err(match unit {
                Unit::Chunk => error.with_hint("Compare whole documents with unit => 'document'."),
                Unit::Document => error,
            });
        }
        Ok(())
    })?;
    let shingles = |id: i64| -> Result<Shingles> {
        let text = spi::select_one(one, &[id.into()], |row| row.optional::<String>(1))?.flatten();
        Ok(Shingles::of(&text.unwrap_or_default()))
    };
    let candidates = near_duplicate::candidates(&signatures);
    drop(signatures);
    let mut pairs = Vec::new();
    for of_first in candidates.chunk_by(|a, b| a.0 == b.0) {
        let first = shingles(of_first[0].0)?;
        for ids in of_first {
            check_for_interrupts!();
            let resemblance = first.resemblance(&shingles(ids.1)?);
            if resemblance >= least {
                pairs.push(Pair { ids: *ids, resemblance });
            }
        }
    }
    Ok(pairs)
}

/// What was found of one question at one stage.
#[derive(Debug)]
pub struct Diagnosed {
    /// The question.
    pub question: String,
    /// The stage.
    pub stage: Stage,
    /// What is counted of its list.
    pub diagnosis: Diagnosis,
    /// Items that are not relevant and nearly the same as one that is.
    pub near_duplicates: usize,
}

/// Diagnoses each question of a run at each of its stages.
pub fn diagnosis(run_id: i64, collection_id: i64, k: u32, least: f64, contender: f64) -> Result<Vec<Diagnosed>> {
    let questions = run::questions(run_id)?;
    let units: Vec<Unit> = [Unit::Document, Unit::Chunk]
        .into_iter()
        .filter(|unit| questions.iter().any(|q| q.judged.unit == *unit))
        .collect();
    let mut twins: Vec<(Unit, BTreeMap<i64, BTreeSet<i64>>)> = Vec::new();
    for unit in units {
        let mut of: BTreeMap<i64, BTreeSet<i64>> = BTreeMap::new();
        for pair in near_duplicates(collection_id, unit, least)? {
            of.entry(pair.ids.0).or_default().insert(pair.ids.1);
            of.entry(pair.ids.1).or_default().insert(pair.ids.0);
        }
        twins.push((unit, of));
    }
    let mut diagnosed = Vec::new();
    for kept in &questions {
        let of = twins.iter().find(|(unit, _)| *unit == kept.judged.unit).map(|(_, of)| of);
        let relevant = |id: &i64| kept.judged.grades.get(id).is_some_and(|grade| *grade >= 1);
        let gold = kept.judged.grades.keys().filter(|id| relevant(id));
        let same: BTreeSet<i64> = gold.filter_map(|id| of?.get(id)).flatten().copied().collect();
        let near_duplicates = same.iter().filter(|id| !relevant(id)).count();
        for (stage, list) in &kept.lists {
            let filled = kept.filled.get(stage).map(Vec::as_slice).unwrap_or_default();
            let diagnosis = diagnose(&kept.judged, list, filled, k, contender);
            diagnosed.push(Diagnosed { question: kept.key.clone(), stage: *stage, diagnosis, near_duplicates });
        }
    }
    Ok(diagnosed)
}

/// Names of documents and the sources of them, or of the documents of chunks with their places.
pub fn names(unit: Unit, ids: Vec<i64>) -> Result<BTreeMap<i64, String>> {
    let sql = match unit {
        Unit::Document => "SELECT d.id, d.uri FROM rag.document d WHERE d.id = ANY ($1)",
        Unit::Chunk => {
            "SELECT c.id, d.uri || '#' || c.ordinal FROM rag.chunk c JOIN rag.document d ON d.id = c.document_id WHERE c.id = ANY ($1)"
        }
    };
    let read = |row: &spi::Row| Ok((row.get(1)?, row.get(2)?));
    Ok(spi::by_keys(|| spi::select::<(i64, String)>(sql, &[ids.into()], read))?.into_iter().collect())
}
