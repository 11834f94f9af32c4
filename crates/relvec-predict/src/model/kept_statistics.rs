//! Sums over the training rows that a model keeps, so that rows can be added without the old ones.

use ndarray::Array2;
use serde::{Deserialize, Serialize};

use crate::prelude::*;

/// Sums over the rows that a model was learnt from, at its landmarks: what
/// `Statistics::of` of the crate `relvec` brings back to life.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeptStatistics {
    /// What [`Model::relevance`](crate::Model::relevance) calls each of the landmarks, `[L]`.
    pub landmarks: Vec<usize>,
    /// The landmarks, [L, D], after scaling.
    #[serde(with = "super::stored::rows")]
    pub centres: Array2<f64>,
    #[doc(hidden)]
    pub n_rows: usize,
    /// Least and largest target.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[doc(hidden)]
    pub range: Option<(f64, f64)>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[doc(hidden)]
    pub noise: Option<NoiseSums>,
    /// What the targets are summed about.
    #[doc(hidden)]
    pub about: f64,
    #[doc(hidden)]
    pub tt: f64,
    #[doc(hidden)]
    pub weight: f64,
    /// Phi't, `[L + 1]`, and the lower triangle of Phi'Phi, row by row; the column of ones first.
    #[doc(hidden)]
    pub f: Vec<f64>,
    #[doc(hidden)]
    pub gram: Vec<Vec<f64>>,
}

/// What is to be known of known noise beside the sums, (M48).
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct NoiseSums {
    /// Sum of the sample weights.
    pub count: f64,
    /// Sum of sample weight times log noise precision.
    pub log_precision: f64,
    /// The largest noise variance.
    pub largest: f64,
}
