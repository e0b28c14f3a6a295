// SPDX-License-Identifier: PostgreSQL

//! After a restart of the server a search works again without any action.

use rag_server_tests::{Failure, Mode, TestResult, with_cluster};

type Row = (String, i64, String);

#[test]
fn search_works_after_every_kind_of_restart() -> TestResult {
    with_cluster(&[], |cluster| {
        let search = |client: &mut postgres::Client| -> TestResult<Vec<Row>> {
            let sql = "SELECT chunk_key::text, rank::int8, content FROM rag.search('planets with rings') ORDER BY rank";
            Ok(client.query(sql, &[])?.iter().map(|r| (r.get(0), r.get(1), r.get(2))).collect())
        };
        let mut client = cluster.connect()?;
        for text in ["Saturn is a planet with wide rings.", "Bees make honey.", "Jupiter is the largest planet."] {
            client.execute("SELECT * FROM rag.ingest($1::text, $2)", &[&text, &format!("{}.md", &text[..4])])?;
        }
        let before = search(&mut client)?;
        assert!(before.first().is_some_and(|(_, _, text)| text.contains("Saturn")), "{before:?}");
        for mode in [Mode::Fast, Mode::Immediate] {
            let engine = cluster.engine(&mut client)?;
            cluster.restart(mode)?;
            client = cluster.connect()?;
            assert_eq!(search(&mut client)?, before, "after a restart, mode {mode:?}");
            assert!(!engine.is_alive(), "the old engine outlived a stop, mode {mode:?}");
            assert_ne!(cluster.engine(&mut client)?.pid, engine.pid);
        }
        Ok(())
    })
}

#[test]
fn a_database_of_another_encoding_is_refused() -> TestResult {
    with_cluster(&[], |cluster| {
        for encoding in ["LATIN1", "SQL_ASCII", "EUC_JP"] {
            let create = format!("CREATE DATABASE other ENCODING '{encoding}' TEMPLATE template0 LOCALE 'C'");
            cluster.connect()?.batch_execute(&create)?;
            let mut client = cluster.connect_to("other")?;
            let error = client.batch_execute("CREATE EXTENSION pg_rag CASCADE").err();
            let error = error.as_ref().and_then(|e| e.as_db_error()).ok_or_else(|| Failure::new("no error"))?;
            assert_eq!(error.code().code(), "0A000");
            assert_eq!(
                error.message(),
                format!("database \"other\" has encoding \"{encoding}\", and pg_rag needs UTF8")
            );
            drop(client);
            cluster.connect()?.batch_execute("DROP DATABASE other")?;
        }
        Ok(())
    })
}
