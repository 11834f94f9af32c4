//! Quantiles of predictions: normal, Student's t, and counts (Poisson, of a rate that is log-normal).

use std::f64::consts::{PI, SQRT_2};

use statrs::distribution::{ContinuousCDF, Normal};
use statrs::function::beta::beta_reg;
use statrs::function::erf::{erf_inv, erfc_inv};
use statrs::function::gamma::{gamma_lr, gamma_ur, ln_gamma};

/// From so many degrees of freedom on a Student's t quantile is the series in 1 / degrees about the normal one. What it
/// leaves out is below 1e-9 of the quantile here, for every level below 1 that a number can hold. Half as many degrees:
/// 32 times as much. Twice as many: more terms of the continued fraction in the incomplete beta function.
const MANY_DEGREES: f64 = 1000.0;
/// Below this share of the degrees in degrees + t^2 the tail is a power of t, to the last digit.
const FAR_TAIL: f64 = 1e-17;
/// Halvings of an interval of at most 1,500 in ln t: below the spacing of numbers near its ends.
const HALVINGS: usize = 70;

/// Half the width of the central interval that a standard normal variable, or one of Student's t distribution with
/// `degrees` > 0 of freedom, is in with probability `level`, in (0, 1); infinite where it exceeds all numbers.
pub(crate) fn half_width(level: f64, degrees: Option<f64>) -> f64 {
    let outside = 1.0 - level;
    let z = SQRT_2 * if level < 0.5 { erf_inv(level) } else { erfc_inv(outside) };
    match degrees {
        None => z,
        Some(degrees) if degrees >= MANY_DEGREES => near_normal(z, degrees),
        Some(degrees) => few_degrees(level, outside, degrees),
    }
}

/// Student's t quantile of as high a level as the normal one `z`, to the fourth order in 1 / degrees (Abramowitz & Stegun
/// 26.7.5).
fn near_normal(z: f64, degrees: f64) -> f64 {
    let (s, r) = (z * z, 1.0 / degrees);
    let first = (s + 1.0) / 4.0;
    let second = ((5.0 * s + 16.0) * s + 3.0) / 96.0;
    let third = (((3.0 * s + 19.0) * s + 17.0) * s - 15.0) / 384.0;
    let fourth = ((((79.0 * s + 776.0) * s + 1482.0) * s - 1920.0) * s - 945.0) / 92160.0;
    z * (1.0 + r * (first + r * (second + r * (third + r * fourth))))
}

/// The t with P(|T| < t) = level, by halving an interval of ln t: this ends whatever the degrees.
fn few_degrees(level: f64, outside: f64, degrees: f64) -> f64 {
    // P(|T| > t) = I_x(degrees / 2, 1 / 2) at x = degrees / (degrees + t^2): for small x a power of x.
    let shape = 0.5 * degrees;
    let constant = ln_gamma(shape + 0.5) - ln_gamma(shape + 1.0) - 0.5 * PI.ln();
    let log_x = (outside.ln() - constant) / shape;
    if log_x < FAR_TAIL.ln() {
        return (0.5 * (degrees.ln() - log_x)).exp();
    }
    let is_inside = |log_t: f64| {
        let ratio = (2.0 * log_t - degrees.ln()).exp();
        // The smaller of the two probabilities keeps its digits, and so does the smaller share of degrees + t^2.
        match level < 0.5 && ratio <= 1.0 {
            true => beta_reg(0.5, shape, ratio / (1.0 + ratio)) < level,
            false => beta_reg(shape, 0.5, 1.0 / (1.0 + ratio)) > outside,
        }
    };
    let (mut low, mut high) = (f64::MIN_POSITIVE.ln(), 0.5 * (degrees.ln() - FAR_TAIL.ln()) + 1.0);
    for _ in 0..HALVINGS {
        let middle = 0.5 * (low + high);
        if is_inside(middle) { low = middle } else { high = middle }
    }
    (0.5 * (low + high)).exp()
}

