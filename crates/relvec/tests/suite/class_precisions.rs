//! One precision per class and basis function: golden values, derivatives, laws of the search.

use std::ops::ControlFlow;

use crate::support::{close, floats, golden, indices};
use ndarray::{Array1, Array2, ArrayView1, Axis};
use relvec::*;

fn rows(v: &serde_json::Value) -> Vec<f64> {
    v.as_array().unwrap().iter().flat_map(floats).collect()
}

fn flat(a: &Array2<f64>) -> Vec<f64> {
    a.iter().copied().collect()
}

fn by_class(kernel: Kernel) -> Rvm {
    let class_precisions = ClassPrecisions::PerClass;
    Rvm { kernel, likelihood: Softmax::default().into(), class_precisions, threads: Some(1), ..Rvm::tipping2001() }
}

/// Returns three classes: the second surrounds the first as a ring, and the third is far to one side of both.
fn ring(n: usize) -> (Array2<f64>, Vec<usize>) {
    let wave = |i: usize, a: f64| ((i as f64 * a).sin() * 43758.5453).fract();
    let labels: Vec<usize> = (0..n).map(|i| i % 3).collect();
    let x = Array2::from_shape_fn((n, 2), |(i, d)| {
        let angle = 6.3 * wave(i + 3, 12.9898);
        let on_circle = if d == 0 { angle.cos() } else { angle.sin() };
        let noise = 0.8 * (wave(i + 1, 78.233 + d as f64) + wave(i + 5, 39.425 - d as f64));
        noise + [0.0, 2.0 * on_circle, if d == 0 { 4.0 } else { 0.0 }][labels[i]]
    });
    (x, labels)
}

fn shared(at: Vec<f64>, relevance: Vec<usize>) -> Hyperparameters {
    Hyperparameters { relevance, alpha: at[1..].to_vec(), intercept_alpha: Some(at[0]), ..Hyperparameters::default() }
}

/// All quantities at given precisions agree with the golden record.
#[test]
fn quantities_at_given_precisions_agree_with_the_golden_record() {
    let case = golden("softmax3_gauss_n30");
    let record = &case.json["records"][1];
    let (active, alpha) = (indices(&record["active"]), floats(&record["alpha_class_major"]));
    let m = active.len();
    let class_alpha = (0..m).map(|i| (0..3).map(|k| Some(alpha[k * m + i])).collect()).collect();
    let relevance = active[1..].iter().map(|j| j - 1).collect();
    let at = Hyperparameters { class_alpha, ..shared(alpha[..m].to_vec(), relevance) };
    let labels: Vec<usize> = case.t.iter().map(|t| *t as usize).collect();
    let got = by_class(case.kernel()).evaluate(case.x.view(), &Targets::classes(&labels, 3), &at).unwrap();
    close("L", &[got.log_evidence], &[record["L"].as_f64().unwrap()], 1e-10);
    let class_major = |values: &[f64]| -> Vec<f64> {
        (0..3).flat_map(|k| (0..m).map(move |i| (i, k))).map(|(i, k)| values[i * 3 + k]).collect()
    };
    close("W", &class_major(&got.weights), &floats(&record["W_class_major"]), 1e-9);
    close("variances", &class_major(&got.variances), &floats(&record["Sigma_diag"]), 1e-9);
    let gradient = floats(&record["grad_log_alpha_exact_class_major"]);
    close("gradient", &class_major(&got.gradient_log_alpha), &gradient, 1e-9);
    let functions = got.model.predict_functions(case.test.view()).unwrap();
    close("mean", &flat(&functions.mean), &rows(&record["pred_activation_mean"]), 1e-9);
    for (found, expected) in functions.covariance.outer_iter().zip(record["pred_activation_cov"].as_array().unwrap()) {
        close("covariance", &found.iter().copied().collect::<Vec<_>>(), &rows(expected), 1e-9);
    }
    let probability = |moderation| flat(&got.model.predict_probability(case.test.view(), moderation).unwrap());
    close("plug-in", &probability(Moderation::PlugIn), &rows(&record["pred_prob_plugin"]), 1e-10);
    close("pairwise", &probability(Moderation::Posterior), &rows(&record["pred_prob_pairwise"]), 1e-10);
    close("integrated", &probability(Moderation::Posterior), &rows(&record["pred_prob_integrated"]), 0.02);
    let at_training = flat(&got.model.predict_probability(case.x.view(), Moderation::PlugIn).unwrap());
    close("training rows", &at_training[..15], &rows(&record["prob_first5"]), 1e-9);
}

