//! Rows in one order whatever theirs was, equal ones merged: the same problem bit for bit.

use std::cmp::Ordering;

use ndarray::{Array2, ArrayView2, Axis};

/// The user's rows in canonical order, merged.
pub(crate) struct Canonical {
    pub rows: Array2<f64>,
    pub targets: Vec<f64>,
    pub weights: Vec<f64>,
    /// The dictionary: distinct inputs, each by the lowest user's row that has it, `[L]`.
    pub origin: Vec<usize>,
    /// The place in the dictionary of each user's row, `[N]`.
    pub column_of: Vec<Option<usize>>,
    /// Rows that share their inputs with another that is left.
    pub shared: usize,
    pub merged: usize,
}

impl Canonical {
    pub fn new(x: ArrayView2<f64>, y: &[f64], weights: &[f64]) -> Canonical {
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
        let mut origin: Vec<usize> = Vec::new();
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
                origin.push(i);
            }
            let column = origin.len() - 1;
            origin[column] = origin[column].min(i);
            column_of[i] = Some(column);
        }
        Canonical {
            merged: order.len() - firsts.len(),
            shared: firsts.len() - origin.len(),
            rows: take(x, &firsts),
            targets,
            weights: merged_weights,
            origin,
            column_of,
        }
    }

    /// Keeps only these places of the dictionary, ascending.
    pub fn thin(&mut self, kept: &[usize]) {
        let mut place = vec![None; self.origin.len()];
        kept.iter().enumerate().for_each(|(new, old)| place[*old] = Some(new));
        self.origin = kept.iter().map(|k| self.origin[*k]).collect();
        self.column_of.iter_mut().for_each(|c| *c = c.and_then(|c| place[c]));
    }

    /// The inputs of the dictionary, [L, D], out of the user's rows.
    pub fn inputs(&self, x: ArrayView2<f64>) -> Array2<f64> {
        take(x, &self.origin)
    }
}

fn take(x: ArrayView2<f64>, rows: &[usize]) -> Array2<f64> {
    x.select(Axis(0), rows).mapv_into(plain)
}

/// -0 is 0.
fn plain(v: f64) -> f64 {
    v + 0.0
}
