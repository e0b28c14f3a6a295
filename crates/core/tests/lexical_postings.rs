// SPDX-License-Identifier: PostgreSQL

//! Posting lists come back as they were written, merge as sets do, and damaged bytes are never more than an error.
#![allow(clippy::expect_used, reason = "a test may end anywhere")]

mod support;

use proptest::prelude::*;
use rag_core::lexical::postings::{BLOCK, Directory, END, EncodedList, ListBuilder, MemoryList, PAGE_BYTES, Posting};
use rag_core::lexical::segment::{self, Builder, OldList, Renumbering};
use std::collections::BTreeMap;
use support::{Random, Shape, population};

fn encode(postings: &[Posting]) -> Option<EncodedList> {
    let mut builder = ListBuilder::default();
    postings.iter().for_each(|p| builder.push(*p).expect("ascending"));
    builder.finish()
}

/// Postings with the gaps, frequencies and lengths of a common, a usual or a rare term, or with huge ones.
fn postings(seed: u64, count: usize) -> Vec<Posting> {
    let mut random = Random(seed);
    let gap = [1, 3, 70, 900_000][random.below(4) as usize];
    let huge = random.chance(0.1);
    let mut ordinal = 0u64;
    let mut out = Vec::new();
    for _ in 0..count {
        ordinal += 1 + random.below(gap);
        if ordinal >= u64::from(END) {
            break;
        }
        let large = |random: &mut Random| if huge { random.next() as u32 } else { random.below(4) as u32 };
        let (tf, dl) = (large(&mut random).max(1), large(&mut random).saturating_add(random.below(300) as u32));
        out.push(Posting { ordinal: ordinal as u32 - 1, tf, dl });
    }
    out
}

proptest! {
    #[test]
    fn lists_come_back(seed: u64, count in prop_oneof![1..300usize, 900..4000usize]) {
        let right = postings(seed, count);
        let encoded = encode(&right).expect("not empty");
        prop_assert_eq!(encoded.df as usize, right.len());
        prop_assert!(encoded.pages.iter().all(|p| p.len() <= PAGE_BYTES));
        let list = MemoryList::new(encoded).expect("well formed");
        prop_assert_eq!(list.postings().expect("well formed"), right.clone());
        // Jumps of all sizes find the same as a search in the right list.
        let mut random = Random(seed);
        let (mut cursor, mut to) = (list.cursor(), 0u32);
        while to != END {
            let expected = right.get(right.partition_point(|p| p.ordinal < to)).copied();
            prop_assert_eq!(cursor.seek(to).expect("well formed"), expected.map_or(END, |p| p.ordinal));
            prop_assert!(expected.is_none() || cursor.posting() == expected);
            let reach = u64::from(right[right.len() - 1].ordinal) / 20 + 2;
            let step = if random.chance(0.5) { 1 } else { random.below(reach) as u32 };
            to = if expected.is_none() { END } else { to.saturating_add(step) };
        }
    }

    #[test]
    fn damaged_bytes_are_an_error_or_a_list_that_keeps_the_rules(seed: u64, count in 1..1200usize) {
        let mut encoded = encode(&postings(seed, count)).expect("not empty");
        let mut random = Random(seed);
        for _ in 0..1 + random.below(3) {
            let parts = encoded.pages.len() as u64 + 1;
            let part = random.below(parts) as usize;
            let bytes = if part == 0 { &mut encoded.directory } else { &mut encoded.pages[part - 1] };
            if bytes.is_empty() {
                continue;
            }
            let at = random.below(bytes.len() as u64) as usize;
            match random.below(4) {
                0 => bytes.truncate(at),
                1 => bytes.push(random.next() as u8),
                _ => bytes[at] ^= 1 << random.below(8),
            }
        }
        if let Ok(postings) = MemoryList::new(encoded).and_then(|list| list.postings()) {
            prop_assert!(postings.windows(2).all(|p| p[0].ordinal < p[1].ordinal));
            prop_assert!(postings.iter().all(|p| p.tf > 0 && p.ordinal < END));
        }
    }

    #[test]
    fn garbage_is_no_directory(bytes in proptest::collection::vec(any::<u8>(), 0..60)) {
        let mut stated = vec![rag_core::lexical::postings::FORMAT];
        stated.extend(&bytes);
        for bytes in [&bytes, &stated] {
            if let Ok(directory) = Directory::parse(bytes) {
                let _ = directory.page(0, bytes.clone()).and_then(|page| page.decode(0));
            }
        }
    }

    #[test]
    fn merging_is_building_from_what_lives(
        seed: u64,
        documents in 1..900usize,
        contiguous: bool,
        dead in prop_oneof![Just(0.0), Just(0.3), Just(1.0)],
    ) {
        let shape = Shape { seed, documents, vocabulary: 30, segments: 3, contiguous, dead, ties: false };
        let population = population(shape);
        let old: Vec<_> = population.parts.iter().map(|p| (&p.ids, Some(&p.dead))).collect();
        let renumbering = Renumbering::new(&old).expect("distinct ids");
        let mut alive = population.alive();
        alive.sort_by_key(|d| d.id);
        prop_assert_eq!(renumbering.ids.iter().collect::<Vec<_>>(), alive.iter().map(|d| d.id).collect::<Vec<_>>());
        let mut builder = Builder::default();
        for (ordinal, document) in alive.iter().enumerate() {
            let terms = document.terms.iter().map(|(t, tf)| (*t, *tf));
            builder.add(ordinal as u32, document.dl, terms).expect("valid");
        }
        let built = builder.finish();
        prop_assert_eq!(built.documents, alive.len() as u64);
        prop_assert_eq!(built.total_dl, alive.iter().map(|d| u64::from(d.dl)).sum::<u64>());
        let right: BTreeMap<u32, EncodedList> = built.lists.into_iter().collect();
        for term in 0..shape.vocabulary {
            let lists: Vec<OldList<'_>> = (population.parts.iter().enumerate())
                .filter_map(|(segment, part)| {
                    let list = part.lists.get(&term)?;
                    Some(OldList { segment, directory: &list.directory, pages: list })
                })
                .collect();
            let merged = segment::merge(&lists, &renumbering, None, &mut |_| {}).expect("well formed");
            prop_assert_eq!(merged.as_ref(), right.get(&term), "term {}", term);
        }
    }
}

