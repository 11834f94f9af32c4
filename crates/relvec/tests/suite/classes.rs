//! Two classes on many rows: the start with a bounded Hessian.

use std::ops::ControlFlow;

use ndarray::{Array2, ArrayView1, Axis, s};
use rand::{RngExt, SeedableRng};
use relvec::*;

const ROWS: usize = 12_000;
const LANDMARKS: usize = 100;

/// Returns two classes that overlap, with as many rows as the bounded start needs.
fn classes(rows: usize, seed: u64) -> (Array2<f64>, Vec<usize>) {
    let mut random = rand_pcg::Pcg64::seed_from_u64(seed);
    let x = Array2::from_shape_fn((rows, 2), |_| random.random_range(-3.0..3.0));
    let labels = x
        .outer_iter()
        .map(|row| {
            let f = 3.0 * f64::sin(1.5 * row[0]) + row[1] * row[1] - 2.0;
            usize::from(random.random::<f64>() < 1.0 / (1.0 + f64::exp(-f)))
        })
        .collect();
    (x, labels)
}

fn rvm() -> Rvm {
    Rvm {
        kernel: Rbf { gamma: 0.5.into() }.into(),
        likelihood: Bernoulli::default().into(),
        dictionary: Dictionary::Size(LANDMARKS),
        landmarks: Landmarks::Uniform,
        ..Rvm::tipping2001()
    }
}

fn rises(report: &Report) -> bool {
    report.trace.windows(2).all(|w| w[1].log_evidence >= w[0].log_evidence)
}

/// The starts from the bias and from all columns do not end in a worse optimum than the empty start.
#[test]
fn default_starts_are_as_good_as_the_empty_start() {
    let (x, labels) = classes(ROWS, 1);
    let targets = Targets::classes(&labels, 2);
    let fit = |start: Start| {
        let inference = Search { start, ..Search::default() }.into();
        Rvm { inference, ..rvm() }.fit(x.view(), &targets).expect("a fit")
    };
    let (bounded, report) = fit(Start::Auto);
    let (empty, _) = fit(Start::Empty);
    assert_eq!(report.status, Status::Converged);
    assert!(rises(&report), "the trace falls");
    let (first, last) = (report.trace[0], report.trace[report.trace.len() - 1]);
    assert!(first.active < last.active && last.active > 5, "{first:?}, {last:?}");
    let short = empty.log_evidence.unwrap() - bounded.log_evidence.unwrap();
    assert!(short < 10.0, "{short} nats lower than from nothing");
}

/// On that many rows the Hessian is frozen for several batches. The result is no worse than with a new Hessian after
/// each action.
#[test]
fn batches_with_a_frozen_hessian_are_as_good_as_single_actions() {
    let (x, labels) = classes(40_000, 7);
    let targets = Targets::classes(&labels, 2);
    let fit = |batch: usize| {
        let inference = Search { policy: Policy { batch, ..Policy::default() }, ..Search::default() }.into();
        let kernel = Rbf { gamma: 2.0.into() }.into();
        Rvm { kernel, inference, dictionary: Dictionary::Size(80), ..rvm() }.fit(x.view(), &targets).expect("a fit")
    };
    let ((held, report), (single, _)) = (fit(20), fit(1));
    assert!(report.status == Status::Converged && rises(&report));
    assert!(held.relevance.len() >= 26, "the curvature was not held for {} columns", held.relevance.len());
    let short = single.log_evidence.unwrap() - held.log_evidence.unwrap();
    assert!(short < 1.0, "{short} nats lower than by single actions");
    assert!(report.iterations < 100, "{} rounds", report.iterations);
}

#[test]
fn classifier_of_many_rows_does_not_depend_on_threads() {
    let (x, labels) = classes(ROWS, 2);
    let targets = Targets::classes(&labels, 2);
    let fit = |threads| Rvm { threads: Some(threads), ..rvm() }.fit(x.view(), &targets).expect("a fit").0;
    assert!(fit(1).to_json().expect("JSON") == fit(2).to_json().expect("JSON"), "another model with another number of threads");
}

/// Sample weights of 2 equal repeated rows. With too little memory to store Phi the search ends in the same optimum.
#[test]
fn weights_equal_repeated_rows_and_memory_is_limited() {
    let (x, labels) = classes(ROWS, 3);
    let weights = vec![2.0; ROWS];
    let weighted = Targets::classes(&labels, 2).with_weights(ArrayView1::from(&weights));
    let twice = ndarray::concatenate![ndarray::Axis(0), x, x];
    let both = [labels.clone(), labels.clone()].concat();
    let fit = |rvm: Rvm, x: &Array2<f64>, t: &Targets| rvm.fit(x.view(), t).expect("a fit").0;
    let a = fit(rvm(), &x, &weighted);
    let b = fit(rvm(), &twice, &Targets::classes(&both, 2));
    crate::support::close("log evidence", &[a.log_evidence.unwrap()], &[b.log_evidence.unwrap()], 1e-9);
    let small = fit(Rvm { memory_limit: Some(24 << 20), ..rvm() }, &x, &weighted);
    assert!(
        (small.log_evidence.unwrap() - a.log_evidence.unwrap()).abs() < 1.0,
        "{} and {}",
        small.log_evidence.unwrap(),
        a.log_evidence.unwrap()
    );
}

