//! Fitting on a thread of its own, so that the thread that called can listen for Ctrl-C.

use std::ops::ControlFlow;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use ndarray::{Array1, ArrayView2, Ix2, RawArrayView};
use numpy::{PyReadonlyArray1, PyReadonlyArray2};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use relvec::{Interrupt, Progress, Report, Rvm, Targets};

use crate::model::Model;
use crate::{defect, exception, guarded};

/// How often the calling thread looks for Ctrl-C.
const LISTEN: Duration = Duration::from_millis(20);
/// How long an interrupted fit is waited for; a long matrix operation ends by itself after that.
const PATIENCE: Duration = Duration::from_millis(200);

/// Rows of the caller's array, read without a copy.
struct Rows {
    view: RawArrayView<f64, Ix2>,
    /// Keeps the memory alive.
    _owner: Py<PyAny>,
}

// SAFETY: the view only reads, and the array that owns the memory lives as long as it does.
unsafe impl Send for Rows {}

impl Rows {
    fn new(x: &PyReadonlyArray2<'_, f64>) -> Rows {
        Rows { view: x.as_array().raw_view(), _owner: x.as_any().clone().unbind() }
    }

    fn view(&self) -> ArrayView2<'_, f64> {
        // SAFETY: the memory is alive (`_owner`); that nobody writes into it during a fit is the
        // caller's promise, as with any function of numpy that runs without the lock.
        unsafe { self.view.deref_into_view() }
    }
}

/// Targets, copied: they are small beside the rows.
enum Values {
    Real(Array1<f64>),
    Classes(Vec<usize>),
}

#[derive(FromPyObject)]
pub(crate) enum Target<'py> {
    Real(PyReadonlyArray1<'py, f64>),
    Classes(PyReadonlyArray1<'py, i64>),
}

impl Target<'_> {
    fn values(&self) -> PyResult<Values> {
        Ok(match self {
            Target::Real(t) => Values::Real(t.as_array().to_owned()),
            Target::Classes(labels) => {
                let number = |k: &i64| usize::try_from(*k).map_err(|_| PyValueError::new_err("class numbers start at 0"));
                Values::Classes(labels.as_array().iter().map(number).collect::<PyResult<_>>()?)
            }
        })
    }
}

/// Called with a dict after each iteration; truth ends the fit.
struct Callback {
    function: Py<PyAny>,
    interrupt: Interrupt,
    /// What the function raised.
    raised: Arc<Mutex<Option<PyErr>>>,
}

impl Callback {
    fn call(&self, progress: &Progress) -> ControlFlow<()> {
        // Nobody waits for an interrupted fit: the interpreter may be gone.
        if self.interrupt.is_raised() {
            return ControlFlow::Break(());
        }
        let told = Python::attach(|py| self.function.call1(py, (record(py, progress)?,))?.is_truthy(py));
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

fn record<'py>(py: Python<'py>, progress: &Progress) -> PyResult<Bound<'py, PyDict>> {
    let record = PyDict::new(py);
    record.set_item("iteration", progress.iteration)?;
    record.set_item("log_evidence", progress.log_evidence)?;
    record.set_item("active", progress.active)?;
    record.set_item("noise_std", progress.noise_std)?;
    record.set_item("seconds", progress.elapsed.as_secs_f64())?;
    Ok(record)
}

/// A setting that does not exist or is of another kind, named by its path; where in the JSON it stood says
/// nothing to the user.
fn setting(error: serde_path_to_error::Error<serde_json::Error>) -> PyErr {
    let text = error.inner().to_string();
    PyValueError::new_err(format!("{}: {}", error.path(), text.split(" at line ").next().unwrap_or(&text)))
}

/// Fits by `settings` (the JSON of the core's parameters); returns the model and the JSON of its report.
#[pyfunction]
#[pyo3(signature = (settings, x, target, weights=None, callback=None))]
pub(crate) fn fit(
    py: Python<'_>,
    settings: &str,
    x: PyReadonlyArray2<'_, f64>,
    target: Target<'_>,
    weights: Option<PyReadonlyArray1<'_, f64>>,
    callback: Option<Py<PyAny>>,
) -> PyResult<(Model, String)> {
    let rvm: Rvm = serde_path_to_error::deserialize(&mut serde_json::Deserializer::from_str(settings)).map_err(setting)?;
    let rows = Rows::new(&x);
    let values = target.values()?;
    let weights = weights.map(|w| w.as_array().to_owned());
    let interrupt = Interrupt::default();
    let raised = Arc::default();
    let callback = callback.map(|function| Callback { function, interrupt: interrupt.clone(), raised: Arc::clone(&raised) });

    let (sender, receiver) = channel();
    let switch = interrupt.clone();
    let work = move || {
        let fitted = run(&rvm, &rows, &values, weights.as_ref(), callback.as_ref(), &switch);
        // An interrupted fit may end after its caller has gone.
        let _ = sender.send(fitted);
    };
    thread::Builder::new().name("relvec-fit".into()).spawn(work)?;

    // A receiver may not be shared between threads, and a detached closure counts as another.
    let receiver = Mutex::new(receiver);
    let wait = |time| receiver.lock().unwrap_or_else(|e| e.into_inner()).recv_timeout(time);
    let fitted = loop {
        match py.detach(|| wait(LISTEN)) {
            Ok(fitted) => break fitted,
            Err(RecvTimeoutError::Disconnected) => return Err(defect()),
            Err(RecvTimeoutError::Timeout) => {
                if let Err(signal) = py.check_signals() {
                    interrupt.raise();
                    let _ = py.detach(|| wait(PATIENCE));
                    return Err(signal);
                }
            }
        }
    };
    if let Some(error) = raised.lock().unwrap_or_else(|e| e.into_inner()).take() {
        return Err(error);
    }
    let (model, report) = fitted?.map_err(exception)?;
    let report = serde_json::to_string(&report).map_err(|e| PyValueError::new_err(e.to_string()))?;
    Ok((Model::new(model), report))
}

fn run(
    rvm: &Rvm,
    rows: &Rows,
    values: &Values,
    weights: Option<&Array1<f64>>,
    callback: Option<&Callback>,
    interrupt: &Interrupt,
) -> PyResult<relvec::Result<(relvec::Model, Report)>> {
    let targets = match values {
        Values::Real(t) => Targets::real(t.view()),
        Values::Classes(labels) => Targets::classes(labels, 2),
    };
    let targets = weights.map_or(targets, |w| targets.with_weights(w.view()));
    let mut observer = |progress: &Progress| callback.map_or(ControlFlow::Continue(()), |c| c.call(progress));
    guarded(|| rvm.fit_interruptible(rows.view(), &targets, &mut observer, interrupt))
}
