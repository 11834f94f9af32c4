//! The variational scheme: golden values, the lower bound, pruning, and the paper's tables.

use crate::support::{Case, close, floats, golden};
use ndarray::{Array1, Array2, Axis, s};
use rand::SeedableRng;
use rand_distr::{Distribution, StandardNormal};
use relvec::*;
use serde_json::Value;

fn scheme(record: &Value) -> Variational {
    let number = |name: &str, other: f64| record[name].as_f64().unwrap_or(other);
    let hyperpriors = Hyperpriors { a: number("a", 1e-6), b: number("b", 1e-6), c: number("c", 1e-6), d: number("d", 1e-6) };
    let one = Some(1.0);
    Variational { hyperpriors, initial_alpha: one, initial_noise_variance: one, tolerance: 1e-300, ..Variational::default() }
}

fn rvm(case: &Case, variational: Variational, iterations: usize) -> Rvm {
    let inference = Inference::Variational(variational);
    let (kernel, likelihood) = (case.kernel(), case.likelihood());
    Rvm { kernel, likelihood, inference, max_iterations: iterations, threads: Some(1), ..Rvm::tipping2001() }
}

fn all(model: &Model, bias: Option<f64>, rest: &[f64]) -> Vec<f64> {
    assert!(model.intercept_alpha.is_some());
    bias.into_iter().chain(rest.iter().copied()).collect()
}

/// Compares the bound of every iteration, the factors after some of them, and the predictions after the last.
#[test]
fn iterations_agree_with_the_golden_record() {
    let names = ["reg_vb_n30", "cls_vb_jj_n30", "reg_sinc_gauss_n40", "reg_2d_gauss_n50", "cls_1d_gauss_n36", "cls_2d_gauss_n50"];
    for name in names {
        let case = golden(name);
        for key in ["vb_trace", "vb_trace_other_hyper"] {
            let record = &case.json[key];
            if record.is_null() {
                continue;
            }
            let bounds = floats(&record["elbo"]);
            let fit = |steps: usize| case.with_targets(|x, t| rvm(&case, scheme(record), steps).fit(x, t)).unwrap();
            let (model, report) = fit(bounds.len());
            let trace: Vec<f64> = report.trace.iter().map(|p| p.log_evidence).collect();
            close(&format!("{name} {key} bound"), &trace, &bounds, 1e-11);
            assert_eq!(model.log_evidence.unwrap(), *trace.last().unwrap());
            let prediction = model.predict(case.test.view()).unwrap();
            close(&format!("{name} {key} mean"), prediction.mean.as_slice().unwrap(), &floats(&record["pred_mean"]), 1e-9);
            // The printed noise is that after the last q(beta). The noise of the model is that for which its q(w) was
            // computed.
            let noise = record["E_tau"].as_f64().map_or(0.0, |tau| 1.0 / tau);
            let variance: Vec<f64> = floats(&record["pred_var"]).iter().map(|v| v - noise).collect();
            close(&format!("{name} {key} variance"), prediction.model_variance.as_slice().unwrap(), &variance, 1e-8);
            if !case.is_regression() {
                for (key, moderation) in
                    [("pred_prob_moderated", Moderation::Posterior), ("pred_prob_plugin", Moderation::PlugIn)]
                {
                    let p = model.predict_probability(case.test.view(), moderation).unwrap();
                    close(&format!("{name} {key}"), &p.column(1).to_vec(), &floats(&record[key]), 1e-9);
                }
            }
            for snapshot in record["snapshots"].as_array().unwrap() {
                let k = snapshot["iteration"].as_u64().unwrap() as usize;
                let what = format!("{name} {key} after {k}");
                let (now, _) = fit(k);
                let weights = all(&now, Some(now.expansion.intercept[0]), now.expansion.weights.as_slice().unwrap());
                close(&format!("{what}, mu"), &weights, &floats(&snapshot["mu"]), 1e-9);
                // The next q(w) is computed with these values.
                let (next, _) = fit(k + 1);
                let logs = |alpha: &[f64]| alpha.iter().map(|a| a.ln()).collect::<Vec<_>>();
                let alpha = all(&next, next.intercept_alpha, &next.alpha);
                close(&format!("{what}, alpha"), &logs(&alpha), &logs(&floats(&snapshot["E_alpha"])), 1e-8);
                if let Some(tau) = snapshot["E_tau"].as_f64() {
                    close(&format!("{what}, noise"), &[next.noise_variance().unwrap() * tau], &[1.0], 1e-9);
                }
            }
        }
    }
}

