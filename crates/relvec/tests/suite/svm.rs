//! Support vector machines: optimality, laws, textbook examples, and bad input.

use crate::support::close;
use ndarray::{Array1, Array2, Axis, array, concatenate};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use relvec::*;

const HARD: f64 = f64::INFINITY;

/// Returns overlapping clusters in the plane, of `count` classes.
fn clouds(n: usize, count: usize, seed: u64) -> (Array2<f64>, Vec<usize>) {
    let mut random = Pcg64::seed_from_u64(seed);
    let labels: Vec<usize> = (0..n).map(|i| i % count).collect();
    let x = Array2::from_shape_fn((n, 2), |(i, d)| {
        let angle = labels[i] as f64 * std::f64::consts::TAU / count as f64 + d as f64;
        let noise: f64 = (0..4).map(|_| random.random_range(-1.0..1.0)).sum();
        1.2 * angle.cos() + 0.6 * noise
    });
    (x, labels)
}

/// Returns a noisy wave.
fn wave(n: usize, seed: u64) -> (Array2<f64>, Array1<f64>) {
    let mut random = Pcg64::seed_from_u64(seed);
    let x = Array2::from_shape_fn((n, 1), |_| random.random_range(-3.0..3.0));
    let t = x.column(0).mapv(|v: f64| (2.0 * v).sin() + 0.2 * v) + Array1::from_shape_fn(n, |_| random.random_range(-0.3..0.3));
    (x, t)
}

fn rbf(gamma: f64) -> Kernel {
    Rbf { gamma: gamma.into() }.into()
}

fn svc(c: f64, gamma: f64) -> Svm {
    Svm { kernel: rbf(gamma), formulation: CSvc { c }.into(), ..Svm::default() }
}

fn svr(c: f64, epsilon: f64) -> Svm {
    Svm { kernel: rbf(1.0), formulation: EpsilonSvr { c, epsilon }.into(), ..Svm::default() }
}

fn gram(svm: &Svm, x: &Array2<f64>) -> Array2<f64> {
    let mut k = Array2::zeros((x.nrows(), x.nrows()));
    svm.kernel.block(x.view(), x.view(), k.view_mut());
    k
}

fn fit(svm: &Svm, x: &Array2<f64>, targets: Targets) -> (Model, SvmReport) {
    svm.fit(x.view(), &targets).unwrap_or_else(|e| panic!("{svm:?}: {e}"))
}

/// Returns s_i a_i of each row, `[N]`.
fn multipliers(model: &Model, function: usize, n: usize) -> Array1<f64> {
    let mut beta = Array1::zeros(n);
    model.relevance.iter().zip(model.expansion.weights.column(function)).for_each(|(row, w)| beta[*row] = *w);
    beta
}

/// The Karush-Kuhn-Tucker conditions hold at the solution, for every formulation of classification: a row outside the
/// margin has no multiplier, and one inside has the largest.
#[test]
fn classifiers_are_optimal() {
    let (x, labels) = clouds(120, 2, 1);
    let y: Array1<f64> = labels.iter().map(|l| if *l == 1 { 1.0 } else { -1.0 }).collect();
    for c in [0.1, 1.0, 100.0] {
        let svm = Svm { tolerance: 1e-6, ..svc(c, 0.7) };
        let (model, report) = fit(&svm, &x, Targets::classes(&labels, 2));
        assert_eq!(report.status, Status::Converged);
        let beta = multipliers(&model, 0, 120);
        let f = gram(&svm, &x).dot(&beta) + model.expansion.intercept[0];
        assert!(beta.sum().abs() < 1e-9 * c);
        for n in 0..120 {
            let (a, margin) = (beta[n] * y[n], f[n] * y[n]);
            assert!((-1e-12..=c).contains(&a), "{a} of {c}");
            let good = if a == 0.0 {
                margin > 1.0 - 2e-6
            } else if a == c {
                margin < 1.0 + 2e-6
            } else {
                (margin - 1.0).abs() < 2e-6
            };
            assert!(good, "row {n}: multiplier {a} of {c}, margin {margin}");
        }
        let objective = 0.5 * beta.dot(&gram(&svm, &x).dot(&beta)) - beta.dot(&y);
        close("objective", &[report.functions[0].objective], &[objective], 1e-9 * objective.abs());
        assert_eq!(model.margins.as_ref().unwrap().bounded, (0..120).filter(|n| beta[*n].abs() == c).count());
    }
}

