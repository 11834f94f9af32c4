//! Cross-validation: the search repeated without a part of the rows, for each part. It tells how well rows that were
//! not learnt from are predicted, chooses the sparsity, and says by how much variances are too small.
//!
//! Where candidates are landmarks (or columns of a given design matrix) and the curvature is constant, sums over the
//! rows of each part say all: one pass over the rows serves all fits, the one to all rows included, (M57).

use std::time::Instant;

use ndarray::{Array1, Array2, Axis};
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_pcg::Pcg64;

use super::table::Table;
use super::{Hyperparameters, Rvm};
use crate::design::Design;
use crate::error::{Error, Result};
use crate::memory::afford;
use crate::model::{Model, Moderation};
use crate::report::{HeldOutScores, Interrupt, Observer, Progress, Report, SparsityTrial, Status, Validation};
use crate::sums::Sums;

/// Folds where none are asked for but cross-validation is.
pub(super) const FOLDS: usize = 5;
/// The sparsities to choose among: from the evidence alone to what leaves at most one kernel in a hundred fits to noise.
const SPARSITIES: [f64; 7] = [0.0, 0.5, 1.0, 2.0, 3.0, 5.0, 8.0];
/// Of sparsities whose loss is within so many standard errors (of the difference) of the least, the sparsest is taken.
const STANDARD_ERRORS: f64 = 1.0;
/// Rates beyond it count for that much.
const LARGEST_LOG_RATE: f64 = 300.0;
/// Half the width of the central 95 % of a normal distribution, in standard deviations.
const NORMAL_95: f64 = 1.959_963_984_540_054;

/// What is known of one fit's predictions of rows left out, by row of the table.
struct HeldOut {
    /// Predictive mean and variance, of several outputs [N, K] by rows; empty for classes.
    mean: Array1<f64>,
    variance: Array1<f64>,
    /// Log predictive density under Student-t noise, log probability of counts; else empty.
    log_density: Vec<f64>,
    /// Log probability of the row's class; empty in regression.
    log_probability: Vec<f64>,
    /// Whether the most probable class is the row's.
    right: Vec<bool>,
    /// Relevance vectors, summed over the folds.
    vectors: usize,
}

impl HeldOut {
    fn new(table: &Table) -> HeldOut {
        let n = table.weights.len();
        let own = table.rvm.likelihood.as_dyn();
        let (real, classes) = if table.is_real() { (table.targets.len(), 0) } else { (0, n) };
        HeldOut {
            mean: Array1::zeros(real),
            variance: Array1::zeros(real),
            log_density: vec![0.0; if own.scale_mixture().is_some() || own.counts() { n } else { 0 }],
            log_probability: vec![0.0; classes],
            right: vec![false; classes],
            vectors: 0,
        }
    }

    /// Predictions of a model of the rows of a fold.
    fn add(&mut self, table: &Table, model: &Model, fold: &[usize]) -> Result<()> {
        let x = table.rows.select(Axis(0), fold);
        self.vectors += model.relevance.len();
        if table.rvm.likelihood.as_dyn().counts() {
            let found = model.predict(x.view())?;
            let t: Array1<f64> = fold.iter().map(|n| table.real_target(*n)).collect();
            let e: Array1<f64> = fold.iter().map(|n| table.exposure(*n)).collect();
            let logs = found.count_log_probability(t.view(), Some(e.view()))?;
            for (i, n) in fold.iter().enumerate() {
                // Of rates that nothing is known of the mean is beyond all numbers.
                self.mean[*n] = e[i] * (found.mean[i] + 0.5 * found.model_variance[i]).min(LARGEST_LOG_RATE).exp();
                self.log_density[*n] = logs[i];
            }
            return Ok(());
        }
        if table.is_real() {
            let found = model.predict_outputs(x.view())?;
            for (k, found) in found.iter().enumerate() {
                for ((n, mean), variance) in fold.iter().zip(&found.mean).zip(&found.variance()) {
                    let place = n * table.outputs + k;
                    (self.mean[place], self.variance[place]) = (*mean, *variance + table.known_variance(*n, k));
                }
            }
            if !self.log_density.is_empty() {
                let t: Array1<f64> = fold.iter().map(|n| table.real_target(*n)).collect();
                fold.iter().zip(found[0].log_density(t.view())).for_each(|(n, density)| self.log_density[*n] = density);
            }
            return Ok(());
        }
        let logs: Array2<f64> = model.predict_log_probability(x.view(), Moderation::Posterior)?;
        for (n, row) in fold.iter().zip(logs.outer_iter()) {
            let own = table.targets[*n] as usize;
            self.log_probability[*n] = row[own];
            self.right[*n] = row.iter().enumerate().all(|(k, p)| k == own || *p < row[own]);
        }
        Ok(())
    }

