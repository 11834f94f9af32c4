//! Where looks at the rows cost more than all else: the curvature of one mode is held while precisions come to rest and several
//! batches of actions are taken.

use super::joint::MOVING_JOINT;
use super::{LOOSE, Phase, Search};
use crate::error::{Error, Result};
use crate::rvm::batch::Batch;
use crate::rvm::factor::{Action, Factor};
use crate::rvm::laplace;
use crate::rvm::scheme::Scheme;
use crate::rvm::solution::{At, Solution};
use crate::rvm::workspace::Workspace;

/// After a start with bounded curvature the precisions settle until three sweeps gain no more than this many
/// times what an action must.
const SETTLED: f64 = 10.0;
/// Batches, and sweeps, with the curvature held at most.
const HELD_BATCHES: usize = 10;
const FROZEN_SWEEPS: usize = 30;
const FROZEN: Batch = Batch { gone: 1e-6, ..MOVING_JOINT };

impl<'p> Search<'p> {
    /// Joint steps of what the start with bounded curvature left, the curvature of one mode held for as long as
    /// they move; until the next mode gains no more.
    pub(super) fn settle(&mut self, work: &Workspace<'p>) -> Result<()> {
        let rested = match self.settle_frozen(work, &self.now.clone())? {
            Some(rested) => rested,
            None => self.joint(work, self.now.clone())?,
        };
        let rise = rested.log_evidence - self.now.log_evidence;
        if rise > 0.0 {
            self.now = rested;
        }
        if !(rise > SETTLED * self.settings.least_gain(work.problem.table.count, &self.now)) {
            self.phase = Phase::Climb;
        }
        Ok(())
    }

    /// The mode at the precisions that suit the curvature at the mode of `now`; `None` if that was not kept.
    pub(super) fn settle_frozen(&mut self, work: &Workspace<'p>, now: &Solution) -> Result<Option<Solution>> {
        let Some(frozen) = laplace::frozen(work.problem, now) else { return Ok(None) };
        let columns: Vec<usize> = (0..now.active.len()).collect();
        let start = frozen.solve(&columns, &now.a, &self.noise, At::Best, None)?;
        let inner = self.rest_on(&frozen, start)?;
        let active: Vec<usize> = inner.active.iter().map(|k| now.active[*k]).collect();
        let columns = now.columns_of(&inner.active);
        let start = inner.renamed(active, columns);
        work.solve(&start.active, &start.a, &self.noise, At::Best, Some(&start)).map(Some)
    }

    /// The precisions at rest on a quadratic form.
    pub(super) fn rest_on(&mut self, form: &Workspace<'p>, start: Solution) -> Result<Solution> {
        let mut now = start;
        for _ in 0..FROZEN_SWEEPS {
            let Some(step) = FROZEN.step(form, &self.noise, &now)? else { break };
            self.actions.joint += 1;
            now = step.solution;
            if step.change < LOOSE {
                break;
            }
        }
        Ok(now)
    }

    /// More batches on the same quadratic form, its precisions at rest before each.
    pub(super) fn go_on(
        &mut self,
        work: &Workspace<'p>,
        trial: &mut Factor<'p>,
        least: f64,
        taken: &mut Vec<(Action, f64)>,
    ) -> Result<()> {
        let held = work.held(trial.quadratic());
        for _ in 1..HELD_BATCHES {
            let start = match held.solve(trial.active(), trial.precisions(), &self.noise, At::Best, None) {
                // The mode will tell.
                Err(Error::Singular { .. }) => break,
                other => other?,
            };
            let model = self.rest_on(&held, start)?;
            *trial = trial.at(&model);
            let more = self.take_batch(work, trial, least);
            if more.is_empty() {
                break;
            }
            taken.extend(more);
        }
        Ok(())
    }
}
