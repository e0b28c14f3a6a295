// SPDX-License-Identifier: PostgreSQL

//! Whole documents, of which a statement writes pieces.
//!
//! Owns the second unit that is scored: a document as the sum of its passages, with tf, df and length of its own. Passages
//! come and go by statements that know nothing of each other, and no writer may wait for another, so a segment holds
//! *pieces*: what one statement added to a document, or, in a dead segment, took from it. A document is the sum of its pieces,
//! whoever wrote them; merging adds them up. It must not know what a passage is.
//!
//! - Most documents are one piece, because a sync writes a document at once and merging makes the others whole. Those are
//!   searched like passages. The few others are *split*: in several live segments, or in a dead one. They are passed over by
//!   the walk, and each is added up and scored by itself; df, N and the mean length are corrected by them. So the result is
//!   that of scoring every whole document, to the last bit, at a cost that grows with the number of split ones only.
//! - The list of the term [`PASSAGES`], which no text has, says for each piece of how many passages it is, as tf, and its
//!   length, as every posting does. A document without passages does not exist.
//! - Merging everything ends all splits; it is due when they are a tenth of the population ([`plan`]). Merging some of the
//!   segments adds up what is in them, and takes off what was deleted only from documents that are nowhere else.

use super::bm25::Statistics;
use super::cache::Cache;
use super::compaction::{self, Merged, Plan};
use super::index::{Index, OpenList, Opened, Part, Places, SMALL};
use super::maxscore::{Query, Weights};
use super::ordinals::{Ids, OrdinalSet};
use super::postings::{Cursor, END, Posting};
use super::segment::{Pieces, Renumbering};
use super::shelf::Sink;
use super::topk::{Hit, TopK};
use super::varint::corrupt;
use crate::error::{Error, Kind, Result};
use std::collections::{BTreeMap, BTreeSet};

/// The term that every piece has.
pub const PASSAGES: &str = "";

/// Split documents that are worth merging everything for, if they are that share of all.
const SPLIT: (u64, f64) = (64, 0.1);

/// The segments that one snapshot sees, of pieces.
#[derive(Debug)]
pub struct Documents {
    /// Split documents are what is passed over in its live segments.
    index: Index,
    /// Split documents, ascending.
    split: Vec<i64>,
    /// For each segment, the live ones first, its pieces of split documents: their ordinals and places in `split`.
    pieces: Vec<Vec<(u32, usize)>>,
    strays: u64,
}

impl Documents {
    /// Puts segments together.
    pub fn new(parts: Vec<Part>) -> Self {
        let (dead, live): (Vec<Part>, Vec<Part>) = parts.into_iter().partition(|p| p.dead);
        let places = Places::of(&live);
        let mut split = in_several(&live, &places);
        let mut deleted: Vec<i64> = dead.iter().flat_map(|part| part.ids.iter()).collect();
        deleted.sort_unstable();
        deleted.dedup();
        let strays = deleted.iter().filter(|entry| !places.has(**entry)).count() as u64;
        split.extend(deleted);
        split.sort_unstable();
        split.dedup();
        let mut gone = vec![OrdinalSet::default(); live.len()];
        let (mut pieces, of_dead) = (vec![Vec::new(); live.len() + dead.len()], Places::of(&dead));
        for (entry, document) in split.iter().zip(0usize..) {
            for (at, ordinal) in places.places(*entry) {
                gone[at].insert(ordinal);
                pieces[at].push((ordinal, document));
            }
            of_dead.places(*entry).for_each(|(at, ordinal)| pieces[live.len() + at].push((ordinal, document)));
        }
        drop((places, of_dead));
        Self { index: Index::of(live, dead, gone), split, pieces, strays }
    }

    /// Its segments.
    pub fn index(&self) -> &Index {
        &self.index
    }

    /// Documents that something was deleted from and that are nowhere: never so unless rows were written with triggers
    /// switched off. Then the index must be made anew.
    pub fn strays(&self) -> u64 {
        self.strays
    }

