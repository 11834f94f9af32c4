//! Matern kernel of smoothness 5/2.

use ndarray::{ArrayView2, ArrayViewMut2};
use serde::{Deserialize, Serialize};

use super::distance::{Apply, Distances};
use super::form::Form;
use super::vector::Pointwise;
use super::{DataScale, Fill, Gamma, KernelFunction, vector};
use crate::error::Result;
use crate::prelude::*;

/// (1 + s + s^2 / 3) exp(-s), where s = sqrt(10 d^2) and d^2 = sum_d gamma_d (x_d - x'_d)^2. gamma is 1 / (2 l^2) for
/// the length scale l.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Matern52 {
    /// Inverse squared width, > 0.
    pub gamma: Gamma,
}

/// Returns s, at most 750. There exp(-s) is 0, and s exp(-s) would otherwise be infinity times 0.
#[inline(always)]
pub fn distance(d2: f64) -> f64 {
    (10.0 * d2).sqrt().min(750.0)
}

/// The kernel as a function of d^2.
#[derive(Clone, Copy)]
struct Profile;

impl Pointwise for Profile {
    #[inline(always)]
    fn value(self, d2: f64) -> f64 {
        let s = distance(d2);
        (1.0 + s + s * s / 3.0) * vector::decay(s)
    }
}

impl KernelFunction for Matern52 {
    fn check(&self) -> Result<()> {
        self.gamma.check("matern52")
    }

    fn resolve(&mut self, data: &DataScale) -> Result<()> {
        self.gamma.resolve("matern52", data)
    }

    fn block(&self, a: ArrayView2<f64>, b: ArrayView2<f64>, out: ArrayViewMut2<f64>) {
        self.at(b)(a, out);
    }

    fn at<'a>(&'a self, b: ArrayView2<f64>) -> Fill<'a> {
        let distances = Distances::new(b, &self.gamma);
        Box::new(move |a, out| distances.squared(a, out, Profile))
    }

    fn of_sums(&self, sums: &mut [f64]) {
        vector::run(Apply { f: Profile, row: sums });
    }

    fn form(&self) -> Form<'_> {
        Form::Squares(&self.gamma)
    }

    fn gamma_mut(&mut self) -> Option<&mut Gamma> {
        Some(&mut self.gamma)
    }
}
