//! One fit to a training set: the choice of its method, fits to samples of the rows if time is short, and the completion
//! of its model and report, by feature relevance, retained rows and statistics, row weights, and signs of interpolation.
//!
//! If a time limit may leave no time for all rows, a small sample is fitted first (progressive sampling, Provost, Jensen &
//! Oates 1999). The time to its first model tells how many rows there is time for.
//!
//! Retained rows are stored for the healed variance, which does not shrink far from the data. If a model interpolates
//! its training rows, its intervals are too narrow and its probabilities overconfident.

use std::time::Instant;

use ndarray::{ArrayView2, Axis};

use crate::canonical::{Fold, random_subset};
use crate::design::{Basis, Columns};
use crate::error::{Error, Result, require};
use crate::kernel::{Form, Gamma};
use crate::likelihood::Likelihood;
use crate::memory::{self, afford};
use crate::model::{KeptOutput, KeptRows, Model, StoredRows, Variance, row_weights};
use crate::process::parameters::Moments;
use crate::report::{Adjustments, Certificate, Interpolation, Report, Status, silent};
use crate::rvm::compose::student_t;
use crate::rvm::data::training_set::TrainingSet;
use crate::rvm::search::driver::FitDriver;
use crate::rvm::search::outer_loop::{self, WorkingSets};
use crate::rvm::settings::rvm::Rvm;
use crate::rvm::settings::scheme::{Hyperparameters, Start, Variational};
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

/// Number of rows of the first sample. Every scheme has a first model of it within some tenths of a second.
const FIRST_ROWS: usize = 2000;
/// Least number of rows of a sample for each candidate. More rows lower the error more than more candidates do, which take
/// the time squared: Friedman's first function, 20,000 rows, 0.5 s, has the error 1.12 to 1.14, and with a candidate for
/// each row of a first sample of 500 rows 1.50. Two classes by MacKay's scheme within 2 s have the log loss 0.21 and 0.38.
const ROWS_PER_CANDIDATE: usize = 10;
/// Share of the time left that a sample may take, and within which the next fit must have its first model.
const SHARE: f64 = 0.5;

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
        return rvm.fit_labels(training, None, driver);
    }
    if rvm.fits_many(training)? {
        return of_likelihood(rvm, training, driver);
    }
    memory::keep_freed();
    if sums.is_some() || from.is_some() {
        return outer_loop::search(rvm, training, sums, from, driver);
    }
    fit_in_time(rvm, training, driver)
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
        return rvm.fit_counts(training, None, driver);
    }
    if rvm.fits_many(training)? {
        return rvm.fit_many(training, driver);
    }
    // The search only chooses centres. The origin of the targets has no effect on the choice.
    rvm.with_process(training, outer_loop::search(rvm, &training.centred(), None, None, driver)?)
}

/// Fits a model to all rows of a training set if there is time, and to as large a sample as there is time for otherwise.
/// Without a time limit no sample is fitted.
///
/// # Errors
/// Returns the errors of the fits, except errors of a sample by memory or by a matrix that has no Cholesky factor.
fn fit_in_time(rvm: &Rvm, training: &TrainingSet, driver: &mut FitDriver) -> Result<(Model, Report)> {
    let (n, columns) = (training.rows.nrows(), WorkingSets::first_size(training));
    // The search from a given or empty start has its first model at once, and so has a fit of the bias alone.
    let at_once = *rvm.inference.as_dyn().start() != Start::Auto || training.bias_only;
    let takes_time = !at_once && work(n, columns) > 2.0 * work(FIRST_ROWS, FIRST_ROWS / ROWS_PER_CANDIDATE);
    let (mut rows, mut fallback) = (FIRST_ROWS.min(n), None);
    while let Some(left) = driver.left().filter(|_| takes_time) {
        let own = Rvm { time_limit: Some((SHARE * left.as_secs_f64()).max(f64::MIN_POSITIVE)), ..rvm.clone() };
        let Some(sample) = sample(&own, training, rows) else { break };
        let start = Instant::now();
        let interrupt = training.interrupt.for_one_fit(own.deadline(start));
        let sample = TrainingSet { interrupt: interrupt.clone(), ..sample };
        let (model, report) = match of_likelihood(&own, &sample, &mut FitDriver::of(&own, &mut silent, &interrupt, start)) {
            Ok(fitted) => fitted,
            Err(Error::Interrupted) if !training.interrupt.is_raised_by_hand() => break,
            Err(Error::Singular { .. } | Error::Memory { .. }) => break,
            Err(error) => return Err(error),
        };
        let seconds = report.trace.first().map_or(start.elapsed().as_secs_f64(), |point| point.seconds);
        let ratio = SHARE * driver.left().unwrap_or_default().as_secs_f64() / seconds.max(f64::MIN_POSITIVE);
        let possible = ratio * work(rows, WorkingSets::first_size(&sample));
        let found = (model, Report { seconds: driver.elapsed().as_secs_f64(), ..report });
        let more = affordable(possible, columns).min(n);
        if work(n, columns) > possible && more < 2 * rows {
            return Ok(of_sample(found));
        }
        fallback = Some(found);
        if work(n, columns) <= possible {
            break;
        }
        rows = more;
    }
    if fallback.is_some() {
        // From here on there is a model to return at the deadline.
        training.interrupt.arm();
    }
    let found = of_likelihood(rvm, training, driver);
    training.interrupt.disarm();
    match (found, fallback) {
        (Err(Error::Interrupted), Some(fallback)) if !training.interrupt.is_raised_by_hand() => Ok(of_sample(fallback)),
        // The only model of all rows is the initial one without basis functions.
        (Ok((model, _)), Some(fallback)) if model.status == Status::TimeLimit && model.relevance.is_empty() => {
            Ok(of_sample(fallback))
        }
        (found, _) => found,
    }
}

