//! The weight posterior of an active set at given precisions.

use std::rc::Rc;

use ndarray::{Array1, Array2, ArrayView2, Axis};

use crate::error::Result;
use crate::likelihood::Contrasts;
use crate::linalg::{self, Cholesky};
use crate::quadratic::Quadratic;
use crate::rvm::data::noise::{NoisePrecision, typical};

/// More weights than this, of all outputs, are ample.
pub(crate) const AMPLE: usize = 400;

/// Posterior and log evidence of the columns `active` at relative precisions `a` = alpha / beta, for
/// unit-norm columns and scaled targets.
#[derive(Debug, Clone)]
pub(crate) struct ActivePosterior {
    /// Columns in the model, `[M]`.
    pub active: Vec<usize>,
    /// Relative precisions, `[M]`.
    pub a: Vec<f64>,
    /// Precision of each noise: of several real outputs one each, else one in all; 1 without noise.
    pub beta: Vec<f64>,
    /// R, lower triangular, R R' = diag(a) + G, [M, M].
    pub lower: Array2<f64>,
    /// inv(R), [M, M].
    pub inverse: Array2<f64>,
    /// R, the number of outputs: weights that share a relative precision.
    pub outputs: usize,
    /// Posterior mean of the weights, `[R M]`: those of one output after those of another.
    pub mean: Vec<f64>,
    /// diag of inv(diag(a) + G), `[M]`: beta times the posterior variances; summed over the outputs.
    pub variance: Vec<f64>,
    /// E = |t - Phi mu|^2 + mu'diag(a)mu of each noise, see (M2); 0 where the curvature is not constant.
    pub energy: Vec<f64>,
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
    pub joint: Option<Rc<CoupledPosterior>>,
}

/// Posterior of the weights of several outputs; [`ActivePosterior::lower`] is then that of one output at the mean of the
/// curvature.
#[derive(Debug)]
pub(crate) struct CoupledPosterior {
    /// L, lower triangular, L L' = inv(Sigma), [R M, R M], in the order of [`ActivePosterior::mean`].
    pub lower: Array2<f64>,
    /// Phi'c y_k y_l Phi of each pair of classes k < l, [M, M], kept for the next solve.
    pub pairs: Vec<Array2<f64>>,
    /// Where each class has precisions of its own; the outputs are then the classes themselves.
    pub by_class: Option<ByClass>,
}

/// What the weight of each class has of its own, [K, M].
#[derive(Debug)]
pub(crate) struct ByClass {
    /// Precisions; infinite: the weight is not in the model.
    pub alpha: Array2<f64>,
    /// Posterior variances; 0 of weights that are not in the model.
    pub variance: Array2<f64>,
}

/// Which noise precision a solution takes.
#[derive(Debug, Clone, Copy)]
pub(crate) enum NoiseChoice<'b> {
    /// These, one for each noise; `a` is relative to them.
    Precision(&'b [f64]),
    /// The best for the given relative precisions.
    Best,
}

impl ActivePosterior {
    /// True if the posterior couples the weights of several outputs, so that one triangular factor does not represent it.
    /// Solves are then expensive, and predicted gains are rough.
    pub fn is_joint(&self) -> bool {
        self.joint.is_some()
    }

    /// Whether it has so many weights besides that single basis functions hardly matter.
    pub fn is_ample(&self) -> bool {
        self.is_joint() && self.mean.len() > AMPLE
    }

    /// Solves the quadratic form: one Cholesky factor of `active`. `before` is any earlier solution of
    /// the same form: G of columns that it has is taken from there.
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
        // The noise cap keeps beta E away from where this difference cancels.
        // Outputs that share a noise share its energy.
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

    /// Makes a solution that was found otherwise, where the curvature is not constant; gram: `[M, M]`, columns: `[N, M]`, of the
    /// M active columns.
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

    /// With the weights and the posterior of several outputs; `variance` is summed over them.
    pub fn with_outputs(self, outputs: usize, variance: Vec<f64>, joint: CoupledPosterior, jitter: f64) -> ActivePosterior {
        ActivePosterior { outputs, variance, joint: Some(Rc::new(joint)), jitter: self.jitter.max(jitter), ..self }
    }

    /// Returns this solution for a problem in which the M active columns, `[N, M]`, have other numbers.
    pub fn renamed(self, active: Vec<usize>, columns: Option<Rc<Array2<f64>>>) -> ActivePosterior {
        ActivePosterior { active, columns, ..self }
    }

    /// What each class has of its own, if it has.
    pub fn by_class(&self) -> Option<&ByClass> {
        self.joint.as_ref().and_then(|joint| joint.by_class.as_ref())
    }

    /// What the outputs are to the classes, where there are several.
    pub fn contrasts(&self) -> Contrasts {
        match self.by_class() {
            Some(_) => Contrasts::each(self.outputs),
            None => Contrasts::new(self.outputs + 1),
        }
    }

