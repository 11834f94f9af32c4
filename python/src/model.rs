//! The Python class of a trained model.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use ndarray::{Array1, Array2, ArrayView1, ArrayView2, Axis, CowArray, Ix2, s};
use numpy::{PyArray1, PyArray2, PyArray3, PyReadonlyArray1, PyReadonlyArray2, ToPyArray};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyFloat, PyInt, PyString, PyType};
use relvec::{Decision, Error, FittedBasis, FittedModel, Interrupt, Kernel, Label, Moderation, Prediction, Targets, Variance};
use relvec_cli::{Evaluation, Truth};
use relvec_export::{COptions, CPrecision, OnnxOptions, OnnxPrecision};

use crate::fit::{Input, Matrix, Rows, Target};
use crate::listen::listening;
use crate::{exception, guarded, pool};

/// Approximate multiply-adds of a block of rows that is predicted between two checks for an interrupt: a fraction of a
/// second on one processor. After an interrupt no further block is predicted.
const BLOCK_WORK: usize = 1 << 28;
/// Least and most rows of such a block: enough for every thread, and few enough for the memory of their basis
/// functions.
const BLOCK_ROWS: Range<usize> = 1 << 9..1 << 16;

/// A trained model, which is immutable.
#[pyclass(frozen, module = "relvec._core")]
pub(crate) struct Model {
    /// Shared with predictions, which may continue after their caller was interrupted.
    model: Arc<relvec::Model>,
}

/// Predictions of consecutive blocks of rows that can be joined.
trait ByRows: Sized {
    fn join(parts: Vec<Self>) -> Self;
}

impl ByRows for Array1<f64> {
    fn join(parts: Vec<Self>) -> Self {
        parts.into_iter().flatten().collect()
    }
}

impl ByRows for Array2<f64> {
    fn join(parts: Vec<Self>) -> Self {
        let views: Vec<ArrayView2<'_, f64>> = parts.iter().map(|part| part.view()).collect();
        ndarray::concatenate(Axis(0), &views).expect("blocks have the same columns")
    }
}

impl ByRows for Prediction {
    fn join(parts: Vec<Self>) -> Self {
        let noise = parts.last().map(|last| (last.noise_variance, last.noise_degrees));
        let (noise_variance, noise_degrees) = noise.expect("there is a block");
        let (means, variances) = parts.into_iter().map(|part| (part.mean, part.model_variance)).unzip();
        let (mean, model_variance) = (ByRows::join(means), ByRows::join(variances));
        Prediction { mean, model_variance, noise_variance, noise_degrees }
    }
}

/// Predictions of several outputs, one for each.
impl ByRows for Vec<Prediction> {
    fn join(parts: Vec<Self>) -> Self {
        let mut outputs: Vec<Vec<Prediction>> = vec![];
        for part in parts {
            outputs.resize_with(part.len(), Vec::new);
            outputs.iter_mut().zip(part).for_each(|(output, one)| output.push(one));
        }
        outputs.into_iter().map(ByRows::join).collect()
    }
}

/// Mean and model variance, `[N]` each, and the noise variance.
type Moments<'py> = (Bound<'py, PyArray1<f64>>, Bound<'py, PyArray1<f64>>, f64);

/// Lower and upper ends of the intervals of one output, `[N]` each.
type Interval = (Array1<f64>, Array1<f64>);

/// Lower and upper ends of the intervals of each output, [N, K] each.
type Ends<'py> = (Bound<'py, PyArray2<f64>>, Bound<'py, PyArray2<f64>>);

/// Two vectors of the same length.
type Pair<'py> = (Bound<'py, PyArray1<f64>>, Bound<'py, PyArray1<f64>>);

/// Mean, variance and log density, `[N]` each.
type LeftOut<'py> = (Bound<'py, PyArray1<f64>>, Bound<'py, PyArray1<f64>>, Bound<'py, PyArray1<f64>>);

/// Precisions of the weights of each class, [K, M], and of its bias, `[K]`.
type ClassAlpha<'py> = (Bound<'py, PyArray2<f64>>, Bound<'py, PyArray1<f64>>);

/// Means and model variances, [N, K] each, and the variances of the noise, `[K]`.
type Outputs<'py> = (Bound<'py, PyArray2<f64>>, Bound<'py, PyArray2<f64>>, Bound<'py, PyArray1<f64>>);

/// Mean, `[N]`, and covariance, [N, N].
type Joint<'py> = (Bound<'py, PyArray1<f64>>, Bound<'py, PyArray2<f64>>);

/// Values, columns and starts of rows, and the number of columns.
type SparseCentres<'py> = (Bound<'py, PyArray1<f64>>, Bound<'py, PyArray1<i64>>, Bound<'py, PyArray1<i64>>, usize);

/// Labels, probabilities, rejected, and costs to be expected.
type Decided<'py> = (
    Bound<'py, PyArray1<i64>>,
    Bound<'py, PyArray1<f64>>,
    Bound<'py, PyArray2<f64>>,
    Bound<'py, PyArray1<bool>>,
    Option<Bound<'py, PyArray1<f64>>>,
);

impl Model {
    pub fn new(model: relvec::Model) -> Model {
        Model { model: Arc::new(model) }
    }

    pub fn core(&self) -> &relvec::Model {
        &self.model
    }

