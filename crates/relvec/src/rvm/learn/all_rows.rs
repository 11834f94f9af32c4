//! All rows of a regression, held or read in blocks, as the sums over them see them.

use ndarray::{Array2, ArrayView2, Axis, s};
use rayon::prelude::*;

use super::rows::{DistinctRows, Totals};
use crate::blocks::Blocks;
use crate::error::{Error, Result};
use crate::kernel::Kernel;
use crate::linalg;
use crate::model::check_features;
use crate::report::Interrupt;
use crate::rvm::data::noise::Noise;
use crate::rvm::data::row_blocks::from_row;
use crate::rvm::data::table::Table;
use crate::targets::Targets;

/// Where the rows come from.
pub(in crate::rvm) enum AllRows<'a> {
    Held(&'a DistinctRows),
    /// In the units of a table that is a sample of them.
    Read {
        table: &'a Table<'a>,
        blocks: &'a dyn Blocks,
    },
}

/// What [`AllRows::for_each`] calls with inputs, [B, D], mean targets, [B, R], and c, `[B]`, of consecutive rows.
pub(in crate::rvm) type Each<'e> = dyn FnMut(ArrayView2<f64>, ArrayView2<f64>, &[f64]) -> Result<()> + 'e;

/// Rows of a block of the sums; of a tile of kernel values, which one thread makes.
pub(super) const BLOCK_ROWS: usize = 4096;
const TILE_ROWS: usize = 64;

/// Sums over rows at a ratio of amplitude and noise.
pub(super) struct Sums<'a> {
    pub rows: &'a AllRows<'a>,
    pub kernel: &'a Kernel,
    /// [M, D], and L of K = L L', [M, M].
    pub centres: Array2<f64>,
    pub lower: Array2<f64>,
    pub bias: bool,
    /// Of the residual of the prior at a row, which adds to the noise of its target; 0 leaves it out.
    pub ratio: f64,
    /// Rows read at a time.
    pub block: usize,
    pub interrupt: &'a Interrupt,
}

impl AllRows<'_> {
    /// Calls `each` with at most `most` rows at a time, all of them in the end; returns what adds up.
    ///
    /// # Errors
    /// The first one of `each`, or of the blocks; values that are no numbers.
    pub fn for_each(&self, most: usize, each: &mut Each) -> Result<Totals> {
        match self {
            AllRows::Held(rows) => {
                for begin in (0..rows.len()).step_by(most) {
                    let some = s![begin..(begin + most).min(rows.len()), ..];
                    each(rows.x.slice(some), rows.t.slice(some), &rows.weights[begin..(begin + most).min(rows.len())])?;
                }
                Ok(rows.totals())
            }
            AllRows::Read { table, blocks } => {
                let (mut totals, mut before) = (Totals::default(), 0);
                blocks.pass(&mut |x, targets| {
                    let rows = rows_of(table, x, targets).map_err(|error| from_row(error, before))?;
                    before += x.nrows();
                    totals.add(&AllRows::Held(&rows).for_each(most, each)?);
                    Ok(())
                })?;
                Ok(totals)
            }
        }
    }
}

/// Rows `x`, [B, D], with their targets in the inner units of a table.
fn rows_of(table: &Table, x: ArrayView2<f64>, targets: &Targets) -> Result<DistinctRows> {
    let (d, outputs) = (table.rows.ncols(), table.outputs);
    targets.check_rows(x)?;
    if x.ncols() != d {
        return Err(Error::Shape { what: "rows to train on", expected: format!("{d} columns"), found: x.ncols().to_string() });
    }
    check_features("rows to train on", x)?;
    let y = table.rvm.likelihood.as_dyn().targets(targets.values)?;
    if y.len() != x.nrows() * outputs {
        return Err(Error::Targets(format!("{} for {} rows of {outputs} each", y.len(), x.nrows())));
    }
    if let Some(at) = y.iter().position(|v| !v.is_finite()) {
        return Err(Error::NotFinite { what: "targets", row: at / outputs, column: at % outputs, value: y[at] });
    }
    let weights = targets.checked_weights()?.unwrap_or_else(|| vec![1.0; x.nrows()]);
    let variances = targets.checked_given()?;
    if variances.is_some() != table.known_noise {
        return Err(Error::Targets("the noise variances of some rows are given, and not those of others".into()));
    }
    let used: Vec<usize> = (0..x.nrows()).filter(|n| weights[*n] > 0.0).collect();
    let inner = |(n, k): (usize, usize)| {
        let units = &table.units[k];
        y[used[n] * outputs + k] / units.scale - if table.rvm.bias { units.mean } else { 0.0 }
    };
    let typical = match table.noise[0] {
        Noise::Fixed(beta) => table.units[0].scale.powi(2) / beta,
        Noise::Learnt { .. } => 1.0,
    };
    let factors: Vec<f64> = used.iter().map(|n| variances.as_ref().map_or(1.0, |v| typical / v[*n])).collect();
    let weights: Vec<f64> = used.iter().map(|n| weights[*n]).collect();
    let t = Array2::from_shape_fn((used.len(), outputs), inner);
    Ok(DistinctRows::new(x.select(Axis(0), &used).view(), t.view(), &weights, &factors))
}

impl Sums<'_> {
    /// Calls `each` with F, [n, P], lambda and mean targets, [n, R], of every block in turn; `None` once it is too late for all.
    pub fn for_each_block(&self, mut each: impl FnMut(Array2<f64>, Vec<f64>, ArrayView2<f64>)) -> Result<Option<Totals>> {
        let (first, fill) = (usize::from(self.bias), self.kernel.at(self.centres.view()));
        let totals = self.rows.for_each(self.block, &mut |x, t, weights| {
            if self.interrupt.is_raised_by_hand() || self.interrupt.is_late() {
                return Err(Error::Interrupted);
            }
            let mut f = Array2::ones((x.nrows(), first + self.centres.nrows()));
            f.axis_chunks_iter_mut(Axis(0), TILE_ROWS)
                .into_par_iter()
                .zip(x.axis_chunks_iter(Axis(0), TILE_ROWS).into_par_iter())
                .for_each(|(mut f, x)| fill(x, f.slice_mut(s![.., first..])));
            linalg::solve_lower(self.lower.view(), f.slice_mut(s![.., first..]).reversed_axes());
            let diagonal = self.kernel.diagonal(x);
            let lambda = f.outer_iter().zip(&diagonal).zip(weights).map(|((f, diagonal), c)| {
                let phi = f.slice(s![first..]);
                self.ratio * (diagonal - phi.dot(&phi)).max(0.0) + 1.0 / c
            });
            let lambda = lambda.collect();
            each(f, lambda, t);
            Ok(())
        });
        match totals {
            Err(Error::Interrupted) if !self.interrupt.is_raised_by_hand() && self.interrupt.is_late() => Ok(None),
            totals => totals.map(Some),
        }
    }
}
