//! The mean of a regression model follows from its precisions, its noise and the targets.

use ndarray::{Array1, Array2, ArrayView1, ArrayView2, Axis, concatenate, s};
use rand::{RngExt, SeedableRng};
use rand_distr::{Distribution, StandardNormal};
use relvec::*;

/// Solves least squares by Householder reflections with unit-norm columns. Returns the weights, and the condition
/// number of the columns.
fn least_squares(mut a: Array2<f64>, mut b: Array1<f64>) -> (Array1<f64>, f64) {
    let (n, m) = a.dim();
    let norms: Vec<f64> = a.columns().into_iter().map(|c| c.dot(&c).sqrt()).collect();
    a.columns_mut().into_iter().zip(&norms).for_each(|(mut c, norm)| c /= *norm);
    for k in 0..m {
        let mut v = a.slice(s![k.., k]).to_owned();
        v[0] += v.dot(&v).sqrt().copysign(v[0]);
        let square = v.dot(&v);
        if square == 0.0 {
            continue;
        }
        for j in k..m {
            let by = 2.0 * v.dot(&a.slice(s![k.., j])) / square;
            a.slice_mut(s![k.., j]).scaled_add(-by, &v);
        }
        let by = 2.0 * v.dot(&b.slice(s![k..n])) / square;
        b.slice_mut(s![k..]).scaled_add(-by, &v);
    }
    let solve = |mut x: Array1<f64>| {
        for i in (0..m).rev() {
            for j in i + 1..m {
                x[i] -= a[[i, j]] * x[j];
            }
            x[i] /= a[[i, i]];
        }
        x
    };
    let unit = |i: usize| solve(Array1::from_shape_fn(m, |j| f64::from(u8::from(i == j))));
    let inverse: f64 = (0..m).map(|i| unit(i).mapv(|v| v * v).sum()).sum::<f64>().sqrt();
    let w = solve(b.slice(s![..m]).to_owned());
    (&w / &Array1::from_vec(norms), inverse * (m as f64).sqrt())
}

/// Returns the basis functions of a model at rows, [N, M], the bias first if it is in the model, and their precisions.
fn basis(model: &Model, x: ArrayView2<f64>) -> (Array2<f64>, Vec<f64>) {
    let mut phi = Array2::zeros((x.nrows(), model.relevance.len()));
    match &model.expansion.basis {
        FittedBasis::Kernel { kernel, centres } if !model.relevance.is_empty() => {
            kernel.block(x, centres.view(), phi.view_mut());
        }
        FittedBasis::Given {} => phi = x.select(Axis(1), &model.relevance),
        _ => {}
    }
    let mut alpha = model.alpha.clone();
    if let Some(of_bias) = model.intercept_alpha {
        phi = concatenate![Axis(1), Array2::ones((x.nrows(), 1)), phi];
        alpha.insert(0, of_bias);
    }
    (phi, alpha)
}

/// Returns the weights at precisions `alpha` for rows with noise precisions `c`, and the condition number of the
/// problem.
fn solve(phi: &Array2<f64>, alpha: &[f64], c: &[f64], t: ArrayView1<f64>) -> (Array1<f64>, f64) {
    let roots = Array1::from_iter(c.iter().map(|c| c.sqrt()));
    let top = phi * &roots.view().insert_axis(Axis(1));
    let prior = Array2::from_diag(&Array1::from_iter(alpha.iter().map(|a| a.sqrt())));
    let target = concatenate![Axis(0), &t * &roots, Array1::zeros(alpha.len())];
    least_squares(concatenate![Axis(0), top, prior], target)
}

struct Rows<'a> {
    x: &'a Array2<f64>,
    /// Targets, [N, K].
    t: Array2<f64>,
    /// Sample weights divided by given noise variances.
    c: Array1<f64>,
    known_noise: bool,
}

fn deviation(t: ArrayView1<f64>) -> f64 {
    t.std(0.0)
}

