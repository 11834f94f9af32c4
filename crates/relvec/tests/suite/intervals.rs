//! Intervals and quantiles of new targets, compared with draws for every likelihood.

use crate::support::close;
use ndarray::{Array1, Array2, Axis, array, stack};
use rand::{RngExt, SeedableRng};
use rand_distr::{ChiSquared, Distribution, StandardNormal, StudentT as Noise};
use rand_pcg::Pcg64;
use relvec::*;

const LEVELS: [f64; 5] = [0.01, 0.2, 0.5, 0.9, 0.975];
const DRAWS: usize = 40_000;

fn truth(x: f64) -> f64 {
    2.0 + (1.5 * x).sin()
}

/// Returns rows, and targets with the given noise.
fn data(rows: usize, seed: u64, noise: impl Fn(&mut Pcg64) -> f64) -> (Array2<f64>, Array1<f64>) {
    let mut random = Pcg64::seed_from_u64(seed);
    let x = Array2::from_shape_simple_fn((rows, 1), || random.random_range(-3.0..3.0));
    let t = x.column(0).mapv(|x| truth(x) + noise(&mut random));
    (x, t)
}

fn normal(random: &mut Pcg64) -> f64 {
    0.2 * Distribution::<f64>::sample(&StandardNormal, random)
}

/// Returns rows among the data, at their end and far away.
fn new() -> Array2<f64> {
    array![[0.3], [3.2], [40.0]]
}

fn rvm(likelihood: Likelihood) -> Rvm {
    Rvm { likelihood, kernel: Rbf { gamma: 0.5.into() }.into(), ..Rvm::tipping2001() }
}

fn student(noise_degrees: f64) -> Likelihood {
    StudentT { noise_degrees: Some(noise_degrees), noise_variance: None }.into()
}

fn fit(rvm: &Rvm, x: &Array2<f64>, t: &Array1<f64>) -> Model {
    rvm.fit(x.view(), &Targets::real(t.view())).unwrap().0
}

/// Checks that shares LEVELS of `drawn`, [N, S], are below the quantiles [N, Q], up to chance. For whole numbers, at
/// least that many are at or below, and at most that many are below.
#[track_caller]
fn check_shares(drawn: &Array2<f64>, quantiles: &Array2<f64>) {
    assert_eq!(quantiles.dim(), (drawn.nrows(), LEVELS.len()));
    for (drawn, row) in drawn.outer_iter().zip(quantiles.outer_iter()) {
        for (q, at) in LEVELS.iter().zip(row) {
            let share = |inside: &dyn Fn(f64) -> bool| drawn.iter().filter(|v| inside(**v)).count() as f64 / drawn.len() as f64;
            let chance = 4.0 * (q * (1.0 - q) / drawn.len() as f64).sqrt();
            let (below, not_above) = (share(&|v| v < *at), share(&|v| v <= *at));
            assert!(below < q + chance && not_above > q - chance, "{q}: {below} {not_above}, up to {chance}");
        }
    }
}

#[test]
fn quantiles_of_noise_have_their_shares_of_draws() {
    let (x, t) = data(40, 1, normal);
    let heavy = |random: &mut Pcg64| 0.2 * Noise::new(3.0).unwrap().sample(random);
    let models = [
        fit(&rvm(Gaussian::default().into()), &x, &t),
        fit(&Rvm { calibrate: true, kernel: Rbf { gamma: 30.0.into() }.into(), ..rvm(Gaussian::default().into()) }, &x, &t),
        fit(&rvm(student(1.0)), &x, &t),
        fit(&rvm(student(3.0)), &x, &data(40, 2, heavy).1),
        fit(&rvm(StudentT::default().into()), &x, &t),
        fit(&rvm(student(1e9)), &x, &t),
    ];
    for model in &models {
        let quantiles = model.predict_quantiles(new().view(), &LEVELS, Variance::Posterior, None).unwrap().remove(0);
        check_shares(&model.draws(DRAWS, 3, true).unwrap().at(new().view()).unwrap(), &quantiles);
        // Ends of intervals are quantiles, quantiles rise with their probability, and the median is the mean.
        let prediction = model.predict(new().view()).unwrap();
        assert_eq!(quantiles.column(2), prediction.mean);
        let (lower, upper) = model.interval(&prediction, 0.95, None).unwrap();
        let ends = model.quantiles(&prediction, &[0.025, 0.975], None).unwrap();
        let listed = |ends: Array2<f64>| ends.iter().copied().collect::<Vec<_>>();
        close("ends", &listed(stack![Axis(1), lower, upper]), &listed(ends), 1e-12);
        assert!(quantiles.outer_iter().all(|row| row.windows(2).into_iter().all(|pair| pair[0] < pair[1])));
        let again = Model::from_json(&model.to_json().unwrap()).unwrap();
        assert_eq!(again.quantiles(&prediction, &LEVELS, None).unwrap(), quantiles);
    }
    assert!(models[1].posterior.as_ref().unwrap().variance_factor > Some(1.0));
}