#[test]
fn nu_bounds_margin_errors_and_support_vectors() {
    let (x, labels) = clouds(150, 2, 2);
    for nu in [0.1, 0.3, 0.8] {
        let svm = Svm { kernel: rbf(0.5), formulation: NuSvc { nu }.into(), tolerance: 1e-6, ..Svm::default() };
        let (model, _) = fit(&svm, &x, Targets::classes(&labels, 2));
        let margins = model.margins.as_ref().unwrap();
        assert!(margins.bounded as f64 <= nu * 150.0 + 1e-9 && model.relevance.len() as f64 >= nu * 150.0 - 1e-9, "{nu}");
        // C-SVC with the cost of the bounded multipliers has the same function.
        let beta = multipliers(&model, 0, 150);
        let c = beta.iter().fold(0.0f64, |m, b| m.max(b.abs()));
        let (other, _) = fit(&Svm { tolerance: 1e-6, ..svc(c, 0.5) }, &x, Targets::classes(&labels, 2));
        let (f, g) = (model.decision_function(x.view()).unwrap(), other.decision_function(x.view()).unwrap());
        close("f", &f.into_raw_vec_and_offset().0, &g.into_raw_vec_and_offset().0, 1e-4);
    }
    let (x, t) = wave(150, 3);
    for nu in [0.1, 0.5, 0.9] {
        let svm = Svm { kernel: rbf(1.0), formulation: NuSvr { c: 2.0, nu }.into(), tolerance: 1e-6, ..Svm::default() };
        let (model, _) = fit(&svm, &x, Targets::real(t.view()));
        let outside = model.margins.as_ref().unwrap().bounded as f64;
        assert!(outside <= nu * 150.0 + 1e-9 && model.relevance.len() as f64 >= nu * 150.0 - 1e-9, "{nu}");
        // The free vectors are on the border of the tube, and epsilon-SVR of that width has the same function.
        let f = model.predict_mean(x.view()).unwrap();
        let beta = multipliers(&model, 0, 150);
        let free = (0..150).find(|n| beta[*n].abs() > 1e-6 && beta[*n].abs() < 2.0 - 1e-6).unwrap();
        let epsilon = (t[free] - f[free]).abs();
        let (other, _) = fit(&Svm { tolerance: 1e-6, ..svr(2.0, epsilon) }, &x, Targets::real(t.view()));
        close("f", f.as_slice().unwrap(), other.predict_mean(x.view()).unwrap().as_slice().unwrap(), 1e-4);
    }
}

#[test]
fn regression_is_optimal() {
    let (x, t) = wave(130, 4);
    for (c, epsilon) in [(0.1, 0.0), (1.0, 0.1), (100.0, 0.3)] {
        let svm = Svm { tolerance: 1e-6, ..svr(c, epsilon) };
        let (model, report) = fit(&svm, &x, Targets::real(t.view()));
        let beta = multipliers(&model, 0, 130);
        let f = gram(&svm, &x).dot(&beta) + model.expansion.intercept[0];
        close("prediction", model.predict_mean(x.view()).unwrap().as_slice().unwrap(), f.as_slice().unwrap(), 1e-9 * c);
        assert!(beta.sum().abs() < 1e-9 * c);
        for n in 0..130 {
            let (b, off) = (beta[n], t[n] - f[n]);
            let good = if b == 0.0 {
                off.abs() < epsilon + 2e-6
            } else if b.abs() == c {
                off * b.signum() > epsilon - 2e-6
            } else {
                (off * b.signum() - epsilon).abs() < 2e-6
            };
            assert!(good, "row {n}: {b} of {c}, off by {off}");
        }
        let objective = 0.5 * beta.dot(&gram(&svm, &x).dot(&beta)) - beta.dot(&t) + epsilon * beta.mapv(f64::abs).sum();
        close("objective", &[report.functions[0].objective], &[objective], 1e-9 * objective.abs());
    }
}

/// Shrinking and the size of the cache change only the time, and threads change no bit.
#[test]
fn search_options_do_not_change_the_solution() {
    let (x, labels) = clouds(1200, 2, 5);
    let (u, t) = wave(700, 6);
    let check = |svm: &Svm, x: &Array2<f64>, targets: Targets| {
        let base = Svm { tolerance: 1e-6, ..svm.clone() };
        let (model, report) = fit(&base, x, targets);
        let f = model.decision_function(x.view()).unwrap().into_raw_vec_and_offset().0;
        for other in [
            Svm { shrinking: false, ..base.clone() },
            Svm { cache_size: 0.3, ..base.clone() },
            Svm { cache_size: 1e-9, shrinking: false, tolerance: 1e-3, ..base.clone() },
        ] {
            let (other, its) = fit(&other, x, targets);
            assert_eq!(its.status, Status::Converged);
            let (a, b) = (report.functions[0].objective, its.functions[0].objective);
            let exact = its.functions[0].gap <= 1e-6;
            close("objective", &[b], &[a], if exact { 1e-7 } else { 1e-5 });
            let g = other.decision_function(x.view()).unwrap().into_raw_vec_and_offset().0;
            close("f", &g, &f, if exact { 1e-5 } else { 1e-2 });
        }
        let single = fit(&Svm { threads: Some(1), ..base.clone() }, x, targets).0;
        let many = fit(&Svm { threads: Some(3), ..base }, x, targets).0;
        assert!(single == model && many == model);
    };
    check(&svc(2.0, 0.8), &x, Targets::classes(&labels, 2));
    check(&Svm { formulation: NuSvc { nu: 0.4 }.into(), ..svc(1.0, 0.8) }, &x, Targets::classes(&labels, 2));
    check(&svr(5.0, 0.05), &u, Targets::real(t.view()));
    check(&Svm { formulation: NuSvr { c: 5.0, nu: 0.5 }.into(), ..svr(1.0, 0.1) }, &u, Targets::real(t.view()));
}

