//! Subsampling of rows if a time limit leaves no time for all of them.
//!
//! If the sums over the rows would take most of the time, the training set becomes smaller. If the search of all rows
//! may not end in time, a fallback model is fitted first.

use std::time::{Duration, Instant};

use crate::canonical::random_subset;
use crate::error::{Error, Result};
use crate::model::Model;
use crate::report::{Adjustments, Certificate, Report, Status, silent};
use crate::rvm::data::training_set::TrainingSet;
use crate::rvm::gram::scaled_problem::{ScaledProblem, keeps_sums};
use crate::rvm::search::driver::{Fit, FitDriver};
use crate::rvm::search::working_sets::WorkingSets;
use crate::rvm::settings::rvm::Rvm;
use crate::rvm::settings::scheme::{Inference, Start};

/// Largest number of multiplications in the trial sums from which the time of the sums over all rows is estimated.
const PROBE: usize = 4_000_000_000;
/// Largest number of rows in the trial sums.
const PROBE_ROWS: usize = 4096;
/// Share of the time left that the sums over all rows must leave to the search. If they take longer, rows are sampled.
const LEAST_LEFT: f64 = 0.25;
/// Share of the time left that the sums over sampled rows leave to the search.
const LEFT: f64 = 0.5;
/// Least number of sampled rows, however little time is left.
const LEAST_ROWS: usize = 2000;

/// Number of rows in the sample of the fallback fit, divided by the number of outputs.
const FALLBACK_ROWS: usize = 20_000;
/// Number of rows in units of the sample size up to which the fallback fit takes all rows.
const FALLBACK_TIMES: f64 = 2.5;
/// Multiply-adds that one Newton step of the fallback fit may take, per second of the time left (clamped to
/// [`FALLBACK_SECONDS`]). It applies to schemes that start from all columns, whose first mode takes dozens of steps.
const FALLBACK_STEP: f64 = 5e8;
/// Least and largest number of seconds for [`FALLBACK_STEP`].
const FALLBACK_SECONDS: (f64, f64) = (0.1, 1.0);
/// Least number of rows in the sample of the fallback fit. If they do not fit into memory, there is no fallback fit.
const LEAST_SAMPLE: usize = 5000;
/// The sample of the fallback fit takes at most the memory left divided by this number.
const MEMORY_SHARE: u64 = 4;
/// Numbers in memory for each row and output beside the inputs.
const VECTORS: usize = 28;
/// Share of the time left that the fallback fit may take.
const SHARE: f64 = 0.5;
/// Share of the time left that the fallback fit may take if it converges slowly.
const SLOW_SHARE: f64 = 0.2;

impl Rvm {
    /// Returns a training set of as many sampled rows as there is time for. Returns `None` if there is time for all
    /// rows, or if the fit computes no sums before its first model.
    ///
    /// # Errors
    /// Returns the errors of [`TrainingSet::sample`] and [`ScaledProblem::new`].
    pub(crate) fn rows_in_time<'b>(&'b self, training: &TrainingSet, left: Option<Duration>) -> Result<Option<TrainingSet<'b>>> {
        let (n, columns) = (training.rows.nrows(), WorkingSets::first_size(training));
        let Some(left) = left.filter(|_| n > PROBE_ROWS && keeps_sums(training, columns)) else { return Ok(None) };
        let candidates = random_subset(training.origin.len(), columns, self.seed);
        let rows = (PROBE / (columns * columns).max(1)).clamp(1, PROBE_ROWS);
        let probe = training.sample(&candidates, &random_subset(n, rows, self.seed), training.memory_limit);
        let all = sums_take(&probe)?.min(sums_take(&probe)?).mul_f64(n as f64 / rows as f64);
        if all <= left.mul_f64(1.0 - LEAST_LEFT) {
            return Ok(None);
        }
        let rows = (n as f64 * (1.0 - LEFT) * left.as_secs_f64() / all.as_secs_f64()) as usize;
        Ok(Some(training.with_rows(self, &random_subset(n, rows.max(LEAST_ROWS), self.seed))))
    }
}

