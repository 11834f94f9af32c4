//! Several outputs: the evidence is the sum over the outputs, for every kind of fit.

use ndarray::{Array1, Array2, ArrayView1, ArrayView2, Axis, s};
use rand::{RngExt, SeedableRng};
use rand_distr::{Distribution, StandardNormal};
use relvec::*;

fn close(found: f64, expected: f64, tolerance: f64) -> bool {
    (found - expected).abs() <= tolerance * expected.abs().max(1e-300)
}

fn matrix(kernel: &Kernel, x: ArrayView2<f64>, centres: ArrayView2<f64>) -> Array2<f64> {
    let mut out = Array2::zeros((x.nrows(), centres.nrows()));
    kernel.block(x, centres, out.view_mut());
    out
}

/// Returns three outputs of different size, offset, roughness and noise.
fn data(seed: u64, rows: usize) -> (Array2<f64>, Array2<f64>) {
    let mut random = rand_pcg::Pcg64::seed_from_u64(seed);
    let x = Array2::from_shape_simple_fn((rows, 1), || random.random_range(-3.0..3.0));
    let t = Array2::from_shape_fn((rows, 3), |(n, k)| {
        let (x, e): (f64, f64) = (x[[n, 0]], StandardNormal.sample(&mut random));
        match k {
            0 => 50.0 + (2.0 * x).sin() + 0.1 * e,
            1 => 1e-3 * ((1.3 * x).cos() + 0.4 * e),
            _ => -2e4 + 300.0 * (x + (2.0 * x).sin()) + 30.0 * e,
        }
    });
    (x, t)
}

fn rvm() -> Rvm {
    Rvm { kernel: Rbf { gamma: 1.0.into() }.into(), ..Rvm::tipping2001() }
}

fn fit(rvm: &Rvm, x: &Array2<f64>, t: &Array2<f64>) -> (Model, Report) {
    rvm.fit(x.view(), &Targets::outputs(t.view())).unwrap()
}

/// Returns log N(t | 0, C) for symmetric positive definite C, and inv(C) applied to columns, by elimination.
fn log_normal(t: ArrayView1<f64>, c: &Array2<f64>, right: &Array2<f64>) -> (f64, Array1<f64>, Array2<f64>) {
    let n = t.len();
    let mut c = c.clone();
    let mut b = Array2::zeros((n, 1 + right.ncols()));
    b.column_mut(0).assign(&t);
    b.slice_mut(s![.., 1..]).assign(right);
    let mut log_det = 0.0;
    for k in 0..n {
        log_det += c[[k, k]].ln();
        for i in k + 1..n {
            let share = c[[i, k]] / c[[k, k]];
            for j in k + 1..n {
                c[[i, j]] -= share * c[[k, j]];
            }
            let row = b.row(k).to_owned();
            b.row_mut(i).scaled_add(-share, &row);
        }
    }
    for k in (0..n).rev() {
        for j in k + 1..n {
            let (share, row) = (c[[k, j]], b.row(j).to_owned());
            b.row_mut(k).scaled_add(-share, &row);
        }
        let pivot = c[[k, k]];
        b.row_mut(k).mapv_inplace(|v| v / pivot);
    }
    let solved = b.column(0).to_owned();
    let log = -0.5 * (n as f64 * (2.0 * std::f64::consts::PI).ln() + log_det + t.dot(&solved));
    (log, solved, b.slice(s![.., 1..]).to_owned())
}

/// Returns the basis functions of a model at rows, the bias first, and the prior variances of their weights for output
/// k.
fn prior(model: &Model, x: &Array2<f64>, k: usize) -> (Array2<f64>, Array1<f64>) {
    let one = model.output(k).unwrap();
    let FittedBasis::Kernel { kernel, centres } = &one.expansion.basis else { panic!("a kernel") };
    let phi = matrix(kernel, x.view(), centres.view());
    let mut columns = Array2::ones((x.nrows(), phi.ncols() + 1));
    columns.slice_mut(s![.., 1..]).assign(&phi);
    let bias = one.intercept_alpha.map_or(0.0, |alpha| 1.0 / alpha);
    (columns, std::iter::once(bias).chain(one.alpha.iter().map(|alpha| 1.0 / alpha)).collect())
}

