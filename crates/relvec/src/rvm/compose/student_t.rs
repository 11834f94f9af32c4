//! Likelihoods that are scale mixtures of Gaussians (Student-t noise): rounds of a search with the rows' factors held,
//! and of the factors that its residuals ask for, (M51) to (M54). Each raises one lower bound of the evidence.

use ndarray::{ArrayView1, ArrayView2};

use crate::error::{Error, Result};
use crate::likelihood::ScaleMixture;
use crate::model::Model;
use crate::report::{Report, Status};
use crate::rvm::data::noise::NoisePrecision;
use crate::rvm::data::row_factors::RowFactors;
use crate::rvm::data::training_set::TrainingSet;
use crate::rvm::data::units::DEVIATION;
use crate::rvm::evidence::active_posterior::NoiseChoice;
use crate::rvm::evidence::function_values::fitted;
use crate::rvm::evidence::solver::EvidenceSolver;
use crate::rvm::gram::likelihood_sums::Phi;
use crate::rvm::gram::scaled_problem::ScaledProblem;
use crate::rvm::search::driver::FitDriver;
use crate::rvm::search::fit_run::WarmStart;
use crate::rvm::search::outer_loop;
use crate::rvm::settings::rvm::Rvm;
use crate::rvm::settings::scheme::Hyperparameters;
use crate::special::{lgamma_rise, log_rise, log_student_peak};

/// Degrees of freedom between which they are learnt, and where learning begins.
const DEGREES: (f64, f64) = (0.1, 1e4);
const FIRST_DEGREES: f64 = 4.0;
/// Steps of the logarithm of the degrees from one end to the other, and of the golden section that follows.
const GRID: usize = 47;
const SECTIONS: usize = 40;
/// Rounds from each start before the starts are compared, and rounds at most.
const TRIAL_ROUNDS: usize = 4;
const MAX_ROUNDS: usize = 1000;
/// Updates of all precisions in a round, where a scheme does nothing else.
const STEPS: usize = 20;
/// Rounds have converged when one raises the bound by no more nats than this, for each 1,000 rows; then searches make
/// excursions too, for as long as these gain something.
const RISE: f64 = 1e-3;
const EXCURSION_RISE: f64 = 0.05;
const MAX_EXCURSIONS: usize = 3;
/// Factors at given precisions have converged when no logarithm moves by more, or, since degrees of freedom at the top of
/// a flat curve have so many digits only, by less than the second and no less than before.
const TIGHT: f64 = 1e-12;
const FLAT: f64 = 1e-6;
const MAX_SWEEPS: usize = 2000;

/// A model, how it was found, and the factors that it was found with.
struct Fitted {
    model: Model,
    report: Report,
    scales: LatentFactors,
    /// Whether the search was ended for the sake of the factors, before it converged.
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

/// What is known of the rows' factors: q(u), and the degrees of freedom.
#[derive(Debug, Clone)]
struct LatentFactors {
    degrees: f64,
    /// <u>, `[N]`, > 0.
    factor: Vec<f64>,
}

/// The fit.
pub(crate) fn fit(rvm: &Rvm, training: &TrainingSet, mixture: ScaleMixture, driver: &mut FitDriver) -> Result<(Model, Report)> {
    if training.repairs.constant_target {
        return outer_loop::search(rvm, training, None, None, false, driver);
    }
    let degrees = mixture.degrees.unwrap_or(FIRST_DEGREES);
    // All rows alike; and those far from the middle of the targets held for outliers. The higher bound goes on.
    let alike = LatentFactors { degrees, factor: vec![1.0; training.targets.len()] };
    let mut now = trial(rvm, training, mixture, alike, driver)?;
    if now.goes_on() {
        let other = trial(rvm, training, mixture, LatentFactors::of(&spread(training), degrees).balanced(training).0, driver)?;
        // The trace, and how it ended, are those of both.
        now = match other.bound() > now.bound() {
            true => other,
            false => Fitted { report: Report { status: other.report.status, trace: other.report.trace, ..now.report }, ..now },
        };
    }
    let (mut brief, mut excursions) = (true, 0);
    for _ in 0..MAX_ROUNDS {
        if !now.goes_on() {
            break;
        }
        let before = now.bound();
        now = next(rvm, training, mixture, now, brief, driver)?;
        let rise = now.bound() - before;
        let rested = !now.cut && rise <= RISE * (training.count / 1000.0).max(1.0);
        match brief {
            true => brief = !rested,
            false if rise <= EXCURSION_RISE || excursions == MAX_EXCURSIONS => break,
            false => (brief, excursions) = (true, excursions + 1),
        }
    }
    let Fitted { mut model, mut report, scales, .. } = now;
    (model.status, report.iterations, model.iterations) = (report.status, report.trace.len(), report.trace.len());
    if let Some(posterior) = &mut model.posterior {
        posterior.noise_degrees = Some(scales.degrees);
    }
    Ok((model, report))
}

/// Some rounds from a start.
fn trial(
    rvm: &Rvm,
    training: &TrainingSet,
    mixture: ScaleMixture,
    scales: LatentFactors,
    driver: &mut FitDriver,
) -> Result<Fitted> {
    let mut now = round(rvm, training, scales, None, false, driver)?;
    for _ in 1..TRIAL_ROUNDS {
        if !now.goes_on() {
            break;
        }
        now = next(rvm, training, mixture, now, true, driver)?;
    }
    Ok(now)
}

/// The factors that a model asks for, and the search that goes on from it with them.
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
        let held = training.with_factors(rvm, before.scales.factors(&training.sample_weights()));
        let (asked, by) = LatentFactors::asked(&held, mixture, &at)?.balanced(training);
        // The same precisions of the rows, whatever their factors are relative to.
        let from = Hyperparameters { noise_variance: at.noise_variance.map(|v| v * by), ..at };
        round(rvm, training, asked, Some(&from), brief, driver)
    };
    match run() {
        // Out of time before there was another model.
        Err(Error::Interrupted) if driver.is_late() && !training.interrupt.is_raised_by_hand() => {
            Ok(Fitted { report: Report { status: Status::TimeLimit, ..before.report }, ..before })
        }
        other => other,
    }
}

