//! Fits a classifier by regression on labels, (M84) to (M86): its link, the few centres that represent its
//! probabilities, and their weights. The means are those of all rows at once, or on a large training set those of sums
//! over all rows, (M87).

use std::time::Instant;

use ndarray::{Array2, Axis, concatenate, s};

use crate::canonical::random_subset;
use crate::error::{Error, Result};
use crate::kernel::Kernel;
use crate::likelihood::Likelihood;
use crate::linalg;
use crate::linalg::Cholesky;
use crate::model::{Expansion, FittedBasis, LabelRegression, Model};
use crate::process::fitc::Fitc;
use crate::process::kernel::STRUCTURE;
use crate::process::label_centres::{Classifier, Regression};
use crate::process::label_rows::Labels;
use crate::process::label_sums::RatioFit;
use crate::process::labels::{DenseRegression, Score};
use crate::process::pivoted_cholesky::{Pivots, Points};
use crate::process::{Learned, label_sums};
use crate::query::pass::AllRows;
use crate::query::sums::RatioSums;
use crate::report::{Actions, Adjustments, Certificate, ProcessFit, Report, Status};
use crate::rvm::data::training_set::TrainingSet;
use crate::rvm::learn::{kernel_choice, process_prior};
use crate::rvm::search::driver::FitDriver;
use crate::rvm::settings::rvm::Rvm;

/// Returns a classifier that predicts the class frequencies of a training set.
fn frequencies(training: &TrainingSet) -> Classifier {
    let mut shares = vec![0.0; training.outputs + 1];
    training.targets.iter().zip(&training.weights).for_each(|(class, weight)| shares[*class as usize] += weight / training.count);
    let of_class = |share: &f64| if *share > 0.0 { share * training.count * share.ln() } else { 0.0 };
    Classifier {
        log_probability: shares.iter().map(of_class).sum(),
        ratio: 0.0,
        divergence: 0.0,
        relevance: vec![],
        centres: Array2::zeros((0, training.rows.ncols())),
        constant: shares.iter().map(|share| share.max(f64::MIN_POSITIVE).ln()).collect(),
        weights: Array2::zeros((0, shares.len())),
    }
}

/// Returns the model. For two classes it has one function, the log odds of the second class. For more classes the
/// functions sum to 0.
fn model_of(found: Classifier, training: &TrainingSet, kernel: &Kernel, status: Status, iterations: usize) -> Result<Model> {
    let Classifier { log_probability, ratio, divergence, relevance, centres, constant, weights } = found;
    let two = !matches!(training.rvm.likelihood, Likelihood::Softmax(_));
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
        log_evidence: Some(log_probability),
        status,
        iterations,
        labels: Some(LabelRegression { ratio, divergence }),
        intercept_alpha: Some(0.0),
        ..training.model_of(expansion)
    })
}

