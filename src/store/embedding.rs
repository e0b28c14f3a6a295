// SPDX-License-Identifier: PostgreSQL

//! Table `rag.chunk_embedding`.

use crate::spi::{self, Row};
use crate::store::collection::Collection;
use rag_core::provenance::ContentHash;
use rag_core::template::{EmbedFields, PREFIX_CUT};
use rag_core::{Error, Result};
use std::collections::HashSet;

/// Which of some texts have a vector in the collection already.
pub fn known(collection: &Collection, texts: &[ContentHash]) -> Result<HashSet<ContentHash>> {
    let hashes: Vec<Vec<u8>> = texts.iter().map(|t| t.0.to_vec()).collect();
    let sql = "SELECT t.text_sha256 FROM pg_catalog.unnest($3::bytea[]) AS t (text_sha256)
                WHERE (SELECT e.chunk_id FROM rag.chunk_embedding e
                        WHERE e.model_id = $1 AND e.collection_id = $2 AND e.text_sha256 = t.text_sha256
                        LIMIT 1) IS NOT NULL";
    let args = [collection.model.id.into(), collection.id.into(), hashes.into()];
    let rows = spi::select(sql, &args, |row| {
        let bytes: Vec<u8> = row.get(1)?;
        Ok(ContentHash(bytes.try_into().map_err(|_| Error::internal("a hash is not 32 bytes"))?))
    })?;
    Ok(rows.into_iter().collect())
}

/// Gives a chunk a fresh vector.
pub fn put(
    collection: &Collection,
    vector_schema: &str,
    chunk_id: i64,
    text: ContentHash,
    vector: &[f32],
    truncated: bool,
    acl: Option<&str>,
) -> Result<()> {
    let sql = format!(
        "INSERT INTO rag.chunk_embedding (model_id, chunk_id, collection_id, text_sha256, truncated, embedding, acl)
         VALUES ($1, $2, $3, $4, $6, $5::real[]::{vector_schema}.halfvec, $7)
         ON CONFLICT (model_id, chunk_id) DO UPDATE SET text_sha256 = excluded.text_sha256,
                truncated = excluded.truncated, embedding = excluded.embedding, acl = excluded.acl"
    );
    let args = [
        collection.model.id.into(),
        chunk_id.into(),
        collection.id.into(),
        text.0.to_vec().into(),
        vector.to_vec().into(),
        truncated.into(),
        acl.map(str::to_owned).into(),
    ];
    spi::execute(&sql, &args).map(|_| ())
}

/// Gives a chunk the vector that an equal text has in the collection; does nothing when it has that one. Returns whether
/// the text was cut at the window, or nothing when there is no such vector.
pub fn reuse(collection: &Collection, chunk_id: i64, text: ContentHash, acl: Option<&str>) -> Result<Option<bool>> {
    // Any of them: an order would have the planner walk the primary key where it knows no statistics.
    let sql = "INSERT INTO rag.chunk_embedding AS mine (model_id, chunk_id, collection_id, text_sha256, truncated,
                                                         embedding, acl)
               SELECT e.model_id, $2, e.collection_id, e.text_sha256, e.truncated, e.embedding, $5 FROM rag.chunk_embedding e
                WHERE e.model_id = $1 AND e.collection_id = $3 AND e.text_sha256 = $4
                LIMIT 1
               ON CONFLICT (model_id, chunk_id) DO UPDATE SET text_sha256 = excluded.text_sha256,
                      truncated = excluded.truncated, embedding = excluded.embedding, acl = excluded.acl
                WHERE (mine.text_sha256, mine.acl) IS DISTINCT FROM (excluded.text_sha256, excluded.acl)";
    let args = [
        collection.model.id.into(),
        chunk_id.into(),
        collection.id.into(),
        text.0.to_vec().into(),
        acl.map(str::to_owned).into(),
    ];
    spi::execute(sql, &args)?;
    let sql = "SELECT truncated FROM rag.chunk_embedding WHERE model_id = $1 AND chunk_id = $2 AND text_sha256 = $3";
    let args = [collection.model.id.into(), chunk_id.into(), text.0.to_vec().into()];
    spi::select_one(sql, &args, |row| row.get(1))
}

