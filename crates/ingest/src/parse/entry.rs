// SPDX-License-Identifier: PostgreSQL

//! A post of a feed, as it comes from where feeds are read: one JSON object, and perhaps the page that it links to.
//!
//! Owns which of the texts is read. A post that has its content is that, as Markdown. One that has a summary at most is the
//! page that came along, read as an article; without a page that can be read it stays the summary, and its metadata says so
//! (`summary`, with the reason), because a summary that is taken for the post would be cited as what it is not.
//!
//! ```json
//! {"feed", "site", "id", "url", "title": {"type", "text"}, "authors": [], "published", "updated", "tags": [], "language",
//!  "base", "content": {"type", "text"}, "summary": {"type", "text"}, "refused"}
//! ```

use super::html::{self, Reading, Served};
use super::post::{self, Object, list, note, text_of};
use super::{Parsed, markdown, metadata};
use rag_core::error::{Error, Kind, Result};
use rag_core::source::Origin;
use serde_json::{Map, Value};
use url::Url;

/// Content type of such a post.
pub const MEDIA_TYPE: &str = "application/x-feed-entry+json";

/// Longest description, in characters.
const MAX_DESCRIPTION: usize = 1000;

/// Tags and authors that are kept.
const MAX_NAMES: usize = 100;

/// The document of a post.
pub fn parse(bytes: &[u8], origin: &Origin) -> Result<Parsed> {
    let (entry, repaired_bytes) = post::object(bytes, "post")?;
    let address = |name: &str| text_of(&entry, &[name]).and_then(|url| Url::parse(&url).ok());
    let base = address("base").or_else(|| address("url")).or_else(|| address("feed"));
    let summary = text(&entry, "summary", base.as_ref());
    let (mut parsed, why) = match text(&entry, "content", base.as_ref())? {
        Some(content) => (stored(content), None),
        None => linked(origin, &summary, &entry)?,
    };
    // One that cannot be read describes nothing, and costs no text that can be.
    let described = summary.ok().flatten().filter(|_| why.is_none());
    parsed.external_id = text_of(&entry, &["id"]);
    parsed.repaired_bytes += repaired_bytes;
    parsed.title = parsed.title.or_else(|| parsed.structure.title());
    metadata::describe(&mut parsed, about(&entry, described)?);
    if let Some(why) = why {
        parsed.metadata.insert("summary".to_owned(), why.into());
    }
    Ok(parsed)
}

/// The page of a post that has no content of its own, or what there is instead and why.
fn linked(origin: &Origin, summary: &Result<Option<String>>, entry: &Object) -> Result<(Parsed, Option<String>)> {
    let why = match origin.rendition.as_ref().map(page) {
        Some(Ok(page)) => return Ok((page, None)),
        Some(Err(error)) => error.message,
        None => text_of(&origin.metadata, &[WHY]).unwrap_or_else(|| "no page came with it".to_owned()),
    };
    let kept = match summary.clone()? {
        Some(summary) => Some(summary),
        None => title(entry)?,
    };
    match kept {
        Some(kept) => Ok((stored(kept), Some(why))),
        None => Err(Error::new(Kind::BadContent, "post has neither a title nor a text")
            .with_detail(format!("Its page was not read: {why}."))),
    }
}

/// Where whoever acquired a post says why no page comes with it.
pub const WHY: &str = "summary";

/// The article of the page that came with a post.
fn page(rendition: &rag_core::source::Rendition) -> Result<Parsed> {
    let url = Url::parse(&rendition.url).ok();
    let served = rendition.content_type.as_deref();
    let kind = served.unwrap_or_default().split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    match kind.as_str() {
        "text/markdown" => markdown::served(&rendition.bytes, served),
        "text/html" | "application/xhtml+xml" | "" => html::page(
            &rendition.bytes,
            Served { content_type: served, url: url.as_ref(), rendition: None },
            Reading::Article,
        ),
        other => Err(Error::unsupported(format!("\"{}\" is no page but \"{other}\"", rendition.url))),
    }
}

