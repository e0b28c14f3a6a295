// SPDX-License-Identifier: PostgreSQL

//! SQL: what a script creates, statement by statement.
//!
//! No grammar: those that exist do not know PostgreSQL's dialect well, and one statement that they do not know costs the
//! symbols of all that follow it. What ends a statement is the same in every dialect, so this module only tells
//! strings, quoted names, dollar quotes and comments from the rest; a statement is named by its first words. Knows psql's
//! commands and the data after `COPY … FROM stdin` well enough not to be led astray by them.

use super::blocks::{blank_line, line_start};
use crate::parse::{Block, BlockKind, Part};
use rag_core::document::Facts;
use std::ops::Range;

/// Words between CREATE and the name, at most.
const MAX_WORDS: usize = 16;

/// Longest name in bytes.
const MAX_NAME: usize = 256;

/// Bytes of a statement's first line that go with its later pieces.
const MAX_HEADER: usize = 300;

const KINDS: &[&str] = &[
    "table",
    "view",
    "function",
    "procedure",
    "index",
    "type",
    "trigger",
    "schema",
    "sequence",
    "policy",
    "domain",
    "aggregate",
    "role",
    "extension",
    "rule",
    "publication",
    "subscription",
    "server",
    "package",
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Token {
    Comment,
    Word,
    /// `"name"`, `` `name` ``, `[name]` of another dialect is not told from an array.
    Quoted,
    /// A string or dollar quote.
    Text,
    Semicolon,
    /// A command of psql, to the end of its line.
    Command,
    Dot,
    Other,
}

/// Splits a text into tokens; white space is none.
struct Lexer<'a> {
    text: &'a str,
    at: usize,
}

impl Lexer<'_> {
    /// Where `mark` ends next, from `from` on; else the end.
    fn after(&self, mark: &str, from: usize) -> usize {
        self.text[from..].find(mark).map_or(self.text.len(), |found| from + found + mark.len())
    }

    /// The end of a quoted passage that opened at `start`; its mark doubled is no end.
    fn quoted(&self, start: usize, mark: u8, escapes: bool) -> usize {
        let bytes = self.text.as_bytes();
        let mut at = start + 1;
        while at < bytes.len() {
            match bytes[at] {
                b'\\' if escapes => at += 2,
                byte if byte == mark && bytes.get(at + 1) == Some(&mark) => at += 2,
                byte if byte == mark => return at + 1,
                _ => at += 1,
            }
        }
        bytes.len()
    }

    fn comment(&self, start: usize) -> usize {
        let bytes = self.text.as_bytes();
        let (mut at, mut depth) = (start, 0_usize);
        while at + 1 < bytes.len() {
            match &bytes[at..at + 2] {
                b"/*" => (at, depth) = (at + 2, depth + 1),
                b"*/" => (at, depth) = (at + 2, depth - 1),
                _ => at += 1,
            }
            if depth == 0 {
                return at;
            }
        }
        bytes.len()
    }

    /// The end of a dollar quote that opens at `start`, if one does.
    fn dollar(&self, start: usize) -> Option<usize> {
        let rest = &self.text[start + 1..];
        let tag = rest.find(|c: char| !(c.is_alphanumeric() || c == '_'))?;
        let number = rest.starts_with(|c: char| c.is_ascii_digit());
        if number || tag > MAX_NAME || !rest[tag..].starts_with('$') {
            return None;
        }
        let mark = &self.text[start..start + tag + 2];
        Some(self.after(mark, start + mark.len()))
    }
}

impl Iterator for Lexer<'_> {
    type Item = (Token, Range<usize>);

    fn next(&mut self) -> Option<Self::Item> {
        let rest = &self.text[self.at..];
        let start = self.at + (rest.len() - rest.trim_start().len());
        let rest = &self.text[start..];
        let first = rest.chars().next()?;
        let line_end = || start + rest.find('\n').unwrap_or(rest.len());
        let word = rest.find(|c: char| !(c.is_alphanumeric() || c == '_' || c == '$')).unwrap_or(rest.len());
        let (token, end) = match first {
            '-' if rest.starts_with("--") => (Token::Comment, line_end()),
            '/' if rest.starts_with("/*") => (Token::Comment, self.comment(start)),
            'e' | 'E' if rest[1..].starts_with('\'') => (Token::Text, self.quoted(start + 1, b'\'', true)),
            '\'' => (Token::Text, self.quoted(start, b'\'', false)),
            '"' => (Token::Quoted, self.quoted(start, b'"', false)),
            '`' => (Token::Quoted, self.quoted(start, b'`', false)),
            ';' => (Token::Semicolon, start + 1),
            '\\' => (Token::Command, line_end()),
            '.' => (Token::Dot, start + 1),
            '$' => match self.dollar(start) {
                Some(end) => (Token::Text, end),
                None => (Token::Other, start + 1),
            },
            first if first.is_alphanumeric() || first == '_' => (Token::Word, start + word),
            first => (Token::Other, start + first.len_utf8()),
        };
        // An escape may point behind the end.
        self.at = self.text.ceil_char_boundary(end.min(self.text.len()));
        Some((token, start..self.at))
    }
}

