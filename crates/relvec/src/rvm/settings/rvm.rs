//! The parameters of a relevance vector machine, named settings, and values that depend on them alone.

use std::str::FromStr;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::design::Basis;
use crate::error::{Error, Result, require};
use crate::kernel::{Gamma, GammaRule, Kernel};
use crate::likelihood::Likelihood;
use crate::memory;
use crate::model::{PosteriorRule, Variance};
use crate::registry::rules;
use crate::rvm::settings::dictionary::{Dictionary, DictionaryRule, Landmarks};
use crate::rvm::settings::scheme::{Hyperpriors, Inference, Search};
use crate::targets::{MultiClass, Targets, Values};

/// Values of the sparsity that are allowed, for errors.
const NATS: &str = "zero or a positive number of nats, \"auto\" or \"cv\"";
/// Sparsity of the rule `auto` for schemes that score single kernels, in nats per kernel. Of 0, 0.5, 1 and 2 it has the
/// best held-out density at 100 to 400 rows; 0 interpolates.
const AUTO_NATS: f64 = 1.0;

/// Parameters of a relevance vector machine.
///
/// By default the kernel is learned from the data. The weights have the prior of a Gaussian process in regression with
/// Gaussian noise, and for classes that share one model. For other likelihoods every weight has its own precision.
/// [`Rvm::tipping2001`] returns the settings of the papers.
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
    /// Kernel of the basis functions. [`Basis::Given`] does not use it.
    pub kernel: Kernel,
    /// Kernels to choose among, instead of `kernel`. The choice is by their posterior density, above 3,000 rows by
    /// their evidence. If empty, `kernel` is used.
    pub kernels: Vec<Kernel>,
    /// Source of the basis functions: a kernel, or the columns of a given design matrix.
    pub basis: Basis,
    /// Number of training rows that are candidates for relevance vectors.
    pub dictionary: Dictionary,
    /// Rule by which the candidates are chosen if they are not all rows, or given centres.
    pub landmarks: Landmarks,
    /// Rule for the centres of the kernels: at training rows, or learned by the gradient of the log evidence. At most
    /// 800 centres are moved, or as many as the model has. For more than two classes, centres are learned only in one
    /// model of all classes.
    pub centres: CentreRule,
    /// True if the model has a bias (intercept). The bias has its own precision and may be pruned.
    pub bias: bool,
    /// Distribution of a target given the function: regression, counts or classes.
    pub likelihood: Likelihood,
    /// Strategy for more than two classes if the likelihood is for two: one joint model, one-vs-rest or one-vs-one.
    pub multi_class: MultiClass,
    /// Scheme that learns the precisions.
    pub inference: Inference,
    /// Approximation of the posterior of the weights at the learned precisions. `averaged` cannot be combined with the
    /// scheme `variational`, which has its own posterior.
    pub posterior: PosteriorRule,
    /// Log prior odds against each kernel in nats, or a rule for them. A value other than 0 requires the scheme
    /// `search`.
    pub sparsity: Sparsity,
    /// Number of folds, >= 2, of a cross-validation whose scores go into the report. With `None` there is no
    /// cross-validation, or one with 5 folds if a setting is chosen by it (fewer folds if there are fewer rows, or
    /// fewer rows of a class). The kernel is that of the fit to all rows. Equal rows may be in different folds. A row
    /// whose weight is a whole number w counts as w equal rows; a row of any other weight is in one fold.
    pub cv: Option<usize>,
    /// True if predictive variances of a regression are multiplied by the mean squared standardised residual of
    /// held-out rows, if that is above 1.
    pub calibrate: bool,
    /// Prior of the weights: (M4), (M70), and for classes (M80).
    pub weight_prior: WeightPrior,
    /// Bound, > 0, at which a process prior needs no further centres. In regression it bounds the mean residual
    /// variance of the prior at the rows over the noise variance, (M71). For classes it bounds the mean divergence of
    /// the probabilities from those of all rows, in nats for each of the C - 1 functions of C classes, (M85). `None` is
    /// 0.3 in regression (0.01 above 3,000 rows) and 0.005 for classes. At 0.3 predictions lose 0.02 nats to those of a
    /// process on all rows; 0.1 needs a third more centres and loses half of that.
    pub residual: Option<f64>,
    /// Kind of predictive variance of a regression with a kernel. `healed` stores training rows in the model. `None` is
    /// the variance of the process under a process prior, else `healed` if that is possible.
    pub variance: Option<Variance>,
    /// Largest number of training rows, >= 1, that the model stores for a healed variance. A sample of the rows changes
    /// no means. `None` is 2,000 for a healed variance and none otherwise.
    pub keep_rows: Option<usize>,
    /// True if the model stores its sufficient statistics, so that [`Rvm::fit_more`] can add rows. This requires
    /// regression with Gaussian noise, and a dictionary size or given landmarks.
    pub keep_statistics: bool,
    /// Largest number of iterations, >= 1.
    pub max_iterations: usize,
    /// Time limit of a fit in seconds of wall-clock time, > 0; `None` is no limit. At the limit the fit returns the
    /// best model so far. If the first pass over all rows would take too long, the model is of a sample of the rows, or
    /// of some of the candidates.
    pub time_limit: Option<f64>,
    /// Most memory of a fit in bytes; `None` is a quarter of the machine's memory.
    pub memory_limit: Option<u64>,
    /// Number of threads, from 1 to [`MOST_THREADS`](crate::MOST_THREADS); `None` is the number of processors. Results
    /// do not depend on it.
    pub threads: Option<usize>,
    /// Seed of the random choices of candidates, samples of rows and starting sets.
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
            bias: true,
            likelihood: Likelihood::Gaussian(crate::Gaussian::default()),
            multi_class: MultiClass::default(),
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
    /// Returns the memory limit in bytes: the given one, or a quarter of the machine's memory.
    pub fn memory_allowed(&self) -> u64 {
        memory::allowed(self.memory_limit)
    }

    /// Returns these parameters with a fixed kernel in place of one that is to be learned. The training set does not
    /// depend on the kernel.
    pub(crate) fn with_stand_in(&self) -> Rvm {
        let kernel = if self.learns_kernel() { Kernel::Rbf(crate::Rbf::default()) } else { self.kernel.clone() };
        Rvm { kernel, kernels: vec![], ..self.clone() }
    }

    /// Returns labels, `[N]`, and number of classes if there are more than two and the likelihood is for two.
    pub(crate) fn several<'t>(&self, targets: &Targets<'t>) -> Result<Option<(&'t [usize], usize)>> {
        match (&self.likelihood, targets.values) {
            (Likelihood::Bernoulli(_), Values::Classes { labels, count }) if count > 2 => Ok(Some((labels, count))),
            _ => Ok(None),
        }
    }

    /// Returns the strategy for more than two classes, with `auto` resolved.
    pub(crate) fn multi_class_rule(&self) -> MultiClass {
        match (self.multi_class, &self.inference) {
            (MultiClass::Auto, Inference::Variational(_)) => MultiClass::OneVsRest,
            (MultiClass::Auto, _) => MultiClass::Joint,
            (rule, _) => rule,
        }
    }

    /// Returns these parameters with the softmax likelihood: one model of all classes.
    pub(crate) fn joint(&self) -> Rvm {
        Rvm { likelihood: Likelihood::Softmax(crate::Softmax::default()), ..self.clone() }
    }

    /// Returns true if a model's relevance vectors are rows of the training table, and not given landmarks or columns.
    pub(crate) fn picks_rows(&self) -> bool {
        self.basis == Basis::Kernel && !matches!(self.landmarks, Landmarks::Given(_))
    }

    /// Returns a thread pool for the fit, which is independent of the caller's global pool.
    pub(crate) fn pool(&self) -> Result<rayon::ThreadPool> {
        crate::linalg::thread_pool(self.threads)
    }

    /// Returns these parameters for centres that are given: every setting of the dictionary has its default.
    pub(crate) fn without_dictionary(&self) -> Rvm {
        let default = Rvm::default();
        Rvm {
            basis: default.basis,
            dictionary: Dictionary::Rule(DictionaryRule::All),
            landmarks: default.landmarks,
            centres: default.centres,
            kernels: vec![],
            keep_statistics: false,
            ..self.clone()
        }
    }

    /// Returns the end of the time limit of a fit that began at `start`; `None` without a limit.
    pub(crate) fn deadline(&self, start: Instant) -> Option<Instant> {
        // A limit beyond the range of the clock is no limit.
        self.time_limit.and_then(|limit| start.checked_add(Duration::try_from_secs_f64(limit).ok()?))
    }

    /// Returns true if a fit includes a cross-validation.
    pub(crate) fn validates(&self) -> bool {
        self.cv.is_some() || self.chooses_sparsity() || self.calibrate
    }

    /// Returns the error that cross-validation is not possible. It names the parameter that requires it.
    pub(crate) fn no_validation(&self, reason: &str) -> Error {
        let (name, found, instead) = match self.cv {
            Some(folds) => ("cv", folds.to_string(), "null"),
            None if self.chooses_sparsity() => ("sparsity", "\"cv\"".into(), "a number"),
            None => ("calibrate", "true".into(), "false"),
        };
        Error::Parameter { name: name.into(), found, expected: format!("{instead}: {reason}") }
    }

    /// Returns true if cross-validation chooses the sparsity.
    pub(crate) fn chooses_sparsity(&self) -> bool {
        self.sparsity == Sparsity::Rule(SparsityRule::Cv)
    }

    /// Returns true if the settings ask for training rows in the model.
    pub(crate) fn keeps_rows(&self) -> bool {
        self.keep_rows.is_some() || self.variance == Some(Variance::Healed)
    }

    /// Returns true if a fit needs the rows and not only sums over them. This is so if the kernel or the centres are
    /// learned, with cross-validation, and if rows are stored in the model.
    pub fn needs_rows(&self) -> bool {
        self.learns_basis() || self.validates() || self.keeps_rows()
    }

    /// Returns true if the kernel or the centres are to be learned.
    pub(crate) fn learns_basis(&self) -> bool {
        self.basis == Basis::Kernel && (self.learns_kernel() || self.centres == CentreRule::Learned)
    }

    /// Returns true if the kernel is learned from the data: its parameters, or the choice among several.
    pub fn learns_kernel(&self) -> bool {
        !self.kernels.is_empty() || self.kernel.learned_rule().is_some()
    }

    /// Returns the kernels to choose among: `kernels`, or `kernel` alone if that list is empty.
    pub fn to_try(&self) -> &[Kernel] {
        if self.kernels.is_empty() { std::slice::from_ref(&self.kernel) } else { &self.kernels }
    }

    /// Returns the sparsity in nats per kernel. For the rule `cv` it is the value that the choice begins with.
    pub(crate) fn nats(&self) -> f64 {
        let flat = self.inference.as_dyn().hyperpriors() == Hyperpriors::default();
        match self.sparsity {
            Sparsity::Nats(nats) => nats,
            Sparsity::Rule(SparsityRule::Auto) if matches!(self.inference, Inference::Search(_)) && flat => AUTO_NATS,
            Sparsity::Rule(_) => 0.0,
        }
    }
}

