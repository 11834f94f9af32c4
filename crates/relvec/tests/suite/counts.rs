//! Counts: the Poisson likelihood, its exposures and its predictions.

use crate::support::{cholesky, close, inverse};
use ndarray::{Array1, Array2, ArrayView1, Axis, concatenate, s};
use rand::{RngExt, SeedableRng};
use rand_distr::Distribution;
use relvec::*;

fn log_rate(x: f64) -> f64 {
    1.0 + 1.2 * (1.5 * x).sin()
}

/// Rows, counts over exposures, and exposures.
struct Data {
    x: Array2<f64>,
    t: Array1<f64>,
    e: Array1<f64>,
}

fn data(seed: u64, rows: usize, exposed: bool) -> Data {
    let mut random = rand_pcg::Pcg64::seed_from_u64(seed);
    let x = Array2::from_shape_simple_fn((rows, 1), || random.random_range(-3.0..3.0));
    let e = Array1::from_shape_simple_fn(rows, || if exposed { random.random_range(0.2..5.0) } else { 1.0 });
    let draw = |(x, e): (&f64, &f64)| rand_distr::Poisson::new(e * log_rate(*x).exp()).expect("a rate").sample(&mut random);
    let t = x.iter().zip(&e).map(draw).collect();
    Data { x, t, e }
}

fn poisson() -> Rvm {
    Rvm { likelihood: Poisson::default().into(), kernel: Rbf { gamma: 0.5.into() }.into(), ..Rvm::tipping2001() }
}

fn fit(rvm: &Rvm, x: &Array2<f64>, t: &Array1<f64>) -> (Model, Report) {
    rvm.fit(x.view(), &Targets::real(t.view())).unwrap()
}

/// The rate is recovered from counts, the evidence is far above that of a constant, and the true rate is within its
/// band.
#[test]
fn fits_recover_a_known_rate() {
    for inference in ["search", "mackay", "em"] {
        let d = data(1, 400, false);
        let limit = if inference == "em" { 300 } else { 10_000 };
        let rvm = Rvm { inference: Inference::from_name(inference).unwrap(), max_iterations: limit, ..poisson() };
        let (model, report) = fit(&rvm, &d.x, &d.t);
        for pair in report.trace.windows(2) {
            assert!(pair[1].log_evidence >= pair[0].log_evidence - 1e-8 * pair[0].log_evidence.abs(), "{inference}");
        }
        assert!(model.is_of_counts() && model.n_classes().is_none() && model.noise_variance().is_none());
        assert_eq!(Model::from_json(&model.to_json().unwrap()).unwrap(), model);
        let prediction = model.predict(d.x.view()).unwrap();
        let truth = d.x.column(0).mapv(log_rate);
        let off = (&prediction.mean - &truth).mapv(|v| v * v).mean().unwrap().sqrt();
        // `em` has not converged by then.
        assert!(off < if inference == "em" { 0.15 } else { 0.1 }, "{inference}: {off}");
        let inside = (0..400).filter(|i| (prediction.mean[*i] - truth[*i]).powi(2) < 9.0 * prediction.model_variance[*i]).count();
        assert!(inside > 360, "{inference}: {inside}");
        let nothing = Hyperparameters { intercept_alpha: Some(1.0), ..Hyperparameters::default() };
        let constant = rvm.evaluate(d.x.view(), &Targets::real(d.t.view()), &nothing).unwrap();
        assert!(model.log_evidence.unwrap() > constant.log_evidence + 100.0);
    }
}

/// The evidence of the bias alone is an integral over the bias. The Laplace approximation is close to it for large
/// counts.
#[test]
fn evidence_of_the_bias_is_near_the_integral() {
    let d = data(2, 60, true);
    let at = Hyperparameters { intercept_alpha: Some(0.5), ..Hyperparameters::default() };
    let targets = Targets::real(d.t.view()).with_exposure(d.e.view());
    let found = poisson().evaluate(d.x.view(), &targets, &at).unwrap().log_evidence;
    let log_gamma = |n: f64| (2..=n as usize).map(|k| (k as f64).ln()).sum::<f64>();
    // The prior of the bias is centred at a rate of one count per mean exposure.
    let rate = 1.0 / d.e.mean().unwrap();
    let log_joint = |w: f64| {
        let of_row = |(t, e): (&f64, &f64)| t * (w + (rate * e).ln()) - rate * e * w.exp() - log_gamma(*t);
        let rows: f64 = d.t.iter().zip(&d.e).map(of_row).sum();
        rows - 0.25 * w * w + 0.5 * (0.5 / (2.0 * std::f64::consts::PI)).ln()
    };
    let grid: Vec<f64> = (0..20_001).map(|k| log_joint(-3.0 + 6.0 * k as f64 / 20_000.0)).collect();
    let top = grid.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let integral = top + (grid.iter().map(|v| (v - top).exp()).sum::<f64>() * 6.0 / 20_000.0).ln();
    assert!((found - integral).abs() < 2e-3, "{found} {integral}");
}

