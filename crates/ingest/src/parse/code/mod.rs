// SPDX-License-Identifier: PostgreSQL

//! Source code: from a file to its symbols.
//!
//! ```text
//!  path, text ── language ── tree (tree-sitter, bounded) ── walk (rules of the language) ──▶ parts
//! ```
//!
//! One walker for all grammars: a language is a table of which nodes are symbols. SQL is read without one. Whatever the text,
//! every character is in a part or is white space; what cannot be parsed is text without symbols. Symbols are named as
//! users of the language write them: `Parser.parse`, `Parser::parse`, `Parser#parse`. A function inside a function is part
//! of it and no symbol of its own.

mod around;
mod blocks;
mod grammar;
mod language;
mod name;
mod role;
mod rules;
mod sql;
mod tree;
mod walk;

use super::{Parsed, Structure};
use crate::text;
pub use language::Language;

/// Parses a file; what its language is, its path and its first line say.
pub fn parse(path: &str, bytes: &[u8]) -> Parsed {
    let repaired = text::repair(bytes);
    let text = repaired.text;
    let language = Language::of(path, &text);
    let parts = language.and_then(|language| match rules::grammar(language) {
        Some(grammar) => tree::tree(&grammar, &text).map(|tree| walk::parts(&text, &grammar, &tree)),
        None => Some(sql::parts(&text)),
    });
    let structure = Structure {
        body: 0..text.len(),
        parts: parts.unwrap_or_else(|| walk::unparsed(&text)),
        ..Structure::default()
    };
    Parsed {
        repaired_bytes: repaired.repaired_bytes,
        structure,
        media_type: language.map_or("text/plain", Language::media_type).to_owned(),
        language: language.map(|language| language.name().to_owned()),
        role: language.map(|language| role::of_file(path, language, &text).to_owned()),
        text,
        ..Parsed::default()
    }
}
