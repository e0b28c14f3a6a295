// SPDX-License-Identifier: PostgreSQL

//! The BM25 leg against PostgreSQL's full text search: GIN and `ts_rank`, any word, the best hundred.
//!
//! Both answer the queries of a judged collection over the same rows with the same lexemes. `ts_rank` is not BM25; what is
//! compared is the time to a ranked hundred: on a table that holds nothing but texts, and on the passages themselves. Where
//! an index access method for BM25 is installed (pg_textsearch), it takes part. Statements are prepared and planned for each
//! query, without which GIN would be slower.

use super::{NAME, SEARCH, Status};
use crate::beir::Set;
use crate::bench::{Contender, interleave, table};
use crate::db;
use crate::latency::Latency;
use postgres::{Client, Statement};
use rag_core::{Error, Result};
use serde::Deserialize;
use std::fmt::Write as _;
use std::io::{BufRead, Write as _};
use std::path::PathBuf;
use std::time::Instant;

/// What to measure.
#[derive(Debug, Clone, clap::Args)]
pub struct Rival {
    /// Folder of a judged collection in BEIR's layout
    pub beir_dir: PathBuf,
    /// Measure what an earlier run has loaded, in a new session each: after a restart, for instance
    #[arg(long)]
    pub loaded: bool,
    /// Rounds over all queries
    #[arg(long, default_value_t = 3)]
    pub rounds: usize,
}

#[derive(Deserialize)]
struct Line {
    #[serde(default)]
    title: String,
    text: String,
}

/// Passages that there are documents for.
const ROOM: u64 = 1_000_000;

const GIN: &str = "SELECT count(*) FROM (
    SELECT k.id FROM lexical_rival k, (SELECT replace(plainto_tsquery('english', $1)::text, '&', '|')::tsquery AS q) q
     WHERE k.tsv @@ q.q ORDER BY ts_rank(k.tsv, q.q) DESC LIMIT 100) best";
const GIN_CHUNKS: &str = "SELECT count(*) FROM (
    SELECT k.id FROM rag.chunk k, (SELECT replace(plainto_tsquery('english', $1)::text, '&', '|')::tsquery AS q) q
     WHERE k.tsv @@ q.q AND k.current ORDER BY ts_rank(k.tsv, q.q) DESC LIMIT 100) best";
const TEXTSEARCH: &str = "SELECT count(*) FROM (SELECT id FROM lexical_rival ORDER BY content <@> to_bm25query($1, 'lexical_rival_bm25') LIMIT 100) best";

/// Measures and returns a page of Markdown.
pub fn measure(connect: &dyn Fn() -> Result<Client>, request: &Rival) -> Result<String> {
    let set = Set::open(&request.beir_dir)?;
    let judged = set.judged_queries("queries.jsonl", &set.qrels("qrels.tsv")?)?;
    let queries: Vec<String> = judged.into_iter().map(|q| q.text).collect();
    let mut client = connect()?;
    let mut out = String::new();
    if !request.loaded {
        let built = load(&mut client, &set)?;
        let facts: Vec<String> = db::environment(&mut client)?.iter().map(|(k, v)| format!("{k} {v}")).collect();
        let _ = writeln!(
            out,
            "# The BM25 leg on {}\n\nOn: {}. {} queries, the best 100 of {} passages by prepared statements, milliseconds seen \
             from a client on the same machine.\n\n{built}",
            set.name(),
            facts.join(", "),
            queries.len(),
            super::status(&mut client)?.documents
        );
    }
    let textsearch = exists(&mut client, "SELECT FROM pg_class WHERE relname = 'lexical_rival_bm25'")?;
    let mut rows: Vec<(String, Latency, Option<f64>)> = Vec::new();
    // The first answers of a session read what later ones have kept.
    let mut first = Latency::default();
    let mut fresh = connect()?;
    let search = prepared(&mut fresh, SEARCH)?;
    for query in &queries {
        let started = Instant::now();
        ask(&mut fresh, &search, query)?;
        first.push(started.elapsed());
    }
    rows.push(("pg_rag, first answers of a session".to_owned(), first, None));
    let contender = |name: &str, sql: &'static str| -> Result<Contender<'_>> {
        let mut client = connect()?;
        // A plan for any query would not use GIN as well.
        let plans = if sql == SEARCH { "auto" } else { "force_custom_plan" };
        let settings = format!("SET jit = off; SET plan_cache_mode = {plans}");
        client.batch_execute(&settings).map_err(|e| db::sql("no setting", &e))?;
        let (queries, statement) = (&queries, prepared(&mut client, sql)?);
        Ok(Contender { name: name.to_owned(), work: Box::new(move |at| ask(&mut client, &statement, &queries[at])) })
    };
    let mut contenders = vec![
        contender("pg_rag", SEARCH)?,
        contender("GIN, ts_rank on a table of texts", GIN)?,
        contender("GIN, ts_rank on the passages", GIN_CHUNKS)?,
    ];
    if textsearch {
        contenders.push(contender("pg_textsearch", TEXTSEARCH)?);
    }
    let title = if request.loaded { "After a restart of the server" } else { "Warm" };
    let turns = interleave(&mut contenders, queries.len(), request.rounds)?;
    let named = |times: Vec<Latency>, contenders: &[Contender<'_>]| {
        contenders.iter().zip(times).map(|(c, latency)| (c.name.clone(), latency, None)).collect::<Vec<_>>()
    };
    rows.extend(named(passes(&mut contenders, queries.len(), request.rounds)?, &contenders));
    let turns = named(turns, &contenders);
    let _ = writeln!(out, "## {title}\n\nEach answers all queries in a row:\n\n{}", table(&rows, "pg_rag", None));
    let _ = writeln!(
        out,
        "In turns, query by query, so that each finds the processor's caches full of the others':\n\n{}",
        table(&turns, "pg_rag", None)
    );
    Ok(out)
}

