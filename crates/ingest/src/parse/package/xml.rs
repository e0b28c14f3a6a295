// SPDX-License-Identifier: PostgreSQL

//! XML as a tree of local names, bounded in depth and size.
//!
//! quick-xml reads; it neither declares nor looks up entities, so only the five of XML itself and references to characters
//! mean something. Namespaces are not told apart: the names in a package are unique without them.

use crate::text::repair;
use quick_xml::XmlVersion;
use quick_xml::events::{BytesStart, Event};
use quick_xml::reader::Reader;
use rag_core::error::{Error, Kind, Result};
use std::collections::HashMap;

/// Deepest nesting.
const MAX_DEPTH: usize = 256;

/// Most elements and texts.
const MAX_NODES: usize = 8_000_000;

/// Most different names.
const MAX_NAMES: usize = 4096;

const NONE: u32 = u32::MAX;

/// An element, or a text if it has no name.
struct Node {
    name: u16,
    first: u32,
    last: u32,
    next: u32,
    /// Range of the text, or of the attributes.
    from: u32,
    to: u32,
}

/// A document of XML.
pub struct Tree {
    nodes: Vec<Node>,
    names: Vec<String>,
    texts: String,
    attributes: Vec<(Box<str>, Box<str>)>,
}

/// An element or text.
#[derive(Clone, Copy)]
pub struct Element<'t> {
    tree: &'t Tree,
    index: u32,
}

impl Tree {
    /// All elements of a name, in order.
    pub fn all<'t>(&'t self, name: &str) -> impl Iterator<Item = Element<'t>> + 't {
        let index = self.names.iter().position(|known| known == name).and_then(|at| u16::try_from(at).ok());
        let found = self.nodes.iter().enumerate().filter(move |(_, node)| Some(node.name) == index);
        found.map(move |(at, _)| Element { tree: self, index: at as u32 })
    }
}

impl<'t> Element<'t> {
    fn node(self) -> &'t Node {
        &self.tree.nodes[self.index as usize]
    }

    /// Local name; empty for a text.
    pub fn name(self) -> &'t str {
        &self.tree.names[usize::from(self.node().name)]
    }

    /// The text of a text.
    pub fn text(self) -> Option<&'t str> {
        let node = self.node();
        (node.name == 0).then(|| &self.tree.texts[node.from as usize..node.to as usize])
    }

    /// An attribute by its local name.
    pub fn attribute(self, name: &str) -> Option<&'t str> {
        let node = self.node();
        if node.name == 0 {
            return None;
        }
        let attributes = &self.tree.attributes[node.from as usize..node.to as usize];
        attributes.iter().find(|(key, _)| &**key == name).map(|(_, value)| &**value)
    }

    /// Elements and texts inside, in order.
    pub fn children(self) -> impl Iterator<Item = Element<'t>> + 't {
        let tree = self.tree;
        let at = move |index: u32| (index != NONE).then_some(Element { tree, index });
        std::iter::successors(at(self.node().first), move |element| at(element.node().next))
    }

    /// The first element inside of a name.
    pub fn child(self, name: &str) -> Option<Element<'t>> {
        self.children().find(|child| child.name() == name)
    }

    /// The words of the texts directly inside.
    pub fn words(self) -> Option<String> {
        let text: String = self.children().filter_map(Element::text).collect();
        let words: Vec<&str> = text.split_whitespace().collect();
        (!words.is_empty()).then(|| words.join(" "))
    }
}

/// Parses a document.
pub fn parse(bytes: &[u8]) -> Result<Tree> {
    let text = repair(bytes).text;
    let mut builder = Builder {
        tree: Tree {
            nodes: Vec::new(),
            names: vec![String::new(), "#root".to_owned()],
            texts: String::new(),
            attributes: Vec::new(),
        },
        known: HashMap::new(),
        open: Vec::new(),
    };
    builder.add(1, 0, 0)?;
    builder.open.push(0);
    let mut reader = Reader::from_str(&text);
    reader.config_mut().check_end_names = true;
    loop {
        let event = reader.read_event().map_err(|error| {
            Error::new(Kind::BadContent, "xml is not well formed")
                .with_detail(format!("At byte {} it says: {error}.", reader.error_position()))
        })?;
        match event {
            Event::Start(start) => {
                let index = builder.element(&start)?;
                if builder.open.len() > MAX_DEPTH {
                    return Err(Error::new(Kind::LimitExceeded, format!("xml is nested deeper than {MAX_DEPTH}")));
                }
                builder.open.push(index);
            }
            Event::Empty(start) => {
                builder.element(&start)?;
            }
            Event::End(_) if builder.open.len() > 1 => {
                builder.open.pop();
            }
            Event::Text(text) => builder.text(&text.into_inner())?,
            Event::CData(text) => builder.text(&text.into_inner())?,
            Event::GeneralRef(reference) => {
                let character = match reference.resolve_char_ref() {
                    Ok(Some(character)) => Some(character),
                    _ => match &*reference {
                        "lt" => Some('<'),
                        "gt" => Some('>'),
                        "amp" => Some('&'),
                        "quot" => Some('"'),
                        "apos" => Some('\''),
                        _ => None,
                    },
                };
                if let Some(character) = character {
                    builder.text(character.encode_utf8(&mut [0; 4]))?;
                }
            }
            Event::Eof => break,
            _ => {}
        }
    }
    // What is missing would be missing silently.
    if builder.open.len() > 1 {
        return Err(Error::new(Kind::BadContent, "xml is not well formed")
            .with_detail("It ends inside of an element.".to_owned()));
    }
    Ok(builder.tree)
}