    /// Squared errors over variances, as they are kept.
    fn squares<'a>(&'a self, t: &'a [f64]) -> impl Iterator<Item = f64> + 'a {
        self.mean.iter().zip(&self.variance).zip(t).map(|((m, v), t)| (t - m).powi(2) / v)
    }

    /// What the variances have to be multiplied by to be as large as the squared errors are, but at least 1, (M58).
    fn factor(&self, t: &[f64], c: &[f64]) -> f64 {
        mean(by_rows(self.squares(t), c.len()).into_iter(), c).max(1.0)
    }

    /// Negative log predictive density by row (of several outputs their sum), variances multiplied by `factor`.
    fn losses(&self, t: &[f64], rows: usize, factor: f64) -> Vec<f64> {
        if let Some(logs) = [&self.log_probability, &self.log_density].into_iter().find(|logs| !logs.is_empty()) {
            return logs.iter().map(|p| -p).collect();
        }
        let width = |v: f64| (2.0 * std::f64::consts::PI * factor * v).ln();
        let each = self.squares(t).zip(&self.variance).map(|(square, v)| 0.5 * (width(*v) + square / factor));
        let outputs = self.mean.len() as f64 / rows.max(1) as f64;
        by_rows(each, rows).into_iter().map(|mean| outputs * mean).collect()
    }

    /// `units`: what the errors of each output are told in, `[K]`.
    fn scores(&self, t: &[f64], c: &[f64], units: &[f64], factor: f64) -> HeldOutScores {
        let loss = mean(self.losses(t, c.len(), factor).into_iter(), c);
        if self.mean.is_empty() {
            let wrong = self.right.iter().map(|right| f64::from(u8::from(!right)));
            return HeldOutScores { error_rate: Some(mean(wrong, c)), log_loss: Some(loss), ..HeldOutScores::default() };
        }
        let errors = || self.mean.iter().zip(t).zip(units.iter().cycle()).map(|((m, t), unit)| (t - m).abs() / unit);
        let inside = self.squares(t).map(|square| f64::from(u8::from(square <= factor * NORMAL_95 * NORMAL_95)));
        let over_rows = |values: &mut dyn Iterator<Item = f64>| mean(by_rows(values, c.len()).into_iter(), c);
        HeldOutScores {
            rmse: Some(over_rows(&mut errors().map(|e| e * e)).sqrt()),
            mae: Some(over_rows(&mut errors())),
            nlpd: Some(loss),
            // By the normal distribution.
            coverage: self.log_density.is_empty().then(|| over_rows(&mut { inside })),
            ..HeldOutScores::default()
        }
    }
}

/// Means over the outputs, by row.
fn by_rows(values: impl Iterator<Item = f64>, rows: usize) -> Vec<f64> {
    let values: Vec<f64> = values.collect();
    let outputs = values.len() / rows.max(1);
    values.chunks(outputs.max(1)).map(|row| row.iter().sum::<f64>() / outputs as f64).collect()
}

/// Mean by weight.
fn mean(values: impl Iterator<Item = f64>, c: &[f64]) -> f64 {
    values.zip(c).map(|(v, c)| v * c).sum::<f64>() / c.iter().sum::<f64>()
}

/// How the rows of a table are parted, and sums over each part where they say all.
struct Folds {
    /// Rows of each, ascending.
    rows: Vec<Vec<usize>>,
    /// The candidates, and sums over the rows of each fold of their columns as they are.
    sums: Option<(Vec<usize>, Vec<Sums>)>,
}

