// SPDX-License-Identifier: PostgreSQL

//! Whatever was inserted, changed, deleted and compacted: a search finds what scoring the living finds.

#![allow(clippy::expect_used, reason = "a test may end anywhere")]

mod support;

use proptest::prelude::*;
use rag_core::lexical::bm25::Statistics;
use rag_core::lexical::cache::Cache;
use rag_core::lexical::compaction::{self, FAN, Merged, Plan};
use rag_core::lexical::expand::{self, Limits};
use rag_core::lexical::index::{Index, Part};
use rag_core::lexical::keys::Keys;
use rag_core::lexical::maxscore::{Query, QueryTerm};
use rag_core::lexical::ordinals::Ids;
use rag_core::lexical::segment::Builder;
use rag_core::lexical::shelf::{MemoryRows, Rows, Shelf, Writer};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::time::Duration;
use support::Random;

type Document = BTreeMap<String, u32>;

/// What a database would hold.
struct Store {
    parts: Vec<Part>,
    next_segment: i64,
    next_entry: i64,
    /// The living, by entry: the truth.
    living: BTreeMap<i64, Document>,
    cache: Cache,
}

impl Store {
    fn new(cache: usize) -> Self {
        Self { parts: vec![], next_segment: 1, next_entry: 1, living: BTreeMap::new(), cache: Cache::new(cache) }
    }

    fn put(&mut self, dead: bool, merged: Merged, rows: MemoryRows) {
        let (ids, rows) = (Rc::new(merged.ids), Rc::new(rows) as Rc<dyn Rows>);
        let id = self.next_segment;
        self.next_segment += 1;
        let keys = Rc::new(merged.keys);
        self.parts.push(Part { id, dead, documents: merged.documents, total_dl: merged.total_dl, ids, keys, rows });
    }

    /// One segment of these documents.
    fn write(&mut self, dead: bool, documents: &BTreeMap<i64, Document>) {
        let (mut ids, mut builder, mut rows, mut writer) =
            (Ids::default(), Builder::default(), MemoryRows::default(), Writer::default());
        let mut keys = Keys::default();
        for (entry, document) in documents {
            keys.push(*entry, key(*entry));
            let ordinal = ids.push(*entry).expect("ascending");
            builder.add(ordinal, document.values().sum(), document.clone()).expect("valid");
        }
        let built = builder.finish();
        let postings = built.lists.iter().map(|(_, l)| u64::from(l.df)).sum();
        for (term, list) in built.lists {
            writer.add(&term, list, &mut rows).expect("in order");
        }
        let terms = writer.finish(&mut rows).expect("in memory");
        let (documents, total_dl) = (built.documents, built.total_dl);
        self.put(dead, Merged { documents, total_dl, ids, keys, postings, terms }, rows);
    }

    fn insert(&mut self, documents: Vec<Document>) {
        let new: BTreeMap<i64, Document> = (self.next_entry..).zip(documents).collect();
        self.next_entry += new.len() as i64;
        self.write(false, &new);
        self.living.extend(new);
    }

    fn delete(&mut self, entries: &BTreeSet<i64>) -> Vec<Document> {
        let gone: BTreeMap<i64, Document> = self.living.extract_if(.., |e, _| entries.contains(e)).collect();
        self.write(true, &gone);
        gone.into_values().collect()
    }

    fn compact(&mut self, plan: fn(&Index) -> Plan) -> bool {
        let index = Index::new(self.parts.clone());
        let plan = plan(&index);
        let (mut live, mut dead) = (MemoryRows::default(), MemoryRows::default());
        let merged = compaction::merge_live(&index, &plan, &mut live, &mut || Ok(())).expect("well formed");
        let rest = compaction::merge_dead(&index, &plan, &mut dead, &mut || Ok(())).expect("well formed");
        let used = |parts: &[Part], at: &[usize]| at.iter().map(|at| parts[*at].id).collect::<Vec<_>>();
        let used = [used(index.live(), &plan.live), used(index.dead(), &plan.dead)].concat();
        self.parts.retain(|p| !used.contains(&p.id));
        merged.into_iter().for_each(|merged| self.put(false, merged, live.clone()));
        rest.into_iter().for_each(|merged| self.put(true, merged, dead.clone()));
        !plan.is_empty()
    }

