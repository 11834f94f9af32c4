//! Sums over all rows of the log-likelihood, its gradient and its Hessian at given weights, from one pass over Phi.
//!
//! Groups of rows are summed in parallel, and their sums are added in the order of the rows. The groups depend on sizes
//! alone, so that results do not depend on the number of threads.

use std::borrow::Cow;
use std::ops::Range;
use std::rc::Rc;

use ndarray::{Array1, Array2, ArrayView1, ArrayView2, Axis, s};
use rayon::prelude::*;

use crate::design::{CHUNK_ENTRIES, GROUPS, TILE_ROWS};
use crate::error::Result;
use crate::kernel::vector::{self, AddSums, RowSums};
use crate::linalg;
use crate::rvm::gram::scaled_problem::ScaledProblem;

/// Least number of rows in a group.
const GROUP_ROWS: usize = 2048;

/// Phi of the active columns, [N, M].
pub(crate) enum Phi<'a> {
    /// Stored in memory.
    Kept(Rc<Array2<f64>>),
    /// Recomputed in each pass.
    Made { problem: &'a ScaledProblem<'a>, columns: Cow<'a, [usize]> },
}

/// Sums over the rows at given weights.
#[derive(Debug, Clone)]
pub(crate) struct LikelihoodSums {
    /// Log-likelihood, sum c log p.
    pub log_likelihood: f64,
    /// Gradient of the log-likelihood, Phi'c r, `[M]`.
    pub gradient: Array1<f64>,
    /// Lower triangle of the Hessian of the negative log-likelihood, Phi'c B Phi, [M, M]; empty unless requested.
    pub hessian: Array2<f64>,
    /// c B of the rows, `[N]`; empty unless the gradient is requested without the Hessian.
    pub row_curvature: Vec<f64>,
}

/// Highest derivative that a pass computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd)]
pub(crate) enum DerivativeOrder {
    Gradient,
    Hessian,
}

impl LikelihoodSums {
    /// Adds the sums over other rows.
    fn add(&mut self, other: &LikelihoodSums) {
        self.log_likelihood += other.log_likelihood;
        self.gradient += &other.gradient;
        self.hessian += &other.hessian;
        self.row_curvature.extend(&other.row_curvature);
    }
}