/// A row of weight 2 equals a repeated row, one of weight 0 does not count, and the order of rows does not matter.
#[test]
fn weights_equal_repeated_rows() {
    let (x, labels) = clouds(90, 3, 7);
    let t = x.column(0).mapv(f64::sin);
    let weights: Array1<f64> = (0..90).map(|i| (i % 4) as f64).collect();
    let order: Vec<usize> = (0..90).flat_map(|i| std::iter::repeat_n((i * 37) % 90, (i * 37) % 90 % 4)).collect();
    let again = x.select(Axis(0), &order);
    let labels_again: Vec<usize> = order.iter().map(|i| labels[*i]).collect();
    let t_again = t.select(Axis(0), &order);
    let scale: Kernel = Rbf::default().into();
    for name in Formulation::NAMES {
        let svm = Svm { kernel: scale.clone(), formulation: Formulation::from_name(name).unwrap(), ..Svm::default() };
        let (one, two) = if name.ends_with("svc") {
            (
                fit(&svm, &x, Targets::classes(&labels, 3).with_weights(weights.view())).0,
                fit(&svm, &again, Targets::classes(&labels_again, 3)).0,
            )
        } else {
            (
                fit(&svm, &x, Targets::real(t.view()).with_weights(weights.view())).0,
                fit(&svm, &again, Targets::real(t_again.view())).0,
            )
        };
        // Vectors are in the order of the user's rows, in which sums are computed.
        let values = |model: &Model| model.decision_function(x.view()).unwrap().into_raw_vec_and_offset().0;
        close(name, &values(&two), &values(&one), 1e-12);
        let told = |model: &Model| model.margins.clone().map(|m| (m.objective, m.bounded));
        assert_eq!(told(&one), told(&two));
    }
}

#[test]
fn class_weights_multiply_sample_weights() {
    let (x, labels) = clouds(80, 2, 8);
    let factors = vec![1.0, 5.0];
    let weights: Array1<f64> = labels.iter().map(|l| factors[*l]).collect();
    let given = Svm { class_weights: ClassWeights::Given(factors), ..svc(1.0, 0.5) };
    let (model, _) = fit(&given, &x, Targets::classes(&labels, 2));
    let (other, _) = fit(&svc(1.0, 0.5), &x, Targets::classes(&labels, 2).with_weights(weights.view()));
    assert_eq!(model.expansion, other.expansion);
    // Balanced weights change nothing if the classes have equal numbers of rows. With a ratio of three they do.
    let balanced = Svm { class_weights: ClassWeights::Balanced, ..svc(1.0, 0.5) };
    assert_eq!(
        fit(&balanced, &x, Targets::classes(&labels, 2)).0.expansion,
        fit(&svc(1.0, 0.5), &x, Targets::classes(&labels, 2)).0.expansion
    );
    let uneven: Vec<usize> = (0..80).map(|i| usize::from(i % 4 == 0)).collect();
    let given = Svm { class_weights: ClassWeights::Given(vec![80.0 / 120.0, 80.0 / 40.0]), ..svc(1.0, 0.5) };
    let (one, _) = fit(&balanced, &x, Targets::classes(&uneven, 2));
    assert_eq!(one.expansion, fit(&given, &x, Targets::classes(&uneven, 2)).0.expansion);
    let rules: Vec<ClassWeights> =
        ["\"equal\"", "\"balanced\"", "[1.0,2.0]"].iter().map(|s| serde_json::from_str(s).unwrap()).collect();
    assert_eq!(rules, [ClassWeights::Equal, ClassWeights::Balanced, ClassWeights::Given(vec![1.0, 2.0])]);
}

/// Three points in the plane, PRML chapter 7, with the margin by hand. Rows (0, 0), (0, 1) against (2, 0.5): w = (1,
/// 0), b = -1, multipliers 1/4, 1/4, 1/2. The second case has two points on the x axis.
#[test]
fn margin_of_three_points_agrees_with_the_textbook() {
    let svm = Svm { kernel: Linear::default().into(), tolerance: 1e-9, ..svc(HARD, 1.0) };
    let (model, report) = fit(&svm, &array![[0.0, 0.0], [0.0, 1.0], [2.0, 0.5]], Targets::classes(&[0, 0, 1], 2));
    close("multipliers", &multipliers(&model, 0, 3).to_vec(), &[-0.25, -0.25, 0.5], 1e-8);
    close("intercept", &model.expansion.intercept, &[-1.0], 1e-8);
    // The objective is -2 / d^2, because the hulls are 2 apart.
    close("objective", &[report.functions[0].objective], &[-0.5], 1e-8);
    let (model, _) = fit(&svm, &array![[1.0, 0.0], [3.0, 0.0]], Targets::classes(&[1, 0], 2));
    let f = model.decision_function(array![[0.0, 5.0], [2.0, -1.0], [3.0, 1.0]].view()).unwrap();
    close("f", f.as_slice().unwrap(), &[2.0, 0.0, -1.0], 1e-8);
}

/// Exclusive or: no line separates it, and a Gaussian kernel does. By symmetry all four multipliers are 1 / (1 - e)^2
/// with e = exp(-4 gamma).
#[test]
fn gaussian_kernel_separates_exclusive_or() {
    let x = array![[-1.0, -1.0], [-1.0, 1.0], [1.0, -1.0], [1.0, 1.0]];
    let labels = [0, 1, 1, 0];
    let (model, report) = fit(&Svm { tolerance: 1e-10, ..svc(HARD, 0.5) }, &x, Targets::classes(&labels, 2));
    let e = (-2.0f64).exp();
    let a = 1.0 / (1.0 - e).powi(2);
    close("multipliers", &multipliers(&model, 0, 4).to_vec(), &[-a, a, a, -a], 1e-8);
    assert_eq!(report.status, Status::Converged);
    assert_eq!(model.predict_class(x.view()).unwrap(), labels);
    let line = Svm { kernel: Linear::default().into(), ..svc(HARD, 1.0) };
    let error = line.fit(x.view(), &Targets::classes(&labels, 2)).unwrap_err();
    assert!(matches!(error, Error::Inseparable { .. }), "{error}");
    assert!(error.to_string().contains("classes 0 and 1 cannot be separated"), "{error}");
}