    /// The means as those of `functions` of the classes, [R, M].
    pub fn functions_for(&self, functions: &Contrasts) -> Array2<f64> {
        let (own, m) = (self.contrasts(), self.active.len());
        let mean = ArrayView2::from_shape((self.outputs, m), &self.mean).expect("R times M numbers");
        if own.count() == functions.count() {
            return mean.to_owned();
        }
        functions.reduce(own.expand(mean).view())
    }

    /// Means of the columns `active`, `[M]` of one output, by the posterior: columns that are not in this solution are at
    /// 0, and those that are left out take the rest along, which may have balanced them, (M14b).
    pub fn mean_for(&self, active: &[usize]) -> Array1<f64> {
        let slot = |j: &usize| self.active.iter().position(|k| k == j);
        let slots: Vec<Option<usize>> = active.iter().map(slot).collect();
        let gone: Vec<usize> = (0..self.active.len()).filter(|i| !slots.contains(&Some(*i))).collect();
        let mut mean = Array1::from_vec(self.mean.clone());
        if !gone.is_empty() {
            // Sigma of the gone weights with all, up to a factor: mean - Sigma_:g inv(Sigma_gg) mean_g.
            let columns = self.inverse.select(Axis(1), &gone);
            let sigma = self.inverse.t().dot(&columns);
            let own = sigma.select(Axis(0), &gone);
            if let Ok(factor) = Cholesky::of(gone.len(), 0.0, || own.clone()) {
                let mut share = Array2::from_shape_fn((gone.len(), 1), |(k, _)| self.mean[gone[k]]);
                factor.solve(share.view_mut());
                mean -= &sigma.dot(&share.column(0));
            }
        }
        slots.iter().map(|p| p.map_or(0.0, |p| mean[p])).collect()
    }

    /// Returns G, `[M, M]`, of M columns that are all in this solution, in the order given.
    pub fn gram_of(&self, active: &[usize]) -> Option<Rc<Array2<f64>>> {
        let gram = self.gram.as_ref()?;
        if active == self.active {
            return Some(gram.clone());
        }
        let mut next = 0;
        let mut slots = Vec::with_capacity(active.len());
        for j in active {
            // Mostly both are in one order.
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

    /// gamma_i = 1 - alpha_i Sigma_ii (M4), in [0, 1]: how well the data determine weight i; summed over the
    /// outputs, in [0, R].
    pub fn determined(&self, i: usize) -> f64 {
        let outputs = self.outputs as f64;
        (outputs - self.a[i] * self.variance[i]).clamp(0.0, outputs)
    }

    /// Whether the best precision of weight i, the others held, is infinite: the evidence would not fall without it.
    pub fn is_useless(&self, i: usize) -> bool {
        self.surplus(i) <= 1e-12
    }

    /// The square of mean i over what it would be by chance, less what the data tell of it.
    pub fn surplus(&self, i: usize) -> f64 {
        self.outputs as f64 * self.relative_square(i) / self.variance[i] - self.determined(i)
    }

    /// One noise precision that stands for all: their geometric mean.
    pub fn typical_precision(&self) -> f64 {
        typical(&self.beta)
    }

    /// The square of mean i, summed over the outputs; of several noises each in units of its own, by
    /// [`ActivePosterior::typical_precision`].
    pub fn square(&self, i: usize) -> f64 {
        match self.beta[..] {
            [_] => self.means(i).map(|m| m * m).sum(),
            _ => self.relative_square(i) / self.typical_precision(),
        }
    }

    /// The square of mean i times the noise precision, summed over the outputs: relative to the variance in these units.
    pub fn relative_square(&self, i: usize) -> f64 {
        self.means(i).zip(self.beta.iter().cycle()).map(|(m, beta)| beta * m * m).sum()
    }

    /// Mean i of each output, `[R]`.
    fn means(&self, i: usize) -> impl Iterator<Item = f64> {
        self.mean.iter().skip(i).step_by(self.active.len()).copied()
    }

    /// |t - Phi mu|^2 of each noise, kept positive.
    pub fn residuals(&self, count: f64) -> Vec<f64> {
        let m = self.active.len();
        let of = |(k, energy): (usize, &f64)| {
            let prior: f64 = self.a.iter().zip(&self.mean[k * m..]).map(|(a, m)| a * m * m).sum();
            (energy - prior).max(1e-13 * count)
        };
        self.energy.iter().enumerate().map(of).collect()
    }

    /// d log evidence / d log alpha_i (M5), the curvature held fixed.
    pub fn gradient(&self, i: usize) -> f64 {
        0.5 * (self.outputs as f64 - self.a[i] * (self.variance[i] + self.relative_square(i)))
    }

    /// Gradient in the log precision of class `k` alone; 0 where its weight is not in the model.
    pub fn class_gradient(&self, own: &ByClass, k: usize, i: usize) -> f64 {
        let (a, w) = (own.alpha[[k, i]], self.mean[k * self.active.len() + i]);
        if a.is_finite() { 0.5 * (1.0 - a * (own.variance[[k, i]] + w * w)) } else { 0.0 }
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
    linalg::gram_of_lower(inverse.view())
}
