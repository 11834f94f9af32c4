//! The inference schemes, one line of registration each.

use super::scheme::SchemeSettings;
use super::schemes::{Em, MacKay, Sequential, Variational};
use super::search::Search;
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