/// A hard margin is the limit of large costs. If there is none, the fit ends with an error in a short time, for any
/// kernel.
#[test]
fn hard_margins_are_the_limit_of_large_costs() {
    let (x, labels) = clouds(60, 2, 9);
    let hard = Svm { tolerance: 1e-8, ..svc(HARD, 20.0) };
    let (model, _) = fit(&hard, &x, Targets::classes(&labels, 2));
    let (soft, _) = fit(&Svm { tolerance: 1e-8, ..svc(1e12, 20.0) }, &x, Targets::classes(&labels, 2));
    let f = model.decision_function(x.view()).unwrap().into_raw_vec_and_offset().0;
    close("f", &f, &soft.decision_function(x.view()).unwrap().into_raw_vec_and_offset().0, 1e-5);
    let least = f.iter().zip(&labels).map(|(f, l)| if *l == 1 { *f } else { -f }).fold(f64::INFINITY, f64::min);
    assert!((least - 1.0).abs() < 1e-6, "{least}");
    for kernel in [Kernel::from(Linear::default()), Poly { degree: 2, ..Poly::default() }.into()] {
        let svm = Svm { kernel, ..svc(HARD, 1.0) };
        let error = svm.fit(x.view(), &Targets::classes(&labels, 2)).unwrap_err();
        assert!(matches!(error, Error::Inseparable { .. }), "{error}");
    }
    // One row is in both classes.
    let twice = concatenate![Axis(0), x, x.slice(ndarray::s![..1, ..])];
    let both: Vec<usize> = labels.iter().copied().chain([1 - labels[0]]).collect();
    let error = hard.fit(twice.view(), &Targets::classes(&both, 2)).unwrap_err();
    assert!(matches!(error, Error::Inseparable { .. }), "{error}");
}

/// For more than two classes, each function is that of the binary model of its rows.
#[test]
fn several_classes_equal_their_binary_models() {
    let (x, labels) = clouds(120, 3, 10);
    let targets = Targets::classes(&labels, 3);
    let duel = |rows: Vec<usize>, second: usize| {
        let own: Vec<usize> = rows.iter().map(|n| usize::from(labels[*n] == second)).collect();
        let (model, _) = fit(&svc(1.0, 0.5), &x.select(Axis(0), &rows), Targets::classes(&own, 2));
        model.decision_function(x.view()).unwrap().column(0).to_owned()
    };
    let (model, report) = fit(&svc(1.0, 0.5), &x, targets);
    assert_eq!((model.multi_class(), report.functions.len(), model.n_classes()), (Some(MultiClass::OneVsOne), 3, Some(3)));
    let f = model.decision_function(x.view()).unwrap();
    for (c, (k, l)) in [(0, 1), (0, 2), (1, 2)].into_iter().enumerate() {
        let rows = (0..120).filter(|n| labels[*n] == k || labels[*n] == l).collect();
        close("pair", &f.column(c).to_vec(), &duel(rows, l).to_vec(), 1e-12);
    }
    let voted = model.predict_class(x.view()).unwrap();
    assert!(voted.iter().zip(&labels).filter(|(a, b)| a == b).count() > 90);
    let (rest, _) = fit(&Svm { multi_class: MultiClass::OneVsRest, ..svc(1.0, 0.5) }, &x, targets);
    let f = rest.decision_function(x.view()).unwrap();
    for k in 0..3 {
        close("rest", &f.column(k).to_vec(), &duel((0..120).collect(), k).to_vec(), 1e-12);
    }
    // Kernel values computed for all functions together equal those computed for each.
    for multi_class in [MultiClass::OneVsOne, MultiClass::OneVsRest] {
        let exact = Svm { multi_class, tolerance: 1e-8, ..svc(1.0, 0.5) };
        let together = fit(&exact, &x, targets).0.decision_function(x.view()).unwrap();
        // The cache has room for one search or for several, and threads change no bit.
        for cache_size in [0.2, 0.1, 200.0] {
            let by = |threads| fit(&Svm { cache_size, threads: Some(threads), ..exact.clone() }, &x, targets).0;
            assert!(by(1) == by(2) && by(1) == by(3));
        }
        let alone = fit(&Svm { cache_size: 0.1, ..exact }, &x, targets).0.decision_function(x.view()).unwrap();
        close("alone", &alone.flatten().to_vec(), &together.flatten().to_vec(), 1e-7);
    }
    let best: Vec<usize> = f.outer_iter().map(|r| (0..3).fold(0, |b, k| if r[k] > r[b] { k } else { b })).collect();
    assert_eq!(rest.predict_class(x.view()).unwrap(), best);
}

