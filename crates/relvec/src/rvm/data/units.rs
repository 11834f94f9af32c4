//! Targets in units of their own, and the noise that a fit begins with.

use crate::error::{Error, Result};
use crate::likelihood::NoiseModel;
use crate::rvm::data::noise::NoisePrecision;
use crate::rvm::settings::rvm::Rvm;

/// The noise precision is at most this over var(t), under Student-t noise without outliers: a perfect fit must not divide
/// by zero.
pub(crate) const NOISE_CAP: f64 = 1e6;
/// Standard deviations of Gaussian targets in their median distance from the median.
pub(crate) const DEVIATION: f64 = 1.4826;
/// For a constant target, over its square.
const CONSTANT_NOISE: f64 = 1e12;

/// How inner and outer units differ.
#[derive(Debug, Clone)]
pub(crate) struct Units {
    /// Divides the targets.
    pub scale: f64,
    /// Subtracted from the scaled targets; 0 without bias.
    pub mean: f64,
}

impl Units {
    /// For targets of that mean and standard deviation.
    pub fn new(rvm: &Rvm, mean: f64, spread: f64) -> Result<Units> {
        let scale = [spread, mean.abs()].into_iter().find(|s| *s > 0.0).unwrap_or(1.0);
        let square = scale * scale;
        if !(square.is_normal() && (1.0 / square).is_normal()) {
            return Err(Error::Overflow { what: format!("the square of the targets' spread, {scale:e},") });
        }
        Ok(Units { scale, mean: if rvm.bias { mean / scale } else { 0.0 } })
    }
}

/// The noise at the start; `typical`: the geometric mean of noise variances that are known.
pub(crate) fn first_noise(rvm: &Rvm, units: &Units, constant: bool, typical: Option<f64>) -> Result<NoisePrecision> {
    let c = rvm.inference.as_dyn().hyperpriors();
    let square = units.scale * units.scale;
    let noise = match typical.map_or(rvm.likelihood.as_dyn().noise(), NoiseModel::Fixed) {
        NoiseModel::None => NoisePrecision::Fixed(1.0),
        NoiseModel::Fixed(variance) => NoisePrecision::Fixed(square / variance),
        NoiseModel::Learnt if constant => NoisePrecision::Fixed(CONSTANT_NOISE),
        NoiseModel::Learnt => NoisePrecision::Learned { cap: NOISE_CAP, c: c.c, d: c.d / square },
    };
    match noise {
        NoisePrecision::Fixed(beta) if !beta.is_normal() => {
            Err(Error::Overflow { what: "the noise precision in units of the targets' variance".into() })
        }
        _ => Ok(noise),
    }
}

pub(crate) fn mean(t: &[f64], c: &[f64]) -> f64 {
    let total: f64 = c.iter().sum();
    t.iter().zip(c).map(|(t, c)| t * (c / total)).sum()
}

/// Median, and the standard deviation that the median distance from it has under Gaussian noise: neither the
/// unit of the targets nor the least noise depends on how far outliers are. If more than half of the targets are equal, mean and
/// standard deviation.
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

/// The least value that half of the weight is not above.
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

/// Standard deviation about `m`, relative to the largest entry first, so that squares stay in range.
pub(crate) fn deviation(t: &[f64], m: f64, c: &[f64]) -> f64 {
    let largest = t.iter().map(|t| (t - m).abs()).fold(0.0, f64::max);
    if largest == 0.0 {
        return 0.0;
    }
    let squares: Vec<f64> = t.iter().map(|t| ((t - m) / largest).powi(2)).collect();
    largest * mean(&squares, c).sqrt()
}
