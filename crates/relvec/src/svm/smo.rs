//! Sequential minimal optimisation of the quadratic program of support vector machines, (M39).
//!
//! ```text
//! minimise 1/2 a'Q a + p'a,   0 <= a_i <= c_i,   s'a = const,   Q_ij = s_i s_j k(x_i, x_j),   s_i = +1 or -1
//! ```
//!
//! A step moves two multipliers along the line that keeps s'a constant. Second-order information selects the pair (Fan,
//! Chen & Lin 2005, WSS 2). Steps are taken within a working set of the variables that violate the optimality
//! conditions most. The kernel rows of the working set are computed together, and the gradient of all other variables
//! is updated once after all its steps (Joachims 1998). Variables that will stay at their bounds are excluded until the
//! others have converged (shrinking).

use std::ops::ControlFlow;

use ndarray::Array2;

use super::pairs::Inner;
use super::rows::{Points, Rows, add_rows};
use crate::error::Result;
use crate::report::{Interrupt, Status};

/// Largest number of variables in a working set.
const WORKING_SET: usize = 512;
/// Largest number of variables that are all put into the working set, if the cache has room for the largest working
/// set. Parts of a program with a large cost would undo each other's steps. Twice this value takes four times the
/// memory for kernel values, which is 13 MB now.
const WHOLE_SET: usize = 1280;
/// Inverse of the largest share of the cached rows that a working set may take.
const CACHE_SHARE: usize = 2;
/// Share of the initial gap to which a working set is solved.
const INNER_GAP: f64 = 0.1;
/// Number of working sets between two searches for variables to exclude.
const SHRINK_EVERY: usize = 4;
/// Mean length of consecutive pieces of a row from which on they are copied as pieces.
const LONG_PIECES: usize = 8;
/// Distance of two convex hulls, relative to the largest norm of a row, below which they count as touching.
const TOUCHING: f64 = 1e-6;

/// A quadratic program. Each variable belongs to a point and has a sign.
#[derive(Debug)]
pub(crate) struct Program {
    /// The point of each variable.
    pub point: Vec<usize>,
    /// Signs s, +1 or -1.
    pub sign: Vec<f64>,
    /// Linear term p.
    pub linear: Vec<f64>,
    /// Upper bounds c, which may be infinite.
    pub bound: Vec<f64>,
    /// Feasible initial multipliers a.
    pub start: Vec<f64>,
    /// True if the sum over the variables of each sign is fixed separately (the nu formulations).
    pub by_sign: bool,
    /// True if a gives the nearest points of two convex hulls, times a constant. Finite bounds make these hulls reduced
    /// ones. The tolerance is then in units of the resulting margin. For hulls that are not reduced, this is half their
    /// squared distance.
    pub hulls: bool,
}

/// Settings of the search.
#[derive(Debug)]
pub(crate) struct Rules<'a> {
    pub tolerance: f64,
    pub shrinking: bool,
    /// Largest number of values in all cached kernel rows.
    pub room: usize,
    /// Largest number of variables in a working set.
    pub set: usize,
    pub max_iterations: usize,
    pub interrupt: &'a Interrupt,
}

/// The state of a search after each working set.
pub(crate) struct Step {
    pub iterations: usize,
    pub gap: f64,
}

/// The result of a search.
#[derive(Debug)]
pub(crate) struct Solution {
    /// Multipliers a.
    pub alpha: Vec<f64>,
    /// Negative gradient times s_i at the free variables, for the positive and for the negative sign.
    pub level: [f64; 2],
    /// Objective 1/2 a'Q a + p'a.
    pub objective: f64,
    pub iterations: usize,
    /// Largest violation of the optimality conditions.
    pub gap: f64,
    pub status: Status,
    /// Distance of the nearest points of the hulls, relative to the largest norm, if they touch. There is no margin
    /// then.
    pub touching: Option<f64>,
}

impl Solution {
    /// Returns true if the hulls touch, or if the margin is smaller than the remaining violation. After a search that
    /// ended at a limit, any positive margin counts.
    pub fn has_no_margin(&self, program: &Program) -> bool {
        let ended = matches!(self.status, Status::Converged | Status::Singular);
        let least = if ended { self.gap } else { 0.0 };
        program.hulls && (self.touching.is_some() || !(0.5 * (self.level[1] - self.level[0]) > least))
    }
}

