//! Rows in canonical order, with equal rows merged. The problem is the same bit for bit for any order of the user's
//! rows. The copies of the rows are distributed over folds. Subsets of rows are drawn at random.

use std::cmp::Ordering;

use ndarray::{Array2, ArrayView2, Axis};
use rand::SeedableRng;
use rand::seq::{SliceRandom, index};
use rand_pcg::Pcg64;
use rayon::prelude::*;

use crate::sparse::{SparseRow, SparseRows};

/// Number of rows that one thread copies at a time.
const CHUNK: usize = 1024;
/// Number of copies of one row that are dealt to the folds one by one. Every fold gets an equal share of any further
/// copies. If 32 copies are drawn at random, each of 5 folds has some in all but 0.4 % of the draws, so that an equal
/// share of more copies changes no fold's kind of rows. Half of this value would leave a fold without copies in 14 % of
/// the draws; twice as much doubles the memory.
const DEALT: f64 = 32.0;

/// The user's rows in canonical order, merged; `R` stores their features.
pub(crate) struct Canonical<R = Array2<f64>> {
    pub rows: R,
    /// Targets, the same number for each row.
    pub targets: Vec<f64>,
    pub weights: Vec<f64>,
    /// The user's rows that each merged row represents.
    pub copies: Copies,
    /// Further data of each row, if there are any.
    pub given: Option<Vec<f64>>,
    /// Dictionary of distinct inputs, `[L]`. Each is given by the lowest number of a user's row that has these inputs.
    pub origin: Vec<usize>,
    /// First of `rows` with the inputs of each dictionary entry, `[L]`.
    pub first: Vec<usize>,
    /// Index in the dictionary for each of the user's rows, `[N]`; `None` for a row of weight 0.
    pub column_of: Vec<Option<usize>>,
    /// Number of merged rows that share their inputs with an earlier merged row.
    pub shared: usize,
    pub merged: usize,
}

/// Rows with a lexicographic order of their features.
trait Ordered {
    fn compare(&self, i: usize, j: usize) -> Ordering;

    /// Returns a number that is ordered as the rows are, and equal for rows that it does not distinguish. Few
    /// comparisons then have to read rows.
    fn key(&self, i: usize) -> u64;
}

struct Dense<'a> {
    x: ArrayView2<'a, f64>,
    /// First feature whose values differ between rows.
    first: Option<usize>,
}

impl<'a> Dense<'a> {
    fn new(x: ArrayView2<'a, f64>) -> Dense<'a> {
        let first = (0..x.ncols()).find(|d| x.column(*d).iter().any(|v| plain(*v) != plain(x[[0, *d]])));
        Dense { x, first }
    }
}

impl Ordered for Dense<'_> {
    fn compare(&self, i: usize, j: usize) -> Ordering {
        let pairs = self.x.row(i).into_iter().zip(self.x.row(j));
        let differences = pairs.map(|(a, b)| plain(*a).total_cmp(&plain(*b)));
        differences.skip(self.first.map_or(self.x.ncols(), |d| d + 1)).find(|o| o.is_ne()).unwrap_or(Ordering::Equal)
    }

    fn key(&self, i: usize) -> u64 {
        self.first.map_or(0, |d| ascending(plain(self.x[[i, d]])))
    }
}

impl Ordered for SparseRows {
    fn compare(&self, i: usize, j: usize) -> Ordering {
        let (a, b): (SparseRow, SparseRow) = (self.row(i), self.row(j));
        // Finds the first column in which the rows differ. One of them may have a zero there, and its next entry
        // further on.
        let equal = a.iter().zip(b.iter()).take_while(|(a, b)| a == b).count();
        let at = |row: SparseRow| row.columns.get(equal).map_or((usize::MAX, 0.0), |c| (*c as usize, row.values[equal]));
        let ((p, v), (q, w)) = (at(a), at(b));
        let value = |column: usize, value: f64| if column == p.min(q) { value } else { 0.0 };
        value(p, v).total_cmp(&value(q, w))
    }

    fn key(&self, _: usize) -> u64 {
        0
    }
}

impl Canonical {
    /// Brings rows `x`, `[N, D]`, into canonical order. The targets `y` are one for each row, or `[K, N]` row by row.
    /// Rows that differ in the data `given` for them are not equal.
    pub fn new(x: ArrayView2<f64>, y: &[f64], weights: &[f64], given: Option<&[f64]>) -> Canonical {
        Canonical::of(&Dense::new(x), x.nrows(), y, weights, given, |rows| take(x, rows))
    }
}