/// Evidence, means and variances of each output are those of its own N x N covariance, and the total evidence is their
/// sum. The noise is learned or given, weights count rows, and noise may be known per row.
#[test]
fn the_evidence_is_the_sum_of_the_outputs() {
    let (x, t) = data(1, 80);
    let c = Array1::from_shape_fn(80, |n| (1 + n % 2) as f64);
    let v = Array1::from_shape_fn(80, |n| 0.01 * (1 + n % 5) as f64);
    let like = t.slice(s![.., ..2]).to_owned() * &Array1::from_vec(vec![1.0, 900.0]);
    let fixed = Rvm { likelihood: Gaussian { noise_variance: Some(0.02) }.into(), ..rvm() };
    for (name, rvm, t, known) in [
        ("learnt", rvm(), &t, None),
        ("no bias", Rvm { bias: false, ..rvm() }, &t, None),
        ("fixed", fixed, &like, None),
        ("known", rvm(), &like, Some(&v)),
    ] {
        let targets = Targets::outputs(t.view()).with_weights(c.view());
        let targets = known.map_or(targets, |v| targets.with_noise_variance(v.view()));
        let (model, report) = rvm.fit(x.view(), &targets).unwrap();
        assert_eq!(report.status, Status::Converged, "{name}");
        assert!(report.trace.windows(2).all(|w| w[1].log_evidence >= w[0].log_evidence), "{name}");
        let rows: Vec<usize> = (0..80).flat_map(|n| vec![n; c[n] as usize]).collect();
        let (x_all, t_all) = (x.select(Axis(0), &rows), t.select(Axis(0), &rows));
        let new = Array2::from_shape_fn((9, 1), |(n, _)| n as f64 - 4.0);
        let predictions = model.predict_outputs(new.view()).unwrap();
        let mut total = 0.0;
        for (k, prediction) in predictions.iter().enumerate() {
            let (phi, variances) = prior(&model, &x_all, k);
            let (phi_new, _) = prior(&model, &new, k);
            let noise = match (known, &rvm.likelihood) {
                (Some(v), _) => v.select(Axis(0), &rows),
                (None, Likelihood::Gaussian(Gaussian { noise_variance: Some(v) })) => Array1::from_elem(rows.len(), *v),
                _ => Array1::from_elem(rows.len(), model.output_noise_variances()[k]),
            };
            let half = &phi * &variances;
            let covariance = half.dot(&phi.t()) + Array2::from_diag(&noise);
            let cross = half.dot(&phi_new.t());
            let (log, solved, right) = log_normal(t_all.column(k), &covariance, &cross);
            total += log;
            let mean = cross.t().dot(&solved);
            let reduced = (&cross * &right).sum_axis(Axis(0));
            let size = mean.iter().fold(0.0f64, |l, v| l.max(v.abs()));
            for n in 0..new.nrows() {
                assert!((prediction.mean[n] - mean[n]).abs() < 1e-7 * size, "{name} {k}: {} {}", prediction.mean[n], mean[n]);
                let own: f64 = phi_new.row(n).iter().zip(&variances).map(|(p, v)| p * p * v).sum();
                let found = prediction.model_variance[n];
                assert!((found - (own - reduced[n])).abs() < 1e-6 * found + 1e-9 * own, "{name} {k}");
            }
        }
        let found = model.log_evidence.unwrap();
        assert!((found - total).abs() < 1e-7 * total.abs(), "{name}: {found} {total}");
    }
}

