//! One run of the sequential scheme: a search for the active set of highest evidence.
//!
//! Start (top-down where all columns can be afforded), then climb: a batch of the best actions by
//! exact gain, a joint step of all precisions, the true evidence, accept or undo. When nothing gains
//! any more, make an excursion: hold the noise low (the model grows over-complete) or high (it
//! shrinks), free the noise, climb again, and keep what is better.

mod actions;
mod excursion;
mod held;
mod joint;
mod look;
mod start;

use excursion::Excursion;

use super::batch::{Batch, MAX_HALVINGS, Rule};
use super::factor::{Action, Factor};
use super::gain::Noise;
use super::laplace;
use super::scheme::{Aim, Hyperpriors, Run, Scheme};
use super::sequential::Sequential;
use super::solution::{AMPLE, Solution};
use super::workspace::Workspace;
use crate::error::Result;
use crate::report::{Actions, Certificate, Status};

/// Up to this many columns the search can afford to be thorough, beyond it has to be brisk.
const THOROUGH_COLUMNS: usize = 500;
const THOROUGH: Effort =
    Effort { top_down_step: 2.0, excursions: &[Excursion::Noise(4.0), Excursion::Noise(0.25), Excursion::Anew] };
const BRISK: Effort =
    Effort { top_down_step: 4.0, excursions: &[Excursion::Noise(3.0), Excursion::Noise(0.25), Excursion::Anew] };
/// In one part of many the way to a fuller model is what the next parts can do most with.
const FULLER: Effort = Effort { excursions: &[Excursion::Noise(3.0)], ..BRISK };
const FULLEST: Effort = Effort { excursions: &[Excursion::Noise(6.0)], ..BRISK };
/// A search that is only to find candidates takes long steps; beyond so many columns in the model its actions
/// gain at least so many nats, and it takes no pains to end in an optimum.
const ROUGH_STEP: f64 = 6.0;
const ROUGH_COLUMNS: usize = 50;
const ROUGH_TOLERANCE: f64 = 0.3;
/// Joint steps end when no log precision moves by more than this: first loosely, then tightly, and
/// at the very end so that two ways to the same optimum meet.
const LOOSE: f64 = 1e-2;
const TIGHT: f64 = 1e-5;
const POLISH: f64 = 1e-9;
/// The largest gradient that counts as stationary.
const STATIONARY: f64 = 1e-3;
/// The model that an excursion passes through is only a way: actions gain at least this many nats. Where what is
/// found is passed on, it is left as well once a round gains less than this share of the best.
const HELD_TOLERANCE: f64 = 0.1;
const HELD_SHARE: f64 = 0.02;
/// Beyond so many columns in the model all that is done to it is dear, and what is left to gain is small beside
/// the evidence: no excursions, and a round of actions has to gain this many nats for each row.
const HEAVY: usize = 400;
const HEAVY_ROUND: f64 = 1e-5;
/// Relative rounding of the log evidence: a step must gain more.
const ROUNDING: f64 = 1e-10;

/// What the search does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// The model of a sample, now of all rows.
    Found,
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

/// How much evidence is sought for how much time.
#[derive(Debug, Clone, Copy)]
struct Effort {
    /// Longest step in a log precision of the top-down start.
    top_down_step: f64,
    /// The ways out of an optimum, the first first.
    excursions: &'static [Excursion],
}

