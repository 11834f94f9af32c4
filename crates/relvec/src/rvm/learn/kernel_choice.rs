//! Chooses the kernel of a fit, by dense processes on at most 1,000 rows. For large training sets, sparse processes on
//! more rows continue. A kernel can also be learned without a fit.
//!
//! For classes, one width is learned from left-out labels, (M82). Widths of many features are learned by the evidence of
//! a process on the labels. They are so many that they may fit the rows from which they are learned better than other
//! rows. The probability of left-out labels of other rows therefore chooses between one width for all features and one
//! width for each, (M88).

use std::time::Instant;

use ndarray::{Array2, ArrayView2, Axis, concatenate};
use serde::{Deserialize, Serialize};

use crate::canonical::random_subset;
use crate::design::Basis;
use crate::error::{Error, Result, require};
use crate::kernel::{GammaRule, Kernel};
use crate::likelihood::{Likelihood, NoiseModel};
use crate::memory::afford;
use crate::process::kernel::KernelLearner;
use crate::process::label_kernel::maximise;
use crate::process::label_rows::Labels;
use crate::process::parameters::{Frame, Moments};
use crate::process::pivoted_cholesky::Points;
use crate::process::{Hyper, Learned, label_sums, link};
use crate::query::merged_rows::DistinctRows;
use crate::query::pass::AllRows;
use crate::report::{Interrupt, KernelSearch, KernelTrial, ProcessTrial};
use crate::rvm::data::noise::NoisePrecision;
use crate::rvm::data::training_set::TrainingSet;
use crate::rvm::settings::dictionary::Dictionary;
use crate::rvm::settings::rvm::Rvm;
use crate::targets::Targets;

/// Largest number of rows of a dense process, whose time grows with the cube of the rows.
pub(in crate::rvm) const ROWS: usize = 1000;
/// Largest training set for which a kernel and its process are learned from a dense process alone. Larger ones continue
/// with more rows than a dense process can use.
pub(super) const MOST_ROWS: usize = 3000;
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
/// Number of rows, centres and left-out rows by which two kernels are compared on a large training set. If many rows
/// show a fine structure, 4,000 rows with 500 centres prefer the wide kernel of 1,000 rows (10 classes in 8 features: 5
/// of 8 draws).
const JUDGED_ROWS: usize = 20_000;
const JUDGED_CENTRES: usize = 1000;
const LEFT_OUT_ROWS: usize = 2000;
/// Number of different rows below which only one width is learned, because halves of fewer rows may lack a class.
const LEAST_HALVED: usize = 20;

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
    Ok(Choice { kernel: learned.kernel.clone(), search: Some(search), learned: Some(learned) })
}

