//! What a kernel must gain to be worth having.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result, require};

/// What is allowed.
const EXPECTED: &str = "zero or a positive number of nats, \"auto\" or \"cv\"";

/// Log prior odds against each kernel, in nats: a model of M kernels has the log prior -M times this, (M56).
///
/// With 0 the evidence alone decides, as in the papers. It is a maximum over as many models as there are sets of
/// kernels, and where more than a tenth of the rows end as kernels it is paid for by intervals that are too narrow.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(untagged, expecting = "sparsity must be zero or a positive number of nats, \"auto\" or \"cv\"")]
pub enum Sparsity {
    /// This, >= 0.
    Nats(f64),
    /// A rule.
    Rule(SparsityRule),
}

/// Rules for [`Sparsity`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SparsityRule {
    /// 1 where the scheme weighs single kernels, which is `search` without hyperpriors and with precisions that classes
    /// share; else 0.
    Auto,
    /// What predicts rows left out best, by cross-validation: see [`Rvm::cv`](crate::Rvm::cv).
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

    /// Whether something is held against kernels, or chosen to be.
    pub(crate) fn is_asked(self) -> bool {
        !matches!(self, Sparsity::Rule(SparsityRule::Auto)) && self != Sparsity::Nats(0.0)
    }
}
