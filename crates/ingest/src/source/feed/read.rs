// SPDX-License-Identifier: PostgreSQL

//! From the bytes of a feed to its entries.
//!
//! feed-rs reads RSS, Atom and JSON Feed, and what people write in their stead. It knows no entity but the five of XML, so
//! there is nothing to expand; what it is given has been looked through by [`check`] before. Text in another encoding is decoded,
//! as that of a page is, by what the feed and its server say. What a feed says of itself goes with each of its entries, so it is
//! cut before.

use super::check::{self, bad};
use crate::parse::html::encoding;
use crate::parse::metadata::short;
use feed_rs::model;
use feed_rs::parser::Builder;
use rag_core::error::{Error, Result};
use rag_core::provenance::ContentHash;
use serde_json::{Map, Value, json};
use std::collections::{HashMap, HashSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use url::Url;

/// Most characters of the names of who wrote a post.
const MAX_NAMES: usize = 500;

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

/// The entries of a feed, in its order. The message of an error is what is to be said of the feed.
pub fn entries(bytes: &[u8], content_type: Option<&str>, feed: &Feed<'_>) -> Result<Vec<Entry>> {
    let text = encoding::decode(bytes, content_type).text;
    let text = check::without_declaration(&text);
    let (text, authors) = match text.bytes().find(|b| matches!(b, b'<' | b'{')) {
        Some(b'<') => (check::xml(text)?, Vec::new()),
        Some(_) => check::json(text)?,
        None => return Err(bad("it is neither XML nor JSON")),
    };
    let parser = Builder::new()
        .base_uri(feed.url.map(Url::as_str))
        .sanitize_content(false)
        // What has no id is known by its link; a made-up one would be another each time.
        .id_generator(|_, _, _| String::new())
        .build();
    // Whatever it did not expect is a bad feed and not a dead worker.
    let read = catch_unwind(AssertUnwindSafe(|| parser.parse(text.as_bytes())));
    let read = read.map_err(|_| bad("its elements are not what they claim to be"))?.map_err(|e| bad(&e.to_string()))?;
    drop(text);
    // Those of RSS are whoever runs the site.
    let of_feed = match read.feed_type {
        model::FeedType::Atom => names(&read.authors),
        _ => cut(authors.iter().map(String::as_str)),
    };
    let named: Vec<(Option<Url>, Vec<String>)> = read.entries.iter().map(|entry| identity(entry, feed.url)).collect();
    let mut shared: HashMap<&str, usize> = HashMap::new();
    named.iter().flat_map(|(_, names)| names).for_each(|name| *shared.entry(name).or_default() += 1);
    let known = Known {
        feed,
        site: read.title.as_ref().map(|title| short(&title.content)),
        language: read.language.as_deref().map(short),
        authors: of_feed,
    };
    let mut taken = HashSet::new();
    let entry = |(entry, (link, names)): (&model::Entry, &(Option<Url>, Vec<String>))| {
        let said = known.said(entry, link.as_ref());
        let name = names.iter().find(|name| shared.get(name.as_str()) == Some(&1));
        let uri = name.cloned().unwrap_or_else(|| format!("post {}", ContentHash::of(&said.bytes)));
        // What says the same as another is that.
        taken.insert(uri.clone()).then_some(Entry { uri, ..said })
    };
    Ok(read.entries.iter().zip(&named).filter_map(entry).collect())
}

/// The names of some people, without repetition, and no more than go with a chunk.
fn names(people: &[model::Person]) -> Vec<String> {
    cut(people.iter().filter_map(|person| person.name.as_deref()))
}

fn cut<'n>(names: impl Iterator<Item = &'n str>) -> Vec<String> {
    let mut said = HashSet::new();
    let mut left = MAX_NAMES;
    let names = names.map(str::trim).filter(|name| !name.is_empty() && said.insert(*name)).map(short);
    let fits = |name: &String| {
        let before = left;
        left = left.saturating_sub(name.chars().count());
        before > 0
    };
    names.take_while(fits).collect()
}

/// What all entries of a feed share.
struct Known<'a> {
    feed: &'a Feed<'a>,
    site: Option<String>,
    language: Option<String>,
    authors: Vec<String>,
}

