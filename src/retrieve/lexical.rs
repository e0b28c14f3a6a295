// SPDX-License-Identifier: PostgreSQL

//! The BM25 leg: every chunk that has a term of the query, scored exactly.
//!
//! The GIN index on `tsv` gives the matches, their forward data gives tf, and df, N and the mean length are counted over
//! what the caller may see in the collection, whatever the filter says. This is linear in the number of matches; it is
//! exact and simple, which makes it the oracle of any faster leg.

use super::filter;
use crate::spi;
use crate::store::collection::Collection;
use crate::store::source;
use rag_core::Result;
use rag_core::lexical::bm25::{Scored, Scorer, Statistics};
use rag_core::lexical::tsquery;
use rag_core::query::Request;

/// What the leg found.
#[derive(Debug, Default)]
pub struct Bm25 {
    /// All eligible matches, best first.
    pub found: Vec<Scored>,
    /// Sources whose text search configuration was dropped, with its name: the query was not read by it.
    pub without_config: Vec<(String, String)>,
}

/// Runs the leg.
pub fn search(collection: &Collection, request: &Request) -> Result<Bm25> {
    let source::Configs { usable, missing: without_config } = source::configs(collection.id)?;
    let terms = terms(usable, &request.query)?;
    let Some(any) = tsquery::any_of(&terms) else { return Ok(Bm25 { without_config, ..Bm25::default() }) };
    let mut args = vec![collection.id.into(), any.into()];
    let condition = filter::compile(&request.filter, &mut args)?;
    let sql = format!(
        "SELECT c.id, c.dl, pg_catalog.tsvectorsend(c.tsv), coalesce({}, false)
           FROM rag.chunk c{}
          WHERE c.collection_id = $1 AND c.current AND c.tsv @@ $2::tsquery",
        condition.sql, condition.joins
    );
    let mut scorer = Scorer::new(&terms);
    spi::each(&sql, &args, |row| scorer.add(row.get(1)?, row.get::<i32>(2)?.unsigned_abs(), row.get(3)?, row.get(4)?))?;
    Ok(Bm25 { found: scorer.finish(statistics(collection)?), without_config })
}

/// Distinct lexemes of the query, by every text search configuration of the collection.
fn terms(configs: Vec<String>, query: &str) -> Result<Vec<String>> {
    let sql = "SELECT DISTINCT u.lexeme FROM unnest($1::text[]) AS g (config),
                      unnest(pg_catalog.to_tsvector(g.config::pg_catalog.regconfig, $2)) AS u ORDER BY 1";
    spi::select(sql, &[configs.into(), query.into()], |row| row.get(1))
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
