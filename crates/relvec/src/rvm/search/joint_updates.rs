//! Changes of many weights at once: growth by the columns of largest exact gain, deletion of the weights whose absence
//! gains most, and the refit that repeats joint updates of all precisions and deletions until neither gains.

use ndarray::Axis;

use crate::error::{Error, Result};
use crate::report::Actions;
use crate::rvm::data::noise::NoisePrecision;
use crate::rvm::evidence::active_factor::{Action, ActiveFactor};
use crate::rvm::evidence::active_posterior::{ActivePosterior, NoiseChoice, covariance};
use crate::rvm::evidence::column_gain::{ColumnFactors, Quality, by_noise};
use crate::rvm::evidence::precision_updates::{PrecisionUpdate, UpdateRule, without};
use crate::rvm::evidence::solver::EvidenceSolver;
use crate::rvm::settings::scheme::{Hyperpriors, Policy};

/// Adds up to `most` columns, each of which gains more than `least` nats in the quadratic form at the mode of `now`.
///
/// If no addition gains so much, it takes the best re-estimation or deletion instead. Returns the model and the actions
/// taken, or `None` if no action gains more than `least`.
///
/// # Errors
/// Returns the errors of [`EvidenceSolver::quadratic`] and [`EvidenceSolver::solve`].
pub(super) fn grow(
    solver: &EvidenceSolver,
    noise: &[NoisePrecision],
    policy: &Policy,
    now: &ActivePosterior,
    (least, most): (f64, usize),
) -> Result<Option<(ActivePosterior, Vec<Action>)>> {
    let mut factor = ActiveFactor::new(solver.quadratic(now)?, now, noise, solver.prior);
    let mut taken: Vec<Action> = factor.add_best(most, least, policy.share).into_iter().map(|(action, _)| action).collect();
    if taken.is_empty() {
        let Some((action, _)) = factor.best_action(least, &[], true) else { return Ok(None) };
        factor.apply(action);
        taken.push(action);
    }
    let mut order: Vec<usize> = (0..factor.active().len()).collect();
    order.sort_by_key(|i| factor.active()[*i]);
    let active: Vec<usize> = order.iter().map(|i| factor.active()[*i]).collect();
    let a: Vec<f64> = order.iter().map(|i| factor.precisions()[*i]).collect();
    let solution = solver.solve(&active, &a, noise, NoiseChoice::Best, Some(now))?;
    Ok(Some((solution, taken)))
}

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

/// Rise of the Laplace evidence in nats below which updates with a frozen Hessian are undone. Smaller rises are not
/// worth another search for the mode.
pub(crate) const LEAST_RISE: f64 = 1e-2;
/// Number of joint updates with a frozen Hessian from which weights are deleted.
const DELETE_FROM: usize = 4;
/// Largest number of modes in one refit.
const MODES: usize = 40;

/// Noise, constants and counts for joint updates.
pub(super) struct JointUpdates<'s> {
    pub noise: &'s [NoisePrecision],
    pub policy: &'s Policy,
    pub actions: &'s mut Actions,
}

