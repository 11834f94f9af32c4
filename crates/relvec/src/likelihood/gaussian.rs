//! Real targets with Gaussian noise.

use std::f64::consts::PI;

use serde::{Deserialize, Serialize};

use super::{LikelihoodFunction, NoiseModel, Working};
use crate::error::{Error, Result};
use crate::targets::{Given, Values};

/// t = f + noise, noise ~ N(0, `noise_variance`), or of a variance of its own in each row, see
/// [`Targets::with_noise_variance`](crate::Targets::with_noise_variance).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Gaussian {
    /// Noise variance in squared units of the target, > 0; `None` (JSON: null): learnt.
    pub noise_variance: Option<f64>,
}

impl LikelihoodFunction for Gaussian {
    fn check(&self) -> Result<()> {
        match self.noise_variance {
            Some(v) if !(v.is_finite() && v > 0.0) => Err(Error::Parameter {
                name: "likelihood.gaussian.noise_variance".into(),
                found: v.to_string(),
                expected: "a positive, finite number, or null to learn it".into(),
            }),
            _ => Ok(()),
        }
    }

    fn targets(&self, values: Values<'_>) -> Result<Vec<f64>> {
        match values {
            Values::Real(v) => Ok(v.to_vec()),
            Values::Outputs(v) => Ok(v.iter().copied().collect()),
            Values::Classes { .. } => Err(Error::Targets("the gaussian likelihood needs real targets, found classes".into())),
        }
    }

    fn outputs(&self, values: Values<'_>) -> usize {
        match values {
            Values::Outputs(v) => v.ncols(),
            _ => 1,
        }
    }

    fn uses(&self, given: &Given) -> bool {
        matches!(given, Given::Noise(_)) && self.noise_variance.is_none()
    }

    fn working(&self, y: &[f64], f: &[f64]) -> Working {
        let residual: Vec<f64> = y.iter().zip(f).map(|(y, f)| y - f).collect();
        Working {
            log_likelihood: residual.iter().map(|r| -0.5 * ((2.0 * PI).ln() + r * r)).collect(),
            curvature: vec![1.0; y.len()],
            third: vec![0.0; y.len()],
            residual,
        }
    }

    fn constant_curvature(&self) -> bool {
        true
    }

    fn noise(&self) -> NoiseModel {
        self.noise_variance.map_or(NoiseModel::Learnt, NoiseModel::Fixed)
    }
}
