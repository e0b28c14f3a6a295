// SPDX-License-Identifier: PostgreSQL

//! Whatever pieces documents were written and deleted in: a search finds what scoring the whole documents finds.

#![allow(clippy::expect_used, reason = "a test may end anywhere")]

mod support;

use proptest::prelude::*;
use rag_core::lexical::bm25::Statistics;
use rag_core::lexical::cache::Cache;
use rag_core::lexical::compaction::{self, FAN, Merged, Plan};
use rag_core::lexical::index::Part;
use rag_core::lexical::keys::Keys;
use rag_core::lexical::maxscore::{Query, QueryTerm};
use rag_core::lexical::ordinals::Ids;
use rag_core::lexical::segment::Builder;
use rag_core::lexical::shelf::{MemoryRows, Rows, Writer};
use rag_core::lexical::whole::{self, Documents, PASSAGES};
use std::collections::BTreeMap;
use std::rc::Rc;
use support::Random;

type Terms = BTreeMap<String, u32>;

/// A passage of a document.
#[derive(Clone)]
struct Passage {
    document: i64,
    terms: Terms,
}

/// What a database would hold.
struct Store {
    parts: Vec<Part>,
    next: i64,
    /// The passages: the truth.
    passages: Vec<Passage>,
    cache: Cache,
}

fn add(sum: &mut Terms, terms: &Terms) {
    terms.iter().for_each(|(term, tf)| *sum.entry(term.clone()).or_default() += tf);
}

impl Store {
    fn new(cache: usize) -> Self {
        Self { parts: vec![], next: 1, passages: vec![], cache: Cache::new(cache) }
    }

    fn put(&mut self, dead: bool, merged: Merged, rows: MemoryRows) {
        let (ids, rows) = (Rc::new(merged.ids), Rc::new(rows) as Rc<dyn Rows>);
        self.parts.push(Part {
            id: self.next,
            dead,
            documents: merged.documents,
            total_dl: merged.total_dl,
            ids,
            keys: Rc::new(merged.keys),
            rows,
        });
        self.next += 1;
    }

    /// One segment of what a statement says about these passages.
    fn write(&mut self, dead: bool, passages: &[Passage]) {
        let mut pieces: BTreeMap<i64, (u32, Terms)> = BTreeMap::new();
        for passage in passages {
            let piece = pieces.entry(passage.document).or_default();
            piece.0 += 1;
            add(&mut piece.1, &passage.terms);
        }
        let (mut ids, mut builder, mut rows, mut writer) =
            (Ids::default(), Builder::default(), MemoryRows::default(), Writer::default());
        for (document, (count, mut terms)) in pieces {
            let ordinal = ids.push(document).expect("ascending");
            let dl = terms.values().sum();
            terms.insert(PASSAGES.to_owned(), count);
            builder.add(ordinal, dl, terms).expect("valid");
        }
        let built = builder.finish();
        let postings = built.lists.iter().map(|(_, l)| u64::from(l.df)).sum();
        for (term, list) in built.lists {
            writer.add(&term, list, &mut rows).expect("in order");
        }
        let terms = writer.finish(&mut rows).expect("in memory");
        if built.documents > 0 {
            let (documents, total_dl, keys) = (built.documents, built.total_dl, Keys::default());
            self.put(dead, Merged { documents, total_dl, ids, keys, postings, terms }, rows);
        }
    }

    fn insert(&mut self, passages: Vec<Passage>) {
        self.write(false, &passages);
        self.passages.extend(passages);
    }

    fn delete(&mut self, mut which: impl FnMut(&Passage) -> bool) -> Vec<Passage> {
        let (gone, kept) = std::mem::take(&mut self.passages).into_iter().partition(|p| which(p));
        self.passages = kept;
        self.write(true, &gone);
        gone
    }

    fn compact(&mut self, plan: impl Fn(&Documents) -> Plan) -> bool {
        let documents = Documents::new(self.parts.clone());
        let (plan, index) = (plan(&documents), documents.index());
        let (mut live, mut dead) = (MemoryRows::default(), MemoryRows::default());
        let merged = whole::merge(&documents, &plan, false, &mut live, &mut || Ok(())).expect("well formed");
        let rest = whole::merge(&documents, &plan, true, &mut dead, &mut || Ok(())).expect("well formed");
        let used = |parts: &[Part], at: &[usize]| at.iter().map(|at| parts[*at].id).collect::<Vec<_>>();
        let used = [used(index.live(), &plan.live), used(index.dead(), &plan.dead)].concat();
        self.parts.retain(|p| !used.contains(&p.id));
        merged.into_iter().for_each(|merged| self.put(false, merged, live.clone()));
        rest.into_iter().for_each(|merged| self.put(true, merged, dead.clone()));
        !plan.is_empty()
    }

    fn search(&self, terms: &[String], k: usize, allow: Option<&[i64]>) -> (Vec<(i64, u64)>, Statistics) {
        let documents = Documents::new(self.parts.clone());
        assert_eq!(documents.strays(), 0);
        let opened = documents.open(terms, &self.cache).expect("well formed");
        let terms = opened.dfs().iter().map(|df| QueryTerm { df: *df, weight: 1.0 }).collect();
        let query = Query { terms, population: opened.population(), k, after: None };
        let hits = opened.search(&query, allow, &mut || Ok(())).expect("well formed");
        (hits.into_iter().map(|h| (h.id, h.score.to_bits())).collect(), opened.population())
    }

    /// The documents, each as the sum of its passages.
    fn whole(&self) -> BTreeMap<i64, Terms> {
        let mut whole: BTreeMap<i64, Terms> = BTreeMap::new();
        self.passages.iter().for_each(|p| add(whole.entry(p.document).or_default(), &p.terms));
        whole
    }

