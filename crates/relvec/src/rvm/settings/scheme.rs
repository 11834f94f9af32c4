//! Parameters and properties that the inference schemes share.

use serde::{Deserialize, Serialize};

use crate::error::{Result, require};
use crate::model::Model;

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
    /// The papers' uniform hyperprior over log precisions.
    pub(crate) const FLAT: Hyperpriors = Hyperpriors { a: 0.0, b: 0.0, c: 0.0, d: 0.0 };

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

    /// Returns the least predicted gain, in nats, of a candidate outside the working set, for `count` rows. `ample` is
    /// true for models with so many weights that single basis functions hardly matter.
    fn least_gain(&self, _count: f64, _ample: bool) -> f64 {
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
