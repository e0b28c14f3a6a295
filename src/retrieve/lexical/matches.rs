// SPDX-License-Identifier: PostgreSQL

//! Every chunk that has a term of the query, scored.
//!
//! The GIN index on `tsv` gives the matches, their forward data gives tf, and df, N and the mean length are counted over
//! what the caller may see in the collection, whatever the filter says. This is linear in the number of matches; it is
//! exact and simple, which makes it the oracle of the index. So is the vocabulary, which is counted over the same passages.

use super::{Ranked, Terms};
use crate::retrieve::filter::{self, Eligible};
use crate::spi;
use crate::store::collection::Collection;
use rag_core::Result;
use rag_core::lexical::bm25::{Scorer, Statistics};
use rag_core::lexical::tsquery;

/// The best `limit` chunks, and the counts behind their scores.
pub fn search(collection: &Collection, eligible: &Eligible<'_>, terms: &Terms, limit: usize) -> Result<Ranked> {
    let mut scorer = Scorer::new(&terms.names);
    if let Some(any) = tsquery::any_of(&terms.names) {
        let mut args = vec![collection.id.into(), any.into()];
        let condition = eligible.compile(&mut args)?;
        let sql = format!(
            "SELECT c.id, c.dl, pg_catalog.tsvectorsend(c.tsv), coalesce({}, false)
               FROM rag.chunk c{}
              WHERE c.collection_id = $1 AND c.current AND c.tsv @@ $2::tsquery",
            condition.sql, condition.joins
        );
        spi::each(&sql, &args, |row| {
            scorer.add(row.get(1)?, row.get::<i32>(2)?.unsigned_abs(), row.get(3)?, row.get(4)?)
        })?;
    }
    let population = statistics(collection)?;
    let query = terms.query(scorer.dfs(), population, limit);
    let scored = scorer.finish(population, &terms.weights).into_iter().take(limit);
    Ok((scored.map(|s| (s.id, s.score)).collect(), query))
}

fn statistics(collection: &Collection) -> Result<Statistics> {
    let sql = format!(
        "SELECT pg_catalog.count(*), coalesce(pg_catalog.sum(c.dl), 0)::bigint FROM rag.chunk c{}
          WHERE c.collection_id = $1 AND c.current",
        filter::visibility_joins()?
    );
    let found = spi::select_one(&sql, &[collection.id.into()], |row| {
        Ok(Statistics { documents: row.get::<i64>(1)?.unsigned_abs(), total_dl: row.get::<i64>(2)?.unsigned_abs() })
    })?;
    Ok(found.unwrap_or_default())
}

/// The terms of what the caller sees that begin like one of `starts`, in byte order.
pub fn vocabulary(collection: &Collection, starts: Vec<String>) -> Result<Vec<(String, u64)>> {
    let sql = format!(
        "SELECT u.lexeme, pg_catalog.count(*) FROM rag.chunk c{}
          CROSS JOIN LATERAL pg_catalog.unnest(c.tsv) u
          WHERE c.collection_id = $1 AND c.current AND u.lexeme ^@ ANY($2)
          GROUP BY u.lexeme ORDER BY u.lexeme COLLATE \"C\"",
        filter::visibility_joins()?
    );
    spi::select(&sql, &[collection.id.into(), starts.into()], |row| {
        Ok((row.get(1)?, row.get::<i64>(2)?.unsigned_abs()))
    })
}
