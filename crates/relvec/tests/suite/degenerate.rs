//! Bad input is rejected with the right error, and unusual input has a defined, finite result.

use ndarray::{Array1, Array2, array};
use rand::{RngExt, SeedableRng};
use rand_distr::{Distribution, StandardNormal};
use relvec::*;

fn uniform(seed: u64, rows: usize, features: usize) -> Array2<f64> {
    let mut random = rand_pcg::Pcg64::seed_from_u64(seed);
    Array2::from_shape_fn((rows, features), |_| random.random_range(-2.0..2.0))
}

fn noise(seed: u64, rows: usize) -> Array1<f64> {
    let mut random = rand_pcg::Pcg64::seed_from_u64(seed);
    Array1::from_shape_fn(rows, |_| StandardNormal.sample(&mut random))
}

/// Returns every scheme, with limited iterations for the slow ones.
fn schemes(base: &Rvm) -> Vec<Rvm> {
    let scheme = |name: &&str| {
        let inference = Inference::from_name(name).unwrap();
        Rvm { inference, max_iterations: if *name == "search" { 10_000 } else { 100 }, ..base.clone() }
    };
    Inference::NAMES.iter().map(scheme).collect()
}

fn classifier() -> Rvm {
    Rvm { likelihood: Bernoulli::default().into(), ..Rvm::tipping2001() }
}

/// Fits, and checks that all numbers are finite and that the model survives its file.
#[track_caller]
fn fit(rvm: &Rvm, x: &Array2<f64>, targets: &Targets) -> (Model, Report) {
    let (model, report) = rvm.fit(x.view(), targets).unwrap_or_else(|e| panic!("{rvm:?}: {e}"));
    assert!(model.log_evidence.unwrap().is_finite(), "{rvm:?}");
    assert!(model.alpha.iter().chain(&model.intercept_alpha).all(|a| a.is_finite() && *a > 0.0), "{rvm:?}: {:?}", model.alpha);
    assert!(report.trace.iter().all(|p| p.log_evidence.is_finite()), "{rvm:?}");
    let prediction = model.predict(x.view()).unwrap_or_else(|e| panic!("{rvm:?}: {e}"));
    assert!(prediction.mean.iter().all(|v| v.is_finite()));
    assert!(prediction.model_variance.iter().all(|v| v.is_finite() && *v >= 0.0));
    if model.noise_std().is_none() {
        let p = model.predict_probability(x.view(), Moderation::Posterior).unwrap();
        assert!(p.iter().all(|p| (0.0..=1.0).contains(p)));
    }
    let again = Model::from_json(&model.to_json().unwrap()).unwrap();
    assert_eq!(again, model, "{rvm:?}");
    (model, report)
}

fn real(x: &Array2<f64>, t: &Array1<f64>, mut check: impl FnMut(&Rvm, &Model, &Report)) {
    for rvm in schemes(&Rvm::tipping2001()) {
        let (model, report) = fit(&rvm, x, &Targets::real(t.view()));
        check(&rvm, &model, &report);
    }
}

fn classes(x: &Array2<f64>, labels: &[usize], mut check: impl FnMut(&Rvm, &Model, &Report)) {
    for rvm in schemes(&classifier()) {
        let (model, report) = fit(&rvm, x, &Targets::classes(labels, 2));
        check(&rvm, &model, &report);
    }
}

fn alternating(n: usize) -> Vec<usize> {
    (0..n).map(|i| i % 2).collect()
}

#[track_caller]
fn near(got: f64, expected: f64, tolerance: f64) {
    assert!((got - expected).abs() <= tolerance, "{got} {expected}");
}

