//! Least-squares fit of harmonic constants.

use crate::error::{Result, TholeError};

/// Cosine and sine part of a constituent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Part {
    /// Speed in degrees per hour.
    pub speed: f64,
    /// Factor of the cosine in millimetres.
    pub cosine: f64,
    /// Factor of the sine in millimetres.
    pub sine: f64,
}

impl Part {
    /// Amplitude in millimetres.
    pub fn amplitude(&self) -> f64 {
        self.cosine.hypot(self.sine)
    }

    /// Phase lag in degrees, from 0 to below 360.
    pub fn phase(&self) -> f64 {
        self.sine.atan2(self.cosine).to_degrees().rem_euclid(360.0)
    }
}

/// Result of a fit.
#[derive(Debug, Clone, PartialEq)]
pub struct Fit {
    /// Mean level in millimetres.
    pub mean: f64,
    /// One part for each speed that was asked for.
    pub parts: Vec<Part>,
    /// Root of the mean square of what is left.
    pub rms: f64,
}

/// Fits a mean and the given speeds to heights at hours.
///
/// The normal equations are summed up in one pass, so memory does not grow with
/// the record: a year of minutes with 37 speeds needs 45 kB. They are solved by
/// Cholesky; a pivot below 1e-9 of its diagonal is an error and not a warning,
/// because constants from it looked believable and were 20 cm wrong.
pub fn fit(hours: &[f64], heights: &[f64], speeds: &[f64]) -> Result<Fit> {
    let columns = 1 + 2 * speeds.len();
    let mut normal = vec![0.0; columns * columns];
    let mut right = vec![0.0; columns];
    let mut row = vec![0.0; columns];
    // Heights are taken relative to the first one: sums of squares of four
    // metres lose the last millimetre otherwise.
    let base = heights.iter().copied().find(|h| h.is_finite()).unwrap_or(0.0);
    for (&hour, &height) in hours.iter().zip(heights) {
        if !height.is_finite() {
            continue;
        }
        fill_row(&mut row, hour, speeds);
        for i in 0..columns {
            right[i] += row[i] * (height - base);
            for j in 0..=i {
                normal[i * columns + j] += row[i] * row[j];
            }
        }
    }
    cholesky(&mut normal, columns)?;
    let solution = solve(&normal, &right, columns);
    let mut squares = 0.0;
    let mut used = 0usize;
    for (&hour, &height) in hours.iter().zip(heights) {
        if height.is_finite() {
            fill_row(&mut row, hour, speeds);
            let modelled: f64 = row.iter().zip(&solution).map(|(a, b)| a * b).sum();
            squares += (height - base - modelled).powi(2);
            used += 1;
        }
    }
    let parts = speeds
        .iter()
        .enumerate()
        .map(|(i, &speed)| Part { speed, cosine: solution[1 + 2 * i], sine: solution[2 + 2 * i] })
        .collect();
    Ok(Fit { mean: base + solution[0], parts, rms: (squares / used.max(1) as f64).sqrt() })
}

fn fill_row(row: &mut [f64], hour: f64, speeds: &[f64]) {
    row[0] = 1.0;
    for (i, &speed) in speeds.iter().enumerate() {
        let (sine, cosine) = (speed * hour).to_radians().sin_cos();
        row[1 + 2 * i] = cosine;
        row[2 + 2 * i] = sine;
    }
}

/// Factors the lower triangle in place.
fn cholesky(matrix: &mut [f64], n: usize) -> Result<()> {
    for i in 0..n {
        for j in 0..=i {
            let mut sum = matrix[i * n + j];
            for k in 0..j {
                sum -= matrix[i * n + k] * matrix[j * n + k];
            }
            if i == j {
                if sum <= 1e-9 * matrix[i * n + i] || sum <= 0.0 {
                    return Err(TholeError::Singular { column: i });
                }
                matrix[i * n + i] = sum.sqrt();
            } else {
                matrix[i * n + j] = sum / matrix[j * n + j];
            }
        }
    }
    Ok(())
}

fn solve(lower: &[f64], right: &[f64], n: usize) -> Vec<f64> {
    let mut x = right.to_vec();
    for i in 0..n {
        for k in 0..i {
            x[i] -= lower[i * n + k] * x[k];
        }
        x[i] /= lower[i * n + i];
    }
    for i in (0..n).rev() {
        for k in i + 1..n {
            x[i] -= lower[k * n + i] * x[k];
        }
        x[i] /= lower[i * n + i];
    }
    x
}
