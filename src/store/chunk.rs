// SPDX-License-Identifier: PostgreSQL

//! Table `rag.chunk`.
//!
//! A chunk that a new version of its document still has keeps its row: its content and key cannot change, only where it
//! stands. Everything else of the old version is deleted.
//!
//! The chunks of a document are written many at a time, because what one statement adds is one segment of the BM25 index.

use crate::spi;
use crate::store::document::Written;
use crate::store::lexeme::Configuration;
use crate::store::source::Source;
use pgrx::Uuid;
use rag_core::document::{Chunk, Document};
use rag_core::lexical::tokens;
use rag_core::lexical::tsvector;
use rag_core::provenance::{ContentHash, chunk_key};
use rag_core::template::EmbedFields;
use rag_core::{Error, Result};
use serde::Serialize;
use serde_json::{Map, Value};
use std::collections::HashMap;
use std::ops::Range;

/// Content that is written in one statement, in bytes.
const BATCH_BYTES: usize = 4 << 20;

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

/// What of that text counts more: the names of what it is from.
fn names(document: &Document, chunk: &Chunk) -> String {
    let fields = EmbedFields { title: document.title.as_deref(), content: &chunk.content, ..EmbedFields::default() };
    let names = [fields.title_to_add(), chunk.facts.symbol.as_deref(), chunk.facts.speaker.as_deref()];
    names.into_iter().flatten().collect::<Vec<_>>().join("\n")
}

/// Keys of the chunks a document has now.
pub fn existing(document_id: i64) -> Result<HashMap<[u8; 16], i64>> {
    let sql = "SELECT id, chunk_key FROM rag.chunk WHERE document_id = $1 AND current";
    let rows = spi::select(sql, &[document_id.into()], |row| Ok((*row.get::<Uuid>(2)?.as_bytes(), row.get(1)?)))?;
    Ok(rows.into_iter().collect())
}

/// A chunk as it is written; a field is named after its column.
#[derive(Serialize)]
struct Record<'a> {
    id: Option<i64>,
    chunk_key: String,
    content: Option<&'a str>,
    content_sha256: String,
    tsv: String,
    ordinal: usize,
    context: Option<&'a str>,
    token_count: u32,
    role: Option<&'a str>,
    heading_path: &'a [String],
    line_start: u32,
    line_end: u32,
    char_start: u64,
    char_end: u64,
    metadata: &'a Map<String, Value>,
    language: Option<&'a str>,
    acl: Option<&'a str>,
    symbol: Option<&'a str>,
    symbol_kind: Option<&'a str>,
    speaker: Option<&'a str>,
    page_start: Option<u32>,
    page_end: Option<u32>,
    time_start: Option<String>,
    time_end: Option<String>,
}

/// What may change although the content does not.
const PLACE: &str =
    "ordinal, context, token_count, role, heading_path, line_start, line_end, char_start, char_end, metadata,
       language, acl, symbol, symbol_kind, speaker, page_start, page_end, time_start, time_end";

/// The records $1 with the lengths of their vectors. Not by way of `jsonb`, which holds a quarter of a gigabyte.
const RECORDS: &str = "pg_catalog.json_to_recordset($1::text::json) AS r (
           id bigint, chunk_key uuid, content text, content_sha256 bytea, tsv tsvector, ordinal integer, context text,
           token_count integer, role text, heading_path text[], line_start integer, line_end integer,
           char_start bigint, char_end bigint, metadata jsonb, language text, acl text, symbol text, symbol_kind text,
           speaker text, page_start integer, page_end integer, time_start interval, time_end interval)
     CROSS JOIN LATERAL (SELECT coalesce(sum(greatest(coalesce(cardinality(u.positions), 0), 1)), 0)::integer AS dl
                           FROM pg_catalog.unnest(r.tsv) u) AS l";

/// The columns of a row, each with its table's name before it.
fn of(table: &str) -> String {
    PLACE.split(',').map(|column| format!("{table}.{}", column.trim())).collect::<Vec<_>>().join(", ")
}

/// Writes the chunks of a document: new rows, or in place the rows that `kept` names by their keys, which it takes out
/// of there. Returns their ids in the order of the chunks.
pub fn write(
    source: &Source,
    row: &Written,
    document: &Document,
    identities: &[Identity],
    kept: &mut HashMap<[u8; 16], i64>,
) -> Result<Vec<i64>> {
    let mut ids = Vec::with_capacity(identities.len());
    for batch in batches(&document.chunks) {
        let mut records = records(row, document, identities, batch.clone())?;
        for (record, identity) in records.iter_mut().zip(&identities[batch.clone()]) {
            record.id = kept.remove(identity.key.as_bytes());
        }
        let (mut old, new): (Vec<Record<'_>>, Vec<Record<'_>>) = records.into_iter().partition(|r| r.id.is_some());
        // The row has it.
        old.iter_mut().for_each(|record| record.content = None);
        update(&old)?;
        let mut written = insert(source, row.id, &new)?;
        let mut old = old.into_iter().map(|record| (record.ordinal, record.id)).collect::<HashMap<_, _>>();
        for (ordinal, identity) in batch.clone().zip(&identities[batch]) {
            let id = old.remove(&ordinal).flatten().or_else(|| written.remove(identity.key.as_bytes()));
            ids.push(id.ok_or_else(|| Error::internal("a chunk was not written"))?);
        }
    }
    Ok(ids)
}

