//! What parameters may be.

use super::dictionary::{Dictionary, Landmarks};
use super::inference::Inference;
use super::rules::{CentreRule, WeightPrior};
use super::rvm::Rvm;
use super::scheme::Hyperpriors;
use super::schemes::Variational;
use super::search::Search;
use crate::design::Basis;
use crate::error::{Result, require, require_threads};
use crate::kernel::{DataScale, Kernel};
use crate::likelihood::Likelihood;
use crate::model::{PosteriorRule, Variance};
use crate::targets::{ClassPrecisions, MultiClass};

impl Rvm {
    /// Checks the parameters alone, without data.
    ///
    /// # Errors
    /// [`Error::Parameter`](crate::Error::Parameter) names the first parameter out of its range.
    pub fn check(&self) -> Result<()> {
        if self.basis == Basis::Kernel {
            self.kernel.check()?;
            self.kernels.iter().try_for_each(Kernel::check)?;
            self.check_learned_kernels()?;
        }
        self.likelihood.check()?;
        self.inference.as_dyn().check(&format!("inference.{}", self.inference.name()))?;
        self.sparsity.check()?;
        let expected = "0: the other schemes weigh no single kernels; or the scheme search";
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
            format!("search, sequential, mackay or em: there is no bound for the likelihood {}", self.likelihood.name())
        })?;
        let fixed = self.centres == CentreRule::Fixed || likelihood.scale_mixture().is_none();
        require(fixed, || "centres".into(), "learned", "fixed: under Student-t noise centres stay at their rows")?;
        self.check_candidates()?;
        require(self.max_iterations >= 1, || "max_iterations".into(), self.max_iterations, "a whole number of at least 1")?;
        let limit = self.time_limit.unwrap_or(1.0);
        require(limit.is_finite() && limit > 0.0, || "time_limit".into(), limit, "a positive number of seconds, or null")?;
        require_threads(self.threads)
    }

    /// Refuses to learn a kernel that is the covariance of no Gaussian process, by which kernels are learned, or to compare it.
    fn check_learned_kernels(&self) -> Result<()> {
        let Some(kernel) = self.to_try().iter().find(|kernel| self.learns_kernel() && !kernel.is_covariance()) else {
            return Ok(());
        };
        let name = kernel.name();
        let reason = "it is the covariance of no Gaussian process, by which kernels are learned and compared";
        match self.kernel.learnt_rule().filter(|_| self.kernels.is_empty()) {
            Some(rule) => {
                let expected = format!("scale, or a positive number: {reason}");
                require(false, || format!("kernel.{name}.gamma"), rule.name(), &expected)
            }
            None => require(false, || "kernels".into(), name, &format!("other kernels: {reason}")),
        }
    }

    fn check_classes(&self) -> Result<()> {
        if matches!(self.likelihood, Likelihood::Softmax(_)) {
            let (rule, scheme) = (self.multi_class, self.inference.name());
            let expected = "auto or joint, or the likelihood bernoulli: under the softmax there is one model of all classes";
            let joint = matches!(rule, MultiClass::Auto | MultiClass::Joint);
            require(joint, || "multi_class".into(), rule.name(), expected)?;
            let expected =
                "search, sequential, mackay or em for several classes at once; or multi_class one_vs_rest or one_vs_one";
            require(scheme != Variational::NAME, || "inference".into(), scheme, expected)?;
        }
        self.check_class_precisions()
    }

    fn check_predictions(&self) -> Result<()> {
        let own = self.posterior != PosteriorRule::Averaged || self.inference.name() != Variational::NAME;
        let expected =
            "auto or laplace, or the scheme search, sequential, mackay or em: the scheme variational has a posterior of its own";
        require(own, || "posterior".into(), self.posterior.name(), expected)?;
        require(self.cv.is_none_or(|folds| folds >= 2), || "cv".into(), self.cv.unwrap_or(0), "at least 2 folds, or null")?;
        let gaussian = matches!(self.likelihood, Likelihood::Gaussian(_));
        let expected = "false: it is variances of regression with Gaussian noise that are calibrated";
        require(gaussian || !self.calibrate, || "calibrate".into(), true, expected)?;
        require(self.keep_rows != Some(0), || "keep_rows".into(), 0, "at least 1 row, or null")?;
        let (healed, rows) = (self.variance == Some(Variance::Healed), self.keep_rows.is_some());
        let name = if healed { ("variance", "healed", "posterior") } else { ("keep_rows", "a number", "null") };
        let possible = gaussian && self.basis == Basis::Kernel;
        let expected = format!("{}: a basis function at a new row needs Gaussian noise and a kernel of this crate", name.2);
        require(possible || !(healed || rows), || name.0.into(), name.1, &expected)
    }

    fn check_candidates(&self) -> Result<()> {
        if let Dictionary::Size(size) = self.dictionary {
            let name = || "dictionary".into();
            require(size >= 1, name, size, "a whole number of at least 1, \"all\" or \"auto\"")?;
            let expected = "all or auto: of a given design matrix, every column is a candidate";
            require(self.basis == Basis::Kernel, name, size, expected)?;
        }
        let most = self.inference.as_dyn().most_columns(self.likelihood.as_dyn().constant_curvature());
        let small = matches!(self.dictionary, Dictionary::Size(size) if most.is_some_and(|most| size < most));
        let expected = "0, or the scheme search and a dictionary of a given size of rows, less than 1000 (500 for classes)";
        let rows = !matches!(self.landmarks, Landmarks::Given(_));
        require(self.refresh == 0 || small && rows, || "refresh".into(), self.refresh, expected)?;
        if self.centres == CentreRule::Learned {
            let name = || "centres".into();
            let expected =
                "fixed, or neither cv, calibrate nor sparsity = cv: centres that have seen all rows tell nothing of new ones";
            require(!self.validates(), name, "learned", expected)?;
            require(self.basis == Basis::Kernel, name, "learned", "fixed: columns of a design matrix have no centres")?;
            require(rows, name, "learned", "fixed: the landmarks are given")?;
            require(self.refresh == 0, name, "learned", "fixed, or refresh = 0: landmarks are moved or replaced, not both")?;
            for kernel in self.to_try() {
                let expected = format!("fixed: the kernel {} has no gradient in its centres", kernel.name());
                require(kernel.moves_centres(), name, "learned", &expected)?;
            }
        }
        Ok(())
    }

    fn check_class_precisions(&self) -> Result<()> {
        let asked = self.class_precisions == ClassPrecisions::PerClass;
        let check = |good: bool, expected: &str| {
            require(good || !asked, || "class_precisions".into(), self.class_precisions.name(), expected)
        };
        let expected = "shared: only classes can have precisions of their own";
        check(self.likelihood.is_for_classes(), expected)?;
        let joint = matches!(self.multi_class_rule(), MultiClass::Auto | MultiClass::Joint);
        check(joint, "shared, or multi_class = joint: models of two classes each have their own already")?;
        let flat = !self.sparsity.is_asked() && self.inference.as_dyn().hyperpriors() == Hyperpriors::default();
        check(flat, "shared, or neither sparsity nor hyperpriors: it is weights that leave a model then, not kernels")
    }

    /// Checks the parameters where statistics are to be kept.
    fn check_statistics(&self) -> Result<()> {
        if !self.keep_statistics {
            return Ok(());
        }
        let named = || "keep_statistics".to_string();
        let gaussian = matches!(self.likelihood, Likelihood::Gaussian(_));
        let expected = "false: sums over rows say all of them in regression with Gaussian noise";
        require(gaussian, named, true, expected)?;
        let sized = matches!(self.dictionary, Dictionary::Size(_)) || matches!(self.landmarks, Landmarks::Given(_));
        let expected = "false, or a kernel and a dictionary of a given size, or given landmarks: sums are kept at these";
        require(sized && self.basis == Basis::Kernel, named, true, expected)?;
        let expected = "false, or landmarks that stay: neither refresh nor centres = learned";
        require(self.refresh == 0 && self.centres == CentreRule::Fixed, named, true, expected)
    }

    /// Refuses what is not known of targets of several outputs.
    pub(crate) fn check_several_outputs(&self, outputs: usize) -> Result<()> {
        let scheme = self.inference.name();
        let expected = format!("search, sequential, mackay or em for {outputs} outputs at once");
        require(scheme != Variational::NAME, || "inference".into(), scheme, &expected)?;
        let Hyperpriors { a, b, .. } = self.inference.as_dyn().hyperpriors();
        for (letter, value) in [("a", a), ("b", b)] {
            let expected = format!("0: the precisions of {outputs} outputs are relative to those of their noise");
            require(value == 0.0, || format!("inference.{scheme}.hyperpriors.{letter}"), value, &expected)?;
        }
        let expected = format!("false: sums are kept for one output, not for {outputs}");
        require(!self.keep_statistics, || "keep_statistics".into(), true, &expected)
    }

    pub(crate) fn check_in_blocks(&self) -> Result<()> {
        let check = |good: bool, name: &str, found: &str, expected: &str| {
            require(good, || name.into(), found, &format!("{expected}: rows in blocks are not at hand"))
        };
        self.refuse_process("rows that are read in blocks: regression on labels needs all of them")?;
        let name = self.likelihood.name();
        let expected = "bernoulli or softmax (regression has Statistics)";
        check(self.likelihood.is_for_classes(), "likelihood", name, expected)?;
        let scheme = self.inference.name();
        let several_at_once = !matches!(self.inference, Inference::Variational(_));
        check(several_at_once, "inference", scheme, "another scheme than variational")?;
        let joint = matches!(self.multi_class, MultiClass::Auto | MultiClass::Joint);
        check(joint, "multi_class", self.multi_class.name(), "auto or joint")?;
        let shared = self.class_precisions == ClassPrecisions::Shared;
        check(shared, "class_precisions", self.class_precisions.name(), "shared")?;
        check(!self.needs_rows(), "cv", "on", "neither cv, nor a kernel or centres to be learnt, nor rows to keep")?;
        check(self.refresh == 0, "refresh", &self.refresh.to_string(), "0")?;
        check(self.basis == Basis::Kernel, "basis", "given", "kernel")?;
        let given = matches!(self.landmarks, Landmarks::Given(_));
        check(given, "landmarks", "a rule", "given landmarks")?;
        let resolved = self.kernel.resolve(&DataScale { features: 1, variance: 1.0 });
        let plain = resolved.map_or(true, |kernel| kernel == self.kernel);
        check(plain, &format!("kernel.{}.gamma", self.kernel.name()), "a rule", "a positive number, or one per feature")
    }
}

