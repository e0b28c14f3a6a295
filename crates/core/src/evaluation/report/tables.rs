// SPDX-License-Identifier: PostgreSQL

//! Tables: means of all metrics, groups of questions, and the questions to look at.

use super::measured::{Pair, first_gold, pairs};
use super::{Asked, LISTED, MAIN, Report, name};
use crate::evaluation::measure::names;
use crate::evaluation::significance::Difference;
use crate::html::plot::{Series, bars};
use crate::html::{cut, head, number, said, signed, table};
use crate::rank::trace::Stage;
use maud::{Markup, html};
use std::cmp::Ordering;

/// Strata that are shown, at most.
const STRATA: usize = 30;

/// Characters of a question that are shown.
const TEXT: usize = 240;

/// Differences of p below this are no news.
const SMALLEST_P: f64 = 0.001;

/// What a difference is told by.
const DIFFERENCE: [&str; 4] = ["difference", "95 % interval", "p", "better / worse"];

/// A cell of a number.
fn cell(text: &str) -> Markup {
    html! { td class="n" { (text) } }
}

/// Means of all metrics: with one run a column for each stage, with two a row for each with its difference.
pub fn metrics(report: &Report) -> Option<Markup> {
    let stages = report.final_first();
    if stages.is_empty() {
        return None;
    }
    Some(match &report.against {
        None => means(report, &stages),
        Some(_) => differences(report, &stages),
    })
}

fn means(report: &Report, stages: &[Stage]) -> Markup {
    let all = names(Stage::TopK);
    let columns: Vec<&str> = std::iter::once("metric").chain(stages.iter().map(|stage| name(*stage))).collect();
    let rows = html! {
        tbody {
            @for metric in &all {
                tr {
                    th scope="row" { (metric) }
                    @for stage in stages { (cell(&number(report.run.mean(None, *stage, metric).map(|mean| mean.value), 4))) }
                }
            }
        }
    };
    html! {
        p { "Means over the " (report.run.questions) " questions with an answer. Stages before the last are told by what they bring along only." }
        (table("Metrics", &head(&columns, 1), &rows))
    }
}

fn differences(report: &Report, stages: &[Stage]) -> Markup {
    let runs = report.runs();
    let mut columns = vec!["metric".to_owned()];
    columns.extend(runs.iter().map(|run| run.label()));
    columns.extend(DIFFERENCE.map(str::to_owned));
    let width = columns.len();
    let rows = html! {
        @for stage in stages {
            tbody {
                tr { th class="group" scope="rowgroup" colspan=(width) { (name(*stage)) } }
                @for metric in names(*stage) {
                    tr {
                        th scope="row" { (metric) }
                        @for run in &runs { (cell(&number(run.mean(None, *stage, &metric).map(|mean| mean.value), 4))) }
                        (told(difference(report, None, *stage, &metric)))
                    }
                }
            }
        }
    };
    html! {
        p {
            "Means over the questions with an answer, and the difference question by question. Bold: the interval does not contain 0. An interval that does is "
            "no proof of equality."
        }
        (table("Metrics", &head(&columns, 1), &rows))
    }
}

fn difference<'a>(report: &'a Report, stratum: Option<&str>, stage: Stage, metric: &str) -> Option<&'a Difference> {
    let against = report.against.as_ref()?;
    let fits = |c: &&super::Compared| c.stratum.as_deref() == stratum && c.stage == stage && c.metric == metric;
    against.differences.iter().find(fits).map(|compared| &compared.difference)
}

/// The cells of [`DIFFERENCE`].
fn told(difference: Option<&Difference>) -> Markup {
    html! {
        @match difference {
            None => @for _ in DIFFERENCE { (cell("–")) },
            Some(d) => {
                td class={ "n" @if d.interval.0 > 0.0 || d.interval.1 < 0.0 { " strong" } } { (signed(d.difference, 4)) }
                (cell(&format!("{} to {}", signed(d.interval.0, 4), signed(d.interval.1, 4))))
                (cell(&if d.p_randomization < SMALLEST_P { format!("< {SMALLEST_P}") } else { number(Some(d.p_randomization), 3) }))
                (cell(&format!("{} / {}", d.wins, d.losses)))
            },
        }
    }
}

