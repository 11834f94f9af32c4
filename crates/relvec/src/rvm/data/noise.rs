//! The noise precision, its start, row factors, and the scaling of targets to internal units.
//!
//! All formulas use relative precisions a = alpha / beta, so that a change of the noise precision changes no Cholesky
//! factor. A noise precision that is learned is profiled out in closed form, (M7) and (M8). Row factors are multipliers
//! of the log-likelihood of each row beside its sample weight, (M48).

use std::borrow::Cow;
use std::f64::consts::PI;

use libm::lgamma;

use crate::error::{Error, Result};
use crate::likelihood::NoiseModel;
use crate::rvm::settings::rvm::Rvm;

/// Smallest relative precision of the weight of a unit-norm column. Sums over millions of rows round G by up to 1e-13
/// in norm. A weight with a lower precision could fit that rounding error, and E would have no correct digits. The bias
/// is exempt, because it fits the mean of the targets, however large, and no other column resembles it.
pub(crate) const LEAST_PRECISION: f64 = 1e-12;

/// The noise precision beta: fixed, or learned up to a cap with a Gamma(c, d) hyperprior.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum NoisePrecision {
    /// Fixed at this value. It is 1 for likelihoods without noise.
    Fixed(f64),
    /// Optimal for the given relative precisions, and at most `cap`.
    Learned { cap: f64, c: f64, d: f64 },
}

/// Response of the noise precision to a change of one basis function, on which the gain of that change depends.
#[derive(Debug, Clone, Copy)]
pub(crate) enum NoiseProfile {
    /// The noise precision is profiled out: beta = count / (E + extra).
    Profiled { count: f64, extra: f64 },
    /// The noise precision is fixed. `copies` is the number of weights that share a precision: one per contrast for
    /// several classes, otherwise 1.
    Fixed { beta: f64, copies: f64 },
}

impl NoisePrecision {
    /// Returns the least and the largest noise precision, which are equal if it is fixed.
    pub fn bounds(&self) -> (f64, f64) {
        match *self {
            NoisePrecision::Fixed(beta) => (beta, beta),
            NoisePrecision::Learned { cap, .. } => (0.0, cap),
        }
    }

    /// Returns this noise precision with a cap of at most `most`, if it is learned.
    pub fn capped(&self, most: f64) -> NoisePrecision {
        match *self {
            NoisePrecision::Fixed(beta) => NoisePrecision::Fixed(beta),
            NoisePrecision::Learned { cap, c, d } => NoisePrecision::Learned { cap: cap.min(most), c, d },
        }
    }

    /// Returns the optimal precision for the penalised residual sum of squares E (`energy`), (M7).
    pub fn precision(&self, energy: f64, count: f64) -> f64 {
        match *self {
            NoisePrecision::Fixed(beta) => beta,
            NoisePrecision::Learned { cap, c, d } => ((count + 2.0 * c) / (energy + 2.0 * d)).min(cap),
        }
    }

    /// Returns the profile by which gains of single basis functions are computed, at E (`energy`).
    pub fn profile(&self, energy: f64, count: f64, copies: f64) -> NoiseProfile {
        match *self {
            NoisePrecision::Fixed(beta) => NoiseProfile::Fixed { beta, copies },
            NoisePrecision::Learned { cap, c, d } if (count + 2.0 * c) / (energy + 2.0 * d) < cap => {
                NoiseProfile::Profiled { count: count + 2.0 * c, extra: 2.0 * d }
            }
            NoisePrecision::Learned { cap, .. } => NoiseProfile::Fixed { beta: cap, copies },
        }
    }

    /// Returns the log evidence (M3) at noise precision `beta`, plus the log hyperprior of the noise.
    pub fn log_evidence(&self, beta: f64, energy: f64, count: f64, log_det: f64, sum_log_a: f64) -> f64 {
        let prior = match *self {
            NoisePrecision::Learned { c, d, .. } => c * beta.ln() - d * beta,
            NoisePrecision::Fixed(_) => 0.0,
        };
        prior - 0.5 * (count * ((2.0 * PI).ln() - beta.ln()) + log_det - sum_log_a + beta * energy)
    }

    /// Returns true if the noise precision is learned.
    pub fn is_learned(&self) -> bool {
        matches!(self, NoisePrecision::Learned { .. })
    }
}

/// Returns the geometric mean of noise precisions.
pub(crate) fn typical(beta: &[f64]) -> f64 {
    match *beta {
        [beta] => beta,
        _ => (beta.iter().map(|b| b.ln()).sum::<f64>() / beta.len() as f64).exp(),
    }
}

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

/// Factors of the rows' log-likelihoods, up to a constant of each row.
#[derive(Debug, Clone)]
pub(crate) struct RowFactors {
    /// Positive factors, `[N]`.
    pub factor: Vec<f64>,
    /// Constant of the log-likelihood of each row, times the sample weight, `[N]`.
    pub constant: Vec<f64>,
}

