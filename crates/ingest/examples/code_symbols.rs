// SPDX-License-Identifier: PostgreSQL

//! Prints the symbols of source trees as JSON lines, or measures how fast they are parsed.
//!
//! `code_symbols symbols FOLDER…` prints one line for each chunk with a symbol and one for each file, and fails when a
//! character that is not white space is not in exactly one chunk; `chunks` prints all chunks with their text. `code_symbols speed FOLDER…` parses each file several times
//! and prints MB/s for each language, parsing alone and with chunking (tokens counted by their bytes, so no tokenizer is part of it).
#![allow(clippy::panic, clippy::unwrap_used, clippy::expect_used, reason = "a tool for measurements")]

use rag_core::document::Document;
use rag_core::source::{Chunking, SourceKind, SourceOptions};
use rag_core::tokens::TokenCounter;
use serde_json::{Map, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Four bytes a token.
struct Bytes;

impl TokenCounter for Bytes {
    fn count(&self, text: &str) -> usize {
        text.len().div_ceil(4)
    }

    fn offsets(&self, text: &str) -> Vec<(usize, usize)> {
        (0..text.len()).step_by(4).map(|at| (at, (at + 4).min(text.len()))).collect()
    }

    fn window(&self) -> usize {
        254
    }
}

fn files(folder: &Path, into: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return into.push(folder.to_owned());
    };
    let mut entries: Vec<PathBuf> = entries.map(|entry| entry.expect("entry").path()).collect();
    entries.sort();
    for path in entries {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_symlink() || name.starts_with('.') || name == "target" || name == "node_modules" {
            continue;
        }
        if path.is_dir() { files(&path, into) } else { into.push(path) }
    }
}

fn parse(path: &str, content: &[u8], chunking: Chunking) -> Document {
    let truncate = chunking == Chunking::None;
    let options = SourceOptions { chunking, truncate, ..SourceOptions::defaults(SourceKind::Code) };
    rag_ingest::parse_inline(SourceKind::Code, &options, path, content, &Map::new(), &Bytes).expect("a document")
}

/// Characters that are not white space and not in exactly one chunk.
fn uncovered(document: &Document) -> usize {
    let mut times = vec![0_u8; document.text.len()];
    for chunk in &document.chunks {
        let range = chunk.span.byte_start as usize..chunk.span.byte_end as usize;
        assert_eq!(chunk.content, document.text[range.clone()]);
        times[range].iter_mut().for_each(|time| *time = time.saturating_add(1));
    }
    document.text.char_indices().filter(|(at, c)| !c.is_whitespace() && times[*at] != 1).count()
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let mode = arguments.next().expect("symbols, chunks or speed");
    let speed = mode == "speed";
    let mut times: BTreeMap<String, (usize, usize, Duration, Duration)> = BTreeMap::new();
    for folder in arguments {
        let mut all = Vec::new();
        files(Path::new(&folder), &mut all);
        for file in all {
            let content = std::fs::read(&file).expect("readable");
            let path = file.strip_prefix(&folder).unwrap_or(&file).to_string_lossy().into_owned();
            let path = if path.is_empty() { folder.clone() } else { path };
            if rag_ingest::detect_kind(&path, &content) != SourceKind::Code {
                continue;
            }
            if speed {
                let took = |chunking| {
                    let run = || {
                        let start = Instant::now();
                        let document = parse(&path, &content, chunking);
                        (start.elapsed(), document)
                    };
                    (0..3).map(|_| run()).min_by_key(|(took, _)| *took).expect("a run")
                };
                let ((parsing, document), (chunking, _)) = (took(Chunking::None), took(Chunking::Structure));
                let entry = times.entry(document.language.unwrap_or_default()).or_default();
                *entry = (entry.0 + 1, entry.1 + content.len(), entry.2 + parsing, entry.3 + chunking);
                if parsing > Duration::from_millis(200) {
                    eprintln!("{path}: {} bytes in {parsing:?}", content.len());
                }
                continue;
            }
            let document = parse(&path, &content, Chunking::Structure);
            let missing = uncovered(&document);
            assert_eq!(missing, 0, "{path}: {missing} characters are not in exactly one chunk");
            let symbols = document.chunks.iter().filter(|chunk| chunk.facts.symbol.is_some()).count();
            println!(
                "{}",
                json!({"file": path, "language": document.language, "role": document.role, "bytes": content.len(),
                       "chunks": document.chunks.len(), "with_symbol": symbols})
            );
            for chunk in document.chunks.iter().filter(|_| mode == "chunks") {
                let head = format!("{:?} {:?}", chunk.facts.symbol, chunk.facts.symbol_kind);
                let (role, span) = (chunk.facts.role.as_deref().unwrap_or("-"), chunk.span);
                println!("== {head} {role} lines {}-{}", span.line_start, span.line_end);
                println!("{}\n--\n{}", chunk.context.as_deref().unwrap_or_default(), chunk.content);
            }
            for chunk in document.chunks.iter().filter(|_| mode == "symbols") {
                let Some(symbol) = &chunk.facts.symbol else { continue };
                println!(
                    "{}",
                    json!({"path": path, "symbol": symbol, "kind": chunk.facts.symbol_kind, "role": chunk.facts.role,
                           "from": chunk.span.line_start, "to": chunk.span.line_end, "language": document.language})
                );
            }
        }
    }
    let mut total = (0, 0, Duration::ZERO, Duration::ZERO);
    let rate = |bytes: usize, took: Duration| bytes as f64 / 1e6 / took.as_secs_f64().max(1e-9);
    for (language, (files, bytes, parsing, chunking)) in &times {
        let (a, b) = (rate(*bytes, *parsing), rate(*bytes, *chunking));
        println!("{language}\t{files} files\t{bytes} bytes\tparse {a:.2} MB/s\tparse and chunk {b:.2} MB/s");
        total = (total.0 + files, total.1 + bytes, total.2 + *parsing, total.3 + *chunking);
    }
    if speed {
        let (files, bytes, parsing, chunking) = total;
        let (a, b) = (rate(bytes, parsing), rate(bytes, chunking));
        println!("all\t{files} files\t{bytes} bytes\tparse {a:.2} MB/s\tparse and chunk {b:.2} MB/s");
    }
}
