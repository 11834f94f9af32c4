//! Posteriors whose likelihood Hessian is averaged under the posterior itself, instead of being evaluated at the mode
//! as in Laplace's approximation, (M65).

use ndarray::{Array1, Array2, ArrayView2, ArrayViewMut2, s};
use rayon::prelude::*;

use super::{Model, Posterior};
use crate::error::Result;
use crate::likelihood::LikelihoodFunction;
use crate::linalg::{self, Cholesky};
use crate::report::Interrupt;

/// Largest number of iterations.
const MOST_ROUNDS: usize = 200;
/// Relative change of a diagonal entry of the precision at which the iterations end.
const SETTLED: f64 = 1e-5;
/// Share of the step, in the logs of these entries, that the first iteration takes. The share is halved if the change
/// reverses without becoming much smaller.
const FIRST_STEP: f64 = 0.5;
/// Factor by which the share grows, up to the full step, if the change keeps its direction.
const GROWTH: f64 = 1.25;
/// Largest step in the log of an entry, because the curvature of counts is exponential in their variance.
const FURTHEST: f64 = 1.5;
/// Largest number of Newton steps for counts; 5 to 15 are usual. More than 100 would be needed if rates cover 100,000
/// orders of magnitude. The posterior is then a little narrower than at convergence.
const MOST_COUNT_STEPS: usize = 50;
/// Gain of a Newton step at which the steps end.
const LEAST_STEP: f64 = 1e-9;
/// Gain of a Newton step, relative to the objective, at which the steps end.
const ROUNDING: f64 = 1e-15;
/// Largest difference of a mean rate from that of the posterior, in counts, at which the steps end. Variances of the
/// log rate are then right to four digits.
const LEAST_RATE: f64 = 1e-6;
/// Least share of a mean rate that a step leaves.
const KEPT_RATE: f64 = 0.05;
/// Share of a variance below which curvatures may be raised at once.
const IDLE: f64 = 0.1;
/// Largest number of conjugate gradient iterations of a step.
const MOST_PRODUCTS: usize = 30;
/// Squared residual, relative to the first, at which the conjugate gradient iterations end.
const SOLVED: f64 = 1e-8;
/// Range of the logarithms of mean rates.
const LOG_RATES: (f64, f64) = (-650.0, 650.0);
/// Largest number of doublings of the rates after the steps. 50 are enough where the rows carry almost no information.
const MOST_RAISES: usize = 200;
/// Largest number of halvings of one step.
const MOST_HALVINGS: usize = 30;
/// Largest ratio of the counts that Laplace's posterior expects to those at the mode under `Auto`. A ratio of 2 means a
/// variance of 1.4 of the log rate. The two approximations then differ by as much as either does from the exact
/// posterior.
pub(crate) const MOST_EXPECTED: f64 = 2.0;
/// Number of rows that are processed at a time.
const BLOCK_ROWS: usize = 4096;

/// Training rows of a model, all or some.
pub(crate) struct FittedRows<'a, F> {
    /// Function that fills rows, from the given one on, with the columns of the model, in the units of the posterior's
    /// factor.
    pub fill: F,
    /// Functions at the rows, [N, 1] or [N, K].
    pub functions: Array2<f64>,
    /// Weights of the rows, `[N]`.
    pub weights: &'a [f64],
    pub likelihood: &'a dyn LikelihoodFunction,
    pub interrupt: &'a Interrupt,
}

/// Posteriors with the averaged Hessian.
pub(crate) trait Averaging {
    /// Replaces Laplace's posterior by that with the averaged Hessian. `mean_curvature` returns the curvature of the
    /// log-likelihood in the M weights, `[M, M]`, averaged under a posterior.
    ///
    /// A wider posterior has a larger mean curvature, which makes it narrower. The effect is largest for rows whose
    /// probabilities are close to 0 or 1. Shorter steps converge where longer ones oscillate.
    fn average_curvature(&mut self, mean_curvature: impl Fn(&Model, &Posterior) -> Result<Array2<f64>>) -> Result<()>;

