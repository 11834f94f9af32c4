//! Refitting of a model: joint updates of all precisions until they converge, and deletion of weights whose absence
//! raises the evidence. Both are repeated until no weight is deleted.

use crate::error::{Error, Result};
use crate::report::Actions;
use crate::rvm::data::noise::NoisePrecision;
use crate::rvm::evidence::active_posterior::{ActivePosterior, NoiseChoice};
use crate::rvm::evidence::precision_updates::{MAX_HALVINGS, PrecisionUpdate, UpdateRule, without};
use crate::rvm::evidence::solver::EvidenceSolver;
use crate::rvm::search::delete::delete;
use crate::rvm::settings::scheme::Hyperpriors;
use crate::rvm::settings::search::Policy;

/// Rise of the Laplace evidence in nats below which updates with a frozen Hessian are undone. Smaller rises are not
/// worth another search for the mode.
const LEAST_RISE: f64 = 1e-2;
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
        let update = PrecisionUpdate { rules, hyperpriors: Hyperpriors::FLAT, clip, prune_below, halvings: MAX_HALVINGS };
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
