//! Named settings.

use crate::kernel::{Gamma, GammaRule, Kernel};
use crate::model::Variance;
use crate::rvm::settings::rules::WeightPrior;
use crate::rvm::settings::rvm::Rvm;
use crate::rvm::settings::schemes::Inference;
use crate::rvm::settings::search::Search;

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
