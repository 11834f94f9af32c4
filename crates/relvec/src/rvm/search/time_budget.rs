//! Where a time limit leaves no time for all rows, a sample of them stands for the table.

use std::time::{Duration, Instant};

use crate::error::{Error, Result};
use crate::model::Model;
use crate::report::{Certificate, Repairs, Report, Status, silent};
use crate::rvm::data::training_set::TrainingSet;
use crate::rvm::gram::scaled_problem::{ScaledProblem, keeps_sums};
use crate::rvm::search::driver::{Fit, FitDriver};
use crate::rvm::search::working_sets::WorkingSets;
use crate::rvm::settings::dictionary::Landmarks;
use crate::rvm::settings::inference::Inference;
use crate::rvm::settings::rvm::Rvm;
use crate::rvm::settings::scheme::Start;

/// Multiplications, and rows at most, of the sums that tell how long those over all rows take.
const PROBE: usize = 4_000_000_000;
const PROBE_ROWS: usize = 4096;
/// All rows are taken if their sums are likely to leave this share of the time to the search; else as many as leave half.
const LEAST_LEFT: f64 = 0.25;
const LEFT: f64 = 0.5;
/// Rows that are taken however little time is left.
const LEAST_ROWS: usize = 2000;

/// Rows of the sample for lack of time, for each function; and how many times as many there have to be, or all are taken.
const HASTY_SAMPLE: usize = 20_000;
const HASTY_TIMES: f64 = 2.5;
/// Multiply-adds of a Newton step of that where a scheme takes all columns at once (its first mode takes dozens of steps), for
/// each second left; of so many seconds at least and at most.
const HASTY_STEP: f64 = 5e8;
const HASTY_SECONDS: (f64, f64) = (0.1, 1.0);
/// It takes as many rows as fit into a share of the memory left, but no fewer than these.
const LEAST_SAMPLE: usize = 5000;
const MEMORY_SHARE: u64 = 4;
/// Numbers per row beside its inputs.
const VECTORS: usize = 28;
/// Share of the time left that it may take; and where it is slow to come to rest.
const SHARE: f64 = 0.5;
const SLOW_SHARE: f64 = 0.2;

impl Rvm {
    /// A sample of the rows, as many as there is time for; `None` if that is all of them, or nothing is summed before the
    /// first model.
    pub(crate) fn rows_in_time<'b>(&'b self, training: &TrainingSet, left: Option<Duration>) -> Result<Option<TrainingSet<'b>>> {
        let (n, columns) = (training.rows.nrows(), WorkingSets::first_size(training));
        let Some(left) = left.filter(|_| n > PROBE_ROWS && keeps_sums(training, columns)) else { return Ok(None) };
        let candidates = Landmarks::any(training.origin.len(), columns, self.seed);
        let rows = (PROBE / (columns * columns).max(1)).clamp(1, PROBE_ROWS);
        let probe = training.sample(&candidates, &Landmarks::any(n, rows, self.seed), training.memory_limit)?;
        let all = sums_take(&probe)?.min(sums_take(&probe)?).mul_f64(n as f64 / rows as f64);
        if all <= left.mul_f64(1.0 - LEAST_LEFT) {
            return Ok(None);
        }
        let rows = (n as f64 * (1.0 - LEFT) * left.as_secs_f64() / all.as_secs_f64()) as usize;
        Ok(Some(training.with_rows(self, &Landmarks::any(n, rows.max(LEAST_ROWS), self.seed))))
    }
}

/// The time that the sums over the rows of a table take, of all of its candidates.
fn sums_take(training: &TrainingSet) -> Result<Duration> {
    let begin = Instant::now();
    ScaledProblem::new(training, (0..training.origin.len()).collect())?;
    Ok(begin.elapsed())
}

/// A fit to a sample has not seen all that it was to see.
pub(crate) fn of_sample((model, report): (Model, Report)) -> (Model, Report) {
    let status = if report.status == Status::Converged { Status::TimeLimit } else { report.status };
    let reason = format!("time_limit leaves no time for all rows and candidates; of some: {}", report.certificate.reason);
    let certificate = Certificate { reason, ..report.certificate };
    (Model { status, ..model }, Report { status, certificate, ..report })
}

/// A sample and what is done with it.
struct Plan {
    rows: usize,
    /// Candidates, of those there are.
    columns: usize,
    /// Share of the time left.
    share: f64,
}

