//! The compared models: how each is fitted to training rows and measured on test rows.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::time::Instant;

use anyhow::Result;
use ndarray::{Array1, Array2, ArrayView1, Axis};
use relvec::{
    CSvc, Dictionary, EpsilonSvr, Gamma, Inference, Kernel, Model, Moderation, Prediction, Rvm, Scaling, Status, Svm, Targets,
    Variational,
};

use super::grid::Point;
use crate::args::{Compared, Task};
use crate::metrics;
use crate::settings::likelihood;
use crate::target::Learned;

/// Most candidates of the variational scheme. The time of one of its iterations grows with the third power of their
/// number.
pub(super) const MOST_VARIATIONAL: usize = 200;
/// Tolerance of the variational scheme, in nats of its bound. It is far below the differences between held-out rows,
/// and it is reached 10 to 20 times faster than the default tolerance of the scheme.
const VARIATIONAL_TOLERANCE: f64 = 1e-3;
/// Probability of the intervals whose coverage is a column of the table.
const LEVEL: f64 = 0.95;

/// Lower and upper ends of intervals, `[N]` each.
type Interval = (Array1<f64>, Array1<f64>);

/// Features and target of rows of a table.
pub(super) struct Data {
    /// Features in original units, [N, D]. Missing cells are NaN and are filled with the means of the training rows.
    pub x: Array2<f64>,
    pub target: Learned,
}

impl Data {
    /// Returns the data of some of the rows.
    pub fn part(&self, rows: &[usize]) -> Data {
        let target = match &self.target {
            Learned::Real(values) => Learned::Real(values.select(Axis(0), rows)),
            Learned::Classes { labels, names } => {
                Learned::Classes { labels: rows.iter().map(|row| labels[*row]).collect(), names: names.clone() }
            }
        };
        Data { x: self.x.select(Axis(0), rows), target }
    }

    /// Returns all rows sorted by features, then by target, so that folds and sums do not depend on the order of the
    /// table.
    pub fn in_order(self) -> Data {
        let target = |i: usize| match &self.target {
            Learned::Real(values) => values[i],
            Learned::Classes { labels, .. } => labels[i] as f64,
        };
        let row = |i: usize| self.x.row(i).into_iter().copied().chain([target(i)]);
        let compare = |i: &usize, j: &usize| row(*i).zip(row(*j)).map(|(a, b)| a.total_cmp(&b)).find(|o| o.is_ne());
        let mut order: Vec<usize> = (0..self.x.nrows()).collect();
        order.sort_by(|i, j| compare(i, j).unwrap_or(Ordering::Equal));
        self.part(&order)
    }

    pub fn labels(&self) -> Option<&[usize]> {
        match &self.target {
            Learned::Real(_) => None,
            Learned::Classes { labels, .. } => Some(labels),
        }
    }

    fn targets(&self) -> Targets<'_> {
        match &self.target {
            Learned::Real(values) => Targets::real(values.view()),
            Learned::Classes { labels, names } => Targets::classes(labels, names.len()),
        }
    }
}

/// Returns the means of the columns of `x`, [N, D], without missing cells. A column of missing cells has mean 0.
fn means(x: &Array2<f64>) -> Array1<f64> {
    let mean = |column: ArrayView1<f64>| {
        let there = column.iter().filter(|v| !v.is_nan());
        let (sum, count) = there.fold((0.0, 0.0), |(sum, count), v| (sum + v, count + 1.0));
        if count > 0.0 { sum / count } else { 0.0 }
    };
    x.axis_iter(Axis(1)).map(mean).collect()
}

/// Returns `x`, [N, D], with missing cells filled with the means.
fn filled<'a>(x: &'a Array2<f64>, means: &Array1<f64>) -> Cow<'a, Array2<f64>> {
    if !x.iter().any(|v| v.is_nan()) {
        return Cow::Borrowed(x);
    }
    let mut own = x.clone();
    own.outer_iter_mut()
        .for_each(|mut row| row.iter_mut().zip(means).filter(|(v, _)| v.is_nan()).for_each(|(v, mean)| *v = *mean));
    Cow::Owned(own)
}

/// Returns true if the inner folds choose gamma: the kernel is neither a sum nor periodic, and gamma is not given.
pub(super) fn has_gamma(kernel: &Kernel) -> bool {
    matches!(kernel.gamma(), Some(Gamma::Rule(_))) && kernel.as_sum().is_none()
}

/// A model of the table of results.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Row {
    /// Relevance vector machine by the search, gamma chosen by cross-validation.
    Rvm,
    /// Relevance vector machine by the search, gamma learned by the evidence.
    RvmEvidence,
    /// Variational scheme with the gamma of [`Row::Rvm`].
    Vrvm,
    Svm,
}