/// A document of some Markdown.
fn stored(text: String) -> Parsed {
    Parsed {
        structure: markdown::structure(&text, 0..text.len()),
        text,
        media_type: "text/markdown".to_owned(),
        ..Parsed::default()
    }
}

/// A text of a post as Markdown; nothing if it says nothing.
fn text(entry: &Object, name: &str, base: Option<&Url>) -> Result<Option<String>> {
    let Some(Value::Object(found)) = entry.get(name) else { return Ok(None) };
    let Some(text) = text_of(found, &["text"]) else { return Ok(None) };
    let kind = text_of(found, &["type"]).unwrap_or_default().to_ascii_lowercase();
    let html = kind.contains("html") || kind.contains("xml");
    let text = if html { html::snippet(&text, base)? } else { text };
    Ok(Some(text).filter(|text| !text.trim().is_empty()))
}

/// The title of a post. It is said to be plain, and is HTML all the same, in many a feed.
fn title(entry: &Object) -> Result<Option<String>> {
    let Some(Value::Object(found)) = entry.get("title") else { return Ok(None) };
    let Some(text) = text_of(found, &["text"]) else { return Ok(None) };
    let html = text_of(found, &["type"]).is_some_and(|kind| kind.contains("html")) || has_reference(&text);
    let title = if html { html::words(&text)? } else { one_line(&text) };
    Ok(Some(title).filter(|title| !title.is_empty()))
}

