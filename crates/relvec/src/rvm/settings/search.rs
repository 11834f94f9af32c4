//! The search as an inference scheme: its parameters, and what it asks of parts of the dictionary.

use serde::{Deserialize, Serialize};

use super::policy::Policy;
use super::scheme::{Hyperpriors, SchemeSettings, Start};
use crate::error::{Result, require};

/// Up to this many candidates are one problem: of more, G costs more than it saves, and a search over all
/// of them streams long rows for the sake of few columns.
const MOST_COLUMNS: usize = 1000;
/// As above, where the curvature moves with the weights.
const MOVING_MOST: usize = 500;
/// Beyond that the search works on so many at a time, at least.
pub(crate) const PART: usize = 200;
/// In an ample model what is left to gain by one basis function is less than what is known of the evidence: an action has
/// to gain so many nats for each row.
const AMPLE_GAIN: f64 = 3e-4;

/// The search for the highest evidence: from all columns down to few, then up by what gains.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Search {
    /// Gamma hyperpriors; a and b must be 0.
    pub hyperpriors: Hyperpriors,
    /// Converged when no action gains more than this many nats (times N/1000 above 1000 rows).
    pub tolerance: f64,
    /// Most excursions of regression: the noise is held low, then free again, and the better model kept.
    pub excursions: usize,
    /// Where the search starts.
    pub start: Start,
    /// Its constants.
    pub policy: Policy,
}

impl Default for Search {
    fn default() -> Self {
        Search {
            hyperpriors: Hyperpriors::default(),
            tolerance: 1e-3,
            excursions: 2,
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
