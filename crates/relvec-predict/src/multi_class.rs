//! How several classes are predicted.

use crate::registry::rules;

rules! {
    /// How more than two classes are modelled.
    #[derive(Default)]
    pub enum MultiClass, "rule for several classes" {
        /// Jointly, but one against the rest for the scheme `variational`, which knows two classes only.
        #[default]
        Auto = "auto",
        /// One model of all classes, which share its basis functions; the likelihood is then the softmax.
        Joint = "joint",
        /// A model of two classes for each class and all others, the probabilities normalised.
        OneVsRest = "one_vs_rest",
        /// A model of two classes for each pair of them, the probabilities coupled.
        OneVsOne = "one_vs_one",
    }
}
