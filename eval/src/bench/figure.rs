// SPDX-License-Identifier: PostgreSQL

//! What a measurement found, and the only place that makes Markdown and JSON of it.
//!
//! A figure is data: tables whose columns say what their numbers are, promises with their verdict, and under which conditions
//! it was measured. Whoever measures decides nothing about how a number looks, so all pages look alike and the JSON has the
//! same numbers as the pages.
//!
//! Figures are kept in one JSON file, which a later run renews figure by figure: those it did not measure stay, each with
//! the command and the machine that it came from. All pages are made from that file.

use crate::output;
use rag_core::{Error, Result};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

/// The file that holds all figures, in the folder of results.
const BOOK: &str = "bench.json";

/// The pages: file, title, and the figures on it. A page of one figure has the figure's title.
const PAGES: [(&str, &str, &[&str]); 5] = [
    ("bench.md", "Speed and memory", &["embed", "priority", "dense", "hybrid", "ingest", "memory"]),
    ("lexical.md", "", &["lexical"]),
    ("lexical-growth.md", "", &["growth"]),
    ("lexical-rights.md", "", &["rights"]),
    ("lexical-concurrency.md", "", &["concurrency"]),
];

/// What one measurement found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// Its name on the command line.
    pub name: String,
    /// Its heading.
    pub title: String,
    /// How to make it again.
    pub command: String,
    /// Versions and machine.
    pub environment: BTreeMap<String, String>,
    /// What was measured and how.
    pub about: String,
    /// The numbers.
    pub tables: Vec<Table>,
    /// What was promised, and whether it was kept.
    pub promises: Vec<Promise>,
    /// What else is to be known.
    pub notes: Vec<String>,
}

/// Rows of numbers under columns that say what they are.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Table {
    /// What sets it apart from the others of its figure; empty if there is one.
    pub title: String,
    /// The columns.
    pub columns: Vec<Column>,
    /// A value for each column; null where there is none.
    pub rows: Vec<Vec<Value>>,
}

/// A column.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Column {
    /// Its heading.
    pub name: String,
    /// What its values are.
    pub kind: Kind,
}

/// What a value is, and so how it is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Words.
    Text,
    /// A number of things.
    Count,
    /// A time in milliseconds.
    Milliseconds,
    /// A time in seconds.
    Seconds,
    /// Things per second.
    Rate,
    /// One number over another.
    Ratio,
    /// A part of a whole, from 0 to 1.
    Share,
    /// A metric of retrieval, from 0 to 1.
    Score,
    /// Memory in units of 2²⁰ bytes.
    Megabytes,
}

/// A bound that the project has set itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Promise {
    /// What must not exceed the bound, and what the bound is.
    pub text: String,
    /// The bound.
    pub bound: f64,
    /// What was measured.
    pub measured: f64,
}

impl Promise {
    /// A promise with its numbers, to four decimals as all numbers here.
    pub fn new(text: impl Into<String>, bound: f64, measured: f64) -> Self {
        Self { text: text.into(), bound: rounded(bound), measured: rounded(measured) }
    }

    /// Whether the bound was kept to.
    pub fn is_kept(&self) -> bool {
        self.measured <= self.bound
    }
}

impl Figure {
    /// A figure without numbers; the command and the machine are put in by who runs it.
    pub fn new(title: impl Into<String>, about: impl Into<String>) -> Self {
        Self {
            name: String::new(),
            title: title.into(),
            command: String::new(),
            environment: BTreeMap::new(),
            about: about.into(),
            tables: Vec::new(),
            promises: Vec::new(),
            notes: Vec::new(),
        }
    }
}

impl Table {
    /// A table without rows.
    pub fn new(title: impl Into<String>, columns: &[(&str, Kind)]) -> Self {
        let column = |(name, kind): &(&str, Kind)| Column { name: (*name).to_owned(), kind: *kind };
        Self { title: title.into(), columns: columns.iter().map(column).collect(), rows: Vec::new() }
    }

    fn markdown(&self) -> Result<String> {
        let cells = |row: &Vec<Value>| match row.len() == self.columns.len() {
            true => Ok(row.iter().zip(&self.columns).map(|(value, c)| shown(value, c.kind)).collect::<Vec<_>>()),
            false => Err(Error::internal(format!("a row of {} values under {}", row.len(), self.columns.len()))),
        };
        let heads: Vec<&str> = self.columns.iter().map(|c| c.name.as_str()).collect();
        let rule: Vec<&str> = self.columns.iter().map(|c| if c.kind == Kind::Text { "---" } else { "---:" }).collect();
        let mut out = format!("| {} |\n|{}|\n", heads.join(" | "), rule.join("|"));
        for row in &self.rows {
            let _ = writeln!(out, "| {} |", cells(row)?.join(" | "));
        }
        Ok(out)
    }
}

