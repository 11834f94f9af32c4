//! Joint steps: all precisions together, weights of no use deleted, until they rest.

use super::{Phase, Search, TIGHT, TOP_DOWN};
use crate::error::Result;
use crate::rvm::batch::{Batch, Rule, without};
use crate::rvm::gain::Noise;
use crate::rvm::solution::{At, Solution};
use crate::rvm::workspace::Workspace;

/// Steps at most: loosely, tightly, in the midst of an excursion, and where the curvature moves.
const LOOSE_JOINT: usize = 6;
const MAX_JOINT: usize = 100;
const HELD_JOINT: usize = 1;
const MOVING_SWEEPS: usize = 3;
/// A batch of actions costs as much as several joint steps: these go on until one gains less than the batch did, or than its
/// part of what a round must.
const MAX_HEAVY_JOINT: usize = 12;
const HEAVY_PARTS: f64 = 2.0;

const JOINT: Batch = Batch { rules: &[Rule::Newton, Rule::Exact, Rule::MacKay, Rule::Em], clip: 3.0, gone: 0.0, ..TOP_DOWN };
const HEAVY_JOINT: Batch = Batch { rules: &[Rule::NewtonOfNear, Rule::Exact, Rule::MacKay, Rule::Em], drops: true, ..JOINT };
pub(super) const MOVING_JOINT: Batch = Batch { rules: &[Rule::Exact, Rule::MacKay, Rule::Em], ..JOINT };
/// Where solves are dear, what the held curvature promises in vain is not sought by ever shorter steps.
const CLASSES_JOINT: Batch = Batch { rules: &[Rule::Exact, Rule::Em], halvings: 1, ..JOINT };

/// After re-estimation, or a deletion, has failed under several outputs it waits until the evidence has risen by so
/// many nats.
const PATIENCE: f64 = 0.5;

impl<'p> Search<'p> {
    /// All precisions together, weights of no use deleted, until they rest.
    pub(super) fn joint(&mut self, work: &Workspace<'p>, start: Solution) -> Result<Solution> {
        let constant = work.problem.constant_curvature();
        let several = start.is_joint();
        if self.many
            && self.joint_tolerance > TIGHT
            && let Some(rested) = self.settle_frozen(work, &start)?
            && rested.log_evidence > start.log_evidence
        {
            return Ok(rested);
        }
        let (batch, most) = match (constant, self.phase) {
            (true, Phase::Held) => (&JOINT, HELD_JOINT),
            (true, _) if self.is_heavy() => (&HEAVY_JOINT, MAX_HEAVY_JOINT),
            (true, _) if self.joint_tolerance > TIGHT => (&JOINT, LOOSE_JOINT),
            (true, _) => (&JOINT, MAX_JOINT),
            (false, _) if several => (&CLASSES_JOINT, MOVING_SWEEPS),
            (false, _) => (&MOVING_JOINT, MOVING_SWEEPS),
        };
        let mut now = start;
        self.refused = self.refused.saturating_sub(1);
        for _ in 0..most {
            if !batch.drops
                && let Some(smaller) = self.drop_useless(work, &now)?
            {
                now = smaller;
                continue;
            }
            if several && now.log_evidence < self.rest {
                break;
            }
            // Where the mode is dear to seek, rules that have overshot are not tried again at once; but the last steps are by the best.
            let from = if self.many && self.joint_tolerance > TIGHT { self.refused.min(batch.rules.len() - 1) } else { 0 };
            let Some(step) = (Batch { rules: &batch.rules[from..], ..batch.clone() }).step(work, &self.noise, &now)? else {
                self.rest = now.log_evidence + PATIENCE;
                break;
            };
            self.refused = from + step.refused;
            self.actions.joint += 1;
            self.actions.deleted += now.active.len() - step.solution.active.len();
            let rise = step.solution.log_evidence - now.log_evidence;
            now = step.solution;
            // Of large models, and those that the next part goes on from, actions come first where they are likely to gain more.
            let little = rise < self.promised || self.is_slow(work, HEAVY_PARTS * rise);
            if step.change < self.joint_tolerance || (self.is_heavy() || self.aim.is_passing()) && little {
                break;
            }
        }
        if !self.noise.iter().any(Noise::is_learnt) || now.has_best_noise(&self.noise, work.problem.table.count) {
            return Ok(now);
        }
        let best = work.solve(&now.active, &now.a, &self.noise, At::Best, Some(&now))?;
        Ok(if best.log_evidence > now.log_evidence { best } else { now })
    }

