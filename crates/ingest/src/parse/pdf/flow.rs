// SPDX-License-Identifier: PostgreSQL

//! Flow: from lines to the stored text, paragraphs separated by blank lines.
//!
//! A line break is kept where it was meant: the first word of the next line would have fit. Other breaks become a space,
//! or nothing after a hyphen and beside an ideograph. A paragraph goes on in the next column or on the next page
//! only where that is plain: it stopped without an end of a sentence and goes on in small letters of the same size.
//! Owns where each line ends up, so that pages and headings can be found again.

use super::layout::median;
use super::words::Line;
use crate::parse::role::NAVIGATION;
use std::collections::HashSet;
use std::ops::Range;

/// What is known about a line besides its place.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Mark {
    /// The heading it is (a part of).
    pub heading: Option<usize>,
    /// The section that begins here without a heading on the page.
    pub begins: bool,
    /// Role.
    pub role: Option<&'static str>,
}

/// A text made of lines.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Flow {
    /// The text.
    pub text: String,
    /// The bytes of each line of each page.
    pub lines: Vec<Vec<Range<usize>>>,
    /// Where each paragraph begins.
    pub paragraphs: Vec<usize>,
}

/// What stands between two lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Joint {
    Paragraph,
    Break,
    Space,
    Nothing,
    /// Nothing, and the hyphen goes.
    Hyphen,
}

/// Joins the lines of all pages.
pub fn flow(pages: &[Vec<Line>], marks: &[Vec<Mark>]) -> Flow {
    let mut flow = Flow::default();
    let words = Vocabulary::new(pages);
    let mut last: Option<(usize, &Line, Mark)> = None;
    for (page, (lines, marks)) in pages.iter().zip(marks).enumerate() {
        let leading = leadings(lines);
        let mut places = Vec::with_capacity(lines.len());
        for (line, mark) in lines.iter().zip(marks) {
            let joint = match last {
                None => Joint::Paragraph,
                Some((_, _, before)) if apart(before, *mark) => Joint::Paragraph,
                Some((at, before, _)) if at == page && before.column == line.column => {
                    within(before, line, leading[line.column], mark.role.is_some(), &words)
                }
                // Entries of contents or of an index do not go on.
                Some(_) if mark.role == Some(NAVIGATION) => Joint::Paragraph,
                Some((_, before, _)) => across(before, line, &words),
            };
            places.push(flow.push(line, joint));
            last = Some((page, line, *mark));
        }
        flow.lines.push(places);
    }
    if !flow.text.is_empty() {
        flow.text.push('\n');
    }
    flow
}

impl Flow {
    fn push(&mut self, line: &Line, joint: Joint) -> Range<usize> {
        match joint {
            Joint::Paragraph if self.text.is_empty() => {}
            Joint::Paragraph => self.text.push_str("\n\n"),
            Joint::Break => self.text.push('\n'),
            Joint::Space => self.text.push(' '),
            Joint::Nothing => {}
            Joint::Hyphen => {
                self.text.pop();
            }
        }
        let start = self.text.len();
        if joint == Joint::Paragraph {
            self.paragraphs.push(start);
        }
        // A soft hyphen within a line shows nothing.
        let text = line.text.trim();
        let shown = text.strip_suffix('\u{AD}');
        self.text.extend(shown.unwrap_or(text).chars().filter(|c| *c != '\u{AD}'));
        if shown.is_some() {
            self.text.push('\u{AD}');
        }
        start..self.text.len()
    }
}

/// Whether two lines are never of one paragraph.
fn apart(before: Mark, mark: Mark) -> bool {
    before.heading != mark.heading || mark.begins || before.role != mark.role
}

/// What joins two lines of a column.
fn within(before: &Line, line: &Line, leading: f32, listed: bool, words: &Vocabulary) -> Joint {
    let step = line.y - before.y;
    let size = before.size.max(line.size);
    let alike = before.size.min(line.size) > 0.87 * size;
    let indent = line.x0 - line.left;
    let begins = indent > 0.8 * size && indent < 5.0 * size && before.x0 - before.left < 0.4 * size;
    if !alike || step > 1.35 * leading.max(size) || step < 0.3 * size || is_item(&line.text) {
        return Joint::Paragraph;
    }
    // The last cell of a row may go on alone.
    let rows = (before.row, line.row);
    if let Some(joint) = hyphen(before, line, words).filter(|_| rows != (true, true)) {
        return joint;
    }
    if rows != (false, false) {
        return Joint::Break;
    }
    if begins && ends(&before.text) {
        return Joint::Paragraph;
    }
    // What was meant to be a line of its own.
    if listed || before.x1 + 0.3 * size + line.first < before.right - 0.5 * size {
        return Joint::Break;
    }
    plain(before, line)
}

