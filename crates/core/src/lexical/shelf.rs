// SPDX-License-Identifier: PostgreSQL

//! The dictionary of a segment, in rows of a table.
//!
//! Owns how terms and their posting lists are laid out: *shelves* hold terms in byte order, a rare term with its whole list,
//! a common one with the number under which its *pages* lie apart. Most terms of a collection are rare, and a row for each
//! would be all overhead; a shelf holds some fifty of them. It must not know which table or index finds a shelf: whoever
//! keeps the rows answers three questions ([`Rows`]).
//!
//! ```text
//! shelf (key: its first term)                        pages (key: list number, part)
//!   for each term, ascending:                          parts of the directory, then the pages of the list
//!     bytes shared with the term before, the rest
//!     0, directory, page        the list is here
//!     1, df, number, parts      the list is apart, its directory in so many parts
//!     2, ordinal, tf, dl        the only posting, as half of all terms have
//! ```
//!
//! A segment of a few documents is one shelf and fits the row of the segment itself.

use super::postings::{Directory, EncodedList, ListBuilder, MemoryList, PAGE_BYTES, Posting};
use super::varint::{self, Reader, corrupt};
use crate::error::Result;
use std::fmt::Debug;
use std::ops::ControlFlow;
use std::rc::Rc;

/// The most bytes of a list that lies on its shelf.
const HERE_BYTES: usize = 600;

/// Where a segment being written goes.
pub trait Sink {
    /// Takes a shelf; they come in the order of their first terms.
    fn shelf(&mut self, first: &str, bytes: Vec<u8>) -> Result<()>;

    /// Takes a part of the list `number`; they come in order.
    fn page(&mut self, number: u32, part: u32, bytes: Vec<u8>) -> Result<()>;
}

/// Where a stored segment comes from.
pub trait Rows: Debug {
    /// The last shelf whose first term is not behind `term`.
    fn shelf(&self, term: &[u8]) -> Result<Option<Rc<Shelf>>>;

    /// The first shelf whose first term is behind `term`; without one the first of all.
    fn shelf_behind(&self, term: Option<&[u8]>) -> Result<Option<Rc<Shelf>>>;

    /// A part of the list `number`.
    fn page(&self, number: u32, part: u32) -> Result<Vec<u8>>;
}

/// Lays lists out on shelves.
#[derive(Debug, Default)]
pub struct Writer {
    first: Option<String>,
    last: String,
    bytes: Vec<u8>,
    lists: u32,
    terms: u64,
}

impl Writer {
    /// Adds the list of a term; terms come in byte order.
    pub fn add(&mut self, term: &str, list: EncodedList, sink: &mut dyn Sink) -> Result<()> {
        let mut stored = Vec::new();
        let here = match list.pages.as_slice() {
            [page] if list.directory.len() + page.len() <= HERE_BYTES => Some(page),
            _ => None,
        };
        if list.df == 1 {
            let postings = MemoryList::new(list)?.postings()?;
            let [posting] = postings.as_slice() else { return Err(corrupt("a list of one posting has others")) };
            stored.push(2);
            [posting.ordinal, posting.tf, posting.dl].iter().for_each(|v| varint::write(&mut stored, u64::from(*v)));
        } else if let Some(page) = here {
            stored.push(0);
            put(&mut stored, &list.directory);
            put(&mut stored, page);
        } else {
            let number = self.lists;
            self.lists += 1;
            let parts = list.directory.chunks(PAGE_BYTES).map(<[u8]>::to_vec);
            let parts_of_directory = parts.len() as u64;
            for (part, bytes) in (0u32..).zip(parts.chain(list.pages)) {
                sink.page(number, part, bytes)?;
            }
            stored.push(1);
            varint::write(&mut stored, u64::from(list.df));
            varint::write(&mut stored, u64::from(number));
            varint::write(&mut stored, parts_of_directory);
        }
        if self.bytes.len() + term.len() + stored.len() > PAGE_BYTES {
            self.close(sink)?;
        }
        let shared = match &self.first {
            Some(_) => self.last.bytes().zip(term.bytes()).take_while(|(a, b)| a == b).count(),
            None => 0,
        };
        self.first.get_or_insert_with(|| term.to_owned());
        varint::write(&mut self.bytes, shared as u64);
        put(&mut self.bytes, &term.as_bytes()[shared..]);
        self.bytes.extend(stored);
        term.clone_into(&mut self.last);
        self.terms += 1;
        Ok(())
    }

