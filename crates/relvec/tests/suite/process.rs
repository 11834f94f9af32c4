//! The process prior of the weights, compared with direct expressions of N x N matrices.

use ndarray::{Array1, Array2, ArrayView2, Axis, concatenate, s};
use rand::{RngExt, SeedableRng};
use relvec::*;

use crate::support::{cholesky, close, inverse};

/// Returns pseudo-random numbers from 0 to 1.
fn wave(i: usize, k: usize) -> f64 {
    (0.618_033_988_75 * (i * (k + 1) + 11 * k + 1) as f64 + 0.37 * (i as f64).sin()).fract().abs()
}

fn inputs(n: usize, d: usize) -> Array2<f64> {
    Array2::from_shape_fn((n, d), |(i, k)| 4.0 * wave(i, k) - 2.0)
}

fn targets(x: &Array2<f64>, noise: f64) -> Array1<f64> {
    x.outer_iter()
        .enumerate()
        .map(|(i, x)| 5.0 + (2.0 * x[0]).sin() + 0.5 * x[x.len() - 1] + noise * (wave(i, 17) + wave(i, 23) + wave(i, 31) - 1.5))
        .collect()
}

fn rbf(gamma: f64) -> Kernel {
    Rbf { gamma: gamma.into() }.into()
}

fn process(kernel: Kernel) -> Rvm {
    Rvm { kernel, weight_prior: WeightPrior::Process, ..Rvm::default() }
}

fn fit(rvm: &Rvm, x: &Array2<f64>, t: &Array1<f64>) -> (Model, Report) {
    rvm.fit(x.view(), &Targets::real(t.view())).unwrap()
}

fn block(kernel: &Kernel, a: ArrayView2<f64>, b: ArrayView2<f64>) -> Array2<f64> {
    let mut out = Array2::zeros((a.nrows(), b.nrows()));
    kernel.block(a, b, out.view_mut());
    out
}

fn centres(model: &Model) -> (&Kernel, &Array2<f64>) {
    match &model.expansion.basis {
        FittedBasis::Kernel { kernel, centres } => (kernel, centres),
        other => panic!("{other:?}"),
    }
}

fn prior(model: &Model) -> &ProcessPrior {
    model.process.as_ref().expect("the model has a process prior")
}

/// Predictions of a process with the FITC diagonal by N x N matrices: means, variances of the function, and the log
/// evidence.
struct Direct {
    mean: Array1<f64>,
    variance: Array1<f64>,
    log_evidence: f64,
}

/// Computes them for distinct inputs `x` with mean targets and `c` copies each. Amplitude, noise and centres are those
/// of `model`.
fn direct(model: &Model, x: &Array2<f64>, t: &Array1<f64>, c: &[f64], new: &Array2<f64>) -> Direct {
    let (kernel, z) = centres(model);
    let (a, noise) = (prior(model).amplitude, model.noise_variance().unwrap());
    let q = |left: &Array2<f64>, right: &Array2<f64>, inverse: &Array2<f64>| {
        block(kernel, left.view(), z.view()).dot(inverse).dot(&block(kernel, z.view(), right.view()))
    };
    let of_centres = inverse(&block(kernel, z.view(), z.view()));
    let own = |x: &Array2<f64>| -> Array1<f64> { x.axis_chunks_iter(Axis(0), 1).map(|x| block(kernel, x, x)[[0, 0]]).collect() };
    let mut covariance = q(x, x, &of_centres) * a;
    let diagonal = own(x) * a;
    for (n, c) in c.iter().enumerate() {
        covariance[[n, n]] = diagonal[n] + noise / c;
    }
    let (solved, ones) = (inverse(&covariance), Array1::<f64>::ones(x.nrows()));
    let flat = solved.dot(&ones);
    let g = flat.sum();
    let has_bias = model.intercept_alpha.is_some();
    let constant = if has_bias { flat.dot(t) / g } else { 0.0 };
    let left = t - constant;
    let cross = q(new, x, &of_centres) * a;
    let half = cross.dot(&solved);
    let mean = half.dot(&left) + constant;
    let bias_part = half.dot(&ones).mapv(|v| if has_bias { (1.0 - v).powi(2) / g } else { 0.0 });
    let variance = own(new) * a - (&half * &cross).sum_axis(Axis(1)) + bias_part;
    let log_det = 2.0 * cholesky(&covariance).diag().iter().map(|v| v.ln()).sum::<f64>();
    let free = x.nrows() as f64 - f64::from(u8::from(has_bias));
    let quad = left.dot(&solved.dot(&left));
    let log_g = if has_bias { g.ln() } else { 0.0 };
    let log_evidence = -0.5 * (free * (2.0 * std::f64::consts::PI).ln() + log_det + log_g + quad);
    Direct { mean, variance, log_evidence }
}

fn agree(model: &Model, x: &Array2<f64>, t: &Array1<f64>, tolerance: f64) {
    let between = (&x.slice(s![..9, ..]) + &x.slice(s![9..18, ..])) * 0.6;
    let new = concatenate![Axis(0), between, x.slice(s![..5, ..])];
    let expected = direct(model, x, t, &vec![1.0; x.nrows()], &new);
    let found = model.predict(new.view()).unwrap();
    close("mean", found.mean.as_slice().unwrap(), expected.mean.as_slice().unwrap(), tolerance);
    close("variance", found.model_variance.as_slice().unwrap(), expected.variance.as_slice().unwrap(), tolerance);
    close("log evidence", &[model.log_evidence.unwrap()], &[expected.log_evidence], tolerance);
}

/// With almost no residual, all rows are centres and the model is the dense process, for kernels of any k(x, x).
#[test]
fn all_rows_as_centres_are_the_dense_process() {
    let (x, bias) = (inputs(40, 2), true);
    let t = targets(&x, 0.2);
    for kernel in [rbf(1.5), Matern32 { gamma: 0.7.into() }.into()] {
        let (model, report) = fit(&Rvm { residual: Some(1e-11), bias, ..process(kernel) }, &x, &t);
        let fitted = report.process.unwrap();
        assert!(fitted.centres == 40 && model.relevance == (0..40).collect::<Vec<_>>(), "{fitted:?}");
        let (kernel, _) = centres(&model);
        let (a, noise) = (prior(&model).amplitude, model.noise_variance().unwrap());
        agree(&model, &x, &t, 1e-8);
        // The dense expressions, without centres.
        let covariance = block(kernel, x.view(), x.view()) * a + Array2::<f64>::eye(40) * noise;
        let solved = inverse(&covariance);
        let flat = solved.sum_axis(Axis(1));
        let left = &t - flat.dot(&t) / flat.sum();
        let cross = block(kernel, x.view(), x.view()) * a;
        let mean = cross.dot(&solved.dot(&left)) + flat.dot(&t) / flat.sum();
        close("mean", model.predict_mean(x.view()).unwrap().as_slice().unwrap(), mean.as_slice().unwrap(), 1e-9);
    }
}

