//! Averaged Laplace posteriors: the Hessian is averaged over the posterior itself, (M65), for every likelihood and
//! scheme.

use crate::support::close;
use ndarray::{Array1, Array2, ArrayView1, Axis, s};
use rand::{RngExt, SeedableRng};
use relvec::*;

const AVERAGED: PosteriorRule = PosteriorRule::Averaged;

/// Returns three clusters at distance `apart` from each other, and sample weights.
fn clouds(n: usize, apart: f64) -> (Array2<f64>, Vec<usize>, Array1<f64>) {
    let wave = |i: usize, a: f64| ((i as f64 * a).sin() * 43758.5453).fract();
    let labels: Vec<usize> = (0..n).map(|i| i % 3).collect();
    let x = Array2::from_shape_fn((n, 2), |(i, d)| {
        let centre = [[0.0, 0.0], [apart, 0.0], [0.0, apart]][labels[i]][d];
        centre + wave(i + 1, 78.233 + d as f64) + wave(i + 5, 39.425 - d as f64)
    });
    (x, labels, Array1::from_shape_fn(n, |i| [1.0, 2.0, 0.5][i % 3]))
}

fn of(likelihood: impl Into<Likelihood>) -> Rvm {
    Rvm { kernel: Rbf { gamma: 0.3.into() }.into(), likelihood: likelihood.into(), posterior: AVERAGED, ..Rvm::tipping2001() }
}

/// Returns the columns of the model at `x`, the bias first if there is one.
fn columns(model: &Model, x: &Array2<f64>, rows: &Array2<f64>) -> Array2<f64> {
    let bias = usize::from(model.intercept_alpha.is_some());
    let value = |i: usize, row: usize| (-0.3 * (&x.row(i) - &rows.row(row)).mapv(|d| d * d).sum()).exp();
    Array2::from_shape_fn((x.nrows(), bias + model.relevance.len()), |(i, j)| match j < bias {
        true => 1.0,
        false => value(i, model.relevance[j - bias]),
    })
}

fn precisions(model: &Model) -> Array1<f64> {
    model.intercept_alpha.iter().chain(&model.alpha).copied().collect()
}

/// Checks that the precision times the covariance of the model is the identity.
fn check_inverse(name: &str, precision: &Array2<f64>, model: &Model) {
    let product = precision.dot(&model.weight_covariance());
    let off = (&product - &Array2::<f64>::eye(product.nrows())).iter().fold(0.0f64, |m, v| m.max(v.abs()));
    assert!(off < 1e-4, "{name}: off by {off}");
}

/// For two classes and for counts, the precision of the weights is that of the prior plus the averaged Hessian, (M65).
/// Nothing but the covariance differs from the Laplace approximation.
#[test]
fn precision_contains_the_averaged_hessian_for_two_classes_and_counts() {
    let (x, labels, c) = clouds(90, 3.0);
    let two: Vec<usize> = labels.iter().map(|k| (*k).min(1)).collect();
    let counts = x.column(0).mapv(|v| (0.5 * v).exp().round());
    let exposure = Array1::from_shape_fn(90, |n| 1.0 + (n % 2) as f64);
    let of_classes = Targets::classes(&two, 2).with_weights(c.view());
    let of_counts = Targets::real(counts.view()).with_weights(c.view()).with_exposure(exposure.view());
    let ones = Array1::ones(90);
    let cases = [
        (of(Bernoulli::default()), of_classes, ones.view()),
        (Rvm { inference: MacKay::default().into(), ..of(Bernoulli::default()) }, of_classes, ones.view()),
        (Rvm { inference: Em::default().into(), ..of(Bernoulli::default()) }, of_classes, ones.view()),
        (of(Poisson::default()), of_counts, exposure.view()),
    ];
    for (rvm, targets, exposure) in cases {
        let name = format!("{}, {}", rvm.likelihood.name(), rvm.inference.name());
        let (model, report) = rvm.fit(x.view(), &targets).unwrap();
        let found = model.predict(x.view()).unwrap();
        let curvature = |f: f64, v: f64| match rvm.likelihood {
            Likelihood::Poisson(_) => (f + 0.5 * v).exp(),
            _ => {
                let kappa = 1.0 / (1.0 + std::f64::consts::PI * v / 8.0).sqrt();
                kappa * (1.0 / (1.0 + (-kappa * f).exp())) * (1.0 / (1.0 + (kappa * f).exp()))
            }
        };
        let phi = columns(&model, &x, &x);
        let mut weighted = phi.clone();
        for (n, mut row) in weighted.outer_iter_mut().enumerate() {
            row *= c[n] * exposure[n] * curvature(found.mean[n], found.model_variance[n]);
        }
        check_inverse(&name, &(phi.t().dot(&weighted) + Array2::from_diag(&precisions(&model))), &model);

        let laplace = Rvm { posterior: PosteriorRule::Laplace, ..rvm };
        let (other, other_report) = laplace.fit(x.view(), &targets).unwrap();
        assert_eq!((&model.expansion, &model.alpha, model.log_evidence), (&other.expansion, &other.alpha, other.log_evidence));
        assert_eq!(report.trace.len(), other_report.trace.len());
        assert!(model.posterior.as_ref().unwrap().averaged && !other.posterior.as_ref().unwrap().averaged);
        assert_ne!(model.weight_covariance(), other.weight_covariance(), "{name}");
    }
}

