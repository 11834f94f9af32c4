//! Sparse rows: the same models as for dense rows, and files without zeros.

use ndarray::{Array1, Array2, ArrayView2};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use relvec::*;

/// Returns rows in which `share` of the values are not zero. Some rows are empty, some equal, some nearly equal, far
/// from the origin.
fn rows(n: usize, features: usize, share: f64, seed: u64) -> Array2<f64> {
    let mut random = Pcg64::seed_from_u64(seed);
    let mut x = Array2::zeros((n, features));
    for i in 0..n {
        for d in 0..features {
            if random.random_bool(share) {
                x[[i, d]] = random.random_range(-2.0..2.0);
            }
        }
    }
    x.row_mut(3).fill(0.0);
    let (twin, far) = (x.row(1).to_owned(), x.row(2).mapv(|v| v * 1e5));
    x.row_mut(4).assign(&twin);
    x.row_mut(5).assign(&far);
    x.row_mut(6).assign(&far.mapv(|v| v * (1.0 + 1e-9)));
    x
}

fn kernels(features: usize) -> Vec<Kernel> {
    let gamma = Gamma::from(0.3);
    let each: Gamma = (0..features).map(|d| 0.1 + 0.05 * (d % 7) as f64).collect::<Vec<f64>>().into();
    let mut all: Vec<Kernel> = vec![
        Linear::default().into(),
        Poly { gamma: gamma.clone(), coef0: 0.5, degree: 3 }.into(),
        Sigmoid { gamma: 1e-12.into(), coef0: 0.1 }.into(),
    ];
    for gamma in [gamma, each] {
        all.extend([
            Rbf { gamma: gamma.clone() }.into(),
            Laplacian { gamma: gamma.clone() }.into(),
            Matern32 { gamma: gamma.clone() }.into(),
            Matern52 { gamma: gamma.clone() }.into(),
            Kernel::from(RationalQuadratic { gamma, shape: 0.7 }),
        ]);
    }
    all
}

/// Returns a model whose basis functions are the kernel at all rows of `x`.
fn expansion(kernel: &Kernel, x: ArrayView2<f64>) -> Model {
    let labels: Vec<usize> = (0..x.nrows()).map(|i| i % 2).collect();
    let two = SparseRows::from_dense(x);
    let svm = Svm { kernel: Linear::default().into(), max_iterations: Some(1), ..Svm::default() };
    let (mut model, _) = svm.fit_sparse(&two, &Targets::classes(&labels, 2)).unwrap();
    model.expansion.basis = FittedBasis::Sparse { kernel: kernel.clone(), centres: two };
    model.relevance = (0..x.nrows()).collect();
    model.expansion.weights = Array2::ones((x.nrows(), 1));
    model
}

#[test]
fn kernel_values_are_those_of_dense_rows() {
    let (x, other) = (rows(40, 30, 0.2, 1), rows(25, 30, 0.3, 2));
    for kernel in kernels(30) {
        let model = expansion(&kernel, x.view());
        let found = model.basis_values(&SparseRows::from_dense(other.view())).unwrap();
        let mut expected = Array2::zeros(found.dim());
        kernel.block(other.view(), x.view(), expected.view_mut());
        for ((place, a), b) in found.indexed_iter().zip(&expected) {
            assert!((a - b).abs() <= 1e-12 * b.abs().max(1.0), "{kernel:?} {place:?}: {a} {b}");
        }
        // Rows at their own centres, where distances cancel.
        let own = model.basis_values(&SparseRows::from_dense(x.view())).unwrap();
        let mut expected = Array2::zeros(own.dim());
        kernel.block(x.view(), x.view(), expected.view_mut());
        for ((place, a), b) in own.indexed_iter().zip(&expected) {
            assert!((a - b).abs() <= 1e-12 * b.abs().max(1.0), "{kernel:?} {place:?}: {a} {b}");
        }
        let local = !matches!(kernel, Kernel::Linear(_) | Kernel::Poly(_) | Kernel::Sigmoid(_));
        assert!(!local || (own[[1, 4]] == 1.0 && own[[3, 3]] == 1.0), "{kernel:?}");
    }
}

/// Rows with few entries, and rows with so many entries that they are fitted as dense ones.
#[test]
fn sparse_models_equal_those_of_dense_rows() {
    machines_of(&rows(60, 30, 0.1, 3), false);
    machines_of(&rows(60, 12, 0.5, 3), true);
}

