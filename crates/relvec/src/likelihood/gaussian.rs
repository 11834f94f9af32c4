//! Real targets with Gaussian noise.

use std::f64::consts::PI;

use super::{Gaussian, LikelihoodFunction, NoiseModel, Working};
use crate::error::{Error, Result};
use crate::targets::{Given, Values};

impl LikelihoodFunction for Gaussian {
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
        self.noise_variance.map_or(NoiseModel::Learned, NoiseModel::Fixed)
    }
}