/// Returns rows in the plane and a function of them that varies much.
fn problem(seed: u64, n: usize) -> (Array2<f64>, Array1<f64>) {
    let mut state = seed.wrapping_mul(2_862_933_555_777_941_757).wrapping_add(3_037_000_493);
    let mut uniform = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 11) as f64 / (1u64 << 53) as f64
    };
    let x = Array2::from_shape_simple_fn((n, 2), || 6.0 * uniform() - 3.0);
    let t = x.map_axis(Axis(1), |r| (1.5 * r[0]).sin() + 0.3 * r[1]);
    let noise = Array1::from_shape_simple_fn(n, || (0..12).map(|_| uniform()).sum::<f64>() - 6.0);
    (x, t + 0.15 * noise)
}

fn labels(t: &Array1<f64>) -> Vec<usize> {
    t.iter().map(|t| usize::from(*t > 0.0)).collect()
}

fn variational() -> Rvm {
    let inference = Inference::Variational(Variational::default());
    Rvm { kernel: Rbf { gamma: 0.5.into() }.into(), inference, threads: Some(2), ..Rvm::tipping2001() }
}

#[track_caller]
fn never_falls(report: &Report) {
    for (k, pair) in report.trace.windows(2).enumerate() {
        let (before, after) = (pair[0].log_evidence, pair[1].log_evidence);
        assert!(after >= before - 1e-10 * before.abs(), "iteration {k}: {before} to {after}");
    }
}

#[test]
fn the_bound_never_falls() {
    let fixed = Gaussian { noise_variance: Some(0.04) };
    for seed in 0..6 {
        let (x, t) = problem(seed, 40);
        let x = x.view();
        let scale = 10f64.powi(seed as i32 - 2);
        let hyperpriors = Hyperpriors { a: 0.5 * scale, b: 0.2, c: 0.1, d: 0.3 * scale };
        let other = Inference::Variational(Variational { hyperpriors, ..Variational::default() });
        let poly = Poly { degree: 3, gamma: 0.5.into(), coef0: 1.0 };
        for rvm in [
            variational(),
            Rvm { bias: false, ..variational() },
            Rvm { inference: other.clone(), ..variational() },
            Rvm { likelihood: fixed.clone().into(), ..variational() },
            Rvm { kernel: poly.clone().into(), ..variational() },
        ] {
            let rvm = Rvm { max_iterations: 150, ..rvm };
            let t = t.mapv(|v| scale * v + 3.0);
            never_falls(&rvm.fit(x, &Targets::real(t.view())).unwrap().1);
            let labels = labels(&t.mapv(|v| v - 3.0));
            let classes = Rvm { likelihood: Bernoulli::default().into(), ..rvm };
            never_falls(&classes.fit(x, &Targets::classes(&labels, 2)).unwrap().1);
        }
    }
}

/// Hyperpriors of very small variance fix the precisions at a / b and c / d. For regression the bound is then the log
/// evidence at these precisions, and for classes it is a log probability. No digits are lost in their huge logarithms.
#[test]
fn narrow_hyperpriors_fix_the_precisions() {
    let (x, t) = problem(7, 30);
    let labels = labels(&t);
    for size in [1e3, 1e8, 1e14] {
        let hyperpriors = Hyperpriors { a: size, b: 0.5 * size, c: size, d: 0.04 * size };
        let inference = Inference::Variational(Variational { hyperpriors, ..Variational::default() });
        let rvm = Rvm { inference, max_iterations: 200, ..variational() };
        for likelihood in [Gaussian { noise_variance: Some(0.04) }, Gaussian::default()] {
            let rvm = Rvm { likelihood: likelihood.into(), ..rvm.clone() };
            let (model, report) = rvm.fit(x.view(), &Targets::real(t.view())).unwrap();
            never_falls(&report);
            let at = Hyperparameters {
                relevance: model.relevance.clone(),
                alpha: vec![2.0; 30],
                intercept_alpha: Some(2.0),
                noise_variance: Some(0.04),
                ..Hyperparameters::default()
            };
            let fixed = Rvm { inference: Inference::Em(Em::default()), ..rvm };
            let evidence = fixed.evaluate(x.view(), &Targets::real(t.view()), &at).unwrap().log_evidence;
            // The remaining freedom is of the order of 1 / size.
            close("the bound", &[model.log_evidence.unwrap()], &[evidence], 1e-9 + 50.0 / size);
        }
        for prune in [false, true] {
            let inference = Inference::Variational(Variational { hyperpriors, prune, ..Variational::default() });
            let rvm = Rvm { inference, likelihood: Bernoulli::default().into(), ..rvm.clone() };
            let (model, report) = rvm.fit(x.view(), &Targets::classes(&labels, 2)).unwrap();
            assert!((-30.0 * 2f64.ln()..0.0).contains(&model.log_evidence.unwrap()), "{size}: {:?}", model.log_evidence);
            if !prune {
                never_falls(&report);
            }
        }
    }
}

