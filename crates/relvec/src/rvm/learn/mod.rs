//! What a fit learns from a dense Gaussian process, which puts a prior on functions instead of weights: the kernel, and the
//! weights' prior.

pub(super) mod choice;
pub(super) mod dense;
mod fitc;
mod fitc_kernel;
pub(super) mod frame;
pub(super) mod kernel;
mod label_kernel;
pub(super) mod label_model;
mod labels;
pub(super) mod learned;
mod link;
mod many;
mod pivots;
pub(super) mod process;
pub(super) mod rows;
