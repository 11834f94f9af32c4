//! Large data sets: working sets, landmarks, time limits and sums follow the same mathematics as one search of all
//! candidates.

use std::ops::ControlFlow;
use std::time::Duration;

use crate::support::close;
use ndarray::{Array1, Array2, Axis, concatenate, s};
use rand::{RngExt, SeedableRng};
use rand_distr::{Distribution, StandardNormal};
use relvec::*;

/// Rows, real targets, and classes from the same function.
struct Data {
    x: Array2<f64>,
    t: Array1<f64>,
    labels: Vec<usize>,
}

impl Data {
    /// Targets are `f` of the rows `x` plus noise of the given standard deviation.
    fn new(seed: u64, x: Array2<f64>, noise: f64, f: impl Fn(&[f64]) -> f64) -> Data {
        let mut random = rand_pcg::Pcg64::seed_from_u64(seed + 1000);
        let f = x.map_axis(Axis(1), |r| f(r.as_slice().expect("rows are contiguous")));
        let middle = f.mean().expect("there are rows");
        let mut noisy = |f: &f64| f + noise * Distribution::<f64>::sample(&StandardNormal, &mut random);
        let t = f.map(&mut noisy);
        let labels = f.iter().map(|f| usize::from(noisy(f) > middle)).collect();
        Data { x, t, labels }
    }

    fn targets(&self, likelihood: &Likelihood) -> Targets<'_> {
        match likelihood {
            other if other.is_for_classes() => Targets::classes(&self.labels, 2),
            _ => Targets::real(self.t.view()),
        }
    }

    fn fit(&self, rvm: &Rvm) -> (Model, Report) {
        let targets = self.targets(&rvm.likelihood);
        rvm.fit(self.x.view(), &targets).unwrap_or_else(|e| panic!("{}: {e}", rvm.likelihood.name()))
    }

    fn select(&self, order: &[usize]) -> Data {
        Data {
            x: self.x.select(Axis(0), order),
            t: self.t.select(Axis(0), order),
            labels: order.iter().map(|i| self.labels[*i]).collect(),
        }
    }
}

fn uniform(seed: u64, rows: usize, features: usize, to: f64) -> Array2<f64> {
    let mut random = rand_pcg::Pcg64::seed_from_u64(seed);
    Array2::from_shape_simple_fn((rows, features), || random.random_range(0.0..to))
}

/// Returns Friedman's first function of 10 features, of which 5 matter, with noise 1.
fn friedman(seed: u64, rows: usize) -> Data {
    let f =
        |r: &[f64]| 10.0 * (std::f64::consts::PI * r[0] * r[1]).sin() + 20.0 * (r[2] - 0.5).powi(2) + 10.0 * r[3] + 5.0 * r[4];
    Data::new(seed, uniform(seed, rows, 10, 1.0), 1.0, f)
}

/// Returns one feature, and a function that varies so much that the model needs some vectors per unit of length.
fn wiggly(seed: u64, rows: usize, length: f64) -> Data {
    let waves = |x: f64| (1..30).map(|k| f64::sin(0.25 * k as f64 * x + (k * k) as f64)).sum::<f64>();
    Data::new(seed, uniform(seed, rows, 1, length), 0.1, |r| waves(r[0]))
}

fn rbf(gamma: f64) -> Kernel {
    Rbf { gamma: gamma.into() }.into()
}

/// Returns a fit in which all rows are candidates.
fn all(gamma: f64) -> Rvm {
    Rvm { kernel: rbf(gamma), dictionary: Dictionary::Rule(DictionaryRule::All), ..Rvm::tipping2001() }
}

/// Returns a fit in which all rows are candidates. Their products do not fit into memory, so that rich models are
/// searched in working sets, too.
fn in_sets(gamma: f64) -> Rvm {
    Rvm { memory_limit: Some(30_000_000), ..all(gamma) }
}

fn classifier(rvm: Rvm) -> Rvm {
    Rvm { likelihood: Bernoulli::default().into(), ..rvm }
}

fn hyper(model: &Model) -> Hyperparameters {
    Hyperparameters {
        relevance: model.relevance.clone(),
        alpha: model.alpha.clone(),
        intercept_alpha: model.intercept_alpha,
        noise_variance: model.noise_variance(),
        ..Hyperparameters::default()
    }
}

