// SPDX-License-Identifier: PostgreSQL

//! What a statement on `rag.chunk` changed, as segments.
//!
//! Called by triggers, whoever runs the statement: a sync, `rag.ingest`, a restore, or somebody with a psql. The worker of a
//! subscription runs none; what it writes comes row by row. A statement
//! may have a million rows (a restore has all of them), so passages become segments while they are read, as soon as they
//! are enough. Each run becomes two segments: of the passages, and of the pieces of their documents.

use super::Unit;
use super::population;
use super::sink::{Place, TableSink};
use crate::am::{self, Columns, Side};
use pgrx::trigger_support::{PgTrigger, PgTriggerLevel};
use rag_core::lexical::compaction::{FAN, Merged};
use rag_core::lexical::keys::Keys;
use rag_core::lexical::ordinals::Ids;
use rag_core::lexical::segment::Builder;
use rag_core::lexical::shelf::Writer;
use rag_core::lexical::tsvector;
use rag_core::lexical::whole::PASSAGES;
use rag_core::{Error, Kind, Result};
use std::collections::{BTreeMap, HashMap, HashSet};

/// Bytes of forward data that are kept before they become segments.
const BATCH: usize = 64 << 20;

/// Segments of less than [`FAN`] documents that a place may have before somebody is called to merge them.
const CROWD: usize = 2 * FAN;

/// Passages deleted by one statement that are worth a look at what they leave behind.
const MANY: usize = 64;

/// What a passage is found by.
#[derive(Debug)]
pub struct Forward {
    /// Its entry.
    pub entry: i64,
    /// The key of the chunk.
    pub key: i64,
    /// Its document.
    pub document_id: i64,
    /// Its length in lexemes.
    pub dl: u32,
    /// Its `tsvector` in wire form.
    pub wire: Vec<u8>,
}

/// Whose passages are together: of one collection and one label.
type Owner = (i64, Option<String>);

/// Passages on their way into segments, of themselves and of their documents.
#[derive(Debug)]
pub struct Batch {
    dead: bool,
    bytes: usize,
    passages: BTreeMap<Owner, Vec<Forward>>,
    written: Written,
}

/// What a batch came to.
#[derive(Debug, Default)]
pub struct Written {
    /// Where segments were written.
    pub places: Vec<Place>,
    /// Of how many passages.
    pub passages: usize,
}

impl Batch {
    /// Of passages that live, or that are `dead` now.
    pub fn new(dead: bool) -> Self {
        Self { dead, bytes: 0, passages: BTreeMap::new(), written: Written::default() }
    }

    /// Adds a passage.
    pub fn add(&mut self, collection_id: i64, acl: Option<String>, passage: Forward) -> Result<()> {
        self.bytes += passage.wire.len() + size_of::<Forward>();
        self.passages.entry((collection_id, acl)).or_default().push(passage);
        if self.bytes < BATCH { Ok(()) } else { self.flush() }
    }

    /// Writes what is left.
    pub fn finish(mut self) -> Result<Written> {
        self.flush()?;
        Ok(self.written)
    }

    fn flush(&mut self) -> Result<()> {
        self.bytes = 0;
        for ((collection_id, acl), mut passages) in std::mem::take(&mut self.passages) {
            self.written.passages += passages.len();
            passages.sort_unstable_by_key(|p| p.entry);
            let place = Place { collection_id, unit: Unit::Chunk, acl };
            of_passages(&place, self.dead, &passages)?;
            passages.sort_unstable_by_key(|p| p.document_id);
            let whole = Place { unit: Unit::Document, ..place.clone() };
            of_documents(&whole, self.dead, &passages)?;
            self.written.places.extend([place, whole]);
        }
        Ok(())
    }
}

/// Writes one segment of passages in the order of their entries.
fn of_passages(place: &Place, dead: bool, passages: &[Forward]) -> Result<()> {
    let (mut ids, mut keys, mut builder) = (Ids::default(), Keys::default(), Builder::<String>::default());
    for passage in passages {
        builder.begin(ids.push(passage.entry)?, passage.dl)?;
        keys.push(passage.entry, passage.key);
        each_term(passage, |term, tf| builder.term(term, tf))?;
    }
    write(place, dead, (ids, keys), builder)
}

