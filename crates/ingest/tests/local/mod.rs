// SPDX-License-Identifier: PostgreSQL

//! A server on this machine, and what a sync does with it.
#![allow(clippy::expect_used, dead_code, reason = "each test takes what it needs")]

use rag_core::error::Result;
use rag_core::source::{Item, SourceSpec};
use rag_core::tokens::WordCounter;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};

pub const COUNTER: WordCounter = WordCounter { window: 254 };

/// A server that answers each request by its path and headers, in threads that end with the test.
pub fn serve(answer: fn(&str, &[String], &mut TcpStream)) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("port");
    let address = listener.local_addr().expect("address").to_string();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || {
                let mut reader = BufReader::new(stream.try_clone().expect("clone"));
                let mut lines = Vec::new();
                loop {
                    let mut line = String::new();
                    if reader.read_line(&mut line).unwrap_or(0) == 0 || line.trim().is_empty() {
                        break;
                    }
                    lines.push(line.trim().to_owned());
                }
                let path = lines.first().and_then(|l| l.split(' ').nth(1)).unwrap_or("/").to_owned();
                let mut stream = stream;
                answer(&path, &lines, &mut stream);
            });
        }
    });
    address
}

/// The host and the path that were asked for, by the head of a request.
pub fn asked_for(path: &str, lines: &[String]) -> String {
    let host = lines.iter().find_map(|line| line.to_ascii_lowercase().strip_prefix("host: ").map(str::to_owned));
    format!("{}{path}", host.unwrap_or_default())
}

pub fn reply(stream: &mut TcpStream, status: &str, headers: &[&str], body: &[u8]) {
    let mut head = format!("HTTP/1.1 {status}\r\nConnection: close\r\nContent-Length: {}\r\n", body.len());
    headers.iter().for_each(|header| head.push_str(&format!("{header}\r\n")));
    let _ = stream.write_all(format!("{head}\r\n").as_bytes()).and_then(|()| stream.write_all(body));
}

/// The items of a source of which every document can be listed.
pub fn list(spec: &SourceSpec) -> Result<Vec<Item>> {
    let mut items = Vec::new();
    rag_ingest::list(spec, &mut |more, failures| {
        assert!(failures.is_empty(), "{failures:?}");
        items.extend(more);
        Ok(())
    })?;
    Ok(items)
}
