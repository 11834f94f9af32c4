//! Gaussian processes, dense and sparse, that learn a kernel and its hyperparameters.

pub(crate) mod evidence;
pub(crate) mod fitc;
pub(crate) mod fitc_counts;
mod fitc_kernel;
pub(crate) mod fitc_maximum;
pub(crate) mod fitc_sums;
pub(crate) mod kernel;
pub(crate) mod label_centres;
pub(crate) mod label_kernel;
pub(crate) mod label_rows;
pub(crate) mod label_sums;
pub(crate) mod labels;
pub(crate) mod link;
pub(crate) mod parameters;
mod period;
pub(crate) mod pivoted_cholesky;

use crate::kernel::Kernel;

/// Hyperparameters of a Gaussian process beside its kernel, in units of the targets.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Hyper {
    pub log_amplitude: f64,
    pub log_noise: f64,
}

/// Kernel and hyperparameters that a dense Gaussian process has learned.
#[derive(Debug, Clone)]
pub(crate) struct Learned {
    /// Kernel with numbers for all parameters, in original units of the features.
    pub kernel: Kernel,
    /// Amplitude and noise, in internal units of the targets.
    pub hyper: Hyper,
    /// Log evidence of the rows that were used, in internal units.
    pub log_evidence: f64,
    /// Log evidence plus the log priors of the hyperparameters, in internal units.
    pub log_posterior: f64,
    /// Log posterior less the log evidence of a constant with noise, in nats.
    pub gain: f64,
    /// True if the targets depend on the features.
    pub has_structure: bool,
    /// True if the targets are log rates of counts.
    pub log_rates: bool,
    /// True if the kernel has one width per feature. Otherwise it has one width, in units of the features' spread.
    pub per_feature: bool,
    /// Number of evaluations of the evidence.
    pub evaluations: usize,
}
