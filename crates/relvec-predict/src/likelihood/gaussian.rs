//! Real targets with Gaussian noise.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::prelude::*;

/// t = f + noise, noise ~ N(0, `noise_variance`). Rows may have noise variances of their own, see
/// `Targets::with_noise_variance` of the crate `relvec`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Gaussian {
    /// Noise variance in squared units of the target, > 0; `None` (JSON: null) if it is learned.
    pub noise_variance: Option<f64>,
}

impl Gaussian {
    pub(super) fn check(&self) -> Result<()> {
        match self.noise_variance {
            Some(v) if !(v.is_finite() && v > 0.0) => Err(Error::Parameter {
                name: "likelihood.gaussian.noise_variance".into(),
                found: v.to_string(),
                expected: "a positive, finite number, or null to learn it".into(),
            }),
            _ => Ok(()),
        }
    }
}
