// SPDX-License-Identifier: PostgreSQL

//! Furniture: running headers, footers and page numbers, which are part of the page and not of what it says.
//!
//! A line at the edge of the page is furniture when the same line, numbers left out, stands there on several pages, or
//! when its number follows the number of the page. Three pages must agree, because two lines are alike by chance.

use super::words::Line;
use std::collections::HashMap;

/// Lines at each edge that are looked at.
const LINES: usize = 2;

/// The part of the page's height that is its edge.
const EDGE: f32 = 0.15;

/// Pages that must agree.
const PAGES: usize = 3;

/// Characters of a line that can be furniture.
const MAX_LENGTH: usize = 200;

/// A line at an edge.
struct Candidate {
    page: usize,
    line: usize,
    bottom: bool,
    y: f32,
    form: String,
    /// The number at its end or its beginning, less that of the page.
    ahead: Vec<i64>,
}

/// Takes furniture off pages of the given heights.
pub fn remove(pages: &mut [Vec<Line>], heights: &[f32]) {
    let candidates = candidates(pages, heights);
    let mut forms: HashMap<(bool, &str), Vec<f32>> = HashMap::new();
    let mut numbers: HashMap<(bool, i64), usize> = HashMap::new();
    for candidate in &candidates {
        forms.entry((candidate.bottom, &candidate.form)).or_default().push(candidate.y);
        for ahead in &candidate.ahead {
            *numbers.entry((candidate.bottom, *ahead)).or_default() += 1;
        }
    }
    let mut gone: Vec<(usize, usize)> = candidates
        .iter()
        .filter(|c| {
            let alike = forms.get(&(c.bottom, c.form.as_str()));
            let there = alike.map_or(0, |at| at.iter().filter(|y| (**y - c.y).abs() < 6.0).take(PAGES).count());
            let numbered = |ahead: &i64| numbers.get(&(c.bottom, *ahead)).is_some_and(|pages| *pages >= PAGES);
            there >= PAGES || c.ahead.iter().any(numbered)
        })
        .map(|c| (c.page, c.line))
        .collect();
    gone.sort_unstable();
    gone.dedup();
    for (page, line) in gone.into_iter().rev() {
        pages[page].remove(line);
    }
}

fn candidates(pages: &[Vec<Line>], heights: &[f32]) -> Vec<Candidate> {
    let mut candidates = Vec::new();
    for (page, (lines, height)) in pages.iter().zip(heights).enumerate() {
        let mut order: Vec<usize> = (0..lines.len()).filter(|line| !lines[*line].turned).collect();
        order.sort_by(|a, b| lines[*a].y.total_cmp(&lines[*b].y));
        let top = order.iter().take(LINES).filter(|line| lines[**line].y < EDGE * height).map(|line| (*line, false));
        let bottom = order.iter().rev().take(LINES);
        let bottom = bottom.filter(|line| lines[**line].y > (1.0 - EDGE) * height).map(|line| (*line, true));
        for (line, bottom) in top.chain(bottom) {
            let Line { text, y, .. } = &lines[line];
            if text.len() <= MAX_LENGTH {
                candidates.push(Candidate { page, line, bottom, y: *y, form: form(text), ahead: ahead(text, page) });
            }
        }
    }
    candidates
}

/// A line with its numbers left out. A line that is nothing but a Roman number is one.
fn form(text: &str) -> String {
    if is_roman(text.trim()) {
        return "#".to_owned();
    }
    let mut form = String::with_capacity(text.len());
    for c in text.chars().filter(|c| !c.is_whitespace()) {
        if !c.is_numeric() {
            form.extend(c.to_lowercase());
        } else if !form.ends_with('#') {
            form.push('#');
        }
    }
    form
}

fn ahead(text: &str, page: usize) -> Vec<i64> {
    let number = |word: &str| word.parse::<u16>().ok().map(|n| i64::from(n) - page as i64);
    let mut words = text.split_whitespace();
    [words.next(), words.next_back()].into_iter().flatten().filter_map(number).collect()
}

/// Whether a text is a small Roman number of a page.
pub fn is_roman(text: &str) -> bool {
    (1..=8).contains(&text.len())
        && (text.bytes().all(|b| b"ivxlc".contains(&b)) || text.bytes().all(|b| b"IVXLC".contains(&b)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_numbers_and_footers_go_and_text_stays() {
        let line = |text: String, y: f32| Line { text, y, ..Line::default() };
        let mut pages: Vec<Vec<Line>> = (0..4)
            .map(|n| {
                vec![
                    line(format!("{} Part {}", n + 7, ["a", "b", "c", "d"][n]), 40.0),
                    line(format!("First words of page {}", ["x", "y", "z", "w"][n]), 70.0),
                    line("Body".to_owned(), 400.0),
                    line("Draft, do not cite".to_owned(), 780.0),
                ]
            })
            .collect();
        remove(&mut pages, &[800.0; 4]);
        assert!(pages.iter().all(|page| page.len() == 2 && page[1].text == "Body"), "{pages:?}");
    }

    #[test]
    fn two_pages_prove_nothing() {
        let mut pages = vec![vec![Line { text: "Same".to_owned(), y: 10.0, ..Line::default() }]; 2];
        remove(&mut pages, &[800.0; 2]);
        assert_eq!(pages[1].len(), 1);
    }
}
