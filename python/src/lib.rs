//! The extension module `relvec._core`: arrays in, arrays out. Everything a person sees is in the
//! Python files beside it.

mod fit;
mod listen;
mod model;
mod statistics;

use std::ffi::OsString;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;

use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use rayon::ThreadPool;
use relvec::{CentreRule, Dictionary, Gamma, GammaRule, Inference, Kernel, Landmarks};

/// Numerics of relvec, in Rust.
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
    use super::fit::learn_kernel;
    #[pymodule_export]
    use super::model::Model;
    #[pymodule_export]
    use super::statistics::Statistics;

    /// The parameters of each kernel, by its name.
    #[pyfunction]
    fn kernels(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
        let out = PyDict::new(py);
        for name in Kernel::NAMES {
            let kernel = Kernel::from_name(name).map_err(exception)?;
            let json = serde_json::to_value(kernel).map_err(|e| PyValueError::new_err(e.to_string()))?;
            let parameters: Vec<&String> = json[name].as_object().map(|o| o.keys().collect()).unwrap_or_default();
            out.set_item(name, parameters)?;
        }
        Ok(out)
    }

    /// The names of the inference schemes.
    #[pyfunction]
    fn inference_schemes() -> Vec<&'static str> {
        Inference::NAMES.to_vec()
    }

    /// The names of the rules for several classes.
    #[pyfunction]
    fn multi_class_rules() -> Vec<&'static str> {
        relvec::MultiClass::NAMES.to_vec()
    }

    /// The names of the rules for the precisions of classes.
    #[pyfunction]
    fn class_precision_rules() -> Vec<&'static str> {
        relvec::ClassPrecisions::NAMES.to_vec()
    }

    /// The names of the approximations of the posterior.
    #[pyfunction]
    fn posterior_rules() -> Vec<&'static str> {
        relvec::PosteriorRule::NAMES.to_vec()
    }

    /// The names of the priors of the weights.
    #[pyfunction]
    fn weight_priors() -> Vec<&'static str> {
        relvec::WeightPrior::NAMES.to_vec()
    }

    /// The names of the variances that a prediction may have.
    #[pyfunction]
    fn variance_rules() -> Vec<&'static str> {
        relvec::Variance::NAMES.to_vec()
    }

    /// The names of the ways to choose landmarks.
    #[pyfunction]
    fn landmarks() -> Vec<&'static str> {
        Landmarks::NAMES.to_vec()
    }

    /// The settings of the kernels that `"auto"` chooses among, as JSON.
    #[pyfunction]
    fn candidate_kernels() -> PyResult<String> {
        let all = Kernel::candidates(&Gamma::default());
        serde_json::to_string(&all).map_err(|e| PyValueError::new_err(e.to_string()))
    }

    /// The names of the rules for centres.
    #[pyfunction]
    fn centre_rules() -> Vec<&'static str> {
        CentreRule::NAMES.to_vec()
    }

    /// The names of the rules for gamma.
    #[pyfunction]
    fn gamma_rules() -> Vec<&'static str> {
        GammaRule::NAMES.to_vec()
    }

    /// How many of `rows` different rows are candidates by that rule, `"auto"` or `"all"`, or number.
    #[pyfunction]
    fn dictionary_size(dictionary: &str, rows: usize) -> PyResult<usize> {
        Ok(dictionary.parse::<Dictionary>().map_err(exception)?.size(rows))
    }

    /// Writes a text as a file, whole or not at all, as the command line does.
    #[pyfunction]
    fn save(py: Python<'_>, path: PathBuf, text: &str) -> PyResult<()> {
        Ok(py.detach(|| guarded(|| relvec_cli::save(&path, text.as_bytes())))??)
    }

    /// The command line; returns the exit code.
    #[pyfunction]
    fn main(py: Python<'_>, args: Vec<OsString>) -> PyResult<u8> {
        py.detach(|| guarded(|| relvec_cli::main(args)))
    }

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}

/// What Python users expect for an error of the core.
fn exception(error: relvec::Error) -> PyErr {
    match error {
        relvec::Error::Singular { .. } => Python::attach(|py| match linear_algebra_error(py) {
            Ok(class) => PyErr::from_type(class, error.to_string()),
            Err(other) => other,
        }),
        // The one parameter that has another name here.
        relvec::Error::Parameter { name, found, expected } if name == "cv" => {
            let error = relvec::Error::Parameter { name: "folds".into(), found, expected };
            PyValueError::new_err(error.to_string())
        }
        _ => PyValueError::new_err(error.to_string()),
    }
}

fn linear_algebra_error(py: Python<'_>) -> PyResult<Bound<'_, pyo3::types::PyType>> {
    Ok(py.import("numpy.linalg")?.getattr("LinAlgError")?.cast_into()?)
}

/// A pool of so many threads. None outlives the call that made it, so a forked process finds none that is dead.
fn pool(threads: usize) -> PyResult<ThreadPool> {
    relvec::thread_pool((threads > 0).then_some(threads)).map_err(exception)
}

/// Runs `work`; a panic, which would be a defect of ours, becomes an ordinary exception.
fn guarded<T>(work: impl FnOnce() -> T) -> PyResult<T> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|_| defect())
}

fn defect() -> PyErr {
    PyRuntimeError::new_err("internal error of relvec; please report it with the message above")
}
