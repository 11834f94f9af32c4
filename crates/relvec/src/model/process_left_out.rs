//! Training rows that are left out one at a time under a process prior, at fixed amplitude and noise, (M60).
//!
//! At a row the function is f = g + e: the part that the centres span, and the residual of the prior, whose variance is
//! d (times the amplitude). Rows of equal inputs share e. A row i of weight c_i and noise variance s_i has the
//! precision b_i = c_i / s_i. The mean of the rows of one input has the noise 1 / b, b = sum b_i, and the variance
//! Lambda = d + 1 / b about g, (M72).
//!
//! Without all of these rows, g has the variance v0 = v / (1 - v / Lambda) and the mean m0 = m - v0 (mean target - m) /
//! Lambda. The posterior of f then follows from the rows of that input other than i.

use std::collections::BTreeMap;

use ndarray::{Array1, Array2, ArrayView2, Axis};
use rayon::prelude::*;

use super::{Model, Prediction};
use crate::canonical::plain;
use crate::error::Result;

/// Largest share of the precision at a row that comes from the row itself. The remaining precision must be positive.
pub(super) const MOST_OWN: f64 = 1.0 - 1e-9;

/// Returns means and variances of the function at each of the rows `x`, [N, D], without that row: `[N]` each. `found`
/// contains the predictions with all rows, `t` their targets, and `precisions` the b_i, `[N]`. Rows of equal inputs must be
/// given together.
pub(super) fn process_left_out(
    model: &Model,
    x: ArrayView2<f64>,
    found: &Prediction,
    t: &[f64],
    precisions: &[f64],
) -> Result<(Array1<f64>, Array1<f64>)> {
    let residuals = residual_variances(model, x)?;
    let factor = model.variance_factor();
    let mut groups: BTreeMap<Vec<u64>, Vec<usize>> = BTreeMap::new();
    for (n, row) in x.outer_iter().enumerate() {
        groups.entry(row.iter().map(|v| plain(*v).to_bits()).collect()).or_default().push(n);
    }
    let (mut means, mut variances) = (found.mean.clone(), Array1::zeros(t.len()));
    for rows in groups.values() {
        let (mean, residual) = (found.mean[rows[0]], residuals[rows[0]]);
        let spanned = (found.model_variance[rows[0]] / factor - residual).max(0.0);
        let sum = |value: &dyn Fn(usize) -> f64| rows.iter().map(|n| precisions[*n] * value(*n)).sum::<f64>();
        let total = sum(&|_| 1.0);
        // 1 / Lambda, which is 0 for rows of weight 0.
        let precision = total / (1.0 + total * residual);
        let without = spanned / (1.0 - (spanned * precision).min(MOST_OWN));
        let m0 = mean - without * sum(&|n| t[n] - mean) / (1.0 + total * residual);
        let (variance, pull) = (without + residual, sum(&|n| t[n] - m0));
        for n in rows {
            let alone = rows.len() == 1;
            let (others, pull) = if alone { (0.0, 0.0) } else { (total - precisions[*n], pull - precisions[*n] * (t[*n] - m0)) };
            means[*n] = m0 + variance * pull / (1.0 + variance * others);
            variances[*n] = variance / (1.0 + variance * others);
        }
    }
    Ok((means, variances))
}

/// Returns the residual variances of the prior at raw rows, [N, D]: `[N]`.
fn residual_variances(model: &Model, x: ArrayView2<f64>) -> Result<Array1<f64>> {
    let mut out = Array1::zeros(x.nrows());
    let Some(residual) = model.residual()? else { return Ok(out) };
    let (fill, rows) = (model.maker(), model.tile_rows());
    let tiles = out.axis_chunks_iter_mut(Axis(0), rows).into_par_iter().zip(x.axis_chunks_iter(Axis(0), rows).into_par_iter());
    tiles.for_each(|(mut out, rows)| {
        let mut phi = Array2::zeros((rows.nrows(), model.relevance.len()));
        fill(rows, phi.view_mut());
        out.assign(&residual.variances(rows, phi.view()));
    });
    Ok(out)
}
