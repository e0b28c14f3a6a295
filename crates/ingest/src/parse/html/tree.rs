// SPDX-License-Identifier: PostgreSQL

//! From tags to a tree: what is inside what.
//!
//! html5gum tokenizes by the standard. The tree is our own and simpler than the standard's: end tags that may be left out
//! are supplied, misnested ones end what is inside them, and content that strayed into a table is put behind it; but no
//! formatting is reopened in later paragraphs. The standard's rules for that make work of the square of the input, and so
//! do trees of unbounded depth; here every step looks at no more than [`MAX_DEPTH`] open elements, and attributes that
//! nobody asks for are never stored. A child always comes after its parent in [`Tree::nodes`].

use super::tags;
use html5gum::emitters::callback::{CallbackEmitter, CallbackEvent};
use html5gum::{Emitter, ForwardingEmitter, Span, State, Tokenizer};
use rag_core::error::{Error, Kind, Result};
use std::collections::HashMap;
use std::convert::Infallible;

/// Deepest nesting that is kept; elements beyond it are read as if their tags were not there.
const MAX_DEPTH: usize = 192;

/// Most nodes of one page.
const MAX_NODES: usize = 6_000_000;

/// Most bytes of an attribute's value; a longer one is not read.
const MAX_VALUE: usize = 16 << 10;

/// Most attributes of an element that are kept.
const MAX_ATTRIBUTES: usize = 24;

/// Most different names of elements; the tags of others are read as if they were not there.
const MAX_NAMES: usize = 4096;

/// No node.
pub const NONE: u32 = u32::MAX;

/// An element, or a text if it has no name.
#[derive(Debug, Clone, Copy)]
pub struct Node {
    /// Index of its name.
    name: u16,
    /// Whether it holds an element that stands on lines of its own.
    pub holds_block: bool,
    /// For a table: whether a cell holds what no cell of data does.
    pub layout: bool,
    /// The element around it.
    pub parent: u32,
    first: u32,
    last: u32,
    next: u32,
    /// Range of the text, or of the attributes.
    from: u32,
    to: u32,
}

/// A page.
pub struct Tree {
    /// All nodes, the root first.
    pub nodes: Vec<Node>,
    names: Vec<String>,
    texts: String,
    attributes: Vec<Attribute>,
}

const TEXT: u16 = 0;

impl Tree {
    /// Name of an element; empty for text.
    pub fn name(&self, node: u32) -> &str {
        &self.names[usize::from(self.nodes[node as usize].name)]
    }

    /// The text of a text.
    pub fn text(&self, node: u32) -> Option<&str> {
        let node = &self.nodes[node as usize];
        (node.name == TEXT).then(|| &self.texts[node.from as usize..node.to as usize])
    }

    /// An attribute of an element.
    pub fn attribute(&self, node: u32, name: &str) -> Option<&str> {
        let node = &self.nodes[node as usize];
        if node.name == TEXT {
            return None;
        }
        let attributes = &self.attributes[node.from as usize..node.to as usize];
        attributes.iter().find(|(key, _)| tags::ATTRIBUTES[usize::from(*key)] == name).map(|(_, value)| &**value)
    }

    /// Nodes inside, in order.
    pub fn children(&self, node: u32) -> impl Iterator<Item = u32> + '_ {
        let next = |at: u32| (at != NONE).then_some(at);
        std::iter::successors(next(self.nodes[node as usize].first), move |at| next(self.nodes[*at as usize].next))
    }

    /// All elements, in the order in which they begin.
    pub fn elements(&self) -> impl Iterator<Item = u32> + '_ {
        (0..self.nodes.len() as u32).filter(|node| self.nodes[*node as usize].name != TEXT)
    }

    /// Whether an element stands on lines of its own, or holds one that does.
    pub fn is_block(&self, node: u32) -> bool {
        self.nodes[node as usize].holds_block || tags::is_block(self.name(node))
    }

    /// The elements around a node, innermost first.
    pub fn above(&self, node: u32) -> impl Iterator<Item = u32> + '_ {
        let parent = |at: u32| Some(self.nodes[at as usize].parent).filter(|parent| *parent != NONE);
        std::iter::successors(parent(node), move |at| parent(*at))
    }

    /// The words inside, each after one space.
    pub fn words(&self, node: u32) -> String {
        let mut out = String::new();
        let mut open = vec![node];
        while let Some(at) = open.pop() {
            for word in self.text(at).unwrap_or_default().split_whitespace() {
                if !out.is_empty() {
                    out.push(' ');
                }
                out.push_str(word);
            }
            let from = open.len();
            open.extend(self.children(at));
            open[from..].reverse();
        }
        out
    }
}

