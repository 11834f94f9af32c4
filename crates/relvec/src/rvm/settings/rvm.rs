//! The parameters of a relevance vector machine, named settings, values that depend on them alone, and checks: ranges,
//! and combinations that are not possible.

use std::str::FromStr;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::design::Basis;
use crate::error::{Error, Result, require, require_threads};
use crate::kernel::{Gamma, GammaRule, Kernel};
use crate::likelihood::Likelihood;
use crate::memory;
use crate::model::{PosteriorRule, Variance};
use crate::registry::rules;
use crate::rvm::settings::dictionary::{Dictionary, DictionaryRule, Landmarks};
use crate::rvm::settings::scheme::{Hyperpriors, Inference, Search, Variational};
use crate::targets::{MultiClass, Targets, Values};

/// Values of the sparsity that are allowed, for errors.
const NATS: &str = "zero or a positive number of nats, \"auto\" or \"cv\"";
/// Sparsity of the rule `auto` for schemes that score single kernels, in nats per kernel. Of 0, 0.5, 1 and 2 it has the
/// best held-out density at 100 to 400 rows; 0 interpolates.
const AUTO_NATS: f64 = 1.0;
/// Default of [`Rvm::residual`] for classes: mean divergence of the class probabilities from those of all rows, in nats for each of the C - 1
/// functions. Held-out log losses are then 0.002 to 0.01 nats higher. 0.01 needs two thirds of the centres and loses twice as much; 0.002
/// needs a third more centres and loses half.
const CLASS_RESIDUAL: f64 = 0.005;
/// Default of [`Rvm::residual`] for regression: mean residual variance of the prior at the rows over the noise variance. Predictions lose 0.02
/// nats to a process on all rows. 0.1 needs a third more centres and loses a third of that.
const RESIDUAL: f64 = 0.3;
/// Default of [`Rvm::residual`] for counts. On 72 tables of 100 rows, predictions are as good as those of a process on a quarter of the rows,
/// with a third of its centres; 0.3 takes two thirds of the centres and loses 0.008 nats. The residual also widens intervals, and more
/// so for exposures above those of the rows.
const COUNT_RESIDUAL: f64 = 0.1;

/// Parameters of a relevance vector machine.
///
/// By default the kernel is learned from the data. The weights have the prior of a Gaussian process in regression with
/// Gaussian or Student-t noise, for counts, and for classes that share one model.
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
    /// 0.3 in regression and 0.1 for counts (0.01 above 3,000 rows), and 0.005 for classes. At 0.3 predictions lose 0.02 nats to those of a
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
        self.basis == Basis::Kernel && self.landmarks.given().is_none()
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

impl Rvm {
    /// Checks the parameters without data.
    ///
    /// # Errors
    /// Returns [`Error::Parameter`], which names the first parameter that is out of its range or cannot be
    /// combined with another one.
    pub fn check(&self) -> Result<()> {
        if self.basis == Basis::Kernel {
            self.kernel.check()?;
            self.kernels.iter().try_for_each(Kernel::check)?;
            self.check_learned_kernels()?;
        }
        self.likelihood.check()?;
        self.inference.as_dyn().check(&format!("inference.{}", self.inference.name()))?;
        self.sparsity.check()?;
        let expected = "0, or the scheme search: the other schemes do not score single kernels";
        let searches = matches!(self.inference, Inference::Search(_));
        let found = || serde_json::to_string(&self.sparsity).unwrap_or_default();
        require(searches || !self.sparsity.is_asked(), || "sparsity".into(), found(), expected)?;
        self.check_classes()?;
        self.check_predictions()?;
        self.check_statistics()?;
        self.check_weight_prior()?;
        let likelihood = self.likelihood.as_dyn();
        let suits = likelihood.has_variational_bound() || self.inference.name() != Variational::NAME;
        require(suits || likelihood.classifies(), || "inference".into(), Variational::NAME, &{
            format!("search, sequential, mackay or em: the scheme has no lower bound for likelihood = {}", self.likelihood.name())
        })?;
        let fixed = self.centres == CentreRule::Fixed || likelihood.scale_mixture().is_none();
        require(fixed, || "centres".into(), "learned", "fixed: centres cannot be learned under Student-t noise")?;
        self.check_candidates()?;
        require(self.max_iterations >= 1, || "max_iterations".into(), self.max_iterations, "a whole number of at least 1")?;
        let limit = self.time_limit.unwrap_or(1.0);
        require(limit.is_finite() && limit > 0.0, || "time_limit".into(), limit, "a positive number of seconds, or null")?;
        require_threads(self.threads)
    }

