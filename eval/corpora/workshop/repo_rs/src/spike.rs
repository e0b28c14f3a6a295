//! Despiking of a stream, one sample at a time.
//!
//! Unlike `check_spikes` of ebbline this one looks backwards only and answers at
//! once. It feeds the display in the pilots' office and sets no flags.

use crate::ring::MedianRing;

/// What the filter says of a sample.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Verdict {
    /// Shown as it is.
    Keep(f64),
    /// Replaced by the running median.
    Replace(f64),
    /// Too few samples so far to say anything.
    Learning(f64),
}

impl Verdict {
    /// The value to show.
    pub fn value(self) -> f64 {
        match self {
            Verdict::Keep(v) | Verdict::Replace(v) | Verdict::Learning(v) => v,
        }
    }
}

/// Running Hampel filter.
pub struct DespikeFilter {
    ring: MedianRing,
    k: f64,
    floor: f64,
    streak: u32,
    patience: u32,
}

impl DespikeFilter {
    /// A filter with a window, a factor, and a floor for the deviation.
    pub fn new(window: usize, k: f64, floor: f64) -> Self {
        Self { ring: MedianRing::new(window), k, floor, streak: 0, patience: 4 }
    }

    /// How many deviating samples in a row are believed to be a new level.
    pub fn with_patience(mut self, patience: u32) -> Self {
        self.patience = patience.max(1);
        self
    }

    /// Judges a sample and takes it into the window.
    ///
    /// A deviating sample enters the window as well: leaving it out would freeze
    /// the median after a true step for ever. After `patience` deviating samples
    /// in a row the window is emptied and the filter learns the new level.
    pub fn push(&mut self, value: f64) -> Verdict {
        let ready = self.ring.len() >= 5;
        let verdict = match (self.ring.median(), self.ring.deviation()) {
            (Some(middle), Some(deviation)) if ready => {
                let limit = self.k * (1.4826 * deviation).max(self.floor);
                if (value - middle).abs() > limit {
                    self.streak += 1;
                    if self.streak >= self.patience {
                        self.ring.clear();
                        self.streak = 0;
                        Verdict::Keep(value)
                    } else {
                        Verdict::Replace(middle)
                    }
                } else {
                    self.streak = 0;
                    Verdict::Keep(value)
                }
            }
            _ => Verdict::Learning(value),
        };
        self.ring.push(value);
        verdict
    }
}
