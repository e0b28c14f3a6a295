// SPDX-License-Identifier: PostgreSQL

//! Feeds: of a server on this machine, with the pages that they link to, and in a file.
#![allow(clippy::expect_used, clippy::panic, reason = "a test may")]

mod local;

use local::{COUNTER, asked_for, list, reply, serve};
use rag_core::document::Document;
use rag_core::error::{Error, Kind};
use rag_core::source::{Item, Place, Seen, SourceKind, SourceOptions, SourceSpec};
use serde_json::{Value, json};
use std::net::TcpStream;
use std::path::Path;
use std::sync::Mutex;

/// What was asked for, of all servers of these tests.
static ASKED: Mutex<Vec<String>> = Mutex::new(Vec::new());

fn asked(what: &str) -> usize {
    ASKED.lock().expect("nobody panicked").iter().filter(|asked| *asked == what).count()
}

const FEED: &str = r#"<?xml version="1.0"?><rss version="2.0" xmlns:content="http://purl.org/rss/1.0/modules/content/">
<channel><title>Site</title><link>/</link>
<item><title>Whole</title><link>/posts/whole</link><guid>g1</guid><category>x</category>
 <pubDate>Sat, 03 Feb 2024 04:05:06 GMT</pubDate>
 <content:encoded><![CDATA[<p>All of <a href="/other">it</a>.</p>]]></content:encoded></item>
<item><title>Linked</title><link>/posts/linked</link><guid>g2</guid><description>Short of linked.</description></item>
<item><title>Gone</title><link>/posts/gone</link><guid>g3</guid><description>Short of gone.</description></item>
<item><title>Far</title><link>http://10.0.0.1/far</link><guid>g4</guid><description>Short of far.</description></item>
<item><title>Broken</title><link>/posts/broken</link><guid>g5</guid><description>Short of broken.</description></item>
<item><title>Unlinked</title><guid>g6</guid><description>Short of unlinked.</description></item>
</channel></rss>"#;

fn site(path: &str, lines: &[String], stream: &mut TcpStream) {
    ASKED.lock().expect("nobody panicked").push(asked_for(path, lines));
    let says = |header: &str| lines.iter().any(|line| line.eq_ignore_ascii_case(header));
    let headers = ["Content-Type: application/rss+xml", "ETag: \"f1\"", "Last-Modified: Sat, 03 Feb 2024 04:05:06 GMT"];
    match path {
        "/feed" if says("If-None-Match: \"f1\"") => reply(stream, "304 Not Modified", &["ETag: \"f1\""], b""),
        "/feed" => reply(stream, "200 OK", &headers, FEED.as_bytes()),
        "/shrunk" => {
            let short = FEED.replace(
                "<item><title>Linked</title><link>/posts/linked</link>",
                "<item><title>New</title><link>/posts/new</link>",
            );
            reply(stream, "200 OK", &headers, short.as_bytes());
        }
        "/home" => {
            let html = "<link rel=alternate type='application/rss+xml' href='feed'><p>Welcome.";
            reply(stream, "200 OK", &["Content-Type: text/html"], html.as_bytes());
        }
        "/posts/linked" => {
            let html = "<html><head><meta name=author content=Ann></head><body><article><p>All of the linked page, read as an article.</p></article></body></html>";
            reply(stream, "200 OK", &["Content-Type: text/html"], html.as_bytes());
        }
        "/posts/broken" => reply(stream, "503 Service Unavailable", &[], b"later"),
        _ => reply(stream, "404 Not Found", &[], b"no"),
    }
}

fn spec(location: &str, hosts: &[&str]) -> SourceSpec {
    SourceSpec {
        kind: SourceKind::Blog,
        location: location.to_owned(),
        options: SourceOptions::parse(SourceKind::Blog, &json!({"limits": {"max_seconds": 5}})).expect("options"),
        allowed_paths: vec![Path::new(location).parent().expect("a folder").to_string_lossy().into_owned()],
        allowed_hosts: hosts.iter().map(|host| (*host).to_owned()).collect(),
        seen: None,
    }
}

fn read(spec: &SourceSpec, item: &Item) -> Result<Document, Error> {
    let document = rag_ingest::read(spec, item, &COUNTER).map_err(|failure| failure.error)?;
    assert_eq!((&document.uri, document.content_sha256), (&item.uri, item.content_sha256));
    Ok(document)
}

