// SPDX-License-Identifier: PostgreSQL

//! The scores of whole documents.
//!
//! A document is the sum of its passages that the caller sees, whatever the filter says: tf, df, N and the mean length are
//! those of documents. The index knows them by the pieces in its segments of documents; where it has no answer, all passages
//! that match are read and added up. Only the documents that are asked for are scored.

use super::{Terms, indexed};
use crate::retrieve::filter;
use crate::spi;
use crate::store::collection::Collection;
use crate::store::lexical::population;
use pgrx::check_for_interrupts;
use rag_core::Result;
use rag_core::lexical::bm25::Statistics;
use rag_core::lexical::maxscore::Weights;
use rag_core::lexical::{tsquery, tsvector};
use std::collections::HashMap;

/// The scores of `documents`, which ascend; those that have no term are left out.
pub fn scores(collection: &Collection, terms: &Terms, documents: &[i64], memory: usize) -> Result<HashMap<i64, f64>> {
    match by_index(collection, terms, documents, memory)? {
        Some(scores) => Ok(scores),
        None => spi::by_values(|| by_matches(collection, terms, documents)),
    }
}

fn by_index(
    collection: &Collection,
    terms: &Terms,
    documents: &[i64],
    memory: usize,
) -> Result<Option<HashMap<i64, f64>>> {
    let Some(labels) = indexed::labels()? else { return Ok(None) };
    // Pieces do not show by themselves that some were never written; the entries of passages do.
    let passages = population::load(collection.id, labels.clone(), memory)?.index;
    let population = population::load_documents(collection.id, labels, memory)?;
    if !population::is_usable(collection.id, &passages, passages.strays() + population.index.strays())? {
        return Ok(None);
    }
    let opened = population.index.open(&terms.names, population.cache())?;
    let query = terms.query(opened.dfs(), opened.population(), documents.len());
    let hits = opened.search(&query, Some(documents), &mut || {
        check_for_interrupts!();
        Ok(())
    })?;
    Ok(Some(hits.into_iter().map(|hit| (hit.id, hit.score)).collect()))
}

fn by_matches(collection: &Collection, terms: &Terms, documents: &[i64]) -> Result<HashMap<i64, f64>> {
    let Some(any) = tsquery::any_of(&terms.names) else { return Ok(HashMap::new()) };
    let places: HashMap<&[u8], usize> = terms.names.iter().map(String::as_bytes).zip(0..).collect();
    let visible = filter::visibility_joins()?;
    let mut tfs: HashMap<i64, Vec<u32>> = HashMap::new();
    let sql = format!(
        "SELECT c.document_id, pg_catalog.tsvectorsend(c.tsv) FROM rag.chunk c{visible}
          WHERE c.collection_id = $1 AND c.current AND c.tsv @@ $2::tsquery"
    );
    spi::each(&sql, &[collection.id.into(), any.into()], |row| {
        let of = tfs.entry(row.get(1)?).or_insert_with(|| vec![0; terms.names.len()]);
        tsvector::for_each(&row.get::<Vec<u8>>(2)?, |lexeme, tf| {
            if let Some(place) = places.get(lexeme) {
                of[*place] = of[*place].saturating_add(tf);
            }
        })
    })?;
    let sql = format!(
        "SELECT pg_catalog.count(DISTINCT c.document_id), coalesce(pg_catalog.sum(c.dl), 0)::bigint
           FROM rag.chunk c{visible} WHERE c.collection_id = $1 AND c.current"
    );
    let population = spi::select_one(&sql, &[collection.id.into()], |row| {
        Ok(Statistics { documents: row.get::<i64>(1)?.unsigned_abs(), total_dl: row.get::<i64>(2)?.unsigned_abs() })
    })?;
    let sql = format!(
        "SELECT c.document_id, pg_catalog.sum(c.dl)::bigint FROM rag.chunk c{visible}
          WHERE c.collection_id = $1 AND c.current AND c.document_id = ANY($2) GROUP BY 1"
    );
    let lengths: Vec<(i64, i64)> =
        spi::select(&sql, &[collection.id.into(), documents.to_vec().into()], |row| Ok((row.get(1)?, row.get(2)?)))?;
    let has = |term: usize| tfs.values().filter(|of| of[term] > 0).count() as u64;
    let dfs: Vec<u64> = (0..terms.names.len()).map(has).collect();
    let weights = Weights::new(&terms.query(&dfs, population.unwrap_or_default(), documents.len()))?;
    let score = |(id, dl): (i64, i64)| {
        let of = tfs.get(&id)?;
        Some((id, weights.score(of, u32::try_from(dl).unwrap_or(u32::MAX))))
    };
    Ok(lengths.into_iter().filter_map(score).collect())
}
