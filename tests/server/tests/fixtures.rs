// SPDX-License-Identifier: PostgreSQL

//! The project's fixtures through a server: what each kind comes to, and the same keys when a source is read from nothing again.

use postgres::Client;
use rag_server_tests::{TestResult, project, standin, with_cluster};
use serde_json::Value;
use std::collections::BTreeSet;

/// Keys of all chunks of a source.
fn keys(client: &mut Client, source: &str) -> TestResult<BTreeSet<String>> {
    let sql = "SELECT chunk_key::text FROM rag.chunks WHERE source = $1";
    Ok(client.query(sql, &[&source])?.iter().map(|row| row.get(0)).collect())
}

#[test]
fn every_fixture_is_stored_as_it_is_read_and_again_with_the_same_keys() -> TestResult {
    let fixtures = project().join("tests/fixtures");
    let table = std::fs::read_to_string(fixtures.join("EXPECTED.tsv"))?;
    with_cluster(&[], |cluster| {
        let mut client = cluster.connect()?;
        standin::collection(cluster, &mut client)?;
        let engine = cluster.engine(&mut client)?.pid;
        let mut stored = 0;
        for (at, row) in table.lines().enumerate().skip(1) {
            let fields: Vec<&str> = row.split('\t').collect();
            let (file, kind, outcome) = (fields[0], fields[1], fields[3]);
            let options: Value = serde_json::from_str(fields[2])?;
            let place = cluster.write(file, std::fs::read(fixtures.join(file))?)?.display().to_string();
            let name = format!("{at} {file}");
            let mut read = || -> TestResult<Result<(i64, i64), String>> {
                let add = "SELECT rag.add_source($1, $2, $3, $4, $5)";
                client.execute(add, &[&name, &kind, &place, &options, &standin::STANDIN])?;
                if let Err(error) = client.execute("CALL rag.sync($1)", &[&name]) {
                    return Ok(Err(error.as_db_error().map(|e| e.message().to_owned()).unwrap_or_default()));
                }
                let sql = "SELECT y.documents, y.seen FROM rag.sync y JOIN rag.source s ON s.id = y.source_id WHERE s.name = $1";
                let row = client.query_one(sql, &[&name])?;
                Ok(Ok((row.get(0), row.get(1))))
            };
            match read()? {
                Err(message) => {
                    assert!(outcome.starts_with("refused, ") && outcome.ends_with(&message), "{name}: {message}")
                }
                Ok((documents, seen)) => {
                    let counts = format!("{documents} of {seen}, ");
                    assert!(outcome.starts_with(&counts), "{name}: {counts} is not {outcome}");
                    let first = keys(&mut client, &name)?;
                    client.execute("SELECT rag.drop_source($1)", &[&name])?;
                    let add = "SELECT rag.add_source($1, $2, $3, $4, $5)";
                    client.execute(add, &[&name, &kind, &place, &options, &standin::STANDIN])?;
                    client.execute("CALL rag.sync($1)", &[&name])?;
                    assert_eq!(first, keys(&mut client, &name)?, "{name}");
                    stored += first.len();
                }
            }
        }
        assert!(stored > 200, "{stored} chunks");
        assert_eq!(cluster.engine(&mut client)?.pid, engine, "the engine was restarted");
        Ok(())
    })
}
