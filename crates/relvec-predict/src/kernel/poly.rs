//! Polynomial kernel.

use ndarray::{ArrayView2, ArrayViewMut2};
use serde::{Deserialize, Serialize};

use super::form::Form;
use super::inner::Products;
use super::{DataScale, Fill, Gamma, KernelFunction, finite, vector};
use crate::error::{Error, Result};
use crate::prelude::*;

/// (sum_d gamma_d x_d x'_d + coef0)^degree. Positive semidefinite if coef0 >= 0.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Poly {
    /// Scale of the inner product, > 0.
    pub gamma: Gamma,
    /// Offset added to the inner product.
    pub coef0: f64,
    /// Power, a whole number >= 1.
    pub degree: u32,
}

impl Default for Poly {
    fn default() -> Self {
        Poly { gamma: Gamma::default(), coef0: 0.0, degree: 3 }
    }
}

impl KernelFunction for Poly {
    fn check(&self) -> Result<()> {
        self.gamma.check("poly")?;
        finite("kernel.poly.coef0", self.coef0)?;
        if self.degree < 1 || i32::try_from(self.degree).is_err() {
            return Err(Error::Parameter {
                name: "kernel.poly.degree".into(),
                found: self.degree.to_string(),
                expected: format!("a whole number from 1 to {}", i32::MAX),
            });
        }
        Ok(())
    }

    fn resolve(&mut self, data: &DataScale) -> Result<()> {
        self.gamma.resolve("poly", data)
    }

    fn block(&self, a: ArrayView2<f64>, b: ArrayView2<f64>, out: ArrayViewMut2<f64>) {
        self.at(b)(a, out);
    }

    fn at<'a>(&'a self, b: ArrayView2<f64>) -> Fill<'a> {
        let products = Products::new(b, &self.gamma);
        Box::new(move |a, mut out| {
            products.fill(a, out.view_mut());
            vector::map(out, |p| (p + self.coef0).powi(self.degree as i32));
        })
    }

    fn parameters(&self) -> Vec<(String, f64)> {
        let mut all = self.gamma.parameters();
        all.extend((self.coef0 > 0.0).then(|| ("coef0".into(), self.coef0)));
        all
    }

    fn set_parameters(&mut self, values: &[f64]) {
        let rest = self.gamma.set(values);
        if self.coef0 > 0.0 {
            self.coef0 = rest[0];
        }
    }

    fn of_sums(&self, sums: &mut [f64]) {
        sums.iter_mut().for_each(|p| *p = (*p + self.coef0).powi(self.degree as i32));
    }

    fn form(&self) -> Form<'_> {
        Form::Products(Some(&self.gamma))
    }

    fn gamma_mut(&mut self) -> Option<&mut Gamma> {
        Some(&mut self.gamma)
    }
}