/// Returns the largest number of variables in a working set, if the rows of this many points may take `room` values.
pub(crate) fn set_size(room: usize, points: usize) -> usize {
    WORKING_SET.min((room / points.max(1) / CACHE_SHARE).max(2))
}

/// Solves the program; `tell` is called after each working set.
///
/// # Errors
/// Returns an error for a kernel value that is not finite, and after an interrupt.
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
            // Points of reduced hulls may lie inside the margin. The tolerance is at most that of other programs.
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
        // If rounding leaves no pair to move, all variables are considered once more.
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
    /// Largest value of the variables that can rise along s.
    top: f64,
    /// Smallest value of the variables that can fall.
    bottom: f64,
}

impl Extremes {
    fn gap(&self) -> f64 {
        self.top - self.bottom
    }

    /// Returns the value that free variables have, or the middle of the allowed range.
    fn level(&self) -> f64 {
        match (self.top.is_finite(), self.bottom.is_finite()) {
            (true, true) => 0.5 * (self.top + self.bottom),
            (true, false) => self.top,
            (false, true) => self.bottom,
            (false, false) => 0.0,
        }
    }
}

/// Returns half the difference of the levels of the two groups.
fn margin(extremes: &[Extremes; 2]) -> f64 {
    0.5 * (extremes[1].level() - extremes[0].level())
}

struct Search<'a> {
    program: &'a Program,
    points: &'a Points,
    rules: &'a Rules<'a>,
    rows: Rows<'a>,
    alpha: Vec<f64>,
    /// Variables that are not excluded, ascending.
    active: Vec<usize>,
    /// sum_j s_j a_j k(x, x_j) at the columns of `rows`.
    f: Vec<f64>,
    /// Index of each point among these columns.
    place: Vec<usize>,
    /// Previous working set, the newest variables first.
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

    /// Returns s_i a_i summed over the variables of each point, `[L]`.
    fn beta(&self) -> Vec<f64> {
        beta(self.program, self.points.count(), &self.alpha)
    }

    /// Returns s_i times the negative gradient of the active variables.
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

    /// Returns the group of a variable; the sum over a group is fixed.
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

    /// Returns the gap that rounding may produce at the optimum. Sums of a k(x, x'), and their differences, are not
    /// more accurate.
    fn rounding(&self, v: &[f64], largest_kernel: f64) -> f64 {
        let total: f64 = self.alpha.iter().sum();
        16.0 * f64::EPSILON * (v.iter().fold(0.0, |largest: f64, v| largest.max(v.abs())) + total * largest_kernel)
    }

    /// Returns a'Q a.
    fn square(&self) -> f64 {
        let Program { point, sign, .. } = self.program;
        self.active.iter().map(|i| sign[*i] * self.alpha[*i] * self.f[self.place[point[*i]]]).sum()
    }

    /// Returns the working set: the variables that violate the conditions most, and some of the previous set.
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
                // The larger these values are, the larger the violation.
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

    /// Takes steps within the working set, and then updates the gradient of all variables. Returns the number of steps.
    fn improve(&mut self, v: &[f64], mut set: Vec<usize>, gap: f64, enough: f64) -> Result<usize> {
        let program = self.program;
        self.recent = set.clone();
        // Variables of one group must be consecutive.
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

    /// Returns the program of a working set. Its first `first` variables are one group.
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

    /// Excludes variables at a bound that no pair would move. Returns true if there were any.
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
        // Rows are shortened only if enough variables are excluded to pay for copying all rows.
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

    /// Recomputes f at all points, and restores the variables that violate their conditions. If the gap is at most
    /// `enough`, all variables are restored.
    fn widen(&mut self, enough: f64) -> Result<()> {
        self.complete();
        let before = std::mem::replace(&mut self.active, (0..self.program.point.len()).collect());
        let v = self.values();
        let extremes = self.extremes(&v);
        let gap = extremes.iter().map(|e| e.gap()).fold(0.0, f64::max);
        if gap <= enough {
            let all: Vec<usize> = (0..self.points.count()).collect();
            // Nothing more is to be done, so that rows need not be completed.
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

    /// Computes f at all points, from the multipliers for excluded points. Afterwards `place` is the identity.
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

/// Returns s_i a_i summed over the variables of each point, `[L]`.
pub(crate) fn beta(program: &Program, points: usize, alpha: &[f64]) -> Vec<f64> {
    let mut beta = vec![0.0; points];
    for (i, a) in alpha.iter().enumerate() {
        beta[program.point[i]] += program.sign[i] * a;
    }
    beta
}
