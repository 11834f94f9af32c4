//! Cross-validation: the search is repeated without each fold of the rows. The held-out rows measure the predictions,
//! choose the sparsity, and show by how much variances are too small.
//!
//! If candidates are landmarks or columns of a given design matrix, and the Hessian is constant, sums over the rows of
//! each fold suffice. One data pass then serves all fits, including the fit to all rows, (M57).

use std::time::Instant;

use ndarray::{Array1, Array2, ArrayView2, Axis};

use crate::canonical::{Fold, all_but};
use crate::design::Design;
use crate::error::{Error, Result};
use crate::memory::afford;
use crate::model::{Model, Moderation};
use crate::query::gaussian_targets::LARGEST;
use crate::report::{HeldOutScores, Interrupt, Observer, Progress, Report, SparsityTrial, Status, Validation};
use crate::rvm::compose::single_fit;
use crate::rvm::data::training_set::TrainingSet;
use crate::rvm::search::driver::FitDriver;
use crate::rvm::settings::rvm::{Rvm, WeightPrior};
use crate::rvm::settings::scheme::Hyperparameters;
use crate::sums::Sums;
use crate::targets::Targets;

/// Default number of folds. If the rows allow fewer, that number is used.
const FOLDS: usize = 5;
/// Grid of sparsities, in nats: from no penalty to the penalty at which at most one kernel remains in a hundred fits to
/// noise.
const SPARSITIES: [f64; 7] = [0.0, 0.5, 1.0, 2.0, 3.0, 5.0, 8.0];
/// Probability of the intervals whose coverage is reported.
const LEVEL: f64 = 0.95;

/// Predictions of the held-out rows of all folds by fits of one sparsity, ordered by fold.
struct HeldOutPredictions {
    /// Predictive means, [N, K] row by row, in original units. Empty for classes.
    mean: Array1<f64>,
    /// Predictive variances, [N, K] row by row, in original units. Empty for classes.
    variance: Array1<f64>,
    /// Half widths of the central 95 % intervals, [N, K] row by row. Infinite for counts, whose coverage is not
    /// reported.
    half_width: Array1<f64>,
    /// Log predictive density under Student-t noise, or log probability of counts, `[N]`. Otherwise empty.
    log_density: Vec<f64>,
    /// Log probability of the class of the row, `[N]`. Empty for regression.
    log_probability: Vec<f64>,
    /// True if the most probable class is the class of the row, `[N]`. Empty for regression.
    right: Vec<bool>,
    /// Number of relevance vectors, summed over the folds.
    vectors: usize,
}

impl HeldOutPredictions {
    /// Returns zeros for `n` held-out rows.
    fn new(training: &TrainingSet, n: usize) -> HeldOutPredictions {
        let own = training.rvm.likelihood.as_dyn();
        let (real, classes) = if training.is_real() { (n * training.outputs, 0) } else { (0, n) };
        HeldOutPredictions {
            mean: Array1::zeros(real),
            variance: Array1::zeros(real),
            half_width: Array1::from_elem(real, f64::INFINITY),
            log_density: vec![0.0; if own.scale_mixture().is_some() || own.counts() { n } else { 0 }],
            log_probability: vec![0.0; classes],
            right: vec![false; classes],
            vectors: 0,
        }
    }

