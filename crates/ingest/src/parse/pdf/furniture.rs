// SPDX-License-Identifier: PostgreSQL

//! Furniture: running headers, footers and page numbers, which are part of the page and not of what it says.
//!
//! A line at the edge of the page is furniture when the same line, numbers left out, stands there on several pages, or
//! when its number follows the number of the page, in Arabic or in Roman numbers. Three pages must agree, because two lines
//! are alike by chance, and in the height, because chapters and terms of an index have numbers, too. Titles of the outline are
//! alike there, whatever they say, on pages that they do not begin on.
//!
//! What was found so tells the places of furniture: how far from the edge it is on left or on right pages, and its size. A
//! line alone at such a place is furniture whatever it says, because a short chapter has its title above one or two
//! pages. It is left where it may be text: larger than the text or as near to it as lines of text are, the only title of a
//! section on its page, a sentence of the text's size, or at a place where lines of text are found on other pages.

use super::layout::median;
use super::outline::{Entry, letters};
use super::words::Line;
use std::collections::{HashMap, HashSet};

/// Lines at each edge that are looked at.
const LINES: usize = 2;

/// The part of the page's height that is its edge.
const EDGE: f32 = 0.15;

/// Pages that must agree.
const PAGES: usize = 3;

/// Characters of a line that can be furniture.
const MAX_LENGTH: usize = 200;

/// Distance to the text beside it, in sizes of the larger of both, from which on a line is alone.
const ALONE: f32 = 1.6;

/// A line at an edge.
struct Candidate {
    page: usize,
    line: usize,
    bottom: bool,
    /// Distance of its base line from the edge.
    y: f32,
    size: f32,
    form: String,
    /// The number at its end or its beginning, less that of the page, and whether it is a Roman one.
    ahead: Vec<(bool, i64)>,
    /// Whether it is a title of the outline and not where that section begins.
    title: bool,
    /// Whether it is the only title of a section that begins on its page.
    heading: bool,
}

/// Takes furniture off pages of the given heights.
pub fn remove(pages: &mut [Vec<Line>], heights: &[f32], outline: &[Entry]) {
    let body = median(pages.iter().flatten().map(|line| line.size));
    let candidates = candidates(pages, heights, outline);
    let mut forms: HashMap<(bool, &str), Vec<f32>> = HashMap::new();
    let mut titles: HashMap<bool, Vec<f32>> = HashMap::new();
    let mut numbers: HashMap<(bool, bool, i64), Vec<f32>> = HashMap::new();
    for candidate in &candidates {
        forms.entry((candidate.bottom, &candidate.form)).or_default().push(candidate.y);
        if candidate.title && candidate.size < 1.05 * body {
            titles.entry(candidate.bottom).or_default().push(candidate.y);
        }
        for (roman, ahead) in &candidate.ahead {
            numbers.entry((candidate.bottom, *roman, *ahead)).or_default().push(candidate.y);
        }
    }
    let agree = |places: Option<&Vec<f32>>, y: f32, near: f32| {
        places.is_some_and(|at| at.iter().filter(|at| (**at - y).abs() < near).take(PAGES).count() >= PAGES)
    };
    let mut gone: HashSet<(usize, usize)> = candidates
        .iter()
        .filter(|c| {
            let numbered = |(roman, ahead): &(bool, i64)| agree(numbers.get(&(c.bottom, *roman, *ahead)), c.y, 6.0);
            agree(forms.get(&(c.bottom, c.form.as_str())), c.y, 6.0)
                || c.ahead.iter().any(numbered)
                || (c.title && c.size < 1.05 * body && agree(titles.get(&c.bottom), c.y, 1.5))
        })
        .map(|c| (c.page, c.line))
        .collect();
    let more = at_known_places(pages, &candidates, &gone, body);
    gone.extend(more);
    let mut gone: Vec<(usize, usize)> = gone.into_iter().collect();
    gone.sort_unstable();
    for (page, line) in gone.into_iter().rev() {
        pages[page].remove(line);
    }
}

/// A place at an edge, by points and quarters of a point.
type Place = (bool, i32, i32);

/// What stands at a place, on left and on right pages.
#[derive(Default)]
struct Known {
    /// Pages whose line there is furniture.
    furniture: [usize; 2],
    /// Pages whose line there is alone, and pages whose line is not.
    alone: [usize; 2],
    not_alone: [usize; 2],
    /// The least distance of what is furniture from the text.
    least: Option<f32>,
}

