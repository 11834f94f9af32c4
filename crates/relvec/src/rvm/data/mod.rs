//! The training set: rows, targets and candidates of one fit, in units of its own.

pub(crate) mod blocks;
pub(crate) mod factors;
pub(crate) mod keep;
pub(crate) mod landmarks;
pub(crate) mod table;
