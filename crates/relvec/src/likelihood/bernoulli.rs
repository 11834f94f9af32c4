//! Two classes with the logistic link.

use serde::{Deserialize, Serialize};

use super::{LikelihoodFunction, NoiseModel, Working};
use crate::error::{Error, Result};
use crate::targets::Values;

/// P(class 1) = sigmoid(f) = 1 / (1 + exp(-f)).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Bernoulli {}

/// 1 / (1 + exp(-f)), without overflow.
pub(crate) fn sigmoid(f: f64) -> f64 {
    if f >= 0.0 {
        1.0 / (1.0 + (-f).exp())
    } else {
        let e = f.exp();
        e / (1.0 + e)
    }
}

impl LikelihoodFunction for Bernoulli {
    fn check(&self) -> Result<()> {
        Ok(())
    }

    fn targets(&self, values: Values<'_>) -> Result<Vec<f64>> {
        let Values::Classes { labels, count } = values else {
            return Err(Error::Targets("the bernoulli likelihood needs class labels, found real targets".into()));
        };
        if count != 2 {
            return Err(Error::Targets(format!("the bernoulli likelihood needs exactly 2 classes, found {count}")));
        }
        if let Some((row, label)) = labels.iter().enumerate().find(|(_, l)| **l > 1) {
            return Err(Error::Targets(format!("row {row} has label {label}; labels of 2 classes are 0 and 1")));
        }
        Ok(labels.iter().map(|l| *l as f64).collect())
    }

    fn working(&self, y: &[f64], f: &[f64]) -> Working {
        let n = f.len();
        let mut out =
            Working { log_likelihood: vec![0.0; n], residual: vec![0.0; n], curvature: vec![0.0; n], third: vec![0.0; n] };
        for (n, (y, f)) in y.iter().zip(f).enumerate() {
            // Both tails from one exponential, so that neither rounds to 0 when the other rounds to 1.
            let e = (-f.abs()).exp();
            let (near, far) = (1.0 / (1.0 + e), e / (1.0 + e));
            let (one, zero) = if *f >= 0.0 { (near, far) } else { (far, near) };
            let b = one * zero;
            out.log_likelihood[n] = y * f - (f.max(0.0) + e.ln_1p());
            out.residual[n] = if *y > 0.5 { zero } else { -one };
            out.curvature[n] = b;
            out.third[n] = b * (1.0 - 2.0 * one);
        }
        out
    }

    /// The slope of the moderated probability, (M18), with respect to f.
    fn mean_curvature(&self, f: &[f64], covariance: &[f64], out: &mut [f64]) {
        let kappa = 1.0 / (1.0 + std::f64::consts::PI * covariance[0] / 8.0).sqrt();
        let e = (-(kappa * f[0]).abs()).exp();
        out[0] = kappa * e / ((1.0 + e) * (1.0 + e));
    }

    fn constant_curvature(&self) -> bool {
        false
    }

    fn largest_curvature(&self) -> Option<f64> {
        Some(0.25)
    }

    fn classifies(&self) -> bool {
        true
    }

    fn has_variational_bound(&self) -> bool {
        true
    }

    fn noise(&self) -> NoiseModel {
        NoiseModel::None
    }
}
