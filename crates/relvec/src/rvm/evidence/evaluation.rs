//! The evaluation of a model at given precisions.

use ndarray::{Array2, Axis, s};

use crate::model::Model;
use crate::rvm::gram::scaled_problem::ScaledProblem;

/// A single action on one basis function.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ColumnAction {
    /// Kind of the action.
    pub kind: ActionKind,
    /// Exact change of the log evidence at a fixed Hessian, in nats.
    pub gain: f64,
    /// Precision after the action; `None` if the basis function is not in the model then.
    pub alpha: Option<f64>,
}

/// The kinds of single actions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ActionKind {
    /// Add the basis function to the model.
    Add,
    /// Change the precision of the basis function.
    Reestimate,
    /// Delete the basis function from the model.
    Delete,
    /// No action raises the evidence.
    None,
}

/// A model at given precisions, in original units.
///
/// Vectors over the model are `[M]`, with the bias first if the model has one. Vectors over columns are `[P]`, with the
/// bias first if there is one. Then follows one entry for each training row, or for each column of a given design
/// matrix. Rows with equal inputs have equal entries, and rows of weight 0 have `NaN`.
///
/// For several outputs there are weights of each output. Other values that depend on the output are those of the first.
///
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Evaluation {
    /// The model, ready to predict, with the status `stopped` and no iterations.
    pub model: Model,
    /// Log evidence in nats, with all constants.
    pub log_evidence: f64,
    /// Posterior means, `[M]`; [M, K], row by row, for several outputs and for the softmax.
    pub weights: Vec<f64>,
    /// Posterior variances, `[M]`; summed over the contrasts of the classes for the softmax.
    pub variances: Vec<f64>,
    /// Well-determinedness gamma_i = 1 - alpha_i Sigma_ii, `[M]`. For the softmax it is summed over the contrasts, up
    /// to K - 1, and for several outputs over the outputs.
    pub well_determined: Vec<f64>,
    /// |t - Phi mu|^2 with sample weights; `None` for likelihoods without noise.
    pub residual_sum: Option<f64>,
    /// d log evidence / d log alpha_i at a fixed Hessian, `[M]`.
    pub gradient_log_alpha_fixed: Vec<f64>,
    /// Exact gradient of the log evidence in log alpha, including the movement of the mode, `[M]`.
    pub gradient_log_alpha: Vec<f64>,
    /// d log evidence / d log noise precision; `None` for likelihoods without noise.
    pub gradient_log_noise: Option<f64>,
    /// Exact d log evidence / d log theta for each of [`Kernel::parameters`](crate::Kernel::parameters), with alpha,
    /// noise and centres fixed. Empty for a given design matrix.
    pub gradient_log_kernel: Vec<f64>,
    /// Sparsity factors S_j = phi_j' inv(C) phi_j, `[P]` (Tipping & Faul 2003, eq. 22). For the softmax they use the
    /// mean curvature of the contrasts.
    pub sparsity_in_model: Vec<f64>,
    /// Quality factors Q_j = phi_j' inv(C) t, `[P]`; for the softmax the norm over the contrasts.
    pub quality_in_model: Vec<f64>,
    /// Sparsity factors s_j: S_j with basis function j excluded from C, `[P]`.
    pub sparsity: Vec<f64>,
    /// Quality factors q_j: Q_j with basis function j excluded from C, `[P]`.
    pub quality: Vec<f64>,
    /// Best single action on each column, `[P]`.
    pub actions: Vec<ColumnAction>,
}

/// Returns the columns of the rows of the user's table, `[P]`, with the bias first if there is one. Rows without a
/// column have `None`.
pub(crate) fn columns(problem: &ScaledProblem) -> Vec<Option<usize>> {
    let mut columns: Vec<Option<usize>> = if problem.has_bias { vec![Some(0)] } else { vec![] };
    columns.extend(problem.training.candidate_of.iter().map(|c| c.and_then(|c| problem.column_of(c))));
    columns
}

/// Returns the derivatives of the log evidence in the logarithms of the kernel's parameters. `of_phi`, [N, M], are its
/// derivatives in the entries of columns of unit norm.
pub(crate) fn gradient_log_kernel(problem: &ScaledProblem, active: &[usize], mut of_phi: Array2<f64>) -> Vec<f64> {
    for (k, j) in active.iter().enumerate() {
        of_phi.column_mut(k).map_inplace(|v| *v /= problem.design.norms()[*j]);
    }
    let first = usize::from(problem.has_bias);
    let skip = active.iter().take_while(|j| **j < first).count();
    problem.design.kernel().map_or(Vec::new(), |(kernel, centres)| {
        let kept = centres.select(Axis(0), &active[skip..].iter().map(|j| j - first).collect::<Vec<_>>());
        crate::kernel::KernelGradient::gradient(kernel, problem.design.rows(), kept.view(), of_phi.slice(s![.., skip..]))
    })
}
