//! Centres that are moved off their rows by the gradient of the log evidence, (M38).

use std::borrow::Cow;
use std::time::Instant;

use ndarray::{Array1, Array2, ArrayView1, ArrayView2, Axis};

use crate::canonical::random_subset;
use crate::design::Columns as Basis;
use crate::dictionary_evidence::{BIAS_PRECISION, Columns, Sample};
use crate::error::Result;
use crate::kernel::{Form, Gamma, Kernel};
use crate::lbfgs::{self, Limits};
use crate::likelihood::{Bernoulli, Likelihood};
use crate::memory::afford;
use crate::model::Model;
use crate::process::kernel::{PATIENCE, STEP, TOLERANCE};
use crate::rvm::data::noise::NoisePrecision;
use crate::rvm::data::training_set::TrainingSet;
use crate::rvm::settings::rvm::Rvm;

/// Number of centres that are moved, unless the model has more.
const MOST: usize = 800;
/// Number of rows for each number that is moved. With fewer rows, centres follow the noise: for 800 centres with nine
/// features and 8,000 rows, the test error rises from the 45th evaluation on.
const ROWS_PER_NUMBER: usize = 5;
/// Smallest number of rows.
const LEAST_ROWS: usize = 8000;
/// Largest number of rows, and largest number if each evaluation requires Newton steps.
const MOST_ROWS: usize = 40_000;
const MOST_MOVING_ROWS: usize = 10_000;
/// The first maximisation uses the rows divided by this number, and one precision for all kernels. If every kernel had
/// its own precision from the start, some would keep almost zero weights. The second one uses all rows and a precision
/// for each kernel.
const FIRST_SHARE: usize = 4;
/// Largest number of evidence evaluations of each maximisation.
const EVALUATIONS: usize = 20;
/// Largest change of the log of a parameter of the kernel.
const KERNEL_RANGE: f64 = 3.0;

/// Kernel and centres at the maximum.
pub(crate) struct LearnedCentres {
    pub kernel: Kernel,
    /// Centres, [L, D].
    pub centres: Array2<f64>,
    /// Number of rows from which gradients were computed.
    pub rows: usize,
    pub evaluations: usize,
}

/// Moves the centres of `model`, which was fitted to `training`, and further landmarks. If `with_kernel`, the
/// parameters of the kernel are learned too. Returns `None` if there is nothing to move, or no time.
pub(crate) fn learn(
    rvm: &Rvm,
    training: &TrainingSet,
    model: &Model,
    with_kernel: bool,
    start: Instant,
) -> Result<Option<LearnedCentres>> {
    let is_late = || rvm.time_limit.is_some_and(|limit| start.elapsed().as_secs_f64() >= limit);
    let Some(kernel) = model.kernel() else { return Ok(None) };
    if is_late() || training.adjustments.constant_target || matches!(kernel.form(), Form::Other) {
        return Ok(None);
    }
    let candidates = first_candidates(training, model, rvm.seed);
    let (_, Basis::Kernel { centres: z, .. }) = training.columns(&candidates) else { return Ok(None) };
    let (m, features) = z.dim();
    if m == 0 {
        return Ok(None);
    }
    let grams = 5 + targets(training);
    let bytes = |rows: usize| 8 * (4 * rows * (m + features) + grams * m * m + 30 * m * features) as u64;
    let most = if rvm.likelihood.as_dyn().constant_curvature() { MOST_ROWS } else { MOST_MOVING_ROWS };
    let mut size = (ROWS_PER_NUMBER * m * (features + 1)).clamp(LEAST_ROWS, most).min(training.rows.nrows());
    while training.taken + bytes(size) > training.memory_limit && size > 2 * m {
        size /= 2;
    }
    afford("the rows and columns from which centres are learned", training.taken + bytes(size), training.memory_limit)?;

    // Features are measured in widths of the kernel from their mean.
    let units = widths(kernel, features);
    let middle = match kernel.form() {
        Form::Products(_) => Array1::zeros(features),
        _ => training.rows.mean_axis(Axis(0)).unwrap_or_else(|| Array1::zeros(features)),
    };
    let to_widths = |x: ArrayView2<f64>| (&x - &middle) / &units;
    let unit_kernel = match kernel.gamma() {
        Some(Gamma::PerFeature(_)) => kernel.with_gamma(vec![1.0; features].into()),
        Some(Gamma::Value(_)) => kernel.with_gamma(1.0.into()),
        _ => kernel.clone(),
    };
    let sample = |size: usize| {
        let rows = random_subset(training.rows.nrows(), size, rvm.seed);
        sample_of(training, &rows, to_widths(training.rows.select(Axis(0), &rows).view()))
    };
    let begin = Configuration { kernel: unit_kernel, z: to_widths(z.view()), log_a: vec![BIAS_PRECISION.ln()] };
    if !begin.z.iter().all(|v| v.is_finite()) {
        return Ok(None);
    }
    let maximise = |size: usize, from: &Configuration| {
        let sample = sample(size);
        if !sample.x.iter().all(|v| v.is_finite()) { Ok(None) } else { from.maximise(&sample, with_kernel, &is_late) }
    };
    let Some((mut end, mut evaluations)) = maximise((size / FIRST_SHARE).max(LEAST_ROWS).min(size), &begin)? else {
        return Ok(None);
    };
    end.log_a = end.each_its_own(rvm.bias);
    if let Some((further, more)) = maximise(size, &end)? {
        end = further;
        evaluations += more;
    }
    let kernel = in_user_units(kernel, end.kernel, features);
    Ok(Some(LearnedCentres { kernel, centres: end.z * &units + &middle, rows: size, evaluations }))
}