fn machines_of(x: &Array2<f64>, same: bool) {
    let x = x.slice(ndarray::s![7.., ..]).to_owned();
    let labels: Vec<usize> = (0..x.nrows()).map(|i| usize::from(x[[i, 0]] + x[[i, 1]] > 0.1) + i % 2).collect();
    let t: Array1<f64> = x.rows().into_iter().map(|r| r.sum().sin()).collect();
    let weights: Array1<f64> = (0..x.nrows()).map(|i| [1.0, 2.0, 0.0, 0.5][i % 4]).collect();
    let sparse = SparseRows::from_dense(x.view());
    let formulations: [Formulation; 4] =
        [CSvc { c: 2.0 }.into(), NuSvc { nu: 0.05 }.into(), EpsilonSvr::default().into(), NuSvr::default().into()];
    for kernel in ["rbf", "linear", "poly", "sigmoid", "laplacian", "matern32"] {
        for formulation in &formulations {
            let classifies = matches!(formulation, Formulation::CSvc(_) | Formulation::NuSvc(_));
            let svm = Svm {
                kernel: Kernel::from_name(kernel).unwrap(),
                formulation: formulation.clone(),
                probability: classifies && kernel == "rbf",
                tolerance: 1e-6,
                ..Svm::default()
            };
            let targets = if classifies { Targets::classes(&labels, 3) } else { Targets::real(t.view()) };
            let targets = targets.with_weights(weights.view());
            let (dense, _) = svm.fit(x.view(), &targets).unwrap();
            let (own, _) = svm.fit_sparse(&sparse, &targets).unwrap();
            let what = format!("{kernel} {formulation:?}");
            assert_eq!((own.n_features, own.n_rows), (dense.n_features, dense.n_rows));
            if same {
                assert_eq!((&own.relevance, &own.expansion.weights), (&dense.relevance, &dense.expansion.weights), "{what}");
            }
            // gamma = "scale" and the order of the rows are those of dense rows.
            let gammas = [own.kernel(), dense.kernel()].map(|k| k.unwrap().gamma().map_or(1.0, |g| g.at(0)));
            assert!((gammas[0] / gammas[1] - 1.0).abs() < 1e-14, "{what}: {gammas:?}");
            let f = |model: &Model, x: ArrayView2<f64>| model.decision_function(x).unwrap();
            let largest = f(&dense, x.view()).iter().fold(1.0f64, |m, v| m.max(v.abs()));
            let apart = |a: &Array2<f64>, b: &Array2<f64>| (a - b).iter().fold(0.0f64, |m, v| m.max(v.abs()));
            if kernel != "sigmoid" {
                assert!(apart(&f(&own, x.view()), &f(&dense, x.view())) < 1e-4 * largest, "{what}");
            }
            // Models of either kind predict dense and sparse rows alike.
            for model in [&own, &dense] {
                let phi = model.basis_values(&sparse).unwrap();
                let by_values = model.on_basis().decision_function(phi.view()).unwrap();
                assert!(apart(&by_values, &f(model, x.view())) < 1e-11 * largest, "{what}");
            }
            let again = Model::from_json(&own.to_json().unwrap()).unwrap();
            assert_eq!(again, own, "{what}");
            for threads in [1, 3] {
                let (other, _) = Svm { threads: Some(threads), ..svm.clone() }.fit_sparse(&sparse, &targets).unwrap();
                assert_eq!(other, own, "{what}, {threads} threads");
            }
        }
    }
}

/// 300 rows of 50,000 features: the file contains 40 entries per row, and no array of all values is allocated.
#[test]
fn files_of_sparse_models_leave_out_zeros() {
    let mut random = Pcg64::seed_from_u64(5);
    let (n, features) = (300, 50_000);
    let starts: Vec<usize> = (0..=n).map(|i| 40 * i).collect();
    let columns: Vec<u32> = (0..40 * n).map(|_| random.random_range(0..features as u32)).collect();
    let x = SparseRows::new(starts, columns, vec![1.0; 40 * n], features).unwrap();
    let labels: Vec<usize> = (0..n).map(|i| i % 2).collect();
    let (model, _) = Svm::default().fit_sparse(&x, &Targets::classes(&labels, 2)).unwrap();
    let text = model.to_json().unwrap();
    assert!(text.len() < 15 * 40 * n + 30 * n, "{} bytes", text.len());
    let again = Model::from_json(&text).unwrap();
    let f = |model: &Model| model.on_basis().decision_function(model.basis_values(&x).unwrap().view()).unwrap();
    assert_eq!(f(&again), f(&model));
}