/// At the fitted model no action gains and the gradient is zero. At other models the predicted gains are those of the
/// evidence, and gradients in precisions and kernel equal finite differences.
#[test]
fn gains_and_gradients_equal_true_changes() {
    let (x, t) = data(2, 60);
    let targets = Targets::outputs(t.view());
    let (model, report) = fit(&rvm(), &x, &t);
    let at = Hyperparameters::of(&model);
    let rested = rvm().evaluate(x.view(), &targets, &at).unwrap();
    assert!(close(rested.log_evidence, model.log_evidence.unwrap(), 1e-10));
    assert!(report.certificate.largest_gain.unwrap() < 1e-3 && report.certificate.largest_gradient < 1e-4);
    assert!(rested.gradient_log_alpha.iter().all(|g| g.abs() < 1e-4), "{:?}", rested.gradient_log_alpha);
    assert_eq!(rested.weights.len(), 3 * (model.relevance.len() + 1));

    let other = Hyperparameters {
        relevance: vec![3, 17, 40],
        alpha: vec![0.5, 3.0, 0.05],
        intercept_alpha: Some(1e-3),
        noise_variance: Some(0.05),
        variance_ratios: vec![1.0, 1e-6, 4e4],
    };
    let value = |rvm: &Rvm, at: &Hyperparameters| rvm.evaluate(x.view(), &targets, at).unwrap().log_evidence;
    let found = rvm().evaluate(x.view(), &targets, &other).unwrap();
    let h = 1e-5f64;
    for i in 0..3 {
        let mut ends = [other.clone(), other.clone()];
        ends[0].alpha[i] *= h.exp();
        ends[1].alpha[i] *= (-h).exp();
        let slope = (value(&rvm(), &ends[0]) - value(&rvm(), &ends[1])) / (2.0 * h);
        assert!((slope - found.gradient_log_alpha[1 + i]).abs() < 1e-5 * slope.abs().max(1.0), "{i}: {slope}");
        assert_eq!(found.gradient_log_alpha[i], found.gradient_log_alpha_fixed[i]);
    }
    let wider = |h: f64| Rvm { kernel: Rbf { gamma: h.exp().into() }.into(), ..rvm() };
    let slope = (value(&wider(h), &other) - value(&wider(-h), &other)) / (2.0 * h);
    assert!((slope - found.gradient_log_kernel[0]).abs() < 1e-5 * slope.abs(), "{slope} {:?}", found.gradient_log_kernel);

    // The noise is fixed here.
    let mut kinds = [0; 3];
    for (column, action) in found.actions.iter().enumerate().skip(1) {
        let mut after = other.clone();
        let place = after.relevance.iter().position(|row| *row == column - 1);
        match (action.kind, place, action.alpha) {
            (ActionKind::Add, None, Some(alpha)) => {
                after.relevance.push(column - 1);
                after.alpha.push(alpha);
                kinds[0] += 1;
            }
            (ActionKind::Reestimate, Some(i), Some(alpha)) => {
                after.alpha[i] = alpha;
                kinds[1] += 1;
            }
            (ActionKind::Delete, Some(i), None) => {
                after.relevance.remove(i);
                after.alpha.remove(i);
                kinds[2] += 1;
            }
            (ActionKind::None, None, None) => continue,
            other => panic!("{other:?}"),
        }
        let gain = value(&rvm(), &after) - found.log_evidence;
        assert!((gain - action.gain).abs() < 1e-8 * found.log_evidence.abs(), "{action:?}: {gain}");
    }
    assert!(kinds[0] > 10 && kinds[1] > 0, "{kinds:?}");
}

/// One column equals one output, bit for bit. Equal outputs have the optimum of one output, and a multiple of its
/// evidence.
#[test]
fn equal_outputs_have_the_optimum_of_one() {
    let (x, t) = data(3, 100);
    let first = t.column(0);
    let (one, _) = rvm().fit(x.view(), &Targets::real(first)).unwrap();
    let (same, _) = fit(&rvm(), &x, &first.to_owned().insert_axis(Axis(1)));
    assert_eq!(same, one);
    assert!(!one.has_several_outputs());
    assert_eq!(one.predict_outputs(x.view()).unwrap(), vec![one.predict(x.view()).unwrap()]);
    let two = Array2::from_shape_fn((100, 2), |(n, k)| first[n] * if k == 0 { 1.0 } else { -4.0 });
    let (both, _) = fit(&rvm(), &x, &two);
    let expected = 2.0 * one.log_evidence.unwrap() - 100.0 * 4f64.ln();
    assert!((both.log_evidence.unwrap() - expected).abs() < 0.2, "{:?} {expected}", both.log_evidence);
    assert_eq!(both.relevance, one.relevance);
    let found = both.predict_outputs(x.view()).unwrap();
    for n in 0..100 {
        assert!(close(found[0].mean[n], -0.25 * found[1].mean[n], 1e-9));
        assert!(close(found[0].variance()[n], found[1].variance()[n] / 16.0, 1e-9));
    }
}