impl Folds {
    /// Folds of rows whose targets are alike: of each `count` neighbours in the order of the targets one goes to each.
    fn new(table: &Table, count: usize) -> Result<Folds> {
        let n = table.weights.len();
        let bad = |expected: String| Err(Error::Parameter { name: "cv".into(), found: count.to_string(), expected });
        if count > n {
            return bad(format!("at most as many folds as there are different rows, {n}"));
        }
        let mut order: Vec<usize> = (0..n).collect();
        let mut random = Pcg64::seed_from_u64(table.rvm.seed);
        order.shuffle(&mut random);
        // Of several outputs those of the first.
        let first = |row: usize| table.targets[row * (table.targets.len() / n)];
        order.sort_by(|i, j| first(*i).total_cmp(&first(*j)));
        if !table.is_real() {
            let same = order.chunk_by(|i, j| table.targets[*i] == table.targets[*j]);
            if let Some(class) = same.min_by_key(|rows| rows.len()).filter(|rows| rows.len() < count) {
                let (k, n) = (table.targets[class[0]], class.len());
                return bad(format!("at most as many folds as there are different rows of each class, {n} of class {k}"));
            }
        }
        let mut rows = vec![Vec::new(); count];
        let mut turn: Vec<usize> = (0..count).collect();
        for (place, n) in order.into_iter().enumerate() {
            if place % count == 0 {
                turn.shuffle(&mut random);
            }
            rows[turn[place % count]].push(n);
        }
        rows.iter_mut().for_each(|fold| fold.sort_unstable());
        Ok(Folds { rows, sums: None })
    }

    /// With sums over the rows of each where they say all and fit into memory.
    fn with_sums(mut self, table: &Table) -> Result<Folds> {
        let places = table.dictionary();
        let p = (places.len() + usize::from(table.rvm.bias)) as u64;
        let bytes = 8 * p * p * (self.rows.len() as u64 + 2);
        if table.candidates_are_rows(places.len()) || !table.sums_say_all(places.len()) || bytes > table.memory_limit / 4 {
            return Ok(self);
        }
        afford("sums over the rows of each fold", table.taken + bytes, table.memory_limit)?;
        let outputs = table.outputs;
        let mut fold_of = vec![0; table.weights.len()];
        self.rows.iter().enumerate().for_each(|(k, fold)| fold.iter().for_each(|n| fold_of[*n] = k));
        let (rows, columns) = table.columns(&places);
        let design = Design::unscaled(rows, columns, table.rvm.bias, table.memory_limit, table.interrupt.clone());
        let mut sums: Vec<Sums> = self.rows.iter().map(|_| Sums::new(design.n_columns(), outputs)).collect();
        design.for_each_block(|range, phi| {
            for (k, sums) in sums.iter_mut().enumerate() {
                let own: Vec<usize> = range.clone().filter(|n| fold_of[*n] == k).collect();
                let at: Vec<usize> = own.iter().map(|n| n - range.start).collect();
                let targets = own.iter().flat_map(|n| &table.targets[n * outputs..(n + 1) * outputs]);
                let (targets, weights): (Vec<f64>, Vec<f64>) =
                    (targets.copied().collect(), own.iter().map(|n| table.weights[*n]).collect());
                sums.accumulate(phi.select(Axis(0), &at).view(), &targets, &weights);
            }
        });
        table.interrupt.check()?;
        // The weights may hold factors.
        let count = |fold: &Vec<usize>, sums: &Sums| if table.factors.is_some() { table.count_of(fold).0 } else { sums.count };
        let finish = |(fold, sums): (&Vec<usize>, Sums)| Sums { count: count(fold, &sums), ..sums.finish() };
        let sums = self.rows.iter().zip(sums).map(finish).collect();
        self.sums = Some((places, sums));
        Ok(self)
    }

    /// Sums over all rows but those of a fold; over all.
    fn sums_without(&self, fold: Option<usize>) -> Option<Sums> {
        let (_, sums) = self.sums.as_ref()?;
        let mut kept = sums.iter().enumerate().filter(|(k, _)| Some(*k) != fold).map(|(_, s)| s);
        let mut out = kept.next()?.clone();
        kept.for_each(|s| out.add(s));
        Some(out)
    }