/// If the function is far less certain than the noise, the sum is normal. A Student-t distribution of both variances
/// would be 1.4 times as wide.
#[test]
fn intervals_of_an_uncertain_function_under_student_t_noise_are_nearly_normal() {
    let (x, t) = data(60, 1, normal);
    let model = fit(&rvm(student(4.0)), &x, &t);
    let one = model.predict(new().view()).unwrap();
    let wide = Prediction { model_variance: Array1::from_elem(3, 1e4 * one.noise_variance), ..one };
    let (lower, upper) = model.interval(&wide, 0.95, None).unwrap();
    let half = 0.5 * (&upper - &lower) / wide.model_variance.mapv(f64::sqrt);
    assert!(half.iter().all(|half| (half / 1.959_964 - 1.0).abs() < 1e-3), "{half}");
}

#[test]
fn quantiles_of_the_variational_scheme_have_their_shares_of_student_t_draws() {
    let (x, t) = data(8, 1, normal);
    let model = fit(&Rvm { inference: Variational::default().into(), ..rvm(Gaussian::default().into()) }, &x, &t);
    let degrees = model.noise_degrees().unwrap();
    assert!((degrees - 8.0).abs() < 1e-3);
    let prediction = model.predict(new().view()).unwrap();
    let mut drawn = model.draws(DRAWS, 3, true).unwrap().at(new().view()).unwrap();
    let (mut random, square) = (Pcg64::seed_from_u64(4), ChiSquared::new(degrees).unwrap());
    for mut draw in drawn.columns_mut() {
        let stretch = (degrees / square.sample(&mut random)).sqrt();
        draw.zip_mut_with(&prediction.mean, |value, mean| *value = mean + stretch * (*value - mean));
    }
    check_shares(&drawn, &model.quantiles(&prediction, &LEVELS, None).unwrap());
}

#[test]
fn quantiles_of_counts_have_their_shares_of_draws() {
    let mut random = Pcg64::seed_from_u64(5);
    let (x, log_rate) = data(30, 1, |_| 0.0);
    let days = Array1::from_shape_simple_fn(30, || random.random_range(0.2..5.0));
    let draw = |(f, days): (&f64, &f64)| rand_distr::Poisson::new(days * f.exp()).unwrap().sample(&mut random);
    let t: Array1<f64> = log_rate.iter().zip(&days).map(draw).collect();
    let targets = Targets::real(t.view()).with_exposure(days.view());
    let (model, _) = rvm(Poisson::default().into()).fit(x.view(), &targets).unwrap();
    let over = array![1.0, 0.01, 300.0];
    let quantiles = model.predict_quantiles(new().view(), &LEVELS, Variance::Posterior, Some(over.view())).unwrap().remove(0);
    assert!(quantiles.iter().all(|count| *count >= 0.0 && count.fract() == 0.0));
    let prediction = model.predict(new().view()).unwrap();
    let drawn = Array2::from_shape_fn((3, DRAWS), |(n, _)| {
        let z: f64 = StandardNormal.sample(&mut random);
        let rate = over[n] * (prediction.mean[n] + prediction.model_variance[n].sqrt() * z).exp();
        rand_distr::Poisson::new(rate).unwrap().sample(&mut random)
    });
    check_shares(&drawn, &quantiles);
    let (lower, upper) = model.interval(&prediction, 0.95, Some(over.view())).unwrap();
    let ends = model.quantiles(&prediction, &[0.025, 0.975], Some(over.view())).unwrap();
    assert_eq!(stack![Axis(1), lower, upper], ends);
    // The default exposure is 1.
    let ones = Array1::ones(3);
    let [alone, of_one] = [None, Some(ones.view())].map(|over| model.quantiles(&prediction, &LEVELS, over).unwrap());
    assert_eq!(alone, of_one);
    let far = Prediction { mean: array![0.0, 750.0, 0.0], ..prediction };
    let error = model.quantiles(&far, &[0.5], None).unwrap_err().to_string();
    assert!(error.contains("a quantile of the count of row 1"), "{error}");
}

