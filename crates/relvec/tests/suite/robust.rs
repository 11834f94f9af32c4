//! Student-t noise: outliers do not affect the function, and the lower bound never falls.

use crate::support::close;
use ndarray::{Array1, Array2, ArrayView1, ArrayView2, Axis, concatenate, s};
use rand::{RngExt, SeedableRng};
use rand_distr::{Distribution, StandardNormal, StudentT as Noise};
use relvec::*;

fn truth(x: f64) -> f64 {
    2.0 + (1.5 * x).sin()
}

struct Data {
    x: Array2<f64>,
    t: Array1<f64>,
    /// Rows that are outliers.
    out: Vec<usize>,
}

/// Returns targets with Gaussian noise of 0.1, and a share of outliers, mostly above.
fn spoilt(seed: u64, rows: usize, share: f64) -> Data {
    let mut random = rand_pcg::Pcg64::seed_from_u64(seed);
    let x = Array2::from_shape_simple_fn((rows, 1), || random.random_range(-3.0..3.0));
    let mut out = vec![];
    let inputs = x.column(0).to_vec();
    let draw = |(i, x): (usize, &f64)| {
        let noise: f64 = StandardNormal.sample(&mut random);
        if random.random_range(0.0..1.0) < share {
            out.push(i);
            return truth(*x) + random.random_range(-3.0..12.0);
        }
        truth(*x) + 0.1 * noise
    };
    let t = inputs.iter().enumerate().map(draw).collect();
    Data { x, t, out }
}

/// Returns targets with Student-t noise of 3 degrees of freedom and a scale of 0.2.
fn heavy(seed: u64, rows: usize) -> Data {
    let mut random = rand_pcg::Pcg64::seed_from_u64(seed);
    let x = Array2::from_shape_simple_fn((rows, 1), || random.random_range(-3.0..3.0));
    let noise = Noise::new(3.0).expect("degrees");
    let t = x.column(0).mapv(|x| truth(x) + 0.2 * noise.sample(&mut random));
    Data { x, t, out: vec![] }
}

fn student(noise_degrees: Option<f64>) -> Rvm {
    let likelihood = StudentT { noise_degrees, noise_variance: None }.into();
    Rvm { likelihood, kernel: Rbf { gamma: 0.5.into() }.into(), ..Rvm::tipping2001() }
}

fn gaussian() -> Rvm {
    Rvm { likelihood: Gaussian::default().into(), ..student(None) }
}

fn fit(rvm: &Rvm, d: &Data) -> (Model, Report) {
    rvm.fit(d.x.view(), &Targets::real(d.t.view())).unwrap()
}

fn error(model: &Model, d: &Data) -> f64 {
    let off = &model.predict_mean(d.x.view()).unwrap() - &d.x.column(0).mapv(truth);
    off.mapv(|v| v * v).mean().unwrap().sqrt()
}

#[track_caller]
fn never_falls(model: &Model, report: &Report) {
    for pair in report.trace.windows(2) {
        assert!(pair[1].log_evidence >= pair[0].log_evidence, "{} to {}", pair[0].log_evidence, pair[1].log_evidence);
    }
    let last = report.trace.last().unwrap();
    assert!((last.log_evidence - model.log_evidence.unwrap()).abs() < 1e-8 * last.log_evidence.abs());
    assert_eq!((report.status, report.iterations), (model.status, model.iterations));
    assert_eq!(report.iterations, report.trace.len());
}

/// With 10 to 20 % of gross outliers the function is found, which Gaussian noise does not achieve. Row weights
/// distinguish the outliers from the other rows.
#[test]
fn outliers_do_not_affect_the_function() {
    for (seed, share) in [(1, 0.1), (2, 0.15), (3, 0.2)] {
        let d = spoilt(seed, 200, share);
        for inference in ["search", "mackay", "em"] {
            let limit = if inference == "em" { 1000 } else { 10_000 };
            let inference_of = Inference::from_name(inference).unwrap();
            let rvm = Rvm { inference: inference_of, max_iterations: limit, ..student(None) };
            let (model, report) = fit(&rvm, &d);
            never_falls(&model, &report);
            let plain = error(&fit(&gaussian(), &d).0, &d);
            assert!(error(&model, &d) < 0.08, "{inference} {share}: {}", error(&model, &d));
            assert!(plain > 3.0 * error(&model, &d), "{inference} {share}: {plain}");
            let count = |rows: &mut dyn Iterator<Item = usize>| rows.map(|i| report.row_weights[i]).sum::<f64>();
            let outliers = count(&mut d.out.iter().copied()) / d.out.len() as f64;
            let others = count(&mut (0..200).filter(|i| !d.out.contains(i))) / (200 - d.out.len()) as f64;
            assert!(outliers < 0.25 * others, "{inference}: {outliers} {others}");
            assert_eq!(Model::from_json(&model.to_json().unwrap()).unwrap(), model);
        }
    }
}

