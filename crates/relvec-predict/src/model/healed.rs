//! A variance that grows away from the data, by one more basis function at the predicted row.
//!
//! Far from all centres every basis function is zero, and so is the variance from the uncertainty of the weights. A
//! basis function at the predicted row itself restores that variance (Rasmussen & Quinonero-Candela 2005). The training
//! rows near it, if there are any, determine its weight: (M59).

use crate::parallel::*;
use crate::prelude::*;
use ndarray::{Array1, Array2, ArrayView2, ArrayViewMut1, Axis, s};
use serde::{Deserialize, Serialize};

use super::{Model, Prediction, StoredRows, check_predicted};
use crate::error::{Error, Result};
use crate::kernel::{Fill, Kernel};
use crate::linalg;
use crate::registry::rules;

/// Largest number of kernel values between a tile of predicted rows and the retained rows. They are all that is stored.
const TILE_ENTRIES: usize = 1 << 18;
/// Largest number of rows of a tile.
const TILE_ROWS: usize = 256;

rules! {
    /// The kinds of variance of a prediction.
    #[derive(Default)]
    pub enum Variance, "variance" {
        /// Variance under the posterior of the weights.
        #[default]
        Posterior = "posterior",
        /// Variance with one more basis function at the row itself: it does not shrink away from the data.
        Healed = "healed",
    }
}

/// Training rows that a model retains for [`Variance::Healed`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeptRows {
    /// The retained rows, [N', D], after scaling.
    pub rows: StoredRows,
    /// Residuals t_n - phi_n'mu, `[N']`, in units of the target.
    pub residuals: Vec<f64>,
    /// Noise precision of each row divided by that of the model, `[N']`: its sample weight. For a sample of the rows it
    /// is multiplied by the number of rows that each stands for.
    pub weights: Vec<f64>,
    /// Prior variance of the weight of the added basis function, 1 / alpha*, in squared units of the target: the
    /// variance of the targets minus that of the noise.
    pub prior_variance: f64,
    /// Values for the outputs after the first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub further: Vec<KeptOutput>,
    /// True if these are all training rows. Otherwise they are a sample, and do not change the means.
    pub complete: bool,
}

/// Values of a further output at the retained rows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeptOutput {
    /// Residuals at the retained rows, `[N']` ([`KeptRows::residuals`]).
    pub residuals: Vec<f64>,
    /// Prior variance of an added basis function ([`KeptRows::prior_variance`]).
    pub prior_variance: f64,
}

impl KeptRows {
    /// Returns the retained rows with the values of output k alone.
    pub(super) fn output(&self, k: usize) -> KeptRows {
        let mut own = self.clone();
        if let Some(further) = k.checked_sub(1).and_then(|k| self.further.get(k)) {
            (own.residuals, own.prior_variance) = (further.residuals.clone(), further.prior_variance);
        }
        KeptRows { further: vec![], ..own }
    }
}

/// Values that do not depend on the rows that are predicted.
struct Healer<'a> {
    model: &'a Model,
    kept: &'a KeptRows,
    kernel: &'a Kernel,
    /// The kernel at the centres, prepared once.
    at_centres: Fill<'a>,
    /// The kernel at the retained rows, prepared once.
    at_kept: Fill<'a>,
    /// Noise precision, 1 / sigma^2.
    beta: f64,
    /// Columns of the retained rows, [N', M], times the posterior's scale and the rows' weights. The bias comes first
    /// if it is in the model.
    weighted: Array2<f64>,
    /// L, [M, M].
    factor: Array2<f64>,
    /// Products of residual and weight, `[N']`.
    pull: Array1<f64>,
}

impl Model {
    /// Predicts mean and variance, each `[N]`, at rows `x`, `[N, D]`, with the kind of variance requested.
    ///
    /// # Errors
    /// See [`Model::predict`]. A healed variance is refused if the model retains no rows for it, and under a process
    /// prior.
    pub fn predict_with(&self, x: ArrayView2<f64>, variance: Variance) -> Result<Prediction> {
        self.check_single()?;
        self.check_rows(x)?;
        match variance {
            Variance::Posterior => self.predict_tiles(x, self.maker()),
            Variance::Healed => Healer::new(self)?.predict(x),
        }
    }
}