impl Known<'_> {
    /// An entry without its URI.
    fn said(&self, entry: &model::Entry, link: Option<&Url>) -> Entry {
        let id = id(entry);
        let content = entry.content.as_ref().and_then(|content| {
            let text = content.body.as_deref().map(str::trim).filter(|text| !text.is_empty())?;
            let kind = content.content_type.to_string();
            let readable = kind.starts_with("text/") || kind.contains("xml") || kind.contains("xhtml");
            // Anything else is no text, or is said in base64.
            readable.then(|| json!({"type": kind, "text": text}))
        });
        let text = |text: &model::Text| json!({"type": text.content_type.to_string(), "text": text.content});
        let whole = content.is_some();
        let own = names(&entry.authors);
        let authors = if entry.authors.is_empty() { &self.authors } else { &own };
        let tags: Vec<&str> = entry.categories.iter().map(|tag| tag.label.as_deref().unwrap_or(&tag.term)).collect();
        let fields = [
            ("feed", Some(self.feed.location.into())),
            ("site", self.site.as_deref().map(Value::from)),
            ("id", id.map(Value::from)),
            ("url", link.map(|link| link.as_str().into())),
            ("title", entry.title.as_ref().map(text)),
            ("authors", (!authors.is_empty()).then(|| authors.as_slice().into())),
            ("published", entry.published.map(|time| time.to_rfc3339().into())),
            ("updated", entry.updated.map(|time| time.to_rfc3339().into())),
            ("tags", (!tags.is_empty()).then(|| tags.into())),
            ("language", entry.language.as_deref().or(self.language.as_deref()).map(Value::from)),
            ("base", entry.base.as_deref().map(Value::from)),
            ("content", content),
            ("summary", entry.summary.as_ref().map(text)),
        ];
        let record: Map<String, Value> =
            fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect();
        let bytes = Value::Object(record).to_string().into_bytes();
        Entry { uri: String::new(), bytes, link: link.cloned(), whole }
    }
}

/// What a feed says about an entry with one thing more.
pub fn noted(bytes: &[u8], name: &str, what: &str) -> Result<Vec<u8>> {
    let record = serde_json::from_slice::<Map<String, Value>>(bytes);
    let mut record = record.map_err(|error| Error::internal(format!("an entry is no JSON object: {error}")))?;
    record.insert(name.to_owned(), what.into());
    Ok(Value::Object(record).to_string().into_bytes())
}

fn id(entry: &model::Entry) -> Option<&str> {
    Some(entry.id.trim()).filter(|id| !id.is_empty())
}

fn of_web(url: &Url) -> bool {
    matches!(url.scheme(), "http" | "https")
}