/// Writes one segment of the documents of passages, which come in the order of these.
fn of_documents(place: &Place, dead: bool, passages: &[Forward]) -> Result<()> {
    let (mut ids, mut builder) = (Ids::default(), Builder::<String>::default());
    let mut sums: HashMap<String, u32> = HashMap::new();
    for piece in passages.chunk_by(|a, b| a.document_id == b.document_id) {
        let Some(first) = piece.first() else { continue };
        let dl = piece.iter().try_fold(0u32, |sum, passage| sum.checked_add(passage.dl)).ok_or_else(too_long)?;
        builder.begin(ids.push(first.document_id)?, dl)?;
        builder.term(PASSAGES, u32::try_from(piece.len()).map_err(|_| too_long())?)?;
        if let [only] = piece {
            each_term(only, |term, tf| builder.term(term, tf))?;
            continue;
        }
        for passage in piece {
            each_term(passage, |term, tf| {
                match sums.get_mut(term) {
                    Some(sum) => *sum = sum.checked_add(tf).ok_or_else(too_long)?,
                    None => _ = sums.insert(term.to_owned(), tf),
                }
                Ok(())
            })?;
        }
        for (term, tf) in sums.drain() {
            builder.term(&term, tf)?;
        }
    }
    write(place, dead, (ids, Keys::default()), builder)
}

fn too_long() -> Error {
    Error::new(Kind::LimitExceeded, format!("a document has more than {} lexemes", u32::MAX))
}

fn each_term(passage: &Forward, mut each: impl FnMut(&str, u32) -> Result<()>) -> Result<()> {
    let mut outcome = Ok(());
    tsvector::for_each(&passage.wire, |lexeme, tf| {
        if outcome.is_ok() {
            let lexeme = std::str::from_utf8(lexeme).map_err(|_| Error::internal("a lexeme is not UTF-8"));
            outcome = lexeme.and_then(|lexeme| each(lexeme, tf));
        }
    })?;
    outcome
}

fn write(place: &Place, dead: bool, (ids, keys): (Ids, Keys), builder: Builder<String>) -> Result<()> {
    let postings = builder.postings();
    let built = builder.finish();
    let (mut sink, mut writer) = (TableSink::new()?, Writer::default());
    for (term, list) in built.lists {
        writer.add(&term, list, &mut sink)?;
    }
    let terms = writer.finish(&mut sink)?;
    let (documents, total_dl) = (built.documents, built.total_dl);
    sink.finish(place, dead, Merged { documents, total_dl, ids, keys, postings, terms }).map(|_| ())
}

/// Refuses a trigger on any table but one: whoever may call functions of the extension must not aim one by a table of his own.
pub(super) fn belongs(trigger: &PgTrigger<'_>, to: &str) -> Result<()> {
    let schema = trigger.table_schema().map_err(|e| Error::internal(e.to_string()))?;
    let table = trigger.table_name().map_err(|e| Error::internal(e.to_string()))?;
    match schema == "rag" && table == to {
        true => Ok(()),
        false => Err(Error::new(Kind::Forbidden, "this trigger belongs to the tables of pg_rag")),
    }
}

/// Writes what the statement of a trigger changed, or the row of one where there is no statement; says whether there is something to merge now, if somebody `asks`.
pub fn statement(trigger: &PgTrigger<'_>, asks: bool) -> Result<bool> {
    belongs(trigger, "chunk")?;
    // What a statement did is for the trigger of statements.
    if matches!(trigger.level(), PgTriggerLevel::Row) && am::has_statement(trigger) {
        return Ok(false);
    }
    let columns =
        Columns::new(trigger, &[c"entry", c"current", c"collection_id", c"acl", c"dl", c"tsv", c"document_id", c"id"])?;
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
    if gone.passages >= MANY {
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
        let (dl, wire) = (row.get::<i32>(4)?.unsigned_abs(), row.tsvector(5)?);
        let forward = Forward { entry, key: row.get(7)?, document_id: row.get(6)?, dl, wire };
        batch.add(row.get(2)?, row.optional(3), forward)
    })?;
    batch.finish()
}
