//! Scaled inner products between rows.

use ndarray::{Array1, Array2, ArrayView2, ArrayViewMut2};

use super::Gamma;
use super::distance::feature_major;
use crate::linalg;

/// Rows b, [m, D], made ready once for the products of many blocks of others.
#[derive(Debug)]
pub struct Products {
    /// Scales of features, `[D]`.
    root: Array1<f64>,
    /// root b, [D, m].
    scaled: Array2<f64>,
}

impl Products {
    /// `b`: [m, D].
    pub fn new(b: ArrayView2<f64>, gamma: &Gamma) -> Products {
        let root = gamma.roots(b.ncols());
        Products { scaled: feature_major((&b * &root).view()), root }
    }

    /// Fills `out` with sum_d gamma_d a_id b_jd; `a`: [n, D], `out`: [n, m].
    pub fn fill(&self, a: ArrayView2<f64>, out: ArrayViewMut2<f64>) {
        linalg::product_alone(false, (&a * &self.root).view(), self.scaled.view(), out);
    }
}