impl Canonical<SparseRows> {
    /// Brings sparse rows into canonical order. There are one or K targets for each row, stored row by row.
    pub fn sparse(x: &SparseRows, y: &[f64], weights: &[f64]) -> Canonical<SparseRows> {
        Canonical::of(x, x.nrows(), y, weights, None, |rows| x.select(rows))
    }
}

impl<R> Canonical<R> {
    /// Returns this table with its rows stored in another form.
    pub fn map_rows<S>(self, change: impl FnOnce(R) -> S) -> Canonical<S> {
        let Canonical { rows, targets, weights, copies, given, origin, first, column_of, shared, merged } = self;
        Canonical { rows: change(rows), targets, weights, copies, given, origin, first, column_of, shared, merged }
    }

    fn of(
        x: &(impl Ordered + Sync),
        n: usize,
        y: &[f64],
        weights: &[f64],
        given: Option<&[f64]>,
        take: impl FnOnce(&[usize]) -> R,
    ) -> Canonical<R> {
        let compare_given = |i: usize, j: usize| given.map_or(Ordering::Equal, |v| v[i].total_cmp(&v[j]));
        let k = y.len() / n.max(1);
        let targets_of = |i: usize| y[i * k..(i + 1) * k].iter().map(|v| plain(*v));
        let compare_targets = |i: usize, j: usize| {
            let differences = targets_of(i).zip(targets_of(j)).map(|(a, b)| a.total_cmp(&b));
            differences.into_iter().find(|o| o.is_ne()).unwrap_or(Ordering::Equal)
        };
        let compare_rows = |i: usize, j: usize| x.compare(i, j);
        let mut order: Vec<(u64, usize)> = (0..n).filter(|i| weights[*i] > 0.0).map(|i| (x.key(i), i)).collect();
        order.par_sort_unstable_by(|(a, i), (b, j)| {
            a.cmp(b).then_with(|| {
                compare_rows(*i, *j)
                    .then_with(|| compare_targets(*i, *j))
                    .then_with(|| compare_given(*i, *j))
                    .then(weights[*i].total_cmp(&weights[*j]))
                    .then(i.cmp(j))
            })
        });
        let mut firsts: Vec<usize> = Vec::new();
        let (mut targets, mut copies) = (Vec::new(), Copies::default());
        let (mut origin, mut first): (Vec<usize>, Vec<usize>) = (Vec::new(), Vec::new());
        let mut column_of = vec![None; n];
        for (k, (key, i)) in order.iter().copied().enumerate() {
            let last = k.checked_sub(1).map(|k| order[k]);
            let same = last.filter(|(other, j)| *other == key && compare_rows(*j, i).is_eq());
            let same_input = same.is_some();
            if !same.is_some_and(|(_, j)| compare_targets(j, i).is_eq() && compare_given(j, i).is_eq()) {
                firsts.push(i);
                targets.extend(targets_of(i));
                copies.add_row();
            }
            copies.add(weights[i]);
            if !same_input {
                origin.push(i);
                first.push(firsts.len() - 1);
            }
            let column = origin.len() - 1;
            origin[column] = origin[column].min(i);
            column_of[i] = Some(column);
        }
        Canonical {
            merged: order.len() - firsts.len(),
            shared: firsts.len() - origin.len(),
            rows: take(&firsts),
            given: given.map(|v| firsts.iter().map(|i| v[*i]).collect()),
            targets,
            weights: (0..copies.n_rows()).map(|k| copies.weight(k)).collect(),
            copies,
            origin,
            first,
            column_of,
        }
    }
}

/// The user's rows that each merged row represents. A row whose weight is a whole number w counts as w copies of weight
/// 1, so that a weight and repeated rows are equivalent. A row of any other weight is one copy, which is never divided
/// between folds.
#[derive(Debug, Clone, Default)]
pub(crate) struct Copies {
    /// Number of the user's rows of each merged row, whatever their weights.
    users: Vec<usize>,
    /// Number of copies of weight 1 of each merged row.
    single: Vec<f64>,
    /// End of the other copies of each merged row in `others`.
    end: Vec<usize>,
    /// Weights of the other copies, ascending within a row.
    others: Vec<f64>,
}

impl Copies {
    fn add_row(&mut self) {
        self.users.push(0);
        self.single.push(0.0);
        self.end.push(self.others.len());
    }

