// SPDX-License-Identifier: PostgreSQL

//! Columns: what white space that runs down a page is between.
//!
//! It is between columns of prose, between columns of an index or of contents, or between cells of a table, and only of the
//! first two is one column read after the other. Prose fills its columns: a line ends where the next word does not fit. Entries
//! of an index do not, but end with numbers of pages and go on in their order from one column to the next. Cells of a
//! table stand on common base lines, and end where they have said what they say, or their rows have space
//! between them that goes through all columns. Where the look is not plain, only the fill decides.

use super::roles::is_page;
use super::words::Word;

/// Width of a gutter, as a part of the size of the text beside it.
const GUTTER: f32 = 0.7;

/// Width of a column of prose in sizes of its text, and how much of it its lines fill on average.
const MIN_COLUMN: f32 = 8.0;
const MIN_FILL: f32 = 0.45;

/// Width of what stands before text: bullets and numbers.
const BULLETS: f32 = 2.5;

/// Lines that one of the columns has at least, and base lines that a table has.
const MIN_LINES: usize = 4;

/// Gutters of a page of prose. A newspaper has fewer.
const MAX_GUTTERS: usize = 8;

/// Strips among which a gutter is looked for: more than any page has, and few enough to look at each again.
const MAX_STRIPS: usize = 300;

/// Strips above a table that may be in one of its columns: title and caption.
const ABOVE: usize = 3;

/// How many breaks of prose within a sentence are there because the next word does not fit.
const FORCED: f32 = 0.65;

/// Base lines that overlap without being the same, as a part of those of a table.
const MAX_CLASHES: f32 = 0.1;

/// Step to the next row of a table, in steps of lines within a row, how many rows show it, and lines that rows have at most
/// on average.
const ROW_STEP: f32 = 1.12;
const ROWS: usize = 3;
const ROW_LINES: usize = 8;

/// Entries of a list, and how many of its neighbours are in order: titles and footers of a short page are among them.
const ENTRIES: usize = 6;
const ORDERED: f32 = 0.8;

/// Lines at the end of a column and at the beginning of the next one of which two are in order.
const NEAR: usize = 3;

/// Letters of a term that its place is told by: not all, because there are two orders for those with several words.
const LETTERS: usize = 3;

/// White space between columns: its ends.
pub type Gutter = (f32, f32);

/// What the first strips are, how many they are, and the white space in them.
#[derive(Debug, Clone, PartialEq)]
pub enum Found {
    /// Columns that are read one after the other.
    Columns(usize, Vec<Gutter>),
    /// A table.
    Table(usize, Vec<Gutter>),
    /// Neither.
    Nothing,
}

/// What some strips begin with.
pub fn find(strips: &[Vec<Word>], size: f32) -> Found {
    let Some((count, gutters)) = shared(strips, size) else { return Found::Nothing };
    let words: Vec<&Word> = strips[..count].iter().flatten().collect();
    if let Some(gutters) = lists(&words, &gutters, size) {
        return Found::Columns(count, gutters);
    }
    if is_table(&words, &gutters, size) {
        return Found::Table(count, gutters);
    }
    let Some(gutters) = prose(&words, gutters, size) else { return Found::Nothing };
    // A caption above a table closes some of its gutters.
    for above in 1..count.min(ABOVE + 1) {
        let mut sides = strips[above - 1].iter().map(|word| side(&gutters, word));
        let first = sides.next();
        if sides.any(|side| Some(side) != first) {
            break;
        }
        if let Some((count, gutters)) = shared(&strips[above..], size)
            && is_table(&strips[above..above + count].iter().flatten().collect::<Vec<_>>(), &gutters, size)
        {
            return Found::Nothing;
        }
    }
    Found::Columns(count, gutters)
}

/// The number of the column of a word.
pub fn side(gutters: &[Gutter], word: &Word) -> usize {
    let middle = (word.x0 + word.x1) / 2.0;
    gutters.iter().take_while(|(from, _)| middle > *from).count()
}

/// How many of the first strips share gutters, and these from left to right.
fn shared(strips: &[Vec<Word>], size: f32) -> Option<(usize, Vec<Gutter>)> {
    let mut free = vec![(f32::NEG_INFINITY, f32::INFINITY)];
    let mut shared = None;
    for (index, strip) in strips.iter().take(MAX_STRIPS).enumerate() {
        free = meet(&free, &gaps(strip), GUTTER * size);
        let between: Vec<Gutter> =
            free.iter().filter(|(from, to)| from.is_finite() && to.is_finite()).copied().collect();
        if !between.is_empty() {
            shared = Some((index + 1, between));
        } else if shared.is_some() || index >= MIN_LINES {
            break;
        }
    }
    let (count, mut gutters) = shared?;
    gutters.sort_by(|a, b| (b.1 - b.0).total_cmp(&(a.1 - a.0)));
    gutters.truncate(MAX_GUTTERS);
    gutters.sort_by(|a, b| a.0.total_cmp(&b.0));
    Some((count, gutters))
}

