// SPDX-License-Identifier: PostgreSQL

//! Roles: pages that are about the document and not part of what it says.
//!
//! Contents and index help to find a page (`navigation`), a page of rights is about the document (`metadata`), a glossary is
//! there to look things up (`reference`). They are recognised by their titles and by what lines look like: one of both is not
//! enough for contents and index, unless the lines have dots up to their numbers. Judged line by line, because a
//! table of contents often begins below the title of the paper and ends above its first section.
//!
//! Terms look like nothing, so a glossary goes on over pages until something else begins: the next section of the outline at
//! its level or above it, contents or an index, or a line as large as its title. Where it has neither a section nor a title that
//! is larger than the text, nothing would show its end, and it is the page that it begins on.

use super::furniture::is_roman;
use super::layout::median;
use super::outline::Section;
use super::words::Line;
use crate::parse::role::{METADATA, NAVIGATION, REFERENCE};

const CONTENTS: &[&str] = &[
    "contents",
    "table of contents",
    "list of figures",
    "list of tables",
    "inhalt",
    "inhaltsverzeichnis",
    "abbildungsverzeichnis",
    "tabellenverzeichnis",
    "sommaire",
    "table des matières",
    "índice",
    "indice",
    "contenido",
    "sumário",
    "inhoud",
    "目次",
    "目录",
    "目錄",
    "차례",
    "содержание",
    "оглавление",
];
const INDEX: &[&str] =
    &["index", "subject index", "stichwortverzeichnis", "sachregister", "register", "索引", "índice alfabético"];
const GLOSSARY: &[&str] =
    &["glossary", "glossar", "glossaire", "glosario", "glossario", "用語集", "术语表", "list of abbreviations"];

/// Lines without a number that an entry may run over.
const GAP: usize = 4;

/// Entries that make contents or an index, and lines with dots that do so without a title.
const ENTRIES: usize = 3;

/// Pages at the beginning and at the end among which one of rights is looked for, and words that it has at most.
const RIGHTS_PAGES: usize = 6;
const RIGHTS_WORDS: usize = 500;

/// The role of each line of each page, beneath the sections of the outline.
pub fn mark(pages: &[Vec<Line>], sections: &[Section]) -> Vec<Vec<Option<&'static str>>> {
    let mut roles: Vec<Vec<Option<&'static str>>> = pages.iter().map(|lines| vec![None; lines.len()]).collect();
    let all: Vec<(usize, usize)> =
        pages.iter().enumerate().flat_map(|(page, lines)| (0..lines.len()).map(move |line| (page, line))).collect();
    let text = |at: usize| pages[all[at].0][all[at].1].text.trim();
    let mut set = |from: usize, to: usize, role| all[from..to].iter().for_each(|(p, l)| roles[*p][*l] = Some(role));
    let mut at = 0;
    while at < all.len() {
        let (from, end) = navigation(at, &all, &text);
        if end > from {
            set(at, end, NAVIGATION);
            at = end;
            continue;
        }
        if GLOSSARY.contains(&title(text(at)).as_str()) {
            let end = glossary(at, &all, pages, sections, &text);
            set(at, end, REFERENCE);
            at = end;
            continue;
        }
        at += 1;
    }
    for (page, lines) in pages.iter().enumerate() {
        let edge = page < RIGHTS_PAGES || page + 2 > pages.len();
        // A paper says on its first page who may copy it, and much else.
        if edge && pages.len() > 2 && is_rights(lines) {
            roles[page].iter_mut().for_each(|role| *role = role.or(Some(METADATA)));
        }
    }
    roles
}

/// Where the entries of contents or of an index begin whose first line this is, and where they end; nowhere if it is none.
fn navigation<'t>(at: usize, all: &[(usize, usize)], text: &impl Fn(usize) -> &'t str) -> (usize, usize) {
    let title = title(text(at));
    let is = |names: &[&str]| names.contains(&title.as_str());
    if is(CONTENTS) {
        (at + 1, entries(at + 1, all, |at| is_entry(text(at))))
    } else if is(INDEX) {
        (at + 1, entries(at + 1, all, |at| is_term(text(at))))
    } else if has_dots(text(at)) {
        (at, entries(at, all, |at| has_dots(text(at))))
    } else {
        (at, at)
    }
}