    /// Documents that are in several pieces.
    pub fn split(&self) -> &[i64] {
        &self.split
    }

    /// Looks up the lists of terms, and adds up the split documents.
    pub fn open<'d>(&'d self, terms: &[String], cache: &'d Cache) -> Result<OpenDocuments<'d>> {
        let opened = self.index.open(terms, cache)?;
        let mut documents: u64 = self.index.live().iter().map(|part| part.documents).sum();
        let mut whole = Whole::none(&self.split, terms.len());
        let mut dfs = opened.dfs_of_live();
        let sides = self.index.live().iter().map(|part| (part, false));
        let sides = sides.chain(self.index.dead().iter().map(|part| (part, true)));
        for ((part, minus), here) in sides.zip(&self.pieces).filter(|(_, here)| !here.is_empty()) {
            passages_of(part, here, cache, |at, posting| whole.add(at, posting, minus))?;
            if !minus {
                documents = documents.saturating_sub(here.len() as u64);
            }
            for (term, name) in terms.iter().enumerate() {
                let Some(list) = OpenList::find(part, name, cache)? else { continue };
                let pieces = pieces_of(&list, here, |at, posting| whole.add_term(at, term, posting, minus))?;
                if !minus {
                    dfs[term] = dfs[term].saturating_sub(pieces);
                }
            }
        }
        let whole = whole.finish()?;
        for (_, _, tfs) in &whole {
            dfs.iter_mut().zip(tfs).for_each(|(df, tf)| *df += u64::from(*tf > 0));
        }
        let population =
            Statistics { documents: documents + whole.len() as u64, total_dl: self.index.population().total_dl };
        Ok(OpenDocuments { opened, whole, dfs, population })
    }
}

/// The documents that are in more than one of the segments.
fn in_several(live: &[Part], places: &Places<'_>) -> Vec<i64> {
    let mut several: Vec<i64> = places.small_in_several().collect();
    let mut large: Vec<&Part> = live.iter().filter(|part| part.documents >= SMALL).collect();
    large.sort_by_key(|part| part.ids.len());
    for (at, part) in large.iter().enumerate() {
        // Documents get their numbers one after the other, so segments that were made one after the other rarely meet.
        for larger in large[at + 1..].iter().filter(|larger| overlap(&part.ids, &larger.ids)) {
            several.extend(part.ids.iter().filter(|entry| larger.ids.ordinal(*entry).is_some()));
        }
    }
    several
}

fn overlap(a: &Ids, b: &Ids) -> bool {
    let range = |ids: &Ids| Some((ids.id(0)?, ids.id(ids.len().checked_sub(1)?)?));
    matches!((range(a), range(b)), (Some(a), Some(b)) if a.0 <= b.1 && b.0 <= a.1)
}

/// Tells `each` the postings of a list that belong to `here`, which are ordinals and what they stand for; returns how many.
fn pieces_of(list: &OpenList<'_>, here: &[(u32, usize)], mut each: impl FnMut(usize, Posting)) -> Result<u64> {
    let directory = list.directory()?;
    let mut cursor = Cursor::new(&directory, list);
    let mut found = 0;
    for (ordinal, at) in here {
        match cursor.seek(*ordinal)? {
            END => break,
            reached if reached == *ordinal => {
                if let Some(posting) = cursor.posting() {
                    found += 1;
                    each(*at, posting);
                }
            }
            _ => {}
        }
    }
    Ok(found)
}

/// Tells `each` of how many passages and how long the pieces are that belong to `here`; every piece says so.
fn passages_of(part: &Part, here: &[(u32, usize)], cache: &Cache, each: impl FnMut(usize, Posting)) -> Result<()> {
    let list = OpenList::find(part, PASSAGES, cache)?.ok_or_else(|| corrupt("pieces without passages"))?;
    match pieces_of(&list, here, each)? == here.len() as u64 {
        true => Ok(()),
        false => Err(corrupt("a piece without passages")),
    }
}

