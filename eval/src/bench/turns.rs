// SPDX-License-Identifier: PostgreSQL

//! Who is timed, and in which order, so that a ratio says something about the code and not about the moment.
//!
//! An absolute time says as much about the machine as about the code, so every time stands beside one that was measured in
//! the same round on the same machine: all contenders answer query 1, then all answer query 2, and the contender that starts
//! moves on by one each time, so that no one always finds the caches warm.

use super::figure::{Kind, Table, number};
use crate::latency::Latency;
use postgres::Client;
use rag_core::Result;
use serde_json::Value;
use std::time::Instant;

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
            times[at].push(timed(&mut contenders[at], turn % queries)?);
        }
    }
    Ok(times)
}

/// Times every contender on all queries in a row, `rounds` times.
pub fn passes(contenders: &mut [Contender<'_>], queries: usize, rounds: usize) -> Result<Vec<Latency>> {
    let mut times = vec![Latency::default(); contenders.len()];
    for _ in 0..rounds {
        for (contender, times) in contenders.iter_mut().zip(&mut times) {
            for query in 0..queries {
                times.push(timed(contender, query)?);
            }
        }
    }
    Ok(times)
}

fn timed(contender: &mut Contender<'_>, query: usize) -> Result<std::time::Duration> {
    let started = Instant::now();
    (contender.work)(query)?;
    Ok(started.elapsed())
}

/// A row of [`table`]: who, how long, and its values of the further columns.
pub type Row = (String, Latency, Vec<Value>);

/// A table of times; ratios are of the medians, to the row named `base`.
pub fn table(title: &str, rows: Vec<Row>, base: &str, further: &[(&str, Kind)]) -> Table {
    let reference = rows.iter().find(|(name, ..)| name == base).and_then(|(_, latency, _)| latency.p50());
    let ratio = format!("p50 / {base}");
    let mut columns =
        vec![("", Kind::Text), ("p50", Kind::Milliseconds), ("p95", Kind::Milliseconds), (ratio.as_str(), Kind::Ratio)];
    columns.extend(further);
    let mut table = Table::new(title, &columns);
    for (name, latency, values) in rows {
        let ratio = latency.p50().zip(reference.filter(|its| *its > 0.0)).map(|(mine, its)| mine / its);
        let mut row = vec![name.into(), number(latency.p50()), number(latency.p95()), number(ratio)];
        row.extend(values);
        table.rows.push(row);
    }
    table
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
        assert_eq!(seen.take(), [("a", 0), ("b", 0), ("a", 0), ("b", 0), ("b", 1), ("a", 1)]);
        let times = passes(&mut [contender("a"), contender("b")], 2, 1).expect("runs");
        assert_eq!(times.iter().map(Latency::count).collect::<Vec<_>>(), [2, 2]);
        assert_eq!(seen.take(), [("a", 0), ("a", 1), ("b", 0), ("b", 1)]);
    }

    #[test]
    fn ratios_are_of_medians() {
        let row = |name: &str, ms| (name.to_owned(), [Duration::from_millis(ms)].into_iter().collect(), vec![]);
        let table = table("", vec![row("x", 4), row("y", 6)], "x", &[]);
        let expected = vec![
            vec!["x".into(), number(4.0), number(4.0), number(1.0)],
            vec!["y".into(), number(6.0), number(6.0), number(1.5)],
        ];
        assert_eq!(table.rows, expected);
        assert_eq!(table.columns[3].name, "p50 / x");
    }
}
