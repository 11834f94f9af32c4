//! Fits with Student-t noise, a scale mixture of Gaussians.
//!
//! An EM iteration fits a model with fixed latent row factors, and then updates these factors from the posterior, (M51) to
//! (M54). Both steps raise the same lower bound of the evidence. Under the process prior a fit is the maximum of amplitude
//! and noise, and one search chooses the relevance vectors at the end. Otherwise each fit is a search.

use std::time::Instant;

use crate::canonical::random_subset;
use crate::error::{Error, Result};
use crate::likelihood::{ScaleMixture, student_t};
use crate::model::{Model, squared_distances};
use crate::query::pass::{AllRows, Pass};
use crate::report::{Report, Status, silent};
use crate::rvm::data::noise::{DEVIATION, NoisePrecision, RowFactors};
use crate::rvm::data::training_set::TrainingSet;
use crate::rvm::evidence::active_posterior::{NoiseChoice, fitted};
use crate::rvm::evidence::solver::EvidenceSolver;
use crate::rvm::gram::likelihood_sums::Phi;
use crate::rvm::gram::scaled_problem::ScaledProblem;
use crate::rvm::learn::kernel_choice::ROWS;
use crate::rvm::search::driver::{FitDriver, WarmStart};
use crate::rvm::search::outer_loop;
use crate::rvm::settings::rvm::{Rvm, WeightPrior};
use crate::rvm::settings::scheme::Hyperparameters;
use crate::special::log_student_peak;

/// Range of the degrees of freedom, if they are learned.
const DEGREES: (f64, f64) = (0.1, 1e4);
/// Degrees of freedom at the start, if they are learned.
const FIRST_DEGREES: f64 = 4.0;
/// Number of intervals of the grid over the logarithm of the degrees of freedom.
const GRID: usize = 47;
/// Number of times that the interval about the best point of the grid is halved.
const HALVINGS: usize = 36;
/// Joint updates of the precisions per EM iteration, for schemes that only update precisions.
const STEPS: usize = 20;
/// The EM iterations have converged if one raises the bound by at most this many nats (times N / 1000 above 1,000
/// rows).
const RISE: f64 = 1e-3;
/// Rise of the bound, in nats per row, below which there are no further passes over rows that are not held. On 6,000 rows
/// the iterations then take 9 passes, and 21 down to [`RISE`].
const GAIN: f64 = 1e-4;
/// Largest change of a logarithm from which latent factors at given precisions have converged once it no longer decreases.
/// Degrees of freedom at a flat maximum have no more correct digits.
const FLAT: f64 = 1e-6;
/// Largest number of updates of the latent factors at given precisions.
const MAX_SWEEPS: usize = 2000;

/// A fitted model, its report, and the latent factors that it was fitted with.
struct Fitted {
    model: Model,
    report: Report,
    scales: LatentFactors,
    /// True if the search was ended before it converged, so that the latent factors are updated first.
    cut: bool,
}

impl Fitted {
    fn bound(&self) -> f64 {
        self.model.log_evidence.unwrap_or(f64::NEG_INFINITY)
    }
}

/// Posterior q(u) of the latent precision factors of the rows, and the degrees of freedom.
#[derive(Debug, Clone)]
struct LatentFactors {
    degrees: f64,
    /// Posterior means <u>, positive, `[N]`.
    factor: Vec<f64>,
}

/// Fits a model with Student-t noise: the process prior at converged latent factors, or searches that alternate with
/// updates of these factors.
pub(crate) fn fit(rvm: &Rvm, training: &TrainingSet, mixture: ScaleMixture, driver: &mut FitDriver) -> Result<(Model, Report)> {
    if !rvm.has_process(training)? {
        return search(rvm, training, mixture, driver);
    }
    if training.adjustments.constant_target {
        return fit_process(rvm, training, driver);
    }
    let mut scales = of_sample(rvm, training, mixture)?;
    if training.rows.nrows() > ROWS {
        let all: Vec<usize> = (0..training.rows.nrows()).collect();
        let model = under_process(rvm, &training.with(rvm, &training.kernel(), Some(&all)), mixture, scales)?;
        scales = LatentFactors::of_model(training, mixture, &model)?.balanced(training).0;
    }
    let fixed = training.with_factors(rvm, scales.factors(&training.sample_weights()));
    let (model, report) = fit_process(rvm, &fixed, driver)?;
    Ok((scales.with_degrees(&fixed, model), report))
}

