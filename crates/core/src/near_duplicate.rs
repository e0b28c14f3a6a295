// SPDX-License-Identifier: PostgreSQL

//! Texts that say nearly the same in nearly the same words.
//!
//! Owns what "nearly the same" means and how pairs of it are found among many texts without comparing all with all. It does not
//! know what the texts are and keeps none of them, only their signatures of [`HASHES`] numbers.
//!
//! * **Resemblance** of two texts is the Jaccard coefficient of their sets of shingles, [`SHINGLE`] words in a row (Broder, "On the
//!   resemblance and containment of documents", SEQUENCES 1997). Case, punctuation and spacing do not count.
//! * **Signatures** are minima of [`HASHES`] hash functions over the shingles; two are equal at one place with the probability of the
//!   resemblance. Signatures cut into [`BANDS`] bands make two texts a candidate pair when one band is the same: at a resemblance
//!   of 0.8 all but one pair of ten million, at 0.5 seven of eight (Leskovec, Rajaraman and Ullman, "Mining of Massive Datasets", §3.4).
//! * A candidate is only that: [`Shingles::resemblance`] decides, so nothing is called a near-duplicate that is none.

use std::collections::{BTreeMap, BTreeSet, HashSet};

/// Words of a shingle.
pub const SHINGLE: usize = 5;
/// Numbers of a signature.
pub const HASHES: usize = 128;
/// Parts of it that are looked up.
pub const BANDS: usize = 32;
/// Texts that share one band and are still compared pair by pair; more have each their pair with the first only.
const CROWD: usize = 64;

/// Minima of the hash functions; equal texts have equal ones.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signature([u32; HASHES]);

/// The shingles of a text, as hashes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shingles(HashSet<u64>);

/// The finaliser of SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014).
fn mixed(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

impl Shingles {
    /// The shingles of a text. A text of fewer words than one has is one shingle; one without any word has none.
    pub fn of(text: &str) -> Self {
        let hash = |word: &str| {
            let lower = word.chars().flat_map(char::to_lowercase);
            lower.fold(0, |hash, c| mixed(hash ^ u64::from(u32::from(c))))
        };
        let words: Vec<u64> =
            text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).map(hash).collect();
        let of = |window: &[u64]| window.iter().fold(0, |hash, word| mixed(hash ^ word));
        Self(match words.len() {
            0 => HashSet::new(),
            n if n < SHINGLE => HashSet::from([of(&words)]),
            _ => words.windows(SHINGLE).map(of).collect(),
        })
    }

    /// The Jaccard coefficient of both, from 0 to 1. Texts without words resemble nothing.
    pub fn resemblance(&self, other: &Self) -> f64 {
        let common = self.0.intersection(&other.0).count();
        let all = self.0.len() + other.0.len() - common;
        if all == 0 { 0.0 } else { common as f64 / all as f64 }
    }

    /// The signature; none of a text without words.
    pub fn signature(&self) -> Option<Signature> {
        if self.0.is_empty() {
            return None;
        }
        let mut minima = [u32::MAX; HASHES];
        for shingle in &self.0 {
            // Steps of a generator: another function of the same shingle for each place.
            let mut hash = *shingle;
            for minimum in &mut minima {
                hash = hash.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
                *minimum = (*minimum).min((hash >> 32) as u32);
            }
        }
        Some(Signature(minima))
    }
}

/// Pairs of texts that may be near-duplicates, given their ids and signatures; the lower id first, ascending.
///
/// Of a crowd of texts that share a band only pairs with its first are told: a thousand copies of one notice are half a million
/// pairs, and what they are is said by a thousand.
pub fn candidates(signatures: &BTreeMap<i64, Signature>) -> Vec<(i64, i64)> {
    let mut pairs = BTreeSet::new();
    let rows = HASHES / BANDS;
    for band in 0..BANDS {
        let mut alike: BTreeMap<&[u32], Vec<i64>> = BTreeMap::new();
        for (id, signature) in signatures {
            alike.entry(&signature.0[band * rows..(band + 1) * rows]).or_default().push(*id);
        }
        for ids in alike.values().filter(|ids| ids.len() > 1) {
            let firsts = if ids.len() > CROWD { 1 } else { ids.len() };
            for (at, first) in ids.iter().enumerate().take(firsts) {
                pairs.extend(ids[at + 1..].iter().map(|second| (*first, *second)));
            }
        }
    }
    pairs.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_chacha::ChaCha8Rng;
    use rand_chacha::rand_core::{RngCore, SeedableRng};

    fn resemblance(a: &str, b: &str) -> f64 {
        Shingles::of(a).resemblance(&Shingles::of(b))
    }

    fn signature(text: &str) -> Signature {
        Shingles::of(text).signature().expect("words")
    }

    #[test]
    fn resemblance_is_the_share_of_common_shingles() {
        // Shingles of the first: 1-5, 2-6; of the second: 1-5, 2-7. One of three is common.
        assert_eq!(resemblance("one two three four five six", "One, two: three FOUR five seven"), 1.0 / 3.0);
        assert_eq!(resemblance("too short", "Too short!"), 1.0);
        assert_eq!(resemblance("too short", "shorter"), 0.0);
        assert_eq!(resemblance("", "…"), 0.0);
        assert_eq!(Shingles::of(" - ").signature(), None);
        assert_eq!(Shingles::of("ÄRGER im Büro"), Shingles::of("ärger, im büro"));
    }

    /// Texts of 200 words, with so many of them replaced.
    fn texts(seed: u64, replaced: usize) -> (String, String) {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let mut words: Vec<String> = (0..200).map(|_| format!("w{}", random.next_u32() % 5000)).collect();
        let one = words.join(" ");
        // In one place, so that a word costs about one shingle.
        words.iter_mut().skip(20).take(replaced).for_each(|word| *word = format!("x{}", random.next_u32()));
        (one, words.join(" "))
    }

    #[test]
    fn near_duplicates_are_candidates_and_strangers_are_not() {
        let mut signatures = BTreeMap::new();
        for pair in 0..200 {
            let (one, other) = texts(pair, 14);
            let like = resemblance(&one, &other);
            assert!((0.8..0.9).contains(&like), "{like}");
            signatures.insert(2 * pair as i64, signature(&one));
            signatures.insert(2 * pair as i64 + 1, signature(&other));
        }
        let found = candidates(&signatures);
        let wanted: Vec<(i64, i64)> = (0..200).map(|pair| (2 * pair, 2 * pair + 1)).collect();
        assert_eq!(found, wanted);
    }

    /// Over many pairs the share of equal places is the resemblance.
    #[test]
    fn signatures_estimate_resemblance() {
        let mut error = 0.0;
        for seed in 0..60 {
            let (one, other) = texts(seed, 10 + seed as usize);
            let (a, b) = (signature(&one), signature(&other));
            let equal = a.0.iter().zip(&b.0).filter(|(a, b)| a == b).count() as f64 / HASHES as f64;
            error += equal - resemblance(&one, &other);
        }
        assert!((error / 60.0).abs() < 0.02, "{}", error / 60.0);
    }

    #[test]
    fn a_crowd_has_a_pair_for_each_and_not_for_all_with_all() {
        let copy = signature("the same notice stands below every page of this");
        let few: BTreeMap<i64, Signature> = (0..3).map(|id| (id, copy.clone())).collect();
        assert_eq!(candidates(&few), vec![(0, 1), (0, 2), (1, 2)]);
        let many: BTreeMap<i64, Signature> = (0..1000).map(|id| (id, copy.clone())).collect();
        assert_eq!(candidates(&many).len(), 999);
    }
}
