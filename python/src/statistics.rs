//! The Python class of sums over rows.

use std::sync::{Arc, Mutex, MutexGuard};

use numpy::{PyArray1, PyArray2, PyReadonlyArray1, PyReadonlyArray2, ToPyArray};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use relvec::{Interrupt, Kernel, Targets};

use crate::fit::{Rows, fit_statistics};
use crate::listen::listening;
use crate::model::Model;
use crate::{exception, guarded, pool};

/// Sums over rows for a kernel at given centres. Python threads may share them.
#[pyclass(frozen, module = "relvec._core")]
pub(crate) struct Statistics {
    /// Shared with fits and copies until it changes.
    sums: Mutex<Arc<relvec::Statistics>>,
}

impl Statistics {
    fn of(sums: Arc<relvec::Statistics>) -> Statistics {
        Statistics { sums: Mutex::new(sums) }
    }

    /// Locks the sums. The lock is never held while waiting for the interpreter.
    fn lock(&self) -> MutexGuard<'_, Arc<relvec::Statistics>> {
        self.sums.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// Returns the current sums.
    fn now(&self, py: Python<'_>) -> Arc<relvec::Statistics> {
        py.detach(|| Arc::clone(&self.lock()))
    }

    fn add(&self, py: Python<'_>, other: &relvec::Statistics) -> PyResult<()> {
        py.detach(|| guarded(|| Arc::make_mut(&mut self.lock()).merge(other)))?.map_err(exception)
    }
}

#[pymethods]
impl Statistics {
    #[new]
    fn new(kernel: &str, centres: PyReadonlyArray2<'_, f64>) -> PyResult<Statistics> {
        let kernel: Kernel = serde_json::from_str(kernel).map_err(|e| PyValueError::new_err(e.to_string()))?;
        let sums = relvec::Statistics::new(&kernel, centres.as_array()).map_err(exception)?;
        Ok(Statistics::of(Arc::new(sums)))
    }

    /// Reads the bytes of `to_bytes`.
    #[staticmethod]
    fn from_bytes(py: Python<'_>, bytes: &[u8]) -> PyResult<Statistics> {
        let sums = py.detach(|| guarded(|| relvec::Statistics::from_bytes(bytes)))?.map_err(exception)?;
        Ok(Statistics::of(Arc::new(sums)))
    }

    fn to_bytes<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        let sums = self.now(py);
        PyBytes::new(py, &py.detach(|| sums.to_bytes()))
    }

    /// Returns a copy of the sums.
    fn copy(&self, py: Python<'_>) -> Statistics {
        Statistics::of(self.now(py))
    }

    /// Adds rows. Their sums are computed separately and added when complete, so that an interrupt leaves the old sums
    /// unchanged.
    fn update(
        &self,
        py: Python<'_>,
        x: PyReadonlyArray2<'_, f64>,
        target: PyReadonlyArray1<'_, f64>,
        weights: Option<PyReadonlyArray1<'_, f64>>,
        noise_variance: Option<PyReadonlyArray1<'_, f64>>,
        threads: usize,
    ) -> PyResult<()> {
        let now = self.now(py);
        let mut part = relvec::Statistics::new(now.kernel(), now.centres()).map_err(exception)?;
        drop(now);
        let rows = Rows::new(&x);
        let t = target.as_array().to_owned();
        drop(target);
        let [weights, noise_variance] = [weights, noise_variance].map(|given| given.map(|v| v.as_array().to_owned()));
        let interrupt = Interrupt::default();
        let switch = interrupt.clone();
        let work = move || {
            let pool = pool(threads)?;
            let x = rows.view();
            let targets = Targets::real(t.view());
            let targets = weights.as_ref().map_or(targets, |w| targets.with_weights(w.view()));
            let targets = noise_variance.as_ref().map_or(targets, |v| targets.with_noise_variance(v.view()));
            let done = guarded(|| pool.install(|| part.update_with(x, &targets, &switch)))?;
            PyResult::Ok(done.map(|()| part))
        };
        let part = listening(py, &interrupt, work)??.map_err(exception)?;
        self.add(py, &part)
    }

    fn merge(&self, py: Python<'_>, other: &Statistics) -> PyResult<()> {
        let other = other.now(py);
        self.add(py, &other)
    }

    /// Fits with `settings` (the JSON of the core's parameters). Returns the model and the JSON of its report.
    #[pyo3(signature = (settings, callback=None))]
    fn fit(&self, py: Python<'_>, settings: &str, callback: Option<Py<PyAny>>) -> PyResult<(Model, String)> {
        fit_statistics(py, settings, self.now(py), callback)
    }

    /// The kernel as JSON, `{name: {parameter: value}}`.
    #[getter]
    fn kernel(&self, py: Python<'_>) -> PyResult<String> {
        serde_json::to_string(self.now(py).kernel()).map_err(|e| PyValueError::new_err(e.to_string()))
    }

    #[getter]
    fn centres<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray2<f64>> {
        self.now(py).centres().to_pyarray(py)
    }

    #[getter]
    fn gram<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray2<f64>> {
        self.now(py).gram().to_pyarray(py)
    }

    /// Phi'c(t - mean), t'c(t - mean) and the mean; without rows zeros and no mean.
    #[getter]
    fn target_sums<'py>(&self, py: Python<'py>) -> (Bound<'py, PyArray1<f64>>, f64, Option<f64>) {
        let now = self.now(py);
        if now.n_rows() == 0 {
            return (PyArray1::zeros(py, now.gram().nrows(), false), 0.0, None);
        }
        let (sums, square, mean) = now.target_sums();
        (sums.to_pyarray(py), square, Some(mean))
    }

    #[getter]
    fn n_rows(&self, py: Python<'_>) -> usize {
        self.now(py).n_rows()
    }

    #[getter]
    fn n_features(&self, py: Python<'_>) -> usize {
        self.now(py).n_features()
    }

    #[getter]
    fn weight(&self, py: Python<'_>) -> f64 {
        self.now(py).weight()
    }
}