#[test]
fn damaged_sparse_centres_are_rejected_with_their_position() {
    let x = rows(20, 6, 0.4, 7);
    let labels: Vec<usize> = (0..20).map(|i| i % 2).collect();
    let svm = Svm { kernel: Rbf { gamma: 0.5.into() }.into(), ..Svm::default() };
    let (model, _) = svm.fit_sparse(&SparseRows::from_dense(x.view()), &Targets::classes(&labels, 2)).unwrap();
    let FittedBasis::Sparse { centres, kernel } = &model.expansion.basis else { panic!("sparse rows") };
    let broken = |kernel: Kernel, centres: SparseRows| {
        let mut model = model.clone();
        model.expansion.basis = FittedBasis::Sparse { kernel, centres };
        Model::from_json(&model.to_json().unwrap()).unwrap_err().to_string()
    };
    let fewer = broken(kernel.clone(), centres.select(&[0]));
    assert!(fewer.contains("model.expansion.basis.sparse.centres: found 1 entries, expected"), "{fewer}");
    let wide = SparseRows::new(centres.starts().to_vec(), centres.columns().to_vec(), centres.values().to_vec(), 7).unwrap();
    let wide = broken(kernel.clone(), wide);
    assert!(wide.contains("sparse.centres.features: found 7, expected 6"), "{wide}");
    let spline = broken(LinearSpline::default().into(), centres.clone());
    assert!(spline.contains("kernel: found linear_spline, expected another kernel for sparse rows"), "{spline}");
    let text = model.to_json().unwrap().replacen("\"starts\":[0", "\"starts\":[1", 1);
    let message = Model::from_json(&text).unwrap_err().to_string();
    assert!(message.contains("expected row starts that ascend from 0"), "{message}");
}

#[test]
fn sparse_fits_reject_unsupported_settings() {
    let x = SparseRows::from_dense(rows(20, 6, 0.4, 7).view());
    let labels: Vec<usize> = (0..20).map(|i| i % 2).collect();
    let targets = Targets::classes(&labels, 2);
    let refused = |svm: Svm, x: &SparseRows| svm.fit_sparse(x, &targets).unwrap_err().to_string();
    let spline = refused(Svm { kernel: LinearSpline::default().into(), ..Svm::default() }, &x);
    assert!(spline.starts_with("kernel = linear_spline: expected another kernel for sparse rows"), "{spline}");
    let given = refused(Svm { basis: Basis::Given, ..Svm::default() }, &x);
    assert_eq!(given, "basis = given: expected kernel: kernel values between rows are not sparse");
    for (value, message) in [
        (f64::NAN, "rows to train on: row 2, column 4 is NaN; every value must be a finite number"),
        (f64::INFINITY, "rows to train on: row 2, column 4 is inf; every value must be a finite number"),
        (
            1e308,
            "a distance between rows to train on (row 2, column 4 is 1e308) leaves the range of 64-bit numbers; rescale the data",
        ),
    ] {
        let mut dense = x.to_dense();
        dense[[2, 4]] = value;
        assert_eq!(refused(Svm::default(), &SparseRows::from_dense(dense.view())), message);
    }
    let (model, _) = Svm::default().fit_sparse(&x, &targets).unwrap();
    let message = model.basis_values(&SparseRows::empty(5)).unwrap_err().to_string();
    assert_eq!(message, "rows to predict: expected 6 columns, found 5 columns");
    let few = SparseRows::from_dense(Array2::zeros((3, 6)).view());
    let message = refused(Svm::default(), &few);
    assert!(message.contains("targets: expected 3, one per row, found 20"), "{message}");
}