/// Probabilities are those of a sigmoid, sum to one, survive a file, and are calibrated better than chance. A model
/// without them returns an error.
#[test]
fn probabilities_are_calibrated_sigmoids() {
    for (count, rule) in [(2, MultiClass::Auto), (3, MultiClass::OneVsOne), (3, MultiClass::OneVsRest)] {
        let (x, labels) = clouds(300, count, 11);
        let svm = Svm { probability: true, multi_class: rule, ..svc(1.0, 0.5) };
        let (model, _) = fit(&svm, &x, Targets::classes(&labels, count));
        let (test, truth) = clouds(600, count, 12);
        let p = model.predict_probability(test.view(), Moderation::PlugIn).unwrap();
        assert!(p.outer_iter().all(|row| (row.sum() - 1.0).abs() < 1e-9 && row.iter().all(|v| *v > 0.0)));
        let loss = -truth.iter().enumerate().map(|(n, k)| p[[n, *k]].ln()).sum::<f64>() / 600.0;
        assert!(loss < 0.5 * (count as f64).ln(), "{loss}");
        let again = Model::from_json(&model.to_json().unwrap()).unwrap();
        assert_eq!(again, model);
        assert_eq!(again.predict_probability(test.view(), Moderation::PlugIn).unwrap(), p);
        let plain = fit(&Svm { probability: false, ..svm.clone() }, &x, Targets::classes(&labels, count)).0;
        assert_eq!(plain.expansion, model.expansion);
        assert_eq!(plain.predict_probability(test.view(), Moderation::PlugIn).unwrap_err(), Error::NoProbability);
        let other = fit(&Svm { seed: 1, ..svm }, &x, Targets::classes(&labels, count)).0;
        assert_ne!(other.margins, model.margins);
        if count == 2 {
            let [a, b] = model.margins.as_ref().unwrap().sigmoids[0];
            let f = model.decision_function(test.view()).unwrap();
            let expected: Vec<f64> = f.iter().map(|f| 1.0 / (1.0 + (a * f + b).exp())).collect();
            close("p", &p.column(1).to_vec(), &expected, 1e-12);
        }
    }
}

/// Every kernel trains every formulation, and given kernel values give the same result as a kernel.
#[test]
fn every_kernel_and_given_values_train_every_formulation() {
    let (x, labels) = clouds(60, 2, 13);
    let t = x.column(0).mapv(|v| v.abs().sqrt());
    for kernel in Kernel::NAMES {
        for formulation in Formulation::NAMES {
            let kernel = match Kernel::from_name(kernel).unwrap().with_gamma(0.3.into()) {
                Kernel::Periodic(own) => Periodic { period: Some(1.0), ..own }.into(),
                kernel => kernel,
            };
            let formulation = Formulation::from_name(formulation).unwrap();
            let classes = formulation.name().ends_with("svc");
            let targets = if classes { Targets::classes(&labels, 2) } else { Targets::real(t.view()) };
            // A Gram matrix of the sigmoid kernel need not have a solution.
            let indefinite = matches!(kernel.name(), "sigmoid" | "linear_spline");
            let svm = Svm { kernel, formulation, tolerance: 1e-7, max_iterations: Some(200_000), ..Svm::default() };
            let (model, report) = fit(&svm, &x, targets);
            assert!(indefinite || report.status == Status::Converged, "{svm:?} {report:?}");
            let given = Svm { basis: Basis::Given, ..svm.clone() };
            let (other, _) = fit(&given, &gram(&svm, &x), targets);
            if indefinite {
                continue;
            }
            assert_eq!(other.relevance, model.relevance, "{svm:?}");
            close("weights", &other.expansion.weights.column(0).to_vec(), &model.expansion.weights.column(0).to_vec(), 1e-3);
            let f = other.decision_function(gram(&svm, &x).view()).unwrap();
            assert!(f.iter().all(|v| v.is_finite()));
        }
    }
}

/// If a fit is stopped, or has little time or few steps, there is a model and a status.
#[test]
fn limits_and_observer_leave_a_model() {
    let (x, labels) = clouds(2000, 2, 14);
    let targets = Targets::classes(&labels, 2);
    let hard = Svm { tolerance: 1e-6, ..svc(1e4, 3.0) };
    let mut calls = 0;
    let mut stop = |p: &SvmProgress| {
        calls += 1;
        assert!(p.function == (0, 1) && p.gap > 0.0);
        if calls == 3 { std::ops::ControlFlow::Break(()) } else { std::ops::ControlFlow::Continue(()) }
    };
    let stopped = hard.fit_with(x.view(), &targets, &mut stop, &Interrupt::default()).unwrap().1;
    assert_eq!((stopped.status, calls), (Status::Stopped, 3));
    for (svm, status) in [
        (Svm { max_iterations: Some(100), ..hard.clone() }, Status::IterationLimit),
        (Svm { time_limit: Some(1e-9), ..hard.clone() }, Status::TimeLimit),
        // No multiplier of 64-bit numbers reaches this tolerance.
        (Svm { tolerance: 1e-300, time_limit: Some(60.0), max_iterations: Some(30_000_000), ..svc(1.0, 1.0) }, Status::Singular),
    ] {
        let rows = if status == Status::Singular { 200 } else { 2000 };
        let (some, own) = (x.slice(ndarray::s![..rows, ..]), &labels[..rows]);
        let (model, report) = svm.fit(some, &Targets::classes(own, 2)).unwrap();
        assert_eq!((report.status, model.status), (status, status));
        assert!(report.iterations <= svm.max_iterations.unwrap_or(usize::MAX));
        assert_eq!(model.predict_class(x.view()).unwrap().len(), 2000);
    }
    let interrupt = Interrupt::default();
    interrupt.raise();
    assert_eq!(hard.fit_with(x.view(), &targets, &mut silent, &interrupt).unwrap_err(), Error::Interrupted);
}

