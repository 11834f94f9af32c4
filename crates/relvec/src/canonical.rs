//! Rows in one order whatever theirs was, equal ones merged: the same problem bit for bit.

use std::cmp::Ordering;

use ndarray::{Array2, ArrayView2, Axis};
use rayon::prelude::*;

/// Rows that one thread copies at a time.
const CHUNK: usize = 1024;

/// The user's rows in canonical order, merged.
pub(crate) struct Canonical {
    pub rows: Array2<f64>,
    /// As many for each row as it had.
    pub targets: Vec<f64>,
    pub weights: Vec<f64>,
    /// What else is given of each, if anything is.
    pub given: Option<Vec<f64>>,
    /// The dictionary: distinct inputs, each by the lowest user's row that has it, `[L]`.
    pub origin: Vec<usize>,
    /// The first of `rows` that has it, `[L]`.
    pub first: Vec<usize>,
    /// The place in the dictionary of each user's row, `[N]`.
    pub column_of: Vec<Option<usize>>,
    /// Rows that share their inputs with another that is left.
    pub shared: usize,
    pub merged: usize,
}

impl Canonical {
    /// Targets `y`: one for each row, or K by rows. Rows that differ in what is `given` of them are not equal.
    pub fn new(x: ArrayView2<f64>, y: &[f64], weights: &[f64], given: Option<&[f64]>) -> Canonical {
        let compare_given = |i: usize, j: usize| given.map_or(Ordering::Equal, |v| v[i].total_cmp(&v[j]));
        let k = y.len() / x.nrows().max(1);
        let targets_of = |i: usize| y[i * k..(i + 1) * k].iter().map(|v| plain(*v));
        let compare_targets = |i: usize, j: usize| {
            let differences = targets_of(i).zip(targets_of(j)).map(|(a, b)| a.total_cmp(&b));
            differences.into_iter().find(|o| o.is_ne()).unwrap_or(Ordering::Equal)
        };
        // The first feature that tells rows apart, as numbers that compare as it does, beside the rows' places:
        // hardly a comparison has to look up rows then.
        let first = (0..x.ncols()).find(|d| x.column(*d).iter().any(|v| plain(*v) != plain(x[[0, *d]])));
        let compare_rows = |i: usize, j: usize| {
            let pairs = x.row(i).into_iter().zip(x.row(j));
            let differences = pairs.map(|(a, b)| plain(*a).total_cmp(&plain(*b)));
            differences.skip(first.map_or(x.ncols(), |d| d + 1)).find(|o| o.is_ne()).unwrap_or(Ordering::Equal)
        };
        let key = |i: usize| first.map_or(0, |d| ascending(plain(x[[i, d]])));
        let mut order: Vec<(u64, usize)> = (0..x.nrows()).filter(|i| weights[*i] > 0.0).map(|i| (key(i), i)).collect();
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
        let (mut targets, mut merged_weights) = (Vec::new(), Vec::new());
        let (mut origin, mut first): (Vec<usize>, Vec<usize>) = (Vec::new(), Vec::new());
        let mut column_of = vec![None; x.nrows()];
        for (k, (key, i)) in order.iter().copied().enumerate() {
            let last = k.checked_sub(1).map(|k| order[k]);
            let same = last.filter(|(other, j)| *other == key && compare_rows(*j, i).is_eq());
            let same_input = same.is_some();
            if same.is_some_and(|(_, j)| compare_targets(j, i).is_eq() && compare_given(j, i).is_eq()) {
                *merged_weights.last_mut().expect("a row came before") += weights[i];
            } else {
                firsts.push(i);
                targets.extend(targets_of(i));
                merged_weights.push(weights[i]);
            }
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
            rows: take(x, &firsts),
            given: given.map(|v| firsts.iter().map(|i| v[*i]).collect()),
            targets,
            weights: merged_weights,
            origin,
            first,
            column_of,
        }
    }
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

/// Whole numbers in the order of `total_cmp`.
fn ascending(v: f64) -> u64 {
    let bits = v.to_bits();
    if bits >> 63 == 1 { !bits } else { bits | 1 << 63 }
}

/// -0 is 0.
pub(crate) fn plain(v: f64) -> f64 {
    v + 0.0
}

/// Variance of all entries taken together, by weight: what `gamma = "scale"` needs. It is 0 only where all entries are the
/// same: a variance below all numbers is the least of them, and one beyond them infinite.
pub(crate) fn all_variance(rows: &ArrayView2<f64>, weights: &[f64]) -> f64 {
    let share = 1.0 / (weights.iter().sum::<f64>() * rows.ncols() as f64);
    let sum = |f: &dyn Fn(f64) -> f64| -> f64 {
        rows.outer_iter().zip(weights).map(|(row, w)| w * share * row.iter().map(|v| f(*v)).sum::<f64>()).sum()
    };
    let mean = sum(&|v| v);
    if !mean.is_finite() {
        return f64::INFINITY;
    }
    // Relative to the largest entry first, so that squares stay in range.
    let largest = rows.iter().map(|v| (v - mean).abs()).fold(0.0, f64::max);
    match largest {
        0.0 => 0.0,
        _ => (largest * largest * sum(&|v| ((v - mean) / largest).powi(2))).max(f64::from_bits(1)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Few different values, of both zeros and signs, so that every rule for ties has its turn; behind a
    /// feature that is the same for all rows, and one that is almost.
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
}
