// SPDX-License-Identifier: PostgreSQL

//! Pages of made-up runs: what is in them, and that nothing can break them.

use super::*;
use crate::evaluation::measure::{Resolved, measure};
use crate::evaluation::order::Found;
use crate::evaluation::significance::{Pair, compare};
use crate::html::check;
use serde_json::json;

const HOSTILE: &str = "</title><script>alert(1)</script>]]>&lt;\u{1}\u{b}\u{202e}<!-- \"'";

/// A question whose gold is chunk 1, with the chunks that the final ranking has.
fn asked(id: i64, ranked: &[i64]) -> (Asked, Vec<(Stage, String, f64)>) {
    let judged = Judged::new(&[Resolved { whole: false, grade: 1, document: 0, chunks: vec![1] }]);
    let list: Vec<Found> = (0..)
        .zip(ranked)
        .map(|(n, chunk)| Found { chunk: *chunk, document: 0, key: [*chunk as u8; 16], score: 100.0 - f64::from(n) })
        .collect();
    let mut lists = BTreeMap::from([(Stage::Bm25, list.clone()), (Stage::TopK, list)]);
    let values = measure(&id.to_string(), &judged, &mut lists);
    let values: Vec<(Stage, String, f64)> = values.into_iter().map(|v| (v.stage, v.metric, v.value)).collect();
    let value =
        values.iter().find(|(stage, metric, _)| *stage == Stage::TopK && metric == MAIN).map(|(_, _, value)| *value);
    let asked = Asked {
        id,
        key: format!("q{id}"),
        text: format!("what is {id}?"),
        strata: vec![if id % 2 == 0 { "even" } else { "odd" }.to_owned()],
        measured: Some(Measured { judged, lists, value }),
        top_score: ranked.first().map(|_| 1.0 / id as f64),
        times: [0.0, 0.0, 1.0, 0.5, 1.5 + id as f64],
    };
    (asked, values)
}

/// A run of questions with these final rankings.
fn run(id: i64, rankings: &[&[i64]]) -> Run {
    let mut sums: Vec<(Option<String>, Stage, String, f64, usize)> = Vec::new();
    let mut all = Vec::new();
    for (number, ranked) in (1..).zip(rankings) {
        let (asked, values) = asked(number, ranked);
        for (stage, metric, value) in values {
            for stratum in [None, Some(asked.strata[0].clone())] {
                match sums.iter_mut().find(|s| (&s.0, s.1, &s.2) == (&stratum, stage, &metric)) {
                    Some(sum) => (sum.3, sum.4) = (sum.3 + value, sum.4 + 1),
                    None => sums.push((stratum, stage, metric.clone(), value, 1)),
                }
            }
        }
        all.push(asked);
    }
    Run {
        id,
        name: Some(format!("name {id}")),
        profile: "default 1".to_owned(),
        settings: json!({"mode": "bm25", "rrf_k": 60 + id}),
        top_k: 100,
        questions: rankings.len(),
        index_state: json!({"chunks": 3, "lexical": {"segments": 1}}),
        machine: json!({"processors": 2}),
        means: sums
            .into_iter()
            .map(|(stratum, stage, metric, sum, n)| Mean {
                stratum,
                stage,
                metric,
                value: sum / n as f64,
                questions: n,
            })
            .collect(),
        asked: all,
        ..Run::default()
    }
}

fn one(run: Run) -> Report {
    Report { question_set: "made up".to_owned(), run, against: None }
}

fn two(before: Run, after: Run, changed: &[&str]) -> Report {
    let value = |run: &Run| -> Vec<f64> { run.asked.iter().filter_map(|a| a.measured.as_ref()?.value).collect() };
    let pairs = value(&before).into_iter().zip(value(&after)).enumerate();
    let pairs: Vec<Pair> = pairs.map(|(n, (first, second))| Pair { cluster: n.to_string(), first, second }).collect();
    let differences = compare(&pairs, &mut || Ok(()))
        .expect("not interrupted")
        .map(|difference| Compared { stratum: None, stage: Stage::TopK, metric: MAIN.to_owned(), difference })
        .into_iter()
        .collect();
    let changed = changed.iter().map(|what| (*what).to_owned()).collect();
    Report {
        question_set: "made up".to_owned(),
        run: after,
        against: Some(Against { run: before, changed, differences }),
    }
}

