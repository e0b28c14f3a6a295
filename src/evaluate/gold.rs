// SPDX-License-Identifier: PostgreSQL

//! Gold, looked up in the collection as the caller sees it.
//!
//! Owns finding the documents that gold names and the passages of their spans ([`rag_core::evaluation::resolve`]). What is not
//! there, or not once, is an error that names the question: a gold that nobody can find would count as never found.

use crate::spi;
use crate::store::question::Stored;
use pgrx::{Uuid, check_for_interrupts};
use rag_core::evaluation::measure::Resolved;
use rag_core::evaluation::question::{Address, Gold, Span};
use rag_core::evaluation::resolve::{Passage, resolve};
use rag_core::provenance::ContentHash;
use rag_core::{Error, Kind, Result};
use std::collections::{BTreeMap, BTreeSet};

/// A document that gold may name.
#[derive(Debug, Clone)]
struct Document {
    id: i64,
    source: String,
    uri: String,
}

/// Passages of a document, with their permanent keys in the same order.
type Passages = (Vec<Passage>, BTreeMap<i64, [u8; 16]>);

/// Gold of all questions as it was found, and the hash of it.
#[derive(Debug)]
pub struct Found {
    /// For each question its gold, in its order.
    pub of: Vec<Vec<Resolved>>,
    /// Hash over questions, documents, places, grades and passages.
    pub sha256: Vec<u8>,
}

/// Looks all gold up.
pub fn find(collection_id: i64, questions: &[Stored]) -> Result<Found> {
    let all: Vec<&Gold> = questions.iter().flat_map(|q| &q.question.gold).collect();
    let documents = documents(collection_id, &all)?;
    let named: Vec<Vec<&Document>> = questions
        .iter()
        .map(|q| q.question.gold.iter().map(|gold| document(&documents, gold, &q.question.key)).collect())
        .collect::<Result<_>>()?;
    let mut spans = BTreeSet::new();
    for (question, named) in questions.iter().zip(&named) {
        let with_span = question.question.gold.iter().zip(named).filter(|(gold, _)| gold.span != Span::Document);
        spans.extend(with_span.map(|(_, document)| document.id));
    }
    let passages = passages(&spans.into_iter().collect::<Vec<i64>>())?;
    let none = Passages::default();
    let mut identity: Vec<u8> = Vec::new();
    let mut found = Vec::new();
    for (question, named) in questions.iter().zip(&named) {
        let mut of_question = Vec::new();
        for (gold, document) in question.question.gold.iter().zip(named) {
            check_for_interrupts!();
            let (of_document, keys) = passages.get(&document.id).unwrap_or(&none);
            let whole = gold.span == Span::Document;
            let chunks = match whole {
                true => Vec::new(),
                false => resolve(&gold.span, of_document)
                    .map_err(|why| stale(&question.question.key, gold, why.message()))?,
            };
            let place = format!(
                "{}\0{}\0{}\0{:?}\0{}\0",
                question.question.key, document.source, document.uri, gold.span, gold.grade
            );
            identity.extend(place.as_bytes());
            chunks.iter().filter_map(|id| keys.get(id)).for_each(|key| identity.extend(key));
            of_question.push(Resolved { whole, grade: gold.grade, document: document.id, chunks });
        }
        found.push(of_question);
    }
    Ok(Found { of: found, sha256: ContentHash::of(&identity).0.to_vec() })
}

fn stale(question: &str, gold: &Gold, why: &str) -> Error {
    Error::new(Kind::NotReady, format!("gold of question \"{question}\" {why}: {}", gold.shown()))
        .with_hint("Is its source synced? SELECT * FROM rag.status; Gold of an older version must be given anew with rag.import_questions.")
}

type ByAddress = BTreeMap<Address, Vec<Document>>;

fn documents(collection_id: i64, gold: &[&Gold]) -> Result<ByAddress> {
    let (mut uris, mut ids) = (BTreeSet::new(), BTreeSet::new());
    for gold in gold {
        match &gold.document {
            Address::Uri(uri) => uris.insert(uri.clone()),
            Address::ExternalId(id) => ids.insert(id.clone()),
        };
    }
    let mut documents = ByAddress::new();
    let mut add = |column: &str, names: BTreeSet<String>, address: fn(String) -> Address| -> Result<()> {
        let sql = format!(
            "SELECT d.id, s.name, d.uri, d.{column} FROM rag.source s JOIN rag.document d ON d.source_id = s.id
              WHERE s.collection_id = $1 AND d.current AND d.{column} = ANY ($2) ORDER BY d.id"
        );
        let names: Vec<String> = names.into_iter().collect();
        if names.is_empty() {
            return Ok(());
        }
        let read = |row: &spi::Row| {
            Ok((row.get::<String>(4)?, Document { id: row.get(1)?, source: row.get(2)?, uri: row.get(3)? }))
        };
        for (name, document) in spi::by_values(|| spi::select(&sql, &[collection_id.into(), names.into()], read))? {
            documents.entry(address(name)).or_default().push(document);
        }
        Ok(())
    };
    add("uri", uris, Address::Uri)?;
    add("external_id", ids, Address::ExternalId)?;
    Ok(documents)
}

fn document<'a>(documents: &'a ByAddress, gold: &Gold, question: &str) -> Result<&'a Document> {
    let named = documents.get(&gold.document).map(Vec::as_slice).unwrap_or_default();
    let fits = |d: &&Document| gold.source.as_ref().is_none_or(|source| *source == d.source);
    let mut fitting = named.iter().filter(fits);
    match (fitting.next(), fitting.next()) {
        (Some(one), None) => Ok(one),
        (None, _) => Err(stale(question, gold, "names a document that is not there")),
        (Some(one), Some(other)) => {
            let mut error = stale(question, gold, "names more than one document");
            error.hint = Some("Say which by \"source\".".to_owned());
            Err(error.with_detail(format!(
                "\"{}\" of source \"{}\" and \"{}\" of source \"{}\".",
                one.uri, one.source, other.uri, other.source
            )))
        }
    }
}

fn passages(documents: &[i64]) -> Result<BTreeMap<i64, Passages>> {
    let mut passages: BTreeMap<i64, Passages> = BTreeMap::new();
    let sql =
        "SELECT document_id, id, chunk_key, content, char_start, char_end, line_start, line_end, page_start, page_end
                 FROM rag.chunk WHERE document_id = ANY ($1) AND current ORDER BY document_id, ordinal, id";
    let mut read = |row: &spi::Row| {
        let wide = |column| -> Result<Option<u64>> { Ok(row.optional::<i64>(column)?.map(i64::unsigned_abs)) };
        let narrow = |column| -> Result<Option<u32>> { Ok(row.optional::<i32>(column)?.map(i32::unsigned_abs)) };
        let passage = Passage {
            id: row.get(2)?,
            content: row.get(4)?,
            chars: wide(5)?.zip(wide(6)?),
            lines: narrow(7)?.zip(narrow(8)?),
            pages: narrow(9)?.zip(narrow(10)?),
        };
        let (of_document, keys) = passages.entry(row.get(1)?).or_default();
        keys.insert(passage.id, *row.get::<Uuid>(3)?.as_bytes());
        of_document.push(passage);
        Ok(())
    };
    spi::by_keys(|| spi::select(sql, &[documents.to_vec().into()], |row| read(row)))?;
    Ok(passages)
}