/// The gutters between columns of prose.
fn prose(words: &[&Word], mut gutters: Vec<Gutter>, size: f32) -> Option<Vec<Gutter>> {
    while !gutters.is_empty() {
        let Some(bad) = not_prose(words, &gutters, size) else {
            return Some(gutters);
        };
        // The gutter beside it that is narrower is none.
        let width = |at: usize| gutters.get(at).map_or(f32::INFINITY, |(from, to)| to - from);
        let before = bad.checked_sub(1).map_or(f32::INFINITY, width);
        gutters.remove(if before <= width(bad) { bad - 1 } else { bad });
    }
    None
}

/// The first column that is not one of prose.
fn not_prose(words: &[&Word], gutters: &[Gutter], size: f32) -> Option<usize> {
    let columns = sides(words, gutters, size);
    let bad = columns.iter().position(|column| !column.is_filled(size));
    let most = columns.iter().map(|column| column.lines.len()).max().unwrap_or(0);
    if most < MIN_LINES { bad.or(Some(0)) } else { bad }
}

/// A column, whatever it is one of.
struct Column<'w> {
    left: f32,
    right: f32,
    /// The width of its words.
    filled: f32,
    /// Its lines from top to bottom, the words of each from left to right.
    lines: Vec<Vec<&'w Word>>,
}

impl Column<'_> {
    fn width(&self) -> f32 {
        self.right - self.left
    }

    fn is_filled(&self, size: f32) -> bool {
        let width = self.width();
        !self.lines.is_empty()
            && width >= MIN_COLUMN * size
            && self.filled >= MIN_FILL * width * self.lines.len() as f32
    }

    /// Whether most of its lines end where the next word does not fit. The last line of a paragraph tells nothing.
    fn is_wrapped(&self, size: f32) -> bool {
        let breaks = self.lines.windows(2).filter_map(|pair| Some((*pair[0].last()?, *pair[1].first()?)));
        let within: Vec<(&Word, &Word)> =
            breaks.filter(|(last, _)| !last.text.ends_with(['.', '!', '?', ':'])).collect();
        let forced = within.iter().filter(|(last, first)| last.x1 + 0.25 * size + first.x1 - first.x0 > self.right);
        forced.count() as f32 >= FORCED * within.len() as f32
    }

    fn texts(&self) -> impl Iterator<Item = (f32, String)> {
        self.lines.iter().map(|line| {
            let text = line.iter().map(|word| word.text.as_str()).collect::<Vec<_>>().join(" ");
            (line.first().map_or(0.0, |word| word.x0), text)
        })
    }
}

/// The columns between gutters.
fn sides<'w>(words: &[&'w Word], gutters: &[Gutter], size: f32) -> Vec<Column<'w>> {
    let mut inside: Vec<Vec<&Word>> = vec![Vec::new(); gutters.len() + 1];
    words.iter().for_each(|word| inside[side(gutters, word)].push(word));
    let column = |mut words: Vec<&'w Word>| {
        let left = words.iter().map(|word| word.x0).fold(f32::INFINITY, f32::min);
        let right = words.iter().map(|word| word.x1).fold(f32::NEG_INFINITY, f32::max);
        let filled = words.iter().map(|word| word.x1 - word.x0).sum();
        words.sort_by(|a, b| a.y.total_cmp(&b.y));
        let mut lines: Vec<Vec<&Word>> =
            words.chunk_by(|a, b| b.y - a.y <= 0.5 * size).map(<[&Word]>::to_vec).collect();
        lines.iter_mut().for_each(|line| line.sort_by(|a, b| a.x0.total_cmp(&b.x0)));
        Column { left, right, filled, lines }
    };
    inside.into_iter().map(column).collect()
}

