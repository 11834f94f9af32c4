//! Regression with a given noise variance per row agrees with the N x N covariance for every kind of fit.

use crate::support::close;
use ndarray::{Array1, Array2, Axis, concatenate, s};
use rand::{RngExt, SeedableRng};
use rand_distr::{Distribution, StandardNormal};
use relvec::*;

/// Rows, targets about 50, noise variances over two orders of magnitude, and sample weights.
struct Data {
    x: Array2<f64>,
    t: Array1<f64>,
    v: Array1<f64>,
    c: Array1<f64>,
    f: Array1<f64>,
}

fn data(seed: u64, rows: usize) -> Data {
    let mut random = rand_pcg::Pcg64::seed_from_u64(seed);
    let x = Array2::from_shape_simple_fn((rows, 1), || random.random_range(-3.0..3.0));
    let v: Array1<f64> = x.column(0).mapv(|x: f64| 0.01 * (1.5 * x).exp().clamp(0.05, 50.0));
    let f = x.column(0).mapv(|x| 50.0 + f64::sin(2.0 * x));
    let t = &f + &v.mapv(|v| v.sqrt() * Distribution::<f64>::sample(&StandardNormal, &mut random));
    let c = Array1::from_shape_fn(rows, |i| 0.5 * (1 + i % 3) as f64);
    Data { x, t, v, c, f }
}

fn rvm() -> Rvm {
    Rvm { kernel: Rbf { gamma: 1.0.into() }.into(), ..Rvm::tipping2001() }
}

fn at() -> Hyperparameters {
    Hyperparameters {
        relevance: vec![2, 9, 20, 31],
        alpha: vec![0.7, 2.0, 0.1, 5.0],
        intercept_alpha: Some(1e-3),
        ..Hyperparameters::default()
    }
}

/// Returns log N(t | 0, C) for symmetric positive definite C, by elimination.
fn log_normal(t: &[f64], mut c: Array2<f64>) -> f64 {
    let n = t.len();
    let (mut t, mut log_det) = (t.to_vec(), 0.0);
    let mut square = 0.0;
    for k in 0..n {
        let pivot = c[[k, k]];
        log_det += pivot.ln();
        square += t[k] * t[k] / pivot;
        for i in k + 1..n {
            let share = c[[i, k]] / pivot;
            t[i] -= share * t[k];
            for j in k + 1..n {
                c[[i, j]] -= share * c[[k, j]];
            }
        }
    }
    -0.5 * (n as f64 * (2.0 * std::f64::consts::PI).ln() + log_det + square)
}

#[test]
fn evidence_equals_that_of_the_covariance_of_the_targets() {
    let d = data(1, 40);
    let at = at();
    let targets = Targets::real(d.t.view()).with_noise_variance(d.v.view());
    let found = rvm().evaluate(d.x.view(), &targets, &at).unwrap();
    let phi = |i: usize, k: usize| (-(d.x[[i, 0]] - d.x[[at.relevance[k], 0]]).powi(2)).exp();
    let covariance = Array2::from_shape_fn((40, 40), |(i, j)| {
        let noise = if i == j { d.v[i] } else { 0.0 };
        noise + 1.0 / at.intercept_alpha.unwrap() + (0..4).map(|k| phi(i, k) * phi(j, k) / at.alpha[k]).sum::<f64>()
    });
    let expected = log_normal(&d.t.to_vec(), covariance);
    assert!((found.log_evidence - expected).abs() < 1e-9 * expected.abs(), "{} {expected}", found.log_evidence);
    assert_eq!(found.model.noise_variance(), Some(0.0), "that of new rows is not known");
}

