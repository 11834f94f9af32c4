//! Quantiles of counts under a Poisson distribution whose log rate is normal.

use core::f64::consts::{FRAC_1_SQRT_2, PI};

use libm::{erfc, lgamma};

use super::log_gamma::{self, PER_DEVIATION, excess};
use crate::prelude::*;

/// Largest count up to which probabilities are summed. Larger counts use Temme's expansion, whose next term is below
/// 1e-8 here, and half of that for 4/3 as many counts. The cost of a sum grows with the count.
const SUMMED: f64 = 200.0;
/// Fall of the log density at the ends of an integral. The product of two densities that fall by half of it is below
/// the rounding of 1e-17, the smallest probability that a level next to 1 leaves.
const FALL: f64 = 80.0;
/// Size, relative to the sum, of the terms of a sum over counts that are dropped.
const LEFT_OUT: f64 = 1e-17;
/// Coefficients of Temme's expansion in powers of eta, of order 1 (Temme 1979; DiDonato & Morris 1986).
const FIRST: [f64; 8] = [
    -1.0 / 3.0,
    1.0 / 12.0,
    -2.0 / 135.0,
    1.0 / 864.0,
    3.527_336_860_670_194e-4,
    -1.787_551_440_329_218e-4,
    3.919_263_178_522_438e-5,
    -2.185_448_510_679_992e-6,
];
/// Coefficients of Temme's expansion in powers of eta, of order 1 / a.
const SECOND: [f64; 6] =
    [-1.0 / 540.0, -1.0 / 288.0, 1.0 / 378.0, -9.902_263_374_485_597e-4, 2.057_613_168_724_279_8e-4, -4.018_775_720_164_609e-7];

/// The distribution of a count whose log rate is normal, (M50).
#[derive(Debug, Clone, Copy)]
pub(super) struct CountDistribution {
    /// Mean of the log rate, the log of the exposure included.
    pub log_rate: f64,
    /// Standard deviation of the log rate.
    pub deviation: f64,
}

impl CountDistribution {
    /// Returns the smallest count that is not exceeded with probability `level`; infinite if it overflows.
    pub fn quantile(&self, level: f64) -> f64 {
        least(|count| self.tails(count).0 >= level)
    }

    /// Returns the smallest count that is exceeded with probability at most `tail`. It is accurate for levels next to
    /// 1.
    pub fn upper_quantile(&self, tail: f64) -> f64 {
        least(|count| self.tails(count).1 <= tail)
    }

    /// Returns the probabilities of at most `count`, an integer, and of more.
    fn tails(&self, count: f64) -> (f64, f64) {
        let (a, m, s) = (count + 1.0, self.log_rate, self.deviation);
        if s == 0.0 {
            return poisson_tails(a, m);
        }
        // P(T < a given the rate) = P(G > rate) for a gamma variable G of shape a. The sum is over the narrower of ln G
        // and the log rate, because the distribution function of the other is smooth in its steps.
        let (mut below, mut beyond) = (0.0, 0.0);
        let mut add = |p: f64, (under, over): (f64, f64)| {
            below += p * under;
            beyond += p * over;
        };
        if s * a.sqrt() <= 1.0 {
            let last = (PER_DEVIATION * (2.0 * FALL).sqrt()) as i32;
            let peak = 1.0 / (PER_DEVIATION * (2.0 * PI).sqrt());
            for z in (-last..=last).map(|k| f64::from(k) / PER_DEVIATION) {
                add(peak * (-0.5 * z * z).exp(), poisson_tails(a, m + s * z));
            }
        } else {
            for (d, p) in log_gamma::nodes(a, FALL) {
                let y = FRAC_1_SQRT_2 * (a.ln() + d - m) / s;
                add(p, (0.5 * erfc(-y), 0.5 * erfc(y)));
            }
        }
        (below, beyond)
    }
}

