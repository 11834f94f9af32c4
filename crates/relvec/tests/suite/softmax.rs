//! Several classes under the softmax: golden values, the special case of two classes, and laws of the evidence.

use crate::support::{close, floats, golden, indices};
use ndarray::{Array1, Array2, ArrayView1, Axis, s};
use rand::{RngExt, SeedableRng};
use relvec::*;

fn labels(t: ArrayView1<f64>) -> Vec<usize> {
    t.iter().map(|t| *t as usize).collect()
}

fn rows(v: &serde_json::Value) -> Vec<f64> {
    v.as_array().unwrap().iter().flat_map(floats).collect()
}

fn softmax(kernel: Kernel) -> Rvm {
    Rvm { kernel, likelihood: Softmax::default().into(), threads: Some(1), ..Rvm::tipping2001() }
}

/// All quantities at given precisions, which the weights of a basis function share, agree with the golden record.
#[test]
fn quantities_of_three_classes_agree_with_the_golden_record() {
    let case = golden("softmax3_gauss_n30");
    let record = &case.json["records"][0];
    let rvm = softmax(case.kernel());
    let (active, alpha) = (indices(&record["active"]), floats(&record["alpha_class_major"]));
    let m = active.len();
    assert_eq!(active[0], 0);
    let at = Hyperparameters {
        relevance: active[1..].iter().map(|j| j - 1).collect(),
        alpha: alpha[1..m].to_vec(),
        intercept_alpha: Some(alpha[0]),
        noise_variance: None,
        ..Hyperparameters::default()
    };
    let targets = labels(case.t.view());
    let got = rvm.evaluate(case.x.view(), &Targets::classes(&targets, 3), &at).unwrap();
    close("L", &[got.log_evidence], &[record["L"].as_f64().unwrap()], 1e-10);
    let by_class = |values: &[f64]| -> Vec<f64> {
        (0..3).flat_map(|k| (0..m).map(move |i| (i, k))).map(|(i, k)| values[i * 3 + k]).collect()
    };
    close("W", &by_class(&got.weights), &floats(&record["W_class_major"]), 1e-9);
    let over_classes = |key: &str| -> Vec<f64> {
        let all = floats(&record[key]);
        (0..m).map(|i| (0..3).map(|k| all[k * m + i]).sum()).collect()
    };
    close("gradient", &got.gradient_log_alpha, &over_classes("grad_log_alpha_exact_class_major"), 1e-9);
    // The K weights have one direction beside their contrasts, whose variance is that of the prior.
    let variances: Vec<f64> = over_classes("Sigma_diag").iter().zip(&alpha).map(|(v, a)| v - 1.0 / a).collect();
    close("variances", &got.variances, &variances, 1e-9);
    let model = &got.model;
    let functions = model.predict_functions(case.test.view()).unwrap();
    let flat = |a: &Array2<f64>| a.iter().copied().collect::<Vec<f64>>();
    close("mean", &flat(&functions.mean), &rows(&record["pred_activation_mean"]), 1e-9);
    for (pair, expected) in functions.covariance.outer_iter().zip(record["pred_activation_cov"].as_array().unwrap()) {
        // Variances of differences, in which the common part of all functions cancels.
        let expected = rows(expected);
        let difference = |at: &dyn Fn(usize, usize) -> f64, k: usize, l: usize| at(k, k) + at(l, l) - 2.0 * at(k, l);
        let all = |at: &dyn Fn(usize, usize) -> f64| (0..9).map(|i| difference(at, i / 3, i % 3)).collect::<Vec<f64>>();
        close("covariance", &all(&|k, l| pair[[k, l]]), &all(&|k, l| expected[3 * k + l]), 1e-9);
    }
    let probability = |moderation| flat(&model.predict_probability(case.test.view(), moderation).unwrap());
    close("plug-in", &probability(Moderation::PlugIn), &rows(&record["pred_prob_plugin"]), 1e-10);
    close("pairwise", &probability(Moderation::Posterior), &rows(&record["pred_prob_pairwise"]), 1e-10);
    close("integrated", &probability(Moderation::Posterior), &rows(&record["pred_prob_integrated"]), 0.02);
    let at_training = flat(&model.predict_probability(case.x.view(), Moderation::PlugIn).unwrap());
    close("training rows", &at_training[..15], &rows(&record["prob_first5"]), 1e-9);
}

/// Returns three classes of rows around centres in the plane, one of them around two centres.
fn clusters(n: usize) -> (Array2<f64>, Vec<usize>) {
    let centres = [(0.0, 0.0), (2.0, 0.3), (0.8, 1.8), (-1.5, 1.2)];
    let wave = |i: usize, a: f64| ((i as f64 * a).sin() * 43758.5453).fract();
    let x = Array2::from_shape_fn((n, 2), |(i, d)| {
        let (cx, cy) = centres[i % 4];
        (if d == 0 { cx } else { cy }) + 0.9 * (wave(i + 1, 12.9898 + d as f64) + wave(i + 7, 78.233 - d as f64))
    });
    let labels = (0..n).map(|i| (i % 4) % 3).collect();
    (x, labels)
}

