//! Chooses the kernel of a fit, by dense processes on at most 1,000 rows. For large training sets, sparse processes on
//! more rows continue.

use std::time::Instant;

use ndarray::{Array2, Axis};

use crate::canonical::random_subset;
use crate::error::Result;
use crate::kernel::{Gamma, GammaRule, Kernel};
use crate::likelihood::{Likelihood, NoiseModel};
use crate::memory::afford;
use crate::process::kernel::KernelLearner;
use crate::process::parameters::{Frame, Moments};
use crate::process::{Hyper, Learned};
use crate::query::merged_rows::DistinctRows;
use crate::report::{KernelSearch, KernelTrial, ProcessTrial};
use crate::rvm::data::noise::NoisePrecision;
use crate::rvm::data::training_set::TrainingSet;
use crate::rvm::learn::label_kernel;
use crate::rvm::learn::training_rows::{MOST_ROWS, labels_of, users_rows};
use crate::rvm::settings::rvm::Rvm;

/// Largest number of rows of a dense process, whose time grows with the cube of the rows.
pub(super) const ROWS: usize = 1000;
/// Number of rows and centres of the sparse process, for training sets of more than [`MOST_ROWS`] rows. 3,000 rows save
/// a fifth of the time of learning, and lose 0.01 nats on elevators and protein structures. 600 centres take a fifth
/// more time, and gain 0.04 nats on a rough function (kin40k) and at most 0.01 elsewhere.
const FITC_ROWS: usize = 4000;
const FITC_CENTRES: usize = 500;
/// The number of rows is halved to fit into memory while it is larger than this.
const LEAST_ROWS: usize = 100;
/// Number of square matrices of the rows in memory at a time.
const MATRICES: u64 = 4;
/// Number of matrices of rows by centres in memory at a time.
const FITC_MATRICES: u64 = 5;
/// Added to counts, so that 0 has a log rate. The median of the posterior of the rate of a zero count is near it.
const HALF: f64 = 0.5;

/// The kernel of a fit, whose parameters are all numbers.
pub(in crate::rvm) struct Choice {
    pub kernel: Kernel,
    /// Report of the search, if the kernel was learned.
    pub search: Option<KernelSearch>,
    /// The process from which the kernel was learned, if it was.
    pub learned: Option<Learned>,
}

/// Targets of a process: columns of mean 0 and unit variance, [N, R], with their scale.
struct Surrogate {
    t: Array2<f64>,
    /// Row precision factors, `[N]`.
    factors: Vec<f64>,
    /// Standard deviation of each target in original units, `[R]`.
    scale: Vec<f64>,
    known_noise: Option<f64>,
}

/// Returns the kernel for a training set: the kernel to try whose process has the highest posterior, or the given one.
///
/// # Errors
/// Returns an error for a linear spline and negative features, and the errors of [`by_process`].
pub(in crate::rvm) fn choose(rvm: &Rvm, training: &TrainingSet) -> Result<Choice> {
    if !rvm.learns_kernel() {
        return Ok(Choice { kernel: rvm.kernel.resolve(&training.data_scale())?, search: None, learned: None });
    }
    rvm.check_covariances(training)?;
    let (learned, search) = by_process(rvm, training)?;
    Ok(Choice { kernel: learned.for_search.clone(), search: Some(search), learned: Some(learned) })
}

/// Learns each kernel to try from a process. Returns the kernel with the highest posterior and a report. All kernels
/// must be covariances.
///
/// # Errors
/// Returns the errors of [`KernelLearner::learn`].
pub(in crate::rvm) fn by_process(rvm: &Rvm, training: &TrainingSet) -> Result<(Learned, KernelSearch)> {
    let begin = Instant::now();
    let drawn = random_subset(training.rows.nrows(), affordable(training, ROWS)?, rvm.seed);
    let labels = rvm.likelihood.is_for_classes().then(|| labels_of(training, &drawn));
    let surrogate = Surrogate::of(training);
    let rows = surrogate.rows(training, &drawn);
    let moments = Moments::new(training.rows.view(), &training.sample_weights());
    let more = (training.rows.nrows() > MOST_ROWS).then(|| further(training, &surrogate, rvm.seed.wrapping_add(1)));
    let one_width = !training.is_real() && more.is_none() && labels.is_none();
    let (more_rows, more_centres) = more.as_ref().map_or((0, 0), |(rows, centres)| (rows.len(), centres.len()));
    let learner =
        KernelLearner { rows: &rows, more, known_noise: surrogate.known_noise, bias: rvm.bias, interrupt: &training.interrupt };
    let (mut tried, mut all_learned): (Vec<KernelTrial>, Vec<Learned>) = (vec![], vec![]);
    for kernel in rvm.to_try() {
        let scale = training.data_scale();
        let own = if kernel.learned_rule().is_some() { kernel.prepared(&scale)? } else { kernel.resolve(&scale)? };
        let own = if one_width { own.with_one_width() } else { own };
        let own = learner.with_periods(&own, &moments, training.rows.view())?;
        let frame = Frame::new(&own, &moments, training.rows.view())?;
        let mut learned = match &labels {
            Some(labels) => label_kernel::learn(rvm, training, labels, &own, &moments, |some| match some {
                Some(some) => {
                    let each = own.with_gamma(Gamma::Rule(GammaRule::EvidenceArd));
                    learner.with_rows(&surrogate.rows(training, some)).learn(&each, &frame)
                }
                None => learner.learn(&own, &frame),
            })?,
            None => learner.learn(&own, &frame)?,
        };
        // All rows may show structure that some of them do not.
        learned.has_structure |= drawn.len() < training.rows.nrows();
        // Labels have no unit, and their noise variance is 1.
        tried.push(trial(&learned, &rows, if labels.is_some() { &[1.0] } else { &surrogate.scale }));
        all_learned.push(learned);
        if training.interrupt.is_late() {
            break;
        }
    }
    let by_posterior = |j: &usize, k: &usize| all_learned[*j].log_posterior.total_cmp(&all_learned[*k].log_posterior);
    let chosen = (0..all_learned.len()).rev().max_by(by_posterior).expect("there is a kernel to try");
    let seconds = begin.elapsed().as_secs_f64();
    let search = KernelSearch { tried, chosen, rows: drawn.len(), more_rows, more_centres, seconds };
    Ok((all_learned.swap_remove(chosen), search))
}