    fn search(&self, terms: &[String], k: usize, allow: Option<&[i64]>) -> Vec<(i64, u64)> {
        let index = Index::new(self.parts.clone());
        assert_eq!(index.strays(), 0);
        let opened = index.open(terms, &self.cache).expect("well formed");
        let terms = opened.dfs().iter().map(|df| QueryTerm { df: *df, weight: 1.0 }).collect();
        let query = Query { terms, population: index.population(), k, after: None };
        let hits = opened.search(&query, allow, &mut || Ok(())).expect("well formed");
        hits.into_iter().map(|h| (h.id, h.score.to_bits())).collect()
    }

    /// BM25 as the textbook has it, over the living.
    fn oracle(&self, terms: &[String], k: usize, allow: Option<&[i64]>) -> Vec<(i64, u64)> {
        let n = self.living.len() as f64;
        let length = |d: &Document| d.values().sum::<u32>();
        let average = self.living.values().map(|d| f64::from(length(d))).sum::<f64>() / n;
        let df = |term: &String| self.living.values().filter(|d| d.contains_key(term)).count() as f64;
        let dfs: Vec<f64> = terms.iter().map(df).collect();
        let mut scored = Vec::new();
        for (entry, document) in &self.living {
            let (mut score, mut matches) = (0.0, false);
            for (term, df) in terms.iter().zip(&dfs) {
                let Some(tf) = document.get(term).map(|tf| f64::from(*tf)) else { continue };
                let idf = (1.0 + (n - df + 0.5) / (df + 0.5)).ln();
                let length = f64::from(length(document)) / average;
                score += idf * (tf * (1.2 + 1.0) / (tf + 1.2 * (1.0 - 0.75 + 0.75 * length)));
                matches = true;
            }
            if matches && allow.is_none_or(|a| a.binary_search(entry).is_ok()) {
                scored.push((key(*entry), score));
            }
        }
        scored.sort_by(|a: &(i64, f64), b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        scored.into_iter().take(k).map(|(e, s)| (e, s.to_bits())).collect()
    }
}

/// The key of an entry: sometimes it is near, sometimes far, and its order is another.
fn key(entry: i64) -> i64 {
    if entry % 7 < 5 { entry + 1_000_000 } else { 500_000 - entry }
}

fn document(random: &mut Random, vocabulary: u32) -> Document {
    let mut terms = Document::new();
    for _ in 0..random.below(12) {
        // Terms share long beginnings, as paths do.
        let rank = random.zipf(vocabulary);
        *terms.entry(format!("a/{}/{rank}", "x".repeat(rank as usize % 30))).or_insert(0) += 1;
    }
    terms
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_history_is_searched_as_its_end(seed: u64, large: bool, cache in prop_oneof![Just(0usize), Just(1 << 20)]) {
        let mut random = Random(seed);
        let vocabulary = if large { 2000 } else { 40 };
        let mut store = Store::new(cache);
        for _ in 0..if large { 12 } else { 40 } {
            match random.below(10) {
                0..=4 => {
                    let count = if large { 1 + random.below(400) } else { random.below(6) };
                    let documents = (0..count).map(|_| document(&mut random, vocabulary)).collect();
                    store.insert(documents);
                }
                5..=7 => {
                    let share = random.unit() * 0.4;
                    let entries = store.living.keys().copied().filter(|_| random.chance(share)).collect();
                    let deleted = store.delete(&entries);
                    if random.chance(0.5) {
                        let changed = deleted.into_iter().map(|mut d| { d.insert("changed".to_owned(), 2); d });
                        store.insert(changed.collect());
                    }
                }
                8 => { store.compact(compaction::plan); }
                _ => { store.compact(compaction::full); }
            }
            let mut terms: Vec<String> = document(&mut random, vocabulary).into_keys().collect();
            terms.extend(["changed".to_owned(), "nobody has it".to_owned()]);
            let allow: Vec<i64> = store.living.keys().copied().filter(|_| random.chance(0.2)).collect();
            for (k, allow) in [(1, None), (10, None), (5000, None), (10, Some(&allow[..]))] {
                prop_assert_eq!(store.search(&terms, k, allow), store.oracle(&terms, k, allow));
            }
            let living = Statistics {
                documents: store.living.len() as u64,
                total_dl: store.living.values().flat_map(|d| d.values()).map(|tf| u64::from(*tf)).sum(),
            };
            prop_assert_eq!(Index::new(store.parts.clone()).population(), living);
        }
        store.compact(compaction::full);
        prop_assert!(store.parts.len() <= 1);
    }

    #[test]
    fn the_vocabulary_is_that_of_the_living(seed: u64) {
        let mut random = Random(seed);
        let mut store = Store::new(0);
        for _ in 0..4 {
            let documents = (0..50).map(|_| document(&mut random, 300)).collect();
            store.insert(documents);
            let entries = store.living.keys().copied().filter(|_| random.chance(0.3)).collect();
            store.delete(&entries);
        }
        let mut dfs: BTreeMap<&str, u64> = BTreeMap::new();
        store.living.values().flat_map(Document::keys).for_each(|t| *dfs.entry(t).or_default() += 1);
        let limits = Limits { terms: 10_000, visits: 10_000 };
        let index = Index::new(store.parts.clone());
        let mut vocabulary = index.vocabulary();
        for prefix in ["", "a/", "a/xxxx", "a/xx/", "b", "a/x"] {
            let found = expand::prefix(&mut vocabulary, prefix, limits).expect("well formed");
            let found: BTreeMap<&str, u64> = found.terms.iter().map(|e| (e.term.as_str(), e.df)).collect();
            let right = dfs.iter().filter(|(t, _)| t.starts_with(prefix)).map(|(t, df)| (*t, *df)).collect();
            prop_assert_eq!(found, right, "{}", prefix);
        }
    }

    #[test]
    fn a_foreign_shelf_is_an_error_or_a_shelf(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
        let shelf = Shelf::new("a".to_owned(), bytes);
        if let Ok(terms) = shelf.terms() {
            prop_assert!(terms.windows(2).all(|pair| pair[0].0 < pair[1].0));
        }
        let _ = (shelf.find("a"), shelf.at_or_after(b"b"));
    }
}

/// Compaction comes to an end, with few segments, each document in one.
#[test]
fn tiers_stay_few() {
    let mut random = Random(5);
    let mut store = Store::new(0);
    for round in 0..600 {
        store.insert(vec![document(&mut random, 50)]);
        if round % 5 == 4 {
            let oldest = store.living.keys().copied().take(2).collect();
            store.delete(&oldest);
        }
        let mut steps = 0;
        while store.compact(compaction::plan) {
            steps += 1;
            assert!(steps < 20, "compaction does not end");
        }
        let most = FAN * (1 + compaction::tier(store.living.len() as u64) as usize);
        assert!(store.parts.iter().filter(|p| !p.dead).count() <= most, "round {round}");
        assert!(store.parts.iter().filter(|p| p.dead).count() <= most, "round {round}");
    }
}

/// A deletion that nothing was there for, or that comes twice, is noticed.
#[test]
fn strays_are_counted() {
    let mut store = Store::new(0);
    let one = || Document::from([("a".to_owned(), 1)]);
    store.insert(vec![one(), one()]);
    store.write(true, &BTreeMap::from([(1, one()), (9, one())]));
    assert_eq!(Index::new(store.parts.clone()).strays(), 1);
    store.write(true, &BTreeMap::from([(1, one())]));
    assert_eq!(Index::new(store.parts.clone()).strays(), 2);
    // An entry that lives twice, of which one is dead: nobody knows which.
    let mut store = Store::new(0);
    store.write(false, &BTreeMap::from([(1, one())]));
    store.write(true, &BTreeMap::from([(1, one())]));
    assert_eq!(Index::new(store.parts.clone()).strays(), 0);
    store.write(false, &BTreeMap::from([(1, Document::from([("b".to_owned(), 2)]))]));
    assert_eq!(Index::new(store.parts.clone()).strays(), 1);
}

/// Processor time of this thread, which a busy machine does not change.
fn clock() -> Duration {
    let told = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux tells the time of threads");
    Duration::from_nanos(told.split(' ').next().and_then(|told| told.parse().ok()).expect("nanoseconds"))
}

/// A merge that had to wait finds a segment for each statement since: four times as many may not take sixteen times as long.
#[test]
fn merging_many_small_segments_takes_time_in_proportion() {
    let took = |segments: i64| {
        let mut random = Random(11);
        let mut store = Store::new(0);
        for _ in 0..segments {
            store.insert(vec![document(&mut random, 40)]);
        }
        for entry in (1..segments).step_by(2) {
            store.delete(&BTreeSet::from([entry]));
        }
        let begin = clock();
        while store.compact(compaction::plan) {}
        let took = clock().saturating_sub(begin);
        let terms: Vec<String> = store.living.values().take(3).flat_map(|d| d.keys().take(2).cloned()).collect();
        assert!(!store.oracle(&terms, 20, None).is_empty());
        assert_eq!(store.search(&terms, 20, None), store.oracle(&terms, 20, None));
        assert!(store.parts.len() <= 2 * FAN, "{} segments are left", store.parts.len());
        took
    };
    let (few, many) = (took(1500), took(6000));
    assert!(many <= few * 9, "1500 segments take {few:?}, 6000 {many:?}");
}
