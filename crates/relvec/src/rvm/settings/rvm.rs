//! The parameters of a relevance vector machine, and what follows from them alone.

use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::dictionary::{Dictionary, DictionaryRule, Landmarks};
use super::inference::Inference;
use super::rules::{CentreRule, WeightPrior};
use super::scheme::Hyperpriors;
use super::search::Search;
use super::sparsity::{Sparsity, SparsityRule};
use crate::design::Basis;
use crate::error::{Error, Result};
use crate::kernel::{Gamma, GammaRule, Kernel};
use crate::likelihood::Likelihood;
use crate::memory;
use crate::model::{PosteriorRule, Variance};
use crate::targets::{ClassPrecisions, MultiClass, Targets, Values};

/// Nats of the rule "auto" where the scheme weighs single kernels: of 0, 0.5, 1 and 2 the best held-out density at 100 to 400
/// rows; 0 interpolates.
const AUTO_NATS: f64 = 1.0;

/// A relevance vector machine to be trained.
///
/// The defaults learn the kernel. Regression with Gaussian noise has the prior of a Gaussian process, as have classes on at most
/// 3,000 rows; elsewhere each weight has a precision of its own. [`Rvm::tipping2001`] has the settings of the papers.
///
/// ```
/// use ndarray::{Array1, Array2};
/// use relvec::{Rvm, Targets};
///
/// let x = Array2::from_shape_fn((50, 1), |(i, _)| -10.0 + 0.4 * i as f64);
/// let t: Array1<f64> = x.column(0).mapv(|x| if x == 0.0 { 1.0 } else { x.sin() / x });
/// let (model, report) = Rvm::default().fit(x.view(), &Targets::real(t.view()))?;
/// let prediction = model.predict(x.view())?;
/// assert!((prediction.mean[25] - t[25]).abs() < 0.05);
/// # Ok::<(), relvec::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Rvm {
    /// The kernel; not used with [`Basis::Given`].
    pub kernel: Kernel,
    /// Kernels to choose among by their posterior (above 3,000 rows by their evidence), instead of `kernel`; empty: only that
    /// one.
    pub kernels: Vec<Kernel>,
    /// Where the basis functions come from.
    pub basis: Basis,
    /// With a kernel: how many training rows are candidates for relevance vectors.
    pub dictionary: Dictionary,
    /// How they are chosen where they are not all.
    pub landmarks: Landmarks,
    /// Whether they stay at their rows; if not, up to 800 (or as many as the model has) are moved. Of several classes
    /// in one model of all alone.
    pub centres: CentreRule,
    /// Rounds in which landmarks that the model does not use are replaced by other rows, drawn at random;
    /// needs the scheme `search` and a dictionary of a given size, less than 1,000 (500 for classes).
    pub refresh: usize,
    /// Whether there is a bias (intercept), with its own precision, which may be pruned.
    pub bias: bool,
    /// How targets depend on the function: regression or classification.
    pub likelihood: Likelihood,
    /// How more than two classes are modelled if the likelihood is that of two.
    pub multi_class: MultiClass,
    /// Whether the weights of a basis function share a precision, where all classes have one model. With one for each
    /// class a basis function may be of use to some of them only, (M63); the search goes on from the shared ones. Of
    /// two classes with one function, and of regression, there is nothing to share.
    pub class_precisions: ClassPrecisions,
    /// How precisions are learnt.
    pub inference: Inference,
    /// How the posterior of the weights at these precisions is approximated in the end; of the scheme `variational`, which
    /// has its own, not `averaged`.
    pub posterior: PosteriorRule,
    /// What each kernel must gain, in nats, or how that is chosen; other than 0 needs the scheme `search`.
    pub sparsity: Sparsity,
    /// Folds of a cross-validation whose scores go into the report, >= 2; `None`: none, or 5 where something is
    /// chosen by it (fewer where there are fewer rows, or fewer rows of a class). The kernel is that of the fit to all
    /// rows. Equal rows are spread over the folds as other rows are; a row whose weight is a whole number w counts as w
    /// equal rows, and a row of any other weight stays whole.
    pub cv: Option<usize>,
    /// Whether predictive variances are multiplied by what cross-validation finds them to be too small by; regression.
    pub calibrate: bool,
    /// The prior of the weights, (M4), (M70), or of classes (M80).
    pub weight_prior: WeightPrior,
    /// Under a process prior: rows become centres until what they leave is at most this, > 0; `None`: 0.3 in regression (above 3,000
    /// rows 0.01), 0.005 for classes. In regression it is the mean of the prior's residual variance at the rows over the noise variance, (M71): of 0.3
    /// predictions lose 0.02 nats to those of a process on all rows; 0.1 takes a third more centres for half of that. For classes
    /// it is the mean divergence of the probabilities from those of all rows, in nats for each of the C - 1 functions of C classes, (M85).
    pub residual: Option<f64>,
    /// The variance that predictions of the model have; `healed` keeps rows. Regression with a kernel. `None`: under a process
    /// prior its own, else `healed` where that is possible.
    pub variance: Option<Variance>,
    /// Training rows that the model keeps for a healed variance (of more, a sample, which leaves means as they are),
    /// >= 1; `None`: at most 2,000 where that variance is used.
    pub keep_rows: Option<usize>,
    /// Whether the model keeps sums over its rows at the landmarks, to which further rows can be added, see
    /// [`Rvm::fit_more`]; regression, and a dictionary of a given size, or given landmarks.
    pub keep_statistics: bool,
    /// Largest number of iterations, >= 1.
    pub max_iterations: usize,
    /// Largest wall-clock time of a fit in seconds, > 0; `None`: no limit. The best model so far is returned; where the first
    /// look at all rows, which comes before any model, would take too long, one of a sample of the rows, or of some candidates.
    pub time_limit: Option<f64>,
    /// Most memory that a fit may take, in bytes; `None`: a quarter of the machine's.
    pub memory_limit: Option<u64>,
    /// Threads, from 1 to [`MOST_THREADS`](crate::MOST_THREADS); `None`: as many as there are processors. Results do not
    /// depend on it.
    pub threads: Option<usize>,
    /// Seed of the random choices (of the dictionary, and of a starting set when it is large).
    pub seed: u64,
}