/// With these costs and features, pairs of multipliers alone would take more than 10 million steps, for any
/// formulation. The search ends in an optimum, which weak duality proves, or at the accuracy of 64-bit numbers, within
/// a hundredth of it.
#[test]
fn large_costs_and_unscaled_features_need_few_steps() {
    let mut random = Pcg64::seed_from_u64(20);
    let scales = [1.0, 10.0, 100.0, 1000.0, 0.1];
    let standard = Array2::from_shape_fn((120, 5), |_| random.random_range(-2.0..2.0));
    let x = Array2::from_shape_fn((120, 5), |(n, d)| standard[[n, d]] * scales[d]);
    let t = standard.map_axis(Axis(1), |row| f64::sin(2.0 * row[0]) + row[1])
        + Array1::from_shape_fn(120, |n| 0.3 * (n as f64).sin());
    let labels: Vec<usize> = t.iter().map(|t| usize::from(*t > 0.2)).collect();
    let c = 1000.0;
    let kernels = [Linear::default().into(), Poly { degree: 3, gamma: 1e-6.into(), coef0: 1.0 }.into(), rbf(1e-6)];
    for kernel in kernels {
        for formulation in [
            Formulation::from(CSvc { c }),
            NuSvc { nu: 0.6 }.into(),
            EpsilonSvr { c, epsilon: 0.1 }.into(),
            NuSvr { c, nu: 0.4 }.into(),
        ] {
            let classifies = matches!(formulation, Formulation::CSvc(_) | Formulation::NuSvc(_));
            let targets = if classifies { Targets::classes(&labels, 2) } else { Targets::real(t.view()) };
            let svm = Svm { kernel: kernel.clone(), formulation: formulation.clone(), ..Svm::default() };
            let (model, report) = fit(&svm, &x, targets);
            let own = &report.functions[0];
            assert!(matches!(report.status, Status::Converged | Status::Singular), "{svm:?} {report:?}");
            assert!(report.iterations < 100_000, "{svm:?} {report:?}");
            // The primal objective is half the squared norm plus the errors at their cost, with the bias of the model.
            let (beta, f) = (multipliers(&model, 0, 120), model.decision_function(x.view()).unwrap().remove_axis(Axis(1)));
            let half = 0.5 * beta.dot(&gram(&svm, &x).dot(&beta));
            let errors: f64 = match formulation {
                Formulation::CSvc(_) => (0..120).map(|n| (1.0 - f[n] * (2.0 * labels[n] as f64 - 1.0)).max(0.0)).sum(),
                Formulation::EpsilonSvr(_) => (0..120).map(|n| ((f[n] - t[n]).abs() - 0.1).max(0.0)).sum(),
                _ => continue,
            };
            let primal = half + c * errors;
            let gap = primal + own.objective;
            // The violation of each row is at most the tolerance, at its cost.
            assert!(
                gap > -1e-6 * primal && gap < 120.0 * c * own.gap.max(svm.tolerance) + 1e-6 * primal,
                "{svm:?} {gap} {primal}"
            );
        }
    }
}

/// An infinite cost in regression gives the flattest function within epsilon of every row, or an error.
#[test]
fn infinite_cost_keeps_every_row_within_epsilon() {
    let (x, t) = wave(40, 21);
    let hard = Svm { kernel: rbf(10.0), tolerance: 1e-6, ..svr(HARD, 0.1) };
    let (model, report) = fit(&hard, &x, Targets::real(t.view()));
    let f = model.predict_mean(x.view()).unwrap();
    let worst = (&f - &t).iter().fold(0.0f64, |worst, e| worst.max(e.abs()));
    assert!(report.status == Status::Converged && worst < 0.1 + 1e-5, "{worst}");
    let settings: Svm = serde_json::from_str(&serde_json::to_string(&hard).unwrap()).unwrap();
    assert_eq!(settings, hard);
    let (finite, _) =
        fit(&Svm { formulation: EpsilonSvr { c: 1e9, epsilon: 0.1 }.into(), ..hard.clone() }, &x, Targets::real(t.view()));
    close("tube", f.as_slice().unwrap(), finite.predict_mean(x.view()).unwrap().as_slice().unwrap(), 1e-4);
    // Neither a line for a wave nor any function for two targets of one row is within epsilon.
    let twice = concatenate(Axis(0), &[x.view(), x.view()]).unwrap();
    let apart = concatenate(Axis(0), &[t.view(), (&t + 0.5).view()]).unwrap();
    for (svm, x, t) in [(Svm { kernel: Linear::default().into(), ..hard.clone() }, &x, &t), (hard, &twice, &apart)] {
        let error = svm.fit(x.view(), &Targets::real(t.view())).unwrap_err().to_string();
        assert!(error.contains("epsilon_svr.c = inf") && error.contains("a larger epsilon than 0.1"), "{error}");
    }
}

