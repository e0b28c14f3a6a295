// SPDX-License-Identifier: PostgreSQL

//! The project's fixtures through a server: what each kind comes to, and the same keys when a source is read from nothing again.

use postgres::Client;
use rag_server_tests::{TestResult, project, standin, with_cluster};
use serde_json::Value;
use std::collections::BTreeSet;

/// Symbols that the table counts in a file.
fn symbols(outcome: &str) -> i64 {
    let counted = outcome.split("; ").find_map(|part| part.split_once(" symbols in "));
    counted.and_then(|(count, _)| count.parse().ok()).unwrap_or(0)
}

/// What the last sync of a source says that it has, which must be what is stored: documents and chunks. Symbols and what
/// was looked at come back.
fn counts(client: &mut Client, source: &str) -> TestResult<[i64; 3]> {
    let sql = "SELECT y.documents, y.chunks, y.symbols, y.seen FROM rag.sync y
                 JOIN rag.source s ON s.id = y.source_id WHERE s.name = $1";
    let said = client.query_one(sql, &[&source])?;
    for (at, view) in ["rag.documents", "rag.chunks"].into_iter().enumerate() {
        let stored = client.query_one(&format!("SELECT count(*) FROM {view} WHERE source = $1"), &[&source])?;
        assert_eq!(said.get::<_, i64>(at), stored.get::<_, i64>(0), "{source}: {view}");
    }
    Ok([said.get(0), said.get(2), said.get(3)])
}

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
        let mut counted = 0;
        for (at, row) in table.lines().filter(|line| !line.starts_with('#')).enumerate().skip(1) {
            let fields: Vec<&str> = row.split('\t').collect();
            let (file, kind, outcome) = (fields[0], fields[1], fields[3]);
            let options: Value = serde_json::from_str(fields[2])?;
            let place = cluster.write(file, std::fs::read(fixtures.join(file))?)?.display().to_string();
            let name = format!("{at} {file}");
            let mut read = || -> TestResult<Result<[i64; 3], String>> {
                let add = "SELECT rag.add_source($1, $2, $3, $4, $5)";
                client.execute(add, &[&name, &kind, &place, &options, &standin::STANDIN])?;
                if let Err(error) = client.execute("CALL rag.sync($1)", &[&name]) {
                    return Ok(Err(error.as_db_error().map(|e| e.message().to_owned()).unwrap_or_default()));
                }
                counts(&mut client, &name).map(Ok)
            };
            match read()? {
                Err(message) => {
                    assert!(outcome.starts_with("refused, ") && outcome.ends_with(&message), "{name}: {message}")
                }
                Ok([documents, found, seen]) => {
                    let said = format!("{documents} of {seen}, ");
                    assert!(outcome.starts_with(&said), "{name}: {said} is not {outcome}");
                    assert_eq!(found, symbols(outcome), "{name}: symbols");
                    counted += found;
                    let first = keys(&mut client, &name)?;
                    client.execute("SELECT rag.drop_source($1)", &[&name])?;
                    let add = "SELECT rag.add_source($1, $2, $3, $4, $5)";
                    client.execute(add, &[&name, &kind, &place, &options, &standin::STANDIN])?;
                    client.execute("CALL rag.sync($1)", &[&name])?;
                    assert_eq!(first, keys(&mut client, &name)?, "{name}");
                    assert_eq!(counts(&mut client, &name)?, [documents, found, seen], "{name} read again");
                    stored += first.len();
                }
            }
        }
        assert!(stored > 200 && counted > 100, "{stored} chunks, {counted} symbols");
        assert_eq!(cluster.engine(&mut client)?.pid, engine, "the engine was restarted");
        Ok(())
    })
}