/// The gradient of the evidence, in which the mode moves, is exact with exposures and weights.
#[test]
fn gradients_equal_finite_differences() {
    let d = data(3, 50, true);
    let c = Array1::from_shape_fn(50, |i| 0.5 + (i % 3) as f64);
    let targets = Targets::real(d.t.view()).with_exposure(d.e.view()).with_weights(c.view());
    let at = Hyperparameters {
        relevance: vec![1, 8, 20, 33],
        alpha: vec![0.7, 2.0, 0.1, 5.0],
        intercept_alpha: Some(0.3),
        ..Hyperparameters::default()
    };
    let evidence = |gamma: f64, at: &Hyperparameters| {
        let rvm = Rvm { kernel: Rbf { gamma: gamma.into() }.into(), ..poisson() };
        rvm.evaluate(d.x.view(), &targets, at).unwrap()
    };
    let (found, h) = (evidence(0.5, &at), 1e-4f64);
    for k in 0..4 {
        let moved = |by: f64| {
            let mut at = at.clone();
            at.alpha[k] *= by.exp();
            evidence(0.5, &at).log_evidence
        };
        let expected = (moved(h) - moved(-h)) / (2.0 * h);
        assert!((found.gradient_log_alpha[k + 1] - expected).abs() < 1e-6 * (1.0 + expected.abs()));
        assert!((found.gradient_log_alpha_fixed[k + 1] - expected).abs() > 1e-6, "the mode moves");
    }
    let width = |by: f64| evidence(0.5 * by.exp(), &at).log_evidence;
    let expected = (width(h) - width(-h)) / (2.0 * h);
    assert!((found.gradient_log_kernel[0] - expected).abs() < 1e-6 * (1.0 + expected.abs()));
}

/// A count over an exposure of k equals k rows with the same total, up to the number of ways to distribute the counts.
/// With exposures the rate per unit exposure is found.
#[test]
fn count_over_an_exposure_equals_its_rows() {
    let d = data(4, 300, true);
    let targets = Targets::real(d.t.view()).with_exposure(d.e.view());
    let (model, _) = poisson().fit(d.x.view(), &targets).unwrap();
    let prediction = model.predict(d.x.view()).unwrap();
    let off = (&prediction.mean - &d.x.column(0).mapv(log_rate)).mapv(|v| v * v).mean().unwrap().sqrt();
    assert!(off < 0.12, "{off}");

    // Counts of 3 and 5 at one row, and 8 over an exposure of 2. Without a bias rates are per unit exposure. With a
    // bias they are relative to the mean exposure, which differs between the two data sets.
    let unbiased = Rvm { bias: false, ..poisson() };
    let (mut x, mut t) = (d.x.slice(s![..40, ..]).to_owned(), d.t.slice(s![..40]).mapv(|t| t.min(9.0)));
    (t[0], t[1]) = (3.0, 5.0);
    x[[1, 0]] = x[[0, 0]];
    let at = Hyperparameters { relevance: vec![0, 7, 20], alpha: vec![1.0, 0.5, 2.0], ..Hyperparameters::default() };
    let apart = unbiased.evaluate(x.view(), &Targets::real(t.view()), &at).unwrap();
    let together: Vec<usize> = (0..40).filter(|i| *i != 1).collect();
    let (x, mut t) = (x.select(Axis(0), &together), t.select(Axis(0), &together));
    let mut e = Array1::ones(39);
    (t[0], e[0]) = (8.0, 2.0);
    let at = Hyperparameters { relevance: vec![0, 6, 19], ..at };
    let summed = unbiased.evaluate(x.view(), &Targets::real(t.view()).with_exposure(e.view()), &at).unwrap();
    close("weights", &summed.weights, &apart.weights, 1e-9);
    // There are 8! / (3! 5!) ways, each of probability 2^-8.
    let constant = (56f64 / 256.0).ln();
    assert!((apart.log_evidence - summed.log_evidence - constant).abs() < 1e-9, "{}", apart.log_evidence - summed.log_evidence);
}

