//! The local search for the active set of highest evidence, as in "The search" of docs/math.md.
//!
//! It starts from all columns under one shared precision, and refits them. Then it repeats three steps until no action
//! gains more than the tolerance:
//!
//! ```text
//! grow   add columns, the one of largest exact gain first, each conditional on those before it    (M8), (M10)
//! refit  update all precisions jointly until they converge; delete columns that lower the evidence (M6), (M11)
//! keep   the larger model if its evidence, less the penalty per kernel, is higher                 (M56)
//! ```
//!
//! A noise restart follows. With the noise fixed at a lower variance the model grows over-complete. Then the noise is
//! learned again, the search continues, and the better model is kept. A model that has learned nothing is replaced by
//! the result of MacKay's fixed point if that is better.
//!
//! If the Hessian depends on the weights, gains are those of the quadratic form at the mode, and the Laplace evidence
//! decides. The search then starts with the bias alone and without a penalty per kernel. Single kernels may gain little
//! if only several of them separate the classes. It starts again from a dense model, and continues with the better of
//! both models.

use ndarray::Axis;

use crate::error::{Error, Result};
use crate::report::{Actions, Certificate, Status};
use crate::rvm::data::noise::{NoisePrecision, typical};
use crate::rvm::evidence::active_factor::{Action, ActiveFactor};
use crate::rvm::evidence::active_posterior::{ActivePosterior, NoiseChoice, covariance};
use crate::rvm::evidence::column_gain::{ColumnFactors, Quality, SparsityPrior, by_noise};
use crate::rvm::evidence::precision_updates::{PrecisionUpdate, UpdateRule, without};
use crate::rvm::evidence::solver::EvidenceSolver;
use crate::rvm::search::driver::{FitRun, SearchStart};
use crate::rvm::search::fixed_point;
use crate::rvm::search::sequential::{REJECTED, UNFINISHED};
use crate::rvm::settings::scheme::{Hyperpriors, Policy, SchemeSettings, Search, Start};

/// Rise in nats below which the final joint updates end. It is so small that two paths to one optimum end at equal
/// digits.
const POLISH_RISE: f64 = 1e-10;
/// Number of copies of V, and of rows of G, that one iteration has in memory.
const COPIES: u64 = 3;
/// Gain in nats that a deletion must exceed. Smaller gains are rounding.
const LEAST_GAIN: f64 = 1e-6;
/// Rise of the Laplace evidence in nats below which updates with a frozen Hessian are undone. Smaller rises are not
/// worth another search for the mode.
pub(crate) const LEAST_RISE: f64 = 1e-2;
/// Number of joint updates with a frozen Hessian from which weights are deleted.
const DELETE_FROM: usize = 4;

/// Next step of the search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Build the dense model.
    Initial,
    /// Refit the model.
    Refit,
    /// Grow without a penalty per kernel.
    PenaltyFree,
    /// Grow until no action gains enough.
    LocalSearch,
    /// Grow with the noise fixed at a lower variance.
    NoiseFixed,
    /// Grow with the noise learned again.
    NoiseReleased,
    Done,
}

/// A local search in one working set.
pub(crate) struct LocalSearch {
    settings: Search,
    stage: Stage,
    noise: Vec<NoisePrecision>,
    now: ActivePosterior,
    /// Model before the noise restart that is under way.
    before_restart: Option<ActivePosterior>,
    /// Model that the previous start led to, if there is a second start.
    previous_start: Option<ActivePosterior>,
    /// True if the search has started from MacKay's fixed point, which happens at most once.
    tried_fixed_point: bool,
    /// Number of noise restarts left.
    restarts: usize,
    /// Largest number of columns that the next iteration adds.
    batch: usize,
    /// Column of the last action, if it was a single one and was undone.
    rejected: Option<usize>,
    /// True if a larger model does not fit into the memory limit.
    full: bool,
    /// True if the precisions have been updated to the last digits.
    polished: bool,
    actions: Actions,
}

