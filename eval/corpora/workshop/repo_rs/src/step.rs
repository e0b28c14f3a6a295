//! Level shifts: a gauge that was knocked, or a staff that slipped.
//!
//! Two cumulative sums run over the standardised residuals, one for shifts up and
//! one for shifts down. When one exceeds the limit a shift is reported at the
//! index at which that sum last was zero, which is where it began.

/// A level shift.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Shift {
    /// Index of the first sample of the new level.
    pub start: usize,
    /// Index at which it was noticed.
    pub noticed: usize,
    /// Mean of the residuals behind the start minus the mean before it.
    pub size_mm: f64,
}

/// Parameters of the detector, in standard deviations.
#[derive(Debug, Clone, Copy)]
pub struct StepDetector {
    /// Half of the smallest shift worth noticing.
    pub drift: f64,
    /// Height of the sum at which a shift is reported.
    pub limit: f64,
    /// Samples at the beginning from which the deviation is estimated.
    pub warmup: usize,
}

impl Default for StepDetector {
    fn default() -> Self {
        Self { drift: 0.5, limit: 5.0, warmup: 240 }
    }
}

impl StepDetector {
    /// Looks for the first shift in residuals (level minus prediction).
    ///
    /// Returns None for records that are shorter than twice the warm-up. Surges
    /// are shifts, too, if they come fast; callers compare with a neighbouring
    /// gauge before they blame a barge.
    pub fn scan(&self, residuals: &[f64]) -> Option<Shift> {
        if residuals.len() < 2 * self.warmup {
            return None;
        }
        let (mean, deviation) = self.baseline(&residuals[..self.warmup]);
        let (mut up, mut down) = (0.0f64, 0.0f64);
        let (mut up_from, mut down_from) = (self.warmup, self.warmup);
        for (index, &value) in residuals.iter().enumerate().skip(self.warmup) {
            let z = (value - mean) / deviation;
            if !z.is_finite() {
                continue;
            }
            up = (up + z - self.drift).max(0.0);
            if up == 0.0 {
                up_from = index + 1;
            }
            down = (down - z - self.drift).max(0.0);
            if down == 0.0 {
                down_from = index + 1;
            }
            if up > self.limit || down > self.limit {
                let start = if up > down { up_from } else { down_from };
                return Some(Shift { start, noticed: index, size_mm: self.size(residuals, start, index, mean) });
            }
        }
        None
    }

    /// Mean and deviation of the warm-up, by differences of neighbours.
    ///
    /// The residual drifts during four hours; its plain deviation would be that
    /// of the weather. Differences see only the noise of the sensor. The result
    /// is never below one millimetre, the resolution of the loggers.
    fn baseline(&self, warmup: &[f64]) -> (f64, f64) {
        let n = warmup.len() as f64;
        let mean = warmup.iter().sum::<f64>() / n;
        let squares: f64 = warmup.windows(2).map(|w| (w[1] - w[0]).powi(2)).sum();
        let deviation = (squares / (2.0 * (n - 1.0))).sqrt();
        (mean, deviation.max(1.0))
    }

    fn size(&self, residuals: &[f64], start: usize, end: usize, mean: f64) -> f64 {
        let part = &residuals[start..=end];
        part.iter().sum::<f64>() / part.len() as f64 - mean
    }
}

/// Whether two gauges saw the same shift: then it was the sea.
///
/// Starts may lie 45 minutes apart, the time a surge needs along the coast from
/// Dunmarrow to Ostrand, and the sizes must agree to a factor of two.
pub fn is_regional(a: &Shift, b: &Shift) -> bool {
    let apart = a.start.abs_diff(b.start);
    let ratio = a.size_mm / b.size_mm;
    apart <= 45 && (0.5..=2.0).contains(&ratio)
}
