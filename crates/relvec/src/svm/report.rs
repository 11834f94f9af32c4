//! How the fit of a support vector machine goes and how it ended.

use std::ops::ControlFlow;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::registry::rules;
use crate::report::{SmallWeights, Status};

/// What an [`SvmObserver`] sees, many times while a function is found.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct SvmProgress {
    /// The function that is being found, and how many there are; with probabilities each counts six times.
    pub function: (usize, usize),
    /// Pairs of multipliers moved so far for this function.
    pub iteration: usize,
    /// Largest violation of its optimality conditions: it ends at the tolerance.
    pub gap: f64,
    /// Time since the fit began.
    pub elapsed: Duration,
}

/// Called while a machine is trained; `Break` ends it with the multipliers as they are.
pub type SvmObserver<'a> = dyn FnMut(&SvmProgress) -> ControlFlow<()> + Send + 'a;

/// How one function of a support vector machine was found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SvmFunction {
    /// Why the search ended.
    pub status: Status,
    /// Pairs of multipliers moved.
    pub iterations: usize,
    /// Value of the dual problem, (M39), minimised.
    pub objective: f64,
    /// Largest violation of the optimality conditions that is left.
    pub gap: f64,
    /// Support vectors, and those at their upper bound.
    pub vectors: usize,
    /// See `vectors`.
    pub bounded: usize,
    /// Whether the classes overlap so far that the share of nu-SVC leaves no margin, and the machine is the limit of
    /// those of larger shares: C-SVC with a large cost.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub no_margin: bool,
    /// What the probabilities of its two classes come from, if there are any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probabilities: Option<Probabilities>,
}

rules! {
    /// What the probabilities of a function's two classes are fitted to.
    pub enum Probabilities, "source of probabilities" {
        /// Values at rows left out in a cross-validation of 5 folds.
        CrossValidation = "cross_validation",
        /// Values at the training rows, since a class has fewer than 5 rows or a fold has no margin: the probability of
        /// the class that the function decides for is at least 1/2.
        TrainingRows = "training_rows",
        /// The class frequencies alone: in cross-validation larger values did not go with the second class.
        ClassFrequencies = "class_frequencies",
    }
}

/// How the fit of a support vector machine went.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SvmReport {
    /// Why it ended: of the first function that did not converge, if there is one.
    pub status: Status,
    /// Pairs of multipliers moved, for all functions.
    pub iterations: usize,
    /// Each function, in the order of the model's.
    pub functions: Vec<SvmFunction>,
    /// Rows merged into an equal one (same inputs, same target).
    pub merged_rows: usize,
    /// Sample weights that are too small to learn from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub small_weights: Option<SmallWeights>,
    /// Wall-clock seconds.
    pub seconds: f64,
}
