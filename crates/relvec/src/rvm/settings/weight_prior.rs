//! What a process prior of the weights cannot be combined with.

use super::inference::Inference;
use super::rules::{CentreRule, WeightPrior};
use super::rvm::Rvm;
use super::search::Search;
use super::variational::Variational;
use crate::design::Basis;
use crate::error::{Result, require};
use crate::likelihood::Likelihood;
use crate::model::{PosteriorRule, Variance};
use crate::targets::ClassPrecisions;

/// Mean divergence of class probabilities in nats: held-out log losses are 0.002 to 0.01 above those of all rows; of 0.01 two
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

    /// Whether nothing is asked of the search, which large tables do without under a process prior.
    pub(crate) fn has_no_search_settings(&self) -> bool {
        let plain = self.inference == Inference::Search(Search::default());
        plain && self.refresh == 0 && !self.sparsity.is_asked()
    }
}
