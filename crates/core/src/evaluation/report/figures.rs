// SPDX-License-Identifier: PostgreSQL

//! What is seen better than read: recall by depth, the place of the first gold, times, and the scores of questions without an answer.
//!
//! Every plot says its numbers in words too, and a table stands beside those whose numbers matter.

use super::measured::{DEPTH, Move, distribution, first_gold, pairs, quantile, recall, separation, sorted};
use super::{Report, Run, TIMES, name};
use crate::html::plot::{Axis, Chart, Mark, Series, legend};
use crate::html::{head, number, table};
use crate::rank::trace::Stage;
use maud::{Markup, html};
use std::collections::BTreeMap;

/// Depths that the description of a curve tells.
const TOLD: [usize; 4] = [1, 5, 10, 100];

/// Shares of searches whose time is told.
const QUANTILES: [(f64, &str); 5] = [(0.5, "p50"), (0.9, "p90"), (0.95, "p95"), (0.99, "p99"), (1.0, "longest")];

/// Ranks that are counted together: the last of each, and its name.
const RANKS: [(usize, &str); 7] =
    [(1, "1"), (3, "2–3"), (5, "4–5"), (10, "6–10"), (20, "11–20"), (50, "21–50"), (usize::MAX, "51+")];

/// Bars of a histogram of scores.
const BINS: usize = 12;

/// The runs with what they are drawn as: the run itself solid, the other one dashed or an outline.
fn drawn(report: &Report) -> Vec<(Series, &Run)> {
    let other = report.against.iter().map(|against| (Series::Second, &against.run));
    other.chain([(Series::First, &report.run)]).collect()
}

fn named(runs: &[(Series, &Run)], mark: Mark) -> Markup {
    let entries: Vec<(Series, String)> = runs.iter().map(|(series, run)| (*series, run.label())).collect();
    legend(mark, &entries)
}

/// Recall at each depth: with one run its stages in one plot, with two a plot for each stage.
pub fn recall_curves(report: &Report) -> Option<Markup> {
    let stages = report.final_first();
    let figures: Vec<Markup> = match &report.against {
        None => {
            let curves: Vec<(String, Series, Vec<f64>)> = stages
                .iter()
                .map(|stage| (name(*stage).to_owned(), of_stage(*stage), recall(&report.run, *stage)))
                .filter(|(_, _, curve)| !curve.is_empty())
                .collect();
            figure("recall-all", "Recall@k of each stage", &curves).into_iter().collect()
        }
        Some(_) => {
            let of = |stage: &Stage| {
                let curves: Vec<(String, Series, Vec<f64>)> = drawn(report)
                    .into_iter()
                    .map(|(series, run)| (run.label(), series, recall(run, *stage)))
                    .filter(|(_, _, curve)| !curve.is_empty())
                    .collect();
                figure(&format!("recall-{}", stage.name()), &format!("Recall@k, {}", name(*stage)), &curves)
            };
            stages.iter().filter_map(of).collect()
        }
    };
    match figures.is_empty() {
        true => None,
        false => Some(html! {
            p { "The share of relevant results among the first k of each stage. What no leg brings, nothing later brings back." }
            div class="figures" { @for figure in &figures { (figure) } }
        }),
    }
}

fn of_stage(stage: Stage) -> Series {
    match stage {
        Stage::TopK => Series::First,
        Stage::Dense => Series::Second,
        Stage::Bm25 => Series::Third,
        Stage::Fusion | Stage::Document => Series::Fourth,
    }
}

fn figure(id: &str, title: &str, curves: &[(String, Series, Vec<f64>)]) -> Option<Markup> {
    if curves.is_empty() {
        return None;
    }
    let mut chart = Chart::new(Axis::log("k", 1.0, DEPTH as f64), Axis::share("Recall@k"));
    let mut about = Vec::new();
    for (name, series, curve) in curves {
        let points: Vec<(f64, f64)> = (1..).zip(curve).map(|(k, value)| (f64::from(k), *value)).collect();
        chart.line(*series, &points, false);
        let at = TOLD.map(|k| format!("{} at {k}", number(curve.get(k - 1).copied(), 3)));
        about.push(format!("{name}: {}.", at.join(", ")));
    }
    let entries: Vec<(Series, String)> = curves.iter().map(|(name, series, _)| (*series, name.clone())).collect();
    Some(chart.figure(id, title, &about.join(" "), &legend(Mark::Line, &entries)))
}

