//! Classification by regression on labels under a process prior.

use std::ops::ControlFlow;

use ndarray::{Array1, Array2, ArrayView2, Axis, concatenate, s};
use relvec::*;

/// Returns pseudo-random numbers from 0 to 1 (splitmix64).
fn wave(i: usize, k: usize) -> f64 {
    let mut z = (1 + i as u64 + ((k as u64) << 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
}

fn inputs(n: usize, d: usize) -> Array2<f64> {
    Array2::from_shape_fn((n, d), |(i, k)| 4.0 * wave(i, k) - 2.0)
}

/// Returns classes in bands along a bent direction, with borders that noise blurs.
fn classes(x: &Array2<f64>, count: usize) -> Vec<usize> {
    let of = |(i, x): (usize, ndarray::ArrayView1<f64>)| {
        let height = x[0] + (1.5 * x[x.len() - 1]).sin() + 0.8 * (wave(i, 17) + wave(i, 23) + wave(i, 31) - 1.5);
        (((height + 2.4) / 4.8 * count as f64).max(0.0) as usize).min(count - 1)
    };
    x.outer_iter().enumerate().map(of).collect()
}

/// Returns the waveforms of Breiman et al. (1984): mixtures of two of three triangles on 21 points, with noise.
fn waveforms(n: usize, count: usize, draw: usize) -> (Array2<f64>, Vec<usize>) {
    let labels: Vec<usize> = (0..n).map(|i| (wave(i, 50 + 200 * draw) * count as f64) as usize).collect();
    let height = |peak: usize, place: usize| (6.0 - (place as f64 + 1.0 - [7.0, 15.0, 11.0][peak]).abs()).max(0.0);
    let normal = |i: usize, k: usize| {
        (-2.0 * wave(i, 60 + k + 200 * draw).ln()).sqrt() * (std::f64::consts::TAU * wave(i, 100 + k + 200 * draw)).cos()
    };
    let x = Array2::from_shape_fn((n, 21), |(i, k)| {
        let (u, (a, b)) = (wave(i, 51 + 200 * draw), [(0, 1), (0, 2), (1, 2)][labels[i]]);
        u * height(a, k) + (1.0 - u) * height(b, k) + normal(i, k)
    });
    (x, labels)
}

fn rbf(gamma: impl Into<Gamma>) -> Kernel {
    Rbf { gamma: gamma.into() }.into()
}

fn learnt() -> Kernel {
    rbf(Gamma::Rule(GammaRule::Evidence))
}

fn process(kernel: Kernel) -> Rvm {
    Rvm { kernel, likelihood: Bernoulli::default().into(), weight_prior: WeightPrior::Process, ..Rvm::default() }
}

fn fit(rvm: &Rvm, x: &Array2<f64>, labels: &[usize], count: usize) -> (Model, Report) {
    rvm.fit(x.view(), &Targets::classes(labels, count)).unwrap()
}

fn probability(model: &Model, x: &Array2<f64>) -> Array2<f64> {
    let out = model.predict_probability(x.view(), Moderation::Posterior).unwrap();
    for row in out.outer_iter() {
        assert!(row.iter().all(|p| (0.0..=1.0).contains(p)) && (row.sum() - 1.0).abs() < 1e-12, "{row}");
    }
    out
}

fn log_loss(model: &Model, x: &Array2<f64>, labels: &[usize]) -> f64 {
    let logs = model.predict_log_probability(x.view(), Moderation::Posterior).unwrap();
    -labels.iter().enumerate().map(|(n, k)| logs[[n, *k]]).sum::<f64>() / labels.len() as f64
}

fn close(a: &Array2<f64>, b: &Array2<f64>, tolerance: f64) {
    let off = (a - b).iter().fold(0.0f64, |m, d| m.max(d.abs()));
    assert!(off < tolerance, "{off} is not below {tolerance}");
}

/// Checks that the model predicts the frequencies of the classes and nothing else.
fn is_constant(model: &Model, report: &Report, shares: &[f64]) {
    assert!(report.nothing_found && model.relevance.is_empty(), "{:?}", model.relevance);
    let labels = model.labels.as_ref().unwrap();
    assert_eq!((labels.ratio, labels.divergence), (0.0, 0.0));
    let found = probability(model, &Array2::from_elem((1, model.n_features), 0.3));
    assert!(found.iter().zip(shares).all(|(p, share)| (p - share).abs() < 1e-12), "{found} instead of {shares:?}");
}

#[test]
fn label_regression_has_lower_log_losses_than_ard() {
    let (mut own, mut other) = (vec![], vec![]);
    for (draw, count) in [(0, 2), (0, 3), (1, 2), (1, 3), (2, 2), (2, 3)] {
        let (all, of_all) = waveforms(600, count, draw);
        let (x, new) = (all.slice(s![..200, ..]).to_owned(), all.slice(s![200.., ..]).to_owned());
        let (labels, truth) = (&of_all[..200], &of_all[200..]);
        let (model, report) = fit(&process(learnt()), &x, labels, count);
        let (ard, _) = fit(&Rvm { weight_prior: WeightPrior::Ard, ..process(learnt()) }, &x, labels, count);
        own.push(log_loss(&model, &new, truth));
        other.push(log_loss(&ard, &new, truth));
        assert!(model.relevance.len() < 100 && !report.nothing_found && report.status == Status::Converged);
        let fitted = report.process.unwrap();
        assert!(fitted.reached && fitted.residual <= 0.005 && fitted.centres == model.relevance.len(), "{fitted:?}");
        let search = report.kernel_search.unwrap();
        let trial = search.tried[search.chosen].process.clone();
        assert!(trial.gain > 20.0 && trial.noise_variance == [1.0], "{trial:?}");
        // The leave-one-out log probability is about that of new rows.
        let (left_out, loss) = (-model.log_evidence.unwrap() / 200.0, own[own.len() - 1]);
        assert!((left_out - loss).abs() < 0.1, "{left_out} beside {loss}");
        assert!(model.relevance.windows(2).all(|pair| pair[0] < pair[1]));
        let FittedBasis::Kernel { centres, .. } = &model.expansion.basis else { panic!("a kernel") };
        assert_eq!(centres, x.select(Axis(0), &model.relevance));
    }
    assert!(own.iter().sum::<f64>() < other.iter().sum::<f64>(), "{own:?} beside {other:?}");
}

/// With all rows as centres, the functions are the means of the dense regression, up to the link, which is linear.
#[test]
fn functions_are_means_of_the_dense_regression() {
    let (x, new) = (inputs(60, 2), inputs(90, 2).slice(s![60.., ..]).to_owned());
    let kernel = rbf(0.8);
    for count in [2, 3] {
        let labels = classes(&x, count);
        let (model, _) = fit(&Rvm { residual: Some(1e-13), ..process(kernel.clone()) }, &x, &labels, count);
        let ratio = model.labels.as_ref().unwrap().ratio;
        let block = |a: ArrayView2<f64>, b: ArrayView2<f64>| {
            let mut out = Array2::zeros((a.nrows(), b.nrows()));
            kernel.block(a, b, out.view_mut());
            out * ratio
        };
        let mut system = Array2::ones((61, 61));
        system.slice_mut(s![..60, ..60]).assign(&(block(x.view(), x.view()) + Array2::<f64>::eye(60)));
        system[[60, 60]] = 0.0;
        let mut t = Array2::zeros((61, count));
        labels.iter().enumerate().for_each(|(n, k)| t[[n, *k]] = 1.0);
        let solved = solve(system, t);
        let means = block(new.view(), x.view()).dot(&solved.slice(s![..60, ..])) + solved.slice(s![60.., ..]);
        let functions = model.decision_function(new.view()).unwrap();
        // The means sum to 1. All but one of them, and ones, span every result of the link.
        let basis = concatenate![Axis(1), means.slice(s![.., 1..]), Array2::ones((30, 1))];
        let gram = basis.t().dot(&basis);
        let fitted = basis.dot(&solve(gram, basis.t().dot(&functions)));
        // A divergence of 1e-13 is a difference of 1e-6 at the rows, and more elsewhere.
        close(&fitted, &functions, 5e-4);
        assert!(functions.std(0.0) > 0.5, "{functions}");
    }
}

/// Solves a linear system by Gaussian elimination with pivoting.
fn solve(mut a: Array2<f64>, mut b: Array2<f64>) -> Array2<f64> {
    let n = a.nrows();
    for i in 0..n {
        let pivot = (i..n).max_by(|p, q| a[[*p, i]].abs().total_cmp(&a[[*q, i]].abs())).unwrap();
        (0..n).for_each(|j| a.swap([i, j], [pivot, j]));
        (0..b.ncols()).for_each(|j| b.swap([i, j], [pivot, j]));
        for p in (0..n).filter(|p| *p != i) {
            let share = a[[p, i]] / a[[i, i]];
            let (own, own_b) = (a.row(i).to_owned(), b.row(i).to_owned());
            a.row_mut(p).scaled_add(-share, &own);
            b.row_mut(p).scaled_add(-share, &own_b);
        }
    }
    Array2::from_shape_fn(b.dim(), |(i, k)| b[[i, k]] / a[[i, i]])
}

#[test]
fn smaller_residual_needs_more_centres_and_lowers_the_loss() {
    let x = inputs(150, 2);
    let labels = classes(&x, 3);
    let of = |residual: f64| fit(&Rvm { residual: Some(residual), ..process(rbf(0.5)) }, &x, &labels, 3);
    let exact = probability(&of(1e-12).0, &x);
    let (mut centres, mut off) = (0, f64::INFINITY);
    for residual in [0.05, 0.005, 0.0005] {
        let (model, report) = of(residual);
        assert!(report.process.unwrap().residual <= residual);
        let own = (&probability(&model, &x) - &exact).mapv(f64::abs).sum();
        assert!(model.relevance.len() > centres && own < off, "{residual}: {} centres, {own}", model.relevance.len());
        (centres, off) = (model.relevance.len(), own);
    }
    let (default, _) = fit(&process(rbf(0.5)), &x, &labels, 3);
    assert_eq!(default, of(0.005).0);
}

#[test]
fn weights_equal_repeated_rows() {
    let x = inputs(80, 2);
    for count in [2, 4] {
        let labels = classes(&x, count);
        let repeated: Vec<usize> = (0..80).flat_map(|i| vec![i; 1 + i % 3]).collect();
        let weights: Array1<f64> = (0..80).map(|i| (1 + i % 3) as f64).collect();
        let targets = Targets::classes(&labels, count).with_weights(weights.view());
        let (one, _) = process(learnt()).fit(x.view(), &targets).unwrap();
        let of_repeated: Vec<usize> = repeated.iter().map(|i| labels[*i]).collect();
        let (other, _) = fit(&process(learnt()), &x.select(Axis(0), &repeated), &of_repeated, count);
        assert!(!one.relevance.is_empty());
        close(&probability(&one, &x), &probability(&other, &x), 1e-9);
        // A row of weight 0 does not count.
        let mut weights = weights;
        weights[7] = 0.0;
        let targets = Targets::classes(&labels, count).with_weights(weights.view());
        let (one, _) = process(learnt()).fit(x.view(), &targets).unwrap();
        let kept: Vec<usize> = repeated.iter().copied().filter(|i| *i != 7).collect();
        let of_kept: Vec<usize> = kept.iter().map(|i| labels[*i]).collect();
        let (other, _) = fit(&process(learnt()), &x.select(Axis(0), &kept), &of_kept, count);
        close(&probability(&one, &x), &probability(&other, &x), 1e-9);
    }
}

#[test]
fn order_of_rows_and_numbering_of_classes_do_not_matter() {
    let x = inputs(100, 3);
    let labels = classes(&x, 3);
    let (model, _) = fit(&process(learnt()), &x, &labels, 3);
    let order: Vec<usize> = (0..100).map(|i| (i * 37 + 11) % 100).collect();
    let moved: Vec<usize> = order.iter().map(|i| labels[*i]).collect();
    let (other, _) = fit(&process(learnt()), &x.select(Axis(0), &order), &moved, 3);
    // The user's rows are in another order, in which centres are summed.
    close(&probability(&model, &x), &probability(&other, &x), 1e-10);
    let mut rows: Vec<usize> = other.relevance.iter().map(|k| order[*k]).collect();
    rows.sort_unstable();
    assert_eq!(rows, model.relevance);
    let turned: Vec<usize> = labels.iter().map(|k| (k + 1) % 3).collect();
    let (other, _) = fit(&process(learnt()), &x, &turned, 3);
    let found = probability(&other, &x);
    let back = Array2::from_shape_fn(found.dim(), |(n, k)| found[[n, (k + 1) % 3]]);
    close(&probability(&model, &x), &back, 1e-3);
}

#[test]
fn units_of_features_do_not_matter() {
    let x = inputs(90, 3);
    for count in [2, 3] {
        let labels = classes(&x, count);
        let mut other = x.clone();
        other.column_mut(0).mapv_inplace(|v| 1e6 * v);
        other.column_mut(1).mapv_inplace(|v| 1e-5 * v + 3.0);
        let ard = rbf(Gamma::Rule(GammaRule::EvidenceArd));
        for kernel in [learnt(), Matern52 { gamma: Gamma::Rule(GammaRule::Evidence) }.into(), ard] {
            let (a, _) = fit(&process(kernel.clone()), &x, &labels, count);
            let (b, _) = fit(&process(kernel), &other, &labels, count);
            assert!(!a.relevance.is_empty());
            close(&probability(&a, &x), &probability(&b, &other), 1e-5);
        }
    }
}

#[test]
fn noise_has_the_frequencies_of_its_classes() {
    for (n, d, count) in [(30, 1, 2), (100, 3, 2), (120, 2, 3), (300, 5, 2), (200, 2, 8)] {
        let x = inputs(n, d);
        let labels: Vec<usize> = (0..n).map(|i| (wave(i, 41) * count as f64) as usize).collect();
        let (model, report) = fit(&process(learnt()), &x, &labels, count);
        let share = |k: usize| labels.iter().filter(|l| **l == k).count() as f64 / n as f64;
        is_constant(&model, &report, &(0..count).map(share).collect::<Vec<_>>());
        assert!(report.process.unwrap().reached && report.status == Status::Converged);
    }
    // Weights change the frequencies.
    let x = inputs(40, 1);
    let labels: Vec<usize> = (0..40).map(|i| usize::from(wave(i, 41) > 0.5)).collect();
    let weights: Array1<f64> = labels.iter().map(|k| if *k == 0 { 0.5 } else { 1.5 }).collect();
    let targets = Targets::classes(&labels, 2).with_weights(weights.view());
    let (model, report) = process(learnt()).fit(x.view(), &targets).unwrap();
    let second = weights.iter().zip(&labels).filter(|(_, k)| **k == 1).map(|(w, _)| w).sum::<f64>() / weights.sum();
    is_constant(&model, &report, &[1.0 - second, second]);
}

#[test]
fn few_rows_rare_classes_and_equal_rows_are_fitted() {
    let two = inputs(2, 2);
    let (model, report) = fit(&process(learnt()), &two, &[0, 1], 2);
    is_constant(&model, &report, &[0.5, 0.5]);
    let three = inputs(3, 2);
    let (model, report) = fit(&process(learnt()), &three, &[0, 1, 2], 3);
    is_constant(&model, &report, &[1.0 / 3.0; 3]);
    // All inputs are equal, with a learned and a given kernel.
    let same = Array2::from_elem((20, 2), 0.7);
    let labels: Vec<usize> = (0..20).map(|i| i % 4 / 3).collect();
    for kernel in [learnt(), rbf(1.0)] {
        let (model, report) = fit(&process(kernel), &same, &labels, 2);
        is_constant(&model, &report, &[0.75, 0.25]);
    }
    // One class has one row and one has two rows.
    let x = inputs(80, 2);
    let mut labels = classes(&x, 2);
    (labels[5], labels[9], labels[33]) = (2, 3, 3);
    let (model, report) = fit(&process(learnt()), &x, &labels, 4);
    assert!(!report.nothing_found);
    let far = concatenate![Axis(0), x, Array2::from_elem((1, 2), 1e3)];
    let found = probability(&model, &far);
    assert!(found.iter().all(|p| *p > 0.0), "{found}");
    let mean = found.slice(s![..80, 2..]).sum_axis(Axis(0)) / 80.0;
    assert!(mean.iter().all(|p| *p > 1e-3 && *p < 0.1), "{mean}");
    // Twenty classes.
    let x = inputs(240, 1);
    let labels: Vec<usize> = x.column(0).iter().map(|v| ((v + 2.0) * 4.999) as usize).collect();
    let (model, _) = fit(&process(learnt()), &x, &labels, 20);
    assert!(log_loss(&model, &x, &labels) < 1.0);
    // Features on a grid, so that equal rows have several classes.
    let x = Array2::from_shape_fn((200, 2), |(i, k)| (4.0 * wave(i, k)).floor());
    let labels: Vec<usize> = (0..200).map(|i| usize::from(x[[i, 0]] + 2.0 * wave(i, 9) > 2.5)).collect();
    let (model, _) = fit(&process(learnt()), &x, &labels, 2);
    assert!(!model.relevance.is_empty() && model.relevance.len() <= 16);
    for cell in [[0.0, 1.0], [1.0, 2.0], [3.0, 3.0]] {
        let own: Vec<usize> = (0..200).filter(|n| x[[*n, 0]] == cell[0] && x[[*n, 1]] == cell[1]).collect();
        let share = own.iter().map(|n| labels[*n] as f64).sum::<f64>() / own.len() as f64;
        let found = probability(&model, &Array2::from_shape_vec((1, 2), cell.to_vec()).unwrap())[[0, 1]];
        assert!((found - share).abs() < 0.3, "{cell:?}: {found} where {share} of the rows are");
    }
    // Classes far from each other.
    let x = Array2::from_shape_fn((30, 1), |(i, _)| if i < 15 { wave(i, 0) } else { 50.0 + wave(i, 0) });
    let labels: Vec<usize> = (0..30).map(|i| i / 15).collect();
    let (model, _) = fit(&process(learnt()), &x, &labels, 2);
    let loss = log_loss(&model, &x, &labels);
    assert!(loss > 1e-4 && loss < 0.1, "{loss}");
}

#[test]
fn given_kernel_is_used_and_several_are_compared() {
    let x = inputs(100, 2);
    let labels = classes(&x, 3);
    let (model, report) = fit(&process(rbf(0.4)), &x, &labels, 3);
    assert_eq!(model.kernel(), Some(&rbf(0.4)));
    assert!(report.kernel_search.is_none() && model.labels.as_ref().unwrap().ratio > 0.0);
    assert!(log_loss(&model, &x, &labels) < 0.7);
    let evidence = Gamma::Rule(GammaRule::Evidence);
    let kernels = vec![
        Rbf { gamma: evidence.clone() }.into(),
        Matern32 { gamma: evidence.clone() }.into(),
        Laplacian { gamma: evidence }.into(),
    ];
    let (model, report) = fit(&Rvm { kernels, ..process(learnt()) }, &x, &labels, 3);
    let search = report.kernel_search.unwrap();
    let of = |k: usize| search.tried[k].process.log_posterior;
    assert!(search.tried.len() == 3 && (0..3).all(|k| of(k) <= of(search.chosen)));
    assert_eq!(model.kernel().unwrap().name(), search.tried[search.chosen].kernel);
    // A feature that has no effect has the smaller inverse width.
    let x = inputs(200, 2);
    let labels: Vec<usize> = (0..200).map(|i| usize::from((2.0 * x[[i, 0]]).sin() + 0.4 * wave(i, 5) > 0.2)).collect();
    let (model, _) = fit(&process(rbf(Gamma::Rule(GammaRule::EvidenceArd))), &x, &labels, 2);
    let Some(Gamma::PerFeature(gamma)) = model.kernel().unwrap().gamma() else { panic!("a width for each feature") };
    assert!(gamma[0] > 5.0 * gamma[1], "{gamma:?}");
    assert!(model.feature_relevance[0] > 0.7, "{:?}", model.feature_relevance);
    // Kernels whose k(x, x) is not 1.
    let x = inputs(80, 2);
    let labels = classes(&x, 2);
    for kernel in [Kernel::from(Linear {}), Poly { degree: 2, coef0: 1.0, ..Poly::default() }.into()] {
        let (model, _) = fit(&process(kernel.clone()), &x, &labels, 2);
        assert!(!model.relevance.is_empty() && model.relevance.len() <= 6, "{}: {:?}", kernel.name(), model.relevance);
        assert!(log_loss(&model, &x, &labels) < 0.6, "{}", kernel.name());
    }
}

#[test]
fn the_softmax_of_two_classes_is_the_sigmoid() {
    let x = inputs(90, 2);
    let labels = classes(&x, 2);
    let (one, _) = fit(&process(learnt()), &x, &labels, 2);
    let (two, _) = fit(&Rvm { likelihood: Softmax::default().into(), ..process(learnt()) }, &x, &labels, 2);
    assert_eq!((one.outputs(), two.outputs()), (1, 2));
    close(&probability(&one, &x), &probability(&two, &x), 1e-12);
    let sum = two.expansion.weights.sum_axis(Axis(1));
    assert!(sum.iter().all(|v| v.abs() < 1e-9), "{sum}");
}

#[test]
fn files_keep_every_number_and_are_checked() {
    let x = inputs(60, 2);
    for (labels, count) in [(classes(&x, 2), 2), (classes(&x, 3), 3), ((0..60).map(|i| i % 2).collect(), 2)] {
        let (model, _) = fit(&process(learnt()), &x, &labels, count);
        let back = Model::from_json(&model.to_json().unwrap()).unwrap();
        assert_eq!(back, model);
        assert_eq!(probability(&back, &x), probability(&model, &x));
    }
    let (model, _) = fit(&process(rbf(1.0)), &x, &classes(&x, 2), 2);
    let broken = |change: &dyn Fn(&mut Model), key: &str| {
        let mut model = model.clone();
        change(&mut model);
        match Model::from_json(&model.to_json().unwrap()) {
            Err(Error::ModelFile(text)) => assert!(text.starts_with(&format!("model.{key}: found")), "{text}"),
            other => panic!("{key}: {other:?}"),
        }
    };
    broken(&|m| m.labels = None, "posterior, committee, margins, labels");
    broken(&|m| m.labels.as_mut().unwrap().ratio = 0.0, "labels.ratio");
    broken(&|m| m.labels.as_mut().unwrap().divergence = -1.0, "labels.divergence");
    broken(&|m| m.alpha = vec![1.0; m.relevance.len()], "alpha");
    broken(&|m| m.likelihood = Some(Gaussian::default().into()), "labels.ratio");
}

#[test]
fn label_fits_do_not_depend_on_threads() {
    let x = inputs(400, 3);
    let labels = classes(&x, 4);
    let fits: Vec<Model> = [1, 2, 3].map(|n| fit(&Rvm { threads: Some(n), ..process(learnt()) }, &x, &labels, 4).0).into();
    assert!(fits[0].relevance.len() > 10, "{}", fits[0].relevance.len());
    assert_eq!(fits[0], fits[1]);
    assert_eq!(fits[0], fits[2]);
}

#[test]
fn limits_and_interrupts_end_label_fits() {
    let x = inputs(1200, 3);
    let labels = classes(&x, 3);
    let targets = Targets::classes(&labels, 3);
    let (model, report) = fit(&Rvm { time_limit: Some(1e-3), ..process(learnt()) }, &x, &labels, 3);
    assert_eq!((report.status, model.status), (Status::TimeLimit, Status::TimeLimit));
    assert_eq!(report.adjustments.left_out_rows, 200);
    probability(&model, &x);
    // The kernel is learned from 1,000 rows, and the rest from all rows.
    let (model, report) = fit(&process(learnt()), &x, &labels, 3);
    assert_eq!((report.status, report.adjustments.left_out_rows), (Status::Converged, 0));
    assert_eq!(report.kernel_search.as_ref().unwrap().rows, 1000);
    assert!(model.relevance.len() < 200 && report.process.as_ref().unwrap().reached);
    let few = Rvm { dictionary: Dictionary::Size(7), ..process(rbf(1.0)) };
    let (small, report) = fit(&few, &x, &labels, 3);
    let fitted = report.process.unwrap();
    assert!(small.relevance.len() == 7 && !fitted.reached && fitted.residual > 0.005, "{fitted:?}");
    assert!(log_loss(&small, &x, &labels) > log_loss(&model, &x, &labels));
    let interrupt = Interrupt::default();
    interrupt.raise();
    let error = process(learnt()).fit_with(x.view(), &targets, &mut silent, &interrupt).unwrap_err();
    assert_eq!(error, Error::Interrupted);
    // The observer is called once, for the only model, and cannot stop a fit that has ended.
    let mut told = 0;
    let mut observer = |progress: &Progress| {
        told += 1;
        assert!(progress.iteration == 1 && progress.active > 1 && progress.log_evidence < 0.0);
        ControlFlow::Break(())
    };
    let small = x.slice(s![..50, ..]);
    let (_, report) =
        process(learnt()).fit_with(small, &Targets::classes(&labels[..50], 3), &mut observer, &Interrupt::default()).unwrap();
    assert_eq!((report.status, report.iterations, report.trace.len(), told), (Status::Converged, 1, 1, 1));
}

#[test]
fn given_landmarks_are_the_only_centres() {
    let x = inputs(100, 1);
    let labels = classes(&x, 2);
    let landmarks = Array2::from_shape_fn((17, 1), |(i, _)| -2.05 + 0.25 * i as f64);
    let rvm = Rvm { landmarks: Landmarks::Given(Centres(landmarks.clone())), ..process(rbf(1.0)) };
    let (model, _) = fit(&rvm, &x, &labels, 2);
    assert!(model.relevance.iter().all(|k| *k < 17) && !model.relevance.is_empty(), "{:?}", model.relevance);
    let FittedBasis::Kernel { centres, .. } = &model.expansion.basis else { panic!("a kernel") };
    assert_eq!(centres, landmarks.select(Axis(0), &model.relevance));
    close(&probability(&model, &x), &probability(&fit(&process(rbf(1.0)), &x, &labels, 2).0, &x), 0.05);
}

#[test]
fn folds_predict_the_loss_of_new_rows() {
    let x = inputs(150, 2);
    for count in [2, 3] {
        let labels = classes(&x, count);
        for kernel in [learnt(), rbf(0.5)] {
            let (model, report) = fit(&Rvm { cv: Some(5), ..process(kernel.clone()) }, &x, &labels, count);
            assert_eq!(model, fit(&process(kernel), &x, &labels, count).0);
            let validation = report.validation.unwrap();
            let left_out = -model.log_evidence.unwrap() / 150.0;
            let loss = validation.scores.log_loss.unwrap();
            assert!((loss - left_out).abs() < 0.1 && loss > 0.1, "{loss} in folds, {left_out} by left-out rows");
            assert!(validation.vectors > 2.0 && validation.scores.error_rate.unwrap() < 0.35);
        }
    }
    // The folds are fitted like all rows, though each fold is small enough for the dense regression.
    let x = inputs(3300, 1);
    let labels = classes(&x, 2);
    let rvm = Rvm { cv: Some(2), weight_prior: WeightPrior::Auto, dictionary: Dictionary::Size(20), ..process(rbf(1.0)) };
    let (model, report) = fit(&rvm, &x, &labels, 2);
    assert!(model.labels.is_some() && model.relevance.len() <= 20);
    let (loss, own) = (report.validation.unwrap().scores.log_loss.unwrap(), log_loss(&model, &x, &labels));
    assert!((loss - own).abs() < 0.02, "{loss} in folds, {own} on the rows");
}

#[test]
fn decisions_and_functions_are_those_of_the_probabilities() {
    let x = inputs(120, 2);
    for count in [2, 3] {
        let labels = classes(&x, count);
        let (model, _) = fit(&process(learnt()), &x, &labels, count);
        let found = probability(&model, &x);
        assert_eq!(found, model.predict_probability(x.view(), Moderation::PlugIn).unwrap());
        let f = model.decision_function(x.view()).unwrap();
        let odds = if count == 2 { f.column(0).to_owned() } else { &f.column(1) - &f.column(0) };
        for (n, odds) in odds.iter().enumerate() {
            assert!((odds - (found[[n, 1]] / found[[n, 0]]).ln()).abs() < 1e-9);
        }
        let most = |row: ndarray::ArrayView1<f64>| (0..count).fold(0, |best, k| if row[k] > row[best] { k } else { best });
        assert_eq!(model.predict_class(x.view()).unwrap(), found.outer_iter().map(most).collect::<Vec<_>>());
        let mut prior = vec![0.1 / (count - 1) as f64; count];
        prior[0] = 0.9;
        let decided = model.decide(x.view(), &Decision { prior: Some(prior), reject: Some(0.8), ..Decision::default() }).unwrap();
        let before = found.column(0).sum();
        assert!(decided.probabilities.column(0).sum() > before && decided.rejected.iter().any(|r| *r));
        let shares: f64 = model.class_frequencies.iter().sum();
        assert!((shares - 1.0).abs() < 1e-12);
        assert_eq!(model.n_classes(), Some(count));
        // Options that need a posterior are rejected.
        let targets = Targets::classes(&labels, count);
        let left_out = model.leave_one_out(x.view(), &targets).unwrap_err();
        assert!(matches!(left_out, Error::Parameter { name, .. } if name == "weight_prior"));
        if count == 2 {
            assert_eq!(model.predict(x.view()).unwrap_err(), Error::NoPosterior);
        } else {
            assert_eq!(model.predict_functions(x.view()).unwrap_err(), Error::NoPosterior);
        }
        assert!(model.weight_covariance().is_empty() && model.well_determined().is_empty());
    }
}

#[test]
fn auto_prior_uses_labels_where_supported() {
    let x = inputs(60, 1);
    let labels = classes(&x, 3);
    let auto = Rvm { weight_prior: WeightPrior::Auto, ..process(rbf(1.0)) };
    assert_eq!(fit(&auto, &x, &labels, 3).0, fit(&process(rbf(1.0)), &x, &labels, 3).0);
    for other in [
        Rvm { kernel: Sigmoid::default().into(), ..auto.clone() },
        Rvm { kernel: LinearSpline {}.into(), ..auto.clone() },
        Rvm { multi_class: MultiClass::OneVsRest, ..auto.clone() },
        Rvm { multi_class: MultiClass::OneVsOne, kernel: learnt(), ..auto.clone() },
        Rvm { posterior: PosteriorRule::Averaged, ..auto.clone() },
        Rvm { inference: MacKay::default().into(), ..auto.clone() },
        Rvm { inference: Variational::default().into(), ..auto.clone() },
        Rvm { centres: CentreRule::Learned, ..auto.clone() },
        Rvm { bias: false, ..auto.clone() },
    ] {
        let ard = Rvm { weight_prior: WeightPrior::Ard, ..other.clone() };
        let (model, _) = fit(&other, &x, &labels, 3);
        assert!(model.labels.is_none(), "{other:?}");
        assert_eq!(model, fit(&ard, &x, &labels, 3).0);
    }
}

#[test]
fn label_regression_rejects_unsupported_settings_by_name() {
    let x = inputs(40, 1);
    let labels = classes(&x, 3);
    let rvm = process(rbf(1.0));
    let refused = |rvm: &Rvm, x: &Array2<f64>, labels: &[usize], with: &str| match rvm.fit(x.view(), &Targets::classes(labels, 3))
    {
        Err(Error::Parameter { name, found, expected }) => {
            assert_eq!((name.as_str(), found.as_str()), ("weight_prior", "process"));
            assert!(expected.starts_with(&format!("ard or auto: process cannot be combined with {with}")), "{expected}");
        }
        other => panic!("{with}: {other:?}"),
    };
    for (rvm, with) in [
        (Rvm { kernel: Sigmoid::default().into(), ..rvm.clone() }, "kernel = sigmoid: "),
        (Rvm { kernel: LinearSpline {}.into(), ..rvm.clone() }, "kernel = linear_spline with negative features: "),
        (Rvm { basis: Basis::Given, ..rvm.clone() }, "basis = given: "),
        (Rvm { multi_class: MultiClass::OneVsRest, ..rvm.clone() }, "multi_class = one_vs_rest: "),
        (Rvm { multi_class: MultiClass::OneVsOne, ..rvm.clone() }, "multi_class = one_vs_one: "),
        (Rvm { centres: CentreRule::Learned, ..rvm.clone() }, "centres = learned: "),
        (Rvm { posterior: PosteriorRule::Averaged, ..rvm.clone() }, "posterior = averaged: "),
        (Rvm { posterior: PosteriorRule::Laplace, ..rvm.clone() }, "posterior = laplace: "),
        (Rvm { inference: Em::default().into(), ..rvm.clone() }, "inference = em: "),
        (Rvm { inference: Variational::default().into(), ..rvm.clone() }, "inference = variational: "),
        (Rvm { sparsity: Sparsity::Rule(SparsityRule::Cv), ..rvm.clone() }, "sparsity = cv: "),
        (Rvm { bias: false, ..rvm.clone() }, "bias = false: "),
    ] {
        refused(&rvm, &x, &labels, with);
    }
}

/// With more rows than a dense regression takes, the means are those of all rows at some of them as centres.
#[test]
fn many_rows_of_classes_have_the_process_prior() {
    let (x, new) = (inputs(3400, 2), inputs(4400, 2).slice(s![3400.., ..]).to_owned());
    let truth = |x: &Array2<f64>| classes(x, 3);
    let labels = truth(&x);
    let auto = Rvm { weight_prior: WeightPrior::Auto, ..process(learnt()) };
    let (model, report) = fit(&auto, &x, &labels, 3);
    assert_eq!((report.status, report.adjustments.left_out_rows), (Status::Converged, 0));
    let search = report.kernel_search.unwrap();
    assert_eq!((search.rows, search.more_rows), (1000, 3400));
    assert!(model.labels.is_some() && report.process.unwrap().reached);
    assert!((5..700).contains(&model.relevance.len()), "{}", model.relevance.len());
    // 3,000 of these rows are fitted by the dense regression.
    let few = x.slice(s![..3000, ..]).to_owned();
    let given = Rvm { kernel: model.kernel().unwrap().clone(), ..auto.clone() };
    let (dense, _) = fit(&given, &few, &labels[..3000], 3);
    let (own, other) = (log_loss(&model, &new, &truth(&new)), log_loss(&dense, &new, &truth(&new)));
    assert!(own < other + 0.02, "{own}, with the dense regression on 3,000 rows {other}");
    // The mean leave-one-out log probability over all rows agrees with that of new rows.
    let left_out = -model.log_evidence.unwrap() / 3400.0;
    assert!((left_out - own).abs() < 0.1, "{left_out} by rows left out, {own} of new rows");
    // Neither threads nor the order of rows matter, nor whether the kernel was given.
    let order: Vec<usize> = (0..3400).map(|i| (i * 77) % 3400).collect();
    let turned: Vec<usize> = order.iter().map(|i| labels[*i]).collect();
    let (other, _) = fit(&Rvm { threads: Some(1), ..auto.clone() }, &x.select(Axis(0), &order), &turned, 3);
    close(&probability(&other, &new), &probability(&model, &new), 1e-9);
    let (known, _) = fit(&given, &x, &labels, 3);
    assert!((log_loss(&known, &new, &truth(&new)) - own).abs() < 0.02);
    // Time or memory is too short for all rows.
    let (late, report) = fit(&Rvm { time_limit: Some(1e-3), ..auto.clone() }, &x, &labels, 3);
    assert_eq!((late.status, report.adjustments.left_out_rows), (Status::TimeLimit, 2400));
    // With too little memory to compare kernels there is no comparison, and the limit is respected.
    let (small, report) =
        fit(&Rvm { memory_limit: Some(60_000_000), dictionary: Dictionary::Size(100), ..auto.clone() }, &x, &labels, 3);
    assert_eq!((small.status, report.adjustments.left_out_rows), (Status::Converged, 0));
    assert!(log_loss(&small, &new, &truth(&new)) < own + 0.1);
    // If the classes do not depend on the features, their frequencies are predicted.
    let mixed: Vec<usize> = (0..3400).map(|i| (i * i + i / 7) % 3).collect();
    let (nothing, report) = fit(&auto, &inputs(3400, 1), &mixed, 3);
    assert!(report.nothing_found == nothing.relevance.is_empty() && nothing.relevance.len() < 40, "{}", nothing.relevance.len());
    // A requested search is a search.
    let searched = Rvm { sparsity: 1.0.into(), ..given };
    let (searched, _) = fit(&searched, &x.slice(s![..3100, ..]).to_owned(), &labels[..3100], 3);
    assert!(searched.labels.is_none() && searched.alpha.len() == searched.relevance.len());
}
