// SPDX-License-Identifier: PostgreSQL

//! From the bytes of a feed to its entries.
//!
//! feed-rs reads RSS, Atom and JSON Feed, and what people write in their stead. It knows no entity but the five of XML, so
//! there is nothing to expand; but it does work for each pair of attributes of a tag, copies the base of an element with
//! each, and asks for a namespace among all that are declared. [`bounds`](check_xml) of these are checked before it sees the
//! feed, in one pass. Text in another encoding is decoded before, as that of a page is, by what the feed and its server say.

use crate::parse::html::encoding;
use feed_rs::model;
use feed_rs::parser::Builder;
use quick_xml::events::{BytesStart, Event};
use quick_xml::reader::Reader;
use rag_core::error::{Error, Kind, Result};
use rag_core::provenance::ContentHash;
use serde_json::{Map, Value, json};
use std::collections::{HashMap, HashSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use url::Url;

/// Deepest nesting of elements.
const MAX_DEPTH: usize = 256;

/// Bytes of a tag.
const MAX_TAG: usize = 64 << 10;

/// Attributes of a tag.
const MAX_ATTRIBUTES: usize = 64;

/// Namespaces that hold at one place.
const MAX_NAMESPACES: usize = 256;

/// Bytes of the base of an element.
const MAX_BASE: usize = 2000;

/// Authors of a JSON Feed, or of one of its items.
const MAX_AUTHORS: usize = 100;

/// An entry.
#[derive(Debug, Clone)]
pub struct Entry {
    /// What the post is known by.
    pub uri: String,
    /// What the feed says about it, as [`crate::parse::entry`] reads it.
    pub bytes: Vec<u8>,
    /// Where it is.
    pub link: Option<Url>,
    /// Whether it has the content of the post.
    pub whole: bool,
}

/// Which feed it is.
pub struct Feed<'a> {
    /// Location of the source.
    pub location: &'a str,
    /// Where it was found in the end.
    pub url: Option<&'a Url>,
}

fn bad(why: &str) -> Error {
    Error::new(Kind::BadContent, format!("is no feed that can be read: {why}"))
}

/// The entries of a feed, in its order. The message of an error is what is to be said of the feed.
pub fn entries(bytes: &[u8], content_type: Option<&str>, feed: &Feed<'_>) -> Result<Vec<Entry>> {
    let text = encoding::decode(bytes, content_type).text;
    let text = without_declaration(&text);
    match text.bytes().find(|b| matches!(b, b'<' | b'{')) {
        Some(b'<') => check_xml(text)?,
        Some(_) => check_json(text)?,
        None => return Err(bad("it is neither XML nor JSON")),
    }
    let parser = Builder::new()
        .base_uri(feed.url.map(Url::as_str))
        .sanitize_content(false)
        // What has no id is known by its link; a made-up one would be another each time.
        .id_generator(|_, _, _| String::new())
        .build();
    // Whatever it did not expect is a bad feed and not a dead worker.
    let read = catch_unwind(AssertUnwindSafe(|| parser.parse(text.as_bytes())));
    let read = read.map_err(|_| bad("its elements are not what they claim to be"))?.map_err(|e| bad(&e.to_string()))?;
    let site = read.title.as_ref().map(|title| title.content.as_str());
    let language = read.language.as_deref();
    let mut taken = HashSet::new();
    // Those of other formats are whoever runs the site.
    let theirs = read.feed_type == model::FeedType::Atom && read.authors.len() <= MAX_AUTHORS;
    let authors = if theirs { read.authors.as_slice() } else { &[] };
    let mut shared = HashMap::new();
    for link in read.entries.iter().filter_map(|entry| link(entry, feed.url)) {
        *shared.entry(link).or_insert(0_usize) += 1;
    }
    shared.retain(|_, entries| *entries > 1);
    let known = Known { feed, site, language, authors, shared };
    Ok(read.entries.iter().map(|entry| known.entry(entry, &mut taken)).collect())
}

/// What all entries of a feed share.
struct Known<'a> {
    feed: &'a Feed<'a>,
    site: Option<&'a str>,
    language: Option<&'a str>,
    authors: &'a [model::Person],
    /// Links of more than one entry, which tell none from another.
    shared: HashMap<Url, usize>,
}

