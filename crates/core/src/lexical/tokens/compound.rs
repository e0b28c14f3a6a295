// SPDX-License-Identifier: PostgreSQL

//! Compounds: identifiers, paths, versions and names that are more than a word, and what they are made of.
//!
//! Owns where a compound begins, ends and splits. Slices only; nothing is folded or copied here.

use super::{HASH_DIGITS, MAX_WORDS};
use unicode_normalization::char::is_combining_mark;

/// A compound or a part of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Node<'a> {
    /// Letters and digits, or a plain number: read by the configuration.
    Word(&'a str),
    /// Anything else: a term as it is written.
    Verbatim(&'a str),
}

/// What a compound is split at, the widest first; words come after all of these.
const LEVELS: [&[&str]; 4] = [&["://", "::", "/", "\\"], &["."], &["-"], &["_"]];

/// What ends a name without splitting it: C++, C#.
const SUFFIXES: [&str; 2] = ["++", "#"];

/// Han, Kana and Hangul, which are written without spaces or, in Korean, with endings joined to the word.
pub(in crate::lexical) fn is_cjk(c: char) -> bool {
    matches!(c,
        '\u{1100}'..='\u{11ff}' | '\u{3005}'..='\u{3007}' | '\u{3041}'..='\u{3096}' | '\u{309d}'..='\u{309f}'
        | '\u{30a1}'..='\u{30fa}' | '\u{30fc}'..='\u{30ff}' | '\u{31f0}'..='\u{31ff}' | '\u{3400}'..='\u{4dbf}'
        | '\u{4e00}'..='\u{9fff}' | '\u{a960}'..='\u{a97f}' | '\u{ac00}'..='\u{d7ff}' | '\u{f900}'..='\u{faff}'
        | '\u{20000}'..='\u{3ffff}')
}

/// What words consist of.
pub(in crate::lexical) fn is_word(c: char) -> bool {
    c == '_' || c.is_alphanumeric() || is_combining_mark(c)
}

/// The compounds of a text, in their order. A plain word is none.
pub fn scan(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        loop {
            let start = rest.find(is_word)?;
            let end = start + length(&rest[start..]);
            let found = trim(&rest[start..end]);
            rest = &rest[end..];
            if !is_plain(found) {
                return Some(found);
            }
        }
    })
}

/// How long what begins with a word character goes on: words, joined by single separators.
fn length(text: &str) -> usize {
    let word = |at: usize| text[at..].find(|c| !is_word(c)).map_or(text.len(), |step| at + step);
    let mut end = word(0);
    loop {
        let separator = LEVELS.iter().copied().flatten().find(|s| text[end..].starts_with(**s)).map_or(0, |s| s.len());
        let next = word(end + separator);
        if separator == 0 || next == end + separator {
            break;
        }
        end = next;
    }
    // The year of a standard is no part of the name: C++20.
    let is_year = |rest: &str| text[end..].starts_with("++") && rest.starts_with(|c: char| c.is_ascii_digit());
    let ends = |rest: &str| is_year(rest) || !rest.starts_with(is_word);
    let suffix = SUFFIXES.iter().find(|s| text[end..].strip_prefix(**s).is_some_and(ends));
    end + suffix.map_or(0, |s| s.len())
}

/// Without underscores around it, which are more often emphasis than part of the name; `__init__` keeps them.
fn trim(text: &str) -> &str {
    let inner = text.trim_matches('_');
    if text.starts_with("__") && text.ends_with("__") && !inner.is_empty() { text } else { inner }
}

/// Whether the configuration sees it as we do: no separator, no change of case or script inside, no digit.
fn is_plain(text: &str) -> bool {
    is_number(text) || (is_alphanumeric(text) && !text.contains(is_cjk) && words(text).len() < 2)
}

fn is_alphanumeric(text: &str) -> bool {
    text.chars().all(|c| c != '_' && is_word(c))
}

/// Digits with a decimal point.
fn is_number(text: &str) -> bool {
    text.split_once('.').is_some_and(|(whole, part)| is_digits(whole) && is_digits(part))
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

/// A compound, its parts and theirs.
pub fn nodes(compound: &str) -> Vec<Node<'_>> {
    let mut out = Vec::new();
    add(compound, 0, &mut out);
    out
}

