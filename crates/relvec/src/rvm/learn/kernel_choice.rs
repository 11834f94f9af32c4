//! Which kernel a fit takes: by dense processes on at most 1,000 rows, and of large tables by sparse ones on more.

use std::time::Instant;

use ndarray::{Array2, Axis};

use super::kernel::Lesson;
use super::label_choice;
use super::label_rows::Labels;
use super::merged_rows::{DistinctRows, MOST_ROWS};
use super::scaled_features::{Frame, Moments};
use crate::error::Result;
use crate::kernel::Kernel;
use crate::likelihood::{Likelihood, NoiseModel};
use crate::memory::afford;
use crate::report::{KernelSearch, KernelTrial, ProcessTrial};
use crate::rvm::data::noise::NoisePrecision;
use crate::rvm::data::training_set::{Hyper, Learned, TrainingSet};
use crate::rvm::settings::dictionary::Landmarks;
use crate::rvm::settings::rvm::Rvm;

/// Rows that a dense process is learnt from, at most: time grows with their cube.
pub(super) const ROWS: usize = 1000;
/// Rows and centres that tables of more than [`MOST_ROWS`] have the process prior's kernel from. 3,000 rows save a fifth of the time of
/// learning and lose 0.01 nats on elevators and protein structures. 600 centres take a fifth more, and gain 0.04 nats on a rough
/// function (kin40k) and at most 0.01 elsewhere.
const FITC_ROWS: usize = 4000;
const FITC_CENTRES: usize = 500;
/// Where memory is short, rows are halved while they are more than this; matrices of them that there are at a time.
const LEAST_ROWS: usize = 100;
const MATRICES: u64 = 4;
/// Matrices of rows by centres that there are at a time.
const FITC_MATRICES: u64 = 5;
/// A count of zero counts as this: the median of its rate's posterior is near it.
const HALF: f64 = 0.5;

/// The kernel of a fit, every parameter a number.
pub(in crate::rvm) struct Choice {
    pub kernel: Kernel,
    /// How it was learnt, if it was.
    pub search: Option<KernelSearch>,
    /// The process that it was learnt from, if it was.
    pub learned: Option<Learned>,
}

/// Targets of a process: about 0, of unit variance, [N, R], with what a unit is to the user.
struct Surrogate {
    t: Array2<f64>,
    /// Factors of the rows, `[N]`.
    factors: Vec<f64>,
    /// Standard deviation of each target in the user's units, `[R]`.
    scale: Vec<f64>,
    known_noise: Option<f64>,
}

/// The kernel for the rows of a table: of the highest posterior under a process among those to try, or the one that is given.
///
/// # Errors
/// A linear spline at negative features among the kernels to learn; the errors of [`by_process`].
pub(in crate::rvm) fn choose(rvm: &Rvm, training: &TrainingSet) -> Result<Choice> {
    if !rvm.learns_kernel() {
        return Ok(Choice { kernel: rvm.kernel.resolve(&training.data_scale())?, search: None, learned: None });
    }
    rvm.check_covariances(training)?;
    let (learned, search) = by_process(rvm, training)?;
    Ok(Choice { kernel: learned.for_search.clone(), search: Some(search), learned: Some(learned) })
}

