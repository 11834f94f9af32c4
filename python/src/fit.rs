//! Fits to rows and to sums over rows.

use std::ops::ControlFlow;
use std::sync::{Arc, Mutex};

use ndarray::{Array1, Array2, ArrayView2, Ix2, RawArrayView};
use numpy::{PyReadonlyArray1, PyReadonlyArray2, PyUntypedArray};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyWeakrefReference};
use relvec::{Centres, Interrupt, Landmarks, Observer, Progress, Rvm, SparseRows, Svm, SvmObserver, SvmProgress, Targets};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::listen::listening;
use crate::model::Model;
use crate::{exception, guarded, name_here};

/// Starts of the rows, columns and values of a CSR matrix, and its number of columns.
pub(crate) type Csr<'py> = (PyReadonlyArray1<'py, i64>, PyReadonlyArray1<'py, i64>, PyReadonlyArray1<'py, f64>, usize);

/// Rows of the caller: an array, or the parts of a sparse matrix.
#[derive(FromPyObject)]
pub(crate) enum Matrix<'py> {
    Dense(PyReadonlyArray2<'py, f64>),
    Sparse(Csr<'py>),
}

impl Matrix<'_> {
    /// An array is read without a copy; sparse rows are copied.
    pub fn input(&self) -> PyResult<Input> {
        Ok(match self {
            Matrix::Dense(x) => Input::Dense(Rows::new(x)),
            Matrix::Sparse(parts) => Input::Sparse(sparse(parts)?),
        })
    }

    /// Returns the number of rows N.
    pub fn nrows(&self) -> usize {
        match self {
            Matrix::Dense(x) => x.as_array().nrows(),
            Matrix::Sparse((starts, ..)) => starts.as_array().len().saturating_sub(1),
        }
    }
}

/// Rows of the caller that other threads can read.
pub(crate) enum Input {
    Dense(Rows),
    Sparse(SparseRows),
}

/// Returns sparse rows from the parts of a CSR matrix.
pub(crate) fn sparse((starts, columns, values, features): &Csr<'_>) -> PyResult<SparseRows> {
    let beyond = |v: i64| PyValueError::new_err(format!("sparse rows: {v} is not an index of the matrix"));
    let starts = starts.as_array().iter().map(|v| usize::try_from(*v).map_err(|_| beyond(*v))).collect::<PyResult<_>>()?;
    let columns = columns.as_array().iter().map(|v| u32::try_from(*v).map_err(|_| beyond(*v))).collect::<PyResult<_>>()?;
    SparseRows::new(starts, columns, values.as_array().to_vec(), *features).map_err(exception)
}

/// Rows of the caller's array, read without a copy.
pub(crate) struct Rows {
    view: RawArrayView<f64, Ix2>,
    /// Owner of the memory, which keeps it alive.
    _owner: Py<PyAny>,
    /// Weak references that keep the memory at its address.
    _held: Vec<Py<PyWeakrefReference>>,
}

/// Returns weak references to an array and to the arrays that it is a view of. While these references exist, numpy
/// refuses to resize the arrays, so their memory is not moved.
pub(crate) fn held(array: &Bound<'_, PyAny>) -> Vec<Py<PyWeakrefReference>> {
    let mut all = vec![];
    let mut next = Some(array.clone());
    while let Some(array) = next.filter(|array| array.cast::<PyUntypedArray>().is_ok()) {
        all.extend(PyWeakrefReference::new(&array).map(Bound::unbind));
        next = array.getattr("base").ok();
    }
    all
}

// SAFETY: the view only reads, and the array that owns the memory lives as long as the view.
unsafe impl Send for Rows {}

impl Rows {
    pub fn new(x: &PyReadonlyArray2<'_, f64>) -> Rows {
        Rows { view: x.as_array().raw_view(), _owner: x.as_any().clone().unbind(), _held: held(x.as_any()) }
    }

