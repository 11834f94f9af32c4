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
