//! Golden values: small problems solved with 40 digits.

use crate::support::{close, floats, golden, indices};
use ndarray::{Array1, ArrayView1, ArrayView2, Axis, s};
use relvec::*;
use serde_json::Value;

fn settings(case: &crate::support::Case) -> Rvm {
    Rvm { kernel: case.kernel(), likelihood: case.likelihood(), threads: Some(1), ..Rvm::tipping2001() }
}

fn hyper(record: &Value) -> Hyperparameters {
    let (active, alpha) = (indices(&record["active"]), floats(&record["alpha"]));
    let mut at = Hyperparameters { noise_variance: record["beta"].as_f64().map(|b| 1.0 / b), ..Default::default() };
    for (j, a) in active.iter().zip(alpha) {
        if *j == 0 {
            at.intercept_alpha = Some(a);
        } else {
            at.relevance.push(j - 1);
            at.alpha.push(a);
        }
    }
    at
}

fn check_record(case: &crate::support::Case, name: &str, tolerance: f64) {
    let record = &case.json[name];
    let rvm = settings(case);
    let got = case.with_targets(|x, targets| rvm.evaluate(x, targets, &hyper(record))).unwrap();
    let what = |field: &str| format!("{} {name} {field}", case.name);
    let field = |key: &str| record.get(key).map(floats);
    let compare = |key: &str, values: &[f64], tolerance: f64| {
        if let Some(expected) = field(key) {
            close(&what(key), values, &expected, tolerance);
        }
    };
    close(&what("L"), &[got.log_evidence], &[record["L"].as_f64().unwrap()], tolerance);
    compare("mu", &got.weights, tolerance);
    compare("w", &got.weights, tolerance);
    compare("Sigma_diag", &got.variances, tolerance);
    compare("gamma", &got.well_determined, tolerance);
    compare("S", &got.sparsity_in_model, tolerance);
    compare("Q", &got.quality_in_model, tolerance);
    compare("s", &got.sparsity, tolerance);
    compare("q", &got.quality, tolerance);
    compare("grad_log_alpha", &got.gradient_log_alpha_fixed, tolerance);
    compare("grad_log_alpha", &got.gradient_log_alpha, tolerance);
    compare("grad_log_alpha_fixedB", &got.gradient_log_alpha_fixed, tolerance);
    compare("grad_log_alpha_exact", &got.gradient_log_alpha, tolerance);
    compare("grad_log_gamma", &got.gradient_log_kernel, tolerance);
    compare("grad_log_gamma_exact", &got.gradient_log_kernel, tolerance);
    if let Some(rss) = record.get("rss").and_then(Value::as_f64) {
        close(&what("rss"), &[got.residual_sum.unwrap()], &[rss], tolerance);
    }
    if let Some(g) = record.get("grad_log_beta").and_then(Value::as_f64) {
        close(&what("grad_log_beta"), &[got.gradient_log_noise.unwrap()], &[g], tolerance);
    }
    let gains: Vec<f64> = got.actions.iter().map(|a| a.gain).collect();
    compare("action_gain", &gains, tolerance);
    compare("action_gain_frozenB", &gains, tolerance);
    if let Some(kinds) = record.get("action_kind") {
        let kinds: Vec<i64> = kinds.as_array().unwrap().iter().map(|v| v.as_i64().unwrap()).collect();
        for (j, (kind, action)) in kinds.iter().zip(&got.actions).enumerate() {
            let expected = match kind {
                1 => ActionKind::Add,
                0 => ActionKind::Reestimate,
                -1 => ActionKind::Delete,
                _ => ActionKind::None,
            };
            assert_eq!(action.kind, expected, "{} column {j}", what("action_kind"));
            if let (Some(alpha), Some(expected)) = (action.alpha, record["action_alpha"][j].as_f64()) {
                assert!((alpha / expected).ln().abs() < 1e3 * tolerance, "{} {j}: {alpha} {expected}", what("action_alpha"));
            }
        }
    }
}

const REGRESSION: [&str; 3] = ["reg_sinc_gauss_n40", "reg_2d_gauss_n50", "reg_spline_fixednoise_n24"];
const CLASSES: [&str; 2] = ["cls_1d_gauss_n36", "cls_2d_gauss_n50"];

/// Agreement that float64 reaches. The columns of the spline are nearly collinear (condition number 1e13).
fn tolerance(name: &str) -> f64 {
    if name.contains("spline") { 1e-7 } else { 1e-9 }
}

