//! Classifiers by regression on the labels of the classes, which have probabilities but no posterior of the weights.

use serde::{Deserialize, Serialize};

/// What is known of a classifier from regression on labels under a process prior, (M80) to (M86), beside its expansion.
///
/// Its probabilities are those of the functions themselves: the link was fitted to left-out rows, which pays for not knowing the
/// weights. There is nothing to moderate, and no variance.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LabelRegression {
    /// Amplitude of the process over the noise variance of the labels, rho; 0 where the features tell nothing of the classes, and
    /// their frequencies are predicted.
    pub ratio: f64,
    /// Mean Kullback-Leibler divergence of the probabilities that the centres carry from those of all rows, at left-out rows, in
    /// nats for each function of the classes, (M85).
    pub divergence: f64,
}
