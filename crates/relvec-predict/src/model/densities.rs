//! Log predictive densities of targets under any likelihood.

use core::f64::consts::PI;

use ndarray::{Array1, ArrayView1};

use super::half_width::{FALL, FEWEST_DEGREES, NEGLIGIBLE};
use super::intervals::Shape;
use super::log_gamma;
use super::{Model, Prediction};
use crate::error::{Error, Result};
use crate::prelude::*;

impl Model {
    /// Returns the log predictive densities of targets `t`, `[N]`, in nats, from a `prediction` of this model. They are
    /// the densities of the distributions whose quantiles [`Model::quantiles`] returns. `known`, `[N]`, is explained
    /// there.
    ///
    /// - Gaussian noise: [`Prediction::log_density`].
    /// - Student-t noise: the density of a sum of this noise and of the normally distributed function, (M76).
    ///   [`Prediction::log_density`] instead takes the sum of both variances as the squared scale of one Student-t
    ///   variable.
    /// - Counts: log probabilities, [`Prediction::count_log_probability`].
    ///
    /// # Errors
    /// Returns the errors of [`Model::quantiles`]. Returns an error as well if the number of targets differs from the
    /// number of rows, or if counts are negative or not integers.
    pub fn log_density(
        &self,
        prediction: &Prediction,
        t: ArrayView1<f64>,
        known: Option<ArrayView1<f64>>,
    ) -> Result<Array1<f64>> {
        let shape = self.shape(prediction)?;
        if let Shape::Counts = shape {
            return prediction.count_log_probability(t, known);
        }
        let rows = prediction.mean.len();
        if t.len() != rows {
            let (expected, found) = (format!("{rows}, one per row"), t.len().to_string());
            return Err(Error::Shape { what: "targets", expected, found });
        }
        self.check_noise(known, rows)?;
        Ok(match (shape, known) {
            (Shape::StudentNoise(degrees), None) if degrees >= FEWEST_DEGREES => student_noise(prediction, t, degrees),
            (_, None) => prediction.log_density(t),
            // The noise variance of such a model is 0, and that of the rows is used instead.
            (_, Some(noise)) => {
                Prediction { model_variance: &prediction.model_variance + &noise, ..prediction.clone() }.log_density(t)
            }
        })
    }
}

/// Returns log densities of targets `t`, `[N]`, under sums of a Student-t and a normal variable. Student's t is a
/// mixture of normal distributions over a gamma variable, and the density is a sum over nodes of the logarithm of that
/// variable. The nodes extend as far as each target requires.
fn student_noise(prediction: &Prediction, t: ArrayView1<f64>, degrees: f64) -> Array1<f64> {
    let (square, shape) = (prediction.noise_variance, 0.5 * degrees);
    if !(square > 0.0) {
        return Prediction { noise_degrees: None, ..prediction.clone() }.log_density(t);
    }
    let squares: Array1<f64> = (&t - &prediction.mean).mapv(|r| r * r);
    // Without the variance of the function, the mixture for one target is that of a gamma variable of shape + 1/2
    // around another mode. It falls by FALL within `reach` on the left, because exp(-x) - 1 + x is above x^2 / (2 + x).
    // The nodes have to extend that far. On the right all densities fall as exp(-exp d), so that the fall of the nodes
    // themselves suffices.
    let share = FALL / (shape + 0.5);
    let reach = 0.5 * (share + (share * (share + 8.0)).sqrt());
    let fall = |r2: f64| {
        let mode = ((degrees + 1.0) / (degrees + r2 / square)).ln();
        let end = (mode - reach).min(0.0);
        FALL.max(shape * log_gamma::excess(end))
    };
    let most = squares.iter().map(|r2| fall(*r2)).filter(|fall| fall.is_finite()).fold(FALL, f64::max);
    let alone = prediction.log_density(t);
    let nodes = log_gamma::log_nodes(shape, most);
    let top = nodes.iter().fold(f64::NEG_INFINITY, |top, (_, log)| top.max(*log));
    let of_row = |n: usize| {
        let (r2, variance) = (squares[n], prediction.model_variance[n]);
        let own = fall(r2);
        // If a target is so far out that its square overflows, the density of the noise alone is used.
        if variance / square < NEGLIGIBLE || !own.is_finite() {
            return alone[n];
        }
        let logs = nodes.iter().filter(|(_, log)| top - log < own).map(|(d, log)| {
            let total = variance + square * (-d).exp();
            log - 0.5 * ((2.0 * PI * total).ln() + r2 / total)
        });
        let logs: Vec<f64> = logs.collect();
        let largest = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        largest + logs.iter().map(|log| (log - largest).exp()).sum::<f64>().ln()
    };
    (0..t.len()).map(of_row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::half_width::{Central, StudentPlusNormal};

    fn densities(degrees: f64, square: f64, variance: f64, distances: &[f64]) -> Vec<f64> {
        let n = distances.len();
        let prediction = Prediction {
            mean: Array1::from_elem(n, 7.0),
            model_variance: Array1::from_elem(n, variance),
            noise_variance: square,
            noise_degrees: Some(degrees),
        };
        let t: Array1<f64> = distances.iter().map(|r| 7.0 + r).collect();
        student_noise(&prediction, t.view(), degrees).to_vec()
    }

    /// Each density is the derivative of the probability whose quantiles are the ends of intervals.
    #[test]
    fn densities_are_slopes_of_the_probabilities_of_intervals() {
        for degrees in [0.1, 1.0, 4.5, 30.0, 900.0] {
            for variance in [1e-6, 0.3, 1.0, 1e4] {
                for level in [0.05, 0.5, 0.95, 0.999] {
                    let half = |level: f64| {
                        let central = Central { inside: level, outside: 1.0 - level };
                        StudentPlusNormal::new(central, degrees).half_width(2.0, variance)
                    };
                    let h = 1e-4 * (1.0 - level);
                    let expected = 2.0 * h / (2.0 * (half(level + h) - half(level - h)));
                    let found = densities(degrees, 2.0, variance, &[half(level), -half(level)]);
                    assert!((found[0].exp() / expected - 1.0).abs() < 1e-5, "{degrees} {variance} {level}: {found:?}");
                    assert!((found[0] - found[1]).abs() < 1e-12);
                }
            }
        }
    }

    /// The limits are Student's t without the function, and a normal distribution for many degrees. Every density is
    /// finite, however far the other targets are.
    #[test]
    fn densities_have_the_right_limits() {
        let distances = [0.0, 0.1, 3.0, 60.0, 1e4, 1e9];
        for degrees in [0.5, 2.0, 7.0, 300.0] {
            let student = densities(degrees, 2.0, 0.0, &distances);
            for (near, exact) in densities(degrees, 2.0, 1e-13, &distances).iter().zip(&student) {
                assert!((near - exact).abs() < 1e-9 * (1.0 + exact.abs()), "{degrees}: {near} {exact}");
            }
        }
        let normal = |r: f64, v: f64| -0.5 * ((2.0 * PI * v).ln() + r * r / v);
        for (found, r) in densities(1e12, 2.0, 3.0, &distances[..4]).iter().zip(distances) {
            assert!((found - normal(r, 5.0)).abs() < 1e-6 * (1.0 + normal(r, 5.0).abs()), "{r}: {found}");
        }
        let near = densities(4.0, 2.0, 3.0, &[1.0])[0];
        let beside = densities(4.0, 2.0, 3.0, &[1.0, 1e100, 1e150]);
        assert!((beside[0] - near).abs() < 1e-12 && beside.iter().all(|log| log.is_finite()), "{near} {beside:?}");
    }
}