#[test]
fn quantities_at_fixed_precisions_agree_with_the_golden_record() {
    for name in REGRESSION.iter().chain(&CLASSES) {
        let case = golden(name);
        check_record(&case, "fixed", tolerance(name));
    }
}

#[test]
fn fits_end_at_the_golden_stationary_points() {
    for name in REGRESSION.iter().chain(&CLASSES) {
        let case = golden(name);
        for record in ["stationary_mackay", "stationary_fast"] {
            if case.json.get(record).is_some() {
                check_stationary(&case, record);
            }
        }
    }
}

/// Checks that the posterior is as printed, the gradient is zero, and no action gains more than printed.
fn check_stationary(case: &crate::support::Case, name: &str) {
    let record = &case.json[name];
    let got = case.with_targets(|x, t| settings(case).evaluate(x, t, &hyper(record))).unwrap();
    let size = tolerance(&case.name);
    close(&format!("{} {name} L", case.name), &[got.log_evidence], &[record["L"].as_f64().unwrap()], size);
    let mean = record.get("mu").unwrap_or(&record["w"]);
    close(&format!("{} {name} mean", case.name), &got.weights, &floats(mean), size);
    close(&format!("{} {name} variance", case.name), &got.variances, &floats(&record["Sigma_diag"]), size);
    let largest = got.gradient_log_alpha_fixed.iter().fold(0.0f64, |m, g| m.max(g.abs()));
    assert!(largest < 1e-7, "{} {name}: gradient {largest:e}", case.name);
    let gains: Vec<f64> = got.actions.iter().map(|a| a.gain).collect();
    let expected = floats(record.get("action_gain").unwrap_or(&record["action_gain_frozenB"]));
    for (j, (gain, expected)) in gains.iter().zip(expected).enumerate() {
        assert!((gain - expected).abs() < size.max(1e-9), "{} {name}: gain[{j}] {gain:e} {expected:e}", case.name);
    }
}

#[test]
fn predictions_agree_with_the_golden_record() {
    for name in REGRESSION.iter().chain(&CLASSES) {
        let case = golden(name);
        for record in ["fixed", "stationary_mackay", "stationary_fast"] {
            let Some(record) = case.json.get(record) else { continue };
            let got = case.with_targets(|x, t| settings(&case).evaluate(x, t, &hyper(record))).unwrap();
            let model = got.model;
            let prediction = model.predict(case.test.view()).unwrap();
            let size = tolerance(name);
            close(&format!("{name} pred_mean"), prediction.mean.as_slice().unwrap(), &floats(&record["pred_mean"]), size);
            close(&format!("{name} pred_var"), &prediction.variance().to_vec(), &floats(&record["pred_var"]), size);
            if !case.is_regression() {
                for (key, moderation) in
                    [("pred_prob_moderated", Moderation::Posterior), ("pred_prob_plugin", Moderation::PlugIn)]
                {
                    let p = model.predict_probability(case.test.view(), moderation).unwrap();
                    close(&format!("{name} {key}"), &p.column(1).to_vec(), &floats(&record[key]), size);
                }
            }
        }
    }
}

