// SPDX-License-Identifier: PostgreSQL

//! `rag.search` against a hybrid search written by hand.
//!
//! The rival is what a competent team writes today: a table with a tsvector under GIN and a vector under HNSW, two
//! common table expressions, reciprocal rank fusion in SQL (`eval/bench/hybrid.sql`). It works on a copy of the same
//! passages with the same vectors, so both answer from the same material. `ts_rank` is not BM25 (no idf, no length
//! normalisation), so the times stand beside the quality that each reaches; a fast wrong answer is no bargain.

use super::{Bench, Connect, Contender, interleave, table};
use crate::beir::{Qrels, Query};
use crate::db;
use crate::latency::Latency;
use postgres::Client;
use rag_core::metrics::{Metric, Ranking, evaluate};
use rag_core::{Error, Result};
use std::cell::RefCell;
use std::collections::BTreeMap;

const COPY: &str = include_str!("../../bench/copy.sql");
const HYBRID: &str = include_str!("../../bench/hybrid.sql");
const DROP: &str = "DROP SCHEMA IF EXISTS rag_bench CASCADE";

/// With few passages the planner prefers to scan all vectors; the name of a contender must say what it does.
const HNSW: &str = "SET hnsw.ef_search = 100; SET enable_seqscan = off";
const EXACT: &str = "SET enable_indexscan = off";

/// Results of each search, enough for nDCG@10.
const TOP_K: i32 = 10;

/// One way of searching: its statement, and settings of its session.
struct Searcher {
    name: &'static str,
    session: &'static str,
    sql: String,
}

