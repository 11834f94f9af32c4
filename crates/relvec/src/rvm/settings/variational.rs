//! The scheme `variational`: its parameters.

use serde::{Deserialize, Serialize};

use super::reestimation;
use super::scheme::{Hyperpriors, SchemeSettings};
use crate::error::{Result, require};

/// Variational inference (Bishop & Tipping 2000). Every iteration raises the lower bound that takes the place of
/// the log evidence. All weights stay in the model unless `prune` is set: which of them matter is told by how
/// well they are determined.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Variational {
    /// Gamma hyperpriors, all positive: the bound contains their normalisation. In JSON those that are not named
    /// are 1e-6.
    #[serde(deserialize_with = "Proper::deserialize")]
    pub hyperpriors: Hyperpriors,
    /// Converged when an iteration raises the bound by no more than this many nats.
    pub tolerance: f64,
    /// First mean of every weight precision, in the user's units; `None`: 1/N^2 on unit columns.
    pub initial_alpha: Option<f64>,
    /// First noise variance, in the user's units; `None`: 0.01 var(t).
    pub initial_noise_variance: Option<f64>,
    /// Whether weights leave the model once the bound has come to rest, where it falls by no more than
    /// `tolerance` for that.
    pub prune: bool,
}

/// What is known of precisions by default: next to nothing.
const BROAD: Hyperpriors = Hyperpriors { a: 1e-6, b: 1e-6, c: 1e-6, d: 1e-6 };

/// How hyperpriors are read here: zero, their default elsewhere, is not proper.
#[derive(Deserialize)]
#[serde(remote = "Hyperpriors", default = "broad", deny_unknown_fields)]
struct Proper {
    a: f64,
    b: f64,
    c: f64,
    d: f64,
}

fn broad() -> Hyperpriors {
    BROAD
}

impl Variational {
    /// The scheme's name in model files.
    pub const NAME: &str = "variational";
}

impl Default for Variational {
    fn default() -> Self {
        Variational { hyperpriors: BROAD, tolerance: 1e-6, initial_alpha: None, initial_noise_variance: None, prune: false }
    }
}

impl SchemeSettings for Variational {
    fn check(&self, path: &str) -> Result<()> {
        let Hyperpriors { a, b, c, d } = self.hyperpriors;
        for (name, value) in [("a", a), ("b", b), ("c", c), ("d", d)] {
            let good = value.is_finite() && value > 0.0;
            let expected = "a positive number: the lower bound needs hyperpriors that can be normalised";
            require(good, || format!("{path}.hyperpriors.{name}"), value, expected)?;
        }
        reestimation::check(path, self.tolerance, self.initial_alpha, self.initial_noise_variance)
    }

    fn hyperpriors(&self) -> Hyperpriors {
        self.hyperpriors
    }
}
