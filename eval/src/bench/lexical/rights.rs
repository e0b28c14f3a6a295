// SPDX-License-Identifier: PostgreSQL

//! What labels, policies and filters cost the BM25 leg, on an invented corpus.
//!
//! Ten labels share the passages. The owner sees all, a role sees one label, and another role is bound by a policy that the
//! index knows nothing of, so that every match is read. Each asks without a filter and with filters that few and many
//! passages pass.

use super::{NAME, growth};
use crate::bench::Bench;
use crate::bench::figure::{Figure, Kind, Table, number};
use crate::bench::turns::{Connect, Contender, interleave};
use crate::db;
use rag_core::Result;

/// Queries, unless it is said.
const QUERIES: usize = 200;

const LABELS: u64 = 10;

/// Who asks, and how he became that.
const CALLERS: [(&str, &str); 3] = [
    ("owner, all passages", "RESET ROLE"),
    ("role with one label of ten", "SET ROLE rag_bench_label"),
    ("role under a policy of its own", "SET ROLE rag_bench_policy"),
];

const ROLES: &str = "DO $$ BEGIN
       IF to_regrole('rag_bench_label') IS NULL THEN CREATE ROLE rag_bench_label; CREATE ROLE rag_bench_policy; END IF; END $$;
     GRANT USAGE ON SCHEMA rag TO rag_bench_label, rag_bench_policy;
     GRANT SELECT ON rag.chunk, rag.document, rag.source, rag.collection, rag.model, rag.profile, rag.acl
        TO rag_bench_label, rag_bench_policy;
     GRANT EXECUTE ON FUNCTION rag.search TO rag_bench_label, rag_bench_policy;
     DELETE FROM rag.acl WHERE role IN ('rag_bench_label', 'rag_bench_policy');
     INSERT INTO rag.acl (role, label) VALUES ('rag_bench_label', 'team3'), ('rag_bench_policy', 'team3');
     DROP POLICY IF EXISTS rag_bench ON rag.chunk;";
const POLICY: &str = "CREATE POLICY rag_bench ON rag.chunk AS RESTRICTIVE TO rag_bench_policy USING (token_count = 0)";

/// Measures it, in a database that is dropped afterwards.
pub fn measure(connect: Connect<'_>, request: &Bench) -> Result<Figure> {
    let chunks = request.size();
    let failed = |e: postgres::Error| db::sql("could not measure", &e);
    let mut client = connect()?;
    growth::load(&mut client, chunks, &|number| Some(format!("team{}", number % LABELS)))?;
    client.execute("SELECT rag.compact($1)", &[&NAME]).map_err(failed)?;
    super::apart(
        &mut client,
        &["CREATE INDEX IF NOT EXISTS chunk_tsv ON rag.chunk USING gin (tsv)", "VACUUM ANALYZE"],
    )?;
    client.batch_execute(ROLES).map_err(failed)?;
    let queries = growth::queries(chunks, request.queries.unwrap_or(QUERIES));
    let mut figure = Figure::new(
        "The BM25 leg under labels, policies and filters",
        format!(
            "{chunks} invented chunks with ten labels, {} queries of 2 to 6 terms, the best 100; milliseconds seen from a client on \
             the same machine. The filter is a range of lines that so much of the collection passes.",
            queries.len()
        ),
    );
    let mut table = Table::new(
        "",
        &[
            ("caller", Kind::Text),
            ("filter passes", Kind::Text),
            ("p50", Kind::Milliseconds),
            ("p95", Kind::Milliseconds),
        ],
    );
    for (caller, role) in CALLERS {
        if role.ends_with("policy") {
            client.batch_execute(POLICY).map_err(failed)?;
        }
        for share in [None, Some(0.5), Some(0.01), Some(0.0001)] {
            let lines = share.map(|share: f64| (chunks as f64 * share) as u64);
            let filter = lines.map_or_else(|| "{}".to_owned(), |lines| format!("{{\"line\": {{\"lt\": {lines}}}}}"));
            let mut session = connect()?;
            session.batch_execute(role).map_err(failed)?;
            let work = |at: usize| {
                let sql =
                    "SELECT count(*) FROM rag.search($1, 1, $2::text::jsonb, 'lexical', 'bm25', candidate_k => 100)";
                session.query_one(sql, &[&queries[at], &filter]).map(|_| ()).map_err(|e| db::sql(&queries[at], &e))
            };
            let mut contenders = [Contender { name: caller.to_owned(), work: Box::new(work) }];
            let times = interleave(&mut contenders, queries.len(), 1)?;
            let passes = share.map_or_else(|| "all".to_owned(), |share| format!("{} %", share * 100.0));
            for time in times {
                let row = vec![caller.into(), passes.as_str().into(), number(time.p50()), number(time.p95())];
                table.rows.push(row);
            }
        }
    }
    let done = "DROP POLICY rag_bench ON rag.chunk; DROP OWNED BY rag_bench_label, rag_bench_policy;
                DELETE FROM rag.acl WHERE role IN ('rag_bench_label', 'rag_bench_policy');
                DROP ROLE rag_bench_label, rag_bench_policy";
    client.batch_execute(done).map_err(failed)?;
    figure.tables.push(table);
    Ok(figure)
}
