//! Sums over the training rows that a model stores, so that rows can be added without the old ones.

use ndarray::Array2;
use serde::{Deserialize, Serialize};

use crate::prelude::*;

/// Sums over the training rows of a model at its landmarks. `Statistics::of` of the crate `relvec` restores them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeptStatistics {
    /// Number of each landmark in [`Model::relevance`](crate::Model::relevance), `[L]`.
    pub landmarks: Vec<usize>,
    /// The landmarks, [L, D], after scaling.
    #[serde(with = "super::stored::rows")]
    pub centres: Array2<f64>,
    #[doc(hidden)]
    pub n_rows: usize,
    /// Smallest and largest target.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[doc(hidden)]
    pub range: Option<(f64, f64)>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[doc(hidden)]
    pub noise: Option<NoiseSums>,
    /// Offset that is subtracted from the targets before they are summed.
    #[doc(hidden)]
    pub about: f64,
    #[doc(hidden)]
    pub tt: f64,
    #[doc(hidden)]
    pub weight: f64,
    /// Phi't, `[L + 1]`; the column of ones is first.
    #[doc(hidden)]
    pub f: Vec<f64>,
    /// Lower triangle of Phi'Phi, row by row; the column of ones is first.
    #[doc(hidden)]
    pub gram: Vec<Vec<f64>>,
}

/// Sums that a known noise variance per row requires beside those over the rows, (M48).
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct NoiseSums {
    /// Sum of the sample weights.
    pub count: f64,
    /// Sum of the products of sample weight and log noise precision.
    pub log_precision: f64,
    /// Largest noise variance.
    pub largest: f64,
}