#[test]
fn bad_training_data_are_rejected() {
    let x = uniform(1, 6, 2);
    let t = noise(1, 6);
    let labels = alternating(6);
    let error = |rvm: &Rvm, x: &Array2<f64>, targets: Targets| rvm.fit(x.view(), &targets).unwrap_err();
    let regression = Rvm::tipping2001();
    let of_t = || Targets::real(t.view());
    let of_labels = || Targets::classes(&labels, 2);
    let (lone, short) = (array![0.0, 0.0, 1.0, 0.0, 0.0, 0.0], Array1::ones(5));
    let one_class = array![1.0, 0.0, 1.0, 0.0, 1.0, 0.0];
    let bad_weights = [f64::NAN, f64::INFINITY, -1.0].map(|bad| array![1.0, 1.0, 1.0, bad, 1.0, 1.0]);

    let one = error(&regression, &uniform(1, 1, 2), Targets::real(array![1.0].view()));
    assert!(matches!(one, Error::TooFewRows { found: 1, least: 2 }), "{one}");
    let none = error(&regression, &Array2::zeros((0, 2)), Targets::real(array![].view()));
    assert!(matches!(none, Error::TooFewRows { found: 0, .. }), "{none}");
    let light = error(&regression, &x, of_t().with_weights(lone.view()));
    assert!(matches!(light, Error::TooFewRows { found: 1, .. }), "{light}");
    for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        let mut spoilt = x.clone();
        spoilt[[4, 1]] = bad;
        for e in [error(&regression, &spoilt, of_t()), error(&classifier(), &spoilt, of_labels())] {
            assert!(matches!(e, Error::NotFinite { row: 4, column: 1, .. }), "{e}");
        }
        let mut spoilt = t.clone();
        spoilt[2] = bad;
        let e = error(&regression, &x, Targets::real(spoilt.view()));
        assert!(matches!(e, Error::NotFinite { row: 2, .. }), "{e}");
    }
    for weights in &bad_weights {
        for e in [
            error(&regression, &x, of_t().with_weights(weights.view())),
            error(&classifier(), &x, of_labels().with_weights(weights.view())),
        ] {
            assert!(matches!(e, Error::Weight { row: 3, .. }), "{e}");
        }
    }
    for e in [
        error(&classifier(), &x, Targets::classes(&[1; 6], 2)),
        error(&classifier(), &x, of_labels().with_weights(one_class.view())),
        error(&classifier(), &x, Targets::classes(&[0, 1, 2, 0, 1, 2], 2)),
        error(&classifier(), &x, of_t()),
        error(&regression, &x, of_labels()),
    ] {
        assert!(matches!(e, Error::Targets(_)), "{e}");
    }
    for e in [
        error(&regression, &x, Targets::real(t.slice(ndarray::s![..5]))),
        error(&classifier(), &x, Targets::classes(&labels[..5], 2)),
        error(&regression, &x, of_t().with_weights(short.view())),
        error(&regression, &Array2::zeros((6, 0)), of_t()),
    ] {
        assert!(matches!(e, Error::Shape { .. }), "{e}");
    }
    let gammas = Rvm { kernel: Rbf { gamma: vec![1.0; 3].into() }.into(), ..Rvm::tipping2001() };
    assert!(matches!(error(&gammas, &x, of_t()), Error::Parameter { .. }));
}

#[test]
fn bad_rows_to_predict_are_rejected() {
    let x = uniform(2, 20, 2);
    let (model, _) = fit(&Rvm::tipping2001(), &x, &Targets::real(noise(2, 20).view()));
    for columns in [0, 1, 3] {
        assert!(matches!(model.predict(Array2::zeros((4, columns)).view()), Err(Error::Shape { .. })));
    }
    let nan = array![[0.0, 1.0], [0.0, f64::NAN]];
    assert!(matches!(model.predict(nan.view()), Err(Error::NotFinite { row: 1, column: 1, .. })));
    assert_eq!(model.predict(Array2::zeros((0, 2)).view()).unwrap().mean.len(), 0);
}

