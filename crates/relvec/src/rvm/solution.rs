//! The weight posterior of an active set at given precisions.

use std::rc::Rc;

use ndarray::{Array1, Array2, Axis};

use super::gain::Noise;
use crate::error::Result;
use crate::linalg::{self, Cholesky};
use crate::quadratic::Quadratic;

/// Posterior and log evidence of the columns `active` at relative precisions `a` = alpha / beta, for
/// unit-norm columns and scaled targets.
#[derive(Debug, Clone)]
pub(crate) struct Solution {
    /// Columns in the model, `[M]`.
    pub active: Vec<usize>,
    /// Relative precisions, `[M]`.
    pub a: Vec<f64>,
    /// Noise precision; 1 without noise.
    pub beta: f64,
    /// R, lower triangular, R R' = diag(a) + G, [M, M].
    pub lower: Array2<f64>,
    /// inv(R), [M, M].
    pub inverse: Array2<f64>,
    /// R, the number of outputs: weights that share a precision.
    pub outputs: usize,
    /// Posterior mean of the weights, `[R M]`: those of one output after those of another.
    pub mean: Vec<f64>,
    /// diag of inv(diag(a) + G), `[M]`: beta times the posterior variances; summed over the outputs.
    pub variance: Vec<f64>,
    /// E = |t - Phi mu|^2 + mu'diag(a)mu, see (M2); 0 where the curvature is not constant.
    pub energy: f64,
    /// Log evidence, plus the log hyperprior of the noise.
    pub log_evidence: f64,
    /// Jitter that the factorisation took.
    pub jitter: f64,
    /// G of the active columns, [M, M], kept for the next solve; where it changes with the weights, that at
    /// the mode, or none.
    gram: Option<Rc<Array2<f64>>>,
    /// Phi of the active columns, [N, M], kept for the next solve where the curvature changes and memory allows.
    pub columns: Option<Rc<Array2<f64>>>,
    /// The posterior of the weights of all outputs, where there are several.
    pub joint: Option<Rc<Joint>>,
}

/// Posterior of the weights of several outputs; [`Solution::lower`] is then that of one output at the mean of the
/// curvature.
#[derive(Debug)]
pub(crate) struct Joint {
    /// L, lower triangular, L L' = inv(Sigma), [R M, R M], in the order of [`Solution::mean`].
    pub lower: Array2<f64>,
    /// Phi'c y_k y_l Phi of each pair of classes k < l, [M, M], kept for the next solve.
    pub pairs: Vec<Array2<f64>>,
}

/// Which noise precision a solution takes.
#[derive(Debug, Clone, Copy)]
pub(crate) enum At {
    /// This one; `a` is relative to it.
    Precision(f64),
    /// The best for the given relative precisions.
    Best,
}

impl Solution {
    /// Solves the quadratic form: one Cholesky factor of `active`. `before` is any earlier solution of
    /// the same form: G of columns that it has is taken from there.
    pub fn of(
        quadratic: &Quadratic,
        active: &[usize],
        a: &[f64],
        noise: &Noise,
        at: At,
        before: Option<&Solution>,
    ) -> Result<Solution> {
        let gram = match before.and_then(|s| s.gram_of(active)) {
            Some(gram) => gram,
            None => Rc::new(quadratic.dense(active)),
        };
        let mut h = Array2::clone(&gram);
        let scale = h.diag().iter().fold(0.0f64, |m, v| m.max(*v));
        h.diag_mut().iter_mut().zip(a).for_each(|(h, a)| *h += a);
        let factor = Cholesky::new(h, scale)?;
        let inverse = factor.inverse();
        let bias = bias_position(quadratic, active);
        let target = quadratic.target(bias.map(|p| a[p]));
        let mut z: Array2<f64> = active.iter().map(|j| target.f[0][*j]).collect::<Array1<f64>>().insert_axis(Axis(1));
        linalg::solve_lower(factor.lower.view(), z.view_mut());
        let squares = z.iter().map(|z| z * z).sum::<f64>();
        linalg::solve_lower_transposed(factor.lower.view(), z.view_mut());
        let mut mean = z.into_raw_vec_and_offset().0;
        if let Some(p) = bias {
            mean[p] += target.bias_offset;
        }
        // The noise cap keeps beta E away from where this difference cancels.
        let energy = (target.tt - squares).max(1e-13 * quadratic.count);
        let beta = match at {
            At::Precision(beta) => beta,
            At::Best => noise.precision(energy, quadratic.count),
        };
        let sum_log_a = a.iter().map(|a| a.ln()).sum();
        let log_evidence = noise.log_evidence(beta, energy, quadratic.count, factor.log_det(), sum_log_a);
        Ok(Solution {
            active: active.to_vec(),
            a: a.to_vec(),
            beta,
            variance: variances(&inverse),
            jitter: factor.jitter,
            lower: factor.lower,
            inverse,
            outputs: 1,
            mean,
            energy,
            log_evidence,
            gram: Some(gram),
            columns: None,
            joint: None,
        })
    }

