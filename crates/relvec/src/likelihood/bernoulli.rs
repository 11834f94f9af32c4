//! Two classes with the logistic link.

use super::{Bernoulli, LikelihoodFunction, NoiseModel, Working};
use crate::error::{Error, Result};
use crate::kernel::vector::{self, Sweep};
use crate::targets::{Values, check_labels};

/// Computes the derivatives of each row.
struct AtRows<'a> {
    y: &'a [f64],
    f: &'a [f64],
    out: &'a mut Working,
}

impl Sweep for AtRows<'_> {
    #[inline(always)]
    fn run(self) {
        let Working { log_likelihood, residual, curvature, third } = self.out;
        let first = self.y.iter().zip(self.f).zip(log_likelihood).zip(residual);
        for ((((y, f), log_likelihood), residual), (curvature, third)) in first.zip(curvature.iter_mut().zip(third)) {
            // Both tails come from one exponential, so that neither rounds to 0 when the other rounds to 1.
            let e = vector::decay(f.abs());
            let near = 1.0 / (1.0 + e);
            let far = e * near;
            let positive = *f >= 0.0;
            let (one, zero) = (if positive { near } else { far }, if positive { far } else { near });
            let is_one = *y > 0.5;
            // Distance of f from 0 on the wrong side. Nothing cancels on the right side.
            let wrong = if positive == is_one { 0.0 } else { f.abs() };
            let b = one * zero;
            *log_likelihood = -(wrong + vector::log_1p(e));
            *residual = if is_one { zero } else { -one };
            *curvature = b;
            *third = b * (1.0 - 2.0 * one);
        }
    }
}

impl LikelihoodFunction for Bernoulli {
    fn targets(&self, values: Values<'_>) -> Result<Vec<f64>> {
        let Values::Classes { labels, count } = values else {
            return Err(Error::Targets("the bernoulli likelihood needs class labels, found real targets".into()));
        };
        if count != 2 {
            return Err(Error::Targets(format!("the bernoulli likelihood needs exactly 2 classes, found {count}")));
        }
        check_labels(labels, count, 0)?;
        Ok(labels.iter().map(|l| *l as f64).collect())
    }

    fn working(&self, y: &[f64], f: &[f64]) -> Working {
        let zeros = || vec![0.0; f.len()];
        let mut out = Working { log_likelihood: zeros(), residual: zeros(), curvature: zeros(), third: zeros() };
        vector::run(AtRows { y, f, out: &mut out });
        out
    }

    /// The derivative of the moderated probability, (M18), with respect to f.
    fn mean_curvature(&self, f: &[f64], covariance: &[f64], out: &mut [f64]) {
        let kappa = 1.0 / (1.0 + std::f64::consts::PI * covariance[0] / 8.0).sqrt();
        let e = (-(kappa * f[0]).abs()).exp();
        out[0] = kappa * e / ((1.0 + e) * (1.0 + e));
    }

    fn constant_curvature(&self) -> bool {
        false
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
