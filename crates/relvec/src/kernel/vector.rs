//! Loops over consecutive numbers, compiled for the vector unit of the machine, and an exponential
//! that fits into them. The only file that names the crate which chooses the vector unit.
//!
//! The bits do not depend on the vector unit: every step is an IEEE operation, fused multiply-adds
//! included (slow where the machine has none).

use ndarray::{ArrayView2, ArrayViewMut2};
use pulp::Arch;

/// Calls `f` with the number and the entries of each row of `out`, inside code for the vector unit.
/// `f` should be a plain loop over the entries.
pub(crate) fn rows(mut out: ArrayViewMut2<f64>, mut f: impl FnMut(usize, &mut [f64])) {
    let arch = Arch::new();
    let mut spare = vec![];
    for (i, mut row) in out.outer_iter_mut().enumerate() {
        if row.as_slice_mut().is_none() {
            spare.clear();
            spare.extend(row.iter());
        }
        let entries = row.as_slice_mut().unwrap_or(&mut spare);
        arch.dispatch(|| f(i, entries));
        if row.as_slice_mut().is_none() {
            row.iter_mut().zip(&spare).for_each(|(to, from)| *to = *from);
        }
    }
}

/// Replaces each entry t of `out` by `f(t)`.
pub(crate) fn map(out: ArrayViewMut2<f64>, f: impl Fn(f64) -> f64) {
    rows(out, |_, row| row.iter_mut().for_each(|t| *t = f(*t)));
}

/// Replaces each entry t of `out` by `f(t, w)`, w the entry of `w` in the same place.
pub(crate) fn map_with(out: ArrayViewMut2<f64>, w: ArrayView2<f64>, f: impl Fn(f64, f64) -> f64) {
    let w = w.as_standard_layout();
    let (w, m) = (w.as_slice().expect("standard layout"), w.ncols());
    rows(out, |i, row| row.iter_mut().zip(&w[i * m..(i + 1) * m]).for_each(|(t, w)| *t = f(*t, *w)));
}

/// exp(x), within 1 unit in the last place, subnormal results included; NaN stays NaN.
///
/// x = n log 2 + r with |r| <= log(2) / 2, and a Taylor polynomial of degree 13 in r.
#[inline(always)]
pub(crate) fn exp(x: f64) -> f64 {
    const LN2_HIGH: f64 = 6.931_471_803_691_238e-1;
    const LN2_LOW: f64 = 1.908_214_929_270_587_7e-10;
    /// Adding it rounds to a whole number, which then stands in the last bits.
    const ROUND: f64 = 1.5 * (1u64 << 52) as f64;
    // Outside, the result is 0 or infinity. Comparisons, because min and max would swallow NaN.
    let x = if x < -746.0 { -746.0 } else { x };
    let x = if x > 710.0 { 710.0 } else { x };
    let n = x.mul_add(std::f64::consts::LOG2_E, ROUND) - ROUND;
    let r = n.mul_add(-LN2_LOW, n.mul_add(-LN2_HIGH, x));
    let mut p = 1.0 / 6_227_020_800.0;
    p = r.mul_add(p, 1.0 / 479_001_600.0);
    p = r.mul_add(p, 1.0 / 39_916_800.0);
    p = r.mul_add(p, 1.0 / 3_628_800.0);
    p = r.mul_add(p, 1.0 / 362_880.0);
    p = r.mul_add(p, 1.0 / 40_320.0);
    p = r.mul_add(p, 1.0 / 5_040.0);
    p = r.mul_add(p, 1.0 / 720.0);
    p = r.mul_add(p, 1.0 / 120.0);
    p = r.mul_add(p, 1.0 / 24.0);
    p = r.mul_add(p, 1.0 / 6.0);
    p = r.mul_add(p, 0.5);
    p = r.mul_add(p, 1.0);
    p = r.mul_add(p, 1.0);
    // 2^n in two factors: n reaches beyond the exponents of normal numbers at both ends.
    let half = n.mul_add(0.5, ROUND) - ROUND;
    let power = |n: f64| f64::from_bits((n + (ROUND + 1023.0)).to_bits() << 52);
    p * power(half) * power(n - half)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::Array2;

    /// Distance in units in the last place.
    fn ulps(a: f64, b: f64) -> u64 {
        a.to_bits().abs_diff(b.to_bits())
    }

    #[test]
    fn exponential() {
        let mut out = Array2::from_shape_fn((1000, 1459), |(i, j)| -749.0 + j as f64 + 1e-3 * i as f64);
        let x = out.clone();
        map(out.view_mut(), exp);
        for (x, y) in x.iter().zip(&out) {
            assert!(ulps(*y, x.exp()) <= 1, "{x}: {y:e}, {:e}", x.exp());
        }
    }

    #[test]
    fn exponential_at_extremes() {
        let tiny = f64::from_bits(1);
        let cases = [
            (0.0, 1.0),
            (-0.0, 1.0),
            (tiny, 1.0),
            (-745.0, tiny),
            (-745.2, 0.0),
            (-1e300, 0.0),
            (f64::NEG_INFINITY, 0.0),
            (709.78, 709.78f64.exp()),
            (709.79, f64::INFINITY),
            (1e300, f64::INFINITY),
            (f64::INFINITY, f64::INFINITY),
        ];
        for (x, y) in cases {
            assert!(ulps(exp(x), y) <= 1, "{x:e}: {:e}", exp(x));
        }
        assert!(exp(f64::NAN).is_nan());
    }

    #[test]
    fn the_vector_unit_changes_no_bit() {
        let x = Array2::from_shape_fn((1, 10_007), |(_, j)| -750.0 + 0.146 * j as f64);
        let mut fast = x.clone();
        map(fast.view_mut(), exp);
        assert_eq!(fast, x.mapv(exp));
    }

    #[test]
    fn rows_of_any_layout() {
        let mut a = Array2::from_shape_fn((3, 4), |(i, j)| (i * 4 + j) as f64).reversed_axes();
        let expected = a.mapv(|v| 2.0 * v + 1.0);
        map_with(a.view_mut(), expected.view(), |v, w| v + w - v);
        assert_eq!(a, expected);
    }
}