    /// Adds one of the user's rows to the last merged row. The weights must ascend.
    fn add(&mut self, weight: f64) {
        let row = self.single.len() - 1;
        self.users[row] += 1;
        if weight.fract() == 0.0 {
            self.single[row] += weight;
        } else {
            self.others.push(weight);
            self.end[row] = self.others.len();
        }
    }

    pub fn n_rows(&self) -> usize {
        self.single.len()
    }

    /// Returns the number of the user's rows of each merged row, `[N]`.
    pub fn users(&self) -> &[usize] {
        &self.users
    }

    fn others(&self, row: usize) -> &[f64] {
        &self.others[row.checked_sub(1).map_or(0, |before| self.end[before])..self.end[row]]
    }

    /// Returns the weight of all copies of a row.
    fn weight(&self, row: usize) -> f64 {
        self.single[row] + self.others(row).iter().sum::<f64>()
    }

    /// Returns the number of copies of a row.
    pub fn count(&self, row: usize) -> f64 {
        self.single[row] + self.others(row).len() as f64
    }

    /// Returns the copies of the listed rows, in that order.
    pub fn select(&self, rows: &[usize]) -> Copies {
        let mut out = Copies::default();
        for row in rows {
            out.add_row();
            *out.users.last_mut().expect("a row was added") = self.users[*row];
            *out.single.last_mut().expect("a row was added") = self.single[*row];
            out.others.extend(self.others(*row));
            *out.end.last_mut().expect("a row was added") = out.others.len();
        }
        out
    }

    /// Distributes the copies of `rows` over `folds` folds. `target` returns the target of the row at an index of
    /// `rows`. Classes are `stratified`: the numbers of copies of a class in two folds, and of all copies, differ by at
    /// most 1. For other targets, each fold gets one of every `folds` copies that are neighbours in the order of the
    /// targets.
    ///
    /// The result depends only on the merged rows, their copies and the seed. It depends neither on the order of the
    /// user's rows nor on whether they are given as copies or as whole weights.
    pub fn deal(&self, rows: &[usize], target: impl Fn(usize) -> f64, stratified: bool, folds: usize, seed: u64) -> Vec<Fold> {
        let mut deck: Vec<(usize, f64)> = vec![];
        let mut shares = vec![0.0; rows.len()];
        for (place, row) in rows.iter().enumerate() {
            let single = self.single[*row];
            // Each fold gets this number without drawing.
            shares[place] = ((single - DEALT).max(0.0) / folds as f64).floor();
            let dealt = single - shares[place] * folds as f64;
            deck.extend((0..dealt as usize).map(|_| (place, 1.0)));
            deck.extend(self.others(*row).iter().map(|weight| (place, *weight)));
        }
        let mut random = Pcg64::seed_from_u64(seed);
        deck.shuffle(&mut random);
        deck.sort_by(|(i, _), (j, _)| target(*i).total_cmp(&target(*j)));
        let mut hands: Vec<Vec<(usize, f64)>> =
            (0..folds).map(|_| (0..rows.len()).filter(|k| shares[*k] > 0.0).map(|k| (k, shares[k])).collect()).collect();
        let mut turn: Vec<usize> = (0..folds).collect();
        for (k, copy) in deck.into_iter().enumerate() {
            // Copies of one class are in random order already. A new order at the boundary of two classes would
            // distribute them unevenly.
            if k % folds == 0 && !stratified {
                turn.shuffle(&mut random);
            }
            hands[turn[k % folds]].push(copy);
        }
        hands.into_iter().map(merged).collect()
    }
}

/// Rows of a fold, ascending, with the total weight of their copies in it.
pub(crate) type Fold = Vec<(usize, f64)>;

/// Returns the rows of all folds except one, with the total weights of their copies there.
pub(crate) fn all_but(folds: &[Fold], out: usize) -> Fold {
    let others = folds.iter().enumerate().filter(|(k, _)| *k != out);
    merged(others.flat_map(|(_, fold)| fold.iter().copied()).collect())
}

/// Returns each row once, ascending, with the sum of its weights.
fn merged(mut copies: Vec<(usize, f64)>) -> Fold {
    copies.sort_unstable_by(|(i, v), (j, w)| i.cmp(j).then(v.total_cmp(w)));
    copies.dedup_by(|next, kept| {
        let same = next.0 == kept.0;
        if same {
            kept.1 += next.1;
        }
        same
    });
    copies
}

