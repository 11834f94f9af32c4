//! Scaling of targets to internal units, and the noise precision at the start of a fit.

use crate::error::{Error, Result};
use crate::likelihood::NoiseModel;
use crate::rvm::data::noise::NoisePrecision;
use crate::rvm::settings::rvm::Rvm;

/// Largest noise precision in units of 1 / var(t), so that a perfect fit does not divide by zero. Under Student-t noise
/// var(t) is that of the targets without outliers.
pub(crate) const NOISE_CAP: f64 = 1e6;
/// Standard deviation of a Gaussian divided by its median distance from the median.
pub(crate) const DEVIATION: f64 = 1.4826;
/// Noise precision of a constant target, in units of 1 / (its square).
const CONSTANT_NOISE: f64 = 1e12;

/// Scaling between internal and original units of the targets.
#[derive(Debug, Clone)]
pub(crate) struct Units {
    /// Divisor of the targets.
    pub scale: f64,
    /// Mean that is subtracted from the scaled targets, 0 without bias.
    pub mean: f64,
}

impl Units {
    /// Returns the scaling of targets with the given mean and standard deviation.
    ///
    /// # Errors
    /// Returns [`Error::Overflow`] if the square of the scale, or its reciprocal, is out of the range of numbers.
    pub fn new(rvm: &Rvm, mean: f64, spread: f64) -> Result<Units> {
        let scale = [spread, mean.abs()].into_iter().find(|s| *s > 0.0).unwrap_or(1.0);
        let square = scale * scale;
        if !(square.is_normal() && (1.0 / square).is_normal()) {
            return Err(Error::Overflow { what: format!("the square of the targets' spread, {scale:e},") });
        }
        Ok(Units { scale, mean: if rvm.bias { mean / scale } else { 0.0 } })
    }
}

/// Returns the noise precision at the start of a fit, in internal units. `typical` is the geometric mean of given noise
/// variances.
///
/// # Errors
/// Returns [`Error::Overflow`] if a fixed noise precision is out of the range of numbers in internal units.
pub(crate) fn first_noise(rvm: &Rvm, units: &Units, constant: bool, typical: Option<f64>) -> Result<NoisePrecision> {
    let c = rvm.inference.as_dyn().hyperpriors();
    let square = units.scale * units.scale;
    let noise = match typical.map_or(rvm.likelihood.as_dyn().noise(), NoiseModel::Fixed) {
        NoiseModel::None => NoisePrecision::Fixed(1.0),
        NoiseModel::Fixed(variance) => NoisePrecision::Fixed(square / variance),
        NoiseModel::Learned if constant => NoisePrecision::Fixed(CONSTANT_NOISE),
        NoiseModel::Learned => NoisePrecision::Learned { cap: NOISE_CAP, c: c.c, d: c.d / square },
    };
    match noise {
        NoisePrecision::Fixed(beta) if !beta.is_normal() => {
            Err(Error::Overflow { what: "the noise precision in units of the targets' variance".into() })
        }
        _ => Ok(noise),
    }
}

/// Returns the mean of `t` with weights `c`.
pub(crate) fn mean(t: &[f64], c: &[f64]) -> f64 {
    let total: f64 = c.iter().sum();
    t.iter().zip(c).map(|(t, c)| t * (c / total)).sum()
}

/// Returns the weighted median of `t`, and a robust standard deviation: [`DEVIATION`] times the median distance from
/// the median. Neither value depends on how far away outliers are. If more than half of the targets are equal, returns
/// the mean and the standard deviation.
pub(crate) fn middle_and_spread(t: &[f64], c: &[f64]) -> (f64, f64) {
    let middle = median(t, c);
    let distance: Vec<f64> = t.iter().map(|t| (t - middle).abs()).collect();
    let spread = DEVIATION * median(&distance, c);
    if spread > 0.0 {
        return (middle, spread);
    }
    let m = mean(t, c);
    (m, deviation(t, m, c))
}

/// Returns the smallest value at or below which at least half of the weight lies.
fn median(values: &[f64], c: &[f64]) -> f64 {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_unstable_by(|i, j| values[*i].total_cmp(&values[*j]));
    let half = 0.5 * c.iter().sum::<f64>();
    let mut below = 0.0;
    let reached = order.iter().find(|i| {
        below += c[**i];
        below >= half
    });
    values[*reached.unwrap_or(&order[order.len() - 1])]
}

/// Returns the standard deviation of `t` about `m` with weights `c`. Distances are divided by the largest one first, so
/// that their squares stay in range.
pub(crate) fn deviation(t: &[f64], m: f64, c: &[f64]) -> f64 {
    let largest = t.iter().map(|t| (t - m).abs()).fold(0.0, f64::max);
    if largest == 0.0 {
        return 0.0;
    }
    let squares: Vec<f64> = t.iter().map(|t| ((t - m) / largest).powi(2)).collect();
    largest * mean(&squares, c).sqrt()
}
