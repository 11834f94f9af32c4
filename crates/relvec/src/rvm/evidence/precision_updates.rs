//! Updates of all precisions at once, (M4) to (M6). EM, MacKay's fixed point and the joint updates of the search differ
//! only in their update rules.

use ndarray::{Array1, Axis};

use crate::error::Result;
use crate::linalg::Cholesky;
use crate::rvm::data::noise::{LEAST_PRECISION, NoisePrecision, typical};
use crate::rvm::evidence::active_posterior::{ActivePosterior, NoiseChoice, covariance};
use crate::rvm::evidence::solver::EvidenceSolver;
use crate::rvm::settings::scheme::Hyperpriors;

/// Well-determinedness gamma below which a change of the precision does not count, if weights may be pruned. Such weights
/// are pruned once all others have converged.
pub(crate) const UNDETERMINED: f64 = 1e-6;
/// Largest change of a log precision below which weights are pruned at once. After larger changes they are pruned with
/// the next update, which costs nothing extra; after smaller ones there may be no further update. The model that a search
/// starts from needs no smaller changes, and its last digits are left to the search.
pub(crate) const SMALL_CHANGE: f64 = 0.1;
/// Relative rounding of the log evidence.
const ROUNDING: f64 = 1e-11;
/// Largest number of times that an update is halved if it would lower the evidence.
const MAX_HALVINGS: usize = 8;
/// First shift of the diagonal of an indefinite Hessian, as a share of the mean of its diagonal.
const SHIFT: f64 = 1e-3;
/// Largest change of a log precision by [`UpdateRule::Exact`] below which Newton's method is tried.
const NEWTON_FROM: f64 = 1.0;
/// Largest change of a log precision by Newton's method for which it is taken.
const NEWTON_STEP: f64 = 3.0;

/// Update rules for the precisions, given a posterior.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UpdateRule {
    /// Newton's method in log alpha with the noise profiled out, (M6), if no step is long.
    Newton,
    /// Each alpha at its exact optimum with the others fixed.
    Exact,
    /// alpha = gamma / mu^2.
    MacKay,
    /// alpha = 1 / (mu^2 + Sigma_ii), which never lowers the evidence if the Hessian is constant.
    Em,
}

/// Update of all precisions with the first of `rules` that does not lower the evidence.
#[derive(Debug, Clone)]
pub(crate) struct PrecisionUpdate {
    pub rules: &'static [UpdateRule],
    /// Hyperpriors in original units.
    pub hyperpriors: Hyperpriors,
    /// Largest |d log alpha| in one update.
    pub clip: f64,
    /// Well-determinedness gamma below which a weight is pruned; 0 prunes none.
    pub prune_below: f64,
}

/// An update: the new posterior and the largest |d log precision|, which is infinite if weights were pruned.
pub(crate) struct Step {
    pub solution: ActivePosterior,
    pub change: f64,
}

impl PrecisionUpdate {
    /// Returns the log evidence plus the log hyperpriors of the weight precisions, without the penalty per kernel.
    pub fn objective(&self, solver: &EvidenceSolver, s: &ActivePosterior) -> f64 {
        let Hyperpriors { a, b, .. } = self.hyperpriors;
        if a == 0.0 && b == 0.0 {
            return solver.log_evidence(s);
        }
        let prior = |i: usize| {
            let alpha = s.a[i] * s.typical_precision() / solver.problem.alpha_in(s.active[i]);
            a * alpha.ln() - b * alpha
        };
        solver.log_evidence(s) + (0..s.a.len()).map(prior).sum::<f64>()
    }

    /// Returns the rate b of the hyperprior of a column in internal units.
    fn rate(&self, solver: &EvidenceSolver, column: usize) -> f64 {
        if self.hyperpriors.b == 0.0 { 0.0 } else { self.hyperpriors.b / solver.problem.alpha_in(column) }
    }

