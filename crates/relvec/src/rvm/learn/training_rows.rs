//! Rows of a training set as the queries and processes of lower layers take them.

use ndarray::{Array2, Axis, concatenate};

use crate::design::Columns;
use crate::process::label_rows::Labels;
use crate::process::pivoted_cholesky::Points;
use crate::query::RowUnits;
use crate::query::merged_rows::DistinctRows;
use crate::rvm::data::noise::NoisePrecision;
use crate::rvm::data::training_set::TrainingSet;

/// Largest training set for which a kernel and its process are learned from a dense process alone. Larger ones continue
/// with more rows than a dense process can use.
pub(in crate::rvm) const MOST_ROWS: usize = 3000;

/// Merges the rows `rows` (ascending) of a training set with real targets, in internal units.
pub(in crate::rvm) fn distinct_rows(training: &TrainingSet, rows: &[usize]) -> DistinctRows {
    let (x, outputs) = (training.rows.select(Axis(0), rows), training.outputs);
    let t = Array2::from_shape_fn((rows.len(), outputs), |(n, k)| training.targets[rows[n] * outputs + k]);
    let factors: Vec<f64> = rows.iter().map(|n| training.factors.as_ref().map_or(1.0, |f| f.factor[*n])).collect();
    let sample_weights: Vec<f64> = rows.iter().zip(&factors).map(|(n, f)| training.weights[*n] / f).collect();
    DistinctRows::new(x.view(), t.view(), &sample_weights, &factors)
}

/// Returns the number of the user's rows at each different input of the rows `rows` (ascending), for
/// [`DistinctRows::without_copies`]. The list is empty if the numbers are unknown.
pub(in crate::rvm) fn users_rows(training: &TrainingSet, rows: &[usize]) -> Vec<usize> {
    let users = training.copies.users();
    if users.is_empty() {
        return vec![];
    }
    let groups = rows.chunk_by(|i, j| training.rows.row(*i) == training.rows.row(*j));
    groups.map(|group| group.iter().map(|n| users[*n]).sum()).collect()
}

/// Returns the units of a training set; `classes` is the number K of classes, `None` for real targets.
pub(in crate::rvm) fn row_units(training: &TrainingSet, classes: Option<usize>) -> RowUnits {
    let units = if classes.is_some() { &[][..] } else { &training.units };
    let typical = match training.noise.first() {
        Some(NoisePrecision::Fixed(beta)) if training.known_noise => Some(training.units[0].scale.powi(2) / beta),
        _ => None,
    };
    RowUnits {
        scaling: None,
        classes,
        scale: units.iter().map(|units| units.scale).collect(),
        mean: units.iter().map(|units| if training.rvm.bias { units.mean } else { 0.0 }).collect(),
        typical_noise: typical,
    }
}

/// Returns the labels of the rows `rows` (ascending) of a training set.
pub(in crate::rvm) fn labels_of(training: &TrainingSet, rows: &[usize]) -> Labels {
    let x = training.rows.select(Axis(0), rows);
    let class: Vec<usize> = rows.iter().map(|n| training.targets[*n] as usize).collect();
    let weights: Vec<f64> = rows.iter().map(|n| training.weights[*n]).collect();
    Labels::new(x.view(), &class, training.outputs + 1, &weights)
}

/// Returns the points of a factorisation for a training set, of which `rows` are all rows.
pub(in crate::rvm) fn points_of(training: &TrainingSet, rows: &DistinctRows) -> Points {
    let all: Vec<usize> = (0..training.origin.len()).collect();
    match (training.rows_of(&all), training.columns(&all).1) {
        (None, Columns::Kernel { centres, .. }) => Points { x: concatenate![Axis(0), rows.x, centres], first: rows.len() },
        _ => {
            assert_eq!(all.len(), rows.len(), "each different input is a candidate");
            Points { x: rows.x.clone(), first: 0 }
        }
    }
}