#[test]
fn quantiles_of_several_outputs_and_of_known_noise_are_normal() {
    let z = array![-1.959_963_984_540_054, 1.281_551_565_544_600_4];
    let q = [0.025, 0.9];
    let (x, t) = data(40, 1, normal);
    let both = stack![Axis(1), t, 100.0 * &t + 3.0 * x.column(0).to_owned()];
    let (model, _) = rvm(Gaussian::default().into()).fit(x.view(), &Targets::outputs(both.view())).unwrap();
    let found = model.predict_quantiles(new().view(), &q, Variance::Posterior, None).unwrap();
    assert_eq!(found.len(), 2);
    for (k, found) in found.iter().enumerate() {
        let one = model.output(k).unwrap().predict(new().view()).unwrap();
        for (n, row) in found.outer_iter().enumerate() {
            close("output", &row.to_vec(), &(one.mean[n] + &z * one.std()[n]).to_vec(), 1e-12);
        }
    }
    let own = Array1::from_elem(40, 0.04);
    let (model, _) =
        rvm(Gaussian::default().into()).fit(x.view(), &Targets::real(t.view()).with_noise_variance(own.view())).unwrap();
    let prediction = model.predict(new().view()).unwrap();
    let noise = array![0.01, 4.0, 1e-9];
    let of_function = model.quantiles(&prediction, &q, None).unwrap();
    let of_new = model.quantiles(&prediction, &q, Some(noise.view())).unwrap();
    for n in 0..3 {
        let v = prediction.model_variance[n];
        close("function", &of_function.row(n).to_vec(), &(prediction.mean[n] + &z * v.sqrt()).to_vec(), 1e-12);
        close("new", &of_new.row(n).to_vec(), &(prediction.mean[n] + &z * (v + noise[n]).sqrt()).to_vec(), 1e-12);
    }
    for (bad, says) in [(array![1.0], "expected 3, one per row, found 1"), (array![1.0, 0.0, 1.0], "row 1 is 0")] {
        let error = model.quantiles(&prediction, &q, Some(bad.view())).unwrap_err().to_string();
        assert!(error.contains(says), "{error}");
    }
}

/// Another unit of the target, a power of 2, gives exactly scaled quantiles.
#[test]
fn quantiles_are_in_units_of_the_target() {
    let (x, t) = data(40, 1, normal);
    let unit = f64::from(1 << 20);
    for likelihood in [Gaussian::default().into(), student(2.5)] {
        let found = [1.0, unit].map(|unit| {
            let model = fit(&rvm(likelihood.clone()), &x, &(unit * &t));
            model.predict_quantiles(new().view(), &LEVELS, Variance::Posterior, None).unwrap().remove(0) / unit
        });
        assert_eq!(found[0], found[1]);
    }
}

#[test]
fn intervals_hold_their_share_of_new_targets() {
    let heavy = |random: &mut Pcg64| 0.2 * Noise::new(3.0).unwrap().sample(random);
    for (likelihood, noise) in [(Gaussian::default().into(), normal as fn(&mut Pcg64) -> f64), (student(3.0), heavy)] {
        let (x, t) = data(300, 6, noise);
        let model = fit(&rvm(likelihood), &x, &t);
        let (x, t) = data(4000, 7, noise);
        let (lower, upper) = model.predict_interval(x.view(), 0.95, Variance::Posterior, None).unwrap().remove(0);
        let inside = (0..4000).filter(|n| lower[*n] < t[*n] && t[*n] < upper[*n]).count() as f64 / 4000.0;
        // A binomial share is within 0.011 in 999 of 1,000 cases. The noise is known within 4 %, which adds 0.005.
        assert!((inside - 0.95).abs() < 0.016, "{inside}");
    }
}

#[test]
fn quantiles_reject_probabilities_and_models_without_them() {
    let (x, t) = data(30, 1, normal);
    let model = fit(&rvm(Gaussian::default().into()), &x, &t);
    let prediction = model.predict(new().view()).unwrap();
    for bad in [0.0, 1.0, -0.1, 1.5, f64::NAN, f64::INFINITY] {
        let error = model.quantiles(&prediction, &[0.5, bad], None).unwrap_err().to_string();
        assert!(error.starts_with(&format!("q = {bad}: expected")), "{error}");
        let error = model.interval(&prediction, bad, None).unwrap_err().to_string();
        assert!(error.starts_with(&format!("level = {bad}: expected")), "{error}");
    }
    let noise = Array1::ones(3);
    let error = model.quantiles(&prediction, &[0.5], Some(noise.view())).unwrap_err().to_string();
    assert!(error.contains("fitted with a noise variance for each row"), "{error}");
    assert_eq!(model.quantiles(&prediction, &[], None).unwrap().dim(), (3, 0));
    let labels: Vec<usize> = t.iter().map(|t| usize::from(*t > 2.0)).collect();
    let classes = rvm(Bernoulli::default().into()).fit(x.view(), &Targets::classes(&labels, 2)).unwrap().0;
    let error = classes.predict_interval(new().view(), 0.9, Variance::Posterior, None).unwrap_err().to_string();
    assert!(error.contains("expected a regression model with noise"), "{error}");
    // Levels whose last digits matter.
    let (lower, upper) = model.interval(&prediction, 1.0 - f64::EPSILON / 2.0, None).unwrap();
    assert!(((&upper - &lower) / prediction.std() / 2.0).iter().all(|z| (z - 8.29).abs() < 0.01));
    let far = model.quantiles(&prediction, &[1e-300, 1.0 - f64::EPSILON / 2.0], None).unwrap();
    let z = (&far.column(0) - &prediction.mean) / prediction.std();
    assert!(z.iter().all(|z| (z + 37.0471).abs() < 1e-3), "{z}");
}
