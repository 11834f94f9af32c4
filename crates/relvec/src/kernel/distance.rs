//! Scaled distances between rows, by matrix products where D is large, without losing near points.

use std::cell::OnceCell;

use ndarray::{Array1, Array2, ArrayView1, ArrayView2, ArrayViewMut2, Axis};

use super::{Gamma, vector};
use crate::linalg;

/// Up to this many features the differences themselves are as cheap as a product.
const DIRECT_FEATURES: usize = 5;
/// Largest error of a squared distance d^2 that a product may make, relative to max(1, d^2); beyond
/// it, pairs are recomputed. Every kernel here has |dk/dd^2| max(1, d^2) <= 3.
const TOLERANCE: f64 = 1e-13;
/// A row with more than one pair in this many to recompute is recomputed whole: that loop is vectorised.
const WHOLE_ROW: u64 = 16;

/// Fills `out` with d^2_ij = sum_d gamma_d (a_id - b_jd)^2; `a`: [n, D], `b`: [m, D], `out`: [n, m].
///
/// |a|^2 + |b|^2 - 2ab cancels for near points, by a few eps (|a|^2 + |b|^2): rows are centred at
/// the mean of `b` first, and pairs whose error could show in a kernel are recomputed from their
/// differences, which are as exact as the data.
pub(crate) fn squared_distances(a: ArrayView2<f64>, b: ArrayView2<f64>, gamma: &Gamma, mut out: ArrayViewMut2<f64>) {
    let (features, m) = (a.ncols(), b.nrows());
    if m == 0 || a.nrows() == 0 {
        return;
    }
    let root = gamma.roots(features);
    if features <= DIRECT_FEATURES {
        return sums(a, b, &root, square, out);
    }
    // A mean may overflow where its rows do not; then any row serves as the centre.
    let centre = b.mean_axis(Axis(0)).filter(|c| c.iter().all(|v| v.is_finite())).unwrap_or_else(|| b.row(0).to_owned());
    let scaled = |x: ArrayView2<f64>| (&x - &centre) * &root;
    let norms = |x: &Array2<f64>| x.map_axis(Axis(1), |r| r.dot(&r));
    let (sa, sb) = (scaled(a), scaled(b));
    let (na, nb) = (norms(&sa), norms(&sb));
    linalg::product(false, -2.0, sa.view(), sb.t(), out.view_mut());
    // Rounding of the rows, the norms and the product: about this much times |a|^2 + |b|^2.
    let suspect = (8.0 + (features as f64).sqrt()) * f64::EPSILON / TOLERANCE;
    let norms = nb.as_slice().expect("an owned array");
    let largest = norms.iter().fold(0.0f64, |l, v| if *v > l || v.is_nan() { *v } else { l });
    let transposed = OnceCell::new();
    vector::rows(out, |i, row| {
        let n = na[i];
        // NaN, from infinity less infinity, stays NaN.
        row.iter_mut().zip(norms).for_each(|(t, m)| *t += n + m);
        row.iter_mut().for_each(|t| *t = if *t < 0.0 { 0.0 } else { *t });
        if suspect * (n + largest) <= 1.0 {
            return;
        }
        // No short circuits, for the vector unit; NaN and infinity count as lost.
        let lost = |t: f64, m: f64| {
            let limit = suspect * (n + m);
            (limit > 1.0) & (limit > t) | t.is_nan() | (t == f64::INFINITY)
        };
        let count: u64 = row.iter().zip(norms).map(|(t, m)| u64::from(lost(*t, *m))).sum();
        if count * WHOLE_ROW > m as u64 {
            row_sums(a.row(i), transposed.get_or_init(|| feature_major(b)), &root, square, row);
        } else if count > 0 {
            for (j, t) in row.iter_mut().enumerate().filter(|(j, t)| lost(**t, norms[*j])) {
                *t = a.row(i).iter().zip(b.row(j)).zip(&root).map(|((x, z), s)| square((x - z) * s)).sum();
            }
        }
    });
}

/// Fills `out` with sum_d gamma_d |a_id - b_jd|; `a`: [n, D], `b`: [m, D], `out`: [n, m].
pub(crate) fn absolute_distances(a: ArrayView2<f64>, b: ArrayView2<f64>, gamma: &Gamma, out: ArrayViewMut2<f64>) {
    sums(a, b, &gamma.values(a.ncols()), f64::abs, out);
}

/// sum_ij w_ij gamma_d (a_id - b_jd)^2 for each feature d; `w`: [n, m].
pub(crate) fn weighted_squares(a: ArrayView2<f64>, b: ArrayView2<f64>, w: ArrayView2<f64>, gamma: &Gamma) -> Vec<f64> {
    weighted_sums(a, b, w, &gamma.roots(a.ncols()), square)
}

/// sum_ij w_ij gamma_d |a_id - b_jd| for each feature d; `w`: [n, m].
pub(crate) fn weighted_absolutes(a: ArrayView2<f64>, b: ArrayView2<f64>, w: ArrayView2<f64>, gamma: &Gamma) -> Vec<f64> {
    weighted_sums(a, b, w, &gamma.values(a.ncols()), f64::abs)
}

#[inline(always)]
fn square(d: f64) -> f64 {
    d * d
}

/// A copy of `b` ([m, D]) with the rows of one feature side by side, [D, m], for inner loops over
/// consecutive numbers.
pub(crate) fn feature_major(b: ArrayView2<f64>) -> Array2<f64> {
    b.t().as_standard_layout().into_owned()
}

/// Fills `out` with sum_d term(scale_d (a_id - b_jd)). Differences come before scales, so that near
/// points lose nothing.
fn sums(a: ArrayView2<f64>, b: ArrayView2<f64>, scale: &Array1<f64>, term: impl Fn(f64) -> f64 + Copy, out: ArrayViewMut2<f64>) {
    let bt = feature_major(b);
    vector::rows(out, |i, row| row_sums(a.row(i), &bt, scale, term, row));
}

#[inline(always)]
fn row_sums(x: ArrayView1<f64>, bt: &Array2<f64>, scale: &Array1<f64>, term: impl Fn(f64) -> f64, row: &mut [f64]) {
    row.fill(0.0);
    for ((x, s), z) in x.iter().zip(scale).zip(bt.outer_iter()) {
        let z = z.to_slice().expect("rows of a copy in standard layout");
        row.iter_mut().zip(z).for_each(|(t, z)| *t += term((x - z) * s));
    }
}

/// sum_ij w_ij term(scale_d (a_id - b_jd)) for each feature d.
fn weighted_sums(
    a: ArrayView2<f64>,
    b: ArrayView2<f64>,
    w: ArrayView2<f64>,
    scale: &Array1<f64>,
    term: impl Fn(f64) -> f64,
) -> Vec<f64> {
    let (bt, w) = (feature_major(b), w.as_standard_layout());
    let mut totals = Array2::zeros(bt.dim());
    vector::rows(totals.view_mut(), |d, totals| {
        let (s, z) = (scale[d], bt.row(d));
        let z = z.as_slice().expect("rows of a copy in standard layout");
        for (x, w) in a.column(d).iter().zip(w.outer_iter()) {
            let w = w.to_slice().expect("standard layout");
            for ((t, w), z) in totals.iter_mut().zip(w).zip(z) {
                // A term may overflow where the kernel has long been 0: 0 * infinity is not a number.
                let term = term((x - z) * s);
                *t += w * if term > f64::MAX { f64::MAX } else { term };
            }
        }
    });
    totals.rows().into_iter().map(|t| t.sum()).collect()
}
