// SPDX-License-Identifier: PostgreSQL

//! Plots as inline SVG.
//!
//! Owns how values become places ([`Axis`]) and marks, so that a caller says what is shown and never a coordinate. A plot has a
//! title and a description for those who cannot see it, and scales with the page by its viewBox; its size is that at which its text can be
//! read on a phone. Whatever is not a number is left out: values come from tables that anybody may write to.

mod axis;

pub use axis::Axis;

use maud::{Markup, html};
use std::fmt::Write;

const WIDTH: f64 = 400.0;
const HEIGHT: f64 = 250.0;
const LEFT: f64 = 46.0;
const RIGHT: f64 = 20.0;
const TOP: f64 = 10.0;
const BOTTOM: f64 = 44.0;

/// What belongs together in a plot; each has a colour and, as a line, dashes of its own. The second and fourth have boxes that are
/// outlines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Series {
    /// Solid.
    First,
    /// Dashed.
    Second,
    /// Dotted.
    Third,
    /// Dashes and dots.
    Fourth,
}

impl Series {
    /// All.
    pub const ALL: [Series; 4] = [Series::First, Series::Second, Series::Third, Series::Fourth];

    fn class(self) -> &'static str {
        match self {
            Series::First => "s1",
            Series::Second => "s2",
            Series::Third => "s3",
            Series::Fourth => "s4",
        }
    }
}

/// How a series is drawn, for the legend.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    /// A line.
    Line,
    /// A box.
    Box,
}

/// What the series of a plot are.
pub fn legend(mark: Mark, entries: &[(Series, String)]) -> Markup {
    html! {
        ul class="legend" {
            @for (series, label) in entries {
                li {
                    svg viewBox="0 0 32 12" aria-hidden="true" {
                        @match mark {
                            Mark::Line => path class={ "line " (series.class()) } d="M0 6H32" {},
                            Mark::Box => rect class={ "box " (series.class()) } x="8" y="1" width="16" height="10" {},
                        }
                    }
                    span { bdi { (label) } }
                }
            }
        }
    }
}

/// Bars below each other for a cell of a table, from 0 to `most`. The numbers belong in cells beside it.
pub fn bars(values: &[(Series, Option<f64>)], most: f64) -> Markup {
    let length = |value: f64| if most > 0.0 { (value / most).clamp(0.0, 1.0) * 158.0 } else { 0.0 };
    html! {
        svg viewBox=(format!("0 0 160 {}", values.len() * 12)) aria-hidden="true" {
            @for (at, (series, value)) in values.iter().enumerate() {
                @if let Some(value) = value.filter(|value| value.is_finite()) {
                    rect class={ "box " (series.class()) } x="1" y=(at * 12 + 2) width=(format!("{:.1}", length(value))) height="8" {}
                }
            }
        }
    }
}

/// A plot in the making.
#[derive(Debug)]
pub struct Chart {
    x: Axis,
    y: Axis,
    marks: Vec<Markup>,
}

impl Chart {
    /// A plot over two axes.
    pub fn new(x: Axis, y: Axis) -> Self {
        Self { x, y, marks: Vec::new() }
    }

    fn x(&self, value: f64) -> f64 {
        LEFT + self.x.place(value) * (WIDTH - LEFT - RIGHT)
    }

    fn y(&self, value: f64) -> f64 {
        TOP + (1.0 - self.y.place(value)) * (HEIGHT - TOP - BOTTOM)
    }

    /// A line through points; with `steps` it stays level until the next.
    pub fn line(&mut self, series: Series, points: &[(f64, f64)], steps: bool) {
        let mut path = String::new();
        for (x, y) in points.iter().filter(|(x, y)| x.is_finite() && y.is_finite()) {
            let (x, y) = (self.x(*x), self.y(*y));
            // Writing to a string cannot fail.
            let _ = match (path.is_empty(), steps) {
                (true, _) => write!(path, "M{x:.1} {y:.1}"),
                (false, true) => write!(path, "H{x:.1}V{y:.1}"),
                (false, false) => write!(path, "L{x:.1} {y:.1}"),
            };
        }
        if !path.is_empty() {
            self.marks.push(html! { path class={ "line " (series.class()) } d=(path) {} });
        }
    }

    /// A dot for so many things at one place; its area grows with their number. `tip` says what it is.
    pub fn dot(&mut self, series: Series, (x, y): (f64, f64), count: usize, tip: &str) {
        let radius = (2.5 * (count as f64).sqrt()).clamp(2.5, 11.0);
        let (x, y) = (format!("{:.1}", self.x(x)), format!("{:.1}", self.y(y)));
        self.marks.push(html! {
            circle class={ "dot " (series.class()) } cx=(x) cy=(y) r=(format!("{radius:.1}")) { title { (tip) } }
        });
    }

