//! Sums over rows for the weights under a process prior, (M72), and for regression on labels, (M87).

use ndarray::{Array1, Array2, ArrayView2, Axis, s};
use rayon::prelude::*;

use super::bytes::{Reader, Words};
use crate::error::{Error, Result};
use crate::kernel::Kernel;
use crate::linalg;
use crate::report::Interrupt;
use crate::rvm::learn::rows::{DistinctRows, Totals};

/// Rows of a block of the sums; of a tile of kernel values, which one thread makes.
const BLOCK_ROWS: usize = 4096;
const TILE_ROWS: usize = 64;

/// Where sums over rows are made.
#[derive(Debug, Clone)]
pub(in crate::rvm) struct At {
    /// Every parameter a number.
    pub kernel: Kernel,
    /// [M, D], and L of K = L L', [M, M].
    pub centres: Array2<f64>,
    pub lower: Array2<f64>,
    /// Whether F has a column of ones, the first.
    pub bias: bool,
    /// Amplitude over noise of the residual of the prior at a row, which adds to the noise of its target; 0 leaves it out.
    pub ratio: f64,
    /// Means m, [P, R], of which the sums of what they leave, F' inv(Lambda) (t - F m), are wanted alone.
    pub mean: Option<Array2<f64>>,
}

/// What adds up over rows; of a query with means the second sum alone.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::rvm) struct PartSums {
    /// F' inv(Lambda) F, [P, P], the lower triangle.
    pub gram: Array2<f64>,
    /// F' inv(Lambda) t, [P, R].
    pub right: Array2<f64>,
    /// t' inv(Lambda) t of each output, `[R]`.
    pub squares: Array1<f64>,
    /// log|Lambda|.
    pub log_det: f64,
    pub totals: Totals,
}

impl At {
    /// P.
    fn columns(&self) -> usize {
        usize::from(self.bias) + self.centres.nrows()
    }

    /// F, [n, P], and lambda, `[n]`, of rows `x`, [n, D], whose noise is over `weights`, `[n]`.
    fn features(&self, x: ArrayView2<f64>, weights: &[f64]) -> (Array2<f64>, Vec<f64>) {
        let (first, fill) = (usize::from(self.bias), self.kernel.at(self.centres.view()));
        let mut f = Array2::ones((x.nrows(), self.columns()));
        f.axis_chunks_iter_mut(Axis(0), TILE_ROWS)
            .into_par_iter()
            .zip(x.axis_chunks_iter(Axis(0), TILE_ROWS).into_par_iter())
            .for_each(|(mut f, x)| fill(x, f.slice_mut(s![.., first..])));
        linalg::solve_lower(self.lower.view(), f.slice_mut(s![.., first..]).reversed_axes());
        let diagonal = self.kernel.diagonal(x);
        let lambda = f.outer_iter().zip(&diagonal).zip(weights).map(|((f, diagonal), c)| {
            let phi = f.slice(s![first..]);
            // Times 0 even infinity would be no number.
            let residual = if self.ratio > 0.0 { self.ratio * (diagonal - phi.dot(&phi)).max(0.0) } else { 0.0 };
            residual + 1.0 / c
        });
        let lambda = lambda.collect();
        (f, lambda)
    }
}

impl PartSums {
    /// Of no rows yet, of `outputs` outputs.
    pub fn new(at: &At, outputs: usize) -> PartSums {
        let p = at.columns();
        // Without a Gram matrix where the sums of what means leave are wanted alone.
        let width = if at.mean.is_some() { 0 } else { p };
        let totals = Totals { scatter: vec![0.0; outputs], ..Totals::default() };
        let (gram, right) = (Array2::zeros((width, width)), Array2::zeros((p, outputs)));
        PartSums { gram, right, squares: Array1::zeros(outputs), log_det: 0.0, totals }
    }

