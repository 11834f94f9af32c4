//! Models of all columns: the schemes `em` and `mackay`, which re-estimate all precisions in each iteration, and the
//! initial models of a search, all columns under one shared precision or MacKay's fixed point from all columns. Most
//! columns are pruned when the search refits the model.
//!
//! Another start is tried if a model has learned nothing: if kernels are nearly constant over the rows, no single basis
//! function raises the evidence by much, and a search may end without any.

use crate::canonical::random_subset;
use crate::error::{Error, Result};
use crate::process::kernel::STRUCTURE;
use crate::report::{Actions, Certificate, Status};
use crate::rvm::data::build::DENSE;
use crate::rvm::data::noise::{NoisePrecision, Units, typical};
use crate::rvm::evidence::active_factor::SAME_COSINE;
use crate::rvm::evidence::active_posterior::{ActivePosterior, NoiseChoice};
use crate::rvm::evidence::precision_updates::{PrecisionUpdate, SMALL_CHANGE, UNDETERMINED, UpdateRule};
use crate::rvm::evidence::solver::EvidenceSolver;
use crate::rvm::search::driver::{FitRun, SearchStart};
use crate::rvm::settings::scheme::{Em, Hyperpriors, MOVING_MOST, MacKay};

/// Default of the initial noise variance, in variances of the target.
const FIRST_VARIANCE: f64 = 0.01;
/// Well-determinedness gamma below which a weight is pruned during the iterations. With 1e-7 the log evidence ends up
/// to 8 nats lower.
const PRUNED: f64 = 1e-12;
/// Largest step of a log precision. It only keeps numbers in range.
const CLIP: f64 = 50.0;
/// Powers of 10 that are tried for the shared precision, as multiples of 1 / N. Differences of kernels that agree to
/// five digits need weights that are 100,000 times as large. All are tried: for wide kernels the evidence has one
/// maximum with linear functions of the features and another with curved ones. A product of two of three to five
/// features is then found at gamma 1e-3, at errors of 0.20 (of 0.91 with powers from -8 on). Smaller precisions leave
/// fewer kernels at gamma 1e-4, but rounding changes the predictions of sigmoid kernels in the seventh digit.
const FACTORS: std::ops::RangeInclusive<i32> = -10..=2;
/// Largest number of columns with which the shared precision is chosen.
const FEW: usize = 100;
/// Share of the highest rise of the evidence that is enough if the Hessian depends on the weights. The largest
/// precision that reaches it is taken. For separable classes the evidence is flat towards small precisions, where the
/// Hessian vanishes and does not distinguish columns.
const ENOUGH: f64 = 0.95;
/// Largest number of updates by which a model that a search starts from, or is compared with, is re-estimated.
const STEPS: usize = 100;

/// A fit by fixed-point iteration.
pub(crate) struct FixedPointRun {
    update: PrecisionUpdate,
    tolerance: f64,
    now: ActivePosterior,
    started: bool,
    actions: Actions,
    reason: &'static str,
}

impl From<&Em> for MacKay {
    fn from(scheme: &Em) -> MacKay {
        let Em { hyperpriors, tolerance, initial_alpha, initial_noise_variance, prune } = *scheme;
        MacKay { hyperpriors, tolerance, initial_alpha, initial_noise_variance, prune }
    }
}

/// Returns all columns that are not zero, their initial relative precisions, and the initial noise precisions, in
/// internal units. `initial_alpha` and `initial_noise_variance` are in original units.
///
/// # Errors
/// Returns [`Error::Memory`](crate::error::Error::Memory) if the posterior of all columns exceeds the memory limit.
pub(crate) fn first(
    solver: &EvidenceSolver,
    initial_alpha: Option<f64>,
    initial_noise_variance: Option<f64>,
) -> Result<(Vec<usize>, Vec<f64>, Vec<f64>)> {
    let (active, alpha, beta) = first_precisions(solver, initial_alpha, initial_noise_variance);
    let (problem, p) = (solver.problem, active.len() as u64);
    problem.afford_at_once(&format!("re-estimating {p} basis functions at once"), problem.dense_bytes(p))?;
    let unit = typical(&beta);
    Ok((active, alpha.iter().map(|alpha| alpha / unit).collect(), beta))
}

