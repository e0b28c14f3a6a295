// SPDX-License-Identifier: PostgreSQL

//! How the BM25 index grows, on an invented corpus.
//!
//! Words are drawn by Zipf's law from a vocabulary that grows with the corpus by Heaps' law (K 40, β 0.5), about 110
//! distinct ones a chunk; a query has two to six words of a chunk drawn at random, the commonest hundred words left out as a
//! text search configuration leaves out stop words. The same seed gives the same corpus everywhere.

use super::{NAME, SEARCH, Status};
use crate::bench::Bench;
use crate::bench::figure::{Figure, Kind, Table, number};
use crate::bench::turns::Connect;
use crate::db;
use crate::latency::Latency;
use postgres::Client;
use rag_core::{Error, Result};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::time::Instant;

/// Numbers of chunks and of queries, unless they are said.
const SIZES: [u64; 2] = [100_000, 1_000_000];
const QUERIES: usize = 500;

/// Chunks of one statement.
const BATCH: u64 = 20_000;
/// Words of a chunk, which come to about 110 distinct ones.
const WORDS: usize = 113;
/// The commonest words, which stand for stop words.
const STOP: u32 = 100;

/// What autovacuum does in time.
const TIDY: &[&str] = &["VACUUM (ANALYZE) rag.lex_shelf, rag.lex_page, rag.lex_segment", "CHECKPOINT"];

/// Random numbers from a seed (SplitMix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// A rank from `STOP`, by Zipf's law: the probability falls as one over the rank.
    fn word(&mut self, vocabulary: f64) -> u32 {
        let (low, high) = (f64::from(STOP).ln(), vocabulary.ln());
        (low + (high - low) * self.unit()).exp() as u32
    }
}

fn chunk(number: u64, chunks: u64) -> BTreeMap<u32, u32> {
    // Heaps: the words of a corpus of n words are K·n^β.
    let vocabulary = 40.0 * (chunks as f64 * WORDS as f64).sqrt();
    let mut random = Random(number.wrapping_mul(0x2545_f491_4f6c_dd1d));
    let length = WORDS / 2 + (random.next() % WORDS as u64) as usize;
    let mut words = BTreeMap::new();
    for _ in 0..length {
        *words.entry(random.word(vocabulary)).or_insert(0) += 1;
    }
    words
}

/// Measures each size, in a database that is dropped afterwards.
pub fn measure(connect: Connect<'_>, request: &Bench) -> Result<Figure> {
    let queries = request.queries.unwrap_or(QUERIES);
    let sizes = if request.chunks.is_empty() { &SIZES[..] } else { &request.chunks[..] };
    let mut figure = Figure::new(
        "How the BM25 index grows",
        format!(
            "Invented chunks of about 110 distinct terms, {queries} queries of 2 to 6 terms, the best 100; milliseconds seen from a \
             client on the same machine. *Build* is `rag.reindex_lexical`, from the stored `tsv`, one core; its WAL is that of the \
             index alone. *Merge* is `rag.compact` of what the build has left."
        ),
    );
    let mut table = Table::new(
        "",
        &[
            ("chunks", Kind::Count),
            ("postings", Kind::Count),
            ("build, s", Kind::Seconds),
            ("million postings/s", Kind::Ratio),
            ("WAL per chunk, bytes", Kind::Count),
            ("bytes per posting", Kind::Ratio),
            ("segments", Kind::Count),
            ("p50", Kind::Milliseconds),
            ("p95", Kind::Milliseconds),
            ("merge, s", Kind::Seconds),
            ("p50 merged", Kind::Milliseconds),
            ("p95 merged", Kind::Milliseconds),
            ("first answers, p50", Kind::Milliseconds),
            ("p95", Kind::Milliseconds),
        ],
    );
    for chunks in sizes {
        table.rows.push(row(connect, *chunks, queries)?);
    }
    figure.tables.push(table);
    Ok(figure)
}