/// Builds the tree of a page; in `xml` every tag may close itself.
pub fn build(html: &str, xml: bool) -> Result<Tree> {
    let mut builder = Builder::new(xml);
    let mut emitter = CallbackEmitter::new(|event: CallbackEvent<'_>, _: Span<()>| -> Option<Infallible> {
        builder.event(event);
        None
    });
    emitter.naively_switch_states(true);
    // Nothing is ever handed out, so the first step is all of it.
    let _nothing = Tokenizer::new_with_emitter(html, Switching { inner: emitter, xml, closed: false }).next();
    if builder.full {
        let message = format!("html has more than {MAX_NODES} elements and texts");
        return Err(Error::new(Kind::LimitExceeded, message));
    }
    Ok(builder.tree)
}

/// Lets no element of XML that closed itself take what follows for its text, as a title or script would.
struct Switching<E> {
    inner: E,
    xml: bool,
    closed: bool,
}

impl<E: Emitter<Token = Infallible>> ForwardingEmitter for Switching<E> {
    type Token = Infallible;

    fn inner(&mut self) -> &mut impl Emitter<Token = Infallible> {
        &mut self.inner
    }

    fn init_start_tag(&mut self) {
        self.closed = false;
        self.inner.init_start_tag();
    }

    fn set_self_closing(&mut self) {
        self.closed = true;
        self.inner.set_self_closing();
    }

    fn emit_current_tag(&mut self) -> Option<State> {
        let state = self.inner.emit_current_tag();
        state.filter(|_| !(self.xml && self.closed))
    }
}

/// An attribute: which of the kept ones, and its value.
type Attribute = (u8, Box<str>);

struct Builder {
    tree: Tree,
    /// Whether every tag may close itself.
    xml: bool,
    known: HashMap<String, u16>,
    /// Open elements, the root first.
    open: Vec<u32>,
    /// How many of each name are open.
    counts: Vec<u16>,
    /// Names of open elements beyond the bound.
    beyond: Vec<u16>,
    /// The tag that is being read.
    tag: Option<(u16, Vec<Attribute>)>,
    attribute: Option<u8>,
    full: bool,
}

impl Builder {
    fn new(xml: bool) -> Self {
        let tree = Tree { nodes: Vec::new(), names: vec![String::new()], texts: String::new(), attributes: Vec::new() };
        let mut builder = Self {
            tree,
            xml,
            known: HashMap::new(),
            open: Vec::new(),
            counts: vec![0],
            beyond: Vec::new(),
            tag: None,
            attribute: None,
            full: false,
        };
        if let Some(name) = builder.name("html") {
            builder.push(name, NONE, Vec::new());
        }
        builder
    }

    fn event(&mut self, event: CallbackEvent<'_>) {
        if self.full {
            return;
        }
        match event {
            CallbackEvent::OpenStartTag { name } => {
                let name = String::from_utf8_lossy(name);
                self.tag = self.name(&name).map(|name| (name, Vec::new()));
                self.attribute = None;
            }
            CallbackEvent::AttributeName { name } => {
                let known = |key: &&str| key.as_bytes() == name;
                self.attribute = tags::ATTRIBUTES.iter().position(known).map(|at| at as u8);
                // An attribute without a value is there all the same.
                if let (Some((_, attributes)), Some(key)) = (&mut self.tag, self.attribute) {
                    if attributes.len() < MAX_ATTRIBUTES && attributes.iter().all(|(k, _)| *k != key) {
                        attributes.push((key, Box::from("")));
                    } else {
                        self.attribute = None;
                    }
                }
            }
            CallbackEvent::AttributeValue { value } if value.len() <= MAX_VALUE => {
                if let (Some((_, attributes)), Some(key)) = (&mut self.tag, self.attribute.take())
                    && let Some((_, slot)) = attributes.iter_mut().find(|(k, _)| *k == key)
                {
                    *slot = String::from_utf8_lossy(value).into();
                }
            }
            CallbackEvent::CloseStartTag { self_closing } => {
                if let Some((name, attributes)) = self.tag.take() {
                    self.start(name, attributes, self_closing);
                }
            }
            CallbackEvent::EndTag { name } => {
                self.tag = None;
                let name = String::from_utf8_lossy(name);
                if let Some(known) = self.known.get(&*name).copied() {
                    self.end(known);
                }
            }
            CallbackEvent::String { value } => self.text(&String::from_utf8_lossy(value)),
            _ => {}
        }
    }