impl Rvm {
    /// Returns the settings of the papers.
    ///
    /// These are a Gaussian kernel of given width, one precision per weight, an intercept that may be pruned, a search
    /// for the highest evidence without a penalty (sparsity 0), and the variance of the posterior.
    ///
    /// The papers choose the width by cross-validation. Here gamma is 1 / (features x variance), unless the kernel is
    /// replaced as in the example.
    ///
    /// Sources: Tipping, "Sparse Bayesian learning and the relevance vector machine", Journal of Machine Learning
    /// Research 1, 2001, for the model; Tipping and Faul, "Fast marginal likelihood maximisation for sparse Bayesian
    /// models", Artificial Intelligence and Statistics, 2003, for the search.
    ///
    /// ```
    /// use relvec::{Rbf, Rvm};
    ///
    /// let rvm = Rvm { kernel: Rbf { gamma: 0.1.into() }.into(), ..Rvm::tipping2001() };
    /// rvm.check()?;
    /// # Ok::<(), relvec::Error>(())
    /// ```
    pub fn tipping2001() -> Rvm {
        Rvm {
            kernel: Kernel::Rbf(crate::Rbf { gamma: Gamma::Rule(GammaRule::Scale) }),
            bias: true,
            inference: Inference::Search(Search::default()),
            sparsity: 0.0.into(),
            variance: Some(Variance::Posterior),
            weight_prior: WeightPrior::Ard,
            ..Rvm::default()
        }
    }
}