/// If the precisions of all classes are equal, the model agrees with that of shared precisions, except for what all
/// functions have in common.
#[test]
fn equal_precisions_agree_with_shared_precisions() {
    let (x, labels) = ring(60);
    let weights = Array1::from_shape_fn(60, |i| 0.5 + (i % 4) as f64);
    let targets = Targets::classes(&labels, 3).with_weights(weights.view());
    let rvm = by_class(Rbf { gamma: 0.5.into() }.into());
    let at = shared(vec![0.5, 0.3, 2.0, 0.9, 1.4], vec![1, 12, 29, 44]);
    let own = rvm.evaluate(x.view(), &targets, &at).unwrap();
    let all = Rvm { class_precisions: ClassPrecisions::Shared, ..rvm }.evaluate(x.view(), &targets, &at).unwrap();
    close("L", &[own.log_evidence], &[all.log_evidence], 1e-12);
    close("w", &own.weights, &all.weights, 1e-9);
    close("kernel", &own.gradient_log_kernel, &all.gradient_log_kernel, 1e-8);
    let summed = |values: &[f64]| values.chunks(3).map(|v| v.iter().sum::<f64>()).collect::<Vec<f64>>();
    close("gradient", &summed(&own.gradient_log_alpha), &all.gradient_log_alpha, 1e-8);
    for moderation in [Moderation::Posterior, Moderation::PlugIn] {
        let p = |e: &Evaluation| flat(&e.model.predict_probability(x.view(), moderation).unwrap());
        close("probabilities", &p(&own), &p(&all), 1e-9);
    }
}

/// A weight outside the model has an infinite precision. All quantities are the limits for large precisions, and the
/// exact gradients equal finite differences of the evidence.
#[test]
fn absent_weights_are_a_limit_and_gradients_equal_differences() {
    let (x, labels) = ring(45);
    let targets = Targets::classes(&labels, 3);
    let kernel = |values: &[f64]| Kernel::from(RationalQuadratic { gamma: vec![values[0], values[1]].into(), shape: values[2] });
    let values = [0.6, 1.1, 1.5];
    let some = vec![
        vec![Some(0.4), Some(0.8), None],
        vec![Some(1.0), None, None],
        vec![None, Some(0.7), Some(2.0)],
        vec![Some(0.6), Some(0.9), Some(1.7)],
    ];
    let at = |class_alpha: &[Vec<Option<f64>>]| Hyperparameters {
        class_alpha: class_alpha.to_vec(),
        ..shared(vec![1.0; 4], vec![4, 20, 33])
    };
    let evaluate = |class_alpha: &[Vec<Option<f64>>], values: &[f64]| {
        by_class(kernel(values)).evaluate(x.view(), &targets, &at(class_alpha)).unwrap()
    };
    let here = evaluate(&some, &values);
    assert_eq!(here.model.posterior.as_ref().unwrap().factor.len(), 8);
    let far: Vec<Vec<Option<f64>>> = some.iter().map(|row| row.iter().map(|a| a.or(Some(1e13))).collect()).collect();
    let limit = evaluate(&far, &values);
    close("L", &[limit.log_evidence], &[here.log_evidence], 1e-9);
    for moderation in [Moderation::Posterior, Moderation::PlugIn] {
        let p = |e: &Evaluation| flat(&e.model.predict_probability(x.view(), moderation).unwrap());
        close("probabilities", &p(&limit), &p(&here), 1e-9);
    }
    let again = Model::from_json(&here.model.to_json().unwrap()).unwrap();
    assert_eq!(again, here.model);
    let h = 1e-5;
    for i in 0..some.len() {
        for k in 0..3 {
            let side = |by: f64| {
                let mut moved = some.clone();
                moved[i][k] = moved[i][k].map(|a| a * f64::exp(by));
                evaluate(&moved, &values).log_evidence
            };
            close("log alpha", &[here.gradient_log_alpha[3 * i + k]], &[(side(h) - side(-h)) / (2.0 * h)], 1e-6);
        }
    }
    for (i, slope) in here.gradient_log_kernel.iter().enumerate() {
        let side = |by: f64| {
            let mut moved = values;
            moved[i] *= f64::exp(by);
            evaluate(&some, &moved).log_evidence
        };
        close("kernel", &[*slope], &[(side(h) - side(-h)) / (2.0 * h)], 1e-6);
    }
    // Quality and sparsity factors of a column outside the model of one class agree with those computed with the weight
    // in the model.
    for (i, row) in [4usize, 20, 33].iter().enumerate() {
        for k in (0..3).filter(|k| some[i + 1][*k].is_some()) {
            let (place, weight) = (3 * (row + 1) + k, 3 * (i + 1) + k);
            close("Q", &[here.quality_in_model[place]], &[some[i + 1][k].unwrap() * here.weights[weight]], 1e-7);
        }
    }
}

