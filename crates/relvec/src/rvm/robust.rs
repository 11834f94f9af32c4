//! Likelihoods that are scale mixtures of Gaussians (Student-t noise): rounds of a search with the rows' factors held,
//! and of the factors that its residuals ask for, (M51) to (M54). Each raises one lower bound of the evidence.

use libm::lgamma;
use ndarray::{ArrayView1, ArrayView2};

use super::Rvm;
use super::evaluate::Hyperparameters;
use super::factors::Factors;
use super::gain::Noise;
use super::parts::Warm;
use super::problem::Problem;
use super::slopes::Phi;
use super::solution::At;
use super::table::Table;
use super::watch::Watch;
use super::workspace::Workspace;
use crate::error::{Error, Result};
use crate::likelihood::ScaleMixture;
use crate::model::Model;
use crate::report::{Report, Status};

/// Degrees of freedom between which they are learnt, and where learning begins.
const DEGREES: (f64, f64) = (0.1, 1e4);
const FIRST_DEGREES: f64 = 4.0;
/// Steps of the logarithm of the degrees from one end to the other, and of the golden section that follows.
const GRID: usize = 47;
const SECTIONS: usize = 40;
/// Rounds from each start before the starts are compared, and rounds at most.
const TRIAL_ROUNDS: usize = 4;
const MAX_ROUNDS: usize = 300;
/// Rounds are at rest when one raises the bound by no more nats than this, for each 1,000 rows; then searches make
/// excursions too, for as long as these gain something.
const RISE: f64 = 1e-3;
const EXCURSION_RISE: f64 = 0.05;
const MAX_EXCURSIONS: usize = 3;
/// Standard deviations of Gaussian targets in their median distance from the median.
const DEVIATION: f64 = 1.4826;
/// Factors at given precisions are at rest when no logarithm moves by more, or, since degrees of freedom at the top of
/// a flat curve have so many digits only, by less than the second and no less than before.
const TIGHT: f64 = 1e-12;
const FLAT: f64 = 1e-6;
const MAX_SWEEPS: usize = 2000;

/// How far a round goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Effort {
    /// On from the model, without excursions.
    Brief,
    /// With them.
    Thorough,
    /// From the beginning.
    Anew,
}

/// A model and how it was found.
type Fitted = (Model, Report);

/// What is known of the rows' factors: q(u), and the degrees of freedom.
#[derive(Debug, Clone)]
struct Scales {
    degrees: f64,
    /// <u>, `[N]`, > 0.
    factor: Vec<f64>,
}

/// The fit.
pub(super) fn fit(rvm: &Rvm, table: &Table, mixture: ScaleMixture, watch: &mut Watch) -> Result<Fitted> {
    if table.repairs.constant_target {
        return rvm.search(table, None, None, false, watch);
    }
    let mut best: Option<(Fitted, Scales)> = None;
    // What has left the model of other schemes does not come back by itself.
    let trial = if rvm.inference.as_dyn().adds() { Effort::Brief } else { Effort::Anew };
    // All rows alike; and those far from the middle of the targets held for outliers. The higher bound goes on.
    for start in [None, Some(spread(table))] {
        let degrees = mixture.degrees.unwrap_or(FIRST_DEGREES);
        let scales = match start {
            None => Scales { degrees, factor: vec![1.0; table.targets.len()] },
            Some(distance) => Scales::of(&distance, degrees).balanced(table).0,
        };
        let mut now = (round(rvm, table, &scales, None, false, watch)?, scales);
        for _ in 1..TRIAL_ROUNDS {
            if now.0.1.status != Status::Converged {
                break;
            }
            now = next(rvm, table, mixture, now, trial, watch)?;
        }
        let higher = best.as_ref().is_none_or(|(before, _)| rvm.objective(&now.0.0) > rvm.objective(&before.0));
        let over = now.0.1.status != Status::Converged;
        if higher {
            best = Some(now);
        } else if let Some((before, _)) = best.as_mut() {
            // The trace is that of all.
            before.1.trace.clone_from(&now.0.1.trace);
            before.1.status = now.0.1.status;
        }
        if over {
            break;
        }
    }
    let mut now = best.expect("there is a start");
    let (mut effort, mut excursions) = (Effort::Brief, 0);
    for _ in 0..MAX_ROUNDS {
        if now.0.1.status != Status::Converged {
            break;
        }
        let before = rvm.objective(&now.0.0);
        now = next(rvm, table, mixture, now, effort, watch)?;
        let rise = rvm.objective(&now.0.0) - before;
        match effort {
            Effort::Brief if rise <= RISE * (table.count / 1000.0).max(1.0) => effort = Effort::Thorough,
            Effort::Thorough if rise <= EXCURSION_RISE || excursions == MAX_EXCURSIONS => break,
            Effort::Thorough => (effort, excursions) = (Effort::Brief, excursions + 1),
            Effort::Brief | Effort::Anew => {}
        }
    }
    let ((mut model, mut report), scales) = now;
    (model.status, report.iterations, model.iterations) = (report.status, report.trace.len(), report.trace.len());
    if let Some(posterior) = &mut model.posterior {
        posterior.noise_degrees = Some(scales.degrees);
    }
    Ok((model, report))
}

