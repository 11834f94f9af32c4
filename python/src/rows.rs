//! Fits to rows in engines such as Dask: queries, answers, surveys.

use std::sync::{Mutex, MutexGuard};

use numpy::{PyArray1, PyArray2, PyReadonlyArray1, PyReadonlyArray2, PyUntypedArrayMethods, ToPyArray};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use relvec::{Answer, Centres, Dictionary, Error, Interrupt, Kernel, Landmarks, Observer, Query, RowPlan, RowSource, Rvm};

use crate::fit::{Rows, Target, Values, learn, parameters};
use crate::model::Model;
use crate::{exception, guarded, pool};

/// Returns the answer of rows `x`, [N, D], which are part number `part` of all rows, to a query. Queries and answers
/// are bytes. It uses one thread and releases the interpreter's lock. `target`: real targets or class numbers. There
/// may be no rows.
#[pyfunction]
#[pyo3(signature = (query, part, x, y=None, sample_weight=None, noise_variance=None, exposure=None))]
#[expect(clippy::too_many_arguments, reason = "each is an argument of the Python function")]
pub(crate) fn answer<'py>(
    py: Python<'py>,
    query: &[u8],
    part: usize,
    x: PyReadonlyArray2<'_, f64>,
    y: Option<Target<'_>>,
    sample_weight: Option<PyReadonlyArray1<'_, f64>>,
    noise_variance: Option<PyReadonlyArray1<'_, f64>>,
    exposure: Option<PyReadonlyArray1<'_, f64>>,
) -> PyResult<Bound<'py, PyBytes>> {
    let rows = Rows::new(&x);
    let values = match y {
        Some(target) => target.values()?,
        None if x.shape()[0] == 0 => Values::Classes(vec![]),
        None => return Err(PyTypeError::new_err("y is None: fits need targets")),
    };
    let [weights, noise, exposure] =
        [sample_weight, noise_variance, exposure].map(|given| given.map(|v| v.as_array().to_owned()));
    let x = rows.view();
    let found = py.detach(|| {
        let pool = pool(1)?;
        let targets = values.targets(weights.as_ref());
        let targets = noise.as_ref().map_or(targets, |v| targets.with_noise_variance(v.view()));
        let targets = exposure.as_ref().map_or(targets, |v| targets.with_exposure(v.view()));
        let of = || Query::from_bytes(query)?.answer(part, x, &targets);
        guarded(|| pool.install(of))?.map(|answer| answer.to_bytes()).map_err(exception)
    })?;
    Ok(PyBytes::new(py, &found))
}

/// Returns the merged answer of two sets of parts.
#[pyfunction]
pub(crate) fn merge<'py>(py: Python<'py>, a: &[u8], b: &[u8]) -> PyResult<Bound<'py, PyBytes>> {
    let of = || Answer::from_bytes(a)?.merge(Answer::from_bytes(b)?);
    let merged = py.detach(|| guarded(of)?.map(|answer| answer.to_bytes()).map_err(exception))?;
    Ok(PyBytes::new(py, &merged))
}

/// A Python method that answers queries.
struct Asked {
    map_reduce: Py<PyAny>,
    /// Exception raised by the method.
    raised: Mutex<Option<PyErr>>,
}

impl RowSource for Asked {
    fn map_reduce(&self, query: &Query) -> relvec::Result<Answer> {
        let bytes = Python::attach(|py| {
            let found = self.map_reduce.call1(py, (PyBytes::new(py, &query.to_bytes()),))?;
            found.extract::<Vec<u8>>(py)
        });
        let told = |error: PyErr| {
            let text = error.to_string();
            *self.raised.lock().unwrap_or_else(|e| e.into_inner()) = Some(error);
            Error::Rows(text)
        };
        Answer::from_bytes(&bytes.map_err(told)?)
    }
}

