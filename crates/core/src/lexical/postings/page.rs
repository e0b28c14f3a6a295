// SPDX-License-Identifier: PostgreSQL

//! Reading a posting list.
//!
//! Owns the checks on bytes that come out of a table: whatever they are, the answer is a list that keeps its rules
//! (ordinals ascend and end where the directory says, tf ≥ 1) or an error with the command that rebuilds the index; never
//! a panic, and never more memory than a small multiple of the bytes.

use super::frontier::Frontier;
use super::{BLOCK, END, FORMAT, bits};
use crate::error::Result;
use crate::lexical::varint::{Reader, corrupt};
use bitpacking::{BitPacker, BitPacker4x};

/// What a list holds and where.
#[derive(Debug, Clone, PartialEq)]
pub struct Directory {
    df: u32,
    frontier: Frontier,
    pages: Vec<PageEntry>,
}

/// One page, as the directory knows it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PageEntry {
    /// The last ordinal before the page.
    pub previous: Option<u32>,
    /// The page's last ordinal.
    pub last: u32,
    /// Bounds every score in the page.
    pub frontier: Frontier,
    /// Number of blocks.
    blocks: u32,
    /// Postings in its last block.
    tail: u8,
}

impl Directory {
    /// Reads the directory of an [`super::EncodedList`].
    pub fn parse(bytes: &[u8]) -> Result<Self> {
        let mut reader = Reader::new(bytes);
        let format = reader.byte()?;
        if format != FORMAT {
            return Err(corrupt(&format!("a posting list has format {format} instead of {FORMAT}")));
        }
        let df = reader.u32()?;
        // Blocks, last ordinal and a frontier with one point.
        let count = reader.count(5)?;
        let stated = if count > 1 { Some(Frontier::read(&mut reader)?) } else { None };
        let mut pages: Vec<PageEntry> = Vec::with_capacity(count);
        let (mut previous, mut blocks) = (None, 0u64);
        for _ in 0..count {
            let in_page = reader.u32()?;
            let next = previous.map_or(0, |p: u32| u64::from(p) + 1);
            let last = next.checked_add(reader.u64()?).and_then(|l| u32::try_from(l).ok()).filter(|l| *l < END);
            let last = last.ok_or_else(|| corrupt("a page ends behind the last ordinal"))?;
            let frontier = Frontier::read(&mut reader)?;
            if in_page == 0 {
                return Err(corrupt("a page is empty"));
            }
            blocks += u64::from(in_page);
            pages.push(PageEntry { previous, last, frontier, blocks: in_page, tail: BLOCK as u8 });
            previous = Some(last);
        }
        let full = blocks.saturating_sub(1) * BLOCK as u64;
        let tail = u64::from(df).checked_sub(full).filter(|t| (1..=BLOCK as u64).contains(t));
        let (Some(tail), Some(page)) = (tail, pages.last_mut()) else {
            return Err(corrupt("the number of blocks is not that of the postings"));
        };
        page.tail = tail as u8;
        let frontier = stated.unwrap_or(page.frontier);
        if reader.remaining() > 0 {
            return Err(corrupt("a directory has bytes too many"));
        }
        Ok(Self { df, frontier, pages })
    }

    /// Number of postings.
    pub fn df(&self) -> u32 {
        self.df
    }

    /// Bounds every score in the list.
    pub fn frontier(&self) -> &Frontier {
        &self.frontier
    }

    /// The pages, in order.
    pub fn pages(&self) -> &[PageEntry] {
        &self.pages
    }

    /// Bytes it takes in memory, roughly.
    pub fn memory(&self) -> usize {
        size_of::<Self>() + self.pages.len() * size_of::<PageEntry>()
    }

    /// Reads the heads of page `number` of this list.
    pub fn page(&self, number: usize, bytes: Vec<u8>) -> Result<Page> {
        let entry = self.pages.get(number).ok_or_else(|| corrupt("there is no such page"))?;
        Page::parse(entry, bytes)
    }
}

/// A page whose heads have been read; its blocks are decoded one by one, when they are needed.
#[derive(Debug, Clone)]
pub struct Page {
    bytes: Vec<u8>,
    blocks: Vec<Head>,
}

/// What is known of a block before it is decoded.
#[derive(Debug, Clone, Copy)]
pub struct Head {
    /// The block's last ordinal.
    pub last: u32,
    /// Bounds every score in the block.
    pub frontier: Frontier,
    previous: Option<u32>,
    count: u8,
    widths: [u8; 3],
    shortest: u32,
    start: usize,
    end: usize,
}

/// 128 postings or, at the end of a list, fewer; column by column.
#[derive(Debug, Clone)]
pub struct Block {
    len: usize,
    ordinals: [u32; BLOCK],
    tfs: [u32; BLOCK],
    lengths: [u32; BLOCK],
}

