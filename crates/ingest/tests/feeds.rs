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
        "/dated" if says("If-Modified-Since: Sat, 03 Feb 2024 04:05:06 GMT") => {
            reply(stream, "304 Not Modified", &[], b"");
        }
        "/dated" => reply(stream, "200 OK", &headers[2..], FEED.as_bytes()),
        "/guarded" => {
            let feed = "<rss version='2.0'><channel><title>x</title><item><guid>1</guid><link>/posts/door</link><description>Short of door.</description></item></channel></rss>";
            reply(stream, "200 OK", &["Content-Type: application/rss+xml"], feed.as_bytes());
        }
        "/posts/door" if asked(&asked_for(path, lines)) < 3 => reply(stream, "403 Forbidden", &[], b"no"),
        "/posts/door" => {
            let html = "<article><p>Behind the door.</p></article>";
            reply(stream, "200 OK", &["Content-Type: text/html"], html.as_bytes());
        }
        "/clock" => {
            let before = asked(&asked_for(path, lines)) - 1;
            let item =
                |n| format!("<item><guid>{n}</guid><description>Post {n} at request {before}</description></item>");
            let items: String = (1..=3).map(item).collect();
            let feed = format!("<rss version='2.0'><channel><title>Clock</title>{items}</channel></rss>");
            reply(stream, "200 OK", &["Content-Type: application/rss+xml"], feed.as_bytes());
        }
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
    // A page that was refused is to be asked for again, so that its post is none that is listed.
    let why = document.metadata.get("summary").and_then(Value::as_str).unwrap_or_default();
    let refused = why.contains("status 403") || why.contains("is not allowed");
    assert_eq!((&document.uri, document.content_sha256 != item.content_sha256), (&item.uri, refused), "{why}");
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
        at("/posts/whole#g1"),
        at("/posts/linked#g2"),
        at("/posts/gone#g3"),
        "http://10.0.0.1/far#g4".into(),
        at("/posts/broken#g5"),
        "g6".into(),
    ];
    assert_eq!(uris, posts);
    for item in &items {
        let Place::Entry { feed, etag, last_modified, .. } = &item.place else { panic!("{item:?}") };
        assert_eq!((feed, etag.as_deref()), (&url, Some("\"f1\"")));
        assert_eq!(last_modified.as_deref(), Some("Sat, 03 Feb 2024 04:05:06 GMT"));
    }

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
    // What was listed serves all of its posts.
    assert_eq!(asked(&format!("{address}/feed")), before);

    source.seen = Some(Seen { etag: Some("\"f1\"".into()), ..Seen::default() });
    assert_eq!(list(&source).expect("lists"), []);
    source.seen = Some(Seen { etag: Some("\"f0\"".into()), ..Seen::default() });
    let again = list(&source).expect("lists");
    let known = |item: &Item| (item.uri.clone(), item.content_sha256, item.size);
    assert_eq!(again.iter().map(known).collect::<Vec<_>>(), items.iter().map(known).collect::<Vec<_>>());
}

#[test]
fn a_page_that_was_refused_is_asked_for_again() {
    let address = serve(site);
    let source = spec(&format!("http://{address}/guarded"), &[&address]);
    let items = list(&source).expect("lists");
    let shut = read(&source, &items[0]).expect("a post");
    let why = format!("\"http://{address}/posts/door\" was answered by status 403");
    assert_eq!((shut.text.as_str(), shut.metadata.get("summary")), ("Short of door.", Some(&json!(why))));
    // It is the same as long as it is refused, and another when it is not.
    assert_eq!(read(&source, &items[0]).expect("a post"), shut);
    let open = read(&source, &items[0]).expect("a post");
    assert_eq!((open.text.as_str(), open.content_sha256), ("Behind the door.\n", items[0].content_sha256));
}

