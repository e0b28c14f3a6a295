// SPDX-License-Identifier: PostgreSQL

//! Versions: an upgraded database is like a fresh one, and nothing outlives DROP EXTENSION.

use postgres::Client;
use rag_server_tests::bm25;
use rag_server_tests::{Cluster, Failure, TestResult, project, with_bare_cluster};
use std::fs;
use std::path::PathBuf;

/// The version that was frozen first.
const FIRST: &str = "0.1.0";

/// Everything that belongs to the extension, as text that says what it is and not only that it is there. The order of a
/// table's columns is left out: a column that was added stands last.
const OBJECTS: &str = "
    WITH member AS (SELECT d.classid, d.objid FROM pg_depend d JOIN pg_extension e ON e.oid = d.refobjid
                     WHERE d.refclassid = 'pg_extension'::regclass AND d.deptype = 'e' AND e.extname = 'pg_rag'),
         relation AS (SELECT c.* FROM pg_class c JOIN member m ON m.objid = c.oid AND m.classid = 'pg_class'::regclass)
    SELECT 'object ' || pg_describe_object(classid, objid, 0) || ' / ' || coalesce(obj_description(objid, (SELECT relname
             FROM pg_class WHERE oid = classid)), '') FROM member
    UNION ALL SELECT format('column %s.%s %s %s %s / %s', r.relname, a.attname, format_type(a.atttypid, a.atttypmod),
             a.attnotnull, pg_get_expr(d.adbin, d.adrelid), col_description(r.oid, a.attnum))
      FROM relation r JOIN pg_attribute a ON a.attrelid = r.oid AND a.attnum > 0 AND NOT a.attisdropped
      LEFT JOIN pg_attrdef d ON d.adrelid = r.oid AND d.adnum = a.attnum WHERE r.relkind IN ('r', 'v')
    UNION ALL SELECT format('relation %s %s %s %s', relname, relkind, relrowsecurity, relacl) FROM relation
    UNION ALL SELECT format('constraint %s %s %s', r.relname, k.conname, pg_get_constraintdef(k.oid))
      FROM relation r JOIN pg_constraint k ON k.conrelid = r.oid
    UNION ALL SELECT pg_get_indexdef(i.indexrelid) FROM relation r JOIN pg_index i ON i.indrelid = r.oid
    UNION ALL SELECT format('policy %s %s %s %s %s %s', p.polname, p.polrelid::regclass, p.polcmd,
             pg_get_expr(p.polqual, p.polrelid), pg_get_expr(p.polwithcheck, p.polrelid), obj_description(p.oid, 'pg_policy'))
      FROM relation r JOIN pg_policy p ON p.polrelid = r.oid
    UNION ALL SELECT format('%s %s', pg_get_functiondef(p.oid), p.proacl)
      FROM member m JOIN pg_proc p ON p.oid = m.objid AND m.classid = 'pg_proc'::regclass
    UNION ALL SELECT format('view %s %s %s', r.relname, r.reloptions, pg_get_viewdef(r.oid)) FROM relation r WHERE relkind = 'v'
    UNION ALL SELECT format('%s / %s', pg_get_triggerdef(t.oid), obj_description(t.oid, 'pg_trigger'))
      FROM relation r JOIN pg_trigger t ON t.tgrelid = r.oid WHERE NOT t.tgisinternal
    UNION ALL SELECT format('index %s / %s', i.indexrelid::regclass, obj_description(i.indexrelid, 'pg_class'))
      FROM relation r JOIN pg_index i ON i.indrelid = r.oid
    UNION ALL SELECT 'row ' || to_jsonb(m)::text FROM rag.model m UNION ALL SELECT 'row ' || (to_jsonb(c) - 'created_at')::text
      FROM rag.collection c UNION ALL SELECT 'row ' || (to_jsonb(p) - 'created_at')::text FROM rag.profile p
    UNION ALL SELECT format('dumped %s %s', t.c::regclass, t.w)
      FROM pg_extension e, unnest(e.extconfig, e.extcondition) AS t (c, w) WHERE e.extname = 'pg_rag'
    ORDER BY 1";

fn objects(client: &mut Client) -> TestResult<Vec<String>> {
    Ok(client.query(OBJECTS, &[])?.iter().map(|row| row.get(0)).collect())
}

/// The frozen script, where the server finds it; removed at the end.
struct Frozen(PathBuf);

impl Frozen {
    fn install(cluster: &Cluster) -> TestResult<Self> {
        let output = cluster.program("pg_config").arg("--sharedir").output()?;
        let folder = PathBuf::from(String::from_utf8_lossy(&output.stdout).trim()).join("extension");
        let name = format!("pg_rag--{FIRST}.sql");
        let to = folder.join(&name);
        fs::copy(project().join("sql/install").join(name), &to)?;
        Ok(Self(to))
    }
}