impl JointUpdates<'_> {
    /// Updates the precisions of a model and prunes it, until neither raises the evidence.
    ///
    /// # Errors
    /// Returns the errors of [`EvidenceSolver::solve`].
    pub fn refit(&mut self, solver: &EvidenceSolver, now: &mut ActivePosterior) -> Result<()> {
        if solver.hessian_varies() {
            return self.refit_mode(solver, now);
        }
        loop {
            self.joint(solver, now, self.policy.rise, self.policy.steps)?;
            let Some(fewer) = delete(solver, self.noise, now)? else { return Ok(()) };
            self.actions.deleted += now.active.len() - fewer.active.len();
            *now = fewer;
        }
    }

    /// Makes up to `most` joint updates of all precisions, until one raises the log evidence by less than `rise` nats.
    ///
    /// # Errors
    /// Returns the errors of [`EvidenceSolver::solve`].
    pub fn joint(&mut self, solver: &EvidenceSolver, now: &mut ActivePosterior, rise: f64, most: usize) -> Result<()> {
        // Newton's step (M6) holds only for a constant Hessian of the negative log-likelihood.
        let rules: &[UpdateRule] = match solver.hessian_varies() {
            true => &[UpdateRule::Exact, UpdateRule::MacKay, UpdateRule::Em],
            false => &[UpdateRule::Newton, UpdateRule::Exact, UpdateRule::MacKay, UpdateRule::Em],
        };
        let (clip, prune_below) = (self.policy.clip, self.policy.prune_below);
        let update = PrecisionUpdate { rules, hyperpriors: Hyperpriors::FLAT, clip, prune_below };
        for _ in 0..most {
            let Some(step) = update.step(solver, self.noise, now)? else { break };
            let (before, value) = (now.active.len(), now.log_evidence);
            *now = step.solution;
            self.actions.joint += 1;
            self.actions.deleted += before - now.active.len();
            if now.log_evidence - value < rise && now.active.len() == before {
                break;
            }
        }
        Ok(())
    }

    /// Refits a model whose Hessian depends on the weights, by the quadratic form at the mode. A coupled posterior of
    /// several outputs is then refitted directly, because the quadratic form describes it only roughly.
    fn refit_mode(&mut self, solver: &EvidenceSolver, now: &mut ActivePosterior) -> Result<()> {
        loop {
            self.refit_frozen(solver, now)?;
            if !now.is_joint() {
                return Ok(());
            }
            let before = now.active.len();
            while let Some(fewer) = self.without_useless(solver, now)? {
                self.actions.deleted += now.active.len() - fewer.active.len();
                *now = fewer;
            }
            self.joint(solver, now, self.policy.rise, self.policy.steps)?;
            if now.active.len() == before {
                return Ok(());
            }
        }
    }

    /// Alternates between joint updates and deletions with the Hessian frozen at the mode, and the next mode. If the
    /// Laplace evidence has not risen, half as many updates are tried.
    fn refit_frozen(&mut self, solver: &EvidenceSolver, now: &mut ActivePosterior) -> Result<()> {
        let mut steps = self.policy.frozen_steps;
        for _ in 0..MODES {
            let form = solver.frozen(now)?;
            let all: Vec<usize> = (0..now.active.len()).collect();
            let start = form.solve(&all, &now.a, self.noise, NoiseChoice::Best, None)?;
            let risen = loop {
                if steps == 0 {
                    return Ok(());
                }
                let (mut inner, mut actions) = (start.clone(), Actions::default());
                let mut own = JointUpdates { actions: &mut actions, ..*self };
                own.joint(&form, &mut inner, self.policy.rise, steps)?;
                if steps >= DELETE_FROM
                    && let Some(fewer) = delete(&form, self.noise, &inner)?
                {
                    actions.deleted += inner.active.len() - fewer.active.len();
                    inner = fewer;
                }
                let active: Vec<usize> = inner.active.iter().map(|k| now.active[*k]).collect();
                match solver.solve(&active, &inner.a, self.noise, NoiseChoice::Best, Some(now)) {
                    Ok(next) if next.log_evidence > now.log_evidence + LEAST_RISE => {
                        self.actions.add(&actions);
                        break next;
                    }
                    Ok(_) | Err(Error::Singular { .. }) => steps /= 2,
                    Err(error) => return Err(error),
                }
            };
            *now = risen;
            steps = (2 * steps).min(self.policy.frozen_steps);
        }
        Ok(())
    }

    /// Returns the model without the weights whose best precision is infinite, or without the worse half of them, and
    /// so on. Returns `None` if the evidence falls in each case.
    fn without_useless(&self, solver: &EvidenceSolver, now: &ActivePosterior) -> Result<Option<ActivePosterior>> {
        let mut useless: Vec<usize> = (0..now.a.len()).filter(|i| now.is_useless(*i)).collect();
        useless.sort_by(|i, j| now.relevance_margin(*i).total_cmp(&now.relevance_margin(*j)));
        while !useless.is_empty() {
            let keep: Vec<usize> = (0..now.a.len()).filter(|i| !useless.contains(i)).collect();
            match without(solver, self.noise, now, &keep, NoiseChoice::Best) {
                Ok(next) if next.log_evidence >= now.log_evidence => return Ok(Some(next)),
                Ok(_) | Err(Error::Singular { .. }) => useless.truncate(useless.len() / 2),
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }
}
