//! Products of dense matrices in the calling thread, in code for the vector unit of the machine.
//!
//! Each entry of a product is a sum of fused multiply-adds in the order of its terms, [`DEPTH`] terms at a time. Its
//! bits depend neither on the vector unit nor on the number of rows and columns.

use core::ops::Range;

use ndarray::{ArrayView2, ArrayViewMut2, Axis, s};
use pulp::{Arch, Simd, WithSimd};

/// Number of terms that are summed in registers before they are added to the product. This many rows of a panel (48 KB
/// on AVX-512) stay in the first-level cache. Half of this value needs more additions to memory, and is 2 % slower for
/// 500 terms. With twice as much the panel leaves the cache.
const DEPTH: usize = 256;
/// Number of vectors in a row of a tile. With 4 or 8 rows, the registers hold the tile, one number and the vectors of
/// one term.
pub(super) const VECTORS: usize = 3;
/// Number of values in the largest tile: 8 rows of three vectors of 8.
pub(super) const TILE: usize = 8 * VECTORS * 8;

/// Computes `out = keep * out + scale * a b`, where keep is 0 or 1 and scale is 1 or -1. Shapes: `a` [n, k], `b` [k,
/// m], `out` [n, m].
///
/// # Panics
/// Panics if the shapes do not match.
pub(super) fn product(keep: bool, scale: f64, a: ArrayView2<f64>, b: ArrayView2<f64>, mut out: ArrayViewMut2<f64>) {
    assert_eq!((a.nrows(), a.ncols(), b.ncols()), (out.nrows(), b.nrows(), out.ncols()), "shapes of a product");
    if out.is_empty() {
        return;
    }
    // The rows of the product have to be consecutive numbers.
    if out.strides()[1] != 1 && out.ncols() > 1 {
        if out.strides()[0] == 1 || out.nrows() == 1 {
            return product(keep, scale, b.reversed_axes(), a.reversed_axes(), out.reversed_axes());
        }
        let mut whole = out.to_owned();
        product(keep, scale, a, b, whole.view_mut());
        return out.assign(&whole);
    }
    Arch::new().dispatch(Product { keep, scale, a, b, out });
}

struct Product<'a> {
    keep: bool,
    scale: f64,
    a: ArrayView2<'a, f64>,
    b: ArrayView2<'a, f64>,
    out: ArrayViewMut2<'a, f64>,
}

impl WithSimd for Product<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        // AVX-512 has 32 registers; other vector units have at least 16.
        if S::F64_LANES >= 8 { self.in_tiles::<S, 8>(simd) } else { self.in_tiles::<S, 4>(simd) }
    }
}

impl Product<'_> {
    /// Computes the product in tiles of `ROWS` rows and up to three vectors.
    #[inline(always)]
    fn in_tiles<S: Simd, const ROWS: usize>(self, simd: S) {
        let Product { keep, scale, a, b, mut out } = self;
        let a = a.as_standard_layout();
        let (terms, columns, width) = (a.ncols(), b.ncols(), VECTORS * S::F64_LANES);
        let mut panels = vec![0.0; terms.min(DEPTH) * columns.next_multiple_of(S::F64_LANES)];
        for start in (0..terms.max(1)).step_by(DEPTH) {
            let depth = DEPTH.min(terms - start);
            let add = keep || start > 0;
            pack(b.slice(s![start..start + depth, ..]), scale, width, S::F64_LANES, &mut panels);
            let tiles_of_rows = a.axis_chunks_iter(Axis(0), ROWS).zip(out.axis_chunks_iter_mut(Axis(0), ROWS));
            for (factors, mut out) in tiles_of_rows {
                // In an incomplete tile the last row is used in place of the missing ones.
                let row = |r: usize| factors.row(r.min(factors.nrows() - 1)).to_slice().expect("standard layout");
                let rows: [&[f64]; ROWS] = core::array::from_fn(|r| &row(r)[start..start + depth]);
                let mut outs = out.outer_iter_mut();
                let mut outs: [&mut [f64]; ROWS] = core::array::from_fn(|_| match outs.next() {
                    Some(row) => row.into_slice().expect("rows of consecutive numbers"),
                    None => &mut [],
                });
                for first in (0..columns).step_by(width) {
                    let (panel, columns) = (&panels[first * depth..], first..columns.min(first + width));
                    match columns.len().div_ceil(S::F64_LANES) {
                        1 => tile_at::<S, ROWS, 1>(simd, &rows, panel, add, &mut outs, columns),
                        2 => tile_at::<S, ROWS, 2>(simd, &rows, panel, add, &mut outs, columns),
                        _ => tile_at::<S, ROWS, 3>(simd, &rows, panel, add, &mut outs, columns),
                    }
                }
            }
        }
    }
}