impl Known<'_> {
    fn entry(&self, entry: &model::Entry, taken: &mut HashSet<String>) -> Entry {
        let link = link(entry, self.feed.url);
        let id = Some(entry.id.trim()).filter(|id| !id.is_empty());
        let content = entry.content.as_ref().and_then(|content| {
            let text = content.body.as_deref().map(str::trim).filter(|text| !text.is_empty())?;
            let kind = content.content_type.to_string();
            let readable = kind.starts_with("text/") || kind.contains("xml") || kind.contains("xhtml");
            // Anything else is no text, or is said in base64.
            readable.then(|| json!({"type": kind, "text": text}))
        });
        let text = |text: &model::Text| json!({"type": text.content_type.to_string(), "text": text.content});
        let whole = content.is_some();
        let authors = if entry.authors.is_empty() { self.authors } else { entry.authors.as_slice() };
        let names: Vec<&str> = authors.iter().filter_map(|person| person.name.as_deref()).collect();
        let tags: Vec<&str> = entry.categories.iter().map(|tag| tag.label.as_deref().unwrap_or(&tag.term)).collect();
        let fields = [
            ("feed", Some(self.feed.location.into())),
            ("site", self.site.map(Value::from)),
            ("id", id.map(Value::from)),
            ("url", link.as_ref().map(|link| link.as_str().into())),
            ("title", entry.title.as_ref().map(text)),
            ("authors", (!names.is_empty()).then(|| names.into())),
            ("published", entry.published.map(|time| time.to_rfc3339().into())),
            ("updated", entry.updated.map(|time| time.to_rfc3339().into())),
            ("tags", (!tags.is_empty()).then(|| tags.into())),
            ("language", entry.language.as_deref().or(self.language).map(Value::from)),
            ("base", entry.base.as_deref().map(Value::from)),
            ("content", content),
            ("summary", entry.summary.as_ref().map(text)),
        ];
        let record: Map<String, Value> =
            fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect();
        let bytes = Value::Object(record).to_string().into_bytes();
        let own = link.as_ref().filter(|link| !self.shared.contains_key(link));
        let uri = uri(own, id, &bytes, taken);
        Entry { uri, bytes, link, whole }
    }
}

/// What a post is known by: its own link, else its id, else what it says, and no two of a feed by the same.
fn uri(link: Option<&Url>, id: Option<&str>, bytes: &[u8], taken: &mut HashSet<String>) -> String {
    let said = format!("post {}", ContentHash::of(bytes));
    let named = [link.map(Url::as_str), id].into_iter().flatten().filter(|uri| uri.len() <= super::MAX_URI);
    let free = named.map(str::to_owned).find(|uri| !taken.contains(uri)).unwrap_or(said);
    taken.insert(free.clone());
    free
}

/// The page of an entry: what it links to, or its id where that is an address.
fn link(entry: &model::Entry, base: Option<&Url>) -> Option<Url> {
    let page = |link: &&model::Link| {
        let rel = link.rel.as_deref().is_none_or(|rel| rel.eq_ignore_ascii_case("alternate"));
        let kind = link.media_type.as_deref().is_none_or(|kind| kind.contains("html"));
        rel && kind && link.target.is_none()
    };
    let mut links = entry.links.iter().filter(page).filter_map(|link| match base {
        Some(base) => base.join(link.href.trim()).ok(),
        None => Url::parse(link.href.trim()).ok(),
    });
    let of_web = |url: &Url| matches!(url.scheme(), "http" | "https");
    links.find(of_web).or_else(|| Url::parse(entry.id.trim()).ok().filter(of_web))
}

/// A feed without its XML declaration: it may name the encoding that it had.
fn without_declaration(text: &str) -> &str {
    let text = text.trim_start();
    match text.strip_prefix("<?xml").and_then(|rest| rest.split_once("?>")) {
        Some((_, rest)) => rest,
        None => text,
    }
}

