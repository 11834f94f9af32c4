//! How a fit goes and how it ended.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

pub use relvec_predict::Status;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// What an [`Observer`] sees after each iteration.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Progress {
    /// Iterations done so far.
    pub iteration: usize,
    /// Log evidence (log marginal likelihood, nats) of the best model so far.
    pub log_evidence: f64,
    /// Basis functions in that model, the bias included.
    pub active: usize,
    /// Its noise standard deviation, in units of the target; `None` for classification.
    pub noise_std: Option<f64>,
    /// Time since the fit began.
    pub elapsed: Duration,
}

/// Called after each iteration; `Break` ends the fit with the best model so far.
pub type Observer<'a> = dyn FnMut(&Progress) -> ControlFlow<()> + Send + 'a;

/// Ends a fit from another thread, within one block of work and without a model; clones share one switch.
///
/// An [`Observer`] is asked between iterations only, which may be far apart on large tables.
#[derive(Debug, Clone, Default)]
pub struct Interrupt {
    raised: Arc<AtomicBool>,
    /// When the fit that holds this is out of time, and whether that counts already (there is a model to
    /// return) and still (the model is not being written).
    deadline: Option<(Instant, Arc<AtomicBool>)>,
}

impl Interrupt {
    /// Asks the fit to end with [`Error::Interrupted`].
    pub fn raise(&self) {
        self.raised.store(true, Ordering::Relaxed);
    }

    /// Whether the fit is to end now.
    pub fn is_raised(&self) -> bool {
        let late = |(at, armed): &(Instant, Arc<AtomicBool>)| armed.load(Ordering::Relaxed) && Instant::now() >= *at;
        self.is_raised_by_hand() || self.deadline.as_ref().is_some_and(late)
    }

    /// Whether it is too late for what may be left out, whether or not the deadline counts yet.
    pub(crate) fn is_late(&self) -> bool {
        self.is_raised_by_hand() || self.deadline.as_ref().is_some_and(|(at, _)| Instant::now() >= *at)
    }

    /// Whether [`Interrupt::raise`] was called.
    pub(crate) fn is_raised_by_hand(&self) -> bool {
        self.raised.load(Ordering::Relaxed)
    }

    /// An interrupt that shares this switch and has a deadline of its own, not armed yet.
    pub(crate) fn for_one_fit(&self, deadline: Option<Instant>) -> Interrupt {
        Interrupt { raised: self.raised.clone(), deadline: deadline.map(|at| (at, Arc::default())) }
    }

    /// From now on the deadline counts.
    pub(crate) fn arm(&self) {
        self.deadline.iter().for_each(|(_, armed)| armed.store(true, Ordering::Relaxed));
    }

    /// The deadline counts no more.
    pub(crate) fn disarm(&self) {
        self.deadline.iter().for_each(|(_, armed)| armed.store(false, Ordering::Relaxed));
    }

    /// `work` with a deadline that counts, whether or not it does before and after: where it passes, nothing.
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

    /// # Errors
    /// [`Error::Interrupted`] once raised.
    pub(crate) fn check(&self) -> Result<()> {
        if self.is_raised() { Err(Error::Interrupted) } else { Ok(()) }
    }
}

/// What was left when the fit ended: the evidence that it ended in an optimum.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Certificate {
    /// Largest gain in log evidence (nats) that any single action (add, re-estimate, delete, swap)
    /// still promises; actions that were tried and lowered the true evidence do not count.
    /// `None` where the scheme does not score candidates, or the fit was stopped or ran out of time.
    pub largest_gain: Option<f64>,
    /// Largest |d log evidence / d log alpha| over the active basis functions, curvature held fixed; in the
    /// variational scheme that of the lower bound by the logs of the mean precisions, q(w) held.
    pub largest_gradient: f64,
    /// In words, why the fit ended.
    pub reason: String,
}

impl Certificate {
    /// Of a fit that scores no candidates.
    pub(crate) fn of_reason(reason: &str) -> Certificate {
        Certificate { largest_gain: None, largest_gradient: 0.0, reason: reason.into() }
    }
}

