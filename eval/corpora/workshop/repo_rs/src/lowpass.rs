//! Removal of the tides by a filter of 39 hourly values.

/// Half of the weights; the filter is symmetric and the centre weighs nothing.
const HALF: [f64; 20] = [
    0.0, 2.0, 1.0, 1.0, 2.0, 0.0, 1.0, 1.0, 0.0, 2.0, 0.0, 1.0, 1.0, 0.0, 1.0, 0.0, 0.0, 1.0, 0.0, 1.0,
];

/// Sum of all weights.
const TOTAL: f64 = 30.0;

/// Hours that are lost at either end.
pub const EDGE: usize = 19;

/// Filters hourly heights; the result is 38 values shorter.
///
/// A missing value (NaN) makes every result NaN that it takes part in: 39 hours
/// for one missing hour. Fill holes first if that is too much.
pub fn tide_killer(hourly: &[f64]) -> Vec<f64> {
    if hourly.len() < 2 * EDGE + 1 {
        return Vec::new();
    }
    (EDGE..hourly.len() - EDGE)
        .map(|centre| {
            let mut sum = HALF[0] * hourly[centre];
            for (lag, weight) in HALF.iter().enumerate().skip(1) {
                // Weightless hours are left out and not multiplied by zero, or
                // a NaN there would spoil the result for nothing.
                if *weight != 0.0 {
                    sum += weight * (hourly[centre - lag] + hourly[centre + lag]);
                }
            }
            sum / TOTAL
        })
        .collect()
}

/// Means of full hours from samples of one minute.
///
/// An hour with fewer than 45 samples gives NaN. The mean is that of the half
/// hour before and after the full hour, so it is centred and not late.
pub fn hourly_means(minutes: &[f64]) -> Vec<f64> {
    let hours = minutes.len() / 60;
    (0..hours)
        .map(|hour| {
            let centre = hour * 60;
            let (from, to) = (centre.saturating_sub(30), (centre + 30).min(minutes.len()));
            let valid: Vec<f64> = minutes[from..to].iter().copied().filter(|x| x.is_finite()).collect();
            if valid.len() < 45 {
                f64::NAN
            } else {
                valid.iter().sum::<f64>() / valid.len() as f64
            }
        })
        .collect()
}