    /// Hands out the last shelf; returns the number of terms.
    pub fn finish(mut self, sink: &mut dyn Sink) -> Result<u64> {
        self.close(sink)?;
        Ok(self.terms)
    }

    fn close(&mut self, sink: &mut dyn Sink) -> Result<()> {
        match self.first.take() {
            Some(first) => sink.shelf(&first, std::mem::take(&mut self.bytes)),
            None => Ok(()),
        }
    }
}

fn put(out: &mut Vec<u8>, bytes: &[u8]) {
    varint::write(out, bytes.len() as u64);
    out.extend(bytes);
}

/// A list as a shelf states it.
#[derive(Debug, Clone, PartialEq)]
pub enum Stored {
    /// The list itself: its directory and its only page.
    Here(Directory, Vec<u8>),
    /// Where it lies.
    Apart {
        /// Its postings.
        df: u32,
        /// The number of its rows.
        number: u32,
        /// How many of them are its directory.
        parts: u32,
    },
}

impl Stored {
    /// Number of postings.
    pub fn df(&self) -> u32 {
        match self {
            Self::Here(directory, _) => directory.df(),
            Self::Apart { df, .. } => *df,
        }
    }

    /// Bytes it takes in memory, roughly.
    pub fn memory(&self) -> usize {
        match self {
            Self::Here(directory, page) => directory.memory() + page.len(),
            Self::Apart { .. } => size_of::<Self>(),
        }
    }
}

/// Terms that lie together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shelf {
    /// The first of them.
    pub first: String,
    bytes: Vec<u8>,
}

impl Shelf {
    /// A shelf as it was stored.
    pub fn new(first: String, bytes: Vec<u8>) -> Self {
        Self { first, bytes }
    }

    /// A shelf whose first term is only in its bytes.
    pub fn alone(bytes: Vec<u8>) -> Result<Self> {
        let mut reader = Reader::new(&bytes);
        reader.u64()?;
        let first = text(reader.bytes()?)?;
        Ok(Self { first, bytes })
    }

    /// Bytes it takes in memory, roughly.
    pub fn memory(&self) -> usize {
        self.bytes.len() + self.first.len()
    }

    /// The list of a term, if the shelf has it.
    pub fn find(&self, term: &str) -> Result<Option<Stored>> {
        let mut found = None;
        self.walk(|at, entry| match at.cmp(term.as_bytes()) {
            std::cmp::Ordering::Less => Ok(ControlFlow::Continue(())),
            std::cmp::Ordering::Equal => {
                found = Some(entry.read()?);
                Ok(ControlFlow::Break(()))
            }
            std::cmp::Ordering::Greater => Ok(ControlFlow::Break(())),
        })?;
        Ok(found)
    }