impl LocalSearch {
    /// Starts a search in the working set of `solver`.
    ///
    /// # Errors
    /// Returns the errors of [`EvidenceSolver::solve`], and an error for given precisions that the problem does not
    /// have.
    pub(crate) fn start(solver: &EvidenceSolver, settings: &Search, entry: &SearchStart) -> Result<LocalSearch> {
        let problem = solver.problem;
        let noise = problem.training.noise.clone();
        let dense = entry.dense && settings.start == Start::Auto;
        let first_beta = || noise.iter().map(|noise| noise.precision(1.0, 1.0)).collect();
        let bias = || {
            let columns = if problem.has_bias { vec![0] } else { vec![] };
            let alpha = problem.first_precisions(&columns, 1.0 / problem.training.count);
            (columns, alpha, first_beta())
        };
        let ((active, alpha, beta), stage) = match (&entry.from, &settings.start) {
            _ if problem.training.bias_only => (bias(), Stage::Done),
            (Some(warm), _) => {
                let unit = typical(&warm.beta);
                let stage = if dense { Stage::Initial } else { Stage::LocalSearch };
                ((warm.columns(solver), warm.a.iter().map(|a| a * unit).collect(), warm.beta.clone()), stage)
            }
            (None, Start::Given(given)) => (problem.inner(given)?, Stage::LocalSearch),
            (None, Start::Empty) => ((vec![], vec![], first_beta()), Stage::LocalSearch),
            (None, Start::Auto) if solver.hessian_varies() => (bias(), Stage::PenaltyFree),
            (None, Start::Auto) => (bias(), Stage::Initial),
        };
        let mut order: Vec<usize> = (0..active.len()).collect();
        order.sort_by_key(|i| active[*i]);
        let unit = typical(&beta);
        let a: Vec<f64> = order.iter().map(|i| alpha[*i] / unit).collect();
        let active: Vec<usize> = order.iter().map(|i| active[*i]).collect();
        // The mode of several classes is expensive to find, so that a known one is the starting point.
        let warm = entry.from.as_ref();
        let mode = warm.and_then(|warm| warm.mode.as_ref()).filter(|mode| mode.active.len() == active.len());
        let mode = mode.map(|mode| ActivePosterior::clone(mode).renamed(active.clone()));
        let now = match mode {
            Some(mode) if mode.a == a => mode,
            mode => solver.solve(&active, &a, &noise, NoiseChoice::Best, mode.as_ref())?,
        };
        let restarts = if entry.restarts { settings.restarts } else { 0 };
        Ok(LocalSearch {
            settings: settings.clone(),
            stage,
            noise,
            previous_start: dense.then(|| now.clone()),
            now,
            before_restart: None,
            tried_fixed_point: false,
            restarts,
            batch: settings.policy.batch,
            rejected: None,
            full: false,
            polished: false,
            actions: Actions::default(),
        })
    }

    /// Grows and refits the model, and keeps it if its log evidence is higher. Returns false if no action gains enough.
    fn improve(&mut self, solver: &EvidenceSolver) -> Result<bool> {
        let least = self.least_gain(solver);
        let bias_only = self.now.active.is_empty() && solver.problem.training.bias_only;
        if bias_only || !self.has_room(solver) {
            return Ok(false);
        }
        let grown = match grow(solver, &self.noise, &self.settings.policy, &self.now, (least, self.batch)) {
            Err(Error::Singular { .. }) if self.batch > 1 => {
                self.batch = 1;
                return Ok(true);
            }
            grown => grown?,
        };
        let Some((mut next, taken)) = grown else { return Ok(false) };
        match self.stage {
            // An over-complete model is only a way to a better one, and need not converge.
            Stage::NoiseFixed => self.updates().joint(solver, &mut next, f64::INFINITY, 1)?,
            _ => self.updates().refit(solver, &mut next)?,
        }
        if next.log_evidence > self.now.log_evidence + least {
            self.actions.count(&taken);
            self.now = next;
            self.allow_batches();
            return Ok(true);
        }
        // After several additions that were undone, the next iteration takes one action. It is the last one.
        self.actions.undone += 1;
        self.rejected = match taken[..] {
            [action] => Some(action.column()),
            _ => None,
        };
        self.batch = 1;
        Ok(self.rejected.is_none())
    }

    /// Grows and refits the model without a penalty per kernel. Returns false if no action gains enough.
    fn improve_without_penalty(&mut self, solver: &EvidenceSolver) -> Result<bool> {
        let free = solver.with_prior(SparsityPrior::default());
        self.now.log_evidence -= solver.prior.log(&self.now.active);
        let improved = self.improve(&free);
        self.now.log_evidence += solver.prior.log(&self.now.active);
        improved
    }

    /// Allows the next iteration a whole batch of additions.
    fn allow_batches(&mut self) {
        self.batch = self.settings.policy.batch;
        self.rejected = None;
    }

