//! Scaled distances between rows, by matrix products if D is large, without cancellation for near points.

use ndarray::{Array1, Array2, ArrayView1, ArrayView2, ArrayViewMut2, Axis};

use super::vector::{Pointwise, Sweep};
use super::{Gamma, vector};
use crate::linalg;
use crate::prelude::*;

/// Number of features up to which the differences themselves are as cheap as a product.
const DIRECT_FEATURES: usize = 5;
/// Largest error of a squared distance d^2 from a product, relative to max(1, d^2). Pairs with a larger error are
/// recomputed. Every kernel here has |dk/dd^2| max(1, d^2) <= 3.
pub(super) const TOLERANCE: f64 = 1e-13;
/// Inverse share of pairs above which a whole row is recomputed, since that loop is vectorised.
const WHOLE_ROW: u64 = 16;

/// Rows b, [m, D], prepared once for the distances to many blocks of other rows.
///
/// |a|^2 + |b|^2 - 2ab cancels for near points, with an error of a few eps (|a|^2 + |b|^2). Rows are therefore centred
/// at the mean of `b` first. Pairs whose error would be visible in a kernel are recomputed from their differences,
/// which are as exact as the data.
pub struct Distances {
    /// Scales of features, `[D]`.
    root: Array1<f64>,
    /// b in feature-major order, [D, m].
    transposed: Array2<f64>,
    /// Values for matrix products; `None` if differences are as cheap.
    product: Option<Centred>,
}

struct Centred {
    /// The mean of b, `[D]`.
    centre: Array1<f64>,
    /// -2 root (b - centre), [D, m].
    scaled: Array2<f64>,
    /// Squared norms |root (b - centre)|^2, `[m]`.
    norms: Vec<f64>,
    /// Largest squared norm.
    largest: f64,
}

impl Distances {
    /// Returns the rows of `b`, `[M, D]`, prepared for distances with the scales `gamma`.
    pub fn new(b: ArrayView2<f64>, gamma: &Gamma) -> Distances {
        let features = b.ncols();
        let root = gamma.roots(features);
        let product = (features > DIRECT_FEATURES && b.nrows() > 0).then(|| Centred::new(b, &root));
        Distances { root, transposed: feature_major(b), product }
    }

    /// Fills `out`, [n, m], with f(d^2_ij), where d^2_ij = sum_d gamma_d (a_id - b_jd)^2, for `a`, [n, D].
    pub fn squared(&self, a: ArrayView2<f64>, mut out: ArrayViewMut2<f64>, f: impl Pointwise) {
        if out.is_empty() {
            return;
        }
        let (b, scale) = (&self.transposed, &self.root);
        let Some(product) = &self.product else {
            return vector::each_row(out, |i, row| vector::run(Sums { x: a.row(i), b, scale, term: Square, f, row }));
        };
        let scaled = (&a - &product.centre) * scale;
        let lengths = squares(&scaled);
        linalg::product_alone(false, scaled.view(), product.scaled.view(), out.view_mut());
        // The rounding of the rows, the norms and the product is about this factor times |a|^2 + |b|^2.
        let suspect = (8.0 + (a.ncols() as f64).sqrt()) * f64::EPSILON / TOLERANCE;
        let norms = product.norms.as_slice();
        vector::each_row(out, |i, row| {
            let n = lengths[i];
            if suspect * (n + product.largest) <= 1.0 {
                return vector::run(Finish { n, norms, f, row });
            }
            vector::run(Finish { n, norms, f: Identity, row });
            let count = lost_in(row, norms, n, suspect);
            if count * WHOLE_ROW > norms.len() as u64 {
                return vector::run(Sums { x: a.row(i), b, scale, term: Square, f, row });
            }
            if count > 0 {
                for (j, t) in row.iter_mut().enumerate().filter(|(j, t)| lost(**t, norms[*j], n, suspect)) {
                    let pairs = a.row(i).into_iter().zip(b.column(j)).zip(scale);
                    *t = pairs.map(|((x, z), s)| Square.value((x - z) * s)).sum();
                }
            }
            vector::run(Apply { f, row });
        });
    }
}

/// Returns true if the squared distance `t` may be inaccurate, given the squared norms `n` and `m`. Infinity and NaN
/// count as inaccurate. There are no short circuits, so that the loop is vectorised.
#[inline(always)]
pub(super) fn lost(t: f64, m: f64, n: f64, suspect: f64) -> bool {
    let limit = suspect * (n + m);
    (limit > 1.0) & (limit > t) | t.is_nan() | (t == f64::INFINITY)
}

fn lost_in(row: &[f64], norms: &[f64], n: f64, suspect: f64) -> u64 {
    let mut count = 0;
    vector::run(Count { row, norms, n, suspect, count: &mut count });
    count
}

struct Count<'a> {
    row: &'a [f64],
    norms: &'a [f64],
    n: f64,
    suspect: f64,
    count: &'a mut u64,
}

