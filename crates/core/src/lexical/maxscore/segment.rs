// SPDX-License-Identifier: PostgreSQL

//! One segment of a search: windows, bounds and the documents that have a chance.
//!
//! Owns the walk. Every comparison with the threshold is `bound · MARGIN < threshold`, strict, because a document whose
//! score equals the k-th may still win by its id.

use super::{List, MARGIN, Segment, Weights};
use crate::error::{Error, Result};
use crate::lexical::postings::{Cursor, END};
use crate::lexical::topk::{Hit, TopK};
use crate::lexical::varint::corrupt;

/// Windows are not cut shorter than this, or choosing them would cost more than they save.
const MIN_WINDOW: u32 = 1024;
/// Documents whose parts are summed side by side; their parts stay in the processor's cache.
const SLOTS: u32 = 2048;
/// Blocks and pages whose bounds are looked at for one window; beyond, the bound of the list is taken.
const MAX_BOUNDS: usize = 24;

/// One term of the query that the segment has.
struct Term<'a> {
    /// Its place in the query.
    index: usize,
    cursor: Cursor<'a>,
    /// Bounds its part of any score.
    list_bound: f64,
    /// The bound of each page, made when it is first asked for.
    page_bounds: Vec<f64>,
    /// Bounds its part in the window at hand.
    bound: f64,
}

struct Walk<'s, 'a> {
    segment: &'s Segment<'a>,
    weights: &'s Weights,
    top: &'s mut TopK,
    /// In the window at hand: optional terms first, by rising bound.
    terms: Vec<Term<'a>>,
    /// `rest[i]`: the sum of the bounds of the first `i` terms.
    rest: Vec<f64>,
    /// The parts of the document at hand, by place in the query.
    parts: Vec<f64>,
}

pub(super) fn search(
    segment: &Segment<'_>,
    weights: &Weights,
    top: &mut TopK,
    interrupt: &mut dyn FnMut() -> Result<()>,
) -> Result<()> {
    if segment.lists.len() != weights.terms.len() {
        return Err(Error::internal("a segment does not have the terms of the query"));
    }
    let lists = segment.lists.iter().enumerate().filter_map(|(index, list)| list.map(|list| (index, list)));
    let terms: Vec<Term<'_>> = lists.map(|(index, list)| Term::new(index, list, weights)).collect();
    let cost: u64 = terms.iter().map(|t| u64::from(t.cursor.directory().df())).sum();
    let (rest, parts) = (vec![0.0; terms.len() + 1], vec![0.0; weights.terms.len()]);
    let mut walk = Walk { segment, weights, top, terms, rest, parts };
    match segment.allow {
        // Finding a posting takes as long as scoring several.
        Some(allow) if allow.len() as u64 * 8 * walk.terms.len() as u64 <= cost => walk.allowed(interrupt),
        _ => walk.windows(interrupt),
    }
}

impl<'a> Term<'a> {
    fn new(index: usize, list: List<'a>, weights: &Weights) -> Self {
        let list_bound = weights.terms[index] * list.directory.frontier().bound(&weights.saturation);
        let page_bounds = vec![f64::NAN; list.directory.pages().len()];
        Self { index, cursor: Cursor::new(list.directory, list.pages), list_bound, page_bounds, bound: list_bound }
    }

    fn page_bound(&mut self, page: usize, weights: &Weights) -> f64 {
        if self.page_bounds[page].is_nan() {
            let frontier = &self.cursor.directory().pages()[page].frontier;
            self.page_bounds[page] = weights.terms[self.index] * frontier.bound(&weights.saturation);
        }
        self.page_bounds[page]
    }

    /// The bound of the block that the cursor was moved to.
    fn block_bound(&self, weights: &Weights) -> f64 {
        let (heads, _) = self.cursor.heads();
        let bound = heads.first().map(|head| head.frontier.bound(&weights.saturation));
        bound.map_or(self.list_bound, |b| weights.terms[self.index] * b)
    }

    /// A bound of its part of scores from `from` to `to`; asks for no page that is not at hand.
    fn bound_until(&mut self, from: u32, to: u32, weights: &Weights) -> Result<f64> {
        if !self.cursor.heads().0.is_empty() {
            self.cursor.skip(from)?;
        }
        let (heads, mut page) = self.cursor.heads();
        let mut steps = 0;
        let mut bound: f64 = 0.0;
        for head in heads.iter().take(MAX_BOUNDS) {
            bound = bound.max(weights.terms[self.index] * head.frontier.bound(&weights.saturation));
            steps += 1;
            if head.last >= to {
                return Ok(bound);
            }
        }
        page += usize::from(steps > 0 && steps == heads.len());
        let pages = self.cursor.directory().pages();
        while page < pages.len() {
            if steps >= MAX_BOUNDS {
                return Ok(self.list_bound);
            }
            bound = bound.max(self.page_bound(page, weights));
            if pages[page].last >= to {
                break;
            }
            page += 1;
            steps += 1;
        }
        Ok(bound.min(self.list_bound))
    }
}