/// Relative accuracy of the evidence. Columns of a wide kernel are nearly dependent. If precisions fall to 1e-9 of the
/// likelihood's, the evidence is accurate to some thousandths of a nat, see (M23). Comparisons at given precisions use
/// larger ones.
const DIGITS: f64 = 5e-6;

/// Checks that the trace never falls and that its last entry belongs to the model, whatever ended the fit.
#[track_caller]
fn sound(model: &Model, report: &Report) {
    for pair in report.trace.windows(2) {
        assert!(pair[1].log_evidence >= pair[0].log_evidence, "{} to {}", pair[0].log_evidence, pair[1].log_evidence);
    }
    let last = report.trace.last().expect("at least one iteration").log_evidence;
    let off = (model.log_evidence.unwrap() - last).abs();
    // The best model of all working sets is solved again, with other sums than during the search.
    assert!(off <= DIGITS * last.abs().max(1.0), "{:?}: {} in the trace, {}", report.status, last, model.log_evidence.unwrap());
    assert_eq!((report.status, report.iterations), (model.status, model.iterations));
    assert_eq!(report.iterations, report.trace.len());
    let unfinished = report.certificate.reason.contains("before it converged");
    assert!(report.status != Status::Converged || !unfinished, "{}", report.certificate.reason);
    let active = model.relevance.len() + usize::from(model.intercept_alpha.is_some());
    assert_eq!(report.trace.last().map(|p| p.active), Some(active));
}

/// Also checks that the fit has converged and that no action gains more.
#[track_caller]
fn at_rest(rvm: &Rvm, model: &Model, report: &Report) {
    sound(model, report);
    assert_eq!(report.status, Status::Converged);
    let Inference::Search(settings) = &rvm.inference else { panic!("another scheme") };
    let least = settings.tolerance * (model.n_rows as f64 / 1000.0).max(1.0);
    let gain = report.certificate.largest_gain.expect("the scheme scores candidates");
    assert!(gain <= least, "{gain} is left to gain: {}", report.certificate.reason);
}

/// Also checks that all `candidates` were scanned.
#[track_caller]
fn by_parts(rvm: &Rvm, model: &Model, report: &Report, candidates: usize) {
    at_rest(rvm, model, report);
    assert_eq!(report.candidates, candidates);
    let reason = &report.certificate.reason;
    assert!(reason.contains(&format!("passes over all {candidates} candidates")), "{reason}");
}

/// Checks agreement relative to the largest value of `b`.
#[track_caller]
fn agree(what: &str, a: &[f64], b: &[f64]) {
    let largest = b.iter().fold(0.0f64, |l, v| l.max(v.abs()));
    assert!(largest > 0.0);
    close(what, &a.iter().map(|v| v / largest).collect::<Vec<_>>(), &b.iter().map(|v| v / largest).collect::<Vec<_>>(), 1e-9);
}

/// The search in working sets ends near the search of all candidates, which uses sums over rows with every row as a
/// centre. An evaluation of its model over all candidates finds the same evidence, and no action gains more.
#[test]
fn working_sets_end_within_fifteen_nats_of_one_search() {
    let data = friedman(3, 1100);
    let rvm = in_sets(0.25);
    let targets = Targets::real(data.t.view());
    let (model, report) = data.fit(&rvm);
    by_parts(&rvm, &model, &report, 1100);
    let mut statistics = Statistics::new(&rvm.kernel, data.x.view()).unwrap();
    statistics.update(data.x.view(), &targets).unwrap();
    let (whole, report) = rvm.fit_statistics(&statistics).unwrap();
    at_rest(&rvm, &whole, &report);
    assert!(!report.certificate.reason.contains("candidates"), "one problem: {}", report.certificate.reason);
    assert!(
        model.log_evidence.unwrap() > whole.log_evidence.unwrap() - 15.0,
        "{} of {}",
        model.log_evidence.unwrap(),
        whole.log_evidence.unwrap()
    );
    // With enough memory all candidates of a rich model are searched at once in the end.
    let (rich, report) = data.fit(&all(0.25));
    at_rest(&rvm, &rich, &report);
    assert!(!report.certificate.reason.contains("candidates"), "one problem: {}", report.certificate.reason);
    let gap = rich.log_evidence.unwrap() - whole.log_evidence.unwrap();
    assert!(gap.abs() < 4.0, "{gap} nats above one search");
    for model in [model, whole, rich] {
        let again = rvm.evaluate(data.x.view(), &targets, &hyper(&model)).unwrap();
        close("evidence", &[again.log_evidence / model.log_evidence.unwrap()], &[1.0], 1e-7);
        let left = again.actions.iter().map(|a| a.gain).fold(0.0, f64::max);
        assert!(left < 2e-3, "{left} is left to gain among all");
    }
}

