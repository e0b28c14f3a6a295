// SPDX-License-Identifier: PostgreSQL

//! From a syntax tree to parts: each symbol one, and the text between them.
//!
//! One pass in order of the text. A container (a class, an implementation, a namespace) is entered: its members are parts
//! with its header as their context, and what is left of it (its header, its fields) is a part that is called as it is. Text
//! outside of containers is a part without a name. Comments and attributes go with what follows them when no blank line
//! is between; what only closes goes with what it closes. The tree is walked with a stack of our own, as deep as
//! [`MAX_DEPTH`]; what is deeper, and all after [`MAX_PARTS`], is text of what it stands in.

use super::around::{Lead, MAX_HEADER, closed, header, last_row, lead, lead_of_body};
use super::blocks::{self, line_start};
use super::grammar::{Found, Grammar, Shape, is_comment};
use super::{name, role};
use crate::parse::{Block, BlockKind, Part};
use rag_core::document::Facts;
use std::ops::Range;
use tree_sitter::{Node, Tree, TreeCursor};

/// Levels that are entered.
const MAX_DEPTH: usize = 32;

/// Parts of one file; no file that a person wrote has as many symbols.
const MAX_PARTS: usize = 100_000;

/// Frames around a symbol that are taken off.
const MAX_WRAPPERS: usize = 8;

/// Bytes of all headers around a symbol together; the innermost are kept.
const MAX_CONTEXT: usize = 600;

/// Bytes of the names of what is around a symbol; a longer one would stand before each of any number of symbols.
const MAX_SCOPE: usize = 1000;

/// Bytes of text between symbols that is worth cutting at its statements.
const LARGE: usize = 200;

/// What a node turned out to be.
enum Seen<'t> {
    Nothing,
    Through(Node<'t>),
    Symbol { found: Found<'t>, inner: Node<'t>, prefix: bool },
}

/// What names and text around a symbol say.
#[derive(Clone, Default)]
struct Scope {
    /// Qualified name, to be put before others.
    name: String,
    /// What its own text is.
    facts: Facts,
    /// Headers around it.
    outer: Option<String>,
    /// The same and its own.
    inner: Option<String>,
    /// Whether its header is still to come.
    fresh: bool,
}

/// A level that is being walked.
struct Frame<'t> {
    cursor: TreeCursor<'t>,
    started: bool,
    /// Scopes to keep when it is left.
    scopes: usize,
    /// Where its body and it end, if it is a container.
    end: Option<(usize, usize)>,
    /// Whether its methods belong to the class itself.
    singleton: bool,
    /// Where what opens it begins, which goes with its first symbol: `if TYPE_CHECKING:`, `type (`.
    opener: Option<usize>,
    /// Start and end of comments and attributes for the next sibling, and whether they document.
    lead: Option<Lead>,
    /// Row on which the last sibling ended.
    last_row: Option<usize>,
}

/// How a level is entered.
#[derive(Default)]
struct Entry {
    /// The scope of a container, and where its body and it end.
    scope: Option<(Scope, (usize, usize))>,
    singleton: bool,
    opener: Option<usize>,
    lead: Option<Lead>,
}

/// The parts of a tree, in order.
pub fn parts(text: &str, grammar: &Grammar, tree: &Tree) -> Vec<Part> {
    let mut walker = Walker {
        text,
        grammar,
        parts: Vec::new(),
        scopes: vec![Scope::default()],
        frames: Vec::new(),
        loose: Vec::new(),
        at: 0,
    };
    walker.enter(tree.walk(), Entry::default());
    walker.walk();
    walker.gap(text.len());
    walker.parts
}

/// What could not be parsed: one part, cut at lines.
pub fn unparsed(text: &str) -> Vec<Part> {
    let blank = text.trim().is_empty();
    if blank { Vec::new() } else { vec![Part { range: 0..text.len(), ..Part::default() }] }
}

