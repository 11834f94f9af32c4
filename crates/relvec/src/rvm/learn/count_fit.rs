//! Fits counts under the process prior, (M96): the amplitude of a sample of the rows, the centres, and the weights at the
//! mode.
//!
//! On a large training set, a count stands for a Gaussian target with a known noise variance, by the expansion of its
//! log-likelihood, and the weights are those of such targets.

use std::f64::consts::PI;

use ndarray::{ArrayView2, Axis, concatenate};

use crate::canonical::random_subset;
use crate::error::Result;
use crate::likelihood::{Gaussian, Working};
use crate::model::{Expansion, FittedBasis, MOST_EXPECTED, Model, PosteriorRule};
use crate::process::fitc_counts::{Counts, expanded};
use crate::process::fitc_maximum::{Maximum, Prior};
use crate::process::pivoted_cholesky::Pivots;
use crate::process::{Hyper, Learned};
use crate::query::gaussian_targets::LARGEST;
use crate::query::merged_rows::DistinctRows;
use crate::query::pass::{AllRows, Pass};
use crate::report::{Certificate, Report, Status};
use crate::rvm::data::noise::{NoisePrecision, RowFactors, Units};
use crate::rvm::data::training_set::TrainingSet;
use crate::rvm::learn::kernel_choice::{self, ROWS};
use crate::rvm::learn::process_prior::bare;
use crate::rvm::search::driver::FitDriver;
use crate::rvm::search::outer_loop;
use crate::rvm::settings::rvm::{Rvm, WeightPrior};

/// Change of the log rates of many rows in nats, 1/2 sum of precision times squared change, below which Newton's method has
/// converged. The next step would change them by about the square of this.
const CHANGE: f64 = 1e-3;
/// Rise of the log amplitude from which centres are chosen again. Without this choice, 3 of about 2,400 fits to tables of 20 to
/// 150 rows, with polynomial kernels, expected 100 to 10^6 times the counts.
const MORE: f64 = 0.5;
/// Largest number of steps of Newton's method on many rows. Most fits take three.
const MOST_STEPS: usize = 20;

impl Rvm {
    /// Fits a model with the process prior to the counts of all rows, of which `training` is a sample, or to the training
    /// set if `pass` is `None`.
    pub(in crate::rvm) fn fit_counts(
        &self,
        training: &TrainingSet,
        pass: Option<&mut Pass>,
        driver: &mut FitDriver,
    ) -> Result<(Model, Report)> {
        if training.adjustments.constant_target {
            return outer_loop::search(self, training, None, None, driver);
        }
        let learned = self.learned_of(training)?;
        let variance = kernel_choice::variance_of_log_rates(training);
        // The process of the log rates has units of their standard deviation. The noise variance of counts is 1.
        let hyper = Hyper { log_amplitude: learned.hyper.log_amplitude + variance.ln(), log_noise: 0.0 };
        let prior = Prior { kernel: learned.kernel.clone(), hyper, structure: !training.bias_only, log_rates: true };
        let (prior, first) = self.process_of_some_counts(training, prior, variance)?;
        if pass.is_some() || self.fits_many(training)? {
            let hyper = Hyper { log_amplitude: prior.hyper.log_amplitude - variance.ln(), log_noise: -variance.ln() };
            let learned = Learned { hyper, has_structure: prior.structure, ..learned };
            return self.fit_many_counts(training, &learned, variance, first, pass, driver);
        }
        let first = self.log_rates(training, &first)?;
        let searched = outer_loop::search(self, &training.centred(), None, None, driver)?;
        let OfCounts { model, report, .. } = self.process_of_counts(training, &prior, variance, &first, &searched)?;
        Ok((model, report))
    }

