//! One fit to a training set: the choice of its method, and the completion of its model and report, by feature
//! relevance, retained rows and statistics, row weights, and signs of interpolation.
//!
//! Retained rows are stored for the healed variance, which does not shrink far from the data. If a model interpolates
//! its training rows, its intervals are too narrow and its probabilities overconfident.

use ndarray::{ArrayView2, Axis};

use crate::canonical::{Fold, random_subset};
use crate::design::{Basis, Columns};
use crate::error::{Result, require};
use crate::kernel::{Form, Gamma};
use crate::likelihood::Likelihood;
use crate::memory::{self, afford};
use crate::model::{KeptOutput, KeptRows, Model, StoredRows, Variance, row_weights};
use crate::process::parameters::Moments;
use crate::report::{Interpolation, Report};
use crate::rvm::compose::{student_t, time_budget};
use crate::rvm::data::training_set::TrainingSet;
use crate::rvm::search::driver::FitDriver;
use crate::rvm::search::outer_loop;
use crate::rvm::settings::rvm::Rvm;
use crate::rvm::settings::scheme::{Hyperparameters, Variational};
use crate::statistics::Statistics;
use crate::sums::Sums;
use crate::targets::{Targets, Values};

/// Largest share of the rows that may be relevance vectors without a warning, for models with one precision per weight.
/// It was measured on Friedman's first function. With 86 of 200 rows, 95 % intervals cover 66 % of new targets; with 99
/// of 100 rows, they cover 0.4 %. At half of this share the coverage is still almost nominal, so that the warning would
/// be false. Twice this share would not detect the first model.
const MOST_VECTORS: f64 = 1.0 / 3.0;

/// Most rows that are stored if `keep_rows` is not given. A prediction evaluates the kernel at each of them.
const MOST_KEPT: usize = 2000;

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
        return of_likelihood(rvm, training, driver);
    }
    memory::keep_freed();
    if sums.is_some() || from.is_some() {
        return outer_loop::search(rvm, training, sums, from, driver);
    }
    time_budget::fit_in_time(rvm, training, driver, &of_likelihood)
}

/// Fits a model to a training set by the method of its likelihood and prior.
fn of_likelihood(rvm: &Rvm, training: &TrainingSet, driver: &mut FitDriver) -> Result<(Model, Report)> {
    let likelihood = rvm.likelihood.as_dyn();
    // Row factors that the training set already has are fixed.
    if let Some(mixture) = likelihood.scale_mixture().filter(|_| training.factors.is_none()) {
        return student_t::fit(rvm, training, mixture, driver);
    }
    if !rvm.has_process(training)? {
        return outer_loop::search(rvm, training, None, None, driver);
    }
    if likelihood.counts() {
        return rvm.fit_counts(training, driver);
    }
    if rvm.fits_many(training)? {
        return rvm.fit_many(training, driver);
    }
    // The search only chooses centres. The origin of the targets has no effect on the choice.
    rvm.with_process(training, outer_loop::search(rvm, &training.centred(), None, None, driver)?)
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
    let feature_relevance = feature_relevance(training.rows.view(), &training.sample_weights(), &model);
    let model = rvm.with_kept_rows(training, Model { feature_relevance, ..model }, None)?;
    Ok((with_kept_statistics(rvm, training, x, targets, model)?, report))
}

/// Returns the share of each feature in the variation of the kernel of `model` over rows `x`, [N, D], with sample weights
/// `[N]`, (M37). The result, `[D]`, sums to 1. It is empty unless each feature has its own gamma.
pub(crate) fn feature_relevance(x: ArrayView2<f64>, weights: &[f64], model: &Model) -> Vec<f64> {
    let Some((kernel, Gamma::PerFeature(gammas))) = model.kernel().and_then(|kernel| Some((kernel, kernel.form().gamma()?)))
    else {
        return vec![];
    };
    let moments = Moments::new(x, weights);
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
            let row_weights = row_weights(t, model, x)?;
            Ok(Report { row_weights, ..report })
        }
        _ => Ok(report),
    }
}

