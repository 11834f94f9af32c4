//! Posteriors by the mean of the likelihood's curvature under themselves, where Laplace's approximation takes that at the
//! mode, (M65).

use ndarray::{Array1, Array2, ArrayViewMut2, s};
use rayon::prelude::*;

use super::{Model, Posterior};
use crate::error::Result;
use crate::likelihood::LikelihoodFunction;
use crate::linalg::{self, Cholesky};
use crate::registry::rules;
use crate::report::Interrupt;

rules! {
    /// How the posterior of the weights is approximated, where the curvature of the likelihood is not constant; of Gaussian
    /// noise both are exact.
    #[derive(Default)]
    pub enum PosteriorRule, "approximation of the posterior" {
        /// `averaged` where three classes or more have one model, else `laplace`; that too of a fit which was stopped, or has
        /// no time left, and of [`Rvm::evaluate`](crate::Rvm::evaluate).
        #[default]
        Auto = "auto",
        /// By the curvature at the mode (Tipping 1999): where rows are classified with certainty there is next to none, so
        /// that functions are taken to be far more uncertain than they are.
        Laplace = "laplace",
        /// By the mean of the curvature under the posterior itself: the covariance that is nearest in Kullback and
        /// Leibler's sense (Opper & Archambeau 2009), about the same mode. Counts whose mean rate is infinite keep `laplace`.
        Averaged = "averaged",
    }
}

/// Rounds at most, and the relative change of a diagonal entry of the precision that ends them.
const MOST_ROUNDS: usize = 200;
const SETTLED: f64 = 1e-5;
/// The share of the way, in the logs of such entries, that a round goes at first; half of it wherever that has led about
/// as far to the other side, and more again, up to the whole way, where it has led on.
const FIRST_STEP: f64 = 0.5;
const GROWTH: f64 = 1.25;
/// And no further than this: the curvature of counts is exponential in their variance.
const FURTHEST: f64 = 1.5;
/// Rows at a time.
const BLOCK_ROWS: usize = 4096;

/// Rows that a model was learnt from, all or some.
pub(crate) struct Learnt<'a, F> {
    /// What fills rows from the given one with the columns of the model, in the units of the posterior's factor.
    pub fill: F,
    /// The functions at the rows, [N, 1] or [N, K].
    pub functions: Array2<f64>,
    /// What the rows count for, `[N]`.
    pub weights: &'a [f64],
    pub likelihood: &'a dyn LikelihoodFunction,
    pub interrupt: &'a Interrupt,
}

impl Model {
    /// How the posterior of the weights was approximated, of a committee that of its members; never `Auto`.
    pub fn posterior_rule(&self) -> PosteriorRule {
        let own = |model: &Model| model.posterior.as_ref().is_some_and(|p| p.averaged);
        match own(self) || self.committee.as_ref().is_some_and(|c| c.members.iter().any(own)) {
            true => PosteriorRule::Averaged,
            false => PosteriorRule::Laplace,
        }
    }

    pub(super) fn is_averaged(&self) -> bool {
        self.posterior_rule() == PosteriorRule::Averaged
    }

    /// Puts the posterior of the mean curvature in the place of Laplace's; `mean_curvature` is that of the log-likelihood
    /// over the weights, under a posterior.
    ///
    /// A wider posterior sees more curvature, which makes it narrower, the more so the surer the rows are: shorter steps
    /// settle where longer ones go to and fro.
    pub(crate) fn average_curvature(&mut self, mean_curvature: impl Fn(&Model, &Posterior) -> Result<Array2<f64>>) -> Result<()> {
        let Some(mut posterior) = self.posterior.clone() else { return Ok(()) };
        let prior = self.unit_precisions(&posterior);
        let lower = posterior.factor();
        let mut curvature = lower.dot(&lower.t()) - Array2::from_diag(&prior);
        let (mut step, mut last) = (FIRST_STEP, 0.0f64);
        for _ in 0..MOST_ROUNDS {
            let mean = mean_curvature(self, &posterior)?;
            let mut change = 0.0f64;
            for ((new, old), a) in mean.diag().iter().zip(curvature.diag()).zip(&prior) {
                let own = ((new + a) / (old + a)).ln();
                change = if own.is_nan() || own.abs() > change.abs() { own } else { change };
            }
            if change * last > 0.0 {
                step = (GROWTH * step).min(1.0);
            } else if change.abs() > 0.5 * last.abs() {
                step *= 0.5;
            }
            last = change;
            let way = (step * change).clamp(-FURTHEST, FURTHEST);
            if mean.iter().all(|v| v.is_finite()) {
                let share = if change.abs() < SETTLED { step } else { way.exp_m1() / change.exp_m1() };
                curvature = curvature * (1.0 - share) + mean * share;
            } else {
                curvature *= way.exp();
            }
            let precision = &curvature + &Array2::from_diag(&prior);
            let scale = curvature.diag().iter().fold(0.0f64, |m, v| m.max(*v));
            let lower = Cholesky::new(precision, scale)?.lower;
            posterior.factor = lower.outer_iter().enumerate().map(|(i, row)| row.slice(s![..=i]).to_vec()).collect();
            posterior.averaged = true;
            if change.abs() <= SETTLED {
                break;
            }
        }
        // Of counts whose rate nothing bounds there is no mean curvature: theirs stays Laplace's.
        if last.is_finite() {
            self.posterior = Some(posterior);
        }
        Ok(())
    }