    /// Fits the process `prior` to at most [`ROWS`] counts. Returns it with their amplitude, without structure if the evidence
    /// of a constant rate is higher, and the model.
    fn process_of_some_counts(&self, training: &TrainingSet, mut prior: Prior, variance: f64) -> Result<(Prior, Model)> {
        let all = training.rows.nrows();
        let some = random_subset(all, ROWS, self.seed);
        let sample = training.with(self, &training.kernel(), Some(&some));
        let first = kernel_choice::log_rates(&sample);
        let report = Report::of_end(Status::Converged, vec![], Certificate::of_reason(""), 0.0);
        let none = (bare(&sample, &prior.kernel), report);
        let mut found = self.process_of_counts(&sample, &prior, variance, &first, &none)?;
        // All rows may show structure that some of them do not.
        if some.len() == all && prior.structure {
            let without = Prior { structure: false, kernel: prior.kernel.clone(), ..prior };
            let constant = self.process_of_counts(&sample, &without, variance, &first, &none)?;
            if found.log_evidence < constant.log_evidence {
                (prior.structure, found) = (false, constant);
            }
        }
        let amplitude = found.model.process.as_ref().map_or(0.0, |process| process.amplitude);
        if amplitude > 0.0 {
            prior.hyper.log_amplitude = amplitude.ln();
        }
        Ok((prior, found.model))
    }

    /// Returns the log rates of the rows under a model of counts, `[N]`, relative to that of one count per mean exposure.
    fn log_rates(&self, training: &TrainingSet, model: &Model) -> Result<Vec<f64>> {
        let log_rates = model.predict_mean(training.rows.view())?;
        Ok(log_rates.iter().map(|f| (f - training.log_rate).clamp(-LARGEST, LARGEST)).collect())
    }

    /// Fits the process `prior` to counts, over centres that are added to the relevance vectors of a search. `first` are log
    /// rates of the rows near the mode, `[N]`, and `variance` is the variance in which the prior of the amplitude is expressed.
    fn process_of_counts(
        &self,
        training: &TrainingSet,
        prior: &Prior,
        variance: f64,
        first: &[f64],
        searched: &(Model, Report),
    ) -> Result<OfCounts> {
        let all: Vec<usize> = (0..training.rows.nrows()).collect();
        let rows = training.distinct_rows(&all);
        let even = rows.without_copies(&training.users_rows(&all));
        let column = ArrayView2::from_shape((all.len(), 1), first).expect("a log rate for each row");
        let factors: Vec<f64> = all.iter().map(|n| training.factor(*n)).collect();
        let first =
            DistinctRows::new(training.rows.view(), column, &training.sample_weights(), &factors).t.into_raw_vec_and_offset().0;
        // Terms of the log-likelihood without the log rates.
        let Working { log_likelihood, .. } = self.likelihood.as_dyn().working(&training.targets, &vec![0.0; all.len()]);
        let rest =
            training.weights.iter().zip(&log_likelihood).map(|(w, log)| w * (log + 1.0)).sum::<f64>() + training.log_constant();
        let chosen = expanded(&even, &first, &vec![0.0; first.len()]);
        let mut log_amplitude = prior.hyper.log_amplitude;
        loop {
            let prior = Prior { kernel: prior.kernel.clone(), hyper: Hyper { log_amplitude, ..prior.hyper }, ..*prior };
            let (mut averaged, mut log_evidence) = (false, 0.0);
            // The expected rate grows with the variance of the log rate.
            let amplitude = log_amplitude.exp();
            let left = |pivots: &Pivots| {
                let of_row = |(c, d): (&f64, &f64)| c * amplitude * d * (0.5 * amplitude * d).exp();
                chosen.weights.iter().zip(pivots.residual()).map(of_row).sum::<f64>() / chosen.len() as f64
            };
            let (mut model, report) = self.over_centres(training, searched.clone(), &prior, &chosen, left, |over| {
                let counts = |rows| Counts { rows, features: over.features, residual: over.residual, bias: self.bias };
                let (peak, mode) = counts(&even).maximise(&prior, &first, over.size, variance, &training.interrupt)?;
                log_evidence = peak.log_evidence;
                let averages = |f: &[f64], v: &[f64]| match self.posterior {
                    PosteriorRule::Laplace => false,
                    PosteriorRule::Averaged => true,
                    PosteriorRule::Auto => expects_too_much(&rows, f, v),
                };
                let fitted = counts(&rows).fit(peak, &mode, averages)?;
                averaged = fitted.averaged;
                Ok((Maximum { log_evidence: fitted.peak.log_evidence + rest, ..fitted.peak }, fitted.weights))
            })?;
            let found = model.process.as_ref().map_or(0.0, |process| process.amplitude).ln();
            if found <= log_amplitude + MORE || training.interrupt.is_late() {
                model.posterior.iter_mut().for_each(|posterior| posterior.averaged = averaged);
                return Ok(OfCounts { model, report, log_evidence });
            }
            // The centres were chosen for a smaller amplitude.
            log_amplitude = found;
        }
    }

