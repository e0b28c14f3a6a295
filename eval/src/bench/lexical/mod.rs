// SPDX-License-Identifier: PostgreSQL

//! The BM25 leg alone: what a query costs, and how that grows.
//!
//! Owns the rows it measures on: chunks written by plain SQL, without an engine and without vectors, so that a hundred
//! thousand are there in seconds and the triggers that index them do what they do in a sync. [`rival`] compares with
//! PostgreSQL's own full text search on a judged corpus, [`growth`] shows what an invented one of any size costs, [`rights`]
//! what labels and filters do.

pub mod growth;
pub mod rights;
pub mod rival;

use crate::db;
use postgres::Client;
use rag_core::Result;

/// Collection and source that are measured.
pub const NAME: &str = "lexical";

/// What a search asks for: a hundred candidates, and next to nothing of them shown.
pub const SEARCH: &str =
    "SELECT count(*) FROM rag.search($1, 1, collection => 'lexical', mode => 'bm25', candidate_k => 100)";

/// Passages of a document.
pub const PASSAGES: u64 = 20;

/// The collection, its source and documents for so many passages, with nothing in them. Returns the keys of the first two and
/// of the first document; the others follow it.
pub fn empty(client: &mut Client, passages: u64) -> Result<(i64, i64, i64)> {
    let failed = |e: postgres::Error| db::sql("could not make the collection", &e);
    client
        .batch_execute(
            "DELETE FROM rag.document d USING rag.source s WHERE s.id = d.source_id AND s.name = 'lexical';
             DELETE FROM rag.source WHERE name = 'lexical';
             SELECT rag.compact(c.name) FROM rag.collection c WHERE c.name = 'lexical';",
        )
        .map_err(failed)?;
    let collection: i64 = client
        .query_one(
            "SELECT coalesce((SELECT id FROM rag.collection WHERE name = 'lexical'), rag.create_collection('lexical'))",
            &[],
        )
        .map_err(failed)?
        .get(0);
    let source: i64 = client
        .query_one(
            "INSERT INTO rag.source (collection_id, name, kind, location, text_search_config)
             VALUES ($1, 'lexical', 'inline', '', 'pg_catalog.english') RETURNING id",
            &[&collection],
        )
        .map_err(failed)?
        .get(0);
    let document: i64 = client
        .query_one(
            "WITH new AS (INSERT INTO rag.document (source_id, uri, media_type, content_sha256, options_sha256, parser_version)
                          SELECT $1, g::text, 'text/plain', sha256(''), sha256(''), '0' FROM generate_series(0, $2::bigint) g RETURNING id)
             SELECT min(id) FROM new",
            &[&source, &((passages / PASSAGES) as i64)],
        )
        .map_err(failed)?
        .get(0);
    Ok((collection, source, document))
}

/// Runs statements one by one, as `VACUUM` must be.
pub fn apart(client: &mut Client, statements: &[&str]) -> Result<()> {
    statements.iter().try_for_each(|sql| client.batch_execute(sql).map_err(|e| db::sql(sql, &e)))
}

/// What `rag.lexical_status` says of the collection.
#[derive(Debug, Clone, Copy)]
pub struct Status {
    /// Live segments.
    pub segments: i64,
    /// Living documents.
    pub documents: i64,
    /// Postings.
    pub postings: i64,
    /// Bytes of the lists.
    pub bytes: i64,
}

/// Asks for it.
pub fn status(client: &mut Client) -> Result<Status> {
    let sql = "SELECT segments, documents, postings, bytes FROM rag.lexical_status WHERE collection = 'lexical' AND unit = 'chunk'";
    let row = client.query_one(sql, &[]).map_err(|e| db::sql("no status", &e))?;
    Ok(Status { segments: row.get(0), documents: row.get(1), postings: row.get(2), bytes: row.get(3) })
}
