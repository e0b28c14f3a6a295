// SPDX-License-Identifier: PostgreSQL

//! Making segments: from documents, and from other segments.
//!
//! Owns the inversion of forward data into posting lists and the merge that leaves out the dead. It must not know how a
//! term is named in a table (any ordered key does) nor keep more than the segment itself: lists are packed while documents
//! come in, and a merge holds one term's lists at a time, so the caller streams them from one table into another.

use crate::error::{Error, Result};
use crate::lexical::keys::Keys;
use crate::lexical::ordinals::{Ids, OrdinalSet};
use crate::lexical::postings::{Cursor, Directory, END, EncodedList, ListBuilder, Pages, Posting};
use crate::lexical::varint::corrupt;
use std::borrow::Borrow;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::hash::Hash;
use std::iter::Peekable;

/// Collects the documents of a new segment.
#[derive(Debug)]
pub struct Builder<T> {
    lists: HashMap<T, ListBuilder>,
    next: u32,
    last_dl: u32,
    documents: u64,
    total_dl: u64,
    postings: u64,
}

/// A segment as lists.
#[derive(Debug)]
pub struct Built<T> {
    /// Number of documents.
    pub documents: u64,
    /// Sum of their lengths in lexemes.
    pub total_dl: u64,
    /// The list of each term, in the order of the terms.
    pub lists: Vec<(T, EncodedList)>,
}

impl<T> Default for Builder<T> {
    fn default() -> Self {
        Self { lists: HashMap::new(), next: 0, last_dl: 0, documents: 0, total_dl: 0, postings: 0 }
    }
}

impl<T: Ord + Hash> Builder<T> {
    /// Adds a document of `dl` lexemes with its distinct terms and how often it has each.
    ///
    /// An ordinal that is not above the one before, a term that comes twice or a tf of 0 is an internal error; the builder
    /// is of no use after it.
    pub fn add(&mut self, ordinal: u32, dl: u32, terms: impl IntoIterator<Item = (T, u32)>) -> Result<()> {
        self.begin(ordinal, dl)?;
        for (term, tf) in terms {
            self.postings += 1;
            self.lists.entry(term).or_default().push(Posting { ordinal, tf, dl })?;
        }
        Ok(())
    }

    /// Begins a document whose terms are given one by one, by [`Builder::term`].
    pub fn begin(&mut self, ordinal: u32, dl: u32) -> Result<()> {
        if ordinal < self.next || ordinal == END {
            return Err(Error::internal(format!("document {ordinal} cannot follow in a segment at {}", self.next)));
        }
        self.next = ordinal + 1;
        self.documents += 1;
        self.total_dl += u64::from(dl);
        self.last_dl = dl;
        Ok(())
    }

    /// Adds a term to the document begun last; only a term that is new to the segment is copied.
    pub fn term<Q>(&mut self, term: &Q, tf: u32) -> Result<()>
    where
        T: Borrow<Q>,
        Q: ?Sized + Hash + Eq + ToOwned<Owned = T>,
    {
        let ordinal = self.next.checked_sub(1).ok_or_else(|| Error::internal("a term belongs to no document"))?;
        let posting = Posting { ordinal, tf, dl: self.last_dl };
        self.postings += 1;
        match self.lists.get_mut(term) {
            Some(list) => list.push(posting),
            None => self.lists.entry(term.to_owned()).or_default().push(posting),
        }
    }

    /// Postings so far: what the caller bounds its memory by, at 2 to 4 bytes each and about 100 for each distinct term.
    pub fn postings(&self) -> u64 {
        self.postings
    }

    /// The segment.
    pub fn finish(self) -> Built<T> {
        let lists = self.lists.into_iter().filter_map(|(term, list)| Some((term, list.finish()?)));
        let mut lists: Vec<_> = lists.collect();
        lists.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        Built { documents: self.documents, total_dl: self.total_dl, lists }
    }
}

/// The new ordinals of the living documents of several segments, in the order of their ids.
#[derive(Debug)]
pub struct Renumbering {
    /// The ids of the merged segment.
    pub ids: Ids,
    /// For each old segment the new ordinal of each document, [`END`] for the dead.
    new: Vec<Vec<u32>>,
}

/// A segment to be merged: its ids and its dead.
type Numbered<'a> = (&'a Ids, Option<&'a OrdinalSet>);