/// Split documents while they are added up.
struct Whole<'a> {
    entries: &'a [i64],
    terms: usize,
    /// Passages and length of each.
    sums: Vec<(i64, i64)>,
    /// tf of each term of each.
    tfs: Vec<i64>,
}

impl<'a> Whole<'a> {
    fn none(entries: &'a [i64], terms: usize) -> Self {
        Self { entries, terms, sums: vec![(0, 0); entries.len()], tfs: vec![0; entries.len() * terms] }
    }

    fn add(&mut self, at: usize, piece: Posting, minus: bool) {
        let sign = if minus { -1 } else { 1 };
        self.sums[at].0 += sign * i64::from(piece.tf);
        self.sums[at].1 += sign * i64::from(piece.dl);
    }

    fn add_term(&mut self, at: usize, term: usize, piece: Posting, minus: bool) {
        self.tfs[at * self.terms + term] += if minus { -i64::from(piece.tf) } else { i64::from(piece.tf) };
    }

    /// Each document that has passages: its number, its length and its term frequencies.
    fn finish(self) -> Result<Vec<(i64, u32, Vec<u32>)>> {
        let mut whole = Vec::new();
        for (at, (entry, (passages, dl))) in self.entries.iter().zip(self.sums).enumerate() {
            let tfs =
                self.tfs[at * self.terms..(at + 1) * self.terms].iter().map(|tf| sum(*tf)).collect::<Result<_>>()?;
            if sum(passages)? > 0 {
                whole.push((*entry, sum(dl)?, tfs));
            }
        }
        Ok(whole)
    }
}

/// A sum of pieces as it is stored.
fn sum(value: i64) -> Result<u32> {
    u32::try_from(value).map_err(|_| match value {
        ..0 => corrupt("a document lacks what was deleted from it"),
        _ => Error::new(Kind::LimitExceeded, format!("a document has {value} lexemes, more than {}", u32::MAX)),
    })
}

/// The lists of some terms, and the split documents as far as these terms go.
#[derive(Debug)]
pub struct OpenDocuments<'d> {
    opened: Opened<'d>,
    whole: Vec<(i64, u32, Vec<u32>)>,
    dfs: Vec<u64>,
    population: Statistics,
}

impl OpenDocuments<'_> {
    /// For each term the number of documents that have it.
    pub fn dfs(&self) -> &[u64] {
        &self.dfs
    }

    /// N and the sum of lengths.
    pub fn population(&self) -> Statistics {
        self.population
    }

    /// The best hits, best first; equal scores by number, lowest first. `allow` are the only documents that may be hits.
    pub fn search(
        &self,
        query: &Query,
        allow: Option<&[i64]>,
        interrupt: &mut dyn FnMut() -> Result<()>,
    ) -> Result<Vec<Hit>> {
        let mut top = TopK::new(query.k, query.after);
        self.opened.search(query, allow, interrupt)?.into_iter().for_each(|hit| top.push(hit));
        let weights = Weights::new(query)?;
        let allowed = |entry: &i64| allow.is_none_or(|allow| allow.binary_search(entry).is_ok());
        for (id, dl, tfs) in self.whole.iter().filter(|(entry, _, _)| allowed(entry)) {
            let score = weights.score(tfs, *dl);
            if score > 0.0 {
                top.push(Hit { id: *id, score });
            }
        }
        Ok(top.finish())
    }
}

/// The next step towards few segments and whole documents; empty when that is so.
pub fn plan(documents: &Documents) -> Plan {
    plan_below(documents, u64::MAX)
}

/// The next step that takes only segments of fewer documents than `below`, so that it is a short one.
pub fn plan_below(documents: &Documents, below: u64) -> Plan {
    let index = documents.index();
    let split = documents.split().len() as u64;
    let all: u64 = index.live().iter().map(|part| part.documents).sum();
    if split >= SPLIT.0 && split as f64 >= SPLIT.1 * all as f64 && all < below {
        return compaction::full(index);
    }
    compaction::plan_by_tiers(index, below)
}