#[test]
fn few_centres_predict_as_the_direct_expressions_say() {
    let x = inputs(60, 2);
    let t = targets(&x, 0.3);
    let spline = x.mapv(|v| v + 2.0);
    let poly = Poly { gamma: 0.3.into(), coef0: 1.0, degree: 3 };
    for (kernel, x) in [
        (rbf(0.6), &x),
        (Laplacian { gamma: 0.5.into() }.into(), &x),
        (RationalQuadratic { gamma: 0.5.into(), ..RationalQuadratic::default() }.into(), &x),
        (poly.into(), &x),
        (LinearSpline {}.into(), &spline),
        (Linear {}.into(), &x),
    ] {
        for bias in [true, false] {
            let t = if bias { t.clone() } else { &t - 5.0 };
            let (model, report) = fit(&Rvm { bias, ..process(kernel.clone()) }, x, &t);
            let fitted = report.process.unwrap();
            assert!(fitted.reached && fitted.residual <= 0.3, "{}: {fitted:?}", kernel.name());
            assert!(fitted.centres > 0 && fitted.centres < 60, "{}: {fitted:?}", kernel.name());
            assert_eq!(model.intercept_alpha, bias.then_some(0.0));
            agree(&model, x, &t, 1e-6);
        }
    }
}

/// A weight of w equals w equal rows, and a target whose copies differ.
#[test]
fn weights_equal_repeated_rows() {
    let x = inputs(30, 2);
    let t = targets(&x, 0.3);
    let weights: Array1<f64> = (0..30).map(|i| 1.0 + (i % 3) as f64).collect();
    let repeated: Vec<usize> = (0..30).flat_map(|i| vec![i; 1 + i % 3]).collect();
    let rvm = process(rbf(0.8));
    let (one, _) = rvm.fit(x.view(), &Targets::real(t.view()).with_weights(weights.view())).unwrap();
    let (x2, t2) = (x.select(Axis(0), &repeated), t.select(Axis(0), &repeated));
    let (other, _) = fit(&rvm, &x2, &t2);
    let new = inputs(9, 2);
    let (a, b) = (one.predict(new.view()).unwrap(), other.predict(new.view()).unwrap());
    close("mean", a.mean.as_slice().unwrap(), b.mean.as_slice().unwrap(), 1e-10);
    close("variance", a.variance().as_slice().unwrap(), b.variance().as_slice().unwrap(), 1e-10);
    assert!((one.log_evidence.unwrap() - other.log_evidence.unwrap()).abs() < 1e-8);
    // For copies with different targets, their mean is fitted and the scatter is noise.
    let t3: Array1<f64> = t2.iter().enumerate().map(|(k, t)| t + 0.2 * (wave(k, 5) - 0.5)).collect();
    let (model, _) = fit(&rvm, &x2, &t3);
    let mut mean = Array1::zeros(30);
    repeated.iter().zip(&t3).for_each(|(i, t)| mean[*i] += t / weights[*i]);
    let expected = direct(&model, &x, &mean, weights.as_slice().unwrap(), &new);
    let found = model.predict(new.view()).unwrap();
    close("mean", found.mean.as_slice().unwrap(), expected.mean.as_slice().unwrap(), 1e-8);
    close("variance", found.model_variance.as_slice().unwrap(), expected.variance.as_slice().unwrap(), 1e-8);
}

/// With adjacent rows, wide kernels and kernels of low rank, K of all rows is singular. No jitter is added.
#[test]
fn singular_kernel_matrices_need_no_jitter() {
    let x = inputs(40, 2);
    let beside = &x + 1e-9;
    let near = concatenate![Axis(0), x, beside];
    let t = targets(&near, 0.1);
    for kernel in [rbf(1.0), rbf(1e-4), Linear {}.into()] {
        let (model, report) = fit(&Rvm { residual: Some(1e-9), ..process(kernel.clone()) }, &near, &t);
        let found = model.predict(near.view()).unwrap();
        assert!(model.relevance.len() < 60 && report.adjustments.jitter == 0.0, "{kernel:?}: {}", model.relevance.len());
        assert!(found.mean.iter().chain(&found.model_variance).all(|v| v.is_finite()));
        assert!(found.model_variance.iter().all(|v| *v >= 0.0));
        let rank = if matches!(kernel, Kernel::Linear(_)) { 2 } else { 80 };
        assert!(model.relevance.len() <= rank);
    }
    // An exact straight line, which a wide kernel represents.
    let line: Array1<f64> = x.outer_iter().map(|x| 3.0 * x[0] - x[1] + 7.0).collect();
    let (model, _) = fit(&process(rbf(1e-3)), &x, &line);
    let new = inputs(20, 2);
    let expected: Array1<f64> = new.outer_iter().map(|x| 3.0 * x[0] - x[1] + 7.0).collect();
    let off = (&model.predict_mean(new.view()).unwrap() - &expected).mapv(f64::abs).sum() / 20.0;
    assert!(off < 0.03, "{off}");
}

#[test]
fn prediction_far_from_the_data_is_the_constant_with_the_full_variance() {
    let x = inputs(50, 2);
    let t = targets(&x, 0.3);
    let (model, _) = fit(&process(rbf(1.0)), &x, &t);
    let far = model.predict(Array2::from_elem((1, 2), 1e3).view()).unwrap();
    let (intercept, amplitude) = (model.expansion.intercept[0], prior(&model).amplitude);
    assert!((far.mean[0] - intercept).abs() < 1e-12 * intercept.abs());
    let of_bias = model.weight_covariance()[[0, 0]];
    assert!((far.model_variance[0] - amplitude - of_bias).abs() < 1e-9 * amplitude, "{far:?}");
    assert!(far.model_variance[0] > 3.0 * model.predict(x.view()).unwrap().model_variance.mean().unwrap());
    let gamma = model.well_determined();
    assert_eq!(gamma.len(), model.relevance.len());
    assert!(gamma.iter().all(|g| (0.0..=1.0).contains(g)) && gamma.iter().any(|g| *g > 0.5), "{gamma:?}");
}

