//! Compiled part of the R package `relvec`. It takes and returns numbers and JSON texts. All that a user sees is in the R files of
//! the package.

use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::null_mut;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use extendr_api::prelude::*;
use relvec::ndarray::{Array1, Array2, ArrayView2, Axis, ShapeBuilder, stack};
use relvec::{Error, FittedBasis, Interrupt, Label, Likelihood, Model, Moderation, RawCell, Rvm, Targets, Variance};
use serde_json::json;

/// Interval at which the thread of R checks for Ctrl-C.
const LISTEN: Duration = Duration::from_millis(20);
/// Longest wait for work that was interrupted. A matrix operation that takes longer ends by itself.
const PATIENCE: Duration = Duration::from_millis(200);

/// Result, or the text of an error.
type Answer<T> = std::result::Result<T, String>;

unsafe extern "C" {
    fn R_CheckUserInterrupt();
    fn R_ToplevelExec(function: extern "C" fn(*mut c_void), data: *mut c_void) -> i32;
}

extern "C" fn check_interrupt(_: *mut c_void) {
    // SAFETY: R_ToplevelExec calls this on R's thread and catches the jump; no Rust frame lies between.
    unsafe { R_CheckUserInterrupt() }
}

/// Returns true if the user has pressed Ctrl-C since the last call.
fn interrupted() -> bool {
    // SAFETY: called on R's thread only; the function takes no data.
    unsafe { R_ToplevelExec(check_interrupt, null_mut()) == 0 }
}

/// Runs `work` on a thread of its own and returns its result. Meanwhile the thread of R checks for Ctrl-C.
fn listening<T: Send + 'static>(work: impl FnOnce(&Interrupt) -> relvec::Result<T> + Send + 'static) -> Answer<T> {
    let interrupt = Interrupt::default();
    let switch = interrupt.clone();
    let (sender, receiver) = channel();
    let run = move || {
        // Interrupted work may end after its caller.
        let _ = sender.send(catch_unwind(AssertUnwindSafe(|| work(&switch))));
    };
    thread::Builder::new().name("relvec-work".into()).spawn(run).map_err(|error| error.to_string())?;
    loop {
        match receiver.recv_timeout(LISTEN) {
            Ok(Ok(done)) => return done.map_err(text),
            Ok(Err(_)) | Err(RecvTimeoutError::Disconnected) => {
                return Err("internal error of relvec; please report it with the message above".into());
            }
            Err(RecvTimeoutError::Timeout) if interrupted() => {
                interrupt.raise();
                let _ = receiver.recv_timeout(PATIENCE);
                return Err(text(Error::Interrupted));
            }
            Err(RecvTimeoutError::Timeout) => {}
        }
    }
}

/// Returns the text of an error, with rows and columns counted from 1 as in R.
fn text(error: Error) -> String {
    match error {
        Error::NotFinite { what, row, column, value } => Error::NotFinite { what, row: row + 1, column: column + 1, value },
        Error::Weight { row, value } => Error::Weight { row: row + 1, value },
        other => other,
    }
    .to_string()
}

/// Returns the rows, [N, D], of a matrix of R, which stores columns one after the other.
fn rows(x: &RMatrix<f64>) -> Array2<f64> {
    let view = ArrayView2::from_shape((x.nrows(), x.ncols()).f(), x.data()).expect("a matrix has its own shape");
    view.as_standard_layout().into_owned()
}

/// Returns a matrix of R with the columns of `values`, [N, C].
fn matrix(values: &Array2<f64>) -> RMatrix<f64> {
    RMatrix::new_matrix(values.nrows(), values.ncols(), |row, column| values[[row, column]])
}

/// Fits a model to rows `x`, [N, D], and targets `y`, `[N]`, and returns the model file and the report as JSON texts. Targets are real
/// numbers, or indices of `classes` from 0. `settings` are the parameters of the core as JSON.
#[extendr]
fn fit(
    settings: &str,
    x: RMatrix<f64>,
    y: Vec<f64>,
    weights: Nullable<Vec<f64>>,
    features: Vec<String>,
    target: &str,
    classes: Vec<String>,
    logical: bool,
) -> Answer<Vec<String>> {
    let rvm: Rvm = serde_path_to_error::deserialize(&mut serde_json::Deserializer::from_str(settings)).map_err(|error| {
        let text = error.inner().to_string();
        format!("{}: {}", error.path(), text.split(" at line ").next().unwrap_or(&text))
    })?;
    let x = rows(&x);
    let target = target.to_string();
    listening(move |interrupt| {
        let (numbers, t): (Vec<usize>, _) = (y.iter().map(|class| *class as usize).collect(), Array1::from(y));
        let targets = match classes.len() {
            0 => Targets::real(t.view()),
            count => Targets::classes(&numbers, count),
        };
        let weights = weights.into_option().map(Array1::from);
        let targets = weights.as_ref().map_or(targets, |w| targets.with_weights(w.view()));
        let (model, report) = rvm.fit_with(x.view(), &targets, &mut relvec::silent, interrupt)?;
        let label = |name: String| if logical { Label::Boolean(name == "TRUE") } else { Label::Text(name) };
        let classes = classes.into_iter().map(label).collect();
        let model = Model { features, target: Some(target), classes, ..model };
        let report = serde_json::to_string(&report).expect("a report is plain data");
        Ok(vec![model.to_json()?, report])
    })
}

