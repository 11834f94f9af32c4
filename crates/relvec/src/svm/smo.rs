//! The quadratic program of support vector machines, (M39), by sequential minimal optimisation.
//!
//! ```text
//! minimise 1/2 a'Q a + p'a,   0 <= a_i <= c_i,   s'a = const,   Q_ij = s_i s_j k(x_i, x_j),   s_i = +1 or -1
//! ```
//!
//! A step moves two multipliers along the line that keeps s'a, the pair chosen by second-order information (Fan, Chen
//! & Lin 2005, WSS 2). Steps are made within a working set of the variables that violate the optimality conditions
//! most, whose kernel rows are made together; the gradient of all others follows once for all steps (Joachims 1998).
//! Variables that will stay at their bounds are left out of it until the rest has converged (shrinking).

use std::ops::ControlFlow;

use ndarray::Array2;

use super::pairs::Inner;
use super::rows::{Points, Rows, add_rows};
use crate::error::Result;
use crate::report::{Interrupt, Status};

/// Most variables of a working set; rows of the cache that it may take, as a share.
const WORKING_SET: usize = 512;
/// Most variables that are all the working set, where rows of the cache allow the largest: parts of a program with a
/// large cost undo each other's work. Kernel values of twice as many take four times the memory, now 13 MB.
const WHOLE_SET: usize = 1280;
const CACHE_SHARE: usize = 2;
/// A working set is solved to this share of the gap that it was chosen at.
const INNER_GAP: f64 = 0.1;
/// Rounds between two looks for variables to leave out.
const SHRINK_EVERY: usize = 4;
/// Pieces of a row that are as long as this are copied as such.
const LONG_PIECES: usize = 8;
/// Two convex hulls that come as near as this, over the largest norm of a row, count as one.
const TOUCHING: f64 = 1e-6;

/// A quadratic program over variables, each of which stands for a point with a sign.
#[derive(Debug)]
pub(crate) struct Program {
    /// The point of each variable.
    pub point: Vec<usize>,
    /// s, +1 or -1.
    pub sign: Vec<f64>,
    /// p.
    pub linear: Vec<f64>,
    /// c, may be infinite.
    pub bound: Vec<f64>,
    /// A feasible a.
    pub start: Vec<f64>,
    /// Whether the sums over either sign are fixed on their own (the nu formulations).
    pub by_sign: bool,
    /// Whether a are the nearest points of two convex hulls, reduced ones where bounds are finite, times a constant: the
    /// tolerance is then in units of the margin that follows, which is half the squared distance of hulls that are not
    /// reduced.
    pub hulls: bool,
}

/// Rules of the search.
#[derive(Debug)]
pub(crate) struct Rules<'a> {
    pub tolerance: f64,
    pub shrinking: bool,
    /// Numbers that kernel rows may take together.
    pub room: usize,
    /// Most variables of a working set.
    pub set: usize,
    pub max_iterations: usize,
    pub interrupt: &'a Interrupt,
}

/// What is told of a search after each round.
pub(crate) struct Step {
    pub iterations: usize,
    pub gap: f64,
}

/// Where a search ended.
#[derive(Debug)]
pub(crate) struct Solution {
    /// a.
    pub alpha: Vec<f64>,
    /// s_i times the gradient's negative, which free variables of either sign share: + and -.
    pub level: [f64; 2],
    /// 1/2 a'Q a + p'a.
    pub objective: f64,
    pub iterations: usize,
    /// Largest violation of the optimality conditions.
    pub gap: f64,
    pub status: Status,
    /// Distance of the hulls' points over the largest norm, where they touch: there is no margin.
    pub touching: Option<f64>,
}

impl Solution {
    /// Whether the hulls' points touch, or the margin is less than the violation that is left. A search that met a limit
    /// before has any margin that is positive.
    pub fn has_no_margin(&self, program: &Program) -> bool {
        let ended = matches!(self.status, Status::Converged | Status::Singular);
        let least = if ended { self.gap } else { 0.0 };
        program.hulls && (self.touching.is_some() || !(0.5 * (self.level[1] - self.level[0]) > least))
    }
}