/// Adds the sufficient statistics of the rows `x`, `[N, D]`, at the landmarks to the model, if `keep_statistics` is
/// set. This takes one more data pass.
fn with_kept_statistics(rvm: &Rvm, training: &TrainingSet, x: ArrayView2<f64>, targets: &Targets, model: Model) -> Result<Model> {
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

impl Rvm {
    /// Returns the kind of predictive variance of a model whose rows are in memory.
    fn variance_of(&self, training: &TrainingSet, model: &Model) -> Variance {
        let learned = matches!(self.likelihood, Likelihood::Gaussian(_)) && !training.known_noise;
        // A model with statistics may be extended by rows whose residuals are unknown.
        let possible = learned && self.basis == Basis::Kernel && model.process.is_none() && !self.keep_statistics;
        let certain = training.adjustments.constant_target || self.inference.name() == Variational::NAME;
        self.variance.unwrap_or(if possible && !certain { Variance::Healed } else { Variance::Posterior })
    }

    /// Returns the model with its retained rows, chosen from the rows of `among` (`None`: from all rows).
    ///
    /// # Errors
    /// Returns an error if rows are to be retained and the noise variance of each row is given.
    pub(crate) fn with_kept_rows(&self, training: &TrainingSet, model: Model, among: Option<&Fold>) -> Result<Model> {
        let noises = model.output_noise_variances();
        let variance = self.variance_of(training, &model);
        if noises.is_empty() || !(self.keeps_rows() || variance == Variance::Healed) {
            return Ok(model);
        }
        let expected = "posterior, and no keep_rows: the noise variance is given for each row";
        require(!training.known_noise, || "variance".into(), variance.name(), expected)?;
        let whole = || training.weights.iter().copied().enumerate().collect();
        let all: Fold = among.map_or_else(whole, Fold::clone);
        let size = self.keep_rows.unwrap_or(MOST_KEPT).min(all.len());
        let complete = size == all.len();
        let some: Fold = match complete {
            true => all.clone(),
            false => random_subset(all.len(), size, self.seed).into_iter().map(|k| all[k]).collect(),
        };
        let targets = training.real_targets();
        let outputs = training.outputs;
        let target = |n: usize, k: usize| targets[n * outputs + k];
        let total: f64 = all.iter().map(|(_, weight)| weight).sum();
        // The weights of a sample are scaled up to the weight of all rows.
        let share = total / some.iter().map(|(_, weight)| weight).sum::<f64>();
        let rows = training.rows.select(Axis(0), &some.iter().map(|(n, _)| *n).collect::<Vec<usize>>());
        let fitted = model.predict_output_means(rows.view())?;
        let of_output = |k: usize| {
            let mean = all.iter().map(|(n, weight)| weight * target(*n, k)).sum::<f64>() / total;
            let variance = all.iter().map(|(n, weight)| weight * (target(*n, k) - mean).powi(2)).sum::<f64>() / total;
            let residuals = some.iter().zip(fitted.column(k)).map(|((n, _), f)| target(*n, k) - f).collect();
            KeptOutput { residuals, prior_variance: (variance - noises[k]).max(0.0) }
        };
        let KeptOutput { residuals, prior_variance } = of_output(0);
        let kept = KeptRows {
            rows: StoredRows::Dense(rows),
            residuals,
            weights: some.iter().map(|(_, weight)| share * weight).collect(),
            prior_variance,
            further: (1..outputs).map(of_output).collect(),
            complete,
        };
        Ok(Model { variance, kept_rows: Some(kept), ..model })
    }
}

/// Records in the model and in the report whether the model interpolates. `unused` is the number of rows of weight 0.
pub(crate) fn judged((model, report): (Model, Report), unused: usize) -> (Model, Report) {
    let interpolation = interpolation(&model, &report, unused);
    (Model { interpolates: interpolation.is_some(), ..model }, Report { interpolation, ..report })
}

/// Returns the signs of interpolation, if there are any.
fn interpolation(model: &Model, report: &Report, unused: usize) -> Option<Interpolation> {
    if !report.members.is_empty() {
        // For several binary models, the one with the largest share of relevance vectors is reported.
        let share = |own: &&Interpolation| own.vectors as f64 / own.rows as f64;
        let signs = report.members.iter().filter_map(|member| member.interpolation.as_ref());
        return signs.max_by(|a, b| share(a).total_cmp(&share(b))).copied();
    }
    if report.adjustments.constant_target {
        return None;
    }
    // If the fit used a sample, `n_rows` counts only its rows, which all have a positive weight.
    let unused = if report.adjustments.left_out_rows > 0 { 0 } else { unused };
    let rows = model.n_rows.saturating_sub(report.adjustments.merged_rows + unused);
    let many = |vectors: usize| vectors as f64 > MOST_VECTORS * rows as f64;
    let sequential = matches!(model.inference.as_deref(), Some("search" | "sequential"));
    // The other schemes also keep weights that the data do not determine. Counting them needs the covariance, so it is
    // done only if the number of stored weights is suspicious.
    let vectors = match model.relevance.len() {
        stored if sequential || !many(stored) => stored,
        _ => model.in_use().by_data,
    };
    // Repeated inputs with different targets determine the noise variance: each repetition is one degree of freedom.
    let noise_is_determined = report.adjustments.shared_columns >= vectors;
    // Under a process prior, additional centres do not overfit.
    let many_vectors = report.process.is_none() && many(vectors) && !noise_is_determined;
    let found = Interpolation { vectors, rows, many_vectors, least_noise: report.adjustments.noise_capped };
    (found.many_vectors || found.least_noise).then_some(found)
}
