//! The inference schemes: what they share, one line of registration each.

use serde::{Deserialize, Serialize};

use super::em::Em;
use super::mackay::MacKay;
use super::sequential::Sequential;
use super::solution::Solution;
use super::workspace::Workspace;
use crate::error::{Error, Result};
use crate::registry::registry;
use crate::report::{Actions, Certificate, Status};

registry! {
    /// An inference scheme with its parameters; [`Inference::NAMES`] lists them.
    pub enum Inference: Scheme, "inference scheme" {
        /// Sequential search; the default.
        Sequential = "sequential",
        /// MacKay's fixed point.
        MacKay = "mackay",
        /// Expectation maximisation.
        Em = "em",
    }
}

/// Gamma hyperpriors: Gamma(a, b) on each weight precision, Gamma(c, d) on the noise precision,
/// density proportional to x^(a-1) exp(-b x). Zero, the default, is the papers' uniform hyperprior
/// over log precisions. b and d are in the user's units.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Hyperpriors {
    /// Shape for the weight precisions, >= 0.
    pub a: f64,
    /// Rate for the weight precisions, >= 0, in squared units of a weight.
    pub b: f64,
    /// Shape for the noise precision, >= 0.
    pub c: f64,
    /// Rate for the noise precision, >= 0, in squared units of the target.
    pub d: f64,
}

impl Hyperpriors {
    /// Checks the ranges; `path` is that of the scheme in the settings.
    pub(crate) fn check(&self, path: &str) -> Result<()> {
        for (name, value) in [("a", self.a), ("b", self.b), ("c", self.c), ("d", self.d)] {
            let good = value.is_finite() && value >= 0.0;
            require(good, || format!("{path}.hyperpriors.{name}"), value, "zero or a positive number")?;
        }
        Ok(())
    }
}

/// What a scheme can do: its parameters do not change; a run owns the workspace of one fit.
pub(crate) trait Scheme: Send + Sync {
    /// Checks the parameters alone; `path` is that of the scheme in the settings.
    fn check(&self, path: &str) -> Result<()>;

    /// The hyperpriors in use.
    fn hyperpriors(&self) -> Hyperpriors;

    /// Begins a fit.
    fn start<'p>(&self, work: &Workspace<'p>) -> Result<Box<dyn Run<'p> + 'p>>;
}

/// One fit under way.
pub(crate) trait Run<'p> {
    /// One iteration; `Some` says why there is no further one.
    fn step(&mut self, work: &Workspace<'p>) -> Result<Option<Status>>;

    /// The best solution so far.
    fn best(&self) -> &Solution;

    /// What must not fall, in inner units: the log evidence, plus log hyperpriors where there are any.
    fn objective(&self, work: &Workspace<'p>) -> f64;

    /// What is left to gain, and how many actions were taken.
    fn certificate(&self, work: &Workspace<'p>) -> (Certificate, Actions);
}

/// An error that names a parameter, unless it is `good`.
pub(crate) fn require(good: bool, name: impl Fn() -> String, found: impl ToString, expected: &str) -> Result<()> {
    match good {
        true => Ok(()),
        false => Err(Error::Parameter { name: name(), found: found.to_string(), expected: expected.into() }),
    }
}
