//! Real targets with Student-t noise, a mixture of Gaussian distributions with one mean and many scales.

use super::{Gaussian, LikelihoodFunction, NoiseModel, ScaleMixture, StudentT, Working, several};
use crate::error::Result;
use crate::special::{lgamma_rise, log_rise};
use crate::targets::Values;

/// Returns the likelihood of a row given its precision factor.
fn gaussian(own: &StudentT) -> Gaussian {
    Gaussian { noise_variance: own.noise_variance }
}

/// Returns the row factors (M52) at expected squared residuals d = beta <r^2> (`distance`, `[N]`).
pub(crate) fn row_factors(distance: &[f64], degrees: f64) -> Vec<f64> {
    // With infinitely many degrees of freedom the noise is Gaussian.
    distance.iter().map(|d| if degrees.is_finite() { (degrees + 1.0) / (degrees + d) } else { 1.0 }).collect()
}

/// Returns the terms of the bound, (M54), of a row with factor u and weight 1, beside the log evidence of Gaussian noise.
pub(crate) fn row_constant(degrees: f64) -> impl Fn(f64) -> f64 {
    let half = 0.5 * degrees;
    let shape = half + 0.5;
    // With many degrees of freedom the differences are small and their terms are huge, so they are not computed by
    // subtraction.
    let fixed = 0.5 + lgamma_rise(half, 0.5) - half * log_rise(half, 0.5) - 0.5 * shape.ln();
    move |u| 0.5 * u.ln() + half * ((u - 1.0).ln_1p() - (u - 1.0)) + fixed
}

impl LikelihoodFunction for StudentT {
    fn targets(&self, values: Values<'_>) -> Result<Vec<f64>> {
        match values {
            Values::Outputs(v) => Err(several("student_t", v.ncols())),
            _ => gaussian(self).targets(values),
        }
    }

    fn working(&self, y: &[f64], f: &[f64]) -> Working {
        gaussian(self).working(y, f)
    }

    fn constant_curvature(&self) -> bool {
        true
    }

    fn scale_mixture(&self) -> Option<ScaleMixture> {
        Some(ScaleMixture { degrees: self.noise_degrees })
    }

    fn noise(&self) -> NoiseModel {
        gaussian(self).noise()
    }
}
