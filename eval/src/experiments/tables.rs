// SPDX-License-Identifier: PostgreSQL

//! The tables of the experiments, from their numbers.

use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Rows of a table, without its head.
type Rows = Vec<Vec<String>>;

/// All tables by name.
pub fn all(measured: &Value) -> Vec<(&'static str, String)> {
    vec![
        ("conditions", conditions(measured)),
        ("baselines", baselines(measured)),
        ("stages", stages(measured)),
        ("differences", differences(measured)),
        ("strata", strata(measured)),
        ("complementarity", complementarity(measured)),
        ("rrf_k", sweep(measured, "rrf_k")),
        ("candidate_k", sweep(measured, "candidate_k")),
        ("tuned", tuned(measured)),
        ("corpus", corpus(measured)),
        ("abstention", abstention(measured)),
        ("losses", losses(measured)),
    ]
}

/// Baselines that were missed, as `set mode: value, expected`.
pub fn missed(measured: &Value) -> Vec<String> {
    let checks = sets(measured).flat_map(|set| checks(set).into_iter().map(move |check| (name(set), check)));
    let missed = checks.filter(|(_, check)| !check.holds);
    missed.map(|(set, c)| format!("{set} {}: {:.4}, expected {:.4}", c.mode, c.found, c.expected)).collect()
}

