//! Checks that single precision is sufficient for a model, by predicting its own centres in both precisions.
//!
//! Weights and triangular factors of close centres are large and cancel. The remaining digits depend on the model.

use ndarray::{Array2, ArrayView1, Axis};

use crate::error::{Error, Result, vectors};
use crate::examples;
use crate::machine::{Basis, Machine, Spread, Task};

/// Most centres that are tried, evenly chosen. This is enough to include dense regions, and takes milliseconds.
const MOST_ROWS: usize = 200;
/// Largest accepted change: for a mean in standard deviations of a new observation, for a standard deviation relative
/// to itself, and for log odds, log rates and decision values absolute. A hundredth is far below the uncertainty of the
/// model.
const LIMIT: f64 = 0.01;

/// Function that rounds to a precision.
type Round = fn(f64) -> f64;

const ROUNDS: [Round; 2] = [|v| v, |v| f64::from(v as f32)];

/// A change of a prediction, with the name of the prediction and its unit.
type Change = (f64, &'static str, &'static str);

/// Returns an error if single precision changes predictions. `instead` names the alternative.
pub(crate) fn check(machine: &Machine, format: &'static str, std: bool, instead: &'static str) -> Result<()> {
    let mut worst: Change = (0.0, "", "");
    for phi in basis_functions(machine)?.outer_iter() {
        let change = change(machine, phi, std);
        if !(change.0 <= worst.0) {
            worst = change;
        }
    }
    match worst {
        (change, ..) if change <= LIMIT => Ok(()),
        (change, what, unit) => Err(Error::Precision {
            format,
            precision: "single precision",
            what,
            change,
            unit,
            vectors: vectors(machine.model),
            limit: LIMIT,
            instead,
        }),
    }
}

/// Returns the values of the basis functions, [N, M], at centres of the model.
fn basis_functions(machine: &Machine) -> Result<Array2<f64>> {
    match &machine.basis {
        Basis::Kernel { kernel, centres } if machine.len() > 0 => {
            let step = machine.len().div_ceil(MOST_ROWS);
            let rows: Vec<usize> = (0..machine.len()).step_by(step).collect();
            let rows = centres.select(Axis(0), &rows);
            let mut phi = Array2::zeros((rows.nrows(), machine.len()));
            kernel.block(rows.view(), centres.view(), phi.view_mut());
            Ok(phi)
        }
        Basis::Kernel { .. } => Ok(Array2::zeros((1, 0))),
        Basis::Columns(columns) => Ok(examples::Examples::new(machine.model)?.rows.select(Axis(1), columns)),
    }
}

/// Returns the largest change of the predictions at basis functions `phi`, `[M]`.
fn change(machine: &Machine, phi: ArrayView1<f64>, std: bool) -> Change {
    let functions = |round| functions(machine, phi, round);
    let largest = |changes: Vec<f64>| changes.into_iter().fold(0.0, |largest, v| if v <= largest { largest } else { v });
    let both = |f: &dyn Fn(Round) -> Vec<f64>| {
        let [double, single] = ROUNDS.map(f);
        double.into_iter().zip(single).collect::<Vec<_>>()
    };
    let apart = |pairs: Vec<(f64, f64)>| largest(pairs.iter().map(|(double, single)| (double - single).abs()).collect());
    match &machine.task {
        Task::Values(values) => {
            let [double, single] = ROUNDS.map(|round| variance(&values.spread, phi, round));
            let deviation = |v: f64, k: usize| (v * values.ratios[k] + values.noise[k]).sqrt();
            let means = both(&functions);
            let of_mean = means.iter().enumerate().map(|(k, (a, b))| (a - b).abs() / deviation(double, k)).collect();
            let ratio = |k: usize| if values.noise[k].is_finite() { deviation(single, k) / deviation(double, k) } else { 1.0 };
            let of_std = (0..values.ratios.len()).map(|k| (ratio(k) - 1.0).abs()).collect();
            let mean = (largest(of_mean), "a mean", "its standard deviation");
            let std = (if std { largest(of_std) } else { 0.0 }, "a standard deviation", "itself");
            if mean.0 <= std.0 { std } else { mean }
        }
        Task::Counts(spread) => {
            let logs = both(&|round| vec![functions(round)[0] + 0.5 * variance(spread, phi, round)]);
            (apart(logs), "the log of a rate", "a nat")
        }
        Task::Two(Some(spread)) => {
            let odds = |round: Round| functions(round)[0] / (1.0 + variance(spread, phi, round)).sqrt();
            (apart(both(&|round| vec![odds(round)])), "log odds", "a nat")
        }
        Task::Two(None) | Task::Joint(_) => (apart(both(&functions)), "log odds", "a nat"),
        // The weights of the binary models are the columns of the expansion's weights.
        Task::Committee { .. } => (apart(both(&functions)), "log odds", "a nat"),
        Task::Margins(margins) if margins.classes.is_some() => (apart(both(&functions)), "a decision", "the margin"),
        Task::Margins(_) => {
            let means = both(&functions);
            let size = largest(means.iter().map(|(double, _)| double.abs()).collect());
            (apart(means) / size.max(f64::MIN_POSITIVE), "a mean", "itself")
        }
    }
}

/// Returns f, `[C]`.
fn functions(machine: &Machine, phi: ArrayView1<f64>, round: Round) -> Vec<f64> {
    let expansion = &machine.model.expansion;
    let one = |(c, intercept): (usize, &f64)| {
        let products = phi.iter().zip(expansion.weights.column(c)).map(|(phi, w)| round(round(*phi) * round(*w)));
        products.fold(round(*intercept), |sum, product| round(sum + product))
    };
    expansion.intercept.iter().enumerate().map(one).collect()
}

/// Returns v, computed by forward substitution.
fn variance(spread: &Spread, phi: ArrayView1<f64>, round: Round) -> f64 {
    let bias = usize::from(spread.bias);
    let column: Vec<f64> = (0..spread.scale.len()).map(|i| if i < bias { 1.0 } else { phi[i - bias] }).collect();
    let scaled: Vec<f64> = column.iter().zip(spread.scale).map(|(phi, s)| round(phi * s)).collect();
    let posterior = squares(&spread.factor, &scaled, round);
    let residual = spread.prior.as_ref().map_or(0.0, |prior| {
        // k(z, z) of a local kernel is 1 at a centre; for other kernels it is the part that the centres span.
        let spanned = squares(&prior.factor, &phi.to_vec(), round);
        let own = squares(&prior.factor, &phi.to_vec(), |v| v);
        prior.amplitude * (own - spanned).abs()
    });
    spread.times * (posterior + residual)
}

/// Returns |inv(L) b|^2.
fn squares(factor: &Array2<f64>, b: &[f64], round: Round) -> f64 {
    let mut half: Vec<f64> = vec![];
    for (i, b) in b.iter().enumerate() {
        let rest = half.iter().enumerate().fold(round(*b), |rest, (j, v)| round(rest - round(round(factor[[i, j]]) * v)));
        half.push(round(rest / factor[[i, i]]));
    }
    half.iter().fold(0.0, |sum, v| round(sum + round(v * v)))
}