    fn updates(&mut self) -> JointUpdates<'_> {
        JointUpdates { noise: &self.noise, policy: &self.settings.policy, actions: &mut self.actions }
    }

    /// Refits the present model.
    fn refit(&mut self, solver: &EvidenceSolver) -> Result<()> {
        let LocalSearch { settings, noise, now, actions, .. } = self;
        JointUpdates { noise, policy: &settings.policy, actions }.refit(solver, now)
    }

    /// Returns the gain in nats that an action must exceed.
    fn least_gain(&self, solver: &EvidenceSolver) -> f64 {
        let least = self.settings.least_gain(solver.problem.training.count);
        if self.stage == Stage::NoiseFixed { least.max(self.settings.policy.restart_gain) } else { least }
    }

    /// Returns true if the dense matrices of a larger model fit into the memory limit. If there is no room for a batch
    /// but for one column, the batch becomes one column.
    fn has_room(&mut self, solver: &EvidenceSolver) -> bool {
        let (now, p) = (self.now.active.len(), solver.problem.design.n_columns() as u64);
        let fits = |more: &usize| {
            let m = (now + more) as u64;
            8 * m * COPIES * p + solver.problem.dense_bytes(m) <= solver.problem.room()
        };
        let batch = [self.batch, 1].into_iter().find(fits);
        self.batch = batch.unwrap_or(self.batch);
        self.full = batch.is_none();
        !self.full
    }

    /// Continues after growth without a penalty: from the dense model, or with the penalty.
    fn end_penalty_free(&mut self, solver: &EvidenceSolver) -> Result<()> {
        // With many rows each mode takes long: a second start is made only if the first has learned nothing.
        let many = solver.problem.has_many_entries();
        if solver.hessian_varies() && !many && self.may_start_dense() {
            return self.start_dense(solver);
        }
        self.take_better_start();
        self.stage = Stage::Refit;
        self.allow_batches();
        Ok(())
    }

    /// Continues after a search that has converged: from another start, with a noise restart, or not at all.
    fn restart_or_finish(&mut self, solver: &EvidenceSolver) -> Result<()> {
        if self.may_start_dense() && fixed_point::has_nothing(solver, &self.now)? {
            self.start_dense(solver)
        } else if self.may_start_fixed_point(solver)? {
            self.start_fixed_point(solver)
        } else if self.may_restart(solver) && !self.full {
            self.fix_noise(solver)
        } else {
            self.finish(solver)
        }
    }

    /// Returns true if the search may start from the dense model.
    fn may_start_dense(&self) -> bool {
        self.settings.start == Start::Auto && self.previous_start.is_none()
    }

    /// Starts again from the dense model, without a penalty per kernel.
    fn start_dense(&mut self, solver: &EvidenceSolver) -> Result<()> {
        self.previous_start = Some(self.now.clone());
        let mut dense = fixed_point::dense(solver, &self.noise)?;
        let free = solver.with_prior(SparsityPrior::default());
        dense.log_evidence -= solver.prior.log(&dense.active);
        self.updates().refit(&free, &mut dense)?;
        dense.log_evidence += solver.prior.log(&dense.active);
        self.now = dense;
        self.allow_batches();
        self.stage = Stage::PenaltyFree;
        Ok(())
    }

    /// Returns true if the model has learned nothing and the search may start from MacKay's fixed point.
    fn may_start_fixed_point(&self, solver: &EvidenceSolver) -> Result<bool> {
        let may = self.settings.start == Start::Auto && !self.tried_fixed_point;
        Ok(may && fixed_point::has_nothing(solver, &self.now)?)
    }

    /// Starts again from MacKay's fixed point.
    fn start_fixed_point(&mut self, solver: &EvidenceSolver) -> Result<()> {
        self.tried_fixed_point = true;
        self.take_better_start();
        let found = fixed_point::mackay(solver, &self.noise)?;
        self.previous_start = Some(std::mem::replace(&mut self.now, found));
        self.refit(solver)?;
        self.allow_batches();
        Ok(())
    }

    /// Continues with the model of the previous start if it is at least as good.
    fn take_better_start(&mut self) {
        if let Some(previous) = self.previous_start.as_ref().filter(|previous| previous.log_evidence >= self.now.log_evidence) {
            self.now = previous.clone();
        }
    }

    /// Returns true if a noise restart is possible: one is left, and the noise of a model that is not empty is learned.
    fn may_restart(&self, solver: &EvidenceSolver) -> bool {
        self.restarts > 0
            && !solver.hessian_varies()
            && self.noise.iter().any(NoisePrecision::is_learned)
            && !self.now.active.is_empty()
    }

    /// Begins a noise restart: fixes the noise precision at a multiple of its value.
    fn fix_noise(&mut self, solver: &EvidenceSolver) -> Result<()> {
        let factor = self.settings.policy.restart_noise;
        let fixed: Vec<NoisePrecision> = self.now.beta.iter().map(|beta| NoisePrecision::Fixed(factor * beta)).collect();
        let a: Vec<f64> = self.now.a.iter().map(|a| a / factor).collect();
        let next = solver.solve(&self.now.active, &a, &fixed, NoiseChoice::Best, Some(&self.now))?;
        self.before_restart = Some(std::mem::replace(&mut self.now, next));
        self.noise = fixed;
        self.restarts -= 1;
        self.stage = Stage::NoiseFixed;
        self.allow_batches();
        Ok(())
    }

    /// Continues a noise restart with the noise learned again.
    fn release_noise(&mut self, solver: &EvidenceSolver) -> Result<()> {
        self.noise.clone_from(&solver.problem.training.noise);
        self.now = solver.solve(&self.now.active, &self.now.a, &self.noise, NoiseChoice::Best, Some(&self.now))?;
        self.stage = Stage::NoiseReleased;
        self.allow_batches();
        self.refit(solver)
    }

    /// Ends a noise restart: keeps the better of both models. If the restart has helped, another one follows.
    fn end_restart(&mut self, solver: &EvidenceSolver) -> Result<()> {
        let before = self.before_restart.take().expect("a restart keeps the model before it");
        let rise = self.now.log_evidence - before.log_evidence;
        if rise <= 0.0 {
            self.now = before;
        }
        self.allow_batches();
        let helps = rise > self.settings.policy.restart_gain;
        if helps && self.may_restart(solver) { self.fix_noise(solver) } else { self.finish(solver) }
    }

    /// Takes the better start, and updates the precisions to the last digits. The first time, the local search then
    /// checks once more that no action gains enough.
    fn finish(&mut self, solver: &EvidenceSolver) -> Result<()> {
        (self.stage, self.restarts) = (Stage::Done, 0);
        self.take_better_start();
        if solver.hessian_varies() {
            return Ok(());
        }
        if !self.polished {
            (self.stage, self.polished) = (Stage::LocalSearch, true);
        }
        let LocalSearch { settings, noise, now, actions, .. } = self;
        JointUpdates { noise, policy: &Policy { rise: POLISH_RISE, ..settings.policy }, actions }.refit(solver, now)
    }
}

