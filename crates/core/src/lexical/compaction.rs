// SPDX-License-Identifier: PostgreSQL

//! When segments become one, and how.
//!
//! Owns the policy and the merge; it must not know about tables, locks or jobs. Segments are tiered by their number of
//! documents (O'Neil et al., "The log-structured merge-tree", 1996, with tiers in place of levels): [`FAN`] of one tier
//! make one of the next, so a posting is written again once for each tier, about log₈ of the population. A live segment with
//! too many dead documents is written again without them; what a dead segment says about documents that are gone for good
//! goes with them. The result is exactly what an index made at once of the living would be, which is how it is tested.

use super::cache::Cache;
use super::index::{Index, OpenList, Part};
use super::keys::Keys;
use super::ordinals::{Ids, OrdinalSet};
use super::postings::Directory;
use super::segment::{self, OldList, Pieces, Renumbering};
use super::shelf::{Sink, Stored, Writer};
use super::varint::corrupt;
use crate::error::Result;
use std::rc::Rc;

/// Segments of a tier that make one of the next.
pub const FAN: usize = 8;

/// The share of dead documents from which a segment is written again.
pub const DEAD_SHARE: f64 = 0.25;

/// What is to be done: places in [`Index::live`] and [`Index::dead`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Plan {
    /// Live segments that become one.
    pub live: Vec<usize>,
    /// Dead segments that become one; those that say something about the live ones are among them.
    pub dead: Vec<usize>,
}

impl Plan {
    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.live.is_empty() && self.dead.is_empty()
    }
}

/// The tier of a segment: ⌊log₈ documents⌋.
pub fn tier(documents: u64) -> u32 {
    documents.max(1).ilog(FAN as u64)
}

/// The next step towards few segments; empty when there are few enough.
pub fn plan(index: &Index) -> Plan {
    let by_tiers = plan_by_tiers(index);
    if !by_tiers.live.is_empty() {
        return by_tiers;
    }
    let rotten = |at: &usize| {
        let dead = index.gone(*at).len() as f64;
        dead > 0.0 && dead >= DEAD_SHARE * index.live()[*at].documents as f64
    };
    let rotten: Vec<usize> = (0..index.live().len()).filter(rotten).collect();
    if !rotten.is_empty() {
        return with_dead(index, rotten);
    }
    by_tiers
}

/// The next step, whatever the share of the dead.
pub(super) fn plan_by_tiers(index: &Index) -> Plan {
    let live = crowded(index.live());
    if !live.is_empty() {
        return with_dead(index, live);
    }
    Plan { live: Vec::new(), dead: crowded(index.dead()) }
}

/// Makes one live segment of all, and no dead one.
pub fn full(index: &Index) -> Plan {
    if index.live().len() <= 1 && index.dead().is_empty() {
        return Plan::default();
    }
    Plan { live: (0..index.live().len()).collect(), dead: (0..index.dead().len()).collect() }
}

/// The segments of the lowest tier that has too many, with all smaller ones.
fn crowded(parts: &[Part]) -> Vec<usize> {
    let mut tiers: Vec<u32> = parts.iter().map(|p| tier(p.documents)).collect();
    tiers.sort_unstable();
    // From the top, so that what is merged anyway is merged once.
    let full = tiers.iter().rev().find(|t| tiers.iter().filter(|other| other == t).count() >= FAN);
    let Some(full) = full else { return Vec::new() };
    (0..parts.len()).filter(|at| tier(parts[*at].documents) <= *full).collect()
}

fn with_dead(index: &Index, live: Vec<usize>) -> Plan {
    let speaks_of =
        |dead: &Part| dead.ids.iter().any(|e| live.iter().any(|at| index.live()[*at].ids.ordinal(e).is_some()));
    let dead = (0..index.dead().len()).filter(|at| speaks_of(&index.dead()[*at])).collect();
    Plan { live, dead }
}

/// A segment made of others.
#[derive(Debug)]
pub struct Merged {
    /// Its documents.
    pub documents: u64,
    /// Sum of their lengths in lexemes.
    pub total_dl: u64,
    /// Their entries.
    pub ids: Ids,
    /// Their keys.
    pub keys: Keys,
    /// Its postings.
    pub postings: u64,
    /// Its distinct terms.
    pub terms: u64,
}

/// Merges the live segments of a plan without what is dead; its rows go to `sink`. `None` when nothing lives.
pub fn merge_live(
    index: &Index,
    plan: &Plan,
    sink: &mut dyn Sink,
    interrupt: &mut dyn FnMut() -> Result<()>,
) -> Result<Option<Merged>> {
    let parts: Vec<(&Part, &OrdinalSet)> = plan.live.iter().map(|at| (&index.live()[*at], index.gone(*at))).collect();
    merge(&parts, sink, interrupt)
}

