//! Registration of the inference schemes.

use super::scheme::SchemeSettings;
use super::schemes::{Em, MacKay, Sequential, Variational};
use super::search::Search;
use crate::registry::registry;

registry! {
    /// An inference scheme with its parameters; [`Inference::NAMES`] lists them.
    pub enum Inference: SchemeSettings, "inference scheme" {
        /// Backward pruning from all basis functions, then local search; the default.
        Search = "search",
        /// Changes of one basis function at a time (Tipping & Faul 2003).
        Sequential = "sequential",
        /// MacKay's fixed point (Tipping 1999).
        MacKay = "mackay",
        /// Expectation maximisation.
        Em = "em",
        /// Variational inference (Bishop & Tipping 2000).
        Variational = "variational",
    }
}