#[test]
fn degrees_and_scale_are_recovered() {
    let d = heavy(4, 500);
    let (model, report) = fit(&student(None), &d);
    never_falls(&model, &report);
    assert_eq!(report.status, Status::Converged);
    let (degrees, scale) = (model.noise_degrees().unwrap(), model.noise_std().unwrap());
    assert!((2.0..4.7).contains(&degrees), "{degrees}");
    assert!((0.17..0.24).contains(&scale), "{scale}");
    let (plain, _) = fit(&gaussian(), &d);
    assert!(model.log_evidence > plain.log_evidence);
    assert!(error(&model, &d) < error(&plain, &d));
    let prediction = model.predict(d.x.view()).unwrap();
    assert_eq!(prediction.noise_degrees, Some(degrees));
    // The variance is that of Student's distribution, and the scale is smaller.
    let expected = prediction.model_variance[0] + prediction.noise_variance * degrees / (degrees - 2.0);
    assert!((prediction.deviation()[0].powi(2) - expected).abs() < 1e-12 * expected);
    let wide = student(Some(1.5));
    assert!(fit(&wide, &d).0.predict(d.x.view()).unwrap().deviation().iter().all(|v| *v == f64::INFINITY));
}

/// With many degrees of freedom the noise is Gaussian.
#[test]
fn many_degrees_of_freedom_equal_gaussian_noise() {
    let d = spoilt(5, 120, 0.0);
    let (one, _) = fit(&student(Some(1e9)), &d);
    let (other, _) = fit(&gaussian(), &d);
    let (found, expected) = (one.log_evidence.unwrap(), other.log_evidence.unwrap());
    // The EM iterations make more noise restarts, and may end slightly higher.
    assert!((found - expected).abs() < 0.2, "{found} {expected}");
    close("mean", &one.predict_mean(d.x.view()).unwrap().to_vec(), &other.predict_mean(d.x.view()).unwrap().to_vec(), 0.03);
    // Evidence and densities are accurate up to the largest degrees of freedom.
    for degrees in [1e7, 1e13, 1e16, 1e300] {
        let (model, _) = fit(&student(Some(degrees)), &d);
        assert!((model.log_evidence.unwrap() - expected).abs() < 0.2, "{degrees}: {:?}", model.log_evidence);
        let prediction = other.predict(d.x.view()).unwrap();
        let normal = prediction.log_density(d.t.view()).to_vec();
        let heavy = Prediction { noise_degrees: Some(degrees), ..prediction }.log_density(d.t.view()).to_vec();
        close("density", &heavy, &normal, 1e-4);
    }
    // Learned degrees of freedom are large.
    let (learnt, _) = fit(&student(None), &d);
    assert!(learnt.noise_degrees().unwrap() > 10.0, "{:?}", learnt.noise_degrees());
}

/// The bound at given precisions is below the log evidence, which a sum over the weight of the bias gives, and near it.
/// The best degrees of freedom are those of the highest bound.
#[test]
fn bound_is_below_the_log_evidence_and_near_it() {
    let d = heavy(6, 40);
    let at = Hyperparameters { intercept_alpha: Some(0.1), noise_variance: Some(0.5), ..Hyperparameters::default() };
    let bound =
        |degrees: Option<f64>| student(degrees).evaluate(d.x.view(), &Targets::real(d.t.view()), &at).unwrap().log_evidence;
    let degrees: f64 = 3.0;
    let log_gamma = |x: f64| {
        // Stirling's series for large arguments, and the recursion for small ones.
        let (mut y, mut shift) = (x, 0.0);
        while y < 20.0 {
            shift += y.ln();
            y += 1.0;
        }
        (y - 0.5) * y.ln() - y + 0.5 * (2.0 * std::f64::consts::PI).ln() + 1.0 / (12.0 * y) - 1.0 / (360.0 * y.powi(3)) - shift
    };
    let each = log_gamma(0.5 * (degrees + 1.0)) - log_gamma(0.5 * degrees) - 0.5 * (degrees * std::f64::consts::PI * 0.5).ln();
    let log_joint = |w: f64| {
        let rows: f64 = d.t.iter().map(|t| each - 0.5 * (degrees + 1.0) * ((t - w).powi(2) / 0.5 / degrees).ln_1p()).sum();
        rows - 0.05 * w * w + 0.5 * (0.1 / (2.0 * std::f64::consts::PI)).ln()
    };
    let grid: Vec<f64> = (0..40_001).map(|k| log_joint(-10.0 + 20.0 * k as f64 / 40_000.0)).collect();
    let top = grid.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let evidence = top + (grid.iter().map(|v| (v - top).exp()).sum::<f64>() * 20.0 / 40_000.0).ln();
    let found = bound(Some(degrees));
    assert!(found < evidence && evidence - found < 0.5, "{found} {evidence}");
    let best = bound(None);
    assert!([0.5, 1.0, 2.0, 3.0, 5.0, 20.0, 1000.0].iter().all(|degrees| bound(Some(*degrees)) <= best + 1e-9));
}