    /// Updates all precisions once. Returns `None` if no rule leads to a higher evidence.
    ///
    /// # Errors
    /// Returns the errors of [`EvidenceSolver::solve`] after weights were pruned. An update that cannot be solved
    /// counts as one that lowers the evidence.
    pub fn step(&self, solver: &EvidenceSolver, noise: &[NoisePrecision], now: &ActivePosterior) -> Result<Option<Step>> {
        let value = self.objective(solver, now);
        let floor = floor(value);
        let least = |j: usize| if j == 0 && solver.problem.has_bias { 0.0 } else { LEAST_PRECISION };
        let stays = |i: &usize| now.determined(*i) >= self.prune_below;
        let keep: Vec<usize> = (0..now.a.len()).filter(stays).collect();
        let mut shortest: Option<(Vec<f64>, Vec<f64>, f64)> = None;
        for rule in self.rules {
            let Some((alpha, beta)) = self.propose(solver, noise, now, *rule) else { continue };
            let at = if *rule == UpdateRule::Newton { NoiseChoice::Best } else { NoiseChoice::Precision(&beta) };
            let unit = typical(&beta);
            let a: Vec<f64> = alpha.iter().zip(&now.active).map(|(x, j)| (x / unit).max(least(*j))).collect();
            if keep.len() < now.a.len() {
                let active: Vec<usize> = keep.iter().map(|i| now.active[*i]).collect();
                let a: Vec<f64> = keep.iter().map(|i| a[*i]).collect();
                if let Ok(next) = solver.solve(&active, &a, noise, at, Some(now))
                    && self.objective(solver, &next) >= floor
                {
                    return Ok(Some(Step { solution: next, change: f64::INFINITY }));
                }
            }
            let next = solver.solve(&now.active, &a, noise, at, Some(now));
            let rise = next.as_ref().map_or(f64::NEG_INFINITY, |next| self.objective(solver, next) - value);
            if let Ok(next) = next
                && value + rise >= floor
            {
                return Ok(Some(self.finish(solver, noise, now, next)?));
            }
            shortest = Some((alpha, beta, rise));
        }
        // All rules overshoot, which is possible if the Hessian is not constant: the last update is shortened.
        let Some((mut alpha, mut beta, mut last)) = shortest else { return Ok(None) };
        for _ in 0..MAX_HALVINGS {
            beta.iter_mut().zip(&now.beta).for_each(|(beta, now)| *beta = (*beta * now).sqrt());
            let (unit, before) = (typical(&beta), now.typical_precision());
            alpha.iter_mut().zip(&now.a).for_each(|(x, a)| *x = (*x * a * before).sqrt());
            let a: Vec<f64> = alpha.iter().zip(&now.active).map(|(x, j)| (x / unit).max(least(*j))).collect();
            let Ok(next) = solver.solve(&now.active, &a, noise, NoiseChoice::Precision(&beta), Some(now)) else { continue };
            let rise = self.objective(solver, &next) - value;
            if value + rise > floor {
                return Ok(Some(self.finish(solver, noise, now, next)?));
            }
            // If the Hessian depends on the weights, the rules ignore part of the gradient, and no step may help. A
            // parabola through the last two values has no rise at shorter steps.
            if solver.hessian_varies() && 4.0 * rise <= last {
                break;
            }
            last = rise;
        }
        Ok(None)
    }

    /// Returns the update to `next`, with its change over the weights that the data determine. After a small change it
    /// prunes weights.
    fn finish(
        &self,
        solver: &EvidenceSolver,
        noise: &[NoisePrecision],
        before: &ActivePosterior,
        next: ActivePosterior,
    ) -> Result<Step> {
        let log_ratio = |a: f64, b: f64| (a.ln() - b.ln()).abs();
        let noises = next.beta.iter().zip(&before.beta).map(|(next, before)| log_ratio(*next, *before));
        let (unit, unit_before) = (next.typical_precision(), before.typical_precision());
        let change = (0..next.a.len())
            .filter(|i| self.prune_below == 0.0 || next.determined(*i) >= UNDETERMINED)
            .map(|i| log_ratio(next.a[i] * unit, before.a[i] * unit_before))
            .chain(noises)
            .fold(0.0, f64::max);
        if change >= SMALL_CHANGE {
            return Ok(Step { solution: next, change });
        }
        let (solution, pruned) = self.prune(solver, noise, next)?;
        Ok(Step { solution, change: if pruned { f64::INFINITY } else { change } })
    }

