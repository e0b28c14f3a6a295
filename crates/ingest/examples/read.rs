// SPDX-License-Identifier: PostgreSQL

//! Reads files of one kind and prints, for each, a line of JSON: its path, the seconds that it took, its stored text or
//! the error. For the scripts in `eval/oracle`, which compare with other readers.
//!
//! ```text
//! cargo run --release -p rag_ingest --example read -- article page.html other.html
//! ```

use rag_core::source::{SourceKind, SourceOptions};
use rag_core::tokens::WordCounter;
use serde_json::{Map, json};
use std::time::Instant;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let kind: SourceKind = arguments.next().unwrap_or_default().parse()?;
    let options = SourceOptions::defaults(kind);
    for path in arguments {
        let content = std::fs::read(&path)?;
        let start = Instant::now();
        let counter = WordCounter { window: 254 };
        let read = rag_ingest::parse_inline(kind, &options, &path, &content, &Map::new(), &counter);
        let seconds = start.elapsed().as_secs_f64();
        let line = match read {
            Ok(document) => json!({
                "path": path, "bytes": content.len(), "seconds": seconds, "title": document.title,
                "chunks": document.chunks.len(), "text": document.text,
            }),
            Err(failure) => {
                json!({ "path": path, "bytes": content.len(), "seconds": seconds, "error": failure.error.message })
            }
        };
        println!("{line}");
    }
    Ok(())
}