    /// The index of a name.
    fn name(&mut self, name: &str) -> Option<u16> {
        if let Some(known) = self.known.get(name) {
            return Some(*known);
        }
        let fits = self.tree.names.len() < MAX_NAMES && name.len() <= 64;
        let index = u16::try_from(self.tree.names.len()).ok().filter(|_| fits)?;
        self.tree.names.push(name.to_owned());
        self.counts.push(0);
        self.known.insert(name.to_owned(), index);
        Some(index)
    }

    /// The innermost open element; the root is never closed.
    fn current(&self) -> u32 {
        self.open.last().copied().unwrap_or(0)
    }

    fn start(&mut self, index: u16, attributes: Vec<Attribute>, self_closing: bool) {
        let name = self.tree.names[usize::from(index)].clone();
        let name = name.as_str();
        // A second root or body adds nothing but its attributes, of which only the first root's language matters.
        if name == "html" {
            if self.tree.nodes[0].from == self.tree.nodes[0].to {
                self.tree.nodes[0].from = self.tree.attributes.len() as u32;
                self.tree.attributes.extend(attributes);
                self.tree.nodes[0].to = self.tree.attributes.len() as u32;
            }
            return;
        }
        if self.tree.name(self.current()) == "head" && !tags::is_of_head(name) {
            self.pop_to(self.open.len() - 1);
        }
        if matches!(name, "body" | "head") && self.is_open(name) {
            return;
        }
        self.close_implied(name);
        if tags::is_of_table(name) && name != "table" && !self.is_open("table") {
            return;
        }
        let mut parent = self.current();
        let in_table = matches!(self.tree.name(parent), "table" | "thead" | "tbody" | "tfoot" | "tr");
        if in_table && !tags::is_of_table(name) && !tags::is_of_head(name) {
            parent = self.beside_table();
        } else if matches!(name, "td" | "th")
            && self.tree.name(parent) != "tr"
            && let Some(row) = self.name("tr")
        {
            self.open_element(row, parent, Vec::new());
            parent = self.current();
        }
        if tags::is_void(name) || (self_closing && (self.xml || self.is_foreign())) {
            self.push(index, parent, attributes);
            self.open.pop();
            self.counts[usize::from(index)] -= 1;
        } else {
            self.open_element(index, parent, attributes);
        }
    }

    fn open_element(&mut self, index: u16, parent: u32, attributes: Vec<Attribute>) {
        if self.open.len() < MAX_DEPTH {
            self.push(index, parent, attributes);
        } else {
            self.beyond.push(index);
        }
    }

    /// Within drawings and formulas a tag may close itself.
    fn is_foreign(&self) -> bool {
        self.is_open("svg") || self.is_open("math")
    }

    fn is_open(&self, name: &str) -> bool {
        self.known.get(name).is_some_and(|index| self.counts[usize::from(*index)] > 0)
    }

    /// Adds an element and opens it.
    fn push(&mut self, name: u16, parent: u32, attributes: Vec<Attribute>) {
        let from = self.tree.attributes.len() as u32;
        self.tree.attributes.extend(attributes);
        let to = self.tree.attributes.len() as u32;
        let node = self.add(name, parent, from, to);
        self.open.push(node);
        self.counts[usize::from(name)] += 1;
        let name = self.tree.names[usize::from(name)].as_str();
        if tags::is_block(name) {
            let mut at = parent;
            while at != NONE && !self.tree.nodes[at as usize].holds_block {
                self.tree.nodes[at as usize].holds_block = true;
                at = self.tree.nodes[at as usize].parent;
            }
        }
        if tags::is_layout(name) && self.is_open("table") {
            let outer = self.open.iter().rev().skip(1).find(|at| self.tree.name(**at) == "table");
            if let Some(table) = outer.copied() {
                self.tree.nodes[table as usize].layout = true;
            }
        }
    }