impl Default for Rvm {
    fn default() -> Self {
        Rvm {
            kernel: Kernel::Rbf(crate::Rbf { gamma: Gamma::Rule(GammaRule::Evidence) }),
            kernels: vec![],
            basis: Basis::Kernel,
            dictionary: Dictionary::default(),
            landmarks: Landmarks::default(),
            centres: CentreRule::Fixed,
            refresh: 0,
            bias: true,
            likelihood: Likelihood::Gaussian(crate::Gaussian::default()),
            multi_class: MultiClass::default(),
            class_precisions: ClassPrecisions::default(),
            inference: Inference::Search(Search::default()),
            posterior: PosteriorRule::default(),
            sparsity: Sparsity::default(),
            cv: None,
            calibrate: false,
            weight_prior: WeightPrior::default(),
            residual: None,
            variance: None,
            keep_rows: None,
            keep_statistics: false,
            max_iterations: 10_000,
            time_limit: None,
            memory_limit: None,
            threads: None,
            seed: 0,
        }
    }
}

impl Rvm {
    /// Whether each class of such targets has precisions of its own.
    pub(crate) fn by_class(&self) -> bool {
        self.class_precisions == ClassPrecisions::PerClass && self.likelihood.as_dyn().couples_classes()
    }

    /// Bytes that a fit may take: the limit, or a quarter of the machine's memory.
    pub fn memory_allowed(&self) -> u64 {
        memory::allowed(self.memory_limit)
    }

    /// These parameters with any kernel instead of one that is to be learned: the rows of a table do not depend on it.
    pub(crate) fn with_stand_in(&self) -> Rvm {
        let kernel = if self.learns_kernel() { Kernel::Rbf(crate::Rbf::default()) } else { self.kernel.clone() };
        Rvm { kernel, kernels: vec![], ..self.clone() }
    }

