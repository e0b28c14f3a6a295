// SPDX-License-Identifier: PostgreSQL

//! What a role may not see changes nothing of what it finds, and what a filter leaves out changes no score.

use postgres::Client;
use rag_server_tests::bm25::{self, check};
use rag_server_tests::chaos::Chance;
use rag_server_tests::{Cluster, TestResult, with_cluster};

const ROLES: &str = "
    CREATE ROLE red LOGIN; CREATE ROLE blue LOGIN; CREATE ROLE purple LOGIN IN ROLE red, blue; CREATE ROLE plain LOGIN;
    CREATE ROLE blind LOGIN; CREATE ROLE partial LOGIN;
    GRANT USAGE ON SCHEMA rag TO red, blue, plain, blind, partial;
    GRANT SELECT ON ALL TABLES IN SCHEMA rag TO red, blue, plain, blind, partial;
    GRANT EXECUTE ON FUNCTION rag.search, rag.lexical_state TO red, blue, plain, blind, partial;
    REVOKE SELECT ON rag.chunk FROM blind, partial;
    GRANT SELECT (id, content, collection_id, current, entry) ON rag.chunk TO partial;
    INSERT INTO rag.acl VALUES ('red', 'red'), ('blue', 'blue')";
const SEEING: [&str; 5] = ["postgres", "red", "blue", "purple", "plain"];
const LABELS: [Option<&str>; 5] = [None, Some("red"), Some("red"), Some("blue"), Some("green")];

/// Passages of all labels in several segments, some of them deleted, moved to another label or changed.
fn fill(client: &mut Client, chance: &mut Chance, id: i64) -> TestResult {
    for count in [300, 1, 40, 9] {
        client.batch_execute(&bm25::insert(chance, id, 0, count, &LABELS))?;
    }
    client.batch_execute(&format!(
        "DELETE FROM rag.chunk WHERE collection_id = {id} AND id % 7 = 1;
         UPDATE rag.chunk SET acl = 'red' WHERE collection_id = {id} AND id % 11 = 2;
         UPDATE rag.chunk SET acl = NULL WHERE collection_id = {id} AND id % 11 = 3;
         UPDATE rag.chunk SET line_start = id % 10, line_end = id % 10 WHERE collection_id = {id}"
    ))?;
    Ok(())
}

/// Every role finds what the formula gives over what it sees.
fn all_agree(cluster: &Cluster, chance: &mut Chance) -> TestResult {
    for role in SEEING {
        let mut session = cluster.connect_as(role)?;
        for _ in 0..10 {
            check(&mut session, "lex", &bm25::query(chance), 20)?;
        }
    }
    Ok(())
}

fn code_of(client: &mut Client, sql: &str) -> Option<String> {
    client.batch_execute(sql).err().and_then(|e| e.code().map(|c| c.code().to_owned()))
}

#[test]
fn counts_are_those_of_the_rows_a_role_sees() -> TestResult {
    with_cluster(&[], |cluster| {
        let mut client = cluster.connect()?;
        let chance = &mut Chance::new(4);
        client.batch_execute(ROLES)?;
        let id = bm25::collection(&mut client, "lex")?;
        fill(&mut client, chance, id)?;
        all_agree(cluster, chance)?;
        client.batch_execute("SELECT rag.compact()")?;
        all_agree(cluster, chance)?;

        // Who may not read passages is told so, and nothing else.
        let search = "SELECT * FROM rag.search('w1', collection => 'lex', mode => 'bm25')";
        for role in ["blind", "partial"] {
            let mut session = cluster.connect_as(role)?;
            assert_eq!(code_of(&mut session, search).as_deref(), Some("42501"), "{role}");
        }
        // What the view says of the index is true for who asks: nothing lacks where nothing is seen.
        let hidden = bm25::collection(&mut client, "hidden")?;
        client.batch_execute(&bm25::insert(chance, hidden, 0, 5, &[Some("green")]))?;
        for (role, state, documents) in
            [("postgres", "ready", "5"), ("plain", "ready", "0"), ("red", "ready", "0"), ("blind", "unused", "0")]
        {
            let mut session = cluster.connect_as(role)?;
            assert_eq!(bm25::status(&mut session, "hidden", "state")?, state, "{role}");
            assert_eq!(bm25::status(&mut session, "hidden", "documents")?, documents, "{role}");
        }
        client.batch_execute(&format!("DELETE FROM rag.chunk WHERE collection_id = {hidden}"))?;
        // A grant on all tables shows nobody the terms of others.
        for role in ["red", "plain", "blind"] {
            let mut session = cluster.connect_as(role)?;
            for table in ["lex_segment", "lex_shelf", "lex_page"] {
                assert!(session.query(&format!("SELECT * FROM rag.{table}"), &[])?.is_empty(), "{role} reads {table}");
            }
        }
        // A right that is taken away, or a label, is gone in a session that has searched before.
        let mut red = cluster.connect_as("red")?;
        check(&mut red, "lex", &["w0".into(), "w1".into()], 50)?;
        client.batch_execute("DELETE FROM rag.acl WHERE role = 'red'")?;
        check(&mut red, "lex", &["w0".into(), "w1".into()], 50)?;
        client.batch_execute("REVOKE SELECT ON rag.chunk FROM red")?;
        assert_eq!(code_of(&mut red, search).as_deref(), Some("42501"));
        client.batch_execute("GRANT SELECT ON rag.chunk TO red; INSERT INTO rag.acl VALUES ('red', 'red')")?;

        // An administrator's own policies, further ones or instead of ours.
        for (make, undo) in [
            (
                "CREATE POLICY mine ON rag.chunk AS RESTRICTIVE FOR SELECT USING (id % 3 > 0)",
                "DROP POLICY mine ON rag.chunk",
            ),
            ("CREATE POLICY mine ON rag.chunk FOR SELECT TO plain USING (id % 5 = 0)", "DROP POLICY mine ON rag.chunk"),
            (
                "ALTER POLICY labelled ON rag.chunk USING (id % 4 = 0)",
                "ALTER POLICY labelled ON rag.chunk USING (
                     acl IS NULL OR acl OPERATOR(pg_catalog.=) ANY (ARRAY(SELECT a.label FROM rag.acl a)))",
            ),
            ("ALTER POLICY labelled ON rag.chunk TO red", "ALTER POLICY labelled ON rag.chunk TO PUBLIC"),
            (
                "DROP POLICY labelled ON rag.chunk;
                 CREATE POLICY labelled ON rag.chunk AS PERMISSIVE FOR SELECT USING (id % 4 > 0)",
                "DROP POLICY labelled ON rag.chunk;
                 CREATE POLICY labelled ON rag.chunk USING (
                     acl IS NULL OR acl OPERATOR(pg_catalog.=) ANY (ARRAY(SELECT a.label FROM rag.acl a)))",
            ),
            ("ALTER TABLE rag.chunk DISABLE ROW LEVEL SECURITY", "ALTER TABLE rag.chunk ENABLE ROW LEVEL SECURITY"),
        ] {
            client.batch_execute(make)?;
            all_agree(cluster, chance).map_err(|e| rag_server_tests::Failure::new(format!("{make}: {e}")))?;
            client.batch_execute(undo)?;
        }
        all_agree(cluster, chance)
    })
}