/// Lines that stand alone where furniture is on other pages.
fn at_known_places(
    pages: &[Vec<Line>],
    candidates: &[Candidate],
    gone: &HashSet<(usize, usize)>,
    body: f32,
) -> Vec<(usize, usize)> {
    // Of the lines of an edge the outermost that is not furniture, and furniture.
    let mut open: HashSet<(usize, bool)> = HashSet::new();
    let outer: Vec<(&Candidate, bool, f32, bool)> = candidates
        .iter()
        .filter_map(|c| {
            let known = gone.contains(&(c.page, c.line));
            if !known && !open.insert((c.page, c.bottom)) {
                return None;
            }
            let (gap, size) = inward(&pages[c.page], c, gone);
            Some((c, known, gap, gap > ALONE * c.size.max(size)))
        })
        .collect();
    let place = |c: &Candidate| (c.bottom, c.y.round() as i32, (4.0 * c.size).round() as i32);
    let mut places: HashMap<Place, Known> = HashMap::new();
    for (c, known, gap, alone) in &outer {
        let here = places.entry(place(c)).or_default();
        let side = c.page % 2;
        if *known {
            here.furniture[side] += 1;
            here.least = Some(here.least.map_or(*gap, |least| least.min(*gap)));
        }
        if *alone {
            here.alone[side] += 1;
        } else {
            here.not_alone[side] += 1;
        }
    }
    let is_furniture = |c: &Candidate, gap: f32| {
        let (bottom, y, size) = place(c);
        let near: Vec<&Known> = (-1..=1)
            .flat_map(|dy| (-1..=1).filter_map(|ds| places.get(&(bottom, y + dy, size + ds))).collect::<Vec<_>>())
            .collect();
        let side = c.page % 2;
        let sum = |of: fn(&Known) -> [usize; 2], side: usize| near.iter().map(|known| of(known)[side]).sum::<usize>();
        let there = sum(|known| known.furniture, side);
        let there = if c.title { there + sum(|known| known.furniture, 1 - side) } else { there };
        let least = near.iter().filter_map(|known| known.least).fold(f32::INFINITY, f32::min);
        let text = &pages[c.page][c.line].text;
        let sentence = c.size > 0.97 * body && !c.title && text.trim_end().ends_with(['.', ':', ';', '!', '?', '。']);
        there >= PAGES
            && 4 * sum(|known| known.not_alone, side) <= sum(|known| known.alone, side)
            && c.size < 1.05 * body
            && gap > 0.8 * least
            && !c.heading
            && !sentence
    };
    let lines = outer.iter().filter(|(c, known, gap, alone)| !known && *alone && is_furniture(c, *gap));
    lines.map(|(c, ..)| (c.page, c.line)).collect()
}

/// The distance of a line from the next one inwards that is not furniture, and the size of that.
fn inward(lines: &[Line], c: &Candidate, gone: &HashSet<(usize, usize)>) -> (f32, f32) {
    let from = lines[c.line].y;
    let text =
        lines.iter().enumerate().filter(|(at, line)| !line.turned && *at != c.line && !gone.contains(&(c.page, *at)));
    let gaps = text.map(|(_, line)| (if c.bottom { from - line.y } else { line.y - from }, line.size));
    let nearest = gaps.filter(|(gap, _)| *gap > -0.5 * c.size).min_by(|a, b| a.0.total_cmp(&b.0));
    nearest.unwrap_or((f32::INFINITY, c.size))
}