impl Phi<'_> {
    /// Returns M, the number of active columns.
    pub fn columns(&self) -> usize {
        match self {
            Phi::Kept(phi) => phi.ncols(),
            Phi::Made { columns, .. } => columns.len(),
        }
    }

    /// Returns Phi, [N, M], if it is stored.
    pub fn stored(self) -> Option<Rc<Array2<f64>>> {
        match self {
            Phi::Kept(phi) => Some(phi),
            Phi::Made { .. } => None,
        }
    }

    /// Returns the sums at weights `w`, `[M]`, up to the derivative `order`.
    ///
    /// # Errors
    /// Returns [`Error::Interrupted`](crate::error::Error::Interrupted) if the fit must stop.
    pub fn sums(&self, problem: &ScaledProblem, w: ArrayView1<f64>, order: DerivativeOrder) -> Result<LikelihoodSums> {
        let (training, m) = (problem.training, self.columns());
        let w = w.to_slice().expect("weights are consecutive numbers");
        let likelihood = training.rvm.likelihood.as_dyn();
        let wide = if order == DerivativeOrder::Hessian { m } else { 0 };
        let mut groups: Vec<LikelihoodSums> = self.by_groups(
            problem,
            || LikelihoodSums {
                log_likelihood: 0.0,
                gradient: Array1::zeros(m),
                hessian: Array2::zeros((wide, wide)),
                row_curvature: vec![],
            },
            |sums, rows, phi| {
                let c = &training.weights[rows.clone()];
                let mut f = vec![0.0; rows.len()];
                vector::run(RowSums { w, phi, out: &mut f });
                let working = likelihood.working(&training.targets[rows], &f);
                sums.log_likelihood += working.log_likelihood.iter().zip(c).map(|(l, c)| c * l).sum::<f64>();
                let r: Vec<f64> = working.residual.iter().zip(c).map(|(r, c)| c * r).collect();
                let gradient = sums.gradient.as_slice_mut().expect("a vector is contiguous");
                vector::run(AddSums { w: &r, phi, out: gradient });
                if order == DerivativeOrder::Gradient {
                    sums.row_curvature.extend(working.curvature.iter().zip(c).map(|(b, c)| b * c));
                } else {
                    let mut weighted = phi.to_owned();
                    for ((mut row, b), c) in weighted.outer_iter_mut().zip(&working.curvature).zip(c) {
                        row *= (b * c).sqrt();
                    }
                    linalg::add_gram(weighted.view(), sums.hessian.view_mut());
                }
            },
        );
        training.interrupt.check()?;
        let rest = groups.split_off(1);
        let mut total = groups.pop().expect("at least one group");
        rest.iter().for_each(|group| total.add(group));
        Ok(total)
    }

    /// Returns Phi'diag(b) Phi d, `[M]`, for `b`, `[N]`, and `d`, `[M]`.
    ///
    /// # Errors
    /// Returns [`Error::Interrupted`](crate::error::Error::Interrupted) if the fit must stop.
    pub fn hessian_times(&self, problem: &ScaledProblem, b: &[f64], d: ArrayView1<f64>) -> Result<Array1<f64>> {
        let (d, m) = (d.to_slice().expect("weights are consecutive numbers"), self.columns());
        let groups = self.by_groups(
            problem,
            || vec![0.0; m],
            |sums, rows, phi| {
                let mut f = vec![0.0; rows.len()];
                vector::run(RowSums { w: d, phi, out: &mut f });
                f.iter_mut().zip(&b[rows]).for_each(|(f, b)| *f *= b);
                vector::run(AddSums { w: &f, phi, out: sums });
            },
        );
        problem.training.interrupt.check()?;
        Ok(groups.into_iter().map(Array1::from_vec).reduce(|total, group| total + group).expect("at least one group"))
    }

    /// Calls `each` with consecutive blocks of rows, `[B, M]`, in this thread. After an interrupt it skips the rest.
    pub fn for_each_block(&self, problem: &ScaledProblem, mut each: impl FnMut(Range<usize>, ArrayView2<f64>)) {
        let (n, m) = (problem.design.n_rows(), self.columns());
        match self {
            Phi::Kept(phi) => each(0..n, phi.view()),
            Phi::Made { problem, columns } => {
                let fill = problem.design.filler(columns);
                let step = (CHUNK_ENTRIES / m.max(1)).max(TILE_ROWS);
                let mut buffer = Array2::zeros((step.min(n), m));
                for start in (0..n).step_by(step).take_while(|_| !problem.training.interrupt.is_raised()) {
                    let rows = start..(start + step).min(n);
                    let mut block = buffer.slice_mut(s![..rows.len(), ..]);
                    fill(start, block.view_mut());
                    each(rows, block.view());
                }
            }
        }
    }

    /// Returns the sums of groups of rows, in the order of the rows. `new` returns empty sums, and `each` adds a block
    /// of rows, `[B, M]`, to them. After an interrupt it skips the rest.
    pub fn by_groups<T: Send>(
        &self,
        problem: &ScaledProblem,
        new: impl Fn() -> T + Sync,
        each: impl Fn(&mut T, Range<usize>, ArrayView2<f64>) + Sync,
    ) -> Vec<T> {
        let (n, m) = (problem.design.n_rows(), self.columns());
        let groups = (n / GROUP_ROWS).clamp(1, GROUPS);
        let size = n.div_ceil(groups).max(1);
        let step = (CHUNK_ENTRIES / m.max(1)).max(TILE_ROWS);
        // Borrowed here, because `Rc` cannot be shared with other threads.
        let (kept, fill) = match self {
            Phi::Kept(phi) => (Some(phi.view()), None),
            Phi::Made { problem, columns } => (None, Some(problem.design.filler(columns))),
        };
        let interrupt = &problem.training.interrupt;
        let group = |g: usize| {
            let (mut sums, end) = (new(), ((g + 1) * size).min(n));
            let mut buffer = Array2::zeros(if kept.is_none() { (step.min(size), m) } else { (0, 0) });
            for start in (g * size..end).step_by(step) {
                if interrupt.is_raised() {
                    break;
                }
                let rows = start..(start + step).min(end);
                match (&kept, &fill) {
                    (Some(phi), _) => each(&mut sums, rows.clone(), phi.slice(s![rows, ..])),
                    (None, Some(fill)) => {
                        let mut block = buffer.slice_mut(s![..rows.len(), ..]);
                        fill(start, block.view_mut());
                        each(&mut sums, rows, block.view());
                    }
                    (None, None) => unreachable!("Phi is stored or recomputed"),
                }
            }
            sums
        };
        match groups {
            1 => vec![group(0)],
            _ => (0..groups).into_par_iter().map(group).collect(),
        }
    }
}

/// Returns Phi w', [N, R], row by row, for Phi, [N, M], and weights of R outputs, [R, M]. Each row of the result
/// depends on the same row of Phi alone, in all digits.
pub(crate) fn fitted(phi: ArrayView2<f64>, w: ArrayView2<f64>) -> Array1<f64> {
    let mut out = Array2::zeros((phi.nrows(), w.nrows()));
    out.axis_chunks_iter_mut(Axis(0), GROUP_ROWS).into_par_iter().zip(phi.axis_chunks_iter(Axis(0), GROUP_ROWS)).for_each(
        |(mut out, phi)| match w.nrows() {
            1 => out.column_mut(0).assign(&phi.dot(&w.row(0))),
            _ => out.assign(&phi.dot(&w.t())),
        },
    );
    Array1::from_vec(out.into_raw_vec_and_offset().0)
}