#[test]
fn gradients_equal_finite_differences() {
    let d = heavy(7, 60);
    let c = Array1::from_shape_fn(60, |i| 0.5 + (i % 3) as f64);
    let targets = Targets::real(d.t.view()).with_weights(c.view());
    let at = Hyperparameters {
        relevance: vec![1, 8, 20],
        alpha: vec![0.7, 2.0, 0.1],
        intercept_alpha: Some(0.3),
        noise_variance: Some(0.04),
        ..Hyperparameters::default()
    };
    let h = 1e-4f64;
    for degrees in [Some(3.0), None] {
        let evaluate = |at: &Hyperparameters| student(degrees).evaluate(d.x.view(), &targets, at).unwrap();
        let found = evaluate(&at);
        let check = |what: &str, got: f64, moved: &dyn Fn(f64) -> Hyperparameters| {
            let expected = (evaluate(&moved(h)).log_evidence - evaluate(&moved(-h)).log_evidence) / (2.0 * h);
            assert!((got - expected).abs() < 1e-5 * (1.0 + expected.abs()), "{what} {degrees:?}: {got} {expected}");
        };
        for k in 0..3 {
            check("alpha", found.gradient_log_alpha[k + 1], &|by| {
                let mut at = at.clone();
                at.alpha[k] *= by.exp();
                at
            });
        }
        let noise = |by: f64| Hyperparameters { noise_variance: Some(0.04 * (-by).exp()), ..at.clone() };
        check("noise", found.gradient_log_noise.unwrap(), &noise);
    }
}

/// A weight equals a repeated row, and order and units do not matter.
#[test]
fn weights_equal_repeated_rows_and_units_do_not_matter() {
    let d = spoilt(8, 100, 0.1);
    let rvm = student(Some(4.0));
    let (plain, report) = fit(&rvm, &d);
    let two = Array1::from_elem(100, 2.0);
    let weighted = rvm.fit(d.x.view(), &Targets::real(d.t.view()).with_weights(two.view())).unwrap().0;
    let double = Data { x: concatenate![Axis(0), d.x, d.x], t: concatenate![Axis(0), d.t, d.t], out: vec![] };
    let (twice, of_both) = fit(&rvm, &double);
    assert_eq!((twice.log_evidence, twice.expansion), (weighted.log_evidence, weighted.expansion));
    assert_eq!(of_both.row_weights[..100], of_both.row_weights[100..]);
    let order: Vec<usize> = (0..100).map(|i| (i * 37 + 11) % 100).collect();
    let other = Data { x: d.x.select(Axis(0), &order), t: d.t.select(Axis(0), &order), out: vec![] };
    let (shuffled, of_other) = fit(&rvm, &other);
    assert!((shuffled.log_evidence.unwrap() - plain.log_evidence.unwrap()).abs() < 1e-7);
    let back: Vec<f64> = order.iter().map(|i| report.row_weights[*i]).collect();
    close("row weights", &of_other.row_weights, &back, 1e-6);
    let (scaled, of_scaled) = fit(&rvm, &Data { x: d.x.clone(), t: &d.t * 1e6, out: vec![] });
    close("row weights", &of_scaled.row_weights, &report.row_weights, 1e-5);
    assert!((scaled.noise_std().unwrap() / plain.noise_std().unwrap() / 1e6 - 1.0).abs() < 1e-5);
}