    /// Returns true if Laplace's posterior expects more than [`MOST_EXPECTED`] times the counts at the training rows.
    /// The columns of `rows` fill a block `[B, M]` from a given row on.
    fn expects_too_much<F: Fn(usize, ArrayViewMut2<f64>) + Sync>(&self, rows: &FittedRows<F>) -> Result<bool>;

    /// Averages the curvature of counts over the posterior. The columns of `rows` fill a block `[B, M]` from a given
    /// row on. The mean curvature is exponential in the variance and may overflow or underflow. Let b be the mean rates
    /// of the rows times their weights c. They maximise
    ///
    /// log |A + Phi'B Phi| / 2 - sum b (log b - log c - f) + sum b
    ///
    /// This function is concave, and its gradient is zero at log b = log c + f + v / 2. Newton's method finds the
    /// maximum by conjugate gradients. The second derivatives are (phi_i'Sigma phi_j)^2 / 2, with 1 / b added on the
    /// diagonal.
    fn average_counts<F: Fn(usize, ArrayViewMut2<f64>) + Sync>(&mut self, rows: &FittedRows<F>) -> Result<()>;

    /// Returns the mean curvature of the log-likelihood of some rows over the M weights, `[M, M]`, in the order of the
    /// posterior's factor.
    fn mean_curvature<F: Fn(usize, ArrayViewMut2<f64>) + Sync>(
        &self,
        posterior: &Posterior,
        rows: &FittedRows<F>,
    ) -> Result<Array2<f64>>;
}

impl Averaging for Model {
    fn average_curvature(&mut self, mean_curvature: impl Fn(&Model, &Posterior) -> Result<Array2<f64>>) -> Result<()> {
        let Some(mut posterior) = self.posterior.clone() else { return Ok(()) };
        let prior = unit_precisions(self, &posterior);
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
        // Counts whose rate has no bound have no finite mean curvature; their posterior remains Laplace's.
        if last.is_finite() {
            self.posterior = Some(posterior);
        }
        Ok(())
    }

    fn expects_too_much<F: Fn(usize, ArrayViewMut2<f64>) + Sync>(&self, rows: &FittedRows<F>) -> Result<bool> {
        let variance = rows.variances(&self.posterior()?.half())?;
        let rates = |share: f64| -> f64 {
            let one = |((f, v), c): ((&f64, &f64), &f64)| c * (f + share * v).exp();
            rows.functions.iter().zip(&variance).zip(rows.weights).map(one).sum()
        };
        // The sum may be infinite as well.
        Ok(!(rates(0.5) <= MOST_EXPECTED * rates(0.0)))
    }