    /// Stores the predictions of a model for the rows of a fold. `before` is the number of rows of the folds before it.
    fn add(&mut self, training: &TrainingSet, model: &Model, fold: &[usize], before: usize) -> Result<()> {
        let x = training.rows.select(Axis(0), fold);
        self.vectors += model.relevance.len();
        if training.rvm.likelihood.as_dyn().counts() {
            let found = model.predict(x.view())?;
            let t: Array1<f64> = fold.iter().map(|n| training.real_target(*n)).collect();
            let e: Array1<f64> = fold.iter().map(|n| training.exposure(*n)).collect();
            let logs = found.count_log_probability(t.view(), Some(e.view()))?;
            for i in 0..fold.len() {
                // The mean of a rate with a very large variance overflows.
                let log_rate = found.mean[i] + 0.5 * found.model_variance[i];
                self.mean[before + i] = e[i] * log_rate.min(LARGEST).exp();
                self.log_density[before + i] = logs[i];
            }
            return Ok(());
        }
        if training.is_real() {
            let found = model.predict_outputs(x.view())?;
            for (k, found) in found.iter().enumerate() {
                let noise: Array1<f64> = fold.iter().map(|n| training.known_variance(*n, k)).collect();
                let (lower, upper) = model.interval(found, LEVEL, training.known_noise.then_some(noise.view()))?;
                let variance = found.variance() + noise;
                for i in 0..fold.len() {
                    let entry = (before + i) * training.outputs + k;
                    (self.mean[entry], self.variance[entry]) = (found.mean[i], variance[i]);
                    self.half_width[entry] = 0.5 * (upper[i] - lower[i]);
                }
            }
            if !self.log_density.is_empty() {
                let t: Array1<f64> = fold.iter().map(|n| training.real_target(*n)).collect();
                let logs = model.log_density(&found[0], t.view(), None)?;
                self.log_density[before..].iter_mut().zip(logs).for_each(|(to, v)| *to = v);
            }
            return Ok(());
        }
        let logs: Array2<f64> = model.predict_log_probability(x.view(), Moderation::Posterior)?;
        for (i, (n, row)) in fold.iter().zip(logs.outer_iter()).enumerate() {
            let own = training.targets[*n] as usize;
            self.log_probability[before + i] = row[own];
            self.right[before + i] = row.iter().enumerate().all(|(k, p)| k == own || *p < row[own]);
        }
        Ok(())
    }

    /// Returns squared errors divided by variances, [N, K] row by row.
    fn squares<'a>(&'a self, t: &'a [f64]) -> impl Iterator<Item = f64> + 'a {
        self.mean.iter().zip(&self.variance).zip(t).map(|((m, v), t)| (t - m).powi(2) / v)
    }

    /// Returns the factor that makes the predictive variances as large as the squared errors on average, at least 1,
    /// (M58). `c` are the weights of the rows.
    fn factor(&self, t: &[f64], c: &[f64]) -> f64 {
        mean(by_rows(self.squares(t), c.len()).into_iter(), c).max(1.0)
    }

    /// Returns the negative log predictive density (or log probability) of each row, summed over the outputs, with
    /// variances multiplied by `factor`.
    fn losses(&self, t: &[f64], rows: usize, factor: f64) -> Vec<f64> {
        if let Some(logs) = [&self.log_probability, &self.log_density].into_iter().find(|logs| !logs.is_empty()) {
            return logs.iter().map(|p| -p).collect();
        }
        let width = |v: f64| (2.0 * std::f64::consts::PI * factor * v).ln();
        let each = self.squares(t).zip(&self.variance).map(|(square, v)| 0.5 * (width(*v) + square / factor));
        let outputs = self.mean.len() as f64 / rows.max(1) as f64;
        by_rows(each, rows).into_iter().map(|mean| outputs * mean).collect()
    }

    /// Returns the scores of the held-out rows with variances multiplied by `factor`. Errors of output k are divided by
    /// `units[k]`, and `c` are the weights of the rows.
    fn scores(&self, t: &[f64], c: &[f64], units: &[f64], factor: f64) -> HeldOutScores {
        let loss = mean(self.losses(t, c.len(), factor).into_iter(), c);
        if self.mean.is_empty() {
            let wrong = self.right.iter().map(|right| f64::from(u8::from(!right)));
            return HeldOutScores { error_rate: Some(mean(wrong, c)), log_loss: Some(loss), ..HeldOutScores::default() };
        }
        let errors = || self.mean.iter().zip(t).zip(units.iter().cycle()).map(|((m, t), unit)| (t - m).abs() / unit);
        let inside = self.mean.iter().zip(t).zip(&self.half_width).map(|((m, t), half)| (t - m).abs() <= factor.sqrt() * half);
        let has_intervals = self.half_width.iter().any(|half| half.is_finite());
        let over_rows = |values: &mut dyn Iterator<Item = f64>| mean(by_rows(values, c.len()).into_iter(), c);
        HeldOutScores {
            rmse: Some(over_rows(&mut errors().map(|e| e * e)).sqrt()),
            mae: Some(over_rows(&mut errors())),
            nlpd: Some(loss),
            coverage: has_intervals.then(|| over_rows(&mut inside.map(|inside| f64::from(u8::from(inside))))),
            ..HeldOutScores::default()
        }
    }
}