    /// A box between two places on the x axis, as high as `value`.
    pub fn column(&mut self, series: Series, (from, to): (f64, f64), value: f64, tip: &str) {
        if !value.is_finite() {
            return;
        }
        let (left, right, top, bottom) = (self.x(from), self.x(to), self.y(value), self.y(0.0));
        let (width, height) = (format!("{:.1}", (right - left).max(0.0)), format!("{:.1}", (bottom - top).max(0.0)));
        self.marks.push(html! {
            rect class={ "box " (series.class()) } x=(format!("{left:.1}")) y=(format!("{top:.1}")) width=(width) height=(height) {
                title { (tip) }
            }
        });
    }

    /// A thin line between two points, to see other things by.
    pub fn aid(&mut self, from: (f64, f64), to: (f64, f64)) {
        let at = [self.x(from.0), self.y(from.1), self.x(to.0), self.y(to.1)].map(|place| format!("{place:.1}"));
        self.marks.push(html! { line class="aid" x1=(at[0]) y1=(at[1]) x2=(at[2]) y2=(at[3]) {} });
    }

    /// The plot in its figure. `id` is its own on the page, `about` tells those who cannot see it what it shows.
    pub fn figure(&self, id: &str, title: &str, about: &str, legend: &Markup) -> Markup {
        html! {
            figure {
                figcaption { h3 { (title) } (legend) }
                svg viewBox=(format!("0 0 {WIDTH} {HEIGHT}")) role="img" aria-labelledby={ (id) "-t " (id) "-d" } {
                    title id={ (id) "-t" } { (title) }
                    desc id={ (id) "-d" } { (about) }
                    (self.axes())
                    @for mark in &self.marks { (mark) }
                }
            }
        }
    }

    fn axes(&self) -> Markup {
        let (right, bottom) = (WIDTH - RIGHT, HEIGHT - BOTTOM);
        let middle = TOP + (bottom - TOP) / 2.0;
        html! {
            @for (value, label) in self.y.ticks() {
                @let y = format!("{:.1}", self.y(*value));
                line class="grid" x1=(LEFT) y1=(y) x2=(right) y2=(y) {}
                text x=(LEFT - 6.0) y=(y) dy="0.35em" text-anchor="end" { (label) }
            }
            @for (value, label) in self.x.ticks() {
                @let x = format!("{:.1}", self.x(*value));
                line class="grid" x1=(x) y1=(TOP) x2=(x) y2=(bottom) {}
                text x=(x) y=(bottom + 16.0) text-anchor="middle" { (label) }
            }
            path class="frame" d=(format!("M{LEFT} {TOP}V{bottom}H{right}")) {}
            text x=(LEFT + (right - LEFT) / 2.0) y=(HEIGHT - 6.0) text-anchor="middle" { (self.x.label()) }
            text x="11" y=(middle) text-anchor="middle" transform=(format!("rotate(-90 11 {middle})")) { (self.y.label()) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::check;
    use super::*;

    #[test]
    fn a_plot_is_well_formed_whatever_it_is_given() {
        let mut chart = Chart::new(Axis::log("ms <&>", 0.0, f64::NAN), Axis::linear("share", 1.0, 1.0));
        chart.line(Series::First, &[(0.0, 0.0), (f64::NAN, 1.0), (1.0, f64::INFINITY), (-5.0, 2.0)], true);
        chart.line(Series::Second, &[], false);
        chart.dot(Series::Third, (f64::NAN, -1.0), 0, "\"<script>\"");
        chart.column(Series::Fourth, (3.0, 1.0), -1.0, "]]>");
        chart.column(Series::Fourth, (3.0, 1.0), f64::NAN, "");
        chart.aid((0.0, 0.0), (1.0, 1.0));
        let legend = legend(Mark::Line, &[(Series::First, "<b>".to_owned())]);
        let figure = chart.figure("one", "A & B", "says <what>", &legend).into_string();
        check(&figure).expect("well-formed");
        assert!(!figure.contains("NaN") && !figure.contains("inf"), "{figure}");
        check(
            &bars(&[(Series::First, Some(2.0)), (Series::Second, None), (Series::First, Some(f64::NAN))], 0.0)
                .into_string(),
        )
        .expect("well-formed");
    }

    #[test]
    fn more_is_further_up_and_to_the_right() {
        let chart = Chart::new(Axis::linear("x", 0.0, 10.0), Axis::share("y"));
        assert!(chart.x(1.0) < chart.x(9.0) && chart.y(0.9) < chart.y(0.1));
        assert_eq!((chart.x(0.0), chart.y(0.0)), (LEFT, HEIGHT - BOTTOM));
        assert_eq!((chart.x(99.0), chart.y(1.0)), (WIDTH - RIGHT, TOP), "what is outside stands at the edge");
    }
}
