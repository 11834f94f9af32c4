//! Loops over consecutive numbers, compiled for the vector unit of the machine, and vectorised exponentials and
//! logarithms. Apart from this file, only the tiles of `linalg/` use the crate that selects the vector unit.
//!
//! The bits of the results do not depend on the vector unit. Every step is an IEEE operation, fused multiply-adds
//! included, which are slow on machines without them.

use ndarray::{ArrayView2, ArrayViewMut2};
use pulp::Arch;

use crate::prelude::*;

/// A function of one number. Its method is always inlined. A larger closure might not be inlined, and would then not be
/// compiled for the vector unit.
pub trait Pointwise: Copy + Send + Sync {
    /// Returns the function at `t`.
    fn value(self, t: f64) -> f64;
}

/// A loop over consecutive numbers, as a method that is always inlined, for the same reason.
pub trait Sweep {
    /// Runs the loop.
    fn run(self);
}

struct Inlined<S>(S);

impl<S: Sweep> pulp::NullaryFnOnce for Inlined<S> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        self.0.run();
    }
}

/// Runs a loop in code for the vector unit.
pub fn run(sweep: impl Sweep) {
    Arch::new().dispatch(Inlined(sweep));
}

/// Calls `f` with the index and the entries of each row of `out`, `[N, M]`, as consecutive numbers.
pub fn each_row(mut out: ArrayViewMut2<f64>, mut f: impl FnMut(usize, &mut [f64])) {
    let mut spare = vec![];
    for (i, mut row) in out.outer_iter_mut().enumerate() {
        if let Some(entries) = row.as_slice_mut() {
            f(i, entries);
            continue;
        }
        spare.clear();
        spare.extend(row.iter());
        f(i, &mut spare);
        row.iter_mut().zip(&spare).for_each(|(to, from)| *to = *from);
    }
}

/// Calls `f` with the index and the entries of each row of `out`, `[N, M]`, inside code for the vector unit. `f` should
/// be a plain, short loop over the entries.
pub fn rows(out: ArrayViewMut2<f64>, mut f: impl FnMut(usize, &mut [f64])) {
    let arch = Arch::new();
    each_row(out, |i, entries| arch.dispatch(|| f(i, entries)));
}

/// The sum out = sum_j a_j b_j, always in the same order.
#[derive(Debug)]
pub struct Dot<'a> {
    /// First factors, consecutive numbers.
    pub a: &'a [f64],
    /// Second factors, consecutive numbers.
    pub b: &'a [f64],
    /// The sum.
    pub out: &'a mut f64,
}

impl Sweep for Dot<'_> {
    #[inline(always)]
    fn run(self) {
        const LANES: usize = 32;
        let mut sums = [0.0f64; LANES];
        let (mut a, mut b) = (self.a.chunks_exact(LANES), self.b.chunks_exact(LANES));
        for (a, b) in (&mut a).zip(&mut b) {
            for (sum, (a, b)) in sums.iter_mut().zip(a.iter().zip(b)) {
                *sum = a.mul_add(*b, *sum);
            }
        }
        for (sum, (a, b)) in sums.iter_mut().zip(a.remainder().iter().zip(b.remainder())) {
            *sum = a.mul_add(*b, *sum);
        }
        *self.out = sums.iter().sum();
    }
}

/// The sums out_i = sum_j w_j phi_ij, each always in the same order.
#[derive(Debug)]
pub struct RowSums<'a> {
    /// Weights, `[P]`.
    pub w: &'a [f64],
    /// Matrix, [B, P], with rows of consecutive numbers.
    pub phi: ArrayView2<'a, f64>,
    /// Sums, `[B]`.
    pub out: &'a mut [f64],
}

impl Sweep for RowSums<'_> {
    #[inline(always)]
    fn run(self) {
        const LANES: usize = 8;
        let (weights, weights_of_rest) = self.w.as_chunks::<LANES>();
        for (row, out) in self.phi.outer_iter().zip(self.out) {
            let row = row.to_slice().expect("rows of consecutive numbers");
            let (values, rest) = row.as_chunks::<LANES>();
            let mut sums = [0.0; LANES];
            for (v, w) in values.iter().zip(weights) {
                for k in 0..LANES {
                    sums[k] = w[k].mul_add(v[k], sums[k]);
                }
            }
            for ((sum, v), w) in sums.iter_mut().zip(rest).zip(weights_of_rest) {
                *sum = w.mul_add(*v, *sum);
            }
            *out = ((sums[0] + sums[4]) + (sums[2] + sums[6])) + ((sums[1] + sums[5]) + (sums[3] + sums[7]));
        }
    }
}

