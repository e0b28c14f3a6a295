// SPDX-License-Identifier: PostgreSQL

//! The best chunks by the index.
//!
//! The segments are those of the caller's labels, and a snapshot sees a segment exactly when it sees the chunks in it, so
//! what the index finds without a filter is the answer, and `rag.chunk` is not looked at. With a filter, the best are looked
//! at first (or those that have the phrases of the query, which are known beforehand), and if too few of them are eligible,
//! either what is eligible is few and is found first, or it is many and the search goes deeper; so a search ends with as many
//! as there are.

use super::{Ranked, Terms};
use crate::retrieve::filter::{self, Eligible};
use crate::spi;
use crate::store::collection::Collection;
use crate::store::lexical::population::{self, Labels, Population};
use pgrx::check_for_interrupts;
use rag_core::Result;
use rag_core::lexical::topk::Hit;
use std::collections::HashSet;

/// So many eligible chunks are found before the search rather than after it.
const SELECTIVE: i64 = 20_000;

/// One in so many of the best is eligible, or counting all that are comes before going deeper.
const RARE: usize = 10;

/// How much deeper each further step goes.
const DEEPER: usize = 4;

/// The segments of what the caller sees; `None` when the index has no answer.
pub fn population(collection: &Collection, memory: usize) -> Result<Option<Population>> {
    let Some(labels) = labels()? else { return Ok(None) };
    let population = population::load(collection.id, labels, memory)?;
    let usable = population::is_usable(collection.id, &population.index, population.index.strays())?;
    Ok(usable.then_some(population))
}

/// The best `limit` chunks and the counts behind their scores.
pub fn search(
    population: &Population,
    collection: &Collection,
    eligible: &Eligible<'_>,
    terms: &Terms,
    limit: usize,
) -> Result<Ranked> {
    let opened = population.index.open(&terms.names, population.cache())?;
    let mut query = terms.query(opened.dfs(), population.index.population(), limit);
    let mut interrupt = || {
        check_for_interrupts!();
        Ok(())
    };
    let mut found: Vec<(i64, f64)> = Vec::new();
    let mut allow = match eligible {
        Eligible::Only(passages) => Some(passages.entries()),
        Eligible::Filter(_) => None,
    };
    // Without a filter all that is seen is found.
    let (mut seen, mut counted) = (0, eligible.is_all());
    loop {
        let hits = opened.search(&query, allow.as_deref(), &mut interrupt)?;
        // Those that are allowed are eligible, so the best of them are the best.
        let known = allow.is_some() || eligible.is_all();
        found.extend(if known { all(&hits) } else { passing(collection, eligible, &hits)? });
        if found.len() >= limit || hits.len() < query.k || allow.is_some() {
            break;
        }
        seen += hits.len();
        if !counted && found.len() * RARE < seen {
            counted = true;
            allow = few(collection, eligible)?;
        }
        if allow.is_some() {
            // From the beginning, because what was found so far is among it.
            found.clear();
            (query.after, query.k) = (None, limit);
        } else {
            query.after = hits.last().copied();
            query.k *= DEEPER;
        }
    }
    found.truncate(limit);
    Ok((found, query))
}

/// Whose documents the caller sees, if labels are all that decides it.
pub fn labels() -> Result<Option<Labels>> {
    // What the administrator decides by policies of his own, nobody has counted.
    let sql = format!(
        "SELECT {}, pg_catalog.row_security_active('rag.chunk'::regclass),
                pg_catalog.has_table_privilege('rag.chunk'::regclass, 'SELECT')",
        filter::foreign_policies("'rag.chunk'::regclass, 'rag.document'::regclass, 'rag.source'::regclass")
    );
    let found = spi::select_one(&sql, &[], |row| Ok((row.get(1)?, row.get(2)?, row.get(3)?)))?;
    match found {
        Some((false, true, true)) => {
            let labels = spi::select("SELECT DISTINCT a.label FROM rag.acl a ORDER BY 1", &[], |row| row.get(1))?;
            Ok(Some(Labels::Of(labels)))
        }
        Some((false, false, true)) => Ok(Some(Labels::All)),
        // Without the right to read, the other way says so.
        _ => Ok(None),
    }
}

fn all(hits: &[Hit]) -> Vec<(i64, f64)> {
    hits.iter().map(|h| (h.id, h.score)).collect()
}

/// The hits that are eligible, in their order.
fn passing(collection: &Collection, eligible: &Eligible<'_>, hits: &[Hit]) -> Result<Vec<(i64, f64)>> {
    if hits.is_empty() {
        return Ok(Vec::new());
    }
    let keys: Vec<i64> = hits.iter().map(|h| h.id).collect();
    let mut args = vec![collection.id.into(), keys.into()];
    let condition = eligible.compile(&mut args)?;
    let sql = format!(
        "SELECT c.id FROM rag.chunk c{} WHERE c.id = ANY($2) AND c.collection_id = $1 AND c.current AND {}",
        condition.joins, condition.sql
    );
    let eligible: HashSet<i64> = spi::by_values(|| spi::select(&sql, &args, |row| row.get(1)))?.into_iter().collect();
    Ok(hits.iter().filter(|h| eligible.contains(&h.id)).map(|h| (h.id, h.score)).collect())
}

/// The entries of all eligible chunks, if they are few.
fn few(collection: &Collection, eligible: &Eligible<'_>) -> Result<Option<Vec<i64>>> {
    let mut args = vec![collection.id.into(), (SELECTIVE + 1).into()];
    let condition = eligible.compile(&mut args)?;
    let sql = format!(
        "SELECT c.entry FROM rag.chunk c{} WHERE c.collection_id = $1 AND c.current AND {} LIMIT $2",
        condition.joins, condition.sql
    );
    let mut entries: Vec<i64> = spi::by_values(|| spi::select(&sql, &args, |row| row.get(1)))?;
    entries.sort_unstable();
    Ok((entries.len() as i64 <= SELECTIVE).then_some(entries))
}