/// The evidence of a few wide kernels depends on the position of each. Working sets reach the evidence of one search of
/// all candidates.
#[test]
fn working_sets_place_a_few_wide_kernels_well() {
    let sinc = |r: &[f64]| (r[0] - 10.0).sin() / (r[0] - 10.0);
    let data = Data::new(3, uniform(3, 2000, 1, 20.0), 0.1, sinc);
    let rvm = all(0.1);
    let (model, report) = data.fit(&rvm);
    sound(&model, &report);
    let mut statistics = Statistics::new(&rvm.kernel, data.x.view()).unwrap();
    statistics.update(data.x.view(), &Targets::real(data.t.view())).unwrap();
    let (whole, report) = rvm.fit_statistics(&statistics).unwrap();
    sound(&whole, &report);
    let (found, expected) = (model.log_evidence.unwrap(), whole.log_evidence.unwrap());
    assert!(found > expected - 5.0, "{found} of {expected}");
    // The backward pruning of all columns leaves few, even if each removal raises the evidence little.
    assert!(model.relevance.len() < 25 && whole.relevance.len() < 25, "{:?}, {:?}", model.relevance, whole.relevance);
}

/// The model has the same bits for any number of threads and on repetition. Other seeds may end in other optima, but
/// not far away.
/// Under a wide kernel, sums over other columns change the evidence of one model by some tenths of a nat. The search ends
/// although this change looks like a rise in every second working set.
#[test]
fn working_sets_end_if_rounding_changes_the_evidence() {
    let wave = |i: usize, k: usize| {
        let i = i as f64;
        (0.618_033_988_75 * (i * (k + 1) as f64 + (11 * k + 1) as f64) + 0.37 * i.sin()).fract().abs()
    };
    for set in [22, 23, 24] {
        let row = |n: usize| n + 10_000 * set;
        let sum = |n: usize, k: usize| wave(row(n), k) + wave(row(n), k + 1) + wave(row(n), k + 2) - 1.5;
        let x = Array2::from_shape_fn((2500, 4), |(n, k)| 2.0 * sum(n, 3 * k));
        let noise = |n: usize| wave(row(n), 17) + wave(row(n), 23) + wave(row(n), 31) - 1.5;
        let t = Array1::from_shape_fn(2500, |n| 2.0 * f64::sin(2.0 * x[[n, 0]]) + 2.0 * x[[n, 1]] * x[[n, 2]] + 0.5 * noise(n));
        let kernel = Rbf { gamma: vec![0.1, 0.003, 0.003, 1e-7].into() }.into();
        let rvm = Rvm { kernel, weight_prior: WeightPrior::Ard, max_iterations: 1500, ..Rvm::default() };
        let (_, report) = rvm.fit(x.view(), &Targets::real(t.view())).unwrap();
        assert_eq!(report.status, Status::Converged, "{set}: {} iterations", report.iterations);
    }
}

#[test]
fn working_sets_do_not_depend_on_threads() {
    let data = friedman(3, 1010);
    let fit = |threads, seed| data.fit(&Rvm { threads: Some(threads), seed, ..all(0.1) }).0;
    let one = fit(1, 0);
    assert!(one.to_json().unwrap() == fit(2, 0).to_json().unwrap());
    assert!(one.to_json().unwrap() == fit(2, 0).to_json().unwrap());
    let other = fit(2, 1);
    assert!(
        (one.log_evidence.unwrap() - other.log_evidence.unwrap()).abs() < 30.0,
        "{} {}",
        one.log_evidence.unwrap(),
        other.log_evidence.unwrap()
    );
    let some = data.select(&(0..550).collect::<Vec<_>>());
    let classes = |threads| some.fit(&Rvm { threads: Some(threads), ..classifier(all(0.1)) }).0;
    assert!(classes(1).to_json().unwrap() == classes(2).to_json().unwrap());
}

