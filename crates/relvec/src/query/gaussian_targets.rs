//! Gaussian targets with row factors that stand for other targets under a model: for counts, (M96), and for rows with
//! Student-t noise, (M52).

use ndarray::{Array2, ArrayView1, ArrayView2};

use crate::error::{Error, Result};
use crate::likelihood::{Likelihood, LikelihoodFunction, Poisson, student_t};
use crate::model::{FittedBasis, Model, squared_distances};
use crate::targets::Values;

/// Largest size of a log rate at which a count is expanded, so that its precision is in the range of numbers.
pub(crate) const LARGEST: f64 = 300.0;

/// Gaussian targets in original units, and the factors of their noise precision, `[N]`.
pub(super) struct GaussianTargets {
    pub t: Vec<f64>,
    pub factor: Vec<f64>,
    /// Log-likelihood of the rows minus that of the Gaussian targets, summed with the sample weights.
    pub more: f64,
}

impl GaussianTargets {
    /// Returns the targets that stand for `t`, `[N]`, of rows `x`, `[N, D]`, with sample weights, `[N]`. Counts may have
    /// exposures, `[N]`.
    ///
    /// # Errors
    /// Returns an error for targets that are no counts, and for models without such targets.
    pub fn of(
        model: &Model,
        x: ArrayView2<f64>,
        t: ArrayView1<f64>,
        exposure: Option<&[f64]>,
        weights: &[f64],
    ) -> Result<GaussianTargets> {
        match &model.likelihood {
            Some(Likelihood::Poisson(own)) => of_counts(own, model, x, t, exposure, weights),
            Some(Likelihood::StudentT(_)) => of_outliers(model, x, t, weights),
            _ => Err(Error::Rows("damaged relvec query: its model has neither counts nor Student-t noise".into())),
        }
    }
}

/// Returns true if the model has one function of rows with as many features as `centres`, [M, D].
pub(super) fn fits(model: &Model, centres: &Array2<f64>) -> bool {
    let FittedBasis::Kernel { centres: own, .. } = &model.expansion.basis else { return false };
    let m = own.nrows();
    let sizes = model.relevance.len() == m && model.expansion.weights.dim() == (m, 1) && model.expansion.intercept.len() == 1;
    sizes && own.ncols() == centres.ncols() && model.n_features == centres.ncols()
}

fn of_counts(
    own: &Poisson,
    model: &Model,
    x: ArrayView2<f64>,
    t: ArrayView1<f64>,
    exposure: Option<&[f64]>,
    weights: &[f64],
) -> Result<GaussianTargets> {
    let counts = own.targets(Values::Real(t))?;
    let log_exposure = |n: usize| exposure.map_or(0.0, |exposure| exposure[n].ln());
    let f: Vec<f64> = model.predict_mean(x)?.iter().map(|f| f.clamp(-LARGEST, LARGEST)).collect();
    let total: Vec<f64> = f.iter().enumerate().map(|(n, f)| f + log_exposure(n)).collect();
    let work = own.working(&counts, &total);
    let factor = work.curvature;
    let shift: Vec<f64> = work.residual.iter().zip(&factor).map(|(r, c)| r / c).collect();
    let gaussian = |n: usize| 0.5 * ((factor[n] / (2.0 * std::f64::consts::PI)).ln() - factor[n] * shift[n] * shift[n]);
    let more = (0..f.len()).map(|n| weights[n] * (work.log_likelihood[n] - gaussian(n))).sum();
    Ok(GaussianTargets { t: f.iter().zip(&shift).map(|(f, shift)| f + shift).collect(), factor, more })
}

fn of_outliers(model: &Model, x: ArrayView2<f64>, t: ArrayView1<f64>, weights: &[f64]) -> Result<GaussianTargets> {
    let degrees = model.noise_degrees().unwrap_or(f64::INFINITY);
    let factor = student_t::row_factors(&squared_distances(t, model, x)?, degrees);
    let constant = student_t::row_constant(degrees);
    let more = factor.iter().zip(weights).map(|(u, c)| c * (constant(*u) - 0.5 * u.ln())).sum();
    Ok(GaussianTargets { t: t.to_vec(), factor, more })
}
