//! Memory that matrices of a fit may use.

use crate::rvm::settings::rvm::Rvm;

/// Number of dense matrices of the active columns that exist during a solve. The matrices of the previous solve are
/// among them.
pub(crate) const DENSE: u64 = 8;
/// Largest size in bytes of a Phi that is stored in any case, because it is small beside everything else.
pub(crate) const LITTLE: u64 = 1 << 24;

/// Returns true if the Gram matrix of `columns` columns is constant and takes at most a quarter of `limit` bytes.
pub(crate) fn sums_fit(rvm: &Rvm, columns: u64, limit: u64) -> bool {
    rvm.likelihood.as_dyn().constant_curvature() && 8 * columns * columns <= limit / 4
}

/// Returns the bytes that updating `columns` columns of `outputs` functions at once needs, in addition to the rows.
/// They are the dense matrices, and Phi and G if the scaled problem stores them under `limit`.
pub(crate) fn at_once(rvm: &Rvm, rows: u64, columns: u64, outputs: u64, limit: u64) -> u64 {
    let (phi, weights) = (8 * rows * columns, columns * outputs);
    let keeps_sums = sums_fit(rvm, columns, limit);
    let keeps_phi = phi <= limit / 4 && (!keeps_sums || phi <= LITTLE);
    8 * DENSE * weights * weights + if keeps_sums { 8 * columns * columns } else { 0 } + if keeps_phi { phi } else { 0 }
}