/// The order of rows does not matter, and a repeated row equals a row of weight 2, to the bit.
#[test]
fn working_sets_do_not_depend_on_the_order_of_rows() {
    let data = friedman(4, 1010);
    let (one, report) = data.fit(&in_sets(0.1));
    by_parts(&in_sets(0.1), &one, &report, 1010);
    let order: Vec<usize> = (0..1010).map(|i| (i * 377 + 11) % 1010).collect();
    let (two, _) = data.select(&order).fit(&in_sets(0.1));
    assert_eq!(one.log_evidence, two.log_evidence);
    let mut mapped: Vec<usize> = two.relevance.iter().map(|k| order[*k]).collect();
    mapped.sort_unstable();
    assert_eq!(mapped, one.relevance);
    let (p, q) = (one.predict_mean(data.x.view()).unwrap(), two.predict_mean(data.x.view()).unwrap());
    close("mean", q.as_slice().unwrap(), p.as_slice().unwrap(), 1e-9);

    let twice = data.select(&(0..1010).chain((0..1010).step_by(3)).collect::<Vec<_>>());
    let (double, report) = twice.fit(&in_sets(0.1));
    assert_eq!((report.candidates, report.adjustments.merged_rows), (1010, 337));
    let c = Array1::from_shape_fn(1010, |i| if i % 3 == 0 { 2.0 } else { 1.0 });
    let targets = Targets::real(data.t.view()).with_weights(c.view());
    let (weighted, report) = in_sets(0.1).fit(data.x.view(), &targets).unwrap();
    sound(&weighted, &report);
    assert_eq!((weighted.log_evidence, &weighted.relevance), (double.log_evidence, &double.relevance));
    assert_eq!((&weighted.alpha, &weighted.expansion), (&double.alpha, &double.expansion));
}

/// If a limit or the observer stops a working-set search, the best model is returned.
#[test]
fn stopped_working_set_searches_return_the_best_model() {
    let data = friedman(5, 1010);
    let rvm = in_sets(0.1);
    let (whole, report) = data.fit(&rvm);
    let targets = data.targets(&rvm.likelihood);
    let steps = report.iterations;
    for at in [1, steps / 4, 3 * steps / 4, steps - 1] {
        let (model, limited) = data.fit(&Rvm { max_iterations: at, ..rvm.clone() });
        sound(&model, &limited);
        assert_eq!((limited.status, limited.iterations), (Status::IterationLimit, at));
        assert!(limited.certificate.reason.contains("all 1010 candidates"), "{}", limited.certificate.reason);
        assert_eq!(limited.trace.last().map(|p| p.log_evidence), Some(report.trace[at - 1].log_evidence));
        let mut stop = |p: &Progress| if p.iteration == at { ControlFlow::Break(()) } else { ControlFlow::Continue(()) };
        let (stopped, ended) = rvm.fit_with(data.x.view(), &targets, &mut stop, &Interrupt::default()).unwrap();
        sound(&stopped, &ended);
        assert_eq!((ended.status, &stopped.relevance), (Status::Stopped, &model.relevance));
        let interrupt = Interrupt::default();
        let mut raise = |p: &Progress| {
            if p.iteration == at {
                interrupt.raise();
            }
            ControlFlow::Continue(())
        };
        let ended = rvm.fit_with(data.x.view(), &targets, &mut raise, &interrupt);
        assert!(matches!(ended, Err(Error::Interrupted)), "{ended:?}");
        assert!(model.log_evidence.unwrap() <= whole.log_evidence.unwrap() + 1e-6);
    }
}

/// Returns a design matrix of many columns and few rows, for which a working-set search takes milliseconds.
fn wide(seed: u64) -> Data {
    Data::new(seed, uniform(seed, 40, 1010, 1.0), 0.3, |r| 3.0 * (r[0] - r[1] + r[2] * r[3]) + r[500])
}

