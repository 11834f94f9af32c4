//! The reason why a fit ended.

use serde::{Deserialize, Serialize};

/// The reason why a fit ended. Only `Converged` means that the stopping rule was met.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Status {
    /// The stopping rule of the inference scheme is met.
    Converged,
    /// The fit reached `max_iterations` first.
    IterationLimit,
    /// The fit reached `time_limit` first.
    TimeLimit,
    /// The model could not grow further within `memory_limit`.
    MemoryLimit,
    /// The observer stopped the fit.
    Stopped,
    /// No further step was possible, because the posterior is numerically singular. For a support vector machine,
    /// rounding prevents further progress before the tolerance is reached.
    Singular,
}

impl Status {
    /// Returns the name used in model files and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Status::Converged => "converged",
            Status::IterationLimit => "iteration_limit",
            Status::TimeLimit => "time_limit",
            Status::MemoryLimit => "memory_limit",
            Status::Stopped => "stopped",
            Status::Singular => "singular",
        }
    }
}