/// The end of the glossary whose title this is.
fn glossary<'t>(
    at: usize,
    all: &[(usize, usize)],
    pages: &[Vec<Line>],
    sections: &[Section],
    text: &impl Fn(usize) -> &'t str,
) -> usize {
    let own = sections.iter().position(|section| {
        let lines = section.line..section.line + section.lines.max(1);
        section.page == all[at].0 && lines.contains(&all[at].1) && title(&section.title) == title(text(at))
    });
    let next = own.and_then(|own| sections[own + 1..].iter().find(|section| section.level <= sections[own].level));
    let next = next.map_or((pages.len(), 0), |section| (section.page, section.line));
    let size = |at: usize| pages[all[at].0][all[at].1].size;
    let large = size(at) > 1.1 * median(pages.iter().flatten().map(|line| line.size));
    let ends = |line: usize| {
        let other_page = all[line].0 > all[at].0;
        let (from, end) = navigation(line, all, text);
        let heading = large && own.is_none() && size(line) > 0.97 * size(at);
        all[line] >= next || (own.is_none() && !large && other_page) || heading || end > from
    };
    (at + 1..all.len()).find(|line| ends(*line)).unwrap_or(all.len())
}

/// The end of a run of entries; where it begins if there are too few. It goes on on another page only if that begins with
/// entries.
fn entries(from: usize, lines: &[(usize, usize)], is_entry: impl Fn(usize) -> bool) -> usize {
    let (mut end, mut count, mut gap) = (from, 0, GAP);
    for (at, (_, line)) in lines.iter().enumerate().skip(from) {
        if *line == 0 && at > from {
            gap = (at + 1).saturating_sub(end).min(GAP);
        }
        if is_entry(at) {
            (end, count, gap) = (at + 1, count + 1, GAP);
        } else if at >= end + gap {
            break;
        }
    }
    if count >= ENTRIES { end } else { from }
}

/// A title without its number, in lower case.
fn title(text: &str) -> String {
    let letters = |c: char| !c.is_alphabetic();
    let text = text.trim_matches(letters);
    if text.len() > 60 { String::new() } else { text.to_lowercase() }
}

/// Whether a line ends with the number of a page.
fn is_entry(text: &str) -> bool {
    let Some((before, last)) = text.rsplit_once([' ', '.']) else {
        return false;
    };
    is_page(last) && before.chars().any(char::is_alphabetic)
}

/// Whether a line ends with numbers of pages after a comma, or is the letter above terms.
fn is_term(text: &str) -> bool {
    let letter = text.chars().count() == 1 && text.chars().all(char::is_alphabetic);
    let last = text.trim_end_matches(',').rsplit([' ', ',', '–', '-']).next().unwrap_or_default();
    letter || (is_page(last) && text.contains([',', ' ']))
}

/// Whether dots lead to the number of a page.
fn has_dots(text: &str) -> bool {
    if !is_entry(text) {
        return false;
    }
    let dots = text.trim_end_matches(|c: char| c.is_alphanumeric() || c == ' ');
    let run = dots.chars().rev().take_while(|c| matches!(c, '.' | ' ' | '…' | '·' | '․')).filter(|c| *c != ' ');
    run.map(|c| if c == '…' { 3 } else { 1 }).sum::<usize>() >= 4
}

/// Whether a word may be the number of a page.
pub fn is_page(word: &str) -> bool {
    (1..=4).contains(&word.len()) && word.bytes().all(|b| b.is_ascii_digit()) || is_roman(word)
}

