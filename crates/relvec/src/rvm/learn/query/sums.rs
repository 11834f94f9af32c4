//! Sums over rows for the weights under a process prior, (M72), and for regression on labels, (M87).

use ndarray::{Array1, Array2, ArrayView1, ArrayView2, Axis, s};
use rayon::prelude::*;

use super::bytes::{Reader, Words};
use crate::error::{Error, Result};
use crate::kernel::Kernel;
use crate::linalg;
use crate::report::Interrupt;
use crate::rvm::learn::merged_rows::{DistinctRows, Totals};

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
    /// Ratios of amplitude to noise, `[J]`, at each of which there are sums: the residual of the prior at a row times a ratio adds to the
    /// noise of its target. A ratio of 0 leaves the residual out.
    pub ratios: Vec<f64>,
    /// Means m, [P, R], of which the sums of what they leave, F' inv(Lambda) (t - F m), are wanted alone.
    pub mean: Option<Array2<f64>>,
}

/// What adds up over rows.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::rvm) struct PartSums {
    /// At each ratio, `[J]`.
    pub at_ratios: Vec<RatioSums>,
    pub totals: Totals,
}

/// Sums at one ratio; of a query with means the second sum alone.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::rvm) struct RatioSums {
    /// F' inv(Lambda) F, [P, P], the lower triangle.
    pub gram: Array2<f64>,
    /// F' inv(Lambda) t, [P, R].
    pub right: Array2<f64>,
    /// t' inv(Lambda) t of each output, `[R]`.
    pub squares: Array1<f64>,
    /// log|Lambda|.
    pub log_det: f64,
}

impl At {
    /// P.
    fn columns(&self) -> usize {
        usize::from(self.bias) + self.centres.nrows()
    }

    /// F, [n, P], of rows `x`, [n, D], and what the prior leaves at each, `[n]`.
    fn features(&self, x: ArrayView2<f64>) -> (Array2<f64>, Vec<f64>) {
        let (first, fill) = (usize::from(self.bias), self.kernel.at(self.centres.view()));
        let mut f = Array2::ones((x.nrows(), self.columns()));
        f.axis_chunks_iter_mut(Axis(0), TILE_ROWS)
            .into_par_iter()
            .zip(x.axis_chunks_iter(Axis(0), TILE_ROWS).into_par_iter())
            .for_each(|(mut f, x)| fill(x, f.slice_mut(s![.., first..])));
        linalg::solve_lower(self.lower.view(), f.slice_mut(s![.., first..]).reversed_axes());
        let diagonal = self.kernel.diagonal(x);
        let left = |(f, diagonal): (ArrayView1<f64>, &f64)| {
            let phi = f.slice(s![first..]);
            (diagonal - phi.dot(&phi)).max(0.0)
        };
        let residual = f.outer_iter().zip(&diagonal).map(left).collect();
        (f, residual)
    }
}

impl PartSums {
    /// Of no rows yet, of `outputs` outputs.
    pub fn new(at: &At, outputs: usize) -> PartSums {
        let p = at.columns();
        // Without a Gram matrix where the sums of what means leave are wanted alone.
        let width = if at.mean.is_some() { 0 } else { p };
        let (gram, right) = (Array2::zeros((width, width)), Array2::zeros((p, outputs)));
        let sums = RatioSums { gram, right, squares: Array1::zeros(outputs), log_det: 0.0 };
        let totals = Totals { scatter: vec![0.0; outputs], ..Totals::default() };
        PartSums { at_ratios: vec![sums; at.ratios.len()], totals }
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
        if !self.at_ratios.iter().all(|sums| sums.log_det.is_finite() && sums.right.iter().all(|v| v.is_finite())) {
            let what = format!("a sum over values of the kernel ({}) of rows and centres", at.kernel.name());
            return Err(Error::Overflow { what });
        }
        Ok(())
    }

