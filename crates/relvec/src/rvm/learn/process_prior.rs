//! The process prior of the weights, (M70) to (M72). Centres are added to the relevance vectors of the search until
//! they span the process, and then its amplitude and noise are fitted again.
//!
//! For large training sets, centres are drawn at random, without a search. The residual of the prior, and the first
//! amplitude and noise variance, are those of a sample of the rows. The weights follow from sums over all rows.

use std::time::Instant;

use ndarray::{Array2, ArrayView2, Axis, concatenate, s};

use crate::canonical::random_subset;
use crate::design::{Basis, Columns};
use crate::error::{Error, Result};
use crate::kernel::Kernel;
use crate::likelihood::NoiseModel;
use crate::linalg;
use crate::model::{Expansion, FittedBasis, Model, Posterior, ProcessPrior};
use crate::process::Learned;
use crate::process::fitc::{Fitc, Weights};
use crate::process::fitc_maximum::{Maximum, Prior, maximise_posterior};
use crate::process::fitc_sums::{FullFit, LADDER, RowSums};
use crate::process::parameters::NOISE;
use crate::process::pivoted_cholesky::{Pivots, Points};
use crate::query::merged_rows::DistinctRows;
use crate::query::pass::AllRows;
use crate::query::sums::SumsRequest;
use crate::report::{Actions, Adjustments, Certificate, ProcessFit, Report, Status, silent};
use crate::rvm::data::noise::NoisePrecision;
use crate::rvm::data::training_set::TrainingSet;
use crate::rvm::learn::kernel_choice;
use crate::rvm::search::driver::FitDriver;
use crate::rvm::settings::dictionary::Dictionary;
use crate::rvm::settings::rvm::{Rvm, WeightPrior};

/// Largest number of centres, unless a number is given. Time and model size grow with its square. Compared with 1,000
/// centres, 1,500 gain 0.16 nats on a rough function (kin40k, 10,000 rows) and nothing on a smooth one, in a third more
/// time.
const MOST_CENTRES: usize = 1500;
/// Number of rows from which amplitude, noise and residual are estimated. The noise variance is then known to 3 %.
const ROWS: usize = 2000;
/// Default limit of the mean residual variance of the prior over the noise variance. With so many rows, the centres and
/// not the noise limit the accuracy. At 10,000 rows, a limit of 0.03 costs 0.02 nats and 0.1 costs 0.05.
const RESIDUAL: f64 = 0.01;
impl Rvm {
    /// Returns the column and value of a negative feature, if a linear spline is among the kernels. That kernel is a
    /// covariance only for features >= 0.
    fn negative_of_spline(&self, training: &TrainingSet) -> Option<(usize, f64)> {
        let spline = self.to_try().iter().any(|kernel| matches!(kernel, Kernel::LinearSpline(_)));
        let mut negative = training.rows.indexed_iter().filter(|(_, v)| spline && **v < 0.0);
        negative.next().map(|((_, column), value)| (column, *value))
    }

    /// Returns true if the basis functions of a fit to this training set are values of covariances.
    pub(in crate::rvm) fn has_covariances(&self, training: &TrainingSet) -> bool {
        let kernels = self.basis == Basis::Kernel && self.to_try().iter().all(|kernel| kernel.is_covariance());
        kernels && self.negative_of_spline(training).is_none()
    }

    /// Checks that the kernels to be learned are covariances for the rows of a training set, because kernels are
    /// learned from Gaussian processes.
    ///
    /// # Errors
    /// Returns [`Error::Parameter`] for a linear spline and negative features.
    pub(in crate::rvm) fn check_covariances(&self, training: &TrainingSet) -> Result<()> {
        let Some((column, value)) = self.negative_of_spline(training) else { return Ok(()) };
        let expected = format!(
            "features >= 0, where a linear spline is a covariance (column {column} contains {value}); shift the features \
             (standardised features are negative below their mean), or use another kernel"
        );
        Err(Error::Parameter { name: "kernel".into(), found: "linear_spline".into(), expected })
    }

