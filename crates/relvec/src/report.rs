//! Progress of a fit, its interruption, and its report.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

pub use relvec_predict::Status;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// The state of a fit after an iteration, which an [`Observer`] receives.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Progress {
    /// Number of iterations so far.
    pub iteration: usize,
    /// Log evidence (log marginal likelihood, nats) of the best model so far.
    pub log_evidence: f64,
    /// Number of basis functions of that model, the bias included.
    pub active: usize,
    /// Noise standard deviation of that model, in units of the target; `None` for classification.
    pub noise_std: Option<f64>,
    /// Time since the start of the fit.
    pub elapsed: Duration,
}

/// Function that is called after each iteration. `Break` ends the fit with the best model so far.
pub type Observer<'a> = dyn FnMut(&Progress) -> ControlFlow<()> + Send + 'a;

/// Switch that stops a fit from another thread, within one block of work and without a model. Clones share one switch.
///
/// An [`Observer`] is called only between iterations, which may take long on large tables.
#[derive(Debug, Clone, Default)]
pub struct Interrupt {
    raised: Arc<AtomicBool>,
    /// End of the time limit of the fit, and a flag that says whether it is in force. It is in force once there is a
    /// model to return, and until that model is assembled.
    deadline: Option<(Instant, Arc<AtomicBool>)>,
}

impl Interrupt {
    /// Stops the fit with [`Error::Interrupted`].
    pub fn raise(&self) {
        self.raised.store(true, Ordering::Relaxed);
    }

    /// Returns true if the fit must stop now.
    pub fn is_raised(&self) -> bool {
        let late = |(at, armed): &(Instant, Arc<AtomicBool>)| armed.load(Ordering::Relaxed) && Instant::now() >= *at;
        self.is_raised_by_hand() || self.deadline.as_ref().is_some_and(late)
    }

    /// Returns true if optional work should be skipped, whether or not the deadline is in force.
    pub(crate) fn is_late(&self) -> bool {
        self.is_raised_by_hand() || self.deadline.as_ref().is_some_and(|(at, _)| Instant::now() >= *at)
    }

    /// Returns true if [`Interrupt::raise`] was called.
    pub(crate) fn is_raised_by_hand(&self) -> bool {
        self.raised.load(Ordering::Relaxed)
    }

    /// Returns an interrupt that shares this switch and has its own deadline, which is not in force yet.
    pub(crate) fn for_one_fit(&self, deadline: Option<Instant>) -> Interrupt {
        Interrupt { raised: self.raised.clone(), deadline: deadline.map(|at| (at, Arc::default())) }
    }

    /// Puts the deadline in force.
    pub(crate) fn arm(&self) {
        self.deadline.iter().for_each(|(_, armed)| armed.store(true, Ordering::Relaxed));
    }

    /// Suspends the deadline.
    pub(crate) fn disarm(&self) {
        self.deadline.iter().for_each(|(_, armed)| armed.store(false, Ordering::Relaxed));
    }

    /// Runs `work` with the deadline in force, and then restores its previous state. Returns `None` if the deadline
    /// passed.
    pub(crate) fn in_time<T>(&self, work: impl FnOnce() -> Result<T>) -> Result<Option<T>> {
        let armed = self.deadline.iter().any(|(_, armed)| armed.swap(true, Ordering::Relaxed));
        let done = work();
        if !armed {
            self.disarm();
        }
        match done {
            Err(Error::Interrupted) if !self.is_raised_by_hand() => Ok(None),
            done => done.map(Some),
        }
    }

    /// Checks whether the fit may go on.
    ///
    /// # Errors
    /// Returns [`Error::Interrupted`] if the fit must stop.
    pub(crate) fn check(&self) -> Result<()> {
        if self.is_raised() { Err(Error::Interrupted) } else { Ok(()) }
    }
}

/// Remaining gain and gradient at the end of a fit, which show how close it is to an optimum.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Certificate {
    /// Largest predicted gain in log evidence (nats) of any single action (add, re-estimate, delete, swap). Actions
    /// that were tried and lowered the evidence do not count. `None` if the scheme does not evaluate candidates, or if
    /// the fit was stopped or ran out of time.
    pub largest_gain: Option<f64>,
    /// Largest |d log evidence / d log alpha| over the active basis functions, at a fixed Hessian. For the variational
    /// scheme it is the gradient of the lower bound in the logs of the mean precisions, with q(w) fixed.
    pub largest_gradient: f64,
    /// Reason why the fit ended, in words.
    pub reason: String,
}

impl Certificate {
    /// Returns the certificate of a fit that evaluates no candidates.
    pub(crate) fn of_reason(reason: &str) -> Certificate {
        Certificate { largest_gain: None, largest_gradient: 0.0, reason: reason.into() }
    }
}