#[test]
fn several_outputs_share_the_prior() {
    let x = inputs(50, 2);
    let t = Array2::from_shape_fn((50, 2), |(i, k)| if k == 0 { (2.0 * x[[i, 0]]).sin() } else { 1e3 * x[[i, 1]].cos() });
    let t = t + Array2::from_shape_fn((50, 2), |(i, k)| if k == 0 { 0.1 } else { 300.0 } * (wave(i, 40 + k) - 0.5));
    let (model, _) = process(rbf(0.7)).fit(x.view(), &Targets::outputs(t.view())).unwrap();
    let new = inputs(8, 2);
    let all = model.predict_outputs(new.view()).unwrap();
    for (k, found) in all.iter().enumerate() {
        let own = model.output(k).unwrap();
        let target = t.column(k).to_owned();
        let expected = direct(&own, &x, &target, &[1.0; 50], &new);
        close("mean", found.mean.as_slice().unwrap(), expected.mean.as_slice().unwrap(), 1e-8);
        close("variance", found.model_variance.as_slice().unwrap(), expected.variance.as_slice().unwrap(), 1e-8);
        let alone = own.predict(new.view()).unwrap();
        close("alone", alone.model_variance.as_slice().unwrap(), found.model_variance.as_slice().unwrap(), 1e-12);
        assert_eq!(own.output_noise_variances(), [model.output_noise_variances()[k]]);
    }
    // The second output is constant.
    let constant = Array2::from_shape_fn((50, 2), |(i, k)| if k == 0 { t[[i, 0]] } else { 3.0 });
    let (model, _) = process(rbf(0.7)).fit(x.view(), &Targets::outputs(constant.view())).unwrap();
    let found = model.predict_outputs(new.view()).unwrap();
    assert!(found[1].mean.iter().all(|m| (m - 3.0).abs() < 1e-6) && found[1].variance().iter().all(|v| *v < 1e-9));
}

#[test]
fn known_noise_of_each_row_is_used() {
    let x = inputs(60, 1);
    let noise: Array1<f64> = (0..60).map(|i| if i % 2 == 0 { 0.01 } else { 1.0 }).collect();
    let t: Array1<f64> = (0..60).map(|i| (2.0 * x[[i, 0]]).sin() + 3.0 * noise[i].sqrt() * (wave(i, 3) - 0.5)).collect();
    let rvm = process(rbf(0.8));
    let (model, _) = rvm.fit(x.view(), &Targets::real(t.view()).with_noise_variance(noise.view())).unwrap();
    assert_eq!(model.noise_variance(), Some(0.0));
    // Equivalent to equal noise s2, fixed, and weights s2 / noise.
    let fixed = Rvm { likelihood: Gaussian { noise_variance: Some(0.25) }.into(), ..rvm };
    let weights = noise.mapv(|v| 0.25 / v);
    let (other, _) = fixed.fit(x.view(), &Targets::real(t.view()).with_weights(weights.view())).unwrap();
    assert_eq!(other.noise_variance(), Some(0.25));
    let new = inputs(20, 1);
    let held = Model { process: other.process.clone(), ..other };
    let (a, b) = (model.predict(new.view()).unwrap(), held.predict(new.view()).unwrap());
    // The search for the amplitude has its own tolerance, so that means agree better.
    assert!((&a.mean - &b.mean).iter().all(|d| d.abs() < 0.05), "{} {}", a.mean, b.mean);
    let off: Array1<f64> = new.column(0).mapv(|x| (2.0 * x).sin()) - &a.mean;
    assert!(off.iter().zip(&a.model_variance).all(|(d, v)| d.abs() < 5.0 * v.sqrt() + 0.02), "{off}");
}

#[test]
fn files_keep_every_number_and_are_checked() {
    let x = inputs(40, 2);
    let t = targets(&x, 0.2);
    let (model, _) = fit(&process(rbf(1.0)), &x, &t);
    let json = model.to_json().unwrap();
    let back = Model::from_json(&json).unwrap();
    assert_eq!(back, model);
    let new = inputs(9, 2);
    assert_eq!(back.predict(new.view()).unwrap(), model.predict(new.view()).unwrap());
    let broken = |change: &dyn Fn(&mut Model), key: &str| {
        let mut model = model.clone();
        change(&mut model);
        match Model::from_json(&model.to_json().unwrap()) {
            Err(Error::ModelFile(text)) => assert!(text.starts_with(&format!("model.{key}: found")), "{text}"),
            other => panic!("{key}: {other:?}"),
        }
    };
    let edit = |f: fn(&mut ProcessPrior)| move |model: &mut Model| f(model.process.as_mut().unwrap());
    broken(&edit(|p| p.amplitude = -1.0), "process.amplitude");
    broken(&edit(|p| p.amplitude = 0.0), "process.amplitude");
    broken(&edit(|p| p.residual = -1.0), "process.residual");
    broken(&edit(|p| drop(p.factor.pop())), "process.factor");
    broken(&edit(|p| p.factor[3][3] = 0.0), "process.factor[3][3]");
    broken(&edit(|p| p.factor[3].push(1.0)), "process.factor[3]");
    broken(&edit(|p| p.searched.push(1000)), "process.searched");
    broken(&edit(|p| p.searched.reverse()), "process.searched");
    broken(&|model| model.alpha = vec![1.0; model.relevance.len()], "alpha");
    broken(&|model| model.intercept_alpha = Some(1.0), "process.amplitude");
    let sigmoid: Kernel = Sigmoid { gamma: 1.0.into(), ..Sigmoid::default() }.into();
    broken(
        &|model| match &mut model.expansion.basis {
            FittedBasis::Kernel { kernel, .. } => *kernel = sigmoid.clone(),
            _ => unreachable!("the model has a kernel"),
        },
        "process.amplitude",
    );
}