#[test]
fn each_post_is_a_document_and_one_without_content_its_page() {
    let address = serve(site);
    let url = format!("http://{address}/feed");
    let mut source = spec(&url, &[&address]);
    let items = list(&source).expect("lists");
    let at = |path: &str| format!("http://{address}{path}");
    let uris: Vec<&str> = items.iter().map(|item| item.uri.as_str()).collect();
    let posts = [
        at("/posts/whole"),
        at("/posts/linked"),
        at("/posts/gone"),
        "http://10.0.0.1/far".into(),
        at("/posts/broken"),
        "g6".into(),
    ];
    assert_eq!(uris, posts);
    let place = Place::Entry {
        feed: url.clone(),
        etag: Some("\"f1\"".into()),
        last_modified: Some("Sat, 03 Feb 2024 04:05:06 GMT".into()),
    };
    assert!(items.iter().all(|item| item.place == place), "{items:?}");

    let before = asked(&format!("{address}/feed"));
    let whole = read(&source, &items[0]).expect("a post");
    assert_eq!(whole.text, format!("All of [it]({}).", at("/other")));
    assert_eq!((whole.title.as_deref(), whole.external_id.as_deref()), (Some("Whole"), Some("g1")));
    assert_eq!(whole.published_at.as_deref(), Some("2024-02-03T04:05:06Z"));
    let expected = json!({"tags": ["x"], "site_name": "Site", "feed": url, "url": at("/posts/whole")});
    assert_eq!(Value::Object(whole.metadata), expected);

    let linked = read(&source, &items[1]).expect("a post");
    assert_eq!(
        (linked.text.as_str(), linked.title.as_deref()),
        ("All of the linked page, read as an article.\n", Some("Linked"))
    );
    assert_eq!(linked.metadata.get("author"), Some(&json!("Ann")));
    assert_eq!(linked.metadata.get("description"), Some(&json!("Short of linked.")));
    assert_eq!(linked.metadata.get("summary"), None);

    // What will never be had leaves the summary, which says that it is one; what cannot be had now is asked for again.
    for (at, text, why) in [
        (2, "Short of gone.", format!("\"http://{address}/posts/gone\" was answered by status 404")),
        (3, "Short of far.", "host \"10.0.0.1\" is not allowed at port 80".into()),
        (5, "Short of unlinked.", "it links to no page".into()),
    ] {
        let post = read(&source, &items[at]).expect("a post");
        assert_eq!((post.text.as_str(), post.metadata.get("summary")), (text, Some(&json!(why))));
    }
    let error = read(&source, &items[4]).expect_err("broken");
    assert_eq!(
        (error.kind, error.message),
        (Kind::Io, format!("\"http://{address}/posts/broken\" was answered by status 503"))
    );
    // One reading of the feed serves all of its posts.
    assert_eq!(asked(&format!("{address}/feed")), before + 1);

    source.seen = Some(Seen { etag: Some("\"f1\"".into()), ..Seen::default() });
    assert_eq!(list(&source).expect("lists"), []);
    source.seen = Some(Seen { etag: Some("\"f0\"".into()), ..Seen::default() });
    assert_eq!(list(&source).expect("lists"), items);
}

#[test]
fn a_post_that_left_the_feed_cannot_be_read_any_more() {
    let address = serve(site);
    let source = spec(&format!("http://{address}/shrunk"), &[&address]);
    let items = list(&source).expect("lists");
    assert!(items.iter().any(|item| item.uri.ends_with("/posts/new")));
    let gone = Item { uri: format!("http://{address}/posts/linked"), ..items[1].clone() };
    let error = rag_ingest::read(&source, &gone, &COUNTER).expect_err("gone").error;
    assert_eq!(error.message, format!("\"http://{address}/posts/linked\" left the feed since it was listed"));
}

#[test]
fn a_page_in_place_of_a_feed_names_the_feed() {
    let address = serve(site);
    let location = format!("http://{address}/home");
    let error = list(&spec(&location, &[&address])).expect_err("a page");
    assert_eq!(error.kind, Kind::BadContent);
    assert!(error.message.starts_with(&format!("\"{location}\" is no feed that can be read: ")), "{}", error.message);
    assert_eq!(error.hint, Some(format!("The page names a feed: \"http://{address}/feed\".")));
    let error = list(&spec(&location, &[])).expect_err("not allowed");
    assert_eq!(error.kind, Kind::Forbidden);
}

#[test]
fn a_feed_in_a_file_is_read_and_fetches_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("feed.xml");
    std::fs::write(&path, FEED.replace(">/posts", ">https://a.example/posts")).expect("a file");
    let source = spec(path.to_str().expect("UTF-8"), &["a.example"]);
    let items = list(&source).expect("lists");
    assert_eq!(items.len(), 6);
    let whole = read(&source, &items[0]).expect("a post");
    assert_eq!(
        (whole.text.as_str(), whole.uri.as_str()),
        ("All of [it](https://a.example/other).", "https://a.example/posts/whole")
    );
    let linked = read(&source, &items[1]).expect("a post");
    assert_eq!(linked.text, "Short of linked.");
    assert_eq!(linked.metadata.get("summary"), Some(&json!("a feed in a file fetches no pages")));
    assert_eq!(linked.metadata.get("feed"), Some(&json!(source.location)));
    // A folder of posts is still one, and so is a file of Markdown.
    std::fs::remove_file(&path).expect("removed");
    std::fs::write(folder.path().join("a.md"), "# A\n\nPost.\n").expect("a file");
    let posts = spec(folder.path().to_str().expect("UTF-8"), &[]);
    let posts = SourceSpec { allowed_paths: vec![folder.path().to_string_lossy().into_owned()], ..posts };
    assert_eq!(read(&posts, &list(&posts).expect("lists")[0]).expect("a post").title.as_deref(), Some("A"));
}

#[test]
fn limits_of_a_feed_are_named() {
    let address = serve(site);
    let url = format!("http://{address}/feed");
    let refused = |limits: Value| {
        let options = SourceOptions::parse(SourceKind::Blog, &json!({ "limits": limits })).expect("options");
        let source = SourceSpec { options, ..spec(&url, &[&address]) };
        rag_ingest::list(&source, &mut |_, _| Ok(())).expect_err("refused").message
    };
    assert_eq!(refused(json!({"max_documents": 3})), "source has more documents than max_documents 3");
    assert_eq!(refused(json!({"max_document_bytes": 100})), format!("\"{url}\" is larger than max_document_bytes 100"));
}