    /// Fits a process prior to many counts by steps of Newton's method, each of which is a fit to Gaussian targets. `at` is a
    /// model near the mode. The rows are those of `training`, or of a source of which `training` is a sample.
    fn fit_many_counts(
        &self,
        training: &TrainingSet,
        learned: &Learned,
        variance: f64,
        mut at: Model,
        mut pass: Option<&mut Pass>,
        driver: &mut FitDriver,
    ) -> Result<(Model, Report)> {
        let own = Rvm { likelihood: Gaussian::default().into(), weight_prior: WeightPrior::Process, ..self.clone() };
        let units = Units { scale: variance.sqrt(), mean: 0.0 };
        let averaged = self.posterior == PosteriorRule::Averaged;
        let (mut f, mut more, mut steps) = (self.log_rates(training, &at)?, vec![0.0; training.rows.nrows()], 0);
        loop {
            let fixed = gaussian(&own, training, &units, learned, &f, &more);
            let (mut model, mut report) = match &mut pass {
                None => own.fit_many(&fixed, driver)?,
                Some(pass) => {
                    // The rows need the mean alone.
                    let mean = Model { posterior: None, process: None, alpha: vec![], ..at.clone() };
                    pass.set_model(mean, units.scale, training.log_rate / units.scale);
                    own.fit_by_sums(&fixed, &AllRows::Asked(pass), driver)?
                }
            };
            steps += 1;
            let found = model.predict(training.rows.view())?;
            let half = |(w, (a, b)): (&f64, (&f64, &f64))| 0.5 * w * (a - b).powi(2);
            let change: f64 = fixed.weights.iter().zip(found.mean.iter().zip(&f)).map(half).sum();
            let (next, share) = damped(&f, &found.mean.to_vec());
            f = next;
            if averaged {
                more = found.model_variance.iter().zip(&more).map(|(v, old)| 0.5 * (0.5 * v + old)).collect();
            }
            if pass.is_none() {
                model.log_evidence = model.log_evidence.map(|evidence| evidence + remainder(training, &fixed, &f));
            }
            model.likelihood = Some(self.likelihood.clone());
            model.expansion.intercept[0] += training.log_rate;
            if let Some(posterior) = &mut model.posterior {
                (posterior.noise_variance, posterior.averaged) = (None, averaged);
            }
            let late = training.interrupt.is_late();
            if change > CHANGE && steps < MOST_STEPS && !late {
                at = between(&at, model, share);
                continue;
            }
            if change > CHANGE && report.status == Status::Converged {
                report.status = if late { Status::TimeLimit } else { Status::IterationLimit };
                model.status = report.status;
            }
            return Ok((model, report));
        }
    }
}

/// Returns a model whose mean is that of `old` plus `share` of the way to `new`. Its centres are those of both.
fn between(old: &Model, new: Model, share: f64) -> Model {
    if share == 1.0 {
        return new;
    }
    let parts = [(old, 1.0 - share), (&new, share)];
    let centres = parts.map(|(model, _)| match &model.expansion.basis {
        FittedBasis::Kernel { centres, .. } => centres.view(),
        _ => unreachable!("a model with a process prior has a kernel and centres"),
    });
    let weights = parts.map(|(model, share)| &model.expansion.weights * share);
    let expansion = Expansion {
        basis: FittedBasis::Kernel {
            kernel: new.kernel().expect("it has centres").clone(),
            centres: concatenate![Axis(0), centres[0], centres[1]],
        },
        weights: concatenate![Axis(0), weights[0], weights[1]],
        intercept: vec![parts.iter().map(|(model, share)| model.expansion.intercept[0] * share).sum()],
    };
    Model { relevance: (0..expansion.weights.nrows()).collect(), expansion, ..new }
}

