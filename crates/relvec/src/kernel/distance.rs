//! Scaled distances between rows, by matrix products where D is large, without losing near points.

use std::cell::OnceCell;

use ndarray::{Array1, Array2, ArrayView1, ArrayView2, ArrayViewMut1, ArrayViewMut2, Axis, Zip};

use super::Gamma;
use crate::linalg;

/// Up to this many features the differences themselves are as cheap as a product.
const DIRECT_FEATURES: usize = 8;
/// Largest error of a squared distance d^2 that a product may make, relative to max(1, d^2); beyond
/// it, pairs are recomputed. Every kernel here has |dk/dd^2| max(1, d^2) <= 3.
const TOLERANCE: f64 = 1e-13;
/// A row with more than one pair in this many to recompute is recomputed whole: that loop is vectorised.
const WHOLE_ROW: usize = 16;

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
        return sums(a, b, root.view(), square, out);
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
    let largest = nb.fold(0.0f64, |l, v| if *v > l || v.is_nan() { *v } else { l });
    let transposed = OnceCell::new();
    for (i, mut target) in out.outer_iter_mut().enumerate() {
        let n = na[i];
        Zip::from(&mut target).and(&nb).for_each(|t, m| *t += n + m);
        if suspect * (n + largest) <= 1.0 {
            target.map_inplace(|t| *t = t.max(0.0));
            continue;
        }
        let lost = |t: f64, m: f64| {
            let limit = suspect * (n + m);
            // Written so that NaN counts as lost.
            !(limit <= 1.0 || limit <= t) || t == f64::INFINITY
        };
        let count = Zip::from(&target).and(&nb).fold(0, |count, t, m| count + usize::from(lost(*t, *m)));
        if count * WHOLE_ROW > m {
            let bt = transposed.get_or_init(|| feature_major(b));
            row_sums(a.row(i), bt.view(), root.view(), square, target);
            continue;
        }
        for (j, t) in target.iter_mut().enumerate() {
            *t = if count > 0 && lost(*t, nb[j]) {
                (0..features).map(|d| square((a[[i, d]] - b[[j, d]]) * root[d])).sum()
            } else {
                t.max(0.0)
            };
        }
    }
}

/// Fills `out` with sum_d gamma_d |a_id - b_jd|; `a`: [n, D], `b`: [m, D], `out`: [n, m].
pub(crate) fn absolute_distances(a: ArrayView2<f64>, b: ArrayView2<f64>, gamma: &Gamma, out: ArrayViewMut2<f64>) {
    sums(a, b, gamma.values(a.ncols()).view(), f64::abs, out);
}

/// sum_ij w_ij gamma_d (a_id - b_jd)^2 for each feature d; `w`: [n, m].
pub(crate) fn weighted_squares(a: ArrayView2<f64>, b: ArrayView2<f64>, w: ArrayView2<f64>, gamma: &Gamma) -> Vec<f64> {
    weighted_sums(a, b, w, gamma.roots(a.ncols()).view(), square)
}

/// sum_ij w_ij gamma_d |a_id - b_jd| for each feature d; `w`: [n, m].
pub(crate) fn weighted_absolutes(a: ArrayView2<f64>, b: ArrayView2<f64>, w: ArrayView2<f64>, gamma: &Gamma) -> Vec<f64> {
    weighted_sums(a, b, w, gamma.values(a.ncols()).view(), f64::abs)
}

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
fn sums(
    a: ArrayView2<f64>,
    b: ArrayView2<f64>,
    scale: ArrayView1<f64>,
    term: impl Fn(f64) -> f64 + Copy,
    mut out: ArrayViewMut2<f64>,
) {
    let bt = feature_major(b);
    for (row, target) in a.outer_iter().zip(out.outer_iter_mut()) {
        row_sums(row, bt.view(), scale, term, target);
    }
}

fn row_sums(
    row: ArrayView1<f64>,
    bt: ArrayView2<f64>,
    scale: ArrayView1<f64>,
    term: impl Fn(f64) -> f64,
    mut target: ArrayViewMut1<f64>,
) {
    target.fill(0.0);
    for ((x, s), z) in row.iter().zip(scale).zip(bt.outer_iter()) {
        Zip::from(&mut target).and(&z).for_each(|t, z| *t += term((x - z) * s));
    }
}

/// sum_ij w_ij term(scale_d (a_id - b_jd)) for each feature d.
fn weighted_sums(
    a: ArrayView2<f64>,
    b: ArrayView2<f64>,
    w: ArrayView2<f64>,
    scale: ArrayView1<f64>,
    term: impl Fn(f64) -> f64,
) -> Vec<f64> {
    let bt = feature_major(b);
    let mut totals = Array1::<f64>::zeros(b.nrows());
    (0..a.ncols())
        .map(|d| {
            let (s, z) = (scale[d], bt.row(d));
            totals.fill(0.0);
            for (x, w) in a.column(d).iter().zip(w.outer_iter()) {
                // A term may overflow where the kernel has long been 0: 0 * infinity is not a number.
                Zip::from(&mut totals).and(&w).and(&z).for_each(|t, w, z| *t += w * term((x - z) * s).min(f64::MAX));
            }
            totals.sum()
        })
        .collect()
}
