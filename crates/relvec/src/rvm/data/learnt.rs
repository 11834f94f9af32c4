//! What a dense Gaussian process has learnt of the rows.

use crate::kernel::Kernel;

/// What a process puts on the functions, beside the kernel; in the units of the targets.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Hyper {
    pub log_amplitude: f64,
    pub log_noise: f64,
}

/// What a dense process has learnt.
#[derive(Debug, Clone)]
pub(crate) struct Learnt {
    /// Every parameter a number, in the units of the user's features.
    pub kernel: Kernel,
    /// A copy of `kernel` that is no wider than a sparse search can use.
    pub for_search: Kernel,
    /// In the inner units of the targets.
    pub hyper: Hyper,
    /// Of the rows learnt from, in the inner units, without and with the log priors.
    pub log_evidence: f64,
    pub log_posterior: f64,
    /// Nats of the log posterior above the log evidence of a constant with noise.
    pub gain: f64,
    /// Whether the features tell anything of the targets.
    pub has_structure: bool,
    /// Whether the kernel has a width for each feature; else one, in units of their spread.
    pub per_feature: bool,
    pub evaluations: usize,
}
