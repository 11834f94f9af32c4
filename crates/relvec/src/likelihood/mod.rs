//! Likelihoods in fits: derivatives of log p(t | f) in the function value f = phi'w. Their parameters and links are in
//! the crate `relvec-predict`.

mod bernoulli;
mod gaussian;
mod poisson;
mod softmax;
pub(crate) mod student_t;

use relvec_predict::internal::likelihood::View;

use crate::error::{Error, Result};
use crate::targets::{Given, Values};

pub use relvec_predict::internal::likelihood::{Bernoulli, Gaussian, Likelihood, Poisson, Softmax, StudentT};
pub(crate) use relvec_predict::internal::likelihood::{Contrasts, check_counts, moderate, normalise, sigmoid};
pub(crate) use softmax::ClassRows;

/// Derivatives of the log-likelihood of each row at f, `[N]`.
#[derive(Debug, Clone)]
pub(crate) struct Working {
    /// log p(t_n | f_n), `[N]`.
    pub log_likelihood: Vec<f64>,
    /// d log p / d f, `[N]`; [N, R], row by row, for R outputs.
    pub residual: Vec<f64>,
    /// -d^2 log p / d f^2, which is not negative, `[N]`; its mean for several outputs.
    pub curvature: Vec<f64>,
    /// d curvature / d f, `[N]`; empty for several outputs.
    pub third: Vec<f64>,
}

/// Functions of a likelihood that fits need. They turn any target into weighted least squares. Near f the
/// log-likelihood is that of real targets f + residual / curvature with precisions `curvature`.
pub(crate) trait LikelihoodFunction: Send + Sync {
    /// Returns R, the number of functions that a target depends on.
    fn outputs(&self, _values: Values<'_>) -> usize {
        1
    }

    /// Returns true if the functions are contrasts of the classes.
    fn couples_classes(&self) -> bool {
        false
    }

    /// Returns the targets as numbers, `[N]`; several real outputs are [N, K], row by row.
    fn targets(&self, values: Values<'_>) -> Result<Vec<f64>>;

    /// Returns true if the likelihood uses these further data of each row.
    fn uses(&self, _given: &Given) -> bool {
        false
    }

    /// Returns the derivatives at f, [N, R], row by row. Noise, if there is any, has unit variance.
    fn working(&self, y: &[f64], f: &[f64]) -> Working;

    /// Averages the curvature under N(`f`, `covariance`), where f contains the functions of a row: one, or those of the
    /// K classes, [K] and [K, K]. `out` receives one number, or the mean of y_k y_l for each pair of classes k < l in
    /// the order (0, 1), (0, 2), (1, 2), (0, 3) and so on, (M65). A constant curvature is its own mean.
    fn mean_curvature(&self, _f: &[f64], _covariance: &[f64], out: &mut [f64]) {
        out.fill(1.0);
    }

    /// Returns true if the curvature does not depend on f. One quadratic form then serves for the whole fit.
    fn constant_curvature(&self) -> bool;

    /// Returns true if targets are classes.
    fn classifies(&self) -> bool {
        false
    }

    /// Returns true if targets are counts and f is the log of their rate. It is usually far from 0, so that a search
    /// should begin with the bias in the model.
    fn counts(&self) -> bool {
        false
    }

    /// Returns true if the scheme `variational` has a bound for the likelihood.
    fn has_variational_bound(&self) -> bool {
        self.constant_curvature() && self.scale_mixture().is_none()
    }

    /// Returns the mixture if the noise is Gaussian given a factor of its precision in each row. All other functions
    /// then describe that Gaussian noise.
    fn scale_mixture(&self) -> Option<ScaleMixture> {
        None
    }

    /// Returns the noise parameter, and whether it is learned.
    fn noise(&self) -> NoiseModel;
}

/// Factors of the noise precision in each row. They have a Gamma distribution, whose shape and rate are half the
/// degrees of freedom.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct ScaleMixture {
    /// Degrees of freedom; `None` if they are learned.
    pub degrees: Option<f64>,
}

/// The noise variance of a likelihood, and its source.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum NoiseModel {
    /// The likelihood has no noise parameter.
    None,
    /// The noise variance is learned from the data.
    Learned,
    /// The noise variance is fixed at this value, in squared units of the target.
    Fixed(f64),
}

impl View<dyn LikelihoodFunction> for Likelihood {
    fn view(&self) -> &(dyn LikelihoodFunction + 'static) {
        match self {
            Likelihood::Gaussian(own) => own,
            Likelihood::Bernoulli(own) => own,
            Likelihood::Softmax(own) => own,
            Likelihood::Poisson(own) => own,
            Likelihood::StudentT(own) => own,
        }
    }
}

/// Returns the error for several outputs.
fn several(name: &str, outputs: usize) -> Error {
    Error::Targets(format!("the likelihood {name} needs targets of one output, found {outputs}; gaussian supports several"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the integral by Simpson's rule over 12 standard deviations.
    fn integral(m: f64, v: f64, g: impl Fn(f64) -> f64) -> f64 {
        const STEPS: i32 = 2400;
        let at = |i: i32| -> f64 {
            let z = 24.0 * f64::from(i) / f64::from(STEPS) - 12.0;
            (-0.5 * z * z).exp() / (2.0 * std::f64::consts::PI).sqrt() * g(m + v.sqrt() * z)
        };
        (0..STEPS / 2).map(|i| at(2 * i) + 4.0 * at(2 * i + 1) + at(2 * i + 2)).sum::<f64>() * 8.0 / f64::from(STEPS)
    }

    /// For counts the mean is exact, for two classes nearly so. The softmax of two classes has the same mean.
    #[test]
    fn mean_curvatures_are_means_of_curvatures() {
        for (m, v) in [(0.0, 0.0), (0.5, 0.3), (-2.0, 1.0), (4.0, 9.0), (-9.0, 30.0), (0.0, 100.0)] {
            let mean = |likelihood: &dyn LikelihoodFunction, f: &[f64], covariance: &[f64]| {
                let mut out = [f64::NAN];
                likelihood.mean_curvature(f, covariance, &mut out);
                out[0]
            };
            let one = mean(&Bernoulli {}, &[m], &[v]);
            let exact = integral(m, v, |f| sigmoid(f) * sigmoid(-f));
            assert!((one - exact).abs() < 0.02 * 0.25, "{m}, {v}: {one}, {exact}");
            let two = mean(&Softmax {}, &[-0.5 * m, 0.5 * m], &[v, 0.0, 0.0, 0.0]);
            assert!((one - two).abs() < 1e-12, "{one}, {two}");
            if v < 10.0 {
                let (rate, exact) = (mean(&Poisson {}, &[m], &[v]), integral(m, v, f64::exp));
                assert!((rate / exact - 1.0).abs() < 1e-6, "{rate}, {exact}");
            }
        }
    }
}
