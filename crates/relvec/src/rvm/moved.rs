//! Centres that the gradient of the log evidence has moved off their rows, (M38).

use std::time::Instant;

use ndarray::{Array1, Array2, ArrayView2, Axis};

use super::landmarks::Landmarks;
use super::lbfgs::{self, Limits};
use super::scales::BIAS_PRECISION;
use super::shared::{Columns, Sample};
use super::table::Table;
use super::{Rvm, silent};
use crate::design::Columns as Basis;
use crate::error::Result;
use crate::kernel::{Form, Gamma, Kernel};
use crate::memory::afford;
use crate::model::Model;
use crate::registry::rules;

/// Rows that gradients are taken from.
const ROWS: usize = 8000;
/// Centres moved, unless more are in the model already.
const MOST: usize = 800;
/// Calls of the evidence at most; and it ends when as many have gained less, per row, than this.
const EVALUATIONS: usize = 45;
const PATIENCE: usize = 5;
const TOLERANCE: f64 = 1e-4;
/// Largest step, in widths of the kernel.
const STEP: f64 = 3.0;
/// How far logs of precisions and of the kernel's parameters may go.
const PRECISION_RANGE: f64 = 12.0;
const KERNEL_RANGE: f64 = 3.0;

rules! {
    /// Whether centres of kernels are moved.
    #[derive(Default)]
    pub enum CentreRule, "rule for centres" {
        /// Every centre is a training row (or a given landmark).
        #[default]
        Fixed = "fixed",
        /// The gradient of the log evidence moves them; kept if the evidence on all rows is higher then.
        Learned = "learned",
    }
}

/// Where the gradient led.
pub(super) struct Moved {
    pub kernel: Kernel,
    /// [L, D].
    pub centres: Array2<f64>,
    /// Rows that gradients were taken from.
    pub rows: usize,
    pub evaluations: usize,
}