/// Returns eight classes: sectors of a ring with blurred borders.
fn rings(n: usize) -> (Array2<f64>, Vec<usize>) {
    let wave = |i: usize, a: f64| ((i as f64 * a).sin() * 43758.5453).fract();
    let angle = |i: usize| (i % 64) as f64 / 64.0 * std::f64::consts::TAU;
    let x = Array2::from_shape_fn((n, 2), |(i, d)| {
        let radius = 2.0 + 0.4 * wave(i + 1, 12.9898);
        let turned = angle(i) + 0.15 * wave(i + 7, 78.233);
        radius * if d == 0 { turned.cos() } else { turned.sin() }
    });
    (x, (0..n).map(|i| (i % 64) / 8).collect())
}

/// With two classes the softmax is the logistic likelihood: alpha is twice that of the difference of the weights, and
/// all else is equal, at given precisions and for whole fits.
#[test]
fn softmax_of_two_classes_equals_the_logistic_model() {
    for name in ["cls_1d_gauss_n36", "cls_2d_gauss_n50"] {
        let case = golden(name);
        let both = |kernel: Kernel| [softmax(kernel.clone()), Rvm { likelihood: Bernoulli::default().into(), ..softmax(kernel) }];
        let record = &case.json["fixed"];
        let (active, alpha) = (indices(&record["active"]), floats(&record["alpha"]));
        let skip = usize::from(active[0] == 0);
        let at = |factor: f64| Hyperparameters {
            relevance: active[skip..].iter().map(|j| j - 1).collect(),
            alpha: alpha[skip..].iter().map(|a| a * factor).collect(),
            intercept_alpha: (skip == 1).then(|| alpha[0] * factor),
            noise_variance: None,
            ..Hyperparameters::default()
        };
        let of = |rvm: &Rvm, factor: f64| case.with_targets(|x, t| rvm.evaluate(x, t, &at(factor)).unwrap());
        let [soft, logistic] = both(case.kernel());
        let (soft, logistic) = (of(&soft, 2.0), of(&logistic, 1.0));
        close("L", &[soft.log_evidence], &[logistic.log_evidence], 1e-12);
        let difference: Vec<f64> = soft.weights.chunks(2).map(|w| w[1] - w[0]).collect();
        close("w", &difference, &logistic.weights, 1e-10);
        close("gradient", &soft.gradient_log_alpha, &logistic.gradient_log_alpha, 1e-10);
        close("kernel", &soft.gradient_log_kernel, &logistic.gradient_log_kernel, 1e-10);
        let gains = |e: &Evaluation| e.actions.iter().map(|a| a.gain).collect::<Vec<_>>();
        close("gains", &gains(&soft), &gains(&logistic), 1e-9);

        for inference in
            [Inference::Search(Search::default()), Inference::MacKay(MacKay::default()), Inference::Em(Em::default())]
        {
            let fit = |rvm: Rvm| case.with_targets(|x, t| Rvm { inference: inference.clone(), ..rvm }.fit(x, t).unwrap().0);
            let [soft, logistic] = both(case.kernel()).map(fit);
            close(name, &[soft.log_evidence.unwrap()], &[logistic.log_evidence.unwrap()], 1e-6);
            assert_eq!(soft.relevance, logistic.relevance, "{name} {}", inference.name());
            let probability =
                |m: &Model| m.predict_probability(case.test.view(), Moderation::Posterior).unwrap().column(1).to_vec();
            close(name, &probability(&soft), &probability(&logistic), 1e-6);
        }
    }
}

/// The exact gradients of the evidence in log alpha and in the kernel's parameters equal finite differences.
#[test]
fn gradients_equal_finite_differences() {
    let (x, labels) = clusters(40);
    let weights = Array1::from_shape_fn(40, |i| 0.5 + (i % 3) as f64);
    let targets = Targets::classes(&labels, 3).with_weights(weights.view());
    let kernel = |values: &[f64]| Kernel::from(RationalQuadratic { gamma: vec![values[0], values[1]].into(), shape: values[2] });
    let at = |alpha: &[f64]| Hyperparameters {
        relevance: vec![3, 8, 21, 30],
        alpha: alpha[1..].to_vec(),
        intercept_alpha: Some(alpha[0]),
        noise_variance: None,
        ..Hyperparameters::default()
    };
    let (alpha, values) = ([0.3, 0.5, 1.0, 2.0, 0.7], [0.6, 1.1, 1.5]);
    let evidence = |alpha: &[f64], values: &[f64]| softmax(kernel(values)).evaluate(x.view(), &targets, &at(alpha)).unwrap();
    let here = evidence(&alpha, &values);
    let h = 1e-5;
    let moved = |v: &[f64], i: usize, by: f64| {
        v.iter().enumerate().map(|(k, v)| if k == i { v * by.exp() } else { *v }).collect::<Vec<_>>()
    };
    for i in 0..alpha.len() {
        let side = |by: f64| evidence(&moved(&alpha, i, by), &values).log_evidence;
        close("log alpha", &[here.gradient_log_alpha[i]], &[(side(h) - side(-h)) / (2.0 * h)], 1e-6);
    }
    for i in 0..values.len() {
        let side = |by: f64| evidence(&alpha, &moved(&values, i, by)).log_evidence;
        close("kernel", &[here.gradient_log_kernel[i]], &[(side(h) - side(-h)) / (2.0 * h)], 1e-6);
    }
}

