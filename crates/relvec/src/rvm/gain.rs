//! The noise precision, and what one basis function contributes to the log evidence.
//!
//! Everything is in relative precisions a = alpha / beta, so that a change of the noise touches no
//! factor; where the noise is learnt it is profiled out in closed form, (M7) and (M8).

use std::f64::consts::PI;

/// The noise precision beta: held, or learnt within a cap and a Gamma(c, d) hyperprior.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Noise {
    /// Held at this precision; 1 for likelihoods without noise.
    Fixed(f64),
    /// At its best for given relative precisions, at most `cap`.
    Learnt { cap: f64, c: f64, d: f64 },
}

/// How the evidence depends on one basis function at the present noise.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Profile {
    /// The noise precision follows: beta = count / (E + extra).
    Moving { count: f64, extra: f64 },
    /// It stays. `copies`: weights that share a precision, one for each output; 1 but with several classes.
    Held { beta: f64, copies: f64 },
}

/// The least relative precision of a weight on a unit column. Sums over millions of rows round G by up to
/// 1e-13 in norm: a weight so free could fit that rounding, and the energy would be anything. The bias is
/// exempt: it takes up the mean of the targets, however large, and no other column is like it.
pub(crate) const LEAST_PRECISION: f64 = 1e-12;
/// Below this margin, relative to s, a basis function's best precision is infinite.
const MARGIN: f64 = 1e-12;

/// Log prior odds against a kernel: what each must gain beyond 0 nats to be worth having, (M56).
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct KernelPrior {
    pub nats: f64,
    /// So many first columns (the bias) cost nothing.
    pub free: usize,
}

impl KernelPrior {
    pub const FLAT: KernelPrior = KernelPrior { nats: 0.0, free: 0 };

    /// Of a model, up to that of the empty one.
    pub fn log(&self, active: &[usize]) -> f64 {
        -active.iter().map(|j| self.cost(*j)).sum::<f64>()
    }

    /// Of one column.
    pub fn cost(&self, column: usize) -> f64 {
        if column < self.free { 0.0 } else { self.nats }
    }
}

impl Noise {
    /// The same without what is believed of it beforehand.
    pub fn without_hyperprior(self) -> Noise {
        match self {
            Noise::Fixed(beta) => Noise::Fixed(beta),
            Noise::Learnt { cap, .. } => Noise::Learnt { cap, c: 0.0, d: 0.0 },
        }
    }

    /// The best precision at energy E, see (M7).
    pub fn precision(&self, energy: f64, count: f64) -> f64 {
        match *self {
            Noise::Fixed(beta) => beta,
            Noise::Learnt { cap, c, d } => ((count + 2.0 * c) / (energy + 2.0 * d)).min(cap),
        }
    }

    /// How single basis functions are to be judged at energy E.
    pub fn profile(&self, energy: f64, count: f64, copies: f64) -> Profile {
        match *self {
            Noise::Fixed(beta) => Profile::Held { beta, copies },
            Noise::Learnt { cap, c, d } if (count + 2.0 * c) / (energy + 2.0 * d) < cap => {
                Profile::Moving { count: count + 2.0 * c, extra: 2.0 * d }
            }
            Noise::Learnt { cap, .. } => Profile::Held { beta: cap, copies },
        }
    }

    /// Log evidence (M3) at precision `beta`, plus the log hyperprior of the noise.
    pub fn log_evidence(&self, beta: f64, energy: f64, count: f64, log_det: f64, sum_log_a: f64) -> f64 {
        let prior = match *self {
            Noise::Learnt { c, d, .. } => c * beta.ln() - d * beta,
            Noise::Fixed(_) => 0.0,
        };
        prior - 0.5 * (count * ((2.0 * PI).ln() - beta.ln()) + log_det - sum_log_a + beta * energy)
    }

    pub fn is_learnt(&self) -> bool {
        matches!(self, Noise::Learnt { .. })
    }
}

/// A basis function as the rest of the model sees it: s, q without it, and the energy without it. Of several
/// outputs q is the norm of theirs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Candidate {
    pub s: f64,
    pub q: f64,
    pub energy: f64,
}

/// The norm of what a column is to several outputs; of one output the number itself.
pub(crate) fn size(mut outputs: impl ExactSizeIterator<Item = f64>) -> f64 {
    match outputs.len() {
        1 => outputs.next().expect("there is one"),
        _ => outputs.map(|v| v * v).sum::<f64>().sqrt(),
    }
}

impl Candidate {
    /// The relative precision of highest evidence, but not below `least`; `None` if that is infinite, (M8).
    pub fn best(&self, profile: &Profile, least: f64) -> Option<f64> {
        let Candidate { s, q, energy } = *self;
        if !(s > 0.0) {
            return None;
        }
        let a = match *profile {
            Profile::Held { beta, copies } => {
                let surplus = beta * q * q - copies * s;
                if !(surplus > MARGIN * s) {
                    return None;
                }
                s * (copies * s / surplus)
            }
            Profile::Moving { count, extra } => {
                let e = energy + extra;
                let surplus = count * q * q - s * e;
                if !(surplus > MARGIN * s * e) {
                    return None;
                }
                s * ((s * e - q * q).max(1e-14 * s * e) / surplus)
            }
        };
        (a.is_finite() && a > 0.0).then_some(a.max(least))
    }

    /// Log evidence with the basis function at `a`, less that without it, (M8).
    pub fn contribution(&self, a: f64, profile: &Profile) -> f64 {
        let Candidate { s, q, energy } = *self;
        let width = -0.5 * (s / a).ln_1p();
        match *profile {
            Profile::Held { beta, copies } => copies * width + 0.5 * beta * q * q / (a + s),
            Profile::Moving { count, extra } => {
                let share = (q * q / ((energy + extra) * (a + s))).min(1.0 - 1e-15);
                width - 0.5 * count * (-share).ln_1p()
            }
        }
    }
}
