//! One run of the sequential scheme: a search for the active set of highest evidence.
//!
//! Start (top-down where all columns can be afforded), then climb: a batch of the best actions by
//! exact gain, a joint step of all precisions, the true evidence, accept or undo. When nothing gains
//! any more, make an excursion: hold the noise low (the model grows over-complete) or high (it
//! shrinks), free the noise, climb again, and keep what is better.

use rand::SeedableRng;
use rand::seq::index;

use super::batch::{Batch, MAX_HALVINGS, Rule, without};
use super::bound::Bound;
use super::factor::{Action, Factor};
use super::gain::Noise;
use super::laplace;
use super::problem::DENSE;
use super::scheme::{Aim, Entry, Hyperpriors, Run, Scheme};
use super::sequential::{Sequential, Start};
use super::solution::{AMPLE, At, Solution, typical};
use super::workspace::Workspace;
use crate::error::{Error, Result};
use crate::report::{Actions, Certificate, Status};

/// Noise of the first model, in standard deviations of the target.
const FIRST_NOISE: f64 = 0.1;
/// Up to this many columns the search can afford to be thorough, beyond it has to be brisk.
const THOROUGH_COLUMNS: usize = 500;
const THOROUGH: Effort =
    Effort { top_down_step: 2.0, excursions: [Excursion::Noise(4.0), Excursion::Noise(0.25), Excursion::Anew] };
const BRISK: Effort = Effort { top_down_step: 4.0, excursions: [Excursion::Noise(3.0), Excursion::Noise(0.25), Excursion::Anew] };
/// A search that is only to find candidates takes long steps; beyond so many columns in the model its actions
/// gain at least so many nats, and it takes no pains to end in an optimum.
const ROUGH_STEP: f64 = 6.0;
const ROUGH_COLUMNS: usize = 50;
const ROUGH_TOLERANCE: f64 = 0.3;
/// The top-down start ends when no log precision moves by more than this.
const TOP_DOWN_TOLERANCE: f64 = 1e-2;
/// Actions of a batch gain at least this share of its first.
const BATCH_SHARE: f64 = 0.02;
/// A batch may be as long as the model over this, however small the batch asked for (unless that is 1).
const BATCH_PART: usize = 10;
/// Where the curvature is not constant, gains are estimates: shorter batches, a few joint sweeps.
const MOVING_BATCH: usize = 5;
const MOVING_SWEEPS: usize = 3;
/// After a start with bounded curvature the precisions settle until three sweeps gain no more than this many
/// times what an action must.
const SETTLED: f64 = 10.0;
/// Batches, and sweeps, with the curvature held at most.
const HELD_BATCHES: usize = 10;
const FROZEN_SWEEPS: usize = 30;
/// Joint steps end when no log precision moves by more than this: first loosely, then tightly, and
/// at the very end so that two ways to the same optimum meet.
const LOOSE: f64 = 1e-2;
const TIGHT: f64 = 1e-5;
const POLISH: f64 = 1e-9;
const LOOSE_JOINT: usize = 6;
const MAX_JOINT: usize = 100;
/// The largest gradient that counts as stationary.
const STATIONARY: f64 = 1e-3;
/// The model that an excursion passes through is only a way: actions gain at least this many nats, and
/// one joint step between batches is enough.
const HELD_TOLERANCE: f64 = 0.1;
const HELD_JOINT: usize = 1;
/// Beyond so many columns in the model all that is done to it is dear, and what is left to gain is small beside
/// the evidence: no excursions, and a round of actions has to gain this many nats for each row.
const HEAVY: usize = 400;
const HEAVY_ROUND: f64 = 1e-5;
/// A batch of actions costs as much as several joint steps: these go on until one gains less than the batch did, or than its
/// part of what a round must.
const MAX_HEAVY_JOINT: usize = 12;
const HEAVY_PARTS: f64 = 2.0;
/// What an excursion must gain to be kept.
const EXCURSION_GAIN: f64 = 0.05;
/// Relative rounding of the log evidence: a step must gain more.
const ROUNDING: f64 = 1e-10;

/// Swaps per batch at most, and the least share of the best swap's gain that they promise.
const SWAP_SHARE: f64 = 0.1;