/// Returns the probabilities of fewer than `a` counts, an integer, and of `a` or more, for a known rate
/// exp(`log_rate`).
fn poisson_tails(a: f64, log_rate: f64) -> (f64, f64) {
    if a <= SUMMED { summed_tails(a, log_rate) } else { temme_tails(a, log_rate) }
}

/// Returns the tails by a sum for the smaller of the two probabilities, or nearly so.
fn summed_tails(a: f64, log_rate: f64) -> (f64, f64) {
    let rate = log_rate.exp();
    let probability = |k: f64| (k * log_rate - rate - lgamma(k + 1.0)).exp();
    let (mut k, mut sum) = (a, 0.0);
    if rate < a {
        let mut p = probability(a);
        while p > LEFT_OUT * sum {
            sum += p;
            k += 1.0;
            p *= rate / k;
        }
        return (1.0 - sum, sum);
    }
    if !rate.is_finite() {
        return (0.0, 1.0);
    }
    k -= 1.0;
    let mut p = probability(k);
    while p > LEFT_OUT * sum {
        sum += p;
        p *= k / rate;
        k -= 1.0;
    }
    (sum, 1.0 - sum)
}

/// Returns the tails by Temme's uniform expansion of the incomplete gamma function for large shapes a.
fn temme_tails(a: f64, log_rate: f64) -> (f64, f64) {
    let d = log_rate - a.ln();
    let half_square = excess(d);
    let y = a * half_square;
    let eta = (2.0 * half_square).sqrt().copysign(d);
    let order = |terms: &[f64]| terms.iter().rev().fold(0.0, |sum, c| sum * eta + c);
    // The exponential underflows to 0 for larger y, and the polynomial may be infinite there.
    let near = if y < 700.0 { (-y).exp() / (2.0 * PI * a).sqrt() * (order(&FIRST) + order(&SECOND) / a) } else { 0.0 };
    let root = y.sqrt().copysign(d);
    (0.5 * erfc(root) + near, 0.5 * erfc(-root) - near)
}

