//! Steps within a working set: pairs of multipliers are moved one after the other, (M39).
//!
//! Moving pairs converges slowly if the kernel matrix of the free variables is ill-conditioned, as with large costs or
//! features of very different scales. At intervals a Newton step therefore moves all free variables together, to the
//! optimum of their face or to its border.

use std::ops::Range;

use ndarray::Array2;

use crate::kernel::vector::{self, Sweep};
use crate::linalg::Cholesky;

/// Smallest curvature of a pair, relative to the sum of its diagonal entries.
const FLAT: f64 = 1e-12;
/// Number of pairs moved per variable between two Newton steps. Most programs are solved before the first Newton step.
/// Half or twice this value changes the time of the others by less than a factor of 2.
const NEWTON_EVERY: usize = 5;
/// Multiply-adds that Newton steps may take for each pair and variable of the working set. This is about the time of
/// the pair itself, so that Newton steps at most double the time of a search.
const PAIR_WORK: f64 = 10.0;
/// Multiply-adds that Newton steps may take in advance, a tenth of a second. Each step that ends at a bound leaves one
/// free variable fewer, while pairs free about as many again. Some 200 variables must therefore be reduced to few in
/// one call. A tenth of this value is too small for that; ten times as much would delay the end at a time limit.
const ADVANCE: f64 = 1e8;
/// Ridge on the diagonal of the kernel matrix of the free variables, relative to its largest entry. The matrix is
/// singular if there are more free variables than the kernel has dimensions. A thousandth of this value is below
/// rounding; a thousand times as much slows the last steps down.
const RIDGE: f64 = 1e-12;
/// Number of values that are compared in parallel.
const LANES: usize = 16;

/// The program of a working set, stored in a few arrays.
pub(crate) struct Inner {
    /// Ranges of variables whose sums are fixed together.
    groups: [Range<usize>; 2],
    /// Kernel values, [W, W].
    k: Array2<f64>,
    /// Diagonal of the kernel values, `[W]`.
    diagonal: Vec<f64>,
    sign: Vec<f64>,
    bound: Vec<f64>,
    pub alpha: Vec<f64>,
    v: Vec<f64>,
    /// 0 for a variable that can rise, and minus infinity for others.
    rise: Vec<f64>,
    /// 0 for a variable that can fall, and infinity for others.
    fall: Vec<f64>,
    gains: Vec<f64>,
}

impl Inner {
    /// Returns the program of variables whose kernel values are `k`, [W, W]. `groups` are the ranges of variables whose
    /// sums are fixed together.
    pub fn new(groups: [Range<usize>; 2], k: Array2<f64>, [sign, bound, alpha, v]: [Vec<f64>; 4]) -> Inner {
        let size = sign.len();
        let diagonal = k.diag().to_vec();
        let [rise, fall, gains] = [(); 3].map(|()| vec![0.0; size]);
        let mut inner = Inner { groups, k, diagonal, sign, bound, alpha, v, rise, fall, gains };
        (0..size).for_each(|i| inner.mark(i));
        inner
    }

    /// Stores whether a variable can rise and fall.
    fn mark(&mut self, i: usize) {
        let (not_at_top, not_at_bottom) = (self.alpha[i] < self.bound[i], self.alpha[i] > 0.0);
        let (rises, falls) = if self.sign[i] > 0.0 { (not_at_top, not_at_bottom) } else { (not_at_bottom, not_at_top) };
        self.rise[i] = if rises { 0.0 } else { f64::NEG_INFINITY };
        self.fall[i] = if falls { 0.0 } else { f64::INFINITY };
    }

    /// Moves pairs until no pair violates the conditions by more than `enough`, or until `most` pairs were moved.
    /// Returns the number of pairs moved.
    pub fn run(&mut self, enough: f64, most: usize) -> usize {
        let size = self.sign.len();
        let mut work_left = 0.0;
        for step in 0..most {
            if step > 0 && step % (NEWTON_EVERY * size) == 0 {
                work_left += PAIR_WORK * (NEWTON_EVERY * size * size) as f64;
                work_left = self.newton(work_left);
            }
            let pair =
                self.groups.clone().into_iter().filter_map(|group| self.pair(group, enough)).reduce(|a, b| match b.2 > a.2 {
                    true => b,
                    false => a,
                });
            let Some((i, j, _)) = pair else { return step };
            if !self.step(i, j) {
                return step;
            }
        }
        most
    }

