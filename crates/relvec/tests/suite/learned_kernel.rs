//! Kernels learned without a fit.

use std::f64::consts::PI;

use ndarray::{Array1, Array2, ArrayView1, Axis, concatenate, s};
use rand::SeedableRng;
use rand_distr::{Distribution, StandardNormal};
use rand_pcg::Pcg64;
use relvec::*;

use crate::support::close;

/// Returns pseudo-random numbers from 0 to 1.
fn wave(i: usize, k: usize) -> f64 {
    (0.618_033_988_75 * (i * (k + 1) + 11 * k + 1) as f64 + 0.37 * (i as f64).sin()).fract().abs()
}

fn inputs(n: usize, d: usize) -> Array2<f64> {
    Array2::from_shape_fn((n, d), |(i, k)| 4.0 * wave(i, k) - 2.0)
}

fn noise(n: usize) -> Array1<f64> {
    (0..n).map(|i| wave(i, 17) + wave(i, 23) + wave(i, 31) - 1.5).collect()
}

/// Returns a sine of the first feature with noise of variance 0.01. The other features have no effect.
fn targets(x: &Array2<f64>) -> Array1<f64> {
    x.column(0).mapv(|x| 5.0 + (2.0 * x).sin()) + &(0.2 * noise(x.nrows()))
}

fn learn(rvm: &Rvm, x: &Array2<f64>, t: &Array1<f64>) -> LearnedKernel {
    rvm.learn_kernel(x.view(), &Targets::real(t.view())).unwrap()
}

fn gammas(kernel: &Kernel) -> Vec<f64> {
    kernel.parameters().into_iter().map(|(_, value)| value).collect()
}

#[test]
fn kernel_equals_that_of_a_fit() {
    let x = inputs(90, 2);
    let t = targets(&x);
    for rule in [GammaRule::Evidence, GammaRule::EvidenceOne, GammaRule::EvidenceArd] {
        let kernel: Kernel = Matern52 { gamma: Gamma::Rule(rule) }.into();
        let rvm = Rvm { kernel, weight_prior: WeightPrior::Ard, variance: Some(Variance::Posterior), ..Rvm::default() };
        let learned = learn(&rvm, &x, &t);
        let (model, report) = rvm.fit(x.view(), &Targets::real(t.view())).unwrap();
        assert_eq!(model.kernel(), Some(&learned.kernel), "{rule:?}");
        let search = report.kernel_search.unwrap();
        let trial = &search.tried[search.chosen];
        let process = trial.process.clone();
        assert_eq!((learned.log_evidence, learned.gain), (trial.log_evidence, process.gain));
        assert_eq!((&learned.amplitude, &learned.noise_variance), (&process.amplitude, &process.noise_variance));
        assert!(learned.has_structure && learned.gain > 20.0 && learned.rows == 90, "{learned:?}");
        assert_eq!(learned.per_feature, rule != GammaRule::EvidenceOne);
        assert!((0.005..0.02).contains(&learned.noise_variance[0]), "{learned:?}");
    }
}

#[test]
fn amplitude_and_noise_follow_the_unit_of_the_targets() {
    let x = inputs(70, 2);
    let t = targets(&x);
    let (plain, scaled) = (learn(&Rvm::default(), &x, &t), learn(&Rvm::default(), &(&x * 1e3), &(&t * 1e6)));
    let times = |values: &[f64], by: f64| -> Vec<f64> { values.iter().map(|v| v * by).collect() };
    close("gamma", &gammas(&scaled.kernel), &times(&gammas(&plain.kernel), 1e-6), 1e-6);
    close("amplitude", &scaled.amplitude, &times(&plain.amplitude, 1e12), 1e-6);
    close("noise", &scaled.noise_variance, &times(&plain.noise_variance, 1e12), 1e-6);
    close("log evidence", &[scaled.log_evidence], &[plain.log_evidence - 70.0 * 1e6f64.ln()], 1e-9);
    assert!((scaled.gain - plain.gain).abs() < 1e-6);
}

#[test]
fn weight_of_two_equals_a_repeated_row() {
    let x = inputs(50, 1);
    let t = targets(&x);
    let weights = Array1::from_shape_fn(50, |i| if i % 2 == 0 { 2.0 } else { 1.0 });
    let twice: Vec<usize> = (0..50).chain((0..50).step_by(2)).collect();
    let weighted = Rvm::default().learn_kernel(x.view(), &Targets::real(t.view()).with_weights(weights.view())).unwrap();
    let repeated = learn(&Rvm::default(), &x.select(Axis(0), &twice), &t.select(Axis(0), &twice));
    close("gamma", &gammas(&weighted.kernel), &gammas(&repeated.kernel), 1e-6);
    close("noise", &weighted.noise_variance, &repeated.noise_variance, 1e-6);
    close("nats", &[weighted.gain, weighted.log_evidence], &[repeated.gain, repeated.log_evidence], 1e-8);
}

