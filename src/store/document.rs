// SPDX-License-Identifier: PostgreSQL

//! Table `rag.document`.

use crate::spi;
use crate::store::source::{self, Source};
use pgrx::JsonB;
use rag_core::document::Document;
use rag_core::provenance::ContentHash;
use rag_core::source::Seen;
use rag_core::{Error, Result};
use serde_json::Value;
use std::collections::HashSet;

/// A document's row after it was written.
#[derive(Debug, Clone)]
pub struct Written {
    /// Key; a new version keeps the key of the old one.
    pub id: i64,
    /// Whether there was none before.
    pub new: bool,
    /// Its label.
    pub acl: Option<String>,
    /// Qualified text search configuration that its chunks are read by.
    pub text_search_config: String,
}

/// Adds a document, or replaces the row of its current version. Without a label the document keeps the one it has; an empty
/// label means none.
pub fn upsert(
    source: &Source,
    document: &Document,
    options_sha256: &[u8],
    parser_version: &str,
    acl: Option<&str>,
) -> Result<Written> {
    // xmax is 0 in a row that this statement inserted.
    let sql = "INSERT INTO rag.document AS d (source_id, uri, external_id, title, media_type, language, project, path,
                      content_sha256, options_sha256, published_at, parser_version, role, metadata, repaired_bytes,
                      acl, repository, ref, commit, etag, text_search_config)
               VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11::timestamptz, $12, $13, $14, $15, nullif($16, ''),
                       $17, $18, $19, $20, $21)
               ON CONFLICT (source_id, uri) WHERE current DO UPDATE SET
                      external_id = excluded.external_id, title = excluded.title, media_type = excluded.media_type,
                      language = excluded.language, project = excluded.project, path = excluded.path,
                      content_sha256 = excluded.content_sha256, options_sha256 = excluded.options_sha256,
                      published_at = excluded.published_at, parser_version = excluded.parser_version,
                      role = excluded.role, metadata = excluded.metadata, repaired_bytes = excluded.repaired_bytes,
                      fetched_at = excluded.fetched_at, repository = excluded.repository, ref = excluded.ref,
                      commit = excluded.commit, etag = excluded.etag,
                      text_search_config = excluded.text_search_config,
                      acl = CASE WHEN $16 IS NULL THEN d.acl ELSE excluded.acl END
               RETURNING id, xmax = 0, acl";
    let version = &document.version;
    let text_search_config = source::config_of(source, document)?;
    let args = [
        source.id.into(),
        document.uri.as_str().into(),
        document.external_id.clone().into(),
        document.title.clone().into(),
        document.media_type.as_str().into(),
        document.language.clone().into(),
        source.project.clone().into(),
        document.path.clone().into(),
        document.content_sha256.0.to_vec().into(),
        options_sha256.to_vec().into(),
        document.published_at.clone().into(),
        parser_version.into(),
        document.role.clone().into(),
        JsonB(Value::Object(document.metadata.clone())).into(),
        (document.repaired_bytes as i64).into(),
        acl.map(str::to_owned).into(),
        version.repository.clone().into(),
        version.reference.clone().into(),
        version.commit.clone().into(),
        version.etag.clone().into(),
        text_search_config.as_str().into(),
    ];
    let written = |row: &spi::Row| {
        let text_search_config = text_search_config.clone();
        Ok(Written { id: row.get(1)?, new: row.get(2)?, acl: row.optional(3)?, text_search_config })
    };
    spi::write(sql, &args, written)?.pop().ok_or_else(|| Error::internal("no document was written"))
}

/// URIs of those of some documents that are stored as they were read, with the same options and label.
pub fn as_read<'d>(
    source_id: i64,
    read: impl Iterator<Item = &'d Document>,
    options_sha256: &[u8],
    acl: Option<&str>,
) -> Result<HashSet<String>> {
    let (uris, hashes): (Vec<String>, Vec<Vec<u8>>) =
        read.map(|document| (document.uri.clone(), document.content_sha256.0.to_vec())).unzip();
    // By the index for each, which a planner without statistics would not choose, once for each batch of a sync.
    let sql = "SELECT d.uri FROM ROWS FROM (unnest($2::text[]), unnest($3::bytea[])) AS r (uri, content_sha256)
                CROSS JOIN LATERAL (SELECT * FROM rag.document d
                                     WHERE d.source_id = $1 AND d.uri = r.uri AND d.current OFFSET 0) d
                WHERE d.content_sha256 = r.content_sha256 AND d.options_sha256 = $4
                  AND d.acl IS NOT DISTINCT FROM $5";
    let args =
        [source_id.into(), uris.into(), hashes.into(), options_sha256.to_vec().into(), acl.map(str::to_owned).into()];
    Ok(spi::select(sql, &args, |row| row.get(1))?.into_iter().collect())
}

/// What is known of the current version of a page, for asking whether it changed.
pub fn seen(source_id: i64, uri: &str) -> Result<Option<Seen>> {
    let sql = "SELECT d.etag, d.metadata ->> 'last_modified', d.content_sha256,
                      coalesce((SELECT i.size FROM rag.sync_item i JOIN rag.sync y ON y.id = i.sync_id
                                 WHERE y.source_id = d.source_id AND i.uri = d.uri ORDER BY y.id DESC LIMIT 1), 0)
                 FROM rag.document d WHERE d.source_id = $1 AND d.uri = $2 AND d.current";
    spi::select_one(sql, &[source_id.into(), uri.into()], |row| {
        let hash: Vec<u8> = row.get(3)?;
        Ok(Seen {
            etag: row.optional(1)?,
            last_modified: row.optional(2)?,
            content_sha256: ContentHash(hash.try_into().map_err(|_| Error::internal("a hash has another length"))?),
            size: row.get::<i64>(4)?.unsigned_abs(),
        })
    })
}