/// What processes learn of the kernels to try: the one of the highest posterior, and how it was found. All are covariances.
///
/// # Errors
/// Returns the errors of [`Lesson::learn`].
pub(in crate::rvm) fn by_process(rvm: &Rvm, training: &TrainingSet) -> Result<(Learned, KernelSearch)> {
    let begin = Instant::now();
    let drawn = Landmarks::any(training.rows.nrows(), affordable(training, ROWS)?, rvm.seed);
    let labels = rvm.likelihood.is_for_classes().then(|| Labels::of(training, &drawn));
    let surrogate = Surrogate::of(training);
    let rows = surrogate.rows(training, &drawn);
    let moments = Moments::new(training.rows.view(), &training.sample_weights());
    let more = (training.rows.nrows() > MOST_ROWS).then(|| further(training, &surrogate, rvm.seed.wrapping_add(1)));
    let one_width = !training.is_real() && more.is_none() && labels.is_none();
    let (more_rows, more_centres) = more.as_ref().map_or((0, 0), |(rows, centres)| (rows.len(), centres.len()));
    let lesson = Lesson { rows: &rows, more, known_noise: surrogate.known_noise, bias: rvm.bias, interrupt: &training.interrupt };
    let (mut tried, mut all_learnt): (Vec<KernelTrial>, Vec<Learned>) = (vec![], vec![]);
    for kernel in rvm.to_try() {
        let scale = training.data_scale();
        let own = if kernel.learnt_rule().is_some() { kernel.prepared(&scale)? } else { kernel.resolve(&scale)? };
        let own = if one_width { own.with_one_width() } else { own };
        let frame = Frame::new(&own, &moments, training.rows.view())?;
        let mut learned = match &labels {
            Some(labels) => label_choice::learn(rvm, training, labels, &own, &moments, |some| match some {
                Some(some) => lesson.with_rows(&surrogate.rows(training, some)).learn(&own, &frame),
                None => lesson.learn(&own, &frame),
            })?,
            None => lesson.learn(&own, &frame)?,
        };
        // What some rows do not tell all may.
        learned.has_structure |= drawn.len() < training.rows.nrows();
        // Labels have no unit, and their noise is 1.
        tried.push(trial(&learned, &rows, if labels.is_some() { &[1.0] } else { &surrogate.scale }));
        all_learnt.push(learned);
        if training.interrupt.is_late() {
            break;
        }
    }
    let by_posterior = |j: &usize, k: &usize| all_learnt[*j].log_posterior.total_cmp(&all_learnt[*k].log_posterior);
    let chosen = (0..all_learnt.len()).rev().max_by(by_posterior).expect("there is a kernel to try");
    let seconds = begin.elapsed().as_secs_f64();
    let search = KernelSearch { tried, chosen, rows: drawn.len(), more_rows, more_centres, seconds };
    Ok((all_learnt.swap_remove(chosen), search))
}

/// Rows of a large table and which of them are centres, both at random; where memory is short, fewer.
fn further(training: &TrainingSet, surrogate: &Surrogate, seed: u64) -> (DistinctRows, Vec<usize>) {
    let (mut rows, mut centres) = (FITC_ROWS, FITC_CENTRES);
    while rows > LEAST_ROWS && training.taken + 8 * FITC_MATRICES * (rows * centres) as u64 > training.memory_limit {
        (rows, centres) = (rows / 2, centres / 2);
    }
    let drawn = Landmarks::any(training.rows.nrows(), rows, seed);
    let rows = surrogate.rows(training, &drawn);
    let centres = Landmarks::any(rows.len(), centres, seed);
    (rows, centres)
}

/// Rows that a process is learnt from: `most`, or as many as memory allows.
///
/// # Errors
/// [`Error::Memory`](crate::Error::Memory) where there is room for next to none.
pub(super) fn affordable(training: &TrainingSet, most: usize) -> Result<usize> {
    let bytes = |rows: usize| 8 * MATRICES * (rows * rows) as u64;
    let mut rows = most.min(training.rows.nrows());
    while rows > LEAST_ROWS && training.taken + bytes(rows) > training.memory_limit {
        rows /= 2;
    }
    afford("the rows that the kernel is learnt from", training.taken + bytes(rows), training.memory_limit)?;
    Ok(rows)
}