/// For every scheme the objective never falls, converged fits leave nothing to gain, and probabilities sum to 1. The
/// model separates the classes and survives its file.
#[test]
fn every_scheme_fits_three_classes() {
    let (x, labels) = clusters(160);
    for inference in [Inference::Search(Search::default()), Inference::MacKay(MacKay::default()), Inference::Em(Em::default())] {
        let rvm = Rvm { inference, max_iterations: 200, ..softmax(Rbf { gamma: 0.7.into() }.into()) };
        let (model, report) = rvm.fit(x.view(), &Targets::classes(&labels, 3)).unwrap();
        let name = model.inference.clone().unwrap();
        assert_eq!(model.n_classes(), Some(3));
        assert!(report.trace.windows(2).all(|w| w[1].log_evidence >= w[0].log_evidence - 1e-9), "{name}");
        if name == "search" {
            assert_eq!(report.status, Status::Converged, "{:?}", report.certificate);
            assert!(model.relevance.len() < 20, "{} relevance vectors", model.relevance.len());
        }
        assert!(model.expansion.weights.sum_axis(Axis(1)).iter().all(|s| s.abs() < 1e-9), "{name}");
        for moderation in [Moderation::Posterior, Moderation::PlugIn] {
            let p = model.predict_probability(x.view(), moderation).unwrap();
            assert!(p.sum_axis(Axis(1)).iter().all(|s| (s - 1.0).abs() < 1e-12));
            let top = |row: ArrayView1<f64>| (0..3).max_by(|k, l| row[*k].total_cmp(&row[*l])).unwrap();
            let wrong = p.outer_iter().zip(&labels).filter(|(row, label)| top(*row) != **label).count();
            assert!(wrong < 32, "{name}: {wrong} errors of 160");
        }
        let again = Model::from_json(&model.to_json().unwrap()).unwrap();
        assert_eq!(again, model);
        println!(
            "{name}: {} after {}, {} vectors {:?} {:?} {:?}",
            model.log_evidence.unwrap(),
            report.iterations,
            model.relevance.len(),
            report.status,
            report.certificate,
            report.trace.iter().map(|t| t.log_evidence).collect::<Vec<_>>()
        );
    }
}

fn rule(multi_class: MultiClass) -> Rvm {
    Rvm { likelihood: Bernoulli::default().into(), multi_class, ..softmax(Rbf { gamma: 0.7.into() }.into()) }
}

/// The default for more than two classes is the softmax, to the bit.
#[test]
fn default_likelihood_of_several_classes_is_the_softmax() {
    let (x, labels) = clusters(80);
    let fit = |rvm: Rvm| rvm.fit(x.view(), &Targets::classes(&labels, 3)).unwrap().0;
    let joint = fit(rule(MultiClass::Joint));
    assert_eq!(joint, fit(rule(MultiClass::Auto)));
    assert_eq!(joint, fit(softmax(Rbf { gamma: 0.7.into() }.into())));
    assert_eq!((joint.likelihood.as_ref().unwrap().name(), joint.n_classes(), joint.outputs()), ("softmax", Some(3), 3));
    let at = Hyperparameters { relevance: vec![1, 5], alpha: vec![1.0, 2.0], ..Hyperparameters::default() };
    let evaluate = |rvm: Rvm| rvm.evaluate(x.view(), &Targets::classes(&labels, 3), &at).unwrap().log_evidence;
    assert_eq!(evaluate(rule(MultiClass::Joint)), evaluate(softmax(Rbf { gamma: 0.7.into() }.into())));
}