/// Where the first gold of each question stands; with two runs also how it moved.
pub fn ranks(report: &Report) -> Option<Markup> {
    let runs = drawn(report);
    let counted: Vec<(Series, Vec<usize>)> = runs.iter().map(|(series, run)| (*series, counts(run))).collect();
    if counted.iter().all(|(_, counts)| counts.iter().sum::<usize>() == 0) {
        return None;
    }
    let names: Vec<&str> = RANKS.iter().map(|(_, name)| *name).chain(["none"]).collect();
    let most = counted.iter().flat_map(|(_, counts)| counts).copied().max().unwrap_or(0);
    let mut chart =
        Chart::new(Axis::named("rank of the first gold", &names), Axis::linear("questions", 0.0, most as f64));
    let width = 0.8 / counted.len() as f64;
    for (nth, (series, counts)) in counted.iter().enumerate() {
        for (at, count) in counts.iter().enumerate() {
            let left = at as f64 - 0.4 + nth as f64 * width;
            chart.column(
                *series,
                (left, left + width),
                *count as f64,
                &format!("rank {}: {count} questions", names[at]),
            );
        }
    }
    let about: Vec<String> = runs
        .iter()
        .zip(&counted)
        .map(|((_, run), (_, counts))| {
            let each: Vec<String> =
                names.iter().zip(counts).map(|(name, count)| format!("{count} at {name}")).collect();
            format!("{}: {}.", run.label(), each.join(", "))
        })
        .collect();
    let columns = chart.figure("ranks-count", "Rank of the first gold", &about.join(" "), &named(&runs, Mark::Box));
    Some(html! {
        p { "The rank of the first relevant result of each question in the final ranking; none: it is not in the list." }
        div class="figures" { (columns) (moves(report)) }
        (moved(report))
    })
}

fn counts(run: &Run) -> Vec<usize> {
    let mut counts = vec![0; RANKS.len() + 1];
    for asked in run.asked.iter().filter(|asked| asked.measured.is_some()) {
        let at = first_gold(asked).and_then(|rank| RANKS.iter().position(|(last, _)| rank <= *last));
        counts[at.unwrap_or(RANKS.len())] += 1;
    }
    counts
}

/// The rank in one run over that in the other.
fn moves(report: &Report) -> Markup {
    let Some(against) = &report.against else { return Markup::default() };
    let depth = report.run.top_k.max(against.run.top_k).max(2);
    let (before, after) = (against.run.label(), report.run.label());
    let mut chart =
        Chart::new(Axis::ranks(&format!("rank in {before}"), depth), Axis::ranks(&format!("rank in {after}"), depth));
    let nowhere = Axis::nowhere(depth);
    let place = |rank: Option<usize>| rank.map_or(nowhere, |rank| rank as f64);
    chart.aid((1.0, 1.0), (nowhere, nowhere));
    let mut places: BTreeMap<[Option<usize>; 2], (Move, Vec<&str>)> = BTreeMap::new();
    let pairs = pairs(report);
    for pair in &pairs {
        places.entry(pair.ranks).or_insert_with(|| (pair.moved(), Vec::new())).1.push(&pair.asked.key);
    }
    for ([before, after], (moved, keys)) in &places {
        let series = match moved {
            Move::Gained | Move::Better => Series::First,
            Move::Same | Move::Nowhere => Series::Fourth,
            Move::Worse | Move::Lost => Series::Second,
        };
        let shown = |rank: &Option<usize>| rank.map_or_else(|| "none".to_owned(), |rank| rank.to_string());
        let tip = format!("{} to {}: {}", shown(before), shown(after), some(keys));
        chart.dot(series, (place(*before), place(*after)), keys.len(), &tip);
    }
    let about =
        format!("One dot for each pair of ranks. {}", told(&pairs.iter().map(|pair| pair.moved()).collect::<Vec<_>>()));
    let note = html! {
        p class="quiet" { "A dot for each pair of ranks, larger where it is that of more questions. Below the line: better in " (after) ", above: worse." }
    };
    chart.figure("ranks-moved", "How the first gold moved", &about, &note)
}

