//! Rational quadratic kernel: a mixture of Gaussian kernels of all widths.

use ndarray::{ArrayView2, ArrayViewMut2};
use serde::{Deserialize, Serialize};

use super::distance::{Apply, Distances};
use super::form::Form;
use super::vector::Pointwise;
use super::{DataScale, Fill, Gamma, KernelFunction, positive, vector};
use crate::error::Result;
use crate::prelude::*;

/// (1 + d^2 / shape)^-shape, where d^2 = sum_d gamma_d (x_d - x'_d)^2. It approaches the Gaussian kernel as shape
/// grows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RationalQuadratic {
    /// Inverse squared width, > 0.
    pub gamma: Gamma,
    /// Shape, > 0. The larger it is, the more similar are the widths in the mixture.
    pub shape: f64,
}

impl Default for RationalQuadratic {
    fn default() -> Self {
        RationalQuadratic { gamma: Gamma::default(), shape: 1.0 }
    }
}

impl Pointwise for &RationalQuadratic {
    /// Returns k as a function of d^2.
    #[inline(always)]
    fn value(self, d2: f64) -> f64 {
        let r = self.ratio(d2);
        if self.shape == 1.0 { 1.0 / (1.0 + r) } else { (-self.shape * r.ln_1p()).exp() }
    }
}

impl RationalQuadratic {
    /// Returns d^2 / shape, kept finite.
    #[doc(hidden)]
    #[inline(always)]
    pub fn ratio(&self, d2: f64) -> f64 {
        (d2 / self.shape).min(f64::MAX)
    }
}

impl KernelFunction for RationalQuadratic {
    fn check(&self) -> Result<()> {
        self.gamma.check("rational_quadratic")?;
        positive("kernel.rational_quadratic.shape", self.shape)
    }

    fn resolve(&mut self, data: &DataScale) -> Result<()> {
        self.gamma.resolve("rational_quadratic", data)
    }

    fn block(&self, a: ArrayView2<f64>, b: ArrayView2<f64>, out: ArrayViewMut2<f64>) {
        self.at(b)(a, out);
    }

    fn at<'a>(&'a self, b: ArrayView2<f64>) -> Fill<'a> {
        let distances = Distances::new(b, &self.gamma);
        Box::new(move |a, out| distances.squared(a, out, self))
    }

    fn parameters(&self) -> Vec<(String, f64)> {
        let mut all = self.gamma.parameters();
        all.push(("shape".into(), self.shape));
        all
    }

    fn set_parameters(&mut self, values: &[f64]) {
        let rest = self.gamma.set(values);
        self.shape = rest[0];
    }

    fn of_sums(&self, sums: &mut [f64]) {
        vector::run(Apply { f: self, row: sums });
    }

    fn form(&self) -> Form<'_> {
        Form::Squares(&self.gamma)
    }

    fn gamma_mut(&mut self) -> Option<&mut Gamma> {
        Some(&mut self.gamma)
    }
}
