//! Reliable variances: the healed variance, draws of functions, and joint covariances.

use crate::support::close;
use ndarray::{Array1, Array2, Axis, concatenate, s};
use rand::{RngExt, SeedableRng};
use rand_distr::{Distribution, StandardNormal};
use relvec::*;

/// Returns sin(x) / x with noise, and a gap in the inputs.
fn gap(rows: usize) -> (Array2<f64>, Array1<f64>) {
    let mut random = rand_pcg::Pcg64::seed_from_u64(3);
    let x = Array2::from_shape_simple_fn((rows, 1), || {
        let x: f64 = random.random_range(-10.0..6.0);
        if x > -2.0 { x + 4.0 } else { x }
    });
    let t = x.column(0).mapv(|x| {
        x.sin() / x
            + 0.1 * {
                let z: f64 = StandardNormal.sample(&mut random);
                z
            }
    });
    (x, t)
}

fn healed() -> Rvm {
    let kernel = Rbf { gamma: 0.5.into() }.into();
    Rvm { kernel, variance: Some(Variance::Healed), ..Rvm::tipping2001() }
}

/// Returns inv(a) b by elimination.
fn solve_dense(mut a: Array2<f64>, mut b: Array1<f64>) -> Array1<f64> {
    let n = b.len();
    for k in 0..n {
        for i in (k + 1)..n {
            let factor = a[[i, k]] / a[[k, k]];
            let pivot = a.row(k).to_owned();
            a.row_mut(i).scaled_add(-factor, &pivot);
            b[i] -= factor * b[k];
        }
    }
    for k in (0..n).rev() {
        let rest: f64 = ((k + 1)..n).map(|j| a[[k, j]] * b[j]).sum();
        b[k] = (b[k] - rest) / a[[k, k]];
    }
    b
}

/// Returns mean and variance at `x` of the model with one more basis function there, solved from the start.
fn augmented(model: &Model, rows: &Array2<f64>, t: &Array1<f64>, x: &Array2<f64>) -> (f64, f64) {
    let FittedBasis::Kernel { kernel, centres } = &model.expansion.basis else { panic!("a kernel") };
    let all = concatenate![Axis(0), centres.view(), x.view()];
    let bias = usize::from(model.intercept_alpha.is_some());
    let columns = |a: &Array2<f64>| {
        let mut phi = Array2::ones((a.nrows(), bias + all.nrows()));
        kernel.block(a.view(), all.view(), phi.slice_mut(s![.., bias..]));
        phi
    };
    let (phi, own) = (columns(rows), columns(x));
    let beta = 1.0 / model.noise_variance().unwrap();
    let prior = 1.0 / model.kept_rows.as_ref().unwrap().prior_variance;
    let alpha: Vec<f64> = model.intercept_alpha.iter().chain(&model.alpha).copied().chain([prior]).collect();
    let h = phi.t().dot(&phi) * beta + Array2::from_diag(&Array1::from_vec(alpha));
    let solve = |b: Array1<f64>| solve_dense(h.clone(), b);
    let w = solve(phi.t().dot(t) * beta);
    let own = own.row(0).to_owned();
    (own.dot(&w), own.dot(&solve(own.clone())))
}

#[test]
fn healed_variance_equals_one_more_basis_function() {
    let (x, t) = gap(60);
    for bias in [true, false] {
        let (model, _) = Rvm { bias, ..healed() }.fit(x.view(), &Targets::real(t.view())).unwrap();
        let new = Array2::from_shape_fn((40, 1), |(i, _)| -12.0 + 0.7 * i as f64);
        let found = model.predict(new.view()).unwrap();
        let plain = model.predict_with(new.view(), Variance::Posterior).unwrap();
        for i in 0..new.nrows() {
            let (mean, variance) = augmented(&model, &x, &t, &new.slice(s![i..=i, ..]).to_owned());
            close(&format!("bias {bias}, mean {i}"), &[found.mean[i]], &[mean], 1e-8);
            close(&format!("bias {bias}, variance {i}"), &[found.model_variance[i]], &[variance], 1e-8);
            assert!(found.model_variance[i] >= plain.model_variance[i]);
        }
    }
}

#[test]
fn healed_variance_grows_to_that_of_the_target() {
    let (x, t) = gap(80);
    let (model, _) = healed().fit(x.view(), &Targets::real(t.view())).unwrap();
    let spread = t.var(0.0);
    let at = |x: f64| model.predict(Array2::from_elem((1, 1), x).view()).unwrap();
    close("far away", &[at(1e3).variance()[0]], &[spread], 1e-9);
    let plain = model.predict_with(Array2::from_elem((1, 1), 1e3).view(), Variance::Posterior).unwrap();
    assert!(plain.variance()[0] < 0.5 * spread, "the posterior's shrinks: {}", plain.variance()[0]);
    // In the middle of the gap, and among the data.
    assert!(at(0.0).model_variance[0] > 0.3 * spread, "{}", at(0.0).model_variance[0]);
    assert!(at(-6.0).model_variance[0] < 0.1 * spread);
    // The model file keeps every bit.
    let again = Model::from_json(&model.to_json().unwrap()).unwrap();
    assert_eq!(again, model);
    assert_eq!(again.predict(x.view()).unwrap(), model.predict(x.view()).unwrap());
}

