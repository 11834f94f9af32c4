//! Steps within a working set: pairs of multipliers, one after the other, (M39).

use std::ops::Range;

use ndarray::Array2;

use crate::kernel::vector::{self, Sweep};

/// Least curvature of a pair, over the sum of its diagonal entries.
const FLAT: f64 = 1e-12;
/// Numbers that are compared side by side.
const LANES: usize = 16;

/// The program of a working set: everything in a few arrays.
pub(crate) struct Inner {
    /// Those whose sums are fixed together.
    groups: [Range<usize>; 2],
    /// Kernel values, [W, W], and their diagonal.
    k: Array2<f64>,
    diagonal: Vec<f64>,
    sign: Vec<f64>,
    bound: Vec<f64>,
    pub alpha: Vec<f64>,
    v: Vec<f64>,
    /// 0 where a variable can rise, else minus infinity; 0 where it can fall, else infinity.
    rise: Vec<f64>,
    fall: Vec<f64>,
    gains: Vec<f64>,
}

impl Inner {
    /// Of variables whose kernel values are `k`, [W, W]; `groups`: those whose sums are fixed together.
    pub fn new(groups: [Range<usize>; 2], k: Array2<f64>, [sign, bound, alpha, v]: [Vec<f64>; 4]) -> Inner {
        let size = sign.len();
        let diagonal = k.diag().to_vec();
        let [rise, fall, gains] = [(); 3].map(|()| vec![0.0; size]);
        let mut inner = Inner { groups, k, diagonal, sign, bound, alpha, v, rise, fall, gains };
        (0..size).for_each(|i| inner.mark(i));
        inner
    }

    /// Notes where a variable can go.
    fn mark(&mut self, i: usize) {
        let (not_at_top, not_at_bottom) = (self.alpha[i] < self.bound[i], self.alpha[i] > 0.0);
        let (rises, falls) = if self.sign[i] > 0.0 { (not_at_top, not_at_bottom) } else { (not_at_bottom, not_at_top) };
        self.rise[i] = if rises { 0.0 } else { f64::NEG_INFINITY };
        self.fall[i] = if falls { 0.0 } else { f64::INFINITY };
    }

    /// Steps until no pair violates the conditions by more than `enough`.
    pub fn run(&mut self, enough: f64, most: usize) -> usize {
        for step in 0..most {
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

    /// The pair of a group that gains most, and its gain.
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

    /// Moves a pair to the least objective on its line; whether anything changed.
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
}

struct Ends<'a> {
    v: &'a [f64],
    rise: &'a [f64],
    fall: &'a [f64],
}

/// The largest v of those that rise, the least of those that fall.
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

/// What a pair gains with each of those that fall: (v_i - v_j)^2 over its curvature.
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

/// v - delta (k_i - k_j).
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
