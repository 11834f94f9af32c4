//! Checks of the parameters: ranges, and combinations that are not possible.

use super::dictionary::{Dictionary, Landmarks};
use super::rvm::Rvm;
use super::scheme::Hyperpriors;
use crate::design::Basis;
use crate::error::{Result, require, require_threads};
use crate::kernel::Kernel;
use crate::likelihood::Likelihood;
use crate::model::{PosteriorRule, Variance};
use crate::rvm::settings::rvm::{CentreRule, WeightPrior};
use crate::rvm::settings::scheme::{Inference, Search, Variational};
use crate::targets::MultiClass;

impl Rvm {
    /// Checks the parameters without data.
    ///
    /// # Errors
    /// Returns [`Error::Parameter`](crate::Error::Parameter), which names the first parameter that is out of its range or cannot be
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
            let rows = !matches!(self.landmarks, Landmarks::Given(_));
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
        let sized = matches!(self.dictionary, Dictionary::Size(_)) || matches!(self.landmarks, Landmarks::Given(_));
        let expected = "false, or a kernel with a dictionary size or given landmarks, whose statistics are kept";
        require(sized && self.basis == Basis::Kernel, named, true, expected)?;
        let expected = "false, or centres = fixed: statistics belong to fixed landmarks";
        require(self.centres == CentreRule::Fixed, named, true, expected)
    }

    /// Checks the parameters for targets of several outputs.
    ///
    /// # Errors
    /// Returns [`Error::Parameter`](crate::Error::Parameter) for the scheme `variational`, hyperpriors on weights, and kept statistics.
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

/// Default of [`Rvm::residual`] for classes: mean divergence of the class probabilities from those of all rows, in nats for each of the C - 1
/// functions. Held-out log losses are then 0.002 to 0.01 nats higher. 0.01 needs two thirds of the centres and loses twice as much; 0.002
/// needs a third more centres and loses half.
const CLASS_RESIDUAL: f64 = 0.005;
/// Default of [`Rvm::residual`] for regression: mean residual variance of the prior at the rows over the noise variance. Predictions lose 0.02
/// nats to a process on all rows. 0.1 needs a third more centres and loses a third of that.
const RESIDUAL: f64 = 0.3;

impl Rvm {
    /// Returns the first setting that a process prior cannot be combined with, and the reason; `None` if there is none.
    pub(crate) fn without_process(&self) -> Option<String> {
        let kernel = self.to_try().iter().find(|kernel| !kernel.is_covariance());
        let classes = self.likelihood.is_for_classes();
        let unless = [
            (
                !matches!(self.likelihood, Likelihood::Gaussian(_)) && !classes,
                format!("likelihood = {}: it is for regression with Gaussian noise, and for classes", self.likelihood.name()),
            ),
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
            (self.posterior == PosteriorRule::Averaged && !classes, "posterior = averaged: the posterior is exact".into()),
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
    pub(super) fn check_weight_prior(&self) -> Result<()> {
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
        self.residual.unwrap_or(if self.likelihood.is_for_classes() { CLASS_RESIDUAL } else { RESIDUAL })
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
