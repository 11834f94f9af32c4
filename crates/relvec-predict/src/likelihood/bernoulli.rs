//! Two classes with the logistic link.

use serde::{Deserialize, Serialize};

use crate::prelude::*;

/// P(class 1) = sigmoid(f) = 1 / (1 + exp(-f)).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Bernoulli {}

/// Returns 1 / (1 + exp(-f)), without overflow.
pub fn sigmoid(f: f64) -> f64 {
    if f >= 0.0 {
        1.0 / (1.0 + (-f).exp())
    } else {
        let e = f.exp();
        e / (1.0 + e)
    }
}
