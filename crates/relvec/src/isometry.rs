//! Dense coordinates of sparse rows with more features than rows, such as texts.
//!
//! A kernel of distances or inner products depends on the rows by their inner products G = X X' alone, which are computed
//! without zeros. With the Cholesky factor of G = L L', the rows of L, [N, N], have the distances and inner products of the
//! rows of X, [N, D], and are what a fit learns from.

use ndarray::Array2;

use crate::canonical::Canonical;
use crate::design::resolve_sparse;
use crate::error::{Result, require};
use crate::kernel::{Form, Gamma, GammaRule, Kernel, Linear};
use crate::linalg::Cholesky;
use crate::memory::afford;
use crate::sparse::SparseRows;

/// Number of square matrices of the rows in memory at a time: the inner products twice, their factor, and its rows.
const MATRICES: u64 = 4;

/// Returns a kernel with one gamma for all features of rows `x`, [N, D], of weights `[N]`: a number, or a rule that learns
/// it.
///
/// # Errors
/// Returns the errors of [`check`].
pub(crate) fn isotropic(kernel: &Kernel, x: &SparseRows, weights: &[f64]) -> Result<Kernel> {
    check(kernel)?;
    match kernel.gamma() {
        Some(Gamma::Rule(GammaRule::Evidence)) if kernel.is_covariance() => {
            Ok(kernel.with_gamma(Gamma::Rule(GammaRule::EvidenceIsotropic)))
        }
        Some(Gamma::Rule(GammaRule::EvidenceIsotropic)) => Ok(kernel.clone()),
        _ => resolve_sparse(kernel, x, weights),
    }
}

/// Checks that a kernel is a function of distances or inner products, with one gamma for all features.
///
/// # Errors
/// Returns [`Error::Parameter`](crate::Error::Parameter) for another kernel or gamma.
pub(crate) fn check(kernel: &Kernel) -> Result<()> {
    let form = kernel.form();
    let (name, gamma) = (kernel.name(), || format!("kernel.{}.gamma", kernel.name()));
    let expected = "a function of distances or inner products of rows, such as rbf, linear and poly, for sparse rows";
    require(matches!(form, Form::Squares(_) | Form::Products(_)), || "kernel".into(), name, expected)?;
    let expected = "evidence-isotropic, scale, auto or a number for sparse rows";
    match form.gamma() {
        Some(Gamma::Rule(rule @ (GammaRule::EvidenceOne | GammaRule::EvidenceArd))) => {
            require(false, gamma, rule.name(), expected)
        }
        Some(Gamma::PerFeature(each)) => require(false, gamma, format!("a list of {}", each.len()), expected),
        _ => Ok(()),
    }
}

/// Returns rows with the inner products of the user's N rows, [N, L], for L `different` rows of positive weight: each is a
/// row of the Cholesky factor L, [L, L], or 0 for a row of weight 0.
///
/// # Errors
/// Returns [`Error::Memory`](crate::Error::Memory) if there is no memory for the inner products.
pub(crate) fn coordinates(different: &Canonical<SparseRows>, memory_limit: u64) -> Result<Array2<f64>> {
    let (n, l) = (different.column_of.len(), different.rows.nrows());
    afford("the inner products of sparse rows", 8 * MATRICES * (n * l) as u64, memory_limit)?;
    let gram = Kernel::from(Linear {}).sparse_values(&different.rows, &different.rows)?;
    let largest = gram.diag().iter().fold(0.0f64, |m, v| m.max(*v));
    let mut out = Array2::zeros((n, l.max(1)));
    if largest > 0.0 {
        // Jitter, of 1e-14 to 1e-11 of the largest square, adds one number to all squared distances.
        let factor = Cholesky::new(gram, largest)?.lower;
        for (mut row, place) in out.outer_iter_mut().zip(&different.column_of) {
            place.iter().for_each(|place| row.assign(&factor.row(*place)));
        }
    }
    Ok(out)
}

/// Returns the numbers of different rows, `[M]`, from some of their coordinates, [M, L]. The last coordinate of row k of L
/// that is not 0 is the k-th.
pub(crate) fn places(rows: &Array2<f64>) -> Vec<usize> {
    rows.outer_iter().map(|row| row.iter().rposition(|v| *v != 0.0).unwrap_or(0)).collect()
}
