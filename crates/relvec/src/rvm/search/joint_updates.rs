//! Settling: all precisions move together until they rest, then what gains by leaving leaves; in turn, until nothing does.

use crate::error::{Error, Result};
use crate::report::Actions;
use crate::rvm::data::noise::NoisePrecision;
use crate::rvm::evidence::active_posterior::{ActivePosterior, NoiseChoice};
use crate::rvm::evidence::precision_updates::{MAX_HALVINGS, PrecisionUpdate, UpdateRule, without};
use crate::rvm::evidence::solver::EvidenceSolver;
use crate::rvm::search::delete::delete;
use crate::rvm::settings::policy::Policy;
use crate::rvm::settings::scheme::Hyperpriors;

/// Steps with the curvature held that do not raise the true evidence by this are not worth the search for a mode.
const WORTH: f64 = 1e-2;
/// Of fewer joint steps with the curvature held no weight leaves.
const FEW: usize = 4;
/// Modes in one settling at most.
const MODES: usize = 40;

/// What a settling works with.
pub(super) struct JointUpdates<'s> {
    pub noise: &'s [NoisePrecision],
    pub policy: &'s Policy,
    pub actions: &'s mut Actions,
}

impl JointUpdates<'_> {
    /// Makes a model converge under the likelihood of `solver`.
    pub fn settle(&mut self, solver: &EvidenceSolver, now: &mut ActivePosterior) -> Result<()> {
        if solver.curvature_moves() {
            return self.settle_mode(solver, now);
        }
        loop {
            self.joint(solver, now, self.policy.rise, self.policy.steps)?;
            let Some(fewer) = delete(solver, self.noise, now)? else { return Ok(()) };
            self.actions.deleted += now.active.len() - fewer.active.len();
            *now = fewer;
        }
    }

    /// Joint steps, at most `most`, until one gains fewer nats than `rise`.
    pub fn joint(&mut self, solver: &EvidenceSolver, now: &mut ActivePosterior, rise: f64, most: usize) -> Result<()> {
        // Where the curvature moves Newton's step of the evidence is not known.
        let rules: &[UpdateRule] = match solver.curvature_moves() {
            true => &[UpdateRule::Exact, UpdateRule::MacKay, UpdateRule::Em],
            false => &[UpdateRule::Newton, UpdateRule::Exact, UpdateRule::MacKay, UpdateRule::Em],
        };
        let (clip, gone) = (self.policy.clip, self.policy.dead);
        let batch = PrecisionUpdate { rules, hyperpriors: Hyperpriors::FLAT, clip, gone, halvings: MAX_HALVINGS };
        for _ in 0..most {
            let Some(step) = batch.step(solver, self.noise, now)? else { break };
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

    /// Where the curvature moves with the weights: by the quadratic form at the mode; of several outputs then by the posterior
    /// itself, which is not one triangle's.
    fn settle_mode(&mut self, solver: &EvidenceSolver, now: &mut ActivePosterior) -> Result<()> {
        loop {
            self.reweighted(solver, now)?;
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

    /// Joint steps and deletions with the curvature of the mode held, then the next mode; fewer steps where the true evidence has
    /// not risen.
    fn reweighted(&mut self, solver: &EvidenceSolver, now: &mut ActivePosterior) -> Result<()> {
        let mut steps = self.policy.held_steps;
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
                if steps >= FEW
                    && let Some(fewer) = delete(&form, self.noise, &inner)?
                {
                    actions.deleted += inner.active.len() - fewer.active.len();
                    inner = fewer;
                }
                let active: Vec<usize> = inner.active.iter().map(|k| now.active[*k]).collect();
                match solver.solve(&active, &inner.a, self.noise, NoiseChoice::Best, Some(now)) {
                    Ok(next) if next.log_evidence > now.log_evidence + WORTH => {
                        self.actions.add(&actions);
                        break next;
                    }
                    Ok(_) | Err(Error::Singular { .. }) => steps /= 2,
                    Err(error) => return Err(error),
                }
            };
            *now = risen;
            steps = (2 * steps).min(self.policy.held_steps);
        }
        Ok(())
    }

    /// The model without the weights whose best precision is infinite: all of them, or the worse half, and so on, if the evidence
    /// does not fall.
    fn without_useless(&self, solver: &EvidenceSolver, now: &ActivePosterior) -> Result<Option<ActivePosterior>> {
        let mut useless: Vec<usize> = (0..now.a.len()).filter(|i| now.is_useless(*i)).collect();
        useless.sort_by(|i, j| now.surplus(*i).total_cmp(&now.surplus(*j)));
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