/// A statement with the comments before it.
#[derive(Debug, Clone)]
struct Statement {
    start: usize,
    /// Its first word.
    head: usize,
    end: usize,
}

/// Symbols of a script, and the statements between them.
pub fn parts(text: &str) -> Vec<Part> {
    let mut parts: Vec<Part> = Vec::new();
    let mut loose: Vec<Block> = Vec::new();
    let mut at = 0;
    for statement in statements(text) {
        let start = line_start(text, statement.start, at).unwrap_or(statement.start);
        let Some((kind, name)) = created(&text[statement.head..statement.end]) else {
            if line_start(text, statement.start, at).is_some() {
                loose.push(Block {
                    kind: BlockKind::Code,
                    range: statement.start..statement.end,
                    children: Vec::new(),
                });
            }
            continue;
        };
        gap(text, at..start, &mut loose, &mut parts);
        at = statement.end;
        let head = &text[statement.head..statement.end];
        let line = head[..head.floor_char_boundary(MAX_HEADER)].lines().next().unwrap_or_default();
        let header = line.trim_end().to_owned();
        let facts = Facts { symbol: Some(name), symbol_kind: Some(kind.to_owned()), ..Facts::default() };
        parts.push(Part { range: start..at, header: Some(header), facts, ..Part::default() });
    }
    gap(text, at..text.len(), &mut loose, &mut parts);
    parts
}

fn gap(text: &str, range: Range<usize>, loose: &mut Vec<Block>, parts: &mut Vec<Part>) {
    let blocks = std::mem::take(loose);
    if !text[range.clone()].trim().is_empty() {
        parts.push(Part { range, blocks, ..Part::default() });
    }
}

fn statements(text: &str) -> Vec<Statement> {
    let mut out: Vec<Statement> = Vec::new();
    let mut open: Option<Statement> = None;
    // Start and end of the comments before what comes next.
    let mut lead: Option<Range<usize>> = None;
    let mut first_words: Vec<&str> = Vec::new();
    // Blocks of BEGIN … END that are open, in a statement whose body stands bare.
    let mut depth = 0_usize;
    let mut last_word = "";
    let mut lexer = Lexer { text, at: 0 };
    while let Some((token, range)) = lexer.next() {
        if token == Token::Comment {
            match out.last_mut().filter(|_| open.is_none()) {
                Some(last) if !text[last.end..range.start].contains('\n') => last.end = range.end,
                _ if open.is_none() => {
                    let near = lead.take().filter(|lead| !blank_line(text, lead.end, range.start));
                    lead = Some(near.map_or(range.start, |lead| lead.start)..range.end);
                }
                _ => {}
            }
            continue;
        }
        let statement = open.get_or_insert_with(|| {
            let near = lead.take().filter(|lead| !blank_line(text, lead.end, range.start));
            (first_words, depth, last_word) = (Vec::new(), 0, "");
            Statement { start: near.map_or(range.start, |lead| lead.start), head: range.start, end: range.end }
        });
        statement.end = range.end;
        let word = &text[range.clone()];
        let mut ends = matches!(token, Token::Semicolon if depth == 0) || token == Token::Command;
        if token == Token::Word {
            if first_words.len() < MAX_WORDS {
                first_words.push(word);
            }
            depth = nested(depth, &first_words, last_word, word);
            last_word = word;
            ends = word.eq_ignore_ascii_case("go") && alone(text, &range);
        }
        if !ends {
            continue;
        }
        let is = |word: &&str, what: &str| word.eq_ignore_ascii_case(what);
        let copies = first_words.first().is_some_and(|word| is(word, "copy"));
        if copies && token == Token::Semicolon && first_words.iter().any(|word| is(word, "stdin")) {
            // The data ends at a line of its own.
            lexer.at = lexer.after("\n\\.\n", range.end.saturating_sub(1));
            statement.end = lexer.at;
        }
        out.extend(open.take());
    }
    out.extend(open);
    out
}