fn take(x: ArrayView2<f64>, rows: &[usize]) -> Array2<f64> {
    let mut out = Array2::zeros((rows.len(), x.ncols()));
    out.axis_chunks_iter_mut(Axis(0), CHUNK).into_par_iter().zip(rows.par_chunks(CHUNK)).for_each(|(mut out, rows)| {
        for (mut to, i) in out.outer_iter_mut().zip(rows) {
            to.iter_mut().zip(x.row(*i)).for_each(|(to, v)| *to = plain(*v));
        }
    });
    out
}

/// Returns integers in the order of `total_cmp`.
fn ascending(v: f64) -> u64 {
    let bits = v.to_bits();
    if bits >> 63 == 1 { !bits } else { bits | 1 << 63 }
}

/// Returns `size` of the numbers below `count`, drawn uniformly without replacement, ascending.
pub(crate) fn random_subset(count: usize, size: usize, seed: u64) -> Vec<usize> {
    let mut random = Pcg64::seed_from_u64(seed);
    let mut chosen = index::sample(&mut random, count, size.min(count)).into_vec();
    chosen.sort_unstable();
    chosen
}

/// Returns the number with -0 replaced by 0.
pub(crate) fn plain(v: f64) -> f64 {
    v + 0.0
}

/// Returns the weighted variance of all entries of `rows`, `[N, D]`, together, which `gamma = "scale"` needs. It is 0
/// only if all entries are equal. A variance that underflows becomes the smallest number, and one that overflows
/// infinite.
pub(crate) fn all_variance(rows: &ArrayView2<f64>, weights: &[f64]) -> f64 {
    let share = 1.0 / (weights.iter().sum::<f64>() * rows.ncols() as f64);
    let sum = |f: &dyn Fn(f64) -> f64| -> f64 {
        rows.outer_iter().zip(weights).map(|(row, w)| w * share * row.iter().map(|v| f(*v)).sum::<f64>()).sum()
    };
    let mean = sum(&|v| v);
    if !mean.is_finite() {
        return f64::INFINITY;
    }
    // Entries are taken relative to the largest one, so that squares stay in range.
    let largest = rows.iter().map(|v| (v - mean).abs()).fold(0.0, f64::max);
    match largest {
        0.0 => 0.0,
        _ => (largest * largest * sum(&|v| ((v - mean) / largest).powi(2))).max(f64::from_bits(1)),
    }
}

/// Returns the weighted variance of all entries of sparse rows together, zeros included.
pub(crate) fn sparse_variance(rows: &SparseRows, weights: &[f64]) -> f64 {
    let share = 1.0 / (weights.iter().sum::<f64>() * rows.ncols() as f64);
    let sum = |f: &dyn Fn(f64) -> f64| -> f64 {
        let of_row = |row: SparseRow| {
            let zeros = rows.ncols() - row.columns.len();
            row.values.iter().map(|v| f(*v)).sum::<f64>() + if zeros > 0 { zeros as f64 * f(0.0) } else { 0.0 }
        };
        rows.iter().zip(weights).map(|(row, w)| w * share * of_row(row)).sum()
    };
    let mean = sum(&|v| v);
    if !mean.is_finite() {
        return f64::INFINITY;
    }
    let has_zeros = rows.columns().len() < rows.nrows() * rows.ncols();
    let largest = rows.values().iter().copied().chain(has_zeros.then_some(0.0)).map(|v| (v - mean).abs()).fold(0.0, f64::max);
    match largest {
        0.0 => 0.0,
        _ => (largest * largest * sum(&|v| ((v - mean) / largest).powi(2))).max(f64::from_bits(1)),
    }
}

#[cfg(test)]
mod tests {
    use rand::RngExt;

    use super::*;

    /// Few different values, with both zeros and both signs, exercise every rule for ties. One feature is the same for
    /// all rows, and another almost.
    #[test]
    fn the_order_is_that_of_features_target_weight_and_place() {
        let mut state = 7u64;
        let mut draw = |values: &[f64]| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            values[(state >> 33) as usize % values.len()]
        };
        let n = 3000;
        let x = Array2::from_shape_fn((n, 4), |(_, d)| match d {
            0 => 5.0,
            1 => draw(&[-1e300, -0.0, 0.0, 1e-310, 2.0]),
            _ => draw(&[-3.0, -0.0, 0.0, 0.5]),
        });
        let y: Vec<f64> = (0..n).map(|_| draw(&[-1.0, 0.0, -0.0, 1.0])).collect();
        let weights: Vec<f64> = (0..n).map(|_| draw(&[0.0, 1.0, 2.0])).collect();
        let found = Canonical::new(x.view(), &y, &weights, None);