/// Adds `text` and what it splits into from `level` on.
fn add<'a>(text: &'a str, level: usize, out: &mut Vec<Node<'a>>) {
    if text.is_empty() {
        return;
    }
    if is_alphanumeric(text) || is_number(text) {
        out.push(Node::Word(text));
    } else {
        out.push(Node::Verbatim(text));
    }
    split(text, level, out);
}

fn split<'a>(text: &'a str, level: usize, out: &mut Vec<Node<'a>>) {
    if is_number(text) {
        return;
    }
    let Some(separators) = LEVELS.get(level) else { return split_words(text, out) };
    if level == 1 {
        out.extend(version(text));
    }
    let mut parts = Vec::new();
    // The place is looked for before the separator: one that never comes would be looked for to the end each time.
    let starts = |at: &usize| separators.iter().any(|s| stands_at(text, *at, s));
    let mut from = 0;
    while let Some(at) = (from..text.len()).find(starts) {
        let separator = separators.iter().find(|s| stands_at(text, at, s)).map_or(1, |s| s.len());
        parts.push(&text[from..at]);
        from = at + separator;
    }
    parts.push(&text[from..]);
    for part in parts {
        // Underscores are split at the last level, where each part is what stands between them.
        let part = if level + 1 < LEVELS.len() { trim(part) } else { part };
        if part == text { split(text, level + 1, out) } else { add(part, level + 1, out) }
    }
}

/// Whether a separator, which is ASCII, stands at a byte of a text.
fn stands_at(text: &str, at: usize, separator: &str) -> bool {
    text.as_bytes()[at..].starts_with(separator.as_bytes())
}

/// The number of a version: `0.8.6` in `v0.8.6`.
fn version(text: &str) -> Option<Node<'_>> {
    let number = text.trim_start_matches(|c: char| c.is_ascii_alphabetic());
    let letters = text.len() - number.len();
    let is_version = number.contains('.') && number.split('.').all(is_digits) && (1..=7).contains(&letters);
    is_version.then_some(if is_number(number) { Node::Word(number) } else { Node::Verbatim(number) })
}

/// The words of letters and digits, perhaps with a suffix.
fn split_words<'a>(text: &'a str, out: &mut Vec<Node<'a>>) {
    if let Some(name) = SUFFIXES.iter().find_map(|s| text.strip_suffix(s)).filter(|name| !name.is_empty()) {
        return add(name, LEVELS.len(), out);
    }
    let runs = runs(text, |a, b| is_cjk(a) != is_cjk(b) && !is_combining_mark(b));
    for run in &runs {
        if run.starts_with(is_cjk) {
            grams(run, out);
            continue;
        }
        if runs.len() > 1 {
            out.push(Node::Word(run));
        }
        let words = words(run);
        if words.len() > 1 {
            out.extend(words.into_iter().map(Node::Word));
        }
    }
}

/// Single characters and pairs, each with its marks.
fn grams<'a>(run: &'a str, out: &mut Vec<Node<'a>>) {
    let starts = run.char_indices().filter(|(_, c)| !is_combining_mark(*c)).map(|(at, _)| at);
    let ends: Vec<usize> = starts.skip(1).chain([run.len()]).collect();
    let mut before = None;
    let mut start = 0;
    for end in ends {
        out.push(Node::Verbatim(&run[start..end]));
        out.extend(before.map(|before: usize| Node::Verbatim(&run[before..end])));
        before = Some(start);
        start = end;
    }
}

/// The words of `camelCase`, `HTTPServer` and `sha256sum`; the whole when it has none or is a hash.
fn words(text: &str) -> Vec<&str> {
    let is_hash = text.len() >= HASH_DIGITS
        && text.bytes().all(|b| b.is_ascii_hexdigit())
        && text.bytes().any(|b| b.is_ascii_digit())
        && text.bytes().any(|b| b.is_ascii_alphabetic());
    if is_hash {
        return vec![text];
    }
    let words = runs(text, |a, b| {
        let marked = is_combining_mark(b) || is_combining_mark(a);
        !marked && (a.is_numeric() != b.is_numeric() || (a.is_lowercase() && b.is_uppercase()))
    });
    let words: Vec<&str> = words.into_iter().flat_map(acronym).flatten().collect();
    if words.len() > MAX_WORDS { vec![text] } else { words }
}

