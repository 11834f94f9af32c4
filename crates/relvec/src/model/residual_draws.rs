//! Draws of the residual of a process prior, (M73).

use ndarray::{Array2, ArrayView2, ArrayViewMut2, s};
use rand_distr::{Distribution, StandardNormal};
use rand_pcg::Pcg64;
use relvec_predict::internal::model::Residual;

use crate::kernel::vector::{self, AddSums, Dot, RowSums};

/// Ratio of residual variance to prior variance below which a row is determined by the centres and the previous rows.
/// The difference of two numbers of size 1 has no correct digits there. Larger values would make rough drawn functions
/// too smooth; smaller ones would divide rounding by rounding.
const DETERMINED: f64 = 1e-12;
/// Stream of the random numbers of the residual, which differs from those of weights and noise.
const STREAM: u128 = 1;

/// Draws of the residual at rows one after the other, each given the previous ones. They do not depend on the division
/// of the rows into blocks.
pub(super) struct ResidualDraws<'a> {
    residual: Residual<'a>,
    /// Scaled rows so far that previous rows do not determine, [n, D], row by row.
    rows: Vec<f64>,
    /// inv(L) k of each of these rows, [n, M], row by row.
    halves: Vec<f64>,
    /// Standard normal numbers of each of these rows, [n, S], row by row.
    normals: Vec<f64>,
    /// Rows of the Cholesky factor of the residual covariance of these rows divided by the amplitude.
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

    /// Returns the number of stored rows.
    pub fn held(&self) -> usize {
        self.factor.len()
    }

    /// Adds `spread` times the draws at raw rows `x`, [B, D], with basis functions `phi`, [B, M], to `out`, [B, S].
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
            // Random numbers are drawn even if the row does not need them, so that no rounding changes those of later
            // rows.
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

    /// Returns the residual covariances of a scaled row, [1, D], with the stored rows, divided by the amplitude.
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

/// Returns a view of numbers as a matrix `[R, C]`, row by row; R is `rows`.
fn matrix(numbers: &[f64], rows: usize) -> ArrayView2<'_, f64> {
    let columns = numbers.len() / rows.max(1);
    ArrayView2::from_shape((rows, columns), numbers).expect("rows of equal length")
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    let mut out = 0.0;
    vector::run(Dot { a, b, out: &mut out });
    out
}
