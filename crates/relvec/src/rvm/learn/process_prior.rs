//! The process prior of the weights: the search's relevance vectors are completed to centres that span the process, whose
//! amplitude and noise are fitted again, (M70) to (M72).

use std::time::Instant;

use ndarray::{Array2, Axis, concatenate, s};

use super::fitc::{Fitc, Weights};
use super::kernel::{EVALUATIONS, Priors, STEP, TOLERANCE, log_normal};
use super::kernel_choice;
use super::merged_rows::{DistinctRows, MOST_ROWS};
use super::parameters::{AMPLITUDE, NOISE};
use super::pivoted_cholesky::{Pivots, Points};
use crate::design::Columns;
use crate::error::{Error, Result};
use crate::kernel::Kernel;
use crate::likelihood::NoiseModel;
use crate::linalg;
use crate::model::{Expansion, FittedBasis, Model, Posterior, ProcessPrior};
use crate::report::{ProcessFit, Repairs, Report};
use crate::rvm::data::noise::NoisePrecision;
use crate::rvm::data::training_set::{Hyper, Learned, TrainingSet};
use crate::rvm::evidence::lbfgs::{self, Limits};
use crate::rvm::settings::rules::WeightPrior;
use crate::rvm::settings::rvm::Rvm;

/// What the prior of a fit is before its centres are known.
pub(super) struct Prior {
    /// Every parameter a number.
    pub kernel: Kernel,
    pub hyper: Hyper,
    /// Whether the features tell anything of the targets.
    pub structure: bool,
}

/// The amplitude over the noise, and the noise, that were found.
#[derive(Debug)]
pub(super) struct Peak {
    pub log_ratio: f64,
    /// `[R]`.
    pub log_noise: Vec<f64>,
    pub log_evidence: f64,
    /// Between which the log ratio is.
    pub bounds: (f64, f64),
    pub evaluations: usize,
}

impl Rvm {
    /// A negative feature, its column and value, where a linear spline is among the kernels: it is a covariance at features >= 0.
    fn negative_of_spline(&self, training: &TrainingSet) -> Option<(usize, f64)> {
        let spline = self.to_try().iter().any(|kernel| matches!(kernel, Kernel::LinearSpline(_)));
        let mut negative = training.rows.indexed_iter().filter(|(_, v)| spline && **v < 0.0);
        negative.next().map(|((_, column), value)| (column, *value))
    }

    /// Checks that the kernels to learn are covariances at the rows of a table, as the processes are that learn them.
    ///
    /// # Errors
    /// [`Error::Parameter`] for a linear spline at negative features.
    pub(in crate::rvm) fn check_covariances(&self, training: &TrainingSet) -> Result<()> {
        let Some((column, value)) = self.negative_of_spline(training) else { return Ok(()) };
        let expected = format!(
            "kernels that are covariances at all rows: a linear spline is one at features >= 0, and column {column} has {value}; \
             shift the features (standardised ones are negative below their mean), or leave this kernel out"
        );
        Err(Error::Parameter { name: "kernel".into(), found: "linear_spline".into(), expected })
    }

    /// Whether the weights of a fit to a table have a process prior.
    ///
    /// # Errors
    /// Rows for which a process that was asked for does not exist.
    pub(in crate::rvm) fn has_process(&self, training: &TrainingSet) -> Result<bool> {
        let rows = training.rows.nrows();
        let spline = self.negative_of_spline(training).is_some();
        match self.weight_prior {
            WeightPrior::Ard => Ok(false),
            WeightPrior::Process if spline => {
                self.refuse_process("kernel = linear_spline at negative features: it is a covariance at features >= 0")?;
                Ok(false)
            }
            WeightPrior::Process => Ok(true),
            WeightPrior::Auto => {
                let few = rows <= MOST_ROWS || self.has_no_search_settings();
                Ok(rows > 0 && few && !spline && self.without_process().is_none())
            }
        }
    }

    /// Whether classes of a table are learnt by regression on their labels.
    ///
    /// # Errors
    /// Returns the errors of [`Rvm::has_process`].
    pub(in crate::rvm) fn regresses_labels(&self, training: &TrainingSet) -> Result<bool> {
        Ok(self.likelihood.is_for_classes() && self.has_process(training)?)
    }

