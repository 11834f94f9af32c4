//! Log prior odds against each kernel.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result, require};

/// Values that are allowed, for errors.
const EXPECTED: &str = "zero or a positive number of nats, \"auto\" or \"cv\"";

/// Log prior odds against each kernel, in nats: a model of M kernels has the log prior -M times this, (M56).
///
/// With 0 the evidence alone decides, as in the papers. The search then picks the best of very many sets of kernels
/// without a penalty for the selection. If more than a tenth of the rows become relevance vectors, intervals are too
/// narrow.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(untagged, expecting = "sparsity must be zero or a positive number of nats, \"auto\" or \"cv\"")]
pub enum Sparsity {
    /// A number of nats, >= 0.
    Nats(f64),
    /// A rule.
    Rule(SparsityRule),
}

/// Rules for [`Sparsity`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SparsityRule {
    /// 1 for the scheme `search` without hyperpriors, else 0.
    Auto,
    /// The value with the best predictions of held-out rows, by cross-validation, see [`Rvm::cv`](crate::Rvm::cv).
    Cv,
}

impl Default for Sparsity {
    fn default() -> Self {
        Sparsity::Rule(SparsityRule::Auto)
    }
}

impl From<f64> for Sparsity {
    fn from(nats: f64) -> Self {
        Sparsity::Nats(nats)
    }
}

impl FromStr for Sparsity {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let bad = || Error::Parameter { name: "sparsity".into(), found: text.into(), expected: EXPECTED.into() };
        let sparsity = match text {
            "auto" => Sparsity::Rule(SparsityRule::Auto),
            "cv" => Sparsity::Rule(SparsityRule::Cv),
            _ => Sparsity::Nats(text.parse().map_err(|_| bad())?),
        };
        sparsity.check().map(|()| sparsity)
    }
}

impl Sparsity {
    pub(crate) fn check(self) -> Result<()> {
        match self {
            Sparsity::Nats(nats) => require(nats.is_finite() && nats >= 0.0, || "sparsity".into(), nats, EXPECTED),
            Sparsity::Rule(_) => Ok(()),
        }
    }

    /// Returns true if a penalty is given or is to be chosen by cross-validation.
    pub(crate) fn is_asked(self) -> bool {
        !matches!(self, Sparsity::Rule(SparsityRule::Auto)) && self != Sparsity::Nats(0.0)
    }
}
