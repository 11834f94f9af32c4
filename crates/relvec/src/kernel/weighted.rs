//! Weighted sums over pairs of rows, one for each feature.

use ndarray::{Array1, Array2, ArrayView2};
use relvec_predict::internal::kernel::{Absolute, Square, feature_major};

use super::Gamma;
use super::vector::{self, Pointwise};
use crate::linalg;

/// Returns sum_ij w_ij gamma_d (a_id - b_jd)^2 for each feature d; `a`: [n, D], `b`: [m, D], `w`: [n, m].
pub(super) fn weighted_squares(a: ArrayView2<f64>, b: ArrayView2<f64>, w: ArrayView2<f64>, gamma: &Gamma) -> Vec<f64> {
    weighted_sums(a, b, w, &gamma.roots(a.ncols()), Square)
}

/// Returns sum_ij w_ij gamma_d |a_id - b_jd| for each feature d; `a`: [n, D], `b`: [m, D], `w`: [n, m].
pub(super) fn weighted_absolutes(a: ArrayView2<f64>, b: ArrayView2<f64>, w: ArrayView2<f64>, gamma: &Gamma) -> Vec<f64> {
    weighted_sums(a, b, w, &gamma.values(a.ncols()), Absolute)
}

/// Returns sum_ij w_ij gamma_d a_id b_jd for each feature d; `a`: [n, D], `b`: [m, D], `w`: [n, m].
pub(super) fn weighted_products(a: ArrayView2<f64>, b: ArrayView2<f64>, w: ArrayView2<f64>, gamma: &Gamma) -> Vec<f64> {
    let root = gamma.roots(a.ncols());
    let mut sums: Array2<f64> = linalg::times(w.t(), (&a * &root).view());
    sums *= &(&b * &root);
    sums.columns().into_iter().map(|c| c.sum()).collect()
}

/// Returns sum_ij w_ij term(scale_d (a_id - b_jd)) for each feature d; a: `[N, D]`, b: `[M, D]`, w: `[N, M]`, scale: `[D]`.
fn weighted_sums(
    a: ArrayView2<f64>,
    b: ArrayView2<f64>,
    w: ArrayView2<f64>,
    scale: &Array1<f64>,
    term: impl Pointwise,
) -> Vec<f64> {
    let (bt, w) = (feature_major(b), w.as_standard_layout());
    let mut totals = Array2::zeros(bt.dim());
    vector::rows(totals.view_mut(), |d, totals| {
        let (s, z) = (scale[d], bt.row(d));
        let z = z.as_slice().expect("rows of a copy in standard layout");
        for (x, w) in a.column(d).iter().zip(w.outer_iter()) {
            let w = w.to_slice().expect("standard layout");
            for ((t, w), z) in totals.iter_mut().zip(w).zip(z) {
                // A term may overflow where the kernel is 0, and 0 * infinity would be NaN.
                let term = term.value((x - z) * s);
                *t += w * if term > f64::MAX { f64::MAX } else { term };
            }
        }
    });
    totals.rows().into_iter().map(|t| t.sum()).collect()
}