/// Most variables of a working set where rows of so many points may take `room` numbers.
pub(crate) fn set_size(room: usize, points: usize) -> usize {
    WORKING_SET.min((room / points.max(1) / CACHE_SHARE).max(2))
}

/// Solves the program.
///
/// # Errors
/// A kernel value that is not finite; an interrupt.
pub(crate) fn solve(
    program: &Program,
    points: &Points,
    rules: &Rules,
    tell: &mut dyn FnMut(&Step) -> ControlFlow<()>,
) -> Result<Solution> {
    let mut search = Search::new(program, points, rules);
    let largest = points.largest();
    let (mut touching, mut stalled) = (None, false);
    let total: f64 = program.start.iter().zip(&program.sign).filter(|(_, s)| **s > 0.0).map(|(a, _)| a).sum();
    let reduced = program.bound.iter().any(|bound| bound.is_finite());
    for round in 1.. {
        let v = search.values();
        let extremes = search.extremes(&v);
        let gap = extremes.iter().map(|e| e.gap()).fold(0.0, f64::max);
        let mut tolerance = rules.tolerance;
        if program.hulls {
            let square = search.square();
            let distance = (square.max(0.0) / largest.max(f64::MIN_POSITIVE)).sqrt() / total;
            touching = (distance < TOUCHING).then_some(distance);
            let least = 0.5 * square / total;
            // Points of reduced hulls lie inside the margin as well. No tolerance is larger than that of other programs.
            let margin = if reduced { least.max(margin(&extremes)).min(1.0) } else { least };
            tolerance *= margin;
        }
        let enough = tolerance.max(search.rounding(&v, largest));
        let all = search.active.len() == program.point.len();
        let status = if touching.is_some() || gap <= enough && all {
            Some(if gap <= tolerance || touching.is_some() { Status::Converged } else { Status::Singular })
        } else if rules.interrupt.is_raised_by_hand() {
            return Err(crate::Error::Interrupted);
        } else if rules.interrupt.is_raised() {
            Some(Status::TimeLimit)
        } else if search.iterations >= rules.max_iterations {
            Some(Status::IterationLimit)
        } else if tell(&Step { iterations: search.iterations, gap }).is_break() {
            Some(Status::Stopped)
        } else {
            None
        };
        if let Some(status) = status {
            return Ok(search.finish(status, touching));
        }
        if gap <= enough {
            search.widen(enough)?;
            continue;
        }
        if rules.shrinking && round % SHRINK_EVERY == 0 && search.shrink(&v, &extremes)? {
            continue;
        }
        let set = search.choose(&v, &extremes);
        // Where rounding leaves no pair to move, all variables have a last say.
        match search.improve(&v, set, gap, enough)? {
            0 if all || stalled => return Ok(search.finish(Status::Singular, touching)),
            0 => {
                stalled = true;
                search.widen(enough)?;
            }
            _ => stalled = false,
        }
    }
    unreachable!("rounds are counted from 1 without an end")
}

/// The ends of the optimality conditions for variables whose sums are fixed together.
#[derive(Debug, Clone, Copy)]
struct Extremes {
    /// Largest value of those that can rise along s.
    top: f64,
    /// Least value of those that can fall.
    bottom: f64,
}

impl Extremes {
    fn gap(&self) -> f64 {
        self.top - self.bottom
    }

    /// The level that free variables have, or the middle of what is allowed.
    fn level(&self) -> f64 {
        match (self.top.is_finite(), self.bottom.is_finite()) {
            (true, true) => 0.5 * (self.top + self.bottom),
            (true, false) => self.top,
            (false, true) => self.bottom,
            (false, false) => 0.0,
        }
    }
}

/// Half of what the levels of the two groups differ by.
fn margin(extremes: &[Extremes; 2]) -> f64 {
    0.5 * (extremes[1].level() - extremes[0].level())
}

struct Search<'a> {
    program: &'a Program,
    points: &'a Points,
    rules: &'a Rules<'a>,
    rows: Rows<'a>,
    alpha: Vec<f64>,
    /// Variables that are not left out, ascending.
    active: Vec<usize>,
    /// sum_j s_j a_j k(x, x_j) at the columns of `rows`.
    f: Vec<f64>,
    /// Where a point stands among these columns.
    place: Vec<usize>,
    /// The working set before, the newest first.
    recent: Vec<usize>,
    iterations: usize,
}

