//! Any number of classes with one linear function each, coupled by the softmax.

use serde::{Deserialize, Serialize};

use crate::prelude::*;

/// P(class k) = exp(f_k) / sum_l exp(f_l).
///
/// Adding a constant to all f_k changes no probability, so that the K functions have K - 1 degrees of freedom.
/// Internally they are K - 1 orthonormal contrasts of the classes. A ridge prior on the K weights of a basis function
/// is the same prior on its K - 1 contrasts; the remaining direction has only its prior.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Softmax {}

/// Subtracts the logarithm of the sum of the exponentials from each entry.
pub fn normalise(f: &mut [f64]) {
    let top = f.iter().fold(f64::NEG_INFINITY, |m, v| m.max(*v));
    let log_sum = top + f.iter().map(|v| (v - top).exp()).sum::<f64>().ln();
    f.iter_mut().for_each(|v| *v -= log_sum);
}

/// Returns the variance of f_k - f_l, from the covariance of all functions, [K, K].
pub fn difference_variance(covariance: &[f64], classes: usize, k: usize, l: usize) -> f64 {
    let at = |k: usize, l: usize| covariance[k * classes + l];
    (at(k, k) + at(l, l) - 2.0 * at(k, l)).max(0.0)
}

/// Replaces the means, `[K]`, by moderated log probabilities, (M31), given the covariance, [K, K].
pub fn moderate(mean: &mut [f64], covariance: &[f64]) {
    let k = mean.len();
    let log_p = |i: usize| {
        // The term of l = i is exp(0) = 1.
        let term = |l: usize| {
            let v = difference_variance(covariance, k, i, l);
            -(mean[i] - mean[l]) / (1.0 + core::f64::consts::PI * v / 8.0).sqrt()
        };
        let terms: Vec<f64> = (0..k).map(term).collect();
        let top = terms.iter().fold(0.0f64, |m, t| m.max(*t));
        -(top + terms.iter().map(|t| (t - top).exp()).sum::<f64>().ln())
    };
    let mut out: Vec<f64> = (0..k).map(log_p).collect();
    normalise(&mut out);
    mean.copy_from_slice(&out);
}
