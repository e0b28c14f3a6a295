// SPDX-License-Identifier: PostgreSQL

//! What was run: everything a run recorded of itself, both runs beside each other and what differs marked.

use super::{Report, Run};
use crate::html::{cut, head, number, table};
use maud::{Markup, html};
use serde_json::Value;

/// Digits of a hash that are shown.
const HASH: usize = 12;

/// Characters of a value that are shown.
const VALUE: usize = 200;

/// A name with its value in each run.
type Fact = (String, Vec<String>);

/// What the runs recorded; of the settings only what differs.
pub fn what(report: &Report) -> Markup {
    let runs = report.runs();
    let of = |name: &str, value: &dyn Fn(&Run) -> String| -> Fact {
        (name.to_owned(), runs.iter().map(|run| value(run)).collect())
    };
    let mut facts = vec![
        of("name", &|run| run.name.clone().unwrap_or_else(|| "–".to_owned())),
        of("profile", &|run| run.profile.clone()),
    ];
    if report.against.is_some() {
        let differing = objects("", &runs, |run| &run.settings).into_iter().filter(|(_, values)| differs(values));
        facts.extend(differing.map(|(name, values)| (format!("setting {name}"), values)));
    }
    facts.extend([
        of("depth (top_k)", &|run| run.top_k.to_string()),
        of("questions with an answer", &|run| run.questions.to_string()),
        of("questions without", &|run| run.unanswerable.to_string()),
        of("questions, hash", &|run| short(&run.questions_sha256)),
        of("gold, hash", &|run| short(&run.gold_sha256)),
        of("model", &|run| run.model.clone()),
        of("model, hash", &|run| run.model_sha256.as_deref().map_or_else(|| "shipped with pg_rag".to_owned(), short)),
        of("pg_rag", &|run| run.extension_version.clone()),
    ]);
    facts.extend(objects("", &runs, |run| &run.machine));
    facts.extend(objects("index: ", &runs, |run| &run.index_state));
    facts.extend([
        of("started", &|run| run.started.clone()),
        of("took", &|run| format!("{} s", number(Some(run.seconds), 1))),
    ]);
    shown(report, "What was run", &facts)
}

/// All settings.
pub fn settings(report: &Report) -> Markup {
    shown(report, "Settings", &objects("", &report.runs(), |run| &run.settings))
}

fn shown(report: &Report, label: &str, facts: &[Fact]) -> Markup {
    let runs = report.runs();
    let two = report.against.is_some();
    let mut columns: Vec<String> = vec![String::new()];
    if two {
        columns.push("differs".to_owned());
    }
    columns.extend(runs.iter().map(|run| run.label()));
    let rows = html! {
        tbody {
            @for (name, values) in facts {
                tr {
                    th scope="row" { (name) }
                    @if two { td { @if differs(values) { "≠" } } }
                    @for value in values { td { bdi { (cut(value, VALUE)) } } }
                }
            }
        }
    };
    table(label, &head(&columns, columns.len()), &rows)
}

fn differs(values: &[String]) -> bool {
    values.windows(2).any(|two| two[0] != two[1])
}

/// The keys that any run's object has, in the order they first come, those of objects within by their path.
fn objects(prefix: &str, runs: &[&Run], of: impl Fn(&Run) -> &Value) -> Vec<Fact> {
    let flat: Vec<Vec<(String, String)>> = runs
        .iter()
        .map(|run| {
            let mut pairs = Vec::new();
            flatten("", of(run), &mut pairs);
            pairs
        })
        .collect();
    let mut keys: Vec<&String> = Vec::new();
    for (key, _) in flat.iter().flatten() {
        if !keys.contains(&key) {
            keys.push(key);
        }
    }
    let value = |pairs: &Vec<(String, String)>, key: &String| {
        pairs.iter().find(|(k, _)| k == key).map_or_else(|| "–".to_owned(), |(_, value)| value.clone())
    };
    let fact = |key: &&String| {
        let name = if key.is_empty() { "value" } else { key.as_str() };
        (format!("{prefix}{name}"), flat.iter().map(|pairs| value(pairs, key)).collect())
    };
    keys.iter().map(fact).collect()
}

fn flatten(path: &str, value: &Value, pairs: &mut Vec<(String, String)>) {
    let below = |key: &str| if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
    match value {
        Value::Object(object) => object.iter().for_each(|(key, value)| flatten(&below(key), value, pairs)),
        Value::Null => pairs.push((path.to_owned(), "–".to_owned())),
        Value::String(text) if path.ends_with("sha256") => pairs.push((path.to_owned(), short(text))),
        Value::String(text) => pairs.push((path.to_owned(), text.clone())),
        other => pairs.push((path.to_owned(), other.to_string())),
    }
}

fn short(hash: &str) -> String {
    hash.chars().take(HASH).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn objects_are_rows_and_what_only_one_has_is_one_too() {
        let run = |settings: Value| Run { settings, ..Run::default() };
        let (one, other) = (run(json!({"a": {"b": 1}, "c": "x"})), run(json!({"c": "y", "d": [1, 2]})));
        let facts = objects("s ", &[&one, &other], |run| &run.settings);
        let fact = |name: &str, values: [&str; 2]| (name.to_owned(), values.map(str::to_owned).to_vec());
        assert_eq!(facts, [fact("s a.b", ["1", "–"]), fact("s c", ["x", "y"]), fact("s d", ["–", "[1,2]"])]);
        assert_eq!(objects("", &[&run(json!(3))], |run| &run.settings), [("value".to_owned(), vec!["3".to_owned()])]);
    }

    #[test]
    fn hashes_are_short() {
        let run = Run { index_state: json!({"passages_sha256": "0123456789abcdef"}), ..Run::default() };
        assert_eq!(objects("", &[&run], |run| &run.index_state)[0].1, ["0123456789ab"]);
        assert_eq!(short("äöü"), "äöü");
    }
}
