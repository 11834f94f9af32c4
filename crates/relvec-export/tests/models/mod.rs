//! Models that the exports are tested with.

use std::fs;
use std::path::{Path, PathBuf};

use ndarray::Array2;
use relvec_predict::{FittedBasis, Kernel, Model, SparseRows};

/// A sum with every kernel that it may contain, on columns in any order, in units and without.
const SUM: &str = "0.3*rbf(gamma=0.5)[1] + 0.2*periodic(gamma=[0.7,0.1], period=1.7)*rational_quadratic(gamma=[0.2,0.4], shape=1.5)[1,0] \
                   + 0.05*linear(units=[[1000,2],[-1,0.5]]) + 0.1*laplacian(gamma=0.4, units=[[7,3]])[0]*poly(coef0=0.5, gamma=0.3)[1] \
                   + 0.3*matern32(gamma=0.4)*matern52(gamma=0.2)[0]";
const PERIODIC: &str = "periodic(gamma=0.7, period=1.7)";

/// Returns models of all kinds that an earlier version wrote, with the names of their files.
pub fn pinned() -> Vec<(String, Model)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../relvec/tests/pinned");
    let mut files: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|e| e == "json") && path.file_stem().unwrap() != "predictions");
    files.sort();
    assert!(files.len() > 40, "{files:?}");
    let stem = |path: &Path| path.file_stem().unwrap().to_str().unwrap().to_string();
    files.iter().map(|path| (stem(path), Model::from_json(&fs::read_to_string(path).unwrap()).unwrap())).collect()
}

/// Returns the pinned models, and copies of those with a kernel: with a sum of kernels instead of rbf and a periodic
/// kernel instead of the others, at centres far from 0, and with centres that are sparse rows.
pub fn all() -> Vec<(String, Model)> {
    let [sum, periodic] = [SUM, PERIODIC].map(|text| Kernel::parse(text, &1.0.into()).unwrap());
    let other = |kernel: &Kernel, centres: &Array2<f64>| {
        let kernel = if matches!(kernel, Kernel::Rbf(_)) { &sum } else { &periodic };
        let mut centres = centres.clone();
        centres.column_mut(0).mapv_inplace(|c| c + 1000.0);
        Some(FittedBasis::Kernel { kernel: kernel.clone(), centres })
    };
    let sparse = |kernel: &Kernel, centres: &Array2<f64>| {
        kernel.check_sparse().ok()?;
        Some(FittedBasis::Sparse { kernel: kernel.clone(), centres: SparseRows::from_dense(centres.view()) })
    };
    let mut out = pinned();
    for (kind, change) in [("sum", &other as &Change), ("sparse", &sparse)] {
        let copy = |(name, model)| Some((format!("{name}_{kind}"), with_basis(&model, change)?));
        out.extend(pinned().into_iter().filter_map(copy));
    }
    out
}

type Change<'a> = dyn Fn(&Kernel, &Array2<f64>) -> Option<FittedBasis> + 'a;

/// Returns a copy of a model and its binary models, with basis functions made from kernel and centres; `None` if there
/// are none.
fn with_basis(model: &Model, change: &Change) -> Option<Model> {
    let mut model = model.clone();
    let FittedBasis::Kernel { kernel, centres } = &model.expansion.basis else { return None };
    model.expansion.basis = change(kernel, centres)?;
    for member in model.committee.iter_mut().flat_map(|committee| &mut committee.members) {
        *member = with_basis(member, change)?;
    }
    Some(model)
}
