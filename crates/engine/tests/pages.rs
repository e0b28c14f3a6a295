// SPDX-License-Identifier: PostgreSQL

//! A document of many pages costs no more memory and time than it may, and one of too many is refused.
// Clippy's leave for tests does not reach the functions that tests share.
#![allow(clippy::expect_used, clippy::panic)]

#[path = "../../ingest/tests/paper/mod.rs"]
mod paper;
mod support;

use rag_core::Kind;
use rag_core::document::Document;
use rag_core::protocol::{Reply, Request};
use rag_core::source::{Failure, SourceKind, SourceOptions, SourceSpec};
use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use support::reading::{children, list};
use support::{Engine, model};

const PAGES: usize = 1000;

/// Lines of a page; without optimisation the tokens of more take too long.
const LINES: usize = if cfg!(debug_assertions) { 15 } else { paper::LINES };

/// One more than `max_pages` allows by default.
const TOO_MANY: usize = 5001;

/// A worker's address space, in MB.
const MEMORY: usize = 1024;

fn paper(pages: usize, lines: usize) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("folder");
    std::fs::write(folder.path().join("paper.pdf"), paper::pdf(pages, lines)).expect("file");
    folder
}

/// A source with the default options, limits of time and pages included.
fn source(folder: &Path) -> SourceSpec {
    let location = folder.to_str().expect("UTF-8").to_owned();
    SourceSpec {
        kind: SourceKind::Pdf,
        allowed_paths: vec![location.clone()],
        location,
        options: SourceOptions::defaults(SourceKind::Pdf),
        allowed_hosts: Vec::new(),
        seen: None,
    }
}

/// What a worker of `MEMORY` made of the only file of a folder, and the most address space that it took, in kB.
fn read(folder: &Path) -> Option<(Result<Document, Failure>, u64)> {
    let model = model("all-MiniLM-L6-v2").or_else(|| model("all-MiniLM-L6-v2-int8"))?;
    let engine = Engine::start(&[], &["--parse-memory", &MEMORY.to_string()]);
    let mut client = engine.client();
    let source = source(folder);
    let (items, failures) = list(&mut client, &source);
    assert_eq!((items.len(), failures.len()), (1, 0));
    let Reply::Document(read) = client.ask(&Request::Read { source, items, model }) else { panic!("no document") };
    let peak = |pid: u32| {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("readable");
        let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
        let parser = field("Name:") == Some("pg_rag_parse");
        field("VmPeak:").and_then(|peak| peak.strip_suffix(" kB")?.parse::<u64>().ok()).filter(|_| parser)
    };
    let peak = children(&engine).into_iter().find_map(peak).expect("a parse worker that is alive");
    Some((read.map(|document| *document), peak))
}

/// The pages of the chunks are all pages, and the words on three of them are those that were written there.
fn is_whole(chunks: &[(String, usize, usize)]) {
    let covered: BTreeSet<usize> = chunks.iter().flat_map(|(_, first, last)| *first..=*last).collect();
    assert_eq!(covered, (1..=PAGES).collect());
    for page in [1, PAGES / 2, PAGES] {
        let of_page = chunks.iter().filter(|(_, first, last)| (*first..=*last).contains(&page));
        let said: Vec<&str> = of_page.flat_map(|(content, ..)| content.split_whitespace()).collect();
        let said = format!(" {} ", said.join(" "));
        let written: Vec<String> = (1..=LINES).map(|n| paper::line(page, n)).collect();
        assert!(said.contains(&format!(" {} ", written.join(" "))), "page {page}: {said}");
    }
}

#[test]
fn a_thousand_pages_are_parsed_within_a_gigabyte_and_the_time_limit() {
    let folder = paper(PAGES, LINES);
    let limit = Duration::from_secs(SourceOptions::defaults(SourceKind::Pdf).limits.max_seconds.into());
    let started = Instant::now();
    let Some((document, peak)) = read(folder.path()) else { return };
    let took = started.elapsed();
    let document = document.expect("a document");
    eprintln!("{PAGES} pages: {} chunks, {took:?}, address space {peak} kB", document.chunks.len());
    assert!(took < limit, "{took:?}");
    assert!(peak <= (MEMORY as u64) << 10, "{peak} kB");
    let chunk = |chunk: &rag_core::document::Chunk| {
        let (first, last) = chunk.pages.expect("pages");
        (chunk.content.clone(), first as usize, last as usize)
    };
    is_whole(&document.chunks.iter().map(chunk).collect::<Vec<_>>());
}

#[test]
fn a_page_too_many_is_refused_with_the_limit_named() {
    let folder = paper(TOO_MANY, 1);
    let Some((refused, _)) = read(folder.path()) else { return };
    let error = refused.expect_err("too many pages").error;
    let message = "PDF exceeds a limit: 5001 pages are more than max_pages 5000";
    assert_eq!((error.kind, error.message.as_str()), (Kind::LimitExceeded, message));
    assert!(error.hint.is_some_and(|hint| hint.contains("max_pages")));
}

/// The command in as little memory, which needs no model.
#[test]
fn the_command_reads_a_thousand_pages_within_a_gigabyte() {
    let command = |folder: &Path| {
        let mut shell = Command::new("sh");
        shell.args(["-c", "ulimit -v \"$1\" && shift && exec \"$@\"", "sh", &(MEMORY << 10).to_string()]);
        shell.arg(env!("CARGO_BIN_EXE_pg_rag_engine")).args(["chunk", "--words"]).arg(folder.join("paper.pdf"));
        shell.env_clear().stdin(Stdio::null()).output().expect("runs")
    };
    let read = command(paper(PAGES, LINES).path());
    assert!(read.status.success(), "{}", String::from_utf8_lossy(&read.stderr));
    let chunk = |line: &str| {
        let chunk: serde_json::Value = serde_json::from_str(line).expect("JSON");
        let page = |at: usize| usize::try_from(chunk["pages"][at].as_u64().expect("a page")).expect("fits");
        (chunk["content"].as_str().expect("text").to_owned(), page(0), page(1))
    };
    is_whole(&std::str::from_utf8(&read.stdout).expect("UTF-8").lines().map(chunk).collect::<Vec<_>>());
    let refused = command(paper(TOO_MANY, 1).path());
    let message = String::from_utf8_lossy(&refused.stderr);
    assert!(!refused.status.success() && message.contains("5001 pages are more than max_pages 5000"), "{message}");
}