/// The models that the classifier contains are the fits to its binary tasks, and its probabilities follow from theirs.
#[test]
fn combined_models_equal_their_binary_models() {
    let (x, labels) = clusters(120);
    let weights = Array1::from_shape_fn(120, |i| 0.5 + (i % 3) as f64);
    let targets = Targets::classes(&labels, 3).with_weights(weights.view());
    let pairs = [(0, 1), (0, 2), (1, 2)];
    for multi_class in [MultiClass::OneVsRest, MultiClass::OneVsOne] {
        let (model, report) = rule(multi_class).fit(x.view(), &targets).unwrap();
        let committee = model.committee.as_ref().unwrap();
        assert_eq!((committee.rule, committee.members.len(), model.n_classes()), (multi_class, 3, Some(3)));
        assert_eq!(report.members.len(), 3);
        assert_eq!(report.iterations, report.members.iter().map(|m| m.iterations).sum::<usize>());
        let mut odds = vec![];
        for (k, member) in committee.members.iter().enumerate() {
            let used: Vec<usize> = match multi_class {
                MultiClass::OneVsOne => (0..120).filter(|n| [pairs[k].0, pairs[k].1].contains(&labels[*n])).collect(),
                _ => (0..120).collect(),
            };
            let second = if multi_class == MultiClass::OneVsOne { pairs[k].1 } else { k };
            let own: Vec<usize> = used.iter().map(|n| usize::from(labels[*n] == second)).collect();
            let weights = weights.select(Axis(0), &used);
            let two = Targets::classes(&own, 2).with_weights(weights.view());
            let by_hand = rule(MultiClass::Auto).fit(x.select(Axis(0), &used).view(), &two).unwrap().0;
            assert_eq!(member.expansion, by_hand.expansion);
            assert_eq!(member.relevance, by_hand.relevance.iter().map(|row| used[*row]).collect::<Vec<_>>());
            // The combined model has the centres and weights of its binary models.
            for (row, w) in member.relevance.iter().zip(&member.expansion.weights) {
                let place = model.relevance.binary_search(row).unwrap();
                assert_eq!(model.expansion.weights[[place, k]], *w);
                let (FittedBasis::Kernel { centres, .. }, FittedBasis::Kernel { .. }) =
                    (&model.expansion.basis, &member.expansion.basis)
                else {
                    panic!("a kernel was fitted")
                };
                assert_eq!(centres.row(place), x.row(*row));
            }
            odds.push(by_hand.predict_probability(x.view(), Moderation::Posterior).unwrap().column(1).to_owned());
        }
        let p = model.predict_probability(x.view(), Moderation::Posterior).unwrap();
        for (n, p) in p.outer_iter().enumerate() {
            assert!((p.sum() - 1.0).abs() < 1e-12);
            if multi_class == MultiClass::OneVsRest {
                let total: f64 = odds.iter().map(|o| o[n]).sum();
                close("normalised", &p.to_vec(), &odds.iter().map(|o| o[n] / total).collect::<Vec<_>>(), 1e-12);
                continue;
            }
            // The probabilities minimise sum (r_lk p_k - r_kl p_l)^2 on the simplex, so that no small step along it is
            // lower.
            let second = |k: usize, l: usize| odds[pairs.iter().position(|pair| *pair == (k, l)).unwrap()][n];
            let r = |k: usize, l: usize| if k < l { 1.0 - second(k, l) } else { second(l, k) };
            let value = |p: &[f64]| -> f64 { pairs.iter().map(|(k, l)| (r(*l, *k) * p[*k] - r(*k, *l) * p[*l]).powi(2)).sum() };
            let here = value(&p.to_vec());
            for (k, l) in [(0, 1), (1, 2), (2, 0), (1, 0), (2, 1), (0, 2)] {
                let mut moved = p.to_vec();
                moved[k] += 1e-4;
                moved[l] -= 1e-4;
                assert!(value(&moved) >= here - 1e-12, "{here} {moved:?}");
            }
        }
        let text = model.to_json().unwrap();
        let again = Model::from_json(&text).unwrap();
        assert_eq!((&again, again.to_json().unwrap()), (&model, text));
        // Values of the basis functions give equal probabilities.
        let FittedBasis::Kernel { kernel, centres } = &model.expansion.basis else { panic!("a kernel was fitted") };
        let mut phi = Array2::zeros((120, centres.nrows()));
        kernel.block(x.view(), centres.view(), phi.view_mut());
        let by_values = model.log_probability_from_basis(phi.view(), Moderation::Posterior).unwrap();
        close(
            "values",
            &by_values.mapv(f64::exp).iter().copied().collect::<Vec<_>>(),
            &p.iter().copied().collect::<Vec<_>>(),
            1e-9,
        );
    }
}

/// All binary models share one kernel: the rule "scale" uses all rows, even if a binary model has only some of them.
#[test]
fn binary_models_share_the_kernel() {
    let (x, labels) = clusters(90);
    let fit = |multi_class| {
        let rvm = Rvm { kernel: Rbf::default().into(), ..rule(multi_class) };
        rvm.fit(x.view(), &Targets::classes(&labels, 3)).unwrap().0
    };
    let joint = fit(MultiClass::Joint);
    for multi_class in [MultiClass::OneVsRest, MultiClass::OneVsOne] {
        let model = fit(multi_class);
        assert_eq!(model.kernel(), joint.kernel());
        assert!(model.committee.iter().flat_map(|c| &c.members).all(|member| member.kernel() == joint.kernel()));
    }
}

