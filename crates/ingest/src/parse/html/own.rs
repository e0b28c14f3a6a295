// SPDX-License-Identifier: PostgreSQL

//! The Markdown that a site has of its own page.
//!
//! Owns when it is read for the page: when it is text and no page itself, and not much shorter than what the page has to
//! read, because some sites answer every address with the same few words. Else the page is read, as if nothing had
//! been there. Front matter is taken as in any Markdown; what the page says about itself comes before it.

use super::encoding;
use crate::format::Format;
use crate::parse::{Parsed, markdown};
use rag_core::source::Rendition;
use serde_json::Value;

/// The site's Markdown of a page of which `length` bytes would be read; nothing if it is not that.
pub fn markdown(rendition: &Rendition, length: usize) -> Option<Parsed> {
    let served = rendition.content_type.as_deref();
    let text = encoding::decode(&rendition.bytes, served).text;
    let text = match served.is_some_and(|served| served.to_ascii_lowercase().starts_with("application/json")) {
        true => body_markdown(&text)?,
        false => text,
    };
    if Format::looks_like_html(&text) || text.trim().len() * 4 < length {
        return None;
    }
    let mut parsed = markdown::parse(text.as_bytes());
    if parsed.text[parsed.structure.body.clone()].trim().is_empty() {
        return None;
    }
    parsed.metadata.insert("markdown_url".to_owned(), rendition.url.clone().into());
    Some(parsed)
}

/// The text of an article as the API of Forem gives it.
fn body_markdown(json: &str) -> Option<String> {
    let Value::Object(mut article) = serde_json::from_str(json).ok()? else { return None };
    match article.remove("body_markdown")? {
        Value::String(text) => Some(text),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::html::{Reading, Served, page};
    use serde_json::json;

    const PAGE: &str = "<html lang=en><title>Page</title><meta name=author content='A B'>
        <meta property=article:published_time content=2024-02-03><link rel=canonical href=https://a.example/post>
        <article><h1>Page</h1><p>What the page says, and a little more of it.</p></article>";

    fn read(content_type: &str, body: &str) -> Parsed {
        let rendition = Rendition {
            bytes: body.as_bytes().to_vec(),
            url: "https://a.example/post.md".into(),
            content_type: Some(content_type.to_owned()),
        };
        let served = Served { rendition: Some(&rendition), ..Served::default() };
        page(PAGE.as_bytes(), served, Reading::Article).expect("a page")
    }

    #[test]
    fn it_is_read_and_the_page_says_what_it_is() {
        let markdown = "---\ntitle: Other\ntags: [x]\ndate: 2020-01-01\n---\n# Page\n\nWhat the *author* wrote.\n";
        let parsed = read("text/markdown; charset=utf-8", markdown);
        assert_eq!(parsed.text, markdown);
        assert_eq!(parsed.media_type, "text/markdown");
        assert_eq!((parsed.title.as_deref(), parsed.language.as_deref()), (Some("Page"), Some("en")));
        assert_eq!(parsed.published_at.as_deref(), Some("2024-02-03T00:00:00Z"));
        let expected = json!({
            "tags": ["x"], "markdown_url": "https://a.example/post.md", "canonical_url": "https://a.example/post",
            "author": "A B"
        });
        assert_eq!(Value::Object(parsed.metadata), expected);
        assert_eq!(parsed.structure.headings.len(), 1);
        let forem = json!({"id": 1, "body_markdown": "# Page\n\nFrom the API.\n"}).to_string();
        assert_eq!(read("application/json; charset=utf-8", &forem).text, "# Page\n\nFrom the API.\n");
    }

    #[test]
    fn what_cannot_be_it_leaves_the_page() {
        for (content_type, body) in [
            ("text/markdown", ""),
            ("text/markdown", "# Stub"),
            ("text/markdown", "<!DOCTYPE html><p>Not found, but said with a friendly status and many words."),
            ("text/plain", "---\ntitle: nothing but front matter, however long it may be\n---\n"),
            ("application/json", "{\"error\": \"not found\", \"status\": 404, \"and\": \"so on and so forth\"}"),
            ("application/json", "# not JSON, whatever is said of it, and long enough"),
        ] {
            let parsed = read(content_type, body);
            assert_eq!(parsed.media_type, "text/html", "{content_type} {body}");
            assert!(parsed.text.contains("What the page says"), "{content_type} {body}");
            assert!(!parsed.metadata.contains_key("markdown_url"));
        }
    }
}
