//! Scaled inner products between rows.

use ndarray::{Array1, Array2, ArrayView2, ArrayViewMut2};

use super::Gamma;
use super::distance::feature_major;
use crate::linalg;

/// Rows b, [m, D], prepared once for the products with many blocks of other rows.
#[derive(Debug)]
pub struct Products {
    /// Scales of features, `[D]`.
    root: Array1<f64>,
    /// Scaled rows, root b, [D, m].
    scaled: Array2<f64>,
}

impl Products {
    /// Returns the rows `b`, [m, D], prepared for products with the scales `gamma`.
    pub fn new(b: ArrayView2<f64>, gamma: &Gamma) -> Products {
        let root = gamma.roots(b.ncols());
        Products { scaled: feature_major((&b * &root).view()), root }
    }

    /// Fills `out`, [n, m], with sum_d gamma_d a_id b_jd, for `a`, [n, D].
    pub fn fill(&self, a: ArrayView2<f64>, out: ArrayViewMut2<f64>) {
        linalg::product_alone(false, (&a * &self.root).view(), self.scaled.view(), out);
    }
}