/// Predicts at the rows of `x`, [N, D]. The type is `"response"` (means, [N, 1], or indices of classes from 0), `"se"` (standard
/// deviations of new observations, [N, 1]), `"interval"` (means, lower and upper ends, [N, 3]) or `"prob"` (probabilities, [N, K]).
#[extendr]
fn predict(model: &str, x: RMatrix<f64>, what: &str, level: f64) -> Answer<RMatrix<f64>> {
    let model = Model::from_json(model).map_err(text)?;
    let (x, what) = (rows(&x), what.to_string());
    let found = listening(move |_| relvec::thread_pool(None)?.install(|| at_rows(&model, x.view(), &what, level)))?;
    Ok(matrix(&found))
}

fn at_rows(model: &Model, x: ArrayView2<f64>, what: &str, level: f64) -> relvec::Result<Array2<f64>> {
    let column = |values: Array1<f64>| values.insert_axis(Axis(1));
    if model.n_classes().is_some() {
        return match what {
            "prob" => Ok(model.predict_log_probability(x, Moderation::Posterior)?.mapv_into(f64::exp)),
            _ => Ok(column(model.predict_class(x)?.into_iter().map(|class| class as f64).collect())),
        };
    }
    // A model with a healed variance has its own mean.
    if what == "response" && !model.is_of_counts() && model.variance != Variance::Healed {
        return model.predict_mean(x).map(column);
    }
    let prediction = model.predict_with(x, model.variance)?;
    let (mean, std) = match model.likelihood {
        Some(Likelihood::Poisson(_)) => prediction.counts(None).map(|counts| (counts.mean.clone(), counts.std()))?,
        Some(Likelihood::StudentT(_)) => (prediction.mean.clone(), prediction.deviation()),
        _ => (prediction.mean.clone(), prediction.std()),
    };
    match what {
        "se" => Ok(column(std)),
        "interval" => {
            let (lower, upper) = model.interval(&prediction, level, None)?;
            Ok(stack![Axis(1), mean, lower, upper])
        }
        _ => Ok(column(mean)),
    }
}

/// Checks a model file, and returns its description of the model as JSON, without the numbers that only predictions need.
#[extendr]
fn describe(model: &str) -> Answer<String> {
    let model = Model::from_json(model).map_err(text)?;
    if model.has_several_outputs() {
        return Err(format!("the model predicts {} targets: expected a model of one target", model.outputs()));
    }
    if let FittedBasis::External { .. } | FittedBasis::Given {} = model.expansion.basis {
        return Err("the basis functions of the model are computed by its caller: expected a model with a built-in kernel".into());
    }
    let label = |label: &Label| match label {
        Label::Boolean(value) => if *value { "TRUE" } else { "FALSE" }.to_string(),
        other => other.to_string(),
    };
    let facts = json!({
        "machine": model.machine,
        "likelihood": model.likelihood.as_ref().map(|l| l.name()),
        "kernel": model.kernel(),
        "features": model.features,
        "columns": model.encoding.as_ref().map(|e| e.columns.iter().map(|column| &column.name).collect::<Vec<_>>()),
        "target": model.target,
        "classes": model.classes.iter().map(label).collect::<Vec<_>>(),
        "is_classifier": model.n_classes().is_some(),
        "is_logical": matches!(model.classes.first(), Some(Label::Boolean(_))),
        "n_features": model.n_features,
        "n_rows": model.n_rows,
        "relevance": model.relevance,
        "intercept": model.expansion.intercept,
        "weights": model.expansion.weights.outer_iter().map(|row| row.to_vec()).collect::<Vec<_>>(),
        "feature_relevance": model.feature_relevance,
        "noise_std": model.noise_std(),
        "log_evidence": model.log_evidence,
        "status": model.status,
        "iterations": model.iterations,
        "interpolates": model.interpolates,
    });
    Ok(facts.to_string())
}

/// Returns the features, [N, D], of a table with columns of numbers, texts or logical values, in the order of the model file that
/// encodes them. A row that the rule of the file excludes is NA in all features.
#[extendr]
fn encode(model: &str, columns: List) -> Answer<RMatrix<f64>> {
    let model = Model::from_json(model).map_err(text)?;
    let encoding = model.encoding.as_ref().ok_or("the model has no encoding")?;
    let columns: Vec<Robj> = columns.values().collect();
    let columns: Vec<Vec<RawCell>> = columns.iter().map(cells).collect();
    let n = columns.first().map_or(0, Vec::len);
    let mut out = Array2::from_elem((n, encoding.width()), f64::NAN);
    for row in 0..n {
        let cells: Vec<RawCell> = columns.iter().map(|column| column[row]).collect();
        let features = encoding.encode(&cells).map_err(|error| format!("row {}: {}", row + 1, text(error)))?;
        features.into_iter().for_each(|features| out.row_mut(row).assign(&Array1::from(features)));
    }
    Ok(matrix(&out))
}

/// Returns the cells of a column: texts, logical values or doubles.
fn cells(column: &Robj) -> Vec<RawCell<'_>> {
    if let Some(values) = column.as_str_vector() {
        return values.into_iter().map(|v| if v.is_na() { RawCell::Missing } else { RawCell::Text(v) }).collect();
    }
    if let Some(values) = column.as_logical_slice() {
        return values.iter().map(|v| if v.is_na() { RawCell::Missing } else { RawCell::Boolean(v.is_true()) }).collect();
    }
    let values = column.as_real_slice().expect("the R files pass texts, logical values or doubles");
    values.iter().map(|v| if v.is_nan() { RawCell::Missing } else { RawCell::Number(*v) }).collect()
}

extendr_module! {
    mod relvec;
    fn fit;
    fn predict;
    fn describe;
    fn encode;
}
