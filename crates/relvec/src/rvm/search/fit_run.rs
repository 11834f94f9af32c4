//! One fit under way: what every scheme's run can do, and how it is entered.

use std::rc::Rc;

use crate::error::Result;
use crate::report::{Actions, Certificate, Status};
use crate::rvm::data::noise::typical;
use crate::rvm::evidence::active_posterior::ActivePosterior;
use crate::rvm::evidence::solver::EvidenceSolver;
use crate::rvm::gram::scaled_problem::ScaledProblem;
use crate::rvm::settings::scheme::Hyperparameters;

/// How a search in one part of the dictionary begins.
#[derive(Debug, Clone)]
pub(crate) struct SearchStart {
    /// The model to go on from; `None`: this is the first part.
    pub from: Option<WarmStart>,
    pub aim: Effort,
}

/// How far a search in one part of the dictionary goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effort {
    /// Until no action gains any more.
    Rest,
    /// Until no action gains any more after one excursion, but not to the last digits: another search follows.
    Brief,
    /// Until no excursion helps either.
    Thorough,
}

/// One fit under way.
pub(crate) trait FitRun<'p> {
    /// One iteration; `Some` says why there is no further one.
    fn step(&mut self, solver: &EvidenceSolver<'p>) -> Result<Option<Status>>;

    /// The best solution so far.
    fn best(&self) -> &ActivePosterior;

    /// What must not fall, in the user's units: the log evidence, plus log hyperpriors where there are any; or a
    /// lower bound.
    fn objective(&self, solver: &EvidenceSolver<'p>) -> f64;

    /// The quadratic form that `best` solves, where that is not the workspace's.
    fn form(&self) -> Option<&EvidenceSolver<'p>> {
        None
    }

    /// What is left to gain; `late`: without scoring the candidates once more.
    fn certificate(&self, solver: &EvidenceSolver<'p>, late: bool) -> Certificate;

    /// How many actions were taken.
    fn actions(&self) -> Actions;
}

/// A model by its candidates, to go on from in another part.
#[derive(Debug, Clone)]
pub(crate) struct WarmStart {
    /// Places in the table, `None` for the bias; `[M]`.
    pub candidates: Vec<Option<usize>>,
    /// Relative precisions on unit columns, `[M]`.
    pub a: Vec<f64>,
    /// Of each noise.
    pub beta: Vec<f64>,
    /// The mode of several classes, and what is known there.
    pub mode: Option<Rc<ActivePosterior>>,
}

impl WarmStart {
    pub fn of(solver: &EvidenceSolver, solution: &ActivePosterior) -> WarmStart {
        let first = usize::from(solver.problem.has_bias);
        let candidate = |j: &usize| (*j >= first).then(|| solver.problem.candidates[*j - first]);
        let mode = solution.joint.is_some().then(|| Rc::new(solution.clone().renamed(solution.active.clone(), None)));
        let candidates = solution.active.iter().map(candidate).collect();
        WarmStart { candidates, a: solution.a.clone(), beta: solution.beta.clone(), mode }
    }

    /// At given precisions, in the user's units.
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

    /// The active columns in the problem of `solver`.
    pub fn columns(&self, solver: &EvidenceSolver) -> Vec<usize> {
        let find = |p: &Option<usize>| p.map_or(0, |p| solver.problem.column_of(p).expect("a part keeps the model"));
        self.candidates.iter().map(find).collect()
    }

    /// Its candidates, the bias left out.
    pub fn kept(&self) -> Vec<usize> {
        self.candidates.iter().flatten().copied().collect()
    }
}
