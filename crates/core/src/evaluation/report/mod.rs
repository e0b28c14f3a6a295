// SPDX-License-Identifier: PostgreSQL

//! A page about a run, or about two.
//!
//! Owns what is told of runs and in which order: what was run, the means of all metrics, recall by depth, groups of questions, where the first
//! gold stands, times, the best scores of questions without an answer, and the questions to look at. Pure: the extension reads, this
//! says, so the same runs give the same page to the byte. Means are those that were stored; what is drawn from lists is computed by
//! [`crate::metrics`], as the run was. Style, tables and plots are [`crate::html`]'s.
//!
//! With two runs every difference is the [`significance`](super::significance) of pairs of questions. Two runs that did not see the same may be
//! shown, because one wants to see why, but the page says so before the first number.

mod facts;
mod figures;
mod measured;
mod tables;
#[cfg(test)]
mod tests;

use super::measure::Judged;
use super::order::Found;
use super::significance::Difference;
use crate::html::{notice, page, said, section};
use crate::rank::trace::Stage;
use maud::{Markup, html};
use serde_json::Value;
use std::collections::BTreeMap;

/// The metric that strata and questions are told by.
pub const MAIN: &str = "nDCG@10";

/// Names of the times of a question, in their order.
pub const TIMES: [&str; 5] = ["embed", "dense", "bm25", "fusion", "total"];

/// Questions that are listed, at most.
const LISTED: usize = 50;

/// What the page is about.
#[derive(Debug, Clone)]
pub struct Report {
    /// Name of the question set.
    pub question_set: String,
    /// The run.
    pub run: Run,
    /// The run that it is compared with.
    pub against: Option<Against>,
}

/// The other run.
#[derive(Debug, Clone)]
pub struct Against {
    /// The run.
    pub run: Run,
    /// What the two did not see the same, in words; empty when all differences are retrieval's.
    pub changed: Vec<String>,
    /// The run minus this one: all metrics of all stages that both have, and [`MAIN`] of the final ranking by strata.
    pub differences: Vec<Compared>,
}

/// A difference.
#[derive(Debug, Clone)]
pub struct Compared {
    /// The stratum; `None`: all questions.
    pub stratum: Option<String>,
    /// The stage.
    pub stage: Stage,
    /// The metric.
    pub metric: String,
    /// What the pairs say.
    pub difference: Difference,
}

/// One run.
#[derive(Debug, Clone, Default)]
pub struct Run {
    /// Its key.
    pub id: i64,
    /// Its name.
    pub name: Option<String>,
    /// Profile with its version.
    pub profile: String,
    /// All settings.
    pub settings: Value,
    /// Depth of the final ranking.
    pub top_k: usize,
    /// Answerable questions.
    pub questions: usize,
    /// The others.
    pub unanswerable: usize,
    /// Hash of the questions, in hexadecimal.
    pub questions_sha256: String,
    /// Hash of the gold.
    pub gold_sha256: String,
    /// What was searched.
    pub index_state: Value,
    /// Embedding model.
    pub model: String,
    /// Its hash; `None` for models shipped with the extension.
    pub model_sha256: Option<String>,
    /// Version of the extension.
    pub extension_version: String,
    /// Where it ran.
    pub machine: Value,
    /// When it started, as it is to be shown.
    pub started: String,
    /// Seconds it took.
    pub seconds: f64,
    /// Means.
    pub means: Vec<Mean>,
    /// Its questions, in the order of the set.
    pub asked: Vec<Asked>,
}

/// The mean of a metric.
#[derive(Debug, Clone, PartialEq)]
pub struct Mean {
    /// The stratum; `None`: all questions.
    pub stratum: Option<String>,
    /// The stage.
    pub stage: Stage,
    /// The metric.
    pub metric: String,
    /// The mean.
    pub value: f64,
    /// Over so many questions.
    pub questions: usize,
}

/// One question.
#[derive(Debug, Clone, Default)]
pub struct Asked {
    /// Its key in the database, by which two runs are paired.
    pub id: i64,
    /// Its name in the set.
    pub key: String,
    /// What is asked.
    pub text: String,
    /// Its strata.
    pub strata: Vec<String>,
    /// What was measured; `None` of a question that has no answer.
    pub measured: Option<Measured>,
    /// The score of its best result; `None` without a result.
    pub top_score: Option<f64>,
    /// Milliseconds, as [`TIMES`] names them.
    pub times: [f64; 5],
}

/// What is known of an answerable question.
#[derive(Debug, Clone)]
pub struct Measured {
    /// Its gold.
    pub judged: Judged,
    /// Lists of the stages, ties broken.
    pub lists: BTreeMap<Stage, Vec<Found>>,
    /// Its value of [`MAIN`].
    pub value: Option<f64>,
}

impl Run {
    /// How it is called in a table.
    fn label(&self) -> String {
        format!("run {}", self.id)
    }