/// For several classes, (M65) holds. At the mode of these classes the Hessian is almost zero, so that the Laplace
/// posterior is far too wide.
#[test]
fn precision_contains_the_averaged_hessian_for_several_classes() {
    let (x, labels, c) = clouds(120, 8.0);
    let targets = Targets::classes(&labels, 3).with_weights(c.view());
    let rvm = of(Softmax::default());
    let (model, _) = rvm.fit(x.view(), &targets).unwrap();
    let functions = model.predict_functions(x.view()).unwrap();
    let moderated = model.predict_probability(x.view(), Moderation::Posterior).unwrap();
    let phi = columns(&model, &x, &x);
    let m = phi.ncols();
    // Hessian over the functions of the classes themselves, [K M, K M].
    let mut curvature = Array2::<f64>::zeros((3 * m, 3 * m));
    for n in 0..x.nrows() {
        let (y, v) = (moderated.row(n), functions.covariance.index_axis(Axis(0), n));
        let outer = phi.slice(s![n..=n, ..]).t().dot(&phi.slice(s![n..=n, ..]));
        for (k, l) in [(0, 1), (0, 2), (1, 2)] {
            let variance = v[[k, k]] + v[[l, l]] - 2.0 * v[[k, l]];
            let w = c[n] * y[k] * y[l] / (1.0 + std::f64::consts::PI * variance / 8.0).sqrt();
            for (i, j, sign) in [(k, k, 1.0), (l, l, 1.0), (k, l, -1.0), (l, k, -1.0)] {
                curvature.slice_mut(s![i * m..(i + 1) * m, j * m..(j + 1) * m]).scaled_add(sign * w, &outer);
            }
        }
    }
    // Helmert contrasts of three classes.
    let (a, b) = (0.5f64.sqrt(), (1.0f64 / 6.0).sqrt());
    let e = ndarray::arr2(&[[a, b], [-a, b], [0.0, -2.0 * b]]);
    let wide = Array2::from_shape_fn((3 * m, 2 * m), |(i, j)| if i % m == j % m { e[[i / m, j / m]] } else { 0.0 });
    let alpha = precisions(&model);
    let precision = wide.t().dot(&curvature).dot(&wide) + Array2::from_diag(&Array1::from_shape_fn(2 * m, |i| alpha[i % m]));
    check_inverse("softmax", &precision, &model);

    let loss = |model: &Model| {
        let p = model.predict_log_probability(x.view(), Moderation::Posterior).unwrap();
        -labels.iter().zip(p.outer_iter()).map(|(k, p): (&usize, ArrayView1<f64>)| p[*k]).sum::<f64>() / 120.0
    };
    let (laplace, _) = Rvm { posterior: PosteriorRule::Laplace, ..rvm.clone() }.fit(x.view(), &targets).unwrap();
    assert!(loss(&model) < 0.7 * loss(&laplace), "{} and {}", loss(&model), loss(&laplace));

    // The file records the kind of posterior, and the number of threads changes no bit.
    let again = Model::from_json(&model.to_json().unwrap()).unwrap();
    assert_eq!(again, model);
    let (threads, _) = Rvm { threads: Some(1), ..rvm }.fit(x.view(), &targets).unwrap();
    assert_eq!(threads, model);
}