#[test]
fn damaged_model_files_are_rejected() {
    let x = uniform(3, 30, 2);
    let t = x.column(0).mapv(f64::sin) + noise(3, 30) * 0.1;
    let (model, _) = fit(&Rvm::tipping2001(), &x, &Targets::real(t.view()));
    let text = model.to_json().unwrap();
    let refused = |text: &str| match Model::from_json(text) {
        Err(Error::ModelFile(message)) => message,
        other => panic!("{other:?}"),
    };
    assert!(refused("").contains("cut off"));
    for end in (1..text.trim_end().len()).step_by(97) {
        assert!(refused(&text[..end]).contains("cut off"), "{end}");
    }
    assert!(refused("{\"a\": 1}").contains("not a model of relvec"));
    assert!(refused("[1, 2]").contains("not a model of relvec"));
    assert!(refused("hello").contains("not JSON"));
    assert!(refused(&text.replacen("\"format_version\":1", "\"format_version\":2", 1)).contains("version 2"));
    assert!(refused(&text.replacen("\"format_version\":1,", "", 1)).contains("format_version"));
    // One digit in the middle of each long number is altered, and every change must be noticed.
    let start = text.find("\"weights\":").unwrap();
    let digit = start + text[start..].find('.').unwrap() + 3;
    for other in '0'..='9' {
        let mut altered = text.clone();
        altered.replace_range(digit..=digit, &other.to_string());
        assert!(altered == text || refused(&altered).contains("altered"));
    }
    assert_eq!(Model::from_json(&text).unwrap(), model);
}

#[test]
fn constant_features_change_nothing_else() {
    let mut x = uniform(4, 40, 2);
    x.column_mut(1).fill(5.0);
    let t = x.column(0).mapv(f64::sin) + noise(4, 40) * 0.1;
    real(&x, &t, |_, _, report| assert_eq!(report.adjustments.constant_features, [1]));
    let labels: Vec<usize> = t.iter().map(|t| usize::from(*t > 0.1)).collect();
    classes(&x, &labels, |_, _, report| assert_eq!(report.adjustments.constant_features, [1]));
}

#[test]
fn a_constant_target_needs_the_bias_alone() {
    let x = uniform(5, 20, 2);
    for value in [3.5, -1e-9, 0.0, 1e9] {
        real(&x, &Array1::from_elem(20, value), |rvm, model, report| {
            assert!(report.adjustments.constant_target && model.relevance.is_empty(), "{} {value}", rvm.inference.name());
            let mean = model.predict(x.view()).unwrap().mean;
            assert!(mean.iter().all(|m| (m - value).abs() <= 1e-6 * value.abs()), "{} {mean} {value}", rvm.inference.name());
        });
        for rvm in schemes(&Rvm { bias: false, ..Rvm::tipping2001() }) {
            let (model, report) = fit(&rvm, &x, &Targets::real(Array1::from_elem(20, value).view()));
            assert!(report.adjustments.constant_target && model.intercept_alpha.is_none());
        }
    }
}

#[test]
fn pure_noise_gives_almost_no_vectors() {
    let x = uniform(6, 60, 2);
    let t = noise(7, 60);
    let labels: Vec<usize> = t.iter().map(|t| usize::from(*t > 0.0)).collect();
    let few = |rvm: &Rvm, model: &Model| rvm.inference.name() != "search" || model.relevance.len() < 12;
    real(&x, &t, |rvm, model, _| assert!(few(rvm, model), "{}", model.relevance.len()));
    classes(&x, &labels, |rvm, model, _| assert!(few(rvm, model), "{}", model.relevance.len()));
}

#[test]
fn equal_rows_give_their_mean_and_even_odds() {
    let x = Array2::from_elem((20, 2), 1.5);
    let t = noise(8, 20) + 4.0;
    let mean = t.mean().unwrap();
    real(&x, &t, |rvm, model, report| {
        assert_eq!(report.adjustments.shared_columns, 19);
        // The slow schemes may not have converged.
        if rvm.inference.name() == "search" {
            near(model.predict(x.view()).unwrap().mean[0], mean, 0.1);
        }
    });
    classes(&x, &alternating(20), |_, model, report| {
        assert_eq!((report.adjustments.merged_rows, report.adjustments.shared_columns), (18, 1));
        near(model.predict_probability(x.view(), Moderation::Posterior).unwrap()[[0, 1]], 0.5, 1e-6);
    });
}

#[test]
fn rows_in_both_classes_have_even_odds() {
    let half = uniform(9, 20, 2);
    let x = ndarray::concatenate![ndarray::Axis(0), half, half];
    let labels: Vec<usize> = (0..40).map(|i| i / 20).collect();
    classes(&x, &labels, |_, model, _| {
        let p = model.predict_probability(x.view(), Moderation::Posterior).unwrap();
        p.iter().for_each(|p| near(*p, 0.5, 1e-6));
    });
}