/// Units and order of the outputs, and the order of the rows, do not matter.
#[test]
fn units_and_order_do_not_matter() {
    let (x, t) = data(4, 90);
    let (model, _) = fit(&rvm(), &x, &t);
    let plain = model.predict_outputs(x.view()).unwrap();
    let scaled = Array2::from_shape_fn((90, 3), |(n, k)| [1e6, 1.0, 1e-6][k] * t[[n, k]]);
    let (other, _) = fit(&rvm(), &x, &scaled);
    assert_eq!(other.relevance, model.relevance);
    for (k, found) in other.predict_outputs(x.view()).unwrap().iter().enumerate() {
        let size = plain[k].mean.iter().fold(0.0f64, |l, v| l.max(v.abs()));
        for n in 0..90 {
            assert!((found.mean[n] / [1e6, 1.0, 1e-6][k] - plain[k].mean[n]).abs() < 1e-7 * size);
        }
    }
    let reversed: Vec<usize> = (0..90).rev().collect();
    let (backwards, _) = fit(&rvm(), &x.select(Axis(0), &reversed), &t.select(Axis(0), &reversed));
    assert_eq!(backwards.log_evidence, model.log_evidence);
    let (swapped, _) = fit(&rvm(), &x, &t.select(Axis(1), &[2, 0, 1]));
    assert!(close(swapped.log_evidence.unwrap(), model.log_evidence.unwrap(), 1e-6));
    let threads = Rvm { threads: Some(1), ..rvm() };
    assert_eq!(fit(&threads, &x, &t).0, model);
}

/// Every scheme fits several outputs: with landmarks, working sets, columns of a design matrix, and rows of G on demand
/// in little memory.
#[test]
fn every_scheme_fits_several_outputs() {
    let (x, t) = data(5, 120);
    let (best, _) = fit(&rvm(), &x, &t);
    let top = best.log_evidence.unwrap();
    for inference in [Inference::Em(Em::default()), Inference::MacKay(MacKay::default())] {
        let (model, report) = fit(&Rvm { inference: inference.clone(), ..rvm() }, &x, &t);
        assert_eq!(report.status, Status::Converged);
        let slack = 1e-9 * top.abs();
        assert!(report.trace.windows(2).all(|w| w[1].log_evidence >= w[0].log_evidence - slack), "{}", inference.name());
        let found = model.log_evidence.unwrap();
        assert!(found > top - 10.0 && found < top + 1.0, "{}: {found} {top}", inference.name());
    }
    let (landmarks, _) = fit(&Rvm { dictionary: Dictionary::Size(40), ..rvm() }, &x, &t);
    assert!((landmarks.log_evidence.unwrap() - top).abs() < 5.0, "{:?} {top}", landmarks.log_evidence);
    let kernel: Kernel = Rbf { gamma: 1.0.into() }.into();
    let phi = matrix(&kernel, x.view(), x.view());
    let (given, _) = fit(&Rvm { basis: Basis::Given, ..rvm() }, &phi, &t);
    assert!((given.log_evidence.unwrap() - top).abs() < 1.0, "{:?} {top}", given.log_evidence);
    assert_eq!(given.predict_outputs(phi.view()).unwrap().len(), 3);

    let (x, t) = data(6, 1500);
    let (parts, report) = fit(&rvm(), &x, &t);
    assert_eq!(report.status, Status::Converged);
    assert!(report.trace.windows(2).all(|w| w[1].log_evidence >= w[0].log_evidence));
    let (whole, _) = fit(&Rvm { dictionary: Dictionary::Size(900), ..rvm() }, &x, &t);
    let (parts, whole) = (parts.log_evidence.unwrap(), whole.log_evidence.unwrap());
    assert!((parts - whole).abs() < 10.0, "{parts} {whole}");
    let little = Rvm { memory_limit: Some(24 << 20), dictionary: Dictionary::Size(600), ..rvm() };
    let little = fit(&little, &x, &t).0.log_evidence.unwrap();
    assert!((little - whole).abs() < 10.0, "{little} {whole}");
}

