//! Intervals and quantiles of new targets, whatever the likelihood.

use crate::parallel::*;
use crate::prelude::*;
use ndarray::{Array1, Array2, ArrayView1, ArrayView2, ArrayViewMut1, Axis};

use super::count_quantiles::CountDistribution;
use super::counts::check_exposures;
use super::half_width::{Central, StudentPlusNormal};
use super::{Model, Prediction, Variance, beyond};
use crate::error::{Error, Result, require};
use crate::likelihood::Likelihood;

/// A quantile by the smaller of the probabilities on its two sides.
#[derive(Debug, Clone, Copy)]
struct Quantile {
    /// In (0, 1/2].
    tail: f64,
    /// Whether that is the probability above it.
    upper: bool,
    /// The central interval that ends there.
    central: Central,
}

impl Quantile {
    /// By the probability `q` below it.
    fn of(q: f64) -> Result<Quantile> {
        require(q > 0.0 && q < 1.0, || "q".into(), q, "probabilities between 0 and 1, both excluded")?;
        let tail = q.min(1.0 - q);
        Ok(Quantile { tail, upper: q > 0.5, central: Central { inside: (2.0 * q - 1.0).abs(), outside: 2.0 * tail } })
    }

    /// Both ends of the central interval of that probability.
    fn ends(level: f64) -> Result<[Quantile; 2]> {
        require(level > 0.0 && level < 1.0, || "level".into(), level, "a probability between 0 and 1, both excluded")?;
        let (outside, inside) = (1.0 - level, level);
        Ok([false, true].map(|upper| Quantile { tail: 0.5 * outside, upper, central: Central { inside, outside } }))
    }
}

/// The distribution of a new target about its mean.
pub(super) enum Shape {
    Normal,
    /// Student-t of that many degrees of freedom, with all variance for its squared scale, (M32).
    Student(f64),
    /// Noise that is Student-t of that many degrees of freedom, and a function that is normal, (M76).
    StudentNoise(f64),
    Counts,
}

impl Model {
    /// The central interval that a new target is in with probability `level`: its lower and its upper end, `[N]` each, in units
    /// of the target; by a `prediction` of this model. They are the quantiles (1 - level) / 2 and (1 + level) / 2, see
    /// [`Model::quantiles`] also for `known`.
    ///
    /// # Errors
    /// As [`Model::quantiles`]; a level that is not between 0 and 1.
    pub fn interval(
        &self,
        prediction: &Prediction,
        level: f64,
        known: Option<ArrayView1<f64>>,
    ) -> Result<(Array1<f64>, Array1<f64>)> {
        let ends = self.find(prediction, &Quantile::ends(level)?, known)?;
        Ok((ends.column(0).to_owned(), ends.column(1).to_owned()))
    }

    /// Quantiles of new targets, [N, Q], in units of the target: what they are below with the probabilities `q`, `[Q]`, by
    /// a `prediction` of this model. The uncertainty of the function is included, and so is that of the noise
    /// variance where the variational scheme has learnt it.
    ///
    /// - Gaussian noise: normal; by the variational scheme Student-t, (M32), if it has learnt the noise.
    /// - Student-t noise: the sum of it and of a normal variable, the function, (M76).
    /// - Counts: the least whole numbers that are not exceeded with the probabilities `q`, the log rate being normal, (M50).
    ///
    /// `known`, `[N]`: what is known of each row. Of counts their exposures, 1 if there are none; of a model that was fitted
    /// with the noise variance of each row those of these rows, without which the quantiles are those of the function.
    /// A quantile under Student-t noise of a fraction of a degree of freedom is infinite where it exceeds all numbers.
    ///
    /// # Errors
    /// A probability that is not between 0 and 1; no model of regression with a posterior; another number of
    /// known values than rows, ones that are not positive or that the model has no use for; counts beyond the range of
    /// numbers.
    pub fn quantiles(&self, prediction: &Prediction, q: &[f64], known: Option<ArrayView1<f64>>) -> Result<Array2<f64>> {
        let quantiles = q.iter().map(|q| Quantile::of(*q)).collect::<Result<Vec<_>>>()?;
        self.find(prediction, &quantiles, known)
    }

    /// Intervals of each output at the rows of `x`, [N, D], `[K]`; of a model of one output its one. See
    /// [`Model::interval`]; the noise of a row that is `known` is that of each output.
    ///
    /// # Errors
    /// As [`Model::predict_outputs_with`] and [`Model::interval`].
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

    /// Quantiles of each output at the rows of `x`, [N, D], `[K]` of [N, Q]; of a model of one output its one. See
    /// [`Model::quantiles`]; the noise of a row that is `known` is that of each output.
    ///
    /// # Errors
    /// As [`Model::predict_outputs_with`] and [`Model::quantiles`].
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
                // Both ends of an interval are as far from the mean.
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

    /// Refuses models that are none of regression with noise.
    #[doc(hidden)]
    pub fn check_noisy(&self, what: &str) -> Result<()> {
        match self.noise_variance() {
            Some(_) => Ok(()),
            None => Err(Error::Targets(format!("{what} of a model that is none of regression with noise"))),
        }
    }

    /// Refuses noise variances of single rows, `[N]`, unless the model was fitted with such.
    pub(super) fn check_noise(&self, noise: Option<ArrayView1<f64>>, rows: usize) -> Result<()> {
        let Some(noise) = noise else { return Ok(()) };
        if self.noise_variance() != Some(0.0) {
            return Err(Error::Targets("noise variances of rows are for models that were fitted with that of each row".into()));
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
    /// What gives half the width of the interval that ends at one of the `quantiles`, by its number and the variances of
    /// function and noise.
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

/// Fills [N, Q] row by row, on all threads.
fn fill(out: &mut Array2<f64>, row: impl Fn(usize, ArrayViewMut1<f64>) + Sync) {
    out.axis_iter_mut(Axis(0)).into_par_iter().enumerate().for_each(|(n, out)| row(n, out));
}

/// A quantile of the count of row n.
fn count(prediction: &Prediction, n: usize, exposure: f64, quantile: Quantile) -> f64 {
    let log_rate = exposure.ln() + prediction.mean[n];
    let new = CountDistribution { log_rate, deviation: prediction.model_variance[n].sqrt() };
    match quantile.upper {
        true => new.upper_quantile(quantile.tail),
        false => new.quantile(quantile.tail),
    }
}