#[test]
fn noise_and_constant_targets_have_no_structure_to_learn() {
    let x = inputs(80, 3);
    for (what, t) in [("noise", noise(80)), ("constant", Array1::from_elem(80, 3.0))] {
        let learned = learn(&Rvm::default(), &x, &t);
        assert!(!learned.has_structure && learned.gain < 0.5, "{what}: {learned:?}");
        let numbers = learned.amplitude.iter().chain(&learned.noise_variance).chain([&learned.log_evidence, &learned.gain]);
        assert!(numbers.into_iter().all(|v| v.is_finite()), "{what}: {learned:?}");
    }
}

/// Returns normal pseudo-random numbers, `[n, d]`.
fn normals(seed: u64, n: usize, d: usize) -> Array2<f64> {
    let mut rng = Pcg64::seed_from_u64(seed);
    Array2::from_shape_simple_fn((n, d), || StandardNormal.sample(&mut rng))
}

/// With many features for the number of rows, one width for each fits any targets. Held-out rows must not be predicted
/// worse than by the mean and the variance of the targets.
#[test]
fn widths_of_many_features_do_not_overfit() {
    type Function = fn(ArrayView1<f64>) -> f64;
    let functions: [(&str, Function); 3] = [
        ("noise", |_| 0.0),
        ("linear", |x| x.sum() / (x.len() as f64).sqrt()),
        ("sign", |x| x.iter().enumerate().map(|(k, x)| x * (1.0 + k as f64).sin()).sum::<f64>().signum()),
    ];
    for (n, d) in [(30, 40), (60, 20), (60, 100), (80, 40)] {
        for (seed, (name, f)) in (0..4).flat_map(|seed| functions.iter().map(move |function| (seed, function))) {
            let all = normals(seed, n + 300, d + 1);
            let (x, noise) = all.view().split_at(Axis(1), d);
            let t = x.map_axis(Axis(1), f) + 0.5 * &noise.column(0);
            let ((x, x_new), (t, t_new)) = (x.split_at(Axis(0), n), t.view().split_at(Axis(0), n));
            let (model, _) = Rvm::default().fit(x, &Targets::real(t)).unwrap();
            let prediction = model.predict(x_new).unwrap();
            let (mean, variance) = (t.mean().unwrap(), t.var(1.0));
            let of_mean = t_new.mapv(|t| -0.5 * ((t - mean).powi(2) / variance + (2.0 * PI * variance).ln()));
            let gain = (prediction.log_density(t_new) - of_mean).mean().unwrap();
            assert!(gain > -0.35, "{n} rows, {d} features, {name}, seed {seed}: {gain}");
        }
    }
}

#[test]
fn few_of_many_features_are_found() {
    for seed in 0..3 {
        let all = normals(seed, 100, 41);
        let (x, noise) = all.view().split_at(Axis(1), 40);
        let t = x.map_axis(Axis(1), |x| (2.0 * x[0]).sin() + x[1] * x[2]) + 0.3 * &noise.column(0);
        let learned = learn(&Rvm::default(), &x.to_owned(), &t);
        let gammas = gammas(&learned.kernel);
        assert!(learned.per_feature && gammas[..3].iter().all(|g| *g > 0.02), "seed {seed}: {learned:?}");
    }
}

#[test]
fn kernel_of_the_highest_posterior_is_chosen() {
    let x = inputs(80, 1);
    let t = x.column(0).mapv(f64::abs) + &(0.05 * noise(80));
    let kernels = Kernel::candidates(&Gamma::Rule(GammaRule::Evidence));
    let alone: Vec<LearnedKernel> =
        kernels.iter().map(|kernel| learn(&Rvm { kernel: kernel.clone(), ..Rvm::default() }, &x, &t)).collect();
    let best = alone.iter().max_by(|a, b| a.gain.total_cmp(&b.gain)).unwrap();
    assert!(best.kernel.name() != "rbf", "a kink is no smooth function: {best:?}");
    assert_eq!(learn(&Rvm { kernels, ..Rvm::default() }, &x, &t), *best);
}

