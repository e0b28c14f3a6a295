// SPDX-License-Identifier: PostgreSQL

//! The segments that a search sees.
//!
//! Owns what a backend keeps of the index from one query to the next: the segments of a population, as long as a snapshot
//! sees the same ones, and the lists that were read. A segment never changes and its number is not used again, so what is
//! kept is right; only a table that was made anew begins its numbers again, and then all is forgotten.

use super::rows::TableRows;
use super::sink::Place;
use crate::am::{self, Key, Path, Tuple};
use crate::spi;
use rag_core::Result;
use rag_core::lexical::cache::Cache;
use rag_core::lexical::index::{Index, Part};
use rag_core::lexical::ordinals::Ids;
use rag_core::lexical::shelf::{MemoryRows, Rows, Shelf};
use std::cell::RefCell;
use std::collections::HashMap;
use std::ops::ControlFlow;
use std::rc::Rc;

const SEGMENTS: Path = Path { table: c"lex_segment", index: c"lex_segment_population" };

/// Populations that are kept.
const KEPT: usize = 32;

thread_local! {
    static STORE: RefCell<Option<Rc<Store>>> = const { RefCell::new(None) };
}

/// What is kept of one index.
#[derive(Debug)]
struct Store {
    table: u32,
    cache: Cache,
    indexes: RefCell<HashMap<Name, Rc<Index>>>,
}

/// What an index is kept under.
type Name = (i64, &'static str, Labels);

/// Whose documents are seen.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Labels {
    /// All, whatever their label.
    All,
    /// Those without a label, and those with one of these.
    Of(Vec<String>),
    /// Those with exactly this label.
    Only(Option<String>),
}

impl Labels {
    fn has(&self, label: Option<&str>) -> bool {
        match (self, label) {
            (Self::All, _) | (Self::Of(_), None) => true,
            (Self::Of(labels), Some(label)) => labels.iter().any(|l| l == label),
            (Self::Only(only), label) => only.as_deref() == label,
        }
    }
}

/// An index, and what a backend keeps of all of them.
#[derive(Debug, Clone)]
pub struct Population {
    /// The segments.
    pub index: Rc<Index>,
    store: Rc<Store>,
}

impl Population {
    /// Where what is read is kept.
    pub fn cache(&self) -> &Cache {
        &self.store.cache
    }
}

/// The population of a place and labels as the active snapshot sees it. `memory` bounds what this backend keeps, in bytes.
pub fn load(collection_id: i64, unit: super::Unit, labels: Labels, memory: usize) -> Result<Population> {
    let store = store(memory)?;
    let key = (collection_id, unit.name(), labels);
    let kept = store.indexes.borrow().get(&key).cloned();
    let mut seen: Vec<(i64, Option<Part>)> = Vec::new();
    let keys = [Key::Int8(2, collection_id), Key::Text(3, unit.name())];
    am::scan(SEGMENTS, &keys, false, |row| {
        if !key.2.has(row.optional::<String>(4).as_deref()) {
            return Ok(ControlFlow::Continue(()));
        }
        let id: i64 = row.get(1)?;
        let known = kept.iter().flat_map(|index| index.live().iter().chain(index.dead())).any(|p| p.id == id);
        seen.push((id, if known { None } else { Some(part(id, row)?) }));
        Ok(ControlFlow::Continue(()))
    })?;
    if let Some(index) = &kept
        && seen.iter().all(|(_, new)| new.is_none())
        && seen.len() == index.live().len() + index.dead().len()
    {
        return Ok(Population { index: Rc::clone(index), store });
    }
    let mut old: HashMap<i64, Part> = HashMap::new();
    if let Some(index) = &kept {
        old.extend(index.live().iter().chain(index.dead()).map(|p| (p.id, p.clone())));
    }
    let parts = seen.into_iter().filter_map(|(id, new)| new.or_else(|| old.remove(&id))).collect();
    let index = Rc::new(Index::new(parts));
    let mut indexes = store.indexes.borrow_mut();
    if indexes.len() >= KEPT {
        indexes.clear();
    }
    indexes.insert(key, Rc::clone(&index));
    drop(indexes);
    Ok(Population { index, store })
}

