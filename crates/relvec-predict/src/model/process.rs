//! The process prior: weights of a Gaussian process, and the residual of the process that the centres do not span,
//! (M70), (M73).
//!
//! Let a be the amplitude, K = k(Z, Z) for the centres Z, and k = k(Z, x). The function is w'k + e(x). The weights have
//! the prior covariance a inv(K). The residual e of the prior has the covariance a (k(x, x') - k'inv(K) k'). The
//! posterior of the weights is in [`Posterior`](super::Posterior); this file adds the variance of the residual to every
//! variance.

use crate::parallel::*;
use crate::prelude::*;
use ndarray::{Array1, Array2, ArrayView2, ArrayViewMut2, Axis, s};
use serde::{Deserialize, Serialize};

use super::Model;
use crate::error::{Result, require};
use crate::kernel::Kernel;
use crate::linalg::{self, dot};
use crate::vector;

/// Number of rows of a tile of kernel values between rows (512 KB at 256 columns).
const TILE_ROWS: usize = 256;
/// Reason why values of basis functions alone do not suffice for predictions under this prior.
pub(super) const NEEDS_KERNEL: &str = "rows: the variance under a process prior needs the kernel of a row and itself";

/// The process prior of the weights, and its residual.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProcessPrior {
    /// The amplitude a, in squared units of the target; 0 if the targets show no structure, so that the model is a
    /// constant. For several outputs it is that of the first; [`Posterior::variance_ratios`](super::Posterior) gives
    /// the others.
    pub amplitude: f64,
    /// Lower Cholesky factor of K, [M, M], in the order of the centres. It is stored row by row: row i has i + 1
    /// entries.
    pub factor: Vec<Vec<f64>>,
    /// The relevance vectors that the search chose, in ascending order. The other centres were added to them
    /// afterwards.
    pub searched: Vec<usize>,
    /// Mean ratio of the prior's residual variance to the noise variance at the training rows, with the amplitude and
    /// noise of the dense process that the fit began with. It is 0 if the targets show no structure.
    pub residual: f64,
}

impl ProcessPrior {
    fn factor(&self) -> Array2<f64> {
        let m = self.factor.len();
        Array2::from_shape_fn((m, m), |(i, j)| if j <= i { self.factor[i][j] } else { 0.0 })
    }
}

/// The residual of the prior of a model, prepared for many rows.
#[derive(Debug)]
pub struct Residual<'a> {
    /// The model.
    pub model: &'a Model,
    /// The kernel of the model.
    pub kernel: &'a Kernel,
    /// The amplitude a.
    pub amplitude: f64,
    factor: Array2<f64>,
}

impl Model {
    /// Returns the residual of the prior, in units of the first output; `None` without a process prior.
    ///
    /// # Errors
    /// Returns an error for a process prior on basis functions whose kernel is not known.
    #[doc(hidden)]
    pub fn residual(&self) -> Result<Option<Residual<'_>>> {
        let Some(process) = &self.process else { return Ok(None) };
        let Some(kernel) = self.kernel() else {
            self.refuse_process("basis", "values of basis functions", NEEDS_KERNEL)?;
            return Ok(None);
        };
        Ok(Some(Residual { model: self, kernel, amplitude: process.amplitude, factor: process.factor() }))
    }

    /// Returns an error if the model has a process prior. `name`, `found` and `expected` are those of the refused
    /// setting.
    pub(super) fn refuse_process(&self, name: &str, found: &str, expected: &str) -> Result<()> {
        require(self.process.is_none(), || name.into(), found, expected)
    }

    /// Returns the prior variances of the weights without the bias, `[M]`, in squared units of the first output's
    /// weights. They are the diagonal of a inv(K). The list is empty without a process prior.
    pub(super) fn process_variances(&self) -> Vec<f64> {
        let Some(process) = &self.process else { return vec![] };
        let half = linalg::inverse_lower(process.factor().view());
        half.columns().into_iter().map(|column| process.amplitude * column.dot(&column)).collect()
    }
}

impl<'a> Residual<'a> {
    /// Returns the residual variances at raw rows `x`, [B, D], with basis functions `phi`, [B, M]: `[B]`. It runs in
    /// the calling thread.
    pub fn variances(&self, x: ArrayView2<f64>, phi: ArrayView2<f64>) -> Array1<f64> {
        let scaled = self.model.scaling.as_ref().map(|s| s.apply(x));
        let mut out = self.kernel.diagonal(scaled.as_ref().map_or(x, |x| x.view()));
        let mut half = phi.to_owned();
        linalg::solve_lower_alone(self.factor.view(), half.view_mut().reversed_axes());
        vector::each_row(half.view_mut(), |i, half| {
            out[i] = self.amplitude * positive_part(out[i] - dot(half, half));
        });
        out
    }

    /// Adds the residual covariance of raw rows `x`, [N, D], with basis functions `phi`, [N, M], to `out`, [N, N].
    pub fn add_covariance(&self, x: ArrayView2<f64>, phi: ArrayView2<f64>, mut out: ArrayViewMut2<f64>) {
        let half = self.whitened(phi);
        let scaled = self.model.scaling.as_ref().map(|s| s.apply(x));
        let x = scaled.as_ref().map_or(x, |x| x.view());
        let fill = self.kernel.at(x);
        let tiles = out.axis_chunks_iter_mut(Axis(0), TILE_ROWS).into_par_iter().enumerate();
        tiles.for_each(|(k, mut out)| {
            let rows = k * TILE_ROWS..k * TILE_ROWS + out.nrows();
            let mut own = Array2::zeros(out.dim());
            fill(x.slice(s![rows.clone(), ..]), own.view_mut());
            let mut spanned = Array2::zeros(out.dim());
            linalg::product_alone(false, half.slice(s![.., rows]).t(), half.view(), spanned.view_mut());
            own -= &spanned;
            out.scaled_add(self.amplitude, &own);
        });
    }

    /// Returns inv(L) k of each row, [M, N], from basis functions `phi`, [N, M].
    pub fn whitened(&self, phi: ArrayView2<f64>) -> Array2<f64> {
        let mut half = phi.t().as_standard_layout().into_owned();
        linalg::solve_lower(self.factor.view(), half.view_mut());
        half
    }
}

/// Returns a difference that rounding may have made negative as at least 0; NaN stays NaN.
fn positive_part(v: f64) -> f64 {
    if v < 0.0 { 0.0 } else { v }
}