impl Walk<'_, '_> {
    /// Whether nothing bounded by `bound` can be a hit.
    fn hopeless(&self, bound: f64) -> bool {
        bound * MARGIN < self.top.threshold()
    }

    fn may_hit(&self, ordinal: u32) -> bool {
        self.segment.allow.is_none_or(|a| a.contains(ordinal)) && self.segment.dead.is_none_or(|d| !d.contains(ordinal))
    }

    /// Sorts the terms by their bounds and returns how many are optional.
    fn split(&mut self) -> usize {
        self.terms.sort_by(|a, b| a.bound.total_cmp(&b.bound).then(a.index.cmp(&b.index)));
        let mut optional = 0;
        for at in 0..self.terms.len() {
            self.rest[at + 1] = self.rest[at] + self.terms[at].bound;
            if self.hopeless(self.rest[at + 1]) {
                optional = at + 1;
            }
        }
        optional
    }

    /// Few documents may be hits: each is looked at by itself.
    fn allowed(&mut self, interrupt: &mut dyn FnMut() -> Result<()>) -> Result<()> {
        self.split();
        for (number, ordinal) in self.segment.allow.into_iter().flat_map(|a| a.iter()).enumerate() {
            if number % 256 == 0 {
                interrupt()?;
            }
            if self.may_hit(ordinal) {
                self.parts.fill(0.0);
                self.complete(ordinal, 0.0, self.terms.len())?;
            }
        }
        Ok(())
    }

    fn windows(&mut self, interrupt: &mut dyn FnMut() -> Result<()>) -> Result<()> {
        let mut buffer = Buffer::default();
        let mut from = 0;
        while from != END {
            interrupt()?;
            let Some(to) = self.pages(from) else { return Ok(()) };
            let optional = self.split();
            if optional == self.terms.len() {
                from = to + 1;
                continue;
            }
            let to = self.window(from, optional)?;
            for term in &mut self.terms {
                term.bound = term.bound_until(from, to, self.weights)?;
            }
            let optional = self.split();
            match self.terms.len() - optional {
                0 => {}
                1 => self.scan(from, to, optional)?,
                _ => self.sum(from, to, optional, &mut buffer)?,
            }
            from = to + 1;
        }
        Ok(())
    }

    /// Moves all cursors to the pages that may hold `from`, drops lists that have ended, and bounds each term up to where
    /// the first of these pages ends; that ordinal, or `None` when all lists have ended.
    fn pages(&mut self, from: u32) -> Option<u32> {
        let mut to = None;
        let weights = self.weights;
        self.terms.retain_mut(|term| {
            let Some(page) = term.cursor.skip_pages(from) else { return false };
            term.bound = term.page_bound(page, weights);
            let last = term.cursor.directory().pages()[page].last;
            to = Some(to.map_or(last, |t: u32| t.min(last)));
            true
        });
        to
    }

    /// Where the window from `from` ends: with the first block of an essential term that ends, but not too early.
    fn window(&mut self, from: u32, optional: usize) -> Result<u32> {
        let mut to = END - 1;
        for term in &mut self.terms[optional..] {
            if term.cursor.skip(from)? {
                to = to.min(term.cursor.heads().0.first().map_or(END - 1, |h| h.last));
            }
        }
        Ok(to.max(from.saturating_add(MIN_WINDOW - 1)).min(END - 1))
    }

    /// A window with one essential term: its postings, one after the other.
    fn scan(&mut self, from: u32, to: u32, optional: usize) -> Result<()> {
        let mut next = from;
        loop {
            let term = &mut self.terms[optional];
            if term.cursor.seek(next)? > to {
                return Ok(());
            }
            let index = term.index;
            let Some((block, start)) = term.cursor.block() else { return Ok(()) };
            let block = std::rc::Rc::clone(block);
            let (ordinals, tfs, lengths) = (block.ordinals(), block.tfs(), block.lengths());
            for at in start..ordinals.len() {
                if ordinals[at] > to {
                    return Ok(());
                }
                let part = self.weights.part(index, tfs[at], lengths[at]);
                if !self.hopeless(part + self.rest[optional]) && self.may_hit(ordinals[at]) {
                    self.parts.fill(0.0);
                    self.parts[index] = part;
                    self.complete(ordinals[at], part, optional)?;
                }
            }
            let Some(last) = ordinals.last().filter(|last| **last < to) else { return Ok(()) };
            next = last + 1;
        }
    }

