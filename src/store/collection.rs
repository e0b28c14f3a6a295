// SPDX-License-Identifier: PostgreSQL

//! Table `rag.collection`, and the HNSW index that belongs to each row.

use crate::spi;
use crate::store::model::{self, Model};
use rag_core::{Error, Kind, Result};

/// A collection with its model.
#[derive(Debug, Clone)]
pub struct Collection {
    /// Key.
    pub id: i64,
    /// Name.
    pub name: String,
    /// Model of the dense leg.
    pub model: Model,
}

/// The collection of a name.
pub fn by_name(name: &str) -> Result<Collection> {
    let sql = "SELECT id, name, model_id FROM rag.collection WHERE name = $1";
    let found = spi::select_one(sql, &[name.into()], |r| Ok((r.get(1)?, r.get(2)?, r.get(3)?)))?;
    let Some((id, name, model_id)) = found else {
        let existing = super::names("SELECT name FROM rag.collection ORDER BY name")?;
        return Err(super::not_found("collection", name, &existing));
    };
    Ok(Collection { id, name, model: model::by_id(model_id)? })
}

/// The collection of a key.
pub fn by_id(id: i64) -> Result<Collection> {
    let sql = "SELECT name FROM rag.collection WHERE id = $1";
    let name: Option<String> = spi::select_one(sql, &[id.into()], |r| r.get(1))?;
    by_name(&name.ok_or_else(|| Error::internal(format!("collection {id} does not exist")))?)
}

/// Adds a collection with its HNSW index and returns its key.
pub fn insert(name: &str, model: &Model) -> Result<i64> {
    let sql = "INSERT INTO rag.collection (name, model_id) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING RETURNING id";
    let id: i64 = spi::write(sql, &[name.into(), model.id.into()], |r| r.get(1))?
        .pop()
        .ok_or_else(|| Error::new(Kind::AlreadyExists, format!("collection \"{name}\" already exists")))?;
    let vector = vector_schema()?;
    let (model_id, dimensions) = (model.id, model.spec.dimensions);
    spi::execute(
        &format!(
            "CREATE INDEX {index} ON rag.chunk_embedding
             USING hnsw ((embedding::{vector}.halfvec({dimensions})) {vector}.halfvec_cosine_ops)
             WHERE model_id = {model_id} AND collection_id = {id}",
            index = index_name(id, model_id),
        ),
        &[],
    )?;
    Ok(id)
}

/// Removes an empty collection and its index.
pub fn delete(collection: &Collection) -> Result<()> {
    if collection.id < 100 {
        return Err(Error::invalid(format!("collection \"{}\" is built in", collection.name)));
    }
    let sql = "SELECT name FROM rag.source WHERE collection_id = $1 ORDER BY name";
    let sources: Vec<String> = spi::select(sql, &[collection.id.into()], |r| r.get(1))?;
    if let Some(first) = sources.first() {
        return Err(Error::new(Kind::NotReady, format!("collection \"{}\" has sources", collection.name))
            .with_detail(format!("Its sources: {}.", sources.join(", ")))
            .with_hint(format!("Drop them first: SELECT rag.drop_source({});", pgrx::spi::quote_literal(first))));
    }
    spi::execute(&format!("DROP INDEX IF EXISTS rag.{}", index_name(collection.id, collection.model.id)), &[])?;
    spi::execute("DELETE FROM rag.collection WHERE id = $1", &[collection.id.into()])?;
    Ok(())
}

/// Whether a collection lacks its HNSW index, as after a restore.
pub fn any_without_index() -> Result<bool> {
    let sql = "SELECT EXISTS (SELECT FROM rag.collection c
                 WHERE pg_catalog.to_regclass(
                    pg_catalog.format('rag.chunk_embedding_hnsw_%s_%s', c.id, c.model_id)) IS NULL)";
    Ok(spi::select_one(sql, &[], |r| r.get(1))?.unwrap_or(false))
}

fn index_name(collection_id: i64, model_id: i64) -> String {
    format!("chunk_embedding_hnsw_{collection_id}_{model_id}")
}

/// The quoted schema of pgvector, which operators and types must be qualified with.
pub fn vector_schema() -> Result<String> {
    let sql = "SELECT pg_catalog.quote_ident(n.nspname) FROM pg_catalog.pg_extension e
                 JOIN pg_catalog.pg_namespace n ON n.oid = e.extnamespace WHERE e.extname = 'vector'";
    spi::select_one(sql, &[], |r| r.get(1))?.ok_or_else(|| {
        Error::new(Kind::NotFound, "extension \"vector\" is not installed").with_hint("CREATE EXTENSION vector;")
    })
}
