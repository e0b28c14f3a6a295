// SPDX-License-Identifier: PostgreSQL

//! The experiments on one question set, as JSON: what the functions of the database returned.

use crate::db;
use postgres::Client;
use postgres::types::ToSql;
use rag_core::Result;
use serde_json::{Value, json};

/// Each leg, and both ways to fuse them.
const STAGES: [(&str, &str); 4] = [
    ("E1 dense", r#"{"mode": "dense"}"#),
    ("E2 bm25", r#"{"mode": "bm25"}"#),
    ("E3 rrf", r#"{"mode": "hybrid", "fusion": "rrf"}"#),
    ("E3 convex", r#"{"mode": "hybrid", "fusion": "convex"}"#),
];

/// The same as the reference baselines: all vectors compared.
const EXACT: [(&str, &str); 3] = [
    ("dense", r#"{"mode": "dense", "exact": true}"#),
    ("bm25", r#"{"mode": "bm25"}"#),
    ("hybrid", r#"{"mode": "hybrid", "fusion": "rrf", "exact": true}"#),
];

/// Which variant is held against which.
const PAIRS: [(&str, &str); 4] =
    [("E1 dense", "E2 bm25"), ("E1 dense", "E3 rrf"), ("E2 bm25", "E3 rrf"), ("E3 rrf", "E3 convex")];

const RRF_K: &str = "[10, 20, 40, 60, 100, 200]";
const CANDIDATE_K: &str = "[5, 10, 20, 50, 100, 200]";

type Args<'a> = &'a [&'a (dyn ToSql + Sync)];

/// The rows of a statement as JSON objects.
fn rows(client: &mut Client, sql: &str, args: Args<'_>) -> Result<Vec<Value>> {
    let sql = format!("SELECT to_jsonb(r) FROM ({sql}) r");
    let rows = client.query(&sql, args).map_err(|e| db::sql("could not measure", &e))?;
    Ok(rows.iter().map(|row| row.get(0)).collect())
}

fn one(client: &mut Client, sql: &str, args: Args<'_>) -> Result<Value> {
    Ok(rows(client, sql, args)?.into_iter().next().unwrap_or(Value::Null))
}

/// All experiments on the question set, and the collection, of a name.
pub fn set(client: &mut Client, name: &str, quick: bool) -> Result<Value> {
    let mut set = one(
        client,
        "SELECT count(*) FILTER (WHERE q.answerable) AS questions, count(*) FILTER (WHERE NOT q.answerable) AS unanswerable,
                (SELECT count(*) FROM rag.documents d WHERE d.collection = $1) AS documents,
                (SELECT sum(d.chunks) FROM rag.documents d WHERE d.collection = $1) AS passages
           FROM rag.question q JOIN rag.question_set s ON s.id = q.set_id WHERE s.name = $1",
        &[&name],
    )?;
    set["name"] = json!(name);
    let stages = variants(client, name, &STAGES)?;
    let exact = variants(client, name, &EXACT)?;
    let run = |variant: &str| -> i64 {
        let found = stages.iter().find(|stage| stage["variant"] == variant);
        found.and_then(|stage| stage["run_id"].as_i64()).unwrap_or_default()
    };
    let (both, convex) = (run("E3 rrf"), run("E3 convex"));
    let mut differences = Vec::new();
    for (first, second) in PAIRS {
        let sql =
            "SELECT $1 AS first, $2 AS second, c.* FROM rag.compare($3, $4, '{nDCG@10}') c WHERE c.stratum IS NULL";
        differences.push(one(client, sql, &[&first, &second, &run(first), &run(second)])?);
    }
    set["complementarity"] = json!(rows(client, "SELECT * FROM rag.complementarity($1)", &[&both])?);
    set["strata"] = json!(rows(
        client,
        "SELECT r.name AS variant, m.stratum, m.value, m.questions FROM rag.run_summary m JOIN rag.run r ON r.id = m.run_id
          WHERE m.run_id = ANY ($1) AND m.stage = 'final' AND m.metric = 'nDCG@10' AND m.stratum IS NOT NULL ORDER BY 2, 1",
        &[&STAGES.map(|(variant, _)| run(variant)).to_vec()],
    )?);
    set["diagnosis"] =
        json!(rows(client, "SELECT * FROM rag.diagnose($1, $2) d WHERE d.question IS NULL", &[&name, &both])?);
    set["repeated"] = one(
        client,
        "SELECT count(DISTINCT u.id) AS documents FROM rag.near_duplicates($1) d, unnest(ARRAY[d.first_id, d.second_id]) AS u (id)",
        &[&name],
    )?;
    set["losses"] = json!(rows(
        client,
        "SELECT f.lost_by, count(*) AS gold,
                count(*) FILTER (WHERE EXISTS (SELECT FROM jsonb_array_elements(f.displaced_by) b
                                                WHERE b ->> 'role' IN ('navigation', 'reference', 'metadata'))) AS behind_structure
           FROM rag.forensics($1) f GROUP BY 1 ORDER BY 2 DESC, 1",
        &[&both],
    )?);
    if !quick {
        for (setting, values) in [("rrf_k", RRF_K), ("candidate_k", CANDIDATE_K)] {
            let values: Value = serde_json::from_str(values).unwrap_or_default();
            let sql = "SELECT s.*, rag.drop_run(s.run_id) FROM rag.sweep($1, $2, $3) s";
            set[setting] = json!(rows(client, sql, &[&name, &setting, &values])?);
        }
        set["tuned"] = json!(rows(client, "SELECT * FROM rag.tune($1) t WHERE t.fold IS NULL", &[&both])?);
        set["tuned_by"] = json!(rows(
            client,
            "SELECT v.method, t.* FROM (VALUES ('rrf', '{\"fusion\": [\"rrf\"]}'::jsonb), ('convex', '{\"fusion\": [\"convex\"]}')) v (method, grid),
                    rag.tune($1, v.grid) t WHERE t.fold IS NULL",
            &[&convex],
        )?);
    }
    set["stages"] = json!(stages);
    set["exact"] = json!(exact);
    set["differences"] = json!(differences);
    Ok(set)
}

/// Runs of variants with all their metrics and times.
fn variants(client: &mut Client, name: &str, variants: &[(&str, &str)]) -> Result<Vec<Value>> {
    let mut measured = Vec::new();
    for (variant, settings) in variants {
        let settings: Value = serde_json::from_str(settings).unwrap_or_default();
        let run: i64 = client
            .query_one("SELECT rag.evaluate($1, settings => $2, name => $3)", &[&name, &settings, &variant])
            .map_err(|e| db::sql(&format!("could not evaluate \"{name}\""), &e))?
            .get(0);
        measured.push(one(
            client,
            "SELECT $2 AS variant, r.id AS run_id, r.p50_ms, r.p95_ms, r.abstention_auc,
                    (SELECT jsonb_object_agg(m.metric, m.value) FROM rag.run_summary m
                      WHERE m.run_id = r.id AND m.stage = 'final' AND m.stratum IS NULL) AS metrics
               FROM rag.runs r WHERE r.id = $1",
            &[&run, variant],
        )?);
    }
    Ok(measured)
}
