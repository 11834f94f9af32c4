//! One fit to a training set: which path it takes.

use crate::error::Result;
use crate::memory;
use crate::model::Model;
use crate::report::Report;
use crate::rvm::compose::robust;
use crate::rvm::data::table::Table;
use crate::rvm::search::watch::Watch;
use crate::rvm::search::{in_time, path};
use crate::rvm::settings::rvm::Rvm;
use crate::rvm::settings::scheme::Hyperparameters;
use crate::sums::Sums;

/// The fit to a table, from `sums` if they are known; `from`: a model of that table to go on from, if there is one.
pub(crate) fn learn(
    rvm: &Rvm,
    table: &Table,
    sums: Option<Sums>,
    from: Option<&Hyperparameters>,
    watch: &mut Watch,
) -> Result<(Model, Report)> {
    if rvm.regresses_labels(table)? {
        return rvm.fit_labels(table, watch);
    }
    if rvm.fits_many(table)? {
        return rvm.fit_many(table, watch);
    }
    memory::keep_freed();
    let known = sums.is_some() || from.is_some();
    let sample = rvm.rows_in_time(table, watch.left().filter(|_| !known))?;
    let table = sample.as_ref().unwrap_or(table);
    let fitted = match rvm.likelihood.as_dyn().scale_mixture() {
        // Where there are factors already, they are held.
        Some(mixture) if table.factors.is_none() => robust::fit(rvm, table, mixture, watch),
        _ => path::search(rvm, table, sums, from, false, watch),
    }?;
    let fitted = rvm.with_process(table, fitted)?;
    Ok(if sample.is_some() { in_time::of_sample(fitted) } else { fitted })
}
