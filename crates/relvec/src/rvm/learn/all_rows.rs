//! Sums over all rows of a fit, which are in memory or answer queries.

use super::merged_rows::DistinctRows;
use super::query::pass::Pass;
use super::query::sums::{PartSums, SumsRequest};
use crate::error::{Error, Result};
use crate::report::Interrupt;

/// Where the rows are.
pub(in crate::rvm) enum AllRows<'a> {
    Held(&'a DistinctRows),
    /// Rows of a source that answers queries.
    Asked(&'a Pass<'a>),
}

impl AllRows<'_> {
    /// Returns the sums over all rows; `None` if the deadline has passed.
    ///
    /// # Errors
    /// Returns [`Error::Interrupted`] if the fit was stopped by hand, and the errors of the source.
    pub fn sums(&self, at: &SumsRequest, interrupt: &Interrupt) -> Result<Option<PartSums>> {
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
