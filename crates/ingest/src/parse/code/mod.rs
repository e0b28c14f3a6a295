// SPDX-License-Identifier: PostgreSQL

//! Source code: from a file to its symbols.
//!
//! ```text
//!  path, text ── language ── shown ── tree (tree-sitter, bounded) ── walk (rules of the language) ──▶ parts
//! ```
//!
//! One walker for all grammars: a language is a table of which nodes are symbols. SQL is read without one. Whatever the
//! text, every character is in a part or is white space; what cannot be parsed is text without symbols, and its metadata
//! says why (`parse_error`). Symbols are named as users of the language write them: `Parser.parse`, `Parser::parse`,
//! `Parser#parse`. A function inside a function is part of it and no symbol of its own.

mod around;
mod blocks;
mod grammar;
mod language;
mod name;
mod role;
mod rules;
mod shown;
mod sql;
mod tree;
mod walk;

use super::{Parsed, Structure};
use crate::text;
pub use language::Language;
use serde_json::Map;

/// Parses a file; what its language is, its path and its first line say.
pub fn parse(path: &str, bytes: &[u8]) -> Parsed {
    let repaired = text::repair(bytes);
    let text = repaired.text;
    let language = Language::of(path, &text);
    let grammar = language.and_then(rules::grammar);
    let tree = grammar.as_ref().map(|grammar| tree::tree(grammar, &text));
    let parts = match (&grammar, &tree) {
        (Some(grammar), Some(Ok((tree, _)))) => walk::parts(&text, grammar, tree),
        _ if language == Some(Language::Sql) => sql::parts(&text),
        _ => walk::unparsed(&text),
    };
    let structure = Structure { body: 0..text.len(), parts, ..Structure::default() };
    let mut metadata = Map::new();
    let unseen = match &tree {
        Some(Err(why)) => Some(format!("symbols were not looked for: {why}")),
        Some(Ok((_, true))) => Some("symbols were not looked for where the brackets are too deep".to_owned()),
        _ => None,
    };
    metadata.extend(unseen.map(|why| ("parse_error".to_owned(), why.into())));
    Parsed {
        repaired_bytes: repaired.repaired_bytes,
        structure,
        media_type: language.map_or("text/plain", Language::media_type).to_owned(),
        language: language.map(|language| language.name().to_owned()),
        role: language.map(|language| role::of_file(path, language, &text).to_owned()),
        metadata,
        text,
        ..Parsed::default()
    }
}
