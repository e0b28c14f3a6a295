// SPDX-License-Identifier: PostgreSQL

//! What a run was run on, so that two runs are compared only if they saw the same.

use crate::spi;
use crate::store::collection::Collection;
use rag_core::Result;
use serde_json::{Value, json};

/// What is searched, as the caller sees it: counts, the hash of all passages, and which indexes there are. The number of
/// the HNSW index's file is another after each rebuild, which may change what it finds.
pub fn index(collection: &Collection) -> Result<Value> {
    // Two counts and no join, which without statistics would take the square of the time.
    let sql = "SELECT pg_catalog.count(DISTINCT k.document_id), pg_catalog.count(*),
                      (SELECT pg_catalog.count(*) FROM rag.chunk_embedding e WHERE e.model_id = $2 AND e.collection_id = $1),
                      pg_catalog.encode(pg_catalog.sha256(coalesce(pg_catalog.string_agg(pg_catalog.uuid_send(k.chunk_key), ''
                          ORDER BY k.chunk_key), '')), 'hex')
                 FROM rag.chunk k WHERE k.collection_id = $1 AND k.current";
    let args = [collection.id.into(), collection.model.id.into()];
    let counts =
        |row: &spi::Row| Ok((row.get::<i64>(1)?, row.get::<i64>(2)?, row.get::<i64>(3)?, row.get::<String>(4)?));
    let (documents, chunks, embedded, passages) = spi::select_one(sql, &args, counts)?.unwrap_or_default();
    // What filters ask for and what is indexed beside the passages.
    let sql = "SELECT pg_catalog.encode(pg_catalog.sha256(coalesce(pg_catalog.string_agg(h.hash, '' ORDER BY h.hash), '')), 'hex')
                 FROM (SELECT pg_catalog.sha256(pg_catalog.convert_to(pg_catalog.jsonb_build_array(s.name, d.uri, d.external_id, d.title,
                                  d.media_type, d.language, d.project, d.repository, d.path, d.ref, d.commit, d.published_at, d.role,
                                  d.metadata)::text, 'UTF8')) AS hash
                         FROM rag.source s JOIN rag.document d ON d.source_id = s.id
                        WHERE s.collection_id = $1 AND d.current) h";
    let described: Option<String> = spi::select_one(sql, &[collection.id.into()], |row| row.get(1))?;
    let sql = "SELECT pg_catalog.pg_relation_filenode(pg_catalog.to_regclass(
                   pg_catalog.format('rag.chunk_embedding_hnsw_%s_%s', $1, $2)))::bigint";
    let hnsw: Option<i64> = spi::select_one(sql, &args, |row| row.optional(1))?.flatten();
    let sql = "SELECT state, segments FROM rag.lexical_status WHERE collection = $1 AND unit = 'chunk'";
    let lexical = |row: &spi::Row| Ok(json!({"state": row.get::<String>(1)?, "segments": row.get::<i64>(2)?}));
    let lexical = spi::select_one(sql, &[collection.name.as_str().into()], lexical)?.unwrap_or(Value::Null);
    Ok(json!({
        "collection": collection.name, "documents": documents, "chunks": chunks, "embedded": embedded,
        "passages_sha256": passages, "documents_sha256": described, "hnsw_file": hnsw, "lexical": lexical,
    }))
}

/// Where the run runs.
pub fn machine() -> Result<Value> {
    let sql = "SELECT pg_catalog.current_setting('server_version')";
    let version: Option<String> = spi::select_one(sql, &[], |row| row.get(1))?;
    let processors = std::thread::available_parallelism().map_or(0, usize::from);
    Ok(json!({"postgresql": version, "processors": processors, "architecture": std::env::consts::ARCH}))
}
