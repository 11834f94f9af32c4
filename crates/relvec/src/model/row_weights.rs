//! Weights of rows under a model with Student-t noise.

use ndarray::{ArrayView1, ArrayView2};

use super::Model;
use crate::error::Result;

/// Returns the weight <u_n> of each row under a model with Student-t noise, (M52), `[N]`. `targets` are `[N]` and the
/// rows `x` are `[N, D]`, both in original units.
pub(crate) fn row_weights(targets: ArrayView1<f64>, model: &Model, x: ArrayView2<f64>) -> Result<Vec<f64>> {
    let degrees = model.noise_degrees().unwrap_or(f64::INFINITY);
    let one = |d: &f64| (1.0 + 1.0 / degrees) / (1.0 + d / degrees);
    Ok(squared_distances(targets, model, x)?.iter().map(one).collect())
}

/// Returns the expected squared residual of each row in units of the squared scale of the noise, `[N]`. `targets` are
/// `[N]` and the rows `x` are `[N, D]`, both in original units.
pub(crate) fn squared_distances(targets: ArrayView1<f64>, model: &Model, x: ArrayView2<f64>) -> Result<Vec<f64>> {
    let prediction = model.predict(x)?;
    let one = |((t, m), v): ((&f64, &f64), &f64)| ((t - m).powi(2) + v) / prediction.noise_variance;
    Ok(targets.iter().zip(&prediction.mean).zip(&prediction.model_variance).map(one).collect())
}