fn is_rights(lines: &[Line]) -> bool {
    let text = lines.iter().map(|line| line.text.to_lowercase()).collect::<Vec<_>>().join(" ");
    let signs = [
        "©",
        "copyright",
        "all rights reserved",
        "alle rechte vorbehalten",
        "isbn",
        "creative commons",
        "impressum",
        "published by",
    ];
    text.split_whitespace().count() <= RIGHTS_WORDS && signs.iter().filter(|sign| text.contains(**sign)).count() >= 2
}

#[cfg(test)]
mod tests {
    use super::*;

    fn roles(pages: &[&[&str]]) -> Vec<Vec<Option<&'static str>>> {
        let line = |text: &&str| Line { text: (*text).to_owned(), ..Line::default() };
        mark(&pages.iter().map(|lines| lines.iter().map(line).collect()).collect::<Vec<_>>(), &[])
    }

    #[test]
    fn contents_are_what_has_the_title_and_the_numbers() {
        let n = Some(NAVIGATION);
        let said =
            roles(&[&["A paper", "Contents", "1 One 1", "2 Two and a line", "more 3", "3 Three . . . . 4", "Text."]]);
        assert_eq!(said, [vec![None, n, n, n, n, n, None]]);
        assert_eq!(roles(&[&["Contents", "of this box are fragile."]]), [vec![None, None]]);
        let dots = ["One . . . . . 1", "Two ..... 2", "Three …… iv"];
        assert_eq!(roles(&[&dots]), [vec![n; 3]]);
        let pages = roles(&[&["Contents", "A 1", "B 2", "C 3"], &["D 4", "E 5"], &["A", "We begin.", "Definition 1"]]);
        assert_eq!(pages, [vec![n; 4], vec![n; 2], vec![None; 3]]);
        assert_eq!(roles(&[&["In 1999", "he had 3", "and she 4"]]), [vec![None; 3]]);
    }

    #[test]
    fn an_index_a_glossary_and_rights() {
        let said = roles(&[
            &["© 2020 Someone", "ISBN 0"],
            &["Text"],
            &["Glossary", "term: word"],
            &["Index", "A", "apple, 3, 5–7", "axis, 9"],
        ]);
        assert_eq!(said[0], [Some(METADATA); 2]);
        assert_eq!(said[1], [None]);
        assert_eq!(said[2], [Some(REFERENCE); 2]);
        assert_eq!(said[3], [Some(NAVIGATION); 4]);
    }

    #[test]
    fn a_glossary_goes_on_until_something_else_begins() {
        let line = |text: &str, size: f32| Line { text: text.to_owned(), size, ..Line::default() };
        let pages = |title: f32| {
            vec![
                vec![line("Glossary", title), line("Bank. Sand.", 10.0)],
                vec![line("C", 12.0), line("Cut. A channel.", 10.0)],
                vec![line("Index", 10.0), line("The list at the end.", 10.0)],
                vec![line("Ebb. Water.", 10.0), line("Sources", title), line("A book.", 10.0)],
            ]
        };
        let counts = |pages: &[Vec<Line>], sections: &[Section]| {
            let roles = mark(pages, sections);
            roles.iter().map(|page| page.iter().filter(|role| **role == Some(REFERENCE)).count()).collect::<Vec<_>>()
        };
        let section = |title: &str, level, page, line| Section { level, title: title.to_owned(), page, line, lines: 1 };
        let sections = [section("Glossary", 2, 0, 0), section("C", 3, 1, 0), section("Sources", 2, 3, 1)];
        assert_eq!(counts(&pages(10.0), &sections), [2, 2, 2, 1]);
        assert_eq!(counts(&pages(16.0), &sections), [2, 2, 2, 1]);
        // Without an outline the size of the title tells; without both nothing does.
        assert_eq!(counts(&pages(16.0), &[]), [2, 2, 2, 1]);
        assert_eq!(counts(&pages(10.0), &[]), [2, 0, 0, 0]);
        let mut indexed = pages(16.0);
        indexed[2] = ["Index", "A", "axis, 9", "B", "bank, 3"].map(|text| line(text, 10.0)).to_vec();
        assert_eq!(counts(&indexed, &sections), [2, 2, 0, 0]);
    }
}