/// Student-t noise works with fixed noise, working sets, a learned kernel, a design matrix, and without a bias.
#[test]
fn student_t_noise_works_with_other_settings() {
    let d = spoilt(9, 150, 0.1);
    let held = Rvm { likelihood: StudentT { noise_degrees: None, noise_variance: Some(0.01) }.into(), ..student(None) };
    let (model, report) = fit(&held, &d);
    never_falls(&model, &report);
    assert_eq!(model.noise_variance(), Some(0.01));
    assert!(error(&model, &d) < 0.08, "{}", error(&model, &d));
    let (model, _) = fit(&Rvm { bias: false, ..student(None) }, &d);
    assert!(error(&model, &d) < 0.1, "{}", error(&model, &d));
    let learnt = Rvm { kernel: Rbf { gamma: Gamma::Rule(GammaRule::Evidence) }.into(), ..student(None) };
    let (model, report) = fit(&learnt, &d);
    assert!(report.kernel_search.is_some() && report.row_weights.len() == 150);
    assert!(error(&model, &d) < 0.08, "{}", error(&model, &d));
    let phi = Array2::from_shape_fn((150, 8), |(i, j)| d.x[[i, 0]].powi(j as i32) / 3f64.powi(j as i32));
    let given = Rvm { basis: Basis::Given, ..student(None) };
    let (model, _) = given.fit(phi.view(), &Targets::real(d.t.view())).unwrap();
    let off = &model.predict_mean(phi.view()).unwrap() - &d.x.column(0).mapv(truth);
    assert!(off.mapv(|v| v * v).mean().unwrap().sqrt() < 0.1);
    let big = spoilt(10, 1300, 0.1);
    let all = Rvm { dictionary: Dictionary::Rule(DictionaryRule::All), ..student(Some(3.0)) };
    let (model, report) = fit(&all, &big);
    never_falls(&model, &report);
    assert!(error(&model, &big) < 0.04, "{}", error(&model, &big));
}

/// Returns the default settings with Student-t noise.
fn robust() -> Rvm {
    Rvm { likelihood: StudentT::default().into(), ..Rvm::default() }
}

/// Returns two features in different units and targets of a smooth function, with noise of standard deviation 0.1. One
/// target in ten is wrong by about 5.
fn two_features(seed: u64, rows: usize) -> (Array2<f64>, Array1<f64>) {
    let mut random = rand_pcg::Pcg64::seed_from_u64(seed);
    let x = Array2::from_shape_fn((rows, 2), |(_, k)| [1.0, 100.0][k] * random.random_range(-2.0..2.0));
    let t = Array1::from_shape_fn(rows, |n| {
        let noise: f64 = random.sample(StandardNormal);
        let wrong: f64 = if n % 10 == 3 { 5.0 * random.sample::<f64, _>(StandardNormal) } else { 0.0 };
        f64::sin(2.0 * x[[n, 0]]) + 0.01 * x[[n, 1]] + 0.1 * noise + wrong
    });
    (x, t)
}

/// Under the process prior, predictions of new rows are at least as good as with a precision for each weight, and
/// intervals cover as many new rows as they claim.
#[test]
fn the_process_prior_predicts_well_despite_outliers() {
    let (mut gain, mut covered, mut least) = (0.0, 0.0, f64::INFINITY);
    for seed in 0..8 {
        let ((x, t), (new, of_new)) = (two_features(seed, 60), two_features(seed + 100, 500));
        let density = |rvm: &Rvm| {
            let (model, report) = rvm.fit(x.view(), &Targets::real(t.view())).unwrap();
            assert_eq!(report.status, Status::Converged, "{seed}");
            let prediction = model.predict(new.view()).unwrap();
            let density = model.log_density(&prediction, of_new.view(), None).unwrap().mean().unwrap();
            (model, density)
        };
        let (model, process) = density(&robust());
        let (ard, precisions) = density(&Rvm { weight_prior: WeightPrior::Ard, ..robust() });
        assert!(model.process.is_some() && ard.process.is_none());
        (gain, least) = (gain + (process - precisions) / 8.0, least.min(process - precisions));
        let (low, high) = model.interval(&model.predict(new.view()).unwrap(), 0.9, None).unwrap();
        let inside = of_new.iter().zip(low.iter().zip(&high)).filter(|(t, (low, high))| (**low..=**high).contains(*t)).count();
        covered += inside as f64 / 4000.0;
    }
    assert!(gain > 0.03 && least > -0.05, "{gain} {least}");
    assert!((0.85..0.95).contains(&covered), "{covered}");
}

