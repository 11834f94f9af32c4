//! Greedy deletion: prunes the weight whose deletion gains most, repeatedly. Each gain is exact, conditional on the
//! weights pruned before it.

use ndarray::Axis;

use crate::error::{Error, Result};
use crate::rvm::data::noise::NoisePrecision;
use crate::rvm::evidence::active_posterior::{ActivePosterior, NoiseChoice, covariance};
use crate::rvm::evidence::column_gain::{ColumnFactors, Quality, by_noise};
use crate::rvm::evidence::precision_updates::without;
use crate::rvm::evidence::solver::EvidenceSolver;

/// Gain in nats that a deletion must exceed. Smaller gains are rounding.
const LEAST_GAIN: f64 = 1e-6;

/// Prunes the weights whose deletion raises the evidence of `form`, whose Hessian must be constant. Returns `None` if
/// there are none, or if the evidence does not rise without them.
///
/// With d = Sigma_ii, the deletion of weight i leads to Sigma - Sigma_:i Sigma_i: / d, mu - Sigma_:i mu_i / d, and
/// E + mu_i^2 / d, (M11).
///
/// # Errors
/// Returns the errors of [`EvidenceSolver::solve`], except that models that cannot be factorised are skipped.
pub(super) fn delete(form: &EvidenceSolver, noise: &[NoisePrecision], now: &ActivePosterior) -> Result<Option<ActivePosterior>> {
    let (m, outputs, count) = (now.active.len(), now.outputs, form.problem.training.count);
    let mut sigma = covariance(&now.inverse);
    let mut mean: Vec<Vec<f64>> = (0..outputs).map(|k| now.mean[k * m..(k + 1) * m].to_vec()).collect();
    let mut energy = now.energy.clone();
    let mut left: Vec<usize> = (0..m).collect();
    let copies = (outputs / noise.len()) as f64;
    while !left.is_empty() {
        let profiles: Vec<_> = noise.iter().zip(&energy).map(|(noise, e)| noise.profile(*e, count, copies)).collect();
        let gain = |i: usize| {
            let d = sigma[[i, i]];
            let seen = |k: usize, mean: f64| Quality { q: mean / d, energy: energy[k] + mean * mean / d };
            let s = (1.0 - now.a[i] * d).max(1e-15) / d;
            let one = ColumnFactors { s, seen: by_noise(noise.len(), outputs, |k| mean[k][i], seen) };
            form.prior.cost(now.active[i]) - one.contribution(now.a[i], &profiles)
        };
        let gains: Vec<f64> = left.iter().map(|i| gain(*i)).collect();
        let best = (0..left.len()).max_by(|i, j| gains[*i].total_cmp(&gains[*j])).expect("some are left");
        if !(gains[best] > LEAST_GAIN) {
            break;
        }
        let i = left.swap_remove(best);
        let (row, d) = (sigma.index_axis(Axis(0), i).to_owned(), sigma[[i, i]]);
        for (k, mean) in mean.iter_mut().enumerate() {
            let own = mean[i];
            energy[k.min(noise.len() - 1)] += own * own / d;
            mean.iter_mut().zip(&row).for_each(|(mean, s)| *mean -= s * own / d);
        }
        for (mut other, s) in sigma.outer_iter_mut().zip(&row) {
            other.scaled_add(-s / d, &row);
        }
    }
    if left.len() == m {
        return Ok(None);
    }
    left.sort_unstable();
    match without(form, noise, now, &left, NoiseChoice::Best) {
        Ok(next) => Ok(Some(next).filter(|next| next.log_evidence > now.log_evidence)),
        Err(Error::Singular { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}
