//! Linear kernel.

use ndarray::{ArrayView2, ArrayViewMut2};
use serde::{Deserialize, Serialize};

use super::{DataScale, KernelFunction};
use crate::error::Result;
use crate::linalg;

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
        linalg::product(false, 1.0, a, b.t(), out);
    }

    fn parameters(&self) -> Vec<(String, f64)> {
        vec![]
    }

    fn set_parameters(&mut self, _values: &[f64]) {}

    fn gradient(&self, _a: ArrayView2<f64>, _b: ArrayView2<f64>, _w: ArrayView2<f64>) -> Vec<f64> {
        vec![]
    }
}
