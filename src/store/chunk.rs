// SPDX-License-Identifier: PostgreSQL

//! Table `rag.chunk`.
//!
//! A chunk that a new version of its document still has keeps its row: its content and key cannot change, only where it
//! stands. Everything else of the old version is deleted.

use crate::spi;
use crate::store::source::Source;
use pgrx::{JsonB, Uuid};
use rag_core::document::{Chunk, Document};
use rag_core::provenance::{ContentHash, chunk_key};
use rag_core::template::EmbedFields;
use rag_core::{Error, Result};
use serde_json::Value;
use std::collections::HashMap;

/// A chunk's permanent identity.
#[derive(Debug, Clone, Copy)]
pub struct Identity {
    /// Hash of its content.
    pub content_sha256: ContentHash,
    /// Its key.
    pub key: Uuid,
}

/// The identities of a document's chunks, in their order.
pub fn identities(source: &str, document: &Document) -> Vec<Identity> {
    let mut seen: HashMap<ContentHash, u32> = HashMap::new();
    let identify = |chunk: &Chunk| {
        let content_sha256 = ContentHash::of(&chunk.content);
        let occurrence = seen.entry(content_sha256).or_default();
        let key = chunk_key(source, &document.uri, &content_sha256, *occurrence);
        *occurrence += 1;
        Identity { content_sha256, key: Uuid::from_bytes(*key.as_bytes()) }
    };
    document.chunks.iter().map(identify).collect()
}

/// The text whose lexemes are indexed for the BM25 leg.
fn lexical_text(document: &Document, chunk: &Chunk) -> String {
    let fields = EmbedFields { title: document.title.as_deref(), content: &chunk.content, ..EmbedFields::default() };
    let parts = [fields.title_to_add(), document.path.as_deref()].into_iter().flatten();
    let parts = parts.chain(chunk.heading_path.iter().map(String::as_str));
    let parts = parts.chain(chunk.facts.symbol.as_deref()).chain(chunk.facts.speaker.as_deref());
    parts.chain(chunk.context.as_deref()).chain([chunk.content.as_str()]).collect::<Vec<_>>().join("\n")
}

const LEXEMES: &str = "(SELECT t.tsv, (SELECT coalesce(sum(greatest(coalesce(cardinality(u.positions), 0), 1)), 0)
                          FROM pg_catalog.unnest(t.tsv) u)::integer AS dl
                   FROM (SELECT pg_catalog.to_tsvector($1::text::pg_catalog.regconfig, $2) AS tsv) t) l";

/// Keys of the chunks a document has now.
pub fn existing(document_id: i64) -> Result<HashMap<[u8; 16], i64>> {
    let sql = "SELECT id, chunk_key FROM rag.chunk WHERE document_id = $1 AND current";
    let rows = spi::select(sql, &[document_id.into()], |row| Ok((*row.get::<Uuid>(2)?.as_bytes(), row.get(1)?)))?;
    Ok(rows.into_iter().collect())
}

/// Writes one chunk: a new row, or in place the row of `id`. Returns its id.
pub fn write(
    source: &Source,
    document_id: i64,
    document: &Document,
    ordinal: usize,
    identity: Identity,
    id: Option<i64>,
    acl: Option<&str>,
) -> Result<i64> {
    let chunk = &document.chunks[ordinal];
    let (span, facts) = (chunk.span, &chunk.facts);
    // Milliseconds as text: the interval they make keeps them exactly.
    let moment = |ms: Option<u64>| ms.map(|ms| format!("{ms} milliseconds"));
    let mut args = vec![
        source.text_search_config.as_str().into(),
        lexical_text(document, chunk).into(),
        (ordinal as i32).into(),
        chunk.context.clone().into(),
        (chunk.token_count as i32).into(),
        facts.role.clone().into(),
        chunk.heading_path.clone().into(),
        (span.line_start as i32).into(),
        (span.line_end as i32).into(),
        (span.char_start as i64).into(),
        (span.char_end as i64).into(),
        JsonB(Value::Object(chunk.metadata.clone())).into(),
        document.language.clone().into(),
        acl.map(str::to_owned).into(),
        facts.symbol.clone().into(),
        facts.symbol_kind.clone().into(),
        facts.speaker.clone().into(),
        chunk.pages.map(|p| p.0 as i32).into(),
        chunk.pages.map(|p| p.1 as i32).into(),
        moment(chunk.time.map(|t| t.0)).into(),
        moment(chunk.time.map(|t| t.1)).into(),
    ];
    // What may change although the content does not, in the order of the parameters from $3.
    const PLACE: &str =
        "ordinal, context, token_count, role, heading_path, line_start, line_end, char_start, char_end, metadata,
                    language, acl, symbol, symbol_kind, speaker, page_start, page_end, time_start, time_end";
    const VALUES: &str =
        "$3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20::interval, $21::interval";
    if let Some(id) = id {
        args.push(id.into());
        // An unchanged tsv must stay the same value, so that a move of lines alone touches no index.
        let sql = format!(
            "UPDATE rag.chunk k SET ({PLACE}, tsv, dl)
                  = ROW ({VALUES}, CASE WHEN k.tsv = l.tsv THEN k.tsv ELSE l.tsv END, l.dl)
               FROM {LEXEMES}
              WHERE k.id = $22
                AND ROW ({old}, k.tsv) IS DISTINCT FROM ROW ({VALUES}, l.tsv)",
            old = PLACE.split(',').map(|column| format!("k.{}", column.trim())).collect::<Vec<_>>().join(", ")
        );
        spi::execute(&sql, &args)?;
        return Ok(id);
    }
    args.extend([
        identity.key.into(),
        document_id.into(),
        chunk.content.as_str().into(),
        identity.content_sha256.0.to_vec().into(),
        source.collection_id.into(),
        source.id.into(),
    ]);
    let sql = format!(
        "INSERT INTO rag.chunk ({PLACE}, chunk_key, document_id, content, content_sha256, collection_id, source_id, tsv, dl)
         SELECT {VALUES}, $22, $23, $24, $25, $26, $27, l.tsv, l.dl
           FROM {LEXEMES} RETURNING id"
    );
    spi::write(&sql, &args, |row| row.get(1))?.pop().ok_or_else(|| Error::internal("no chunk was written"))
}

/// Deletes chunks with their vectors.
pub fn delete(ids: Vec<i64>) -> Result<()> {
    if ids.is_empty() {
        return Ok(());
    }
    spi::execute("DELETE FROM rag.chunk WHERE id = ANY($1)", &[ids.into()]).map(|_| ())
}