impl Row {
    /// Returns the rows of the requested models, each once.
    pub fn of(machines: &[Compared], workshop: &Workshop) -> Vec<Row> {
        let learns =
            has_gamma(&workshop.kernel) || workshop.learned.as_sum().is_some() && workshop.learned.learned_rule().is_some();
        let mut rows = Vec::new();
        for machine in machines {
            let own: &[Row] = match machine {
                Compared::Rvm if learns => &[Row::Rvm, Row::RvmEvidence],
                Compared::Rvm => &[Row::Rvm],
                Compared::Vrvm => &[Row::Vrvm],
                Compared::Svm => &[Row::Svm],
            };
            rows.extend(own.iter().filter(|row| !rows.contains(*row)).copied().collect::<Vec<_>>());
        }
        rows
    }

    pub fn name(self) -> &'static str {
        match self {
            Row::Rvm => "rvm",
            Row::RvmEvidence => "rvm evidence",
            Row::Vrvm => "vrvm",
            Row::Svm => "svm",
        }
    }
}

/// Settings and resources that all fits share.
pub(super) struct Workshop {
    pub kernel: Kernel,
    /// The kernel with the rule `evidence` for every gamma that is not given.
    pub learned: Kernel,
    pub standardize: bool,
    pub threads: Option<usize>,
    pub seed: u64,
    /// Own thread pool: the global pool belongs to the program that embeds this library.
    pub pool: rayon::ThreadPool,
}

/// A fitted model.
pub(super) struct Fitted {
    model: Model,
    /// Means of the features, `[D]`, which fill missing cells.
    means: Array1<f64>,
    pub converged: bool,
    pub seconds: f64,
}

impl Workshop {
    /// Fits a model. `probability`: a classifier gets probabilities, which a support vector machine needs a
    /// cross-validation for.
    pub fn fit(&self, row: Row, point: Point, data: &Data, probability: bool) -> Result<Fitted> {
        let start = Instant::now();
        let means = means(&data.x);
        let own = filled(&data.x, &means);
        let scaling = self.standardize.then(|| Scaling::of(own.view(), None));
        let scaled = scaling.as_ref().map(|s| s.apply(own.view()));
        let x = scaled.as_ref().unwrap_or(&own).view();
        let kernel = match point.gamma {
            _ if row == Row::RvmEvidence => self.learned.clone(),
            Some(multiple) => {
                let variance = x.var(0.0);
                self.kernel.with_gamma((multiple / (x.ncols() as f64 * if variance > 0.0 { variance } else { 1.0 })).into())
            }
            None => self.kernel.clone(),
        };
        let (model, status) = if row == Row::Svm {
            let (model, report) = self.svm(kernel, point, data, probability).fit(x, &data.targets())?;
            (model, report.status)
        } else {
            let (model, report) = self.rvm(kernel, row, data).fit(x, &data.targets())?;
            (model, report.status)
        };
        let model = Model { scaling, ..model };
        Ok(Fitted { model, means, converged: status == Status::Converged, seconds: start.elapsed().as_secs_f64() })
    }

    fn rvm(&self, kernel: Kernel, row: Row, data: &Data) -> Rvm {
        let (inference, dictionary) = match row {
            Row::Vrvm if data.x.nrows() > MOST_VARIATIONAL => (variational(), Dictionary::Size(MOST_VARIATIONAL)),
            Row::Vrvm => (variational(), Dictionary::default()),
            _ => (Rvm::tipping2001().inference, Dictionary::default()),
        };
        let likelihood = likelihood(data.target.task());
        Rvm { kernel, likelihood, inference, dictionary, threads: self.threads, seed: self.seed, ..Rvm::tipping2001() }
    }

    fn svm(&self, kernel: Kernel, point: Point, data: &Data, probability: bool) -> Svm {
        let (c, epsilon) = (point.c.unwrap_or(1.0), point.epsilon.unwrap_or(0.0));
        // Cost and tube are in units of the target's standard deviation, so that its unit has no effect.
        let unit = match &data.target {
            Learned::Classes { .. } => 1.0,
            Learned::Real(values) => Some(values.std(0.0)).filter(|sd| *sd > 0.0).unwrap_or(1.0),
        };
        let formulation = match data.target.task() {
            Task::Classify => CSvc { c }.into(),
            Task::Regress => EpsilonSvr { c: c * unit, epsilon: epsilon * unit }.into(),
        };
        let probability = probability && data.target.task() == Task::Classify;
        let svm = Svm { kernel, formulation, probability, threads: self.threads, seed: self.seed, ..Svm::default() };
        Svm { tolerance: svm.tolerance * unit, ..svm }
    }

    /// Returns the loss by which settings are chosen: the sum of squared errors, or the number of misclassified rows.
    pub fn loss(&self, fitted: &Fitted, test: &Data) -> Result<f64> {
        let x = filled(&test.x, &fitted.means);
        self.pool.install(|| match &test.target {
            Learned::Real(truth) => {
                let mean = fitted.model.predict_mean(x.view())?;
                Ok((&mean - truth).mapv(|e| e * e).sum())
            }
            Learned::Classes { labels, .. } => {
                let classes = fitted.model.predict_class(x.view())?;
                Ok(classes.iter().zip(labels).filter(|(k, l)| k != l).count() as f64)
            }
        })
    }