/// If binary fits are stopped early or have little time, there is a model of all classes.
#[test]
fn stopped_binary_fits_give_a_model_of_all_classes() {
    let (x, labels) = clusters(120);
    let targets = Targets::classes(&labels, 3);
    let mut calls = 0;
    let mut once = |_: &Progress| {
        calls += 1;
        if calls > 2 { std::ops::ControlFlow::Break(()) } else { std::ops::ControlFlow::Continue(()) }
    };
    let (model, report) = rule(MultiClass::OneVsRest).fit_with(x.view(), &targets, &mut once, &Interrupt::default()).unwrap();
    assert_eq!(report.status, Status::Stopped);
    assert_eq!(calls, 3, "the observer is asked no more");
    assert!(model.predict_probability(x.view(), Moderation::Posterior).unwrap().iter().all(|p| p.is_finite()));
    let hurried = Rvm { time_limit: Some(1e-9), ..rule(MultiClass::OneVsOne) };
    let (model, report) = hurried.fit(x.view(), &targets).unwrap();
    assert_eq!((report.status, model.n_classes()), (Status::TimeLimit, Some(3)));
}

#[test]
fn bad_classes_are_rejected() {
    let (x, labels) = clusters(24);
    let message =
        |rvm: Rvm, labels: &[usize], count: usize| rvm.fit(x.view(), &Targets::classes(labels, count)).unwrap_err().to_string();
    for multi_class in [MultiClass::Joint, MultiClass::OneVsRest, MultiClass::OneVsOne] {
        assert!(message(rule(multi_class), &labels, 4).contains("class 3 of 4 has no row"), "{multi_class:?}");
        let mut wrong = labels.clone();
        wrong[5] = 7;
        assert!(message(rule(multi_class), &wrong, 3).contains("row 5 has label 7"), "{multi_class:?}");
        let short = &labels[..20];
        assert!(message(rule(multi_class), short, 3).contains("24, one per row"), "{multi_class:?}");
    }
    let soft = softmax(Rbf::default().into());
    assert!(message(soft.clone(), &[0; 24], 1).contains("at least 2 classes, found 1"));
    assert!(message(soft.clone(), &[1; 24], 2).contains("every row (of positive weight) is of class 1"));
    let rvm = Rvm { multi_class: MultiClass::OneVsRest, ..soft.clone() };
    assert!(message(rvm, &labels, 3).contains("multi_class"));
    let rvm = Rvm { inference: Variational::default().into(), ..soft.clone() };
    assert!(message(rvm, &labels, 3).contains("one_vs_rest"));
    let rvm = Rvm { inference: Variational::default().into(), ..rule(MultiClass::Joint) };
    assert!(message(rvm, &labels, 3).contains("one_vs_rest"));
    let t = x.column(0).to_owned();
    let real = soft.fit(x.view(), &Targets::real(t.view())).unwrap_err().to_string();
    assert!(real.contains("needs class labels"), "{real}");
}

/// By default the variational scheme fits more than two classes one-vs-rest.
#[test]
fn variational_scheme_fits_several_classes_one_vs_rest() {
    let (x, labels) = clusters(60);
    let rvm = Rvm { inference: Variational::default().into(), max_iterations: 30, ..rule(MultiClass::Auto) };
    let model = rvm.fit(x.view(), &Targets::classes(&labels, 3)).unwrap().0;
    assert_eq!(model.committee.unwrap().rule, MultiClass::OneVsRest);
}

/// With as many classes as rows nothing can be learned, and the fit ends.
#[test]
fn one_class_per_row_is_fitted() {
    let n = 150;
    let x = Array2::from_shape_fn((n, 2), |(i, d)| ((i * (7 + 4 * d)) % n) as f64);
    let labels: Vec<usize> = (0..n).collect();
    let rvm = Rvm { max_iterations: 5, ..rule(MultiClass::Joint) };
    let (model, _) = rvm.fit(x.view(), &Targets::classes(&labels, n)).unwrap();
    // Moderation uses all pairs of classes, many thousands for each row.
    for (rows, moderation) in [(n, Moderation::PlugIn), (30, Moderation::Posterior)] {
        let p = model.predict_probability(x.slice(s![..rows, ..]), moderation).unwrap();
        assert!(p.sum_axis(Axis(1)).iter().all(|s| (s - 1.0).abs() < 1e-9));
    }
}

