//! One fit to a training set: which path it takes.

use crate::error::Result;
use crate::memory;
use crate::model::Model;
use crate::report::Report;
use crate::rvm::compose::student_t;
use crate::rvm::data::training_set::TrainingSet;
use crate::rvm::search::driver::FitDriver;
use crate::rvm::search::{outer_loop, time_budget};
use crate::rvm::settings::rvm::Rvm;
use crate::rvm::settings::scheme::Hyperparameters;
use crate::sums::Sums;

/// The fit to a table, from `sums` if they are known; `from`: a model of that table to go on from, if there is one.
pub(crate) fn learn(
    rvm: &Rvm,
    training: &TrainingSet,
    sums: Option<Sums>,
    from: Option<&Hyperparameters>,
    driver: &mut FitDriver,
) -> Result<(Model, Report)> {
    if rvm.regresses_labels(training)? {
        return rvm.fit_labels(training, driver);
    }
    if rvm.fits_many(training)? {
        return rvm.fit_many(training, driver);
    }
    memory::keep_freed();
    let known = sums.is_some() || from.is_some();
    let sample = rvm.rows_in_time(training, driver.left().filter(|_| !known))?;
    let training = sample.as_ref().unwrap_or(training);
    let fitted = match rvm.likelihood.as_dyn().scale_mixture() {
        // Where there are factors already, they are held.
        Some(mixture) if training.factors.is_none() => student_t::fit(rvm, training, mixture, driver),
        _ => outer_loop::search(rvm, training, sums, from, false, driver),
    }?;
    let fitted = rvm.with_process(training, fitted)?;
    Ok(if sample.is_some() { time_budget::of_sample(fitted) } else { fitted })
}