/// For two classes and given precisions, the softmax equals the logistic function.
#[test]
fn softmax_of_two_classes_equals_the_logistic_function() {
    let (x, labels, c) = clouds(60, 3.0);
    let two: Vec<usize> = labels.iter().map(|k| (*k).min(1)).collect();
    let targets = Targets::classes(&two, 2).with_weights(c.view());
    let one = of(Bernoulli::default());
    let (model, _) = one.fit(x.view(), &targets).unwrap();
    let at = Hyperparameters::of(&model);
    let twice = Hyperparameters {
        alpha: at.alpha.iter().map(|a| 2.0 * a).collect(),
        intercept_alpha: at.intercept_alpha.map(|a| 2.0 * a),
        ..at.clone()
    };
    let probability = |rvm: &Rvm, at: &Hyperparameters| {
        let model = rvm.evaluate(x.view(), &targets, at).unwrap().model;
        model.predict_probability(x.view(), Moderation::Posterior).unwrap().column(1).to_vec()
    };
    close("probability", &probability(&of(Softmax::default()), &twice), &probability(&one, &at), 1e-8);
}

/// The default posterior is the averaged one for joint models of three classes. It is the Laplace posterior for other
/// models, and for fits that were stopped or ran out of time.
#[test]
fn default_posterior_is_averaged_for_joint_models_of_several_classes() {
    let (x, labels, c) = clouds(90, 3.0);
    let (two, counts): (Vec<usize>, _) = (labels.iter().map(|k| (*k).min(1)).collect(), x.column(0).mapv(|v| v.exp().round()));
    let three = Targets::classes(&labels, 3).with_weights(c.view());
    let (pair, real) = (Targets::classes(&two, 2).with_weights(c.view()), Targets::real(counts.view()));
    let auto = |rvm: Rvm| Rvm { posterior: PosteriorRule::Auto, ..rvm };
    assert_eq!(Rvm::default().posterior, PosteriorRule::Auto);
    let (softmax, bernoulli) = (auto(of(Softmax::default())), auto(of(Bernoulli::default())));
    let cases = [
        (softmax.clone(), &three, AVERAGED),
        (Rvm { max_iterations: 3, ..softmax.clone() }, &three, AVERAGED),
        (softmax.clone(), &pair, PosteriorRule::Laplace),
        (Rvm { multi_class: MultiClass::OneVsRest, ..bernoulli.clone() }, &three, PosteriorRule::Laplace),
        (bernoulli.clone(), &pair, PosteriorRule::Laplace),
        (auto(of(Poisson::default())), &real, PosteriorRule::Laplace),
    ];
    for (rvm, targets, expected) in cases {
        let (model, _) = rvm.fit(x.view(), targets).unwrap();
        assert_eq!(model.posterior_rule(), expected);
        let (asked, _) = Rvm { posterior: expected, ..rvm.clone() }.fit(x.view(), targets).unwrap();
        assert_eq!(model, asked, "{}", rvm.likelihood.name());
    }
    let mut stop = |_: &Progress| std::ops::ControlFlow::Break(());
    let (stopped, _) = softmax.fit_with(x.view(), &three, &mut stop, &Interrupt::default()).unwrap();
    assert_eq!((stopped.status, stopped.posterior_rule()), (Status::Stopped, PosteriorRule::Laplace));
    let late = Rvm { time_limit: Some(1e-9), ..softmax.clone() };
    let (late, _) = late.fit(x.view(), &three).unwrap();
    assert_eq!((late.status, late.posterior_rule()), (Status::TimeLimit, PosteriorRule::Laplace));
    let evaluated = softmax.evaluate(x.view(), &three, &Hyperparameters::of(&stopped)).unwrap().model;
    assert_eq!(evaluated.posterior_rule(), PosteriorRule::Laplace);
    let scheme = Rvm { inference: Variational::default().into(), ..bernoulli };
    assert!(scheme.fit(x.view(), &pair).is_ok());
}

