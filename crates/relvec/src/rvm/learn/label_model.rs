//! Assembles a classifier from a regression on labels, (M84) to (M86): its link, the few centres that represent its
//! probabilities, and their weights.

use ndarray::{Array1, Array2, Axis, s};

use super::label_rows::Labels;
use super::link;
use super::pivoted_cholesky::{Pivots, Points};
use crate::error::{Error, Result};
use crate::kernel::Kernel;
use crate::likelihood::Likelihood;
use crate::linalg;
use crate::model::{Expansion, FittedBasis, LabelRegression, Model};
use crate::report::Status;
use crate::rvm::data::training_set::TrainingSet;
use crate::rvm::settings::rvm::Rvm;

/// A classifier before its conversion to a model.
pub(super) struct Found {
    /// Log probability of the left-out classes, (M82).
    pub log_probability: f64,
    /// rho.
    ratio: f64,
    /// Mean divergence of the probabilities from those of all rows, in nats.
    pub divergence: f64,
    /// The user's rows that are centres, ascending.
    pub relevance: Vec<usize>,
    /// Centres, [M, D].
    centres: Array2<f64>,
    /// Constants, `[C]`, and weights, [M, C], of the scores.
    constant: Array1<f64>,
    weights: Array2<f64>,
}

/// A regression on labels, from which link and centres are computed.
pub(super) struct Regression<'a> {
    /// Rows that are left out in turn: all, or some of a large training set.
    pub labels: &'a Labels,
    /// v, theta, and A, [S, C].
    pub value: f64,
    pub theta: f64,
    pub means: Array2<f64>,
    /// The rows of `labels`, followed by the points that may become centres.
    pub points: Points,
    /// The user's row, or landmark, of each point that may become a centre.
    pub origin: Vec<usize>,
    /// The mean at the points without the constant, [points, C].
    pub scores: Array2<f64>,
    pub log_ratio: f64,
}

impl Regression<'_> {
    /// Fits the link, chooses the few centres that represent the probabilities, and computes their weights. `weights`
    /// returns the constant and the weights of the centres' features, [1 + M, C]. Returns `None` if no centre is
    /// needed.
    pub fn carried(
        self,
        rvm: &Rvm,
        training: &TrainingSet,
        kernel: &Kernel,
        weights: impl FnOnce(&Pivots) -> Result<Array2<f64>>,
    ) -> Result<Option<Found>> {
        let Regression { labels, points, .. } = &self;
        let (w, probabilities) = link::matrix(labels, self.means.view(), self.theta, &training.interrupt)?;
        let mut pivots = Pivots::new(kernel, points.x.view())?;
        // Scores that the centres do not represent yet, [points, C].
        let mut left = linalg::times(self.scores.view(), w.t());
        let most = rvm.most_centres(training, points.x.nrows(), 1);
        let divergence = loop {
            let divergence = link::divergence(labels, probabilities.view(), left.slice(s![..labels.rows.len(), ..]));
            if training.interrupt.is_raised_by_hand() {
                return Err(Error::Interrupted);
            }
            if divergence <= rvm.most_residual() || pivots.centres().len() == most || training.interrupt.is_late() {
                break divergence;
            }
            let Some(point) = farthest(&pivots, points.first, &left) else { break divergence };
            if pivots.add(point) {
                // In Newton's basis, the residual of an interpolant is 0 at the centres.
                let column = pivots.features().row(pivots.centres().len() - 1).to_owned();
                let share = left.row(point).mapv(|v| v / column[point]);
                left.outer_iter_mut().zip(&column).for_each(|(mut left, v)| left.scaled_add(-v, &share));
            }
        };
        let m = pivots.centres().len();
        if m == 0 {
            return Ok(None);
        }
        let mean = weights(&pivots)?;
        let constant = w.dot(&mean.row(0));
        let mut weights = linalg::times(mean.slice(s![1.., ..]), w.t());
        linalg::solve_lower_transposed(pivots.factor().view(), weights.view_mut());
        let origin: Vec<usize> = pivots.centres().iter().map(|point| self.origin[point - points.first]).collect();
        let mut order: Vec<usize> = (0..m).collect();
        order.sort_unstable_by_key(|k| origin[*k]);
        let chosen: Vec<usize> = order.iter().map(|k| pivots.centres()[*k]).collect();
        Ok(Some(Found {
            log_probability: self.value,
            ratio: self.log_ratio.exp(),
            divergence,
            relevance: order.iter().map(|k| origin[*k]).collect(),
            centres: points.x.select(Axis(0), &chosen),
            constant,
            weights: weights.select(Axis(0), &order),
        }))
    }
}

pub(super) fn singular(columns: usize) -> Error {
    Error::Singular { columns, jitter: 0.0 }
}

/// Returns the point, from `first` on, with the largest row of `left`, `[N, K]`, after subtraction of the row's mean.
/// Points that the centres span are skipped. Of equal points the first is returned.
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
    /// Returns a classifier that predicts the class frequencies of a training set.
    pub fn nothing(training: &TrainingSet) -> Found {
        let mut shares = vec![0.0; training.outputs + 1];
        training
            .targets
            .iter()
            .zip(&training.weights)
            .for_each(|(class, weight)| shares[*class as usize] += weight / training.count);
        let of_class = |share: &f64| if *share > 0.0 { share * training.count * share.ln() } else { 0.0 };
        Found {
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
    pub fn model(self, training: &TrainingSet, kernel: &Kernel, status: Status, iterations: usize) -> Result<Model> {
        let Found { log_probability, ratio, divergence, relevance, centres, constant, weights } = self;
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
}

/// Returns a model without centres and precisions for a training set.
pub(super) fn bare(training: &TrainingSet, kernel: &Kernel) -> Model {
    let basis = FittedBasis::Kernel { kernel: kernel.clone(), centres: Array2::zeros((0, training.rows.ncols())) };
    let nothing = Expansion { basis, weights: Array2::zeros((0, 1)), intercept: vec![0.0] };
    Model { intercept_alpha: Some(0.0), ..training.model_of(nothing) }
}
