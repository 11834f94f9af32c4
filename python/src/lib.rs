//! The extension module `relvec._core`, with arrays as input and output. The interface for users is in the Python files
//! of the package.

mod fit;
mod listen;
mod model;
mod rows;
mod statistics;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;

use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use rayon::ThreadPool;
use relvec::{
    CentreRule, Dictionary, Gamma, GammaRule, Inference, Kernel, Landmarks, MultiClass, PosteriorRule, Rvm, Svm, Variance,
    WeightPrior,
};
use serde::Serialize;
use serde_json::Value;

/// The numerical part of relvec, in Rust.
#[pymodule]
mod _core {
    use super::*;

    #[pymodule_export]
    use super::fit::fit;
    #[pymodule_export]
    use super::fit::fit_more;
    #[pymodule_export]
    use super::fit::fit_svm;
    #[pymodule_export]
    use super::fit::fits_sparse;
    #[pymodule_export]
    use super::fit::learn_kernel;
    #[pymodule_export]
    use super::model::Model;
    #[pymodule_export]
    use super::rows::Survey;
    #[pymodule_export]
    use super::rows::answer;
    #[pymodule_export]
    use super::rows::fit_rows;
    #[pymodule_export]
    use super::rows::landmarks;
    #[pymodule_export]
    use super::rows::merge;
    #[pymodule_export]
    use super::statistics::Statistics;

    /// Returns the kernels that estimators accept by name, with the names of their parameters.
    #[pyfunction]
    fn kernels() -> PyResult<Vec<(&'static str, Vec<String>)>> {
        let named = Kernel::NAMES.iter().filter(|name| !matches!(**name, "periodic" | "sum"));
        named.map(|name| Ok((*name, keys(Kernel::from_name(name).map_err(exception)?)?))).collect()
    }

    /// Returns the inference schemes with the names of their settings.
    #[pyfunction]
    fn inference_schemes() -> PyResult<Vec<(&'static str, Vec<String>)>> {
        Inference::NAMES.iter().map(|name| Ok((*name, keys(Inference::from_name(name).map_err(exception)?)?))).collect()
    }

    /// Returns the allowed names of settings, by the path of the setting.
    #[pyfunction]
    fn names() -> BTreeMap<&'static str, &'static [&'static str]> {
        BTreeMap::from([
            ("centres", CentreRule::NAMES),
            ("kernel.gamma", GammaRule::NAMES),
            ("landmarks", Landmarks::NAMES),
            ("multi_class", MultiClass::NAMES),
            ("posterior", PosteriorRule::NAMES),
            ("variance", Variance::NAMES),
            ("weight_prior", WeightPrior::NAMES),
        ])
    }

    /// Returns the default settings of a relevance vector machine and of a support vector machine, as JSON.
    #[pyfunction]
    fn default_settings() -> PyResult<(String, String)> {
        Ok((json(&Rvm::default())?, json(&Svm::default())?))
    }

    /// Returns the settings of the kernels that `"auto"` chooses among, as JSON.
    #[pyfunction]
    fn candidate_kernels() -> PyResult<String> {
        json(&Kernel::candidates(&Gamma::default()))
    }

    /// Returns the settings, as JSON, of a kernel that is written as text, for features of these names. `gamma`, in
    /// JSON, is used if the text contains none.
    #[pyfunction]
    fn parse_kernel(text: &str, gamma: &str, features: Vec<String>) -> PyResult<String> {
        let gamma = serde_json::from_str(gamma).map_err(|e| PyValueError::new_err(e.to_string()))?;
        json(&Kernel::parse_named(text, &gamma, &features).map_err(exception)?)
    }

    /// Returns the names of features in the text of a kernel.
    #[pyfunction]
    fn kernel_names(text: &str) -> PyResult<Vec<String>> {
        Kernel::names(text).map_err(exception)
    }

