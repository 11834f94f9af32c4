//! What a kernel must gain to be worth having.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result, require};

/// What is allowed.
const EXPECTED: &str = "zero or a positive number of nats, or \"cv\"";

/// Log prior odds against each kernel, in nats: a model of M kernels has the log prior -M times this, (M56).
///
/// With 0 the evidence alone decides, as in the papers. It is a maximum over as many models as there are sets of
/// kernels, and where more than a tenth of the rows end as kernels it is paid for by intervals that are too narrow.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(untagged, expecting = "sparsity must be zero or a positive number of nats, or \"cv\"")]
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
    /// What predicts rows left out best, by cross-validation: see [`Rvm::cv`](crate::Rvm::cv).
    Cv,
}

impl Default for Sparsity {
    fn default() -> Self {
        Sparsity::Nats(0.0)
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
            "cv" => Sparsity::Rule(SparsityRule::Cv),
            _ => Sparsity::Nats(text.parse().map_err(|_| bad())?),
        };
        sparsity.check().map(|()| sparsity)
    }
}

impl Sparsity {
    pub(crate) fn check(self) -> Result<()> {
        let nats = self.nats();
        require(nats.is_finite() && nats >= 0.0, || "sparsity".into(), nats, EXPECTED)
    }

    /// Nats per kernel; of a rule those that its search begins at.
    pub(crate) fn nats(self) -> f64 {
        match self {
            Sparsity::Nats(nats) => nats,
            Sparsity::Rule(SparsityRule::Cv) => 0.0,
        }
    }
}