/// Rows of positive weight count as fewer than this share of their number: nothing can be learnt of a few rows' worth of
/// likelihood. Weights that are scaled to sum to 1 are below it from 11 rows on; sampling weights, whose mean is about 1,
/// are far above it.
const SMALL_MEAN_WEIGHT: f64 = 0.1;

/// Sample weights that sum to less than a tenth of the number of rows. A weight of 1 counts as one row, so that a fit to
/// such weights learns almost nothing.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SmallWeights {
    /// Sum of the weights.
    pub total: f64,
    /// Rows of positive weight. `rows / total` is what to multiply the weights by for a mean of 1.
    pub rows: usize,
}

impl SmallWeights {
    /// Of weights of positive sum `total`, if they are small.
    pub(crate) fn of(total: f64, rows: usize) -> Option<SmallWeights> {
        (total < SMALL_MEAN_WEIGHT * rows as f64).then_some(SmallWeights { total, rows })
    }
}

/// What had to be repaired on the way. All zero or false for well-behaved data.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Repairs {
    /// Jitter added to the unit-norm diagonal to factorise the final posterior.
    pub jitter: f64,
    /// Rows merged into an equal one (same inputs, same target).
    pub merged_rows: usize,
    /// Rows that `time_limit` left no time for: the model is that of the others, a sample.
    #[serde(default)]
    pub left_out_rows: usize,
    /// Rows that share a basis function with another row (same inputs).
    pub shared_columns: usize,
    /// Basis functions that are zero on every row and were left out.
    pub zero_columns: usize,
    /// The noise precision reached its cap of 1e6 / var(t).
    pub noise_capped: bool,
    /// Where the noise was given and is too small to be reached: root of the mean squared residual, over the standard
    /// deviation of the noise, above 2. Precisions of weights are at least 1e-12 of the noise precision (on columns of unit
    /// norm), below which sums over the rows have no digits; weights held there are shrunk more than the evidence asks, and
    /// standard deviations, which know of the given noise alone, are too small by about this factor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub residual_over_noise: Option<f64>,
    /// The target is constant: the model is the bias alone.
    pub constant_target: bool,
    /// Of several outputs those (0-based) whose target is constant.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub constant_outputs: Vec<usize>,
    /// Features (0-based) that are the same on every row.
    pub constant_features: Vec<usize>,
    /// Sample weights that are too small to learn from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub small_weights: Option<SmallWeights>,
}

/// Signs that a model interpolates the rows it was trained on: it passes close to every target, its intervals are too narrow and
/// its probabilities overconfident. At least one of the two signs is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Interpolation {
    /// Relevance vectors; in schemes other than `sequential`, which keep weights of no use, those that the data determine. Of
    /// several models of two classes, this and all else here is of the model with the largest share.
    pub vectors: usize,
    /// Different rows, of inputs and target.
    pub rows: usize,
    /// Whether more than a third of the rows are relevance vectors, and more than there are rows whose input another row has with
    /// another target. Never under a process prior, whose centres are no sign.
    pub many_vectors: bool,
    /// Whether the noise variance is at its least value, as [`Repairs::noise_capped`] says.
    pub least_noise: bool,
}

/// How many actions were taken.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Actions {
    /// Basis functions added.
    pub added: usize,
    /// Precisions re-estimated, one at a time.
    pub reestimated: usize,
    /// Basis functions deleted.
    pub deleted: usize,
    /// Proposals undone because the true evidence fell.
    pub undone: usize,
    /// Joint re-estimations of all precisions.
    pub joint: usize,
}

impl Actions {
    /// Counts those of another search as well.
    pub(crate) fn add(&mut self, other: &Actions) {
        self.added += other.added;
        self.reestimated += other.reestimated;
        self.deleted += other.deleted;
        self.undone += other.undone;
        self.joint += other.joint;
    }
}

/// One line of the trace.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TracePoint {
    /// Log evidence (nats) of the best model so far, plus the log prior of its kernels where they have one; it never
    /// falls.
    pub log_evidence: f64,
    /// Its noise standard deviation, in units of the target; `None` for classification.
    pub noise_std: Option<f64>,
    /// Its number of basis functions, the bias included.
    pub active: usize,
    /// Seconds since the fit began.
    pub seconds: f64,
}