fn searchers() -> Vec<Searcher> {
    let ours = |settings: &str| {
        format!(
            "SELECT d.external_id, s.rank::int8 FROM rag.search($1, top_k => $4, collection => $3, profile => 'rrf',
                 settings => '{settings}', query_embedding => $2::text::vector) s
             JOIN rag.documents d ON d.id = s.document_id ORDER BY s.rank"
        )
    };
    // Any word may match, or a question of ten words finds nothing; `plainto_tsquery` alone wants all of them.
    let any = "replace(plainto_tsquery('english', $1)::text, '&', '|')::tsquery";
    let all = "plainto_tsquery('english', $1)";
    let theirs = |words: &str| HYBRID.replace("{words}", words);
    vec![
        Searcher { name: "rag.search", session: "", sql: ours("{}") },
        Searcher { name: "rag.search, exact", session: "", sql: ours(r#"{"exact": true}"#) },
        Searcher { name: "SQL, HNSW, any word", session: HNSW, sql: theirs(any) },
        Searcher { name: "SQL, exact, any word", session: EXACT, sql: theirs(any) },
        Searcher { name: "SQL, HNSW, all words", session: HNSW, sql: theirs(all) },
    ]
}

type Found = RefCell<BTreeMap<String, Ranking<String>>>;

/// The comparison as Markdown.
pub fn measure(connect: Connect<'_>, request: &Bench, queries: &[Query], qrels: &Qrels) -> Result<String> {
    let mut setup = connect()?;
    let passages = copy(&mut setup, &request.collection)?;
    let measured = compete(connect, &mut setup, request, queries, qrels);
    let dropped = setup.batch_execute(DROP).map_err(|e| db::sql("could not drop the copy", &e));
    let rows = measured?;
    dropped?;
    Ok(format!(
        "## Hybrid search against hand-written SQL\n\n{}\n{passages} passages, top_k {TOP_K}, 100 candidates of each leg. The \
         query's vector is given to all, so no inference is\ntimed. *any word* joins the words of the question with OR, \
         *all words* is what plainto_tsquery does by itself.\n",
        table(&rows, "rag.search", Some("nDCG@10"))
    ))
}

/// Copies the collection's passages; returns how many.
fn copy(client: &mut Client, collection: &str) -> Result<i64> {
    let failed = |e: postgres::Error| db::sql("could not copy the passages", &e);
    client.batch_execute(DROP).map_err(failed)?;
    client.batch_execute("CREATE SCHEMA rag_bench").map_err(failed)?;
    let dimensions: i32 = client
        .query_one(
            "SELECT m.dimensions FROM rag.collection c JOIN rag.model m ON m.id = c.model_id WHERE c.name = $1",
            &[&collection],
        )
        .map_err(failed)?
        .get(0);
    // A statement of several commands takes no parameters.
    let literal: String = client.query_one("SELECT quote_literal($1::text)", &[&collection]).map_err(failed)?.get(0);
    let sql = COPY.replace("{dimensions}", &dimensions.to_string()).replace("{collection}", &literal);
    client.batch_execute(&sql).map_err(failed)?;
    let count: i64 = client.query_one("SELECT count(*) FROM rag_bench.passage", &[]).map_err(failed)?.get(0);
    if count == 0 {
        return Err(Error::invalid(format!("collection \"{collection}\" has no embedded chunk")));
    }
    Ok(count)
}

type Row = (String, Latency, Option<f64>);

fn compete(
    connect: Connect<'_>,
    setup: &mut Client,
    request: &Bench,
    queries: &[Query],
    qrels: &Qrels,
) -> Result<Vec<Row>> {
    let vectors = embed(setup, &request.collection, queries)?;
    let searchers = searchers();
    let found: Vec<Found> = searchers.iter().map(|_| Found::default()).collect();
    let mut contenders = Vec::new();
    for (searcher, found) in searchers.iter().zip(&found) {
        contenders.push(contender(connect, searcher, &request.collection, queries, &vectors, found)?);
    }
    let times = interleave(&mut contenders, queries.len(), request.rounds)?;
    drop(contenders);
    let ndcg = |found: Found| evaluate(&found.into_inner(), qrels, &[Metric::Ndcg(10)])[0].mean;
    let rows = searchers.into_iter().zip(times).zip(found);
    Ok(rows.map(|((searcher, time), found)| (searcher.name.to_owned(), time, Some(ndcg(found)))).collect())
}

fn contender<'a>(
    connect: Connect<'_>,
    searcher: &Searcher,
    collection: &'a str,
    queries: &'a [Query],
    vectors: &'a [String],
    found: &'a Found,
) -> Result<Contender<'a>> {
    let name = searcher.name;
    let failed = move |e: postgres::Error| db::sql(name, &e);
    let mut client = connect()?;
    // hnsw.* exists once pgvector's library is loaded.
    client.batch_execute("SELECT '[1]'::vector").map_err(failed)?;
    client.batch_execute(searcher.session).map_err(failed)?;
    let statement = client.prepare(&searcher.sql).map_err(failed)?;
    let work = move |at: usize| {
        let query = &queries[at];
        let rows = client.query(&statement, &[&query.text, &vectors[at], &collection, &TOP_K]).map_err(failed)?;
        let results = rows.iter().filter_map(|row| {
            let rank = u32::try_from(row.get::<_, i64>(1)).ok()?;
            Some((rank, row.get::<_, Option<String>>(0)?))
        });
        found.borrow_mut().insert(query.id.clone(), Ranking::from_ranks(results));
        Ok(())
    };
    Ok(Contender { name: name.to_owned(), work: Box::new(work) })
}

/// The queries' vectors in pgvector's text form.
fn embed(client: &mut Client, collection: &str, queries: &[Query]) -> Result<Vec<String>> {
    let failed = |e: postgres::Error| db::sql("could not embed the queries", &e);
    let statement = client
        .prepare(
            "SELECT rag.embed_query($1, m.name)::text FROM rag.collection c JOIN rag.model m ON m.id = c.model_id
             WHERE c.name = $2",
        )
        .map_err(failed)?;
    let vector = |query: &Query| Ok(client.query_one(&statement, &[&query.text, &collection]).map_err(failed)?.get(0));
    queries.iter().map(vector).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sql_has_every_parameter_and_no_hole() {
        for searcher in searchers() {
            for parameter in ["$1", "$2", "$3", "$4"] {
                assert!(searcher.sql.contains(parameter), "{} has no {parameter}", searcher.name);
            }
            assert!(!searcher.sql.contains("{words}"), "{}", searcher.sql);
        }
        // Beside the operator it would be parsed for every row.
        let statement: Vec<&str> = HYBRID.lines().filter(|l| !l.starts_with("--")).collect();
        assert_eq!(statement.join("\n").matches("$2").count(), 1, "the vector is read more than once");
        for hole in ["{dimensions}", "{collection}"] {
            assert!(COPY.contains(hole), "{hole}");
        }
    }
}
