//! Precisions that are given.

use serde::{Deserialize, Serialize};

use crate::model::Model;

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
    /// Those of a model.
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
