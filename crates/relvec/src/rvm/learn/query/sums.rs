//! Sums over rows for the weights under a process prior, (M72), and for regression on labels, (M87).

use ndarray::{Array1, Array2, ArrayView1, ArrayView2, Axis, s};
use rayon::prelude::*;

use super::bytes::{Reader, Writer};
use crate::error::{Error, Result};
use crate::kernel::Kernel;
use crate::linalg;
use crate::report::Interrupt;
use crate::rvm::learn::merged_rows::{DistinctRows, Totals};

/// Number of rows of a block of the sums.
const BLOCK_ROWS: usize = 4096;
/// Number of rows of a tile of kernel values, which one thread computes.
const TILE_ROWS: usize = 64;

/// Kernel, centres and ratios at which sums over rows are computed.
#[derive(Debug, Clone)]
pub(in crate::rvm) struct SumsRequest {
    /// Kernel whose parameters are all numbers.
    pub kernel: Kernel,
    /// Centres, [M, D], and the factor L of K = L L', [M, M].
    pub centres: Array2<f64>,
    pub lower: Array2<f64>,
    /// True if the first column of F is constant.
    pub bias: bool,
    /// Ratios of the amplitude to the noise variance, `[J]`, each with its own sums. The noise variance of a row is
    /// increased by the ratio times the prior's residual variance there, in units of the noise variance. A ratio of 0
    /// ignores the residual.
    pub ratios: Vec<f64>,
    /// Means m, [P, R]. If they are given, only F' inv(Lambda) (t - F m) is computed.
    pub mean: Option<Array2<f64>>,
}

/// Sums over rows, which can be added.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::rvm) struct PartSums {
    /// Sums at each ratio, `[J]`.
    pub at_ratios: Vec<RatioSums>,
    pub totals: Totals,
}

/// Sums at one ratio. If means m were given, `right` is F' inv(Lambda) (t - F m), and the other sums are not computed.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::rvm) struct RatioSums {
    /// F' inv(Lambda) F, [P, P], lower triangle.
    pub gram: Array2<f64>,
    /// F' inv(Lambda) t, [P, R].
    pub right: Array2<f64>,
    /// t' inv(Lambda) t of each output, `[R]`.
    pub squares: Array1<f64>,
    /// log|Lambda|.
    pub log_det: f64,
}

impl SumsRequest {
    /// Returns the number P of columns of F.
    fn columns(&self) -> usize {
        usize::from(self.bias) + self.centres.nrows()
    }

    /// Returns F, [n, P], for rows `x`, [n, D], and the residual variance d of the prior at each row, `[n]`.
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
    /// Returns sums over no rows, for targets with `outputs` columns.
    pub fn new(at: &SumsRequest, outputs: usize) -> PartSums {
        let p = at.columns();
        // If means are given, no Gram matrix is computed.
        let width = if at.mean.is_some() { 0 } else { p };
        let (gram, right) = (Array2::zeros((width, width)), Array2::zeros((p, outputs)));
        let sums = RatioSums { gram, right, squares: Array1::zeros(outputs), log_det: 0.0 };
        let totals = Totals { scatter: vec![0.0; outputs], ..Totals::default() };
        PartSums { at_ratios: vec![sums; at.ratios.len()], totals }
    }

    /// Adds rows. The work runs on the current thread pool.
    ///
    /// # Errors
    /// Returns [`Error::Interrupted`] if the fit must stop or its deadline has passed, and [`Error::Overflow`] if a sum
    /// is not finite.
    pub fn add_rows(&mut self, at: &SumsRequest, rows: &DistinctRows, interrupt: &Interrupt) -> Result<()> {
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
            let what = format!("a sum over the values of the kernel {} for rows and centres", at.kernel.name());
            return Err(Error::Overflow { what });
        }
        Ok(())
    }

    fn add_block(&mut self, at: &SumsRequest, x: ArrayView2<f64>, t: ArrayView2<f64>, weights: &[f64]) {
        let (mut f, residual) = at.features(x);
        // F is rescaled in place from one ratio to the next.
        let mut before = Array2::ones((x.nrows(), 1));
        for (sums, ratio) in self.at_ratios.iter_mut().zip(&at.ratios) {
            // An infinite residual times the ratio 0 would not be a number.
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

    /// Returns the sums of a query at one ratio, and the totals.
    pub fn single(mut self) -> (RatioSums, Totals) {
        assert_eq!(self.at_ratios.len(), 1, "one ratio was asked for");
        (self.at_ratios.remove(0), self.totals)
    }

    /// Adds the sums over other rows.
    ///
    /// # Errors
    /// Returns [`Error::Rows`] if the shapes differ.
    pub fn add(&mut self, other: &PartSums) -> Result<()> {
        let shapes = |sums: &PartSums| sums.at_ratios.iter().map(|s| (s.right.dim(), s.gram.dim())).collect::<Vec<_>>();
        let (a, b) = (shapes(self), shapes(other));
        if a != b {
            return Err(Error::Rows(format!("sums of shapes {b:?} cannot be added to sums of shapes {a:?}")));
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

    pub(super) fn write(&self, out: &mut Writer) {
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
            return Err(Error::Rows("damaged relvec answer: found sums at 0 ratios, expected at least 1".into()));
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

impl SumsRequest {
    pub(super) fn write(&self, out: &mut Writer) {
        let (m, d) = self.centres.dim();
        let outputs = self.mean.as_ref().map_or(0, Array2::ncols);
        out.counts([m, d, outputs, self.ratios.len()].map(|count| count as u64));
        out.numbers(&self.ratios);
        out.numbers(&self.centres);
        out.triangle(self.lower.view());
        out.numbers(self.mean.iter().flatten());
    }

    pub(super) fn read(kernel: Kernel, bias: bool, from: &mut Reader) -> Result<SumsRequest> {
        let (m, d, outputs, ratios) = (from.size()?, from.size()?, from.size()?, from.size()?);
        let ratios = from.finite(ratios)?;
        let centres = from.matrix(m, d)?;
        let lower = from.triangle(m)?;
        let mean = if outputs > 0 { Some(from.matrix(m + usize::from(bias), outputs)?) } else { None };
        Ok(SumsRequest { kernel, centres, lower, bias, ratios, mean })
    }
}
