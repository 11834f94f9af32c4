//! The process prior of the weights, (M70) to (M72). Centres are added to the relevance vectors of the search until
//! they span the process, and then its amplitude and noise are fitted again.

use std::time::Instant;

use ndarray::{Array2, Axis, s};

use crate::error::{Error, Result};
use crate::kernel::Kernel;
use crate::lbfgs::{self, Limits};
use crate::likelihood::NoiseModel;
use crate::linalg;
use crate::model::{Expansion, FittedBasis, Model, Posterior, ProcessPrior};
use crate::process::fitc::{Fitc, Weights};
use crate::process::kernel::{EVALUATIONS, Priors, STEP, TOLERANCE, log_normal};
use crate::process::parameters::{AMPLITUDE, NOISE};
use crate::process::pivoted_cholesky::{Pivots, Points};
use crate::process::{Hyper, Learned};
use crate::report::{Adjustments, ProcessFit, Report};
use crate::rvm::data::noise::NoisePrecision;
use crate::rvm::data::training_set::TrainingSet;
use crate::rvm::learn::kernel_choice;
use crate::rvm::learn::training_rows::{MOST_ROWS, distinct_rows, points_of, users_rows};
use crate::rvm::settings::rvm::{Rvm, WeightPrior};

/// The prior of a fit before its centres are chosen.
pub(super) struct Prior {
    /// Kernel whose parameters are all numbers.
    pub kernel: Kernel,
    pub hyper: Hyper,
    /// True if the features carry information about the targets.
    pub structure: bool,
}

/// The maximum of the posterior of amplitude and noise.
#[derive(Debug)]
pub(super) struct Maximum {
    pub log_ratio: f64,
    /// Log noise variance of each output, `[R]`.
    pub log_noise: Vec<f64>,
    pub log_evidence: f64,
    /// Bounds of the log ratio.
    pub bounds: (f64, f64),
    pub evaluations: usize,
}

