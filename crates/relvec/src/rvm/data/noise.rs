//! The noise precision.
//!
//! All formulas use relative precisions a = alpha / beta, so that a change of the noise precision changes no Cholesky
//! factor. A noise precision that is learned is profiled out in closed form, (M7) and (M8).

use std::f64::consts::PI;

/// Smallest relative precision of the weight of a unit-norm column. Sums over millions of rows round G by up to 1e-13
/// in norm. A weight with a lower precision could fit that rounding error, and E would have no correct digits. The bias
/// is exempt, because it fits the mean of the targets, however large, and no other column resembles it.
pub(crate) const LEAST_PRECISION: f64 = 1e-12;

/// The noise precision beta: fixed, or learned up to a cap with a Gamma(c, d) hyperprior.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum NoisePrecision {
    /// Fixed at this value. It is 1 for likelihoods without noise.
    Fixed(f64),
    /// Optimal for the given relative precisions, and at most `cap`.
    Learned { cap: f64, c: f64, d: f64 },
}

/// Response of the noise precision to a change of one basis function, on which the gain of that change depends.
#[derive(Debug, Clone, Copy)]
pub(crate) enum NoiseProfile {
    /// The noise precision is profiled out: beta = count / (E + extra).
    Profiled { count: f64, extra: f64 },
    /// The noise precision is fixed. `copies` is the number of weights that share a precision: one per contrast for
    /// several classes, otherwise 1.
    Fixed { beta: f64, copies: f64 },
}

impl NoisePrecision {
    /// Returns this noise precision without its hyperprior.
    pub fn without_hyperprior(&self) -> NoisePrecision {
        match *self {
            NoisePrecision::Fixed(beta) => NoisePrecision::Fixed(beta),
            NoisePrecision::Learned { cap, .. } => NoisePrecision::Learned { cap, c: 0.0, d: 0.0 },
        }
    }

    /// Returns this noise precision with a cap of at most `most`, if it is learned.
    pub fn capped(&self, most: f64) -> NoisePrecision {
        match *self {
            NoisePrecision::Fixed(beta) => NoisePrecision::Fixed(beta),
            NoisePrecision::Learned { cap, c, d } => NoisePrecision::Learned { cap: cap.min(most), c, d },
        }
    }

    /// Returns the optimal precision for the penalised residual sum of squares E (`energy`), (M7).
    pub fn precision(&self, energy: f64, count: f64) -> f64 {
        match *self {
            NoisePrecision::Fixed(beta) => beta,
            NoisePrecision::Learned { cap, c, d } => ((count + 2.0 * c) / (energy + 2.0 * d)).min(cap),
        }
    }

    /// Returns the profile by which gains of single basis functions are computed, at E (`energy`).
    pub fn profile(&self, energy: f64, count: f64, copies: f64) -> NoiseProfile {
        match *self {
            NoisePrecision::Fixed(beta) => NoiseProfile::Fixed { beta, copies },
            NoisePrecision::Learned { cap, c, d } if (count + 2.0 * c) / (energy + 2.0 * d) < cap => {
                NoiseProfile::Profiled { count: count + 2.0 * c, extra: 2.0 * d }
            }
            NoisePrecision::Learned { cap, .. } => NoiseProfile::Fixed { beta: cap, copies },
        }
    }

    /// Returns the log evidence (M3) at noise precision `beta`, plus the log hyperprior of the noise.
    pub fn log_evidence(&self, beta: f64, energy: f64, count: f64, log_det: f64, sum_log_a: f64) -> f64 {
        let prior = match *self {
            NoisePrecision::Learned { c, d, .. } => c * beta.ln() - d * beta,
            NoisePrecision::Fixed(_) => 0.0,
        };
        prior - 0.5 * (count * ((2.0 * PI).ln() - beta.ln()) + log_det - sum_log_a + beta * energy)
    }

    /// Returns true if the noise precision is learned.
    pub fn is_learned(&self) -> bool {
        matches!(self, NoisePrecision::Learned { .. })
    }
}

/// Returns the geometric mean of noise precisions.
pub(crate) fn typical(beta: &[f64]) -> f64 {
    match *beta {
        [beta] => beta,
        _ => (beta.iter().map(|b| b.ln()).sum::<f64>() / beta.len() as f64).exp(),
    }
}