/// Smallest mean of the positive weights that is not reported as small. Weights that are scaled to sum to 1 are below
/// it from 11 rows on. Sampling weights, whose mean is about 1, are far above it.
const SMALL_MEAN_WEIGHT: f64 = 0.1;

/// Sample weights whose sum is less than a tenth of the number of rows. A weight of 1 counts as one row, so that a fit
/// with such weights learns almost nothing.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SmallWeights {
    /// Sum of the weights.
    pub total: f64,
    /// Number of rows of positive weight. Weights multiplied by `rows / total` have the mean 1.
    pub rows: usize,
}

impl SmallWeights {
    /// Returns the report on weights with the positive sum `total`, if they are small.
    pub(crate) fn of(total: f64, rows: usize) -> Option<SmallWeights> {
        (total < SMALL_MEAN_WEIGHT * rows as f64).then_some(SmallWeights { total, rows })
    }
}

/// Adjustments that the fit made to the data or the problem. All are zero or false for well-behaved data.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Adjustments {
    /// Jitter added to the unit-norm diagonal to factorise the final posterior.
    pub jitter: f64,
    /// Number of rows merged into an equal one (same inputs and same target).
    pub merged_rows: usize,
    /// Number of rows that were left out because of `time_limit`. The model was fitted to a sample, the other rows.
    #[serde(default)]
    pub left_out_rows: usize,
    /// Number of rows that share a basis function with another row (same inputs).
    pub shared_columns: usize,
    /// Number of basis functions that are zero on every row and were removed.
    pub zero_columns: usize,
    /// True if the noise precision reached its upper limit of 1e6 / var(t).
    pub noise_capped: bool,
    /// Root mean squared residual divided by the given noise standard deviation, if it is above 2. The given noise is
    /// then too small to be reached. Precisions of weights are at least 1e-12 of the noise precision (for columns of
    /// unit norm), because sums over the rows have no correct digits below. Weights at that limit are shrunk more than
    /// the evidence requires. Predicted standard deviations, which contain the given noise alone, are too small by
    /// about this factor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub residual_over_noise: Option<f64>,
    /// Noise standard deviation of the model divided by that of the Gaussian process that learned the kernel, if it is
    /// above 2. The basis functions of the model then do not describe the structure that the process found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub noise_over_process: Option<f64>,
    /// True if the target is constant: the model is the bias alone.
    pub constant_target: bool,
    /// Numbers (0-based) of the outputs whose target is constant, if there are several outputs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub constant_outputs: Vec<usize>,
    /// Numbers (0-based) of the features that are the same on every row.
    pub constant_features: Vec<usize>,
    /// Sample weights that are too small to learn from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub small_weights: Option<SmallWeights>,
}

/// Signs that a model interpolates its training rows. It then passes close to every target, its intervals are too
/// narrow, and its probabilities are overconfident. At least one of the two signs is present.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Interpolation {
    /// Number of relevance vectors. For schemes other than `sequential`, which keep weights of no use, it is the number
    /// of those that the data determine. If there are several binary models, all fields are those of the model with the
    /// largest share.
    pub vectors: usize,
    /// Number of different rows, by inputs and target.
    pub rows: usize,
    /// True if more than a third of the rows are relevance vectors, and if these outnumber the rows whose inputs
    /// another row has with another target. Never true under a process prior, whose centres are no sign of
    /// interpolation.
    pub many_vectors: bool,
    /// True if the noise variance is at its lower limit, see [`Adjustments::noise_capped`].
    pub least_noise: bool,
}

/// Number of actions of each kind.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Actions {
    /// Number of added basis functions.
    pub added: usize,
    /// Number of precisions that were re-estimated one at a time.
    pub reestimated: usize,
    /// Number of deleted basis functions.
    pub deleted: usize,
    /// Number of actions that were undone because the evidence fell.
    pub undone: usize,
    /// Number of joint re-estimations of all precisions.
    pub joint: usize,
}

impl Actions {
    /// Adds the numbers of another search.
    pub(crate) fn add(&mut self, other: &Actions) {
        self.added += other.added;
        self.reestimated += other.reestimated;
        self.deleted += other.deleted;
        self.undone += other.undone;
        self.joint += other.joint;
    }
}

/// One point of the trace of a fit.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TracePoint {
    /// Log evidence (nats) of the best model so far, plus the log prior of its kernels if they have one. It never
    /// decreases.
    pub log_evidence: f64,
    /// Noise standard deviation of that model, in units of the target; `None` for classification.
    pub noise_std: Option<f64>,
    /// Number of basis functions of that model, the bias included.
    pub active: usize,
    /// Seconds since the start of the fit.
    pub seconds: f64,
}