#[test]
fn process_fits_do_not_depend_on_threads() {
    let x = inputs(300, 3);
    let t = targets(&x, 0.3);
    let fits: Vec<Model> = [1, 2, 3].map(|n| fit(&Rvm { threads: Some(n), ..process(rbf(1.0)) }, &x, &t).0).into();
    assert!(fits[0].relevance.len() > 30, "{}", fits[0].relevance.len());
    assert_eq!(fits[0], fits[1]);
    assert_eq!(fits[0], fits[2]);
    let new = inputs(50, 3);
    let draw = |threads: usize| {
        let pool = thread_pool(Some(threads)).unwrap();
        pool.install(|| (fits[0].draws(3, 1, true).unwrap().at(new.view()).unwrap(), fits[0].predict(new.view()).unwrap()))
    };
    assert_eq!(draw(1), draw(3));
}

/// Units and offset of the target, and the order of rows, do not matter.
#[test]
fn units_and_order_do_not_matter() {
    let x = inputs(80, 2);
    let t = targets(&x, 0.3);
    let rvm = process(rbf(0.8));
    let (model, _) = fit(&rvm, &x, &t);
    let new = inputs(9, 2);
    let expected = model.predict(new.view()).unwrap();
    for (scale, shift) in [(1e6, 0.0), (1e-6, 0.0), (2.0, 300.0)] {
        let (other, _) = fit(&rvm, &x, &t.mapv(|t| scale * t + shift));
        let found = other.predict(new.view()).unwrap();
        close("mean", found.mean.mapv(|m| (m - shift) / scale).as_slice().unwrap(), expected.mean.as_slice().unwrap(), 1e-7);
        let variance = found.variance() / (scale * scale);
        close("variance", variance.as_slice().unwrap(), expected.variance().as_slice().unwrap(), 1e-6);
        let log = other.log_evidence.unwrap() + 79.0 * f64::ln(scale);
        assert!((log - model.log_evidence.unwrap()).abs() < 1e-5, "{scale}: {log}");
    }
    let order: Vec<usize> = (0..80).rev().collect();
    let (other, _) = fit(&rvm, &x.select(Axis(0), &order), &t.select(Axis(0), &order));
    let back: Vec<usize> = other.relevance.iter().rev().map(|row| 79 - row).collect();
    assert_eq!(back, model.relevance);
    let found = other.predict(new.view()).unwrap();
    close("mean", found.mean.as_slice().unwrap(), expected.mean.as_slice().unwrap(), 1e-9);
}

/// The search for centres does not depend on the mean of the targets, whose bias has a prior about that mean.
#[test]
fn origin_of_the_targets_does_not_matter() {
    let new = inputs(20, 2);
    for n in [30, 60, 110] {
        let x = inputs(n, 2);
        let t = targets(&x, 0.6);
        let t = &t - t.mean().unwrap();
        let kernels: [Kernel; 3] = [Rbf::default().into(), Matern52::default().into(), Laplacian::default().into()];
        for kernel in kernels {
            let rvm = Rvm { kernel, ..Rvm::default() };
            let (model, _) = fit(&rvm, &x, &t);
            let expected = model.predict(new.view()).unwrap();
            for shift in [1.0, -30.0, 1000.0] {
                let (other, _) = fit(&rvm, &x, &(&t + shift));
                assert_eq!(other.relevance, model.relevance, "{n} rows, {shift}");
                let found = other.predict(new.view()).unwrap();
                close("mean", (&found.mean - shift).as_slice().unwrap(), expected.mean.as_slice().unwrap(), 1e-7);
                close("variance", found.variance().as_slice().unwrap(), expected.variance().as_slice().unwrap(), 1e-7);
            }
        }
    }
}

#[test]
fn covariance_and_draws_have_the_residual_of_the_prior() {
    let x = inputs(40, 1);
    let t = targets(&x, 0.3);
    let (model, _) = fit(&Rvm { residual: Some(3.0), ..process(rbf(8.0)) }, &x, &t);
    let new = Array2::from_shape_vec((6, 1), vec![-3.5, -3.3, -0.4, 0.5, 0.5, 2.5]).unwrap();
    let (mean, covariance) = model.predict_covariance(new.view(), None).unwrap();
    let found = model.predict(new.view()).unwrap();
    assert_eq!(mean, found.mean);
    close("variance", covariance.diag().to_vec().as_slice(), found.variance().as_slice().unwrap(), 1e-15);
    // Two equal rows have the same function value.
    let noise = found.noise_variance;
    assert!((covariance[[3, 4]] - (covariance[[3, 3]] - noise)).abs() < 1e-9 * covariance[[3, 3]]);
    let (kernel, z) = centres(&model);
    let k = block(kernel, new.view(), z.view());
    let solved = k.dot(&inverse(&block(kernel, z.view(), z.view())));
    let residual = (block(kernel, new.view(), new.view()) - solved.dot(&k.t())) * prior(&model).amplitude;
    assert!(residual[[0, 1]] > 0.3 * residual[[0, 0]], "the residual of neighbours is correlated: {residual}");
    let phi = concatenate![Axis(1), Array2::ones((6, 1)), k];
    let expected = phi.dot(&model.weight_covariance()).dot(&phi.t()) + residual + Array2::<f64>::eye(6) * noise;
    close("covariance", covariance.as_slice().unwrap(), expected.as_slice().unwrap(), 1e-9);
    for noisy in [true, false] {
        const S: usize = 40_000;
        let draws = model.draws(S, 7, noisy).unwrap().at(new.view()).unwrap();
        let centred = &draws - &mean.view().insert_axis(Axis(1));
        let sampled = centred.dot(&centred.t()) / S as f64;
        for ((i, j), expected) in covariance.indexed_iter() {
            let expected = expected - if i == j && !noisy { noise } else { 0.0 };
            let size = (covariance[[i, i]] * covariance[[j, j]]).sqrt();
            assert!((sampled[[i, j]] - expected).abs() < 0.03 * size, "{i} {j}: {} {expected}", sampled[[i, j]]);
        }
        if !noisy {
            let apart = &draws.row(3) - &draws.row(4);
            assert!(apart.iter().all(|d| d.abs() < 1e-6), "one function has one value at a row");
        }
    }
    // Blocks give the same draws, even if a row appears again in another block.
    let whole = model.draws(5, 1, true).unwrap().at(new.view()).unwrap();
    let mut draws = model.draws(5, 1, true).unwrap();
    let parts = [draws.at(new.slice(s![..4, ..])).unwrap(), draws.at(new.slice(s![4.., ..])).unwrap()];
    let parts = concatenate![Axis(0), parts[0], parts[1]];
    assert!((&whole - &parts).iter().all(|d| d.abs() < 1e-9), "{whole} {parts}");
}

