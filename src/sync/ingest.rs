// SPDX-License-Identifier: PostgreSQL

//! Storing documents: chunks with their identities, lexemes and vectors.
//!
//! Shared by syncs and `rag.ingest`. Vectors are made for the whole batch at once, only for texts that have none in the
//! collection; then each document is written in a subtransaction of its own, so that it is stored whole or not at all.

use super::engine;
use super::{MAX_URI, options_sha256, too_long};
use crate::engine_client;
use crate::guc::Waits;
use crate::spi;
use crate::store::collection::{self, Collection};
use crate::store::source::{self, Source};
use crate::store::{chunk, document, embedding};
use rag_core::document::{Chunk, Document, PARSER_VERSION};
use rag_core::protocol::{Reply, Request};
use rag_core::provenance::ContentHash;
use rag_core::source::{Failure, Location, SourceKind, SourceOptions};
use rag_core::template::{EmbedFields, PREFIX_CUT};
use rag_core::{Error, Result};
use serde_json::{Map, Value};
use std::collections::{HashMap, HashSet};

/// Most texts of one request, so that a cancelled sync leaves the engine little to throw away.
const EMBED_TEXTS: usize = 256;

/// What storing some documents needs to know.
#[derive(Debug)]
pub struct Task<'a> {
    /// Their source.
    pub source: &'a Source,
    /// Its collection.
    pub collection: &'a Collection,
    /// Its options.
    pub options: &'a SourceOptions,
    /// Hash of what the chunks depend on.
    pub fingerprint: ContentHash,
    /// Label of what is stored, empty for none; not given: a document keeps its own.
    pub acl: Option<&'a str>,
    /// Whether chunks get their vectors at once; if not, a job makes those that no equal text has.
    pub embed: bool,
    /// How long to wait for the engine.
    pub waits: Waits,
}

/// A stored document.
#[derive(Debug, Clone, Copy)]
pub struct Stored {
    /// Its key.
    pub document_id: i64,
    /// Whether there was none of its URI before.
    pub new: bool,
    /// Its chunks.
    pub chunks: i32,
    /// Their tokens.
    pub tokens: i64,
    /// Chunks whose embedded text was cut at the window.
    pub truncated: i32,
}

/// The text of a chunk that is embedded.
pub fn render(options: &SourceOptions, fields: EmbedFields<'_>, prefix_cut: bool) -> String {
    options.embed_template.render(&if prefix_cut { fields.without_prefix() } else { fields })
}

/// A fresh vector, and whether its text was cut.
type Fresh = HashMap<ContentHash, (Vec<f32>, bool)>;

