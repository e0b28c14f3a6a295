// SPDX-License-Identifier: PostgreSQL

//! What pages of a server on this machine become: their encoding, what they are and what is said of them, and the Markdown
//! that their site has of them.
#![allow(clippy::expect_used, clippy::panic, reason = "a test may")]

mod local;

use local::{COUNTER, asked_for, list, reply, serve};
use rag_core::document::Document;
use rag_core::error::{Error, Kind};
use rag_core::provenance::ContentHash;
use rag_core::source::{SourceKind, SourceOptions, SourceSpec};
use serde_json::{Value, json};
use std::net::TcpStream;
use std::sync::Mutex;

/// What was asked for, of all servers of these tests.
static ASKED: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// A page, with `head` in its head.
fn page(head: &str) -> String {
    format!(
        "<!doctype html><html lang=en><head><title>Post</title><meta name=author content=Ann>\
         <meta property=article:published_time content=2024-02-03><link rel=canonical href=https://blog.example/post>{head}\
         </head><body><article><h1>Post</h1><p>As the page has it, in a paragraph of its own.</p></article></body></html>"
    )
}

const MARKDOWN: &str = "# Post\n\nAs the *author* wrote it, in a paragraph of its own.\n";

fn html(stream: &mut TcpStream, head: &str) {
    reply(stream, "200 OK", &["Content-Type: text/html; charset=utf-8", "ETag: \"p\""], page(head).as_bytes());
}

fn markdown(stream: &mut TcpStream, text: &str) {
    reply(stream, "200 OK", &["Content-Type: text/markdown; charset=utf-8"], text.as_bytes());
}

fn site(path: &str, lines: &[String], stream: &mut TcpStream) {
    ASKED.lock().expect("nobody panicked").push(asked_for(path, lines));
    let named = |href: &str| format!("<link rel=alternate type=text/markdown href={href}>");
    let hashnode = "<meta property=og:image content=https://cdn.hashnode.com/i.png>";
    let forem = "<meta name=forem:name content=C>";
    let latin = |head: &str| [b"<html><head>", head.as_bytes(), b"</head><body><p>Caf\xE9 au lait</p></body>"].concat();
    match path {
        "/named" => html(stream, &named("/named-form?a=1")),
        "/named-form?a=1" | "/hashnode.md" => markdown(stream, MARKDOWN),
        "/hashnode" => html(stream, hashnode),
        "/ann/forem" => html(stream, forem),
        "/api/articles/ann/forem" => {
            let article = json!({"id": 1, "body_markdown": MARKDOWN, "body_html": "<p>x</p>"}).to_string();
            reply(stream, "200 OK", &["Content-Type: application/json; charset=utf-8"], article.as_bytes());
        }
        "/negotiated"
            if lines.iter().any(|l| l.to_ascii_lowercase().starts_with("accept:") && l.contains("text/markdown")) =>
        {
            markdown(stream, &format!("---\ntitle: Negotiated\nauthor: Ann\n---\n{MARKDOWN}"));
        }
        "/no-form" => html(stream, &named("/missing")),
        "/page-form" => html(stream, &named("/hashnode")),
        "/stub-form" => html(stream, &named("/stub")),
        "/stub" => markdown(stream, "# Hi"),
        "/far-form" => html(stream, &named("http://10.0.0.1/x.md")),
        "/slow-form" => html(stream, &named("/slow")),
        "/slow" => std::thread::sleep(std::time::Duration::from_secs(20)),
        "/looped-form" => html(stream, &named("/loop")),
        "/loop" => reply(stream, "302 Found", &["Location: /loop"], b""),
        "/huge-form" => html(stream, &named("/huge")),
        "/huge" => markdown(stream, &MARKDOWN.repeat(50_000)),
        "/self-form" => html(stream, &named("/self-form")),
        "/utf8-but-latin" => reply(stream, "200 OK", &["Content-Type: text/html; charset=utf-8"], &latin("")),
        "/latin-but-utf8" => {
            let body = "<meta charset=utf-8><p>Caf\u{e9} au lait";
            reply(stream, "200 OK", &["Content-Type: text/html; charset=iso-8859-1"], body.as_bytes());
        }
        "/utf8-meta-latin" => {
            reply(stream, "200 OK", &["Content-Type: text/html; charset=utf-8"], &latin("<meta charset=windows-1252>"));
        }
        "/latin" => reply(stream, "200 OK", &["Content-Type: text/html; charset=ISO-8859-1"], &latin("")),
        "/unknown" => reply(stream, "200 OK", &["Content-Type: text/html; charset=x-klingon"], &latin("")),
        "/unknown-meta-latin" => {
            reply(stream, "200 OK", &["Content-Type: text/html; charset=x-klingon"], &latin("<meta charset=latin1>"));
        }
        "/none-meta-latin" => reply(stream, "200 OK", &["Content-Type: text/html"], &latin("<meta charset=latin1>")),
        "/none-bom" => {
            let mut body = vec![0xFF, 0xFE];
            body.extend("<p>Caf\u{e9} au lait</p>".encode_utf16().flat_map(u16::to_le_bytes));
            reply(stream, "200 OK", &["Content-Type: text/html"], &body);
        }
        "/latin-bom" => {
            let body = "\u{FEFF}<p>Caf\u{e9} au lait";
            reply(stream, "200 OK", &["Content-Type: text/html; charset=iso-8859-1"], body.as_bytes());
        }
        "/text-latin" => reply(stream, "200 OK", &["Content-Type: text/plain; charset=iso-8859-1"], b"Caf\xE9 au lait"),
        "/pdf" => reply(stream, "200 OK", &["Content-Type: text/html"], b"%PDF-1.7\n%\xE2\xE3\n1 0 obj"),
        "/image" => reply(stream, "200 OK", &["Content-Type: text/html"], b"\x89PNG\r\n\x1A\n\0\0\0\rIHDR"),
        "/octets" => reply(stream, "200 OK", &["Content-Type: application/octet-stream"], page("").as_bytes()),
        "/html.md" => html(stream, ""),
        _ => reply(stream, "404 Not Found", &["Content-Type: text/markdown"], MARKDOWN.as_bytes()),
    }
}