/// Times every contender on all queries in a row, `rounds` times.
fn passes(contenders: &mut [Contender<'_>], queries: usize, rounds: usize) -> Result<Vec<Latency>> {
    let mut times = vec![Latency::default(); contenders.len()];
    for _ in 0..rounds {
        for (contender, times) in contenders.iter_mut().zip(&mut times) {
            for query in 0..queries {
                let started = Instant::now();
                (contender.work)(query)?;
                times.push(started.elapsed());
            }
        }
    }
    Ok(times)
}

/// A statement as a driver keeps it from one call to the next.
fn prepared(client: &mut Client, sql: &str) -> Result<Statement> {
    client.prepare(sql).map_err(|e| db::sql(sql, &e))
}

fn ask(client: &mut Client, statement: &Statement, query: &str) -> Result<()> {
    client.query_one(statement, &[&query]).map(|_| ()).map_err(|e| db::sql(query, &e))
}

fn exists(client: &mut Client, sql: &str) -> Result<bool> {
    Ok(!client.query(sql, &[]).map_err(|e| db::sql("no catalog", &e))?.is_empty())
}

/// Writes the corpus as chunks and as the rival's table; says how long the index takes.
fn load(client: &mut Client, set: &Set) -> Result<String> {
    let failed = |e: postgres::Error| db::sql("could not load the corpus", &e);
    let (collection, source, document) = super::empty(client, ROOM)?;
    client
        .batch_execute("CREATE TEMP TABLE given (id bigint GENERATED ALWAYS AS IDENTITY, content text)")
        .map_err(failed)?;
    let mut rows = client.copy_in("COPY given (content) FROM STDIN").map_err(failed)?;
    for line in set.corpus()?.lines() {
        let line = line.map_err(|e| Error::io("corpus", &e))?;
        let line: Line = serde_json::from_str(&line).map_err(|e| Error::invalid(format!("corpus: {e}")))?;
        let text =
            format!("{} {}", line.title, line.text).trim().replace('\\', "\\\\").replace(['\n', '\t', '\r'], " ");
        writeln!(rows, "{text}").map_err(|e| Error::io("corpus", &e))?;
    }
    rows.finish().map_err(failed)?;
    client
        .batch_execute(
            "DROP TABLE IF EXISTS lexical_rival;
             CREATE TABLE lexical_rival AS SELECT id, content, to_tsvector('english', content) AS tsv FROM given ORDER BY id;
             CREATE INDEX ON lexical_rival USING gin (tsv) WITH (fastupdate = off);",
        )
        .map_err(failed)?;
    client
        .execute(
            "INSERT INTO rag.chunk (chunk_key, document_id, ordinal, content, content_sha256, token_count, collection_id,
                                    source_id, tsv, dl)
             SELECT gen_random_uuid(), $1 + r.id / $4, r.id - 1, r.content, sha256(''), 0, $2, $3, r.tsv,
                    coalesce((SELECT sum(cardinality(u.positions)) FROM unnest(r.tsv) u), 0)
               FROM lexical_rival r ORDER BY r.id",
            &[&document, &collection, &source, &(super::PASSAGES as i64)],
        )
        .map_err(failed)?;
    let started = Instant::now();
    client.execute("SELECT rag.reindex_lexical($1)", &[&NAME]).map_err(failed)?;
    let built = started.elapsed().as_secs_f64();
    client.execute("SELECT rag.compact($1)", &[&NAME]).map_err(failed)?;
    if exists(client, "SELECT FROM pg_available_extensions WHERE name = 'pg_textsearch'")? {
        client
            .batch_execute(
                "CREATE EXTENSION IF NOT EXISTS pg_textsearch;
                 CREATE INDEX lexical_rival_bm25 ON lexical_rival USING bm25 (content) WITH (text_config = 'english');",
            )
            .map_err(failed)?;
    }
    super::apart(client, &["VACUUM ANALYZE rag.chunk", "VACUUM ANALYZE lexical_rival", "CHECKPOINT"])?;
    let Status { postings, bytes, segments, .. } = super::status(client)?;
    Ok(format!(
        "The index from the stored `tsv`: {postings} postings in {built:.2} s ({:.2} million a second), {bytes} bytes ({:.2} a \
         posting), {segments} segment(s).",
        postings as f64 / built / 1e6,
        bytes as f64 / postings as f64
    ))
}
