// SPDX-License-Identifier: PostgreSQL

//! The dense leg: nearest chunks by cosine. The only file that names pgvector's operators.
//!
//! Where all may be found the HNSW index of the collection is scanned, iteratively, so that invisible rows do not shrink the
//! result; with a filter or phrases, with `exact`, or when the index gives fewer rows than wanted, all vectors that pass are
//! compared. Scores are cosine similarities of half-precision vectors either way.

use super::filter::{self, Eligible};
use crate::inference::Embedded;
use crate::spi;
use crate::store::collection::{self, Collection};
use rag_core::query::Request;
use rag_core::{Error, Result};

/// pgvector's bounds of hnsw.ef_search.
const EF_SEARCH: (u32, u32) = (40, 1000);

/// What the dense leg found.
#[derive(Debug)]
pub struct Dense {
    /// Chunk and cosine similarity, best first; ties by chunk.
    pub found: Vec<(i64, f64)>,
    /// Whether the query was cut at the window of the model.
    pub query_cut: bool,
    vector: Vec<f32>,
    schema: String,
}

/// A vector given by the caller, if it fits the collection's model, made of length 1.
pub fn checked(collection: &Collection, vector: Vec<f32>) -> Result<Vec<f32>> {
    let wanted = collection.model.spec.dimensions as usize;
    if vector.len() != wanted {
        return Err(Error::invalid(format!(
            "query_embedding has {} dimensions and model \"{}\" has {wanted}",
            vector.len(),
            collection.model.spec.name
        )));
    }
    // Half-precision numbers hold neither very small nor very large ones, and a cosine does not ask for the length.
    let length = vector.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>().sqrt();
    if length == 0.0 || !length.is_finite() {
        return Err(Error::invalid("query_embedding is zero everywhere, so no cosine is defined"));
    }
    Ok(vector.iter().map(|x| (f64::from(*x) / length) as f32).collect())
}

impl Dense {
    /// Finds the nearest `candidate_k` chunks that are eligible.
    pub fn search(
        collection: &Collection,
        request: &Request,
        eligible: &Eligible<'_>,
        query: Embedded,
    ) -> Result<Self> {
        let schema = collection::vector_schema()?;
        let mut dense = Self { found: Vec::new(), query_cut: query.1, vector: query.0, schema };
        dense.found = dense.find(collection, request, eligible, request.settings.candidate_k as usize)?;
        Ok(dense)
    }

    /// The nearest `wanted` chunks that are eligible, best first.
    pub fn find(
        &self,
        collection: &Collection,
        request: &Request,
        eligible: &Eligible<'_>,
        wanted: usize,
    ) -> Result<Vec<(i64, f64)>> {
        if !request.settings.exact && eligible.is_all() {
            let found = self.by_index(collection, wanted)?;
            if found.len() >= wanted {
                return Ok(found);
            }
        }
        self.exactly(collection, eligible, wanted)
    }

    /// Distance of a row's vector `e.embedding` to the parameter $1.
    fn distance(&self, collection: &Collection) -> String {
        let (schema, dimensions) = (&self.schema, collection.model.spec.dimensions);
        format!(
            "(e.embedding::{schema}.halfvec({dimensions})) OPERATOR({schema}.<=>) \
             $1::real[]::{schema}.halfvec({dimensions})"
        )
    }

    fn by_index(&self, collection: &Collection, wanted: usize) -> Result<Vec<(i64, f64)>> {
        let (model_id, collection_id) = (collection.model.id, collection.id);
        // The keys stand in the text because only constants match the predicate of a partial index. No second sort key:
        // it would keep the planner from the index. Ties are put in order outside.
        let sql = format!(
            "SELECT n.chunk_id, 1 - n.distance FROM (
               SELECT e.chunk_id, {distance} AS distance
                 FROM rag.chunk_embedding e JOIN rag.chunk c ON c.id = e.chunk_id{joins}
                WHERE e.model_id = {model_id} AND e.collection_id = {collection_id} AND c.current
                ORDER BY {distance} LIMIT {wanted}) n
              ORDER BY n.distance, n.chunk_id",
            distance = self.distance(collection),
            joins = filter::visibility_joins()?,
        );
        let ef_search = (wanted as u32).clamp(EF_SEARCH.0, EF_SEARCH.1).to_string();
        let settings =
            [(c"hnsw.ef_search", ef_search.as_str()), (c"hnsw.iterative_scan", "strict_order"), (c"jit", "off")];
        spi::with_settings(&settings, || spi::select(&sql, &[self.vector.clone().into()], pair))
    }

    fn exactly(&self, collection: &Collection, eligible: &Eligible<'_>, wanted: usize) -> Result<Vec<(i64, f64)>> {
        let mut args = vec![self.vector.clone().into(), collection.model.id.into(), collection.id.into()];
        let condition = eligible.compile(&mut args)?;
        // The offset keeps the planner from pushing the order into the subquery, where an index could serve it.
        let sql = format!(
            "SELECT n.chunk_id, 1 - n.distance FROM (
               SELECT e.chunk_id, {distance} AS distance
                 FROM rag.chunk_embedding e JOIN rag.chunk c ON c.id = e.chunk_id{joins}
                WHERE e.model_id = $2 AND e.collection_id = $3 AND c.current AND {condition} OFFSET 0) n
              ORDER BY n.distance, n.chunk_id LIMIT {wanted}",
            distance = self.distance(collection),
            joins = condition.joins,
            condition = condition.sql,
        );
        spi::with_settings(&[(c"jit", "off")], || spi::select(&sql, &args, pair))
    }

    /// Cosine similarities of given chunks; one that has no vector is left out.
    pub fn scores_of(&self, collection: &Collection, ids: Vec<i64>) -> Result<Vec<(i64, f64)>> {
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let sql = format!(
            "SELECT e.chunk_id, 1 - ({}) FROM rag.chunk_embedding e WHERE e.model_id = $2 AND e.chunk_id = ANY($3)",
            self.distance(collection)
        );
        spi::select(&sql, &[self.vector.clone().into(), collection.model.id.into(), ids.into()], pair)
    }
}

fn pair(row: &spi::Row) -> Result<(i64, f64)> {
    Ok((row.get(1)?, row.get(2)?))
}