impl Drop for Frozen {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

#[test]
fn an_upgrade_gives_the_objects_of_a_fresh_installation_and_keeps_the_data() -> TestResult {
    with_bare_cluster(&[], |cluster| {
        let frozen = Frozen::install(cluster)?;
        let mut client = cluster.connect()?;
        client.batch_execute("CREATE EXTENSION pg_rag CASCADE")?;
        let fresh = objects(&mut client)?;
        assert!(fresh.len() > 200, "{} objects", fresh.len());
        client.batch_execute("DROP EXTENSION pg_rag")?;

        client.batch_execute(&format!("CREATE EXTENSION pg_rag VERSION '{FIRST}'"))?;
        assert_ne!(objects(&mut client)?, fresh, "the frozen version is the current one");
        // The new library says what is to be done, also to calls whose arguments have changed.
        let error = cluster.connect()?.batch_execute("SELECT * FROM rag.search('x', mode => 'bm25')").err();
        let error = error.as_ref().and_then(|e| e.as_db_error());
        let said =
            error.map(|e| (e.code().code(), e.hint().unwrap_or_default().contains("ALTER EXTENSION pg_rag UPDATE")));
        assert_eq!(said, Some(("55000", true)), "{error:?}");
        let error = cluster.connect()?.batch_execute("SELECT rag.add_source('a', 'markdown', '/srv/a')").err();
        assert!(error.is_some_and(|e| e.as_db_error().is_some()), "the session died");
        // Written by hand: the functions of the old version are not in the new library.
        client.batch_execute(
            "INSERT INTO rag.source (id, collection_id, name, kind, location, text_search_config)
                  VALUES (7, 1, 'old', 'inline', '', 'pg_catalog.english');
             INSERT INTO rag.document (id, source_id, uri, media_type, content_sha256, options_sha256, parser_version)
                  VALUES (8, 7, 'a', 'text/plain', sha256('a'), sha256('b'), '1');
             INSERT INTO rag.chunk (id, chunk_key, document_id, ordinal, content, content_sha256, token_count, tsv, dl,
                                    collection_id, source_id)
                  VALUES (9, gen_random_uuid(), 8, 0, 'an ancient oak', sha256('c'), 3,
                          to_tsvector('english', 'an ancient oak'), 2, 1, 7)",
        )?;
        client.batch_execute("ALTER EXTENSION pg_rag UPDATE")?;
        let upgraded = objects(&mut client)?;
        let missing: Vec<&String> = fresh.iter().filter(|o| !upgraded.contains(o)).collect();
        let extra: Vec<&String> = upgraded.iter().filter(|o| !fresh.contains(o)).collect();
        assert!(missing.is_empty() && extra.is_empty(), "missing: {missing:#?}\nextra: {extra:#?}");
        let found: String =
            client.query_one("SELECT content FROM rag.search('ancient oaks', 1, mode => 'bm25')", &[])?.get(0);
        assert_eq!(found, "an ancient oak");
        // The index was not there; it says so, and is made when somebody asks.
        let state = |client: &mut Client| bm25::status(client, "default", "state || ' ' || documents");
        assert_eq!(state(&mut client)?, "missing 0");
        assert_eq!(client.query("SELECT * FROM rag.repair() WHERE action ~ 'lexical'", &[])?.len(), 1);
        assert_eq!(state(&mut client)?, "ready 1");
        let found = client.query("SELECT content FROM rag.search('ancient oaks', 1, mode => 'bm25')", &[])?;
        assert_eq!(found.len(), 1);
        drop(frozen);
        Ok(())
    })
}

#[test]
fn what_was_released_does_not_change() -> TestResult {
    let folder = project().join("sql/install");
    let sums = fs::read_to_string(folder.join("SHA256SUMS"))?;
    let mut seen = 0;
    for line in sums.lines() {
        let (sum, name) = line.split_once("  ").ok_or_else(|| Failure::new(format!("no checksum: {line}")))?;
        let found = rag_core::provenance::ContentHash::of(fs::read(folder.join(name))?);
        assert_eq!(format!("{found}"), sum, "{name} was changed");
        seen += 1;
    }
    let scripts = fs::read_dir(&folder)?.filter_map(Result::ok).filter(|e| e.file_name() != "SHA256SUMS").count();
    assert_eq!(seen, scripts, "every frozen script has a checksum");
    Ok(())
}

#[test]
fn dropping_the_extension_leaves_nothing_and_it_can_be_made_again() -> TestResult {
    with_bare_cluster(&[], |cluster| {
        let mut client = cluster.connect()?;
        client.batch_execute("CREATE EXTENSION vector")?;
        let count = "SELECT (SELECT count(*) FROM pg_class) + (SELECT count(*) FROM pg_proc) + (SELECT count(*) FROM pg_type)
              + (SELECT count(*) FROM pg_namespace) + (SELECT count(*) FROM pg_policy) + (SELECT count(*) FROM pg_depend)
              + (SELECT count(*) FROM pg_description) + (SELECT count(*) FROM pg_init_privs) + (SELECT count(*) FROM pg_constraint)";
        let things = |client: &mut Client| -> TestResult<i64> { Ok(client.query_one(count, &[])?.get(0)) };
        let before = things(&mut client)?;
        for _ in 0..2 {
            client.batch_execute("CREATE EXTENSION pg_rag")?;
            client.batch_execute("SELECT rag.create_collection('other')")?;
            for collection in ["default", "other"] {
                client.execute(
                    "SELECT * FROM rag.ingest('An oak is a tree.', 'oak', 'text', collection => $1)",
                    &[&collection],
                )?;
            }
            let found = client.query("SELECT uri FROM rag.search('trees')", &[])?;
            assert_eq!(found.len(), 1);
            client.batch_execute("DROP EXTENSION pg_rag CASCADE")?;
            assert_eq!(things(&mut client)?, before);
        }
        Ok(())
    })
}