#[test]
fn folds_fit_the_process() {
    let x = inputs(90, 2);
    let t = targets(&x, 0.4);
    for (dictionary, calibrate) in [(Dictionary::default(), true), (Dictionary::Size(30), false)] {
        let rvm = Rvm { cv: Some(5), calibrate, dictionary, ..process(rbf(0.8)) };
        let (model, report) = fit(&rvm, &x, &t);
        let validation = report.validation.unwrap();
        assert!(validation.scores.nlpd.unwrap() < 1.0 && validation.vectors > 3.0, "{validation:?}");
        assert!(model.process.is_some());
        let factor = model.posterior.as_ref().unwrap().variance_factor.unwrap_or(1.0);
        assert_eq!(factor, validation.variance_factor.unwrap_or(1.0));
        let new = inputs(4, 2);
        let mut plain = model.clone();
        plain.posterior.as_mut().unwrap().variance_factor = None;
        let (a, b) = (model.predict(new.view()).unwrap(), plain.predict(new.view()).unwrap());
        close("factor", a.variance().as_slice().unwrap(), (b.variance() * factor).as_slice().unwrap(), 1e-12);
        if let Dictionary::Size(size) = dictionary {
            assert!(model.relevance.len() <= size, "{}", model.relevance.len());
        }
    }
    let rvm = Rvm { sparsity: Sparsity::Rule(SparsityRule::Cv), ..process(rbf(0.8)) };
    let (model, report) = fit(&rvm, &x, &t);
    assert!(model.process.is_some() && report.validation.unwrap().tried.len() > 1);
}

/// Without structure the model is a constant with its noise and no centres, and its file can be read.
#[test]
fn pure_noise_gives_a_constant() {
    let x = inputs(60, 3);
    let t: Array1<f64> = (0..60).map(|i| wave(i, 3) + wave(i, 6) + wave(i, 9)).collect();
    for bias in [true, false] {
        let t = if bias { t.clone() } else { &t - t.mean().unwrap() };
        let (model, report) = fit(&Rvm { bias, ..process(rbf(1.0)) }, &x, &t);
        assert!(model.relevance.is_empty() && report.nothing_found, "{:?}", report.process);
        assert_eq!((prior(&model).amplitude, report.process.unwrap().centres), (0.0, 0));
        let found = model.predict(x.view()).unwrap();
        let mean = if bias { t.mean().unwrap() } else { 0.0 };
        assert!(found.mean.iter().all(|m| (m - mean).abs() < 1e-9));
        let variance = t.var(0.0);
        assert!((found.variance()[0] / variance - 1.0).abs() < 0.1, "{} {variance}", found.variance()[0]);
        let back = Model::from_json(&model.to_json().unwrap()).unwrap();
        assert_eq!(back, model);
        assert_eq!(back.draws(2, 0, true).unwrap().at(x.view()).unwrap().dim(), (60, 2));
    }
    let (model, _) = fit(&process(rbf(1.0)), &x, &Array1::from_elem(60, 4.0));
    let found = model.predict(x.view()).unwrap();
    assert!(model.relevance.is_empty() && found.mean.iter().all(|m| (m - 4.0).abs() < 1e-9), "{found:?}");
}

#[test]
fn learned_kernel_keeps_its_process() {
    let x = inputs(80, 3) * &Array1::from_vec(vec![1.0, 1e3, 1e-3]);
    let t: Array1<f64> = (0..80).map(|i| (2.0 * x[[i, 0]]).sin() + 0.2 * (wave(i, 5) - 0.5)).collect();
    let kernel = Rbf { gamma: Gamma::Rule(GammaRule::Evidence) };
    let (model, report) = fit(&process(kernel.into()), &x, &t);
    let new = inputs(30, 3) * &Array1::from_vec(vec![1.0, 1e3, 1e-3]);
    let off =
        (&model.predict_mean(new.view()).unwrap() - &new.column(0).mapv(|x| (2.0 * x).sin())).mapv(|d| d * d).mean().unwrap();
    assert!(off.sqrt() < 0.1 && report.process.unwrap().centres > 3, "{}", off.sqrt());
}

#[test]
fn given_landmarks_are_the_only_centres() {
    let x = inputs(60, 1);
    let t = targets(&x, 0.2);
    let landmarks = Array2::from_shape_fn((9, 1), |(i, _)| -2.0 + 0.5 * i as f64);
    let rvm = Rvm { landmarks: Landmarks::Given(Centres(landmarks)), ..process(rbf(1.0)) };
    let (model, report) = fit(&rvm, &x, &t);
    assert!(model.relevance.iter().all(|k| *k < 9) && !model.relevance.is_empty(), "{:?}", model.relevance);
    agree(&model, &x, &t, 1e-7);
    assert_eq!(report.process.unwrap().centres, model.relevance.len());
}

#[test]
fn time_and_memory_limits_leave_a_model() {
    let x = inputs(400, 3);
    let t = targets(&x, 0.05);
    let (model, report) = fit(&Rvm { time_limit: Some(1e-3), ..process(rbf(4.0)) }, &x, &t);
    assert!(model.process.is_some() && model.predict(x.view()).unwrap().mean.iter().all(|m| m.is_finite()));
    assert_eq!(report.status, Status::TimeLimit);
    let (all, report) = fit(&process(rbf(4.0)), &x, &t);
    assert!(report.process.unwrap().reached && all.relevance.len() > 150, "{}", all.relevance.len());
    let (model, report) = fit(&Rvm { dictionary: Dictionary::Size(50), ..process(rbf(4.0)) }, &x, &t);
    let fitted = report.process.unwrap();
    assert!(!fitted.reached && fitted.residual > 0.3 && model.relevance.len() == 50, "{fitted:?}");
}

#[test]
fn auto_prior_uses_the_process_where_supported() {
    let x = inputs(40, 1);
    let t = targets(&x, 0.2);
    let auto = Rvm { weight_prior: WeightPrior::Auto, ..process(rbf(1.0)) };
    assert_eq!(fit(&auto, &x, &t).0, fit(&process(rbf(1.0)), &x, &t).0);
    for other in [
        Rvm { kernel: Sigmoid::default().into(), ..auto.clone() },
        Rvm { kernel: LinearSpline {}.into(), ..auto.clone() },
        Rvm { variance: Some(Variance::Healed), ..auto.clone() },
        Rvm { inference: Variational::default().into(), ..auto.clone() },
        Rvm { keep_statistics: true, dictionary: Dictionary::Size(10), ..auto.clone() },
    ] {
        let ard = Rvm { weight_prior: WeightPrior::Ard, ..other.clone() };
        let (model, _) = fit(&other, &x, &t);
        assert!(model.process.is_none());
        assert_eq!(model, fit(&ard, &x, &t).0);
    }
}