/// Checks the law to 1e-8 standard deviations and the rounding of a large mean.
#[track_caller]
fn check(name: &str, model: &Model, rows: &Rows) {
    let (phi, alpha) = basis(model, rows.x.view());
    let means = model.predict_output_means(rows.x.view()).unwrap();
    for (k, t) in rows.t.columns().into_iter().enumerate() {
        // For several outputs, noise and precisions are those of the first output times one factor, which does not
        // change the weights.
        let noise = if rows.known_noise { 1.0 } else { model.noise_variance().unwrap() };
        let c: Vec<f64> = rows.c.iter().map(|c| c / noise).collect();
        let (w, condition) = solve(&phi, &alpha, &c, t);
        let (size, mean) = (deviation(t), t.mean().unwrap().abs());
        let bound = 1e-8 * size + 1e-14 * mean;
        let expected = phi.dot(&w);
        let worst = (&means.column(k) - &expected).iter().fold(0.0f64, |m, v| m.max(v.abs()));
        let bias = model.intercept_alpha.is_some();
        assert!(worst <= bound, "{name}, output {k}: {worst:e} of {bound:e}, condition {condition:e}, bias {bias}");
        if condition < 1e8 {
            let bias = usize::from(model.intercept_alpha.is_some());
            let own = model.expansion.intercept[k..=k].iter().take(bias).chain(model.expansion.weights.column(k)).copied();
            let norm = |j: usize| phi.column(j).dot(&phi.column(j)).sqrt() / (phi.nrows() as f64).sqrt();
            let largest = w.iter().enumerate().fold(mean + size, |l, (j, w)| l.max(w.abs() * norm(j)));
            for (j, (own, w)) in own.zip(&w).enumerate() {
                let bound = 1e-8 * size + condition * 4e-15 * largest;
                assert!((own - w).abs() * norm(j) <= bound, "{name}: weight {j} {own} {w}, condition {condition:e}");
            }
        }
    }
}

fn normal(random: &mut rand_pcg::Pcg64) -> f64 {
    StandardNormal.sample(random)
}

/// Returns targets of standard deviation 1 about `offset`.
fn targets(x: &Array2<f64>, noise: f64, offset: f64, random: &mut rand_pcg::Pcg64) -> Array1<f64> {
    let t = x.map_axis(Axis(1), |row| (3.0 * row[0]).sin() + noise * normal(random));
    (&t - t.mean().unwrap()) / t.std(0.0) + offset
}

/// The law holds over kernels, schemes, offsets and noises, with sample weights, known noise, design matrices,
/// landmarks, statistics and several outputs in turn.
#[test]
fn the_mean_follows_from_precisions_noise_and_targets() {
    let mut random = rand_pcg::Pcg64::seed_from_u64(4);
    let n = 48;
    let x = Array2::from_shape_simple_fn((n, 2), || random.random_range(0.0..1.0));
    let mut kernels: Vec<Kernel> = Kernel::NAMES.iter().map(|name| Kernel::from_name(name).unwrap()).collect();
    kernels.extend([0.05, 0.5].map(|gamma| Rbf { gamma: gamma.into() }.into()));
    let mut turn = 0;
    for kernel in &kernels {
        for scheme in Inference::NAMES {
            for offset in [0.0, 1.7, 1e3, 1e6] {
                for noise in [1e-6, 1e-3, 1.0] {
                    turn += 1;
                    let name = format!("{} {scheme} offset {offset:e} noise {noise:e} variant {}", kernel.name(), turn % 7);
                    let mut rvm = Rvm {
                        kernel: kernel.clone(),
                        inference: Inference::from_name(scheme).unwrap(),
                        max_iterations: 40,
                        ..Rvm::tipping2001()
                    };
                    let t = targets(&x, noise, offset, &mut random);
                    let several = concatenate![
                        Axis(1),
                        t.view().insert_axis(Axis(1)),
                        (targets(&x, noise, -offset, &mut random) * 3.0).insert_axis(Axis(1))
                    ];
                    let mut rows = Rows { x: &x, t: t.clone().insert_axis(Axis(1)), c: Array1::ones(n), known_noise: false };
                    let alternate = Array1::from_shape_fn(n, |i| 0.5 + (i % 3) as f64);
                    let variances = &alternate * (noise * noise).max(1e-4);
                    let mut of = Targets::real(t.view());
                    let phi;
                    match turn % 7 {
                        1 => {
                            rows.c.assign(&alternate);
                            of = of.with_weights(alternate.view());
                        }
                        2 => {
                            rows.c = variances.mapv(|v| 1.0 / v);
                            rows.known_noise = true;
                            of = of.with_noise_variance(variances.view());
                        }
                        3 => {
                            let mut k = Array2::zeros((n, 20));
                            let own = kernel.resolve(&DataScale { features: 2, variance: x.var(0.0) }).unwrap();
                            own.block(x.view(), x.slice(s![..20, ..]), k.view_mut());
                            phi = k;
                            (rvm.basis, rows.x) = (Basis::Given, &phi);
                        }
                        4 => rvm.dictionary = Dictionary::Size(20),
                        5 => (rvm.dictionary, rvm.keep_statistics) = (Dictionary::Size(20), true),
                        6 if *scheme != "variational" => {
                            rows.t = several.clone();
                            of = Targets::outputs(several.view());
                        }
                        _ => {}
                    }
                    let (model, _) = rvm.fit(rows.x.view(), &of).unwrap_or_else(|e| panic!("{name}: {e}"));
                    check(&name, &model, &rows);
                }
            }
        }
    }
}