/// What merging makes of a plan: the live segments with what was deleted taken off, and what is left to be said about
/// others.
pub fn merge(
    documents: &Documents,
    plan: &Plan,
    dead: bool,
    sink: &mut dyn Sink,
    interrupt: &mut dyn FnMut() -> Result<()>,
) -> Result<Option<Merged>> {
    let index = documents.index();
    // A deletion is done with when all pieces of its document are merged now.
    let rest = |parts: &'_ [Part], merged: &[usize]| -> Vec<Part> {
        let merged: BTreeSet<&usize> = merged.iter().collect();
        parts.iter().enumerate().filter(|(at, _)| !merged.contains(at)).map(|(_, part)| part.clone()).collect()
    };
    let others = [rest(index.live(), &plan.live), rest(index.dead(), &plan.dead)].concat();
    let others = Places::of(&others);
    let is_done = |entry: i64| !others.has(entry);
    let except = |part: &Part, keep: bool| -> OrdinalSet {
        part.ids.iter().zip(0u32..).filter(|(entry, _)| is_done(*entry) != keep).map(|(_, ordinal)| ordinal).collect()
    };
    let of_dead = plan.dead.iter().map(|at| &index.dead()[*at]);
    let inputs: Vec<(&Part, bool, OrdinalSet)> = if dead {
        of_dead.map(|part| (part, false, except(part, false))).collect()
    } else {
        let live = plan.live.iter().map(|at| (&index.live()[*at], false, OrdinalSet::default()));
        live.chain(of_dead.map(|part| (part, true, except(part, true)))).collect()
    };
    add_up(inputs, sink, interrupt)
}

/// Merges segments, each with whether it is taken off and what of it is left out.
fn add_up(
    mut inputs: Vec<(&Part, bool, OrdinalSet)>,
    sink: &mut dyn Sink,
    interrupt: &mut dyn FnMut() -> Result<()>,
) -> Result<Option<Merged>> {
    let mut sums: BTreeMap<i64, (i64, i64)> = BTreeMap::new();
    let cache = Cache::new(0);
    for (part, minus, out) in &inputs {
        interrupt()?;
        let here = part.ids.iter().zip(0u32..).filter(|(_, ordinal)| !out.contains(*ordinal));
        let (entries, here): (Vec<i64>, Vec<(u32, usize)>) =
            here.enumerate().map(|(at, (entry, ordinal))| (entry, (ordinal, at))).unzip();
        if here.is_empty() {
            continue;
        }
        let sign = if *minus { -1 } else { 1 };
        passages_of(part, &here, &cache, |at, posting| {
            let sum = sums.entry(entries[at]).or_default();
            sum.0 += sign * i64::from(posting.tf);
            sum.1 += sign * i64::from(posting.dl);
        })?;
    }
    for (part, _, out) in &mut inputs {
        for (entry, ordinal) in part.ids.iter().zip(0u32..) {
            if sums.get(&entry).is_some_and(|(passages, _)| *passages == 0) {
                out.insert(ordinal);
            }
        }
    }
    let numbered: Vec<(&Ids, Option<&OrdinalSet>)> = inputs.iter().map(|(p, _, out)| (&*p.ids, Some(out))).collect();
    let renumbering = Renumbering::of_pieces(&numbered)?;
    let lengths = sums.into_values().filter(|(passages, _)| *passages != 0).map(|(_, dl)| sum(dl));
    let lengths: Vec<u32> = lengths.collect::<Result<_>>()?;
    if lengths.len() != renumbering.ids.len() as usize {
        return Err(corrupt("documents and their lengths differ in number"));
    }
    let minus: Vec<bool> = inputs.iter().map(|(_, minus, _)| *minus).collect();
    let parts: Vec<&Part> = inputs.iter().map(|(part, _, _)| *part).collect();
    compaction::merge_lists(&parts, renumbering, Some(Pieces { minus: &minus, lengths: &lengths }), sink, interrupt)
}
