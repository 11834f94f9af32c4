//! The constants of the search.

use serde::{Deserialize, Serialize};

use crate::error::{Result, require};

/// Constants of the search: what it takes at a time, and when it rests. None depends on the units of a table.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Policy {
    /// Most columns that come between two settlings, each conditional on those before it.
    pub batch: usize,
    /// A column of a batch gains at least this share of what the first gains; from 0 to 0.2 it makes no difference beyond chance.
    pub share: f64,
    /// Longest step of a log precision; 3 is as good.
    pub clip: f64,
    /// A weight of fewer degrees of freedom leaves with the next joint step; with 1e-4 models of 500 basis functions end 10 nats lower.
    pub dead: f64,
    /// Joint steps end when one gains fewer nats.
    pub rise: f64,
    /// Joint steps between two actions at most.
    pub steps: usize,
    /// Joint steps with the curvature of one mode held, at first; half as many after those that have not raised the evidence.
    pub held_steps: usize,
    /// Nats that an action gains during an excursion, whose model is only a way.
    pub excursion_gain: f64,
    /// The noise precision held during an excursion, over that of the model left.
    pub excursion_noise: f64,
    /// Where the curvature moves, so many actions that fail in a row are rest.
    pub futile: usize,
}

impl Default for Policy {
    fn default() -> Policy {
        Policy {
            batch: 20,
            share: 0.2,
            clip: 2.0,
            dead: 1e-6,
            rise: 1e-3,
            steps: 200,
            held_steps: 16,
            excursion_gain: 0.1,
            excursion_noise: 4.0,
            futile: 12,
        }
    }
}

impl Policy {
    /// Checks the ranges; `path` is that of the policy in the settings.
    pub(super) fn check(&self, path: &str) -> Result<()> {
        let counts = [("batch", self.batch), ("steps", self.steps), ("held_steps", self.held_steps), ("futile", self.futile)];
        for (name, value) in counts {
            require(value >= 1, || format!("{path}.{name}"), value, "a whole number of at least 1")?;
        }
        let shares = [("share", self.share), ("dead", self.dead), ("rise", self.rise), ("excursion_gain", self.excursion_gain)];
        for (name, value) in shares {
            let good = value.is_finite() && value >= 0.0;
            require(good, || format!("{path}.{name}"), value, "zero or a positive number")?;
        }
        for (name, value) in [("clip", self.clip), ("excursion_noise", self.excursion_noise)] {
            let good = value.is_finite() && value > 0.0;
            require(good, || format!("{path}.{name}"), value, "a positive number")?;
        }
        Ok(())
    }
}
