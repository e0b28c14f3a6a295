// SPDX-License-Identifier: PostgreSQL

//! Keys of YAML, from the events of the parser beneath `serde-saphyr`, which expands no alias.

use super::Refused;
use super::outline::{Key, Outline};
use granit_parser::{Event, Parser, StructureStyle};
use std::ops::Range;

/// Collections in each other; deeper is an attack and no configuration.
const MAX_DEPTH: usize = 256;

/// What a node is to the collection around it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Document,
    Key,
    Value,
    Element,
}

/// An open collection.
struct Frame {
    /// Elements so far of a sequence; `None` for a mapping.
    elements: Option<usize>,
    /// Whether a key is next in a mapping.
    key_next: bool,
    flow: bool,
    place: Place,
}

struct Nodes<'t, 'o> {
    text: &'t str,
    outline: &'o mut Outline,
    open: Vec<Frame>,
    /// Where the last thing that takes room ends; the end of a block collection is only told by what follows it.
    end: usize,
    /// The number of the document, where there are several.
    document: Option<usize>,
    /// Whether a document's entry is open.
    inside: bool,
}

/// Puts the keys of a text into an outline.
pub fn scan(text: &str, outline: &mut Outline) -> Result<(), Refused> {
    let document = has_several(text).then_some(0);
    let mut nodes = Nodes { text, outline, open: Vec::new(), end: 0, document, inside: false };
    let mut found = false;
    for event in Parser::new_from_str(text) {
        let (event, span) = event.map_err(|error| error.to_string())?;
        let range = span.byte_range().unwrap_or(nodes.end..nodes.end);
        match event {
            Event::Scalar(..) | Event::Alias(_) => {
                let place = nodes.begin(&range, range.clone());
                nodes.took(&range);
                nodes.finish(place);
            }
            Event::SequenceStart(style, ..) => nodes.enter(Some(0), style, &range),
            Event::MappingStart(style, ..) => nodes.enter(None, style, &range),
            Event::SequenceEnd | Event::MappingEnd => nodes.leave(&range),
            Event::DocumentEnd => nodes.document_end(),
            _ => continue,
        }
        found |= !nodes.open.is_empty();
        if nodes.open.len() > MAX_DEPTH {
            return Err(format!("collections nested more than {MAX_DEPTH} deep"));
        }
    }
    // Any prose is a scalar of YAML.
    if found || text.lines().all(is_blank) { Ok(()) } else { Err("neither a mapping nor a sequence".to_owned()) }
}

fn is_blank(line: &str) -> bool {
    let line = line.trim_start();
    line.is_empty() || line.starts_with('#') || line.starts_with('%') || is_marker(line)
}

fn is_marker(line: &str) -> bool {
    line.strip_prefix("---").is_some_and(|rest| rest.trim_start().is_empty() || rest.trim_start().starts_with('#'))
}

/// Whether a document begins after another.
fn has_several(text: &str) -> bool {
    let mut lines = text.lines().skip_while(|line| is_blank(line));
    lines.any(|line| line.strip_prefix("---").is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '\t'])))
}

impl Nodes<'_, '_> {
    /// Begins a node; `name` is what it is called by if it is a key.
    fn begin(&mut self, range: &Range<usize>, name: Range<usize>) -> Place {
        match self.open.last_mut() {
            None => {
                if let Some(number) = &mut self.document {
                    self.outline.open(Key::Index(*number), range.start);
                    *number += 1;
                    self.inside = true;
                }
                Place::Document
            }
            Some(Frame { elements: Some(elements), .. }) => {
                self.outline.open(Key::Index(*elements), range.start);
                *elements += 1;
                Place::Element
            }
            Some(frame) if frame.key_next => {
                frame.key_next = false;
                self.outline.open(Key::Name(name), range.start);
                Place::Key
            }
            Some(frame) => {
                frame.key_next = true;
                Place::Value
            }
        }
    }

    fn took(&mut self, range: &Range<usize>) {
        if !range.is_empty() {
            let kept = self.text[range.clone()].trim_end().len();
            self.end = self.end.max(range.start + kept);
        }
    }

    fn finish(&mut self, place: Place) {
        if matches!(place, Place::Value | Place::Element) {
            self.outline.close(self.end);
        }
    }

    fn enter(&mut self, elements: Option<usize>, style: StructureStyle, range: &Range<usize>) {
        if self.open.is_empty() && self.document.is_none() && elements.is_some() {
            self.outline.of_elements();
        }
        // A collection that is a key has no name.
        let place = self.begin(range, range.start..range.start);
        self.open.push(Frame { elements, key_next: true, flow: style == StructureStyle::Flow, place });
    }

    fn leave(&mut self, range: &Range<usize>) {
        if let Some(frame) = self.open.pop() {
            if frame.flow {
                self.took(range);
            }
            self.finish(frame.place);
        }
    }

    fn document_end(&mut self) {
        if std::mem::take(&mut self.inside) {
            self.outline.close(self.end);
        }
    }
}