    /// Returns true if the weights of a fit to this training set have a process prior.
    ///
    /// # Errors
    /// Returns [`Error::Parameter`] if the process prior was requested for a kernel that is no covariance for these
    /// rows.
    pub(in crate::rvm) fn has_process(&self, training: &TrainingSet) -> Result<bool> {
        let rows = training.rows.nrows();
        let spline = self.negative_of_spline(training).is_some();
        match self.weight_prior {
            WeightPrior::Ard => Ok(false),
            WeightPrior::Process if spline => {
                self.refuse_process("kernel = linear_spline with negative features: it is a covariance only for features >= 0")?;
                Ok(false)
            }
            WeightPrior::Process => Ok(true),
            WeightPrior::Auto => {
                let few = rows <= kernel_choice::MOST_ROWS || self.has_no_search_settings();
                Ok(rows > 0 && few && !spline && self.without_process().is_none())
            }
        }
    }

    /// Returns true if classes are learned by regression on their labels.
    ///
    /// # Errors
    /// Returns the errors of [`Rvm::has_process`].
    pub(in crate::rvm) fn regresses_labels(&self, training: &TrainingSet) -> Result<bool> {
        Ok(self.likelihood.is_for_classes() && self.has_process(training)?)
    }

    /// Replaces the precisions of the model that the search found by the process prior, if the weights have one.
    pub(in crate::rvm) fn with_process(&self, training: &TrainingSet, searched: (Model, Report)) -> Result<(Model, Report)> {
        if !self.has_process(training)? {
            return Ok(searched);
        }
        let all: Vec<usize> = (0..training.rows.nrows()).collect();
        let rows = training.distinct_rows(&all);
        let prior = self.process_of(training)?;
        let even = rows.without_copies(&training.users_rows(&all));
        let ratio = (prior.hyper.log_amplitude - prior.hyper.log_noise).exp();
        let left = |pivots: &Pivots| ratio * pivots.mean_residual(&even.weights);
        self.over_centres(training, searched, &prior, &even, left, |over| {
            let fitc = Fitc { rows: &rows, features: over.features, residual: over.residual, bias: self.bias };
            let learns = Fitc { rows: &even, ..fitc };
            let peak = maximise_posterior(&learns, &prior, &fixed_noise(training), over.size, &training.interrupt)?;
            let peak = match fitc.evidence(peak.log_ratio, &peak.log_noise)? {
                Some(found) => Maximum { log_evidence: found.value, ..peak },
                None => peak,
            };
            let singular = || Error::Singular { columns: over.features.nrows(), jitter: 0.0 };
            let weights = fitc.weights(peak.log_ratio)?.ok_or_else(singular)?;
            Ok((peak, weights))
        })
    }

    /// Adds centres to the relevance vectors of a search until they span the process `prior`, and then fits the process on
    /// them by `fit`. `even` are the different inputs, with the precisions of their targets. `left` returns the mean
    /// residual variance of the prior over the noise variance, by which the choice of centres ends.
    pub(super) fn over_centres(
        &self,
        training: &TrainingSet,
        (model, report): (Model, Report),
        prior: &Prior,
        even: &DistinctRows,
        left: impl Fn(&Pivots) -> f64,
        fit: impl FnOnce(&OverCentres) -> Result<(Maximum, Weights)>,
    ) -> Result<(Model, Report)> {
        let begin = Instant::now();
        let points = training.points_of(even);
        let mut pivots = Pivots::new(&prior.kernel, points.x.view())?;
        if prior.structure {
            let candidates = model.relevance.iter().filter_map(|row| training.candidate_of.get(*row).copied().flatten());
            let first: Vec<usize> = candidates.map(|candidate| points.first + candidate).collect();
            let among: Vec<usize> = (points.first..points.x.nrows()).collect();
            let most = self.most_centres(training, points.x.nrows(), 1);
            pivots.complete(&first, &among, most, |pivots| left(pivots) <= self.most_residual(), &training.interrupt)?;
        }
        // Without structure there is no process, and no residual.
        let (residual, own) = match prior.structure {
            true => (left(&pivots), pivots.residual()[..even.len()].to_vec()),
            false => (0.0, vec![0.0; even.len()]),
        };
        let features = pivots.features();
        let features = features.slice(s![.., ..even.len()]);
        let (peak, weights) = fit(&OverCentres { features, residual: &own, size: pivots.mean_diagonal() })?;
        let origin = pivots.centres().iter().map(|point| training.origin[point - points.first]).collect();
        let found = Found {
            training,
            prior,
            points: &points,
            pivots: &pivots,
            origin,
            peak: &peak,
            count: training.count,
            weights,
            residual,
        };
        let model = found.model(model)?;
        let process = model.process.as_ref().map(|process| ProcessFit {
            centres: model.relevance.len(),
            searched: process.searched.len(),
            residual,
            reached: residual <= self.most_residual(),
            evaluations: peak.evaluations,
            seconds: begin.elapsed().as_secs_f64(),
        });
        let capped = peak.log_noise.iter().zip(&training.noise).any(|(log, noise)| noise.is_learned() && *log <= NOISE.0);
        let adjustments = Adjustments { jitter: 0.0, residual_over_noise: None, noise_capped: capped, ..report.adjustments };
        let nothing_found = model.relevance.is_empty() && !training.adjustments.constant_target;
        let seconds = report.seconds + begin.elapsed().as_secs_f64();
        Ok((model, Report { process, adjustments, nothing_found, seconds, ..report }))
    }