    /// Runs `predict` on `threads` threads of its own, while this one listens for Ctrl-C.
    fn predicted<T: Send + 'static>(
        &self,
        py: Python<'_>,
        threads: usize,
        predict: impl FnOnce(&relvec::Model, &Interrupt) -> relvec::Result<T> + Send + 'static,
    ) -> PyResult<T> {
        let (model, interrupt) = (Arc::clone(&self.model), Interrupt::default());
        let switch = interrupt.clone();
        let work = move || {
            let pool = pool(threads)?;
            guarded(|| pool.install(|| predict(&model, &switch)))
        };
        listening(py, &interrupt, work)??.map_err(exception)
    }

    /// Predicts rows that may be predicted block by block: none more once interrupted.
    fn by_rows<T: ByRows + Send + 'static>(
        &self,
        py: Python<'_>,
        x: &Matrix<'_>,
        threads: usize,
        predict: impl Fn(&relvec::Model, ArrayView2<'_, f64>) -> relvec::Result<T> + Send + 'static,
    ) -> PyResult<T> {
        self.in_blocks(py, x, threads, needs_rows(&self.model), predict)
    }

    /// Predicts rows block by block. With `needs_rows`, the zeros of sparse rows are filled in; otherwise the values of
    /// the basis functions suffice.
    fn in_blocks<T: ByRows + Send + 'static>(
        &self,
        py: Python<'_>,
        x: &Matrix<'_>,
        threads: usize,
        needs_rows: bool,
        predict: impl Fn(&relvec::Model, ArrayView2<'_, f64>) -> relvec::Result<T> + Send + 'static,
    ) -> PyResult<T> {
        let (n, input) = (x.nrows(), x.input()?);
        self.predicted(py, threads, move |model, interrupt| {
            let sparse = matches!(model.expansion.basis, FittedBasis::Sparse { .. });
            let on_basis = (sparse && !needs_rows).then(|| model.on_basis());
            let filled = matches!(input, Input::Sparse(_)) && on_basis.is_none();
            let block = block_rows(model, model.n_features, if filled { 1 } else { BLOCK_ROWS.start });
            let mut parts = vec![];
            // Of no rows one block that is empty.
            for start in (0..n.max(1)).step_by(block) {
                if interrupt.is_raised() {
                    return Err(Error::Interrupted);
                }
                let rows = start..(start + block).min(n);
                let part = match (&input, &on_basis) {
                    (Input::Dense(x), _) => predict(model, x.view().slice(s![rows, ..])),
                    (Input::Sparse(x), Some(on_basis)) => {
                        let rows = x.select(&rows.collect::<Vec<_>>());
                        model.basis_values(&rows).and_then(|phi| predict(on_basis, phi.view()))
                    }
                    (Input::Sparse(x), None) => predict(model, x.dense_rows(rows).view()),
                };
                parts.push(part.map_err(|error| in_table(error, start))?);
            }
            Ok(ByRows::join(parts))
        })
    }

    fn prediction(&self, py: Python<'_>, x: &Matrix<'_>, threads: usize) -> PyResult<Prediction> {
        self.by_rows(py, x, threads, |model, x| of_rows(model).predict(x))
    }

    /// The mean of `prediction`, without its variance.
    fn mean(&self, py: Python<'_>, x: &Matrix<'_>, threads: usize) -> PyResult<Array1<f64>> {
        self.in_blocks(py, x, threads, false, |model, x| of_rows(model).predict_mean(x))
    }

    /// Returns the results of `find` for the prediction of each output, `[K]`, and the noise variances `known` of the rows, `[N]`.
    fn found<T: Send + 'static>(
        &self,
        py: Python<'_>,
        (x, threads, variance): (Matrix<'_>, usize, &str),
        known: Option<PyReadonlyArray1<'_, f64>>,
        find: impl Fn(&relvec::Model, &Prediction, Option<ArrayView1<'_, f64>>) -> relvec::Result<T> + Send + 'static,
    ) -> PyResult<Vec<T>> {
        let rule = Variance::from_name(variance).map_err(exception)?;
        let known = known.map(|known| known.as_array().to_owned());
        let predictions = self.by_rows(py, &x, threads, move |model, x| of_rows(model).predict_outputs_with(x, rule))?;
        self.predicted(py, threads, move |model, _| {
            predictions.iter().map(|one| find(model, one, known.as_ref().map(|known| known.view()))).collect()
        })
    }

    /// Log probabilities of the classes, [N, K].
    fn log_probability(&self, py: Python<'_>, x: &Matrix<'_>, threads: usize, moderation: Moderation) -> PyResult<Array2<f64>> {
        self.by_rows(py, x, threads, move |model, x| match model.expansion.basis {
            FittedBasis::External { .. } => model.log_probability_from_basis(x, moderation),
            _ => model.predict_log_probability(x, moderation),
        })
    }
}

#[pymethods]
impl Model {
    /// Reads the text of a model file.
    #[new]
    fn from_text(text: &str) -> PyResult<Model> {
        Ok(Model::new(relvec::Model::from_json(text).map_err(exception)?))
    }

    /// Reads the text of a model file. Pickles of version 0.1.0 call this function.
    #[staticmethod]
    fn from_json(text: &str) -> PyResult<Model> {
        Model::from_text(text)
    }

    /// Returns the text of the model file.
    fn to_json(&self) -> PyResult<String> {
        self.model.to_json().map_err(exception)
    }

