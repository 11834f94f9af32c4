//! Counts under a Gaussian process on centres with FITC's diagonal: Laplace's approximation, (M96).
//!
//! At log rates f, the log-likelihood of a row of exposure e and mean count y, e (y f - exp f), is expanded to second
//! order. It is then that of a Gaussian target z with precision c:
//!
//! ```text
//! c = e exp f      z = f + (y - exp f) / exp f      alpha = P z      f = z - alpha / c at the next step
//! log p(t) = log N(z) + sum_n [e_n (y_n f_n - exp f_n) - log N(z_n; f_n, 1 / c_n)] + (terms without f)
//! d log p / d log rho = (that of N(z) at fixed z and c) - 1/2 sum_n v_n c_n df_n / d log rho
//! ```
//!
//! with P of [`super::fitc`], the posterior variance v_n of f_n, and df / d log rho = alpha / c - inv(c) P (alpha / c). The
//! log posterior of a step of share h is exact, because f and alpha = inv(S) f (up to the constant) are linear in h.

use std::f64::consts::PI;

use ndarray::{Array2, ArrayView2};

use crate::error::{Error, Result};
use crate::lbfgs::{self, Limits};
use crate::process::fitc::{Fitc, Weights};
use crate::process::fitc_maximum::{Maximum, Prior};
use crate::process::kernel::{EVALUATIONS, Priors, STEP, TOLERANCE, log_normal};
use crate::query::gaussian_targets::LARGEST;
use crate::query::merged_rows::DistinctRows;
use crate::report::Interrupt;

/// Rise of the log posterior that a further step would bring, in nats, below which Newton's method has converged.
const CONVERGED: f64 = 1e-10;
/// Largest number of steps of Newton's method, and of halvings of a step.
const STEPS: usize = 100;
/// Change of half the variances of the log rates below which the averaged curvature has converged.
const AVERAGED: f64 = 1e-7;
/// The rows, and the features of the centres at these rows.
#[derive(Clone, Copy)]
pub(crate) struct Counts<'a> {
    /// Mean counts of one exposure, [n, 1], whose weights are the exposures times the sample weights, `[n]`.
    pub rows: &'a DistinctRows,
    /// Features phi, [M, n].
    pub features: ArrayView2<'a, f64>,
    /// Residual variances d, `[n]`, none negative.
    pub residual: &'a [f64],
    /// True if there is a constant, which has a flat prior.
    pub bias: bool,
}

/// Log rates of the highest posterior density at one rho.
#[derive(Debug, Clone)]
pub(crate) struct Mode {
    /// `[n]`.
    pub log_rates: Vec<f64>,
    /// inv(S) times the log rates without the constant, `[n]`. Empty if they are no function of the process.
    alpha: Vec<f64>,
    log_ratio: f64,
}

/// The model at the maximum: its Gaussian targets give the weights and the evidence.
pub(crate) struct CountFit {
    pub peak: Maximum,
    pub weights: Weights,
    /// True if the curvature is averaged over the posterior.
    pub averaged: bool,
}

/// Returns the Gaussian targets of the expansion at log rates, whose precisions are those at `log_rates` + `more`.
pub(crate) fn expanded(rows: &DistinctRows, log_rates: &[f64], more: &[f64]) -> DistinctRows {
    let precision = |f: f64, v: f64| (f + v).clamp(-LARGEST, LARGEST).exp();
    let c: Vec<f64> = log_rates.iter().zip(more).zip(&rows.weights).map(|((f, v), e)| e * precision(*f, *v)).collect();
    let target = |n: usize| log_rates[n] + rows.weights[n] * (rows.t[[n, 0]] - log_rates[n].min(LARGEST).exp()) / c[n];
    let z = Array2::from_shape_fn((c.len(), 1), |(n, _)| target(n));
    DistinctRows::new(rows.x.view(), z.view(), &vec![1.0; c.len()], &c)
}

