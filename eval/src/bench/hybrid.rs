// SPDX-License-Identifier: PostgreSQL

//! `rag.search` against a hybrid search written by hand.
//!
//! The rival is what a competent team writes today: a table with a tsvector under GIN and a vector under HNSW, two
//! common table expressions, reciprocal rank fusion in SQL (`eval/bench/hybrid.sql`). It works on a copy of the same
//! passages with the same vectors, so both answer from the same material. `ts_rank` is not BM25 (no idf, no length
//! normalisation), so the times stand beside the quality that each reaches; a fast wrong answer is no bargain. Extensions
//! that have BM25 take the place of `ts_rank` where the server has them ([`super::peer`]).

use super::Bench;
use super::figure::{Figure, Kind, number};
use super::judged::Judged;
use super::peer::{self, Peers};
use super::turns::{Connect, Contender, Row, interleave, table};
use crate::db;
use postgres::Client;
use postgres::types::ToSql;
use rag_core::Result;
use rag_core::metrics::{Metric, Ranking, evaluate};
use std::cell::RefCell;
use std::collections::BTreeMap;

const HYBRID: &str = include_str!("../../bench/hybrid.sql");

/// With few passages the planner prefers to scan all vectors; the name of a contender must say what it does.
pub(super) const HNSW: &str = "SET hnsw.ef_search = 100; SET enable_seqscan = off";
pub(super) const EXACT: &str = "SET enable_indexscan = off";

/// The best hundred by `ts_rank`.
const TS_RANK: &str = "SELECT p.id, ts_rank(p.tsv, words) AS score FROM rag_bench.passage p, question
             WHERE p.tsv @@ words ORDER BY score DESC, p.id LIMIT 100";

/// Results of each search, enough for nDCG@10.
const TOP_K: i32 = 10;

/// One way of searching: its statement, and settings of its session.
struct Searcher {
    name: String,
    session: String,
    sql: String,
}

fn searchers(peers: &Peers) -> Vec<Searcher> {
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
    let statement: Vec<&str> = HYBRID.lines().filter(|line| !line.starts_with("--")).collect();
    let statement = statement.join("\n");
    let theirs = |words: &str, lexical: &str| statement.replace("{words}", words).replace("{lexical}", lexical);
    let searcher =
        |name: &str, session: &str, sql| Searcher { name: name.to_owned(), session: session.to_owned(), sql };
    let mut all = vec![
        searcher("rag.search", "", ours("{}")),
        searcher("rag.search, exact", "", ours(r#"{"exact": true}"#)),
        searcher("SQL, HNSW, any word", HNSW, theirs(any, TS_RANK)),
        searcher("SQL, exact, any word", EXACT, theirs(any, TS_RANK)),
        searcher("SQL, HNSW, all words", HNSW, theirs(all, TS_RANK)),
    ];
    all.extend(peers.ready.iter().map(|peer| Searcher {
        name: format!("SQL, HNSW, {}", peer.extension),
        session: format!("{HNSW}; {}", peer::SESSION),
        sql: theirs("NULL::tsquery", &peer.best("passage")),
    }));
    all
}

type Found = RefCell<BTreeMap<String, Ranking<String>>>;

/// Measures it.
pub fn measure(connect: Connect<'_>, request: &Bench, judged: &Judged) -> Result<Figure> {
    let (passages, rows, notes) = judged.with_copy(&mut connect()?, |setup, passages| {
        let peers = Peers::make(setup, "passage")?;
        let rows = compete(connect, setup, request, judged, &peers);
        let notes = peers.notes.clone();
        let dropped = peers.drop(setup);
        let rows = rows?;
        dropped.map(|()| (passages, rows, notes))
    })?;
    let mut figure = Figure::new(
        "Hybrid search against hand-written SQL",
        format!(
            "{} questions of {}, {passages} passages, {} rounds, query by query in turns; top_k {TOP_K}, 100 candidates of each \
             leg; milliseconds seen from a client on the same machine. The question's vector is given to all, so no inference \
             is timed. *Any word* joins the words of the question with OR, *all words* is what plainto_tsquery does by itself; \
             both are ranked by `ts_rank`.",
            judged.queries.len(),
            judged.set.name(),
            request.rounds
        ),
    );
    figure.tables.push(table("", rows, "rag.search", &[("nDCG@10", Kind::Score)]));
    figure.notes = notes;
    Ok(figure)
}

fn compete(
    connect: Connect<'_>,
    setup: &mut Client,
    request: &Bench,
    judged: &Judged,
    peers: &Peers,
) -> Result<Vec<Row>> {
    let vectors = judged.vectors(setup)?;
    let searchers = searchers(peers);
    let found: Vec<Found> = searchers.iter().map(|_| Found::default()).collect();
    let mut contenders = Vec::new();
    for (searcher, found) in searchers.iter().zip(&found) {
        contenders.push(contender(connect, searcher, judged, &vectors, found)?);
    }
    let times = interleave(&mut contenders, judged.queries.len(), request.rounds)?;
    drop(contenders);
    let ndcg = |found: Found| evaluate(&found.into_inner(), &judged.qrels, &[Metric::Ndcg(10)])[0].mean;
    let rows = searchers.into_iter().zip(times).zip(found);
    Ok(rows.map(|((searcher, time), found)| (searcher.name, time, vec![number(ndcg(found))])).collect())
}

fn contender<'a>(
    connect: Connect<'_>,
    searcher: &'a Searcher,
    judged: &'a Judged,
    vectors: &'a [String],
    found: &'a Found,
) -> Result<Contender<'a>> {
    let name = searcher.name.as_str();
    let failed = move |e: postgres::Error| db::sql(name, &e);
    let mut client = connect()?;
    // hnsw.* exists once pgvector's library is loaded.
    client.batch_execute("SELECT '[1]'::vector").map_err(failed)?;
    client.batch_execute(&searcher.session).map_err(failed)?;
    let statement = client.prepare(&searcher.sql).map_err(failed)?;
    let work = move |at: usize| {
        let query = &judged.queries[at];
        let given: [&(dyn ToSql + Sync); 4] = [&query.text, &vectors[at], &judged.collection, &TOP_K];
        let rows = client.query(&statement, &given).map_err(failed)?;
        let results = rows.iter().filter_map(|row| {
            let rank = u32::try_from(row.get::<_, i64>(1)).ok()?;
            Some((rank, row.get::<_, Option<String>>(0)?))
        });
        found.borrow_mut().insert(query.id.clone(), Ranking::from_ranks(results));
        Ok(())
    };
    Ok(Contender { name: name.to_owned(), work: Box::new(work) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sql_has_every_parameter_and_no_hole() {
        let mut peers = Peers::default();
        peers.ready.extend(Peers::known());
        assert_eq!(searchers(&peers).len(), 5 + peers.ready.len());
        for searcher in searchers(&peers) {
            for parameter in ["$1", "$2", "$3", "$4"] {
                assert!(searcher.sql.contains(parameter), "{} has no {parameter}", searcher.name);
            }
            assert!(!searcher.sql.contains("{words}") && !searcher.sql.contains("{lexical}"), "{}", searcher.sql);
        }
        // Beside the operator it would be parsed for every row.
        let once = |searcher: &Searcher| searcher.sql.matches("$2").count() == 1;
        assert!(searchers(&peers).iter().all(once), "the vector is read more than once");
    }
}