/// Returns the smallest count that is `enough`, given that all larger ones are; infinite if it overflows.
fn least(enough: impl Fn(f64) -> bool) -> f64 {
    let (mut low, mut high) = (-1.0, 1.0);
    while !enough(high) {
        (low, high) = (high, 2.0 * high + 1.0);
        if high > f64::MAX / 4.0 {
            return f64::INFINITY;
        }
    }
    // Above 2^53 not every integer is a number, and the bracket stops at neighbours.
    while high - low > 1.0 && high - low > 1e-15 * high {
        let middle = (0.5 * (low + high)).floor();
        if middle <= low || middle >= high {
            break;
        }
        if enough(middle) { high = middle } else { low = middle }
    }
    high
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(log_rate: f64, variance: f64) -> CountDistribution {
        CountDistribution { log_rate, deviation: variance.sqrt() }
    }

    /// Known rates have textbook tails, P(T <= 0) = exp(-rate) and so on. The counts include the change of method.
    #[test]
    fn tails_of_a_known_rate_are_sums_of_its_probabilities() {
        for rate in [0.1f64, 1.0, 3.7, 20.0, 200.0, 500.0] {
            let own = counts(rate.ln(), 0.0);
            let (mut p, mut sum) = ((-rate).exp(), 0.0);
            for k in 0..900 {
                sum += p;
                let (below, beyond) = own.tails(f64::from(k));
                assert!((below - sum).abs() < 1e-8 && (below + beyond - 1.0).abs() < 1e-12, "{rate} {k}: {below} {sum}");
                p *= rate / f64::from(k + 1);
            }
        }
    }

    /// Temme's expansion agrees with the sum of the probabilities, by their logarithms, up to a million counts.
    #[test]
    fn tails_of_large_rates_agree_with_sums() {
        for rate in [250.0f64, 3e3, 1e6] {
            for z in [-5.0, -2.0, -0.5, 0.0, 0.5, 2.0, 5.0] {
                let a = (rate + z * rate.sqrt()).floor();
                let probability = |k: f64| (k * rate.ln() - rate - lgamma(k + 1.0)).exp();
                let ends = (a as i64, (rate + 12.0 * rate.sqrt()) as i64);
                let beyond: f64 = (ends.0..ends.1).map(|k| probability(k as f64)).sum();
                let found = temme_tails(a, rate.ln());
                assert!((found.1 - beyond).abs() < 2e-8 && (found.0 + found.1 - 1.0).abs() < 1e-14, "{rate} {z}: {found:?}");
            }
        }
    }

    /// The reference is a sum over log rates with fine steps, for counts that say little or much about their rate.
    #[test]
    fn tails_of_uncertain_rates_agree_with_a_fine_sum() {
        for (log_rate, variance) in [(1.0, 0.3), (-2.0, 0.5), (3.0, 4.0), (8.0, 1.0), (8.0, 1e-4), (0.0, 9.0), (5.0, 0.005)] {
            let own = counts(log_rate, variance);
            for z in [-1.5, 0.0, 0.7, 2.0] {
                let count = (log_rate + z * own.deviation).exp().floor();
                let step = 1e-3;
                let node = |k: i32| {
                    let u = step * f64::from(k);
                    step * (-0.5 * u * u).exp() / (2.0 * PI).sqrt() * poisson_tails(count + 1.0, log_rate + own.deviation * u).0
                };
                let fine: f64 = (-9000..=9000).map(node).sum();
                let (below, beyond) = own.tails(count);
                assert!((below - fine).abs() < 1e-8, "{log_rate} {variance} {z}: {below} {fine}");
                assert!((below + beyond - 1.0).abs() < 1e-12);
            }
        }
    }

    /// A quantile is the smallest count that suffices, and uncertain rates widen the interval.
    #[test]
    fn quantiles_are_the_least_counts_that_suffice() {
        for (log_rate, variance) in [(1.0, 0.0), (1.0, 0.3), (-0.9, 0.5), (8.0, 0.1), (20.7, 0.01), (14.0, 3.0)] {
            let own = counts(log_rate, variance);
            for level in [0.025, 0.5, 0.975] {
                let k = own.quantile(level);
                let (enough, before) = (own.tails(k).0, own.tails(k - 1.0).0);
                assert!(k >= 0.0 && enough >= level && (k == 0.0 || before < level), "{log_rate} {level} {k}");
            }
        }
        // For a tail of 6e-17 there is an upper quantile, although 1 minus the tail rounds to 1.
        for (log_rate, variance) in [(1.0, 0.0), (1.0, 0.1), (8.0, 0.0)] {
            let own = counts(log_rate, variance);
            for tail in [0.025, 1e-6] {
                assert_eq!(own.upper_quantile(tail), own.quantile(1.0 - tail), "{log_rate} {variance} {tail}");
            }
            let (usual, far) = (own.quantile(0.999), own.upper_quantile(6e-17));
            assert!(far > usual && far < 20.0 * usual, "{log_rate} {variance}: {far}");
        }
        let (known, uncertain) = (counts(3.0, 0.0), counts(3.0, 0.5));
        assert!(uncertain.quantile(0.975) > known.quantile(0.975) && uncertain.quantile(0.025) < known.quantile(0.025));
        // For a wide log rate the count is about the rate: its quantile is that of a log-normal variable.
        let wide = counts(20.0, 4.0).upper_quantile(0.025);
        assert!((wide.ln() - (20.0 + 2.0 * 1.959_963_984_540_054)).abs() < 1e-6, "{wide}");
        assert_eq!(counts(-1000.0, 1.0).quantile(0.975), 0.0);
        assert_eq!(counts(800.0, 1.0).quantile(0.5), f64::INFINITY);
        assert_eq!(counts(10.0, 1e10).upper_quantile(0.025), f64::INFINITY);
    }
}
