//! A classifier from regression on labels: its link, the few centres that carry its probabilities, and their weights, (M84) to
//! (M86).

use std::time::Instant;

use ndarray::{Array1, Array2, Axis, s};

use super::choice;
use super::fitc::Fitc;
use super::kernel::STRUCTURE;
use super::label_rows::Labels;
use super::labels::Dense;
use super::link;
use super::pivots::Pivots;
use super::process::Points;
use crate::error::{Error, Result};
use crate::kernel::Kernel;
use crate::likelihood::Likelihood;
use crate::linalg;
use crate::model::{Expansion, FittedBasis, LabelRegression, Model, Variance};
use crate::report::{Actions, Certificate, ProcessFit, Repairs, Report, Status};
use crate::rvm::data::table::{Learnt, Table};
use crate::rvm::search::watch::Watch;
use crate::rvm::settings::dictionary::Landmarks;
use crate::rvm::settings::rvm::Rvm;

/// What label regression has found.
struct Found {
    /// Log probability of the left-out classes, (M82).
    log_probability: f64,
    /// Mean divergence of the probabilities from those of all rows, in nats.
    divergence: f64,
    /// The user's rows that are centres, ascending.
    relevance: Vec<usize>,
    /// [M, D].
    centres: Array2<f64>,
    /// The constants and weights of the scores, `[C]` and [M, C].
    constant: Array1<f64>,
    weights: Array2<f64>,
}

impl Rvm {
    /// Whether classes of a table are learnt by regression on their labels.
    ///
    /// # Errors
    /// Returns the errors of [`Rvm::has_process`].
    pub(in crate::rvm) fn regresses_labels(&self, table: &Table) -> Result<bool> {
        Ok(self.likelihood.is_for_classes() && self.has_process(table)?)
    }

    /// The classifier of a table by regression on the labels, under a process prior.
    pub(in crate::rvm) fn fit_labels(&self, table: &Table, watch: &mut Watch) -> Result<(Model, Report)> {
        let begin = Instant::now();
        let learnt = match &table.learnt {
            Some(learnt) => learnt.clone(),
            None => {
                let given = Rvm { kernel: table.kernel(), kernels: vec![], ..self.clone() };
                choice::by_process(&given, table)?.0
            }
        };
        let all = table.rows.nrows();
        let most = if table.interrupt.is_late() { choice::ROWS } else { choice::MOST_ROWS };
        let rows = choice::affordable(table, most)?;
        let sample = (rows < all).then(|| table.with_rows(self, &Landmarks::any(all, rows, self.seed)));
        let part = sample.as_ref().unwrap_or(table);
        let labels = Labels::of(part, &(0..part.rows.nrows()).collect::<Vec<_>>());
        let found = if learnt.has_structure { self.regress(part, &labels, &learnt)? } else { None };
        let status = match rows < all {
            _ if table.interrupt.is_late() => Status::TimeLimit,
            true => Status::MemoryLimit,
            false => Status::Converged,
        };
        let found = match found {
            Some(found) => found,
            None => Found::nothing(table),
        };
        let (log_probability, active) = (found.log_probability, found.relevance.len() + 1);
        watch.tell_model(log_probability, None, active);
        let process = ProcessFit {
            centres: found.relevance.len(),
            searched: 0,
            residual: found.divergence,
            reached: found.divergence <= self.most_residual(),
            evaluations: learnt.evaluations,
            seconds: begin.elapsed().as_secs_f64(),
        };
        let trace = std::mem::take(&mut watch.trace);
        let ratio = if found.relevance.is_empty() { 0.0 } else { learnt.hyper.log_amplitude.exp() };
        let model = found.model(table, &learnt.kernel, ratio, status, trace.len())?;
        let reason = match status {
            Status::TimeLimit => "time_limit ended the choice of the kernel, of rows or of centres",
            Status::MemoryLimit => "memory_limit leaves room for some of the rows only",
            _ if model.relevance.is_empty() => "the features tell nothing of the classes: their frequencies are predicted",
            _ if !process.reached => "there is no room for more centres, or every other row is spanned by them",
            _ => "the probabilities of the centres are those of all rows to within the divergence asked for",
        };
        let report = Report {
            status,
            iterations: trace.len(),
            trace,
            candidates: table.dictionary_size(),
            certificate: Certificate { largest_gain: None, largest_gradient: 0.0, reason: reason.into() },
            repairs: Repairs { left_out_rows: all - rows, ..part.repairs.clone() },
            interpolation: None,
            nothing_found: model.relevance.is_empty(),
            actions: Actions { added: model.relevance.len(), ..Actions::default() },
            kernel_search: None,
            centre_search: None,
            process: Some(process),
            row_weights: vec![],
            precisions: None,
            validation: None,
            seconds: watch.elapsed().as_secs_f64(),
            members: vec![],
        };
        Ok((model, report))
    }