fn candidates(pages: &[Vec<Line>], heights: &[f32], outline: &[Entry]) -> Vec<Candidate> {
    let mut begins: HashMap<String, HashSet<usize>> = HashMap::new();
    for entry in outline {
        begins.entry(letters(&entry.title)).or_default().insert(entry.page);
    }
    let mut candidates = Vec::new();
    for (page, (lines, height)) in pages.iter().zip(heights).enumerate() {
        let mut order: Vec<usize> = (0..lines.len()).filter(|line| !lines[*line].turned).collect();
        order.sort_by(|a, b| lines[*a].y.total_cmp(&lines[*b].y));
        let top = order.iter().take(LINES).filter(|line| lines[**line].y < EDGE * height).map(|line| (*line, false));
        let bottom = order.iter().rev().take(LINES);
        let bottom = bottom.filter(|line| lines[**line].y > (1.0 - EDGE) * height).map(|line| (*line, true));
        for (line, bottom) in top.chain(bottom) {
            let Line { text, y, size, .. } = &lines[line];
            if text.len() > MAX_LENGTH {
                continue;
            }
            let plain = letters(text);
            let begins = begins.get(&plain).filter(|_| !plain.is_empty());
            let here = begins.is_some_and(|pages| pages.contains(&page));
            let heading = here && lines.iter().filter(|line| letters(&line.text) == plain).take(2).count() < 2;
            candidates.push(Candidate {
                page,
                line,
                bottom,
                y: if bottom { height - y } else { *y },
                size: *size,
                form: form(text),
                ahead: ahead(text, page),
                title: begins.is_some() && !heading,
                heading,
            });
        }
    }
    candidates
}

/// A line with its numbers left out, and a Roman number at one of its ends.
fn form(text: &str) -> String {
    let mut form = String::with_capacity(text.len());
    let count = text.split_whitespace().count();
    for (at, word) in text.split_whitespace().enumerate() {
        let roman = (at == 0 || at + 1 == count) && is_roman(word);
        for c in if roman { "0" } else { word }.chars() {
            if !c.is_numeric() {
                form.extend(c.to_lowercase());
            } else if !form.ends_with('#') {
                form.push('#');
            }
        }
    }
    form
}

fn ahead(text: &str, page: usize) -> Vec<(bool, i64)> {
    let number = |word: &str| {
        let number = word.parse::<u16>().ok().map(|n| (false, n)).or_else(|| Some((true, roman(word)?)));
        number.map(|(roman, n)| (roman, i64::from(n) - page as i64))
    };
    let mut words = text.split_whitespace();
    [words.next(), words.next_back()].into_iter().flatten().filter_map(number).collect()
}

/// Whether a text is a small Roman number of a page.
pub fn is_roman(text: &str) -> bool {
    roman(text).is_some()
}