    /// Key and name.
    fn title(&self) -> Markup {
        html! { "run " (self.id) @if let Some(name) = &self.name { " “" (said(name)) "”" } }
    }

    fn mean(&self, stratum: Option<&str>, stage: Stage, metric: &str) -> Option<&Mean> {
        self.means.iter().find(|m| m.stratum.as_deref() == stratum && m.stage == stage && m.metric == metric)
    }

    /// Stages that were measured, in the order they ran.
    fn stages(&self) -> Vec<Stage> {
        let measured = |stage: &Stage| self.means.iter().any(|mean| mean.stage == *stage);
        Stage::ALL.into_iter().filter(measured).collect()
    }
}

impl Report {
    /// The run that the other is compared with, if there is one, and then the run itself.
    fn runs(&self) -> Vec<&Run> {
        self.against.iter().map(|against| &against.run).chain([&self.run]).collect()
    }

    /// Stages that any of the runs has.
    fn stages(&self) -> Vec<Stage> {
        Stage::ALL.into_iter().filter(|stage| self.runs().iter().any(|run| run.stages().contains(stage))).collect()
    }

    /// The final ranking first, because it is what answers; then the others in the order they ran.
    fn final_first(&self) -> Vec<Stage> {
        let (last, before): (Vec<Stage>, Vec<Stage>) =
            self.stages().into_iter().partition(|stage| *stage == Stage::TopK);
        last.into_iter().chain(before).collect()
    }

    /// The page.
    pub fn page(&self) -> String {
        let title = match &self.against {
            None => format!("{}: run {}", self.question_set, self.run.id),
            Some(against) => format!("{}: run {} against {}", self.question_set, self.run.id, against.run.id),
        };
        let sections = self.sections();
        let body = html! {
            header {
                h1 { (said(&self.question_set)) }
                p { (self.what()) }
                (self.warnings())
                nav aria-label="Sections" {
                    ul { @for (id, title, _) in &sections { li { a href={ "#" (id) } { (title) } } } }
                }
            }
            main { @for (id, title, body) in &sections { (section(id, title, body)) } }
            footer { (footer()) }
        };
        page(&title, &body)
    }

    fn what(&self) -> Markup {
        html! {
            @match &self.against {
                None => { "An evaluation: " (self.run.title()) "." },
                Some(against) => {
                    "Two evaluations: " (self.run.title()) " against " (against.run.title()) ". Differences are run " (self.run.id)
                    " minus run " (against.run.id) "; what is filled or solid is run " (self.run.id) ", what is outlined or dashed run "
                    (against.run.id) "."
                },
            }
        }
    }

    fn warnings(&self) -> Markup {
        html! {
            @if let Some(against) = self.against.as_ref().filter(|against| !against.changed.is_empty()) {
                (notice(&html! {
                    p { strong { "These runs did not see the same." } " Between them changed: " (against.changed.join(", "))
                        ". So differences are not those of the settings alone." }
                }))
            }
            @for run in self.runs().into_iter().filter(|run| run.questions == 0) {
                (notice(&html! { p { "No question of " (run.title()) " has an answer, so there is nothing to measure." } }))
            }
        }
    }

    /// What the page says: for each section its id, its heading and its body. One with nothing to say is left out.
    fn sections(&self) -> Vec<(&'static str, &'static str, Markup)> {
        let all = [
            ("what", "What was run", Some(facts::what(self))),
            ("metrics", "Metrics", tables::metrics(self)),
            ("recall", "Recall by depth", figures::recall_curves(self)),
            ("strata", "Groups of questions", tables::strata(self)),
            ("ranks", "Where the first gold stands", figures::ranks(self)),
            (
                "questions",
                if self.against.is_some() { "What changed most" } else { "What went worst" },
                tables::questions(self),
            ),
            ("times", "Time", figures::times(self)),
            ("unanswerable", "Questions without an answer", figures::unanswerable(self)),
            ("settings", "Settings", Some(facts::settings(self))),
        ];
        all.into_iter().filter_map(|(id, title, body)| Some((id, title, body?))).collect()
    }
}

/// How a stage is called.
fn name(stage: Stage) -> &'static str {
    match stage {
        Stage::Dense => "dense leg",
        Stage::Bm25 => "BM25 leg",
        Stage::Document => "document prior",
        Stage::Fusion => "fusion",
        Stage::TopK => "final ranking",
    }
}

fn footer() -> Markup {
    html! {
        p {
            "Metrics are trec_eval's. Every answerable question counts; one without a result scores 0. gold@k is the share of gold of which a passage is "
            "among the first k. unjudged@10 is the share of the first ten results that nobody judged: the higher it is, the less the others say. "
            "Intervals are the bootstrap's (95 %), p is by randomisation, both by clusters of questions. Questions are shown as they are "
            "worded today."
        }
    }
}
