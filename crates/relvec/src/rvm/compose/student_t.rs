//! Fits with Student-t noise, a scale mixture of Gaussians.
//!
//! An EM iteration searches with fixed latent row factors, and then updates these factors from the posterior, (M51) to
//! (M54). Both steps raise the same lower bound of the evidence.

use ndarray::{ArrayView1, ArrayView2};

use crate::error::{Error, Result};
use crate::likelihood::ScaleMixture;
use crate::model::Model;
use crate::report::{Report, Status};
use crate::rvm::data::noise::{DEVIATION, NoisePrecision, RowFactors};
use crate::rvm::data::training_set::TrainingSet;
use crate::rvm::evidence::active_posterior::{NoiseChoice, fitted};
use crate::rvm::evidence::solver::EvidenceSolver;
use crate::rvm::gram::likelihood_sums::Phi;
use crate::rvm::gram::scaled_problem::ScaledProblem;
use crate::rvm::search::driver::{FitDriver, WarmStart};
use crate::rvm::search::outer_loop;
use crate::rvm::settings::rvm::Rvm;
use crate::rvm::settings::scheme::Hyperparameters;
use crate::special::{lgamma_rise, log_rise, log_student_peak};

/// Range of the degrees of freedom, if they are learned.
const DEGREES: (f64, f64) = (0.1, 1e4);
/// Degrees of freedom at the start, if they are learned.
const FIRST_DEGREES: f64 = 4.0;
/// Number of intervals of the grid over the logarithm of the degrees of freedom.
const GRID: usize = 47;
/// Number of golden-section steps after the grid.
const SECTIONS: usize = 40;
/// EM iterations from each start, before the starts are compared.
const TRIAL_ITERATIONS: usize = 4;
/// Largest number of EM iterations.
const MAX_ITERATIONS: usize = 1000;
/// Joint updates of the precisions per EM iteration, for schemes that only update precisions.
const STEPS: usize = 20;
/// The EM iterations have converged if one raises the bound by at most this many nats (times N / 1000 above 1,000
/// rows). The searches then also make noise restarts.
const RISE: f64 = 1e-3;
/// Rise of the bound in nats, below which an iteration with noise restarts is the last one.
const RESTART_RISE: f64 = 0.05;
/// Largest number of returns from an iteration with noise restarts to iterations without them.
const MAX_RESTARTS: usize = 3;
/// Latent factors at given precisions have converged if no logarithm changes by more than this.
const TIGHT: f64 = 1e-12;
/// The iteration also ends if changes are below this value and no longer decrease. Degrees of freedom at a flat maximum
/// have no more correct digits.
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

    fn goes_on(&self) -> bool {
        self.report.status == Status::Converged
    }
}

/// Posterior q(u) of the latent precision factors of the rows, and the degrees of freedom.
#[derive(Debug, Clone)]
struct LatentFactors {
    degrees: f64,
    /// Posterior means <u>, positive, `[N]`.
    factor: Vec<f64>,
}

/// Fits a model with Student-t noise. The search starts from equal latent factors, and from factors that treat targets
/// far from the median as outliers. It continues from the start with the higher bound.
pub(crate) fn fit(rvm: &Rvm, training: &TrainingSet, mixture: ScaleMixture, driver: &mut FitDriver) -> Result<(Model, Report)> {
    if training.adjustments.constant_target {
        return outer_loop::search(rvm, training, None, None, false, driver);
    }
    let degrees = mixture.degrees.unwrap_or(FIRST_DEGREES);
    let equal = LatentFactors { degrees, factor: vec![1.0; training.targets.len()] };
    let mut now = trial(rvm, training, mixture, equal, driver)?;
    if now.goes_on() {
        let other = trial(rvm, training, mixture, LatentFactors::of(&spread(training), degrees).balanced(training).0, driver)?;
        // The trace contains the iterations from both starts, and the status is that of the second one.
        now = match other.bound() > now.bound() {
            true => other,
            false => Fitted { report: Report { status: other.report.status, trace: other.report.trace, ..now.report }, ..now },
        };
    }
    let (mut brief, mut restarts) = (true, 0);
    for _ in 0..MAX_ITERATIONS {
        if !now.goes_on() {
            break;
        }
        let before = now.bound();
        now = next(rvm, training, mixture, now, brief, driver)?;
        let rise = now.bound() - before;
        let converged = !now.cut && rise <= RISE * (training.count / 1000.0).max(1.0);
        match brief {
            true => brief = !converged,
            false if rise <= RESTART_RISE || restarts == MAX_RESTARTS => break,
            false => (brief, restarts) = (true, restarts + 1),
        }
    }
    let Fitted { mut model, mut report, scales, .. } = now;
    (model.status, report.iterations, model.iterations) = (report.status, report.trace.len(), report.trace.len());
    if let Some(posterior) = &mut model.posterior {
        posterior.noise_degrees = Some(scales.degrees);
    }
    Ok((model, report))
}

/// Runs up to [`TRIAL_ITERATIONS`] EM iterations from the latent factors `scales`.
fn trial(
    rvm: &Rvm,
    training: &TrainingSet,
    mixture: ScaleMixture,
    scales: LatentFactors,
    driver: &mut FitDriver,
) -> Result<Fitted> {
    let mut now = search_step(rvm, training, scales, None, false, driver)?;
    for _ in 1..TRIAL_ITERATIONS {
        if !now.goes_on() {
            break;
        }
        now = next(rvm, training, mixture, now, true, driver)?;
    }
    Ok(now)
}