/// The best model so far is returned wherever the time runs out: in the last iteration before another working set, or
/// in a candidate scan.
#[test]
fn time_limits_end_with_a_model() {
    let given = Rvm { basis: Basis::Given, ..Rvm::tipping2001() };
    let cases =
        [(wide(6), 0.3, given.clone(), vec![20, 60, 100, 150, 200, 250]), (wide(7), 0.05, classifier(given), (1..40).collect())];
    for (data, limit, rvm, moments) in cases {
        let targets = data.targets(&rvm.likelihood);
        for at in moments {
            let mut seen = 0;
            let mut late = |p: &Progress| {
                seen = p.iteration;
                if p.iteration == at {
                    std::thread::sleep(Duration::from_secs_f64(limit).saturating_sub(p.elapsed));
                }
                ControlFlow::Continue(())
            };
            let rvm = Rvm { time_limit: Some(limit), ..rvm.clone() };
            let (model, report) = rvm.fit_with(data.x.view(), &targets, &mut late, &Interrupt::default()).unwrap();
            sound(&model, &report);
            assert_eq!(report.iterations, seen, "nothing is told after the end");
            assert!(report.status == Status::TimeLimit || seen < at, "{:?} after {seen} of {at}", report.status);
        }
        // A time limit that passes before there is a model ends the fit at the first model.
        let (model, report) = data.fit(&Rvm { time_limit: Some(1e-9), ..rvm });
        sound(&model, &report);
        assert_eq!((report.status, report.iterations), (Status::TimeLimit, 1));
    }
}

/// If the time is too short for the sums over all rows, which precede any model, the model is that of a sample. With
/// enough time it is that of all rows.
#[test]
fn time_limits_leave_rows_out() {
    let data = friedman(8, 9000);
    let given = Landmarks::Given(Centres(data.x.slice(s![..200, ..]).to_owned()));
    let landmarks = Rvm { dictionary: 200.into(), ..all(0.3) };
    let cases = [
        landmarks.clone(),
        Rvm { landmarks: given, ..all(0.3) },
        Rvm { likelihood: StudentT::default().into(), ..landmarks.clone() },
        Rvm { inference: MacKay::default().into(), ..landmarks.clone() },
        // Some thousand candidates, of which the sample has fewer.
        Rvm { dictionary: 5000.into(), ..all(0.3) },
    ];
    for (k, rvm) in cases.into_iter().enumerate() {
        let (model, report) = data.fit(&Rvm { time_limit: Some(1e-9), ..rvm.clone() });
        sound(&model, &report);
        let left_out = report.adjustments.left_out_rows;
        assert!(left_out > 6000, "case {k}: {left_out}");
        assert_eq!((report.status, model.n_rows), (Status::TimeLimit, 9000 - left_out), "case {k}");
        assert!(report.certificate.reason.contains("no time for all rows"), "{}", report.certificate.reason);
        let spread = data.t.std(0.0);
        let errors = &model.predict_mean(data.x.view()).unwrap() - &data.t;
        let rmse = errors.mapv(|e| e * e).mean().unwrap().sqrt();
        assert!(rmse < 0.7 * spread, "case {k}: {rmse} of {spread}");
        // Relevance vectors are rows of the whole data set.
        if let (FittedBasis::Kernel { centres, .. }, Landmarks::Kmedoids) = (&model.expansion.basis, &rvm.landmarks) {
            assert!(model.relevance.iter().any(|i| *i >= model.n_rows), "case {k}");
            assert_eq!(centres, data.x.select(Axis(0), &model.relevance), "case {k}");
        }
    }
    let columns = Data { x: uniform(8, 9000, 200, 1.0), ..friedman(8, 9000) };
    let (model, report) = columns.fit(&Rvm { basis: Basis::Given, time_limit: Some(1e-9), ..Rvm::tipping2001() });
    sound(&model, &report);
    assert_eq!((report.status, model.n_rows), (Status::TimeLimit, 2000), "a design matrix");

    let (model, report) = data.fit(&Rvm { time_limit: Some(1e6), ..landmarks.clone() });
    assert_eq!((report.adjustments.left_out_rows, report.status), (0, Status::Converged));
    assert_eq!(model.to_json().unwrap(), data.fit(&landmarks).0.to_json().unwrap());
}

