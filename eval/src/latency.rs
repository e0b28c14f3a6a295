// SPDX-License-Identifier: PostgreSQL

//! Percentiles of measured times.
//!
//! Owns the definition: nearest rank, so that a reported time is one that was really seen.

use std::time::Duration;

/// Times of one kind of statement.
#[derive(Debug, Clone, Default)]
pub struct Latency {
    times: Vec<Duration>,
}

impl Latency {
    /// Adds one.
    pub fn push(&mut self, time: Duration) {
        self.times.push(time);
    }

    /// How many.
    pub fn count(&self) -> usize {
        self.times.len()
    }

    /// The `percent` percentile in milliseconds; `None` when nothing was measured.
    pub fn percentile(&self, percent: f64) -> Option<f64> {
        let mut times = self.times.clone();
        times.sort_unstable();
        let rank = (percent / 100.0 * times.len() as f64).ceil().max(1.0) as usize;
        times.get(rank - 1).map(|t| t.as_secs_f64() * 1000.0)
    }

    /// The median in milliseconds.
    pub fn p50(&self) -> Option<f64> {
        self.percentile(50.0)
    }

    /// The 95th percentile in milliseconds.
    pub fn p95(&self) -> Option<f64> {
        self.percentile(95.0)
    }
}

impl FromIterator<Duration> for Latency {
    fn from_iter<T: IntoIterator<Item = Duration>>(times: T) -> Self {
        Self { times: times.into_iter().collect() }
    }
}

/// Milliseconds for a table, or a dash.
pub fn shown(milliseconds: Option<f64>) -> String {
    milliseconds.map_or_else(|| "–".to_owned(), |ms| format!("{ms:.2}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_times_that_were_seen() {
        let latency: Latency = (1..=20).rev().map(Duration::from_millis).collect();
        assert_eq!((latency.p50(), latency.p95(), latency.percentile(100.0)), (Some(10.0), Some(19.0), Some(20.0)));
        let one: Latency = [Duration::from_millis(7)].into_iter().collect();
        assert_eq!((one.p50(), one.p95()), (Some(7.0), Some(7.0)));
        assert_eq!(Latency::default().p50(), None);
    }
}
