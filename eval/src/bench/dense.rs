// SPDX-License-Identifier: PostgreSQL

//! The dense leg of `rag.search` against pgvector by hand.
//!
//! Both answer from the same vectors in half precision, by an HNSW index that was made with the same settings and is scanned
//! with the same `ef_search`, and by scanning all. What `rag.search` does besides (rights, current versions, the text and
//! place of each result) is its price. Recall is told against the exact answers of the hand-written SQL, for all, so it also
//! shows whether the exact answers agree.

use super::Bench;
use super::figure::{Figure, Kind, number};
use super::hybrid::{EXACT, HNSW};
use super::judged::Judged;
use super::turns::{Connect, Contender, Row, interleave, table};
use crate::db;
use postgres::Client;
use postgres::types::ToSql;
use rag_core::Result;
use std::cell::RefCell;

/// Results of each search.
const TOP_K: i32 = 10;

/// Name, settings of the session, and statement of those who take part. The last one is what recall is told against.
fn searchers() -> [(&'static str, &'static str, String); 4] {
    // 100 candidates are an ef_search of 100.
    let ours = |settings: &str| {
        format!(
            "SELECT s.chunk_id FROM rag.search('question', top_k => $3, collection => $2, mode => 'dense', candidate_k => 100,
                 settings => '{settings}', query_embedding => $1::text::vector) s ORDER BY s.rank"
        )
    };
    // The vector is read from its text once, and not for every row.
    let theirs = "WITH question AS MATERIALIZED (SELECT $1::text::halfvec AS vector)
                  SELECT p.id FROM rag_bench.passage p WHERE $2::text IS NOT NULL
                   ORDER BY p.embedding <=> (SELECT vector FROM question) LIMIT $3::int4";
    [
        ("rag.search", "", ours("{}")),
        ("rag.search, exact", "", ours(r#"{"exact": true}"#)),
        ("SQL, HNSW", HNSW, theirs.to_owned()),
        ("SQL, exact", EXACT, theirs.to_owned()),
    ]
}

/// The results of each question.
type Found = RefCell<Vec<Vec<i64>>>;

/// Measures it.
pub fn measure(connect: Connect<'_>, request: &Bench, judged: &Judged) -> Result<Figure> {
    let (passages, rows) = judged
        .with_copy(&mut connect()?, |setup, passages| Ok((passages, compete(connect, setup, request, judged)?)))?;
    let mut figure = Figure::new(
        "The dense leg against pgvector by hand",
        format!(
            "{} questions of {}, {passages} passages, {} rounds, query by query in turns; the vector is given, the best {TOP_K}, \
             `hnsw.ef_search` 100; milliseconds seen from a client on the same machine. Recall is told against *SQL, exact*.",
            judged.queries.len(),
            judged.set.name(),
            request.rounds
        ),
    );
    figure.tables.push(table("", rows, "SQL, HNSW", &[("recall@10", Kind::Score)]));
    Ok(figure)
}

fn compete(connect: Connect<'_>, setup: &mut Client, request: &Bench, judged: &Judged) -> Result<Vec<Row>> {
    let vectors = judged.vectors(setup)?;
    let searchers = searchers();
    let found: Vec<Found> = searchers.iter().map(|_| RefCell::new(vec![Vec::new(); vectors.len()])).collect();
    let mut contenders = Vec::new();
    for ((name, session, sql), found) in searchers.iter().zip(&found) {
        let failed = |e: postgres::Error| db::sql(name, &e);
        let mut client = connect()?;
        // hnsw.* exists once pgvector's library is loaded.
        client.batch_execute("SELECT '[1]'::vector").map_err(failed)?;
        client.batch_execute(session).map_err(failed)?;
        let statement = client.prepare(sql).map_err(failed)?;
        let vectors = &vectors;
        let work = move |at: usize| {
            let given: [&(dyn ToSql + Sync); 3] = [&vectors[at], &judged.collection, &TOP_K];
            let rows = client.query(&statement, &given).map_err(failed)?;
            found.borrow_mut()[at] = rows.iter().map(|row| row.get(0)).collect();
            Ok(())
        };
        contenders.push(Contender { name: (*name).to_owned(), work: Box::new(work) });
    }
    let times = interleave(&mut contenders, vectors.len(), request.rounds)?;
    drop(contenders);
    let found: Vec<Vec<Vec<i64>>> = found.into_iter().map(RefCell::into_inner).collect();
    let exact = found.last().cloned().unwrap_or_default();
    let rows = searchers.iter().zip(times).zip(&found);
    Ok(rows
        .map(|(((name, ..), time), found)| ((*name).to_owned(), time, vec![number(recall(found, &exact))]))
        .collect())
}

/// The mean share of the exact results that were found; `None` where nothing is to be found.
fn recall(found: &[Vec<i64>], exact: &[Vec<i64>]) -> Option<f64> {
    let asked: Vec<f64> = found
        .iter()
        .zip(exact)
        .filter(|(_, exact)| !exact.is_empty())
        .map(|(found, exact)| exact.iter().filter(|id| found.contains(id)).count() as f64 / exact.len() as f64)
        .collect();
    (!asked.is_empty()).then(|| asked.iter().sum::<f64>() / asked.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recall_is_a_mean_over_questions_and_knows_no_order() {
        let exact = [vec![1, 2], vec![3, 4], vec![]];
        assert_eq!(recall(&[vec![2, 1], vec![4, 9], vec![7]], &exact), Some(0.75));
        assert_eq!(recall(&[vec![1]], &[vec![]]), None);
    }

    #[test]
    fn all_take_the_same_parameters() {
        for (name, _, sql) in searchers() {
            assert!(["$1", "$2", "$3"].iter().all(|parameter| sql.matches(parameter).count() == 1), "{name}: {sql}");
        }
    }
}