/// The averaging converges for very confident rows, for very small prior precisions, and for an empty model.
#[test]
fn averaging_converges_for_confident_rows_and_empty_models() {
    let (x, labels, c) = clouds(90, 12.0);
    let two: Vec<usize> = labels.iter().map(|k| (*k).min(1)).collect();
    let targets = Targets::classes(&two, 2).with_weights(c.view());
    for alpha in [1.0, 1e-3, 1e-6, 1e-9] {
        let at = Hyperparameters {
            relevance: vec![0, 1, 2, 40],
            alpha: vec![alpha; 4],
            intercept_alpha: Some(alpha),
            ..Hyperparameters::default()
        };
        let model = of(Bernoulli::default()).evaluate(x.view(), &targets, &at).unwrap().model;
        let found = model.predict(x.view()).unwrap();
        let phi = columns(&model, &x, &x);
        let mut weighted = phi.clone();
        for (n, mut row) in weighted.outer_iter_mut().enumerate() {
            let kappa = 1.0 / (1.0 + std::f64::consts::PI * found.model_variance[n] / 8.0).sqrt();
            let e = (-(kappa * found.mean[n]).abs()).exp();
            row *= c[n] * kappa * e / ((1.0 + e) * (1.0 + e));
        }
        let precision = phi.t().dot(&weighted) + Array2::from_diag(&precisions(&model));
        check_inverse(&format!("alpha = {alpha}"), &precision, &model);
    }

    // If all counts are zero and the prior is weak, the Hessian is exponential in a variance of tens, and steps must be
    // short.
    let none = Array1::zeros(90);
    for alpha in [1e-2, 1e-6, 1e-9] {
        let at = Hyperparameters { relevance: vec![0, 40], alpha: vec![alpha; 2], ..Hyperparameters::default() };
        let rvm = Rvm { bias: false, ..of(Poisson::default()) };
        let model = rvm.evaluate(x.view(), &Targets::real(none.view()).with_weights(c.view()), &at).unwrap().model;
        let found = model.predict(x.view()).unwrap();
        let phi = columns(&model, &x, &x);
        let mut weighted = phi.clone();
        for (n, mut row) in weighted.outer_iter_mut().enumerate() {
            row *= c[n] * (found.mean[n] + 0.5 * found.model_variance[n]).exp();
        }
        let precision = phi.t().dot(&weighted) + Array2::from_diag(&precisions(&model));
        check_inverse(&format!("counts, alpha = {alpha}"), &precision, &model);
    }

    let noise: Vec<usize> = (0..90).map(|n| usize::from((n * n * 7) % 11 < 5)).collect();
    for likelihood in [Likelihood::from(Bernoulli::default()), Softmax::default().into()] {
        let rvm = Rvm { bias: false, kernel: Rbf { gamma: 1e6.into() }.into(), ..of(likelihood) };
        let at = Hyperparameters::default();
        let model = rvm.evaluate(x.view(), &Targets::classes(&noise, 2), &at).unwrap().model;
        assert!(model.relevance.is_empty());
        let p = model.predict_probability(x.view(), Moderation::Posterior).unwrap();
        assert!(p.iter().all(|p| (p - 0.5).abs() < 1e-12));
    }
}

/// Each binary model has an averaged posterior. The variational scheme has its own posterior and rejects the option.
#[test]
fn binary_models_are_averaged_and_the_variational_scheme_rejects_averaging() {
    let (x, labels, _) = clouds(60, 3.0);
    let targets = Targets::classes(&labels, 3);
    let rvm = Rvm { multi_class: MultiClass::OneVsRest, ..of(Bernoulli::default()) };
    let (model, _) = rvm.fit(x.view(), &targets).unwrap();
    assert!(model.committee.unwrap().members.iter().all(|m| m.posterior.as_ref().unwrap().averaged));
    let rvm = Rvm { inference: Variational::default().into(), ..rvm };
    let error = rvm.fit(x.view(), &targets).unwrap_err().to_string();
    assert!(error.contains("posterior") && error.contains("its own posterior"), "{error}");
    // With Gaussian noise both posteriors are exact.
    let t = x.column(0).to_owned();
    let fit = |posterior| {
        let rvm = Rvm { posterior, ..of(Gaussian::default()) };
        rvm.fit(x.view(), &Targets::real(t.view())).unwrap().0
    };
    assert_eq!(fit(AVERAGED), fit(PosteriorRule::Laplace));
}

/// For steep rates the posterior of counts is found, and the expected counts have the size of the observed ones.
#[test]
fn averaged_posterior_exists_for_steep_counts() {
    for seed in 150..200 {
        let mut random = rand_pcg::Pcg64::seed_from_u64(seed);
        let x = Array2::from_shape_fn((30, 1), |_| random.random_range(-3.0..3.0));
        let steep = random.random_range(2.0..6.0);
        let counts = x.column(0).mapv(|v: f64| (steep * (2.0 * v).sin()).exp().round());
        let gamma = random.random_range(0.3..10.0);
        let rvm = Rvm { kernel: Rbf { gamma: gamma.into() }.into(), bias: seed % 2 == 0, ..of(Poisson::default()) };
        let fit = |rvm: &Rvm| rvm.fit(x.view(), &Targets::real(counts.view())).unwrap().0;
        let model = fit(&rvm);
        assert_eq!(model.posterior_rule(), PosteriorRule::Averaged);
        let expected = model.predict(x.view()).unwrap().counts(None).unwrap().mean.sum();
        assert!((expected / counts.sum() - 1.0).abs() < 0.5, "{seed}: {expected} {}", counts.sum());
    }
}