/// Returns the number of multiplications in the products of N rows and M candidates.
fn work(rows: usize, columns: usize) -> f64 {
    rows as f64 * (columns as f64).powi(2)
}

/// Returns the number of rows of a sample whose products take `possible` multiplications. It has at most `columns`
/// candidates.
fn affordable(possible: f64, columns: usize) -> usize {
    let (columns, each) = (columns as f64, ROWS_PER_CANDIDATE as f64);
    (possible / (columns * columns)).max((possible * each * each).cbrt().min(columns * each)).round() as usize
}

/// Returns the training set of `rows` random rows and of one candidate for each [`ROWS_PER_CANDIDATE`] rows at most. It
/// contains each class. Returns `None` if all targets of the sample are equal.
fn sample<'b>(rvm: &'b Rvm, training: &TrainingSet, rows: usize) -> Option<TrainingSet<'b>> {
    let n = training.rows.nrows();
    let mut some = random_subset(n, rows, rvm.seed);
    if !training.is_real() {
        // Add the first row of each class that the sample lacks.
        let mut first = vec![None; training.outputs + 1];
        let weighted = some.iter().copied().chain(0..n).filter(|row| training.weights[*row] > 0.0);
        weighted.for_each(|row| _ = first[training.targets[row] as usize].get_or_insert(row));
        some.extend(first.into_iter().flatten());
        some.sort_unstable();
        some.dedup();
    }
    let part = training.with_rows(rvm, &some);
    let (candidates, most) = (part.origin.len(), part.dictionary_size().min(rows / ROWS_PER_CANDIDATE));
    let part = if candidates > most { part.with_candidates(&random_subset(candidates, most, rvm.seed)) } else { part };
    let outputs = part.targets.len() / some.len();
    let differs = part.targets.chunks(outputs).any(|targets| targets != &part.targets[..outputs]);
    let adjustments = Adjustments { left_out_rows: n - some.len(), ..part.adjustments };
    differs.then_some(TrainingSet { adjustments, ..part })
}

