//! One fit under way: what every scheme's run can do, and how it is entered.

use super::warm::Warm;
use crate::error::Result;
use crate::report::{Actions, Certificate, Status};
use crate::rvm::evidence::solution::Solution;
use crate::rvm::evidence::workspace::Workspace;

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
    /// Only to find which candidates may be of use.
    Rough,
    /// Until no action gains any more.
    Rest,
    /// The same, but for the digits, and first an excursion with the noise held low, to a fuller model.
    Fuller,
    /// The same with the noise held lower still.
    Fullest,
    /// Until no excursion from the model helps either, nor, where it is small, beginning anew.
    Thorough,
}

impl Aim {
    /// Whether what is found is only where the next part, or round, goes on.
    pub fn is_passing(self) -> bool {
        matches!(self, Aim::Fuller | Aim::Fullest)
    }
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