    /// Checks that kernels which are to be learned or compared are covariances of a Gaussian process.
    fn check_learned_kernels(&self) -> Result<()> {
        let Some(kernel) = self.to_try().iter().find(|kernel| self.learns_kernel() && !kernel.is_covariance()) else {
            return Ok(());
        };
        let name = kernel.name();
        let reason = "this kernel is no covariance of a Gaussian process, and only covariances can be learned or compared";
        match self.kernel.learned_rule().filter(|_| self.kernels.is_empty()) {
            Some(rule) => {
                let expected = format!("scale, or a positive number: {reason}");
                require(false, || format!("kernel.{name}.gamma"), rule.name(), &expected)
            }
            None => require(false, || "kernels".into(), name, &format!("other kernels: {reason}")),
        }
    }

    /// Checks what only models of classes have.
    fn check_classes(&self) -> Result<()> {
        if matches!(self.likelihood, Likelihood::Softmax(_)) {
            let (rule, scheme) = (self.multi_class, self.inference.name());
            let expected = "auto or joint, or likelihood = bernoulli: the softmax is one model of all classes";
            let joint = matches!(rule, MultiClass::Auto | MultiClass::Joint);
            require(joint, || "multi_class".into(), rule.name(), expected)?;
            let expected = "search, sequential, mackay or em, or multi_class = one_vs_rest or one_vs_one: the scheme fits two classes at a time";
            require(scheme != Variational::NAME, || "inference".into(), scheme, expected)?;
        }
        Ok(())
    }

    /// Checks cross-validation and what predictions need.
    fn check_predictions(&self) -> Result<()> {
        let own = self.posterior != PosteriorRule::Averaged || self.inference.name() != Variational::NAME;
        let expected =
            "auto or laplace, or the scheme search, sequential, mackay or em: the scheme variational has its own posterior";
        require(own, || "posterior".into(), self.posterior.name(), expected)?;
        require(self.cv.is_none_or(|folds| folds >= 2), || "cv".into(), self.cv.unwrap_or(0), "at least 2 folds, or null")?;
        let gaussian = matches!(self.likelihood, Likelihood::Gaussian(_));
        let expected = "false: only variances of regression with Gaussian noise can be calibrated";
        require(gaussian || !self.calibrate, || "calibrate".into(), true, expected)?;
        require(self.keep_rows != Some(0), || "keep_rows".into(), 0, "at least 1 row, or null")?;
        let (healed, rows) = (self.variance == Some(Variance::Healed), self.keep_rows.is_some());
        let name = if healed { ("variance", "healed", "posterior") } else { ("keep_rows", "a number", "null") };
        let possible = gaussian && self.basis == Basis::Kernel;
        let expected = format!("{}, or Gaussian noise and a built-in kernel, which healed variances need", name.2);
        require(possible || !(healed || rows), || name.0.into(), name.1, &expected)
    }

    /// Checks which basis functions are candidates.
    fn check_candidates(&self) -> Result<()> {
        if let Dictionary::Size(size) = self.dictionary {
            let name = || "dictionary".into();
            require(size >= 1, name, size, "a whole number of at least 1, \"all\" or \"auto\"")?;
            let expected = "all or auto: every column of a given design matrix is a candidate";
            require(self.basis == Basis::Kernel, name, size, expected)?;
        }
        if self.centres == CentreRule::Learned {
            let name = || "centres".into();
            let expected = "fixed, or no cv, calibrate or sparsity = cv: learned centres have seen the rows that are held out";
            require(!self.validates(), name, "learned", expected)?;
            require(self.basis == Basis::Kernel, name, "learned", "fixed: the columns of a design matrix have no centres")?;
            let rows = self.landmarks.given().is_none();
            require(rows, name, "learned", "fixed, or landmarks that are not given")?;
            for kernel in self.to_try() {
                let expected = format!("fixed: the kernel {} has no gradient in its centres", kernel.name());
                require(kernel.moves_centres(), name, "learned", &expected)?;
            }
        }
        Ok(())
    }

    /// Checks the parameters of a model that keeps its sufficient statistics.
    fn check_statistics(&self) -> Result<()> {
        if !self.keep_statistics {
            return Ok(());
        }
        let named = || "keep_statistics".to_string();
        let gaussian = matches!(self.likelihood, Likelihood::Gaussian(_));
        let expected = "false: only regression with Gaussian noise has sufficient statistics";
        require(gaussian, named, true, expected)?;
        let sized = matches!(self.dictionary, Dictionary::Size(_)) || self.landmarks.given().is_some();
        let expected = "false, or a kernel with a dictionary size or given landmarks, whose statistics are kept";
        require(sized && self.basis == Basis::Kernel, named, true, expected)?;
        let expected = "false, or centres = fixed: statistics belong to fixed landmarks";
        require(self.centres == CentreRule::Fixed, named, true, expected)
    }

