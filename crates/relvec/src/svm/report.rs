//! Progress of a fit of a support vector machine, and its report.

use std::ops::ControlFlow;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::registry::rules;
use crate::report::{SmallWeights, Status};

/// The state of a fit, which an [`SvmObserver`] receives many times during the search for a function.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct SvmProgress {
    /// Number of the current function, and the number of functions. With probabilities each function counts six times.
    pub function: (usize, usize),
    /// Number of pairs of multipliers moved so far for this function.
    pub iteration: usize,
    /// Largest violation of the optimality conditions of this function. The search ends when it reaches the tolerance.
    pub gap: f64,
    /// Time since the start of the fit.
    pub elapsed: Duration,
}

/// Function that is called during a fit. `Break` ends the fit with the present multipliers.
pub type SvmObserver<'a> = dyn FnMut(&SvmProgress) -> ControlFlow<()> + Send + 'a;

/// The search for one function of a support vector machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SvmFunction {
    /// Reason why the search ended.
    pub status: Status,
    /// Number of pairs of multipliers moved.
    pub iterations: usize,
    /// Minimum of the dual problem, (M39).
    pub objective: f64,
    /// Largest remaining violation of the optimality conditions.
    pub gap: f64,
    /// Number of support vectors.
    pub vectors: usize,
    /// Number of support vectors at their upper bound.
    pub bounded: usize,
    /// True if the classes overlap so much that nu-SVC has no margin for its share. The model is then the limit of
    /// those with larger shares, which is C-SVC with a large cost.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub no_margin: bool,
    /// Data that the probabilities of its two classes are fitted to; `None` without probabilities.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probabilities: Option<Probabilities>,
}

rules! {
    /// Data that the probabilities of a function's two classes are fitted to.
    pub enum Probabilities, "source of probabilities" {
        /// Values at held-out rows of a cross-validation with 5 folds.
        CrossValidation = "cross_validation",
        /// Values at the training rows, because a class has fewer than 5 rows or a fold has no margin. The probability
        /// of the class that the function chooses is at least 1/2.
        TrainingRows = "training_rows",
        /// The class frequencies alone, because larger values did not indicate the second class in cross-validation.
        ClassFrequencies = "class_frequencies",
    }
}

/// The report of a fit of a support vector machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SvmReport {
    /// Reason why the fit ended: that of the first function that did not converge, if there is one.
    pub status: Status,
    /// Number of pairs of multipliers moved for all functions.
    pub iterations: usize,
    /// The search for each function, in the order of the model's functions.
    pub functions: Vec<SvmFunction>,
    /// Number of rows merged into an equal one (same inputs and same target).
    pub merged_rows: usize,
    /// Sample weights that are too small to learn from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub small_weights: Option<SmallWeights>,
    /// Wall-clock seconds.
    pub seconds: f64,
}
