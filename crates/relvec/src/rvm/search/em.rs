//! The scheme `em`, (M4).

use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::rvm::evidence::batch::Rule;
use crate::rvm::evidence::workspace::Workspace;
use crate::rvm::search::reestimation::{Reestimation, Settings};
use crate::rvm::search::scheme::{Entry, Hyperpriors, Run, Scheme};

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
impl Em {
    fn settings(&self) -> Settings {
        Settings {
            rules: &[Rule::Em],
            hyperpriors: self.hyperpriors,
            tolerance: self.tolerance,
            initial_alpha: self.initial_alpha,
            initial_noise_variance: self.initial_noise_variance,
            prune: self.prune,
        }
    }
}

impl Scheme for Em {
    fn check(&self, path: &str) -> Result<()> {
        self.settings().check(path)
    }

    fn hyperpriors(&self) -> Hyperpriors {
        self.hyperpriors
    }

    fn start<'p>(&self, work: &Workspace<'p>, entry: &Entry) -> Result<Box<dyn Run<'p> + 'p>> {
        Ok(Box::new(Reestimation::start(work, self.settings(), entry)?))
    }
}