    /// Returns the bytes of an ONNX file.
    fn to_onnx<'py>(&self, py: Python<'py>, precision: &str, std: bool) -> PyResult<Bound<'py, PyBytes>> {
        let precision = OnnxPrecision::from_name(precision).ok_or_else(|| PyValueError::new_err("unknown precision"))?;
        let bytes = py.detach(|| guarded(|| relvec_export::to_onnx(&self.model, &OnnxOptions { precision, std })))?;
        Ok(PyBytes::new(py, &bytes.map_err(|error| PyValueError::new_err(error.to_string()))?))
    }

    /// Returns the text of a C header.
    fn to_c(&self, py: Python<'_>, name: String, precision: &str, std: bool) -> PyResult<String> {
        let precision = CPrecision::from_name(precision).ok_or_else(|| PyValueError::new_err("unknown precision"))?;
        let text = py.detach(|| guarded(|| relvec_export::to_c(&self.model, &COptions { name, precision, std })))?;
        text.map_err(|error| PyValueError::new_err(error.to_string()))
    }

    /// Returns the text of a report, an HTML page. `context`: information beside the model and its predictions, as
    /// JSON. Without rows `x`, [N, D], the report describes only the model. With rows there are `values`, [N, K], of
    /// all targets, or class numbers `labels`, `[N]`. `known`: exposures or noise variances, `[N]`.
    #[pyo3(signature = (context, x=None, values=None, labels=None, known=None, threads=0))]
    #[allow(clippy::too_many_arguments, reason = "arrays of Python and what to make of them")]
    fn report_html(
        &self,
        py: Python<'_>,
        context: &str,
        x: Option<PyReadonlyArray2<'_, f64>>,
        values: Option<PyReadonlyArray2<'_, f64>>,
        labels: Option<Vec<usize>>,
        known: Option<Vec<f64>>,
        threads: usize,
    ) -> PyResult<String> {
        let context: relvec_cli::Context =
            serde_json::from_str(context).map_err(|error| PyValueError::new_err(error.to_string()))?;
        let (rows, values) = (x.as_ref().map(Rows::new), values.map(|values| values.as_array().to_owned()));
        let (labels, known) = (labels.unwrap_or_default(), known.unwrap_or_default());
        self.predicted(py, threads, move |model, interrupt| {
            let Some(rows) = rows else { return relvec_cli::report_html(model, None, &context) };
            let x = rows.view();
            let outputs: Vec<usize> = (0..if model.has_several_outputs() { model.outputs() } else { 1 }).collect();
            let mut evaluation = Evaluation::new(model, &outputs)?;
            let block = block_rows(model, x.ncols(), BLOCK_ROWS.start);
            for start in (0..x.nrows()).step_by(block) {
                if interrupt.is_raised() {
                    return Err(Error::Interrupted);
                }
                let end = (start + block).min(x.nrows());
                let truth = match &values {
                    Some(values) => Truth::Values(values.slice(s![start..end, ..])),
                    None => Truth::Classes(&labels[start..end]),
                };
                let known = if known.is_empty() { &[] } else { &known[start..end] };
                let numbers: Vec<usize> = (start..end).collect();
                let pushed = evaluation.push(x.slice(s![start..end, ..]), &numbers, truth, known);
                pushed.map_err(|error| in_table(error, start))?;
            }
            relvec_cli::report_html(model, Some(evaluation), &context)
        })
    }

    /// The text of a model file of LIBSVM.
    fn to_libsvm(&self) -> PyResult<String> {
        relvec_export::to_libsvm(&self.model).map_err(|error| PyValueError::new_err(error.to_string()))
    }

    /// Returns ten rows and their predictions in LIBSVM's format.
    fn libsvm_self_test(&self) -> PyResult<String> {
        relvec_export::libsvm_self_test(&self.model).map_err(|error| PyValueError::new_err(error.to_string()))
    }

    /// Reads the text of a model file of LIBSVM.
    #[staticmethod]
    #[pyo3(signature = (text, features=None))]
    fn from_libsvm(text: &str, features: Option<usize>) -> PyResult<Model> {
        let model = relvec_export::from_libsvm(text, features);
        Ok(Model::new(model.map_err(|error| PyValueError::new_err(error.to_string()))?))
    }

    /// Returns a call of the type itself, which restores pickles and files of skops.
    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyType>, (String,))> {
        Ok((slf.get_type(), (slf.get().to_json()?,)))
    }

    /// Returns this model with the names of its training table.
    #[pyo3(signature = (features, targets, classes=None))]
    fn named(&self, features: Vec<String>, targets: Vec<String>, classes: Option<Vec<Bound<'_, PyAny>>>) -> PyResult<Model> {
        let classes = classes.unwrap_or_default().iter().map(label).collect::<PyResult<_>>()?;
        let (target, targets) = match self.model.has_several_outputs() {
            true => (None, targets),
            false => (targets.into_iter().next(), vec![]),
        };
        Ok(Model::new(relvec::Model { features, target, targets, classes, ..(*self.model).clone() }))
    }

    /// Number K of real outputs; 1 for classifiers.
    #[getter]
    fn n_outputs(&self) -> usize {
        if self.model.has_several_outputs() { self.model.outputs() } else { 1 }
    }

    /// Returns the model of one of several outputs.
    fn output(&self, k: usize) -> PyResult<Model> {
        Ok(Model::new(self.model.output(k).map_err(exception)?))
    }

    /// Names of several targets.
    #[getter]
    fn targets(&self) -> Vec<String> {
        self.model.targets.clone()
    }

    /// Returns means and model variances of several outputs at rows, [N, K], and their noise variances, `[K]`.
    #[pyo3(signature = (x, threads, variance=None))]
    fn predict_outputs<'py>(
        &self,
        py: Python<'py>,
        x: Matrix<'py>,
        threads: usize,
        variance: Option<&str>,
    ) -> PyResult<Outputs<'py>> {
        let rule = variance.map(Variance::from_name).transpose().map_err(exception)?;
        let predict = move |model: &relvec::Model, x: ArrayView2<'_, f64>| {
            of_rows(model).predict_outputs_with(x, rule.unwrap_or(model.variance))
        };
        let (n, found) = (x.nrows(), self.by_rows(py, &x, threads, predict)?);
        let columns = |of: &dyn Fn(&Prediction) -> &Array1<f64>| {
            let mut out = Array2::zeros((n, found.len()));
            out.columns_mut().into_iter().zip(&found).for_each(|(mut column, one)| column.assign(of(one)));
            out.to_pyarray(py)
        };
        let noise: Vec<f64> = found.iter().map(|one| one.noise_variance).collect();
        Ok((columns(&|one| &one.mean), columns(&|one| &one.model_variance), noise.to_pyarray(py)))
    }

    /// Returns only the means, [N, K].
    fn predict_output_means<'py>(&self, py: Python<'py>, x: Matrix<'py>, threads: usize) -> PyResult<Bound<'py, PyArray2<f64>>> {
        Ok(self.in_blocks(py, &x, threads, false, |model, x| of_rows(model).predict_output_means(x))?.to_pyarray(py))
    }

    /// Ratios of the variances of the outputs to those of the first, `[K]`; empty for one output.
    #[getter]
    fn variance_ratios<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        self.model.posterior.as_ref().map_or(&[][..], |p| &p.variance_ratios).to_pyarray(py)
    }

    /// Returns this model with its columns as values of the caller's kernel at training rows `relevance`.
    #[pyo3(signature = (relevance, n_features, centres=None))]
    fn with_external_kernel(
        &self,
        relevance: Vec<usize>,
        n_features: usize,
        centres: Option<PyReadonlyArray2<'_, f64>>,
    ) -> Model {
        let centres = centres.map(|c| c.as_array().to_owned());
        Model::new((*self.model).clone().with_external_kernel(&relevance, n_features, centres.as_ref()))
    }

    /// Returns this model with centres that are sparse rows, if its kernel can be computed from them.
    fn with_sparse_centres(&self) -> Model {
        Model::new((*self.model).clone().with_sparse_centres())
    }

    /// Returns mean, model variance and noise variance at rows, or at values of the basis functions for an external
    /// kernel.
    #[pyo3(signature = (x, threads, variance=None))]
    fn predict<'py>(&self, py: Python<'py>, x: Matrix<'py>, threads: usize, variance: Option<&str>) -> PyResult<Moments<'py>> {
        let rule = variance.map(Variance::from_name).transpose().map_err(exception)?;
        let predict =
            move |model: &relvec::Model, x: ArrayView2<'_, f64>| of_rows(model).predict_with(x, rule.unwrap_or(model.variance));
        let prediction = self.by_rows(py, &x, threads, predict)?;
        Ok((prediction.mean.to_pyarray(py), prediction.model_variance.to_pyarray(py), prediction.noise_variance))
    }

    /// Returns mean and joint covariance at rows, with the noise variance on the diagonal.
    #[pyo3(signature = (x, threads, memory_limit=None))]
    fn predict_covariance<'py>(
        &self,
        py: Python<'py>,
        x: Matrix<'py>,
        threads: usize,
        memory_limit: Option<u64>,
    ) -> PyResult<Joint<'py>> {
        let input = x.input()?;
        let predict = move |model: &relvec::Model, _: &Interrupt| {
            let (model, rows) = read(model, &input)?;
            model.predict_covariance(rows.view(), memory_limit)
        };
        let (mean, covariance) = self.predicted(py, threads, predict)?;
        Ok((mean.to_pyarray(py), covariance.to_pyarray(py)))
    }

    /// Returns the values of `count` functions drawn from the posterior, [N, count].
    fn draws<'py>(
        &self,
        py: Python<'py>,
        x: Matrix<'py>,
        count: usize,
        seed: u64,
        noise: bool,
        threads: usize,
    ) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let input = x.input()?;
        let predict = move |model: &relvec::Model, _: &Interrupt| {
            let (model, rows) = read(model, &input)?;
            model.draws(count, seed, noise)?.at(rows.view())
        };
        Ok(self.predicted(py, threads, predict)?.to_pyarray(py))
    }

    /// Returns mean, variance and log density of the targets of training rows, each left out in turn.
    #[pyo3(signature = (x, target, weights, threads, noise_variance=None, exposure=None))]
    #[allow(clippy::too_many_arguments)]
    fn leave_one_out<'py>(
        &self,
        py: Python<'py>,
        x: Matrix<'py>,
        target: Target<'py>,
        weights: Option<PyReadonlyArray1<'py, f64>>,
        threads: usize,
        noise_variance: Option<PyReadonlyArray1<'py, f64>>,
        exposure: Option<PyReadonlyArray1<'py, f64>>,
    ) -> PyResult<LeftOut<'py>> {
        let (input, values) = (x.input()?, target.values()?);
        let [weights, noise, exposure] = [weights, noise_variance, exposure].map(|v| v.map(|v| v.as_array().to_owned()));
        let (own_noise, own_exposure) = (noise.clone(), exposure.clone());
        let found = self.predicted(py, threads, move |model, _| {
            let targets: Targets = values.targets(weights.as_ref());
            let targets = own_noise.as_ref().map_or(targets, |v| targets.with_noise_variance(v.view()));
            let targets = own_exposure.as_ref().map_or(targets, |e| targets.with_exposure(e.view()));
            let (model, rows) = read(model, &input)?;
            model.leave_one_out(rows.view(), &targets)
        })?;
        let own = found.prediction.ok_or_else(|| PyValueError::new_err("rows of several classes have no values"))?;
        let (mean, variance) = match self.model.is_of_counts() {
            true => {
                let counts = own.counts(exposure.as_ref().map(|e| e.view())).map_err(exception)?;
                let variance = counts.variance();
                (counts.mean, variance)
            }
            false => {
                let variance = own.deviation().mapv(|s| s * s);
                (own.mean, variance)
            }
        };
        let variance = match noise {
            Some(noise) => variance + noise,
            None => variance,
        };
        Ok((mean.to_pyarray(py), variance.to_pyarray(py), found.log_density.to_pyarray(py)))
    }

    /// Returns log class probabilities of training rows, each left out in turn, [N, K].
    fn leave_one_out_classes<'py>(
        &self,
        py: Python<'py>,
        x: Matrix<'py>,
        target: Target<'py>,
        weights: Option<PyReadonlyArray1<'py, f64>>,
        threads: usize,
    ) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let (input, values) = (x.input()?, target.values()?);
        let weights = weights.map(|w| w.as_array().to_owned());
        let found = self.predicted(py, threads, move |model, _| {
            let (model, rows) = read(model, &input)?;
            model.leave_one_out(rows.view(), &values.targets(weights.as_ref()))
        })?;
        let log = found.log_probability.ok_or_else(|| PyValueError::new_err("a model of regression has no classes"))?;
        Ok(log.to_pyarray(py))
    }

    /// Factor of the predictive variances.
    #[getter]
    fn variance_factor(&self) -> f64 {
        self.model.posterior.as_ref().and_then(|p| p.variance_factor).unwrap_or(1.0)
    }

    /// `"posterior"` or `"healed"`.
    #[getter]
    fn variance(&self) -> &'static str {
        self.model.variance.name()
    }

    /// Number of training rows in the model, and true if these are all rows.
    #[getter]
    fn kept_rows(&self) -> (usize, bool) {
        self.model.kept_rows.as_ref().map_or((0, false), |kept| (kept.rows.nrows(), kept.complete))
    }

    /// Number of landmarks at which the model keeps sums over its rows; 0 if it keeps none.
    #[getter]
    fn kept_statistics(&self) -> usize {
        self.model.statistics.as_ref().map_or(0, |kept| kept.landmarks.len())
    }

    /// Returns the central intervals of new targets by a `variance` rule. `known`: exposure or noise variance of each
    /// row.
    #[pyo3(signature = (x, level, threads, variance, known=None))]
    fn predict_interval<'py>(
        &self,
        py: Python<'py>,
        x: Matrix<'py>,
        level: f64,
        threads: usize,
        variance: &str,
        known: Option<PyReadonlyArray1<'py, f64>>,
    ) -> PyResult<Ends<'py>> {
        let ends = self.found(py, (x, threads, variance), known, move |model, one, known| model.interval(one, level, known))?;
        let columns = |of: &dyn Fn(&Interval) -> &Array1<f64>| {
            let views: Vec<_> = ends.iter().map(|one| of(one).view()).collect();
            ndarray::stack(Axis(1), &views).expect("outputs have the same rows").to_pyarray(py)
        };
        Ok((columns(&|one| &one.0), columns(&|one| &one.1)))
    }

    /// Returns log predictive densities of the targets `t`, `[N]`, for a model of one output; log probabilities for
    /// counts.
    fn log_density<'py>(
        &self,
        py: Python<'py>,
        x: Matrix<'py>,
        t: PyReadonlyArray1<'py, f64>,
        threads: usize,
        variance: &str,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let t = t.as_array().to_owned();
        let found = self.found(py, (x, threads, variance), None, move |model, one, _| model.log_density(one, t.view(), None))?;
        Ok(found[0].to_pyarray(py))
    }

    /// Returns quantiles of new targets, [N, K, Q], with the probabilities `q`, `[Q]`. Other arguments are those of
    /// `predict_interval`.
    #[pyo3(signature = (x, q, threads, variance, known=None))]
    fn predict_quantiles<'py>(
        &self,
        py: Python<'py>,
        x: Matrix<'py>,
        q: Vec<f64>,
        threads: usize,
        variance: &str,
        known: Option<PyReadonlyArray1<'py, f64>>,
    ) -> PyResult<Bound<'py, PyArray3<f64>>> {
        let found = self.found(py, (x, threads, variance), known, move |model, one, known| model.quantiles(one, &q, known))?;
        let views: Vec<_> = found.iter().map(|one| one.view()).collect();
        Ok(ndarray::stack(Axis(1), &views).expect("outputs have the same rows").to_pyarray(py))
    }

    /// Returns expected counts and the variance of their rates for exposures, `[N]`, at rows of the form accepted by
    /// `predict`.
    #[pyo3(signature = (x, threads, exposure=None))]
    fn predict_counts<'py>(
        &self,
        py: Python<'py>,
        x: Matrix<'py>,
        threads: usize,
        exposure: Option<PyReadonlyArray1<'py, f64>>,
    ) -> PyResult<Pair<'py>> {
        let prediction = self.prediction(py, &x, threads)?;
        let counts = prediction.counts(exposure.as_ref().map(|e| e.as_array())).map_err(exception)?;
        Ok((counts.mean.to_pyarray(py), counts.rate_variance.to_pyarray(py)))
    }

    /// Returns only the mean, identical to the bit and much cheaper.
    fn predict_mean<'py>(&self, py: Python<'py>, x: Matrix<'py>, threads: usize) -> PyResult<Bound<'py, PyArray1<f64>>> {
        Ok(self.mean(py, &x, threads)?.to_pyarray(py))
    }

    /// Returns the log odds of the second class.
    fn log_odds<'py>(
        &self,
        py: Python<'py>,
        x: Matrix<'py>,
        threads: usize,
        moderated: bool,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        if moderated && self.model.posterior.is_some() {
            return Ok(self.prediction(py, &x, threads)?.log_odds(Moderation::Posterior).to_pyarray(py));
        }
        // Without the posterior of the weights the log odds are the mean.
        Ok(self.mean(py, &x, threads)?.to_pyarray(py))
    }

    /// Returns the values of the functions, [N, C].
    fn decision<'py>(&self, py: Python<'py>, x: Matrix<'py>, threads: usize) -> PyResult<Bound<'py, PyArray2<f64>>> {
        Ok(self
            .by_rows(py, &x, threads, |model, x| match model.expansion.basis {
                FittedBasis::External { .. } => model.decision_from_basis(x),
                _ => model.decision_function(x),
            })?
            .to_pyarray(py))
    }

    /// Returns the classes, `[N]`, for which the decision values of a support vector machine, [N, C], vote.
    fn vote<'py>(&self, py: Python<'py>, f: PyReadonlyArray2<'py, f64>) -> PyResult<Bound<'py, PyArray1<i64>>> {
        let votes = self.model.vote(&f.as_array().to_owned()).map_err(exception)?;
        Ok(votes.into_iter().map(|k| k as i64).collect::<Vec<_>>().to_pyarray(py))
    }

    /// Returns class probabilities or their logarithms, [N, K], under a prior, `[K]`, if it differs from that of the
    /// training rows.
    #[pyo3(signature = (x, threads, moderated, log, prior=None))]
    fn probability<'py>(
        &self,
        py: Python<'py>,
        x: Matrix<'py>,
        threads: usize,
        moderated: bool,
        log: bool,
        prior: Option<Vec<f64>>,
    ) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let moderation = if moderated { Moderation::Posterior } else { Moderation::PlugIn };
        let logs = self.log_probability(py, &x, threads, moderation)?;
        let made = py.detach(|| {
            let logs = match prior {
                Some(prior) => self.model.shift_prior(logs, &prior)?,
                None => logs,
            };
            Ok(if log { logs } else { logs.mapv_into(f64::exp) })
        });
        Ok(made.map_err(exception)?.to_pyarray(py))
    }

    /// Returns labels and their probabilities, `[N]`, the probabilities of all classes, [N, K], which rows are
    /// rejected, and, for given costs, [K, K], the expected costs, `[N]`.
    #[pyo3(signature = (x, threads, prior=None, costs=None, reject=None, reject_cost=None))]
    #[expect(clippy::too_many_arguments, reason = "the decision by its parts")]
    fn decide<'py>(
        &self,
        py: Python<'py>,
        x: Matrix<'py>,
        threads: usize,
        prior: Option<Vec<f64>>,
        costs: Option<PyReadonlyArray2<'py, f64>>,
        reject: Option<f64>,
        reject_cost: Option<f64>,
    ) -> PyResult<Decided<'py>> {
        let decision = Decision { prior, costs: costs.map(|c| c.as_array().to_owned()), reject, reject_cost };
        let logs = self.log_probability(py, &x, threads, Moderation::Posterior)?;
        let decided = py.detach(|| self.model.decide_by(logs, &decision)).map_err(exception)?;
        let labels: Vec<i64> = decided.label.into_iter().map(|k| k as i64).collect();
        Ok((
            labels.to_pyarray(py),
            decided.probability.to_pyarray(py),
            decided.probabilities.to_pyarray(py),
            decided.rejected.to_pyarray(py),
            decided.expected_cost.map(|cost| cost.to_pyarray(py)),
        ))
    }

    /// Class frequencies in training, `[K]`; empty for regression and in older files.
    #[getter]
    fn class_frequencies<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        self.model.class_frequencies.to_pyarray(py)
    }

    /// How more than two classes are modelled; `None` for two classes and for regression.
    #[getter]
    fn multi_class(&self) -> Option<&'static str> {
        self.model.multi_class().map(|rule| rule.name())
    }

    /// Number of classes K; 0 for regression.
    #[getter]
    fn n_classes(&self) -> usize {
        self.model.n_classes().unwrap_or(0)
    }

    /// The binary models of a multiclass model.
    #[getter]
    fn members(&self) -> Vec<Model> {
        self.model.committee.iter().flat_map(|c| &c.members).map(|m| Model::new(m.clone())).collect()
    }

    /// `"kernel"`, `"given"` or `"external"`.
    #[getter]
    fn basis(&self) -> &'static str {
        match self.model.expansion.basis {
            FittedBasis::Kernel { .. } | FittedBasis::Sparse { .. } => "kernel",
            FittedBasis::Given {} => "given",
            FittedBasis::External { .. } => "external",
        }
    }

    /// The kernel as JSON, `{name: {parameter: value}}`.
    #[getter]
    fn kernel(&self) -> PyResult<Option<String>> {
        let text = self.model.kernel().map(serde_json::to_string).transpose();
        text.map_err(|e| PyValueError::new_err(e.to_string()))
    }

    /// Centres in the units of the data.
    #[getter]
    fn centres<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyArray2<f64>>> {
        let centres = match &self.model.expansion.basis {
            FittedBasis::Kernel { centres, .. } => centres.clone(),
            FittedBasis::External { centres } => centres.clone()?,
            FittedBasis::Given {} | FittedBasis::Sparse { .. } => return None,
        };
        let mut centres = centres;
        if let Some(scaling) = &self.model.scaling {
            for mut row in centres.outer_iter_mut() {
                for ((v, m), s) in row.iter_mut().zip(&scaling.mean).zip(&scaling.scale) {
                    *v = *v * s + m;
                }
            }
        }
        Some(centres.to_pyarray(py))
    }

    /// Centres of a model of sparse rows: values, columns and starts of the rows of a CSR matrix, and its number of columns.
    #[getter]
    fn sparse_centres<'py>(&self, py: Python<'py>) -> Option<SparseCentres<'py>> {
        let FittedBasis::Sparse { centres, .. } = &self.model.expansion.basis else { return None };
        let columns: Vec<i64> = centres.columns().iter().map(|c| i64::from(*c)).collect();
        let starts: Vec<i64> = centres.starts().iter().map(|v| *v as i64).collect();
        Some((centres.values().to_pyarray(py), columns.to_pyarray(py), starts.to_pyarray(py), centres.ncols()))
    }

    /// Mean and scale of each feature, if the model standardises.
    #[getter]
    fn scaling<'py>(&self, py: Python<'py>) -> Option<Pair<'py>> {
        self.model.scaling.as_ref().map(|s| (s.mean.to_pyarray(py), s.scale.to_pyarray(py)))
    }

    #[getter]
    fn classifier(&self) -> bool {
        self.model.n_classes().is_some()
    }

    /// `"rvm"` or `"svm"`.
    #[getter]
    fn machine(&self) -> &str {
        &self.model.machine
    }

    /// Name of the inference scheme; `None` for a support vector machine.
    #[getter]
    fn inference(&self) -> Option<&str> {
        self.model.inference.as_deref()
    }

    /// How the posterior was approximated.
    #[getter]
    fn posterior(&self) -> &'static str {
        self.model.posterior_rule().name()
    }

    /// The formulation of a support vector machine.
    #[getter]
    fn formulation(&self) -> Option<&str> {
        self.model.margins.as_ref().map(|m| m.formulation.as_str())
    }

    /// Class of each support vector, `[M]`; 0 for regression.
    #[getter]
    fn vector_classes<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<i64>> {
        let of = |m: &relvec::Margins| m.vector_classes.iter().map(|k| *k as i64).collect::<Vec<_>>();
        let known = self.model.margins.as_ref().map(of).unwrap_or_default();
        if known.is_empty() { vec![0; self.model.relevance.len()].to_pyarray(py) } else { known.to_pyarray(py) }
    }

    /// Parameters A and B of the sigmoid of each function, [C, 2]; without rows if there are no probabilities.
    #[getter]
    fn sigmoids<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray2<f64>> {
        let sigmoids = self.model.margins.as_ref().map_or(&[][..], |m| &m.sigmoids);
        Array2::from_shape_fn((sigmoids.len(), 2), |(c, k)| sigmoids[c][k]).to_pyarray(py)
    }

    /// Share of each feature in the changes of the kernel, `[D]`; empty unless the kernel has a gamma for each feature.
    #[getter]
    fn feature_relevance<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        self.model.feature_relevance.to_pyarray(py)
    }

    /// Widths of the factors of a sum: a title, and names, gammas and shares of features.
    #[getter]
    fn widths(&self) -> Vec<relvec_cli::Widths> {
        relvec_cli::widths(&self.model)
    }

    /// True if the centres were learned and are not training rows.
    #[getter]
    fn learned_centres(&self) -> bool {
        self.model.learned_centres
    }

    /// Name of the likelihood; `None` for a support vector machine.
    #[getter]
    fn likelihood(&self) -> Option<&'static str> {
        self.model.likelihood.as_ref().map(relvec::Likelihood::name)
    }

    /// Noise variance if it was given and not learned.
    #[getter]
    fn fixed_noise_variance(&self) -> Option<f64> {
        match &self.model.likelihood {
            Some(relvec::Likelihood::Gaussian(gaussian)) => gaussian.noise_variance,
            Some(relvec::Likelihood::StudentT(student)) => student.noise_variance,
            _ => None,
        }
    }

    /// Degrees of freedom of the noise if they were given and not learned.
    #[getter]
    fn fixed_noise_degrees(&self) -> Option<f64> {
        match &self.model.likelihood {
            Some(relvec::Likelihood::StudentT(student)) => student.noise_degrees,
            _ => None,
        }
    }

    /// Encoding of the columns as features, in JSON; `None` if the columns are the features.
    #[getter]
    fn encoding(&self) -> PyResult<Option<String>> {
        let json = self.model.encoding.as_ref().map(serde_json::to_string).transpose();
        json.map_err(|e| PyValueError::new_err(e.to_string()))
    }

    /// Returns a copy of the model with an encoding, in JSON, and the names of its features.
    fn encoded(&self, encoding: &str) -> PyResult<Model> {
        let refused = |e: String| PyValueError::new_err(format!("encoding: {e}"));
        let encoding: relvec::Encoding = serde_json::from_str(encoding).map_err(|e| refused(e.to_string()))?;
        let features = encoding.features();
        let model = relvec::Model { features, encoding: Some(encoding), ..(*self.model).clone() };
        // Reading the model from its text checks it.
        let text = model.to_json().map_err(exception)?;
        relvec::Model::from_json(&text).map(Model::new).map_err(exception)
    }

    #[getter]
    fn features(&self) -> Vec<String> {
        self.model.features.clone()
    }

    #[getter]
    fn target(&self) -> Option<String> {
        self.model.target.clone()
    }

    #[getter]
    fn classes<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        self.model.classes.iter().map(|label| named(py, label)).collect()
    }

    #[getter]
    fn n_features(&self) -> usize {
        self.model.n_features
    }

    #[getter]
    fn n_rows(&self) -> usize {
        self.model.n_rows
    }

    #[getter]
    fn relevance<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<i64>> {
        self.model.relevance.iter().map(|r| *r as i64).collect::<Vec<_>>().to_pyarray(py)
    }

    /// Weights of each function, [C, M].
    #[getter]
    fn weights<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray2<f64>> {
        self.model.expansion.weights.t().to_pyarray(py)
    }

    /// Intercept of each function, `[C]`.
    #[getter]
    fn intercept<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        self.model.expansion.intercept.to_pyarray(py)
    }

    #[getter]
    fn alpha<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        self.model.alpha.to_pyarray(py)
    }

    /// True if classes were learned by regression on their labels, under a process prior.
    #[getter]
    fn label_regression(&self) -> bool {
        self.model.labels.is_some()
    }

    /// Amplitude of a process prior, relevance vectors that the search selected, and residual; `None` for other priors.
    #[getter]
    fn process<'py>(&self, py: Python<'py>) -> Option<(f64, Bound<'py, PyArray1<i64>>, f64)> {
        let process = self.model.process.as_ref()?;
        let searched: Vec<i64> = process.searched.iter().map(|row| *row as i64).collect();
        Some((process.amplitude, searched.to_pyarray(py), process.residual))
    }

    /// Precision of the intercept; infinite if it was pruned or switched off.
    #[getter]
    fn intercept_alpha(&self) -> f64 {
        self.model.intercept_alpha.unwrap_or(f64::INFINITY)
    }

    /// Precisions of the weights of each class, [K, M], and of its intercept, `[K]`, if they are not shared; infinite
    /// if a weight is not in the model.
    #[getter]
    fn class_alpha<'py>(&self, py: Python<'py>) -> Option<ClassAlpha<'py>> {
        let (rows, classes) = (&self.model.class_alpha, self.model.outputs());
        if rows.is_empty() {
            return None;
        }
        let bias = usize::from(self.model.intercept_alpha.is_some());
        let alpha = |k: usize, i: usize| rows[i][k].unwrap_or(f64::INFINITY);
        let vectors = Array2::from_shape_fn((classes, rows.len() - bias), |(k, m)| alpha(k, m + bias));
        let constant = Array1::from_shape_fn(classes, |k| if bias == 1 { alpha(k, 0) } else { f64::INFINITY });
        Some((vectors.to_pyarray(py), constant.to_pyarray(py)))
    }

    /// Covariance of the weights; the intercept comes first if it is in the model.
    #[getter]
    fn covariance<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray2<f64>> {
        self.model.weight_covariance().to_pyarray(py)
    }

    /// Well-determinedness of the weights without the intercept.
    #[getter]
    fn well_determined<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        self.model.well_determined().to_pyarray(py)
    }

    /// Numbers of relevant basis functions by their weights and by the data.
    #[getter]
    fn in_use(&self) -> (usize, usize) {
        let in_use = self.model.in_use();
        (in_use.by_weight, in_use.by_data)
    }

    #[getter]
    fn noise_variance(&self) -> Option<f64> {
        self.model.noise_variance()
    }

    /// Degrees of freedom of the noise if its precision is integrated out; infinite if the precision is a number.
    #[getter]
    fn noise_degrees(&self) -> f64 {
        self.model.posterior.as_ref().and_then(|p| p.noise_degrees).unwrap_or(f64::INFINITY)
    }

    #[getter]
    fn log_evidence(&self) -> Option<f64> {
        self.model.log_evidence
    }

    #[getter]
    fn status(&self) -> &'static str {
        self.model.status.name()
    }

    #[getter]
    fn iterations(&self) -> usize {
        self.model.iterations
    }
}