fn store(memory: usize) -> Result<Rc<Store>> {
    let table = am::table_oid(SEGMENTS.table)?;
    let kept = STORE.with_borrow(Clone::clone).filter(|store| store.table == table);
    let store = kept.unwrap_or_else(|| {
        let new = Rc::new(Store { table, cache: Cache::new(memory), indexes: RefCell::default() });
        STORE.set(Some(Rc::clone(&new)));
        new
    });
    store.cache.resize(memory);
    Ok(store)
}

fn part(id: i64, row: &Tuple) -> Result<Part> {
    let rows: Rc<dyn Rows> = match row.optional::<Vec<u8>>(12) {
        None => Rc::new(TableRows(id)),
        Some(bytes) => {
            let shelf = Rc::new(Shelf::alone(bytes)?);
            Rc::new(MemoryRows { shelves: vec![shelf], lists: Vec::new() })
        }
    };
    Ok(Part {
        id,
        dead: row.get(5)?,
        documents: row.get::<i64>(6)?.unsigned_abs(),
        total_dl: row.get::<i64>(7)?.unsigned_abs(),
        ids: Rc::new(Ids::decode(&row.get::<Vec<u8>>(11)?)?),
        rows,
    })
}

/// Whether the index of a collection can be used. It cannot where it was never made (an upgrade), nor where it has nothing
/// although there are passages, which a restore without triggers leaves behind.
pub fn is_usable(collection_id: i64, population: &Population) -> Result<bool> {
    if population.index.strays() > 0 {
        return Ok(false);
    }
    let mut gap = false;
    let path = Path { table: c"lex_gap", index: c"lex_gap_pkey" };
    am::scan(path, &[Key::Int8(1, collection_id)], false, |_| {
        gap = true;
        Ok(ControlFlow::Break(()))
    })?;
    if gap {
        return Ok(false);
    }
    if !population.index.live().is_empty() {
        return Ok(true);
    }
    let sql = "SELECT NOT EXISTS (SELECT FROM rag.chunk c WHERE c.collection_id = $1 AND c.current)";
    Ok(spi::select_one(sql, &[collection_id.into()], |row| row.get(1))?.unwrap_or(true))
}

/// Whether a place has `many` segments of less than `below` documents: something for compaction to do. Looks at no more
/// than it needs, because every statement that writes passages asks.
pub fn is_crowded(place: &Place, below: u64, many: usize) -> Result<bool> {
    let labels = Labels::Only(place.acl.clone());
    let mut count = 0;
    am::scan(SEGMENTS, &[Key::Int8(2, place.collection_id), Key::Text(3, place.unit.name())], true, |row| {
        let small = row.get::<i64>(6)?.unsigned_abs() < below;
        count += usize::from(small && labels.has(row.optional::<String>(4).as_deref()));
        Ok(if count < many { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
    })?;
    Ok(count >= many)
}

/// Notes that a collection has passages that its index does not, if it has no index and more passages than the `added`
/// ones of this statement: they were loaded with triggers switched off, and a first segment must not hide that.
pub fn note_gap(collection_id: i64, added: u64) -> Result<()> {
    let mut begun = false;
    // From the newest, because the oldest may be rows that were merged away and are still passed over.
    am::scan(SEGMENTS, &[Key::Int8(2, collection_id)], true, |_| {
        begun = true;
        Ok(ControlFlow::Break(()))
    })?;
    if begun {
        return Ok(());
    }
    // By one snapshot: somebody may commit the first passages with their segment at any time.
    let sql = "INSERT INTO rag.lex_gap (collection_id)
               SELECT $1 WHERE NOT EXISTS (SELECT FROM rag.lex_segment s WHERE s.collection_id = $1)
                  AND (SELECT pg_catalog.count(*) FROM (SELECT FROM rag.chunk c WHERE c.collection_id = $1 AND c.current
                                                         LIMIT $2 + 1) AS k) > $2
               ON CONFLICT DO NOTHING";
    spi::execute(sql, &[collection_id.into(), (added as i64).into()]).map(|_| ())
}