/// Returns the mean over the outputs for each row.
fn by_rows(values: impl Iterator<Item = f64>, rows: usize) -> Vec<f64> {
    let values: Vec<f64> = values.collect();
    let outputs = values.len() / rows.max(1);
    values.chunks(outputs.max(1)).map(|row| row.iter().sum::<f64>() / outputs as f64).collect()
}

/// Returns the weighted mean.
fn mean(values: impl Iterator<Item = f64>, c: &[f64]) -> f64 {
    values.zip(c).map(|(v, c)| v * c).sum::<f64>() / c.iter().sum::<f64>()
}

/// Folds of the rows of a training set, and sums over the rows of each fold.
struct Folds {
    parts: Vec<Fold>,
    /// Number of the user's rows in all folds, copies included.
    copies: f64,
    /// Candidates, and sums over the rows of each fold with unscaled columns. `None` if sums do not suffice for a fit.
    sums: Option<(Vec<usize>, Vec<Sums>)>,
}

impl Folds {
    /// Assigns copies of rows to folds, so that targets (of the first output) are spread evenly over the folds. `count`
    /// is the requested number of folds.
    ///
    /// # Errors
    /// Returns an error if there are fewer rows than folds, for classes fewer rows of a class than folds.
    fn new(training: &TrainingSet, count: Option<usize>) -> Result<Folds> {
        let rows: Vec<usize> = (0..training.weights.len()).collect();
        let copies = rows.iter().map(|row| training.copies.count(*row)).sum();
        let most = FoldLimit::of(training, copies);
        let count = match count {
            Some(count) if count as f64 > most.folds => {
                let expected = format!("at most as many folds as there are {} ({})", most.what, most.found);
                return Err(Error::Parameter { name: "cv".into(), found: count.to_string(), expected });
            }
            Some(count) => count,
            None if most.folds < 2.0 => {
                let reason = format!("cross-validation needs at least 2 {} ({})", most.what, most.found);
                return Err(training.rvm.no_validation(&reason));
            }
            None => FOLDS.min(most.folds as usize),
        };
        let outputs = training.targets.len() / rows.len();
        let first = |row: usize| training.targets[row * outputs];
        let parts = training.copies.deal(&rows, first, !training.is_real(), count, training.rvm.seed);
        Ok(Folds { parts, copies, sums: None })
    }

    /// Returns the rows of all folds, fold by fold, with the weight of their copies in the fold.
    fn entries(&self) -> impl Iterator<Item = &(usize, f64)> {
        self.parts.iter().flatten()
    }