impl Rvm {
    /// Fits a classifier by regression on the labels, under a process prior: to `rows`, of which `training` contains a
    /// sample, or to the training set if `rows` is `None`.
    pub(in crate::rvm) fn fit_labels(
        &self,
        training: &TrainingSet,
        rows: Option<&AllRows>,
        driver: &mut FitDriver,
    ) -> Result<(Model, Report)> {
        let begin = Instant::now();
        let learned = self.learned_of(training)?;
        let all = training.rows.nrows();
        let known = training.draw(all, self.seed).len();
        let whole = match rows {
            Some(rows) => self.regress_rows(training, rows, &learned)?,
            None if all > kernel_choice::MOST_ROWS || known < all => self.regress_many(training, &learned)?,
            None => None,
        };
        let partly = rows.is_some() && whole.is_none();
        let (found, rows, adjustments) = match whole {
            Some(found) => (found, all, training.adjustments.clone()),
            None => {
                let most = if training.interrupt.is_late() { kernel_choice::ROWS } else { kernel_choice::MOST_ROWS };
                let rows = kernel_choice::affordable(training, most)?.min(known);
                let sample = (rows < all).then(|| training.with_rows(self, &training.draw(rows, self.seed)));
                let part = sample.as_ref().unwrap_or(training);
                let labels = part.labels_of(&(0..part.rows.nrows()).collect::<Vec<_>>());
                let found = if learned.has_structure { self.regress(part, &labels, &learned)? } else { None };
                (found.unwrap_or_else(|| frequencies(training)), rows, part.adjustments.clone())
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
        let model = model_of(found, training, &learned.kernel, status, trace.len())?;
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
    fn regress(&self, training: &TrainingSet, labels: &Labels, learned: &Learned) -> Result<Option<Classifier>> {
        let log_ratio = learned.hyper.log_amplitude;
        let score = labels.score(&learned.kernel, log_ratio).ok_or_else(|| singular(labels.rows.len()))?;
        // There may be more rows than the kernel was learned from, so that the gain over the class frequencies is
        // checked again.
        if score.value + learned.log_posterior - learned.log_evidence - labels.null < STRUCTURE {
            return Ok(None);
        }
        let points = training.points_of(&labels.rows);
        let scores = dense_at(&points, labels, &score.dense, &learned.kernel, log_ratio);
        let n = labels.rows.len();
        let weights = |pivots: &Pivots| {
            let (none, features) = (vec![0.0; n], pivots.features());
            let fitc = Fitc { rows: &labels.rows, features: features.slice(s![.., ..n]), residual: &none, bias: true };
            Ok(fitc.weights(log_ratio)?.ok_or_else(|| singular(pivots.centres().len()))?.mean)
        };
        let origin: Vec<usize> = (points.first..points.x.nrows()).map(|point| training.origin[point - points.first]).collect();
        let Score { value, theta, means, .. } = score;
        let most = (self.most_centres(training, points.x.nrows(), 1), self.most_residual());
        let regression = Regression { labels, value, theta, means, points, origin, scores, log_ratio };
        regression.classifier(&learned.kernel, most, &training.interrupt, weights)
    }

    /// Returns link, centres and weights for the labels of a large training set; `None` if there is no time or memory
    /// for all rows.
    fn regress_many(&self, training: &TrainingSet, learned: &Learned) -> Result<Option<Classifier>> {
        let n = training.rows.nrows();
        let bytes = 8 * (n * (training.rows.ncols() + training.outputs + 1)) as u64;
        if training.interrupt.is_late() || training.taken + bytes > training.memory_limit {
            return Ok(None);
        }
        let all = training.labels_of(&(0..n).collect::<Vec<_>>());
        self.regress_rows(training, &AllRows::Held(&all.rows), learned)
    }

    /// Returns link, centres and weights for the labels of `rows`, of which `training` contains all or a sample; `None`
    /// if there is no time for all rows.
    fn regress_rows(&self, training: &TrainingSet, rows: &AllRows, learned: &Learned) -> Result<Option<Classifier>> {
        if training.interrupt.is_late() {
            return Ok(None);
        }
        let (n, kernel) = (training.rows.nrows(), &learned.kernel);
        let labels = training.labels_of(&random_subset(n, kernel_choice::MOST_ROWS, self.seed.wrapping_add(2)));
        let drawn = self.drawn(training, labels.rows.len(), 1);
        let points = Points {
            x: concatenate![Axis(0), labels.rows.x, process_prior::centres_of(training, &drawn)],
            first: labels.rows.len(),
        };
        let interrupt = &training.interrupt;
        let found = label_sums::regression(&labels, rows, &points, kernel, learned.hyper.log_amplitude, interrupt)?;
        let Some((pivots, point)) = found else { return Ok(None) };
        if point.log_posterior - labels.null < STRUCTURE {
            return Ok(Some(frequencies(training)));
        }
        let scores = linalg::times(pivots.features().t(), point.weights.slice(s![1.., ..]));
        let RatioFit { log_ratio, value, theta, means, count, .. } = point;
        // The log probability of the left-out rows is scaled to the weight of all rows.
        let value = value * count / labels.rows.count;
        let weights = |pivots: &Pivots| {
            let sums = label_sums::sums_at(pivots, rows, &points, kernel, interrupt)?;
            let (RatioSums { mut gram, mut right, .. }, _) = sums.ok_or(Error::Interrupted)?;
            gram.diag_mut().slice_mut(s![1..]).mapv_inplace(|v| v + (-log_ratio).exp());
            Cholesky::new(gram, 0.0)?.solve(right.view_mut());
            Ok(right)
        };
        let origin = drawn.iter().map(|candidate| training.origin[*candidate]).collect();
        let regression = Regression { labels: &labels, value, theta, means, points: points.clone(), origin, scores, log_ratio };
        let most = (self.most_centres(training, points.x.nrows(), 1), self.most_residual());
        match regression.classifier(kernel, most, interrupt, weights) {
            Err(Error::Interrupted) if !training.interrupt.is_raised_by_hand() => Ok(None),
            found => Ok(Some(found?.unwrap_or_else(|| frequencies(training)))),
        }
    }
}

fn singular(columns: usize) -> Error {
    Error::Singular { columns, jitter: 0.0 }
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
