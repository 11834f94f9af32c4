//! The fit to rows in memory with a known kernel.

use std::time::Instant;

use ndarray::ArrayView2;

use crate::design::Columns;
use crate::error::Result;
use crate::kernel::{Form, Gamma};
use crate::memory::{self, afford};
use crate::model::Model;
use crate::process::parameters::Moments;
use crate::report::{Interrupt, Observer, Report};
use crate::rvm::compose::{cross_validation, student_t};
use crate::rvm::data::training_set::TrainingSet;
use crate::rvm::settings::rvm::Rvm;
use crate::statistics::Statistics;
use crate::targets::{Targets, Values};

/// Fits a model to rows `x`, `[N, D]`. `start` is the time at which the fit began.
pub(crate) fn fit(
    rvm: &Rvm,
    x: ArrayView2<f64>,
    targets: &Targets,
    observer: &mut Observer,
    interrupt: &Interrupt,
    start: Instant,
) -> Result<(Model, Report)> {
    let training = TrainingSet::new(rvm, x, targets, interrupt)?;
    let fitted = cross_validation::fit(rvm, &training, observer, interrupt, start)?;
    complete(rvm, &training, x, targets, fitted)
}

/// Completes the model and the report of a fit to rows `x`, `[N, D]`: row weights, feature relevance, retained rows and
/// statistics.
pub(crate) fn complete(
    rvm: &Rvm,
    training: &TrainingSet,
    x: ArrayView2<f64>,
    targets: &Targets,
    (model, report): (Model, Report),
) -> Result<(Model, Report)> {
    let report = with_row_weights(rvm, x, targets, &model, report)?;
    let feature_relevance = feature_relevance(training, &model);
    let model = rvm.with_kept_rows(training, Model { feature_relevance, ..model }, None)?;
    Ok((with_kept_statistics(rvm, training, x, targets, model)?, report))
}

/// Returns the share of each feature in the variation of the kernel of `model`, `[D]`, (M37). Shares sum to 1. The
/// result is empty unless each feature has its own gamma.
pub(crate) fn feature_relevance(training: &TrainingSet, model: &Model) -> Vec<f64> {
    let Some((kernel, Gamma::PerFeature(gammas))) = model.kernel().and_then(|kernel| Some((kernel, kernel.form().gamma()?)))
    else {
        return vec![];
    };
    let moments = Moments::new(training.rows.view(), &training.sample_weights());
    let power = if matches!(kernel.form(), Form::Absolutes(_)) { 1 } else { 2 };
    let moved: Vec<f64> = gammas.iter().zip(&moments.deviation).map(|(gamma, s)| (gamma * s.powi(power)).min(f64::MAX)).collect();
    let largest = moved.iter().copied().fold(0.0, f64::max);
    let total: f64 = moved.iter().map(|v| v / largest).sum();
    moved.iter().map(|v| if largest > 0.0 { v / largest / total } else { 0.0 }).collect()
}

/// Adds the row weights of `x`, `[N, D]`, under Student-t noise to the report.
fn with_row_weights(rvm: &Rvm, x: ArrayView2<f64>, targets: &Targets, model: &Model, report: Report) -> Result<Report> {
    match (rvm.likelihood.as_dyn().scale_mixture(), targets.values, model.noise_degrees()) {
        (Some(_), Values::Real(t), Some(_)) => {
            let row_weights = student_t::row_weights(t, model, x)?;
            Ok(Report { row_weights, ..report })
        }
        _ => Ok(report),
    }
}

/// Adds the sufficient statistics of the rows `x`, `[N, D]`, at the landmarks to the model, if `keep_statistics` is
/// set. This takes one more data pass.
pub(crate) fn with_kept_statistics(
    rvm: &Rvm,
    training: &TrainingSet,
    x: ArrayView2<f64>,
    targets: &Targets,
    model: Model,
) -> Result<Model> {
    if !rvm.keep_statistics {
        return Ok(model);
    }
    let candidates = training.dictionary();
    let (_, Columns::Kernel { kernel, centres }) = training.columns(&candidates) else { return Ok(model) };
    let l = centres.nrows() as u64;
    afford(&format!("the statistics of {l} landmarks"), 8 * 4 * (l + 1) * (l + 1), memory::allowed(rvm.memory_limit))?;
    let mut sums = Statistics::new(&kernel, centres.view())?;
    sums.update_with(x, targets, &training.interrupt)?;
    let landmarks = candidates.iter().map(|candidate| training.origin[*candidate]).collect();
    Ok(Model { statistics: Some(sums.kept(landmarks)), ..model })
}