    /// The model with the process prior in place of the precisions that the search has found, if the weights are to have it.
    pub(in crate::rvm) fn with_process(&self, training: &TrainingSet, searched: (Model, Report)) -> Result<(Model, Report)> {
        if !self.has_process(training)? {
            return Ok(searched);
        }
        let begin = Instant::now();
        let (model, report) = searched;
        let rows = DistinctRows::of(training, &(0..training.rows.nrows()).collect::<Vec<_>>());
        let prior = self.process_of(training)?;
        let points = Points::of(training, &rows);
        let mut pivots = Pivots::new(&prior.kernel, points.x.view())?;
        let ratio = (prior.hyper.log_amplitude - prior.hyper.log_noise).exp();
        let even = rows.without_copies();
        let left = |pivots: &Pivots| ratio * pivots.mean_residual(&even.weights);
        if prior.structure {
            let candidates = model.relevance.iter().filter_map(|row| training.candidate_of.get(*row).copied().flatten());
            let first: Vec<usize> = candidates.map(|candidate| points.first + candidate).collect();
            let among: Vec<usize> = (points.first..points.x.nrows()).collect();
            let most = self.most_centres(training, points.x.nrows(), 1);
            pivots.complete(&first, &among, most, |pivots| left(pivots) <= self.most_residual(), &training.interrupt)?;
        }
        // Without structure there is no process, and nothing left of it.
        let (residual, own) = match prior.structure {
            true => (left(&pivots), pivots.residual()[..rows.len()].to_vec()),
            false => (0.0, vec![0.0; rows.len()]),
        };
        let features = pivots.features();
        let fitc = Fitc { rows: &rows, features: features.slice(s![.., ..rows.len()]), residual: &own, bias: self.bias };
        let peak = climb(training, &Fitc { rows: &even, ..fitc }, &prior, pivots.mean_diagonal())?;
        let peak = match fitc.evidence(peak.log_ratio, &peak.log_noise)? {
            Some(found) => Peak { log_evidence: found.value, ..peak },
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
        let capped = peak.log_noise.iter().zip(&training.noise).any(|(log, noise)| noise.is_learnt() && *log <= NOISE.0);
        let repairs = Repairs { jitter: 0.0, residual_over_noise: None, noise_capped: capped, ..report.repairs };
        let nothing_found = model.relevance.is_empty() && !training.repairs.constant_target;
        let seconds = report.seconds + begin.elapsed().as_secs_f64();
        Ok((model, Report { process, repairs, nothing_found, seconds, ..report }))
    }

    /// The kernel, amplitude and noise of a dense process for a table.
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

    /// Centres that there is room for, 1 at least, of so many points: the features as they grow and once more, four triangles, and the
    /// sums at further ratios than one.
    pub(super) fn most_centres(&self, training: &TrainingSet, points: usize, ratios: usize) -> usize {
        let (n, squares) = (points as f64, 7.0 + ratios as f64);
        let numbers = training.memory_limit.saturating_sub(training.taken) as f64 / 8.0;
        // 4 n m + squares m^2 = numbers.
        let room = ((16.0 * n * n + 4.0 * squares * numbers).sqrt() - 4.0 * n) / (2.0 * squares);
        self.dictionary.size(points).min(room as usize).max(1)
    }
}

impl Points {
    pub fn of(training: &TrainingSet, rows: &DistinctRows) -> Points {
        let all: Vec<usize> = (0..training.origin.len()).collect();
        match (training.rows_of(&all), training.columns(&all).1) {
            (None, Columns::Kernel { centres, .. }) => Points { x: concatenate![Axis(0), rows.x, centres], first: rows.len() },
            _ => {
                assert_eq!(all.len(), rows.len(), "each different input is a candidate");
                Points { x: rows.x.clone(), first: 0 }
            }
        }
    }
}

/// Amplitude and noise at the maximum of the posterior, from those of the dense process on.
pub(super) fn climb(training: &TrainingSet, fitc: &Fitc, prior: &Prior, size: f64) -> Result<Peak> {
    let (outputs, rows) = (training.noise.len(), fitc.rows);
    let priors = Priors::new(rows.count, 0);
    let size = size.max(f64::MIN_POSITIVE).ln();
    let held: Vec<Option<f64>> = training
        .noise
        .iter()
        .map(|noise| match noise {
            NoisePrecision::Fixed(beta) => Some(-beta.ln()),
            NoisePrecision::Learned { .. } => None,
        })
        .collect();
    let log_noise_at = |x: &[f64]| -> Vec<f64> {
        let mut free = x[1..].iter();
        held.iter().map(|held| held.unwrap_or_else(|| *free.next().expect("one for each output that learns its noise"))).collect()
    };
    let first: Vec<f64> = held.iter().map(|held| held.unwrap_or(prior.hyper.log_noise)).collect();
    let (least, largest) = first.iter().zip(&held).fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), (log, held)| {
        let (own_low, own_high) = if held.is_some() { (*log, *log) } else { NOISE };
        (low.min(own_low), high.max(own_high))
    });
    let mean_noise = first.iter().sum::<f64>() / outputs as f64;
    let mut start = vec![prior.hyper.log_amplitude - mean_noise];
    let mut bounds = vec![(AMPLITUDE.0 - size - largest, AMPLITUDE.1 - size - least)];
    if !prior.structure {
        // Of a process that is not there nothing is to be found.
        (start[0], bounds[0]) = (0.0, (0.0, 0.0));
    }
    for _ in held.iter().filter(|held| held.is_none()) {
        start.push(prior.hyper.log_noise);
        bounds.push(NOISE);
    }
    let limits = Limits { evaluations: EVALUATIONS, tolerance: TOLERANCE * rows.count * outputs as f64, patience: 2, step: STEP };
    let mut best: Option<(f64, Peak)> = None;
    let evaluations = lbfgs::maximise(&start, &bounds, limits, |x| {
        if training.interrupt.is_raised_by_hand() {
            return Err(Error::Interrupted);
        }
        // Once the time is up no step succeeds, which ends it.
        if best.is_some() && training.interrupt.is_late() {
            return Ok(None);
        }
        let log_noise = log_noise_at(x);
        let Some(found) = fitc.evidence(x[0], &log_noise)? else { return Ok(None) };
        let mut posterior = found.value;
        let free = found.by_noise.iter().zip(&held).filter(|(_, held)| held.is_none()).map(|(slope, _)| *slope);
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
                Peak { log_ratio: x[0], log_noise, log_evidence: found.value, bounds: bounds[0], evaluations: 0 },
            ));
        }
        Ok(Some((posterior, slope)))
    })?
    .map_or(1, |peak| peak.evaluations);
    let (_, peak) = best.ok_or(Error::Singular { columns: fitc.features.nrows(), jitter: 0.0 })?;
    Ok(Peak { evaluations, ..peak })
}