    /// Adds sums over the rows of each fold, if these suffice for a fit and take at most a quarter of the memory limit.
    ///
    /// # Errors
    /// Returns an error for too little memory, and for an interrupt.
    fn with_sums(mut self, training: &TrainingSet) -> Result<Folds> {
        let candidates = training.dictionary();
        let p = (candidates.len() + usize::from(training.rvm.bias)) as u64;
        let bytes = 8 * p * p * (self.parts.len() as u64 + 2);
        if training.rvm.has_process(training)?
            || training.candidates_are_rows(candidates.len())
            || !training.sums_suffice(candidates.len())
            || bytes > training.memory_limit / 4
        {
            return Ok(self);
        }
        afford("sums over the rows of each fold", training.taken + bytes, training.memory_limit)?;
        let outputs = training.outputs;
        let (rows, columns) = training.columns(&candidates);
        let design = Design::unscaled(rows, columns, training.rvm.bias, training.memory_limit, training.interrupt.clone());
        let mut sums: Vec<Sums> = self.parts.iter().map(|_| Sums::new(design.n_columns(), outputs)).collect();
        let factor = |n: usize| training.factors.as_ref().map_or(1.0, |factors| factors.factor[n]);
        design.for_each_block(|range, phi| {
            for (fold, sums) in self.parts.iter().zip(&mut sums) {
                let up_to = |row: usize| fold.partition_point(|(n, _)| *n < row);
                let own = &fold[up_to(range.start)..up_to(range.end)];
                let at: Vec<usize> = own.iter().map(|(n, _)| n - range.start).collect();
                let targets = own.iter().flat_map(|(n, _)| &training.targets[n * outputs..(n + 1) * outputs]);
                let (targets, weights): (Vec<f64>, Vec<f64>) =
                    (targets.copied().collect(), own.iter().map(|(n, weight)| weight * factor(*n)).collect());
                sums.accumulate(phi.select(Axis(0), &at).view(), &targets, &weights);
            }
        });
        training.interrupt.check()?;
        // The weights may contain row factors, and `count` must not.
        let finish = |(fold, sums): (&Fold, Sums)| Sums { count: fold.iter().map(|(_, w)| w).sum(), ..sums.finish() };
        let sums = self.parts.iter().zip(sums).map(finish).collect();
        self.sums = Some((candidates, sums));
        Ok(self)
    }

    /// Returns the sums over all rows outside one fold. For `None` they are the sums over all rows.
    fn sums_without(&self, fold: Option<usize>) -> Option<Sums> {
        let (_, sums) = self.sums.as_ref()?;
        let mut kept = sums.iter().enumerate().filter(|(k, _)| Some(*k) != fold).map(|(_, s)| s);
        let mut out = kept.next()?.clone();
        kept.for_each(|s| out.add(s));
        Some(out)
    }

    /// Returns the training set of all rows outside one fold.
    fn training_without<'b>(&self, training: &TrainingSet, rvm: &'b Rvm, fold: usize) -> TrainingSet<'b> {
        match (&self.sums, self.sums_without(Some(fold))) {
            (Some((candidates, _)), Some(sums)) => training.of_sums(rvm, candidates, sums.count),
            _ => training.with_copies(rvm, &all_but(&self.parts, fold)),
        }
    }
}

/// The largest number of folds that the rows of a training set allow.
struct FoldLimit {
    folds: f64,
    /// Kind of rows that limits the folds, in words.
    what: &'static str,
    /// Number of these rows, in words.
    found: String,
}

impl FoldLimit {
    /// Returns the limit: the number of rows `copies`, or the number of rows of the smallest class.
    fn of(training: &TrainingSet, copies: f64) -> FoldLimit {
        if training.is_real() {
            return FoldLimit { folds: copies, what: "rows", found: format!("there are {copies}") };
        }
        let mut classes: Vec<f64> = vec![0.0; training.outputs + 1];
        training.targets.iter().enumerate().for_each(|(n, k)| classes[*k as usize] += training.copies.count(n));
        let (class, folds) = classes.into_iter().enumerate().fold((0, f64::INFINITY), |a, b| if b.1 < a.1 { b } else { a });
        FoldLimit { folds, what: "rows of each class", found: format!("class {class} has {folds}") }
    }
}

/// Fits a model with a known kernel to rows `x`, `[N, D]`, and completes it. `start` is the time at which the fit began.
pub(crate) fn complete_fit(
    rvm: &Rvm,
    x: ArrayView2<f64>,
    targets: &Targets,
    observer: &mut Observer,
    interrupt: &Interrupt,
    start: Instant,
) -> Result<(Model, Report)> {
    let training = TrainingSet::new(rvm, x, targets, interrupt)?;
    let fitted = fit(rvm, &training, observer, interrupt, start)?;
    single_fit::complete(rvm, &training, x, targets, fitted)
}

