//! Intervals and quantiles of new targets under any likelihood.

use crate::parallel::*;
use crate::prelude::*;
use ndarray::{Array1, Array2, ArrayView1, ArrayView2, ArrayViewMut1, Axis};

use super::count_quantiles::CountDistribution;
use super::counts::check_exposures;
use super::half_width::{Central, StudentPlusNormal};
use super::{Model, Prediction, Variance, beyond};
use crate::error::{Error, Result, require};
use crate::likelihood::Likelihood;

/// A quantile, stored as the smaller of the probabilities on its two sides.
#[derive(Debug, Clone, Copy)]
struct Quantile {
    /// The smaller probability, in (0, 1/2].
    tail: f64,
    /// True if `tail` is the probability above the quantile.
    upper: bool,
    /// The central interval that ends at the quantile.
    central: Central,
}

impl Quantile {
    /// Returns the quantile with the probability `q` below it.
    fn of(q: f64) -> Result<Quantile> {
        require(q > 0.0 && q < 1.0, || "q".into(), q, "probabilities between 0 and 1, both excluded")?;
        let tail = q.min(1.0 - q);
        Ok(Quantile { tail, upper: q > 0.5, central: Central { inside: (2.0 * q - 1.0).abs(), outside: 2.0 * tail } })
    }

    /// Returns both ends of the central interval with the probability `level`.
    fn ends(level: f64) -> Result<[Quantile; 2]> {
        require(level > 0.0 && level < 1.0, || "level".into(), level, "a probability between 0 and 1, both excluded")?;
        let (outside, inside) = (1.0 - level, level);
        Ok([false, true].map(|upper| Quantile { tail: 0.5 * outside, upper, central: Central { inside, outside } }))
    }
}

/// The distribution of a new target around its mean.
pub(super) enum Shape {
    Normal,
    /// Student-t with these degrees of freedom, with the sum of all variances as its squared scale, (M32).
    Student(f64),
    /// Student-t noise with these degrees of freedom and a normally distributed function, (M76).
    StudentNoise(f64),
    Counts,
}

impl Model {
    /// Returns the lower and the upper end, `[N]` each, of the central interval that contains a new target with
    /// probability `level`. They are in units of the target and come from a `prediction` of this model. They are the
    /// quantiles (1 - level) / 2 and (1 + level) / 2; see [`Model::quantiles`], for `known` too.
    ///
    /// # Errors
    /// Returns the errors of [`Model::quantiles`], and an error if `level` is not between 0 and 1.
    pub fn interval(
        &self,
        prediction: &Prediction,
        level: f64,
        known: Option<ArrayView1<f64>>,
    ) -> Result<(Array1<f64>, Array1<f64>)> {
        let ends = self.find(prediction, &Quantile::ends(level)?, known)?;
        Ok((ends.column(0).to_owned(), ends.column(1).to_owned()))
    }

    /// Returns quantiles of new targets, [N, Q], in units of the target, from a `prediction` of this model. A target is
    /// below them with the probabilities `q`, `[Q]`. They include the uncertainty of the function, and that of the
    /// noise variance if the variational scheme has learned it.
    ///
    /// - Gaussian noise: normal quantiles. If the variational scheme has learned the noise, they are Student-t, (M32).
    /// - Student-t noise: quantiles of the sum of this noise and of the normally distributed function, (M76).
    /// - Counts: the smallest integers that are not exceeded with the probabilities `q`, for a normally distributed log
    ///   rate, (M50).
    ///
    /// `known`, `[N]`, contains what is known about each row. For counts it contains their exposures; without it, each
    /// is 1. For a model that was fitted with a noise variance for each row, it contains the noise variances of these
    /// rows. Without it, the quantiles are those of the function. Under Student-t noise with less than 1 degree of
    /// freedom, a quantile that overflows is infinite.
    ///
    /// # Errors
    /// Returns an error for a probability that is not between 0 and 1, and for a model that is not a regression model
    /// with a posterior. Known values are refused if their number differs from the number of rows, if one is not
    /// positive, or if the model does not use them. Counts that overflow are an error.
    pub fn quantiles(&self, prediction: &Prediction, q: &[f64], known: Option<ArrayView1<f64>>) -> Result<Array2<f64>> {
        let quantiles = q.iter().map(|q| Quantile::of(*q)).collect::<Result<Vec<_>>>()?;
        self.find(prediction, &quantiles, known)
    }

    /// Returns the interval of each output at the rows of `x`, [N, D]. The list is `[K]`, and has one entry for a model
    /// of one output. See [`Model::interval`]; the `known` noise variance of a row applies to each output.
    ///
    /// # Errors
    /// See [`Model::predict_outputs_with`] and [`Model::interval`].
    pub fn predict_interval(
        &self,
        x: ArrayView2<f64>,
        level: f64,
        variance: Variance,
        known: Option<ArrayView1<f64>>,
    ) -> Result<Vec<(Array1<f64>, Array1<f64>)>> {
        let predictions = self.predict_outputs_with(x, variance)?;
        predictions.iter().map(|one| self.interval(one, level, known)).collect()
    }

    /// Returns quantiles of each output at the rows of `x`, [N, D]: `[K]` arrays [N, Q], one for a model of one output.
    /// See [`Model::quantiles`]; the `known` noise variance of a row applies to each output.
    ///
    /// # Errors
    /// See [`Model::predict_outputs_with`] and [`Model::quantiles`].
    pub fn predict_quantiles(
        &self,
        x: ArrayView2<f64>,
        q: &[f64],
        variance: Variance,
        known: Option<ArrayView1<f64>>,
    ) -> Result<Vec<Array2<f64>>> {
        let predictions = self.predict_outputs_with(x, variance)?;
        predictions.iter().map(|one| self.quantiles(one, q, known)).collect()
    }

