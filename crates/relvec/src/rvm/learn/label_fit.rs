//! Fits a classifier by regression on labels: on all rows at once, or on a large training set by sums.

use std::time::Instant;

use ndarray::{Array2, s};

use super::all_rows::AllRows;
use super::fitc::Fitc;
use super::kernel::STRUCTURE;
use super::kernel_choice;
use super::label_model::{Found, Regression, singular};
use super::label_rows::Labels;
use super::labels::{DenseRegression, Score};
use super::merged_rows::MOST_ROWS;
use super::pivoted_cholesky::{Pivots, Points};
use crate::error::Result;
use crate::kernel::Kernel;
use crate::linalg;
use crate::model::Model;
use crate::report::{Actions, Adjustments, Certificate, ProcessFit, Report, Status};
use crate::rvm::data::training_set::{Learned, TrainingSet};
use crate::rvm::search::driver::FitDriver;
use crate::rvm::settings::dictionary::Landmarks;
use crate::rvm::settings::rvm::Rvm;

impl Rvm {
    /// Fits a classifier to a training set by regression on the labels, under a process prior.
    pub(in crate::rvm) fn fit_labels(&self, training: &TrainingSet, driver: &mut FitDriver) -> Result<(Model, Report)> {
        self.fit_labels_of(training, None, driver)
    }

    /// Fits a classifier to `rows`, of which `training` contains a sample, or to the training set if `rows` is `None`.
    pub(in crate::rvm) fn fit_labels_of(
        &self,
        training: &TrainingSet,
        rows: Option<&AllRows>,
        driver: &mut FitDriver,
    ) -> Result<(Model, Report)> {
        let begin = Instant::now();
        let learned = match &training.learned {
            Some(learned) => learned.clone(),
            None => {
                let given = Rvm { kernel: training.kernel(), kernels: vec![], ..self.clone() };
                kernel_choice::by_process(&given, training)?.0
            }
        };
        let all = training.rows.nrows();
        let whole = match rows {
            Some(rows) => self.regress_rows(training, rows, &learned)?,
            None if all > MOST_ROWS => self.regress_many(training, &learned)?,
            None => None,
        };
        let partly = rows.is_some() && whole.is_none();
        let (found, rows, adjustments) = match whole {
            Some(found) => (found, all, training.adjustments.clone()),
            None => {
                let most = if training.interrupt.is_late() { kernel_choice::ROWS } else { MOST_ROWS };
                let rows = kernel_choice::affordable(training, most)?;
                let sample = (rows < all).then(|| training.with_rows(self, &Landmarks::any(all, rows, self.seed)));
                let part = sample.as_ref().unwrap_or(training);
                let labels = Labels::of(part, &(0..part.rows.nrows()).collect::<Vec<_>>());
                let found = if learned.has_structure { self.regress(part, &labels, &learned)? } else { None };
                (found.unwrap_or_else(|| Found::nothing(training)), rows, part.adjustments.clone())
            }
        };
        let status = match rows < all {
            _ if partly || training.interrupt.is_late() => Status::TimeLimit,
            true => Status::MemoryLimit,
            false => Status::Converged,
        };
        let (log_probability, active) = (found.log_probability, found.relevance.len() + 1);
        driver.tell_model(log_probability, None, active);
        let process = ProcessFit {
            centres: found.relevance.len(),
            searched: 0,
            residual: found.divergence,
            reached: found.divergence <= self.most_residual(),
            evaluations: learned.evaluations,
            seconds: begin.elapsed().as_secs_f64(),
        };
        let trace = std::mem::take(&mut driver.trace);
        let model = found.model(training, &learned.kernel, status, trace.len())?;
        let reason = match status {
            Status::TimeLimit => "time_limit ended the choice of the kernel, the rows or the centres",
            Status::MemoryLimit => "memory_limit allows only a sample of the rows",
            _ if model.relevance.is_empty() => {
                "the features carry no information about the classes: the model predicts their frequencies"
            }
            _ if !process.reached => "dictionary or memory_limit allows no more centres, or the centres span every other row",
            _ => "the divergence from the probabilities of all rows is as low as requested",
        };
        let report = Report {
            candidates: training.dictionary_size(),
            adjustments: Adjustments { left_out_rows: all - rows, ..adjustments },
            nothing_found: model.relevance.is_empty(),
            actions: Actions { added: model.relevance.len(), ..Actions::default() },
            process: Some(process),
            ..Report::of_end(status, trace, Certificate::of_reason(reason), driver.elapsed().as_secs_f64())
        };
        Ok((model, report))
    }

    /// Returns link, centres and weights for the labels of a training set; `None` if the class frequencies are as good.
    fn regress(&self, training: &TrainingSet, labels: &Labels, learned: &Learned) -> Result<Option<Found>> {
        let log_ratio = learned.hyper.log_amplitude;
        let score = labels.score(&learned.kernel, log_ratio).ok_or_else(|| singular(labels.rows.len()))?;
        // There may be more rows than the kernel was learned from, so that the gain over the class frequencies is
        // checked again.
        if score.value + learned.log_posterior - learned.log_evidence - labels.null < STRUCTURE {
            return Ok(None);
        }
        let points = Points::of(training, &labels.rows);
        let scores = dense_at(&points, labels, &score.dense, &learned.kernel, log_ratio);
        let n = labels.rows.len();
        let weights = |pivots: &Pivots| {
            let (none, features) = (vec![0.0; n], pivots.features());
            let fitc = Fitc { rows: &labels.rows, features: features.slice(s![.., ..n]), residual: &none, bias: true };
            Ok(fitc.weights(log_ratio)?.ok_or_else(|| singular(pivots.centres().len()))?.mean)
        };
        let origin: Vec<usize> = (points.first..points.x.nrows()).map(|point| training.origin[point - points.first]).collect();
        let Score { value, theta, means, .. } = score;
        Regression { labels, value, theta, means, points, origin, scores, log_ratio }.carried(
            self,
            training,
            &learned.kernel,
            weights,
        )
    }
}

/// Returns the mean of the dense regression at points without the constant, rho K alpha, [points, C].
fn dense_at(points: &Points, labels: &Labels, dense: &DenseRegression, kernel: &Kernel, log_ratio: f64) -> Array2<f64> {
    let alpha = &dense.alpha * log_ratio.exp();
    let mut out = Array2::zeros((points.x.nrows(), labels.classes()));
    let mut k = Array2::zeros((points.x.nrows(), labels.rows.len()));
    kernel.block(points.x.view(), labels.rows.x.view(), k.view_mut());
    linalg::product(false, 1.0, k.view(), alpha.view(), out.view_mut());
    out
}