    /// Link, centres and weights for the labels of a table; `None` where the frequencies of the classes are as good.
    fn regress(&self, table: &Table, labels: &Labels, learnt: &Learnt) -> Result<Option<Found>> {
        let log_ratio = learnt.hyper.log_amplitude;
        let singular = |columns: usize| Error::Singular { columns, jitter: 0.0 };
        let score = labels.score(&learnt.kernel, log_ratio).ok_or_else(|| singular(labels.rows.len()))?;
        // More rows than the kernel was learnt from may tell something where those did not, or nothing.
        if score.value + learnt.log_posterior - learnt.log_evidence - labels.null < STRUCTURE {
            return Ok(None);
        }
        let (w, probabilities) = link::matrix(labels, score.means.view(), score.theta, &table.interrupt)?;
        let points = Points::of(table, &labels.rows);
        let mut pivots = Pivots::new(&learnt.kernel, points.x.view())?;
        // What the centres have to carry of the dense scores, [points, C].
        let mut left = linalg::times(dense_at(&points, labels, &score.dense, &learnt.kernel, log_ratio).view(), w.t());
        let most = self.most_centres(table, points.x.nrows());
        let n = labels.rows.len();
        let divergence = loop {
            let divergence = link::divergence(labels, probabilities.view(), left.slice(s![..n, ..]));
            if table.interrupt.is_raised_by_hand() {
                return Err(Error::Interrupted);
            }
            if divergence <= self.most_residual() || pivots.centres().len() == most || table.interrupt.is_late() {
                break divergence;
            }
            let Some(point) = farthest(&pivots, points.first, &left) else { break divergence };
            if pivots.add(point) {
                // Newton's basis: what is left of an interpolant is 0 at the centres.
                let column = pivots.features().row(pivots.centres().len() - 1).to_owned();
                let share = left.row(point).mapv(|v| v / column[point]);
                left.outer_iter_mut().zip(&column).for_each(|(mut left, v)| left.scaled_add(-v, &share));
            }
        };
        let m = pivots.centres().len();
        if m == 0 {
            return Ok(None);
        }
        let none = vec![0.0; n];
        let features = pivots.features();
        let fitc = Fitc { rows: &labels.rows, features: features.slice(s![.., ..n]), residual: &none, bias: true };
        let mean = fitc.weights(log_ratio)?.ok_or_else(|| singular(m))?.mean;
        let constant = w.dot(&mean.row(0));
        let mut weights = linalg::times(mean.slice(s![1.., ..]), w.t());
        linalg::solve_lower_transposed(pivots.factor().view(), weights.view_mut());
        let origin: Vec<usize> = pivots.centres().iter().map(|point| table.origin[point - points.first]).collect();
        let mut order: Vec<usize> = (0..m).collect();
        order.sort_unstable_by_key(|k| origin[*k]);
        let places: Vec<usize> = order.iter().map(|k| pivots.centres()[*k]).collect();
        Ok(Some(Found {
            log_probability: score.value,
            divergence,
            relevance: order.iter().map(|k| origin[*k]).collect(),
            centres: points.x.select(Axis(0), &places),
            constant,
            weights: weights.select(Axis(0), &order),
        }))
    }
}

/// The mean of the dense regression at points, the constant left out, [points, C]: rho K alpha.
fn dense_at(points: &Points, labels: &Labels, dense: &Dense, kernel: &Kernel, log_ratio: f64) -> Array2<f64> {
    let alpha = &dense.alpha * log_ratio.exp();
    let mut out = Array2::zeros((points.x.nrows(), labels.classes()));
    let mut k = Array2::zeros((points.x.nrows(), labels.rows.len()));
    kernel.block(points.x.view(), labels.rows.x.view(), k.view_mut());
    linalg::product(false, 1.0, k.view(), alpha.view(), out.view_mut());
    out
}