fn sets(measured: &Value) -> impl Iterator<Item = &Value> {
    list(&measured["sets"])
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn name(set: &Value) -> String {
    text(&set["name"])
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// A number with so many digits; a dash where there is none.
fn number(value: &Value, digits: usize) -> String {
    value.as_f64().map_or_else(|| "–".to_owned(), |number| format!("{number:.digits$}"))
}

fn signed(value: &Value) -> String {
    value.as_f64().map_or_else(|| "–".to_owned(), |number| format!("{number:+.4}"))
}

/// A table; columns after the first so many are numbers.
fn table(head: &[&str], words: usize, rows: Rows) -> String {
    let mut out = format!("| {} |\n", head.join(" | "));
    let lines: Vec<&str> = (0..head.len()).map(|at| if at < words { "---" } else { "---:" }).collect();
    let _ = writeln!(out, "|{}|", lines.join("|"));
    rows.iter().for_each(|row| {
        let _ = writeln!(out, "| {} |", row.join(" | "));
    });
    out
}

fn conditions(measured: &Value) -> String {
    let environment = measured["environment"].as_object();
    let facts: Vec<String> =
        environment.into_iter().flatten().map(|(name, value)| format!("{name} {}", text(value))).collect();
    format!("On: {}. {} seconds in all.\n", facts.join(", "), number(&measured["seconds"], 0))
}

/// A baseline and what we found.
struct Check {
    mode: String,
    system: String,
    expected: f64,
    tolerance: f64,
    found: f64,
    holds: bool,
}

fn checks(set: &Value) -> Vec<Check> {
    let of = |baseline: &Value| {
        let mode = text(&baseline["mode"]);
        let exact = list(&set["exact"]).find(|run| run["variant"] == baseline["mode"])?;
        let found = exact["metrics"]["nDCG@10"].as_f64()?;
        let (expected, tolerance) = (baseline["value"].as_f64()?, baseline["tolerance"].as_f64()?);
        let better = baseline["may_be_better"] == true && found > expected;
        let holds = better || (found - expected).abs() <= tolerance + 1e-9;
        Some(Check { mode, system: text(&baseline["system"]), expected, tolerance, found, holds })
    };
    list(&set["baselines"]).filter_map(of).collect()
}

fn baselines(measured: &Value) -> String {
    let row = |set: &Value, c: Check| {
        let verdict = if c.holds { "" } else { "outside" };
        let difference = format!("{:+.4}", c.found - c.expected);
        let tolerance = format!("{:.3}", c.tolerance);
        let values =
            [format!("{:.4}", c.found), format!("{:.4}", c.expected), difference, tolerance, verdict.to_owned()];
        [name(set), c.mode, c.system].into_iter().chain(values).collect()
    };
    let rows = sets(measured).flat_map(|set| checks(set).into_iter().map(move |check| row(set, check))).collect();
    let head = ["set", "mode", "baseline", "nDCG@10", "baseline's", "difference", "tolerance", ""];
    table(&head, 3, rows)
}

const METRICS: [&str; 7] = ["Recall@1", "Recall@5", "Recall@10", "Recall@20", "MRR@10", "nDCG@5", "nDCG@10"];

fn stages(measured: &Value) -> String {
    let mut rows = Rows::new();
    for set in sets(measured) {
        for run in list(&set["stages"]) {
            let metrics = METRICS.iter().map(|metric| number(&run["metrics"][metric], 4));
            let times = [number(&run["p50_ms"], 1), number(&run["p95_ms"], 1)];
            rows.push([name(set), text(&run["variant"])].into_iter().chain(metrics).chain(times).collect());
        }
    }
    let head: Vec<&str> = ["set", "stages"].into_iter().chain(METRICS).chain(["p50 ms", "p95 ms"]).collect();
    table(&head, 2, rows)
}

fn differences(measured: &Value) -> String {
    let row = |set: &Value, d: &Value| {
        let interval = format!("{} to {}", signed(&d["interval_low"]), signed(&d["interval_high"]));
        let counts = format!("{} / {}", number(&d["wins"], 0), number(&d["losses"], 0));
        let detectable = number(&d["detectable_difference"], 4);
        let pair = format!("{} → {}", text(&d["first"]), text(&d["second"]));
        vec![
            name(set),
            pair,
            signed(&d["difference"]),
            interval,
            number(&d["p_randomization"], 4),
            counts,
            detectable,
            number(&d["first_result_churn"], 2),
        ]
    };
    let rows = sets(measured).flat_map(|set| list(&set["differences"]).map(move |d| row(set, d))).collect();
    let head = ["set", "from → to", "nDCG@10", "95 %", "p", "wins / losses", "detectable", "other first results"];
    table(&head, 2, rows)
}

fn strata(measured: &Value) -> String {
    let mut rows = Rows::new();
    for set in sets(measured) {
        let mut of: BTreeMap<String, (String, BTreeMap<String, String>)> = BTreeMap::new();
        for row in list(&set["strata"]) {
            let (questions, values) = of.entry(text(&row["stratum"])).or_default();
            *questions = number(&row["questions"], 0);
            values.insert(text(&row["variant"]), number(&row["value"], 3));
        }
        for (stratum, (questions, values)) in of {
            let value = |variant: &str| values.get(variant).cloned().unwrap_or_else(|| "–".to_owned());
            let variants = ["E1 dense", "E2 bm25", "E3 rrf", "E3 convex"].map(value);
            rows.push([name(set), stratum, questions].into_iter().chain(variants).collect());
        }
    }
    table(&["set", "stratum", "questions", "dense", "bm25", "rrf", "convex"], 2, rows)
}

fn complementarity(measured: &Value) -> String {
    let row = |set: &Value, c: &Value| {
        let counts = ["only_dense", "only_bm25", "in_both", "in_neither"].map(|key| number(&c[key], 0));
        let items: f64 =
            ["only_dense", "only_bm25", "in_both", "in_neither"].iter().filter_map(|k| c[k].as_f64()).sum();
        let share = |key: &str| format!("{:.0} %", 100.0 * c[key].as_f64().unwrap_or_default() / items.max(1.0));
        let shares = format!("{}, {}", share("only_dense"), share("only_bm25"));
        let jaccard = number(&c["jaccard"], 3);
        [name(set), number(&c["k"], 0)].into_iter().chain(counts).chain([shares, jaccard]).collect()
    };
    let rows = sets(measured).flat_map(|set| list(&set["complementarity"]).map(move |c| row(set, c))).collect();
    let head = ["set", "k", "only dense", "only bm25", "both", "neither", "only one leg", "Jaccard"];
    table(&head, 1, rows)
}

/// A row for each set, a column for each value of the setting; the best is marked.
fn sweep(measured: &Value, setting: &str) -> String {
    let mut values: Vec<String> = Vec::new();
    for row in sets(measured).flat_map(|set| list(&set[setting])) {
        let value = text(&row["setting_value"]);
        if !values.contains(&value) {
            values.push(value);
        }
    }
    let mut rows = Rows::new();
    for set in sets(measured).filter(|set| list(&set[setting]).count() > 0) {
        for metric in ["ndcg_10", "recall_100"] {
            let of: Vec<&Value> = list(&set[setting]).map(|row| &row[metric]).collect();
            let best = of.iter().filter_map(|v| v.as_f64()).fold(0.0, f64::max);
            let shown = of.iter().map(|value| match value.as_f64() == Some(best) {
                true => format!("**{}**", number(value, 4)),
                false => number(value, 4),
            });
            let metric = if metric == "ndcg_10" { "nDCG@10" } else { "Recall@100" };
            rows.push([name(set), metric.to_owned()].into_iter().chain(shown).collect());
        }
    }
    let head: Vec<&str> = ["set", ""].into_iter().chain(values.iter().map(String::as_str)).collect();
    table(&head, 2, rows)
}

fn tuned(measured: &Value) -> String {
    let mut rows = Rows::new();
    for set in sets(measured) {
        let all = list(&set["tuned"]).map(|row| ("rrf or convex".to_owned(), row));
        let by = list(&set["tuned_by"]).map(|row| (text(&row["method"]), row));
        for (method, row) in all.chain(by) {
            let settings = row["settings"].as_object().into_iter().flatten();
            let settings: Vec<String> = settings
                .filter(|(key, _)| *key != "fusion")
                .map(|(key, value)| format!("{key} {}", number(value, if key == "rrf_k" { 0 } else { 2 })))
                .collect();
            let chosen = format!("{} {}", text(&row["settings"]["fusion"]), settings.join(", "));
            let base = if method == "rrf or convex" { "rrf 60" } else { "convex 0.7" };
            rows.push(vec![
                name(set),
                method,
                chosen,
                number(&row["held_out"], 4),
                format!("{} ({base})", number(&row["baseline"], 4)),
                signed(&row["difference"]),
                number(&row["p_randomization"], 4),
            ]);
        }
    }
    table(&["set", "among", "all questions choose", "held out", "in force", "difference", "p"], 3, rows)
}

fn corpus(measured: &Value) -> String {
    let row = |set: &Value| {
        let said = |stage: &str, key: &str, digits| {
            let row = list(&set["diagnosis"]).find(|row| row["stage"] == stage);
            row.map_or_else(|| "–".to_owned(), |row| number(&row[key], digits))
        };
        let counts = ["questions", "documents", "passages"].map(|key| number(&set[key], 0));
        let contenders = [said("dense", "contenders", 1), said("bm25", "contenders", 1)];
        let rest = [
            said("final", "unjudged", 2),
            said("final", "near_duplicates", 2),
            number(&set["repeated"]["documents"], 0),
        ];
        [name(set)].into_iter().chain(counts).chain(contenders).chain(rest).collect()
    };
    let head = [
        "set",
        "questions",
        "documents",
        "passages",
        "contenders, dense",
        "contenders, bm25",
        "unjudged@10",
        "repeats of gold",
        "repeated documents",
    ];
    table(&head, 1, sets(measured).map(row).collect())
}

fn abstention(measured: &Value) -> String {
    let with = sets(measured).filter(|set| set["unanswerable"].as_f64().is_some_and(|n| n > 0.0));
    let row = |set: &Value| {
        let variants = list(&set["stages"]).map(|run| number(&run["abstention_auc"], 3));
        [name(set), number(&set["questions"], 0), number(&set["unanswerable"], 0)].into_iter().chain(variants).collect()
    };
    table(&["set", "with an answer", "without", "dense", "bm25", "rrf", "convex"], 1, with.map(row).collect())
}

fn losses(measured: &Value) -> String {
    let mut rows = Rows::new();
    for set in sets(measured).filter(|set| set["open"] == false) {
        for loss in list(&set["losses"]) {
            rows.push(vec![
                name(set),
                text(&loss["lost_by"]),
                number(&loss["gold"], 0),
                number(&loss["behind_structure"], 0),
            ]);
        }
    }
    table(&["set", "lost by", "gold", "behind contents, index, glossary or rights"], 2, rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn measured(found: f64) -> Value {
        let exact = json!([{"variant": "dense", "metrics": {"nDCG@10": found}}, {"variant": "bm25", "metrics": {"nDCG@10": 0.9}}]);
        let baseline = |mode: &str, better: bool| json!({"mode": mode, "system": mode, "value": 0.5, "tolerance": 0.005, "may_be_better": better});
        let sweep = json!([{"setting_value": 10, "ndcg_10": 0.5, "recall_100": 1.0}, {"setting_value": 60, "ndcg_10": 0.6, "recall_100": 1.0}]);
        json!({"environment": {"cores": "2"}, "seconds": 3.0, "sets": [{
            "name": "one", "open": true, "exact": exact, "rrf_k": sweep,
            "baselines": [baseline("dense", false), baseline("bm25", true)],
        }]})
    }

    #[test]
    fn every_table_is_even() {
        for (name, table) in all(&measured(0.5)) {
            let bars: Vec<usize> = table.lines().map(|line| line.matches('|').count()).collect();
            assert!(bars.windows(2).all(|w| w[0] == w[1]), "{name} is ragged:\n{table}");
        }
    }

    #[test]
    fn the_same_computation_may_not_be_better_and_another_may() {
        assert_eq!(missed(&measured(0.505)), Vec::<String>::new());
        assert_eq!(missed(&measured(0.51)), ["one dense: 0.5100, expected 0.5000"]);
        assert!(
            baselines(&measured(0.51))
                .contains("| one | dense | dense | 0.5100 | 0.5000 | +0.0100 | 0.005 | outside |")
        );
    }

    #[test]
    fn the_best_of_a_sweep_is_marked() {
        assert!(
            sweep(&measured(0.5), "rrf_k")
                .ends_with("| one | nDCG@10 | 0.5000 | **0.6000** |\n| one | Recall@100 | **1.0000** | **1.0000** |\n")
        );
    }
}