#[test]
fn gradients_equal_finite_differences() {
    let d = data(2, 60);
    let targets = Targets::real(d.t.view()).with_noise_variance(d.v.view()).with_weights(d.c.view());
    let (rvm, at, step) = (rvm(), at(), 1e-4f64);
    let found = rvm.evaluate(d.x.view(), &targets, &at).unwrap();
    let evidence = |rvm: &Rvm, at: &Hyperparameters| rvm.evaluate(d.x.view(), &targets, at).unwrap().log_evidence;
    for k in 0..4 {
        let moved = |by: f64| {
            let mut at = at.clone();
            at.alpha[k] *= by.exp();
            evidence(&rvm, &at)
        };
        let expected = (moved(step) - moved(-step)) / (2.0 * step);
        assert!((found.gradient_log_alpha[k + 1] - expected).abs() < 1e-6 * (1.0 + expected.abs()));
    }
    let width = |by: f64| evidence(&Rvm { kernel: Rbf { gamma: by.exp().into() }.into(), ..rvm.clone() }, &at);
    let expected = (width(step) - width(-step)) / (2.0 * step);
    assert!((found.gradient_log_kernel[0] - expected).abs() < 1e-6 * (1.0 + expected.abs()));
}

/// The predicted gain of every action on every column equals the true change.
#[test]
fn predicted_gains_equal_the_true_changes() {
    let d = data(3, 40);
    let targets = Targets::real(d.t.view()).with_noise_variance(d.v.view());
    let (rvm, at) = (rvm(), at());
    let before = rvm.evaluate(d.x.view(), &targets, &at).unwrap();
    let mut tried = 0;
    for row in 0..40 {
        let action = before.actions[row + 1];
        if let (ActionKind::Add, Some(alpha)) = (action.kind, action.alpha) {
            let mut after = at.clone();
            after.relevance.push(row);
            after.alpha.push(alpha);
            let gain = rvm.evaluate(d.x.view(), &targets, &after).unwrap().log_evidence - before.log_evidence;
            assert!((gain - action.gain).abs() < 1e-8 * (1.0 + gain), "{gain} {}", action.gain);
            tried += 1;
        }
    }
    assert!(tried > 3, "{tried}");
}

fn schemes() -> impl Iterator<Item = Inference> {
    Inference::NAMES.iter().map(|name| Inference::from_name(name).unwrap())
}

/// Equal variances equal a fixed noise variance of the likelihood.
#[test]
fn equal_variances_equal_a_fixed_noise_variance() {
    let d = data(4, 80);
    let v = Array1::from_elem(80, 0.09);
    for inference in schemes() {
        let own = Rvm { inference, ..rvm() };
        let held = Rvm { likelihood: Gaussian { noise_variance: Some(0.09) }.into(), ..own.clone() };
        let targets = Targets::real(d.t.view()).with_weights(d.c.view());
        let (one, report) = own.fit(d.x.view(), &targets.with_noise_variance(v.view())).unwrap();
        let (other, _) = held.fit(d.x.view(), &targets).unwrap();
        let name = own.inference.name();
        let (a, b) = (one.log_evidence.unwrap(), other.log_evidence.unwrap());
        assert!((a - b).abs() < 1e-10 * b.abs(), "{name}: {a} {b}");
        assert_eq!(one.relevance, other.relevance, "{name}");
        close(
            name,
            &one.expansion.weights.iter().copied().collect::<Vec<_>>(),
            &other.expansion.weights.iter().copied().collect::<Vec<_>>(),
            1e-8,
        );
        let (p, q) = (one.predict(d.x.view()).unwrap(), other.predict(d.x.view()).unwrap());
        close(name, p.mean.as_slice().unwrap(), q.mean.as_slice().unwrap(), 1e-10);
        close(name, p.model_variance.as_slice().unwrap(), q.model_variance.as_slice().unwrap(), 1e-8);
        assert_eq!((p.noise_variance, p.noise_degrees), (0.0, None), "{name}: that of a new row is not known");
        assert!((report.trace.last().unwrap().noise_std.unwrap() - 0.3).abs() < 1e-12, "{name}");
    }
}

