//! Linear spline kernel.

use ndarray::{ArrayView2, ArrayViewMut2};
use serde::{Deserialize, Serialize};

use super::distance::feature_major;
use super::form::Form;
use super::{DataScale, KernelFunction, vector};
use crate::error::Result;

/// prod_d [1 + x x' + x x' m - (x + x') m^2 / 2 + m^3 / 3], where m = min(x_d, x'_d). It is Vapnik's linear spline with
/// infinitely many knots. It is defined everywhere, but positive semidefinite only for features >= 0.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LinearSpline {}

impl KernelFunction for LinearSpline {
    fn check(&self) -> Result<()> {
        Ok(())
    }

    fn resolve(&mut self, _data: &DataScale) -> Result<()> {
        Ok(())
    }

    fn block(&self, a: ArrayView2<f64>, b: ArrayView2<f64>, out: ArrayViewMut2<f64>) {
        let bt = feature_major(b);
        vector::rows(out, |i, row| {
            row.fill(1.0);
            for (x, z) in a.row(i).iter().zip(bt.outer_iter()) {
                // With M = max(x, x'), the cubic terms are m^2 (3 M - m) / 6, which does not cancel.
                row.iter_mut().zip(z.to_slice().expect("rows of a copy in standard layout")).for_each(|(t, z)| {
                    let (low, high) = (if *x < *z { *x } else { *z }, if *x < *z { *z } else { *x });
                    *t *= 1.0 + low * (high + low * (3.0 * high - low) / 6.0);
                });
            }
        });
    }

    fn form(&self) -> Form<'_> {
        Form::Other
    }
}
