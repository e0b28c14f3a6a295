// SPDX-License-Identifier: PostgreSQL

//! Posts: what people wrote, as it stands in the JSON of forums and trackers.
//!
//! Owns the names under which exports keep the same thing, and how posts become one text. The text of a document is
//! the texts of its posts with a blank line between them; who wrote a post, when, and how it was received is not in the text
//! but in the facts and metadata of its part, so that a renamed author changes no chunk's text. Texts are Markdown.

use super::metadata::{rfc3339, scalar, short};
use super::{Parsed, Part, Structure, html, markdown};
use crate::text::{repair, storable_map, storable_value, without_nul};
use rag_core::document::Facts;
use rag_core::error::{Error, Kind, Result};
use serde_json::{Map, Value};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// A JSON object.
pub type Object = Map<String, Value>;

/// Keys of documents, the first that is there.
pub const KEYS: &[&str] = &["external_id", "_id", "key", "question_id", "topic_id", "thread_id", "number", "iid", "id"];
pub const TITLES: &[&str] = &["title", "subject", "summary"];
pub const AUTHORS: &[&str] =
    &["author", "speaker", "user", "owner", "reporter", "creator", "username", "poster", "created_by", "opened_by"];
pub const CREATED: &[&str] = &["created", "created_at", "createdAt", "creation_date", "published_at", "date"];
pub const URLS: &[&str] = &["url", "html_url", "web_url", "link", "permalink"];
pub const IDS: &[&str] = &["id", "answer_id", "post_id", "comment_id", "external_id", "_id"];
/// Texts; `cooked` and the like are HTML.
const TEXTS: &[&str] =
    &["text", "body_markdown", "markdown", "raw", "content", "description", "message", "body", "cooked", "body_html"];

/// Names that say how a person is called, best first.
const PEOPLE: &[&str] = &["login", "display_name", "displayName", "username", "name", "nickname"];

/// Bytes of what a post answers that go with it; the first sentences of what is longer.
const MAX_CONTEXT: usize = 480;

/// Most digits of a number that goes with every chunk.
const MAX_DIGITS: usize = 100;

/// Posts of one document, at most; each is a part, which takes far more memory than the shortest post.
const MAX_POSTS: usize = 50_000;

/// A post.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Post {
    /// What was written, as it stands in the record.
    pub text: String,
    /// Who wrote it.
    pub speaker: Option<String>,
    /// What it answers.
    pub context: Option<String>,
    /// Titles above it.
    pub path: Vec<String>,
    /// What else is known about it.
    pub metadata: Object,
}

/// The first of some fields that is there and not null.
pub fn first<'o>(object: &'o Object, names: &[&str]) -> Option<&'o Value> {
    names.iter().find_map(|name| object.get(*name).filter(|value| !value.is_null()))
}

/// The first of some fields that is text or a number.
pub fn text_of(object: &Object, names: &[&str]) -> Option<String> {
    let mut found = names.iter().filter_map(|name| scalar(object.get(*name)?));
    found.find(|text| !text.trim().is_empty()).map(|text| text.trim().to_owned())
}

/// What was written in a post, which may be nothing but its text.
pub fn body_of(value: &Value) -> Result<String> {
    match value {
        Value::Object(object) => text_in(object),
        other => Ok(scalar(other).unwrap_or_default()),
    }
}

/// What was written in a post, as Markdown. Fails for HTML with more elements than are read.
pub fn text_in(object: &Object) -> Result<String> {
    let mut texts = TEXTS.iter().filter_map(|name| object.get(*name)?.as_str().map(|text| (*name, text)));
    let Some((name, text)) = texts.find(|(_, text)| !text.trim().is_empty()) else {
        return Ok(String::new());
    };
    if matches!(name, "cooked" | "body_html") || (name == "body" && is_html(text)) {
        return html::snippet(text, None);
    }
    Ok(text.to_owned())
}

/// Whether a text is HTML: it begins with an element that forums write.
fn is_html(text: &str) -> bool {
    const BEGINNINGS: &[&str] = &[
        "p",
        "pre",
        "div",
        "ul",
        "ol",
        "h1",
        "h2",
        "h3",
        "h4",
        "blockquote",
        "a",
        "code",
        "strong",
        "em",
        "b",
        "i",
        "img",
        "table",
        "aside",
        "details",
        "span",
        "hr",
        "br",
    ];
    let Some(rest) = text.trim_start().strip_prefix('<') else {
        return false;
    };
    let name: String = rest.chars().take_while(char::is_ascii_alphanumeric).collect();
    let ends = rest[name.len()..].starts_with(['>', ' ', '/', '\n']);
    ends && BEGINNINGS.contains(&name.to_ascii_lowercase().as_str())
}

