//! Fits that are reported to interpolate their rows.

use ndarray::{Array1, Array2, Axis, concatenate};
use rand::{RngExt, SeedableRng};
use rand_distr::{Distribution, StandardNormal};
use relvec::*;

fn data(seed: u64, rows: usize, features: usize, noise: f64) -> (Array2<f64>, Array1<f64>) {
    let mut random = rand_pcg::Pcg64::seed_from_u64(seed);
    let x = Array2::from_shape_fn((rows, features), |_| random.random_range(-2.0..2.0));
    let mut normal = || -> f64 { StandardNormal.sample(&mut random) };
    let t = x.map_axis(Axis(1), |r| f64::sin(1.5 * r[0]) + 0.5 * r[features - 1]).mapv(|f| 3.0 + f + noise * normal());
    (x, t)
}

fn papers(gamma: f64) -> Rvm {
    Rvm { kernel: Rbf { gamma: gamma.into() }.into(), ..Rvm::tipping2001() }
}

fn fit(rvm: &Rvm, x: &Array2<f64>, targets: &Targets) -> (Model, Report) {
    let (model, report) = rvm.fit(x.view(), targets).unwrap();
    assert_eq!(model.interpolates, report.interpolation.is_some());
    let read = Model::from_json(&model.to_json().unwrap()).unwrap();
    assert_eq!(read.interpolates, model.interpolates);
    (model, report)
}

const SHAPES: [(usize, usize); 3] = [(20, 1), (60, 2), (120, 3)];

/// With a very narrow kernel each row has its own basis function: nothing is learned about other rows, and each target
/// is fitted.
#[test]
fn fits_with_a_kernel_for_each_row_interpolate() {
    for (seed, (rows, features)) in (0..2).flat_map(|seed| SHAPES.map(|shape| (seed, shape))) {
        let (x, t) = data(seed, rows, features, 0.3);
        for inference in ["search", "sequential", "mackay", "variational"] {
            let rvm = Rvm { inference: Inference::from_name(inference).unwrap(), ..papers(1e4) };
            let (model, report) = fit(&rvm, &x, &Targets::real(t.view()));
            let found = report.interpolation.unwrap_or_else(|| panic!("{seed} {rows} {features} {inference}"));
            assert!(found.many_vectors && found.rows == rows && found.vectors <= model.relevance.len(), "{found:?}");
            assert!(3 * found.vectors > rows, "{found:?}");
        }
    }
}

/// Fits with the settings of the papers or with learned widths do not interpolate, for any likelihood, nor do weights
/// that the data do not determine count.
#[test]
fn ordinary_fits_do_not_interpolate() {
    for (seed, (rows, features)) in (0..3).flat_map(|seed| SHAPES[1..].iter().map(move |shape| (seed, *shape))) {
        let (x, t) = data(seed, rows, features, 0.3);
        let labels: Vec<usize> = t.iter().map(|t| usize::from(*t > 3.0)).collect();
        let learned = Rvm { weight_prior: WeightPrior::Ard, ..Rvm::default() };
        for rvm in [papers(0.1), learned] {
            let (_, report) = fit(&rvm, &x, &Targets::real(t.view()));
            assert_eq!(report.interpolation, None, "{seed} {rows} {features}");
            let classes = Rvm { likelihood: Bernoulli::default().into(), ..rvm };
            assert_eq!(fit(&classes, &x, &Targets::classes(&labels, 2)).1.interpolation, None, "{seed} {rows} {features}");
        }
        let variational = Rvm { inference: Variational::default().into(), ..papers(0.1) };
        let (model, report) = fit(&variational, &x, &Targets::real(t.view()));
        assert!(3 * model.relevance.len() > rows, "all weights are stored");
        assert_eq!(report.interpolation, None, "{seed} {rows} {features}");
    }
}

/// Under a process prior the number of centres is no sign of interpolation. A noise variance at its lower limit is a
/// sign under any prior.
#[test]
fn process_priors_interpolate_only_at_the_noise_limit() {
    for (seed, (rows, features)) in (0..3).flat_map(|seed| SHAPES.map(|shape| (seed, shape))) {
        let (x, t) = data(seed, rows, features, 0.3);
        let rvm = Rvm { weight_prior: WeightPrior::Process, residual: Some(1e-6), variance: None, ..papers(3.0) };
        let (model, report) = fit(&rvm, &x, &Targets::real(t.view()));
        assert!(3 * model.relevance.len() > rows, "{} of {rows}", model.relevance.len());
        assert!(report.interpolation.is_none_or(|found| !found.many_vectors && found.least_noise), "{:?}", report.interpolation);
        let labels: Vec<usize> = t.iter().map(|t| usize::from(*t > 3.0)).collect();
        let classes = Rvm { likelihood: Bernoulli::default().into(), residual: None, sparsity: Default::default(), ..rvm };
        let (_, report) = fit(&classes, &x, &Targets::classes(&labels, 2));
        assert_eq!(report.interpolation, None);
    }
    let (x, t) = data(1, 60, 1, 0.0);
    let exact = Rvm { weight_prior: WeightPrior::Process, ..Rvm::default() };
    let found = fit(&exact, &x, &Targets::real(t.view())).1.interpolation.expect("there is no noise to be found");
    assert!(found.least_noise && !found.many_vectors);
}

