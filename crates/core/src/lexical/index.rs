// SPDX-License-Identifier: PostgreSQL

//! A population: the segments that one snapshot sees, and what was deleted from them.
//!
//! Owns the arithmetic of the two kinds of segments. A *live* one holds documents. A *dead* one holds documents again, as
//! they were when they were deleted or changed: each stands in exactly one live segment of the same population, where it is
//! passed over, and its counts are taken off. So df, N and the mean length are exact without a count over anything, and a
//! deletion is one new row, never a change to an old one. It must not know where rows are kept ([`Rows`]), nor who may see
//! what: a population is made of segments of one label or of several, whose counts add up.
//!
//! The number by which a document is known here is its *entry*: it is new whenever its terms are, so that a dead document
//! and its living successor differ. Outside it is known by its key ([`super::keys`]).

use super::bm25::Statistics;
use super::cache::{Cache, Key, Value};
use super::expand::Vocabulary;
use super::keys::Keys;
use super::maxscore::{self, List, Query, Segment};
use super::ordinals::{Ids, OrdinalSet};
use super::postings::{Block, Directory, Page, Pages};
use super::shelf::{Rows, Stored};
use super::topk::Hit;
use super::varint::corrupt;
use crate::error::Result;
use std::collections::HashMap;
use std::rc::Rc;

/// Documents from which a segment is large.
pub(super) const SMALL: u64 = 64;

/// One segment.
#[derive(Debug, Clone)]
pub struct Part {
    /// Its key; never used twice.
    pub id: i64,
    /// Whether it holds what was deleted.
    pub dead: bool,
    /// Number of documents.
    pub documents: u64,
    /// Sum of their lengths in lexemes.
    pub total_dl: u64,
    /// Their entries.
    pub ids: Rc<Ids>,
    /// Their keys.
    pub keys: Rc<Keys>,
    /// Where its lists are.
    pub rows: Rc<dyn Rows>,
}

/// Where entries are among some segments, of which there may be thousands while nobody merges them: what small ones hold is
/// found at once, and only large ones, which are few, are looked into.
#[derive(Debug)]
pub(super) struct Places<'a> {
    small: HashMap<i64, Vec<(usize, u32)>>,
    large: Vec<(usize, &'a Ids)>,
}

impl<'a> Places<'a> {
    /// Of these segments, which are numbered as they come.
    pub(super) fn of(parts: impl IntoIterator<Item = &'a Part>) -> Self {
        let mut places = Self { small: HashMap::new(), large: Vec::new() };
        for (at, part) in parts.into_iter().enumerate() {
            if part.documents >= SMALL {
                places.large.push((at, &part.ids));
                continue;
            }
            for (entry, ordinal) in part.ids.iter().zip(0..) {
                places.small.entry(entry).or_default().push((at, ordinal));
            }
        }
        places
    }

    /// The segments that have an entry, with its ordinals there.
    pub(super) fn places(&self, entry: i64) -> impl Iterator<Item = (usize, u32)> {
        let in_large = self.large.iter().filter_map(move |(at, ids)| Some((*at, ids.ordinal(entry)?)));
        self.small.get(&entry).into_iter().flatten().copied().chain(in_large)
    }

    /// Whether a segment has it.
    pub(super) fn has(&self, entry: i64) -> bool {
        self.places(entry).next().is_some()
    }

    /// Entries of small segments that more than one segment has.
    pub(super) fn small_in_several(&self) -> impl Iterator<Item = i64> {
        self.small.keys().copied().filter(|entry| self.places(*entry).nth(1).is_some())
    }
}

/// Segments that are searched together.
#[derive(Debug)]
pub struct Index {
    live: Vec<Part>,
    dead: Vec<Part>,
    /// For each live segment the documents that are deleted.
    gone: Vec<OrdinalSet>,
    strays: u64,
}

impl Index {
    /// Puts segments together.
    pub fn new(parts: Vec<Part>) -> Self {
        let (dead, live): (Vec<Part>, Vec<Part>) = parts.into_iter().partition(|p| p.dead);
        let mut gone = vec![OrdinalSet::default(); live.len()];
        let mut strays = 0;
        if !dead.is_empty() {
            let all = Places::of(&live);
            for entry in dead.iter().flat_map(|p| p.ids.iter()) {
                let mut places = all.places(entry);
                let place = places.next();
                let new = place.is_some_and(|(at, ordinal)| gone[at].insert(ordinal));
                strays += u64::from(!new || places.next().is_some());
            }
        }
        Self { live, dead, gone, strays }
    }

    /// Segments of which it is known what is passed over.
    pub(super) fn of(live: Vec<Part>, dead: Vec<Part>, gone: Vec<OrdinalSet>) -> Self {
        Self { live, dead, gone, strays: 0 }
    }

    /// Entries that are said to be dead and are in no live segment, in several, or are dead twice. Never so unless rows
    /// were written with triggers switched off, or with an entry that another row had before; then it is not known what
    /// is alive, and the index must be made anew.
    pub fn strays(&self) -> u64 {
        self.strays
    }