    pub fn view(&self) -> ArrayView2<'_, f64> {
        // SAFETY: the memory is alive (`_owner`) and is not moved (`_held`). The caller promises not to write into it
        // during a fit, as for any function of numpy that runs without the lock.
        unsafe { self.view.deref_into_view() }
    }
}

/// Copied targets, which are small compared with the rows.
pub(crate) enum Values {
    Real(Array1<f64>),
    Outputs(Array2<f64>),
    Classes(Vec<usize>),
}

impl Values {
    pub fn targets<'a>(&'a self, weights: Option<&'a Array1<f64>>) -> Targets<'a> {
        let targets = match self {
            Values::Real(t) => Targets::real(t.view()),
            Values::Outputs(t) => Targets::outputs(t.view()),
            Values::Classes(labels) => Targets::classes(labels, labels.iter().max().map_or(2, |top| (top + 1).max(2))),
        };
        weights.map_or(targets, |w| targets.with_weights(w.view()))
    }
}

#[derive(FromPyObject)]
pub(crate) enum Target<'py> {
    Real(PyReadonlyArray1<'py, f64>),
    Outputs(PyReadonlyArray2<'py, f64>),
    Classes(PyReadonlyArray1<'py, i64>),
}

impl Target<'_> {
    pub fn values(&self) -> PyResult<Values> {
        Ok(match self {
            Target::Real(t) => Values::Real(t.as_array().to_owned()),
            Target::Outputs(t) => Values::Outputs(t.as_array().to_owned()),
            Target::Classes(labels) => {
                let number = |k: &i64| usize::try_from(*k).map_err(|_| PyValueError::new_err("class numbers start at 0"));
                Values::Classes(labels.as_array().iter().map(number).collect::<PyResult<_>>()?)
            }
        })
    }
}

/// Function that is called with a dict after each iteration. A true result ends the fit.
struct Callback {
    function: Py<PyAny>,
    interrupt: Interrupt,
    /// Exception raised by the function.
    raised: Arc<Mutex<Option<PyErr>>>,
}

impl Callback {
    fn call(&self, record: impl for<'py> Fn(&Bound<'py, PyDict>) -> PyResult<()>) -> ControlFlow<()> {
        // After an interrupt the interpreter may have ended, so the function is not called.
        if self.interrupt.is_raised() {
            return ControlFlow::Break(());
        }
        let told = Python::attach(|py| {
            let dict = PyDict::new(py);
            record(&dict)?;
            self.function.call1(py, (dict,))?.is_truthy(py)
        });
        match told {
            Ok(false) => ControlFlow::Continue(()),
            Ok(true) => ControlFlow::Break(()),
            Err(error) => {
                *self.raised.lock().unwrap_or_else(|e| e.into_inner()) = Some(error);
                ControlFlow::Break(())
            }
        }
    }
}

