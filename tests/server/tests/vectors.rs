// SPDX-License-Identifier: PostgreSQL

//! The vectors that SQL sees are the model's.

use rag_server_tests::{Failure, TestResult, data, with_cluster};

/// The example of the model's authors and its cosines as they publish them; no data file is needed for it.
const SENTENCES: [&str; 3] = ["The weather is lovely today.", "It's so sunny outside!", "He drove to the stadium."];
const COSINES: [(i32, i32, f64); 3] = [(1, 2, 0.6660), (1, 3, 0.1046), (2, 3, 0.1411)];
const MODEL: &str = "all-MiniLM-L6-v2";

#[test]
fn three_cosines_are_the_published_ones() -> TestResult {
    with_cluster(&[], |cluster| {
        let mut client = cluster.connect()?;
        let rows = client.query(
            "WITH e AS (SELECT ordinal, embedding FROM rag.embed($1, model => $2))
             SELECT a.ordinal, b.ordinal, 1 - (a.embedding <=> b.embedding), vector_dims(a.embedding)
               FROM e a JOIN e b ON a.ordinal < b.ordinal ORDER BY 1, 2",
            &[&SENTENCES.as_slice(), &MODEL],
        )?;
        assert_eq!(rows.len(), COSINES.len());
        for (row, (a, b, cosine)) in rows.iter().zip(COSINES) {
            assert_eq!((row.get::<_, i32>(0), row.get::<_, i32>(1), row.get::<_, i32>(3)), (a, b, 384));
            let measured: f64 = row.get(2);
            assert!((measured - cosine).abs() <= 0.002, "cosine of {a} and {b} is {measured}, not {cosine}");
        }
        Ok(())
    })
}

#[test]
fn the_reference_vectors_and_token_counts_are_met() -> TestResult {
    let Some(path) = data("embedding_reference.jsonl") else { return Ok(()) };
    let (mut texts, mut tokens, mut vectors) = (Vec::new(), Vec::new(), Vec::new());
    for line in std::fs::read_to_string(path)?.lines() {
        let record: serde_json::Value = serde_json::from_str(line)?;
        texts.push(record["text"].as_str().unwrap_or_default().to_owned());
        tokens.push(record["tokens"].as_i64().unwrap_or_default());
        let vector = record["vector"].as_array().ok_or_else(|| Failure::new("a record without a vector"))?;
        vectors.push(vector.iter().map(|x| x.as_f64().unwrap_or(f64::NAN)).collect::<Vec<f64>>());
    }
    assert_eq!(texts.len(), 64);
    with_cluster(&[], |cluster| {
        let mut client = cluster.connect()?;
        let rows = client.query(
            "SELECT ordinal, embedding::real[], rag.count_tokens($1[ordinal], $2)::int8
               FROM rag.embed($1, model => $2) ORDER BY ordinal",
            &[&texts, &MODEL],
        )?;
        assert_eq!(rows.len(), texts.len());
        for (at, row) in rows.iter().enumerate() {
            assert_eq!(row.get::<_, i32>(0), at as i32 + 1);
            let stored: Vec<f32> = row.get(1);
            assert_eq!(stored.len(), vectors[at].len());
            let distances = stored.iter().zip(&vectors[at]).map(|(a, b)| (f64::from(*a) - b).abs());
            let furthest = distances.fold(0.0, f64::max);
            assert!(furthest <= 1e-4, "vector of text {at} is {furthest:e} off: {:?}", texts[at]);
            // The reference counts what the model reads, so it stops at the window of 256.
            let counted: i64 = row.get(2);
            assert_eq!(counted.min(256), tokens[at], "tokens of text {at}: {:?}", texts[at]);
        }
        // One text at a time gives the same vector as all at once: batching must not be visible.
        let alone: f64 = client
            .query_one(
                "SELECT max(a.embedding <-> b.embedding) FROM rag.embed($1, model => $2) a,
                        LATERAL rag.embed(ARRAY[$1[a.ordinal]], model => $2) b",
                &[&texts, &MODEL],
            )?
            .get(0);
        assert!(alone <= 1e-4, "alone and together differ by {alone:e}");
        Ok(())
    })
}
