//! The schemes `em` and `mackay`, which start from all columns and re-estimate all precisions in each iteration.

use crate::error::Result;
use crate::report::{Actions, Certificate, Status};
use crate::rvm::data::noise::{NoisePrecision, Units, typical};
use crate::rvm::evidence::active_posterior::{ActivePosterior, NoiseChoice};
use crate::rvm::evidence::precision_updates::{PrecisionUpdate, UpdateRule};
use crate::rvm::evidence::solver::EvidenceSolver;
use crate::rvm::search::driver::{FitRun, SearchStart};
use crate::rvm::settings::scheme::{Em, Hyperpriors, MacKay};

/// Default of the initial noise variance, in variances of the target.
const FIRST_VARIANCE: f64 = 0.01;
/// Well-determinedness gamma below which a weight is pruned during the iterations. With 1e-7 the log evidence ends up
/// to 8 nats lower.
const PRUNED: f64 = 1e-12;
/// Well-determinedness gamma below which a weight is pruned after all others have converged.
const PRUNED_AT_END: f64 = 1e-7;
/// Largest step of a log precision. It only keeps numbers in range.
const CLIP: f64 = 50.0;

/// Settings of a fixed-point iteration.
pub(crate) struct Settings {
    pub rules: &'static [UpdateRule],
    pub hyperpriors: Hyperpriors,
    pub tolerance: f64,
    pub initial_alpha: Option<f64>,
    pub initial_noise_variance: Option<f64>,
    pub prune: bool,
}

/// A fit by fixed-point iteration.
pub(crate) struct FixedPointRun {
    update: PrecisionUpdate,
    tolerance: f64,
    now: ActivePosterior,
    started: bool,
    actions: Actions,
    reason: &'static str,
}

impl From<&MacKay> for Settings {
    /// Uses MacKay's update, or that of EM if MacKay's would lower the evidence.
    fn from(scheme: &MacKay) -> Settings {
        let MacKay { hyperpriors, tolerance, initial_alpha, initial_noise_variance, prune } = *scheme;
        Settings {
            rules: &[UpdateRule::MacKay, UpdateRule::Em],
            hyperpriors,
            tolerance,
            initial_alpha,
            initial_noise_variance,
            prune,
        }
    }
}

impl From<&Em> for Settings {
    fn from(scheme: &Em) -> Settings {
        let Em { hyperpriors, tolerance, initial_alpha, initial_noise_variance, prune } = *scheme;
        Settings { rules: &[UpdateRule::Em], hyperpriors, tolerance, initial_alpha, initial_noise_variance, prune }
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
pub(crate) fn first_precisions(
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
    /// Starts from all columns, or from the model of a warm start.
    ///
    /// # Errors
    /// Returns the errors of [`EvidenceSolver::solve`], and an error if all columns exceed the memory limit.
    pub fn start(solver: &EvidenceSolver, settings: Settings, entry: &SearchStart) -> Result<FixedPointRun> {
        let (active, a, beta) = match &entry.from {
            Some(warm) => (warm.columns(solver), warm.a.clone(), warm.beta.clone()),
            None => first(solver, settings.initial_alpha, settings.initial_noise_variance)?,
        };
        let now = solver.solve(&active, &a, &solver.problem.training.noise, NoiseChoice::Precision(&beta), None)?;
        let prune_below = if settings.prune && settings.hyperpriors.a == 0.0 { PRUNED } else { 0.0 };
        let update = PrecisionUpdate { rules: settings.rules, hyperpriors: settings.hyperpriors, clip: CLIP, prune_below };
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
            let last = PrecisionUpdate { prune_below: PRUNED_AT_END, ..self.update.clone() };
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