/// Fits a model to rows that are not held, of which `training` is a sample. Each EM iteration is a fit by sums over all rows,
/// whose latent factors are those of the model before. Returns `None` if the time limit passes before there is a model; with
/// the process prior there is one.
pub(crate) fn fit_rows(
    rvm: &Rvm,
    training: &TrainingSet,
    mixture: ScaleMixture,
    pass: &mut Pass,
    driver: &mut FitDriver,
) -> Result<Option<(Model, Report)>> {
    let by_process = rvm.weight_prior == WeightPrior::Process;
    let at_once = |driver: &mut FitDriver| match by_process {
        true => rvm.fit_by_sums(training, &AllRows::Asked(pass), driver),
        false => outer_loop::search(rvm, training, None, None, driver),
    };
    if training.adjustments.constant_target {
        return at_once(driver).map(Some);
    }
    let mut model = match by_process {
        true => model_of_sample(rvm, training, mixture)?,
        false => {
            let some = random_subset(training.rows.nrows(), ROWS, rvm.seed);
            let mut quiet = silent;
            let own = &mut FitDriver::of(rvm, &mut quiet, &training.interrupt, Instant::now());
            search(rvm, &training.with(rvm, &training.kernel(), Some(&some)), mixture, own)?.0
        }
    };
    let (mut before, mut found) = (f64::NEG_INFINITY, None);
    loop {
        let scales = LatentFactors::of_model(training, mixture, &model)?;
        set_degrees(&mut model, scales.degrees);
        let from = Hyperparameters::of(&model);
        pass.set_model(model, training.units[0].scale, if rvm.bias { training.units[0].mean } else { 0.0 });
        let fixed = training.with_factors(rvm, scales.factors(&training.sample_weights()));
        let (next, report) = match by_process {
            true => rvm.fit_by_sums(&fixed, &AllRows::Asked(pass), driver)?,
            false => {
                let Some((all, sums)) = fixed.with_sums(rvm, pass)? else {
                    let status = Status::TimeLimit;
                    let late = |(model, report)| (Model { status, ..model }, Report { status, ..report });
                    return Ok(found.map(late));
                };
                let (model, report) = outer_loop::search(rvm, &all, Some(sums), Some(&from), driver)?;
                driver.trace.clone_from(&report.trace);
                (model, report)
            }
        };
        model = next;
        set_degrees(&mut model, scales.degrees);
        let bound = model.log_evidence.unwrap_or(f64::NAN);
        if !(bound - before > GAIN * pass.rows() as f64) || report.status != Status::Converged {
            return Ok(Some((model, report)));
        }
        (before, found) = (bound, Some((model.clone(), report)));
    }
}

fn set_degrees(model: &mut Model, degrees: f64) {
    model.posterior.iter_mut().for_each(|posterior| posterior.noise_degrees = Some(degrees));
}

/// Fits a model with the process prior to a training set with fixed latent factors.
fn fit_process(rvm: &Rvm, fixed: &TrainingSet, driver: &mut FitDriver) -> Result<(Model, Report)> {
    match rvm.fits_many(fixed)? {
        true => rvm.fit_many(fixed, driver),
        false => rvm.with_process(fixed, outer_loop::search(rvm, &fixed.centred(), None, None, driver)?),
    }
}

/// Returns the training set with latent factors that treat targets far from the median as outliers.
pub(crate) fn with_spread<'b>(rvm: &'b Rvm, training: &TrainingSet, mixture: ScaleMixture) -> TrainingSet<'b> {
    training.with_factors(rvm, LatentFactors::of_spread(training, mixture).factors(&training.sample_weights()))
}

/// Returns the training set with the latent factors of a process that is fitted to a sample of the rows.
pub(crate) fn with_factors<'b>(rvm: &'b Rvm, training: &TrainingSet, mixture: ScaleMixture) -> Result<TrainingSet<'b>> {
    Ok(training.with_factors(rvm, of_sample(rvm, training, mixture)?.factors(&training.sample_weights())))
}

/// Returns the latent factors of all rows under the model of a sample.
fn of_sample(rvm: &Rvm, training: &TrainingSet, mixture: ScaleMixture) -> Result<LatentFactors> {
    let model = model_of_sample(rvm, training, mixture)?;
    Ok(LatentFactors::of_model(training, mixture, &model)?.balanced(training).0)
}

