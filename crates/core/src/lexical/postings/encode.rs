// SPDX-License-Identifier: PostgreSQL

//! Writing a posting list.
//!
//! Owns the way from postings in ascending order to a directory and pages. It keeps at most one block undecoded and what
//! is packed already, so that a segment can be built in little more memory than it takes in the end.

use super::frontier::{Frontier, FrontierBuilder};
use super::{BLOCK, END, FORMAT, PAGE_BYTES, Posting, bits};
use crate::error::{Error, Result};
use crate::lexical::varint;
use bitpacking::{BitPacker, BitPacker4x};

/// A whole posting list as bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EncodedList {
    /// Number of postings.
    pub df: u32,
    /// What says which page holds what; read by [`super::Directory::parse`].
    pub directory: Vec<u8>,
    /// The pages in order; a list that fits one page has one.
    pub pages: Vec<Vec<u8>>,
}

impl EncodedList {
    /// Bytes of the directory and all pages.
    pub fn bytes(&self) -> usize {
        self.directory.len() + self.pages.iter().map(Vec::len).sum::<usize>()
    }
}

/// Collects the postings of one term.
#[derive(Debug, Default)]
pub struct ListBuilder {
    pending: Vec<Posting>,
    /// Most terms of a collection never fill a block, so what a long list needs stands apart.
    packed: Option<Box<Packed>>,
}

#[derive(Debug, Default)]
struct Packed {
    df: u32,
    last: Option<u32>,
    pages: Vec<(Entry, Vec<u8>)>,
    open: OpenPage,
}

/// What the directory says about a page.
#[derive(Debug)]
struct Entry {
    blocks: usize,
    last: u32,
    frontier: Frontier,
}

/// The page that is being filled.
#[derive(Debug, Default)]
struct OpenPage {
    blocks: usize,
    last: u32,
    frontier: FrontierBuilder,
    /// The head of the latest block without last ordinal and frontier, which a page of one block leaves to the directory.
    short_head: Vec<u8>,
    heads: Vec<u8>,
    bodies: Vec<u8>,
}

impl ListBuilder {
    /// Adds a posting. An ordinal that is not above the one before, or a tf of 0, is an internal error.
    pub fn push(&mut self, posting: Posting) -> Result<()> {
        let last = self.pending.last().map(|p| p.ordinal).or(self.packed.as_ref().and_then(|p| p.last));
        if last.is_some_and(|last| last >= posting.ordinal) || posting.ordinal == END || posting.tf == 0 {
            return Err(Error::internal(format!("posting {posting:?} cannot follow ordinal {last:?}")));
        }
        self.pending.push(posting);
        if self.pending.len() == BLOCK {
            self.packed.get_or_insert_default().add(&self.pending);
            self.pending.clear();
        }
        Ok(())
    }

    /// Number of postings so far.
    pub fn df(&self) -> u32 {
        self.packed.as_ref().map_or(0, |p| p.df) + self.pending.len() as u32
    }

    /// The list; `None` when nothing was added.
    pub fn finish(mut self) -> Option<EncodedList> {
        let mut packed = self.packed.take().unwrap_or_default();
        if !self.pending.is_empty() {
            packed.add(&self.pending);
        }
        packed.close();
        (packed.df > 0).then(|| packed.list())
    }
}

impl Packed {
    fn add(&mut self, postings: &[Posting]) {
        let Some(last) = postings.last().map(|p| p.ordinal) else { return };
        let mut frontier = FrontierBuilder::default();
        postings.iter().for_each(|p| frontier.add(p.tf, p.dl));
        let frontier = frontier.finish();
        let block = encode(self.last, postings);
        let mut head = block.head.clone();
        // The gap is counted from the block before, across pages.
        varint::write(&mut head, u64::from(last) - self.last.map_or(0, |l| u64::from(l) + 1));
        frontier.write(&mut head);
        if self.open.blocks > 0
            && self.open.heads.len() + self.open.bodies.len() + head.len() + block.body.len() > PAGE_BYTES
        {
            self.close();
        }
        let open = &mut self.open;
        open.blocks += 1;
        open.last = last;
        open.frontier.add_all(&frontier);
        open.short_head = block.head;
        open.heads.extend(head);
        open.bodies.extend(block.body);
        self.last = Some(last);
        self.df += postings.len() as u32;
    }

