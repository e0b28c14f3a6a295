// SPDX-License-Identifier: PostgreSQL

//! What of a feed its parser is given.
//!
//! feed-rs does work for each pair of attributes of a tag, copies the base of an element with each, asks for a namespace among
//! all that are declared, and gives the authors of a JSON Feed to each of its items: a feed is held to bounds before, and such
//! authors are taken out. It panics where a letter beyond ASCII stands beside an address of mail in the name of an author, and on
//! odd times of media; either would cost all posts. So a blank is put beside the address, and elements of the namespaces for
//! media, of which nothing is read, are left out. All of it in one pass.

use crate::parse::metadata::short;
use quick_xml::escape::{escape, resolve_predefined_entity};
use quick_xml::events::{BytesStart, Event};
use quick_xml::name::{Namespace, ResolveResult};
use quick_xml::reader::NsReader;
use rag_core::error::{Error, Kind, Result};
use serde_json::Value;
use std::borrow::Cow;

/// Deepest nesting of elements.
const MAX_DEPTH: usize = 256;

/// Bytes of a tag.
const MAX_TAG: usize = 64 << 10;

/// Attributes of a tag.
const MAX_ATTRIBUTES: usize = 64;

/// Namespaces that hold at one place; feed-rs takes no more.
const MAX_NAMESPACES: usize = 128;

/// Bytes of the base of an element.
const MAX_BASE: usize = 2000;

/// Authors of a JSON Feed, or of one of its items: each is compared with the others.
const MAX_AUTHORS: usize = 100;

/// Posts; each takes far more memory than the shortest has bytes.
const MAX_ENTRIES: usize = 100_000;

/// Namespaces that say nothing about the text of a post.
const OF_MEDIA: &[&str] = &[
    "http://search.yahoo.com/mrss/",
    "http://www.itunes.com/dtds/podcast-1.0.dtd",
    "https://podcastindex.org/namespace/1.0",
];

/// Namespace of RSS 1.0.
const RSS_1: &str = "http://purl.org/rss/1.0/";

/// How the version of a JSON Feed begins.
const JSON_FEED: &str = "https://jsonfeed.org/version/1";

/// Elements whose text is the name of somebody, perhaps with an address.
const PEOPLE: &[&str] = &["author", "creator", "managingEditor", "webMaster"];

/// The error for what is no feed.
pub fn bad(why: &str) -> Error {
    Error::new(Kind::BadContent, format!("is no feed that can be read: {why}"))
}

fn limit(what: &str, max: usize) -> Error {
    Error::new(Kind::LimitExceeded, format!("is no feed that can be read: it has {what} {max}"))
}

/// A feed without its XML declaration: it may name the encoding that it had.
pub fn without_declaration(text: &str) -> &str {
    let text = text.trim_start();
    match text.strip_prefix("<?xml").and_then(|rest| rest.split_once("?>")) {
        Some((_, rest)) => rest,
        None => text,
    }
}

/// Whether a text begins as a feed does.
pub fn is_feed(text: &str) -> bool {
    let text = without_declaration(text);
    if text.starts_with('{') {
        let version = serde_json::from_str::<Value>(text).ok().and_then(|feed| feed.get("version").cloned());
        return version.is_some_and(|version| version.as_str().is_some_and(|version| version.starts_with(JSON_FEED)));
    }
    let mut reader = NsReader::from_str(text);
    loop {
        match reader.read_event() {
            Ok(Event::Start(root) | Event::Empty(root)) => {
                // RDF says many things.
                let of_feed = || root.attributes().with_checks(false).flatten().any(|a| &*a.value == RSS_1);
                return matches!(local(&root), "rss" | "feed") || (local(&root) == "RDF" && of_feed());
            }
            Ok(Event::Text(said)) if said.trim().is_empty() => {}
            Ok(Event::Comment(_) | Event::PI(_) | Event::DocType(_) | Event::Decl(_)) => {}
            _ => return false,
        }
    }
}