#[test]
fn a_constant_target_is_no_interpolation() {
    let (x, _) = data(2, 30, 1, 0.0);
    let t = Array1::from_elem(30, 2.5);
    assert_eq!(fit(&papers(1.0), &x, &Targets::real(t.view())).1.interpolation, None);
}

/// Equal rows count once. Rows of equal inputs and different targets, which determine the noise, count individually.
#[test]
fn equal_rows_count_once_and_different_targets_individually() {
    let (x, t) = data(3, 40, 1, 0.3);
    let once = fit(&papers(1e4), &x, &Targets::real(t.view())).1.interpolation.expect("a kernel for each row");
    let (twice, copies) = (concatenate![Axis(0), x, x], concatenate![Axis(0), t, t]);
    let found = fit(&papers(1e4), &twice, &Targets::real(copies.view())).1.interpolation.expect("the same rows");
    assert_eq!((found.rows, once.rows), (40, 40));
    let absent = Array1::from_shape_fn(80, |n| f64::from(u8::from(n < 40)));
    let others = concatenate![Axis(0), x, &x + 10.0];
    let weighted = Targets::real(copies.view()).with_weights(absent.view());
    assert_eq!(fit(&papers(1e4), &others, &weighted).1.interpolation, Some(once));
    // With four targets at each input, at most a quarter of the rows are relevance vectors, and the targets determine
    // the noise.
    let inputs = concatenate![Axis(0), x, x, x, x];
    let (_, noise) = data(4, 160, 1, 0.3);
    let (_, clean) = data(4, 160, 1, 0.0);
    let targets = concatenate![Axis(0), t, t, t, t] + (noise - clean);
    assert_eq!(fit(&papers(1e4), &inputs, &Targets::real(targets.view())).1.interpolation, None);
}

/// If all rows have one input, its vector is the constant. Two targets at each input determine the noise by their
/// differences.
#[test]
fn different_targets_at_one_input_determine_the_noise() {
    let labels: Vec<f64> = (0..40).map(|i| f64::from(i % 2)).collect();
    let same = Array2::ones((40, 1));
    assert_eq!(fit(&papers(1.0), &same, &Targets::real(Array1::from(labels).view())).1.interpolation, None);
    let (x, t) = data(6, 40, 1, 0.3);
    let (_, other) = data(7, 40, 1, 0.3);
    let (twice, targets) = (concatenate![Axis(0), x, x], concatenate![Axis(0), t, &t + &(&other - &t) * 0.1]);
    assert_eq!(fit(&papers(1e4), &twice, &Targets::real(targets.view())).1.interpolation, None);
}

/// Schemes that keep weights that the data do not determine do not interpolate by these weights.
#[test]
fn undetermined_weights_do_not_count() {
    for (seed, inference) in (0..3).flat_map(|seed| ["em", "mackay", "variational"].map(|name| (seed, name))) {
        let (x, _) = data(seed, 60, 2, 0.3);
        let (_, noise) = data(seed + 10, 60, 1, 0.3);
        let rvm = Rvm { inference: Inference::from_name(inference).unwrap(), ..papers(0.1) };
        let (model, report) = fit(&rvm, &x, &Targets::real(noise.view()));
        assert_eq!(report.interpolation, None, "{seed} {inference}: {} vectors", model.relevance.len());
    }
}

/// For several binary models, the one with the largest share is reported.
#[test]
fn binary_models_interpolate_if_one_does() {
    let (x, t) = data(5, 90, 2, 0.3);
    let kinds: Vec<usize> = t.iter().map(|t| (t - 2.0).clamp(0.0, 2.0) as usize).collect();
    let targets = Targets::classes(&kinds, 3);
    for (gamma, interpolates) in [(1e4, true), (0.1, false)] {
        let rvm = Rvm { likelihood: Bernoulli::default().into(), multi_class: MultiClass::OneVsRest, ..papers(gamma) };
        let (model, report) = fit(&rvm, &x, &targets);
        assert_eq!(model.interpolates, interpolates, "{:?}", report.interpolation);
        let members = report.members.iter().filter_map(|member| member.interpolation).map(|own| own.vectors).max();
        assert_eq!(members, report.interpolation.map(|own| own.vectors));
    }
}
