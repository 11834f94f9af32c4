//! Sigmoid kernel.

use ndarray::{Array2, ArrayView2, ArrayViewMut2};
use serde::{Deserialize, Serialize};

use super::inner::{Products, weighted_products};
use super::{DataScale, Fill, Gamma, KernelFunction, finite, vector};
use crate::error::Result;

/// tanh(sum_d gamma_d x_d x'_d + coef0). Not positive definite, which a relevance vector machine
/// does not ask for.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Sigmoid {
    /// Scale of the inner product, > 0.
    pub gamma: Gamma,
    /// Added to the inner product.
    pub coef0: f64,
}

impl KernelFunction for Sigmoid {
    fn check(&self) -> Result<()> {
        self.gamma.check("sigmoid")?;
        finite("kernel.sigmoid.coef0", self.coef0)
    }

    fn resolve(&mut self, data: &DataScale) -> Result<()> {
        self.gamma.resolve("sigmoid", data)
    }

    fn block(&self, a: ArrayView2<f64>, b: ArrayView2<f64>, out: ArrayViewMut2<f64>) {
        self.at(b)(a, out);
    }

    fn at<'a>(&'a self, b: ArrayView2<f64>) -> Fill<'a> {
        let products = Products::new(b, &self.gamma);
        Box::new(move |a, mut out| {
            products.fill(a, out.view_mut());
            vector::map(out, |p| (p + self.coef0).tanh());
        })
    }

    fn parameters(&self) -> Vec<(String, f64)> {
        self.gamma.parameters()
    }

    fn set_parameters(&mut self, values: &[f64]) {
        self.gamma.set(values);
    }

    fn gradient(&self, a: ArrayView2<f64>, b: ArrayView2<f64>, w: ArrayView2<f64>) -> Vec<f64> {
        // dk/dlog gamma_d = gamma_d a_d b_d / cosh^2(..)
        let mut slope = Array2::zeros(w.dim());
        Products::new(b, &self.gamma).fill(a, slope.view_mut());
        slope.zip_mut_with(&w, |p, w| *p = w / (*p + self.coef0).cosh().powi(2));
        self.gamma.collect(weighted_products(a, b, slope.view(), &self.gamma))
    }
}