impl Effort {
    /// Without beginning anew: the model that goes from part to part has seen more candidates than any one has.
    fn of_model(self) -> Effort {
        let from_model = self.excursions.iter().take_while(|way| matches!(way, Excursion::Noise(_))).count();
        Effort { excursions: &self.excursions[..from_model], ..self }
    }
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
    /// Under several outputs: the evidence from which joint steps are tried again.
    rest: f64,
    /// Under several outputs, and on many rows: columns whose deletion has failed, and the evidence from which it is tried again.
    needed: Vec<(usize, f64)>,
    /// Rules of joint steps that have lately overshot.
    refused: usize,
    /// Whether the curvature moves with the weights, so that gains are estimates.
    moving: bool,
    /// Actions undone since the last that was not.
    futile: usize,
    /// What the last round gained is not worth another.
    slow: bool,
    /// Whether the rows are so many that looking at them costs more than all else.
    many: bool,
    /// Whether the curvature may be held for more than one batch.
    holds: bool,
    /// Whether the start with bounded curvature was tried, or need not be.
    tried_all: bool,
    /// What the last batch of actions promised to gain.
    promised: f64,
    /// S of each column over its square when it was last looked at, `[P]`.
    outside: Vec<f64>,
    /// Looks at the candidates since the phase began.
    looks: usize,
    /// The best model while an excursion is under way.
    kept: Option<Solution>,
    /// Whether the model is one from which no action gains, but for those that failed; else an excursion comes first.
    climbed: bool,
    /// The most that a round has gained since the noise is held.
    best_rise: f64,
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
/// So many actions in a row that were undone, each the most promising left: where the curvature moves that is rest.
const FUTILE: usize = 12;
/// In an ample model each try is dear, and fewer in vain are rest.
const LEAST_FUTILE: usize = 2;
/// And so much of what an action must promise it must keep.
const WORTHWHILE: f64 = 0.1;

impl<'p> Search<'p> {
    /// Takes actions; false if none is left that gains.
    fn climb(&mut self, work: &Workspace<'p>) -> Result<bool> {
        if work.problem.table.bias_only {
            return Ok(false);
        }
        // V of the model, its copy on trial, and rows of G; the dense matrices of a solve.
        let (m, p) = (self.now.active.len() as u64 + self.longest_batch(work) as u64, self.barred.len() as u64);
        if 8 * m * 3 * p + work.problem.dense_bytes(m) > work.problem.room() {
            self.full = true;
            return Ok(false);
        }
        let least = self.least_gain(work);
        if self.factor.is_none() {
            self.factor = Some(self.look(work)?);
        }
        let mut trial = self.factor.clone().expect("made above");
        let mut taken = if self.is_futile() { vec![] } else { self.take_batch(work, &mut trial, least) };
        if taken.is_empty() {
            return Ok(self.look_at_all() || self.tighten(work, least)?);
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
            self.best_rise = self.best_rise.max(rise);
            let slow = match self.phase {
                Phase::Held => self.aim.is_passing() && rise < HELD_SHARE * self.best_rise,
                _ => self.is_slow(work, rise) && !(self.many && self.single),
            };
            self.slow = slow && !self.look_further(slow);
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

    fn enter(&mut self, phase: Phase, noise: Vec<Noise>, now: Solution) {
        self.phase = phase;
        self.noise = noise;
        self.now = now;
        self.factor = None;
        self.barred.fill(false);
        self.single = false;
        self.futile = 0;
        self.slow = false;
        self.best_rise = 0.0;
        self.joint_tolerance = LOOSE;
        self.looks = 0;
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
            Phase::Found => self.phase = Phase::Climb,
            Phase::First => self.phase = Phase::Bound,
            Phase::Bound => self.bounded(work)?,
            Phase::Settle => self.settle(work)?,
            Phase::TopDown => self.top_down(work)?,
            Phase::Climb if !self.climbed => self.excursion(work)?,
            Phase::Climb => {
                let more = self.climb(work)? && !self.slow;
                if !more && !self.try_all(work) {
                    self.excursion(work)?;
                }
            }
            Phase::Held => {
                if !self.climb(work)? || self.slow {
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
        let scored = || {
            // What is kept on many rows is that of the model, or next to it.
            let kept = self.factor.as_ref().filter(|factor| self.many && factor.active() == best.active);
            let made = match kept {
                Some(kept) => kept.complete(),
                None => work.quadratic(best).ok().map(|form| Factor::new(form, best, &work.problem.table.noise, work.prior)),
            };
            // Neither kept nor made: the rows could not be read, and the next look at them says why.
            let factor = made.as_ref().or(kept)?;
            let gain = factor.best_action(0.0, &self.barred, true).map_or(0.0, |(_, gain)| gain);
            let swap = match self.settings.swaps {
                true => factor.swaps(0.0, &self.barred).first().map_or(0.0, |(_, gain)| *gain),
                false => 0.0,
            };
            Some(gain.max(swap))
        };
        let largest_gain = if late { None } else { scored() };
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
