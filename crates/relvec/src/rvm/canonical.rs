//! Rows in one order whatever theirs was, equal ones merged: the same problem bit for bit.

use std::cmp::Ordering;

use ndarray::{Array2, ArrayView2, Axis};

/// The user's rows in canonical order, merged.
pub(crate) struct Canonical {
    pub rows: Array2<f64>,
    pub targets: Vec<f64>,
    pub weights: Vec<f64>,
    /// Distinct inputs, `[L, D]`, and the lowest user's row of each.
    pub inputs: Array2<f64>,
    pub origin: Vec<usize>,
    pub column_of: Vec<Option<usize>>,
    pub merged: usize,
}

impl Canonical {
    /// `given`: the rows are a design matrix, and there are no inputs to tell apart.
    pub fn new(x: ArrayView2<f64>, y: &[f64], weights: &[f64], given: bool) -> Canonical {
        let compare_rows = |i: usize, j: usize| {
            x.row(i)
                .iter()
                .zip(x.row(j))
                .map(|(a, b)| plain(*a).total_cmp(&plain(*b)))
                .find(|o| o.is_ne())
                .unwrap_or(Ordering::Equal)
        };
        let mut order: Vec<usize> = (0..x.nrows()).filter(|i| weights[*i] > 0.0).collect();
        order.sort_by(|i, j| {
            compare_rows(*i, *j)
                .then(plain(y[*i]).total_cmp(&plain(y[*j])))
                .then(weights[*i].total_cmp(&weights[*j]))
                .then(i.cmp(j))
        });
        let mut firsts: Vec<usize> = Vec::new();
        let (mut targets, mut merged_weights) = (Vec::new(), Vec::new());
        let (mut inputs, mut origin): (Vec<usize>, Vec<usize>) = (Vec::new(), Vec::new());
        let mut column_of = vec![None; x.nrows()];
        for (k, i) in order.iter().copied().enumerate() {
            let same_input = k > 0 && compare_rows(order[k - 1], i).is_eq();
            if same_input && plain(y[order[k - 1]]) == plain(y[i]) {
                *merged_weights.last_mut().expect("a row came before") += weights[i];
            } else {
                firsts.push(i);
                targets.push(plain(y[i]));
                merged_weights.push(weights[i]);
            }
            if !same_input {
                inputs.push(i);
                origin.push(i);
            }
            let column = origin.len() - 1;
            origin[column] = origin[column].min(i);
            column_of[i] = Some(column);
        }
        let take = |list: &[usize]| x.select(Axis(0), list).mapv_into(plain);
        Canonical {
            merged: order.len() - firsts.len(),
            rows: take(&firsts),
            inputs: if given { Array2::zeros((0, 0)) } else { take(&inputs) },
            targets,
            weights: merged_weights,
            origin,
            column_of,
        }
    }
}

/// -0 is 0.
fn plain(v: f64) -> f64 {
    v + 0.0
}