    fn close(&mut self) {
        let open = std::mem::take(&mut self.open);
        if open.blocks == 0 {
            return;
        }
        let mut bytes = if open.blocks == 1 { open.short_head } else { open.heads };
        bytes.extend(open.bodies);
        let entry = Entry { blocks: open.blocks, last: open.last, frontier: open.frontier.finish() };
        self.pages.push((entry, bytes));
    }

    fn list(self) -> EncodedList {
        let mut directory = vec![FORMAT];
        varint::write(&mut directory, u64::from(self.df));
        varint::write(&mut directory, self.pages.len() as u64);
        if self.pages.len() > 1 {
            let mut all = FrontierBuilder::default();
            self.pages.iter().for_each(|(entry, _)| all.add_all(&entry.frontier));
            all.finish().write(&mut directory);
        }
        let mut next = 0;
        for (entry, _) in &self.pages {
            varint::write(&mut directory, entry.blocks as u64);
            varint::write(&mut directory, u64::from(entry.last) - next);
            entry.frontier.write(&mut directory);
            next = u64::from(entry.last) + 1;
        }
        EncodedList { df: self.df, directory, pages: self.pages.into_iter().map(|(_, bytes)| bytes).collect() }
    }
}

struct EncodedBlock {
    head: Vec<u8>,
    body: Vec<u8>,
}

/// A block behind the ordinal `previous`.
fn encode(previous: Option<u32>, postings: &[Posting]) -> EncodedBlock {
    let shortest = postings.iter().map(|p| p.dl).min().unwrap_or(0);
    if postings.len() < BLOCK {
        return encode_short(previous, postings, shortest);
    }
    let packer = BitPacker4x::new();
    let column = |value: &dyn Fn(&Posting) -> u32| {
        let mut values = [0; BLOCK];
        values.iter_mut().zip(postings).for_each(|(v, p)| *v = value(p));
        values
    };
    let ordinals = column(&|p| p.ordinal);
    let tfs = column(&|p| p.tf - 1);
    let lengths = column(&|p| p.dl - shortest);
    let widths =
        [packer.num_bits_strictly_sorted(previous, &ordinals), packer.num_bits(&tfs), packer.num_bits(&lengths)];
    let size = |width: u8| BitPacker4x::compressed_block_size(width);
    let mut body = vec![0; widths.iter().map(|w| size(*w)).sum()];
    let (first, rest) = body.split_at_mut(size(widths[0]));
    let (second, third) = rest.split_at_mut(size(widths[1]));
    packer.compress_strictly_sorted(previous, &ordinals, first, widths[0]);
    packer.compress(&tfs, second, widths[1]);
    packer.compress(&lengths, third, widths[2]);
    let mut head = widths.to_vec();
    varint::write(&mut head, u64::from(shortest));
    EncodedBlock { head, body }
}

/// A block that ends a list early.
fn encode_short(previous: Option<u32>, postings: &[Posting], shortest: u32) -> EncodedBlock {
    let mut next = previous.map_or(0, |p| p + 1);
    let gap = |posting: &Posting| posting.ordinal - std::mem::replace(&mut next, posting.ordinal + 1);
    let gaps: Vec<u32> = postings.iter().map(gap).collect();
    let tfs: Vec<u32> = postings.iter().map(|p| p.tf - 1).collect();
    let lengths: Vec<u32> = postings.iter().map(|p| p.dl - shortest).collect();
    let (mut head, mut body) = (Vec::new(), bits::Writer::default());
    for column in [&gaps, &tfs, &lengths] {
        let width = bits::width(column);
        head.push(width);
        body.push(column, width);
    }
    varint::write(&mut head, u64::from(shortest));
    EncodedBlock { head, body: body.finish() }
}