/// Mean divergence of class probabilities in nats for each function of the classes: held-out log losses are 0.002 to 0.01 above those of all rows; of 0.01 two
/// thirds as many centres lose as much again, of 0.002 a third more lose half.
const CLASS_RESIDUAL: f64 = 0.005;
/// What the prior may leave, over the noise: 0.02 nats are lost to a process on all rows; of 0.1, a third of that with a third more
/// centres.
const RESIDUAL: f64 = 0.3;

impl Rvm {
    /// What the settings are to be for a process prior; `None` where they are.
    pub(crate) fn without_process(&self) -> Option<String> {
        let kernel = self.to_try().iter().find(|kernel| !kernel.is_covariance());
        let classes = self.likelihood.is_for_classes();
        let unless = [
            (
                !matches!(self.likelihood, Likelihood::Gaussian(_)) && !classes,
                format!(
                    "likelihood = {}: the process prior is for regression with Gaussian noise and for classes",
                    self.likelihood.name()
                ),
            ),
            (self.basis == Basis::Given, "basis = given: columns of a design matrix have no covariance between rows".into()),
            (
                kernel.is_some(),
                format!("kernel = {}: it is the covariance of no process", kernel.map_or("", |kernel| kernel.name())),
            ),
            (
                self.variance == Some(Variance::Healed),
                "variance = healed: that of a process grows away from the data by itself".into(),
            ),
            (self.keep_rows.is_some(), "keep_rows: the variance of a process needs no rows".into()),
            (self.keep_statistics, "keep_statistics: sums over rows do not give the posterior under a process prior".into()),
            (self.centres == CentreRule::Learned, "centres = learned: a process prior has centres at rows".into()),
            (
                self.posterior == PosteriorRule::Averaged && !classes,
                "posterior = averaged: it is exact under a process prior".into(),
            ),
            (
                self.inference.name() == Variational::NAME,
                "inference = variational: that scheme has a distribution over precisions".into(),
            ),
            (
                classes && self.posterior != PosteriorRule::Auto,
                format!("posterior = {}: regression on labels has no posterior of the weights", self.posterior.name()),
            ),
            (
                classes && !matches!(self.inference, Inference::Search(_)),
                format!("inference = {}: regression on labels learns no precisions", self.inference.name()),
            ),
            (
                classes && self.class_precisions == ClassPrecisions::PerClass,
                "class_precisions = per_class: regression on labels learns no precisions".into(),
            ),
            (classes && self.chooses_sparsity(), "sparsity = cv: regression on labels has no search".into()),
            (classes && !self.bias, "bias = false: regression on labels has a constant".into()),
        ];
        unless.into_iter().find(|(found, _)| *found).map(|(_, reason)| reason)
    }

