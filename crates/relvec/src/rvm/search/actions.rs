//! The next actions: single ones, the best first, of a large model side by side; swaps where none of them gains.

use super::{Phase, Search, TIGHT};
use crate::rvm::factor::{Action, Factor};
use crate::rvm::workspace::Workspace;

/// Actions of a batch gain at least this share of its first.
const BATCH_SHARE: f64 = 0.02;
/// A batch may be as long as the model over this, however small the batch asked for (unless that is 1).
const BATCH_PART: usize = 10;
/// The same in the midst of an excursion, where what is found is passed on.
const HELD_PART: usize = 3;
/// Where the curvature is not constant, gains are estimates: shorter batches.
const MOVING_BATCH: usize = 5;
/// Rows of G that are made ahead for each action of a batch, at most; and by what factor they grow from pass to pass.
const AHEAD: usize = 2;
const AHEAD_GROWS: usize = 3;
/// Swaps of a batch promise at least this share of what the best does.
const SWAP_SHARE: f64 = 0.1;

impl<'p> Search<'p> {
    /// The next actions and their gains, each the best by exact gain on the quadratic form, applied to
    /// `trial`.
    pub(super) fn take_batch(&self, work: &Workspace<'p>, trial: &mut Factor<'p>, least: f64) -> Vec<(Action, f64)> {
        let most = self.longest_batch(work);
        let mut taken = Vec::new();
        // Joint steps re-estimate better than single actions; what they leave comes last.
        let joint = self.settings.joint;
        if joint && most > 1 && self.is_heavy() {
            // Of a large model each single action takes as long as a product; what is useless goes with the next joint step.
            taken = trial.add_best(most, least, BATCH_SHARE, &self.barred);
        }
        if taken.is_empty() {
            self.take_singles(work, trial, most, least, !joint, &mut taken);
        }
        if taken.is_empty() && self.settings.swaps && !self.is_rough() && self.phase != Phase::Held {
            let swaps = trial.swaps(least, &self.barred);
            let worthwhile = swaps.first().map_or(0.0, |(_, gain)| SWAP_SHARE * gain);
            for (action, gain) in swaps {
                if taken.len() == most || gain < worthwhile || work.problem.table.interrupt.is_raised() {
                    break;
                }
                if let Action::Swap { out, column } = action
                    && trial.try_swap(out, column, least)
                {
                    taken.push((action, gain));
                }
            }
        }
        if taken.is_empty() && joint && self.joint_tolerance <= TIGHT {
            self.take_singles(work, trial, most, least, true, &mut taken);
        }
        taken
    }

    /// Actions between two looks at the true evidence, at most.
    pub(super) fn longest_batch(&self, work: &Workspace) -> usize {
        match (self.single || self.settings.batch == 1, work.problem.constant_curvature()) {
            (true, _) => 1,
            (false, true) => {
                let part = if self.phase == Phase::Held && self.aim.is_passing() { HELD_PART } else { BATCH_PART };
                self.settings.batch.max(self.now.active.len() / part)
            }
            (false, false) if self.many => self.settings.batch,
            (false, false) => self.settings.batch.min(MOVING_BATCH),
        }
    }

    /// Single actions, each the best after those before it.
    pub(super) fn take_singles(
        &self,
        work: &Workspace<'p>,
        trial: &mut Factor<'p>,
        most: usize,
        least: f64,
        reestimate: bool,
        taken: &mut Vec<(Action, f64)>,
    ) {
        let mut threshold = least;
        let mut ahead = trial.quadratic().rows_ahead(AHEAD * most);
        while taken.len() < most
            && !work.problem.table.interrupt.is_raised()
            && let Some((action, gain)) = trial.best_action(threshold, &self.barred, reestimate)
        {
            if taken.is_empty() {
                threshold = least.max(BATCH_SHARE * gain);
            }
            // Not all of the best will be the best after the first of them: a few more.
            if trial.prepare(action, ahead, least, BATCH_SHARE, &self.barred) {
                ahead = (AHEAD_GROWS * ahead).min(AHEAD * most);
            }
            trial.apply(action);
            taken.push((action, gain));
        }
    }
}
