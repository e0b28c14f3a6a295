// SPDX-License-Identifier: PostgreSQL

//! Merging segments, and making them anew.
//!
//! A merge reads by one snapshot, writes the new segment and deletes the rows of the old ones, in one transaction. Whoever
//! reads meanwhile sees the old ones; whoever writes adds rows that the merge has not seen and leaves. So it takes no lock
//! but one that keeps two merges of a collection apart.

use super::Unit;
use super::changes::{Batch, Forward};
use super::population::{self, Labels};
use super::sink::{Place, TableSink};
use crate::am::{self, Columns, Side};
use crate::spi;
use pgrx::check_for_interrupts;
use pgrx::trigger_support::PgTrigger;
use rag_core::lexical::compaction::{self, FAN, Plan};
use rag_core::lexical::index::{Index, Part};
use rag_core::lexical::whole::{self, Documents};
use rag_core::{Error, Result};
use std::collections::HashSet;
use std::rc::Rc;

/// How far to go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// The next step of the tiers.
    Step,
    /// The next step of the lower tiers, which takes a second or so.
    ShortStep,
    /// One segment for each label.
    Full,
}

/// Documents of segments from which merging some is no short step.
const SHORT: u64 = (FAN as u64).pow(4);

/// The places that have segments, of one collection or of all.
pub fn places(collection_id: Option<i64>) -> Result<Vec<Place>> {
    let sql = "SELECT DISTINCT s.collection_id, s.acl, s.unit FROM rag.lex_segment s
                WHERE $1 IS NULL OR s.collection_id = $1 ORDER BY 1, 2, 3";
    spi::select(sql, &[collection_id.into()], |row| {
        Ok(Place { collection_id: row.get(1)?, unit: Unit::by_name(&row.get::<String>(3)?)?, acl: row.optional(2)? })
    })
}

/// What a merge came to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Compacted {
    /// Segments that were merged.
    pub merged: usize,
    /// Whether a further step would find something to merge.
    pub more: bool,
}

/// Merges segments of a place once. Somebody else's merge is not waited for unless it is to go all the way.
pub fn compact(place: &Place, extent: Extent) -> Result<Compacted> {
    spi::needs_fresh_snapshots("segments cannot be merged")?;
    match extent {
        Extent::Full => spi::lock::exclusive("rag.lex_segment", place.collection_id)?,
        _ if !spi::lock::try_exclusive("rag.lex_segment", place.collection_id)? => {
            return Ok(Compacted::default());
        }
        _ => {}
    }
    spi::fresh_snapshot(|| {
        let merging = Merging::load(place)?;
        // What is not known to be alive cannot be merged. Nobody searches it either: see `population::is_usable`.
        let plan = if merging.strays() > 0 { Plan::default() } else { merging.plan(extent) };
        if plan.is_empty() {
            return Ok(Compacted::default());
        }
        let merged = merge(place, &merging, &plan)?;
        let more = extent != Extent::Full && !merging.after(&plan, merged).plan(extent).is_empty();
        Ok(Compacted { merged: plan.live.len() + plan.dead.len(), more })
    })
}

/// What is merged. Pieces do not show by themselves that some were never written; the entries of passages do.
enum Merging {
    Chunks(Rc<Index>),
    Documents(Rc<Documents>, Rc<Index>),
}

impl Merging {
    fn load(place: &Place) -> Result<Self> {
        let labels = Labels::Only(place.acl.clone());
        let chunks = || Ok(population::load(place.collection_id, labels.clone(), 0)?.index);
        if place.unit == Unit::Chunk {
            return chunks().map(Self::Chunks);
        }
        let documents = population::load_documents(place.collection_id, labels.clone(), 0)?.index;
        // What was never deleted lacks nothing.
        let chunks = if documents.index().dead().is_empty() { Rc::new(Index::new(Vec::new())) } else { chunks()? };
        Ok(Self::Documents(documents, chunks))
    }

    fn index(&self) -> &Index {
        match self {
            Self::Chunks(index) => index,
            Self::Documents(documents, _) => documents.index(),
        }
    }

    fn strays(&self) -> u64 {
        match self {
            Self::Chunks(index) => index.strays(),
            Self::Documents(documents, chunks) => documents.strays() + chunks.strays(),
        }
    }