#[test]
fn given_gamma_is_not_learned() {
    let x = inputs(60, 2);
    let kernel: Kernel = Rbf { gamma: vec![1.5, 0.25].into() }.into();
    let learned = learn(&Rvm { kernel: kernel.clone(), ..Rvm::default() }, &x, &targets(&x));
    assert_eq!(learned.kernel, kernel);
    assert!((0.005..0.02).contains(&learned.noise_variance[0]), "{learned:?}");
}

#[test]
fn outputs_share_a_kernel_and_have_their_own_units() {
    let x = inputs(60, 1);
    let t = targets(&x);
    let both = concatenate![Axis(1), t.view().insert_axis(Axis(1)), (&t * 100.0).insert_axis(Axis(1))];
    let learned = Rvm::default().learn_kernel(x.view(), &Targets::outputs(both.view())).unwrap();
    assert_eq!(learned.amplitude.len(), 2);
    close("noise", &[learned.noise_variance[1]], &[1e4 * learned.noise_variance[0]], 1e-9);
}

#[test]
fn classes_and_counts_have_a_kernel() {
    let x = inputs(120, 2);
    let labels = |k: usize| -> Vec<usize> {
        x.outer_iter().map(|x| ((x[0] + 2.0) / 4.0 * k as f64) as usize).map(|class| class.min(k - 1)).collect()
    };
    let classes = Rvm { likelihood: Bernoulli::default().into(), ..Rvm::default() };
    for k in [2, 3] {
        let learned = classes.learn_kernel(x.view(), &Targets::classes(&labels(k), k)).unwrap();
        // For regression on labels only the ratio of amplitude and noise is defined.
        assert_eq!((learned.amplitude.len(), learned.noise_variance[0]), (1, 1.0));
        assert!(learned.has_structure, "{learned:?}");
        // The classes do not depend on the second feature, which held-out rows show.
        let gamma = learned.kernel.gamma().unwrap();
        assert!(learned.per_feature && gamma.at(1) < 1e-3 * gamma.at(0), "{learned:?}");
    }
    let counts: Array1<f64> = x.column(0).mapv(|x| (2.0 + 2.0 * x.sin()).exp().round());
    let poisson = Rvm { likelihood: Poisson::default().into(), ..Rvm::default() };
    assert!(learn(&poisson, &x, &counts).has_structure);
    let exposures = Array1::from_elem(120, 4.0);
    let targets = Targets::real(counts.view()).with_exposure(exposures.view());
    let exposed = poisson.learn_kernel(x.view(), &targets).unwrap();
    close("gamma", &gammas(&exposed.kernel), &gammas(&learn(&poisson, &x, &counts).kernel), 1e-6);
}

#[test]
fn kernel_is_learned_from_at_most_1000_rows() {
    let x = inputs(1300, 1);
    let t = targets(&x);
    let learned = learn(&Rvm::default(), &x, &t);
    assert_eq!(learned.rows, 1000);
    let other = Rvm { dictionary: Dictionary::Size(20), threads: Some(1), ..Rvm::default() };
    assert_eq!(learn(&other, &x, &t), learned);
    assert!(learn(&Rvm { seed: 1, ..Rvm::default() }, &x, &t) != learned);
}

#[test]
fn kernels_without_a_process_are_rejected_by_name() {
    let x = inputs(20, 2);
    let t = targets(&x);
    let message = |rvm: Rvm| rvm.learn_kernel(x.view(), &Targets::real(t.view())).unwrap_err().to_string();
    let sigmoid: Kernel = Sigmoid::default().into();
    for rvm in [
        Rvm { kernel: sigmoid.clone(), ..Rvm::default() },
        Rvm { kernels: vec![Rbf::default().into(), sigmoid], ..Rvm::default() },
    ] {
        let message = message(rvm);
        assert!(message.contains("kernel") && message.contains("sigmoid"), "{message}");
    }
    let message = message(Rvm { basis: Basis::Given, ..Rvm::default() });
    assert!(message.contains("basis") && message.contains("given"), "{message}");
}

