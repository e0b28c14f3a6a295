// SPDX-License-Identifier: PostgreSQL

//! A new name of a speaker or a title reaches every chunk, and is embedded anew only where `embed_template` contains it.

use postgres::Client;
use rag_server_tests::{Cluster, TestResult, standin, with_cluster};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// A chunk: its key, what it is called, and the vector that it has.
#[derive(Debug, Clone, PartialEq)]
struct Chunk {
    key: String,
    content: String,
    title: Option<String>,
    speaker: Option<String>,
    heading_path: Vec<String>,
    /// Hash of the embedded text, and the row that holds the vector: another row means that it was written again.
    vector: (Vec<u8>, String),
}

/// Chunks of a source by their ids, which a chunk keeps for as long as its content stays.
fn chunks(client: &mut Client, source: &str) -> TestResult<BTreeMap<i64, Chunk>> {
    let sql = "SELECT c.id, c.chunk_key::text, c.content, c.title, c.speaker, c.heading_path, e.text_sha256,
                      e.ctid::text || e.xmin::text
                 FROM rag.chunks c JOIN rag.chunk_embedding e ON e.chunk_id = c.id WHERE c.source = $1";
    let chunk = |row: &postgres::Row| Chunk {
        key: row.get(1),
        content: row.get(2),
        title: row.get(3),
        speaker: row.get(4),
        heading_path: row.get(5),
        vector: (row.get(6), row.get(7)),
    };
    Ok(client.query(sql, &[&source])?.iter().map(|row| (row.get(0), chunk(row))).collect())
}

fn sync(client: &mut Client, source: &str) -> TestResult<BTreeMap<i64, Chunk>> {
    client.execute("CALL rag.sync($1)", &[&source])?;
    let sql = "SELECT failed::int8, pending FROM rag.status WHERE source = $1";
    let row = client.query_one(sql, &[&source])?;
    assert_eq!((row.get::<_, i64>(0), row.get::<_, i64>(1)), (0, 0), "{source}");
    chunks(client, source)
}

/// How many chunks of a source are found by a word.
fn found(client: &mut Client, source: &str, word: &str) -> TestResult<usize> {
    let sql = "SELECT count(*) FROM rag.chunk k JOIN rag.source s ON s.id = k.source_id
                WHERE s.name = $1 AND k.tsv @@ plainto_tsquery('english', $2)";
    Ok(usize::try_from(client.query_one(sql, &[&source, &word])?.get::<_, i64>(0))?)
}

fn with_sources(test: impl FnOnce(&Cluster, &mut Client) -> TestResult) -> TestResult {
    with_cluster(&[], |cluster| {
        let mut client = cluster.connect()?;
        standin::collection(cluster, &mut client)?;
        test(cluster, &mut client)
    })
}

/// Adds a source over a file, in the collection of the stand-in.
fn add(client: &mut Client, cluster: &Cluster, kind: &str, file: &str, name: &str, options: &Value) -> TestResult {
    let place = cluster.files().join(file).display().to_string();
    let add = "SELECT rag.add_source($1, $2, $3, $4, $5)";
    client.execute(add, &[&name, &kind, &place, options, &standin::STANDIN])?;
    Ok(())
}

/// Chunks whose vector was written again.
fn embedded_anew(before: &BTreeMap<i64, Chunk>, after: &BTreeMap<i64, Chunk>) -> usize {
    after.iter().filter(|(id, chunk)| before.get(id).is_none_or(|old| old.vector != chunk.vector)).count()
}

/// Whether the same chunks are there: rows, keys and contents.
fn same_chunks(before: &BTreeMap<i64, Chunk>, after: &BTreeMap<i64, Chunk>) {
    let told = |chunks: &BTreeMap<i64, Chunk>| {
        chunks.iter().map(|(id, chunk)| (*id, chunk.key.clone(), chunk.content.clone())).collect::<Vec<_>>()
    };
    assert_eq!(told(before), told(after));
}

fn meeting(ann: &str) -> String {
    let turns: Vec<Value> = (0..12)
        .map(|at| {
            let speaker = if at % 2 == 0 { "a" } else { "b" };
            json!({"start": at, "end": at + 1, "speaker": speaker, "text": format!("Point {at} of the list.")})
        })
        .collect();
    json!({"id": "m", "title": "Budget", "speakers": {"a": ann, "b": "Bertram"}, "segments": turns}).to_string()
}