/// Returns the candidates whose centres are moved: those of the model, and others drawn at random, which may become
/// useful elsewhere. The order is that of the training set, so that the order of the user's rows has no effect.
fn first_candidates(training: &TrainingSet, model: &Model, seed: u64) -> Vec<usize> {
    let candidate = |row: &usize| training.candidate_of.get(*row).copied().flatten();
    let mut candidates: Vec<usize> = model.relevance.iter().filter_map(candidate).collect();
    candidates.sort_unstable();
    let unused: Vec<usize> = training.dictionary().into_iter().filter(|k| candidates.binary_search(k).is_err()).collect();
    let room = MOST.saturating_sub(candidates.len());
    candidates.extend(random_subset(unused.len(), room, seed).into_iter().map(|k| unused[k]));
    candidates
}

/// Returns some rows of a training set, with inputs `x` in the units of the kernel, [n, D].
///
/// For more than two classes, each class is learned against the others. A Hessian of all classes would cost the
/// square of the number of classes times as much.
fn sample_of<'a>(training: &'a TrainingSet, rows: &[usize], x: Array2<f64>) -> Sample<'a> {
    let (outputs, targets) = (training.outputs, &training.targets);
    let of_rows = |f: &dyn Fn(usize) -> f64| rows.iter().map(|n| f(*n)).collect();
    let (t, likelihood): (Vec<Vec<f64>>, Cow<Likelihood>) = match &training.rvm.likelihood {
        Likelihood::Softmax(_) => (
            (0..=outputs).map(|k| of_rows(&|n| f64::from(targets[n] == k as f64))).collect(),
            Cow::Owned(Bernoulli::default().into()),
        ),
        own => ((0..outputs).map(|k| of_rows(&|n| targets[n * outputs + k])).collect(), Cow::Borrowed(own)),
    };
    let noise = match &training.noise[..] {
        // Classes have no noise, and `noise` has one entry.
        [noise] => vec![noise.bounds(); t.len()],
        several => several.iter().map(NoisePrecision::bounds).collect(),
    };
    Sample {
        x,
        t,
        c: rows.iter().map(|n| training.weights[*n]).collect(),
        count: training.count_of(rows).0,
        likelihood,
        noise,
        bias: training.rvm.bias,
        interrupt: training.interrupt.clone(),
    }
}

/// Returns the number of targets of a row of a training set.
fn targets(training: &TrainingSet) -> usize {
    training.outputs + usize::from(matches!(training.rvm.likelihood, Likelihood::Softmax(_)))
}

/// Returns the learned kernel in the user's units. `found` is in units of `first`, the kernel that learning began with.
fn in_user_units(first: &Kernel, found: Kernel, features: usize) -> Kernel {
    let (Some(first), Some(times)) = (first.gamma(), found.gamma()) else { return found };
    let times = times.values(features);
    let gamma = match first {
        Gamma::PerFeature(v) => v.iter().zip(&times).map(|(v, t)| v * t).collect::<Vec<_>>().into(),
        Gamma::Value(v) => (v * times[0]).into(),
        Gamma::Rule(_) => first.clone(),
    };
    found.with_gamma(gamma)
}

/// A point of the maximisation: the kernel in units of the initial one, the centres in its widths, [m, D], and the logs
/// of the relative precisions. These are `[1]` if they are shared and otherwise `[P]`.
struct Configuration {
    kernel: Kernel,
    z: Array2<f64>,
    log_a: Vec<f64>,
}