    fn add(&mut self, name: u16, parent: u32, from: u32, to: u32) -> u32 {
        let index = self.tree.nodes.len() as u32;
        self.full |= self.tree.nodes.len() >= MAX_NODES;
        let (first, last, next) = (NONE, NONE, NONE);
        self.tree.nodes.push(Node { name, holds_block: false, layout: false, parent, first, last, next, from, to });
        if let Some(above) = self.tree.nodes.get_mut(parent as usize) {
            let last = std::mem::replace(&mut above.last, index);
            match self.tree.nodes.get_mut(last as usize) {
                Some(before) => before.next = index,
                None => self.tree.nodes[parent as usize].first = index,
            }
        }
        index
    }

    fn text(&mut self, text: &str) {
        let mut parent = self.current();
        let name = self.tree.name(parent);
        let data = name == "script" && self.tree.attribute(parent, "type").is_some_and(|t| t.contains("ld+json"));
        if tags::is_raw(name) && !data {
            return;
        }
        if name == "head" && !text.trim().is_empty() {
            self.pop_to(self.open.len() - 1);
            parent = self.current();
        } else if matches!(name, "table" | "thead" | "tbody" | "tfoot" | "tr") {
            if text.trim().is_empty() {
                return;
            }
            parent = self.beside_table();
        }
        let from = self.tree.texts.len();
        self.tree.texts.push_str(text);
        // Offsets fit, because the limits of a document do.
        let (Ok(from), Ok(to)) = (u32::try_from(from), u32::try_from(self.tree.texts.len())) else {
            self.full = true;
            return;
        };
        self.add(TEXT, parent, from, to);
    }

    /// The element around the innermost table.
    fn beside_table(&self) -> u32 {
        let table = self.open.iter().rposition(|at| self.tree.name(*at) == "table");
        table.and_then(|at| self.open.get(at.checked_sub(1)?)).copied().unwrap_or(0)
    }

    /// Closes what the beginning of an element closes.
    fn close_implied(&mut self, name: &str) {
        match name {
            "li" => self.close_within(&["li"], |at| matches!(at, "ul" | "ol" | "menu" | "dir")),
            "dt" | "dd" => self.close_within(&["dt", "dd"], |at| at == "dl"),
            "option" | "optgroup" => self.close_within(&["option"], |at| at == "select"),
            "tr" => self.back_to(&["table", "thead", "tbody", "tfoot"]),
            "td" | "th" => self.back_to(&["tr", "table", "thead", "tbody", "tfoot"]),
            "thead" | "tbody" | "tfoot" | "caption" | "colgroup" => self.back_to(&["table"]),
            "a" => self.close_within(&["a"], tags::is_block),
            _ => {}
        }
        if self.is_open("p") && (tags::closes_paragraph(name) || matches!(name, "li" | "dt" | "dd")) {
            self.close_within(&["p"], |at| matches!(at, "button" | "object" | "caption" | "td" | "th" | "table"));
        }
        if tags::is_heading(name) && tags::is_heading(self.tree.name(self.current())) {
            self.pop_to(self.open.len() - 1);
        }
    }

    /// Closes the innermost element of these names and what is in it, unless an element that bounds it is in between.
    fn close_within(&mut self, names: &[&str], bound: impl Fn(&str) -> bool) {
        for at in (1..self.open.len()).rev() {
            let name = self.tree.name(self.open[at]);
            if names.contains(&name) {
                return self.pop_to(at);
            }
            if bound(name) || matches!(name, "td" | "th" | "table") {
                return;
            }
        }
    }

    /// Closes what is in the innermost element of these names.
    fn back_to(&mut self, names: &[&str]) {
        if !self.is_open("table") {
            return;
        }
        if let Some(at) = self.open.iter().rposition(|at| names.contains(&self.tree.name(*at))) {
            self.pop_to(at + 1);
        }
    }

    fn end(&mut self, index: u16) {
        let name = self.tree.names[usize::from(index)].clone();
        let name = name.as_str();
        if let Some(last) = self.beyond.iter().rev().take(MAX_DEPTH).position(|at| *at == index) {
            self.beyond.truncate(self.beyond.len() - last - 1);
            return;
        }
        let heading = tags::is_heading(name);
        if matches!(name, "html" | "body") || (self.counts[usize::from(index)] == 0 && !heading) {
            return;
        }
        let (block, of_table) = (tags::is_block(name), tags::is_of_table(name));
        for at in (1..self.open.len()).rev() {
            let open = self.tree.name(self.open[at]);
            if open == name || (heading && tags::is_heading(open)) {
                return self.pop_to(at);
            }
            let bound = match name {
                "li" => matches!(open, "ul" | "ol" | "menu"),
                "tr" | "td" | "th" | "thead" | "tbody" | "tfoot" | "caption" => open == "table",
                _ if of_table => false,
                _ => matches!(open, "td" | "th" | "caption" | "table") || (!block && tags::is_block(open)),
            };
            if bound {
                return;
            }
        }
    }