/// Checks each iteration: evidence and noise, and weights and precisions of the first five.
fn check_trace(case: &crate::support::Case, key: &str) {
    let trace = &case.json[key];
    let expected = floats(&trace["L"]);
    let inference = |steps: usize| {
        let initial_alpha = trace["alpha0"].as_f64();
        let learnt = trace["fix_beta"].as_bool() == Some(false);
        let initial_noise_variance = trace["beta0"].as_f64().filter(|_| learnt).map(|b| 1.0 / b);
        let inference = match key {
            "em_trace" => {
                Inference::Em(Em { initial_alpha, initial_noise_variance, tolerance: 1e-12, prune: false, ..Em::default() })
            }
            _ => Inference::MacKay(MacKay {
                initial_alpha,
                initial_noise_variance,
                tolerance: 1e-12,
                prune: false,
                ..MacKay::default()
            }),
        };
        let noise_variance = trace["beta0"].as_f64().filter(|_| !learnt).map(|b| 1.0 / b);
        let likelihood = match case.is_regression() {
            true => Gaussian { noise_variance }.into(),
            false => Bernoulli::default().into(),
        };
        Rvm { inference, likelihood, max_iterations: steps, ..settings(case) }
    };
    let fit = |steps| case.with_targets(|x, t| inference(steps).fit(x, t)).unwrap();
    let name = format!("{} {key}", case.name);
    let spline = case.name.contains("spline");
    let (_, report) = fit(expected.len());
    for (k, (point, expected)) in report.trace.iter().zip(&expected).enumerate() {
        // With condition number 1e13, rounding leaves an error of 1.1e-6 in one EM iterate.
        let size = if spline { 2e-6 } else { 1e-9 };
        assert!((point.log_evidence - expected).abs() < size, "{name} L[{k}]: {} {expected}", point.log_evidence);
        if let Some(beta) = trace.get("beta").map(floats) {
            let noise = point.noise_std.unwrap();
            assert!((noise * noise * beta[k] - 1.0).abs() < 1e-10, "{name} beta[{k}]");
        }
    }
    for (k, record) in trace["first5"].as_array().unwrap().iter().enumerate() {
        // Later iterates of the nearly collinear case consist of rounding errors.
        if spline && k > 0 {
            break;
        }
        let mean = record.get("mu").unwrap_or(&record["w"]);
        let (now, _) = fit(k + 1);
        let all = |first: f64, rest: &[f64]| std::iter::once(first).chain(rest.iter().copied()).collect::<Vec<f64>>();
        let weights = all(now.expansion.intercept[0], now.expansion.weights.as_slice().unwrap());
        close(&format!("{name} mean[{k}]"), &weights, &floats(mean), 1e-6);
        let (next, _) = fit(k + 2);
        let alpha = all(next.intercept_alpha.unwrap(), &next.alpha);
        let size = match (spline, key, k) {
            (true, "mackay_trace", _) => 1e-4,
            (true, _, _) => 1e-6,
            (_, "em_trace", _) => 1e-8,
            (_, _, 0..2) => 1e-7,
            _ => 1e-5,
        };
        for (j, (got, expected)) in alpha.iter().zip(floats(&record["alpha_next"])).enumerate() {
            // For a weight this close to being pruned, gamma = 1 - alpha Sigma consists of rounding errors.
            let size = if expected > 1e9 { 1e-2 } else { size };
            assert!((got / expected).ln().abs() < size, "{name} alpha[{k}][{j}]: {got:e} {expected:e}");
        }
    }
}

#[test]
fn em_and_mackay_traces_agree_with_the_golden_record() {
    for name in REGRESSION.iter().chain(&CLASSES) {
        let case = golden(name);
        check_trace(&case, "em_trace");
        check_trace(&case, "mackay_trace");
    }
}

/// With one best action per step and no joint updates, the actions are equal and the evidence agrees to 1e-10.
#[test]
fn sequential_traces_agree_with_the_golden_record() {
    for name in REGRESSION.iter().chain(&CLASSES) {
        let case = golden(name);
        let trace = &case.json["fast_trace"];
        let start = match trace["start"].get("alpha") {
            Some(_) => Start::Given(hyper(&trace["start"])),
            None => Start::Empty,
        };
        let likelihood = match trace["beta"].as_f64() {
            Some(beta) => Gaussian { noise_variance: Some(1.0 / beta) }.into(),
            None => Bernoulli::default().into(),
        };
        let sequential = Sequential { tolerance: 1e-12, start, ..Sequential::default() };
        let rvm = |steps| Rvm {
            inference: Inference::Sequential(sequential.clone()),
            likelihood: Likelihood::clone(&likelihood),
            max_iterations: steps,
            ..settings(&case)
        };
        let mut active: Vec<usize> = trace["start"].get("active").map(indices).unwrap_or_default();
        for (k, action) in trace["actions"].as_array().unwrap().iter().enumerate() {
            let index = action["index"].as_u64().unwrap() as usize;
            match action["kind"].as_i64().unwrap() {
                1 => active.push(index),
                -1 => active.retain(|j| *j != index),
                _ => {}
            }
            active.sort_unstable();
            let (model, report) = case.with_targets(|x, t| rvm(k + 1).fit(x, t)).unwrap();
            let bias = model.intercept_alpha.map(|_| 0);
            let got: Vec<usize> = bias.into_iter().chain(model.relevance.iter().map(|j| j + 1)).collect();
            assert_eq!(got, active, "{name} after action {k}: {action}");
            let (l, expected) = (report.trace[k].log_evidence, action["L"].as_f64().unwrap());
            let size = if name.contains("spline") { 1e-8 } else { 1e-10 };
            assert!((l - expected).abs() < size * expected.abs().max(1.0), "{name} L after action {k}: {l} {expected}");
            if let Some(alpha) = action["alpha"].as_f64() {
                let ours = if index == 0 {
                    model.intercept_alpha
                } else {
                    model.relevance.iter().position(|j| j + 1 == index).map(|p| model.alpha[p])
                };
                assert!((ours.unwrap() / alpha).ln().abs() < 1e-5, "{name} alpha after action {k}: {ours:?} {alpha}");
            }
        }
    }
}

