//! Gaussian kernel.

use ndarray::{ArrayView2, ArrayViewMut2};
use serde::{Deserialize, Serialize};

use super::distance::{Apply, Distances};
use super::form::Form;
use super::vector::Decay;
use super::{DataScale, Fill, Gamma, KernelFunction, vector};
use crate::error::Result;
use crate::prelude::*;

/// exp(-sum_d gamma_d (x_d - x'_d)^2). Tipping's width r is gamma = 1 / r^2.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Rbf {
    /// Inverse squared width, > 0.
    pub gamma: Gamma,
}

impl KernelFunction for Rbf {
    fn check(&self) -> Result<()> {
        self.gamma.check("rbf")
    }

    fn resolve(&mut self, data: &DataScale) -> Result<()> {
        self.gamma.resolve("rbf", data)
    }

    fn block(&self, a: ArrayView2<f64>, b: ArrayView2<f64>, out: ArrayViewMut2<f64>) {
        self.at(b)(a, out);
    }

    fn at<'a>(&'a self, b: ArrayView2<f64>) -> Fill<'a> {
        let distances = Distances::new(b, &self.gamma);
        Box::new(move |a, out| distances.squared(a, out, Decay))
    }

    fn of_sums(&self, sums: &mut [f64]) {
        vector::run(Apply { f: Decay, row: sums });
    }

    fn form(&self) -> Form<'_> {
        Form::Squares(&self.gamma)
    }

    fn gamma_mut(&mut self) -> Option<&mut Gamma> {
        Some(&mut self.gamma)
    }
}
