//! How several classes are modelled.

use crate::registry::rules;

rules! {
    /// How more than two classes are modelled.
    #[derive(Default)]
    pub enum MultiClass, "rule for several classes" {
        /// `joint`, except for the scheme `variational`, which supports two classes only and uses `one_vs_rest`.
        #[default]
        Auto = "auto",
        /// One model of all classes, which share its basis functions. The likelihood is then the softmax.
        Joint = "joint",
        /// A binary model for each class against all others, with normalised probabilities.
        OneVsRest = "one_vs_rest",
        /// A binary model for each pair of classes, with coupled probabilities.
        OneVsOne = "one_vs_one",
    }
}
