//! The schemes `em`, (M4), and `mackay`, (M5), which re-estimate all precisions at once: their parameters.

use serde::{Deserialize, Serialize};

use super::scheme::{Hyperpriors, SchemeSettings};
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