    /// The table of all rows but those of a fold.
    fn table_without<'b>(&self, table: &Table, rvm: &'b Rvm, fold: usize) -> Table<'b> {
        match (&self.sums, self.sums_without(Some(fold))) {
            (Some((places, _)), Some(sums)) => {
                table.of_sums(rvm, places, sums.count, table.weights.len() - self.rows[fold].len())
            }
            _ => table.with(rvm, &table.kernel(), Some(&self.without(fold))),
        }
    }

    /// Rows of all folds but one, ascending.
    fn without(&self, fold: usize) -> Vec<usize> {
        let others = self.rows.iter().enumerate().filter(|(k, _)| *k != fold);
        let mut rows: Vec<usize> = others.flat_map(|(_, rows)| rows.iter().copied()).collect();
        rows.sort_unstable();
        rows
    }
}

/// A fit with cross-validation.
pub(super) struct Validated<'o, 'f> {
    pub folds: usize,
    pub observer: &'o mut Observer<'f>,
    pub interrupt: Interrupt,
    pub start: Instant,
}

impl Validated<'_, '_> {
    /// The fit to all rows, and what the folds say of it.
    pub fn fit(self, rvm: &Rvm, table: &Table) -> Result<(Model, Report)> {
        let Validated { folds, mut observer, interrupt, start } = self;
        if table.known_noise && rvm.calibrate {
            let expected = "false: the noise of each row is given, and not to be multiplied".into();
            return Err(Error::Parameter { name: "calibrate".into(), found: "true".into(), expected });
        }
        let folds = Folds::new(table, folds)?.with_sums(table)?;
        let grid: Vec<f64> = if rvm.chooses_sparsity() { SPARSITIES.to_vec() } else { vec![rvm.sparsity.nats()] };
        let path = Path { rvm, start, interrupt };
        let first = path.step(table, folds.sums_without(None), grid[0], None, &mut observer)?;
        if first.1.status == Status::Stopped {
            return Ok(first);
        }
        let begin = Instant::now();
        // What there is to show does not change meanwhile.
        let (shown, mut stopped) = (first.1.last_progress(), false);
        let mut waiting = |_: &Progress| {
            let told = shown.as_ref().map(|last| Progress { elapsed: start.elapsed(), ..last.clone() });
            stopped |= told.is_some_and(|told| observer(&told).is_break());
            if stopped { std::ops::ControlFlow::Break(()) } else { std::ops::ControlFlow::Continue(()) }
        };
        let found = held_out(&path, table, &folds, &grid, &mut waiting);
        let found = match found {
            // What the time, or the observer, has cut short says nothing of the folds left.
            Ok(None) => None,
            Err(Error::Interrupted) if path.is_late() => None,
            other => other?,
        };
        let Some(found) = found else {
            let status = if stopped { Status::Stopped } else { Status::TimeLimit };
            return Ok((Model { status, ..first.0 }, Report { status, ..first.1 }));
        };
        let (t, c) = (table.real_targets(), &*table.sample_weights());
        // Those of one output in units of its target, of several in their standard deviations.
        let units: Vec<f64> = match &table.units[..] {
            [_] => vec![1.0],
            several => several.iter().map(|units| units.scale).collect(),
        };
        let factor = |k: usize| if rvm.calibrate { found[k].factor(&t, c) } else { 1.0 };
        let chosen = choose(&found.iter().enumerate().map(|(k, h)| h.losses(&t, c.len(), factor(k))).collect::<Vec<_>>(), c);
        let (mut model, mut report) = first;
        for nats in &grid[1..=chosen] {
            let (next, after) = path.step(table, folds.sums_without(None), *nats, Some(&model), &mut observer)?;
            (model, report) = (next, on_from(report, after));
            model.iterations = report.iterations;
        }
        let variance_factor = rvm.calibrate.then(|| factor(chosen));
        if let (Some(posterior), Some(factor)) = (&mut model.posterior, variance_factor) {
            posterior.variance_factor = Some(factor).filter(|f| *f != 1.0);
        }
        let mean_vectors = |h: &HeldOut| h.vectors as f64 / folds.rows.len() as f64;
        let trial = |(k, h): (usize, &HeldOut)| SparsityTrial {
            sparsity: grid[k],
            scores: h.scores(&t, c, &units, factor(k)),
            vectors: mean_vectors(h),
        };
        report.validation = Some(Validation {
            folds: folds.rows.len(),
            rows: table.weights.len(),
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

/// Fits of growing sparsity, each from the model of the one before.
struct Path<'a> {
    rvm: &'a Rvm,
    start: Instant,
    interrupt: Interrupt,
}

impl Path<'_> {
    fn step(
        &self,
        table: &Table,
        sums: Option<Sums>,
        nats: f64,
        from: Option<&Model>,
        observer: &mut Observer,
    ) -> Result<(Model, Report)> {
        let own = Rvm { sparsity: nats.into(), ..self.rvm.clone() };
        let table = table.with(&own, &table.kernel(), None);
        let from = from.map(Hyperparameters::of);
        own.learn_from(&table, sums, from.as_ref(), &mut own.watch(observer, &self.interrupt, self.start))
    }

    fn is_late(&self) -> bool {
        self.rvm.time_limit.is_some_and(|limit| self.start.elapsed().as_secs_f64() >= limit)
    }
}

/// Predictions of the rows of each fold by fits to the others, for each sparsity of `grid`; nothing if one was cut
/// short.
fn held_out(path: &Path, table: &Table, folds: &Folds, grid: &[f64], observer: &mut Observer) -> Result<Option<Vec<HeldOut>>> {
    let mut found: Vec<HeldOut> = grid.iter().map(|_| HeldOut::new(table)).collect();
    for (k, fold) in folds.rows.iter().enumerate() {
        let part = folds.table_without(table, path.rvm, k);
        let mut last: Option<Model> = None;
        for (nats, found) in grid.iter().zip(&mut found) {
            // Of a model without kernels more sparsity leaves the same.
            if last.as_ref().is_none_or(|last| !last.relevance.is_empty()) {
                let (model, report) = path.step(&part, folds.sums_without(Some(k)), *nats, last.as_ref(), observer)?;
                if matches!(report.status, Status::Stopped | Status::TimeLimit) {
                    return Ok(None);
                }
                last = Some(model);
            }
            let model = last.clone().expect("just fitted");
            found.add(table, &path.rvm.with_kept_rows(table, model, Some(&folds.without(k)))?, fold)?;
        }
    }
    Ok(Some(found))
}

/// The report of a search that went on from the end of another.
fn on_from(before: Report, mut after: Report) -> Report {
    after.actions.add(&before.actions);
    after.iterations += before.iterations;
    after.trace.splice(..0, before.trace);
    after
}

/// The sparsest fit whose mean loss is as good as the least, up to chance; `losses` by fit and row.
fn choose(losses: &[Vec<f64>], c: &[f64]) -> usize {
    let means: Vec<f64> = losses.iter().map(|l| mean(l.iter().copied(), c)).collect();
    let best = (0..means.len()).fold(0, |best, k| if means[k] < means[best] { k } else { best });
    let close = |k: usize| {
        let gap = means[k] - means[best];
        let spread = losses[k].iter().zip(&losses[best]).map(|(a, b)| (a - b - gap).powi(2));
        let error = (mean(spread, c) / c.len() as f64).sqrt();
        gap <= STANDARD_ERRORS * error
    };
    (best..means.len()).rev().find(|k| *k == best || close(*k)).unwrap_or(best)
}

/// Whether sums over the rows say all that a search needs to know of them.
impl Table<'_> {
    fn sums_say_all(&self, columns: usize) -> bool {
        let constant = self.rvm.likelihood.as_dyn().constant_curvature();
        let most = self.rvm.inference.as_dyn().most_columns(constant);
        let plain = self.rvm.likelihood.as_dyn().scale_mixture().is_none();
        constant && plain && self.rvm.refresh == 0 && most.is_none_or(|most| columns <= most)
    }
}