/// The fallback model for lack of another, if the time is limited.
pub(crate) fn fallback(rvm: &Rvm, training: &TrainingSet, driver: &FitDriver, search: Fit) -> Result<Option<(Model, Report)>> {
    let Some(left) = driver.left() else { return Ok(None) };
    let plan = match &rvm.inference {
        Inference::Search(scheme) if scheme.start == Start::Auto => {
            let share = if training.outputs > 1 { SLOW_SHARE } else { SHARE };
            Plan { rows: HASTY_SAMPLE / training.outputs, columns: usize::MAX, share }
        }
        // From nothing there is a first model at once, and the time is better spent on all rows.
        Inference::Search(_) => return Ok(None),
        _ => {
            let step = (HASTY_STEP * left.as_secs_f64().clamp(HASTY_SECONDS.0, HASTY_SECONDS.1)) as usize;
            let most = (step / LEAST_SAMPLE.min(training.height()).max(1)).isqrt();
            let weights = (training.dictionary_size() * training.outputs).clamp(1, most);
            let rows = HASTY_SAMPLE.min(step / weights.pow(2));
            Plan { rows, columns: (weights / training.outputs).max(1), share: SLOW_SHARE }
        }
    };
    let (n, rows) = (training.height(), plan.rows.max(LEAST_SAMPLE));
    // All rows where most of them would be taken.
    let plan = Plan { rows: if n as f64 > HASTY_TIMES * rows as f64 { rows } else { n }, ..plan };
    if plan.rows == n && plan.columns >= training.dictionary_size() {
        return Ok(None);
    }
    fit(rvm, training, &plan, driver, search)
}