/// Nodes of the sum over log rates on either side of the mean, and so many of them to a standard deviation.
const NODES: i32 = 32;
const PER_DEVIATION: f64 = 4.0;
/// From such a rate on the cube root of a gamma variable is as good as Gaussian (Wilson & Hilferty 1931), to 1e-4.
const LARGE_RATE: f64 = 500.0;

/// Counts whose log rate has that mean and variance, over that exposure.
pub(crate) struct CountDistribution {
    /// Rates and their probabilities.
    rates: Vec<(f64, f64)>,
    normal: Normal,
}

impl CountDistribution {
    pub fn new(mean: f64, variance: f64, exposure: f64) -> CountDistribution {
        let node = |k: i32| {
            let z = f64::from(k) / PER_DEVIATION;
            // The rate of an exposure of 1 need not be in the range of numbers.
            ((exposure.ln() + mean + variance.sqrt() * z).exp(), (-0.5 * z * z).exp())
        };
        let rates: Vec<(f64, f64)> = (-NODES..=NODES).map(node).collect();
        let total: f64 = rates.iter().map(|(_, p)| p).sum();
        CountDistribution { rates: rates.into_iter().map(|(rate, p)| (rate, p / total)).collect(), normal: Normal::standard() }
    }

    /// Probability of at most `count`, a whole number.
    fn below(&self, count: f64) -> f64 {
        self.rates.iter().map(|(rate, p)| p * self.poisson(count, *rate)).sum()
    }

    /// Probability of more than `count`, which has digits where that of at most so many is next to 1.
    fn beyond(&self, count: f64) -> f64 {
        let one = |rate: f64| match rate {
            0.0 => 0.0,
            rate if rate < LARGE_RATE => gamma_lr(count + 1.0, rate),
            rate => self.normal.cdf(-wilson_hilferty(count + 1.0, rate)),
        };
        self.rates.iter().map(|(rate, p)| p * one(*rate)).sum()
    }

    fn poisson(&self, count: f64, rate: f64) -> f64 {
        let shape = count + 1.0;
        if rate == 0.0 {
            return 1.0;
        }
        if rate < LARGE_RATE {
            return gamma_ur(shape, rate);
        }
        self.normal.cdf(wilson_hilferty(shape, rate))
    }

    /// The least count that is not exceeded with probability `level`.
    pub fn quantile(&self, level: f64) -> f64 {
        least(|count| self.below(count) >= level)
    }

    /// The least count that is exceeded with probability `tail` at most.
    pub fn upper_quantile(&self, tail: f64) -> f64 {
        least(|count| self.beyond(count) <= tail)
    }
}

/// The standard normal variable of a gamma variable.
fn wilson_hilferty(shape: f64, rate: f64) -> f64 {
    3.0 * shape.sqrt() * (1.0 - 1.0 / (9.0 * shape) - (rate / shape).cbrt())
}