/// A number for a table, with four decimals; null where nothing was measured.
pub fn number(value: impl Into<Option<f64>>) -> Value {
    value.into().map_or(Value::Null, |value| Value::from(rounded(value)))
}

fn rounded(value: f64) -> f64 {
    (value * 1e4).round() / 1e4
}

fn shown(value: &Value, kind: Kind) -> String {
    let Some(number) = value.as_f64() else {
        return value.as_str().map_or_else(|| "–".to_owned(), |text| text.replace('|', "\\|").replace('\n', " "));
    };
    match kind {
        Kind::Text | Kind::Count => value.to_string(),
        Kind::Milliseconds | Kind::Ratio => format!("{number:.2}"),
        Kind::Seconds if number < 10.0 => format!("{number:.2}"),
        Kind::Seconds | Kind::Rate | Kind::Megabytes => format!("{number:.1}"),
        Kind::Share => format!("{:.1} %", number * 100.0),
        Kind::Score => format!("{number:.4}"),
    }
}

/// A figure as Markdown, under a heading of this level.
pub fn markdown(figure: &Figure, level: usize) -> Result<String> {
    let facts: Vec<String> = figure.environment.iter().map(|(name, value)| format!("{name} {value}")).collect();
    let mut out = format!(
        "{} {}\n\n{}\n\nCommand: `{}`. On: {}.\n",
        "#".repeat(level),
        figure.title,
        figure.about.trim_end(),
        figure.command,
        facts.join(", ")
    );
    for table in &figure.tables {
        if !table.title.is_empty() {
            let _ = write!(out, "\n{} {}\n", "#".repeat(level + 1), table.title);
        }
        let _ = write!(out, "\n{}", table.markdown()?);
    }
    for promise in &figure.promises {
        let (Promise { text, bound, measured }, kept) = (promise, if promise.is_kept() { "kept" } else { "broken" });
        let _ = write!(out, "\nPromised: {text}: {measured:.2} of at most {bound:.2}, **{kept}**.\n");
    }
    for note in &figure.notes {
        let _ = write!(out, "\n{}\n", note.trim_end());
    }
    Ok(out)
}

/// All figures that there are: `old` ones, and `new` ones in the place of those of the same name.
fn renewed(old: Vec<Figure>, new: Vec<Figure>) -> Vec<Figure> {
    let kept: Vec<Figure> = old.into_iter().filter(|o| new.iter().all(|n| n.name != o.name)).collect();
    let mut all: Vec<Figure> = kept.into_iter().chain(new).collect();
    let place = |figure: &Figure| PAGES.iter().flat_map(|(.., names)| *names).position(|name| *name == figure.name);
    all.sort_by_key(|figure| place(figure).unwrap_or(usize::MAX));
    all
}

/// Pages that have a figure, as file and text.
fn pages(figures: &[Figure]) -> Result<Vec<(&'static str, String)>> {
    let mut pages = Vec::new();
    for (file, title, names) in PAGES {
        let on_it: Vec<&Figure> = figures.iter().filter(|f| names.contains(&f.name.as_str())).collect();
        let level = if title.is_empty() { 1 } else { 2 };
        let sections = on_it.iter().map(|f| markdown(f, level)).collect::<Result<Vec<_>>>()?;
        if !sections.is_empty() {
            let head = if title.is_empty() { String::new() } else { format!("# {title}\n\n") };
            pages.push((file, format!("{head}{}", sections.join("\n"))));
        }
    }
    Ok(pages)
}

/// Figures as JSON.
pub fn as_json(figures: &[Figure]) -> Result<String> {
    serde_json::to_string_pretty(figures).map(|text| text + "\n").map_err(|e| Error::internal(e.to_string()))
}

/// Figures of JSON.
pub fn from_json(text: &str) -> Result<Vec<Figure>> {
    serde_json::from_str(text).map_err(|e| Error::invalid(format!("not the figures of a run: {e}")))
}