/// How many blocks are open after a word; only statements that create code have any.
fn nested(depth: usize, first: &[&str], last: &str, word: &str) -> usize {
    let is = |word: &str, what: &[&str]| what.iter().any(|what| word.eq_ignore_ascii_case(what));
    let creates = first.first().is_some_and(|word| is(word, &["create"]))
        && first.iter().any(|word| is(word, &["function", "procedure", "trigger", "package"]));
    if !creates {
        return 0;
    }
    match depth {
        // `END IF` and its like close what is not counted.
        _ if is(last, &["end"]) && is(word, &["if", "loop", "while", "repeat", "for"]) => depth + 1,
        0 => usize::from(is(word, &["begin"])),
        _ if is(word, &["begin", "case"]) && !is(last, &["end"]) => depth + 1,
        _ if is(word, &["end"]) => depth - 1,
        _ => depth,
    }
}

/// Whether a word is a line of its own.
fn alone(text: &str, range: &Range<usize>) -> bool {
    let first = line_start(text, range.start, 0).is_some();
    first && text[range.end..].split('\n').next().is_some_and(|rest| rest.trim().is_empty())
}

/// What a statement creates: kind and name.
fn created(statement: &str) -> Option<(&'static str, String)> {
    let mut tokens = Lexer { text: statement, at: 0 }.filter(|(token, _)| *token != Token::Comment);
    let word = |range: &Range<usize>| statement[range.clone()].to_ascii_lowercase();
    let (_, first) = tokens.next()?;
    if word(&first) != "create" {
        return None;
    }
    let mut words = tokens.by_ref().take(MAX_WORDS).take_while(|(token, _)| *token != Token::Semicolon);
    let kind = words.find_map(|(_, range)| KINDS.iter().find(|kind| **kind == word(&range)))?;
    let mut name = String::new();
    let mut after_dot = true;
    for (token, range) in tokens.take(MAX_WORDS) {
        let skipped = ["if", "not", "exists", "concurrently"].contains(&word(&range).as_str());
        match token {
            Token::Word if name.is_empty() && skipped => {}
            Token::Word if name.is_empty() && *kind == "index" && word(&range) == "on" => return None,
            Token::Word if after_dot => name.push_str(&statement[range]),
            Token::Quoted if after_dot => name.push_str(statement[range].trim_matches(['"', '`'])),
            Token::Dot if !name.is_empty() => name.push('.'),
            _ => break,
        }
        after_dot = name.is_empty() || token == Token::Dot;
    }
    (!name.is_empty() && name.len() <= MAX_NAME).then_some((*kind, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn symbols(text: &str) -> Vec<(String, String)> {
        let named = |part: Part| Some((part.facts.symbol_kind?, part.facts.symbol?));
        parts(text).into_iter().filter_map(named).collect()
    }

    #[test]
    fn what_is_created() {
        for (text, kind, name) in [
            ("CREATE TABLE IF NOT EXISTS a.b (c int)", "table", "a.b"),
            ("create or replace function \"A b\".f() ...", "function", "A b.f"),
            ("CREATE UNIQUE INDEX CONCURRENTLY i ON t (a);", "index", "i"),
            ("CREATE /* x */ MATERIALIZED VIEW v AS SELECT 1;", "view", "v"),
            ("CREATE CONSTRAINT TRIGGER t AFTER INSERT ON x;", "trigger", "t"),
            ("CREATE POLICY p ON t USING (true);", "policy", "p"),
        ] {
            assert_eq!(symbols(text), [(kind.to_owned(), name.to_owned())], "{text}");
        }
        for text in [
            "CREATE INDEX ON t (a);",
            "SELECT 1;",
            "CREATE",
            "",
            "CREATE TABLE",
            ";;",
            "GRANT CREATE ON SCHEMA x TO y;",
        ] {
            assert_eq!(symbols(text), [], "{text}");
        }
    }

    #[test]
    fn what_ends_a_statement() {
        for (text, ends) in [
            ("a ';' ; b", 2),
            ("a E'\\';' ; b", 2),
            ("a $x$ ; $$ ; $x$ ; b", 2),
            ("a \"x;\" -- ; \n /* ; /* ; */ ; */ ; b", 2),
            ("a $1 ; b", 2),
            ("\\set x 1;\na \\gset\nb", 3),
            ("COPY t FROM stdin;\n1;2\n'\n\\.\nb;", 2),
            ("CREATE FUNCTION f() BEGIN ATOMIC a; CASE x WHEN 1 THEN 2 END; END; b", 2),
            ("CREATE TRIGGER t BEGIN IF a THEN b; END IF; c; END; d", 2),
            ("BEGIN; a; END; b", 4),
            ("a\nGO\nb", 2),
            ("a 'never closed ; b", 1),
            ("a $x$ never closed ; b", 1),
            ("a /* never closed ; b", 1),
            ("a E'\\", 1),
        ] {
            assert_eq!(statements(text).len(), ends, "{text}");
        }
    }
}
