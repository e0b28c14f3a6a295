// SPDX-License-Identifier: PostgreSQL

//! Packing: neighbouring pieces become one chunk while they fit.
//!
//! Greedy from the front, because a reader meets the text in that order and a chunk then begins where a thought does.
//! Sums of tokens only decide what to try: what counts is the count of the chunk as it will be stored.

use super::budget::{Context, Room, Sizer};
use super::cut::Piece;
use super::trim;
use std::ops::Range;
use std::sync::Arc;

/// A chunk to be.
#[derive(Debug, Clone, PartialEq)]
pub struct Packed {
    /// Bytes of the text.
    pub range: Range<usize>,
    /// Text of the container, if the chunk begins in the middle of one.
    pub context: Option<Context>,
    /// Heading path.
    pub path: Arc<[String]>,
    /// Tokens, if counted.
    pub tokens: Option<usize>,
    /// Whether title and heading path are too long to be embedded with it.
    pub prefix_cut: bool,
}

/// Puts pieces together; `path_of` gives the heading path of a section.
pub struct Packer<'a> {
    text: &'a str,
    sizer: &'a Sizer<'a>,
    path_of: &'a dyn Fn(usize) -> Arc<[String]>,
    open: Vec<Piece>,
    tokens: usize,
    out: Vec<Packed>,
}

impl<'a> Packer<'a> {
    /// An empty packer.
    pub fn new(text: &'a str, sizer: &'a Sizer<'a>, path_of: &'a dyn Fn(usize) -> Arc<[String]>) -> Self {
        Self { text, sizer, path_of, open: Vec::new(), tokens: 0, out: Vec::new() }
    }

    /// Packs pieces under `room`; nothing before or after them joins.
    pub fn run(&mut self, pieces: Vec<Piece>, room: Room) {
        for piece in pieces {
            if !self.open.is_empty() && !self.fits(&piece, room) {
                self.flush(room);
                // What an exact count sent back may still not leave room.
                if !self.open.is_empty() && !self.fits(&piece, room) {
                    self.flush_all(room);
                }
            }
            self.tokens += piece.tokens;
            self.open.push(piece);
        }
        self.flush_all(room);
    }

    /// The chunks.
    pub fn finish(self) -> Vec<Packed> {
        self.out
    }

    fn fits(&self, piece: &Piece, room: Room) -> bool {
        let Some(first) = self.open.first() else {
            return true;
        };
        let room = first.context.as_ref().map_or(room, |(_, r)| *r);
        self.tokens + piece.tokens <= room.tokens && piece.range.end - first.range.start <= room.bytes
    }

    fn flush_all(&mut self, room: Room) {
        while !self.open.is_empty() {
            self.flush(room);
        }
    }

    /// Emits the longest beginning of the open pieces that fits by an exact count; the rest stays open.
    fn flush(&mut self, room: Room) {
        let Some(first) = self.open.first() else {
            return;
        };
        let limit = first.context.as_ref().map_or(room, |(_, r)| *r);
        let mut take = self.open.len();
        let (range, tokens) = loop {
            let range = trim(self.text, first.range.start..self.open[take - 1].range.end);
            let tokens = self.sizer.count(&self.text[range.clone()]);
            if take == 1 || tokens <= limit.tokens {
                break (range, tokens);
            }
            take -= 1;
        };
        let rest = self.open.split_off(take);
        let taken = std::mem::replace(&mut self.open, rest);
        self.tokens = self.open.iter().map(|p| p.tokens).sum();
        if range.is_empty() {
            return;
        }
        // The path of the first text proper; of the last heading when there is none.
        let section = taken.iter().find(|p| !p.heading && p.tokens > 0).or(taken.last()).map_or(0, |p| p.section);
        let context = taken.into_iter().next().and_then(|p| p.context).map(|(context, _)| context);
        let (path, prefix_cut) = ((self.path_of)(section), limit.prefix_cut);
        self.out.push(Packed { range, context, path, tokens: Some(tokens), prefix_cut });
    }
}
