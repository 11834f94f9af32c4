//! The sequential scheme: its parameters, and what it asks of parts of the dictionary.

use serde::{Deserialize, Serialize};

use super::evaluate::Hyperparameters;
use super::scheme::{Entry, Hyperpriors, Run, Scheme};
use super::search::Search;
use super::solution::Solution;
use super::table::Table;
use super::workspace::Workspace;
use crate::error::{Result, require};

/// Up to this many candidates are one problem: of more, G costs more than it saves, and a search over all
/// of them streams long rows for the sake of few columns.
const MOST_COLUMNS: usize = 1000;
/// Beyond that the search works on so many at a time.
const PARTS: [usize; 2] = [200, 800];
const MOVING_MOST: usize = 500;
const MOVING_PARTS: [usize; 2] = [200, 500];
/// In an ample model what is left to gain by one basis function is less than what is known of the evidence: an action has
/// to gain so many nats for each row.
const AMPLE_GAIN: f64 = 3e-4;

/// Sequential search for the highest evidence (Tipping & Faul 2003, with batches and joint steps).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Sequential {
    /// Gamma hyperpriors; a and b must be 0.
    pub hyperpriors: Hyperpriors,
    /// Converged when no action gains more than this many nats (times N/1000 above 1000 rows).
    pub tolerance: f64,
    /// Most actions between two joint steps; 1 takes them one at a time.
    pub batch: usize,
    /// Whether all precisions are re-estimated jointly after each batch.
    pub joint: bool,
    /// Whether a basis function may be replaced by another in one move.
    pub swaps: bool,
    /// Most reheats: excursions with the noise held low, then high, kept only if the evidence rises; none of models
    /// of more than 400 basis functions.
    pub reheats: usize,
    /// Where the search starts.
    pub start: Start,
}

/// Where the sequential search starts.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Start {
    /// From all columns where the dictionary is small and the curvature constant, or bounded on many rows; of three classes
    /// or more in one model, and more than 500 rows, with what models of one class against the others need, (M66); else
    /// from few.
    #[default]
    Auto,
    /// From no basis function at all.
    Empty,
    /// From a model at given precisions.
    Given(Hyperparameters),
}

impl Default for Sequential {
    fn default() -> Self {
        Sequential {
            hyperpriors: Hyperpriors::default(),
            tolerance: 1e-4,
            batch: 20,
            joint: true,
            swaps: true,
            reheats: 3,
            start: Start::Auto,
        }
    }
}
impl Scheme for Sequential {
    fn check(&self, path: &str) -> Result<()> {
        self.hyperpriors.check(path)?;
        let positive = self.tolerance.is_finite() && self.tolerance > 0.0;
        require(positive, || format!("{path}.tolerance"), self.tolerance, "a positive number")?;
        require(self.batch >= 1, || format!("{path}.batch"), self.batch, "a whole number of at least 1")?;
        for (name, value) in [("a", self.hyperpriors.a), ("b", self.hyperpriors.b)] {
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

    fn hyperpriors(&self) -> Hyperpriors {
        self.hyperpriors
    }

    fn adds(&self) -> bool {
        true
    }

    fn most_columns(&self, constant_curvature: bool) -> Option<usize> {
        Some(if constant_curvature { MOST_COLUMNS } else { MOVING_MOST })
    }

    fn parts(&self, constant_curvature: bool) -> &'static [usize] {
        if constant_curvature { &PARTS } else { &MOVING_PARTS }
    }

    fn begins_anew(&self, constant_curvature: bool) -> bool {
        constant_curvature && self.start == Start::Auto
    }

    fn first_candidates(&self, table: &Table) -> Vec<usize> {
        match &self.start {
            Start::Given(hyperparameters) => hyperparameters.places(table),
            _ => vec![],
        }
    }

    fn least_gain(&self, count: f64, model: &Solution) -> f64 {
        let least = self.tolerance * (count / 1000.0).max(1.0);
        if model.is_ample() { least.max(AMPLE_GAIN * count) } else { least }
    }

    fn start<'p>(&self, work: &Workspace<'p>, entry: &Entry) -> Result<Box<dyn Run<'p> + 'p>> {
        Ok(Box::new(Search::start(work, self, entry)?))
    }
}
