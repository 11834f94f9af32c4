//! What the inference schemes share.

use serde::{Deserialize, Serialize};

use crate::error::{Result, require};
use crate::model::Model;

/// Gamma hyperpriors: Gamma(a, b) on each weight precision, Gamma(c, d) on the noise precision,
/// density proportional to x^(a-1) exp(-b x). Zero, the default, is the papers' uniform hyperprior
/// over log precisions. b and d are in the user's units.
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

    /// Checks the ranges for a scheme in which basis functions come and go; `path` is that of the scheme in the settings.
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

    /// Checks the ranges; `path` is that of the scheme in the settings.
    pub(crate) fn check(&self, path: &str) -> Result<()> {
        for (name, value) in [("a", self.a), ("b", self.b), ("c", self.c), ("d", self.d)] {
            let good = value.is_finite() && value >= 0.0;
            require(good, || format!("{path}.hyperpriors.{name}"), value, "zero or a positive number")?;
        }
        Ok(())
    }
}

/// Where a search for basis functions starts.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Start {
    /// Of the scheme `search` from all basis functions, or as many as memory allows; where the curvature of the likelihood moves
    /// from the bias. Of the scheme `sequential` from no basis function.
    #[default]
    Auto,
    /// From no basis function at all.
    Empty,
    /// From a model at given precisions.
    Given(Hyperparameters),
}

/// What a scheme asks of a fit: its parameters do not change.
pub(crate) trait SchemeSettings: Send + Sync {
    /// Checks the parameters alone; `path` is that of the scheme in the settings.
    fn check(&self, path: &str) -> Result<()>;

    /// The hyperpriors in use.
    fn hyperpriors(&self) -> Hyperpriors;

    /// Whether columns that have left the model, or were never in it, are tried.
    fn adds(&self) -> bool {
        false
    }

    /// Most candidates that one problem may have; `None`: any number, all have to be in one.
    fn most_columns(&self, _constant_curvature: bool) -> Option<usize> {
        None
    }

    /// Where a search starts; the candidates that it names have to be in the first part.
    fn start(&self) -> &Start {
        &Start::Auto
    }

    /// Nats that a candidate outside a part must promise, for that many rows; `ample`: the model has so many weights that single
    /// basis functions hardly matter.
    fn least_gain(&self, _count: f64, _ample: bool) -> f64 {
        0.0
    }
}

/// Precisions of a model, in the user's units: where to start a search, or what to evaluate.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Hyperparameters {
    /// Training rows (or columns of a given design matrix) in the model, each once.
    pub relevance: Vec<usize>,
    /// Their weight precisions, > 0, `[M]`.
    pub alpha: Vec<f64>,
    /// Precision of the bias, > 0; `None`: not in the model.
    pub intercept_alpha: Option<f64>,
    /// Noise variance, > 0; needed with a Gaussian likelihood whose noise is learnt.
    pub noise_variance: Option<f64>,
    /// Of several outputs: see [`Posterior::variance_ratios`](crate::Posterior::variance_ratios); what else is given is
    /// then that of the first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub variance_ratios: Vec<f64>,
    /// With a precision for each class: see [`Model::class_alpha`]; the others are then not looked at where a model is
    /// evaluated. A search begins at the others, and shares them. Empty: each class has the others.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub class_alpha: Vec<Vec<Option<f64>>>,
}

impl Hyperparameters {
    /// Hyperparameters of a model.
    pub fn of(model: &Model) -> Hyperparameters {
        Hyperparameters {
            relevance: model.relevance.clone(),
            alpha: model.alpha.clone(),
            intercept_alpha: model.intercept_alpha,
            // Where that of each row is given, the model has none of its own.
            noise_variance: model.noise_variance().filter(|variance| *variance > 0.0),
            variance_ratios: model.posterior.as_ref().map_or(vec![], |posterior| posterior.variance_ratios.clone()),
            class_alpha: model.class_alpha.clone(),
        }
    }
}