    /// Returns the pair of a group with the largest gain, and this gain.
    fn pair(&mut self, group: Range<usize>, enough: f64) -> Option<(usize, usize, f64)> {
        let (mut top, mut bottom) = (f64::NEG_INFINITY, f64::INFINITY);
        let ends = Ends { v: &self.v[group.clone()], rise: &self.rise[group.clone()], fall: &self.fall[group.clone()] };
        vector::run(FindEnds { ends, top: &mut top, bottom: &mut bottom });
        if !(top - bottom > enough) {
            return None;
        }
        let i = group.clone().find(|i| self.v[*i] + self.rise[*i] == top)?;
        let row = self.k.row(i);
        let mut best = 0.0;
        vector::run(FindGains {
            value: self.v[i],
            diagonal: self.diagonal[i],
            row: &row.as_slice().expect("rows are contiguous")[group.clone()],
            diagonals: &self.diagonal[group.clone()],
            v: &self.v[group.clone()],
            fall: &self.fall[group.clone()],
            gains: &mut self.gains[group.clone()],
            best: &mut best,
        });
        let j = group.clone().find(|j| self.gains[*j] == best).filter(|_| best > 0.0)?;
        Some((i, j, best))
    }

    /// Moves a pair to the minimum of the objective on its line. Returns true if the multipliers changed.
    fn step(&mut self, i: usize, j: usize) -> bool {
        let (a, b) = (self.diagonal[i], self.diagonal[j]);
        let curvature = (a + b - 2.0 * self.k[[i, j]]).max(FLAT * (a + b).abs()).max(f64::MIN_POSITIVE);
        let room = |up: bool, i: usize| if up { self.bound[i] - self.alpha[i] } else { self.alpha[i] };
        let (room_i, room_j) = (room(self.sign[i] > 0.0, i), room(self.sign[j] < 0.0, j));
        let delta = ((self.v[i] - self.v[j]) / curvature).min(room_i).min(room_j);
        let before = (self.alpha[i], self.alpha[j]);
        let end = |up: bool, bound: f64| if up { bound } else { 0.0 };
        self.alpha[i] = if delta == room_i { end(self.sign[i] > 0.0, self.bound[i]) } else { before.0 + self.sign[i] * delta };
        self.alpha[j] = if delta == room_j { end(self.sign[j] < 0.0, self.bound[j]) } else { before.1 - self.sign[j] * delta };
        let (rows_i, rows_j) = (self.k.row(i), self.k.row(j));
        let (row_i, row_j) = (rows_i.as_slice().expect("rows"), rows_j.as_slice().expect("rows"));
        vector::run(Move { delta, row_i, row_j, v: &mut self.v });
        self.mark(i);
        self.mark(j);
        before != (self.alpha[i], self.alpha[j])
    }

    /// Takes Newton steps on the free variables. Each step goes to the optimum of their face, or until one variable
    /// meets its bound and is no longer free. Takes as many multiply-adds as `work_left`, unless that is negative, and
    /// at most [`ADVANCE`] more. Returns the remaining number of multiply-adds.
    fn newton(&mut self, mut work_left: f64) -> f64 {
        if work_left < 0.0 {
            return work_left;
        }
        loop {
            let free = self.free();
            let (n, size) = (free.len() as f64, self.sign.len() as f64);
            let work = n * n * n / 6.0 + 2.0 * n * size;
            if free.is_empty() || work > work_left + ADVANCE {
                return work_left;
            }
            work_left -= work;
            let met_a_bound = self.direction(&free).is_some_and(|d| self.go(&free, &d));
            if !met_a_bound {
                return work_left;
            }
        }
    }

