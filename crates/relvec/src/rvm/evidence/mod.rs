//! The posterior of the weights and the evidence at given precisions, and what changing these gains.

pub(crate) mod batch;
pub(crate) mod conjugate;
pub(crate) mod empty;
pub(crate) mod factor;
pub(crate) mod finish;
pub(crate) mod gain;
pub(crate) mod laplace;
pub(crate) mod lbfgs;
pub(crate) mod logistic;
pub(crate) mod multinomial;
pub(crate) mod sensitivity;
pub(crate) mod solution;
pub(crate) mod workspace;
