// SPDX-License-Identifier: PostgreSQL

//! Table `rag.chunk_embedding`.

use crate::spi;
use crate::store::collection::Collection;
use rag_core::provenance::ContentHash;
use rag_core::{Error, Result};
use std::collections::HashSet;

/// Which of some texts have a vector in the collection already.
pub fn known(collection: &Collection, texts: &[ContentHash]) -> Result<HashSet<ContentHash>> {
    let hashes: Vec<Vec<u8>> = texts.iter().map(|t| t.0.to_vec()).collect();
    let sql = "SELECT DISTINCT text_sha256 FROM rag.chunk_embedding
                WHERE model_id = $1 AND collection_id = $2 AND text_sha256 = ANY($3)";
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
) -> Result<()> {
    let sql = format!(
        "INSERT INTO rag.chunk_embedding (model_id, chunk_id, collection_id, text_sha256, truncated, embedding)
         VALUES ($1, $2, $3, $4, $6, $5::real[]::{vector_schema}.halfvec)
         ON CONFLICT (model_id, chunk_id) DO UPDATE SET text_sha256 = excluded.text_sha256,
                truncated = excluded.truncated, embedding = excluded.embedding"
    );
    let args = [
        collection.model.id.into(),
        chunk_id.into(),
        collection.id.into(),
        text.0.to_vec().into(),
        vector.to_vec().into(),
        truncated.into(),
    ];
    spi::execute(&sql, &args).map(|_| ())
}

/// Gives a chunk the vector that an equal text has in the collection; does nothing when it has that one. Returns whether
/// the text was cut at the window, or nothing when there is no such vector.
pub fn reuse(collection: &Collection, chunk_id: i64, text: ContentHash) -> Result<Option<bool>> {
    let sql = "INSERT INTO rag.chunk_embedding AS mine (model_id, chunk_id, collection_id, text_sha256, truncated, embedding)
               SELECT e.model_id, $2, e.collection_id, e.text_sha256, e.truncated, e.embedding FROM rag.chunk_embedding e
                WHERE e.model_id = $1 AND e.collection_id = $3 AND e.text_sha256 = $4
                ORDER BY e.chunk_id LIMIT 1
               ON CONFLICT (model_id, chunk_id) DO UPDATE SET text_sha256 = excluded.text_sha256,
                      truncated = excluded.truncated, embedding = excluded.embedding
                WHERE mine.text_sha256 <> excluded.text_sha256";
    let args = [collection.model.id.into(), chunk_id.into(), collection.id.into(), text.0.to_vec().into()];
    spi::execute(sql, &args)?;
    let sql = "SELECT truncated FROM rag.chunk_embedding WHERE model_id = $1 AND chunk_id = $2 AND text_sha256 = $3";
    let args = [collection.model.id.into(), chunk_id.into(), text.0.to_vec().into()];
    spi::select_one(sql, &args, |row| row.get(1))
}