    /// Returns the free variables, those that are not at a bound. A group with a single free variable is omitted,
    /// because it cannot move.
    fn free(&self) -> Vec<usize> {
        let is_free = |i: &usize| self.rise[*i] == 0.0 && self.fall[*i] == 0.0;
        let groups = self.groups.clone().into_iter().map(|group| group.filter(is_free).collect::<Vec<usize>>());
        groups.filter(|group| group.len() > 1).flatten().collect()
    }

    /// Returns the change of s_i a_i of `free` variables, `[F]`, to the optimum of their face. It solves (K + ridge) d
    /// = v - level, where d sums to 0 in each group. Returns `None` if the kernel matrix is not positive definite on
    /// them.
    fn direction(&self, free: &[usize]) -> Option<Vec<f64>> {
        let ridge = RIDGE * free.iter().map(|i| self.diagonal[*i].abs()).fold(f64::MIN_POSITIVE, f64::max);
        let matrix = || {
            Array2::from_shape_fn((free.len(), free.len()), |(p, q)| {
                self.k[[free[p], free[q]]] + if p == q { ridge } else { 0.0 }
            })
        };
        let factor = Cholesky::of(free.len(), 0.0, matrix).ok()?;
        let first = free.partition_point(|i| *i < self.groups[0].end);
        let groups: Vec<Range<usize>> = [0..first, first..free.len()].into_iter().filter(|g| !g.is_empty()).collect();
        // The levels make the changes of each group sum to 0.
        let mut solved = Array2::zeros((free.len(), groups.len() + 1));
        for (g, group) in groups.iter().enumerate() {
            let mean = free[group.clone()].iter().map(|i| self.v[*i]).sum::<f64>() / group.len() as f64;
            for p in group.clone() {
                solved[[p, 0]] = self.v[free[p]] - mean;
                solved[[p, g + 1]] = 1.0;
            }
        }
        factor.solve(solved.view_mut());
        let sum = |g: &Range<usize>, column: usize| g.clone().map(|p| solved[[p, column]]).sum::<f64>();
        let levels = match groups.as_slice() {
            [one] => vec![sum(one, 0) / sum(one, 1)],
            [one, other] => {
                let [a, b, c, d] = [sum(one, 1), sum(one, 2), sum(other, 1), sum(other, 2)];
                let (e, f, det) = (sum(one, 0), sum(other, 0), a * d - b * c);
                vec![(e * d - b * f) / det, (a * f - e * c) / det]
            }
            _ => return None,
        };
        let level = |p: usize| levels.iter().enumerate().map(|(g, level)| level * solved[[p, g + 1]]).sum::<f64>();
        let mut d: Vec<f64> = (0..free.len()).map(|p| solved[[p, 0]] - level(p)).collect();
        for group in groups {
            let mean = d[group.clone()].iter().sum::<f64>() / group.len() as f64;
            d[group].iter_mut().for_each(|d| *d -= mean);
        }
        d.iter().all(|d| d.is_finite()).then_some(d)
    }

    /// Moves along `d` to the minimum of the objective or to the first bound. Returns true if it stopped at a bound.
    fn go(&mut self, free: &[usize], d: &[f64]) -> bool {
        let slope: f64 = free.iter().zip(d).map(|(i, d)| self.v[*i] * d).sum();
        if !(slope > 0.0) {
            return false;
        }
        let mut change = vec![0.0; self.v.len()];
        for (i, d) in free.iter().zip(d) {
            let row = self.k.row(*i);
            change.iter_mut().zip(row).for_each(|(sum, k)| *sum = k.mul_add(*d, *sum));
        }
        let square: f64 = free.iter().zip(d).map(|(i, d)| change[*i] * d).sum();
        let flat: f64 = FLAT * free.iter().zip(d).map(|(i, d)| d * d * self.diagonal[*i].abs()).sum::<f64>();
        let mut length = slope / square.max(flat).max(f64::MIN_POSITIVE);
        let mut blocking = None;
        for (i, d) in free.iter().zip(d) {
            let by = self.sign[*i] * d;
            let room = if by > 0.0 { self.bound[*i] - self.alpha[*i] } else { self.alpha[*i] };
            if by != 0.0 && room / by.abs() < length {
                length = room / by.abs();
                blocking = Some(*i);
            }
        }
        for (i, d) in free.iter().zip(d) {
            let by = self.sign[*i] * d;
            let end = if by > 0.0 { self.bound[*i] } else { 0.0 };
            let moved = (self.alpha[*i] + length * by).clamp(0.0, self.bound[*i]);
            self.alpha[*i] = if blocking == Some(*i) { end } else { moved };
            self.mark(*i);
        }
        self.v.iter_mut().zip(&change).for_each(|(v, change)| *v -= length * change);
        blocking.is_some()
    }
}