    /// Returns a kernel in JSON as text, with names of the features and with numbers of the given significant digits.
    #[pyfunction]
    #[pyo3(signature = (json, features, digits=None))]
    fn kernel_text(json: &str, features: Vec<String>, digits: Option<usize>) -> PyResult<String> {
        Ok(super::model::kernel_of(json)?.to_text(digits, &features))
    }

    /// Returns the number of candidates among `rows` different rows for a rule, `"auto"` or `"all"`, or a number.
    #[pyfunction]
    fn dictionary_size(dictionary: &str, rows: usize) -> PyResult<usize> {
        Ok(dictionary.parse::<Dictionary>().map_err(exception)?.size(rows))
    }

    /// Writes bytes to a file, completely or not at all, as the command line does.
    #[pyfunction]
    fn save(py: Python<'_>, path: PathBuf, data: &[u8]) -> PyResult<()> {
        Ok(py.detach(|| guarded(|| relvec_cli::save(&path, data)))??)
    }

    /// Returns the kind of a text in a column of features: number, date, quantity or name.
    #[pyfunction]
    fn kind_of_text(text: &str) -> &'static str {
        relvec_cli::kind_of_text(text)
    }

    /// Runs the command line. Returns the exit code.
    #[pyfunction]
    fn main(py: Python<'_>, args: Vec<OsString>) -> PyResult<u8> {
        py.detach(|| guarded(|| relvec_cli::main(args)))
    }

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}

/// Converts an error of the core to the exception that Python users expect.
fn exception(error: relvec::Error) -> PyErr {
    match error {
        relvec::Error::Singular { .. } => Python::attach(|py| match linear_algebra_error(py) {
            Ok(class) => PyErr::from_type(class, error.to_string()),
            Err(other) => other,
        }),
        relvec::Error::Parameter { name, found, expected } => {
            let error = relvec::Error::Parameter { name: name_here(&name), found, expected };
            PyValueError::new_err(error.to_string())
        }
        _ => PyValueError::new_err(error.to_string()),
    }
}

/// Returns the name of a setting in Python from its path in the core: `search['tolerance']` for
/// `inference.search.tolerance`.
fn name_here(path: &str) -> String {
    let mut parts = path.split('.');
    match (parts.next(), parts.nth(1)) {
        (Some("cv"), None) => "folds".into(),
        (Some("inference"), None) => "search".into(),
        (Some("inference"), Some(own)) => {
            format!("search['{own}']{}", parts.map(|part| format!("['{part}']")).collect::<String>())
        }
        (Some("max_iterations"), None) => format!("search['{path}']"),
        _ => path.into(),
    }
}

fn json(value: &impl Serialize) -> PyResult<String> {
    serde_json::to_string(value).map_err(|e| PyValueError::new_err(e.to_string()))
}

/// Returns the names of the settings of a registry member, which is an object with its name as the only key.
fn keys(member: impl Serialize) -> PyResult<Vec<String>> {
    let value = serde_json::to_value(member).map_err(|e| PyValueError::new_err(e.to_string()))?;
    let settings = value.as_object().and_then(|named| named.values().next()).and_then(Value::as_object);
    Ok(settings.map(|own| own.keys().cloned().collect()).unwrap_or_default())
}

fn linear_algebra_error(py: Python<'_>) -> PyResult<Bound<'_, pyo3::types::PyType>> {
    Ok(py.import("numpy.linalg")?.getattr("LinAlgError")?.cast_into()?)
}

/// Returns a pool of `threads` threads. A pool ends with the call that created it, so that a forked process never has a
/// dead one.
fn pool(threads: usize) -> PyResult<ThreadPool> {
    relvec::thread_pool((threads > 0).then_some(threads)).map_err(exception)
}

/// Runs `work`. A panic, which is a bug of relvec, becomes an ordinary exception.
fn guarded<T>(work: impl FnOnce() -> T) -> PyResult<T> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|_| defect())
}

fn defect() -> PyErr {
    PyRuntimeError::new_err("internal error of relvec; please report it with the message above")
}
