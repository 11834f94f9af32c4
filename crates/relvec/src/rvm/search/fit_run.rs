//! The interface of a running scheme, and the model that it starts from.

use std::rc::Rc;

use crate::error::Result;
use crate::report::{Actions, Certificate, Status};
use crate::rvm::data::noise::typical;
use crate::rvm::evidence::active_posterior::ActivePosterior;
use crate::rvm::evidence::solver::EvidenceSolver;
use crate::rvm::gram::scaled_problem::ScaledProblem;
use crate::rvm::settings::scheme::Hyperparameters;

/// Start and effort of a search in one working set.
#[derive(Debug, Clone)]
pub(crate) struct SearchStart {
    /// Model for a warm start; `None` for the first working set.
    pub from: Option<WarmStart>,
    pub effort: SearchEffort,
}

/// Effort of a search in one working set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SearchEffort {
    /// Search until no action gains enough.
    Converge,
    /// Search until no action gains enough, with one noise restart at most. The last digits are left to the search that
    /// follows.
    OneRestart,
    /// Search until no noise restart helps either.
    Restarts,
}

/// A fit that is under way.
pub(crate) trait FitRun<'p> {
    /// Runs one iteration. Returns the reason why there is no further iteration, or `None` if there may be one.
    ///
    /// # Errors
    /// Returns [`Error::Interrupted`](crate::error::Error::Interrupted) if the fit must stop, and the errors of
    /// [`EvidenceSolver::solve`].
    fn step(&mut self, solver: &EvidenceSolver<'p>) -> Result<Option<Status>>;

    /// Returns the best model so far.
    fn best(&self) -> &ActivePosterior;

    /// Returns the objective of the scheme in original units: the log evidence plus the log hyperpriors, or a lower
    /// bound.
    fn objective(&self, solver: &EvidenceSolver<'p>) -> f64;

    /// Returns the solver that `best` belongs to, if it is not the solver of the fit.
    fn form(&self) -> Option<&EvidenceSolver<'p>> {
        None
    }

    /// Returns the remaining gain and gradient. If `late` is true, it does not evaluate the candidates.
    fn certificate(&self, solver: &EvidenceSolver<'p>, late: bool) -> Certificate;

    /// Returns the numbers of actions so far.
    fn actions(&self) -> Actions;
}

/// A model by its candidates, for a warm start in another working set.
#[derive(Debug, Clone)]
pub(crate) struct WarmStart {
    /// Candidates in the training set, `None` for the bias, `[M]`.
    pub candidates: Vec<Option<usize>>,
    /// Relative precisions for columns of unit norm, `[M]`.
    pub a: Vec<f64>,
    /// Noise precisions in internal units, one for each noise.
    pub beta: Vec<f64>,
    /// Posterior at the mode for several classes, which the next search starts from.
    pub mode: Option<Rc<ActivePosterior>>,
}

impl WarmStart {
    /// Returns the warm start at a model in the working set of `solver`.
    pub fn of(solver: &EvidenceSolver, solution: &ActivePosterior) -> WarmStart {
        let first = usize::from(solver.problem.has_bias);
        let candidate = |j: &usize| (*j >= first).then(|| solver.problem.candidates[*j - first]);
        let mode = solution.joint.is_some().then(|| Rc::new(solution.clone().renamed(solution.active.clone(), None)));
        let candidates = solution.active.iter().map(candidate).collect();
        WarmStart { candidates, a: solution.a.clone(), beta: solution.beta.clone(), mode }
    }

    /// Returns the warm start at given precisions in original units.
    ///
    /// # Errors
    /// Returns the errors of [`ScaledProblem::inner`].
    pub fn at(problem: &ScaledProblem, at: &Hyperparameters) -> Result<WarmStart> {
        let (active, alpha, beta) = problem.inner(at)?;
        let first = usize::from(problem.has_bias);
        let mut order: Vec<usize> = (0..active.len()).collect();
        order.sort_by_key(|k| active[*k]);
        let candidate = |k: &usize| (active[*k] >= first).then(|| problem.candidates[active[*k] - first]);
        let unit = typical(&beta);
        let a = order.iter().map(|k| alpha[*k] / unit).collect();
        Ok(WarmStart { candidates: order.iter().map(candidate).collect(), a, beta, mode: None })
    }

    /// Returns the columns of the model in the working set of `solver`, `[M]`.
    pub fn columns(&self, solver: &EvidenceSolver) -> Vec<usize> {
        let find = |p: &Option<usize>| p.map_or(0, |p| solver.problem.column_of(p).expect("a working set contains the model"));
        self.candidates.iter().map(find).collect()
    }

    /// Returns the candidates of the model without the bias.
    pub fn without_bias(&self) -> Vec<usize> {
        self.candidates.iter().flatten().copied().collect()
    }
}