/// Returns half the variance h of a log rate f that equals 1/2 / (1 / v0 + e exp(f + h)), by bisection. Here v0 is the
/// variance without the row's own precision, which was e exp(f + `more`) where the variance was `v`.
fn half_variance(v: f64, e: f64, f: f64, more: f64) -> f64 {
    let precision = |more: f64| e * (f + more).clamp(-LARGEST, LARGEST).exp();
    let without = (1.0 / v - precision(more)).max(0.0);
    let (mut low, mut high) = (0.0, if without > 0.0 { 0.5 / without } else { 2.0 * LARGEST });
    for _ in 0..STEPS {
        let middle = 0.5 * (low + high);
        match 2.0 * middle * (without + precision(middle)) < 1.0 {
            true => low = middle,
            false => high = middle,
        }
    }
    0.5 * (low + high)
}

impl<'a> Counts<'a> {
    fn fitc<'b>(&'b self, rows: &'b DistinctRows) -> Fitc<'b> {
        Fitc { rows, features: self.features, residual: self.residual, bias: self.bias }
    }

    /// Returns the mode without features: the log of the mean rate with a constant, otherwise 0.
    fn constant(&self, log_ratio: f64) -> Mode {
        let Counts { rows, .. } = self;
        let counts: f64 = rows.t.iter().zip(&rows.weights).map(|(y, e)| y * e).sum();
        let log_rate = if self.bias { (counts / rows.weights.iter().sum::<f64>()).ln() } else { 0.0 };
        Mode { log_rates: vec![log_rate; rows.len()], alpha: vec![0.0; rows.len()], log_ratio }
    }

    /// Returns the log-likelihood of log rates, up to terms without them.
    fn log_likelihood(&self, f: &[f64]) -> f64 {
        f.iter().zip(&self.rows.t).zip(&self.rows.weights).map(|((f, y), e)| e * (y * f - f.exp())).sum()
    }

    /// Returns the mode at rho = exp(`log_ratio`) by Newton's method from another mode; `None` if a matrix has no factor.
    fn mode(&self, log_ratio: f64, from: &Mode) -> Result<Option<Mode>> {
        let n = self.rows.len();
        let scale = (from.log_ratio - log_ratio).exp();
        let mut f = from.log_rates.clone();
        let mut alpha: Vec<f64> = from.alpha.iter().map(|a| scale * a).collect();
        let value =
            |f: &[f64], alpha: &[f64]| self.log_likelihood(f) - 0.5 * f.iter().zip(alpha).map(|(f, a)| f * a).sum::<f64>();
        let none = vec![0.0; n];
        // A start that is no function of the process has no log posterior.
        let mut now = if alpha.is_empty() { f64::NEG_INFINITY } else { value(&f, &alpha) };
        for _ in 0..STEPS {
            let rows = expanded(self.rows, &f, &none);
            let Some(own) = self.fitc(&rows).dual(log_ratio.exp())? else { return Ok(None) };
            let next: Vec<f64> = (0..n).map(|n| rows.t[[n, 0]] - own[n] / rows.weights[n]).collect();
            let gain: f64 = 0.5 * (0..n).map(|n| rows.weights[n] * (next[n] - f[n]).powi(2)).sum::<f64>();
            let mix = |old: &[f64], new: &[f64], share: f64| -> Vec<f64> {
                old.iter().zip(new).map(|(old, new)| old + share * (new - old)).collect()
            };
            let (mut share, mut found) = (1.0, None);
            for _ in 0..STEPS {
                let first = alpha.is_empty();
                let (f, alpha) =
                    if first { (next.clone(), own.clone()) } else { (mix(&f, &next, share), mix(&alpha, &own, share)) };
                let own = value(&f, &alpha);
                if own.is_finite() && own >= now - 1e-12 * now.abs() {
                    found = Some((f, alpha, own));
                    break;
                }
                share *= 0.5;
            }
            let Some(better) = found else { break };
            (f, alpha, now) = better;
            if gain <= CONVERGED {
                break;
            }
        }
        Ok(Some(Mode { log_rates: f, alpha, log_ratio }))
    }

