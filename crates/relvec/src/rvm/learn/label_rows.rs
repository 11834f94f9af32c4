//! The labels of rows of different inputs, as targets of a regression, (M80).

use ndarray::{Array2, ArrayView2, Axis};

use super::merged_rows::DistinctRows;
use crate::rvm::data::training_set::TrainingSet;

/// An observation: some weight of a class in a group.
#[derive(Debug, Clone, Copy)]
pub(super) struct Seen {
    pub group: usize,
    pub class: usize,
    /// n_gk, > 0.
    pub weight: f64,
}

/// The labels of rows of different inputs.
#[derive(Debug, Clone)]
pub(in crate::rvm) struct Labels {
    /// The groups; their targets are T, [n, C], their weights c.
    pub rows: DistinctRows,
    pub(super) seen: Vec<Seen>,
    /// e.
    unknown: f64,
    /// Log probability of the observations by the frequencies of the classes.
    pub null: f64,
}

impl Labels {
    /// Of rows `x`, [N, D], equal ones side by side, of classes `[N]` among `classes`, with weights > 0, `[N]`.
    pub fn new(x: ArrayView2<f64>, class: &[usize], classes: usize, weights: &[f64]) -> Labels {
        let t = Array2::from_shape_fn((class.len(), classes), |(n, k)| f64::from(u8::from(class[n] == k)));
        let rows = DistinctRows::new(x, t.view(), weights, &vec![1.0; class.len()]);
        let mut seen = vec![];
        for ((group, class), share) in rows.t.indexed_iter().filter(|(_, share)| **share > 0.0) {
            seen.push(Seen { group, class, weight: share * rows.weights[group] });
        }
        let mut frequencies = vec![0.0; classes];
        seen.iter().for_each(|seen| frequencies[seen.class] += seen.weight);
        let null = seen.iter().map(|seen| seen.weight * (frequencies[seen.class] / rows.count).ln()).sum();
        let unknown = 1.0 / (rows.count + 1.0);
        Labels { rows, seen, unknown, null }
    }

    /// Of some rows of a table of classes (ascending places).
    pub fn of(training: &TrainingSet, some: &[usize]) -> Labels {
        let x = training.rows.select(Axis(0), some);
        let class: Vec<usize> = some.iter().map(|n| training.targets[*n] as usize).collect();
        let weights: Vec<f64> = some.iter().map(|n| training.weights[*n]).collect();
        Labels::new(x.view(), &class, training.outputs + 1, &weights)
    }

    /// Returns a copy of the labels with other inputs, [n, D'].
    pub fn with_inputs(&self, x: Array2<f64>) -> Labels {
        Labels { rows: self.rows.with_inputs(x), ..self.clone() }
    }

    /// C.
    pub fn classes(&self) -> usize {
        self.rows.t.ncols()
    }

    /// Y of an observed class, at class k.
    pub(super) fn target(&self, observed: usize, k: usize) -> f64 {
        let own = if observed == k { 1.0 - self.unknown } else { 0.0 };
        own + self.unknown / self.classes() as f64
    }
}