/// Damaged files are rejected.
#[test]
fn damaged_files_of_several_classes_are_rejected() {
    let (x, labels) = clusters(60);
    let fit = |rvm: Rvm| rvm.fit(x.view(), &Targets::classes(&labels, 3)).unwrap().0;
    let (joint, rest) = (fit(rule(MultiClass::Joint)), fit(rule(MultiClass::OneVsRest)));
    let refused = |model: &Model| Model::from_json(&model.to_json().unwrap()).unwrap_err().to_string();
    let mut broken = joint.clone();
    broken.expansion.intercept.pop();
    assert!(refused(&broken).contains("model.expansion.weights: found rows of 3"), "{}", refused(&broken));
    let mut broken = joint;
    broken.posterior.as_mut().unwrap().factor.pop();
    assert!(refused(&broken).contains("model.posterior.factor: found"), "{}", refused(&broken));
    let mut broken = rest.clone();
    broken.committee.as_mut().unwrap().members.pop();
    assert!(refused(&broken).contains("members"), "{}", refused(&broken));
    let mut broken = rest.clone();
    broken.committee.as_mut().unwrap().members[0].n_features = 5;
    assert!(refused(&broken).contains("members[0].n_features: found 5"), "{}", refused(&broken));
    let mut broken = rest;
    let FittedBasis::Kernel { kernel, .. } = &mut broken.committee.as_mut().unwrap().members[1].expansion.basis else {
        panic!("a kernel was fitted")
    };
    *kernel = kernel.with_parameters(&[0.1]);
    assert!(refused(&broken).contains("another kernel"), "{}", refused(&broken));
}

/// A kernel is learned from all classes at once, and is shared by all binary models. Useless features are found, and
/// the centres of binary models are not learned.
#[test]
fn kernels_are_learned_from_several_classes() {
    let (plane, labels) = clusters(150);
    let mut random = rand_pcg::Pcg64::seed_from_u64(3);
    let mut x = Array2::from_shape_simple_fn((150, 5), || random.random_range(-1.5..1.5));
    x.slice_mut(s![.., ..2]).assign(&plane);
    let ard = |multi_class| Rvm { kernel: Rbf { gamma: Gamma::Rule(GammaRule::EvidenceArd) }.into(), ..rule(multi_class) };
    let fit = |rvm: &Rvm| rvm.fit(x.view(), &Targets::classes(&labels, 3)).unwrap();
    for multi_class in [MultiClass::Joint, MultiClass::OneVsRest, MultiClass::OneVsOne] {
        let (model, report) = fit(&ard(multi_class));
        let search = report.kernel_search.expect("a kernel was learnt");
        let trial = &search.tried[search.chosen];
        assert!(trial.process.gain > 0.5, "{trial:?}");
        let relevance = &model.feature_relevance;
        assert!((relevance.iter().sum::<f64>() - 1.0).abs() < 1e-12);
        assert!(relevance[0] + relevance[1] > 0.9, "{multi_class:?}: {relevance:?}");
        for member in model.committee.iter().flat_map(|c| &c.members) {
            assert_eq!(member.kernel(), model.kernel());
        }
        let again = Model::from_json(&model.to_json().unwrap()).unwrap();
        assert_eq!(again, model);
        if multi_class != MultiClass::Joint {
            let moved = Rvm { centres: CentreRule::Learned, dictionary: 40.into(), ..rule(multi_class) };
            let refused = moved.fit(x.view(), &Targets::classes(&labels, 3)).unwrap_err().to_string();
            assert!(refused.contains("centres") && refused.contains("multi_class = joint"), "{refused}");
        }
    }
    let single = Rvm { kernel: Rbf { gamma: Gamma::Rule(GammaRule::Evidence) }.into(), ..rule(MultiClass::Joint) };
    let (model, report) = fit(&single);
    // One width, in units of the spread of each feature.
    assert!(model.feature_relevance.iter().all(|share| (share - 0.2).abs() < 1e-9), "{:?}", model.feature_relevance);
    assert!(report.kernel_search.unwrap().tried[0].evaluations > 0);
}

/// Centres are learned from all classes: the evidence rises, new rows are predicted better, and no centre is a row.
/// Neither the order of the rows nor threads matter.
#[test]
fn centres_are_learned_from_several_classes() {
    let ((x, labels), (new, truth)) = (clusters(300), clusters(1000));
    let rvm = |centres| {
        let kernel = Rbf { gamma: 2.0.into() }.into();
        Rvm { kernel, centres, dictionary: 5.into(), ..rule(MultiClass::Joint) }
    };
    let fit = |rvm: &Rvm, x: &Array2<f64>, labels: &[usize]| rvm.fit(x.view(), &Targets::classes(labels, 3)).unwrap();
    let (fixed, _) = fit(&rvm(CentreRule::Fixed), &x, &labels);
    let (moved, report) = fit(&rvm(CentreRule::Learned), &x, &labels);
    let search = report.centre_search.expect("centres were moved");
    assert!(search.kept && (search.moved, search.rows) == (5, 300), "{search:?}");
    assert_eq!(search.learned_log_evidence, moved.log_evidence.unwrap());
    assert!(moved.log_evidence.unwrap() > fixed.log_evidence.unwrap() + 5.0, "{search:?}");
    assert!(moved.learned_centres && Model::from_json(&moved.to_json().unwrap()).unwrap() == moved);
    let FittedBasis::Kernel { centres, .. } = &moved.expansion.basis else { panic!("a kernel") };
    assert!(!centres.outer_iter().any(|c| x.outer_iter().any(|row| row == c)));
    let loss = |model: &Model| {
        let p = model.predict_probability(new.view(), Moderation::Posterior).unwrap();
        truth.iter().enumerate().map(|(n, k)| -p[[n, *k]].ln()).sum::<f64>() / truth.len() as f64
    };
    assert!(loss(&moved) < loss(&fixed), "{} instead of {}", loss(&moved), loss(&fixed));
    let order: Vec<usize> = (0..300).map(|i| (i * 77) % 300).collect();
    let turned: Vec<usize> = order.iter().map(|i| labels[*i]).collect();
    let threads = Rvm { threads: Some(2), ..rvm(CentreRule::Learned) };
    assert_eq!(fit(&threads, &x.select(Axis(0), &order), &turned).0.log_evidence, moved.log_evidence);
}