/// A report of a process in the user's units; `scale`: of each target, `[R]`.
fn trial(learned: &Learned, rows: &DistinctRows, scale: &[f64]) -> KernelTrial {
    let Hyper { log_amplitude, log_noise } = learned.hyper;
    let log_evidence = learned.log_evidence - scale.iter().map(|scale| rows.count * scale.ln()).sum::<f64>();
    let out = |log: f64| scale.iter().map(|scale| log.exp() * scale * scale).collect();
    let process = ProcessTrial {
        amplitude: out(log_amplitude),
        noise_variance: out(log_noise),
        gain: learned.gain,
        log_posterior: learned.log_posterior,
        rows: rows.len(),
    };
    let kernel = &learned.kernel;
    KernelTrial {
        kernel: kernel.name().into(),
        degree: kernel.degree(),
        parameters: kernel.parameters(),
        log_evidence,
        process,
        evaluations: learned.evaluations,
    }
}

impl Surrogate {
    /// Some of the rows that it was made of, ascending.
    fn rows(&self, training: &TrainingSet, drawn: &[usize]) -> DistinctRows {
        let weights = training.sample_weights();
        let of = |v: &[f64]| -> Vec<f64> { drawn.iter().map(|n| v[*n]).collect() };
        let (x, t) = (training.rows.select(Axis(0), drawn), self.t.select(Axis(0), drawn));
        DistinctRows::new(x.view(), t.view(), &of(&weights), &of(&self.factors)).without_copies()
    }

    /// What a process is to learn of the targets of a table: real ones as they are, the labels of classes, the log rates of counts.
    fn of(training: &TrainingSet) -> Surrogate {
        let (n, weights) = (training.rows.nrows(), training.sample_weights());
        let ones = || vec![1.0; n];
        if training.rvm.likelihood.as_dyn().counts() {
            let rate = |row: usize| ((training.real_target(row) + HALF) / training.exposure(row)).ln();
            let factors = (0..n).map(|row| training.real_target(row) + HALF).collect();
            let (t, scale) = standardised(Array2::from_shape_fn((n, 1), |(row, _)| rate(row)), &weights);
            return Surrogate { t, factors, scale, known_noise: None };
        }
        if !training.is_real() {
            // Of two classes one label says both.
            let first = if matches!(training.rvm.likelihood, Likelihood::Softmax(_)) { 0 } else { 1 };
            let label = |(row, k): (usize, usize)| f64::from(training.targets[row] == (first + k) as f64);
            let columns = if first == 0 { training.outputs + 1 } else { 1 };
            let (t, scale) = standardised(Array2::from_shape_fn((n, columns), label), &weights);
            return Surrogate { t, factors: ones(), scale, known_noise: None };
        }
        let t = Array2::from_shape_fn((n, training.outputs), |(row, k)| training.targets[row * training.outputs + k]);
        let fixed = training.noise.iter().map(|noise| match noise {
            NoisePrecision::Fixed(beta)
                if training.known_noise || matches!(training.rvm.likelihood.as_dyn().noise(), NoiseModel::Fixed(_)) =>
            {
                Some(-beta.ln())
            }
            _ => None,
        });
        // Of several outputs the typical one.
        let fixed: Option<Vec<f64>> = fixed.collect();
        let known_noise = fixed.map(|logs| logs.iter().sum::<f64>() / logs.len() as f64);
        let factors = training.factors.as_ref().map_or_else(ones, |factors| factors.factor.clone());
        Surrogate { t, factors, scale: training.units.iter().map(|units| units.scale).collect(), known_noise }
    }
}

/// Columns about their means, of unit variance, by weights `[N]`; and their standard deviations.
fn standardised(mut t: Array2<f64>, weights: &[f64]) -> (Array2<f64>, Vec<f64>) {
    let moments = Moments::new(t.view(), weights);
    for (k, mut column) in t.columns_mut().into_iter().enumerate() {
        let scale = if moments.deviation[k] > 0.0 { moments.deviation[k] } else { 1.0 };
        column.mapv_inplace(|v| (v - moments.mean[k]) / scale);
    }
    let scale = moments.deviation.iter().map(|v| if *v > 0.0 { *v } else { 1.0 }).collect();
    (t, scale)
}