#[test]
fn repeated_inputs_and_rows_are_counted() {
    let half = uniform(10, 25, 2);
    let x = ndarray::concatenate![ndarray::Axis(0), half, half];
    let t = x.column(0).mapv(f64::sin) + noise(10, 50) * 0.2;
    real(&x, &t, |_, _, report| assert_eq!((report.adjustments.merged_rows, report.adjustments.shared_columns), (0, 25)));
    let labels: Vec<usize> = x.column(0).iter().map(|v| usize::from(*v > 0.0)).collect();
    classes(&x, &labels, |_, _, report| assert_eq!(report.adjustments.merged_rows, 25));
}

#[test]
fn separable_classes_give_finite_numbers() {
    let x = uniform(11, 50, 2);
    let labels: Vec<usize> = x.outer_iter().map(|r| usize::from(r[0] + r[1] > 0.0)).collect();
    for kernel in ["rbf", "linear"] {
        let base = Rvm { kernel: Kernel::from_name(kernel).unwrap(), ..classifier() };
        for rvm in schemes(&base) {
            let (_, report) = fit(&rvm, &x, &Targets::classes(&labels, 2));
            assert!(rvm.inference.name() != "search" || report.status == Status::Converged, "{:?}", report.status);
        }
        let at = Hyperparameters { relevance: (0..50).step_by(5).collect(), alpha: vec![1e-12; 10], ..Default::default() };
        let got = base.evaluate(x.view(), &Targets::classes(&labels, 2), &at).unwrap();
        let numbers = got.weights.iter().chain(&got.variances).chain(&got.gradient_log_alpha).chain(&got.gradient_log_kernel);
        assert!(got.log_evidence.is_finite() && numbers.into_iter().all(|v| v.is_finite()), "{kernel} {got:?}");
    }
}

#[test]
fn noise_variance_has_a_lower_limit_for_exact_targets() {
    let x = uniform(12, 40, 1);
    let t = x.column(0).mapv(f64::sin);
    let variance = t.var(0.0);
    real(&x, &t, |_, model, _| {
        assert!(model.noise_variance().unwrap() >= variance * 0.999e-6);
    });
    let linear = Rvm { kernel: Kernel::from_name("linear").unwrap(), ..Rvm::tipping2001() };
    let (model, report) = fit(&linear, &x, &Targets::real((x.column(0).to_owned() * 3.0 + 1.0).view()));
    assert!(report.adjustments.noise_capped);
    near(model.predict(array![[10.0]].view()).unwrap().mean[0], 31.0, 1e-2);
}

#[test]
fn one_huge_outlier_leaves_a_finite_model() {
    let x = uniform(13, 40, 2);
    let mut t = x.column(0).mapv(f64::sin) + noise(13, 40) * 0.1;
    t[5] = 1e8;
    real(&x, &t, |_, _, _| {});
    let mut x = x;
    let labels: Vec<usize> = x.column(0).iter().map(|v| usize::from(*v > 0.0)).collect();
    x[[3, 0]] = 1e8;
    t[5] = 0.0;
    real(&x, &t, |_, _, _| {});
    classes(&x, &labels, |_, _, _| {});
}

#[test]
fn two_rows_are_fitted() {
    for features in [1, 1000] {
        let x = uniform(14, 2, features);
        real(&x, &array![1.0, 2.0], |_, model, _| assert_eq!(model.n_rows, 2));
        classes(&x, &[1, 0], |_, model, _| assert_eq!(model.n_features, features));
    }
}

