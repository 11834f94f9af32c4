//! The fit to rows in memory whose kernel is known.

use std::time::Instant;

use ndarray::ArrayView2;

use crate::design::Columns;
use crate::error::Result;
use crate::memory::{self, afford};
use crate::model::Model;
use crate::report::{Interrupt, Observer, Report};
use crate::rvm::compose::{robust, validation};
use crate::rvm::data::table::Table;
use crate::rvm::learn::frame;
use crate::rvm::settings::rvm::Rvm;
use crate::statistics::Statistics;
use crate::targets::{Targets, Values};

/// Fits rows `x`, `[N, D]`; `start` is when the fit began.
pub(crate) fn fit(
    rvm: &Rvm,
    x: ArrayView2<f64>,
    targets: &Targets,
    observer: &mut Observer,
    interrupt: &Interrupt,
    start: Instant,
) -> Result<(Model, Report)> {
    let table = Table::new(rvm, x, targets, interrupt)?;
    let fitted = validation::fit(rvm, &table, observer, interrupt, start)?;
    complete(rvm, &table, x, targets, fitted)
}

/// Completes the model and the report of a fit to rows `x`, `[N, D]`: row weights, feature relevance, kept rows and statistics.
pub(crate) fn complete(
    rvm: &Rvm,
    table: &Table,
    x: ArrayView2<f64>,
    targets: &Targets,
    (model, report): (Model, Report),
) -> Result<(Model, Report)> {
    let report = with_row_weights(rvm, x, targets, &model, report)?;
    let feature_relevance = frame::feature_relevance(table, &model);
    let model = rvm.with_kept_rows(table, Model { feature_relevance, ..model }, None)?;
    Ok((with_kept_statistics(rvm, table, x, targets, model)?, report))
}

/// Adds to the report what each row of `x`, `[N, D]`, counts for under Student-t noise.
fn with_row_weights(rvm: &Rvm, x: ArrayView2<f64>, targets: &Targets, model: &Model, report: Report) -> Result<Report> {
    match (rvm.likelihood.as_dyn().scale_mixture(), targets.values, model.noise_degrees()) {
        (Some(_), Values::Real(t), Some(_)) => {
            let row_weights = robust::row_weights(t, model, x)?;
            Ok(Report { row_weights, ..report })
        }
        _ => Ok(report),
    }
}

/// Adds sums over the rows `x`, `[N, D]`, at the landmarks of the table to the model, if it is to keep them: one more pass.
pub(crate) fn with_kept_statistics(
    rvm: &Rvm,
    table: &Table,
    x: ArrayView2<f64>,
    targets: &Targets,
    model: Model,
) -> Result<Model> {
    if !rvm.keep_statistics {
        return Ok(model);
    }
    let places = table.dictionary();
    let (_, Columns::Kernel { kernel, centres }) = table.columns(&places) else { return Ok(model) };
    let l = centres.nrows() as u64;
    afford(&format!("the statistics of {l} landmarks"), 8 * 4 * (l + 1) * (l + 1), memory::allowed(rvm.memory_limit))?;
    let mut sums = Statistics::new(&kernel, centres.view())?;
    sums.update_with(x, targets, &table.interrupt)?;
    let landmarks = places.iter().map(|place| table.origin[*place]).collect();
    Ok(Model { statistics: Some(sums.kept(landmarks)), ..model })
}