/// Initial values and bounds of variables.
struct Start {
    from: Vec<f64>,
    bounds: Vec<(f64, f64)>,
}

impl Configuration {
    /// Returns the log precision of each column, which is the shared one.
    fn each_its_own(&self, bias: bool) -> Vec<f64> {
        let bias = bias.then(|| BIAS_PRECISION.ln());
        bias.into_iter().chain(self.z.rows().into_iter().map(|_| self.log_a[0])).collect()
    }

    /// Returns the initial log precisions and their bounds.
    fn precisions(&self, sample: &Sample, shared: bool) -> Result<Option<Start>> {
        let Some(columns) = Columns::new(sample, &self.kernel, self.z.view())? else { return Ok(None) };
        if shared {
            let best = columns.shared(self.log_a[0], TOLERANCE * sample.count)?;
            return Ok(best.map(|best| Start { from: best.x, bounds: vec![columns.range()] }));
        }
        let least = columns.least().max(f64::MIN_POSITIVE).ln();
        Ok(Some(Start { from: self.log_a.clone(), bounds: vec![(least, f64::INFINITY); self.log_a.len()] }))
    }

    /// Maximises the evidence in the log precisions, the centres and (if they are learned) the logs of the kernel's
    /// parameters. Returns the maximum and the number of evaluations. Returns `None` if there is no evidence at the
    /// start, or no time.
    fn maximise(&self, sample: &Sample, with_kernel: bool, is_late: &dyn Fn() -> bool) -> Result<Option<(Configuration, usize)>> {
        let (shared, first) = (self.log_a.len() == 1, sample.first());
        let Some(Start { mut from, mut bounds }) = self.precisions(sample, shared)? else { return Ok(None) };
        let p = from.len();
        for (_, v) in self.kernel.parameters().into_iter().filter(|_| with_kernel) {
            from.push(v.ln());
            bounds.push((v.ln() - KERNEL_RANGE, v.ln() + KERNEL_RANGE));
        }
        let q = from.len();
        from.extend(self.z.iter());
        // A centre beyond all rows would have an almost zero column.
        let range = |column: ArrayView1<f64>| {
            column.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| (low.min(*v), high.max(*v)))
        };
        let range: Vec<(f64, f64)> = sample.x.columns().into_iter().map(range).collect();
        bounds.extend(self.z.indexed_iter().map(|((_, d), v)| (range[d].0.min(*v), range[d].1.max(*v))));
        let at = |x: &[f64]| -> Configuration {
            let parameters: Vec<f64> = x[p..q].iter().map(|v| v.exp()).collect();
            let kernel = if with_kernel { self.kernel.with_parameters(&parameters) } else { self.kernel.clone() };
            let z = Array2::from_shape_vec(self.z.dim(), x[q..].to_vec()).expect("as many centres");
            Configuration { kernel, z, log_a: x[..p].to_vec() }
        };
        let limits = Limits { evaluations: EVALUATIONS, tolerance: TOLERANCE * sample.count, patience: PATIENCE, step: STEP };
        let mut near = None;
        let peak = lbfgs::maximise(&from, &bounds, limits, |x| {
            if is_late() {
                return Ok(None);
            }
            let point = at(x);
            let Some(columns) = Columns::new(sample, &point.kernel, point.z.view())? else { return Ok(None) };
            let a = match shared {
                true => columns.precisions(x[0]),
                false => point.log_a.iter().map(|v| v.exp()).collect(),
            };
            let Some(posterior) = columns.at(&a, near.as_ref())? else { return Ok(None) };
            let gradient = columns.gradient(&posterior)?;
            let mut slope = match shared {
                true => vec![gradient.log_a[first..].iter().sum()],
                false => gradient.log_a,
            };
            slope.extend(gradient.log_parameters.iter().filter(|_| with_kernel));
            slope.extend(gradient.centres.iter());
            let value = posterior.log_evidence;
            near = Some(posterior.weights());
            Ok(Some((value, slope)))
        })?;
        Ok(peak.map(|peak| (at(&peak.x), peak.evaluations)))
    }
}

/// Returns the distance in each feature over which the kernel falls off, `[D]`.
fn widths(kernel: &Kernel, features: usize) -> Array1<f64> {
    match kernel.form() {
        Form::Squares(gamma) | Form::Products(Some(gamma)) => gamma.values(features).mapv(|g| 1.0 / g.sqrt()),
        Form::Absolutes(gamma) => gamma.values(features).mapv(|g| 1.0 / g),
        Form::Products(None) | Form::Other => Array1::ones(features),
    }
}