/// A kernel learned from several outputs has the features that any of them needs, and is no worse than its start.
#[test]
fn kernel_is_learned_from_all_outputs() {
    let mut random = rand_pcg::Pcg64::seed_from_u64(7);
    let x: Array2<f64> = Array2::from_shape_simple_fn((200, 4), || random.random_range(-2.0..2.0));
    let t = Array2::from_shape_fn((200, 2), |(n, k)| {
        let e: f64 = StandardNormal.sample(&mut random);
        if k == 0 { (2.0 * x[[n, 0]]).sin() + 0.1 * e } else { 100.0 * (x[[n, 2]].powi(2) + 0.2 * e) }
    });
    let plain = fit(&Rvm::tipping2001(), &x, &t).0;
    let learnt = Rvm { kernel: Rbf { gamma: Gamma::Rule(GammaRule::EvidenceArd) }.into(), ..Rvm::tipping2001() };
    let (model, report) = fit(&learnt, &x, &t);
    assert!(model.log_evidence.unwrap() > plain.log_evidence.unwrap() + 50.0);
    let share = &model.feature_relevance;
    assert!(share[0] + share[2] > 0.95 && share[0].min(share[2]) > 0.05, "{share:?}");
    assert!(report.kernel_search.unwrap().tried[0].process.gain > 100.0);
}

/// Centres are learned from all outputs, one of which may be constant. Their evidence rises, and units do not matter.
#[test]
fn centres_are_learned_from_all_outputs() {
    let (x, mut t) = data(19, 300);
    for constant in [false, true] {
        if constant {
            t.column_mut(1).fill(-7.0);
        }
        let few = |centres| Rvm { dictionary: Dictionary::Size(4), centres, ..rvm() };
        let (fixed, _) = fit(&few(CentreRule::Fixed), &x, &t);
        let (moved, report) = fit(&few(CentreRule::Learned), &x, &t);
        let search = report.centre_search.expect("centres were moved");
        assert!(search.kept && (search.moved, search.rows) == (4, 300), "{search:?}");
        assert!(moved.log_evidence.unwrap() > fixed.log_evidence.unwrap() + 5.0, "{search:?}");
        assert!(moved.learned_centres && Model::from_json(&moved.to_json().unwrap()).unwrap() == moved);
        let larger = &t * &Array1::from_vec(vec![4.0, 0.5, 0.25]);
        let (same, _) = fit(&few(CentreRule::Learned), &x, &larger);
        let centres = |model: &Model| match &model.expansion.basis {
            FittedBasis::Kernel { centres, .. } => centres.clone(),
            _ => panic!("a kernel"),
        };
        assert!((&centres(&same) - &centres(&moved)).iter().all(|v| v.abs() < 1e-9));
    }
}

/// A constant output is fitted by the bias and does not affect the others. If all outputs are constant, no kernel is
/// needed.
#[test]
fn constant_outputs_are_fitted_by_the_bias() {
    let (x, mut t) = data(8, 70);
    t.column_mut(1).fill(7.0);
    let (model, report) = fit(&rvm(), &x, &t);
    assert_eq!(report.adjustments.constant_outputs, [1]);
    let found = model.predict_outputs(x.view()).unwrap();
    assert!(found[1].mean.iter().all(|m| (m - 7.0).abs() < 1e-5), "{}", found[1].mean);
    let error = |k: usize| (&found[k].mean - &t.column(k)).mapv(|r| r * r).mean().unwrap().sqrt();
    assert!(error(0) < 0.15 && error(2) < 45.0, "{} {}", error(0), error(2));
    let (bare, _) = fit(&Rvm { bias: false, ..rvm() }, &x, &t);
    assert!(bare.log_evidence.unwrap().is_finite());
    t.column_mut(0).fill(1.0);
    t.column_mut(2).fill(0.0);
    let (model, report) = fit(&rvm(), &x, &t);
    assert!(report.adjustments.constant_target && model.relevance.is_empty());
    let found = model.predict_outputs(x.view()).unwrap();
    for (k, value) in [1.0, 7.0, 0.0].into_iter().enumerate() {
        assert!((found[k].mean[0] - value).abs() < 1e-5);
    }
}