fn spec(kind: SourceKind, address: &str, path: &str) -> SourceSpec {
    let limits = json!({"max_document_bytes": 1_000_000, "max_seconds": 4});
    SourceSpec {
        kind,
        location: format!("http://{address}{path}"),
        options: SourceOptions::parse(kind, &json!({ "limits": limits })).expect("options"),
        allowed_paths: Vec::new(),
        allowed_hosts: vec![address.to_owned()],
        seen: None,
    }
}

fn read(kind: SourceKind, address: &str, path: &str) -> Result<Document, Error> {
    let spec = spec(kind, address, path);
    let items = list(&spec)?;
    assert_eq!(items.len(), 1);
    let document = rag_ingest::read(&spec, &items[0], &COUNTER).map_err(|failure| failure.error)?;
    assert_eq!((&document.uri, document.content_sha256), (&spec.location, items[0].content_sha256));
    Ok(document)
}

#[test]
fn the_markdown_of_a_site_is_preferred_and_the_page_says_what_it_is() {
    let address = serve(site);
    for (path, form) in
        [("/named", "/named-form?a=1"), ("/hashnode", "/hashnode.md"), ("/ann/forem", "/api/articles/ann/forem")]
    {
        for kind in [SourceKind::Article, SourceKind::Html] {
            let document = read(kind, &address, path).unwrap_or_else(|e| panic!("{path}: {e:?}"));
            assert_eq!(document.text, MARKDOWN, "{path}");
            assert_eq!(document.media_type, "text/markdown");
            assert_eq!((document.title.as_deref(), document.language.as_deref()), (Some("Post"), Some("en")));
            assert_eq!(document.published_at.as_deref(), Some("2024-02-03T00:00:00Z"));
            assert_eq!(document.version.etag.as_deref(), Some("\"p\""));
            let expected = json!({
                "author": "Ann", "canonical_url": "https://blog.example/post",
                "markdown_url": format!("http://{address}{form}")
            });
            assert_eq!(Value::Object(document.metadata), expected, "{path}");
        }
        // Listing asks for the page alone, reading for one thing more.
        let mut asked = ASKED.lock().expect("nobody panicked").clone();
        asked.retain(|asked| asked.strip_prefix(&address).is_some_and(|asked| asked == path || asked == form));
        assert_eq!(asked, [path, path, form, path, path, form].map(|path| format!("{address}{path}")));
    }
    // Another kind has no page, and so no other form of it.
    assert!(read(SourceKind::Text, &address, "/named").expect("a text").text.contains("<!doctype html>"));
}