/// What the search does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// A first model, before the columns die down with an upper bound for the curvature.
    First,
    Bound,
    /// The precisions of what that left come to rest at the true curvature.
    Settle,
    TopDown,
    Climb,
    /// Noise held low or high.
    Held,
    /// Noise free again after that.
    Freed,
    Done,
}

/// A way out of an optimum, with the noise held.
#[derive(Debug, Clone, Copy)]
enum Excursion {
    /// From the model, at so many times its noise precision.
    Noise(f64),
    /// From no basis function at all, at its noise precision.
    Anew,
}

/// How much evidence is sought for how much time.
#[derive(Debug, Clone, Copy)]
struct Effort {
    /// Longest step in a log precision of the top-down start.
    top_down_step: f64,
    /// The ways out of an optimum, the first first.
    excursions: [Excursion; 3],
}

/// One run of the search.
pub(super) struct Search<'p> {
    settings: Sequential,
    effort: Effort,
    aim: Aim,
    phase: Phase,
    noise: Vec<Noise>,
    now: Solution,
    factor: Option<Factor<'p>>,
    /// Columns whose action was undone, `[P]`; each until the log evidence has passed `retry`: by then the
    /// model has moved as far as the action promised, or cost, and it may do better.
    barred: Vec<bool>,
    retry: Vec<f64>,
    /// One action at a time, after a batch was undone.
    single: bool,
    joint_tolerance: f64,
    /// Under several outputs: the evidence from which joint steps are tried again, and deletions of columns that
    /// proved of use.
    rest: f64,
    needed: Vec<(usize, f64)>,
    /// Whether the curvature moves with the weights, so that gains are estimates.
    moving: bool,
    /// Actions undone since the last that was not.
    futile: usize,
    /// What the last round gained is not worth another.
    slow: bool,
    /// The start with bounded curvature, while it is under way.
    bound: Option<Box<Bound<'p>>>,
    /// Whether the rows are so many that looking at them costs more than all else.
    many: bool,
    /// Whether the curvature may be held for more than one batch.
    holds: bool,
    /// Whether the start with bounded curvature was tried, or need not be.
    tried_all: bool,
    /// What the last batch of actions promised to gain.
    promised: f64,
    /// The best model while an excursion is under way.
    kept: Option<Solution>,
    /// Excursions begun, and those that have failed since the last that helped.
    excursions: usize,
    failed: usize,
    /// The model has no room to grow in the memory allowed.
    full: bool,
    actions: Actions,
    reason: &'static str,
}

const TOP_DOWN: Batch = Batch {
    rules: &[Rule::Exact, Rule::MacKay, Rule::Em],
    hyperpriors: Hyperpriors { a: 0.0, b: 0.0, c: 0.0, d: 0.0 },
    clip: THOROUGH.top_down_step,
    gone: 1e-6,
    drops: false,
    halvings: MAX_HALVINGS,
};
const JOINT: Batch = Batch { rules: &[Rule::Newton, Rule::Exact, Rule::MacKay, Rule::Em], clip: 3.0, gone: 0.0, ..TOP_DOWN };
const HEAVY_JOINT: Batch = Batch { rules: &[Rule::NewtonOfNear, Rule::Exact, Rule::MacKay, Rule::Em], drops: true, ..JOINT };
const MOVING_JOINT: Batch = Batch { rules: &[Rule::Exact, Rule::MacKay, Rule::Em], ..JOINT };
/// Where solves are dear, what the held curvature promises in vain is not sought by ever shorter steps.
const CLASSES_JOINT: Batch = Batch { rules: &[Rule::Exact, Rule::Em], halvings: 1, ..JOINT };
/// After re-estimation, or a deletion, has failed under several outputs it waits until the evidence has risen by so
/// many nats.
const PATIENCE: f64 = 0.5;
/// So many actions in a row that were undone, each the most promising left: where the curvature moves that is rest.
const FUTILE: usize = 12;
/// In an ample model each try is dear, and fewer in vain are rest.
const LEAST_FUTILE: usize = 2;
/// And so much of what an action must promise it must keep.
const WORTHWHILE: f64 = 0.1;

const FROZEN: Batch = Batch { gone: 1e-6, ..MOVING_JOINT };