/// The point, from `first` on, where the scores are farthest from what the centres carry, up to what all classes share; the first
/// of equals, if there is one that the centres do not span.
fn farthest(pivots: &Pivots, first: usize, left: &Array2<f64>) -> Option<usize> {
    let mut best = None;
    for point in (first..left.nrows()).filter(|point| !pivots.spans(*point)) {
        let row = left.row(point);
        let mean = row.sum() / row.len() as f64;
        let distance: f64 = row.iter().map(|v| (v - mean).powi(2)).sum();
        if best.is_none_or(|(largest, _)| distance > largest) {
            best = Some((distance, point));
        }
    }
    best.map(|(_, point)| point)
}

impl Found {
    /// The frequencies of the classes of a table.
    fn nothing(table: &Table) -> Found {
        let mut shares = vec![0.0; table.outputs + 1];
        table.targets.iter().zip(&table.weights).for_each(|(class, weight)| shares[*class as usize] += weight / table.count);
        let of_class = |share: &f64| if *share > 0.0 { share * table.count * share.ln() } else { 0.0 };
        Found {
            log_probability: shares.iter().map(of_class).sum(),
            divergence: 0.0,
            relevance: vec![],
            centres: Array2::zeros((0, table.rows.ncols())),
            constant: shares.iter().map(|share| share.max(f64::MIN_POSITIVE).ln()).collect(),
            weights: Array2::zeros((0, shares.len())),
        }
    }

    /// The model, of which two classes have one function, the log odds of the second; functions of several sum to 0.
    fn model(self, table: &Table, kernel: &Kernel, ratio: f64, status: Status, iterations: usize) -> Result<Model> {
        let Found { log_probability, divergence, relevance, centres, constant, weights } = self;
        let two = !matches!(table.rvm.likelihood, Likelihood::Softmax(_));
        let functions = |scores: &Array2<f64>| match two {
            true => (&scores.slice(s![.., 1..]) - &scores.slice(s![.., ..1])).as_standard_layout().into_owned(),
            false => scores - &(scores.sum_axis(Axis(1)) / scores.ncols() as f64).insert_axis(Axis(1)),
        };
        let intercept = functions(&constant.insert_axis(Axis(0))).into_raw_vec_and_offset().0;
        let weights = functions(&weights);
        if let Some(bad) = weights.iter().chain(&intercept).chain([&ratio, &log_probability]).find(|v| !v.is_finite()) {
            return Err(Error::Overflow { what: format!("a number of the trained classifier ({bad})") });
        }
        let expansion = Expansion { basis: FittedBasis::Kernel { kernel: kernel.clone(), centres }, weights, intercept };
        Ok(Model {
            relevance,
            expansion,
            log_evidence: Some(log_probability),
            status,
            iterations,
            labels: Some(LabelRegression { ratio, divergence }),
            ..bare(table, kernel)
        })
    }
}

/// A model for the rows of a table that has nothing in it yet, of a machine without precisions.
pub(super) fn bare(table: &Table, kernel: &Kernel) -> Model {
    let basis = FittedBasis::Kernel { kernel: kernel.clone(), centres: Array2::zeros((0, table.rows.ncols())) };
    Model {
        machine: "rvm".into(),
        likelihood: Some(table.rvm.likelihood.clone()),
        inference: Some(table.rvm.inference.name().into()),
        features: vec![],
        target: None,
        targets: vec![],
        classes: vec![],
        class_frequencies: vec![],
        scaling: None,
        n_features: table.rows.ncols(),
        n_rows: table.n_rows,
        relevance: vec![],
        expansion: Expansion { basis, weights: Array2::zeros((0, 1)), intercept: vec![0.0] },
        alpha: vec![],
        intercept_alpha: Some(0.0),
        class_alpha: vec![],
        feature_relevance: vec![],
        learned_centres: false,
        interpolates: false,
        posterior: None,
        log_evidence: None,
        status: Status::Converged,
        iterations: 0,
        committee: None,
        margins: None,
        variance: Variance::Posterior,
        process: None,
        labels: None,
        kept_rows: None,
        statistics: None,
    }
}
