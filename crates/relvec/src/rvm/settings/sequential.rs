//! The scheme `sequential`: its parameters.

use serde::{Deserialize, Serialize};

use super::scheme::{Hyperpriors, SchemeSettings, Start};
use crate::error::{Result, require};

/// Sequential sparse Bayesian learning: of all basis functions the one whose addition, re-estimation or deletion raises the evidence
/// most is changed, until none does. The noise is at its best throughout.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Sequential {
    /// Gamma hyperpriors; a and b must be 0.
    pub hyperpriors: Hyperpriors,
    /// Converged when no action gains more than this many nats.
    pub tolerance: f64,
    /// Where it starts; [`Start::Auto`] is from no basis function.
    pub start: Start,
}

impl Default for Sequential {
    fn default() -> Self {
        Sequential { hyperpriors: Hyperpriors::default(), tolerance: 1e-4, start: Start::Auto }
    }
}

impl SchemeSettings for Sequential {
    fn check(&self, path: &str) -> Result<()> {
        self.hyperpriors.check_of_search(path)?;
        let positive = self.tolerance.is_finite() && self.tolerance > 0.0;
        require(positive, || format!("{path}.tolerance"), self.tolerance, "a positive number")
    }

    fn hyperpriors(&self) -> Hyperpriors {
        self.hyperpriors
    }

    fn adds(&self) -> bool {
        true
    }

    fn start(&self) -> &Start {
        &self.start
    }
}
