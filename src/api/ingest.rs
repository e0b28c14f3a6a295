//! Bringing content in: one document at a time, or the steps of a sync.

use crate::error::OrRaise;
use crate::guc;
use crate::store::{collection, sync as runs};
use crate::sync::{self, ingest};
use pgrx::iter::TableIterator;
use pgrx::prelude::*;
use pgrx::{JsonB, default};
use rag_core::{Error, Result};
use serde_json::Value;

/// Stores and embeds one text at once.
#[pg_extern(schema = "rag", name = "ingest", volatile, parallel_unsafe)]
fn ingest_text(
    content: &str,
    uri: &str,
    kind: default!(&str, "'markdown'"),
    metadata: default!(JsonB, "'{}'"),
    collection: default!(&str, "'default'"),
    options: default!(JsonB, "'{}'"),
) -> TableIterator<'static, (name!(document_id, i64), name!(chunks, i32), name!(tokens, i64))> {
    store(content.as_bytes(), uri, kind, metadata, collection, options).or_raise()
}

/// Stores and embeds one document given as bytes at once.
#[pg_extern(schema = "rag", name = "ingest", volatile, parallel_unsafe)]
fn ingest_bytes(
    content: &[u8],
    uri: &str,
    kind: default!(&str, "'markdown'"),
    metadata: default!(JsonB, "'{}'"),
    collection: default!(&str, "'default'"),
    options: default!(JsonB, "'{}'"),
) -> TableIterator<'static, (name!(document_id, i64), name!(chunks, i32), name!(tokens, i64))> {
    store(content, uri, kind, metadata, collection, options).or_raise()
}

fn store(
    content: &[u8],
    uri: &str,
    kind: &str,
    metadata: JsonB,
    collection: &str,
    options: JsonB,
) -> Result<TableIterator<'static, (name!(document_id, i64), name!(chunks, i32), name!(tokens, i64))>> {
    let Value::Object(metadata) = metadata.0 else {
        return Err(Error::invalid(format!("metadata must be a JSON object, not {}", metadata.0)));
    };
    let inline = ingest::Inline {
        content: content.to_vec(),
        uri: uri.to_owned(),
        kind: kind.parse()?,
        metadata,
        options: options.0,
    };
    let stored = ingest::inline(&collection::by_name(collection)?, inline, guc::waits())?;
    Ok(TableIterator::once((stored.document_id, stored.chunks, stored.tokens)))
}

/// First step of rag.sync: starts a run.
#[pg_extern(schema = "rag", volatile, parallel_unsafe)]
fn sync_begin(source: &str) -> i64 {
    sync::begin(source).or_raise()
}

/// Second step of rag.sync: lists the source.
#[pg_extern(schema = "rag", volatile, parallel_unsafe)]
fn sync_list(run: i64) {
    sync::list(run, guc::allowed_paths(), guc::waits()).or_raise()
}

/// Repeated step of rag.sync: reads and stores some pending documents.
#[pg_extern(schema = "rag", volatile, parallel_unsafe)]
fn sync_batch(run: i64) -> bool {
    sync::batch(run, guc::allowed_paths(), guc::waits()).or_raise()
}

/// Last step of a rag.sync that failed: records why.
#[pg_extern(schema = "rag", volatile, parallel_unsafe)]
fn sync_fail(run: i64, message: &str) {
    runs::fail(run, message).or_raise()
}
