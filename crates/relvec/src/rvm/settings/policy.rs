//! The constants of the search.

use serde::{Deserialize, Serialize};

use crate::error::{Result, require};

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
    pub(super) fn check(&self, path: &str) -> Result<()> {
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
