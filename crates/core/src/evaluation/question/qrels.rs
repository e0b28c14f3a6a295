// SPDX-License-Identifier: PostgreSQL

//! Questions and judgments in the layouts of BEIR and TREC.

use super::{Address, GRADES, Gold, Question, Span, checked};
use crate::error::{Error, Result};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};

/// Reads BEIR's `queries.jsonl` and `qrels.tsv` (a header, then query, document and grade; the header may be missing). A document is named by its external
/// id. Returns how many queries were left out because nothing is judged for them.
pub fn from_beir(queries: &str, qrels: &str) -> Result<(Vec<Question>, usize)> {
    let mut texts = Vec::new();
    for (at, line) in queries.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let bad = |why: String| Error::invalid(format!("line {} of the queries: {why}", at + 1));
        let value: Value = serde_json::from_str(line).map_err(|e| bad(e.to_string()))?;
        let field = |name: &str| match value.get(name) {
            Some(Value::String(text)) => Some(text.clone()),
            Some(Value::Number(number)) if name == "_id" => Some(number.to_string()),
            _ => None,
        };
        let (Some(id), Some(text)) = (field("_id"), field("text")) else {
            return Err(bad("not an object with \"_id\" and \"text\"".to_owned()));
        };
        texts.push((id, text));
    }
    // A first line with a grade is no header.
    let header = qrels
        .lines()
        .next()
        .is_some_and(|line| line.split('\t').nth(2).is_none_or(|grade| grade.trim().parse::<i64>().is_err()));
    judged(
        texts,
        rows(qrels, usize::from(header), 3)?
            .into_iter()
            .map(|(at, row)| (at, [row[0].clone(), row[1].clone(), row[2].clone()])),
    )
}

/// Reads TREC's topics, one `id<TAB>text` a line, and qrels of four columns (topic, iteration, document, grade). Returns
/// how many topics were left out because nothing is judged for them.
pub fn from_trec(topics: &str, qrels: &str) -> Result<(Vec<Question>, usize)> {
    let mut texts = Vec::new();
    for (at, line) in topics.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let Some((id, text)) = line.split_once('\t') else {
            return Err(Error::invalid(format!("line {} of the topics: no tab between id and text", at + 1)));
        };
        texts.push((id.trim().to_owned(), text.trim().to_owned()));
    }
    judged(
        texts,
        rows(qrels, 0, 4)?.into_iter().map(|(at, row)| (at, [row[0].clone(), row[2].clone(), row[3].clone()])),
    )
}

/// The rows of qrels with their line numbers.
fn rows(qrels: &str, header: usize, columns: usize) -> Result<Vec<(usize, Vec<String>)>> {
    let mut rows = Vec::new();
    for (at, line) in qrels.lines().enumerate().skip(header).filter(|(_, line)| !line.trim().is_empty()) {
        // Ids of BEIR may have blanks in them; TREC's columns are separated by any.
        let row: Vec<String> = match columns {
            3 => line.split('\t').map(|c| c.trim().to_owned()).collect(),
            _ => line.split_whitespace().map(str::to_owned).collect(),
        };
        if row.len() != columns {
            let found = row.len();
            return Err(Error::invalid(format!("line {} of the qrels: {found} columns, not {columns}", at + 1)));
        }
        rows.push((at + 1, row));
    }
    Ok(rows)
}

/// Questions of the texts that have judgments, in the order of the texts.
fn judged(
    texts: Vec<(String, String)>,
    qrels: impl Iterator<Item = (usize, [String; 3])>,
) -> Result<(Vec<Question>, usize)> {
    let mut gold: BTreeMap<String, Vec<Gold>> = BTreeMap::new();
    for (at, [key, document, grade]) in qrels {
        let grade = grade.parse::<i64>().ok().filter(|g| GRADES.contains(g)).and_then(|g| i32::try_from(g).ok());
        let grade =
            grade.ok_or_else(|| Error::invalid(format!("line {at} of the qrels: the grade is no whole number")))?;
        let document = Address::ExternalId(document);
        gold.entry(key).or_default().push(Gold { source: None, document, span: Span::Document, grade, note: None });
    }
    let known: BTreeSet<&str> = texts.iter().map(|(key, _)| key.as_str()).collect();
    if let Some(missing) = gold.keys().find(|key| !known.contains(key.as_str())) {
        return Err(Error::invalid(format!("question \"{missing}\" is judged, but its text is not given")));
    }
    let mut seen = BTreeSet::new();
    if let Some((twice, _)) = texts.iter().find(|(key, _)| !seen.insert(key.as_str())) {
        return Err(Error::invalid(format!("question \"{twice}\" comes twice")));
    }
    let all = texts.len();
    let mut questions = Vec::new();
    for (key, text) in texts {
        let Some(gold) = gold.remove(&key) else { continue };
        questions.push(Question {
            key,
            text,
            strata: Vec::new(),
            cluster: None,
            answerable: gold.iter().any(|g| g.grade >= 1),
            filter: Value::Object(Map::new()),
            metadata: Map::new(),
            gold,
        });
    }
    let left_out = all - questions.len();
    Ok((checked(questions)?, left_out))
}