rules! {
    /// Rule for the centres of kernels.
    #[derive(Default)]
    pub enum CentreRule, "rule for centres" {
        /// Every centre is a training row or a given landmark.
        #[default]
        Fixed = "fixed",
        /// The gradient of the log evidence moves the centres. They are kept if the evidence of all rows is higher.
        Learned = "learned",
    }
}

rules! {
    /// Prior of the weights.
    #[derive(Default)]
    pub enum WeightPrior, "prior of the weights" {
        /// Every weight has its own precision, which is learned: automatic relevance determination, Tipping's model.
        Ard = "ard",
        /// The weights have the covariance of a Gaussian process with the kernel, (M70). The variance of predictions
        /// grows away from the data.
        ///
        /// In regression with Gaussian noise, other rows complete the relevance vectors of the search until the
        /// residual variance of the prior is small, see [`Rvm::residual`](crate::Rvm::residual). Above 3,000 rows there
        /// is no search, and its settings have no effect: the centres are rows drawn at random, 1,500 at most unless
        /// the dictionary has a size. Classes in one model are learned by regression on their labels, without a search,
        /// (M80).
        Process = "process",
        /// `process` if it can be combined with the other settings, else `ard`. Above 3,000 rows, settings of the
        /// search (inference, sparsity) also select `ard`.
        #[default]
        Auto = "auto",
    }
}