/// The products out_j = out_j times_j.
#[derive(Debug)]
pub struct Scale<'a> {
    /// Factors, consecutive numbers.
    pub times: &'a [f64],
    /// Numbers that are multiplied in place, consecutive.
    pub out: &'a mut [f64],
}

impl Sweep for Scale<'_> {
    #[inline(always)]
    fn run(self) {
        for (o, t) in self.out.iter_mut().zip(self.times) {
            *o *= t;
        }
    }
}

/// Adds sum_i w_i phi_ij to out_j, that is w'Phi. Rows of Phi are processed one after the other in the cache.
#[derive(Debug)]
pub struct AddSums<'a> {
    /// Weights, `[B]`.
    pub w: &'a [f64],
    /// Matrix, [B, P], with rows of consecutive numbers.
    pub phi: ArrayView2<'a, f64>,
    /// Sums, `[P]`.
    pub out: &'a mut [f64],
}

impl Sweep for AddSums<'_> {
    #[inline(always)]
    fn run(self) {
        for (row, w) in self.phi.outer_iter().zip(self.w) {
            let row = row.to_slice().expect("rows of consecutive numbers");
            for (o, v) in self.out.iter_mut().zip(row) {
                *o = w.mul_add(*v, *o);
            }
        }
    }
}

/// Adds sum_i w_i (unit_j phi_ij)^2 to out_j.
#[derive(Debug)]
pub struct AddSquares<'a> {
    /// Weights, `[B]`.
    pub w: &'a [f64],
    /// Matrix, [B, P], with rows of consecutive numbers.
    pub phi: ArrayView2<'a, f64>,
    /// Scales of the columns, `[P]`: powers of 2, or all 1.
    pub unit: &'a [f64],
    /// Sums, `[P]`.
    pub out: &'a mut [f64],
}

impl Sweep for AddSquares<'_> {
    #[inline(always)]
    fn run(self) {
        for (row, w) in self.phi.outer_iter().zip(self.w) {
            let row = row.to_slice().expect("rows of consecutive numbers");
            for ((o, v), u) in self.out.iter_mut().zip(row).zip(self.unit) {
                let v = v * u;
                *o = (w * v).mul_add(v, *o);
            }
        }
    }
}

/// Adds sum_j w_j phi_ij^2 to out_i.
#[derive(Debug)]
pub struct AddRowSquares<'a> {
    /// Weights, `[P]`.
    pub w: &'a [f64],
    /// Matrix, [B, P], with rows of consecutive numbers.
    pub phi: ArrayView2<'a, f64>,
    /// Sums, `[B]`.
    pub out: &'a mut [f64],
}

impl Sweep for AddRowSquares<'_> {
    #[inline(always)]
    fn run(self) {
        for (row, out) in self.phi.outer_iter().zip(self.out) {
            let row = row.to_slice().expect("rows of consecutive numbers");
            // Several independent sums avoid waiting for the previous addition.
            let mut sums = [0.0; 16];
            let (values, rest) = row.as_chunks::<16>();
            let (weights, weights_of_rest) = self.w.as_chunks::<16>();
            for (v, w) in values.iter().zip(weights) {
                for k in 0..16 {
                    sums[k] = (w[k] * v[k]).mul_add(v[k], sums[k]);
                }
            }
            *out += sums.iter().sum::<f64>();
            *out += rest.iter().zip(weights_of_rest).map(|(v, w)| w * v * v).sum::<f64>();
        }
    }
}

/// The maxima out_j = max(out_j, |phi_ij|) over i; a NaN counts as infinity.
#[derive(Debug)]
pub struct Largest<'a> {
    /// Matrix, [B, P], with rows of consecutive numbers.
    pub phi: ArrayView2<'a, f64>,
    /// Maxima, `[P]`.
    pub out: &'a mut [f64],
}

impl Sweep for Largest<'_> {
    #[inline(always)]
    fn run(self) {
        for row in self.phi.outer_iter() {
            let row = row.to_slice().expect("rows of consecutive numbers");
            for (o, v) in self.out.iter_mut().zip(row) {
                let v = if v.is_nan() { f64::INFINITY } else { v.abs() };
                *o = if v > *o { v } else { *o };
            }
        }
    }
}

/// Replaces each entry t of `out`, `[N, M]`, by `f(t)`.
pub fn map(out: ArrayViewMut2<f64>, f: impl Fn(f64) -> f64) {
    rows(out, |_, row| row.iter_mut().for_each(|t| *t = f(*t)));
}

