//! Fit, prediction, shifts and filters on made-up tides.

use thole::fit::fit;
use thole::lowpass::{hourly_means, tide_killer};
use thole::predict::{height_at, turns};
use thole::spike::{DespikeFilter, Verdict};
use thole::step::{is_regional, Shift, StepDetector};

const M2: f64 = 28.9841042;
const S2: f64 = 30.0;

fn hours(n: usize) -> Vec<f64> {
    (0..n).map(|i| i as f64 / 6.0).collect()
}

fn level(hour: f64) -> f64 {
    2500.0 + 1500.0 * (M2 * hour - 40.0).to_radians().cos() + 500.0 * (S2 * hour - 75.0).to_radians().cos()
}

#[test]
fn constants_are_found_again() {
    let hours = hours(6 * 24 * 30);
    let heights: Vec<f64> = hours.iter().map(|&h| level(h)).collect();
    let found = fit(&hours, &heights, &[M2, S2]).unwrap();
    assert!((found.parts[0].amplitude() - 1500.0).abs() < 0.01);
    assert!((found.parts[1].phase() - 75.0).abs() < 0.01);
    assert!(found.rms < 0.01);
}

#[test]
fn two_days_cannot_part_m2_from_a_twin() {
    let hours = hours(6 * 48);
    let heights: Vec<f64> = hours.iter().map(|&h| level(h)).collect();
    assert!(fit(&hours, &heights, &[M2, M2 + 1e-7]).is_err());
}

#[test]
fn four_turns_a_day() {
    let hours = hours(6 * 24 * 30);
    let heights: Vec<f64> = hours.iter().map(|&h| level(h)).collect();
    let found = fit(&hours, &heights, &[M2, S2]).unwrap();
    let list = turns(&found, 0.0, 24.8);
    assert_eq!(list.len(), 4);
    assert!(list.iter().filter(|t| t.high).all(|t| height_at(&found, t.hour) > 2500.0));
}

#[test]
fn knock_of_eighty_millimetres() {
    let mut residuals: Vec<f64> = (0..900).map(|i| if i % 2 == 0 { 3.0 } else { -3.0 }).collect();
    for value in &mut residuals[601..] {
        *value -= 80.0;
    }
    let shift = StepDetector::default().scan(&residuals).unwrap();
    assert_eq!(shift.start, 601);
    assert!(shift.size_mm < -75.0);
}

#[test]
fn same_shift_at_two_gauges_is_the_sea() {
    let a = Shift { start: 600, noticed: 610, size_mm: 240.0 };
    assert!(is_regional(&a, &Shift { start: 640, noticed: 652, size_mm: 180.0 }));
    assert!(!is_regional(&a, &Shift { start: 660, noticed: 662, size_mm: 240.0 }));
    assert!(!is_regional(&a, &Shift { start: 600, noticed: 602, size_mm: -240.0 }));
}

#[test]
fn patience_learns_a_new_level() {
    let mut filter = DespikeFilter::new(11, 4.5, 4.0);
    for _ in 0..11 {
        filter.push(100.0);
    }
    assert_eq!(filter.push(500.0), Verdict::Replace(100.0));
    assert_eq!(filter.push(500.0), Verdict::Replace(100.0));
    assert_eq!(filter.push(500.0), Verdict::Replace(100.0));
    assert_eq!(filter.push(500.0), Verdict::Keep(500.0));
}

#[test]
fn filter_leaves_a_constant_alone() {
    let out = tide_killer(&[1234.0; 60]);
    assert_eq!(out.len(), 22);
    assert!(out.iter().all(|x| (x - 1234.0).abs() < 1e-9));
}

#[test]
fn thin_hours_are_missing() {
    let mut minutes = vec![10.0; 240];
    minutes[100..120].fill(f64::NAN);
    let means = hourly_means(&minutes);
    assert!(means[2].is_nan());
    assert_eq!(means[1], 10.0);
}