/// Fits with `settings` (the JSON of the core's parameters) to rows for which `map_reduce` answers queries. Returns the
/// model and the JSON of its report.
#[pyfunction]
#[pyo3(signature = (settings, map_reduce, classes=None, standardize=false, sample=None, callback=None, landmarks=None))]
#[expect(clippy::too_many_arguments, reason = "what a fit takes, and the rows")]
pub(crate) fn fit_rows(
    py: Python<'_>,
    settings: &str,
    map_reduce: Py<PyAny>,
    classes: Option<usize>,
    standardize: bool,
    sample: Option<usize>,
    callback: Option<Py<PyAny>>,
    landmarks: Option<PyReadonlyArray2<'_, f64>>,
) -> PyResult<(Model, String)> {
    let mut rvm: Rvm = parameters(settings)?;
    if let Some(centres) = landmarks {
        rvm.landmarks = Landmarks::Given(Centres(centres.as_array().to_owned()));
    }
    let default = RowPlan::default();
    let plan = RowPlan { classes, standardize, sample: sample.unwrap_or(default.sample) };
    let source = std::sync::Arc::new(Asked { map_reduce, raised: Mutex::default() });
    let own = std::sync::Arc::clone(&source);
    let fitted = learn(py, callback, move |observer: &mut Observer, interrupt: &Interrupt| {
        rvm.fit_rows_with(&*own, &plan, observer, interrupt)
    });
    match source.raised.lock().unwrap_or_else(|e| e.into_inner()).take() {
        Some(error) => Err(error),
        None => fitted,
    }
}

/// Returns the rows of `x` that are landmarks, ascending.
#[pyfunction]
pub(crate) fn landmarks<'py>(
    py: Python<'py>,
    x: PyReadonlyArray2<'_, f64>,
    count: usize,
    kernel: &str,
    seed: u64,
) -> PyResult<Bound<'py, PyArray1<usize>>> {
    let kernel: Kernel = parameters(kernel)?;
    let rows = Rows::new(&x);
    let x = rows.view();
    let of = || Landmarks::Kmedoids.pick(x, Dictionary::Size(count), &kernel, seed);
    let chosen = py.detach(|| guarded(of))?;
    Ok(PyArray1::from_vec(py, chosen))
}

/// Moments and a sample of rows. Python threads may share one.
#[pyclass(frozen, module = "relvec._core")]
pub(crate) struct Survey {
    survey: Mutex<relvec::Survey>,
}

impl Survey {
    fn lock(&self) -> MutexGuard<'_, relvec::Survey> {
        self.survey.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// Returns the current state. It is never locked while waiting for the interpreter.
    fn now(&self, py: Python<'_>) -> relvec::Survey {
        py.detach(|| self.lock().clone())
    }
}

#[pymethods]
impl Survey {
    #[new]
    fn new(sample: usize, seed: u64) -> Survey {
        Survey { survey: Mutex::new(relvec::Survey::new(sample, seed)) }
    }

    /// Reads the bytes of `to_bytes`.
    #[staticmethod]
    fn from_bytes(py: Python<'_>, bytes: &[u8]) -> PyResult<Survey> {
        let survey = py.detach(|| guarded(|| relvec::Survey::from_bytes(bytes)))?.map_err(exception)?;
        Ok(Survey { survey: Mutex::new(survey) })
    }

    fn to_bytes<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        let survey = self.now(py);
        PyBytes::new(py, &py.detach(|| survey.to_bytes()))
    }

    #[pyo3(signature = (x, weights=None))]
    fn update(&self, py: Python<'_>, x: PyReadonlyArray2<'_, f64>, weights: Option<PyReadonlyArray1<'_, f64>>) -> PyResult<()> {
        let rows = Rows::new(&x);
        let weights = weights.map(|w| w.as_array().to_owned());
        let x = rows.view();
        let of = || self.lock().update(x, weights.as_ref().map(|w| w.view()));
        py.detach(|| guarded(of))?.map_err(exception)
    }

    fn merge(&self, py: Python<'_>, other: &Survey) -> PyResult<()> {
        let other = other.now(py);
        py.detach(|| guarded(|| self.lock().merge(&other)))?.map_err(exception)
    }

    #[getter]
    fn n_rows(&self, py: Python<'_>) -> usize {
        self.now(py).n_rows()
    }

    #[getter]
    fn n_features(&self, py: Python<'_>) -> Option<usize> {
        self.now(py).n_features()
    }

    #[getter]
    fn weight(&self, py: Python<'_>) -> f64 {
        self.now(py).weight()
    }

    /// Mean and scale of each feature.
    #[getter]
    fn scaling<'py>(&self, py: Python<'py>) -> (Bound<'py, PyArray1<f64>>, Bound<'py, PyArray1<f64>>) {
        let scaling = self.now(py).scaling();
        (scaling.mean.to_pyarray(py), scaling.scale.to_pyarray(py))
    }

    #[getter]
    fn sample<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray2<f64>> {
        self.now(py).sample().to_pyarray(py)
    }
}