fn checked(report: &Report) -> String {
    let page = report.page();
    check(&page).expect("a well-formed page");
    let ids: Vec<&str> = page.split(" id=\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
    let distinct: std::collections::BTreeSet<&str> = ids.iter().copied().collect();
    assert_eq!(ids.len(), distinct.len(), "an id stands twice in {ids:?}");
    for link in page.split("href=\"#").skip(1).filter_map(|rest| rest.split('"').next()) {
        assert!(distinct.contains(link), "a link leads to {link}");
    }
    page
}

/// The cells of the row that begins with this head.
fn cells(page: &str, name: &str) -> Vec<String> {
    let row = page.split_once(&format!("<th scope=\"row\">{name}</th>")).expect(name).1;
    let row = row.split_once("</tr>").expect("a row ends").0;
    let text = |cell: &str| cell.split('<').filter_map(|part| part.split_once('>')).map(|(_, text)| text).collect();
    row.split("</td>").map(text).filter(|text: &String| !text.is_empty()).collect()
}

#[test]
fn one_run_tells_its_means() {
    let page = checked(&one(run(7, &[&[1], &[2, 1], &[2, 3]])));
    assert_eq!(cells(&page, "MRR@10"), ["0.5000", "–"], "final ranking, then the leg, which has no MRR");
    assert_eq!(cells(&page, "Recall@10"), ["0.6667", "0.6667"]);
    assert!(page.contains("2 of 3 questions have an nDCG@10 below 1."), "{page}");
    assert!(page.contains("BM25 leg: 0.333 at 1, 0.667 at 5, 0.667 at 10, 0.667 at 100."), "the curve is told");
    assert!(
        page.contains("run 7: 1 at 1, 1 at 2–3, 0 at 4–5, 0 at 6–10, 0 at 11–20, 0 at 21–50, 0 at 51+, 1 at none.")
    );
    assert!(!page.contains("≠") && !page.contains("against"), "nothing is compared");
    assert!(!page.contains("id=\"unanswerable\""), "there are no questions without an answer");
}

#[test]
fn two_runs_are_beside_each_other() {
    let before = run(1, &[&[1], &[2, 1], &[2, 3], &[1], &[2]]);
    let after = run(2, &[&[1], &[1], &[2, 1], &[2], &[2]]);
    let page = checked(&two(before, after, &[]));
    let ndcg = cells(&page, "nDCG@10");
    let second = 1.0 / 3f64.log2();
    assert_eq!(ndcg[..2], [format!("{:.4}", (2.0 + second) / 5.0), format!("{:.4}", (2.0 + second) / 5.0)]);
    assert_eq!((ndcg[2].as_str(), ndcg[5].as_str()), ("0.0000", "2 / 1"));
    assert_eq!(cells(&page, "setting rrf_k"), ["≠", "61", "62"]);
    assert_eq!(cells(&page, "profile"), ["default 1", "default 1"]);
    for (moved, count) in [
        ("gained: only now in the list", "1"),
        ("better: further up", "1"),
        ("same rank", "1"),
        ("worse: further down", "0"),
        ("lost: no more in the list", "1"),
        ("in neither list", "1"),
    ] {
        assert_eq!(cells(&page, moved), [count], "{moved}");
    }
    assert!(page.contains("3 of 5 questions have another nDCG@10"));
    assert!(!page.contains("did not see the same"));
}

#[test]
fn runs_that_did_not_see_the_same_say_so_before_any_number() {
    let page = checked(&two(run(1, &[&[1]]), run(2, &[&[2]]), &["the gold", "the passages"]));
    let at = page.find("Between them changed: the gold, the passages.").expect("said");
    assert!(at < page.find("<table").expect("a table"));
}

#[test]
fn nothing_said_by_users_is_markup() {
    let mut hostile = run(1, &[&[1], &[2]]);
    hostile.name = Some(HOSTILE.to_owned());
    hostile.profile = HOSTILE.to_owned();
    hostile.settings = json!({HOSTILE: {HOSTILE: HOSTILE}});
    hostile.index_state = json!(HOSTILE);
    hostile.machine = json!([HOSTILE]);
    for asked in &mut hostile.asked {
        asked.key = HOSTILE.to_owned();
        asked.text = HOSTILE.repeat(20);
        asked.strata = vec![HOSTILE.to_owned()];
    }
    hostile.means.iter_mut().filter(|m| m.stratum.is_some()).for_each(|m| m.stratum = Some(HOSTILE.to_owned()));
    let mut report = two(hostile.clone(), hostile, &[]);
    report.question_set = HOSTILE.to_owned();
    let page = checked(&report);
    assert!(!page.contains("<script") && page.contains("&lt;script&gt;"));
    report.against = None;
    checked(&report);
}

#[test]
fn values_that_are_no_numbers_break_nothing() {
    let mut strange = run(1, &[&[1], &[2]]);
    for (asked, value) in strange.asked.iter_mut().zip([f64::NAN, f64::INFINITY]) {
        asked.times = [value; 5];
        asked.top_score = Some(value);
        asked.measured.iter_mut().for_each(|measured| measured.value = Some(value));
    }
    strange.means.iter_mut().for_each(|mean| mean.value = f64::NAN);
    strange.top_k = usize::MAX;
    strange.seconds = f64::NEG_INFINITY;
    checked(&one(strange.clone()));
    checked(&two(run(2, &[&[1], &[1]]), strange, &[]));
}

#[test]
fn a_run_without_questions_says_so() {
    for report in [one(run(1, &[])), two(run(1, &[]), run(2, &[]), &[]), two(run(1, &[&[1]]), run(2, &[]), &[])] {
        let page = checked(&report);
        assert!(page.contains("so there is nothing to measure"));
        assert!(page.contains("id=\"what\"") && page.contains("id=\"settings\""));
    }
}

#[test]
fn a_run_without_lists_has_no_curves() {
    let mut bare = run(1, &[&[1]]);
    bare.asked.iter_mut().filter_map(|asked| asked.measured.as_mut()).for_each(|measured| measured.lists.clear());
    let page = checked(&one(bare));
    assert!(!page.contains("id=\"recall\"") && page.contains("1 at none"));
}

#[test]
fn questions_without_an_answer_are_told_by_their_scores() {
    let mut with = run(1, &[&[1], &[1], &[2]]);
    for (id, top_score) in [(10, Some(0.4)), (11, None)] {
        with.asked.push(Asked { id, key: format!("q{id}"), top_score, ..Asked::default() });
    }
    with.unanswerable = 2;
    // Best scores of the others are 1, 1/2 and 1/3: two of three are above 0.4.
    let page = checked(&one(with.clone()));
    assert!(page.contains("In 66.7 % of all pairs of run 1"), "{page}");
    assert_eq!(page.matches("id=\"scores-").count() / 2, 1, "title and description of one plot");
    checked(&two(with.clone(), with, &[]));
}

#[test]
fn long_lists_are_cut_and_say_so() {
    let lost: Vec<&[i64]> = vec![&[2]; 60];
    let found: Vec<&[i64]> = vec![&[1]; 60];
    let page = checked(&one(run(1, &lost)));
    assert!(page.contains("60 of 60 questions have an nDCG@10 below 1. The worst 50 are listed, 10 are left out."));
    let page = checked(&two(run(1, &lost), run(2, &found), &[]));
    assert!(page.contains("10 are left out."));
    assert!(page.contains("q1, q2, q3, q4, q5 and 55 more"), "one dot for all of them");
    assert!(page.contains("&lt; 0.001"), "p is not told as 0");
    let mut many = run(1, &[&[1]]);
    let mean = many.means.iter().find(|m| m.stage == Stage::TopK && m.metric == MAIN).cloned().expect("a mean");
    many.means.extend((0..200).map(|n| Mean { stratum: Some(format!("stratum {n}")), ..mean.clone() }));
    assert!(checked(&one(many)).contains("The 171 smallest are left out."));
}

#[test]
fn the_same_runs_give_the_same_page() {
    let report = two(run(1, &[&[1], &[2, 1]]), run(2, &[&[2, 1], &[1]]), &[]);
    assert_eq!(report.page(), report.clone().page());
}