/// A common factor of all exposures only shifts the log rate.
#[test]
fn common_exposure_shifts_the_log_rate() {
    let d = data(5, 100, false);
    let e = Array1::from_elem(100, 4.0);
    let (plain, _) = fit(&poisson(), &d.x, &d.t);
    let targets = Targets::real(d.t.view()).with_exposure(e.view());
    let (over, _) = poisson().fit(d.x.view(), &targets).unwrap();
    let (one, other) = (plain.predict(d.x.view()).unwrap(), over.predict(d.x.view()).unwrap());
    let (one, other) = (one.counts(None).unwrap(), other.counts(Some(e.view())).unwrap());
    let ratio = &other.mean / &one.mean;
    assert!(ratio.iter().all(|r| (r - 1.0).abs() < 0.1), "{ratio}");
}

/// Mean and variance of a count whose log rate is Gaussian agree with a sum over rates.
#[test]
fn moments_of_counts_are_those_of_the_mixture() {
    let d = data(6, 60, false);
    let (model, _) = fit(&poisson(), &d.x, &d.t);
    let prediction = model.predict(d.x.view()).unwrap();
    let counts = prediction.counts(None).unwrap();
    for n in 0..60 {
        let (m, sd) = (prediction.mean[n], prediction.model_variance[n].sqrt());
        let (mut mass, mut first, mut second) = (0.0, 0.0, 0.0);
        for k in -400..=400 {
            let z = k as f64 / 40.0;
            let (p, rate) = ((-0.5 * z * z).exp(), (m + sd * z).exp());
            (mass, first, second) = (mass + p, first + p * rate, second + p * (rate + rate * rate));
        }
        let (mean, variance) = (first / mass, second / mass - (first / mass).powi(2));
        assert!((counts.mean[n] - mean).abs() < 1e-9 * mean);
        assert!((counts.variance()[n] - variance).abs() < 1e-8 * variance);
        assert!((counts.std()[n].powi(2) - counts.rate_variance[n] - counts.mean[n]).abs() < 1e-9 * variance);
    }
}

/// Weights count rows, to the bit, and the order of rows does not matter.
#[test]
fn weights_equal_repeated_rows() {
    let d = data(7, 60, true);
    let (x, t, e) =
        (concatenate![Axis(0), d.x, d.x], concatenate![Axis(0), d.t, d.t], concatenate![Axis(0), d.e, d.e].to_owned());
    let two = Array1::from_elem(60, 2.0);
    let twice = poisson().fit(x.view(), &Targets::real(t.view()).with_exposure(e.view())).unwrap().0;
    let targets = Targets::real(d.t.view()).with_exposure(d.e.view()).with_weights(two.view());
    let weighted = poisson().fit(d.x.view(), &targets).unwrap().0;
    assert_eq!((twice.log_evidence, twice.expansion), (weighted.log_evidence, weighted.expansion));
}

/// Counts of zero, one and huge counts give a defined model.
#[test]
fn constant_counts_of_any_size_are_fitted() {
    let x = Array2::from_shape_fn((30, 1), |(i, _)| i as f64 / 10.0);
    for count in [0.0, 1.0, 7.0, 1e6, 1e12] {
        for bias in [true, false] {
            for inference in ["search", "mackay", "em"] {
                let inference = Inference::from_name(inference).unwrap();
                let rvm = Rvm { bias, inference, max_iterations: 200, ..poisson() };
                let (model, report) = fit(&rvm, &x, &Array1::from_elem(30, count));
                assert!(report.trace.iter().all(|p| p.log_evidence.is_finite()));
                let counts = model.predict(x.view()).unwrap().counts(None).unwrap();
                let good = |m: f64| if count == 0.0 { m < 0.5 } else { (m / count - 1.0).abs() < 0.5 };
                // Without a bias, a `mackay` fit to zeros may end with f = 0.
                let defined = count == 0.0 && !bias;
                assert!(defined || counts.mean.iter().all(|m| good(*m)), "{count} {bias} {:?}: {}", rvm.inference, counts.mean);
            }
        }
    }
    let mut lone = Array1::zeros(30);
    lone[12] = 40.0;
    let prediction = fit(&poisson(), &x, &lone).0.predict(x.view()).unwrap();
    assert!((prediction.mean[12] - 40f64.ln()).abs() < 0.5);
}

