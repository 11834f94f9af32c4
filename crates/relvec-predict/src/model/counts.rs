//! Expected counts of a Poisson model, whose function is the log of the rate.

use libm::lgamma;
use ndarray::{Array1, ArrayView1};

use super::{Model, Prediction};
use crate::error::{Error, Result};
use crate::likelihood::{Likelihood, check_counts};
use crate::prelude::*;

/// Predicted counts, one per row. The rate is log-normal, and the count given the rate is Poisson, (M50).
///
/// If all neighbouring rows have the count 0, only an upper limit of the log rate is known. The Gaussian of
/// Laplace's approximation is as wide above its mean as below it, so that means and variances of counts are too large
/// there. The log rate itself is reliable.
#[derive(Debug, Clone, PartialEq)]
pub struct Counts {
    /// Expected count, `[N]`: the mean of the rate, times the exposure.
    pub mean: Array1<f64>,
    /// Variance of the rate times the exposure from the uncertainty of the weights, `[N]`. The variance of a new count
    /// is larger by `mean`.
    pub rate_variance: Array1<f64>,
}

impl Counts {
    /// Returns the variance of a new count, `[N]`.
    pub fn variance(&self) -> Array1<f64> {
        &self.rate_variance + &self.mean
    }

    /// Returns the square root of [`Counts::variance`], `[N]`.
    pub fn std(&self) -> Array1<f64> {
        self.variance().mapv(f64::sqrt)
    }
}

impl Prediction {
    /// Returns the counts of a Poisson model from this prediction of its log rate, for `exposures`, `[N]`, or 1 for
    /// each row.
    ///
    /// # Errors
    /// Returns an error if the number of exposures differs from the number of rows, an exposure is not positive, or a
    /// count overflows.
    pub fn counts(&self, exposures: Option<ArrayView1<f64>>) -> Result<Counts> {
        check_exposures(exposures, self.mean.len())?;
        // Logarithms are added first, because the exposure, or the rate for an exposure of 1, may be outside the range
        // of numbers.
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

/// Largest variance of the log of a rate at which the rate is taken to be log-normal. One standard deviation is then a
/// factor of e^2.
const LARGEST_LOG_VARIANCE: f64 = 4.0;

/// Returns the variance of a rate divided by its squared mean, if its log has the variance `v`. Beyond
/// [`LARGEST_LOG_VARIANCE`], no counts support the tail of a log-normal distribution, exp(v). The ratio then grows as
/// sqrt(v), as it does for the Gamma distribution whose log has that variance.
fn relative_variance(v: f64) -> f64 {
    let inside = v.min(LARGEST_LOG_VARIANCE);
    inside.exp_m1() + (v.sqrt() - inside.sqrt())
}

/// Number of intervals between the nodes of an integral over log rates.
const NODES: usize = 200;
/// Fall of the log of the integrand at which the integral ends.
const FALL: f64 = 40.0;

impl Prediction {
    /// Returns log probabilities of counts `t`, `[N]`, under a Poisson model, in nats, with the rate integrated out,
    /// (M50).
    ///
    /// # Errors
    /// Returns the errors of [`Prediction::counts`], and an error if counts are negative or not integers.
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

/// Returns the log of the integral of Poisson(t | exp f) N(f | m, v) over f. The trapezoid rule converges geometrically
/// for smooth integrands that fall on both sides.
fn log_probability(t: f64, m: f64, v: f64) -> f64 {
    let poisson = |f: f64| t * f - f.exp() - lgamma(t + 1.0);
    if !(v > 0.0) {
        return poisson(m);
    }
    let value = |f: f64| poisson(f) - 0.5 * (f - m).powi(2) / v;
    // The derivative falls with f, and is 0 between the mean and the log rate at which the rate is the count.
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
    // Rounding must not raise a probability that is nearly 1 above 1.
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
    /// Returns true if the model predicts counts. [`Model::predict`] then predicts the log rate, and
    /// [`Prediction::counts`] the counts.
    pub fn is_of_counts(&self) -> bool {
        matches!(self.likelihood, Some(Likelihood::Poisson(_)))
    }
}