struct Builder {
    tree: Tree,
    known: HashMap<String, u16>,
    open: Vec<u32>,
}

impl Builder {
    fn element(&mut self, start: &BytesStart<'_>) -> Result<u32> {
        let name = start.local_name();
        let name = self.name(name.as_ref())?;
        let from = self.tree.attributes.len();
        for attribute in start.attributes().with_checks(false).flatten() {
            let value = match attribute.normalized_value(XmlVersion::Implicit1_0) {
                Ok(value) => value.into(),
                Err(_) => attribute.value.as_ref().into(),
            };
            self.tree.attributes.push((attribute.key.local_name().as_ref().into(), value));
        }
        let (from, to) = offsets(from, self.tree.attributes.len())?;
        self.add(name, from, to)
    }

    /// Adds text; what follows another text of the same element continues it.
    fn text(&mut self, text: &str) -> Result<()> {
        let parent = self.open.last().copied().unwrap_or(0);
        let from = self.tree.texts.len();
        self.tree.texts.push_str(text);
        let (from, to) = offsets(from, self.tree.texts.len())?;
        let last = self.tree.nodes[parent as usize].last;
        match self.tree.nodes.get_mut(last as usize) {
            Some(before) if before.name == 0 && before.to == from => before.to = to,
            _ => {
                self.add(0, from, to)?;
            }
        }
        Ok(())
    }

    fn name(&mut self, name: &str) -> Result<u16> {
        if let Some(known) = self.known.get(name) {
            return Ok(*known);
        }
        let index = u16::try_from(self.tree.names.len()).ok().filter(|index| usize::from(*index) < MAX_NAMES);
        let index = index.ok_or_else(|| {
            Error::new(Kind::LimitExceeded, format!("xml has more than {MAX_NAMES} names of elements"))
        })?;
        self.tree.names.push(name.to_owned());
        self.known.insert(name.to_owned(), index);
        Ok(index)
    }

    fn add(&mut self, name: u16, from: u32, to: u32) -> Result<u32> {
        if self.tree.nodes.len() >= MAX_NODES {
            return Err(Error::new(Kind::LimitExceeded, format!("xml has more than {MAX_NODES} elements and texts")));
        }
        let index = self.tree.nodes.len() as u32;
        let parent = self.open.last().copied().unwrap_or(NONE);
        self.tree.nodes.push(Node { name, first: NONE, last: NONE, next: NONE, from, to });
        if let Some(above) = self.tree.nodes.get_mut(parent as usize) {
            let last = std::mem::replace(&mut above.last, index);
            match self.tree.nodes.get_mut(last as usize) {
                Some(before) => before.next = index,
                None => self.tree.nodes[parent as usize].first = index,
            }
        }
        Ok(index)
    }
}

fn offsets(from: usize, to: usize) -> Result<(u32, u32)> {
    let small = |at| u32::try_from(at).ok();
    small(from).zip(small(to)).ok_or_else(|| Error::new(Kind::LimitExceeded, "xml is larger than 4 GB"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_has_names_texts_and_attributes() {
        let tree = parse(b"<?xml version='1.0'?><!DOCTYPE a [<!ENTITY x 'y'>]><a:r xmlns:a='u'><b a:c='1&lt;2'/>t&amp;&#65;&x;<![CDATA[<z>]]></a:r>").expect("a tree");
        let r = tree.all("r").next().expect("r");
        assert_eq!(r.child("b").and_then(|b| b.attribute("c")), Some("1<2"));
        assert_eq!(r.words().as_deref(), Some("t&A<z>"));
        assert_eq!(tree.all("b").count(), 1);
    }

    #[test]
    fn what_is_broken_or_too_deep_is_refused() {
        let message = |xml: &str| parse(xml.as_bytes()).err().map(|e| e.message);
        assert_eq!(message("<a></b>").as_deref(), Some("xml is not well formed"));
        assert_eq!(message("<a><b/>").as_deref(), Some("xml is not well formed"));
        assert_eq!(message(&"<a>".repeat(100_000)).as_deref(), Some("xml is nested deeper than 256"));
        assert_eq!(message("&lol;<a/>"), None);
    }
}
