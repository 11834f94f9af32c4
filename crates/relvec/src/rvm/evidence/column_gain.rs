//! The noise precision, and what one basis function contributes to the log evidence.
//!
//! Everything is in relative precisions a = alpha / beta, so that a change of the noise touches no
//! factor; where the noise is learnt it is profiled out in closed form, (M7) and (M8).

use smallvec::SmallVec;

use crate::rvm::data::noise::NoiseProfile;

/// Below this margin, relative to s, a basis function's best precision is infinite.
const MARGIN: f64 = 1e-12;

/// Log prior odds against a kernel: what each must gain beyond 0 nats to be worth having, (M56).
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct SparsityPrior {
    pub nats: f64,
    /// So many first columns (the bias) cost nothing.
    pub free: usize,
}

impl SparsityPrior {
    pub const FLAT: SparsityPrior = SparsityPrior { nats: 0.0, free: 0 };

    /// Of a model, up to that of the empty one.
    pub fn log(&self, active: &[usize]) -> f64 {
        -active.iter().map(|j| self.cost(*j)).sum::<f64>()
    }

    /// Of one column.
    pub fn cost(&self, column: usize) -> f64 {
        if column < self.free { 0.0 } else { self.nats }
    }
}

/// A basis function as the rest of the model sees it: s without it, and what each noise sees.
#[derive(Debug, Clone)]
pub(crate) struct ColumnFactors {
    pub s: f64,
    /// One for each noise.
    pub seen: SmallVec<[Quality; 1]>,
}

/// q and the energy without a basis function; of several outputs that share a noise q is the norm of theirs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Quality {
    pub q: f64,
    pub energy: f64,
}

/// The norm of what a column is to several outputs; of one output the number itself.
#[inline]
fn size(mut outputs: impl ExactSizeIterator<Item = f64>) -> f64 {
    match outputs.len() {
        1 => outputs.next().expect("there is one"),
        _ => outputs.map(|v| v * v).sum::<f64>().sqrt(),
    }
}

/// What each noise makes (`of`, by its number) of what it sees of numbers that there is one of for each output: the norm of
/// all, or each its own.
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
    /// The relative precision of highest evidence, but not below `least`; `None` if that is infinite, (M8); of several
    /// noises the root of (M62). One profile for each noise.
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

    /// Log evidence with the basis function at `a`, less that without it, (M8), summed over the noises.
    pub fn contribution(&self, a: f64, profiles: &[NoiseProfile]) -> f64 {
        self.seen.iter().zip(profiles).map(|(seen, profile)| seen.contribution(self.s, a, profile)).sum()
    }
}

impl Quality {
    fn best(&self, s: f64, profile: &NoiseProfile) -> Option<f64> {
        let Quality { q, energy } = *self;
        Some(match *profile {
            NoiseProfile::Held { beta, copies } => {
                let surplus = beta * q * q - copies * s;
                if !(surplus > MARGIN * s) {
                    return None;
                }
                s * (copies * s / surplus)
            }
            NoiseProfile::Moving { count, extra } => {
                let e = energy + extra;
                let surplus = count * q * q - s * e;
                if !(surplus > MARGIN * s * e) {
                    return None;
                }
                s * (Self::left(s, q, e) / surplus)
            }
        })
    }

    /// s e - q^2, kept positive: what is left of the energy when the basis function is free, times s.
    fn left(s: f64, q: f64, e: f64) -> f64 {
        (s * e - q * q).max(1e-14 * s * e)
    }

    fn contribution(&self, s: f64, a: f64, profile: &NoiseProfile) -> f64 {
        let Quality { q, energy } = *self;
        let width = -0.5 * (s / a).ln_1p();
        match *profile {
            NoiseProfile::Held { beta, copies } => copies * width + 0.5 * beta * q * q / (a + s),
            NoiseProfile::Moving { count, extra } => {
                let share = (q * q / ((energy + extra) * (a + s))).min(1.0 - 1e-15);
                width - 0.5 * count * (-share).ln_1p()
            }
        }
    }
}

/// The root a of sum_k w_k a / (a + u_k) = s sum_k copies_k, where w_k a / (a + u_k) - s copies_k is 2 a (a + s) times
/// the slope of what output k contributes, (M62): the left side rises, so there is at most one, and it is concave, so
/// that Newton's steps from below stay below.
fn best_of_several(s: f64, seen: &[Quality], profiles: &[NoiseProfile]) -> Option<f64> {
    const STEPS: usize = 200;
    let (mut level, mut most) = (0.0, 0.0);
    let terms: SmallVec<[(f64, f64); 8]> = seen
        .iter()
        .zip(profiles)
        .map(|(seen, profile)| match *profile {
            NoiseProfile::Held { beta, copies } => {
                level += copies * s;
                (beta * seen.q * seen.q, s)
            }
            NoiseProfile::Moving { count, extra } => {
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
    // Were all u the least of them, the root would be this or less.
    let mut a = level / surplus * terms.iter().map(|(_, u)| *u).fold(f64::INFINITY, f64::min);
    for _ in 0..STEPS {
        let (value, slope) = terms.iter().fold((0.0, 0.0), |(value, slope), (w, u)| {
            let share = 1.0 / (a + u);
            (value + w * a * share, slope + w * u * share * share)
        });
        let step = (level - value) / slope;
        if !(step > 1e-14 * a) {
            break;
        }
        a += step;
    }
    Some(a)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidate(s: f64, seen: &[(f64, f64)]) -> ColumnFactors {
        ColumnFactors { s, seen: seen.iter().map(|(q, energy)| Quality { q: *q, energy: *energy }).collect() }
    }

    /// The best precision of several outputs is where the slope of what they contribute is zero; no precision on a grid
    /// is better; and of outputs that are all alike it is that of one of them.
    #[test]
    fn the_best_precision_of_several_outputs_is_the_highest() {
        let moving = NoiseProfile::Moving { count: 50.0, extra: 0.1 };
        let held = NoiseProfile::Held { beta: 30.0, copies: 1.0 };
        let cases = [
            (0.7, vec![(0.5, 3.0), (2.0, 8.0), (0.01, 40.0)], vec![moving, moving, moving]),
            (0.7, vec![(0.5, 3.0), (1.4, 8.0)], vec![held, moving]),
            // One output that the basis function explains all but entirely, one that it hurts.
            (1.0, vec![(1.0, 0.900_000_1), (0.05, 30.0)], vec![moving, moving]),
            (0.9, vec![(3.0, 10.1), (0.3, 10.0), (0.0, 1.0)], vec![moving, moving, held]),
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
        let one = candidate(0.6, &[(0.9, 7.0)]).best(&[moving], 0.0).unwrap();
        let three = candidate(0.6, &[(0.9, 7.0); 3]).best(&[moving; 3], 0.0).unwrap();
        assert!((one - three).abs() < 1e-12 * one);
        assert_eq!(candidate(0.6, &[(0.1, 7.0), (0.05, 7.0)]).best(&[moving; 2], 0.0), None);
    }
}
