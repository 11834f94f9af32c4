//! Searches whose single steps find nothing: a model is empty only if MacKay's fixed point finds nothing either, and
//! the report says so.

use ndarray::{Array1, Array2, Axis};
use rand::{RngExt, SeedableRng};
use rand_distr::{Distribution, Poisson as Counts, StandardNormal};
use relvec::*;

struct Data {
    x: Array2<f64>,
    /// Linear function of the rows with a standard deviation of about 1.
    f: Array1<f64>,
    noise: Array1<f64>,
}

fn data(n: usize) -> Data {
    let mut random = rand_pcg::Pcg64::seed_from_u64(n as u64);
    let x = Array2::from_shape_simple_fn((n, 2), || random.random_range(-1.0..1.0));
    let f = x.map_axis(Axis(1), |row| 2.0 * row[0] - row[1]);
    let noise = Array1::from_shape_simple_fn(n, || StandardNormal.sample(&mut random));
    Data { x, f, noise }
}

fn correlation(a: &Array1<f64>, b: &Array1<f64>) -> f64 {
    let (a, b) = (a - a.mean().unwrap(), b - b.mean().unwrap());
    a.dot(&b) / (a.dot(&a) * b.dot(&b)).sqrt()
}

fn linear() -> Kernel {
    Linear::default().into()
}

fn poly() -> Kernel {
    Poly { gamma: 1.0.into(), ..Poly::default() }.into()
}

fn rbf(gamma: f64) -> Kernel {
    Rbf { gamma: gamma.into() }.into()
}

/// With kernels that are almost constant over the rows (far from the origin, or wide), the structure is found.
#[test]
fn nearly_constant_kernels_find_the_structure() {
    for n in [80, 200] {
        let Data { x, f, noise } = data(n);
        let t = &f + &(&noise * 0.3);
        let labels: Vec<usize> = t.iter().map(|t| usize::from(*t > 0.0)).collect();
        let kinds: Vec<usize> = t.iter().map(|t| usize::from(*t > -0.7) + usize::from(*t > 0.7)).collect();
        for (kernel, offset) in [(linear(), 10.0), (linear(), 300.0), (poly(), 100.0), (rbf(1e-4), 0.0)] {
            let x = &x + offset;
            let name = format!("{n} rows, {} at {offset}", kernel.name());
            let rvm = Rvm { kernel, ..Rvm::tipping2001() };
            let (model, report) = rvm.fit(x.view(), &Targets::real(t.view())).unwrap();
            let found = correlation(&model.predict_mean(x.view()).unwrap(), &f);
            assert!(!report.nothing_found && found > 0.9, "{name}: {found}");
            let several = n == 80 && (offset == 10.0 || offset == 0.0);
            for (labels, count) in [(&labels, 2), (&kinds, 3)].into_iter().take(1 + usize::from(several)) {
                let classes = Rvm { likelihood: Bernoulli::default().into(), ..rvm.clone() };
                let (model, report) = classes.fit(x.view(), &Targets::classes(labels, count)).unwrap();
                let p = model.predict_probability(x.view(), Moderation::Posterior).unwrap();
                let best = |row: ndarray::ArrayView1<f64>| (0..count).fold(0, |b, k| if row[k] > row[b] { k } else { b });
                let wrong = p.outer_iter().zip(labels.iter()).filter(|(row, l)| best(row.view()) != **l).count();
                // With the polynomial kernel the search finds some structure by itself.
                let most = if matches!(rvm.kernel, Kernel::Poly(_)) { n / 2 } else { n / 4 };
                assert!(!report.nothing_found && wrong < most, "{name}, {count} classes: {wrong} wrong");
            }
        }
    }
}

/// If the search alone finds nothing, the model is at least as good as that of MacKay's scheme.
#[test]
fn better_of_two_schemes_is_used() {
    let Data { x, f, noise } = data(120);
    let t = &f + &(&noise * 0.3);
    for (kernel, offset) in [(linear(), 1e3), (rbf(1e-4), 0.0), (rbf(1e-6), 0.0)] {
        let x = &x + offset;
        let fit = |inference: Inference| {
            let rvm = Rvm { kernel: kernel.clone(), inference, ..Rvm::tipping2001() };
            rvm.fit(x.view(), &Targets::real(t.view())).unwrap().0.log_evidence.unwrap()
        };
        let (searched, mackay) = (fit(Search::default().into()), fit(MacKay::default().into()));
        assert!(searched > mackay - 0.5, "{} {offset}: {searched} {mackay}", kernel.name());
    }
}