/// For every scheme the evidence never falls and ends above that of shared precisions, and weights that no class needs
/// are pruned. The model follows from its own precisions, does not depend on threads, and survives its file.
#[test]
fn evidence_of_class_precisions_exceeds_that_of_shared_ones() {
    let (x, labels) = ring(150);
    let targets = Targets::classes(&labels, 3);
    for inference in [Inference::Search(Search::default()), Inference::MacKay(MacKay::default()), Inference::Em(Em::default())] {
        let rvm = Rvm { inference, max_iterations: 1000, ..by_class(Rbf { gamma: 0.7.into() }.into()) };
        let (model, report) = rvm.fit(x.view(), &targets).unwrap();
        let name = rvm.inference.name();
        let all = Rvm { class_precisions: ClassPrecisions::Shared, ..rvm.clone() };
        let (one, of_all) = all.fit(x.view(), &targets).unwrap();
        let (evidence, before) = (model.log_evidence.unwrap(), one.log_evidence.unwrap());
        println!("{name}: {before} {} -> {evidence} {}, {:?}", one.relevance.len(), model.relevance.len(), report.certificate);
        assert!(report.trace.windows(2).all(|w| w[1].log_evidence >= w[0].log_evidence - 1e-8), "{name}");
        if of_all.status == Status::Converged {
            assert!(evidence > before + 1.0, "{name}: {evidence}, shared {before}");
            assert_eq!(report.status, Status::Converged);
            let gone = model.class_alpha.iter().flatten().filter(|a| a.is_none()).count();
            assert!(gone > 0, "{name}: every class has every weight");
        }
        assert_eq!(model.class_alpha.len(), model.relevance.len() + usize::from(model.intercept_alpha.is_some()));
        let first = usize::from(model.intercept_alpha.is_some());
        for (i, row) in model.class_alpha[first..].iter().enumerate() {
            let least = row.iter().flatten().copied().fold(f64::INFINITY, f64::min);
            assert_eq!(model.alpha[i], least);
            let zero = |k: usize| model.expansion.weights[[i, k]] == 0.0;
            assert!((0..3).all(|k| row[k].is_some() != zero(k)), "{name}: a weight is 0 where it is not in the model");
        }
        let determined = model.well_determined();
        assert!(determined.len() == model.relevance.len() && determined.iter().all(|g| (0.0..=1.0).contains(g)));
        let again = rvm.evaluate(x.view(), &targets, &Hyperparameters::of(&model)).unwrap();
        close(name, &[again.log_evidence], &[evidence], 1e-9);
        close(name, &flat(&again.model.expansion.weights), &flat(&model.expansion.weights), 1e-6);
        let p = model.predict_probability(x.view(), Moderation::Posterior).unwrap();
        assert!(p.sum_axis(Axis(1)).iter().all(|s| (s - 1.0).abs() < 1e-12));
        let top = |row: ArrayView1<f64>| (0..3).max_by(|k, l| row[*k].total_cmp(&row[*l])).unwrap();
        let wrong = p.outer_iter().zip(&labels).filter(|(row, label)| top(*row) != **label).count();
        assert!(wrong < 30, "{name}: {wrong} errors of 150");
        assert_eq!(Model::from_json(&model.to_json().unwrap()).unwrap(), model);
        let (with_two, _) = Rvm { threads: Some(2), ..rvm }.fit(x.view(), &targets).unwrap();
        assert_eq!(with_two, model);
    }
}