/// Progress of a fit as the dict of the callback.
pub(crate) trait Told {
    fn record(&self, dict: &Bound<'_, PyDict>) -> PyResult<()>;
}

impl Told for Progress {
    fn record(&self, dict: &Bound<'_, PyDict>) -> PyResult<()> {
        dict.set_item("iteration", self.iteration)?;
        dict.set_item("log_evidence", self.log_evidence)?;
        dict.set_item("active", self.active)?;
        dict.set_item("noise_std", self.noise_std)?;
        dict.set_item("seconds", self.elapsed.as_secs_f64())
    }
}

impl Told for SvmProgress {
    fn record(&self, dict: &Bound<'_, PyDict>) -> PyResult<()> {
        dict.set_item("iteration", self.iteration)?;
        dict.set_item("gap", self.gap)?;
        dict.set_item("function", self.function)?;
        dict.set_item("seconds", self.elapsed.as_secs_f64())
    }
}

/// Returns the error for a setting that does not exist or has another type. It names the path of the setting; the
/// position in the JSON means nothing to the user.
fn setting(error: serde_path_to_error::Error<serde_json::Error>) -> PyErr {
    let text = error.inner().to_string();
    let name = name_here(&error.path().to_string());
    PyValueError::new_err(format!("{name}: {}", text.split(" at line ").next().unwrap_or(&text)))
}

pub(crate) fn parameters<T: DeserializeOwned>(settings: &str) -> PyResult<T> {
    serde_path_to_error::deserialize(&mut serde_json::Deserializer::from_str(settings)).map_err(setting)
}

/// Fits with `settings` (the JSON of the core's parameters), at given landmarks if there are any. Returns the model and
/// the JSON of its report.
#[pyfunction]
#[pyo3(signature = (settings, x, target, weights=None, callback=None, landmarks=None, noise_variance=None, exposure=None))]
#[allow(clippy::too_many_arguments)]
pub(crate) fn fit(
    py: Python<'_>,
    settings: &str,
    x: Matrix<'_>,
    target: Target<'_>,
    weights: Option<PyReadonlyArray1<'_, f64>>,
    callback: Option<Py<PyAny>>,
    landmarks: Option<PyReadonlyArray2<'_, f64>>,
    noise_variance: Option<PyReadonlyArray1<'_, f64>>,
    exposure: Option<PyReadonlyArray1<'_, f64>>,
) -> PyResult<(Model, String)> {
    let mut rvm: Rvm = parameters(settings)?;
    if let Some(centres) = landmarks {
        rvm.landmarks = Landmarks::Given(Centres(centres.as_array().to_owned()));
    }
    let input = x.input()?;
    drop(x);
    let values = target.values()?;
    drop(target);
    let [weights, noise_variance, exposure] =
        [weights, noise_variance, exposure].map(|given| given.map(|values| values.as_array().to_owned()));
    learn(py, callback, move |observer: &mut Observer, interrupt| {
        let targets = values.targets(weights.as_ref());
        let targets = noise_variance.as_ref().map_or(targets, |v| targets.with_noise_variance(v.view()));
        let targets = exposure.as_ref().map_or(targets, |e| targets.with_exposure(e.view()));
        match &input {
            Input::Dense(rows) => rvm.fit_with(rows.view(), &targets, observer, interrupt),
            Input::Sparse(rows) => rvm.fit_sparse_with(rows, &targets, observer, interrupt),
        }
    })
}

/// Returns whether settings suit a fit to sparse rows.
#[pyfunction]
pub(crate) fn fits_sparse(settings: &str) -> PyResult<bool> {
    Ok(parameters::<Rvm>(settings)?.fits_sparse())
}

/// Adds rows to a model and fits it again.
#[pyfunction]
#[pyo3(signature = (settings, model, x, target, weights=None, callback=None, noise_variance=None))]
#[expect(clippy::too_many_arguments, reason = "what a fit takes, and the model")]
pub(crate) fn fit_more(
    py: Python<'_>,
    settings: &str,
    model: &Bound<'_, Model>,
    x: PyReadonlyArray2<'_, f64>,
    target: Target<'_>,
    weights: Option<PyReadonlyArray1<'_, f64>>,
    callback: Option<Py<PyAny>>,
    noise_variance: Option<PyReadonlyArray1<'_, f64>>,
) -> PyResult<(Model, String)> {
    let rvm: Rvm = parameters(settings)?;
    let (rows, values, earlier) = (Rows::new(&x), target.values()?, model.get().core().clone());
    drop(target);
    let [weights, noise_variance] = [weights, noise_variance].map(|given| given.map(|values| values.as_array().to_owned()));
    learn(py, callback, move |observer: &mut Observer, interrupt| {
        let targets = values.targets(weights.as_ref());
        let targets = noise_variance.as_ref().map_or(targets, |v| targets.with_noise_variance(v.view()));
        rvm.fit_more_with(&earlier, rows.view(), &targets, observer, interrupt)
    })
}

/// Fits a support vector machine.
#[pyfunction]
#[pyo3(signature = (settings, x, target, weights=None, callback=None))]
pub(crate) fn fit_svm(
    py: Python<'_>,
    settings: &str,
    x: Matrix<'_>,
    target: Target<'_>,
    weights: Option<PyReadonlyArray1<'_, f64>>,
    callback: Option<Py<PyAny>>,
) -> PyResult<(Model, String)> {
    let svm: Svm = parameters(settings)?;
    let input = x.input()?;
    drop(x);
    let values = target.values()?;
    drop(target);
    let weights = weights.map(|w| w.as_array().to_owned());
    learn(py, callback, move |observer: &mut SvmObserver, interrupt| {
        let targets = values.targets(weights.as_ref());
        match &input {
            Input::Dense(rows) => svm.fit_with(rows.view(), &targets, observer, interrupt),
            Input::Sparse(rows) => svm.fit_sparse_with(rows, &targets, observer, interrupt),
        }
    })
}

/// Learns the kernel from rows without a fit. Returns the JSON of the result.
#[pyfunction]
#[pyo3(signature = (settings, x, target, weights=None, noise_variance=None, exposure=None))]
pub(crate) fn learn_kernel(
    py: Python<'_>,
    settings: &str,
    x: PyReadonlyArray2<'_, f64>,
    target: Target<'_>,
    weights: Option<PyReadonlyArray1<'_, f64>>,
    noise_variance: Option<PyReadonlyArray1<'_, f64>>,
    exposure: Option<PyReadonlyArray1<'_, f64>>,
) -> PyResult<String> {
    let rvm: Rvm = parameters(settings)?;
    let (rows, values) = (Rows::new(&x), target.values()?);
    drop(target);
    let [weights, noise_variance, exposure] =
        [weights, noise_variance, exposure].map(|given| given.map(|values| values.as_array().to_owned()));
    let interrupt = Interrupt::default();
    let switch = interrupt.clone();
    let work = move || {
        let targets = values.targets(weights.as_ref());
        let targets = noise_variance.as_ref().map_or(targets, |v| targets.with_noise_variance(v.view()));
        let targets = exposure.as_ref().map_or(targets, |e| targets.with_exposure(e.view()));
        guarded(|| rvm.learn_kernel_with(rows.view(), &targets, &switch))
    };
    let learned = listening(py, &interrupt, work)??.map_err(exception)?;
    serde_json::to_string(&learned).map_err(|e| PyValueError::new_err(e.to_string()))
}

/// Fits to sums over rows.
pub(crate) fn fit_statistics(
    py: Python<'_>,
    settings: &str,
    statistics: Arc<relvec::Statistics>,
    callback: Option<Py<PyAny>>,
) -> PyResult<(Model, String)> {
    let rvm: Rvm = parameters(settings)?;
    learn(py, callback, move |observer: &mut Observer, interrupt| rvm.fit_statistics_with(&statistics, observer, interrupt))
}

/// Runs a fit while this thread checks for Ctrl-C.
pub(crate) fn learn<P: Told, R: Serialize + Send + 'static>(
    py: Python<'_>,
    callback: Option<Py<PyAny>>,
    fit: impl FnOnce(&mut (dyn FnMut(&P) -> ControlFlow<()> + Send), &Interrupt) -> relvec::Result<(relvec::Model, R)>
    + Send
    + 'static,
) -> PyResult<(Model, String)> {
    let interrupt = Interrupt::default();
    let raised = Arc::default();
    let callback = callback.map(|function| Callback { function, interrupt: interrupt.clone(), raised: Arc::clone(&raised) });
    let switch = interrupt.clone();
    let work = move || {
        let mut observer = |told: &P| callback.as_ref().map_or(ControlFlow::Continue(()), |c| c.call(|dict| told.record(dict)));
        guarded(|| fit(&mut observer, &switch))
    };
    let fitted = listening(py, &interrupt, work)?;
    if let Some(error) = raised.lock().unwrap_or_else(|e| e.into_inner()).take() {
        return Err(error);
    }
    let (model, report) = fitted?.map_err(exception)?;
    let report = serde_json::to_string(&report).map_err(|e| PyValueError::new_err(e.to_string()))?;
    Ok((Model::new(model), report))
}