impl Renumbering {
    /// Numbers the documents of `segments`, each given by its ids and its dead. An id that lives in two of them is an
    /// internal error.
    pub fn new(segments: &[Numbered<'_>]) -> Result<Self> {
        Self::number(segments, false)
    }

    /// Numbers the documents of `segments`, where an id may be in several: it has one number.
    pub fn of_pieces(segments: &[Numbered<'_>]) -> Result<Self> {
        Self::number(segments, true)
    }

    fn number(segments: &[Numbered<'_>], pieces: bool) -> Result<Self> {
        let mut ids = Ids::default();
        let mut last = None;
        let mut new: Vec<Vec<u32>> = segments.iter().map(|(ids, _)| vec![END; ids.len() as usize]).collect();
        let mut rests: Vec<_> = segments.iter().map(|(ids, _)| ids.iter().zip(0u32..).peekable()).collect();
        let first = |(at, rest): (usize, &mut _)| next_of(at, rest);
        let mut heads: BinaryHeap<Reverse<(i64, usize)>> = rests.iter_mut().enumerate().filter_map(first).collect();
        while let Some(Reverse((_, at))) = heads.pop() {
            if let Some((id, ordinal)) = rests[at].next()
                && segments[at].1.is_none_or(|dead| !dead.contains(ordinal))
            {
                let same = last.filter(|(last, _)| pieces && *last == id);
                let number = same.map_or_else(|| ids.push(id), |(_, number)| Ok(number))?;
                last = Some((id, number));
                new[at][ordinal as usize] = number;
            }
            heads.extend(next_of(at, &mut rests[at]));
        }
        Ok(Self { ids, new })
    }

    /// The keys of the merged segment, from those of the old ones.
    pub fn keys(&self, old: &[&Keys]) -> Keys {
        let mut places = vec![(0, 0); self.ids.len() as usize];
        for (segment, new) in self.new.iter().enumerate() {
            for (ordinal, new) in (0u32..).zip(new).filter(|(_, new)| **new != END) {
                places[*new as usize] = (segment, ordinal);
            }
        }
        let mut keys = Keys::default();
        for (id, (segment, ordinal)) in self.ids.iter().zip(places) {
            keys.push(id, old.get(segment).map_or(id, |old| old.key(ordinal, id)));
        }
        keys
    }

    /// The new ordinal of document `ordinal` of old segment `segment`; `None` for the dead.
    pub fn get(&self, segment: usize, ordinal: u32) -> Option<u32> {
        self.new.get(segment)?.get(ordinal as usize).copied().filter(|new| *new != END)
    }
}

/// The id that comes next of segment `at`, as a heap orders it.
fn next_of(at: usize, rest: &mut Peekable<impl Iterator<Item = (i64, u32)>>) -> Option<Reverse<(i64, usize)>> {
    rest.peek().map(|(id, _)| Reverse((*id, at)))
}

/// One term's list in one of the segments that are merged.
#[derive(Debug, Clone, Copy)]
pub struct OldList<'a> {
    /// The segment's place in the [`Renumbering`].
    pub segment: usize,
    /// The list's directory.
    pub directory: &'a Directory,
    /// Its pages.
    pub pages: &'a dyn Pages,
}

/// What documents in pieces need to become whole.
#[derive(Debug, Clone, Copy)]
pub struct Pieces<'a> {
    /// For each old segment whether its pieces are taken off.
    pub minus: &'a [bool],
    /// The length of each document by its new ordinal.
    pub lengths: &'a [u32],
}

/// A list on its way into another segment.
struct Source<'a> {
    segment: usize,
    cursor: Cursor<'a>,
    /// The posting that comes next, by its new ordinal.
    head: Option<Posting>,
}

impl Source<'_> {
    /// Moves to the first living posting from old ordinal `from` on.
    fn advance(&mut self, mut from: u32, renumbering: &Renumbering) -> Result<()> {
        self.head = None;
        while self.cursor.seek(from)? != END {
            let Some(posting) = self.cursor.posting() else { break };
            if let Some(ordinal) = renumbering.get(self.segment, posting.ordinal) {
                self.head = Some(Posting { ordinal, ..posting });
                break;
            }
            from = posting.ordinal + 1;
        }
        Ok(())
    }

    /// Moves to the next living posting.
    fn next(&mut self, renumbering: &Renumbering) -> Result<()> {
        let old = self.cursor.posting().map_or(END, |p| p.ordinal);
        self.advance(old.saturating_add(1), renumbering)
    }
}

/// One list of what lives in several; `None` when nothing does. `seen` is told each posting by its new ordinal.
///
/// With `pieces`, what several lists say about one document is added up, and left out where it comes to nothing; less than
/// nothing is damage.
pub fn merge(
    lists: &[OldList<'_>],
    renumbering: &Renumbering,
    pieces: Option<Pieces<'_>>,
    seen: &mut dyn FnMut(Posting),
) -> Result<Option<EncodedList>> {
    let mut merged = ListBuilder::default();
    let mut sources = Vec::with_capacity(lists.len());
    for list in lists {
        let mut source = Source { segment: list.segment, cursor: Cursor::new(list.directory, list.pages), head: None };
        source.advance(0, renumbering)?;
        sources.push(source);
    }
    // Usually few, but a merge that had to wait has as many as there were statements meanwhile.
    let first = |(at, source): (usize, &Source<'_>)| Some(Reverse((source.head?.ordinal, at)));
    let mut heads: BinaryHeap<Reverse<(u32, usize)>> = sources.iter().enumerate().filter_map(first).collect();
    while let Some(Reverse((ordinal, at))) = heads.pop() {
        let Some(mut head) = sources[at].head else { continue };
        let mut same = vec![at];
        while pieces.is_some()
            && let Some(Reverse((_, other))) = heads.peek().filter(|Reverse((next, _))| *next == ordinal)
        {
            same.push(*other);
            heads.pop();
        }
        let mut tf = 0i64;
        for at in same {
            let source = &mut sources[at];
            let minus = pieces.and_then(|p| p.minus.get(source.segment)).copied().unwrap_or_default();
            let piece = i64::from(source.head.map_or(0, |h| h.tf));
            tf += if minus { -piece } else { piece };
            source.next(renumbering)?;
            heads.extend(source.head.map(|head| Reverse((head.ordinal, at))));
        }
        if let Some(pieces) = pieces {
            if tf == 0 {
                continue;
            }
            head.tf = u32::try_from(tf).map_err(|_| corrupt("a document lacks what was deleted from it"))?;
            head.dl = pieces.lengths.get(ordinal as usize).copied().unwrap_or_default();
        }
        merged.push(head)?;
        seen(head);
    }
    Ok(merged.finish())
}
