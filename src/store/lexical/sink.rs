// SPDX-License-Identifier: PostgreSQL

//! Writing a segment.
//!
//! Rows go out in batches while they come, so that a merge of millions keeps little in memory; a segment of a few documents
//! becomes one row.

use super::Unit;
use super::rows::TableRows;
use crate::spi;
use rag_core::lexical::compaction::Merged;
use rag_core::lexical::index::Part;
use rag_core::lexical::shelf::Sink;
use rag_core::{Error, Result};
use std::rc::Rc;

/// Bytes that are written at once.
const BATCH: usize = 1 << 20;

/// Whose documents a segment holds.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// Their collection.
    pub collection_id: i64,
    /// What they are.
    pub unit: Unit,
    /// Their label.
    pub acl: Option<String>,
}

/// A segment on its way into the tables.
#[derive(Debug)]
pub struct TableSink {
    id: i64,
    shelves: Vec<(String, Vec<u8>)>,
    pages: Vec<(u32, u32, Vec<u8>)>,
    /// Bytes that are not written yet, and all.
    waiting: usize,
    bytes: usize,
    flushed: bool,
}

impl TableSink {
    /// Begins a segment.
    pub fn new() -> Result<Self> {
        let id = spi::write("SELECT pg_catalog.nextval('rag.lex_segment_id_seq')", &[], |row| row.get(1))?.pop();
        let id = id.ok_or_else(|| Error::internal("no number for a segment"))?;
        Ok(Self { id, shelves: Vec::new(), pages: Vec::new(), waiting: 0, bytes: 0, flushed: false })
    }

    fn grown(&mut self, bytes: usize) -> Result<()> {
        self.bytes += bytes;
        self.waiting += bytes;
        // A merge of millions writes many batches in one call of a function.
        if self.waiting < BATCH { Ok(()) } else { spi::scratch(|| self.flush()) }
    }

    fn flush(&mut self) -> Result<()> {
        self.waiting = 0;
        self.flushed = true;
        if !self.shelves.is_empty() {
            let (terms, payloads): (Vec<String>, Vec<Vec<u8>>) = self.shelves.drain(..).unzip();
            let sql = "INSERT INTO rag.lex_shelf (segment_id, term, payload)
                       SELECT $1, s.term, s.payload FROM ROWS FROM (unnest($2::text[]), unnest($3::bytea[])) AS s (term, payload)";
            spi::execute(sql, &[self.id.into(), terms.into(), payloads.into()])?;
        }
        if !self.pages.is_empty() {
            let (mut lists, mut parts, mut payloads) = (Vec::new(), Vec::new(), Vec::new());
            for (list, part, payload) in self.pages.drain(..) {
                lists.push(list as i32);
                parts.push(part as i32);
                payloads.push(payload);
            }
            let sql = "INSERT INTO rag.lex_page (segment_id, list, part, payload)
                       SELECT $1, p.list, p.part, p.payload
                         FROM ROWS FROM (unnest($2::integer[]), unnest($3::integer[]), unnest($4::bytea[]))
                              AS p (list, part, payload)";
            spi::execute(sql, &[self.id.into(), lists.into(), parts.into(), payloads.into()])?;
        }
        Ok(())
    }

    /// Writes what is left and the row of the segment itself.
    pub fn finish(self, place: &Place, dead: bool, segment: Merged) -> Result<Part> {
        spi::scratch(|| self.end(place, dead, segment))
    }

    fn end(mut self, place: &Place, dead: bool, segment: Merged) -> Result<Part> {
        let only = match (self.flushed, self.shelves.as_slice(), self.pages.as_slice()) {
            (false, [_], []) => self.shelves.pop().map(|(_, bytes)| bytes),
            _ => None,
        };
        self.flush()?;
        let sql = "INSERT INTO rag.lex_segment
                          (id, collection_id, unit, acl, dead, documents, total_dl, postings, terms, bytes, ids, keys, shelf)
                   OVERRIDING SYSTEM VALUE VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)";
        let args = [
            self.id.into(),
            place.collection_id.into(),
            place.unit.name().into(),
            place.acl.clone().into(),
            dead.into(),
            (segment.documents as i64).into(),
            (segment.total_dl as i64).into(),
            (segment.postings as i64).into(),
            (segment.terms as i64).into(),
            (self.bytes as i64).into(),
            segment.ids.encode().into(),
            segment.keys.encode().into(),
            only.into(),
        ];
        spi::execute(sql, &args)?;
        Ok(Part {
            id: self.id,
            dead,
            documents: segment.documents,
            total_dl: segment.total_dl,
            ids: Rc::new(segment.ids),
            keys: Rc::new(segment.keys),
            rows: Rc::new(TableRows(self.id)),
        })
    }
}

impl Sink for TableSink {
    fn shelf(&mut self, first: &str, bytes: Vec<u8>) -> Result<()> {
        let size = first.len() + bytes.len();
        self.shelves.push((first.to_owned(), bytes));
        self.grown(size)
    }

    fn page(&mut self, number: u32, part: u32, bytes: Vec<u8>) -> Result<()> {
        let size = bytes.len();
        self.pages.push((number, part, bytes));
        self.grown(size)
    }
}