    /// Fits a process prior to a training set without a search.
    pub(in crate::rvm) fn process_alone(&self, training: &TrainingSet) -> Result<Model> {
        if self.fits_many(training)? {
            let start = Instant::now();
            return Ok(self.fit_many(training, &mut FitDriver::of(self, &mut silent, &training.interrupt, start))?.0);
        }
        let report = Report::of_end(Status::Converged, vec![], Certificate::of_reason(""), 0.0);
        Ok(self.with_process(training, (bare(training, &training.kernel()), report))?.0)
    }

    /// Returns what a dense process has learned for a training set, or learns it for the kernel of the training set.
    pub(super) fn learned_of(&self, training: &TrainingSet) -> Result<Learned> {
        if let Some(learned) = &training.learned {
            return Ok(learned.clone());
        }
        let given = Rvm { kernel: training.kernel(), kernels: vec![], ..self.clone() };
        Ok(kernel_choice::by_process(&given, training)?.0)
    }

    /// Returns the kernel, amplitude and noise of a dense process for a training set.
    pub(super) fn process_of(&self, training: &TrainingSet) -> Result<Prior> {
        let Learned { kernel, hyper, has_structure, log_rates, .. } = self.learned_of(training)?;
        Ok(Prior { kernel, hyper, structure: has_structure && !training.bias_only, log_rates })
    }

    /// Returns the largest number of centres, at least 1, for which there is memory. This counts the features of all
    /// points while they grow and once more, four triangles, and the sums at the second and further ratios.
    pub(super) fn most_centres(&self, training: &TrainingSet, points: usize, ratios: usize) -> usize {
        let (n, squares) = (points as f64, 7.0 + ratios as f64);
        let numbers = training.memory_limit.saturating_sub(training.taken) as f64 / 8.0;
        // Solves 4 n m + squares m^2 = numbers for m.
        let room = ((16.0 * n * n + 4.0 * squares * numbers).sqrt() - 4.0 * n) / (2.0 * squares);
        self.dictionary.size(points).min(room as usize).max(1)
    }

    /// Returns true if a fit to this training set has the process prior without a preceding search.
    pub(in crate::rvm) fn fits_many(&self, training: &TrainingSet) -> Result<bool> {
        Ok(training.rows.nrows() > kernel_choice::MOST_ROWS && !self.likelihood.is_for_classes() && self.has_process(training)?)
    }

    /// Fits a process prior to a large training set.
    pub(in crate::rvm) fn fit_many(&self, training: &TrainingSet, driver: &mut FitDriver) -> Result<(Model, Report)> {
        let rows = training.distinct_rows(&(0..training.rows.nrows()).collect::<Vec<_>>());
        self.fit_by_sums(training, &AllRows::Held(&rows), driver)
    }

