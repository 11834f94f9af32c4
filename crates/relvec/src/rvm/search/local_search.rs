//! The search for the active set of highest evidence.
//!
//! Start from all columns at once, which settle to few; then in turn, until no single action gains:
//!
//! ```text
//! grow     columns come, the one of largest exact gain first, each conditional on those before it      (M8), (M10)
//! settle   all precisions move together until they rest; what gains by leaving leaves                   (M6), (M11)
//! keep     the larger model if its evidence, less what its kernels cost, is higher                      (M56)
//! ```
//!
//! An excursion follows: the noise is held low, so that the model grows over-complete, then free again, and the better model is
//! kept. A model that has learned nothing gives way to what MacKay's fixed point leads to. Where the curvature moves with the weights, single basis functions are judged on the quadratic form at the mode and the
//! true evidence decides; the first rounds cost nothing for a kernel, since of functions that separate classes only together one
//! alone may not pay. They start with the bias alone, then with the dense model, and the better model goes on.

use crate::error::{Error, Result};
use crate::report::{Actions, Certificate, Status};
use crate::rvm::data::noise::{NoisePrecision, typical};
use crate::rvm::evidence::active_factor::{Action, ActiveFactor};
use crate::rvm::evidence::active_posterior::{ActivePosterior, NoiseChoice};
use crate::rvm::evidence::column_gain::SparsityPrior;
use crate::rvm::evidence::empty;
use crate::rvm::evidence::solver::EvidenceSolver;
use crate::rvm::search::fit_run::{Effort, FitRun, SearchStart};
use crate::rvm::search::grow::grow;
use crate::rvm::search::initial_model;
use crate::rvm::search::joint_updates::JointUpdates;
use crate::rvm::settings::policy::Policy;
use crate::rvm::settings::scheme::{SchemeSettings, Start};
use crate::rvm::settings::search::Search;

/// What a round must gain, of what an action must: less is a change of digits.
const KEPT: f64 = 0.1;
/// Another excursion follows one that has gained more.
const EXCURSION: f64 = 0.05;
/// At last precisions rest when no step gains more, so that two ways to one optimum meet.
const POLISH: f64 = 1e-10;
/// The largest gradient that counts as stationary.
const STATIONARY: f64 = 1e-3;
/// Copies of V and of rows of G that a round holds.
const COPIES: u64 = 3;

/// What the search does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// The dense model.
    Start,
    /// It settles.
    Settle,
    /// Rounds in which kernels cost nothing.
    Free,
    Climb,
    /// Rounds with the noise held low, and with the noise free again.
    Held,
    Freed,
    Done,
}

/// One run of the search.
pub(crate) struct LocalSearch {
    settings: Search,
    aim: Effort,
    stage: Stage,
    noise: Vec<NoisePrecision>,
    now: ActivePosterior,
    /// The model that an excursion has left.
    kept: Option<ActivePosterior>,
    /// The model that the first start has led to, once there is a second.
    first: Option<ActivePosterior>,
    /// Whether a start from the fixed point has been made, after which there is no other.
    resorted: bool,
    /// Excursions that are left.
    excursions: usize,
    /// Most columns of the next round.
    batch: usize,
    /// Columns whose action was undone since the last that was kept, `[P]`, and how many were.
    tabu: Vec<bool>,
    futile: usize,
    /// The model has no room to grow in the memory allowed.
    full: bool,
    /// Whether the precisions have come to rest to the last digits.
    polished: bool,
    actions: Actions,
}

