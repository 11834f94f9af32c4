//! The weight posterior of an active set at given precisions, and its fitted values at the rows.

use std::rc::Rc;

use ndarray::{Array1, Array2, ArrayView2, Axis};

use crate::error::Result;
use crate::likelihood::Contrasts;
use crate::linalg;
use crate::linalg::Cholesky;
use crate::model::Model;
use crate::quadratic::Quadratic;
use crate::rvm::data::noise::{LEAST_PRECISION, NoisePrecision, typical};
use crate::rvm::gram::likelihood_sums;
use crate::rvm::gram::likelihood_sums::Phi;
use crate::rvm::gram::scaled_problem::ScaledProblem;

/// Weight posterior and log evidence of the columns `active` at relative precisions `a` = alpha / beta, for columns of
/// unit norm and scaled targets.
#[derive(Debug, Clone)]
pub(crate) struct ActivePosterior {
    /// Columns in the model, `[M]`.
    pub active: Vec<usize>,
    /// Relative precisions, `[M]`.
    pub a: Vec<f64>,
    /// Noise precisions: one for each of several real outputs, one in all other cases, and 1 without noise.
    pub beta: Vec<f64>,
    /// R, lower triangular, R R' = diag(a) + G, [M, M].
    pub lower: Array2<f64>,
    /// inv(R), [M, M].
    pub inverse: Array2<f64>,
    /// R, the number of outputs, whose weights share a relative precision.
    pub outputs: usize,
    /// Posterior mean of the weights, `[R M]`, one output after the other.
    pub mean: Vec<f64>,
    /// Diagonal of inv(diag(a) + G), `[M]`: beta times the posterior variances, summed over the outputs.
    pub variance: Vec<f64>,
    /// E = |t - Phi mu|^2 + mu'diag(a)mu for each noise, (M2); 0 if the Hessian is not constant.
    pub energy: Vec<f64>,
    /// Log evidence plus the log hyperprior of the noise, in internal units.
    pub log_evidence: f64,
    /// Jitter that was added to the diagonal to factorise it.
    pub jitter: f64,
    /// G of the active columns, [M, M], for the next solve. If it depends on the weights, it is that at the mode.
    gram: Option<Rc<Array2<f64>>>,
    /// Phi of the active columns, [N, M], for the next solve, if the Hessian is not constant and memory allows.
    pub columns: Option<Rc<Array2<f64>>>,
    /// Posterior of the weights of all outputs, if the likelihood couples them.
    pub joint: Option<Rc<CoupledPosterior>>,
}

/// Posterior of the weights of several coupled outputs. [`ActivePosterior::lower`] is then the factor of one output at
/// the mean curvature of all.
#[derive(Debug)]
pub(crate) struct CoupledPosterior {
    /// L, lower triangular, L L' = inv(Sigma), [R M, R M], in the order of [`ActivePosterior::mean`].
    pub lower: Array2<f64>,
    /// Phi'c y_k y_l Phi of each pair of classes k < l, [M, M], for the next solve.
    pub pairs: Vec<Array2<f64>>,
}

/// Noise precisions of a posterior.
#[derive(Debug, Clone, Copy)]
pub(crate) enum NoiseChoice<'b> {
    /// Given precisions, one for each noise, which `a` is relative to.
    Precision(&'b [f64]),
    /// The precisions of highest evidence for the given relative precisions, (M7).
    Best,
}

impl ActivePosterior {
    /// True if the posterior couples the weights of several outputs, so that one triangular factor does not represent
    /// it. Solves are then expensive, and predicted gains are rough.
    pub fn is_joint(&self) -> bool {
        self.joint.is_some()
    }

