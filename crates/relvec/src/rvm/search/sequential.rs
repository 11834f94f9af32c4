//! The sequential algorithm of Tipping & Faul (2003), section 4: one action at a time.

use crate::error::{Error, Result};
use crate::report::{Actions, Certificate, Status};
use crate::rvm::data::noise::{NoisePrecision, typical};
use crate::rvm::evidence::active_factor::ActiveFactor;
use crate::rvm::evidence::active_posterior::{ActivePosterior, NoiseChoice};
use crate::rvm::evidence::solver::EvidenceSolver;
use crate::rvm::search::driver::{FitRun, SearchStart};
use crate::rvm::settings::scheme::{Sequential, Start};

/// Reason of a search that has not converged.
pub(super) const UNFINISHED: &str = "the search ended before it converged";
/// Reason of a search that ends after a single action was undone. Its gain was predicted for a fixed Hessian.
pub(super) const REJECTED: &str = "the action of the largest predicted gain does not raise the log evidence";

/// A fit by the sequential algorithm.
pub(crate) struct SequentialRun<'p> {
    tolerance: f64,
    noise: Vec<NoisePrecision>,
    now: ActivePosterior,
    factor: Option<ActiveFactor<'p>>,
    actions: Actions,
    /// Column of the last action, if it was undone.
    rejected: Option<usize>,
    done: bool,
}

impl<'p> SequentialRun<'p> {
    /// Starts from the empty model, from given precisions, or from the model of the previous working set.
    ///
    /// # Errors
    /// Returns the errors of [`EvidenceSolver::solve`], and an error for given precisions that the problem does not
    /// have.
    pub(crate) fn start(solver: &EvidenceSolver<'p>, settings: &Sequential, entry: &SearchStart) -> Result<SequentialRun<'p>> {
        let (problem, noise) = (solver.problem, solver.problem.training.noise.clone());
        let first_beta = || noise.iter().map(|noise| noise.precision(1.0, 1.0)).collect();
        let (active, a, beta): (_, Vec<f64>, Vec<f64>) = match (&entry.from, &settings.start) {
            _ if problem.training.bias_only => {
                (vec![0], problem.first_precisions(&[0], 1.0 / problem.training.count), first_beta())
            }
            (Some(warm), _) => (warm.columns(solver), warm.a.clone(), warm.beta.clone()),
            (None, Start::Given(given)) => problem.inner(given)?,
            (None, _) => (vec![], vec![], first_beta()),
        };
        let unit = if entry.from.is_some() { 1.0 } else { typical(&beta) };
        let a: Vec<f64> = a.iter().map(|alpha| alpha / unit).collect();
        let now = solver.solve(&active, &a, &noise, NoiseChoice::Best, None)?;
        Ok(SequentialRun {
            tolerance: settings.tolerance,
            noise,
            now,
            factor: None,
            actions: Actions::default(),
            rejected: None,
            done: false,
        })
    }
}

impl<'p> FitRun<'p> for SequentialRun<'p> {
    fn step(&mut self, solver: &EvidenceSolver<'p>) -> Result<Option<Status>> {
        let mut factor = match self.factor.take() {
            Some(factor) => factor,
            None => ActiveFactor::new(solver.quadratic(&self.now), &self.now, &self.noise, solver.prior),
        };
        let best = if solver.problem.training.bias_only { None } else { factor.best_action(self.tolerance, &[], true) };
        let Some((action, _)) = best else {
            self.done = true;
            return Ok(Some(Status::Converged));
        };
        factor.apply(action);
        match solver.solve(&factor.active, &factor.a, &self.noise, NoiseChoice::Best, Some(&self.now)) {
            Ok(next) if next.log_evidence > self.now.log_evidence => {
                self.actions.count(&[action]);
                self.now = next;
                self.factor = (!solver.hessian_varies()).then_some(factor);
            }
            Ok(_) | Err(Error::Singular { .. }) => {
                self.actions.undone += 1;
                (self.rejected, self.done) = (Some(action.column()), true);
                return Ok(Some(Status::Converged));
            }
            Err(error) => return Err(error),
        }
        Ok(None)
    }

    fn best(&self) -> &ActivePosterior {
        &self.now
    }

    fn objective(&self, solver: &EvidenceSolver<'p>) -> f64 {
        solver.problem.log_evidence_out(self.now.log_evidence)
    }

    fn certificate(&self, solver: &EvidenceSolver<'p>, late: bool) -> Certificate {
        let factor = || ActiveFactor::new(solver.quadratic(&self.now), &self.now, &self.noise, solver.prior);
        let reason = match self.rejected {
            Some(_) => REJECTED,
            None if self.done => "no action gains more than the tolerance",
            None => UNFINISHED,
        };
        Certificate {
            largest_gain: (!late).then(|| factor().largest_gain(self.rejected.as_slice())),
            largest_gradient: self.now.largest_gradient(),
            reason: reason.into(),
        }
    }

    fn actions(&self) -> Actions {
        self.actions.clone()
    }
}
