// SPDX-License-Identifier: PostgreSQL

//! The posting list of one term in one segment.
//!
//! Owns the bytes: how a list is written, checked and walked. It must not know where the bytes are kept, what a term is or
//! what a score is.
//!
//! ```text
//! directory (kept with the term)        page 0 (a row)                            page 1 …
//! format, df, pages, frontier           head of each block, then their bodies
//!   for each page: blocks, last           head: bit widths, shortest dl, last ordinal, frontier
//!   ordinal, frontier                     body: ordinal gaps, then tf − 1, then dl − shortest, bit-packed
//! ```
//!
//! - **Blocks of 128,** bit-packed by the crate `bitpacking`; the last block of a list, if shorter, by [`bits`]. A block is
//!   decoded as a whole, in about a nanosecond a posting.
//! - **Pages** hold as many blocks as fit [`PAGE_BYTES`], so that a row stays clear of TOAST. The directory alone says
//!   which page may hold an ordinal and how well it can score, so pages that cannot matter are never fetched.
//! - **The length of the document stands in each posting,** about one byte, not in an array for each segment. The array
//!   would be smaller on disk, but every backend would have to read and keep all of it before its first query, and each
//!   score would be a random access into it; here what a block needs lies in the block, and a segment is nothing but its
//!   lists.
//! - **Frontiers** instead of maxima: see [`frontier`].
//!
//! Ordinals are `u32` below [`END`], strictly ascending. Bit-packed words are in the machine's byte order, as all that
//! PostgreSQL replicates or copies physically.

pub mod bits;
pub mod cursor;
pub mod encode;
pub mod frontier;
pub mod page;

pub use cursor::{Cursor, MemoryList, Pages};
pub use encode::{EncodedList, ListBuilder};
pub use frontier::Frontier;
pub use page::{Block, Directory, Page};

/// Postings in a full block.
pub const BLOCK: usize = 128;

/// The most bytes of a page.
pub const PAGE_BYTES: usize = 1900;

/// No ordinal: behind the last posting.
pub const END: u32 = u32::MAX;

/// The form of the bytes; another number is another form.
pub const FORMAT: u8 = 1;

/// One document that has the term.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Posting {
    /// The document's number in its segment.
    pub ordinal: u32,
    /// How often it has the term, 1 or more.
    pub tf: u32,
    /// Its length in lexemes.
    pub dl: u32,
}