/// Fits a model to a training set, with cross-validation if the settings ask for it.
pub(crate) fn fit(
    rvm: &Rvm,
    training: &TrainingSet,
    observer: &mut Observer,
    interrupt: &Interrupt,
    start: Instant,
) -> Result<(Model, Report)> {
    match rvm.validates() {
        true => {
            // Folds have fewer rows, and must not choose another prior than the fit to all rows.
            let weight_prior = if rvm.has_process(training)? { WeightPrior::Process } else { WeightPrior::Ard };
            let own = Rvm { weight_prior, ..rvm.clone() };
            Validated { folds: rvm.cv, observer, interrupt: interrupt.clone(), start }.fit(&own, training)
        }
        false => single_fit::learn(rvm, training, None, None, &mut FitDriver::of(rvm, observer, interrupt, start)),
    }
}

/// A fit with cross-validation.
struct Validated<'o, 'f> {
    /// Requested number of folds.
    pub folds: Option<usize>,
    pub observer: &'o mut Observer<'f>,
    pub interrupt: Interrupt,
    pub start: Instant,
}

impl Validated<'_, '_> {
    /// Fits all rows and all folds. Returns the model of all rows with the chosen sparsity, and its report with the
    /// validation.
    pub fn fit(self, rvm: &Rvm, training: &TrainingSet) -> Result<(Model, Report)> {
        let Validated { folds, mut observer, interrupt, start } = self;
        if training.known_noise && rvm.calibrate {
            let expected = "false: variances cannot be calibrated if the noise variance of each row is given".into();
            return Err(Error::Parameter { name: "calibrate".into(), found: "true".into(), expected });
        }
        let folds = Folds::new(training, folds)?.with_sums(training)?;
        let grid: Vec<f64> = if rvm.chooses_sparsity() { SPARSITIES.to_vec() } else { vec![rvm.nats()] };
        let path = Path { rvm, start, interrupt };
        let first = path.step(training, folds.sums_without(None), grid[0], None, &mut observer)?;
        if first.1.status == Status::Stopped {
            return Ok(first);
        }
        let begin = Instant::now();
        // During the fits of the folds, the observer receives the last progress of the fit to all rows.
        let (last_progress, mut stopped) = (first.1.last_progress(), false);
        let mut waiting = |_: &Progress| {
            let shown = last_progress.as_ref().map(|last| Progress { elapsed: start.elapsed(), ..last.clone() });
            stopped |= shown.is_some_and(|shown| observer(&shown).is_break());
            if stopped { std::ops::ControlFlow::Break(()) } else { std::ops::ControlFlow::Continue(()) }
        };
        let found = held_out(&path, training, &folds, &grid, &mut waiting);
        let found = match found {
            // A validation that was ended by the time limit or the observer is incomplete and not reported.
            Ok(None) => None,
            Err(Error::Interrupted) if path.is_late() => None,
            other => other?,
        };
        let Some(found) = found else {
            let status = if stopped { Status::Stopped } else { Status::TimeLimit };
            return Ok((Model { status, ..first.0 }, Report { status, ..first.1 }));
        };
        let (real, outputs) = (training.real_targets(), training.outputs);
        let t: Vec<f64> = match training.is_real() {
            true => folds.entries().flat_map(|(n, _)| &real[n * outputs..(n + 1) * outputs]).copied().collect(),
            false => vec![],
        };
        let c: &[f64] = &folds.entries().map(|(_, weight)| *weight).collect::<Vec<f64>>();
        // Errors of one output are in units of its target. Errors of several outputs are in their standard deviations.
        let units: Vec<f64> = match &training.units[..] {
            [_] => vec![1.0],
            several => several.iter().map(|units| units.scale).collect(),
        };
        let factor = |k: usize| if rvm.calibrate { found[k].factor(&t, c) } else { 1.0 };
        let losses: Vec<Vec<f64>> = found.iter().enumerate().map(|(k, h)| h.losses(&t, c.len(), factor(k))).collect();
        let chosen = choose(&losses, c, folds.copies);
        let (mut model, mut report) = first;
        for nats in &grid[1..=chosen] {
            let (next, after) = path.step(training, folds.sums_without(None), *nats, Some(&model), &mut observer)?;
            (model, report) = (next, combined(report, after));
            model.iterations = report.iterations;
        }
        let variance_factor = rvm.calibrate.then(|| factor(chosen));
        if let (Some(posterior), Some(factor)) = (&mut model.posterior, variance_factor) {
            posterior.variance_factor = Some(factor).filter(|f| *f != 1.0);
        }
        let mean_vectors = |h: &HeldOutPredictions| h.vectors as f64 / folds.parts.len() as f64;
        let trial = |(k, h): (usize, &HeldOutPredictions)| SparsityTrial {
            sparsity: grid[k],
            scores: h.scores(&t, c, &units, factor(k)),
            vectors: mean_vectors(h),
        };
        report.validation = Some(Validation {
            folds: folds.parts.len(),
            rows: folds.copies as usize,
            scores: found[chosen].scores(&t, c, &units, factor(chosen)),
            vectors: mean_vectors(&found[chosen]),
            sparsity: grid[chosen],
            tried: if grid.len() > 1 { found.iter().enumerate().map(trial).collect() } else { vec![] },
            variance_factor,
            shared_landmarks: folds.sums.is_some(),
            seconds: begin.elapsed().as_secs_f64(),
        });
        report.seconds = start.elapsed().as_secs_f64();
        Ok((model, report))
    }
}

