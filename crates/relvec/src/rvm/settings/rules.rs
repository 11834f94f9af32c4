//! Rules that have no parameters.

use crate::registry::rules;

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
