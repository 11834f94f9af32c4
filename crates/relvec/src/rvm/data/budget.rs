//! What may be kept in memory.

use crate::rvm::settings::rvm::Rvm;

/// Dense matrices of the active columns that a solve and the one before it hold.
pub(crate) const DENSE: u64 = 8;
/// Bytes of a Phi that is little beside everything else.
pub(crate) const LITTLE: u64 = 1 << 24;

pub(crate) fn sums_fit(rvm: &Rvm, columns: u64, limit: u64) -> bool {
    rvm.likelihood.as_dyn().constant_curvature() && 8 * columns * columns <= limit / 4
}

/// Bytes that re-estimating `columns` columns of `outputs` functions at once takes beside `rows` rows, under a limit: their
/// dense matrices, and Phi and G as far as a problem keeps them.
pub(crate) fn at_once(rvm: &Rvm, rows: u64, columns: u64, outputs: u64, limit: u64) -> u64 {
    let (phi, weights) = (8 * rows * columns, columns * outputs);
    let keeps_sums = sums_fit(rvm, columns, limit);
    let keeps_phi = phi <= limit / 4 && (!keeps_sums || phi <= LITTLE);
    8 * DENSE * weights * weights + if keeps_sums { 8 * columns * columns } else { 0 } + if keeps_phi { phi } else { 0 }
}