/// A dense Gaussian process at the maximum of the posterior of its parameters.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ProcessTrial {
    /// Variance that the kernel is multiplied by, of each output in its squared units, `[R]`; of classes in those of their
    /// standardised labels.
    pub amplitude: Vec<f64>,
    /// Variance of the noise, likewise, `[R]`.
    pub noise_variance: Vec<f64>,
    /// Nats of the log posterior above the log evidence of a constant with noise. Below 0.5 the features tell nothing of the
    /// targets, and the model is a constant.
    pub gain: f64,
    /// Log evidence with the log priors of the parameters, what kernels are compared by.
    pub log_posterior: f64,
    /// Different inputs that it was learnt from.
    pub rows: usize,
}

/// One kernel that was tried, with what was learnt of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct KernelTrial {
    /// Its name.
    pub kernel: String,
    /// Its power, if it is a polynomial.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub degree: Option<u32>,
    /// Names and values of its positive continuous parameters.
    pub parameters: Vec<(String, f64)>,
    /// Log evidence of the process on the rows of [`KernelSearch::rows`], in the user's units of the targets.
    pub log_evidence: f64,
    /// The process that the kernel was learnt from.
    pub process: ProcessTrial,
    /// Kernels of which the evidence of a process was worked out.
    pub evaluations: usize,
}

/// How the kernel was chosen and its parameters learnt.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct KernelSearch {
    /// The kernels tried, in the order given; fewer if the time was up.
    pub tried: Vec<KernelTrial>,
    /// The place of the one that was taken: the highest log posterior.
    pub chosen: usize,
    /// Rows of the dense process.
    pub rows: usize,
    /// Rows of the sparse process that goes on from there, and its centres; 0 of at most 3,000 rows.
    pub more_rows: usize,
    /// See `more_rows`.
    pub more_centres: usize,
    /// Wall-clock seconds.
    pub seconds: f64,
}

/// What became of the centres.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CentreSearch {
    /// Centres that were moved.
    pub moved: usize,
    /// Rows that gradients were taken from.
    pub rows: usize,
    /// Times that the gradient was worked out.
    pub evaluations: usize,
    /// Log evidence of the fit with centres at rows, and with those that were moved; of all rows.
    pub fixed_log_evidence: f64,
    /// See `fixed_log_evidence`.
    pub learned_log_evidence: f64,
    /// Whether the moved ones were kept.
    pub kept: bool,
    /// Wall-clock seconds of moving them, without the second fit.
    pub seconds: f64,
}

/// q(alpha) and q(beta) of the variational scheme, (M25): Gamma distributions, whose mean is shape / rate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PrecisionPosterior {
    /// Shape of the precision of each weight.
    pub shape: f64,
    /// Means, `[M]`, the bias left out: the model's alpha, in inverse squared units of the weights.
    pub mean: Vec<f64>,
    /// Rates, `[M]`, in squared units of the weights.
    pub rate: Vec<f64>,
    /// Mean and rate of the precision of the bias, if it is in the model.
    pub intercept: Option<(f64, f64)>,
    /// Shape and rate of the noise precision, in squared units of the target, if it is learnt.
    pub noise: Option<(f64, f64)>,
}

/// How well rows that were not learnt from are predicted, by sample weight.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct HeldOutScores {
    /// Root of the mean squared error, in units of the target; of several outputs in the standard deviations of each.
    /// Regression.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rmse: Option<f64>,
    /// Mean absolute error, in the same units; regression.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mae: Option<f64>,
    /// Mean negative log predictive density, in nats, of several outputs that of all together; regression.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nlpd: Option<f64>,
    /// Share of targets within the 95 % interval of their prediction, [`Model::interval`](crate::Model::interval); regression but
    /// counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub coverage: Option<f64>,
    /// Share of rows whose class is not the most probable; classification.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_rate: Option<f64>,
    /// Mean negative log probability of the row's class, in nats; classification.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log_loss: Option<f64>,
}

/// One sparsity that was tried.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SparsityTrial {
    /// Nats per kernel.
    pub sparsity: f64,
    /// Scores of the rows left out.
    #[serde(flatten)]
    pub scores: HeldOutScores,
    /// Relevance vectors, mean over the folds.
    pub vectors: f64,
}

