//! Contribution of one basis function to the log evidence, and its optimal precision.
//!
//! All precisions are relative, a = alpha / beta, so that a change of the noise precision changes no Cholesky factor. A
//! learned noise precision is profiled out in closed form, (M7) and (M8).

use smallvec::SmallVec;

use crate::rvm::data::noise::NoiseProfile;

/// Relative margin above the condition q^2 > s of (M8) from which the optimal precision is finite.
const MARGIN: f64 = 1e-12;
/// Share of a candidate's squared norm outside the span of the model below which it is never added.
pub(crate) const SPAN_FLOOR: f64 = 1e-11;

/// Prior penalty for each kernel of a model, (M56). The default is no penalty.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct SparsityPrior {
    /// Penalty lambda in nats.
    pub nats: f64,
    /// Number of first columns without penalty: 1 for the bias, else 0.
    pub free: usize,
}

impl SparsityPrior {
    /// Returns the log prior of a model relative to the empty model, in nats.
    pub fn log(&self, active: &[usize]) -> f64 {
        -active.iter().map(|j| self.cost(*j)).sum::<f64>()
    }

    /// Returns the penalty of one column in nats.
    pub fn cost(&self, column: usize) -> f64 {
        if column < self.free { 0.0 } else { self.nats }
    }
}

/// Sparsity and quality factors of a basis function for the model without it, (M8).
#[derive(Debug, Clone)]
pub(crate) struct ColumnFactors {
    /// Sparsity factor s.
    pub s: f64,
    /// Quality factor and E for each noise.
    pub seen: SmallVec<[Quality; 1]>,
}

/// Quality factor q and E of (M2) for the model without a basis function. For several outputs that share a noise, q is
/// the Euclidean norm over the outputs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Quality {
    pub q: f64,
    pub energy: f64,
}

/// Returns the Euclidean norm of the values of several outputs, or the value of a single output with its sign.
#[inline]
fn size(mut outputs: impl ExactSizeIterator<Item = f64>) -> f64 {
    match outputs.len() {
        1 => outputs.next().expect("there is one"),
        _ => outputs.map(|v| v * v).sum::<f64>().sqrt(),
    }
}

/// Maps values of the outputs to one result for each noise. A noise that all outputs share receives their Euclidean
/// norm. Otherwise each noise receives the value of its own output.
#[inline]
pub(crate) fn by_noise<T>(
    noises: usize,
    outputs: usize,
    of_output: impl Fn(usize) -> f64,
    of: impl Fn(usize, f64) -> T,
) -> SmallVec<[T; 1]> {
    match noises {
        1 => SmallVec::from_buf([of(0, size((0..outputs).map(of_output)))]),
        _ => (0..noises).map(|k| of(k, of_output(k))).collect(),
    }
}

impl ColumnFactors {
    /// Returns the relative precision of highest evidence, (M8), but at least `least`, or `None` if it is infinite. For
    /// several noises it is the root of (M62). There is one profile for each noise.
    pub fn best(&self, profiles: &[NoiseProfile], least: f64) -> Option<f64> {
        if !(self.s > 0.0) {
            return None;
        }
        let a = match (&self.seen[..], profiles) {
            ([seen], [profile]) => seen.best(self.s, profile),
            (seen, profiles) => best_of_several(self.s, seen, profiles),
        }?;
        (a.is_finite() && a > 0.0).then_some(a.max(least))
    }

    /// Returns the log evidence with the basis function at the relative precision `a`, minus that without it, (M8),
    /// summed over the noises.
    pub fn contribution(&self, a: f64, profiles: &[NoiseProfile]) -> f64 {
        self.seen.iter().zip(profiles).map(|(seen, profile)| seen.contribution(self.s, a, profile)).sum()
    }
}

impl Quality {
    fn best(&self, s: f64, profile: &NoiseProfile) -> Option<f64> {
        let Quality { q, energy } = *self;
        Some(match *profile {
            NoiseProfile::Fixed { beta, copies } => {
                let surplus = beta * q * q - copies * s;
                if !(surplus > MARGIN * s) {
                    return None;
                }
                s * (copies * s / surplus)
            }
            NoiseProfile::Profiled { count, extra } => {
                let e = energy + extra;
                let surplus = count * q * q - s * e;
                if !(surplus > MARGIN * s * e) {
                    return None;
                }
                s * (Self::left(s, q, e) / surplus)
            }
        })
    }

    /// Returns s e - q^2, at least 1e-14 s e. Divided by s it is E with the basis function at precision 0.
    fn left(s: f64, q: f64, e: f64) -> f64 {
        (s * e - q * q).max(1e-14 * s * e)
    }

