//! Products over the rows: columns of unit norm, their Gram matrix, sums of the likelihood.

pub(crate) mod all_sums;
pub(crate) mod low_rank;
pub(crate) mod problem;
pub(crate) mod slopes;