/// The posterior under the process prior is that of Gaussian noise whose variance is known for each row: the squared
/// scale over the weight of the row.
#[test]
fn the_process_prior_has_the_posterior_of_its_row_weights() {
    for rows in [80, 1200, 3200] {
        let (x, t) = two_features(3, rows);
        let kernel: Kernel = Rbf { gamma: vec![0.5, 1e-5].into() }.into();
        // So many centres leave nothing of the process, whatever the noise is.
        let rvm = Rvm { kernel, residual: Some(1e-4), ..robust() };
        let targets = Targets::real(t.view());
        let (model, report) = rvm.fit(x.view(), &targets).unwrap();
        assert!(model.process.is_some() && report.row_weights.len() == rows);
        assert_eq!(Model::from_json(&model.to_json().unwrap()).unwrap(), model);
        let variance = Array1::from_vec(report.row_weights.iter().map(|u| model.noise_variance().unwrap() / u).collect());
        let gaussian = Rvm { likelihood: Gaussian::default().into(), ..rvm };
        let known_noise = Targets::real(t.view()).with_noise_variance(variance.view());
        let (known, _) = gaussian.fit(x.view(), &known_noise).unwrap();
        let [found, expected] = [&model, &known].map(|model| model.predict(x.view()).unwrap());
        let size = t.iter().fold(0.0, |largest: f64, t| largest.max(t.abs()));
        close("mean", &found.mean.to_vec(), &expected.mean.to_vec(), 0.002 * size);
        let deviation = |p: &Prediction| p.model_variance.mapv(f64::sqrt).to_vec();
        close("deviation", &deviation(&found), &deviation(&expected), 0.002 * size);
        let left_out = model.leave_one_out(x.view(), &targets).unwrap().prediction.unwrap();
        let expected = known.leave_one_out(x.view(), &known_noise).unwrap().prediction.unwrap();
        close("left out", &left_out.mean.to_vec(), &expected.mean.to_vec(), 0.005 * size);
    }
}

/// With many degrees of freedom the noise is Gaussian. Order and units of the rows do not matter.
#[test]
fn the_process_prior_depends_on_nothing_else() {
    let (x, t) = two_features(5, 90);
    let fit = |rvm: &Rvm, x: ArrayView2<f64>, t: ArrayView1<f64>| rvm.fit(x, &Targets::real(t)).unwrap().0;
    let many = Rvm { likelihood: StudentT { noise_degrees: Some(1e9), noise_variance: None }.into(), ..Rvm::default() };
    let [one, other] = [&many, &Rvm::default()].map(|rvm| fit(rvm, x.view(), t.view()));
    let (found, expected) = (one.log_evidence.unwrap(), other.log_evidence.unwrap());
    // Units are those of the median distance from the median, on which the priors of amplitude and noise depend.
    assert!((found - expected).abs() < 0.1, "{found} {expected}");
    close("mean", &one.predict_mean(x.view()).unwrap().to_vec(), &other.predict_mean(x.view()).unwrap().to_vec(), 0.02);

    let plain = fit(&robust(), x.view(), t.view());
    let order: Vec<usize> = (0..90).map(|i| (i * 37 + 11) % 90).collect();
    let shuffled = fit(&robust(), x.select(Axis(0), &order).view(), t.select(Axis(0), &order).view());
    let mut relevance: Vec<usize> = shuffled.relevance.iter().map(|k| order[*k]).collect();
    relevance.sort_unstable();
    assert_eq!(relevance, plain.relevance);
    let [found, expected] = [&shuffled, &plain].map(|model| model.log_evidence.unwrap());
    assert!((found - expected).abs() < 1e-9 * expected.abs(), "{found} {expected}");
    let scaled = fit(&robust(), (&x * &ndarray::array![1e-3, 1e5]).view(), (&t * 1e6).view());
    let ratio = scaled.noise_std().unwrap() / plain.noise_std().unwrap() / 1e6;
    assert!((ratio - 1.0).abs() < 1e-6, "{ratio}");
    assert!((scaled.noise_degrees().unwrap() / plain.noise_degrees().unwrap() - 1.0).abs() < 1e-6);
}