struct Walker<'a, 't> {
    text: &'a str,
    grammar: &'a Grammar,
    parts: Vec<Part>,
    scopes: Vec<Scope>,
    frames: Vec<Frame<'t>>,
    /// Nodes since the last part, each from its comments on.
    loose: Vec<(usize, Node<'t>)>,
    /// Up to where everything is in parts.
    at: usize,
}

impl<'t> Walker<'_, 't> {
    fn walk(&mut self) {
        while let Some(frame) = self.frames.last_mut() {
            let more = if frame.started { frame.cursor.goto_next_sibling() } else { frame.cursor.goto_first_child() };
            frame.started = true;
            if more {
                let node = frame.cursor.node();
                self.node(node);
            } else {
                self.leave();
            }
        }
    }

    fn enter(&mut self, cursor: TreeCursor<'t>, entry: Entry) {
        let scopes = self.scopes.len();
        let end = entry.scope.as_ref().map(|(_, end)| *end);
        self.scopes.extend(entry.scope.map(|(scope, _)| scope));
        let Entry { lead, singleton, opener, .. } = entry;
        self.frames.push(Frame { cursor, started: false, scopes, end, singleton, opener, lead, last_row: None });
    }

    fn leave(&mut self) {
        if let Some(frame) = self.frames.pop() {
            if let Some((body, end)) = frame.end {
                self.close(body, end);
                self.gap(end);
            }
            self.scopes.truncate(frame.scopes);
        }
    }

    /// Gives the last member what closes its container, with what a declaration says behind: `} first, *second`.
    fn close(&mut self, body: usize, end: usize) {
        let within = self.scopes.last().is_some_and(|scope| !scope.fresh);
        let closed = within && body < end && closed(self.text, self.grammar, self.at.min(body)..body) == body;
        if let Some(last) = self.parts.last_mut().filter(|last| closed && last.range.end == self.at)
            && !self.text[body..end].contains('\n')
        {
            last.range.end = end;
            self.at = end;
        }
    }

    fn node(&mut self, node: Node<'t>) {
        let (row, kind) = (node.start_position().row, node.kind());
        let attribute = self.grammar.attributes.contains(&kind);
        let Some(frame) = self.frames.last_mut() else {
            return;
        };
        if is_comment(kind) || attribute {
            // After code on its line it is about that code.
            let about_last = !attribute && frame.last_row == Some(row);
            frame.lead = if about_last { None } else { lead(self.text, self.grammar, frame.lead, node, attribute) };
            return;
        }
        let lead = frame.lead.take().filter(|lead| lead.is_near(self.text, node.start_byte()));
        frame.last_row = Some(last_row(node));
        let start = lead.map_or(node.start_byte(), |lead| lead.start);
        match self.resolve(node, lead.is_some_and(|lead| lead.documents)) {
            Seen::Symbol { found, inner, prefix } if self.parts.len() < MAX_PARTS => {
                self.symbol(start, node, inner, found, prefix);
            }
            Seen::Through(inner) if self.frames.len() < MAX_DEPTH => {
                let singleton = self.singleton() || inner.kind() == "singleton_class";
                let outer = self.frames.last().and_then(|frame| frame.opener).filter(|opener| *opener >= self.at);
                let opener = Some(outer.unwrap_or(start));
                self.enter(inner.walk(), Entry { singleton, opener, ..Entry::default() });
            }
            _ if node.is_named() => self.loose.push((start, node)),
            _ => {}
        }
    }

