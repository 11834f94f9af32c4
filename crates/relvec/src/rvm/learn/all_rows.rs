//! All rows of a fit, in memory or elsewhere, as sums over them see them.

use super::merged_rows::DistinctRows;
use super::query::pass::Pass;
use super::query::sums::{At, PartSums};
use crate::error::{Error, Result};
use crate::report::Interrupt;

/// Who holds the rows.
pub(in crate::rvm) enum AllRows<'a> {
    Held(&'a DistinctRows),
    /// Somebody who answers queries.
    Asked(&'a Pass<'a>),
}

impl AllRows<'_> {
    /// The sums over all rows; `None` once it is too late for them.
    ///
    /// # Errors
    /// An interrupt by hand; whatever those who are asked report.
    pub fn sums(&self, at: &At, interrupt: &Interrupt) -> Result<Option<PartSums>> {
        let found = match self {
            AllRows::Held(rows) => {
                let mut sums = PartSums::new(at, rows.t.ncols());
                sums.add_rows(at, rows, interrupt).map(|()| sums)
            }
            AllRows::Asked(_) if interrupt.is_raised_by_hand() || interrupt.is_late() => Err(Error::Interrupted),
            AllRows::Asked(pass) => pass.sums(at),
        };
        match found {
            Err(Error::Interrupted) if !interrupt.is_raised_by_hand() && interrupt.is_late() => Ok(None),
            found => found.map(Some),
        }
    }
}