/// Refuses XML that would make more work than it has bytes.
fn check_xml(text: &str) -> Result<()> {
    let limit = |what: &str, max: usize| {
        Error::new(Kind::LimitExceeded, format!("is no feed that can be read: it has {what} {max}"))
    };
    let mut reader = Reader::from_str(text);
    // Namespaces that each open element declares, and all of them.
    let mut open: Vec<usize> = Vec::new();
    let mut namespaces = 0;
    loop {
        let at = reader.buffer_position();
        let event = reader.read_event().map_err(|error| bad(&error.to_string()))?;
        let length = (reader.buffer_position() - at) as usize;
        match event {
            Event::Start(ref tag) | Event::Empty(ref tag) => {
                if length > MAX_TAG {
                    return Err(limit("a tag with more bytes than", MAX_TAG));
                }
                let (attributes, declared, base) = attributes(tag);
                if attributes > MAX_ATTRIBUTES {
                    return Err(limit("a tag with more attributes than", MAX_ATTRIBUTES));
                }
                if base > MAX_BASE {
                    return Err(limit("a base with more bytes than", MAX_BASE));
                }
                if namespaces + declared > MAX_NAMESPACES {
                    return Err(limit("more namespaces at one place than", MAX_NAMESPACES));
                }
                if matches!(event, Event::Start(_)) {
                    open.push(declared);
                    namespaces += declared;
                    if open.len() > MAX_DEPTH {
                        return Err(limit("elements nested deeper than", MAX_DEPTH));
                    }
                }
            }
            Event::End(_) => namespaces -= open.pop().unwrap_or(0),
            Event::Eof => return Ok(()),
            _ => {}
        }
    }
}

/// How many attributes a tag has, how many of them declare a namespace, and the bytes of its base.
fn attributes(tag: &BytesStart<'_>) -> (usize, usize, usize) {
    let (mut all, mut declared, mut base) = (0, 0, 0);
    for attribute in tag.attributes().with_checks(false) {
        all += 1;
        let Ok(attribute) = attribute else { continue };
        let key: &str = attribute.key.as_ref();
        declared += usize::from(key.starts_with("xmlns"));
        if key == "xml:base" {
            base = attribute.value.len();
        }
    }
    (all, declared, base)
}

