//! Dense linear algebra for predictions: products, triangular solves and a Cholesky factor with jitter. Matrices are
//! row-major.
//!
//! No result depends on the number of threads.

mod product;
mod solve;

use crate::parallel::*;
use crate::prelude::*;
use ndarray::{Array2, ArrayView2, ArrayViewMut2, Axis, s};

use crate::error::{Error, Result};
use crate::vector::{self, Dot};

/// Largest jitter, relative to the given scale; a larger one would change the model.
const MAX_JITTER: f64 = 1e-11;
/// Number of multiply-adds (about 30 microseconds of one thread) below which separate tasks cost more time than they
/// save.
const PARALLEL: usize = 3_000_000;
/// Number of rows of a product, or of columns of a solve, per task. It spans several cache lines of each row, and
/// leaves tasks for many threads.
const PART: usize = 64;
/// Size up to which a triangle is inverted by solving for the columns of the identity matrix. Larger ones are inverted
/// by halves, which skips zeros. Half of this value needs too many calls; twice as much, more products with zeros.
const LEAST_TRIANGLE: usize = 32;

/// Computes `out = keep * out + a b` in the calling thread, where keep is 0 or 1. Shapes: `a` [n, k], `b` [k, m], `out`
/// [n, m].
pub fn product_alone(keep: bool, a: ArrayView2<f64>, b: ArrayView2<f64>, out: ArrayViewMut2<f64>) {
    product::product(keep, 1.0, a, b, out);
}

/// Returns `a b`, [n, m], for `a` [n, k] and `b` [k, m].
pub fn times(a: ArrayView2<f64>, b: ArrayView2<f64>) -> Array2<f64> {
    let mut out = Array2::zeros((a.nrows(), b.ncols()));
    if a.len() * b.ncols() < PARALLEL {
        product_alone(false, a, b, out.view_mut());
        return out;
    }
    let parts = out.axis_chunks_iter_mut(Axis(0), PART).into_par_iter().zip(a.axis_chunks_iter(Axis(0), PART).into_par_iter());
    parts.for_each(|(out, a)| product_alone(false, a, b, out));
    out
}

/// Returns `a' a`, [m, m], for `a` [n, m].
pub fn gram(a: ArrayView2<f64>) -> Array2<f64> {
    times(a.t(), a)
}

/// Copies the lower triangle of `a`, `[M, M]`, onto the upper one.
pub fn mirror(a: &mut Array2<f64>) {
    for i in 0..a.nrows() {
        for j in 0..i {
            a[[j, i]] = a[[i, j]];
        }
    }
}

/// Solves `R x = b` in place, for lower triangular `r` [M, M] and `b` [M, K].
pub fn solve_lower(r: ArrayView2<f64>, mut b: ArrayViewMut2<f64>) {
    if r.len() / 2 * b.ncols() < PARALLEL {
        return solve_lower_alone(r, b);
    }
    b.axis_chunks_iter_mut(Axis(1), PART).into_par_iter().for_each(|b| solve_lower_alone(r, b));
}

/// Solves R Z = B for Z in place, in the calling thread alone, for lower triangular `r`, `[M, M]`, and `b`, `[M, K]`.
pub fn solve_lower_alone(r: ArrayView2<f64>, b: ArrayViewMut2<f64>) {
    solve::solve(r, b);
}

/// Returns inv(R) of a lower triangular matrix `r`, [M, M].
pub fn inverse_lower(r: ArrayView2<f64>) -> Array2<f64> {
    let n = r.nrows();
    let mut out = Array2::zeros((n, n));
    if n <= LEAST_TRIANGLE {
        out.diag_mut().fill(1.0);
        solve_lower_alone(r, out.view_mut());
        return out;
    }
    // The inverse of R = [A 0; B C] is [inv(A) 0; -inv(C) B inv(A) inv(C)].
    let half = (n / 2).next_multiple_of(8);
    let first = inverse_lower(r.slice(s![..half, ..half]));
    let mut below = times(r.slice(s![half.., ..half]), first.view());
    below.mapv_inplace(|v| -v);
    solve_lower(r.slice(s![half.., half..]), below.view_mut());
    out.slice_mut(s![..half, ..half]).assign(&first);
    out.slice_mut(s![half.., ..half]).assign(&below);
    out.slice_mut(s![half.., half..]).assign(&inverse_lower(r.slice(s![half.., half..])));
    out
}

/// Returns the Cholesky factor of symmetric `a`, [M, M]: lower triangular R, [M, M], with R R' = A and zeros above the
/// diagonal. If a pivot is not positive, jitter from 1e-14 to 1e-11 times `scale` is added to the diagonal.
///
/// # Errors
/// [`Error::Singular`]: there is no factor even with the largest jitter.
pub fn cholesky(a: &Array2<f64>, scale: f64) -> Result<Array2<f64>> {
    let jitters = [0.0, 1e-14, 1e-13, 1e-12, MAX_JITTER];
    let found = jitters.into_iter().find_map(|jitter| factor(a, jitter * scale));
    found.ok_or(Error::Singular { columns: a.nrows(), jitter: MAX_JITTER })
}