/// The joint search of many classes ends no lower than one from the empty start, for any number of threads.
#[test]
fn many_classes_end_no_lower_than_from_the_empty_start() {
    let fit = |n: usize, start: Start, threads: usize| {
        let (x, labels) = rings(n);
        let inference = Search { start, ..Search::default() }.into();
        let rvm = Rvm { inference, threads: Some(threads), ..softmax(Rbf { gamma: 0.8.into() }.into()) };
        let (model, report) = rvm.fit(x.view(), &Targets::classes(&labels, 8)).unwrap();
        assert_eq!(report.status, Status::Converged, "{:?}", report.certificate);
        assert!(report.trace.windows(2).all(|w| w[1].log_evidence >= w[0].log_evidence - 1e-9));
        // The reported evidence is that of the model.
        let at = rvm.evaluate(x.view(), &Targets::classes(&labels, 8), &Hyperparameters::of(&model)).unwrap();
        close("L", &[at.log_evidence], &[model.log_evidence.unwrap()], 1e-9);
        let p = model.predict_probability(x.view(), Moderation::Posterior).unwrap();
        (model.log_evidence.unwrap(), model.relevance, p)
    };
    let (found, empty) = (fit(400, Start::Auto, 2), fit(400, Start::Empty, 2));
    assert!(found.0 > empty.0 - 1.0, "{} and {}", found.0, empty.0);
    assert_eq!(found, fit(400, Start::Auto, 1));
}

/// A fit of many classes respects time limits, the observer and the memory limit.
#[test]
fn many_classes_respect_limits() {
    let (x, labels) = rings(900);
    let targets = Targets::classes(&labels, 8);
    let rvm = softmax(Rbf { gamma: 0.8.into() }.into());
    let fit = |rvm: Rvm| rvm.fit(x.view(), &targets).unwrap();
    let (model, report) = fit(Rvm { time_limit: Some(1e-3), ..rvm.clone() });
    assert_eq!(report.status, Status::TimeLimit);
    // Candidates are not scanned again.
    assert_eq!(report.certificate.largest_gain, None);
    assert!(model.predict_probability(x.view(), Moderation::Posterior).unwrap().iter().all(|p| p.is_finite()));
    let (model, _) = fit(Rvm { memory_limit: Some(6_000_000), ..rvm.clone() });
    assert!(8 * (7 * model.relevance.len()).pow(2) < 6_000_000, "{} relevance vectors", model.relevance.len());
    let interrupt = Interrupt::default();
    interrupt.raise();
    let told = rvm.fit_with(x.view(), &targets, &mut silent, &interrupt);
    assert!(matches!(told, Err(Error::Interrupted)), "{told:?}");
}