/// Refuses JSON with more authors than anybody has: each is compared with the others, and given to each item.
fn check_json(text: &str) -> Result<()> {
    let Ok(Value::Object(feed)) = serde_json::from_str::<Value>(text) else {
        return Err(bad("it is no JSON object"));
    };
    let many =
        |of: &Value| of.get("authors").and_then(Value::as_array).is_some_and(|authors| authors.len() > MAX_AUTHORS);
    let items = feed.get("items").and_then(Value::as_array);
    let too_many = items.into_iter().flatten().any(many);
    if too_many || many(&Value::Object(feed)) {
        let message = format!("is no feed that can be read: it has more authors than {MAX_AUTHORS}");
        return Err(Error::new(Kind::LimitExceeded, message));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    fn read(text: &str) -> Result<Vec<Entry>> {
        let url = Url::parse("https://a.example/blog/feed.xml").expect("a URL");
        entries(text.as_bytes(), None, &Feed { location: "https://a.example/feed", url: Some(&url) })
    }

    /// URI, link, whether it is whole, and the record.
    fn said(text: &str) -> Vec<(String, Option<String>, bool, Value)> {
        let record = |entry: &Entry| serde_json::from_slice(&entry.bytes).expect("JSON");
        let found = read(text).expect("a feed");
        found.iter().map(|e| (e.uri.clone(), e.link.clone().map(String::from), e.whole, record(e))).collect()
    }

    const RSS: &str = r#"<?xml version="1.0" encoding="utf-8"?>
        <rss version="2.0" xmlns:content="http://purl.org/rss/1.0/modules/content/" xmlns:dc="http://purl.org/dc/elements/1.1/">
        <channel><title>Site</title><link>https://a.example/</link><language>en</language><managingEditor>x@a.example (X)</managingEditor>
        <item><title>AT&amp;amp;T &amp; more</title><link>/blog/1</link><guid isPermaLink="false">id-1</guid>
          <pubDate>Sat, 03 Feb 2024 04:05:06 +0100</pubDate><dc:creator>Ann</dc:creator><category>x</category><category>y</category>
          <description>&lt;p&gt;Short&lt;/p&gt;</description><content:encoded><![CDATA[<p>All of <b>it</b></p>]]></content:encoded></item>
        <item><link>https://a.example/blog/2</link><description>Only this</description></item>
        <item><title>No link</title><guid>tag:2</guid></item>
        <item><title>Nothing</title></item>
        </channel></rss>"#;

    #[test]
    fn rss_2() {
        let posts = said(RSS);
        assert_eq!(posts.len(), 4);
        let (uri, link, whole, record) = &posts[0];
        assert_eq!(
            (uri.as_str(), link.as_deref(), *whole),
            ("https://a.example/blog/1", Some("https://a.example/blog/1"), true)
        );
        let expected = json!({
            "feed": "https://a.example/feed", "site": "Site", "id": "id-1", "url": "https://a.example/blog/1",
            "title": {"type": "text/plain", "text": "AT&amp;T & more"}, "authors": ["Ann"],
            "published": "2024-02-03T03:05:06+00:00", "updated": "2024-02-03T03:05:06+00:00", "tags": ["x", "y"],
            "language": "en", "content": {"type": "text/html", "text": "<p>All of <b>it</b></p>"},
            "summary": {"type": "text/html", "text": "<p>Short</p>"}
        });
        assert_eq!(*record, expected);
        assert_eq!((posts[1].0.as_str(), posts[1].2), ("https://a.example/blog/2", false));
        assert_eq!((posts[2].0.as_str(), &posts[2].1), ("tag:2", &None));
        assert!(posts[3].0.starts_with("post "), "{}", posts[3].0);
        assert_eq!(said(RSS), posts, "an entry is the same each time");
    }

    #[test]
    fn rss_1_atom_and_json() {
        let rdf = r#"<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="http://purl.org/rss/1.0/" xmlns:dc="http://purl.org/dc/elements/1.1/">
            <channel><title>Site</title><link>https://a.example/</link></channel>
            <item><title>T</title><link>https://a.example/1</link><description>S</description><dc:date>2024-02-03T04:05:06Z</dc:date></item></rdf:RDF>"#;
        let posts = said(rdf);
        assert_eq!((posts[0].0.as_str(), posts[0].2), ("https://a.example/1", false));
        assert_eq!(posts[0].3["published"], json!("2024-02-03T04:05:06+00:00"));
        let atom = r#"<feed xmlns="http://www.w3.org/2005/Atom" xml:lang="de"><title>Site</title><author><name>Ann</name></author><id>f</id>
            <entry><id>tag:a.example,1</id><title type="html">A &amp;lt; B</title><updated>2024-02-03T04:05:06Z</updated>
              <link rel="self" href="https://a.example/1.atom"/><link href="/1"/><link rel="enclosure" href="https://a.example/1.mp3"/>
              <content type="xhtml"><div xmlns="http://www.w3.org/1999/xhtml"><p>All <em>of</em> it<br/>here</p></div></content></entry>
            <entry><id>https://a.example/2</id><title>T</title><updated>2024-02-03T04:05:06Z</updated><summary>S</summary></entry></feed>"#;
        let posts = said(atom);
        assert_eq!(posts[0].0, "https://a.example/1");
        assert_eq!(posts[0].3["authors"], json!(["Ann"]));
        assert_eq!(posts[0].3["language"], json!("de"));
        assert_eq!(posts[0].3["content"]["text"], json!("<p>All <em>of</em> it<br></br>here</p>"));
        assert_eq!((posts[1].1.as_deref(), posts[1].2), (Some("https://a.example/2"), false));
        assert_eq!(posts[1].0, "https://a.example/2");
        let feed = json!({
            "version": "https://jsonfeed.org/version/1.1", "title": "Site", "authors": [{"name": "Ann"}], "items": [
                {"id": "1", "url": "https://a.example/1", "content_text": "Plain < text", "date_published": "2024-02-03T04:05:06Z", "tags": ["x"]},
                {"id": "2", "url": "https://a.example/1", "summary": "S"}
            ]
        });
        let posts = said(&format!("\u{FEFF}{feed}"));
        assert_eq!(posts[0].3["content"], json!({"type": "text/plain", "text": "Plain < text"}));
        assert_eq!(posts[0].3["authors"], json!(["Ann"]));
        // Two posts about one page: neither is known by it, or a newer one would take an older one's place.
        assert_eq!((posts[0].0.as_str(), posts[1].0.as_str()), ("1", "2"));
    }

    #[test]
    fn other_encodings_are_read() {
        let latin = b"<?xml version='1.0' encoding='ISO-8859-1'?><rss version='2.0'><channel><title>x</title><item><title>Caf\xE9</title><guid>1</guid></item></channel></rss>";
        let feed = Feed { location: "f", url: None };
        let found = entries(latin, Some("application/rss+xml"), &feed).expect("a feed");
        assert!(String::from_utf8_lossy(&found[0].bytes).contains("Café"));
        let start = latin.windows(4).position(|part| part == b"<rss").expect("a start");
        let found = entries(&latin[start..], Some("text/xml; charset=iso-8859-1"), &feed).expect("a feed");
        assert!(String::from_utf8_lossy(&found[0].bytes).contains("Café"));
    }

    #[test]
    fn what_is_no_feed_is_refused() {
        for text in [
            "",
            "plain",
            "<html><body><p>x</p></body></html>",
            "<!doctype html><p>x<p>y",
            "{\"items\": []}",
            "[{}]",
            "<rss version=\"2.0\"><channel><item>",
            "<feed xmlns=\"http://www.w3.org/2005/Atom\"><entry></feed>",
        ] {
            let error = read(text).expect_err(text);
            assert_eq!(error.kind, Kind::BadContent, "{text}");
            assert!(error.message.starts_with("is no feed that can be read: "), "{}", error.message);
        }
    }

    #[test]
    fn a_hostile_feed_ends_soon() {
        let item = |inside: &str| format!("<rss version='2.0'><channel><title>x</title>{inside}</channel></rss>");
        let lol: String = (1..10).map(|n| format!("<!ENTITY l{n} '{}'>", format!("&l{};", n - 1).repeat(10))).collect();
        let bomb = format!(
            "<!DOCTYPE rss [<!ENTITY l0 'lol'>{lol}]>{}",
            item("<item><title>&l9;</title><guid>1</guid></item>")
        );
        let outside = format!(
            "<!DOCTYPE rss [<!ENTITY x SYSTEM 'file:///etc/passwd'>]>{}",
            item("<item><title>&x;</title><guid>1</guid></item>")
        );
        let many = |n: usize, what: &str| (0..n).map(|i| what.replace('#', &i.to_string())).collect::<String>();
        let started = Instant::now();
        for text in [&bomb, &outside] {
            let posts = said(text);
            let title = posts[0].3["title"]["text"].as_str().unwrap_or_default().to_owned();
            assert!(title.len() < 10 && !title.contains("root"), "{title}");
        }
        for (text, kind) in [
            (item(&"<a>".repeat(100_000)), Kind::LimitExceeded),
            (item(&format!("<a {}/>", many(1000, "a#='' "))), Kind::LimitExceeded),
            (item(&format!("<a b='{}'/>", "x".repeat(MAX_TAG))), Kind::LimitExceeded),
            (item(&format!("<a xml:base='https://a.example/{}'/>", "x".repeat(3000))), Kind::LimitExceeded),
            (item(&"<a xmlns:b='c' xmlns:d='e'>".repeat(200)), Kind::LimitExceeded),
            (json!({"items": [], "authors": vec![json!({"name": "a"}); 1000]}).to_string(), Kind::LimitExceeded),
            ("{\"a\":".repeat(100_000), Kind::BadContent),
        ] {
            assert_eq!(read(&text).map(|_| ()).map_err(|e| e.kind), Err(kind), "{}", &text[..text.len().min(80)]);
        }
        let posts = read(&item(&many(20_000, "<item><title>t</title><guid>g#</guid></item>"))).expect("a feed");
        assert_eq!(posts.len(), 20_000);
        assert!(started.elapsed() < Duration::from_secs(60), "{:?}", started.elapsed());
    }
}