/// Runs one EM iteration: updates the latent factors from the posterior, and searches on from the present model.
/// `brief` omits noise restarts.
fn next(
    rvm: &Rvm,
    training: &TrainingSet,
    mixture: ScaleMixture,
    before: Fitted,
    brief: bool,
    driver: &mut FitDriver,
) -> Result<Fitted> {
    let mut run = || -> Result<Fitted> {
        let at = Hyperparameters::of(&before.model);
        let fixed = training.with_factors(rvm, before.scales.factors(&training.sample_weights()));
        let (updated, by) = LatentFactors::updated(&fixed, mixture, &at)?.balanced(training);
        // Factors and noise variance are multiplied by the same number, so that the noise precision of each row stays.
        let from = Hyperparameters { noise_variance: at.noise_variance.map(|v| v * by), ..at };
        search_step(rvm, training, updated, Some(&from), brief, driver)
    };
    match run() {
        // The time ran out before there was another model.
        Err(Error::Interrupted) if driver.is_late() && !training.interrupt.is_raised_by_hand() => {
            Ok(Fitted { report: Report { status: Status::TimeLimit, ..before.report }, ..before })
        }
        other => other,
    }
}

/// Searches with fixed latent factors `scales`, with a warm start at `from`. The trace of the driver is extended.
fn search_step(
    rvm: &Rvm,
    training: &TrainingSet,
    scales: LatentFactors,
    from: Option<&Hyperparameters>,
    brief: bool,
    driver: &mut FitDriver,
) -> Result<Fitted> {
    let fixed = training.with_factors(rvm, scales.factors(&training.sample_weights()));
    // Schemes that do not add basis functions cannot restore a pruned weight. They take few steps at a time, so that
    // weights are pruned only by factors that are up to date.
    let steps = if rvm.inference.as_dyn().adds() { usize::MAX } else { STEPS };
    let most = driver.limit(steps);
    let found = outer_loop::search(rvm, &fixed, None, from, brief, driver);
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

/// Returns the weight <u_n> of each row under a model with Student-t noise, (M52), `[N]`. `targets` are `[N]` and the
/// rows `x` are `[N, D]`, both in original units.
pub(crate) fn row_weights(targets: ArrayView1<f64>, model: &Model, x: ArrayView2<f64>) -> Result<Vec<f64>> {
    let prediction = model.predict(x)?;
    let degrees = prediction.noise_degrees.unwrap_or(f64::INFINITY);
    let square = prediction.noise_variance;
    let one = |((t, m), v): ((&f64, &f64), &f64)| (1.0 + 1.0 / degrees) / (1.0 + ((t - m).powi(2) + v) / square / degrees);
    Ok(targets.iter().zip(&prediction.mean).zip(&prediction.model_variance).map(one).collect())
}

/// Returns the training set with the converged latent factors at the hyperparameters of `model`.
pub(crate) fn weighted<'b>(
    rvm: &'b Rvm,
    training: &TrainingSet,
    mixture: ScaleMixture,
    model: &Model,
) -> Result<TrainingSet<'b>> {
    // The model does not store its latent factors. At fixed precisions they converge quickly.
    Ok(rested(rvm, training, mixture, &Hyperparameters::of(model))?.0)
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
        if change <= TIGHT || change < FLAT && change >= before {
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
        LatentFactors { degrees, factor: distance.iter().map(|d| (degrees + 1.0) / (degrees + d)).collect() }
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
        let half = 0.5 * self.degrees;
        let shape = half + 0.5;
        // With many degrees of freedom the differences are small and their terms are huge, so they are not computed by
        // subtraction.
        let fixed = 0.5 + lgamma_rise(half, 0.5) - half * log_rise(half, 0.5) - 0.5 * shape.ln();
        let one = |(u, c): (&f64, &f64)| c * (0.5 * u.ln() + half * ((u - 1.0).ln_1p() - (u - 1.0)) + fixed);
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
/// and then by golden section.
fn best_degrees(distance: &[f64], weights: &[f64]) -> f64 {
    let (low, high) = (DEGREES.0.ln(), DEGREES.1.ln());
    let value = |log: f64| log_density(distance, weights, log.exp());
    let at = |k: usize| low + (high - low) * k as f64 / GRID as f64;
    let values: Vec<f64> = (0..=GRID).map(|k| value(at(k))).collect();
    let top = (0..=GRID).fold(0, |best, k| if values[k] > values[best] { k } else { best });
    let (mut from, mut to) = (at(top.saturating_sub(1)), at((top + 1).min(GRID)));
    let golden = 0.5 * (5f64.sqrt() - 1.0);
    let (mut left, mut right) = (to - golden * (to - from), from + golden * (to - from));
    let (mut below, mut above) = (value(left), value(right));
    for _ in 0..SECTIONS {
        if below < above {
            (from, left, below) = (left, right, above);
            right = from + golden * (to - from);
            above = value(right);
        } else {
            (to, right, above) = (right, left, below);
            left = to - golden * (to - from);
            below = value(left);
        }
    }
    let inside = 0.5 * (from + to);
    // At either end of the range, or on a flat curve, the point of the grid may have the higher value.
    if value(inside) >= values[top] { inside.exp() } else { at(top).exp() }
}