    fn find(&self, prediction: &Prediction, quantiles: &[Quantile], known: Option<ArrayView1<f64>>) -> Result<Array2<f64>> {
        let shape = self.shape(prediction)?;
        let mut out = Array2::zeros((prediction.mean.len(), quantiles.len()));
        if let Shape::Counts = shape {
            check_exposures(known, prediction.mean.len())?;
            fill(&mut out, |n, row| {
                let exposure = known.map_or(1.0, |e| e[n]);
                row.into_iter().zip(quantiles).for_each(|(out, quantile)| *out = count(prediction, n, exposure, *quantile));
            });
            return match out.outer_iter().position(|row| row.iter().any(|count| count.is_infinite())) {
                Some(row) => Err(Error::Overflow { what: format!("a quantile of the count of row {row}") }),
                None => Ok(out),
            };
        }
        self.check_noise(known, prediction.mean.len())?;
        let half_width = shape.half_widths(quantiles);
        fill(&mut out, |n, row| {
            let noise = known.map_or(prediction.noise_variance, |noise| noise[n]);
            let mut half = 0.0;
            for (j, out) in row.into_iter().enumerate() {
                // Both ends of an interval have the same distance from the mean.
                if j == 0 || quantiles[j].central != quantiles[j - 1].central {
                    half = half_width(j, prediction.model_variance[n], noise);
                }
                *out = prediction.mean[n] + if quantiles[j].upper { half } else { -half };
            }
        });
        match out.outer_iter().position(|row| row.iter().any(|value| value.is_nan())) {
            Some(row) => Err(beyond(row)),
            None => Ok(out),
        }
    }

    pub(super) fn shape(&self, prediction: &Prediction) -> Result<Shape> {
        if self.is_of_counts() {
            return Ok(Shape::Counts);
        }
        self.check_noisy("quantiles")?;
        Ok(match (prediction.noise_degrees, &self.likelihood) {
            (None, _) => Shape::Normal,
            (Some(degrees), Some(Likelihood::StudentT(_))) => Shape::StudentNoise(degrees),
            (Some(degrees), _) => Shape::Student(degrees),
        })
    }

    /// Returns an error unless the model is a regression model with noise; `what` names the requested result.
    #[doc(hidden)]
    pub fn check_noisy(&self, what: &str) -> Result<()> {
        match self.noise_variance() {
            Some(_) => Ok(()),
            None => Err(Error::Targets(format!("{what}: found a model without noise, expected a regression model with noise"))),
        }
    }

    /// Checks noise variances of single rows, `[N]`. They are refused unless the model was fitted with one for each
    /// row.
    pub(super) fn check_noise(&self, noise: Option<ArrayView1<f64>>, rows: usize) -> Result<()> {
        let Some(noise) = noise else { return Ok(()) };
        if self.noise_variance() != Some(0.0) {
            let expected = "noise variances of rows require a model that was fitted with a noise variance for each row";
            return Err(Error::Targets(expected.into()));
        }
        if noise.len() != rows {
            let (expected, found) = (format!("{rows}, one per row"), noise.len().to_string());
            return Err(Error::Shape { what: "noise variance", expected, found });
        }
        match noise.iter().position(|v| !(v.is_finite() && *v > 0.0)) {
            Some(row) => {
                let value = noise[row];
                Err(Error::Targets(format!("noise variance of row {row} is {value}; it must be a positive, finite number")))
            }
            None => Ok(()),
        }
    }
}

impl Shape {
    /// Returns a function that computes half the width of the interval that ends at one of the `quantiles`. Its
    /// arguments are the index of the quantile and the variances of function and noise.
    fn half_widths(&self, quantiles: &[Quantile]) -> Box<dyn Fn(usize, f64, f64) -> f64 + Sync> {
        let central = quantiles.iter().map(|quantile| quantile.central);
        let of_deviation = |halves: Vec<f64>| -> Box<dyn Fn(usize, f64, f64) -> f64 + Sync> {
            Box::new(move |j, function, noise| halves[j] * (function + noise).sqrt())
        };
        match *self {
            Shape::Student(degrees) => of_deviation(central.map(|central| central.student(degrees)).collect()),
            Shape::StudentNoise(degrees) => {
                let sums: Vec<_> = central.map(|central| StudentPlusNormal::new(central, degrees)).collect();
                Box::new(move |j, function, noise| sums[j].half_width(noise, function))
            }
            Shape::Normal | Shape::Counts => of_deviation(central.map(Central::normal).collect()),
        }
    }
}

/// Fills `out`, [N, Q], row by row on all threads.
fn fill(out: &mut Array2<f64>, row: impl Fn(usize, ArrayViewMut1<f64>) + Sync) {
    out.axis_iter_mut(Axis(0)).into_par_iter().enumerate().for_each(|(n, out)| row(n, out));
}

/// Returns a quantile of the count of row n.
fn count(prediction: &Prediction, n: usize, exposure: f64, quantile: Quantile) -> f64 {
    let log_rate = exposure.ln() + prediction.mean[n];
    let new = CountDistribution { log_rate, deviation: prediction.model_variance[n].sqrt() };
    match quantile.upper {
        true => new.upper_quantile(quantile.tail),
        false => new.quantile(quantile.tail),
    }
}
