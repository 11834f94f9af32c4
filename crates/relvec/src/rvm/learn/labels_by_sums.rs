//! The classifier of a large training set by regression on labels, (M87). The means are computed from sums over all
//! rows, and a few centres represent the probabilities.

use ndarray::{Axis, concatenate, s};

use super::all_rows::AllRows;
use super::kernel::STRUCTURE;
use super::label_model::{Found, Regression};
use super::label_rows::Labels;
use super::label_sums::RatioFit;
use super::merged_rows::MOST_ROWS;
use super::pivoted_cholesky::{Pivots, Points};
use super::query::sums::RatioSums;
use super::{label_sums, process_by_sums};
use crate::error::{Error, Result};
use crate::linalg;
use crate::linalg::Cholesky;
use crate::rvm::data::training_set::{Learned, TrainingSet};
use crate::rvm::settings::dictionary::Landmarks;
use crate::rvm::settings::rvm::Rvm;

impl Rvm {
    /// Returns link, centres and weights for the labels of a large training set; `None` if there is no time or memory
    /// for all rows.
    pub(super) fn regress_many(&self, training: &TrainingSet, learned: &Learned) -> Result<Option<Found>> {
        let n = training.rows.nrows();
        let bytes = 8 * (n * (training.rows.ncols() + training.outputs + 1)) as u64;
        if training.interrupt.is_late() || training.taken + bytes > training.memory_limit {
            return Ok(None);
        }
        let all = Labels::of(training, &(0..n).collect::<Vec<_>>());
        self.regress_rows(training, &AllRows::Held(&all.rows), learned)
    }

    /// Returns link, centres and weights for the labels of `rows`, of which `training` contains all or a sample; `None`
    /// if there is no time for all rows.
    pub(super) fn regress_rows(&self, training: &TrainingSet, rows: &AllRows, learned: &Learned) -> Result<Option<Found>> {
        if training.interrupt.is_late() {
            return Ok(None);
        }
        let (n, kernel) = (training.rows.nrows(), &learned.kernel);
        let labels = Labels::of(training, &Landmarks::any(n, MOST_ROWS, self.seed.wrapping_add(2)));
        let drawn = self.drawn(training, labels.rows.len(), 1);
        let points =
            Points { x: concatenate![Axis(0), labels.rows.x, process_by_sums::at(training, &drawn)], first: labels.rows.len() };
        let interrupt = &training.interrupt;
        let found = label_sums::regression(&labels, rows, &points, kernel, learned.hyper.log_amplitude, interrupt)?;
        let Some((pivots, point)) = found else { return Ok(None) };
        if point.log_posterior - labels.null < STRUCTURE {
            return Ok(Some(Found::nothing(training)));
        }
        let scores = linalg::times(pivots.features().t(), point.weights.slice(s![1.., ..]));
        let RatioFit { log_ratio, value, theta, means, count, .. } = point;
        // The log probability of the left-out rows is scaled to the weight of all rows.
        let value = value * count / labels.rows.count;
        let weights = |pivots: &Pivots| {
            let sums = label_sums::sums_at(pivots, rows, &points, kernel, interrupt)?;
            let (RatioSums { mut gram, mut right, .. }, _) = sums.ok_or(Error::Interrupted)?;
            gram.diag_mut().slice_mut(s![1..]).mapv_inplace(|v| v + (-log_ratio).exp());
            Cholesky::new(gram, 0.0)?.solve(right.view_mut());
            Ok(right)
        };
        let origin = drawn.iter().map(|candidate| training.origin[*candidate]).collect();
        let regression = Regression { labels: &labels, value, theta, means, points: points.clone(), origin, scores, log_ratio };
        match regression.carried(self, training, kernel, weights) {
            Err(Error::Interrupted) if !training.interrupt.is_raised_by_hand() => Ok(None),
            found => Ok(Some(found?.unwrap_or_else(|| Found::nothing(training)))),
        }
    }
}