    /// Closes elements until so many are open; never the root.
    fn pop_to(&mut self, length: usize) {
        for node in self.open.drain(length.max(1).min(self.open.len())..) {
            let name = self.tree.nodes[node as usize].name;
            self.counts[usize::from(name)] -= 1;
        }
        self.beyond.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The tree as nested names.
    fn shape(html: &str) -> String {
        fn write(tree: &Tree, node: u32, out: &mut String) {
            match tree.text(node) {
                Some(text) => out.push_str(text),
                None => {
                    out.push_str(tree.name(node));
                    out.push('(');
                    tree.children(node).for_each(|child| write(tree, child, out));
                    out.push(')');
                }
            }
        }
        let tree = build(html, false).expect("a tree");
        let mut out = String::new();
        write(&tree, 0, &mut out);
        out
    }

    #[test]
    fn end_tags_that_may_be_left_out_are_supplied() {
        for (html, expected) in [
            ("<p>a<p>b<div>c", "html(p(a)p(b)div(c))"),
            ("<ul><li>a<li>b<ul><li>c</ul><li>d</ul>e", "html(ul(li(a)li(bul(li(c)))li(d))e)"),
            ("<dl><dt>a<dd>b<dt>c</dl>", "html(dl(dt(a)dd(b)dt(c)))"),
            ("<table><tr><td>a<td>b<tr><th>c</table>d", "html(table(tr(td(a)td(b))tr(th(c)))d)"),
            ("<table><td>a<table><tr><td>b</table>c</table>", "html(table(tr(td(atable(tr(td(b)))c))))"),
            ("<table>x<tr><div>y</div><td>z</table>", "html(table(tr(td(z)))xdiv(y))"),
            ("<head><title>t</title><p>a", "html(head(title(t))p(a))"),
            ("<html><head><meta></head><body>a</body></html>b", "html(head(meta())body(ab))"),
            ("<h1>a<h2>b</h1>c", "html(h1(a)h2(b)c)"),
            ("<b><i>a</b>b</i>c", "html(b(i(a))bc)"),
            ("<div><span>a</div>b</span>c", "html(div(span(a))bc)"),
            ("<td>a</td><tr>b", "html(ab)"),
            ("<a>x<a>y</a>z", "html(a(x)a(y)z)"),
            ("<p>a</div>b</p></p></br>", "html(p(ab))"),
            ("<script>x<b>y</script><style>z</style>a", "html(script()style()a)"),
        ] {
            assert_eq!(shape(html), expected, "{html}");
        }
    }

    #[test]
    fn in_xml_a_tag_may_close_itself() {
        let html = "<title/><p><a id='x'/>a<script src='y'/>b</p><div/>c";
        let names = |xml| build(html, xml).expect("a tree").elements().count();
        assert_eq!(build(html, true).expect("a tree").words(0), "a b c");
        assert_eq!((names(true), names(false)), (6, 2));
    }

    #[test]
    fn attributes_are_those_that_are_asked_for() {
        let tree = build("<a href=x onclick=y HIDDEN href=z class='p q'>t</a>", false).expect("a tree");
        assert_eq!(tree.attribute(1, "href"), Some("x"));
        assert_eq!(tree.attribute(1, "hidden"), Some(""));
        assert_eq!(tree.attribute(1, "class"), Some("p q"));
        assert_eq!(tree.attribute(2, "class"), None);
    }

    #[test]
    fn depth_is_bounded_and_what_is_deeper_is_kept() {
        let deep = format!("{}x{}y<p>z", "<div>".repeat(100_000), "</div>".repeat(100_000));
        let tree = build(&deep, false).expect("a tree");
        assert!(tree.nodes.len() < MAX_DEPTH + 5);
        let text = tree.nodes.len() as u32 - 3;
        assert_eq!((tree.text(text), tree.text(text + 2)), (Some("y"), Some("z")));
        assert_eq!(tree.nodes[text as usize].parent, 0);
        assert_eq!(tree.words(0), "x y z");
    }
}
