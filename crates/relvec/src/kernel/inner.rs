//! Scaled inner products between rows.

use ndarray::{Array2, ArrayView2, ArrayViewMut2};

use super::Gamma;
use crate::linalg;

/// Fills `out` with sum_d gamma_d a_id b_jd; `a`: [n, D], `b`: [m, D], `out`: [n, m].
pub(crate) fn inner_products(a: ArrayView2<f64>, b: ArrayView2<f64>, gamma: &Gamma, out: ArrayViewMut2<f64>) {
    let root = gamma.roots(a.ncols());
    linalg::product(false, 1.0, (&a * &root).view(), (&b * &root).t(), out);
}

/// sum_ij w_ij gamma_d a_id b_jd for each feature d; `w`: [n, m].
pub(crate) fn weighted_products(a: ArrayView2<f64>, b: ArrayView2<f64>, w: ArrayView2<f64>, gamma: &Gamma) -> Vec<f64> {
    let root = gamma.roots(a.ncols());
    let mut sums: Array2<f64> = linalg::times(w.t(), (&a * &root).view());
    sums *= &(&b * &root);
    sums.columns().into_iter().map(|c| c.sum()).collect()
}
