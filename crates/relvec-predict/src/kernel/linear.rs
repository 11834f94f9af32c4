//! Linear kernel.

use ndarray::{ArrayView2, ArrayViewMut2};
use serde::{Deserialize, Serialize};

use super::distance::feature_major;
use super::form::Form;
use super::{DataScale, Fill, KernelFunction};
use crate::error::Result;
use crate::linalg;
use crate::prelude::*;

/// x.x'.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Linear {}

impl KernelFunction for Linear {
    fn check(&self) -> Result<()> {
        Ok(())
    }

    fn resolve(&mut self, _data: &DataScale) -> Result<()> {
        Ok(())
    }

    fn block(&self, a: ArrayView2<f64>, b: ArrayView2<f64>, out: ArrayViewMut2<f64>) {
        self.at(b)(a, out);
    }

    fn at<'a>(&'a self, b: ArrayView2<f64>) -> Fill<'a> {
        let bt = feature_major(b);
        Box::new(move |a, out| linalg::product_alone(false, a, bt.view(), out))
    }

    fn of_sums(&self, sums: &mut [f64]) {
        // The kernel is the sum itself.
        let _ = sums;
    }

    fn form(&self) -> Form<'_> {
        Form::Products(None)
    }
}