/// Returns all columns that are not zero, their initial absolute precisions, and the initial noise precisions, in
/// internal units. It does not check the memory limit.
fn first_precisions(
    solver: &EvidenceSolver,
    initial_alpha: Option<f64>,
    initial_noise_variance: Option<f64>,
) -> (Vec<usize>, Vec<f64>, Vec<f64>) {
    let problem = solver.problem;
    let active = if problem.training.bias_only { vec![0] } else { problem.usable() };
    let count = problem.training.count;
    let first_precision = |(noise, units): (&NoisePrecision, &Units)| match *noise {
        NoisePrecision::Fixed(beta) => beta,
        NoisePrecision::Learned { cap, .. } => {
            let variance = initial_noise_variance.map_or(FIRST_VARIANCE, |v| v / (units.scale * units.scale));
            (1.0 / variance).min(cap)
        }
    };
    let beta: Vec<f64> = problem.training.noise.iter().zip(&problem.training.units).map(first_precision).collect();
    let alpha: Vec<f64> = match initial_alpha {
        Some(alpha) => active.iter().map(|j| alpha * problem.alpha_in(*j)).collect(),
        None => problem.first_precisions(&active, 1.0 / (count * count)),
    };
    (active, alpha, beta)
}

impl FixedPointRun {
    /// Starts from all columns, or from the model of a warm start. The precisions are updated by the first of `rules` that
    /// does not lower the evidence, and `settings` may be those of expectation maximisation, which are alike.
    ///
    /// # Errors
    /// Returns the errors of [`EvidenceSolver::solve`], and an error if all columns exceed the memory limit.
    pub fn start(
        solver: &EvidenceSolver,
        settings: &MacKay,
        rules: &'static [UpdateRule],
        entry: &SearchStart,
    ) -> Result<FixedPointRun> {
        let (active, a, beta) = match &entry.from {
            Some(warm) => (warm.columns(solver), warm.a.clone(), warm.beta.clone()),
            None => first(solver, settings.initial_alpha, settings.initial_noise_variance)?,
        };
        let now = solver.solve(&active, &a, &solver.problem.training.noise, NoiseChoice::Precision(&beta), None)?;
        let prune_below = if settings.prune && settings.hyperpriors.a == 0.0 { PRUNED } else { 0.0 };
        let update = PrecisionUpdate { rules, hyperpriors: settings.hyperpriors, clip: CLIP, prune_below };
        Ok(FixedPointRun { update, tolerance: settings.tolerance, now, started: false, actions: Actions::default(), reason: "" })
    }
}

impl<'p> FitRun<'p> for FixedPointRun {
    /// Reports the posterior at the initial precisions in the first call, and re-estimates the precisions in each
    /// further call.
    fn step(&mut self, solver: &EvidenceSolver<'p>) -> Result<Option<Status>> {
        if !self.started {
            self.started = true;
            return Ok(None);
        }
        let Some(step) = self.update.step(solver, &solver.problem.training.noise, &self.now)? else {
            self.reason = "no update of the precisions raises the evidence any further";
            return Ok(Some(Status::Converged));
        };
        self.actions.joint += 1;
        self.now = step.solution;
        if step.change >= self.tolerance && !self.now.active.is_empty() {
            return Ok(None);
        }
        if self.update.prune_below > 0.0 {
            // After convergence weights that the data do not determine can be pruned.
            let last = PrecisionUpdate { prune_below: UNDETERMINED, ..self.update.clone() };
            self.now = last.prune(solver, &solver.problem.training.noise, self.now.clone())?.0;
        }
        self.reason = "no log precision moved by more than the tolerance";
        Ok(Some(Status::Converged))
    }

