//! The classifier of a large table by regression on labels, (M87): means by sums over all rows, and few centres that carry the
//! probabilities.

use ndarray::{Array2, Axis, concatenate, s};

use super::all_rows::AllRows;
use super::choice;
use super::kernel::{STRUCTURE, log_normal};
use super::label_model::{Found, Regression};
use super::label_rows::Labels;
use super::label_sums::{Many, Point, add, left};
use super::many::{self, BLOCK_ROWS, Sums};
use super::pivots::Pivots;
use super::process::Points;
use crate::error::{Error, Result};
use crate::linalg::{self, Cholesky};
use crate::rvm::data::table::{Learnt, Table};
use crate::rvm::settings::dictionary::Landmarks;
use crate::rvm::settings::rvm::Rvm;

impl Rvm {
    /// Link, centres and weights for the labels of a large table; `None` where there is no time or memory for all rows.
    pub(super) fn regress_many(&self, table: &Table, learnt: &Learnt) -> Result<Option<Found>> {
        let (n, kernel) = (table.rows.nrows(), &learnt.kernel);
        let bytes = 8 * (n * (table.rows.ncols() + table.outputs + 1)) as u64;
        if table.interrupt.is_late() || table.taken + bytes > table.memory_limit {
            return Ok(None);
        }
        let all = Labels::of(table, &(0..n).collect::<Vec<_>>());
        let rows = AllRows::Held(&all.rows);
        let labels = Labels::of(table, &Landmarks::any(n, choice::MOST_ROWS, self.seed.wrapping_add(2)));
        let drawn = self.drawn(table, labels.rows.len());
        let points = Points { x: concatenate![Axis(0), labels.rows.x, many::at(table, &drawn)], first: labels.rows.len() };
        let mut pivots = Pivots::new(kernel, points.x.view())?;
        let among: Vec<usize> = (points.first..points.x.nrows()).collect();
        let enough = |pivots: &Pivots| left(pivots, learnt.hyper.log_amplitude, &labels.rows.weights);
        pivots.complete(&[], &among, drawn.len(), enough, &table.interrupt)?;
        let sums_at = |pivots: &Pivots| {
            let (centres, lower) = (points.x.select(Axis(0), pivots.centres()), pivots.factor());
            let sums = Sums {
                rows: &rows,
                kernel,
                centres,
                lower,
                bias: true,
                ratio: 0.0,
                block: BLOCK_ROWS,
                interrupt: &table.interrupt,
            };
            let (m, classes) = (1 + pivots.centres().len(), labels.classes());
            let (mut gram, mut right) = (Array2::zeros((m, m)), Array2::zeros((m, classes)));
            let whole = sums.for_each_block(|f, lambda, t| add(f, &lambda, t, &mut gram, &mut right))?;
            linalg::mirror(&mut gram);
            Ok::<_, Error>(whole.map(|_| (gram, right)))
        };
        let Some((gram, right)) = sums_at(&pivots)? else { return Ok(None) };
        let at_rows = pivots.features().slice_move(s![.., ..points.first]);
        let many = Many::new(&labels, kernel, at_rows, gram, right);
        let Some(point) = many.best(learnt.hyper.log_amplitude)? else { return Ok(None) };
        if point.value + log_normal(point.log_ratio, many.prior).0 - labels.null < STRUCTURE {
            return Ok(Some(Found::nothing(table)));
        }
        let scores = linalg::times(pivots.features().t(), point.weights.slice(s![1.., ..]));
        let Point { log_ratio, value, theta, means, .. } = point;
        let weights = |pivots: &Pivots| {
            let (mut gram, mut right) = sums_at(pivots)?.ok_or(Error::Interrupted)?;
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
