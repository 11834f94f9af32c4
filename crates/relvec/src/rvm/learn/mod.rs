//! What a fit learns from a dense Gaussian process, which puts a prior on functions instead of weights: the kernel, and the
//! weights' prior.

mod rows;
