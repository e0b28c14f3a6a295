// SPDX-License-Identifier: PostgreSQL

//! Table `rag.document`.

use crate::spi;
use crate::store::source::Source;
use pgrx::JsonB;
use rag_core::document::Document;
use rag_core::{Error, Result};
use serde_json::Value;

/// A document's row after it was written.
#[derive(Debug, Clone)]
pub struct Written {
    /// Key; a new version keeps the key of the old one.
    pub id: i64,
    /// Whether there was none before.
    pub new: bool,
    /// Its label.
    pub acl: Option<String>,
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
                      acl, repository, ref, commit, etag)
               VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11::timestamptz, $12, $13, $14, $15, nullif($16, ''),
                       $17, $18, $19, $20)
               ON CONFLICT (source_id, uri) WHERE current DO UPDATE SET
                      external_id = excluded.external_id, title = excluded.title, media_type = excluded.media_type,
                      language = excluded.language, project = excluded.project, path = excluded.path,
                      content_sha256 = excluded.content_sha256, options_sha256 = excluded.options_sha256,
                      published_at = excluded.published_at, parser_version = excluded.parser_version,
                      role = excluded.role, metadata = excluded.metadata, repaired_bytes = excluded.repaired_bytes,
                      fetched_at = excluded.fetched_at, repository = excluded.repository, ref = excluded.ref,
                      commit = excluded.commit, etag = excluded.etag,
                      acl = CASE WHEN $16 IS NULL THEN d.acl ELSE excluded.acl END
               RETURNING id, xmax = 0, acl";
    let version = &document.version;
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
    ];
    spi::write(sql, &args, |row| Ok(Written { id: row.get(1)?, new: row.get(2)?, acl: row.optional(3)? }))?
        .pop()
        .ok_or_else(|| Error::internal("no document was written"))
}