/// A joint model of many classes supports every kind of basis functions and weights.
#[test]
fn many_classes_work_with_other_settings() {
    let (x, labels) = rings(320);
    let between = |i: usize, j: usize| (-0.8 * (&x.row(i) - &x.row(j)).mapv(|d| d * d).sum()).exp();
    let gram = Array2::from_shape_fn((320, 320), |(i, j)| between(i, j));
    let weights = Array1::from_shape_fn(320, |i| [1.0, 0.5, 2.0][i % 3]);
    let own = softmax(Rbf { gamma: 0.8.into() }.into());
    let given = Landmarks::Given(Centres(x.slice(s![..64, ..]).to_owned()));
    let plain = Targets::classes(&labels, 8);
    let cases = [
        ("weights", own.clone(), &x, plain.with_weights(weights.view())),
        ("given landmarks", Rvm { landmarks: given, ..own.clone() }, &x, plain),
        ("no bias", Rvm { bias: false, ..own.clone() }, &x, plain),
        ("sparsity", Rvm { sparsity: 1.0.into(), ..own.clone() }, &x, plain),
        ("centres", Rvm { dictionary: 40.into(), centres: CentreRule::Learned, ..own.clone() }, &x, plain),
        ("kernels", Rvm { kernels: vec![Linear {}.into(), own.kernel.clone()], ..own.clone() }, &x, plain),
        ("given basis", Rvm { basis: Basis::Given, ..own.clone() }, &gram, plain),
    ];
    for (name, rvm, x, targets) in cases {
        let fit = |start: Start| {
            let inference = Search { start, ..Search::default() }.into();
            let (model, report) = Rvm { inference, ..rvm.clone() }.fit(x.view(), &targets).unwrap();
            assert_eq!(report.status, Status::Converged, "{name}: {:?}", report.certificate);
            let p = model.predict_probability(x.view(), Moderation::Posterior).unwrap();
            assert!(p.iter().all(|p| (0.0..=1.0).contains(p)), "{name}");
            assert!(p.sum_axis(Axis(1)).iter().all(|sum| (sum - 1.0).abs() < 1e-12), "{name}");
            let wrong = labels.iter().enumerate().filter(|(n, k)| p.row(*n).iter().any(|other| *other > p[[*n, **k]])).count();
            assert!(wrong < 48, "{name}: {wrong} of 320 rows");
            model.log_evidence.unwrap()
        };
        let (pooled, empty) = (fit(Start::Auto), fit(Start::Empty));
        // Both are local optima, and these classes are easy.
        assert!(pooled > empty - 10.0, "{name}: {pooled} and {empty}");
    }
}

/// The matrices of all classes count towards the memory limit.
#[test]
fn matrices_of_all_classes_count_towards_the_memory_limit() {
    let (x, corners) = clusters(240);
    // Each of three classes is divided into four with about the same rows.
    let labels: Vec<usize> = corners.iter().enumerate().map(|(i, k)| 4 * k + (i / 4) % 4).collect();
    let fit = |inference: Inference, memory: u64| {
        let rvm = Rvm { inference, memory_limit: Some(memory), ..softmax(Rbf { gamma: 3.0.into() }.into()) };
        rvm.fit(x.view(), &Targets::classes(&labels, 12))
    };
    // 241 weights of 11 contrasts need 56 MB per matrix.
    let refused = fit(MacKay::default().into(), 200_000_000).unwrap_err();
    assert!(matches!(refused, Error::Memory { needed, .. } if needed > 400_000_000), "{refused}");
    let (model, report) = fit(Search::default().into(), 2_000_000).unwrap();
    assert_eq!(report.status, Status::MemoryLimit, "{:?}", report.certificate);
    assert!(8 * (11 * model.relevance.len()).pow(2) < 2_000_000);
    assert!(model.predict_probability(x.view(), Moderation::Posterior).unwrap().iter().all(|p| p.is_finite()));
}

/// Basis functions that do not fit into memory are computed again in blocks, and the model is the same.
#[test]
fn basis_functions_computed_in_blocks_give_the_same_model() {
    let (x, labels) = clusters(2200);
    let targets = Targets::classes(&labels, 3);
    let centres = x.slice(s![..40, ..]).to_owned();
    let at = Hyperparameters {
        relevance: (0..40).collect(),
        alpha: (0..40).map(|i| 0.5 + (i % 3) as f64).collect(),
        intercept_alpha: Some(0.2),
        noise_variance: None,
        ..Hyperparameters::default()
    };
    let rvm = |memory_limit| Rvm {
        landmarks: Landmarks::Given(Centres(centres.clone())),
        memory_limit,
        max_iterations: 4,
        ..softmax(Rbf { gamma: 3.0.into() }.into())
    };
    // Beside the rows and some vectors 0.57 MB are left, and the columns may take half of that. All 41 columns take
    // 0.72 MB, and the 18 of the search 0.32 MB.
    let limits = [None, Some(1_500_000)];
    let [whole, blocks] = limits.map(|limit| rvm(limit).evaluate(x.view(), &targets, &at).unwrap());
    close("L", &[blocks.log_evidence], &[whole.log_evidence], 1e-12);
    close("w", &blocks.weights, &whole.weights, 1e-10);
    close("variances", &blocks.variances, &whole.variances, 1e-10);
    close("gradient", &blocks.gradient_log_alpha, &whole.gradient_log_alpha, 1e-10);
    close("S", &blocks.sparsity_in_model, &whole.sparsity_in_model, 1e-10);
    // From one model to the next, some columns are already known.
    let growing = Search { start: Start::Empty, ..Search::default() };
    for inference in [Inference::Search(growing), Inference::MacKay(MacKay::default())] {
        let fit = |limit| Rvm { inference: inference.clone(), ..rvm(limit) }.fit(x.view(), &targets).unwrap().0;
        let [whole, blocks] = limits.map(fit);
        assert_eq!(blocks.relevance, whole.relevance);
        close("L", &[blocks.log_evidence.unwrap()], &[whole.log_evidence.unwrap()], 1e-10);
    }
}