/// The evidence never falls. At rows of little noise the fit is better than one that treats all rows alike, and the
/// true function lies within its band.
#[test]
fn rows_of_little_noise_are_fitted_more_closely() {
    let d = data(5, 300);
    for inference in schemes() {
        // The slow schemes need not converge.
        let own = Rvm { inference, max_iterations: 300, ..rvm() };
        let name = own.inference.name();
        let targets = Targets::real(d.t.view()).with_noise_variance(d.v.view());
        let (model, report) = own.fit(d.x.view(), &targets).unwrap();
        for pair in report.trace.windows(2) {
            assert!(pair[1].log_evidence >= pair[0].log_evidence - 1e-8 * pair[0].log_evidence.abs(), "{name}");
        }
        assert_eq!(Model::from_json(&model.to_json().unwrap()).unwrap(), model);
        let (alike, _) = own.fit(d.x.view(), &Targets::real(d.t.view())).unwrap();
        let quiet: Vec<usize> = (0..300).filter(|i| d.v[*i] < 0.01).collect();
        let error = |model: &Model| {
            let mean = model.predict_mean(d.x.view()).unwrap();
            quiet.iter().map(|i| (mean[*i] - d.f[*i]).powi(2)).sum::<f64>().sqrt()
        };
        assert!(error(&model) < 0.7 * error(&alike), "{name}: {} {}", error(&model), error(&alike));
        let p = model.predict(d.x.view()).unwrap();
        let inside = (0..300).filter(|i| (p.mean[*i] - d.f[*i]).abs() < 3.0 * p.model_variance[*i].sqrt()).count();
        assert!(inside > 250, "{name}: {inside}");
    }
}

/// A weight equals a repeated row. Two rows of variance v determine f like one row of variance v/2, and the evidence
/// differs by a constant per row.
#[test]
fn weights_and_halved_variances_equal_repeated_rows() {
    let d = data(6, 50);
    let twice: Vec<usize> = (0..50).chain(0..10).collect();
    let double = Array1::from_shape_fn(50, |i| if i < 10 { 2.0 } else { 1.0 });
    let targets = Targets::real(d.t.view());
    let weighted = rvm().fit(d.x.view(), &targets.with_noise_variance(d.v.view()).with_weights(double.view()));
    let (x, t, v) = (d.x.select(Axis(0), &twice), d.t.select(Axis(0), &twice), d.v.select(Axis(0), &twice));
    let repeated = rvm().fit(x.view(), &Targets::real(t.view()).with_noise_variance(v.view()));
    let (weighted, (repeated, report)) = (weighted.unwrap().0, repeated.unwrap());
    assert_eq!(report.adjustments.merged_rows, 10);
    close("weights", &weighted.alpha, &repeated.alpha, 1e-12);
    assert!((weighted.log_evidence.unwrap() - repeated.log_evidence.unwrap()).abs() < 1e-9);

    let half = &d.v / &double;
    let halved = rvm().evaluate(d.x.view(), &targets.with_noise_variance(half.view()), &at()).unwrap();
    let both = rvm().evaluate(x.view(), &Targets::real(t.view()).with_noise_variance(v.view()), &at()).unwrap();
    close("means", &halved.weights, &both.weights, 1e-9);
    // N(t | f, v)^2 = N(t | f, v/2) / sqrt(4 pi v).
    let constant: f64 = (0..10).map(|i| -0.5 * (4.0 * std::f64::consts::PI * d.v[i]).ln()).sum();
    assert!((both.log_evidence - halved.log_evidence - constant).abs() < 1e-9 * both.log_evidence.abs());
}