    /// Prunes the weights whose gamma is below `prune_below`, if the evidence does not fall. Returns the posterior, and
    /// true if weights were pruned.
    ///
    /// # Errors
    /// Returns the errors of [`EvidenceSolver::solve`].
    pub fn prune(
        &self,
        solver: &EvidenceSolver,
        noise: &[NoisePrecision],
        now: ActivePosterior,
    ) -> Result<(ActivePosterior, bool)> {
        let keep: Vec<usize> = (0..now.a.len()).filter(|i| now.determined(*i) >= self.prune_below).collect();
        if keep.len() == now.a.len() {
            return Ok((now, false));
        }
        let smaller = without(solver, noise, &now, &keep, NoiseChoice::Precision(&now.beta))?;
        if self.objective(solver, &smaller) >= floor(self.objective(solver, &now)) {
            return Ok((smaller, true));
        }
        Ok((now, false))
    }

    /// Returns the precisions by a rule: absolute weight precisions, `[M]`, and noise precisions. For several noises
    /// the weight precisions are those at their typical precision. Returns `None` if the rule does not apply.
    fn propose(
        &self,
        solver: &EvidenceSolver,
        noise: &[NoisePrecision],
        now: &ActivePosterior,
        rule: UpdateRule,
    ) -> Option<(Vec<f64>, Vec<f64>)> {
        let m = now.a.len();
        let gamma: Vec<f64> = (0..m).map(|i| now.determined(i)).collect();
        let unit = now.typical_precision();
        let alpha = |i: usize| now.a[i] * unit;
        let sigma = |i: usize| now.variance[i] / unit;
        let square = |i: usize| now.square(i);
        // The weights of all outputs share a precision.
        let copies = now.outputs as f64;
        // A smaller gamma is rounding, and the best precision of such a weight is not known.
        let known = |i: usize| gamma[i] > 1e-15;
        let exact = |i: usize| {
            let denominator = copies * square(i) - gamma[i] * sigma(i);
            if denominator > 0.0 && known(i) { (gamma[i].powi(2) / denominator / alpha(i)).ln() } else { self.clip }
        };
        let count = solver.problem.training.count;
        // If several outputs share a weight precision, gamma is divided among them in proportion to beta mu^2.
        let share = |i: usize, k: usize| match noise.len() {
            1 => 1.0,
            _ => now.beta[k] * now.mean[k * m + i].powi(2) / now.relative_square(i).max(f64::MIN_POSITIVE),
        };
        let of_noise = |(k, ((noise, rss), beta)): (usize, ((&NoisePrecision, f64), &f64))| match *noise {
            NoisePrecision::Fixed(beta) => beta,
            NoisePrecision::Learned { cap, c, d } => {
                let total: f64 = (0..m).map(|i| gamma[i] * share(i, k)).sum();
                let learned = match rule {
                    UpdateRule::Em => (count + 2.0 * c) / (rss + total / beta + 2.0 * d),
                    _ => noise_precision(count, total, rss, (c, d)),
                };
                learned.min(cap)
            }
        };
        let beta = noise.iter().zip(now.residuals(count)).zip(&now.beta).enumerate().map(of_noise).collect();
        let a = self.hyperpriors.a;
        let new: Vec<f64> = match rule {
            UpdateRule::Newton => {
                let all: Vec<usize> = (0..m).collect();
                if all.iter().any(|i| exact(*i).abs() >= NEWTON_FROM) {
                    return None;
                }
                // The precisions remain relative to the old noise. Then the noise moves to its optimum.
                let step = newton(now, noise, solver.problem.training.count)?;
                let short = step.iter().all(|p| p.abs() < NEWTON_STEP);
                return short.then(|| (all.iter().map(|i| alpha(*i) * step[*i].exp()).collect(), now.beta.clone()));
            }
            UpdateRule::Exact => (0..m).map(|i| alpha(i) * exact(i).clamp(-self.clip, self.clip).exp()).collect(),
            UpdateRule::MacKay => (0..m)
                .map(|i| {
                    if !known(i) && a == 0.0 {
                        return alpha(i);
                    }
                    let target = weight_precision(gamma[i], square(i), (a, self.rate(solver, now.active[i])));
                    alpha(i) * (target / alpha(i)).ln().clamp(-self.clip, self.clip).exp()
                })
                .collect(),
            UpdateRule::Em => {
                let update = |i: usize| (copies + 2.0 * a) / (square(i) + sigma(i) + 2.0 * self.rate(solver, now.active[i]));
                (0..m).map(update).collect()
            }
        };
        Some((new, beta))
    }
}