/// Parts an acronym from the word behind it: HTTP|Server; but not a plural: URLs.
fn acronym(word: &str) -> [Option<&str>; 2] {
    let upper = word.char_indices().take_while(|(_, c)| c.is_uppercase()).map(|(at, _)| at).collect::<Vec<_>>();
    let tail = upper.last().map_or("", |last| &word[*last..]);
    let lower = tail.chars().nth(1).is_some_and(char::is_lowercase);
    match upper.last() {
        Some(last) if upper.len() > 1 && lower && &word[upper_end(word, *last)..] != "s" => {
            [Some(&word[..*last]), Some(&word[*last..])]
        }
        _ => [Some(word), None],
    }
}

/// Where the character at `at` ends.
fn upper_end(word: &str, at: usize) -> usize {
    at + word[at..].chars().next().map_or(0, char::len_utf8)
}

/// Cuts where two neighbours part.
fn runs(text: &str, parts: impl Fn(char, char) -> bool) -> Vec<&str> {
    let mut out = Vec::new();
    let mut start = 0;
    let mut last = None;
    for (at, c) in text.char_indices() {
        if last.is_some_and(|last| parts(last, c)) {
            out.push(&text[start..at]);
            start = at;
        }
        last = Some(c);
    }
    if start < text.len() {
        out.push(&text[start..]);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compounds of a text, each with its nodes as text.
    fn read(text: &str) -> Vec<(&str, Vec<&str>)> {
        let text_of = |node| match node {
            Node::Word(text) | Node::Verbatim(text) => text,
        };
        scan(text).map(|compound| (compound, nodes(compound).into_iter().skip(1).map(text_of).collect())).collect()
    }

    #[test]
    fn compounds_split_as_they_are_named() {
        for (compound, parts) in [
            ("HybridRetriever", &["Hybrid", "Retriever"][..]),
            ("HTTPServer", &["HTTP", "Server"]),
            ("rrf_k", &["rrf", "k"]),
            ("std::io::Read", &["std", "io", "Read"]),
            ("v0.8.6", &["0.8.6", "v0", "v", "0", "8", "6"]),
            ("ERR_CONN_RESET", &["ERR", "CONN", "RESET"]),
            ("C++", &["C"]),
            ("C#", &["C"]),
            ("CVE-2024-1234", &["CVE", "2024", "1234"]),
            ("src/store/sync.rs", &["src", "store", "sync.rs", "sync", "rs"]),
            ("foo.bar.baz", &["foo", "bar", "baz"]),
            ("UTF-8", &["UTF", "8"]),
            ("x86_64", &["x86", "x", "86", "64"]),
            ("node_modules", &["node", "modules"]),
            ("__init__", &["init"]),
            ("a/HybridRetriever.py", &["a", "HybridRetriever.py", "HybridRetriever", "Hybrid", "Retriever", "py"]),
            ("漢字テスト", &["漢", "字", "漢字", "テ", "字テ", "ス", "テス", "ト", "スト"]),
            ("HTML解析", &["HTML", "解", "析", "解析"]),
        ] {
            assert_eq!(read(compound), [(compound, parts.to_vec())]);
        }
    }

    #[test]
    fn a_compound_ends_where_the_sentence_goes_on() {
        assert_eq!(
            read("Call foo.bar.baz(), then C++. Or C#? For C++20 see issue#12.")
                .iter()
                .map(|c| c.0)
                .collect::<Vec<_>>(),
            ["foo.bar.baz", "C++", "C#", "C++"]
        );
        assert_eq!(
            read("see https://a.example/x_y.").iter().map(|c| c.0).collect::<Vec<_>>(),
            ["https://a.example/x_y"]
        );
    }

    #[test]
    fn plain_words_are_left_to_the_configuration() {
        assert!(read("The HTTP URLs of NASA, naïve _words_: 3.14 or 42; Über-").is_empty());
        assert!(read("\u{1f600} \u{1f469}\u{200d}\u{1f4bb} ___ -- :: ...").is_empty());
    }

    #[test]
    fn hashes_stay_whole() {
        assert!(read("deadbeef01 da39a3ee5e6b4b0d3255bfef95601890afd80709").is_empty());
        assert_eq!(read("sha256sum"), [("sha256sum", vec!["sha", "256", "sum"])]);
    }
}