/// A model that leaves twice the noise of the process that learned its kernel is reported as missing structure, and no other
/// model is.
#[test]
fn models_that_miss_the_structure_of_the_process_are_reported() {
    let Data { x, noise, .. } = data(200);
    let t = x.map_axis(Axis(1), |row| (5.0 * row[0]).sin() + 2.0 * row[0] * row[1]) + &(&noise * 0.1);
    let few = |size| Rvm { dictionary: size, ..Rvm::default() };
    let ard = Rvm { weight_prior: WeightPrior::Ard, ..Rvm::default() };
    let fixed = Likelihood::Gaussian(Gaussian { noise_variance: Some(0.01) });
    let cases = [
        (few(3.into()), true),
        (Rvm { weight_prior: WeightPrior::Ard, ..few(3.into()) }, true),
        (Rvm::default(), false),
        (Rvm { inference: MacKay::default().into(), ..ard.clone() }, false),
        (ard, false),
        (Rvm { likelihood: fixed, ..few(3.into()) }, false),
    ];
    for (k, (rvm, misses)) in cases.into_iter().enumerate() {
        let (model, report) = rvm.fit(x.view(), &Targets::real(t.view())).unwrap();
        let process = report.kernel_search.as_ref().unwrap().tried[0].process.noise_variance[0];
        let ratio = (model.noise_variance().unwrap() / process).sqrt();
        let found = report.adjustments.noise_over_process;
        assert_eq!((found.is_some(), found.is_none_or(|found| found == ratio)), (misses, true), "case {k}: {found:?}, {ratio}");
        assert!(!report.nothing_found && (ratio > 2.0) == misses, "case {k}: {ratio}");
    }
    // Without structure there is none to miss.
    let (_, report) = few(3.into()).fit(x.view(), &Targets::real(noise.view())).unwrap();
    assert!(report.nothing_found && report.adjustments.noise_over_process.is_none());
}

/// Outliers of 1e4 times the signal, and sentinel values, do not affect the unit of the other targets.
#[test]
fn student_t_fits_find_the_signal_despite_outliers() {
    for n in [80, 200] {
        let Data { x, noise, .. } = data(n);
        let f = x.column(0).mapv(|x| (3.0 * x).sin());
        let clean = &f + &(&noise * 0.1);
        let (mut wild, mut missing) = (clean.clone(), clean.clone());
        (0..n).step_by(20).for_each(|i| wild[i] += 1e4 * noise[(i + 1) % n]);
        (0..4).for_each(|i| missing[7 * i] = -9999.0);
        for (name, t) in [("wild", wild), ("sentinels", missing)] {
            let rvm = Rvm { likelihood: StudentT::default().into(), kernel: rbf(1.0), ..Rvm::tipping2001() };
            let (model, report) = rvm.fit(x.view(), &Targets::real(t.view())).unwrap();
            let found = model.predict_mean(x.view()).unwrap();
            let rms = (&found - &f).mapv(|r| r * r).mean().unwrap().sqrt();
            assert!(!report.nothing_found && rms < 0.15, "{n} rows, {name}: {rms}");
        }
    }
}

/// Rates up to the largest whole numbers of a double are found.
#[test]
fn poisson_finds_the_rates_of_huge_counts() {
    finds_the_rates(&[1e4, 1e10]);
}

#[test]
#[ignore = "two minutes"]
fn poisson_finds_the_rates_of_the_largest_counts() {
    finds_the_rates(&[1e14, 1e18]);
}