/// Copies `scale` times `b`, [k, m], in panels of `width` columns, each row by row. The last panel has only the vectors
/// that its columns need, and missing columns are 0.
#[inline(always)]
fn pack(b: ArrayView2<f64>, scale: f64, width: usize, lanes: usize, panels: &mut [f64]) {
    let depth = b.nrows();
    for (columns, panel) in b.axis_chunks_iter(Axis(1), width).zip(panels.chunks_mut((width * depth).max(1))) {
        let width = columns.ncols().next_multiple_of(lanes);
        for (row, to) in columns.outer_iter().zip(panel.chunks_exact_mut(width)) {
            let (to, missing) = to.split_at_mut(row.len());
            match row.to_slice() {
                Some(row) => to.iter_mut().zip(row).for_each(|(to, v)| *to = scale * v),
                None => to.iter_mut().zip(row).for_each(|(to, v)| *to = scale * v),
            }
            missing.fill(0.0);
        }
    }
}

/// Computes a tile of `V` vectors at the given columns of `outs`. Missing rows of `outs` are empty.
#[inline(always)]
fn tile_at<S: Simd, const ROWS: usize, const V: usize>(
    simd: S,
    rows: &[&[f64]; ROWS],
    panel: &[f64],
    add: bool,
    outs: &mut [&mut [f64]; ROWS],
    columns: Range<usize>,
) {
    let width = V * S::F64_LANES;
    let panel = &panel[..rows[0].len() * width];
    if columns.len() == width && !outs[ROWS - 1].is_empty() {
        let to = outs.each_mut().map(|out| &mut out[columns.clone()]);
        return tile::<S, ROWS, V>(simd, rows, panel, add, to);
    }
    let mut whole = [0.0; TILE];
    let mut parts = whole.chunks_exact_mut(width);
    tile::<S, ROWS, V>(simd, rows, panel, false, core::array::from_fn(|_| parts.next().expect("the largest tile")));
    for (sums, out) in whole.chunks_exact(width).zip(outs.iter_mut().filter(|out| !out.is_empty())) {
        for (out, sum) in out[columns.clone()].iter_mut().zip(sums) {
            *out = if add { *out + sum } else { *sum };
        }
    }
}

/// Computes out_r = sum_l x_rl y_l, or adds it to out_r, for rows y_l of a panel of `V` vectors, 1 to 3. All sums stay
/// in registers, provided that every index is a constant.
#[inline(always)]
pub(super) fn tile<S: Simd, const ROWS: usize, const V: usize>(
    simd: S,
    x: &[&[f64]; ROWS],
    panel: &[f64],
    add: bool,
    out: [&mut [f64]; ROWS],
) {
    let zero = simd.splat_f64s(0.0);
    let mut sums = [[zero; VECTORS]; ROWS];
    let width = V * S::F64_LANES;
    for (l, y) in panel.chunks_exact(width).enumerate() {
        let (y, _) = S::as_simd_f64s(y);
        let y = [y[0], if V > 1 { y[1] } else { zero }, if V > 2 { y[2] } else { zero }];
        macro_rules! rows {
            ($($r:literal)*) => { $(if $r < ROWS {
                let (x, sum) = (simd.splat_f64s(x[$r][l]), sums[$r]);
                sums[$r] = [
                    simd.mul_add_f64s(x, y[0], sum[0]),
                    if V > 1 { simd.mul_add_f64s(x, y[1], sum[1]) } else { zero },
                    if V > 2 { simd.mul_add_f64s(x, y[2], sum[2]) } else { zero },
                ];
            })* };
        }
        rows!(0 1 2 3 4 5 6 7);
    }
    macro_rules! rows {
        ($($r:literal)*) => { $(if $r < ROWS {
            let (out, _) = S::as_mut_simd_f64s(&mut out[$r][..width]);
            let sum = sums[$r];
            out[0] = if add { simd.add_f64s(out[0], sum[0]) } else { sum[0] };
            if V > 1 {
                out[1] = if add { simd.add_f64s(out[1], sum[1]) } else { sum[1] };
            }
            if V > 2 {
                out[2] = if add { simd.add_f64s(out[2], sum[2]) } else { sum[2] };
            }
        })* };
    }
    rows!(0 1 2 3 4 5 6 7);
}