/// Whether columns are those of a table.
fn is_table(words: &[&Word], gutters: &[Gutter], size: f32) -> bool {
    let columns = sides(words, gutters, size);
    let all = columns.iter().enumerate();
    let mut ys: Vec<(f32, usize)> =
        all.flat_map(|(at, column)| column.lines.iter().map(move |line| (line[0].y, at))).collect();
    ys.sort_by(|a, b| a.0.total_cmp(&b.0));
    let lines: Vec<&[(f32, usize)]> = ys.chunk_by(|a, b| b.0 - a.0 <= 0.15 * size).collect();
    let steps: Vec<f32> = lines.windows(2).map(|pair| pair[1][0].0 - pair[0][0].0).collect();
    let clashes = steps.iter().filter(|step| **step < 0.6 * size).count();
    let common = lines.iter().filter(|line| line.len() > 1).count();
    if common < MIN_LINES || clashes as f32 > MAX_CLASHES * lines.len() as f32 {
        return false;
    }
    // Rows that stand apart through all columns: paragraphs of two columns do not end side by side.
    let mut usual: Vec<f32> = steps.iter().copied().filter(|step| *step >= 0.6 * size).collect();
    usual.sort_by(f32::total_cmp);
    let usual = usual.get(usual.len() / 4).copied().unwrap_or(size);
    let apart = steps.iter().zip(&lines[1..]).filter(|(step, _)| **step > ROW_STEP * usual);
    let (rows, others): (Vec<_>, Vec<_>) = apart.partition(|(_, line)| line.len() > 1);
    let many = rows.len() >= ROWS && rows.len() * ROW_LINES >= lines.len();
    if many && others.len() * 4 <= rows.len() {
        return true;
    }
    if common <= MIN_LINES {
        return false;
    }
    let cells: Vec<&Column<'_>> = columns.iter().filter(|column| column.width() >= BULLETS * size).collect();
    let (text, other): (Vec<&Column<'_>>, Vec<&Column<'_>>) =
        cells.iter().partition(|column| column.is_filled(size) && column.is_wrapped(size));
    // Two columns of which only one is prose may be prose beside a list.
    if columns.len() > 2 {
        !other.is_empty() || columns.len() - cells.len() > 2
    } else {
        text.is_empty() && common > MIN_LINES
    }
}

/// The gutters between columns of an index or of contents.
fn lists(words: &[&Word], gutters: &[Gutter], size: f32) -> Option<Vec<Gutter>> {
    let single = gutters.iter().map(|gutter| vec![*gutter]);
    std::iter::once(gutters.to_vec()).chain(single).find(|gutters| are_lists(&sides(words, gutters, size), size))
}

/// Whether columns are lists with numbers of pages that go on from one column to the next.
fn are_lists(columns: &[Column<'_>], size: f32) -> bool {
    let mut all = 0;
    let (mut terms, mut pages) = (Vec::new(), Vec::new());
    for column in columns {
        let (mut names, mut numbers) = (Vec::new(), Vec::new());
        for (x0, text) in column.texts() {
            numbers.extend(entry(&text).map(|page| page.parse::<u32>().unwrap_or(0)));
            // What is indented goes on or is within.
            if x0 - column.left < 0.5 * size {
                let letters = text.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase);
                names.push(letters.take(LETTERS).collect::<String>());
            }
        }
        if numbers.is_empty() || numbers.len() * 2 < column.lines.len() {
            return false;
        }
        all += numbers.len();
        terms.push(names);
        pages.push(numbers);
    }
    all >= ENTRIES && (go_on(&terms) || go_on(&pages))
}

/// The number of the page that an entry ends with, after a comma or dots.
fn entry(text: &str) -> Option<&str> {
    let (before, page) = text.rsplit_once([' ', '.', '–', '-']).filter(|(_, page)| is_page(page))?;
    let led = text.contains([',', '…']) || before.ends_with('.');
    (led && before.chars().any(char::is_alphabetic)).then_some(page)
}

/// Whether values are in order, within each column but for a few, and from each column to the next: there a title or a footer
/// may be in between.
fn go_on<T: PartialOrd>(columns: &[Vec<T>]) -> bool {
    let pairs = || columns.iter().flat_map(|column| column.windows(2));
    let right = pairs().filter(|pair| pair[0] <= pair[1]).count();
    let across = columns.windows(2).all(|pair| {
        let mut last = pair[0].iter().rev().take(NEAR);
        last.any(|last| pair[1].iter().take(NEAR).any(|first| last <= first))
    });
    across && right as f32 >= ORDERED * pairs().count() as f32
}

/// The ranges that no word of a strip is in.
fn gaps(strip: &[Word]) -> Vec<(f32, f32)> {
    let mut ends: Vec<(f32, f32)> = strip.iter().map(|word| (word.x0, word.x1)).collect();
    ends.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut gaps = Vec::new();
    let mut at = f32::NEG_INFINITY;
    for (from, to) in ends {
        if from > at {
            gaps.push((at, from));
        }
        at = at.max(to);
    }
    gaps.push((at, f32::INFINITY));
    gaps
}

/// What two lists of ranges share, as far as it is wide enough.
fn meet(a: &[(f32, f32)], b: &[(f32, f32)], width: f32) -> Vec<(f32, f32)> {
    let (mut i, mut j) = (0, 0);
    let mut shared = Vec::new();
    while let (Some(x), Some(y)) = (a.get(i), b.get(j)) {
        let both = (x.0.max(y.0), x.1.min(y.1));
        if both.1 - both.0 >= width {
            shared.push(both);
        }
        if x.1 < y.1 { i += 1 } else { j += 1 }
    }
    shared
}