fn finds_the_rates(sizes: &[f64]) {
    let Data { x, f, .. } = data(60);
    let mut random = rand_pcg::Pcg64::seed_from_u64(1);
    for size in sizes.iter().copied() {
        let counts: Array1<f64> = f.mapv(|f| match size * f.exp() {
            rate if rate < 1e9 => Counts::new(rate).unwrap().sample(&mut random),
            rate => rate.round(),
        });
        for bias in [true, false] {
            let rvm = Rvm { likelihood: Poisson::default().into(), kernel: rbf(0.3), bias, ..Rvm::tipping2001() };
            let (model, report) = rvm.fit(x.view(), &Targets::real(counts.view())).unwrap();
            let logs = model.predict_mean(x.view()).unwrap();
            let worst = logs.iter().zip(&counts).map(|(f, c)| (f - c.ln()).abs()).fold(0.0f64, f64::max);
            assert!(!report.nothing_found && worst < if size < 1e6 { 0.3 } else { 5e-2 }, "{size:e} {bias}: {worst}");
        }
    }
}

/// For any width of the kernel, a model finds the structure or reports that it has found nothing.
#[test]
fn models_of_any_width_find_the_structure_or_report_failure() {
    let Data { x, f, noise } = data(90);
    let t = &f + &(&noise * 0.3);
    for exponent in 4..18 {
        for likelihood in [Likelihood::from(Gaussian::default()), Bernoulli::default().into()] {
            let rvm = Rvm { kernel: rbf(10f64.powi(-exponent)), likelihood, ..Rvm::tipping2001() };
            let labels: Vec<usize> = t.iter().map(|t| usize::from(*t > 0.0)).collect();
            let targets = match rvm.likelihood.name() {
                "gaussian" => Targets::real(t.view()),
                _ => Targets::classes(&labels, 2),
            };
            let (model, report) = rvm.fit(x.view(), &targets).unwrap();
            let found = if report.nothing_found { 1.0 } else { correlation(&model.predict_mean(x.view()).unwrap(), &f) };
            assert!(found > 0.8, "gamma 1e-{exponent}, {:?}: {found} {}", rvm.likelihood, model.relevance.len());
        }
    }
}

/// Targets that do not depend on the rows, and kernels that do not distinguish rows, are reported.
#[test]
fn report_says_that_nothing_was_found() {
    let Data { x, f, noise } = data(150);
    let wide = Rvm { kernel: rbf(1e-17), ..Rvm::tipping2001() };
    for scheme in ["search", "mackay", "em"] {
        let rvm = Rvm { inference: Inference::from_name(scheme).unwrap(), ..wide.clone() };
        let (_, report) = rvm.fit(x.view(), &Targets::real(f.view())).unwrap();
        assert!(report.nothing_found, "{scheme}");
    }
    let labels: Vec<usize> = noise.iter().map(|v| usize::from(*v > 0.0)).collect();
    let classes = Rvm { likelihood: Bernoulli::default().into(), multi_class: MultiClass::OneVsRest, ..wide.clone() };
    let (_, report) = classes.fit(x.view(), &Targets::classes(&labels, 2)).unwrap();
    assert!(report.nothing_found);
    let kinds: Vec<usize> = (0..150).map(|i| i % 3).collect();
    for multi_class in [MultiClass::OneVsRest, MultiClass::Joint] {
        let classes = Rvm { multi_class, ..classes.clone() };
        let (_, report) = classes.fit(x.view(), &Targets::classes(&kinds, 3)).unwrap();
        assert!(report.nothing_found, "{multi_class:?}");
    }
    // A constant target does not depend on the kernel, and a model that was stopped reports nothing.
    let (_, report) = wide.fit(x.view(), &Targets::real(Array1::ones(150).view())).unwrap();
    assert!(report.adjustments.constant_target && !report.nothing_found);
    let mut stop = |_: &Progress| std::ops::ControlFlow::Break(());
    let (_, report) = wide.fit_with(x.view(), &Targets::real(f.view()), &mut stop, &Interrupt::default()).unwrap();
    assert!(report.status == Status::Stopped && !report.nothing_found);
    // A model that has found something reports nothing.
    let (_, report) = Rvm { kernel: rbf(1.0), ..wide }.fit(x.view(), &Targets::real(f.view())).unwrap();
    assert!(!report.nothing_found);
}

