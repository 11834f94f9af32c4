//! What a model says beside predictions.

use ndarray::{Array1, Array2, ArrayView2};

use super::{Draws, LeaveOneOut, Model, draws, leave_one_out};
use crate::error::Result;
use crate::targets::Targets;

/// What a [`Model`] says beside predictions: functions drawn from its posterior, the joint covariance of predictions, and its
/// training rows left out.
pub trait FittedModel {
    /// Draws `count` functions; with `noise` each value at a row also has noise of its own. The covariance of the draws
    /// is that of [`FittedModel::predict_covariance`]. The noise is Student-t under the likelihood `student_t` alone: under
    /// `gaussian` it is normal whatever the scheme, also where [`Posterior::noise_degrees`](crate::Posterior::noise_degrees)
    /// is known.
    ///
    /// # Errors
    /// A classifier, a support vector machine; more functions than a quarter of the machine's memory holds.
    fn draws(&self, count: usize, seed: u64, noise: bool) -> Result<Draws<'_>>;

    /// Means and the joint covariance of the targets at the rows of `x`, [N, N]: the covariance of the function, and on
    /// the diagonal the noise variance as well, both in squared units of the target; by the variance of the posterior,
    /// whatever that of the model.
    ///
    /// # Errors
    /// As [`Model::predict`]; a classifier; Student-t noise of 2 degrees of freedom or fewer, whose variance is infinite;
    /// more rows than `memory_limit` bytes (`None`: a quarter of the machine's) allow.
    fn predict_covariance(&self, x: ArrayView2<f64>, memory_limit: Option<u64>) -> Result<(Array1<f64>, Array2<f64>)>;

    /// Leaves out each of the rows `x`, [N, D], that the model was trained on, with its targets (and sample weights: all
    /// repetitions of a row go at once) and what else was given of it, noise or exposure; by the variance of the
    /// posterior, whatever that of the model. Some of the rows will do: each is left out by itself. Under a process prior, of
    /// which amplitude and noise are held, rows of equal inputs have to come together.
    ///
    /// # Errors
    /// As [`Model::predict`]; targets that do not suit the model; several models of two classes; classes under a process prior.
    fn leave_one_out(&self, x: ArrayView2<f64>, targets: &Targets) -> Result<LeaveOneOut>;
}

impl FittedModel for Model {
    fn draws(&self, count: usize, seed: u64, noise: bool) -> Result<Draws<'_>> {
        draws::draws(self, count, seed, noise)
    }

    fn predict_covariance(&self, x: ArrayView2<f64>, memory_limit: Option<u64>) -> Result<(Array1<f64>, Array2<f64>)> {
        draws::predict_covariance(self, x, memory_limit)
    }

    fn leave_one_out(&self, x: ArrayView2<f64>, targets: &Targets) -> Result<LeaveOneOut> {
        leave_one_out::leave_one_out(self, x, targets)
    }
}