#[test]
fn the_form_of_the_bytes_does_not_change_unnoticed() {
    // Worked out by hand from the module page: format 1, df 2, 1 page of 1 block, last ordinal 5, and a frontier with
    // the points (1, 9) and (3, 40). Two bits for gaps (2 and 2) and tf − 1 (0 and 2), five for dl above 9 (0 and 31).
    let two = [Posting { ordinal: 2, tf: 1, dl: 9 }, Posting { ordinal: 5, tf: 3, dl: 40 }];
    let list = encode(&two).expect("not empty");
    assert_eq!(list.directory, [1, 2, 1, 1, 5, 2, 0, 9, 1, 30]);
    assert_eq!(list.pages, [[2, 2, 5, 9, 0b1000_1010, 0b1110_0000, 0b11]]);
    // A full block: ordinals 0 to 127 need no bits, tf 1 or 2 needs one, lengths of 100 to 103 need two. Values are
    // packed in four lanes: bit 0 of word 0 is the first value, bit 0 of word 1 the second.
    let block: Vec<Posting> =
        (0..BLOCK as u32).map(|o| Posting { ordinal: o, tf: 1 + u32::from(o % 4 == 1), dl: 100 + o % 4 }).collect();
    let list = encode(&block).expect("not empty");
    let mut page = vec![0, 1, 2, 100];
    [0, u32::MAX, 0, 0].iter().for_each(|word: &u32| page.extend(word.to_ne_bytes()));
    for _ in 0..2 {
        [0, 0x5555_5555, 0xaaaa_aaaa, u32::MAX].iter().for_each(|word: &u32| page.extend(word.to_ne_bytes()));
    }
    assert_eq!(list.pages, [page]);
}

#[test]
fn what_does_not_ascend_is_refused() {
    let mut builder = ListBuilder::default();
    builder.push(Posting { ordinal: 4, tf: 1, dl: 1 }).expect("the first");
    for posting in [(4, 1), (3, 1), (5, 0), (END, 1)] {
        assert!(builder.push(Posting { ordinal: posting.0, tf: posting.1, dl: 1 }).is_err(), "{posting:?}");
    }
    let mut builder = Builder::default();
    assert!(builder.add(0, 2, [("a", 1), ("a", 1)]).is_err(), "a term that comes twice");
}

/// Bytes grow with the postings and with nothing else.
#[test]
fn a_list_of_all_documents_takes_less_than_a_byte_and_a_half_a_posting() {
    let size = |count: u32| {
        let mut random = Random(5);
        let postings = (0..count).map(|ordinal| Posting { ordinal, tf: 1, dl: 100 + random.below(200) as u32 });
        encode(&postings.collect::<Vec<_>>()).expect("not empty").bytes()
    };
    let (small, large) = (size(20_000), size(80_000));
    assert!(small < 30_000, "{small}");
    assert!((3 * small..5 * small).contains(&large), "{small}, {large}");
}

/// A directory that states more than there is must not take memory for it.
#[test]
fn counts_are_not_believed() {
    let list = encode(&postings(1, 3000)).expect("not empty");
    let mut directory = list.directory.clone();
    let mut count = Vec::new();
    rag_core::lexical::varint::write(&mut count, u64::MAX >> 1);
    directory.splice(3..4, count);
    assert!(Directory::parse(&directory).is_err());
}