#[test]
fn a_renamed_speaker_reaches_every_turn() -> TestResult {
    with_sources(|cluster, client| {
        cluster.write("meeting.jsonl", meeting("Annabel"))?;
        add(client, cluster, "transcript", "meeting.jsonl", "usual", &json!({}))?;
        let named = json!({"embed_template": "{speaker}: {content}"});
        add(client, cluster, "transcript", "meeting.jsonl", "named", &named)?;
        let (usual, named) = (sync(client, "usual")?, sync(client, "named")?);
        assert_eq!((usual.len(), named.len()), (12, 12));

        cluster.write("meeting.jsonl", meeting("Clementine"))?;
        for (source, before, anew) in [("usual", &usual, 0), ("named", &named, 6)] {
            let after = sync(client, source)?;
            same_chunks(before, &after);
            let speaks = |name: &str| after.values().filter(|c| c.speaker.as_deref() == Some(name)).count();
            assert_eq!((speaks("Clementine"), speaks("Annabel"), speaks("Bertram")), (6, 0, 6), "{source}");
            assert_eq!(embedded_anew(before, &after), anew, "{source}");
            assert_eq!((found(client, source, "Clementine")?, found(client, source, "Annabel")?), (6, 0), "{source}");
        }
        let by_speaker =
            "SELECT count(*) FROM rag.search('point', 50, '{\"speaker\": \"Clementine\", \"source\": \"usual\"}',
                                                          collection => 'standin', mode => 'bm25')";
        assert_eq!(client.query_one(by_speaker, &[])?.get::<_, i64>(0), 6);
        Ok(())
    })
}

fn thread(title: &str) -> String {
    let answers: Vec<Value> = (0..5)
        .map(|at| json!({"id": at, "text": format!("Answer {at} says something else."), "author": "ann"}))
        .collect();
    json!({"id": "t", "title": title, "question": {"text": "It fails.", "author": "bob"}, "answers": answers})
        .to_string()
}

fn page(title: &str) -> String {
    let sections: String = (0..5).map(|at| format!("## Part {at}\n\nText of part {at}.\n\n")).collect();
    format!("---\ntitle: {title}\n---\nThe beginning.\n\n{sections}")
}

#[test]
fn a_renamed_title_reaches_every_chunk() -> TestResult {
    with_sources(|cluster, client| {
        for (kind, file, content) in
            [("forum", "thread.jsonl", thread as fn(&str) -> String), ("markdown", "page.md", page)]
        {
            let (usual, bare) = (format!("{kind} usual"), format!("{kind} bare"));
            cluster.write(file, content("Lighthouses"))?;
            add(client, cluster, kind, file, &usual, &json!({}))?;
            add(client, cluster, kind, file, &bare, &json!({"embed_template": "{content}"}))?;
            let before = [sync(client, &usual)?, sync(client, &bare)?];
            assert_eq!(before[0].len(), 6, "{kind}");
            cluster.write(file, content("Windmills"))?;
            for (source, before, anew) in [(&usual, &before[0], before[0].len()), (&bare, &before[1], 0)] {
                let after = sync(client, source)?;
                same_chunks(before, &after);
                assert!(after.values().all(|chunk| chunk.title.as_deref() == Some("Windmills")), "{source}: {after:?}");
                assert_eq!(embedded_anew(before, &after), anew, "{source}");
                assert_eq!(
                    (found(client, source, "Windmills")?, found(client, source, "Lighthouses")?),
                    (6, 0),
                    "{source}"
                );
            }
        }
        Ok(())
    })
}

#[test]
fn a_renamed_heading_reaches_what_stands_beneath_it() -> TestResult {
    with_sources(|cluster, client| {
        let page = |heading: &str| {
            format!("# {heading}\n\nThe beginning.\n\n## One\n\nText of one.\n\n## Two\n\nText of two.\n")
        };
        cluster.write("page.md", page("Lighthouses"))?;
        add(client, cluster, "markdown", "page.md", "usual", &json!({}))?;
        add(client, cluster, "markdown", "page.md", "bare", &json!({"embed_template": "{content}"}))?;
        let before = [sync(client, "usual")?, sync(client, "bare")?];
        cluster.write("page.md", page("Windmills"))?;
        // The chunk that holds the heading is another one; the two others keep their rows.
        for (source, before, anew) in [("usual", &before[0], 3), ("bare", &before[1], 1)] {
            let after = sync(client, source)?;
            assert_eq!(after.keys().filter(|id| before.contains_key(id)).count(), 2, "{source}");
            assert!(after.values().all(|chunk| chunk.title.as_deref() == Some("Windmills")), "{source}");
            assert!(after.values().all(|chunk| chunk.heading_path[0] == "Windmills"), "{source}");
            assert_eq!(embedded_anew(before, &after), anew, "{source}");
            assert_eq!(
                (found(client, source, "Windmills")?, found(client, source, "Lighthouses")?),
                (3, 0),
                "{source}"
            );
        }
        Ok(())
    })
}