/// There are more landmarks than rows, given or requested, and some landmarks have no row nearby.
#[test]
fn dictionaries_larger_than_the_data_are_fitted() {
    let x = uniform(16, 30, 2);
    let t = x.column(0).mapv(f64::sin) + noise(16, 30) * 0.1;
    let labels: Vec<usize> = t.iter().map(|t| usize::from(*t > 0.0)).collect();
    let mut centres = uniform(17, 200, 2);
    centres.slice_mut(ndarray::s![150.., ..]).fill(1e6);
    let given = Landmarks::Given(Centres(centres.clone()));
    for base in [Rvm::tipping2001(), classifier()] {
        let regression = base.likelihood.name() == "gaussian";
        let targets = if regression { Targets::real(t.view()) } else { Targets::classes(&labels, 2) };
        for rvm in schemes(&base) {
            let all = fit(&rvm, &x, &targets).0;
            let (asked, report) = fit(&Rvm { dictionary: 5000.into(), ..rvm.clone() }, &x, &targets);
            assert_eq!((&asked, report.candidates), (&all, 30));
            let (model, report) = fit(&Rvm { landmarks: given.clone(), ..rvm.clone() }, &x, &targets);
            assert_eq!((report.candidates, report.adjustments.zero_columns), (151, 1));
            assert!(model.relevance.iter().all(|k| *k < 150), "no row is near {:?}", model.relevance);
            // A search for sparse models has fewer vectors than rows, however many candidates there are.
            assert!(rvm.inference.name() != "search" || model.relevance.len() < 30, "{}", model.relevance.len());
        }
        for bad in [Array2::zeros((0, 2)), Array2::zeros((3, 1)), Array2::zeros((3, 3))] {
            let rvm = Rvm { landmarks: Landmarks::Given(Centres(bad)), ..base.clone() };
            let error = rvm.fit(x.view(), &targets).unwrap_err();
            assert!(matches!(error, Error::Shape { what: "landmarks", .. }), "{error}");
        }
        centres[[7, 1]] = f64::NAN;
        let rvm = Rvm { landmarks: Landmarks::Given(Centres(centres.clone())), ..base };
        let error = rvm.fit(x.view(), &targets).unwrap_err();
        assert!(matches!(error, Error::NotFinite { what: "landmarks", row: 7, column: 1, .. }), "{error}");
    }
}

#[test]
fn overflowing_values_are_rejected_and_tiny_ones_fitted() {
    let x = uniform(15, 30, 2);
    let t = x.column(0).mapv(f64::sin) + noise(15, 30) * 0.1;
    let labels = alternating(30);
    let large = &x * 1e200;
    let linear = Kernel::from_name("linear").unwrap();
    for base in [Rvm { kernel: linear.clone(), ..Rvm::tipping2001() }, Rvm { kernel: linear, ..classifier() }] {
        for rvm in schemes(&base) {
            let regression = rvm.likelihood.name() == "gaussian";
            let targets = if regression { Targets::real(t.view()) } else { Targets::classes(&labels, 2) };
            let error = rvm.fit(large.view(), &targets).unwrap_err();
            assert!(matches!(error, Error::Overflow { .. }), "{}: {error}", rvm.inference.name());
        }
    }
    for rvm in schemes(&Rvm::tipping2001()) {
        let error = rvm.fit(x.view(), &Targets::real((&t * 1e200).view())).unwrap_err();
        assert!(matches!(error, Error::Overflow { .. }), "{}: {error}", rvm.inference.name());
    }
    let (plain, _) = fit(&Rvm::tipping2001(), &x, &Targets::real(t.view()));
    let (small, _) = fit(&Rvm::tipping2001(), &x, &Targets::real((&t * 1e-150).view()));
    assert_eq!(plain.relevance, small.relevance);
    real(&x, &(&t * 1e-150), |_, _, _| {});
}