/// A filter with its condition on a passage's row of SQL.
const FILTERS: [(&str, &str); 5] = [
    (r#"{"line": {"gte": 3, "lte": 3}}"#, "line_start = 3"),
    (r#"{"line": {"gte": 2}}"#, "line_start >= 2"),
    (r#"{"line": {"lt": 0}}"#, "false"),
    (r#"{"source": "lex"}"#, "true"),
    (r#"{"metadata.k": 7}"#, r#"metadata @> '{"k": 7}'"#),
];

fn filtered(cluster: &Cluster, chance: &mut Chance, rounds: usize) -> TestResult {
    for role in ["postgres", "red", "plain"] {
        let mut session = cluster.connect_as(role)?;
        for (filter, condition) in FILTERS {
            let sql = format!("SELECT id FROM rag.chunk WHERE {condition}");
            let eligible: std::collections::HashSet<i64> =
                session.query(&sql, &[])?.iter().map(|row| row.get(0)).collect();
            let all = bm25::passages(&mut session, "lex")?;
            for _ in 0..rounds {
                let (query, k) = (bm25::query(chance), *chance.pick(&[1, 10, 100]));
                let found = bm25::search(&mut session, "lex", &query, k, filter)?;
                bm25::same(&found, &bm25::scored(&all, |p| eligible.contains(&p.id), &query), k)
                    .map_err(|e| rag_server_tests::Failure::new(format!("{role}, {filter}, {query:?}: {e}")))?;
            }
        }
    }
    Ok(())
}

#[test]
fn a_filter_chooses_among_scores_that_all_passages_made() -> TestResult {
    with_cluster(&[], |cluster| {
        let mut client = cluster.connect()?;
        let chance = &mut Chance::new(11);
        client.batch_execute(ROLES)?;
        let id = bm25::collection(&mut client, "lex")?;
        fill(&mut client, chance, id)?;
        client.batch_execute("UPDATE rag.chunk SET metadata = '{\"k\": 7}' WHERE id % 50 = 0")?;
        filtered(cluster, chance, 5)?;
        // More eligible passages than are found before the search, of which the best by far are none.
        client.batch_execute(&format!(
            "INSERT INTO rag.chunk ({columns}, line_start, line_end)
             SELECT format('w%s:1 w%s:2,3 w0:%s', g % 7, g % 13, 4 + g % 5)::tsvector, 3 + g % 40, gen_random_uuid(), {id}, {id}, {id}, 0,
                    'c', sha256('c'), 1, CASE g % 9 WHEN 0 THEN 'red' END, true, 5, 5 FROM generate_series(1, 24000) g;
             INSERT INTO rag.chunk ({columns}, line_start, line_end)
             SELECT 'w0:1,2,3,4,5,6 w1:7,8,9'::tsvector, 2, gen_random_uuid(), {id}, {id}, {id}, 0,
                    'c', sha256('c'), 1, NULL, true, 0, 0 FROM generate_series(1, 900) g;
             ANALYZE rag.chunk",
            columns = bm25::COLUMNS
        ))?;
        filtered(cluster, chance, 2)
    })
}