/// All that a model is made of.
pub(super) struct Found<'a, 'p> {
    pub training: &'a TrainingSet<'p>,
    pub prior: &'a Prior,
    pub points: &'a Points,
    pub pivots: &'a Pivots<'p>,
    /// What each centre is called in the relevance of a model, in the order of their choice, `[M]`.
    pub origin: Vec<usize>,
    pub peak: &'a Peak,
    /// Rows that the evidence is of, by weight.
    pub count: f64,
    pub weights: Weights,
    pub residual: f64,
}

impl Found<'_, '_> {
    /// The model in the user's units, its centres in the order of the user's rows; what else there is of it is that of the search.
    pub fn model(&self, searched: Model) -> Result<Model> {
        let (training, bias) = (self.training, usize::from(self.training.rvm.bias));
        let origin = &self.origin;
        let m = origin.len();
        let mut order: Vec<usize> = (0..m).collect();
        order.sort_unstable_by_key(|k| origin[*k]);
        let relevance: Vec<usize> = order.iter().map(|k| origin[*k]).collect();
        // The weights of the features are those of L'w: the factor of the precision of (b, w) is diag(1, L) times that of (b, L'w).
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
        let learned = training.noise.iter().any(NoisePrecision::is_learnt) || training.repairs.constant_target;
        let noise_variance = match training.rvm.likelihood.as_dyn().noise() {
            // That of new rows is not.
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
        // A flat prior of the constant counts by the unit of the targets.
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