    /// Checks the parameters of the prior.
    pub(super) fn check_weight_prior(&self) -> Result<()> {
        let residual = self.most_residual();
        let good = residual.is_finite() && residual > 0.0;
        require(good, || "residual".into(), residual, "a positive number, or null")?;
        match self.without_process().filter(|_| self.weight_prior == WeightPrior::Process) {
            Some(reason) => self.refuse_process(&reason),
            None => Ok(()),
        }
    }

    /// [`Rvm::residual`], or its default.
    pub(crate) fn most_residual(&self) -> f64 {
        self.residual.unwrap_or(if self.likelihood.is_for_classes() { CLASS_RESIDUAL } else { RESIDUAL })
    }

    /// The error that a process prior cannot be combined with something.
    pub(crate) fn refuse_process(&self, reason: &str) -> Result<()> {
        let expected = format!("ard; process cannot be combined with {reason}");
        require(self.weight_prior != WeightPrior::Process, || "weight_prior".into(), self.weight_prior.name(), &expected)
    }

    /// Whether a fit to rows that are not held has the process prior, [`Rvm::fit_rows`], [`Rvm::fit_blocks_with_sample`]: `process` is
    /// asked for, or it is `auto` and nothing is asked of the search, of a linear spline, or of the rows, that needs another prior.
    pub fn has_process_in_blocks(&self) -> bool {
        let spline = self.to_try().iter().any(|kernel| matches!(kernel, Kernel::LinearSpline(_)));
        let auto = self.has_no_search_settings() && !spline && !self.validates() && self.without_process().is_none();
        match self.weight_prior {
            WeightPrior::Ard => false,
            WeightPrior::Process => true,
            WeightPrior::Auto => auto,
        }
    }

    /// Whether nothing is asked of the search, which large tables do without under a process prior.
    pub(crate) fn has_no_search_settings(&self) -> bool {
        let plain = self.inference == Inference::Search(Search::default());
        plain && self.refresh == 0 && !self.sparsity.is_asked()
    }
}