/// Returns the value, less its rounding, below which the log evidence has fallen.
fn floor(value: f64) -> f64 {
    value - ROUNDING * value.abs().max(1.0)
}

/// Returns alpha_i = gamma_i / mu_i^2, Tipping (1999), eq. 8, (M5). Under the hyperprior Gamma(a, b) it is
/// (gamma_i + 2 a) / (mu_i^2 + 2 b).
fn weight_precision(gamma: f64, square: f64, (a, b): (f64, f64)) -> f64 {
    (gamma + 2.0 * a).max(1e-300) / (square + 2.0 * b).max(1e-300)
}

/// Returns 1 / sigma^2 = (N - sum_i gamma_i) / |t - Phi mu|^2, Tipping (1999), eq. 9, (M5). Under the hyperprior
/// Gamma(c, d) it is (N - sum_i gamma_i + 2 c) / (|t - Phi mu|^2 + 2 d).
fn noise_precision(count: f64, determined: f64, residual: f64, (c, d): (f64, f64)) -> f64 {
    (count - determined + 2.0 * c).max(1e-6 * count) / (residual + 2.0 * d)
}

/// Returns Newton's step in log a, `[M]`, with the noise profiled out, (M6). Returns `None` if the negative Hessian is
/// not positive definite even after shifts of its diagonal.
fn newton(now: &ActivePosterior, noise: &[NoisePrecision], count: f64) -> Option<Vec<f64>> {
    let m = now.a.len();
    if m == 0 {
        return None;
    }
    let a = &now.a;
    // -d beta / d E of the profiled noise precision; 0 if it is fixed.
    let follow = |noise: &NoisePrecision, beta: f64, energy: f64| match *noise {
        NoisePrecision::Learned { cap, d, .. } if noise.precision(energy, count) < cap => beta / (energy + 2.0 * d),
        _ => 0.0,
    };
    let of_output = |(k, mu)| {
        let k: usize = noise.len().min(k + 1) - 1;
        (now.beta[k], follow(&noise[k], now.beta[k], now.energy[k]), mu)
    };
    let outputs: Vec<(f64, f64, &[f64])> = now.mean.chunks_exact(m).enumerate().map(of_output).collect();
    let mut h = covariance(&now.inverse);
    for (i, mut row) in h.outer_iter_mut().enumerate() {
        for (j, h) in row.iter_mut().enumerate() {
            let s = *h;
            let of_output = |(beta, follow, mu): &(f64, f64, &[f64])| {
                let both = mu[i] * mu[j];
                s * s + 2.0 * beta * both * s + follow * both * both
            };
            *h = -0.5 * a[i] * a[j] * outputs.iter().map(of_output).sum::<f64>();
        }
        row[i] += 0.5 * a[i] * (now.variance[i] + now.relative_square(i));
    }
    let size = h.diag().iter().map(|v| v.abs()).sum::<f64>() / m as f64;
    let gradient: Array1<f64> = (0..m).map(|i| now.gradient(i)).collect();
    let mut shift = 0.0;
    for _ in 0..6 {
        let shifted = || {
            let mut shifted = h.clone();
            shifted.diag_mut().map_inplace(|v| *v += shift);
            shifted
        };
        if let Ok(factor) = Cholesky::of(m, 0.0, shifted) {
            let mut step = gradient.clone().insert_axis(Axis(1));
            factor.solve(step.view_mut());
            return Some(step.remove_axis(Axis(1)).to_vec());
        }
        shift = (4.0 * shift).max(SHIFT * size);
    }
    None
}

/// Returns the posterior of the slots `keep` of the active set alone, at their relative precisions.
///
/// # Errors
/// Returns the errors of [`EvidenceSolver::solve`].
pub(crate) fn without(
    solver: &EvidenceSolver,
    noise: &[NoisePrecision],
    now: &ActivePosterior,
    keep: &[usize],
    at: NoiseChoice,
) -> Result<ActivePosterior> {
    let active: Vec<usize> = keep.iter().map(|i| now.active[*i]).collect();
    let a: Vec<f64> = keep.iter().map(|i| now.a[*i]).collect();
    solver.solve(&active, &a, noise, at, Some(now))
}