/// Fits of increasing sparsity. Each starts at the model of the fit before.
struct Path<'a> {
    rvm: &'a Rvm,
    start: Instant,
    interrupt: Interrupt,
}

impl Path<'_> {
    /// Fits a model with the sparsity `nats`, with a warm start at `from`.
    fn step(
        &self,
        training: &TrainingSet,
        sums: Option<Sums>,
        nats: f64,
        from: Option<&Model>,
        observer: &mut Observer,
    ) -> Result<(Model, Report)> {
        let own = Rvm { sparsity: nats.into(), ..self.rvm.clone() };
        let training = training.with(&own, &training.kernel(), None);
        // A model with a process prior has no precisions for a warm start.
        let from = from.filter(|model| model.process.is_none()).map(Hyperparameters::of);
        single_fit::learn(&own, &training, sums, from.as_ref(), &mut FitDriver::of(&own, observer, &self.interrupt, self.start))
    }

    fn is_late(&self) -> bool {
        self.rvm.time_limit.is_some_and(|limit| self.start.elapsed().as_secs_f64() >= limit)
    }
}

/// Returns the predictions of the rows of each fold by fits to the other folds, for each sparsity of `grid`. Returns
/// `None` if a fit was stopped.
fn held_out(
    path: &Path,
    training: &TrainingSet,
    folds: &Folds,
    grid: &[f64],
    observer: &mut Observer,
) -> Result<Option<Vec<HeldOutPredictions>>> {
    let mut found: Vec<HeldOutPredictions> =
        grid.iter().map(|_| HeldOutPredictions::new(training, folds.entries().count())).collect();
    let mut before = 0;
    for (k, fold) in folds.parts.iter().enumerate() {
        let rows: Vec<usize> = fold.iter().map(|(n, _)| *n).collect();
        let others = all_but(&folds.parts, k);
        let part = folds.training_without(training, path.rvm, k);
        let mut last: Option<Model> = None;
        for (nats, found) in grid.iter().zip(&mut found) {
            // More sparsity does not change a model without relevance vectors.
            if last.as_ref().is_none_or(|last| !last.relevance.is_empty()) {
                let (model, report) = path.step(&part, folds.sums_without(Some(k)), *nats, last.as_ref(), observer)?;
                if matches!(report.status, Status::Stopped | Status::TimeLimit) {
                    return Ok(None);
                }
                last = Some(model);
            }
            let model = last.clone().expect("just fitted");
            found.add(training, &path.rvm.with_kept_rows(training, model, Some(&others))?, &rows, before)?;
        }
        before += fold.len();
    }
    Ok(Some(found))
}

/// Returns the report of two searches, of which the second started at the model of the first.
fn combined(before: Report, mut after: Report) -> Report {
    after.actions.add(&before.actions);
    after.iterations += before.iterations;
    after.trace.splice(..0, before.trace);
    after
}