impl LocalSearch {
    pub(crate) fn start(solver: &EvidenceSolver, settings: &Search, entry: &SearchStart) -> Result<LocalSearch> {
        let problem = solver.problem;
        let noise = problem.training.noise.clone();
        let at_first = || noise.iter().map(|noise| noise.precision(1.0, 1.0)).collect();
        let bias = || {
            let (columns, alpha) = bias_alone(solver);
            (columns, alpha, at_first())
        };
        let ((active, alpha, beta), stage) = match (&entry.from, &settings.start) {
            _ if problem.training.bias_only => (bias(), Stage::Done),
            (Some(warm), _) => {
                let unit = typical(&warm.beta);
                ((warm.columns(solver), warm.a.iter().map(|a| a * unit).collect(), warm.beta.clone()), Stage::Climb)
            }
            (None, Start::Given(given)) => (problem.inner(given)?, Stage::Climb),
            (None, Start::Empty) => ((vec![], vec![], at_first()), Stage::Climb),
            (None, Start::Auto) if solver.curvature_moves() => (bias(), Stage::Free),
            (None, Start::Auto) => (bias(), Stage::Start),
        };
        let mut order: Vec<usize> = (0..active.len()).collect();
        order.sort_by_key(|i| active[*i]);
        let unit = typical(&beta);
        let a: Vec<f64> = order.iter().map(|i| alpha[*i] / unit).collect();
        let active: Vec<usize> = order.iter().map(|i| active[*i]).collect();
        // The mode of several classes is far to seek, but for who has been there.
        let warm = entry.from.as_ref();
        let there = warm.and_then(|warm| warm.mode.as_ref()).filter(|mode| mode.active.len() == active.len());
        let there = there.map(|mode| ActivePosterior::clone(mode).renamed(active.clone(), None));
        let now = match there {
            Some(there) if there.a == a => there,
            there => solver.solve(&active, &a, &noise, NoiseChoice::Best, there.as_ref())?,
        };
        let excursions = match entry.aim {
            Effort::Rest => 0,
            Effort::Brief => settings.excursions.min(1),
            Effort::Thorough => settings.excursions,
        };
        let mut running = LocalSearch {
            settings: settings.clone(),
            aim: entry.aim,
            stage,
            noise,
            now,
            kept: None,
            first: None,
            resorted: false,
            excursions,
            batch: settings.policy.batch,
            tabu: vec![false; problem.design.n_columns()],
            futile: 0,
            full: false,
            polished: false,
            actions: Actions::default(),
        };
        if warm.is_some() && entry.aim == Effort::Brief && running.can_leave(solver) {
            running.leave(solver)?;
        }
        Ok(running)
    }

    /// One round: what gains comes, all settles, and what has not raised the evidence is undone. False where nothing gains.
    fn round(&mut self, solver: &EvidenceSolver) -> Result<bool> {
        let least = self.least(solver);
        let spent = solver.curvature_moves() && self.futile >= self.settings.policy.futile;
        if spent || self.now.active.is_empty() && solver.problem.training.bias_only || !self.has_room(solver) {
            return Ok(false);
        }
        let most = (least, self.batch);
        let grown = match grow(solver, &self.noise, &self.settings.policy, &self.now, most, &self.tabu) {
            Err(Error::Singular { .. }) if self.batch > 1 => {
                self.batch = 1;
                return Ok(true);
            }
            grown => grown?,
        };
        let Some((mut next, taken)) = grown else { return Ok(false) };
        match self.stage {
            // The way to an over-complete model is not worth its last digits.
            Stage::Held => self.settling(|settling| settling.joint(solver, &mut next, f64::INFINITY, 1))?,
            _ => self.settling(|settling| settling.settle(solver, &mut next))?,
        }
        if next.log_evidence > self.now.log_evidence + KEPT * least {
            self.actions.count(&taken);
            self.now = next;
            self.look_anew();
            return Ok(true);
        }
        self.actions.undone += 1;
        self.futile += 1;
        match taken[..] {
            [action] => self.tabu[action.column()] = true,
            _ => self.batch = 1,
        }
        Ok(true)
    }

    /// Every action may be tried, many at a time.
    fn look_anew(&mut self) {
        self.batch = self.settings.policy.batch;
        self.tabu.fill(false);
        self.futile = 0;
    }

    fn settling(&mut self, settle: impl FnOnce(&mut JointUpdates) -> Result<()>) -> Result<()> {
        settle(&mut JointUpdates { noise: &self.noise, policy: &self.settings.policy, actions: &mut self.actions })
    }

    fn settle(&mut self, solver: &EvidenceSolver) -> Result<()> {
        let LocalSearch { settings, noise, now, actions, .. } = self;
        JointUpdates { noise, policy: &settings.policy, actions }.settle(solver, now)
    }

    /// Nats that an action must gain.
    fn least(&self, solver: &EvidenceSolver) -> f64 {
        let least = self.settings.least_gain(solver.problem.training.count, self.now.is_ample());
        if self.stage == Stage::Held { least.max(self.settings.policy.excursion_gain) } else { least }
    }

    /// Whether the dense matrices of a larger model fit into the memory allowed; of one column more where a batch does not.
    fn has_room(&mut self, solver: &EvidenceSolver) -> bool {
        let (now, p) = (self.now.active.len(), self.tabu.len() as u64);
        let fits = |more: &usize| {
            let m = (now + more) as u64;
            8 * m * COPIES * p + solver.problem.dense_bytes(m) <= solver.problem.room()
        };
        let batch = [self.batch, 1].into_iter().find(fits);
        self.batch = batch.unwrap_or(self.batch);
        self.full = batch.is_none();
        !self.full
    }

