//! Parameters of the scheme `search`, and the sizes of its working sets.

use serde::{Deserialize, Serialize};

use super::policy::Policy;
use super::scheme::{Hyperpriors, SchemeSettings, Start};
use crate::error::{Result, require};

/// Largest number of candidates that are searched at once if the Hessian is constant. With more, the Gram matrix costs
/// more than it saves, and the search alternates between working sets and candidate scans.
const MOST_COLUMNS: usize = 1000;
/// Largest number of candidates that are searched at once if the Hessian depends on the weights.
const MOVING_MOST: usize = 500;
/// Smallest size of a working set.
pub(crate) const PART: usize = 200;
/// Least predicted gain of a candidate in nats per row, if the model is so large that the gain of one basis function is
/// below the error of the Laplace approximation.
const AMPLE_GAIN: f64 = 3e-4;

/// Search for the model of highest evidence: backward pruning from all basis functions, then additions, re-estimations
/// and deletions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Search {
    /// Gamma hyperpriors. The values a and b must be 0.
    pub hyperpriors: Hyperpriors,
    /// The search has converged if no action gains more nats than this (times N / 1000 above 1,000 rows).
    pub tolerance: f64,
    /// Most noise restarts of a regression. A restart searches at a lower fixed noise variance, releases the noise, and
    /// keeps the better model.
    pub restarts: usize,
    /// Start of the search.
    pub start: Start,
    /// Constants of the search.
    pub policy: Policy,
}

impl Default for Search {
    fn default() -> Self {
        Search {
            hyperpriors: Hyperpriors::default(),
            tolerance: 1e-3,
            restarts: 2,
            start: Start::Auto,
            policy: Policy::default(),
        }
    }
}

impl SchemeSettings for Search {
    fn check(&self, path: &str) -> Result<()> {
        self.hyperpriors.check_of_search(path)?;
        let positive = self.tolerance.is_finite() && self.tolerance > 0.0;
        require(positive, || format!("{path}.tolerance"), self.tolerance, "a positive number")?;
        self.policy.check(&format!("{path}.policy"))
    }

    fn hyperpriors(&self) -> Hyperpriors {
        self.hyperpriors
    }

    fn adds(&self) -> bool {
        true
    }

    fn most_columns(&self, constant_curvature: bool) -> Option<usize> {
        Some(if constant_curvature { MOST_COLUMNS } else { MOVING_MOST })
    }

    fn start(&self) -> &Start {
        &self.start
    }

    fn least_gain(&self, count: f64, ample: bool) -> f64 {
        let least = self.tolerance * (count / 1000.0).max(1.0);
        if ample { least.max(AMPLE_GAIN * count) } else { least }
    }
}
