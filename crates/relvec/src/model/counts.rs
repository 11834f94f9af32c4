//! Expected counts of a Poisson model, whose function is the log of the rate.

use ndarray::{Array1, ArrayView1};

use super::{Model, Prediction};
use crate::error::{Error, Result};

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
        if let Some(e) = exposures {
            if e.len() != self.mean.len() {
                let (expected, found) = (format!("{}, one per row", self.mean.len()), e.len().to_string());
                return Err(Error::Shape { what: "exposure", expected, found });
            }
            if let Some((row, value)) = e.iter().enumerate().find(|(_, v)| !(v.is_finite() && **v > 0.0)) {
                return Err(Error::Targets(format!("exposure of row {row} is {value}; it must be a positive, finite number")));
            }
        }
        let exposure = |n: usize| exposures.map_or(1.0, |e| e[n]);
        let rate = |n: usize| exposure(n) * (self.mean[n] + 0.5 * self.model_variance[n]).exp();
        let mean: Array1<f64> = (0..self.mean.len()).map(rate).collect();
        let rate_variance: Array1<f64> = mean.iter().zip(&self.model_variance).map(|(m, v)| m * m * v.exp_m1()).collect();
        match mean.iter().zip(&rate_variance).position(|(m, v)| !(m.is_finite() && v.is_finite())) {
            Some(row) => Err(Error::Overflow { what: format!("the expected count of row {row}, or its variance,") }),
            None => Ok(Counts { mean, rate_variance }),
        }
    }
}

impl Model {
    /// Whether it predicts counts: then [`Model::predict`] is of the log rate, and [`Prediction::counts`] of counts.
    pub fn is_of_counts(&self) -> bool {
        self.likelihood.as_ref().is_some_and(|likelihood| likelihood.as_dyn().counts())
    }
}
