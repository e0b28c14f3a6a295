// SPDX-License-Identifier: PostgreSQL

//! Pages of a server on this machine: what is fetched, what is refused, and how long that takes.
// Clippy's leave for tests does not reach the functions that tests share.
#![allow(clippy::expect_used, clippy::panic)]

mod local;

use local::{COUNTER, list, reply, serve};
use rag_core::error::{Error, Kind};
use rag_core::provenance::ContentHash;
use rag_core::source::{Seen, SourceKind, SourceOptions, SourceSpec};
use serde_json::{Value, json};
use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

fn redirect(stream: &mut TcpStream, to: &str) {
    reply(stream, "302 Found", &[&format!("Location: {to}")], b"");
}

fn site(path: &str, lines: &[String], stream: &mut TcpStream) {
    let says = |header: &str| lines.iter().any(|line| line.eq_ignore_ascii_case(header));
    match path {
        "/page" if says("If-None-Match: \"v1\"") => reply(stream, "304 Not Modified", &["ETag: \"v1\""], b""),
        "/page" => {
            let headers =
                ["Content-Type: text/markdown", "ETag: \"v1\"", "Last-Modified: Wed, 21 Oct 2015 07:28:00 GMT"];
            reply(stream, "200 OK", &headers, b"# Page\n\nAs served.\n");
        }
        "/dated" if says("If-Modified-Since: Wed, 21 Oct 2015 07:28:00 GMT") => {
            reply(stream, "304 Not Modified", &[], b"");
        }
        "/dated" => {
            let headers = ["Content-Type: text/markdown", "Last-Modified: Wed, 21 Oct 2015 07:28:00 GMT"];
            reply(stream, "200 OK", &headers, b"# Dated\n");
        }
        "/moved" => redirect(stream, "/page"),
        "/loop" => redirect(stream, "/loop"),
        "/metadata" => redirect(stream, "http://169.254.169.254/latest/meta-data/"),
        "/private" => redirect(stream, "http://10.0.0.1/"),
        "/self" => redirect(stream, "http://127.0.0.1:1/"),
        "/name" => redirect(stream, "http://localhost/"),
        "/file" => redirect(stream, "file:///etc/passwd"),
        "/nowhere" => reply(stream, "302 Found", &[], b""),
        "/gone" => reply(stream, "404 Not Found", &[], b"no"),
        "/broken" => reply(stream, "503 Service Unavailable", &[], b"no"),
        "/announced" => {
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 10737418240\r\n\r\nx");
        }
        "/endless" => {
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n");
            while stream.write_all(&[b'x'; 65536]).is_ok() {}
        }
        "/bomb" => {
            // A gzip member of a thousand zeros' worth of nothing: made by the test's own encoder below.
            let body = gzip_of_zeros(64 << 20);
            reply(stream, "200 OK", &["Content-Encoding: gzip", "Content-Type: text/plain"], &body);
        }
        "/slow" => {
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n");
            for _ in 0..60 {
                std::thread::sleep(Duration::from_millis(500));
                if stream.write_all(b"x").is_err() {
                    break;
                }
            }
        }
        "/chunks" => {
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
            let chunk = [&b"10000\r\n"[..], &[b'x'; 65536], b"\r\n"].concat();
            while stream.write_all(&chunk).is_ok() {}
        }
        "/unasked" => reply(stream, "304 Not Modified", &[], b""),
        "/silent" => std::thread::sleep(Duration::from_secs(30)),
        "/head" => {
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n");
            while stream.write_all(b"X-Filler: yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy\r\n").is_ok() {}
        }
        "/garbage" => {
            let _ = stream.write_all(b"\x00\x01\x02 what\r\n\r\n");
        }
        _ => reply(stream, "200 OK", &[], b"other"),
    }
}

/// Zeros as deflate's fixed codes repeat them, in a gzip frame: 258 zeros in 13 bits.
fn gzip_of_zeros(length: usize) -> Vec<u8> {
    let mut bits: Vec<bool> = Vec::new();
    let mut put = |value: u32, count: u32, reversed: bool| {
        for at in 0..count {
            let at = if reversed { count - 1 - at } else { at };
            bits.push(value >> at & 1 == 1);
        }
    };
    put(1, 1, false);
    put(1, 2, false);
    put(0x30, 8, true);
    for _ in 0..length / 258 {
        // Length 258 is code 285, distance 1 is code 0.
        put(0xC5, 8, true);
        put(0, 5, true);
    }
    put(0, 7, true);
    let mut out = vec![0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 255];
    for byte in bits.chunks(8) {
        out.push(byte.iter().enumerate().map(|(at, bit)| u8::from(*bit) << at).sum());
    }
    out.extend([0; 8]);
    out
}

fn spec(location: &str, hosts: &[&str], limits: &Value) -> SourceSpec {
    SourceSpec {
        kind: SourceKind::Markdown,
        location: location.to_owned(),
        options: SourceOptions::parse(SourceKind::Markdown, &json!({ "limits": limits })).expect("options"),
        allowed_paths: Vec::new(),
        allowed_hosts: hosts.iter().map(|host| (*host).to_owned()).collect(),
        seen: None,
    }
}

fn refused(address: &str, path: &str) -> Error {
    let limits = json!({"max_document_bytes": 1_000_000, "max_seconds": 2});
    list(&spec(&format!("http://{address}{path}"), &[address], &limits)).expect_err(path)
}

