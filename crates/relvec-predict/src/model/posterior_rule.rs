//! How the posterior of the weights is approximated.

use super::Model;
use crate::registry::rules;

rules! {
    /// How the posterior of the weights is approximated, where the curvature of the likelihood is not constant; of Gaussian
    /// noise both are exact.
    #[derive(Default)]
    pub enum PosteriorRule, "approximation of the posterior" {
        /// `averaged` where three classes or more have one model, and for counts where `laplace` expects more than twice the
        /// counts that there are at the training rows (rows of zeros, whose rate has almost no lower limit); else
        /// `laplace`. That too of a fit which was stopped, or has no time left, and of
        /// `Rvm::evaluate` of the crate `relvec`.
        #[default]
        Auto = "auto",
        /// By the curvature at the mode (Tipping 1999): where rows are classified with certainty there is next to none, so
        /// that functions are taken to be far more uncertain than they are.
        Laplace = "laplace",
        /// By the mean of the curvature under the posterior itself: the covariance that is nearest in Kullback and
        /// Leibler's sense (Opper & Archambeau 2009), about the same mode.
        Averaged = "averaged",
    }
}

impl Model {
    /// How the posterior of the weights was approximated, of a committee that of its members; never `Auto`.
    pub fn posterior_rule(&self) -> PosteriorRule {
        let own = |model: &Model| model.posterior.as_ref().is_some_and(|p| p.averaged);
        match own(self) || self.committee.as_ref().is_some_and(|c| c.members.iter().any(own)) {
            true => PosteriorRule::Averaged,
            false => PosteriorRule::Laplace,
        }
    }

    #[doc(hidden)]
    pub fn is_averaged(&self) -> bool {
        self.posterior_rule() == PosteriorRule::Averaged
    }
}