/// What joins the last line of a column with the first one of the next.
fn across(before: &Line, line: &Line, words: &Vocabulary) -> Joint {
    let alike = (before.size - line.size).abs() < 0.05 * before.size.max(line.size);
    if !alike || before.turned != line.turned || is_item(&line.text) {
        return Joint::Paragraph;
    }
    if let Some(joint) = hyphen(before, line, words) {
        return joint;
    }
    let full = before.x1 > before.right - 2.0 * before.size;
    let ideographs = is_ideograph(before.text.chars().next_back()) && is_ideograph(line.text.chars().next());
    let goes_on = line.text.starts_with(char::is_lowercase) || ideographs;
    if goes_on && full && !ends(&before.text) { plain(before, line) } else { Joint::Paragraph }
}

fn plain(before: &Line, line: &Line) -> Joint {
    let glued = is_ideograph(before.text.chars().next_back()) || is_ideograph(line.text.chars().next());
    if glued { Joint::Nothing } else { Joint::Space }
}

/// What joins a line that ends with a hyphen with the one that goes on.
fn hyphen(before: &Line, line: &Line, words: &Vocabulary) -> Option<Joint> {
    let text = before.text.trim_end();
    let cut = text.strip_suffix(['-', '\u{AD}', '‐'])?;
    let head: String = tail(cut);
    if head.is_empty() || !line.text.starts_with(char::is_lowercase) {
        return None;
    }
    let rest: String = line.text.chars().take_while(|c| c.is_alphabetic()).collect();
    let soft = text.ends_with('\u{AD}');
    let own = || words.has(&format!("{head}-{rest}")) || words.beside(&head, &rest);
    let keeps = !soft && !words.has(&format!("{head}{rest}")) && own();
    Some(if keeps { Joint::Nothing } else { Joint::Hyphen })
}

/// The letters at the end of a text.
fn tail(text: &str) -> String {
    let start =
        text.char_indices().rev().take_while(|(_, c)| c.is_alphabetic()).last().map_or(text.len(), |(at, _)| at);
    text[start..].to_owned()
}

/// Words of the document, those with a hyphen too, and pairs of words: what a hyphen at the end of a line is decided by. That
/// both halves are words tells nothing (`hand-brake`); that they stand beside each other elsewhere does (`ten minutes`).
struct Vocabulary {
    words: HashSet<String>,
    /// Pairs that stand beside each other, of those only that a hyphen at the end of a line is between.
    pairs: HashSet<(String, String)>,
}

/// Letters of a half that is more likely a word than a syllable.
const HALF: usize = 3;

impl Vocabulary {
    fn new(pages: &[Vec<Line>]) -> Self {
        let in_word = |c: char| c.is_alphabetic() || c == '-';
        let words = pages.iter().flatten().flat_map(|line| line.text.split(|c| !in_word(c)));
        let words = words.filter(|word| word.len() > 2 && !word.ends_with('-')).map(str::to_lowercase).collect();
        let heads = pages.iter().flatten().filter_map(|line| line.text.trim_end().strip_suffix(['-', '‐']));
        let heads: HashSet<String> = heads.map(|text| tail(text).to_lowercase()).collect();
        let mut pairs = HashSet::new();
        for line in pages.iter().flatten() {
            for (a, b) in line.text.split(' ').zip(line.text.split(' ').skip(1)) {
                let a = a.to_lowercase();
                if heads.contains(&a) {
                    pairs.insert((
                        a,
                        b.chars().take_while(|c| c.is_alphabetic()).flat_map(char::to_lowercase).collect(),
                    ));
                }
            }
        }
        Self { words, pairs }
    }

    fn has(&self, word: &str) -> bool {
        self.words.contains(&word.to_lowercase())
    }

    /// Whether two words stand beside each other, the second one perhaps in the plural.
    fn beside(&self, a: &str, b: &str) -> bool {
        let pair = |b: &str| self.pairs.contains(&(a.to_lowercase(), b.to_lowercase()));
        a.chars().count() >= HALF && b.chars().count() >= HALF && (pair(b) || pair(&format!("{b}s")))
    }
}

/// The usual distance of lines in each column; where there are too few to tell, that of most books.
fn leadings(lines: &[Line]) -> Vec<f32> {
    let columns = lines.iter().map(|line| line.column + 1).max().unwrap_or(0);
    let mut steps: Vec<Vec<f32>> = vec![Vec::new(); columns];
    for pair in lines.windows(2).filter(|pair| pair[0].column == pair[1].column) {
        let step = pair[1].y - pair[0].y;
        if step > 0.5 * pair[1].size && step < 2.5 * pair[1].size {
            steps[pair[0].column].push(step);
        }
    }
    let usual = 1.2 * median(lines.iter().map(|line| line.size));
    steps.into_iter().map(|steps| if steps.len() < 3 { usual } else { median(steps.into_iter()) }).collect()
}

/// Whether a line begins an item of a list.
fn is_item(text: &str) -> bool {
    let mut chars = text.chars();
    match chars.next() {
        Some('•' | '◦' | '▪' | '‣' | '●' | '○' | '■' | '□' | '✓' | '∗') => true,
        Some('–' | '-' | '*') => chars.next() == Some(' '),
        Some('[') => chars.take_while(|c| *c != ' ').last() == Some(']'),
        _ => false,
    }
}