/// Reduced hulls of overlapping classes touch. The model is the limit of those of larger shares: C-SVC with a large
/// cost. No kernel separates classes that have equal rows.
#[test]
fn nu_too_small_for_a_margin_gives_the_limit_of_large_costs() {
    let (x, labels) = clouds(60, 2, 22);
    let flipped: Vec<usize> = labels.iter().enumerate().map(|(n, k)| if n % 5 == 0 { 1 - k } else { *k }).collect();
    let with = |formulation: Formulation| Svm { kernel: Linear::default().into(), formulation, ..Svm::default() };
    let largest = x.outer_iter().map(|row| row.dot(&row)).fold(0.0, f64::max);
    let targets = Targets::classes(&flipped, 2);
    let (limit, _) = fit(&with(CSvc { c: 1e4 / largest }.into()), &x, targets);
    for nu in [0.01, 0.1, 0.2] {
        let (model, report) = fit(&with(NuSvc { nu }.into()), &x, targets);
        assert!(report.functions[0].no_margin && report.status == Status::Converged, "{nu} {report:?}");
        assert_eq!(model.expansion, limit.expansion, "{nu}");
    }
    let (model, report) = fit(&with(NuSvc { nu: 0.8 }.into()), &x, targets);
    assert!(!report.functions[0].no_margin && model.expansion != limit.expansion);
    let (model, report) = fit(&with(NuSvc { nu: 0.5 }.into()), &Array2::ones((60, 2)), targets);
    assert!(report.functions[0].no_margin && model.decision_function(x.view()).unwrap().iter().all(|f| f.is_finite()));
}

#[test]
fn bad_svm_input_is_rejected() {
    let (x, labels) = clouds(40, 2, 15);
    let t = x.column(0).to_owned();
    let classes = Targets::classes(&labels, 2);
    let real = Targets::real(t.view());
    let refused = |svm: Svm, x: &Array2<f64>, targets: Targets, expected: &[&str]| {
        let error = svm.fit(x.view(), &targets).unwrap_err().to_string();
        assert!(expected.iter().all(|part| error.contains(part)), "{error}, expected {expected:?}");
    };
    let with = |formulation: Formulation| Svm { formulation, ..Svm::default() };
    let nan = f64::NAN;
    for c in [0.0, -1.0, nan] {
        refused(with(CSvc { c }.into()), &x, classes, &["formulation.c_svc.c", "(0, infinity]"]);
    }
    for c in [0.0, -1.0, nan] {
        refused(with(EpsilonSvr { c, epsilon: 0.1 }.into()), &x, real, &["epsilon_svr.c", "(0, infinity]"]);
    }
    for c in [0.0, -1.0, nan, HARD] {
        refused(with(NuSvr { c, nu: 0.1 }.into()), &x, real, &["nu_svr.c", "(0, infinity)"]);
    }
    for epsilon in [-0.1, nan, HARD] {
        refused(with(EpsilonSvr { c: 1.0, epsilon }.into()), &x, real, &["epsilon_svr.epsilon", "[0, infinity)"]);
    }
    for nu in [0.0, -0.5, 1.5, nan] {
        refused(with(NuSvc { nu }.into()), &x, classes, &["nu_svc.nu", "(0, 1]"]);
        refused(with(NuSvr { c: 1.0, nu }.into()), &x, real, &["nu_svr.nu", "(0, 1]"]);
    }
    let uneven: Vec<usize> = (0..40).map(|i| usize::from(i % 4 == 0)).collect();
    refused(
        with(NuSvc { nu: 0.6 }.into()),
        &x,
        Targets::classes(&uneven, 2),
        &["nu_svc.nu = 0.6", "(0, 0.5]", "classes 0 and 1"],
    );
    assert!(with(NuSvc { nu: 0.5 }.into()).fit(x.view(), &Targets::classes(&uneven, 2)).is_ok());
    refused(Svm { tolerance: 0.0, ..Svm::default() }, &x, classes, &["tolerance"]);
    refused(Svm { cache_size: -1.0, ..Svm::default() }, &x, classes, &["cache_size"]);
    refused(Svm { max_iterations: Some(0), ..Svm::default() }, &x, classes, &["max_iterations"]);
    refused(Svm { time_limit: Some(0.0), ..Svm::default() }, &x, classes, &["time_limit"]);
    refused(Svm { threads: Some(0), ..Svm::default() }, &x, classes, &["threads"]);
    refused(Svm { threads: Some(MOST_THREADS + 1), ..Svm::default() }, &x, classes, &["threads = 1025", "from 1 to 1024"]);
    refused(Svm { multi_class: MultiClass::Joint, ..Svm::default() }, &x, classes, &["multi_class = joint", "one_vs_one"]);
    refused(
        Svm { class_weights: ClassWeights::Given(vec![1.0]), ..Svm::default() },
        &x,
        classes,
        &["class_weights", "2 classes"],
    );
    refused(
        Svm { class_weights: ClassWeights::Given(vec![1.0, 0.0]), ..Svm::default() },
        &x,
        classes,
        &["class_weights", "positive"],
    );
    refused(Svm { class_weights: ClassWeights::Balanced, ..svr(1.0, 0.1) }, &x, real, &["class_weights", "classifiers"]);
    refused(Svm { probability: true, ..svr(1.0, 0.1) }, &x, real, &["probability", "classifiers"]);
    let evidence: Kernel = Rbf { gamma: Gamma::Rule(GammaRule::Evidence) }.into();
    refused(Svm { kernel: evidence, ..Svm::default() }, &x, classes, &["kernel.rbf.gamma", "no evidence"]);
    refused(Svm::default(), &x, real, &["real targets", "c_svc"]);
    refused(svr(1.0, 0.1), &x, classes, &["classes", "epsilon_svr"]);
    refused(Svm::default(), &x, Targets::classes(&[0; 40], 2), &["class 1 of 2"]);
    refused(Svm::default(), &x, Targets::classes(&[0; 40], 1), &["at least 2 classes, found 1"]);
    refused(Svm::default(), &x, Targets::classes(&labels, 3), &["class 2 of 3"]);
    refused(Svm::default(), &x, Targets::classes(&labels[..39], 2), &["targets", "40", "39"]);
    let mut holes = x.clone();
    holes[[3, 1]] = nan;
    refused(Svm::default(), &holes, classes, &["row 3, column 1"]);
    let mut off = t.clone();
    off[7] = HARD;
    refused(svr(1.0, 0.1), &x, Targets::real(off.view()), &["targets", "row 7"]);
    refused(Svm { basis: Basis::Given, ..Svm::default() }, &x, classes, &["kernel values", "[40, 40]", "[40, 2]"]);
    let steep = Svm { kernel: Poly { degree: 400, gamma: 1e3.into(), coef0: 0.0 }.into(), ..Svm::default() };
    refused(steep, &x, classes, &["kernel value"]);
    let nothing = Array1::zeros(40);
    refused(Svm::default(), &x, classes.with_weights(nothing.view()), &["rows of positive weight: found 0"]);
    // Predictions that the model does not support are rejected.
    let model = fit(&svr(1.0, 0.1), &x, real).0;
    assert_eq!(model.predict(x.view()).unwrap_err(), Error::NoPosterior);
    assert!(model.predict_class(x.view()).is_err() && model.predict_probability(x.view(), Moderation::PlugIn).is_err());
    assert!(fit(&Svm::default(), &x, classes).0.predict_functions(x.view()).is_err());
}

