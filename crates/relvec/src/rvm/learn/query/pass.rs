//! Repeated passes over the rows of a source.

use std::sync::{Mutex, PoisonError};

use ndarray::Array2;

use super::answer::{Content, PartRecord};
use super::class_sums::{ClassRequest, ClassSums};
use super::sums::{PartSums, SumsRequest};
use super::{Query, Request, RowSource, RowUnits};
use crate::error::{Error, Result};
use crate::kernel::Kernel;
use crate::rvm::data::noise::NoisePrecision;
use crate::rvm::data::training_set::TrainingSet;
use crate::statistics::Statistics;

/// Passes over the rows of a source, which must not change between passes.
pub(in crate::rvm) struct Pass<'a> {
    source: &'a dyn RowSource,
    units: RowUnits,
    /// The partitions of the first pass.
    before: Mutex<Option<Vec<PartRecord>>>,
}

impl<'a> Pass<'a> {
    /// Returns passes over the rows of `source`. `before` lists the partitions of an earlier pass.
    pub fn new(source: &'a dyn RowSource, units: RowUnits, before: Option<Vec<PartRecord>>) -> Pass<'a> {
        Pass { source, units, before: Mutex::new(before) }
    }

    /// Returns sums over all rows.
    ///
    /// # Errors
    /// Returns the errors of the source, and [`Error::Rows`] if a partition is missing or has changed since the first
    /// pass.
    pub fn sums(&self, at: &SumsRequest) -> Result<PartSums> {
        match self.ask(Request::Sums { at: Box::new(at.clone()), units: self.units.clone() })? {
            Content::Sums(sums) => Ok(sums),
            _ => Err(Error::TooFewRows { found: 0, least: 2 }),
        }
    }

    /// Returns the sufficient statistics of all rows for a kernel at centres, [L, D].
    ///
    /// # Errors
    /// Returns the errors of [`Pass::sums`].
    pub fn statistics(&self, kernel: &Kernel, centres: Array2<f64>) -> Result<Statistics> {
        match self.ask(Request::Statistics { kernel: kernel.clone(), centres, scaling: self.units.scaling.clone() })? {
            Content::Statistics(statistics) => Ok(statistics),
            _ => Err(Error::TooFewRows { found: 0, least: 2 }),
        }
    }

    /// Returns the sums over all rows for each class that is separated from the other classes.
    ///
    /// # Errors
    /// Returns the errors of [`Pass::sums`].
    pub fn class_sums(&self, at: ClassRequest, classes: usize) -> Result<Vec<ClassSums>> {
        match self.ask(Request::Classes { at, scaling: self.units.scaling.clone(), classes })? {
            Content::Classes(sums) => Ok(sums),
            _ => Err(Error::TooFewRows { found: 0, least: 2 }),
        }
    }

    fn ask(&self, request: Request) -> Result<Content> {
        let query = Query::new(request);
        let answer = self.source.map_reduce(&query)?;
        let mut before = self.before.lock().unwrap_or_else(PoisonError::into_inner);
        let (content, parts) = answer.finish(&query.bytes, before.as_deref())?;
        *before = Some(parts);
        Ok(content)
    }

    /// Returns the number of rows of the latest pass; 0 before the first.
    pub fn rows(&self) -> usize {
        self.before.lock().unwrap_or_else(PoisonError::into_inner).iter().flatten().map(|record| record.rows).sum::<u64>()
            as usize
    }
}

impl RowUnits {
    /// Returns the units of a training set; `classes` is the number K of classes, `None` for real targets.
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
