// SPDX-License-Identifier: PostgreSQL

//! Sets of documents of one segment, and their ids.
//!
//! Owns [`OrdinalSet`], one bit for each document, used for the dead and for a filter alike, and [`Ids`], the way from
//! ordinals to chunk ids and back. It must not know why a document is in a set. A bitmap rather than a compressed set: a
//! segment has about a million documents at most, which is 125 kB, and the test stands in the innermost loop. Ids are runs,
//! because a sync writes the chunks of a collection one behind the other.

use crate::error::{Error, Result};
use crate::lexical::varint::{self, Reader, corrupt};

/// A set of ordinals.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OrdinalSet {
    words: Vec<u64>,
    len: usize,
}

impl OrdinalSet {
    /// Adds an ordinal; false when it was there.
    pub fn insert(&mut self, ordinal: u32) -> bool {
        let (word, bit) = (ordinal as usize / 64, 1u64 << (ordinal % 64));
        if word >= self.words.len() {
            self.words.resize(word + 1, 0);
        }
        let new = self.words[word] & bit == 0;
        self.words[word] |= bit;
        self.len += usize::from(new);
        new
    }

    /// Whether it has the ordinal.
    pub fn contains(&self, ordinal: u32) -> bool {
        self.words.get(ordinal as usize / 64).is_some_and(|w| w >> (ordinal % 64) & 1 == 1)
    }

    /// Number of ordinals.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The ordinals, ascending.
    pub fn iter(&self) -> impl Iterator<Item = u32> {
        self.words.iter().enumerate().flat_map(|(at, word)| {
            let mut rest = *word;
            std::iter::from_fn(move || {
                let bit = (rest != 0).then(|| rest.trailing_zeros())?;
                rest &= rest - 1;
                Some(at as u32 * 64 + bit)
            })
        })
    }
}

impl FromIterator<u32> for OrdinalSet {
    fn from_iter<I: IntoIterator<Item = u32>>(ordinals: I) -> Self {
        let mut set = Self::default();
        ordinals.into_iter().for_each(|o| {
            set.insert(o);
        });
        set
    }
}

/// The chunk ids of a segment; ordinals are their places in ascending order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ids {
    /// (first id, first ordinal) of each run of consecutive ids.
    runs: Vec<(i64, u32)>,
    len: u32,
}

impl Ids {
    /// Appends an id and returns its ordinal. An id that is not above the one before is an internal error.
    pub fn push(&mut self, id: i64) -> Result<u32> {
        let ordinal = self.len;
        let previous = ordinal.checked_sub(1).and_then(|last| self.id(last));
        if previous.is_some_and(|p| p >= id) || ordinal == super::postings::END {
            return Err(Error::internal(format!("chunk {id} cannot follow chunk {previous:?} in a segment")));
        }
        if previous.is_none_or(|p| p + 1 != id) {
            self.runs.push((id, ordinal));
        }
        self.len += 1;
        Ok(ordinal)
    }

    /// Number of ids.
    pub fn len(&self) -> u32 {
        self.len
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The id of an ordinal.
    pub fn id(&self, ordinal: u32) -> Option<i64> {
        let run = self.runs.partition_point(|(_, first)| *first <= ordinal).checked_sub(1)?;
        let (id, first) = self.runs[run];
        (ordinal < self.len).then(|| id.wrapping_add(i64::from(ordinal - first)))
    }

    /// The ordinal of an id.
    pub fn ordinal(&self, id: i64) -> Option<u32> {
        let run = self.runs.partition_point(|(first, _)| *first <= id).checked_sub(1)?;
        let end = self.runs.get(run + 1).map_or(self.len, |(_, first)| *first);
        let (first_id, first) = self.runs[run];
        let ordinal = u32::try_from(id.wrapping_sub(first_id)).ok()?.checked_add(first)?;
        (ordinal < end).then_some(ordinal)
    }

    /// All ids, ascending.
    pub fn iter(&self) -> impl Iterator<Item = i64> {
        self.runs.iter().enumerate().flat_map(|(at, (id, first))| {
            let end = self.runs.get(at + 1).map_or(self.len, |(_, next)| *next);
            (0..i64::from(end - first)).map(move |step| id.wrapping_add(step))
        })
    }

    /// The runs as bytes: their number, then for each the gap to the run before and its length.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        varint::write(&mut out, self.runs.len() as u64);
        let mut next = i64::MIN;
        for (at, (id, first)) in self.runs.iter().enumerate() {
            let end = self.runs.get(at + 1).map_or(self.len, |(_, next)| *next);
            varint::write(&mut out, id.wrapping_sub(next) as u64);
            varint::write(&mut out, u64::from(end - first));
            next = id.wrapping_add(i64::from(end - first));
        }
        out
    }

    /// Reads what [`Ids::encode`] wrote.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        let mut reader = Reader::new(bytes);
        let count = reader.count(2)?;
        let mut ids = Self { runs: Vec::with_capacity(count), len: 0 };
        let mut next = Some(i64::MIN);
        for _ in 0..count {
            let (gap, length) = (reader.u64()?, reader.u32()?);
            let id = next.and_then(|n| n.checked_add_unsigned(gap));
            let len = ids.len.checked_add(length).filter(|_| length > 0);
            let (Some(id), Some(len)) = (id, len) else { return Err(corrupt("the ids of a segment do not ascend")) };
            if id.checked_add(i64::from(length) - 1).is_none() {
                return Err(corrupt("an id is too large"));
            }
            ids.runs.push((id, ids.len));
            ids.len = len;
            next = id.checked_add(i64::from(length));
        }
        if reader.remaining() > 0 { Err(corrupt("the ids of a segment have bytes too many")) } else { Ok(ids) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn a_set_is_a_set(ordinals in proptest::collection::vec(0..500u32, 0..80)) {
            let right: BTreeSet<u32> = ordinals.iter().copied().collect();
            let set: OrdinalSet = ordinals.into_iter().collect();
            prop_assert_eq!(set.iter().collect::<Vec<_>>(), right.iter().copied().collect::<Vec<_>>());
            prop_assert_eq!(set.len(), right.len());
            (0..600).for_each(|o| assert_eq!(set.contains(o), right.contains(&o)));
        }

        #[test]
        fn ids_are_found_both_ways(
            ids in proptest::collection::btree_set(prop_oneof![-9..60i64, any::<i64>()], 0..80),
        ) {
            let mut map = Ids::default();
            for id in &ids {
                map.push(*id).expect("ascending");
            }
            let map = Ids::decode(&map.encode()).expect("well formed");
            for (ordinal, id) in ids.iter().enumerate() {
                prop_assert_eq!(map.id(ordinal as u32), Some(*id));
                prop_assert_eq!(map.ordinal(*id), Some(ordinal as u32));
            }
            prop_assert_eq!(map.id(ids.len() as u32), None);
            prop_assert!((-10..61).all(|id| map.ordinal(id).is_some() == ids.contains(&id)));
            prop_assert_eq!(map.iter().collect::<Vec<_>>(), ids.into_iter().collect::<Vec<_>>());
        }

        #[test]
        fn garbage_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
            if let Ok(ids) = Ids::decode(&bytes) {
                (0..ids.len().min(50)).for_each(|o| assert!(ids.id(o).is_some()));
            }
        }
    }

    #[test]
    fn consecutive_ids_take_no_room() {
        let mut ids = Ids::default();
        (1000..51_000).for_each(|id| assert!(ids.push(id).is_ok()));
        assert!(ids.encode().len() < 20);
        assert!(ids.push(50_999).is_err());
    }
}