    /// Returns the posterior of the columns `active`, `[M]`, at relative precisions `a`, `[M]`, for a quadratic form,
    /// (M1) to (M3). `before` is any earlier posterior of the same form, whose G is reused for columns that it
    /// contains.
    ///
    /// # Errors
    /// Returns [`Error::Singular`](crate::error::Error::Singular) if diag(a) + G cannot be factorised.
    pub fn of(
        quadratic: &Quadratic,
        active: &[usize],
        a: &[f64],
        noise: &[NoisePrecision],
        at: NoiseChoice,
        before: Option<&ActivePosterior>,
    ) -> Result<ActivePosterior> {
        let gram = match before.and_then(|s| s.gram_of(active)) {
            Some(gram) => gram,
            None => Rc::new(quadratic.dense(active)),
        };
        let factor = Cholesky::of_sum(&gram, a)?;
        let inverse = factor.inverse();
        let bias = bias_position(quadratic, active);
        let target = quadratic.target(bias.map(|p| a[p]));
        let (m, outputs) = (active.len(), quadratic.outputs());
        let mut z = Array2::from_shape_fn((m, outputs), |(i, k)| target.f[k][active[i]]);
        linalg::solve_lower(factor.lower.view(), z.view_mut());
        let squares: Vec<f64> = z.columns().into_iter().map(|z| z.iter().map(|z| z * z).sum::<f64>()).collect();
        linalg::solve_lower_transposed(factor.lower.view(), z.view_mut());
        let mut mean: Vec<f64> = z.columns().into_iter().flatten().copied().collect();
        if let Some(p) = bias {
            target.bias_offset.iter().enumerate().for_each(|(k, offset)| mean[k * m + p] += offset);
        }
        // The cap of the noise precision keeps E so large that this difference does not cancel. Outputs that share a
        // noise have one E.
        let copies = outputs / noise.len();
        let energies = target.tt.iter().zip(squares.chunks(copies)).map(|(tt, own)| tt - own.iter().sum::<f64>());
        let energy: Vec<f64> = energies.map(|energy| energy.max(1e-13 * quadratic.count)).collect();
        let beta: Vec<f64> = match at {
            NoiseChoice::Precision(beta) => beta.to_vec(),
            NoiseChoice::Best => noise.iter().zip(&energy).map(|(noise, e)| noise.precision(*e, quadratic.count)).collect(),
        };
        let log_det = copies as f64 * factor.log_det();
        let sum_log_a = copies as f64 * a.iter().map(|a| a.ln()).sum::<f64>();
        let each = noise.iter().zip(&beta).zip(&energy);
        let log_evidence = each.map(|((noise, b), e)| noise.log_evidence(*b, *e, quadratic.count, log_det, sum_log_a)).sum();
        let variance = variances(&inverse).into_iter().map(|v| outputs as f64 * v).collect();
        Ok(ActivePosterior {
            active: active.to_vec(),
            a: a.to_vec(),
            beta,
            variance,
            jitter: factor.jitter,
            lower: factor.lower,
            inverse,
            outputs,
            mean,
            energy,
            log_evidence,
            gram: Some(gram),
            columns: None,
            joint: None,
        })
    }

    /// Returns the posterior at a mode, for a Hessian that is not constant. `gram` is G there, `[M, M]`, and `columns`
    /// is Phi of the M active columns, `[N, M]`.
    pub fn at_mode(
        active: &[usize],
        alpha: &[f64],
        mean: Vec<f64>,
        factor: Cholesky,
        log_evidence: f64,
        gram: Option<Rc<Array2<f64>>>,
        columns: Option<Rc<Array2<f64>>>,
    ) -> ActivePosterior {
        let inverse = factor.inverse();
        ActivePosterior {
            active: active.to_vec(),
            a: alpha.to_vec(),
            beta: vec![1.0],
            variance: variances(&inverse),
            jitter: factor.jitter,
            lower: factor.lower,
            inverse,
            outputs: 1,
            mean,
            energy: vec![0.0],
            log_evidence,
            gram,
            columns,
            joint: None,
        }
    }

    /// Adds the coupled posterior of several outputs; `variance`, `[M]`, is summed over them.
    pub fn with_outputs(self, outputs: usize, variance: Vec<f64>, joint: CoupledPosterior, jitter: f64) -> ActivePosterior {
        ActivePosterior { outputs, variance, joint: Some(Rc::new(joint)), jitter: self.jitter.max(jitter), ..self }
    }

    /// Returns this posterior without Phi, for another scaled problem, in which the M active columns have other numbers.
    pub fn renamed(self, active: Vec<usize>) -> ActivePosterior {
        ActivePosterior { active, columns: None, ..self }
    }

    /// Returns the relation between the outputs and the classes of a coupled posterior.
    pub fn contrasts(&self) -> Contrasts {
        Contrasts::new(self.outputs + 1)
    }