    /// What a node is, without the frames around it.
    fn resolve(&self, node: Node<'t>, documented: bool) -> Seen<'t> {
        let mut inner = node;
        for _ in 0..MAX_WRAPPERS {
            let Some(rule) = self.grammar.rule(inner.kind()) else {
                return Seen::Nothing;
            };
            let body = || inner.child_by_field_name("body");
            let leaf = |body: Option<Node<'t>>, container: bool| match name::field(inner, self.text, "name") {
                Some(name) => {
                    let found = Found { kind: rule.kind, name, body, container };
                    Seen::Symbol { found, inner, prefix: false }
                }
                None => Seen::Nothing,
            };
            match rule.shape {
                Shape::Through => return Seen::Through(inner),
                Shape::Leaf => return leaf(body(), false),
                Shape::Body if body().is_some() => return leaf(body(), false),
                Shape::Documented if documented => return leaf(body(), false),
                Shape::Container => {
                    return match body() {
                        Some(body) => leaf(Some(body), true),
                        None if self.grammar.bodiless => leaf(None, false),
                        None => Seen::Nothing,
                    };
                }
                Shape::Prefix => {
                    let seen = leaf(body(), body().is_some());
                    return match seen {
                        Seen::Symbol { found, inner, .. } => {
                            let prefix = !found.container;
                            Seen::Symbol { found, inner, prefix }
                        }
                        other => other,
                    };
                }
                Shape::Body | Shape::Documented => return Seen::Nothing,
                Shape::Custom(read) => return symbol(read(inner, self.text, documented), inner),
                Shape::Group if inner.named_child_count() != 1 => return Seen::Through(inner),
                Shape::Wrapper | Shape::Group => match self.wrapped(inner) {
                    Some(child) => inner = child,
                    None => return symbol(name::js_default(inner, self.text, documented), inner),
                },
            }
        }
        Seen::Nothing
    }