    /// What it is when `merged` has taken the place of what a plan names.
    fn after(&self, plan: &Plan, merged: Vec<Part>) -> Self {
        let index = self.index();
        let rest = |parts: &[Part], done: &[usize]| -> Vec<Part> {
            let done: HashSet<usize> = done.iter().copied().collect();
            parts.iter().enumerate().filter(|(at, _)| !done.contains(at)).map(|(_, part)| part.clone()).collect()
        };
        let parts = [rest(index.live(), &plan.live), rest(index.dead(), &plan.dead), merged].concat();
        match self {
            Self::Chunks(_) => Self::Chunks(Rc::new(Index::new(parts))),
            Self::Documents(_, chunks) => Self::Documents(Rc::new(Documents::new(parts)), Rc::clone(chunks)),
        }
    }

    fn plan(&self, extent: Extent) -> Plan {
        match (extent, self) {
            (Extent::Full, _) => compaction::full(self.index()),
            (Extent::Step, Self::Chunks(index)) => compaction::plan(index),
            (Extent::Step, Self::Documents(documents, _)) => whole::plan(documents),
            (Extent::ShortStep, Self::Chunks(index)) => compaction::plan_below(index, SHORT),
            (Extent::ShortStep, Self::Documents(documents, _)) => whole::plan_below(documents, SHORT),
        }
    }
}

/// Writes the merged segments, which it returns, and removes those they are made of.
fn merge(place: &Place, merging: &Merging, plan: &Plan) -> Result<Vec<Part>> {
    let mut interrupt = || {
        check_for_interrupts!();
        Ok(())
    };
    let mut parts = Vec::new();
    for dead in [false, true] {
        let mut sink = TableSink::new()?;
        let merged = match (merging, dead) {
            (Merging::Chunks(index), false) => compaction::merge_live(index, plan, &mut sink, &mut interrupt),
            (Merging::Chunks(index), true) => compaction::merge_dead(index, plan, &mut sink, &mut interrupt),
            (Merging::Documents(documents, _), _) => whole::merge(documents, plan, dead, &mut sink, &mut interrupt),
        };
        if let Some(merged) = merged? {
            parts.push(sink.finish(place, dead, merged)?);
        }
    }
    let index = merging.index();
    let live = plan.live.iter().map(|at| index.live()[*at].id);
    remove(live.chain(plan.dead.iter().map(|at| index.dead()[*at].id)).collect())?;
    Ok(parts)
}

fn remove(segments: Vec<i64>) -> Result<()> {
    for table in ["lex_page", "lex_shelf"] {
        spi::execute(&format!("DELETE FROM rag.{table} WHERE segment_id = ANY($1)"), &[segments.clone().into()])?;
    }
    spi::execute("DELETE FROM rag.lex_segment WHERE id = ANY($1)", &[segments.into()]).map(|_| ())
}

fn remove_all(collection_id: i64) -> Result<()> {
    let sql = "SELECT id FROM rag.lex_segment WHERE collection_id = $1";
    // Not by the snapshot of the statement: what has waited for a merge must see what it wrote.
    remove(spi::write(sql, &[collection_id.into()], |row| row.get(1))?)
}

/// Makes the index of a collection anew from its passages; returns their number. Nobody writes passages meanwhile.
pub fn reindex(collection_id: i64) -> Result<i64> {
    spi::needs_fresh_snapshots("an index cannot be made anew")?;
    spi::command("LOCK TABLE rag.chunk IN SHARE MODE")?;
    spi::lock::exclusive("rag.lex_segment", collection_id)?;
    remove_all(collection_id)?;
    let mut batch = Batch::new(false);
    let mut count = 0;
    let sql = "SELECT c.entry, c.dl, pg_catalog.tsvectorsend(c.tsv), c.acl, c.document_id, c.id FROM rag.chunk c
                WHERE c.collection_id = $1 AND c.current";
    spi::each(sql, &[collection_id.into()], |row| {
        count += 1;
        let dl = row.get::<i32>(2)?.unsigned_abs();
        let passage = Forward { entry: row.get(1)?, key: row.get(6)?, document_id: row.get(5)?, dl, wire: row.get(3)? };
        batch.add(collection_id, row.optional(4)?, passage)
    })?;
    batch.finish()?;
    spi::execute("DELETE FROM rag.lex_gap WHERE collection_id = $1", &[collection_id.into()])?;
    Ok(count)
}