    /// A solution found otherwise, where the curvature is not constant.
    pub fn at_mode(
        active: &[usize],
        alpha: &[f64],
        mean: Vec<f64>,
        factor: Cholesky,
        log_evidence: f64,
        gram: Option<Rc<Array2<f64>>>,
        columns: Option<Rc<Array2<f64>>>,
    ) -> Solution {
        let inverse = factor.inverse();
        Solution {
            active: active.to_vec(),
            a: alpha.to_vec(),
            beta: 1.0,
            variance: variances(&inverse),
            jitter: factor.jitter,
            lower: factor.lower,
            inverse,
            outputs: 1,
            mean,
            energy: 0.0,
            log_evidence,
            gram,
            columns,
            joint: None,
        }
    }

    /// With the weights and the posterior of several outputs; `variance` is summed over them.
    pub fn with_outputs(self, outputs: usize, variance: Vec<f64>, joint: Joint, jitter: f64) -> Solution {
        Solution { outputs, variance, joint: Some(Rc::new(joint)), jitter: self.jitter.max(jitter), ..self }
    }

    /// The same numbers for a problem in which the columns have other names.
    pub fn renamed(self, active: Vec<usize>, columns: Option<Rc<Array2<f64>>>) -> Solution {
        Solution { active, columns, ..self }
    }

    /// The kept Phi of this solution if these, positions in the model, are all of it.
    pub fn columns_of(&self, positions: &[usize]) -> Option<Rc<Array2<f64>>> {
        self.columns.clone().filter(|_| positions.len() == self.active.len())
    }

    /// G of columns that are all in this solution, in the order given.
    pub fn gram_of(&self, active: &[usize]) -> Option<Rc<Array2<f64>>> {
        let gram = self.gram.as_ref()?;
        if active == self.active {
            return Some(gram.clone());
        }
        let mut next = 0;
        let mut places = Vec::with_capacity(active.len());
        for j in active {
            next += self.active[next..].iter().position(|k| k == j)?;
            places.push(next);
        }
        let mut out = Array2::zeros((places.len(), places.len()));
        for (mut target, i) in out.outer_iter_mut().zip(&places) {
            let row = gram.row(*i);
            target.iter_mut().zip(&places).for_each(|(t, k)| *t = row[*k]);
        }
        Some(Rc::new(out))
    }

    /// gamma_i = 1 - alpha_i Sigma_ii (M4), in [0, 1]: how well the data determine weight i; summed over the
    /// outputs, in [0, R].
    pub fn determined(&self, i: usize) -> f64 {
        let outputs = self.outputs as f64;
        (outputs - self.a[i] * self.variance[i]).clamp(0.0, outputs)
    }

    /// The square of mean i, summed over the outputs.
    pub fn square(&self, i: usize) -> f64 {
        self.mean.iter().skip(i).step_by(self.active.len()).map(|m| m * m).sum()
    }

    /// The same times the noise precision: relative to the variance in these units.
    pub fn relative_square(&self, i: usize) -> f64 {
        self.mean.iter().skip(i).step_by(self.active.len()).map(|m| self.beta * m * m).sum()
    }

    /// |t - Phi mu|^2, kept positive.
    pub fn residual(&self, count: f64) -> f64 {
        let prior: f64 = self.a.iter().zip(&self.mean).map(|(a, m)| a * m * m).sum();
        (self.energy - prior).max(1e-13 * count)
    }

    /// d log evidence / d log alpha_i (M5), the curvature held fixed.
    pub fn gradient(&self, i: usize) -> f64 {
        0.5 * (self.outputs as f64 - self.a[i] * (self.variance[i] + self.relative_square(i)))
    }

    /// Largest |gradient|.
    pub fn largest_gradient(&self) -> f64 {
        (0..self.a.len()).map(|i| self.gradient(i).abs()).fold(0.0, f64::max)
    }
}

/// Where the bias stands among the active columns, if its precision enters f.
pub(crate) fn bias_position(quadratic: &Quadratic, active: &[usize]) -> Option<usize> {
    active.iter().position(|j| *j == 0).filter(|_| quadratic.has_mean())
}

/// Diagonal of inv(R)'inv(R), `[M]`.
fn variances(inverse: &Array2<f64>) -> Vec<f64> {
    let mut out = vec![0.0; inverse.ncols()];
    for (i, row) in inverse.outer_iter().enumerate() {
        out.iter_mut().zip(row).take(i + 1).for_each(|(o, v)| *o += v * v);
    }
    out
}

/// inv(R)'inv(R), [M, M].
pub(crate) fn covariance(inverse: &Array2<f64>) -> Array2<f64> {
    let mut out = Array2::zeros(inverse.raw_dim());
    linalg::add_gram(inverse.view(), out.view_mut());
    linalg::mirror(&mut out);
    out
}