/// Neither order nor repetition matters, and rows that differ only in their noise variance are not merged.
#[test]
fn order_does_not_matter_and_rows_of_different_noise_are_not_merged() {
    let d = data(7, 60);
    let targets = Targets::real(d.t.view()).with_noise_variance(d.v.view());
    let (one, _) = rvm().fit(d.x.view(), &targets).unwrap();
    let back: Vec<usize> = (0..60).rev().collect();
    let (x, t, v) = (d.x.select(Axis(0), &back), d.t.select(Axis(0), &back), d.v.select(Axis(0), &back));
    let (other, _) = rvm().fit(x.view(), &Targets::real(t.view()).with_noise_variance(v.view())).unwrap();
    assert_eq!(one.log_evidence, other.log_evidence);
    let mean = |model: &Model| model.predict_mean(d.x.view()).unwrap().to_vec();
    close("means", &mean(&one), &mean(&other), 1e-13);

    let x = concatenate![Axis(0), d.x, d.x.slice(s![..5, ..])];
    let t = concatenate![Axis(0), d.t, d.t.slice(s![..5])];
    let v = concatenate![Axis(0), d.v, d.v.slice(s![..5]).mapv(|v| 3.0 * v)];
    let (_, report) = rvm().fit(x.view(), &Targets::real(t.view()).with_noise_variance(v.view())).unwrap();
    assert_eq!(report.adjustments.merged_rows, 0);
    assert_eq!(report.candidates, 60);
}

/// Neither the unit of the target nor its mean matters, with and without a bias.
#[test]
fn units_and_the_mean_of_the_target_do_not_matter() {
    let d = data(8, 80);
    let fit = |t: &Array1<f64>, v: &Array1<f64>, bias: bool| {
        let own = Rvm { bias, ..rvm() };
        let (model, _) = own.fit(d.x.view(), &Targets::real(t.view()).with_noise_variance(v.view())).unwrap();
        (model.predict(d.x.view()).unwrap(), model.log_evidence.unwrap())
    };
    for bias in [true, false] {
        let (one, evidence) = fit(&d.t, &d.v, bias);
        let (other, scaled) = fit(&(&d.t * 1e6), &(&d.v * 1e12), bias);
        close("mean", (&other.mean * 1e-6).as_slice().unwrap(), one.mean.as_slice().unwrap(), 1e-8);
        assert!((scaled - (evidence - 80.0 * 1e6f64.ln())).abs() < 1e-7 * scaled.abs());
    }
}

/// Sums over rows, in any partition, agree with the fit to rows at the same landmarks. So do working sets, rows of G
/// computed on demand, and serialised sums.
#[test]
fn sums_working_sets_and_little_memory_agree() {
    let d = data(9, 400);
    let centres = d.x.slice(s![..60, ..]).to_owned();
    let own = Rvm { landmarks: Landmarks::Given(Centres(centres.clone())), ..rvm() };
    let targets = |from: usize, to: usize| {
        Targets::real(d.t.slice(s![from..to])).with_noise_variance(d.v.slice(s![from..to])).with_weights(d.c.slice(s![from..to]))
    };
    let (table, _) = own.fit(d.x.view(), &targets(0, 400)).unwrap();
    let mut sums = Statistics::new(&own.kernel, centres.view()).unwrap();
    let mut rest = sums.clone();
    sums.update(d.x.slice(s![..150, ..]), &targets(0, 150)).unwrap();
    rest.update(d.x.slice(s![150.., ..]), &targets(150, 400)).unwrap();
    sums.merge(&rest).unwrap();
    let sums = Statistics::from_bytes(&sums.to_bytes()).unwrap();
    assert!((sums.weight() - d.c.sum()).abs() < 1e-9);
    let (summed, _) = rvm().fit_statistics(&sums).unwrap();
    let (a, b) = (table.log_evidence.unwrap(), summed.log_evidence.unwrap());
    assert!((a - b).abs() < 1e-8 * a.abs(), "{a} {b}");
    assert_eq!(table.relevance, summed.relevance);
    assert_eq!(summed.noise_variance(), Some(0.0));

    // A centre among few rows of large noise remains a candidate.
    let few = [0, 7, 30].map(|i| 20.0 + f64::from(i));
    let x = concatenate![Axis(0), d.x, Array2::from_shape_vec((3, 1), few.to_vec()).unwrap()];
    let (t, v) = (concatenate![Axis(0), d.t, ndarray::array![70.0, 90.0, 60.0]], concatenate![Axis(0), d.v, Array1::ones(3)]);
    let centres = x.slice(s![395.., ..]).to_owned();
    let targets_of = Targets::real(t.view()).with_noise_variance(v.view());
    let own_centres = Rvm { landmarks: Landmarks::Given(Centres(centres.clone())), ..rvm() };
    let (rows, _) = own_centres.fit(x.view(), &targets_of).unwrap();
    let mut sums = Statistics::new(&own.kernel, centres.view()).unwrap();
    sums.update(x.view(), &targets_of).unwrap();
    let (summed, _) = rvm().fit_statistics(&sums).unwrap();
    assert_eq!(rows.relevance, summed.relevance);
    assert!(rows.relevance.iter().any(|k| *k >= 5), "{:?}", rows.relevance);

    // With so little memory G is not stored.
    let small = Rvm { memory_limit: Some(900_000), ..own.clone() };
    let (on_demand, _) = small.fit(d.x.view(), &targets(0, 400)).unwrap();
    assert!((on_demand.log_evidence.unwrap() - a).abs() < 1e-8 * a.abs());

    let big = data(10, 1500);
    let targets = Targets::real(big.t.view()).with_noise_variance(big.v.view());
    let all = Rvm { dictionary: Dictionary::Rule(DictionaryRule::All), ..rvm() };
    let (parts, report) = all.fit(big.x.view(), &targets).unwrap();
    assert!(report.certificate.reason.contains("passes over all 1500 candidates"), "{}", report.certificate.reason);
    let start = Start::Given(Hyperparameters {
        relevance: parts.relevance.clone(),
        alpha: parts.alpha.clone(),
        intercept_alpha: parts.intercept_alpha,
        noise_variance: None,
        ..Hyperparameters::default()
    });
    let evaluated = match start {
        Start::Given(at) => all.evaluate(big.x.view(), &targets, &at).unwrap().log_evidence,
        _ => unreachable!("given above"),
    };
    assert!((evaluated - parts.log_evidence.unwrap()).abs() < 1e-7 * evaluated.abs());
}