/// However little time there is, the model predicts better than a constant.
#[test]
fn time_limits_leave_a_model_that_predicts() {
    let (many, few) = (friedman(9, 12_000), friedman(10, 3000));
    let mackay = Rvm { inference: MacKay::default().into(), ..all(0.3) };
    let cases = [
        (&many, Rvm::default()),
        (&few, classifier(Rvm::default())),
        (&many, classifier(Rvm::default())),
        (&few, mackay.clone()),
        (&few, classifier(mackay)),
        (&few, all(0.3)),
        (&few, classifier(all(0.3))),
    ];
    for (k, (data, rvm)) in cases.into_iter().enumerate() {
        for limit in [1e-9, 0.02, 0.1] {
            let (model, report) = data.fit(&Rvm { time_limit: Some(limit), ..rvm.clone() });
            sound(&model, &report);
            let name = format!("case {k}, limit {limit}, {} kernels", model.relevance.len());
            let share = if rvm.likelihood.is_for_classes() {
                let p = model.predict_probability(data.x.view(), Moderation::Posterior).unwrap();
                let wrong = p.outer_iter().zip(&data.labels).filter(|(p, label)| p[**label] < 0.5).count();
                wrong as f64 / data.labels.len() as f64 / 0.5
            } else {
                (&model.predict_mean(data.x.view()).unwrap() - &data.t).std(0.0) / data.t.std(0.0)
            };
            assert!(share < 0.7, "{name}: {share}");
        }
    }
}

/// A saturated working set becomes larger, and in the end all candidates are searched at once.
#[test]
fn saturated_working_sets_grow() {
    let start = |start| Inference::Search(Search { start, restarts: 0, ..Search::default() });
    let (short, long) = (wiggly(8, 1010, 420.0), wiggly(8, 1500, 600.0));
    for (name, data, rvm) in [
        ("all at once", &short, all(2.0)),
        ("too many for the memory", &short, in_sets(2.0)),
        ("from nothing", &long, Rvm { inference: start(Start::Empty), ..all(2.0) }),
    ] {
        let rvm = if name == "from nothing" { rvm } else { Rvm { inference: start(Start::Auto), ..rvm } };
        let (model, report) = data.fit(&rvm);
        sound(&model, &report);
        assert_eq!((report.status, report.candidates), (Status::Converged, data.t.len()), "{name}");
        assert!(model.relevance.len() > 240, "{name}: {} are in the model", model.relevance.len());
        // All candidates are in one working set, so that there is no candidate scan.
        assert!(!report.certificate.reason.contains("candidates"), "{name}: {}", report.certificate.reason);
    }
}

/// Working sets support every likelihood, kernel, basis and start.
#[test]
fn working_sets_support_every_likelihood_and_basis() {
    let data = friedman(9, 1010);
    let fixed = Gaussian { noise_variance: Some(4.0) };
    let start = |start| Inference::Search(Search { start, ..Search::default() });
    let given = Start::Given(Hyperparameters {
        relevance: vec![3, 700, 1009],
        alpha: vec![1e-3; 3],
        intercept_alpha: Some(1.0),
        noise_variance: Some(4.0),
        ..Hyperparameters::default()
    });
    let poly = Kernel::from(Poly { degree: 3, gamma: 0.5.into(), coef0: 1.0 });
    let sized = Rvm { dictionary: 1005.into(), ..in_sets(0.1) };
    for (name, rvm, candidates) in [
        ("gaussian", in_sets(0.1), 1010),
        ("fixed noise", Rvm { likelihood: fixed.into(), ..in_sets(0.1) }, 1010),
        ("no bias", Rvm { bias: false, ..in_sets(0.1) }, 1010),
        ("poly", Rvm { kernel: poly.clone(), ..in_sets(0.1) }, 1010),
        ("linear", Rvm { kernel: Linear {}.into(), ..in_sets(0.1) }, 1010),
        ("from a model", Rvm { inference: start(given), ..in_sets(0.1) }, 1010),
        ("from nothing", Rvm { inference: start(Start::Empty), ..in_sets(0.1) }, 1010),
        ("little memory", Rvm { memory_limit: Some(9_000_000), ..in_sets(0.1) }, 1010),
        ("a size", sized.clone(), 1005),
        ("given rows", Rvm { landmarks: Landmarks::Given(Centres(data.x.slice(s![..1005, ..]).to_owned())), ..sized }, 1005),
        ("classes", classifier(in_sets(0.1)), 1010),
        ("classes, poly, no bias", classifier(Rvm { bias: false, kernel: poly, ..in_sets(0.1) }), 1010),
    ] {
        let (model, report) = data.fit(&rvm);
        if model.noise_std().is_some() {
            by_parts(&rvm, &model, &report, candidates);
        } else {
            sound(&model, &report);
            assert_eq!((report.status, report.candidates), (Status::Converged, candidates), "{name}");
        }
        if name == "no bias" {
            assert_eq!(model.intercept_alpha, None);
        }
        let again = rvm.evaluate(data.x.view(), &data.targets(&rvm.likelihood), &hyper(&model)).unwrap();
        close(name, &[again.log_evidence / model.log_evidence.unwrap()], &[1.0], DIGITS);
    }
}