/// Some names, and how many more there are.
fn some(keys: &[&str]) -> String {
    let shown: Vec<String> = keys.iter().take(5).map(|key| crate::html::cut(key, 40)).collect();
    match keys.len().saturating_sub(shown.len()) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

fn told(moves: &[Move]) -> String {
    let each =
        Move::ALL.map(|(kind, name)| format!("{name}: {}", moves.iter().filter(|moved| **moved == kind).count()));
    format!("{}.", each.join("; "))
}

/// How many moved how.
fn moved(report: &Report) -> Markup {
    if report.against.is_none() {
        return Markup::default();
    }
    let moves: Vec<Move> = pairs(report).iter().map(|pair| pair.moved()).collect();
    let rows = html! {
        tbody {
            @for (kind, name) in Move::ALL {
                tr { th scope="row" { (name) } td class="n" { (moves.iter().filter(|moved| **moved == kind).count()) } }
            }
        }
    };
    table("How the first gold moved", &head(&["first gold", "questions"], 1), &rows)
}

/// How long the searches took.
pub fn times(report: &Report) -> Option<Markup> {
    let runs = drawn(report);
    let of = |run: &Run, time: usize| sorted(run.asked.iter().map(|asked| asked.times[time]));
    let all: Vec<(Series, &Run, Vec<f64>)> =
        runs.iter().map(|(series, run)| (*series, *run, of(run, TIMES.len() - 1))).collect();
    let ends = sorted(all.iter().flat_map(|(_, _, times)| [times.first(), times.last()]).flatten().copied());
    let (Some(least), Some(most)) = (ends.first(), ends.last()) else { return None };
    let mut chart = Chart::new(Axis::log("milliseconds of a search", *least, *most), Axis::share("share of searches"));
    let mut about = Vec::new();
    for (series, run, times) in &all {
        chart.line(*series, &distribution(times), true);
        let told = QUANTILES.map(|(share, name)| format!("{name} {} ms", number(quantile(times, share), 1)));
        about.push(format!("{}: {}.", run.label(), told.join(", ")));
    }
    let figure =
        chart.figure("times-all", "Searches that were done in time", &about.join(" "), &named(&runs, Mark::Line));
    let columns: Vec<&str> = ["stage", "run"].into_iter().chain(QUANTILES.map(|(_, name)| name)).collect();
    // A stage that took no time did not run.
    let stages: Vec<usize> = (0..TIMES.len())
        .filter(|time| runs.iter().any(|(_, run)| of(run, *time).last().is_some_and(|t| *t > 0.0)))
        .collect();
    let rows = html! {
        @for time in &stages {
            tbody {
                @for (nth, (_, run)) in runs.iter().enumerate() {
                    @let times = of(run, *time);
                    tr {
                        @if nth == 0 { th scope="rowgroup" rowspan=(runs.len()) { (TIMES[*time]) } }
                        td { (run.label()) }
                        @for (share, _) in QUANTILES { td class="n" { (number(quantile(&times, share), 2)) } }
                    }
                }
            }
        }
    };
    Some(html! {
        p { "Milliseconds inside the server, of all questions asked. Times of two runs may be compared when nothing else ran on the machine." }
        div class="figures" { (figure) (table("Milliseconds by stage", &head(&columns, 2), &rows)) }
    })
}

/// Whether the best score tells questions without an answer from the others.
pub fn unanswerable(report: &Report) -> Option<Markup> {
    let told: Vec<(&Run, [Group; 2])> = report.runs().into_iter().map(|run| (run, groups(run))).collect();
    let told: Vec<(&Run, [Group; 2])> = told.into_iter().filter(|(_, [_, without])| without.questions > 0).collect();
    if told.is_empty() {
        return None;
    }
    let columns = ["run", "questions", "number", "without a result", "lowest", "median", "highest"];
    let rows = html! {
        @for (run, groups) in &told {
            tbody {
                @for (nth, group) in groups.iter().enumerate() {
                    tr {
                        @if nth == 0 { th scope="rowgroup" rowspan="2" { (run.label()) } }
                        td { (group.name) }
                        td class="n" { (group.questions) }
                        td class="n" { (group.questions - group.scores.len()) }
                        @for share in [0.0, 0.5, 1.0] { td class="n" { (number(quantile(&group.scores, share), 4)) } }
                    }
                }
            }
        }
    };
    Some(html! {
        p { "The score of the best result of each question. Where the two overlap, no threshold on it can tell that there is no answer." }
        div class="figures" { @for (nth, (run, groups)) in told.iter().enumerate() { (scores(&format!("scores-{nth}"), run, groups)) } }
        @for (run, [with, without]) in &told {
            @if let Some(chance) = separation(&with.scores, &without.scores) {
                p {
                    "In " (number(Some(chance * 100.0), 1)) " % of all pairs of " (run.label())
                    " the question with an answer has the higher score; 50 % would be chance."
                }
            }
        }
        (table("Best scores", &head(&columns, 2), &rows))
    })
}

/// Best scores of questions, sorted.
struct Group {
    name: &'static str,
    questions: usize,
    scores: Vec<f64>,
}

/// Questions with an answer, and without.
fn groups(run: &Run) -> [Group; 2] {
    [("with an answer", true), ("without", false)].map(|(name, answerable)| {
        let asked = || run.asked.iter().filter(|asked| asked.measured.is_some() == answerable);
        Group { name, questions: asked().count(), scores: sorted(asked().filter_map(|asked| asked.top_score)) }
    })
}

fn scores(id: &str, run: &Run, groups: &[Group; 2]) -> Markup {
    let all = sorted(groups.iter().flat_map(|group| group.scores.iter().copied()));
    let (Some(least), Some(most)) = (all.first(), all.last()) else { return Markup::default() };
    let x = Axis::linear("score of the best result", *least, *most);
    let (from, to) = x.range();
    let width = (to - from) / BINS as f64;
    let bin = |score: &f64| (((score - from) / width) as usize).min(BINS - 1);
    let shares: Vec<Vec<f64>> = groups
        .iter()
        .map(|group| {
            let mut shares = vec![0.0; BINS];
            group.scores.iter().for_each(|score| shares[bin(score)] += 1.0 / group.scores.len() as f64);
            shares
        })
        .collect();
    let most = shares.iter().flatten().copied().fold(0.0, f64::max);
    let mut chart = Chart::new(x, Axis::linear("share of questions", 0.0, most));
    // Other colours than those of the runs.
    let series = [Series::Third, Series::Fourth];
    for (nth, (group, shares)) in groups.iter().zip(&shares).enumerate() {
        for (at, share) in shares.iter().enumerate().filter(|(_, share)| **share > 0.0) {
            let left = from + width * (at as f64 + 0.08 + nth as f64 * 0.42);
            let tip = format!("{}: {} % of {}", group.name, number(Some(share * 100.0), 1), group.questions);
            chart.column(series[nth], (left, left + width * 0.42), *share, &tip);
        }
    }
    let told = |group: &Group| {
        let at = |share| number(quantile(&group.scores, share), 4);
        format!("{}: {} to {}, median {}.", group.name, at(0.0), at(1.0), at(0.5))
    };
    let about = groups.iter().map(told).collect::<Vec<_>>().join(" ");
    let entries: Vec<(Series, String)> =
        series.into_iter().zip(groups).map(|(series, group)| (series, group.name.to_owned())).collect();
    chart.figure(id, &format!("Best scores, {}", run.label()), &about, &legend(Mark::Box, &entries))
}