/// The factors that a model asks for, and a search with them: from that model, or (`anew`) from the beginning, if that
/// leads higher.
fn next(
    rvm: &Rvm,
    table: &Table,
    mixture: ScaleMixture,
    (fitted, scales): (Fitted, Scales),
    effort: Effort,
    watch: &mut Watch,
) -> Result<(Fitted, Scales)> {
    let mut run = || -> Result<(Fitted, Scales)> {
        let at = Hyperparameters::of(&fitted.0);
        let held = table.with_factors(rvm, scales.factors(&table.sample_weights()));
        let (asked, by) = Scales::asked(&held, mixture, &at)?.balanced(table);
        if effort == Effort::Anew {
            let after = round(rvm, table, &asked, None, false, watch)?;
            if rvm.objective(&after.0) > rvm.objective(&fitted.0) {
                return Ok((after, asked));
            }
            if after.1.status != Status::Converged {
                let report = Report { status: after.1.status, trace: after.1.trace, ..fitted.1.clone() };
                return Ok(((fitted.0.clone(), report), scales.clone()));
            }
        }
        // The same precisions of the rows, whatever their factors are relative to.
        let from = Hyperparameters { noise_variance: at.noise_variance.map(|v| v * by), ..at };
        let after = round(rvm, table, &asked, Some(&from), effort != Effort::Thorough, watch)?;
        Ok((after, asked))
    };
    match run() {
        // Out of time before there was another model.
        Err(Error::Interrupted) if watch.is_late() && !table.interrupt.is_raised_by_hand() => {
            let (model, report) = fitted;
            Ok(((model, Report { status: Status::TimeLimit, ..report }), scales))
        }
        other => other,
    }
}

/// A search with the factors held; the trace goes on.
fn round(
    rvm: &Rvm,
    table: &Table,
    scales: &Scales,
    from: Option<&Hyperparameters>,
    brief: bool,
    watch: &mut Watch,
) -> Result<Fitted> {
    let held = table.with_factors(rvm, scales.factors(&table.sample_weights()));
    let (model, report) = rvm.search(&held, None, from, brief, watch)?;
    watch.trace.clone_from(&report.trace);
    Ok((model, report))
}

/// What each row counts for under a model with Student-t noise, from its target, `[N]`, and the prediction: (M52).
pub(super) fn row_weights(targets: ArrayView1<f64>, model: &Model, x: ArrayView2<f64>) -> Result<Vec<f64>> {
    let prediction = model.predict(x)?;
    let degrees = prediction.noise_degrees.unwrap_or(f64::INFINITY);
    let square = prediction.noise_variance;
    let one = |((t, m), v): ((&f64, &f64), &f64)| (1.0 + 1.0 / degrees) / (1.0 + ((t - m).powi(2) + v) / square / degrees);
    Ok(targets.iter().zip(&prediction.mean).zip(&prediction.model_variance).map(one).collect())
}

/// The table with the factors that a model asks for.
pub(super) fn weighted<'b>(rvm: &'b Rvm, table: &Table, mixture: ScaleMixture, model: &Model) -> Result<Table<'b>> {
    // Its own are not known any more; with the precisions held they come to rest soon.
    rested(rvm, table, mixture, &Hyperparameters::of(model))
}

