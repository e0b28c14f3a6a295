// SPDX-License-Identifier: PostgreSQL

//! EPUB books: their chapters in the order in which they are read, each as the HTML that it is.
//!
//! The package document says which members there are, in which order they are read, and what the book is called. The
//! document with the table of contents is read only where the book itself puts it among what is read, and its part then
//! has the role `navigation`.

use super::package::{Package, relative, xml};
use super::{Block, Parsed, Part, Structure, html, markdown, metadata, role};
use rag_core::document::Facts;
use rag_core::error::{Error, Kind, Result};
use serde_json::Map;
use std::collections::HashMap;
use std::ops::Range;

/// Most members in the order of reading.
const MAX_SPINE: usize = 10_000;

/// Parses a book.
pub fn parse(bytes: &[u8]) -> Result<Parsed> {
    let mut package = Package::open(bytes, "epub")?;
    let bad = |message: &str| Error::new(Kind::BadContent, message);
    if package.read("META-INF/encryption.xml")?.is_some_and(|bytes| is_locked(&bytes)) {
        return Err(Error::unsupported("epub is encrypted").with_detail("Its chapters are protected against copying."));
    }
    let container = package.need("META-INF/container.xml")?;
    let opf = container.all("rootfile").find_map(|file| file.attribute("full-path"));
    let opf = opf.ok_or_else(|| bad("epub names no package document"))?.to_owned();
    let book = package.need(&opf)?;
    let items: HashMap<&str, xml::Element<'_>> =
        book.all("item").filter_map(|item| Some((item.attribute("id")?, item))).collect();
    let mut text = String::new();
    let mut navigation: Vec<Range<usize>> = Vec::new();
    for (number, reference) in book.all("itemref").enumerate() {
        if number >= MAX_SPINE {
            return Err(Error::new(Kind::LimitExceeded, format!("epub has more than {MAX_SPINE} chapters")));
        }
        let Some(item) = reference.attribute("idref").and_then(|id| items.get(id)) else { continue };
        let Some(name) = item.attribute("href").map(|href| relative(&opf, &unescaped(href))) else { continue };
        let chapter = item.attribute("media-type").is_none_or(|kind| kind.contains("html"));
        let Some(bytes) = package.read(&name)?.filter(|_| chapter) else { continue };
        let is_navigation = item.attribute("properties").is_some_and(|p| p.split_whitespace().any(|p| p == "nav"));
        let markdown = html::fragment(&bytes, is_navigation)?;
        if markdown.is_empty() {
            continue;
        }
        if !text.is_empty() {
            text.push('\n');
        }
        let from = text.len();
        text.push_str(&markdown);
        if is_navigation {
            navigation.push(from..text.len());
        }
    }
    if text.is_empty() {
        return Err(bad("epub has no text").with_detail("None of its chapters has any."));
    }
    let mut structure = markdown::structure(&text, 0..text.len());
    if !navigation.is_empty() {
        structure.parts = parts(&text, &structure, &navigation);
    }
    let mut parsed = Parsed { text, structure, media_type: "application/epub+zip".to_owned(), ..Parsed::default() };
    let mut known = Map::new();
    for (name, key) in [
        ("title", "title"),
        ("creator", "author"),
        ("language", "language"),
        ("date", "published_at"),
        ("publisher", "publisher"),
        ("identifier", "identifier"),
        ("description", "description"),
    ] {
        let mut all: Vec<String> = book.all(name).filter_map(xml::Element::words).take(20).collect();
        // Several authors are all authors; of several titles the first is the main one.
        all.truncate(if key == "author" { all.len() } else { 1 });
        let value: String = all.join(", ").chars().take(1000).collect();
        if !value.is_empty() {
            known.insert(key.to_owned(), value.into());
        }
    }
    metadata::describe(&mut parsed, known);
    if parsed.title.is_none() {
        parsed.title = parsed.structure.title();
    }
    Ok(parsed)
}

/// Whether more than fonts is encrypted.
fn is_locked(bytes: &[u8]) -> bool {
    let Ok(tree) = xml::parse(bytes) else { return true };
    let locked = |uri: &str| {
        [".xhtml", ".html", ".htm", ".xml", ".opf"].iter().any(|end| uri.to_ascii_lowercase().ends_with(end))
    };
    tree.all("CipherReference").filter_map(|reference| reference.attribute("URI")).any(locked)
}

/// An address with its escapes undone, as the names of members are.
fn unescaped(href: &str) -> String {
    percent_encoding::percent_decode_str(href).decode_utf8_lossy().into_owned()
}

/// One part for each section, so that what is navigation is known as such.
fn parts(text: &str, structure: &Structure, navigation: &[Range<usize>]) -> Vec<Part> {
    let mut starts: Vec<usize> = structure.headings.iter().filter(|h| !h.nested).map(|h| h.start).collect();
    starts.extend(navigation.iter().flat_map(|range| [range.start, range.end]));
    starts.extend([0, text.len()]);
    starts.sort_unstable();
    starts.dedup();
    let mut above: Vec<(u8, &str)> = Vec::new();
    let mut headings = structure.headings.iter().filter(|h| !h.nested).peekable();
    let mut blocks = structure.blocks.iter().peekable();
    let mut parts = Vec::with_capacity(starts.len());
    for pair in starts.windows(2) {
        let range = pair[0]..pair[1];
        while let Some(heading) = headings.next_if(|h| h.start <= range.start) {
            while above.last().is_some_and(|(level, _)| *level >= heading.level) {
                above.pop();
            }
            above.push((heading.level, &heading.text));
        }
        let mut own: Vec<Block> = Vec::new();
        while let Some(block) = blocks.next_if(|block| block.range.start < range.end) {
            own.push(block.clone());
        }
        if text[range.clone()].trim().is_empty() {
            continue;
        }
        let at = navigation.partition_point(|n| n.end <= range.start);
        let is_navigation = navigation.get(at).is_some_and(|n| n.start <= range.start);
        let path = above.iter().map(|(_, text)| (*text).to_owned()).filter(|text| !text.is_empty()).collect();
        let facts = Facts { role: is_navigation.then(|| role::NAVIGATION.to_owned()), ..Facts::default() };
        parts.push(Part { range, path, blocks: own, prose: true, facts, ..Part::default() });
    }
    parts
}
