//! Real targets with Student-t noise, a mixture of Gaussian distributions with one mean and many scales.

use super::{Gaussian, LikelihoodFunction, NoiseModel, ScaleMixture, StudentT, Working, several};
use crate::error::Result;
use crate::targets::Values;

/// Returns the likelihood of a row given its precision factor.
fn gaussian(own: &StudentT) -> Gaussian {
    Gaussian { noise_variance: own.noise_variance }
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