impl<'a> Healer<'a> {
    fn new(model: &'a Model) -> Result<Healer<'a>> {
        let expected = "posterior: under a process prior this variance grows away from the data without healing";
        model.refuse_process("variance", "healed", expected)?;
        let (Some(kept), Some(kernel)) = (&model.kept_rows, model.kernel()) else {
            let expected = "posterior; healed requires a regression model with a kernel, fitted to keep rows (keep_rows)";
            return Err(Error::Parameter { name: "variance".into(), found: "healed".into(), expected: expected.into() });
        };
        let posterior = model.posterior()?;
        let beta = 1.0 / posterior.noise_variance.expect("checked with the kept rows");
        let bias = usize::from(model.intercept_alpha.is_some());
        let mut weighted = Array2::ones((kept.rows.nrows(), bias + model.relevance.len()));
        let at_centres = model.at_centres();
        let mut phi = weighted.slice_mut(s![.., bias..]);
        match &kept.rows {
            StoredRows::Dense(rows) => at_centres(rows.view(), phi),
            StoredRows::Sparse(rows) => model.fill_sparse(rows, phi.view_mut())?,
        }
        for (mut column, scale) in weighted.columns_mut().into_iter().zip(&posterior.scale) {
            column *= *scale;
        }
        let factor = match kept.complete {
            true => posterior.factor(),
            // The posterior given the sample alone. With that of all rows the remaining sparsity could be negative.
            false => {
                let mut half = weighted.clone();
                half.outer_iter_mut().zip(&kept.weights).for_each(|(mut row, c)| row *= (c * beta).sqrt());
                let mut h = linalg::gram(half.view());
                let largest = h.diag().iter().fold(0.0f64, |m, v| m.max(*v));
                let alpha = model.intercept_alpha.iter().chain(&model.alpha);
                h.diag_mut().iter_mut().zip(alpha).zip(&posterior.scale).for_each(|((h, a), s)| *h += a * s * s);
                linalg::cholesky(&h, largest)?
            }
        };
        weighted.outer_iter_mut().zip(&kept.weights).for_each(|(mut row, c)| row *= *c);
        let pull = kept.residuals.iter().zip(&kept.weights).map(|(r, c)| r * c).collect();
        let at_kept = match &kept.rows {
            StoredRows::Dense(rows) => kernel.at(rows.view()),
            StoredRows::Sparse(rows) => kernel.at_sparse(rows)?,
        };
        Ok(Healer { model, kept, kernel, at_centres, at_kept, beta, weighted, factor, pull })
    }

    fn predict(&self, x: ArrayView2<f64>) -> Result<Prediction> {
        let model = self.model;
        let posterior = model.predict_tiles(x, model.maker())?;
        let (mut mean, mut variance) = (posterior.mean, posterior.model_variance);
        let rows = (TILE_ENTRIES / self.kept.rows.nrows()).clamp(16, TILE_ROWS);
        let pairs = mean.axis_chunks_iter_mut(Axis(0), rows).into_par_iter();
        let triples = pairs.zip(variance.axis_chunks_iter_mut(Axis(0), rows).into_par_iter());
        let factor = model.variance_factor();
        triples.zip(x.axis_chunks_iter(Axis(0), rows).into_par_iter()).for_each(|((mean, variance), x)| {
            let scaled = model.scaling.as_ref().map(|s| s.apply(x));
            self.heal(scaled.as_ref().map_or(x, |x| x.view()), factor, mean, variance);
        });
        check_predicted(mean.view(), Some((variance.view(), posterior.noise_variance)))?;
        Ok(Prediction { mean, model_variance: variance, ..posterior })
    }

    /// Adds the contribution of the basis function at each of a few scaled rows `x`, `[B, D]`, to `mean` and
    /// `variance`, `[B]`. The contribution to the variance is multiplied by `factor`.
    fn heal(&self, x: ArrayView2<f64>, factor: f64, mut mean: ArrayViewMut1<f64>, mut variance: ArrayViewMut1<f64>) {
        let (n, bias) = (x.nrows(), usize::from(self.model.intercept_alpha.is_some()));
        if self.kept.prior_variance == 0.0 {
            return;
        }
        let alpha = 1.0 / self.kept.prior_variance;
        // k(x, X'), [B, N'].
        let mut own = Array2::zeros((n, self.kept.rows.nrows()));
        (self.at_kept)(x, own.view_mut());
        // u = inv(L) s Phi'B phi* and v = inv(L) s phi(x*), both [M, B].
        let mut u = Array2::zeros((self.weighted.ncols(), n));
        linalg::product_alone(false, self.weighted.t(), own.t(), u.view_mut());
        u *= self.beta;
        linalg::solve_lower_alone(self.factor.view(), u.view_mut());
        let mut phi = Array2::ones((n, self.weighted.ncols()));
        (self.at_centres)(x, phi.slice_mut(s![.., bias..]));
        let scale = &self.model.posterior.as_ref().expect("asked for at the start").scale;
        phi.columns_mut().into_iter().zip(scale).for_each(|(mut column, s)| column *= *s);
        let mut v = phi.reversed_axes().as_standard_layout().into_owned();
        linalg::solve_lower_alone(self.factor.view(), v.view_mut());
        // The sums are over all rows of the tile at once, because column by column would be slow.
        let over_columns = |a: &Array2<f64>, b: &Array2<f64>| (a * b).sum_axis(Axis(0));
        let (own_part, cross_part) = (over_columns(&u, &u), over_columns(&u, &v));
        for i in 0..n {
            let k = own.row(i);
            let squares: f64 = k.iter().zip(&self.kept.weights).map(|(k, c)| c * k * k).sum();
            let sparsity = (self.beta * squares - own_part[i]).max(0.0);
            let mut itself = Array2::zeros((1, 1));
            let row = x.slice(s![i..=i, ..]);
            self.kernel.block(row, row, itself.view_mut());
            let left = itself[[0, 0]] - cross_part[i];
            // A sample shows how densely rows lie. Its few residuals, each of which stands for many rows, are too noisy
            // to move the mean.
            if self.kept.complete {
                mean[i] += left * self.beta * k.dot(&self.pull) / (alpha + sparsity);
            }
            variance[i] += factor * left * left / (alpha + sparsity);
        }
    }
}