    /// All terms with their lists, in order.
    pub fn terms(&self) -> Result<Vec<(String, Stored)>> {
        let mut out = Vec::new();
        self.walk(|term, entry| {
            out.push((text(term)?, entry.read()?));
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(out)
    }

    /// The first term at or after `from`, with its df.
    pub fn at_or_after(&self, from: &[u8]) -> Result<Option<(String, u64)>> {
        let mut found = None;
        self.walk(|term, entry| {
            if term < from {
                return Ok(ControlFlow::Continue(()));
            }
            found = Some((text(term)?, u64::from(entry.read()?.df())));
            Ok(ControlFlow::Break(()))
        })?;
        Ok(found)
    }

    fn walk<'s>(&'s self, mut visit: impl FnMut(&[u8], Entry<'s>) -> Result<ControlFlow<()>>) -> Result<()> {
        let mut reader = Reader::new(&self.bytes);
        let mut term: Vec<u8> = Vec::new();
        let mut started = false;
        while reader.remaining() > 0 {
            let shared = reader.u64()?;
            let shared = usize::try_from(shared).ok().filter(|s| *s <= term.len());
            let shared = shared.ok_or_else(|| corrupt("a term shares more than the one before it has"))?;
            let rest = reader.bytes()?;
            // What follows the shared bytes must lie behind, or terms would not ascend.
            if started && rest <= &term[shared..] {
                return Err(corrupt("the terms of a shelf do not ascend"));
            }
            term.truncate(shared);
            term.extend(rest);
            let entry = match reader.byte()? {
                0 => Entry::Here(reader.bytes()?, reader.bytes()?),
                1 => Entry::Apart(reader.u32()?, reader.u32()?, reader.u32()?),
                2 => Entry::One(Posting { ordinal: reader.u32()?, tf: reader.u32()?, dl: reader.u32()? }),
                kind => return Err(corrupt(&format!("a shelf has an entry of kind {kind}"))),
            };
            if !started && term != self.first.as_bytes() {
                return Err(corrupt("a shelf does not begin with its first term"));
            }
            started = true;
            if visit(&term, entry)?.is_break() {
                break;
            }
        }
        Ok(())
    }
}

enum Entry<'s> {
    Here(&'s [u8], &'s [u8]),
    Apart(u32, u32, u32),
    One(Posting),
}

impl Entry<'_> {
    fn read(&self) -> Result<Stored> {
        Ok(match self {
            Self::Here(directory, page) => Stored::Here(Directory::parse(directory)?, page.to_vec()),
            Self::Apart(df, number, parts) => Stored::Apart { df: *df, number: *number, parts: *parts },
            Self::One(posting) => {
                let mut list = ListBuilder::default();
                list.push(*posting).map_err(|_| corrupt("a posting is out of range"))?;
                let list = list.finish().ok_or_else(|| corrupt("a posting is missing"))?;
                let page = list.pages.into_iter().next().ok_or_else(|| corrupt("a page is missing"))?;
                Stored::Here(Directory::parse(&list.directory)?, page)
            }
        })
    }
}

fn text(term: &[u8]) -> Result<String> {
    String::from_utf8(term.to_vec()).map_err(|_| corrupt("a term is not UTF-8"))
}

/// Shelves and pages in memory.
#[derive(Debug, Clone, Default)]
pub struct MemoryRows {
    /// The shelves, in order.
    pub shelves: Vec<Rc<Shelf>>,
    /// The parts of each list.
    pub lists: Vec<Vec<Vec<u8>>>,
}

impl MemoryRows {
    /// Bytes of all rows.
    pub fn bytes(&self) -> usize {
        let lists = self.lists.iter().flatten().map(Vec::len).sum::<usize>();
        self.shelves.iter().map(|s| s.memory()).sum::<usize>() + lists
    }
}

impl Sink for MemoryRows {
    fn shelf(&mut self, first: &str, bytes: Vec<u8>) -> Result<()> {
        self.shelves.push(Rc::new(Shelf::new(first.to_owned(), bytes)));
        Ok(())
    }

    fn page(&mut self, number: u32, _: u32, bytes: Vec<u8>) -> Result<()> {
        if number as usize == self.lists.len() {
            self.lists.push(Vec::new());
        }
        self.lists.last_mut().ok_or_else(|| corrupt("a list is missing"))?.push(bytes);
        Ok(())
    }
}

impl Rows for MemoryRows {
    fn shelf(&self, term: &[u8]) -> Result<Option<Rc<Shelf>>> {
        let behind = self.shelves.partition_point(|s| s.first.as_bytes() <= term);
        Ok(behind.checked_sub(1).and_then(|at| self.shelves.get(at)).cloned())
    }

    fn shelf_behind(&self, term: Option<&[u8]>) -> Result<Option<Rc<Shelf>>> {
        let at = term.map_or(0, |term| self.shelves.partition_point(|s| s.first.as_bytes() <= term));
        Ok(self.shelves.get(at).cloned())
    }

    fn page(&self, number: u32, part: u32) -> Result<Vec<u8>> {
        let page = self.lists.get(number as usize).and_then(|parts| parts.get(part as usize));
        page.cloned().ok_or_else(|| corrupt("a page is missing"))
    }
}