    fn average_counts<F: Fn(usize, ArrayViewMut2<f64>) + Sync>(&mut self, rows: &FittedRows<F>) -> Result<()> {
        let Some(mut posterior) = self.posterior.clone() else { return Ok(()) };
        let prior = unit_precisions(self, &posterior);
        if prior.is_empty() {
            posterior.averaged = true;
            self.posterior = Some(posterior);
            return Ok(());
        }
        let ((low, high), all) = (LOG_RATES, rows.weights.len() as f64);
        let log: Vec<f64> = rows.functions.iter().zip(rows.weights).map(|(f, c)| f + c.ln()).collect();
        let factor = |rate: &[f64]| {
            let precision = rows.gram_of(prior.len(), rate)? + Array2::from_diag(&prior);
            let scale = precision.diag().iter().fold(0.0f64, |m, v| m.max(*v));
            Cholesky::new(precision, scale)
        };
        let value = |rate: &[f64], factor: &Cholesky| {
            let row = |(b, log): (&f64, &f64)| b * (b.ln() - log - 1.0);
            0.5 * factor.log_det() - rate.iter().zip(&log).map(row).sum::<f64>()
        };
        let mut rate: Vec<f64> = log.iter().map(|l| l.clamp(LEAST_RATE.ln(), high).exp()).collect();
        let mut known = factor(&rate)?;
        let mut best = value(&rate, &known);
        for _ in 0..MOST_COUNT_STEPS {
            let half = known.inverse();
            let (covariance, variance) = (half.t().dot(&half), rows.variances(&half)?);
            let expected: Vec<f64> = log.iter().zip(&variance).map(|(l, v)| (l + 0.5 * v).clamp(low, high).exp()).collect();
            let slope: Vec<f64> =
                rate.iter().zip(&log).zip(&variance).map(|((b, l), v)| (l + 0.5 * v).max(low) - b.ln()).collect();
            let step = newton(rows, &covariance, &rate, &variance, &slope)?;
            let gain: f64 = slope.iter().zip(&step).map(|(g, d)| g * d).sum();
            let short = rate.iter().zip(&expected).fold(0.0, |m: f64, (b, e)| m.max((e - b) / (1.0 + b)));
            if gain <= LEAST_STEP + ROUNDING * best.abs() && short <= LEAST_RATE {
                break;
            }
            let mut length = 1.0;
            let mut next = rate.clone();
            for _ in 0..MOST_HALVINGS {
                next = rate.iter().zip(&step).map(|(b, d)| (b + length * d).max(KEPT_RATE * b)).collect();
                known = factor(&next)?;
                if value(&next, &known) >= best - 10.0 * ROUNDING * best.abs() {
                    break;
                }
                length *= 0.5;
            }
            // Steps only multiply rates. Rates may be raised at once, as long as all rows together would still say
            // nothing about the variance.
            let idle = |n: usize| IDLE / (variance[n] * all);
            for n in (0..rate.len()).filter(|n| slope[*n] > 1.0) {
                next[n] = next[n].max(expected[n].min(idle(n)));
            }
            rate = next.into_iter().map(|b| b.max(low.exp())).collect();
            known = factor(&rate)?;
            best = value(&rate, &known);
        }
        // If the steps end before convergence, curvatures are raised until no row expects more than twice its rate.
        for _ in 0..MOST_RAISES {
            let variance = rows.variances(&known.inverse())?;
            let mut raised = false;
            for (n, b) in rate.iter_mut().enumerate() {
                let expected = (log[n] + 0.5 * variance[n]).clamp(low, high).exp();
                if expected > 2.0 * *b && expected > LEAST_RATE {
                    *b = (2.0 * *b).max(expected.min(IDLE / (variance[n] * all)));
                    raised = true;
                }
            }
            if !raised {
                break;
            }
            known = factor(&rate)?;
        }
        posterior.factor = known.lower.outer_iter().enumerate().map(|(i, row)| row.slice(s![..=i]).to_vec()).collect();
        posterior.averaged = true;
        self.posterior = Some(posterior);
        Ok(())
    }

    fn mean_curvature<F: Fn(usize, ArrayViewMut2<f64>) + Sync>(
        &self,
        posterior: &Posterior,
        rows: &FittedRows<F>,
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
        Ok(if k == 1 { sums.swap_remove(0) } else { curvature_of_contrasts(self, &sums) })
    }
}

/// Returns the prior precisions of the W weights, `[W]`, in the units and the order of the posterior's factor.
fn unit_precisions(model: &Model, posterior: &Posterior) -> Array1<f64> {
    let alpha = model.intercept_alpha.iter().chain(&model.alpha);
    let one: Vec<f64> = alpha.zip(&posterior.scale).map(|(alpha, scale)| alpha * scale.powi(2)).collect();
    posterior.factor.iter().zip(one.iter().cycle()).map(|(_, alpha)| *alpha).collect()
}

/// Returns the curvature in the W weights, `[W, W]`, from the products `[M, M]` of each pair of classes.
fn curvature_of_contrasts(model: &Model, pairs: &[Array2<f64>]) -> Array2<f64> {
    let mut all = model.contrasts().curvature(pairs);
    linalg::mirror(&mut all);
    all
}