impl Page {
    fn parse(entry: &PageEntry, bytes: Vec<u8>) -> Result<Self> {
        let mut reader = Reader::new(&bytes);
        let count = entry.blocks as usize;
        if count > bytes.len() {
            return Err(corrupt("a page is shorter than its heads"));
        }
        let mut blocks: Vec<Head> = Vec::with_capacity(count);
        let mut previous = entry.previous;
        for number in 1..=count {
            let postings = if number == count { entry.tail } else { BLOCK as u8 };
            let widths = [reader.byte()?, reader.byte()?, reader.byte()?];
            let shortest = reader.u32()?;
            if widths.iter().any(|w| *w > 32) {
                return Err(corrupt("a block has more than 32 bits for a value"));
            }
            let (mut last, mut frontier) = (entry.last, entry.frontier);
            if count > 1 {
                let next = previous.map_or(0, |p: u32| u64::from(p) + 1);
                let stated = next.checked_add(reader.u64()?).and_then(|l| u32::try_from(l).ok());
                last = stated.filter(|l| *l <= entry.last).ok_or_else(|| corrupt("a block ends behind its page"))?;
                frontier = Frontier::read(&mut reader)?;
            }
            blocks.push(Head { last, frontier, previous, count: postings, widths, shortest, start: 0, end: 0 });
            previous = Some(last);
        }
        if previous != Some(entry.last) {
            return Err(corrupt("a page ends before its last ordinal"));
        }
        let mut start = bytes.len() - reader.remaining();
        for (number, head) in blocks.iter_mut().enumerate() {
            // For a full block this is what three packed columns take.
            let bits = head.widths.iter().map(|w| usize::from(*w)).sum::<usize>() * usize::from(head.count);
            let end = start + bits.div_ceil(8);
            if end > bytes.len() || (number + 1 == count && end != bytes.len()) {
                return Err(corrupt("the blocks of a page do not have its length"));
            }
            (head.start, head.end) = (start, end);
            start = end;
        }
        Ok(Self { bytes, blocks })
    }

    /// The heads of its blocks, in order.
    pub fn heads(&self) -> &[Head] {
        &self.blocks
    }

    /// Bytes it takes in memory, roughly: for bounding a cache.
    pub fn memory(&self) -> usize {
        self.bytes.len() + self.blocks.len() * size_of::<Head>()
    }

    /// Decodes block `number`.
    pub fn decode(&self, number: usize) -> Result<Block> {
        let head = self.blocks.get(number).ok_or_else(|| corrupt("there is no such block"))?;
        let body = self.bytes.get(head.start..head.end).ok_or_else(|| corrupt("a block is cut off"))?;
        let mut block =
            Block { len: usize::from(head.count), ordinals: [END; BLOCK], tfs: [0; BLOCK], lengths: [0; BLOCK] };
        if block.len == BLOCK {
            block.unpack(head, body);
        } else {
            block.read(head, body);
        }
        let ordinals = block.ordinals();
        let first = head.previous.is_none_or(|p| ordinals.first().is_some_and(|o| *o > p));
        let ascending = ordinals.windows(2).fold(true, |good, pair| good & (pair[0] < pair[1]));
        if !first || !ascending || ordinals.last() != Some(&head.last) {
            return Err(corrupt("the ordinals of a block do not ascend to its last"));
        }
        // What overflowed is below what it was added to.
        let tfs = block.tfs().iter().fold(true, |good, tf| good & (*tf > 0));
        let lengths = block.lengths().iter().fold(true, |good, dl| good & (*dl >= head.shortest));
        if !tfs || !lengths {
            return Err(corrupt("a term frequency or length is out of range"));
        }
        Ok(block)
    }
}

impl Block {
    /// The ordinals, strictly ascending.
    pub fn ordinals(&self) -> &[u32] {
        &self.ordinals[..self.len]
    }

    /// The term frequencies.
    pub fn tfs(&self) -> &[u32] {
        &self.tfs[..self.len]
    }

    /// The document lengths in lexemes.
    pub fn lengths(&self) -> &[u32] {
        &self.lengths[..self.len]
    }

    /// The position of the first ordinal at or after `to`, looked for from position `from` on.
    pub fn find(&self, from: usize, to: u32) -> usize {
        // Unused places hold END, so all 128 may be looked at.
        let mut low = from.min(BLOCK - 1);
        // Near ones first: lists that are walked together are mostly in step.
        for _ in 0..3 {
            if self.ordinals[low] >= to || low + 1 == BLOCK {
                break;
            }
            low += 1;
        }
        if self.ordinals[low] >= to { low } else { low + self.ordinals[low..].partition_point(|o| *o < to) }
    }

    fn unpack(&mut self, head: &Head, body: &[u8]) {
        let packer = BitPacker4x::new();
        let size = |width: u8| BitPacker4x::compressed_block_size(width);
        let (first, rest) = body.split_at(size(head.widths[0]));
        let (second, third) = rest.split_at(size(head.widths[1]));
        packer.decompress_strictly_sorted(head.previous, first, &mut self.ordinals, head.widths[0]);
        packer.decompress(second, &mut self.tfs, head.widths[1]);
        packer.decompress(third, &mut self.lengths, head.widths[2]);
        self.finish(head);
    }

    fn read(&mut self, head: &Head, body: &[u8]) {
        let mut reader = bits::Reader::new(body);
        reader.fill(&mut self.ordinals[..self.len], head.widths[0]);
        reader.fill(&mut self.tfs[..self.len], head.widths[1]);
        reader.fill(&mut self.lengths[..self.len], head.widths[2]);
        let mut next = head.previous.map_or(0, |p| p.wrapping_add(1));
        for ordinal in &mut self.ordinals[..self.len] {
            *ordinal = ordinal.wrapping_add(next);
            next = ordinal.wrapping_add(1);
        }
        self.finish(head);
    }

    /// From what is stored to what is meant; what overflows is noticed by whoever decodes.
    fn finish(&mut self, head: &Head) {
        self.tfs.iter_mut().for_each(|tf| *tf = tf.wrapping_add(1));
        self.lengths.iter_mut().for_each(|dl| *dl = dl.wrapping_add(head.shortest));
    }
}