    fn best(&self) -> &ActivePosterior {
        &self.now
    }

    fn objective(&self, solver: &EvidenceSolver<'p>) -> f64 {
        solver.problem.log_evidence_out(self.update.objective(solver, &self.now))
    }

    fn certificate(&self, _work: &EvidenceSolver<'p>, _late: bool) -> Certificate {
        let reason = if self.reason.is_empty() { "the fit ended before the precisions converged" } else { self.reason };
        let gradient = self.now.largest_gradient();
        Certificate { largest_gain: None, largest_gradient: gradient, reason: reason.into() }
    }

    fn actions(&self) -> Actions {
        self.actions.clone()
    }
}

/// Returns the dense model under the shared precision and noise of highest evidence. For duplicate columns it contains
/// the first one alone.
///
/// # Errors
/// Returns the errors of [`EvidenceSolver::solve`]. Shared precisions whose model cannot be factorised are skipped.
pub(super) fn dense(solver: &EvidenceSolver, noise: &[NoisePrecision]) -> Result<ActivePosterior> {
    let problem = solver.problem;
    let columns = match solver.hessian_varies() {
        true => thinned(affordable(solver), MOVING_MOST / problem.training.outputs.max(1)),
        false => without_copies(solver, affordable(solver)),
    };
    let at = |columns: &[usize], factor: f64, warm: Option<&ActivePosterior>| {
        let a = problem.first_precisions(columns, factor / problem.training.count);
        solver.solve(columns, &a, noise, NoiseChoice::Best, warm)
    };
    // With fewer columns the weights are larger, and so are their variances.
    let some = thinned(columns.clone(), FEW);
    let fewer = some.len() as f64 / columns.len().max(1) as f64;
    let (mut tried, mut last): (Vec<(f64, f64)>, Option<ActivePosterior>) = (vec![], None);
    for factor in FACTORS.rev().map(|power| 10f64.powi(power)) {
        match at(&some, fewer * factor, last.as_ref()) {
            Ok(model) => tried.push((factor, solver.log_evidence(last.insert(model)))),
            Err(Error::Singular { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    let highest = tried.iter().map(|(_, value)| *value).fold(f64::NEG_INFINITY, f64::max);
    let least = match solver.hessian_varies() {
        true => highest - (1.0 - ENOUGH) * (highest - tried.first().map_or(highest, |(_, value)| *value)),
        false => highest,
    };
    at(&columns, tried.iter().find(|(_, value)| *value >= least).map_or(1.0, |(factor, _)| *factor), None)
}

/// Returns the model that MacKay's fixed point leads to from all columns, with one precision for each weight from the
/// first step on. If the evidence of classes is flat in the shared precision, it finds columns that [`dense`] loses.
///
/// # Errors
/// Returns the errors of [`EvidenceSolver::solve`].
pub(super) fn mackay(solver: &EvidenceSolver, noise: &[NoisePrecision]) -> Result<ActivePosterior> {
    let columns = thinned(affordable(solver), MOVING_MOST / solver.problem.training.outputs.max(1));
    // `first_precisions` covers all columns; `columns` are as many as there is memory for.
    let (all, alpha, beta) = first_precisions(solver, None, None);
    let of = |j: &usize| alpha[all.binary_search(j).expect("usable columns are among all")] / typical(&beta);
    let a: Vec<f64> = columns.iter().map(of).collect();
    let first = solver.solve(&columns, &a, noise, NoiseChoice::Precision(&beta), None)?;
    re_estimated(solver, noise, first, &[UpdateRule::MacKay, UpdateRule::Em])
}

/// Returns the model `now` after updates of its precisions by the first of `rules` that applies, until they hardly change.
fn re_estimated(
    solver: &EvidenceSolver,
    noise: &[NoisePrecision],
    mut now: ActivePosterior,
    rules: &'static [UpdateRule],
) -> Result<ActivePosterior> {
    let update = PrecisionUpdate { rules, hyperpriors: Hyperpriors::default(), clip: CLIP, prune_below: PRUNED };
    for _ in 0..STEPS {
        let Some(step) = update.step(solver, noise, &now)? else { break };
        now = step.solution;
        if step.change < SMALL_CHANGE {
            break;
        }
    }
    Ok(now)
}

/// Returns all columns that are not zero, or a random sample of as many as there is memory for, ascending.
fn affordable(solver: &EvidenceSolver) -> Vec<usize> {
    let problem = solver.problem;
    let columns = problem.usable();
    let most = ((problem.room() / (8 * DENSE)) as f64).sqrt() as usize / problem.training.outputs.max(1);
    if columns.len() <= most {
        return columns;
    }
    random_subset(columns.len(), most, problem.training.rvm.seed).into_iter().map(|k| columns[k]).collect()
}

/// Returns evenly spaced columns, at most `most`.
fn thinned(columns: Vec<usize>, most: usize) -> Vec<usize> {
    let every = columns.len().div_ceil(most.max(1)).max(1);
    columns.into_iter().step_by(every).collect()
}

/// Returns the columns without duplicates, up to their scale. The first column of each group remains.
fn without_copies(solver: &EvidenceSolver, columns: Vec<usize>) -> Vec<usize> {
    let gram = solver.form().dense(&columns);
    let mut kept: Vec<usize> = vec![];
    for i in 0..columns.len() {
        let same = |k: &usize| gram[[i, *k]].abs() >= SAME_COSINE * (gram[[i, i]] * gram[[*k, *k]]).sqrt();
        if !kept.iter().any(same) {
            kept.push(i);
        }
    }
    kept.into_iter().map(|i| columns[i]).collect()
}

/// Returns true if a model has learned nothing: it has no kernel, or its log evidence is at most [`STRUCTURE`] nats above
/// that of the empty model. Models of constant targets have not failed to learn, so that the result is false for them.
///
/// # Errors
/// Returns the errors of [`EvidenceSolver::solve`].
pub(crate) fn has_nothing(solver: &EvidenceSolver, model: &ActivePosterior) -> Result<bool> {
    let problem = solver.problem;
    if problem.training.adjustments.constant_target || problem.training.bias_only {
        return Ok(false);
    }
    let kernels = model.active.iter().any(|j| *j > 0 || !problem.has_bias);
    // A lower bound cannot be compared with the evidence.
    Ok(!kernels || !solver.is_stand_in() && is_near_nothing(solver, solver.log_evidence(model))?)
}

/// Returns true if a log evidence is at most [`STRUCTURE`] nats above that of the model without kernels, with or without
/// bias.
fn is_near_nothing(solver: &EvidenceSolver, log_evidence: f64) -> Result<bool> {
    let (problem, noise) = (solver.problem, &solver.problem.training.noise);
    let near = |empty: &ActivePosterior| log_evidence <= solver.log_evidence(empty) + STRUCTURE;
    if near(&solver.solve(&[], &[], noise, NoiseChoice::Best, None)?) {
        return Ok(true);
    }
    if !problem.has_bias || problem.design.norms()[0] == 0.0 {
        return Ok(false);
    }
    let unit = typical(&noise.iter().map(|noise| noise.precision(1.0, 1.0)).collect::<Vec<f64>>());
    let first: Vec<f64> = problem.first_precisions(&[0], 1.0 / problem.training.count).iter().map(|alpha| alpha / unit).collect();
    let bias = solver.solve(&[0], &first, noise, NoiseChoice::Best, None)?;
    Ok(near(&re_estimated(solver, noise, bias, &[UpdateRule::Exact, UpdateRule::MacKay, UpdateRule::Em])?))
}