    /// Deletes the weights whose best precision is infinite: all of them if the evidence rises, else
    /// the most useless one.
    pub(super) fn drop_useless(&mut self, work: &Workspace<'p>, now: &Solution) -> Result<Option<Solution>> {
        self.needed.retain(|(_, until)| now.log_evidence < *until);
        let needed = |i: usize| self.needed.iter().any(|(column, _)| *column == now.active[i]);
        let useless: Vec<usize> = (0..now.a.len()).filter(|i| now.is_useless(*i) && !needed(*i)).collect();
        let Some(worst) = useless.iter().copied().min_by(|i, j| now.surplus(*i).total_cmp(&now.surplus(*j))) else {
            return Ok(None);
        };
        for gone in [useless, vec![worst]] {
            let keep: Vec<usize> = (0..now.a.len()).filter(|i| !gone.contains(i)).collect();
            if let Ok(next) = without(work, &self.noise, now, &keep, At::Best)
                && next.log_evidence >= now.log_evidence
            {
                self.actions.deleted += gone.len();
                return Ok(Some(next));
            }
        }
        if now.is_joint() || self.many {
            self.needed.push((now.active[worst], now.log_evidence + PATIENCE));
        }
        Ok(None)
    }

    /// No action is left: rest the precisions tightly and look once more.
    pub(super) fn tighten(&mut self, work: &Workspace<'p>, least: f64) -> Result<bool> {
        if !self.settings.joint
            || self.is_rough()
            || self.aim.is_passing()
            || self.joint_tolerance <= TIGHT
            || self.phase == Phase::Held
        {
            return Ok(false);
        }
        self.joint_tolerance = TIGHT;
        let rested = self.joint(work, self.now.clone())?;
        if rested.log_evidence < self.now.log_evidence {
            return Ok(false);
        }
        // On many rows the form is not made again for the sake of a change that counts for nothing.
        let near = rested.log_evidence - self.now.log_evidence <= least && rested.active == self.now.active;
        if !(self.many && near) {
            self.factor = None;
        }
        self.now = rested;
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use ndarray::Array2;

    use super::*;
    use crate::kernel::Rbf;
    use crate::likelihood::Bernoulli;
    use crate::report::Interrupt;
    use crate::rvm::problem::Problem;
    use crate::rvm::scheme::{Aim, Entry};
    use crate::rvm::sequential::Sequential;
    use crate::rvm::table::Table;
    use crate::rvm::{Dictionary, Rvm};
    use crate::targets::Targets;

    /// Shows a search on many rows, and a model of every tenth candidate, some of no use.
    fn on_many_rows(see: impl for<'p> Fn(Search<'p>, &Workspace<'p>, Solution)) {
        let fraction = |i: usize, by: f64| (i as f64 * by).fract();
        let x = Array2::from_shape_fn((10_000, 2), |(i, j)| 4.0 * fraction(i + 1, [0.618_033_988_75, 0.754_877_666_25][j]));
        let label = |i: usize| (2.0 * x[[i, 0]]).sin() + (3.0 * x[[i, 1]]).cos() > fraction(i + 1, 0.569_840_290_998) - 0.5;
        let labels: Vec<usize> = (0..x.nrows()).map(|i| usize::from(label(i))).collect();
        let kernel = Rbf { gamma: 1.0.into() }.into();
        let rvm =
            Rvm { kernel, likelihood: Bernoulli::default().into(), dictionary: Dictionary::Size(200), ..Rvm::tipping2001() };
        let table = Table::new(&rvm, x.view(), &Targets::classes(&labels, 2), &Interrupt::default()).unwrap();
        let problem = Problem::new(&table, table.dictionary()).unwrap().0;
        let work = Workspace::new(&problem, None);
        let search = Search::start(&work, &Sequential::default(), &Entry { from: None, aim: Aim::Exhaustive }).unwrap();
        assert!(search.many);
        let active: Vec<usize> = (0..200).step_by(10).collect();
        let now = work.solve(&active, &[1.0; 20], &search.noise, At::Best, None).unwrap();
        see(search, &work, now);
    }

    #[test]
    fn rules_that_overshot_are_passed_over_until_precisions_are_to_rest_tightly() {
        on_many_rows(|mut search, work, now| {
            let mut rested = |tolerance: f64, refused: usize| {
                (search.joint_tolerance, search.refused) = (tolerance, refused);
                search.joint(work, now.clone()).unwrap()
            };
            let (all, last) = (rested(TIGHT, 0), rested(TIGHT, 3));
            assert!(all.log_evidence > now.log_evidence + 1.0);
            assert_eq!((all.log_evidence, &all.a), (last.log_evidence, &last.a));
        });
    }

    /// It is tried again once the evidence is high enough.
    #[test]
    fn a_deletion_that_failed_waits() {
        on_many_rows(|mut search, work, now| {
            let useless = (0..now.a.len()).filter(|i| now.is_useless(*i)).count();
            assert!(useless > 0);
            let mut smaller = |until: f64| {
                search.needed = now.active.iter().map(|j| (*j, until)).collect();
                search.drop_useless(work, &now).unwrap()
            };
            assert!(smaller(now.log_evidence + PATIENCE).is_none());
            let next = smaller(now.log_evidence).expect("weights of no use go");
            assert!(next.active.len() < now.active.len() && next.log_evidence >= now.log_evidence);
            assert_eq!(search.actions.deleted, now.active.len() - next.active.len());
        });
    }
}