/// Returns the rows of a block that is predicted between two checks for an interrupt, at least `least`. Sparse rows that
/// are filled in may be so wide that a block is a single row.
fn block_rows(model: &relvec::Model, columns: usize, least: usize) -> usize {
    let vectors = model.relevance.len() + 1;
    (BLOCK_WORK / (vectors * (vectors + columns))).clamp(least, BLOCK_ROWS.end)
}

/// Returns whether a prediction needs the rows themselves: the kernel of a row with itself or with retained rows.
fn needs_rows(model: &relvec::Model) -> bool {
    model.process.is_some() || model.kept_rows.is_some()
}

/// Returns the model; for an external kernel as a model of rows of basis function values.
fn of_rows(model: &relvec::Model) -> Cow<'_, relvec::Model> {
    match model.expansion.basis {
        FittedBasis::External { .. } => Cow::Owned(model.on_basis()),
        _ => Cow::Borrowed(model),
    }
}

/// Reads a kernel from its JSON.
pub(crate) fn kernel_of(json: &str) -> PyResult<Kernel> {
    serde_json::from_str(json).map_err(|e| PyValueError::new_err(format!("kernel: {e}")))
}

/// Returns the model and its input: the values of its basis functions for sparse rows, otherwise all numbers.
fn read<'m>(model: &'m relvec::Model, input: &'m Input) -> relvec::Result<(Cow<'m, relvec::Model>, CowArray<'m, f64, Ix2>)> {
    Ok(match (input, &model.expansion.basis) {
        (Input::Dense(x), _) => (of_rows(model), x.view().into()),
        (Input::Sparse(x), FittedBasis::Sparse { .. }) if !needs_rows(model) => {
            (Cow::Owned(model.on_basis()), model.basis_values(x)?.into())
        }
        (Input::Sparse(x), _) => (of_rows(model), x.to_dense().into()),
    })
}

