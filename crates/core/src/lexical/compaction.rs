// SPDX-License-Identifier: PostgreSQL

//! When segments become one, and how.
//!
//! Owns the policy and the merge; it must not know about tables, locks or jobs. Segments are tiered by their number of
//! documents (O'Neil et al., "The log-structured merge-tree", 1996, with tiers in place of levels): [`FAN`] of one tier
//! make one of the next, so a posting is written again once for each tier, about log₈ of the population. A live segment with
//! too many dead documents is written again without them; what a dead segment says about documents that are gone for good
//! goes with them. The result is exactly what an index made at once of the living would be, which is how it is tested.

use super::cache::Cache;
use super::index::{Index, OpenList, Part, Places};
use super::keys::Keys;
use super::ordinals::{Ids, OrdinalSet};
use super::postings::Directory;
use super::segment::{self, OldList, Pieces, Renumbering};
use super::shelf::{Sink, Stored, Writer};
use super::varint::corrupt;
use crate::error::Result;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
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
    plan_below(index, u64::MAX)
}

/// The next step that takes only segments of fewer documents than `below`, so that it is a short one.
pub fn plan_below(index: &Index, below: u64) -> Plan {
    let by_tiers = plan_by_tiers(index, below);
    if !by_tiers.live.is_empty() {
        return by_tiers;
    }
    let rotten = |at: &usize| {
        let dead = index.gone(*at).len() as f64;
        let documents = index.live()[*at].documents;
        dead > 0.0 && dead >= DEAD_SHARE * documents as f64 && documents < below
    };
    let rotten: Vec<usize> = (0..index.live().len()).filter(rotten).collect();
    if !rotten.is_empty() {
        return with_dead(index, rotten);
    }
    by_tiers
}

/// The next step, whatever the share of the dead.
pub(super) fn plan_by_tiers(index: &Index, below: u64) -> Plan {
    let live = crowded(index.live(), below);
    if !live.is_empty() {
        return with_dead(index, live);
    }
    Plan { live: Vec::new(), dead: crowded(index.dead(), below) }
}

/// Makes one live segment of all, and no dead one.
pub fn full(index: &Index) -> Plan {
    if index.live().len() <= 1 && index.dead().is_empty() {
        return Plan::default();
    }
    Plan { live: (0..index.live().len()).collect(), dead: (0..index.dead().len()).collect() }
}

/// The segments of the highest tier that has too many, with all smaller ones; of those of fewer documents than `below`.
fn crowded(parts: &[Part], below: u64) -> Vec<usize> {
    let mut tiers: Vec<u32> = parts.iter().map(|p| p.documents).filter(|d| *d < below).map(tier).collect();
    tiers.sort_unstable();
    // From the top, so that what is merged anyway is merged once.
    let full = tiers.chunk_by(|a, b| a == b).rev().find(|of_tier| of_tier.len() >= FAN).and_then(|t| t.first());
    let Some(full) = full else { return Vec::new() };
    let is_due = |documents: u64| documents < below && tier(documents) <= *full;
    (0..parts.len()).filter(|at| is_due(parts[*at].documents)).collect()
}

fn with_dead(index: &Index, live: Vec<usize>) -> Plan {
    if index.dead().is_empty() {
        return Plan { live, dead: Vec::new() };
    }
    let places = Places::of(live.iter().map(|at| &index.live()[*at]));
    let dead = (0..index.dead().len()).filter(|at| index.dead()[*at].ids.iter().any(|e| places.has(e))).collect();
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
    let done = Places::of(plan.live.iter().map(|at| &index.live()[*at]));
    let gone = |part: &Part| part.ids.iter().zip(0u32..).filter(|(e, _)| done.has(*e)).map(|(_, o)| o).collect();
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
    let first = |(at, d): (usize, &Dictionary<'_>)| Some(Reverse((d.head.as_ref()?.0.clone(), at)));
    let mut heads: BinaryHeap<Reverse<(String, usize)>> = dictionaries.iter().enumerate().filter_map(first).collect();
    while let Some(Reverse((term, _))) = heads.peek() {
        interrupt()?;
        let term = term.clone();
        let mut lists: Vec<(usize, OpenList<'_>, Rc<Directory>)> = Vec::new();
        while let Some(at) = heads.peek().filter(|Reverse((next, _))| *next == term).map(|Reverse((_, at))| *at) {
            heads.pop();
            if let Some((_, stored)) = dictionaries[at].next()? {
                let list = OpenList::new(parts[at], stored, &cache);
                let directory = list.directory()?;
                lists.push((at, list, directory));
            }
            heads.extend(dictionaries[at].head.as_ref().map(|(term, _)| Reverse((term.clone(), at))));
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

    /// The term at which it stands, and on to the one behind.
    fn next(&mut self) -> Result<Option<(String, Stored)>> {
        let head = self.head.take();
        self.advance()?;
        Ok(head)
    }
}
