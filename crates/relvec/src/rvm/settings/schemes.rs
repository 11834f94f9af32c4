//! The schemes `em`, (M4), and `mackay`, (M5), which re-estimate all precisions at once, `sequential` and `variational`: their
//! parameters.

use serde::{Deserialize, Serialize};

use super::scheme::{Hyperpriors, SchemeSettings, Start};
use crate::error::{Result, require};

/// EM: alpha_i = 1 / (mu_i^2 + Sigma_ii). Never lowers the evidence; slow.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Em {
    /// Gamma hyperpriors.
    pub hyperpriors: Hyperpriors,
    /// Converged when no log precision moves by more than this in one iteration.
    pub tolerance: f64,
    /// First value of every weight precision, in the user's units; `None`: 1/N^2 on unit columns.
    pub initial_alpha: Option<f64>,
    /// First noise variance, in the user's units; `None`: 0.01 var(t).
    pub initial_noise_variance: Option<f64>,
    /// Whether weights that the data no longer determine (gamma < 1e-12) leave the model.
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
    /// Converged when no log precision moves by more than this in one iteration.
    pub tolerance: f64,
    /// First value of every weight precision, in the user's units; `None`: 1/N^2 on unit columns.
    pub initial_alpha: Option<f64>,
    /// First noise variance, in the user's units; `None`: 0.01 var(t).
    pub initial_noise_variance: Option<f64>,
    /// Whether weights that the data no longer determine (gamma < 1e-12) leave the model.
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

/// Checks the parameters that all schemes have which re-estimate all precisions at once.
pub(super) fn check(path: &str, tolerance: f64, initial_alpha: Option<f64>, initial_noise_variance: Option<f64>) -> Result<()> {
    let positive = |v: f64| v.is_finite() && v > 0.0;
    require(positive(tolerance), || format!("{path}.tolerance"), tolerance, "a positive number")?;
    for (name, value) in [("initial_alpha", initial_alpha), ("initial_noise_variance", initial_noise_variance)] {
        let good = value.is_none_or(positive);
        require(good, || format!("{path}.{name}"), value.unwrap_or(0.0), "a positive number, or null")?;
    }
    Ok(())
}

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

/// Broad hyperpriors, the default: they contain almost no information.
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
        check(path, self.tolerance, self.initial_alpha, self.initial_noise_variance)
    }

    fn hyperpriors(&self) -> Hyperpriors {
        self.hyperpriors
    }
}