impl Sweep for Count<'_> {
    #[inline(always)]
    fn run(self) {
        for (t, m) in self.row.iter().zip(self.norms) {
            *self.count += u64::from(lost(*t, *m, self.n, self.suspect));
        }
    }
}

/// Replaces -2ab by f(|a|^2 + |b|^2 - 2ab).
struct Finish<'a, F> {
    n: f64,
    norms: &'a [f64],
    f: F,
    row: &'a mut [f64],
}

impl<F: Pointwise> Sweep for Finish<'_, F> {
    #[inline(always)]
    fn run(self) {
        for (t, m) in self.row.iter_mut().zip(self.norms) {
            let d2 = *t + (self.n + m);
            // NaN, from infinity minus infinity, stays NaN.
            *t = self.f.value(if d2 < 0.0 { 0.0 } else { d2 });
        }
    }
}

/// Replaces t by f(t).
pub(super) struct Apply<'a, F> {
    pub f: F,
    pub row: &'a mut [f64],
}

impl<F: Pointwise> Sweep for Apply<'_, F> {
    #[inline(always)]
    fn run(self) {
        for t in self.row.iter_mut() {
            *t = self.f.value(*t);
        }
    }
}

/// Fills `row` with f(sum_d term(scale_d (x_d - b_dj))). Differences are taken before scaling, so that near points lose
/// no digits.
struct Sums<'a, T, F> {
    /// One row, `[D]`.
    x: ArrayView1<'a, f64>,
    /// Other rows in feature-major order, [D, m].
    b: &'a Array2<f64>,
    /// Scales of features, `[D]`.
    scale: &'a Array1<f64>,
    term: T,
    f: F,
    /// Values, `[m]`.
    row: &'a mut [f64],
}

impl<T: Pointwise, F: Pointwise> Sweep for Sums<'_, T, F> {
    #[inline(always)]
    fn run(self) {
        self.row.fill(0.0);
        for ((x, s), z) in self.x.iter().zip(self.scale).zip(self.b.outer_iter()) {
            let z = z.to_slice().expect("rows of a copy in standard layout");
            for (t, z) in self.row.iter_mut().zip(z) {
                *t += self.term.value((x - z) * s);
            }
        }
        for t in self.row.iter_mut() {
            *t = self.f.value(*t);
        }
    }
}

impl Centred {
    fn new(b: ArrayView2<f64>, root: &Array1<f64>) -> Centred {
        // A mean may overflow although its rows do not; then the first row serves as the centre.
        let mean = b.mean_axis(Axis(0)).filter(|c| c.iter().all(|v| v.is_finite()));
        let centre = mean.unwrap_or_else(|| b.row(0).to_owned());
        let scaled = (&b - &centre) * root;
        let norms = squares(&scaled);
        let largest = norms.iter().fold(0.0f64, |l, v| if *v > l || v.is_nan() { *v } else { l });
        Centred { centre, scaled: feature_major((scaled * -2.0).view()), norms, largest }
    }
}

/// Returns the squared norms, `[N]`, of rows `[N, D]`.
fn squares(rows: &Array2<f64>) -> Vec<f64> {
    rows.outer_iter().map(|r| r.dot(&r)).collect()
}

/// Fills `out`, [n, m], with d^2_ij = sum_d gamma_d (a_id - b_jd)^2, for `a`, [n, D], and `b`, [m, D].
pub fn squared_distances(a: ArrayView2<f64>, b: ArrayView2<f64>, gamma: &Gamma, out: ArrayViewMut2<f64>) {
    Distances::new(b, gamma).squared(a, out, Identity);
}

/// Fills `out`, [n, m], with sum_d gamma_d |a_id - b_jd|, for `a`, [n, D], and `b`, [m, D].
pub fn absolute_distances(a: ArrayView2<f64>, b: ArrayView2<f64>, gamma: &Gamma, out: ArrayViewMut2<f64>) {
    let (b, scale) = (&feature_major(b), &gamma.values(a.ncols()));
    vector::each_row(out, |i, row| vector::run(Sums { x: a.row(i), b, scale, term: Absolute, f: Identity, row }));
}

#[derive(Clone, Copy)]
struct Identity;

impl Pointwise for Identity {
    #[inline(always)]
    fn value(self, t: f64) -> f64 {
        t
    }
}

/// The function t^2.
#[derive(Debug, Clone, Copy)]
pub struct Square;

impl Pointwise for Square {
    #[inline(always)]
    fn value(self, t: f64) -> f64 {
        t * t
    }
}

/// The function |t|.
#[derive(Debug, Clone, Copy)]
pub struct Absolute;

impl Pointwise for Absolute {
    #[inline(always)]
    fn value(self, t: f64) -> f64 {
        t.abs()
    }
}

/// Returns a copy of `b`, [m, D], in feature-major order, [D, m], for inner loops over consecutive numbers.
pub fn feature_major(b: ArrayView2<f64>) -> Array2<f64> {
    b.t().as_standard_layout().into_owned()
}
