//! One fit to a training set, and the choice of its method.

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

/// Fits a model to a training set, by regression on labels, a process prior, Student-t noise or the plain search.
///
/// `sums` are the sums over the rows, if they are known. `from` are hyperparameters of a model of the same training set
/// for a warm start.
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
    // Under a process prior the search only chooses centres. The origin of the targets has no effect on the choice.
    let centred = rvm.has_process(training)?.then(|| training.centred());
    let fitted = match rvm.likelihood.as_dyn().scale_mixture() {
        // Row factors that the training set already has are fixed.
        Some(mixture) if training.factors.is_none() => student_t::fit(rvm, training, mixture, driver),
        _ => outer_loop::search(rvm, centred.as_ref().unwrap_or(training), sums, from, false, driver),
    }?;
    let fitted = rvm.with_process(training, fitted)?;
    Ok(if sample.is_some() { time_budget::of_sample(fitted) } else { fitted })
}