/// A dense Gaussian process at the maximum of the posterior of its parameters.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ProcessTrial {
    /// Variance that the kernel is multiplied by, in squared units of each output, `[R]`. For classes it is in squared
    /// units of their standardised labels.
    pub amplitude: Vec<f64>,
    /// Variance of the noise, in the same units, `[R]`.
    pub noise_variance: Vec<f64>,
    /// Log posterior minus the log evidence of a constant with noise, in nats. Below 0.5 the features say nothing about
    /// the targets, and the model is a constant.
    pub gain: f64,
    /// Log evidence plus the log priors of the parameters, by which kernels are compared.
    pub log_posterior: f64,
    /// Number of different inputs that the process was fitted to.
    pub rows: usize,
}

/// A kernel that was tried, with its learned parameters.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct KernelTrial {
    /// Name of the kernel.
    pub kernel: String,
    /// Power of a polynomial kernel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub degree: Option<u32>,
    /// Names and values of the positive continuous parameters of the kernel.
    pub parameters: Vec<(String, f64)>,
    /// Log evidence of the process on the rows of [`KernelSearch::rows`], in the original units of the targets.
    pub log_evidence: f64,
    /// The process from which the kernel was learned.
    pub process: ProcessTrial,
    /// Number of kernels at which the evidence of a process was computed.
    pub evaluations: usize,
}

/// The choice of the kernel and its learned parameters.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct KernelSearch {
    /// Kernels that were tried, in the given order. There are fewer if the time ran out.
    pub tried: Vec<KernelTrial>,
    /// Index of the chosen kernel, the one with the highest log posterior.
    pub chosen: usize,
    /// Number of rows of the dense process.
    pub rows: usize,
    /// Number of rows of the sparse process that continues from the dense one; 0 for at most 3,000 rows.
    pub more_rows: usize,
    /// Number of centres of the sparse process; 0 for at most 3,000 rows.
    pub more_centres: usize,
    /// Wall-clock seconds.
    pub seconds: f64,
}

/// The result of learning the centres.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CentreSearch {
    /// Number of centres that were moved.
    pub moved: usize,
    /// Number of rows from which gradients were computed.
    pub rows: usize,
    /// Number of gradient evaluations.
    pub evaluations: usize,
    /// Log evidence of the fit with centres at rows, over all rows.
    pub fixed_log_evidence: f64,
    /// Log evidence of the fit with moved centres, over all rows.
    pub learned_log_evidence: f64,
    /// True if the moved centres were kept.
    pub kept: bool,
    /// Wall-clock seconds that moving the centres took, without the second fit.
    pub seconds: f64,
}

/// Posteriors q(alpha) and q(beta) of the precisions under the variational scheme, (M25). They are Gamma distributions,
/// whose mean is shape / rate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PrecisionPosterior {
    /// Shape of the precision of each weight.
    pub shape: f64,
    /// Means, `[M]`, without the bias. They are the model's alpha, in inverse squared units of the weights.
    pub mean: Vec<f64>,
    /// Rates, `[M]`, in squared units of the weights.
    pub rate: Vec<f64>,
    /// Mean and rate of the precision of the bias, if it is in the model.
    pub intercept: Option<(f64, f64)>,
    /// Shape and rate of the noise precision, the rate in squared units of the target; `None` if the noise is not
    /// learned.
    pub noise: Option<(f64, f64)>,
}

/// Scores of predictions of held-out rows, averaged by sample weight.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct HeldOutScores {
    /// Root mean squared error, in units of the target (regression). For several outputs it is in units of the standard
    /// deviation of each.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rmse: Option<f64>,
    /// Mean absolute error, in the same units (regression).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mae: Option<f64>,
    /// Mean negative log predictive density, in nats (regression). For several outputs it is that of all outputs
    /// together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nlpd: Option<f64>,
    /// Share of targets within the 95 % interval of their prediction, [`Model::interval`](crate::Model::interval)
    /// (regression without counts).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub coverage: Option<f64>,
    /// Share of rows whose class is not the most probable one (classification).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_rate: Option<f64>,
    /// Mean negative log probability of the class of a row, in nats (classification).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log_loss: Option<f64>,
}

/// A value of the sparsity that was tried.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SparsityTrial {
    /// Sparsity in nats per kernel.
    pub sparsity: f64,
    /// Scores of the held-out rows.
    #[serde(flatten)]
    pub scores: HeldOutScores,
    /// Number of relevance vectors, averaged over the folds.
    pub vectors: f64,
}

