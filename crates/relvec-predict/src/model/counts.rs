//! Expected counts of a Poisson model, whose function is the log of the rate.

use libm::lgamma;
use ndarray::{Array1, ArrayView1};

use super::{Model, Prediction};
use crate::error::{Error, Result};
use crate::likelihood::{Likelihood, check_counts};
use crate::prelude::*;

/// Predicted counts, one per row: the rate is log-normal, a count of that rate Poisson, (M50).
///
/// Among rows whose counts are all 0 the log rate is known from above only. The Gaussian of Laplace's approximation is as
/// wide to the right there, so that means and variances of counts come out too large; the log rate itself is sound.
#[derive(Debug, Clone, PartialEq)]
pub struct Counts {
    /// Expected count, `[N]`: the mean of the rate, times the exposure.
    pub mean: Array1<f64>,
    /// Variance of the rate (times the exposure) from not knowing the weights, `[N]`; the variance of a new count is
    /// `mean` more.
    pub rate_variance: Array1<f64>,
}

impl Counts {
    /// Variance of a new count, `[N]`.
    pub fn variance(&self) -> Array1<f64> {
        &self.rate_variance + &self.mean
    }

    /// Square root of [`Counts::variance`], `[N]`.
    pub fn std(&self) -> Array1<f64> {
        self.variance().mapv(f64::sqrt)
    }
}

impl Prediction {
    /// Counts of a Poisson model, whose prediction is that of the log rate; over `exposures`, `[N]`, or over 1 each.
    ///
    /// # Errors
    /// Another number of exposures than rows; one that is not positive; counts beyond the range of numbers.
    pub fn counts(&self, exposures: Option<ArrayView1<f64>>) -> Result<Counts> {
        check_exposures(exposures, self.mean.len())?;
        // Logarithms first: neither the exposure nor the rate of an exposure of 1 need be in the range of numbers.
        let log = |n: usize| exposures.map_or(0.0, |e| e[n].ln()) + self.mean[n] + 0.5 * self.model_variance[n];
        let mean: Array1<f64> = (0..self.mean.len()).map(|n| log(n).exp()).collect();
        let rate_variance: Array1<f64> =
            mean.iter().zip(&self.model_variance).map(|(m, v)| m * m * relative_variance(*v)).collect();
        match mean.iter().zip(&rate_variance).position(|(m, v)| !(m.is_finite() && v.is_finite())) {
            Some(row) => Err(Error::Overflow { what: format!("the expected count of row {row}, or its variance,") }),
            None => Ok(Counts { mean, rate_variance }),
        }
    }
}

/// Up to this variance of its log a rate is taken to be log-normal: a factor of e^2 either way in a standard deviation.
const LARGEST_LOG_VARIANCE: f64 = 4.0;

/// Variance of a rate over the square of its mean, if its log has the variance `v`. Beyond [`LARGEST_LOG_VARIANCE`] the tail
/// of a log-normal distribution, exp(v), is no rate's that counts tell of: it grows as for the Gamma distribution whose
/// log has that variance, as sqrt(v).
fn relative_variance(v: f64) -> f64 {
    let inside = v.min(LARGEST_LOG_VARIANCE);
    inside.exp_m1() + (v.sqrt() - inside.sqrt())
}

/// Nodes of an integral over log rates, and the fall of the logarithm of what is integrated at which it ends.
const NODES: usize = 200;
const FALL: f64 = 40.0;

impl Prediction {
    /// Log probabilities of counts `t`, `[N]`, under a Poisson model, in nats: the rate integrated out, (M50).
    ///
    /// # Errors
    /// As [`Prediction::counts`]; counts that are negative or not whole.
    pub fn count_log_probability(&self, t: ArrayView1<f64>, exposures: Option<ArrayView1<f64>>) -> Result<Array1<f64>> {
        if t.len() != self.mean.len() {
            let (expected, found) = (format!("{}, one per row", self.mean.len()), t.len().to_string());
            return Err(Error::Shape { what: "counts", expected, found });
        }
        check_exposures(exposures, t.len())?;
        check_counts(t)?;
        let log_rate = |n: usize| exposures.map_or(0.0, |e| e[n].ln()) + self.mean[n];
        let one = |n: usize| log_probability(t[n], log_rate(n), self.model_variance[n]);
        Ok((0..t.len()).map(one).collect())
    }
}

/// log of the integral of Poisson(t | exp f) N(f | m, v) over f, by the trapezoid rule, which converges geometrically
/// for what is smooth and falls on both sides.
fn log_probability(t: f64, m: f64, v: f64) -> f64 {
    let poisson = |f: f64| t * f - f.exp() - lgamma(t + 1.0);
    if !(v > 0.0) {
        return poisson(m);
    }
    let value = |f: f64| poisson(f) - 0.5 * (f - m).powi(2) / v;
    // The mode: its slope falls in f, between the mean and where the rate is the count.
    let slope = |f: f64| t - f.exp() - (f - m) / v;
    let at_count = (t + 0.5).ln();
    let (mut low, mut high) = (m.min(at_count) - 1.0, m.max(at_count) + 1.0);
    while slope(low) < 0.0 {
        low -= 2.0 * (high - low);
    }
    for _ in 0..100 {
        let middle = 0.5 * (low + high);
        if slope(middle) > 0.0 { low = middle } else { high = middle }
    }
    let mode = 0.5 * (low + high);
    let top = value(mode);
    let end = |sign: f64| {
        let mut step = (mode.exp() + 1.0 / v).sqrt().recip();
        while value(mode + sign * step) > top - FALL {
            step *= 1.5;
        }
        mode + sign * step
    };
    let (from, to) = (end(-1.0), end(1.0));
    let width = (to - from) / NODES as f64;
    let sum: f64 = (0..=NODES).map(|k| (value(from + width * k as f64) - top).exp()).sum();
    // The probability of what is nearly certain is not above 1 for the sake of rounding.
    (top + (sum * width).ln() - 0.5 * (2.0 * core::f64::consts::PI * v).ln()).min(0.0)
}

/// Checks exposures, `[N]`: one for each of `rows` rows, positive and finite.
pub(super) fn check_exposures(exposures: Option<ArrayView1<f64>>, rows: usize) -> Result<()> {
    let Some(e) = exposures else { return Ok(()) };
    if e.len() != rows {
        let (expected, found) = (format!("{rows}, one per row"), e.len().to_string());
        return Err(Error::Shape { what: "exposure", expected, found });
    }
    match e.iter().enumerate().find(|(_, v)| !(v.is_finite() && **v > 0.0)) {
        Some((row, value)) => {
            Err(Error::Targets(format!("exposure of row {row} is {value}; it must be a positive, finite number")))
        }
        None => Ok(()),
    }
}

impl Model {
    /// Whether it predicts counts: then [`Model::predict`] is of the log rate, and [`Prediction::counts`] of counts.
    pub fn is_of_counts(&self) -> bool {
        matches!(self.likelihood, Some(Likelihood::Poisson(_)))
    }
}