/// The table with the factors that given precisions ask for, at rest.
pub(super) fn rested<'b>(rvm: &'b Rvm, table: &Table, mixture: ScaleMixture, at: &Hyperparameters) -> Result<Table<'b>> {
    let mut scales = Scales { degrees: mixture.degrees.unwrap_or(FIRST_DEGREES), factor: vec![1.0; table.targets.len()] };
    let mut before = f64::INFINITY;
    for _ in 0..MAX_SWEEPS {
        let held = table.with_factors(rvm, scales.factors(&table.sample_weights()));
        let after = Scales::asked(&held, mixture, at)?;
        let moved = after.factor.iter().zip(&scales.factor).map(|(a, b)| (a / b).ln().abs()).fold(0.0, f64::max);
        scales = after;
        if moved <= TIGHT || moved < FLAT && moved >= before {
            break;
        }
        before = moved;
    }
    Ok(table.with_factors(rvm, scales.factors(&table.sample_weights())))
}

/// Squared distances of the targets from their median, in squares of their median distance, as of a Gaussian.
fn spread(table: &Table) -> Vec<f64> {
    let middle = median(table.targets.clone());
    let scale = DEVIATION * median(table.targets.iter().map(|t| (t - middle).abs()).collect());
    // More than half of them may be the same.
    let scale = if scale > 0.0 { scale } else { 1.0 };
    table.targets.iter().map(|t| ((t - middle) / scale).powi(2)).collect()
}

fn median(mut values: Vec<f64>) -> f64 {
    let middle = values.len() / 2;
    *values.select_nth_unstable_by(middle, f64::total_cmp).1
}

impl Scales {
    /// At squared distances beta <r^2>, `[N]`, (M52).
    fn of(distance: &[f64], degrees: f64) -> Scales {
        Scales { degrees, factor: distance.iter().map(|d| (degrees + 1.0) / (degrees + d)).collect() }
    }

    /// As the posterior at given precisions, the factors of the table held, asks for; the degrees at their best where
    /// they are learnt. Columns in the order of the candidates: no bit depends on that of the user's rows.
    fn asked(held: &Table, mixture: ScaleMixture, at: &Hyperparameters) -> Result<Scales> {
        let mut places = at.places(held);
        places.sort_unstable();
        places.dedup();
        let (problem, sums) = Problem::new(held, places)?;
        let work = Workspace::new(&problem, sums);
        let warm = Warm::at(&problem, at)?;
        let (active, beta) = (warm.columns(&work), warm.beta);
        let solution = work.solve(&active, &warm.a, &Noise::Fixed(beta), At::Precision(beta), None)?;
        let fitted = problem.fitted(&solution);
        let mut distance: Vec<f64> = held.targets.iter().zip(&fitted).map(|(t, f)| beta * (t - f) * (t - f)).collect();
        let phi = Phi::Made { problem: &problem, columns: active.as_slice().into() };
        phi.for_each_block(&problem, |rows, phi| {
            let half = phi.dot(&solution.inverse.t());
            distance[rows].iter_mut().zip(half.outer_iter()).for_each(|(d, half)| *d += half.dot(&half));
        });
        held.interrupt.check()?;
        let degrees = mixture.degrees.unwrap_or_else(|| best_degrees(&distance, &held.sample_weights()));
        Ok(Scales::of(&distance, degrees))
    }

    /// With mean 1, which is best where the noise can take up the rest; and what they were multiplied by.
    fn balanced(self, table: &Table) -> (Scales, f64) {
        if !table.noise.is_learnt() {
            return (self, 1.0);
        }
        let weighted: f64 = self.factor.iter().zip(&*table.sample_weights()).map(|(u, c)| u * c).sum();
        let by = table.count / weighted;
        (Scales { factor: self.factor.iter().map(|u| u * by).collect(), ..self }, by)
    }

    /// With what the bound has beside the log evidence of Gaussian noise, row by row, (M54).
    fn factors(&self, weights: &[f64]) -> Factors {
        let half = 0.5 * self.degrees;
        let shape = half + 0.5;
        let fixed = shape - shape * shape.ln() + lgamma(shape) + half * half.ln() - lgamma(half);
        let one = |(u, c): (&f64, &f64)| c * (0.5 * u.ln() + half * (u.ln() - u) + fixed);
        Factors { factor: self.factor.clone(), constant: self.factor.iter().zip(weights).map(one).collect() }
    }
}

/// Sum of the log density of Student-t noise at squared distances, less what does not depend on the degrees, (M53).
fn log_density(distance: &[f64], weights: &[f64], degrees: f64) -> f64 {
    let half = 0.5 * degrees;
    let each = lgamma(half + 0.5) - lgamma(half) - 0.5 * half.ln();
    distance.iter().zip(weights).map(|(d, c)| c * (each - (half + 0.5) * (d / degrees).ln_1p())).sum()
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