#[test]
fn sample_of_retained_rows_approximates_all_rows() {
    let (x, t) = gap(400);
    let fit = |keep_rows| Rvm { keep_rows, ..healed() }.fit(x.view(), &Targets::real(t.view())).unwrap().0;
    let (all, some) = (fit(None), fit(Some(200)));
    assert_eq!(all.kept_rows.as_ref().map(|k| (k.rows.nrows(), k.complete)), Some((400, true)));
    assert_eq!(some.kept_rows.as_ref().map(|k| (k.rows.nrows(), k.complete)), Some((200, false)));
    assert_eq!(all.expansion, some.expansion);
    let new = Array2::from_shape_fn((60, 1), |(i, _)| -14.0 + 0.5 * i as f64);
    let (a, b) = (all.predict(new.view()).unwrap(), some.predict(new.view()).unwrap());
    let plain = all.predict_with(new.view(), Variance::Posterior).unwrap();
    // Residuals of few rows, scaled up to all rows, would change means by noise.
    assert_eq!(b.mean, plain.mean);
    assert_ne!(a.mean, plain.mean);
    for i in 0..new.nrows() {
        assert!(b.model_variance[i] >= plain.model_variance[i]);
        let ratio = (b.variance()[i] / a.variance()[i]).sqrt();
        assert!((0.7..1.4).contains(&ratio), "row {i}: {ratio}");
    }
    // Retained rows do not change the posterior.
    let kept = Rvm { variance: Some(Variance::Posterior), keep_rows: Some(50), ..healed() };
    let (kept, _) = kept.fit(x.view(), &Targets::real(t.view())).unwrap();
    assert_eq!(kept.predict(new.view()).unwrap(), plain);
    assert!(kept.predict_with(new.view(), Variance::Healed).is_ok());
    // Joint covariances and leave-one-out predictions use the posterior, whatever the variance of the model.
    assert_eq!(all.predict_covariance(new.view(), None).unwrap(), kept.predict_covariance(new.view(), None).unwrap());
    let targets = Targets::real(t.view());
    assert_eq!(all.leave_one_out(x.view(), &targets).unwrap(), kept.leave_one_out(x.view(), &targets).unwrap());
}

#[test]
fn weights_equal_repeated_rows_for_the_healed_variance() {
    let (x, t) = gap(50);
    let c = Array1::from_shape_fn(50, |i| 1.0 + (i % 3) as f64);
    let twice: Vec<usize> = (0..50).flat_map(|i| vec![i; c[i] as usize]).collect();
    let (weighted, _) = healed().fit(x.view(), &Targets::real(t.view()).with_weights(c.view())).unwrap();
    let (rows, targets) = (x.select(Axis(0), &twice), t.select(Axis(0), &twice));
    let (repeated, _) = healed().fit(rows.view(), &Targets::real(targets.view())).unwrap();
    let new = Array2::from_shape_fn((30, 1), |(i, _)| -12.0 + i as f64);
    let (a, b) = (weighted.predict(new.view()).unwrap(), repeated.predict(new.view()).unwrap());
    for i in 0..30 {
        close("mean", &[a.mean[i]], &[b.mean[i]], 1e-9);
        close("variance", &[a.model_variance[i]], &[b.model_variance[i]], 1e-9);
    }
}

#[test]
fn draws_have_the_joint_covariance() {
    let (x, t) = gap(60);
    let rvm = Rvm { kernel: Rbf { gamma: 0.5.into() }.into(), ..Rvm::tipping2001() };
    for (calibrate, bias) in [(false, true), (true, false)] {
        let rvm = Rvm { calibrate, bias, ..rvm.clone() };
        let (model, _) = rvm.fit(x.view(), &Targets::real(t.view())).unwrap();
        let new = Array2::from_shape_fn((6, 1), |(i, _)| -9.0 + 3.0 * i as f64);
        let (mean, covariance) = model.predict_covariance(new.view(), None).unwrap();
        let found = model.predict(new.view()).unwrap();
        assert_eq!(mean, found.mean);
        assert_eq!(covariance.diag(), found.variance());
        for noise in [true, false] {
            const S: usize = 40_000;
            let draws = model.draws(S, 7, noise).unwrap().at(new.view()).unwrap();
            let centred = &draws - &mean.view().insert_axis(Axis(1));
            let sampled = centred.dot(&centred.t()) / S as f64;
            for ((i, j), expected) in covariance.indexed_iter() {
                let expected = expected - if i == j && !noise { found.noise_variance } else { 0.0 };
                let size = (covariance[[i, i]] * covariance[[j, j]]).sqrt();
                assert!((sampled[[i, j]] - expected).abs() < 0.03 * size, "{i} {j}: {} {expected}", sampled[[i, j]]);
            }
        }
        // Blocks give the same draws.
        let whole = model.draws(5, 1, true).unwrap().at(new.view()).unwrap();
        let mut draws = model.draws(5, 1, true).unwrap();
        let parts = [draws.at(new.slice(s![..2, ..])).unwrap(), draws.at(new.slice(s![2.., ..])).unwrap()];
        let parts = concatenate![Axis(0), parts[0], parts[1]];
        assert!((&whole - &parts).iter().all(|d| d.abs() < 1e-12));
        assert_ne!(whole, model.draws(5, 2, true).unwrap().at(new.view()).unwrap());
    }
}

