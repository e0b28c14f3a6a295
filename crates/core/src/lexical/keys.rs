// SPDX-License-Identifier: PostgreSQL

//! The keys of a segment's documents, beside their entries.
//!
//! Owns the way from an ordinal to the key by which a hit is known outside, so that a search needs no look at the table of
//! chunks. An entry is new whenever a chunk changes and its key is not, so they drift apart; chunks that were written
//! together drift together. Kept are runs of the same distance.

use super::varint::{self, Reader, corrupt};
use crate::error::Result;

/// The keys of documents by their ordinals, as distances from their entries. Where nothing was added the distance is 0.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Keys {
    /// (first ordinal, key minus entry) of each run.
    runs: Vec<(u32, i64)>,
    len: u32,
}

impl Keys {
    /// Appends the key of the next document, whose entry is `entry`.
    pub fn push(&mut self, entry: i64, key: i64) {
        let distance = key.wrapping_sub(entry);
        if self.runs.last().is_none_or(|(_, last)| *last != distance) {
            self.runs.push((self.len, distance));
        }
        self.len = self.len.saturating_add(1);
    }

    /// The key of the document at `ordinal`, whose entry is `entry`.
    pub fn key(&self, ordinal: u32, entry: i64) -> i64 {
        let run = self.runs.partition_point(|(first, _)| *first <= ordinal).checked_sub(1);
        run.map_or(entry, |run| entry.wrapping_add(self.runs[run].1))
    }

    /// The runs as bytes: their number, then of each its length and the change of distance; nothing when keys are entries.
    pub fn encode(&self) -> Option<Vec<u8>> {
        if self.runs.iter().all(|(_, distance)| *distance == 0) {
            return None;
        }
        let mut out = Vec::new();
        varint::write(&mut out, self.runs.len() as u64);
        let mut last = 0i64;
        for (at, (first, distance)) in self.runs.iter().enumerate() {
            let end = self.runs.get(at + 1).map_or(self.len, |(next, _)| *next);
            varint::write(&mut out, u64::from(end - first));
            let change = distance.wrapping_sub(last);
            varint::write(&mut out, ((change << 1) ^ (change >> 63)) as u64);
            last = *distance;
        }
        Some(out)
    }

    /// Reads what [`Keys::encode`] wrote, for so many documents.
    pub fn decode(bytes: &[u8], documents: u32) -> Result<Self> {
        let mut reader = Reader::new(bytes);
        let count = reader.count(2)?;
        let mut keys = Self { runs: Vec::with_capacity(count), len: 0 };
        let mut last = 0i64;
        for _ in 0..count {
            let (length, change) = (reader.u32()?, reader.u64()?);
            last = last.wrapping_add((change >> 1) as i64 ^ -((change & 1) as i64));
            keys.runs.push((keys.len, last));
            keys.len = keys.len.checked_add(length).ok_or_else(|| corrupt("a segment has too many keys"))?;
        }
        match (reader.remaining(), keys.len == documents) {
            (0, true) => Ok(keys),
            _ => Err(corrupt("a segment has not as many keys as documents")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn keys_come_back(pairs in proptest::collection::vec((any::<i64>(), prop_oneof![-3..3i64, any::<i64>()]), 0..60)) {
            let mut keys = Keys::default();
            pairs.iter().for_each(|(entry, distance)| keys.push(*entry, entry.wrapping_add(*distance)));
            let read = match keys.encode() {
                Some(bytes) => Keys::decode(&bytes, pairs.len() as u32).expect("well formed"),
                None => Keys::default(),
            };
            for (ordinal, (entry, distance)) in (0u32..).zip(&pairs) {
                prop_assert_eq!(read.key(ordinal, *entry), entry.wrapping_add(*distance));
            }
        }

        #[test]
        fn garbage_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..40), documents in 0..9u32) {
            if let Ok(keys) = Keys::decode(&bytes, documents) {
                keys.key(3, i64::MAX);
            }
        }
    }

    #[test]
    fn what_was_written_together_takes_no_room() {
        let mut keys = Keys::default();
        (0..50_000).for_each(|n| keys.push(900_000 + n, 1000 + n));
        assert!(keys.encode().is_some_and(|bytes| bytes.len() < 12));
        let mut own = Keys::default();
        (0..50_000).for_each(|n| own.push(n, n));
        assert_eq!(own.encode(), None);
    }
}