#[test]
fn process_prior_rejects_unsupported_settings_by_name() {
    let x = inputs(20, 1);
    let t = targets(&x, 0.2);
    let rvm = process(rbf(1.0));
    let refused = |rvm: &Rvm, with: &str| match rvm.fit(x.view(), &Targets::real(t.view())) {
        Err(Error::Parameter { name, found, expected }) => {
            assert_eq!((name.as_str(), found.as_str()), ("weight_prior", "process"));
            assert!(expected.starts_with(&format!("ard or auto: process cannot be combined with {with}")), "{expected}");
        }
        other => panic!("{with}: {other:?}"),
    };
    refused(&Rvm { kernel: Sigmoid::default().into(), ..rvm.clone() }, "kernel = sigmoid: ");
    refused(&Rvm { kernel: Poly { coef0: -1.0, ..Poly::default() }.into(), ..rvm.clone() }, "kernel = poly: ");
    refused(&Rvm { kernel: LinearSpline {}.into(), ..rvm.clone() }, "kernel = linear_spline with negative features: ");
    refused(&Rvm { basis: Basis::Given, ..rvm.clone() }, "basis = given: ");
    refused(&Rvm { variance: Some(Variance::Healed), ..rvm.clone() }, "variance = healed: ");
    refused(&Rvm { keep_rows: Some(3), ..rvm.clone() }, "keep_rows: ");
    refused(&Rvm { keep_statistics: true, dictionary: Dictionary::Size(5), ..rvm.clone() }, "keep_statistics: ");
    refused(&Rvm { centres: CentreRule::Learned, ..rvm.clone() }, "centres = learned: ");
    refused(&Rvm { posterior: PosteriorRule::Averaged, ..rvm.clone() }, "posterior = averaged: ");
    refused(&Rvm { inference: Variational::default().into(), ..rvm.clone() }, "inference = variational: ");
    for residual in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let error = Rvm { residual: Some(residual), ..rvm.clone() }.check().unwrap_err();
        assert!(matches!(error, Error::Parameter { name, .. } if name == "residual"), "{residual}");
    }
    let mut sums = Statistics::new(&rbf(1.0), x.slice(s![..5, ..])).unwrap();
    sums.update(x.view(), &Targets::real(t.view())).unwrap();
    let error = rvm.fit_statistics(&sums).unwrap_err();
    assert!(matches!(error, Error::Parameter { name, .. } if name == "weight_prior"));
    let (model, _) = fit(&rvm, &x, &t);
    let named = |error: Error, expected: &str| assert!(matches!(error, Error::Parameter { name, .. } if name == expected));
    named(model.predict_with(x.view(), Variance::Healed).unwrap_err(), "variance");
    let phi = block(&rbf(1.0), x.view(), centres(&model).1.view());
    named(model.predict_from_basis(phi.view()).unwrap_err(), "basis");
}

/// Leave-one-out predictions agree with N x N matrices of the other rows: with equal inputs, which share the residual
/// of the prior, weights, noise variances per row, and without a constant.
#[test]
fn left_out_predictions_equal_those_of_the_other_rows() {
    let few = inputs(24, 2);
    let x = concatenate![Axis(0), few, few.slice(s![..6, ..]), few.slice(s![..3, ..])];
    let (t, n) = (targets(&x, 0.3), x.nrows());
    let weights = Array1::from_shape_fn(n, |i| [1.0, 2.0, 0.5][i % 3]);
    let variances = Array1::from_shape_fn(n, |i| 0.02 + 0.05 * wave(i, 3));
    let plain = Targets::real(t.view());
    let (weighted, known) = (plain.with_weights(weights.view()), plain.with_noise_variance(variances.view()));
    let one = Array1::ones(n);
    // Targets, weights, the noise variance of each row, and whether there is a constant.
    let cases = [
        (plain, &one, None, true),
        (weighted, &weights, None, true),
        (weighted, &weights, None, false),
        (known, &one, Some(&variances), true),
    ];
    for (targets, weights, known, bias) in cases {
        let rvm = Rvm { residual: Some(1.0), bias, ..process(rbf(1.0)) };
        let model = rvm.fit(x.view(), &targets).unwrap().0;
        let (kernel, points) = centres(&model);
        let prior = model.process.as_ref().unwrap();
        let (kz, kxz) = (block(kernel, points.view(), points.view()), block(kernel, x.view(), points.view()));
        let spanned = kxz.dot(&inverse(&kz)).dot(&kxz.t());
        let whole = block(kernel, x.view(), x.view());
        let same = |i: usize, j: usize| x.row(i) == x.row(j);
        let prior_of = |(i, j)| prior.amplitude * if same(i, j) { whole[[i, j]] } else { spanned[[i, j]] };
        let k = Array2::from_shape_fn((n, n), prior_of);
        let noise = |i: usize| known.map_or(model.noise_variance().unwrap(), |known| known[i]);
        let found = model.leave_one_out(x.view(), &targets).unwrap();
        let prediction = found.prediction.unwrap();
        assert!(model.relevance.len() < few.nrows(), "{}", model.relevance.len());
        for (i, own) in t.iter().enumerate() {
            let others: Vec<usize> = (0..n).filter(|j| *j != i).collect();
            let mut c = k.select(Axis(0), &others).select(Axis(1), &others);
            others.iter().enumerate().for_each(|(a, j)| c[[a, a]] += noise(*j) / weights[*j]);
            let inner = inverse(&c);
            let cross: Array1<f64> = others.iter().map(|j| k[[i, *j]]).collect();
            let (solved, ones, t) = (inner.dot(&cross), Array1::ones(n - 1), t.select(Axis(0), &others));
            let (mut mean, mut variance) = (solved.dot(&t), k[[i, i]] - solved.dot(&cross));
            if bias {
                // The constant is found by generalised least squares, because its prior is flat.
                let of_ones: Array1<f64> = inner.dot(&ones);
                let (total, left) = (of_ones.sum(), 1.0 - solved.sum());
                mean += left * of_ones.dot(&t) / total;
                variance += left * left / total;
            }
            close("mean", &[prediction.mean[i]], &[mean], 1e-8);
            close("variance", &[prediction.model_variance[i]], &[variance], 1e-6);
            let of_new = variance + noise(i);
            let log = -0.5 * ((2.0 * std::f64::consts::PI * of_new).ln() + (own - mean).powi(2) / of_new);
            close("density", &[found.log_density[i]], &[log], 1e-6);
        }
    }
}