    fn contribution(&self, s: f64, a: f64, profile: &NoiseProfile) -> f64 {
        let Quality { q, energy } = *self;
        let width = -0.5 * (s / a).ln_1p();
        match *profile {
            NoiseProfile::Fixed { beta, copies } => copies * width + 0.5 * beta * q * q / (a + s),
            NoiseProfile::Profiled { count, extra } => {
                let share = (q * q / ((energy + extra) * (a + s))).min(1.0 - 1e-15);
                width - 0.5 * count * (-share).ln_1p()
            }
        }
    }
}

/// Returns the root a of sum_k w_k a / (a + u_k) = s sum_k copies_k, (M62).
///
/// The term w_k a / (a + u_k) - s copies_k is 2 a (a + s) times the derivative of the contribution of output k. The
/// left side rises with a, so that there is at most one root. It is concave, so that Newton's steps from below stay
/// below.
fn best_of_several(s: f64, seen: &[Quality], profiles: &[NoiseProfile]) -> Option<f64> {
    let (mut level, mut most) = (0.0, 0.0);
    let terms: SmallVec<[(f64, f64); 8]> = seen
        .iter()
        .zip(profiles)
        .map(|(seen, profile)| match *profile {
            NoiseProfile::Fixed { beta, copies } => {
                level += copies * s;
                (beta * seen.q * seen.q, s)
            }
            NoiseProfile::Profiled { count, extra } => {
                let e = seen.energy + extra;
                level += s;
                (count * seen.q * seen.q / e, Quality::left(s, seen.q, e) / e)
            }
        })
        .inspect(|(w, _)| most += w)
        .collect();
    let surplus = most - level;
    if !(surplus > MARGIN * level) {
        return None;
    }
    // With the smallest u for all terms the root has a closed form, which is not above the true root.
    let mut a = level / surplus * terms.iter().map(|(_, u)| *u).fold(f64::INFINITY, f64::min);
    loop {
        let (value, slope) = terms.iter().fold((0.0, 0.0), |(value, slope), (w, u)| {
            let share = 1.0 / (a + u);
            (value + w * a * share, slope + w * u * share * share)
        });
        let step = (level - value) / slope;
        if !(step > 1e-14 * a) {
            return Some(a);
        }
        a += step;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidate(s: f64, seen: &[(f64, f64)]) -> ColumnFactors {
        ColumnFactors { s, seen: seen.iter().map(|(q, energy)| Quality { q: *q, energy: *energy }).collect() }
    }

    /// At the best precision of several outputs the derivative of their contribution is zero, and no precision on a
    /// grid is better. For equal outputs it is the best precision of one of them.
    #[test]
    fn best_precision_of_several_outputs_maximises_the_contribution() {
        let profiled = NoiseProfile::Profiled { count: 50.0, extra: 0.1 };
        let fixed = NoiseProfile::Fixed { beta: 30.0, copies: 1.0 };
        let cases = [
            (0.7, vec![(0.5, 3.0), (2.0, 8.0), (0.01, 40.0)], vec![profiled, profiled, profiled]),
            (0.7, vec![(0.5, 3.0), (1.4, 8.0)], vec![fixed, profiled]),
            // The basis function explains one output almost entirely, and lowers the evidence of the other.
            (1.0, vec![(1.0, 0.900_000_1), (0.05, 30.0)], vec![profiled, profiled]),
            (0.9, vec![(3.0, 10.1), (0.3, 10.0), (0.0, 1.0)], vec![profiled, profiled, fixed]),
        ];
        for (s, seen, profiles) in cases {
            let one = candidate(s, &seen);
            let best = one.best(&profiles, 0.0).unwrap();
            let top = one.contribution(best, &profiles);
            assert!(top > 0.0);
            for step in -4000..4000 {
                let a = best * (f64::from(step) * 0.01).exp();
                assert!(one.contribution(a, &profiles) <= top + 1e-12 * top, "{a} beats {best}");
            }
            let h = 1e-3;
            let slope =
                (one.contribution(best * (1.0 + h), &profiles) - one.contribution(best * (1.0 - h), &profiles)) / (2.0 * h);
            assert!(slope.abs() < 2e-4, "slope {slope} of {top}");
        }
        let one = candidate(0.6, &[(0.9, 7.0)]).best(&[profiled], 0.0).unwrap();
        let three = candidate(0.6, &[(0.9, 7.0); 3]).best(&[profiled; 3], 0.0).unwrap();
        assert!((one - three).abs() < 1e-12 * one);
        assert_eq!(candidate(0.6, &[(0.1, 7.0), (0.05, 7.0)]).best(&[profiled; 2], 0.0), None);
    }
}