/// (M24) and (M25) hold for a converged fit, in the user's units, and the bound is below the evidence.
#[test]
fn factors_agree_at_convergence() {
    let (x, t) = problem(3, 40);
    let t = t.mapv(|v| 50.0 * v + 7.0);
    let targets = Targets::real(t.view());
    let hyperpriors = Hyperpriors { a: 0.02, b: 0.3, c: 0.5, d: 20.0 };
    let inference = Inference::Variational(Variational { hyperpriors, tolerance: 1e-12, ..Variational::default() });
    let rvm = Rvm { inference, max_iterations: 20_000, ..variational() };
    let (model, report) = rvm.fit(x.view(), &targets).unwrap();
    assert_eq!(report.status, Status::Converged);
    let at = Hyperparameters {
        relevance: model.relevance.clone(),
        alpha: model.alpha.clone(),
        intercept_alpha: model.intercept_alpha,
        noise_variance: model.noise_variance(),
        ..Hyperparameters::default()
    };
    let got = Rvm { inference: Inference::Em(Em::default()), ..rvm }.evaluate(x.view(), &targets, &at).unwrap();
    let alpha: Vec<f64> = model.intercept_alpha.into_iter().chain(model.alpha.iter().copied()).collect();
    for (i, alpha) in alpha.iter().enumerate() {
        let square = got.weights[i].powi(2) + got.variances[i];
        let expected = (hyperpriors.a + 0.5) / (hyperpriors.b + 0.5 * square);
        assert!((alpha / expected).ln().abs() < 1e-4, "weight {i}: {alpha} {expected}");
    }
    let beta = 1.0 / model.noise_variance().unwrap();
    let e = got.residual_sum.unwrap() + got.well_determined.iter().sum::<f64>() / beta;
    let expected = (hyperpriors.c + 20.0) / (hyperpriors.d + 0.5 * e);
    assert!((beta / expected).ln().abs() < 1e-6, "noise precision {beta} {expected}");
    assert!(report.certificate.largest_gradient < 1e-4, "{}", report.certificate.largest_gradient);
    // The type-II evidence at the best alpha is not an average over alpha.
    assert!(model.log_evidence.unwrap() < got.log_evidence);
}

/// A fit that its time limit ends, mostly during a data pass, has the bound of its last iteration.
#[test]
fn time_ends_a_fit_between_iterations() {
    let (x, t) = problem(4, 6000);
    let labels = labels(&t);
    let targets = Targets::classes(&labels, 2);
    // With so few landmarks none are left out, however short the time is.
    let rvm = Rvm { likelihood: Bernoulli::default().into(), dictionary: 100.into(), ..variational() };
    for limit in [0.15, 0.2, 0.25, 0.3] {
        let (model, report) = Rvm { time_limit: Some(limit), ..rvm.clone() }.fit(x.view(), &targets).unwrap();
        assert_eq!(report.status, Status::TimeLimit);
        let counted = Rvm { max_iterations: report.iterations, ..rvm.clone() };
        let (same, _) = counted.fit(x.view(), &targets).unwrap();
        assert_eq!(model.log_evidence.unwrap(), same.log_evidence.unwrap());
        assert_eq!(model.expansion, same.expansion);
    }
}

/// Rows of weight two equal repeated rows.
#[test]
fn weights_equal_repeated_rows() {
    let (x, t) = problem(5, 30);
    let repeated =
        (ndarray::concatenate![Axis(0), x, x.slice(s![..10, ..])], ndarray::concatenate![Axis(0), t, t.slice(s![..10])]);
    let weights = Array1::from_shape_fn(30, |i| if i < 10 { 2.0 } else { 1.0 });
    let rvm = Rvm { max_iterations: 60, ..variational() };
    let (a, _) = rvm.fit(x.view(), &Targets::real(t.view()).with_weights(weights.view())).unwrap();
    let (b, _) = rvm.fit(repeated.0.view(), &Targets::real(repeated.1.view())).unwrap();
    close("bound", &[a.log_evidence.unwrap()], &[b.log_evidence.unwrap()], 1e-12);
    let classes = Rvm { likelihood: Bernoulli::default().into(), ..rvm };
    let (l, m) = (labels(&t), labels(&repeated.1));
    let (a, _) = classes.fit(x.view(), &Targets::classes(&l, 2).with_weights(weights.view())).unwrap();
    let (b, _) = classes.fit(repeated.0.view(), &Targets::classes(&m, 2)).unwrap();
    close("bound of classes", &[a.log_evidence.unwrap()], &[b.log_evidence.unwrap()], 1e-12);
}