    /// Fits a process prior to `rows`. `training` contains all of them or a sample.
    pub(in crate::rvm) fn fit_by_sums(
        &self,
        training: &TrainingSet,
        rows: &AllRows,
        driver: &mut FitDriver,
    ) -> Result<(Model, Report)> {
        let begin = Instant::now();
        let n = training.rows.nrows();
        let prior = self.process_of(training)?;
        let drawn = random_subset(n, ROWS, self.seed.wrapping_add(2));
        let sample = training.distinct_rows(&drawn).without_copies(&training.users_rows(&drawn));
        let candidates = self.drawn(training, sample.len(), LADDER.len());
        let points = Points { x: concatenate![Axis(0), sample.x, centres_of(training, &candidates)], first: sample.len() };
        let mut pivots = Pivots::new(&prior.kernel, points.x.view())?;
        let ratio = (prior.hyper.log_amplitude - prior.hyper.log_noise).exp();
        let left = |pivots: &Pivots| ratio * pivots.mean_residual(&sample.weights);
        let most_residual = self.residual.unwrap_or(RESIDUAL);
        if prior.structure {
            let among: Vec<usize> = (points.first..points.x.nrows()).collect();
            pivots.complete(&[], &among, candidates.len(), |pivots| left(pivots) <= most_residual, &training.interrupt)?;
        }
        let (residual, own) = match prior.structure {
            true => (left(&pivots), pivots.residual()[..sample.len()].to_vec()),
            false => (0.0, vec![0.0; sample.len()]),
        };
        let features = pivots.features();
        let fixed = fixed_noise(training);
        let fitc = Fitc { rows: &sample, features: features.slice(s![.., ..sample.len()]), residual: &own, bias: self.bias };
        let peak = maximise_posterior(&fitc, &prior, &fixed, pivots.mean_diagonal(), &training.interrupt)?;
        let centres = points.x.select(Axis(0), pivots.centres());
        let (kernel, lower) = (&prior.kernel, pivots.factor());
        let at = SumsRequest { kernel: kernel.clone(), centres, lower, bias: self.bias, ratios: vec![], mean: None };
        let learns: Vec<bool> = fixed.iter().map(Option::is_none).collect();
        let sums = RowSums { rows, at: &at, peak: &peak, learns: &learns, interrupt: &training.interrupt };
        let whole = if residual > RESIDUAL { sums.best()? } else { sums.highest(&[peak.log_ratio], &mut vec![])? };
        let whole = whole.map(|whole| sums.corrected(whole)).transpose()?;
        let in_time = whole.is_some();
        let (peak, count, weights) = match whole {
            Some(FullFit { peak, count, weights }) => (peak, count, weights),
            None => {
                let singular = || Error::Singular { columns: pivots.centres().len(), jitter: 0.0 };
                let weights = fitc.weights(peak.log_ratio)?.ok_or_else(singular)?;
                (peak, training.count, weights)
            }
        };
        let status = if in_time && !training.interrupt.is_late() { Status::Converged } else { Status::TimeLimit };
        let origin: Vec<usize> = pivots.centres().iter().map(|point| training.origin[candidates[point - points.first]]).collect();
        let found =
            Found { training, prior: &prior, points: &points, pivots: &pivots, origin, peak: &peak, count, weights, residual };
        let model = found.model(Model { status, iterations: 1, ..bare(training, kernel) })?;
        // Without a search, all centres count as its relevance vectors.
        let searched = model.relevance.clone();
        let process = model.process.map(|process| ProcessPrior { searched, ..process });
        let model = Model { process, ..model };
        let noise_std = model.posterior.as_ref().and_then(|posterior| posterior.noise_variance).map(f64::sqrt);
        driver.tell_model(model.log_evidence.unwrap_or(f64::NAN), noise_std, model.relevance.len() + usize::from(self.bias));
        let reached = residual <= most_residual;
        let capped = peak.log_noise.iter().zip(&training.noise).any(|(log, noise)| noise.is_learned() && *log <= NOISE.0);
        let left_out_rows = if in_time { training.adjustments.left_out_rows } else { n - sample.len() };
        let trace = std::mem::take(&mut driver.trace);
        let report = Report {
            candidates: candidates.len(),
            adjustments: Adjustments { left_out_rows, noise_capped: capped, ..training.adjustments.clone() },
            // If the time limit ended the choice of centres, it is unknown whether the features carry information.
            nothing_found: model.relevance.is_empty() && !training.adjustments.constant_target && status == Status::Converged,
            actions: Actions { added: model.relevance.len(), ..Actions::default() },
            process: Some(ProcessFit {
                centres: model.relevance.len(),
                searched: 0,
                residual,
                reached,
                evaluations: peak.evaluations,
                seconds: begin.elapsed().as_secs_f64(),
            }),
            ..Report::of_end(status, trace, certificate(&model, reached), driver.elapsed().as_secs_f64())
        };
        Ok((model, report))
    }