/// Working sets, learned kernels and learned centres work for counts.
#[test]
fn counts_work_with_working_sets_and_learned_kernels() {
    let d = data(8, 900, false);
    let rvm = Rvm { dictionary: Dictionary::Rule(DictionaryRule::All), ..poisson() };
    let (model, report) = fit(&rvm, &d.x, &d.t);
    assert!(report.certificate.reason.contains("passes over all 900"), "{}", report.certificate.reason);
    let off = (&model.predict_mean(d.x.view()).unwrap() - &d.x.column(0).mapv(log_rate)).mapv(|v| v * v).mean().unwrap().sqrt();
    assert!(off < 0.08, "{off}");
    let d = data(9, 150, true);
    let targets = Targets::real(d.t.view()).with_exposure(d.e.view());
    let learnt = Rvm { kernel: Rbf { gamma: Gamma::Rule(GammaRule::Evidence) }.into(), ..poisson() };
    let (model, report) = learnt.fit(d.x.view(), &targets).unwrap();
    let trial = &report.kernel_search.unwrap().tried[0];
    assert!(trial.process.gain > 0.5, "{trial:?}");
    let rates = model.predict_mean(d.x.view()).unwrap() - d.x.column(0).mapv(log_rate);
    let off = rates.mapv(|v| v * v).mean().unwrap().sqrt();
    assert!(off < 0.25, "{off}");
    let moved = Rvm { centres: CentreRule::Learned, dictionary: Dictionary::Size(20), ..poisson() };
    assert!(moved.fit(d.x.view(), &targets).unwrap().1.centre_search.is_some());
}

#[test]
fn bad_counts_exposures_and_settings_are_rejected() {
    let d = data(10, 20, true);
    let error = |targets: Targets| poisson().fit(d.x.view(), &targets).unwrap_err().to_string();
    for (bad, says) in [
        (-1.0, "row 5 has the target -1; counts are whole"),
        (2.5, "row 5 has the target 2.5"),
        (f64::NAN, "row 5"),
        (f64::INFINITY, "row 5"),
    ] {
        let mut t = d.t.clone();
        t[5] = bad;
        let found = error(Targets::real(t.view()));
        assert!(found.contains(says), "{found}");
    }
    let labels: Vec<usize> = (0..20).map(|i| i % 2).collect();
    assert!(error(Targets::classes(&labels, 2)).contains("needs counts"));
    for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let mut e = d.e.clone();
        e[3] = bad;
        assert!(error(Targets::real(d.t.view()).with_exposure(e.view())).contains("exposure of row 3"));
    }
    let short = d.e.slice(s![..19]);
    assert!(error(Targets::real(d.t.view()).with_exposure(short)).contains("exposure: expected 20, one per row, found 19"));
    assert!(error(Targets::real(d.t.view()).with_noise_variance(d.e.view())).contains("for the gaussian likelihood"));
    let gaussian = Rvm::tipping2001().fit(d.x.view(), &Targets::real(d.t.view()).with_exposure(d.e.view()));
    assert!(gaussian.unwrap_err().to_string().contains("for the poisson likelihood"));
    let variational = Rvm { inference: Inference::from_name("variational").unwrap(), ..poisson() };
    assert!(matches!(variational.check(), Err(Error::Parameter { name, .. }) if name == "inference"));
    let mut sums = Statistics::new(&poisson().kernel, d.x.slice(s![..5, ..])).unwrap();
    assert!(sums.update(d.x.view(), &Targets::real(d.t.view()).with_exposure(d.e.view())).is_err());
    sums.update(d.x.view(), &Targets::real(d.t.view())).unwrap();
    assert!(matches!(poisson().fit_statistics(&sums), Err(Error::Parameter { name, .. }) if name == "likelihood"));
    let (model, _) = fit(&poisson(), &d.x, &d.t);
    let prediction = model.predict(d.x.view()).unwrap();
    assert!(prediction.counts(Some(short)).is_err());
    assert!(prediction.counts(Some(Array1::zeros(20).view())).is_err());
    assert!(model.predict_probability(d.x.view(), Moderation::Posterior).is_err());
}

/// Exposures multiplied by c give the same expected counts and the same evidence, because the probability of a count
/// does not depend on the unit.
#[test]
fn counts_and_evidence_do_not_depend_on_the_unit_of_the_exposure() {
    let d = data(11, 80, true);
    for inference in ["search", "mackay"] {
        let rvm = Rvm { inference: Inference::from_name(inference).unwrap(), ..poisson() };
        let of = |c: f64| {
            let e = &d.e * c;
            let targets = Targets::real(d.t.view()).with_exposure(e.view());
            let (model, _) = rvm.fit(d.x.view(), &targets).unwrap();
            let prediction = model.predict(d.x.view()).unwrap();
            let counts = prediction.counts(Some(e.view())).unwrap();
            let logs = prediction.count_log_probability(d.t.view(), Some(e.view())).unwrap();
            let left = model.leave_one_out(d.x.view(), &targets).unwrap().log_density;
            (model.log_evidence.unwrap(), counts, logs, left)
        };
        let one = of(1.0);
        for c in [1e-300, 1e-12, 1e-3, 0.7, 1e3, 1e12, 1e300] {
            let other = of(c);
            assert!((one.0 - other.0).abs() < 1e-8, "{inference} {c}: {} {}", one.0, other.0);
            close("counts", &other.1.mean.to_vec(), &one.1.mean.to_vec(), 1e-8);
            close("variances", &other.1.variance().to_vec(), &one.1.variance().to_vec(), 1e-8);
            close("log probabilities", &other.2.to_vec(), &one.2.to_vec(), 1e-8);
            close("rows left out", &other.3.to_vec(), &one.3.to_vec(), 1e-8);
        }
    }
}