/// The main metric of all questions and of each stratum, as bars and numbers.
pub fn strata(report: &Report) -> Option<Markup> {
    let runs = report.runs();
    let mut strata: Vec<(Option<&str>, usize)> = Vec::new();
    for mean in runs.iter().flat_map(|run| &run.means).filter(|m| m.stage == Stage::TopK && m.metric == MAIN) {
        match strata.iter_mut().find(|(stratum, _)| *stratum == mean.stratum.as_deref()) {
            Some((_, questions)) => *questions = mean.questions.max(*questions),
            None => strata.push((mean.stratum.as_deref(), mean.questions)),
        }
    }
    // Nothing to group where all questions are one group.
    if strata.iter().all(|(stratum, _)| stratum.is_none()) {
        return None;
    }
    // All questions first, then the largest.
    strata.sort_by(|a, b| a.0.is_some().cmp(&b.0.is_some()).then(b.1.cmp(&a.1)).then(a.0.cmp(&b.0)));
    let left_out = strata.len().saturating_sub(STRATA + 1);
    strata.truncate(STRATA + 1);
    let mut columns = vec!["stratum".to_owned(), "questions".to_owned(), format!("{MAIN}, 0 to 1")];
    columns.extend(runs.iter().map(|run| run.label()));
    if report.against.is_some() {
        columns.extend(DIFFERENCE.map(str::to_owned));
    }
    // The run itself is solid, the other one an outline.
    let series: &[Series] = if runs.len() == 2 { &[Series::Second, Series::First] } else { &[Series::First] };
    let rows = html! {
        tbody {
            @for (stratum, questions) in &strata {
                @let values: Vec<Option<f64>> =
                    runs.iter().map(|run| run.mean(*stratum, Stage::TopK, MAIN).map(|mean| mean.value)).collect();
                @let drawn: Vec<(Series, Option<f64>)> = series.iter().copied().zip(values.iter().copied()).collect();
                tr {
                    th scope="row" { @match stratum { None => "all", Some(name) => (said(&cut(name, TEXT))) } }
                    (cell(&questions.to_string()))
                    td class="bars" { (bars(&drawn, 1.0)) }
                    @for value in &values { (cell(&number(*value, 4))) }
                    @if report.against.is_some() { (told(difference(report, *stratum, Stage::TopK, MAIN))) }
                }
            }
        }
    };
    Some(html! {
        p { "A question may be in several groups." @if left_out > 0 { " The " (left_out) " smallest are left out." } }
        (table("Groups of questions", &head(&columns, 1), &rows))
    })
}

/// The questions that one looks at first.
pub fn questions(report: &Report) -> Option<Markup> {
    match &report.against {
        None => worst(report),
        Some(_) => changed(report),
    }
}

fn rank(rank: Option<usize>) -> String {
    rank.map_or_else(|| "none".to_owned(), |rank| rank.to_string())
}

/// Greater first; what is no number last.
fn descending(a: f64, b: f64) -> Ordering {
    b.partial_cmp(&a).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
}

fn about(asked: &Asked) -> Markup {
    html! {
        th class="key" scope="row" { bdi { code { (cut(&asked.key, TEXT)) } } }
        td class="text" {
            (said(&cut(&asked.text, TEXT)))
            @if !asked.strata.is_empty() { " " span class="quiet" { "(" (said(&cut(&asked.strata.join(", "), TEXT))) ")" } }
        }
    }
}

/// With one run: those that are not as good as can be, the worst first.
fn worst(report: &Report) -> Option<Markup> {
    let measured =
        report.run.asked.iter().filter_map(|asked| Some((asked, first_gold(asked), asked.measured.as_ref()?.value?)));
    let all: Vec<(&Asked, Option<usize>, f64)> = measured.collect();
    // A sum of fractions that is 1 may not be in its last bit.
    let mut short: Vec<&(&Asked, Option<usize>, f64)> =
        all.iter().filter(|(_, _, value)| *value < 1.0 - 1e-9).collect();
    let last = |rank: &Option<usize>| rank.unwrap_or(usize::MAX);
    short.sort_by(|a, b| descending(b.2, a.2).then(last(&b.1).cmp(&last(&a.1))));
    if all.is_empty() {
        return None;
    }
    let columns = ["question", "text", "first gold", MAIN];
    let rows = html! {
        tbody {
            @for (asked, first, value) in short.iter().take(LISTED) {
                tr { (about(asked)) (cell(&rank(*first))) (cell(&number(Some(*value), 4))) }
            }
        }
    };
    Some(html! {
        p {
            (short.len()) " of " (all.len()) " questions have an " (MAIN) " below 1."
            @if short.len() > LISTED { " The worst " (LISTED) " are listed, " (short.len() - LISTED) " are left out." }
        }
        @if !short.is_empty() { (table("Questions that went worst", &head(&columns, 2), &rows)) }
    })
}

/// With two: those whose value or first rank changed, the most first.
fn changed(report: &Report) -> Option<Markup> {
    let pairs = pairs(report);
    let mut changed: Vec<&Pair<'_>> =
        pairs.iter().filter(|p| p.difference() != 0.0 || p.ranks[0] != p.ranks[1]).collect();
    changed.sort_by(|a, b| descending(a.difference().abs(), b.difference().abs()));
    if pairs.is_empty() {
        return None;
    }
    let labels: Vec<String> = report.runs().iter().map(|run| run.label()).collect();
    let mut columns = vec!["question".to_owned(), "text".to_owned()];
    columns.extend(labels.iter().map(|label| format!("first gold, {label}")));
    columns.extend(labels.iter().map(|label| format!("{MAIN}, {label}")));
    columns.push("difference".to_owned());
    let rows = html! {
        tbody {
            @for pair in changed.iter().take(LISTED) {
                tr {
                    (about(pair.asked))
                    @for first in pair.ranks { (cell(&rank(first))) }
                    @for value in pair.values { (cell(&number(value, 4))) }
                    (cell(&signed(pair.difference(), 4)))
                }
            }
        }
    };
    Some(html! {
        p {
            (changed.len()) " of " (pairs.len()) " questions have another " (MAIN) " or another rank of their first gold."
            @if changed.len() > LISTED { " Those that changed most are listed, " (changed.len() - LISTED) " are left out." }
        }
        @if !changed.is_empty() { (table("Questions that changed most", &head(&columns, 2), &rows)) }
    })
}
