//! Sources of the rows of a fit: memory, files, or other machines.

use ndarray::ArrayView2;

use super::{Answer, Part, Query};
use crate::blocks::Blocks;
use crate::error::{Error, Result};
use crate::report::Interrupt;
use crate::targets::Targets;

/// Rows in partitions that answer queries, for [`Rvm::fit_rows`](crate::Rvm::fit_rows): in memory, in files, or on
/// other machines.
///
/// Partitions in memory are a `Vec` of views and targets:
///
/// ```
/// use ndarray::{Array1, Array2, s};
/// use relvec::{RowPlan, Rvm, Targets};
///
/// let x = Array2::from_shape_fn((5000, 1), |(i, _)| 0.004 * i as f64 - 10.0);
/// let t: Array1<f64> = x.column(0).mapv(f64::sin);
/// let parts: Vec<_> = (0..5)
///     .map(|p| 1000 * p..1000 * (p + 1))
///     .map(|rows| (x.slice(s![rows.clone(), ..]), Targets::real(t.slice(s![rows]))))
///     .collect();
/// let plan = RowPlan { sample: 1000, ..RowPlan::default() };
/// let (model, _) = Rvm::default().fit_rows(&parts, &plan)?;
/// assert_eq!(model.n_rows, 5000);
/// # Ok::<(), relvec::Error>(())
/// ```
pub trait RowSource: Sync {
    /// Returns the answers of all partitions ([`Query::answer`]), merged in any order ([`Answer::merge`]).
    ///
    /// # Errors
    /// Returns the first error of either method, or [`Error::Rows`] if rows are not available.
    fn map_reduce(&self, query: &Query) -> Result<Answer>;
}

impl RowSource for Vec<(ArrayView2<'_, f64>, Targets<'_>)> {
    fn map_reduce(&self, query: &Query) -> Result<Answer> {
        let mut answers = self.iter().enumerate().map(|(part, (x, targets))| query.answer(part, *x, targets));
        let first = answers.next().unwrap_or_else(|| Err(Error::TooFewRows { found: 0, least: 2 }))?;
        answers.try_fold(first, |sum, answer| sum.merge(answer?))
    }
}

/// Rows that are read in blocks and form one partition.
pub(in crate::rvm) struct InPasses<'a> {
    pub blocks: &'a dyn Blocks,
    pub interrupt: Interrupt,
}

impl RowSource for InPasses<'_> {
    fn map_reduce(&self, query: &Query) -> Result<Answer> {
        let mut part = Part::new(query, 0);
        self.blocks.pass(&mut |x, targets| {
            let before = part.rows as usize;
            part.add(x, targets, &self.interrupt).map_err(|error| from_row(error, before))
        })?;
        Ok(part.finish())
    }
}

/// Converts the row number in an error of a block that begins at row `before` into a row number among all rows.
fn from_row(error: Error, before: usize) -> Error {
    match error {
        Error::NotFinite { what, row, column, value } => Error::NotFinite { what, row: row + before, column, value },
        Error::Weight { row, value } => Error::Weight { row: row + before, value },
        other => other,
    }
}