/// Merges the dead segments of a plan without what its live ones held. `None` when nothing is left to say.
pub fn merge_dead(
    index: &Index,
    plan: &Plan,
    sink: &mut dyn Sink,
    interrupt: &mut dyn FnMut() -> Result<()>,
) -> Result<Option<Merged>> {
    let done = |entry: i64| plan.live.iter().any(|at| index.live()[*at].ids.ordinal(entry).is_some());
    let gone = |part: &Part| part.ids.iter().zip(0u32..).filter(|(e, _)| done(*e)).map(|(_, o)| o).collect();
    let gone: Vec<OrdinalSet> = plan.dead.iter().map(|at| gone(&index.dead()[*at])).collect();
    let parts: Vec<(&Part, &OrdinalSet)> = plan.dead.iter().map(|at| &index.dead()[*at]).zip(&gone).collect();
    merge(&parts, sink, interrupt)
}

fn merge(
    parts: &[(&Part, &OrdinalSet)],
    sink: &mut dyn Sink,
    interrupt: &mut dyn FnMut() -> Result<()>,
) -> Result<Option<Merged>> {
    let numbered: Vec<(&Ids, Option<&OrdinalSet>)> = parts.iter().map(|(p, gone)| (&*p.ids, Some(*gone))).collect();
    let renumbering = Renumbering::new(&numbered)?;
    let parts: Vec<&Part> = parts.iter().map(|(part, _)| *part).collect();
    merge_lists(&parts, renumbering, None, sink, interrupt)
}

/// Merges all lists of segments whose documents have their new numbers; with the lengths of documents in pieces, these.
pub(super) fn merge_lists(
    parts: &[&Part],
    renumbering: Renumbering,
    pieces: Option<Pieces<'_>>,
    sink: &mut dyn Sink,
    interrupt: &mut dyn FnMut() -> Result<()>,
) -> Result<Option<Merged>> {
    if renumbering.ids.is_empty() {
        return Ok(None);
    }
    // Each list is read once; a cache would only push out what queries need.
    let cache = Cache::new(0);
    let mut dictionaries = parts.iter().map(|part| Dictionary::new(part)).collect::<Result<Vec<_>>>()?;
    let mut lengths = vec![0u32; renumbering.ids.len() as usize];
    let mut writer = Writer::default();
    let mut postings = 0;
    while let Some(term) = dictionaries.iter().filter_map(|d| d.head.as_ref()).map(|(term, _)| term).min().cloned() {
        interrupt()?;
        let mut lists: Vec<(usize, OpenList<'_>, Rc<Directory>)> = Vec::new();
        for (at, dictionary) in dictionaries.iter_mut().enumerate() {
            if let Some((_, stored)) = dictionary.next_if(&term)? {
                let list = OpenList::new(parts[at], stored, &cache);
                let directory = list.directory()?;
                lists.push((at, list, directory));
            }
        }
        let old: Vec<OldList<'_>> = (lists.iter())
            .map(|(segment, list, directory)| OldList { segment: *segment, directory, pages: list })
            .collect();
        let merged = segment::merge(&old, &renumbering, pieces, &mut |posting| {
            postings += 1;
            lengths[posting.ordinal as usize] = posting.dl;
        })?;
        if let Some(list) = merged {
            writer.add(&term, list, sink)?;
        }
    }
    let terms = writer.finish(sink)?;
    let keys: Vec<&Keys> = parts.iter().map(|part| &*part.keys).collect();
    Ok(Some(Merged {
        keys: renumbering.keys(&keys),
        documents: u64::from(renumbering.ids.len()),
        total_dl: lengths.into_iter().map(u64::from).sum(),
        ids: renumbering.ids,
        postings,
        terms,
    }))
}

/// The terms of a segment, one after the other.
struct Dictionary<'a> {
    part: &'a Part,
    shelf: Option<String>,
    rest: std::vec::IntoIter<(String, Stored)>,
    head: Option<(String, Stored)>,
}

impl<'a> Dictionary<'a> {
    fn new(part: &'a Part) -> Result<Self> {
        let mut new = Self { part, shelf: None, rest: Vec::new().into_iter(), head: None };
        new.advance()?;
        Ok(new)
    }

    fn advance(&mut self) -> Result<()> {
        self.head = self.rest.next();
        if self.head.is_none()
            && let Some(shelf) = self.part.rows.shelf_behind(self.shelf.as_deref().map(str::as_bytes))?
        {
            if self.shelf.as_ref().is_some_and(|last| *last >= shelf.first) {
                return Err(corrupt("the shelves of a segment do not ascend"));
            }
            self.rest = shelf.terms()?.into_iter();
            self.shelf = Some(shelf.first.clone());
            self.head = self.rest.next();
        }
        Ok(())
    }

    fn next_if(&mut self, term: &str) -> Result<Option<(String, Stored)>> {
        if self.head.as_ref().is_none_or(|(head, _)| head != term) {
            return Ok(None);
        }
        let head = self.head.take();
        self.advance()?;
        Ok(head)
    }
}