    /// Returns the candidates that may become centres, ascending: given landmarks, or rows drawn at random. Their
    /// number leaves memory for `sample` rows and for sums at `ratios` ratios. Under FITC's diagonal, centres are best
    /// where rows are dense. Centres from k-means or of the largest residual lie at the edges.
    pub(super) fn drawn(&self, training: &TrainingSet, sample: usize, ratios: usize) -> Vec<usize> {
        let all = training.origin.len();
        let size = match self.dictionary {
            _ if training.rows_of(&[]).is_none() => all,
            Dictionary::Rule(_) => self.dictionary.size(all).min(MOST_CENTRES),
            Dictionary::Size(size) => size,
        };
        let room = self.most_centres(training, sample + size.min(all), ratios);
        random_subset(all, size.min(all).min(room), self.seed.wrapping_add(3))
    }
}

/// Returns the log noise variance of each output that does not learn it, `[R]`.
fn fixed_noise(training: &TrainingSet) -> Vec<Option<f64>> {
    let of_output = |noise: &NoisePrecision| match noise {
        NoisePrecision::Fixed(beta) => Some(-beta.ln()),
        NoisePrecision::Learned { .. } => None,
    };
    training.noise.iter().map(of_output).collect()
}

/// Returns the centres of candidates, [M, D].
pub(super) fn centres_of(training: &TrainingSet, candidates: &[usize]) -> Array2<f64> {
    match training.columns(candidates).1 {
        Columns::Kernel { centres, .. } => centres,
        Columns::Given => unreachable!("given columns have no process prior"),
    }
}

/// Returns the reason why the choice of centres ended. `reached` is true if the residual is as low as requested.
fn certificate(model: &Model, reached: bool) -> Certificate {
    Certificate::of_reason(match model.status {
        Status::TimeLimit => "time_limit ended the choice of centres, or the weights were fitted to a sample of the rows",
        _ if model.relevance.is_empty() => "the features carry no information about the targets: the model predicts their mean",
        _ if !reached => "dictionary or memory_limit allows no more centres",
        _ => "the residual variance of the prior is as low as requested",
    })
}

/// Returns a model without centres and precisions for a training set.
pub(super) fn bare(training: &TrainingSet, kernel: &Kernel) -> Model {
    let basis = FittedBasis::Kernel { kernel: kernel.clone(), centres: Array2::zeros((0, training.rows.ncols())) };
    let nothing = Expansion { basis, weights: Array2::zeros((0, 1)), intercept: vec![0.0] };
    Model { intercept_alpha: Some(0.0), ..training.model_of(nothing) }
}

/// The centres that span a process, at the different inputs of a training set.
pub(super) struct OverCentres<'a> {
    /// Features of the centres, [M, n].
    pub features: ArrayView2<'a, f64>,
    /// Residual variances of the prior, `[n]`.
    pub residual: &'a [f64],
    /// Mean of k(x, x).
    pub size: f64,
}

/// Parts from which a model is assembled.
struct Found<'a, 'p> {
    pub training: &'a TrainingSet<'p>,
    pub prior: &'a Prior,
    pub points: &'a Points,
    pub pivots: &'a Pivots<'p>,
    /// Number of each centre in the relevance of the model, in the order of their choice, `[M]`.
    pub origin: Vec<usize>,
    pub peak: &'a Maximum,
    /// Sum of the sample weights of the rows of the evidence.
    pub count: f64,
    pub weights: Weights,
    pub residual: f64,
}