/// Returns the lower Cholesky factor of `a`, `[M, M]`, with `more` added to its diagonal. It is computed row by row.
/// Returns `None` if a pivot is not positive.
fn factor(a: &Array2<f64>, more: f64) -> Option<Array2<f64>> {
    let mut out = Array2::zeros(a.dim());
    for i in 0..a.nrows() {
        let (above, mut own) = out.view_mut().split_at(Axis(0), i);
        let own = own.row_mut(0).into_slice().expect("standard layout");
        for (j, row) in above.outer_iter().enumerate() {
            own[j] = (a[[i, j]] - dot(&own[..j], &row.as_slice().expect("standard layout")[..j])) / row[j];
        }
        let pivot = a[[i, i]] + more - dot(&own[..i], &own[..i]);
        if !(pivot > 0.0 && pivot.is_finite()) {
            return None;
        }
        own[i] = pivot.sqrt();
    }
    Some(out)
}

/// Returns sum_j a_j b_j.
pub fn dot(a: &[f64], b: &[f64]) -> f64 {
    let mut out = 0.0;
    vector::run(Dot { a, b, out: &mut out });
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a well-conditioned lower triangular matrix, [M, M].
    fn triangle(n: usize) -> Array2<f64> {
        Array2::from_shape_fn((n, n), |(i, j)| match i.cmp(&j) {
            core::cmp::Ordering::Less => 0.0,
            core::cmp::Ordering::Equal => 2.0 + (i % 3) as f64,
            core::cmp::Ordering::Greater => ((i * 7 + j * 5) % 23) as f64 / (23.0 * n as f64) - 0.5 / n as f64,
        })
    }

    fn far(a: &Array2<f64>, b: &Array2<f64>) -> f64 {
        (a - b).iter().fold(0.0, |m, v| m.max(v.abs()))
    }

    #[test]
    fn triangles_of_any_size_are_solved_and_inverted() {
        for n in [0, 1, 5, 32, 33, 64, 65, 200] {
            let r = triangle(n);
            assert!(far(&r.dot(&inverse_lower(r.view())), &Array2::eye(n)) < 1e-14, "{n}");
            for k in [0, 1, 7, 70] {
                let b = Array2::from_shape_fn((n, k), |(i, j)| ((i * 3 + j * 11) % 17) as f64 - 8.0);
                let (mut rows, mut columns) = (b.clone(), b.t().as_standard_layout().into_owned());
                solve_lower_alone(r.view(), rows.view_mut());
                solve_lower(r.view(), columns.view_mut().reversed_axes());
                assert!(far(&r.dot(&rows), &b) < 1e-13, "{n} {k}");
                assert_eq!(rows, columns.t(), "{n} {k}: bits depend on the layout");
            }
        }
    }

    #[cfg(feature = "std")]
    #[test]
    fn threads_change_no_bit() {
        let (a, r) = (Array2::from_shape_fn((300, 300), |(i, j)| ((i * 7 + j * 5) % 23) as f64 / 7.0), triangle(300));
        let make = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads that can be started");
            pool.install(|| {
                let mut solved = a.clone();
                solve_lower(r.view(), solved.view_mut());
                (times(a.view(), a.view()), solved, inverse_lower(r.view()))
            })
        };
        assert_eq!(make(1), make(3));
    }

    #[test]
    fn cholesky_factors_are_roots_with_the_least_jitter_that_gives_one() {
        for n in [1, 6, 40] {
            let r = triangle(n);
            let a = r.dot(&r.t());
            assert!(far(&cholesky(&a, 1.0).expect("positive definite"), &r) < 1e-13, "{n}");
        }
        // Rounding has made the matrix indefinite: all but a few eigenvalues of wide Gaussian kernels are below
        // rounding.
        let n = 60;
        let phi = Array2::from_shape_fn((n, n), |(i, j)| (-((i as f64 - j as f64) * 4.0 / n as f64).powi(2)).exp());
        let a = gram(phi.view());
        let scale = a.diag().iter().fold(0.0f64, |m, v| m.max(*v));
        assert!(factor(&a, 0.0).is_none(), "no test of jitter");
        let lower = cholesky(&a, scale).expect("a factor with jitter");
        assert!(far(&lower.dot(&lower.t()), &a) < 1e-12 * scale);
        let mut a = Array2::eye(4);
        a[[1, 3]] = 2.0;
        a[[3, 1]] = 2.0;
        assert_eq!(cholesky(&a, 1.0), Err(Error::Singular { columns: 4, jitter: MAX_JITTER }));
    }

    #[test]
    fn gram_and_mirror_are_symmetric() {
        let a = Array2::from_shape_fn((90, 47), |(i, j)| ((i * 7 + j * 5) % 23) as f64 - 11.0);
        let g = gram(a.view());
        assert_eq!(g, a.t().dot(&a));
        let mut lower = Array2::from_shape_fn((47, 47), |(i, j)| if j <= i { g[[i, j]] } else { f64::NAN });
        mirror(&mut lower);
        assert_eq!(lower, g);
    }
}
