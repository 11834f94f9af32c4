//! Rules without parameters.

use crate::registry::rules;

rules! {
    /// Whether centres of kernels are moved.
    #[derive(Default)]
    pub enum CentreRule, "rule for centres" {
        /// Every centre is a training row (or a given landmark).
        #[default]
        Fixed = "fixed",
        /// The gradient of the log evidence moves them; kept if the evidence on all rows is higher then.
        Learned = "learned",
    }
}

rules! {
    /// The prior of the weights.
    #[derive(Default)]
    pub enum WeightPrior, "prior of the weights" {
        /// A precision for each weight, learnt (automatic relevance determination): Tipping's model.
        Ard = "ard",
        /// The covariance of a Gaussian process with the kernel, (M70). In regression with Gaussian noise the variance of
        /// predictions grows away from the data, and the search's relevance vectors are completed by other rows,
        /// [`Rvm::residual`](crate::Rvm::residual). Above 3,000 rows there is no search: centres are rows drawn at random, 1,500 at most unless the
        /// dictionary has a size, and settings of the search have no effect. Classes, in one model and up to 3,000 rows, are learnt by regression on their labels, without a
        /// search, (M80).
        Process = "process",
        /// The prior of a process wherever there is one, of more than 3,000 rows only if nothing is asked of the search (inference,
        /// sparsity, refresh); else `ard`.
        #[default]
        Auto = "auto",
    }
}