impl Task<'_> {
    /// Stores what was read; what was not, or cannot be stored, comes back as its failure.
    pub fn store_all(
        &self,
        read: Vec<std::result::Result<Box<Document>, Failure>>,
    ) -> Result<Vec<std::result::Result<Stored, Failure>>> {
        let fresh = if self.embed { self.embed(read.iter().flatten())? } else { Fresh::new() };
        let vector_schema = collection::vector_schema()?;
        let store = |outcome: std::result::Result<Box<Document>, Failure>| {
            let document = outcome?;
            // "word is too long to be indexed" is said once for each such word; the word is still in the text.
            let quiet = [(c"client_min_messages", "warning")];
            spi::with_settings(&quiet, || spi::subtransaction(|| self.store(&document, &fresh, &vector_schema)))
                .map_err(|error| Failure { uri: document.uri.clone(), error })
        };
        Ok(read.into_iter().map(store).collect())
    }

    /// The text of each chunk that is embedded.
    fn texts(&self, document: &Document) -> Vec<String> {
        let text = |chunk: &Chunk| {
            let fields = EmbedFields {
                title: document.title.as_deref(),
                heading_path: &chunk.heading_path,
                context: chunk.context.as_deref(),
                content: &chunk.content,
                uri: &document.uri,
                path: document.path.as_deref(),
                symbol: chunk.facts.symbol.as_deref(),
                speaker: chunk.facts.speaker.as_deref(),
            };
            let cut = chunk.metadata.get(PREFIX_CUT).and_then(Value::as_bool).unwrap_or(false);
            render(self.options, fields, cut)
        };
        document.chunks.iter().map(text).collect()
    }

    /// Vectors of the texts that have none in the collection.
    fn embed<'d>(&self, documents: impl Iterator<Item = &'d Box<Document>>) -> Result<Fresh> {
        let mut texts: HashMap<ContentHash, String> = HashMap::new();
        for document in documents {
            texts.extend(self.texts(document).into_iter().map(|text| (ContentHash::of(&text), text)));
        }
        let hashes: Vec<ContentHash> = texts.keys().copied().collect();
        let known: HashSet<ContentHash> = embedding::known(self.collection, &hashes)?;
        let mut missing: Vec<(ContentHash, String)> =
            texts.into_iter().filter(|(hash, _)| !known.contains(hash)).collect();
        missing.sort();
        let mut fresh = Fresh::with_capacity(missing.len());
        for part in missing.chunks(EMBED_TEXTS) {
            let texts = part.iter().map(|(_, text)| text.clone()).collect();
            let vectors = engine::vectors(&self.collection.model, texts, self.waits)?;
            // A text that has none is asked for once more with its document, and fails that.
            fresh.extend(part.iter().zip(vectors).filter_map(|((hash, _), vector)| Some((*hash, vector.ok()?))));
        }
        Ok(fresh)
    }

    /// The vector of one text, and whether the text was cut.
    fn embed_one(&self, text: String) -> Result<(Vec<f32>, bool)> {
        engine::vectors(&self.collection.model, vec![text], self.waits)?.pop().ok_or_else(engine_client::unexpected)?
    }

    fn store(&self, document: &Document, fresh: &Fresh, vector_schema: &str) -> Result<Stored> {
        let row = document::upsert(self.source, document, &self.fingerprint.0, PARSER_VERSION, self.acl)?;
        let mut old = if row.new { HashMap::new() } else { chunk::existing(row.id)? };
        let identities = chunk::identities(&self.source.name, document);
        let ids = chunk::write(self.source, &row, document, &identities, &mut old)?;
        let mut truncated = 0;
        for (id, text) in ids.into_iter().zip(self.texts(document)) {
            let hash = ContentHash::of(&text);
            let cut = match fresh.get(&hash) {
                Some((vector, cut)) => {
                    embedding::put(self.collection, vector_schema, id, hash, vector, *cut, row.acl.as_deref())?;
                    *cut
                }
                None => match embedding::reuse(self.collection, id, hash, row.acl.as_deref())? {
                    Some(cut) => cut,
                    // The vector was there when the batch began; its chunk has been replaced since.
                    None if self.embed => {
                        let (vector, cut) = self.embed_one(text)?;
                        embedding::put(self.collection, vector_schema, id, hash, &vector, cut, row.acl.as_deref())?;
                        cut
                    }
                    None => {
                        embedding::forget(self.collection, id)?;
                        false
                    }
                },
            };
            truncated += i32::from(cut);
        }
        // Last, because a vector may have been reused from a chunk that goes.
        chunk::delete(old.into_values().collect())?;
        Ok(Stored {
            document_id: row.id,
            new: row.new,
            chunks: document.chunks.len() as i32,
            tokens: document.chunks.iter().map(|c| i64::from(c.token_count)).sum(),
            truncated,
        })
    }
}

/// Content given inline.
#[derive(Debug)]
pub struct Inline {
    /// The bytes.
    pub content: Vec<u8>,
    /// Identity of the document.
    pub uri: String,
    /// Kind of the content.
    pub kind: SourceKind,
    /// What else is known about it.
    pub metadata: Map<String, Value>,
    /// Options as given.
    pub options: Value,
    /// Label of the document.
    pub acl: Option<String>,
}

/// Parses, embeds and stores one document given inline.
pub fn inline(collection: &Collection, inline: Inline, waits: Waits) -> Result<Stored> {
    if inline.uri.trim().is_empty() {
        return Err(Error::invalid("uri is empty"));
    }
    if inline.uri.len() > MAX_URI {
        return Err(too_long(&inline.uri).error);
    }
    let options = SourceOptions::parse_at(inline.kind, Location::Inline, &inline.options)?;
    let source = source::inline(collection)?;
    let fingerprint = options_sha256(&source, collection, &inline.options);
    let request = Request::Parse {
        kind: inline.kind,
        options: options.clone(),
        uri: inline.uri,
        content: inline.content,
        metadata: inline.metadata,
        model: collection.model.spec.clone(),
    };
    let Reply::Document(read) = engine_client::ask(&request, waits)? else { return Err(engine_client::unexpected()) };
    let read = read.map_err(|failure| failure.error)?;
    let acl = inline.acl.as_deref();
    let task = Task { source: &source, collection, options: &options, fingerprint, acl, embed: true, waits };
    let stored = task.store_all(vec![Ok(read)])?.pop();
    stored.ok_or_else(|| Error::internal("nothing was stored"))?.map_err(|failure| failure.error)
}