    /// Returns the measures on test rows, in the order of the columns, and the seconds that the predictions took. A
    /// measure that the model does not have is `None`.
    pub fn measure(&self, fitted: &Fitted, test: &Data) -> Result<(Vec<Option<f64>>, f64)> {
        let own = filled(&test.x, &fitted.means);
        let (model, x) = (&fitted.model, own.view());
        let start = Instant::now();
        match &test.target {
            Learned::Real(truth) if model.posterior.is_none() => {
                let mean = self.pool.install(|| model.predict_mean(x))?;
                Ok((of_values(truth, &mean, None), start.elapsed().as_secs_f64()))
            }
            Learned::Real(truth) => {
                let prediction = self.pool.install(|| model.predict(x))?;
                let seconds = start.elapsed().as_secs_f64();
                let ends = self.pool.install(|| model.interval(&prediction, LEVEL, None))?;
                Ok((of_values(truth, &prediction.mean, Some((&prediction, ends))), seconds))
            }
            Learned::Classes { labels, .. } => {
                let log_probability = self.pool.install(|| model.predict_log_probability(x, Moderation::Posterior))?;
                let seconds = start.elapsed().as_secs_f64();
                let classes = self.pool.install(|| model.predict_class(x))?;
                let p = log_probability.view();
                let all = [
                    metrics::error_rate(labels, &classes),
                    metrics::log_loss(labels, p),
                    metrics::brier(labels, p),
                    metrics::calibration_error(labels, p),
                ];
                Ok((all.map(Some).to_vec(), seconds))
            }
        }
    }
}

impl Fitted {
    /// Returns the number of kernels that a prediction evaluates.
    pub fn kernels(&self) -> usize {
        self.model.relevance.len()
    }
}

/// Returns the variational scheme that prunes weights at the end, so that the remaining kernels can be counted.
fn variational() -> Inference {
    Variational { prune: true, tolerance: VARIATIONAL_TOLERANCE, ..Variational::default() }.into()
}

/// Returns the measures of values from the true values and the predictions. Without intervals their measures are
/// `None`.
fn of_values(truth: &Array1<f64>, mean: &Array1<f64>, prediction: Option<(&Prediction, Interval)>) -> Vec<Option<f64>> {
    let (truth, mean) = (truth.to_vec(), mean.to_vec());
    let density = |p: &Prediction| metrics::negative_log_density(&truth, &mean, &p.variance().to_vec());
    vec![
        Some(metrics::rmse(&truth, &mean)),
        Some(metrics::mae(&truth, &mean)),
        prediction.as_ref().map(|(p, _)| density(p)),
        prediction.map(|(_, (lower, upper))| metrics::coverage(&truth, &lower.to_vec(), &upper.to_vec())),
    ]
}

#[cfg(test)]
mod tests {
    use ndarray::array;
    use relvec::Rbf;

    use super::*;

    fn workshop() -> Workshop {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
        let kernel: Kernel = Rbf::default().into();
        let learned = kernel.with_gamma(Gamma::Rule(relvec::GammaRule::Evidence));
        Workshop { kernel, learned, standardize: true, threads: Some(1), seed: 0, pool }
    }

    /// Rows with features in very different units and a target far from zero.
    fn data(unit: f64) -> Data {
        let x = Array2::from_shape_fn((30, 2), |(i, d)| ((i * (3 + 4 * d)) % 17) as f64 * [1.0, 1e4][d]);
        let t = x.outer_iter().map(|row| unit * (40.0 + row[0].sin() + 1e-4 * row[1])).collect();
        Data { x, target: Learned::Real(t) }
    }

    #[test]
    fn settings_are_in_units_of_the_rows_learnt_from() {
        let (rows, own) = (data(1.0), workshop());
        let fitted = own.fit(Row::Rvm, Point { gamma: Some(0.5), ..Point::default() }, &rows, true).unwrap();
        // For two standardised features, gamma is half of 1 / (2 x 1).
        let Some(Kernel::Rbf(kernel)) = fitted.model.kernel() else { panic!("another kernel") };
        assert!(matches!(kernel.gamma, Gamma::Value(v) if (v - 0.25).abs() < 1e-12), "{kernel:?}");

        let point = Point { gamma: Some(0.5), c: Some(10.0), epsilon: Some(0.1) };
        let [one, large] = [1.0, 1024.0].map(|unit| {
            let fitted = own.fit(Row::Svm, point, &data(unit), true).unwrap();
            (fitted.kernels(), fitted.model.predict_mean(rows.x.view()).unwrap() / unit)
        });
        assert_eq!(one.0, large.0);
        assert!((&one.1 - &large.1).iter().all(|d| d.abs() < 1e-9));
    }

    #[test]
    fn parts_hold_their_rows() {
        let part = data(1.0).part(&[2, 5]);
        assert_eq!(part.x, array![[6.0, 14e4], [15.0, 1e4]]);
        assert!(matches!(part.target, Learned::Real(t) if t.len() == 2));
    }
}