/// Deletes the index of collections that are gone, with what a merge that has begun before leaves behind.
pub fn drop_segments(trigger: &PgTrigger<'_>) -> Result<()> {
    super::changes::belongs(trigger, "collection")?;
    let mut collections: Vec<i64> = Vec::new();
    let columns = Columns::new(trigger, &[c"id"])?;
    am::changed(trigger, Side::Old, &columns, |row| {
        collections.push(row.get(0)?);
        Ok(())
    })?;
    collections.sort_unstable();
    for collection_id in collections {
        spi::lock::exclusive("rag.lex_segment", collection_id)?;
        remove_all(collection_id)?;
        spi::execute("DELETE FROM rag.lex_gap WHERE collection_id = $1", &[collection_id.into()])?;
    }
    Ok(())
}

/// How the triggers that write the index are switched: each with its name, and as which letter of `pg_trigger.tgenabled`.
const TRIGGERS: [(&str, &str); 8] = [
    ("new_entry", "A"),
    ("renew_entry", "A"),
    ("index_inserted", "A"),
    ("index_updated", "A"),
    ("index_deleted", "A"),
    ("index_inserted_row", "R"),
    ("index_updated_row", "R"),
    ("index_deleted_row", "R"),
];

/// Switches the triggers that write the index as they were; says whether they were not. `pg_restore --disable-triggers` leaves them
/// as any others.
pub fn enable_triggers() -> Result<bool> {
    if !may_mend()? {
        return Ok(false);
    }
    let sql =
        "SELECT t.tgname::text, t.tgenabled::text FROM pg_catalog.pg_trigger t WHERE t.tgrelid = 'rag.chunk'::regclass";
    let found: Vec<(String, String)> = spi::select(sql, &[], |row| Ok((row.get(1)?, row.get(2)?)))?;
    let differs = |(name, how): &&(&str, &str)| found.iter().any(|(n, h)| n == name && h != how);
    let wrong: Vec<&(&str, &str)> = TRIGGERS.iter().filter(differs).collect();
    for (name, how) in &wrong {
        let when = if *how == "A" { "ALWAYS" } else { "REPLICA" };
        spi::command(&format!("ALTER TABLE rag.chunk ENABLE {when} TRIGGER {name}"))?;
    }
    Ok(!wrong.is_empty())
}

/// Whether the caller may change the index.
fn may_mend() -> Result<bool> {
    let sql = "SELECT pg_catalog.has_table_privilege('rag.lex_segment'::regclass, 'DELETE')
                      AND NOT pg_catalog.row_security_active('rag.lex_segment'::regclass)";
    Ok(spi::select_one(sql, &[], |row| row.get(1))?.unwrap_or(false))
}

/// Collections whose index does not have what they have, or may not; none for who may not mend them.
pub fn faulty() -> Result<Vec<(i64, String)>> {
    if !may_mend()? {
        return Ok(Vec::new());
    }
    let sql = "SELECT c.id, c.name FROM rag.collection c
                WHERE EXISTS (SELECT FROM rag.lex_gap g WHERE g.collection_id = c.id)
                   OR (SELECT pg_catalog.count(*) FROM rag.chunk k WHERE k.collection_id = c.id AND k.current)
                      <> (SELECT coalesce(sum(CASE WHEN s.dead THEN -s.documents ELSE s.documents END), 0)
                            FROM rag.lex_segment s WHERE s.collection_id = c.id AND s.unit = 'chunk')
                   OR (SELECT coalesce(sum(k.dl), 0) FROM rag.chunk k WHERE k.collection_id = c.id AND k.current)
                      <> ANY (SELECT coalesce(sum(CASE WHEN s.dead THEN -s.total_dl ELSE s.total_dl END), 0)
                                FROM (VALUES ('chunk'), ('document')) AS u (unit)
                                LEFT JOIN rag.lex_segment s ON s.collection_id = c.id AND s.unit = u.unit GROUP BY u.unit)
                ORDER BY c.id";
    let mut faulty: Vec<(i64, String)> = spi::select(sql, &[], |row| Ok((row.get(1)?, row.get(2)?)))?;
    let all = "SELECT c.id, c.name FROM rag.collection c ORDER BY c.id";
    for (id, name) in spi::select(all, &[], |row| Ok((row.get::<i64>(1)?, row.get::<String>(2)?)))? {
        let is_known = faulty.iter().any(|(known, _)| *known == id);
        // One that cannot be read is no better.
        let strays = || {
            let documents = population::load_documents(id, Labels::All, 0)?;
            Ok::<_, Error>(population::load(id, Labels::All, 0)?.index.strays() + documents.index.strays())
        };
        if !is_known && strays().map_or(true, |strays| strays > 0) {
            faulty.push((id, name));
        }
    }
    Ok(faulty)
}