/// Removes the vector of a chunk whose text has changed.
pub fn forget(collection: &Collection, chunk_id: i64) -> Result<()> {
    let sql = "DELETE FROM rag.chunk_embedding WHERE model_id = $1 AND chunk_id = $2";
    spi::execute(sql, &[collection.model.id.into(), chunk_id.into()]).map(|_| ())
}

/// A chunk without a vector, with what its embedded text is made of.
#[derive(Debug)]
pub struct Unembedded {
    /// Its key.
    pub id: i64,
    /// Its label.
    pub acl: Option<String>,
    /// Whether its text is embedded without what stands before the content.
    pub prefix_cut: bool,
    content: String,
    context: Option<String>,
    heading_path: Vec<String>,
    title: Option<String>,
    uri: String,
    path: Option<String>,
    symbol: Option<String>,
    speaker: Option<String>,
}

impl Unembedded {
    /// The fields of its embedded text.
    pub fn fields(&self) -> EmbedFields<'_> {
        EmbedFields {
            title: self.title.as_deref(),
            heading_path: &self.heading_path,
            context: self.context.as_deref(),
            content: &self.content,
            uri: &self.uri,
            path: self.path.as_deref(),
            symbol: self.symbol.as_deref(),
            speaker: self.speaker.as_deref(),
        }
    }
}

/// Begins a query for [`unembedded`]; $1 is the key of the mark in the metadata.
const UNEMBEDDED: &str = "SELECT c.id, c.acl, coalesce(c.metadata -> $1 = 'true', false), c.content, c.context,
        c.heading_path, d.title, d.uri, d.path, c.symbol, c.speaker
   FROM rag.chunk c JOIN rag.document d ON d.id = c.document_id";

fn unembedded(row: &Row) -> Result<Unembedded> {
    Ok(Unembedded {
        id: row.get(1)?,
        acl: row.optional(2)?,
        prefix_cut: row.get(3)?,
        content: row.get(4)?,
        context: row.optional(5)?,
        heading_path: row.get(6)?,
        title: row.optional(7)?,
        uri: row.get(8)?,
        path: row.optional(9)?,
        symbol: row.optional(10)?,
        speaker: row.optional(11)?,
    })
}

/// The condition that a chunk `c` has no vector of a model. A subquery that stands for a value is asked for each chunk by its key;
/// a join would be made by the model alone where there are no statistics, as during a first sync, and take a square
/// of the time.
fn without_vector(model: &str) -> String {
    format!("(SELECT e.chunk_id FROM rag.chunk_embedding e WHERE e.chunk_id = c.id AND e.model_id = {model}) IS NULL")
}

/// Whether a source has current chunks without a vector of its collection's model.
pub fn any_missing(source_id: i64) -> Result<bool> {
    let sql = format!(
        "SELECT EXISTS (SELECT FROM rag.source s JOIN rag.collection k ON k.id = s.collection_id
                          JOIN rag.chunk c ON c.source_id = s.id AND c.current
                         WHERE s.id = $1 AND {})",
        without_vector("k.model_id")
    );
    Ok(spi::select_one(&sql, &[source_id.into()], |row| row.get(1))?.unwrap_or(false))
}

/// Chunks of a source, beyond one key, that have no vector, in the order of their keys, kept from being
/// deleted until the transaction ends.
pub fn missing(collection: &Collection, source_id: i64, after: i64, limit: i64) -> Result<Vec<Unembedded>> {
    let sql = format!(
        "{UNEMBEDDED} WHERE c.source_id = $2 AND c.current AND c.id > $3 AND {}
          ORDER BY c.id LIMIT $5 FOR NO KEY UPDATE OF c",
        without_vector("$4")
    );
    let args = [PREFIX_CUT.into(), source_id.into(), after.into(), collection.model.id.into(), limit.into()];
    spi::write(&sql, &args, unembedded)
}

/// Those of some chunks that still have no vector, kept from being deleted until the transaction ends.
pub fn locked(collection: &Collection, ids: Vec<i64>) -> Result<Vec<Unembedded>> {
    let sql = format!(
        "{UNEMBEDDED} WHERE c.id = ANY($2) AND {}
          ORDER BY c.id FOR NO KEY UPDATE OF c",
        without_vector("$3")
    );
    spi::write(&sql, &[PREFIX_CUT.into(), ids.into(), collection.model.id.into()], unembedded)
}