/// Checks a fit against the best of several strategies on six data sets: on average within 5 nats of the best, and
/// nowhere below the result of MacKay's fixed point. Sums that are computed in another way round differently, and end
/// in other optima: 3 to 7 nats.
fn reach_the_targets(most: f64, fit: impl Fn(&Rvm, ArrayView2<f64>, ArrayView1<f64>) -> (Model, Report)) {
    let folder = crate::support::golden_folder();
    let text = std::fs::read_to_string(folder.join("evidence_targets.json")).unwrap();
    let json: Value = serde_json::from_str(&text).unwrap();
    let mut gaps = Vec::new();
    for (name, case) in json["cases"].as_object().unwrap() {
        let (x, t) = crate::support::split_target(&crate::support::read_csv(&folder.join(format!("{name}.csv"))));
        let kernel: Kernel = Rbf { gamma: case["gamma"].as_f64().unwrap().into() }.into();
        let rvm = Rvm { kernel, ..Rvm::tipping2001() };
        // The printed optimum is recomputed: it must be the same problem, with all constants.
        let best = case["best"].as_f64().unwrap();
        let record = serde_json::json!({
            "active": case["best_active"], "alpha": case["best_alpha"], "beta": case["best_beta"]
        });
        let there = rvm.evaluate(x.view(), &Targets::real(t.view()), &hyper(&record)).unwrap();
        assert!((there.log_evidence - best).abs() < 1e-5, "{name}: {} {best}", there.log_evidence);

        let (model, report) = fit(&rvm, x.view(), t.view());
        let gap = best - model.log_evidence.unwrap();
        println!("{name}: {:.3}, gap {gap:.2}, {} vectors", model.log_evidence.unwrap(), model.relevance.len());
        assert_eq!(report.status, Status::Converged);
        assert!(model.log_evidence.unwrap() >= case["log_evidence"]["mackay"].as_f64().unwrap(), "{name}: below mackay");
        let noise = model.noise_std().unwrap() / case["best_sigma"].as_f64().unwrap();
        assert!((0.85..1.15).contains(&noise), "{name}: noise {noise} times that of the best");
        gaps.push(gap);
    }
    let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
    println!("mean gap {mean:.2}");
    assert!(mean <= most, "mean gap {mean}");
}

#[test]
fn fits_reach_the_evidence_targets() {
    reach_the_targets(5.0, |rvm, x, t| rvm.fit(x, &Targets::real(t)).unwrap());
}

/// The fit uses sums over the rows, all of which are centres.
#[test]
fn fits_from_statistics_reach_the_evidence_targets() {
    reach_the_targets(10.0, |rvm, x, t| {
        let mut statistics = Statistics::new(&rvm.kernel, x).unwrap();
        statistics.update(x, &Targets::real(t)).unwrap();
        rvm.fit_statistics(&statistics).unwrap()
    });
}

/// Neither G, 1,001 x 1,001, nor Phi has room in a quarter of the memory, so that rows are computed on demand.
#[test]
fn fits_with_little_memory_reach_the_evidence_targets() {
    reach_the_targets(10.0, |rvm, x, t| {
        let memory_limit = Some(4 * 8 * 1000 * 1000);
        Rvm { memory_limit, ..rvm.clone() }.fit(x, &Targets::real(t)).unwrap()
    });
}

/// Working sets are used with more than 1,000 candidates: one row is added beside the first, with a negligible weight.
/// The memory is too small for the products of all, which would be searched at once for a rich model. Processors with and
/// without AVX-512 round differently and end in other optima: 10.2 nats below the best without it.
#[test]
fn fits_in_working_sets_reach_the_evidence_targets() {
    reach_the_targets(11.0, |rvm, x, t| {
        let mut more = x.to_owned();
        more.push_row(x.row(0)).unwrap();
        more[[1000, 0]] += 1e-6;
        let mut targets = t.to_owned();
        targets.append(Axis(0), t.slice(s![..1])).unwrap();
        let mut weights = Array1::ones(1001);
        weights[1000] = 1e-12;
        let dictionary = Dictionary::Rule(DictionaryRule::All);
        let targets = Targets::real(targets.view()).with_weights(weights.view());
        let memory_limit = Some(4 * 8 * 1000 * 1000);
        let (model, report) = Rvm { dictionary, memory_limit, ..rvm.clone() }.fit(more.view(), &targets).unwrap();
        let reason = &report.certificate.reason;
        assert!(reason.contains("passes over all 1001 candidates"), "{reason}");
        (model, report)
    });
}