/// Exposures of 1 change nothing.
#[test]
fn exposures_of_one_change_nothing() {
    let (d, ones) = (data(12, 60, false), Array1::ones(60));
    let (plain, _) = fit(&poisson(), &d.x, &d.t);
    let targets = Targets::real(d.t.view()).with_exposure(ones.view());
    assert_eq!(poisson().fit(d.x.view(), &targets).unwrap().0, plain);
}

/// For one large count among zeros, the log rate is bounded from above only, and the Laplace approximation would expect
/// up to exp(1000) counts. The expected counts are finite and have the size of the observed ones.
#[test]
fn single_large_count_among_zeros_gives_finite_predictions() {
    for (rows, peak, schemes) in [
        (30, 40.0, &["search", "mackay"][..]),
        (30, 1e5, &["search", "mackay"]),
        (200, 40.0, &["search"]),
        (200, 1e5, &["search"]),
        (200, 1e9, &["search"]),
    ] {
        for inference in schemes.iter().copied() {
            let rvm = Rvm { inference: Inference::from_name(inference).unwrap(), ..poisson() };
            let x = Array2::from_shape_fn((rows, 1), |(i, _)| 10.0 * i as f64 / rows as f64);
            let mut t = Array1::zeros(rows);
            t[rows / 3] = peak;
            let model = fit(&rvm, &x, &t).0;
            let prediction = model.predict(x.view()).unwrap();
            let name = format!("{rows} {peak} {inference}");
            let counts = prediction.counts(None).unwrap_or_else(|e| panic!("{name}: {e}"));
            assert!(counts.mean.sum() < 2.0 * peak + 10.0, "{name}: {} {}", counts.mean.sum(), counts.mean);
            assert!(counts.std().iter().all(|s| *s < peak), "{name}: {}", counts.std());
            assert!(prediction.count_log_probability(t.view(), None).unwrap().iter().all(|l| l.is_finite() && *l <= 0.0));
        }
    }
}

/// Default settings for counts.
fn by_default() -> Rvm {
    Rvm { likelihood: Poisson::default().into(), ..Rvm::default() }
}

/// Counts of a smooth function of two features, with a mean rate of about `level`, and their exposures.
fn two_features(seed: u64, rows: usize, level: f64) -> Data {
    let mut random = rand_pcg::Pcg64::seed_from_u64(seed);
    let x = Array2::from_shape_simple_fn((rows, 2), || random.random_range(-2.0..2.0));
    let e: Array1<f64> = Array1::from_shape_simple_fn(rows, || random.random_range(0.5..2.0));
    let rate = |n: usize| level * e[n] * f64::exp((2.0f64 * x[[n, 0]]).sin() + 0.5 * x[[n, 1]]);
    let t = (0..rows).map(|n| rand_distr::Poisson::new(rate(n)).expect("a rate").sample(&mut random)).collect();
    Data { x, t, e }
}

/// Under the process prior, predictions of new rows are better than with a precision for each weight, and intervals cover
/// as many new rows as they claim.
#[test]
fn the_process_prior_predicts_counts_well() {
    let (mut gain, mut covered, mut least) = (0.0, 0.0, f64::INFINITY);
    for (seed, level) in [(0, 1.0), (1, 1.0), (2, 5.0), (3, 5.0), (4, 50.0), (5, 50.0)] {
        let (d, new) = (two_features(seed, 50, level), two_features(seed + 100, 500, level));
        let density = |rvm: &Rvm| {
            let (model, report) = rvm.fit(d.x.view(), &Targets::real(d.t.view()).with_exposure(d.e.view())).unwrap();
            assert_eq!(report.status, Status::Converged, "{seed}");
            let prediction = model.predict(new.x.view()).unwrap();
            let density = prediction.count_log_probability(new.t.view(), Some(new.e.view())).unwrap().mean().unwrap();
            (model, density)
        };
        let (model, process) = density(&by_default());
        let (ard, precisions) = density(&Rvm { weight_prior: WeightPrior::Ard, ..by_default() });
        assert!(model.process.is_some() && ard.process.is_none());
        (gain, least) = (gain + (process - precisions) / 6.0, least.min(process - precisions));
        let (low, high) = model.interval(&model.predict(new.x.view()).unwrap(), 0.9, Some(new.e.view())).unwrap();
        let inside = new.t.iter().zip(low.iter().zip(&high)).filter(|(t, (low, high))| (**low..=**high).contains(*t)).count();
        covered += inside as f64 / 3000.0;
    }
    assert!(gain > 0.025 && least > -0.09, "{gain} {least}");
    assert!((0.88..0.98).contains(&covered), "{covered}");
}