    /// The segments with documents.
    pub fn live(&self) -> &[Part] {
        &self.live
    }

    /// The segments with deleted documents.
    pub fn dead(&self) -> &[Part] {
        &self.dead
    }

    /// The documents of live segment `at` that are deleted.
    pub fn gone(&self, at: usize) -> &OrdinalSet {
        &self.gone[at]
    }

    /// N and the sum of lengths of what is alive.
    pub fn population(&self) -> Statistics {
        let sum = |parts: &[Part], of: fn(&Part) -> u64| parts.iter().map(of).sum::<u64>();
        let alive = |of: fn(&Part) -> u64| sum(&self.live, of).saturating_sub(sum(&self.dead, of));
        Statistics { documents: alive(|p| p.documents), total_dl: alive(|p| p.total_dl) }
    }

    /// The terms of what is alive.
    pub fn vocabulary(&self) -> Terms<'_> {
        Terms { index: self, ahead: self.live.iter().map(|_| None).collect() }
    }

    /// Looks up the lists of terms.
    pub fn open<'i>(&'i self, terms: &[String], cache: &'i Cache) -> Result<Opened<'i>> {
        let lists = |parts: &'i [Part]| -> Result<Vec<Vec<Option<OpenList<'i>>>>> {
            parts.iter().map(|part| terms.iter().map(|t| OpenList::find(part, t, cache)).collect()).collect()
        };
        let (live, dead) = (lists(&self.live)?, lists(&self.dead)?);
        let df = |lists: &[Vec<Option<OpenList<'_>>>], term: usize| {
            lists.iter().filter_map(|of| of[term].as_ref()).map(|l| u64::from(l.stored.df())).sum::<u64>()
        };
        let dfs = (0..terms.len()).map(|term| df(&live, term).saturating_sub(df(&dead, term))).collect();
        Ok(Opened { index: self, lists: live, dfs })
    }
}

/// The lists of some terms, looked up in all segments.
#[derive(Debug)]
pub struct Opened<'i> {
    index: &'i Index,
    /// For each live segment, the list of each term.
    lists: Vec<Vec<Option<OpenList<'i>>>>,
    dfs: Vec<u64>,
}

impl Opened<'_> {
    /// For each term the number of living documents that have it.
    pub fn dfs(&self) -> &[u64] {
        &self.dfs
    }

    /// For each term the number of documents of live segments that have it.
    pub(super) fn dfs_of_live(&self) -> Vec<u64> {
        let df =
            |of: &Vec<Option<OpenList<'_>>>, term: usize| of[term].as_ref().map_or(0, |l| u64::from(l.stored.df()));
        (0..self.dfs.len()).map(|term| self.lists.iter().map(|of| df(of, term)).sum()).collect()
    }

    /// The best hits, best first; equal scores by key, lowest first. `allow` are the only entries that may be hits.
    pub fn search(
        &self,
        query: &Query,
        allow: Option<&[i64]>,
        interrupt: &mut dyn FnMut() -> Result<()>,
    ) -> Result<Vec<Hit>> {
        let allowed = |part: &Part| allow.map(|a| a.iter().filter_map(|entry| part.ids.ordinal(*entry)).collect());
        let allows: Vec<Option<OrdinalSet>> = self.index.live.iter().map(allowed).collect();
        let directories = |lists: &[Option<OpenList<'_>>]| -> Result<Vec<Option<Rc<Directory>>>> {
            lists.iter().map(|l| l.as_ref().map(OpenList::directory).transpose()).collect()
        };
        let directories = self.lists.iter().map(|l| directories(l)).collect::<Result<Vec<_>>>()?;
        let view = |at: usize| Segment {
            lists: (self.lists[at].iter().zip(&directories[at]))
                .map(|(list, directory)| {
                    Some(List { directory: directory.as_deref()?, pages: list.as_ref()? as &dyn Pages })
                })
                .collect(),
            ids: &self.index.live[at].ids,
            keys: Some(&self.index.live[at].keys),
            dead: Some(&self.index.gone[at]).filter(|g| !g.is_empty()),
            allow: allows[at].as_ref(),
        };
        let wanted = |at: &usize| {
            self.lists[*at].iter().any(Option::is_some) && allows[*at].as_ref().is_none_or(|a| !a.is_empty())
        };
        let segments: Vec<Segment<'_>> = (0..self.lists.len()).filter(wanted).map(view).collect();
        maxscore::search(query, &segments, interrupt)
    }
}

/// A list that was found.
#[derive(Debug)]
pub struct OpenList<'i> {
    segment: i64,
    rows: &'i dyn Rows,
    stored: Rc<Stored>,
    cache: &'i Cache,
}

impl<'i> OpenList<'i> {
    /// The list of a term in a segment, if it has the term.
    pub fn find(part: &'i Part, term: &str, cache: &'i Cache) -> Result<Option<Self>> {
        let key = Key::Term(part.id, term.to_owned());
        let stored = match cache.get(&key) {
            Some(Value::Term(stored)) => stored,
            _ => {
                let shelf = part.rows.shelf(term.as_bytes())?;
                let stored = shelf.map(|s| s.find(term)).transpose()?.flatten().map(Rc::new);
                cache.put(key, Value::Term(stored.clone()));
                stored
            }
        };
        Ok(stored.map(|stored| Self { segment: part.id, rows: part.rows.as_ref(), stored, cache }))
    }