/// Log prior odds against each kernel, in nats: a model of M kernels has the log prior -M times this, (M56).
///
/// With 0 the evidence alone decides, as in the papers. The search then picks the best of very many sets of kernels
/// without a penalty for the selection. If more than a tenth of the rows become relevance vectors, intervals are too
/// narrow.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(untagged, expecting = "sparsity must be zero or a positive number of nats, \"auto\" or \"cv\"")]
pub enum Sparsity {
    /// A number of nats, >= 0.
    Nats(f64),
    /// A rule.
    Rule(SparsityRule),
}

/// Rules for [`Sparsity`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SparsityRule {
    /// 1 for the scheme `search` without hyperpriors, else 0.
    Auto,
    /// The value with the best predictions of held-out rows, by cross-validation, see [`Rvm::cv`](crate::Rvm::cv).
    Cv,
}

impl Default for Sparsity {
    fn default() -> Self {
        Sparsity::Rule(SparsityRule::Auto)
    }
}

impl From<f64> for Sparsity {
    fn from(nats: f64) -> Self {
        Sparsity::Nats(nats)
    }
}

impl FromStr for Sparsity {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let bad = || Error::Parameter { name: "sparsity".into(), found: text.into(), expected: NATS.into() };
        let sparsity = match text {
            "auto" => Sparsity::Rule(SparsityRule::Auto),
            "cv" => Sparsity::Rule(SparsityRule::Cv),
            _ => Sparsity::Nats(text.parse().map_err(|_| bad())?),
        };
        sparsity.check().map(|()| sparsity)
    }
}

impl Sparsity {
    pub(crate) fn check(self) -> Result<()> {
        match self {
            Sparsity::Nats(nats) => require(nats.is_finite() && nats >= 0.0, || "sparsity".into(), nats, NATS),
            Sparsity::Rule(_) => Ok(()),
        }
    }

    /// Returns true if a penalty is given or is to be chosen by cross-validation.
    pub(crate) fn is_asked(self) -> bool {
        !matches!(self, Sparsity::Rule(SparsityRule::Auto)) && self != Sparsity::Nats(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tipping2001_has_the_settings_of_the_papers() {
        let rvm = Rvm::tipping2001();
        rvm.check().unwrap();
        assert_eq!(rvm.kernel.gamma(), Some(&Gamma::Rule(GammaRule::Scale)));
        assert!(rvm.kernels.is_empty() && rvm.bias && !rvm.calibrate);
        assert_eq!((rvm.nats(), rvm.variance, rvm.weight_prior), (0.0, Some(Variance::Posterior), WeightPrior::Ard));
        assert!(matches!(rvm.inference, Inference::Search(_)));
    }
}
