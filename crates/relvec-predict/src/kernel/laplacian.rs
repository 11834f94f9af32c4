//! Laplacian kernel.

use ndarray::{ArrayView2, ArrayViewMut2};
use serde::{Deserialize, Serialize};

use super::distance::absolute_distances;
use super::form::Form;
use super::{DataScale, Gamma, KernelFunction, vector};
use crate::error::Result;

/// exp(-sum_d gamma_d |x_d - x'_d|).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Laplacian {
    /// Inverse width, > 0.
    pub gamma: Gamma,
}

impl KernelFunction for Laplacian {
    fn check(&self) -> Result<()> {
        self.gamma.check("laplacian")
    }

    fn resolve(&mut self, data: &DataScale) -> Result<()> {
        self.gamma.resolve("laplacian", data)
    }

    fn block(&self, a: ArrayView2<f64>, b: ArrayView2<f64>, mut out: ArrayViewMut2<f64>) {
        absolute_distances(a, b, &self.gamma, out.view_mut());
        vector::map(out, |d| vector::exp(-d));
    }

    fn of_sums(&self, sums: &mut [f64]) {
        sums.iter_mut().for_each(|d| *d = vector::exp(-*d));
    }

    fn form(&self) -> Form<'_> {
        Form::Absolutes(&self.gamma)
    }

    fn gamma_mut(&mut self) -> Option<&mut Gamma> {
        Some(&mut self.gamma)
    }
}