    /// A list read without a cache, for walking all of a segment.
    pub fn new(part: &'i Part, stored: Stored, cache: &'i Cache) -> Self {
        Self { segment: part.id, rows: part.rows.as_ref(), stored: Rc::new(stored), cache }
    }

    /// Its directory.
    pub fn directory(&self) -> Result<Rc<Directory>> {
        let (number, parts) = match &*self.stored {
            Stored::Here(directory, _) => return Ok(Rc::new(directory.clone())),
            Stored::Apart { number, parts, .. } => (*number, *parts),
        };
        let key = Key::Directory(self.segment, number);
        if let Some(Value::Directory(directory)) = self.cache.get(&key) {
            return Ok(directory);
        }
        let mut bytes = Vec::new();
        for part in 0..parts {
            bytes.extend(self.rows.page(number, part)?);
        }
        let directory = Rc::new(Directory::parse(&bytes)?);
        self.cache.put(key, Value::Directory(Rc::clone(&directory)));
        Ok(directory)
    }
}

impl Pages for OpenList<'_> {
    fn page(&self, directory: &Directory, page: usize) -> Result<Rc<Page>> {
        let (number, parts) = match &*self.stored {
            Stored::Here(_, bytes) => return directory.page(page, bytes.clone()).map(Rc::new),
            Stored::Apart { number, parts, .. } => (*number, *parts),
        };
        let at = u32::try_from(page).map_err(|_| corrupt("a list has too many pages"))?;
        let key = Key::Page(self.segment, number, at);
        if let Some(Value::Page(page)) = self.cache.get(&key) {
            return Ok(page);
        }
        let part = parts.checked_add(at).ok_or_else(|| corrupt("a list has too many pages"))?;
        let page = Rc::new(directory.page(page, self.rows.page(number, part)?)?);
        self.cache.put(key, Value::Page(Rc::clone(&page)));
        Ok(page)
    }

    fn block(&self, page_number: usize, page: &Page, block: usize) -> Result<Rc<Block>> {
        let Stored::Apart { number, .. } = &*self.stored else { return page.decode(block).map(Rc::new) };
        let key = Key::Block(self.segment, *number, page_number as u32, block as u32);
        if let Some(Value::Block(block)) = self.cache.get(&key) {
            return Ok(block);
        }
        let decoded = Rc::new(page.decode(block)?);
        self.cache.put(key, Value::Block(Rc::clone(&decoded)));
        Ok(decoded)
    }
}

/// The terms of what is alive. Each segment is asked again only when the walk has passed its next term, because most
/// segments have few of the terms.
#[derive(Debug)]
pub struct Terms<'i> {
    index: &'i Index,
    /// What each live segment answered last.
    ahead: Vec<Option<Ahead>>,
}

#[derive(Debug)]
struct Ahead {
    from: Vec<u8>,
    next: Option<(String, u64)>,
}

impl Ahead {
    fn answers(&self, from: &[u8]) -> bool {
        self.from.as_slice() <= from && self.next.as_ref().is_none_or(|(term, _)| term.as_bytes() >= from)
    }
}

impl Vocabulary for Terms<'_> {
    fn at_or_after(&mut self, from: &[u8]) -> Result<Option<(String, u64)>> {
        let mut from = from.to_vec();
        loop {
            for (part, ahead) in self.index.live.iter().zip(&mut self.ahead) {
                if !ahead.as_ref().is_some_and(|ahead| ahead.answers(&from)) {
                    *ahead = Some(Ahead { from: from.clone(), next: term_at_or_after(part, &from)? });
                }
            }
            let mut next: Option<(&str, u64)> = None;
            for (term, df) in self.ahead.iter().flatten().filter_map(|ahead| ahead.next.as_ref()) {
                match &mut next {
                    Some((first, sum)) if first == term => *sum += df,
                    Some((first, _)) if *first < term.as_str() => {}
                    _ => next = Some((term, *df)),
                }
            }
            let Some((term, mut df)) = next else { return Ok(None) };
            for part in &self.index.dead {
                let of_dead = part.rows.shelf(term.as_bytes())?.map(|s| s.find(term)).transpose()?.flatten();
                df = df.saturating_sub(of_dead.map_or(0, |stored| u64::from(stored.df())));
            }
            if df > 0 {
                return Ok(Some((term.to_owned(), df)));
            }
            from = term.as_bytes().to_vec();
            from.push(0);
        }
    }
}

fn term_at_or_after(part: &Part, from: &[u8]) -> Result<Option<(String, u64)>> {
    if let Some(shelf) = part.rows.shelf(from)?
        && let Some(found) = shelf.at_or_after(from)?
    {
        return Ok(Some(found));
    }
    match part.rows.shelf_behind(Some(from))? {
        Some(shelf) => shelf.at_or_after(from),
        None => Ok(None),
    }
}