impl<'p> Search<'p> {
    pub fn start(work: &Workspace<'p>, settings: &Sequential, entry: &Entry) -> Result<Search<'p>> {
        let problem = work.problem;
        let noise = problem.table.noise.clone();
        let at_first = || noise.iter().map(|noise| noise.precision(1.0, 1.0)).collect();
        let (active, alpha, beta, phase): (_, Vec<f64>, Vec<f64>, _) = match &settings.start {
            _ if problem.table.bias_only => {
                let alpha = problem.first_precisions(&[0], 1.0 / problem.table.count);
                (vec![0], alpha, at_first(), Phase::Climb)
            }
            _ if entry.from.is_some() => {
                let warm = entry.from.as_ref().expect("just asked");
                let unit = typical(&warm.beta);
                (warm.columns(work), warm.a.iter().map(|a| a * unit).collect(), warm.beta.clone(), Phase::Climb)
            }
            Start::Given(hyperparameters) => {
                let (active, alpha, beta) = hyperparameters.inner(problem)?;
                (active, alpha, beta, Phase::Climb)
            }
            Start::Auto if problem.constant_curvature() => {
                let mut active = problem.usable();
                let affordable = ((problem.room() / (8 * DENSE)) as f64).sqrt() as usize;
                if active.len() > affordable {
                    let mut random = rand_pcg::Pcg64::seed_from_u64(problem.table.rvm.seed);
                    let mut sample = index::sample(&mut random, active.len(), affordable).into_vec();
                    sample.sort_unstable();
                    active = sample.into_iter().map(|k| active[k]).collect();
                }
                let first = |noise: &Noise| match *noise {
                    Noise::Fixed(beta) => beta,
                    Noise::Learnt { cap, .. } => (1.0 / (FIRST_NOISE * FIRST_NOISE)).min(cap),
                };
                let beta = noise.iter().map(first).collect();
                let alpha = problem.first_precisions(&active, 1.0 / problem.table.count);
                (active, alpha, beta, Phase::TopDown)
            }
            Start::Auto if Bound::pays(problem) || problem.table.rvm.likelihood.as_dyn().counts() => {
                let active = if problem.has_bias { vec![0] } else { vec![] };
                let alpha = problem.first_precisions(&active, 1.0 / problem.table.count);
                let phase = if Bound::pays(problem) { Phase::First } else { Phase::Climb };
                (active, alpha, at_first(), phase)
            }
            Start::Auto | Start::Empty => (vec![], vec![], at_first(), Phase::Climb),
        };
        let unit = typical(&beta);
        let a: Vec<f64> = alpha.iter().map(|x| x / unit).collect();
        let at = if phase == Phase::TopDown { At::Precision(&beta) } else { At::Best };
        // The mode of several classes is far to seek, but for who has been there.
        let there = entry.from.as_ref().and_then(|warm| warm.mode.clone());
        let there = there.map(|mode| Solution::clone(&mode).renamed(active.clone(), None));
        let now = work.solve(&active, &a, &noise, at, there.as_ref())?;
        let reheats = if entry.aim == Aim::Thorough { settings.reheats } else { 0 };
        Ok(Search {
            settings: Sequential { reheats, ..settings.clone() },
            effort: match entry.aim {
                Aim::Rough => Effort { top_down_step: ROUGH_STEP, ..BRISK },
                _ if problem.design.n_columns() <= THOROUGH_COLUMNS => THOROUGH,
                _ => BRISK,
            },
            aim: entry.aim,
            phase,
            noise,
            now,
            factor: None,
            barred: vec![false; problem.design.n_columns()],
            retry: vec![0.0; problem.design.n_columns()],
            single: false,
            joint_tolerance: LOOSE,
            rest: f64::NEG_INFINITY,
            needed: vec![],
            moving: !problem.constant_curvature(),
            futile: 0,
            slow: false,
            bound: None,
            many: Bound::pays(problem),
            holds: Bound::pays(problem) && settings.joint && settings.batch > 1,
            tried_all: phase == Phase::First,
            promised: 0.0,
            kept: None,
            excursions: 0,
            failed: 0,
            full: false,
            actions: Actions::default(),
            reason: "",
        })
    }

    /// One re-estimation of all precisions of the start; dies down to a sparse model by itself.
    fn top_down(&mut self, work: &Workspace<'p>) -> Result<()> {
        let batch = Batch { clip: self.effort.top_down_step, ..TOP_DOWN };
        match batch.step(work, &self.noise, &self.now)? {
            Some(step) => {
                let rise = step.solution.log_evidence - self.now.log_evidence;
                self.now = step.solution;
                if step.change < TOP_DOWN_TOLERANCE || self.is_slow(work, rise) {
                    self.begin_climb(work)?;
                }
            }
            None => self.begin_climb(work)?,
        }
        Ok(())
    }

    /// Where no basis function alone is of use, all of them together may be: of wide kernels, or with an offset, each is
    /// nearly constant, and only differences of several tell classes apart. Then the start with bounded curvature is
    /// tried as well, once.
    fn try_all(&mut self, work: &Workspace<'p>) -> bool {
        let problem = work.problem;
        let bare = self.now.active.iter().all(|j| *j < usize::from(problem.has_bias));
        let again = bare && !self.tried_all && !problem.table.bias_only && self.settings.start == Start::Auto;
        self.tried_all |= bare;
        if again && problem.table.outputs == 1 && Bound::fits(problem) {
            self.enter(Phase::Bound, self.noise.clone(), self.now.clone());
            return true;
        }
        false
    }

    /// One round of the start with bounded curvature.
    fn bounded(&mut self, work: &Workspace<'p>) -> Result<()> {
        if self.bound.is_none() {
            self.bound = Bound::begin(work.problem)?.map(Box::new);
        }
        let batch = Batch { clip: self.effort.top_down_step, ..TOP_DOWN };
        if let Some(bound) = &mut self.bound
            && !bound.step(&batch)?
        {
            return Ok(());
        }
        self.phase = Phase::Settle;
        let Some(bound) = self.bound.take() else { return Ok(()) };
        let left = bound.model();
        match work.solve(&left.active, &left.a, &self.noise, At::Best, Some(left)) {
            Ok(next) if next.log_evidence > self.now.log_evidence => self.now = next,
            // Nothing gained: on from the first model.
            Ok(_) | Err(Error::Singular { .. }) => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Joint steps of what the start with bounded curvature left, the curvature of one mode held for as long as
    /// they move; until the next mode gains no more.
    fn settle(&mut self, work: &Workspace<'p>) -> Result<()> {
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
    fn settle_frozen(&mut self, work: &Workspace<'p>, now: &Solution) -> Result<Option<Solution>> {
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
    fn rest_on(&mut self, form: &Workspace<'p>, start: Solution) -> Result<Solution> {
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

    fn begin_climb(&mut self, work: &Workspace<'p>) -> Result<()> {
        let (active, a) = (self.now.active.clone(), self.now.a.clone());
        let best = work.solve(&active, &a, &self.noise, At::Best, Some(&self.now))?;
        if best.log_evidence >= self.now.log_evidence {
            self.now = best;
        }
        self.phase = Phase::Climb;
        // Of a large model actions gain more in the same time.
        if self.settings.joint && !self.is_heavy() {
            self.now = self.joint(work, self.now.clone())?;
        }
        Ok(())
    }

    /// Takes actions; false if none is left that gains.
    fn climb(&mut self, work: &Workspace<'p>) -> Result<bool> {
        if work.problem.table.bias_only {
            return Ok(false);
        }
        // V of the model, its copy on trial, and rows of G; the dense matrices of a solve; and the columns
        // of the model on all rows, where the curvature moves.
        let (m, p) = (self.now.active.len() as u64 + self.longest_batch(work) as u64, self.barred.len() as u64);
        let n = if work.problem.constant_curvature() { 0 } else { work.problem.design.n_rows() as u64 };
        if 8 * m * (3 * p + n) + work.problem.dense_bytes(m) > work.problem.room() {
            self.full = true;
            return Ok(false);
        }
        let least = self.least_gain(work);
        if self.factor.is_none() {
            self.factor = Some(Factor::new(work.quadratic(&self.now), &self.now, &self.noise, work.prior));
        }
        let mut trial = self.factor.clone().expect("made above");
        let mut taken = if self.is_futile() { vec![] } else { self.take_batch(work, &mut trial, least) };
        if taken.is_empty() {
            return self.tighten(work, least);
        }
        let holds = self.holds && !self.single && laplace::holds_curvature(work.problem, self.now.active.len());
        if holds {
            self.go_on(work, &mut trial, least, &mut taken)?;
        }
        let mut next = work.solve_after(&trial, &self.noise, &self.now);
        // Joint steps of so many weights take long, and do not make up for a fall.
        let hopeless = |solution: &Solution| self.now.is_ample() && solution.log_evidence < self.now.log_evidence;
        self.promised = taken.iter().map(|(_, gain)| gain).sum();
        if self.settings.joint && next.as_ref().is_ok_and(|solution| !hopeless(solution)) {
            next = self.joint(work, next?);
        }
        let rise = next.as_ref().map_or(f64::NEG_INFINITY, |n| n.log_evidence - self.now.log_evidence);
        let rounding = ROUNDING * self.now.log_evidence.abs().max(1.0);
        // Where gains are estimates, one column may come and another go for next to nothing, without end.
        let enough = match self.moving {
            true if self.now.is_ample() => least,
            true => rounding.max(WORTHWHILE * least),
            false => rounding,
        };
        if let Ok(next) = next
            && rise > enough
        {
            self.count(&taken);
            self.now = next;
            self.slow = self.is_slow(work, rise) && !(self.many && self.single);
            if self.is_heavy() {
                self.joint_tolerance = LOOSE;
            }
            for (barred, retry) in self.barred.iter_mut().zip(&self.retry) {
                *barred &= self.now.log_evidence <= *retry;
            }
            self.single = false;
            self.futile = 0;
            // Without a joint step the factor is that of the new model already.
            let still_true = work.problem.constant_curvature() && !self.settings.joint;
            self.factor = still_true.then_some(trial);
        } else {
            self.actions.undone += 1;
            // Too far for the curvature: from here on it is looked at after each batch.
            if holds {
                self.holds = false;
                return Ok(true);
            }
            self.futile += 1;
            if let [(action, promised)] = taken[..] {
                self.barred[action.column()] = true;
                self.retry[action.column()] = self.now.log_evidence + promised.max(-rise);
            }
            self.single = true;
        }
        Ok(true)
    }

    /// More batches on the same quadratic form, its precisions at rest before each.
    fn go_on(&mut self, work: &Workspace<'p>, trial: &mut Factor<'p>, least: f64, taken: &mut Vec<(Action, f64)>) -> Result<()> {
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

    /// The next actions and their gains, each the best by exact gain on the quadratic form, applied to
    /// `trial`.
    fn take_batch(&self, work: &Workspace<'p>, trial: &mut Factor<'p>, least: f64) -> Vec<(Action, f64)> {
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
    fn longest_batch(&self, work: &Workspace) -> usize {
        match (self.single || self.settings.batch == 1, work.problem.constant_curvature()) {
            (true, _) => 1,
            (false, true) => self.settings.batch.max(self.now.active.len() / BATCH_PART),
            (false, false) if self.many => self.settings.batch,
            (false, false) => self.settings.batch.min(MOVING_BATCH),
        }
    }

    /// Single actions, each the best after those before it.
    fn take_singles(
        &self,
        work: &Workspace<'p>,
        trial: &mut Factor<'p>,
        most: usize,
        least: f64,
        reestimate: bool,
        taken: &mut Vec<(Action, f64)>,
    ) {
        // Not all of the best will be the best after the first of them: a few more.
        trial.prepare(2 * most, least, BATCH_SHARE, &self.barred);
        let mut threshold = least;
        while taken.len() < most
            && !work.problem.table.interrupt.is_raised()
            && let Some((action, gain)) = trial.best_action(threshold, &self.barred, reestimate)
        {
            if taken.is_empty() {
                threshold = least.max(BATCH_SHARE * gain);
            }
            trial.apply(action);
            taken.push((action, gain));
        }
    }

    /// All precisions together, weights of no use deleted, until they rest.
    fn joint(&mut self, work: &Workspace<'p>, start: Solution) -> Result<Solution> {
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
            let Some(step) = batch.step(work, &self.noise, &now)? else {
                self.rest = now.log_evidence + PATIENCE;
                break;
            };
            self.actions.joint += 1;
            self.actions.deleted += now.active.len() - step.solution.active.len();
            let rise = step.solution.log_evidence - now.log_evidence;
            now = step.solution;
            // Of large models the next batch of actions comes first where it is likely to gain more.
            let little = rise < self.promised || self.is_slow(work, HEAVY_PARTS * rise);
            if step.change < self.joint_tolerance || self.is_heavy() && little {
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
    fn drop_useless(&mut self, work: &Workspace<'p>, now: &Solution) -> Result<Option<Solution>> {
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
        if now.is_joint() {
            self.needed.push((now.active[worst], now.log_evidence + PATIENCE));
        }
        Ok(None)
    }

    /// No action is left: rest the precisions tightly and look once more.
    fn tighten(&mut self, work: &Workspace<'p>, least: f64) -> Result<bool> {
        if !self.settings.joint || self.is_rough() || self.joint_tolerance <= TIGHT || self.phase == Phase::Held {
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

    /// The model is at rest: begin an excursion with the noise held, if one is left.
    fn excursion(&mut self, work: &Workspace<'p>) -> Result<()> {
        if self.full {
            self.phase = Phase::Done;
            self.reason = "the memory limit leaves the model no room to grow";
            return Ok(());
        }
        let possible = work.problem.constant_curvature() && !work.problem.table.bias_only && !self.now.active.is_empty();
        let most = if self.is_heavy() { 0 } else { self.effort.excursions.len() * self.settings.reheats };
        if !possible || self.excursions >= most || self.failed == self.effort.excursions.len() {
            self.phase = Phase::Done;
            if self.settings.joint && possible {
                self.joint_tolerance = POLISH;
                let rested = self.joint(work, self.now.clone())?;
                if rested.log_evidence >= self.now.log_evidence - ROUNDING * self.now.log_evidence.abs().max(1.0) {
                    self.now = rested;
                }
            }
            if self.is_futile() {
                self.reason = "several actions in a row, each the most promising, have not raised the evidence by enough";
                return Ok(());
            }
            if self.slow {
                self.reason = match self.many {
                    true => "on so many rows, the last round of actions gained less than 1e-5 nats for each",
                    false => "of so many basis functions, the last round of actions gained less than 1e-5 nats for each row",
                };
                return Ok(());
            }
            self.reason = match (possible && most > 0, self.failed == self.effort.excursions.len()) {
                (false, _) => "no action gains more than the tolerance",
                (true, true) => "no action gains more than the tolerance, and holding the noise low, then high, has not helped",
                (true, false) => "no action gains more than the tolerance, and the last reheat allowed is done",
            };
            return Ok(());
        }
        self.excursions += 1;
        let (factor, active) = match self.effort.excursions[self.failed] {
            Excursion::Noise(factor) => (factor, &self.now.active[..]),
            Excursion::Anew => (1.0, &[][..]),
        };
        let held: Vec<Noise> = self.now.beta.iter().map(|beta| Noise::Fixed(factor * beta)).collect();
        let a: Vec<f64> = self.now.a.iter().take(active.len()).map(|a| a / factor).collect();
        match work.solve(active, &a, &held, At::Best, Some(&self.now)) {
            Ok(other) => {
                self.kept = Some(self.now.clone());
                self.enter(Phase::Held, held, other);
                Ok(())
            }
            Err(_) => {
                self.failed += 1;
                self.excursion(work)
            }
        }
    }

    /// The model of the held noise is at rest: free the noise.
    fn free(&mut self, work: &Workspace<'p>) -> Result<()> {
        let noise = work.problem.table.noise.clone();
        let mut free = work.solve(&self.now.active, &self.now.a, &noise, At::Best, Some(&self.now))?;
        self.noise = noise.clone();
        if self.settings.joint {
            self.joint_tolerance = LOOSE;
            free = self.joint(work, free)?;
        }
        self.enter(Phase::Freed, noise, free);
        Ok(())
    }

    /// The excursion is over: keep what it found if that is better, and look for the next one.
    fn judge(&mut self, work: &Workspace<'p>) -> Result<()> {
        let kept = self.kept.take().expect("an excursion keeps the model it left");
        self.failed = if self.now.log_evidence - kept.log_evidence > EXCURSION_GAIN { 0 } else { self.failed + 1 };
        if kept.log_evidence >= self.now.log_evidence {
            self.now = kept;
        }
        self.factor = None;
        self.phase = Phase::Climb;
        self.excursion(work)
    }

    fn enter(&mut self, phase: Phase, noise: Vec<Noise>, now: Solution) {
        self.phase = phase;
        self.noise = noise;
        self.now = now;
        self.factor = None;
        self.barred.fill(false);
        self.single = false;
        self.futile = 0;
        self.joint_tolerance = LOOSE;
    }

    /// Nats that an action must gain.
    fn least_gain(&self, work: &Workspace) -> f64 {
        let least = self.settings.least_gain(work.problem.table.count, &self.now);
        match self.phase {
            Phase::Held => least.max(HELD_TOLERANCE),
            _ if self.is_rough() => least.max(ROUGH_TOLERANCE),
            _ => least,
        }
    }

    /// Whether time spent on this model is time lost for the next part.
    fn is_rough(&self) -> bool {
        self.aim == Aim::Rough && self.now.active.len() > ROUGH_COLUMNS
    }

    fn is_heavy(&self) -> bool {
        self.now.active.len() > HEAVY && !self.now.is_joint()
    }

    /// Whether a round that gained so much is not worth another.
    fn is_slow(&self, work: &Workspace, rise: f64) -> bool {
        (self.is_heavy() || self.many) && rise < HEAVY_ROUND * work.problem.table.count
    }

    /// Whether so many actions in vain are rest.
    fn is_futile(&self) -> bool {
        let most = (FUTILE * AMPLE / self.now.mean.len().max(AMPLE)).max(LEAST_FUTILE);
        self.moving && self.futile >= most
    }

    fn count(&mut self, taken: &[(Action, f64)]) {
        for (action, _) in taken {
            match action {
                Action::Add { .. } => self.actions.added += 1,
                Action::Reestimate { .. } => self.actions.reestimated += 1,
                Action::Delete { .. } => self.actions.deleted += 1,
                Action::Swap { .. } => self.actions.swapped += 1,
            }
        }
    }
}

impl<'p> Run<'p> for Search<'p> {
    fn step(&mut self, work: &Workspace<'p>) -> Result<Option<Status>> {
        match self.phase {
            Phase::First => self.phase = Phase::Bound,
            Phase::Bound => self.bounded(work)?,
            Phase::Settle => self.settle(work)?,
            Phase::TopDown => self.top_down(work)?,
            Phase::Climb => {
                let more = self.climb(work)? && !self.slow;
                if !more && !self.try_all(work) {
                    self.excursion(work)?;
                }
            }
            Phase::Held => {
                if !self.climb(work)? {
                    self.free(work)?;
                }
            }
            Phase::Freed => {
                if !self.climb(work)? {
                    self.judge(work)?;
                }
            }
            Phase::Done => {}
        }
        let status = if self.full { Status::MemoryLimit } else { Status::Converged };
        Ok((self.phase == Phase::Done).then_some(status))
    }

    fn best(&self) -> &Solution {
        self.kept.as_ref().unwrap_or(&self.now)
    }

    fn objective(&self, work: &Workspace<'p>) -> f64 {
        work.problem.log_evidence_out(self.best().log_evidence)
    }

    fn certificate(&self, work: &Workspace<'p>, late: bool) -> Certificate {
        let best = self.best();
        let largest_gain = (!late).then(|| {
            // What is kept on many rows is that of the model, or next to it.
            let kept = self.factor.as_ref().filter(|factor| self.many && factor.active() == best.active);
            let made = kept.is_none().then(|| Factor::new(work.quadratic(best), best, &work.problem.table.noise, work.prior));
            let factor = kept.or(made.as_ref()).expect("kept or made");
            let gain = factor.best_action(0.0, &self.barred, true).map_or(0.0, |(_, gain)| gain);
            let swap = match self.settings.swaps {
                true => factor.swaps(0.0, &self.barred).first().map_or(0.0, |(_, gain)| *gain),
                false => 0.0,
            };
            gain.max(swap)
        });
        let gradient = best.largest_gradient();
        let reason = match self.phase {
            Phase::Done if self.settings.joint && gradient > STATIONARY => {
                format!("{}; the largest gradient is still {gradient:.1e}", self.reason)
            }
            Phase::Done => self.reason.to_string(),
            _ => "ended before the search was over".to_string(),
        };
        Certificate { largest_gain, largest_gradient: gradient, reason }
    }

    fn actions(&self) -> Actions {
        self.actions.clone()
    }
}