/// A search with the factors held; the trace goes on.
fn round(
    rvm: &Rvm,
    training: &TrainingSet,
    scales: LatentFactors,
    from: Option<&Hyperparameters>,
    brief: bool,
    driver: &mut FitDriver,
) -> Result<Fitted> {
    let held = training.with_factors(rvm, scales.factors(&training.sample_weights()));
    // What has left the model of a scheme that only re-estimates does not come back: nothing goes before its time.
    let steps = if rvm.inference.as_dyn().adds() { usize::MAX } else { STEPS };
    let most = driver.limit(steps);
    let found = outer_loop::search(rvm, &held, None, from, brief, driver);
    driver.max_iterations = most;
    let (model, mut report) = found?;
    driver.trace.clone_from(&report.trace);
    let cut = report.status == Status::IterationLimit && report.trace.len() < most;
    if cut {
        report.status = Status::Converged;
    }
    // It came to rest with the last iteration that there was.
    if report.status == Status::Converged && !cut && driver.spent() == Some(Status::IterationLimit) {
        report.status = Status::IterationLimit;
    }
    Ok(Fitted { model, report, scales, cut })
}

/// What each row counts for under a model with Student-t noise, from its target, `[N]`, and the prediction: (M52).
pub(crate) fn row_weights(targets: ArrayView1<f64>, model: &Model, x: ArrayView2<f64>) -> Result<Vec<f64>> {
    let prediction = model.predict(x)?;
    let degrees = prediction.noise_degrees.unwrap_or(f64::INFINITY);
    let square = prediction.noise_variance;
    let one = |((t, m), v): ((&f64, &f64), &f64)| (1.0 + 1.0 / degrees) / (1.0 + ((t - m).powi(2) + v) / square / degrees);
    Ok(targets.iter().zip(&prediction.mean).zip(&prediction.model_variance).map(one).collect())
}

/// The table with the factors that a model asks for.
pub(crate) fn weighted<'b>(
    rvm: &'b Rvm,
    training: &TrainingSet,
    mixture: ScaleMixture,
    model: &Model,
) -> Result<TrainingSet<'b>> {
    // Its own are not known any more; with the precisions held they come to rest soon.
    Ok(rested(rvm, training, mixture, &Hyperparameters::of(model))?.0)
}

/// The table with the factors that given precisions ask for, converged, and the degrees of freedom.
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
        let held = training.with_factors(rvm, scales.factors(&training.sample_weights()));
        let after = LatentFactors::asked(&held, mixture, at)?;
        let moved = after.factor.iter().zip(&scales.factor).map(|(a, b)| (a / b).ln().abs()).fold(0.0, f64::max);
        scales = after;
        if moved <= TIGHT || moved < FLAT && moved >= before {
            break;
        }
        before = moved;
    }
    Ok((training.with_factors(rvm, scales.factors(&training.sample_weights())), scales.degrees))
}

