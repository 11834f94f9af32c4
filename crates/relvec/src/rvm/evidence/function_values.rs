//! Fitted values of a posterior at the rows, and the check of residuals against a given noise.

use ndarray::{Array1, ArrayView2};

use crate::error::Result;
use crate::model::Model;
use crate::rvm::data::noise::LEAST_PRECISION;
use crate::rvm::evidence::active_posterior::ActivePosterior;
use crate::rvm::gram::likelihood_sums::{self, Phi};
use crate::rvm::gram::scaled_problem::ScaledProblem;

/// Relative distance to the lower limit within which a precision counts as being at the limit. Searches end within
/// their tolerance of it.
const AT_LIMIT: f64 = 1e-3;
/// Root mean squared residual in noise standard deviations above which the noise is too small. For the true model the
/// mean square over N rows is about 1 + sqrt(2 / N).
const FAR_RESIDUAL: f64 = 2.0;

/// Returns Phi mu at the rows, minus the mean that was subtracted from the targets, [N, R], row by row.
pub(crate) fn fitted(problem: &ScaledProblem, solution: &ActivePosterior) -> Array1<f64> {
    let mut w = Array1::from_vec(solution.mean.clone());
    let (outputs, columns) = (solution.outputs, solution.active.len());
    let means = problem.mean_bias(&solution.active);
    if let Some((p, means)) = &means {
        means.iter().enumerate().for_each(|(k, mean)| w[k * columns + p] -= mean);
    }
    let w = w.to_shape((outputs, columns)).expect("R times M numbers");
    let f = match &solution.columns {
        Some(phi) => likelihood_sums::fitted(phi.view(), w.view()),
        None => {
            let phi = Phi::Made { problem, columns: (&solution.active[..]).into() };
            let add = |f: &mut Vec<f64>, _, phi: ArrayView2<f64>| f.extend(likelihood_sums::fitted(phi, w.view()));
            let mut f = phi.by_groups(problem, Vec::new, add).concat();
            // After an interrupt the values are incomplete, and are not used.
            f.resize(problem.design.n_rows() * outputs, 0.0);
            f.into()
        }
    };
    match (&means, &problem.training.units[..]) {
        (Some(_), _) => f,
        (None, [units]) => f - units.mean,
        (None, units) => f.iter().zip(units.iter().cycle()).map(|(f, units)| f - units.mean).collect(),
    }
}

/// Returns the root mean squared residual of `model` divided by the given noise standard deviation.
///
/// It returns `None` if the noise is not given, if this ratio is at most [`FAR_RESIDUAL`], or if no weight of
/// `solution` is at the lower limit of its precision. It needs the rows in memory.
///
/// # Errors
/// Returns the errors of [`Model::predict_mean`].
pub(crate) fn residual_over_noise(problem: &ScaledProblem, solution: &ActivePosterior, model: &Model) -> Result<Option<f64>> {
    let training = problem.training;
    let given = problem.constant_curvature()
        && training.rvm.likelihood.as_dyn().scale_mixture().is_none()
        && training.noise.iter().all(|noise| !noise.is_learned())
        && !training.adjustments.constant_target
        && training.rows.nrows() > 0;
    let at_limit = |(j, a): (&usize, &f64)| !(*j == 0 && problem.has_bias) && *a <= (1.0 + AT_LIMIT) * LEAST_PRECISION;
    if !given || !solution.active.iter().zip(&solution.a).any(at_limit) {
        return Ok(None);
    }
    let (targets, weights, outputs) = (training.real_targets(), training.sample_weights(), training.units.len());
    let mut largest = 0.0f64;
    for (k, beta) in solution.beta.iter().enumerate() {
        let fitted = model.output(k)?.predict_mean(training.rows.view())?;
        let factor = |n: usize| training.factors.as_ref().map_or(1.0, |factors| factors.factor[n]);
        let square =
            |n: usize| weights[n] * factor(n) * ((targets[n * outputs + k] - fitted[n]) / training.units[k].scale).powi(2);
        let sum: f64 = (0..fitted.len()).map(square).sum();
        largest = largest.max((beta * sum / training.count).sqrt());
    }
    Ok((largest > FAR_RESIDUAL).then_some(largest))
}