impl RowFactors {
    /// Returns the factors of given noise variances, and the weighted geometric mean of these variances. The factors
    /// are that mean divided by the variances, so that the constants sum to 0.
    ///
    /// # Errors
    /// Returns [`Error::Overflow`] if a factor or the mean is out of the range of numbers.
    pub fn of_noise(variances: &[f64], weights: &[f64]) -> Result<(RowFactors, f64)> {
        let total: f64 = weights.iter().sum();
        let middle: f64 = variances.iter().zip(weights).map(|(v, c)| c / total * v.ln()).sum();
        let logs: Vec<f64> = variances.iter().map(|v| middle - v.ln()).collect();
        let factor: Vec<f64> = logs.iter().map(|l| l.exp()).collect();
        if !(middle.exp().is_normal() && factor.iter().zip(weights).all(|(f, c)| (f * c).is_normal())) {
            return Err(Error::Overflow { what: "the ratio of noise variances".into() });
        }
        let constant = logs.iter().zip(weights).map(|(l, c)| 0.5 * c * l).collect();
        Ok((RowFactors { factor, constant }, middle.exp()))
    }

    /// Returns the factors of exposures. A count t over an exposure e has the log-likelihood of e rows of count t / e.
    ///
    /// # Errors
    /// Returns [`Error::Overflow`] if a rate t / e or a weighted exposure is out of the range of numbers.
    pub fn of_exposure(exposures: &[f64], counts: &[f64], weights: &[f64]) -> Result<RowFactors> {
        let fine = |((e, t), c): ((&f64, &f64), &f64)| (e * c).is_normal() && (t / e).is_finite();
        if !exposures.iter().zip(counts).zip(weights).all(fine) {
            return Err(Error::Overflow { what: "a count over its exposure".into() });
        }
        let constant = exposures.iter().zip(counts).zip(weights).map(|((e, t), c)| {
            let rows = if *t > 0.0 { t * e.ln() - lgamma(t + 1.0) + e * lgamma(t / e + 1.0) } else { 0.0 };
            c * rows
        });
        Ok(RowFactors { factor: exposures.to_vec(), constant: constant.collect() })
    }

    /// Returns the factors of exposures divided by their weighted mean, and the log rate of one count per mean exposure
    /// in the user's unit. No result then depends on that unit. Returns no factors if all exposures are equal.
    ///
    /// # Errors
    /// Returns the errors of [`RowFactors::of_exposure`].
    pub fn of_exposure_in_any_unit(exposures: &[f64], counts: &[f64], weights: &[f64]) -> Result<(Option<RowFactors>, f64)> {
        // Exposures are divided by the largest first, so that no unit leads out of the range of numbers.
        let largest = exposures.iter().fold(0.0, |m: f64, e| m.max(*e));
        let total: f64 = exposures.iter().zip(weights).map(|(e, c)| c * (e / largest)).sum();
        let mean = total / weights.iter().sum::<f64>();
        let scaled: Vec<f64> = exposures.iter().map(|e| e / largest / mean).collect();
        let factors = match scaled.iter().all(|e| *e == 1.0) {
            true => None,
            false => Some(RowFactors::of_exposure(&scaled, counts, weights)?),
        };
        Ok((factors, 0.0 - (largest.ln() + mean.ln())))
    }

    /// Returns the smallest factor, at most 1.
    pub fn least(&self) -> f64 {
        self.factor.iter().fold(1.0, |least, f| least.min(*f))
    }

    /// Returns the sum of the constants of all rows.
    pub fn constant(&self) -> f64 {
        self.constant.iter().sum()
    }

    /// Returns the factors of the listed rows.
    pub fn pick(&self, rows: &[usize]) -> RowFactors {
        let pick = |v: &[f64]| rows.iter().map(|n| v[*n]).collect();
        RowFactors { factor: pick(&self.factor), constant: pick(&self.constant) }
    }
}

/// Returns the sample weights times the row factors.
pub(crate) fn times(weights: &[f64], factors: Option<&RowFactors>) -> Vec<f64> {
    factors.map_or_else(|| weights.to_vec(), |f| weights.iter().zip(&f.factor).map(|(c, f)| c * f).collect())
}

/// Returns the sample weights: the multipliers of the log-likelihoods divided by the row factors.
pub(crate) fn over<'w>(weights: &'w [f64], factors: Option<&RowFactors>) -> Cow<'w, [f64]> {
    match factors {
        None => Cow::Borrowed(weights),
        Some(f) => Cow::Owned(weights.iter().zip(&f.factor).map(|(c, f)| c / f).collect()),
    }
}