    /// Whether another start is left to try.
    fn may_begin_anew(&self) -> bool {
        self.settings.start == Start::Auto && self.first.is_none() && self.aim != Effort::Brief
    }

    /// Restarts from a dense model, in rounds without a penalty per kernel.
    fn begin_anew(&mut self, solver: &EvidenceSolver) -> Result<()> {
        self.first = Some(self.now.clone());
        let mut dense = initial_model::dense(solver, &self.noise)?;
        let free = solver.with_prior(SparsityPrior::FLAT);
        dense.log_evidence -= solver.prior.log(&dense.active);
        self.settling(|settling| settling.settle(&free, &mut dense))?;
        dense.log_evidence += solver.prior.log(&dense.active);
        self.now = dense;
        self.look_anew();
        self.stage = Stage::Free;
        Ok(())
    }

    /// Whether the fixed point is left to try for a model that has learned nothing.
    fn may_resort(&self, solver: &EvidenceSolver) -> Result<bool> {
        let may = self.settings.start == Start::Auto && !self.resorted && self.aim != Effort::Brief;
        Ok(may && empty::has_nothing(solver, &self.now)?)
    }

    /// Restarts from MacKay's fixed point.
    fn resort(&mut self, solver: &EvidenceSolver) -> Result<()> {
        self.resorted = true;
        self.take_better_start();
        let found = initial_model::fixed_point(solver, &self.noise)?;
        self.first = Some(std::mem::replace(&mut self.now, found));
        self.settle(solver)?;
        self.look_anew();
        Ok(())
    }

    /// The better of the models that two starts have led to goes on.
    fn take_better_start(&mut self) {
        if let Some(first) = self.first.as_ref().filter(|first| first.log_evidence >= self.now.log_evidence) {
            self.now = first.clone();
        }
    }

    fn can_leave(&self, solver: &EvidenceSolver) -> bool {
        self.excursions > 0
            && !solver.curvature_moves()
            && self.noise.iter().any(NoisePrecision::is_learnt)
            && !self.now.active.is_empty()
    }

    /// Begins an excursion from the model.
    fn leave(&mut self, solver: &EvidenceSolver) -> Result<()> {
        let factor = self.settings.policy.excursion_noise;
        let held: Vec<NoisePrecision> = self.now.beta.iter().map(|beta| NoisePrecision::Fixed(factor * beta)).collect();
        let a: Vec<f64> = self.now.a.iter().map(|a| a / factor).collect();
        let next = solver.solve(&self.now.active, &a, &held, NoiseChoice::Best, Some(&self.now))?;
        self.kept = Some(std::mem::replace(&mut self.now, next));
        self.noise = held;
        self.excursions -= 1;
        self.stage = Stage::Held;
        self.look_anew();
        Ok(())
    }

    /// The noise is free again.
    fn free_noise(&mut self, solver: &EvidenceSolver) -> Result<()> {
        self.noise.clone_from(&solver.problem.training.noise);
        self.now = solver.solve(&self.now.active, &self.now.a, &self.noise, NoiseChoice::Best, Some(&self.now))?;
        self.stage = Stage::Freed;
        self.look_anew();
        self.settle(solver)
    }

    /// The excursion is over: the better of both models stays, and another excursion follows one that has helped.
    fn judge(&mut self, solver: &EvidenceSolver) -> Result<()> {
        let kept = self.kept.take().expect("an excursion keeps the model that it left");
        let rise = self.now.log_evidence - kept.log_evidence;
        if rise <= 0.0 {
            self.now = kept;
        }
        self.look_anew();
        if rise > EXCURSION && self.can_leave(solver) { self.leave(solver) } else { self.end(solver) }
    }

    /// The last digits, so that two ways to one optimum meet; and a last look at whether anything gains then.
    fn end(&mut self, solver: &EvidenceSolver) -> Result<()> {
        (self.stage, self.excursions) = (Stage::Done, 0);
        self.take_better_start();
        if solver.curvature_moves() || self.aim == Effort::Brief {
            return Ok(());
        }
        if !self.polished {
            (self.stage, self.polished) = (Stage::Climb, true);
        }
        let LocalSearch { settings, noise, now, actions, .. } = self;
        JointUpdates { noise, policy: &Policy { rise: POLISH, ..settings.policy }, actions }.settle(solver, now)
    }
}