    /// Adds rows, on the threads of the pool that it is called in.
    ///
    /// # Errors
    /// [`Error::Interrupted`], by hand or by a deadline; a kernel value that is not finite.
    pub fn add_rows(&mut self, at: &At, rows: &DistinctRows, interrupt: &Interrupt) -> Result<()> {
        for begin in (0..rows.len()).step_by(BLOCK_ROWS) {
            if interrupt.is_raised_by_hand() || interrupt.is_late() {
                return Err(Error::Interrupted);
            }
            let some = begin..(begin + BLOCK_ROWS).min(rows.len());
            let weights = &rows.weights[some.clone()];
            self.add_block(at, rows.x.slice(s![some.clone(), ..]), rows.t.slice(s![some, ..]), weights);
        }
        self.totals.add(&rows.totals());
        if !(self.log_det.is_finite() && self.right.iter().all(|v| v.is_finite())) {
            let what = format!("a sum over values of the kernel ({}) of rows and centres", at.kernel.name());
            return Err(Error::Overflow { what });
        }
        Ok(())
    }

    fn add_block(&mut self, at: &At, x: ArrayView2<f64>, t: ArrayView2<f64>, weights: &[f64]) {
        let (mut f, lambda) = at.features(x, weights);
        if let Some(mean) = &at.mean {
            let mut left = t.to_owned();
            linalg::product(true, -1.0, f.view(), mean.view(), left.view_mut());
            left /= &Array1::from_vec(lambda).insert_axis(Axis(1));
            linalg::product(true, 1.0, f.t(), left.view(), self.right.view_mut());
            return;
        }
        self.log_det += lambda.iter().map(|v| v.ln()).sum::<f64>();
        let roots: Array1<f64> = lambda.iter().map(|v| 1.0 / v.sqrt()).collect();
        let roots = roots.insert_axis(Axis(1));
        f *= &roots;
        let t = &t * &roots;
        linalg::add_gram(f.view(), self.gram.view_mut());
        linalg::product(true, 1.0, f.t(), t.view(), self.right.view_mut());
        self.squares += &t.mapv(|v| v * v).sum_axis(Axis(0));
    }

    /// Adds the sums over other rows.
    ///
    /// # Errors
    /// Other shapes.
    pub fn add(&mut self, other: &PartSums) -> Result<()> {
        if self.right.dim() != other.right.dim() || self.gram.dim() != other.gram.dim() {
            let (a, b) = (self.right.dim(), other.right.dim());
            return Err(Error::Rows(format!("sums of {a:?} numbers cannot be added to sums of {b:?}")));
        }
        self.gram += &other.gram;
        self.right += &other.right;
        self.squares += &other.squares;
        self.log_det += other.log_det;
        self.totals.add(&other.totals);
        Ok(())
    }

    pub(super) fn write(&self, out: &mut Words) {
        let (p, outputs) = self.right.dim();
        out.counts([p, outputs, self.gram.nrows(), self.totals.inputs].map(|count| count as u64));
        out.numbers(&[self.log_det, self.totals.count, self.totals.log_constant]);
        out.numbers(&self.totals.scatter);
        out.numbers(&self.squares);
        out.numbers(&self.right);
        out.triangle(self.gram.view());
    }

    pub(super) fn read(from: &mut Reader) -> Result<PartSums> {
        let (p, outputs, width) = (from.size()?, from.size()?, from.size()?);
        let inputs = from.count()? as usize;
        let (log_det, count, log_constant) = (from.number()?, from.number()?, from.number()?);
        let scatter = from.finite(outputs)?;
        let squares = Array1::from_vec(from.finite(outputs)?);
        let right = from.matrix(p, outputs)?;
        let gram = from.triangle(width)?;
        Ok(PartSums { gram, right, squares, log_det, totals: Totals { inputs, count, scatter, log_constant } })
    }
}

impl At {
    pub(super) fn write(&self, out: &mut Words) {
        let (m, d) = self.centres.dim();
        let outputs = self.mean.as_ref().map_or(0, Array2::ncols);
        out.counts([m, d, outputs].map(|count| count as u64));
        out.number(self.ratio);
        out.numbers(&self.centres);
        out.triangle(self.lower.view());
        out.numbers(self.mean.iter().flatten());
    }

    pub(super) fn read(kernel: Kernel, bias: bool, from: &mut Reader) -> Result<At> {
        let (m, d, outputs) = (from.size()?, from.size()?, from.size()?);
        let ratio = from.number()?;
        let centres = from.matrix(m, d)?;
        let lower = from.triangle(m)?;
        let mean = if outputs > 0 { Some(from.matrix(m + usize::from(bias), outputs)?) } else { None };
        Ok(At { kernel, centres, lower, bias, ratio, mean })
    }
}