    /// Returns the log evidence of the Gaussian targets `rows` plus what the counts add to it at the log rates `f`.
    fn with_counts(&self, gaussian: f64, rows: &DistinctRows, f: &[f64]) -> f64 {
        let one = |n: usize| 0.5 * ((rows.weights[n] / (2.0 * PI)).ln() - rows.weights[n] * (rows.t[[n, 0]] - f[n]).powi(2));
        gaussian + self.log_likelihood(f) - (0..f.len()).map(one).sum::<f64>()
    }

    /// Returns Laplace's approximation of the log evidence and its derivative in log rho at a mode, and the posterior
    /// variances of the log rates, `[n]`.
    fn evidence(&self, mode: &Mode) -> Result<Option<(f64, f64, Vec<f64>)>> {
        let rows = expanded(self.rows, &mode.log_rates, &vec![0.0; self.rows.len()]);
        let Some(found) = self.fitc(&rows).response(mode.log_ratio, &mode.alpha)? else { return Ok(None) };
        let value = self.with_counts(found.evidence.value, &rows, &mode.log_rates);
        let moved = found.variance.iter().zip(&rows.weights).zip(&found.response).map(|((v, c), by_ratio)| v * c * by_ratio);
        let slope = found.evidence.by_ratio - 0.5 * moved.sum::<f64>();
        Ok((value.is_finite() && slope.is_finite()).then_some((value, slope, found.variance)))
    }

    /// Maximises the posterior of the amplitude, starting from that of `prior`. `size` is the mean of k(x, x), and
    /// `variance` that of the log rates, in which the prior of the amplitude is expressed.
    pub fn maximise(
        &self,
        prior: &Prior,
        first: &[f64],
        size: f64,
        variance: f64,
        interrupt: &Interrupt,
    ) -> Result<(Maximum, Mode)> {
        let unit = variance.ln() - size.max(f64::MIN_POSITIVE).ln();
        let amplitude = Priors::new(self.rows.count, 0, Some(1.0)).amplitude;
        let (least, most) = amplitude.bounds();
        let (start, bounds) = match prior.structure {
            true => (prior.hyper.log_amplitude, (least + unit, most + unit)),
            false => (0.0, (0.0, 0.0)),
        };
        let limits = Limits { evaluations: EVALUATIONS, tolerance: TOLERANCE * self.rows.count, patience: 2, step: STEP };
        let normal = amplitude.normal.filter(|_| prior.structure);
        let mut last = Mode { log_rates: first.to_vec(), alpha: vec![], log_ratio: start };
        let mut best: Option<(f64, f64, Mode)> = None;
        let peak = lbfgs::maximise(&[start], &[bounds], limits, |x| {
            if interrupt.is_raised_by_hand() {
                return Err(Error::Interrupted);
            }
            // After the deadline no point has a value, which ends the maximisation.
            if best.is_some() && interrupt.is_late() {
                return Ok(None);
            }
            let Some(mut mode) = self.mode(x[0], &last)? else { return Ok(None) };
            if mode.alpha.is_empty() {
                // From the given log rates, the first step led out of the range of numbers.
                let Some(other) = self.mode(x[0], &self.constant(x[0]))? else { return Ok(None) };
                mode = other;
            }
            let Some((value, slope, _)) = self.evidence(&mode)? else { return Ok(None) };
            last = mode;
            let (log, derivative) = normal.map_or((0.0, 0.0), |prior| log_normal(x[0] - unit, prior));
            if best.as_ref().is_none_or(|(most, ..)| value + log > *most) {
                best = Some((value + log, value, last.clone()));
            }
            Ok(Some((value + log, vec![slope + derivative])))
        })?;
        let (_, log_evidence, mode) = best.ok_or(Error::Singular { columns: self.features.nrows(), jitter: 0.0 })?;
        let evaluations = peak.map_or(1, |peak| peak.evaluations);
        Ok((Maximum { log_ratio: mode.log_ratio, log_noise: vec![0.0], log_evidence, bounds, evaluations }, mode))
    }