/// Returns the model of a process with the kernel of `training`, which is fitted to at most [`ROWS`] of its rows. It starts
/// from factors that treat targets far from the median as outliers.
fn model_of_sample(rvm: &Rvm, training: &TrainingSet, mixture: ScaleMixture) -> Result<Model> {
    let some = random_subset(training.rows.nrows(), ROWS, rvm.seed);
    let sample = training.with(rvm, &training.kernel(), Some(&some));
    under_process(rvm, &sample, mixture, LatentFactors::of_spread(&sample, mixture))
}

/// Runs EM iterations under the process prior from the latent factors `scales`, without a search. The rows of `training`
/// have their own order, so that no bit depends on the order of the user's rows.
fn under_process(rvm: &Rvm, training: &TrainingSet, mixture: ScaleMixture, mut scales: LatentFactors) -> Result<Model> {
    let own = Rvm { weight_prior: WeightPrior::Process, ..rvm.clone() };
    let mut before = f64::NEG_INFINITY;
    loop {
        let fixed = training.with_factors(&own, scales.factors(&training.sample_weights()));
        let model = scales.with_degrees(&fixed, own.process_alone(&fixed)?);
        let bound = model.log_evidence.unwrap_or(f64::NAN);
        if !(bound - before > tolerance(training)) || training.interrupt.is_late() {
            return Ok(model);
        }
        before = bound;
        scales = LatentFactors::of_model(training, mixture, &model)?.balanced(training).0;
    }
}

/// Returns the rise of the bound in nats below which EM iterations have converged.
fn tolerance(training: &TrainingSet) -> f64 {
    RISE * (training.count / 1000.0).max(1.0)
}

/// Fits a model with Student-t noise by searches, one for each update of the latent factors. The first factors are those
/// of a process if the basis functions are values of a covariance.
fn search(rvm: &Rvm, training: &TrainingSet, mixture: ScaleMixture, driver: &mut FitDriver) -> Result<(Model, Report)> {
    if training.adjustments.constant_target {
        return outer_loop::search(rvm, training, None, None, driver);
    }
    let first = match rvm.has_covariances(training) {
        true => of_sample(rvm, training, mixture)?,
        false => LatentFactors::of_spread(training, mixture),
    };
    let mut now = search_step(rvm, training, first, None, driver)?;
    while now.report.status == Status::Converged {
        let next = match next(rvm, training, mixture, &now, driver) {
            // The time ran out before there was another model.
            Err(Error::Interrupted) if driver.is_late() && !training.interrupt.is_raised_by_hand() => {
                now.report.status = Status::TimeLimit;
                break;
            }
            next => next?,
        };
        let (rise, cut) = (next.bound() - now.bound(), next.cut);
        now = match cut || rise > 0.0 {
            true => next,
            false => Fitted { report: Report { status: next.report.status, trace: next.report.trace, ..now.report }, ..now },
        };
        if !cut && rise <= tolerance(training) {
            break;
        }
    }
    let Fitted { mut model, mut report, scales, .. } = now;
    (model.status, report.iterations, model.iterations) = (report.status, report.trace.len(), report.trace.len());
    set_degrees(&mut model, scales.degrees);
    Ok((model, report))
}

/// Runs one EM iteration: updates the latent factors from the posterior, and searches on from the present model.
fn next(rvm: &Rvm, training: &TrainingSet, mixture: ScaleMixture, now: &Fitted, driver: &mut FitDriver) -> Result<Fitted> {
    let at = Hyperparameters::of(&now.model);
    let fixed = training.with_factors(rvm, now.scales.factors(&training.sample_weights()));
    let (updated, by) = LatentFactors::updated(&fixed, mixture, &at)?.balanced(training);
    // Factors and noise variance are multiplied by the same number, so that the noise precision of each row stays.
    let from = Hyperparameters { noise_variance: at.noise_variance.map(|v| v * by), ..at };
    search_step(rvm, training, updated, Some(&from), driver)
}

