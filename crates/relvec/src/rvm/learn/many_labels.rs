//! The classifier of a large table by regression on labels, (M87): means by sums over all rows, and few centres that carry the
//! probabilities.

use ndarray::{Axis, concatenate, s};

use super::all_rows::AllRows;
use super::kernel::STRUCTURE;
use super::label_model::{Found, Regression};
use super::label_rows::Labels;
use super::label_sums::{self, Point};
use super::many;
use super::pivots::{Pivots, Points};
use super::query::sums::RatioSums;
use super::rows::MOST_ROWS;
use crate::error::{Error, Result};
use crate::linalg::{self, Cholesky};
use crate::rvm::data::table::{Learnt, Table};
use crate::rvm::settings::dictionary::Landmarks;
use crate::rvm::settings::rvm::Rvm;

impl Rvm {
    /// Link, centres and weights for the labels of a large table; `None` where there is no time or memory for all rows.
    pub(super) fn regress_many(&self, table: &Table, learnt: &Learnt) -> Result<Option<Found>> {
        let n = table.rows.nrows();
        let bytes = 8 * (n * (table.rows.ncols() + table.outputs + 1)) as u64;
        if table.interrupt.is_late() || table.taken + bytes > table.memory_limit {
            return Ok(None);
        }
        let all = Labels::of(table, &(0..n).collect::<Vec<_>>());
        self.regress_rows(table, &AllRows::Held(&all.rows), learnt)
    }

    /// Link, centres and weights for the labels of `rows`, of which `table` holds all or a sample; `None` where there is no time for
    /// all rows.
    pub(super) fn regress_rows(&self, table: &Table, rows: &AllRows, learnt: &Learnt) -> Result<Option<Found>> {
        if table.interrupt.is_late() {
            return Ok(None);
        }
        let (n, kernel) = (table.rows.nrows(), &learnt.kernel);
        let labels = Labels::of(table, &Landmarks::any(n, MOST_ROWS, self.seed.wrapping_add(2)));
        let drawn = self.drawn(table, labels.rows.len(), 1);
        let points = Points { x: concatenate![Axis(0), labels.rows.x, many::at(table, &drawn)], first: labels.rows.len() };
        let interrupt = &table.interrupt;
        let found = label_sums::regression(&labels, rows, &points, kernel, learnt.hyper.log_amplitude, interrupt)?;
        let Some((pivots, point)) = found else { return Ok(None) };
        if point.log_posterior - labels.null < STRUCTURE {
            return Ok(Some(Found::nothing(table)));
        }
        let scores = linalg::times(pivots.features().t(), point.weights.slice(s![1.., ..]));
        let Point { log_ratio, value, theta, means, count, .. } = point;
        // Of all rows, as far as those that were left out tell.
        let value = value * count / labels.rows.count;
        let weights = |pivots: &Pivots| {
            let sums = label_sums::sums_at(pivots, rows, &points, kernel, interrupt)?;
            let (RatioSums { mut gram, mut right, .. }, _) = sums.ok_or(Error::Interrupted)?;
            gram.diag_mut().slice_mut(s![1..]).mapv_inplace(|v| v + (-log_ratio).exp());
            Cholesky::new(gram, 0.0)?.solve(right.view_mut());
            Ok(right)
        };
        let origin = drawn.iter().map(|place| table.origin[*place]).collect();
        let regression = Regression { labels: &labels, value, theta, means, points: points.clone(), origin, scores, log_ratio };
        match regression.carried(self, table, kernel, weights) {
            Err(Error::Interrupted) if !table.interrupt.is_raised_by_hand() => Ok(None),
            found => Ok(Some(found?.unwrap_or_else(|| Found::nothing(table)))),
        }
    }
}
