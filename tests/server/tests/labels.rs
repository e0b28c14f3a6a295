// SPDX-License-Identifier: PostgreSQL

//! Two roles with different labels: whatever either calls, it learns nothing of what is the other's.

use postgres::{Client, SimpleQueryMessage};
use rag_server_tests::chaos::Chance;
use rag_server_tests::{Failure, TestResult, with_cluster};

const CALLS: usize = 500;

/// Words that stand in one side's documents, names and places only.
const SECRETS: [(&str, &str); 2] = [("red", "crimsonwort"), ("blue", "cobaltine")];

/// Rights as docs/security.md gives them to those who bring content in.
const RIGHTS: &str = "
    CREATE ROLE worker;
    GRANT USAGE ON SCHEMA rag TO worker;
    GRANT SELECT ON ALL TABLES IN SCHEMA rag TO worker;
    GRANT INSERT, UPDATE, DELETE ON rag.source, rag.document, rag.chunk, rag.chunk_embedding, rag.sync, rag.sync_item TO worker;
    GRANT INSERT, UPDATE ON rag.job TO worker;
    GRANT INSERT, UPDATE, DELETE ON rag.question_set, rag.question, rag.gold, rag.run, rag.run_question, rag.run_list,
        rag.run_metric TO worker;
    GRANT USAGE ON ALL SEQUENCES IN SCHEMA rag TO worker;
    GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA rag TO worker;
    GRANT EXECUTE ON ALL PROCEDURES IN SCHEMA rag TO worker;
    CREATE ROLE red LOGIN IN ROLE worker;
    CREATE ROLE blue LOGIN IN ROLE worker;
    INSERT INTO rag.acl VALUES ('red', 'red'), ('blue', 'blue')";

/// Everything a statement answers, errors included, as one text.
fn answer(client: &mut Client, statement: &str) -> String {
    match client.simple_query(statement) {
        Ok(messages) => messages
            .iter()
            .filter_map(|message| match message {
                SimpleQueryMessage::Row(row) => {
                    Some((0..row.len()).filter_map(|i| row.get(i)).collect::<Vec<_>>().join("\t"))
                }
                _ => None,
            })
            .collect::<Vec<_>>()
            .join("\n"),
        Err(error) => match error.as_db_error() {
            Some(e) => format!("{} {:?} {:?} {:?}", e.message(), e.detail(), e.hint(), e.where_()),
            None => format!("{error:?}"),
        },
    }
}

