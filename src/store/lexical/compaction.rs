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
use crate::spi;
use pgrx::check_for_interrupts;
use rag_core::Result;
use rag_core::lexical::compaction::{self, Merged, Plan};
use rag_core::lexical::index::Index;
use rag_core::lexical::shelf::Sink;

/// How far to go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// The next step of the tiers.
    Step,
    /// One segment for each label.
    Full,
}

/// The places that have segments, of one collection or of all.
pub fn places(collection_id: Option<i64>) -> Result<Vec<Place>> {
    let sql = "SELECT DISTINCT s.collection_id, s.acl FROM rag.lex_segment s
                WHERE $1 IS NULL OR s.collection_id = $1 ORDER BY 1, 2";
    spi::select(sql, &[collection_id.into()], |row| {
        Ok(Place { collection_id: row.get(1)?, unit: Unit::Chunk, acl: row.optional(2)? })
    })
}

/// Merges segments of a place once; returns how many. Somebody else's merge is not waited for unless it is to go all the
/// way.
pub fn compact(place: &Place, extent: Extent) -> Result<usize> {
    spi::needs_fresh_snapshots("segments cannot be merged")?;
    match extent {
        Extent::Full => spi::lock::exclusive("rag.lex_segment", place.collection_id)?,
        Extent::Step if !spi::lock::try_exclusive("rag.lex_segment", place.collection_id)? => return Ok(0),
        Extent::Step => {}
    }
    spi::fresh_snapshot(|| {
        let population = population::load(place.collection_id, place.unit, Labels::Only(place.acl.clone()), 0)?;
        let index = &population.index;
        // What is not known to be alive cannot be merged. Nobody searches it either: see `population::is_usable`.
        if index.strays() > 0 {
            return Ok(0);
        }
        let plan = match extent {
            Extent::Full => compaction::full(index),
            Extent::Step => compaction::plan(index),
        };
        if plan.is_empty() {
            return Ok(0);
        }
        merge(place, index, &plan)?;
        Ok(plan.live.len() + plan.dead.len())
    })
}

fn merge(place: &Place, index: &Index, plan: &Plan) -> Result<()> {
    let mut interrupt = || {
        check_for_interrupts!();
        Ok(())
    };
    type Merge = fn(&Index, &Plan, &mut dyn Sink, &mut dyn FnMut() -> Result<()>) -> Result<Option<Merged>>;
    for (dead, merge) in [(false, compaction::merge_live as Merge), (true, compaction::merge_dead as Merge)] {
        let mut sink = TableSink::new()?;
        if let Some(merged) = merge(index, plan, &mut sink, &mut interrupt)? {
            sink.finish(place, dead, &merged)?;
        }
    }
    let live = plan.live.iter().map(|at| index.live()[*at].id);
    remove(live.chain(plan.dead.iter().map(|at| index.dead()[*at].id)).collect())
}

fn remove(segments: Vec<i64>) -> Result<()> {
    for table in ["lex_page", "lex_shelf"] {
        spi::execute(&format!("DELETE FROM rag.{table} WHERE segment_id = ANY($1)"), &[segments.clone().into()])?;
    }
    spi::execute("DELETE FROM rag.lex_segment WHERE id = ANY($1)", &[segments.into()]).map(|_| ())
}

/// Makes the index of a collection anew from its passages; returns their number. Nobody writes passages meanwhile.
pub fn reindex(collection_id: i64) -> Result<i64> {
    spi::needs_fresh_snapshots("an index cannot be made anew")?;
    spi::command("LOCK TABLE rag.chunk IN SHARE MODE")?;
    spi::lock::exclusive("rag.lex_segment", collection_id)?;
    let old = "SELECT id FROM rag.lex_segment WHERE collection_id = $1";
    remove(spi::select(old, &[collection_id.into()], |row| row.get(1))?)?;
    let mut batch = Batch::new(false);
    let mut count = 0;
    let sql = "SELECT c.entry, c.dl, pg_catalog.tsvectorsend(c.tsv), c.acl FROM rag.chunk c
                WHERE c.collection_id = $1 AND c.current";
    spi::each(sql, &[collection_id.into()], |row| {
        count += 1;
        let place = Place { collection_id, unit: Unit::Chunk, acl: row.optional(4)? };
        batch.add(place, Forward { entry: row.get(1)?, dl: row.get::<i32>(2)?.unsigned_abs(), wire: row.get(3)? })
    })?;
    batch.finish()?;
    spi::execute("DELETE FROM rag.lex_gap WHERE collection_id = $1", &[collection_id.into()])?;
    Ok(count)
}

/// Collections whose index does not have what they have, or may not; none for who may not mend them.
pub fn faulty() -> Result<Vec<(i64, String)>> {
    let may = "SELECT pg_catalog.has_table_privilege('rag.lex_segment'::regclass, 'DELETE')
                      AND NOT pg_catalog.row_security_active('rag.lex_segment'::regclass)";
    if !spi::select_one(may, &[], |row| row.get(1))?.unwrap_or(false) {
        return Ok(Vec::new());
    }
    let sql = "SELECT c.id, c.name FROM rag.collection c
                WHERE EXISTS (SELECT FROM rag.lex_gap g WHERE g.collection_id = c.id)
                   OR (SELECT pg_catalog.count(*) FROM rag.chunk k WHERE k.collection_id = c.id AND k.current)
                      <> (SELECT coalesce(sum(CASE WHEN s.dead THEN -s.documents ELSE s.documents END), 0)
                            FROM rag.lex_segment s WHERE s.collection_id = c.id AND s.unit = 'chunk')
                ORDER BY c.id";
    let mut faulty: Vec<(i64, String)> = spi::select(sql, &[], |row| Ok((row.get(1)?, row.get(2)?)))?;
    let all = "SELECT c.id, c.name FROM rag.collection c ORDER BY c.id";
    for (id, name) in spi::select(all, &[], |row| Ok((row.get::<i64>(1)?, row.get::<String>(2)?)))? {
        let is_known = faulty.iter().any(|(known, _)| *known == id);
        // One that cannot be read is no better.
        if !is_known && population::load(id, Unit::Chunk, Labels::All, 0).map_or(true, |p| p.index.strays() > 0) {
            faulty.push((id, name));
        }
    }
    Ok(faulty)
}
