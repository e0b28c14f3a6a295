// SPDX-License-Identifier: PostgreSQL

//! Bringing content in: one document at a time, or the steps of a sync.

use super::required;
use crate::error::{self, OrRaise};
use crate::guc;
use crate::json::Json;
use crate::spi::guarded;
use crate::store::{collection, sync as runs};
use crate::sync::{self, Batch, ingest};
use pgrx::default;
use pgrx::iter::TableIterator;
use pgrx::prelude::*;
use rag_core::source::SourceKind;
use rag_core::{Error, Result};
use serde_json::{Map, Value};

/// Stores and embeds one text at once.
#[pg_extern(schema = "rag", name = "ingest", volatile, parallel_unsafe)]
fn ingest_text(
    content: Option<&str>,
    uri: Option<&str>,
    kind: default!(Option<&str>, "'markdown'"),
    metadata: default!(Option<Json>, "'{}'"),
    collection: default!(Option<&str>, "'default'"),
    options: default!(Option<Json>, "'{}'"),
    acl: default!(Option<&str>, "NULL"),
) -> TableIterator<'static, (name!(document_id, i64), name!(chunks, i32), name!(tokens, i64))> {
    guarded(|| store(content.map(str::as_bytes), uri, kind, metadata, collection, options, acl)).or_raise()
}

/// Stores and embeds one document given as bytes at once.
#[pg_extern(schema = "rag", name = "ingest", volatile, parallel_unsafe)]
fn ingest_bytes(
    content: Option<&[u8]>,
    uri: Option<&str>,
    kind: default!(Option<&str>, "'markdown'"),
    metadata: default!(Option<Json>, "'{}'"),
    collection: default!(Option<&str>, "'default'"),
    options: default!(Option<Json>, "'{}'"),
    acl: default!(Option<&str>, "NULL"),
) -> TableIterator<'static, (name!(document_id, i64), name!(chunks, i32), name!(tokens, i64))> {
    guarded(|| store(content, uri, kind, metadata, collection, options, acl)).or_raise()
}

fn store(
    content: Option<&[u8]>,
    uri: Option<&str>,
    kind: Option<&str>,
    metadata: Option<Json>,
    collection: Option<&str>,
    options: Option<Json>,
    acl: Option<&str>,
) -> Result<TableIterator<'static, (name!(document_id, i64), name!(chunks, i32), name!(tokens, i64))>> {
    let metadata = match metadata {
        None => Map::new(),
        Some(Json(Value::Object(metadata))) => metadata,
        Some(Json(other)) => {
            return Err(Error::invalid(format!("metadata must be a JSON object, not {other}")));
        }
    };
    let inline = ingest::Inline {
        content: required("content", content)?.to_vec(),
        uri: required("uri", uri)?.to_owned(),
        kind: SourceKind::of_document(kind.unwrap_or("markdown"))?,
        metadata,
        options: options.map_or_else(|| Value::Object(Map::new()), |o| o.0),
        acl: acl.map(str::to_owned),
    };
    let stored = ingest::inline(&collection::by_name(collection.unwrap_or("default"))?, inline, guc::waits())?;
    if stored.truncated > 0 {
        error::warn(
            format!("{} chunks exceed the window of the model and were cut for embedding", stored.truncated),
            Some("Leave out the option truncate to have them chunked."),
        );
    }
    Ok(TableIterator::once((stored.document_id, stored.chunks, stored.tokens)))
}

/// First step of rag.sync: starts a run.
#[pg_extern(schema = "rag", volatile, parallel_unsafe)]
fn sync_begin(source: Option<&str>) -> i64 {
    guarded(|| sync::begin(required("source", source)?)).or_raise()
}

/// Second step of rag.sync: lists the source.
#[pg_extern(schema = "rag", volatile, parallel_unsafe)]
fn sync_list(run: i64) {
    guarded(|| sync::list(run, guc::allowed(), guc::waits())).or_raise()
}

/// Repeated step of rag.sync: reads and stores some pending documents.
#[pg_extern(schema = "rag", volatile, parallel_unsafe)]
fn sync_batch(run: i64) -> bool {
    let batch = guarded(|| sync::batch(run, true, guc::allowed(), guc::waits())).or_raise();
    if batch == Batch::Queued {
        super::announce_at_commit();
    }
    batch == Batch::More
}

/// Last step of a rag.sync that failed: records why.
#[pg_extern(schema = "rag", volatile, parallel_unsafe)]
fn sync_fail(run: i64, message: &str) {
    guarded(|| runs::fail(run, message)).or_raise()
}