        let row = |i: usize| x.row(i).iter().chain([&y[i]]).map(|v| plain(*v)).collect::<Vec<f64>>();
        let mut order: Vec<usize> = (0..n).filter(|i| weights[*i] > 0.0).collect();
        order.sort_by(|i, j| row(*i).partial_cmp(&row(*j)).unwrap().then(weights[*i].total_cmp(&weights[*j])));
        let mut groups: Vec<(Vec<f64>, f64)> = vec![];
        for i in &order {
            match groups.last_mut() {
                Some((last, weight)) if *last == row(*i) => *weight += weights[*i],
                _ => groups.push((row(*i), weights[*i])),
            }
        }
        let all: Vec<(Vec<f64>, f64)> = (0..found.targets.len())
            .map(|k| (found.rows.row(k).iter().copied().chain([found.targets[k]]).collect(), found.weights[k]))
            .collect();
        assert_eq!(all, groups);
        assert_eq!(found.merged, order.len() - groups.len());
        for i in 0..n {
            let origin = found.column_of[i].map(|c| found.origin[c]);
            let same = (0..n).find(|j| weights[*j] > 0.0 && row(*j)[..4] == row(i)[..4]);
            assert_eq!(origin, same.filter(|_| weights[i] > 0.0), "row {i}");
        }
        assert!(found.origin.len() + found.shared == found.targets.len());
    }

    /// In random tables of repeated rows and weights, each copy is in one fold, and folds of classes are as even as
    /// possible. Whole weights are distributed as the copies that they represent.
    #[test]
    fn folds_hold_each_copy_once_and_are_even() {
        let mut random = Pcg64::seed_from_u64(1);
        for (trial, folds) in (0..60).zip([2, 3, 5, 7].into_iter().cycle()) {
            let weight = |random: &mut Pcg64| [1.0, 1.0, 2.0, 3.0, 90.0, 0.5, 2.5][random.random_range(0..[1, 5, 7][trial % 3])];
            let n = random.random_range(4 * folds..100);
            let x = Array2::from_shape_simple_fn((n, 2), || f64::from(random.random_range(0..3)));
            let y: Vec<f64> = (0..n).map(|i| (i % 3) as f64).collect();
            let weights: Vec<f64> = (0..n).map(|_| weight(&mut random)).collect();
            let found = Canonical::new(x.view(), &y, &weights, None);
            let rows: Vec<usize> = (0..found.targets.len()).collect();
            for stratified in [true, false] {
                let parts = found.copies.deal(&rows, |i| found.targets[i], stratified, folds, 7);
                let mut sums = vec![0.0; rows.len()];
                parts.iter().flatten().for_each(|(i, w)| sums[*i] += w);
                assert!(sums.iter().zip(&found.weights).all(|(sum, w)| (sum - w).abs() < 1e-12 * w), "trial {trial}");
                for (k, fold) in parts.iter().enumerate() {
                    let others = all_but(&parts, k);
                    let mut both = vec![0.0; rows.len()];
                    others.iter().chain(fold).for_each(|(i, w)| both[*i] += w);
                    assert!(both.iter().zip(&found.weights).all(|(sum, w)| (sum - w).abs() < 1e-12 * w), "trial {trial}");
                    assert!(others.is_sorted_by(|a, b| a.0 < b.0) && fold.is_sorted_by(|a, b| a.0 < b.0));
                }
                let even = |keep: &dyn Fn(f64) -> bool| {
                    let own = parts.iter().map(|fold| fold.iter().filter(|(i, _)| keep(found.targets[*i])).map(|(_, w)| w).sum());
                    let (least, most) = own.fold((f64::INFINITY, 0.0f64), |(a, b), v: f64| (a.min(v), b.max(v)));
                    assert!(most - least <= 1.0, "trial {trial}, {stratified}: {least} to {most}");
                };
                if weights.iter().all(|w| w.fract() == 0.0) {
                    even(&|_| true);
                    (0..if stratified { 3 } else { 0 }).for_each(|class| even(&|t| t == f64::from(class)));
                    // The same rows are given one by one, in another order.
                    let mut single: Vec<usize> = (0..n).flat_map(|i| vec![i; weights[i] as usize]).collect();
                    single.shuffle(&mut random);
                    let (x, y) = (x.select(Axis(0), &single), single.iter().map(|i| y[*i]).collect::<Vec<f64>>());
                    let again = Canonical::new(x.view(), &y, &vec![1.0; y.len()], None);
                    assert_eq!(again.copies.deal(&rows, |i| again.targets[i], stratified, folds, 7), parts);
                }
            }
        }
    }
}
