//! What there is to say of a model at given precisions.

use ndarray::{Array2, Axis, s};

use crate::model::Model;
use crate::rvm::gram::scaled_problem::ScaledProblem;

/// A single action on one basis function.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ColumnAction {
    /// What would be done.
    pub kind: ActionKind,
    /// Exact change of the log evidence (curvature held fixed), nats.
    pub gain: f64,
    /// The precision it would have then; `None`: not in the model.
    pub alpha: Option<f64>,
}

/// The kinds of single actions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ActionKind {
    /// Add it to the model.
    Add,
    /// Give it another precision.
    Reestimate,
    /// Take it out of the model.
    Delete,
    /// Nothing to be gained.
    None,
}

/// A model at given precisions, in the user's units.
///
/// Of several outputs there are weights of each; what else differs between them is that of the first. Vectors over the
/// model are `[M]`, the bias first if it is in; vectors over columns are `[P]`, the bias first if there is one, then one
/// entry per training row (rows of equal inputs share their values; `NaN` for rows of weight 0), or per column of a
/// given design matrix. Where each class has precisions of its own, both have K numbers instead of each, one for
/// each class: 0 in the former where the weight is not in the model; the latter with the other classes held.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Evaluation {
    /// The model itself: ready to predict; status `stopped`, no iterations.
    pub model: Model,
    /// Log evidence, all constants included.
    pub log_evidence: f64,
    /// Posterior means, `[M]`; of several outputs and under the softmax [M, K] by rows.
    pub weights: Vec<f64>,
    /// Posterior variances, `[M]`; under the softmax summed over the contrasts of the classes.
    pub variances: Vec<f64>,
    /// gamma_i = 1 - alpha_i Sigma_ii, `[M]`; under the softmax summed over the contrasts, up to K - 1, and of
    /// several outputs over those.
    pub well_determined: Vec<f64>,
    /// |t - Phi mu|^2 by weight; `None` where there is no noise.
    pub residual_sum: Option<f64>,
    /// d log evidence / d log alpha_i with the curvature held fixed, `[M]`.
    pub gradient_log_alpha_fixed: Vec<f64>,
    /// Exact gradient of the log evidence in log alpha: the mode moves with alpha, `[M]`.
    pub gradient_log_alpha: Vec<f64>,
    /// d log evidence / d log noise precision; `None` where there is no noise.
    pub gradient_log_noise: Option<f64>,
    /// Exact d log evidence / d log theta for each of [`Kernel::parameters`](crate::Kernel::parameters),
    /// alpha, noise and centres held; empty for a given design matrix.
    pub gradient_log_kernel: Vec<f64>,
    /// S_j = phi_j' inv(C) phi_j, `[P]` (Tipping & Faul 2003, eq. 22); under the softmax with the mean curvature of
    /// the contrasts.
    pub sparsity_in_model: Vec<f64>,
    /// Q_j = phi_j' inv(C) t, `[P]`; under the softmax its norm over the contrasts.
    pub quality_in_model: Vec<f64>,
    /// s_j: S_j with basis function j left out of C, `[P]`.
    pub sparsity: Vec<f64>,
    /// q_j: Q_j with basis function j left out of C, `[P]`.
    pub quality: Vec<f64>,
    /// The best single action on each column, `[P]`.
    pub actions: Vec<ColumnAction>,
}

/// The columns behind the user's rows, the bias first if there is one.
pub(crate) fn columns(problem: &ScaledProblem) -> Vec<Option<usize>> {
    let mut columns: Vec<Option<usize>> = if problem.has_bias { vec![Some(0)] } else { vec![] };
    columns.extend(problem.training.candidate_of.iter().map(|c| c.and_then(|c| problem.column_of(c))));
    columns
}

/// Derivatives of the log evidence in the logarithms of the kernel's parameters, from those in the entries of unit-norm
/// columns, [N, M].
pub(crate) fn gradient_log_kernel(problem: &ScaledProblem, active: &[usize], mut slope: Array2<f64>) -> Vec<f64> {
    for (k, j) in active.iter().enumerate() {
        slope.column_mut(k).map_inplace(|v| *v /= problem.design.norms()[*j]);
    }
    let first = usize::from(problem.has_bias);
    let skip = active.iter().take_while(|j| **j < first).count();
    problem.design.kernel().map_or(Vec::new(), |(kernel, centres)| {
        let kept = centres.select(Axis(0), &active[skip..].iter().map(|j| j - first).collect::<Vec<_>>());
        crate::kernel::KernelGradient::gradient(kernel, problem.design.rows(), kept.view(), slope.slice(s![.., skip..]))
    })
}
