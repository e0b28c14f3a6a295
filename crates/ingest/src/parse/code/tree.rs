// SPDX-License-Identifier: PostgreSQL

//! From text to a syntax tree, within a bound.
//!
//! tree-sitter makes a tree of anything, but not of everything in time that grows with the size: a scanner may run to the
//! end of the file at each of a million quotes, and recovery tries many ways. So work is counted, in operations of the
//! parser and in pages of text that it asks for; a clock would make the result depend on the machine. What costs
//! more than many times the usual is left unparsed, and then it is text.
//!
//! Not all is bounded so: a long run of operators without operands (`-*-*…` in JavaScript) still takes time that grows with
//! its square between two counts. Then the time limit of the document ends it.

use super::grammar::Grammar;
use std::cell::Cell;
use std::ops::ControlFlow;
use tree_sitter::{ParseOptions, ParseState, Parser, Tree};

/// Bytes of the largest file that is parsed. A tree takes up to a hundred bytes for each byte of text.
const MAX_BYTES: usize = 8 << 20;

/// Bytes that the parser gets at a time.
const PAGE: usize = 4096;

/// Work that any file may cost, in pages and in hundreds of operations.
const WORK_AT_ALL: usize = 200;

/// Work for each page of text on top; of 3,208 files of real code half cost less than 13, and none more than 80.
const WORK_PER_PAGE: usize = 120;

/// Bytes that may be gone through at the end of a broken file, where each hundred operations may go through all of it.
const END_BYTES: usize = 64 << 10;

/// Brackets open at once. At the end of a broken file the parser goes through all that is open many times over.
const MAX_OPEN: usize = 400;

/// The most brackets that are open at once, those of strings and comments included.
fn most_open(text: &str) -> usize {
    let (mut open, mut most) = (0_usize, 0);
    for byte in text.bytes() {
        match byte {
            b'(' | b'[' | b'{' => {
                open += 1;
                most = most.max(open);
            }
            b')' | b']' | b'}' => open = open.saturating_sub(1),
            _ => {}
        }
    }
    most
}

/// The tree of a text; `None` when it is too large, nests too deep or costs too much.
pub fn tree(grammar: &Grammar, text: &str) -> Option<Tree> {
    if text.len() > MAX_BYTES || most_open(text) > MAX_OPEN {
        return None;
    }
    let mut parser = Parser::new();
    parser.set_language(&grammar.language.into()).ok()?;
    let bytes = text.as_bytes();
    let left = Cell::new(WORK_AT_ALL + bytes.len() / PAGE * WORK_PER_PAGE);
    let spend = || left.replace(left.get().saturating_sub(1)) > 1;
    let mut page = |at: usize, _| if spend() { &bytes[at.min(bytes.len())..(at + PAGE).min(bytes.len())] } else { &[] };
    let (end, last) = (Cell::new(0), text.trim_end().len());
    let mut progress = |state: &ParseState| {
        if state.has_error() && state.current_byte_offset() >= last {
            end.set(end.get() + bytes.len());
        }
        if end.get() > END_BYTES.max(bytes.len()) {
            left.set(0);
        }
        if spend() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    };
    let options = ParseOptions::new().progress_callback(&mut progress);
    let tree = parser.parse_with_options(&mut page, None, Some(options));
    // A parser that was told that the text ends early may have finished.
    tree.filter(|_| left.get() > 0)
}

#[cfg(test)]
mod tests {
    use super::super::language::Language;
    use super::super::rules::grammar;
    use super::*;

    #[test]
    fn every_grammar_fits_the_library() {
        use Language::*;
        for language in [Rust, Python, TypeScript, Tsx, JavaScript, Go, Java, C, Cpp, CSharp, Ruby, Php, Bash] {
            let of = grammar(language).expect("a grammar");
            assert!(tree(&of, "x\n").is_some(), "{language}");
            for rule in of.rules {
                // One table serves JavaScript and TypeScript; every rule must be right for one of its languages.
                let known = |l: Language| {
                    let of = grammar(l).expect("a grammar");
                    tree_sitter::Language::from(of.language).id_for_node_kind(rule.node, true) > 0
                };
                let typed = language == JavaScript && known(TypeScript) || language != JavaScript && known(JavaScript);
                assert!(known(language) || typed, "{language} has no node {}", rule.node);
            }
        }
    }
}