    /// A window with several essential terms: their parts are laid side by side, then each document is looked at.
    fn sum(&mut self, from: u32, to: u32, optional: usize, buffer: &mut Buffer) -> Result<()> {
        let essential = self.terms.len() - optional;
        buffer.parts.resize(essential * SLOTS as usize, 0.0);
        let mut base = from;
        loop {
            let mut first = END;
            for term in &mut self.terms[optional..] {
                first = first.min(term.cursor.seek(base)?);
            }
            if first > to {
                return Ok(());
            }
            base = first;
            let end = to.min(base.saturating_add(SLOTS - 1));
            for (row, term) in self.terms[optional..].iter_mut().enumerate() {
                buffer.add(term, self.weights, (base, end), (row, essential))?;
            }
            for word in 0..buffer.used.len() {
                let mut bits = std::mem::take(&mut buffer.used[word]);
                while bits != 0 {
                    let slot = word * 64 + bits.trailing_zeros() as usize;
                    bits &= bits - 1;
                    self.look(base + slot as u32, slot * essential, optional, buffer)?;
                }
            }
            if end == to {
                return Ok(());
            }
            base = end + 1;
        }
    }

    /// A document whose essential parts begin at `start` in the buffer, which is left clean.
    fn look(&mut self, ordinal: u32, start: usize, optional: usize, buffer: &mut Buffer) -> Result<()> {
        let found = &mut buffer.parts[start..start + self.terms.len() - optional];
        let sum: f64 = found.iter().sum();
        if !self.hopeless(sum + self.rest[optional]) && self.may_hit(ordinal) {
            self.parts.fill(0.0);
            for (part, term) in found.iter().zip(&self.terms[optional..]) {
                self.parts[term.index] = *part;
            }
            found.fill(0.0);
            return self.complete(ordinal, sum, optional);
        }
        found.fill(0.0);
        Ok(())
    }

    /// Asks the optional lists about a document, best bound first, for as long as it has a chance; takes it as a hit.
    fn complete(&mut self, ordinal: u32, mut sum: f64, optional: usize) -> Result<()> {
        for at in (0..optional).rev() {
            if self.hopeless(sum + self.rest[at + 1]) {
                return Ok(());
            }
            let term = &mut self.terms[at];
            if !term.cursor.skip(ordinal)? {
                continue;
            }
            let bound = term.block_bound(self.weights);
            if self.hopeless(sum + self.rest[at] + bound) {
                return Ok(());
            }
            let term = &mut self.terms[at];
            if term.cursor.seek(ordinal)? == ordinal
                && let Some(posting) = term.cursor.posting()
            {
                let part = self.weights.part(term.index, posting.tf, posting.dl);
                self.parts[term.index] = part;
                sum += part;
            }
        }
        // Every part is above zero, so a document without any has no term.
        let score = self.parts.iter().fold(0.0, |sum, part| sum + part);
        if score > 0.0 && score >= self.top.threshold() {
            let entry = self.segment.ids.id(ordinal).ok_or_else(|| corrupt("a posting has no document"))?;
            let id = self.segment.keys.map_or(entry, |keys| keys.key(ordinal, entry));
            self.top.push(Hit { id, score });
        }
        Ok(())
    }
}

/// Parts of the documents of [`SLOTS`] ordinals.
#[derive(Default)]
struct Buffer {
    /// One row of essential terms for each document.
    parts: Vec<f64>,
    /// One bit for each document that has a part.
    used: [u64; SLOTS as usize / 64],
}

impl Buffer {
    /// Adds a term's postings from `base` to `end`, into column `row` of `rows`.
    fn add(&mut self, term: &mut Term<'_>, weights: &Weights, range: (u32, u32), place: (usize, usize)) -> Result<()> {
        let ((base, end), (row, rows)) = (range, place);
        let mut next = base;
        while term.cursor.seek(next)? <= end {
            let Some((block, start)) = term.cursor.block() else { return Ok(()) };
            let ordinals = block.ordinals();
            let postings = ordinals.iter().zip(block.tfs()).zip(block.lengths()).skip(start);
            for ((ordinal, tf), dl) in postings.take_while(|((ordinal, _), _)| **ordinal <= end) {
                let slot = (ordinal - base) as usize;
                self.used[slot / 64] |= 1 << (slot % 64);
                self.parts[slot * rows + row] = weights.part(term.index, *tf, *dl);
            }
            let Some(last) = ordinals.last().filter(|last| **last < end) else { return Ok(()) };
            next = last + 1;
        }
        Ok(())
    }
}
