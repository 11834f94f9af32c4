//! The inference schemes, one line of registration each.

use super::reestimation::{Em, MacKay};
use super::scheme::SchemeSettings;
use super::search::Search;
use super::sequential::Sequential;
use super::variational::Variational;
use crate::registry::registry;

registry! {
    /// An inference scheme with its parameters; [`Inference::NAMES`] lists them.
    pub enum Inference: SchemeSettings, "inference scheme" {
        /// Search from all basis functions down and up again; the default.
        Search = "search",
        /// One basis function at a time.
        Sequential = "sequential",
        /// MacKay's fixed point.
        MacKay = "mackay",
        /// Expectation maximisation.
        Em = "em",
        /// Variational inference.
        Variational = "variational",
    }
}