/// The name of an element without its prefix, as feed-rs takes it.
fn local<'t>(tag: &'t BytesStart<'_>) -> &'t str {
    let name = tag.name().into_inner();
    name.rsplit_once(':').map_or(name, |(_, local)| local)
}

/// A feed in XML as it may be parsed.
pub fn xml(text: &str) -> Result<String> {
    let mut reader = NsReader::from_str(text);
    // The bound is ours, and says so.
    reader.resolver_mut().set_max_namespace_bindings(usize::MAX);
    let mut kept = Kept { text: String::with_capacity(text.len()), person: None };
    let mut bounds = Bounds::default();
    // How deep the element is that is left out.
    let mut left_out: Option<usize> = None;
    loop {
        let at = reader.buffer_position() as usize;
        let (namespace, event) = reader.read_resolved_event().map_err(|error| bad(&error.to_string()))?;
        let of_media = matches!(namespace, ResolveResult::Bound(Namespace(uri)) if OF_MEDIA.contains(&uri));
        let raw = text.get(at..reader.buffer_position() as usize).unwrap_or_default();
        match &event {
            Event::Start(tag) | Event::Empty(tag) => {
                left_out = left_out.or_else(|| of_media.then_some(bounds.depth()));
                bounds.check(tag, raw.len(), matches!(event, Event::Start(_)))?;
            }
            Event::End(_) => bounds.leave(),
            _ => {}
        }
        // One that stands late would change the encoding of what was decoded already.
        if left_out.is_none() && !matches!(event, Event::Decl(_)) {
            kept.keep(&event, raw)?;
        }
        left_out = left_out.filter(|depth| *depth < bounds.depth());
        if matches!(event, Event::Eof) {
            return Ok(kept.text);
        }
    }
}

/// What is kept of an XML document.
struct Kept {
    text: String,
    /// Where the name of somebody begins in it, and that name as far as it was read.
    person: Option<(usize, String)>,
}

impl Kept {
    fn keep(&mut self, event: &Event<'_>, raw: &str) -> Result<()> {
        let ends = matches!(event, Event::Start(_) | Event::Empty(_) | Event::End(_) | Event::Eof);
        if let Some((from, name)) = self.person.take_if(|_| ends)
            && let Cow::Owned(apart) = apart(&name)
        {
            self.text.truncate(from);
            self.text.push_str(&escape(apart));
        }
        self.text.push_str(raw);
        if let Some((_, name)) = &mut self.person {
            match event {
                Event::Text(said) => name.push_str(said),
                Event::CData(said) => name.push_str(said),
                Event::GeneralRef(reference) => match reference.resolve_char_ref() {
                    Ok(Some(letter)) => name.push(letter),
                    Ok(None) => match resolve_predefined_entity(reference) {
                        Some(said) => name.push_str(said),
                        None => name.push_str(raw),
                    },
                    Err(error) => return Err(bad(&error.to_string())),
                },
                _ => {}
            }
        }
        if let Event::Start(tag) = event
            && PEOPLE.contains(&local(tag))
        {
            self.person = Some((self.text.len(), String::new()));
        }
        Ok(())
    }
}

/// What was read of an XML document, as far as it is bounded.
#[derive(Default)]
struct Bounds {
    /// Namespaces that each open element declares.
    open: Vec<usize>,
    /// All of them.
    namespaces: usize,
    /// Entries so far.
    entries: usize,
}

impl Bounds {
    fn depth(&self) -> usize {
        self.open.len()
    }

    fn check(&mut self, tag: &BytesStart<'_>, length: usize, opens: bool) -> Result<()> {
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
        if self.namespaces + declared > MAX_NAMESPACES {
            return Err(limit("more namespaces at one place than", MAX_NAMESPACES));
        }
        self.entries += usize::from(matches!(local(tag), "item" | "entry"));
        if self.entries > MAX_ENTRIES {
            return Err(limit("more posts than", MAX_ENTRIES));
        }
        if opens {
            self.open.push(declared);
            self.namespaces += declared;
            if self.open.len() > MAX_DEPTH {
                return Err(limit("elements nested deeper than", MAX_DEPTH));
            }
        }
        Ok(())
    }