#[test]
fn a_feed_without_an_etag_is_asked_for_by_its_time() {
    let address = serve(site);
    let mut source = spec(&format!("http://{address}/dated"), &[&address]);
    let items = list(&source).expect("lists");
    let Some(Place::Entry { etag: None, last_modified: Some(time), .. }) = items.first().map(|item| &item.place) else {
        panic!("{items:?}")
    };
    source.seen = Some(Seen { last_modified: Some(time.clone()), ..Seen::default() });
    assert_eq!(list(&source).expect("lists"), []);
    source.seen = Some(Seen { last_modified: Some("Fri, 02 Feb 2024 04:05:06 GMT".into()), ..Seen::default() });
    assert_eq!(list(&source).expect("lists").len(), items.len());
}

#[test]
fn a_feed_that_is_never_the_same_is_asked_for_once_by_each_reader() {
    let address = serve(site);
    let path = format!("{address}/clock");
    let source = spec(&format!("http://{path}"), &[&address]);
    let items = list(&source).expect("lists");
    assert_eq!((items.len(), asked(&path)), (3, 1));
    let said = |item: &Item| rag_ingest::read(&source, item, &COUNTER).expect("a post").text;
    // Whoever listed the feed has it.
    let posts: Vec<String> = items.iter().map(said).collect();
    assert_eq!(posts, ["Post 1 at request 0", "Post 2 at request 0", "Post 3 at request 0"]);
    assert_eq!(asked(&path), 1);
    // Another reader asks for it once, and not once for each post.
    let read = || items.iter().map(said).collect::<Vec<_>>();
    let posts = std::thread::scope(|scope| scope.spawn(read).join().expect("read"));
    assert_eq!(posts, ["Post 1 at request 1", "Post 2 at request 1", "Post 3 at request 1"]);
    assert_eq!(asked(&path), 2);
    // After the next listing what was held is too old, but for what it says of a post that did not change.
    let (first, second) = std::thread::scope(|scope| {
        let (asking, listing) = std::sync::mpsc::channel();
        let (answering, listed) = std::sync::mpsc::channel();
        let items = items.clone();
        let reading = scope.spawn(move || {
            let first = said(&items[0]);
            asking.send(()).expect("somebody lists");
            let items: Vec<Item> = listed.recv().expect("a listing");
            (first, items.iter().map(said).collect::<Vec<_>>())
        });
        listing.recv().expect("a reader");
        // Time passes between two syncs.
        std::thread::sleep(std::time::Duration::from_millis(5));
        answering.send(list(&source).expect("lists")).expect("a reader");
        reading.join().expect("read")
    });
    assert_eq!(first, "Post 1 at request 2");
    assert_eq!(second, ["Post 1 at request 4", "Post 2 at request 4", "Post 3 at request 4"]);
    assert_eq!(asked(&path), 5);
}

#[test]
fn a_post_never_takes_the_place_of_another_with_the_same_link() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("feed.xml");
    let item = |id: &str| {
        format!("<item><guid>{id}</guid><link>https://a.example/today</link><description>Of {id}.</description></item>")
    };
    let uris = |items: &[String]| {
        let feed = format!("<rss version='2.0'><channel><title>x</title>{}</channel></rss>", items.concat());
        std::fs::write(&path, feed).expect("a file");
        let source = spec(path.to_str().expect("UTF-8"), &[]);
        let listed = list(&source).expect("lists");
        let documents: Vec<Document> = listed.iter().map(|item| read(&source, item).expect("a post")).collect();
        documents.into_iter().map(|document| (document.external_id.expect("an id"), document.uri)).collect::<Vec<_>>()
    };
    // One follows the other, and both are there at once.
    let (monday, tuesday) = (uris(&[item("monday")]), uris(&[item("tuesday")]));
    assert_ne!(monday[0].1, tuesday[0].1);
    assert_eq!(uris(&[item("tuesday"), item("monday")]), [tuesday, monday].concat());
}