/// Kernel and centres are learned by the same evidence.
#[test]
fn kernels_and_centres_are_learned_with_known_noise() {
    let d = data(11, 200);
    let targets = Targets::real(d.t.view()).with_noise_variance(d.v.view());
    let learnt = Rvm { kernel: Rbf { gamma: Gamma::Rule(GammaRule::Evidence) }.into(), ..Rvm::tipping2001() };
    let (model, report) = learnt.fit(d.x.view(), &targets).unwrap();
    let search = report.kernel_search.unwrap();
    let trial = &search.tried[search.chosen];
    // The noise variance is that of a typical row, the geometric mean.
    let typical = d.v.mapv(f64::ln).mean().unwrap().exp();
    let process = trial.process.clone();
    assert!((process.noise_variance[0] / typical - 1.0).abs() < 1e-9 && process.gain > 0.5, "{process:?}");
    let (plain, _) = Rvm::tipping2001().fit(d.x.view(), &targets).unwrap();
    assert!(model.log_evidence.unwrap() >= plain.log_evidence.unwrap() - 0.1);
    let moved = Rvm { centres: CentreRule::Learned, dictionary: Dictionary::Size(20), ..rvm() };
    let (_, report) = moved.fit(d.x.view(), &targets).unwrap();
    assert!(report.centre_search.is_some());
}

