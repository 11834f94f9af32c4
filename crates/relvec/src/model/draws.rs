//! Functions drawn from the posterior, and the joint covariance of predictions.

use ndarray::{Array1, Array2, ArrayView2, Axis, s};
use rand::SeedableRng;
use rand_distr::{Distribution, StandardNormal, StudentT};
use rand_pcg::Pcg64;

use super::residual_draws::ResidualDraws;
use super::{Model, Variance, beyond, check_predicted};
use crate::error::{Error, Result};
use crate::likelihood::Likelihood;
use crate::linalg;
use crate::memory;

/// Functions drawn from the weight posterior of a regression model. Each is the same function at all rows.
#[derive(Debug)]
pub struct Draws<'a> {
    model: &'a Model,
    /// Drawn weights, [M, S], the bias first if it is in the model.
    weights: Array2<f64>,
    /// Draws of the residual of a process prior.
    residual: Option<ResidualDraws<'a>>,
    noise: Option<Pcg64>,
}

/// Draws `count` functions from the posterior of a regression model.
pub(super) fn draws(model: &Model, count: usize, seed: u64, noise: bool) -> Result<Draws<'_>> {
    check_regression(model, "draws")?;
    let posterior = model.posterior()?;
    afford(count, posterior.scale.len().max(1))?;
    let bias = usize::from(model.intercept_alpha.is_some());
    let mut random = Pcg64::seed_from_u64(seed);
    let mut weights = Array2::from_shape_simple_fn((posterior.scale.len(), count), || StandardNormal.sample(&mut random));
    linalg::solve_lower_transposed(posterior.factor().view(), weights.view_mut());
    let mean = model.expansion.intercept.iter().take(bias).chain(&model.expansion.weights);
    let spread = model.variance_factor().sqrt();
    for ((mut row, scale), mean) in weights.outer_iter_mut().zip(&posterior.scale).zip(mean) {
        row.mapv_inplace(|z| mean + spread * scale * z);
    }
    let residual = model.residual()?.map(|residual| ResidualDraws::new(residual, seed));
    Ok(Draws { model, weights, residual, noise: noise.then_some(random) })
}

/// Returns the mean, `[N]`, and the covariance, `[N, N]`, of the predictions at rows `x`, `[N, D]`.
pub(super) fn predict_covariance(
    model: &Model,
    x: ArrayView2<f64>,
    memory_limit: Option<u64>,
) -> Result<(Array1<f64>, Array2<f64>)> {
    check_regression(model, "a covariance")?;
    let heavy = student_degrees(model);
    if let Some(degrees) = heavy.filter(|degrees| !(*degrees > 2.0)) {
        return Err(Error::Targets(format!(
            "the covariance under Student-t noise with {degrees} degrees of freedom is infinite; it is finite above 2. \
             Use drawn functions, which have the tails of the noise"
        )));
    }
    model.check_rows(x)?;
    let n = x.nrows() as u64;
    let held = if model.process.is_some() { 4 } else { 2 } * model.relevance.len() as u64;
    let needed = 8 * n.saturating_mul(n + held + 2);
    memory::afford(&format!("the covariance of {n} rows"), needed, memory::allowed(memory_limit))?;
    let found = model.predict_with(x, Variance::Posterior)?;
    let posterior = model.posterior()?;
    let mut half = columns(model, x);
    let bias = usize::from(model.intercept_alpha.is_some());
    let phi = model.process.as_ref().map(|_| half.slice(s![.., bias..]).to_owned());
    half.columns_mut().into_iter().zip(&posterior.scale).for_each(|(mut column, s)| column *= *s);
    let mut half = half.reversed_axes().as_standard_layout().into_owned();
    linalg::solve_lower(posterior.factor().view(), half.view_mut());
    let mut out = linalg::gram(half.view());
    if let (Some(residual), Some(phi)) = (model.residual()?, phi) {
        residual.add_covariance(x, phi.view(), out.view_mut());
    }
    out *= model.variance_factor();
    // The diagonal has the variances of predictions of single rows.
    let noise = if heavy.is_some() { found.student_variance() } else { found.noise_variance };
    out.diag_mut().assign(&(&found.model_variance + noise));
    match out.outer_iter().position(|row| !row.iter().all(|v| v.is_finite())) {
        Some(row) => Err(beyond(row)),
        None => Ok((found.mean, out)),
    }
}

/// Returns the basis functions at raw rows, [N, M], the bias first if it is in the model.
fn columns(model: &Model, x: ArrayView2<f64>) -> Array2<f64> {
    let bias = usize::from(model.intercept_alpha.is_some());
    let mut phi = Array2::ones((x.nrows(), bias + model.relevance.len()));
    model.maker()(x, phi.slice_mut(s![.., bias..]));
    phi
}

/// Returns the degrees of freedom of the noise under the likelihood `student_t`; `None` for a constant target, which
/// has no noise.
fn student_degrees(model: &Model) -> Option<f64> {
    model.noise_degrees().filter(|_| matches!(model.likelihood, Some(Likelihood::StudentT(_))))
}

fn check_regression(model: &Model, what: &str) -> Result<()> {
    model.check_single()?;
    model.check_noisy(what)
}

impl Draws<'_> {
    /// Returns the values of all functions at the rows of `x`, [N, D], as [N, S]. The random numbers of the noise, if
    /// there is any, continue from block to block.
    ///
    /// # Errors
    /// Returns the errors of [`Model::predict`]. Returns [`Error::Memory`] if the values take more than a quarter of
    /// the machine's memory. Under a process prior the same limit holds for the covariance of all rows so far.
    pub fn at(&mut self, x: ArrayView2<f64>) -> Result<Array2<f64>> {
        let model = self.model;
        model.check_rows(x)?;
        afford(self.weights.ncols(), x.nrows())?;
        let phi = columns(model, x);
        let mut out = linalg::times(phi.view(), self.weights.view());
        if let Some(residual) = &mut self.residual {
            // Each row is drawn given all previous ones.
            let held = (residual.held() + x.nrows()) as u64;
            let needed = 4 * held.saturating_mul(held + 2 * (model.relevance.len() + self.weights.ncols()) as u64);
            memory::afford(&format!("draws of a process at {held} rows"), needed, memory::allowed(None))?;
            let bias = usize::from(model.intercept_alpha.is_some());
            residual.add(x, phi.slice(s![.., bias..]), model.variance_factor().sqrt(), out.view_mut());
        }
        if model.intercept_alpha.is_none() {
            out += model.expansion.intercept[0];
        }
        if let Some(random) = &mut self.noise {
            let posterior = model.posterior()?;
            let spread = (model.variance_factor() * posterior.noise_variance.unwrap_or(0.0)).sqrt();
            let tails = student_degrees(model).and_then(|degrees| StudentT::new(degrees).ok());
            let mut draw = || -> f64 {
                match tails {
                    Some(t) => t.sample(random),
                    None => StandardNormal.sample(random),
                }
            };
            out.mapv_inplace(|f| f + spread * draw());
        }
        for draw in out.axis_iter(Axis(1)) {
            check_predicted(draw, None)?;
        }
        Ok(out)
    }
}

/// Returns an error if the draws take more than the allowed memory.
fn afford(draws: usize, each: usize) -> Result<()> {
    let needed = 8 * (draws as u64).saturating_mul(each as u64).min(u64::MAX / 8);
    memory::afford(&format!("{draws} draws of {each} numbers each"), needed, memory::allowed(None))
}
