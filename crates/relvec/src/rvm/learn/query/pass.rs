//! Passes over rows that somebody else holds.

use std::cell::{Cell, RefCell};

use super::answer::{Content, Seen};
use super::sums::{At, PartSums};
use super::{Query, RowSource, RowUnits, Want};
use crate::error::{Error, Result};
use crate::rvm::data::noise::Noise;
use crate::rvm::data::table::Table;

/// Rows that are summed over again and again, and have to stay the same.
pub(in crate::rvm) struct Pass<'a> {
    source: &'a dyn RowSource,
    units: RowUnits,
    /// The parts of the first pass.
    before: RefCell<Option<Vec<Seen>>>,
    count: Cell<usize>,
}

impl<'a> Pass<'a> {
    /// Over the rows of `source`, of which `table` holds a sample; `before`: the parts of an earlier pass.
    pub fn new(source: &'a dyn RowSource, units: RowUnits, before: Option<Vec<Seen>>) -> Pass<'a> {
        Pass { source, units, before: RefCell::new(before), count: Cell::new(0) }
    }

    /// Sums over all rows.
    ///
    /// # Errors
    /// Those of the source; parts that are missing, rows that have changed since the first pass.
    pub fn sums(&self, at: &At) -> Result<PartSums> {
        let query = Query::new(Want::Sums { at: at.clone(), units: self.units.clone() });
        let answer = self.source.map_reduce(&query)?;
        self.count.set(self.count.get() + 1);
        let (content, parts) = answer.finish(&query.bytes, self.before.borrow().as_deref())?;
        *self.before.borrow_mut() = Some(parts);
        match content {
            Content::Sums(sums) => Ok(sums),
            _ => Err(Error::TooFewRows { found: 0, least: 2 }),
        }
    }

    /// Rows of the passes so far.
    pub fn rows(&self) -> usize {
        self.before.borrow().iter().flatten().map(|seen| seen.rows).sum::<u64>() as usize
    }
}

impl RowUnits {
    /// Those of a table; `classes`: K, if there are any.
    pub fn of(table: &Table, classes: Option<usize>) -> RowUnits {
        let units = if classes.is_some() { &[][..] } else { &table.units };
        let typical = match table.noise.first() {
            Some(Noise::Fixed(beta)) if table.known_noise => Some(table.units[0].scale.powi(2) / beta),
            _ => None,
        };
        RowUnits {
            scaling: None,
            classes,
            scale: units.iter().map(|units| units.scale).collect(),
            mean: units.iter().map(|units| if table.rvm.bias { units.mean } else { 0.0 }).collect(),
            typical_noise: typical,
        }
    }
}