/// Returns the index of the sparsest fit whose mean loss exceeds the smallest one by at most one standard error of the
/// difference. `losses` are by fit and row, `c` are the weights of the rows, and `copies` is the number of the user's rows.
fn choose(losses: &[Vec<f64>], c: &[f64], copies: f64) -> usize {
    let means: Vec<f64> = losses.iter().map(|l| mean(l.iter().copied(), c)).collect();
    let best = (0..means.len()).fold(0, |best, k| if means[k] < means[best] { k } else { best });
    let close = |k: usize| {
        let gap = means[k] - means[best];
        let spread = losses[k].iter().zip(&losses[best]).map(|(a, b)| (a - b - gap).powi(2));
        let error = (mean(spread, c) / copies).sqrt();
        gap <= error
    };
    (best..means.len()).rev().find(|k| *k == best || close(*k)).unwrap_or(best)
}

impl TrainingSet<'_> {
    /// Returns true if sums over the rows suffice for a search among `columns` candidates.
    fn sums_suffice(&self, columns: usize) -> bool {
        let constant = self.rvm.likelihood.as_dyn().constant_curvature();
        let most = self.rvm.inference.as_dyn().most_columns(constant);
        let plain = self.rvm.likelihood.as_dyn().scale_mixture().is_none();
        constant && plain && most.is_none_or(|most| columns <= most)
    }
}

#[cfg(test)]
mod tests {
    use ndarray::Array1;
    use rand::{RngExt, SeedableRng};
    use rand_pcg::Pcg64;

    use super::*;
    use crate::kernel::Rbf;
    use crate::likelihood::{Bernoulli, Likelihood, Poisson};
    use crate::targets::Targets;

    /// Returns rows with few distinct inputs, targets of few distinct values, and integer and fractional weights.
    fn training(seed: u64, n: usize) -> (Array2<f64>, Array1<f64>, Array1<f64>) {
        let mut random = Pcg64::seed_from_u64(seed);
        let x = Array2::from_shape_simple_fn((n, 1), || f64::from(random.random_range(0..12)));
        let t = x.column(0).mapv(|v| (2.0 + 2.0 * v.sin() + f64::from(random.random_range(0..3))).round());
        let c = Array1::from_shape_simple_fn(n, || [1.0, 1.0, 1.0, 2.0, 3.0, 0.5, 1.5][random.random_range(0..7)]);
        (x, t, c)
    }

