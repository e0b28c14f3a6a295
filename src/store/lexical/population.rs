// SPDX-License-Identifier: PostgreSQL

//! The segments that a search sees.
//!
//! Owns what a backend keeps of the index from one query to the next: the segments of a population, as long as a snapshot
//! sees the same ones, and the lists that were read. A segment never changes and its number is not used again, so what is
//! kept is right; only a table that was made anew begins its numbers again, and then all is forgotten.

use super::Unit;
use super::rows::TableRows;
use super::sink::Place;
use crate::am::{self, Key, Path, Tuple};
use crate::spi;
use rag_core::Result;
use rag_core::lexical::cache::Cache;
use rag_core::lexical::index::{Index, Part};
use rag_core::lexical::keys::Keys;
use rag_core::lexical::ordinals::Ids;
use rag_core::lexical::shelf::{MemoryRows, Rows, Shelf};
use rag_core::lexical::whole::Documents;
use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
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
    chunks: Kept<Index>,
    documents: Kept<Documents>,
}

/// Indexes under their collection and labels.
type Kept<T> = RefCell<HashMap<(i64, Labels), Rc<T>>>;

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
pub struct Population<T = Index> {
    /// The segments.
    pub index: Rc<T>,
    store: Rc<Store>,
}

impl<T> Population<T> {
    /// Where what is read is kept.
    pub fn cache(&self) -> &Cache {
        &self.store.cache
    }
}

/// The passages of a place and labels as the active snapshot sees them. `memory` bounds what this backend keeps, in bytes.
pub fn load(collection_id: i64, labels: Labels, memory: usize) -> Result<Population> {
    let store = store(memory)?;
    let index = current(&store.chunks, (collection_id, labels), Unit::Chunk, |index| index, Index::new)?;
    Ok(Population { index, store })
}

/// The documents of a place and labels, likewise.
pub fn load_documents(collection_id: i64, labels: Labels, memory: usize) -> Result<Population<Documents>> {
    let store = store(memory)?;
    let key = (collection_id, labels);
    let index = current(&store.documents, key, Unit::Document, Documents::index, Documents::new)?;
    Ok(Population { index, store })
}

/// What is kept, if it has the segments that are seen now; else it is put together anew.
fn current<T>(
    indexes: &Kept<T>,
    key: (i64, Labels),
    unit: Unit,
    index_of: impl Fn(&T) -> &Index,
    new: impl FnOnce(Vec<Part>) -> T,
) -> Result<Rc<T>> {
    let kept = indexes.borrow().get(&key).cloned();
    let parts_of = |index: &T| -> HashMap<i64, Part> {
        let index = index_of(index);
        index.live().iter().chain(index.dead()).map(|p| (p.id, p.clone())).collect()
    };
    let known: HashSet<i64> = kept
        .iter()
        .map(|kept| index_of(kept))
        .flat_map(|index| index.live().iter().chain(index.dead()).map(|part| part.id))
        .collect();
    let mut seen: Vec<(i64, Option<Part>)> = Vec::new();
    am::scan(SEGMENTS, &[Key::Int8(2, key.0), Key::Text(3, unit.name())], false, |row| {
        if !key.1.has(row.optional::<String>(4).as_deref()) {
            return Ok(ControlFlow::Continue(()));
        }
        let id: i64 = row.get(1)?;
        seen.push((id, if known.contains(&id) { None } else { Some(part(id, row)?) }));
        Ok(ControlFlow::Continue(()))
    })?;
    if let Some(kept) = &kept
        && seen.iter().all(|(_, new)| new.is_none())
        && seen.len() == index_of(kept).live().len() + index_of(kept).dead().len()
    {
        return Ok(Rc::clone(kept));
    }
    let mut old = kept.as_deref().map(parts_of).unwrap_or_default();
    let parts = seen.into_iter().filter_map(|(id, new)| new.or_else(|| old.remove(&id))).collect();
    let index = Rc::new(new(parts));
    let mut indexes = indexes.borrow_mut();
    if indexes.len() >= KEPT {
        indexes.clear();
    }
    indexes.insert(key, Rc::clone(&index));
    Ok(index)
}

fn store(memory: usize) -> Result<Rc<Store>> {
    let table = am::table_oid(SEGMENTS.table)?;
    let kept = STORE.with_borrow(Clone::clone).filter(|store| store.table == table);
    let store = kept.unwrap_or_else(|| {
        let new = Rc::new(Store {
            table,
            cache: Cache::new(memory),
            chunks: RefCell::default(),
            documents: RefCell::default(),
        });
        STORE.set(Some(Rc::clone(&new)));
        new
    });
    store.cache.resize(memory);
    Ok(store)
}

fn part(id: i64, row: &Tuple) -> Result<Part> {
    let rows: Rc<dyn Rows> = match row.optional::<Vec<u8>>(13) {
        None => Rc::new(TableRows(id)),
        Some(bytes) => {
            let shelf = Rc::new(Shelf::alone(bytes)?);
            Rc::new(MemoryRows { shelves: vec![shelf], lists: Vec::new() })
        }
    };
    let ids = Ids::decode(&row.get::<Vec<u8>>(11)?)?;
    let keys = match row.optional::<Vec<u8>>(12) {
        None => Keys::default(),
        Some(bytes) => Keys::decode(&bytes, ids.len())?,
    };
    Ok(Part {
        id,
        dead: row.get(5)?,
        documents: row.get::<i64>(6)?.unsigned_abs(),
        total_dl: row.get::<i64>(7)?.unsigned_abs(),
        ids: Rc::new(ids),
        keys: Rc::new(keys),
        rows,
    })
}

/// Whether the index of a collection can be used. It cannot where it was never made (an upgrade), nor where it has nothing
/// although there are passages, which a restore without triggers leaves behind, nor where something is deleted that was not
/// there: `strays`.
pub fn is_usable(collection_id: i64, index: &Index, strays: u64) -> Result<bool> {
    if strays > 0 {
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
    if !index.live().is_empty() {
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