/// Marks the model of a sample: its status is that of the time limit, even if the fit to the sample has converged.
fn of_sample((model, report): (Model, Report)) -> (Model, Report) {
    let status = if report.status == Status::Converged { Status::TimeLimit } else { report.status };
    let reason =
        format!("time_limit leaves no time for all rows and candidates; for a sample of them: {}", report.certificate.reason);
    let certificate = Certificate { reason, ..report.certificate };
    (Model { status, ..model }, Report { status, certificate, ..report })
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
        // Held-out rows need their distances from the retained rows.
        let near = |row: usize| among.is_none() || training.has_distances(row);
        let known: Fold = all.iter().copied().filter(|(row, _)| near(*row)).collect();
        let size = self.keep_rows.unwrap_or(MOST_KEPT).min(known.len());
        let complete = size == all.len();
        let some: Fold = match complete {
            true => all.clone(),
            false => random_subset(known.len(), size, self.seed).into_iter().map(|k| known[k]).collect(),
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

#[cfg(test)]
mod tests {
    use ndarray::Array2;

    use super::*;
    use crate::kernel::Rbf;
    use crate::likelihood::{Bernoulli, Poisson, Softmax};
    use crate::model::Moderation;
    use crate::rvm::settings::dictionary::Dictionary;
    use crate::rvm::settings::scheme::{Em, Inference, MacKay, Search, Sequential, Variational};
    use crate::targets::Targets;

    fn inputs() -> Array2<f64> {
        Array2::from_shape_fn((150_000, 2), |(i, j)| 4.0 * fraction(i, [0.618_033_988_75, 0.754_877_666_25][j]))
    }

    fn fraction(i: usize, by: f64) -> f64 {
        ((i + 1) as f64 * by).fract()
    }

    /// Labels of two classes for rows `x`, `[N]`.
    fn labels(x: &Array2<f64>) -> Vec<usize> {
        let f = |i: usize| (2.0 * x[[i, 0]]).sin() + (1.5 * x[[i, 1]]).cos();
        (0..x.nrows()).map(|i| usize::from(f(i) > 4.0 * fraction(i, 0.569_840_290_998) - 2.0)).collect()
    }

    fn classifier() -> Rvm {
        let kernel = Rbf { gamma: 2.0.into() }.into();
        Rvm { kernel, likelihood: Bernoulli::default().into(), dictionary: Dictionary::Size(40), ..Rvm::tipping2001() }
    }

    /// If the time limit passes before there is a model of all rows, every scheme returns the model of the first sample,
    /// which has a tenth as many candidates as rows, and a row of each class.
    #[test]
    fn fits_without_time_for_all_rows_return_the_model_of_a_sample() {
        let x = inputs();
        let (n_rows, two) = (x.nrows(), labels(&x));
        // One class has a single row.
        let rare: Vec<usize> = two.iter().enumerate().map(|(i, k)| if i == n_rows / 3 { 2 } else { *k }).collect();
        let one_of_two: Vec<usize> = (0..n_rows).map(|i| usize::from(i == n_rows / 3)).collect();
        let joint = || Rvm { likelihood: Softmax::default().into(), ..classifier() };
        let cases = [
            (Inference::from(Search::default()), classifier(), &two, n_rows, 40),
            (Search::default().into(), classifier(), &one_of_two, n_rows, 40),
            (Sequential::default().into(), classifier(), &two, n_rows, 40),
            (MacKay::default().into(), classifier(), &two, n_rows, 40),
            (MacKay::default().into(), classifier(), &two, n_rows, 3000),
            (MacKay::default().into(), classifier(), &two, 1000, 1000),
            (MacKay::default().into(), classifier(), &two, 3000, 3000),
            (Em::default().into(), classifier(), &two, n_rows, 40),
            (Variational::default().into(), classifier(), &two, n_rows, 40),
            (Search::default().into(), joint(), &rare, n_rows, 40),
            (MacKay::default().into(), joint(), &rare, n_rows, 80),
        ];
        for (inference, rvm, labels, n, columns) in cases {
            let name = format!("{inference:?}, {n} rows, {columns}");
            let dictionary = Dictionary::Size(columns);
            let rvm = Rvm { inference, dictionary, time_limit: Some(1e-9), ..rvm };
            let (x, labels) = (x.slice(ndarray::s![..n, ..]), &labels[..n]);
            let classes = labels.iter().max().unwrap() + 1;
            let (model, report) = rvm.fit(x, &Targets::classes(labels, classes)).unwrap();
            let rows = FIRST_ROWS.min(n);
            let most = columns.min(rows / ROWS_PER_CANDIDATE);
            let rows = rows + usize::from(labels.iter().filter(|k| **k + 1 == classes).count() == 1);
            assert_eq!((model.n_rows, report.adjustments.left_out_rows), (rows, n - rows), "{name}");
            assert_eq!(report.candidates, most, "{name}");
            assert_eq!((model.status, report.status), (Status::TimeLimit, Status::TimeLimit), "{name}");
            assert!(report.certificate.reason.contains("no time for all rows"), "{name}: {}", report.certificate.reason);
            let p = model.predict_probability(x.slice(ndarray::s![..99, ..]), Moderation::Posterior).unwrap();
            assert!(p.iter().all(|p| p.is_finite()), "{name}");
        }
    }

    /// No sample is fitted if time is not limited, if the fit is no more work than that of a sample, or if the search has
    /// a model at once. A sample whose targets are all equal is not fitted either.
    #[test]
    fn samples_are_fitted_only_if_they_can_help() {
        let x = inputs();
        let n_rows = x.nrows();
        let targets: Vec<f64> = labels(&x).iter().map(|k| *k as f64).collect();
        let one: Vec<f64> = (0..n_rows).map(|i| f64::from(u8::from(i == n_rows / 3))).collect();
        let limited = Rvm { likelihood: Poisson::default().into(), time_limit: Some(1e-9), ..classifier() };
        let left_out =
            |rvm: &Rvm, targets: &[f64]| rvm.fit(x.view(), &Targets::real(targets.into())).unwrap().1.adjustments.left_out_rows;
        let sizes = |size: usize| Rvm { dictionary: Dictionary::Size(size), ..limited.clone() };
        assert_eq!(left_out(&sizes(40), &targets), n_rows - FIRST_ROWS);
        assert_eq!(left_out(&sizes(30), &targets), 0);
        assert_eq!(left_out(&Rvm { time_limit: None, ..limited.clone() }, &targets), 0);
        assert_eq!(left_out(&limited, &one), 0);
        let empty = Search { start: Start::Empty, ..Search::default() };
        assert_eq!(left_out(&Rvm { inference: empty.into(), ..limited.clone() }, &targets), 0);
    }

    /// A sample has a tenth as many candidates as rows, and at most those of all rows.
    #[test]
    fn rows_of_a_sample_follow_from_the_multiplications() {
        assert_eq!(affordable(work(3000, 300), 1000), 3000);
        assert_eq!(affordable(work(30_000, 1000), 1000), 30_000);
        assert_eq!(affordable(0.0, 1000), 0);
    }
}