/// Models of every kind that sparse rows may have, fitted to dense rows.
fn models_of(x: ArrayView2<f64>) -> Vec<(&'static str, Model)> {
    let t: Array1<f64> = x.rows().into_iter().enumerate().map(|(i, r)| r.sum() + 0.1 * (7.0 * i as f64).cos()).collect();
    let both = ndarray::stack![ndarray::Axis(1), t, t.mapv(|v| 3.0 * v * v)];
    let labels: Vec<usize> = t.iter().map(|t| usize::from(*t > -1.0) + usize::from(*t > 1.0)).collect();
    let base = Rvm { kernel: Rbf { gamma: 0.05.into() }.into(), ..Rvm::default() };
    let process = |kernel: Kernel| Rvm { kernel, weight_prior: WeightPrior::Process, ..base.clone() };
    let classes = |multi_class| Rvm { likelihood: Bernoulli::default().into(), multi_class, ..base.clone() };
    let real = Targets::real(t.view());
    let fit = |rvm: &Rvm, targets: &Targets| rvm.fit(x, targets).unwrap().0;
    vec![
        ("precisions", fit(&base, &real)),
        ("healed", fit(&Rvm { variance: Some(Variance::Healed), ..base.clone() }, &real)),
        ("a sample is kept", fit(&Rvm { variance: Some(Variance::Healed), keep_rows: Some(20), ..base.clone() }, &real)),
        ("healed outputs", fit(&Rvm { variance: Some(Variance::Healed), ..base.clone() }, &Targets::outputs(both.view()))),
        ("process", fit(&process(base.kernel.clone()), &real)),
        ("linear process", fit(&process(Linear::default().into()), &real)),
        ("outputs", fit(&process(Laplacian { gamma: 0.1.into() }.into()), &Targets::outputs(both.view()))),
        ("joint", fit(&classes(MultiClass::Joint), &Targets::classes(&labels, 3))),
        ("pairs", fit(&classes(MultiClass::OneVsOne), &Targets::classes(&labels, 3))),
    ]
}

#[test]
fn sparse_centres_predict_as_dense_ones_and_shrink_the_file() {
    let (x, other) = (rows(80, 30, 0.15, 11).slice(ndarray::s![7.., ..]).to_owned(), rows(40, 30, 0.15, 12));
    for (what, dense) in models_of(x.view()) {
        let own = dense.clone().with_sparse_centres();
        assert!(matches!(own.expansion.basis, FittedBasis::Sparse { .. }), "{what}");
        assert!(dense.relevance.len() > 1, "{what}: {} relevance vectors", dense.relevance.len());
        let (long, short) = (dense.to_json().unwrap(), own.to_json().unwrap());
        assert!(short.len() < long.len(), "{what}: {} bytes, dense {}", short.len(), long.len());
        assert_eq!(Model::from_json(&short).unwrap(), own, "{what}");
        assert_eq!(own.clone().with_sparse_centres(), own, "{what}");
        let same = |a: &[f64], b: &[f64]| {
            let largest = b.iter().fold(1.0f64, |m, v| m.max(v.abs()));
            for (a, b) in a.iter().zip(b) {
                assert!((a - b).abs() <= 1e-9 * largest, "{what}: {a} {b}");
            }
        };
        for x in [x.view(), other.view()] {
            if own.n_classes().is_some() {
                let p = |model: &Model| model.predict_log_probability(x, Moderation::Posterior).unwrap();
                same(p(&own).as_slice().unwrap(), p(&dense).as_slice().unwrap());
                continue;
            }
            let (own, dense) = (own.predict_outputs(x).unwrap(), dense.predict_outputs(x).unwrap());
            for (own, dense) in own.iter().zip(&dense) {
                same(&own.mean.to_vec(), &dense.mean.to_vec());
                same(&own.std().to_vec(), &dense.std().to_vec());
            }
        }
        if own.outputs() == 1 && own.n_classes().is_none() {
            let draw = |model: &Model| model.draws(3, 1, false).unwrap().at(other.view()).unwrap();
            same(draw(&own).slice(ndarray::s![.., 0]).to_vec().as_slice(), &draw(&dense).slice(ndarray::s![.., 0]).to_vec());
        }
    }
}

#[test]
fn centres_stay_dense_where_zeros_cannot_be_left_out() {
    let x = rows(60, 6, 0.5, 13).slice(ndarray::s![7.., ..]).to_owned();
    let t: Array1<f64> = x.rows().into_iter().map(|r| r.sum().sin()).collect();
    let fit = |rvm: Rvm| rvm.fit(x.view(), &Targets::real(t.view())).unwrap().0;
    let rbf = Rvm { kernel: Rbf { gamma: 0.3.into() }.into(), ..Rvm::default() };
    let mut scaled = fit(rbf.clone());
    scaled.scaling = Some(Scaling { mean: vec![1.0; 6], scale: vec![2.0; 6] });
    for model in [
        scaled,
        fit(Rvm { kernel: LinearSpline::default().into(), ..rbf.clone() }),
        fit(Rvm { keep_statistics: true, dictionary: Dictionary::Size(20), ..rbf.clone() }),
        fit(Rvm { centres: CentreRule::Learned, ..rbf }),
    ] {
        assert_eq!(model.clone().with_sparse_centres(), model);
    }
}

