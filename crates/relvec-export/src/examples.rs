//! Ten rows with relvec's predictions, which every export contains as a self-test.

use ndarray::{Array1, Array2, Axis};
use relvec_predict::{FittedBasis, Likelihood, Model, Moderation};

use crate::error::Result;

/// Number of rows of a self-test.
pub(crate) const ROWS: usize = 10;

/// Rows in original units, [N, D], with their predictions.
pub(crate) struct Examples {
    pub rows: Array2<f64>,
    pub expected: Expected,
}

/// Predictions for N rows.
pub(crate) enum Expected {
    /// Means and standard deviations of values or counts, [N, K] each. Support vector machines have only means.
    Values { mean: Array2<f64>, std: Option<Array2<f64>> },
    /// Class numbers, `[N]`, probabilities, [N, K], and for a support vector machine decision values, [N, C].
    Classes { label: Vec<usize>, probabilities: Option<Array2<f64>>, decision: Option<Array2<f64>> },
}

impl Examples {
    pub fn new(model: &Model) -> Result<Examples> {
        let rows = between_vectors(model, ROWS);
        let expected = expected(model, &rows)?;
        Ok(Examples { rows, expected })
    }
}

/// Returns points on the lines between neighbouring centres, [count, D], in original units.
pub(crate) fn between_vectors(model: &Model, count: usize) -> Array2<f64> {
    let d = model.n_features;
    let centres = match &model.expansion.basis {
        FittedBasis::Kernel { centres, .. } if centres.nrows() > 0 => centres.clone(),
        // For given columns only their number is known.
        _ => Array2::from_shape_fn((count, d), |(i, j)| ((3 * i + 5 * j) % 7) as f64 / 4.0 - 0.5),
    };
    let m = centres.nrows();
    let mut out = Array2::zeros((count, d));
    for (i, mut row) in out.axis_iter_mut(Axis(0)).enumerate() {
        let (from, to) = (centres.row(i * m / count), centres.row((i * m / count + 1) % m));
        let share = (i % 4) as f64 / 4.0;
        row.assign(&(&from * (1.0 - share) + &to * share));
        if let Some(scaling) = &model.scaling {
            row *= &Array1::from(scaling.scale.clone());
            row += &Array1::from(scaling.mean.clone());
        }
    }
    out
}

/// Returns the predictions of relvec at `rows`, [N, D].
pub(crate) fn expected(model: &Model, rows: &Array2<f64>) -> Result<Expected> {
    let x = rows.view();
    if let Some(margins) = &model.margins {
        let decision = model.decision_function(x)?;
        if margins.classes.is_none() {
            return Ok(Expected::Values { mean: decision, std: None });
        }
        let known = !margins.sigmoids.is_empty();
        let probabilities = known.then(|| model.predict_probability(x, Moderation::Posterior)).transpose()?;
        return Ok(Expected::Classes { label: model.vote(&decision)?, probabilities, decision: Some(decision) });
    }
    if model.n_classes().is_some() {
        let probabilities = Some(model.predict_probability(x, Moderation::Posterior)?);
        return Ok(Expected::Classes { label: model.predict_class(x)?, probabilities, decision: None });
    }
    let outputs = model.predict_outputs(x)?;
    let (mut mean, mut std) = (Array2::zeros((x.nrows(), outputs.len())), Array2::zeros((x.nrows(), outputs.len())));
    for (k, one) in outputs.iter().enumerate() {
        let counts = model.is_of_counts().then(|| one.counts(None)).transpose()?;
        mean.column_mut(k).assign(counts.as_ref().map_or(&one.mean, |counts| &counts.mean));
        let heavy = matches!(model.likelihood, Some(Likelihood::StudentT(_)));
        let own = || if heavy { one.deviation() } else { one.std() };
        std.column_mut(k).assign(&counts.as_ref().map_or_else(own, |counts| counts.std()));
    }
    Ok(Expected::Values { mean, std: Some(std) })
}