/// A single output of a model supports draws, covariances and leave-one-out, and files contain all outputs.
#[test]
fn single_outputs_predict_and_files_keep_all() {
    let (x, t) = data(9, 60);
    let (model, _) = fit(&rvm(), &x, &t);
    let named = Model { targets: vec!["a".into(), "b".into(), "c".into()], ..model };
    let again = Model::from_json(&named.to_json().unwrap()).unwrap();
    assert_eq!(again, named);
    let all = named.predict_outputs(x.view()).unwrap();
    for (k, expected) in all.iter().enumerate() {
        let one = named.output(k).unwrap();
        assert_eq!(one.target.as_deref(), Some(["a", "b", "c"][k]));
        let found = one.predict(x.view()).unwrap();
        for n in 0..60 {
            assert!(close(found.mean[n], expected.mean[n], 1e-12));
            assert!(close(found.model_variance[n], expected.model_variance[n], 1e-10));
        }
        assert!(close(found.noise_variance, expected.noise_variance, 1e-14));
        assert_eq!(one.alpha, named.output_alpha().column(k).to_vec());
        let (_, covariance) = one.predict_covariance(x.view(), None).unwrap();
        assert!(close(covariance[[3, 3]], expected.variance()[3], 1e-10));
        one.draws(2, 0, true).unwrap().at(x.view()).unwrap();
        one.leave_one_out(x.view(), &Targets::real(t.column(k))).unwrap();
    }
    assert!(named.output(3).unwrap_err().to_string().contains("output 3 of a model of 3"));
    assert!(named.predict(x.view()).unwrap_err().to_string().contains("3 outputs"));
    assert!(named.predict_mean(x.view()).is_err() && named.draws(1, 0, false).is_err());
    let damaged = |from: &str, to: &str| {
        let text = serde_json::to_string(&named).unwrap();
        assert!(text.contains(from));
        serde_json::from_str::<Model>(&text.replace(from, to)).ok()
    };
    for broken in [damaged("\"targets\":[\"a\",", "\"targets\":["), damaged("\"variance_ratios\":[1.0,", "\"variance_ratios\":[")]
    {
        assert!(Model::from_json(&broken.unwrap().to_json().unwrap()).is_err());
    }
    // A search continues from the result of another one.
    let start = Start::Given(Hyperparameters::of(&named));
    let warm = Rvm { inference: Search { start, restarts: 0, ..Search::default() }.into(), ..rvm() };
    let found = fit(&warm, &x, &t).0.log_evidence.unwrap();
    assert!((found - named.log_evidence.unwrap()).abs() < 0.1);
}

