// SPDX-License-Identifier: PostgreSQL

//! Chunking without headings: by paragraphs, sentences and words, with an overlap; or not at all.

use super::budget::{Room, Sizer};
use super::cut::{Cutter, sentences};
use super::pack::{Packed, Packer};
use super::trim;
use std::ops::Range;
use std::sync::Arc;
use unicode_segmentation::UnicodeSegmentation;

/// Chunks of at most the budget; each after the first begins with about `overlap` tokens of the one before.
pub fn chunk(text: &str, body: Range<usize>, sizer: &Sizer<'_>, overlap: usize) -> Vec<Packed> {
    let room = sizer.room(&[]);
    // The options keep the overlap below half of the wish; the window may be smaller than the wish.
    let overlap = overlap.min(room.tokens.saturating_sub(1) / 2);
    let tight = Room { tokens: room.tokens - overlap, ..room };
    let mut packed = pack(text, body, sizer, tight);
    repeat(text, &mut packed, sizer, room, overlap);
    packed
}

/// Makes each chunk after the first begin with about `overlap` tokens of the one before, where `room` allows it.
pub fn repeat(text: &str, packed: &mut [Packed], sizer: &Sizer<'_>, room: Room, overlap: usize) {
    if overlap == 0 {
        return;
    }
    for index in (1..packed.len()).rev() {
        let before = packed[index - 1].range.clone();
        let chunk = &mut packed[index];
        let Some(start) = overlap_start(text, before, sizer, overlap) else {
            continue;
        };
        let count = sizer.count(&text[start..chunk.range.end]);
        if count <= room.tokens {
            chunk.range.start = start;
            chunk.tokens = Some(count);
        }
    }
}

/// One chunk of everything; what is larger than the window is cut unless `truncate` says that embedding may do that.
pub fn whole(text: &str, body: Range<usize>, sizer: &Sizer<'_>, truncate: bool) -> Vec<Packed> {
    let slice = &text[body.clone()];
    let start = body.start + (slice.len() - slice.trim_start().len());
    let range = start..(body.start + slice.trim_end().len()).max(start);
    if range.is_empty() {
        return Vec::new();
    }
    let room = sizer.room_of_whole();
    if truncate {
        let (path, prefix_cut) = (Arc::from([]), room.prefix_cut);
        return vec![Packed { range, context: None, path, tokens: None, prefix_cut }];
    }
    pack(text, range, sizer, room)
}

fn pack(text: &str, body: Range<usize>, sizer: &Sizer<'_>, room: Room) -> Vec<Packed> {
    let mut cutter = Cutter::new(text, sizer, &[], room, 0);
    cutter.prose(body);
    let path_of = |_: usize| Arc::from([]);
    let mut packer = Packer::new(text, sizer, &path_of);
    packer.run(cutter.finish(), room);
    packer.finish()
}

/// Where in the chunk `before` the overlap of the next one begins: at a sentence, else at a word, at most `overlap`
/// tokens before its end.
fn overlap_start(text: &str, before: Range<usize>, sizer: &Sizer<'_>, overlap: usize) -> Option<usize> {
    let content = &text[before.clone()];
    let offsets = sizer.offsets(content);
    let first = offsets.len().saturating_sub(overlap);
    let earliest = offsets.get(first).map_or(content.len(), |(start, _)| content.ceil_char_boundary(*start));
    // Never the whole of it: the chunk before would say nothing of its own.
    let earliest = before.start + earliest.max(1);
    if let Some(sentence) = sentences(text, before.clone()).into_iter().find(|s| s.start >= earliest) {
        return Some(trim(text, sentence).start);
    }
    let mut words = content.split_word_bound_indices().filter(|(at, word)| {
        before.start + at >= earliest && word.chars().any(|c| !c.is_whitespace() && !c.is_ascii_punctuation())
    });
    let word = words.next();
    word.map(|(at, _)| before.start + at)
}