/// Returns Laplace's approximation of the log evidence of counts `t` over exposures `e`, under a process with covariance
/// `k` times `amplitude` and a flat constant: log rates, their posterior variances, and the evidence. The mode is found by
/// Newton's method with N x N matrices and a constant of prior variance 1e4.
fn dense(k: &Array2<f64>, d: &Data, amplitude: f64) -> (Array1<f64>, Array1<f64>, f64) {
    const WIDE: f64 = 1e4;
    let n = d.t.len();
    let s = k * amplitude + WIDE;
    let middle = (d.t.sum() / d.e.sum()).ln();
    let mut f = Array1::from_elem(n, middle);
    for _ in 0..60 {
        let c = &d.e * &f.mapv(f64::exp);
        let z = &f - middle + &((&d.t - &c) / &c);
        let sum = &s + &Array2::from_diag(&c.mapv(|c| 1.0 / c));
        let step = middle + s.dot(&inverse(&sum).dot(&z)) - &f;
        let rise = step.iter().fold(0.0, |most: f64, step| most.max(*step));
        f += &(&step * if rise > 0.0 { rise.ln_1p() / rise } else { 1.0 });
    }
    let c = &d.e * &f.mapv(f64::exp);
    let sum = inverse(&(&s + &Array2::from_diag(&c.mapv(|c| 1.0 / c))));
    let variance = (0..n).map(|i| 1.0 / c[i] - sum[[i, i]] / (c[i] * c[i])).collect();
    let log_gamma = |count: f64| (2..=count as usize).map(|k| (k as f64).ln()).sum::<f64>();
    let of_row = |i: usize| d.t[i] * (f[i] + d.e[i].ln()) - c[i] - log_gamma(d.t[i]);
    let prior = 0.5 * (&f - middle).dot(&(&d.t - &c));
    let scaled = Array2::from_shape_fn((n, n), |(i, j)| f64::from(u8::from(i == j)) + (c[i] * c[j]).sqrt() * s[[i, j]]);
    // The density of a flat constant is that of a wide one without its normalisation.
    let flat = 0.5 * (2.0 * std::f64::consts::PI * WIDE).ln();
    let evidence = (0..n).map(of_row).sum::<f64>() - prior - cholesky(&scaled).diag().iter().map(|v| v.ln()).sum::<f64>() + flat;
    (f, variance, evidence)
}

/// With all rows as centres, mode, variances and evidence are those of N x N matrices, and no other amplitude has a higher
/// evidence. Weights are the residuals of the counts, in the user's units.
#[test]
fn the_process_prior_of_counts_equals_n_by_n_matrices() {
    for (seed, rows, level) in [(1, 70, 0.5), (2, 60, 8.0), (3, 65, 300.0)] {
        let d = two_features(seed, rows, level);
        let kernel: Kernel = Rbf { gamma: vec![3.0, 1.0].into() }.into();
        let rvm = Rvm { kernel: kernel.clone(), residual: Some(1e-12), ..by_default() };
        let rvm = Rvm { posterior: PosteriorRule::Laplace, ..rvm };
        let (model, _) = rvm.fit(d.x.view(), &Targets::real(d.t.view()).with_exposure(d.e.view())).unwrap();
        assert_eq!(Model::from_json(&model.to_json().unwrap()).unwrap(), model);
        let k = Array2::from_shape_fn((rows, rows), |(i, j)| {
            let square = |f: usize| (d.x[[i, f]] - d.x[[j, f]]).powi(2);
            (-3.0 * square(0) - square(1)).exp()
        });
        let amplitude = model.process.as_ref().unwrap().amplitude;
        let (f, variance, evidence) = dense(&k, &d, amplitude);
        let found = model.predict(d.x.view()).unwrap();
        close("mode", &found.mean.to_vec(), &f.to_vec(), 1e-4);
        close("variance", &found.model_variance.to_vec(), &variance.to_vec(), 1e-4);
        assert!((model.log_evidence.unwrap() - evidence).abs() < 1e-4, "{:?} {evidence}", model.log_evidence);
        for other in [0.9, 1.1] {
            let other = dense(&k, &d, other * amplitude).2;
            assert!(evidence > other, "{amplitude}: {evidence} {other}");
        }
        if model.relevance.len() == rows {
            let residual = &d.t - &(&d.e * &f.mapv(f64::exp));
            close(
                "weights",
                &model.expansion.weights.column(0).to_vec(),
                &residual.to_vec(),
                0.02 * residual.mapv(f64::abs).sum(),
            );
        }
    }
}