impl Found<'_, '_> {
    /// Returns the model in original units, with centres in the order of the user's rows. All other fields are those of
    /// `searched`.
    pub fn model(&self, searched: Model) -> Result<Model> {
        let (training, bias) = (self.training, usize::from(self.training.rvm.bias));
        let origin = &self.origin;
        let m = origin.len();
        let mut order: Vec<usize> = (0..m).collect();
        order.sort_unstable_by_key(|k| origin[*k]);
        let relevance: Vec<usize> = order.iter().map(|k| origin[*k]).collect();
        // The posterior of the features' weights is that of L'w. The factor of the precision of (b, w) is therefore
        // diag(1, L) times the factor of the precision of (b, L'w).
        let lower = self.pivots.factor();
        let mut joint = self.weights.factor.clone();
        joint.slice_mut(s![bias.., ..]).assign(&linalg::times(lower.view(), self.weights.factor.slice(s![bias.., ..])));
        let with_bias: Vec<usize> = (0..bias).chain(order.iter().map(|k| bias + k)).collect();
        let mut weights = self.weights.mean.slice(s![bias.., ..]).to_owned();
        linalg::solve_lower_transposed(lower.view(), weights.view_mut());
        let mut weights = weights.select(Axis(0), &order);
        let mut intercept = vec![0.0; training.units.len()];
        for (k, units) in training.units.iter().enumerate() {
            weights.column_mut(k).mapv_inplace(|w| w * units.scale);
            if bias == 1 {
                intercept[k] = (self.weights.mean[[0, k]] + units.mean) * units.scale + training.log_rate;
            }
        }
        let unit = training.units[0].scale;
        let noise: Vec<f64> = self.peak.log_noise.iter().map(|log| log.exp()).collect();
        let of_output = |k: usize| noise[k] * training.units[k].scale.powi(2);
        let learned = training.noise.iter().any(NoisePrecision::is_learned) || training.adjustments.constant_target;
        let noise_variance = match training.rvm.likelihood.as_dyn().noise() {
            // Noise variances of the training rows were given. The noise of new rows is unknown, so 0 is stored.
            _ if training.known_noise => Some(0.0),
            NoiseModel::Fixed(variance) if !learned => Some(variance),
            // Counts have no noise parameter.
            NoiseModel::None => None,
            _ => Some(of_output(0)),
        };
        let outputs = training.units.len();
        let posterior = Posterior {
            factor: triangle(&linalg::reordered_factor(joint.view(), &with_bias)),
            scale: vec![noise[0].sqrt() * unit; bias + m],
            noise_variance,
            noise_degrees: None,
            variance_factor: None,
            averaged: false,
            variance_ratios: if outputs > 1 { (0..outputs).map(|k| of_output(k) / of_output(0)).collect() } else { vec![] },
        };
        let amplitude = if self.prior.structure { self.peak.log_ratio.exp() * of_output(0) } else { 0.0 };
        let searched_rows = searched.relevance.iter().copied().filter(|row| relevance.binary_search(row).is_ok()).collect();
        let process = ProcessPrior {
            amplitude,
            factor: triangle(&linalg::reordered_factor(lower.view(), &order)),
            searched: searched_rows,
            residual: self.residual,
        };
        // The density of a flat prior of the constant depends on the unit of the targets.
        let flat: f64 = training.units.iter().map(|units| bias as f64 * units.scale.ln()).sum();
        let log_evidence = training.log_evidence_out(self.peak.log_evidence, self.count) + flat;
        let numbers = weights.iter().chain(&intercept).chain(&posterior.scale).chain(&posterior.variance_ratios);
        if let Some(bad) = numbers.chain(&noise_variance).chain([&amplitude, &log_evidence]).find(|v| !v.is_finite()) {
            return Err(Error::Overflow { what: format!("a number of the trained model ({bad}) in the target's units") });
        }
        let centres = self.points.x.select(Axis(0), &order.iter().map(|k| self.pivots.centres()[*k]).collect::<Vec<_>>());
        Ok(Model {
            relevance,
            expansion: Expansion {
                basis: FittedBasis::Kernel { kernel: self.prior.kernel.clone(), centres },
                intercept,
                weights,
            },
            alpha: vec![],
            intercept_alpha: training.rvm.bias.then_some(0.0),
            posterior: Some(posterior),
            log_evidence: Some(log_evidence),
            process: Some(process),
            ..searched
        })
    }
}

/// Returns the rows of a lower triangle, `[M, M]`, each up to its diagonal.
fn triangle(lower: &Array2<f64>) -> Vec<Vec<f64>> {
    lower.outer_iter().enumerate().map(|(i, row)| row.slice(s![..=i]).to_vec()).collect()
}