/// At convergence neither the addition of a weight nor a change of a precision gains more than the tolerance.
#[test]
fn single_actions_gain_little_at_convergence() {
    let (x, labels) = ring(90);
    let targets = Targets::classes(&labels, 3);
    let rvm = by_class(Rbf { gamma: 0.5.into() }.into());
    let (model, report) = rvm.fit(x.view(), &targets).unwrap();
    assert_eq!(report.status, Status::Converged, "{:?}", report.certificate);
    let there = rvm.evaluate(x.view(), &targets, &Hyperparameters::of(&model)).unwrap();
    let adds = there.actions.iter().filter(|a| a.kind == ActionKind::Add).map(|a| a.gain).fold(0.0, f64::max);
    close("largest gain", &[adds], &[report.certificate.largest_gain.unwrap()], 1e-3);
    // Additions count only if they raise the evidence at the new mode, whatever their predicted gain is.
    if let Some((place, _)) = there.actions.iter().enumerate().find(|(_, a)| a.kind == ActionKind::Add && a.gain == adds) {
        let (row, k) = (place / 3 - 1, place % 3);
        let mut at = Hyperparameters::of(&model);
        let alpha = there.actions[place].alpha.unwrap();
        let i = at.relevance.iter().position(|r| *r == row).unwrap_or_else(|| {
            at.relevance.push(row);
            at.alpha.push(alpha);
            at.class_alpha.push(vec![None; 3]);
            at.relevance.len() - 1
        });
        at.class_alpha[i + usize::from(at.intercept_alpha.is_some())][k] = Some(alpha);
        let with_it = rvm.evaluate(x.view(), &targets, &at).unwrap();
        assert!(with_it.log_evidence < there.log_evidence + 0.01, "{} {}", with_it.log_evidence, there.log_evidence);
    }
    // The last updates of these schemes would lower the evidence, because the mode changes with the precisions.
    let slopes: Vec<f64> = there.gradient_log_alpha_fixed.iter().map(|g| g.abs()).collect();
    assert!(slopes.iter().all(|g| *g < 0.2), "{slopes:?}");
    let largest = slopes.iter().copied().fold(0.0, f64::max);
    close("largest gradient", &[largest], &[report.certificate.largest_gradient], 1e-3);
}

/// Two classes have one function, for which only the sum of the prior variances of its two weights matters.
#[test]
fn class_precisions_gain_nothing_for_two_classes() {
    let case = golden("cls_2d_gauss_n50");
    let logistic = || Rvm { likelihood: Bernoulli::default().into(), ..by_class(case.kernel()) };
    let pairs: [[Option<f64>; 2]; 3] = [[Some(0.4), Some(1.2)], [None, Some(0.8)], [Some(2.0), None]];
    let sum = |pair: &[Option<f64>; 2]| 1.0 / pair.iter().flatten().map(|a| 1.0 / a).sum::<f64>();
    let at = shared(pairs.iter().map(sum).collect(), vec![7, 31]);
    let own = Hyperparameters { class_alpha: pairs.iter().map(|pair| pair.to_vec()).collect(), ..at.clone() };
    let evaluate = |rvm: Rvm, at: &Hyperparameters| case.with_targets(|x, t| rvm.evaluate(x, t, at).unwrap());
    let (own, one) = (evaluate(by_class(case.kernel()), &own), evaluate(logistic(), &at));
    close("L", &[own.log_evidence], &[one.log_evidence], 1e-12);
    close("w", &own.weights.chunks(2).map(|w| w[1] - w[0]).collect::<Vec<_>>(), &one.weights, 1e-9);
    close("kernel", &own.gradient_log_kernel, &one.gradient_log_kernel, 1e-9);
    for moderation in [Moderation::Posterior, Moderation::PlugIn] {
        let p = |e: &Evaluation| flat(&e.model.predict_probability(case.test.view(), moderation).unwrap());
        close("p", &p(&own), &p(&one), 1e-9);
    }
    let fit = |rvm: Rvm| case.with_targets(|x, t| rvm.fit(x, t).unwrap().0);
    let (own, one) = (fit(by_class(case.kernel())), fit(logistic()));
    let gain = own.log_evidence.unwrap() - one.log_evidence.unwrap();
    assert!((-1e-6..0.1).contains(&gain), "{gain}");
    assert!(one.class_alpha.is_empty());
}

