// SPDX-License-Identifier: PostgreSQL

//! The reference baselines, read from the page that states them.
//!
//! A number that is typed into a test gets old in silence; this reads the tables of `BASELINES.md` instead.

use rag_core::{Error, Result};
use std::collections::BTreeMap;
use std::path::Path;

/// The tables of one page: `set/section/system` → column → value.
#[derive(Debug, Clone, Default)]
pub struct Baselines {
    rows: BTreeMap<(String, String, String), BTreeMap<String, f64>>,
}

impl Baselines {
    /// Reads a page.
    pub fn read(path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path).map_err(|e| Error::io(&path.display().to_string(), &e))?;
        Ok(Self::parse(&text))
    }

    /// Parses a page: `## set: …`, `### section`, then tables whose first column is the system.
    pub fn parse(text: &str) -> Self {
        let mut rows = BTreeMap::new();
        let (mut set, mut section, mut columns) = (String::new(), String::new(), Vec::new());
        for line in text.lines() {
            if let Some(title) = line.strip_prefix("## ") {
                set = title.split(':').next().unwrap_or(title).trim().to_owned();
            } else if let Some(title) = line.strip_prefix("### ") {
                section = title.trim().to_owned();
                columns.clear();
            } else if let Some(row) = line.strip_prefix('|') {
                let cells: Vec<&str> = row.trim().trim_end_matches('|').split('|').map(str::trim).collect();
                if columns.is_empty() {
                    columns = cells.iter().map(|c| (*c).to_owned()).collect();
                } else if !cells[0].starts_with("---") {
                    let values = columns.iter().zip(&cells).skip(1);
                    let values = values.filter_map(|(c, v)| Some((c.clone(), v.parse::<f64>().ok()?))).collect();
                    rows.insert((set.clone(), section.clone(), cells[0].to_owned()), values);
                }
            }
        }
        Self { rows }
    }

    /// One number of the section `open`, or of the one of it that is about the whole collection.
    pub fn value(&self, set: &str, system: &str, column: &str) -> Result<f64> {
        let section = |name: &str| self.rows.get(&(set.to_owned(), name.to_owned(), system.to_owned()));
        section("open")
            .or_else(|| section("open: corpus-wide"))
            .and_then(|columns| columns.get(column))
            .copied()
            .ok_or_else(|| Error::invalid(format!("no baseline \"{system}\" with {column} for \"{set}\"")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "# Page\n\ntext | with a bar\n\n## one: 3 documents\n\n### open\n\n\
        | system | n | R@1 | nDCG@10 | se |\n|---|---|---|---|---|\n| bm25 stem | 2 | 0.5 | 0.6954 | 0.02 |\n\
        | dense | 2 | 0.4 | 0.6478 |  |\n\n## two: 9\n\n### open: corpus-wide\n\n| system | nDCG@10 |\n|---|---|\n| dense | 0.25 |\n";

    #[test]
    fn tables_are_found_by_set_system_and_column() {
        let page = Baselines::parse(PAGE);
        assert_eq!(page.value("one", "bm25 stem", "nDCG@10"), Ok(0.6954));
        assert_eq!(page.value("one", "dense", "nDCG@10"), Ok(0.6478));
        assert_eq!(page.value("two", "dense", "nDCG@10"), Ok(0.25));
    }

    #[test]
    fn what_is_not_there_is_an_error() {
        let page = Baselines::parse(PAGE);
        for (set, system, column) in [("three", "dense", "n"), ("one", "dens", "n"), ("one", "dense", "se")] {
            assert!(page.value(set, system, column).is_err(), "{set} {system} {column}");
        }
    }
}