/// Who wrote something: a name, or an object with one.
pub fn author_of(object: &Object) -> Option<String> {
    AUTHORS.iter().find_map(|name| person(object.get(*name)?))
}

/// The name of a person.
pub fn person(value: &Value) -> Option<String> {
    let name = match value {
        Value::Object(person) => text_of(person, PEOPLE)?,
        Value::String(name) => without_nul(name.trim()),
        _ => return None,
    };
    Some(short(&name)).filter(|name| !name.is_empty())
}

/// A time as RFC 3339: text, or seconds since 1970.
pub fn time_of(object: &Object, names: &[&str]) -> Option<String> {
    names.iter().find_map(|name| match object.get(*name)? {
        Value::String(text) => rfc3339(text),
        Value::Number(seconds) => {
            let time = OffsetDateTime::from_unix_timestamp(seconds.as_i64()?).ok()?;
            rfc3339(&time.format(&Rfc3339).ok()?)
        }
        _ => None,
    })
}

/// The elements of an array; none of anything else.
pub fn list<'o>(object: &'o Object, name: &str) -> &'o [Value] {
    object.get(name).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// Puts a field into metadata if there is one. It goes with every chunk, so a long text is cut, and a number of more digits
/// than anybody counts with is none.
pub fn note(metadata: &mut Object, name: &str, value: Option<impl Into<Value>>) {
    let value = match value.map(Into::into) {
        None => return,
        Some(Value::String(text)) => Value::String(short(&text)),
        Some(Value::Number(number)) if number.as_str().len() > MAX_DIGITS => return,
        Some(value) => value,
    };
    metadata.insert(name.to_owned(), storable_value(value));
}

/// What goes with an answer to `text`: all of it, or its first sentences.
pub fn context_of(text: &str) -> Option<String> {
    let text = text.trim();
    if text.len() <= MAX_CONTEXT {
        return Some(text.to_owned()).filter(|text| !text.is_empty());
    }
    let head = &text[..text.floor_char_boundary(MAX_CONTEXT)];
    let end = head.rfind(['.', '?', '!', '\n']).filter(|end| *end > MAX_CONTEXT / 4).map(|end| end + 1);
    let end = end.or_else(|| head.rfind(' ')).unwrap_or(head.len());
    Some(format!("{} …", head[..end].trim_end()))
}

/// The JSON object of a document.
pub fn object(bytes: &[u8], what: &str) -> Result<(Object, u64)> {
    let repaired = repair(bytes);
    let quoted = || {
        let text = repaired.text.trim();
        if text.len() > 80 { format!("{}…", &text[..text.floor_char_boundary(80)]) } else { text.to_owned() }
    };
    match serde_json::from_str::<Value>(&repaired.text) {
        Ok(Value::Object(object)) => Ok((object, repaired.repaired_bytes)),
        Ok(_) => Err(Error::new(Kind::BadContent, format!("{what} is not a JSON object: \"{}\"", quoted()))),
        Err(error) => Err(Error::new(Kind::BadContent, format!("{what} is not valid JSON: \"{}\"", quoted()))
            .with_detail(error.to_string())),
    }
}