/// The page of an entry, and what it may be known by, best first; none of it is of use where another entry has it too.
///
/// A link alone does not do where there is an id: when this post has left the feed, another may link to the same page.
fn identity(entry: &model::Entry, base: Option<&Url>) -> (Option<Url>, Vec<String>) {
    let (link, id) = (link(entry, base), id(entry));
    let address = id.and_then(|id| Url::parse(id).ok()).filter(of_web).map(String::from);
    let names = match (&link, id) {
        (Some(link), None) => vec![link.to_string()],
        (link, Some(id)) => {
            let both = link.as_ref().map(|link| format!("{link}#{id}"));
            let alone = address.is_none().then(|| id.to_owned());
            [address, both, alone].into_iter().flatten().collect()
        }
        (None, None) => Vec::new(),
    };
    (link, names.into_iter().filter(|name| name.len() <= super::MAX_URI).collect())
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
    links.find(of_web).or_else(|| Url::parse(entry.id.trim()).ok().filter(of_web))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rag_core::error::Kind;
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
            ("https://a.example/blog/1#id-1", Some("https://a.example/blog/1"), true)
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
        assert_eq!(posts[0].0, "https://a.example/1#tag:a.example,1");
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
        assert_eq!((posts[0].0.as_str(), posts[1].0.as_str()), ("https://a.example/1#1", "https://a.example/1#2"));
    }

    #[test]
    fn a_post_is_known_by_what_no_other_has() {
        let item = |id: &str, link: &str, text: &str| {
            let guid = if id.is_empty() { String::new() } else { format!("<guid>{id}</guid>") };
            let link = if link.is_empty() { String::new() } else { format!("<link>https://a.example/{link}</link>") };
            format!("<item>{guid}{link}<description>{text}</description></item>")
        };
        let uris = |items: &[String]| -> Vec<String> {
            let text = format!("<rss version='2.0'><channel><title>x</title>{}</channel></rss>", items.concat());
            read(&text).expect("a feed").into_iter().map(|entry| entry.uri).collect()
        };
        // One after the other, and both at once.
        let (first, second) = (item("1", "", "a"), item("2", "", "b"));
        let (one, two) = (item("1", "p", "a"), item("2", "p", "b"));
        assert_eq!(uris(&[first, second]), ["1", "2"]);
        assert_eq!(uris(std::slice::from_ref(&one)), ["https://a.example/p#1"]);
        assert_eq!(uris(std::slice::from_ref(&two)), ["https://a.example/p#2"]);
        assert_eq!(uris(&[one, two]), ["https://a.example/p#1", "https://a.example/p#2"]);
        // An id that is an address is one, unless it is that of several.
        let address = "https://a.example/?p=1";
        assert_eq!(uris(&[item(address, "p", "a"), item("", "q", "b")]), [address, "https://a.example/q"]);
        let same = [item(address, "p", "a"), item(address, "q", "b")];
        assert_eq!(uris(&same), [format!("https://a.example/p#{address}"), format!("https://a.example/q#{address}")]);
        // What cannot be told from another by its names is what it says, and what says the same is the same.
        let said = uris(&[item("", "p", "a"), item("", "p", "b"), item("", "p", "a")]);
        assert!(said.len() == 2 && said[0] != said[1] && said.iter().all(|uri| uri.starts_with("post ")), "{said:?}");
    }

    #[test]
    fn what_goes_with_each_post_is_cut_before() {
        let long = "n".repeat(100_000);
        let items = "<item><description>d</description></item>".repeat(2);
        let rss = format!(
            "<rss version='2.0'><channel><title>{long}</title><language>{long}</language>{items}</channel></rss>"
        );
        let entry = "<entry><id>1</id></entry><entry><id>2</id></entry>";
        let people: String = (0..200).map(|n| format!("<author><name>{n} {long}</name></author>")).collect();
        let atom = format!(
            "<feed xmlns='http://www.w3.org/2005/Atom' xml:lang='{}'>{people}{entry}</feed>",
            "l".repeat(60_000)
        );
        let author = json!({"name": long});
        let json = json!({
            "version": "https://jsonfeed.org/version/1.1", "title": long, "language": long, "authors": [author],
            "author": author, "items": [{"id": "1"}, {"id": "2"}]
        });
        for text in [rss, atom, json.to_string()] {
            for (_, _, _, record) in said(&text) {
                assert!(record.to_string().len() < 4000, "{} bytes", record.to_string().len());
            }
        }
        let twice = r#"{"version":"https://jsonfeed.org/version/1","title":"t","author":{"name":"Ann"},"authors":[{"name":"Ann"},{"name":"Bob"}],"items":[{}]}"#;
        assert_eq!(said(twice)[0].3["authors"], json!(["Ann", "Bob"]));
    }

    #[test]
    fn what_its_parser_stumbles_over_costs_no_post() {
        let rss = "<rss version='2.0' xmlns:itunes='http://www.itunes.com/dtds/podcast-1.0.dtd' xmlns:media='http://search.yahoo.com/mrss/'
            xmlns:podcast='https://podcastindex.org/namespace/1.0' xmlns:dc='http://purl.org/dc/elements/1.1/'><channel><title>x</title>
            <webMaster>w@a.example\u{2014}W</webMaster><itunes:author>i@a.example\u{2014}I</itunes:author>
            <item><guid>1</guid><author>ann@a.example\u{FF08}Ann\u{FF09}</author><itunes:duration>99999999999999999999999</itunes:duration></item>
            <item><guid>2</guid><dc:creator>Bob \u{2014}bob@a.example</dc:creator><itunes:duration>\u{663}</itunes:duration></item>
            <item><guid>3</guid><media:text start='\u{663}:\u{661}\u{661}:\u{661}\u{661}'>t</media:text><podcast:person role='nobody knows'>P</podcast:person></item>
            </channel></rss>";
        let posts = said(rss);
        assert_eq!(posts.iter().map(|post| post.0.as_str()).collect::<Vec<_>>(), ["1", "2", "3"]);
        assert_eq!(posts[0].3["authors"], json!(["\u{FF08}Ann\u{FF09}"]));
        assert_eq!(posts[1].3["authors"], json!(["Bob \u{2014}"]));
        let json = json!({
            "version": "https://jsonfeed.org/version/1.1", "title": "x", "authors": [{"name": "c@a.example\u{FF08}C"}],
            "items": [{"id": 1}, {"id": "2", "author": {"name": "d@a.example\u{FF08}D"}}]
        });
        let posts = said(&json.to_string());
        assert_eq!((posts[0].0.as_str(), &posts[1].3["authors"]), ("1", &json!(["\u{FF08}D"])));
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
            (item(&format!("<a b='{}'/>", "x".repeat(64 << 10))), Kind::LimitExceeded),
            (item(&"<item/>".repeat(100_001)), Kind::LimitExceeded),
            (json!({"items": vec![json!({}); 100_001]}).to_string(), Kind::LimitExceeded),
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