/// A random call of one public function.
fn call_of(function: &str, chance: &mut Chance, ids: &[i64]) -> TestResult<String> {
    let query = *chance.pick(&QUERIES);
    let id = *chance.pick(ids);
    let source = *chance.pick(&SOURCES);
    let set = *chance.pick(&["red-questions", "blue-questions", "open-questions"]);
    Ok(match function {
        "search" => {
            let settings = *chance.pick(&["{}", r#"{"exact": true}"#, r#"{"dense_weight": 0.1}"#]);
            let filter = *chance.pick(&[
                "{}",
                r#"{"source": ["red-notes", "blue-notes"]}"#,
                r#"{"uri": "**"}"#,
                r#"{"metadata.k": 1}"#,
            ]);
            let mode = *chance.pick(&["hybrid", "dense", "bm25"]);
            format!(
                "SELECT * FROM rag.search('{query}', 100, '{filter}', mode => '{mode}', settings => '{settings}', candidate_k => 200)"
            )
        }
        "embed" => format!("SELECT ordinal FROM rag.embed(ARRAY['{query}'])"),
        "embed_query" => format!("SELECT rag.embed_query('{query}') IS NOT NULL"),
        "count_tokens" => format!("SELECT rag.count_tokens('{query}')"),
        "health" => "SELECT * FROM rag.health()".to_owned(),
        "repair" => "SELECT * FROM rag.repair()".to_owned(),
        "compact" => "SELECT rag.compact()".to_owned(),
        "lexical_state" => format!("SELECT rag.lexical_state({id}, 'chunk')"),
        "reindex_lexical" => "SELECT rag.reindex_lexical()".to_owned(),
        "rrf" => format!("SELECT * FROM rag.rrf('[[{id}]]')"),
        "retry" => format!("SELECT rag.retry({id})"),
        "terms" => format!("SELECT rag.terms('{query}')"),
        "sync" => format!("CALL rag.sync('{source}')"),
        "sync_begin" => format!("SELECT rag.sync_begin('{source}')"),
        "sync_list" => format!("SELECT rag.sync_list({id})"),
        "sync_batch" => format!("SELECT rag.sync_batch({id})"),
        "sync_fail" => format!("SELECT rag.sync_fail({id}, 'because')"),
        "enqueue_sync" => format!("SELECT rag.enqueue_sync('{source}')"),
        "ingest" => match chance.below(2) {
            0 => format!("SELECT * FROM rag.ingest('{query}', 'shared{}', 'text')", chance.below(3)),
            _ => format!("SELECT * FROM rag.ingest('{query}'::bytea, 'bytes{}', 'text')", chance.below(3)),
        },
        "add_source" => format!("SELECT rag.add_source('{source}', 'markdown', '/srv/{source}')"),
        "alter_source" => match chance.below(2) {
            0 => format!("SELECT rag.alter_source('{source}', authority => 0.5)"),
            _ => format!("SELECT rag.alter_source('{source}', acl => current_user)"),
        },
        // What is there must stay for the calls that follow.
        "drop_source" => format!("SELECT rag.drop_source('{source}x')"),
        "create_collection" => "SELECT rag.create_collection('default')".to_owned(),
        "drop_collection" => "SELECT rag.drop_collection('default')".to_owned(),
        "create_question_set" => format!("SELECT rag.create_question_set('{set}')"),
        "drop_question_set" => format!("SELECT rag.drop_question_set('{set}x')"),
        "import_questions" => {
            let uri = *chance.pick(&["crimsonwort0.md", "cobaltine0.md", "open"]);
            let gold = r#"[{"id": "one", "text": "garden", "gold": [{"uri": "%"}]}]"#.replace('%', uri);
            format!("SELECT rag.import_questions('{set}', '{gold}'::jsonb)")
        }
        "evaluate" => format!("SELECT rag.evaluate('{set}', settings => '{{\"mode\": \"bm25\"}}')"),
        "sweep" => format!("SELECT * FROM rag.sweep('{set}', 'rrf_k', '[1, 2]')"),
        "ablate" => format!("SELECT * FROM rag.ablate('{set}', '{{\"one\": {{\"mode\": \"bm25\"}}}}')"),
        "tune" => format!("SELECT * FROM rag.tune({id} % 6)"),
        "reproducibility" => format!("SELECT * FROM rag.reproducibility('{set}', 2)"),
        "diagnose" => format!("SELECT * FROM rag.diagnose('{set}', nullif({id} % 6, 0))"),
        "near_duplicates" => "SELECT * FROM rag.near_duplicates(resemblance => 0.1, unit => 'chunk')".to_owned(),
        "drop_run" => format!("SELECT rag.drop_run({id} + 1000)"),
        "compare" => format!("SELECT * FROM rag.compare({id} % 6, 1 + {id} % 5, force => true)"),
        "report" => match chance.below(2) {
            0 => format!("SELECT rag.report({id} % 6)"),
            _ => format!("SELECT rag.report({id} % 6, 1 + {id} % 5)"),
        },
        "complementarity" => format!("SELECT * FROM rag.complementarity({id} % 6)"),
        "forensics" => format!("SELECT * FROM rag.forensics({id} % 6, 1)"),
        "search_many" => format!("SELECT * FROM rag.search_many(ARRAY['{query}', 'garden'], 100, mode => 'bm25')"),
        "set_profile" => format!("SELECT rag.set_profile('labelled', '{{\"rrf_k\": {}}}', 'rrf')", 1 + id % 7),
        "drop_profile" => "SELECT rag.drop_profile('labelled')".to_owned(),
        "diff_profiles" => "SELECT * FROM rag.diff_profiles('labelled')".to_owned(),
        "profile_settings" => "SELECT rag.profile_settings('labelled')".to_owned(),
        "export_profiles" => "SELECT rag.export_profiles()".to_owned(),
        "import_profiles" => {
            r#"SELECT * FROM rag.import_profiles('{"name": "labelled", "settings": {"mode": "bm25"}}')"#.to_owned()
        }
        "load_model" => "SELECT rag.load_model('x', 'embedding', 'nowhere')".to_owned(),
        other => return Err(Failure::new(format!("there is no call of rag.{other} here: write one"))),
    })
}

const QUERIES: [&str; 6] = ["a plant in the garden", "cure of fever", "wort", "ine", "secret recipe", "e"];
const SOURCES: [&str; 6] = ["garden", "red-notes", "blue-notes", "inline", "re", "blu"];

/// The call of that number: every function once, then searches and reads above all.
fn call(
    number: usize,
    chance: &mut Chance,
    ids: &[i64],
    functions: &[String],
    relations: &[String],
) -> TestResult<String> {
    if let Some(function) = functions.get(number) {
        return call_of(function, chance, ids);
    }
    Ok(match chance.below(10) {
        0..=4 => call_of("search", chance, ids)?,
        5 => format!("SELECT * FROM {} t LIMIT 1000", chance.pick(relations)),
        6 => format!(
            "SELECT t.* FROM {} t, rag.chunks c WHERE t::text ILIKE '%' || c.title || '%'",
            chance.pick(relations)
        ),
        _ => {
            let function = chance.pick(functions).clone();
            call_of(&function, chance, ids)?
        }
    })
}

#[test]
fn nothing_of_the_other_label_is_shown() -> TestResult {
    with_cluster(&[], |cluster| {
        let mut client = cluster.connect()?;
        client.batch_execute(RIGHTS)?;
        for (label, word) in SECRETS {
            for page in 0..8 {
                let text = format!(
                    "# The {word}\n\nA secret recipe: {word} is a plant in the garden, a cure of fever {page}.\n"
                );
                cluster.write(&format!("{label}/{word}{page}.md"), &text)?;
                client.execute(
                    "SELECT * FROM rag.ingest($1::text, $2, 'markdown', jsonb_build_object('k', 1, 'w', $3::text), acl => $4)",
                    &[&text, &format!("{word}-inline{page}"), &word, &label],
                )?;
            }
            let place = cluster.files().join(label).display().to_string();
            client.execute(
                "SELECT rag.add_source($1, 'markdown', $2, acl => $3, project => $4)",
                &[&format!("{label}-notes"), &place, &label, &word],
            )?;
            client.batch_execute(&format!("CALL rag.sync('{label}-notes')"))?;
        }
        client.batch_execute("SELECT * FROM rag.ingest('A plant in the garden for all.', 'open', 'text')")?;
        for (label, word) in SECRETS {
            let questions = format!(
                r#"[{{"id": "{word}", "text": "what does {word} cure", "strata": ["{word}"], "gold": [{{"uri": "{word}0.md", "quote": "The {word}"}}]}},
                    {{"id": "plants", "text": "garden", "gold": [{{"uri": "open", "quote": "A plant"}}]}}]"#
            );
            client.execute("SELECT rag.create_question_set($1 || '-questions', acl => $1)", &[&label])?;
            client.execute("SELECT rag.import_questions($1 || '-questions', $2::text)", &[&label, &questions])?;
            client.execute("SELECT rag.evaluate($1 || '-questions', name => $2)", &[&label, &word])?;
        }
        // A set of everybody's, which the owner has asked: its lists name chunks of both.
        client.batch_execute(
            r#"SELECT rag.create_question_set('open-questions');
               SELECT rag.import_questions('open-questions', '[{"id": "plants", "text": "garden", "gold": [{"uri": "open", "quote": "A plant"}]}]'::jsonb);
               SELECT rag.evaluate('open-questions')"#,
        )?;

        let names = |client: &mut Client, sql: &str| -> TestResult<Vec<String>> {
            Ok(client.query(sql, &[])?.iter().map(|row| row.get(0)).collect())
        };
        let sql =
            "SELECT DISTINCT proname::text FROM pg_proc WHERE pronamespace = 'rag'::regnamespace AND prokind IN ('f', 'p')
                      AND prorettype <> 'trigger'::regtype ORDER BY 1";
        let functions = names(&mut client, sql)?;
        let sql = "SELECT oid::regclass::text FROM pg_class WHERE relnamespace = 'rag'::regnamespace
                      AND relkind IN ('r', 'v') ORDER BY 1";
        let relations = names(&mut client, sql)?;
        assert!(functions.len() > 15 && relations.len() > 15, "{functions:?} {relations:?}");
        let sql = "SELECT max(id) FROM (SELECT id FROM rag.chunk UNION ALL SELECT id FROM rag.sync) i";
        let highest: i64 = client.query_one(sql, &[])?.get(0);
        let ids: Vec<i64> = (0..=highest).collect();

        for (index, (role, own)) in SECRETS.into_iter().enumerate() {
            let (_, other) = SECRETS[1 - index];
            let mut session = cluster.connect_as(role)?;
            let mut chance = Chance::new(index as u64 + 7);
            let mut own_seen = 0;
            for number in 0..CALLS {
                let statement = call(number, &mut chance, &ids, &functions, &relations)?;
                let answer = answer(&mut session, &statement);
                own_seen += usize::from(answer.contains(own));
                if answer.contains(other) {
                    return Err(Failure::new(format!("{role} asked: {statement}\nand saw: {answer}")));
                }
            }
            assert!(own_seen > CALLS / 4, "{role} saw its own in {own_seen} answers only");
        }
        // What they did to their own left the other's alone.
        for (label, _) in SECRETS {
            let sql = "SELECT count(*) FROM rag.chunk WHERE acl = $1";
            let chunks: i64 = client.query_one(sql, &[&label])?.get(0);
            assert_eq!(chunks, 16, "{label}");
        }
        Ok(())
    })
}
