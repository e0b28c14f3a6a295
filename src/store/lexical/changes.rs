// SPDX-License-Identifier: PostgreSQL

//! What a statement on `rag.chunk` changed, as segments.
//!
//! Called by triggers, whoever runs the statement: a sync, `rag.ingest`, a restore, or somebody with a psql. A statement
//! may have a million rows (a restore has all of them), so documents become segments while they are read, as soon as they
//! are enough.

use super::Unit;
use super::population;
use super::sink::{Place, TableSink};
use crate::am::{self, Changed, Columns, Side};
use pgrx::trigger_support::PgTrigger;
use rag_core::lexical::compaction::{FAN, Merged};
use rag_core::lexical::ordinals::Ids;
use rag_core::lexical::segment::Builder;
use rag_core::lexical::shelf::Writer;
use rag_core::lexical::tsvector;
use rag_core::{Error, Kind, Result};
use std::collections::{BTreeMap, HashSet};

/// Bytes of forward data that are kept before they become segments.
const BATCH: usize = 64 << 20;

/// Segments of less than [`FAN`] documents that a place may have before somebody is called to merge them.
const CROWD: usize = 2 * FAN;

/// Documents deleted by one statement that are worth a look at what they leave behind.
const MANY: usize = 64;

/// What a document is found by.
#[derive(Debug)]
pub struct Forward {
    /// Its entry.
    pub entry: i64,
    /// Its length in lexemes.
    pub dl: u32,
    /// Its `tsvector` in wire form.
    pub wire: Vec<u8>,
}

/// Documents on their way into segments.
#[derive(Debug)]
pub struct Batch {
    dead: bool,
    bytes: usize,
    documents: BTreeMap<Place, Vec<Forward>>,
    written: Written,
}

/// What a batch came to.
#[derive(Debug, Default)]
pub struct Written {
    /// Where segments were written.
    pub places: Vec<Place>,
    /// Of how many documents.
    pub documents: usize,
}

impl Batch {
    /// Of documents that live, or that are `dead` now.
    pub fn new(dead: bool) -> Self {
        Self { dead, bytes: 0, documents: BTreeMap::new(), written: Written::default() }
    }

    /// Adds a document.
    pub fn add(&mut self, place: Place, document: Forward) -> Result<()> {
        self.bytes += document.wire.len() + size_of::<Forward>();
        self.documents.entry(place).or_default().push(document);
        if self.bytes < BATCH { Ok(()) } else { self.flush() }
    }

    /// Writes what is left.
    pub fn finish(mut self) -> Result<Written> {
        self.flush()?;
        Ok(self.written)
    }

    fn flush(&mut self) -> Result<()> {
        self.bytes = 0;
        for (place, mut documents) in std::mem::take(&mut self.documents) {
            documents.sort_unstable_by_key(|d| d.entry);
            segment(&place, self.dead, &documents)?;
            self.written.documents += documents.len();
            self.written.places.push(place);
        }
        Ok(())
    }
}

/// Writes one segment.
fn segment(place: &Place, dead: bool, documents: &[Forward]) -> Result<()> {
    let (mut ids, mut builder) = (Ids::default(), Builder::<String>::default());
    for document in documents {
        builder.begin(ids.push(document.entry)?, document.dl)?;
        let mut outcome = Ok(());
        tsvector::for_each(&document.wire, |lexeme, tf| {
            if outcome.is_ok() {
                outcome = std::str::from_utf8(lexeme)
                    .map_err(|_| Error::internal("a lexeme is not UTF-8"))
                    .and_then(|lexeme| builder.term(lexeme, tf));
            }
        })?;
        outcome?;
    }
    let postings = builder.postings();
    let built = builder.finish();
    let (mut sink, mut writer) = (TableSink::new()?, Writer::default());
    for (term, list) in built.lists {
        writer.add(&term, list, &mut sink)?;
    }
    let terms = writer.finish(&mut sink)?;
    sink.finish(place, dead, &Merged { documents: built.documents, total_dl: built.total_dl, ids, postings, terms })
}

/// Writes what the statement of a trigger changed; says whether there is something to merge now, if somebody `asks`.
pub fn statement(trigger: &PgTrigger<'_>, asks: bool) -> Result<bool> {
    let schema = trigger.table_schema().map_err(|e| Error::internal(e.to_string()))?;
    let table = trigger.table_name().map_err(|e| Error::internal(e.to_string()))?;
    if schema != "rag" || table != "chunk" {
        return Err(Error::new(Kind::Forbidden, "this trigger belongs to the tables of pg_rag"));
    }
    let columns = Columns::new(trigger, &[c"entry", c"current", c"collection_id", c"acl", c"dl", c"tsv"])?;
    // An entry on both sides is of a row whose terms did not change.
    let mut counts: BTreeMap<i64, u64> = BTreeMap::new();
    let mut entries = |side: Side| -> Result<HashSet<i64>> {
        let mut found = HashSet::new();
        am::changed(trigger, side, &columns, |row| {
            found.insert(row.get(0)?);
            if side == Side::New && row.get(1)? {
                *counts.entry(row.get(2)?).or_default() += 1;
            }
            Ok(())
        })?;
        Ok(found)
    };
    let (old, new) = (entries(Side::Old)?, entries(Side::New)?);
    for (collection_id, added) in counts {
        population::note_gap(collection_id, added)?;
    }
    let (gone, mut added) =
        (written(trigger, Side::Old, &columns, &new)?, written(trigger, Side::New, &columns, &old)?);
    if !asks {
        return Ok(false);
    }
    if gone.documents >= MANY {
        return Ok(true);
    }
    added.places.extend(gone.places);
    added.places.sort();
    added.places.dedup();
    for place in &added.places {
        if population::is_crowded(place, FAN as u64, CROWD)? {
            return Ok(true);
        }
    }
    Ok(false)
}

fn written(trigger: &PgTrigger<'_>, side: Side, columns: &Columns, other: &HashSet<i64>) -> Result<Written> {
    let mut batch = Batch::new(side == Side::Old);
    am::changed(trigger, side, columns, |row| {
        let entry: i64 = row.get(0)?;
        if !row.get::<bool>(1)? || other.contains(&entry) {
            return Ok(());
        }
        batch.add(place(row)?, Forward { entry, dl: row.get::<i32>(4)?.unsigned_abs(), wire: row.tsvector(5)? })
    })?;
    batch.finish()
}

fn place(row: &Changed<'_>) -> Result<Place> {
    Ok(Place { collection_id: row.get(2)?, unit: Unit::Chunk, acl: row.optional(3) })
}
