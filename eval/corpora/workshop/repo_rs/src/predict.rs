//! Prediction from a fit, and its high and low waters.

use crate::fit::Fit;

/// A turning point of the predicted tide.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Turn {
    /// Hours since the epoch of the fit.
    pub hour: f64,
    /// Height in millimetres.
    pub height: f64,
    /// High water, or low water if false.
    pub high: bool,
}

/// Height at an hour.
pub fn height_at(fit: &Fit, hour: f64) -> f64 {
    fit.parts.iter().fold(fit.mean, |sum, part| {
        let (sine, cosine) = (part.speed * hour).to_radians().sin_cos();
        sum + part.cosine * cosine + part.sine * sine
    })
}

/// Rate of change at an hour, in millimetres per hour.
pub fn rate_at(fit: &Fit, hour: f64) -> f64 {
    fit.parts.iter().fold(0.0, |sum, part| {
        let speed = part.speed.to_radians();
        let (sine, cosine) = (speed * hour).sin_cos();
        sum + speed * (part.sine * cosine - part.cosine * sine)
    })
}

/// High and low waters between two hours.
///
/// The rate is looked at every twelve minutes and its zeros are narrowed by
/// halving to a second. Turns that are closer than 40 minutes to the one before
/// and differ by less than 30 mm are left out as a pair: at Dunmarrow shallow
/// water makes a double low water, and pilots want one.
pub fn turns(fit: &Fit, from: f64, to: f64) -> Vec<Turn> {
    let step = 0.2;
    let mut out: Vec<Turn> = Vec::new();
    let mut left = from;
    let mut rate_left = rate_at(fit, left);
    while left < to {
        let right = (left + step).min(to);
        let rate_right = rate_at(fit, right);
        if rate_left != 0.0 && rate_left.signum() != rate_right.signum() {
            let hour = bisect(fit, left, right);
            let turn = Turn { hour, height: height_at(fit, hour), high: rate_left > 0.0 };
            match out.last() {
                Some(last) if hour - last.hour < 2.0 / 3.0 && (turn.height - last.height).abs() < 30.0 => {
                    out.pop();
                }
                _ => out.push(turn),
            }
        }
        left = right;
        rate_left = rate_right;
    }
    out
}

fn bisect(fit: &Fit, mut left: f64, mut right: f64) -> f64 {
    let sign = rate_at(fit, left).signum();
    while right - left > 1.0 / 3600.0 {
        let middle = (left + right) / 2.0;
        if rate_at(fit, middle).signum() == sign {
            left = middle;
        } else {
            right = middle;
        }
    }
    (left + right) / 2.0
}