/// Returns the mean negative log density of new rows.
fn nlpd(model: &Model, x: &Array2<f64>, t: &Array1<f64>) -> f64 {
    let found = model.predict(x.view()).unwrap();
    let variances = found.variance();
    let of_row = |n: usize| {
        let variance = variances[n];
        0.5 * ((2.0 * std::f64::consts::PI * variance).ln() + (t[n] - found.mean[n]).powi(2) / variance)
    };
    (0..t.len()).map(of_row).sum::<f64>() / t.len() as f64
}

/// Data sets above and below the size limit of the dense process predict alike.
#[test]
fn large_data_sets_predict_like_smaller_ones() {
    let (all, few) = (inputs(3400, 3), 2999);
    let t = targets(&all, 0.2);
    let fit_to = |n: usize| fit(&Rvm::default(), &all.slice(s![..n, ..]).to_owned(), &t.slice(s![..n]).to_owned());
    let (new, new_t) = (all.slice(s![3001.., ..]).to_owned(), t.slice(s![3001..]).to_owned());
    let ((small, small_report), (large, large_report)) = (fit_to(few), fit_to(3001));
    let (small_nlpd, large_nlpd) = (nlpd(&small, &new, &new_t), nlpd(&large, &new, &new_t));
    assert!((small_nlpd - large_nlpd).abs() < 0.05, "{small_nlpd} {large_nlpd}");
    assert!(small_nlpd < 0.1, "{small_nlpd}");
    assert!(prior(&large).residual <= 0.01 && large_report.process.as_ref().unwrap().reached, "{large_report:?}");
    assert!(small_report.process.unwrap().searched > 0 && large_report.process.unwrap().searched == 0);
    assert_eq!(prior(&large).searched, large.relevance);
    // The kernel is learned from more rows than one process has.
    let learnt = &large_report.kernel_search.unwrap().tried[0];
    assert!(learnt.process.gain > 0.5 && large.log_evidence.unwrap().is_finite(), "{learnt:?}");
}

#[test]
fn large_data_sets_do_not_depend_on_threads_or_units() {
    let x = inputs(3100, 2);
    let t = targets(&x, 0.1);
    let rvm = Rvm { dictionary: 60.into(), threads: Some(1), ..Rvm::default() };
    let (model, _) = fit(&rvm, &x, &t);
    assert!(model.relevance.len() <= 60 && !model.relevance.is_empty(), "{}", model.relevance.len());
    let given = |threads| Rvm { kernel: model.kernel().unwrap().clone(), threads: Some(threads), ..rvm.clone() };
    let (one, three) = (fit(&given(1), &x, &t).0, fit(&given(3), &x, &t).0);
    assert_eq!((&one.expansion, &one.posterior, &one.process), (&three.expansion, &three.posterior, &three.process));
    // A feature in another unit.
    let mut scaled = x.clone();
    scaled.column_mut(1).mapv_inplace(|v| 1e6 * v);
    let (other, _) = fit(&rvm, &scaled, &t);
    let (expected, found) = (model.predict(x.view()).unwrap(), other.predict(scaled.view()).unwrap());
    assert!(expected.mean.iter().zip(&found.mean).all(|(a, b)| (a - b).abs() < 1e-6), "means");
}

#[test]
fn large_data_sets_of_noise_give_a_constant_and_search_settings_a_search() {
    let x = inputs(3200, 2);
    let mut random = rand_pcg::Pcg64::seed_from_u64(3);
    let t: Array1<f64> = (0..3200).map(|_| random.random_range(0.0..3.0)).collect();
    let (model, _) = fit(&Rvm::default(), &x, &t);
    let mean = t.mean().unwrap();
    assert!(model.predict(x.view()).unwrap().mean.iter().all(|m| (m - mean).abs() < 0.15), "{:?}", model.relevance.len());
    for rvm in [
        Rvm { inference: MacKay::default().into(), ..Rvm::default() },
        Rvm { sparsity: 2.0.into(), ..Rvm::default() },
        Rvm { weight_prior: WeightPrior::Ard, ..Rvm::default() },
    ] {
        let (model, _) = fit(&Rvm { kernel: rbf(1.0), dictionary: 20.into(), ..rvm }, &x, &targets(&x, 0.1));
        assert!(model.process.is_none() && !model.relevance.is_empty());
    }
}

#[test]
fn large_data_sets_support_landmarks_outputs_and_limits() {
    let x = inputs(3100, 2);
    let one = targets(&x, 0.1);
    let t = Array2::from_shape_fn((3100, 2), |(n, k)| if k == 0 { one[n] } else { -2.0 * one[n] + x[[n, 0]] });
    let given = Landmarks::Given(Centres(inputs(60, 2)));
    let rvm = Rvm { kernel: rbf(1.0), landmarks: given, residual: Some(1e-9), ..Rvm::default() };
    let (model, report) = rvm.fit(x.view(), &Targets::outputs(t.view())).unwrap();
    assert_eq!(model.relevance, (0..60).collect::<Vec<_>>());
    assert!(!report.process.unwrap().reached);
    for (k, found) in model.predict_outputs(x.view()).unwrap().iter().enumerate() {
        let left = (&found.mean - &t.column(k)).mapv(|d| d * d).mean().unwrap();
        assert!(left < 0.05 * t.column(k).var(0.0), "output {k}: {left}");
    }
    // Without time the weights are those of a sample.
    let hurried = Rvm { kernel: rbf(0.5), time_limit: Some(1e-9), ..Rvm::default() };
    let (model, report) = fit(&hurried, &x, &one);
    assert_eq!(model.status, Status::TimeLimit);
    assert!(report.adjustments.left_out_rows > 1000 && model.predict(x.view()).unwrap().mean.iter().all(|m| m.is_finite()));
}

/// Rows in blocks of a given size.
struct InBlocks<'a> {
    x: &'a Array2<f64>,
    t: Array2<f64>,
    noise: Option<Array1<f64>>,
    weights: Array1<f64>,
    size: usize,
}

