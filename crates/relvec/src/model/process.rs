//! The process prior: weights of a Gaussian process, and the part of the process that the centres do not span, (M70), (M73).
//!
//! With a the amplitude, K = k(Z, Z) of the centres Z and k = k(Z, x), the function is w'k + e(x): the weights have the prior
//! covariance a inv(K), and e has the covariance a (k(x, x') - k'inv(K) k'), the residual of the prior. The posterior of the
//! weights is in [`Posterior`](super::Posterior); the residual is added to every variance here.

use ndarray::{Array1, Array2, ArrayView2, ArrayViewMut2, Axis, s};
use rand_distr::{Distribution, StandardNormal};
use rand_pcg::Pcg64;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::{FittedBasis, Model, NEEDS_KERNEL};
use crate::error::{Result, require};
use crate::kernel::Kernel;
use crate::kernel::vector::{self, AddSums, Dot, RowSums};
use crate::linalg;

/// A row whose residual variance, over its prior variance, is below this is determined by the centres and the rows drawn before
/// it: the difference of two numbers of the size of 1 has no digits there. Larger values would take noise off drawn functions
/// that are rough; smaller ones would divide rounding by rounding.
const DETERMINED: f64 = 1e-12;
/// Rows of a tile of kernel values between rows (512 KB at 256 columns).
const TILE_ROWS: usize = 256;
/// Stream of the random numbers of the residual, apart from those of weights and noise.
const STREAM: u128 = 1;

/// The process prior of the weights, and what it leaves beside them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProcessPrior {
    /// a, in squared units of the target (of several outputs of the first; [`Posterior::variance_ratios`](super::Posterior)
    /// have those of the others); 0 if the targets show no structure, and the model is a constant.
    pub amplitude: f64,
    /// Lower Cholesky factor of K, row by row: row i has i + 1 entries, [M, M], in the order of the centres.
    pub factor: Vec<Vec<f64>>,
    /// The relevance vectors that the search chose, ascending; the other centres complete them.
    pub searched: Vec<usize>,
    /// Mean of the prior's residual variance at the training rows over their noise variance, by the amplitude and noise of the
    /// dense process that the fit began with; 0 if the targets show no structure.
    pub residual: f64,
}

impl ProcessPrior {
    fn factor(&self) -> Array2<f64> {
        let m = self.factor.len();
        Array2::from_shape_fn((m, m), |(i, j)| if j <= i { self.factor[i][j] } else { 0.0 })
    }
}

/// The residual of the prior of a model, ready for many rows.
pub(super) struct Residual<'a> {
    model: &'a Model,
    kernel: &'a Kernel,
    amplitude: f64,
    factor: Array2<f64>,
}

impl Model {
    /// The residual of the prior, in units of the first output; `None` without a process prior.
    ///
    /// # Errors
    /// A process prior on basis functions whose kernel is not known.
    pub(super) fn residual(&self) -> Result<Option<Residual<'_>>> {
        let Some(process) = &self.process else { return Ok(None) };
        let FittedBasis::Kernel { kernel, .. } = &self.expansion.basis else {
            self.refuse_process("basis", "values of basis functions", NEEDS_KERNEL)?;
            return Ok(None);
        };
        Ok(Some(Residual { model: self, kernel, amplitude: process.amplitude, factor: process.factor() }))
    }

    /// Refuses what a process prior does not have; `name` and `found` as in the settings.
    pub(super) fn refuse_process(&self, name: &str, found: &str, expected: &str) -> Result<()> {
        require(self.process.is_none(), || name.into(), found, expected)
    }

    /// Prior variances of the weights, the bias left out, `[M]`, in squared units of the first output's weights: the diagonal of
    /// a inv(K). Empty without a process prior.
    pub(super) fn process_variances(&self) -> Vec<f64> {
        let Some(process) = &self.process else { return vec![] };
        let half = linalg::inverse_lower(process.factor().view());
        half.columns().into_iter().map(|column| process.amplitude * column.dot(&column)).collect()
    }
}

impl<'a> Residual<'a> {
    /// Residual variances at raw rows, [B, D], of basis functions `phi`, [B, M]: `[B]`. In the calling thread.
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

    /// Adds the residual covariance of raw rows, [N, D], of basis functions `phi`, [N, M], to `out`, [N, N].
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