    /// Returns the posterior means, [R, M].
    pub fn means(&self) -> ArrayView2<'_, f64> {
        ArrayView2::from_shape((self.outputs, self.active.len()), &self.mean).expect("R times M numbers")
    }

    /// Returns the means of one output for another active set, `[M]`, conditional on the weights of pruned columns
    /// being 0, (M14b). Columns that are not in this posterior have the mean 0.
    pub fn mean_for(&self, active: &[usize]) -> Array1<f64> {
        let slot = |j: &usize| self.active.iter().position(|k| k == j);
        let slots: Vec<Option<usize>> = active.iter().map(slot).collect();
        let pruned: Vec<usize> = (0..self.active.len()).filter(|i| !slots.contains(&Some(*i))).collect();
        let mut mean = Array1::from_vec(self.mean.clone());
        if !pruned.is_empty() {
            // With Sigma_:p the covariance of all weights and the pruned ones: mean - Sigma_:p inv(Sigma_pp) mean_p.
            let columns = self.inverse.select(Axis(1), &pruned);
            let sigma = self.inverse.t().dot(&columns);
            let own = sigma.select(Axis(0), &pruned);
            if let Ok(factor) = Cholesky::of(pruned.len(), 0.0, || own.clone()) {
                let mut share = Array2::from_shape_fn((pruned.len(), 1), |(k, _)| self.mean[pruned[k]]);
                factor.solve(share.view_mut());
                mean -= &sigma.dot(&share.column(0));
            }
        }
        slots.iter().map(|p| p.map_or(0.0, |p| mean[p])).collect()
    }

    /// Returns G, `[M, M]`, of M columns in the order given, if all of them are in this posterior.
    pub fn gram_of(&self, active: &[usize]) -> Option<Rc<Array2<f64>>> {
        let gram = self.gram.as_ref()?;
        if active == self.active {
            return Some(gram.clone());
        }
        let mut next = 0;
        let mut slots = Vec::with_capacity(active.len());
        for j in active {
            // Usually both are in the same order, so that the search starts behind the previous column.
            let (before, after) = self.active.split_at(next);
            let later = after.iter().position(|k| k == j).map(|k| next + k);
            next = later.or_else(|| before.iter().position(|k| k == j))?;
            slots.push(next);
        }
        let mut out = Array2::zeros((slots.len(), slots.len()));
        for (mut target, i) in out.outer_iter_mut().zip(&slots) {
            let row = gram.row(*i);
            target.iter_mut().zip(&slots).for_each(|(t, k)| *t = row[*k]);
        }
        Some(Rc::new(out))
    }

    /// Returns the well-determinedness gamma_i = 1 - alpha_i Sigma_ii of weight i, (M4), summed over the outputs: from
    /// 0 (determined by the prior) to R (determined by the data).
    pub fn determined(&self, i: usize) -> f64 {
        let outputs = self.outputs as f64;
        (outputs - self.a[i] * self.variance[i]).clamp(0.0, outputs)
    }

    /// Returns true if the optimal precision of weight i is infinite with the others fixed, (M8), so that the evidence
    /// would not fall without it.
    pub fn is_useless(&self, i: usize) -> bool {
        self.relevance_margin(i) <= 1e-12
    }

    /// Returns the margin by which the optimal precision of weight i is finite, (M8). For one output it is
    /// mu_i^2 / Sigma_ii - gamma_i.
    pub fn relevance_margin(&self, i: usize) -> f64 {
        self.outputs as f64 * self.relative_square(i) / self.variance[i] - self.determined(i)
    }

    /// Returns the geometric mean of the noise precisions.
    pub fn typical_precision(&self) -> f64 {
        typical(&self.beta)
    }

    /// Returns mu_i^2, summed over the outputs. For several noises each output is scaled by its noise precision
    /// relative to [`ActivePosterior::typical_precision`].
    pub fn square(&self, i: usize) -> f64 {
        match self.beta[..] {
            [_] => self.means_of(i).map(|m| m * m).sum(),
            _ => self.relative_square(i) / self.typical_precision(),
        }
    }

    /// Returns beta mu_i^2, summed over the outputs, which is comparable with [`ActivePosterior::variance`].
    pub fn relative_square(&self, i: usize) -> f64 {
        self.means_of(i).zip(self.beta.iter().cycle()).map(|(m, beta)| beta * m * m).sum()
    }

    /// Returns the mean of weight i for each output, `[R]`.
    fn means_of(&self, i: usize) -> impl Iterator<Item = f64> {
        self.mean.iter().skip(i).step_by(self.active.len()).copied()
    }

    /// Returns |t - Phi mu|^2 for each noise, at least 1e-13 N.
    pub fn residuals(&self, count: f64) -> Vec<f64> {
        let m = self.active.len();
        let of = |(k, energy): (usize, &f64)| {
            let prior: f64 = self.a.iter().zip(&self.mean[k * m..]).map(|(a, m)| a * m * m).sum();
            (energy - prior).max(1e-13 * count)
        };
        self.energy.iter().enumerate().map(of).collect()
    }

    /// Returns d log evidence / d log alpha_i at a fixed Hessian, (M5).
    pub fn gradient(&self, i: usize) -> f64 {
        0.5 * (self.outputs as f64 - self.a[i] * (self.variance[i] + self.relative_square(i)))
    }

    /// Returns the largest |d log evidence / d log alpha_i| at a fixed Hessian.
    pub fn largest_gradient(&self) -> f64 {
        (0..self.a.len()).map(|i| self.gradient(i).abs()).fold(0.0, f64::max)
    }
}