/// Replaces each entry t of `out`, `[N, M]`, by `f(t, w)`, where w is the entry of `w`, `[N, M]`, at the same indices.
pub fn map_with(out: ArrayViewMut2<f64>, w: ArrayView2<f64>, f: impl Fn(f64, f64) -> f64) {
    let w = w.as_standard_layout();
    let (w, m) = (w.as_slice().expect("standard layout"), w.ncols());
    rows(out, |i, row| row.iter_mut().zip(&w[i * m..(i + 1) * m]).for_each(|(t, w)| *t = f(*t, *w)));
}

/// Returns exp(x) for x <= 0, computed by [`decay`].
#[inline(always)]
pub fn exp(x: f64) -> f64 {
    decay(-x)
}

/// The function exp(-t).
#[derive(Debug, Clone, Copy)]
pub struct Decay;

impl Pointwise for Decay {
    #[inline(always)]
    fn value(self, t: f64) -> f64 {
        decay(t)
    }
}

/// Returns exp(-t) for t >= 0, within 1 unit in the last place, subnormal results included. NaN stays NaN, and a
/// negative t is taken for 0.
///
/// -t = n log 2 + r with |r| <= log(2) / 2. The polynomial in r has the smallest maximum relative error (1.1e-17) of
/// all of degree 11 that begin with 1 + r.
#[inline(always)]
pub fn decay(t: f64) -> f64 {
    const LN2_HIGH: f64 = 6.931_471_803_691_238e-1;
    const LN2_LOW: f64 = 1.908_214_929_270_587_7e-10;
    /// Exponent added to n, so that 2^(n + 64) is a normal number for every n and only the last product rounds.
    const LIFT: i32 = 64;
    /// Summand that rounds to an integer. The integer is then in the last bits, with the bias of exponents added.
    const ROUND: f64 = 1.5 * (1u64 << 52) as f64 + (1023 + LIFT) as f64;
    const DROP: f64 = 1.0 / (1u128 << LIFT) as f64;
    // For larger t the result is 0. Comparisons are used because min and max would drop NaN.
    let t = if t < 0.0 { 0.0 } else { t };
    let t = if t > 746.0 { 746.0 } else { t };
    let lifted = t.mul_add(-core::f64::consts::LOG2_E, ROUND);
    let n = lifted - ROUND;
    let r = n.mul_add(-LN2_LOW, n.mul_add(-LN2_HIGH, -t));
    let mut p = 2.500_009_798_431_549e-8;
    p = r.mul_add(p, 2.763_024_782_187_428e-7);
    p = r.mul_add(p, 2.755_758_626_199_911e-6);
    p = r.mul_add(p, 2.480_149_310_056_092_8e-5);
    p = r.mul_add(p, 1.984_126_950_669_921_6e-4);
    p = r.mul_add(p, 1.388_888_894_362_847e-3);
    p = r.mul_add(p, 8.333_333_333_494_41e-3);
    p = r.mul_add(p, 4.166_666_666_653_016e-2);
    p = r.mul_add(p, 1.666_666_666_666_641_3e-1);
    p = r.mul_add(p, 0.500_000_000_000_001_1);
    p = r.mul_add(p, 1.0);
    p = r.mul_add(p, 1.0);
    p * f64::from_bits(lifted.to_bits() << 52) * DROP
}