    fn add_block(&mut self, at: &At, x: ArrayView2<f64>, t: ArrayView2<f64>, weights: &[f64]) {
        let (mut f, residual) = at.features(x);
        // F is scaled in place, from one ratio to the next.
        let mut before = Array2::ones((x.nrows(), 1));
        for (sums, ratio) in self.at_ratios.iter_mut().zip(&at.ratios) {
            // Times 0 even infinity would be no number.
            let more = |residual: f64| if *ratio > 0.0 { ratio * residual } else { 0.0 };
            let lambda: Array1<f64> = residual.iter().zip(weights).map(|(residual, c)| more(*residual) + 1.0 / c).collect();
            if let Some(mean) = &at.mean {
                let mut left = t.to_owned();
                linalg::product(true, -1.0, f.view(), mean.view(), left.view_mut());
                left /= &lambda.insert_axis(Axis(1));
                linalg::product(true, 1.0, f.t(), left.view(), sums.right.view_mut());
                continue;
            }
            sums.log_det += lambda.iter().map(|v| v.ln()).sum::<f64>();
            let roots = lambda.mapv(|v| 1.0 / v.sqrt()).insert_axis(Axis(1));
            f *= &(&roots / &before);
            let t = &t * &roots;
            linalg::add_gram(f.view(), sums.gram.view_mut());
            linalg::product(true, 1.0, f.t(), t.view(), sums.right.view_mut());
            sums.squares += &t.mapv(|v| v * v).sum_axis(Axis(0));
            before = roots;
        }
    }

    /// The sums of a query at one ratio, and the totals.
    pub fn single(mut self) -> (RatioSums, Totals) {
        assert_eq!(self.at_ratios.len(), 1, "one ratio was asked for");
        (self.at_ratios.remove(0), self.totals)
    }

    /// Adds the sums over other rows.
    ///
    /// # Errors
    /// Other shapes.
    pub fn add(&mut self, other: &PartSums) -> Result<()> {
        let shapes = |sums: &PartSums| sums.at_ratios.iter().map(|s| (s.right.dim(), s.gram.dim())).collect::<Vec<_>>();
        let (a, b) = (shapes(self), shapes(other));
        if a != b {
            return Err(Error::Rows(format!("sums of {a:?} numbers cannot be added to sums of {b:?}")));
        }
        for (own, other) in self.at_ratios.iter_mut().zip(&other.at_ratios) {
            own.gram += &other.gram;
            own.right += &other.right;
            own.squares += &other.squares;
            own.log_det += other.log_det;
        }
        self.totals.add(&other.totals);
        Ok(())
    }

    pub(super) fn write(&self, out: &mut Words) {
        let (p, outputs) = self.at_ratios[0].right.dim();
        let counts = [self.at_ratios.len(), p, outputs, self.at_ratios[0].gram.nrows(), self.totals.inputs];
        out.counts(counts.map(|count| count as u64));
        out.numbers(&[self.totals.count, self.totals.log_constant]);
        out.numbers(&self.totals.scatter);
        for sums in &self.at_ratios {
            out.number(sums.log_det);
            out.numbers(&sums.squares);
            out.numbers(&sums.right);
            out.triangle(sums.gram.view());
        }
    }

    pub(super) fn read(from: &mut Reader) -> Result<PartSums> {
        let ratios = from.size()?;
        if ratios == 0 {
            return Err(Error::Rows("an answer of relvec has sums at no ratio".into()));
        }
        let (p, outputs, width) = (from.size()?, from.size()?, from.size()?);
        let inputs = from.count()? as usize;
        let (count, log_constant) = (from.number()?, from.number()?);
        let scatter = from.finite(outputs)?;
        let mut at_ratios = vec![];
        for _ in 0..ratios {
            let log_det = from.number()?;
            let squares = Array1::from_vec(from.finite(outputs)?);
            let right = from.matrix(p, outputs)?;
            at_ratios.push(RatioSums { gram: from.triangle(width)?, right, squares, log_det });
        }
        Ok(PartSums { at_ratios, totals: Totals { inputs, count, scatter, log_constant } })
    }
}

impl At {
    pub(super) fn write(&self, out: &mut Words) {
        let (m, d) = self.centres.dim();
        let outputs = self.mean.as_ref().map_or(0, Array2::ncols);
        out.counts([m, d, outputs, self.ratios.len()].map(|count| count as u64));
        out.numbers(&self.ratios);
        out.numbers(&self.centres);
        out.triangle(self.lower.view());
        out.numbers(self.mean.iter().flatten());
    }

    pub(super) fn read(kernel: Kernel, bias: bool, from: &mut Reader) -> Result<At> {
        let (m, d, outputs, ratios) = (from.size()?, from.size()?, from.size()?, from.size()?);
        let ratios = from.finite(ratios)?;
        let centres = from.matrix(m, d)?;
        let lower = from.triangle(m)?;
        let mean = if outputs > 0 { Some(from.matrix(m + usize::from(bias), outputs)?) } else { None };
        Ok(At { kernel, centres, lower, bias, ratios, mean })
    }
}
