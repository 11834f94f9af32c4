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

/// log(1 + exp(f)), without overflow.
fn softplus(f: f64) -> f64 {
    f.max(0.0) + (-f.abs()).exp().ln_1p()
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
        let p: Vec<f64> = f.iter().map(|f| sigmoid(*f)).collect();
        // y (1 - y) from both tails, so that it does not round to 0 when p rounds to 1.
        let curvature: Vec<f64> = f.iter().zip(&p).map(|(f, p)| p * sigmoid(-f)).collect();
        Working {
            log_likelihood: y.iter().zip(f).map(|(y, f)| y * f - softplus(*f)).collect(),
            residual: y.iter().zip(f).map(|(y, f)| if *y > 0.5 { sigmoid(-f) } else { -sigmoid(*f) }).collect(),
            third: curvature.iter().zip(&p).map(|(b, p)| b * (1.0 - 2.0 * p)).collect(),
            curvature,
        }
    }

    fn constant_curvature(&self) -> bool {
        false
    }

    fn noise(&self) -> NoiseModel {
        NoiseModel::None
    }
}
