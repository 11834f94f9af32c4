//! Why a fit ended.

use serde::{Deserialize, Serialize};

/// Why a fit ended. Only `Converged` means that the stopping rule was met.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Status {
    /// The stopping rule of the inference scheme holds.
    Converged,
    /// `max_iterations` were done before that.
    IterationLimit,
    /// `time_limit` ran out before that.
    TimeLimit,
    /// The model had no room to grow within `memory_limit`.
    MemoryLimit,
    /// The observer asked to stop.
    Stopped,
    /// No further step was possible: the posterior is numerically singular, or (of a support vector machine) rounding
    /// leaves nothing to gain before the tolerance is reached.
    Singular,
}

impl Status {
    /// The name used in model files and on the command line.
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