#[test]
fn known_noise_rejects_bad_variances_and_settings() {
    let d = data(12, 30);
    let fit = |rvm: &Rvm, v: &[f64]| {
        let v = Array1::from(v.to_vec());
        rvm.fit(d.x.view(), &Targets::real(d.t.view()).with_noise_variance(v.view())).map(|_| ()).unwrap_err()
    };
    for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let mut v = vec![0.1; 30];
        v[7] = bad;
        assert!(fit(&rvm(), &v).to_string().contains("noise variance of row 7 is"), "{bad}");
    }
    assert!(matches!(fit(&rvm(), &[0.1; 29]), Error::Shape { what: "noise variance", .. }));
    let mut wide = vec![1e-300; 30];
    wide[0] = 1e300;
    assert!(matches!(fit(&rvm(), &wide), Error::Overflow { .. }));
    let held = Rvm { likelihood: Gaussian { noise_variance: Some(0.1) }.into(), ..rvm() };
    assert!(fit(&held, &[0.1; 30]).to_string().contains("own noise_variance is not given"));

    let v = Array1::from_elem(30, 0.1);
    let labels: Vec<usize> = (0..30).map(|i| i % 3).collect();
    let two: Vec<usize> = (0..30).map(|i| i % 2).collect();
    for (likelihood, targets) in [
        (Likelihood::from(Bernoulli::default()), Targets::classes(&two, 2)),
        (Bernoulli::default().into(), Targets::classes(&labels, 3)),
        (Softmax::default().into(), Targets::classes(&labels, 3)),
    ] {
        for multi_class in [MultiClass::Auto, MultiClass::OneVsRest] {
            let own = Rvm { likelihood: likelihood.clone(), multi_class, ..rvm() };
            let refused = own.fit(d.x.view(), &targets.with_noise_variance(v.view()));
            assert!(refused.is_err(), "{} {multi_class:?}", likelihood.name());
        }
    }
    let svm = Svm { formulation: EpsilonSvr::default().into(), ..Svm::default() };
    let refused = svm.fit(d.x.view(), &Targets::real(d.t.view()).with_noise_variance(v.view()));
    assert!(refused.unwrap_err().to_string().contains("support vector machine"));

    let mut sums = Statistics::new(&rvm().kernel, d.x.slice(s![..5, ..])).unwrap();
    let (plain, known) = (Targets::real(d.t.view()), Targets::real(d.t.view()).with_noise_variance(v.view()));
    sums.update(d.x.view(), &plain).unwrap();
    assert!(matches!(sums.update(d.x.view(), &known), Err(Error::Statistics(_))));
    let mut other = Statistics::new(&rvm().kernel, d.x.slice(s![..5, ..])).unwrap();
    other.update(d.x.view(), &known).unwrap();
    assert!(matches!(sums.merge(&other), Err(Error::Statistics(_))));
    assert!(matches!(held.fit_statistics(&other), Err(Error::Statistics(_))));
}

/// A constant target gives a constant, within the accuracy that its noise allows.
#[test]
fn constant_target_gives_a_constant() {
    let d = data(13, 30);
    let t = Array1::from_elem(30, 7.0);
    let targets = Targets::real(t.view()).with_noise_variance(d.v.view());
    let (model, _) = rvm().fit(d.x.view(), &targets).unwrap();
    assert!(model.predict_mean(d.x.view()).unwrap().iter().all(|m| (m - 7.0).abs() < 1e-3));
}

/// Residuals have the size of the given noise. If weights are at their smallest precision, the report states the ratio.
#[test]
fn given_noise_far_below_the_residuals_is_reported() {
    let mut random = rand_pcg::Pcg64::seed_from_u64(21);
    let x = Array2::from_shape_simple_fn((30, 1), || random.random_range(-3.0..3.0));
    for sigma in [1e-2, 1e-7, 1e-9, 1e-11] {
        let t = x.column(0).mapv(f64::sin);
        let v = Array1::from_elem(30, sigma * sigma);
        let fixed = Rvm { likelihood: Gaussian { noise_variance: Some(sigma * sigma) }.into(), ..rvm() };
        for (rvm, targets) in [(fixed, Targets::real(t.view())), (rvm(), Targets::real(t.view()).with_noise_variance(v.view()))] {
            let (model, report) = rvm.fit(x.view(), &targets).unwrap();
            let left = &t - &model.predict_mean(x.view()).unwrap();
            let times = (left.mapv(|r| r * r).sum() / 30.0).sqrt() / sigma;
            match report.adjustments.residual_over_noise {
                None => assert!(times < 2.0, "{sigma}: {times}"),
                Some(told) => assert!(sigma < 1e-6 && (told / times - 1.0).abs() < 1e-6, "{sigma}: {times} {told}"),
            }
        }
    }
}