/// Whether there is something like `&amp;` in a text.
fn has_reference(text: &str) -> bool {
    text.split('&').skip(1).take(100).any(|rest| {
        let name = rest.split(';').next().filter(|name| name.len() < rest.len()).unwrap_or_default();
        (2..=10).contains(&name.len()) && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'#')
    })
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// What a post says about itself, and its feed about it.
fn about(entry: &Object, description: Option<String>) -> Result<Map<String, Value>> {
    let mut about = Map::new();
    let names = |name: &str| -> Vec<&str> {
        let all = list(entry, name).iter().filter_map(Value::as_str).map(str::trim).filter(|name| !name.is_empty());
        all.take(MAX_NAMES).collect()
    };
    note(&mut about, "title", title(entry)?);
    note(&mut about, "language", text_of(entry, &["language"]));
    let time = |name: &str| text_of(entry, &[name]).and_then(|time| metadata::rfc3339(&time));
    let (published, updated) = (time("published"), time("updated"));
    note(&mut about, "published_at", published.clone().or_else(|| updated.clone()));
    note(&mut about, "modified_at", updated.filter(|updated| published.as_ref().is_some_and(|p| p != updated)));
    let authors = names("authors").join(", ");
    note(&mut about, "author", Some(authors).filter(|authors| !authors.is_empty()));
    let tags = names("tags");
    note(&mut about, "tags", (!tags.is_empty()).then_some(tags));
    let description = description.map(|text| one_line(&text).chars().take(MAX_DESCRIPTION).collect::<String>());
    note(&mut about, "description", description);
    note(&mut about, "site_name", text_of(entry, &["site"]));
    // As it is: a sync compares it with the source's location.
    about.extend(entry.get("feed").map(|feed| ("feed".to_owned(), feed.clone())));
    note(&mut about, "url", text_of(entry, &["url"]));
    Ok(about)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rag_core::source::Rendition;
    use serde_json::json;

    fn read(entry: &Value, origin: &Origin) -> Result<Parsed> {
        parse(entry.to_string().as_bytes(), origin)
    }

    fn with_page(content_type: &str, body: &str) -> Origin {
        let rendition = Rendition {
            bytes: body.as_bytes().to_vec(),
            url: "https://a.example/p".into(),
            content_type: Some(content_type.into()),
        };
        Origin { rendition: Some(rendition), ..Origin::default() }
    }

    #[test]
    fn the_content_of_a_post_is_its_text() {
        let entry = json!({
            "feed": "https://a.example/feed", "site": "A", "id": "tag:1", "url": "https://a.example/p/1",
            "title": {"type": "text/plain", "text": "Tom &amp; Jerry &#8217;s <em>day</em>"},
            "authors": ["Ann", "Bob"], "published": "2024-02-03T04:05:06+00:00", "updated": "2024-02-04T00:00:00+00:00",
            "tags": ["x", "y"], "language": "en", "base": null,
            "content": {"type": "text/html", "text": "<h2>Head</h2><p>See <a href=\"2\">it</a>.</p><pre><code>x</code></pre>"},
            "summary": {"type": "text/html", "text": "<p>In\nshort.</p>"}
        });
        let parsed = read(&entry, &Origin::default()).expect("a post");
        assert_eq!(parsed.text, "## Head\n\nSee [it](https://a.example/p/2).\n\n```\nx\n```");
        assert_eq!(parsed.external_id.as_deref(), Some("tag:1"));
        assert_eq!(parsed.title.as_deref(), Some("Tom & Jerry ’s day"));
        assert_eq!(parsed.published_at.as_deref(), Some("2024-02-03T04:05:06Z"));
        assert_eq!(parsed.language.as_deref(), Some("en"));
        let expected = json!({
            "modified_at": "2024-02-04T00:00:00Z", "author": "Ann, Bob", "tags": ["x", "y"], "description": "In short.",
            "site_name": "A", "feed": "https://a.example/feed", "url": "https://a.example/p/1"
        });
        assert_eq!(Value::Object(parsed.metadata), expected);
    }

    #[test]
    fn a_post_without_content_is_its_page_or_says_that_it_is_a_summary() {
        let entry = json!({"feed": "f", "id": "1", "title": {"text": "T"}, "summary": {"type": "text/html", "text": "<p>S</p>"}});
        let article = "<title>Page</title><meta name=author content=Ann><article><p>All of it.</p></article>";
        let parsed = read(&entry, &with_page("text/html; charset=utf-8", article)).expect("a post");
        assert_eq!((parsed.text.as_str(), parsed.title.as_deref()), ("All of it.\n", Some("T")));
        assert_eq!(parsed.metadata.get("author"), Some(&json!("Ann")));
        assert_eq!(parsed.metadata.get("description"), Some(&json!("S")));
        assert_eq!(parsed.metadata.get("summary"), None);
        assert_eq!(read(&entry, &with_page("text/markdown", "# M\n")).expect("a post").text, "# M\n");
        for (content_type, body, why) in [
            ("text/html", "<script>x</script>", "html has no readable content"),
            ("text/html", "%PDF-1.7", "content is no page but of kind \"pdf\""),
            ("image/png", "x", "\"https://a.example/p\" is no page but \"image/png\""),
        ] {
            let parsed = read(&entry, &with_page(content_type, body)).expect("a post");
            assert_eq!((parsed.text.as_str(), parsed.metadata.get("summary")), ("S", Some(&json!(why))), "{body}");
        }
        let mut origin = Origin::default();
        origin.metadata.insert(WHY.to_owned(), "it has no link".into());
        let parsed = read(&entry, &origin).expect("a post");
        assert_eq!(parsed.metadata.get("summary"), Some(&json!("it has no link")));
        let bare = json!({"feed": "f", "id": "1", "title": {"text": "Only a title"}});
        assert_eq!(read(&bare, &origin).expect("a post").text, "Only a title");
        let refused = read(&json!({"feed": "f", "id": "1"}), &origin).expect_err("nothing");
        assert_eq!(refused.message, "post has neither a title nor a text");
        assert_eq!(refused.detail.as_deref(), Some("Its page was not read: it has no link."));
    }

    #[test]
    fn a_reference_is_told_from_an_ampersand() {
        for (text, reference) in
            [("AT&T; or not", false), ("a &amp; b", true), ("&#x27;", true), ("a & b; c", false), ("&", false)]
        {
            assert_eq!(has_reference(text), reference, "{text}");
        }
    }
}