impl<'a> Search<'a> {
    fn new(program: &'a Program, points: &'a Points, rules: &'a Rules<'a>) -> Search<'a> {
        let all: Vec<usize> = (0..points.count()).collect();
        let mut search = Search {
            program,
            points,
            rules,
            rows: Rows::new(points, rules.room),
            alpha: program.start.clone(),
            active: (0..program.point.len()).collect(),
            f: vec![],
            place: all.clone(),
            recent: vec![],
            iterations: 0,
        };
        search.f = points.times(&all, &search.beta());
        search
    }

    /// s_i a_i summed over the variables of each point, `[L]`.
    fn beta(&self) -> Vec<f64> {
        beta(self.program, self.points.count(), &self.alpha)
    }

    /// s_i times the negative gradient, of the active variables.
    fn values(&self) -> Vec<f64> {
        let Program { point, sign, linear, .. } = self.program;
        self.active.iter().map(|i| -(self.f[self.place[point[*i]]] + sign[*i] * linear[*i])).collect()
    }

    fn can_rise(&self, i: usize) -> bool {
        let a = self.alpha[i];
        if self.program.sign[i] > 0.0 { a < self.program.bound[i] } else { a > 0.0 }
    }

    fn can_fall(&self, i: usize) -> bool {
        let a = self.alpha[i];
        if self.program.sign[i] > 0.0 { a > 0.0 } else { a < self.program.bound[i] }
    }

    /// The group of a variable: those whose sum is fixed together.
    fn group(&self, i: usize) -> usize {
        usize::from(self.program.by_sign && self.program.sign[i] < 0.0)
    }

    fn extremes(&self, v: &[f64]) -> [Extremes; 2] {
        let mut out = [Extremes { top: f64::NEG_INFINITY, bottom: f64::INFINITY }; 2];
        for (i, v) in self.active.iter().zip(v) {
            let ends = &mut out[self.group(*i)];
            if self.can_rise(*i) {
                ends.top = ends.top.max(*v);
            }
            if self.can_fall(*i) {
                ends.bottom = ends.bottom.min(*v);
            }
        }
        out
    }

    /// What rounding may make of a gap of 0: sums of a k(x, x') are no more exact, nor are their differences.
    fn rounding(&self, v: &[f64], largest_kernel: f64) -> f64 {
        let total: f64 = self.alpha.iter().sum();
        16.0 * f64::EPSILON * (v.iter().fold(0.0, |largest: f64, v| largest.max(v.abs())) + total * largest_kernel)
    }

    /// a'Q a.
    fn square(&self) -> f64 {
        let Program { point, sign, .. } = self.program;
        self.active.iter().map(|i| sign[*i] * self.alpha[*i] * self.f[self.place[point[*i]]]).sum()
    }

    /// The working set: of the violating variables those that violate most, and some of the set before.
    fn choose(&self, v: &[f64], extremes: &[Extremes; 2]) -> Vec<usize> {
        let size = self.rules.set;
        let most = if size == WORKING_SET { WHOLE_SET } else { size };
        if self.active.len() <= most {
            return self.active.clone();
        }
        let mut taken = vec![false; self.program.point.len()];
        let mut set: Vec<usize> = vec![];
        let kept: Vec<usize> = self.recent.iter().copied().take(size / 2).collect();
        let groups = if self.program.by_sign { 2 } else { 1 };
        let share = ((size - kept.len()) / (2 * groups)).max(1);
        for (group, ends) in extremes.iter().enumerate().take(groups) {
            for rising in [true, false] {
                // Values as they violate: the larger, the more.
                let value = |k: usize| if rising { v[k] } else { -v[k] };
                let limit = if rising { ends.bottom } else { -ends.top };
                let mut open: Vec<usize> = (0..v.len())
                    .filter(|k| {
                        let i = self.active[*k];
                        let moves = if rising { self.can_rise(i) } else { self.can_fall(i) };
                        moves && value(*k) > limit && !taken[i] && self.group(i) == group
                    })
                    .collect();
                let more = |a: &usize, b: &usize| value(*b).total_cmp(&value(*a)).then(a.cmp(b));
                if open.len() > share {
                    open.select_nth_unstable_by(share - 1, more);
                    open.truncate(share);
                }
                open.sort_unstable_by(more);
                open.iter().for_each(|k| taken[self.active[*k]] = true);
                set.extend(open.iter().map(|k| self.active[*k]));
            }
        }
        let kept: Vec<usize> = self.recent.iter().copied().filter(|i| !taken[*i]).take(size - set.len().min(size)).collect();
        set.extend(kept);
        set
    }

    /// Steps within the working set, then the gradient of all; returns the number of steps.
    fn improve(&mut self, v: &[f64], mut set: Vec<usize>, gap: f64, enough: f64) -> Result<usize> {
        let program = self.program;
        self.recent = set.clone();
        // Those of one group side by side.
        set.sort_unstable_by_key(|i| (self.group(*i), *i));
        let mut wanted: Vec<usize> = set.iter().map(|i| program.point[*i]).collect();
        wanted.sort_unstable();
        wanted.dedup();
        self.rows.fetch(&wanted)?;
        let first = set.partition_point(|i| self.group(*i) == 0);
        let whole = set.len() == self.active.len();
        let mut inner = self.inner(&set, v, first);
        let enough = if whole { enough } else { (INNER_GAP * gap).max(0.5 * enough) };
        let most = (100 * set.len()).max(1000).min(self.rules.max_iterations - self.iterations);
        let steps = inner.run(enough, most);
        self.iterations += steps;
        let mut moved = vec![0.0; wanted.len()];
        for (k, i) in set.iter().enumerate() {
            let by = program.sign[*i] * (inner.alpha[k] - self.alpha[*i]);
            moved[wanted.binary_search(&program.point[*i]).expect("it is wanted")] += by;
            self.alpha[*i] = inner.alpha[k];
        }
        let changed: Vec<usize> = (0..wanted.len()).filter(|k| moved[*k] != 0.0).collect();
        let rows: Vec<&[f64]> = changed.iter().map(|k| self.rows.row(wanted[*k])).collect();
        let by: Vec<f64> = changed.iter().map(|k| moved[*k]).collect();
        add_rows(&rows, &by, &mut self.f);
        Ok(steps)
    }

    /// The program of a working set, of which the variables up to `first` are one group.
    fn inner(&self, set: &[usize], v: &[f64], first: usize) -> Inner {
        let program = self.program;
        let places: Vec<usize> = set.iter().map(|i| self.place[program.point[*i]]).collect();
        let pieces: Vec<&[usize]> = places.chunk_by(|a, b| a + 1 == *b).collect();
        let mut k = Vec::with_capacity(set.len() * set.len());
        for i in set {
            let row = self.rows.row(program.point[*i]);
            match pieces.len() * LONG_PIECES <= places.len() {
                true => pieces.iter().for_each(|piece| k.extend_from_slice(&row[piece[0]..piece[0] + piece.len()])),
                false => k.extend(places.iter().map(|place| row[*place])),
            }
        }
        let k = Array2::from_shape_vec((set.len(), set.len()), k).expect("a row for each");
        let pick = |from: &[f64]| set.iter().map(|i| from[*i]).collect::<Vec<f64>>();
        let values = set.iter().map(|i| v[self.active.binary_search(i).expect("it is active")]).collect();
        let numbers = [pick(&program.sign), pick(&program.bound), pick(&self.alpha), values];
        Inner::new([0..first, first..set.len()], k, numbers)
    }

    /// Leaves out variables at a bound that no pair would move; whether there were any.
    fn shrink(&mut self, v: &[f64], extremes: &[Extremes; 2]) -> Result<bool> {
        let kept: Vec<usize> = self
            .active
            .iter()
            .zip(v)
            .filter(|(i, v)| {
                let ends = &extremes[self.group(**i)];
                match (self.can_rise(**i), self.can_fall(**i)) {
                    (true, false) => **v >= ends.bottom,
                    (false, true) => **v <= ends.top,
                    _ => true,
                }
            })
            .map(|(i, _)| *i)
            .collect();
        // Rows are made shorter only where that is worth a copy of them all.
        if kept.len() > self.active.len() - self.active.len() / 10 {
            return Ok(false);
        }
        self.set_active(kept)?;
        Ok(true)
    }

    fn set_active(&mut self, active: Vec<usize>) -> Result<()> {
        self.active = active;
        let mut columns: Vec<usize> = self.active.iter().map(|i| self.program.point[*i]).collect();
        columns.sort_unstable();
        columns.dedup();
        let f: Vec<f64> = columns.iter().map(|c| self.f[self.place[*c]]).collect();
        self.place_columns(&columns);
        self.f = f;
        let mut present = vec![false; self.program.point.len()];
        self.active.iter().for_each(|i| present[*i] = true);
        self.recent.retain(|i| present[*i]);
        self.rows.set_columns(columns)
    }

    fn place_columns(&mut self, columns: &[usize]) {
        self.place.fill(usize::MAX);
        columns.iter().enumerate().for_each(|(k, c)| self.place[*c] = k);
    }

    /// Works out f at all points again, and takes back the variables that violate their conditions; all, if the gap
    /// is `enough`.
    fn widen(&mut self, enough: f64) -> Result<()> {
        self.complete();
        let before = std::mem::replace(&mut self.active, (0..self.program.point.len()).collect());
        let v = self.values();
        let extremes = self.extremes(&v);
        let gap = extremes.iter().map(|e| e.gap()).fold(0.0, f64::max);
        if gap <= enough {
            let all: Vec<usize> = (0..self.points.count()).collect();
            // Nothing more is to be done: rows need not be made whole.
            self.rows = Rows::new(self.points, self.rules.room);
            self.place_columns(&all);
            return Ok(());
        }
        let mut was = vec![false; v.len()];
        before.iter().for_each(|i| was[*i] = true);
        let back = |i: &usize| {
            let ends = &extremes[self.group(*i)];
            was[*i]
                || match (self.can_rise(*i), self.can_fall(*i)) {
                    (true, false) => v[*i] >= ends.bottom,
                    (false, true) => v[*i] <= ends.top,
                    _ => true,
                }
        };
        let active: Vec<usize> = (0..v.len()).filter(back).collect();
        self.set_active(active)
    }

    /// f at all points, from the multipliers where a point was left out; then `place` is the identity.
    fn complete(&mut self) {
        let count = self.points.count();
        let missing: Vec<usize> = (0..count).filter(|c| self.place[*c] == usize::MAX).collect();
        let found = self.points.times(&missing, &self.beta());
        let mut f = vec![0.0; count];
        self.rows.columns().iter().zip(&self.f).for_each(|(c, value)| f[*c] = *value);
        missing.iter().zip(found).for_each(|(c, value)| f[*c] = value);
        self.f = f;
        let all: Vec<usize> = (0..count).collect();
        self.place_columns(&all);
    }

    fn finish(mut self, status: Status, touching: Option<f64>) -> Solution {
        if self.active.len() < self.program.point.len() {
            self.complete();
            self.active = (0..self.program.point.len()).collect();
        }
        let v = self.values();
        let extremes = self.extremes(&v);
        let gap = extremes.iter().map(|e| e.gap()).fold(0.0, f64::max);
        let mut sums = [(0.0, 0.0); 2];
        for (i, v) in v.iter().enumerate().filter(|(i, _)| self.can_rise(*i) && self.can_fall(*i)) {
            let sum = &mut sums[self.group(i)];
            *sum = (sum.0 + v, sum.1 + 1.0);
        }
        let level = |g: usize| if sums[g].1 > 0.0 { sums[g].0 / sums[g].1 } else { extremes[g].level() };
        let level = if self.program.by_sign { [level(0), level(1)] } else { [level(0); 2] };
        let linear: f64 = self.program.linear.iter().zip(&self.alpha).map(|(p, a)| p * a).sum();
        let objective = 0.5 * self.square() + linear;
        let Search { alpha, iterations, .. } = self;
        Solution { alpha, level, objective, iterations, gap, status, touching }
    }
}

/// s_i a_i summed over the variables of each point, `[L]`.
pub(crate) fn beta(program: &Program, points: usize, alpha: &[f64]) -> Vec<f64> {
    let mut beta = vec![0.0; points];
    for (i, a) in alpha.iter().enumerate() {
        beta[program.point[i]] += program.sign[i] * a;
    }
    beta
}
