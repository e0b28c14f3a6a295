// SPDX-License-Identifier: PostgreSQL

//! From text to a syntax tree, within a bound.
//!
//! tree-sitter makes a tree of anything, but not of everything in time that grows with the size. What would make its stack
//! deep it is not shown ([`super::shown`]). What else may go wrong is counted: a scanner may run to the end of the file at
//! each of a million quotes, and recovery tries many ways. So work has a bound, in operations of the parser and in pages of
//! text that it asks for; a clock would make the result depend on the machine. What costs more than many times the usual is
//! left unparsed, and then it is text.

use super::grammar::Grammar;
use super::shown::shown;
use std::borrow::Cow;
use std::cell::Cell;
use std::ops::ControlFlow;
use tree_sitter::{ParseOptions, ParseState, Parser, Tree};

/// Bytes of the largest file that is parsed. A tree takes up to a hundred bytes for each byte of text.
const MAX_BYTES: usize = 8 << 20;

/// Bytes that the parser gets at a time.
const PAGE: usize = 4096;

/// Work that any file may cost, in pages and in hundreds of operations.
const WORK_AT_ALL: usize = 200;

/// Pages that may be asked for, for each page of text; the same files take 4 and at most 35.
const WORK_PER_PAGE: usize = 40;

/// Operations for each word or mark of the text. Of 6,500 files of real code half take less than 3 and none more than 8; the
/// densest line of a language takes 10.
const WORK_PER_TOKEN: usize = 12;

/// Operations for each byte, where the marks stand close.
const WORK_PER_BYTE: usize = 8;

/// Hundreds of operations for one file, however large; eight megabytes of ordinary code take a quarter.
const MAX_WORK: usize = 400_000;

/// Bytes that may be gone through at the end of a broken file, where each hundred operations may go through all of it.
const END_BYTES: usize = 64 << 10;

/// The tree of a text, and whether some of the text was hidden from the parser; or why there is none: it is too large or costs
/// too much.
pub fn tree(grammar: &Grammar, text: &str) -> Result<(Tree, bool), String> {
    if text.len() > MAX_BYTES {
        return Err(format!("{} bytes are more than {MAX_BYTES}", text.len()));
    }
    let too_much = || "it takes the parser many times as long as code does".to_owned();
    let shown = shown(text);
    let bytes = &*shown.bytes;
    let mut parser = Parser::new();
    parser.set_language(&grammar.language.into()).map_err(|error| error.to_string())?;
    let operations = (shown.tokens * WORK_PER_TOKEN).min(bytes.len() * WORK_PER_BYTE) / 100;
    let work = WORK_AT_ALL + bytes.len() / PAGE * WORK_PER_PAGE + operations.min(MAX_WORK);
    let left = Cell::new(work);
    let spend = || left.replace(left.get().saturating_sub(1)) > 1;
    let mut page = |at: usize, _| if spend() { &bytes[at.min(bytes.len())..(at + PAGE).min(bytes.len())] } else { &[] };
    let (end, last) = (Cell::new(0), bytes.trim_ascii_end().len());
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
    let hidden = matches!(shown.bytes, Cow::Owned(_));
    tree.filter(|_| left.get() > 0).map(|tree| (tree, hidden)).ok_or_else(too_much)
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
            assert!(tree(&of, "x\n").is_ok(), "{language}");
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