/// Features in any unit give the same predictions as in a usual unit, or an error that names the largest feature. A
/// constant, or a basis function for each row, is never the silent result.
#[test]
fn features_in_any_unit_fit_alike_or_are_rejected_by_name() {
    let x = uniform(16, 30, 2);
    let t = x.column(0).mapv(f64::sin) + noise(16, 30) * 0.1;
    let targets = Targets::real(t.view());
    let exponents = [-307, -300, -200, -165, -162, -155, -154, -150, -100, 100, 150, 153, 155, 200, 300, 306, 307];
    for name in ["rbf", "matern32", "matern52", "rational_quadratic", "linear", "poly", "sigmoid"] {
        let rvm = Rvm { kernel: Kernel::from_name(name).unwrap(), ..Rvm::tipping2001() };
        let svm = Svm { kernel: Kernel::from_name(name).unwrap(), formulation: EpsilonSvr::default().into(), ..Svm::default() };
        let learnt = |x: &Array2<f64>| rvm.fit(x.view(), &targets)?.0.predict_mean(x.view());
        let supported = |x: &Array2<f64>| svm.fit(x.view(), &targets)?.0.predict_mean(x.view());
        let one = [learnt(&x).unwrap(), supported(&x).unwrap()];
        for exponent in exponents {
            let rows = &x * 10f64.powi(exponent);
            for (k, found) in [learnt(&rows), supported(&rows)].into_iter().enumerate() {
                let name = format!("{name}, {}, 1e{exponent}", ["rvm", "svm"][k]);
                match found {
                    // The cost of a linear SVM is in units of the features, and the program of the sigmoid kernel has
                    // several solutions.
                    Ok(_) if k == 1 && (rvm.kernel.name() == "linear" || rvm.kernel.name() == "sigmoid") => {}
                    Ok(mean) => {
                        let off = (&mean - &one[k]).iter().fold(0.0, |m: f64, d| m.max(d.abs()));
                        assert!(off < [1e-6, 1e-2][k], "{name}: off by {off}");
                    }
                    Err(Error::Overflow { what }) => {
                        let named = what.contains("column") || exponent.abs() <= 200 && rvm.kernel.name() == "linear";
                        assert!(named, "{name}: {what}");
                    }
                    Err(error) => panic!("{name}: {error}"),
                }
            }
        }
    }
    // Rows to predict are checked as well.
    let (model, _) = fit(&Rvm::tipping2001(), &x, &targets);
    let far = array![[0.0, 0.0], [0.0, -1.7e308]];
    let error = model.predict(far.view()).unwrap_err().to_string();
    assert!(error.contains("row 1, column 1 is -1.7e308"), "{error}");
}

/// Discrete features with few different rows, and targets that follow from them, leave no scatter from which the noise
/// could be told. A model is found all the same, as with a little noise.
#[test]
fn exact_targets_of_discrete_features_are_found() {
    type Function = fn(&[f64]) -> f64;
    let functions: [(usize, Function); 5] = [
        (1, |x| 3.0 * x[0]),
        (2, |x| 3.0 * x[0] - 2.0 * x[1]),
        (2, |x| f64::from(x[0] > 0.5 && x[1] > 0.5)),
        (3, |x| x.iter().sum::<f64>() % 2.0),
        (4, |x| x[0] + x[3]),
    ];
    let mut random = rand_pcg::Pcg64::seed_from_u64(5);
    for (rows, (features, f)) in [60, 200].into_iter().flat_map(|rows| functions.map(|function| (rows, function))) {
        let x = Array2::from_shape_simple_fn((rows, features), || f64::from(random.random_bool(0.4)));
        let t: Array1<f64> = x.outer_iter().map(|x| f(&x.to_vec())).collect();
        for weight_prior in [WeightPrior::Auto, WeightPrior::Ard] {
            let (model, _) = Rvm { weight_prior, ..Rvm::default() }.fit(x.view(), &Targets::real(t.view())).unwrap();
            let error = (&model.predict(x.view()).unwrap().mean - &t).mapv(f64::abs).fold(0.0, |a: f64, b| a.max(*b));
            assert!(error < 0.05, "{rows} rows, {features} features, {weight_prior:?}: an error of {error}");
        }
    }
}

/// Copies of all rows, and samples with replacement, are no evidence that there is no noise.
#[test]
fn copies_do_not_hide_the_noise() {
    let (x, e) = (uniform(3, 80, 2), noise(4, 80));
    let t = x.column(0).mapv(|x| (1.5 * x).sin()) + &(0.3 * &e);
    let mut random = rand_pcg::Pcg64::seed_from_u64(6);
    let even: Vec<usize> = (0..80).flat_map(|n| [n; 4]).collect();
    let drawn: Vec<usize> = (0..80).map(|_| random.random_range(0..80)).collect();
    for rows in [even, drawn] {
        let (x, t) = (x.select(ndarray::Axis(0), &rows), t.select(ndarray::Axis(0), &rows));
        let (model, _) = Rvm::default().fit(x.view(), &Targets::real(t.view())).unwrap();
        let noise = model.noise_std().unwrap();
        assert!((0.15..0.6).contains(&noise), "{} rows: {noise}", rows.len());
    }
}