/// If almost all rows are of one class, or labels are random, there is a model that predicts.
#[test]
fn unbalanced_and_random_classes_give_a_model() {
    let (x, _) = classes(ROWS, 4);
    let mut one_sided = vec![0; ROWS];
    one_sided[17] = 1;
    let mut random = rand_pcg::Pcg64::seed_from_u64(5);
    let noise: Vec<usize> = (0..ROWS).map(|_| usize::from(random.random::<bool>())).collect();
    for labels in [one_sided, noise] {
        let share = labels.iter().sum::<usize>() as f64 / ROWS as f64;
        let (model, report) = rvm().fit(x.view(), &Targets::classes(&labels, 2)).expect("a fit");
        assert!(rises(&report) && report.status == Status::Converged, "{:?}", report.status);
        let p = model.predict_probability(x.view(), Moderation::default()).expect("probabilities");
        let mean = p.column(1).mean().expect("rows");
        assert!((mean - share).abs() < 0.05, "{mean} for {share}");
    }
}

/// The observer, the time limit and another thread can stop the fit during the backward pruning.
#[test]
fn pruning_can_be_stopped() {
    let (x, labels) = classes(ROWS, 6);
    let targets = Targets::classes(&labels, 2);
    let mut third = |p: &Progress| if p.iteration == 3 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) };
    let (model, report) = rvm().fit_with(x.view(), &targets, &mut third, &Interrupt::default()).expect("a fit");
    assert_eq!(report.status, Status::Stopped);
    assert!(model.log_evidence.unwrap().is_finite());
    let (_, report) = Rvm { time_limit: Some(1e-3), ..rvm() }.fit(x.view(), &targets).expect("a fit");
    assert_eq!(report.status, Status::TimeLimit);
    let interrupt = Interrupt::default();
    let mut raise = |p: &Progress| {
        if p.iteration == 2 {
            interrupt.raise();
        }
        ControlFlow::Continue(())
    };
    let ended = rvm().fit_with(x.view(), &targets, &mut raise, &interrupt);
    assert!(matches!(ended, Err(Error::Interrupted)), "not interrupted");
}

/// With wide kernels or an offset, each basis function alone is almost constant and gains nothing for classes of equal
/// size. The search finds the model nevertheless.
#[test]
fn kernels_that_are_useful_only_together_are_found() {
    let mut random = rand_pcg::Pcg64::seed_from_u64(5);
    let labels: Vec<usize> = (0..120).map(|i| i % 2).collect();
    let x = Array2::from_shape_fn((120, 2), |(i, _)| 0.6 * labels[i] as f64 + random.random_range(-0.6..0.6));
    let targets = Targets::classes(&labels, 2);
    let line: Kernel = Poly { degree: 1, gamma: 1.0.into(), coef0: 1.0 }.into();
    for kernel in [0.003, 0.02, 0.08].map(|gamma| Kernel::from(Rbf { gamma: gamma.into() })).into_iter().chain([line]) {
        let own = Rvm { kernel, likelihood: Likelihood::Bernoulli(Bernoulli::default()), ..Rvm::tipping2001() };
        let (model, report) = own.fit(x.view(), &targets).unwrap();
        let mackay = Rvm { inference: MacKay::default().into(), ..own };
        let (other, _) = mackay.fit(x.view(), &targets).unwrap();
        assert_eq!(report.status, Status::Converged);
        let (found, reference) = (model.log_evidence.unwrap(), other.log_evidence.unwrap());
        assert!(!model.relevance.is_empty() && found > reference - 1.0, "{found} {reference}");
        let wrong = model.predict_class(x.view()).unwrap().iter().zip(&labels).filter(|(a, b)| a != b).count();
        assert!(wrong < 36, "{wrong}");
    }
    // If the labels do not depend on the features, the model remains empty.
    let noise = Array2::from_shape_fn((120, 2), |_| random.random_range(-1.0..1.0));
    let own = Rvm {
        kernel: Rbf { gamma: 0.003.into() }.into(),
        likelihood: Likelihood::Bernoulli(Bernoulli::default()),
        ..Rvm::tipping2001()
    };
    assert!(own.fit(noise.view(), &targets).unwrap().0.relevance.len() <= 2);
}

/// A product of two features is a difference of wide kernels, with large weights. It is found in numbers and in classes,
/// although weights of moderate size for a linear function have a maximum of the evidence of their own.
#[test]
fn curved_functions_are_found_by_wide_kernels() {
    let mut random = rand_pcg::Pcg64::seed_from_u64(8);
    for gamma in [0.01, 0.003, 0.001, 0.0005] {
        let x = Array2::from_shape_fn((450, 4), |_| random.random_range(-2.0..2.0));
        let f = x.map_axis(Axis(1), |r| r[0] * r[1] + 0.5 * r.sum());
        let t = f.mapv(|f| f + 0.3 * random.random::<f64>() - 0.15);
        let labels: Vec<usize> = t.iter().map(|t| usize::from(*t > 0.0)).collect();
        let (known, new) = x.view().split_at(Axis(0), 200);
        let own = Rvm { kernel: Rbf { gamma: gamma.into() }.into(), dictionary: Dictionary::default(), ..rvm() };
        let (model, _) = own.fit(known, &Targets::classes(&labels[..200], 2)).unwrap();
        let wrong = model.predict_class(new).unwrap().iter().zip(&labels[200..]).filter(|(a, b)| a != b).count();
        assert!(wrong < 25, "gamma {gamma}: {wrong} of 250 are wrong");

        let own = Rvm { likelihood: Gaussian::default().into(), ..own };
        let (model, _) = own.fit(known, &Targets::real(t.slice(s![..200]))).unwrap();
        let errors = model.predict_mean(new).unwrap() - f.slice(s![200..]);
        let rmse = errors.mapv(|e| e * e).mean().unwrap().sqrt();
        assert!(rmse < 0.2, "gamma {gamma}: an error of {rmse}");
        assert!(model.relevance.len() < 60, "gamma {gamma}: {} kernels", model.relevance.len());
    }
}
