//! The inference schemes and their parameters: `search`, `sequential`, `mackay` (M5), `em` (M4) and `variational`.

use serde::{Deserialize, Serialize};

use crate::error::{Result, require};
use crate::model::Model;
use crate::registry::registry;

/// Gamma hyperpriors: Gamma(a, b) on each weight precision and Gamma(c, d) on the noise precision.
///
/// The density of Gamma(a, b) is proportional to x^(a-1) exp(-b x). The default 0 is the uniform hyperprior over log
/// precisions of the papers. b and d are in the user's units.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Hyperpriors {
    /// Shape for the weight precisions, >= 0.
    pub a: f64,
    /// Rate for the weight precisions, >= 0, in squared units of a weight.
    pub b: f64,
    /// Shape for the noise precision, >= 0.
    pub c: f64,
    /// Rate for the noise precision, >= 0, in squared units of the target.
    pub d: f64,
}

impl Hyperpriors {
    /// Checks the ranges for a scheme that adds basis functions. `path` is the name of the scheme in the settings.
    pub(crate) fn check_of_search(&self, path: &str) -> Result<()> {
        self.check(path)?;
        for (name, value) in [("a", self.a), ("b", self.b)] {
            require(
                value == 0.0,
                || format!("{path}.hyperpriors.{name}"),
                value,
                "0: with a hyperprior on the weight precisions an absent basis function has no finite objective; \
                 use the scheme em or mackay",
            )?;
        }
        Ok(())
    }

    /// Checks the ranges. `path` is the name of the scheme in the settings.
    pub(crate) fn check(&self, path: &str) -> Result<()> {
        for (name, value) in [("a", self.a), ("b", self.b), ("c", self.c), ("d", self.d)] {
            let good = value.is_finite() && value >= 0.0;
            require(good, || format!("{path}.hyperpriors.{name}"), value, "zero or a positive number")?;
        }
        Ok(())
    }
}

/// Start of a search for basis functions.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Start {
    /// For the scheme `search`, all basis functions, or as many as memory allows; the bias alone if the Hessian depends
    /// on the weights. For the scheme `sequential`, no basis function.
    #[default]
    Auto,
    /// No basis function.
    Empty,
    /// A model at given precisions.
    Given(Hyperparameters),
}

/// Properties of an inference scheme that follow from its parameters.
pub(crate) trait SchemeSettings: Send + Sync {
    /// Checks the parameters. `path` is the name of the scheme in the settings.
    fn check(&self, path: &str) -> Result<()>;

    /// Returns the hyperpriors in use.
    fn hyperpriors(&self) -> Hyperpriors;

    /// Returns true if the scheme adds basis functions to a model.
    fn adds(&self) -> bool {
        false
    }

    /// Returns the largest number of candidates that are searched at once; `None` if all of them must be.
    fn most_columns(&self, _constant_curvature: bool) -> Option<usize> {
        None
    }

    /// Returns the start of the search. The first working set must contain the candidates that it names.
    fn start(&self) -> &Start {
        &Start::Auto
    }

    /// Returns the least predicted gain, in nats, of a candidate outside the working set, for `count` rows.
    fn least_gain(&self, _count: f64) -> f64 {
        0.0
    }
}

/// Precisions of a model, in the user's units, at which a search starts or a model is evaluated.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Hyperparameters {
    /// Training rows (or columns of a given design matrix) in the model, without repetition, `[M]`.
    pub relevance: Vec<usize>,
    /// Their weight precisions, > 0, `[M]`.
    pub alpha: Vec<f64>,
    /// Precision of the bias, > 0; `None` if the model has no bias.
    pub intercept_alpha: Option<f64>,
    /// Noise variance, > 0. A Gaussian likelihood whose noise is learned requires it.
    pub noise_variance: Option<f64>,
    /// Ratios of the noise variances of several outputs to that of the first, see
    /// [`Posterior::variance_ratios`](crate::Posterior::variance_ratios). The other values here are those of the first
    /// output.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub variance_ratios: Vec<f64>,
}

impl Hyperparameters {
    /// Returns the hyperparameters of a model.
    pub fn of(model: &Model) -> Hyperparameters {
        Hyperparameters {
            relevance: model.relevance.clone(),
            alpha: model.alpha.clone(),
            intercept_alpha: model.intercept_alpha,
            // A model whose noise variances were given for each row has no noise variance.
            noise_variance: model.noise_variance().filter(|variance| *variance > 0.0),
            variance_ratios: model.posterior.as_ref().map_or(vec![], |posterior| posterior.variance_ratios.clone()),
        }
    }
}

/// Largest number of candidates that are searched at once if the Hessian is constant. With more, the Gram matrix costs
/// more than it saves, and the search alternates between working sets and candidate scans.
const MOST_COLUMNS: usize = 1000;
/// Largest number of candidates that are searched at once if the Hessian depends on the weights, and of weights of all
/// outputs that are re-estimated at once. The mode is then found for each set of precisions.
pub(crate) const MOVING_MOST: usize = 500;
/// Smallest size of a working set.
pub(crate) const PART: usize = 200;

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

    fn least_gain(&self, count: f64) -> f64 {
        self.tolerance * (count / 1000.0).max(1.0)
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

/// Reader of hyperpriors with the default 1e-6. The default 0 of other schemes is improper.
#[derive(Deserialize)]
#[serde(remote = "Hyperpriors", default = "broad", deny_unknown_fields)]
struct Proper {
    a: f64,
    b: f64,
    c: f64,
    d: f64,
}

/// Returns broad hyperpriors, the default: they contain almost no information.
fn broad() -> Hyperpriors {
    Hyperpriors { a: 1e-6, b: 1e-6, c: 1e-6, d: 1e-6 }
}

impl Variational {
    /// The scheme's name in model files.
    pub const NAME: &str = "variational";
}

impl Default for Variational {
    fn default() -> Self {
        Variational { hyperpriors: broad(), tolerance: 1e-6, initial_alpha: None, initial_noise_variance: None, prune: false }
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