/// For many rows, the slope of the log posterior in the weights is 0 at the model, on the raw counts.
#[test]
fn the_process_prior_of_many_counts_is_at_the_mode() {
    for rows in [900, 3200] {
        let d = two_features(4, rows, 3.0);
        let kernel: Kernel = Rbf { gamma: vec![1.0, 0.3].into() }.into();
        let rvm = Rvm { kernel: kernel.clone(), residual: Some(1e-6), ..by_default() };
        let (model, _) = rvm.fit(d.x.view(), &Targets::real(d.t.view()).with_exposure(d.e.view())).unwrap();
        let centres = d.x.select(Axis(0), &model.relevance);
        let mut between = Array2::zeros((rows, centres.nrows()));
        kernel.block(d.x.view(), centres.view(), between.view_mut());
        let f = model.predict(d.x.view()).unwrap().mean;
        let residual = &d.t - &(&d.e * &f.mapv(f64::exp));
        let slope = between.t().dot(&residual);
        // The slope of the log prior is -K w / a, and K w is the function at the centres without the constant.
        let at = model.predict(centres.view()).unwrap().mean - model.expansion.intercept[0];
        let prior = at / model.process.as_ref().unwrap().amplitude;
        let size = between.t().dot(&residual.mapv(f64::abs)).iter().fold(0.0, |most: f64, v| most.max(*v));
        let off = (&slope - &prior).iter().fold(0.0, |most: f64, v| most.max(v.abs()));
        assert!(off < 1e-3 * size, "{rows}: {off} of {size}");
        assert!(residual.sum().abs() < 1e-3 * d.t.sum(), "{rows}: {}", residual.sum());
    }
}

/// The order of the rows and the units of features and exposures do not matter.
#[test]
fn the_process_prior_of_counts_depends_on_no_unit() {
    let d = two_features(5, 80, 2.0);
    let fit = |x: &Array2<f64>, t: &Array1<f64>, e: &Array1<f64>| {
        by_default().fit(x.view(), &Targets::real(t.view()).with_exposure(e.view())).unwrap().0
    };
    let plain = fit(&d.x, &d.t, &d.e);
    let order: Vec<usize> = (0..80).map(|i| (i * 37 + 11) % 80).collect();
    let shuffled = fit(&d.x.select(Axis(0), &order), &d.t.select(Axis(0), &order), &d.e.select(Axis(0), &order));
    let mut relevance: Vec<usize> = shuffled.relevance.iter().map(|k| order[*k]).collect();
    relevance.sort_unstable();
    assert_eq!(relevance, plain.relevance);
    let of = |model: &Model, x: &Array2<f64>| model.predict(x.view()).unwrap().mean.to_vec();
    close("order", &of(&shuffled, &d.x), &of(&plain, &d.x), 1e-9);
    let units = &d.x * &ndarray::array![1e-3, 1e5];
    let scaled = fit(&units, &d.t, &(&d.e * 1e4));
    let expected: Vec<f64> = of(&plain, &d.x).iter().map(|f| f - 1e4f64.ln()).collect();
    close("units", &of(&scaled, &units), &expected, 1e-6);
    assert!((scaled.log_evidence.unwrap() - plain.log_evidence.unwrap()).abs() < 1e-6);
}

/// Few counts and kernels without bounds give sensible expected counts. The averaged curvature is used where Laplace's
/// posterior expects too much, or if it is requested.
#[test]
fn rare_counts_have_sensible_expectations() {
    let kernels: [Kernel; 3] = [Rbf::default().into(), Linear {}.into(), Poly::default().into()];
    let mut averaged = 0;
    let rare = (10..20).map(|seed| (seed, 0.02));
    for (seed, level) in [(1, 0.03), (2, 0.1), (3, 0.5), (4, 3.0), (5, 30.0), (6, 0.05)].into_iter().chain(rare) {
        let d = two_features(seed, 60, level);
        for (kernel, posterior) in kernels.iter().flat_map(|k| [(k, PosteriorRule::Auto), (k, PosteriorRule::Averaged)]) {
            let rvm = Rvm { kernel: kernel.clone(), posterior, ..by_default() };
            let (model, report) = rvm.fit(d.x.view(), &Targets::real(d.t.view()).with_exposure(d.e.view())).unwrap();
            assert_eq!(report.status, Status::Converged, "{seed} {kernel:?}");
            let counts = model.predict(d.x.view()).unwrap().counts(Some(d.e.view())).unwrap();
            assert!(
                report.adjustments.constant_target || counts.mean.sum() <= 2.5 * d.t.sum() + 1.0,
                "{seed} {kernel:?}: {} of {}",
                counts.mean.sum(),
                d.t.sum()
            );
            let own = model.posterior.as_ref().unwrap().averaged;
            assert!(posterior == PosteriorRule::Auto || own || report.adjustments.constant_target, "{seed}");
            averaged += u32::from(own && posterior == PosteriorRule::Auto);
        }
    }
    assert!(averaged > 0);
}