#[test]
fn what_a_feed_says_of_itself_is_not_held_once_for_each_post() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("feed.xml");
    let title = "A long title. ".repeat(10_000);
    let items: String =
        (0..1000).map(|n| format!("<item><guid>g{n}</guid><description>d</description></item>")).collect();
    let feed = format!("<rss version='2.0'><channel><title>{title}</title>{items}</channel></rss>");
    std::fs::write(&path, &feed).expect("a file");
    let source = spec(path.to_str().expect("UTF-8"), &[]);
    let listed = list(&source).expect("lists");
    let all: u64 = listed.iter().map(|item| item.size).sum();
    assert!(
        listed.len() == 1000 && all < 1_000_000,
        "{all} bytes of {} posts, of a feed of {}",
        listed.len(),
        feed.len()
    );
    let site = read(&source, &listed[0]).expect("a post").metadata.remove("site_name").expect("a name");
    let site = site.as_str().expect("text");
    assert!(site.len() >= 100 && title.starts_with(site), "{site}");
}

#[test]
fn a_summary_that_cannot_be_read_costs_no_post_that_has_its_content() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("feed.atom");
    // More elements than are read of a page.
    let endless = "<p>a".repeat(3_000_001);
    let entry = |id: &str, content: &str| {
        format!("<entry><id>{id}</id><summary type='html'><![CDATA[{endless}]]></summary>{content}</entry>")
    };
    let entries = entry("1", "<content>All of it.</content>") + &entry("2", "");
    std::fs::write(&path, format!("<feed xmlns='http://www.w3.org/2005/Atom'>{entries}</feed>")).expect("a file");
    let source = spec(path.to_str().expect("UTF-8"), &[]);
    let listed = list(&source).expect("lists");
    let whole = read(&source, &listed[0]).expect("a post");
    assert_eq!((whole.text.as_str(), whole.metadata.get("description")), ("All of it.", None));
    // Where the summary is all there is, it is what fails.
    assert_eq!(read(&source, &listed[1]).expect_err("too much").kind, Kind::LimitExceeded);
}

#[test]
fn an_odd_author_costs_no_feed() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("feed.xml");
    // The bracket is a letter of three bytes beside an address of mail.
    let feed = "<rss version='2.0'><channel><title>x</title>
        <item><guid>1</guid><author>ann@a.example\u{FF08}Ann\u{FF09}</author><description>One.</description></item>
        <item><guid>2</guid><description>Two.</description></item></channel></rss>";
    std::fs::write(&path, feed).expect("a file");
    let source = spec(path.to_str().expect("UTF-8"), &[]);
    let listed = list(&source).expect("lists");
    let authors = listed.iter().map(|item| read(&source, item).expect("a post").metadata.remove("author"));
    assert_eq!(authors.collect::<Vec<_>>(), [Some(json!("\u{FF08}Ann\u{FF09}")), None]);
}

/// Found by fuzzing: the parser panicked, which cost the feed.
#[test]
fn an_encoding_that_is_named_late_changes_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("feed.xml");
    let declared = "<?xml version='1.0' encoding='ISO-8859-1'?>";
    let feed = format!(
        "<!-- first -->{declared}<rss version='2.0'><channel><title>x</title>{declared}
        <item><guid>1</guid><description>Größe</description></item></channel></rss>"
    );
    std::fs::write(&path, feed).expect("a file");
    let source = spec(path.to_str().expect("UTF-8"), &[]);
    let listed = list(&source).expect("lists");
    assert_eq!(read(&source, &listed[0]).expect("a post").text, "Größe");
}

#[test]
fn a_post_that_left_the_feed_cannot_be_read_any_more() {
    let address = serve(site);
    let source = spec(&format!("http://{address}/shrunk"), &[&address]);
    let items = list(&source).expect("lists");
    assert!(items.iter().any(|item| item.uri.ends_with("/posts/new#g2")));
    let linked = format!("http://{address}/posts/linked#g2");
    let gone = Item { uri: linked.clone(), ..items[1].clone() };
    let error = rag_ingest::read(&source, &gone, &COUNTER).expect_err("gone").error;
    assert_eq!(error.message, format!("\"{linked}\" left the feed since it was listed"));
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
        ("All of [it](https://a.example/other).", "https://a.example/posts/whole#g1")
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