impl Blocks for InBlocks<'_> {
    fn pass(&self, each: &mut dyn FnMut(ArrayView2<f64>, &Targets) -> Result<()>) -> Result<()> {
        for begin in (0..self.x.nrows()).step_by(self.size) {
            let rows = begin..(begin + self.size).min(self.x.nrows());
            let targets = Targets::outputs(self.t.slice(s![rows.clone(), ..])).with_weights(self.weights.slice(s![rows.clone()]));
            let noise = self.noise.as_ref().map(|noise| noise.slice(s![rows.clone()]));
            let targets = noise.map_or(targets, |noise| targets.with_noise_variance(noise));
            each(self.x.slice(s![rows, ..]), &targets)?;
        }
        Ok(())
    }
}

/// If the sample contains all rows, blocks of any size give the model of a fit in memory: with several outputs, weights
/// (0 among them) and known noise.
#[test]
fn rows_in_blocks_give_the_model_of_rows_in_memory() {
    let x = inputs(3300, 2);
    let one = targets(&x, 0.2);
    let two = Array2::from_shape_fn((3300, 2), |(n, k)| if k == 0 { one[n] } else { x[[n, 1]] - 30.0 * one[n] });
    let single = one.clone().insert_axis(Axis(1));
    let weights = Array1::from_shape_fn(3300, |n| if n % 50 == 7 { 0.0 } else { 0.5 + (n % 4) as f64 });
    let noise = Array1::from_shape_fn(3300, |n| 0.02 + 0.1 * wave(n, 41));
    for (t, noise, kernel) in [(&two, None, rbf(0.5)), (&single, Some(noise), rbf(0.5)), (&single, None, Rvm::default().kernel)] {
        let rvm = Rvm { kernel, dictionary: 50.into(), ..Rvm::default() };
        let all = Targets::outputs(t.view()).with_weights(weights.view());
        let all = noise.as_ref().map_or(all, |noise| all.with_noise_variance(noise.view()));
        let (expected, report) = rvm.fit(x.view(), &all).unwrap();
        assert!(report.process.is_some());
        // The kernel that is learned from the sample does not depend on the blocks.
        for size in [101, 3300].into_iter().take(if rvm.learns_kernel() { 1 } else { 2 }) {
            let blocks = InBlocks { x: &x, t: t.clone(), noise: noise.clone(), weights: weights.clone(), size };
            let (found, _) = rvm.fit_blocks_with_sample(x.view(), &all, &blocks, &mut silent).unwrap();
            assert_eq!(found.relevance, expected.relevance);
            close("log evidence", &[found.log_evidence.unwrap()], &[expected.log_evidence.unwrap()], 1e-9);
            for (found, expected) in
                found.predict_outputs(x.view()).unwrap().iter().zip(expected.predict_outputs(x.view()).unwrap())
            {
                close("mean", found.mean.as_slice().unwrap(), expected.mean.as_slice().unwrap(), 1e-7);
                close("variance", found.variance().as_slice().unwrap(), expected.variance().as_slice().unwrap(), 1e-7);
            }
        }
    }
}

/// The sample determines the kernel, and all rows determine the weights. Predictions are nearer to the truth than those
/// of the sample alone.
#[test]
fn rows_in_blocks_predict_better_than_their_sample() {
    let x = inputs(12_000, 2);
    let t = targets(&x, 0.5);
    let some = s![..500, ..];
    let blocks = InBlocks { x: &x, t: t.clone().insert_axis(Axis(1)), noise: None, weights: Array1::ones(12_000), size: 4000 };
    let few = Targets::real(t.slice(s![..500]));
    let (alone, _) = Rvm::default().fit(x.slice(some), &few).unwrap();
    let (model, report) = Rvm::default().fit_blocks_with_sample(x.slice(some), &few, &blocks, &mut silent).unwrap();
    let new = Array2::from_shape_fn((500, 2), |(i, k)| 3.8 * wave(i + 50_000, k) - 1.9);
    let truth = targets(&new, 0.0);
    let error = |model: &Model| (&model.predict(new.view()).unwrap().mean - &truth).mapv(|d| d * d).mean().unwrap();
    assert!(error(&model) < 0.5 * error(&alone), "{} {}", error(&model), error(&alone));
    let std = model.noise_variance().unwrap().sqrt();
    assert!((std / 0.25 - 1.0).abs() < 0.03, "{std}: the noise is that of all rows");
    assert!(report.kernel_search.is_some() && report.process.unwrap().reached);
}

#[test]
fn bad_rows_in_blocks_are_rejected() {
    let x = inputs(200, 2);
    let t = targets(&x, 0.1);
    let real = Targets::real(t.view());
    let blocks = |x| InBlocks { x, t: t.clone().insert_axis(Axis(1)), noise: None, weights: Array1::ones(200), size: 60 };
    let fails = |rvm: &Rvm, blocks: &InBlocks, fragment: &str| {
        let error = rvm.fit_blocks_with_sample(x.view(), &real, blocks, &mut silent).unwrap_err().to_string();
        assert!(error.contains(fragment), "{error}");
    };
    let rvm = Rvm { kernel: rbf(1.0), ..Rvm::default() };
    let wide = inputs(200, 3);
    fails(&rvm, &blocks(&wide), "2 columns");
    let mut bad = x.clone();
    bad[[130, 1]] = f64::NAN;
    fails(&rvm, &blocks(&bad), "row 130");
    fails(&rvm, &InBlocks { noise: Some(Array1::ones(200)), ..blocks(&x) }, "noise variances");
    fails(&Rvm { weight_prior: WeightPrior::Ard, ..rvm.clone() }, &blocks(&x), "weight_prior");
    fails(&Rvm { cv: Some(3), weight_prior: WeightPrior::Process, ..rvm.clone() }, &blocks(&x), "cv");
    fails(&Rvm { likelihood: Poisson::default().into(), ..rvm.clone() }, &blocks(&x), "counts are whole numbers");
    // Without time the weights are those of the sample.
    let hurried = Rvm { time_limit: Some(1e-9), ..rvm };
    let (model, report) = hurried.fit_blocks_with_sample(x.view(), &real, &blocks(&x), &mut silent).unwrap();
    assert_eq!(model.status, Status::TimeLimit);
    assert!(report.certificate.reason.contains("time_limit"), "{}", report.certificate.reason);
}
