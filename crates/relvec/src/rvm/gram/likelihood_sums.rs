//! Sums over all rows of what a likelihood is at given weights: its value, its slope and its curvature, from
//! one sweep over the columns of the model.
//!
//! Groups of rows are summed side by side, and then in the order of the rows: groups depend on sizes alone,
//! so results do not depend on threads.

use std::borrow::Cow;
use std::ops::Range;
use std::rc::Rc;

use ndarray::{Array1, Array2, ArrayView1, ArrayView2, Axis, s};
use rayon::prelude::*;

use crate::error::Result;
use crate::kernel::vector::{self, AddSums, RowSums};
use crate::linalg;
use crate::rvm::gram::scaled_problem::ScaledProblem;

/// Entries of a block (256 KB): it and its weighted copy stay in the cache of one thread.
const BLOCK_ENTRIES: usize = 1 << 15;
const LEAST_BLOCK: usize = 128;
/// Groups at most, and rows that each has at least.
const GROUPS: usize = 16;
const GROUP_ROWS: usize = 2048;

/// Phi_A, [N, M]: kept, or made again in each sweep.
pub(crate) enum Phi<'a> {
    Kept(Rc<Array2<f64>>),
    Made { problem: &'a ScaledProblem<'a>, columns: Cow<'a, [usize]> },
}

/// Sums over the rows at given weights.
#[derive(Debug, Clone)]
pub(crate) struct LikelihoodSums {
    /// sum c log p.
    pub log_likelihood: f64,
    /// sum c r^2.
    pub squares: f64,
    /// Phi'c r, `[M]`.
    pub slope: Array1<f64>,
    /// Lower triangle of Phi'c B Phi, [M, M]; empty unless asked for.
    pub curvature: Array2<f64>,
    /// c B of the rows, `[N]`; only where the slope is asked for without the curvature.
    pub row_curvature: Vec<f64>,
}

/// What a sweep is to sum.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd)]
pub(crate) enum DerivativeOrder {
    Value,
    Slope,
    Curvature,
}

impl LikelihoodSums {
    /// Adds the sums over other rows.
    fn add(&mut self, other: &LikelihoodSums) {
        self.log_likelihood += other.log_likelihood;
        self.squares += other.squares;
        self.slope += &other.slope;
        self.curvature += &other.curvature;
        self.row_curvature.extend(&other.row_curvature);
    }
}