    /// The first child that may be a symbol.
    fn wrapped(&self, node: Node<'t>) -> Option<Node<'t>> {
        let mut cursor = node.walk();
        let mut children = node.named_children(&mut cursor);
        children.find(|child| self.grammar.rule(child.kind()).is_some())
    }

    fn symbol(&mut self, start: usize, outer: Node<'t>, inner: Node<'t>, found: Found<'t>, prefix: bool) {
        let end = self.text[..outer.end_byte()].trim_end().len().max(start);
        if prefix && let Some(frame) = self.frames.last() {
            // A second namespace is not inside of the first.
            self.scopes.truncate(frame.scopes + usize::from(frame.end.is_some()));
        }
        let start = self.opened(start);
        // The indentation goes with its line.
        let start = line_start(self.text, start, self.at.min(start)).unwrap_or(start).max(self.at);
        if start >= end {
            return;
        }
        self.gap(start);
        let header = header(self.text, self.grammar, outer, inner, found.body);
        let (scope, singleton) = (self.scopes.last().cloned().unwrap_or_default(), self.singleton());
        let kind = match scope.facts.symbol_kind.as_deref() {
            Some(within) if found.kind == "function" && is_type(within) => "method",
            _ => found.kind,
        };
        let role = role::of_symbol(self.grammar, &self.text[start..inner.start_byte().max(start)]);
        let facts = Facts {
            symbol: Some(self.qualified(&scope, &found.name, kind, singleton)),
            symbol_kind: Some(kind.to_owned()),
            role: role.map(str::to_owned).or_else(|| scope.facts.role.clone()),
            ..Facts::default()
        };
        let inner_context = join(scope.inner.as_deref(), &header);
        if let Some(body) = found.body.filter(|_| found.container && self.frames.len() < MAX_DEPTH) {
            self.at = start;
            self.loose.clear();
            let name = facts.symbol.clone().unwrap_or_default();
            let scope = Scope { name, facts, outer: scope.inner, inner: Some(inner_context), fresh: true };
            let lead = lead_of_body(self.text, self.grammar, inner, body);
            let scope = Some((scope, (body.end_byte(), end)));
            return self.enter(body.walk(), Entry { scope, lead, ..Entry::default() });
        }
        if prefix {
            let name = facts.symbol.clone().unwrap_or_default();
            self.scopes.push(Scope { name, ..scope.clone() });
        }
        let blocks = if end - start >= LARGE { blocks::inside(self.text, outer, start) } else { Vec::new() };
        self.push(Part {
            range: start..end,
            blocks,
            context: scope.inner,
            header: Some(inner_context),
            facts,
            ..Part::default()
        });
    }

    /// Where a symbol begins, with what opens the level that it is the first of, when that is one line.
    fn opened(&self, start: usize) -> usize {
        let opener = self.frames.last().and_then(|frame| frame.opener);
        let opener = opener.filter(|opener| (self.at..start).contains(opener) && start - opener <= MAX_HEADER);
        match opener {
            Some(opener) if !self.text[opener..start].trim().contains('\n') => opener,
            _ => start,
        }
    }

    fn singleton(&self) -> bool {
        self.frames.last().is_some_and(|frame| frame.singleton)
    }

    fn qualified(&self, scope: &Scope, name: &str, kind: &str, singleton: bool) -> String {
        if let Some(whole) = name.strip_prefix('\\') {
            return whole.to_owned();
        }
        if scope.name.is_empty() || scope.name.len() > MAX_SCOPE {
            return name.trim_start_matches('.').to_owned();
        }
        let member =
            kind == "method" || (kind == "constant" && scope.facts.symbol.is_some() && self.grammar.member == "::");
        let between = match member {
            _ if name.starts_with('.') => "",
            true if singleton => ".",
            true => self.grammar.member,
            false => self.grammar.nested,
        };
        format!("{}{between}{name}", scope.name)
    }

    fn push(&mut self, part: Part) {
        self.at = part.range.end;
        self.loose.clear();
        if let Some(scope) = self.scopes.last_mut() {
            scope.fresh = false;
        }
        self.parts.push(part);
    }

    /// Makes a part of the text up to `end`, unless there is none.
    fn gap(&mut self, end: usize) {
        let scope = self.scopes.last().cloned().unwrap_or_default();
        let touches = self.parts.last().is_some_and(|part| part.range.end == self.at) && !scope.fresh;
        let start = if touches { closed(self.text, self.grammar, self.at..end) } else { self.at };
        if start > self.at
            && let Some(last) = self.parts.last_mut()
        {
            last.range.end = start;
        }
        self.at = end.max(self.at);
        let rest = start..end;
        if start >= end || self.text[rest.clone()].trim().is_empty() {
            return self.loose.clear();
        }
        let blocks = if rest.len() >= LARGE { self.loose_blocks(&rest) } else { Vec::new() };
        let (context, header) = if scope.fresh { (scope.outer, scope.inner) } else { (scope.inner, None) };
        self.push(Part { range: rest, blocks, context, header, facts: scope.facts, ..Part::default() });
    }

    fn loose_blocks(&mut self, range: &Range<usize>) -> Vec<Block> {
        let mut blocks: Vec<Block> = Vec::new();
        for (start, node) in self.loose.drain(..) {
            let (start, end) = (start.max(range.start), node.end_byte().min(range.end));
            let after = blocks.last().map_or(range.start, |block| block.range.end);
            if start < after || start >= end || line_start(self.text, start, 0).is_none() {
                continue;
            }
            let children = blocks::inside(self.text, node, start);
            blocks.push(Block { kind: BlockKind::Code, range: start..end, children });
        }
        blocks
    }
}

fn symbol<'t>(found: Option<Found<'t>>, inner: Node<'t>) -> Seen<'t> {
    match found {
        Some(found) => Seen::Symbol { found, inner, prefix: false },
        None => Seen::Nothing,
    }
}

/// Whether functions of it are methods.
fn is_type(kind: &str) -> bool {
    matches!(kind, "class" | "struct" | "interface" | "trait" | "impl" | "enum" | "record" | "union")
}

/// Headers under one another; the innermost when they are too long together.
fn join(outer: Option<&str>, own: &str) -> String {
    match outer {
        Some(outer) if outer.len() + own.len() < MAX_CONTEXT => format!("{outer}\n{own}"),
        _ => own.to_owned(),
    }
}
