//! Several classes under the softmax: golden values, two classes as the special case, laws of the evidence.

mod support;

use ndarray::{Array1, Array2, ArrayView1, Axis};
use relvec::*;
use support::{close, floats, golden, indices};

fn labels(t: ArrayView1<f64>) -> Vec<usize> {
    t.iter().map(|t| *t as usize).collect()
}

fn rows(v: &serde_json::Value) -> Vec<f64> {
    v.as_array().unwrap().iter().flat_map(floats).collect()
}

fn softmax(kernel: Kernel) -> Rvm {
    Rvm { kernel, likelihood: Softmax::default().into(), threads: Some(1), ..Rvm::default() }
}

/// Everything at given precisions, shared by the weights of a basis function.
#[test]
fn golden_record_of_three_classes() {
    let Some(case) = golden("softmax3_gauss_n30") else { return };
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
    // What is left over of K weights beside their contrasts has its prior's variance.
    let variances: Vec<f64> = over_classes("Sigma_diag").iter().zip(&alpha).map(|(v, a)| v - 1.0 / a).collect();
    close("variances", &got.variances, &variances, 1e-9);
    let model = &got.model;
    let functions = model.predict_functions(case.test.view()).unwrap();
    let flat = |a: &Array2<f64>| a.iter().copied().collect::<Vec<f64>>();
    close("mean", &flat(&functions.mean), &rows(&record["pred_activation_mean"]), 1e-9);
    for (pair, expected) in functions.covariance.outer_iter().zip(record["pred_activation_cov"].as_array().unwrap()) {
        // Variances of differences: what all functions share drops out.
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

/// Three classes of rows around centres on a plane, one of them in two places.
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

/// With two classes the softmax is the logistic likelihood: alpha is twice that of the difference of the weights,
/// everything else is the same, at given precisions and for whole fits.
#[test]
fn two_classes_are_the_logistic_model() {
    for name in ["cls_1d_gauss_n36", "cls_2d_gauss_n50"] {
        let Some(case) = golden(name) else { return };
        let both = |kernel: Kernel| [softmax(kernel.clone()), Rvm { likelihood: Bernoulli::default().into(), ..softmax(kernel) }];
        let record = &case.json["fixed"];
        let (active, alpha) = (indices(&record["active"]), floats(&record["alpha"]));
        let skip = usize::from(active[0] == 0);
        let at = |factor: f64| Hyperparameters {
            relevance: active[skip..].iter().map(|j| j - 1).collect(),
            alpha: alpha[skip..].iter().map(|a| a * factor).collect(),
            intercept_alpha: (skip == 1).then(|| alpha[0] * factor),
            noise_variance: None,
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
            [Inference::Sequential(Sequential::default()), Inference::MacKay(MacKay::default()), Inference::Em(Em::default())]
        {
            let fit = |rvm: Rvm| {
                case.with_targets(|x, t| Rvm { inference: inference.clone(), ..rvm }.fit(x, t, &mut silent).unwrap().0)
            };
            let [soft, logistic] = both(case.kernel()).map(fit);
            close(name, &[soft.log_evidence], &[logistic.log_evidence], 1e-6);
            assert_eq!(soft.relevance, logistic.relevance, "{name} {}", inference.name());
            let probability =
                |m: &Model| m.predict_probability(case.test.view(), Moderation::Posterior).unwrap().column(1).to_vec();
            close(name, &probability(&soft), &probability(&logistic), 1e-6);
        }
    }
}

/// The exact gradients of the evidence equal its differences: in log alpha and in the kernel's parameters.
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

/// Every scheme: the objective never falls, what ends converged leaves nothing to gain, probabilities sum to 1, and
/// the model separates the classes; it survives its file.
#[test]
fn fits_of_three_classes() {
    let (x, labels) = clusters(160);
    for inference in
        [Inference::Sequential(Sequential::default()), Inference::MacKay(MacKay::default()), Inference::Em(Em::default())]
    {
        let rvm = Rvm { inference, max_iterations: 200, ..softmax(Rbf { gamma: 0.7.into() }.into()) };
        let (model, report) = rvm.fit(x.view(), &Targets::classes(&labels, 3), &mut silent).unwrap();
        let name = model.inference.clone();
        assert_eq!(model.n_classes(), Some(3));
        assert!(report.trace.windows(2).all(|w| w[1].log_evidence >= w[0].log_evidence - 1e-9), "{name}");
        if name == "sequential" {
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
            model.log_evidence,
            report.iterations,
            model.relevance.len(),
            report.status,
            report.certificate,
            report.trace.iter().map(|t| t.log_evidence).collect::<Vec<_>>()
        );
    }
}