impl Phi<'_> {
    pub fn columns(&self) -> usize {
        match self {
            Phi::Kept(phi) => phi.ncols(),
            Phi::Made { columns, .. } => columns.len(),
        }
    }

    /// The sums at weights `w`, `[M]`.
    ///
    /// # Errors
    /// `Interrupted`: the sums are incomplete then; and those of [`ScaledProblem::for_each_part`].
    pub fn slopes(&self, problem: &ScaledProblem, w: ArrayView1<f64>, want: DerivativeOrder) -> Result<LikelihoodSums> {
        let Some(columns) = self.made_in_blocks() else { return self.slopes_of(problem, w, want) };
        problem.sum_of_parts(
            |part| Phi::Made { problem: part, columns: columns.into() }.slopes_of(part, w, want),
            |total, own| total.add(&own),
        )
    }

    /// The columns, if they are made of rows that are not held.
    pub fn made_in_blocks(&self) -> Option<&[usize]> {
        match self {
            Phi::Made { problem, columns } if problem.training.blocks.is_some() => Some(columns),
            _ => None,
        }
    }

    /// Returns the sums at weights `w`, `[M]`, over rows that are held.
    fn slopes_of(&self, problem: &ScaledProblem, w: ArrayView1<f64>, want: DerivativeOrder) -> Result<LikelihoodSums> {
        let (training, m) = (problem.training, self.columns());
        let w = w.to_slice().expect("weights are consecutive numbers");
        let likelihood = training.rvm.likelihood.as_dyn();
        let wide = if want == DerivativeOrder::Curvature { m } else { 0 };
        let mut parts: Vec<LikelihoodSums> = self.by_groups(
            problem,
            || LikelihoodSums {
                log_likelihood: 0.0,
                squares: 0.0,
                slope: Array1::zeros(m),
                curvature: Array2::zeros((wide, wide)),
                row_curvature: vec![],
            },
            |sums, rows, phi| {
                let c = &training.weights[rows.clone()];
                let mut f = vec![0.0; rows.len()];
                vector::run(RowSums { w, phi, out: &mut f });
                let solver = likelihood.working(&training.targets[rows], &f);
                sums.log_likelihood += solver.log_likelihood.iter().zip(c).map(|(l, c)| c * l).sum::<f64>();
                if want == DerivativeOrder::Value {
                    return;
                }
                sums.squares += solver.residual.iter().zip(c).map(|(r, c)| c * r * r).sum::<f64>();
                let r: Vec<f64> = solver.residual.iter().zip(c).map(|(r, c)| c * r).collect();
                let slope = sums.slope.as_slice_mut().expect("a vector is contiguous");
                vector::run(AddSums { w: &r, phi, out: slope });
                if want == DerivativeOrder::Slope {
                    sums.row_curvature.extend(solver.curvature.iter().zip(c).map(|(b, c)| b * c));
                } else {
                    let mut weighted = phi.to_owned();
                    for ((mut row, b), c) in weighted.outer_iter_mut().zip(&solver.curvature).zip(c) {
                        row *= (b * c).sqrt();
                    }
                    linalg::add_gram(weighted.view(), sums.curvature.view_mut());
                }
            },
        );
        training.interrupt.check()?;
        let rest = parts.split_off(1);
        let mut total = parts.pop().expect("at least one group");
        rest.iter().for_each(|part| total.add(part));
        Ok(total)
    }

    /// Phi'diag(b) Phi d, `[M]`, for `b`, `[N]`, of rows that are held, and `d`, `[M]`.
    ///
    /// # Errors
    /// `Interrupted`: the sums are incomplete then.
    pub fn curvature_times(&self, problem: &ScaledProblem, b: &[f64], d: ArrayView1<f64>) -> Result<Array1<f64>> {
        let (d, m) = (d.to_slice().expect("weights are consecutive numbers"), self.columns());
        let parts = self.by_groups(
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
        Ok(parts.into_iter().map(Array1::from_vec).reduce(|total, part| total + part).expect("at least one group"))
    }

    /// Calls `each` with consecutive blocks of rows, `[B, M]`, in this thread. Once interrupted it passes over the rest.
    pub fn for_each_block(&self, problem: &ScaledProblem, mut each: impl FnMut(Range<usize>, ArrayView2<f64>)) {
        let (n, m) = (problem.design.n_rows(), self.columns());
        match self {
            Phi::Kept(phi) => each(0..n, phi.view()),
            Phi::Made { problem, columns } => {
                let fill = problem.design.filler(columns);
                let step = (BLOCK_ENTRIES / m.max(1)).max(LEAST_BLOCK);
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

    /// Returns the sums of groups of rows, in the order of the rows; `each` adds a block of rows, `[B, M]`. Once interrupted it
    /// passes over the rest.
    pub fn by_groups<T: Send>(
        &self,
        problem: &ScaledProblem,
        new: impl Fn() -> T + Sync,
        each: impl Fn(&mut T, Range<usize>, ArrayView2<f64>) + Sync,
    ) -> Vec<T> {
        let (n, m) = (problem.design.n_rows(), self.columns());
        let groups = (n / GROUP_ROWS).clamp(1, GROUPS);
        let size = n.div_ceil(groups).max(1);
        let step = (BLOCK_ENTRIES / m.max(1)).max(LEAST_BLOCK);
        // Plain borrows: what counts references stays in this thread.
        let kept = match self {
            Phi::Kept(phi) => Some(phi.view()),
            Phi::Made { .. } => None,
        };
        let fill = match self {
            Phi::Kept(_) => None,
            Phi::Made { problem, columns } => Some(problem.design.filler(columns)),
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
                    (None, None) => unreachable!("what is not kept is made"),
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

/// Phi w' for weights [R, M] of R outputs, [N, R] by rows: each row whatever the others are.
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