/// Returns log(1 + x) for 0 <= x <= 1, within 2 units in the last place; NaN stays NaN.
///
/// The value is 2 artanh(s) with s = z / (2 + z). Here 1 + z is 1 + x, or half of it if it exceeds the square root of
/// 2. Then |s| < 0.172, and after eleven terms the rest of the series is below rounding.
#[inline(always)]
pub fn log_1p(x: f64) -> f64 {
    let halved = x > core::f64::consts::SQRT_2 - 1.0;
    let z = if halved { 0.5 * (x - 1.0) } else { x };
    let start = if halved { core::f64::consts::LN_2 } else { 0.0 };
    let s = z / (2.0 + z);
    let square = s * s;
    let mut p = 2.0 / 21.0;
    p = square.mul_add(p, 2.0 / 19.0);
    p = square.mul_add(p, 2.0 / 17.0);
    p = square.mul_add(p, 2.0 / 15.0);
    p = square.mul_add(p, 2.0 / 13.0);
    p = square.mul_add(p, 2.0 / 11.0);
    p = square.mul_add(p, 2.0 / 9.0);
    p = square.mul_add(p, 2.0 / 7.0);
    p = square.mul_add(p, 2.0 / 5.0);
    p = square.mul_add(p, 2.0 / 3.0);
    // log(1 + z) = 2 s + s^3 p, and 2 s = z - s z.
    start + s.mul_add(square * p - z, z)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::Array2;

    #[test]
    fn logarithm_is_within_two_units_in_the_last_place() {
        let tiny = [0.0, f64::from_bits(1), 1e-300, 1e-20, 1.1e-16, 1e-8, 1.0, 0.5, core::f64::consts::SQRT_2 - 1.0];
        let steps = (0..1_000_000).map(|i| 1e-6 * f64::from(i));
        let small = (0..10_000).map(|i| (-0.07 * f64::from(i)).exp());
        for x in tiny.into_iter().chain(steps).chain(small) {
            assert!(ulps(log_1p(x), x.ln_1p()) <= 2, "{x:e}: {:e}, {:e}", log_1p(x), x.ln_1p());
        }
        assert!(log_1p(f64::NAN).is_nan());
    }

    #[test]
    fn sums_by_rows_are_those_of_any_width() {
        for p in [0, 1, 7, 8, 9, 16, 25] {
            let phi = Array2::from_shape_fn((5, p), |(i, j)| (3 * i + j) as f64);
            let w: Vec<f64> = (0..p).map(|j| 1.0 - j as f64).collect();
            let mut out = vec![f64::NAN; 5];
            run(RowSums { w: &w, phi: phi.view(), out: &mut out });
            assert_eq!(out, phi.dot(&ndarray::Array1::from(w)).to_vec());
        }
    }

    /// Returns exp(-t) as the sum of two numbers. exp(-t / 2^k) is summed by its series and squared k times, all in
    /// pairs of numbers.
    fn exact(t: f64) -> (f64, f64) {
        let sum = |a: f64, b: f64| {
            let s = a + b;
            let part = s - a;
            (s, (a - (s - part)) + (b - part))
        };
        let times = |a: (f64, f64), b: (f64, f64)| {
            let high = a.0 * b.0;
            sum(high, a.0.mul_add(b.0, -high) + (a.0 * b.1 + a.1 * b.0))
        };
        let r = -t / 4096.0;
        let mut term = (1.0, 0.0);
        let mut total = (1.0, 0.0);
        for k in 1..30 {
            term = times(term, (r, 0.0));
            let (k, q) = (f64::from(k), term.0 / f64::from(k));
            term = sum(q, (q.mul_add(-k, term.0) + term.1) / k);
            let s = sum(total.0, term.0);
            total = sum(s.0, s.1 + term.1 + total.1);
        }
        (0..12).fold(total, |x, _| times(x, x))
    }

    /// Returns the distance in units in the last place.
    fn ulps(a: f64, b: f64) -> u64 {
        a.to_bits().abs_diff(b.to_bits())
    }

    #[test]
    fn exponential_is_within_one_unit_in_the_last_place() {
        let mut worst = 0.0f64;
        for i in 0..2_000_000 {
            let t = if i % 2 == 0 { 2e-5 * f64::from(i) } else { 3.4e-4 * f64::from(i) };
            let (y, (high, low)) = (decay(t), exact(t));
            let unit = f64::from_bits(high.to_bits() + 1) - high;
            worst = worst.max((((y - high) - low) / unit).abs());
        }
        assert!(worst < 1.0, "{worst} units");
    }

    #[test]
    fn exponential_of_any_size() {
        let mut out = Array2::from_shape_fn((1000, 749), |(i, j)| j as f64 + 1e-3 * i as f64);
        let t = out.clone();
        map(out.view_mut(), decay);
        for (t, y) in t.iter().zip(&out) {
            assert!(ulps(*y, (-t).exp()) <= 1, "{t}: {y:e}, {:e}", (-t).exp());
        }
    }

    #[test]
    fn exponential_at_extremes() {
        let tiny = f64::from_bits(1);
        let cases = [
            (0.0, 1.0),
            (-0.0, 1.0),
            (-1e-300, 1.0),
            (tiny, 1.0),
            (745.0, tiny),
            (745.2, 0.0),
            (1e300, 0.0),
            (f64::INFINITY, 0.0),
        ];
        for (t, y) in cases {
            assert!(ulps(decay(t), y) <= 1, "{t:e}: {:e}", decay(t));
        }
        assert!(decay(f64::NAN).is_nan());
    }

    #[test]
    fn the_vector_unit_changes_no_bit() {
        let t = Array2::from_shape_fn((1, 10_007), |(_, j)| 0.075 * j as f64);
        let mut fast = t.clone();
        map(fast.view_mut(), decay);
        assert_eq!(fast, t.mapv(decay));
    }

    #[test]
    fn rows_of_any_layout() {
        let mut a = Array2::from_shape_fn((3, 4), |(i, j)| (i * 4 + j) as f64).reversed_axes();
        let expected = a.mapv(|v| 2.0 * v + 1.0);
        map_with(a.view_mut(), expected.view(), |v, w| v + w - v);
        assert_eq!(a, expected);
    }
}