/// Returns the time that the sums over the rows of a training set take for all of its candidates.
fn sums_take(training: &TrainingSet) -> Result<Duration> {
    let begin = Instant::now();
    ScaledProblem::new(training, (0..training.origin.len()).collect())?;
    Ok(begin.elapsed())
}

/// Marks the model of a sample: its status is that of the time limit, even if the search of the sample has converged.
pub(crate) fn of_sample((model, report): (Model, Report)) -> (Model, Report) {
    let status = if report.status == Status::Converged { Status::TimeLimit } else { report.status };
    let reason =
        format!("time_limit leaves no time for all rows and candidates; for a sample of them: {}", report.certificate.reason);
    let certificate = Certificate { reason, ..report.certificate };
    (Model { status, ..model }, Report { status, certificate, ..report })
}

/// Size of the sample for the fallback fit, and the time that it may take.
struct SubsamplePlan {
    /// Number of rows.
    rows: usize,
    /// Largest number of candidates.
    columns: usize,
    /// Share of the time left.
    share: f64,
}

/// Fits a model to a sample of the rows and candidates, which is returned if the time limit leaves no time for all of
/// them. Returns `None` if time is not limited, or if a sample is not needed or cannot help.
///
/// # Errors
/// Returns the errors of `search`, except errors of memory and of matrices that cannot be factorised.
pub(crate) fn fallback(rvm: &Rvm, training: &TrainingSet, driver: &FitDriver, search: Fit) -> Result<Option<(Model, Report)>> {
    let Some(left) = driver.left() else { return Ok(None) };
    let plan = match &rvm.inference {
        Inference::Search(scheme) if scheme.start == Start::Auto => {
            let share = if training.outputs > 1 { SLOW_SHARE } else { SHARE };
            SubsamplePlan { rows: FALLBACK_ROWS / training.outputs, columns: usize::MAX, share }
        }
        // The search has its first model at once, so that all of the time is left to all rows.
        Inference::Search(_) => return Ok(None),
        _ => {
            let step = (FALLBACK_STEP * left.as_secs_f64().clamp(FALLBACK_SECONDS.0, FALLBACK_SECONDS.1)) as usize;
            let most = (step / LEAST_SAMPLE.min(training.rows.nrows()).max(1)).isqrt();
            let weights = (training.dictionary_size() * training.outputs).clamp(1, most);
            let rows = FALLBACK_ROWS.min(step / weights.pow(2));
            SubsamplePlan { rows, columns: (weights / training.outputs).max(1), share: SLOW_SHARE }
        }
    };
    let (n, rows) = (training.rows.nrows(), plan.rows.max(LEAST_SAMPLE));
    // If the sample would be a large share of the rows, all of them are taken.
    let plan = SubsamplePlan { rows: if n as f64 > FALLBACK_TIMES * rows as f64 { rows } else { n }, ..plan };
    if plan.rows == n && plan.columns >= training.dictionary_size() {
        return Ok(None);
    }
    fit(rvm, training, &plan, driver, search)
}