/// A linear spline is a covariance for features >= 0 only, so that no process learns it elsewhere, whatever the other
/// kernels are.
#[test]
fn learned_linear_spline_at_negative_features_is_rejected_by_name() {
    let x = inputs(60, 2);
    let t = targets(&x);
    let spline: Kernel = LinearSpline::default().into();
    let rbf: Kernel = Rbf { gamma: Gamma::Rule(GammaRule::Evidence) }.into();
    let sigmoid = Kernel::from_name("sigmoid").unwrap();
    let rvm = |kernels: &[&Kernel], weight_prior| Rvm {
        kernels: kernels.iter().map(|kernel| (*kernel).clone()).collect(),
        weight_prior,
        ..Rvm::default()
    };
    let lists = [vec![&rbf, &spline], vec![&spline, &rbf], vec![&spline]];
    for (kernels, prior) in lists.iter().flat_map(|list| [WeightPrior::Auto, WeightPrior::Ard].map(|prior| (list, prior))) {
        let own = rvm(kernels, prior);
        let fit = own.fit(x.view(), &Targets::real(t.view())).map(|_| ());
        for refused in [fit, own.learn_kernel(x.view(), &Targets::real(t.view())).map(|_| ())] {
            let text = refused.unwrap_err().to_string();
            assert!(text.contains("linear_spline") && text.contains("features >= 0") && text.contains("column 0"), "{text}");
        }
        let shifted = &x + 2.0;
        let (model, report) = own.fit(shifted.view(), &Targets::real(t.view())).unwrap();
        assert_eq!(report.kernel_search.unwrap().tried.len(), kernels.len());
        assert!(model.predict_mean(shifted.view()).unwrap().iter().all(|v| v.is_finite()));
    }
    // If it is given alone, nothing is learned, and weights with precisions need no covariance. A sigmoid is never a
    // covariance.
    let alone = Rvm { kernel: spline.clone(), ..Rvm::default() };
    assert!(alone.fit(x.view(), &Targets::real(t.view())).unwrap().0.process.is_none());
    let beside = rvm(&[&sigmoid, &spline], WeightPrior::Auto).check().unwrap_err().to_string();
    assert!(beside.starts_with("kernels = sigmoid: "), "{beside}");
    let with = |rule| Rvm { kernel: sigmoid.with_gamma(Gamma::Rule(rule)), ..Rvm::default() };
    let error = with(GammaRule::EvidenceOne).check().unwrap_err().to_string();
    assert!(error.starts_with("kernel.sigmoid.gamma = evidence-one: ") && error.contains("scale"), "{error}");
    // The default rule is that of the scale.
    let fit = |rule| with(rule).fit(x.view(), &Targets::real(t.view())).unwrap().0;
    assert_eq!(fit(GammaRule::Evidence), fit(GammaRule::Scale));
}

#[test]
fn interrupt_ends_the_learning_of_a_kernel() {
    let x = inputs(40, 1);
    let t = targets(&x);
    let interrupt = Interrupt::default();
    interrupt.raise();
    let found = Rvm::default().learn_kernel_with(x.view(), &Targets::real(t.view()), &interrupt);
    assert_eq!(found, Err(Error::Interrupted));
}

/// A product of functions of two features shows only where both widths are small: none of the two alone has an effect,
/// and from wide kernels the gradient leads to even wider ones.
#[test]
fn interaction_is_found_among_features_without_effect() {
    for seed in 0..30 {
        let mut random = Pcg64::seed_from_u64(seed);
        let mut normal = || -> f64 { StandardNormal.sample(&mut random) };
        let x = Array2::from_shape_simple_fn((100, 6), &mut normal);
        let t: Array1<f64> = x.outer_iter().map(|x| (2.0 * x[0]).sin() * (2.0 * x[1]).cos() + 0.1 * normal()).collect();
        let noise = learn(&Rvm::default(), &x, &t).noise_variance[0];
        assert!(noise < 0.3 * t.var(0.0), "seed {seed}: noise variance {noise} of {}", t.var(0.0));
    }
}

/// From all features at once the gradient may lead to a maximum whose kernel is not used. A step in a single feature is
/// found from trials of one feature at a time.
#[test]
fn single_feature_is_found_among_features_without_effect() {
    let (mut alone, mut among) = (0, 0);
    for seed in 0..200 {
        let mut random = Pcg64::seed_from_u64(seed);
        let mut normal = || -> f64 { StandardNormal.sample(&mut random) };
        let x = Array2::from_shape_simple_fn((50, 12), || normal().powi(3));
        let t = x.column(0).mapv(|x| (4.0 * x).tanh() + 0.4 * normal());
        let found = |x: &Array2<f64>| usize::from(learn(&Rvm::default(), x, &t).has_structure);
        alone += found(&x.slice(s![.., ..1]).to_owned());
        among += found(&x);
    }
    assert!(among >= 185 && alone >= 199, "{among} of {alone}");
}