/// Searches with fixed latent factors `scales`, with a warm start at `from`. The trace of the driver is extended.
fn search_step(
    rvm: &Rvm,
    training: &TrainingSet,
    scales: LatentFactors,
    from: Option<&Hyperparameters>,
    driver: &mut FitDriver,
) -> Result<Fitted> {
    let fixed = training.with_factors(rvm, scales.factors(&training.sample_weights()));
    // Schemes that do not add basis functions cannot restore a pruned weight. They take few steps at a time, so that
    // weights are pruned only by factors that are up to date.
    let steps = if rvm.inference.as_dyn().adds() { usize::MAX } else { STEPS };
    let most = driver.limit(steps);
    let found = outer_loop::search(rvm, &fixed, None, from, driver);
    driver.max_iterations = most;
    let (model, mut report) = found?;
    driver.trace.clone_from(&report.trace);
    let cut = report.status == Status::IterationLimit && report.trace.len() < most;
    if cut {
        report.status = Status::Converged;
    }
    // The search converged in the last iteration that was allowed, so the EM iterations cannot continue.
    if report.status == Status::Converged && !cut && driver.spent() == Some(Status::IterationLimit) {
        report.status = Status::IterationLimit;
    }
    Ok(Fitted { model, report, scales, cut })
}

/// Returns the training set with the converged latent factors at given hyperparameters, and the degrees of freedom.
pub(crate) fn rested<'b>(
    rvm: &'b Rvm,
    training: &TrainingSet,
    mixture: ScaleMixture,
    at: &Hyperparameters,
) -> Result<(TrainingSet<'b>, f64)> {
    let mut scales =
        LatentFactors { degrees: mixture.degrees.unwrap_or(FIRST_DEGREES), factor: vec![1.0; training.targets.len()] };
    let mut before = f64::INFINITY;
    for _ in 0..MAX_SWEEPS {
        let fixed = training.with_factors(rvm, scales.factors(&training.sample_weights()));
        let after = LatentFactors::updated(&fixed, mixture, at)?;
        let change = after.factor.iter().zip(&scales.factor).map(|(a, b)| (a / b).ln().abs()).fold(0.0, f64::max);
        scales = after;
        if change < FLAT && change >= before {
            break;
        }
        before = change;
    }
    Ok((training.with_factors(rvm, scales.factors(&training.sample_weights())), scales.degrees))
}

/// Returns the squared distances of the targets from their median, in units of the squared robust standard deviation
/// ([`DEVIATION`] times the median distance).
fn spread(training: &TrainingSet) -> Vec<f64> {
    let middle = median(training.targets.clone());
    let scale = DEVIATION * median(training.targets.iter().map(|t| (t - middle).abs()).collect());
    // If more than half of the targets are equal, the median distance is 0.
    let scale = if scale > 0.0 { scale } else { 1.0 };
    training.targets.iter().map(|t| ((t - middle) / scale).powi(2)).collect()
}

fn median(mut values: Vec<f64>) -> f64 {
    let middle = values.len() / 2;
    *values.select_nth_unstable_by(middle, f64::total_cmp).1
}

impl LatentFactors {
    /// Returns the factors (M52) at expected squared residuals d = beta <r^2> (`distance`, `[N]`).
    fn of(distance: &[f64], degrees: f64) -> LatentFactors {
        LatentFactors { degrees, factor: student_t::row_factors(distance, degrees) }
    }

    /// Returns a model with the process prior of rows with these factors, `fixed`, with the degrees of freedom and the
    /// bound.
    fn with_degrees(&self, fixed: &TrainingSet, mut model: Model) -> Model {
        set_degrees(&mut model, self.degrees);
        // The evidence of a process already contains 1/2 sum c_n log u_n.
        let logs: f64 = self.factor.iter().zip(&*fixed.sample_weights()).map(|(u, c)| 0.5 * c * u.ln()).sum();
        let log_evidence = model.log_evidence.map(|evidence| evidence + fixed.log_constant() - logs);
        Model { log_evidence, ..model }
    }

    /// Returns factors that treat targets far from the median as outliers.
    fn of_spread(training: &TrainingSet, mixture: ScaleMixture) -> LatentFactors {
        LatentFactors::of(&spread(training), mixture.degrees.unwrap_or(FIRST_DEGREES)).balanced(training).0
    }

    /// Returns the factors of the rows of `training` under a model, whose degrees of freedom maximise (M53) if they are
    /// learned.
    fn of_model(training: &TrainingSet, mixture: ScaleMixture, model: &Model) -> Result<LatentFactors> {
        let distance = squared_distances(training.real_targets().as_slice().into(), model, training.rows.view())?;
        let degrees = mixture.degrees.unwrap_or_else(|| best_degrees(&distance, &training.sample_weights()));
        Ok(LatentFactors::of(&distance, degrees))
    }

