// SPDX-License-Identifier: PostgreSQL

//! The BM25 leg against PostgreSQL's full text search: GIN and `ts_rank`, any word, the best hundred.
//!
//! Both answer the queries of a judged collection over the same rows with the same lexemes. `ts_rank` is not BM25; what is
//! compared is the time to a ranked hundred: on a table that holds nothing but texts, and on the passages themselves. Where
//! an index access method for BM25 is installed ([`peer`](crate::bench::peer)), it takes part. Statements are prepared and
//! planned for each query, without which GIN would be slower. With a command that restarts the server, all is measured once
//! more after a restart.

use super::{NAME, SEARCH, Status};
use crate::beir::Set;
use crate::bench::Bench;
use crate::bench::figure::{Figure, Table};
use crate::bench::peer::{self, Peers};
use crate::bench::turns::{Connect, Contender, Row, interleave, passes, table};
use crate::db;
use crate::latency::Latency;
use postgres::{Client, Statement};
use rag_core::{Error, Result};
use serde::Deserialize;
use std::io::{BufRead, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

#[derive(Deserialize)]
struct Line {
    #[serde(default)]
    title: String,
    text: String,
}

/// Passages that there are documents for.
const ROOM: u64 = 1_000_000;

/// A plan for any query would not use GIN as well.
const PLANNED: &str = "SET plan_cache_mode = force_custom_plan";

const GIN: &str = "SELECT count(*) FROM (
    SELECT k.id FROM lexical_rival k, (SELECT replace(plainto_tsquery('english', $1)::text, '&', '|')::tsquery AS q) q
     WHERE k.tsv @@ q.q ORDER BY ts_rank(k.tsv, q.q) DESC LIMIT 100) best";
const GIN_CHUNKS: &str = "SELECT count(*) FROM (
    SELECT k.id FROM rag.chunk k, (SELECT replace(plainto_tsquery('english', $1)::text, '&', '|')::tsquery AS q) q
     WHERE k.tsv @@ q.q AND k.current ORDER BY ts_rank(k.tsv, q.q) DESC LIMIT 100) best";

/// Measures it, in a database that is dropped afterwards.
pub fn measure(connect: Connect<'_>, request: &Bench, folder: &Path) -> Result<Figure> {
    let set = Set::open(folder)?;
    let judged = set.judged_queries("queries.jsonl", &set.qrels("qrels.tsv")?)?;
    let mut queries: Vec<String> = judged.into_iter().map(|q| q.text).collect();
    queries.truncate(request.queries.unwrap_or(usize::MAX));
    let mut client = connect()?;
    super::apart(&mut client, &["SET client_min_messages = warning"])?;
    let built = load(&mut client, &set)?;
    let peers = Peers::make(&mut client, "lexical_rival")?;
    super::apart(&mut client, &["VACUUM ANALYZE lexical_rival", "CHECKPOINT"])?;
    let mut figure = Figure::new(
        format!("The BM25 leg on {}", set.name()),
        format!(
            "{} queries, the best 100 of {} passages by prepared statements, {} rounds; milliseconds seen from a client on the same \
             machine. Each answers all queries in a row, and then all answer in turns, query by query, so that each finds the \
             processor's caches full of the others'.\n\n{built}",
            queries.len(),
            super::status(&mut client)?.documents,
            request.rounds
        ),
    );
    figure.tables.extend(named("Warm", times(connect, request, &queries, &peers)?));
    if let Some(command) = &request.restart {
        restart(command)?;
        figure.tables.extend(named("After a restart of the server", times(connect, request, &queries, &peers)?));
    }
    figure.notes.extend(peers.notes);
    Ok(figure)
}

/// The tables of all in a row and of all in turns.
fn named(title: &str, [row, turns]: [Vec<Row>; 2]) -> [Table; 2] {
    let table = |how: &str, rows| table(&format!("{title}, {how}"), rows, "pg_rag", &[]);
    [table("each in a row", row), table("in turns", turns)]
}

/// Runs the command that restarts the server. Its output is closed, because the server may keep it open.
fn restart(command: &str) -> Result<()> {
    let mut shell = Command::new("sh");
    shell.args(["-c", command]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    match shell.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(Error::invalid(format!("the server was not restarted ({status}): {command}"))),
        Err(error) => Err(Error::io("sh", &error)),
    }
}

/// The times of all contenders in new sessions: each in a row, and in turns.
fn times(connect: Connect<'_>, request: &Bench, queries: &[String], peers: &Peers) -> Result<[Vec<Row>; 2]> {
    // The first answers of a session read what later ones have kept.
    let mut first = Latency::default();
    let mut fresh = connect()?;
    let search = prepared(&mut fresh, SEARCH)?;
    for query in queries {
        let started = Instant::now();
        ask(&mut fresh, &search, query)?;
        first.push(started.elapsed());
    }
    let contender = |name: &str, settings: &str, sql: &str| -> Result<Contender<'_>> {
        let mut client = connect()?;
        let settings = format!("SET jit = off; {settings}");
        client.batch_execute(&settings).map_err(|e| db::sql("no setting", &e))?;
        let statement = prepared(&mut client, sql)?;
        Ok(Contender { name: name.to_owned(), work: Box::new(move |at| ask(&mut client, &statement, &queries[at])) })
    };
    let mut contenders = vec![
        contender("pg_rag", "", SEARCH)?,
        contender("GIN, ts_rank on a table of texts", PLANNED, GIN)?,
        contender("GIN, ts_rank on the passages", PLANNED, GIN_CHUNKS)?,
    ];
    for other in &peers.ready {
        let sql = format!("SELECT count(*) FROM ({}) best", other.best("lexical_rival"));
        contenders.push(contender(other.extension, &format!("{PLANNED}; {}", peer::SESSION), &sql)?);
    }
    let turns = interleave(&mut contenders, queries.len(), request.rounds)?;
    let row = passes(&mut contenders, queries.len(), request.rounds)?;
    let of = |times: Vec<Latency>| contenders.iter().zip(times).map(|(c, time)| (c.name.clone(), time, Vec::new()));
    let first = ("pg_rag, first answers of a session".to_owned(), first, Vec::new());
    Ok([std::iter::once(first).chain(of(row)).collect(), of(turns).collect()])
}

/// A statement as a driver keeps it from one call to the next.
fn prepared(client: &mut Client, sql: &str) -> Result<Statement> {
    client.prepare(sql).map_err(|e| db::sql(sql, &e))
}

fn ask(client: &mut Client, statement: &Statement, query: &str) -> Result<()> {
    client.query_one(statement, &[&query]).map(|_| ()).map_err(|e| db::sql(query, &e))
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
    super::apart(client, &["VACUUM ANALYZE rag.chunk"])?;
    let Status { postings, bytes, segments, .. } = super::status(client)?;
    Ok(format!(
        "The index from the stored `tsv`: {postings} postings in {built:.2} s ({:.2} million a second), {bytes} bytes ({:.2} a \
         posting), {segments} segment(s).",
        postings as f64 / built / 1e6,
        bytes as f64 / postings as f64
    ))
}
