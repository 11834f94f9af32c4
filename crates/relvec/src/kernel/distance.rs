//! Scaled squared distances, by matrix products where D is large, without losing near points.

use ndarray::{Array1, Array2, ArrayView2, ArrayViewMut2, Axis, Zip};

use super::Gamma;
use crate::linalg;

/// Up to this many features the differences themselves are as cheap as a product.
const DIRECT_FEATURES: usize = 8;
/// Largest absolute error of a distance that a product may make; beyond it, pairs are recomputed.
const TOLERANCE: f64 = 1e-13;

/// Fills `out` with d^2_ij = sum_d gamma_d (a_id - b_jd)^2; `a`: [n, D], `b`: [m, D], `out`: [n, m].
///
/// |a|^2 + |b|^2 - 2ab cancels for near points, by about eps (|a|^2 + |b|^2): rows are centred at
/// the mean of `b` first, and pairs whose error could show in exp(-d^2) are recomputed directly.
pub(crate) fn squared_distances(a: ArrayView2<f64>, b: ArrayView2<f64>, gamma: &Gamma, mut out: ArrayViewMut2<f64>) {
    let features = a.ncols();
    if b.nrows() == 0 || a.nrows() == 0 {
        return;
    }
    // NaN-free for any finite input: the centre is a row, not a sum that could overflow.
    let centre = b.mean_axis(Axis(0)).filter(|c| c.iter().all(|v| v.is_finite())).unwrap_or_else(|| b.row(0).to_owned());
    let root = Array1::from_shape_fn(features, |d| gamma.at(d).sqrt());
    let scaled = |x: ArrayView2<f64>| (&x - &centre) * &root;
    let (sa, sb) = (scaled(a), scaled(b));
    if features <= DIRECT_FEATURES {
        // Feature-major copy of b: the inner loop runs over consecutive numbers.
        let bt: Array2<f64> = sb.t().as_standard_layout().into_owned();
        for (row, mut target) in sa.outer_iter().zip(out.outer_iter_mut()) {
            target.fill(0.0);
            for (x, z) in row.iter().zip(bt.outer_iter()) {
                Zip::from(&mut target).and(&z).for_each(|t, z| {
                    let d = x - z;
                    *t += d * d;
                });
            }
        }
        return;
    }
    let norms = |x: &Array2<f64>| x.map_axis(Axis(1), |r| r.dot(&r));
    let (na, nb) = (norms(&sa), norms(&sb));
    linalg::product(false, -2.0, sa.view(), sb.t(), out.view_mut());
    let largest = nb.fold(0.0f64, |m, v| m.max(*v));
    for (i, mut target) in out.outer_iter_mut().enumerate() {
        let n = na[i];
        Zip::from(&mut target).and(&nb).for_each(|t, m| *t = (*t + (n + m)).max(0.0));
        // Rounding of one entry is below 4 eps (|a|^2 + |b|^2); it matters where exp(-d^2) is not tiny.
        if 4.0 * f64::EPSILON * (n + largest) > TOLERANCE {
            for (j, t) in target.iter_mut().enumerate() {
                let error = 4.0 * f64::EPSILON * (n + nb[j]);
                if error > TOLERANCE && *t - error < 40.0 || !t.is_finite() {
                    *t = sa.row(i).iter().zip(sb.row(j)).map(|(x, z)| (x - z) * (x - z)).sum();
                }
            }
        }
    }
}

/// sum_ij w_ij (a_id - b_jd)^2 for each feature d; `w`: [n, m].
pub(crate) fn weighted_squares(a: ArrayView2<f64>, b: ArrayView2<f64>, w: ArrayView2<f64>) -> Vec<f64> {
    (0..a.ncols())
        .map(|d| {
            let z = b.column(d);
            a.column(d)
                .iter()
                .zip(w.outer_iter())
                .map(|(x, w)| w.iter().zip(z).map(|(w, z)| w * (x - z) * (x - z)).sum::<f64>())
                .sum()
        })
        .collect()
}
