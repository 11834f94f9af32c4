//! Forward substitution in the calling thread, by the tiles of matrix products.
//!
//! The bits of a solution depend neither on the vector unit nor on the number of right-hand sides.

use ndarray::{ArrayView2, ArrayViewMut2, Axis};
use pulp::{Arch, Simd, WithSimd};

use super::product::{TILE, VECTORS, tile};
use crate::prelude::*;

/// Solves `R x = b` in place, for lower triangular `r` [M, M] and `b` [M, K].
///
/// # Panics
/// Panics if the shapes do not match.
pub(super) fn solve(r: ArrayView2<f64>, b: ArrayViewMut2<f64>) {
    assert_eq!(r.dim(), (b.nrows(), b.nrows()), "shapes of a triangle and its right-hand sides");
    if !b.is_empty() {
        Arch::new().dispatch(Solve { r, b });
    }
}

struct Solve<'a> {
    r: ArrayView2<'a, f64>,
    b: ArrayViewMut2<'a, f64>,
}

impl WithSimd for Solve<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        // A single vector suffices for few right-hand sides.
        match (S::F64_LANES >= 8, self.b.ncols().div_ceil(S::F64_LANES)) {
            (true, 1) => self.in_tiles::<S, 8, 1>(simd),
            (true, _) => self.in_tiles::<S, 8, VECTORS>(simd),
            (false, 1) => self.in_tiles::<S, 4, 1>(simd),
            (false, _) => self.in_tiles::<S, 4, VECTORS>(simd),
        }
    }
}

impl Solve<'_> {
    /// Solves for `ROWS` rows of the right-hand sides in `V` vectors at a time. The product with all previous rows, in
    /// registers, comes first, and then the small triangle.
    #[inline(always)]
    fn in_tiles<S: Simd, const ROWS: usize, const V: usize>(self, simd: S) {
        let Solve { r, mut b } = self;
        let r = r.as_standard_layout();
        let (n, width) = (r.nrows(), V * S::F64_LANES);
        // Solutions, [M, width].
        let mut x = vec![0.0; n * width];
        for mut b in b.axis_chunks_iter_mut(Axis(1), width) {
            for (c, column) in b.axis_iter(Axis(1)).enumerate() {
                x[c..].iter_mut().step_by(width).zip(column).for_each(|(x, b)| *x = *b);
            }
            for first in (0..n).step_by(ROWS) {
                let (before, own) = x.split_at_mut(first * width);
                let count = ROWS.min(n - first);
                // In an incomplete tile the last row is used in place of the missing ones.
                let row = |i: usize| r.row((first + i).min(n - 1)).to_slice().expect("standard layout");
                let rows: [&[f64]; ROWS] = core::array::from_fn(|i| &row(i)[..first]);
                let mut sums = [0.0; TILE];
                let mut parts = sums.chunks_exact_mut(width);
                tile::<S, ROWS, V>(simd, &rows, before, false, core::array::from_fn(|_| parts.next().expect("the largest tile")));
                for (i, sums) in sums.chunks_exact(width).take(count).enumerate() {
                    let (above, own) = own.split_at_mut(i * width);
                    let (own, r) = (&mut own[..width], &row(i)[first..=first + i]);
                    own.iter_mut().zip(sums).for_each(|(x, sum)| *x -= sum);
                    for (above, r) in above.chunks_exact(width).zip(r) {
                        own.iter_mut().zip(above).for_each(|(x, above)| *x = (-r).mul_add(*above, *x));
                    }
                    own.iter_mut().for_each(|x| *x /= r[i]);
                }
            }
            for (c, mut column) in b.axis_iter_mut(Axis(1)).enumerate() {
                column.iter_mut().zip(x[c..].iter().step_by(width)).for_each(|(b, x)| *b = *x);
            }
        }
    }
}