/// Renews these figures in a folder of results, and all its pages.
pub fn renew(folder: &Path, new: Vec<Figure>) -> Result<()> {
    let book = folder.join(BOOK);
    let old = match std::fs::read_to_string(&book) {
        Ok(text) => from_json(&text)?,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Vec::new(),
        Err(error) => return Err(Error::io(&book.display().to_string(), &error)),
    };
    let all = renewed(old, new);
    let pages = pages(&all)?;
    output::write(&book, &as_json(&all)?)?;
    pages.iter().try_for_each(|(file, text)| output::write(&folder.join(file), text))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure(name: &str, milliseconds: f64) -> Figure {
        let mut table = Table::new("", &[("who", Kind::Text), ("p50", Kind::Milliseconds), ("n", Kind::Count)]);
        table.rows.push(vec!["a|b".into(), number(milliseconds), Value::from(111_024_323_i64)]);
        table.rows.push(vec!["c".into(), number(None), Value::Null]);
        let mut figure = Figure::new("Title", "About.");
        figure.name = name.to_owned();
        figure.command = format!("run {name}");
        figure.environment.insert("cores".to_owned(), "2".to_owned());
        figure.tables.push(table);
        figure.promises.push(Promise::new("at most 3", 3.0, milliseconds));
        figure.notes.push("Noted.".to_owned());
        figure
    }

    #[test]
    fn a_figure_is_shown_with_its_conditions_and_its_verdict() {
        let text = markdown(&figure("dense", 2.5), 2).expect("even");
        let wanted = "## Title\n\nAbout.\n\nCommand: `run dense`. On: cores 2.\n\n| who | p50 | n |\n|---|---:|---:|\n\
                      | a\\|b | 2.50 | 111024323 |\n| c | – | – |\n\nPromised: at most 3: 2.50 of at most 3.00, **kept**.\n\nNoted.\n";
        assert_eq!(text, wanted);
        assert!(markdown(&figure("dense", 3.5), 2).expect("even").contains("**broken**"));
    }

    #[test]
    fn every_line_of_a_table_has_as_many_cells_and_an_uneven_row_is_refused() {
        let mut figure = figure("dense", 1.0);
        let bars = |line: &str| line.replace("\\|", "").matches('|').count();
        let text = figure.tables[0].markdown().expect("even");
        assert_eq!(text.lines().map(bars).collect::<Vec<_>>(), [4; 4]);
        figure.tables[0].rows.push(vec!["alone".into()]);
        assert!(markdown(&figure, 1).is_err());
    }

    #[test]
    fn each_kind_is_shown_in_its_way() {
        let kinds = [Kind::Ratio, Kind::Seconds, Kind::Rate, Kind::Megabytes, Kind::Share, Kind::Score];
        let all: Vec<String> = kinds.iter().map(|kind| shown(&number(0.6666), *kind)).collect();
        assert_eq!(all, ["0.67", "0.67", "0.7", "0.7", "66.7 %", "0.6666"]);
    }

    #[test]
    fn json_gives_back_what_it_was_made_of() {
        let figures = vec![figure("dense", 5.633_217_9), figure("memory", 1e-3)];
        let text = as_json(&figures).expect("writes");
        let back = from_json(&text).expect("reads");
        assert_eq!(back, figures);
        assert_eq!(as_json(&back).expect("writes"), text, "and to the byte");
        assert!(text.contains("5.6332") && !text.contains("5.63321"), "{text}");
    }

    #[test]
    fn a_run_renews_only_what_it_measured() {
        let folder = std::env::temp_dir().join(format!("rag_eval_figures_{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let read = |file: &str| std::fs::read_to_string(folder.join(file)).expect(file);
        let (lexical, dense) = (figure("lexical", 1.0), figure("dense", 1.0));
        renew(&folder, vec![lexical.clone(), dense, figure("embed", 1.0)]).expect("writes");
        let before = read("lexical.md");
        renew(&folder, vec![figure("dense", 2.0)]).expect("renews");
        let all = from_json(&read(BOOK)).expect("reads");
        let names: Vec<&str> = all.iter().map(|f| f.name.as_str()).collect();
        assert_eq!(names, ["embed", "dense", "lexical"], "in the order of the pages");
        assert_eq!(all[2], lexical);
        assert_eq!(read("lexical.md"), before);
        let page = read("bench.md");
        assert!(page.starts_with("# Speed and memory\n\n## Title\n") && page.contains("run embed"), "{page}");
        assert!(page.contains("| 2.00 |") && page.contains("| 1.00 |"), "{page}");
        assert!(!folder.join("lexical-growth.md").exists(), "nobody measured it");
        std::fs::remove_dir_all(&folder).expect("removes");
    }
}