/// Draws rows of a large training set, and some of them as centres. If memory is short, both are fewer.
fn further(training: &TrainingSet, surrogate: &Surrogate, seed: u64) -> (DistinctRows, Vec<usize>) {
    let (mut rows, mut centres) = (FITC_ROWS, FITC_CENTRES);
    while rows > LEAST_ROWS && training.taken + 8 * FITC_MATRICES * (rows * centres) as u64 > training.memory_limit {
        (rows, centres) = (rows / 2, centres / 2);
    }
    let drawn = random_subset(training.rows.nrows(), rows, seed);
    let rows = surrogate.rows(training, &drawn);
    let centres = random_subset(rows.len(), centres, seed);
    (rows, centres)
}

/// Returns the number of rows of a process: `most`, or as many as memory allows.
///
/// # Errors
/// Returns [`Error::Memory`](crate::Error::Memory) if there is no memory for even `LEAST_ROWS` rows.
pub(super) fn affordable(training: &TrainingSet, most: usize) -> Result<usize> {
    let bytes = |rows: usize| 8 * MATRICES * (rows * rows) as u64;
    let mut rows = most.min(training.rows.nrows());
    while rows > LEAST_ROWS && training.taken + bytes(rows) > training.memory_limit {
        rows /= 2;
    }
    afford("the rows from which the kernel is learned", training.taken + bytes(rows), training.memory_limit)?;
    Ok(rows)
}

/// Returns the report of a process in original units; `scale` is the unit of each target, `[R]`.
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
    /// Returns some rows of the training set, ascending, with these targets.
    fn rows(&self, training: &TrainingSet, drawn: &[usize]) -> DistinctRows {
        let weights = training.sample_weights();
        let of = |v: &[f64]| -> Vec<f64> { drawn.iter().map(|n| v[*n]).collect() };
        let (x, t) = (training.rows.select(Axis(0), drawn), self.t.select(Axis(0), drawn));
        let rows = DistinctRows::new(x.view(), t.view(), &of(&weights), &of(&self.factors));
        rows.without_copies(&users_rows(training, drawn))
    }

    /// Returns the targets of a process: real targets as they are, the labels of classes, or the log rates of counts.
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
            // For two classes, one column of labels is enough.
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
        // If there are several outputs, the mean log noise variance is used.
        let fixed: Option<Vec<f64>> = fixed.collect();
        let known_noise = fixed.map(|logs| logs.iter().sum::<f64>() / logs.len() as f64);
        let factors = training.factors.as_ref().map_or_else(ones, |factors| factors.factor.clone());
        Surrogate { t, factors, scale: training.units.iter().map(|units| units.scale).collect(), known_noise }
    }
}

/// Returns the columns minus their weighted means and divided by their standard deviations, and these. Weights: `[N]`.
fn standardised(mut t: Array2<f64>, weights: &[f64]) -> (Array2<f64>, Vec<f64>) {
    let moments = Moments::new(t.view(), weights);
    for (k, mut column) in t.columns_mut().into_iter().enumerate() {
        let scale = if moments.deviation[k] > 0.0 { moments.deviation[k] } else { 1.0 };
        column.mapv_inplace(|v| (v - moments.mean[k]) / scale);
    }
    let scale = moments.deviation.iter().map(|v| if *v > 0.0 { *v } else { 1.0 }).collect();
    (t, scale)
}