impl<'p> FitRun<'p> for LocalSearch {
    fn step(&mut self, solver: &EvidenceSolver<'p>) -> Result<Option<Status>> {
        let stage = self.stage;
        match stage {
            Stage::Initial if solver.hessian_varies() => self.start_dense(solver)?,
            Stage::Initial => {
                self.now = fixed_point::dense(solver, &self.noise)?;
                self.stage = Stage::Refit;
            }
            Stage::Refit => {
                self.refit(solver)?;
                self.stage = Stage::LocalSearch;
            }
            Stage::PenaltyFree if !self.improve_without_penalty(solver)? => self.end_penalty_free(solver)?,
            Stage::LocalSearch if !self.improve(solver)? => self.restart_or_finish(solver)?,
            Stage::NoiseFixed if !self.improve(solver)? => self.release_noise(solver)?,
            Stage::NoiseReleased if !self.improve(solver)? => self.end_restart(solver)?,
            // The stage has improved the model, or the search has ended.
            _ => {}
        }
        let status = if self.full { Status::MemoryLimit } else { Status::Converged };
        Ok((self.stage == Stage::Done).then_some(status))
    }

    fn best(&self) -> &ActivePosterior {
        let other = self.before_restart.as_ref().or(self.previous_start.as_ref());
        let better = |other: &&ActivePosterior| other.log_evidence >= self.now.log_evidence || self.stage == Stage::NoiseFixed;
        other.filter(better).unwrap_or(&self.now)
    }

    fn objective(&self, solver: &EvidenceSolver<'p>) -> f64 {
        solver.problem.log_evidence_out(self.best().log_evidence)
    }

