//! Reference values, data, and comparison of numbers for the tests.

use std::path::{Path, PathBuf};

use ndarray::{Array1, Array2, ArrayView2, s};
use relvec::*;
use serde_json::Value;

/// Returns the folder of golden reference values. Its `README.md` says how they were made.
pub fn golden_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

/// Returns the folder `RELVEC_DATA` of data sets that may not be redistributed, for the tests that are ignored without
/// it.
pub fn tables() -> PathBuf {
    let folder = std::env::var_os("RELVEC_DATA").expect("RELVEC_DATA names no folder: run `cargo xtask test tables FOLDER`");
    assert!(Path::new(&folder).is_absolute(), "RELVEC_DATA is {}: expected an absolute path", folder.display());
    folder.into()
}

/// One golden case: its training rows, its test rows, and its values.
pub struct Case {
    pub name: String,
    pub x: Array2<f64>,
    pub t: Array1<f64>,
    pub test: Array2<f64>,
    pub json: Value,
}

/// Reads the rows of a CSV file of numbers with a header line.
pub fn read_csv(path: &Path) -> Array2<f64> {
    let text = std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let rows: Vec<Vec<f64>> =
        text.lines().skip(1).map(|l| l.split(',').map(|v| v.trim().parse().expect("a number")).collect()).collect();
    Array2::from_shape_vec((rows.len(), rows[0].len()), rows.concat()).expect("rows of equal length")
}

/// Splits off the last column.
pub fn split_target(table: &Array2<f64>) -> (Array2<f64>, Array1<f64>) {
    let d = table.ncols() - 1;
    (table.slice(ndarray::s![.., ..d]).to_owned(), table.column(d).to_owned())
}

pub fn golden(name: &str) -> Case {
    let folder = golden_folder();
    let (x, t) = split_target(&read_csv(&folder.join(format!("{name}.csv"))));
    let test = read_csv(&folder.join(format!("{name}_test.csv")));
    let json = std::fs::read_to_string(folder.join(format!("{name}.json"))).expect("the values");
    Case { name: name.into(), x, t, test, json: serde_json::from_str(&json).expect("JSON") }
}

impl Case {
    pub fn kernel(&self) -> Kernel {
        match self.json["kernel"].as_str().expect("a kernel") {
            "gaussian" => Rbf { gamma: floats(&self.json["gamma"]).into() }.into(),
            name => Kernel::from_name(name).expect("a known kernel"),
        }
    }

    pub fn is_regression(&self) -> bool {
        self.json["task"].as_str().expect("a task").contains("regression")
    }

    pub fn likelihood(&self) -> Likelihood {
        match self.is_regression() {
            true => Gaussian::default().into(),
            false => Bernoulli::default().into(),
        }
    }

    pub fn with_targets<T>(&self, run: impl FnOnce(ArrayView2<f64>, &Targets) -> T) -> T {
        if self.is_regression() {
            return run(self.x.view(), &Targets::real(self.t.view()));
        }
        let labels: Vec<usize> = self.t.iter().map(|t| *t as usize).collect();
        run(self.x.view(), &Targets::classes(&labels, 2))
    }
}

pub fn floats(v: &Value) -> Vec<f64> {
    v.as_array().expect("a list").iter().map(|v| v.as_f64().expect("a number")).collect()
}

pub fn indices(v: &Value) -> Vec<usize> {
    v.as_array().expect("a list").iter().map(|v| v.as_u64().expect("an index") as usize).collect()
}

/// Checks that values agree within `tolerance` times the largest.
#[track_caller]
pub fn close(what: &str, got: &[f64], expected: &[f64], tolerance: f64) {
    assert_eq!(got.len(), expected.len(), "{what}: length");
    let size = expected.iter().fold(0.0f64, |m, v| m.max(v.abs()));
    for (i, (g, e)) in got.iter().zip(expected).enumerate() {
        assert!((g - e).abs() <= tolerance * size, "{what}[{i}]: got {g:e}, expected {e:e}, off by {:e}", (g - e).abs() / size);
    }
}

/// Returns the lower Cholesky factor.
pub fn cholesky(a: &Array2<f64>) -> Array2<f64> {
    let n = a.nrows();
    let mut l = Array2::zeros((n, n));
    for i in 0..n {
        for j in 0..=i {
            let left = a[[i, j]] - l.slice(s![i, ..j]).dot(&l.slice(s![j, ..j]));
            l[[i, j]] = if i == j { f64::sqrt(left) } else { left / l[[j, j]] };
        }
    }
    assert!(l.diag().iter().all(|v| *v > 0.0), "the matrix of the test has a factor");
    l
}

/// Returns the inverse of a positive definite matrix.
pub fn inverse(a: &Array2<f64>) -> Array2<f64> {
    let (l, n) = (cholesky(a), a.nrows());
    let mut half = Array2::<f64>::eye(n);
    for i in 0..n {
        for j in 0..i {
            let taken = &half.row(j).to_owned() * l[[i, j]];
            let mut row = half.row_mut(i);
            row -= &taken;
        }
        half.row_mut(i).mapv_inplace(|v| v / l[[i, i]]);
    }
    half.t().dot(&half)
}