#[test]
fn damaged_kept_rows_without_zeros_are_rejected_with_their_position() {
    let x = rows(40, 6, 0.4, 14).slice(ndarray::s![7.., ..]).to_owned();
    let t: Array1<f64> = x.rows().into_iter().map(|r| r.sum().sin()).collect();
    let rvm = Rvm { kernel: Rbf { gamma: 0.3.into() }.into(), variance: Some(Variance::Healed), ..Rvm::default() };
    let dense = rvm.fit(x.view(), &Targets::real(t.view())).unwrap().0;
    let own = dense.clone().with_sparse_centres();
    let broken = |model: &Model, rows: StoredRows| {
        let mut model = model.clone();
        model.kept_rows.as_mut().unwrap().rows = rows;
        Model::from_json(&model.to_json().unwrap()).unwrap_err().to_string()
    };
    let kept = own.kept_rows.as_ref().unwrap().rows.clone();
    let mixed = broken(&dense, kept.clone());
    assert!(mixed.contains("model.kept_rows.rows: found sparse rows, expected a list of rows unless"), "{mixed}");
    let StoredRows::Sparse(sparse) = kept else { panic!("sparse rows") };
    let fewer = broken(&own, StoredRows::Sparse(sparse.select(&[0])));
    assert!(fewer.contains("model.kept_rows.residuals: found"), "{fewer}");
    let narrow = broken(&own, StoredRows::Sparse(SparseRows::empty(5)));
    assert!(narrow.contains("model.kept_rows.rows: found none"), "{narrow}");
    let text = own.to_json().unwrap().replacen("\"rows\":{\"starts\":[0", "\"rows\":{\"starts\":[1", 1);
    let message = Model::from_json(&text).unwrap_err().to_string();
    assert!(message.contains("model.kept_rows.rows: sparse rows: expected row starts that ascend from 0"), "{message}");
    let text = own.to_json().unwrap().replacen("\"rows\":{\"starts\"", "\"rows\":{\"begins\"", 1);
    let message = Model::from_json(&text).unwrap_err().to_string();
    assert!(message.contains("model.kept_rows.rows") && message.contains("begins"), "{message}");
    let mut number: serde_json::Value = serde_json::from_str(&own.to_json().unwrap()).unwrap();
    number["model"]["kept_rows"]["rows"] = serde_json::json!(3);
    let message = Model::from_json(&number.to_string()).unwrap_err().to_string();
    assert!(message.contains("expected a list of rows, or sparse rows"), "{message}");
}

/// Rows of 40 to 60 rows and more features, with equal rows and rows of weight 0, and targets of each likelihood.
struct Wide {
    x: Array2<f64>,
    real: Array1<f64>,
    labels: Vec<usize>,
    counts: Array1<f64>,
    weights: Array1<f64>,
}

impl Wide {
    fn new(n: usize, features: usize, seed: u64) -> Wide {
        let mut random = Pcg64::seed_from_u64(seed);
        let mut x = Array2::from_shape_simple_fn((n, features), || match random.random_bool(0.15) {
            true => random.random_range(0.0..1.0),
            false => 0.0,
        });
        let copy = x.row(1).to_owned();
        x.row_mut(7).assign(&copy);
        let real: Array1<f64> = x.outer_iter().map(|row| row.iter().take(features / 2).sum::<f64>()).collect();
        let noisy = real.mapv(|v| v + 0.2 * random.random_range(-1.0..1.0));
        let middle = noisy.mean().unwrap();
        let labels = noisy.iter().map(|v| usize::from(*v > middle) + usize::from(*v > middle + 0.5)).collect();
        let counts = noisy.mapv(|v| (2.0 * v.abs()).floor());
        let weights = (0..n).map(|i| if i == 3 { 0.0 } else { 1.0 + (i % 2) as f64 }).collect();
        Wide { x, real: noisy, labels, counts, weights }
    }

    fn targets(&self, likelihood: &str) -> Targets<'_> {
        let targets = match likelihood {
            "classes" => Targets::classes(&self.labels, 3),
            "poisson" => Targets::real(self.counts.view()),
            _ => Targets::real(self.real.view()),
        };
        targets.with_weights(self.weights.view())
    }
}