    /// The scores of cross-validation equal those of separate fits to the rows outside each fold, weighted by the
    /// copies.
    #[test]
    fn fold_scores_equal_those_of_separate_fits() {
        let kernel = Rbf { gamma: 0.5.into() };
        let plain = |likelihood: Likelihood| Rvm { kernel: kernel.clone().into(), likelihood, ..Rvm::tipping2001() };
        let landmarks = Rvm { dictionary: 6.into(), ..Rvm::tipping2001() };
        for (seed, rvm) in [
            (1, plain(Rvm::default().likelihood)),
            (2, Rvm { kernel: kernel.clone().into(), landmarks: crate::Landmarks::Uniform, ..landmarks }),
            (3, plain(Bernoulli::default().into())),
            (4, plain(Poisson::default().into())),
        ] {
            let (x, t, c) = training(seed, 90);
            let labels: Vec<usize> = t.iter().map(|t| usize::from(*t > 2.0)).collect();
            let classes = rvm.likelihood.is_for_classes();
            let targets = if classes { Targets::classes(&labels, 2) } else { Targets::real(t.view()) };
            let training = TrainingSet::new(&rvm, x.view(), &targets.with_weights(c.view()), &Interrupt::default()).unwrap();
            let folds = Folds::new(&training, Some(4)).unwrap();
            let own = Rvm { cv: Some(4), ..rvm.clone() };
            let fitted = own.fit(x.view(), &targets.with_weights(c.view())).unwrap();
            let scores = fitted.1.validation.unwrap().scores;
            let real = training.real_targets();
            let (mut square, mut loss) = (0.0, 0.0);
            for (k, fold) in folds.parts.iter().enumerate() {
                let rest = all_but(&folds.parts, k);
                let pick = |rows: &Fold| training.rows.select(Axis(0), &rows.iter().map(|(n, _)| *n).collect::<Vec<usize>>());
                let c: Array1<f64> = rest.iter().map(|(_, weight)| *weight).collect();
                let t: Array1<f64> = rest.iter().map(|(n, _)| real[*n]).collect();
                let labels: Vec<usize> = rest.iter().map(|(n, _)| training.targets[*n] as usize).collect();
                let targets = if classes { Targets::classes(&labels, 2) } else { Targets::real(t.view()) };
                // All folds use the landmarks of all rows.
                let mut outside = rvm.clone();
                if folds_share(&rvm) {
                    let chosen: Vec<usize> =
                        training.dictionary().iter().map(|k| training.rows_of(&[*k]).unwrap().1[0]).collect();
                    outside.landmarks = crate::Landmarks::Given(crate::Centres(training.rows.select(Axis(0), &chosen)));
                    outside.dictionary = Rvm::default().dictionary;
                }
                let (model, _) = outside.fit(pick(&rest).view(), &targets.with_weights(c.view())).unwrap();
                let held = pick(fold);
                for (i, (n, weight)) in fold.iter().enumerate() {
                    let row = held.select(Axis(0), &[i]);
                    if classes {
                        let logs = model.predict_log_probability(row.view(), Moderation::Posterior).unwrap();
                        loss -= weight * logs[[0, training.targets[*n] as usize]];
                        continue;
                    }
                    let found = model.predict(row.view()).unwrap();
                    let t = Array1::from_elem(1, real[*n]);
                    let counts = rvm.likelihood.as_dyn().counts();
                    let mean = if counts { found.counts(None).unwrap().mean[0] } else { found.mean[0] };
                    square += weight * (mean - real[*n]).powi(2);
                    loss -= weight
                        * if counts {
                            found.count_log_probability(t.view(), None).unwrap()[0]
                        } else {
                            found.log_density(t.view())[0]
                        };
                }
            }
            let total = c.sum();
            let same = |a: Option<f64>, b: f64| assert!((a.unwrap() - b).abs() < 1e-6 * b.abs(), "{seed}: {a:?} {b}");
            if !classes {
                same(scores.rmse, (square / total).sqrt());
            }
            same(scores.nlpd.or(scores.log_loss), loss / total);
        }
    }

    fn folds_share(rvm: &Rvm) -> bool {
        rvm.dictionary != Rvm::default().dictionary
    }

    /// An input remains a candidate as long as any row has it, whichever rows are left out.
    #[test]
    fn candidates_remain_if_any_row_with_their_input_remains() {
        let x = Array2::from_shape_fn((8, 1), |(i, _)| (i / 2) as f64);
        let t: Array1<f64> = (0..8).map(f64::from).collect();
        let rvm = Rvm { kernel: Rbf { gamma: 1.0.into() }.into(), ..Rvm::tipping2001() };
        let training = TrainingSet::new(&rvm, x.view(), &Targets::real(t.view()), &Interrupt::default()).unwrap();
        for some in [vec![1, 3, 5, 7], vec![0, 3, 4, 7], vec![0, 1, 3, 4, 6]] {
            let (_, rows) =
                training.with(&rvm, &training.kernel(), Some(&some)).rows_of(&[0, 1, 2, 3]).unwrap_or_else(|| unreachable!());
            let inputs: Vec<f64> = rows.iter().map(|row| x[[some[*row], 0]]).collect();
            assert_eq!(inputs, [0.0, 1.0, 2.0, 3.0], "{some:?}");
            assert_eq!(training.with_rows(&rvm, &some).origin.len(), 4, "{some:?}");
        }
        let part = training.with(&rvm, &training.kernel(), Some(&[1, 4, 5]));
        assert_eq!(part.origin.len(), 2);
    }
}
