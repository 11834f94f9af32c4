//! The inference schemes, and the parameters of all but `search`: `em`, (M4), and `mackay`, (M5), which re-estimate all
//! precisions at once, `sequential` and `variational`.

use serde::{Deserialize, Serialize};

use super::scheme::{Hyperpriors, SchemeSettings, Start};
use super::search::Search;
use crate::error::{Result, require};
use crate::registry::registry;

registry! {
    /// An inference scheme with its parameters; [`Inference::NAMES`] lists them.
    pub enum Inference: SchemeSettings, "inference scheme" {
        /// Backward pruning from all basis functions, then local search; the default.
        Search = "search",
        /// Changes of one basis function at a time (Tipping & Faul 2003).
        Sequential = "sequential",
        /// MacKay's fixed point (Tipping 1999).
        MacKay = "mackay",
        /// Expectation maximisation.
        Em = "em",
        /// Variational inference (Bishop & Tipping 2000).
        Variational = "variational",
    }
}

/// Expectation maximisation: alpha_i = 1 / (mu_i^2 + Sigma_ii). It never lowers the evidence, and it is slow.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Em {
    /// Gamma hyperpriors.
    pub hyperpriors: Hyperpriors,
    /// The scheme has converged if no log precision changes by more than this in one iteration.
    pub tolerance: f64,
    /// Initial value of every weight precision, in the user's units; `None` is 1/N^2 for columns of unit norm.
    pub initial_alpha: Option<f64>,
    /// Initial noise variance, in the user's units; `None` is 0.01 var(t).
    pub initial_noise_variance: Option<f64>,
    /// True if weights that the data do not determine (gamma < 1e-12) are pruned.
    pub prune: bool,
}

impl Default for Em {
    fn default() -> Self {
        Em {
            hyperpriors: Hyperpriors::default(),
            tolerance: 1e-3,
            initial_alpha: None,
            initial_noise_variance: None,
            prune: true,
        }
    }
}

impl SchemeSettings for Em {
    fn check(&self, path: &str) -> Result<()> {
        self.hyperpriors.check(path)?;
        check(path, self.tolerance, self.initial_alpha, self.initial_noise_variance)
    }

    fn hyperpriors(&self) -> Hyperpriors {
        self.hyperpriors
    }
}

/// MacKay's fixed point (Tipping 1999, eq. 8 and 9): alpha_i = gamma_i / mu_i^2. Fast.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MacKay {
    /// Gamma hyperpriors.
    pub hyperpriors: Hyperpriors,
    /// The scheme has converged if no log precision changes by more than this in one iteration.
    pub tolerance: f64,
    /// Initial value of every weight precision, in the user's units; `None` is 1/N^2 for columns of unit norm.
    pub initial_alpha: Option<f64>,
    /// Initial noise variance, in the user's units; `None` is 0.01 var(t).
    pub initial_noise_variance: Option<f64>,
    /// True if weights that the data do not determine (gamma < 1e-12) are pruned.
    pub prune: bool,
}

impl Default for MacKay {
    fn default() -> Self {
        MacKay {
            hyperpriors: Hyperpriors::default(),
            tolerance: 1e-3,
            initial_alpha: None,
            initial_noise_variance: None,
            prune: true,
        }
    }
}

impl SchemeSettings for MacKay {
    fn check(&self, path: &str) -> Result<()> {
        self.hyperpriors.check(path)?;
        check(path, self.tolerance, self.initial_alpha, self.initial_noise_variance)
    }

    fn hyperpriors(&self) -> Hyperpriors {
        self.hyperpriors
    }
}

/// Checks the parameters that are common to the schemes which re-estimate all precisions at once.
pub(super) fn check(path: &str, tolerance: f64, initial_alpha: Option<f64>, initial_noise_variance: Option<f64>) -> Result<()> {
    let positive = |v: f64| v.is_finite() && v > 0.0;
    require(positive(tolerance), || format!("{path}.tolerance"), tolerance, "a positive number")?;
    for (name, value) in [("initial_alpha", initial_alpha), ("initial_noise_variance", initial_noise_variance)] {
        let good = value.is_none_or(positive);
        require(good, || format!("{path}.{name}"), value.unwrap_or(0.0), "a positive number, or null")?;
    }
    Ok(())
}

/// Sequential sparse Bayesian learning (Tipping & Faul 2003). Each iteration adds, re-estimates or deletes the basis
/// function whose change raises the evidence most, until no change does. The noise variance is optimal throughout.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Sequential {
    /// Gamma hyperpriors; a and b must be 0.
    pub hyperpriors: Hyperpriors,
    /// The search has converged if no action gains more nats than this.
    pub tolerance: f64,
    /// Start of the search. [`Start::Auto`] is a model without basis functions.
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

/// Variational inference (Bishop & Tipping 2000). Every iteration raises a lower bound of the log evidence. All weights
/// stay in the model unless `prune` is set. Their well-determinedness tells which of them matter.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Variational {
    /// Gamma hyperpriors, all positive, since the bound contains their normalisation. In JSON, values that are not
    /// named are 1e-6.
    #[serde(deserialize_with = "Proper::deserialize")]
    pub hyperpriors: Hyperpriors,
    /// The scheme has converged if an iteration raises the bound by no more nats than this.
    pub tolerance: f64,
    /// Initial mean of every weight precision, in the user's units; `None` is 1/N^2 for columns of unit norm.
    pub initial_alpha: Option<f64>,
    /// Initial noise variance, in the user's units; `None` is 0.01 var(t).
    pub initial_noise_variance: Option<f64>,
    /// True if weights are pruned after convergence, as long as that lowers the bound by no more than `tolerance`.
    pub prune: bool,
}

/// Broad hyperpriors, the default: they contain almost no information.
const BROAD: Hyperpriors = Hyperpriors { a: 1e-6, b: 1e-6, c: 1e-6, d: 1e-6 };

/// Reader of hyperpriors with the default 1e-6. The default 0 of other schemes is improper.
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
        check(path, self.tolerance, self.initial_alpha, self.initial_noise_variance)
    }

    fn hyperpriors(&self) -> Hyperpriors {
        self.hyperpriors
    }
}
