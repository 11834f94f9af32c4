//! Where a time limit leaves no time for the sums over all rows, a sample of them stands for the table.

use std::time::{Duration, Instant};

use crate::error::Result;
use crate::model::Model;
use crate::report::{Certificate, Report, Status};
use crate::rvm::data::table::Table;
use crate::rvm::gram::problem::{Problem, keeps_sums};
use crate::rvm::search::parts::Parts;
use crate::rvm::settings::dictionary::Landmarks;
use crate::rvm::settings::rvm::Rvm;

/// Multiplications, and rows at most, of the sums that tell how long those over all rows take.
const PROBE: usize = 4_000_000_000;
const PROBE_ROWS: usize = 4096;
/// All rows are taken if their sums are likely to leave this share of the time to the search; else as many as leave half.
const LEAST_LEFT: f64 = 0.25;
const LEFT: f64 = 0.5;
/// Rows that are taken however little time is left.
const LEAST_ROWS: usize = 2000;

impl Rvm {
    /// A sample of the rows, as many as there is time for; `None` if that is all of them, or nothing is summed before the
    /// first model.
    pub(crate) fn rows_in_time<'b>(&'b self, table: &Table, left: Option<Duration>) -> Result<Option<Table<'b>>> {
        let (n, columns) = (table.rows.nrows(), Parts::first_size(table));
        let Some(left) = left.filter(|_| n > PROBE_ROWS && keeps_sums(table, columns)) else { return Ok(None) };
        let places = Landmarks::any(table.origin.len(), columns, self.seed);
        let rows = (PROBE / (columns * columns).max(1)).clamp(1, PROBE_ROWS);
        let probe = table.sample(&places, &Landmarks::any(n, rows, self.seed), table.memory_limit)?;
        let all = sums_take(&probe)?.min(sums_take(&probe)?).mul_f64(n as f64 / rows as f64);
        if all <= left.mul_f64(1.0 - LEAST_LEFT) {
            return Ok(None);
        }
        let rows = (n as f64 * (1.0 - LEFT) * left.as_secs_f64() / all.as_secs_f64()) as usize;
        Ok(Some(table.with_rows(self, &Landmarks::any(n, rows.max(LEAST_ROWS), self.seed))))
    }
}

/// The time that the sums over the rows of a table take, of all of its candidates.
fn sums_take(table: &Table) -> Result<Duration> {
    let begin = Instant::now();
    Problem::new(table, (0..table.origin.len()).collect())?;
    Ok(begin.elapsed())
}

/// A fit to a sample has not seen all that it was to see.
pub(crate) fn of_sample((model, report): (Model, Report)) -> (Model, Report) {
    let status = if report.status == Status::Converged { Status::TimeLimit } else { report.status };
    let reason = format!("time_limit leaves no time for all rows and candidates; of some: {}", report.certificate.reason);
    let certificate = Certificate { reason, ..report.certificate };
    (Model { status, ..model }, Report { status, certificate, ..report })
}
