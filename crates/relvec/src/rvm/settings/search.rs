//! Parameters of the scheme `search`, its constants, and the sizes of its working sets.

use serde::{Deserialize, Serialize};

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

/// Constants of the search: sizes of its steps, and thresholds of convergence. None depends on the units of the data.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Policy {
    /// Most columns that are added before the precisions are updated jointly. Each addition is conditional on those
    /// before it.
    pub batch: usize,
    /// Least gain of a column of a batch, as a share of the gain of its first column. With 0, models of 500 basis functions
    /// end 2 nats lower.
    pub share: f64,
    /// Longest step of a log precision in a joint update. 3 is as good.
    pub clip: f64,
    /// Well-determinedness below which a joint update prunes a weight. With 1e-4, models of 500 basis functions end 10
    /// nats lower.
    pub prune_below: f64,
    /// Joint updates end if one of them gains fewer nats than this.
    pub rise: f64,
    /// Most joint updates between two batches.
    pub steps: usize,
    /// Joint updates at first with the Hessian fixed at one mode. The number is halved if they have not raised the
    /// evidence.
    pub frozen_steps: usize,
    /// Least gain of an action during a noise restart, in nats. Its model is a starting point, so that small gains do
    /// not matter.
    pub restart_gain: f64,
    /// Ratio of the noise precision that a restart fixes to that of the model that it starts from.
    pub restart_noise: f64,
}

impl Default for Policy {
    fn default() -> Policy {
        Policy {
            batch: 20,
            share: 0.2,
            clip: 2.0,
            prune_below: 1e-6,
            rise: 1e-3,
            steps: 200,
            frozen_steps: 16,
            restart_gain: 0.1,
            restart_noise: 4.0,
        }
    }
}

impl Policy {
    /// Checks the ranges. `path` is the name of the policy in the settings.
    fn check(&self, path: &str) -> Result<()> {
        for (name, value) in [("batch", self.batch), ("steps", self.steps), ("frozen_steps", self.frozen_steps)] {
            require(value >= 1, || format!("{path}.{name}"), value, "a whole number of at least 1")?;
        }
        let shares =
            [("share", self.share), ("prune_below", self.prune_below), ("rise", self.rise), ("restart_gain", self.restart_gain)];
        for (name, value) in shares {
            let good = value.is_finite() && value >= 0.0;
            require(good, || format!("{path}.{name}"), value, "zero or a positive number")?;
        }
        for (name, value) in [("clip", self.clip), ("restart_noise", self.restart_noise)] {
            let good = value.is_finite() && value > 0.0;
            require(good, || format!("{path}.{name}"), value, "a positive number")?;
        }
        Ok(())
    }
}
