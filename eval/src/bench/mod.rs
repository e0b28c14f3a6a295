// SPDX-License-Identifier: PostgreSQL

//! What pg_rag costs, as ratios measured in one run.
//!
//! An absolute time says as much about the machine as about the code, so every time stands beside one that was measured
//! in the same round on the same machine: all contenders answer query 1, then all answer query 2, and the contender
//! that starts moves on by one each time, so that no one always finds the caches warm.
//!
//! Three questions: what does SQL add to the embedding of a query ([`floor`]), what does an ingestion cost it
//! ([`priority`]), and what does `rag.search` cost against a hybrid search that one writes by hand with pgvector and
//! PostgreSQL's full text search ([`rival`])?

pub mod floor;
pub mod priority;
pub mod rival;

use crate::latency::{Latency, shown};
use crate::run::Judged;
use postgres::Client;
use rag_core::Result;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::Instant;

/// What to measure.
#[derive(Debug, Clone, clap::Args)]
pub struct Bench {
    /// The judged queries.
    #[command(flatten)]
    pub judged: Judged,
    /// Collection that holds the corpus already
    #[arg(long)]
    pub collection: String,
    /// Rounds over all queries
    #[arg(long, default_value_t = 3)]
    pub rounds: usize,
    /// Socket of the engine; default: where the server's data folder has it
    #[arg(long)]
    pub engine_socket: Option<PathBuf>,
}

/// Opens a connection of its own.
pub type Connect<'a> = &'a (dyn Fn() -> Result<Client> + Sync);

/// Does something with the query of that number.
pub type Work<'a> = Box<dyn FnMut(usize) -> Result<()> + 'a>;

/// Something that is timed: a name and what it does with a query.
pub struct Contender<'a> {
    /// Shown name.
    pub name: String,
    /// The timed work.
    pub work: Work<'a>,
}

impl std::fmt::Debug for Contender<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Contender").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Runs all comparisons and returns them as Markdown.
pub fn bench(connect: Connect<'_>, request: &Bench) -> Result<String> {
    let (queries, qrels) = request.judged.read()?;
    let texts: Vec<String> = queries.iter().map(|q| q.text.clone()).collect();
    let environment = crate::db::environment(&mut connect()?)?;
    let facts: Vec<String> = environment.iter().map(|(k, v)| format!("{k} {v}")).collect();
    let mut out = format!(
        "# Latency of collection {}\n\nCommand: `make bench`. On: {}. {} queries, {} rounds, milliseconds seen from a \
         client on the same machine.\n\n",
        request.collection,
        facts.join(", "),
        texts.len(),
        request.rounds
    );
    out.push_str(&floor::measure(connect, request, &texts)?);
    out.push('\n');
    out.push_str(&priority::measure(connect, request, &texts)?);
    out.push('\n');
    out.push_str(&rival::measure(connect, request, &queries, &qrels)?);
    Ok(out)
}

/// Times every contender on every query, `rounds` times, interleaved; one query each is run before the clock counts.
pub fn interleave(contenders: &mut [Contender<'_>], queries: usize, rounds: usize) -> Result<Vec<Latency>> {
    let mut times = vec![Latency::default(); contenders.len()];
    if queries == 0 || contenders.is_empty() {
        return Ok(times);
    }
    for contender in contenders.iter_mut() {
        (contender.work)(0)?;
    }
    let count = contenders.len();
    for turn in 0..queries * rounds {
        for step in 0..count {
            let at = (turn + step) % count;
            let started = Instant::now();
            (contenders[at].work)(turn % queries)?;
            times[at].push(started.elapsed());
        }
    }
    Ok(times)
}

/// A table of times; ratios are of the medians, to the row named `base`.
pub fn table(rows: &[(String, Latency, Option<f64>)], base: &str, extra: Option<&str>) -> String {
    let reference = rows.iter().find(|(name, ..)| name == base).and_then(|(_, latency, _)| latency.p50());
    let mut out = format!("| | p50 | p95 | p50 / {base} |{}\n", extra.map_or_else(String::new, |e| format!(" {e} |")));
    let _ = writeln!(out, "|---|---|---|---|{}", extra.map_or("", |_| "---|"));
    for (name, latency, value) in rows {
        let ratio = match (latency.p50(), reference) {
            (Some(mine), Some(its)) if its > 0.0 => format!("{:.2}", mine / its),
            _ => "–".to_owned(),
        };
        let _ = write!(out, "| {name} | {} | {} | {ratio} |", shown(latency.p50()), shown(latency.p95()));
        if extra.is_some() {
            let _ = write!(out, " {} |", value.map_or_else(|| "–".to_owned(), |v| format!("{v:.4}")));
        }
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;
    use std::time::Duration;

    #[test]
    fn contenders_take_turns_in_starting() {
        let seen = RefCell::new(Vec::new());
        let contender = |name: &'static str| Contender {
            name: name.to_owned(),
            work: Box::new({
                let seen = &seen;
                move |query| {
                    seen.borrow_mut().push((name, query));
                    Ok(())
                }
            }),
        };
        let times = interleave(&mut [contender("a"), contender("b")], 2, 1).expect("runs");
        assert_eq!(times.iter().map(Latency::count).collect::<Vec<_>>(), [2, 2]);
        // The first two are the warm-up.
        assert_eq!(seen.into_inner(), [("a", 0), ("b", 0), ("a", 0), ("b", 0), ("b", 1), ("a", 1)]);
    }

    #[test]
    fn ratios_are_of_medians() {
        let row = |name: &str, ms| (name.to_owned(), [Duration::from_millis(ms)].into_iter().collect(), None);
        let text = table(&[row("x", 4), row("y", 6)], "x", None);
        assert_eq!(
            text,
            "| | p50 | p95 | p50 / x |\n|---|---|---|---|\n| x | 4.00 | 4.00 | 1.00 |\n| y | 6.00 | 6.00 | 1.50 |\n"
        );
    }
}