/// Cuts chunks into runs of about [`BATCH_BYTES`].
fn batches(chunks: &[Chunk]) -> impl Iterator<Item = Range<usize>> {
    let mut start = 0;
    std::iter::from_fn(move || {
        let mut bytes = 0;
        let fits = |chunk: &&Chunk| {
            let first = bytes == 0;
            bytes += chunk.content.len().max(1);
            first || bytes <= BATCH_BYTES
        };
        let count = chunks[start..].iter().take_while(fits).count();
        let batch = start..start + count;
        start = batch.end;
        (count > 0).then_some(batch)
    })
}

fn records<'a>(
    row: &'a Written,
    document: &'a Document,
    identities: &[Identity],
    batch: Range<usize>,
) -> Result<Vec<Record<'a>>> {
    let chunks = &document.chunks[batch.clone()];
    let texts: Vec<String> = chunks.iter().map(|chunk| lexical_text(document, chunk)).collect();
    let names = chunks.iter().map(|chunk| names(document, chunk));
    let all: Vec<String> = texts.into_iter().chain(names).collect();
    let mut analyses = tokens::analyse_all(&all, &Configuration(&row.text_search_config))?;
    let names = analyses.split_off(chunks.len());
    let analyses = analyses.into_iter().zip(&names).map(|(text, names)| text.emphasise(names, tokens::EMPHASIS));
    // Milliseconds as text: the interval they make keeps them exactly.
    let moment = |ms: Option<u64>| ms.map(|ms| format!("{ms} milliseconds"));
    let record = |((chunk, analysis), ordinal): ((&'a Chunk, tokens::Analysis), usize)| {
        let (span, facts) = (chunk.span, &chunk.facts);
        let Identity { content_sha256, key } = identities[ordinal];
        Record {
            id: None,
            chunk_key: key.to_string(),
            content: Some(&chunk.content),
            content_sha256: format!("\\x{content_sha256}"),
            tsv: tsvector::write(&analysis.terms),
            ordinal,
            context: chunk.context.as_deref(),
            token_count: chunk.token_count,
            role: facts.role.as_deref(),
            heading_path: &chunk.heading_path,
            line_start: span.line_start,
            line_end: span.line_end,
            char_start: span.char_start,
            char_end: span.char_end,
            metadata: &chunk.metadata,
            language: document.language.as_deref(),
            acl: row.acl.as_deref(),
            symbol: facts.symbol.as_deref(),
            symbol_kind: facts.symbol_kind.as_deref(),
            speaker: facts.speaker.as_deref(),
            page_start: chunk.pages.map(|p| p.0),
            page_end: chunk.pages.map(|p| p.1),
            time_start: moment(chunk.time.map(|t| t.0)),
            time_end: moment(chunk.time.map(|t| t.1)),
        }
    };
    Ok(chunks.iter().zip(analyses).zip(batch).map(record).collect())
}

fn json(records: &[Record<'_>]) -> Result<String> {
    serde_json::to_string(records).map_err(|e| Error::internal(format!("a chunk cannot be written as JSON: {e}")))
}

fn update(records: &[Record<'_>]) -> Result<()> {
    if records.is_empty() {
        return Ok(());
    }
    // An unchanged tsv must stay the same value, so that a move of lines alone touches no index.
    let sql = format!(
        "UPDATE rag.chunk k SET ({PLACE}, tsv, dl)
              = ROW ({new}, CASE WHEN k.tsv = r.tsv THEN k.tsv ELSE r.tsv END, l.dl)
           FROM {RECORDS}
          WHERE k.id = r.id AND ROW ({old}, k.tsv) IS DISTINCT FROM ROW ({new}, r.tsv)",
        new = of("r"),
        old = of("k")
    );
    // The plan is kept while the table grows: each row by its key, however small the table was.
    let by_key = [(c"enable_hashjoin", "off"), (c"enable_mergejoin", "off"), (c"enable_seqscan", "off")];
    spi::with_settings(&by_key, || spi::execute(&sql, &[json(records)?.into()])).map(|_| ())
}

/// Returns the ids by the keys.
fn insert(source: &Source, document_id: i64, records: &[Record<'_>]) -> Result<HashMap<[u8; 16], i64>> {
    if records.is_empty() {
        return Ok(HashMap::new());
    }
    let sql = format!(
        "INSERT INTO rag.chunk ({PLACE}, chunk_key, document_id, content, content_sha256, collection_id, source_id, tsv, dl)
         SELECT {place}, r.chunk_key, $2, r.content, r.content_sha256, $3, $4, r.tsv, l.dl
           FROM {RECORDS} RETURNING id, chunk_key",
        place = of("r")
    );
    let args = [json(records)?.into(), document_id.into(), source.collection_id.into(), source.id.into()];
    let rows = spi::write(&sql, &args, |row| Ok((*row.get::<Uuid>(2)?.as_bytes(), row.get(1)?)))?;
    Ok(rows.into_iter().collect())
}

/// Deletes chunks with their vectors.
pub fn delete(ids: Vec<i64>) -> Result<()> {
    if ids.is_empty() {
        return Ok(());
    }
    spi::execute("DELETE FROM rag.chunk WHERE id = ANY($1)", &[ids.into()]).map(|_| ())
}