/// Each pruning lowers the bound by at most its tolerance, and few of many weights remain.
#[test]
fn pruning_keeps_the_bound() {
    for seed in 0..3 {
        let (x, t) = problem(seed, 60);
        let labels = labels(&t);
        for classes in [false, true] {
            let likelihood: Likelihood = if classes { Bernoulli::default().into() } else { Gaussian::default().into() };
            let targets = if classes { Targets::classes(&labels, 2) } else { Targets::real(t.view()) };
            let pruning = |prune| Inference::Variational(Variational { prune, tolerance: 1e-4, ..Variational::default() });
            let rvm = |prune| Rvm { likelihood: likelihood.clone(), inference: pruning(prune), ..variational() };
            let (full, _) = rvm(false).fit(x.view(), &targets).unwrap();
            let (model, report) = rvm(true).fit(x.view(), &targets).unwrap();
            assert_eq!(report.status, Status::Converged);
            assert_eq!(full.relevance.len(), 60);
            for (k, pair) in report.trace.windows(2).enumerate() {
                let (before, after) = (pair[0].log_evidence, pair[1].log_evidence);
                assert!(after >= before - 1e-4 - 1e-10 * before.abs(), "iteration {k}: {before} to {after}");
            }
            assert!(model.relevance.len() < 30, "classes {classes}: {} left", model.relevance.len());
            assert!(
                model.log_evidence.unwrap() >= full.log_evidence.unwrap() - 60.0 * 1e-4,
                "{} {}",
                model.log_evidence.unwrap(),
                full.log_evidence.unwrap()
            );
            let point = x.slice(s![..5, ..]);
            let (a, b) = (full.predict(point).unwrap(), model.predict(point).unwrap());
            for (a, b) in a.mean.iter().zip(&b.mean) {
                assert!((a - b).abs() < if classes { 0.5 } else { 0.05 }, "{a} {b}");
            }
        }
    }
}

#[test]
fn hyperpriors_must_be_proper() {
    let (x, t) = problem(1, 20);
    for (name, value) in [("a", 0.0), ("b", -1.0), ("c", f64::NAN), ("d", f64::INFINITY)] {
        let mut hyperpriors = Variational::default().hyperpriors;
        *match name {
            "a" => &mut hyperpriors.a,
            "b" => &mut hyperpriors.b,
            "c" => &mut hyperpriors.c,
            _ => &mut hyperpriors.d,
        } = value;
        let inference = Inference::Variational(Variational { hyperpriors, ..Variational::default() });
        let error = Rvm { inference, ..variational() }.fit(x.view(), &Targets::real(t.view())).unwrap_err();
        let text = error.to_string();
        assert!(text.contains(&format!("hyperpriors.{name}")) && text.contains("positive"), "{text}");
    }
}