/// Returns log rates between `old` and `new`, `[N]`, and the share of the way. The expansion is a lower bound of the log-likelihood for log rates that
/// fall. If the largest rise is r, the share log(1 + r) / r of the step raises the log posterior.
fn damped(old: &[f64], new: &[f64]) -> (Vec<f64>, f64) {
    let rise = new.iter().zip(old).fold(0.0, |most: f64, (new, old)| most.max(new - old));
    let share = if rise > 0.0 { rise.ln_1p() / rise } else { 1.0 };
    (new.iter().zip(old).map(|(new, old)| (old + share * (new - old)).clamp(-LARGEST, LARGEST)).collect(), share)
}

/// Returns the log-likelihood of counts at log rates `f`, `[N]`, minus that of the Gaussian targets of `fixed`.
fn remainder(training: &TrainingSet, fixed: &TrainingSet, f: &[f64]) -> f64 {
    let Working { log_likelihood, .. } = training.rvm.likelihood.as_dyn().working(&training.targets, f);
    let counts: f64 = training.weights.iter().zip(&log_likelihood).map(|(w, log)| w * log).sum();
    let gaussian: f64 = (0..f.len()).map(|n| log_gaussian(fixed, n, f[n])).sum();
    counts + training.log_constant() - gaussian
}

/// A model of counts, its report, and the log evidence from which its amplitude was learned.
struct OfCounts {
    model: Model,
    report: Report,
    log_evidence: f64,
}

/// Returns true if a posterior with variances `v` of the log rates `f` expects more than [`MOST_EXPECTED`] times the counts
/// at the mode.
fn expects_too_much(rows: &DistinctRows, f: &[f64], v: &[f64]) -> bool {
    let rates = |share: f64| -> f64 { f.iter().zip(v).zip(&rows.weights).map(|((f, v), w)| w * (f + share * v).exp()).sum() };
    // The sum may be infinite as well.
    !(rates(0.5) <= MOST_EXPECTED * rates(0.0))
}

/// Returns the training set of the Gaussian targets that have the slope and the curvature of the log-likelihood at the log
/// rates `f`, `[N]`. The curvature is that at `f` + `more`.
fn gaussian<'b>(
    own: &'b Rvm,
    training: &TrainingSet,
    units: &Units,
    learned: &Learned,
    f: &[f64],
    more: &[f64],
) -> TrainingSet<'b> {
    let Working { residual, .. } = training.rvm.likelihood.as_dyn().working(&training.targets, f);
    let curvature: Vec<f64> = f.iter().zip(more).map(|(f, more)| (f + more).exp()).collect();
    let factor: Vec<f64> = curvature.iter().enumerate().map(|(n, w)| training.factor(n) * w).collect();
    let constant = factor.iter().zip(&*training.sample_weights()).map(|(u, c)| 0.5 * c * u.ln()).collect();
    TrainingSet {
        targets: (0..f.len()).map(|n| (f[n] + residual[n] / curvature[n]) / units.scale).collect(),
        log_rate: 0.0,
        known_noise: true,
        units: vec![units.clone()],
        noise: vec![NoisePrecision::Fixed(units.scale * units.scale)],
        learned: Some(learned.clone()),
        ..training.with_factors(own, RowFactors { factor, constant })
    }
}

/// Returns the log density of the Gaussian target of a row at a log rate, times its sample weight.
fn log_gaussian(fixed: &TrainingSet, row: usize, log_rate: f64) -> f64 {
    let precision = fixed.factor(row);
    let squared = (fixed.real_target(row) - log_rate).powi(2);
    0.5 * fixed.weights[row] / precision * ((precision / (2.0 * PI)).ln() - precision * squared)
}
