//! Classifiers by regression on class labels, which have probabilities but no weight posterior.

use serde::{Deserialize, Serialize};

/// Data of a classifier from regression on labels under a process prior, (M80) to (M86), beside its expansion.
///
/// Its probabilities are computed from the functions alone. The link was fitted to held-out rows, which accounts for
/// the uncertainty of the weights. There is no variance, and nothing to moderate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LabelRegression {
    /// Amplitude of the process divided by the noise variance of the labels, rho. It is 0 if the features say nothing
    /// about the classes; their frequencies are then predicted.
    pub ratio: f64,
    /// Mean Kullback-Leibler divergence of the probabilities with the chosen centres from those with all rows, at
    /// held-out rows, in nats per function of the classes, (M85).
    pub divergence: f64,
}