#[test]
fn a_page_is_fetched_and_asked_for_only_when_it_changed() {
    let address = serve(site);
    let url = format!("http://{address}/page");
    let mut source = spec(&url, &[&address], &json!({}));
    let items = list(&source).expect("lists");
    assert_eq!(items.len(), 1);
    assert_eq!(items[0].uri, url);
    assert_eq!(items[0].content_sha256, ContentHash::of("# Page\n\nAs served.\n"));
    let document = rag_ingest::read(&source, &items[0], &COUNTER).expect("reads");
    assert_eq!(document.title.as_deref(), Some("Page"));
    assert_eq!(document.version.etag.as_deref(), Some("\"v1\""));
    assert_eq!(document.metadata.get("last_modified"), Some(&json!("Wed, 21 Oct 2015 07:28:00 GMT")));
    assert_eq!((document.path, document.metadata.get("url")), (None, None));
    // What the catalog says was seen is what an unchanged page is.
    let seen =
        Seen { etag: Some("\"v1\"".into()), last_modified: None, content_sha256: ContentHash::of("old"), size: 3 };
    source.seen = Some(seen);
    assert_eq!(list(&source).expect("lists")[0].content_sha256, ContentHash::of("old"));
    source.seen = Some(Seen { etag: Some("\"v0\"".into()), ..Seen::default() });
    assert_eq!(list(&source).expect("lists")[0].content_sha256, items[0].content_sha256);
    // A server that knows no ETag is asked by the time of the last change, as it wrote it.
    let mut dated = spec(&format!("http://{address}/dated"), &[&address], &json!({}));
    let last_modified = |time: &str| Seen {
        last_modified: Some(time.into()),
        content_sha256: ContentHash::of("old"),
        ..Seen::default()
    };
    dated.seen = Some(last_modified("Wed, 21 Oct 2015 07:28:00 GMT"));
    assert_eq!(list(&dated).expect("lists")[0].content_sha256, ContentHash::of("old"));
    dated.seen = Some(last_modified("Tue, 20 Oct 2015 07:28:00 GMT"));
    assert_eq!(list(&dated).expect("lists")[0].content_sha256, ContentHash::of("# Dated\n"));
    // A page that moved keeps the address it was asked for by.
    let moved = spec(&format!("http://{address}/moved"), &[&address], &json!({}));
    let items = list(&moved).expect("lists");
    let document = rag_ingest::read(&moved, &items[0], &COUNTER).expect("reads");
    assert_eq!(document.uri, format!("http://{address}/moved"));
    assert_eq!(document.metadata.get("url"), Some(&json!(url)));
}

#[test]
fn a_redirect_leads_nowhere_that_a_first_url_could_not() {
    let address = serve(site);
    for (path, message) in [
        ("/metadata", "host \"169.254.169.254\" is not allowed at port 80"),
        ("/private", "host \"10.0.0.1\" is not allowed at port 80"),
        ("/self", "host \"127.0.0.1\" is not allowed at port 1"),
        ("/name", "host \"localhost\" is not allowed at port 80"),
        ("/file", "scheme \"file\" is not fetched"),
    ] {
        let error = refused(&address, path);
        assert_eq!((error.kind, error.message.as_str()), (Kind::Forbidden, message), "{path}");
    }
    assert_eq!(refused(&address, "/nowhere").message, format!("\"http://{address}/nowhere\" redirects to nowhere"));
    assert_eq!(
        refused(&address, "/loop").message,
        format!("\"http://{address}/loop\" is reached by more than 10 redirects")
    );
    // A name that was allowed but leads to this machine.
    let port = address.rsplit_once(':').expect("port").1;
    let named = spec(&format!("http://localhost:{port}/page"), &[&format!("localhost:{port}")], &json!({}));
    let error = list(&named).expect_err("private");
    assert_eq!(error.kind, Kind::Forbidden);
    assert!(error.message.starts_with("\"localhost\" has the address "), "{}", error.message);
    assert!(error.message.ends_with(", which is not public"), "{}", error.message);
    // Nothing is allowed by itself.
    let error = list(&spec(&format!("http://{address}/page"), &[], &json!({}))).expect_err("not allowed");
    assert_eq!(error.kind, Kind::Forbidden);
    let wanted = format!("pg_rag.allowed_hosts = 'others,{address}'");
    assert!(error.hint.is_some_and(|hint| hint.contains(&wanted)));
}

#[test]
fn limits_of_size_and_time_hold() {
    let address = serve(site);
    for path in ["/announced", "/endless", "/chunks", "/bomb"] {
        let started = Instant::now();
        let error = refused(&address, path);
        assert_eq!(error.kind, Kind::LimitExceeded, "{path}: {error:?}");
        assert_eq!(error.message, format!("\"http://{address}{path}\" is larger than max_document_bytes 1000000"));
        assert!(started.elapsed() < Duration::from_secs(10), "{path} took {:?}", started.elapsed());
    }
    for path in ["/slow", "/silent"] {
        let started = Instant::now();
        let error = refused(&address, path);
        assert_eq!(error.message, format!("\"http://{address}{path}\" took longer than max_seconds"), "{error:?}");
        assert!(started.elapsed() < Duration::from_secs(10), "{path} took {:?}", started.elapsed());
    }
}

#[test]
fn what_a_server_gets_wrong_is_an_error() {
    let address = serve(site);
    for (path, kind) in
        [("/gone", Kind::FileMissing), ("/broken", Kind::Io), ("/garbage", Kind::Io), ("/head", Kind::Io)]
    {
        assert_eq!(refused(&address, path).kind, kind, "{path}");
    }
    assert_eq!(refused(&address, "/unasked").message, format!("\"http://{address}/unasked\" redirects to nowhere"));
    let nobody = TcpListener::bind("127.0.0.1:0").and_then(|l| l.local_addr()).expect("a port").to_string();
    assert_eq!(refused(&nobody, "/").kind, Kind::Io);
    let error = list(&spec("gopher://example.org/", &["example.org"], &json!({}))).expect_err("refused");
    assert_eq!(error.message, "scheme \"gopher\" is not fetched");
}