/// Converts an error of a block of rows to row numbers of the table. The block starts at row `start`.
fn in_table(error: Error, start: usize) -> Error {
    match error {
        Error::NotFinite { what, row, column, value } => Error::NotFinite { what, row: row + start, column, value },
        other => other,
    }
}

fn label(name: &Bound<'_, PyAny>) -> PyResult<Label> {
    if let Ok(value) = name.cast::<PyBool>() {
        return Ok(Label::Boolean(value.is_true()));
    }
    if name.cast::<PyInt>().is_ok() {
        let beyond = |_| PyValueError::new_err(format!("the class {name} does not fit into a signed 64-bit integer"));
        return Ok(Label::Integer(name.extract::<i64>().map_err(beyond)?));
    }
    match name.cast::<PyFloat>() {
        Ok(value) => Ok(Label::Number(value.value())),
        Err(_) => Ok(Label::Text(name.str()?.extract()?)),
    }
}

/// Returns a label as a Python object.
fn named<'py>(py: Python<'py>, label: &Label) -> PyResult<Bound<'py, PyAny>> {
    Ok(match label {
        Label::Boolean(value) => PyBool::new(py, *value).to_owned().into_any(),
        Label::Integer(value) => value.into_pyobject(py)?.into_any(),
        Label::Number(value) => PyFloat::new(py, *value).into_any(),
        Label::Text(text) => PyString::new(py, text).into_any(),
    })
}
