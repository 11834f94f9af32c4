//! Functions of a model besides predictions.

use ndarray::{Array1, Array2, ArrayView2};

use super::{Draws, LeaveOneOut, Model, draws, leave_one_out};
use crate::error::Result;
use crate::targets::Targets;

/// Functions of a [`Model`] besides predictions: draws from its posterior, the joint covariance of predictions, and
/// training rows that are left out.
pub trait FittedModel {
    /// Draws `count` functions. With `noise`, independent noise is added to each value at a row. The covariance of the
    /// draws is that of [`FittedModel::predict_covariance`]. The noise is Student-t for the likelihood `student_t`
    /// only. For `gaussian` it is normal under any scheme, also if
    /// [`Posterior::noise_degrees`](crate::Posterior::noise_degrees) is present.
    ///
    /// # Errors
    /// Returns an error for a classifier, for a support vector machine, and for functions that take more than a quarter
    /// of the machine's memory.
    fn draws(&self, count: usize, seed: u64, noise: bool) -> Result<Draws<'_>>;

    /// Returns the means, `[N]`, and the joint covariance, [N, N], of the targets at the rows of `x`, [N, D]. The
    /// covariance is that of the function, with the noise variance added on the diagonal, in squared units of the
    /// target. It uses the posterior variance, whatever the kind of variance of the model.
    ///
    /// # Errors
    /// Returns the errors of [`Model::predict`], and an error for a classifier. Student-t noise with 2 degrees of
    /// freedom or fewer is refused, because its variance is infinite. Returns [`Error::Memory`](crate::Error::Memory)
    /// for more rows than `memory_limit` bytes (`None`: a quarter of the machine's memory) allow.
    fn predict_covariance(&self, x: ArrayView2<f64>, memory_limit: Option<u64>) -> Result<(Array1<f64>, Array2<f64>)>;

    /// Predicts each of the training rows `x`, [N, D], without that row. `targets` contains their targets, sample
    /// weights, and noise variances or exposures. All repetitions of a row are left out together. It uses the posterior
    /// variance, whatever the kind of variance of the model. `x` may contain some of the training rows only, because
    /// each is left out separately. Under a process prior, amplitude and noise are fixed, and rows of equal inputs must
    /// be given together.
    ///
    /// # Errors
    /// Returns the errors of [`Model::predict`], and an error for targets that do not suit the model. A committee of
    /// binary models and classes under a process prior are refused.
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
