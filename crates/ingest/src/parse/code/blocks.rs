// SPDX-License-Identifier: PostgreSQL

//! Where a symbol that does not fit may be cut: its statements, and theirs.
//!
//! Whatever the grammar, a statement that somebody would cut at begins a line. So a block is a node that is the first of
//! its line, and nodes that are not are looked through. That needs no table of statements, and a file of one line
//! has no blocks, however many nodes it has. A comment goes with the block after it.

use super::grammar::is_comment;
use crate::parse::{Block, BlockKind};
use std::ops::Range;
use tree_sitter::Node;

/// Bytes of a node that is looked into; a smaller one is never worth cutting.
const LARGE: usize = 200;

/// Blocks nested deeper than this are lines of the block around them; bounds every recursion over them.
const MAX_NEST: usize = 16;

/// Levels of the tree that are looked through; bounds the work for each byte.
const MAX_LEVELS: usize = 96;

/// A block whose children are still coming.
struct Open {
    block: Block,
    comment: bool,
    /// Whether the last child is a comment.
    after_comment: bool,
    /// Depth of its node.
    level: usize,
}

impl Open {
    fn new(range: Range<usize>, comment: bool, level: usize) -> Self {
        let block = Block { kind: BlockKind::Code, range, children: Vec::new() };
        Self { block, comment, after_comment: false, level }
    }

    fn attach(&mut self, text: &str, child: Open) {
        let is_comment = child.comment;
        let mut block = child.close(text);
        if self.after_comment
            && let Some(comment) = self.block.children.pop_if(|c| !blank_line(text, c.range.end, block.range.start))
        {
            block.range.start = comment.range.start;
        }
        self.after_comment = is_comment;
        self.block.children.push(block);
    }

    /// The block; what only closes it goes with its last child.
    fn close(self, text: &str) -> Block {
        let mut block = self.block;
        let end = block.range.end;
        if let Some(last) = block.children.last_mut()
            && last.range.end < end
            && text[last.range.end..end].bytes().all(|b| closes(b) || b.is_ascii_whitespace())
        {
            last.range.end = end;
        }
        block
    }
}

/// Whether a byte is a mark that only closes something.
pub fn closes(byte: u8) -> bool {
    matches!(byte, b')' | b']' | b'}' | b'>' | b';' | b',')
}

/// Whether there is a blank line between two places.
pub fn blank_line(text: &str, from: usize, to: usize) -> bool {
    // A node may end with its line feed.
    let from = text[..from].trim_end().len();
    from < to && text[from..to].bytes().filter(|b| *b == b'\n').take(2).count() > 1
}

/// The start of the line, if there is only white space between it (or `floor`) and `at`.
pub fn line_start(text: &str, at: usize, floor: usize) -> Option<usize> {
    let space = text.as_bytes()[floor..at].iter().rev().take_while(|b| matches!(b, b' ' | b'\t')).count();
    let start = at - space;
    (start == 0 || text.as_bytes()[start - 1] == b'\n').then_some(start)
}

/// Nodes that hold statements and are none.
fn holds(kind: &str) -> bool {
    matches!(kind, "block" | "compound_statement" | "statement_block" | "statement_list" | "body_statement")
        || kind.ends_with("_body")
        || kind.ends_with("_list")
}

/// Nodes whose inside is not code.
fn is_text(kind: &str) -> bool {
    kind.contains("string") || kind.contains("heredoc") || is_comment(kind)
}

/// The blocks inside of a node, from `start` (where it or its comments begin).
pub fn inside(text: &str, node: Node<'_>, start: usize) -> Vec<Block> {
    let mut open = vec![Open::new(start..node.end_byte(), false, 0)];
    let mut cursor = node.walk();
    let mut level = 0;
    loop {
        let node = cursor.node();
        let range = node.byte_range();
        let large = range.len() >= LARGE && node.start_position().row < node.end_position().row;
        if level > 0
            && open.len() <= MAX_NEST
            && node.is_named()
            && !holds(node.kind())
            && open.last().is_some_and(|parent| range.start > parent.block.range.start)
            && line_start(text, range.start, 0).is_some()
        {
            open.push(Open::new(range, is_comment(node.kind()), level));
        }
        if large && level < MAX_LEVELS && !is_text(node.kind()) && cursor.goto_first_child() {
            level += 1;
            continue;
        }
        loop {
            while open.len() > 1
                && let Some(done) = open.pop_if(|block| block.level >= level)
            {
                if let Some(parent) = open.last_mut() {
                    parent.attach(text, done);
                }
            }
            if level == 0 {
                return open.pop().map(|root| root.close(text).children).unwrap_or_default();
            }
            if cursor.goto_next_sibling() {
                break;
            }
            cursor.goto_parent();
            level -= 1;
        }
    }
}
