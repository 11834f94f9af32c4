//! Class labels of rows with different inputs, as targets of a regression, (M80).

use ndarray::{Array2, ArrayView2};

use crate::query::merged_rows::DistinctRows;

/// An observation: the weight of one class in one group.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Observation {
    pub group: usize,
    pub class: usize,
    /// Weight n_gk, > 0.
    pub weight: f64,
}

/// Labels of groups of rows with equal inputs.
#[derive(Debug, Clone)]
pub(crate) struct Labels {
    /// The groups. Their targets are T, [n, C], and their weights are c.
    pub rows: DistinctRows,
    pub(crate) observations: Vec<Observation>,
    /// e.
    unknown: f64,
    /// Log probability of the observations under the class frequencies.
    pub null: f64,
}

impl Labels {
    /// Returns the labels of rows `x`, [N, D], of which equal ones are adjacent. `class`, `[N]`, contains the class of
    /// each row, and `weights`, `[N]`, are positive.
    pub fn new(x: ArrayView2<f64>, class: &[usize], classes: usize, weights: &[f64]) -> Labels {
        let t = Array2::from_shape_fn((class.len(), classes), |(n, k)| f64::from(u8::from(class[n] == k)));
        let rows = DistinctRows::new(x, t.view(), weights, &vec![1.0; class.len()]);
        let mut observations = vec![];
        for ((group, class), share) in rows.t.indexed_iter().filter(|(_, share)| **share > 0.0) {
            observations.push(Observation { group, class, weight: share * rows.weights[group] });
        }
        let mut frequencies = vec![0.0; classes];
        observations.iter().for_each(|observation| frequencies[observation.class] += observation.weight);
        let null =
            observations.iter().map(|observation| observation.weight * (frequencies[observation.class] / rows.count).ln()).sum();
        let unknown = 1.0 / (rows.count + 1.0);
        Labels { rows, observations, unknown, null }
    }

    /// Returns a copy of the labels with other inputs, [n, D'].
    pub fn with_inputs(&self, x: Array2<f64>) -> Labels {
        Labels { rows: self.rows.with_inputs(x), ..self.clone() }
    }

    /// Returns the number C of classes.
    pub fn classes(&self) -> usize {
        self.rows.t.ncols()
    }

    /// Returns the entry of class `k` in the target Y of an observed class.
    pub(super) fn target(&self, observed: usize, k: usize) -> f64 {
        let own = if observed == k { 1.0 - self.unknown } else { 0.0 };
        own + self.unknown / self.classes() as f64
    }
}
