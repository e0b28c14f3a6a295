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
    let sql = "SELECT name, model_id FROM rag.collection WHERE id = $1";
    let found = spi::select_one(sql, &[id.into()], |r| Ok((r.get(1)?, r.get(2)?)))?;
    let (name, model_id) = found.ok_or_else(|| Error::internal(format!("collection {id} does not exist")))?;
    Ok(Collection { id, name, model: model::by_id(model_id)? })
}

/// The keys of all collections.
pub fn ids() -> Result<Vec<i64>> {
    spi::select("SELECT id FROM rag.collection ORDER BY id", &[], |row| row.get(1))
}

/// Adds a collection with its HNSW index and returns its key.
pub fn insert(name: &str, model: &Model) -> Result<i64> {
    let sql = "INSERT INTO rag.collection (name, model_id) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING RETURNING id";
    let id: i64 = spi::write(sql, &[name.into(), model.id.into()], |r| r.get(1))?
        .pop()
        .ok_or_else(|| Error::new(Kind::AlreadyExists, format!("collection \"{name}\" already exists")))?;
    make_index(&index_name(id, model.id), id, model)?;
    Ok(id)
}

/// Table whose name the locks on collections go by; object 0 is for repairs.
const LOCKED: &str = "rag.collection";

/// Keeps a collection from being dropped until the transaction ends.
pub fn share(id: i64) -> Result<()> {
    spi::lock::shared(LOCKED, id)?;
    by_id(id).map(|_| ())
}

/// Removes an empty collection and its index.
pub fn delete(collection: &Collection) -> Result<()> {
    if collection.id < 100 {
        return Err(Error::invalid(format!("collection \"{}\" is built in", collection.name)));
    }
    spi::needs_fresh_snapshots("a collection cannot be dropped")?;
    spi::lock::exclusive(LOCKED, collection.id)?;
    let sql = "SELECT name FROM rag.source WHERE collection_id = $1 ORDER BY name";
    let sources: Vec<String> = spi::select(sql, &[collection.id.into()], |r| r.get(1))?;
    if let Some(first) = sources.first() {
        return Err(Error::new(Kind::NotReady, format!("collection \"{}\" has sources", collection.name))
            .with_detail(format!("Its sources: {}.", sources.join(", ")))
            .with_hint(format!("Drop them first: SELECT rag.drop_source({});", pgrx::spi::quote_literal(first))));
    }
    spi::command(&format!("DROP INDEX IF EXISTS rag.{}", index_name(collection.id, collection.model.id)))?;
    spi::execute("DELETE FROM rag.collection WHERE id = $1", &[collection.id.into()])?;
    Ok(())
}

/// Makes the HNSW index of a collection. It is no member of the extension: a dump leaves it out, and [`repair`] makes it
/// again.
fn make_index(index: &str, id: i64, model: &Model) -> Result<()> {
    let vector = vector_schema()?;
    let (model_id, dimensions) = (model.id, model.spec.dimensions);
    spi::command(&format!(
        "CREATE INDEX {index} ON rag.chunk_embedding
         USING hnsw ((embedding::{vector}.halfvec({dimensions})) {vector}.halfvec_cosine_ops)
         WHERE model_id = {model_id} AND collection_id = {id}"
    ))
}

/// Makes the HNSW index of a collection anew; searches of others wait.
pub fn reindex(collection: &Collection) -> Result<()> {
    spi::command(&format!("REINDEX INDEX rag.{}", index_name(collection.id, collection.model.id)))
}

/// Names of HNSW indexes and whether each is there and valid, for every collection.
const INDEXES: &str = "SELECT c.name, x.indisvalid FROM rag.collection c
      LEFT JOIN (SELECT i.indexrelid, i.indisvalid AND a.amname = 'hnsw' AND i.indrelid = 'rag.chunk_embedding'::regclass
                        AS indisvalid
                   FROM pg_catalog.pg_index i JOIN pg_catalog.pg_class k ON k.oid = i.indexrelid
                   JOIN pg_catalog.pg_am a ON a.oid = k.relam) x
             ON x.indexrelid = pg_catalog.to_regclass(
                pg_catalog.format('rag.chunk_embedding_hnsw_%s_%s', c.id, c.model_id))";

/// Whether a collection lacks a valid HNSW index, as after a restore.
pub fn any_without_index() -> Result<bool> {
    let sql = format!("SELECT EXISTS (SELECT FROM ({INDEXES}) i WHERE i.indisvalid IS NOT TRUE)");
    Ok(spi::select_one(&sql, &[], |r| r.get(1))?.unwrap_or(false))
}

/// Makes the HNSW indexes that are missing or not valid, and drops those of collections that are gone. Returns what was
/// done to which index.
///
/// Searches go on while an index is made; it takes the place of an invalid one at the very end, because that needs a lock
/// that lasts to the end of the transaction and that searches wait for.
pub fn repair_indexes() -> Result<Vec<(String, String)>> {
    // A second repair waits, and then finds nothing to do.
    spi::lock::exclusive(LOCKED, 0)?;
    let mut done = Vec::new();
    let mut last = Vec::new();
    let sql = format!("{INDEXES} WHERE x.indisvalid IS NOT TRUE ORDER BY c.id");
    let lacking: Vec<(String, bool)> = spi::select(&sql, &[], |r| Ok((r.get(1)?, r.optional::<bool>(2)?.is_some())))?;
    for (name, invalid) in lacking {
        let collection = by_name(&name)?;
        let index = index_name(collection.id, collection.model.id);
        if invalid {
            make_index(&format!("{index}_new"), collection.id, &collection.model)?;
            last.push(format!("DROP INDEX rag.{index}"));
            last.push(format!("ALTER INDEX rag.{index}_new RENAME TO {index}"));
        } else {
            make_index(&index, collection.id, &collection.model)?;
        }
        done.push((index, if invalid { "rebuilt" } else { "made" }.to_owned()));
    }
    let sql = r"SELECT i.relname::text FROM pg_catalog.pg_class i
                 WHERE i.relnamespace = 'rag'::regnamespace AND i.relkind = 'i'
                   AND i.relname ~ '^chunk_embedding_hnsw_[0-9]+_[0-9]+$'
                   AND NOT EXISTS (SELECT FROM rag.collection c
                        WHERE i.relname = pg_catalog.format('chunk_embedding_hnsw_%s_%s', c.id, c.model_id)) ORDER BY 1";
    let left: Vec<String> = spi::select(sql, &[], |r| r.get(1))?;
    for index in left {
        last.push(format!("DROP INDEX rag.{index}"));
        done.push((index, "dropped".to_owned()));
    }
    last.iter().try_for_each(|command| spi::command(command))?;
    Ok(done)
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