    /// Checks the parameters for targets of several outputs.
    ///
    /// # Errors
    /// Returns [`Error::Parameter`] for the scheme `variational`, hyperpriors on weights, and kept statistics.
    pub(crate) fn check_several_outputs(&self, outputs: usize) -> Result<()> {
        let scheme = self.inference.name();
        let expected = format!("search, sequential, mackay or em: the scheme fits one output, found {outputs}");
        require(scheme != Variational::NAME, || "inference".into(), scheme, &expected)?;
        let Hyperpriors { a, b, .. } = self.inference.as_dyn().hyperpriors();
        for (letter, value) in [("a", a), ("b", b)] {
            let expected = format!("0 for {outputs} outputs, whose weight precisions are relative to noise precisions");
            require(value == 0.0, || format!("inference.{scheme}.hyperpriors.{letter}"), value, &expected)?;
        }
        let expected = format!("false: statistics can be kept for one output, found {outputs}");
        require(!self.keep_statistics, || "keep_statistics".into(), true, &expected)
    }
}

impl Rvm {
    /// Returns the first setting that a process prior cannot be combined with, and the reason; `None` if there is none.
    pub(crate) fn without_process(&self) -> Option<String> {
        let kernel = self.to_try().iter().find(|kernel| !kernel.is_covariance());
        let classes = self.likelihood.is_for_classes();
        let unless = [
            (self.basis == Basis::Given, "basis = given: columns of a design matrix have no covariance between rows".into()),
            (
                kernel.is_some(),
                format!("kernel = {}: it is no covariance of a Gaussian process", kernel.map_or("", |kernel| kernel.name())),
            ),
            (
                self.variance == Some(Variance::Healed),
                "variance = healed: the variance of a process grows away from the data by itself".into(),
            ),
            (self.keep_rows.is_some(), "keep_rows: the variance of a process needs no training rows".into()),
            (self.keep_statistics, "keep_statistics: the statistics do not determine the posterior under a process prior".into()),
            (self.centres == CentreRule::Learned, "centres = learned: the centres of a process prior are rows".into()),
            (
                self.posterior == PosteriorRule::Averaged && !classes && !self.likelihood.as_dyn().counts(),
                "posterior = averaged: the posterior is exact".into(),
            ),
            (
                self.inference.name() == Variational::NAME,
                "inference = variational: that scheme has a distribution over precisions".into(),
            ),
            (
                classes && self.posterior != PosteriorRule::Auto,
                format!("posterior = {}: classes are learned by regression on labels", self.posterior.name()),
            ),
            (
                classes && !matches!(self.inference, Inference::Search(_)),
                format!("inference = {}: classes are learned by regression on labels", self.inference.name()),
            ),
            (
                classes && self.chooses_sparsity(),
                "sparsity = cv: classes are learned by regression on labels, without a search".into(),
            ),
            (classes && !self.bias, "bias = false: regression on labels always has a constant".into()),
        ];
        unless.into_iter().find(|(found, _)| *found).map(|(_, reason)| reason)
    }

    /// Checks the prior of the weights.
    fn check_weight_prior(&self) -> Result<()> {
        let residual = self.most_residual();
        let good = residual.is_finite() && residual > 0.0;
        require(good, || "residual".into(), residual, "a positive number, or null")?;
        match self.without_process().filter(|_| self.weight_prior == WeightPrior::Process) {
            Some(reason) => self.refuse_process(&reason),
            None => Ok(()),
        }
    }

    /// Returns [`Rvm::residual`] or its default.
    pub(crate) fn most_residual(&self) -> f64 {
        self.residual.unwrap_or(match self.likelihood.as_dyn() {
            likelihood if likelihood.classifies() => CLASS_RESIDUAL,
            likelihood if likelihood.counts() => COUNT_RESIDUAL,
            _ => RESIDUAL,
        })
    }

    /// Returns the error that `weight_prior = process` cannot be combined with what `reason` names; no error for another prior.
    pub(crate) fn refuse_process(&self, reason: &str) -> Result<()> {
        let expected = format!("ard or auto: process cannot be combined with {reason}");
        require(self.weight_prior != WeightPrior::Process, || "weight_prior".into(), self.weight_prior.name(), &expected)
    }

    /// Returns true if a fit to rows that are not in memory ([`Rvm::fit_rows`], [`Rvm::fit_blocks_with_sample`]) has the process prior.
    /// This is so for `weight_prior = process`. It is so for `auto` unless a setting of the search, a linear spline or
    /// cross-validation needs another prior.
    pub fn has_process_in_blocks(&self) -> bool {
        let spline = self.to_try().iter().any(|kernel| matches!(kernel, Kernel::LinearSpline(_)));
        let auto = self.has_no_search_settings() && !spline && !self.validates() && self.without_process().is_none();
        match self.weight_prior {
            WeightPrior::Ard => false,
            WeightPrior::Process => true,
            WeightPrior::Auto => auto,
        }
    }

    /// Returns true if all settings of the search are the defaults. Large tables are then fitted without a search.
    pub(crate) fn has_no_search_settings(&self) -> bool {
        let plain = self.inference == Inference::Search(Search::default());
        plain && !self.sparsity.is_asked()
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
        /// In regression and for counts, other rows complete the relevance vectors of the search until the
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
