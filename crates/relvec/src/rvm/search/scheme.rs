//! The inference schemes: what they share, one line of registration each.

use serde::{Deserialize, Serialize};

use crate::error::{Result, require};
use crate::registry::registry;
use crate::report::{Actions, Certificate, Status};
use crate::rvm::data::table::Table;
use crate::rvm::evaluate::Hyperparameters;
use crate::rvm::evidence::solution::Solution;
use crate::rvm::evidence::workspace::Workspace;
use crate::rvm::search::em::Em;
use crate::rvm::search::mackay::MacKay;
use crate::rvm::search::parts::Warm;
use crate::rvm::search::sequential::Sequential;
use crate::rvm::search::variational::Variational;
use crate::rvm::settings::search::Search;

registry! {
    /// An inference scheme with its parameters; [`Inference::NAMES`] lists them.
    pub enum Inference: Scheme, "inference scheme" {
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
    /// The papers' uniform hyperprior over log precisions.
    pub(crate) const FLAT: Hyperpriors = Hyperpriors { a: 0.0, b: 0.0, c: 0.0, d: 0.0 };

    /// Checks the ranges for a scheme in which basis functions come and go; `path` is that of the scheme in the settings.
    pub(crate) fn check_of_search(&self, path: &str) -> Result<()> {
        self.check(path)?;
        for (name, value) in [("a", self.a), ("b", self.b)] {
            require(
                value == 0.0,
                || format!("{path}.hyperpriors.{name}"),
                value,
                "0: with a hyperprior on the weight precisions an absent basis function has no finite objective; \
                 use the scheme em or mackay",
            )?;
        }
        Ok(())
    }

    /// Checks the ranges; `path` is that of the scheme in the settings.
    pub(crate) fn check(&self, path: &str) -> Result<()> {
        for (name, value) in [("a", self.a), ("b", self.b), ("c", self.c), ("d", self.d)] {
            let good = value.is_finite() && value >= 0.0;
            require(good, || format!("{path}.hyperpriors.{name}"), value, "zero or a positive number")?;
        }
        Ok(())
    }
}

/// Where a search for basis functions starts.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Start {
    /// Of the scheme `search` from all basis functions, or as many as memory allows; where the curvature of the likelihood moves
    /// from the bias, and of three classes or more in one model and more than 500 rows with what models of one class against the
    /// others need, (M66). Of the scheme `sequential` from no basis function.
    #[default]
    Auto,
    /// From no basis function at all.
    Empty,
    /// From a model at given precisions.
    Given(Hyperparameters),
}

impl Start {
    /// Candidates (places in the table) that a start needs.
    pub(crate) fn places(&self, table: &Table) -> Vec<usize> {
        match self {
            Start::Given(hyperparameters) => hyperparameters.places(table),
            Start::Auto | Start::Empty => vec![],
        }
    }
}

/// What a scheme can do: its parameters do not change; a run owns the workspace of one fit.
pub(crate) trait Scheme: Send + Sync {
    /// Checks the parameters alone; `path` is that of the scheme in the settings.
    fn check(&self, path: &str) -> Result<()>;

    /// The hyperpriors in use.
    fn hyperpriors(&self) -> Hyperpriors;

    /// Whether columns that have left the model, or were never in it, are tried.
    fn adds(&self) -> bool {
        false
    }

    /// Most candidates that one problem may have; `None`: any number, all have to be in one.
    fn most_columns(&self, _constant_curvature: bool) -> Option<usize> {
        None
    }

    /// How many candidates of more than that make one part: first, and when that turns out to be too few.
    fn parts(&self, _constant_curvature: bool) -> &'static [usize] {
        &[]
    }

    /// Whether a first model is found by letting all columns of a part die down; then it is worth while to
    /// do so in more parts than the first.
    fn begins_anew(&self, _constant_curvature: bool) -> bool {
        false
    }

    /// Candidates (places in the table) that have to be in the first part.
    fn first_candidates(&self, _table: &Table) -> Vec<usize> {
        vec![]
    }

    /// Nats that a candidate outside a part must promise, for that many rows.
    fn least_gain(&self, _count: f64, _model: &Solution) -> f64 {
        0.0
    }

    /// Begins a fit, or goes on with it in another part of the dictionary.
    fn start<'p>(&self, work: &Workspace<'p>, entry: &Entry) -> Result<Box<dyn Run<'p> + 'p>>;
}

/// How a search in one part of the dictionary begins.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    /// The model to go on from; `None`: this is the first part.
    pub from: Option<Warm>,
    pub aim: Aim,
}

/// How far a search in one part of the dictionary goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Aim {
    /// Only to find which candidates may be of use.
    Rough,
    /// Until no action gains any more.
    Rest,
    /// The same, but for the digits, and first an excursion with the noise held low, to a fuller model.
    Fuller,
    /// The same with the noise held lower still.
    Fullest,
    /// Until no excursion from the model helps either, nor, where it is small, beginning anew.
    Thorough,
}

impl Aim {
    /// Whether what is found is only where the next part, or round, goes on.
    pub fn is_passing(self) -> bool {
        matches!(self, Aim::Fuller | Aim::Fullest)
    }
}

/// One fit under way.
pub(crate) trait Run<'p> {
    /// One iteration; `Some` says why there is no further one.
    fn step(&mut self, work: &Workspace<'p>) -> Result<Option<Status>>;

    /// The best solution so far.
    fn best(&self) -> &Solution;

    /// What must not fall, in the user's units: the log evidence, plus log hyperpriors where there are any; or a
    /// lower bound.
    fn objective(&self, work: &Workspace<'p>) -> f64;

    /// The quadratic form that `best` solves, where that is not the workspace's.
    fn form(&self) -> Option<&Workspace<'p>> {
        None
    }

    /// What is left to gain; `late`: without scoring the candidates once more.
    fn certificate(&self, work: &Workspace<'p>, late: bool) -> Certificate;

    /// How many actions were taken.
    fn actions(&self) -> Actions;
}