/// Cross-validation: the search repeated without the rows of each fold, which are then predicted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Validation {
    /// Folds.
    pub folds: usize,
    /// Rows that were predicted, each once; a row whose weight is a whole number w counts as w rows.
    pub rows: usize,
    /// Scores, at the chosen sparsity and with the factor on the variance if there is one.
    #[serde(flatten)]
    pub scores: HeldOutScores,
    /// Relevance vectors, mean over the folds.
    pub vectors: f64,
    /// Nats per kernel of the model.
    pub sparsity: f64,
    /// What it was chosen from, if it was.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tried: Vec<SparsityTrial>,
    /// What predictive variances are multiplied by, if they are calibrated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variance_factor: Option<f64>,
    /// Whether all fits have the same candidates, chosen by the inputs of all rows; else each has those of its own rows.
    pub shared_landmarks: bool,
    /// Wall-clock seconds, the fit to all rows left out.
    pub seconds: f64,
}

/// How the process prior of the weights was fitted to the centres, (M71).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ProcessFit {
    /// Centres of the model.
    pub centres: usize,
    /// Centres that the search chose.
    pub searched: usize,
    /// Mean of the prior's residual variance at the training rows over their noise variance, by the amplitude and noise of the
    /// dense process that the fit began with.
    pub residual: f64,
    /// Whether that is as low as was asked for; if not, there was no room (`dictionary`, `memory_limit`) or no time for more centres,
    /// or every other row is spanned by the centres.
    pub reached: bool,
    /// Evaluations of the log evidence.
    pub evaluations: usize,
    /// Wall-clock seconds, the search left out.
    pub seconds: f64,
}

/// How the fit went.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Report {
    /// Why it ended.
    pub status: Status,
    /// Iterations done.
    pub iterations: usize,
    /// Log evidence after each iteration.
    pub trace: Vec<TracePoint>,
    /// Basis functions that could enter the model, the bias left out.
    pub candidates: usize,
    /// What was left at the end.
    pub certificate: Certificate,
    /// What was repaired.
    pub repairs: Repairs,
    /// Whether the fit converged to a model without a relevance vector, or with some whose log evidence is within 0.5 nats of
    /// that: it predicts a constant, or next to it. The scheme `search` has then restarted as
    /// well. True as well if a dense process finds that the features tell nothing of the targets, (M69): the
    /// model is then a constant. If the kernel was given, standardise the features or learn its width (the gamma `evidence`);
    /// else check that the features carry information. `false` where the target is constant.
    #[serde(default)]
    pub nothing_found: bool,
    /// Signs that the model interpolates its rows, if there are any: measure its intervals by cross-validation ([`Validation`]),
    /// learn the kernel, or raise the sparsity.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interpolation: Option<Interpolation>,
    /// How many actions were taken.
    pub actions: Actions,
    /// How the kernel was learnt, if it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel_search: Option<KernelSearch>,
    /// What became of the centres, if they were to be learnt and there was time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub centre_search: Option<CentreSearch>,
    /// How the process prior was fitted, if the weights have one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<ProcessFit>,
    /// Under Student-t noise what each of the user's rows counts for, (M53), `[N]`: an ordinary row a little more than
    /// 1, an outlier almost 0.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub row_weights: Vec<f64>,
    /// What the variational scheme knows of the precisions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub precisions: Option<PrecisionPosterior>,
    /// What cross-validation says, if it was asked for and there was time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub validation: Option<Validation>,
    /// Wall-clock seconds.
    pub seconds: f64,
    /// The reports of the members, where models of two classes decide between more; the trace is theirs then.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub members: Vec<Report>,
}

impl Report {
    /// A fit of so many seconds, of which its end is known and nothing else yet.
    pub(crate) fn of_end(status: Status, trace: Vec<TracePoint>, certificate: Certificate, seconds: f64) -> Report {
        Report {
            status,
            iterations: trace.len(),
            trace,
            candidates: 0,
            certificate,
            repairs: Repairs::default(),
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

    /// What an observer has seen last.
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

/// An observer that does nothing.
pub fn silent<P>(_: &P) -> std::ops::ControlFlow<()> {
    std::ops::ControlFlow::Continue(())
}