fn settings(kernel: &Kernel, likelihood: &str, weight_prior: WeightPrior) -> Rvm {
    let likelihood = match likelihood {
        "classes" => Likelihood::from_name("bernoulli").unwrap(),
        other => Likelihood::from_name(other).unwrap(),
    };
    Rvm { kernel: kernel.clone(), likelihood, weight_prior, ..Rvm::default() }
}

/// Of a learned gamma, sparse rows have one number for all features. The fits are then the same for all kernels of
/// distances and inner products, likelihoods and priors.
#[test]
fn fits_to_sparse_rows_equal_those_to_dense_rows() {
    let learned = || Gamma::Rule(GammaRule::EvidenceIsotropic);
    let kernels: [Kernel; 5] = [
        Rbf { gamma: learned() }.into(),
        Matern52 { gamma: learned() }.into(),
        Linear::default().into(),
        Poly { gamma: learned(), coef0: 1.0, degree: 2 }.into(),
        Rbf { gamma: Gamma::Rule(GammaRule::Scale) }.into(),
    ];
    for (k, kernel) in kernels.iter().enumerate() {
        for likelihood in ["gaussian", "student_t", "poisson", "classes"] {
            for weight_prior in [WeightPrior::Process, WeightPrior::Ard] {
                let wide = Wide::new(50, 80, 3 + k as u64);
                let (targets, rvm) = (wide.targets(likelihood), settings(kernel, likelihood, weight_prior));
                let rows = SparseRows::from_dense(wide.x.view());
                let (dense, _) = rvm.fit(wide.x.view(), &targets).unwrap();
                let (sparse, report) = rvm.fit_sparse(&rows, &targets).unwrap();
                let what = format!("{kernel:?}, {likelihood}, {weight_prior:?}");
                assert!(matches!(sparse.expansion.basis, FittedBasis::Sparse { .. }), "{what}");
                assert_eq!(sparse.n_features, 80, "{what}");
                assert!(report.candidates == 0 || report.candidates == 48, "{what}: {}", report.candidates);
                let new = Wide::new(20, 80, 99).x;
                // The order of rows decides where a search ends within its tolerance, before further rounds of EM or Newton.
                let bound = if ["gaussian", "classes"].contains(&likelihood) { 1e-4 } else { 8e-3 };
                for (found, expected) in [&wide.x, &new].map(|x| (values(&sparse, x), values(&dense, x))) {
                    for (a, b) in found.iter().zip(&expected) {
                        assert!((a - b).abs() < bound * (1.0 + b.abs()), "{what}: {a} instead of {b}");
                    }
                }
                let again = Model::from_json(&sparse.to_json().unwrap()).unwrap();
                assert_eq!(values(&again, &new), values(&sparse, &new), "{what}");
            }
        }
    }
}

/// Returns means and standard deviations, or probabilities, at rows `x`, [N, D].
fn values(model: &Model, x: &Array2<f64>) -> Vec<f64> {
    if model.likelihood.as_ref().is_some_and(Likelihood::is_for_classes) {
        return model.predict_probability(x.view(), Moderation::default()).unwrap().into_raw_vec_and_offset().0;
    }
    let found = model.predict(x.view()).unwrap();
    found.mean.iter().chain(found.model_variance.iter()).copied().collect()
}

/// A rotation of the rows changes no distance and no inner product.
#[test]
fn isotropic_kernels_do_not_depend_on_rotations() {
    let wide = Wide::new(60, 5, 1);
    let (c, s) = (0.6, 0.8);
    let mut turned = wide.x.clone();
    for (a, b) in [(0, 3), (1, 4), (3, 2), (4, 0)] {
        let (first, second) = (turned.column(a).to_owned(), turned.column(b).to_owned());
        turned.column_mut(a).assign(&(&first * c - &second * s));
        turned.column_mut(b).assign(&(&first * s + &second * c));
    }
    let gamma = || Gamma::Rule(GammaRule::EvidenceIsotropic);
    for kernel in [Rbf { gamma: gamma() }.into(), Kernel::from(Matern32 { gamma: gamma() })] {
        for likelihood in ["gaussian", "classes"] {
            let (targets, rvm) = (wide.targets(likelihood), settings(&kernel, likelihood, WeightPrior::Process));
            let [one, other] = [&wide.x, &turned].map(|x| rvm.fit(x.view(), &targets).unwrap().0);
            let gamma = |model: &Model| model.kernel().unwrap().parameters()[0].1;
            assert_eq!(one.kernel().unwrap().parameters().len(), 1);
            assert!((gamma(&one) / gamma(&other) - 1.0).abs() < 1e-4, "{likelihood}: {} {}", gamma(&one), gamma(&other));
            for (a, b) in values(&one, &wide.x).iter().zip(values(&other, &turned)) {
                assert!((a - b).abs() < 1e-4, "{likelihood}: {a} {b}");
            }
        }
    }
}