    /// BM25 as the textbook has it, over whole documents.
    fn oracle(&self, terms: &[String], k: usize, allow: Option<&[i64]>) -> (Vec<(i64, u64)>, Statistics) {
        let whole = self.whole();
        let n = whole.len() as f64;
        let length = |d: &Terms| d.values().sum::<u32>();
        let total: u64 = whole.values().map(|d| u64::from(length(d))).sum();
        let average = total as f64 / n;
        let mut scored = Vec::new();
        for (document, of) in &whole {
            let mut score = None;
            for term in terms {
                let Some(tf) = of.get(term).map(|tf| f64::from(*tf)) else { continue };
                let df = whole.values().filter(|d| d.contains_key(term)).count() as f64;
                let idf = (1.0 + (n - df + 0.5) / (df + 0.5)).ln();
                let length = f64::from(length(of)) / average;
                let part = idf * (tf * (1.2 + 1.0) / (tf + 1.2 * (1.0 - 0.75 + 0.75 * length)));
                *score.get_or_insert(0.0) += part;
            }
            if let Some(score) = score.filter(|_| allow.is_none_or(|a| a.binary_search(document).is_ok())) {
                scored.push((*document, score));
            }
        }
        scored.sort_by(|a: &(i64, f64), b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        let hits = scored.into_iter().take(k).map(|(e, s)| (e, s.to_bits())).collect();
        (hits, Statistics { documents: whole.len() as u64, total_dl: total })
    }
}

fn passage(random: &mut Random, documents: u64, vocabulary: u32) -> Passage {
    let mut terms = Terms::new();
    for _ in 0..random.below(12) {
        *terms.entry(format!("t{}", random.zipf(vocabulary))).or_insert(0) += 1;
    }
    Passage { document: 1 + random.below(documents) as i64, terms }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn any_pieces_are_searched_as_whole_documents(seed: u64, large: bool, cache in prop_oneof![Just(0usize), Just(1 << 20)]) {
        let mut random = Random(seed);
        let (documents, vocabulary) = if large { (400, 2000) } else { (8, 40) };
        let mut store = Store::new(cache);
        for _ in 0..if large { 12 } else { 40 } {
            match random.below(10) {
                0..=4 => {
                    let count = if large { 1 + random.below(600) } else { random.below(6) };
                    let passages = (0..count).map(|_| passage(&mut random, documents, vocabulary)).collect();
                    store.insert(passages);
                }
                5..=7 => {
                    let share = random.unit() * 0.4;
                    let deleted = store.delete(|_| random.chance(share));
                    if random.chance(0.5) {
                        let change = |mut p: Passage| { p.terms.insert("changed".to_owned(), 2); p };
                        store.insert(deleted.into_iter().map(change).collect());
                    }
                }
                8 => { store.compact(whole::plan); }
                _ => { store.compact(|d| compaction::full(d.index())); }
            }
            let mut terms: Vec<String> = passage(&mut random, 1, vocabulary).terms.into_keys().collect();
            terms.extend(["changed".to_owned(), "nobody has it".to_owned()]);
            let allow: Vec<i64> = (1..=documents as i64).filter(|_| random.chance(0.2)).collect();
            for (k, allow) in [(1, None), (10, None), (5000, None), (10, Some(&allow[..]))] {
                prop_assert_eq!(store.search(&terms, k, allow), store.oracle(&terms, k, allow));
            }
        }
        store.compact(|d| compaction::full(d.index()));
        prop_assert!(store.parts.len() <= 1);
        prop_assert!(Documents::new(store.parts.clone()).split().is_empty());
    }
}

/// Merging comes to an end, with few segments and few split documents.
#[test]
fn tiers_stay_few_and_documents_whole() {
    let mut random = Random(5);
    let mut store = Store::new(0);
    for round in 0..600 {
        let mut new = passage(&mut random, 1, 50);
        new.document = round / 2;
        store.insert(vec![new]);
        if round % 5 == 4 {
            let oldest = store.passages.first().map_or(0, |p| p.document);
            store.delete(|p| p.document == oldest);
        }
        let mut steps = 0;
        while store.compact(whole::plan) {
            steps += 1;
            assert!(steps < 20, "merging does not end");
        }
        let most = FAN * (1 + compaction::tier(store.whole().len() as u64) as usize);
        assert!(store.parts.iter().filter(|p| !p.dead).count() <= most, "round {round}");
        assert!(store.parts.iter().filter(|p| p.dead).count() <= most, "round {round}");
        let split = Documents::new(store.parts.clone()).split().len();
        assert!(split <= 64.max(store.whole().len() / 5), "round {round}: {split} are split");
    }
}

/// A deletion that nothing was there for is noticed; one of more than there was is damage.
#[test]
fn what_cannot_be_is_noticed() {
    let mut store = Store::new(0);
    let one = |document| Passage { document, terms: Terms::from([("a".to_owned(), 1)]) };
    store.insert(vec![one(1), one(2)]);
    store.write(true, &[one(1), one(9)]);
    assert_eq!(Documents::new(store.parts.clone()).strays(), 1);
    let mut store = Store::new(0);
    store.insert(vec![one(1)]);
    store.write(true, &[one(1), one(1)]);
    let documents = Documents::new(store.parts.clone());
    assert_eq!(documents.strays(), 0);
    assert!(documents.open(&["a".to_owned()], &store.cache).is_err());
    let plan = compaction::full(documents.index());
    assert!(whole::merge(&documents, &plan, false, &mut MemoryRows::default(), &mut || Ok(())).is_err());
}