    fn leave(&mut self) {
        self.namespaces -= self.open.pop().unwrap_or(0);
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

/// A name with a blank between each address of mail in it and a letter beyond ASCII.
///
/// feed-rs leaves out the byte beside an address as if it were a bracket or a blank, and panics in the middle of a letter.
fn apart(name: &str) -> Cow<'_, str> {
    if name.is_ascii() || !name.contains('@') {
        return name.into();
    }
    let ends_in_letter = |text: &str| text.chars().next_back().is_some_and(|c| !c.is_ascii());
    let mut written = String::with_capacity(name.len() + 2);
    let mut rest = name;
    while let Some(at) = rest.find('@') {
        let of_user = |b: &u8| b.is_ascii_alphanumeric() || b"._%+-".contains(b);
        let user = at - rest.as_bytes()[..at].iter().rev().take_while(|b| of_user(b)).count();
        let head = &rest[..user];
        let head = head.strip_suffix("mailto:").unwrap_or(head);
        let head = head.strip_suffix("<[(").unwrap_or(head);
        let of_host = |b: &u8| b.is_ascii_alphanumeric() || b".-".contains(b);
        let host = at + 1 + rest.as_bytes()[at + 1..].iter().take_while(|b| of_host(b)).count();
        let end = host + if rest[host..].starts_with(">])") { 3 } else { 0 };
        written.push_str(head);
        if ends_in_letter(head) {
            written.push(' ');
        }
        written.push_str(&rest[head.len()..end]);
        rest = &rest[end..];
        if rest.chars().next().is_some_and(|c| !c.is_ascii()) {
            written.push(' ');
        }
    }
    written.push_str(rest);
    if written == name { name.into() } else { written.into() }
}

/// A JSON Feed as it may be parsed, and the names of its authors, who are those of each item that names none.
pub fn json(text: &str) -> Result<(String, Vec<String>)> {
    let Ok(Value::Object(mut feed)) = serde_json::from_str::<Value>(text) else {
        return Err(bad("it is no JSON object"));
    };
    let mut authors = Vec::new();
    for field in ["author", "authors"] {
        let mut said = feed.shift_remove(field).unwrap_or_default();
        for author in people(&mut said)? {
            authors.extend(author.get("name").and_then(Value::as_str).map(str::to_owned));
        }
    }
    let items = feed.get_mut("items").and_then(Value::as_array_mut);
    if items.as_ref().is_some_and(|items| items.len() > MAX_ENTRIES) {
        return Err(limit("more posts than", MAX_ENTRIES));
    }
    for item in items.into_iter().flatten().filter_map(Value::as_object_mut) {
        for field in ["author", "authors"] {
            item.get_mut(field).map_or(Ok(&mut [][..]), people)?;
        }
        // A number is to be taken for its digits.
        if let Some(id @ Value::Number(_)) = item.get_mut("id") {
            *id = id.to_string().into();
        }
    }
    Ok((Value::Object(feed).to_string(), authors))
}

/// Those that a field names, with names that can be read.
fn people(field: &mut Value) -> Result<&mut [Value]> {
    let all = match field {
        Value::Array(all) => all.as_mut_slice(),
        one => std::slice::from_mut(one),
    };
    if all.len() > MAX_AUTHORS {
        return Err(limit("more authors than", MAX_AUTHORS));
    }
    for author in all.iter_mut() {
        if let Some(Value::String(name)) = author.get_mut("name") {
            *name = short(&apart(name));
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_feed_is_told_by_how_it_begins() {
        for (text, feed) in [
            ("<?xml version='1.0'?>\n<!-- <rss> -->\n<rss version='2.0'>", true),
            ("<feed xmlns='http://www.w3.org/2005/Atom'/>", true),
            ("<a:feed xmlns:a='http://www.w3.org/2005/Atom'>", true),
            ("<r:RDF xmlns:r='http://www.w3.org/1999/02/22-rdf-syntax-ns#' xmlns='http://purl.org/rss/1.0/'>", true),
            ("<r:RDF xmlns:r='http://www.w3.org/1999/02/22-rdf-syntax-ns#'>", false),
            ("<!DOCTYPE html><html><rss>", false),
            ("words <rss>", false),
            ("", false),
            ("<", false),
            ("{\"version\": \"https://jsonfeed.org/version/1.1\"}", true),
            ("{\"version\": \"1.1\"}", false),
            ("{\"version\": \"https://jsonfeed.org/version/1\"", false),
        ] {
            assert_eq!(is_feed(text), feed, "{text}");
        }
    }

    #[test]
    fn what_is_read_stays_as_it_is() {
        let rss = "<!-- a -->\n<rss version='2.0' xmlns:dc='http://purl.org/dc/elements/1.1/'><channel><title>A &amp; B</title>\n\
            <item><dc:creator>J\u{FC}rgen &lt;j@a.example&gt;</dc:creator><description><![CDATA[<p>\u{FC}@</p>]]></description></item>\n\
            </channel></rss>\n";
        assert_eq!(xml(rss).expect("a feed"), rss);
    }

    #[test]
    fn elements_for_media_are_left_out_whole() {
        let rss = "<rss xmlns:i='http://www.itunes.com/dtds/podcast-1.0.dtd'><i:a>x<b><i:c/></b>y</i:a><item>1<i:d/>2\
            <x xmlns='http://search.yahoo.com/mrss/'><y/></x><title>T</title></item></rss>";
        let kept = "<rss xmlns:i='http://www.itunes.com/dtds/podcast-1.0.dtd'><item>12<title>T</title></item></rss>";
        assert_eq!(xml(rss).expect("a feed"), kept);
    }

    #[test]
    fn an_address_stands_apart_from_letters_beyond_ascii() {
        for (name, expected) in [
            ("ann@a.example\u{FF08}Ann\u{FF09}", "ann@a.example \u{FF08}Ann\u{FF09}"),
            ("Ann \u{2014}ann@a.example", "Ann \u{2014} ann@a.example"),
            ("\u{2014}mailto:ann@a.example\u{2014}", "\u{2014} mailto:ann@a.example \u{2014}"),
            ("\u{2014}<[(ann@a.example>])\u{2014}", "\u{2014} <[(ann@a.example>]) \u{2014}"),
            ("\u{E9}.a@b.example, c@d.example\u{E9}", "\u{E9} .a@b.example, c@d.example \u{E9}"),
            ("J\u{FC}rgen <j@a.example>", "J\u{FC}rgen <j@a.example>"),
            ("\u{FC}@", "\u{FC} @"),
            ("@@\u{FC}", "@@ \u{FC}"),
            ("ann@a.example (Ann)", "ann@a.example (Ann)"),
            ("\u{5C71}", "\u{5C71}"),
        ] {
            assert_eq!(apart(name), expected);
        }
        let said = "<rss><author>ann@a.example<!-- c -->&#xFF08;A<![CDATA[&]]>nn</author></rss>";
        assert_eq!(xml(said).expect("a feed"), "<rss><author>ann@a.example \u{FF08}A&amp;nn</author></rss>");
    }

    #[test]
    fn a_feed_of_json_names_its_authors_once() {
        let feed = r#"{"version":"v","author":{"name":"Ann"},"items":[{"id":7,"authors":[{"name":"b@a.example\uFF08B"}]},{}]}"#;
        let (text, authors) = json(feed).expect("a feed");
        assert_eq!(authors, ["Ann"]);
        let expected =
            "{\"version\":\"v\",\"items\":[{\"id\":\"7\",\"authors\":[{\"name\":\"b@a.example \u{FF08}B\"}]},{}]}";
        assert_eq!(text, expected);
    }
}
