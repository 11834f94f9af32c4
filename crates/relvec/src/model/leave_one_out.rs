//! What a model would predict of each of its training rows had it not seen that row, its precisions held.

use ndarray::{Array1, ArrayView2};

use super::{Model, Moderation, Prediction, Variance};
use crate::error::{Error, Result};
use crate::likelihood::{Likelihood, Working};
use crate::targets::Targets;

/// At most this share of the precision at a row is its own: what is left must be positive.
const MOST_OWN: f64 = 1.0 - 1e-9;

/// Predictions of rows left out one at a time: exact for Gaussian noise, by the cavity of Laplace's approximation
/// otherwise, (M60).
///
/// They hold given the precisions, and these have seen all rows: of a model that keeps many kernels for its rows they
/// are far too hopeful. Cross-validation, which repeats the search, is not: see [`Rvm::cv`](crate::Rvm::cv).
#[derive(Debug, Clone, PartialEq)]
pub struct LeaveOneOut {
    /// Predictions without the row, of the target; of a classifier those of the latent function.
    pub prediction: Prediction,
    /// Log density of each row's target, or log probability of its class, without the row, `[N]`, in nats.
    pub log_density: Array1<f64>,
}

impl Model {
    /// Leaves out each of the rows `x`, [N, D], that the model was trained on, with its targets (and sample weights: all
    /// repetitions of a row go at once); by the variance of the posterior, whatever that of the model. Some of the rows
    /// will do: each is left out by itself.
    ///
    /// # Errors
    /// As [`Model::predict`]; targets that do not suit the model.
    pub fn leave_one_out(&self, x: ArrayView2<f64>, targets: &Targets) -> Result<LeaveOneOut> {
        self.check_single()?;
        targets.check_rows(x)?;
        let own = self.likelihood.as_ref().ok_or(Error::NoPosterior)?;
        let known = self.noise_variance() == Some(0.0);
        if known || !matches!(own, Likelihood::Gaussian(_) | Likelihood::Bernoulli(_)) {
            let what = if known { "noise given row by row" } else { own.name() };
            return Err(Error::Targets(format!("leaving out rows: for Gaussian noise and two classes, not {what}")));
        }
        let likelihood = own.as_dyn();
        let y = likelihood.targets(targets.values)?;
        let weights = targets.checked_weights()?.unwrap_or_else(|| vec![1.0; y.len()]);
        let noise = self.noise_variance();
        let factor = self.variance_factor();
        let found = self.predict_with(x, Variance::Posterior)?;
        // In units of the noise deviation, where there is noise.
        let beta = noise.map_or(1.0, |v| 1.0 / v);
        let f = found.mean.as_slice().expect("fresh arrays are contiguous");
        let Working { residual, curvature, .. } = likelihood.working(&y, f);
        let (mut mean, mut variance) = (found.mean.clone(), found.model_variance.clone() / factor);
        for n in 0..y.len() {
            let own = beta * weights[n] * curvature[n];
            variance[n] /= 1.0 - (own * variance[n]).min(MOST_OWN);
            mean[n] -= variance[n] * beta * weights[n] * residual[n];
        }
        let prediction = Prediction { mean, model_variance: variance * factor, ..found };
        let log_density = match noise {
            Some(_) => prediction.log_density(Array1::from_vec(y).view()),
            None => {
                let odds = prediction.log_odds(Moderation::Posterior);
                odds.iter().zip(&y).map(|(f, y)| -(if *y > 0.5 { -f } else { *f }).exp().ln_1p()).collect()
            }
        };
        Ok(LeaveOneOut { prediction, log_density })
    }
}
