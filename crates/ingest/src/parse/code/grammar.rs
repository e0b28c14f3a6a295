// SPDX-License-Identifier: PostgreSQL

//! What the walker needs to know of a grammar: which nodes are symbols, and how a symbol is called.
//!
//! A language is a table of [`Rule`]s and a few words. Where a table is not enough (a constant function of JavaScript, a
//! declarator of C) a rule names a function of [`super::name`] that looks at the node. The tables stand in
//! [`super::rules`]. Must not know how parts are made.

use tree_sitter::Node;
use tree_sitter_language::LanguageFn;

/// What a node was found to be.
#[derive(Debug, Clone)]
pub struct Found<'t> {
    /// `function`, `class`, …
    pub kind: &'static str,
    /// Name without its containers.
    pub name: String,
    /// The node that holds its statements or members.
    pub body: Option<Node<'t>>,
    /// Whether its members are symbols of their own.
    pub container: bool,
}

/// How a node is read.
#[derive(Debug, Clone, Copy)]
pub enum Shape {
    /// A symbol without symbols inside.
    Leaf,
    /// The same, where it has a body: without one it only mentions something.
    Body,
    /// The same, where a doc comment stands before it.
    Documented,
    /// A symbol whose members are symbols; needs a body.
    Container,
    /// A name for what follows until the end of what it stands in.
    Prefix,
    /// A frame around one symbol, which takes its whole range: decorators, `export`, `template <…>`.
    Wrapper,
    /// A frame around one symbol or, with several inside, nothing of its own.
    Group,
    /// Nothing of its own; what it holds may be symbols: `#ifdef`, `if TYPE_CHECKING:`.
    Through,
    /// Read by a function; the flag says whether it is documented.
    Custom(for<'t> fn(Node<'t>, &str, bool) -> Option<Found<'t>>),
}

/// What one kind of node means.
#[derive(Debug, Clone, Copy)]
pub struct Rule {
    /// Kind of node.
    pub node: &'static str,
    /// Kind of symbol.
    pub kind: &'static str,
    /// How it is read.
    pub shape: Shape,
}

/// A language as the walker knows it.
#[derive(Clone, Copy)]
pub struct Grammar {
    /// The parser's tables.
    pub language: LanguageFn,
    /// Between a container and what is nested in it.
    pub nested: &'static str,
    /// Between a container and its methods.
    pub member: &'static str,
    /// Nodes that belong to what follows them, besides comments.
    pub attributes: &'static [&'static str],
    /// Beginnings of comments that document.
    pub docs: &'static [&'static str],
    /// Beginnings of comments to the end of a line.
    pub comments: &'static [&'static str],
    /// Lines that only close something, besides brackets.
    pub closers: &'static [&'static str],
    /// Whether a container without a body is a definition and not a mention.
    pub bodiless: bool,
    /// The symbols.
    pub rules: &'static [Rule],
}

impl Grammar {
    /// The rule for a kind of node. What could not be parsed is looked into for what could.
    pub fn rule(&self, node: &str) -> Option<&Rule> {
        const ERROR: Rule = Rule { node: "ERROR", kind: "", shape: Shape::Through };
        if node == "ERROR" {
            return Some(&ERROR);
        }
        self.rules.iter().find(|rule| rule.node == node)
    }
}

/// Whether a node is a comment; every grammar here calls it so.
pub fn is_comment(node: &str) -> bool {
    node.ends_with("comment")
}
