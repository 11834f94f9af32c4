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
