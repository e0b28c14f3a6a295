// SPDX-License-Identifier: PostgreSQL

//! An axis: where a value stands, and which values are named.
//!
//! Any two numbers make an axis, so that no value of a table can break a plot: what has no extent gets some, and what is no
//! number counts as none.

/// Marks of a logarithmic axis in each power of ten.
const DECADE: [f64; 3] = [1.0, 2.0, 5.0];

/// Named values of a linear axis, at most.
const TICKS: f64 = 6.0;

/// Named values of a logarithmic axis, at most.
const LOG_TICKS: usize = 8;

/// What is larger, on either side of 0, stands at the edge.
const LARGEST: f64 = 1e9;

/// An axis.
#[derive(Debug, Clone, PartialEq)]
pub struct Axis {
    label: String,
    from: f64,
    to: f64,
    log: bool,
    ticks: Vec<(f64, String)>,
}

impl Axis {
    /// From at most `from` to at least `to`, in equal steps.
    pub fn linear(label: &str, from: f64, to: f64) -> Self {
        let from = finite(from, 0.0).clamp(-LARGEST, LARGEST);
        let to = finite(to, from).clamp(from, LARGEST);
        // Less than that cannot be told apart from `from`.
        let extent = if to - from > from.abs() * 1e-9 { to - from } else { from.abs().max(1.0) };
        let rough = extent / (TICKS - 1.0);
        let power = 10f64.powf(rough.log10().floor());
        let step = DECADE.iter().map(|m| m * power).find(|step| *step >= rough * 0.999).unwrap_or(10.0 * power);
        let (first, last) = ((from / step).floor(), ((from + extent) / step - 1e-9).ceil());
        let decimals = (-step.log10().floor()).clamp(0.0, 9.0) as usize;
        let count = (last - first).clamp(1.0, 2.0 * TICKS) as usize;
        let tick = |n: usize| {
            let value = (first + n as f64) * step;
            (value, super::super::number(Some(value), decimals))
        };
        Self {
            label: label.to_owned(),
            from: first * step,
            to: (first + count as f64) * step,
            log: false,
            ticks: (0..=count).map(tick).collect(),
        }
    }

    /// From 0 to 1.
    pub fn share(label: &str) -> Self {
        Self::linear(label, 0.0, 1.0)
    }

    /// From at most `from` to at least `to`, each power of ten as long as the other. What is not above 0 stands at its beginning.
    pub fn log(label: &str, from: f64, to: f64) -> Self {
        let from = if from > 1e-4 { finite(from, 0.01).min(LARGEST) } else { 0.01 };
        let to = finite(to, from).clamp(from, LARGEST);
        let mut marks: Vec<f64> = Vec::new();
        let lowest = from.log10().floor() as i32;
        for power in lowest..=(to.log10().floor() as i32 + 1) {
            marks.extend(DECADE.iter().map(|m| m * 10f64.powi(power)));
        }
        let first = marks.iter().rposition(|mark| *mark <= from * 1.000_001).unwrap_or(0);
        let last = marks.iter().position(|mark| *mark >= to * 0.999_999).unwrap_or(marks.len() - 1).max(first + 1);
        let marks = &marks[first..=last.min(marks.len() - 1)];
        let named = |mark: &&f64| marks.len() <= LOG_TICKS || is_power(**mark);
        Self {
            label: label.to_owned(),
            from: marks[0],
            to: marks[marks.len() - 1],
            log: true,
            ticks: marks.iter().filter(named).map(|mark| (*mark, format!("{}", Plain(*mark)))).collect(),
        }
    }

    /// Ranks from 1 to `depth`, the first far apart, and beyond them a place for what is not in the list: [`Axis::nowhere`].
    pub fn ranks(label: &str, depth: usize) -> Self {
        let depth = depth.max(2) as f64;
        let marks = (0..9).flat_map(|power| DECADE.map(|m| m * 10f64.powi(power)));
        let mut ticks: Vec<(f64, String)> =
            marks.filter(|mark| *mark <= depth).map(|mark| (mark, format!("{}", Plain(mark)))).collect();
        ticks.push((Self::beyond(depth), "none".to_owned()));
        Self { label: label.to_owned(), from: 0.75, to: Self::beyond(depth) * 1.15, log: true, ticks }
    }