#[test]
fn a_page_whose_form_cannot_be_had_is_read_itself() {
    let address = serve(site);
    for path in
        ["/no-form", "/page-form", "/stub-form", "/far-form", "/slow-form", "/looped-form", "/huge-form", "/self-form"]
    {
        let started = std::time::Instant::now();
        let document = read(SourceKind::Article, &address, path).unwrap_or_else(|e| panic!("{path}: {e:?}"));
        assert!(document.text.contains("As the page has it"), "{path}: {}", document.text);
        assert_eq!(document.media_type, "text/html", "{path}");
        assert!(!document.metadata.contains_key("markdown_url"), "{path}");
        assert!(started.elapsed() < std::time::Duration::from_secs(4), "{path} took {:?}", started.elapsed());
    }
}

#[test]
fn an_answer_in_markdown_is_read_as_such() {
    let address = serve(site);
    let document = read(SourceKind::Article, &address, "/negotiated").expect("a page");
    assert_eq!((document.title.as_deref(), document.media_type.as_str()), (Some("Negotiated"), "text/markdown"));
    assert_eq!(document.metadata.get("author"), Some(&json!("Ann")));
    assert!(document.text.ends_with(MARKDOWN));
    assert_eq!(document.content_sha256, ContentHash::of(&document.text));
}

#[test]
fn the_encoding_is_what_the_bytes_say_then_the_page_then_its_server() {
    let address = serve(site);
    for path in [
        "/latin-but-utf8",
        "/utf8-meta-latin",
        "/latin",
        "/unknown-meta-latin",
        "/none-meta-latin",
        "/none-bom",
        "/latin-bom",
    ] {
        let document = read(SourceKind::Html, &address, path).unwrap_or_else(|e| panic!("{path}: {e:?}"));
        assert_eq!((document.text.as_str(), document.repaired_bytes), ("Caf\u{e9} au lait\n", 0), "{path}");
    }
    // Nothing says what it is, so what is lost is counted.
    for path in ["/utf8-but-latin", "/unknown"] {
        let document = read(SourceKind::Html, &address, path).unwrap_or_else(|e| panic!("{path}: {e:?}"));
        assert_eq!((document.text.as_str(), document.repaired_bytes), ("Caf\u{FFFD} au lait\n", 1), "{path}");
    }
    for kind in [SourceKind::Text, SourceKind::Markdown] {
        let document = read(kind, &address, "/text-latin").expect("a text");
        assert_eq!((document.text.as_str(), document.repaired_bytes), ("Caf\u{e9} au lait", 0));
    }
}

#[test]
fn what_a_server_says_of_the_content_is_not_believed_against_it() {
    let address = serve(site);
    for (path, message, hint) in [
        ("/pdf", "content is no page but of kind \"pdf\"", Some("Add it as a source of kind \"pdf\".")),
        ("/image", "content is no page but of kind \"image\"", None),
    ] {
        let error = read(SourceKind::Article, &address, path).expect_err(path);
        assert_eq!((error.kind, error.message.as_str(), error.hint.as_deref()), (Kind::BadContent, message, hint));
    }
    assert!(read(SourceKind::Article, &address, "/octets").expect("a page").text.contains("As the page has it"));
    let error = read(SourceKind::Markdown, &address, "/html.md").expect_err("a page");
    assert_eq!((error.kind, error.message.as_str()), (Kind::BadContent, "content is a page of HTML and no Markdown"));
}