/// Returns the slot of the bias among the active columns, if its precision enters f, (M9).
pub(crate) fn bias_position(quadratic: &Quadratic, active: &[usize]) -> Option<usize> {
    active.iter().position(|j| *j == 0).filter(|_| quadratic.has_mean())
}

/// Returns the diagonal of inv(R)'inv(R), `[M]`, for inv(R), [M, M].
pub(super) fn variances(inverse: &Array2<f64>) -> Vec<f64> {
    let mut out = vec![0.0; inverse.ncols()];
    for (i, row) in inverse.outer_iter().enumerate() {
        out.iter_mut().zip(row).take(i + 1).for_each(|(o, v)| *o += v * v);
    }
    out
}

/// Returns inv(R)'inv(R), [M, M], for inv(R), [M, M].
pub(crate) fn covariance(inverse: &Array2<f64>) -> Array2<f64> {
    linalg::gram_of_lower(inverse.view())
}

/// Relative distance to the lower limit within which a precision counts as being at the limit. Searches end within
/// their tolerance of it.
const AT_LIMIT: f64 = 1e-3;
/// Root mean squared residual in noise standard deviations above which the noise is too small. For the true model the
/// mean square over N rows is about 1 + sqrt(2 / N).
const FAR_RESIDUAL: f64 = 2.0;

/// Returns Phi mu at the rows, minus the mean that was subtracted from the targets, [N, R], row by row.
pub(crate) fn fitted(problem: &ScaledProblem, solution: &ActivePosterior) -> Array1<f64> {
    let mut w = Array1::from_vec(solution.mean.clone());
    let (outputs, columns) = (solution.outputs, solution.active.len());
    let means = problem.mean_bias(&solution.active);
    if let Some((p, means)) = &means {
        means.iter().enumerate().for_each(|(k, mean)| w[k * columns + p] -= mean);
    }
    let w = w.to_shape((outputs, columns)).expect("R times M numbers");
    let f = match &solution.columns {
        Some(phi) => likelihood_sums::fitted(phi.view(), w.view()),
        None => {
            let phi = Phi::Made { problem, columns: (&solution.active[..]).into() };
            let add = |f: &mut Vec<f64>, _, phi: ArrayView2<f64>| f.extend(likelihood_sums::fitted(phi, w.view()));
            let mut f = phi.by_groups(problem, Vec::new, add).concat();
            // After an interrupt the values are incomplete, and are not used.
            f.resize(problem.design.n_rows() * outputs, 0.0);
            f.into()
        }
    };
    match (&means, &problem.training.units[..]) {
        (Some(_), _) => f,
        (None, [units]) => f - units.mean,
        (None, units) => f.iter().zip(units.iter().cycle()).map(|(f, units)| f - units.mean).collect(),
    }
}

/// Returns the root mean squared residual of `model` divided by the given noise standard deviation.
///
/// It returns `None` if the noise is not given, if this ratio is at most [`FAR_RESIDUAL`], or if no weight of
/// `solution` is at the lower limit of its precision. It needs the rows in memory.
///
/// # Errors
/// Returns the errors of [`Model::predict_mean`].
pub(crate) fn residual_over_noise(problem: &ScaledProblem, solution: &ActivePosterior, model: &Model) -> Result<Option<f64>> {
    let training = problem.training;
    let given = problem.constant_curvature()
        && training.rvm.likelihood.as_dyn().scale_mixture().is_none()
        && training.noise.iter().all(|noise| !noise.is_learned())
        && !training.adjustments.constant_target
        && training.rows.nrows() > 0;
    let at_limit = |(j, a): (&usize, &f64)| !(*j == 0 && problem.has_bias) && *a <= (1.0 + AT_LIMIT) * LEAST_PRECISION;
    if !given || !solution.active.iter().zip(&solution.a).any(at_limit) {
        return Ok(None);
    }
    let (targets, weights, outputs) = (training.real_targets(), training.sample_weights(), training.units.len());
    let mut largest = 0.0f64;
    for (k, beta) in solution.beta.iter().enumerate() {
        let fitted = model.output(k)?.predict_mean(training.rows.view())?;
        let factor = |n: usize| training.factors.as_ref().map_or(1.0, |factors| factors.factor[n]);
        let square =
            |n: usize| weights[n] * factor(n) * ((targets[n * outputs + k] - fitted[n]) / training.units[k].scale).powi(2);
        let sum: f64 = (0..fitted.len()).map(square).sum();
        largest = largest.max((beta * sum / training.count).sqrt());
    }
    Ok((largest > FAR_RESIDUAL).then_some(largest))
}