/// Fits the model of a sample. Returns `None` if a sample cannot help, because the Hessian is constant or the bias alone
/// is fitted. Returns `None` too if the sample has no room in memory or too few different targets, or cannot be fitted.
fn fit(
    rvm: &Rvm,
    training: &TrainingSet,
    plan: &SubsamplePlan,
    driver: &FitDriver,
    search: Fit,
) -> Result<Option<(Model, Report)>> {
    let (n, room) = (training.rows.nrows(), training.memory_limit.saturating_sub(training.taken));
    let row_bytes = 8 * (2 * training.rows.ncols() + VECTORS * training.outputs) as u64;
    let size = plan.rows.min((room / MEMORY_SHARE / row_bytes) as usize);
    if rvm.likelihood.as_dyn().constant_curvature() || training.bias_only || size < LEAST_SAMPLE.min(n) {
        return Ok(None);
    }
    let mut rows = random_subset(n, size, rvm.seed);
    if training.outputs > 1 {
        // Add the first row of each class that the sample lacks.
        let mut first = vec![None; training.outputs + 1];
        let weighted = rows.iter().copied().chain(0..n).filter(|row| training.weights[*row] > 0.0);
        weighted.for_each(|row| _ = first[training.targets[row] as usize].get_or_insert(row));
        rows.extend(first.into_iter().flatten());
        rows.sort_unstable();
        rows.dedup();
    }
    let dictionary = training.dictionary();
    let candidates = random_subset(dictionary.len(), plan.columns.min(dictionary.len()), rvm.seed);
    let candidates: Vec<usize> = candidates.into_iter().map(|k| dictionary[k]).collect();
    let sample = training.sample(&candidates, &rows, room);
    let mut seen: Vec<f64> = vec![];
    for (target, _) in sample.targets.iter().zip(&sample.weights).filter(|(_, weight)| **weight > 0.0) {
        if !seen.contains(target) && seen.len() <= training.outputs {
            seen.push(*target);
        }
    }
    if seen.len() <= training.outputs {
        return Ok(None);
    }
    let left = driver.left().map(|left| (plan.share * left.as_secs_f64()).max(f64::MIN_POSITIVE));
    let (own, start) = (Rvm { time_limit: left, ..rvm.clone() }, Instant::now());
    let sample = TrainingSet {
        rvm: &own,
        taken: rows.len() as u64 * row_bytes,
        interrupt: training.interrupt.for_one_fit(own.deadline(start)),
        adjustments: Adjustments { left_out_rows: n - rows.len(), ..training.adjustments.clone() },
        ..sample
    };
    match search(&own, &sample, &mut FitDriver::of(&own, &mut silent, &sample.interrupt, start)) {
        Ok(fitted) => Ok(Some(fitted)),
        // The fit of all rows then has no fallback.
        Err(Error::Singular { .. } | Error::Memory { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use ndarray::Array2;

    use super::*;
    use crate::kernel::Rbf;
    use crate::likelihood::{Bernoulli, Softmax};
    use crate::model::Moderation;
    use crate::report::{Interrupt, Status};
    use crate::rvm::search::outer_loop;
    use crate::rvm::settings::dictionary::Dictionary;
    use crate::rvm::settings::scheme::{Em, MacKay, Search, Variational};
    use crate::targets::Targets;

    const N: usize = 150_000;

    fn inputs() -> Array2<f64> {
        Array2::from_shape_fn((N, 2), |(i, j)| 4.0 * fraction(i, [0.618_033_988_75, 0.754_877_666_25][j]))
    }

    fn fraction(i: usize, by: f64) -> f64 {
        ((i + 1) as f64 * by).fract()
    }

    /// Labels of two classes, `[N]`.
    fn labels(x: &Array2<f64>) -> Vec<usize> {
        let f = |i: usize| (2.0 * x[[i, 0]]).sin() + (1.5 * x[[i, 1]]).cos();
        (0..N).map(|i| usize::from(f(i) > 4.0 * fraction(i, 0.569_840_290_998) - 2.0)).collect()
    }

    fn classifier() -> Rvm {
        let kernel = Rbf { gamma: 2.0.into() }.into();
        Rvm { kernel, likelihood: Bernoulli::default().into(), dictionary: Dictionary::Size(40), ..Rvm::tipping2001() }
    }

    /// Calls `test` with a training set and the driver of its fit.
    fn with_table(rvm: &Rvm, x: &Array2<f64>, targets: &Targets, test: impl FnOnce(&TrainingSet, &mut FitDriver)) {
        let interrupt = Interrupt::default();
        let training = TrainingSet::new(rvm, x.view(), targets, &interrupt).unwrap();
        test(&training, &mut FitDriver::of(rvm, &mut silent, &interrupt, Instant::now()));
    }

    /// If the time limit passes before there is a model of all rows, every scheme returns the model of the sample.
    /// Schemes that start from all columns sample fewer rows and candidates.
    #[test]
    fn fits_without_time_for_all_rows_return_the_model_of_a_sample() {
        let x = inputs();
        let two = labels(&x);
        // One class has a single row.
        let rare: Vec<usize> = two.iter().enumerate().map(|(i, k)| if i == N / 3 { 2 } else { *k }).collect();
        let joint = || Rvm { likelihood: Softmax::default().into(), ..classifier() };
        let cases = [
            (Inference::from(Search::default()), classifier(), &two, N, 40, FALLBACK_ROWS),
            (MacKay::default().into(), classifier(), &two, N, 40, FALLBACK_ROWS),
            (MacKay::default().into(), classifier(), &two, N, 300, LEAST_SAMPLE),
            (MacKay::default().into(), classifier(), &two, 6000, 300, 6000),
            (Em::default().into(), classifier(), &two, N, 40, FALLBACK_ROWS),
            (Variational::default().into(), classifier(), &two, N, 40, FALLBACK_ROWS),
            (Search::default().into(), joint(), &rare, N, 40, FALLBACK_ROWS / 2),
            (MacKay::default().into(), joint(), &rare, N, 80, LEAST_SAMPLE),
        ];
        for (inference, rvm, labels, n, columns, rows) in cases {
            let name = format!("{inference:?}, {n} rows, {columns}");
            let dictionary = Dictionary::Size(columns);
            let rvm = Rvm { inference, dictionary, time_limit: Some(1e-9), ..rvm };
            let (x, labels) = (x.slice(ndarray::s![..n, ..]), &labels[..n]);
            let classes = labels.iter().max().unwrap() + 1;
            let (model, report) = rvm.fit(x, &Targets::classes(labels, classes)).unwrap();
            let rows = if classes == 3 { rows + 1 } else { rows };
            assert_eq!((model.n_rows, report.adjustments.left_out_rows), (rows, n - rows), "{name}");
            let most = ((FALLBACK_STEP * FALLBACK_SECONDS.0 / LEAST_SAMPLE as f64).sqrt() as usize / (classes - 1)).min(columns);
            assert_eq!(report.candidates, most, "{name}");
            assert_eq!((model.status, report.status), (Status::TimeLimit, Status::TimeLimit), "{name}");
            assert!(report.certificate.reason.contains("no time for all rows"), "{name}: {}", report.certificate.reason);
            assert!(!model.relevance.is_empty(), "{name}");
            let p = model.predict_probability(x.slice(ndarray::s![..99, ..]), Moderation::Posterior).unwrap();
            assert!(p.iter().all(|p| p.is_finite()), "{name}");
        }
    }

    /// There is no fallback model if the sample has one class, has no room in memory, or would be a large share of the
    /// rows. Nor is there one if time is not limited, or if the search starts from the empty model.
    #[test]
    fn fallback_is_skipped_if_it_cannot_help() {
        let x = inputs();
        let labels = labels(&x);
        let rare: Vec<usize> = (0..N).map(|i| usize::from(i == 0)).collect();
        let limited = || Rvm { time_limit: Some(600.0), ..classifier() };
        let none = |rvm: &Rvm, labels: &[usize]| {
            with_table(rvm, &x, &Targets::classes(labels, 2), |training, driver| {
                assert!(fallback(rvm, training, driver, &outer_loop::search_sample).unwrap().is_none());
            });
        };
        none(&limited(), &rare);
        none(&Rvm { memory_limit: Some(42_000_000), ..limited() }, &labels);
        none(&Rvm { inference: Search { start: Start::Empty, ..Search::default() }.into(), ..limited() }, &labels);
        none(&Rvm { time_limit: None, ..limited() }, &labels);
        let rvm = limited();
        with_table(&rvm, &x, &Targets::classes(&labels, 2), |training, driver| {
            let few = training.with_rows(&rvm, &random_subset(N, 2 * FALLBACK_ROWS, 0));
            assert!(fallback(&rvm, &few, driver, &outer_loop::search_sample).unwrap().is_none());
            assert!(fallback(&rvm, training, driver, &outer_loop::search_sample).unwrap().is_some());
        });
    }
}