#[cfg(test)]
mod tests {
    use ndarray::Array2;

    use super::*;

    fn numbers(n: usize, m: usize, seed: u64) -> Array2<f64> {
        let mut state = seed;
        Array2::from_shape_simple_fn((n, m), || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 11) as f64 / (1u64 << 52) as f64 - 1.0
        })
    }

    /// Returns the sum that the head of this file defines, bit by bit.
    fn exact(keep: bool, scale: f64, a: &Array2<f64>, b: &Array2<f64>, before: &Array2<f64>) -> Array2<f64> {
        let entry = |(i, j): (usize, usize)| {
            let mut out = before[[i, j]];
            for start in (0..a.ncols().max(1)).step_by(DEPTH) {
                let terms = start..a.ncols().min(start + DEPTH);
                let sum = terms.fold(0.0, |sum: f64, l| a[[i, l]].mul_add(scale * b[[l, j]], sum));
                out = if keep || start > 0 { out + sum } else { sum };
            }
            out
        };
        Array2::from_shape_fn(before.dim(), entry)
    }

    const SHAPES: [(usize, usize, usize); 9] =
        [(1, 1, 1), (5, 0, 3), (0, 3, 2), (7, 300, 25), (8, 3, 24), (9, 10, 49), (33, 600, 5), (1, 40, 70), (70, 40, 1)];

    #[test]
    fn products_have_the_bits_of_sums_in_order_for_every_layout() {
        for (n, k, m) in SHAPES {
            let (a, b, before) = (numbers(n, k, 1), numbers(k, m, 2), numbers(n, m, 3));
            let (at, bt) = (a.t().as_standard_layout().into_owned(), b.t().as_standard_layout().into_owned());
            for (keep, scale) in [(false, 1.0), (true, 1.0), (true, -1.0)] {
                let expected = exact(keep, scale, &a, &b, &before);
                for (left, right) in [(a.view(), b.view()), (at.t(), b.view()), (a.view(), bt.t()), (at.t(), bt.t())] {
                    let mut frame = Array2::from_elem((3 * n + 4, 3 * m + 4), f64::NAN);
                    for layout in 0..4 {
                        frame.fill(f64::NAN);
                        let mut turned = frame.clone().reversed_axes();
                        let mut out = match layout {
                            0 => frame.slice_mut(s![1..1 + n, 2..2 + m]),
                            1 => frame.slice_mut(s![1..1 + 2 * n; 2, 2..2 + 3 * m; 3]),
                            2 => frame.slice_mut(s![1..1 + n; -1, 2..2 + m]),
                            _ => turned.slice_mut(s![1..1 + m, 2..2 + n]).reversed_axes(),
                        };
                        out.assign(&before);
                        product(keep, scale, left, right, out.view_mut());
                        assert_eq!(out, expected, "{n} {k} {m} {keep} {scale} {layout}");
                        out.fill(f64::NAN);
                        assert!(frame.iter().all(|v| v.is_nan()), "{n} {k} {m} {layout}: written beside the view");
                    }
                }
            }
        }
    }

    /// The test covers the vector units that this machine has, and scalar code.
    #[test]
    fn the_vector_unit_changes_no_bit_of_a_product() {
        for (n, k, m) in SHAPES {
            let (a, b) = (numbers(n, k, 1), numbers(k, m, 2));
            let make = |run: &dyn Fn(Product)| {
                let mut out = Array2::zeros((n, m));
                run(Product { keep: true, scale: 1.0, a: a.view(), b: b.view(), out: out.view_mut() });
                out
            };
            let best = make(&|product| Arch::new().dispatch(product));
            assert_eq!(make(&|product| product.with_simd(pulp::Scalar)), best, "{n} {k} {m}");
            #[cfg(target_arch = "x86_64")]
            if let Some(simd) = pulp::x86::V3::try_new() {
                assert_eq!(make(&|product| Simd::vectorize(simd, product)), best, "{n} {k} {m}");
            }
        }
    }
}