/// The document of some posts.
pub fn assemble(posts: Vec<Post>, parsed: &mut Parsed) -> Result<()> {
    if posts.len() > MAX_POSTS {
        let message = format!("there are {} posts in one document, more than {MAX_POSTS}", posts.len());
        return Err(
            Error::new(Kind::LimitExceeded, message).with_hint("Give each thread or issue a record of its own.")
        );
    }
    let mut text = String::new();
    let mut parts = Vec::with_capacity(posts.len());
    for post in posts {
        let said = repair(post.text.as_bytes());
        parsed.repaired_bytes += said.repaired_bytes;
        // The indentation of a first line may make it code.
        let said = said.text.trim_end().trim_start_matches('\n');
        if said.trim().is_empty() {
            continue;
        }
        if !text.is_empty() {
            text.push_str("\n\n");
        }
        let start = text.len();
        text.push_str(said);
        parts.push(Part {
            range: start..text.len(),
            path: post.path,
            blocks: Vec::new(),
            prose: true,
            context: post.context.clone().map(|context| repair(context.as_bytes()).text),
            header: post.context.map(|context| repair(context.as_bytes()).text),
            facts: Facts { speaker: post.speaker, ..Facts::default() },
            metadata: storable_map(post.metadata),
        });
    }
    for part in &mut parts {
        part.blocks = markdown::structure(&text, part.range.clone()).blocks;
    }
    parsed.structure = Structure { body: 0..text.len(), parts, ..Structure::default() };
    parsed.text = text;
    parsed.media_type = "text/markdown".to_owned();
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(field: &str, html: &str) -> String {
        let Value::Object(object) = json!({ field: html }) else { return String::new() };
        text_in(&object).expect("readable")
    }

    #[test]
    fn what_forums_write() {
        let html = "<p>a <b>b</b>\n c &amp; <code>d&lt;e</code></p>\n<pre><code>x\n  &lt;y&gt;\n</code></pre>\n<ul>\n<li><p>one</p></li>\n<li>two</li>\n</ul><h2>H</h2><p>z<br>w</p><script>s</script>";
        let expected = "a **b** c & `d<e`\n\n```\nx\n  <y>\n```\n\n- one\n- two\n\n## H\n\nz\nw";
        assert_eq!(read("cooked", html), expected);
    }

    #[test]
    fn an_answer_of_stack_exchange() {
        let html = "<p>Use <a href=\"https://example.org/docs?a=1&amp;b=2\" rel=\"nofollow noreferrer\"><code>sorted()</code></a>&nbsp;&mdash; it&#39;s stable:</p>\n\n<pre class=\"lang-py prettyprint-override\"><code>sorted(x, key=lambda y: y[&quot;n&quot;])\n</code></pre>\n\n<blockquote>\n  <p>quoted</p>\n</blockquote>\n\n<ol>\n<li>one\n<ul>\n<li>inner</li>\n</ul></li>\n<li>two</li>\n</ol>\n\n<div class=\"s-table-container\">\n<table class=\"s-table\">\n<thead>\n<tr>\n<th>a</th>\n<th style=\"text-align: right;\">b</th>\n</tr>\n</thead>\n<tbody>\n<tr>\n<td>1</td>\n<td style=\"text-align: right;\">x|y</td>\n</tr>\n</tbody>\n</table>\n</div>";
        let expected = "Use [`sorted()`](https://example.org/docs?a=1&b=2) — it's stable:\n\n```py\nsorted(x, key=lambda y: y[\"n\"])\n```\n\n> quoted\n\n1. one\n   - inner\n2. two\n\n| a | b |\n| --- | --- |\n| 1 | x\\|y |";
        assert_eq!(read("body", html), expected);
    }

    #[test]
    fn a_post_of_discourse() {
        let html = "<aside class=\"quote no-group\" data-username=\"ann\" data-post=\"1\"><div class=\"title\"><div class=\"quote-controls\"></div> ann:</div><blockquote><p>Why?</p></blockquote></aside>\n<p><a class=\"mention\" href=\"/u/ann\">@ann</a> because <img src=\"https://example.org/s.png\" title=\":smile:\" class=\"emoji\" alt=\":smile:\" width=\"20\" height=\"20\"> of <em>this</em>:</p>\n<pre data-code-wrap=\"sql\"><code class=\"lang-sql\">SELECT 1\nFROM t</code></pre>\n<main><p>not all there is</p></main><nav>n</nav>";
        let expected = "ann:\n\n> Why?\n\n[@ann](/u/ann) because ![:smile:](https://example.org/s.png) of *this*:\n\n```sql\nSELECT 1\nFROM t\n```\n\nnot all there is";
        assert_eq!(read("cooked", html), expected);
    }

    #[test]
    fn html_is_told_from_text() {
        for (text, html) in [
            ("<p>x", true),
            (" <pre class='x'>", true),
            ("<h2>x</h2>", true),
            ("<- x", false),
            ("a <p>", false),
            ("<T> x", false),
            ("<promise> x", false),
            ("", false),
        ] {
            assert_eq!(is_html(text), html, "{text}");
        }
        assert_eq!(read("body", "a <p> &amp;"), "a <p> &amp;");
        assert_eq!(read("text", "<p>x"), "<p>x");
    }

    #[test]
    fn soup_ends_well() {
        let started = std::time::Instant::now();
        for part in
            ["<div>", "<pre>", "</pre>", "<li>", "<", "<a b=\"", "</h1>", "<!--", "&#x110000;", "<td>", "<b><p>"]
        {
            let written = read("cooked", &part.repeat(50_000));
            assert!(written.len() < 1 << 20, "{part}");
        }
        assert!(started.elapsed() < std::time::Duration::from_secs(60), "{:?}", started.elapsed());
    }
}
