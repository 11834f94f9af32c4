//! Fits to samples of the rows, if a time limit may leave no time for all of them (progressive sampling, Provost, Jensen &
//! Oates 1999).
//!
//! A small sample is fitted first. The time to its first model tells how many rows there is time for.

use std::time::Instant;

use crate::canonical::random_subset;
use crate::error::{Error, Result};
use crate::model::Model;
use crate::report::{Adjustments, Certificate, Report, Status, silent};
use crate::rvm::data::training_set::TrainingSet;
use crate::rvm::search::driver::FitDriver;
use crate::rvm::search::working_sets::WorkingSets;
use crate::rvm::settings::rvm::Rvm;
use crate::rvm::settings::scheme::Start;

/// Number of rows of the first sample. Every scheme has a first model of it within some tenths of a second.
const FIRST_ROWS: usize = 2000;
/// Least number of rows of a sample for each candidate. More rows lower the error more than more candidates do, which take
/// the time squared: Friedman's first function, 20,000 rows, 0.5 s, has the error 1.12 to 1.14, and with a candidate for
/// each row of a first sample of 500 rows 1.50. Two classes by MacKay's scheme within 2 s have the log loss 0.21 and 0.38.
const ROWS_PER_CANDIDATE: usize = 10;
/// Share of the time left that a sample may take, and within which the next fit must have its first model.
const SHARE: f64 = 0.5;

/// A fit to a training set.
pub(crate) type Fit<'f> = &'f dyn Fn(&Rvm, &TrainingSet, &mut FitDriver) -> Result<(Model, Report)>;

/// Fits a model to all rows of a training set if there is time, and to as large a sample as there is time for otherwise.
/// Without a time limit no sample is fitted.
///
/// # Errors
/// Returns the errors of `fit`, except errors of a sample by memory or by a matrix that has no Cholesky factor.
pub(crate) fn fit_in_time(rvm: &Rvm, training: &TrainingSet, driver: &mut FitDriver, fit: Fit) -> Result<(Model, Report)> {
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
        let (model, report) = match fit(&own, &sample, &mut FitDriver::of(&own, &mut silent, &interrupt, start)) {
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
    let found = fit(rvm, training, driver);
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

    /// If the time limit passes before there is a model of all rows, every scheme returns the model of the first sample,
    /// which has a tenth as many candidates as rows, and a row of each class.
    #[test]
    fn fits_without_time_for_all_rows_return_the_model_of_a_sample() {
        let x = inputs();
        let two = labels(&x);
        // One class has a single row.
        let rare: Vec<usize> = two.iter().enumerate().map(|(i, k)| if i == N / 3 { 2 } else { *k }).collect();
        let one_of_two: Vec<usize> = (0..N).map(|i| usize::from(i == N / 3)).collect();
        let joint = || Rvm { likelihood: Softmax::default().into(), ..classifier() };
        let cases = [
            (Inference::from(Search::default()), classifier(), &two, N, 40),
            (Search::default().into(), classifier(), &one_of_two, N, 40),
            (Sequential::default().into(), classifier(), &two, N, 40),
            (MacKay::default().into(), classifier(), &two, N, 40),
            (MacKay::default().into(), classifier(), &two, N, 3000),
            (MacKay::default().into(), classifier(), &two, 1000, 1000),
            (MacKay::default().into(), classifier(), &two, 3000, 3000),
            (Em::default().into(), classifier(), &two, N, 40),
            (Variational::default().into(), classifier(), &two, N, 40),
            (Search::default().into(), joint(), &rare, N, 40),
            (MacKay::default().into(), joint(), &rare, N, 80),
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
        let targets: Vec<f64> = labels(&x).iter().map(|k| *k as f64).collect();
        let one: Vec<f64> = (0..N).map(|i| f64::from(u8::from(i == N / 3))).collect();
        let limited = Rvm { likelihood: Poisson::default().into(), time_limit: Some(1e-9), ..classifier() };
        let left_out =
            |rvm: &Rvm, targets: &[f64]| rvm.fit(x.view(), &Targets::real(targets.into())).unwrap().1.adjustments.left_out_rows;
        let sizes = |size: usize| Rvm { dictionary: Dictionary::Size(size), ..limited.clone() };
        assert_eq!(left_out(&sizes(40), &targets), N - FIRST_ROWS);
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