/// The rate is a function of the difference of two features that nearly agree, with heavy tails, and is bounded. New rows have
/// differences that no row had. Their expected counts are of the size of the largest count, and better than a constant rate.
#[test]
fn expected_counts_beyond_the_rows_are_sensible() {
    let sizes = [(0, 100, 1.0), (1, 100, 10.0), (2, 100, 10.0), (3, 400, 1.0), (4, 400, 10.0), (5, 3200, 10.0)];
    for (seed, rows, level) in sizes {
        let mut random = rand_pcg::Pcg64::seed_from_u64(seed);
        let (heavy, normal) = (rand_distr::StudentT::new(3.0).unwrap(), rand_distr::StandardNormal);
        let mut x = Array2::zeros((rows + 1000, 3));
        for mut row in x.outer_iter_mut() {
            let (shared, other): (f64, f64) = (heavy.sample(&mut random), heavy.sample(&mut random));
            let [first, second]: [f64; 2] = [normal.sample(&mut random), normal.sample(&mut random)];
            row.assign(&ndarray::array![shared + 0.15 * first, shared + 0.15 * second, other]);
        }
        let rate = |x: ArrayView1<f64>| level * (0.8 * (((x[0] - x[1]) / 0.2 + 0.3 * x[2]) / 1.2).clamp(-3.0, 3.0)).exp();
        let t: Array1<f64> = x.outer_iter().map(|x| rand_distr::Poisson::new(rate(x)).unwrap().sample(&mut random)).collect();
        let (model, _) = fit(&by_default(), &x.slice(s![..rows, ..]).to_owned(), &t.slice(s![..rows]).to_owned());
        let expected = model.predict(x.slice(s![rows.., ..])).unwrap().counts(None).unwrap().mean;
        let truth = t.slice(s![rows..]);
        let most = |counts: ArrayView1<f64>| counts.iter().fold(0.0, |most: f64, count| most.max(*count));
        let (found, largest) = (most(expected.view()), most(t.slice(s![..rows])));
        assert!(found < 6.0 * largest, "{seed}: {found} and {largest}");
        let loss = |rate: &dyn Fn(usize) -> f64| truth.iter().enumerate().map(|(n, t)| rate(n) - t * rate(n).ln()).sum::<f64>();
        let constant = t.slice(s![..rows]).mean().unwrap();
        assert!(loss(&|n| expected[n]) < loss(&|_| constant) + 20.0, "{seed}");
    }
}

/// Left-out rows under the process prior are near those of fits without the row.
#[test]
fn left_out_counts_are_near_those_of_fits_without_the_row() {
    let d = two_features(7, 50, 4.0);
    let kernel: Kernel = Rbf { gamma: vec![1.0, 0.3].into() }.into();
    let rvm = Rvm { kernel, residual: Some(1e-6), ..by_default() };
    let (model, _) = rvm.fit(d.x.view(), &Targets::real(d.t.view()).with_exposure(d.e.view())).unwrap();
    let found = model.leave_one_out(d.x.view(), &Targets::real(d.t.view()).with_exposure(d.e.view())).unwrap();
    let left_out = found.prediction.unwrap();
    for row in [3, 17, 31] {
        let rest: Vec<usize> = (0..50).filter(|n| *n != row).collect();
        let (x, t, e) = (d.x.select(Axis(0), &rest), d.t.select(Axis(0), &rest), d.e.select(Axis(0), &rest));
        let (without, _) = rvm.fit(x.view(), &Targets::real(t.view()).with_exposure(e.view())).unwrap();
        let expected = without.predict(d.x.slice(s![row..=row, ..])).unwrap();
        let deviation = expected.model_variance[0].sqrt();
        assert!(
            (left_out.mean[row] - expected.mean[0]).abs() < 0.4 * deviation,
            "{row}: {} {}",
            left_out.mean[row],
            expected.mean[0]
        );
        assert!((left_out.model_variance[row].sqrt() / deviation - 1.0).abs() < 0.3, "{row}");
    }
}