/// Columns of a given design matrix are searched in working sets, even if there are more columns than rows.
#[test]
fn working_sets_support_wide_design_matrices() {
    let data = wide(10);
    for rvm in [Rvm::tipping2001(), classifier(Rvm::tipping2001())] {
        let rvm = Rvm { basis: Basis::Given, memory_limit: Some(30_000_000), ..rvm };
        let (model, report) = data.fit(&rvm);
        sound(&model, &report);
        assert_eq!((report.status, report.candidates), (Status::Converged, 1010));
        let again = rvm.evaluate(data.x.view(), &data.targets(&rvm.likelihood), &hyper(&model)).unwrap();
        agree("evidence", &[again.log_evidence], &[model.log_evidence.unwrap()]);
        if model.noise_std().is_some() {
            by_parts(&rvm, &model, &report, 1010);
        }
    }
}

/// Sums over many rows round G. A weight that could fit the rounding error would make the noise vanish.
#[test]
fn wide_kernels_on_many_rows_estimate_the_noise() {
    let n = 30_000;
    let data = Data::new(12, uniform(12, n, 5, 1.0), 0.1, |r| (3.0 * r[0]).sin() + r[1] * r[2] + 0.5 * r[3]);
    let rvm = Rvm { dictionary: 60.into(), ..all(0.03) };
    let (model, report) = data.fit(&rvm);
    sound(&model, &report);
    let noise = model.noise_std().unwrap();
    assert!((0.095..0.11).contains(&noise), "{noise}");
    // Evidence of the true function and noise without any weights, which a model exceeds only by chance.
    let bound = -0.5 * n as f64 * (2.0 * std::f64::consts::PI * std::f64::consts::E * 0.01).ln();
    assert!(model.log_evidence.unwrap() < bound + 3.0 * (0.5 * n as f64).sqrt(), "{} {bound}", model.log_evidence.unwrap());
    assert!(!report.adjustments.noise_capped);
}

/// A constant target and rows that are all equal need no working sets.
#[test]
fn constant_targets_and_equal_rows_need_no_working_sets() {
    let x = uniform(13, 1300, 2, 1.0);
    let t = Array1::from_elem(1300, 7.0);
    let (model, report) = all(1.0).fit(x.view(), &Targets::real(t.view())).unwrap();
    sound(&model, &report);
    assert!(model.relevance.is_empty() && report.adjustments.constant_target && report.status == Status::Converged);
    let noise = uniform(14, 1300, 1, 1.0).column(0).to_owned();
    let same = concatenate![Axis(0), x.slice(s![..1, ..])].broadcast((1300, 2)).unwrap().to_owned();
    let (model, report) = all(1.0).fit(same.view(), &Targets::real(noise.view())).unwrap();
    sound(&model, &report);
    assert_eq!((report.status, report.candidates), (Status::Converged, 1));
    let (model, report) = all(1.0).fit(x.view(), &Targets::real(noise.view())).unwrap();
    at_rest(&all(1.0), &model, &report);
    assert!(model.relevance.len() < 10, "{} vectors for noise", model.relevance.len());
}