    /// Prior precisions in the units of the posterior's factor, and in its order.
    fn unit_precisions(&self, posterior: &Posterior) -> Array1<f64> {
        let shared: Vec<f64> = self.intercept_alpha.iter().chain(&self.alpha).copied().collect();
        let own = |(k, places): (usize, Vec<usize>)| -> Vec<f64> {
            let alpha = |i: usize| self.class_alpha.get(i).and_then(|classes| classes[k]).unwrap_or(shared[i]);
            places.into_iter().map(|i| alpha(i) * posterior.scale[i].powi(2)).collect()
        };
        self.present().into_iter().enumerate().flat_map(own).collect()
    }

    /// The mean curvature of the log-likelihood of some rows over the weights, in the order of the posterior's factor.
    pub(crate) fn mean_curvature<F: Fn(usize, ArrayViewMut2<f64>) + Sync>(
        &self,
        posterior: &Posterior,
        rows: &Learnt<F>,
    ) -> Result<Array2<f64>> {
        let (n, k) = rows.functions.dim();
        let (m, each) = (posterior.scale.len(), if k == 1 { 1 } else { k * (k - 1) / 2 });
        let mut sums = vec![Array2::<f64>::zeros((m, m)); each];
        let half = posterior.half();
        for start in (0..n).step_by(BLOCK_ROWS) {
            rows.interrupt.check()?;
            let end = (start + BLOCK_ROWS).min(n);
            let fill = |first: usize, out: ArrayViewMut2<f64>| (rows.fill)(start + first, out);
            let mut curvature = vec![0.0; (end - start) * each];
            let functions = rows.functions.slice(s![start..end, ..]);
            let functions = functions.as_slice().expect("rows of a fresh array are contiguous");
            let mut own: Vec<(&[f64], &mut [f64])> = functions.chunks(k).zip(curvature.chunks_mut(each)).collect();
            self.covariances(posterior, &half, &fill, &mut own, |(f, out), covariance| {
                rows.likelihood.mean_curvature(f, covariance, out)
            });
            let mut phi = Array2::zeros((end - start, m));
            fill(0, phi.view_mut());
            let weighted = |pair: usize| {
                let mut weighted = phi.clone();
                for (i, mut row) in weighted.outer_iter_mut().enumerate() {
                    row *= (rows.weights[start + i] * curvature[i * each + pair]).sqrt();
                }
                weighted
            };
            sums.par_iter_mut().enumerate().for_each(|(pair, sum)| linalg::add_gram_alone(weighted(pair).view(), sum.view_mut()));
        }
        sums.par_iter_mut().for_each(linalg::mirror);
        Ok(if k == 1 { sums.swap_remove(0) } else { self.present_curvature(m, &sums) })
    }

    /// Of all contrasts, or as far as the weights of classes are in the model.
    fn present_curvature(&self, m: usize, pairs: &[Array2<f64>]) -> Array2<f64> {
        let mut all = self.contrasts().curvature(pairs);
        linalg::mirror(&mut all);
        let places: Vec<usize> =
            self.present().iter().enumerate().flat_map(|(r, own)| own.iter().map(move |i| r * m + i)).collect();
        Array2::from_shape_fn((places.len(), places.len()), |(i, j)| all[[places[i], places[j]]])
    }
}