/// A fit that is stopped or short of time has a model, and cross-validation repeats the search in each fold.
#[test]
fn class_precisions_respect_limits_and_cross_validation() {
    let (x, labels) = ring(90);
    let targets = Targets::classes(&labels, 3);
    let rvm = Rvm { cv: Some(3), ..by_class(Rbf { gamma: 0.5.into() }.into()) };
    let (model, report) = rvm.fit(x.view(), &targets).unwrap();
    assert!(!model.class_alpha.is_empty());
    let validation = report.validation.unwrap();
    assert_eq!(validation.folds, 3);
    let plain = Rvm { cv: None, ..rvm };
    for limit in [1, 5, report.iterations - 1] {
        let mut calls = 0;
        let mut stop = |_: &Progress| {
            calls += 1;
            if calls >= limit { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let (model, report) = plain.fit_with(x.view(), &targets, &mut stop, &Interrupt::default()).unwrap();
        assert_eq!((report.status, report.iterations), (Status::Stopped, limit));
        assert!(!model.class_alpha.is_empty());
        assert!(model.predict_probability(x.view(), Moderation::Posterior).unwrap().iter().all(|p| p.is_finite()));
    }
    let hurried = Rvm { time_limit: Some(1e-9), ..plain.clone() };
    let (model, report) = hurried.fit(x.view(), &targets).unwrap();
    assert_eq!((report.status, model.n_classes()), (Status::TimeLimit, Some(3)));
    // A search from this model starts at shared precisions, and its evidence is not lower.
    let (full, _) = plain.fit(x.view(), &targets).unwrap();
    let (further, _) = plain.starting_from(&full).unwrap().fit(x.view(), &targets).unwrap();
    assert!(further.log_evidence.unwrap() > full.log_evidence.unwrap() - 1.0);
}

/// Few rows, classes of one row each, and equal rows give a finite result.
#[test]
fn class_precisions_fit_very_few_rows() {
    let rvm = by_class(Rbf { gamma: 0.5.into() }.into());
    for (x, labels) in [
        (Array2::from_shape_fn((3, 2), |(i, d)| (i * 2 + d) as f64), vec![0, 1, 2]),
        (Array2::ones((6, 1)), vec![0, 1, 2, 0, 1, 2]),
        (Array2::from_shape_fn((8, 1), |(i, _)| i as f64), (0..8).collect()),
    ] {
        let count = labels.iter().max().unwrap() + 1;
        let (model, _) = rvm.fit(x.view(), &Targets::classes(&labels, count)).unwrap();
        let p = model.predict_probability(x.view(), Moderation::Posterior).unwrap();
        assert!(p.iter().all(|p| p.is_finite()) && p.sum_axis(Axis(1)).iter().all(|s| (s - 1.0).abs() < 1e-12));
    }
}

#[test]
fn class_precisions_reject_unsupported_settings() {
    let (x, labels) = ring(30);
    let message = |rvm: Rvm| rvm.fit(x.view(), &Targets::classes(&labels, 3)).unwrap_err().to_string();
    let rvm = || by_class(Rbf { gamma: 0.5.into() }.into());
    let bernoulli = || Rvm { likelihood: Bernoulli::default().into(), ..rvm() };
    let hyperpriors = Hyperpriors { a: 0.1, ..Hyperpriors::default() };
    for (rvm, expected) in [
        (Rvm { likelihood: Gaussian::default().into(), ..rvm() }, "a likelihood for classes"),
        (Rvm { multi_class: MultiClass::OneVsRest, ..bernoulli() }, "separate models of two classes"),
        (Rvm { inference: Inference::Variational(Variational::default()), ..bernoulli() }, "separate models of two classes"),
        (Rvm { sparsity: 1.0.into(), ..rvm() }, "which apply to whole kernels"),
        (Rvm { inference: Inference::Em(Em { hyperpriors, ..Em::default() }), ..rvm() }, "no hyperpriors"),
    ] {
        let found = message(rvm);
        assert!(found.contains("class_precisions") && found.contains(expected), "{found}");
    }
    let at = Hyperparameters { class_alpha: vec![vec![Some(1.0); 3]], ..shared(vec![1.0, 1.0], vec![3]) };
    let found = rvm().evaluate(x.view(), &Targets::classes(&labels, 3), &at).unwrap_err().to_string();
    assert!(found.contains("class_alpha = 1 row: expected no rows, or 2 rows"), "{found}");
    // Altered files are rejected.
    let (model, _) = rvm().fit(x.view(), &Targets::classes(&labels, 3)).unwrap();
    let mut broken = model.clone();
    broken.class_alpha.pop();
    let found = Model::from_json(&broken.to_json().unwrap()).unwrap_err().to_string();
    assert!(found.contains("model.class_alpha: found"), "{found}");
    let mut broken = model;
    let place = broken.class_alpha.iter_mut().flatten().find(|a| a.is_some()).unwrap();
    *place = None;
    let found = Model::from_json(&broken.to_json().unwrap()).unwrap_err().to_string();
    assert!(found.contains("model.posterior.factor: found"), "{found}");
}