impl<F: Fn(usize, ArrayViewMut2<f64>) + Sync> FittedRows<'_, F> {
    /// Calls `each` with the index of the first row and the rows, `[B, M]`, of blocks of the M columns.
    fn for_each_block(&self, columns: usize, mut each: impl FnMut(usize, ArrayView2<f64>)) -> Result<()> {
        let n = self.weights.len();
        for start in (0..n).step_by(BLOCK_ROWS) {
            self.interrupt.check()?;
            let mut phi = Array2::zeros((BLOCK_ROWS.min(n - start), columns));
            (self.fill)(start, phi.view_mut());
            each(start, phi.view());
        }
        Ok(())
    }

    /// Returns |half phi|^2 of the rows, `[N]`. It is the variance of their single function, as predictions have it.
    fn variances(&self, half: &Array2<f64>) -> Result<Vec<f64>> {
        let mut out = Vec::with_capacity(self.weights.len());
        self.for_each_block(half.nrows(), |_, phi| {
            let product = linalg::times(phi, half.t());
            out.extend(product.outer_iter().map(|row| row.dot(&row)));
        })?;
        Ok(out)
    }

    /// Returns phi'S phi of the rows, `[N]`, for symmetric S, [M, M].
    fn squares(&self, s: &Array2<f64>) -> Result<Vec<f64>> {
        let mut out = Vec::with_capacity(self.weights.len());
        self.for_each_block(s.nrows(), |_, phi| {
            let product = linalg::times(phi, s.view());
            out.extend(product.outer_iter().zip(phi.outer_iter()).map(|(a, b)| a.dot(&b)));
        })?;
        Ok(out)
    }

    /// Returns Phi'diag(w) Phi, [M, M], for any numbers `w`, `[N]`.
    fn gram_of(&self, columns: usize, w: &[f64]) -> Result<Array2<f64>> {
        let mut sum = Array2::zeros((columns, columns));
        self.for_each_block(columns, |start, phi| {
            let mut weighted = phi.to_owned();
            weighted.outer_iter_mut().zip(&w[start..]).for_each(|(mut row, w)| row *= *w);
            sum += &linalg::times(phi.t(), weighted.view());
        })?;
        Ok(sum)
    }
}

/// Returns the Newton step of mean rates `b`, see [`Averaging::average_counts`]. It solves (1 / B + K / 2) step =
/// slope, where K, `[N, N]`, contains the squared entries of Phi Sigma Phi'; covariance: `[M, M]`.
fn newton<F: Fn(usize, ArrayViewMut2<f64>) + Sync>(
    rows: &FittedRows<F>,
    covariance: &Array2<f64>,
    b: &[f64],
    variance: &[f64],
    slope: &[f64],
) -> Result<Vec<f64>> {
    let root: Vec<f64> = b.iter().map(|b| b.sqrt()).collect();
    let times = |x: &[f64], y: &[f64]| -> Vec<f64> { x.iter().zip(y).map(|(x, y)| x * y).collect() };
    let dot = |x: &[f64], y: &[f64]| -> f64 { x.iter().zip(y).map(|(x, y)| x * y).sum() };
    // The system is scaled by the square roots of b: 1 + root K root / 2.
    let product = |x: &[f64]| -> Result<Vec<f64>> {
        let gram = rows.gram_of(covariance.nrows(), &times(&root, x))?;
        let k = rows.squares(&covariance.dot(&gram).dot(covariance))?;
        Ok((0..x.len()).map(|n| x[n] + 0.5 * root[n] * k[n]).collect())
    };
    let scale: Vec<f64> = b.iter().zip(variance).map(|(b, v)| 1.0 / (1.0 + 0.5 * b * v * v)).collect();
    let mut left = times(&root, slope);
    let mut out = vec![0.0; left.len()];
    let mut along = times(&scale, &left);
    let mut size = dot(&left, &along);
    let first = size;
    for _ in 0..MOST_PRODUCTS {
        if !(size > SOLVED * first) {
            break;
        }
        let there = product(&along)?;
        let length = size / dot(&along, &there);
        out.iter_mut().zip(&along).for_each(|(y, p)| *y += length * p);
        left.iter_mut().zip(&there).for_each(|(r, q)| *r -= length * q);
        let scaled = times(&scale, &left);
        let next = dot(&left, &scaled);
        along.iter_mut().zip(&scaled).for_each(|(p, z)| *p = z + next / size * *p);
        size = next;
    }
    Ok(times(&root, &out))
}
