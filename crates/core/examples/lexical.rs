// SPDX-License-Identifier: PostgreSQL

//! Measures the BM25 index in memory: `cargo run --release -p rag_core --example lexical -- [DOCUMENTS] [QUERIES]`.
//!
//! Documents are invented: about 110 distinct terms each, by Zipf's law over two million words, in segments of 250,000.
//! Queries have 2 to 6 terms, of ranks spread evenly over the logarithm from 30 on, as where stop words are left out. No
//! decoded block is kept between queries. The time of scoring every match is that of the same code with k as large as
//! the population, which leaves nothing to skip.
#![allow(clippy::expect_used, reason = "a measurement ends at the first thing that is not as it should be")]

use rag_core::lexical::bm25::Statistics;
use rag_core::lexical::maxscore::{self, List, Query, QueryTerm, Segment};
use rag_core::lexical::ordinals::Ids;
use rag_core::lexical::postings::MemoryList;
use rag_core::lexical::segment::{Builder, OldList, Renumbering, merge};
use std::collections::HashMap;
use std::time::{Duration, Instant};

const VOCABULARY: f64 = 2_000_000.0;
const SEGMENT: u64 = 250_000;

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// A rank from `first` on, with the logarithm even: Zipf's law.
    fn rank(&mut self, first: f64, last: f64) -> u64 {
        (first * ((last / first).ln() * self.unit()).exp()) as u64
    }
}

struct Part {
    ids: Ids,
    lists: HashMap<u64, MemoryList>,
}

fn main() {
    let mut arguments = std::env::args().skip(1).map(|a| a.parse::<u64>().expect("a number"));
    let documents = arguments.next().unwrap_or(1_000_000);
    let queries = arguments.next().unwrap_or(200) as usize;
    let mut random = Random(0x2545_f491_4f6c_dd1d);
    let mut population = Statistics::default();
    let mut parts = Vec::new();
    let (mut postings, mut bytes, mut directories, mut building) = (0u64, 0usize, 0usize, Duration::ZERO);
    for first in (0..documents).step_by(SEGMENT as usize) {
        let (mut ids, mut builder) = (Ids::default(), Builder::default());
        for id in first..documents.min(first + SEGMENT) {
            let (terms, dl) = document(&mut random);
            let started = Instant::now();
            let ordinal = ids.push(id as i64).expect("ascending");
            builder.add(ordinal, dl, terms).expect("valid");
            building += started.elapsed();
        }
        postings += builder.postings();
        let started = Instant::now();
        let built = builder.finish();
        building += started.elapsed();
        population.documents += built.documents;
        population.total_dl += built.total_dl;
        bytes += built.lists.iter().map(|(_, l)| l.bytes()).sum::<usize>();
        directories += built.lists.iter().map(|(_, l)| l.directory.len()).sum::<usize>();
        let read = |(term, list)| (term, MemoryList::new(list).expect("well formed"));
        parts.push(Part { ids, lists: built.lists.into_iter().map(read).collect() });
    }
    println!(
        "{documents} documents, {:.0} distinct terms each, mean length {:.0}, {postings} postings",
        postings as f64 / documents as f64,
        population.average_dl()
    );
    println!(
        "{:.3} bytes a posting, of these directories {:.3}",
        bytes as f64 / postings as f64,
        directories as f64 / postings as f64
    );
    println!("building: {:.2} million postings a second", postings as f64 / building.as_secs_f64() / 1e6);
    measure_merge(&parts);
    for terms in 2..=6 {
        measure_queries(&parts, population, &mut random, terms, queries);
    }
}

/// A document's distinct terms with tf, and its length.
fn document(random: &mut Random) -> (Vec<(u64, u32)>, u32) {
    let words = 40 + (random.unit() * 178.0) as u32;
    let mut terms: Vec<u64> = (0..words).map(|_| random.rank(1.0, VOCABULARY)).collect();
    terms.sort_unstable();
    let tf = |same: &[u64]| (same[0], same.len() as u32);
    (terms.chunk_by(|a, b| a == b).map(tf).collect(), words)
}

fn measure_merge(parts: &[Part]) {
    let Some(pair) = parts.get(..2) else { return };
    let started = Instant::now();
    let renumbering = Renumbering::new(&[(&pair[0].ids, None), (&pair[1].ids, None)]).expect("distinct ids");
    let mut merged = 0u64;
    for (term, list) in &pair[0].lists {
        let lists = [(0, Some(list)), (1, pair[1].lists.get(term))];
        let lists: Vec<OldList<'_>> = lists
            .into_iter()
            .filter_map(|(segment, list)| list.map(|l| OldList { segment, directory: &l.directory, pages: l }))
            .collect();
        merged += merge(&lists, &renumbering, None, &mut |_| {}).expect("well formed").map_or(0, |l| u64::from(l.df));
    }
    println!("merging two: {:.2} million postings a second", merged as f64 / started.elapsed().as_secs_f64() / 1e6);
}

fn measure_queries(parts: &[Part], population: Statistics, random: &mut Random, terms: usize, queries: usize) {
    let (mut times, mut all, mut matches) = (Vec::new(), Vec::new(), 0u64);
    while times.len() < queries {
        let mut ranks: Vec<u64> = (0..terms).map(|_| random.rank(30.0, 50_000.0)).collect();
        ranks.sort_unstable();
        ranks.dedup();
        if ranks.len() < terms {
            continue;
        }
        let df = |rank: &u64| {
            parts.iter().filter_map(|p| p.lists.get(rank)).map(|l| u64::from(l.directory.df())).sum::<u64>()
        };
        let query = Query {
            terms: ranks.iter().map(|r| QueryTerm { df: df(r), weight: 1.0 }).collect(),
            population,
            k: 100,
            after: None,
        };
        matches += query.terms.iter().map(|t| t.df).sum::<u64>();
        let segments: Vec<Segment<'_>> = (parts.iter())
            .map(|part| Segment {
                lists: (ranks.iter())
                    .map(|r| part.lists.get(r).map(|l| List { directory: &l.directory, pages: l }))
                    .collect(),
                ids: &part.ids,
                keys: None,
                dead: None,
                allow: None,
            })
            .collect();
        let started = Instant::now();
        let found = maxscore::search(&query, &segments, &mut || Ok(())).expect("valid");
        times.push(started.elapsed());
        if all.len() < queries / 10 {
            let everything = Query { k: usize::MAX, ..query };
            let started = Instant::now();
            let right = maxscore::search(&everything, &segments, &mut || Ok(())).expect("valid");
            all.push(started.elapsed());
            assert_eq!(found, right[..found.len()], "skipping changed the result");
        }
    }
    let at = |times: &mut Vec<Duration>, p: usize| {
        times.sort_unstable();
        times[(times.len() * p / 100).min(times.len() - 1)].as_secs_f64() * 1e3
    };
    println!(
        "{terms} terms, {:.0} postings on average: p50 {:.2} ms, p95 {:.2} ms; scoring and sorting all: p50 {:.1} ms",
        matches as f64 / queries as f64,
        at(&mut times, 50),
        at(&mut times, 95),
        at(&mut all, 50)
    );
}