    /// The value at which an axis of ranks has what is not in the list.
    pub fn nowhere(depth: usize) -> f64 {
        Self::beyond(depth.max(2) as f64)
    }

    fn beyond(depth: f64) -> f64 {
        depth * 2.0
    }

    /// Named places: one for each label, in equal distances, the first at 0.
    pub fn named(label: &str, names: &[&str]) -> Self {
        let ticks = names.iter().enumerate().map(|(at, name)| (at as f64, (*name).to_owned())).collect();
        Self { label: label.to_owned(), from: -0.5, to: names.len().max(1) as f64 - 0.5, log: false, ticks }
    }

    /// Where a value stands, from 0 to 1; what is outside stands at the edge.
    pub fn place(&self, value: f64) -> f64 {
        let place = match self.log {
            true if value > 0.0 => (value / self.from).ln() / (self.to / self.from).ln(),
            true => 0.0,
            false => (value - self.from) / (self.to - self.from),
        };
        finite(place, 0.0).clamp(0.0, 1.0)
    }

    /// The smallest and the largest value.
    pub fn range(&self) -> (f64, f64) {
        (self.from, self.to)
    }

    /// Values with their names.
    pub fn ticks(&self) -> &[(f64, String)] {
        &self.ticks
    }

    /// What the values are.
    pub fn label(&self) -> &str {
        &self.label
    }
}

fn finite(value: f64, or: f64) -> f64 {
    if value.is_finite() { value } else { or }
}

fn is_power(value: f64) -> bool {
    let power = value.log10();
    (power - power.round()).abs() < 1e-6
}

/// 1, 2 or 5 times a power of ten without needless digits.
struct Plain(f64);

impl std::fmt::Display for Plain {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let decimals = (-(self.0 * 1.000_001).log10().floor()).clamp(0.0, 9.0) as usize;
        write!(f, "{:.decimals$}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn names(axis: &Axis) -> Vec<&str> {
        axis.ticks().iter().map(|(_, name)| name.as_str()).collect()
    }

    #[test]
    fn ticks_are_round() {
        assert_eq!(names(&Axis::share("")), ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]);
        assert_eq!(names(&Axis::linear("", 3.0, 41.0)), ["0", "10", "20", "30", "40", "50"]);
        assert_eq!(names(&Axis::linear("", -0.02, 0.01)), ["−0.02", "−0.01", "0.00", "0.01"]);
        assert_eq!(names(&Axis::log("", 1.0, 100.0)), ["1", "2", "5", "10", "20", "50", "100"]);
        assert_eq!(names(&Axis::log("", 0.3, 3.0)), ["0.2", "0.5", "1", "2", "5"]);
        assert_eq!(names(&Axis::log("", 0.01, 9000.0)), ["0.01", "0.1", "1", "10", "100", "1000", "10000"]);
        assert_eq!(names(&Axis::ranks("", 20)), ["1", "2", "5", "10", "20", "none"]);
        assert_eq!(names(&Axis::named("", &["a", "b"])), ["a", "b"]);
    }

    #[test]
    fn ranks_that_are_not_there_stand_beyond_all_others() {
        let axis = Axis::ranks("", 100);
        assert!(axis.place(100.0) < axis.place(Axis::nowhere(100)) && axis.place(Axis::nowhere(100)) < 1.0);
        assert!(axis.place(1.0) > 0.0);
    }

    proptest! {
        #[test]
        fn any_two_numbers_make_an_axis(from in proptest::num::f64::ANY, to in proptest::num::f64::ANY, value in proptest::num::f64::ANY) {
            for axis in [Axis::linear("", from, to), Axis::log("", from, to)] {
                prop_assert!((0.0..=1.0).contains(&axis.place(value)));
                prop_assert!(!axis.ticks().is_empty() && axis.ticks().len() <= 14, "{:?}", axis);
            }
        }

        #[test]
        fn what_is_shown_is_within(from in -1e6f64..1e6, extent in 0f64..1e6) {
            let (low, high) = Axis::linear("", from, from + extent).range();
            prop_assert!(low <= from && from + extent <= high + 1e-6 * (1.0 + extent.abs()), "{low} {high}");
            let (low, high) = Axis::log("", extent.max(0.01), 10.0 * extent.max(0.01)).range();
            prop_assert!(low <= extent.max(0.01) * 1.00001 && extent.max(0.01) * 9.9999 <= high);
        }
    }
}
