// SPDX-License-Identifier: PostgreSQL

//! Real archives, named by hand: what is in them, and how long it takes. `eval/oracle/archives.py` makes some and says
//! what Python finds in them.
#![allow(clippy::expect_used, clippy::panic, reason = "a test may")]

mod support;

use rag_core::provenance::ContentHash;
use rag_core::source::{Content, SourceKind};
use serde_json::json;
use std::path::Path;
use std::time::Instant;

/// Members that are read against the order, each from the beginning of its archive.
const AGAINST: usize = 20;

#[test]
#[ignore = "needs ARCHIVES=a.zip:b.tar.gz"]
fn real_archives_are_read() {
    let Ok(archives) = std::env::var("ARCHIVES") else {
        eprintln!("skipped: ARCHIVES names no archives");
        return;
    };
    println!(
        "| archive | documents | failures | bytes | list s | read s | read against the order, s/member | parse and chunk s | chunks | digest |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|");
    for archive in archives.split(':') {
        let spec = support::spec(SourceKind::Zip, Path::new(archive), &json!({}));
        let start = Instant::now();
        let (items, failures) = support::list(&spec).expect("listing");
        let list = start.elapsed();
        let start = Instant::now();
        let contents: Vec<Content> = items.iter().map(|i| rag_ingest::fetch(&spec, i).expect("readable")).collect();
        let read = start.elapsed();
        let start = Instant::now();
        let against = items.iter().rev().take(AGAINST);
        let against = against.fold(0, |n, i| n + usize::from(rag_ingest::fetch(&spec, i).is_ok())).max(1);
        let against = start.elapsed().as_secs_f64() / against as f64;
        let start = Instant::now();
        let parse = |(item, content): (&rag_core::source::Item, &Content)| {
            rag_ingest::parse_listed(spec.kind, &spec.options, &item.uri, content, &support::COUNTER)
                .expect("a document")
        };
        let chunks: usize = items.iter().zip(&contents).map(|pair| parse(pair).chunks.len()).sum();
        let parsed = start.elapsed();
        let mut lines: Vec<String> = items
            .iter()
            .map(|item| {
                let (_, path) = item.uri.split_once("!/").expect("a member");
                format!("{path} {}\n", item.content_sha256.hex())
            })
            .collect();
        lines.sort();
        let name = archive.rsplit('/').next().unwrap_or(archive);
        println!(
            "| {name} | {} | {} | {} | {:.2} | {:.2} | {against:.4} | {:.2} | {chunks} | {:.12} |",
            items.len(),
            failures.len(),
            contents.iter().map(|content| content.bytes.len()).sum::<usize>(),
            list.as_secs_f64(),
            read.as_secs_f64(),
            parsed.as_secs_f64(),
            ContentHash::of(lines.concat()).hex(),
        );
        for failure in &failures {
            println!("{}", failure.error.message);
        }
    }
}