/// With more than 400 basis functions, the search ends when further iterations gain too little. The evidence never
/// falls, and the remaining gains of single actions are small for that many rows.
#[test]
fn large_models_end_when_iterations_gain_too_little() {
    let mut random = rand_pcg::Pcg64::seed_from_u64(41);
    let bumps: Vec<(f64, f64)> = (0..600).map(|_| (random.random_range(0.0..200.0), random.random_range(-2.0..2.0))).collect();
    let f = |r: &[f64]| bumps.iter().map(|(z, w)| w * (-4.0 * (r[0] - z) * (r[0] - z)).exp()).sum();
    let data = Data::new(42, uniform(43, 1500, 1, 200.0), 0.02, f);
    // Some action always gains more than this tolerance.
    let inference = Search { tolerance: 1e-9, ..Search::default() }.into();
    let rvm =
        Rvm { kernel: Rbf { gamma: 4.0.into() }.into(), inference, dictionary: Dictionary::Size(900), ..Rvm::tipping2001() };
    let (model, report) = data.fit(&rvm);
    assert!(model.relevance.len() > 400, "{} vectors", model.relevance.len());
    assert_eq!(report.status, Status::Converged, "{}", report.certificate.reason);
    assert!(report.trace.windows(2).all(|pair| pair[1].log_evidence >= pair[0].log_evidence - 1e-8));
    assert!(report.certificate.largest_gain.unwrap() < 1.0, "{:?}", report.certificate);
    let predicted = model.predict(data.x.view()).unwrap().mean;
    let off = (&predicted - &data.t).mapv(|d| d * d).mean().unwrap().sqrt();
    assert!(off < 0.05, "{off}");
}

/// A fit whose candidates are the rows, and one with these rows as given landmarks, end at the same model.
#[test]
fn given_landmarks_at_all_rows_equal_the_rows() {
    let mut x = uniform(5, 2400, 1, 20.0);
    // Landmarks are candidates in their own order, and rows are in ascending order.
    x.as_slice_mut().expect("contiguous").sort_by(f64::total_cmp);
    let data = Data::new(5, x, 0.1, |r| (r[0] - 10.0).sin() / (r[0] - 10.0));
    for likelihood in [Gaussian::default().into(), Bernoulli::default().into()] {
        let dictionary = Dictionary::Rule(DictionaryRule::All);
        let rows = Rvm { kernel: Rbf { gamma: 0.1.into() }.into(), dictionary, likelihood, ..Rvm::tipping2001() };
        let centres = Landmarks::Given(Centres(data.x.clone()));
        let ((found, report), (given, _)) = (data.fit(&rows), data.fit(&Rvm { landmarks: centres, ..rows.clone() }));
        assert!(report.certificate.reason.contains("passes over all 2400 candidates"), "{}", report.certificate.reason);
        assert_eq!(found.relevance, given.relevance);
        let (found, given) = (found.log_evidence.unwrap(), given.log_evidence.unwrap());
        assert!((found - given).abs() < 1e-9 * given.abs(), "{}: {found} {given}", rows.likelihood.name());
    }
}

/// With many rows, a sample determines first which landmarks are useless for the classes. The result does not depend on
/// threads or on the order of rows, the last search uses all rows, and the empty start ends no higher.
#[test]
fn classifier_of_many_rows_starts_from_a_sample() {
    let n = 52_000;
    let wave = |r: &[f64]| (2.0 * r[0]).sin() + r[1].cos();
    let data = Data::new(6, uniform(6, n, 2, 4.0), 0.7, wave);
    let settings = |start| Inference::Search(Search { start, ..Search::default() });
    let landmarks = Landmarks::Uniform;
    let rvm = Rvm { dictionary: Dictionary::Size(40), landmarks, threads: Some(2), ..classifier(all(1.0)) };
    let (model, report) = data.fit(&rvm);
    at_rest(&rvm, &model, &report);
    let alone = data.fit(&Rvm { threads: Some(1), ..rvm.clone() }).0;
    assert!(model.to_json().unwrap() == alone.to_json().unwrap(), "threads");
    let order: Vec<usize> = (0..n).map(|i| (i * 383 + 11) % n).collect();
    let moved = data.select(&order).fit(&rvm).0;
    assert_eq!(model.log_evidence, moved.log_evidence);
    let again = rvm.evaluate(data.x.view(), &Targets::classes(&data.labels, 2), &hyper(&model)).unwrap();
    close("evidence", &[again.log_evidence / model.log_evidence.unwrap()], &[1.0], 1e-9);
    let (from_nothing, _) = data.fit(&Rvm { inference: settings(Start::Empty), ..rvm });
    let (found, expected) = (model.log_evidence.unwrap(), from_nothing.log_evidence.unwrap());
    assert!(found > expected - 50.0, "{found} of {expected}");
}