/// Cross-validation scores all outputs, and calibrated and healed variances are those of each output.
#[test]
fn validation_and_healed_variances_cover_all_outputs() {
    let (x, t) = data(11, 200);
    let own = Rvm { cv: Some(4), variance: Some(Variance::Healed), calibrate: true, sparsity: Sparsity::Nats(1.0), ..rvm() };
    let (model, report) = fit(&own, &x, &t);
    let validation = report.validation.unwrap();
    let scores = &validation.scores;
    // Errors are in standard deviations of each output, and the density is that of all outputs.
    assert!((0.1..0.6).contains(&scores.rmse.unwrap()) && (0.05..0.5).contains(&scores.mae.unwrap()), "{scores:?}");
    assert!((0.9..=1.0).contains(&scores.coverage.unwrap()));
    let found = model.predict_outputs(x.view()).unwrap();
    let density: f64 = (0..3).map(|k| -found[k].log_density(t.column(k)).mean().unwrap()).sum();
    assert!((scores.nlpd.unwrap() - density).abs() < 1.0, "{scores:?} {density}");
    let kept = model.kept_rows.as_ref().unwrap();
    assert_eq!((kept.further.len(), kept.rows.nrows()), (2, 200));
    let far = Array2::from_elem((1, 1), 50.0);
    let factor = model.posterior.as_ref().unwrap().variance_factor.unwrap_or(1.0);
    let bare = model.predict_outputs_with(far.view(), Variance::Posterior).unwrap();
    for (k, far) in model.predict_outputs(far.view()).unwrap().iter().enumerate() {
        // Far from all rows, the variance is that of the target beyond its noise.
        let added = factor * (t.column(k).var(0.0) - model.output_noise_variances()[k]);
        let gained = far.variance()[0] - bare[k].variance()[0];
        assert!(close(gained, added, 1e-8), "{k}: {gained} {added}");
        let one = model.output(k).unwrap();
        assert_eq!(one.predict(x.view()).unwrap(), found[k]);
    }
    let plain = model.predict_outputs_with(x.view(), Variance::Posterior).unwrap();
    assert!((0..3).all(|k| plain[k].model_variance.sum() < found[k].model_variance.sum()));
    assert_eq!(Model::from_json(&model.to_json().unwrap()).unwrap(), model);
    let broken = KeptRows { further: vec![], ..kept.clone() };
    let broken = Model { kept_rows: Some(broken), ..model.clone() };
    assert!(Model::from_json(&broken.to_json().unwrap()).is_err());

    // With sums per fold the scores equal those of fits to the rows.
    let few = Rvm { cv: Some(4), dictionary: Dictionary::Size(40), ..rvm() };
    let (model, report) = fit(&few, &x, &t);
    let validation = report.validation.unwrap();
    assert!(validation.shared_landmarks && validation.scores.coverage.unwrap() > 0.85);
    let (same, _) = fit(&Rvm { cv: None, ..few }, &x, &t);
    assert!(close(model.log_evidence.unwrap(), same.log_evidence.unwrap(), 1e-8));
    let chosen = Rvm { sparsity: Sparsity::Rule(SparsityRule::Cv), ..rvm() };
    assert!(fit(&chosen, &x, &t).1.validation.unwrap().tried.len() > 1);
}

/// Settings that do not support several outputs are rejected by name.
#[test]
fn several_outputs_reject_unsupported_settings() {
    let (x, mut t) = data(10, 30);
    let refused = |rvm: Rvm, t: &Array2<f64>| rvm.fit(x.view(), &Targets::outputs(t.view())).map(|_| ()).unwrap_err().to_string();
    let priors = Hyperpriors { a: 1e-3, ..Hyperpriors::default() };
    for (rvm, expected) in [
        (Rvm { inference: Variational::default().into(), ..rvm() }, "inference"),
        (Rvm { inference: Em { hyperpriors: priors, ..Em::default() }.into(), ..rvm() }, "hyperpriors.a"),
        (Rvm { keep_statistics: true, dictionary: Dictionary::Size(9), ..rvm() }, "keep_statistics"),
        (Rvm { likelihood: Poisson::default().into(), ..rvm() }, "one output"),
        (Rvm { likelihood: StudentT::default().into(), ..rvm() }, "one output"),
        (Rvm { likelihood: Bernoulli::default().into(), ..rvm() }, "class labels"),
    ] {
        let found = refused(rvm, &t);
        assert!(found.contains(expected), "{found}");
    }
    assert!(refused(rvm(), &Array2::zeros((30, 0))).contains("at least 1 column"));
    t[[4, 2]] = f64::NAN;
    let found = refused(rvm(), &t);
    assert!(found.contains('4') && found.contains('2'), "{found}");
    t[[4, 2]] = 0.0;
    let found = Svm::default().fit(x.view(), &Targets::outputs(t.view())).map(|_| ()).unwrap_err().to_string();
    assert!(found.contains("real targets") || found.contains("outputs"), "{found}");
    let at = Hyperparameters { noise_variance: Some(1.0), ..Hyperparameters::default() };
    let found = rvm().evaluate(x.view(), &Targets::outputs(t.view()), &at).map(|_| ()).unwrap_err().to_string();
    assert!(found.contains("variance_ratios"), "{found}");
}