#[test]
fn fits_to_sparse_rows_refuse_what_needs_all_features() {
    let wide = Wide::new(40, 60, 5);
    let (rows, targets) = (SparseRows::from_dense(wide.x.view()), Targets::real(wide.real.view()));
    let with = |rvm: Rvm| {
        assert!(!rvm.fits_sparse());
        rvm.fit_sparse(&rows, &targets).unwrap_err().to_string()
    };
    let kernel = |kernel: Kernel| with(Rvm { kernel, ..Rvm::default() });
    let text = kernel(Laplacian::default().into());
    assert!(text.starts_with("kernel = laplacian: expected a function of distances or inner products"), "{text}");
    let text = kernel(Rbf { gamma: Gamma::Rule(GammaRule::EvidenceArd) }.into());
    assert_eq!(text, "kernel.rbf.gamma = evidence-ard: expected evidence-isotropic, scale, auto or a number for sparse rows");
    let text = kernel(Rbf { gamma: vec![0.1; 60].into() }.into());
    assert!(text.starts_with("kernel.rbf.gamma = a list of 60: "), "{text}");
    let text = with(Rvm { centres: CentreRule::Learned, ..Rvm::default() });
    assert!(text.starts_with("centres = learned: "), "{text}");
    let text = with(Rvm { basis: Basis::Given, ..Rvm::default() });
    assert!(text.starts_with("basis = given: "), "{text}");
    let text = with(Rvm { landmarks: Landmarks::Given(Centres(wide.x.clone())), ..Rvm::default() });
    assert!(text.starts_with("landmarks = given: "), "{text}");
    let small = Rvm { memory_limit: Some(20_000), ..Rvm::default() };
    let text = small.fit_sparse(&rows, &targets).unwrap_err().to_string();
    assert!(text.contains("the inner products of sparse rows"), "{text}");
    let text = Rvm::default().fit_sparse(&rows, &Targets::real(wide.real.slice(ndarray::s![..9]))).unwrap_err().to_string();
    assert!(text.contains("targets") && text.contains("40"), "{text}");
}

/// Memory for about 100 landmarks of 160 rows: models of all likelihoods and priors learn from all rows.
#[test]
fn fits_with_fewer_landmarks_than_rows_have_sparse_centres_among_them() {
    let kernels: [Kernel; 3] = [
        Rbf { gamma: Gamma::Rule(GammaRule::EvidenceIsotropic) }.into(),
        Linear::default().into(),
        Rbf { gamma: Gamma::Rule(GammaRule::Scale) }.into(),
    ];
    let (wide, new) = (Wide::new(160, 300, 8), Wide::new(60, 300, 9).x);
    let rows = SparseRows::from_dense(wide.x.view());
    for kernel in &kernels {
        for likelihood in ["gaussian", "student_t", "poisson", "classes"] {
            for weight_prior in [WeightPrior::Process, WeightPrior::Ard] {
                let targets = wide.targets(likelihood);
                let memory_limit = Some(8 * 6 * 160 * 105);
                let some = Rvm { memory_limit, ..settings(kernel, likelihood, weight_prior) };
                let what = format!("{kernel:?}, {likelihood}, {weight_prior:?}");
                let (model, report) = some.fit_sparse(&rows, &targets).unwrap_or_else(|e| panic!("{what}: {e}"));
                assert!(report.candidates <= 104, "{what}: {}", report.candidates);
                assert_eq!(report.adjustments.left_out_rows, 0, "{what}");
                assert!(report.adjustments.constant_features.is_empty(), "{what}");
                let FittedBasis::Sparse { centres, .. } = &model.expansion.basis else { panic!("{what}: sparse centres") };
                assert_eq!(*centres, rows.select(&model.relevance), "{what}");
                assert!(model.relevance.is_sorted() && !model.relevance.contains(&3), "{what}");
                let process = model.process.iter().flat_map(|process| &process.searched);
                assert!(process.clone().all(|row| model.relevance.contains(row)), "{what}");
                if let Some(kept) = &model.kept_rows {
                    let StoredRows::Sparse(kept) = &kept.rows else { panic!("{what}: sparse rows") };
                    assert!(kept.iter().all(|row| rows.iter().any(|own| own.columns == row.columns && own.values == row.values)));
                }
                let found = values(&model, &new);
                assert!(found.iter().all(|v| v.is_finite()), "{what}");
                assert_eq!(values(&Model::from_json(&model.to_json().unwrap()).unwrap(), &new), found, "{what}");
            }
        }
    }
}

