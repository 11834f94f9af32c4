//! Passes over rows that somebody else holds.

use std::sync::{Mutex, PoisonError};

use ndarray::Array2;

use super::answer::{Content, Seen};
use super::sums::{At, PartSums};
use super::{Query, RowSource, RowUnits, Want};
use crate::error::{Error, Result};
use crate::kernel::Kernel;
use crate::rvm::data::noise::NoisePrecision;
use crate::rvm::data::training_set::TrainingSet;
use crate::statistics::Statistics;

/// Rows that are summed over again and again, and have to stay the same.
pub(in crate::rvm) struct Pass<'a> {
    source: &'a dyn RowSource,
    units: RowUnits,
    /// The parts of the first pass.
    before: Mutex<Option<Vec<Seen>>>,
}

impl<'a> Pass<'a> {
    /// Over the rows of `source`, of which `training` holds a sample; `before`: the parts of an earlier pass.
    pub fn new(source: &'a dyn RowSource, units: RowUnits, before: Option<Vec<Seen>>) -> Pass<'a> {
        Pass { source, units, before: Mutex::new(before) }
    }

    /// Sums over all rows.
    ///
    /// # Errors
    /// Errors of the source; parts that are missing, rows that have changed since the first pass.
    pub fn sums(&self, at: &At) -> Result<PartSums> {
        match self.ask(Want::Sums { at: Box::new(at.clone()), units: self.units.clone() })? {
            Content::Sums(sums) => Ok(sums),
            _ => Err(Error::TooFewRows { found: 0, least: 2 }),
        }
    }

    /// Statistics of all rows for a kernel at centres, [L, D].
    ///
    /// # Errors
    /// As [`Pass::sums`].
    pub fn statistics(&self, kernel: &Kernel, centres: Array2<f64>) -> Result<Statistics> {
        match self.ask(Want::Statistics { kernel: kernel.clone(), centres, scaling: self.units.scaling.clone() })? {
            Content::Statistics(statistics) => Ok(statistics),
            _ => Err(Error::TooFewRows { found: 0, least: 2 }),
        }
    }

    fn ask(&self, want: Want) -> Result<Content> {
        let query = Query::new(want);
        let answer = self.source.map_reduce(&query)?;
        let mut before = self.before.lock().unwrap_or_else(PoisonError::into_inner);
        let (content, parts) = answer.finish(&query.bytes, before.as_deref())?;
        *before = Some(parts);
        Ok(content)
    }

    /// Rows of the passes so far.
    pub fn rows(&self) -> usize {
        self.before.lock().unwrap_or_else(PoisonError::into_inner).iter().flatten().map(|seen| seen.rows).sum::<u64>() as usize
    }
}

impl RowUnits {
    /// The units of a table; `classes`: K, if there are any.
    pub fn of(training: &TrainingSet, classes: Option<usize>) -> RowUnits {
        let units = if classes.is_some() { &[][..] } else { &training.units };
        let typical = match training.noise.first() {
            Some(NoisePrecision::Fixed(beta)) if training.known_noise => Some(training.units[0].scale.powi(2) / beta),
            _ => None,
        };
        RowUnits {
            scaling: None,
            classes,
            scale: units.iter().map(|units| units.scale).collect(),
            mean: units.iter().map(|units| if training.rvm.bias { units.mean } else { 0.0 }).collect(),
            typical_noise: typical,
        }
    }
}