/// The least count that is `enough`, as all larger ones are.
fn least(enough: impl Fn(f64) -> bool) -> f64 {
    let (mut low, mut high) = (-1.0, 1.0);
    while !enough(high) && high < f64::MAX / 4.0 {
        (low, high) = (high, 2.0 * high + 1.0);
    }
    // Beyond 2^53 not every whole number is there.
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

    /// Against a table of numbers with 17 digits, from 0.1 degrees of freedom to infinity.
    #[test]
    fn half_widths_of_student_t_agree_with_the_table() {
        let table = include_str!("../tests/tables/student_t_quantiles.csv");
        let lines: Vec<&str> = table.lines().filter(|line| !line.starts_with('#')).skip(1).collect();
        assert_eq!(lines.len(), 192);
        for line in lines {
            let cells: Vec<f64> = line.split(',').map(|cell| cell.parse().unwrap()).collect();
            let found = half_width(cells[1], Some(cells[0]));
            assert!((found / cells[2] - 1.0).abs() < 1e-9, "{line}: {found}");
            if cells[0] == f64::INFINITY {
                assert!((half_width(cells[1], None) / cells[2] - 1.0).abs() < 1e-12, "{line}");
            }
        }
    }

    /// Wider for fewer degrees and higher levels, through all changes of method; never NaN, and it always ends.
    #[test]
    fn half_widths_fall_with_degrees_and_rise_with_the_level() {
        let levels = [1e-12, 1e-3, 0.3, 0.5, 0.9, 0.999, 1.0 - 1e-9, 1.0 - f64::EPSILON];
        let mut last = [f64::INFINITY; 8];
        for k in -1200..1230 {
            let degrees = 10f64.powf(f64::from(k) / 4.0);
            let found = levels.map(|level| half_width(level, Some(degrees)));
            assert!(found.iter().all(|q| *q >= 0.0), "{degrees}: {found:?}");
            assert!(
                found.windows(2).all(|q| q[0] < q[1] || q[0] == q[1] && (q[0] == 0.0 || q[0].is_infinite())),
                "{degrees}: {found:?}"
            );
            if degrees >= 0.1 {
                let falls = found.iter().zip(&last).all(|(q, last)| *q <= last * (1.0 + 1e-9));
                assert!(falls, "{degrees}: {found:?}, {last:?}");
                last = found;
            }
        }
    }

    /// Of a rate that is known, the textbook's: P(T <= 0) = exp(-rate), and so on.
    #[test]
    fn a_known_rate() {
        for rate in [0.1f64, 1.0, 3.7, 20.0, 200.0] {
            let counts = CountDistribution::new(rate.ln(), 0.0, 1.0);
            let (mut p, mut sum) = ((-rate).exp(), 0.0);
            for k in 0..400 {
                sum += p;
                assert!((counts.below(f64::from(k)) - sum).abs() < 1e-10, "{rate} {k}");
                p *= rate / f64::from(k + 1);
            }
        }
    }

    /// The approximation for large rates goes over into the sum at its beginning.
    #[test]
    fn large_rates() {
        let counts = CountDistribution::new(0.0, 0.0, 1.0);
        for z in [-3.0, -1.0, 0.0, 1.0, 3.0] {
            let count = (LARGE_RATE + z * LARGE_RATE.sqrt()).floor();
            let exact = gamma_ur(count + 1.0, LARGE_RATE);
            assert!((counts.poisson(count, LARGE_RATE) - exact).abs() < 1e-4, "{z}");
        }
    }

    /// A quantile is the first count that is enough, and exposures and uncertain rates widen the interval.
    #[test]
    fn quantiles() {
        for (mean, variance, exposure) in [(1.0, 0.0, 1.0), (1.0, 0.3, 1.0), (-2.0, 0.5, 3.0), (8.0, 0.1, 1.0), (20.0, 0.01, 2.0)]
        {
            let counts = CountDistribution::new(mean, variance, exposure);
            for level in [0.025, 0.5, 0.975] {
                let k = counts.quantile(level);
                assert!(
                    k >= 0.0 && counts.below(k) >= level && (k == 0.0 || counts.below(k - 1.0) < level),
                    "{mean} {level} {k}"
                );
            }
        }
        // Of a level of 1 less a rounding, the count that 1e-17 are beyond; by the level itself there is none.
        for (mean, variance) in [(1.0, 0.0), (1.0, 0.1), (8.0, 0.0)] {
            let counts = CountDistribution::new(mean, variance, 1.0);
            for tail in [0.025, 1e-6] {
                assert_eq!(counts.upper_quantile(tail), counts.quantile(1.0 - tail), "{mean} {variance} {tail}");
            }
            let (usual, far) = (counts.quantile(0.999), counts.upper_quantile(6e-17));
            assert!(far > usual && far < 20.0 * usual, "{mean} {variance}: {far}");
        }
        let sure = CountDistribution::new(3.0, 0.0, 1.0);
        let unsure = CountDistribution::new(3.0, 0.5, 1.0);
        assert!(unsure.quantile(0.975) > sure.quantile(0.975) && unsure.quantile(0.025) < sure.quantile(0.025));
        assert_eq!(CountDistribution::new(-1000.0, 1.0, 1.0).quantile(0.975), 0.0);
    }
}