struct Ends<'a> {
    v: &'a [f64],
    rise: &'a [f64],
    fall: &'a [f64],
}

/// Finds the largest v of the variables that can rise, and the smallest v of those that can fall.
struct FindEnds<'a> {
    ends: Ends<'a>,
    top: &'a mut f64,
    bottom: &'a mut f64,
}

impl Sweep for FindEnds<'_> {
    #[inline(always)]
    fn run(self) {
        let Ends { v, rise, fall } = self.ends;
        let (mut tops, mut bottoms) = ([f64::NEG_INFINITY; LANES], [f64::INFINITY; LANES]);
        let chunks = v.chunks(LANES).zip(rise.chunks(LANES).zip(fall.chunks(LANES)));
        for (v, (rise, fall)) in chunks {
            for (((v, rise), fall), (top, bottom)) in v.iter().zip(rise).zip(fall).zip(tops.iter_mut().zip(&mut bottoms)) {
                let (up, down) = (v + rise, v + fall);
                *top = if up > *top { up } else { *top };
                *bottom = if down < *bottom { down } else { *bottom };
            }
        }
        *self.top = tops.into_iter().fold(f64::NEG_INFINITY, f64::max);
        *self.bottom = bottoms.into_iter().fold(f64::INFINITY, f64::min);
    }
}

/// Computes the gain of a variable paired with each one that can fall: (v_i - v_j)^2 divided by the curvature.
struct FindGains<'a> {
    value: f64,
    diagonal: f64,
    row: &'a [f64],
    diagonals: &'a [f64],
    v: &'a [f64],
    fall: &'a [f64],
    gains: &'a mut [f64],
    best: &'a mut f64,
}

impl Sweep for FindGains<'_> {
    #[inline(always)]
    fn run(self) {
        let mut tops = [0.0f64; LANES];
        let inputs = self.row.chunks(LANES).zip(self.diagonals.chunks(LANES));
        let values = self.v.chunks(LANES).zip(self.fall.chunks(LANES));
        for ((gains, (row, diagonals)), (v, fall)) in self.gains.chunks_mut(LANES).zip(inputs).zip(values) {
            let inputs = row.iter().zip(diagonals).zip(v.iter().zip(fall));
            for ((gain, top), ((k, d), (v, fall))) in gains.iter_mut().zip(&mut tops).zip(inputs) {
                let difference = self.value - (v + fall);
                let sum = self.diagonal + d;
                let curvature = sum - 2.0 * k;
                let least = FLAT * sum.abs() + f64::MIN_POSITIVE;
                let curvature = if curvature > least { curvature } else { least };
                *gain = if difference > 0.0 { difference * difference / curvature } else { 0.0 };
                *top = if *gain > *top { *gain } else { *top };
            }
        }
        *self.best = tops.into_iter().fold(0.0, f64::max);
    }
}

/// Replaces v by v - delta (k_i - k_j).
struct Move<'a> {
    delta: f64,
    row_i: &'a [f64],
    row_j: &'a [f64],
    v: &'a mut [f64],
}

impl Sweep for Move<'_> {
    #[inline(always)]
    fn run(self) {
        for (v, (a, b)) in self.v.iter_mut().zip(self.row_i.iter().zip(self.row_j)) {
            *v = (b - a).mul_add(self.delta, *v);
        }
    }
}
