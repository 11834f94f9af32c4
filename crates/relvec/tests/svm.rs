//! Support vector machines: optimality, laws, textbook examples, bad input.

mod support;

use ndarray::{Array1, Array2, Axis, array, concatenate};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use relvec::*;
use support::close;

const HARD: f64 = f64::INFINITY;

/// Two overlapping clouds in the plane, `count` classes.
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

/// A noisy wave.
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
    svm.fit(x.view(), &targets, &mut silent).unwrap_or_else(|e| panic!("{svm:?}: {e}"))
}

/// s_i a_i of each row, `[N]`.
fn multipliers(model: &Model, function: usize, n: usize) -> Array1<f64> {
    let mut beta = Array1::zeros(n);
    model.relevance.iter().zip(model.expansion.weights.column(function)).for_each(|(row, w)| beta[*row] = *w);
    beta
}

/// The conditions of Karush, Kuhn and Tucker hold at the solution, for every formulation of classification: a row
/// outside the margin has no multiplier, one inside has the largest.
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
fn nu_is_a_bound_on_both_sides() {
    let (x, labels) = clouds(150, 2, 2);
    for nu in [0.1, 0.3, 0.8] {
        let svm = Svm { kernel: rbf(0.5), formulation: NuSvc { nu }.into(), tolerance: 1e-6, ..Svm::default() };
        let (model, _) = fit(&svm, &x, Targets::classes(&labels, 2));
        let margins = model.margins.as_ref().unwrap();
        assert!(margins.bounded as f64 <= nu * 150.0 + 1e-9 && model.relevance.len() as f64 >= nu * 150.0 - 1e-9, "{nu}");
        // The same function is that of C-SVC with the cost that the bounded multipliers have.
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
        // The tube is where free vectors are: epsilon-SVR of that width has the same function.
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