/// If all targets are equal, or features are constant or repeated, the model is empty or an ordinary one.
#[test]
fn constant_targets_and_features_are_fitted() {
    let (x, labels) = clouds(30, 2, 16);
    let flat = Array1::from_elem(30, 5.0);
    for formulation in ["epsilon_svr", "nu_svr"] {
        let svm = Svm { formulation: Formulation::from_name(formulation).unwrap(), ..Svm::default() };
        let (model, report) = fit(&svm, &x, Targets::real(flat.view()));
        let mean = model.predict_mean(x.view()).unwrap();
        assert!(report.status == Status::Converged && mean.iter().all(|v| (v - 5.0).abs() < 0.11), "{formulation} {mean}");
    }
    let same = Array2::ones((30, 2));
    let (model, report) = fit(&Svm::default(), &same, Targets::classes(&labels, 2));
    assert!(report.status == Status::Converged && report.merged_rows == 28 && model.predict_class(same.view()).unwrap()[0] < 2);
    let one_each: Vec<usize> = (0..30).collect();
    let (model, _) = fit(&Svm { probability: true, ..svc(10.0, 5.0) }, &x, Targets::classes(&one_each, 30));
    assert_eq!(model.predict_class(x.view()).unwrap(), one_each);
    let p = model.predict_probability(x.view(), Moderation::PlugIn).unwrap();
    assert!(p.outer_iter().all(|row| (row.sum() - 1.0).abs() < 1e-9));
}

#[test]
fn svm_files_survive_and_damage_is_detected() {
    let (x, labels) = clouds(60, 3, 17);
    let (model, _) = fit(&svc(1.0, 0.5), &x, Targets::classes(&labels, 3));
    let text = model.to_json().unwrap();
    assert_eq!(Model::from_json(&text).unwrap(), model);
    assert!(!text.contains("posterior") && !text.contains("log_evidence"));
    let refused = |change: &dyn Fn(&mut Model)| {
        let mut broken = model.clone();
        change(&mut broken);
        Model::from_json(&broken.to_json().unwrap()).unwrap_err().to_string()
    };
    assert!(refused(&|m| m.margins = None).contains("model.posterior, committee, margins, labels: found none"));
    assert!(refused(&|m| m.margins.as_mut().unwrap().classes = Some(2)).contains("model.margins.classes: found 2"));
    assert!(refused(&|m| m.margins.as_mut().unwrap().classes = Some(4)).contains("number of functions, 3"));
    assert!(
        refused(&|m| m.margins.as_mut().unwrap().sigmoids = vec![[1.0, 0.0]]).contains("model.margins.sigmoids: found 1 entries")
    );
    assert!(refused(&|m| m.margins.as_mut().unwrap().objective.clear()).contains("model.margins.objective: found 0 entries"));
    assert!(refused(&|m| m.margins.as_mut().unwrap().vector_classes[0] = 3).contains("model.margins.vector_classes[0]: found 3"));
    assert!(refused(&|m| m.expansion.intercept = vec![0.0]).contains("model.expansion.weights: found rows of 3"));
    // Parameters survive JSON, including an infinite cost.
    for c in [0.5, HARD] {
        let svm = Svm { probability: true, ..svc(c, 0.5) };
        assert_eq!(serde_json::from_str::<Svm>(&serde_json::to_string(&svm).unwrap()).unwrap(), svm);
    }
}
