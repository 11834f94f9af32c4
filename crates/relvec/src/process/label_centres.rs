//! The few centres that represent the probabilities of a regression on labels, and their weights, (M85), (M86).

use ndarray::{Array1, Array2, Axis, s};

use crate::error::{Error, Result};
use crate::kernel::Kernel;
use crate::linalg;
use crate::process::label_rows::Labels;
use crate::process::link;
use crate::process::pivoted_cholesky::{LEAST_CENTRES, Pivots, Points};
use crate::report::Interrupt;

/// A classifier before its conversion to a model.
pub(crate) struct Classifier {
    /// Log probability of the left-out classes, (M82).
    pub log_probability: f64,
    /// rho.
    pub ratio: f64,
    /// Mean divergence of the probabilities from those of all rows, in nats.
    pub divergence: f64,
    /// The user's rows that are centres, ascending.
    pub relevance: Vec<usize>,
    /// Centres, [M, D].
    pub centres: Array2<f64>,
    /// Constants, `[C]`, and weights, [M, C], of the scores.
    pub constant: Array1<f64>,
    pub weights: Array2<f64>,
}

/// A regression on labels, from which link and centres are computed.
pub(crate) struct Regression<'a> {
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
    /// returns the constant and the weights of the centres' features, [1 + M, C]. Centres are added until the mean
    /// divergence is at most `most_divergence`, or there are `most`, or the deadline has passed and there are
    /// [`LEAST_CENTRES`]. Returns `None` if no centre is needed.
    ///
    /// # Errors
    /// Returns [`Error::Interrupted`] if the fit was stopped by hand, and the errors of `weights`.
    pub fn classifier(
        self,
        kernel: &Kernel,
        (most, most_divergence): (usize, f64),
        interrupt: &Interrupt,
        weights: impl FnOnce(&Pivots) -> Result<Array2<f64>>,
    ) -> Result<Option<Classifier>> {
        let Regression { labels, points, .. } = &self;
        let (w, probabilities) = link::matrix(labels, self.means.view(), self.theta, interrupt)?;
        let mut pivots = Pivots::new(kernel, points.x.view())?;
        // Scores that the centres do not represent yet, [points, C].
        let mut left = linalg::times(self.scores.view(), w.t());
        let divergence = loop {
            let divergence = link::divergence(labels, probabilities.view(), left.slice(s![..labels.rows.len(), ..]));
            if interrupt.is_raised_by_hand() {
                return Err(Error::Interrupted);
            }
            let count = pivots.centres().len();
            if divergence <= most_divergence || count == most || count >= LEAST_CENTRES && interrupt.is_late() {
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
        Ok(Some(Classifier {
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