impl Rvm {
    /// Returns the column and value of a negative feature, if a linear spline is among the kernels. That kernel is a
    /// covariance only for features >= 0.
    fn negative_of_spline(&self, training: &TrainingSet) -> Option<(usize, f64)> {
        let spline = self.to_try().iter().any(|kernel| matches!(kernel, Kernel::LinearSpline(_)));
        let mut negative = training.rows.indexed_iter().filter(|(_, v)| spline && **v < 0.0);
        negative.next().map(|((_, column), value)| (column, *value))
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
                let few = rows <= MOST_ROWS || self.has_no_search_settings();
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
        let begin = Instant::now();
        let (model, report) = searched;
        let all: Vec<usize> = (0..training.rows.nrows()).collect();
        let rows = distinct_rows(training, &all);
        let prior = self.process_of(training)?;
        let points = points_of(training, &rows);
        let mut pivots = Pivots::new(&prior.kernel, points.x.view())?;
        let ratio = (prior.hyper.log_amplitude - prior.hyper.log_noise).exp();
        let even = rows.without_copies(&users_rows(training, &all));
        let left = |pivots: &Pivots| ratio * pivots.mean_residual(&even.weights);
        if prior.structure {
            let candidates = model.relevance.iter().filter_map(|row| training.candidate_of.get(*row).copied().flatten());
            let first: Vec<usize> = candidates.map(|candidate| points.first + candidate).collect();
            let among: Vec<usize> = (points.first..points.x.nrows()).collect();
            let most = self.most_centres(training, points.x.nrows(), 1);
            pivots.complete(&first, &among, most, |pivots| left(pivots) <= self.most_residual(), &training.interrupt)?;
        }
        // Without structure there is no process, and no residual.
        let (residual, own) = match prior.structure {
            true => (left(&pivots), pivots.residual()[..rows.len()].to_vec()),
            false => (0.0, vec![0.0; rows.len()]),
        };
        let features = pivots.features();
        let fitc = Fitc { rows: &rows, features: features.slice(s![.., ..rows.len()]), residual: &own, bias: self.bias };
        let peak = maximise_posterior(training, &Fitc { rows: &even, ..fitc }, &prior, pivots.mean_diagonal())?;
        let peak = match fitc.evidence(peak.log_ratio, &peak.log_noise)? {
            Some(found) => Maximum { log_evidence: found.value, ..peak },
            None => peak,
        };
        let singular = || Error::Singular { columns: pivots.centres().len(), jitter: 0.0 };
        let weights = fitc.weights(peak.log_ratio)?.ok_or_else(singular)?;
        let origin = pivots.centres().iter().map(|point| training.origin[point - points.first]).collect();
        let found = Found {
            training,
            prior: &prior,
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

    /// Returns the kernel, amplitude and noise of a dense process for a training set.
    pub(super) fn process_of(&self, training: &TrainingSet) -> Result<Prior> {
        let of = |learned: &Learned| Prior {
            kernel: learned.kernel.clone(),
            hyper: learned.hyper,
            structure: learned.has_structure && !training.bias_only,
        };
        if let Some(learned) = &training.learned {
            return Ok(of(learned));
        }
        let given = Rvm { kernel: training.kernel(), kernels: vec![], ..self.clone() };
        Ok(of(&kernel_choice::by_process(&given, training)?.0))
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
}

/// Maximises the posterior of amplitude and noise, starting from those of the dense process. `size` is the mean of k(x,
/// x).
pub(super) fn maximise_posterior(training: &TrainingSet, fitc: &Fitc, prior: &Prior, size: f64) -> Result<Maximum> {
    let (outputs, rows) = (training.noise.len(), fitc.rows);
    let priors = Priors::new(rows.count, 0);
    let size = size.max(f64::MIN_POSITIVE).ln();
    let fixed: Vec<Option<f64>> = training
        .noise
        .iter()
        .map(|noise| match noise {
            NoisePrecision::Fixed(beta) => Some(-beta.ln()),
            NoisePrecision::Learned { .. } => None,
        })
        .collect();
    let log_noise_at = |x: &[f64]| -> Vec<f64> {
        let mut free = x[1..].iter();
        fixed
            .iter()
            .map(|fixed| fixed.unwrap_or_else(|| *free.next().expect("one for each output that learns its noise")))
            .collect()
    };
    let first: Vec<f64> = fixed.iter().map(|fixed| fixed.unwrap_or(prior.hyper.log_noise)).collect();
    let (least, largest) = first.iter().zip(&fixed).fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), (log, fixed)| {
        let (own_low, own_high) = if fixed.is_some() { (*log, *log) } else { NOISE };
        (low.min(own_low), high.max(own_high))
    });
    let mean_noise = first.iter().sum::<f64>() / outputs as f64;
    let mut start = vec![prior.hyper.log_amplitude - mean_noise];
    let mut bounds = vec![(AMPLITUDE.0 - size - largest, AMPLITUDE.1 - size - least)];
    if !prior.structure {
        // Without structure the process is absent, and its ratio is fixed.
        (start[0], bounds[0]) = (0.0, (0.0, 0.0));
    }
    for _ in fixed.iter().filter(|fixed| fixed.is_none()) {
        start.push(prior.hyper.log_noise);
        bounds.push(NOISE);
    }
    let limits = Limits { evaluations: EVALUATIONS, tolerance: TOLERANCE * rows.count * outputs as f64, patience: 2, step: STEP };
    let mut best: Option<(f64, Maximum)> = None;
    let evaluations = lbfgs::maximise(&start, &bounds, limits, |x| {
        if training.interrupt.is_raised_by_hand() {
            return Err(Error::Interrupted);
        }
        // After the deadline no point has a value, which ends the maximisation.
        if best.is_some() && training.interrupt.is_late() {
            return Ok(None);
        }
        let log_noise = log_noise_at(x);
        let Some(found) = fitc.evidence(x[0], &log_noise)? else { return Ok(None) };
        let mut posterior = found.value;
        let free = found.by_noise.iter().zip(&fixed).filter(|(_, fixed)| fixed.is_none()).map(|(slope, _)| *slope);
        let mut slope = vec![found.by_ratio];
        slope.extend(free);
        for (x, slope) in x[1..].iter().zip(&mut slope[1..]) {
            let (log, derivative) = log_normal(*x, priors.noise);
            posterior += log;
            *slope += derivative;
        }
        if let Some(amplitude) = priors.amplitude.filter(|_| prior.structure) {
            let (log, derivative) = log_normal(x[0] + log_noise.iter().sum::<f64>() / outputs as f64 + size, amplitude);
            posterior += log;
            slope[0] += derivative;
            slope[1..].iter_mut().for_each(|slope| *slope += derivative / outputs as f64);
        }
        if best.as_ref().is_none_or(|(value, _)| posterior > *value) {
            best = Some((
                posterior,
                Maximum { log_ratio: x[0], log_noise, log_evidence: found.value, bounds: bounds[0], evaluations: 0 },
            ));
        }
        Ok(Some((posterior, slope)))
    })?
    .map_or(1, |peak| peak.evaluations);
    let (_, peak) = best.ok_or(Error::Singular { columns: fitc.features.nrows(), jitter: 0.0 })?;
    Ok(Maximum { evaluations, ..peak })
}

/// Parts from which a model is assembled.
pub(super) struct Found<'a, 'p> {
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
                intercept[k] = (self.weights.mean[[0, k]] + units.mean) * units.scale;
            }
        }
        let unit = training.units[0].scale;
        let noise: Vec<f64> = self.peak.log_noise.iter().map(|log| log.exp()).collect();
        let of_output = |k: usize| noise[k] * training.units[k].scale.powi(2);
        let learned = training.noise.iter().any(NoisePrecision::is_learned) || training.adjustments.constant_target;
        let noise_variance = match training.rvm.likelihood.as_dyn().noise() {
            // Noise variances of the training rows were given. The noise of new rows is unknown, so 0 is stored.
            _ if training.known_noise => 0.0,
            NoiseModel::Fixed(variance) if !learned => variance,
            _ => of_output(0),
        };
        let outputs = training.units.len();
        let posterior = Posterior {
            factor: triangle(&linalg::reordered_factor(joint.view(), &with_bias)),
            scale: vec![noise[0].sqrt() * unit; bias + m],
            noise_variance: Some(noise_variance),
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
        if let Some(bad) = numbers.chain([&amplitude, &noise_variance, &log_evidence]).find(|v| !v.is_finite()) {
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