    fn certificate(&self, solver: &EvidenceSolver<'p>, late: bool) -> Certificate {
        let best = self.best();
        let factor = || ActiveFactor::new(solver.quadratic(best), best, &solver.problem.training.noise, solver.prior);
        let largest_gain = (!late).then(|| factor().largest_gain(self.rejected.as_slice()));
        let largest_gradient = best.largest_gradient();
        let reason = match self.stage {
            Stage::Done if self.full => "the memory limit leaves the model no room to grow",
            Stage::Done if self.rejected.is_some() => REJECTED,
            Stage::Done => "no action gains more than the tolerance",
            _ => UNFINISHED,
        };
        let steep = self.stage == Stage::Done && largest_gradient > self.settings.tolerance;
        let gradient = if steep { format!("; the largest gradient is still {largest_gradient:.1e}") } else { String::new() };
        Certificate { largest_gain, largest_gradient, reason: format!("{reason}{gradient}") }
    }

    fn actions(&self) -> Actions {
        self.actions.clone()
    }
}

/// Adds up to `most` columns, each of which gains more than `least` nats in the quadratic form at the mode of `now`.
///
/// If no addition gains so much, it takes the best re-estimation or deletion instead. Returns the model and the actions
/// taken, or `None` if no action gains more than `least`.
///
/// # Errors
/// Returns the errors of [`EvidenceSolver::solve`].
fn grow(
    solver: &EvidenceSolver,
    noise: &[NoisePrecision],
    policy: &Policy,
    now: &ActivePosterior,
    (least, most): (f64, usize),
) -> Result<Option<(ActivePosterior, Vec<Action>)>> {
    let mut factor = ActiveFactor::new(solver.quadratic(now), now, noise, solver.prior);
    let mut taken: Vec<Action> = factor.add_best(most, least, policy.share).into_iter().map(|(action, _)| action).collect();
    if taken.is_empty() {
        let Some((action, _)) = factor.best_action(least, &[], true) else { return Ok(None) };
        factor.apply(action);
        taken.push(action);
    }
    let mut order: Vec<usize> = (0..factor.active.len()).collect();
    order.sort_by_key(|i| factor.active[*i]);
    let active: Vec<usize> = order.iter().map(|i| factor.active[*i]).collect();
    let a: Vec<f64> = order.iter().map(|i| factor.a[*i]).collect();
    let solution = solver.solve(&active, &a, noise, NoiseChoice::Best, Some(now))?;
    Ok(Some((solution, taken)))
}

/// Prunes the weights whose deletion raises the evidence of `form`, whose Hessian must be constant. Returns `None` if
/// there are none, or if the evidence does not rise without them.
///
/// With d = Sigma_ii, the deletion of weight i leads to Sigma - Sigma_:i Sigma_i: / d, mu - Sigma_:i mu_i / d, and
/// E + mu_i^2 / d, (M11).
///
/// # Errors
/// Returns the errors of [`EvidenceSolver::solve`], except that models that cannot be factorised are skipped.
fn delete(form: &EvidenceSolver, noise: &[NoisePrecision], now: &ActivePosterior) -> Result<Option<ActivePosterior>> {
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

/// Noise, constants and counts for joint updates.
struct JointUpdates<'s> {
    noise: &'s [NoisePrecision],
    policy: &'s Policy,
    actions: &'s mut Actions,
}

impl JointUpdates<'_> {
    /// Updates the precisions of a model and prunes it, until neither raises the evidence.
    ///
    /// # Errors
    /// Returns the errors of [`EvidenceSolver::solve`].
    fn refit(&mut self, solver: &EvidenceSolver, now: &mut ActivePosterior) -> Result<()> {
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
    fn joint(&mut self, solver: &EvidenceSolver, now: &mut ActivePosterior, rise: f64, most: usize) -> Result<()> {
        // Newton's step (M6) holds only for a constant Hessian of the negative log-likelihood.
        let rules: &[UpdateRule] = match solver.hessian_varies() {
            true => &[UpdateRule::Exact, UpdateRule::MacKay, UpdateRule::Em],
            false => &[UpdateRule::Newton, UpdateRule::Exact, UpdateRule::MacKay, UpdateRule::Em],
        };
        let (clip, prune_below) = (self.policy.clip, self.policy.prune_below);
        let update = PrecisionUpdate { rules, hyperpriors: Hyperpriors::default(), clip, prune_below };
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
        loop {
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