    /// inv(L) k of each row, [M, N].
    fn whitened(&self, phi: ArrayView2<f64>) -> Array2<f64> {
        let mut half = phi.t().as_standard_layout().into_owned();
        linalg::solve_lower(self.factor.view(), half.view_mut());
        half
    }
}

/// What is left of a difference that rounding may have made negative; NaN stays.
fn positive_part(v: f64) -> f64 {
    if v < 0.0 { 0.0 } else { v }
}

/// Draws of the residual at rows one after the other, each given those before it: whatever the blocks that rows come in.
pub(super) struct ResidualDraws<'a> {
    residual: Residual<'a>,
    /// Rows so far that are not determined by those before them, n of them: the scaled rows, [n, D], inv(L) k of each, [n, M],
    /// and their standard normal numbers, [n, S]; each row by row.
    rows: Vec<f64>,
    halves: Vec<f64>,
    normals: Vec<f64>,
    /// Rows of the Cholesky factor of their residual covariance over the amplitude.
    factor: Vec<Vec<f64>>,
    random: Pcg64,
}

impl std::fmt::Debug for ResidualDraws<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ResidualDraws").field("rows", &self.held()).finish_non_exhaustive()
    }
}

impl<'a> ResidualDraws<'a> {
    pub fn new(residual: Residual<'a>, seed: u64) -> ResidualDraws<'a> {
        let random = Pcg64::new(u128::from(seed), STREAM);
        ResidualDraws { residual, rows: vec![], halves: vec![], normals: vec![], factor: vec![], random }
    }

    /// Rows that are held.
    pub fn held(&self) -> usize {
        self.factor.len()
    }

    /// Adds `spread` times the draws at raw rows `x`, [B, D], of basis functions `phi`, [B, M], to `out`, [B, S].
    pub fn add(&mut self, x: ArrayView2<f64>, phi: ArrayView2<f64>, spread: f64, mut out: ArrayViewMut2<f64>) {
        let scaled = self.residual.model.scaling.as_ref().map(|s| s.apply(x));
        let x = scaled.as_ref().map_or(x, |x| x.view());
        let halves = self.residual.whitened(phi).reversed_axes();
        let diagonal = self.residual.kernel.diagonal(x);
        let spread = spread * self.residual.amplitude.sqrt();
        for (i, mut out) in out.outer_iter_mut().enumerate() {
            let own = halves.row(i).to_vec();
            let mut line = self.covariances(x.slice(s![i..=i, ..]), &own);
            for (j, row) in self.factor.iter().enumerate() {
                line[j] = (line[j] - dot(&line[..j], &row[..j])) / row[j];
            }
            let mut values = vec![0.0; out.len()];
            vector::run(AddSums { w: &line, phi: matrix(&self.normals, self.held()), out: &mut values });
            // Numbers are taken whether or not the row needs them, so that no rounding shifts those of later rows.
            let normals: Vec<f64> = (0..out.len()).map(|_| StandardNormal.sample(&mut self.random)).collect();
            let left = diagonal[i] - dot(&own, &own) - dot(&line, &line);
            if left > DETERMINED * diagonal[i] {
                values.iter_mut().zip(&normals).for_each(|(v, z)| *v += left.sqrt() * z);
                line.push(left.sqrt());
                self.factor.push(line);
                self.normals.extend(normals);
                self.rows.extend(x.row(i));
                self.halves.extend(own);
            }
            out.iter_mut().zip(values).for_each(|(out, v)| *out += spread * v);
        }
    }

    /// Residual covariances of a scaled row, [1, D], with the rows that are held, over the amplitude.
    fn covariances(&self, x: ArrayView2<f64>, own: &[f64]) -> Vec<f64> {
        let n = self.held();
        let (mut out, mut spanned) = (Array2::zeros((n, 1)), vec![0.0; n]);
        if n > 0 {
            self.residual.kernel.at(x)(matrix(&self.rows, n), out.view_mut());
            vector::run(RowSums { w: own, phi: matrix(&self.halves, n), out: &mut spanned });
        }
        out.iter().zip(spanned).map(|(v, spanned)| v - spanned).collect()
    }
}

/// Numbers row by row as a matrix of `rows` rows.
fn matrix(numbers: &[f64], rows: usize) -> ArrayView2<'_, f64> {
    let columns = numbers.len() / rows.max(1);
    ArrayView2::from_shape((rows, columns), numbers).expect("rows of equal length")
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    let mut out = 0.0;
    vector::run(Dot { a, b, out: &mut out });
    out
}