/// Learns each kernel to try from a process. Returns the kernel with the highest posterior and a report. All kernels
/// must be covariances.
///
/// # Errors
/// Returns the errors of [`KernelLearner::learn`].
pub(in crate::rvm) fn by_process(rvm: &Rvm, training: &TrainingSet) -> Result<(Learned, KernelSearch)> {
    let begin = Instant::now();
    let drawn = training.draw(affordable(training, ROWS)?, rvm.seed);
    let labels = rvm.likelihood.is_for_classes().then(|| training.labels_of(&drawn));
    let surrogate = Surrogate::of(training);
    let rows = surrogate.rows(training, &drawn);
    let moments = training.moments();
    // In many features, centres do not span more rows, and FITC then prefers kernels so narrow that no row is near another: on
    // 4,000 texts of 50,000 words the model predicted the mean. One gamma of features as they are needs no more rows.
    let continues = rvm.to_try().iter().any(|kernel| kernel.learned_rule() != Some(GammaRule::EvidenceIsotropic));
    let more = (continues && training.rows.nrows() > MOST_ROWS).then(|| further(training, &surrogate, rvm.seed.wrapping_add(1)));
    let one_width = !training.is_real() && more.is_none() && labels.is_none();
    let (more_rows, more_centres) = more.as_ref().map_or((0, 0), |(rows, centres)| (rows.len(), centres.len()));
    let known_noise = surrogate.known_noise;
    let counts = rvm.likelihood.as_dyn().counts();
    let log_rates = counts.then(|| variance_of_log_rates(training) / surrogate.scale[0].powi(2));
    let learner = KernelLearner { rows: &rows, more, known_noise, log_rates, bias: rvm.bias, interrupt: &training.interrupt };
    let (mut tried, mut all_learned): (Vec<KernelTrial>, Vec<Learned>) = (vec![], vec![]);
    for kernel in rvm.to_try() {
        let scale = training.data_scale();
        let own = if kernel.learned_rule().is_some() { kernel.prepared(&scale)? } else { kernel.resolve(&scale)? };
        let own = if one_width { own.with_widths(GammaRule::EvidenceOne) } else { own };
        let own = learner.with_periods(&own, &moments, training.rows.view())?;
        let frame = Frame::new(&own, &moments, training.rows.view())?;
        let mut learned = match &labels {
            Some(labels) => of_labels(rvm, training, labels, &own, &moments, |some| match some {
                Some(some) => {
                    let each = own.with_widths(GammaRule::EvidenceArd);
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
    let drawn = training.draw(rows, seed);
    let rows = surrogate.rows(training, &drawn);
    let centres = random_subset(rows.len(), centres, seed);
    (rows, centres)
}

/// Returns the number of rows of a process: `most`, or as many as memory allows.
///
/// # Errors
/// Returns [`Error::Memory`] if there is no memory for even `LEAST_ROWS` rows.
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
        rows.without_copies(&training.users_rows(drawn))
    }

    /// Returns the targets of a process: real targets as they are, the labels of classes, or the log rates of counts.
    fn of(training: &TrainingSet) -> Surrogate {
        let (n, weights) = (training.rows.nrows(), training.sample_weights());
        let ones = || vec![1.0; n];
        if training.rvm.likelihood.as_dyn().counts() {
            let log_rates = log_rates(training);
            let expected = |row: usize| log_rates[row].exp() * training.factor(row);
            let target = |row: usize| log_rates[row] + training.real_target(row) / expected(row) - 1.0;
            let factors = (0..n).map(expected).collect();
            let (t, scale) = standardised(Array2::from_shape_fn((n, 1), |(row, _)| target(row)), &weights);
            let known_noise = Some(-2.0 * scale[0].ln());
            return Surrogate { t, factors, scale, known_noise };
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

/// Returns a log rate of each row, `[N]`, at which the log-likelihood of the counts is expanded for a first fit, (M97). It
/// is relative to that of one count per mean exposure.
///
/// The rates have a gamma prior with the mean and the variance that the counts show, and these are its posterior means. If
/// the counts do not vary more than those of one rate, all log rates are equal.
pub(in crate::rvm) fn log_rates(training: &TrainingSet) -> Vec<f64> {
    let rows = || (0..training.rows.nrows()).map(|row| (training.real_target(row), training.factor(row)));
    let (mean, spread) = moments_of_rates(training);
    rows().map(|(y, e)| ((1.0 + spread * y) / (1.0 / mean + spread * e)).ln()).collect()
}

/// Returns the variance of the logarithms of log-normal rates whose moments are those that the counts show, or 1 if the counts
/// do not vary more than those of one rate.
pub(super) fn variance_of_log_rates(training: &TrainingSet) -> f64 {
    match moments_of_rates(training).1 {
        spread if spread > 0.0 => spread.ln_1p(),
        _ => 1.0,
    }
}

/// Returns the mean of the rates of counts and their squared coefficient of variation.
fn moments_of_rates(training: &TrainingSet) -> (f64, f64) {
    let rows = || (0..training.rows.nrows()).map(|row| (training.real_target(row), training.factor(row)));
    let weights = training.sample_weights();
    let sum = |value: &dyn Fn(f64, f64) -> f64| rows().zip(&*weights).map(|((y, e), c)| c * value(y, e)).sum::<f64>();
    let mean = sum(&|y, _| y) / sum(&|_, e| e);
    (mean, (sum(&|y, e| (y / mean - e).powi(2) - e / mean) / sum(&|_, e| e * e)).max(0.0))
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

/// Rows that are left out one at a time, and the rows of the sums.
struct Judge {
    left_out: Labels,
    all: Labels,
    points: Points,
}

impl Judge {
    /// Returns a comparison on the rows `some` of a training set, which include the rows `left_out` (both ascending).
    fn new(training: &TrainingSet, some: &[usize], left_out: &[usize], seed: u64) -> Judge {
        let left_out = training.labels_of(left_out);
        let centres: Vec<usize> = random_subset(some.len(), JUDGED_CENTRES, seed).into_iter().map(|k| some[k]).collect();
        let x = concatenate![Axis(0), left_out.rows.x, training.rows.select(Axis(0), &centres)];
        let points = Points { x, first: left_out.rows.len() };
        Judge { left_out, all: training.labels_of(some), points }
    }

    /// Returns the logits of the left-out labels, [S, C], for a kernel with its best ratio; `None` if there is no time
    /// or no finite value.
    fn logits(&self, training: &TrainingSet, learned: &Learned) -> Result<Option<Array2<f64>>> {
        let (rows, log_ratio) = (AllRows::Held(&self.all.rows), learned.hyper.log_amplitude - learned.hyper.log_noise);
        let found = label_sums::regression(&self.left_out, &rows, &self.points, &learned.kernel, log_ratio, &training.interrupt)?;
        Ok(found.map(|(_, point)| point.means * point.theta))
    }

    /// Returns the weight of each left-out label, and its log probability under `other` minus that under `one`. Returns
    /// an empty list if there is no time or no finite value.
    fn gains(&self, training: &TrainingSet, one: &Learned, other: &Learned) -> Result<Vec<(f64, f64)>> {
        let (Some(mut one), Some(mut other)) = (self.logits(training, one)?, self.logits(training, other)?) else {
            return Ok(vec![]);
        };
        let [one, other] = [&mut one, &mut other].map(|logits| link::log_probabilities(&self.left_out, logits));
        let observations = self.left_out.observations.iter();
        Ok(observations
            .zip(one.iter().zip(&other))
            .map(|(observation, (one, other))| (observation.weight, other - one))
            .collect())
    }
}

/// Returns true if a sum of gains is positive and exceeds its standard error. By the one-standard-error rule, the
/// simpler of two models is kept unless the other is better by more than that (Breiman et al. 1984). By the sign of the
/// sum, two in five tables of 100 rows would get the worse kernel.
fn surely_positive(gains: &[(f64, f64)]) -> bool {
    let count: f64 = gains.iter().map(|(weight, _)| weight).sum();
    let sum: f64 = gains.iter().map(|(weight, gain)| weight * gain).sum();
    let square: f64 = gains.iter().map(|(weight, gain)| weight * gain * gain).sum();
    sum > 0.0 && sum * sum > square - sum * sum / count
}

/// Divides the rows of a training set into two random halves, with equal rows in the same half. Returns at most `most`
/// rows of each, ascending.
fn halves(training: &TrainingSet, most: usize, seed: u64) -> [Vec<usize>; 2] {
    let n = training.rows.nrows();
    let mut group = vec![0; n];
    for row in 1..n {
        group[row] = group[row - 1] + usize::from(training.rows.row(row) != training.rows.row(row - 1));
    }
    let groups = group[n - 1] + 1;
    let first = random_subset(groups, groups / 2, seed);
    [true, false].map(|side| {
        let half: Vec<usize> = (0..n).filter(|row| first.binary_search(&group[*row]).is_ok() == side).collect();
        random_subset(half.len(), most, seed).into_iter().map(|k| half[k]).collect()
    })
}

/// Returns the bytes of a comparison: rows and labels; features and kernel values of the centres at the left-out rows
/// and at the centres; sums and a factor.
fn judged_bytes(training: &TrainingSet) -> u64 {
    let n = training.rows.nrows();
    let (left_out, centres) = (LEFT_OUT_ROWS.min(n), JUDGED_CENTRES.min(n));
    let rows = JUDGED_ROWS.min(n) * (training.rows.ncols() + training.outputs + 1);
    8 * (rows + centres * (3 * (left_out + centres) + 3 * centres)) as u64
}

/// Learns the kernel of `labels`, which are those of some rows of a training set, and rho. `process` learns the same
/// kernel by the evidence of a process: from rows that it draws, or with one width for each feature from the given rows
/// (ascending).
///
/// # Errors
/// Returns the errors of [`maximise`] and of `process`.
fn of_labels(
    rvm: &Rvm,
    training: &TrainingSet,
    labels: &Labels,
    kernel: &Kernel,
    moments: &Moments,
    process: impl Fn(Option<&[usize]>) -> Result<Learned>,
) -> Result<Learned> {
    let (n, seed, interrupt) = (training.rows.nrows(), rvm.seed.wrapping_add(1), &training.interrupt);
    let with_ratio = |learned: Learned, evaluations: usize| {
        let frame = Frame::new(&learned.kernel, moments, training.rows.view())?;
        let found = maximise(labels, &learned.kernel, &frame, interrupt)?;
        Ok(Learned { per_feature: learned.per_feature, evaluations: learned.evaluations + evaluations, ..found })
    };
    if kernel.learned_rule() == Some(GammaRule::EvidenceArd) {
        return with_ratio(process(None)?, 0);
    }
    let plain = kernel.with_widths(GammaRule::EvidenceOne);
    let frame = Frame::new(&plain, moments, training.rows.view())?;
    let one_width = |labels: &Labels| maximise(labels, &plain, &frame, interrupt);
    let one = one_width(labels)?;
    let judged = kernel.learned_rule() == Some(GammaRule::Evidence) && labels.rows.len() >= LEAST_HALVED;
    if !judged || interrupt.is_late() || training.taken + judged_bytes(training) > training.memory_limit {
        return Ok(one);
    }
    let each = process(None)?;
    if !each.per_feature {
        return Ok(one);
    }
    let some = random_subset(n, JUDGED_ROWS, seed);
    let mut gains = vec![];
    if n > MOST_ROWS {
        let left_out: Vec<usize> = random_subset(some.len(), LEFT_OUT_ROWS, rvm.seed).into_iter().map(|k| some[k]).collect();
        gains = Judge::new(training, &some, &left_out, seed).gains(training, &one, &each)?;
    } else {
        let [first, second] = halves(training, labels.rows.len(), seed);
        for (half, rest) in [(&first, &second), (&second, &first)] {
            let (one, each) = (one_width(&training.labels_of(half))?, process(Some(half))?);
            gains.extend(Judge::new(training, &some, rest, seed).gains(training, &one, &each)?);
        }
    }
    if !surely_positive(&gains) || interrupt.is_late() {
        return Ok(one);
    }
    with_ratio(each, one.evaluations)
}

/// Kernel that a dense Gaussian process with covariance a * kernel + constant + noise has learned, (M67) to (M69).
///
/// All values are in the user's units. For real targets the process is fitted to the targets, and for counts to their log
/// rates, by an expansion of the log-likelihood, (M97). For classes it is a regression on labels, (M81): the parameters maximise the held-out
/// log probability, (M82), and the amplitude is given for noise 1.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct LearnedKernel {
    /// Kernel of the highest posterior density, (M68). Every parameter is a number.
    pub kernel: Kernel,
    /// Amplitude a of (M67): prior variance of the function at a kernel value of 1, in squared units of the targets,
    /// `[R]` for R outputs. For classes it is one number, the ratio to the noise variance.
    pub amplitude: Vec<f64>,
    /// Noise variance s2 of (M67), in squared units of the targets, `[R]`. If the noise variance of each row is known,
    /// it is their geometric mean. For counts it is 1: the noise variance of a row is 1 over its expected count.
    pub noise_variance: Vec<f64>,
    /// Log evidence log p(t) of (M67) of the rows that the kernel was learned from, in nats, summed over the outputs.
    /// For classes it is the held-out log probability, (M82).
    pub log_evidence: f64,
    /// Gain over a model that is a constant with noise, in nats: log posterior density of the process minus log
    /// evidence of the constant, (M69). It is minus infinity if no feature varies.
    pub gain: f64,
    /// True if a fit uses the kernel: the gain is at least 1/2 nat, or the kernel was learned from a sample of the
    /// rows.
    pub has_structure: bool,
    /// True if there is a learned gamma for each feature. Else there is one for features in units of their spread, or
    /// gamma was given.
    pub per_feature: bool,
    /// Number of rows, at most 1,000, that the kernel was learned from. Equal rows count separately.
    pub rows: usize,
}

impl Rvm {
    /// Learns the kernel from rows `x`, [N, D], and targets, `[N]` or [N, R], without a fit.
    ///
    /// A dense process learns from at most 1,000 rows drawn at random. Above 3,000 rows, a sparse process on 4,000 rows
    /// then refines the parameters, amplitude and noise. Only the settings of the kernels, the bias, the likelihood,
    /// the seed, and the limits of time, memory and threads have an effect. A given gamma is not changed. A fit learns
    /// the same kernel, except for Student-t noise: a fit gives outliers a lower weight before it learns the kernel.
    ///
    /// ```
    /// use ndarray::{Array1, Array2};
    /// use relvec::{Rvm, Targets};
    ///
    /// let x = Array2::from_shape_fn((60, 1), |(i, _)| -10.0 + i as f64 / 3.0);
    /// let t: Array1<f64> = x.column(0).mapv(f64::sin);
    /// let learned = Rvm::default().learn_kernel(x.view(), &Targets::real(t.view()))?;
    /// assert!(learned.has_structure && learned.gain > 100.0);
    /// # Ok::<(), relvec::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns [`Error::Parameter`] for a kernel that is no covariance of a Gaussian process (sigmoid, a linear spline
    /// at negative features), for [`Basis::Given`], and for parameters out of range. Also returns errors for shapes
    /// that do not match, values that are not finite, too few rows, and too little memory.
    pub fn learn_kernel(&self, x: ArrayView2<f64>, targets: &Targets) -> Result<LearnedKernel> {
        self.learn_kernel_with(x, targets, &Interrupt::default())
    }

    /// Learns the kernel from rows `x`, `[N, D]`, as [`Rvm::learn_kernel`] does. Another thread may stop it by
    /// `interrupt`.
    ///
    /// # Errors
    /// Returns the errors of [`Rvm::learn_kernel`], and [`Error::Interrupted`].
    pub fn learn_kernel_with(&self, x: ArrayView2<f64>, targets: &Targets, interrupt: &Interrupt) -> Result<LearnedKernel> {
        self.check()?;
        let expected = "kernel: a given design matrix has no kernel to learn";
        require(self.basis == Basis::Kernel, || "basis".into(), "given", expected)?;
        if let Some(kernel) = self.to_try().iter().find(|kernel| !kernel.is_covariance()) {
            let expected = "a kernel that is a covariance of a Gaussian process, not sigmoid or poly with coef0 < 0".into();
            return Err(Error::Parameter { name: "kernel".into(), found: kernel.name().into(), expected });
        }
        let own = if self.several(targets)?.is_some() { self.joint() } else { self.clone() };
        // The rows of the training set do not depend on its candidates, and a single candidate takes the least memory.
        let plain = Rvm { dictionary: Dictionary::Size(1), ..own.without_dictionary().with_stand_in() };
        self.pool()?.install(|| {
            let interrupt = interrupt.for_one_fit(self.deadline(Instant::now()));
            let training = TrainingSet::new(&plain, x, targets, &interrupt)?;
            own.check_covariances(&training)?;
            let (learned, search) = by_process(&own, &training)?;
            let (trial, process) = (&search.tried[search.chosen], &search.tried[search.chosen].process);
            Ok(LearnedKernel {
                kernel: learned.kernel,
                amplitude: process.amplitude.clone(),
                noise_variance: process.noise_variance.clone(),
                log_evidence: trial.log_evidence,
                gain: process.gain,
                has_structure: learned.has_structure,
                per_feature: learned.per_feature,
                rows: search.rows,
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gains_within_their_standard_error_are_not_surely_positive() {
        let gains = |values: &[f64]| values.iter().map(|v| (1.0, *v)).collect::<Vec<_>>();
        assert!(!surely_positive(&[]) && !surely_positive(&gains(&[0.0; 5])) && !surely_positive(&gains(&[-1.0; 5])));
        assert!(surely_positive(&gains(&[1.0; 5])));
        // The sum is 1, and the standard error 1.9 or 0.5.
        assert!(!surely_positive(&gains(&[1.0, 1.0, -1.0, -1.0, 1.0])) && surely_positive(&gains(&[0.4, 0.4, 0.0, 0.0, 0.2])));
        // A weight of 8 is the same as eight repetitions.
        let repeated: Vec<f64> = [0.9, -0.5].iter().flat_map(|v| [*v; 8]).collect();
        assert_eq!(surely_positive(&[(8.0, 0.9), (8.0, -0.5)]), surely_positive(&gains(&repeated)));
        assert!(!surely_positive(&gains(&[0.9, -0.5])));
    }
}