/// The default values of other schemes, zero, are no proper hyperpriors, so that this scheme has its own.
#[test]
fn hyperpriors_that_are_not_given_have_defaults() {
    let read = |text: &str| serde_json::from_str::<Inference>(text);
    let Inference::Variational(some) = read(r#"{"variational": {"hyperpriors": {"a": 1e-3}}}"#).unwrap() else { panic!() };
    assert_eq!(some, Variational { hyperpriors: Hyperpriors { a: 1e-3, b: 1e-6, c: 1e-6, d: 1e-6 }, ..Variational::default() });
    let Inference::Variational(none) = read(r#"{"variational": {}}"#).unwrap() else { panic!() };
    assert_eq!(none, Variational::default());
    let error = read(r#"{"variational": {"hyperpriors": {"e": 1}}}"#).unwrap_err().to_string();
    assert!(error.contains("unknown field `e`"), "{error}");
    let Inference::Em(em) = read(r#"{"em": {"hyperpriors": {"a": 1e-3}}}"#).unwrap() else { panic!() };
    assert_eq!(em.hyperpriors, Hyperpriors { a: 1e-3, ..Hyperpriors::default() });
}

/// For several binary models, a vector is in use if it is in use in at least one of them.
#[test]
fn vectors_in_use_of_binary_models_are_counted_once() {
    let (x, t) = problem(5, 60);
    let labels: Vec<usize> = t.iter().map(|t| usize::from(*t > -0.4) + usize::from(*t > 0.4)).collect();
    for prune in [false, true] {
        let inference = Inference::Variational(Variational { prune, tolerance: 1e-3, ..Variational::default() });
        let rvm = Rvm { inference, likelihood: Bernoulli::default().into(), ..variational() };
        let (model, _) = rvm.fit(x.view(), &Targets::classes(&labels, 3)).unwrap();
        let members = &model.committee.as_ref().expect("one against the rest").members;
        let each: Vec<usize> = members.iter().map(|member| member.in_use().by_data).collect();
        let determined = |row: &usize| {
            let place = |member: &Model| member.relevance.iter().position(|own| own == row);
            members.iter().any(|member| place(member).is_some_and(|i| member.well_determined()[i] > 0.5))
        };
        let found = model.in_use().by_data;
        assert_eq!(found, model.relevance.iter().filter(|row| determined(row)).count());
        assert!(found >= *each.iter().max().unwrap() && found <= each.iter().sum() && found > 0, "{found} of {each:?}");
        assert!(model.in_use().by_weight >= members.iter().map(|member| member.in_use().by_weight).max().unwrap());
    }
}

/// A constant target and rows that are all equal give finite results.
#[test]
fn constant_targets_and_equal_rows_are_fitted() {
    let (x, _) = problem(2, 20);
    let flat = Array1::from_elem(20, 3.0);
    let (model, _) = variational().fit(x.view(), &Targets::real(flat.view())).unwrap();
    assert!((model.predict(x.view()).unwrap().mean - 3.0).iter().all(|d| d.abs() < 1e-6));
    let same = Array2::from_elem((20, 2), 1.0);
    let t = Array1::from_shape_fn(20, |i| (i % 3) as f64);
    let (model, _) = variational().fit(same.view(), &Targets::real(t.view())).unwrap();
    assert!(model.predict(same.view()).unwrap().mean.iter().all(|m| (m - 0.95).abs() < 0.05));
}

/// Bishop & Tipping 2000, table 1: sinc, 50 rows, noise 0.1, 25 draws. Error, kernels and noise are 0.0494, 6.9 and
/// 0.0943 for the type-II method, and 0.0494, 7.4 and 0.0950 for the variational one.
#[test]
fn errors_on_sinc_agree_with_the_paper() {
    let grid = Array2::from_shape_fn((1001, 1), |(i, _)| -10.0 + 20.0 * i as f64 / 1000.0);
    let sinc = |x: f64| if x == 0.0 { 1.0 } else { x.sin() / x };
    let truth = grid.column(0).mapv(sinc);
    let pruned = Variational { prune: true, ..Variational::default() };
    let mut found = Vec::new();
    for inference in
        [Rvm::tipping2001().inference, Inference::Variational(Variational::default()), Inference::Variational(pruned)]
    {
        let (mut error, mut kernels, mut noise, mut beyond) = (0.0, 0.0, 0.0, 0.0);
        for seed in 0..25 {
            let mut random = rand_pcg::Pcg64::seed_from_u64(seed);
            let x = Array2::from_shape_fn((50, 1), |(i, _)| -10.0 + 20.0 * i as f64 / 49.0);
            let drawn: Array1<f64> = (0..50).map(|_| Distribution::<f64>::sample(&StandardNormal, &mut random)).collect();
            let t = x.column(0).mapv(sinc) + 0.1 * drawn;
            let kernel = LinearSpline::default().into();
            let rvm = Rvm { kernel, inference: inference.clone(), threads: Some(1), ..Rvm::tipping2001() };
            let (model, report) = rvm.fit(x.view(), &Targets::real(t.view())).unwrap();
            assert_eq!(report.status, Status::Converged);
            let mean = model.predict(grid.view()).unwrap().mean;
            error += (&mean - &truth).mapv(|d| d * d).mean().unwrap().sqrt() / 25.0;
            noise += model.noise_std().unwrap() / 25.0;
            let in_use = model.in_use();
            kernels += in_use.by_data as f64 / 25.0;
            beyond += in_use.by_weight as f64 / 25.0;
        }
        println!("{}: {error:.4}, {kernels:.1} kernels ({beyond:.1} by weight), noise {noise:.4}", inference.name());
        found.push([error, kernels, noise]);
    }
    for [error, kernels, noise] in &found {
        assert!((error / 0.0494 - 1.0).abs() < 0.2, "error {error}");
        assert!((5.0..8.5).contains(kernels), "{kernels} kernels");
        assert!((noise / 0.0947 - 1.0).abs() < 0.08, "noise {noise}");
    }
    // As in the paper, the errors agree.
    assert!((found[1][0] / found[0][0] - 1.0).abs() < 0.08, "{found:?}");
}

/// The means of q(alpha) and q(beta) in the report are the model's precisions, and their rates after convergence are
/// those of (M25).
#[test]
fn the_report_has_the_distributions_of_the_precisions() {
    let (x, t) = problem(3, 50);
    let (model, report) = variational().fit(x.view(), &Targets::real(t.view())).unwrap();
    let q = report.precisions.unwrap();
    assert_eq!((q.shape, &q.mean), (0.5 + 1e-6, &model.alpha));
    let skip = usize::from(model.intercept_alpha.is_some());
    let variances = model.weight_covariance().diag().to_vec();
    for (i, (mean, rate)) in q.mean.iter().zip(&q.rate).enumerate() {
        assert!((q.shape / rate / mean - 1.0).abs() < 1e-12);
        let w = model.expansion.weights[[i, 0]];
        let expected = 1e-6 + 0.5 * (w * w + variances[i + skip]);
        assert!((rate / expected - 1.0).abs() < 0.02, "{rate} {expected}");
    }
    let (shape, rate) = q.noise.unwrap();
    assert_eq!(model.posterior.as_ref().unwrap().noise_degrees, Some(2.0 * shape));
    assert_eq!(model.predict(x.view()).unwrap().noise_degrees, Some(2.0 * shape));
    assert!((shape - 25.0 - 1e-6).abs() < 1e-9 && (rate / shape / model.noise_variance().unwrap() - 1.0).abs() < 1e-12);
    let fixed = Rvm { likelihood: Gaussian { noise_variance: Some(0.04) }.into(), ..variational() };
    let (_, report) = fixed.fit(x.view(), &Targets::real(t.view())).unwrap();
    assert_eq!(report.precisions.unwrap().noise, None);
    let (_, report) = Rvm::tipping2001().fit(x.view(), &Targets::real(t.view())).unwrap();
    assert_eq!(report.precisions, None);
}

/// Rows that differ by rounding only share one basis function, as equal rows do. Two basis functions would have two
/// priors.
#[test]
fn rows_that_differ_by_rounding_are_fitted_as_equal_rows() {
    let mut random = rand_pcg::Pcg64::seed_from_u64(12);
    let mut normal = || -> f64 { StandardNormal.sample(&mut random) };
    let half = Array2::from_shape_simple_fn((30, 2), &mut normal);
    let t = Array1::from_shape_fn(60, |i| half[[i % 30, 0]].sin() + 0.1 * normal());
    let equal = ndarray::concatenate![Axis(0), half, half];
    let labels: Vec<usize> = t.iter().map(|t| usize::from(*t > 0.0)).collect();
    let gaussian = Rvm {
        kernel: Rbf { gamma: 0.5.into() }.into(),
        inference: Variational::default().into(),
        max_iterations: 300,
        ..Rvm::tipping2001()
    };
    let bernoulli = Rvm { likelihood: Bernoulli::default().into(), ..gaussian.clone() };
    for (rvm, targets) in [(&gaussian, Targets::real(t.view())), (&bernoulli, Targets::classes(&labels, 2))] {
        let fit = |x: &Array2<f64>| {
            let model = rvm.fit(x.view(), &targets).unwrap().0;
            (model.relevance.len(), model.predict_mean(half.view()).unwrap())
        };
        let (size, expected) = fit(&equal);
        assert_eq!(size, 30);
        for by in [1e-15, -1e-15] {
            let mut apart = equal.clone();
            apart.slice_mut(s![30.., ..]).mapv_inplace(|v| v + by * (1.0 + v.abs()));
            let (found, mean) = fit(&apart);
            assert_eq!(found, 30, "{by}");
            // Equal rows of one class are merged into one row of twice the weight, and these are not. Rounding may
            // differ.
            close("mean", &mean.to_vec(), &expected.to_vec(), 1e-8);
        }
    }
}
