// SPDX-License-Identifier: PostgreSQL

//! Walking a posting list.
//!
//! Owns lazy reading: a page is asked for when its heads are needed, a block is decoded when a posting of it is. Where
//! pages come from, and whether they and their blocks are kept, is the business of whoever implements [`Pages`]. A cursor
//! only moves forward.

use super::encode::EncodedList;
use super::page::{Block, Directory, Head, Page};
use super::{END, Posting};
use crate::error::Result;
use crate::lexical::varint::corrupt;
use std::fmt::Debug;
use std::rc::Rc;

/// Where the pages of one list come from.
///
/// `Rc` because what is handed out may also stand in a cache; a backend has one thread.
pub trait Pages: Debug {
    /// Page `number` of the list, read by [`Directory::page`].
    fn page(&self, directory: &Directory, number: usize) -> Result<Rc<Page>>;

    /// Block `block` of `page`, which is page `number` of the list. An implementation may keep decoded blocks.
    fn block(&self, number: usize, page: &Page, block: usize) -> Result<Rc<Block>> {
        let _ = number;
        page.decode(block).map(Rc::new)
    }
}

/// A list whose bytes are all in memory, pages parsed beforehand.
#[derive(Debug, Clone)]
pub struct MemoryList {
    /// Its directory.
    pub directory: Directory,
    pages: Vec<Rc<Page>>,
}

impl MemoryList {
    /// Reads a list; damaged bytes are an error.
    pub fn new(list: EncodedList) -> Result<Self> {
        let directory = Directory::parse(&list.directory)?;
        if directory.pages().len() != list.pages.len() {
            return Err(corrupt("a page is missing"));
        }
        let pages =
            list.pages.into_iter().enumerate().map(|(number, bytes)| directory.page(number, bytes).map(Rc::new));
        let pages = pages.collect::<Result<_>>()?;
        Ok(Self { directory, pages })
    }

    /// A cursor before its first posting.
    pub fn cursor(&self) -> Cursor<'_> {
        Cursor::new(&self.directory, self)
    }

    /// All postings.
    pub fn postings(&self) -> Result<Vec<Posting>> {
        let (mut cursor, mut out) = (self.cursor(), Vec::new());
        while cursor.seek(out.last().map_or(0, |p: &Posting| p.ordinal + 1))? != END {
            out.extend(cursor.posting());
        }
        Ok(out)
    }
}

impl Pages for MemoryList {
    fn page(&self, _: &Directory, number: usize) -> Result<Rc<Page>> {
        self.pages.get(number).cloned().ok_or_else(|| corrupt("a page is missing"))
    }
}

/// A place in a list.
#[derive(Debug)]
pub struct Cursor<'a> {
    directory: &'a Directory,
    pages: &'a dyn Pages,
    /// The place that was looked at last, perhaps by its head only.
    page_number: usize,
    block_number: usize,
    page: Option<Rc<Page>>,
    /// The block at that place, if it has been decoded.
    block: Option<Rc<Block>>,
    at: usize,
}

impl<'a> Cursor<'a> {
    /// Before the first posting. Nothing is read yet.
    pub fn new(directory: &'a Directory, pages: &'a dyn Pages) -> Self {
        Self { directory, pages, page_number: 0, block_number: 0, page: None, block: None, at: 0 }
    }

    /// The list's directory.
    pub fn directory(&self) -> &'a Directory {
        self.directory
    }

    /// Moves to the page that may hold `to`, without asking for it; its number, or `None` behind the list.
    pub fn skip_pages(&mut self, to: u32) -> Option<usize> {
        let pages = self.directory.pages();
        let behind = |at: usize| pages.get(at).is_some_and(|p| p.last < to);
        if behind(self.page_number) {
            let step = pages[self.page_number..].partition_point(|p| p.last < to);
            self.page_number += step;
            self.block_number = 0;
            self.page = None;
            self.block = None;
        }
        (self.page_number < pages.len()).then_some(self.page_number)
    }

    /// Moves to the block that may hold `to`, without decoding it; false behind the list.
    pub fn skip(&mut self, to: u32) -> Result<bool> {
        if self.skip_pages(to).is_none() {
            return Ok(false);
        }
        let heads = match &self.page {
            Some(page) => page.heads(),
            None => self.page.insert(self.pages.page(self.directory, self.page_number)?).heads(),
        };
        while heads.get(self.block_number).is_some_and(|h| h.last < to) {
            self.block_number += 1;
            self.block = None;
        }
        // A page reaches the ordinal that its directory states, or it would not have been read.
        if self.block_number < heads.len() { Ok(true) } else { Err(corrupt("a page ends early")) }
    }

    /// The heads of the page at hand from the block at hand on, and the page's number; empty when it was not asked for.
    pub fn heads(&self) -> (&[Head], usize) {
        let heads = self.page.as_ref().and_then(|p| p.heads().get(self.block_number..)).unwrap_or_default();
        (heads, self.page_number)
    }

    /// Moves to the first posting at or after `to` and returns its ordinal, [`END`] behind the last.
    pub fn seek(&mut self, to: u32) -> Result<u32> {
        if !self.skip(to)? {
            return Ok(END);
        }
        let block = match &self.block {
            Some(block) => block,
            None => {
                let page = self.page.as_ref().ok_or_else(|| corrupt("a page is missing"))?;
                self.at = 0;
                self.block.insert(self.pages.block(self.page_number, page, self.block_number)?)
            }
        };
        self.at = block.find(self.at, to);
        Ok(block.ordinals().get(self.at).copied().unwrap_or(END))
    }

    /// The posting that [`Cursor::seek`] stopped at.
    pub fn posting(&self) -> Option<Posting> {
        let block = self.block.as_ref()?;
        let ordinal = *block.ordinals().get(self.at)?;
        Some(Posting { ordinal, tf: block.tfs()[self.at], dl: block.lengths()[self.at] })
    }

    /// The block that [`Cursor::seek`] stopped in and the position there.
    pub fn block(&self) -> Option<(&Rc<Block>, usize)> {
        self.block.as_ref().map(|b| (b, self.at))
    }
}