/// The other scheme counts its iterations, calls the observer, and respects the limits of the fit.
#[test]
fn limits_and_observer_apply_to_the_other_scheme() {
    let Data { x, f, noise } = data(120);
    let t = &f + &(&noise * 0.3);
    let rvm = Rvm { kernel: rbf(1e-4), ..Rvm::tipping2001() };
    let mut calls = 0;
    let mut counting = |_: &Progress| {
        calls += 1;
        std::ops::ControlFlow::Continue(())
    };
    let (model, report) = rvm.fit_with(x.view(), &Targets::real(t.view()), &mut counting, &Interrupt::default()).unwrap();
    assert_eq!((calls, report.trace.len()), (report.iterations, report.iterations));
    assert!(report.trace.windows(2).all(|pair| pair[1].log_evidence >= pair[0].log_evidence));
    assert!(!model.relevance.is_empty());
    for most in (1..report.iterations.min(60)).step_by(2) {
        let limited = Rvm { max_iterations: most, ..rvm.clone() };
        let (_, report) = limited.fit(x.view(), &Targets::real(t.view())).unwrap();
        // The search alone may have converged in the last iteration.
        assert_eq!(report.iterations, most);
        assert!(report.status == Status::IterationLimit || report.nothing_found, "{most}: {:?}", report.status);
        let mut left = most;
        let mut stop = |_: &Progress| {
            left -= 1;
            if left == 0 { std::ops::ControlFlow::Break(()) } else { std::ops::ControlFlow::Continue(()) }
        };
        let (_, report) = rvm.fit_with(x.view(), &Targets::real(t.view()), &mut stop, &Interrupt::default()).unwrap();
        assert_eq!(report.iterations, most);
        assert!(report.status == Status::Stopped || report.nothing_found, "{most}: {:?}", report.status);
    }
}

/// Over kernels, widths, features and kinds of targets, the evidence of a model without kernels is at least that of
/// MacKay's fixed point.
#[test]
fn models_are_not_empty_if_the_fixed_point_finds_more() {
    let mut random = rand_pcg::Pcg64::seed_from_u64(29);
    let (mut empty, mut cases) = (0, 0);
    for case in 0..36 {
        let (n, d) = (50, random.random_range(1..11));
        let gamma = 10f64.powf(random.random_range(-4.0..0.0));
        let kernel: Kernel = match case % 4 {
            0 => rbf(gamma),
            1 | 2 => Laplacian { gamma: gamma.into() }.into(),
            _ => linear(),
        };
        let offset = if case % 3 == 0 { random.random_range(0.0..30.0) } else { 0.0 };
        let x = Array2::from_shape_simple_fn((n, d), || StandardNormal.sample(&mut random));
        let f: Array1<f64> = x.map_axis(Axis(1), |row| f64::sin(row[0]) + 0.5 * row[1 % d]);
        let t = f.mapv(|f| {
            f + 0.3 * {
                let z: f64 = StandardNormal.sample(&mut random);
                z
            }
        });
        let mut sorted = t.to_vec();
        sorted.sort_by(f64::total_cmp);
        let x = x + offset;
        let of = |inference: Inference| {
            let rvm = Rvm { kernel: kernel.clone(), inference, ..Rvm::tipping2001() };
            let kind = |count: usize| -> Vec<usize> {
                t.iter().map(|t| (1..count).filter(|k| *t > sorted[k * n / count]).count()).collect()
            };
            let (model, _) = match case / 12 {
                0 => rvm.fit(x.view(), &Targets::real(t.view())).unwrap(),
                k => Rvm { likelihood: Bernoulli::default().into(), ..rvm }
                    .fit(x.view(), &Targets::classes(&kind(k + 1), k + 1))
                    .unwrap(),
            };
            (model.relevance.len(), model.log_evidence.unwrap())
        };
        let ((kernels, evidence), (of_fixed_point, least)) = (of(Search::default().into()), of(MacKay::default().into()));
        cases += usize::from(of_fixed_point > 0);
        if kernels == 0 {
            empty += 1;
            assert!(evidence > least - 0.5, "case {case}: {evidence} without kernels, {least} with {of_fixed_point}");
        }
    }
    assert!(cases > 20 && empty < cases / 2, "{empty} of {cases} are empty");
}