/// For every noise and scheme, the variance of a drawn observation equals the predicted one: the square of `std` under
/// normal noise, and of `deviation` under Student-t noise.
#[test]
fn draws_have_the_predicted_covariance_under_every_noise() {
    let (x, t) = gap(12);
    let new = Array2::from_shape_fn((3, 1), |(i, _)| -9.0 + 3.0 * i as f64);
    let kernel = || Rbf { gamma: 0.5.into() }.into();
    let student = |degrees| StudentT { noise_degrees: Some(degrees), noise_variance: Some(0.02) }.into();
    let variational = Rvm { inference: Variational::default().into(), kernel: kernel(), ..Rvm::tipping2001() };
    // 12 rows give 12 degrees of freedom, at which Student-t noise would have 1.2 times the variance.
    for (rvm, heavy) in [
        (variational, false),
        (Rvm { likelihood: student(7.0), kernel: kernel(), ..Rvm::tipping2001() }, true),
        (Rvm { likelihood: student(1e12), kernel: kernel(), ..Rvm::tipping2001() }, true),
    ] {
        let (model, _) = rvm.fit(x.view(), &Targets::real(t.view())).unwrap();
        let (mean, covariance) = model.predict_covariance(new.view(), None).unwrap();
        let found = model.predict(new.view()).unwrap();
        let std = if heavy { found.deviation() } else { found.std() };
        close("std", &covariance.diag().mapv(f64::sqrt).to_vec(), &std.to_vec(), 1e-12);
        const S: usize = 40_000;
        let draws = model.draws(S, 7, true).unwrap().at(new.view()).unwrap();
        let centred = &draws - &mean.view().insert_axis(Axis(1));
        let sampled = centred.dot(&centred.t()) / S as f64;
        for ((i, j), expected) in covariance.indexed_iter() {
            let size = (covariance[[i, i]] * covariance[[j, j]]).sqrt();
            assert!((sampled[[i, j]] - expected).abs() < 0.04 * size, "{heavy} {i} {j}: {} {expected}", sampled[[i, j]]);
        }
    }
    let wild = Rvm { likelihood: student(2.0), kernel: kernel(), ..Rvm::tipping2001() };
    let (model, _) = wild.fit(x.view(), &Targets::real(t.view())).unwrap();
    let error = model.predict_covariance(new.view(), None).unwrap_err().to_string();
    assert!(error.contains("2 degrees of freedom is infinite"), "{error}");
}

#[test]
fn unsupported_variances_and_draws_are_rejected() {
    let (x, t) = gap(30);
    let name = |result: Result<()>| match result {
        Err(Error::Parameter { name, .. }) => name,
        other => panic!("not refused: {other:?}"),
    };
    let kernel = || Rbf { gamma: 0.5.into() }.into();
    let plain = Rvm { kernel: kernel(), ..Rvm::tipping2001() };
    let (model, _) = plain.fit(x.view(), &Targets::real(t.view())).unwrap();
    assert_eq!(name(model.predict_with(x.view(), Variance::Healed).map(drop)), "variance");
    assert_eq!(name(Rvm { keep_rows: Some(0), ..plain.clone() }.check()), "keep_rows");
    let classes = Rvm { likelihood: Bernoulli::default().into(), ..plain.clone() };
    assert_eq!(name(Rvm { variance: Some(Variance::Healed), ..classes.clone() }.check()), "variance");
    assert_eq!(name(Rvm { keep_rows: Some(5), ..classes.clone() }.check()), "keep_rows");
    assert_eq!(name(Rvm { basis: Basis::Given, ..healed() }.check()), "variance");
    match model.predict_covariance(x.view(), Some(1000)) {
        Err(Error::Memory { needed, limit: 1000, .. }) => assert!(needed >= 8 * 30 * 30),
        other => panic!("{other:?}"),
    }
    let labels: Vec<usize> = t.iter().map(|t| usize::from(*t > 0.0)).collect();
    let (classifier, _) = classes.fit(x.view(), &Targets::classes(&labels, 2)).unwrap();
    assert!(matches!(classifier.draws(1, 0, true), Err(Error::Targets(_))));
    assert!(matches!(classifier.predict_covariance(x.view(), None), Err(Error::Targets(_))));
    let mut sums = Statistics::new(&kernel(), x.view()).unwrap();
    sums.update(x.view(), &Targets::real(t.view())).unwrap();
    assert_eq!(name(healed().fit_statistics(&sums).map(drop)), "variance");
    // A file whose retained rows do not fit the model.
    let (mut model, _) = healed().fit(x.view(), &Targets::real(t.view())).unwrap();
    model.kept_rows.as_mut().unwrap().residuals.pop();
    assert!(matches!(Model::from_json(&model.to_json().unwrap()), Err(Error::ModelFile(_))));
}