fn row(connect: Connect<'_>, chunks: u64, queries: usize) -> Result<Vec<Value>> {
    let mut client = connect()?;
    load(&mut client, chunks, &|_| None)?;
    let failed = |e: postgres::Error| db::sql("could not measure", &e);
    let lsn = || -> Result<i64> {
        let sql = "SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint";
        Ok(connect()?.query_one(sql, &[]).map_err(failed)?.get(0))
    };
    let (before, started) = (lsn()?, Instant::now());
    client.execute("SELECT rag.reindex_lexical($1)", &[&NAME]).map_err(failed)?;
    let built = started.elapsed().as_secs_f64();
    let wal = lsn()? - before;
    super::apart(&mut client, TIDY)?;
    let Status { postings, bytes, segments, .. } = super::status(&mut client)?;
    let (_, several) = times(connect, chunks, queries)?;
    let started = Instant::now();
    client.execute("SELECT rag.compact($1)", &[&NAME]).map_err(failed)?;
    let merged = started.elapsed().as_secs_f64();
    super::apart(&mut client, TIDY)?;
    let (first, one) = times(connect, chunks, queries)?;
    Ok(vec![
        Value::from(chunks),
        Value::from(postings),
        number(built),
        number(postings as f64 / built / 1e6),
        Value::from(wal / chunks as i64),
        number(bytes as f64 / postings as f64),
        Value::from(segments),
        number(several.p50()),
        number(several.p95()),
        number(merged),
        number(one.p50()),
        number(one.p95()),
        number(first.p50()),
        number(first.p95()),
    ])
}

/// Queries of two to six words of a chunk.
pub fn queries(chunks: u64, count: usize) -> Vec<String> {
    let mut random = Random(7);
    let query = |at: usize| {
        let words: Vec<u32> = chunk(random.next() % chunks, chunks).into_keys().collect();
        (0..2 + at % 5).map(|_| format!("w{} ", words[(random.next() % words.len() as u64) as usize])).collect()
    };
    (0..count).map(query).collect()
}

/// The queries in a new session, twice: what it has not read yet, and what it has kept.
fn times(connect: Connect<'_>, chunks: u64, count: usize) -> Result<(Latency, Latency)> {
    let mut client = connect()?;
    let texts = queries(chunks, count);
    let search = client.prepare(SEARCH).map_err(|e| db::sql(SEARCH, &e))?;
    let mut pass = || -> Result<Latency> {
        let mut times = Latency::default();
        for text in &texts {
            let started = Instant::now();
            client.query_one(&search, &[text]).map_err(|e| db::sql(text, &e))?;
            times.push(started.elapsed());
        }
        Ok(times)
    };
    Ok((pass()?, pass()?))
}

/// Loads so many chunks, each with the label it is given, and its number as its line.
pub fn load(client: &mut Client, chunks: u64, label: &dyn Fn(u64) -> Option<String>) -> Result<()> {
    let failed = |e: postgres::Error| db::sql("could not load the corpus", &e);
    let (collection, source, document) = super::empty(client, chunks)?;
    // GIN over it would take longer than all else and is not measured here.
    super::apart(client, &["DROP INDEX IF EXISTS rag.chunk_tsv", "VACUUM rag.chunk"])?;
    let mut number = 0;
    while number < chunks {
        let sql =
            "COPY rag.chunk (chunk_key, document_id, ordinal, content, content_sha256, token_count, collection_id,
                                   source_id, tsv, dl, line_start, line_end, acl) FROM STDIN";
        let mut rows = client.copy_in(sql).map_err(failed)?;
        for _ in 0..BATCH.min(chunks - number) {
            let words = chunk(number, chunks);
            let length: u32 = words.values().sum();
            let (mut tsv, mut position) = (String::new(), 0);
            for (word, tf) in words {
                let positions: Vec<String> = (0..tf).map(|step| (position + step + 1).to_string()).collect();
                position += tf;
                let _ = write!(tsv, "w{word}:{} ", positions.join(","));
            }
            let (document, hash) = (document + (number / super::PASSAGES) as i64, "00".repeat(32));
            let acl = label(number).unwrap_or_else(|| "\\N".to_owned());
            writeln!(
                rows,
                "00000000-0000-0000-0000-{number:012x}\t{document}\t{number}\tx\t\\\\x{hash}\t0\t{collection}\t{source}\t{tsv}\t\
                 {length}\t{number}\t{number}\t{acl}"
            )
            .map_err(|e| Error::io("corpus", &e))?;
            number += 1;
        }
        rows.finish().map_err(failed)?;
    }
    super::apart(client, &["VACUUM ANALYZE rag.chunk"])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chunk_has_about_so_many_distinct_terms_and_is_the_same_each_time() {
        let sizes: Vec<usize> = (0..200).map(|n| chunk(n, 100_000).len()).collect();
        let mean = sizes.iter().sum::<usize>() as f64 / 200.0;
        assert!((95.0..135.0).contains(&mean), "{mean}");
        assert_eq!(chunk(5, 1000), chunk(5, 1000));
    }
}