    /// Labels and number of classes if there are more classes than the likelihood of two allows.
    pub(crate) fn several<'t>(&self, targets: &Targets<'t>) -> Result<Option<(&'t [usize], usize)>> {
        match (&self.likelihood, targets.values) {
            (Likelihood::Bernoulli(_), Values::Classes { labels, count }) if count > 2 => Ok(Some((labels, count))),
            _ => Ok(None),
        }
    }

    pub(crate) fn multi_class_rule(&self) -> MultiClass {
        match (self.multi_class, &self.inference) {
            (MultiClass::Auto, Inference::Variational(_)) => MultiClass::OneVsRest,
            (MultiClass::Auto, _) => MultiClass::Joint,
            (rule, _) => rule,
        }
    }

    /// These parameters for one model of all classes.
    pub(crate) fn joint(&self) -> Rvm {
        Rvm { likelihood: Likelihood::Softmax(crate::Softmax::default()), ..self.clone() }
    }

    /// Whether the relevance of a model counts rows of the training table.
    pub(crate) fn picks_rows(&self) -> bool {
        self.basis == Basis::Kernel && !matches!(self.landmarks, Landmarks::Given(_))
    }

    /// Threads of our own: the caller's global pool is left alone.
    pub(crate) fn pool(&self) -> Result<rayon::ThreadPool> {
        crate::linalg::thread_pool(self.threads)
    }

    pub(crate) fn without_dictionary(&self) -> Rvm {
        let default = Rvm::default();
        Rvm {
            basis: default.basis,
            dictionary: Dictionary::Rule(DictionaryRule::All),
            landmarks: default.landmarks,
            centres: default.centres,
            kernels: vec![],
            refresh: 0,
            keep_statistics: false,
            ..self.clone()
        }
    }

    pub(crate) fn deadline(&self, start: Instant) -> Option<Instant> {
        // A limit beyond what the clock can tell is none.
        self.time_limit.and_then(|limit| start.checked_add(Duration::try_from_secs_f64(limit).ok()?))
    }

    /// Whether there is to be a cross-validation.
    pub(crate) fn validates(&self) -> bool {
        self.cv.is_some() || self.chooses_sparsity() || self.calibrate
    }

    /// The error that cross-validation is not possible, by the parameter that asks for it.
    pub(crate) fn no_validation(&self, reason: &str) -> Error {
        let (name, found, instead) = match self.cv {
            Some(folds) => ("cv", folds.to_string(), "null"),
            None if self.chooses_sparsity() => ("sparsity", "\"cv\"".into(), "a number"),
            None => ("calibrate", "true".into(), "false"),
        };
        Error::Parameter { name: name.into(), found, expected: format!("{instead}: {reason}") }
    }

    pub(crate) fn chooses_sparsity(&self) -> bool {
        self.sparsity == Sparsity::Rule(SparsityRule::Cv)
    }

    /// Whether rows are asked to be kept.
    pub(crate) fn keeps_rows(&self) -> bool {
        self.keep_rows.is_some() || self.variance == Some(Variance::Healed)
    }

    /// Whether a fit to sums over rows would not do: the kernel, or where its centres are, is to be learnt, or rows are
    /// to be validated on or kept.
    pub fn needs_rows(&self) -> bool {
        self.learns_basis() || self.validates() || self.keeps_rows()
    }

    /// Whether the kernel, or where its centres are, is to be learnt.
    pub(crate) fn learns_basis(&self) -> bool {
        self.basis == Basis::Kernel && (self.learns_kernel() || self.centres == CentreRule::Learned)
    }

    /// Whether the kernel is learned from the data: which one of several, or its gamma.
    pub fn learns_kernel(&self) -> bool {
        !self.kernels.is_empty() || self.kernel.learnt_rule().is_some()
    }

    /// The kernels to choose among: `kernels`, or `kernel` alone where these are empty.
    pub fn to_try(&self) -> &[Kernel] {
        if self.kernels.is_empty() { std::slice::from_ref(&self.kernel) } else { &self.kernels }
    }

    /// Nats per kernel; of the rule "cv" those that its search begins at.
    pub(crate) fn nats(&self) -> f64 {
        let shared = self.class_precisions == ClassPrecisions::Shared;
        let flat = self.inference.as_dyn().hyperpriors() == Hyperpriors::default();
        match self.sparsity {
            Sparsity::Nats(nats) => nats,
            Sparsity::Rule(SparsityRule::Auto) if matches!(self.inference, Inference::Search(_)) && shared && flat => AUTO_NATS,
            Sparsity::Rule(_) => 0.0,
        }
    }
}