/// Result of cross-validation. The search is repeated without the rows of each fold, which are then predicted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Validation {
    /// Number of folds.
    pub folds: usize,
    /// Number of rows that were predicted, each once. A row whose weight is a whole number w counts as w rows.
    pub rows: usize,
    /// Scores at the chosen sparsity, with the variance factor if there is one.
    #[serde(flatten)]
    pub scores: HeldOutScores,
    /// Number of relevance vectors, averaged over the folds.
    pub vectors: f64,
    /// Sparsity of the model in nats per kernel.
    pub sparsity: f64,
    /// Values that the sparsity was chosen from; empty if it was given.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tried: Vec<SparsityTrial>,
    /// Factor of all predictive variances, if they are calibrated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variance_factor: Option<f64>,
    /// True if all fits have the same candidates, chosen from the inputs of all rows. Otherwise each fit has those of
    /// its own rows.
    pub shared_landmarks: bool,
    /// Wall-clock seconds, without the fit to all rows.
    pub seconds: f64,
}

/// The fit of the process prior of the weights to the centres, (M71).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ProcessFit {
    /// Number of centres of the model.
    pub centres: usize,
    /// Number of centres that the search chose.
    pub searched: usize,
    /// Mean ratio of the prior's residual variance to the noise variance at the training rows, with the amplitude and
    /// noise of the dense process that the fit began with.
    pub residual: f64,
    /// True if `residual` is as low as requested. If it is not, there was no room (`dictionary`, `memory_limit`) or
    /// time for more centres, or the centres span every other row.
    pub reached: bool,
    /// Number of evaluations of the log evidence.
    pub evaluations: usize,
    /// Wall-clock seconds, without the search.
    pub seconds: f64,
}

/// The report of a fit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Report {
    /// Reason why the fit ended.
    pub status: Status,
    /// Number of iterations.
    pub iterations: usize,
    /// Log evidence after each iteration.
    pub trace: Vec<TracePoint>,
    /// Number of basis functions that could enter the model, without the bias.
    pub candidates: usize,
    /// Remaining gain and gradient at the end.
    pub certificate: Certificate,
    /// Adjustments that the fit made.
    pub adjustments: Adjustments,
    /// True if the model predicts a constant, or almost a constant. The fit then converged to a model without relevance
    /// vectors, or to one whose log evidence is within 0.5 nats of such a model. The scheme `search` has then tried a
    /// restart as well. It is also true if a dense process finds that the features say nothing about the targets,
    /// (M69); the model is then a constant. If the kernel was given, standardise the features or learn its width (the
    /// gamma `evidence`). Otherwise check that the features carry information. False if the target is constant.
    #[serde(default)]
    pub nothing_found: bool,
    /// Signs that the model interpolates its rows, if there are any. Measure its intervals by cross-validation
    /// ([`Validation`]), learn the kernel, or raise the sparsity.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interpolation: Option<Interpolation>,
    /// Number of actions of each kind.
    pub actions: Actions,
    /// The search for the kernel, if the kernel was learned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel_search: Option<KernelSearch>,
    /// The result of learning the centres, if they were to be learned and there was time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub centre_search: Option<CentreSearch>,
    /// The fit of the process prior, if the weights have one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<ProcessFit>,
    /// Row weights under Student-t noise, (M53), for each of the user's rows, `[N]`. An ordinary row has a little more
    /// than 1, an outlier almost 0.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub row_weights: Vec<f64>,
    /// Posterior of the precisions under the variational scheme.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub precisions: Option<PrecisionPosterior>,
    /// Result of cross-validation, if it was requested and there was time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub validation: Option<Validation>,
    /// Wall-clock seconds.
    pub seconds: f64,
    /// Reports of the binary models, if such models decide between more than two classes. They then have the traces.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub members: Vec<Report>,
}

impl Report {
    /// Returns the report of a fit that took `seconds`, with the given end and nothing else.
    pub(crate) fn of_end(status: Status, trace: Vec<TracePoint>, certificate: Certificate, seconds: f64) -> Report {
        Report {
            status,
            iterations: trace.len(),
            trace,
            candidates: 0,
            certificate,
            adjustments: Adjustments::default(),
            nothing_found: false,
            interpolation: None,
            actions: Actions::default(),
            kernel_search: None,
            centre_search: None,
            process: None,
            row_weights: vec![],
            precisions: None,
            validation: None,
            seconds,
            members: vec![],
        }
    }

    /// Returns the progress that an observer received last.
    pub(crate) fn last_progress(&self) -> Option<Progress> {
        self.trace.last().map(|point| Progress {
            iteration: self.iterations,
            log_evidence: point.log_evidence,
            active: point.active,
            noise_std: point.noise_std,
            elapsed: Duration::from_secs_f64(point.seconds),
        })
    }
}

/// An observer that does nothing and never stops the fit.
pub fn silent<P>(_: &P) -> std::ops::ControlFlow<()> {
    std::ops::ControlFlow::Continue(())
}