/// The model of a sample; nothing where the curvature of rows does not move.
fn fit(rvm: &Rvm, training: &TrainingSet, plan: &Plan, driver: &FitDriver, search: Fit) -> Result<Option<(Model, Report)>> {
    let (n, room) = (training.height(), training.memory_limit.saturating_sub(training.taken));
    let row_bytes = 8 * (2 * training.rows.ncols() + VECTORS * training.outputs) as u64;
    let size = plan.rows.min((room / MEMORY_SHARE / row_bytes) as usize);
    if rvm.likelihood.as_dyn().constant_curvature() || training.bias_only || size < LEAST_SAMPLE.min(n) {
        return Ok(None);
    }
    let mut rows = Landmarks::any(n, size, rvm.seed);
    if training.outputs > 1 && training.blocks.is_none() {
        // Of classes that are not among them the first row.
        let mut first = vec![None; training.outputs + 1];
        let weighty = rows.iter().copied().chain(0..n).filter(|row| training.weights[*row] > 0.0);
        weighty.for_each(|row| _ = first[training.targets[row] as usize].get_or_insert(row));
        rows.extend(first.into_iter().flatten());
        rows.sort_unstable();
        rows.dedup();
    }
    let dictionary = training.dictionary();
    let candidates = Landmarks::any(dictionary.len(), plan.columns.min(dictionary.len()), rvm.seed);
    let candidates: Vec<usize> = candidates.into_iter().map(|k| dictionary[k]).collect();
    let sample = training.sample(&candidates, &rows, room)?;
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
        repairs: Repairs { left_out_rows: n - rows.len(), ..training.repairs.clone() },
        ..sample
    };
    match search(&own, &sample, &mut FitDriver::of(&own, &mut silent, &sample.interrupt, start)) {
        Ok(fitted) => Ok(Some(fitted)),
        // Then all rows have to do without.
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
    use crate::rvm::settings::schemes::Variational;
    use crate::rvm::settings::schemes::{Em, MacKay};
    use crate::rvm::settings::search::Search;
    use crate::targets::Targets;

    const N: usize = 150_000;

    fn inputs() -> Array2<f64> {
        Array2::from_shape_fn((N, 2), |(i, j)| 4.0 * fraction(i, [0.618_033_988_75, 0.754_877_666_25][j]))
    }

    fn fraction(i: usize, by: f64) -> f64 {
        ((i + 1) as f64 * by).fract()
    }

    /// Rows of two classes.
    fn labels(x: &Array2<f64>) -> Vec<usize> {
        let f = |i: usize| (2.0 * x[[i, 0]]).sin() + (1.5 * x[[i, 1]]).cos();
        (0..N).map(|i| usize::from(f(i) > 4.0 * fraction(i, 0.569_840_290_998) - 2.0)).collect()
    }

    fn machine() -> Rvm {
        let kernel = Rbf { gamma: 2.0.into() }.into();
        Rvm { kernel, likelihood: Bernoulli::default().into(), dictionary: Dictionary::Size(40), ..Rvm::tipping2001() }
    }

    /// Calls `test` with the table, and what watches over its fit.
    fn with_table(rvm: &Rvm, x: &Array2<f64>, targets: &Targets, test: impl FnOnce(&TrainingSet, &mut FitDriver)) {
        let interrupt = Interrupt::default();
        let training = TrainingSet::new(rvm, x.view(), targets, &interrupt).unwrap();
        test(&training, &mut FitDriver::of(rvm, &mut silent, &interrupt, Instant::now()));
    }

    /// Where the time is up before all rows have told anything, the model is that of the sample, by all schemes; of no more
    /// rows and candidates than there is time for where all columns are taken at once.
    #[test]
    fn a_sample_stands_in_for_all_rows() {
        let x = inputs();
        let two = labels(&x);
        // One class has a single row.
        let rare: Vec<usize> = two.iter().enumerate().map(|(i, k)| if i == N / 3 { 2 } else { *k }).collect();
        let joint = || Rvm { likelihood: Softmax::default().into(), ..machine() };
        let cases = [
            (Inference::from(Search::default()), machine(), &two, N, 40, HASTY_SAMPLE),
            (MacKay::default().into(), machine(), &two, N, 40, HASTY_SAMPLE),
            (MacKay::default().into(), machine(), &two, N, 300, LEAST_SAMPLE),
            (MacKay::default().into(), machine(), &two, 6000, 300, 6000),
            (Em::default().into(), machine(), &two, N, 40, HASTY_SAMPLE),
            (Variational::default().into(), machine(), &two, N, 40, HASTY_SAMPLE),
            (Search::default().into(), joint(), &rare, N, 40, HASTY_SAMPLE / 2),
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
            assert_eq!((model.n_rows, report.repairs.left_out_rows), (rows, n - rows), "{name}");
            let most = ((HASTY_STEP * HASTY_SECONDS.0 / LEAST_SAMPLE as f64).sqrt() as usize / (classes - 1)).min(columns);
            assert_eq!(report.candidates, most, "{name}");
            assert_eq!((model.status, report.status), (Status::TimeLimit, Status::TimeLimit), "{name}");
            assert!(report.certificate.reason.contains("no time for all rows"), "{name}: {}", report.certificate.reason);
            assert!(!model.relevance.is_empty(), "{name}");
            let p = model.predict_probability(x.slice(ndarray::s![..99, ..]), Moderation::Posterior).unwrap();
            assert!(p.iter().all(|p| p.is_finite()), "{name}");
        }
    }

    /// Nothing where the sample could tell nothing, or has no room; where few rows are enough; or where the start is chosen.
    #[test]
    fn no_sample() {
        let x = inputs();
        let labels = labels(&x);
        let rare: Vec<usize> = (0..N).map(|i| usize::from(i == 0)).collect();
        let machine = || Rvm { time_limit: Some(600.0), ..machine() };
        let none = |rvm: &Rvm, labels: &[usize]| {
            with_table(rvm, &x, &Targets::classes(labels, 2), |training, driver| {
                assert!(fallback(rvm, training, driver, &outer_loop::in_sample).unwrap().is_none());
            });
        };
        none(&machine(), &rare);
        none(&Rvm { memory_limit: Some(42_000_000), ..machine() }, &labels);
        none(&Rvm { inference: Search { start: Start::Empty, ..Search::default() }.into(), ..machine() }, &labels);
        none(&Rvm { time_limit: None, ..machine() }, &labels);
        let rvm = machine();
        with_table(&rvm, &x, &Targets::classes(&labels, 2), |training, driver| {
            let few = training.with_rows(&rvm, &Landmarks::any(N, 2 * HASTY_SAMPLE, 0));
            assert!(fallback(&rvm, &few, driver, &outer_loop::in_sample).unwrap().is_none());
            assert!(fallback(&rvm, training, driver, &outer_loop::in_sample).unwrap().is_some());
        });
    }
}