/// Targets are functions of a wide kernel, almost without noise. In most of the fits the search prunes the bias at its
/// end. A healed variance moves the mean like one more basis function at the row.
#[test]
fn mean_is_correct_without_a_bias() {
    let mut random = rand_pcg::Pcg64::seed_from_u64(7);
    let mut pruned = 0;
    for (n, gamma, noise) in [(300, 1.0, 0.0), (300, 0.1, 0.0), (300, 1.0, 1e-3), (200, 12.0, 0.0), (200, 1.0, 1.6e-3)] {
        let x = Array2::from_shape_simple_fn((n, 1), || random.random_range(0.0..1.0));
        let line = x.column(0).mapv(|x| x + 0.3 * noise * normal(&mut random));
        for (variance, weighted) in [(Variance::Healed, false), (Variance::Posterior, true)] {
            let kernel: Kernel = Rbf { gamma: gamma.into() }.into();
            let rvm = Rvm { kernel: kernel.clone(), variance: Some(variance), ..Rvm::tipping2001() };
            let c = Array1::from_shape_fn(n, |i| if weighted { 0.5 + (i % 2) as f64 } else { 1.0 });
            let targets = Targets::real(line.view()).with_weights(c.view());
            let (model, _) = rvm.fit(x.view(), &targets).unwrap();
            pruned += usize::from(model.intercept_alpha.is_none());
            let name = format!("{n} rows, gamma {gamma}, noise {noise}, {variance:?}");
            let rows = Rows { x: &x, t: line.clone().insert_axis(Axis(1)), c: c.clone(), known_noise: false };
            if variance == Variance::Posterior {
                check(&name, &model, &rows);
            }
            let rms = (&model.predict_mean(x.view()).unwrap() - &line).mapv(|r| r * r).mean().unwrap().sqrt();
            assert!(rms < 1e-2, "{name}: {rms}");
            let Some(kept) = &model.kept_rows else { continue };
            let (phi, alpha) = basis(&model, x.view());
            let noise = model.noise_variance().unwrap();
            let healed = model.predict(x.view()).unwrap().mean;
            for i in (0..n).step_by(n / 5) {
                let mut own = Array2::zeros((n, 1));
                kernel.block(x.view(), x.slice(s![i..=i, ..]), own.view_mut());
                let with_own = concatenate![Axis(1), phi, own];
                let alpha = [&alpha[..], &[1.0 / kept.prior_variance]].concat();
                let c: Vec<f64> = c.iter().map(|c| c / noise).collect();
                let expected = with_own.row(i).dot(&solve(&with_own, &alpha, &c, line.view()).0);
                assert!((healed[i] - expected).abs() < 1e-5 * line.std(0.0), "{name}: {} {expected}", healed[i]);
            }
        }
    }
    assert!(pruned > 2, "{pruned} fits were a test");
}