    /// Returns the updated factors: those of the posterior at the hyperparameters `at`, whose rows have the factors of
    /// `training`. Degrees of freedom that are learned maximise (M53). The columns are in the order of the candidates,
    /// so that no bit depends on the order of the user's rows.
    fn updated(training: &TrainingSet, mixture: ScaleMixture, at: &Hyperparameters) -> Result<LatentFactors> {
        let mut candidates = training.candidates_of(at);
        candidates.sort_unstable();
        candidates.dedup();
        let (problem, sums) = ScaledProblem::new(training, candidates)?;
        let solver = EvidenceSolver::new(&problem, sums);
        let warm = WarmStart::at(&problem, at)?;
        let (active, beta) = (warm.columns(&solver), warm.beta[0]);
        let solution = solver.solve(&active, &warm.a, &[NoisePrecision::Fixed(beta)], NoiseChoice::Precision(&[beta]), None)?;
        let fitted = fitted(&problem, &solution);
        let mut distance: Vec<f64> = training.targets.iter().zip(&fitted).map(|(t, f)| beta * (t - f) * (t - f)).collect();
        let phi = Phi::Made { problem: &problem, columns: active.as_slice().into() };
        phi.for_each_block(&problem, |rows, phi| {
            let half = phi.dot(&solution.inverse.t());
            distance[rows].iter_mut().zip(half.outer_iter()).for_each(|(d, half)| *d += half.dot(&half));
        });
        training.interrupt.check()?;
        let degrees = mixture.degrees.unwrap_or_else(|| best_degrees(&distance, &training.sample_weights()));
        Ok(LatentFactors::of(&distance, degrees))
    }

    /// Returns the factors scaled to weighted mean 1, and the number by which they were multiplied. The log evidence
    /// does not depend on this number if the noise variance is multiplied by it, and the other terms of the bound (M54)
    /// are largest at mean 1. If the noise variance is fixed, the factors are unchanged.
    fn balanced(self, training: &TrainingSet) -> (LatentFactors, f64) {
        if !training.noise[0].is_learned() {
            return (self, 1.0);
        }
        let weighted: f64 = self.factor.iter().zip(&*training.sample_weights()).map(|(u, c)| u * c).sum();
        let by = training.count / weighted;
        (LatentFactors { factor: self.factor.iter().map(|u| u * by).collect(), ..self }, by)
    }

    /// Returns row factors whose constants are the terms of the bound beside the log evidence of Gaussian noise, (M54).
    fn factors(&self, weights: &[f64]) -> RowFactors {
        let constant = student_t::row_constant(self.degrees);
        let one = |(u, c): (&f64, &f64)| c * constant(*u);
        RowFactors { factor: self.factor.clone(), constant: self.factor.iter().zip(weights).map(one).collect() }
    }
}

/// Returns the sum of the log densities of Student-t noise at squared distances, up to terms that do not depend on the
/// degrees of freedom, (M53).
fn log_density(distance: &[f64], weights: &[f64], degrees: f64) -> f64 {
    let each = log_student_peak(degrees);
    distance.iter().zip(weights).map(|(d, c)| c * (each - 0.5 * (degrees + 1.0) * (d / degrees).ln_1p())).sum()
}

/// Returns the degrees of freedom that maximise (M53) at the given squared distances: by a grid over their logarithm,
/// and then by halving the interval about the best one, where the slope is 0.
fn best_degrees(distance: &[f64], weights: &[f64]) -> f64 {
    let (low, high) = (DEGREES.0.ln(), DEGREES.1.ln());
    let value = |log: f64| log_density(distance, weights, log.exp());
    let at = |k: usize| low + (high - low) * k as f64 / GRID as f64;
    let values: Vec<f64> = (0..=GRID).map(|k| value(at(k))).collect();
    let top = (0..=GRID).fold(0, |best, k| if values[k] > values[best] { k } else { best });
    let (mut from, mut to) = (at(top.saturating_sub(1)), at((top + 1).min(GRID)));
    // Near the maximum, values agree to half their digits, and their differences over a step have more.
    let step = f64::EPSILON.powf(0.25);
    for _ in 0..HALVINGS {
        let middle = 0.5 * (from + to);
        if value(middle + step) > value(middle - step) { from = middle } else { to = middle }
    }
    let inside = 0.5 * (from + to);
    // At either end of the range, or on a flat curve, the point of the grid may have the higher value.
    if value(inside) >= values[top] { inside.exp() } else { at(top).exp() }
}