/// Moves the centres of `model`, which was fitted to `table`, and other landmarks beside them; and the parameters of
/// its kernel if they are learnt as well. `None` if there is nothing to move, or no time.
pub(super) fn learn(rvm: &Rvm, table: &Table, model: &Model, with_kernel: bool, start: Instant) -> Result<Option<Moved>> {
    let is_late = || rvm.time_limit.is_some_and(|limit| start.elapsed().as_secs_f64() >= limit);
    let Some(kernel) = model.kernel() else { return Ok(None) };
    if is_late() || table.repairs.constant_target || matches!(kernel.form(), Form::Other) {
        return Ok(None);
    }
    // In the order of the table, which the user's has no part in; what the model does not use may become of use
    // elsewhere.
    let place = |row: &usize| table.candidate_of.get(*row).copied().flatten();
    let mut places: Vec<usize> = model.relevance.iter().filter_map(place).collect();
    places.sort_unstable();
    let unused: Vec<usize> = table.dictionary().into_iter().filter(|place| places.binary_search(place).is_err()).collect();
    places.extend(Landmarks::any(unused.len(), MOST.saturating_sub(places.len()), rvm.seed).into_iter().map(|k| unused[k]));
    let (_, Basis::Kernel { centres: z, .. }) = table.columns(&places) else { return Ok(None) };
    let (m, features) = z.dim();
    if m == 0 {
        return Ok(None);
    }
    let bytes = |rows: usize| 8 * (4 * rows * (m + features) + 6 * m * m + 30 * m * features) as u64;
    let mut size = ROWS.min(table.rows.nrows());
    while table.taken + bytes(size) > table.memory_limit && size > 2 * m {
        size /= 2;
    }
    afford("the rows and columns that centres are moved by", table.taken + bytes(size), table.memory_limit)?;
    let rows = Landmarks::any(table.rows.nrows(), size, rvm.seed);

    // Everything in widths of the kernel, about the middle of the rows.
    let units = widths(kernel, features);
    let middle = match kernel.form() {
        Form::Products(_) => Array1::zeros(features),
        _ => table.rows.mean_axis(Axis(0)).unwrap_or_else(|| Array1::zeros(features)),
    };
    let inside = |x: ArrayView2<f64>| (&x - &middle) / &units;
    let unit_kernel = match kernel.gamma() {
        Some(Gamma::PerFeature(_)) => kernel.with_gamma(vec![1.0; features].into()),
        Some(Gamma::Value(_)) => kernel.with_gamma(1.0.into()),
        _ => kernel.clone(),
    };
    let sample = Sample {
        x: inside(table.rows.select(Axis(0), &rows).view()),
        t: vec![rows.iter().map(|n| table.targets[*n]).collect()],
        c: rows.iter().map(|n| table.weights[*n]).collect(),
        count: table.count_of(&rows).0,
        likelihood: &rvm.likelihood,
        noise: table.noise.iter().map(|noise| noise.without_hyperprior()).collect(),
        bias: rvm.bias,
        interrupt: table.interrupt.clone(),
    };
    // Precisions from a fit to these rows alone: those of all rows would be too low, and let it follow their noise.
    let own = Rvm { kernel: kernel.clone(), ..rvm.without_dictionary() };
    let part = table.with(&own, kernel, Some(&rows));
    let part = part.with_centres(&own, kernel, z.clone());
    let (first, _) = own.learn(&part, None, &mut own.watch(&mut silent, &table.interrupt, start))?;
    let z = inside(z.view());
    if !(sample.x.iter().chain(&z).all(|v| v.is_finite())) {
        return Ok(None);
    }

    // Variables: logs of all relative precisions, logs of the kernel's parameters, centres.
    let mut from = first_precisions(table, &first, &sample, &unit_kernel, &z)?;
    let p = from.len();
    let mut bounds: Vec<(f64, f64)> = from.iter().map(|v| (v - PRECISION_RANGE, v + PRECISION_RANGE)).collect();
    for (_, v) in unit_kernel.parameters().into_iter().filter(|_| with_kernel) {
        from.push(v.ln());
        bounds.push((v.ln() - KERNEL_RANGE, v.ln() + KERNEL_RANGE));
    }
    let q = from.len();
    from.extend(z.iter());
    // A centre beyond all rows would have a column of next to nothing.
    let range: Vec<(f64, f64)> = sample
        .x
        .columns()
        .into_iter()
        .map(|column| column.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| (low.min(*v), high.max(*v))))
        .collect();
    bounds.extend(z.indexed_iter().map(|((_, d), v)| (range[d].0.min(*v), range[d].1.max(*v))));
    let at = |x: &[f64]| -> (Kernel, Array2<f64>) {
        let parameters: Vec<f64> = x[p..q].iter().map(|v| v.exp()).collect();
        let kernel = if with_kernel { unit_kernel.with_parameters(&parameters) } else { unit_kernel.clone() };
        (kernel, Array2::from_shape_vec((m, features), x[q..].to_vec()).expect("m centres"))
    };
    let limits = Limits { evaluations: EVALUATIONS, tolerance: TOLERANCE * sample.count, patience: PATIENCE, step: STEP };
    let mut near = None;
    let peak = lbfgs::maximise(&from, &bounds, limits, |x| {
        if is_late() {
            return Ok(None);
        }
        let (kernel, z) = at(x);
        let Some(columns) = Columns::new(&sample, &kernel, z.view())? else { return Ok(None) };
        let a: Vec<f64> = x[..p].iter().map(|v| v.exp()).collect();
        let Some(posterior) = columns.at(&a, near.as_ref())? else { return Ok(None) };
        let gradient = columns.gradient(&posterior)?;
        let mut slope = gradient.log_a;
        slope.extend(gradient.log_parameters.iter().filter(|_| with_kernel));
        slope.extend(gradient.centres.iter());
        let value = posterior.log_evidence;
        near = Some(posterior.weights());
        Ok(Some((value, slope)))
    })?;
    let Some(peak) = peak else { return Ok(None) };
    let (found, z) = at(&peak.x);
    let kernel = match (kernel.gamma(), found.gamma()) {
        (Some(before), Some(times)) => {
            let times = times.values(features);
            let gamma = match before {
                Gamma::PerFeature(v) => v.iter().zip(&times).map(|(v, t)| v * t).collect::<Vec<_>>().into(),
                Gamma::Value(v) => (v * times[0]).into(),
                Gamma::Rule(_) => before.clone(),
            };
            found.with_gamma(gamma)
        }
        _ => found,
    };
    Ok(Some(Moved { kernel, centres: z * &units + &middle, rows: rows.len(), evaluations: peak.evaluations }))
}

/// The distance in each feature over which the kernel falls off, `[D]`.
fn widths(kernel: &Kernel, features: usize) -> Array1<f64> {
    match kernel.form() {
        Form::Squares(gamma) | Form::Products(Some(gamma)) => gamma.values(features).mapv(|g| 1.0 / g.sqrt()),
        Form::Absolutes(gamma) => gamma.values(features).mapv(|g| 1.0 / g),
        Form::Products(None) | Form::Other => Array1::ones(features),
    }
}

/// Logs of relative precisions to begin with: those of a model of some of the centres, whose relevance counts them, and
/// for the others the median.
fn first_precisions(table: &Table, model: &Model, sample: &Sample, kernel: &Kernel, z: &Array2<f64>) -> Result<Vec<f64>> {
    let square = table.units[0].scale * table.units[0].scale;
    let beta = model.noise_variance().map_or(1.0, |variance| square / variance);
    let known: Vec<f64> = model.alpha.iter().map(|alpha| alpha * square / beta).collect();
    let least = Columns::new(sample, kernel, z.view())?.map_or(f64::MIN_POSITIVE, |columns| columns.least());
    let mut sorted = known.clone();
    sorted.sort_by(f64::total_cmp);
    let mut all = vec![sorted.get(sorted.len() / 2).copied().unwrap_or(1.0); z.nrows()];
    model.relevance.iter().zip(known).for_each(|(k, a)| all[*k] = a);
    let bias = sample.bias.then_some(BIAS_PRECISION);
    Ok(bias.into_iter().chain(all).map(|a| a.max(least).ln()).collect())
}