/// Limits and the observer end the fit with a model.
#[test]
fn limits_and_observer_end_student_t_fits() {
    let d = spoilt(11, 150, 0.1);
    let (model, report) = fit(&Rvm { max_iterations: 7, ..student(None) }, &d);
    assert_eq!((report.status, report.trace.len()), (Status::IterationLimit, 7));
    never_falls(&model, &report);
    let (half, mut calls) = (fit(&student(None), &d).1.trace.len() / 2, 0);
    let mut stop = |_: &Progress| {
        calls += 1;
        if calls == half { std::ops::ControlFlow::Break(()) } else { std::ops::ControlFlow::Continue(()) }
    };
    let (model, report) =
        student(None).fit_with(d.x.view(), &Targets::real(d.t.view()), &mut stop, &Interrupt::default()).unwrap();
    assert_eq!(report.status, Status::Stopped);
    never_falls(&model, &report);
    let (model, report) = fit(&Rvm { time_limit: Some(1e-3), ..student(None) }, &d);
    assert_eq!(report.status, Status::TimeLimit);
    never_falls(&model, &report);
}

#[test]
fn constant_and_nearly_constant_targets_are_fitted() {
    let d = spoilt(12, 40, 0.0);
    let constant = Data { x: d.x.clone(), t: Array1::from_elem(40, 3.0), out: vec![] };
    let (model, report) = fit(&student(None), &constant);
    assert!(report.adjustments.constant_target);
    assert!(model.predict_mean(d.x.view()).unwrap().iter().all(|m| (m - 3.0).abs() < 1e-6));
    // If all but three targets are equal, the scale falls to its lower limit, and all numbers are finite.
    let mut t = constant.t;
    t.slice_mut(s![..3]).assign(&Array1::from(vec![9.0, -4.0, 30.0]));
    let (model, report) = fit(&student(None), &Data { x: d.x.clone(), t, out: vec![] });
    never_falls(&model, &report);
    assert!(model.predict(d.x.view()).unwrap().mean.iter().all(|m| m.is_finite()));
    assert!(report.row_weights.iter().all(|w| w.is_finite() && *w >= 0.0));
}

#[test]
fn student_t_noise_rejects_unsupported_settings() {
    let d = spoilt(13, 30, 0.1);
    for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        for (name, likelihood) in [
            ("noise_degrees", StudentT { noise_degrees: Some(bad), noise_variance: None }),
            ("noise_variance", StudentT { noise_degrees: None, noise_variance: Some(bad) }),
        ] {
            let rvm = Rvm { likelihood: likelihood.into(), ..student(None) };
            match rvm.fit(d.x.view(), &Targets::real(d.t.view())) {
                Err(Error::Parameter { name: found, .. }) => assert_eq!(found, format!("likelihood.student_t.{name}")),
                other => panic!("{other:?}"),
            }
        }
    }
    let variational = Rvm { inference: Inference::from_name("variational").unwrap(), ..student(None) };
    assert!(matches!(variational.check(), Err(Error::Parameter { name, .. }) if name == "inference"));
    let moved = Rvm { centres: CentreRule::Learned, ..student(None) };
    assert!(matches!(moved.check(), Err(Error::Parameter { name, .. }) if name == "centres"));
    let mut sums = Statistics::new(&student(None).kernel, d.x.slice(s![..5, ..])).unwrap();
    sums.update(d.x.view(), &Targets::real(d.t.view())).unwrap();
    assert!(matches!(student(None).fit_statistics(&sums), Err(Error::Parameter { name, .. }) if name == "likelihood"));
    let v = Array1::from_elem(30, 0.1);
    let known = student(None).fit(d.x.view(), &Targets::real(d.t.view()).with_noise_variance(v.view()));
    assert!(known.unwrap_err().to_string().contains("gaussian likelihood"));
    let labels: Vec<usize> = (0..30).map(|i| i % 2).collect();
    assert!(student(None).fit(d.x.view(), &Targets::classes(&labels, 2)).is_err());
}

/// The model of an evaluation predicts with the tails of Student's distribution, like the fitted model.
#[test]
fn an_evaluated_model_has_the_degrees_of_the_fit() {
    let d = heavy(1, 60);
    let rvm = student(None);
    let (model, _) = fit(&rvm, &d);
    let again = rvm.evaluate(d.x.view(), &Targets::real(d.t.view()), &Hyperparameters::of(&model)).unwrap().model;
    let (own, fitted) = (again.noise_degrees().unwrap(), model.noise_degrees().unwrap());
    close("degrees", &[own], &[fitted], 3e-2);
}