/// The bias, if there is one, and its first precision.
fn bias_alone(solver: &EvidenceSolver) -> (Vec<usize>, Vec<f64>) {
    let columns = if solver.problem.has_bias { vec![0] } else { vec![] };
    let alpha = solver.problem.first_precisions(&columns, 1.0 / solver.problem.training.count);
    (columns, alpha)
}

impl<'p> FitRun<'p> for LocalSearch {
    fn step(&mut self, solver: &EvidenceSolver<'p>) -> Result<Option<Status>> {
        match self.stage {
            Stage::Start => {
                self.now = initial_model::dense(solver, &self.noise)?;
                self.stage = Stage::Settle;
            }
            Stage::Settle => {
                self.settle(solver)?;
                self.stage = Stage::Climb;
            }
            Stage::Free => {
                // Here the evidence is without what kernels cost.
                let free = solver.with_prior(SparsityPrior::FLAT);
                self.now.log_evidence -= solver.prior.log(&self.now.active);
                let more = self.round(&free);
                self.now.log_evidence += solver.prior.log(&self.now.active);
                if !more? {
                    // Of many rows each mode takes long: another start is made only if the first has led to nothing.
                    let many = solver.problem.has_many_entries();
                    if solver.curvature_moves() && !many && self.may_begin_anew() {
                        self.begin_anew(solver)?;
                    } else {
                        self.take_better_start();
                        self.stage = Stage::Settle;
                        self.look_anew();
                    }
                }
            }
            Stage::Climb => {
                if !self.round(solver)? {
                    if self.may_begin_anew() && empty::has_nothing(solver, &self.now)? {
                        self.begin_anew(solver)?;
                    } else if self.may_resort(solver)? {
                        self.resort(solver)?;
                    } else if self.can_leave(solver) && !self.full {
                        self.leave(solver)?;
                    } else {
                        self.end(solver)?;
                    }
                }
            }
            Stage::Held => {
                if !self.round(solver)? {
                    self.free_noise(solver)?;
                }
            }
            Stage::Freed => {
                if !self.round(solver)? {
                    self.judge(solver)?;
                }
            }
            Stage::Done => {}
        }
        let status = if self.full { Status::MemoryLimit } else { Status::Converged };
        Ok((self.stage == Stage::Done).then_some(status))
    }

    fn best(&self) -> &ActivePosterior {
        let left = self.kept.as_ref().or(self.first.as_ref());
        left.filter(|left| left.log_evidence >= self.now.log_evidence || self.stage == Stage::Held).unwrap_or(&self.now)
    }

    fn objective(&self, solver: &EvidenceSolver<'p>) -> f64 {
        solver.problem.log_evidence_out(self.best().log_evidence)
    }

    fn certificate(&self, solver: &EvidenceSolver<'p>, late: bool) -> Certificate {
        let best = self.best();
        let scored = || {
            // Where the rows could not be read the next look at them says why.
            let form = solver.quadratic(best).ok()?;
            let factor = ActiveFactor::new(form, best, &solver.problem.training.noise, solver.prior);
            Some(factor.best_action(0.0, &self.tabu, true).map_or(0.0, |(_, gain)| gain))
        };
        let largest_gain = if late { None } else { scored() };
        let largest_gradient = best.largest_gradient();
        let rest = match self.stage {
            Stage::Done if self.full => "the memory limit leaves the model no room to grow",
            Stage::Done if self.futile >= self.settings.policy.futile => {
                "several actions in a row, each the most promising, have not raised the evidence by enough"
            }
            Stage::Done => "no action gains more than the tolerance",
            _ => "ended before the search was over",
        };
        let steep = self.stage == Stage::Done && largest_gradient > STATIONARY;
        let reason = if steep { format!("{rest}; the largest gradient is still {largest_gradient:.1e}") } else { rest.into() };
        Certificate { largest_gain, largest_gradient, reason }
    }

    fn actions(&self) -> Actions {
        self.actions.clone()
    }
}

impl Actions {
    fn count(&mut self, taken: &[Action]) {
        for action in taken {
            match action {
                Action::Add { .. } => self.added += 1,
                Action::Reestimate { .. } => self.reestimated += 1,
                Action::Delete { .. } => self.deleted += 1,
            }
        }
    }
}