    /// Returns the weights and the log evidence at the amplitude `peak`, by Newton's method from a `mode`. The curvature is
    /// averaged over the posterior, (M65), if `averages` of the log rates and their variances is true.
    pub fn fit(&self, peak: Maximum, mode: &Mode, averages: impl FnOnce(&[f64], &[f64]) -> bool) -> Result<CountFit> {
        let singular = || Error::Singular { columns: self.features.nrows(), jitter: 0.0 };
        let Mode { log_rates, .. } = self.mode(peak.log_ratio, mode)?.ok_or_else(singular)?;
        let n = self.rows.len();
        let mut more = vec![0.0; n];
        let variances = |more: &[f64]| -> Result<Vec<f64>> {
            let rows = expanded(self.rows, &log_rates, more);
            Ok(self.fitc(&rows).response(peak.log_ratio, &vec![0.0; n])?.ok_or_else(singular)?.variance)
        };
        let first = variances(&more)?;
        let averaged = averages(&log_rates, &first);
        for _ in 0..if averaged { STEPS } else { 0 } {
            let found = variances(&more)?;
            let half = |n: usize| half_variance(found[n], self.rows.weights[n], log_rates[n], more[n]);
            let next: Vec<f64> = (0..n).map(|n| 0.5 * (more[n] + half(n))).collect();
            let largest = next.iter().zip(&more).fold(0.0, |most: f64, (new, old)| most.max((new - old).abs()));
            more = next;
            if largest <= AVERAGED {
                break;
            }
        }
        let rows = expanded(self.rows, &log_rates, &more);
        let fitc = self.fitc(&rows);
        let weights = fitc.weights(peak.log_ratio)?.ok_or_else(singular)?;
        let gaussian = fitc.evidence(peak.log_ratio, &[0.0])?.ok_or_else(singular)?.value;
        let log_evidence = self.with_counts(gaussian, &rows, &log_rates);
        Ok(CountFit { peak: Maximum { log_evidence, ..peak }, weights, averaged })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::{Kernel, Linear, Rbf};
    use crate::process::pivoted_cholesky::Pivots;

    /// The derivative contains the response of the mode. Few centres leave a residual.
    #[test]
    fn gradient_equals_finite_differences() {
        let wave = |i: usize, k: usize| (0.618_033_988_75 * (i * (k + 1) + 3 * k) as f64).fract();
        let x = Array2::from_shape_fn((30, 2), |(i, d)| 2.0 * wave(i, d) - 1.0);
        let weights: Vec<f64> = (0..30).map(|i| 0.5 + wave(i, 7)).collect();
        let kernels: [Kernel; 2] = [Rbf { gamma: 2.0.into() }.into(), Linear {}.into()];
        for ((kernel, bias), level) in kernels.iter().zip([true, false]).zip([0.3, 20.0]) {
            let t = Array2::from_shape_fn((30, 1), |(i, _)| (level * (2.0 * x[[i, 0]] + wave(i, 5)).exp()).round());
            let rows = DistinctRows::new(x.view(), t.view(), &weights, &[1.0; 30]);
            for most in [30, 4, 0] {
                let mut pivots = Pivots::new(kernel, rows.x.view()).unwrap();
                pivots.complete(&[], &(0..30).collect::<Vec<_>>(), most, |_| false, &Interrupt::default()).unwrap();
                let counts = Counts { rows: &rows, features: pivots.features(), residual: pivots.residual(), bias };
                for log_ratio in [-2.0, 1.5] {
                    let at = |log_ratio: f64| {
                        let mode = counts.mode(log_ratio, &counts.constant(log_ratio)).unwrap().unwrap();
                        counts.evidence(&mode).unwrap().unwrap()
                    };
                    let (_, slope, variance) = at(log_ratio);
                    let expected = (at(log_ratio + 1e-4).0 - at(log_ratio - 1e-4).0) / 2e-4;
                    assert!((slope - expected).abs() < 1e-5 * (1.0 + expected.abs()), "{most} {log_ratio}: {slope} {expected}");
                    assert!(variance.iter().all(|v| *v >= 0.0 && v.is_finite()));
                }
            }
        }
    }
}
