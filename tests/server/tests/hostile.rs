// SPDX-License-Identifier: PostgreSQL

//! Documents that take more time, memory or space than they may, or are no documents: each costs itself, and nobody else
//! in its folder, in the database or in the engine. That a worker which crashes or turns against the engine costs no more
//! is shown in `crates/engine/tests/hostile.rs`: no document is known that makes today's parsers do so.

use postgres::Client;
use rag_server_tests::{TestResult, with_cluster};
use serde_json::{Value, json};
use std::collections::BTreeMap;

fn add(client: &mut Client, name: &str, kind: &str, place: &str, options: &Value) -> TestResult {
    let options = options.to_string();
    client.execute("SELECT rag.add_source($1, $2, $3, $4::text::jsonb)", &[&name, &kind, &place, &options])?;
    client.batch_execute(&format!("CALL rag.sync('{name}')"))?;
    Ok(())
}

#[test]
fn a_hostile_document_costs_itself_only() -> TestResult {
    with_cluster(&["pg_rag.parse_memory_limit = '768MB'"], |cluster| {
        let mut client = cluster.connect()?;
        client.batch_execute("SELECT * FROM rag.ingest('A calm lake in the morning.', 'calm', 'text')")?;
        let engine = cluster.engine(&mut client)?;
        let backends = cluster.backends(&mut client)?;

        // Time.
        cluster.write("time/long.md", "word ".repeat(8 << 20))?;
        cluster.write("time/fine.md", "# Fine\n\nA brook in the forest.\n")?;
        // Size of what comes out.
        let above: String = (1..=5).map(|level| format!("{} {}\n", "#".repeat(level), "🦀".repeat(500))).collect();
        cluster.write("flood/flood.md", format!("{above}{}", "###### a\n".repeat(2200)))?;
        cluster.write("flood/fine.md", "# Fine\n\nA brook in the forest.\n")?;
        // Memory and nesting, each in a record.
        let record = |id: &str, more: &str| format!("{{\"text\": \"A brook.\", \"id\": \"{id}\"{more}}}\n");
        let memory = record("memory", &format!(", \"m\": [{}0]", "[0],".repeat(3 << 20)));
        let deep = record("deep", &format!(", \"m\": {}{}", "[".repeat(1 << 20), "]".repeat(1 << 20)));
        cluster.write("records.jsonl", format!("{memory}{}{deep}{}", record("one", ""), record("two", "")))?;
        // What is no text at all.
        cluster.write(
            "noise/noise.md",
            (0..1 << 20).map(|i: u32| (i.wrapping_mul(2_654_435_761) >> 13) as u8).collect::<Vec<_>>(),
        )?;
        cluster.write("noise/fine.md", "# Fine\n\nA brook in the forest.\n")?;

        let place = |name: &str| cluster.files().join(name).display().to_string();
        add(&mut client, "time", "markdown", &place("time"), &json!({"limits": {"max_seconds": 1}}))?;
        let slow = json!({"embed_template": "{content}", "limits": {"max_seconds": 600}});
        add(&mut client, "flood", "markdown", &place("flood"), &slow)?;
        add(&mut client, "records", "jsonl", &place("records.jsonl"), &json!({}))?;
        add(&mut client, "noise", "markdown", &place("noise"), &json!({}))?;

        let sql = "SELECT i.uri, i.state, i.error FROM rag.sync_item i JOIN rag.sync y ON y.id = i.sync_id";
        let items: BTreeMap<String, (String, Option<String>)> =
            client.query(sql, &[])?.iter().map(|r| (r.get(0), (r.get(1), r.get(2)))).collect();
        for (uri, part) in [
            ("long.md", "took longer than 1 s"),
            ("flood.md", "gave more than"),
            ("records.jsonl#memory", "ran out of memory"),
            ("records.jsonl#deep", "is not valid JSON"),
        ] {
            let (state, error) = &items[uri];
            let error = error.as_deref().unwrap_or_default();
            assert!(state == "failed" && error.contains(part), "{uri}: {state}, {error}");
        }
        for uri in ["fine.md", "records.jsonl#one", "records.jsonl#two", "noise.md"] {
            assert_eq!(items[uri].0, "new", "{uri}: {:?}", items[uri].1);
        }
        assert_eq!(cluster.engine(&mut client)?.pid, engine.pid, "the engine was restarted");
        assert_eq!(cluster.backends(&mut client)?, backends);
        let found: String = client.query_one("SELECT uri FROM rag.search('calm lake', 1)", &[])?.get(0);
        assert_eq!(found, "calm");
        Ok(())
    })
}
