//! Approximations of the weight posterior.

use super::Model;
use crate::registry::rules;

rules! {
    /// How the posterior of the weights is approximated if the Hessian of the likelihood is not constant. For Gaussian
    /// noise both rules are exact.
    #[derive(Default)]
    pub enum PosteriorRule, "approximation of the posterior" {
        /// `averaged` for joint models of three or more classes. For counts, `averaged` if `laplace` expects more than
        /// twice the observed counts at the training rows (the rate of rows of zeros has almost no lower limit).
        /// `laplace` otherwise, and for a fit that was stopped or has no time left, and for `Rvm::evaluate` of the
        /// crate `relvec`.
        #[default]
        Auto = "auto",
        /// The Hessian at the mode (Tipping 1999). For rows that are classified with certainty it is almost zero, and the
        /// uncertainty of the functions is far overstated.
        Laplace = "laplace",
        /// The Hessian averaged over the posterior itself, around the same mode. Its covariance is the closest one in
        /// Kullback-Leibler divergence (Opper & Archambeau 2009).
        Averaged = "averaged",
    }
}

impl Model {
    /// Returns how the posterior of the weights was approximated, for a committee that of its binary models; never
    /// `Auto`.
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
