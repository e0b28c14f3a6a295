// SPDX-License-Identifier: PostgreSQL

//! An invented population of documents, cut into segments, and BM25 over it as the textbook writes it.
//!
//! The oracle knows nothing of the crate: it counts over maps and scores every document.
#![allow(dead_code, clippy::expect_used, reason = "not every test file uses all of it, and a test may end anywhere")]

use rag_core::lexical::bm25::Statistics;
use rag_core::lexical::maxscore::{List, Query, QueryTerm, Segment};
use rag_core::lexical::ordinals::{Ids, OrdinalSet};
use rag_core::lexical::postings::MemoryList;
use rag_core::lexical::segment::Builder;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Random numbers from a seed (SplitMix64).
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// From 0 to 1.
    pub fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    pub fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    pub fn chance(&mut self, p: f64) -> bool {
        self.unit() < p
    }

    /// A rank below `vocabulary`, by Zipf's law: the probability falls as 1 / (rank + 1).
    pub fn zipf(&mut self, vocabulary: u32) -> u32 {
        ((f64::from(vocabulary).ln() * self.unit()).exp() as u32 - 1).min(vocabulary - 1)
    }
}

#[derive(Debug, Clone)]
pub struct Document {
    pub id: i64,
    pub dl: u32,
    pub terms: BTreeMap<u32, u32>,
}

/// How a population is made.
#[derive(Debug, Clone, Copy)]
pub struct Shape {
    pub seed: u64,
    pub documents: usize,
    pub vocabulary: u32,
    pub segments: usize,
    /// Segments hold ids that lie side by side, rather than all mixed.
    pub contiguous: bool,
    /// The part of the documents that are dead.
    pub dead: f64,
    /// All documents have the same length and every tf is 1, so that scores tie.
    pub ties: bool,
}

pub struct Part {
    pub documents: Vec<Document>,
    pub ids: Ids,
    pub lists: HashMap<u32, MemoryList>,
    pub dead: OrdinalSet,
}

pub struct Population {
    pub parts: Vec<Part>,
}

pub fn population(shape: Shape) -> Population {
    let mut random = Random(shape.seed);
    let mut id = -5;
    let mut documents = Vec::new();
    for _ in 0..shape.documents {
        id += if random.chance(0.8) { 1 } else { 1 + random.below(40) as i64 };
        let mut terms = BTreeMap::new();
        for _ in 0..random.below(12) {
            let tf = if shape.ties { 1 } else { 1 + (-random.unit().ln() * 1.5) as u32 };
            *terms.entry(random.zipf(shape.vocabulary)).or_insert(0) = tf;
        }
        let length = terms.values().sum::<u32>() + (random.unit().powi(4) * 400.0) as u32;
        documents.push(Document { id, dl: if shape.ties { 20 } else { length }, terms });
    }
    let places = shape.segments;
    let mut cut: Vec<Vec<Document>> = vec![Vec::new(); places];
    for (at, document) in documents.into_iter().enumerate() {
        let place = if shape.contiguous { at * places / shape.documents } else { random.below(places as u64) as usize };
        cut[place].push(document);
    }
    let parts = cut.into_iter().map(|documents| part(documents, shape.dead, &mut random)).collect();
    Population { parts }
}

fn part(documents: Vec<Document>, dead: f64, random: &mut Random) -> Part {
    let (mut ids, mut builder) = (Ids::default(), Builder::default());
    for document in &documents {
        let ordinal = ids.push(document.id).expect("ascending");
        builder.add(ordinal, document.dl, document.terms.iter().map(|(t, tf)| (*t, *tf))).expect("valid");
    }
    let lists =
        builder.finish().lists.into_iter().map(|(t, l)| (t, MemoryList::new(l).expect("well formed"))).collect();
    let dead = (0..ids.len()).filter(|_| random.chance(dead)).collect();
    Part { documents, ids, lists, dead }
}

impl Population {
    /// The documents that are alive.
    pub fn alive(&self) -> Vec<&Document> {
        let places = self.parts.iter().flat_map(|p| p.documents.iter().enumerate().map(move |place| (p, place)));
        places.filter(|(p, (at, _))| !p.dead.contains(*at as u32)).map(|(_, (_, document))| document).collect()
    }

    /// The query for these terms, with the counts of the living.
    pub fn query(&self, terms: &[(u32, f64)], k: usize) -> Query {
        let alive = self.alive();
        let df = |term: u32| alive.iter().filter(|d| d.terms.contains_key(&term)).count() as u64;
        Query {
            terms: terms.iter().map(|(term, weight)| QueryTerm { df: df(*term), weight: *weight }).collect(),
            population: Statistics {
                documents: alive.len() as u64,
                total_dl: alive.iter().map(|d| u64::from(d.dl)).sum(),
            },
            k,
            after: None,
        }
    }

    /// The segments as a search gets them; `allow` is ids.
    pub fn search(&self, terms: &[(u32, f64)], query: &Query, allow: Option<&BTreeSet<i64>>) -> Vec<(i64, u64)> {
        let allowed = |part: &Part| allow.map(|a| a.iter().filter_map(|id| part.ids.ordinal(*id)).collect());
        let allows: Vec<Option<OrdinalSet>> = self.parts.iter().map(allowed).collect();
        let segments: Vec<Segment<'_>> = (self.parts.iter().zip(&allows))
            .map(|(part, allow)| Segment {
                lists: (terms.iter())
                    .map(|(t, _)| part.lists.get(t).map(|l| List { directory: &l.directory, pages: l }))
                    .collect(),
                ids: &part.ids,
                keys: None,
                dead: Some(&part.dead),
                allow: allow.as_ref(),
            })
            .collect();
        let found = rag_core::lexical::maxscore::search(query, &segments, &mut || Ok(())).expect("valid");
        found.into_iter().map(|h| (h.id, h.score.to_bits())).collect()
    }

    /// Every living document that has a term, by its score and then its id; scores as bits.
    pub fn oracle(&self, terms: &[(u32, f64)], allow: Option<&BTreeSet<i64>>) -> Vec<(i64, u64)> {
        let alive = self.alive();
        let n = alive.len() as f64;
        let average = alive.iter().map(|d| f64::from(d.dl)).sum::<f64>() / n;
        let mut df: HashMap<u32, f64> = HashMap::new();
        alive.iter().flat_map(|d| d.terms.keys()).for_each(|t| *df.entry(*t).or_default() += 1.0);
        let mut scored: Vec<(i64, f64)> = Vec::new();
        for document in alive {
            if allow.is_some_and(|a| !a.contains(&document.id)) {
                continue;
            }
            let mut score = 0.0;
            let mut matches = false;
            for (term, weight) in terms {
                let Some(tf) = document.terms.get(term).map(|tf| f64::from(*tf)) else { continue };
                let df = df[term];
                let idf = (1.0 + (n - df + 0.5) / (df + 0.5)).ln();
                let length = if average > 0.0 { f64::from(document.dl) / average } else { 1.0 };
                score += (weight * idf) * (tf * (1.2 + 1.0) / (tf + 1.2 * (1.0 - 0.75 + 0.75 * length)));
                matches = true;
            }
            if matches {
                scored.push((document.id, score));
            }
        }
        scored.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        scored.into_iter().map(|(id, score)| (id, score.to_bits())).collect()
    }
}