fn ends(text: &str) -> bool {
    let text = text.trim_end_matches(['"', '”', '’', '»', ')', ']', '」', '』', '）']);
    text.ends_with(['.', '!', '?', ':', ';', '…', '。', '！', '？', '：', '；'])
}

/// Whether a character is written without spaces between words.
fn is_ideograph(c: Option<char>) -> bool {
    matches!(
        c,
        Some(
            '\u{2E80}'..='\u{30FF}'
            | '\u{31C0}'..='\u{9FFF}'
            | '\u{F900}'..='\u{FAFF}'
            | '\u{FF00}'..='\u{FFEF}'
            | '\u{20000}'..='\u{3FFFF}',
        )
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: &str, x0: f32, x1: f32, y: f32) -> Line {
        let first = 5.0 * text.split(' ').next().map_or(0, str::len) as f32;
        Line { text: text.to_owned(), x0, x1, y, size: 10.0, first, left: 0.0, right: 200.0, ..Line::default() }
    }

    fn text(pages: Vec<Vec<Line>>) -> String {
        let marks: Vec<Vec<Mark>> = pages.iter().map(|lines| vec![Mark::default(); lines.len()]).collect();
        flow(&pages, &marks).text
    }

    #[test]
    fn lines_become_paragraphs() {
        let page = vec![
            line("A sentence that goes", 0.0, 199.0, 10.0),
            line("on and ends.", 0.0, 80.0, 22.0),
            line("Indented, the next", 15.0, 198.0, 34.0),
            line("ends.", 0.0, 30.0, 46.0),
            line("After a gap.", 0.0, 70.0, 80.0),
            line("• item", 0.0, 70.0, 92.0),
        ];
        assert_eq!(
            text(vec![page]),
            "A sentence that goes on and ends.\n\nIndented, the next ends.\n\nAfter a gap.\n\n• item\n"
        );
    }

    #[test]
    fn a_break_before_a_word_that_would_have_fit_was_meant() {
        let page = vec![
            line("roses are red", 0.0, 60.0, 10.0),
            line("violets are blue", 0.0, 70.0, 22.0),
            line("x", 0.0, 200.0, 34.0),
        ];
        assert_eq!(text(vec![page]), "roses are red\nviolets are blue\nx\n");
    }

    #[test]
    fn rows_of_a_table_are_lines() {
        let row = |line: Line| Line { row: true, ..line };
        let page = vec![
            row(line("x maps to the right mar-", 0.0, 200.0, 10.0)),
            line("gin of it", 100.0, 150.0, 22.0),
            row(line("y is a row of full-", 0.0, 200.0, 34.0)),
            row(line("z is one", 0.0, 200.0, 46.0)),
        ];
        assert_eq!(text(vec![page]), "x maps to the right margin of it\ny is a row of full-\nz is one\n");
    }

    #[test]
    fn hyphens_of_a_break_go_and_those_of_a_word_stay() {
        let page = vec![
            line("the well-known and the infor-", 0.0, 200.0, 10.0),
            line("mation of well-", 0.0, 199.0, 22.0),
            line("known soft\u{AD}", 0.0, 199.0, 34.0),
            line("ware", 0.0, 30.0, 46.0),
        ];
        assert_eq!(text(vec![page]), "the well-known and the information of well-known software\n");
    }

    #[test]
    fn a_hyphen_stays_between_words_that_stand_beside_each_other_elsewhere() {
        let joined = |elsewhere: &str, head: &str, rest: &str| {
            text(vec![vec![
                line(elsewhere, 0.0, 199.0, 10.0),
                line(head, 0.0, 199.0, 22.0),
                line(rest, 0.0, 199.0, 34.0),
            ]])
        };
        assert_eq!(
            joined("Within ten minutes it is known, and", "winds are ten-", "minute means"),
            "Within ten minutes it is known, and winds are ten-minute means\n"
        );
        // Halves that are words are not enough, nor a pair of which one is a syllable, nor what punctuation parts.
        for (elsewhere, head, rest, word) in [
            ("out of hand, a brake and", "the hand-", "brake is on", "handbrake"),
            ("so to day and night", "they go to-", "day", "today"),
            ("the under, graduate of", "an under-", "graduate", "undergraduate"),
            ("without any body; anybody and", "here is any-", "body", "anybody"),
        ] {
            let text = joined(elsewhere, head, rest);
            assert!(text.trim_end().split(' ').rev().take(3).any(|last| last == word), "{text}");
        }
    }

    #[test]
    fn a_paragraph_goes_on_on_the_next_page_where_that_is_plain() {
        let pages = |second: &str| vec![vec![line("It goes", 0.0, 195.0, 700.0)], vec![line(second, 0.0, 90.0, 50.0)]];
        assert_eq!(text(pages("on here.")), "It goes on here.\n");
        assert_eq!(text(pages("Not here.")), "It goes\n\nNot here.\n");
    }

    #[test]
    fn ideographs_are_joined_without_a_space() {
        let page = vec![line("甲方中国", 0.0, 199.0, 10.0), line("饮料公司", 0.0, 199.0, 22.0)];
        assert_eq!(text(vec![page]), "甲方中国饮料公司\n");
    }
}