/// The value of a Roman number below 400, which is written in one way only: `civil` is none.
fn roman(text: &str) -> Option<u16> {
    if text.bytes().any(|b| b.is_ascii_uppercase()) && text.bytes().any(|b| b.is_ascii_lowercase()) {
        return None;
    }
    let lower = text.to_ascii_lowercase();
    let (mut rest, mut value) = (lower.as_str(), 0);
    for (signs, worth) in
        [("c", 100), ("xc", 90), ("l", 50), ("xl", 40), ("x", 10), ("ix", 9), ("v", 5), ("iv", 4), ("i", 1)]
    {
        let most = if signs.len() == 1 && signs != "v" && signs != "l" { 3 } else { 1 };
        for _ in 0..most {
            let Some(after) = rest.strip_prefix(signs) else { break };
            (rest, value) = (after, value + worth);
        }
    }
    (rest.is_empty() && value > 0).then_some(value)
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
        remove(&mut pages, &[800.0; 4], &[]);
        assert!(pages.iter().all(|page| page.len() == 2 && page[1].text == "Body"), "{pages:?}");
    }

    #[test]
    fn numbers_at_other_heights_are_not_those_of_pages() {
        let line = |text: &str, y: f32| vec![Line { text: text.to_owned(), y, ..Line::default() }];
        let mut pages = vec![line("19 Fuel and oil", 38.0), line("20 Dues and fares", 77.0), line("fog, 21", 67.0)];
        remove(&mut pages, &[800.0; 3], &[]);
        assert!(pages.iter().all(|page| page.len() == 1), "{pages:?}");
    }

    #[test]
    fn two_pages_prove_nothing() {
        let mut pages = vec![vec![Line { text: "Same".to_owned(), y: 10.0, ..Line::default() }]; 2];
        remove(&mut pages, &[800.0; 2], &[]);
        assert_eq!(pages[1].len(), 1);
    }

    fn line(text: &str, y: f32, size: f32) -> Line {
        Line { text: text.to_owned(), y, size, ..Line::default() }
    }

    /// Lines of text, other ones on each page.
    fn text(page: usize, y: f32) -> [Line; 2] {
        let word = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"][page];
        [line(&format!("Text {word}"), y, 10.0), line(&format!("{word} goes on"), y + 12.0, 10.0)]
    }

    /// What is left of the last page of a book whose right pages have a head of their own chapter.
    fn left(last: &[Line], titles: &[&str]) -> usize {
        let heads = ["The book", "1 Salt", "The book", "1 Salt", "The book", "1 Salt", "The book", "2 Ice", "The book"];
        let page = |(n, head): (usize, &&str)| [vec![line(head, 36.0, 8.0)], text(n, 66.0).to_vec()].concat();
        let mut pages: Vec<Vec<Line>> = heads.iter().enumerate().map(page).collect();
        pages.push(last.to_vec());
        let entry = |title: &&str| Entry { level: 1, title: (*title).to_owned(), page: 9 };
        let outline: Vec<Entry> = titles.iter().map(entry).collect();
        remove(&mut pages, &[800.0; 10], &outline);
        assert!(pages[..9].iter().enumerate().all(|(n, page)| page == &text(n, 66.0)), "{pages:?}");
        pages[9].len()
    }

    #[test]
    fn a_line_alone_where_heads_are_goes_whatever_it_says() {
        let below = line("Text", 66.0, 10.0);
        assert_eq!(left(&[line("3 Fog", 36.4, 8.0), below.clone()], &[]), 1);
        // One of another size, one that text follows, one at another place.
        assert_eq!(left(&[line("3 Fog", 36.0, 10.0), below.clone()], &[]), 2);
        assert_eq!(left(&[line("3 Fog", 36.0, 8.0), line("goes on", 48.0, 10.0)], &[]), 2);
        assert_eq!(left(&[line("3 Fog", 42.0, 8.0), below.clone()], &[]), 2);
        // The only title of a section that begins here is not its running title.
        assert_eq!(left(&[line("3 Fog", 36.0, 8.0), below], &["3 Fog"]), 2);
        assert_eq!(left(&[line("3 Fog", 36.0, 8.0), line("3 Fog", 66.0, 14.0)], &["3 Fog"]), 1);
    }

    #[test]
    fn titles_of_the_outline_are_alike() {
        let titles = ["Salt", "Ice", "Fog"];
        let entry = |(n, title): (usize, &&str)| Entry { level: 1, title: (*title).to_owned(), page: 2 * n };
        let outline: Vec<Entry> = titles.iter().enumerate().map(entry).collect();
        let heads = titles.iter().flat_map(|title| [line(title, 60.0, 14.0), line(title, 36.0, 8.0)]);
        let page = |(n, head): (usize, Line)| [vec![head], text(n, 90.0).to_vec()].concat();
        let mut pages: Vec<Vec<Line>> = heads.enumerate().map(page).collect();
        remove(&mut pages, &[800.0; 6], &outline);
        assert_eq!(pages.iter().map(Vec::len).collect::<Vec<_>>(), [3, 2, 3, 2, 3, 2]);
    }

    #[test]
    fn no_text_goes_from_where_the_text_of_pages_begins() {
        // First lines that are alike, and on the last page a paragraph of one line.
        let mut pages: Vec<Vec<Line>> = (0..10).map(|n| text(n, 60.0).to_vec()).collect();
        (0..7).for_each(|n| pages[n][0].text = "Note".to_owned());
        pages[9][1].y = 90.0;
        remove(&mut pages, &[800.0; 10], &[]);
        assert_eq!(pages.iter().map(Vec::len).collect::<Vec<_>>(), [1, 1, 1, 1, 1, 1, 1, 2, 2, 2]);
    }

    #[test]
    fn roman_numbers_are_numbers_of_pages() {
        let feet = ["Edition 2 iii", "iv Edition 2", "Edition 2 v", "6 Edition 2", "Edition 2 vii"];
        let page = |foot: &&str| vec![line("Text", 400.0, 10.0), line(foot, 780.0, 8.0)];
        let mut pages: Vec<Vec<Line>> = feet.iter().map(page).collect();
        remove(&mut pages, &[800.0; 5], &[]);
        assert_eq!(pages.iter().map(Vec::len).collect::<Vec<_>>(), [1, 1, 1, 2, 1]);
        let values = ["i", "iv", "IX", "xl", "xcix", "cccxc"].map(roman);
        assert_eq!(values, [1, 4, 9, 40, 99, 390].map(Some));
        assert_eq!(["civil", "mix", "iiii", "Xi", ""].map(roman), [None; 5]);
    }
}
