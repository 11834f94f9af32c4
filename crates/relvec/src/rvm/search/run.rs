//! One fit under way: what every scheme's run can do, and how it is entered.

use std::rc::Rc;

use crate::error::Result;
use crate::report::{Actions, Certificate, Status};
use crate::rvm::data::noise::typical;
use crate::rvm::evidence::solution::Solution;
use crate::rvm::evidence::workspace::Workspace;
use crate::rvm::gram::problem::Problem;
use crate::rvm::settings::scheme::Hyperparameters;

/// How a search in one part of the dictionary begins.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    /// The model to go on from; `None`: this is the first part.
    pub from: Option<Warm>,
    pub aim: Aim,
}

/// How far a search in one part of the dictionary goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Aim {
    /// Until no action gains any more.
    Rest,
    /// Until no action gains any more after one excursion, but not to the last digits: another search follows.
    Brief,
    /// Until no excursion helps either.
    Thorough,
}

/// One fit under way.
pub(crate) trait Run<'p> {
    /// One iteration; `Some` says why there is no further one.
    fn step(&mut self, work: &Workspace<'p>) -> Result<Option<Status>>;

    /// The best solution so far.
    fn best(&self) -> &Solution;

    /// What must not fall, in the user's units: the log evidence, plus log hyperpriors where there are any; or a
    /// lower bound.
    fn objective(&self, work: &Workspace<'p>) -> f64;

    /// The quadratic form that `best` solves, where that is not the workspace's.
    fn form(&self) -> Option<&Workspace<'p>> {
        None
    }

    /// What is left to gain; `late`: without scoring the candidates once more.
    fn certificate(&self, work: &Workspace<'p>, late: bool) -> Certificate;

    /// How many actions were taken.
    fn actions(&self) -> Actions;
}

/// A model by its candidates, to go on from in another part.
#[derive(Debug, Clone)]
pub(crate) struct Warm {
    /// Places in the table, `None` for the bias; `[M]`.
    pub places: Vec<Option<usize>>,
    /// Relative precisions on unit columns, `[M]`.
    pub a: Vec<f64>,
    /// Of each noise.
    pub beta: Vec<f64>,
    /// The mode of several classes, and what is known there.
    pub mode: Option<Rc<Solution>>,
}

impl Warm {
    pub fn of(work: &Workspace, solution: &Solution) -> Warm {
        let first = usize::from(work.problem.has_bias);
        let place = |j: &usize| (*j >= first).then(|| work.problem.places[*j - first]);
        let mode = solution.joint.is_some().then(|| Rc::new(solution.clone().renamed(solution.active.clone(), None)));
        let places = solution.active.iter().map(place).collect();
        Warm { places, a: solution.a.clone(), beta: solution.beta.clone(), mode }
    }

    /// At given precisions, in the user's units.
    pub fn at(problem: &Problem, at: &Hyperparameters) -> Result<Warm> {
        let (active, alpha, beta) = problem.inner(at)?;
        let first = usize::from(problem.has_bias);
        let mut order: Vec<usize> = (0..active.len()).collect();
        order.sort_by_key(|k| active[*k]);
        let place = |k: &usize| (active[*k] >= first).then(|| problem.places[active[*k] - first]);
        let unit = typical(&beta);
        let a = order.iter().map(|k| alpha[*k] / unit).collect();
        Ok(Warm { places: order.iter().map(place).collect(), a, beta, mode: None })
    }

    /// The active columns in the problem of `work`.
    pub fn columns(&self, work: &Workspace) -> Vec<usize> {
        let find = |p: &Option<usize>| p.map_or(0, |p| work.problem.column_of(p).expect("a part keeps the model"));
        self.places.iter().map(find).collect()
    }

    /// Its candidates, the bias left out.
    pub fn kept(&self) -> Vec<usize> {
        self.places.iter().flatten().copied().collect()
    }
}
