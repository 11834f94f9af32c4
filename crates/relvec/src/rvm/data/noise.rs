//! The noise precision.
//!
//! Everything is in relative precisions a = alpha / beta, so that a change of the noise touches no
//! factor; where the noise is learnt it is profiled out in closed form, (M7) and (M8).

use std::f64::consts::PI;

/// The least relative precision of a weight on a unit column. Sums over millions of rows round G by up to
/// 1e-13 in norm: a weight so free could fit that rounding, and the energy would be anything. The bias is
/// exempt: it takes up the mean of the targets, however large, and no other column is like it.
pub(crate) const LEAST_PRECISION: f64 = 1e-12;

/// The noise precision beta: held, or learnt within a cap and a Gamma(c, d) hyperprior.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum NoisePrecision {
    /// Held at this precision; 1 for likelihoods without noise.
    Fixed(f64),
    /// At its best for given relative precisions, at most `cap`.
    Learned { cap: f64, c: f64, d: f64 },
}

/// How the evidence depends on one basis function at the present noise.
#[derive(Debug, Clone, Copy)]
pub(crate) enum NoiseProfile {
    /// The noise precision follows: beta = count / (E + extra).
    Moving { count: f64, extra: f64 },
    /// It stays. `copies`: weights that share a precision, one for each output; 1 but with several classes.
    Held { beta: f64, copies: f64 },
}

impl NoisePrecision {
    /// This noise without its hyperprior.
    pub fn without_hyperprior(&self) -> NoisePrecision {
        match *self {
            NoisePrecision::Fixed(beta) => NoisePrecision::Fixed(beta),
            NoisePrecision::Learned { cap, .. } => NoisePrecision::Learned { cap, c: 0.0, d: 0.0 },
        }
    }

    /// A learnt precision no higher than `most`.
    pub fn capped(&self, most: f64) -> NoisePrecision {
        match *self {
            NoisePrecision::Fixed(beta) => NoisePrecision::Fixed(beta),
            NoisePrecision::Learned { cap, c, d } => NoisePrecision::Learned { cap: cap.min(most), c, d },
        }
    }

    /// The best precision at energy E, see (M7).
    pub fn precision(&self, energy: f64, count: f64) -> f64 {
        match *self {
            NoisePrecision::Fixed(beta) => beta,
            NoisePrecision::Learned { cap, c, d } => ((count + 2.0 * c) / (energy + 2.0 * d)).min(cap),
        }
    }

    /// How single basis functions are to be judged at energy E.
    pub fn profile(&self, energy: f64, count: f64, copies: f64) -> NoiseProfile {
        match *self {
            NoisePrecision::Fixed(beta) => NoiseProfile::Held { beta, copies },
            NoisePrecision::Learned { cap, c, d } if (count + 2.0 * c) / (energy + 2.0 * d) < cap => {
                NoiseProfile::Moving { count: count + 2.0 * c, extra: 2.0 * d }
            }
            NoisePrecision::Learned { cap, .. } => NoiseProfile::Held { beta: cap, copies },
        }
    }

    /// Log evidence (M3) at precision `beta`, plus the log hyperprior of the noise.
    pub fn log_evidence(&self, beta: f64, energy: f64, count: f64, log_det: f64, sum_log_a: f64) -> f64 {
        let prior = match *self {
            NoisePrecision::Learned { c, d, .. } => c * beta.ln() - d * beta,
            NoisePrecision::Fixed(_) => 0.0,
        };
        prior - 0.5 * (count * ((2.0 * PI).ln() - beta.ln()) + log_det - sum_log_a + beta * energy)
    }

    pub fn is_learnt(&self) -> bool {
        matches!(self, NoisePrecision::Learned { .. })
    }
}

/// Geometric mean; of one number that itself.
pub(crate) fn typical(beta: &[f64]) -> f64 {
    match *beta {
        [beta] => beta,
        _ => (beta.iter().map(|b| b.ln()).sum::<f64>() / beta.len() as f64).exp(),
    }
}