/// Squared distances of the targets from their median, in squares of their median distance, as of a Gaussian.
fn spread(training: &TrainingSet) -> Vec<f64> {
    let middle = median(training.targets.clone());
    let scale = DEVIATION * median(training.targets.iter().map(|t| (t - middle).abs()).collect());
    // More than half of them may be the same.
    let scale = if scale > 0.0 { scale } else { 1.0 };
    training.targets.iter().map(|t| ((t - middle) / scale).powi(2)).collect()
}

fn median(mut values: Vec<f64>) -> f64 {
    let middle = values.len() / 2;
    *values.select_nth_unstable_by(middle, f64::total_cmp).1
}

impl LatentFactors {
    /// At squared distances beta <r^2>, `[N]`, (M52).
    fn of(distance: &[f64], degrees: f64) -> LatentFactors {
        LatentFactors { degrees, factor: distance.iter().map(|d| (degrees + 1.0) / (degrees + d)).collect() }
    }

    /// As the posterior at given precisions, the factors of the table held, asks for; the degrees at their best where
    /// they are learnt. Columns in the order of the candidates: no bit depends on that of the user's rows.
    fn asked(held: &TrainingSet, mixture: ScaleMixture, at: &Hyperparameters) -> Result<LatentFactors> {
        let mut candidates = held.candidates_of(at);
        candidates.sort_unstable();
        candidates.dedup();
        let (problem, sums) = ScaledProblem::new(held, candidates)?;
        let solver = EvidenceSolver::new(&problem, sums);
        let warm = WarmStart::at(&problem, at)?;
        let (active, beta) = (warm.columns(&solver), warm.beta[0]);
        let solution = solver.solve(&active, &warm.a, &[NoisePrecision::Fixed(beta)], NoiseChoice::Precision(&[beta]), None)?;
        let fitted = fitted(&problem, &solution);
        let mut distance: Vec<f64> = held.targets.iter().zip(&fitted).map(|(t, f)| beta * (t - f) * (t - f)).collect();
        let phi = Phi::Made { problem: &problem, columns: active.as_slice().into() };
        phi.for_each_block(&problem, |rows, phi| {
            let half = phi.dot(&solution.inverse.t());
            distance[rows].iter_mut().zip(half.outer_iter()).for_each(|(d, half)| *d += half.dot(&half));
        });
        held.interrupt.check()?;
        let degrees = mixture.degrees.unwrap_or_else(|| best_degrees(&distance, &held.sample_weights()));
        Ok(LatentFactors::of(&distance, degrees))
    }

    /// With mean 1, which is best where the noise can take up the rest; and what they were multiplied by.
    fn balanced(self, training: &TrainingSet) -> (LatentFactors, f64) {
        if !training.noise[0].is_learnt() {
            return (self, 1.0);
        }
        let weighted: f64 = self.factor.iter().zip(&*training.sample_weights()).map(|(u, c)| u * c).sum();
        let by = training.count / weighted;
        (LatentFactors { factor: self.factor.iter().map(|u| u * by).collect(), ..self }, by)
    }

    /// With what the bound has beside the log evidence of Gaussian noise, row by row, (M54).
    fn factors(&self, weights: &[f64]) -> RowFactors {
        let half = 0.5 * self.degrees;
        let shape = half + 0.5;
        // Differences first: with many degrees of freedom each of them is small, and its terms are huge.
        let fixed = 0.5 + lgamma_rise(half, 0.5) - half * log_rise(half, 0.5) - 0.5 * shape.ln();
        let one = |(u, c): (&f64, &f64)| c * (0.5 * u.ln() + half * ((u - 1.0).ln_1p() - (u - 1.0)) + fixed);
        RowFactors { factor: self.factor.clone(), constant: self.factor.iter().zip(weights).map(one).collect() }
    }
}

/// Sum of the log density of Student-t noise at squared distances, less what does not depend on the degrees, (M53).
fn log_density(distance: &[f64], weights: &[f64], degrees: f64) -> f64 {
    let each = log_student_peak(degrees);
    distance.iter().zip(weights).map(|(d, c)| c * (each - 0.5 * (degrees + 1.0) * (d / degrees).ln_1p())).sum()
}

/// The degrees of freedom at which the distances are likeliest.
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
    // At either end of the range, or where the curve is flat, a point of the grid may be as good.
    if value(inside) >= values[top] { inside.exp() } else { at(top).exp() }
}