#[test]
fn settings_apply_to_landmarks() {
    let wide = Wide::new(160, 300, 8);
    let (rows, targets) = (SparseRows::from_dense(wide.x.view()), wide.targets("gaussian"));
    let memory_limit = Some(8 * 6 * 160 * 105);
    let ard = Rvm { weight_prior: WeightPrior::Ard, memory_limit, ..Rvm::default() };
    let ard = Rvm { kernel: Rbf { gamma: 0.1.into() }.into(), ..ard };
    let (few, report) = Rvm { dictionary: Dictionary::Size(7), ..ard.clone() }.fit_sparse(&rows, &targets).unwrap();
    assert!(few.relevance.len() <= 7 && report.candidates == 7, "{} {}", few.relevance.len(), report.candidates);
    // A fit that starts from its own result ends there.
    let (first, _) = ard.fit_sparse(&rows, &targets).unwrap();
    let (again, _) = ard.starting_from(&first).unwrap().fit_sparse(&rows, &targets).unwrap();
    assert!(first.relevance.len() > 2);
    assert!(again.log_evidence.unwrap() > first.log_evidence.unwrap() - 0.5);
    // A start with rows that are no landmarks is refused.
    let all = Rvm { memory_limit: None, ..ard.clone() };
    let (all, _) = all.fit_sparse(&rows, &targets).unwrap();
    let text = ard.starting_from(&all).unwrap().fit_sparse(&rows, &targets).unwrap_err().to_string();
    assert!(text.starts_with("relevance = ") && text.contains("landmarks of these sparse rows"), "{text}");
    let healed = Rvm { variance: Some(Variance::Healed), keep_rows: Some(30), calibrate: true, ..ard.clone() };
    let (model, _) = healed.fit_sparse(&rows, &targets).unwrap();
    assert_eq!(model.kept_rows.as_ref().unwrap().residuals.len(), 30);
    let tried =
        Rvm { kernel: Linear::default().into(), kernels: vec![Rbf::default().into(), Linear::default().into()], ..ard.clone() };
    let (model, report) = tried.fit_sparse(&rows, &targets).unwrap();
    assert!(report.kernel_search.unwrap().tried.len() == 2 && !model.relevance.is_empty());
    for multi_class in [MultiClass::OneVsRest, MultiClass::OneVsOne] {
        let own = Rvm { likelihood: Bernoulli::default().into(), multi_class, ..ard.clone() };
        let (model, _) = own.fit_sparse(&rows, &wide.targets("classes")).unwrap();
        let FittedBasis::Sparse { centres, .. } = &model.expansion.basis else { panic!("sparse centres") };
        assert_eq!(*centres, rows.select(&model.relevance));
    }
}

/// A class of two rows is in the model, whether or not a landmark is of it.
#[test]
fn classes_without_landmarks_are_learned() {
    let wide = Wide::new(160, 300, 8);
    let rows = SparseRows::from_dense(wide.x.view());
    for rare in 0..8 {
        let labels: Vec<usize> = (0..160).map(|i| if i % 79 == 20 + rare { 2 } else { wide.labels[i].min(1) }).collect();
        for weight_prior in [WeightPrior::Process, WeightPrior::Ard] {
            let rvm = Rvm { memory_limit: Some(8 * 6 * 160 * 105), ..settings(&Rbf::default().into(), "classes", weight_prior) };
            let (model, _) = rvm.fit_sparse(&rows, &Targets::classes(&labels, 3)).unwrap();
            let p = model.predict_probability(wide.x.view(), Moderation::default()).unwrap();
            assert!(p.ncols() == 3 && p.iter().all(|p| p.is_finite() && *p > 0.0), "{rare} {weight_prior:?}");
        }
    }
}
